//! Reading for a plan of everything in two passes: the first looks at every cell, as [`super::read()`] does, but
//! keeps of each row only what tells whether its order is plain ([`crate::core::plain`]); the second
//! reads the few rows that are not, in full.
//!
//! Files are cut into pieces that are read side by side; those that the store writes of a database are read as they
//! come. What this cannot do, such as saying on which line a fault stands, it leaves to the other reader by giving
//! nothing.

mod attached;
mod layout;
mod orders;
mod source;
mod workers;

use std::fs::File;
use std::hash::BuildHasher as _;
use std::sync::{Mutex, PoisonError};

use foldhash::fast::RandomState;
use foldhash::{HashMap, HashSet};

use super::LedgerFiles;
use super::faults::Note;
use super::options::ReadOptions;
use crate::core::ledger::Ledgers;
use crate::core::plain::{
    Basis, Kind, Kinds, Listing, Plain, PlainIntent, Planned, Stretch, Stretches, rank,
};
use crate::core::plan::{PlanError, PlannedIntent, make};
use crate::core::scope::Scope;
use crate::core::status::Ledger;
use crate::core::time::Timestamp;

use attached::{Attached, FirstPass};
use layout::{Copied, Layout, NO_STRETCH, copy_rows};
use orders::{NO_ORDER, Orders};
use source::Source;
use workers::{in_turn, side_by_side};

/// How much is done at once.
#[derive(Clone, Copy, Debug)]
pub struct Portions {
    /// How many bytes of a file are read as one piece, at most 4 MiB: a row's place in its piece stands in 22 bits.
    pub bytes: u64,
    /// How many orders are decided as one stretch of the plan.
    pub orders: usize,
}

impl Default for Portions {
    fn default() -> Self {
        Self { bytes: 1 << 22, orders: 1 << 12 }
    }
}

/// What both passes leave: all orders as narrow as they go, and of those that may not be plain every row as it
/// stands in the files, by the stretch of the plan in which it is decided.
pub struct Sifted<'a> {
    sources: [Source; 4],
    options: &'a ReadOptions,
    basis: &'a Basis,
    orders: Orders,
    kinds: Vec<Kind>,
    decided: HashMap<Kind, Plain>,
    layout: Layout,
    /// By ledger: the rows of the orders in its pieces.
    rows: [Vec<Copied>; 4],
    pub notes: Vec<Note>,
}

/// The order in which the ledgers are read: orders first, since the others are of orders; the largest before the rest.
pub const READ_ORDER: [Ledger; 4] = [Ledger::Orders, Ledger::Messages, Ledger::Payments, Ledger::Inventory];

/// Where the ledgers stand.
pub enum Origin<'a> {
    Files(&'a LedgerFiles),
    /// Files that the store writes ([`ReadOptions::from_database`]), in [`READ_ORDER`]: it is asked for each as soon as
    /// the one before has been read.
    Database(&'a mut dyn FnMut(Ledger) -> Option<File>),
}

/// Reads the four ledgers for a plan. `None` where the files are not as usual: they are in another encoding,
/// something in them is at fault or worth a note, an id comes twice.
pub fn sift<'a>(
    mut origin: Origin<'_>,
    options: &'a ReadOptions,
    basis: &'a Basis,
    portions: Portions,
    progress: &(dyn Fn(Ledger, u64) + Sync),
) -> Option<Sifted<'a>> {
    let mut notes = Vec::new();
    let mut open = |ledger| match &mut origin {
        Origin::Files(files) => Source::open(files.path(ledger), ledger, options, portions.bytes, &mut notes),
        Origin::Database(next) => Source::of_database(next(ledger)?, ledger, portions.bytes),
    };
    let hashing = RandomState::default();
    let mut sources = vec![open(Ledger::Orders)?];
    let mut orders = Orders::read(&sources[0], options, &hashing, progress)?;
    let mut told: [HashSet<u64>; 4] = Default::default();
    for (ledger, tenant_id, id) in basis.evidence.rows() {
        told[ledger as usize].insert(hashing.hash_one((tenant_id, id)));
        if ledger == Ledger::Orders
            && let Some(order) = orders.find(tenant_id, id, &hashing)
        {
            orders.kinds[order as usize].set_odd();
        }
    }
    let first = FirstPass { orders: &orders, options, basis, told: &told, hashing: &hashing };

    let mut attached: [Vec<Attached>; 4] = Default::default();
    for ledger in READ_ORDER.into_iter().skip(1) {
        let source = open(ledger)?;
        attached[ledger as usize] = side_by_side(source.pieces(), |piece| {
            let read = first.read(&source, piece)?;
            progress(ledger, read.rows.len() as u64);
            Some(read)
        })?;
        sources.push(source);
    }
    sources.sort_by_key(|source| source.ledger);
    let sources: [Source; 4] = sources.try_into().ok()?;
    side_by_side(3, |i| Attached::are_one_file(&attached[i + 1]).then_some(()))?;
    attached.iter_mut().flatten().for_each(|piece| piece.ids = Vec::new());

    let mut kinds = std::mem::take(&mut orders.kinds);
    for row in attached.iter().flatten().flat_map(|piece| &piece.rows).filter(|row| row.order != NO_ORDER) {
        kinds[row.order as usize].add(row.mark());
    }
    let layout = Layout::new(&orders, &mut kinds, &attached, portions.orders);
    orders.places = Vec::new();
    orders.keys = Vec::new();
    let mut decided = Kinds::new(&basis.policy, basis.as_of);
    let stretch_of: Vec<u32> = (0..)
        .zip(&kinds)
        .map(|(order, kind)| decided.plain(*kind).map_or(layout.stretch_of(order), |_| NO_STRETCH))
        .collect();
    let rows = copy_rows(&sources, &orders, &attached, &stretch_of, layout.stretches())?;
    let decided = decided.into_plain();
    Some(Sifted { sources, options, basis, orders, kinds, decided, layout, rows, notes })
}

