//! Carries a plan out, intent by intent, and resumes one that was broken off.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

use futures_util::future::{join, join_all};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::begun::{At, Begun, each_row};
use super::many::{AT_ONCE, Stretch, Together};
use super::money::{asks_provider, is_money, request, taken};
use super::moves::{Place, Ran, refused_claim, version_of};
use super::pace::{Gate, Pace};
use super::{Executor, IntentEnd, Moment, Tell, Watch};
use crate::core::charges::forbids;
use crate::core::evidence::Evidence;
use crate::core::freeze::Freeze;
use crate::core::ids::*;
use crate::core::ledger::{Ledgers, Payment, Shard};
use crate::core::plan::{Plan, PlannedIntent};
use crate::core::recheck::{recheck, undo};
use crate::core::status::Ledger;
use crate::core::tally::Tally;
use crate::core::time::{Span, Timestamp};
use crate::error::Result;
use crate::providers::Request;
use crate::providers::outbox;
use crate::store::steps::{Claim, StepRecord, StepState};

/// The lease that apply asks for whenever it renews the freeze.
const LEASE: Span = Span::from_mins(10);
/// How old a renewal may be when an intent without money is begun.
const FRESH: Span = Span::from_secs(2);

/// For how long a look at intents' rows counts until their requests leave: not longer than a request to a provider is
/// under way.
const LOOK: Duration = Duration::from_millis(200);
/// How many intents of which a request is to leave are looked at together: about as many as come to their turn meanwhile.
const LOOKED_AT: usize = 64;

/// How often an intent is read again while another process moves its rows.
const MOVING: usize = 20;

/// How long a worker with nothing else to do waits before it looks again at what another is at.
const BUSY: Duration = Duration::from_millis(200);

/// What a run of apply did.
#[derive(Clone, Debug, Default)]
pub struct Applied {
    /// By intent id, those that were begun, in the plan's order.
    pub intents: Vec<(String, IntentEnd)>,
    /// Steps of the intents that were asked for that are done, in this run and before.
    pub steps_done: usize,
    /// Whether it was stopped before it had begun every intent.
    pub stopped: bool,
}

impl Applied {
    /// This run and the one that followed it.
    #[must_use]
    pub fn and(mut self, next: Self) -> Self {
        self.intents.extend(next.intents);
        Self { intents: self.intents, steps_done: self.steps_done + next.steps_done, stopped: next.stopped }
    }

    pub fn is_whole(&self) -> bool {
        !self.stopped && self.intents.iter().all(|(_, end)| *end == IntentEnd::Done)
    }
}

/// A run of apply, as its workers share it.
pub(super) struct Run<'r> {
    pub(super) plan: &'r Plan,
    pub(super) evidence: &'r Evidence,
    pub(super) begun: RefCell<Begun>,
    /// The freeze under which the plan is carried out, renewed as time goes by.
    freeze: &'r Freeze,
    renewed_at: Cell<Timestamp>,
    pace: &'r Pace<'r>,
    watch: &'r Tell<'r>,
    /// By position among the intents that are asked for.
    queue: RefCell<VecDeque<(usize, &'r PlannedIntent)>>,
    ends: RefCell<BTreeMap<usize, IntentEnd>>,
    /// The intents some of whose moves were made at once with others', and where their rows lie.
    together: RefCell<HashMap<String, Shards>>,
    /// When the rows of an intent were found as planned, for the request that is its next step.
    looks: RefCell<HashMap<String, Instant>>,
    stopped: Cell<bool>,
    /// Whether it has waited for others as long as it may: what they are at is left to them.
    is_tired: &'r Cell<bool>,
    /// Whoever makes many moves at once: the workers read side by side, and write one after the other.
    pub(super) turn: Mutex<()>,
}

impl<'r> Run<'r> {
    /// The next intents for one worker.
    fn portion(&self) -> VecDeque<(usize, &'r PlannedIntent)> {
        let mut queue = self.queue.borrow_mut();
        let fair = queue.len().div_ceil(self.pace.workers.max(1));
        let count = if self.pace.is_slowed() { fair.min(1) } else { fair };
        queue.drain(..count).collect()
    }

