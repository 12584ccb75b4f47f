//! Where the steps' states change. A step's key belongs to its effect, so two plans, operators or
//! machines that want the same effect meet in one row here.

use futures_util::TryStreamExt as _;
use sqlx::any::AnyRow;

use super::rows::Reader;
use super::sql::Values;
use super::{BATCH, Connection, Store};
use crate::core::evidence::{Effect, Evidence};
use crate::core::ids::*;
use crate::core::plan::{PlannedIntent, Step};
use crate::core::recheck::OwnMove;
use crate::core::status::{Ledger, status_type};
use crate::core::time::{Span, Timestamp};
use crate::error::{Error, Result};

status_type!(StepState {
    Pending = "PENDING",
    /// Claimed by an owner, under a token, until its lease runs out.
    Processing = "PROCESSING",
    /// The provider has taken the request and not finished it.
    Accepted = "ACCEPTED",
    /// The request may have left; no answer arrived.
    Unknown = "UNKNOWN",
    Done = "DONE",
    /// The row was already where it was to go.
    Skipped = "SKIPPED",
    /// The row had moved elsewhere.
    Conflict = "CONFLICT",
    /// The provider refused for good.
    Failed = "FAILED",
    /// Never reached the provider, and given up: nothing is ever sent under its key.
    Withdrawn = "WITHDRAWN",
});

impl StepState {
    /// Whether the effect is there.
    pub const fn is_done(self) -> bool {
        matches!(self, Self::Done | Self::Skipped)
    }

    /// Whether its effect is there, or never will be by this step.
    const fn has_ended(self) -> bool {
        self.is_done() || matches!(self, Self::Failed | Self::Withdrawn)
    }

    /// Whether it was begun and not ended.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Processing | Self::Accepted | Self::Unknown)
    }
}

/// A step as the database knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepRecord {
    pub step_key: String,
    /// Over everything that the effect is; the same key with another digest is another amount.
    pub digest: String,
    pub plan_id: String,
    pub intent_id: String,
    pub position: i64,
    pub tenant_id: TenantId,
    pub step: Step,
    pub state: StepState,
    /// Whether a request for it may have left this process.
    pub sent: bool,
    pub owner: Option<String>,
    pub token: Option<i64>,
    pub lease_until: Option<Timestamp>,
    pub version_before: Option<Version>,
    pub version_after: Option<Version>,
    pub refunded_before_minor: Option<i64>,
    pub refunded_after_minor: Option<i64>,
    pub note: Option<String>,
    /// When the request left for the first time, or may have.
    pub sent_at: Option<Timestamp>,
    /// The provider's own name of the request.
    pub provider_ref: Option<String>,
    /// Which way it left: the kind of provider that was configured then.
    pub sent_through: Option<String>,
    pub updated_at: Timestamp,
}

/// Who carries steps out, and under which freeze's token.
#[derive(Clone, Debug)]
pub struct Worker {
    /// The operator, as freezes and the journal name him.
    pub actor: String,
    /// The operator's process: `ACTOR#HOST/PID-RANDOM`.
    pub owner: String,
    pub token: i64,
    /// How long a claim holds unless it is finished.
    pub lease: Span,
}

/// What a claim met.
#[must_use]
#[derive(Clone, Debug)]
pub enum Claim {
    /// It is ours to carry out.
    Ours(StepRecord),
    /// A request for it may have left before: ask the provider, do not send again.
    Sent(StepRecord),
    /// The effect is there already.
    Done(StepRecord),
    /// The provider refused it for good.
    Refused(StepRecord),
    /// Another process is at it.
    Busy(StepRecord),
    /// The same effect was sent with another amount.
    Differs(StepRecord),
    /// It was given up before anything was sent.
    Withdrawn(StepRecord),
}

