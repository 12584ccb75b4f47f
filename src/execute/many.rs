//! The moves of many intents at once, in one transaction and by one statement for all rows that move alike.
//!
//! A short cut and no more: it is taken where nothing stands in its way, and else undone as a whole, down to a single
//! row that is not as its plan saw it, or that somebody else is at. Then [`Executor::apply`] goes intent by intent, and
//! tells what is the matter. An intent's moves are made with others' up to where its provider is asked, and from there
//! on; with the last of them leaves what leaves in the transaction of its first leg, once the rows have been read again
//! while those that move are held. An intent whose provider keeps us waiting is carried out by itself from its first
//! step: it is not begun long before its turn.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::time::Duration;

use rayon::prelude::*;
use tokio::time::Instant;

use super::Executor;
use super::apply::{Run, Shards};
use super::begun::{At, Begun, each_row};
use super::money::{asks_provider, is_another_open, is_money};
use super::moves::{Place, after_move, entry, version_of};
use crate::core::ids::*;
use crate::core::join::Joined;
use crate::core::ledger::{Ledgers, Payment, Shard};
use crate::core::plan::{Plan, PlannedIntent, Step};
use crate::core::recheck::{Recheck, undo};
use crate::core::status::Ledger;
use crate::error::{Error, Result};
use crate::providers::{Request, outbox};
use crate::store::journal::Event;
use crate::store::moves::{Move, Moved};
use crate::store::steps::{StepRecord, StepState};
use crate::store::{BATCH, Transaction};

/// How many intents of which no money moves are carried out at once: half of what goes into one list of a statement, since
/// most have an order or two to move.
pub(super) const AT_ONCE: usize = 250;

/// How long ago the rows may have been asked for when the first one moves: another worker may have held the plan
/// meanwhile.
const OLD: Duration = Duration::from_secs(2);
/// How often rows are read anew that have become so old.
const READS: usize = 3;

/// What is common to rows that one statement moves: ledger, shard, tenant, from, to, and the version as seen.
type Alike<'a> = (Ledger, Shard, &'a TenantId, &'a str, &'a str, Version);

/// The steps of an intent that may be taken together with those of others: its next ones, up to where its provider is
/// asked.
#[derive(Clone, Debug)]
pub(super) struct Stretch<'i> {
    pub intent: &'i PlannedIntent,
    pub steps: Range<usize>,
}

impl<'i> Stretch<'i> {
    /// The next moves of an intent that is begun without a hitch; none where its provider is asked next, or all is done.
    fn of(intent: &'i PlannedIntent, begun: &Begun) -> Option<Self> {
        let from = begun.leading(intent)?;
        let moves = intent.steps[from..].iter().take_while(|step| !asks_provider(step)).count();
        (moves > 0).then_some(Self { intent, steps: from..from + moves })
    }

    pub(super) fn steps(&self) -> &'i [Step] {
        &self.intent.steps[self.steps.clone()]
    }
}

/// A stretch whose intent's rows are as the plan saw them.
struct Ready<'i> {
    stretch: Stretch<'i>,
    /// What is recorded of the intent.
    records: Vec<StepRecord>,
    shards: Shards,
    /// The request that leaves with the first leg that the stretch ends with.
    leaving: Option<Request>,
}

/// Stretches whose intents' rows were looked at together.
pub(super) struct Looked<'i> {
    ready: Vec<Ready<'i>>,
    /// When their rows were asked for.
    asked_at: Instant,
}

/// What was done of many intents at once.
#[derive(Default)]
pub(super) struct Together {
    /// Whose moves were made, and where their rows lie.
    pub intents: HashMap<String, Shards>,
    pub records: Vec<StepRecord>,
}

