//! Which journal a database belongs to. Every ledger's database is marked with the journal that moves its rows, so
//! that a journal that somebody brings himself, which knows neither the freezes nor the rule for approvals of the
//! first, moves none of them.
//!
//! A journal's name is made of a secret that only its own database has: whoever reads a mark cannot make a journal
//! that it fits.

use super::rows::Reader;
use super::schema::not_ready;
use super::sql::Values;
use super::{Database, Store};
use crate::core::hash::FieldHash;
use crate::error::{Error, Result};

/// To which journal a database belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Belonging {
    journal: String,
    is_home: bool,
    label: String,
}

impl Store {
    /// Fails where a database that this store is over does not belong to its journal.
    ///
    /// # Errors
    /// Refused, where it belongs to another; usage, where nobody has marked it.
    pub async fn must_be_ours(&self) -> Result<()> {
        for database in self.databases() {
            self.must_belong(database).await?;
        }
        Ok(())
    }

    /// As [`Store::must_be_ours`], of one database.
    pub async fn must_belong(&self, database: &Database) -> Result<()> {
        match self.belonging_of(database).await? {
            Some(belonging) => self.judge(database, &belonging, self.journal_name().await?.as_deref()),
            None => Err(not_ready(database)),
        }
    }

    /// The journal's public name; `None` before it was set up.
    async fn journal_name(&self) -> Result<Option<String>> {
        let journal = self.journal();
        let statement = journal.statement(&self.queries, "belonging/secret", &Values::new())?;
        let rows = journal.rows_of("onefold_secrets", &statement).await?;
        let secret = rows.first().map(|row| Reader::new(row, "onefold_secrets").needed("value"));
        Ok(secret.transpose()?.map(|secret| public_name(&secret)))
    }

    /// Fails where a database belongs to another journal; one that nobody has marked is anybody's.
    pub async fn must_not_be_anothers(&self) -> Result<()> {
        let has = async |database, table| Ok::<_, Error>(!self.columns_of(database, table).await?.is_empty());
        let name = match has(self.journal(), "onefold_secrets").await? {
            true => self.journal_name().await?,
            false => None,
        };
        for database in self.databases() {
            let is_marked = has(database, "onefold_belongs").await?;
            if is_marked && let Some(belonging) = self.belonging_of(database).await? {
                self.judge(database, &belonging, name.as_deref())?;
            }
            // What an older version set up has no mark yet.
            if !is_marked && !self.is_journal(database) && has(database, "onefold_freezes").await? {
                return Err(Error::refused(format!("{} is the home of another journal", database.label)).hint(
                    "set it up by the configuration of that journal, `onefold init`, and use that; in a copy made for \
                     a rehearsal its owner renames the table onefold_freezes by SQL of his own",
                ));
            }
        }
        Ok(())
    }

    /// Marks every database that nobody has marked, and then fails where one belongs to another journal.
    pub(super) async fn write_belongings(&self) -> Result<()> {
        let name = match self.journal_name().await? {
            Some(name) => name,
            None => self.name_journal().await?,
        };
        let journal = self.journal();
        for database in self.databases() {
            let values = Values::new()
                .bind("journal", name.as_str())
                .bind("is_home", i64::from(self.is_journal(database)))
                .bind("label", journal.label.as_str());
            let statement = database.statement(&self.queries, "belonging/write", &values)?;
            let mut connection = database.connection().await?;
            // Where another was faster, his mark is the one.
            database.insert(&mut connection, &statement).await?;
        }
        self.must_be_ours().await
    }

    /// Gives the journal a name for good.
    async fn name_journal(&self) -> Result<String> {
        let journal = self.journal();
        let secret = uuid::Uuid::new_v4().simple().to_string();
        let values = Values::new().bind("value", secret.as_str());
        let statement = journal.statement(&self.queries, "belonging/keep_secret", &values)?;
        let mut connection = journal.connection().await?;
        // Where another was faster, his is the name.
        journal.insert(&mut connection, &statement).await?;
        drop(connection);
        self.journal_name().await?.ok_or_else(|| Error::failure("the journal's secret was not kept"))
    }

    fn is_journal(&self, database: &Database) -> bool {
        std::ptr::eq(database, self.journal())
    }

    async fn belonging_of(&self, database: &Database) -> Result<Option<Belonging>> {
        let statement = database.statement(&self.queries, "belonging/read", &Values::new())?;
        let rows = database.rows_of("onefold_belongs", &statement).await?;
        let belonging = rows.first().map(|row| {
            let r = Reader::new(row, "onefold_belongs");
            Ok(Belonging {
                journal: r.needed("journal")?,
                is_home: r.int("is_home")? != 0,
                label: r.needed("label")?,
            })
        });
        belonging.transpose()
    }

    /// Fails where a mark is another journal's than the one of this name.
    fn judge(&self, database: &Database, belonging: &Belonging, name: Option<&str>) -> Result<()> {
        let Belonging { journal, is_home, label } = belonging;
        let is_ours = name == Some(journal);
        match (is_ours, *is_home, self.is_journal(database)) {
            (true, true, true) | (true, false, false) => Ok(()),
            // The home of a journal is told by its place, too: its secret may be read there.
            (true, ..) => Err(Error::refused(format!(
                "{} is marked as {} of its journal, and this configuration has it otherwise",
                database.label,
                if *is_home { "the home" } else { "a ledger" },
            ))
            .hint(format!(
                "name each database by one URL, as in the configuration by which it was set up: there the journal is \
                 {label}"
            ))),
            (false, ..) => Err(Error::refused(format!(
                "{} belongs to another journal, {}, reached as {label} when it was set up",
                database.label,
                short(journal),
            ))
            .hint(
                "use the configuration of that journal: its freezes and its rule for approvals hold here; in a copy \
                 made for a rehearsal its owner takes the row out of onefold_belongs by SQL of his own, then: \
                 onefold init",
            )),
        }
    }
}

/// What others may know of a journal by its secret.
fn public_name(secret: &str) -> String {
    FieldHash::new().text("onefold-journal-1").text(secret).hex()
}

/// The name as it is told.
fn short(name: &str) -> &str {
    name.get(..12).unwrap_or(name)
}
