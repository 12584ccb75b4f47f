//! `onefold reconcile`

use serde_json::json;

use crate::common::book::Book;
use crate::common::site::{Site, run, text};
use crate::{doubled, on_each_database};

on_each_database![
    names_what_differs_and_changes_nothing,
    a_detailed_exit_code_says_what_a_plan_would_hold,
    a_scope_narrows_and_policies_decide,
    many_intents_are_listed_only_when_asked_for,
    everything_is_joined_as_a_part_of_it_is,
];

fn names_what_differs_and_changes_nothing(site: &Site) {
    let mut book = doubled();
    book.bought("C", 900);
    book.payment("P-lost", "O-lost", 5000, "CAPTURED");
    site.import(&book.ledgers);
    let before = site.ledgers();
    site.run(&["reconcile", "--show", "show"])
        .ends(0)
        .prints("3 intents in scope, 2 with two or more orders or a finding")
        .prints("DUPLICATE_ORDERS 1 20.00 CNY")
        .prints("PAYMENT_WITHOUT_ORDER 1 10.00 CNY")
        .prints("REVIEW");
    let json = site.json(&["reconcile"]);
    assert_eq!(
        json["findings"][0],
        json!({ "finding": "DUPLICATE_ORDERS", "intents": 1, "captured": { "CNY": 2000 } })
    );
    assert_eq!(json["intents"][0]["orders"], json!(["A", "B"]));
    assert_eq!(json["sums"]["money"][0]["captured"], 4000);
    assert_eq!(site.ledgers(), before);
    site.run(&["status"]).ends(0).prints("No plan has been made.");
    site.run(&["history"]).ends(0).does_not_print("planned");
}

fn a_detailed_exit_code_says_what_a_plan_would_hold(site: &Site) {
    let mut book = Book::new();
    book.bought("C", 900);
    site.import(&book.ledgers);
    let detailed = ["reconcile", "--detailed-exitcode"];
    site.run(&detailed).ends(0);
    site.import(&doubled().ledgers);
    site.run(&detailed).ends(3);
    site.run(&["reconcile"]).ends(0);
    book.payment("P-lost", "O-lost", 1200, "CAPTURED");
    site.import(&book.ledgers);
    site.run(&detailed).ends(6);
}

fn a_scope_narrows_and_policies_decide(site: &Site) {
    let mut book = doubled();
    book.find_order("A").idempotency_key = Some("k-1".into());
    book.find_order("B").idempotency_key = Some("k-2".into());
    site.import(&book.ledgers);
    let outcome =
        |line: &[&str]| site.json(&[&["reconcile"], line].concat())["intents"][0]["outcome"].clone();
    assert_eq!(outcome(&[]), "REVIEW");
    assert_eq!(outcome(&["--distinct-keys", "merge"]), "KEEP");
    assert_eq!(outcome(&["--distinct-keys", "split"]), "CLEAN");
    for (flag, value) in [
        ("--show", "x"),
        ("--user", "x"),
        ("--session", "x"),
        ("--tenant", "x"),
        ("--to", "2026-01-01 00:00"),
    ] {
        assert_eq!(site.json(&["reconcile", flag, value])["intents_in_scope"], 0, "{flag}");
    }
    assert_eq!(site.json(&["reconcile", "--tenant", "t", "--user", "u"])["intents_in_scope"], 1);
    let as_of =
        site.id(&["reconcile", "--as-of", "2026-11-11 20:20", "--timezone", "Asia/Shanghai"], "/as_of");
    assert_eq!(as_of, "2026-11-11T12:20:00Z");
}

fn many_intents_are_listed_only_when_asked_for(site: &Site) {
    let night = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/incident-2014");
    site.run(&["import", &text(&night)]).ends(0).prints("the books of the sandbox know of 10 charges");
    let line = ["reconcile", "--show", "S-204", "--as-of", "2026-11-11T20:20:00+08:00"];
    let ran = site.run(&line).ends(0).prints("… and 23 more intents; all of them with --all");
    ran.prints("20020.00 CNY + 74000 JPY + 38.250 KWD").does_not_print("U-GUEST");
    site.run(&[&line[..], &["--all"]].concat()).ends(0).prints("U-GUEST");
}

/// Of everything, purchases that are plain are not joined one by one.
fn everything_is_joined_as_a_part_of_it_is(site: &Site) {
    let mut book = doubled();
    book.bought("C", 900);
    book.order("D", 1800, "PAID");
    book.hold("H-D", "D", "CONFIRMED");
    book.order("E", 2700, "CANCELLED");
    book.payment("P-E", "E", 2702, "CAPTURED");
    // The buyer kept some of it.
    book.find_payment("P-E").refunded_minor = 400;
    book.payment("P-lost", "O-lost", 5000, "CAPTURED");
    site.import(&book.ledgers);
    let at = ["--as-of", "2026-09-21T17:00:00Z"];
    let part = site.json(&[&["reconcile", "--tenant", "t"], &at[..]].concat());
    let mut all = site.json(&[&["reconcile"], &at[..]].concat());
    let intents = part["intents"].as_array().unwrap();
    assert!(intents.len() > 3 && intents.iter().all(|i| i["findings"] != json!([])), "{part:#}");
    assert!(intents.iter().any(|i| i["outcome"] == "CLEAN" && i["evidence"] != json!([])), "{part:#}");
    all["scope"] = part["scope"].clone();
    assert_eq!(all, part);
    // Without room for the ledgers in the temporary folder they are read into memory.
    let line = ["reconcile"];
    run(site.command(&line).env("TMPDIR", site.path("gone")), &line).ends(0).prints("DUPLICATE_ORDERS");
}
