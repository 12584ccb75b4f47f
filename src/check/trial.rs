//! Tries the moves on rows that are there, in transactions that are rolled back: a move changes one
//! row the first time and none the second, and the ledger then says what the move says.

use super::moves::{self, Step};
use super::source::tables_named;
use super::{Check, Outcome, Wanted};
use crate::config::Config;
use crate::core::status::Ledger;
use crate::core::time::Timestamp;
use crate::error::{Error, Result};
use crate::store::moves::Moved;
use crate::store::probe::{Decoded, Probe, Rehearsed, Site};
use crate::store::sql::parameters;

const WHAT: &str = "trial";

pub async fn check(config: &Config, site: &Site, wanted: &Wanted) -> Result<Vec<Check>> {
    let mut checks = Vec::new();
    for ledger in Ledger::ALL {
        let ids: Vec<String> =
            wanted.rows.iter().filter(|(of, _)| *of == ledger).map(|(_, id)| id.clone()).collect();
        let mut missing = ids.clone();
        for probe in site.probes(ledger) {
            let label = probe.database.label.clone();
            if let Some(check) = refused(config, site, &probe).await {
                missing.clear();
                checks.push(check.on(&label));
                continue;
            }
            let rows = match ids.is_empty() {
                true => one_a_status(&probe).await,
                false => named(&probe, &ids, wanted).await?,
            };
            missing.retain(|id| rows.iter().all(|row| row.id.as_str() != id));
            for path in paths(ledger, &rows, !ids.is_empty()) {
                checks.push(tried(config, site, &probe, &path).await.on(&label));
            }
            if ids.is_empty() {
                checks.extend(untried(ledger, &rows).map(|check| check.on(&label)));
            }
        }
        if let Some(id) = missing.first() {
            return Err(Error::usage(format!("there is no {} {id} to try moves on", ledger.row_name()))
                .hint(
                    "name a row that is there: --row LEDGER:ID, with its --tenant where several have that id",
                ));
        }
    }
    Ok(checks)
}

/// Why no move of a ledger is tried here.
async fn refused(config: &Config, site: &Site, probe: &Probe<'_>) -> Option<Check> {
    let ledger = probe.ledger;
    let row = ledger.row_name();
    if config.commands.moves.contains_key(&ledger) {
        let message = "a command makes the moves: it cannot be rolled back, and is not tried";
        return Some(Check::new(WHAT, format!("moves/{row}"), Outcome::Unproven, message));
    }
    for (file, _) in moves::files(&site.store.queries, ledger) {
        let place = format!("{file}.sql");
        if site.store.is_foreign_ledger(ledger) && !site.store.queries.is_shadowed(&file) {
            let message = "is ours, and the ledger yours: no move is tried";
            return Some(Check::new(WHAT, place, Outcome::Unproven, message).hint("write it"));
        }
        // Some databases commit by themselves before they drop or alter.
        let faults = moves::faults(site, probe, &file);
        if faults.iter().any(|fault| fault.is_harm) {
            let message = "is refused as it stands: no move is tried";
            return Some(Check::new(WHAT, place, Outcome::Refused, message).hint("correct it first"));
        }
        if faults.iter().any(|fault| fault.is_hidden) {
            let message = "hides what it does, which may be a commit: no move is tried";
            return Some(Check::new(WHAT, place, Outcome::Unproven, message));
        }
        let text = site.store.queries.find(&file).unwrap_or_default();
        let Some(tables) = tables_named(text, probe.database.dialect) else {
            let message =
                "which tables it writes is not seen, so no move is tried: it might not be rolled back";
            return Some(Check::new(WHAT, place, Outcome::Unproven, message));
        };
        match probe.without_transactions(&tables).await {
            Ok(left) if left.is_empty() => {}
            Ok(left) => {
                let (table, engine) = &left[0];
                let message = format!(
                    "{table} is kept by {engine}, which has no transactions: no move is tried, none could be rolled back"
                );
                return Some(
                    Check::new(WHAT, place, Outcome::Refused, message)
                        .hint(format!("ALTER TABLE {table} ENGINE=InnoDB; apply needs it too")),
                );
            }
            Err(refusal) => return Some(Check::new(WHAT, place, Outcome::Unproven, refusal.message())),
        }
    }
    None
}

async fn one_a_status(probe: &Probe<'_>) -> Vec<Decoded> {
    let mut rows = Vec::new();
    for status in probe.ledger.statuses() {
        // A ledger that cannot be read was named before.
        rows.extend(probe.row_in_status(status).await.ok().flatten());
    }
    rows
}

async fn named(probe: &Probe<'_>, ids: &[String], wanted: &Wanted) -> Result<Vec<Decoded>> {
    let mut rows = probe.rows_named(ids.to_vec()).await.map_err(|r| Error::failure(r.message()))?;
    let tenants = &wanted.scope.tenants;
    rows.retain(|row| tenants.is_empty() || tenants.contains(&row.tenant_id));
    let twice = rows.iter().enumerate().find(|(at, row)| rows[..*at].iter().any(|other| other.id == row.id));
    match twice {
        Some((_, row)) => {
            Err(Error::usage(format!("several tenants have a {} {}", probe.ledger.row_name(), row.id))
                .hint("say whose with --tenant"))
        }
        None => Ok(rows),
    }
}

