//! Pseudonyms in the place of people's ids, in whatever leaves.

use std::collections::HashSet;

use serde_json::Value;

use crate::core::dossier::pseudonyms::{Pseudonyms, RedactKey};
use crate::core::sheet::{Cell, Fact, Head, Put, Sheets};
use crate::error::{Error, Result};
use crate::report::Report;
use crate::store::Store;

/// The variable that holds the key of pseudonyms, where it is not the journal's own.
const KEY_VARIABLE: &str = "ONEFOLD_REDACT_KEY";
/// Shorter keys could be guessed.
const LEAST_KEY: usize = 16;

/// The key that the environment gives, if it gives one.
///
/// # Errors
/// Usage, where it is too short.
pub fn given_key() -> Result<Option<RedactKey>> {
    let Some(text) = std::env::var_os(KEY_VARIABLE) else { return Ok(None) };
    let text = text.into_encoded_bytes();
    if text.len() < LEAST_KEY {
        return Err(Error::usage(format!("{KEY_VARIABLE} has fewer than {LEAST_KEY} characters")).hint(
            "give it a longer secret; or leave it out, and one is made and kept in the journal's database",
        ));
    }
    Ok(Some(RedactKey::from_secret(&text)))
}

/// The key that is given, or the journal's own, which is made if there is none.
///
/// # Errors
/// Usage, where there is neither; failure, where the journal cannot keep one.
pub async fn key(given: Option<RedactKey>, store: Option<&Store>) -> Result<RedactKey> {
    match (given, store) {
        (Some(key), _) => Ok(key),
        (None, Some(store)) => {
            let mut fresh = [0; 32];
            fresh[..16].copy_from_slice(uuid::Uuid::new_v4().as_bytes());
            fresh[16..].copy_from_slice(uuid::Uuid::new_v4().as_bytes());
            store.redact_key(&RedactKey(fresh)).await
        }
        (None, None) => Err(Error::usage("--redact needs a key, and without a database there is none")
            .hint(format!("{KEY_VARIABLE}=… with a secret of at least {LEAST_KEY} characters"))),
    }
}

/// A report of sheets with pseudonyms in it.
pub struct Redacted<'s> {
    sheets: &'s dyn Sheets,
    pseudonyms: &'s Pseudonyms,
    /// Ids of rows, which are nobody's.
    stays: &'s HashSet<&'s str>,
}

impl<'s> Redacted<'s> {
    pub const fn new(
        sheets: &'s dyn Sheets,
        pseudonyms: &'s Pseudonyms,
        stays: &'s HashSet<&'s str>,
    ) -> Self {
        Self { sheets, pseudonyms, stays }
    }

    fn text(&self, text: &str) -> String {
        self.pseudonyms.text(text, &|word| self.stays.contains(word)).into_owned()
    }

    fn cell<'c>(&self, cell: &Cell<'c>) -> Cell<'c> {
        match cell {
            Cell::Text(text) => Cell::Text(self.text(text).into()),
            other => other.clone(),
        }
    }

    fn value(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(&text)),
            Value::Array(values) => values.into_iter().map(|value| self.value(value)).collect(),
            Value::Object(members) => {
                members.into_iter().map(|(name, value)| (name, self.value(value))).collect()
            }
            other => other,
        }
    }

    /// The same of a report on a terminal. Commands stay as they were typed.
    pub fn told(&self, report: Report) -> Report {
        report.in_other_words(&|text| self.text(text))
    }
}

impl Sheets for Redacted<'_> {
    fn verb(&self) -> &'static str {
        self.sheets.verb()
    }

    fn title(&self) -> String {
        self.text(&self.sheets.title())
    }

    fn findings(&self) -> Vec<String> {
        self.sheets.findings().iter().map(|found| self.text(found)).collect()
    }

    fn facts(&self) -> Vec<Fact<'_>> {
        let facts = self.sheets.facts().into_iter();
        let facts = facts.map(|(name, value)| (self.text(&name), self.cell(&value)));
        let says = "users, sessions and traces stand under pseudonyms, the same in every report";
        facts.chain([("Redacted".to_owned(), Cell::Text(says.into()))]).collect()
    }

    fn json(&self) -> Value {
        let mut json = self.value(self.sheets.json());
        json["redacted"] = true.into();
        json
    }

    fn heads(&self) -> &'static [Head] {
        self.sheets.heads()
    }

    fn rows<'a>(&'a self, sheet: usize, put: Put<'_, 'a>) -> Result<()> {
        self.sheets
            .rows(sheet, &mut |cells| put(&cells.iter().map(|cell| self.cell(cell)).collect::<Vec<_>>()))
    }
}
