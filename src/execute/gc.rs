//! Moves the records of idempotency keys down the tiers, batch by batch: each batch is a transaction, and each
//! record in it moves only as it was seen. Broken off at any moment, run twice or on two machines at once, a
//! record is in one tier, or its fingerprint in the archive, and what is named by an open plan or an unfinished
//! step stays where it is.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::core::idempotency::{KeyState, Named, Retention};
use crate::core::ids::{IdempotencyKey, TenantId};
use crate::core::plan::Plan;
use crate::core::retention::{Ties, Verdict, Why};
use crate::error::{Error, Result};
use crate::store::Store;
use crate::store::idempotency::Holder;
use crate::store::retention::{AgedKey, MoveEnd, OpenWork, SetPolicy};

/// Where it is done, by whom, and how.
pub struct Gc<'a> {
    /// One of those of [`Store::of_each_keys`]: its keys are moved, by the policy and past the plans of its journal.
    pub store: &'a Store,
    pub holder: &'a Holder,
    /// How many records a transaction moves at most.
    pub batch: u32,
    /// Counts, and changes nothing.
    pub dry_run: bool,
}

/// What was moved, or would be, and what was not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Records by the tier they were in and the one they are in now.
    pub moved: BTreeMap<(Retention, Retention), u64>,
    /// Records past their tier's window that stay all the same, by why.
    pub kept: BTreeMap<Why, u64>,
    /// Keys that were held past their lease and are UNKNOWN now.
    pub fenced_off: u64,
}

impl Swept {
    /// Adds what was done elsewhere.
    pub fn add(&mut self, other: &Self) {
        for (tiers, keys) in &other.moved {
            *self.moved.entry(*tiers).or_default() += keys;
        }
        for (why, keys) in &other.kept {
            *self.kept.entry(*why).or_default() += keys;
        }
        self.fenced_off += other.fenced_off;
    }

    pub fn moves(&self) -> u64 {
        self.moved.values().sum()
    }

    pub fn stays(&self) -> u64 {
        self.kept.values().sum()
    }
}

/// What open plans and unfinished steps name; the plans' bodies are read once.
#[derive(Default)]
struct Tied {
    plans: HashMap<String, Plan>,
    ties: Ties,
    /// What `ties` is made of.
    open: OpenWork,
}

