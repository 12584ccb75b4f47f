//! `onefold check`: is this configuration good, before the night it is needed?

use clap::Args;
use serde_json::{Value, json};

use super::count;
use super::flags::{ScopeFlags, ZoneFlag};
use crate::check::{self, Check, Findings, Outcome, Wanted, sample::Sample};
use crate::config::Config;
use crate::core::money::Currency;
use crate::core::status::Ledger;
use crate::error::{Exit, Result};
use crate::report::{Column, Report, Table};

/// Prove a configuration: databases, SQL files, guards, rights and indexes; changes nothing
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  onefold check
  onefold check --show S-204
  onefold check --try-moves --row orders:O-1

Ends with 0 where all is proven or accepted, with 2 where something is refused
or unproven. What cannot be proven is accepted by its file's name in
onefold.toml, with a reason:
  [accept]
  \"moves/message\" = \"the broker's tool compares the state; tried on staging\"")]
pub struct CheckArgs {
    /// Also try every move on a row that is there, in a transaction that is rolled back
    #[arg(long)]
    try_moves: bool,
    /// A row to try the moves of a ledger on, such as orders:O-1; may be repeated [default: one is
    /// picked for each status]
    #[arg(long = "row", value_name = "LEDGER:ID", requires = "try_moves", value_parser = row)]
    rows: Vec<(Ledger, String)>,
    #[command(flatten)]
    scope: ScopeFlags,
    #[command(flatten)]
    zone: ZoneFlag,
}

fn row(text: &str) -> Result<(Ledger, String), String> {
    let (ledger, id) =
        text.split_once(':').filter(|(_, id)| !id.is_empty()).ok_or("not LEDGER:ID, such as orders:O-1")?;
    let ledger = ledger.parse().map_err(|e| format!("{ledger:?} is {e}"))?;
    Ok((ledger, id.to_owned()))
}

pub async fn run(config: &Config, args: CheckArgs) -> Result<Report> {
    let wanted = Wanted { scope: args.scope.scope(args.zone)?, try_moves: args.try_moves, rows: args.rows };
    let findings = check::run(config, &wanted).await?;
    let counts: Vec<_> = Outcome::ALL.iter().map(|o| (o.as_str(), findings.count(*o))).collect();
    let json = json!({
        "checks": findings.checks,
        "samples": samples_by_ledger(&findings.samples),
        "counts": counts.iter().map(|(name, n)| ((*name).to_owned(), json!(n))).collect::<serde_json::Map<_, _>>(),
    });
    let mut report = Report::new(json);
    for check in findings.checks.iter().filter(|c| c.result != Outcome::Ok) {
        report = open(report, check);
    }
    report = report.title("Proven").table(proven(&findings));
    for check in findings.checks.iter().filter(|c| c.result == Outcome::Ok && is_database(c)) {
        report = report.line(format!("{}: {}", check.place, check.message));
    }
    for ledger in Ledger::ALL {
        let rows: Vec<_> = findings.samples.iter().filter(|s| s.ledger == ledger).collect();
        if !rows.is_empty() {
            report = report.title(format!("A sample of {ledger}")).table(sample_table(ledger, &rows));
        }
    }
    let counts: Vec<_> = counts.into_iter().map(|(name, n)| format!("{n} {name}")).collect();
    let verdict = if findings.is_proven() {
        "This configuration is proven."
    } else {
        "This configuration is not proven."
    };
    let report = report.title(verdict).line(format!(
        "{}: {}",
        count(findings.checks.len(), "check"),
        counts.join(", ")
    ));
    Ok(if findings.is_proven() { report } else { report.exit(Exit::Usage) })
}

/// Adds what is not simply well, with what there is to type in whole words.
fn open(report: Report, check: &Check) -> Report {
    let report = report.title(format!("{}  {}", check.result.as_str().to_uppercase(), check.place));
    let report = report.line(format!("  {}", check.message));
    let others = check.databases.len().saturating_sub(1);
    let report = match check.databases.first() {
        Some(one) if others == 0 => report.line(format!("  on {one}")),
        Some(one) => report.line(format!("  on {one} and {others} more")),
        None => report,
    };
    match &check.hint {
        Some(hint) => report.line(format!("  → {hint}")),
        None => report,
    }
}

/// Whether it is about a database itself, not about a file.
fn is_database(check: &Check) -> bool {
    ["connection", "journal", "rights"].contains(&check.what)
}

/// What is well, in one line for each kind and place; what is said of several things is said once.
fn proven(findings: &Findings) -> Table {
    let mut table = Table::new([Column::exact("CHECK"), Column::exact("WHERE"), Column::prose("WHAT")]);
    let mut lines: Vec<(&str, &str, &str, Vec<&str>)> = Vec::new();
    for check in findings.checks.iter().filter(|c| c.result == Outcome::Ok && !is_database(c)) {
        let place = check.place.split(" in ").next().unwrap_or(&check.place);
        let (about, said) = check.message.split_once(": ").unwrap_or(("", &check.message));
        // The row that a move was tried on is in the JSON: its id may be long.
        let about = if check.what == "trial" { about.rsplit(' ').next().unwrap_or(about) } else { about };
        match lines.iter_mut().find(|(what, at, known, _)| (*what, *at, *known) == (check.what, place, said))
        {
            Some((.., things)) => things.push(about),
            None => lines.push((check.what, place, said, vec![about])),
        }
    }
    for (what, place, said, things) in lines {
        let text = match things.as_slice() {
            [""] => said.to_owned(),
            ["", ..] => format!("{said}, {} times", things.len()),
            _ => format!("{}: {said}", things.join(", ")),
        };
        table.row([what.to_owned(), place.to_owned(), text]);
    }
    table
}

fn sample_table(ledger: Ledger, rows: &[&Sample]) -> Table {
    let id = match ledger {
        Ledger::Orders => "order_id",
        Ledger::Payments => "payment_id",
        Ledger::Inventory => "hold_id",
        Ledger::Messages => "message_id",
    };
    let what = match ledger {
        Ledger::Orders | Ledger::Payments => "amount_minor",
        Ledger::Inventory => "quantity",
        Ledger::Messages => "topic",
    };
    let columns = [id, "status", "show_id", "user_id", what, "created_at"];
    let title =
        |name: &str| name.split("_id").next().unwrap_or(name).trim_end_matches("_minor").replace('_', " ");
    let mut table = Table::new(columns.iter().map(|name| Column::exact(&title(name).to_uppercase())));
    for sample in rows {
        let currency = sample.row.get("currency").and_then(Value::as_str);
        let currency: Option<Currency> = currency.and_then(|code| code.parse().ok());
        table.row(columns.map(|name| match (sample.row.get(name), currency) {
            (Some(Value::String(text)), _) => text.clone(),
            (Some(Value::Number(n)), Some(currency)) if name == "amount_minor" => {
                currency.show(n.as_i64().unwrap_or_default().into())
            }
            (None | Some(Value::Null), _) => "-".to_owned(),
            (Some(value), _) => value.to_string(),
        }));
    }
    table
}

fn samples_by_ledger(samples: &[Sample]) -> Value {
    let of = |ledger: Ledger| samples.iter().filter(|s| s.ledger == ledger).collect::<Vec<_>>();
    Ledger::ALL
        .into_iter()
        .map(|ledger| (ledger.to_string(), json!(of(ledger))))
        .collect::<serde_json::Map<_, _>>()
        .into()
}
