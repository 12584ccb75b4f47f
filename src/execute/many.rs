//! Many intents at once that move no money, in one transaction and by one statement for all rows that move alike.
//!
//! A short cut and no more: it is taken where nothing stands in its way, and else undone as a whole, down to a single
//! row that is not as its plan saw it. Then [`Executor::apply`] goes intent by intent, and tells what is the matter. One
//! with a refund always does: what waits for the provider is not begun long before its turn.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};

use super::Executor;
use super::apply::{Begun, ids};
use super::money::is_money;
use super::moves::{Place, after_move, entry, version_of};
use crate::core::evidence::Evidence;
use crate::core::ids::*;
use crate::core::join::Joined;
use crate::core::ledger::Shard;
use crate::core::plan::{Plan, PlannedIntent, Step};
use crate::core::recheck::{Recheck, undo};
use crate::core::status::Ledger;
use crate::error::{Error, Result};
use crate::store::Transaction;
use crate::store::journal::Event;
use crate::store::moves::{Move, Moved};
use crate::store::steps::StepRecord;

/// How many intents are carried out at once: half of what goes into one list of a statement, since most have an order or
/// two to move.
pub(super) const PORTION: usize = 250;

/// What is common to rows that one statement moves: ledger, shard, tenant, from, to, and the version as seen.
type Alike<'a> = (Ledger, Shard, &'a TenantId, &'a str, &'a str, Version);

/// An intent whose rows are as its plan saw them, and in which shards those of its steps lie.
struct Ready<'a> {
    intent: &'a PlannedIntent,
    shards: Vec<Shard>,
}

impl Executor<'_> {
    /// Those of some intents that may be carried out at once: nothing of them has been begun, they move no money, and
    /// their rows are moved by our own SQL.
    pub(super) fn at_once<'i>(
        &self,
        intents: impl Iterator<Item = &'i PlannedIntent>,
        begun: &Begun,
    ) -> Vec<&'i PlannedIntent> {
        let may_move = |step: &Step| {
            !is_money(step)
                && !self.commands.moves.contains_key(&step.ledger)
                && self.store.moves_together(step.ledger, &step.to)
        };
        let may_be = |intent: &&PlannedIntent| {
            !intent.steps.is_empty() && begun.records(intent).is_empty() && intent.steps.iter().all(may_move)
        };
        intents.filter(may_be).collect()
    }

    /// Carries out intents that may be carried out at once; the records of what was done, none where it was left to be
    /// done intent by intent.
    ///
    /// # Errors
    /// Refused, where the freeze is lost or a newer plan has taken this one's place: then nothing was done.
    pub(super) async fn run_many(
        &self,
        plan: &Plan,
        intents: &[&PlannedIntent],
        evidence: &Evidence,
        begun: &RefCell<Begun>,
    ) -> Result<Vec<StepRecord>> {
        let ready = self.as_planned(plan, intents, evidence, begun).await?;
        let mut is_as_seen = true;
        let moved = self
            .store
            .journal()
            .transaction(async |tx| match self.move_many(tx, plan, &ready).await? {
                Some(records) => Ok(records),
                None => {
                    is_as_seen = false;
                    Err(Error::refused("a row is not as its plan saw it"))
                }
            })
            .await;
        match moved {
            Err(error) if !is_as_seen || error.is_clash() => Ok(Vec::new()),
            moved => moved,
        }
    }

    /// Those of some intents whose rows are as the plan saw them and lie beside the journal.
    async fn as_planned<'i>(
        &self,
        plan: &Plan,
        intents: &[&'i PlannedIntent],
        evidence: &Evidence,
        begun: &RefCell<Begun>,
    ) -> Result<Vec<Ready<'i>>> {
        let mut rows = self.store.read_intents(intents.iter().copied()).await?;
        let own = begun.borrow().moves_on(&rows);
        undo(&mut rows, &own);
        let shards: HashMap<(Ledger, &TenantId, RowId), Shard> =
            ids(&rows).map(|(ledger, tenant_id, id, shard)| ((ledger, tenant_id, id), shard)).collect();
        let joined = Joined::new(&rows, &plan.policy, plan.as_of);
        let recheck = Recheck::new(&joined);
        let ready = |intent: &&'i PlannedIntent| {
            recheck.compare(intent, &plan.policy, plan.as_of, evidence).ok()?;
            let shard = |step: &Step| {
                let shard = shards.get(&(step.ledger, &intent.tenant_id, step.id.clone())).copied()?;
                Some(shard).filter(|shard| self.store.is_beside_journal(step.ledger, *shard))
            };
            let shards = intent.steps.iter().map(shard).collect::<Option<_>>()?;
            Some(Ready { intent, shards })
        };
        Ok(intents.iter().filter_map(ready).collect())
    }

    /// Moves the rows, and writes the steps and the journal's entries about them: first every intent's first step,
    /// then every intent's second, and so on. `None` where something was not as seen: nothing may be committed.
    async fn move_many(
        &self,
        tx: &mut Transaction,
        plan: &Plan,
        ready: &[Ready<'_>],
    ) -> Result<Option<Vec<StepRecord>>> {
        let Some(first) = ready.first() else { return Ok(Some(Vec::new())) };
        self.fence(tx, Place { plan, intent: first.intent, position: 0 }).await?;
        let mut records: Vec<Vec<StepRecord>> = ready.iter().map(|_| Vec::new()).collect();
        let most = ready.iter().map(|ready| ready.shards.len()).max().unwrap_or_default();
        for position in 0..most {
            let mut alike: BTreeMap<Alike<'_>, Vec<usize>> = BTreeMap::new();
            for (at, Ready { intent, shards }) in ready.iter().enumerate() {
                let Some(shard) = shards.get(position) else { continue };
                let place = Place { plan, intent, position };
                let Some(version) = version_of(place, &records[at]) else { return Ok(None) };
                let step = place.step();
                let common = (step.ledger, *shard, &intent.tenant_id, &*step.from, &*step.to, version);
                alike.entry(common).or_default().push(at);
            }
            for ((ledger, shard, tenant_id, from, to, version), mut together) in alike {
                let step = |at: usize| &ready[at].intent.steps[position];
                // Two who move the same rows meet at the first of them.
                together.sort_by(|a, b| step(*a).id.cmp(&step(*b).id));
                let row_ids: Vec<&RowId> = together.iter().map(|at| &step(*at).id).collect();
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
                for (at, row) in together.into_iter().zip(moved) {
                    let place = Place { plan, intent: ready[at].intent, position };
                    let claimed = self.wanted(place, Some(version.clone()), false);
                    let (record, _) = after_move(claimed, Moved::Now(row));
                    records[at].push(record);
                }
            }
        }
        let records: Vec<StepRecord> = records.into_iter().flatten().collect();
        if !self.store.insert_steps(tx, &records).await? {
            return Ok(None);
        }
        let entries: Vec<_> =
            records.iter().map(|record| entry(&self.worker.actor, record, Event::Moved)).collect();
        self.store.append_all_on(tx, &entries).await?;
        Ok(Some(records))
    }
}
