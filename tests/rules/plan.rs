//! Sections 7 and 8: sums, order, digest.

use onefold::core::plan::{Plan, PlanError};
use onefold::core::status::Ledger;

use crate::common::book::*;

/// A kept, an unwound, a reviewed, an unsettled and a clean intent, of a user each.
fn all_outcomes() -> Book {
    let mut book = Book::new();
    for (user, order) in [("u1", "A"), ("u2", "B"), ("u3", "C"), ("u4", "D"), ("u5", "E")] {
        book.bought(order, 0);
        book.find_order(order).user_id = user.into();
        book.find_payment(&format!("P-{order}")).user_id = user.into();
        book.find_hold(&format!("H-{order}")).user_id = user.into();
    }
    let loser = book.order("A2", 5, "PENDING_PAYMENT");
    loser.user_id = "u1".into();
    book.payment("P-A2", "A2", 60, "CAPTURED").user_id = "u1".into();
    book.hold("H-A2", "A2", "HELD").user_id = "u1".into();
    book.find_order("B").status = "CANCELLING".parse().unwrap();
    book.evidence.asked_orders.insert(("t".into(), "B".into()), "1".into());
    book.find_payment("P-C").user_id = "somebody else".into();
    book.payment("P-D2", "D", 60, "UNKNOWN").user_id = "u4".into();
    book
}

#[test]
fn every_unit_of_money_and_stock_is_accounted_for_once() {
    let sums = all_outcomes().plan().sums;
    let money = &sums.money[0];
    assert_eq!((money.captured, money.kept, money.to_refund), (6000, 1000, 2000));
    assert_eq!((money.in_review, money.unsettled, money.clean), (1000, 1000, 1000));
    let stock = &sums.stock[0];
    assert_eq!((stock.live, stock.kept, stock.to_release), (6, 1, 2));
    assert_eq!((stock.in_review, stock.unsettled, stock.clean), (1, 1, 1));
}

#[test]
fn a_hold_that_lapsed_is_no_live_stock_though_it_is_released() {
    let mut book = Book::new();
    book.order("A", 0, "CANCELLED");
    book.hold("H-A", "A", "HELD").expires_at = Some(at(1));
    assert_eq!(steps(&book.intent()).len(), 1);
    assert!(book.plan().sums.stock.is_empty());
}

#[test]
fn sums_are_per_tenant_and_currency_and_per_show_of_the_hold() {
    let mut book = all_outcomes();
    book.find_payment("P-E").currency = "JPY".parse().unwrap();
    book.find_order("E").currency = "JPY".parse().unwrap();
    book.find_hold("H-C").show_id = "another".into();
    let sums = book.plan().sums;
    let money: Vec<_> = sums.money.iter().map(|s| (s.currency.code(), s.captured)).collect();
    assert_eq!(money, [("CNY", 5000), ("JPY", 1000)]);
    let stock: Vec<_> = sums.stock.iter().map(|s| (s.show_id.as_str(), s.live)).collect();
    assert_eq!(stock, [("another", 1), ("show", 5)]);
}

#[test]
fn amounts_beyond_64_bits_are_refused() {
    let mut book = Book::new();
    book.bought("A", 0);
    book.bought("B", 1000);
    for payment in &mut book.ledgers.payments {
        payment.amount_minor = i64::MAX;
    }
    assert!(matches!(book.make(), Err(PlanError::SumTooLarge { .. })));
}

#[test]
fn intents_are_sorted_with_nulls_first() {
    let mut book = Book::new();
    book.order("B", 500, "CANCELLED");
    book.order("A", 500, "CANCELLED").session_id = Some("a".into());
    book.order("D", 0, "CANCELLED");
    book.order("C", 500, "CANCELLED").session_id = None;
    book.policy.guests.insert("u".into());
    let message = book.message("M-9", "lost", "t", "QUEUED");
    message.user_id = None;
    message.show_id = None;
    let intents = book.plan().intents;
    let first: Vec<&str> =
        intents.iter().map(|i| i.orders.first().map_or("message", |o| o.as_str())).collect();
    assert_eq!(first, ["message", "C", "A", "D", "B"]);
}

#[test]
fn the_digest_is_of_the_decision_and_not_of_its_making() {
    let book = all_outcomes();
    let decided = book.make().unwrap();
    let plan = decided.clone().into_plan("p-1".into(), at(0), None);
    let again = decided.into_plan("p-2".into(), at(9), Some("f-1".into()));
    assert_eq!(plan.digest, again.digest);
    assert!(plan.digest.starts_with("sha256:") && plan.digest.len() == 71);
    let mut other = all_outcomes();
    other.find_order("E").version = "2".into();
    assert_eq!(other.plan().digest, plan.digest, "a clean intent shows no version");
    other.find_hold("H-A2").version = "2".into();
    assert_ne!(other.plan().digest, plan.digest);
}

