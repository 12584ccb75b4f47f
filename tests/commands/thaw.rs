//! `onefold thaw`

use crate::common::book::Book;
use crate::common::site::Site;
use crate::{doubled, on_each_database};
use onefold::core::time::{Span, Timestamp};

on_each_database![
    what_is_done_is_let_go,
    what_is_not_settled_stays_frozen_by_itself,
    a_refund_that_is_not_finished_stays_frozen,
    a_refund_about_a_closed_order_stays_frozen_until_it_ends,
    another_plans_policy_lets_nothing_go,
    a_narrowed_freeze_lets_what_it_still_holds_be_planned,
    only_its_owner_or_force,
    kept_orders_whose_hold_lapses_are_told_first,
    what_is_paid_and_lapses_is_told_and_what_nobody_paid_is_not,
    by_force_what_the_provider_still_owes_an_answer_to_is_told,
];

fn what_is_done_is_let_go(site: &Site) {
    site.import(&doubled().ledgers);
    let freeze = site.freeze();
    let plan = site.plan();
    site.run(&["thaw", &freeze]).ends(6).prints("A B").prints("6 steps not carried out");
    site.run(&["apply", &plan, "--yes"]).ends(0);
    site.run(&["thaw", &freeze]).ends(0).prints(&format!("{freeze} is thawed."));
    site.run(&["thaw", &freeze]).ends(0).prints("is thawed already");
    site.run(&["status"]).ends(0).prints("No freeze is live.");
    site.run(&["history"]).ends(0).prints("narrowed: still stopped: stock-release").prints("thawed: thawed");
    site.run(&["thaw", "F-none"]).fails(2, &["no freeze F-none", "onefold status"]);
}

fn what_is_not_settled_stays_frozen_by_itself(site: &Site) {
    let mut book = doubled();
    book.bought("C", 900);
    book.payment("P-lost", "O-lost", 5000, "CAPTURED");
    site.import(&book.ledgers);
    let freeze = site.freeze();
    let plan = site.plan();
    site.run(&["apply", &plan, "--yes"]).ends(0);
    site.run(&["thaw", &freeze])
        .ends(6)
        .prints("payment P-lost REVIEW: PAYMENT_WITHOUT_ORDER")
        .prints(&format!("$ onefold thaw {freeze}"))
        .does_not_print("\nA ");
    site.run(&["status"]).ends(0).prints("NARROWED").prints("1 intent of it");
    let json = site.json(&["status"]);
    assert_eq!(json["freezes"][0]["freeze"]["narrowed_to"].as_array().unwrap().len(), 1);
    site.sql("UPDATE payments SET status = 'FAILED' WHERE payment_id = 'P-lost'");
    site.run(&["thaw", &freeze]).ends(0).prints("is thawed.");
}

fn a_refund_that_is_not_finished_stays_frozen(site: &Site) {
    site.provider(&[("P-B", "pending")]);
    site.import(&doubled().ledgers);
    let freeze = site.freeze();
    let plan = site.plan();
    site.run(&["apply", &plan, "--yes"]).ends(6);
    let json = site.run(&["thaw", &freeze, "--json"]).ends(6).json();
    assert_eq!(json["still_frozen"][0]["orders"], serde_json::json!(["A", "B"]));
    site.run(&["converge", "--plan", &plan]).ends(0);
    site.run(&["apply", &plan, "--yes"]).ends(0);
    site.run(&["thaw", &freeze]).ends(0);
}

fn a_refund_about_a_closed_order_stays_frozen_until_it_ends(site: &Site) {
    let mut book = doubled();
    book.find_order("B").status = "CANCELLED".parse().unwrap();
    site.provider(&[("P-B", "lose-request")]);
    site.import(&book.ledgers);
    let freeze = site.freeze();
    let plan = site.plan();
    site.run(&["apply", &plan, "--yes"]).ends(6);
    site.run(&["thaw", &freeze]).ends(6).prints("a step of ours is open");
    site.run(&["verify"]).ends(6).prints("P-B");
    site.run(&["apply", &plan, "--yes"]).ends(0);
    assert_eq!(site.payment("P-B"), "REFUNDED");
    site.run(&["thaw", &freeze]).ends(0);
}

fn another_plans_policy_lets_nothing_go(site: &Site) {
    let mut book = doubled();
    book.find_order("A").idempotency_key = Some("key-a".into());
    book.find_order("B").idempotency_key = Some("key-b".into());
    book.bought("C", 5);
    book.find_order("C").user_id = "other".into();
    book.find_payment("P-C").user_id = "other".into();
    book.find_hold("H-C").user_id = "other".into();
    site.import(&book.ledgers);
    let freeze = site.freeze();
    site.plan();
    site.run(&["plan", "--user", "other", "--distinct-keys", "split"]).ends(0);
    site.run(&["thaw", &freeze]).ends(6).prints("REVIEW: DISTINCT_KEYS");
}

