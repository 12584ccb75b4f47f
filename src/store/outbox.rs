//! The requests to the company's own payment service, beside the payment ledger
//! (`queries/schema/outbox.sql` says what the service reads and writes).

use sqlx::any::AnyRow;

use super::read::batches;
use super::rows::Reader;
use super::sql::Values;
use super::{Connection, Database, Store};
use crate::core::ids::*;
use crate::core::ledger::Shard;
use crate::core::money::Currency;
use crate::core::status::{Ledger, status_type};
use crate::core::time::Timestamp;
use crate::error::{Error, Result};

status_type!(OutboxKind { Refund = "REFUND", Void = "VOID", Query = "QUERY" });

status_type!(OutboxState {
    Requested = "REQUESTED",
    /// The service is at it.
    Taken = "TAKEN",
    Done = "DONE",
    /// For good.
    Refused = "REFUSED",
    /// An answer about a charge that was used.
    Read = "READ",
});

status_type!(
    /// What the service says of a charge.
    OutboxCharge {
        Authorized = "AUTHORIZED",
        Captured = "CAPTURED",
        Failed = "FAILED",
        Voided = "VOIDED",
        Disputed = "DISPUTED",
        ChargedBack = "CHARGED_BACK",
        NotKnown = "NOT_KNOWN",
    }
);

/// A request as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboxRequest {
    pub request_key: String,
    pub kind: OutboxKind,
    pub tenant_id: TenantId,
    pub payment_id: PaymentId,
    pub provider: String,
    pub provider_txn_id: Option<String>,
    /// Of a refund, in the currency's minor unit.
    pub amount_minor: Option<i64>,
    pub currency: Currency,
    pub reason: String,
}

/// What a request is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    pub kind: OutboxKind,
    pub tenant_id: TenantId,
    pub payment_id: PaymentId,
    pub provider: String,
    pub provider_txn_id: Option<String>,
    pub amount_minor: Option<i64>,
    pub currency: Currency,
}

impl OutboxRequest {
    pub fn about(&self) -> About {
        About {
            kind: self.kind,
            tenant_id: self.tenant_id.clone(),
            payment_id: self.payment_id.clone(),
            provider: self.provider.clone(),
            provider_txn_id: self.provider_txn_id.clone(),
            amount_minor: self.amount_minor,
            currency: self.currency,
        }
    }
}

/// What the service has written so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboxAnswer {
    pub request_key: String,
    pub state: OutboxState,
    /// What was asked for, by which another request under the same key is told.
    pub request: About,
    pub requested_at: Timestamp,
    pub provider_ref: Option<String>,
    pub answered_at: Option<Timestamp>,
    pub note: Option<String>,
    pub charge_status: Option<OutboxCharge>,
    pub charge_amount_minor: Option<i64>,
    pub charge_refunded_minor: Option<i64>,
    pub charge_captured_at: Option<Timestamp>,
    pub refund_refused: bool,
}

impl Store {
    fn outbox(&self, shard: Shard) -> &Database {
        self.shard(Ledger::Payments, shard)
    }

    /// Writes a request into the transaction that moves its payment. False where it is there.
    ///
    /// # Errors
    /// Stale, where another request about the payment is there that is not refused, or one of the same key that is about
    /// something else.
    pub async fn outbox_add_on(
        &self,
        on: &mut Connection,
        shard: Shard,
        request: &OutboxRequest,
        now: Timestamp,
    ) -> Result<bool> {
        let database = self.outbox(shard);
        if let Some(there) = self.outbox_answer_on(on, shard, &request.request_key).await? {
            return match there.request == request.about() {
                true => Ok(false),
                false => Err(another(&there)),
            };
        }
        if request.kind != OutboxKind::Query
            && let Some(there) = self.outbox_of_payments(on, database, &[request]).await?
        {
            return Err(another(&there));
        }
        self.outbox_insert(on, database, &[request], now).await
    }

    /// Writes requests into the transaction that moves their payments, which lie beside the journal. False where one of them
    /// is there, or another about one of their payments that is not refused: which, this does not say, and the caller
    /// must not commit.
    pub async fn outbox_add_all_on(
        &self,
        on: &mut Connection,
        requests: &[&OutboxRequest],
        now: Timestamp,
    ) -> Result<bool> {
        let database = self.journal();
        if self.outbox_of_payments(on, database, requests).await?.is_some() {
            return Ok(false);
        }
        self.outbox_insert(on, database, requests, now).await
    }

    /// The first request that is not refused of those that are there about some others' payments.
    async fn outbox_of_payments(
        &self,
        on: &mut Connection,
        database: &Database,
        requests: &[&OutboxRequest],
    ) -> Result<Option<OutboxAnswer>> {
        let payments = requests.iter().map(|request| (&request.tenant_id, request.payment_id.to_string()));
        for (tenant_id, payment_ids) in batches(payments) {
            let values = Values::new().bind("tenant_id", tenant_id.as_str()).bind("payment_ids", payment_ids);
            let statement = database.statement(&self.queries, "outbox/of_payments", &values)?;
            if let Some(row) = database.fetch(on, &statement).await?.first() {
                return decode(row).map(Some);
            }
        }
        Ok(None)
    }

