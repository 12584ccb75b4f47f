//! Copies of enforced freezes in the ledgers' databases, by which the triggers there judge, and the
//! passes with which our own moves get through.

use std::collections::BTreeSet;

use sqlx::Connection as _;

use super::enforce::pieces;
use super::freezes::json;
use super::rows::Reader;
use super::sql::{Statement, Value, Values};
use super::{BATCH, Connection, Database, Dialect, Store};
use crate::core::freeze::{Effect, Freeze, FreezeMode};
use crate::core::hash::FieldHash;
use crate::core::status::{Ledger, PaymentStatus};
use crate::core::time::Timestamp;
use crate::error::{Error, Result};

/// A pass that is open: the token by which the triggers know this transaction.
#[must_use]
#[derive(Debug)]
pub(super) struct Pass(Option<String>);

impl Store {
    /// The databases that hold a ledger, each once.
    pub(super) fn ledger_databases(&self) -> impl Iterator<Item = &Database> {
        self.databases
            .iter()
            .enumerate()
            .filter(|(at, _)| self.ledgers.iter().flatten().any(|home| home == at))
            .map(|(_, database)| database)
    }

    /// Whether a shard of this ledger is in this database.
    pub(super) fn is_in(&self, ledger: Ledger, database: &Database) -> bool {
        self.shards(ledger).any(|(_, shard)| std::ptr::eq(shard, database))
    }

    /// Whether every database of orders has payments, too: then an order's charge can be seen there.
    pub fn payments_are_beside_orders(&self) -> bool {
        self.shards(Ledger::Orders).all(|(_, database)| self.is_in(Ledger::Payments, database))
    }

    /// Whether every database of orders judges what becomes PAID when its transaction commits.
    pub fn paid_is_judged_at_commit(&self) -> bool {
        self.shards(Ledger::Orders).all(|(_, database)| database.dialect == Dialect::Postgres)
    }

    /// Makes the copies of an enforced freeze what the freeze is now: in the journal's database
    /// within its transaction, which is to be committed next; elsewhere before it. Done again after a
    /// failure, it comes to the same.
    pub(super) async fn copy_freeze(
        &self,
        tx: &mut Connection,
        freeze: &Freeze,
        now: Timestamp,
    ) -> Result<()> {
        if freeze.mode != FreezeMode::Enforced {
            return Ok(());
        }
        for database in self.ledger_databases().filter(|d| !std::ptr::eq(*d, self.journal())) {
            database.transaction(async |tx| self.copy_on(tx, database, freeze, now).await).await?;
        }
        match self.ledger_databases().find(|d| std::ptr::eq(*d, self.journal())) {
            Some(journal) => self.copy_on(tx, journal, freeze, now).await,
            None => Ok(()),
        }
    }

    /// Ends what copies there are of a freeze that could not be made everywhere. One that cannot be
    /// reached now lapses with its lease.
    pub(super) async fn withdraw_copies(&self, freeze_id: &str) {
        let values = Values::new().bind("freeze_id", freeze_id);
        for database in self.ledger_databases() {
            let _ = database
                .transaction(async |tx| {
                    self.close_gate(tx, database).await?;
                    self.run_on(tx, database, "enforce/end_copy", &values).await?;
                    self.run_on(tx, database, "enforce/count_frozen", &Values::new()).await
                })
                .await;
        }
    }

    /// Fails where some ledger's database does not hold what this freeze stops: its copy is missing, lapsed
    /// or of another token, or a pass is there for everybody.
    ///
    /// # Errors
    /// Refused, saying what to do.
    pub async fn must_hold(&self, freeze: &Freeze) -> Result<()> {
        let file = "enforce/copy_holds";
        let values = Values::new().bind("freeze_id", freeze.freeze_id.as_str()).bind("token", freeze.token);
        for database in self.ledger_databases() {
            let statement = Statement::new(
                self.queries.get(file)?,
                &pieces(database.dialect),
                &values,
                database.dialect,
            )?;
            let mut connection = database.connection().await?;
            let (mut copies, mut passes) = (0, 0);
            for row in database.fetch(&mut connection, &statement).await? {
                let r = Reader::new(&row, file);
                (copies, passes) = (r.int("copies")?, r.int("passes")?);
            }
            if copies != 1 {
                return Err(Error::refused(format!(
                    "{} is enforced no longer: {} has no live copy of it under token {}",
                    freeze.freeze_id, database.label, freeze.token
                ))
                .hint(format!("onefold freeze --renew {} --enforce, then plan again", freeze.freeze_id)));
            }
            if passes != 0 {
                return Err(Error::refused(format!(
                    "{} is enforced no longer: onefold_pass of {} has a row that is not ours, and it may let \
                     others through",
                    freeze.freeze_id, database.label
                ))
                .hint("see who wrote it, take that row away by hand, then plan again"));
            }
        }
        Ok(())
    }

