//! Section 4: the table, row by row, what comes after it, and an operator's override.
//! Rows 1 and 2 are shown with what leads to them: intents, orphans, facts, doubts, findings.

use onefold::core::plan::Finding::*;
use onefold::core::plan::{Outcome, PlanError};
use onefold::core::policy::{
    CancelPending as Cancels, PaidWithoutStock as WithoutStock, TerminalCaptured, Ticketed, Unpaid,
};

use crate::common::book::*;

#[test]
fn row_1_captured_on_a_terminal_order_that_policy_does_not_settle() {
    let mut book = Book::new();
    book.order("A", 0, "CANCELLED");
    book.payment("P-A", "A", 1, "CAPTURED");
    assert_eq!(review(&book.intent()), (1, vec![CancelledButCaptured]), "it may be meant so");
    book.policy.terminal_captured = TerminalCaptured::Refund;
    assert_eq!(verdict(&book.intent()), "UNWIND - 8");
    book.policy.terminal_captured = TerminalCaptured::Review;
    book.bought("B", 10);
    assert_eq!(review(&book.intent()), (1, vec![CancelledButCaptured]));
    book.policy.terminal_captured = TerminalCaptured::Duplicates;
    assert_eq!(verdict(&book.intent()), "KEEP B 3", "a live order asks for the same");
    book.find_order("A").quantity = 2;
    assert_eq!(review(&book.intent()), (1, vec![CancelledButCaptured]), "none asks for the same");
}

#[test]
fn row_1_retained_beside_a_waiting_refund() {
    let mut book = Book::new();
    book.order("A", 0, "CANCELLED");
    book.payment("P-A", "A", 1, "CAPTURED").refunded_minor = 900;
    assert_eq!(verdict(&book.intent()), "CLEAN - 8");
    assert!(has(&book.intent(), Retained));
    book.message("M-1", "A", "payment.refund", "QUEUED");
    assert_eq!(review(&book.intent()), (1, vec![Retained]));
    book.policy.terminal_captured = TerminalCaptured::Refund;
    assert_eq!(verdict(&book.intent()), "UNWIND - 8");
}

#[test]
fn row_3_keeps_the_candidate_that_was_paid_first() {
    let mut book = Book::new();
    book.bought("A", 0);
    book.bought("B", 1);
    assert_eq!(verdict(&book.intent()), "KEEP A 3");
    book.find_payment("P-A").captured_at = Some(at(4));
    assert_eq!(verdict(&book.intent()), "KEEP B 3");
    book.find_payment("P-A").captured_at = Some(at(3));
    assert_eq!(verdict(&book.intent()), "KEEP A 3", "paid at once, but created earlier");
    book.find_order("B").created_at = at(0);
    assert_eq!(verdict(&book.intent()), "KEEP A 3", "created at once, but of lower id");
}

#[test]
fn row_3_leaves_out_what_is_not_live_paid_and_backed() {
    let changes: [fn(&mut Book); 3] = [
        |book| book.find_order("A").status = "CANCELLED".parse().unwrap(),
        |book| {
            book.find_order("A").status = "PENDING_PAYMENT".parse().unwrap();
            book.find_payment("P-A").status = "FAILED".parse().unwrap();
        },
        |book| book.find_hold("H-A").status = "RELEASED".parse().unwrap(),
    ];
    for (i, change) in changes.into_iter().enumerate() {
        let mut book = Book::new();
        book.bought("A", 0);
        book.bought("B", 1);
        change(&mut book);
        assert_eq!(verdict(&book.intent()), "KEEP B 3", "change {i}");
    }
}

fn paid_without_stock() -> Book {
    let mut book = Book::new();
    book.order("A", 0, "PAID");
    book.payment("P-A", "A", 1, "CAPTURED");
    book.reserved("B", 1);
    book
}