impl Store {
    /// Claims a step, inside a transaction of the journal's database. `wanted` is in state
    /// PROCESSING and carries the worker's owner, token and lease.
    ///
    /// # Errors
    /// A clash, where another process claimed it in this very moment: the transaction is run again.
    pub async fn claim(&self, on: &mut Connection, wanted: &StepRecord) -> Result<Claim> {
        let clash = || {
            let (row, id) = (wanted.step.ledger.row_name(), &wanted.step.id);
            Error::clash(format!("other processes keep claiming the same step of {row} {id}"))
        };
        let Some(there) = self.step_on(on, &wanted.step_key).await? else {
            return match self.insert_steps(on, std::slice::from_ref(wanted)).await? {
                true => Ok(Claim::Ours(wanted.clone())),
                false => Err(clash()),
            };
        };
        if there.state.is_done() {
            return Ok(Claim::Done(there));
        }
        if there.state == StepState::Failed {
            return Ok(Claim::Refused(there));
        }
        if there.state == StepState::Withdrawn {
            return Ok(Claim::Withdrawn(there));
        }
        if there.sent && there.digest != wanted.digest {
            return Ok(Claim::Differs(there));
        }
        if there.state == StepState::Processing && is_busy(&there, wanted) {
            return Ok(Claim::Busy(there));
        }
        let ours = if there.sent {
            // Only the holder changes: what was sent stays what it is until the provider is asked.
            StepRecord {
                owner: wanted.owner.clone(),
                token: wanted.token,
                lease_until: wanted.lease_until,
                updated_at: wanted.updated_at,
                ..there.clone()
            }
        } else {
            wanted.clone()
        };
        if !self.take_step(on, &ours, &there).await? {
            return Err(clash());
        }
        Ok(if there.sent { Claim::Sent(ours) } else { Claim::Ours(ours) })
    }

    /// Ends or changes a step that we hold.
    ///
    /// # Errors
    /// Refused, where another has taken it: what we did under the old token changes nothing here.
    pub async fn finish_step(&self, on: &mut Connection, record: &StepRecord) -> Result<()> {
        let journal = self.journal();
        let values = Values::new()
            .bind("step_key", record.step_key.as_str())
            .bind("owner", record.owner.as_deref())
            .bind("token", record.token)
            .bind("state", record.state.as_str())
            .bind("sent", i64::from(record.sent))
            .bind("version_before", record.version_before.as_ref().map(Version::as_str))
            .bind("version_after", record.version_after.as_ref().map(Version::as_str))
            .bind("refunded_before_minor", record.refunded_before_minor)
            .bind("refunded_after_minor", record.refunded_after_minor)
            .bind("note", record.note.as_deref())
            .bind("provider_ref", record.provider_ref.as_deref())
            .bind("updated_at_us", record.updated_at.micros());
        match journal.execute(on, &journal.statement(&self.queries, "steps/finish", &values)?).await? {
            1 => Ok(()),
            _ => Err(Error::refused(format!(
                "another process took over {} {} while this one was at it",
                record.step.ledger.row_name(),
                record.step.id
            ))
            .hint("see who is at it with `onefold status`")),
        }
    }

    /// A step by its key.
    pub async fn step(&self, step_key: &str) -> Result<Option<StepRecord>> {
        let mut connection = self.journal().connection().await?;
        self.step_on(&mut connection, step_key).await
    }

    /// The steps that a plan has begun or ended, in its order.
    pub async fn steps_of_plan(&self, plan_id: &str) -> Result<Vec<StepRecord>> {
        self.steps("steps/of_plan", &Values::new().bind("plan_id", plan_id)).await
    }

