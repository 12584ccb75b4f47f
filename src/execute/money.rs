//! The leg of a refund or void on which the provider is asked.

use super::moves::{Place, Ran, elsewhere, entry, must_be_planned, refused_claim};
use super::{Executor, IntentEnd, Moment, Tell};
use crate::core::charges::forbids;
use crate::core::ids::*;
use crate::core::ledger::Payment;
use crate::core::plan::Step;
use crate::core::status::{Ledger, PaymentStatus};
use crate::error::{Error, Result};
use crate::providers::{Answer, Ask, Charge, Found, Provider, Request};
use crate::store::journal::Event;
use crate::store::moves::{Move, Moved, RowState};
use crate::store::steps::{Claim, StepRecord, StepState};

/// What is noted of a request that its provider has not finished.
const TAKEN: &str = "taken by the provider, not finished";

/// How often a row that somebody touches while we record what the provider did is read again.
const TOUCHED: usize = 10;

impl Executor<'_> {
    /// Sends the request of a second leg, or asks about one that may have been sent before, and
    /// records what became of it. `version` is the row's after its first leg. `may_send` rereads
    /// the intent's rows: nothing is sent unless they are as the plan saw them.
    pub(super) async fn run_request(
        &self,
        at: Place<'_>,
        version: Version,
        may_send: impl AsyncFn() -> Result<Option<IntentEnd>>,
        watch: &Tell<'_>,
    ) -> Result<Ran> {
        let step = at.step();
        let stopped = |end| Ok(Ran::Stopped(Vec::new(), end));
        let there = self.store.step(&step.step_key).await?;
        let mut wanted = self.wanted(at, Some(version.clone()), true);
        let mut has_left = false;
        if let Some(request) = self.request(&wanted).await? {
            wanted.sent_through = Some(self.provider(&request.charge)?.kind().to_owned());
        }
        if there.is_none_or(|r| !r.sent) {
            // What was given back before: whoever is told first of the end of it, it is counted once.
            wanted.refunded_before_minor = match self.left_with_first_leg(&wanted).await? {
                Some(before) => {
                    has_left = true;
                    before
                }
                None => {
                    if let Some(end) = may_send().await? {
                        return stopped(end);
                    }
                    let payment = self.payment(&wanted).await?;
                    let as_seen = payment.filter(|p| p.version == version);
                    if as_seen.is_none() && self.store.step(&step.step_key).await?.is_none_or(|r| !r.sent) {
                        let why = format!("payment {} moved while its intent was read", step.id);
                        return stopped(IntentEnd::Conflict(vec![why]));
                    }
                    step.amount_minor.and(as_seen.map(|p| p.refunded_minor))
                }
            };
        }
        // Committed as sent before anything leaves: after a crash nobody can say that it did not.
        let record = match self.claim(at, wanted).await? {
            Claim::Ours(record) => {
                if watch(Moment::Claimed(step)).is_break() {
                    return stopped(IntentEnd::BrokenOff);
                }
                if !has_left {
                    return self.send(record, false, watch).await;
                }
                record
            }
            Claim::Sent(record) => record,
            Claim::Done(record) => return Ok(Ran::Through(vec![record])),
            other => return stopped(refused_claim(other)),
        };
        match record.plan_id == at.plan.plan_id {
            true => must_be_planned([at.intent], &record)?,
            false => must_be_planned(&self.store.plan_by_id(&record.plan_id).await?.plan.intents, &record)?,
        }
        let Some(request) = self.request(&record).await? else { return self.without_row(record).await };
        if let Some(why) = self.other_way(&record, &request)? {
            self.put_down(record, &why).await?;
            return stopped(IntentEnd::Unknown(why));
        }
        match self.provider(&request.charge)?.ask(&request, (self.clock)()).await? {
            Found::Request(answer) => self.conclude(record, answer, watch).await,
            Found::NoAnswer(why) => self.unanswered(record, &why, watch).await,
            // The provider knows no such request: the same one goes out again, under the same key.
            Found::Nothing { listed } => match self.moot(&record, &request, StepState::Withdrawn).await? {
                Some((why, _)) => stopped(IntentEnd::Conflict(vec![format!("payment {}: {why}", step.id)])),
                None => match may_send().await? {
                    Some(end) => stopped(end),
                    None => match self.forgotten(&record, &request, listed)? {
                        Some(why) => {
                            let what = format!("{}: {why}", describe(&record.step));
                            self.put_down(record, &why).await?;
                            stopped(IntentEnd::Unknown(what))
                        }
                        None => self.send(record, true, watch).await,
                    },
                },
            },
        }
    }

    /// Another request of ours about the same payment, sent before under another key, whose end is not
    /// recorded: until it is, no new one is begun.
    pub(super) async fn open_request(&self, at: Place<'_>) -> Result<Option<IntentEnd>> {
        let steps = self.store.steps_of_payments(&at.intent.tenant_id, &[&at.step().id]).await?;
        let open = steps.iter().find(|r| is_another_open(r, at.step()));
        Ok(open.map(|r| {
            IntentEnd::Unknown(format!("{} by {} is {} still", describe(&r.step), r.plan_id, r.state))
        }))
    }

    /// The provider of a charge.
    pub(super) fn provider(&self, charge: &Charge) -> Result<&dyn Provider> {
        self.providers.of(&charge.provider)
    }

    /// Why nobody can be asked about a request: it went another way than is configured now. `None` where it
    /// did not.
    pub(super) fn other_way(&self, record: &StepRecord, request: &Request) -> Result<Option<String>> {
        let now = self.provider(&request.charge)?.kind();
        Ok(record.sent_through.as_ref().filter(|way| *way != now).map(|way| {
            format!(
                "{} went through {way}, and {now} is configured for {:?} now: configure {way} again until it has ended",
                describe(&record.step),
                request.charge.provider
            )
        }))
    }

    /// What was given back before a request that was written with its first leg, and so has left already;
    /// `None` where it has not.
    pub(super) async fn left_with_first_leg(&self, second: &StepRecord) -> Result<Option<Option<i64>>> {
        let Some(request) = self.request(second).await? else { return Ok(None) };
        let provider = self.provider(&request.charge)?;
        if !provider.leaves_with_first_leg() {
            return Ok(None);
        }
        Ok(match provider.ask(&request, (self.clock)()).await? {
            Found::Request(_) => Some(refunded_before(&request)),
            Found::Nothing { .. } | Found::NoAnswer(_) => None,
        })
    }

    /// The record of a request that leaves in the transaction of its first leg, which has left its row with this version:
    /// written is taken.
    pub(super) fn left(&self, second: Place<'_>, version: Version, request: &Request) -> Result<StepRecord> {
        Ok(StepRecord {
            state: StepState::Accepted,
            note: Some(TAKEN.to_owned()),
            refunded_before_minor: refunded_before(request),
            sent_through: Some(self.provider(&request.charge)?.kind().to_owned()),
            ..self.wanted(second, Some(version), true)
        })
    }

    /// Why a request that the provider does not know must not go out again, though under its own key:
    /// the provider may have forgotten the key. `None` where it may.
    pub(super) fn forgotten(
        &self,
        record: &StepRecord,
        request: &Request,
        listed: bool,
    ) -> Result<Option<String>> {
        let Some(lifetime) = self.provider(&request.charge)?.key_lifetime().filter(|_| !listed) else {
            return Ok(None);
        };
        let age = record.sent_at.map(|sent| (self.clock)().since(sent));
        if age.is_some_and(|age| age < lifetime) {
            return Ok(None);
        }
        Ok(Some(format!(
            "the provider does not know its key {}, and may have forgotten it: it keeps keys for {lifetime}. Look the \
             charge up there, then: onefold settle {} --as done|refused --reference R --because TEXT",
            request.key, record.step_key
        )))
    }

    /// Why a request must not go out at this moment, whatever was planned; `None` where it may.
    pub(super) async fn forbidden(&self, payment: &Payment, ask: Ask) -> Result<Option<String>> {
        let rows = self.store.rows_of_charge(payment).await?;
        Ok(forbids(payment, &rows, ask.refund_minor()))
    }

    /// Sends a claimed request; `again`, where it may have left before.
    pub(super) async fn send(&self, record: StepRecord, again: bool, watch: &Tell<'_>) -> Result<Ran> {
        let Some(payment) = self.payment(&record).await? else {
            return self.without_row(record).await;
        };
        let request = request(&payment, &record)?;
        let provider = self.provider(&request.charge)?;
        if let Some(why) = match payment.status.as_str() == record.step.from {
            true => self.forbidden(&payment, request.ask).await?,
            false => Some(format!("it is {} now", payment.status)),
        } {
            let why = format!("{} is not sent: {why}", describe(&record.step));
            if again {
                self.put_down(record, &why).await?;
                return Ok(Ran::Stopped(Vec::new(), IntentEnd::Unknown(why)));
            }
            let unsent = StepRecord { sent: false, sent_at: None, ..record };
            self.keep_open(unsent, StepState::Pending, &why, Event::Conflict).await?;
            return Ok(Ran::Stopped(Vec::new(), IntentEnd::Conflict(vec![why])));
        }
        let now = (self.clock)();
        let note = Some(format!("{} under key {}", request.ask, request.key));
        let sent = StepRecord { updated_at: now, note, ..record.clone() };
        // Held against the claim: whoever took it over since has asked the provider, and goes by its answer.
        let still_ours = StepRecord { updated_at: record.updated_at, ..record.clone() };
        let entry = entry(&self.worker.actor, &sent, Event::Sent);
        self.store
            .journal()
            .transaction(async |tx| {
                self.store.finish_step(tx, &still_ours).await?;
                self.store.append_on(tx, &entry).await
            })
            .await?;
        let answer = match provider.send(&request, now).await? {
            // This time it did not leave; the time before it may have.
            Answer::NotSent(why) if again => Answer::Unknown(format!("not sent again: {why}")),
            answer => answer,
        };
        self.conclude(record, answer, watch).await
    }

    async fn payment(&self, record: &StepRecord) -> Result<Option<Payment>> {
        self.store.read_row::<Payment>(&record.tenant_id, &record.step.id).await
    }

    /// How an intent stops whose request is about a payment that is not there any more.
    async fn without_row(&self, record: StepRecord) -> Result<Ran> {
        let why = gone(&record);
        self.release(record, &why, Event::Conflict).await?;
        Ok(Ran::Stopped(Vec::new(), IntentEnd::Conflict(vec![why])))
    }

    /// What a step asks of the provider; `None` where its payment is gone.
    pub(super) async fn request(&self, record: &StepRecord) -> Result<Option<Request>> {
        self.payment(record).await?.map(|payment| request(&payment, record)).transpose()
    }

    /// Records what the provider answered about a claimed step, and moves its row accordingly.
    pub(super) async fn conclude(&self, record: StepRecord, answer: Answer, watch: &Tell<'_>) -> Result<Ran> {
        if watch(Moment::Answered(&record.step)).is_break() {
            return Ok(Ran::Stopped(Vec::new(), IntentEnd::BrokenOff));
        }
        let what = describe(&record.step);
        let record = StepRecord { updated_at: (self.clock)(), ..record };
        match answer {
            Answer::Done(reference) => self.money_moved(named(record, reference), watch).await,
            Answer::Refused(why) => {
                if let Some(request) = self.request(&record).await?.filter(|r| r.ask == Ask::Void)
                    && let Some((then, settled)) = self.moot(&record, &request, StepState::Failed).await?
                {
                    let why = format!("{what} was refused: {why}; {then}");
                    let end = if settled { IntentEnd::Refused(why) } else { IntentEnd::Conflict(vec![why]) };
                    return Ok(Ran::Stopped(Vec::new(), end));
                }
                let note = format!("refused: {why}");
                let back = back_from(&record.step);
                let refused = StepRecord { state: StepState::Failed, note: Some(note.clone()), ..record };
                match self.move_and_record(refused, back, None, Event::Refused, watch).await? {
                    None => Ok(Ran::Stopped(Vec::new(), IntentEnd::BrokenOff)),
                    Some(record) if record.state == StepState::Unknown => {
                        let why = record.note.unwrap_or_default();
                        Ok(Ran::Stopped(Vec::new(), IntentEnd::Unknown(format!("{what}: the payment {why}"))))
                    }
                    Some(_) => Ok(Ran::Stopped(Vec::new(), IntentEnd::Refused(format!("{what} was {note}")))),
                }
            }
            Answer::Accepted(reference) => {
                let record = named(record, reference);
                let record = self.keep_open(record, StepState::Accepted, TAKEN, Event::Accepted).await?;
                Ok(still_open(&record, taken(&record), watch))
            }
            Answer::Unknown(why) => {
                let record = self.keep_open(record, StepState::Unknown, &why, Event::Unknown).await?;
                Ok(still_open(&record, IntentEnd::Unknown(format!("{what}: {why}")), watch))
            }
            Answer::NotSent(why) => {
                let unsent = StepRecord { sent: false, sent_at: None, ..record };
                self.keep_open(unsent, StepState::Pending, &why, Event::Unknown).await?;
                Ok(Ran::Stopped(Vec::new(), IntentEnd::NotSent(format!("{what}: {why}"))))
            }
        }
    }

    /// What becomes of a request about which the provider does not say anything. The provider's report may
    /// have been written to the payment all the same, by the service that it reports to: then the row
    /// says so, and counts just this refund.
    pub(super) async fn unanswered(&self, record: StepRecord, why: &str, watch: &Tell<'_>) -> Result<Ran> {
        let row = self.store.row_state(record.step.ledger, &record.tenant_id, &record.step.id).await?;
        let is_told = row.is_some_and(|row| {
            row.status == record.step.to
                && record
                    .step
                    .amount_minor
                    .is_none_or(|amount| still_to_count(&record, amount, &row) == Ok(0))
        });
        if is_told {
            return self.conclude(record, Answer::Done(None), watch).await;
        }
        let what = format!("{}: {why}", describe(&record.step));
        self.put_down(record, why).await?;
        Ok(Ran::Stopped(Vec::new(), IntentEnd::Unknown(what)))
    }

    /// Puts a claimed request down again, of which nothing new was learned.
    pub(super) async fn put_down(&self, record: StepRecord, why: &str) -> Result<()> {
        let state = if record.state == StepState::Processing { StepState::Unknown } else { record.state };
        let record = StepRecord { updated_at: (self.clock)(), ..record };
        self.keep_open(record, state, why, Event::Asked).await.map(|_| ())
    }

    async fn keep_open(
        &self,
        record: StepRecord,
        state: StepState,
        note: &str,
        event: Event,
    ) -> Result<StepRecord> {
        if record.state == state && record.note.as_deref() == Some(note) {
            return Ok(record);
        }
        let record = StepRecord { state, note: Some(note.to_owned()), ..record };
        self.record(&record, event).await?;
        Ok(record)
    }

    async fn money_moved(&self, record: StepRecord, watch: &Tell<'_>) -> Result<Ran> {
        let to = record.step.to.clone();
        let amount = record.step.amount_minor;
        let done = StepRecord { state: StepState::Done, note: None, ..record };
        let Some(record) = self.move_and_record(done, &to, amount, Event::Moved, watch).await? else {
            return Ok(Ran::Stopped(Vec::new(), IntentEnd::BrokenOff));
        };
        if record.state == StepState::Unknown {
            let why = format!("payment {} {}", record.step.id, record.note.unwrap_or_default());
            return Ok(Ran::Stopped(Vec::new(), IntentEnd::Conflict(vec![why])));
        }
        Ok(match self.tell(&record, watch) {
            Some(end) => Ran::Stopped(vec![record], end),
            None => Ran::Through(vec![record]),
        })
    }

    /// Moves the row of a concluded request and records it. The provider's word is a fact, so a row
    /// that somebody touched meanwhile is read again and moved all the same, as long as it still
    /// waits for this word. `gave_back` counts from what was given back before: the provider's own report
    /// may have been written to the row already. `None` where the watcher broke it off.
    async fn move_and_record(
        &self,
        record: StepRecord,
        to: &str,
        gave_back: Option<i64>,
        event: Event,
        watch: &Tell<'_>,
    ) -> Result<Option<StepRecord>> {
        let step = record.step.clone();
        for _ in 0..TOUCHED {
            let Some(row) = self.store.row_state(step.ledger, &record.tenant_id, &step.id).await? else {
                let why = elsewhere(&record, None);
                return self.record_conflict(record, &why).await.map(Some);
            };
            if row.status == to {
                // The provider's own report was written to the row before ours.
                let record = after(record, row);
                self.record(&record, event).await?;
                return Ok(Some(record));
            }
            if row.status != step.from {
                let why = elsewhere(&record, Some(&row));
                return self.record_conflict(record, &why).await.map(Some);
            }
            let refund_minor = match gave_back.map(|amount| still_to_count(&record, amount, &row)) {
                None => 0,
                Some(Ok(refund_minor)) => refund_minor,
                Some(Err(why)) => return self.record_conflict(record, &why).await.map(Some),
            };
            let asked = Move {
                ledger: step.ledger,
                tenant_id: &record.tenant_id,
                id: &step.id,
                from: &step.from,
                to,
                version: &row.version,
                refund_minor,
                amount: step.amount_minor.zip(step.currency),
                captured_at: None,
                step_key: &step.step_key,
                actor: &self.worker.actor,
                now: record.updated_at,
            };
            let moved = |now| {
                let record = StepRecord { version_before: Some(row.version.clone()), ..record.clone() };
                after(record, now)
            };
            let together = self.store.is_beside_journal(step.ledger, row.shard);
            let done = self
                .store
                .shard(step.ledger, row.shard)
                .transaction(async |tx| {
                    let Moved::Now(now) = self.store.move_row(tx, row.shard, &asked).await? else {
                        return Ok(None);
                    };
                    let done = moved(now);
                    if together {
                        self.record_on(tx, &done, event).await?;
                    }
                    Ok(Some(done))
                })
                .await?;
            let Some(record) = done else { continue };
            if !together {
                if watch(Moment::Moved(&record.step)).is_break() {
                    return Ok(None);
                }
                self.record(&record, event).await?;
            }
            return Ok(Some(record));
        }
        Err(Error::failure(format!("payment {} keeps changing while it is being recorded", step.id))
            .hint("run apply again"))
    }

    /// The provider has answered, and the row is where its answer does not fit: a person corrects the
    /// row. Until then the request stays open, so that no other one is made about this payment.
    async fn record_conflict(&self, record: StepRecord, why: &str) -> Result<StepRecord> {
        let note = format!("{why}, though the provider has answered");
        let record = StepRecord { state: StepState::Unknown, note: Some(note), ..record };
        self.record(&record, Event::Conflict).await?;
        Ok(record)
    }
}

