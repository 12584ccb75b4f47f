//! Proves a configuration before the night it is needed, and changes nothing.
//!
//! A check is data: what was looked at, where, how it came out and what to do about it. Each file
//! here looks at one thing: [`settings`] at the configuration, [`columns`] at what the ledgers' SQL
//! gives, [`sample`] at some rows, [`moves`] at the guarded writes ([`guard`] reads their SQL),
//! [`indexes`] at what the reads cost, [`rights`] at the database user, and [`trial`] tries the
//! moves and takes them back.

pub mod guard;
pub mod sample;
pub mod source;

mod columns;
mod indexes;
mod moves;
mod rights;
mod settings;
mod trial;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::config::Config;
use crate::core::scope::Scope;
use crate::core::status::{Ledger, status_type};
use crate::error::Result;
use crate::store::probe::Site;

status_type!(Outcome {
    /// It would do harm, or not work.
    Refused = "refused",
    /// It may be right, and nothing here shows it.
    Unproven = "unproven",
    /// Worth a look; it stops nothing.
    Warning = "warning",
    /// Unproven, and the configuration says why that is well.
    Accepted = "accepted",
    Ok = "ok",
});

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Its kind, such as `columns`.
    pub what: &'static str,
    /// The file and statement, the setting or the database that it is about.
    #[serde(rename = "where")]
    pub place: String,
    pub result: Outcome,
    pub message: String,
    /// What to write, or to type, instead.
    pub hint: Option<String>,
    /// The databases where it was found, where it is about one.
    pub databases: Vec<String>,
}

impl Check {
    fn new(
        what: &'static str,
        place: impl Into<String>,
        result: Outcome,
        message: impl Into<String>,
    ) -> Self {
        let (place, message) = (place.into(), message.into());
        Self { what, place, result, message, hint: None, databases: Vec::new() }
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    fn on(mut self, database: &str) -> Self {
        self.databases.push(database.to_owned());
        self
    }

    /// What `[accept]` calls it: its file without `.sql`.
    fn accepted_as(&self) -> &str {
        self.place.split_once(".sql").map_or(&self.place, |(file, _)| file)
    }
}

/// What to look at beyond the configuration itself.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Count the rows that it would read.
    pub scope: Scope,
    pub try_moves: bool,
    /// Rows to try the moves on, as (ledger, id); where a ledger has none, one is picked a status.
    pub rows: Vec<(Ledger, String)>,
}

/// What came of it.
#[derive(Debug)]
pub struct Findings {
    /// The worst first.
    pub checks: Vec<Check>,
    pub samples: Vec<sample::Sample>,
}

impl Findings {
    pub fn count(&self, result: Outcome) -> usize {
        self.checks.iter().filter(|c| c.result == result).count()
    }

    /// Whether all is proven or accepted.
    pub fn is_proven(&self) -> bool {
        self.count(Outcome::Refused) + self.count(Outcome::Unproven) == 0
    }
}

/// Looks at everything.
///
/// # Errors
/// Usage, where the folder of queries cannot be read or holds a file that shadows nothing, or a row
/// to try moves on is not there.
pub async fn run(config: &Config, wanted: &Wanted) -> Result<Findings> {
    let site = Site::open(&config.places, config.queries()?, config.statuses.clone()).await;
    let mut checks = settings::check(config, &site).await;
    checks.extend(columns::check(&site).await);
    let is_read = |ledger, database: &str| {
        let refused = |check: &&Check| {
            check.result == Outcome::Refused && check.place.starts_with(&columns::file(ledger))
        };
        !checks.iter().filter(refused).any(|check| check.databases.iter().any(|label| label == database))
    };
    let (samples, sampled) = sample::check(&site, is_read).await;
    checks.extend(sampled);
    checks.extend(moves::check(config, &site).await);
    checks.extend(indexes::check(&site, &wanted.scope).await);
    checks.extend(rights::check(config, &site).await);
    if wanted.try_moves {
        checks.extend(trial::check(config, &site, wanted).await?);
    }
    site.close().await;
    let checks = worst_first(accepted(merged(checks), &config.accept));
    Ok(Findings { checks, samples })
}

/// The same finding in several databases is one, that names them.
fn merged(checks: Vec<Check>) -> Vec<Check> {
    let mut merged: Vec<Check> = Vec::new();
    for check in checks {
        let same = merged.iter_mut().find(|known| {
            (known.what, &known.place, known.result, &known.message, &known.hint)
                == (check.what, &check.place, check.result, &check.message, &check.hint)
        });
        match same {
            Some(known) => {
                known.databases.extend(check.databases);
                known.databases.dedup();
            }
            None => merged.push(check),
        }
    }
    merged
}

/// What is unproven becomes accepted where the configuration says why; a reason that is given for
/// nothing is a warning.
fn accepted(mut checks: Vec<Check>, reasons: &BTreeMap<String, String>) -> Vec<Check> {
    let mut idle: Vec<&String> = reasons.keys().collect();
    for check in checks.iter_mut().filter(|c| c.result == Outcome::Unproven) {
        let name = check.accepted_as();
        if let Some(reason) = reasons.get(name).filter(|reason| !reason.trim().is_empty()) {
            idle.retain(|known| *known != name);
            check.result = Outcome::Accepted;
            check.message = format!("{}; accepted: {reason}", check.message);
            check.hint = None;
        } else {
            let how = format!("or say in onefold.toml why it is well: [accept] \"{name}\" = \"…\"");
            check.hint = Some(match check.hint.take() {
                Some(hint) => format!("{hint}; {how}"),
                None => how,
            });
        }
    }
    checks.extend(idle.into_iter().map(|name| {
        let message = match reasons.get(name).is_some_and(|reason| reason.trim().is_empty()) {
            true => format!("[accept] \"{name}\" gives no reason: it accepts nothing"),
            false => format!("[accept] \"{name}\" accepts nothing: there all is proven, or refused"),
        };
        Check::new("configuration", settings::FILE, Outcome::Warning, message).hint("remove it")
    }));
    checks
}

fn worst_first(mut checks: Vec<Check>) -> Vec<Check> {
    checks.sort_by_key(|check| check.result);
    checks
}
