//! `onefold guard gc`: moves the records of idempotency keys down the tiers.

use clap::Args;
use serde_json::{Value, json};

use super::keys::{Storage, bytes, holder, open, stored};
use crate::commands::progress::Progress;
use crate::config::Config;
use crate::core::idempotency::Retention;
use crate::core::retention::Why;
use crate::error::Result;
use crate::execute::gc::{Gc, Swept};
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

Keys are where `once` takes them, in the journal's database, and where services
take them, beside the orders: each database of orders in which `guard install`
has made their table is gone over, and told of by itself.

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

/// What was done in one database.
struct Done {
    database: String,
    swept: Swept,
    storage: Storage,
}

pub async fn run(config: &Config, args: GcArgs) -> Result<Report> {
    let holder = holder(config);
    let mut all = Vec::new();
    for store in open(config).await? {
        let gc = Gc { store: &store, holder: &holder, batch: args.batch, dry_run: args.dry_run };
        let database = store.keys_database().label.clone();
        let progress = Progress::new(config, "moving records down the tiers");
        let swept =
            gc.run(|so_far| progress.at(format!("moved {}, kept {}", so_far.moves(), so_far.stays()))).await;
        progress.end();
        let mut swept = swept.map_err(|e| e.context(database.clone()))?;
        let policy = store.retention().await?;
        let storage = stored(config, &store, policy.as_ref().map(|set| &set.policy)).await?;
        count_the_rest(&mut swept, &storage, args.dry_run);
        all.push(Done { database, swept, storage });
    }
    let (mut swept, mut storage) = (Swept::default(), Storage::default());
    for done in &all {
        swept.add(&done.swept);
        storage = storage.and(&done.storage);
    }
    let mut json = json_of(&swept, &storage);
    json["dry_run"] = args.dry_run.into();
    let of_each = all.iter().map(|done| {
        let mut json = json_of(&done.swept, &done.storage);
        json["database"] = done.database.as_str().into();
        json
    });
    json["databases"] = of_each.collect();
    let mut report = Report::new(json);
    if args.dry_run {
        report = report.line("Nothing was changed: this is what would be.");
    }
    let are_several = all.len() > 1;
    for Done { database, swept, storage } in &all {
        if are_several {
            report = report.title(database.clone());
        }
        report = told(report, swept, storage);
    }
    Ok(storage.past(report))
}

/// Adds those that were not looked at: their window is not over.
fn count_the_rest(swept: &mut Swept, storage: &Storage, dry_run: bool) {
    let (ended, not_ended) = storage.ended();
    let still_there = |to: Retention| dry_run || to != Retention::Archive;
    let moved = swept.moved.iter().filter(|((_, to), _)| still_there(*to)).map(|(_, keys)| keys);
    let looked_at = swept.stays() + moved.sum::<u64>();
    *swept.kept.entry(Why::Window).or_default() += ended.saturating_sub(looked_at);
    *swept.kept.entry(Why::NotEnded).or_default() += not_ended;
    swept.kept.retain(|_, n| *n > 0);
}

fn json_of(swept: &Swept, storage: &Storage) -> Value {
    let moved: Vec<_> = swept
        .moved
        .iter()
        .map(|((from, to), keys)| json!({ "from": from, "to": to, "keys": keys }))
        .collect();
    json!({
        "moved": moved,
        "kept": swept.kept,
        "fenced_off": swept.fenced_off,
        "storage": storage.json(),
    })
}

/// What became of the keys of one database, and what they take.
fn told(report: Report, swept: &Swept, storage: &Storage) -> Report {
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
    report.table(tiers)
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