/// How an intent stops at a request whose end is open.
fn still_open(record: &StepRecord, end: IntentEnd, watch: &Tell<'_>) -> Ran {
    let broken_off = watch(Moment::Open(record)).is_break();
    Ran::Stopped(Vec::new(), if broken_off { IntentEnd::BrokenOff } else { end })
}

/// How an intent stops whose request its provider has taken.
pub(super) fn taken(record: &StepRecord) -> IntentEnd {
    IntentEnd::Accepted(describe(&record.step))
}

/// How an intent stops at a request whose end is open; `None` where it is not.
pub(super) fn open_end(record: &StepRecord) -> Option<IntentEnd> {
    match record.state {
        StepState::Accepted => Some(taken(record)),
        StepState::Unknown => {
            let why = record.note.as_deref().unwrap_or("no answer arrived");
            Some(IntentEnd::Unknown(format!("{}: {why}", describe(&record.step))))
        }
        _ => None,
    }
}

/// Whether a step is a request about a payment, under another key than the one of this step, whose end is open.
pub(super) fn is_another_open(record: &StepRecord, step: &Step) -> bool {
    record.sent && record.state.is_open() && record.step.provider_key != step.provider_key
}

/// What was given back before a refund, which is always of all that is left.
fn refunded_before(request: &Request) -> Option<i64> {
    request.ask.refund_minor().map(|minor| request.charge.amount_minor - minor)
}