#[test]
fn row_4_paid_without_stock_is_reviewed_or_unwound() {
    let mut book = paid_without_stock();
    assert_eq!(review(&book.intent()), (4, vec![PaidWithoutStock]));
    book.policy.paid_without_stock = WithoutStock::Refund;
    let intent = book.intent();
    assert_eq!(verdict(&intent), "UNWIND - 4");
    assert_eq!(
        steps(&intent),
        [
            "orders A PAID>REFUNDING",
            "payments P-A CAPTURED>REFUNDING 1000",
            "payments P-A REFUNDING>REFUNDED 1000",
            "orders A REFUNDING>REFUNDED",
            "orders B PENDING_PAYMENT>CANCELLING",
            "inventory H-B HELD>RELEASED",
            "orders B CANCELLING>CANCELLED",
        ]
    );
}

#[test]
fn row_5_keeps_the_earliest_backed_order() {
    let mut book = Book::new();
    book.order("A", 0, "PENDING_PAYMENT");
    book.reserved("B", 1);
    book.reserved("C", 2);
    assert_eq!(verdict(&book.intent()), "KEEP B 5");
    book.policy.unpaid = Unpaid::Review;
    assert_eq!(review(&book.intent()), (5, vec![DuplicateOrders]));
    book.policy.unpaid = Unpaid::CancelAll;
    assert_eq!(verdict(&book.intent()), "UNWIND - 5");
}

#[test]
fn row_5_prefers_an_order_with_an_authorization_that_would_pay_it() {
    let mut book = Book::new();
    book.reserved("A", 0);
    book.reserved("B", 1);
    book.reserved("C", 2);
    book.payment("P-C", "C", 10, "AUTHORIZED");
    assert_eq!(verdict(&book.intent()), "KEEP C 5");
    book.payment("P-B", "B", 11, "AUTHORIZED");
    assert_eq!(verdict(&book.intent()), "KEEP C 5", "authorized first");
    book.find_payment("P-C").amount_minor = 999;
    assert_eq!(verdict(&book.intent()), "KEEP B 5", "999 would not pay");
    book.find_hold("H-B").status = "RELEASED".parse().unwrap();
    assert_eq!(verdict(&book.intent()), "KEEP A 5", "only backed ones");
}

#[test]
fn row_6_nothing_paid_and_nothing_backed() {
    let mut book = Book::new();
    book.order("A", 0, "PENDING_PAYMENT");
    book.order("B", 1, "PENDING_PAYMENT");
    for policy in [Unpaid::KeepEarliest, Unpaid::Review] {
        book.policy.unpaid = policy;
        assert_eq!(review(&book.intent()), (6, vec![NoStock]));
    }
    book.policy.unpaid = Unpaid::CancelAll;
    assert_eq!(verdict(&book.intent()), "UNWIND - 6");
}

#[test]
fn row_7_keeps_a_single_unpaid_order_as_it_is() {
    let mut book = Book::new();
    book.reserved("A", 0);
    book.policy.unpaid = Unpaid::CancelAll;
    assert_eq!(verdict(&book.intent()), "CLEAN A 7");
    book.hold("H-2", "A", "HELD").created_at = at(5);
    assert_eq!(verdict(&book.intent()), "KEEP A 7");
    assert_eq!(steps(&book.intent()), ["inventory H-2 HELD>RELEASED"]);
}

#[test]
fn row_8_no_live_order() {
    let mut book = Book::new();
    book.order("A", 0, "CANCELLED");
    assert_eq!(verdict(&book.intent()), "CLEAN - 8");
    book.hold("H-A", "A", "HELD");
    assert_eq!(verdict(&book.intent()), "UNWIND - 8");
}

fn ticketed_loser() -> Book {
    let mut book = Book::new();
    book.bought("A", 0);
    book.bought("B", 1);
    book.find_order("B").status = "TICKETED".parse().unwrap();
    book
}

#[test]
fn a_ticket_elsewhere_is_reviewed_or_preferred() {
    let mut book = ticketed_loser();
    assert_eq!(review(&book.intent()), (3, vec![TicketElsewhere]));
    book.policy.ticketed = Ticketed::Prefer;
    assert_eq!(verdict(&book.intent()), "KEEP B 3");
    assert!(has(&book.intent(), TicketElsewhere));
    book.find_hold("H-B").status = "RELEASED".parse().unwrap();
    assert_eq!(review(&book.intent()), (3, vec![TicketElsewhere]), "it is not backed");
}

