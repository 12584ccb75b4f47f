//! Section 2, last part, and "orphan that counts" of section 3.

use onefold::core::plan::Finding::*;
use onefold::core::plan::Outcome;
use onefold::core::policy::DifferentRequest;

use crate::common::book::*;

/// A bought order, and a captured payment at `seconds` that names no order.
fn with_orphan(seconds: i64) -> Book {
    let mut book = Book::new();
    book.bought("A", 0);
    book.payment("P-9", "A", seconds, "CAPTURED").order_id = None;
    book
}

#[test]
fn an_orphan_attaches_to_the_one_intent_whose_widened_span_covers_it() {
    for (seconds, attaches) in [(-121, false), (-120, true), (600, true), (601, false)] {
        let book = with_orphan(seconds);
        let intent = book.intent_of_orphan("P-9");
        assert_eq!(!intent.orders.is_empty(), attaches, "at {seconds}");
        assert_eq!(review(&intent), (1, vec![PaymentWithoutOrder]));
        assert_eq!(verdict(&book.intent_of("A")) == "CLEAN A 3", !attaches);
    }
}

#[test]
fn a_row_that_names_an_unknown_order_is_an_orphan_too() {
    let mut book = Book::new();
    book.bought("A", 0);
    book.payment("P-9", "lost", 0, "CAPTURED");
    assert_eq!(review(&book.intent()), (1, vec![PaymentWithoutOrder]));
    book.find_payment("P-9").tenant_id = "t2".into();
    book.find_payment("P-9").order_id = Some("A".into());
    assert_eq!(verdict(&book.intent_of("A")), "CLEAN A 3", "the order of another tenant is another order");
}

#[test]
fn an_orphan_that_names_a_session_attaches_only_there() {
    let mut book = with_orphan(0);
    book.find_payment("P-9").session_id = Some("s2".into());
    assert!(book.intent_of_orphan("P-9").orders.is_empty());
    book.find_payment("P-9").session_id = None;
    assert_eq!(book.intent_of_orphan("P-9").orders, ["A".into()]);
}

#[test]
fn the_session_that_an_orphan_names_is_compared_with_the_filled_ones() {
    let mut book = with_orphan(0);
    let filled = book.order("B", 1, "PENDING_PAYMENT");
    filled.session_id = None;
    filled.quantity = 2;
    book.policy.different_request = DifferentRequest::Split;
    assert!(book.intent_of_orphan("P-9").orders.is_empty(), "A and B both cover it");
    assert_eq!(review(&book.intent_of("B")), (1, vec![PaymentWithoutOrder]));
}

#[test]
fn an_orphan_that_several_intents_cover_blocks_each_and_belongs_to_none() {
    let mut book = Book::new();
    book.bought("A", 0);
    book.bought("B", 200);
    book.payment("P-9", "A", 210, "CAPTURED").order_id = None;
    for order in ["A", "B"] {
        let intent = book.intent_of(order);
        assert_eq!(review(&intent), (1, vec![PaymentWithoutOrder]));
        assert!(intent.orphans.is_empty());
    }
    assert_eq!(review(&book.intent_of_orphan("P-9")), (1, vec![PaymentWithoutOrder]));
    let money = &book.plan().sums.money[0];
    assert_eq!((money.captured, money.in_review), (3000, 3000), "it is counted once");
}

#[test]
fn an_orphan_message_that_several_intents_cover_is_quarantined_by_itself_only() {
    let mut book = Book::new();
    book.bought("A", 0);
    book.bought("B", 200);
    book.message("M-9", "lost", "ticket.issue", "QUEUED").created_at = at(210);
    assert!(has(&book.intent_of("A"), MessageWithoutOrder));
    assert_eq!(verdict(&book.intent_of("A")), "CLEAN A 3");
    assert_eq!(steps(&book.intent_of_orphan("M-9")), ["messages M-9 QUEUED>QUARANTINED"]);
}

