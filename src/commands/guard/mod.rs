//! `onefold guard`: keep a second row from being written at all.

mod gc;
mod keys;
mod retention;

use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;

use super::count;
use super::progress::Progress;
use crate::config::Config;
use crate::error::{Error, Exit, Result};
use crate::report::{Column, Report, Table};
use crate::store::Store;
use crate::store::unique::{Standing, Unique};

/// Unique indexes on the ledgers, so that what was unwound does not come back; and how long keys are kept
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  onefold guard status
  onefold guard install
  onefold guard install --ledger payments --print
  onefold guard remove --ledger payments
  onefold guard retention
  onefold guard gc --dry-run")]
pub struct GuardArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Install(InstallArgs),
    Status(StatusArgs),
    Remove(RemoveArgs),
    Retention(retention::RetentionArgs),
    Gc(gc::GcArgs),
}

/// Install an index, online where the database can; refused while rows would violate it
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  onefold guard install
  onefold guard install --ledger payments
  onefold guard install --one-per-show --print

On the order ledger: of the live orders of a tenant one carries an idempotency
key; cancelled and refunded orders keep theirs. --one-per-show is for shows of
which nobody may hold two orders: people do buy twice. On payments: one row a
provider's transaction. On messages: a table into which a consumer writes each
message key with its work.")]
struct InstallArgs {
    #[command(flatten)]
    which: Which,
    /// Show the SQL for a DBA, and run nothing
    #[arg(long)]
    print: bool,
}

/// What is installed where, and how many rows would violate what is not
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  onefold guard status\n  onefold guard status --json")]
struct StatusArgs {}

/// Remove an index again; no row and no table goes with it
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  onefold guard remove\n  onefold guard remove --ledger payments")]
struct RemoveArgs {
    #[command(flatten)]
    which: Which,
}

#[derive(Debug, Args)]
struct Which {
    /// The ledger
    #[arg(long, default_value = "orders")]
    ledger: OfLedger,
    /// One live order of a buyer for a show, whatever its key
    #[arg(long)]
    one_per_show: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OfLedger {
    Orders,
    Payments,
    Messages,
}

impl Which {
    fn unique(&self) -> Result<Unique> {
        match (self.ledger, self.one_per_show) {
            (OfLedger::Orders, false) => Ok(Unique::LiveKey),
            (OfLedger::Orders, true) => Ok(Unique::LiveShow),
            (OfLedger::Payments, false) => Ok(Unique::Charge),
            (OfLedger::Messages, false) => Ok(Unique::Inbox),
            (_, true) => Err(Error::usage("--one-per-show is about orders").hint("leave --ledger out")),
        }
    }
}

/// How many rows that stand in the way are listed.
const LISTED: usize = 40;

pub async fn run(config: &Config, args: GuardArgs) -> Result<Report> {
    match args.verb {
        Verb::Install(args) => install(config, &config.open(false).await?, args).await,
        Verb::Status(_) => status(config, &config.open(false).await?).await,
        Verb::Remove(args) => remove(&config.open(false).await?, args).await,
        Verb::Retention(args) => retention::run(config, args).await,
        Verb::Gc(args) => gc::run(config, args).await,
    }
}

async fn remove(store: &Store, args: RemoveArgs) -> Result<Report> {
    let unique = args.which.unique()?;
    let removed = store.remove_unique(unique).await?;
    let report = Report::new(json!({ "unique": unique, "removed": removed }));
    Ok(report.line(match (removed, unique) {
        (_, Unique::Inbox) => "onefold_inbox stays: its rows are evidence.".to_owned(),
        (0, _) => format!("{} is not installed.", unique.name()),
        _ => format!("{} is removed.", unique.name()),
    }))
}

async fn install(config: &Config, store: &Store, args: InstallArgs) -> Result<Report> {
    let unique = args.which.unique()?;
    let statements = store.to_install(unique).await?;
    let sql: Vec<_> = statements.iter().map(|(_, sql)| sql.clone()).collect();
    if args.print {
        let text: Vec<_> = sql.iter().map(|sql| format!("{sql};")).collect();
        return Ok(Report::new(json!({ "unique": unique, "ran": false, "statements": sql }))
            .verbatim(text.join("\n")));
    }
    let progress = Progress::new(config, "looking for rows in its way");
    let violations = store.violations(unique).await?;
    progress.end();
    if !violations.is_empty() {
        let mut table = Table::new([
            Column::exact("TENANT"),
            Column::exact("SHARED"),
            Column::exact("ROW"),
            Column::exact("STATUS"),
        ]);
        for v in violations.iter().take(LISTED) {
            table.row([v.tenant_id.clone(), v.shared.clone(), v.row_id.clone(), v.status.clone()]);
        }
        let rows: Vec<_> = violations
            .iter()
            .map(|v| json!({ "tenant_id": v.tenant_id, "shared": v.shared, "row": v.row_id, "status": v.status }))
            .collect();
        let more = violations.len().saturating_sub(LISTED);
        let report = Report::new(json!({ "unique": unique, "installed": false, "violations": rows }))
            .line(format!("{}: {} in its way.", unique.name(), count(violations.len(), "row")))
            .table(table);
        let report =
            if more > 0 { report.line(format!("… and {more} more (--json has them)")) } else { report };
        let report = match unique {
            Unique::Charge => report.line(
                "onefold deletes no row: leave one row a charge in your own tables, and keep the others elsewhere.",
            ),
            _ => report
                .line("Unwind them first; then install again:")
                .command("onefold freeze --show SHOW --enforce --reason TEXT")
                .command("onefold plan")
                .command("onefold apply PLAN"),
        };
        return Ok(report.exit(Exit::Refused));
    }
    let progress = Progress::new(config, "building the index");
    let made = store.install_unique(unique).await?;
    progress.end();
    let report = Report::new(json!({ "unique": unique, "installed": true, "statements": sql }));
    let what = if made > 0 { "is installed" } else { "is there already" };
    let report = report.line(format!("{} {what}: {}.", unique.name(), unique.meaning()));
    let shards = store.shards(unique.ledger()).count();
    Ok(if shards > 1 {
        report.line(format!(
            "It holds within each of the {shards} databases of {}, not across them.",
            unique.ledger()
        ))
    } else {
        report
    })
}

async fn status(config: &Config, store: &Store) -> Result<Report> {
    let mut table = Table::new([
        Column::exact("INDEX"),
        Column::exact("STANDS"),
        Column::number("IN ITS WAY"),
        Column::prose("WHAT IT KEEPS"),
    ]);
    let mut all = Vec::new();
    let progress = Progress::new(config, "looking for rows in its way");
    for unique in Unique::ALL.iter().copied() {
        let standing = store.standing(unique).await?;
        let of = |standing: Standing| match standing {
            Standing::Holds => "holds",
            Standing::Broken => "broken",
            Standing::Missing => "missing",
        };
        let worst = [Standing::Broken, Standing::Missing, Standing::Holds]
            .into_iter()
            .find(|s| standing.iter().any(|(_, there)| there == s));
        let worst = worst.map_or("missing", of);
        let in_its_way = if worst == "holds" { 0 } else { store.violations(unique).await?.len() };
        table.row([unique.name(), worst.to_owned(), in_its_way.to_string(), unique.meaning().to_owned()]);
        let databases: Vec<_> =
            standing.iter().map(|(d, s)| json!({ "database": d.label, "stands": of(*s) })).collect();
        all.push(json!({ "unique": unique, "name": unique.name(), "stands": worst, "in_its_way": in_its_way, "databases": databases }));
    }
    progress.end();
    Ok(Report::new(json!({ "guards": all })).table(table))
}
