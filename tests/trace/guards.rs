//! What each guard would have stopped.

use onefold::core::trace::guards::{Guard, Surplus};

use crate::common::book::Book;
use crate::scene::{line, options, traced};

fn stopped(book: &Book, guard: Guard) -> Surplus {
    traced(book, &[], &options(), |trace| trace.guards.iter().find(|(g, _)| *g == guard).unwrap().1)
}

fn of(orders: u64, captures: u64, tickets: u64, runs: u64) -> Surplus {
    Surplus { orders, captures, tickets, runs }
}

/// A tap and the gateway's retry of it, another tap and its retry; the second tap's and its retry's are paid.
fn four() -> Book {
    let mut book = Book::new();
    book.order("A", 0, "PENDING_PAYMENT");
    book.order("B", 3, "PENDING_PAYMENT");
    book.bought("C", 10);
    book.bought("D", 13);
    for (id, source) in [("A", "client"), ("B", "gateway"), ("C", "client"), ("D", "gateway")] {
        book.find_order(id).source = Some(source.to_owned());
    }
    book
}

#[test]
fn each_guard_stops_what_it_can_see() {
    let book = four();
    traced(&book, &[], &options(), |trace| assert_eq!(trace.surplus, of(3, 1, 0, 0)));
    assert_eq!(stopped(&book, Guard::ClientKey), of(3, 1, 0, 0), "one order, paid once");
    assert_eq!(stopped(&book, Guard::Merging), of(2, 0, 0, 0), "two taps stay, and may both be paid");
    assert_eq!(stopped(&book, Guard::Token), of(1, 0, 0, 0), "the second tap; retries come behind the token");
    assert_eq!(stopped(&book, Guard::Unique), of(0, 0, 0, 0), "no order has a key");
    assert_eq!(stopped(&book, Guard::Status), of(0, 0, 0, 0));
    assert_eq!(stopped(&book, Guard::MessageKey), of(0, 0, 0, 0));
}

#[test]
fn a_unique_index_stops_by_the_keys_that_orders_have() {
    let mut book = four();
    for id in ["A", "B", "C"] {
        book.find_order(id).idempotency_key = Some("k".into());
    }
    assert_eq!(
        stopped(&book, Guard::Unique),
        of(2, 0, 0, 0),
        "one order of k and the one without a key stay"
    );
    book.find_order("D").idempotency_key = Some("k".into());
    assert_eq!(stopped(&book, Guard::Unique), of(3, 1, 0, 0));
    for (at, id) in ["A", "B", "C", "D"].iter().enumerate() {
        book.find_order(id).idempotency_key = Some(format!("k{at}").as_str().into());
    }
    assert_eq!(stopped(&book, Guard::Unique), of(0, 0, 0, 0), "a key of its own each stops nothing");
}

#[test]
fn merging_goes_by_the_request_where_a_log_names_it() {
    let lines = [line(-200, "r1", "client", 1), line(2800, "r1", "client", 2), line(9800, "r2", "client", 1)];
    traced(&four(), &lines, &options(), |trace| {
        let (_, merged) = trace.guards.iter().find(|(g, _)| *g == Guard::Merging).unwrap();
        // D has no line: the gateway, by its row, repeats the tap before it.
        assert_eq!(merged.orders, 2);
    });
}

#[test]
fn a_status_guard_stops_the_second_charge_ticket_and_release_of_one_order() {
    let mut book = Book::new();
    book.bought("A", 0);
    book.payment("P-A2", "A", 9, "CAPTURED");
    for id in ["M-1", "M-2"] {
        book.message(id, "A", "ticket.issue", "CONSUMED").message_key = Some("A".to_owned());
    }
    for id in ["M-3", "M-4"] {
        book.message(id, "A", "inventory.release", "CONSUMED").message_key = Some("A".to_owned());
    }
    traced(&book, &[], &options(), |trace| assert_eq!(trace.surplus, of(0, 1, 1, 2)));
    assert_eq!(stopped(&book, Guard::Status), of(0, 1, 1, 1));
    assert_eq!(stopped(&book, Guard::MessageKey), of(0, 0, 1, 2));
    assert_eq!(stopped(&book, Guard::ClientKey), of(0, 0, 0, 0), "it is one order");
}

#[test]
fn a_gift_card_and_a_wallet_that_make_the_amount_are_no_surplus() {
    let mut book = Book::new();
    book.order("A", 0, "PAID");
    for (id, amount) in [("P-1", 300), ("P-2", 700)] {
        book.payment(id, "A", 5, "CAPTURED").amount_minor = amount;
    }
    traced(&book, &[], &options(), |trace| assert_eq!(trace.surplus, of(0, 0, 0, 0)));
}