#[test]
fn two_tickets_are_reviewed_whatever_is_preferred() {
    let mut book = ticketed_loser();
    book.find_order("A").status = "TICKETED".parse().unwrap();
    book.policy.ticketed = Ticketed::Prefer;
    assert_eq!(review(&book.intent()), (3, vec![TicketElsewhere]));
}

#[test]
fn the_kept_orders_own_ticket_is_no_finding() {
    let mut book = ticketed_loser();
    book.find_order("A").status = "TICKETED".parse().unwrap();
    book.find_order("B").status = "PAID".parse().unwrap();
    assert_eq!(verdict(&book.intent()), "KEEP A 3");
    assert!(!has(&book.intent(), TicketElsewhere));
}

#[test]
fn after_row_4_any_ticket_is_elsewhere() {
    let mut book = paid_without_stock();
    book.find_order("A").status = "TICKETED".parse().unwrap();
    let intent = book.intent();
    assert_eq!(review(&intent), (4, vec![PaidWithoutStock]));
    assert!(has(&intent, TicketElsewhere));
    book.policy.paid_without_stock = WithoutStock::Refund;
    book.policy.ticketed = Ticketed::Prefer;
    assert_eq!(review(&book.intent()), (4, vec![TicketElsewhere]));
    book.keep("A");
    assert_eq!(verdict(&book.intent()), "KEEP A 4");
    assert!(has(&book.intent(), TicketElsewhere));
}

#[test]
fn a_partly_refunded_order_is_reviewed_while_another_could_be_kept() {
    let mut book = Book::new();
    book.bought("A", 0);
    book.bought("B", 1);
    book.find_payment("P-A").refunded_minor = 1;
    assert_eq!(review(&book.intent()), (3, vec![PartlyRefunded]));
    book.find_hold("H-B").status = "RELEASED".parse().unwrap();
    assert_eq!(verdict(&book.intent()), "KEEP A 3", "no other candidate");
    assert!(!has(&book.intent(), PartlyRefunded));
}

#[test]
fn an_extra_charge_does_not_make_up_for_a_partial_refund() {
    let mut book = Book::new();
    book.bought("A", 0);
    book.bought("B", 1);
    book.find_payment("P-A").refunded_minor = 1;
    book.payment("P-2", "A", 60, "CAPTURED");
    assert_eq!(review(&book.intent()), (3, vec![PartlyRefunded]));
}

#[test]
fn a_waiting_cancel_of_the_kept_order_is_reviewed_or_quarantined() {
    for topic in ["order.cancel", "payment.refund"] {
        let mut book = Book::new();
        book.bought("A", 0);
        book.bought("B", 1);
        book.message("M-1", "A", topic, "QUEUED");
        assert_eq!(review(&book.intent()), (3, vec![CancelPending]), "{topic}");
        book.policy.cancel_pending = Cancels::Quarantine;
        assert_eq!(verdict(&book.intent()), "KEEP A 3");
        assert!(has(&book.intent(), CancelPending));
        assert_eq!(steps(&book.intent()).last().unwrap(), "messages M-1 QUEUED>QUARANTINED");
    }
}

#[test]
fn a_single_orders_waiting_cancel_is_left_to_run_unless_its_charge_is_to_be_refunded() {
    let mut book = Book::new();
    book.bought("A", 0);
    book.message("M-1", "A", "order.cancel", "QUEUED");
    assert_eq!(verdict(&book.intent()), "CLEAN A 3");
    assert!(!has(&book.intent(), CancelPending));
    book.payment("P-2", "A", 60, "CAPTURED");
    assert_eq!(review(&book.intent()), (3, vec![CancelPending]));
}

#[test]
fn what_needs_an_order_to_keep_is_not_found_where_a_ticket_leaves_none() {
    let mut book = ticketed_loser();
    book.find_payment("P-A").refunded_minor = 1;
    book.message("M-1", "A", "order.cancel", "QUEUED");
    let intent = book.intent();
    assert_eq!(review(&intent), (3, vec![TicketElsewhere]));
    assert!(!has(&intent, PartlyRefunded) && !has(&intent, CancelPending));
}

