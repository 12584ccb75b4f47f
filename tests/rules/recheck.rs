//! Section 5: an intent is compared with its plan before anything moves.

use onefold::core::ledger::Ledgers;
use onefold::core::plan::PlannedIntent;
use onefold::core::recheck::{recheck, undo};

use crate::common::book::*;

/// A kept order with an excess hold, a loser with money, and a far neighbour.
fn book() -> Book {
    let mut book = Book::new();
    book.bought("A", 0);
    book.hold("H-A2", "A", "HELD");
    book.bought("B", 1);
    book.message("M-B", "B", "ticket.issue", "QUEUED");
    book.bought("C", 2000);
    book
}

fn differences(book: &Book, planned: &PlannedIntent) -> Vec<String> {
    match recheck(planned, &book.ledgers, &book.policy, book.as_of, &book.evidence) {
        Ok(()) => Vec::new(),
        Err(differences) => differences.iter().map(ToString::to_string).collect(),
    }
}

#[test]
fn unchanged_rows_are_no_difference_in_whatever_company_they_come() {
    let mut book = book();
    let planned = book.intent_of("A");
    assert_eq!(differences(&book, &planned), [""; 0]);
    book.ledgers.orders.retain(|o| o.order_id.as_str() != "C");
    book.ledgers.payments.retain(|p| p.payment_id.as_str() != "P-C");
    book.ledgers.inventory.retain(|h| h.hold_id.as_str() != "H-C");
    book.ledgers.inventory.reverse();
    assert_eq!(differences(&book, &planned), [""; 0]);
}

#[test]
fn every_change_of_a_row_is_told() {
    let changes: [(Change, &str); 8] = [
        (
            |book| {
                book.payment("P-9", "B", 70, "CAPTURED");
            },
            "payment P-9 is new",
        ),
        (|book| drop(book.ledgers.messages.pop()), "message M-B no longer belongs here"),
        (
            |book| book.find_order("B").status = "PENDING_PAYMENT".parse().unwrap(),
            "order B is PENDING_PAYMENT, was PAID",
        ),
        (|book| book.find_payment("P-A").version = "7".into(), "payment P-A has version 7, was 1"),
        (
            |book| book.find_hold("H-A").quantity = 2,
            "hold H-A says something else than it did, under the same status and version",
        ),
        (
            |book| book.find_payment("P-A").refunded_minor = 1,
            "payment P-A says something else than it did, under the same status and version",
        ),
        (
            |book| {
                book.order("D", 2, "CANCELLED");
            },
            "order D is new",
        ),
        (|book| book.message("M-9", "lost", "t", "QUEUED").created_at = at(5), "message M-9 is new"),
    ];
    for (change, told) in changes {
        let mut book = book();
        let planned = book.intent_of("A");
        change(&mut book);
        assert_eq!(differences(&book, &planned), [told]);
    }
}

#[test]
fn an_intent_that_is_gone_or_fell_apart_is_told() {
    let mut book = book();
    let planned = book.intent_of("A");
    book.find_order("B").session_id = Some("s2".into());
    let told = differences(&book, &planned);
    assert!(told.contains(&"order B no longer belongs here".to_owned()), "{told:?}");
    book.ledgers = Ledgers::default();
    assert_eq!(differences(&book, &planned).len(), planned.seen.len());
}

#[test]
fn a_decision_that_changed_without_a_row_of_the_intent_is_told() {
    let mut book = book();
    let planned = book.intent_of("A");
    book.keep("B");
    assert_eq!(differences(&book, &planned), ["order B would now be kept, was order A"]);
    book.evidence.keeps.clear();
    book.evidence.refused_refunds.insert(("t".into(), "P-B".into()));
    assert_eq!(differences(&book, &planned), ["the outcome is now REVIEW, was KEEP"]);
}

#[test]
fn a_charge_that_another_intent_claims_is_told() {
    let mut book = book();
    for payment in ["P-A", "P-C"] {
        book.find_payment(payment).provider_txn_id = Some(payment.into());
    }
    let planned = book.intent_of("A");
    book.find_payment("P-C").provider_txn_id = Some("P-A".into());
    assert_eq!(differences(&book, &planned), ["the outcome is now REVIEW, was KEEP"]);
}

#[test]
fn our_own_moves_are_no_difference_wherever_the_intent_stands() {
    let mut book = book();
    let planned = book.intent_of("A");
    let tenant = "t".into();
    let mut own = Vec::new();
    for step in &planned.steps {
        own.extend(apply(&mut book.ledgers, &tenant, std::slice::from_ref(step), &mut book.evidence));
        let mut fresh =
            Book { ledgers: book.ledgers.clone(), evidence: book.evidence.clone(), ..Book::new() };
        undo(&mut fresh.ledgers, &own);
        assert_eq!(differences(&fresh, &planned), [""; 0], "after {step:?}");
    }
    assert!(!differences(&book, &planned).is_empty(), "not undone, they would be");
}

#[test]
fn a_row_that_somebody_touched_after_us_is_not_undone() {
    for change in 0..3 {
        let mut book = book();
        let planned = book.intent_of("A");
        let own = apply(&mut book.ledgers, &"t".into(), &planned.steps, &mut book.evidence);
        let payment = book.find_payment("P-B");
        match change {
            0 => payment.version = "theirs".into(),
            1 => payment.refunded_minor += 1,
            _ => payment.status = "DISPUTED".parse().unwrap(),
        }
        let touched = payment.clone();
        undo(&mut book.ledgers, &own);
        assert_eq!(*book.find_payment("P-B"), touched);
        let told = differences(&book, &planned);
        assert_eq!(told, [format!("payment P-B is {}, was CAPTURED", touched.status)]);
    }
}

#[test]
fn a_row_that_moved_between_two_of_our_moves_is_undone_only_as_far_as_we_know_it() {
    let mut book = book();
    let planned = book.intent_of("A");
    let mut own = apply(&mut book.ledgers, &"t".into(), &planned.steps, &mut book.evidence);
    let second_leg = own.iter_mut().rfind(|m| m.id.as_str() == "P-B").unwrap();
    second_leg.version_before = "theirs".into();
    undo(&mut book.ledgers, &own);
    assert_eq!(book.find_payment("P-B").status.as_str(), "REFUNDING");
    assert_eq!(differences(&book, &planned), ["payment P-B is REFUNDING, was CAPTURED"]);
}
