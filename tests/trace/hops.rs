//! What each hop does with what identifies a request.

use onefold::core::trace::chain::{Fate, Hop, Link, NOT_IN_LOG, Token};

use crate::common::book::Book;
use crate::scene::{line, options, traced};
use onefold::core::trace::access::AccessLine;

fn link(book: &Book, lines: &[AccessLine], hop: Hop, token: Token) -> Link {
    traced(book, lines, &options(), |trace| {
        trace.chain.links.iter().find(|l| l.hop == hop && l.token == token).unwrap().clone()
    })
}

fn sent(ms: i64, request: &str, key: Option<&str>) -> AccessLine {
    AccessLine { idempotency_key: key.map(Into::into), ..line(ms, request, "client", 1) }
}

#[test]
fn a_key_is_carried_dropped_minted_anew_or_minted_when_the_request_was_there() {
    let mut book = Book::new();
    for (id, seconds, key) in [
        ("A", 1, Some("k-a")),
        ("B", 11, None),
        ("C", 21, Some("other")),
        ("D", 31, Some("made")),
        ("E", 41, None),
    ] {
        let order = book.order(id, seconds, "PENDING_PAYMENT");
        (order.idempotency_key, order.trace_id) = (key.map(Into::into), Some(format!("r-{id}")));
    }
    let lines = [
        sent(500, "r-A", Some("k-a")),
        sent(10_500, "r-B", Some("k-b")),
        sent(20_500, "r-C", Some("k-c")),
        sent(30_500, "r-D", None),
        sent(40_500, "r-E", None),
    ];
    let keys = link(&book, &lines, Hop::Order, Token::Key);
    assert_eq!(keys.rows, 5);
    assert_eq!(keys.fates, [1, 1, 1, 1, 1], "carried, dropped, minted, minted after, neither");
    assert_eq!(
        keys.examples,
        ["B: k-b is lost", "C: k-c became other", "D: came without, has made"],
        "what is carried is no example"
    );
    let traces = link(&book, &lines, Hop::Order, Token::Trace);
    assert_eq!(traces.of(Fate::Carried), 5, "a request id that the order has is its trace");
    assert!(keys.basis.contains("access log"), "{}", keys.basis);
}

#[test]
fn what_no_line_of_the_log_has_is_not_laid_at_the_receivers_door() {
    let mut book = Book::new();
    for (id, seconds) in [("A", 1), ("B", 4)] {
        let order = book.order(id, seconds, "PENDING_PAYMENT");
        (order.idempotency_key, order.trace_id) = (Some("k".into()), Some("tr".to_owned()));
    }
    let line = |ms, request: &str, order: &str| AccessLine {
        order_id: Some(order.into()),
        ..sent(ms, request, None)
    };
    let bare = [line(500, "r1", "A"), line(3500, "r2", "B")];
    for token in [Token::Trace, Token::Key] {
        let link = link(&book, &bare, Hop::Order, token);
        assert_eq!((link.rows, link.basis), (0, NOT_IN_LOG), "{token}");
    }
    // Another line has a key, so the log would have that of these.
    let told = [&bare[..], &[sent(9000, "r3", Some("else"))]].concat();
    assert_eq!(link(&book, &told, Hop::Order, Token::Key).of(Fate::MintedAfter), 2);
    assert_eq!(link(&book, &told, Hop::Order, Token::Trace).rows, 0);
    let traced =
        [&bare[..], &[AccessLine { trace_id: Some("tr-3".to_owned()), ..sent(9000, "r3", None) }]].concat();
    let traces = link(&book, &traced, Hop::Order, Token::Trace);
    assert_eq!(traces.of(Fate::MintedAfter), 2, "a request id is no trace where lines have one");
}

#[test]
fn without_a_log_a_retry_with_another_key_shows_that_the_receiver_made_it() {
    let mut book = Book::new();
    for (id, seconds, source, key) in [("A", 0, "client", "k1"), ("B", 3, "gateway", "k2")] {
        let order = book.order(id, seconds, "PENDING_PAYMENT");
        (order.source, order.idempotency_key) = (Some(source.to_owned()), Some(key.into()));
    }
    let keys = link(&book, &[], Hop::Order, Token::Key);
    assert_eq!((keys.rows, keys.of(Fate::MintedAfter)), (1, 1));
    assert_eq!(keys.examples, ["B, a retry of A: k1 became k2"]);
    assert!(keys.basis.starts_with("inferred"), "{}", keys.basis);
    book.find_order("B").idempotency_key = Some("k1".into());
    assert_eq!(link(&book, &[], Hop::Order, Token::Key).of(Fate::Carried), 1);
}

#[test]
fn rows_without_a_column_are_said_not_to_be_in_the_ledgers() {
    let mut book = Book::new();
    book.bought("A", 0);
    book.payment("P-X", "nowhere", 3, "CAPTURED");
    book.payment("P-Y", "A", 3, "FAILED").order_id = None;
    for (hop, token) in [(Hop::Payment, Token::Trace), (Hop::Stock, Token::Key)] {
        let link = link(&book, &[], hop, token);
        assert_eq!(link.rows, 0);
        assert!(link.basis.contains("not in the ledgers"), "{}", link.basis);
    }
    let orders = link(&book, &[], Hop::Payment, Token::OrderId);
    assert_eq!((orders.rows, orders.of(Fate::Carried)), (3, 1));
    assert_eq!((orders.of(Fate::Minted), orders.of(Fate::Dropped)), (1, 1));
    let mut examples = orders.examples.clone();
    examples.sort();
    assert_eq!(examples, ["P-X: names nowhere, which is not there", "P-Y: names no order"]);
}

#[test]
fn a_queue_keeps_the_trace_and_may_make_its_key_of_the_order() {
    let mut book = Book::new();
    let order = book.order("A", 0, "PAID");
    (order.trace_id, order.idempotency_key) = (Some("tr".to_owned()), Some("k".into()));
    book.order("B", 300, "PAID");
    for (id, order, trace, key) in [
        ("M-1", "A", Some("tr"), Some("k")),
        ("M-2", "A", Some("span-9"), Some("A")),
        ("M-3", "A", None, None),
        ("M-4", "B", None, Some("B")),
    ] {
        let message = book.message(id, order, "payment.confirm", "CONSUMED");
        (message.trace_id, message.message_key) = (trace.map(str::to_owned), key.map(str::to_owned));
    }
    assert_eq!(link(&book, &[], Hop::Queue, Token::Trace).fates, [1, 1, 1, 0, 1]);
    assert_eq!(link(&book, &[], Hop::Queue, Token::Key).fates, [1, 1, 2, 0, 0], "the order was there before");
}

#[test]
fn what_a_consumer_wrote_is_held_beside_its_message() {
    let mut book = Book::new();
    let order = book.order("A", 0, "PAID");
    order.trace_id = Some("tr".to_owned());
    let message = book.message("M-1", "A", "order.again", "CONSUMED");
    (message.trace_id, message.message_key) = (Some("tr".to_owned()), Some("m-1".to_owned()));
    let order = book.order("B", 2, "PENDING_PAYMENT");
    (order.source, order.trace_id) = (Some("consumer".to_owned()), Some("tr".to_owned()));
    assert_eq!(link(&book, &[], Hop::Consumer, Token::Trace).fates, [1, 0, 0, 0, 0]);
    let keys = link(&book, &[], Hop::Consumer, Token::Key);
    assert_eq!((keys.of(Fate::Dropped), keys.examples.clone()), (1, vec!["B: m-1 is lost".to_owned()]));
}
