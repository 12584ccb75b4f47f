//! `onefold import`: CSV files into the embedded ledgers.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};

use super::files::{FileFlags, ledger_files, rows_of};
use super::flags::ZoneFlag;
use super::progress::Progress;
use super::{count, now, provider_file};
use crate::config::Config;
use crate::core::status::Ledger;
use crate::error::Result;
use crate::report::{Column, Report, Table};
use crate::store::journal::{Entry, Event};

/// Load four CSV files into the ledgers: all or nothing, never over what is there
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  onefold import exports/
  onefold import --orders o.csv --payments p.csv --inventory i.csv \\
      --messages m.csv --timezone Asia/Shanghai --amounts decimal \\
      --map order_no=order_id --status-map orders.10=PAID

A folder holds orders.csv, payments.csv, inventory.csv and messages.csv, and
may hold provider.csv: what the sandbox provider knows of charges.")]
pub struct ImportArgs {
    /// A folder with the four files
    dir: Option<PathBuf>,
    #[arg(long, value_name = "FILE")]
    orders: Option<PathBuf>,
    #[arg(long, value_name = "FILE")]
    payments: Option<PathBuf>,
    #[arg(long, value_name = "FILE")]
    inventory: Option<PathBuf>,
    #[arg(long, value_name = "FILE")]
    messages: Option<PathBuf>,
    /// Check everything and write nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    zone: ZoneFlag,
    #[command(flatten)]
    files: FileFlags,
}

pub async fn run(config: &Config, args: ImportArgs) -> Result<Report> {
    let each =
        [args.orders.as_ref(), args.payments.as_ref(), args.inventory.as_ref(), args.messages.as_ref()];
    let files = ledger_files(args.dir.as_deref(), each)?;
    let rows = rows_of(config, files, args.files.options(args.zone)?)?;
    let provider_file = args.dir.map(|dir| dir.join(provider_file::NAME)).filter(|path| path.is_file());
    let charges = provider_file.map(|path| provider_file::read(&path)).transpose()?.unwrap_or_default();

    let store = config.open(!args.dry_run).await?;
    if !args.dry_run {
        store.init_tables().await?;
    }
    store.must_be_ready().await?;
    let progress = Progress::new(config, if args.dry_run { "comparing" } else { "importing" });
    let imported = store.import(&*rows, args.dry_run, |ledger, rows| progress.rows(ledger, rows)).await;
    progress.end();
    if !args.dry_run {
        // The indexes, also where nothing was imported: the tables may be new.
        let progress = Progress::new(config, "indexing");
        store.init_indexes().await?;
        store.take_statistics().await?;
        progress.end();
    }
    let imported = imported?;

    let mut told = 0;
    if !args.dry_run {
        told = store.sandbox_learn(&charges).await?;
        let added: u64 = imported.iter().map(|i| i.added).sum();
        let note = format!("{added} rows from files");
        store.append(&Entry::new(Event::Imported, &config.actor, now()).note(note)).await?;
    }
    let mut table =
        Table::new([Column::exact("LEDGER"), Column::number("ADDED"), Column::number("ALREADY THERE")]);
    let mut ledgers = serde_json::Map::new();
    for (ledger, imported) in Ledger::ALL.into_iter().zip(imported) {
        table.row([ledger.to_string(), imported.added.to_string(), imported.present.to_string()]);
        ledgers.insert(ledger.to_string(), json!(imported));
    }
    let report = Report::new(json!({
        "database": store.journal().label,
        "dry_run": args.dry_run,
        "ledgers": Value::Object(ledgers),
        "provider_charges": told,
    }))
    .table(table);
    let report = if charges.is_empty() {
        report
    } else {
        report.line(format!(
            "provider.csv: the books of the sandbox {} {}; they count where the sandbox is the provider.",
            if args.dry_run { "would know of" } else { "know of" },
            count(charges.len(), "charge")
        ))
    };
    Ok(if args.dry_run { report.line("Nothing was written (--dry-run).") } else { report })
}
