//! JSON: the plan in the contract's shape (section 8), each step with what became of it, and the journal.

use std::io::Write;

use serde::Serialize;
use serde_json::{Value, json};

use super::target::Target;
use super::{Export, Written};
use crate::core::dossier::Dossier;
use crate::core::dossier::sheets::Sheet;
use crate::core::explain::row_in_words;
use crate::core::plan::PlannedIntent;
use crate::core::sheet::{Cell, Column, Sheets};
use crate::core::words::finding_in_words;
use crate::error::Result;

/// By which a report is known.
pub(super) const BEGINS: &str = "{\n\"plan_id\": ";

/// One object that is being written; an intent at a time, since there may be a million.
pub struct Json {
    out: Target,
    entries: u64,
    intents: u64,
}

impl Json {
    /// Writes all but the journal.
    ///
    /// # Errors
    /// Failure, where it cannot be written.
    pub fn begin(dossier: &Dossier<'_>, out: Target) -> Result<Self> {
        let mut json = Self { out, entries: 0, intents: 0 };
        let plan = dossier.plan;
        let head = [
            ("digest", json!(plan.digest)),
            ("as_of", json!(plan.as_of)),
            ("made_at", json!(plan.made_at)),
            ("freeze_id", json!(plan.freeze_id)),
            ("scope", json!(dossier.scope())),
            ("policy", json!(dossier.policy())),
            ("live_orders", json!(plan.live_orders)),
            ("sums", json!(plan.sums)),
            ("outside_sums", json!(plan.outside_sums)),
            ("report", head(dossier)),
        ];
        json.text(BEGINS)?;
        json.value(&plan.plan_id)?;
        json.text(",\n")?;
        for (name, value) in head {
            json.text(&format!("\"{name}\": "))?;
            json.value(&value)?;
            json.text(",\n")?;
        }
        json.text("\"intents\": [")?;
        for intent in &plan.intents {
            json.text(if json.intents == 0 { "\n" } else { ",\n" })?;
            json.value(&intent_value(dossier, intent))?;
            json.intents += 1;
        }
        json.text("\n],\n\"journal\": [")?;
        Ok(json)
    }

    fn text(&mut self, text: &str) -> Result<()> {
        put(&mut self.out, text)
    }

    fn value(&mut self, value: &impl Serialize) -> Result<()> {
        put_value(&mut self.out, value)
    }
}

fn put(out: &mut Target, text: &str) -> Result<()> {
    out.write_all(text.as_bytes()).map_err(|e| out.failed(&e))
}

fn put_value(out: &mut Target, value: &impl Serialize) -> Result<()> {
    serde_json::to_writer(&mut *out, value).map_err(|e| out.failed(&e.into()))
}

/// What is known beside the plan.
fn head(dossier: &Dossier<'_>) -> Value {
    let freeze = dossier.freeze.map(|f| {
        json!({
            "freeze_id": f.freeze_id, "mode": f.mode, "state": f.state, "frozen_at": f.frozen_at,
            "owner": dossier.text(&f.owner), "reason": dossier.text(&f.reason),
        })
    });
    let refunded: Vec<_> = dossier
        .refunded()
        .into_iter()
        .map(|((tenant, currency), minor)| {
            json!({ "tenant_id": tenant, "currency": currency, "refunded_minor": i64::try_from(minor).ok() })
        })
        .collect();
    let approvals: Vec<_> = dossier
        .approvals
        .iter()
        .map(|a| {
            json!({ "plan_id": a.plan_id, "by": dossier.text(&a.by.to_string()), "actor": dossier.text(&a.actor),
                "because": dossier.text(&a.because), "at": a.at })
        })
        .collect();
    let heads: Vec<_> =
        dossier.heads.iter().map(|head| json!({ "head": head.position, "hash": head.hash })).collect();
    json!({
        "state": dossier.state,
        "made_by": dossier.text(dossier.made_by),
        "superseded_by": dossier.superseded_by,
        "read_at": dossier.read_at,
        "outside_sums_as_of": dossier.plan.as_of,
        "freeze": freeze,
        "approvals": approvals,
        "heads": heads,
        "first_step_at": dossier.carried_out().map(|(first, _)| first),
        "last_step_at": dossier.carried_out().map(|(_, last)| last),
        "refunded": refunded,
        "redacted": dossier.pseudonyms.is_some(),
    })
}