    async fn copy_on(
        &self,
        tx: &mut Connection,
        database: &Database,
        freeze: &Freeze,
        now: Timestamp,
    ) -> Result<()> {
        self.close_gate(tx, database).await?;
        let narrowing = match &freeze.narrowed_to {
            Some(held) => number(&json(held)?),
            None => 0,
        };
        let values = self.copy_values(database, freeze, narrowing, now)?;
        let is_new = self.run_on(tx, database, "enforce/update_copy", &values).await? == 0;
        let mut rows = Vec::new();
        if is_new {
            self.run_on(tx, database, "enforce/insert_copy", &values).await?;
            rows.extend(self.named(freeze));
        }
        if narrowing != 0 {
            let there =
                Statement::new(self.queries.get("enforce/narrowed")?, &[], &values, database.dialect)?;
            if database.fetch(tx, &there).await?.is_empty() {
                rows.extend(held(freeze, narrowing));
            }
        }
        let rows: Vec<Vec<Value>> = rows
            .into_iter()
            .map(|(kind, narrowing, tenant_id, value)| {
                vec![
                    freeze.freeze_id.as_str().into(),
                    kind.into(),
                    narrowing.into(),
                    tenant_id.into(),
                    value.into(),
                ]
            })
            .collect();
        for rows in rows.chunks(BATCH) {
            let values = Values::new().bind("rows", rows.to_vec());
            self.run_on(tx, database, "enforce/insert_scope", &values).await?;
        }
        self.run_on(tx, database, "enforce/count_frozen", &Values::new()).await?;
        Ok(())
    }

    /// Waits until no guarded write is under way in this database; until this transaction ends, new
    /// ones wait in their turn.
    async fn close_gate(&self, tx: &mut Connection, database: &Database) -> Result<()> {
        let none = Values::new();
        match database.dialect {
            Dialect::Sqlite => {}
            Dialect::Postgres => drop(self.run_on(tx, database, "enforce/postgres/shut", &none).await?),
            Dialect::Mysql => drop(self.run_on(tx, database, "enforce/mysql/wait_briefly", &none).await?),
        }
        self.run_on(tx, database, "enforce/close_gate", &none).await?;
        Ok(())
    }

    fn copy_values(
        &self,
        database: &Database,
        freeze: &Freeze,
        narrowing: i64,
        now: Timestamp,
    ) -> Result<Values> {
        fn list<T: serde::Serialize>(names: &BTreeSet<T>) -> Result<Option<String>> {
            (!names.is_empty()).then(|| json(names)).transpose()
        }
        let stops = |effect| i64::from(freeze.effects.contains(&effect));
        let scope = &freeze.scope;
        Ok(Values::new()
            .bind("freeze_id", freeze.freeze_id.as_str())
            .bind("token", freeze.token)
            .bind("owner", freeze.owner.as_str())
            .bind("reason", freeze.reason.as_str())
            .bind("auto_payment", stops(Effect::AutoPayment))
            .bind("paid", stops(Effect::AutoPayment) * i64::from(self.is_in(Ledger::Payments, database)))
            .bind("ticketing", stops(Effect::Ticketing))
            .bind("stock_release", stops(Effect::StockRelease))
            .bind("messages", stops(Effect::Messages))
            .bind("tenants", list(&scope.tenants)?)
            .bind("users", list(&scope.users)?)
            .bind("shows", list(&scope.shows)?)
            .bind("sessions", list(&scope.sessions)?)
            .bind("topics", list(&freeze.topics)?)
            .bind("from_us", scope.from.map(Timestamp::micros))
            .bind("to_us", scope.to.map(Timestamp::micros))
            .bind("narrowing", narrowing)
            .bind("lease_left_us", freeze.lease_until.since(now).micros())
            .bind("ended", i64::from(!freeze.is_open())))
    }

