//! The tables of the sandbox provider: its charges, and the requests that it was sent.

use sqlx::any::AnyRow;

use super::rows::Reader;
use super::sql::Values;
use super::{Connection, Store};
use crate::core::ids::TenantId;
use crate::core::money::Currency;
use crate::core::status::status_type;
use crate::core::time::Timestamp;
use crate::error::{Error, Result};

status_type!(
    /// What the provider itself says of a charge.
    ChargeStatus {
        Authorized = "AUTHORIZED",
        Captured = "CAPTURED",
        Failed = "FAILED",
        Voided = "VOIDED",
        Refunded = "REFUNDED",
        /// Captured; a refund was asked for and refused.
        RefundRefused = "REFUND_REFUSED",
        Disputed = "DISPUTED",
        ChargedBack = "CHARGED_BACK",
    }
);

status_type!(
    /// How the sandbox treats requests about a charge.
    Behaviour {
        /// Carries them out and says so.
        Ok = "ok",
        /// Takes them, and finishes when it has been asked once.
        Pending = "pending",
        /// Refuses them for good.
        Refuse = "refuse",
        /// Carries them out, and the answer is lost.
        LoseAnswer = "lose-answer",
        /// The request itself is lost on its way, the first time.
        LoseRequest = "lose-request",
    }
);

status_type!(RequestKind { Refund = "REFUND", Void = "VOID" });