impl Gc<'_> {
    /// # Errors
    /// Usage, where no policy is set; failure, where the database does not answer: what was moved stays moved.
    pub async fn run(&self, mut tell: impl FnMut(&Swept)) -> Result<Swept> {
        let mut swept = Swept::default();
        let mut policy = self.policy().await?;
        let mut tied = Tied::default();
        self.fence_off(&mut swept).await?;
        // From the lowest tier up, so that no record is judged twice.
        for tier in [Retention::Dispute, Retention::Replay, Retention::Hot] {
            let mut after: Option<AgedKey> = None;
            loop {
                let window = policy.policy.window(tier);
                let aged = self.store.aged_keys(tier, window, after.as_ref(), i64::from(self.batch)).await?;
                if aged.is_empty() {
                    break;
                }
                match self.sweep(&policy, &mut tied, &aged, &mut swept).await? {
                    true => after = aged.into_iter().next_back(),
                    // Another policy is set, or another plan: these are judged anew.
                    false => policy = self.policy().await?,
                }
                tell(&swept);
            }
        }
        Ok(swept)
    }

    async fn policy(&self) -> Result<SetPolicy> {
        self.store.retention().await?.ok_or_else(|| {
            Error::usage("nobody has said for how long what is kept").hint(
                "onefold guard retention --client-retry 2m --queue 24h --replay 7d --dispute 180d --archive 3y",
            )
        })
    }

    /// Keys that nobody holds any more while their effect may have begun are UNKNOWN: they wait for a query or a
    /// person, and never go down the tiers. Those whose effect has not begun are left to be taken over.
    async fn fence_off(&self, swept: &mut Swept) -> Result<()> {
        if self.dry_run {
            let all = self.store.lapsed_keys(i64::from(i32::MAX)).await?;
            swept.fenced_off = all.len() as u64;
            return Ok(());
        }
        loop {
            let lapsed = self.store.lapsed_keys(i64::from(self.batch)).await?;
            if lapsed.is_empty() {
                return Ok(());
            }
            for record in lapsed {
                let why = format!("the lease of {} ran out while it ran", record.owner);
                let taken =
                    self.store.take_key_again(self.holder, &record, KeyState::Unknown, Some(&why)).await?;
                // Who was faster has it: it is held anew, or UNKNOWN.
                swept.fenced_off += u64::from(taken.is_some());
            }
        }
    }

    /// Judges and moves one batch; false where another policy is set by now or a plan was saved, and nothing was moved.
    async fn sweep(
        &self,
        policy: &SetPolicy,
        tied: &mut Tied,
        aged: &[AgedKey],
        swept: &mut Swept,
    ) -> Result<bool> {
        tied.refresh(self.store).await?;
        let names = self.names(aged).await?;
        let (mut moves, mut kept) = (Vec::new(), Vec::new());
        for key in aged {
            let names = names.get(&(key.tenant_id.clone(), key.key.clone())).map_or(&[][..], Vec::as_slice);
            let tie = tied.ties.of(&key.tenant_id, &key.key, names);
            match policy.policy.judge(&key.aging, tie, key.now) {
                Verdict::Stays(why) => kept.push(why),
                Verdict::Moves(to) => moves.push((key.clone(), to)),
            }
        }
        let ends = if self.dry_run || moves.is_empty() {
            vec![MoveEnd::Moved; moves.len()]
        } else {
            match self.store.move_keys(self.holder, policy, &tied.open, &moves).await? {
                Some(ends) => ends,
                None => return Ok(false),
            }
        };
        for ((key, to), end) in moves.iter().zip(ends) {
            match end {
                MoveEnd::Moved => *swept.moved.entry((key.aging.retention, *to)).or_default() += 1,
                MoveEnd::Meanwhile => kept.push(Why::Meanwhile),
                MoveEnd::ArchivedBefore => kept.push(Why::ArchivedBefore),
            }
        }
        for why in kept {
            *swept.kept.entry(why).or_default() += 1;
        }
        Ok(true)
    }

    async fn names(&self, aged: &[AgedKey]) -> Result<HashMap<(TenantId, IdempotencyKey), Vec<Named>>> {
        let mut names: HashMap<_, Vec<Named>> = HashMap::new();
        let tenants: BTreeSet<_> = aged.iter().map(|key| &key.tenant_id).collect();
        for tenant_id in tenants {
            let keys: Vec<_> = aged.iter().filter(|k| k.tenant_id == *tenant_id).map(|k| &k.key).collect();
            for (key, name) in self.store.names(tenant_id, &keys).await? {
                names.entry((tenant_id.clone(), key)).or_default().push(name);
            }
        }
        Ok(names)
    }
}

impl Tied {
    /// Reads anew what is open, and the plans that were not read before.
    async fn refresh(&mut self, store: &Store) -> Result<()> {
        let open = store.open_work().await?;
        if self.open == open {
            return Ok(());
        }
        let of_steps = open.unfinished.iter().map(|row| &row.plan_id);
        for plan_id in open.plans.iter().chain(of_steps) {
            if !self.plans.contains_key(plan_id) {
                let plan = store.plan_by_id(plan_id).await?.plan;
                self.plans.insert(plan_id.clone(), plan);
            }
        }
        let mut ties = Ties::default();
        for intent in open.plans.iter().filter_map(|id| self.plans.get(id)).flat_map(|plan| &plan.intents) {
            ties.tie_intent(intent, Why::OpenPlan);
        }
        for row in &open.unfinished {
            ties.tie_row(&row.tenant_id, row.ledger, row.row_id.clone(), Why::UnfinishedStep);
            let intents = self.plans.get(&row.plan_id).map_or(&[][..], |plan| &plan.intents);
            for intent in intents.iter().filter(|intent| intent.intent_id == row.intent_id) {
                ties.tie_intent(intent, Why::UnfinishedStep);
            }
        }
        (self.ties, self.open) = (ties, open);
        Ok(())
    }
}
