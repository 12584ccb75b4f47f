//! Steps that only move a row of a ledger.

use super::{Executor, IntentEnd, Moment, Tell, command};
use crate::core::hash::FieldHash;
use crate::core::ids::*;
use crate::core::ledger::Shard;
use crate::core::plan::{Plan, PlannedIntent, Step};
use crate::core::status::Ledger;
use crate::error::{Error, Exit, Result};
use crate::store::journal::{Entry, Event};
use crate::store::moves::{Mark, Move, Moved, RowState};
use crate::store::outbox::OutboxRequest;
use crate::store::steps::{Claim, StepRecord, StepState};
use crate::store::{Connection, Transaction};

/// A step with where it stands in its plan.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    pub plan: &'a Plan,
    pub intent: &'a PlannedIntent,
    pub position: usize,
}

impl<'a> Place<'a> {
    pub fn step(self) -> &'a Step {
        &self.intent.steps[self.position]
    }
}

/// How a run of steps ended.
#[must_use]
pub(super) enum Ran {
    Through(Vec<StepRecord>),
    Stopped(Vec<StepRecord>, IntentEnd),
}

impl Executor<'_> {
    /// The record of a step that this worker claims now. `version` is the row's, as seen.
    pub(super) fn wanted(&self, at: Place<'_>, version: Option<Version>, sent: bool) -> StepRecord {
        let now = (self.clock)();
        let step = at.step();
        StepRecord {
            step_key: step.step_key.clone(),
            digest: digest(&at.intent.tenant_id, step),
            plan_id: at.plan.plan_id.clone(),
            intent_id: at.intent.intent_id.clone(),
            // A plan never has so many steps that their number does not fit.
            position: i64::try_from(at.position).unwrap_or(i64::MAX),
            tenant_id: at.intent.tenant_id.clone(),
            step: step.clone(),
            state: StepState::Processing,
            sent,
            owner: Some(self.worker.owner.clone()),
            token: Some(self.worker.token),
            lease_until: Some(now.plus(self.worker.lease)),
            version_before: version,
            version_after: None,
            refunded_before_minor: None,
            refunded_after_minor: None,
            note: None,
            sent_at: sent.then_some(now),
            provider_ref: None,
            sent_through: None,
            updated_at: now,
        }
    }

    /// Moves rows one after the other: those beside the journal together with it in one transaction,
    /// others each by claim, move and record. `leaving` is the request that is written with the one row
    /// that then moves, in its transaction.
    pub(super) async fn run_moves(
        &self,
        places: &[(Place<'_>, Shard)],
        before: &[StepRecord],
        leaving: Option<&OutboxRequest>,
        watch: &Tell<'_>,
    ) -> Result<Ran> {
        let beside = |(at, shard): &(Place<'_>, Shard)| {
            let ledger = at.step().ledger;
            self.store.is_beside_journal(ledger, *shard) && !self.commands.moves.contains_key(&ledger)
        };
        let mut records: Vec<StepRecord> = Vec::new();
        for run in places.chunk_by(|a, b| beside(a) && beside(b)) {
            let seen: Vec<_> = before.iter().chain(&records).cloned().collect();
            let ran = match run {
                [(at, shard)] if !beside(&run[0]) => {
                    self.run_apart(*at, *shard, &seen, leaving, watch).await?
                }
                _ => self.run_together(run, &seen, leaving, watch).await?,
            };
            match ran {
                Ran::Through(new) => records.extend(new),
                Ran::Stopped(new, end) => {
                    records.extend(new);
                    return Ok(Ran::Stopped(records, end));
                }
            }
        }
        Ok(Ran::Through(records))
    }

    /// Moves one row and writes the journal's entry about it, together where both share a database.
    pub async fn move_and_tell(&self, shard: Shard, asked: &Move<'_>, entry: Entry) -> Result<Moved> {
        let told = |row: &RowState| Entry { version: Some(row.version.clone()), ..entry.clone() };
        let by_command = self.commands.moves.contains_key(&asked.ledger);
        if by_command || !self.store.is_beside_journal(asked.ledger, shard) {
            let moved = self.move_alone(shard, asked, None, None).await?;
            if let Moved::Now(row) = &moved {
                self.store.append(&told(row)).await?;
            }
            return Ok(moved);
        }
        self.store
            .journal()
            .transaction(async |tx| {
                let moved = self.store.move_row(tx, shard, asked).await?;
                if let Moved::Now(row) = &moved {
                    self.store.append_on(tx, &told(row)).await?;
                }
                Ok(moved)
            })
            .await
    }

    /// Moves one row by itself: by the site's command, or in a transaction of its own. In a database
    /// apart from the journal the move of a step is marked beside it; `seen` is its mark as it was.
    async fn move_alone(
        &self,
        shard: Shard,
        asked: &Move<'_>,
        seen: Option<&Mark>,
        leaving: Option<&OutboxRequest>,
    ) -> Result<Moved> {
        if let Some(command) = self.commands.moves.get(&asked.ledger) {
            return command::move_row(command, shard, asked).await;
        }
        let ledger = asked.ledger;
        let is_marked = !asked.step_key.is_empty() && !self.store.is_beside_journal(ledger, shard);
        self.store
            .shard(ledger, shard)
            .transaction(async |tx| {
                let moved = self.store.move_row(tx, shard, asked).await?;
                if let (Moved::Now(row), true) = (&moved, is_marked) {
                    self.store.mark(tx, shard, asked, seen, &row.version).await?;
                }
                if let (Moved::Now(_), Some(leaving)) = (&moved, leaving) {
                    self.store.outbox_add_on(tx, shard, leaving, asked.now).await?;
                }
                Ok(moved)
            })
            .await
    }

    /// Moves a row of a ledger that lives apart from the journal. The ledger is marked with the move,
    /// so that [`Executor::heal`] knows what the journal has not heard of.
    async fn run_apart(
        &self,
        at: Place<'_>,
        shard: Shard,
        before: &[StepRecord],
        leaving: Option<&OutboxRequest>,
        watch: &Tell<'_>,
    ) -> Result<Ran> {
        let stopped = |end| Ok(Ran::Stopped(Vec::new(), end));
        let Some(version) = version_of(at, before) else { return stopped(unread(at)) };
        let record = match self.claim(at, self.wanted(at, Some(version.clone()), false)).await? {
            Claim::Ours(record) => record,
            Claim::Done(record) => return Ok(Ran::Through(vec![record])),
            other => return stopped(refused_claim(other)),
        };
        let ledger = at.step().ledger;
        let seen = self.store.mark_of(ledger, &record.step_key).await?;
        if watch(Moment::Claimed(at.step())).is_break() {
            return stopped(IntentEnd::BrokenOff);
        }
        // Freeze and plan are held still until the ledger has committed: whoever takes over from us while we
        // wait for a lock there waits, too.
        let journal = self.store.journal();
        let mut held = journal.begin().await?;
        self.fence(&mut held, at).await?;
        let moved = self.move_alone(shard, &self.plain_move(at, &version), seen.as_ref(), leaving).await;
        journal.commit(held).await?;
        let moved = match moved {
            // Another request was in the way of the one that was to leave.
            Err(error) if error.exit == Exit::Stale => {
                let (state, note) = (StepState::Conflict, Some(error.message.clone()));
                self.record(&StepRecord { state, note, ..record }, Event::Conflict).await?;
                return stopped(IntentEnd::Conflict(vec![error.message]));
            }
            moved => moved?,
        };
        if watch(Moment::Moved(at.step())).is_break() {
            return stopped(IntentEnd::BrokenOff);
        }
        let moved = match moved {
            // Another process of ours moved it under the same claim before it was taken over.
            Moved::NotAsSeen(Some(row))
                if self.moved_to(ledger, &record.step_key).await?.as_ref() == Some(&row.version) =>
            {
                Moved::Now(row)
            }
            moved => moved,
        };
        let (record, event) = after_move(record, moved);
        self.record(&record, event).await?;
        match self.tell(&record, watch) {
            Some(end) if record.state.is_done() => Ok(Ran::Stopped(vec![record], end)),
            Some(end) => stopped(end),
            None => Ok(Ran::Through(vec![record])),
        }
    }

    async fn run_together(
        &self,
        places: &[(Place<'_>, Shard)],
        before: &[StepRecord],
        leaving: Option<&OutboxRequest>,
        watch: &Tell<'_>,
    ) -> Result<Ran> {
        let moved = self
            .store
            .journal()
            .transaction(async |tx| self.move_together(tx, places, before, leaving).await)
            .await;
        let (mut records, already, mut stop) = match moved {
            // Another request was in the way of the one that was to leave: nothing was moved.
            Err(error) if error.exit == Exit::Stale => {
                return Ok(Ran::Stopped(Vec::new(), IntentEnd::Conflict(vec![error.message])));
            }
            moved => moved?,
        };
        for record in records.iter().filter(|r| !already.contains(&r.step_key)) {
            stop = stop.or(self.tell(record, watch));
        }
        records.retain(|r| r.state.is_done());
        Ok(match stop {
            Some(end) => Ran::Stopped(records, end),
            None => Ran::Through(records),
        })
    }

    /// Claims, moves and records in a transaction of the one database: the records, which of them another
    /// worker had done already, and why it stopped before the end.
    async fn move_together(
        &self,
        tx: &mut Transaction,
        places: &[(Place<'_>, Shard)],
        before: &[StepRecord],
        leaving: Option<&OutboxRequest>,
    ) -> Result<(Vec<StepRecord>, Vec<String>, Option<IntentEnd>)> {
        let mut records: Vec<StepRecord> = Vec::new();
        let mut already = Vec::new();
        if let Some((at, _)) = places.first() {
            self.fence(tx, *at).await?;
        }
        for (at, shard) in places {
            let Some(version) = version_of(*at, before.iter().chain(&records)) else {
                return Ok((records, already, Some(unread(*at))));
            };
            let record = match self.store.claim(tx, &self.wanted(*at, Some(version.clone()), false)).await? {
                Claim::Ours(record) => record,
                Claim::Done(record) => {
                    already.push(record.step_key.clone());
                    records.push(record);
                    continue;
                }
                other => return Ok((records, already, Some(refused_claim(other)))),
            };
            let moved = self.store.move_row(tx, *shard, &self.plain_move(*at, &version)).await?;
            if let (Moved::Now(_), Some(leaving)) = (&moved, leaving) {
                self.store.outbox_add_on(tx, *shard, leaving, record.updated_at).await?;
            }
            let (record, event) = after_move(record, moved);
            self.record_on(tx, &record, event).await?;
            let conflict = record.state == StepState::Conflict;
            records.push(record);
            if conflict {
                break;
            }
        }
        Ok((records, already, None))
    }

    /// Claims a step in a transaction of its own, committed before anything is done under it.
    pub(super) async fn claim(&self, at: Place<'_>, wanted: StepRecord) -> Result<Claim> {
        self.store
            .journal()
            .transaction(async |tx| {
                self.fence(tx, at).await?;
                self.store.claim(tx, &wanted).await
            })
            .await
    }

    /// Claims a step as [`Executor::claim`], by one who holds no freeze and begins nothing new.
    pub(super) async fn claim_begun(&self, wanted: StepRecord) -> Result<Claim> {
        self.store.journal().transaction(async |tx| self.store.claim(tx, &wanted).await).await
    }

    /// Sees to it that whoever has taken over the plan's freeze finds nothing that is committed by us later.
    pub(super) async fn fence(&self, on: &mut Connection, at: Place<'_>) -> Result<()> {
        self.store.fence_plan(on, &at.plan.plan_id).await?;
        let Some(freeze_id) = &at.plan.freeze_id else { return Ok(()) };
        self.store.fence(on, freeze_id, &self.worker.actor, self.worker.token, (self.clock)()).await
    }

    /// Records a step's state and the journal's entry about it.
    pub(super) async fn record(&self, record: &StepRecord, event: Event) -> Result<()> {
        self.store.journal().transaction(async |tx| self.record_on(tx, record, event).await).await
    }

    /// As [`Executor::record`], in a transaction of the journal's database.
    pub(super) async fn record_on(
        &self,
        on: &mut Transaction,
        record: &StepRecord,
        event: Event,
    ) -> Result<()> {
        self.store.finish_step(on, record).await?;
        self.store.append_on(on, &entry(&self.worker.actor, record, event)).await
    }

    /// Tells the watcher of a recorded step; says whether the intent stops here.
    pub(super) fn tell(&self, record: &StepRecord, watch: &Tell<'_>) -> Option<IntentEnd> {
        let moment = if record.state.is_open() { Moment::Open(record) } else { Moment::Ended(record) };
        if watch(moment).is_break() {
            return Some(IntentEnd::BrokenOff);
        }
        (record.state == StepState::Conflict).then(|| {
            let why = record.note.clone().unwrap_or_default();
            IntentEnd::Conflict(vec![format!("{} {} {why}", record.step.ledger.row_name(), record.step.id)])
        })
    }

    /// Settles a step that a killed run claimed and did not record, where no request can have left: the
    /// ledger is marked where that run moved the row; else it did nothing, and its move is given up there, so
    /// that it does nothing later either.
    pub(super) async fn heal(&self, record: StepRecord) -> Result<Claim> {
        let claim = self.claim_begun(self.as_ours(record)).await?;
        let Claim::Ours(ours) = claim else { return Ok(claim) };
        let (step, owner) = (&ours.step, ours.owner.as_deref().unwrap_or_default());
        let row = self.store.row_state(step.ledger, &ours.tenant_id, &step.id).await?;
        let apart =
            row.map(|row| row.shard).filter(|shard| !self.store.is_beside_journal(step.ledger, *shard));
        let moved_to = loop {
            let mark = self.store.mark_of(step.ledger, &ours.step_key).await?;
            let version = mark.as_ref().and_then(Mark::version);
            let Some(shard) = apart.filter(|_| version.is_none()) else { break version };
            let (key, seen) = (&ours.step_key, mark.as_ref());
            if self.store.give_up_move(step.ledger, shard, key, seen, owner, ours.updated_at).await? {
                break None;
            }
        };
        let healed = match moved_to {
            Some(version) => {
                let note = Some("moved by a run that was broken off".to_owned());
                StepRecord { state: StepState::Done, version_after: Some(version), note, ..ours }
            }
            None => StepRecord { state: StepState::Pending, ..ours },
        };
        if healed.state == StepState::Done {
            self.record(&healed, Event::Moved).await?;
            return Ok(Claim::Done(healed));
        }
        self.store.journal().transaction(async |tx| self.store.finish_step(tx, &healed).await).await?;
        Ok(Claim::Ours(healed))
    }

    /// The version that a step left its row with in a ledger apart from the journal.
    async fn moved_to(&self, ledger: Ledger, step_key: &str) -> Result<Option<Version>> {
        Ok(self.store.mark_of(ledger, step_key).await?.as_ref().and_then(Mark::version))
    }

    /// A step that somebody has begun, as this worker claims it. Whoever settles it needs no freeze;
    /// but what a newer holder claimed is not ours to end.
    pub(super) fn as_ours(&self, record: StepRecord) -> StepRecord {
        let now = (self.clock)();
        StepRecord {
            owner: Some(self.worker.owner.clone()),
            token: Some(self.worker.token.max(record.token.unwrap_or_default())),
            lease_until: Some(now.plus(self.worker.lease)),
            updated_at: now,
            ..record
        }
    }
}

/// What a record becomes after its row was moved, or was found elsewhere.
pub(super) fn after_move(record: StepRecord, moved: Moved) -> (StepRecord, Event) {
    let (state, event, row, note) = match moved {
        Moved::Now(row) => (StepState::Done, Event::Moved, Some(row), None),
        Moved::NotAsSeen(Some(row)) if row.status == record.step.to => {
            (StepState::Skipped, Event::AlreadySo, Some(row), None)
        }
        Moved::NotAsSeen(row) => {
            let note = elsewhere(&record, row.as_ref());
            (StepState::Conflict, Event::Conflict, None, Some(note))
        }
    };
    let version_after = row.map(|row| row.version);
    (StepRecord { state, version_after, note, ..record }, event)
}

/// How a row differs from what a step expected.
pub(super) fn elsewhere(record: &StepRecord, row: Option<&RowState>) -> String {
    match row {
        None => "is gone".to_owned(),
        Some(row) if row.status != record.step.from => {
            format!("is {}, the plan saw {}", row.status, record.step.from)
        }
        Some(row) => format!(
            "has version {}, the plan saw {}",
            row.version,
            record.version_before.as_ref().map_or("none", Version::as_str)
        ),
    }
}

pub(super) fn refused_claim(claim: Claim) -> IntentEnd {
    let what =
        |r: &StepRecord| format!("{} {} {}→{}", r.step.ledger.row_name(), r.step.id, r.step.from, r.step.to);
    match claim {
        Claim::Busy(r) => IntentEnd::Busy(format!(
            "{} is being carried out by {} until {}",
            what(&r),
            r.owner.as_deref().unwrap_or("another process"),
            r.lease_until.map_or("its end".to_owned(), |t| t.to_string())
        )),
        Claim::Refused(r) => IntentEnd::Refused(format!(
            "{}: {}",
            what(&r),
            r.note.as_deref().unwrap_or("the provider refused it")
        )),
        Claim::Differs(r) => IntentEnd::Conflict(vec![format!(
            "{} was sent before by {} with another amount",
            what(&r),
            r.plan_id
        )]),
        Claim::Withdrawn(r) => IntentEnd::Conflict(vec![format!("{} was given up: plan again", what(&r))]),
        Claim::Ours(r) | Claim::Sent(r) | Claim::Done(r) => {
            IntentEnd::Conflict(vec![format!("{} is {} already", what(&r), r.state)])
        }
    }
}

fn unread(at: Place<'_>) -> IntentEnd {
    let step = at.step();
    IntentEnd::Conflict(vec![format!("{} {} has no version to compare", step.ledger.row_name(), step.id)])
}

/// The version that a step's row must have: as the plan saw it, or as the row's leg before left it.
pub(super) fn version_of<'r>(
    at: Place<'_>,
    records: impl IntoIterator<Item = &'r StepRecord, IntoIter: DoubleEndedIterator>,
) -> Option<Version> {
    let step = at.step();
    step.version.clone().or_else(|| {
        records
            .into_iter()
            .rev()
            .find(|r| r.step.ledger == step.ledger && r.step.id == step.id && r.step.to == step.from)
            .and_then(|r| r.version_after.clone())
    })
}

impl Executor<'_> {
    /// The move of a step that only moves its row.
    fn plain_move<'a>(&'a self, at: Place<'a>, version: &'a Version) -> Move<'a> {
        let step = at.step();
        Move {
            ledger: step.ledger,
            tenant_id: &at.intent.tenant_id,
            id: &step.id,
            from: &step.from,
            to: &step.to,
            version,
            refund_minor: 0,
            amount: step.amount_minor.zip(step.currency),
            captured_at: None,
            step_key: &step.step_key,
            actor: &self.worker.actor,
            now: (self.clock)(),
        }
    }
}

/// Refuses a request that is not what its plan decided, of which these are the intents: whoever changed what is recorded of it would
/// change what is sent. The plan's own digest was looked at when it was read.
pub(super) fn must_be_planned<'i>(
    intents: impl IntoIterator<Item = &'i PlannedIntent>,
    record: &StepRecord,
) -> Result<()> {
    let planned = intents
        .into_iter()
        .filter(|i| i.intent_id == record.intent_id && i.tenant_id == record.tenant_id)
        .flat_map(|i| &i.steps)
        .find(|s| s.step_key == record.step_key);
    let is_same = |planned: &Step| {
        let version = planned.version.clone();
        *planned == Step { version, ..record.step.clone() }
            && digest(&record.tenant_id, planned) == record.digest
    };
    if planned.is_some_and(is_same) {
        return Ok(());
    }
    let step = &record.step;
    Err(Error::refused(format!(
        "what is recorded of {} {} {}→{} is not what {} decided: nothing of it is sent or recorded",
        step.ledger.row_name(),
        step.id,
        step.from,
        step.to,
        record.plan_id
    ))
    .hint(format!(
        "find out who changed onefold_steps or onefold_plans (step {}), and restore the row",
        record.step_key
    )))
}

/// Over everything that an effect is, the amount included.
fn digest(tenant_id: &TenantId, step: &Step) -> String {
    let amount = step.amount_minor.map(|a| a.to_string()).unwrap_or_default();
    let currency = step.currency.map(|c| c.code()).unwrap_or_default();
    [step.ledger.as_str(), tenant_id.as_str(), step.id.as_str(), &step.from, &step.to, &amount, currency]
        .into_iter()
        .fold(FieldHash::new(), FieldHash::text)
        .hex()
}

/// The journal's entry about a step.
pub(super) fn entry(actor: &str, record: &StepRecord, event: Event) -> Entry {
    let step = &record.step;
    let mut entry = Entry::new(event, actor, record.updated_at)
        .plan(&record.plan_id)
        .row(step.ledger, &record.tenant_id, step.id.clone())
        .moved(&step.from, &step.to);
    entry.intent_id = Some(record.intent_id.clone());
    entry.amount_minor = step.amount_minor;
    entry.currency = step.currency.map(|c| c.code().to_owned());
    entry.version = record.version_after.clone();
    let reference = record.provider_ref.as_ref().map(|r| format!("provider reference {r}"));
    entry.note = record.note.clone().or(reference);
    entry
}
