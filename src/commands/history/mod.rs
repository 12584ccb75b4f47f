//! `onefold history`: the journal.

mod export;
mod verify;

use std::collections::BTreeSet;

use clap::{Args, Subcommand};
use serde_json::json;

use crate::config::Config;
use crate::core::money::Currency;
use crate::core::time::Timestamp;
use crate::error::Result;
use crate::report::Report;
use crate::store::Store;
use crate::store::journal::{Entry, Search};

/// Show the journal: who did what to which row, when and why
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  onefold history
  onefold history --order O-501
  onefold history --plan PLAN --json
  onefold history verify
  onefold history export --output journal.jsonl"
)]
pub struct HistoryArgs {
    #[command(subcommand)]
    verb: Option<Verb>,
    /// Entries about this order and the intents that it was in
    #[arg(long, value_name = "ORDER")]
    order: Option<String>,
    /// Entries about this plan
    #[arg(long, value_name = "PLAN")]
    plan: Option<String>,
    /// Entries about rows of this tenant
    #[arg(long, value_name = "TENANT")]
    tenant: Option<String>,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Verify(verify::VerifyArgs),
    Export(export::ExportArgs),
}

pub async fn run(config: &Config, args: HistoryArgs) -> Result<Report> {
    match args.verb {
        Some(Verb::Verify(args)) => return verify::run(config, args).await,
        Some(Verb::Export(args)) => return export::run(config, args).await,
        None => {}
    }
    let store = config.open_to_read().await?;
    let intents = match &args.order {
        Some(order) => intents_of(&store, order).await?,
        None => Vec::new(),
    };
    let search = Search { order: args.order, plan: args.plan, tenant: args.tenant, intents };
    let entries = store.history(&search).await?;
    let mut report = Report::new(json!({ "entries": entries }));
    if entries.is_empty() {
        return Ok(report.line("The journal has no such entry."));
    }
    for entry in &entries {
        let [who, what] = in_words(entry);
        report = report.line(who).line(what);
    }
    Ok(report)
}

/// The intents of the newest plans that an order is in: where no step moved it, the journal has no row of it.
async fn intents_of(store: &Store, order: &str) -> Result<Vec<String>> {
    let mut intents = BTreeSet::new();
    for head in store.newest_plans().await? {
        // One whose digest does not match tells nothing that could be trusted.
        let Ok(saved) = store.plan_by_id(&head.plan_id).await else { continue };
        let of_order = saved.plan.intents.iter().filter(|i| i.orders.iter().any(|id| id.as_str() == order));
        intents.extend(of_order.map(|i| i.intent_id.clone()));
    }
    Ok(intents.into_iter().collect())
}

/// An entry as two lines: when and who; what and why.
fn in_words(entry: &Entry) -> [String; 2] {
    let at = entry.at.map(|t: Timestamp| t.to_string()).unwrap_or_default();
    let mut what = vec![entry.event.clone()];
    match (entry.ledger, &entry.row_id) {
        (Some(ledger), Some(id)) => what.push(format!("{} {id}", ledger.row_name())),
        (None, Some(key)) => what.push(format!("key {key}")),
        (_, None) => {}
    }
    if let (Some(from), Some(to)) = (&entry.from, &entry.to) {
        what.push(format!("{from} → {to}"));
    }
    if let (Some(amount), Some(code)) = (entry.amount_minor, &entry.currency) {
        what.push(match code.parse::<Currency>() {
            Ok(currency) => currency.show(amount.into()),
            Err(_) => format!("{amount} {code}"),
        });
    }
    let tenant = entry.tenant_id.as_ref().filter(|t| t.as_str() != "default").map(|t| format!("tenant {t}"));
    let of: Vec<_> = [&entry.freeze_id, &entry.plan_id, &entry.intent_id, &tenant]
        .into_iter()
        .flatten()
        .cloned()
        .collect();
    let note = entry.note.as_ref().map(|n| format!(": {n}")).unwrap_or_default();
    [format!("{at}  {}  {}", entry.actor, of.join(" ")), format!("    {}{note}", what.join(" "))]
}