fn a_narrowed_freeze_lets_what_it_still_holds_be_planned(site: &Site) {
    let mut book = Book::new();
    book.bought("A", 0);
    book.reserved("B", 10);
    book.payment("P-B", "B", 12, "UNKNOWN");
    site.provider(&[("P-B", "ok")]);
    site.import(&book.ledgers);
    let freeze = site.freeze();
    site.plan();
    site.run(&["thaw", &freeze]).ends(6).prints("UNSETTLED");
    // Meanwhile the show sells on, and doubles another purchase.
    book.bought("C", 1800);
    book.bought("D", 1810);
    site.import(&book.ledgers);
    site.run(&["converge", "--show", "show"]).ends(0);
    site.run(&["plan"]).ends(0).prints("is narrowed: decided are only the 1 intent that it still holds");
    let plan = site.json(&["plan"]);
    assert_eq!(plan["intents"].as_array().unwrap().len(), 1, "{plan:#}");
    assert_eq!(plan["intents"][0]["orders"], serde_json::json!(["A", "B"]));
    site.run(&["apply", plan["plan_id"].as_str().unwrap(), "--yes"]).ends(0);
    assert_eq!((site.order("B"), site.payment("P-B")), ("CANCELLED".into(), "REFUNDED".into()));
    assert_eq!((site.order("D"), site.payment("P-D")), ("PAID".into(), "CAPTURED".into()));
    site.run(&["thaw", &freeze]).ends(0).prints("is thawed.");
}

fn only_its_owner_or_force(site: &Site) {
    site.import(&doubled().ledgers);
    let freeze = site.freeze();
    let thaw = |line: &[&str]| site.run_as("bob@desk", &[&["thaw", &freeze], line].concat());
    thaw(&[]).fails(7, &["is held by ada@desk", "--take-over"]);
    thaw(&["--force"]).fails(2, &["--reason"]);
    thaw(&["--force", "--reason", " "]).fails(2, &["needs a reason"]);
    site.run(&["status"]).ends(0).prints("LIVE");
    thaw(&["--force", "--reason", "handled by hand"]).ends(0).prints("is thawed, by force");
    site.run(&["history"]).ends(0).prints("bob@desk").prints("forced: handled by hand");
}

fn kept_orders_whose_hold_lapses_are_told_first(site: &Site) {
    let mut book = doubled();
    let soon = Timestamp::from_datetime(&chrono::Utc::now()).plus(Span::from_mins(5));
    book.find_hold("H-A").status = "HELD".parse().unwrap();
    book.find_hold("H-A").expires_at = Some(soon);
    site.import(&book.ledgers);
    let freeze = site.freeze();
    let plan = site.plan();
    site.run(&["apply", &plan, "--yes"]).ends(0);
    site.run(&["thaw", &freeze]).fails(7, &["order A: lapses at", &soon.to_string(), "--accept-lapsing"]);
    site.run(&["status"]).ends(0).prints("LIVE");
    site.run(&["thaw", &freeze, "--accept-lapsing"]).ends(0).prints("A lapses at").prints("is thawed.");
}

fn what_is_paid_and_lapses_is_told_and_what_nobody_paid_is_not(site: &Site) {
    let soon = Timestamp::from_datetime(&chrono::Utc::now()).plus(Span::from_mins(5));
    let mut book = Book::new();
    for i in 0..22 {
        let id = format!("A{i:02}");
        book.bought(&id, i * 3600);
        book.find_hold(&format!("H-{id}")).status = "HELD".parse().unwrap();
        book.find_hold(&format!("H-{id}")).expires_at = Some(soon);
    }
    book.reserved("Z", 360_000);
    book.find_hold("H-Z").expires_at = Some(soon);
    site.import(&book.ledgers);
    let freeze = site.freeze();
    site.run(&["thaw", &freeze])
        .fails(7, &["order A00: lapses at", "order A19: ", "and 2 more", "--accept-lapsing"])
        .does_not_print("order Z")
        .does_not_print("A20");
    site.run(&["thaw", &freeze, "--accept-lapsing"]).ends(0).prints("and 2 more").prints("is thawed.");
}

fn by_force_what_the_provider_still_owes_an_answer_to_is_told(site: &Site) {
    site.provider(&[("P-B", "pending")]);
    site.import(&doubled().ledgers);
    let freeze = site.freeze();
    let plan = site.plan();
    site.run(&["apply", &plan, "--yes"]).ends(6);
    site.run(&["thaw", &freeze, "--force", "--reason", "handled by hand"])
        .ends(0)
        .prints("1 step of it is open all the same:")
        .prints("payment P-B REFUNDING→REFUNDED ACCEPTED")
        .prints(&format!("$ onefold converge --plan {plan}"));
}
