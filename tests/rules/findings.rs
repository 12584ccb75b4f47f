//! Section 6: the findings that rules of other sections do not show, and row 1 where one ends there.

use onefold::core::plan::Finding::{self, *};

use crate::common::book::*;

fn bought_with(change: Change) -> Book {
    let mut book = Book::new();
    book.bought("A", 0);
    change(&mut book);
    book
}

/// Each ledger is in review for this finding, and only for it.
fn reviewed_for(finding: Finding, changes: &[Change]) {
    for (i, change) in changes.iter().enumerate() {
        assert_eq!(review(&bought_with(*change).intent()), (1, vec![finding]), "change {i}");
    }
}

#[test]
fn findings_are_sorted_by_name_as_bytes() {
    assert!(Finding::NAMES.is_sorted(), "{:?}", Finding::NAMES);
}

#[test]
fn a_bought_order_has_no_finding() {
    assert_eq!(bought_with(|_| {}).intent().findings, []);
}

#[test]
fn order_paid_no_payment() {
    reviewed_for(
        OrderPaidNoPayment,
        &[
            |book| book.ledgers.payments.clear(),
            |book| {
                book.ledgers.payments.clear();
                book.find_order("A").status = "TICKETED".parse().unwrap();
            },
        ],
    );
}

#[test]
fn over_refunded() {
    reviewed_for(
        OverRefunded,
        &[|book| {
            book.payment("P-2", "A", 3, "CAPTURED").refunded_minor = 1001;
        }],
    );
}

#[test]
fn payment_disputed() {
    reviewed_for(
        PaymentDisputed,
        &[|book| {
            book.payment("P-2", "A", 3, "DISPUTED");
        }],
    );
}

#[test]
fn currency_mismatch_where_the_payment_holds_or_may_hold_money() {
    reviewed_for(
        CurrencyMismatch,
        &[
            |book| book.payment("P-2", "A", 3, "CAPTURED").currency = "EUR".parse().unwrap(),
            |book| book.payment("P-2", "A", 3, "INITIATED").currency = "EUR".parse().unwrap(),
        ],
    );
    let failed = bought_with(|book| book.payment("P-2", "A", 3, "FAILED").currency = "EUR".parse().unwrap());
    assert_eq!(failed.intent().findings, []);
}

#[test]
fn owner_mismatch_of_a_payment_or_hold() {
    reviewed_for(
        OwnerMismatch,
        &[
            |book| book.find_payment("P-A").user_id = "u2".into(),
            |book| book.find_payment("P-A").show_id = "show2".into(),
            |book| book.find_hold("H-A").user_id = "u2".into(),
            |book| book.find_hold("H-A").show_id = "show2".into(),
        ],
    );
}

#[test]
fn double_release() {
    let book = bought_with(|book| {
        book.message("M-1", "A", "inventory.release", "CONSUMED");
        book.message("M-2", "A", "inventory.release", "CONSUMED");
    });
    assert_eq!(book.intent().findings, [DoubleRelease]);
    let once = bought_with(|book| {
        book.message("M-1", "A", "inventory.release", "CONSUMED");
        book.message("M-2", "A", "inventory.release", "QUEUED");
    });
    assert_eq!(once.intent().findings, []);
}

#[test]
fn clock_skew_beyond_five_seconds() {
    let skewed = |seconds| {
        let mut book = Book::new();
        book.bought("A", 0);
        book.find_payment("P-A").captured_at = Some(at(seconds));
        has(&book.intent(), ClockSkew)
    };
    assert!(skewed(-6) && !skewed(-5));
}

#[test]
fn duplicate_orders_are_live_ones() {
    let mut book = bought_with(|book| book.reserved("B", 1));
    assert!(has(&book.intent(), DuplicateOrders));
    book.find_order("B").status = "CANCELLED".parse().unwrap();
    assert!(!has(&book.intent(), DuplicateOrders));
}

#[test]
fn no_stock_where_live_orders_are_neither_paid_nor_backed() {
    let mut book = Book::new();
    book.order("A", 0, "PENDING_PAYMENT");
    assert_eq!(book.intent().findings, [NoStock]);
    assert_eq!(verdict(&book.intent()), "CLEAN A 7");
    book.find_order("A").status = "CANCELLED".parse().unwrap();
    assert_eq!(book.intent().findings, []);
}

#[test]
fn findings_of_a_live_order_are_listed_whether_it_is_kept_or_not() {
    let mut book = bought_with(|book| {
        book.reserved("B", 1);
        book.payment("P-B", "B", 60, "CAPTURED");
        book.payment("P-C", "B", 61, "CAPTURED");
        book.hold("H-C", "B", "HELD");
        for id in ["M-1", "M-2"] {
            book.message(id, "B", "ticket.issue", "QUEUED").message_key = Some("B".into());
        }
    });
    let expected = [CapturedNotConfirmed, DuplicateMessage, DuplicateOrders, ExcessHold, MultipleCaptures];
    assert_eq!(book.intent().findings, expected);
    assert_eq!(verdict(&book.intent()), "KEEP A 3");
    book.find_order("A").status = "CANCELLED".parse().unwrap();
    assert_eq!(book.intent().keep, Some("B".into()));
}
