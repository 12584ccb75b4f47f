//! `onefold freeze`

use serde_json::json;

use crate::common::book::Book;
use crate::common::site::{OWNER, Site};
use crate::on_each_database;

on_each_database![
    says_what_is_held_by_whom_and_what_is_only_recorded,
    an_overlap_is_refused_and_names_the_holder,
    renewed_by_its_owner_only_and_also_when_it_has_lapsed,
    taking_over_fences_off_the_old_token,
    a_lapsed_freeze_gives_way_to_a_new_one,
    what_is_missing_or_unknown_is_told,
    local_times_that_came_twice_or_never_are_refused,
    a_reason_is_one_line_and_a_scope_of_long_ids_fits,
];

const FREEZE: [&str; 5] = ["freeze", "--show", "show", "--reason", "retries double the orders"];

fn says_what_is_held_by_whom_and_what_is_only_recorded(site: &Site) {
    site.run(&["init"]).ends(0);
    site.run(&FREEZE)
        .ends(0)
        .prints("frozen: show show")
        .prints(&format!("held by {OWNER} under token 1 until 2"))
        .prints("retries double the orders")
        .prints("auto-payment")
        .prints("stock-release")
        .prints("not enforced");
    site.run(&["freeze", "--show", "other", "--reason", "x", "--for", "31d"])
        .fails(2, &["--for", "longer than"]);
    let some = ["freeze", "--user", "u", "--show", "other", "--reason", "x", "--for", "1h30m"];
    let json = site.json(&[&some[..], &["--effects", "ticketing,messages"]].concat());
    let freeze = &json["freeze"];
    assert_eq!(freeze["effects"], json!(["ticketing", "messages"]));
    assert_eq!(freeze["owner"], OWNER);
    assert_eq!(freeze["token"], 2);
    assert_eq!(freeze["scope"]["users"], json!(["u"]));
    let micros = |name: &str| crate::common::time(freeze[name].as_str().unwrap()).micros();
    assert_eq!(micros("lease_until") - micros("frozen_at"), 90 * 60 * 1_000_000);
    assert!(json["effects"].as_array().unwrap().iter().all(|e| e["enforced"] == false), "{json:#}");
}

fn an_overlap_is_refused_and_names_the_holder(site: &Site) {
    site.run(&["init"]).ends(0);
    let freeze = site.freeze();
    let wider = ["freeze", "--user", "u", "--reason", "mine"];
    site.run_as("bob@desk", &wider).fails(7, &[&freeze, OWNER, "a test", "--take-over"]);
    site.run(&FREEZE).fails(7, &["it is yours", &format!("--renew {freeze}")]);
    site.run(&["freeze", "--show", "other", "--reason", "apart"]).ends(0);
}

fn renewed_by_its_owner_only_and_also_when_it_has_lapsed(site: &Site) {
    site.run(&["init"]).ends(0);
    let freeze = site.freeze();
    site.run_as("bob@desk", &["freeze", "--renew", &freeze]).fails(7, &[OWNER]);
    let until = |line: &[&str]| crate::common::time(&site.id(line, "/freeze/lease_until"));
    let first = until(&["freeze", "--renew", &freeze, "--for", "1h"]);
    assert!(until(&["freeze", "--renew", &freeze, "--for", "2h"]) > first);
    assert!(until(&["freeze", "--renew", &freeze, "--for", "1m"]) > first, "a renewal never shortens");
    site.sql("UPDATE onefold_freezes SET lease_until_us = 1");
    site.run(&["status"]).ends(0).prints("lapsed");
    site.run(&["freeze", "--renew", &freeze]).ends(0).prints("renewed");
    site.run(&["thaw", &freeze]).ends(0);
    site.run(&["freeze", "--renew", &freeze]).fails(7, &["is thawed"]);
    site.run(&["freeze", "--renew", "F-none"]).fails(2, &["no freeze F-none", "onefold status"]);
}

