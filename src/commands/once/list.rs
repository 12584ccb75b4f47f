//! `onefold once list`: the keys and where they stand.

use clap::Args;
use serde_json::json;

use super::{as_json, open, standing, tenant};
use crate::commands::flags::one_of;
use crate::config::Config;
use crate::core::idempotency::KeyState;
use crate::error::Result;
use crate::report::{Column, Report, Table};

/// List the keys and where they stand, the one seen last first
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  onefold once list\n  onefold once list --state UNKNOWN --json")]
pub struct ListArgs {
    /// Keys in this state alone
    #[arg(long, value_name = "STATE", value_parser = one_of::<KeyState>(KeyState::NAMES))]
    state: Option<KeyState>,
    /// Keys of this tenant alone
    #[arg(long, value_name = "TENANT")]
    tenant: Option<String>,
}

pub async fn run(config: &Config, args: ListArgs) -> Result<Report> {
    let store = open(config).await?;
    let tenant_id = args.tenant.as_deref().map(tenant).transpose()?;
    let keys = store.keys(tenant_id.as_ref(), args.state).await?;
    let json: Vec<_> = keys.iter().map(|(record, _)| as_json(record, None)).collect();
    let report = Report::new(json!({ "keys": json }));
    if keys.is_empty() {
        return Ok(report.line("There is no such key."));
    }
    let mut table = Table::new([
        Column::exact("KEY"),
        Column::exact("STATE"),
        Column::number("CODE"),
        Column::number("RUNS"),
        Column::exact("LAST SEEN"),
        Column::prose("NOTE"),
    ]);
    for (record, now) in &keys {
        let key = match record.tenant_id.as_str() {
            "default" => record.key.to_string(),
            tenant => format!("{} (tenant {tenant})", record.key),
        };
        table.row([
            key,
            standing(record, *now),
            record.exit_code.map(|code| code.to_string()).unwrap_or_default(),
            record.attempts.to_string(),
            record.last_seen.to_string(),
            record.note.clone().unwrap_or_default(),
        ]);
    }
    Ok(report.table(table))
}
