//! The invariants after apply.

use onefold::core::plan::{Outcome, Plan};
use onefold::core::verify::{Verified, Violation, verify};

use crate::common::book::*;

/// A kept order, a loser with money, stock and a message, and a reviewed intent; planned.
fn planned() -> (Book, Plan) {
    let mut book = Book::new();
    book.bought("A", 0);
    book.bought("B", 1);
    book.message("M-B", "B", "ticket.issue", "QUEUED");
    book.bought("C", 2000);
    book.find_payment("P-C").user_id = "somebody else".into();
    let plan = book.plan();
    (book, plan)
}

fn applied() -> (Book, Plan) {
    let (mut book, plan) = planned();
    for intent in &plan.intents {
        apply(&mut book.ledgers, &intent.tenant_id, &intent.steps, &mut book.evidence);
    }
    (book, plan)
}

fn violations(verified: &Verified) -> Vec<String> {
    verified.intents.iter().flat_map(|i| &i.violations).map(ToString::to_string).collect()
}

#[test]
fn a_plan_that_was_applied_holds() {
    let (book, plan) = applied();
    let verified = verify(&plan, &book.ledgers);
    assert!(verified.holds(), "{verified:#?}");
    assert_eq!(verified.intents.len(), plan.intents.len());
    assert_eq!((verified.refunds[0].planned, verified.refunds[0].done), (1000, 1000));
    let (before, after) = (&verified.before.money[0], &verified.after.money[0]);
    assert_eq!((before.captured, before.to_refund, before.kept), (3000, 1000, 1000));
    assert_eq!((after.captured, after.to_refund, after.kept), (2000, 0, 1000));
    assert_eq!((before.in_review, after.in_review), (1000, 1000));
    assert_eq!((verified.before.stock[0].live, verified.after.stock[0].live), (3, 2));
}

#[test]
fn a_plan_that_was_not_applied_does_not_hold_but_its_sums_close() {
    let (book, plan) = planned();
    let verified = verify(&plan, &book.ledgers);
    assert_eq!(
        violations(&verified),
        [
            "orders A, B are all live",
            "payment P-B gave back 0.00 CNY, the plan says 10.00 CNY",
            "order B is PAID, the plan takes it to REFUNDED",
            "hold H-B is CONFIRMED, the plan takes it to RELEASED",
        ]
    );
    assert!(verified.open_sums.is_empty());
    assert_eq!(verified.after, verified.before);
}

#[test]
fn an_undecided_intent_is_listed_and_never_violated() {
    let (mut book, plan) = applied();
    book.order("D", 2001, "CANCELLED");
    let verified = verify(&plan, &book.ledgers);
    let review = verified.intents.iter().find(|i| i.outcome == Outcome::Review).unwrap();
    assert!(review.violations.is_empty());
}

#[test]
fn what_is_left_on_a_closed_order_is_a_violation() {
    let changes: [(Change, &str); 4] = [
        (
            |book| book.find_hold("H-B").status = "CONFIRMED".parse().unwrap(),
            "hold H-B holds stock although order B is closed",
        ),
        (
            |book| book.ledgers.messages[0].status = "QUEUED".parse().unwrap(),
            "message M-B is unfinished although order B is closed",
        ),
        (|book| book.find_order("B").status = "REFUNDING".parse().unwrap(), "order B is still REFUNDING"),
        (|book| book.ledgers.orders.retain(|o| o.order_id.as_str() != "A"), "order A is in no ledger"),
    ];
    for (change, told) in changes {
        let (mut book, plan) = applied();
        change(&mut book);
        let verified = verify(&plan, &book.ledgers);
        assert_eq!(violations(&verified), [told]);
        assert!(!verified.holds());
    }
}

#[test]
fn a_late_capture_is_told_of_its_order_and_of_the_sum() {
    let (mut book, plan) = applied();
    book.payment("P-9", "B", 99, "CAPTURED");
    assert_eq!(
        violations(&verify(&plan, &book.ledgers)),
        [
            "payment P-9 holds 10.00 CNY although order B is closed",
            "20.00 CNY is captured where 10.00 CNY should be left, and no step of the plan moved the difference",
        ]
    );
}

#[test]
fn errors_of_two_intents_do_not_make_up_for_each_other() {
    let (mut book, plan) = applied();
    book.find_payment("P-A").refunded_minor = 1;
    let told = violations(&verify(&plan, &book.ledgers));
    assert_eq!(
        told,
        ["9.99 CNY is captured where 10.00 CNY should be left, and no step of the plan moved the difference"]
    );
}

#[test]
fn a_step_that_was_undone_is_a_violation_and_one_that_was_passed_is_not() {
    let (mut book, plan) = applied();
    book.find_order("A").status = "TICKETED".parse().unwrap();
    assert_eq!(violations(&verify(&plan, &book.ledgers)), [""; 0]);
    let intent = plan.intents.iter().find(|i| !i.steps.is_empty()).unwrap();
    assert!(intent.steps.iter().any(|s| s.id.as_str() == "M-B"));
    book.ledgers.messages[0].status = "CONSUMED".parse().unwrap();
    let told = violations(&verify(&plan, &book.ledgers));
    assert_eq!(told, [""; 0], "it was requeued on purpose and went");
}

#[test]
fn a_refund_of_another_amount_is_a_violation_and_opens_no_sum() {
    let (mut book, plan) = applied();
    book.find_payment("P-B").refunded_minor = 2000;
    let verified = verify(&plan, &book.ledgers);
    assert_eq!(violations(&verified), ["payment P-B gave back 20.00 CNY, the plan says 10.00 CNY"]);
    assert_eq!(verified.refunds[0].done, 2000);
}

#[test]
fn money_and_stock_that_no_step_moved_open_a_sum() {
    let (mut book, plan) = applied();
    book.find_payment("P-A").refunded_minor = 1;
    let verified = verify(&plan, &book.ledgers);
    let open = &verified.open_sums[0];
    assert_eq!((open.of.as_str(), open.expected, open.found), ("CNY", 1000, 999));

    let (mut book, plan) = applied();
    book.find_hold("H-A").status = "RELEASED".parse().unwrap();
    let open = &verify(&plan, &book.ledgers).open_sums[0];
    assert_eq!((open.of.as_str(), open.expected, open.found), ("show", 1, 0));
}

#[test]
fn retained_money_may_stay_on_a_closed_order() {
    let mut book = Book::new();
    book.order("T", 0, "CANCELLED");
    book.payment("P-T", "T", 1, "CAPTURED").refunded_minor = 900;
    book.hold("H-T", "T", "HELD");
    let plan = book.plan();
    let intent = &plan.intents[0];
    apply(&mut book.ledgers, &intent.tenant_id, &intent.steps, &mut book.evidence);
    assert!(verify(&plan, &book.ledgers).holds());

    let mut unretained = plan.clone();
    unretained.intents[0].findings.clear();
    let verified = verify(&unretained, &book.ledgers);
    assert!(matches!(
        verified.intents[0].violations[..],
        [Violation::CapturedOnTerminal { left_minor: 100, .. }]
    ));
}
