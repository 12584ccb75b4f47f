//! The only user of sqlx: connections, dialects, SQL files, and rows to core types and back.

pub mod access;
pub mod approvals;
pub mod asked;
pub mod belonging;
pub mod chain;
pub mod connect;
pub mod copies;
pub mod enforce;
pub mod export;
pub mod freezes;
pub mod idempotency;
pub mod import;
pub mod journal;
pub mod locks;
pub mod moves;
pub mod names;
pub mod outbox;
pub mod passwords;
pub mod person;
pub mod plans;
pub mod probe;
pub mod read;
pub mod reports;
pub mod retention;
pub mod rows;
pub mod sandbox;
pub mod schema;
pub mod scratch;
pub mod service;
pub mod snippet;
pub mod sql;
pub mod standing_rule;
pub mod statuses;
pub mod steps;
pub mod unique;

mod bulk;
mod moment;
mod packed;
mod session;
mod transaction;

pub use connect::{Connection, Database, Dialect, without_password};
pub use sql::Queries;
pub use statuses::Statuses;
pub use transaction::Transaction;

use crate::core::ledger::Shard;
use crate::core::status::Ledger;
use crate::error::Result;

/// The four ledgers and onefold's own tables, wherever they live.
#[derive(Clone, Debug)]
pub struct Store {
    pub queries: Queries,
    /// The site's own words for statuses.
    pub statuses: Statuses,
    databases: Vec<Database>,
    /// Index of the database of onefold's own tables.
    journal: usize,
    /// For each ledger, the indices of its shards' databases.
    ledgers: [Vec<usize>; 4],
    /// Index of the database whose keys are meant: the journal's, which has those of `once`, unless it is one of
    /// [`Store::of_each_keys`].
    keys: usize,
}

/// Where a store's parts live, as URLs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    pub journal: String,
    /// Of orders, payments, inventory and messages, one URL a shard.
    pub ledgers: [Vec<String>; 4],
}

impl Places {
    /// Everything in one database.
    pub fn one(url: &str) -> Self {
        Self { journal: url.to_owned(), ledgers: std::array::from_fn(|_| vec![url.to_owned()]) }
    }

    /// Whether all of it is in SQLite files.
    pub fn is_embedded(&self) -> bool {
        self.ledgers.iter().flatten().chain([&self.journal]).all(|url| url.starts_with("sqlite:"))
    }

    /// The same places with other URLs.
    #[must_use]
    pub fn map(&self, url: impl Fn(&String) -> String) -> Self {
        Self {
            journal: url(&self.journal),
            ledgers: self.ledgers.each_ref().map(|urls| urls.iter().map(&url).collect()),
        }
    }
}

impl Store {
    /// Connects to every database, each once. `create` makes SQLite files that are not there.
    ///
    /// # Errors
    /// As [`Database::connect`].
    pub async fn open(places: &Places, queries: Queries, statuses: Statuses, create: bool) -> Result<Self> {
        let mut urls: Vec<&String> = Vec::new();
        let mut index_of = |url| {
            urls.iter().position(|known| *known == url).unwrap_or_else(|| {
                urls.push(url);
                urls.len() - 1
            })
        };
        let journal = index_of(&places.journal);
        let ledgers = places.ledgers.each_ref().map(|shards| shards.iter().map(&mut index_of).collect());
        let mut databases = Vec::with_capacity(urls.len());
        for url in urls {
            databases.push(Database::connect(url, create).await?);
        }
        Ok(Self { queries, statuses, databases, journal, ledgers, keys: journal })
    }

    /// The database of onefold's own tables.
    pub fn journal(&self) -> &Database {
        &self.databases[self.journal]
    }

    /// The databases of one ledger, in the order of its shards.
    pub fn shards(&self, ledger: Ledger) -> impl Iterator<Item = (Shard, &Database)> {
        self.ledgers[ledger as usize].iter().enumerate().map(|(shard, at)| {
            // Shards are named one by one in the configuration: there are never 65,536 of them.
            (Shard::try_from(shard).unwrap_or(Shard::MAX), &self.databases[*at])
        })
    }

    /// The database of one shard of a ledger.
    pub fn shard(&self, ledger: Ledger, shard: Shard) -> &Database {
        &self.databases[self.ledgers[ledger as usize][usize::from(shard)]]
    }

    /// Whether a move on this shard can commit together with the journal.
    pub fn is_beside_journal(&self, ledger: Ledger, shard: Shard) -> bool {
        self.ledgers[ledger as usize][usize::from(shard)] == self.journal
    }

    /// Whether some ledger is read from a site's own tables.
    pub fn is_foreign(&self) -> bool {
        Ledger::ALL.into_iter().any(|ledger| self.is_foreign_ledger(ledger))
    }

    /// Whether this ledger is read from a site's own tables.
    pub fn is_foreign_ledger(&self, ledger: Ledger) -> bool {
        self.queries.is_shadowed(&format!("ledgers/{ledger}"))
    }

    /// Every database, each once.
    pub fn databases(&self) -> &[Database] {
        &self.databases
    }

    pub async fn close(&self) {
        for database in &self.databases {
            database.close().await;
        }
    }
}

/// How many values are put into one list of a statement.
pub(crate) const BATCH: usize = 500;

/// Rows to be written in statements of few lengths, so that texts repeat: a database prepares each once, and a connection
/// keeps each that it has prepared.
fn in_few_lengths<T>(mut rows: &[T]) -> impl Iterator<Item = &[T]> {
    std::iter::from_fn(move || {
        let length = if rows.len() < BATCH { 1 << rows.len().checked_ilog2()? } else { BATCH };
        let (now, rest) = rows.split_at(length);
        rows = rest;
        Some(now)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_any_number_are_written_once_each_in_few_lengths() {
        let rows: Vec<usize> = (0..1207).collect();
        for count in 0..rows.len() {
            let written: Vec<&[usize]> = in_few_lengths(&rows[..count]).collect();
            assert_eq!(written.concat(), rows[..count]);
            assert!(written.iter().all(|part| part.len() == BATCH || part.len().is_power_of_two()));
        }
    }
}
