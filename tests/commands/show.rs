//! `onefold show`

use crate::common::site::Site;
use crate::{doubled, on_each_database};

on_each_database![
    shows_what_was_planned_when_the_ledgers_have_moved_on,
    explains_one_intent_by_id_by_its_beginning_and_by_order,
    says_what_it_does_not_know,
];

fn shows_what_was_planned_when_the_ledgers_have_moved_on(site: &Site) {
    site.import(&doubled().ledgers);
    site.freeze();
    let plan = site.plan();
    site.run(&["apply", &plan, "--yes"]).ends(0);
    site.run(&["show", &plan])
        .ends(0)
        .prints(&plan)
        .prints("ENDED, made at")
        .prints("KEEP 1 2")
        .prints("sha256:");
    let json = site.json(&["show", &plan]);
    assert_eq!(json["state"], "ENDED");
    assert_eq!(json["plan"]["intents"][0]["keep"], "A");
}

fn explains_one_intent_by_id_by_its_beginning_and_by_order(site: &Site) {
    site.import(&doubled().ledgers);
    let json = site.json(&["plan"]);
    let plan = json["plan_id"].as_str().unwrap();
    let intent = json["intents"][0]["intent_id"].as_str().unwrap();
    for name in [intent, &intent[..6], "A", "B", "u"] {
        site.run(&["show", plan, "--intent", name])
            .ends(0)
            .prints(&format!("{intent}: KEEP"))
            .prints("row 3 of the table: of the live orders that are paid and backed by stock")
            .prints("findings: DUPLICATE_ORDERS")
            .prints("A PAID 10.00 CNY 10.00 kept: paid at")
            .prints("A was paid first")
            .prints("1 message M-B QUEUED QUARANTINED")
            .prints("payment P-B CAPTURED REFUNDING 10.00 CNY");
    }
    let explained = site.json(&["show", plan, "--intent", "B"]);
    assert_eq!(explained["evidence"][1]["backed"], true);
    assert_eq!(explained["decided_by"], 3);
}

fn says_what_it_does_not_know(site: &Site) {
    let mut book = doubled();
    book.bought("C", 900);
    site.import(&book.ledgers);
    let plan = site.plan();
    site.run(&["show", "PL-none"]).fails(2, &["no plan PL-none", "onefold status"]);
    site.run(&["show", &plan, "--intent", "u"]).fails(2, &["2 intents of", "go by u"]);
    site.run(&["show", &plan, "--intent", "Z"])
        .fails(2, &["has no intent Z", &format!("onefold show {plan}")]);
    site.run(&["show", &plan, "--intent", "I-"]).fails(2, &["2 intents of", "name one of I-"]);
}
