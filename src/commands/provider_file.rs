//! What the sandbox provider is told of charges: a file `provider.csv` beside the ledgers.

use std::collections::HashMap;
use std::path::Path;

use serde::Deserialize;

use crate::core::time::Timestamp;
use crate::error::{Error, Result};
use crate::store::sandbox::{Behaviour, ChargeStatus, SandboxCharge};

/// The file's name in a folder of ledgers.
pub const NAME: &str = "provider.csv";

#[derive(Deserialize)]
struct Row {
    tenant_id: String,
    provider: String,
    charge: String,
    status: String,
    amount_minor: i64,
    #[serde(default)]
    refunded_minor: i64,
    currency: String,
    #[serde(default)]
    captured_at: Option<String>,
    #[serde(default)]
    behaviour: Option<String>,
}

/// Reads the file.
///
/// # Errors
/// Usage, with file and line, for a row that is not as it must be.
pub fn read(path: &Path) -> Result<Vec<SandboxCharge>> {
    let bad = |problem: String| {
        Error::usage(format!("{}: {problem}", path.display()))
            .hint("correct it, or leave the file out: the sandbox then believes the payment ledger")
    };
    let mut reader = csv::Reader::from_path(path).map_err(|e| bad(e.to_string()))?;
    let headers = reader.headers().map_err(|e| bad(e.to_string()))?.clone();
    let mut charges = Vec::new();
    let mut lines = HashMap::new();
    for record in reader.records() {
        let record = record.map_err(|e| bad(e.to_string()))?;
        let line = record.position().map_or(0, csv::Position::line);
        let row: Row = record.deserialize(Some(&headers)).map_err(|e| bad(e.to_string()))?;
        let cell = |column: &str, value: &str, problem: &dyn std::fmt::Display| {
            bad(format!("line {line}, column {column}: {value:?} is {problem}"))
        };
        if row.amount_minor < 0 || row.refunded_minor < 0 || row.refunded_minor > row.amount_minor {
            let value = format!("{} of {}", row.refunded_minor, row.amount_minor);
            return Err(cell("refunded_minor", &value, &"more than the charge, or negative"));
        }
        let status = row.status.parse().map_err(|e| cell("status", &row.status, &e))?;
        if status == ChargeStatus::Refunded && row.refunded_minor != row.amount_minor {
            let value = format!("{} of {}", row.refunded_minor, row.amount_minor);
            return Err(cell("refunded_minor", &value, &"not the whole charge, which is REFUNDED"));
        }
        let name = (row.tenant_id.clone(), row.provider.clone(), row.charge.clone());
        if let Some(first) = lines.insert(name, line) {
            return Err(cell("charge", &row.charge, &format!("the charge of line {first} again")));
        }
        charges.push(SandboxCharge {
            status,
            currency: row.currency.parse().map_err(|e| cell("currency", &row.currency, &e))?,
            captured_at: match row.captured_at.as_deref() {
                None | Some("") => None,
                Some(text) => Some(
                    Timestamp::parse_rfc3339(text)
                        .ok_or_else(|| cell("captured_at", text, &"no RFC 3339 time with an offset"))?,
                ),
            },
            behaviour: match row.behaviour.as_deref() {
                None | Some("") => Behaviour::Ok,
                Some(name) => name.parse().map_err(|e| cell("behaviour", name, &e))?,
            },
            tenant_id: row.tenant_id.into(),
            provider: row.provider,
            charge: row.charge,
            amount_minor: row.amount_minor,
            refunded_minor: row.refunded_minor,
        });
    }
    Ok(charges)
}
