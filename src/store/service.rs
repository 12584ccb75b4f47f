//! What a service that takes orders does about a key, on its own database: the statements that `guard snippets`
//! prints, in the order that they are to be run in.

use sqlx::Connection as _;

use super::enforce::pieces;
use super::freezes::json;
use super::idempotency::{Hold, decode, decode_archived, fingerprint, held, named, with_outcome};
use super::rows::Reader;
use super::sql::{Queries, Statement, Values};
use super::{Connection, Database, Dialect};
use crate::core::idempotency::{Archived, KeyRecord, KeyState, Known, Named, RequestDigest};
use crate::core::ids::{IdempotencyKey, OrderId, TenantId};
use crate::core::time::{Span, Timestamp};
use crate::error::{Error, Result};
use crate::store::idempotency::{Finished, Outcome};

/// For how long at least a result is to be given again.
const KEEP: Span = Span::from_mins(7 * 24 * 60);

/// A purchase as it is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Purchase {
    pub tenant_id: TenantId,
    pub key: IdempotencyKey,
    pub user_id: String,
    pub show_id: String,
    pub item: String,
    pub quantity: i64,
    /// In the currency's minor unit.
    pub amount_minor: i64,
    pub currency: String,
}

impl Purchase {
    /// A digest of each part of the request.
    pub fn digest(&self) -> RequestDigest {
        let (quantity, amount) = (self.quantity.to_string(), self.amount_minor.to_string());
        [
            ("user_id", &self.user_id),
            ("show_id", &self.show_id),
            ("item", &self.item),
            ("quantity", &quantity),
            ("amount_minor", &amount),
            ("currency", &self.currency),
        ]
        .into_iter()
        .fold(RequestDigest::default(), |d, (name, value)| d.part(&self.key, name, Some(value.as_bytes())))
    }
}

/// What came of taking a key.
#[must_use]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Begun {
    /// Nobody has had it.
    Taken(Hold),
    /// Somebody has, and its record is there, or was a moment ago.
    There,
    /// It was done long ago: nothing runs again.
    Archived(Archived),
}

/// A service beside its database.
pub struct Service<'a> {
    pub database: &'a Database,
    pub queries: &'a Queries,
    /// How long a key is held at a time.
    pub lease: Span,
}