    /// Adds requests; false where the key of one is there.
    async fn outbox_insert(
        &self,
        on: &mut Connection,
        database: &Database,
        requests: &[&OutboxRequest],
        now: Timestamp,
    ) -> Result<bool> {
        let row = |request: &&OutboxRequest| {
            Values::new()
                .bind("request_key", request.request_key.as_str())
                .bind("kind", request.kind.as_str())
                .bind("tenant_id", request.tenant_id.as_str())
                .bind("payment_id", request.payment_id.as_str())
                .bind("provider", request.provider.as_str())
                .bind("provider_txn_id", request.provider_txn_id.as_deref())
                .bind("amount_minor", request.amount_minor)
                .bind("currency", request.currency.code())
                .bind("reason", request.reason.as_str())
                .bind("requested_at_us", now.micros())
                .bind("state", OutboxState::Requested.as_str())
        };
        database.insert_rows(on, &self.queries, "outbox/add", requests, row).await
    }

    /// Writes a request by itself, unless its key is there already.
    pub async fn outbox_add(&self, shard: Shard, request: &OutboxRequest, now: Timestamp) -> Result<()> {
        self.outbox(shard)
            .transaction(async |tx| self.outbox_add_on(tx, shard, request, now).await.map(|_| ()))
            .await
    }

    /// What has become of a request; `None` where there is none of this key.
    pub async fn outbox_answer(&self, shard: Shard, request_key: &str) -> Result<Option<OutboxAnswer>> {
        let mut connection = self.outbox(shard).connection().await?;
        self.outbox_answer_on(&mut connection, shard, request_key).await
    }

    async fn outbox_answer_on(
        &self,
        on: &mut Connection,
        shard: Shard,
        request_key: &str,
    ) -> Result<Option<OutboxAnswer>> {
        let database = self.outbox(shard);
        let values = Values::new().bind("request_key", request_key);
        let rows = database.fetch(on, &database.statement(&self.queries, "outbox/by_key", &values)?).await?;
        rows.first().map(decode).transpose()
    }

    /// The last question about a payment's charge.
    pub async fn outbox_query(
        &self,
        shard: Shard,
        tenant_id: &TenantId,
        payment_id: &PaymentId,
    ) -> Result<Option<OutboxAnswer>> {
        let database = self.outbox(shard);
        let values =
            Values::new().bind("tenant_id", tenant_id.as_str()).bind("payment_id", payment_id.as_str());
        let statement = database.statement(&self.queries, "outbox/newest_query", &values)?;
        let mut connection = database.connection().await?;
        database.fetch(&mut connection, &statement).await?.first().map(decode).transpose()
    }

    /// Marks an answer about a charge as used; false where another used it.
    pub async fn outbox_set_read(&self, shard: Shard, request_key: &str) -> Result<bool> {
        let database = self.outbox(shard);
        let values = Values::new().bind("request_key", request_key);
        let statement = database.statement(&self.queries, "outbox/set_read", &values)?;
        database.transaction(async |tx| Ok(database.execute(tx, &statement).await? == 1)).await
    }
}

fn another(there: &OutboxAnswer) -> Error {
    let About { kind, payment_id, .. } = &there.request;
    Error::stale(format!(
        "onefold_outbox holds another {kind} of payment {payment_id} already, which is {} ({})",
        there.state, there.request_key
    ))
    .hint("see what the payment service makes of that one first; `onefold history` tells who asked for it")
}

fn decode(row: &AnyRow) -> Result<OutboxAnswer> {
    let r = Reader::new(row, "onefold_outbox");
    Ok(OutboxAnswer {
        request_key: r.needed("request_key")?,
        state: r.parsed("state")?,
        request: About {
            kind: r.parsed("kind")?,
            tenant_id: r.id("tenant_id")?,
            payment_id: r.id("payment_id")?,
            provider: r.needed("provider")?,
            provider_txn_id: r.text("provider_txn_id")?,
            amount_minor: r.int_or_null("amount_minor")?,
            currency: r.parsed("currency")?,
        },
        requested_at: r.time("requested_at_us")?,
        provider_ref: r.text("provider_ref")?,
        answered_at: r.time_or_null("answered_at_us")?,
        note: r.text("note")?,
        charge_status: r.text("charge_status")?.map(|_| r.parsed("charge_status")).transpose()?,
        charge_amount_minor: r.int_or_null("charge_amount_minor")?,
        charge_refunded_minor: r.int_or_null("charge_refunded_minor")?,
        charge_captured_at: r.time_or_null("charge_captured_at_us")?,
        refund_refused: r.int_or_null("refund_refused")?.is_some_and(|refused| refused != 0),
    })
}
