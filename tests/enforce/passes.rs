//! Our own moves pass, and nobody else's.

use super::service::*;
use crate::common::book::Book;
use crate::common::site::{Kind, Site};
use crate::on_each_database;

on_each_database![
    a_plan_is_carried_out_under_its_freeze,
    a_message_is_requeued_under_a_freeze,
    no_pass_is_left_behind,
    a_freeze_that_is_not_held_lets_no_plan_be_applied,
    a_forged_pass_opens_nothing,
    a_pass_that_is_open_serves_nobody_else,
];

/// One purchase as three orders, two of them paid.
pub fn tripled() -> Book {
    let mut book = Book::new();
    for (i, id) in ["O-1", "O-2", "O-3"].into_iter().enumerate() {
        let seconds = i64::try_from(i).unwrap();
        book.order(id, seconds, "PENDING_PAYMENT");
        book.hold(&format!("H-{id}"), id, "HELD");
        book.message(&format!("M-{id}"), id, "ticket.issue", "QUEUED");
    }
    for id in ["O-1", "O-2"] {
        book.payment(&format!("P-{id}"), id, 10, "CAPTURED");
    }
    book
}

fn a_plan_is_carried_out_under_its_freeze(site: &Site) {
    let mut service = guarded(site);
    site.import(&tripled().ledgers);
    let frozen = freeze(site, &["--show", "show"]);
    let plan = site.plan();
    let applied = site.json(&["apply", &plan, "--yes"]);
    assert_eq!(applied["freeze_mode"], "enforced");
    assert_eq!([site.order("O-1"), site.order("O-2"), site.order("O-3")], ["PAID", "CANCELLED", "CANCELLED"]);
    assert_eq!([site.payment("P-O-1"), site.payment("P-O-2")], ["CAPTURED", "REFUNDED"]);
    let released = site.column("SELECT hold_id FROM inventory WHERE status = 'RELEASED' ORDER BY hold_id");
    assert_eq!(released, ["H-O-2", "H-O-3"]);
    site.run(&["verify", &plan]).ends(0);
    service.may_not(&set_hold("H-O-1", "RELEASED"));
    site.run(&["thaw", &frozen, "--accept-lapsing"]).ends(0);
    service.may(&set_hold("H-O-1", "RELEASED"));
}

fn a_message_is_requeued_under_a_freeze(site: &Site) {
    let mut service = guarded(site);
    service.may(&INSIDE.message("M-1", "mail", "null", "QUARANTINED"));
    freeze(site, &["--show", "show"]);
    site.run(&["requeue", "M-1", "--tenant", "t", "--because", "it is due"]).ends(0);
    service.may_not(&set_message("M-1", "IN_FLIGHT"));
}

fn no_pass_is_left_behind(site: &Site) {
    let _service = guarded(site);
    site.import(&tripled().ledgers);
    freeze(site, &["--show", "show"]);
    let plan = site.plan();
    site.run(&["apply", &plan, "--yes"]).ends(0);
    assert!(site.column("SELECT token FROM onefold_pass").is_empty());
}

fn a_freeze_that_is_not_held_lets_no_plan_be_applied(site: &Site) {
    let mut service = guarded(site);
    site.import(&tripled().ledgers);
    let frozen = freeze(site, &["--show", "show"]);
    let plan = site.plan();
    let before = site.ledgers();
    for breach in [
        "UPDATE onefold_frozen SET lease_until_us = 0",
        "UPDATE onefold_frozen SET ended = 1",
        "UPDATE onefold_frozen SET token = 7",
        "UPDATE onefold_gate SET frozen = 0",
    ] {
        service.may(breach);
        let renew = format!("onefold freeze --renew {frozen} --enforce");
        site.run(&["apply", &plan, "--yes"]).fails(7, &[&frozen, "enforced no longer", &renew]);
        site.run(&["freeze", "--renew", &frozen, "--enforce"]).ends(0);
    }
    service.may("INSERT INTO onefold_pass (token) VALUES ('forged')");
    site.run(&["apply", &plan, "--yes"]).fails(7, &[&frozen, "onefold_pass"]);
    assert_eq!(site.ledgers(), before);
    service.may("DELETE FROM onefold_pass");
    site.run(&["apply", &plan, "--yes"]).ends(0);
}

fn a_forged_pass_opens_nothing(site: &Site) {
    let mut service = guarded(site);
    service.may(&INSIDE.order("O-1", "PAID"));
    freeze(site, &["--show", "show"]);
    match site.kind() {
        Kind::Sqlite => drop(service.tries("CREATE TEMP TABLE onefold_pass (token TEXT)").unwrap()),
        Kind::Postgres => drop(service.tries("SET onefold.pass = 'forged'").unwrap()),
        Kind::Mariadb => drop(service.tries("SET @onefold_pass = 'forged'").unwrap()),
    }
    if site.kind() == Kind::Sqlite {
        service.may("INSERT INTO temp.onefold_pass VALUES ('forged')");
    }
    if site.kind() == Kind::Postgres {
        // A table of his own goes before ours on his search path, and not on that of the trigger.
        service.tries("CREATE TEMP TABLE onefold_pass (token TEXT)").unwrap();
        service.may("INSERT INTO pg_temp.onefold_pass VALUES ('forged')");
        service
            .tries("CREATE TEMP TABLE onefold_gate AS SELECT 1 AS id, 0 AS generation, 0 AS frozen")
            .unwrap();
    }
    service.may_not(&set_order("O-1", "TICKETED"));
    service.may_not(&INSIDE.payment("P-1", "O-1", "INITIATED"));
}

fn a_pass_that_is_open_serves_nobody_else(site: &Site) {
    let mut service = guarded(site);
    service.may(&INSIDE.order("O-1", "PAID"));
    service.may(&INSIDE.order("O-2", "PAID"));
    freeze(site, &["--show", "show"]);
    let mut holder = Service::of(&site.url);
    let open = match site.kind() {
        Kind::Sqlite => {
            holder.tries("BEGIN IMMEDIATE").unwrap();
            "INSERT INTO onefold_pass (token) VALUES ('real')"
        }
        Kind::Postgres => {
            holder.tries("BEGIN").unwrap();
            "INSERT INTO onefold_pass (token) SELECT set_config('onefold.pass', 'real', true)"
        }
        Kind::Mariadb => {
            holder.tries("BEGIN").unwrap();
            "INSERT INTO onefold_pass (token, connection_id) VALUES (@onefold_pass := 'real', CONNECTION_ID())"
        }
    };
    holder.may(open);
    match site.kind() {
        Kind::Sqlite => drop(service.tries("PRAGMA busy_timeout = 0").unwrap()),
        Kind::Postgres => drop(service.tries("SET onefold.pass = 'real'").unwrap()),
        Kind::Mariadb => {
            service.tries("SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED").unwrap();
            service.tries("SET @onefold_pass = 'real'").unwrap();
        }
    }
    service.tries(&set_order("O-1", "TICKETED")).unwrap_err();
    holder.may(&set_order("O-2", "TICKETED"));
    holder.tries("ROLLBACK").unwrap();
    service.may_not(&set_order("O-1", "TICKETED"));
    // Nor is it good for the next transaction of the one who had it.
    holder.may_not(&set_order("O-2", "TICKETED"));
}
