//! `onefold apply`

use crate::common::book::Book;
use crate::common::site::Site;
use crate::{doubled, on_each_database};

on_each_database![
    carries_the_plan_out_and_applying_again_does_nothing,
    without_a_terminal_it_wants_yes,
    a_dry_run_is_refused,
    a_superseded_plan_is_refused_and_names_the_newer,
    a_plan_that_was_changed_in_the_database_is_refused,
    a_freeze_that_is_lapsed_or_thawed_is_refused,
    a_step_outside_the_freeze_is_refused,
    a_row_that_moved_stops_its_intent_only,
];

fn carries_the_plan_out_and_applying_again_does_nothing(site: &Site) {
    site.import(&doubled().ledgers);
    site.freeze();
    let plan = site.plan();
    site.run(&["apply", &plan, "--yes"])
        .ends(0)
        .prints(&format!("{plan}: 6 of 6 steps are done, 6 in this run"))
        .prints("provider: sandbox (no real money moves)")
        .prints(&format!("$ onefold verify {plan}"));
    assert_eq!((site.order("A"), site.order("B")), ("PAID".into(), "REFUNDED".into()));
    assert_eq!(site.payment("P-B"), "REFUNDED");
    assert_eq!(site.column("SELECT refunded_minor FROM payments WHERE payment_id = 'P-B'"), ["1000"]);
    assert_eq!(site.column("SELECT status FROM inventory WHERE hold_id = 'H-B'"), ["RELEASED"]);
    let (ledgers, history) = (site.ledgers(), site.json(&["history"]));
    site.run(&["apply", &plan]).ends(0).prints("has been applied; nothing to do");
    assert_eq!(site.json(&["apply", &plan])["done_now"], 0);
    assert_eq!(site.ledgers(), ledgers);
    assert_eq!(site.json(&["history"]), history);
    let again = site.json(&["plan"]);
    assert_eq!(again["intents"][0]["outcome"], "CLEAN", "deciding again finds nothing to do");
    site.run(&["apply", again["plan_id"].as_str().unwrap()]).ends(0).prints("0 of 0 steps are done");
}

fn without_a_terminal_it_wants_yes(site: &Site) {
    site.import(&doubled().ledgers);
    site.freeze();
    let plan = site.plan();
    site.run(&["apply", &plan]).fails(
        7,
        &["no terminal to ask on", &format!("onefold apply {plan} --max-refund-total CNY:10.00 --yes")],
    );
    assert_eq!(site.order("B"), "PAID");
    site.run(&["apply", "PL-none", "--yes"]).fails(2, &["no plan PL-none", "onefold status"]);
}

fn a_dry_run_is_refused(site: &Site) {
    site.import(&doubled().ledgers);
    let before_freeze = site.plan();
    site.freeze();
    let as_of = site.id(&["plan", "--as-of", "2026-11-11T20:20:00Z"], "/plan_id");
    for plan in [before_freeze, as_of] {
        site.run(&["apply", &plan, "--yes"]).fails(7, &["is a dry run", "onefold freeze"]);
    }
    assert_eq!(site.order("B"), "PAID");
}

fn a_superseded_plan_is_refused_and_names_the_newer(site: &Site) {
    site.import(&doubled().ledgers);
    site.freeze();
    let (old, new) = (site.plan(), site.plan());
    site.run(&["apply", &old, "--yes"])
        .fails(7, &[&format!("{old} was superseded by {new}"), &format!("onefold apply {new}")]);
    site.run(&["apply", &new, "--yes"]).ends(0);
    site.run(&["apply", &old, "--yes"]).fails(7, &["superseded"]);
}

fn a_plan_that_was_changed_in_the_database_is_refused(site: &Site) {
    site.import(&doubled().ledgers);
    site.freeze();
    let plan = site.plan();
    site.sql(
        "UPDATE onefold_plan_parts SET intents = REPLACE(intents, '\"amount_minor\":1000', '\"amount_minor\":9000')",
    );
    site.run(&["apply", &plan, "--yes"]).fails(7, &[&plan, "digest does not match", "plan again"]);
    assert_eq!(site.payment("P-B"), "CAPTURED");
}

fn a_freeze_that_is_lapsed_or_thawed_is_refused(site: &Site) {
    site.import(&doubled().ledgers);
    let freeze = site.freeze();
    let plan = site.plan();
    site.run_as("bob@desk", &["apply", &plan, "--yes"]).fails(7, &["is held by ada@desk", "--take-over"]);
    site.sql("UPDATE onefold_freezes SET lease_until_us = 1");
    site.run(&["apply", &plan, "--yes"])
        .fails(7, &["ran out at", &format!("onefold freeze --renew {freeze}")]);
    site.run(&["thaw", &freeze, "--force", "--reason", "x"]).ends(0);
    site.run(&["apply", &plan, "--yes"]).fails(7, &["is thawed", "onefold freeze"]);
    assert_eq!(site.order("B"), "PAID");
}

fn a_step_outside_the_freeze_is_refused(site: &Site) {
    let mut book = Book::new();
    book.bought("A", 0);
    book.bought("B", 10);
    for id in ["A", "B"] {
        book.find_order(id).idempotency_key = Some("one purchase".into());
    }
    // The same key, request and session: only where it was written down differs.
    book.find_order("B").session_id = Some("phone".into());
    site.import(&book.ledgers);
    let narrow = ["freeze", "--session", "s", "--advisory", "--reason", "x"];
    let freeze = site.id(&narrow, "/freeze/freeze_id");
    let plan = site.json(&["plan"]);
    assert_eq!(plan["intents"][0]["outcome"], "KEEP", "{plan:#}");
    let plan = plan["plan_id"].as_str().unwrap();
    let ran = site.run(&["apply", plan, "--yes"]);
    ran.fails(7, &[&format!("{freeze} does not cover"), "order B", "freeze a wider scope"]);
    assert_eq!(site.order("B"), "PAID");
}

fn a_row_that_moved_stops_its_intent_only(site: &Site) {
    let mut book = doubled();
    book.bought("C", 900);
    book.bought("D", 910);
    site.import(&book.ledgers);
    site.freeze();
    let plan = site.plan();
    site.sql("UPDATE orders SET status = 'TICKETED', version = '2' WHERE order_id = 'B'");
    site.run(&["apply", &plan, "--yes"])
        .ends(4)
        .prints("1 of 2 intents are through")
        .prints("CONFLICT")
        .prints("order B")
        .prints("$ onefold plan");
    assert_eq!((site.order("B"), site.payment("P-B")), ("TICKETED".into(), "CAPTURED".into()));
    assert_eq!(site.order("D"), "REFUNDED", "the other purchase is through");
    let json = site.run(&["apply", &plan, "--yes", "--json"]).ends(4).json();
    assert_eq!(json["ended"], false);
    assert_eq!(json["done_now"], 0);
    let again = site.json(&["plan"]);
    assert_eq!(again["intents"][0]["outcome"], "REVIEW");
    assert_eq!(again["intents"][0]["review_reasons"], serde_json::json!(["TICKET_ELSEWHERE"]));
}
