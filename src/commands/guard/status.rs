//! `onefold guard status`: what is installed where, and what stands in the way of the rest.

use clap::Args;
use serde_json::json;

use super::super::progress::Progress;
use crate::config::Config;
use crate::error::Result;
use crate::report::{Column, Report, Table};
use crate::store::unique::{Standing, Unique};

/// What is installed where, and how many rows would violate what is not
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  onefold guard status\n  onefold guard status --json")]
pub struct StatusArgs {}

pub async fn run(config: &Config, _: StatusArgs) -> Result<Report> {
    let store = config.open(false).await?;
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
