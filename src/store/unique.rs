//! What keeps a second row from being written at all: unique indexes on the ledgers, and the inbox of a
//! consumer.

use super::enforce::code;
use super::rows::Reader;
use super::schema::statements;
use super::sql::{Statement, Value, Values};
use super::{Connection, Database, Dialect, Store};
use crate::core::ledger::{Order, Payment};
use crate::core::status::{Ledger, OrderStatus, status_type};
use crate::error::{Error, Result};

status_type!(
    /// What is to be there once.
    Unique {
        /// A key is taken once, for all time: a table, for the service that takes the orders.
        Record = "record",
        /// Of the live orders of a tenant one carries a key.
        LiveKey = "live_key",
        /// A buyer has one live order a show.
        LiveShow = "live_show",
        /// One payment row a charge.
        Charge = "charge",
        /// A consumer does the work of a message's key once: a table, for it to write into.
        Inbox = "inbox",
    }
);

impl Unique {
    pub const fn ledger(self) -> Ledger {
        match self {
            Self::Record | Self::LiveKey | Self::LiveShow => Ledger::Orders,
            Self::Charge => Ledger::Payments,
            Self::Inbox => Ledger::Messages,
        }
    }

    /// What it keeps, for a person.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Record => {
                "a table in which a service takes each key once, and finds the first result again"
            }
            Self::LiveKey => "of the live orders of a tenant, one carries a key",
            Self::LiveShow => "a buyer has one live order a show",
            Self::Charge => "one payment row a charge",
            Self::Inbox => "a table in which a consumer notes each message key that it has done",
        }
    }

    /// The index's or table's name.
    pub fn name(self) -> String {
        match self {
            Self::Record => "onefold_idempotency".to_owned(),
            Self::Inbox => "onefold_inbox".to_owned(),
            _ => format!("onefold_unique_{self}"),
        }
    }

    /// What is made last of it: where that is there, all of it is.
    fn made_last(self) -> String {
        if self == Self::Record { "onefold_idempotency_archive".to_owned() } else { self.name() }
    }

    /// On MySQL, the generated column that the index is over.
    const fn column(self) -> Option<&'static str> {
        match self {
            Self::LiveKey => Some("onefold_live_key"),
            Self::LiveShow => Some("onefold_live_user"),
            Self::Record | Self::Charge | Self::Inbox => None,
        }
    }

    /// Whether it is a table: its rows are evidence, so it is never removed.
    pub const fn is_table(self) -> bool {
        matches!(self, Self::Record | Self::Inbox)
    }
}

/// Rows that the index would not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub tenant_id: String,
    /// What they share.
    pub shared: String,
    pub row_id: String,
    pub status: String,
}

/// One thing of ours in a database.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Installed {
    is_column: bool,
    name: String,
    place: String,
    /// An index that could not be built is there, and holds nothing.
    is_valid: bool,
}

/// Where a uniqueness stands in one database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    Holds,
    /// It could not be built whole: it is to be removed and installed again.
    Broken,
    Missing,
}

impl Store {
    /// The rows that would violate it, at most 1,000 a shard. Keys are compared within a shard only, as
    /// an index compares them.
    pub async fn violations(&self, unique: Unique) -> Result<Vec<Violation>> {
        let live = OrderStatus::ALL.iter().filter(|status| status.is_live());
        let live = live.flat_map(|status| self.statuses.values(Ledger::Orders, status.as_str()));
        let values = Values::new().bind("live", Value::List(live.collect()));
        let order = |shared: fn(&Order) -> String| {
            move |o: Order| Violation {
                tenant_id: o.tenant_id.to_string(),
                shared: shared(&o),
                row_id: format!("order {}", o.order_id),
                status: o.status.to_string(),
            }
        };
        let key = |o: &Order| o.idempotency_key.as_ref().map(ToString::to_string).unwrap_or_default();
        let show = |o: &Order| format!("{} {}", o.user_id, o.show_id);
        let mut found = Vec::new();
        for (shard, database) in self.shards(unique.ledger()) {
            let of_orders = async |file: &str| -> Result<Vec<Order>> {
                self.select_from(shard, database, file, &values).await
            };
            match unique {
                Unique::LiveKey => {
                    found.extend(of_orders("unique/same_live_key").await?.into_iter().map(order(key)));
                }
                Unique::LiveShow => {
                    found.extend(of_orders("unique/same_live_show").await?.into_iter().map(order(show)));
                }
                Unique::Charge => {
                    let file = "unique/same_charge";
                    let same: Vec<Payment> = self.select_from(shard, database, file, &Values::new()).await?;
                    for p in same {
                        found.push(Violation {
                            tenant_id: p.tenant_id.to_string(),
                            shared: format!("{} {}", p.provider, p.provider_txn_id.unwrap_or_default()),
                            row_id: format!("payment {}", p.payment_id),
                            status: p.status.to_string(),
                        });
                    }
                }
                Unique::Record | Unique::Inbox => {}
            }
        }
        Ok(found)
    }

    /// The statements that install it, each with its database; none where it stands already.
    ///
    /// # Errors
    /// Usage, where the ledger is a site's own and its queries bring no index for it.
    pub async fn to_install(&self, unique: Unique) -> Result<Vec<(&Database, String)>> {
        let mut all = Vec::new();
        for (_, database) in self.shards(unique.ledger()) {
            let there = self.unique_installed(database).await?;
            for (name, file) in self.parts(unique, database)? {
                if there.iter().any(|i| i.name == name) {
                    continue;
                }
                let collation = database.binary_collation().await?;
                let made = statements(self.queries.get(&file)?, database.dialect, collation);
                all.extend(made.into_iter().map(|sql| (database, sql)));
            }
        }
        Ok(all)
    }

