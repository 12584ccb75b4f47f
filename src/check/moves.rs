//! The guarded writes: which are needed, which file serves each, and whether it is proven.

use super::guard::{Expected, Fault, judge};
use super::source::Source;
use super::{Check, Outcome};
use crate::config::Config;
use crate::core::status::Ledger;
use crate::store::probe::{Probe, Refusal, Site};
use crate::store::sql::{alternatives, statements};
use crate::store::{Dialect, Queries};

const WHAT: &str = "moves";

/// A move of a status machine, from and to.
pub type Step = (&'static str, &'static str);

/// The moves that onefold makes, of those that the contract has (sections 1 and 5).
pub const fn made(ledger: Ledger) -> &'static [Step] {
    match ledger {
        Ledger::Orders => &[
            ("PENDING_PAYMENT", "PAID"),
            ("PENDING_PAYMENT", "CANCELLING"),
            ("CANCELLING", "CANCELLED"),
            ("PAID", "REFUNDING"),
            ("TICKETED", "REFUNDING"),
            ("REFUNDING", "REFUNDED"),
        ],
        Ledger::Payments => &[
            ("INITIATED", "AUTHORIZED"),
            ("INITIATED", "CAPTURED"),
            ("INITIATED", "FAILED"),
            ("UNKNOWN", "AUTHORIZED"),
            ("UNKNOWN", "CAPTURED"),
            ("UNKNOWN", "FAILED"),
            ("AUTHORIZED", "CAPTURED"),
            ("AUTHORIZED", "VOIDING"),
            ("VOIDING", "VOIDED"),
            ("VOIDING", "AUTHORIZED"),
            ("CAPTURED", "REFUNDING"),
            ("REFUNDING", "REFUNDED"),
            ("REFUNDING", "CAPTURED"),
        ],
        Ledger::Inventory => &[("HELD", "RELEASED"), ("CONFIRMED", "RELEASED")],
        Ledger::Messages => &[
            ("QUEUED", "QUARANTINED"),
            ("IN_FLIGHT", "QUARANTINED"),
            ("DEAD", "QUARANTINED"),
            ("QUARANTINED", "QUEUED"),
        ],
    }
}

/// The files that serve the moves of a ledger, each with the statuses that it leads to.
pub fn files(queries: &Queries, ledger: Ledger) -> Vec<(String, Vec<&'static str>)> {
    let mut files: Vec<(String, Vec<&'static str>)> = Vec::new();
    for (_, to) in made(ledger) {
        let file = queries.move_name(ledger, to);
        match files.iter_mut().find(|(known, _)| *known == file) {
            Some((_, targets)) if targets.contains(to) => {}
            Some((_, targets)) => targets.push(to),
            None => files.push((file, vec![to])),
        }
    }
    files
}

pub async fn check(config: &Config, site: &Site) -> Vec<Check> {
    let mut checks = Vec::new();
    for ledger in Ledger::ALL {
        if let Some(command) = config.commands.moves.get(&ledger) {
            checks.push(by_command(ledger, command));
            continue;
        }
        for (file, targets) in files(&site.store.queries, ledger) {
            if site.store.is_foreign_ledger(ledger) && !site.store.queries.is_shadowed(&file) {
                // That it is missing was said of the configuration.
                continue;
            }
            for probe in site.probes(ledger) {
                let found = of(site, &probe, &file, &targets).await;
                checks.extend(found.into_iter().map(|check| check.on(&probe.database.label)));
            }
        }
    }
    checks.extend(config.commands.after_apply.as_ref().and_then(|command| not_there("after_apply", command)));
    checks
}

async fn of(site: &Site, probe: &Probe<'_>, file: &str, targets: &[&'static str]) -> Vec<Check> {
    let text = site.store.queries.find(file).unwrap_or_default();
    let faults = faults(site, probe, file);
    let (is_harm, is_hidden) = (faults.iter().any(|f| f.is_harm), faults.iter().any(|f| f.is_hidden));
    let mut checks: Vec<Check> = faults.into_iter().map(|fault| told(file, fault)).collect();
    // What is known to be wrong is not sent to the database too.
    let all = if is_harm { Vec::new() } else { alternatives(text) };
    for (a, alternative) in all.iter().enumerate() {
        for (s, sql) in statements(alternative).into_iter().enumerate() {
            let at = match all.len() {
                1 => format!("statement {}", s + 1),
                _ => format!("alternative {}, statement {}", a + 1, s + 1),
            };
            let refused = probe.prepare_move(sql, !is_hidden).await.err();
            checks.extend(refused.map(|refusal| not_taken(file, &at, &refusal)));
        }
    }
    if checks.is_empty() {
        let message = format!("is guarded, and prepared, for the moves to {}", targets.join(", "));
        checks.push(Check::new(WHAT, format!("{file}.sql"), Outcome::Ok, message));
    }
    checks
}

