//! An audit on a terminal.

use std::path::Path;

use serde_json::json;

use super::super::count;
use super::super::typing::again;
use super::sheets::AuditReport;
use crate::config::Config;
use crate::core::locks::{ALERTS, AT_ONCE, Audited, Certainty, Collected, LockFinding};
use crate::core::sheet::Sheets as _;
use crate::report::{Column, Report, Table};

/// How many examples of a finding are shown, the gravest.
pub const EXAMPLES: usize = 10;
/// How many of a warning.
const OF_A_WARNING: usize = 3;
/// How many keys are shown with what they use of their leases, and how many duplicates.
const KEYS: usize = 10;

pub fn table(config: &Config, audit: &AuditReport, rules: Option<&Path>) -> Report {
    let mut report = Report::new(json!(null)).title(audit.title()).line(about(&audit.audited, audit));
    let found = &audit.collected;
    report = report.table(tallies(found));
    if found.tallies.is_empty() {
        report = report.line(all_clear(&audit.audited));
    }
    report = came_of_it(report, audit);
    for (finding, examples) in &found.examples {
        let shown = if finding.is_death() { EXAMPLES } else { OF_A_WARNING };
        let tally = found.tallies.get(finding).copied().unwrap_or_default();
        let more = (tally.proven + tally.possible).saturating_sub(shown.min(examples.len()) as u64);
        report = report.title(format!("{finding}: {}", finding.in_words()));
        let mut table =
            Table::new([Column::exact("KEY"), Column::exact("AT"), Column::prose("WHAT HAPPENED")]);
        for example in examples.iter().take(shown) {
            let possible = match example.certainty {
                Certainty::Proven => "",
                // It may have let go without a line in the history.
                Certainty::Possible if example.first.lease_end.is_none() => " (possible)",
                Certainty::Possible
                    if example.second.as_ref().is_some_and(|h| h.owner == example.first.owner) =>
                {
                    " (possible: the two have one name, and may be one)"
                }
                Certainty::Possible if *finding == LockFinding::LetGoEarly => {
                    " (possible: clocks, the lease before it or a second try may explain it)"
                }
                Certainty::Possible => " (possible: clocks may explain it)",
            };
            table.row([example.key.clone(), example.at.to_string(), example.in_words() + possible]);
        }
        report = report.table(table);
        if more > 0 {
            report = report.line(format!("… and {more} more"));
        }
    }
    let report = alerts(config, leases(report, audit), rules);
    report.line("With every finding, as a workbook (or html, csv, json):").command(again(
        config,
        &["--rules"],
        "--format xlsx --output locks.xlsx",
    ))
}

fn about(audited: &Audited, audit: &AuditReport) -> String {
    let (Some(first), Some(last)) = (audited.first, audited.last) else { return String::new() };
    let n = |n: u64, what: &str| count(usize::try_from(n).unwrap_or(usize::MAX), what);
    let mut text = format!(
        "{} of {}, from {first} to {last}; clocks differ by up to {}",
        n(audited.events, "event"),
        n(audited.keys, "key"),
        audit.rules.skew
    );
    if audited.unknown > 0 {
        let events = n(audited.unknown, "event");
        text += &format!("; {events} by owners that held no lock then, as far as it shows");
    }
    if audited.blurred > 0 {
        text += &format!(
            "; of {} nothing is proven: more than {AT_ONCE} events were of one instant, so which of them came first is \
             not known",
            n(audited.blurred, "key")
        );
    }
    text
}

/// What a history without a finding shows. It is an all-clear only where somebody held a key, and all could be judged.
const fn all_clear(audited: &Audited) -> &'static str {
    match (audited.grants, audited.unknown) {
        (0, _) => "It shows nobody getting a key: whether two held one cannot be told from it.",
        _ if audited.blurred > 0 => {
            "It shows no two holding a key at once, as far as the order of its events is known."
        }
        (_, 0) => "At no time did two hold a key, and nothing shows that they soon will.",
        _ => {
            "Of those that it shows getting a key, no two held it at once. Whether those held it, too, of whom it does \
             not show that, cannot be told: does it begin too late, or lack lines?"
        }
    }
}

fn tallies(found: &Collected) -> Table {
    let mut table = Table::new([
        Column::exact("FINDING"),
        Column::number("PROVEN"),
        Column::number("POSSIBLE"),
        Column::exact(""),
    ]);
    for (finding, tally) in &found.tallies {
        let kind = if LockFinding::is_death(*finding) { "" } else { "warning" };
        table.row([
            finding.to_string(),
            tally.proven.to_string(),
            tally.possible.to_string(),
            kind.to_owned(),
        ]);
    }
    table
}

fn leases(report: Report, audit: &AuditReport) -> Report {
    let mut table = Table::new([
        Column::exact("KEY"),
        Column::number("HOLDS"),
        Column::number("P50"),
        Column::number("P95"),
        Column::number("MAX"),
    ]);
    let row = |key: &str, holds: u64, percents: [u32; 3]| {
        let [p50, p95, max] = percents.map(|p| format!("{p} %"));
        [key.to_owned(), holds.to_string(), p50, p95, max]
    };
    let all = &audit.audited.holds;
    if all.count() == 0 {
        return report;
    }
    table.row(row("all", all.count(), [all.quantile(50), all.quantile(95), all.greatest()]));
    for k in audit.audited.longest.iter().take(KEYS) {
        table.row(row(&k.key, k.holds, [k.p50, k.p95, k.max]));
    }
    report.title("How much of their leases holders used").table(table)
}

fn came_of_it(report: Report, audit: &AuditReport) -> Report {
    if audit.business.is_none() {
        return report;
    }
    let report = report.title("What came of it");
    let report = audit.duplicates.iter().take(KEYS).fold(report, |report, d| report.line(d.in_words()));
    audit.kinds().into_iter().fold(report, |report, (kind, all, joined)| {
        report.line(format!("{kind}: {all} in the ledgers, {joined} while two held their lock"))
    })
}

fn alerts(config: &Config, report: Report, rules: Option<&Path>) -> Report {
    let mut table = Table::new([Column::exact("ALERT"), Column::prose("WHEN"), Column::prose("BECAUSE")]);
    for alert in ALERTS {
        table.row([alert.name.to_owned(), alert.when.to_owned(), alert.because.to_owned()]);
    }
    let report = report.title("What to alert on").table(table);
    match rules {
        Some(path) => report.line(format!("As rules for Prometheus: {}", path.display())),
        None => report.line("As rules for Prometheus:").command(again(config, &[], "--rules locks.yml")),
    }
}
