//! `onefold converge`, and how `apply` goes on after it.

use crate::common::book::Book;
use crate::common::site::Site;
use crate::{doubled, on_each_database};

on_each_database![
    a_refund_that_is_taken_and_not_finished,
    a_refund_whose_answer_is_lost_is_not_made_twice,
    a_refund_whose_request_is_lost_goes_out_again,
    a_refund_that_is_refused_is_for_a_person,
    charges_in_doubt_are_asked_about_and_then_decided,
    a_request_of_a_plan_before_is_told_and_settled_by_a_newer_one,
    a_request_is_carried_on_under_another_freeze,
];

/// Applies the doubled purchase's plan, whose refund does not go through at once; the plan's id.
fn begun(site: &Site, behaviour: &str, end: &str) -> String {
    site.provider(&[("P-B", behaviour)]);
    site.import(&doubled().ledgers);
    site.freeze();
    let plan = site.plan();
    let ran = site.run(&["apply", &plan, "--yes"]).ends(6).prints(end);
    if end != "REFUSED" {
        ran.prints(&format!("$ onefold converge --plan {plan}"));
    }
    assert_eq!(site.payment("P-B"), if end == "REFUSED" { "CAPTURED" } else { "REFUNDING" });
    plan
}

fn is_refunded_once(site: &Site) {
    assert_eq!((site.order("B"), site.payment("P-B")), ("REFUNDED".into(), "REFUNDED".into()));
    assert_eq!(site.column("SELECT refunded_minor FROM payments WHERE payment_id = 'P-B'"), ["1000"]);
    assert_eq!(site.column("SELECT refunded_minor FROM onefold_sandbox_charges"), ["1000"]);
    assert_eq!(site.column("SELECT kind FROM onefold_sandbox_requests"), ["REFUND"]);
}

fn a_refund_that_is_taken_and_not_finished(site: &Site) {
    let plan = begun(site, "pending", "ACCEPTED");
    site.run(&["verify", &plan])
        .ends(6)
        .prints("0 violations")
        .prints("payment P-B REFUNDING→REFUNDED ACCEPTED")
        .prints("onefold converge");
    site.run(&["converge", "--plan", &plan]).ends(0).prints("payment P-B yes the refund is done");
    site.run(&["apply", &plan, "--yes"]).ends(0);
    is_refunded_once(site);
    site.run(&["verify", &plan]).ends(0);
    site.run(&["converge", "--plan", &plan]).ends(0).prints("Nothing is in doubt.");
}

fn a_refund_whose_answer_is_lost_is_not_made_twice(site: &Site) {
    let plan = begun(site, "lose-answer", "UNKNOWN");
    let json = site.json(&["converge", "--plan", &plan]);
    assert_eq!((&json["settled"], &json["open"]), (&1.into(), &0.into()));
    site.run(&["apply", &plan, "--yes"]).ends(0);
    is_refunded_once(site);
}

fn a_refund_whose_request_is_lost_goes_out_again(site: &Site) {
    let plan = begun(site, "lose-request", "UNKNOWN");
    site.run(&["converge", "--plan", &plan])
        .ends(6)
        .prints("payment P-B no the provider knows no such refund")
        .prints("sends it again under the same key");
    site.run(&["apply", &plan, "--yes"]).ends(0);
    is_refunded_once(site);
}

fn a_refund_that_is_refused_is_for_a_person(site: &Site) {
    let plan = begun(site, "refuse", "REFUSED");
    site.run(&["apply", &plan, "--yes"]).ends(6).prints("The provider refused").prints("$ onefold plan");
    let again = site.json(&["plan"]);
    assert_eq!(again["intents"][0]["review_reasons"], serde_json::json!(["REFUND_REFUSED"]));
    assert_eq!(site.column("SELECT refunded_minor FROM onefold_sandbox_charges"), ["0"]);
}

fn charges_in_doubt_are_asked_about_and_then_decided(site: &Site) {
    let mut book = Book::new();
    book.bought("A", 0);
    book.reserved("B", 10);
    book.payment("P-B", "B", 12, "UNKNOWN");
    book.bought("C", 900);
    book.reserved("D", 910);
    book.payment("P-D", "D", 912, "UNKNOWN");
    site.provider(&[("P-B", "ok")]);
    let csv = site.path("ledgers/provider.csv");
    let told = std::fs::read_to_string(&csv).unwrap();
    std::fs::write(&csv, told + "t,pay,P-D,FAILED,1000,CNY,,ok\n").unwrap();
    site.import(&book.ledgers);
    site.freeze();
    assert_eq!(site.json(&["plan"])["intents"][0]["outcome"], "UNSETTLED");
    site.run(&["converge", "--show", "show"])
        .ends(0)
        .prints("payment P-B yes UNKNOWN → CAPTURED: the provider says CAPTURED")
        .prints("payment P-D yes UNKNOWN → FAILED: the provider says FAILED")
        .prints("onefold plan");
    let plan = site.json(&["plan"]);
    assert_eq!((&plan["intents"][0]["keep"], &plan["intents"][1]["keep"]), (&"A".into(), &"C".into()));
    let plan = plan["plan_id"].as_str().unwrap();
    site.run(&["apply", plan, "--yes"]).ends(0);
    assert_eq!((site.order("B"), site.payment("P-B")), ("CANCELLED".into(), "REFUNDED".into()));
    assert_eq!((site.order("D"), site.payment("P-D")), ("CANCELLED".into(), "FAILED".into()));
    site.run(&["converge", "--plan", plan, "--show", "show"]).fails(2, &["cannot be used with"]);
}

fn a_request_of_a_plan_before_is_told_and_settled_by_a_newer_one(site: &Site) {
    let old = begun(site, "lose-request", "UNKNOWN");
    let new = site.plan();
    for _ in 0..2 {
        site.run(&["apply", &new, "--yes"])
            .ends(6)
            .prints(&format!("payment P-B UNKNOWN the refund by {old}"))
            .prints(&format!("$ onefold converge --plan {new}"));
    }
    site.run(&["converge", "--plan", &new]).ends(0).prints("payment P-B yes the refund is done");
    site.run(&["apply", &new, "--yes"]).ends(0);
    let last = site.plan();
    site.run(&["converge", "--plan", &last]).ends(0);
    let last = site.plan();
    site.run(&["apply", &last, "--yes"]).ends(0);
    is_refunded_once(site);
}

fn a_request_is_carried_on_under_another_freeze(site: &Site) {
    let old = begun(site, "lose-request", "UNKNOWN");
    site.sql("UPDATE onefold_freezes SET lease_until_us = 1");
    let freeze = site.freeze();
    site.run(&["apply", &old, "--yes"]).fails(7, &["has lapsed"]);
    site.run_as("bob@desk", &["converge", "--plan", &old])
        .ends(6)
        .prints(&format!("who holds it by {freeze}"));
    site.run(&["converge", "--plan", &old]).ends(0).prints("payment P-B yes the refund is done");
}