    /// The steps of some of its intents that a plan has begun or ended, in the order of their intents.
    pub async fn steps_of_intents<'i>(
        &self,
        plan_id: &str,
        intents: impl IntoIterator<Item = &'i PlannedIntent>,
    ) -> Result<Vec<StepRecord>> {
        let steps = intents.into_iter().flat_map(|intent| &intent.steps);
        let keys: Vec<String> = steps.map(|step| step.step_key.clone()).collect();
        let mut found = Vec::new();
        for keys in keys.chunks(BATCH) {
            let values = Values::new().bind("plan_id", plan_id).bind("step_keys", keys.to_vec());
            found.extend(self.steps("steps/of_keys", &values).await?);
        }
        Ok(found)
    }

    /// The steps on these rows of a tenant, whatever their ledger, that a plan has begun or ended, in the order of their
    /// intents.
    pub async fn steps_of_rows(
        &self,
        plan_id: &str,
        tenant_id: &TenantId,
        ids: &[&RowId],
    ) -> Result<Vec<StepRecord>> {
        let mut found = Vec::new();
        for ids in ids.chunks(BATCH) {
            let list: Vec<_> = ids.iter().map(ToString::to_string).collect();
            let values = Values::new()
                .bind("plan_id", plan_id)
                .bind("tenant_id", tenant_id.as_str())
                .bind("row_ids", list);
            found.extend(self.steps("steps/of_rows", &values).await?);
        }
        Ok(found)
    }

    /// Whether anything of a plan was begun.
    pub async fn is_begun(&self, plan_id: &str) -> Result<bool> {
        Ok(!self.steps("steps/one_of_plan", &Values::new().bind("plan_id", plan_id)).await?.is_empty())
    }

    /// The steps on some payments of a tenant, in the order of time.
    pub async fn steps_of_payments(&self, tenant_id: &TenantId, ids: &[&RowId]) -> Result<Vec<StepRecord>> {
        let mut found = Vec::new();
        for ids in ids.chunks(BATCH) {
            let list: Vec<_> = ids.iter().map(ToString::to_string).collect();
            let values = Values::new().bind("tenant_id", tenant_id.as_str()).bind("payment_ids", list);
            found.extend(self.steps("steps/of_payments", &values).await?);
        }
        Ok(found)
    }

    /// Gives out those of some steps that have ended, in no order and one by one: there may be as many as all plans had.
    pub(super) async fn each_ended_step(
        &self,
        on: &mut Connection,
        file: &str,
        values: &Values,
        mut each: impl FnMut(EndedStep),
    ) -> Result<()> {
        let journal = self.journal();
        let statement = journal.statement(&self.queries, file, values)?;
        let mut rows = journal.stream(on, &statement);
        while let Some(row) = rows.try_next().await? {
            if let Some(step) = decode_ended(&row)? {
                each(step);
            }
        }
        Ok(())
    }

    /// Steps that were begun and not ended, the oldest first.
    pub async fn open_steps(&self) -> Result<Vec<StepRecord>> {
        self.steps("steps/open", &Values::new()).await
    }

    async fn steps(&self, file: &str, values: &Values) -> Result<Vec<StepRecord>> {
        let journal = self.journal();
        let statement = journal.statement(&self.queries, file, values)?;
        let mut connection = journal.connection().await?;
        journal.fetch(&mut connection, &statement).await?.iter().map(decode).collect()
    }

    async fn step_on(&self, on: &mut Connection, step_key: &str) -> Result<Option<StepRecord>> {
        let journal = self.journal();
        let values = Values::new().bind("step_key", step_key);
        let rows = journal.fetch(on, &journal.statement(&self.queries, "steps/by_key", &values)?).await?;
        rows.first().map(decode).transpose()
    }

    /// Adds steps that nobody has claimed; false where there is one of them already.
    pub async fn insert_steps(&self, on: &mut Connection, records: &[StepRecord]) -> Result<bool> {
        self.journal().insert_rows(on, &self.queries, "steps/insert", records, bound).await
    }

    /// Whether the step was still as it was seen, and is now as `ours` says.
    async fn take_step(&self, on: &mut Connection, ours: &StepRecord, seen: &StepRecord) -> Result<bool> {
        let journal = self.journal();
        let values = bound(ours)
            .bind("seen_state", seen.state.as_str())
            .bind("seen_owner", seen.owner.as_deref())
            .bind("seen_token", seen.token)
            .bind("seen_updated_at_us", seen.updated_at.micros());
        Ok(journal.execute(on, &journal.statement(&self.queries, "steps/take", &values)?).await? == 1)
    }
}

/// Whether the process that claimed it may still be at it. One that ran on this very machine
/// and is gone holds nothing, whatever its lease says.
fn is_busy(there: &StepRecord, wanted: &StepRecord) -> bool {
    let same_owner = there.owner == wanted.owner;
    let fenced_off = there.token < wanted.token;
    let lapsed = there.lease_until.is_none_or(|until| until <= wanted.updated_at);
    let gone = there.owner.as_deref().is_some_and(|owner| has_gone(owner, wanted.owner.as_deref()));
    !(same_owner || fenced_off || lapsed || gone)
}

fn has_gone(owner: &str, us: Option<&str>) -> bool {
    fn host_and_pid(owner: &str) -> Option<(&str, &str)> {
        let (host, process) = owner.rsplit_once('#')?.1.rsplit_once('/')?;
        let pid = process.split('-').next()?;
        (!host.is_empty() && !pid.is_empty()).then_some((host, pid))
    }
    let (Some((host, pid)), Some((our_host, _))) = (host_and_pid(owner), us.and_then(host_and_pid)) else {
        return false;
    };
    let processes = std::path::Path::new("/proc");
    host == our_host && processes.join("self").exists() && !processes.join(pid).exists()
}

/// What the core's rules ask for of a step that has ended.
pub(super) struct EndedStep {
    effect: Effect,
    /// What was given back by it, in minor units.
    refunded_minor: Option<i64>,
}

impl EndedStep {
    pub(super) fn note(self, evidence: &mut Evidence) {
        let Self { effect, refunded_minor } = self;
        if let Some(refunded_minor) = refunded_minor {
            let row = (effect.tenant_id.clone(), PaymentId::from(effect.id.as_str()));
            *evidence.refunded_by_us.entry(row).or_default() += refunded_minor;
        }
        *evidence.occurrences.entry(effect).or_default() += 1;
    }
}

