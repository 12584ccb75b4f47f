//! What the verbs about kept idempotency keys share, wherever these lie.

use serde_json::{Value, json};

use crate::commands::progress::Progress;
use crate::commands::{now, worker};
use crate::config::Config;
use crate::core::idempotency::Retention;
use crate::core::retention::RetentionPolicy;
use crate::core::status::Ledger;
use crate::core::time::Span;
use crate::error::Result;
use crate::report::Report;
use crate::store::idempotency::Holder;
use crate::store::retention::{Stored, StoredArchive};
use crate::store::{Places, Store};

/// A store for each database that has a table of keys: the journal's, which has those of `once`, and those of the
/// orders, where services take keys. The other ledgers are not asked.
pub async fn open(config: &Config) -> Result<Vec<Store>> {
    let journal = Places::one(&config.places.journal);
    let mut ledgers = journal.ledgers;
    ledgers[Ledger::Orders as usize].clone_from(&config.places.ledgers[Ledger::Orders as usize]);
    let places = Places { journal: journal.journal, ledgers };
    let all = Config { places, ..config.clone() }.open_ready().await?.of_each_keys().await?;
    for store in &all {
        store.must_keep_keys().await?;
    }
    Ok(all)
}

pub fn holder(config: &Config) -> Holder {
    let owner = worker(config, 0).owner;
    Holder { actor: config.actor.clone(), owner, lease: Span::from_secs(1), clock: now }
}

/// What the tiers take.
#[derive(Clone, Debug, Default)]
pub struct Storage {
    pub records: Vec<Stored>,
    pub archive: StoredArchive,
}

pub async fn stored(config: &Config, store: &Store, policy: Option<&RetentionPolicy>) -> Result<Storage> {
    let progress = Progress::new(config, "measuring what is kept");
    let records = store.stored_keys().await?;
    let archive = store.stored_archive(policy.map(|policy| policy.archive)).await?;
    progress.end();
    Ok(Storage { records, archive })
}

impl Storage {
    /// What both take.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        self.records.extend(&other.records);
        self.archive.records += other.archive.records;
        self.archive.past += other.archive.past;
        self.archive.bytes += other.archive.bytes;
        self
    }

    /// Keys and bytes of a tier.
    pub fn of(&self, tier: Retention) -> (u64, u64) {
        if tier == Retention::Archive {
            return (self.archive.records, self.archive.bytes);
        }
        let of_tier = || self.records.iter().filter(|stored| stored.tier == tier);
        (of_tier().map(|stored| stored.records).sum(), of_tier().map(|stored| stored.bytes).sum())
    }

    /// How many records have ended, and how many have not.
    pub fn ended(&self) -> (u64, u64) {
        let count = |ended: bool| {
            let of = self.records.iter().filter(|stored| stored.state.is_terminal() == ended);
            of.map(|stored| stored.records).sum()
        };
        (count(true), count(false))
    }

    pub fn json(&self) -> Value {
        let tiers = Retention::ALL.iter().map(|tier| {
            let (keys, bytes) = self.of(*tier);
            (tier.to_string(), json!({ "keys": keys, "bytes": bytes }))
        });
        let mut value = Value::Object(tiers.collect());
        value["archive"]["past_window"] = self.archive.past.into();
        value
    }

    /// Tells of fingerprints that are older than the archive's window.
    pub fn past(&self, report: Report) -> Report {
        match self.archive.past {
            0 => report,
            past => report.line(format!(
                "{past} archived keys were not seen for longer than the archive's window. They stay: onefold deletes \
                 none, since a key without its fingerprint would be run again."
            )),
        }
    }
}

/// `12.3 kB`.
pub fn bytes(bytes: u64) -> String {
    let units = ["B", "kB", "MB", "GB", "TB"];
    let mut size = bytes as f64;
    let mut at = 0;
    while size >= 999.5 && at + 1 < units.len() {
        size /= 1000.0;
        at += 1;
    }
    if at == 0 { format!("{bytes} B") } else { format!("{size:.1} {}", units[at]) }
}
