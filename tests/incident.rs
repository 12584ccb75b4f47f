//! The demo's night, planned, against what must come out: see fixtures/incident-2014/README.md.

mod common;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use common::{Options, time};
use onefold::core::ledger::Ledgers;
use onefold::core::plan::{self, Decided, Finding, Outcome, PlannedIntent};
use onefold::core::status::Ledger;
use onefold::files::{self, LedgerFiles, ReadOptions};
use serde_json::{Value, json};

const INTENT: [&str; 12] = [
    "tenant_id",
    "user_id",
    "show_id",
    "session_id",
    "orders",
    "orphans",
    "outcome",
    "keep",
    "findings",
    "review_reasons",
    "decided_by",
    "steps",
];
const STEP: [&str; 6] = ["ledger", "id", "from", "to", "amount_minor", "currency"];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/incident-2014")
}

fn text(file: &str) -> String {
    fs::read_to_string(folder().join(file)).unwrap()
}

fn ledgers() -> Ledgers {
    let files = LedgerFiles::in_dir(&folder()).unwrap();
    let (ledgers, notes) = files::read(&files, &ReadOptions::default(), &mut |_, _, _| ()).unwrap();
    assert!(notes.is_empty(), "nothing is to be assumed about these files: {notes:?}");
    ledgers
}

fn options() -> Options {
    Options::from_text(&text("options.txt"))
}

fn decide(options: &Options) -> Decided {
    let ledgers = ledgers();
    plan::make(&ledgers, &options.scope, &options.policy, options.as_of, &options.evidence(&ledgers)).unwrap()
}

fn of_user<'a>(decided: &'a Decided, user: &'a str) -> impl Iterator<Item = &'a PlannedIntent> {
    decided.intents.iter().filter(move |i| i.user_id.as_ref().is_some_and(|u| u.as_str() == user))
}

/// Drops the members that the expected plan does not list.
fn keep_only(value: &mut Value, members: &[&str]) {
    value.as_object_mut().unwrap().retain(|name, _| members.contains(&name.as_str()));
}

fn comparable(decided: &Decided) -> Value {
    let mut plan = json!({ "intents": decided.intents, "sums": decided.sums });
    for intent in plan["intents"].as_array_mut().unwrap() {
        keep_only(intent, &INTENT);
        for step in intent["steps"].as_array_mut().unwrap() {
            keep_only(step, &STEP);
        }
    }
    plan
}

fn assert_same(ours: &Value, expected: &Value) {
    let (our_intents, their_intents) = (&ours["intents"], &expected["intents"]);
    for (ours, expected) in our_intents.as_array().unwrap().iter().zip(their_intents.as_array().unwrap()) {
        assert_eq!(ours, expected);
    }
    assert_eq!(ours["sums"], expected["sums"]);
    assert_eq!(ours, expected);
}

#[test]
fn the_plan_of_the_night_comes_out_as_expected() {
    let expected = serde_json::from_str(&text("expected-plan.json")).unwrap();
    assert_same(&comparable(&decide(&options())), &expected);
}

#[test]
fn the_plan_is_the_same_years_later() {
    let expected = serde_json::from_str(&text("expected-plan.json")).unwrap();
    let later = Options { as_of: time("2030-01-01T00:00:00Z"), ..options() };
    assert_same(&comparable(&decide(&later)), &expected);
}

#[test]
fn the_night_has_every_outcome_and_every_finding_that_files_can_hold() {
    let decided = decide(&options());
    let outcomes: HashSet<&str> = decided.intents.iter().map(|i| i.outcome.as_str()).collect();
    let missing: Vec<_> = Outcome::ALL.iter().filter(|o| !outcomes.contains(o.as_str())).collect();
    assert!(missing.is_empty(), "no intent is {missing:?}");

    let findings: BTreeSet<Finding> =
        decided.intents.iter().flat_map(|i| i.findings.iter().copied()).collect();
    let missing: Vec<_> = Finding::ALL.iter().filter(|f| !findings.contains(f)).collect();
    // Only our own journal knows that a refund was refused; no file says so.
    assert_eq!(missing, [&Finding::RefundRefused]);
}

