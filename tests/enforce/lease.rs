//! The copies follow their freeze: lapsed, renewed, taken over; and writes that are under way.

use std::time::{Duration, Instant};

use super::service::*;
use crate::common::site::{Kind, Site};
use crate::on_each_database;

on_each_database![
    a_lapsed_freeze_holds_nothing_until_it_is_renewed,
    a_freeze_that_is_taken_over_names_its_new_holder,
    a_freeze_over_a_lapsed_one_holds_alone,
    the_database_judges_by_its_own_clock,
    a_freeze_waits_for_writes_that_are_under_way,
    a_transaction_that_keeps_to_what_it_saw_before_is_not_let_through,
];

fn a_lapsed_freeze_holds_nothing_until_it_is_renewed(site: &Site) {
    let mut service = guarded(site);
    service.may(&INSIDE.order("O-1", "PAID"));
    service.may(&INSIDE.order("O-2", "PAID"));
    let frozen = freeze(site, &["--show", "show", "--for", "1500ms"]);
    service.may_not(&set_order("O-1", "TICKETED"));
    std::thread::sleep(Duration::from_millis(1600));
    service.may(&set_order("O-1", "TICKETED"));
    assert!(site.column("SELECT freeze_id FROM onefold_live_freezes").is_empty());
    site.run(&["freeze", "--renew", &frozen]).ends(0);
    assert!(service.may_not(&set_order("O-2", "TICKETED")).contains(&frozen));
}

fn a_freeze_that_is_taken_over_names_its_new_holder(site: &Site) {
    let mut service = guarded(site);
    service.may(&INSIDE.order("O-1", "PAID"));
    let frozen = freeze(site, &["--show", "show"]);
    site.run_as("bob@desk", &["freeze", "--take-over", &frozen, "--reason", "she is asleep"]).ends(0);
    assert!(service.may_not(&set_order("O-1", "TICKETED")).contains("(bob@desk)"));
    assert_eq!(site.column("SELECT token FROM onefold_frozen"), ["2"]);
}

fn a_freeze_over_a_lapsed_one_holds_alone(site: &Site) {
    let mut service = guarded(site);
    service.may(&INSIDE.order("O-1", "PAID"));
    freeze(site, &["--show", "show", "--for", "1ms"]);
    std::thread::sleep(Duration::from_millis(50));
    let new = freeze(site, &["--show", "show"]);
    assert!(service.may_not(&set_order("O-1", "TICKETED")).contains(&new));
    assert_eq!(site.column("SELECT frozen FROM onefold_gate"), ["1"]);
    thaw(site, &new);
    assert_eq!(site.column("SELECT frozen FROM onefold_gate"), ["0"]);
    service.may(&set_order("O-1", "TICKETED"));
}

fn the_database_judges_by_its_own_clock(site: &Site) {
    let mut service = guarded(site);
    service.may(&INSIDE.order("O-1", "PAID"));
    freeze(site, &["--show", "show", "--for", "1h"]);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_micros();
    let until: u128 = site.column("SELECT lease_until_us FROM onefold_frozen")[0].parse().unwrap();
    let left = until.checked_sub(now).unwrap() / 1_000_000;
    assert!((3590..=3600).contains(&left), "{left} s are left");
    service.may("UPDATE onefold_frozen SET lease_until_us = lease_until_us - 3600000000");
    service.may(&set_order("O-1", "TICKETED"));
}

fn a_freeze_waits_for_writes_that_are_under_way(site: &Site) {
    if site.kind() == Kind::Sqlite {
        return; // There is one writer, and a freeze is one.
    }
    let mut service = guarded(site);
    service.may(&INSIDE.order("O-1", "PAID"));
    service.tries("BEGIN").unwrap();
    service.may(&set_order("O-1", "TICKETED"));
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let frozen = scope.spawn(|| {
            freeze(site, &["--show", "show"]);
            begun.elapsed()
        });
        std::thread::sleep(Duration::from_millis(1200));
        service.tries("COMMIT").unwrap();
        let took = frozen.join().unwrap();
        assert!(
            took > Duration::from_millis(1200),
            "{took:?}: nothing moves after a freeze has said that it holds"
        );
    });
    // One that does not end keeps the freeze from being one.
    service.may(&OUTSIDE.order("O-2", "PAID"));
    service.tries("BEGIN").unwrap();
    service.may(&set_order("O-2", "TICKETED"));
    let line = ["freeze", "--enforce", "--show", "other", "--reason", "x"];
    site.run(&line).fails(1, &["run it again"]);
    assert_eq!(site.column("SELECT COUNT(*) FROM onefold_live_freezes"), ["1"]);
    service.tries("COMMIT").unwrap();
    site.run(&line).ends(0);
}

fn a_transaction_that_keeps_to_what_it_saw_before_is_not_let_through(site: &Site) {
    let mut service = guarded(site);
    service.may(&INSIDE.order("O-1", "PAID"));
    let begin: &[&str] = match site.kind() {
        Kind::Sqlite => &["BEGIN"],
        Kind::Postgres => &["BEGIN ISOLATION LEVEL REPEATABLE READ"],
        Kind::Mariadb => &["SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ", "BEGIN"],
    };
    for sql in begin {
        service.tries(sql).unwrap();
    }
    service.tries("SELECT status FROM orders").unwrap();
    freeze(site, &["--show", "show"]);
    let refusal = service.tries(&set_order("O-1", "TICKETED")).unwrap_err();
    service.tries("ROLLBACK").unwrap();
    assert_eq!(site.order("O-1"), "PAID", "{refusal}");
    for sql in begin {
        service.tries(sql).unwrap();
    }
    service.may_not(&set_order("O-1", "TICKETED"));
}