fn intent_value(dossier: &Dossier<'_>, intent: &PlannedIntent) -> Value {
    let mut value = json!(intent);
    value["decided_by_in_words"] = json!(row_in_words(intent.decided_by));
    let reasons = intent.review_reasons.iter().map(|f| finding_in_words(*f));
    value["review_reasons_in_words"] = reasons.collect::<Vec<_>>().into();
    for (step, of) in intent.steps.iter().zip(value["steps"].as_array_mut().into_iter().flatten()) {
        of["outcome"] = dossier.end(step).map_or(Value::Null, |end| {
            json!({
                "state": end.state, "at": end.at,
                "provider_ref": end.provider_ref.as_deref().map(|r| dossier.text(r)),
                "note": end.note.as_deref().map(|n| dossier.text(n)),
            })
        });
    }
    let Some(pseudonyms) = &dossier.pseudonyms else { return value };
    value["user_id"] = json!(intent.user_id.as_ref().map(|id| pseudonyms.user(id.as_str())));
    value["session_id"] = json!(intent.session_id.as_ref().map(|id| pseudonyms.session(id.as_str())));
    // Hashes over rows in which these ids stand: whoever guesses one could see that he was right.
    value["seen"] = json!([]);
    if let Some(chosen) = &intent.override_keep {
        value["override"]["because"] = json!(dossier.text(&chosen.because));
    }
    for (order, of) in intent.evidence.iter().zip(value["evidence"].as_array_mut().into_iter().flatten()) {
        of["idempotency_key"] =
            json!(order.idempotency_key.as_ref().map(|key| dossier.text(key.as_str()).into_owned()));
        of["because"] = json!(dossier.sentence(&order.because, intent));
    }
    value
}

impl Export for Json {
    fn journal(&mut self, entry: &[Cell<'_>]) -> Result<()> {
        self.text(if self.entries == 0 { "\n" } else { ",\n" })?;
        self.entries += 1;
        self.value(&row(Sheet::Journal.columns(), entry))
    }

    fn end(mut self: Box<Self>, _: &Dossier<'_>) -> Result<Written> {
        self.text("\n]\n}\n")?;
        self.out.end()?;
        let rows = vec![("Intents", self.intents), ("Journal", self.entries)];
        Ok(Written { rows, notes: Vec::new() })
    }
}

/// A row as an object.
fn row(columns: &[Column], cells: &[Cell<'_>]) -> serde_json::Map<String, Value> {
    columns.iter().zip(cells).map(|(column, cell)| (column.key.to_owned(), value(cell))).collect()
}

fn value(cell: &Cell<'_>) -> Value {
    match cell {
        Cell::None => Value::Null,
        Cell::Text(text) => json!(text),
        Cell::Number(n) => json!(n),
        Cell::Money(minor, _) => json!(i64::try_from(*minor).ok()),
        Cell::Time(at) => json!(at),
    }
}

/// By which a report of a verb is known that is made of sheets.
pub(super) fn begins(verb: &str) -> String {
    format!("{{\n\"report\": {},\n", json!(verb))
}

/// An object with what was found and every row of every sheet, each an object of its own line.
///
/// # Errors
/// Failure, where it cannot be written.
pub(super) fn write(report: &dyn Sheets, mut out: Target) -> Result<Written> {
    put(&mut out, &begins(report.verb()))?;
    let about: serde_json::Map<_, _> =
        report.facts().into_iter().map(|(name, cell)| (name, value(&cell))).collect();
    let head = [
        ("title".to_owned(), json!(report.title())),
        ("about".to_owned(), about.into()),
        ("findings".to_owned(), json!(report.findings())),
    ];
    let found = report.json();
    let found = found.as_object().into_iter().flatten().map(|(name, value)| (name.clone(), value.clone()));
    for (name, value) in head.into_iter().chain(found) {
        put(&mut out, &format!("{}: ", json!(name)))?;
        put_value(&mut out, &value)?;
        put(&mut out, ",\n")?;
    }
    put(&mut out, "\"sheets\": {")?;
    let mut written = Written::default();
    for (sheet, head) in report.heads().iter().enumerate() {
        let comma = if sheet == 0 { "" } else { "," };
        put(&mut out, &format!("{comma}\n{}: [", json!(head.name())))?;
        let mut rows = 0;
        report.rows(sheet, &mut |cells| {
            put(&mut out, if rows == 0 { "\n" } else { ",\n" })?;
            rows += 1;
            put_value(&mut out, &row(head.columns, cells))
        })?;
        put(&mut out, "\n]")?;
        written.rows.push((head.title, rows));
    }
    put(&mut out, "\n}\n}\n")?;
    out.end()?;
    Ok(written)
}
