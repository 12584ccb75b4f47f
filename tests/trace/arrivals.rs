//! What came for one purchase, and the sentence about it.

use onefold::core::time::Span;
use onefold::core::trace::access::{AccessLine, Source, Sources};
use onefold::core::trace::attach::Basis;
use onefold::core::trace::words::attribution;
use onefold::core::trace::{Options, Trace};

use crate::common::book::{Book, at};
use crate::scene::{line, lost, options, traced};

/// Source, attempt, its order, what it repeats, and by what that is known.
type Came = (Source, i64, Option<String>, Option<usize>, Basis);

/// Arrivals of the only purchase.
fn came(trace: &Trace<'_>) -> Vec<Came> {
    let all = trace.purchases.arrivals(0, &trace.options.sources);
    let order = |o: Option<onefold::core::join::OrderRows<'_>>| o.map(|o| o.order.order_id.to_string());
    all.iter().map(|a| (a.source, a.attempt, order(a.order), a.repeats, a.basis)).collect()
}

fn said(book: &Book, lines: &[AccessLine]) -> String {
    traced(book, lines, &options(), |trace| attribution(&trace.purchases.arrivals(0, &trace.options.sources)))
}

/// Orders 3, 5 and 11 seconds in, by a tap, the gateway and a tap.
fn three() -> Book {
    let mut book = Book::new();
    for (id, seconds, source) in [("A", 3, "app"), ("B", 5, "gateway"), ("C", 11, "app")] {
        book.order(id, seconds, "PENDING_PAYMENT").source = Some(source.to_owned());
    }
    book
}

#[test]
fn without_a_log_each_order_is_an_arrival_and_a_gateways_repeats_the_tap_before_it() {
    traced(&three(), &[], &options(), |trace| {
        let order = |id: &str| Some(id.to_owned());
        assert_eq!(
            came(trace),
            [
                (Source::Client, 1, order("A"), None, Basis::Row),
                (Source::Gateway, 2, order("B"), Some(0), Basis::Row),
                (Source::Client, 1, order("C"), None, Basis::Row),
            ]
        );
        assert_eq!(trace.log(), None);
    });
    assert_eq!(said(&three(), &[]), "3 orders = 2 taps + 1 gateway retry");
}

#[test]
fn the_sentence_says_when_the_first_was_written_lost_and_tried_again() {
    let lines = [
        lost(2500, line(2600, "r1", "app", 1)),
        lost(900, line(4700, "r1", "edge-gateway", 2)),
        AccessLine { status: Some(503), ..line(5700, "r1", "edge-gateway", 3) },
        line(10_400, "r2", "app", 1),
    ];
    assert_eq!(
        said(&three(), &lines),
        "3 orders = 2 taps + 1 gateway retry; the first was written 400 ms in, its answer was lost at 2.5 s, the \
         gateway retried at 2.1 s and 3.1 s"
    );
    traced(&three(), &lines, &options(), |trace| {
        let all = came(trace);
        assert_eq!(all.len(), 4, "{all:?}");
        assert_eq!((all[2].2.as_ref(), all[2].3), (None, Some(0)), "a refused retry wrote nothing");
        let left = trace.sources[&Source::Gateway];
        assert_eq!((left.arrivals, left.orders), (2, 1));
    });
}

#[test]
fn a_line_is_matched_by_order_then_trace_then_key_then_buyer() {
    let mut book = Book::new();
    book.order("A", 10, "PAID").trace_id = Some("tr-a".to_owned());
    book.order("B", 10, "PAID").idempotency_key = Some("k-b".into());
    book.order("C", 10, "PAID");
    book.order("D", 10, "PAID");
    let nobody = |ms, request| AccessLine { user_id: None, show_id: None, ..line(ms, request, "app", 1) };
    let lines = [
        AccessLine { order_id: Some("C".into()), ..nobody(9000, "r-c") },
        nobody(9100, "tr-a"),
        AccessLine { idempotency_key: Some("k-b".into()), ..nobody(9200, "r-b") },
        line(9300, "r-d", "app", 1),
        // Of another buyer, of nobody, and too late to have written anything.
        AccessLine { user_id: Some("other".into()), ..line(9400, "r-x", "app", 1) },
        nobody(9500, "r-y"),
        line(20_000, "r-z", "app", 1),
    ];
    traced(&book, &lines, &options(), |trace| {
        let mut by: Vec<_> = came(trace).into_iter().map(|(_, _, order, _, basis)| (order, basis)).collect();
        by.sort();
        let order = |id: &str| Some(id.to_owned());
        assert_eq!(
            by,
            [
                (None, Basis::Buyer),
                (order("A"), Basis::Trace),
                (order("B"), Basis::Key),
                (order("C"), Basis::Order),
                (order("D"), Basis::Buyer),
            ]
        );
        let log = trace.log().unwrap();
        assert_eq!((log.lines, log.placed.values().sum::<u64>()), (7, 5));
    });
}

