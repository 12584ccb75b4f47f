//! `onefold status`

use serde_json::json;

use crate::common::site::{OWNER, Site};
use crate::{doubled, on_each_database};

on_each_database![nothing_is_said_plainly, what_is_held_planned_and_in_flight_is_listed];

fn nothing_is_said_plainly(site: &Site) {
    site.run(&["init"]).ends(0);
    site.run(&["status"])
        .ends(0)
        .prints("No freeze is live.")
        .prints("No plan has been made.")
        .prints("No step is in flight.");
    let json = site.json(&["status"]);
    for list in ["freezes", "plans", "steps_in_flight"] {
        assert_eq!(json[list], json!([]));
    }
}

fn what_is_held_planned_and_in_flight_is_listed(site: &Site) {
    site.provider(&[("P-B", "pending")]);
    site.import(&doubled().ledgers);
    let (freeze, plan) = (site.freeze(), site.plan());
    site.run(&["apply", &plan, "--yes"]).ends(6);
    site.run(&["status"])
        .ends(0)
        .prints(&format!("{freeze} LIVE advisory 29m5"))
        .prints(&format!("{plan} OPEN {freeze}"))
        .prints("payment P-B REFUNDING→REFUNDED ACCEPTED")
        .prints(&format!("$ onefold converge --plan {plan}"));
    let json = site.json(&["status"]);
    assert_eq!(json["freezes"][0]["live"], true);
    assert!((1780..=1800).contains(&json["freezes"][0]["seconds_left"].as_i64().unwrap()));
    assert_eq!(json["plans"][0]["made_by"], OWNER);
    assert_eq!(json["steps_in_flight"].as_array().unwrap().len(), 1);
    assert_eq!(json["steps_in_flight"][0]["state"], "ACCEPTED");
    site.sql("UPDATE onefold_freezes SET lease_until_us = 1");
    site.run(&["status"])
        .ends(0)
        .prints(&format!("{freeze} LAPSED advisory -"))
        .prints(&format!("$ onefold freeze --renew {freeze}"))
        .does_not_print("LIVE");
    assert_eq!(site.json(&["status"])["freezes"][0]["live"], false);
}
