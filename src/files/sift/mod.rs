//! Reading for a plan of everything in two passes: the first looks at every cell, as [`super::read()`] does, but
//! keeps of each row only what tells whether its order is plain ([`crate::core::plain`]), and where it stands; the
//! second reads the few rows of those that are not, in full, as they are decided.
//!
//! Files are cut into pieces that are read side by side; those that the store writes of a database are read as they
//! come. What this cannot do, such as saying on which line a fault stands, it leaves to the other reader by giving
//! nothing.

mod attached;
mod copied;
mod index;
mod layout;
mod orders;
mod source;
mod workers;

use std::fs::File;
use std::hash::BuildHasher as _;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use foldhash::fast::RandomState;
use foldhash::{HashMap, HashSet};
use rayon::prelude::*;

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
use copied::Copied;
use layout::{Layout, Places};
use orders::{NO_ORDER, Orders};
use source::Source;
use workers::in_turn;

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

/// What the first pass leaves: all orders as narrow as they go, and of those that may not be plain where every row
/// stands in the files, by the stretch of the plan in which it is decided.
pub struct Sifted<'a> {
    sources: [Source; 4],
    options: &'a ReadOptions,
    basis: &'a Basis,
    orders: Orders,
    kinds: Vec<Kind>,
    decided: HashMap<Kind, Plain>,
    layout: Layout,
    /// By ledger: where the rows stand that are not of plain orders.
    places: [Places; 4],
    pub notes: Vec<Note>,
}

/// By ledger: rows in parts that follow each other in its file.
type Rows = [Vec<Copied>; 4];

/// In how many parts, one after the other, the rows are read again that are decided in full: what is held at once is
/// that of one part, and each takes another look through the files.
const PARTS: usize = 4;

/// The order in which the ledgers are read, or wanted of a database: orders first, since the others are of orders; the
/// largest before the rest.
pub const READ_ORDER: [Ledger; 4] = [Ledger::Orders, Ledger::Messages, Ledger::Payments, Ledger::Inventory];