fn after(record: StepRecord, row: RowState) -> StepRecord {
    StepRecord { version_after: Some(row.version), refunded_after_minor: row.refunded_minor, ..record }
}

/// What of a refund that was made its row does not count yet; in words, where the row counts something
/// that this refund does not explain.
fn still_to_count(record: &StepRecord, amount: i64, row: &RowState) -> Result<i64, String> {
    let (before, now) = (record.refunded_before_minor, row.refunded_minor);
    let left = before.zip(now).map(|(before, now)| before.saturating_add(amount).saturating_sub(now));
    left.filter(|left| (0..=amount).contains(left)).ok_or_else(|| {
        let show = |minor: Option<i64>| match (minor, record.step.currency) {
            (Some(minor), Some(currency)) => currency.show(minor.into()),
            _ => "an unknown sum".to_owned(),
        };
        format!(
            "has {} given back, where {} was before this refund of {}",
            show(now),
            show(before),
            show(Some(amount))
        )
    })
}

/// What a step asks of the provider, about a payment.
pub(super) fn request(payment: &Payment, record: &StepRecord) -> Result<Request> {
    let step = &record.step;
    let key = step.provider_key.clone().ok_or_else(|| {
        Error::failure(format!("the step of payment {} has no key to ask the provider with", step.id))
    })?;
    let ask = match step.amount_minor.zip(step.currency) {
        Some((amount_minor, currency)) => Ask::Refund { amount_minor, currency },
        None => Ask::Void,
    };
    Ok(Request {
        key,
        charge: payment.into(),
        ask,
        reason: format!("one purchase was charged more than once ({})", record.plan_id),
        reference: record.provider_ref.clone(),
    })
}

