//! Some rows of each ledger, decoded: what cannot be is named, and three are shown.

use serde::Serialize;
use serde_json::{Map, Value as Json, json};

use super::columns::file;
use super::{Check, Outcome};
use crate::core::status::Ledger;
use crate::core::time::Timestamp;
use crate::store::probe::{Decoded, Probe, Refusal, Site};
use crate::store::sql::Value;

/// How many rows are decoded, and how many of them are shown.
const DECODED: i64 = 500;
const SHOWN: usize = 3;
/// How many faults of a ledger are listed one by one.
const LISTED: usize = 5;

/// What nobody needs to see to know that a row was read well.
const MASKED: [&str; 5] = ["user_id", "session_id", "idempotency_key", "trace_id", "provider_txn_id"];

/// A decoded row, with personal fields masked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Sample {
    pub ledger: Ledger,
    pub database: String,
    pub row: Map<String, Json>,
}

/// Looks at the ledgers whose columns are as they must be in a database: `is_read`.
pub async fn check(site: &Site, is_read: impl Fn(Ledger, &str) -> bool) -> (Vec<Sample>, Vec<Check>) {
    let (mut samples, mut checks) = (Vec::new(), Vec::new());
    for ledger in Ledger::ALL {
        let mut shown = 0;
        let mut shards: Vec<(Probe<'_>, Vec<Decoded>)> = Vec::new();
        for probe in site.probes(ledger).filter(|probe| is_read(ledger, &probe.database.label)) {
            let label = &probe.database.label;
            let rows = match probe.some_rows(DECODED).await {
                Ok(rows) => rows,
                Err(refusal) => {
                    checks.push(not_read(ledger, &refusal).on(label));
                    continue;
                }
            };
            let (good, bad): (Vec<_>, Vec<_>) = rows.into_iter().partition(Result::is_ok);
            let good: Vec<Decoded> = good.into_iter().flatten().collect();
            let faults: Vec<String> = bad.into_iter().filter_map(Result::err).map(|e| e.message).collect();
            checks.extend(told(ledger, good.len(), &faults).into_iter().map(|check| check.on(label)));
            for row in good.iter().take(SHOWN - shown) {
                samples.push(Sample { ledger, database: label.clone(), row: masked(row) });
            }
            shown = (shown + good.len()).min(SHOWN);
            shards.push((probe, good));
        }
        checks.extend(in_two_shards(&shards).await);
    }
    (samples, checks)
}

fn not_read(ledger: Ledger, refusal: &Refusal) -> Check {
    let check = Check::new("sample", file(ledger), Outcome::Refused, refusal.message());
    check.hint(match refusal {
        Refusal::Denied(_) => "grant the database user SELECT on the tables that it names",
        Refusal::Other(_) => "correct the SQL: it is prepared, and fails when it runs",
    })
}

fn told(ledger: Ledger, good: usize, faults: &[String]) -> Vec<Check> {
    let bad = faults.iter().take(LISTED).map(|fault| {
        let check = Check::new("sample", file(ledger), Outcome::Refused, fault);
        match fault.contains("column status") {
            true => check.hint(format!(
                "map it in onefold.toml: [status.{}] {} = \"…\", with all the values that you have; or in the SQL",
                ledger.row_name(),
                ledger.statuses()[0]
            )),
            false => check.hint("correct what the ledger's SQL gives for this column, or the row"),
        }
    });
    let mut checks: Vec<Check> = bad.collect();
    if let Some(more) = faults.len().checked_sub(LISTED).filter(|more| *more > 0) {
        let message = format!("{more} more rows of the sample cannot be decoded");
        checks.push(Check::new("sample", file(ledger), Outcome::Refused, message));
    }
    if faults.is_empty() {
        let message = match good {
            0 => "is empty: nothing was decoded".to_owned(),
            1 => "1 row decoded".to_owned(),
            n => format!("{n} rows decoded"),
        };
        checks.push(Check::new("sample", file(ledger), Outcome::Ok, message));
    }
    checks
}

/// An id of one shard that another has too.
async fn in_two_shards(shards: &[(Probe<'_>, Vec<Decoded>)]) -> Vec<Check> {
    let mut checks = Vec::new();
    for (at, (probe, rows)) in shards.iter().enumerate() {
        let ids: Vec<String> = rows.iter().map(|row| row.id.to_string()).collect();
        if ids.is_empty() {
            continue;
        }
        for (other, _) in &shards[at + 1..] {
            if std::ptr::eq(probe.database, other.database) {
                continue;
            }
            let Ok(found) = other.rows_named(ids.clone()).await else { continue };
            let twice =
                found.iter().find(|f| rows.iter().any(|r| (&r.tenant_id, &r.id) == (&f.tenant_id, &f.id)));
            let Some(row) = twice else { continue };
            let ledger = probe.ledger;
            let message = format!(
                "{} {} of tenant {} is in two shards, and read from both",
                ledger.row_name(),
                row.id,
                row.tenant_id
            );
            checks.push(
                Check::new("sample", file(ledger), Outcome::Warning, message)
                    .on(&probe.database.label)
                    .on(&other.database.label)
                    .hint("ids must be unique in a ledger: put the shard into the id, or leave out what was moved"),
            );
        }
    }
    checks
}

fn masked(row: &Decoded) -> Map<String, Json> {
    let value = |(name, value): &(&'static str, Value)| {
        let json = match value {
            Value::Text(Some(text)) if MASKED.contains(name) => json!(mask(text)),
            Value::Text(text) => json!(text),
            Value::Int(Some(micros)) if name.ends_with("_at") => json!(Timestamp::from_micros(*micros)),
            Value::Int(number) => json!(number),
            Value::List(_) | Value::Rows(_) => Json::Null,
        };
        ((*name).to_owned(), json)
    };
    row.values.iter().map(value).collect()
}

/// The first two characters; none of a text that has hardly more.
fn mask(text: &str) -> String {
    let shown: String = text.chars().take(if text.chars().count() > 3 { 2 } else { 0 }).collect();
    format!("{shown}…")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn personal_fields_show_two_characters_at_most() {
        assert_eq!(mask("U-7318"), "U-…");
        assert_eq!(mask("U-7"), "…");
        assert_eq!(mask("票-王小明"), "票-…");
    }
}