#[test]
fn an_orphan_payment_counts_while_it_holds_or_may_hold_money() {
    let counting = ["CAPTURED", "AUTHORIZED", "INITIATED", "UNKNOWN", "VOIDING", "REFUNDING", "DISPUTED"];
    for status in onefold::core::status::PaymentStatus::NAMES {
        let mut book = with_orphan(0);
        book.find_payment("P-9").status = status.parse().unwrap();
        let counts = has(&book.intent(), PaymentWithoutOrder);
        assert_eq!(counts, counting.contains(status), "{status}");
        assert_eq!(book.intent().outcome == Outcome::Review, counts, "{status}");
    }
    let mut book = with_orphan(0);
    book.find_payment("P-9").refunded_minor = 1000;
    assert_eq!(verdict(&book.intent()), "CLEAN A 3", "nothing is left of it");
}

#[test]
fn an_orphan_hold_counts_while_it_is_held_or_confirmed() {
    for status in onefold::core::status::HoldStatus::NAMES {
        let mut book = Book::new();
        book.bought("A", 0);
        book.hold("H-9", "lost", status);
        let counts = ["HELD", "CONFIRMED"].contains(status);
        assert_eq!(has(&book.intent(), HoldWithoutOrder), counts, "{status}");
        assert_eq!(book.intent().outcome == Outcome::Review, counts, "{status}");
    }
}

#[test]
fn an_orphan_that_carries_no_charge_does_not_count() {
    let mut book = with_orphan(0);
    for payment in &mut book.ledgers.payments {
        payment.provider_txn_id = Some("x".into());
    }
    let intent = book.intent();
    assert_eq!(verdict(&intent), "CLEAN A 3");
    assert_eq!(intent.findings, [DuplicateCallback]);
    assert_eq!(intent.orphans.len(), 1);
}

#[test]
fn an_orphans_unfinished_message_that_names_an_order_is_quarantined() {
    let mut book = Book::new();
    book.bought("A", 0);
    book.message("M-9", "lost", "ticket.issue", "DEAD");
    let intent = book.intent();
    assert_eq!(verdict(&intent), "KEEP A 3", "the step counts for the outcome");
    assert_eq!(steps(&intent), ["messages M-9 DEAD>QUARANTINED"]);
    assert!(has(&intent, MessageWithoutOrder));

    book.message("M-8", "lost", "ticket.issue", "DEAD").order_id = None;
    assert_eq!(steps(&book.intent()).len(), 1, "only the one that names an order");
    book.ledgers.messages.pop();

    book.ledgers.messages[0].order_id = None;
    assert_eq!(verdict(&book.intent()), "CLEAN A 3", "a message about no order is none of ours");
    book.ledgers.messages[0].order_id = Some("lost".into());
    book.ledgers.messages[0].status = "CONSUMED".parse().unwrap();
    assert_eq!(verdict(&book.intent()), "CLEAN A 3", "it is finished");
}

#[test]
fn an_orphan_message_is_left_alone_where_the_intent_is_in_review() {
    let mut book = Book::new();
    book.order("A", 0, "PAID");
    book.message("M-9", "lost", "ticket.issue", "QUEUED");
    let intent = book.intent();
    assert_eq!(review(&intent), (1, vec![OrderPaidNoPayment]));
    assert!(has(&intent, MessageWithoutOrder));
}

#[test]
fn a_message_without_user_or_show_attaches_to_none() {
    for user in [None, Some("u".into())] {
        let mut book = Book::new();
        book.bought("A", 0);
        let message = book.message("M-9", "lost", "ticket.issue", "QUEUED");
        message.user_id = user;
        message.show_id = None;
        let intent = book.intent_of_orphan("M-9");
        assert!(intent.orders.is_empty());
        assert_eq!(verdict(&intent), "UNWIND - 8");
    }
}

#[test]
fn an_intent_without_orders_is_in_scope_when_its_row_is() {
    let mut book = Book::new();
    book.payment("P-9", "lost", 0, "CAPTURED");
    assert_eq!(book.plan().intents.len(), 1);
    book.scope.users.insert("somebody else".into());
    assert!(book.plan().intents.is_empty());
}