/// The record with the provider's own name of its request, where one was told.
fn named(record: StepRecord, reference: Option<String>) -> StepRecord {
    StepRecord { provider_ref: reference.or(record.provider_ref), ..record }
}

/// That the payment of a request is not there any more.
pub(super) fn gone(record: &StepRecord) -> String {
    format!("payment {} is gone from the ledger, and {} is open", record.step.id, describe(&record.step))
}

/// Where a payment goes when the provider refuses, by the contract's section 1.
fn back_from(step: &Step) -> &'static str {
    if step.from == PaymentStatus::Voiding.as_str() {
        PaymentStatus::Authorized.as_str()
    } else {
        PaymentStatus::Captured.as_str()
    }
}

/// A request in words: `refund of 120.00 EUR on payment P-2`.
fn describe(step: &Step) -> String {
    match (step.amount_minor, step.currency) {
        (Some(amount), Some(currency)) => {
            format!("the refund of {} on payment {}", currency.show(amount.into()), step.id)
        }
        _ => format!("the void of payment {}", step.id),
    }
}

/// Whether this is the leg of a refund or void on which the provider is asked.
pub(super) fn asks_provider(step: &Step) -> bool {
    let to = step.to.as_str();
    step.ledger == Ledger::Payments
        && (to == PaymentStatus::Refunded.as_str() || to == PaymentStatus::Voided.as_str())
}

/// Whether money moves with this step: it is one of the two legs.
pub(super) fn is_money(step: &Step) -> bool {
    step.ledger == Ledger::Payments
}
