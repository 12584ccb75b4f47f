//! `onefold config show`.

use std::time::Duration;

use clap::Args;
use serde_json::json;

use crate::config::Config;
use crate::error::{Error, Result};
use crate::report::{Column, Report, Table};
use crate::store::Places;
use crate::store::standing_rule::StandingRule;

/// Every setting as it holds, and the flag, variable or line that says so
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  onefold config show
  onefold config show --database postgres://ops@db/shop --json

A flag goes before the environment, and both go before the file. Passwords
are left out. The rule for approvals that stands in the journal goes before a
laxer [approval]. `onefold check` proves that what is set works.")]
pub struct ShowArgs {}

pub async fn run(config: &Config, _: ShowArgs) -> Result<Report> {
    let settings = config.settings()?;
    let standing = tokio::time::timeout(PATIENCE, standing(config)).await;
    let standing = standing.unwrap_or_else(|_| Err(Error::failure("the journal does not answer")));
    let mut table = Table::new([Column::exact("SETTING"), Column::prose("VALUE"), Column::exact("FROM")]);
    for s in &settings {
        table.row([s.name.clone(), s.value.clone(), s.from.clone()]);
    }
    let known = standing.as_ref().ok();
    let report = Report::new(json!({ "file": config.file, "settings": settings, "standing_rule": known }));
    Ok(report.table(table).line(match &standing {
        Ok(standing) => format!("By the rule that stands in the journal {}.", standing.rule),
        Err(why) => format!("Which rule for approvals stands in the journal is not known: {}.", why.message),
    }))
}

/// How long the journal is waited for: what is configured is of use where it does not answer, too.
const PATIENCE: Duration = Duration::from_secs(3);

async fn standing(config: &Config) -> Result<StandingRule> {
    let places = Places::one(&config.places.journal);
    Config { places, ..config.clone() }.open(false).await?.standing_rule().await
}