status_type!(RequestStatus {
    /// Never arrived; kept so that it is lost just once.
    Lost = "LOST",
    Accepted = "ACCEPTED",
    Done = "DONE",
    Refused = "REFUSED",
});

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxCharge {
    pub tenant_id: TenantId,
    pub provider: String,
    /// The provider's transaction id, or the payment's own id where it has none.
    pub charge: String,
    pub status: ChargeStatus,
    pub amount_minor: i64,
    pub refunded_minor: i64,
    pub currency: Currency,
    pub captured_at: Option<Timestamp>,
    pub behaviour: Behaviour,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxRequest {
    pub idempotency_key: String,
    pub kind: RequestKind,
    pub amount_minor: i64,
    pub currency: Currency,
    pub status: RequestStatus,
    /// How often it has arrived or its status was asked for, before this time.
    pub asked: i64,
}

impl Store {
    /// What the sandbox knows of a charge; `None` where it was never told.
    pub async fn sandbox_charge(
        &self,
        tenant_id: &TenantId,
        provider: &str,
        charge: &str,
    ) -> Result<Option<SandboxCharge>> {
        let mut connection = self.journal().connection().await?;
        self.sandbox_charge_on(&mut connection, tenant_id, provider, charge).await
    }

    /// Tells the sandbox of charges; one that it knows already stays as it is. Returns how many were new.
    pub async fn sandbox_learn(&self, charges: &[SandboxCharge]) -> Result<u64> {
        self.journal()
            .transaction(async |tx| {
                let mut new = 0;
                for charge in charges {
                    if self.lock_charge(tx, charge).await?.is_none() {
                        new += 1;
                    }
                }
                Ok(new)
            })
            .await
    }

    /// Sends the sandbox a request under its idempotency key, all in one transaction of its own.
    /// `opened` is the charge as the request describes it, for one that the sandbox was never told
    /// of; `answer` decides about a request that arrives for the first time, changing the charge.
    pub async fn sandbox_request(
        &self,
        opened: SandboxCharge,
        request: SandboxRequest,
        answer: impl Fn(&mut SandboxCharge, &SandboxRequest) -> RequestStatus,
        now: Timestamp,
    ) -> Result<(SandboxCharge, SandboxRequest)> {
        self.journal()
            .transaction(async |tx| {
                let mut charge = self.lock_charge(tx, &opened).await?.unwrap_or_else(|| opened.clone());
                let before = self.sandbox_request_on(tx, &request.idempotency_key).await?;
                let is_new = before.is_none();
                let mut request = match before {
                    Some(before) => SandboxRequest { asked: before.asked + 1, ..before },
                    None => request.clone(),
                };
                // One that was lost on its way arrives now for the first time.
                if request.status == RequestStatus::Lost {
                    request.status = answer(&mut charge, &request);
                }
                self.write_request(tx, &charge, &request, is_new, now).await?;
                self.write_charge(tx, &charge).await?;
                Ok((charge, request))
            })
            .await
    }

    /// Asks the sandbox about a request; `settle` may finish one that is waiting.
    pub async fn sandbox_ask(
        &self,
        idempotency_key: &str,
        charge: &SandboxCharge,
        settle: impl Fn(&mut SandboxCharge, &SandboxRequest) -> RequestStatus,
        now: Timestamp,
    ) -> Result<Option<SandboxRequest>> {
        self.journal()
            .transaction(async |tx| {
                let Some(mut charge) = self.lock_known_charge(tx, charge).await? else { return Ok(None) };
                let Some(mut request) = self.sandbox_request_on(tx, idempotency_key).await? else {
                    return Ok(None);
                };
                request.asked += 1;
                if request.status == RequestStatus::Accepted {
                    request.status = settle(&mut charge, &request);
                    self.write_charge(tx, &charge).await?;
                }
                self.write_request(tx, &charge, &request, false, now).await?;
                Ok(Some(request))
            })
            .await
    }

    /// A charge that the sandbox knows, held still until the transaction ends.
    async fn lock_known_charge(
        &self,
        on: &mut Connection,
        charge: &SandboxCharge,
    ) -> Result<Option<SandboxCharge>> {
        let journal = self.journal();
        let values = charge_id(&charge.tenant_id, &charge.provider, &charge.charge);
        match journal.execute(on, &journal.statement(&self.queries, "sandbox/lock_charge", &values)?).await? {
            0 => Ok(None),
            _ => self.sandbox_charge_on(on, &charge.tenant_id, &charge.provider, &charge.charge).await,
        }
    }

    /// As [`Store::lock_known_charge`]; one that is not known is added, and `None` returned.
    async fn lock_charge(
        &self,
        on: &mut Connection,
        opened: &SandboxCharge,
    ) -> Result<Option<SandboxCharge>> {
        let known = self.lock_known_charge(on, opened).await?;
        if known.is_none() {
            let journal = self.journal();
            let statement = journal.statement(&self.queries, "sandbox/add_charge", &charge_values(opened))?;
            if !journal.insert(on, &statement).await? {
                return Err(Error::clash(format!("charge {} was added in this very moment", opened.charge)));
            }
        }
        Ok(known)
    }

    async fn sandbox_charge_on(
        &self,
        on: &mut Connection,
        tenant_id: &TenantId,
        provider: &str,
        charge: &str,
    ) -> Result<Option<SandboxCharge>> {
        let journal = self.journal();
        let values = charge_id(tenant_id, provider, charge);
        let rows = journal.fetch(on, &journal.statement(&self.queries, "sandbox/charge", &values)?).await?;
        rows.first().map(decode_charge).transpose()
    }

    async fn sandbox_request_on(&self, on: &mut Connection, key: &str) -> Result<Option<SandboxRequest>> {
        let journal = self.journal();
        let values = Values::new().bind("idempotency_key", key);
        let rows = journal.fetch(on, &journal.statement(&self.queries, "sandbox/request", &values)?).await?;
        rows.first().map(decode_request).transpose()
    }

    async fn write_charge(&self, on: &mut Connection, charge: &SandboxCharge) -> Result<()> {
        let journal = self.journal();
        journal
            .execute(on, &journal.statement(&self.queries, "sandbox/set_charge", &charge_values(charge))?)
            .await?;
        Ok(())
    }

    async fn write_request(
        &self,
        on: &mut Connection,
        charge: &SandboxCharge,
        request: &SandboxRequest,
        is_new: bool,
        now: Timestamp,
    ) -> Result<()> {
        let journal = self.journal();
        let values = Values::new()
            .bind("idempotency_key", request.idempotency_key.as_str())
            .bind("tenant_id", charge.tenant_id.as_str())
            .bind("provider", charge.provider.as_str())
            .bind("charge", charge.charge.as_str())
            .bind("kind", request.kind.as_str())
            .bind("amount_minor", request.amount_minor)
            .bind("currency", request.currency.code())
            .bind("status", request.status.as_str())
            .bind("asked", request.asked)
            .bind("made_at_us", now.micros());
        let file = if is_new { "sandbox/add_request" } else { "sandbox/set_request" };
        journal.execute(on, &journal.statement(&self.queries, file, &values)?).await?;
        Ok(())
    }
}

fn charge_id(tenant_id: &TenantId, provider: &str, charge: &str) -> Values {
    Values::new().bind("tenant_id", tenant_id.as_str()).bind("provider", provider).bind("charge", charge)
}

fn charge_values(charge: &SandboxCharge) -> Values {
    charge_id(&charge.tenant_id, &charge.provider, &charge.charge)
        .bind("status", charge.status.as_str())
        .bind("amount_minor", charge.amount_minor)
        .bind("refunded_minor", charge.refunded_minor)
        .bind("currency", charge.currency.code())
        .bind("captured_at_us", charge.captured_at.map(Timestamp::micros))
        .bind("behaviour", charge.behaviour.as_str())
}

fn decode_charge(row: &AnyRow) -> Result<SandboxCharge> {
    let r = Reader::new(row, "sandbox charge");
    Ok(SandboxCharge {
        tenant_id: r.id("tenant_id")?,
        provider: r.needed("provider")?,
        charge: r.needed("charge")?,
        status: r.parsed("status")?,
        amount_minor: r.int("amount_minor")?,
        refunded_minor: r.int("refunded_minor")?,
        currency: r.parsed("currency")?,
        captured_at: r.time_or_null("captured_at_us")?,
        behaviour: r.parsed("behaviour")?,
    })
}

fn decode_request(row: &AnyRow) -> Result<SandboxRequest> {
    let r = Reader::new(row, "sandbox request");
    Ok(SandboxRequest {
        idempotency_key: r.needed("idempotency_key")?,
        kind: r.parsed("kind")?,
        amount_minor: r.int("amount_minor")?,
        currency: r.parsed("currency")?,
        status: r.parsed("status")?,
        asked: r.int("asked")?,
    })
}
