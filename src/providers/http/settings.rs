//! What the configuration says of an HTTP provider, with a preset under it where one is named.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer};
use toml::{Table, Value};

use super::rules::{AnyOf, RuleSettings};
use super::secrets::Source;
use crate::core::money::Currency;

/// Providers whose public API is written down in a file each.
const PRESETS: [(&str, &str); 2] =
    [("stripe", include_str!("presets/stripe.toml")), ("adyen", include_str!("presets/adyen.toml"))];

/// The tables in which a preset and what stands over it are joined key by key; else a key of the
/// configuration replaces the preset's, whole.
const JOINED: [&str; 8] = ["headers", "values", "secrets", "breaker", "refund", "void", "query", "charge"];

const OPERATIONS: [&str; 4] = ["refund", "void", "query", "charge"];

/// `kind = "http"`
#[derive(Clone, Debug, PartialEq)]
pub struct HttpSettings {
    pub(super) shape: Shape,
    /// By name; each with what it is for, the most special first.
    pub(super) operations: BTreeMap<String, Vec<(Condition, OperationSettings)>>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Shape {
    pub base_url: String,
    pub timeout: Option<String>,
    pub key_lifetime: Option<String>,
    pub ca_file: Option<PathBuf>,
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    #[serde(default)]
    pub values: BTreeMap<String, String>,
    #[serde(default)]
    pub secrets: BTreeMap<String, Source>,
    /// Codes of currencies that the provider counts in another minor unit than ISO 4217 does.
    #[serde(default)]
    pub other_minor_units: Vec<Currency>,
    /// How often a request is sent at most, where a repeat is safe.
    pub attempts: Option<u32>,
    #[serde(default)]
    pub breaker: BreakerSettings,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BreakerSettings {
    pub failures: Option<u32>,
    pub cool_down: Option<String>,
}

/// For which requests a variant of an operation is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Condition {
    /// The provider's transaction id begins with one of these; any, where there is none.
    pub prefixes: Vec<String>,
    /// Of a query: about a refund or a void only.
    pub ask: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OperationSettings {
    pub method: String,
    pub path: String,
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    #[serde(default)]
    pub query: BTreeMap<String, String>,
    pub json: Option<Table>,
    pub form: Option<BTreeMap<String, String>>,
    /// That the provider does the same request, under the same key, once.
    #[serde(default)]
    pub idempotent: bool,
    /// Send only what the charge query says is AUTHORIZED.
    #[serde(default)]
    pub only_authorized: bool,
    #[serde(default)]
    pub when: Vec<RuleSettings>,
    pub list: Option<ListSettings>,
    // Pointers into the answer.
    pub reference: Option<String>,
    /// Of several, the first at which a text is.
    pub reason: Option<AnyOf<String>>,
    /// In minor units.
    pub amount: Option<String>,
    /// In minor units.
    pub refunded: Option<String>,
    pub currency: Option<String>,
    pub captured_at: Option<String>,
    pub refund_refused: Option<String>,
}

/// Where an answer lists the refunds of a charge.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListSettings {
    pub items: String,
    /// Whether there are more pages than this.
    pub has_more: Option<String>,
    /// What the next page is asked for with.
    pub next_at: Option<String>,
    /// A URL on the same host.
    pub next_url: Option<String>,
    /// Query parameters of the next page.
    #[serde(default)]
    pub next: BTreeMap<String, String>,
    /// That the list is whole, always: there are no pages.
    #[serde(default)]
    pub whole: bool,
    // Pointers into each element.
    pub key: String,
    pub status: String,
    pub reference: Option<String>,
    pub amount: Option<String>,
    pub reason: Option<String>,
    /// The provider's words for done, accepted and refused.
    pub statuses: BTreeMap<String, ListedStatus>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ListedStatus {
    Done,
    Accepted,
    Refused,
}

impl HttpSettings {
    /// The same, with its files taken to lie in this folder.
    pub fn beside(&mut self, folder: &Path) {
        self.shape.secrets.values_mut().for_each(|source| source.beside(folder));
        if let Some(path) = &mut self.shape.ca_file {
            *path = folder.join(&*path);
        }
    }

    fn from_table(mut table: Table) -> Result<Self, String> {
        if let Some(preset) = table.remove("preset") {
            let named = preset.as_str().and_then(|name| PRESETS.iter().find(|(known, _)| *known == name));
            let (name, text) = named.ok_or_else(|| {
                let names: Vec<_> = PRESETS.iter().map(|(name, _)| *name).collect();
                format!("preset = {preset}: there are {}", names.join(" and "))
            })?;
            let under = text.parse::<Table>().map_err(|e| format!("the preset {name}: {e}"))?;
            table = over(under, table);
        }
        let mut operations = BTreeMap::new();
        for name in OPERATIONS {
            match table.remove(name) {
                Some(Value::Table(operation)) => {
                    operations.insert(name.to_owned(), variants(name, operation)?);
                }
                Some(_) => return Err(format!("{name} must be a table")),
                None if name == "refund" => {
                    return Err("there is no refund: [providers.NAME.refund]".to_owned());
                }
                None => {}
            }
        }
        Ok(Self { shape: read("", table)?, operations })
    }
}

impl<'de> Deserialize<'de> for HttpSettings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_table(Table::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

/// A preset, and what stands over it.
fn over(mut under: Table, table: Table) -> Table {
    for (key, value) in table {
        match (under.get_mut(&key), value) {
            (Some(Value::Table(there)), Value::Table(new)) if JOINED.contains(&key.as_str()) => {
                there.extend(new);
            }
            (_, value) => drop(under.insert(key, value)),
        }
    }
    under
}

/// An operation, and before it its variants: what a variant says stands instead of the operation's own.
fn variants(name: &str, mut base: Table) -> Result<Vec<(Condition, OperationSettings)>, String> {
    let mut all = Vec::new();
    let list = match base.remove("variant") {
        None => Vec::new(),
        Some(Value::Array(list)) => list,
        Some(_) => return Err(format!("{name}.variant must be a list of tables: [[….{name}.variant]]")),
    };
    for (i, variant) in list.into_iter().enumerate() {
        let place = format!("{name}.variant[{i}]");
        let Value::Table(mut variant) = variant else { return Err(format!("{place} must be a table")) };
        let prefixes = match variant.remove("provider_txn_id") {
            None => Vec::new(),
            Some(Value::String(prefix)) => vec![prefix],
            Some(several) => several.try_into().map_err(|_| {
                format!("{place}.provider_txn_id must be how the ids begin: \"pi_\", or [\"ch_\", \"py_\"]")
            })?,
        };
        let ask = match variant.remove("ask") {
            None => None,
            Some(Value::String(ask)) if ["refund", "void"].contains(&ask.as_str()) => Some(ask),
            Some(other) => return Err(format!("{place}.ask = {other}: \"refund\" or \"void\"")),
        };
        let mut whole = base.clone();
        whole.extend(variant);
        all.push((Condition { prefixes, ask }, read(&place, whole)?));
    }
    all.push((Condition::default(), read(name, base)?));
    Ok(all)
}

/// Reads a table; what is wrong, with the key that is.
fn read<T: for<'de> Deserialize<'de>>(place: &str, table: Table) -> Result<T, String> {
    serde_path_to_error::deserialize(Value::Table(table)).map_err(|e| {
        let key = e.path().to_string();
        let key = if key == "." { "" } else { &key };
        let dot = if place.is_empty() || key.is_empty() { "" } else { "." };
        let what = e.into_inner().to_string();
        let what = what.trim_end();
        if place.is_empty() && key.is_empty() {
            what.to_owned()
        } else {
            format!("{place}{dot}{key}: {what}")
        }
    })
}
