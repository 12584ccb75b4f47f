//! What the triggers cost while no freeze is live. Measured only in a hunt, and on a machine that does nothing else.

use std::time::{Duration, Instant};

use super::service::*;
use crate::common::site::{Kind, Site};
use crate::on_each_database;

on_each_database![the_triggers_cost_little_in_quiet_times];

const ROWS: usize = 20_000;
/// Statements in one transaction: it is they that are measured, not the disk.
const AT_ONCE: usize = 1000;

/// How long a statement takes, run again and again with another id.
fn each(site: &Site, service: &mut Service, statement: &str, series: &str) -> Duration {
    let placeholder = if site.kind() == Kind::Postgres { "$1" } else { "?" };
    let statement = statement.replace("':id'", placeholder);
    let begun = Instant::now();
    for i in 0..ROWS {
        if i % AT_ONCE == 0 {
            service.tries("BEGIN").unwrap();
        }
        service.runs(&statement, &format!("{series}-{i}"));
        if i % AT_ONCE == AT_ONCE - 1 {
            service.tries("COMMIT").unwrap();
        }
    }
    begun.elapsed() / u32::try_from(ROWS).unwrap()
}

fn the_triggers_cost_little_in_quiet_times(site: &Site) {
    if std::env::var_os("ONEFOLD_TEST_HUNT").is_none() {
        return;
    }
    site.run(&["init"]).ends(0);
    let mut service = Service::of(&site.url);
    let mut best = [[Duration::MAX; 4]; 2];
    for round in 0..2 {
        for (guarded, best) in best.iter_mut().enumerate() {
            site.run(&["init", if guarded == 1 { "--enforce" } else { "--enforce=off" }]).ends(0);
            let of_tenant = |status| format!("{} AND tenant_id = 't'", set_order(":id", status));
            let statements = [
                INSIDE.order(":id", "PENDING_PAYMENT"),
                INSIDE.payment(":id", ":id", "INITIATED"),
                of_tenant("PAID"),
                of_tenant("REFUNDING"),
            ];
            let took = statements.map(|sql| each(site, &mut service, &sql, &format!("{round}{guarded}")));
            for (best, took) in best.iter_mut().zip(took) {
                *best = took.min(*best);
            }
        }
    }
    let what = ["INSERT of an order", "INSERT of a payment INITIATED", "order → PAID", "order → REFUNDING"];
    for ((what, without), with) in what.iter().zip(best[0]).zip(best[1]) {
        eprintln!("{:?}: {what}: {without:?} without triggers, {with:?} with them", site.kind());
    }
}