#[test]
fn what_a_consumer_writes_again_under_one_key_is_the_message_keys_to_stop() {
    let mut book = Book::new();
    for (id, seconds) in [("A", 0), ("B", 40), ("C", 80)] {
        let order = book.order(id, seconds, "PENDING_PAYMENT");
        (order.source, order.idempotency_key) = (Some("order-consumer".to_owned()), Some("m-1".into()));
    }
    assert_eq!(stopped(&book, Guard::MessageKey).orders, 2);
    assert_eq!(stopped(&book, Guard::ClientKey).orders, 0, "no client sent it");
    assert_eq!(stopped(&book, Guard::Token).orders, 0);
}

#[test]
fn a_capture_without_an_order_and_one_in_another_currency_are_too_much_beside_another() {
    let mut book = Book::new();
    book.order("A", 0, "PAID");
    book.payment("P-1", "A", 1, "CAPTURED").order_id = None;
    let captures = |book: &Book| traced(book, &[], &options(), |trace| trace.surplus.captures);
    assert_eq!(captures(&book), 0, "it is the only one");
    book.payment("P-2", "A", 2, "CAPTURED");
    assert_eq!(captures(&book), 1);
    book.payment("P-3", "A", 3, "CAPTURED").currency = "JPY".parse().unwrap();
    assert_eq!(captures(&book), 2);
    assert_eq!(stopped(&book, Guard::Status), of(0, 1, 0, 0), "the third; the first names no order");
    assert_eq!(stopped(&book, Guard::ClientKey), of(0, 0, 0, 0));
    book.find_payment("P-2").status = "FAILED".parse().unwrap();
    assert_eq!(captures(&book), 1, "the order is paid in another currency, and once more without it");
}

#[test]
fn a_ticket_without_an_order_is_told_and_too_much_beside_another() {
    let mut book = Book::new();
    book.order("A", 0, "PAID");
    book.message("M-1", "A", "ticket.issue", "CONSUMED").order_id = Some("GONE".into());
    let found =
        |book: &Book| traced(book, &[], &options(), |trace| (trace.surplus.tickets, trace.orphaned.tickets));
    assert_eq!(found(&book), (0, 1), "it is the only one");
    book.message("M-2", "A", "ticket.issue", "CONSUMED");
    book.message("M-3", "A", "ticket.issue", "CONSUMED").order_id = None;
    assert_eq!(found(&book), (2, 2));
    book.message("M-4", "A", "ticket.issue", "DEAD").order_id = None;
    book.message("M-5", "A", "order.cancel", "CONSUMED").order_id = None;
    assert_eq!(found(&book), (2, 2), "neither brought one");
}

#[test]
fn what_buyers_without_any_order_paid_and_were_given_is_told() {
    let mut book = Book::new();
    book.order("A", 0, "PENDING_PAYMENT");
    let payment = book.payment("P-9", "GONE", 1, "CAPTURED");
    (payment.user_id, payment.session_id) = ("other".into(), Some("theirs".into()));
    let message = book.message("M-9", "GONE", "ticket.issue", "CONSUMED");
    (message.user_id, message.session_id) = (Some("other".into()), Some("theirs".into()));
    traced(&book, &[], &options(), |trace| {
        assert_eq!(trace.purchases.intents().len(), 1);
        assert_eq!(trace.orphaned, of(0, 1, 1, 0));
        assert_eq!(trace.surplus, of(0, 0, 0, 0));
    });
}

#[test]
fn a_message_key_that_two_purchases_share_was_still_worked_off_twice() {
    let mut book = Book::new();
    for (id, seconds, session) in [("A", 0, "phone"), ("B", 100, "laptop")] {
        book.order(id, seconds, "PENDING_PAYMENT").session_id = Some(session.into());
        let message = book.message(&format!("M-{id}"), id, "payment.confirm", "CONSUMED");
        (message.message_key, message.session_id) = (Some("k".to_owned()), Some(session.into()));
    }
    traced(&book, &[], &options(), |trace| {
        assert_eq!(trace.purchases.intents().len(), 2);
        assert_eq!(trace.surplus, of(0, 0, 0, 1));
        assert_eq!(trace.redeliveries.len(), 1);
    });
    assert_eq!(stopped(&book, Guard::MessageKey), of(0, 0, 0, 1));
    assert_eq!(stopped(&book, Guard::Status), of(0, 0, 0, 0));
}