#[test]
fn an_operator_chooses_the_order_to_keep_and_settles_what_speaks_against_it() {
    let mut book = ticketed_loser();
    book.find_payment("P-A").refunded_minor = 1;
    book.message("M-1", "A", "order.cancel", "QUEUED");
    book.keep("A");
    let intent = book.intent();
    assert_eq!(verdict(&intent), "KEEP A 3");
    assert_eq!(intent.override_keep.as_ref().unwrap().because, "a test says so");
    for finding in [TicketElsewhere, PartlyRefunded, CancelPending] {
        assert!(has(&intent, finding), "{finding}");
    }
    assert_eq!(steps(&intent).last().unwrap(), "messages M-1 QUEUED>QUARANTINED");
}

#[test]
fn an_operators_choice_replaces_rows_4_to_7() {
    let mut book = paid_without_stock();
    book.keep("B");
    assert_eq!(verdict(&book.intent()), "KEEP B 4");

    let mut book = Book::new();
    book.reserved("A", 0);
    book.reserved("B", 1);
    book.policy.unpaid = Unpaid::Review;
    book.keep("B");
    assert_eq!(verdict(&book.intent()), "KEEP B 5");
    book.ledgers.inventory.clear();
    assert_eq!(verdict(&book.intent()), "KEEP B 6");
    book.ledgers.orders.remove(0);
    assert_eq!(verdict(&book.intent()), "CLEAN B 7");
    book.message("M-1", "B", "order.cancel", "QUEUED");
    assert_eq!(steps(&book.intent()), ["messages M-1 QUEUED>QUARANTINED"]);
    assert!(has(&book.intent(), CancelPending));
}

#[test]
fn an_operators_choice_never_replaces_row_1() {
    let mut book = Book::new();
    book.order("A", 0, "PAID");
    book.keep("A");
    let intent = book.intent();
    assert_eq!(intent.outcome, Outcome::Review);
    assert_eq!(intent.override_keep, None);
}

#[test]
fn two_choices_in_one_intent_are_an_error() {
    let mut book = Book::new();
    book.bought("A", 0);
    book.bought("B", 1);
    book.keep("A");
    book.keep("B");
    assert!(matches!(book.make(), Err(PlanError::TwoOverrides { .. })));
    book.scope.users.insert("somebody else".into());
    assert!(book.make().unwrap().intents.is_empty(), "a choice out of scope is not looked at");
}

#[test]
fn a_choice_whose_order_is_gone_concerns_its_own_intent_only() {
    let mut book = Book::new();
    for (order, second) in [("A", 0), ("B", 1), ("C", 2)] {
        book.bought(order, second);
    }
    book.bought("D", 900);
    book.bought("E", 901);
    book.keep("B");
    assert_eq!(verdict(&book.intent_of("A")), "KEEP B 3");

    book.find_order("B").status = "REFUNDED".parse().unwrap();
    book.find_payment("P-B").status = "REFUNDED".parse().unwrap();
    book.find_payment("P-B").refunded_minor = 1000;
    book.find_hold("H-B").status = "RELEASED".parse().unwrap();
    let intent = book.intent_of("A");
    assert_eq!(review(&intent), (3, vec![DuplicateOrders]), "its operator chooses again");
    assert!(intent.steps.is_empty());
    let of_b = intent.evidence.iter().find(|e| e.order_id.as_str() == "B").unwrap();
    assert!(of_b.because.ends_with("an operator chose to keep it, but it is no longer live"), "{of_b:?}");
    assert_eq!(verdict(&book.intent_of("D")), "KEEP D 3", "others are decided as ever");

    book.keep("C");
    assert_eq!(verdict(&book.intent_of("A")), "KEEP C 3", "a later choice stands");
    book.evidence.keeps.remove(&("t".into(), "C".into()));

    book.find_order("C").status = "REFUNDED".parse().unwrap();
    book.find_payment("P-C").status = "REFUNDED".parse().unwrap();
    book.find_payment("P-C").refunded_minor = 1000;
    book.find_hold("H-C").status = "RELEASED".parse().unwrap();
    assert_eq!(verdict(&book.intent_of("A")), "CLEAN A 3", "one live order leaves nothing to choose");
    book.keep("an order of another time");
    assert!(book.make().is_ok());
}