fn taking_over_fences_off_the_old_token(site: &Site) {
    let mut book = Book::new();
    book.bought("A", 0);
    book.bought("B", 10);
    site.import(&book.ledgers);
    let freeze = site.freeze();
    let plan = site.plan();
    let take = ["freeze", "--take-over", &freeze];
    site.run_as("bob@desk", &take).fails(2, &["--reason"]);
    let reason = ["--reason", "the laptop is dead", "--json"];
    let taken = site.run_as("bob@desk", &[&take[..], &reason].concat()).ends(0).json();
    assert_eq!(taken["freeze"]["token"], 2);
    assert_eq!(taken["freeze"]["owner"], "bob@desk");
    site.run(&["freeze", "--renew", &freeze]).fails(7, &["bob@desk"]);
    site.run(&["apply", &plan, "--yes"]).fails(7, &["bob@desk", "--take-over"]);
    assert_eq!(site.order("B"), "PAID");
    site.run(&["history"]).ends(0).prints("took-over").prints("the laptop is dead");
    site.run_as("bob@desk", &["apply", &plan, "--yes"]).ends(0);
}

fn a_lapsed_freeze_gives_way_to_a_new_one(site: &Site) {
    site.run(&["init"]).ends(0);
    let lapsed = site.freeze();
    site.sql("UPDATE onefold_freezes SET lease_until_us = 1");
    site.run_as("bob@desk", &FREEZE).ends(0);
    site.run(&["freeze", "--renew", &lapsed]).fails(7, &["another took its scope"]);
    site.run(&["history"]).ends(0).prints("lapsed").prints("its lease ran out at");
}

fn what_is_missing_or_unknown_is_told(site: &Site) {
    site.run(&["init"]).ends(0);
    site.run(&["freeze", "--show", "show"]).fails(2, &["needs a reason"]);
    site.run(&["freeze", "--show", "show", "--reason", " "]).fails(2, &["needs a reason"]);
    site.run(&["freeze", "--reason", "x"]).fails(2, &["needs a tenant, show, user or session"]);
    let with = |more: &[&str]| site.run(&[&FREEZE, more].concat());
    with(&["--effects", "tickets"]).fails(2, &["tickets", "auto-payment", "ticketing", "stock-release"]);
    with(&["--for", "soon"]).fails(2, &["soon", "--for"]);
    with(&["--from", "2026-11-11 20:14", "--to", "2026-11-11 20:14"]).fails(2, &["is not before --to"]);
    with(&["--from", "11.11."]).fails(2, &["--from", "11.11.", "--timezone"]);
    with(&["--from", "2026-11-11 20:14", "--timezone", "Peking"]).fails(2, &["Peking", "IANA"]);
    site.run(&["status"]).ends(0).prints("No freeze is live.");
}

fn local_times_that_came_twice_or_never_are_refused(site: &Site) {
    site.run(&["init"]).ends(0);
    let from = |time| site.run(&[&FREEZE[..], &["--timezone", "Europe/Berlin", "--from", time]].concat());
    from("2026-10-25 02:30").fails(2, &["twice", "2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"]);
    from("2026-03-29 02:30").fails(2, &["set forward over it"]);
    from("2026-10-25 03:30").ends(0).prints("from 2026-10-25T02:30:00Z");
}

fn a_reason_is_one_line_and_a_scope_of_long_ids_fits(site: &Site) {
    site.run(&["init"]).ends(0);
    for reason in ["two\nlines", "red \x1b[31m text", "a\tb"] {
        site.run(&["freeze", "--show", "show", "--reason", reason]).fails(2, &["--reason holds", "one line"]);
    }
    let show = "9f3e1b2c-1e10-4c1d-9e55-3d3f6a7b8c9d";
    let user = "0b6a77d0-51ad-4a8c-8d3e-5f7b1c2d3e4f";
    let line = ["freeze", "--show", show, "--user", user, "--reason", "both of them"];
    for ran in [site.run(&line).ends(0), site.run(&["status"]).ends(0)] {
        assert!(ran.stdout.contains(show) && ran.stdout.contains(user), "{ran}");
        assert!(ran.stdout.lines().all(|l| l.chars().count() <= 80), "{ran}");
    }
}
