//! What has been begun of a plan, as far as some of its intents and the rows around them are concerned: of all of a
//! large plan it would take much room.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};

use super::money::open_end;
use super::{Executor, IntentEnd};
use crate::core::ids::*;
use crate::core::ledger::{Ledgers, Shard};
use crate::core::plan::{PlannedIntent, Step};
use crate::core::recheck::OwnMove;
use crate::core::status::Ledger;
use crate::error::Result;
use crate::store::steps::{StepRecord, own_move};

/// A row of a ledger.
type Row = (Ledger, TenantId, RowId);

/// What was moved, by row, in the order of time.
type Moves = HashMap<Row, Vec<OwnMove>>;

fn add_move(moves: &mut Moves, own: OwnMove) {
    let row = (own.ledger, own.tenant_id.clone(), own.id.clone());
    moves.entry(row).or_default().push(own);
}

/// Steps that are begun or ended, by intent and by row.
#[derive(Default)]
pub(super) struct Begun {
    of_intent: HashMap<String, Vec<StepRecord>>,
    on_row: Moves,
}

impl Begun {
    pub(super) fn of(records: Vec<StepRecord>) -> Self {
        let mut begun = Self::default();
        for record in records {
            begun.add_moves(&record);
            begun.of_intent.entry(record.intent_id.clone()).or_default().push(record);
        }
        begun
    }

    pub(super) fn is_empty(&self) -> bool {
        self.of_intent.is_empty()
    }

    /// Adds a record, in the place of what was known of its step.
    pub(super) fn add(&mut self, record: &StepRecord) {
        let records = self.of_intent.entry(record.intent_id.clone()).or_default();
        match records.iter_mut().find(|r| r.step_key == record.step_key) {
            Some(known) if known.state.is_done() => return,
            Some(known) => *known = record.clone(),
            None => records.push(record.clone()),
        }
        self.add_moves(record);
    }

    /// What another process has done is known from now on.
    pub(super) fn learn(&mut self, newer: Self) {
        self.of_intent.extend(newer.of_intent);
        self.on_row.extend(newer.on_row);
    }

    fn add_moves(&mut self, record: &StepRecord) {
        own_move(record).into_iter().for_each(|own| add_move(&mut self.on_row, own));
    }

    pub(super) fn records(&self, intent: &PlannedIntent) -> &[StepRecord] {
        self.of_intent.get(&intent.intent_id).map_or(&[], Vec::as_slice)
    }

    /// How many of an intent's first steps are done, where nothing else of it is begun.
    pub(super) fn leading(&self, intent: &PlannedIntent) -> Option<usize> {
        let records = self.records(intent);
        let is_done = |step: &&Step| records.iter().any(|r| r.step_key == step.step_key && r.state.is_done());
        let leading = intent.steps.iter().take_while(is_done).count();
        (leading == records.len()).then_some(leading)
    }

    /// How many of an intent's steps are done.
    pub(super) fn done(&self, intent: &PlannedIntent) -> usize {
        let records = self.records(intent);
        let is_done = |key: &str| records.iter().any(|r| r.step_key == key && r.state.is_done());
        intent.steps.iter().filter(|step| is_done(&step.step_key)).count()
    }

    /// How an intent ends that is not gone on with; `None` where nothing of it is done.
    pub(super) fn end(&self, intent: &PlannedIntent) -> Option<IntentEnd> {
        if let Some(open) = self.records(intent).iter().find_map(open_end) {
            return Some(open);
        }
        match self.done(intent) {
            0 => None,
            done if done == intent.steps.len() => Some(IntentEnd::Done),
            _ => Some(IntentEnd::BrokenOff),
        }
    }

    /// What we moved of these rows.
    pub(super) fn moves_on(&self, rows: &Ledgers) -> Vec<OwnMove> {
        each_row(rows).filter_map(|at| self.on_row.get(&at.row())).flatten().cloned().collect()
    }
}