impl Service<'_> {
    /// Takes a key that nobody has, in a transaction of its own, before any effect. After the insert it looks into
    /// the archive: that sees what was archived before the insert could be done only because the transaction has
    /// read nothing before it.
    pub async fn begin(&self, purchase: &Purchase, owner: &str) -> Result<Begun> {
        let digest = purchase.digest();
        let values = named(&purchase.tenant_id, &purchase.key)
            .bind("digest", digest.whole())
            .bind("digest_parts", json(&digest)?)
            .bind("owner", owner)
            .bind("lease_us", self.lease.micros())
            .bind("keep_for_us", KEEP.micros());
        let statement = self.statement("idempotency/insert", &values)?;
        let mut tx = self.database.begin().await?;
        match self.database.insert(&mut tx, &statement).await {
            Ok(true) => {}
            Ok(false) => return self.undo(tx).await.map(|()| Begun::There),
            // Another is at it in this very moment: what came of that is to be read.
            Err(e) if e.is_clash() => return self.undo(tx).await.map(|()| Begun::There),
            Err(e) => return Err(e),
        }
        if let Some((archived, _)) = self.archived(&mut tx, purchase).await? {
            return self.undo(tx).await.map(|()| Begun::Archived(archived));
        }
        self.database.commit(tx).await?;
        Ok(Begun::Taken(Hold {
            tenant_id: purchase.tenant_id.clone(),
            key: purchase.key.clone(),
            owner: owner.to_owned(),
            token: 1,
            version: 1,
        }))
    }

    /// What is known of a key, in its record or in the archive, and the database's time.
    pub async fn look(&self, purchase: &Purchase) -> Result<Option<(Known, Timestamp)>> {
        let statement = self.statement("idempotency/by_key", &named(&purchase.tenant_id, &purchase.key))?;
        let mut connection = self.database.connection().await?;
        let rows = self.database.fetch(&mut connection, &statement).await?;
        if let Some(row) = rows.first() {
            let (record, now) = decode(row, true)?;
            return Ok(Some((Known::Record(record), now)));
        }
        // In this order: a record moves into the archive, and never back.
        let archived = self.archived(&mut connection, purchase).await?;
        Ok(archived.map(|(archived, now)| (Known::Archived(archived), now)))
    }

    async fn archived(
        &self,
        on: &mut Connection,
        purchase: &Purchase,
    ) -> Result<Option<(Archived, Timestamp)>> {
        let values = fingerprint(&purchase.tenant_id, &purchase.key);
        let statement = self.statement("idempotency/archived", &values)?;
        let rows = self.database.fetch(on, &statement).await?;
        rows.first().map(decode_archived).transpose()
    }

    /// Takes a key that is as it was seen, under the next fencing token; `None` where another was faster.
    pub async fn take_over(&self, seen: &KeyRecord, owner: &str) -> Result<Option<Hold>> {
        let values = named(&seen.tenant_id, &seen.key)
            .bind("state", KeyState::Processing.as_str())
            .bind("owner", owner)
            .bind("lease_us", self.lease.micros())
            .bind("may_have_run", 0)
            .bind("note", None::<&str>)
            .bind("version", seen.version)
            .bind("seen_state", seen.state.as_str());
        let taken = self.change("idempotency/take", &values).await?;
        Ok(taken.then(|| Hold {
            tenant_id: seen.tenant_id.clone(),
            key: seen.key.clone(),
            owner: owner.to_owned(),
            token: seen.token + 1,
            version: seen.version + 1,
        }))
    }

    /// Renews the lease of a key; whether it is still theirs.
    pub async fn renew(&self, hold: &Hold) -> Result<bool> {
        self.change("idempotency/renew", &held(hold).bind("lease_us", self.lease.micros())).await
    }

    /// Writes the order, says that the key is about it, and ends the key, all or nothing: an owner who has been
    /// replaced writes nothing.
    pub async fn confirm(&self, hold: &Hold, purchase: &Purchase, order_id: &OrderId) -> Result<Finished> {
        let outcome = Outcome {
            state: KeyState::Succeeded,
            exit_code: None,
            result_ref: Some(order_id.to_string()),
            result: Some(json(&serde_json::json!({ "order_id": order_id, "status": "PAID" }))?),
            note: None,
        };
        let order = self.order(purchase, order_id)?;
        let named = self.name(purchase, &Named::order(order_id.as_str()))?;
        let finish = self.statement("idempotency/finish", &with_outcome(held(hold), &outcome))?;
        let mut is_replaced = false;
        let done = self
            .database
            .transaction(async |tx| {
                // A live order of this key that is another's, or a token that is over.
                if self.database.insert(tx, &order).await? {
                    self.database.execute(tx, &named).await?;
                    if self.database.execute(tx, &finish).await? == 1 {
                        return Ok(());
                    }
                }
                is_replaced = true;
                Err(Error::stale("the key is another's"))
            })
            .await;
        match done {
            Ok(()) => Ok(Finished::Recorded),
            Err(_) if is_replaced => Ok(Finished::Replaced),
            Err(e) => Err(e),
        }
    }

    /// Writes an order, as a service without a guard does.
    pub async fn write(&self, purchase: &Purchase, order_id: &OrderId) -> Result<()> {
        let order = self.order(purchase, order_id)?;
        self.database.transaction(async |tx| self.database.execute(tx, &order).await.map(drop)).await
    }

    /// Loses a connection in the middle of the effect: the order is written, and nothing is committed.
    pub async fn break_off(&self, purchase: &Purchase, order_id: &OrderId) -> Result<()> {
        let order = self.order(purchase, order_id)?;
        let mut connection: Connection = self.database.connection().await?.detach();
        let begun = match self.database.dialect {
            Dialect::Sqlite => connection.begin_with("BEGIN IMMEDIATE").await,
            Dialect::Postgres | Dialect::Mysql => connection.begin().await,
        };
        let mut tx = begun.map_err(|e| self.database.failed(&e))?;
        self.database.insert(&mut tx, &order).await.map(drop)
    }

    /// The ids of the orders of a key.
    pub async fn orders(&self, tenant_id: &TenantId, key: &IdempotencyKey) -> Result<Vec<OrderId>> {
        let statement = self.statement("drill/orders", &named(tenant_id, key))?;
        let mut connection = self.database.connection().await?;
        let rows = self.database.fetch(&mut connection, &statement).await?;
        rows.iter().map(|row| Reader::new(row, "orders").id("order_id")).collect()
    }

    fn order(&self, purchase: &Purchase, order_id: &OrderId) -> Result<Statement> {
        let values = named(&purchase.tenant_id, &purchase.key)
            .bind("order_id", order_id.as_str())
            .bind("user_id", purchase.user_id.as_str())
            .bind("show_id", purchase.show_id.as_str())
            .bind("item", purchase.item.as_str())
            .bind("quantity", purchase.quantity)
            .bind("amount_minor", purchase.amount_minor)
            .bind("currency", purchase.currency.as_str());
        self.statement("drill/order", &values)
    }

    /// Says what a key is about.
    fn name(&self, purchase: &Purchase, name: &Named) -> Result<Statement> {
        let values = named(&purchase.tenant_id, &purchase.key)
            .bind("ledger", name.ledger.as_str())
            .bind("row_id", name.row_id.as_str());
        self.statement("idempotency/name", &values)
    }

    async fn change(&self, file: &str, values: &Values) -> Result<bool> {
        let statement = self.statement(file, values)?;
        Ok(self.database.transaction(async |tx| self.database.execute(tx, &statement).await).await? == 1)
    }

    async fn undo(&self, tx: super::Transaction) -> Result<()> {
        tx.rollback().await.map_err(|e| self.database.failed(&e))
    }

    fn statement(&self, file: &str, values: &Values) -> Result<Statement> {
        let dialect = self.database.dialect;
        Statement::new(self.queries.get(file)?, &pieces(dialect), values, dialect)
            .map_err(|e| e.context(format!("{file}.sql")))
    }
}
