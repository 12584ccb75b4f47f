//! `onefold config show`.

use clap::Args;
use serde_json::json;

use crate::config::Config;
use crate::error::Result;
use crate::report::{Column, Report, Table};

/// Every setting as it holds, and the flag, variable or line that says so
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  onefold config show
  onefold config show --database postgres://ops@db/shop --json

A flag goes before the environment, and both go before the file. Passwords
are left out. `onefold check` proves that what is set works.")]
pub struct ShowArgs {}

pub fn run(config: &Config, _: ShowArgs) -> Result<Report> {
    let settings = config.settings()?;
    let mut table = Table::new([Column::exact("SETTING"), Column::prose("VALUE"), Column::exact("FROM")]);
    for s in &settings {
        table.row([s.name.clone(), s.value.clone(), s.from.clone()]);
    }
    Ok(Report::new(json!({ "file": config.file, "settings": settings })).table(table))
}
