//! The moves of many intents at once, in one transaction and by one statement for all rows that move alike.
//!
//! A short cut and no more: it is taken where nothing stands in its way, and else undone as a whole, down to a single
//! row that is not as its plan saw it. Then [`Executor::apply`] goes intent by intent, and tells what is the matter.
//! No request leaves so: an intent's moves are made with others' up to where its provider is asked, and from there on. One
//! whose provider keeps us waiting is carried out by itself from its first step: it is not begun long before its turn.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use super::Executor;
use super::apply::{Begun, Run, Shards, ids};
use super::money::{asks_provider, is_money};
use super::moves::{Place, after_move, entry, version_of};
use crate::core::ids::*;
use crate::core::join::Joined;
use crate::core::ledger::{Ledgers, Payment, Shard};
use crate::core::plan::{Plan, PlannedIntent, Step};
use crate::core::recheck::{Recheck, undo};
use crate::core::status::Ledger;
use crate::error::{Error, Result};
use crate::store::journal::Event;
use crate::store::moves::{Move, Moved};
use crate::store::outbox::OutboxRequest;
use crate::store::steps::StepRecord;
use crate::store::{BATCH, Transaction};

/// How many intents are carried out at once: half of what goes into one list of a statement, since most have an order or
/// two to move.
pub(super) const PORTION: usize = 250;

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
    /// Requests that leave in the transaction of their first leg, by its position.
    leaving: BTreeMap<usize, OutboxRequest>,
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

    /// Makes moves that may be made at once; what was done, nothing where it was left to be done intent by intent.
    ///
    /// # Errors
    /// Refused, where the freeze is lost or a newer plan has taken this one's place: then nothing was done.
    pub(super) async fn run_many(&self, run: &Run<'_>, stretches: Vec<Stretch<'_>>) -> Result<Together> {
        let ready = self.ready(run, stretches).await?;
        let mut is_as_seen = true;
        let moved = self
            .store
            .journal()
            .transaction(async |tx| match self.move_many(tx, run.plan, &ready).await? {
                Some(records) => Ok(records),
                None => {
                    is_as_seen = false;
                    Err(Error::refused("a row is not as its plan saw it"))
                }
            })
            .await;
        match moved {
            Ok(records) => {
                let intents = ready.into_iter().map(|r| (r.stretch.intent.intent_id.clone(), r.shards));
                let intents = intents.collect();
                Ok(Together { intents, records })
            }
            Err(error) if !is_as_seen || error.is_clash() => Ok(Together::default()),
            Err(error) => Err(error),
        }
    }

    /// Reads the rows of some intents anew and holds them against the plan, our own moves undone (contract, section 5):
    /// the rows, and the ids of the intents whose rows are as the plan saw them.
    pub(super) async fn as_planned(
        &self,
        run: &Run<'_>,
        intents: &[&PlannedIntent],
    ) -> Result<(Ledgers, HashSet<String>)> {
        let mut rows = self.store.read_intents(intents.iter().copied()).await?;
        let own = run.begun.borrow().moves_on(&rows);
        undo(&mut rows, &own);
        let joined = Joined::new(&rows, &run.plan.policy, run.plan.as_of);
        let recheck = Recheck::new(&joined);
        let is_as_planned = |intent: &&&PlannedIntent| {
            recheck.compare(intent, &run.plan.policy, run.plan.as_of, run.evidence).is_ok()
        };
        let as_planned = intents.iter().filter(is_as_planned).map(|i| i.intent_id.clone()).collect();
        Ok((rows, as_planned))
    }

    /// Those of some stretches whose intents' rows are as the plan saw them and lie beside the journal, and of whose
    /// charges something may be asked now, of a provider that does not keep us waiting.
    async fn ready<'i>(&self, run: &Run<'_>, stretches: Vec<Stretch<'i>>) -> Result<Vec<Ready<'i>>> {
        let intents: Vec<_> = stretches.iter().map(|stretch| stretch.intent).collect();
        let (rows, as_planned) = self.as_planned(run, &intents).await?;
        let shards: HashMap<(Ledger, &TenantId, RowId), Shard> =
            ids(&rows).map(|(ledger, tenant_id, id, shard)| ((ledger, tenant_id, id), shard)).collect();
        let mut waits = HashSet::new();
        for payment in &rows.payments {
            if !self.providers.of(&payment.provider).is_ok_and(|provider| provider.is_immediate()) {
                waits.insert((&payment.tenant_id, RowId::from(&payment.payment_id)));
            }
        }
        let mut ready = Vec::new();
        let mut charges = HashSet::new();
        'stretches: for stretch in stretches {
            let Stretch { intent, steps } = &stretch;
            let mut money = intent.steps.iter().filter(|step| is_money(step));
            if !as_planned.contains(&intent.intent_id)
                || money.any(|step| waits.contains(&(&intent.tenant_id, step.id.clone())))
            {
                continue;
            }
            let shard = |step: &Step| {
                let shard = shards.get(&(step.ledger, &intent.tenant_id, step.id.clone())).copied()?;
                let is_beside = self.store.is_beside_journal(step.ledger, shard);
                is_beside.then(|| ((step.ledger, step.id.clone()), shard))
            };
            let Some(shards) = intent.steps.iter().map(shard).collect() else { continue };
            let mut leaving = BTreeMap::new();
            for position in steps.clone().filter(|position| is_money(&intent.steps[*position])) {
                let at = Place { plan: run.plan, intent, position };
                if self.open_request(at).await?.is_some() {
                    continue 'stretches;
                }
                // Of two rows of one charge the second is held against what the first has become.
                let is_charge = |p: &&Payment| {
                    RowId::from(&p.payment_id) == at.step().id && p.tenant_id == intent.tenant_id
                };
                let charge = rows.payments.iter().find(is_charge);
                let charge = charge.map(|p| (&p.tenant_id, &p.provider, p.provider_txn_id.as_ref()));
                if charge.is_none_or(|charge| charge.2.is_some() && !charges.insert(charge)) {
                    continue 'stretches;
                }
                match self.leaving(at, &rows)? {
                    Ok(request) => leaving.extend(request.map(|request| (position, request))),
                    Err(_) => continue 'stretches,
                }
            }
            let records = run.begun.borrow().records(intent).to_vec();
            ready.push(Ready { stretch, records, shards, leaving });
        }
        Ok(ready)
    }

    /// Moves the rows, and writes the steps and the journal's entries about them: first what is the first move of its row,
    /// then what is the second one. `None` where something was not as seen: nothing may be committed.
    async fn move_many(
        &self,
        tx: &mut Transaction,
        plan: &Plan,
        ready: &[Ready<'_>],
    ) -> Result<Option<Vec<StepRecord>>> {
        let Some(first) = ready.first() else { return Ok(Some(Vec::new())) };
        self.fence(tx, Place { plan, intent: first.stretch.intent, position: 0 }).await?;
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
                        if let Some(leaving) = ready[at].leaving.get(&position) {
                            self.store.outbox_add_on(tx, shard, leaving, record.updated_at).await?;
                        }
                        records[at].insert(position, record);
                    }
                }
            }
        }
        let records: Vec<StepRecord> = records.into_iter().flat_map(BTreeMap::into_values).collect();
        if !self.store.insert_steps(tx, &records).await? {
            return Ok(None);
        }
        let entries: Vec<_> =
            records.iter().map(|record| entry(&self.worker.actor, record, Event::Moved)).collect();
        self.store.append_all_on(tx, &entries).await?;
        Ok(Some(records))
    }
}
