//! Section 5: the steps, in their order.

use onefold::core::evidence::Effect;
use onefold::core::plan::Finding::*;
use onefold::core::policy::TerminalCaptured;
use onefold::core::status::Ledger;
use onefold::core::steps::step_key;

use crate::common::book::*;

#[test]
fn a_loser_loses_messages_then_money_then_stock_and_closes_last() {
    let mut book = Book::new();
    book.bought("A", 0);
    book.bought("B", 1);
    book.payment("P-0", "B", 1, "AUTHORIZED");
    book.find_payment("P-B").refunded_minor = 300;
    book.message("M-2", "B", "ticket.issue", "DEAD").created_at = at(9);
    book.message("M-1", "B", "order.cancel", "QUEUED").created_at = at(10);
    book.message("M-3", "B", "ticket.issue", "CONSUMED");
    book.hold("H-0", "B", "HELD").expires_at = Some(at(100));
    book.hold("H-1", "B", "RELEASED");
    assert_eq!(
        steps(&book.intent()),
        [
            "messages M-2 DEAD>QUARANTINED",
            "messages M-1 QUEUED>QUARANTINED",
            "orders B PAID>REFUNDING",
            "payments P-0 AUTHORIZED>VOIDING",
            "payments P-0 VOIDING>VOIDED",
            "payments P-B CAPTURED>REFUNDING 700",
            "payments P-B REFUNDING>REFUNDED 700",
            "inventory H-0 HELD>RELEASED",
            "inventory H-B CONFIRMED>RELEASED",
            "orders B REFUNDING>REFUNDED",
        ]
    );
}

#[test]
fn a_loser_closes_by_the_way_its_status_allows() {
    for (status, path) in [
        ("PENDING_PAYMENT", ["PENDING_PAYMENT>CANCELLING", "CANCELLING>CANCELLED"]),
        ("PAID", ["PAID>REFUNDING", "REFUNDING>REFUNDED"]),
    ] {
        let mut book = Book::new();
        book.bought("A", 0);
        book.bought("B", 1);
        book.find_order("B").status = status.parse().unwrap();
        let orders: Vec<String> =
            steps(&book.intent()).into_iter().filter(|s| s.starts_with("orders")).collect();
        assert_eq!(orders, path.map(|p| format!("orders B {p}")));
    }
    let mut book = Book::new();
    book.bought("A", 0);
    book.bought("B", 1);
    book.find_order("B").status = "TICKETED".parse().unwrap();
    book.keep("A");
    assert!(steps(&book.intent()).contains(&"orders B TICKETED>REFUNDING".to_owned()));
}

#[test]
fn charges_that_carry_nothing_are_never_moved() {
    let mut book = Book::new();
    book.bought("A", 0);
    book.bought("B", 1);
    book.payment("P-2", "B", 9, "CAPTURED").provider_txn_id = Some("x".into());
    book.find_payment("P-B").provider_txn_id = Some("x".into());
    let steps = steps(&book.intent());
    assert!(steps.iter().any(|s| s.contains("P-B")) && !steps.iter().any(|s| s.contains("P-2")));
}

#[test]
fn the_kept_order_is_confirmed_and_freed_of_what_is_too_much() {
    let mut book = Book::new();
    book.bought("A", 0);
    book.find_order("A").status = "PENDING_PAYMENT".parse().unwrap();
    book.payment("P-2", "A", 60, "CAPTURED").refunded_minor = 1;
    book.payment("P-3", "A", 50, "AUTHORIZED");
    book.hold("H-2", "A", "HELD");
    book.message("M-1", "A", "ticket.issue", "QUEUED").message_key = Some("k".into());
    book.message("M-2", "A", "ticket.issue", "QUEUED").message_key = Some("k".into());
    assert_eq!(
        steps(&book.intent()),
        [
            "orders A PENDING_PAYMENT>PAID",
            "payments P-2 CAPTURED>REFUNDING 999",
            "payments P-2 REFUNDING>REFUNDED 999",
            "payments P-3 AUTHORIZED>VOIDING",
            "payments P-3 VOIDING>VOIDED",
            "inventory H-2 HELD>RELEASED",
            "messages M-2 QUEUED>QUARANTINED",
        ]
    );
}

#[test]
fn an_authorization_is_voided_only_beside_a_paid_order() {
    let mut book = Book::new();
    book.reserved("A", 0);
    book.payment("P-A", "A", 1, "AUTHORIZED");
    assert_eq!(verdict(&book.intent()), "CLEAN A 7");
}

#[test]
fn confirmed_holds_stay_before_held_ones_and_earlier_before_later() {
    let mut book = Book::new();
    book.bought("A", 0);
    book.find_order("A").quantity = 2;
    book.find_hold("H-A").created_at = at(9);
    book.hold("H-1", "A", "HELD").created_at = at(1);
    book.hold("H-2", "A", "HELD").created_at = at(2);
    book.hold("H-3", "A", "HELD").created_at = at(3);
    let intent = book.intent();
    assert!(has(&intent, ExcessHold));
    assert_eq!(steps(&intent), ["inventory H-2 HELD>RELEASED", "inventory H-3 HELD>RELEASED"]);
    book.find_hold("H-2").status = "CONFIRMED".parse().unwrap();
    book.find_hold("H-3").status = "CONFIRMED".parse().unwrap();
    assert_eq!(
        steps(&book.intent()),
        ["inventory H-1 HELD>RELEASED", "inventory H-A CONFIRMED>RELEASED"],
        "of those that go, the earlier first"
    );
}

