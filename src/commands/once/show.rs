//! `onefold once show`: all that is kept of one key.

use clap::Args;
use serde_json::{Value, json};

use super::{archived_as_json, as_json, key, output, standing, tenant};
use crate::commands::guard::keys::open;
use crate::config::Config;
use crate::core::idempotency::{Archived, KeyRecord, Known, Named, Retention};
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
    let (tenant_id, key) = (tenant(&args.tenant)?, key(&args.key)?);
    let stores = open(config).await?;
    let mut found: Option<Report> = None;
    for store in &stores {
        let Some((known, now)) = store.known_key(&tenant_id, &key).await? else { continue };
        let names = store.names(&tenant_id, &[&key]).await?;
        let names: Vec<_> = names.into_iter().map(|(_, name)| name).collect();
        let mut report = match known {
            Known::Record(record) => of_record(&record, now)?,
            Known::Archived(archived) => of_archived(&tenant_id, &key, &archived),
        };
        let label = &store.keys_database().label;
        report.json["names"] = json!(names);
        report.json["database"] = label.as_str().into();
        if !names.is_empty() {
            report = report.line(about(&names));
        }
        if stores.len() > 1 {
            report = report.line(format!("in {label}"));
        }
        found = Some(match found {
            None => report,
            // One of `once` and one of a service, of the same name.
            Some(first) => beside(first, report),
        });
    }
    found.ok_or_else(|| nothing(&tenant_id, &key))
}

/// Two keys of one name: as an object, the second one stands among the `others` of the first.
fn beside(mut first: Report, other: Report) -> Report {
    let mut others = first.json["others"].take();
    match &mut others {
        Value::Array(all) => all.push(other.json),
        _ => others = json!([other.json]),
    }
    first.json["others"] = others;
    other.blocks.into_iter().fold(first, Report::block)
}

/// `about order O-502, payment P-9`
fn about(names: &[Named]) -> String {
    let names: Vec<_> =
        names.iter().map(|name| format!("{} {}", name.ledger.row_name(), name.row_id)).collect();
    format!("about {}", names.join(", "))
}

fn of_archived(tenant_id: &TenantId, key: &IdempotencyKey, archived: &Archived) -> Report {
    let report = Report::new(archived_as_json(tenant_id, key, archived, None))
        .title(format!("{key}: {}, archived", archived.state))
        .line(format!(
            "tenant {tenant_id}, first seen {}, last seen {}, archived {}",
            archived.first_seen, archived.last_seen, archived.archived_at
        ))
        .line(format!(
            "request {}; its result is known by {}",
            archived.digest,
            known_by(archived.result_ref.as_deref())
        ));
    match archived.exit_code {
        Some(code) => report.line(format!("exit code {code}")),
        None => report,
    }
}

fn known_by(result_ref: Option<&str>) -> &str {
    result_ref.unwrap_or("nothing")
}

fn of_record(record: &KeyRecord, now: Timestamp) -> Result<Report> {
    let output = output(record)?;
    let mut report = Report::new(as_json(record, None))
        .title(format!("{}: {}", record.key, standing(record, now)))
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
        .line(match record.digest.names().collect::<Vec<_>>() {
            parts if parts.is_empty() => {
                format!("request {}, of which no parts are kept", record.digest.whole())
            }
            parts => format!("request {}", parts.join(", ")),
        });
    if record.retention != Retention::Hot {
        report = report.line(format!(
            "in tier {}: its output is no longer kept; it is known by {}",
            record.retention,
            known_by(record.result_ref.as_deref())
        ));
    }
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
    match store.known_key(tenant_id, key).await? {
        Some((Known::Record(record), now)) => Ok((record, now)),
        Some((Known::Archived(archived), _)) => {
            Err(Error::usage(format!("{key} is {} already, and archived", archived.state))
                .hint(format!("only what is UNKNOWN is settled; see it with `onefold once show {key}`")))
        }
        None => Err(nothing(tenant_id, key)),
    }
}

pub(super) fn nothing(tenant_id: &TenantId, key: &IdempotencyKey) -> Error {
    Error::usage(format!("there is no key {key} of tenant {tenant_id}"))
        .hint("`onefold once list` lists the keys; name another tenant with --tenant")
}
