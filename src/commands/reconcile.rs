//! `onefold reconcile`: the joined view of a scope; changes nothing.

use std::collections::BTreeMap;

use clap::Args;
use serde_json::json;

use super::decided::{LISTED, intents, outside, tell_sums};
use super::everything::{from_everything, is_quick};
use super::flags::{PolicyFlags, ScopeFlags, ZoneFlag};
use super::plan::detailed_exit;
use super::progress::Progress;
use super::statement::{self, StatementFlags};
use super::{count, freeze_over, now};
use crate::config::Config;
use crate::core::money::Currency;
use crate::core::plain::{Basis, Listed, Listing};
use crate::core::plan::{Finding, Outcome, Plan, PlannedIntent, make};
use crate::core::tally::Tally;
use crate::error::Result;
use crate::report::{Column, Report, Table};

/// Join the four ledgers and name every difference; changes nothing
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  onefold reconcile --show S-204
  onefold reconcile --user U-7318 --from '2026-11-11 20:00' \\
      --timezone Asia/Shanghai --json
  onefold reconcile --statement settled.csv --amounts decimal \\
      --map charge=Reference,amount=Gross,currency=Currency,type=Type

Shows the intents with two or more orders or any finding, and each finding with the number of
intents that have it and the money that is captured on these.

With --statement, compares a provider's settlement file with the payment ledger instead, and ends
with 5 where they differ. --from and --to then say when the charges were captured that the file
must have; without them that is the period of the file's own times.")]
pub struct ReconcileArgs {
    /// Judge leases and holds as of this time [default: when the scope was frozen, else now]
    #[arg(long, value_name = "TIME", conflicts_with = "statement")]
    as_of: Option<String>,
    /// List every intent or difference, however many there are
    #[arg(long)]
    all: bool,
    /// End with 3 where steps would be planned, with 6 where a person or the provider must decide
    #[arg(long, conflicts_with = "statement")]
    detailed_exitcode: bool,
    #[command(flatten)]
    zone: ZoneFlag,
    #[command(flatten)]
    scope: ScopeFlags,
    #[command(flatten)]
    policy: PolicyFlags,
    #[command(flatten)]
    statement: StatementFlags,
}

#[derive(Default)]
struct FindingSum {
    intents: usize,
    captured: BTreeMap<Currency, i128>,
}

pub async fn run(config: &Config, args: ReconcileArgs) -> Result<Report> {
    let mut scope = args.scope.scope(args.zone)?;
    if let Some(path) = &args.statement.statement {
        return statement::run(config, path, &args.statement, &scope, args.zone, args.all).await;
    }
    let as_of = args.as_of.as_deref().map(|t| args.zone.time("--as-of", t)).transpose()?;
    let store = config.open_to_read().await?;
    let now = now();
    let freeze = freeze_over(&store, &mut scope, None, now).await?;
    let as_of = as_of.or(freeze.map(|f| f.frozen_at)).unwrap_or(now);
    let policy = args.policy.policy();
    let quick = match is_quick(&store, &scope, None).await? {
        true => {
            let basis = |evidence| Ok(Basis { policy: policy.clone(), as_of, evidence });
            let listing = Listing { intents: Listed::Notable, texts: false };
            // Where that fails, as without room for the ledgers in the temporary folder, they are read into memory.
            from_everything(config, &store, &scope, basis, listing, now).await.ok().flatten()
        }
        false => None,
    };
    let (listed, all, decided_sums, outside_sums) = if let Some(quick) = quick {
        let all = quick.tally();
        let Plan { intents, sums, outside_sums, .. } = quick.plan;
        (intents, all, sums, outside_sums)
    } else {
        let progress = Progress::new(config, "reading and joining");
        let ledgers = store.read_scope(&scope).await?;
        let evidence = store.evidence_of(&ledgers).await?;
        let decided = make(&ledgers, &scope, &policy, as_of, &evidence)?;
        progress.end();
        let all = Tally::of(&decided.intents);
        (decided.intents, all, decided.sums, decided.outside_sums)
    };

    let mut notable: Vec<&PlannedIntent> = listed.iter().filter(|i| i.is_notable()).collect();
    // What there is to do first; a show has many clean purchases with some finding.
    notable.sort_by_key(|i| i.outcome == Outcome::Clean);
    let sums = by_finding(&notable);
    let findings: Vec<_> = sums
        .iter()
        .map(|(finding, sum)| json!({ "finding": finding, "intents": sum.intents, "captured": sum.captured }))
        .collect();
    let limit = if args.all { notable.len() } else { LISTED };
    let report = Report::new(json!({
        "scope": scope,
        "as_of": as_of,
        "intents_in_scope": all.intents(),
        "intents": notable.iter().map(|i| json!({
            "intent_id": i.intent_id, "tenant_id": i.tenant_id, "user_id": i.user_id, "show_id": i.show_id,
            "session_id": i.session_id, "orders": i.orders, "orphans": i.orphans, "findings": i.findings,
            "outcome": i.outcome, "captured": i.captured, "evidence": i.evidence,
        })).collect::<Vec<_>>(),
        "findings": findings,
        "sums": decided_sums,
        "outside_sums": outside_sums,
    }))
    .title(scope.in_words())
    .line(format!(
        "as of {as_of}: {} in scope, {} with two or more orders or a finding",
        count(all.intents(), "intent"),
        notable.len()
    ))
    .table(finding_table(&sums))
    .table(intents(notable.iter().copied().take(limit)));
    let report = match notable.len().saturating_sub(limit) {
        0 => report,
        more => report.line(format!("… and {}; all of them with --all", count(more, "more intent"))),
    };
    let report = tell_sums(report, &decided_sums).table(outside(&outside_sums));
    if !args.detailed_exitcode {
        return Ok(report);
    }
    Ok(report.exit(detailed_exit(&all)))
}

fn by_finding(intents: &[&PlannedIntent]) -> BTreeMap<Finding, FindingSum> {
    let mut sums: BTreeMap<Finding, FindingSum> = BTreeMap::new();
    for intent in intents {
        for finding in &intent.findings {
            let sum = sums.entry(*finding).or_default();
            sum.intents += 1;
            for (currency, amount) in &intent.captured {
                *sum.captured.entry(*currency).or_insert(0) += amount;
            }
        }
    }
    sums
}

fn finding_table(sums: &BTreeMap<Finding, FindingSum>) -> Table {
    let mut table =
        Table::new([Column::exact("FINDING"), Column::number("INTENTS"), Column::exact("CAPTURED ON THESE")]);
    for (finding, sum) in sums {
        let captured: Vec<_> = sum.captured.iter().map(|(currency, amount)| currency.show(*amount)).collect();
        table.row([finding.to_string(), sum.intents.to_string(), captured.join(" + ")]);
    }
    table
}