impl Executor<'_> {
    /// What has been begun of these intents of a plan.
    pub(super) async fn begun_of<'i>(
        &self,
        plan_id: &str,
        intents: impl IntoIterator<Item = &'i PlannedIntent>,
    ) -> Result<Begun> {
        Ok(Begun::of(self.store.steps_of_intents(plan_id, intents).await?))
    }

    /// What has been begun of an intent, and what of its plan has moved these rows.
    pub(super) async fn begun_around(
        &self,
        plan_id: &str,
        intent: &PlannedIntent,
        rows: &Ledgers,
    ) -> Result<Begun> {
        let mut begun = self.begun_of(plan_id, [intent]).await?;
        let unknown =
            each_row(rows).map(|at| at.row()).filter(|row| !begun.on_row.contains_key(row)).collect();
        begun.on_row.extend(self.moves_of(plan_id, unknown).await?);
        Ok(begun)
    }

    /// Learns what of a plan has moved those rows that are not as these intents have seen them, and of which nothing is
    /// known: rows of intents that lie elsewhere in the plan, or that another process has moved.
    pub(super) async fn learn_of(
        &self,
        plan_id: &str,
        intents: &[&PlannedIntent],
        rows: &Ledgers,
        begun: &RefCell<Begun>,
    ) -> Result<()> {
        let seen: HashSet<(Ledger, &TenantId, &RowId, &Version)> = intents
            .iter()
            .flat_map(|i| i.seen.iter().map(|row| (row.ledger, &i.tenant_id, &row.id, &row.version)))
            .collect();
        let unknown: HashSet<Row> = {
            let begun = begun.borrow();
            each_row(rows)
                .filter(|at| !seen.contains(&(at.ledger, at.tenant_id, &at.id, at.version)))
                .map(|at| at.row())
                .filter(|row| !begun.on_row.contains_key(row))
                .collect()
        };
        let learned = self.moves_of(plan_id, unknown).await?;
        begun.borrow_mut().on_row.extend(learned);
        Ok(())
    }

    /// What of a plan has moved some rows.
    async fn moves_of(&self, plan_id: &str, rows: HashSet<Row>) -> Result<Moves> {
        let mut moves = Moves::new();
        let mut of_tenant: BTreeMap<&TenantId, Vec<&RowId>> = BTreeMap::new();
        for (_, tenant_id, id) in &rows {
            of_tenant.entry(tenant_id).or_default().push(id);
        }
        for (tenant_id, ids) in of_tenant {
            let steps = self.store.steps_of_rows(plan_id, tenant_id, &ids).await?;
            steps.iter().filter_map(own_move).for_each(|own| add_move(&mut moves, own));
        }
        // Rows of two ledgers may have the same id.
        moves.retain(|row, _| rows.contains(row));
        Ok(moves)
    }
}

/// A row of some ledgers, and where it lies.
pub(super) struct At<'r> {
    pub ledger: Ledger,
    pub tenant_id: &'r TenantId,
    pub id: RowId,
    pub version: &'r Version,
    pub shard: Shard,
}

impl At<'_> {
    fn row(&self) -> Row {
        (self.ledger, self.tenant_id.clone(), self.id.clone())
    }
}

/// Each row of some ledgers.
pub(super) fn each_row(rows: &Ledgers) -> impl Iterator<Item = At<'_>> {
    macro_rules! at {
        ($rows:ident, $ledger:ident, $id:ident) => {
            rows.$rows.iter().map(|row| At {
                ledger: Ledger::$ledger,
                tenant_id: &row.tenant_id,
                id: RowId::from(&row.$id),
                version: &row.version,
                shard: row.shard,
            })
        };
    }
    at!(orders, Orders, order_id)
        .chain(at!(payments, Payments, payment_id))
        .chain(at!(inventory, Inventory, hold_id))
        .chain(at!(messages, Messages, message_id))
}
