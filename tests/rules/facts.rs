//! Section 3: real charges, paid, backed.

use onefold::core::plan::Finding::*;
use onefold::core::plan::Outcome;
use onefold::core::policy::PaidWithoutStock;
use onefold::core::time::Span;

use crate::common::book::*;

/// One bought order whose charge has a second row, both rows of one provider transaction.
fn two_rows_of_one_charge() -> Book {
    let mut book = Book::new();
    book.bought("A", 0);
    book.payment("P-2", "A", 3, "CAPTURED");
    for payment in &mut book.ledgers.payments {
        payment.provider_txn_id = Some("x".into());
    }
    book
}

#[test]
fn rows_of_one_provider_transaction_are_one_charge() {
    let book = two_rows_of_one_charge();
    let intent = book.intent();
    assert_eq!(verdict(&intent), "CLEAN A 3");
    assert_eq!(intent.findings, [DuplicateCallback]);
    assert_eq!(book.plan().sums.money[0].captured, 1000);
}

#[test]
fn rows_of_other_providers_transactions_and_tenants_are_charges_of_their_own() {
    let changes: [Change; 3] = [
        |book| book.find_payment("P-2").provider = "pay2".into(),
        |book| book.find_payment("P-2").provider_txn_id = Some("y".into()),
        |book| book.ledgers.payments.iter_mut().for_each(|p| p.provider_txn_id = None),
    ];
    for change in changes {
        let mut book = two_rows_of_one_charge();
        change(&mut book);
        let intent = book.intent();
        assert_eq!(verdict(&intent), "KEEP A 3");
        assert_eq!(intent.findings, [MultipleCaptures]);
    }
    let mut book = two_rows_of_one_charge();
    book.find_payment("P-2").tenant_id = "t2".into();
    assert_eq!(verdict(&book.intent_of("A")), "CLEAN A 3");
    assert_eq!(review(&book.intent_of_orphan("P-2")).1, [PaymentWithoutOrder]);
}

#[test]
fn a_row_that_captured_carries_the_charge_before_one_that_may_and_that_before_one_that_failed() {
    for other in ["AUTHORIZED", "INITIATED", "UNKNOWN", "VOIDING", "VOIDED", "FAILED"] {
        let mut book = two_rows_of_one_charge();
        book.find_payment("P-A").status = other.parse().unwrap();
        assert_eq!(verdict(&book.intent()), "CLEAN A 3", "{other} came first, but the other row captured");
    }
    let mut book = two_rows_of_one_charge();
    book.find_order("A").status = "PENDING_PAYMENT".parse().unwrap();
    book.find_payment("P-A").status = "FAILED".parse().unwrap();
    book.find_payment("P-2").status = "UNKNOWN".parse().unwrap();
    assert_eq!(book.intent().outcome, Outcome::Unsettled, "the UNKNOWN row carries it");
}

#[test]
fn of_rows_that_captured_the_first_one_carries_the_charge_but_attached_ones_before_orphans() {
    let mut book = two_rows_of_one_charge();
    book.order("B", 1, "PENDING_PAYMENT");
    book.hold("H-B", "B", "HELD");
    book.find_payment("P-2").captured_at = Some(at(1));
    book.payment("P-0", "lost", 0, "CAPTURED").provider_txn_id = Some("x".into());
    let orphan = book.intent();
    assert_eq!(verdict(&orphan), "KEEP A 3", "the orphan carries nothing");

    book.find_order("A").status = "CANCELLED".parse().unwrap();
    let refunds = steps(&book.intent());
    assert!(refunds.contains(&"payments P-2 CAPTURED>REFUNDING 1000".to_owned()), "{refunds:?}");
    assert_eq!(refunds.iter().filter(|s| s.starts_with("payments")).count(), 2, "{refunds:?}");
}

