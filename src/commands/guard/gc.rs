//! `onefold guard gc`: moves the records of idempotency keys down the tiers.

use clap::Args;
use serde_json::json;

use super::keys::{bytes, holder, open, stored};
use crate::commands::progress::Progress;
use crate::config::Config;
use crate::core::idempotency::Retention;
use crate::core::retention::Why;
use crate::error::Result;
use crate::execute::gc::Gc;
use crate::report::{Column, Report, Table};

/// Move the records of idempotency keys down the tiers that `guard retention` has set
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  onefold guard gc --dry-run
  onefold guard gc
  onefold guard gc --batch 1000 --json

Only what has ended moves, when its tier's window is over by the database's
clock, and neither an open plan nor a step that has not ended names its order,
payment or key. What may be tried again and what is UNKNOWN stays as it is. A
key that was held past its lease while its command may have run becomes
UNKNOWN: for `once --query` or `once settle`, never for the bin.

It may be run twice, on two machines at once, and killed at any moment: each
batch is one transaction, and each record moves only as it was seen.")]
pub struct GcArgs {
    /// Count what would move, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// How many records one transaction moves at most
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    batch: u32,
}

pub async fn run(config: &Config, args: GcArgs) -> Result<Report> {
    let store = open(config).await?;
    let holder = holder(config);
    let gc = Gc { store: &store, holder: &holder, batch: args.batch, dry_run: args.dry_run };
    let progress = Progress::new(config, "moving records down the tiers");
    let swept =
        gc.run(|so_far| progress.at(format!("moved {}, kept {}", so_far.moves(), so_far.stays()))).await;
    progress.end();
    let mut swept = swept?;
    let policy = store.retention().await?;
    let storage = stored(config, &store, policy.as_ref().map(|set| &set.policy)).await?;
    let (ended, not_ended) = storage.ended();
    // Those that were not looked at: their window is not over.
    let still_there = |to: Retention| args.dry_run || to != Retention::Archive;
    let moved = swept.moved.iter().filter(|((_, to), _)| still_there(*to)).map(|(_, keys)| keys);
    let looked_at = swept.stays() + moved.sum::<u64>();
    let within = ended.saturating_sub(looked_at);
    *swept.kept.entry(Why::Window).or_default() += within;
    *swept.kept.entry(Why::NotEnded).or_default() += not_ended;
    swept.kept.retain(|_, n| *n > 0);

    let moved: Vec<_> = swept
        .moved
        .iter()
        .map(|((from, to), keys)| json!({ "from": from, "to": to, "keys": keys }))
        .collect();
    let report = Report::new(json!({
        "dry_run": args.dry_run,
        "moved": moved,
        "kept": swept.kept,
        "fenced_off": swept.fenced_off,
        "storage": storage.json(),
    }));
    let report =
        if args.dry_run { report.line("Nothing was changed: this is what would be.") } else { report };
    let mut table = Table::new([Column::exact("KEYS"), Column::number("HOW MANY"), Column::prose("WHY")]);
    for ((from, to), keys) in &swept.moved {
        table.row([format!("{from} → {to}"), keys.to_string(), "its window is over".to_owned()]);
    }
    if swept.fenced_off > 0 {
        table.row([
            "PROCESSING → UNKNOWN".to_owned(),
            swept.fenced_off.to_string(),
            "held past its lease; settle it with `onefold once settle`".to_owned(),
        ]);
    }
    for (why, keys) in &swept.kept {
        table.row(["kept".to_owned(), keys.to_string(), in_words(*why).to_owned()]);
    }
    let report = if table.is_empty() { report.line("There is no key.") } else { report.table(table) };
    let mut tiers = Table::new([Column::exact("TIER"), Column::number("KEYS"), Column::number("BYTES")]);
    for tier in Retention::ALL.iter().copied() {
        let (keys, size) = storage.of(tier);
        tiers.row([tier.to_string(), keys.to_string(), bytes(size)]);
    }
    Ok(storage.past(report.table(tiers)))
}

const fn in_words(why: Why) -> &'static str {
    match why {
        Why::Window => "its window is not over",
        Why::KeepFor => "it was made with a longer --keep-for",
        Why::NotEnded => "it has not ended, may be tried again, or is UNKNOWN",
        Why::OpenPlan => "an open plan names its order, payment or key",
        Why::UnfinishedStep => "a step that has not ended is about its order or payment",
        Why::Meanwhile => "it was asked for in this very moment",
        Why::ArchivedBefore => "its key is archived already: somebody ran it again without asking there",
    }
}