impl Sifted<'_> {
    /// Decides everything in scope. `None` where a file has changed since it was read.
    ///
    /// # Errors
    /// As [`make`] does.
    pub fn plan(
        &self,
        scope: &Scope,
        listing: Listing,
        plan_id: String,
        made_at: Timestamp,
    ) -> Option<Result<Planned, PlanError>> {
        let Basis { policy, as_of, evidence } = self.basis;
        let decide = |stretch: usize| {
            let ledgers = self.ledgers(stretch)?;
            Some(make(&ledgers, scope, policy, *as_of, evidence))
        };
        let mut apart = match decide(Layout::APART)? {
            Ok(decided) => decided,
            Err(error) => return Some(Err(error)),
        };
        let apart_intents = self.by_stretch(std::mem::take(&mut apart.intents));
        let mut stretches = Stretches::new(apart, listing, plan_id, made_at);
        let work = |at: usize| {
            let mut decided = match decide(at + 1)? {
                Ok(decided) => decided,
                Err(error) => return Some(Err(error)),
            };
            let mut others = std::mem::take(&mut decided.intents);
            let mut apart = apart_intents[at].lock().unwrap_or_else(PoisonError::into_inner);
            if !apart.is_empty() {
                others.append(&mut apart);
                // Those of one place are together, in their order.
                others.sort_by(|a, b| rank(a).cmp(&rank(b)));
            }
            let plain = self.plain(at + 1).filter(|intent| intent.in_scope(scope));
            Some(Ok((Stretch::new(others, plain, listing.intents), decided)))
        };
        let mut error = None;
        in_turn(self.layout.stretches() - 1, work, |done| match done? {
            Ok((stretch, decided)) => {
                stretches.add(stretch);
                stretches.add_sums(decided);
                Some(())
            }
            Err(other) => {
                error = Some(other);
                None
            }
        })
        .or(error.as_ref().map(|_| ()))?;
        Some(error.map_or_else(|| stretches.end(), Err))
    }

    /// All rows of a stretch that are not of plain purchases.
    fn ledgers(&self, stretch: usize) -> Option<Ledgers> {
        let [orders, payments, inventory, messages] = &self.sources;
        Some(Ledgers {
            orders: orders.parse(&self.rows[0], stretch, self.options)?,
            payments: payments.parse(&self.rows[1], stretch, self.options)?,
            inventory: inventory.parse(&self.rows[2], stretch, self.options)?,
            messages: messages.parse(&self.rows[3], stretch, self.options)?,
        })
    }

    /// The plain purchases of a stretch, in the plan's order.
    fn plain(&self, stretch: usize) -> impl Iterator<Item = PlainIntent<'_>> {
        self.layout.orders_of(stretch).iter().filter_map(|&i| {
            let plain = *self.decided.get(&self.kinds[i as usize])?;
            Some(PlainIntent { order: self.orders.get(i), plain })
        })
    }

    /// Intents that were decided apart, by the stretch to whose places they belong, but for the first: that is
    /// where they were decided.
    fn by_stretch(&self, intents: Vec<PlannedIntent>) -> Vec<Mutex<Vec<PlannedIntent>>> {
        let count = self.layout.stretches() - 1;
        let begin = |at: usize| self.layout.orders_of(at + 1).first().map(|&order| self.orders.get(order));
        let begins: Vec<_> = (1..count).map(begin).collect();
        let mut by_stretch: Vec<Vec<PlannedIntent>> = (0..count).map(|_| Vec::new()).collect();
        for intent in intents {
            let at = begins.partition_point(|begin| begin.is_some_and(|begin| begin.rank() <= rank(&intent)));
            by_stretch[at].push(intent);
        }
        by_stretch.into_iter().map(Mutex::new).collect()
    }
}
