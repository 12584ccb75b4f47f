//! `onefold once list`: the keys and where they stand.

use clap::Args;
use serde_json::json;

use super::{archived_as_json, as_json, names, standing, tenant};
use crate::commands::flags::one_of;
use crate::commands::guard::keys::open;
use crate::config::Config;
use crate::core::idempotency::{KeyRecord, KeyState, Known};
use crate::core::ids::{IdempotencyKey, TenantId};
use crate::core::time::Timestamp;
use crate::error::Result;
use crate::report::{Column, Report, Table};
use crate::store::Store;

/// List the keys and where they stand, the one seen last first
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  onefold once list
  onefold once list --state UNKNOWN --json
  onefold once list --order O-502

Of an order or a payment, archived keys are listed, too. Beside the keys of
`once` stand those that services keep beside the orders, each under the name of
its database.")]
pub struct ListArgs {
    /// Keys in this state alone
    #[arg(long, value_name = "STATE", value_parser = one_of::<KeyState>(KeyState::NAMES))]
    state: Option<KeyState>,
    /// Keys of this tenant alone
    #[arg(long, value_name = "TENANT")]
    tenant: Option<String>,
    /// Keys that are about this order; may be repeated
    #[arg(long = "order", value_name = "ORDER")]
    orders: Vec<String>,
    /// Keys that are about this payment; may be repeated
    #[arg(long = "payment", value_name = "PAYMENT")]
    payments: Vec<String>,
}

/// A key with what is known of it, and the database's time.
type Listed = (TenantId, IdempotencyKey, Known, Timestamp);

pub async fn run(config: &Config, args: ListArgs) -> Result<Report> {
    let tenant_id = args.tenant.as_deref().map(tenant).transpose()?;
    let stores = open(config).await?;
    let (mut json, mut tables) = (Vec::new(), Vec::new());
    for store in &stores {
        let label = &store.keys_database().label;
        let keys = if args.orders.is_empty() && args.payments.is_empty() {
            let records = store.keys(tenant_id.as_ref(), args.state).await?;
            let listed = |(record, now): (KeyRecord, Timestamp)| {
                (record.tenant_id.clone(), record.key.clone(), Known::Record(record), now)
            };
            records.into_iter().map(listed).collect()
        } else {
            about(store, tenant_id.as_ref(), &args).await?
        };
        json.extend(keys.iter().map(|(tenant_id, key, known, _)| {
            let mut key = match known {
                Known::Record(record) => as_json(record, None),
                Known::Archived(archived) => archived_as_json(tenant_id, key, archived, None),
            };
            key["database"] = label.as_str().into();
            key
        }));
        if !keys.is_empty() {
            tables.push((label, table(&keys)));
        }
    }
    let mut report = Report::new(json!({ "keys": json }));
    if tables.is_empty() {
        return Ok(report.line("There is no such key."));
    }
    for (label, table) in tables {
        if stores.len() > 1 {
            report = report.title(label.clone());
        }
        report = report.table(table);
    }
    Ok(report)
}

fn table(keys: &[Listed]) -> Table {
    let mut table = Table::new([
        Column::exact("KEY"),
        Column::exact("STATE"),
        Column::number("CODE"),
        Column::number("RUNS"),
        Column::exact("LAST SEEN"),
        Column::prose("NOTE"),
    ]);
    for (tenant_id, key, known, now) in keys {
        let key = match tenant_id.as_str() {
            "default" => key.to_string(),
            tenant => format!("{key} (tenant {tenant})"),
        };
        let code = |code: Option<u8>| code.map(|code| code.to_string()).unwrap_or_default();
        table.row(match known {
            Known::Record(record) => [
                key,
                standing(record, *now),
                code(record.exit_code),
                record.attempts.to_string(),
                record.last_seen.to_string(),
                record.note.clone().unwrap_or_default(),
            ],
            Known::Archived(archived) => [
                key,
                format!("{}, archived", archived.state),
                code(archived.exit_code),
                String::new(),
                archived.last_seen.to_string(),
                String::new(),
            ],
        });
    }
    table
}

/// The keys that are about one of these orders or payments, by tenant and key.
async fn about(store: &Store, tenant_id: Option<&TenantId>, args: &ListArgs) -> Result<Vec<Listed>> {
    let mut keys = Vec::new();
    for name in names(&args.orders, &args.payments)? {
        keys.extend(store.keys_of(tenant_id, &name).await?);
    }
    keys.sort_unstable();
    keys.dedup();
    let mut listed = Vec::with_capacity(keys.len());
    for (tenant_id, key) in keys {
        // What was named and never taken is no key.
        let Some((known, now)) = store.known_key(&tenant_id, &key).await? else { continue };
        let state = match &known {
            Known::Record(record) => record.state,
            Known::Archived(archived) => archived.state,
        };
        if args.state.is_none_or(|wanted| wanted == state) {
            listed.push((tenant_id, key, known, now));
        }
    }
    Ok(listed)
}