/// Where the ledgers stand.
pub enum Origin<'a> {
    Files(&'a LedgerFiles),
    /// Files that the store writes ([`ReadOptions::from_database`]), in whatever order: it is asked for each as soon as
    /// the one before has been read.
    Database(&'a mut dyn FnMut() -> Option<(Ledger, File)>),
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
    let mut order = READ_ORDER.into_iter();
    let mut next = || match &mut origin {
        Origin::Files(files) => {
            let ledger = order.next()?;
            Source::open(files.path(ledger), ledger, options, portions.bytes, &mut notes)
        }
        Origin::Database(next) => {
            let (ledger, file) = next()?;
            Source::of_database(file, ledger, portions.bytes)
        }
    };
    let hashing = RandomState::default();
    let mut sources: Vec<Source> = Vec::new();
    while sources.last().is_none_or(|source| source.ledger != Ledger::Orders) {
        sources.push(next()?);
    }
    let mut orders = Orders::read(sources.last()?, options, &hashing, progress)?;
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

    let mut attached: [Attached; 4] = Default::default();
    for at in 0..READ_ORDER.len() {
        // Some may have come before the orders.
        if at == sources.len() {
            sources.push(next()?);
        }
        let source = &sources[at];
        if source.ledger != Ledger::Orders {
            attached[source.ledger as usize] = first.read(source, progress)?;
        }
    }
    sources.sort_by_key(|source| source.ledger);
    let sources: [Source; 4] = sources.try_into().ok()?;

    let mut kinds = std::mem::take(&mut orders.kinds);
    for row in attached.iter().flat_map(|of| &of.rows).flatten().filter(|row| row.order != NO_ORDER) {
        kinds[row.order as usize].add(row.mark());
    }
    let mut layout = Layout::new(&orders, &mut kinds, &attached, &hashing, portions.orders);
    orders.close();
    let mut decided = Kinds::new(&basis.policy, basis.as_of);
    kinds.iter().for_each(|kind| _ = decided.plain(*kind));
    let decided = decided.into_plain();
    layout.leave_out(|order| decided.contains_key(&kinds[order as usize]));
    let places = Ledger::ALL.par_iter().map(|ledger| match ledger {
        Ledger::Orders => layout.places_of_orders(&orders),
        other => layout.places_of_rows(&sources[*other as usize], &attached[*other as usize]),
    });
    let places = places.collect::<Vec<_>>().try_into().ok()?;
    Some(Sifted { sources, options, basis, orders, kinds, decided, layout, places, notes })
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
        let decide = |stretch: usize, rows: &Rows| {
            let ledgers = self.ledgers(stretch, rows)?;
            Some(make(&ledgers, scope, policy, *as_of, evidence))
        };
        let mut apart = match decide(Layout::APART, &self.rows(&(Layout::APART..Layout::APART + 1))?)? {
            Ok(decided) => decided,
            Err(error) => return Some(Err(error)),
        };
        let apart_intents = self.by_stretch(std::mem::take(&mut apart.intents));
        let mut stretches = Stretches::new(apart, listing, plan_id, made_at);
        let work = |stretch: usize, rows: &Rows| {
            let mut decided = match decide(stretch, rows)? {
                Ok(decided) => decided,
                Err(error) => return Some(Err(error)),
            };
            let mut others = std::mem::take(&mut decided.intents);
            let mut apart = apart_intents[stretch - 1].lock().unwrap_or_else(PoisonError::into_inner);
            if !apart.is_empty() {
                others.append(&mut apart);
                // Those of one place are together, in their order.
                others.sort_by(|a, b| rank(a).cmp(&rank(b)));
            }
            let plain = self.plain(stretch).into_iter().filter(|intent| intent.in_scope(scope));
            Some(Ok((Stretch::new(others, plain, listing.intents), decided)))
        };
        let all = self.layout.stretches();
        for first in (1..all).step_by(all.div_ceil(PARTS)) {
            let part = first..all.min(first + all.div_ceil(PARTS));
            let rows = self.rows(&part)?;
            let mut error = None;
            let done = in_turn(
                part.len(),
                |at| work(part.start + at, &rows),
                |done| match done? {
                    Ok((stretch, decided)) => {
                        stretches.add(stretch);
                        stretches.add_sums(decided);
                        Some(())
                    }
                    Err(other) => {
                        error = Some(other);
                        None
                    }
                },
            );
            if done.is_none() {
                return error.map(Err);
            }
        }
        self.sources.iter().all(Source::is_unchanged).then(|| stretches.end())
    }

    /// All rows of some stretches that are not of plain purchases, as they stand in the files.
    fn rows(&self, stretches: &Range<usize>) -> Option<Rows> {
        let copied =
            |ledger: usize| Copied::of_stretches(&self.sources[ledger], &self.places[ledger], stretches);
        Some([copied(0)?, copied(1)?, copied(2)?, copied(3)?])
    }

    /// Those of one of the stretches.
    fn ledgers(&self, stretch: usize, rows: &Rows) -> Option<Ledgers> {
        let [orders, payments, inventory, messages] = &self.sources;
        Some(Ledgers {
            orders: orders.parse(&rows[0], stretch, self.options)?,
            payments: payments.parse(&rows[1], stretch, self.options)?,
            inventory: inventory.parse(&rows[2], stretch, self.options)?,
            messages: messages.parse(&rows[3], stretch, self.options)?,
        })
    }

    /// The plain purchases of a stretch, in the plan's order. All at once: they lie far from each other in memory, and
    /// so are waited for together.
    fn plain(&self, stretch: usize) -> Vec<PlainIntent<'_>> {
        let plain = |&i: &u32| {
            let plain = *self.decided.get(&self.kinds[i as usize])?;
            Some(PlainIntent { order: self.orders.get(i), plain })
        };
        self.layout.orders_of(stretch).iter().filter_map(plain).collect()
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