    /// Says of intents that are not gone on with which are done all the same, and which are broken off.
    fn note_left(&self, left: VecDeque<(usize, &PlannedIntent)>) {
        let begun = self.begun.borrow();
        let end = |(at, intent)| begun.end(intent).map(|end| (at, end));
        self.ends.borrow_mut().extend(left.into_iter().filter_map(end));
    }
}

/// A plan that is begun, under its freeze.
pub struct Applying<'a> {
    executor: Executor<'a>,
    plan: &'a Plan,
    freeze: &'a Freeze,
    evidence: Evidence,
    /// Whether somebody had begun steps of it before.
    is_resumed: bool,
    is_tired: Cell<bool>,
}

impl<'a> Executor<'a> {
    /// Begins a plan, which comes to `all`, or goes on with it; its own intents are not asked for.
    ///
    /// # Errors
    /// Refused where it may not be begun.
    pub async fn begin(&self, plan: &'a Plan, all: &Tally, freeze: &'a Freeze) -> Result<Applying<'a>> {
        let is_resumed = self.store.is_begun(&plan.plan_id).await?;
        self.store.begin_plan(plan, all, self.approval, &self.worker.actor, (self.clock)()).await?;
        let evidence = self.store.evidence_beside(&plan.plan_id).await?;
        Ok(Applying { executor: *self, plan, freeze, evidence, is_resumed, is_tired: Cell::new(false) })
    }
}

impl Applying<'_> {
    /// Carries out the steps of some intents of the plan that have not been carried out: by as many workers as the pace
    /// says, each at an intent of its own.
    ///
    /// # Errors
    /// Refused where the freeze is lost on the way: what is done stays done.
    pub async fn carry_out(
        &self,
        intents: &[&PlannedIntent],
        pace: &Pace<'_>,
        watch: &mut Watch<'_>,
    ) -> Result<Applied> {
        let Self { executor, plan, freeze, evidence, is_resumed, is_tired } = self;
        let watch = RefCell::new(watch);
        let tell = |moment: Moment<'_>| (watch.borrow_mut())(moment);
        let of_first = |count| executor.begun_of(&plan.plan_id, intents.iter().copied().take(count));
        let mut begun = of_first(if *is_resumed { intents.len() } else { 1 }).await?;
        // Another process that began with us may be ahead of us.
        if !is_resumed && !begun.is_empty() {
            begun = of_first(intents.len()).await?;
        }
        let run = Run {
            plan,
            evidence,
            begun: RefCell::new(begun),
            freeze,
            renewed_at: Cell::new(Timestamp::from_micros(i64::MIN)),
            pace,
            watch: &tell,
            queue: RefCell::new(intents.iter().copied().enumerate().collect()),
            ends: RefCell::default(),
            together: RefCell::default(),
            looks: RefCell::default(),
            stopped: Cell::new(false),
            is_tired,
            turn: Mutex::default(),
        };
        let workers = (0..pace.workers.max(1)).map(|_| executor.work(&run));
        for end in join_all(workers).await {
            end?;
        }
        let begun = run.begun.into_inner();
        let ends = run.ends.into_inner().into_iter();
        Ok(Applied {
            intents: ends.map(|(at, end)| (intents[at].intent_id.clone(), end)).collect(),
            steps_done: intents.iter().map(|i| begun.done(i)).sum(),
            stopped: run.stopped.get(),
        })
    }

    /// What is done of intents that are not gone on with.
    pub async fn done_of(&self, intents: &[&PlannedIntent]) -> Result<Applied> {
        let begun = self.executor.begun_of(&self.plan.plan_id, intents.iter().copied()).await?;
        let end = |i: &&PlannedIntent| begun.end(i).map(|end| (i.intent_id.clone(), end));
        Ok(Applied {
            intents: intents.iter().filter_map(end).collect(),
            steps_done: intents.iter().map(|i| begun.done(i)).sum(),
            stopped: true,
        })
    }
}