#[test]
fn the_client_and_the_gateway_made_eight_orders_of_one_purchase() {
    let ledgers = ledgers();
    let orders: Vec<_> = ledgers.orders.iter().filter(|o| o.user_id.as_str() == "U-7318").collect();
    let from = |source: &str| orders.iter().filter(|o| o.source.as_deref() == Some(source)).count();
    assert_eq!((orders.len(), from("client"), from("gateway")), (8, 6, 2));
    let traces: HashSet<_> = orders.iter().map(|o| o.trace_id.as_ref().unwrap()).collect();
    assert_eq!(traces.len(), 8);
    assert_eq!(orders[0].created_at, time("2026-11-11T20:14:00.430+08:00"));
    assert!(orders[7].created_at < time("2026-11-11T20:15:00+08:00"), "all within one minute");

    let decided = decide(&options());
    let [intent] = of_user(&decided, "U-7318").collect::<Vec<_>>()[..] else {
        panic!("one user, one session, one purchase");
    };
    assert_eq!((intent.outcome, intent.decided_by, intent.orders.len()), (Outcome::Keep, 3, 8));
    assert_eq!(intent.keep.as_ref().unwrap().as_str(), "O-20146");

    // Two were paid. The one that was charged first stays, the other is given back in full.
    let captured = |order: &str| -> Vec<_> {
        let rows = ledgers.payments.iter().filter(|p| p.order_id == Some(order.into()));
        rows.filter_map(|p| p.captured_at).collect()
    };
    assert_eq!(captured("O-20146"), [time("2026-11-11T20:14:33.118+08:00")]);
    assert_eq!(captured("O-20173"), [time("2026-11-11T20:14:57.902+08:00")]);
    assert_eq!(ids_moved(intent, Ledger::Payments, "REFUNDED"), ["P-70276"]);
    assert_eq!(ids_moved(intent, Ledger::Payments, "VOIDED"), ["P-70258"]);
    let refunded: Vec<_> =
        intent.steps.iter().filter(|s| s.to == "REFUNDED").filter_map(|s| s.amount_minor).collect();
    assert_eq!(refunded, [176_000]);

    assert_eq!(ids_moved(intent, Ledger::Orders, "REFUNDED"), ["O-20173"]);
    assert_eq!(
        ids_moved(intent, Ledger::Orders, "CANCELLED"),
        ["O-20141", "O-20143", "O-20156", "O-20159", "O-20166", "O-20178"]
    );
    assert_eq!(
        ids_moved(intent, Ledger::Inventory, "RELEASED"),
        ["H-40266", "H-40268", "H-40281", "H-40291", "H-40298", "H-40303"]
    );
    assert_eq!(
        ids_moved(intent, Ledger::Messages, "QUARANTINED"),
        ["M-90416", "M-90433", "M-90460", "M-90461", "M-90606", "M-90607"]
    );
}

/// Ids of the rows of a ledger that the intent's steps leave in a status, sorted.
fn ids_moved<'a>(intent: &'a PlannedIntent, ledger: Ledger, to: &str) -> Vec<&'a str> {
    let steps = intent.steps.iter().filter(|s| s.ledger == ledger && s.to == to);
    let mut ids: Vec<_> = steps.map(|s| s.id.as_str()).collect();
    ids.sort_unstable();
    ids
}

#[test]
fn other_shows_are_left_alone_unless_a_key_joins_them() {
    let decided = decide(&options());
    assert_eq!(of_user(&decided, "U-2718").count(), 0, "a double of S-205 is out of scope");
    let resold: Vec<_> = of_user(&decided, "U-9307").map(|i| i.orders.len()).collect();
    assert_eq!(resold, [2], "one key, one order of each show");
}

#[test]
fn strangers_at_one_kiosk_are_two_buyers_once_the_account_is_named() {
    let outcomes = |options: &Options| -> Vec<_> {
        of_user(&decide(options), "U-GUEST").map(|i| (i.outcome, i.orders.len())).collect()
    };
    let mut options = options();
    assert_eq!(outcomes(&options), [(Outcome::Review, 2)]);
    options.policy.guests.insert("U-GUEST".into());
    assert_eq!(outcomes(&options), [(Outcome::Clean, 1), (Outcome::Clean, 1)]);
}

#[test]
fn what_the_provider_knows_is_of_charges_in_the_ledger() {
    let ledgers = ledgers();
    let mut reader = csv::Reader::from_path(folder().join("provider.csv")).unwrap();
    let known: Vec<HashMap<String, String>> = reader.deserialize().map(|row| row.unwrap()).collect();
    assert!(!known.is_empty());
    for row in known {
        let cell = |name: &str| row[name].as_str();
        let charge = cell("charge");
        let payment = ledgers.payments.iter().find(|p| {
            let name = p.provider_txn_id.as_deref().unwrap_or(p.payment_id.as_str());
            (p.tenant_id.as_str(), p.provider.as_str(), name) == (cell("tenant_id"), cell("provider"), charge)
        });
        let payment = payment.unwrap_or_else(|| panic!("no payment is charge {charge}"));
        assert_eq!(cell("amount_minor"), payment.amount_minor.to_string(), "{charge}");
        assert_eq!(cell("currency"), payment.currency.to_string(), "{charge}");
        let may_be: &[&str] = match payment.status.as_str() {
            "UNKNOWN" | "INITIATED" => &["AUTHORIZED", "CAPTURED", "FAILED"],
            "REFUNDING" => &["CAPTURED", "REFUNDED", "REFUND_REFUSED"],
            same => &[same],
        };
        assert!(may_be.contains(&cell("status")), "{charge}: {row:?}");
    }
}
