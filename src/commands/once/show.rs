//! `onefold once show`: all that is kept of one key.

use clap::Args;

use super::{as_json, key, open, output, standing, tenant};
use crate::config::Config;
use crate::core::idempotency::KeyRecord;
use crate::core::ids::{IdempotencyKey, TenantId};
use crate::core::output::{Kept, Part};
use crate::core::time::Timestamp;
use crate::error::{Error, Result};
use crate::report::Report;
use crate::store::Store;

/// Show all that is kept of one key: where it stands, who has it, and what its command printed
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  onefold once show incident-2014/refund-O-502\n  onefold once show refund-O-502 --json"
)]
pub struct ShowArgs {
    /// The key
    key: String,
    #[arg(long, value_name = "TENANT", default_value = "default")]
    tenant: String,
}

pub async fn run(config: &Config, args: ShowArgs) -> Result<Report> {
    let store = open(config).await?;
    let (record, now) = found(&store, &tenant(&args.tenant)?, &key(&args.key)?).await?;
    let output = output(&record)?;
    let mut report = Report::new(as_json(&record, None))
        .title(format!("{}: {}", record.key, standing(&record, now)))
        .line(format!(
            "tenant {}, first seen {}, last seen {}, kept for {}",
            record.tenant_id, record.first_seen, record.last_seen, record.keep_for
        ))
        .line(format!(
            "begun {}; held last by {} under fencing token {}",
            times(record.attempts),
            record.owner,
            record.token
        ))
        .line(format!("request {}", record.digest.names().collect::<Vec<_>>().join(", ")));
    if let Some(code) = record.exit_code {
        report = report.line(format!("exit code {code}"));
    }
    if let Some(note) = &record.note {
        report = report.line(note.clone());
    }
    let Some(output) = output else { return Ok(report) };
    for (name, stream) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
        if stream.bytes > 0 {
            report = shown(report, name, stream);
        }
    }
    Ok(report)
}

fn shown(report: Report, name: &str, stream: &Kept) -> Report {
    let how = match stream.kept {
        Part::All => "",
        Part::Tail => ", of which the end is kept",
        Part::None => ", not kept",
    };
    let report = report.title(format!("{name}, {} bytes{how}", stream.bytes));
    match stream.body() {
        Some(body) if !body.is_empty() => {
            report.verbatim(String::from_utf8_lossy(&body).trim_end_matches('\n'))
        }
        _ => report,
    }
}

fn times(n: i64) -> String {
    if n == 1 { "once".to_owned() } else { format!("{n} times") }
}

/// The record of a key, and the database's time.
pub(super) async fn found(
    store: &Store,
    tenant_id: &TenantId,
    key: &IdempotencyKey,
) -> Result<(KeyRecord, Timestamp)> {
    store.key(tenant_id, key).await?.ok_or_else(|| {
        Error::usage(format!("there is no key {key} of tenant {tenant_id}"))
            .hint("`onefold once list` lists the keys; name another tenant with --tenant")
    })
}