#[test]
fn holds_that_lapsed_or_do_not_fit_are_left_to_the_kept_order() {
    let mut book = Book::new();
    book.bought("A", 0);
    book.find_order("A").item = Some("FLOOR".into());
    book.hold("H-1", "A", "HELD").expires_at = Some(at(100));
    book.hold("H-2", "A", "HELD").item = Some("VIP".into());
    assert_eq!(verdict(&book.intent()), "CLEAN A 3");
}

#[test]
fn of_messages_that_say_the_same_the_first_stays_and_a_dead_one_last() {
    let mut book = Book::new();
    book.bought("A", 0);
    for (id, seconds, status) in [("M-1", 1, "DEAD"), ("M-2", 2, "QUEUED"), ("M-3", 3, "IN_FLIGHT")] {
        let message = book.message(id, "A", "ticket.issue", status);
        message.message_key = Some("k".into());
        message.created_at = at(seconds);
    }
    book.message("M-4", "A", "ticket.issue", "CONSUMED").message_key = Some("k".into());
    book.message("M-5", "A", "order.created", "QUEUED").message_key = Some("k".into());
    book.message("M-6", "A", "ticket.issue", "QUEUED").message_key = Some("k2".into());
    book.message("M-7", "A", "ticket.issue", "QUEUED");
    book.message("M-8", "A", "ticket.issue", "QUEUED");
    assert_eq!(
        steps(&book.intent()),
        ["messages M-1 DEAD>QUARANTINED", "messages M-3 IN_FLIGHT>QUARANTINED"]
    );
}

fn terminal() -> Book {
    let mut book = Book::new();
    book.order("A", 0, "CANCELLED");
    book.payment("P-1", "A", 1, "CAPTURED");
    book.payment("P-2", "A", 2, "AUTHORIZED");
    book.hold("H-A", "A", "CONFIRMED");
    book.message("M-A", "A", "ticket.issue", "QUEUED");
    book.policy.terminal_captured = TerminalCaptured::Refund;
    book
}

#[test]
fn a_terminal_order_gives_back_what_it_still_has() {
    let intent = terminal().intent();
    assert_eq!(
        steps(&intent),
        [
            "messages M-A QUEUED>QUARANTINED",
            "payments P-2 AUTHORIZED>VOIDING",
            "payments P-2 VOIDING>VOIDED",
            "payments P-1 CAPTURED>REFUNDING 1000",
            "payments P-1 REFUNDING>REFUNDED 1000",
            "inventory H-A CONFIRMED>RELEASED",
        ]
    );
    let expected = [CancelledButCaptured, MessageForDeadOrder, TerminalButAuthorized, TerminalButHeld];
    assert_eq!(intent.findings, expected);
}

#[test]
fn money_that_somebody_decided_to_retain_is_left_alone_unless_policy_refunds() {
    let mut book = terminal();
    book.find_payment("P-1").refunded_minor = 900;
    assert!(steps(&book.intent()).contains(&"payments P-1 CAPTURED>REFUNDING 100".to_owned()));
    for policy in [TerminalCaptured::Duplicates, TerminalCaptured::Review] {
        book.policy.terminal_captured = policy;
        let intent = book.intent();
        assert_eq!(verdict(&intent), "UNWIND - 8");
        assert!(has(&intent, Retained) && !has(&intent, CancelledButCaptured));
        assert!(!steps(&intent).iter().any(|s| s.contains("P-1")));
    }
    let sums = book.plan().sums;
    assert_eq!((sums.money[0].captured, sums.money[0].kept), (100, 100));
}

#[test]
fn a_refund_of_any_charge_of_the_order_retains_the_rest_but_our_own_does_not() {
    let mut book = terminal();
    book.policy.terminal_captured = TerminalCaptured::Duplicates;
    book.bought("B", 10);
    book.payment("P-3", "A", 3, "REFUNDED").refunded_minor = 1000;
    assert!(has(&book.intent(), Retained));
    book.evidence.refunded_by_us.insert(("t".into(), "P-3".into()), 1000);
    assert!(has(&book.intent(), CancelledButCaptured));
    assert!(steps(&book.intent()).contains(&"payments P-1 CAPTURED>REFUNDING 1000".to_owned()));
    book.find_payment("P-3").refunded_minor = 0;
    book.evidence.refunded_by_us.clear();
    assert!(has(&book.intent(), Retained), "a REFUNDED row gave back all of it");
    book.find_payment("P-3").provider_txn_id = Some("x".into());
    book.find_payment("P-1").provider_txn_id = Some("x".into());
    assert!(!has(&book.intent(), Retained), "a row that carries no charge gave nothing back");
}