impl Executor<'_> {
    /// Takes portions of the intents until none is left: makes the moves of each that may be made at once, and then takes
    /// one after the other, up to where its next moves may be made with others'. One that another process is at comes
    /// last, and is waited for as long as the pace allows.
    async fn work(&self, run: &Run<'_>) -> Result<()> {
        let mut waited = Duration::ZERO;
        let (mut portion, mut next) = (VecDeque::new(), VecDeque::new());
        loop {
            if portion.is_empty() && !run.stopped.get() {
                portion = if next.is_empty() { run.portion() } else { std::mem::take(&mut next) };
                self.run_portion(run, &portion).await.inspect_err(|_| run.stopped.set(true))?;
            }
            if run.stopped.get() {
                portion.append(&mut next);
                run.note_left(portion);
                return Ok(());
            }
            let Some((at, intent)) = portion.pop_front() else { return Ok(()) };
            if !self.goes(run, 0).await? || (run.watch)(Moment::Intent(intent)).is_break() {
                run.stopped.set(true);
                let end = run.begun.borrow().end(intent).unwrap_or(IntentEnd::BrokenOff);
                run.ends.borrow_mut().insert(at, end);
                continue;
            }
            let beside = portion.iter().map(|(_, other)| *other);
            let end = self.run_intent(run, intent, beside).await.inspect_err(|_| run.stopped.set(true))?;
            match end {
                None => {
                    next.push_back((at, intent));
                    continue;
                }
                Some(IntentEnd::Busy(_)) if waited < run.pace.patience && !run.is_tired.get() => {
                    let is_last = portion.is_empty() && next.is_empty() && run.queue.borrow().is_empty();
                    run.queue.borrow_mut().push_back((at, intent));
                    if is_last {
                        tokio::time::sleep(BUSY).await;
                        waited += BUSY;
                    }
                    continue;
                }
                Some(IntentEnd::Busy(_)) => run.is_tired.set(true),
                Some(IntentEnd::BrokenOff) => run.stopped.set(true),
                Some(_) => waited = Duration::ZERO,
            }
            run.ends.borrow_mut().extend(end.map(|end| (at, end)));
        }
    }

    /// Makes the next moves of those of a portion that may be made at once, where they are of more than one.
    async fn run_portion(&self, run: &Run<'_>, portion: &VecDeque<(usize, &PlannedIntent)>) -> Result<()> {
        let stretches = self.at_once(portion.iter().map(|(_, intent)| *intent), &run.begun.borrow());
        if stretches.len() < 2 {
            return Ok(());
        }
        let has_money = |stretch: &Stretch<'_>| stretch.steps().iter().any(is_money);
        let (money, others): (Vec<_>, Vec<_>) = stretches.into_iter().partition(has_money);
        let mut parts = others.chunks(AT_ONCE).chain(money.chunks(LOOKED_AT)).peekable();
        let mut looked = None;
        while let Some(stretches) = parts.next() {
            if !self.goes(run, stretches.iter().map(|stretch| stretch.steps.len()).sum()).await? {
                run.stopped.set(true);
                let first = portion.front().map(|(at, _)| (*at, IntentEnd::BrokenOff));
                run.ends.borrow_mut().extend(first);
                return Ok(());
            }
            self.keep_hold(run, stretches.iter().any(has_money)).await?;
            // The next ones are read while these are written.
            let ahead = async {
                match parts.peek() {
                    Some(next) => self.look_at(run, next).await.map(Some),
                    None => Ok(None),
                }
            };
            let (together, ahead) = join(self.run_many(run, stretches, looked.take()), ahead).await;
            let Together { intents, records } = together?;
            run.together.borrow_mut().extend(intents);
            records.iter().for_each(|record| run.begun.borrow_mut().add(record));
            if records.iter().any(|record| self.tell(record, run.watch).is_some()) {
                run.stopped.set(true);
                return Ok(());
            }
            looked = ahead?;
        }
        Ok(())
    }

    /// Whether work goes on with so many steps: waits for their turn and where it is to wait, holding the
    /// freeze meanwhile.
    async fn goes(&self, run: &Run<'_>, steps: usize) -> Result<bool> {
        let turn = run.pace.turn(steps);
        loop {
            let wait = match (run.pace.gate)() {
                Gate::Stop => return Ok(false),
                Gate::Wait => BUSY,
                Gate::Open => turn.saturating_duration_since(Instant::now()).min(BUSY),
            };
            if wait.is_zero() {
                return Ok(true);
            }
            self.keep_hold(run, false).await?;
            tokio::time::sleep(wait).await;
        }
    }

    /// Whether the rows of a request's intent are still as its plan saw them, but for our own moves;
    /// the differences where they are not.
    pub async fn is_as_planned(&self, plan: &Plan, record: &StepRecord) -> Result<Vec<String>> {
        let Some(intent) = plan.intents.iter().find(|i| i.intent_id == record.intent_id) else {
            return Ok(vec![format!("{} has no intent {}", plan.plan_id, record.intent_id)]);
        };
        let evidence = self.store.evidence_beside(&plan.plan_id).await?;
        let begun = RefCell::new(self.begun_of(&plan.plan_id, [intent]).await?);
        Ok(match self.reread(plan, intent, &evidence, &begun).await? {
            Ok(_) => Vec::new(),
            Err(IntentEnd::Conflict(differences)) => differences,
            Err(IntentEnd::Busy(why) | IntentEnd::Refused(why)) => vec![why],
            Err(end) => vec![format!("{end:?}")],
        })
    }

    /// Carries out an intent's steps, and says how it ends; `beside` are others that wait for their turn. `None` where its
    /// moves are made at once with theirs, and it has asked its provider: then it goes on with them.
    async fn run_intent<'i>(
        &self,
        run: &Run<'_>,
        intent: &'i PlannedIntent,
        beside: impl Iterator<Item = &'i PlannedIntent> + Clone,
    ) -> Result<Option<IntentEnd>> {
        let (plan, watch) = (run.plan, run.watch);
        let mut records = run.begun.borrow().records(intent).to_vec();
        if let Some(refused) = refusal(&records) {
            return Ok(Some(refused));
        }
        for record in &mut records {
            if record.state == StepState::Processing
                && !record.sent
                && let Claim::Done(healed) = self.heal(record.clone()).await?
            {
                run.begun.borrow_mut().add(&healed);
                *record = healed;
            }
        }
        let mut next = 0;
        let mut checked = run.together.borrow_mut().remove(&intent.intent_id);
        let is_together = checked.is_some();
        let mut has_asked = false;
        while next < intent.steps.len() {
            let at = |position| Place { plan, intent, position };
            let step = &intent.steps[next];
            if records.iter().any(|r| r.step_key == step.step_key && r.state.is_done()) {
                next += 1;
                continue;
            }
            // It has left with its first leg, together with those of others.
            let is_taken = |r: &&StepRecord| r.step_key == step.step_key && r.state == StepState::Accepted;
            if is_together && let Some(record) = records.iter().find(is_taken) {
                return Ok(Some(taken(record)));
            }
            if is_together && has_asked && !asks_provider(step) {
                run.together.borrow_mut().extend(checked.map(|shards| (intent.intent_id.clone(), shards)));
                return Ok(None);
            }
            let end = if is_money(step) {
                next + 1
            } else {
                (next..intent.steps.len()).find(|i| is_money(&intent.steps[*i])).unwrap_or(intent.steps.len())
            };
            // Whatever is waited for is waited for here: what is read from now on is acted on at once.
            if !self.goes(run, end - next).await? {
                return Ok(Some(IntentEnd::BrokenOff));
            }
            self.keep_hold(run, is_money(step)).await?;
            has_asked |= asks_provider(step);
            let ran = if asks_provider(step) {
                let Some(version) = version_of(at(next), &records) else {
                    return Ok(Some(IntentEnd::Conflict(vec![format!(
                        "payment {} has no first leg",
                        step.id
                    )])));
                };
                let may_send = async || match is_together {
                    true if self.look(run, intent, beside.clone()).await? => Ok(None),
                    _ => Ok(self.reread(plan, intent, run.evidence, &run.begun).await?.err()),
                };
                self.run_request(at(next), version, may_send, watch).await?
            } else {
                if is_money(step)
                    && let Some(end) = self.open_request(at(next)).await?
                {
                    return Ok(Some(end));
                }
                let mut leaving = None;
                if is_money(step) || checked.is_none() {
                    let as_seen = match self.reread(plan, intent, run.evidence, &run.begun).await? {
                        Ok(as_seen) => as_seen,
                        Err(end) => return Ok(Some(end)),
                    };
                    if is_money(step) {
                        leaving = match self.leaving(at(next), &as_seen.payments)? {
                            Ok(leaving) => leaving.map(|request| outbox::row(&request)),
                            Err(end) => return Ok(Some(end)),
                        };
                    }
                    checked = Some(shards(&as_seen, intent));
                }
                let places: Vec<_> = (next..end)
                    .map(|i| {
                        let step = &intent.steps[i];
                        let shard = checked.as_ref().and_then(|s| s.get(&(step.ledger, step.id.clone())));
                        (at(i), shard.copied().unwrap_or_default())
                    })
                    .collect();
                self.run_moves(&places, &records, leaving.as_ref(), watch).await?
            };
            let (new, end) = match ran {
                Ran::Through(new) => (new, None),
                Ran::Stopped(new, end) => (new, Some(end)),
            };
            next += new.len();
            new.iter().for_each(|record| run.begun.borrow_mut().add(record));
            records.extend(new);
            if let Some(end) = end {
                return Ok(Some(end));
            }
        }
        Ok(Some(IntentEnd::Done))
    }

    /// Whether an intent's rows have just been found as planned, for this one request. With them those of others are looked at
    /// that wait for theirs: they often are of the same buyers, and read again for each they would take most of the time.
    async fn look<'i>(
        &self,
        run: &Run<'_>,
        intent: &'i PlannedIntent,
        beside: impl Iterator<Item = &'i PlannedIntent>,
    ) -> Result<bool> {
        let is_fresh = |at: &Instant| at.elapsed() < LOOK;
        let looked = run.looks.borrow_mut().remove(&intent.intent_id);
        if looked.is_some_and(|at| is_fresh(&at)) {
            return Ok(true);
        }
        let comes_next = |other: &&PlannedIntent| {
            let next = run.begun.borrow().leading(other).and_then(|from| other.steps.get(from));
            next.is_some_and(is_money) && run.together.borrow().contains_key(&other.intent_id)
        };
        let all: Vec<_> = std::iter::once(intent).chain(beside.filter(comes_next)).take(LOOKED_AT).collect();
        let now = Instant::now();
        let (_, mut as_planned) = self.as_planned(run, &all).await?;
        let is_so = as_planned.remove(&intent.intent_id);
        let mut looks = run.looks.borrow_mut();
        looks.retain(|_, at| is_fresh(at));
        looks.extend(as_planned.into_iter().map(|other| (other, now)));
        Ok(is_so)
    }

    /// Reads an intent's rows anew and holds them against the plan, our own moves undone
    /// (contract, section 5). The rows as the plan saw them, where they are so; else how the intent ends.
    async fn reread(
        &self,
        plan: &Plan,
        intent: &PlannedIntent,
        evidence: &Evidence,
        begun: &RefCell<Begun>,
    ) -> Result<std::result::Result<Ledgers, IntentEnd>> {
        let check = |fresh: &Ledgers, begun: &Begun| {
            let mut as_seen = fresh.clone();
            undo(&mut as_seen, &begun.moves_on(fresh));
            recheck(intent, &as_seen, &plan.policy, plan.as_of, evidence).map(|()| as_seen)
        };
        // Another worker may be carrying out the same plan: its moves are our own, too. Rows and records
        // are read one after the other, so only when nobody recorded anything between do they compare.
        let mut newer: Option<Begun> = None;
        for _ in 0..MOVING {
            let fresh = self.store.read_intents([intent]).await?;
            if newer.is_none() {
                self.learn_of(&plan.plan_id, &[intent], &fresh, begun).await?;
            }
            let (checked, known) = {
                let begun = begun.borrow();
                let known = newer.as_ref().unwrap_or(&begun);
                (check(&fresh, known), (known.records(intent).to_vec(), known.moves_on(&fresh)))
            };
            let differences = match checked {
                Ok(as_seen) => {
                    // What another process has done is known from now on.
                    begun.borrow_mut().learn(newer.unwrap_or_default());
                    return Ok(Ok(as_seen));
                }
                Err(differences) => differences,
            };
            let now = self.begun_around(&plan.plan_id, intent, &fresh).await?;
            if let Some(refused) = refusal(now.records(intent)) {
                return Ok(Err(refused));
            }
            if now.records(intent) == known.0 && now.moves_on(&fresh) == known.1 {
                let at_it = |r: &&StepRecord| {
                    r.state == StepState::Processing && r.owner.as_ref() != Some(&self.worker.owner)
                };
                return Ok(Err(match now.records(intent).iter().find(at_it) {
                    Some(other) => refused_claim(Claim::Busy(other.clone())),
                    None => IntentEnd::Conflict(differences.iter().map(ToString::to_string).collect()),
                }));
            }
            newer = Some(now);
        }
        Ok(Err(IntentEnd::Busy(format!("another process is carrying out {}", intent.intent_id))))
    }

    /// The request that leaves in the transaction of its first leg, where the payment's provider has it
    /// so; all rows of its charge are among these. How the intent ends instead, where nothing may be asked about the charge now.
    pub(super) fn leaving(
        &self,
        first: Place<'_>,
        payments: &[Payment],
    ) -> Result<std::result::Result<Option<Request>, IntentEnd>> {
        let second = Place { position: first.position + 1, ..first };
        let record = self.wanted(second, None, false);
        let conflict = |why: String| Ok(Err(IntentEnd::Conflict(vec![why])));
        let payments = || payments.iter().filter(|p| p.tenant_id == record.tenant_id);
        let Some(payment) = payments().find(|p| RowId::from(&p.payment_id) == first.step().id) else {
            return conflict(format!("payment {} is gone", first.step().id));
        };
        let request = request(payment, &record)?;
        let same_charge = |p: &&Payment| {
            p.payment_id == payment.payment_id
                || p.provider == payment.provider
                    && p.provider_txn_id.is_some()
                    && p.provider_txn_id == payment.provider_txn_id
        };
        if let Some(why) = forbids(payment, payments().filter(same_charge), request.ask.refund_minor()) {
            return conflict(format!("payment {}: {why}", payment.payment_id));
        }
        let leaves = self.provider(&request.charge)?.leaves_with_first_leg();
        Ok(Ok(leaves.then_some(request)))
    }

    /// Renews the freeze under its token; a money step always sees to it first.
    async fn keep_hold(&self, run: &Run<'_>, money: bool) -> Result<()> {
        let now = (self.clock)();
        if !money && now.since(run.renewed_at.get()) < FRESH {
            return Ok(());
        }
        let Freeze { freeze_id, token, .. } = run.freeze;
        self.store.renew(freeze_id, &self.worker.actor, Some(*token), LEASE, false, now).await?;
        run.renewed_at.set(now);
        Ok(())
    }
}

/// How an intent ends one of whose requests the provider has refused for good.
fn refusal(records: &[StepRecord]) -> Option<IntentEnd> {
    let failed = records.iter().find(|r| r.state == StepState::Failed)?;
    let what = failed.note.as_deref().unwrap_or("refused by the provider");
    Some(IntentEnd::Refused(format!("payment {}: {what}", failed.step.id)))
}

/// In which shard each row of an intent lies.
pub(super) type Shards = HashMap<(Ledger, RowId), Shard>;

fn shards(fresh: &Ledgers, intent: &PlannedIntent) -> Shards {
    each_row(fresh)
        .filter(|at| *at.tenant_id == intent.tenant_id)
        .map(|At { ledger, id, shard, .. }| ((ledger, id), shard))
        .collect()
}