#[test]
fn a_line_that_two_purchases_could_own_belongs_to_neither_and_one_twice_counts_once() {
    let mut book = Book::new();
    for (id, session) in [("A", "phone"), ("B", "laptop")] {
        let order = book.order(id, 10, "PAID");
        (order.session_id, order.trace_id) = (Some(session.into()), Some("tr".to_owned()));
    }
    let of_trace = AccessLine { trace_id: Some("tr".to_owned()), ..line(9800, "r1", "app", 1) };
    let named = AccessLine { order_id: Some("A".into()), ..line(9900, "r2", "app", 1) };
    traced(&book, &[of_trace, named.clone(), named], &options(), |trace| {
        let log = trace.log().unwrap();
        assert_eq!((log.lines, log.placed.values().sum::<u64>(), log.twice), (3, 1, 1));
    });
}

#[test]
fn what_a_source_is_may_be_said_and_messages_tell_of_their_deliveries() {
    let mut book = three();
    let row = book.message("M-1", "A", "payment.confirm", "CONSUMED");
    row.attempts = 3;
    book.message("M-2", "A", "inventory.release", "CONSUMED");
    book.message("M-3", "A", "ticket.issue", "QUEUED");
    let sources = Sources([("app".to_owned(), Source::Compensation)].into());
    let said = Options { sources, ..options() };
    traced(&book, &[], &said, |trace| {
        let arrivals = |source| trace.sources.get(&source).map(|left| (left.arrivals, left.orders));
        assert_eq!(arrivals(Source::Client), None);
        assert_eq!(arrivals(Source::Gateway), Some((1, 1)));
        assert_eq!(arrivals(Source::Consumer), Some((3, 0)));
        assert_eq!(arrivals(Source::Compensation), Some((3, 2)), "two orders and a release");
    });
}

#[test]
fn captures_and_tickets_stand_with_the_source_that_wrote_their_order() {
    let mut book = Book::new();
    book.bought("A", 0);
    book.bought("B", 3);
    book.find_order("A").source = Some("app".to_owned());
    book.find_order("B").source = Some("gateway".to_owned());
    book.find_order("B").status = "TICKETED".parse().unwrap();
    let again = book.payment("P-B2", "B", 9, "REFUNDED");
    again.refunded_minor = 1000;
    for (id, seconds) in [("M-1", 3), ("M-2", 4)] {
        book.message(id, "A", "ticket.issue", "CONSUMED").created_at = at(seconds);
    }
    traced(&book, &[], &options(), |trace| {
        let left = |source| {
            let left = trace.sources[&source];
            (left.orders, left.captures, left.tickets)
        };
        assert_eq!(left(Source::Client), (1, 1, 2));
        assert_eq!(left(Source::Gateway), (1, 2, 1));
    });
}

#[test]
fn a_log_of_another_time_is_told_from_one_of_these_orders() {
    let hours = |hours: i64| Span::from_mins(60 * hours);
    let of_log = |later: Span, has_ids: bool| {
        let lines = [line(2600, "r1", "app", 1), line(4700, "r2", "app", 1)].map(|line| AccessLine {
            at: line.at.plus(later),
            order_id: has_ids.then(|| if line.request_id == "r1" { "A".into() } else { "B".into() }),
            ..line
        });
        traced(&three(), &lines, &options(), |trace| {
            (
                trace.beside,
                trace.is_beside_its_log(),
                trace.log().unwrap().later.map(|span| span.micros() / 3_600_000_000),
            )
        })
    };
    assert!(!of_log(Span::from_secs(0), true).1);
    assert_eq!(of_log(hours(8), true), (0, true, Some(8)));
    assert!(of_log(hours(-8), true).1);
    assert_eq!(of_log(hours(24 * 365), false), (0, true, None));
    traced(&three(), &[], &options(), |trace| assert!(!trace.is_beside_its_log(), "there is no log"));
}
