//! `onefold guard remove`: an index goes, a table with rows stays.

use clap::Args;
use serde_json::json;

use super::Which;
use crate::config::Config;
use crate::error::Result;
use crate::report::Report;

/// Remove an index again; no row and no table goes with it
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  onefold guard remove\n  onefold guard remove --ledger payments")]
pub struct RemoveArgs {
    #[command(flatten)]
    which: Which,
}

pub async fn run(config: &Config, args: RemoveArgs) -> Result<Report> {
    let store = config.open(false).await?;
    store.must_not_be_anothers().await?;
    let uniques = args.which.uniques()?;
    let mut all = Vec::new();
    let mut lines = Vec::new();
    for unique in uniques.iter().copied() {
        let removed = store.remove_unique(unique).await?;
        lines.push(match removed {
            _ if unique.is_table() => format!("{} stays: its rows are evidence.", unique.name()),
            0 => format!("{} is not installed.", unique.name()),
            _ => format!("{} is removed.", unique.name()),
        });
        all.push((unique, removed));
    }
    // The last of them is what was asked for.
    let last = all.last().map(|(unique, removed)| json!({ "unique": unique, "removed": removed }));
    Ok(lines.into_iter().fold(Report::new(last.unwrap_or_default()), Report::line))
}