/// A row and the moves to make of it, the last of which is tried; those before lead to its status.
struct Path<'r> {
    row: &'r Decoded,
    steps: Vec<Step>,
}

/// For each move one row to try it on: one in its from-status, else one that a move before takes
/// there. Of rows that were named, every move of each.
fn paths(ledger: Ledger, rows: &[Decoded], of_each: bool) -> Vec<Path<'_>> {
    let mut paths = Vec::new();
    for step in moves::made(ledger) {
        let there = rows.iter().filter(|row| row.status == step.0);
        let direct = there.map(|row| Path { row, steps: vec![*step] });
        let before = moves::made(ledger).iter().filter(|(_, to)| *to == step.0);
        let led = before.flat_map(|before| {
            let rows = rows.iter().filter(|row| row.status == before.0);
            rows.map(|row| Path { row, steps: vec![*before, *step] })
        });
        // A row that is there says more than one that a move before has made.
        let mut all: Vec<_> = direct.collect();
        if all.is_empty() || of_each {
            all.extend(led);
        }
        all.truncate(if of_each { all.len() } else { 1 });
        paths.extend(all);
    }
    paths
}

fn untried(ledger: Ledger, rows: &[Decoded]) -> Option<Check> {
    let tried: Vec<Step> =
        paths(ledger, rows, false).iter().filter_map(|path| path.steps.last().copied()).collect();
    let left: Vec<_> = moves::made(ledger)
        .iter()
        .filter(|step| !tried.contains(step))
        .map(|(from, to)| format!("{from}→{to}"))
        .collect();
    let row = ledger.row_name();
    (!left.is_empty()).then(|| {
        let message = format!("no {row} was there to try {}", left.join(", "));
        Check::new(WHAT, format!("moves/{row}.sql"), Outcome::Warning, message)
            .hint(format!("name one that may be tried: --row {ledger}:ID"))
    })
}

async fn tried(config: &Config, site: &Site, probe: &Probe<'_>, path: &Path<'_>) -> Check {
    let Path { row, steps } = path;
    let (from, to) = steps[steps.len() - 1];
    let file = site.store.queries.move_name(probe.ledger, to);
    let rehearsed: Vec<_> = steps
        .iter()
        .map(|(from, to)| Rehearsed {
            from,
            to,
            refund_minor: row.money.filter(|_| *to == "REFUNDED").map_or(0, |(left, ..)| left),
            amount: row.money.map(|(left, _, currency)| (left, currency)),
            actor: &config.actor,
            now: Timestamp::from_datetime(&chrono::Utc::now()),
        })
        .collect();
    let what = format!("{} {} {from}→{to}", probe.ledger.row_name(), row.id);
    let place = format!("{file}.sql");
    let refused = |message: String, hint: &str| {
        Check::new(WHAT, &place, Outcome::Refused, format!("{what}: {message}")).hint(hint)
    };
    let results = match probe.rehearse(&rehearsed, row).await {
        Ok(results) => results,
        Err(e) => {
            let hint = e.hint.clone().unwrap_or_else(|| "nothing was kept; correct the SQL".to_owned());
            return refused(e.message, &hint);
        }
    };
    let now = match results.last() {
        Some((Moved::Now(now), Moved::NotAsSeen(_))) if results.len() == steps.len() => now,
        Some((Moved::Now(_), Moved::Now(_))) => {
            return refused(
                "1 row the first time and 1 the second: its guard does not see that it was moved".to_owned(),
                "compare the status (and the version) in the WHERE of its first statement",
            );
        }
        Some((Moved::NotAsSeen(found), _)) => {
            let is = found
                .as_ref()
                .map_or("gone".to_owned(), |found| format!("{}, version {}", found.status, found.version));
            return refused(
                format!("0 rows the first time, though the row is {is}"),
                "its WHERE must find the row as the ledger's SQL gives it: the same tenant, id, status and version",
            );
        }
        _ => return refused("was not tried".to_owned(), "correct the move before it"),
    };
    if to == "REFUNDED"
        && let Some((left, back, _)) = row.money
        && now.refunded_minor != Some(left + back)
    {
        let says = now.refunded_minor.map_or("nothing".to_owned(), |n| n.to_string());
        return refused(
            format!("gives back {left}, and the ledger then says {says} refunded, not {}", left + back),
            "add :refund_minor (or :refund_major) to what is refunded in this move",
        );
    }
    let text = site.store.queries.find(&file).unwrap_or_default();
    if parameters(text).contains(&"version") && now.version == row.version {
        let message = format!(
            "{what}: moved, and its version stays {}: another's change in between is not seen",
            now.version
        );
        return Check::new(WHAT, &place, Outcome::Warning, message)
            .hint("set a new version, such as :next_version; one that the database sets by itself changes with the transaction");
    }
    Check::new(WHAT, &place, Outcome::Ok, format!("{what}: 1 row the first time, 0 the second, rolled back"))
}