    /// What a freeze names, as rows of onefold_frozen_scope without the freeze's id.
    fn named(&self, freeze: &Freeze) -> Vec<(&'static str, i64, String, String)> {
        fn of<T: ToString>(kind: &'static str, names: &BTreeSet<T>) -> Vec<(&'static str, String)> {
            names.iter().map(|name| (kind, name.to_string())).collect()
        }
        let scope = &freeze.scope;
        let captured = self.statuses.values(Ledger::Payments, PaymentStatus::Captured.as_str());
        [
            of("tenant", &scope.tenants),
            of("user", &scope.users),
            of("show", &scope.shows),
            of("session", &scope.sessions),
            of("topic", &freeze.topics),
            of("captured", &captured.into_iter().collect()),
        ]
        .concat()
        .into_iter()
        .map(|(kind, value)| (kind, 0, String::new(), value))
        .collect()
    }

    /// Lets what this transaction writes next through the triggers, and nobody else.
    pub(super) async fn open_pass(&self, on: &mut Connection, database: &Database) -> Result<Pass> {
        if !self.has_copies(on, database).await? {
            return Ok(Pass(None));
        }
        let token = uuid::Uuid::new_v4().simple().to_string();
        let file = match database.dialect {
            Dialect::Sqlite => "enforce/sqlite/open_pass",
            Dialect::Postgres => "enforce/postgres/open_pass",
            Dialect::Mysql => "enforce/mysql/open_pass",
        };
        self.run_on(on, database, file, &Values::new().bind("token", token.as_str())).await?;
        Ok(Pass(Some(token)))
    }

    /// Takes a pass away before anything of its transaction is committed.
    pub(super) async fn close_pass(
        &self,
        on: &mut Connection,
        database: &Database,
        pass: Pass,
    ) -> Result<()> {
        let Some(token) = pass.0 else { return Ok(()) };
        if database.dialect == Dialect::Postgres {
            self.run_on(on, database, "enforce/postgres/judge_now", &Values::new()).await?;
        }
        self.run_on(on, database, "enforce/close_pass", &Values::new().bind("token", token)).await?;
        if database.dialect == Dialect::Mysql {
            self.run_on(on, database, "enforce/mysql/forget_pass", &Values::new()).await?;
        }
        Ok(())
    }

    /// Whether `onefold init` has made the tables of copies in this database; looked up once.
    ///
    /// In a savepoint: on PostgreSQL the transaction is lost where there is no such table. Not on a
    /// second connection: where each of a pool's holders waits for one more, none gets it.
    async fn has_copies(&self, on: &mut Connection, database: &Database) -> Result<bool> {
        if let Some(known) = database.has_copies.get() {
            return Ok(*known);
        }
        let gate = database.statement(&self.queries, "enforce/gate", &Values::new())?;
        let mut savepoint = on.begin().await.map_err(|e| database.failed(&e))?;
        let there = database.fetch(&mut savepoint, &gate).await.is_ok_and(|rows| !rows.is_empty());
        savepoint.rollback().await.map_err(|e| database.failed(&e))?;
        Ok(*database.has_copies.get_or_init(|| there))
    }

    async fn run_on(
        &self,
        on: &mut Connection,
        database: &Database,
        file: &str,
        values: &Values,
    ) -> Result<u64> {
        let statement =
            Statement::new(self.queries.get(file)?, &pieces(database.dialect), values, database.dialect)
                .map_err(|e| e.context(format!("{file}.sql")))?;
        database.execute(on, &statement).await.map_err(|e| e.context(format!("{file}.sql")))
    }
}

/// The rows that a narrowed freeze still holds.
fn held(freeze: &Freeze, narrowing: i64) -> BTreeSet<(&'static str, i64, String, String)> {
    let mut rows = BTreeSet::new();
    for intent in freeze.narrowed_to.iter().flatten() {
        let orders = intent.orders.iter().map(|id| (Ledger::Orders, id.to_string()));
        let orphans = intent.orphans.iter().map(|(ledger, id)| (*ledger, id.to_string()));
        rows.extend(
            orders
                .chain(orphans)
                .map(|(ledger, id)| (ledger.as_str(), narrowing, intent.tenant_id.to_string(), id)),
        );
    }
    rows
}

/// A number by which a narrowing is told from others; never 0.
fn number(text: &str) -> i64 {
    let digest = FieldHash::new().text(text).hex();
    i64::from_str_radix(&digest[..15], 16).unwrap_or(0) + 1
}
