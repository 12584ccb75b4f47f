//! What the configuration comes to, setting by setting, and who said so.

use std::path::Path;

use serde::Serialize;
use toml::de::{DeTable, DeValue};

use super::{Config, DEFAULT_DATABASE, PLAN_MAX_AGE, default_actor, unreadable};
use crate::core::approval::ApprovalRule;
use crate::error::Result;
use crate::store::without_password;

/// One setting as it holds. No value of it is a secret: a password in a URL is left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Setting {
    /// As in the file, with dots: `limits.max_steps`.
    pub name: String,
    pub value: String,
    /// A flag, a variable, `FILE:LINE`, or `default`.
    pub from: String,
}

impl Setting {
    pub(super) fn new(name: &str, value: &str, from: impl Into<String>) -> Self {
        Self { name: name.to_owned(), value: without_password(value), from: from.into() }
    }
}

/// Where nothing is said. A provider's depends on the databases, and is told by `provider`.
fn defaults() -> [Setting; 6] {
    [
        Setting::new("journal", DEFAULT_DATABASE, "default"),
        Setting::new("owner", &default_actor(), "default"),
        Setting::new("limits.plan_max_age", &PLAN_MAX_AGE.to_string(), "default"),
        Setting::new("approval.required", "false", "default"),
        Setting::new("approval.within", &ApprovalRule::WITHIN.to_string(), "default"),
        Setting::new("queries", "ours", "default"),
    ]
}

impl Config {
    /// Every setting that is said somewhere and every default, by name; what a flag or a variable says goes
    /// before the file.
    ///
    /// # Errors
    /// Usage, where the file can no longer be read.
    pub fn settings(&self) -> Result<Vec<Setting>> {
        let mut all = self.told.clone();
        if let Some(path) = &self.file {
            for setting in in_file(path)? {
                let is_said = all.iter().any(|s| s.name == setting.name);
                // A database that is named on the command line is that of everything.
                let is_moved =
                    setting.name.starts_with("ledgers.") && self.told.iter().any(|s| s.name == "journal");
                if !is_said && !is_moved {
                    all.push(setting);
                }
            }
        }
        for default in defaults() {
            if !all.iter().any(|s| s.name == default.name) {
                all.push(default);
            }
        }
        all.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(all)
    }
}

/// The settings of a file, each with its line.
fn in_file(path: &Path) -> Result<Vec<Setting>> {
    let text = std::fs::read_to_string(path).map_err(|e| unreadable(path, &e))?;
    let Ok(table) = DeTable::parse(&text) else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    walk(table.get_ref(), "", &mut |name, value, at| {
        let line = text[..at].matches('\n').count() + 1;
        found.push(Setting::new(name, value, format!("{}:{line}", path.display())));
    });
    Ok(found)
}

/// Tells of every value below a table: its name with dots, itself, and where it stands, in bytes.
fn walk(table: &DeTable<'_>, above: &str, tell: &mut impl FnMut(&str, &str, usize)) {
    for (key, value) in table {
        let name =
            if above.is_empty() { key.get_ref().to_string() } else { format!("{above}.{}", key.get_ref()) };
        match value.get_ref() {
            DeValue::Table(below) => walk(below, &name, tell),
            other => tell(&name, &in_words(other), key.span().start),
        }
    }
}

fn in_words(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => without_password(text),
        DeValue::Array(items) => {
            items.iter().map(|item| in_words(item.get_ref())).collect::<Vec<_>>().join(", ")
        }
        DeValue::Table(table) => {
            let members = table.iter().map(|(k, v)| format!("{} = {}", k.get_ref(), in_words(v.get_ref())));
            members.collect::<Vec<_>>().join(", ")
        }
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(word) => word.to_string(),
        DeValue::Datetime(time) => time.to_string(),
    }
}