/// `None` of a step that has not ended.
fn decode_ended(row: &AnyRow) -> Result<Option<EndedStep>> {
    let r = Reader::new(row, "onefold_steps");
    let state: StepState = r.parsed("state")?;
    if !state.has_ended() {
        return Ok(None);
    }
    let effect = Effect {
        ledger: r.parsed("ledger")?,
        tenant_id: r.id("tenant_id")?,
        id: r.id("row_id")?,
        from: r.needed("from_status")?,
        to: r.needed("to_status")?,
    };
    let is_money = effect.ledger == Ledger::Payments && state == StepState::Done;
    let refunded = r.int_or_null("refunded_before_minor")?.zip(r.int_or_null("refunded_after_minor")?);
    let refunded_minor = refunded.filter(|_| is_money).map(|(before, after)| after - before);
    Ok(Some(EndedStep { effect, refunded_minor }))
}

/// What a step that is done did to its row; `None` where it moved nothing.
pub fn own_move(record: &StepRecord) -> Option<OwnMove> {
    if record.state != StepState::Done {
        return None;
    }
    Some(OwnMove {
        ledger: record.step.ledger,
        tenant_id: record.tenant_id.clone(),
        id: record.step.id.clone(),
        from_status: record.step.from.clone(),
        version_before: record.version_before.clone()?,
        refunded_before_minor: record.refunded_before_minor,
        to_status: record.step.to.clone(),
        version_after: record.version_after.clone()?,
        refunded_after_minor: record.refunded_after_minor,
    })
}

/// Its values in the order of steps/insert.sql.
fn bound(record: &StepRecord) -> Values {
    let step = &record.step;
    Values::new()
        .bind("step_key", record.step_key.as_str())
        .bind("digest", record.digest.as_str())
        .bind("plan_id", record.plan_id.as_str())
        .bind("intent_id", record.intent_id.as_str())
        .bind("position", record.position)
        .bind("ledger", step.ledger.as_str())
        .bind("tenant_id", record.tenant_id.as_str())
        .bind("row_id", step.id.as_str())
        .bind("from_status", step.from.as_str())
        .bind("to_status", step.to.as_str())
        .bind("amount_minor", step.amount_minor)
        .bind("currency", step.currency.map(|c| c.code()))
        .bind("provider_key", step.provider_key.as_deref())
        .bind("state", record.state.as_str())
        .bind("sent", i64::from(record.sent))
        .bind("owner", record.owner.as_deref())
        .bind("token", record.token)
        .bind("lease_until_us", record.lease_until.map(Timestamp::micros))
        .bind("version_before", record.version_before.as_ref().map(Version::as_str))
        .bind("version_after", record.version_after.as_ref().map(Version::as_str))
        .bind("refunded_before_minor", record.refunded_before_minor)
        .bind("refunded_after_minor", record.refunded_after_minor)
        .bind("note", record.note.as_deref())
        .bind("sent_at_us", record.sent_at.map(Timestamp::micros))
        .bind("provider_ref", record.provider_ref.as_deref())
        .bind("sent_through", record.sent_through.as_deref())
        .bind("updated_at_us", record.updated_at.micros())
}

pub(super) fn decode(row: &AnyRow) -> Result<StepRecord> {
    let r = Reader::new(row, "onefold_steps");
    Ok(StepRecord {
        step_key: r.needed("step_key")?,
        digest: r.needed("digest")?,
        plan_id: r.needed("plan_id")?,
        intent_id: r.needed("intent_id")?,
        position: r.int("position")?,
        tenant_id: r.id("tenant_id")?,
        step: Step {
            ledger: r.parsed("ledger")?,
            id: r.id("row_id")?,
            from: r.needed("from_status")?,
            to: r.needed("to_status")?,
            amount_minor: r.int_or_null("amount_minor")?,
            currency: r.text("currency")?.map(|_| r.parsed("currency")).transpose()?,
            version: r.id_or_null("version_before")?,
            step_key: r.needed("step_key")?,
            provider_key: r.text("provider_key")?,
        },
        state: r.parsed("state")?,
        sent: r.int("sent")? != 0,
        owner: r.text("owner")?,
        token: r.int_or_null("token")?,
        lease_until: r.time_or_null("lease_until_us")?,
        version_before: r.id_or_null("version_before")?,
        version_after: r.id_or_null("version_after")?,
        refunded_before_minor: r.int_or_null("refunded_before_minor")?,
        refunded_after_minor: r.int_or_null("refunded_after_minor")?,
        note: r.text("note")?,
        sent_at: r.time_or_null("sent_at_us")?,
        provider_ref: r.text("provider_ref")?,
        sent_through: r.text("sent_through")?,
        updated_at: r.time("updated_at_us")?,
    })
}