/// What a parser finds wrong or unproven about a file of moves.
pub fn faults(site: &Site, probe: &Probe<'_>, file: &str) -> Vec<Fault> {
    let (ledger, dialect) = (probe.ledger, probe.database.dialect);
    let parameters = site.move_parameters(ledger);
    let only_tenant = only_tenant(site, ledger, dialect);
    let serves = files(&site.store.queries, ledger);
    let is_general = serves.iter().any(|(name, targets)| name == file && targets.len() > 1);
    let expected =
        Expected { dialect, parameters: &parameters, only_tenant: only_tenant.as_deref(), is_general };
    judge(site.store.queries.find(file).unwrap_or_default(), &expected)
}

/// The tenant of every row of a ledger, where its SQL always gives the same.
fn only_tenant(site: &Site, ledger: Ledger, dialect: Dialect) -> Option<String> {
    let text = site.store.queries.find(&format!("ledgers/{ledger}"))?;
    Source::read(text, dialect)?.constant("tenant_id")
}

fn told(file: &str, fault: Fault) -> Check {
    let outcome = if fault.is_harm { Outcome::Refused } else { Outcome::Unproven };
    let check = Check::new(WHAT, place(file, &fault.at), outcome, fault.message);
    match fault.hint {
        Some(hint) => check.hint(hint),
        None => check,
    }
}

fn place(file: &str, at: &str) -> String {
    if at.is_empty() { format!("{file}.sql") } else { format!("{file}.sql, {at}") }
}

fn not_taken(file: &str, at: &str, refusal: &Refusal) -> Check {
    let check = Check::new(WHAT, place(file, at), Outcome::Refused, refusal.message());
    check.hint(match refusal {
        Refusal::Denied(_) => "grant the database user what this statement does",
        Refusal::Other(_) => {
            "correct the SQL: the database does not prepare it; parameters are text, and BIGINT where they \
             end in _us or _minor: compare a number with CAST(:id AS …)"
        }
    })
}

fn by_command(ledger: Ledger, command: &[String]) -> Check {
    not_there(&format!("[exec] {}", ledger.row_name()), command).unwrap_or_else(|| {
        let program = command.first().map_or("", String::as_str);
        let message = format!("{program} makes the moves: that it compares before it sets is not seen");
        Check::new(WHAT, format!("moves/{}", ledger.row_name()), Outcome::Unproven, message)
            .hint("try it by hand: {\"from\": …} of another status must be answered with {\"moved\": false}")
    })
}

/// Where a command's program is not to be found.
fn not_there(setting: &str, command: &[String]) -> Option<Check> {
    let refused = |message: String| Some(Check::new(WHAT, super::settings::FILE, Outcome::Refused, message));
    let Some(program) = command.first() else {
        return refused(format!("{setting} names no program"))
            .map(|check| check.hint("write [\"program\", \"argument\", …]"));
    };
    if is_there(program) {
        return None;
    }
    refused(format!("{setting} runs {program}, which is no program here"))
        .map(|check| check.hint("write its whole path, and make it executable"))
}

fn is_there(program: &str) -> bool {
    let is_program = |path: &std::path::Path| {
        std::fs::metadata(path).is_ok_and(|file| file.is_file() && is_executable(&file))
    };
    if program.contains(std::path::MAIN_SEPARATOR) {
        return is_program(program.as_ref());
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| is_program(&folder.join(program)))
}

#[cfg(unix)]
fn is_executable(file: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.permissions().mode() & 0o111 != 0
}

#[cfg(not(unix))]
fn is_executable(_: &std::fs::Metadata) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_move_that_is_made_is_one_of_the_contract() {
        for ledger in Ledger::ALL {
            for (from, to) in made(ledger) {
                assert!(ledger.may_move(from, to), "{ledger}: {from} to {to}");
            }
        }
    }
}