#[test]
fn rows_that_disagree_about_one_charge_are_reviewed() {
    let changes: [Change; 3] = [
        |book| book.find_payment("P-2").amount_minor = 1001,
        |book| book.find_payment("P-2").currency = "EUR".parse().unwrap(),
        |book| book.find_payment("P-2").refunded_minor = 1,
    ];
    for change in changes {
        let mut book = two_rows_of_one_charge();
        change(&mut book);
        assert_eq!(review(&book.intent()), (1, vec![ChargeDisagrees]));
    }
    for status in ["REFUNDING", "REFUNDED", "DISPUTED", "CHARGED_BACK"] {
        let mut book = two_rows_of_one_charge();
        book.find_payment("P-2").status = status.parse().unwrap();
        assert_eq!(review(&book.intent()), (1, vec![ChargeDisagrees]), "{status} says that nothing is left");
    }
}

#[test]
fn rows_agree_where_one_says_more_is_left_or_did_not_capture() {
    let mut book = two_rows_of_one_charge();
    book.find_payment("P-A").refunded_minor = 10;
    assert!(!has(&book.intent(), ChargeDisagrees), "the carrier says less than the other");
    let mut book = two_rows_of_one_charge();
    let other = book.find_payment("P-2");
    other.status = "AUTHORIZED".parse().unwrap();
    other.amount_minor = 5;
    assert!(!has(&book.intent(), ChargeDisagrees));
}

#[test]
fn a_charge_is_found_to_disagree_where_a_row_of_it_captured_and_shared_where_orders_claim_it() {
    let mut book = two_rows_of_one_charge();
    book.find_payment("P-2").amount_minor = 5;
    book.payment("P-8", "lost", 1000, "INITIATED").provider_txn_id = Some("x".into());
    book.payment("P-9", "lost", 2000, "CAPTURED").provider_txn_id = Some("x".into());
    assert_eq!(book.intent_of_orphan("P-8").findings, [DuplicateCallback]);
    assert_eq!(book.intent_of_orphan("P-9").findings, [ChargeDisagrees, DuplicateCallback]);

    let mut book = two_rows_of_one_charge();
    book.bought("B", 1000);
    book.find_payment("P-B").provider_txn_id = Some("x".into());
    book.payment("P-9", "lost", 2000, "CAPTURED").provider_txn_id = Some("x".into());
    assert!(has(&book.intent_of("B"), SharedCharge));
    assert_eq!(book.intent_of_orphan("P-9").findings, [DuplicateCallback]);
}

#[test]
fn a_charge_on_orders_of_two_intents_is_reviewed_in_both() {
    let mut book = Book::new();
    book.bought("A", 0);
    book.bought("B", 1000);
    for payment in &mut book.ledgers.payments {
        payment.provider_txn_id = Some("x".into());
    }
    assert_eq!(review(&book.intent_of("A")), (1, vec![SharedCharge]));
    let other = book.intent_of("B");
    assert_eq!(review(&other), (1, vec![OrderPaidNoPayment, SharedCharge]));
    assert!(has(&other, DuplicateCallback));
}

#[test]
fn an_order_is_paid_by_captures_that_reach_its_amount() {
    let mut book = Book::new();
    book.order("A", 0, "PENDING_PAYMENT");
    book.hold("H-A", "A", "HELD");
    book.payment("P-1", "A", 1, "CAPTURED").amount_minor = 999;
    assert_eq!(verdict(&book.intent()), "CLEAN A 7");
    assert!(has(&book.intent(), PartiallyPaid));
    book.payment("P-2", "A", 2, "CAPTURED").amount_minor = 1;
    assert_eq!(steps(&book.intent()), ["orders A PENDING_PAYMENT>PAID"]);
    assert_eq!(verdict(&book.intent()), "KEEP A 3");
}

#[test]
fn only_captured_charges_with_money_left_pay() {
    for status in ["INITIATED", "AUTHORIZED", "FAILED", "VOIDED", "REFUNDED", "CHARGED_BACK"] {
        let mut book = Book::new();
        book.bought("A", 0);
        book.find_payment("P-A").status = status.parse().unwrap();
        assert_eq!(review(&book.intent()).1, [OrderPaidNoPayment], "{status}");
    }
    let mut book = Book::new();
    book.bought("A", 0);
    book.find_payment("P-A").refunded_minor = 999;
    assert_eq!(verdict(&book.intent()), "CLEAN A 3", "a partial refund does not unpay");
    book.find_payment("P-A").refunded_minor = 1000;
    assert_eq!(review(&book.intent()).1, [OrderPaidNoPayment]);
}