#[test]
fn a_plan_survives_its_file_and_an_edited_one_is_found_out() {
    let plan = all_outcomes().plan();
    let text = serde_json::to_string_pretty(&plan).unwrap();
    let mut loaded: Plan = serde_json::from_str(&text).unwrap();
    assert_eq!(loaded, plan);
    assert!(loaded.digest_matches());
    let refund = loaded.intents.iter_mut().flat_map(|i| &mut i.steps).find(|s| s.amount_minor.is_some());
    refund.unwrap().amount_minor = Some(1);
    assert!(!loaded.digest_matches());
}

#[test]
fn the_digest_is_over_canonical_json_that_others_can_rebuild() {
    use sha2::{Digest, Sha256};
    let plan = all_outcomes().plan();
    for readme in [include_str!("../../README.md"), include_str!("../../README.zh-CN.md")] {
        let mut value = serde_json::to_value(&plan).unwrap();
        // What others are told to leave out, and no more.
        let left_out = readme.lines().find_map(|line| line.strip_prefix("for name in [")).unwrap();
        for name in left_out.split('"').skip(1).step_by(2) {
            assert!(value.as_object_mut().unwrap().remove(name).is_some(), "{name}");
        }
        // The names of the standard map are sorted.
        let text = value.to_string();
        assert_eq!(plan.digest, format!("sha256:{}", hex::encode(Sha256::digest(text))));
    }
}

#[test]
fn an_intents_name_depends_on_its_rows_only() {
    let mut book = all_outcomes();
    let name = |book: &Book| book.intent_of("A").intent_id;
    let first = name(&book);
    book.find_order("A2").status = "CANCELLED".parse().unwrap();
    assert_eq!(name(&book), first);
    book.message("M-9", "lost", "t", "QUEUED").user_id = Some("u1".into());
    assert_ne!(name(&book), first);
    assert_ne!(book.intent_of("B").intent_id, first);
}

#[test]
fn seen_rows_are_those_of_an_intent_that_has_steps() {
    let mut book = all_outcomes();
    book.message("M-A", "A", "t", "CONSUMED");
    book.message("M-9", "lost", "t", "QUEUED").user_id = Some("u1".into());
    let seen: Vec<(Ledger, String)> =
        book.intent_of("A").seen.into_iter().map(|r| (r.ledger, r.id.to_string())).collect();
    let expected = [
        (Ledger::Orders, "A"),
        (Ledger::Orders, "A2"),
        (Ledger::Payments, "P-A"),
        (Ledger::Payments, "P-A2"),
        (Ledger::Inventory, "H-A"),
        (Ledger::Inventory, "H-A2"),
        (Ledger::Messages, "M-9"),
        (Ledger::Messages, "M-A"),
    ];
    assert_eq!(seen, expected.map(|(ledger, id)| (ledger, id.to_owned())));
    assert!(book.intent_of("C").seen.is_empty() && book.intent_of("E").seen.is_empty());
}

#[test]
fn money_that_stands_in_no_sum_is_listed_and_changes_no_digest() {
    let mut book = all_outcomes();
    for (payment, status, refunded) in
        [("P-1", "REFUNDING", 250), ("P-2", "INITIATED", 0), ("P-3", "DISPUTED", 0), ("P-4", "FAILED", 0)]
    {
        book.payment(payment, "E", 70, status).refunded_minor = refunded;
        book.find_payment(payment).user_id = "u5".into();
    }
    book.payment("P-5", "nowhere", 70, "AUTHORIZED").user_id = "u9".into();
    book.find_payment("P-5").tenant_id = "t2".into();
    // Another row of the same charge carries nothing.
    for payment in ["P-6", "P-7"] {
        let row = book.payment(payment, "E", 80, "VOIDING");
        (row.user_id, row.provider_txn_id) = ("u5".into(), Some("ch-6".to_owned()));
    }
    let plan = book.plan();
    let outside = |plan: &Plan| -> Vec<(String, String, u64, i128)> {
        let rows = plan.outside_sums.iter();
        rows.map(|o| (o.tenant_id.to_string(), o.status.to_string(), o.charges, o.amount_minor)).collect()
    };
    let expected = [
        ("t", "DISPUTED", 1_u64, 1000_i128),
        ("t", "INITIATED", 1, 1000),
        ("t", "REFUNDING", 1, 750),
        ("t", "UNKNOWN", 1, 1000),
        ("t", "VOIDING", 1, 1000),
        ("t2", "AUTHORIZED", 1, 1000),
    ];
    let mut found = outside(&plan);
    found.sort();
    assert_eq!(found, expected.map(|(t, s, n, a)| (t.to_owned(), s.to_owned(), n, a)));
    assert_eq!(plan.sums.money[0].captured, 6000, "what is outside is in no sum");
    let without = Plan { outside_sums: Vec::new(), ..plan };
    assert!(without.digest_matches());
    let older: Plan = {
        let mut json = serde_json::to_value(&without).unwrap();
        json.as_object_mut().unwrap().remove("outside_sums");
        serde_json::from_value(json).unwrap()
    };
    assert!(older.digest_matches() && older.outside_sums.is_empty());
}
