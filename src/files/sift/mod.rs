//! Reading for a plan of everything in two passes: the first looks at every cell, as [`super::read()`] does, but
//! keeps of each row only what tells whether its order is plain ([`crate::core::plain`]); the second
//! reads the few rows that are not, in full.
//!
//! Files are cut into pieces that are read side by side. What this cannot do, such as saying on which line a
//! fault stands, it leaves to the other reader by giving nothing.

mod attached;
mod layout;
mod orders;
mod source;
mod workers;

use std::sync::{Mutex, PoisonError};

use foldhash::HashMap;
use foldhash::fast::RandomState;

use super::LedgerFiles;
use super::faults::Note;
use super::options::ReadOptions;
use crate::core::evidence::Evidence;
use crate::core::ledger::{Hold, Ledgers, Message, Order, Payment};
use crate::core::plain::{Kind, Kinds, Plain, PlainIntent, Stretch, Stretches, Unlisted, rank};
use crate::core::plan::{Plan, PlanError, PlannedIntent, make};
use crate::core::policy::Policy;
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
    sources: [Source<'a>; 4],
    options: &'a ReadOptions,
    orders: Orders,
    kinds: Vec<Kind>,
    decided: HashMap<Kind, Plain>,
    layout: Layout,
    /// By ledger: the rows of the orders in its pieces.
    rows: [Vec<Copied>; 4],
    pub notes: Vec<Note>,
}

/// Reads the four ledgers for a plan as of this time. `None` where the files are not as usual: they
/// are in another encoding, something in them is at fault or worth a note, an id comes twice.
pub fn sift<'a>(
    files: &'a LedgerFiles,
    options: &'a ReadOptions,
    policy: &Policy,
    as_of: Timestamp,
    portions: Portions,
    progress: &(dyn Fn(Ledger, u64) + Sync),
) -> Option<Sifted<'a>> {
    let mut notes = Vec::new();
    let sources = [
        Source::open::<Order>(&files.orders, options, portions.bytes, &mut notes)?,
        Source::open::<Payment>(&files.payments, options, portions.bytes, &mut notes)?,
        Source::open::<Hold>(&files.inventory, options, portions.bytes, &mut notes)?,
        Source::open::<Message>(&files.messages, options, portions.bytes, &mut notes)?,
    ];
    let hashing = RandomState::default();
    let mut orders = Orders::read(&sources[0], options, &hashing, progress)?;
    let first = FirstPass { orders: &orders, options, policy, as_of, hashing: &hashing };

    let pieces: Vec<(usize, usize)> =
        [3, 1, 2].into_iter().flat_map(|s| (0..sources[s].pieces()).map(move |piece| (s, piece))).collect();
    let read = side_by_side(pieces.len(), |i| {
        let (source, piece) = pieces[i];
        let attached = first.read(&sources[source], piece)?;
        progress(sources[source].ledger, attached.rows.len() as u64);
        Some(attached)
    })?;
    let mut attached: [Vec<Attached>; 4] = Default::default();
    for ((source, _), piece) in pieces.iter().zip(read) {
        attached[*source].push(piece);
    }
    side_by_side(3, |i| Attached::are_one_file(&attached[i + 1]).then_some(()))?;
    attached.iter_mut().flatten().for_each(|piece| piece.ids = Vec::new());

    let mut kinds = std::mem::take(&mut orders.kinds);
    for row in attached.iter().flatten().flat_map(|piece| &piece.rows).filter(|row| row.order != NO_ORDER) {
        kinds[row.order as usize].add(row.mark());
    }
    let layout = Layout::new(&orders, &mut kinds, &attached, portions.orders);
    orders.places = Vec::new();
    orders.keys = Vec::new();
    let mut decided = Kinds::new(policy, as_of);
    let stretch_of: Vec<u32> = (0..)
        .zip(&kinds)
        .map(|(order, kind)| decided.plain(*kind).map_or(layout.stretch_of(order), |_| NO_STRETCH))
        .collect();
    let rows = copy_rows(&sources, &orders, &attached, &stretch_of, layout.stretches())?;
    let decided = decided.into_plain();
    Some(Sifted { sources, options, orders, kinds, decided, layout, rows, notes })
}

impl Sifted<'_> {
    /// Decides everything in scope, and gives the plan with the number of purchases that it does not list:
    /// none where it is to be `whole`. `None` where a file has changed since it was read.
    ///
    /// # Errors
    /// As [`make`] does.
    pub fn plan(
        &self,
        scope: &Scope,
        policy: &Policy,
        as_of: Timestamp,
        whole: bool,
        plan_id: String,
        made_at: Timestamp,
    ) -> Option<Result<(Plan, Unlisted), PlanError>> {
        let decide = |stretch: usize| {
            let ledgers = self.ledgers(stretch)?;
            Some(make(&ledgers, scope, policy, as_of, &Evidence::default()))
        };
        let mut apart = match decide(Layout::APART)? {
            Ok(decided) => decided,
            Err(error) => return Some(Err(error)),
        };
        let apart_intents = self.by_stretch(std::mem::take(&mut apart.intents));
        let mut stretches = Stretches::new(apart, plan_id, made_at);
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
            Some(Ok((Stretch::new(others, plain, whole), decided)))
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