#[test]
fn a_free_order_is_paid_by_its_status() {
    for (status, paid) in [("PENDING_PAYMENT", false), ("PAID", true), ("TICKETED", true)] {
        let mut book = Book::new();
        book.order("A", 0, status).amount_minor = 0;
        book.hold("H-A", "A", "HELD");
        assert_eq!(verdict(&book.intent()), format!("CLEAN A {}", if paid { 3 } else { 7 }), "{status}");
    }
}

#[test]
fn money_on_a_free_order_is_extra_once_it_is_paid_and_an_overpayment_before() {
    let mut book = Book::new();
    book.order("A", 0, "PAID").amount_minor = 0;
    book.hold("H-A", "A", "HELD");
    book.payment("P-1", "A", 1, "CAPTURED");
    assert!(has(&book.intent(), MultipleCaptures));
    assert_eq!(verdict(&book.intent()), "KEEP A 3");
    book.find_order("A").status = "PENDING_PAYMENT".parse().unwrap();
    assert_eq!(review(&book.intent()).1, [Overpaid]);
}

#[test]
fn charges_after_the_order_was_paid_are_extra_and_others_beyond_the_amount_are_overpaid() {
    let mut book = Book::new();
    book.bought("A", 0);
    book.payment("P-2", "A", 60, "CAPTURED").amount_minor = 5000;
    assert_eq!(verdict(&book.intent()), "KEEP A 3");
    assert!(has(&book.intent(), MultipleCaptures));
    book.find_payment("P-2").captured_at = Some(at(1));
    let intent = book.intent();
    assert_eq!(review(&intent), (1, vec![Overpaid]), "5000 came first");
    assert!(has(&intent, MultipleCaptures), "and 1000 after it");
}

#[test]
fn an_order_is_backed_by_live_holds_that_fit_and_reach_its_quantity() {
    let changes: [(Change, bool); 8] = [
        (|_| {}, true),
        (|book| book.find_order("A").quantity = 2, false),
        (|book| book.find_hold("H-A").status = "RELEASED".parse().unwrap(), false),
        (|book| book.find_hold("H-A").status = "EXPIRED".parse().unwrap(), false),
        (|book| book.find_hold("H-A").item = Some("VIP".into()), true),
        (
            |book| {
                book.find_hold("H-A").item = Some("VIP".into());
                book.find_order("A").item = Some("FLOOR".into());
            },
            false,
        ),
        (|book| book.find_order("A").item = Some("FLOOR".into()), true),
        (
            |book| {
                book.find_order("A").quantity = 2;
                book.hold("H-2", "A", "HELD");
            },
            true,
        ),
    ];
    for (i, (change, backed)) in changes.into_iter().enumerate() {
        let mut book = Book::new();
        book.bought("A", 0);
        change(&mut book);
        assert_eq!(has(&book.intent(), PaidWithoutStock), !backed, "change {i}");
    }
}

#[test]
fn a_held_hold_lapses_at_its_time_and_a_confirmed_one_never_does() {
    let mut book = Book::new();
    book.bought("A", 0);
    book.policy.paid_without_stock = PaidWithoutStock::Review;
    for (status, expires, backed) in [("HELD", 3601, true), ("HELD", 3600, false), ("CONFIRMED", 3600, true)]
    {
        let hold = book.find_hold("H-A");
        hold.status = status.parse().unwrap();
        hold.expires_at = Some(at(expires));
        assert_eq!(has(&book.intent(), PaidWithoutStock), !backed, "{status} until {expires}");
        assert_eq!(has(&book.intent(), HoldLapsed), !backed);
    }
}

#[test]
fn an_initiated_payment_that_expired_counts_as_failed() {
    let mut book = Book::new();
    book.bought("A", 0);
    book.reserved("B", 1);
    book.payment("P-B", "B", 1, "INITIATED");
    assert_eq!(book.intent().outcome, Outcome::Unsettled);
    book.policy.initiated_expires = Some(Span::from_secs(3599));
    assert_eq!(book.intent().outcome, Outcome::Unsettled, "just as old as it may be");
    book.policy.initiated_expires = Some(Span::from_secs(3598));
    assert_eq!(verdict(&book.intent()), "KEEP A 3");
    assert!(!has(&book.intent(), PaymentInDoubt));
}