#[test]
fn an_order_in_motion_without_doubt_is_finished() {
    let mut book = Book::new();
    book.order("A", 0, "REFUNDING");
    book.hold("H-A", "A", "HELD");
    book.message("M-A", "A", "payment.refund", "QUEUED");
    assert_eq!(
        steps(&book.intent()),
        ["messages M-A QUEUED>QUARANTINED", "inventory H-A HELD>RELEASED", "orders A REFUNDING>REFUNDED"]
    );
    assert_eq!(verdict(&book.intent()), "UNWIND - 8");
}

#[test]
fn losers_go_first_then_the_kept_order_then_terminal_ones_then_orphan_messages() {
    let mut book = Book::new();
    book.order("T", 0, "CANCELLED");
    book.hold("H-T", "T", "HELD");
    book.bought("K", 1);
    book.hold("H-K2", "K", "HELD");
    book.reserved("L", 2);
    book.order("M", 3, "CANCELLING");
    book.message("M-9", "lost", "ticket.issue", "QUEUED");
    assert_eq!(
        steps(&book.intent()),
        [
            "orders L PENDING_PAYMENT>CANCELLING",
            "inventory H-L HELD>RELEASED",
            "orders L CANCELLING>CANCELLED",
            "orders M CANCELLING>CANCELLED",
            "inventory H-K2 HELD>RELEASED",
            "inventory H-T HELD>RELEASED",
            "messages M-9 QUEUED>QUARANTINED",
        ]
    );
}

#[test]
fn charges_go_by_the_time_they_captured_and_holds_by_the_time_they_were_made() {
    let mut book = Book::new();
    book.bought("A", 0);
    book.order("B", 1, "PENDING_PAYMENT");
    book.payment("P-1", "B", 5, "CAPTURED").amount_minor = 400;
    let early = book.payment("P-2", "B", 9, "CAPTURED");
    early.amount_minor = 500;
    early.captured_at = Some(at(4));
    book.hold("H-1", "B", "HELD").created_at = at(2);
    book.hold("H-2", "B", "HELD").created_at = at(1);
    let intent = book.intent();
    let ids: Vec<&str> = intent.steps.iter().map(|s| s.id.as_str()).collect();
    assert_eq!(ids, ["B", "P-2", "P-2", "P-1", "P-1", "H-2", "H-1", "B"]);
}

#[test]
fn a_step_names_the_version_seen_and_none_on_a_second_leg() {
    let mut book = Book::new();
    book.bought("A", 0);
    book.bought("B", 1);
    book.find_payment("P-B").version = "seven".into();
    book.order("C", 2, "CANCELLING").version = "nine".into();
    for step in book.intent().steps {
        let version = step.version.as_ref().map(ToString::to_string);
        let expected = match (step.id.as_str(), step.from.as_str()) {
            ("P-B", "CAPTURED") => Some("seven"),
            ("P-B", _) | ("B", "REFUNDING") => None,
            ("C", _) => Some("nine"),
            _ => Some("1"),
        };
        assert_eq!(version.as_deref(), expected, "{step:?}");
    }
}

#[test]
fn both_legs_of_a_provider_call_share_the_key_of_the_first() {
    let intent = terminal().intent();
    for legs in intent.steps.iter().filter(|s| s.ledger == Ledger::Payments).collect::<Vec<_>>().chunks(2) {
        assert_eq!(legs[0].provider_key.as_ref(), Some(&legs[0].step_key));
        assert_eq!(legs[1].provider_key.as_ref(), Some(&legs[0].step_key));
        assert_ne!(legs[0].step_key, legs[1].step_key);
        assert_eq!(legs[0].amount_minor, legs[1].amount_minor);
        assert_eq!(legs[0].amount_minor.is_some(), legs[0].currency.is_some());
    }
    assert!(
        intent.steps.iter().all(|s| s.ledger == Ledger::Payments || s.provider_key.is_none()),
        "nobody else is asked"
    );
}

#[test]
fn a_step_key_is_of_the_effect_and_of_how_often_it_ended_before() {
    let mut book = Book::new();
    book.order("A", 0, "CANCELLED");
    book.hold("H-A", "A", "HELD");
    let key = |book: &Book| book.intent().steps[0].step_key.clone();
    let first = key(&book);
    let effect = Effect {
        ledger: Ledger::Inventory,
        tenant_id: "t".into(),
        id: "H-A".into(),
        from: "HELD".into(),
        to: "RELEASED".into(),
    };
    assert_eq!(first, step_key(&effect, 0));
    assert_eq!(first.len(), 64);
    book.find_hold("H-A").version = "2".into();
    book.find_hold("H-A").quantity = 3;
    assert_eq!(key(&book), first, "the row's content is not part of it");
    book.evidence.occurrences.insert(effect.clone(), 1);
    assert_eq!(key(&book), step_key(&effect, 1));
    assert_ne!(key(&book), first);
}
