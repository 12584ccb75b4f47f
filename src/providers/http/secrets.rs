//! Secrets of a provider: from the environment or a file, never from the configuration itself, and
//! never in anything that is printed or recorded.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::template::escaped;
use crate::error::{Error, Result};

/// What stands where a secret was.
pub const MASK: &str = "***";

/// Where a secret is.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Source {
    /// The variable that holds it.
    Env(String),
    /// The file that holds it and nothing else; only its owner may read it.
    File(PathBuf),
}

impl Source {
    /// The same, with a file taken to lie in this folder unless it is named from the root.
    pub(super) fn beside(&mut self, folder: &Path) {
        if let Self::File(path) = self {
            *path = folder.join(&*path);
        }
    }
}

/// The secrets themselves. Never printed.
#[derive(Clone)]
pub struct Secrets {
    by_name: BTreeMap<String, String>,
    /// Each as it is, and as it stands in a URL, a form or JSON; the longest first.
    disguises: Vec<String>,
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Secrets({})", self.by_name.len())
    }
}

impl Secrets {
    /// Reads each from where it is; `variable` gives what the environment says.
    ///
    /// # Errors
    /// Usage, for a variable that is not set, a file that cannot be read or that others may read, and
    /// a secret that is empty.
    pub fn read(
        sources: &BTreeMap<String, Source>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self> {
        let mut by_name = BTreeMap::new();
        for (name, source) in sources {
            let value = match source {
                Source::Env(name_of) => variable(name_of).ok_or_else(|| {
                    Error::usage(format!("secrets.{name}: the variable {name_of} is not set")).hint(format!(
                        "export {name_of}=…, or name a file: secrets.{name} = {{ file = \"…\" }}"
                    ))
                })?,
                Source::File(path) => file(name, path)?,
            };
            let value = value.trim_end_matches(['\r', '\n']).to_owned();
            if value.is_empty() {
                return Err(Error::usage(format!("secrets.{name} is empty"))
                    .hint("put the key itself where the configuration says it is"));
            }
            by_name.insert(name.clone(), value);
        }
        let mut disguises: Vec<String> = by_name.values().flat_map(|value| disguised(value)).collect();
        disguises.sort_by(|a, b| b.len().cmp(&a.len()).then(a.cmp(b)));
        disguises.dedup();
        Ok(Self { by_name, disguises })
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.by_name.get(name).map(String::as_str)
    }

    /// The text with every secret in it masked.
    pub fn masked(&self, text: &str) -> String {
        self.disguises.iter().fold(text.to_owned(), |text, secret| text.replace(secret, MASK))
    }
}

/// A secret in every form in which a provider may send it back.
fn disguised(value: &str) -> [String; 4] {
    let json = serde_json::Value::from(value).to_string();
    let form: String = url::form_urlencoded::byte_serialize(value.as_bytes()).collect();
    [value.to_owned(), escaped(value), form, json.trim_matches('"').to_owned()]
}

fn file(name: &str, path: &Path) -> Result<String> {
    let failed = |what: String| Error::usage(format!("secrets.{name}: {}: {what}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|e| {
        failed(e.to_string()).hint("a file with the secret on its one line, which only its owner may read")
    })?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(path).map_err(|e| failed(e.to_string()))?.permissions().mode();
        if mode & 0o077 != 0 {
            return Err(failed("others than its owner may read it".to_owned())
                .hint(format!("chmod 600 {}", path.display())));
        }
    }
    Ok(text)
}
