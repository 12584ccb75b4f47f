//! `onefold guard install`: what is to be there once, refused while rows would violate it.

use clap::Args;
use serde_json::json;

use super::super::count;
use super::super::progress::Progress;
use super::Which;
use crate::config::Config;
use crate::error::{Exit, Result};
use crate::report::{Column, Report, Table};
use crate::store::unique::Unique;

/// Install an index or table, online where the database can; refused while rows would violate it
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  onefold guard install
  onefold guard install --ledger payments
  onefold guard install --one-per-show --print

On the order ledger: the tables onefold_idempotency…, in which a service takes a
key once for all time (`onefold guard snippets` has its SQL), and an index: of
the live orders of a tenant one carries an idempotency key; cancelled and
refunded orders keep theirs. --one-per-show is for shows of
which nobody may hold two orders: people do buy twice. On payments: one row a
provider's transaction. On messages: a table into which a consumer writes each
message key with its work.")]
pub struct InstallArgs {
    #[command(flatten)]
    which: Which,
    /// Show the SQL for a DBA, and run nothing
    #[arg(long)]
    print: bool,
}

/// How many rows that stand in the way are listed.
const LISTED: usize = 40;

pub async fn run(config: &Config, args: InstallArgs) -> Result<Report> {
    let store = config.open(false).await?;
    let uniques = args.which.uniques()?;
    // The last of them is what was asked for; what goes before it is made with it.
    let Some(unique) = uniques.last().copied() else { return Ok(Report::new(json!({}))) };
    let mut sql = Vec::new();
    for unique in uniques {
        sql.extend(store.to_install(*unique).await?.into_iter().map(|(_, sql)| sql));
    }
    if args.print {
        let text: Vec<_> = sql.iter().map(|sql| format!("{sql};")).collect();
        return Ok(Report::new(json!({ "unique": unique, "ran": false, "statements": sql }))
            .verbatim(text.join("\n")));
    }
    store.must_not_be_anothers().await?;
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
    let mut report = Report::new(json!({ "unique": unique, "installed": true, "statements": sql }));
    for unique in uniques.iter().copied() {
        let what = if store.install_unique(unique).await? > 0 { "is installed" } else { "is there already" };
        report = report.line(format!("{} {what}: {}.", unique.name(), unique.meaning()));
    }
    progress.end();
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
