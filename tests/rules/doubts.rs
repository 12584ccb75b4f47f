//! Section 3, "in doubt", and row 2 of the table.

use onefold::core::plan::Finding::{self, *};
use onefold::core::plan::Outcome;

use crate::common::book::*;

fn unsettled_by(book: &Book, finding: Finding) {
    let intent = book.intent();
    assert_eq!(verdict(&intent), "UNSETTLED - 2", "{:?}", intent.findings);
    assert!(intent.steps.is_empty() && intent.review_reasons.is_empty());
    assert!(has(&intent, finding), "{:?}", intent.findings);
}

#[test]
fn a_payment_that_only_the_provider_knows_leaves_the_intent_unsettled() {
    for status in ["UNKNOWN", "VOIDING", "REFUNDING"] {
        let mut book = Book::new();
        book.bought("A", 0);
        book.payment("P-2", "A", 3, status);
        unsettled_by(&book, PaymentInDoubt);
    }
}

#[test]
fn an_initiated_payment_is_in_doubt_only_where_two_orders_live() {
    let mut book = Book::new();
    book.reserved("A", 0);
    book.payment("P-A", "A", 1, "INITIATED");
    assert_eq!(verdict(&book.intent()), "CLEAN A 7", "a checkout under way");
    assert!(!has(&book.intent(), PaymentInDoubt));
    book.reserved("B", 1);
    unsettled_by(&book, PaymentInDoubt);
    book.ledgers.orders[1].status = "CANCELLED".parse().unwrap();
    assert_eq!(book.intent().outcome, Outcome::Keep);
}

#[test]
fn a_payment_in_doubt_on_a_terminal_order_is_a_finding_that_blocks_nothing() {
    let mut book = Book::new();
    book.bought("A", 0);
    book.order("B", 1, "CANCELLED");
    book.payment("P-B", "B", 2, "UNKNOWN");
    assert_eq!(verdict(&book.intent()), "CLEAN A 3");
    assert!(has(&book.intent(), PaymentInDoubt));
}

#[test]
fn a_row_that_carries_nothing_raises_no_doubt() {
    let mut book = Book::new();
    book.bought("A", 0);
    book.payment("P-2", "A", 3, "UNKNOWN");
    for payment in &mut book.ledgers.payments {
        payment.provider_txn_id = Some("x".into());
    }
    assert_eq!(verdict(&book.intent()), "CLEAN A 3");
}

fn in_motion() -> Book {
    let mut book = Book::new();
    book.bought("A", 0);
    book.order("B", 1, "CANCELLING");
    book.payment("P-B", "B", 2, "CAPTURED");
    book.hold("H-B", "B", "HELD");
    book
}

#[test]
fn an_order_in_motion_with_money_is_unsettled_until_the_provider_was_asked_about_it() {
    let mut book = in_motion();
    unsettled_by(&book, OrderInMotion);
    book.evidence.asked_orders.insert(("t".into(), "B".into()), "0".into());
    unsettled_by(&book, OrderInMotion);
    book.evidence.asked_orders.insert(("t".into(), "B".into()), "1".into());
    let intent = book.intent();
    assert!(!has(&intent, OrderInMotion));
    assert_eq!(
        steps(&intent),
        [
            "payments P-B CAPTURED>REFUNDING 1000",
            "payments P-B REFUNDING>REFUNDED 1000",
            "inventory H-B HELD>RELEASED",
            "orders B CANCELLING>CANCELLED",
        ]
    );
}

#[test]
fn an_order_in_motion_without_money_is_in_no_doubt() {
    for status in ["FAILED", "VOIDED", "REFUNDED", "CHARGED_BACK"] {
        let mut book = in_motion();
        book.find_payment("P-B").status = status.parse().unwrap();
        assert_eq!(verdict(&book.intent()), "KEEP A 3", "{status}");
        assert!(!has(&book.intent(), OrderInMotion));
    }
    for status in ["AUTHORIZED", "INITIATED", "UNKNOWN"] {
        let mut book = in_motion();
        book.find_payment("P-B").status = status.parse().unwrap();
        unsettled_by(&book, OrderInMotion);
    }
}

#[test]
fn a_refund_that_the_provider_refused_for_good_is_reviewed() {
    let mut book = Book::new();
    book.bought("A", 0);
    book.bought("B", 1);
    book.evidence.refused_refunds.insert(("t".into(), "P-B".into()));
    assert_eq!(review(&book.intent()), (1, vec![RefundRefused]));
    book.keep("A");
    assert_eq!(review(&book.intent()), (1, vec![RefundRefused]), "no operator settles row 1");
    book.find_payment("P-B").status = "REFUNDED".parse().unwrap();
    assert!(!has(&book.intent(), RefundRefused), "somebody gave it back by other means");
}

fn refund_asked(status: &str, attempts: i64) -> Book {
    let mut book = Book::new();
    book.bought("A", 0);
    book.message("M-1", "A", "payment.refund", status).attempts = attempts;
    book
}

#[test]
fn a_refund_message_that_may_have_worked_is_in_doubt() {
    for (status, attempts, doubt) in [
        ("IN_FLIGHT", 0, true),
        ("CONSUMED", 0, true),
        ("QUEUED", 0, false),
        ("QUEUED", 1, true),
        ("DEAD", 0, false),
        ("DEAD", 3, true),
        ("QUARANTINED", 3, false),
    ] {
        let book = refund_asked(status, attempts);
        assert_eq!(has(&book.intent(), RefundInDoubt), doubt, "{status} after {attempts}");
        assert_eq!(book.intent().outcome == Outcome::Unsettled, doubt);
    }
}

#[test]
fn a_refund_that_the_payment_shows_is_in_doubt_only_while_the_message_is_in_flight() {
    for (status, doubt) in [("IN_FLIGHT", true), ("CONSUMED", false), ("DEAD", false)] {
        let mut book = refund_asked(status, 2);
        book.find_payment("P-A").refunded_minor = 1;
        assert_eq!(has(&book.intent(), RefundInDoubt), doubt, "{status}");
    }
}

#[test]
fn a_refund_is_out_of_doubt_once_the_provider_was_asked_after_the_message() {
    for (status, asked, doubt) in
        [("CONSUMED", 1, true), ("CONSUMED", 2, false), ("QUEUED", 2, false), ("IN_FLIGHT", 2, true)]
    {
        let mut book = refund_asked(status, 1);
        book.evidence.asked_charges.insert(("t".into(), "P-A".into()), at(asked));
        assert_eq!(has(&book.intent(), RefundInDoubt), doubt, "{status} asked at {asked}");
    }
}

#[test]
fn a_refund_message_of_an_order_without_captured_money_is_no_doubt() {
    let mut book = refund_asked("CONSUMED", 1);
    book.find_payment("P-A").status = "REFUNDED".parse().unwrap();
    assert!(!has(&book.intent(), RefundInDoubt));
}

#[test]
fn row_1_comes_before_row_2() {
    let mut book = refund_asked("IN_FLIGHT", 1);
    book.payment("P-9", "A", 3, "DISPUTED");
    assert_eq!(review(&book.intent()), (1, vec![PaymentDisputed]));
    assert!(has(&book.intent(), RefundInDoubt), "a finding is listed whichever row fits");
}

#[test]
fn an_operator_never_settles_a_doubt() {
    let mut book = refund_asked("IN_FLIGHT", 1);
    book.keep("A");
    unsettled_by(&book, RefundInDoubt);
    assert_eq!(book.intent().override_keep, None);
}
