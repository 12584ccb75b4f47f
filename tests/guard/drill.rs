//! What a drill counts, with the guard and without it, whatever goes wrong.

use serde_json::Value;

use crate::common::site::{Kind, Site};
use crate::on_each_database;

on_each_database![
    with_the_guard_one_order_and_without_it_one_for_each_request,
    an_answer_that_is_lost_is_asked_for_again,
    a_connection_that_is_lost_leaves_a_key_that_is_taken_over,
    those_who_do_not_wait_are_told_that_it_is_being_processed,
    an_owner_who_wakes_after_its_lease_completes_nothing,
    another_amount_under_the_same_key_is_refused_by_name,
    many_rounds_never_show_two,
];

/// A drill's JSON, with what it counted.
#[track_caller]
fn drill(site: &Site, flags: &[&str]) -> Value {
    site.run(&["init"]).ends(0);
    site.json(&[&["guard", "drill"], flags].concat())
}

#[track_caller]
fn counted(drill: &Value, expected: &[(&str, u64)]) {
    for (name, n) in expected {
        assert_eq!(drill["counts"][name], *n, "{name}: {drill:#}");
    }
    assert_eq!(drill["rounds_violated"], 0, "{drill:#}");
    assert_eq!(drill["orders"]["least_of_a_round"], 1, "{drill:#}");
    assert_eq!(drill["orders"]["most_of_a_round"], 1, "{drill:#}");
}

fn with_the_guard_one_order_and_without_it_one_for_each_request(site: &Site) {
    let with = drill(site, &[]);
    counted(&with, &[("inserts", 1), ("reuses", 7), ("refusals", 0), ("take_overs", 0)]);
    let latency = |name: &str| with["latency_us"][name].as_u64().unwrap();
    assert!(0 < latency("p50") && latency("p50") <= latency("p95") && latency("p95") <= latency("max"));
    let without = drill(site, &["--without-guard"]);
    assert_eq!(
        (&without["orders"]["all"], &without["counts"]["inserts"]),
        (&8.into(), &8.into()),
        "{without:#}"
    );
    assert_eq!(without["guard"], false);
    site.run(&["guard", "drill", "--requests", "3"])
        .ends(0)
        .prints("inserts 1 orders that were committed")
        .prints("reuses 2 answers with an order that was there")
        .prints("Each purchase left one order, and every answer is that order.");
    site.run(&["guard", "drill", "--requests", "3", "--without-guard"])
        .ends(0)
        .prints("3 orders of 1 purchase")
        .prints("A demonstration, so it ends with 0.");
}

fn an_answer_that_is_lost_is_asked_for_again(site: &Site) {
    let with = drill(site, &["--fault", "lose-answer"]);
    counted(&with, &[("inserts", 1), ("lost_answers", 1), ("reuses", 8)]);
    let without = drill(site, &["--fault", "lose-answer", "--without-guard"]);
    assert_eq!(without["orders"]["all"], 9, "the client asked again, and got another: {without:#}");
}

fn a_connection_that_is_lost_leaves_a_key_that_is_taken_over(site: &Site) {
    // In the first round after the key was taken, in the second in the middle of the effect.
    let with = drill(site, &["--fault", "crash-after-commit", "--rounds", "2"]);
    counted(&with, &[("inserts", 2), ("crashes", 2), ("reuses", 14)]);
    assert!(with["counts"]["take_overs"].as_u64() >= Some(2), "{with:#}");
    let without = drill(site, &["--fault", "crash-after-commit", "--without-guard"]);
    assert_eq!(without["orders"]["all"], 9, "{without:#}");
}

fn those_who_do_not_wait_are_told_that_it_is_being_processed(site: &Site) {
    let with = drill(site, &["--fault", "slow"]);
    counted(&with, &[("inserts", 1), ("still_processing", 7), ("reuses", 7), ("take_overs", 0)]);
    let line = ["guard", "drill", "--fault", "slow", "--concurrency", "1"];
    site.run(&line).fails(2, &["needs others beside"]);
}

fn an_owner_who_wakes_after_its_lease_completes_nothing(site: &Site) {
    let with = drill(site, &["--fault", "lease-over", "--rounds", "2"]);
    counted(&with, &[("inserts", 2), ("reuses", 14)]);
    // On a busy machine one who has taken over may itself be late.
    let count = |name: &str| with["counts"][name].as_u64().unwrap();
    assert!(count("replaced") >= 2 && count("take_overs") == count("replaced"), "{with:#}");
}

fn another_amount_under_the_same_key_is_refused_by_name(site: &Site) {
    let with = drill(site, &["--fault", "other-digest"]);
    counted(&with, &[("inserts", 1), ("refusals", 1), ("reuses", 6)]);
    assert_eq!(with["differing"], serde_json::json!(["amount_minor"]), "{with:#}");
    let without = drill(site, &["--fault", "other-digest", "--without-guard"]);
    assert_eq!(without["orders"]["all"], 8, "{without:#}");
}

fn many_rounds_never_show_two(site: &Site) {
    let (requests, rounds) =
        if std::env::var_os("ONEFOLD_TEST_HUNT").is_some() { (50, 1000) } else { (10, 5) };
    let with = drill(site, &["--requests", &requests.to_string(), "--rounds", &rounds.to_string()]);
    counted(&with, &[("inserts", rounds), ("reuses", rounds * (requests - 1))]);
    assert_eq!(with["rounds"], rounds);
    let kind = match site.kind() {
        Kind::Sqlite => "sqlite",
        Kind::Postgres => "postgres",
        Kind::Mariadb => "mysql",
    };
    assert!(with["database"].as_str().unwrap().starts_with(kind), "{with:#}");
}