    /// What an index of ours is made of, in one database: a name and the file that makes it.
    fn parts(&self, unique: Unique, database: &Database) -> Result<Vec<(String, String)>> {
        match unique {
            Unique::Record => return Ok(vec![(unique.made_last(), "schema/idempotency".to_owned())]),
            Unique::Inbox => return Ok(vec![(unique.name(), "unique/inbox".to_owned())]),
            Unique::LiveKey | Unique::LiveShow | Unique::Charge => {}
        }
        let folder = database.dialect.folder();
        let file = format!("unique/{folder}/{unique}");
        if self.is_foreign_ledger(unique.ledger()) && !self.queries.is_shadowed(&file) {
            return Err(Error::usage(format!(
                "the {} are read from tables of your own, and your queries have no {file}.sql",
                unique.ledger()
            ))
            .hint(format!("`onefold queries export DIR` writes ours: begin from its {file}.sql")));
        }
        let mut parts = Vec::new();
        if let (Dialect::Mysql, Some(column)) = (database.dialect, unique.column()) {
            parts.push((column.to_owned(), format!("{file}_column")));
        }
        parts.push((unique.name(), file));
        Ok(parts)
    }

    /// Runs the statements of [`Store::to_install`], one by one: each is safe to run again. An index that
    /// could not be built is removed again.
    ///
    /// # Errors
    /// Failure, where a row came in between that would violate it, or a lock is not given in time.
    pub async fn install_unique(&self, unique: Unique) -> Result<usize> {
        let statements = self.to_install(unique).await?;
        for (database, sql) in &statements {
            let mut connection = database.connection().await?;
            if let Err(error) = database.run_script(&mut connection, sql).await {
                let broken = |i: &Installed| i.name == unique.name() && !i.is_valid;
                for half in self.unique_installed(database).await?.into_iter().filter(broken) {
                    self.remove_one(&mut connection, database, &half).await?;
                }
                return Err(error
                    .context(format!("{} could not be installed", unique.name()))
                    .hint("see what stands in its way with `onefold guard status`, then install again"));
            }
        }
        Ok(statements.len())
    }

    /// Where it stands, in each database of its ledger.
    pub async fn standing(&self, unique: Unique) -> Result<Vec<(&Database, Standing)>> {
        let mut all = Vec::new();
        for (_, database) in self.shards(unique.ledger()) {
            let there = self.unique_installed(database).await?;
            let standing = match there.iter().find(|i| i.name == unique.made_last()) {
                None => Standing::Missing,
                Some(i) if i.is_valid => Standing::Holds,
                Some(_) => Standing::Broken,
            };
            all.push((database, standing));
        }
        Ok(all)
    }

    /// Whether services may take keys in a database.
    ///
    /// # Errors
    /// Usage, where its table of keys was made before the archive was known.
    pub(super) async fn keys_there(&self, database: &Database) -> Result<bool> {
        let there = self.unique_installed(database).await?;
        let has = |name: &str| there.iter().any(|i| i.name == name);
        match (has(&Unique::Record.name()), has(&Unique::Record.made_last())) {
            (true, false) => Err(Error::usage(format!(
                "{} has a table of keys, and no archive beside it yet",
                database.label
            ))
            .hint("`onefold guard install` adds what is missing, and changes nothing else")),
            (there, _) => Ok(there),
        }
    }

    /// Removes an index, and what it is over. Tables with rows stay: a row of the inbox is evidence.
    pub async fn remove_unique(&self, unique: Unique) -> Result<usize> {
        let mut removed = 0;
        for (_, database) in self.shards(unique.ledger()) {
            let of_it = |i: &Installed| i.name == unique.name() || Some(i.name.as_str()) == unique.column();
            let mut there: Vec<_> =
                self.unique_installed(database).await?.into_iter().filter(of_it).collect();
            there.sort_by_key(|i| i.is_column);
            let mut connection = database.connection().await?;
            for ours in there.iter().filter(|_| !unique.is_table()) {
                self.remove_one(&mut connection, database, ours).await?;
                removed += 1;
            }
        }
        Ok(removed)
    }

    async fn remove_one(&self, on: &mut Connection, database: &Database, ours: &Installed) -> Result<()> {
        let file = match ours.is_column {
            true => "unique/mysql/remove_column".to_owned(),
            false => format!("unique/{}/remove", database.dialect.folder()),
        };
        let pieces = [("name", ours.name.as_str()), ("place", ours.place.as_str())];
        let statement = Statement::new(self.queries.get(&file)?, &pieces, &Values::new(), database.dialect)?;
        database.run_script(on, &code(&statement.sql)).await
    }

    async fn unique_installed(&self, database: &Database) -> Result<Vec<Installed>> {
        let file = format!("unique/{}/installed", database.dialect.folder());
        let statement = database.statement(&self.queries, &file, &Values::new())?;
        let mut connection = database.connection().await?;
        let mut all = Vec::new();
        for row in database.fetch(&mut connection, &statement).await? {
            let r = Reader::new(&row, &file);
            let kind: String = r.needed("kind")?;
            all.push(Installed {
                is_column: kind == "COLUMN",
                name: r.needed("name")?,
                place: r.needed("place")?,
                is_valid: r.int("valid")? != 0,
            });
        }
        // A name that needs quotes is none of ours, and no table that we can name.
        let plain = |name: &str| name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        all.retain(|i| plain(&i.name) && plain(&i.place));
        Ok(all)
    }
}