impl Executor<'_> {
    /// The next moves of those of some intents that may be carried out at once: their rows are moved by our own SQL.
    pub(super) fn at_once<'i>(
        &self,
        intents: impl Iterator<Item = &'i PlannedIntent>,
        begun: &Begun,
    ) -> Vec<Stretch<'i>> {
        let may_move = |step: &Step| {
            !self.commands.moves.contains_key(&step.ledger)
                && self.store.moves_together(step.ledger, &step.to)
        };
        intents
            .filter_map(|intent| Stretch::of(intent, begun))
            .filter(|stretch| stretch.steps().iter().all(may_move))
            .collect()
    }

    /// Makes moves that may be made at once; what was done, nothing where it was left to be done intent by intent. They
    /// may have been looked at before.
    ///
    /// # Errors
    /// Refused, where the freeze is lost or a newer plan has taken this one's place: then nothing was done.
    pub(super) async fn run_many<'i>(
        &self,
        run: &Run<'_>,
        stretches: &[Stretch<'i>],
        mut before: Option<Looked<'i>>,
    ) -> Result<Together> {
        for _ in 0..READS {
            let looked = match before.take() {
                Some(looked) => looked,
                None => self.look_at(run, stretches).await?,
            };
            let (mut is_old, mut is_left) = (false, false);
            let _turn = run.turn.lock().await;
            let Some(first) = looked.ready.first() else { break };
            let moved = self
                .store
                .journal()
                .attempt(
                    async |tx| {
                        self.fence(tx, Place { plan: run.plan, intent: first.stretch.intent, position: 0 })
                            .await
                    },
                    async |tx| {
                        is_old = looked.asked_at.elapsed() > OLD;
                        if !is_old && let Ok(Some(records)) = self.move_many(tx, run, &looked.ready).await {
                            return Ok(records);
                        }
                        is_left = true;
                        Err(Error::refused("left to be done intent by intent"))
                    },
                )
                .await;
            match moved {
                Ok(records) => {
                    let shards = |ready: Ready<'_>| (ready.stretch.intent.intent_id.clone(), ready.shards);
                    return Ok(Together { intents: looked.ready.into_iter().map(shards).collect(), records });
                }
                Err(_) if is_old => {}
                Err(error) if is_left || error.is_clash() => break,
                Err(error) => return Err(error),
            }
        }
        Ok(Together::default())
    }

    /// Looks at which of some stretches may be gone.
    pub(super) async fn look_at<'i>(&self, run: &Run<'_>, stretches: &[Stretch<'i>]) -> Result<Looked<'i>> {
        let asked_at = Instant::now();
        Ok(Looked { ready: self.ready(run, stretches).await?, asked_at })
    }

    /// Reads the rows of some intents anew and holds them against the plan, our own moves undone (contract, section 5):
    /// the rows, and the ids of the intents whose rows are as the plan saw them.
    pub(super) async fn as_planned(
        &self,
        run: &Run<'_>,
        intents: &[&PlannedIntent],
    ) -> Result<(Ledgers, HashSet<String>)> {
        let rows = self.store.read_intents(intents.iter().copied()).await?;
        self.learn_of(&run.plan.plan_id, intents, &rows, &run.begun).await?;
        Ok(self.compared(run, intents, rows))
    }

    /// As [`Executor::as_planned`], of rows that were read.
    fn compared(
        &self,
        run: &Run<'_>,
        intents: &[&PlannedIntent],
        mut rows: Ledgers,
    ) -> (Ledgers, HashSet<String>) {
        let own = run.begun.borrow().moves_on(&rows);
        undo(&mut rows, &own);
        let joined = Joined::new(&rows, &run.plan.policy, run.plan.as_of);
        let recheck = Recheck::new(&joined);
        let (Plan { policy, as_of, .. }, evidence) = (run.plan, run.evidence);
        let is_as_planned =
            |intent: &&&PlannedIntent| recheck.compare(intent, policy, *as_of, evidence).is_ok();
        let as_planned = intents.par_iter().filter(is_as_planned).map(|i| i.intent_id.clone()).collect();
        (rows, as_planned)
    }

    /// Those of some stretches whose intents' rows are as the plan saw them and lie beside the journal, and whose providers
    /// do not keep us waiting.
    async fn ready<'i>(&self, run: &Run<'_>, stretches: &[Stretch<'i>]) -> Result<Vec<Ready<'i>>> {
        let intents: Vec<_> = stretches.iter().map(|stretch| stretch.intent).collect();
        let (rows, as_planned) = self.as_planned(run, &intents).await?;
        let shards: HashMap<(Ledger, &TenantId, RowId), Shard> = each_row(&rows)
            .map(|At { ledger, tenant_id, id, shard, .. }| ((ledger, tenant_id, id), shard))
            .collect();
        let payments: HashMap<(&TenantId, RowId), &Payment> =
            rows.payments.iter().map(|p| ((&p.tenant_id, RowId::from(&p.payment_id)), p)).collect();
        let begun = self.begun_on_payments(stretches).await?;
        let mut ready = Vec::new();
        let mut charges = HashSet::new();
        'stretches: for stretch in stretches {
            let Stretch { intent, steps } = stretch.clone();
            if !as_planned.contains(&intent.intent_id) {
                continue;
            }
            let mut asked = Vec::new();
            for (position, step) in intent.steps.iter().enumerate().filter(|(_, step)| is_money(step)) {
                let Some(payment) = payments.get(&(&intent.tenant_id, step.id.clone())) else {
                    continue 'stretches;
                };
                match self.providers.of(&payment.provider) {
                    Ok(provider) if provider.is_immediate() => asked.push((position, payment)),
                    _ => continue 'stretches,
                }
            }
            let mut leaving = None;
            for (position, payment) in asked.into_iter().filter(|(position, _)| steps.contains(position)) {
                // Of two rows of one charge the second is held against what the first has become.
                let charge = payment.provider_txn_id.as_ref();
                let charge = charge.map(|charge| (&payment.tenant_id, &payment.provider, charge));
                let is_taken = charge.is_some_and(|charge| !charges.insert(charge));
                let at = Place { plan: run.plan, intent, position };
                let is_open = begun.iter().any(|record| {
                    (&record.tenant_id, &record.step.id) == (&intent.tenant_id, &at.step().id)
                        && is_another_open(record, at.step())
                });
                match self.leaving(at, &rows.payments) {
                    Ok(Ok(request)) if !is_taken && !is_open => leaving = request,
                    _ => continue 'stretches,
                }
            }
            let shard = |step: &Step| {
                let shard = shards.get(&(step.ledger, &intent.tenant_id, step.id.clone())).copied()?;
                let is_beside = self.store.is_beside_journal(step.ledger, shard);
                is_beside.then(|| ((step.ledger, step.id.clone()), shard))
            };
            let Some(shards) = intent.steps.iter().map(shard).collect() else { continue };
            let records = run.begun.borrow().records(intent).to_vec();
            ready.push(Ready { stretch: Stretch { intent, steps }, records, shards, leaving });
        }
        Ok(ready)
    }

    /// What is recorded of the payments that some stretches move.
    async fn begun_on_payments(&self, stretches: &[Stretch<'_>]) -> Result<Vec<StepRecord>> {
        let mut of_tenant: BTreeMap<&TenantId, Vec<&RowId>> = BTreeMap::new();
        for stretch in stretches {
            let ids = stretch.steps().iter().filter(|step| is_money(step)).map(|step| &step.id);
            of_tenant.entry(&stretch.intent.tenant_id).or_default().extend(ids);
        }
        let mut begun = Vec::new();
        for (tenant_id, ids) in of_tenant {
            begun.extend(self.store.steps_of_payments(tenant_id, &ids).await?);
        }
        Ok(begun)
    }

    /// Whether all rows of these intents are still as the plan saw them, now that those that move are held, and their
    /// requests may leave as they were made. Whoever held one of them meanwhile may have kept us waiting.
    async fn may_leave(&self, run: &Run<'_>, leaving: &[(&Ready<'_>, &Request)]) -> Result<bool> {
        let intents: Vec<_> = leaving.iter().map(|(ready, _)| ready.stretch.intent).collect();
        // By sessions of their own: what we have moved is to them as it was, until we commit.
        let rows = self.store.read_intents(intents.iter().copied()).await?;
        // As they stand: what we have moved of another row of the charge forbids it, too.
        let payments = rows.payments.clone();
        let (_, as_planned) = self.compared(run, &intents, rows);
        Ok(leaving.iter().all(|(ready, request)| {
            let at =
                Place { plan: run.plan, intent: ready.stretch.intent, position: ready.stretch.steps.end - 1 };
            as_planned.contains(&at.intent.intent_id)
                && matches!(self.leaving(at, &payments), Ok(Ok(Some(now))) if now == **request)
        }))
    }

    /// Moves the rows, and writes the steps and the journal's entries about them: first what is the first move of its row,
    /// then what is the second one. `None` where something was not as seen: nothing may be committed.
    async fn move_many(
        &self,
        tx: &mut Transaction,
        run: &Run<'_>,
        ready: &[Ready<'_>],
    ) -> Result<Option<Vec<StepRecord>>> {
        let plan = run.plan;
        // By intent, in the order of its steps.
        let mut records: Vec<BTreeMap<usize, StepRecord>> = ready.iter().map(|_| BTreeMap::new()).collect();
        let mut waiting: Vec<(usize, usize)> = Vec::new();
        for (at, of) in ready.iter().enumerate() {
            waiting.extend(of.stretch.steps.clone().map(|position| (at, position)));
        }
        while !waiting.is_empty() {
            let mut taken = HashSet::new();
            let (now, later): (Vec<_>, Vec<_>) = waiting.into_iter().partition(|(at, position)| {
                let step = &ready[*at].stretch.intent.steps[*position];
                taken.insert((*at, step.ledger, &step.id))
            });
            waiting = later;
            let mut alike: BTreeMap<Alike<'_>, Vec<(usize, usize)>> = BTreeMap::new();
            for (at, position) in now {
                let Ready { stretch: Stretch { intent, .. }, records: before, shards, .. } = &ready[at];
                let place = Place { plan, intent, position };
                let Some(version) = version_of(place, before.iter().chain(records[at].values())) else {
                    return Ok(None);
                };
                let step = place.step();
                let shard = shards[&(step.ledger, step.id.clone())];
                let common = (step.ledger, shard, &intent.tenant_id, &*step.from, &*step.to, version);
                alike.entry(common).or_default().push((at, position));
            }
            for ((ledger, shard, tenant_id, from, to, version), mut together) in alike {
                let id = |&(at, position): &(usize, usize)| &ready[at].stretch.intent.steps[position].id;
                // Two who move the same rows meet at the first of them.
                together.sort_by(|a, b| id(a).cmp(id(b)));
                for together in together.chunks(BATCH) {
                    let row_ids: Vec<&RowId> = together.iter().map(id).collect();
                    let asked = Move {
                        ledger,
                        tenant_id,
                        id: row_ids[0],
                        from,
                        to,
                        version: &version,
                        refund_minor: 0,
                        amount: None,
                        captured_at: None,
                        step_key: "",
                        actor: &self.worker.actor,
                        now: (self.clock)(),
                    };
                    let Some(moved) = self.store.move_rows(tx, shard, &asked, &row_ids).await? else {
                        return Ok(None);
                    };
                    for (&(at, position), row) in together.iter().zip(moved) {
                        let place = Place { plan, intent: ready[at].stretch.intent, position };
                        let claimed = self.wanted(place, Some(version.clone()), false);
                        let (record, _) = after_move(claimed, Moved::Now(row));
                        records[at].insert(position, record);
                    }
                }
            }
        }
        let leaving: Vec<_> =
            ready.iter().filter_map(|ready| Some((ready, ready.leaving.as_ref()?))).collect();
        if !leaving.is_empty() && !self.may_leave(run, &leaving).await? {
            return Ok(None);
        }
        let mut requests = Vec::new();
        for (Ready { stretch, leaving, .. }, records) in ready.iter().zip(&mut records) {
            let Some(request) = leaving else { continue };
            let second = Place { plan, intent: stretch.intent, position: stretch.steps.end };
            let Some(version) = version_of(second, records.values()) else { return Ok(None) };
            records.insert(second.position, self.left(second, version, request)?);
            requests.push(outbox::row(request));
        }
        let requests: Vec<_> = requests.iter().collect();
        if !self.store.outbox_add_all_on(tx, &requests, (self.clock)()).await? {
            return Ok(None);
        }
        let records: Vec<StepRecord> = records.into_iter().flat_map(BTreeMap::into_values).collect();
        if !self.store.insert_steps(tx, &records).await? {
            return Ok(None);
        }
        let event = |record: &StepRecord| match record.state {
            StepState::Accepted => Event::Accepted,
            _ => Event::Moved,
        };
        let entries: Vec<_> =
            records.iter().map(|record| entry(&self.worker.actor, record, event(record))).collect();
        self.store.append_all_on(tx, &entries).await?;
        Ok(Some(records))
    }
}
