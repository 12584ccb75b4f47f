//! The first pass over payments, holds and messages: of each row its order, its place and its mark.

use std::hash::BuildHasher;
use std::ops::Range;

use foldhash::HashSet;
use foldhash::fast::RandomState;
use rayon::slice::ParallelSliceMut as _;

use super::orders::{NO_ORDER, Orders, maybe};
use super::source::{Source, meet};
use super::workers::in_turn;
use crate::core::plain::{Basis, LoneOrder, Mark};
use crate::core::status::{HoldStatus, Ledger, MessageStatus, PaymentStatus};
use crate::core::time::Timestamp;
use crate::files::cells::Cells;
use crate::files::options::ReadOptions;

/// One row of payments, inventory or messages: its order, its place in its piece and its mark.
#[derive(Clone, Copy)]
pub(super) struct Row {
    pub(super) order: u32,
    pub(super) at_and_mark: u32,
}

impl Row {
    pub(super) fn new(order: u32, at: u32, mark: Mark) -> Self {
        Self { order, at_and_mark: at << 10 | u32::from(mark.bits()) }
    }

    pub(super) fn mark(self) -> Mark {
        Mark::from_bits((self.at_and_mark & 0x3ff) as u16)
    }

    pub(super) fn at(self) -> u64 {
        u64::from(self.at_and_mark >> 10)
    }
}

/// What the first pass keeps of another ledger than orders.
#[derive(Default)]
pub(super) struct Attached {
    /// Those of each piece.
    pub(super) rows: Vec<Vec<Row>>,
    /// Hashes of (tenant, user, show) of the rows without an order.
    pub(super) orphan_places: Vec<u64>,
    /// Hashes of (tenant, provider, transaction), and the orders of those payments.
    pub(super) transactions: Vec<(u64, u32)>,
}

/// The same of one piece.
#[derive(Default)]
pub(super) struct AttachedPiece {
    rows: Vec<Row>,
    /// Hashes of (tenant, id) of all rows.
    ids: Vec<u64>,
    orphan_places: Vec<u64>,
    transactions: Vec<(u64, u32)>,
    range: Range<u64>,
}

pub(super) struct FirstPass<'a> {
    pub(super) orders: &'a Orders,
    pub(super) options: &'a ReadOptions,
    pub(super) basis: &'a Basis,
    /// By ledger: hashes of (tenant, id) of the rows that the evidence tells something of.
    pub(super) told: &'a [HashSet<u64>; 4],
    pub(super) hashing: &'a RandomState,
}

impl FirstPass<'_> {
    /// Nothing where the file is not as usual, or an id comes twice.
    pub(super) fn read(&self, source: &Source, progress: &(dyn Fn(Ledger, u64) + Sync)) -> Option<Attached> {
        let mut attached = Attached::default();
        let mut ids = Vec::with_capacity(source.rows_at_most(source.length));
        let mut ranges = Vec::new();
        in_turn(
            source.pieces(),
            |piece| self.read_piece(source, piece),
            |read| {
                let mut read = read?;
                progress(source.ledger, read.rows.len() as u64);
                read.rows.shrink_to_fit();
                attached.rows.push(read.rows);
                attached.orphan_places.append(&mut read.orphan_places);
                attached.transactions.append(&mut read.transactions);
                ids.append(&mut read.ids);
                ranges.push(read.range);
                Some(())
            },
        )?;
        (meet(&ranges) && all_differ(ids)).then_some(attached)
    }

    fn read_piece(&self, source: &Source, piece: usize) -> Option<AttachedPiece> {
        let rows = source.rows_at_most(source.piece);
        let mut read = AttachedPiece {
            rows: Vec::with_capacity(rows),
            ids: Vec::with_capacity(rows),
            ..AttachedPiece::default()
        };
        read.range = source.read_piece(piece, self.options, |at, cells| match source.ledger {
            Ledger::Orders => None,
            Ledger::Payments => self.payment(at, cells, &mut read),
            Ledger::Inventory => self.hold(at, cells, &mut read),
            Ledger::Messages => self.message(at, cells, &mut read),
        })?;
        Some(read)
    }

    /// The order that a row names. One that names none, or one that is not there, is an orphan of its place.
    fn order(&self, tenant_id: &str, order_id: &str, place: (&str, &str), read: &mut AttachedPiece) -> u32 {
        let order = maybe(order_id).and_then(|order_id| self.orders.find(tenant_id, order_id, self.hashing));
        order.unwrap_or_else(|| {
            read.orphan_places.push(self.hashing.hash_one((tenant_id, place.0, place.1)));
            NO_ORDER
        })
    }

    /// The mark of a row, by its hash; it is asked for where there is an order, and nothing is told of the row.
    fn mark(&self, ledger: Ledger, id: u64, order: u32, mark: impl FnOnce(&LoneOrder<'_>) -> Mark) -> Mark {
        let is_told = self.told[ledger as usize].contains(&id);
        if order == NO_ORDER || is_told { Mark::ODD } else { mark(&self.orders.get(order)) }
    }

    fn payment(&self, at: u32, cells: &mut Cells<'_, '_>, read: &mut AttachedPiece) -> Option<()> {
        let id = cells.take_text()?;
        let tenant_id = cells.take_text()?;
        let order_id = cells.take_text()?;
        let user_id = cells.take_text()?;
        let show_id = cells.take_text()?;
        let _session_id = cells.take_text()?;
        let amount_minor = cells.take()?;
        let refunded_minor = cells.take()?;
        let currency = cells.take()?;
        let provider = cells.take_text()?;
        let transaction = cells.take_text()?;
        let status: PaymentStatus = cells.take()?;
        let created_at: Timestamp = cells.take()?;
        let captured_at: Option<Timestamp> = cells.take()?;
        let _version = cells.take_text()?;

        let id = self.hashing.hash_one((tenant_id, id));
        read.ids.push(id);
        let order = self.order(tenant_id, order_id, (user_id, show_id), read);
        if !transaction.is_empty() {
            let hash = self.hashing.hash_one((tenant_id, provider, transaction));
            read.transactions.push((hash, order));
        }
        let mark = self.mark(Ledger::Payments, id, order, |order| {
            let captured_at = captured_at.unwrap_or(created_at);
            let amounts = (amount_minor, refunded_minor, currency);
            Mark::of_payment(order, (user_id, show_id), amounts, status, captured_at, &self.basis.policy)
        });
        read.rows.push(Row::new(order, at, mark));
        Some(())
    }

    fn hold(&self, at: u32, cells: &mut Cells<'_, '_>, read: &mut AttachedPiece) -> Option<()> {
        let id = cells.take_text()?;
        let tenant_id = cells.take_text()?;
        let order_id = cells.take_text()?;
        let user_id = cells.take_text()?;
        let show_id = cells.take_text()?;
        let _session_id = cells.take_text()?;
        let item = cells.take_text()?;
        let quantity = cells.take()?;
        let status: HoldStatus = cells.take()?;
        let _created_at: Timestamp = cells.take()?;
        let expires_at: Option<Timestamp> = cells.take()?;
        let _version = cells.take_text()?;

        let id = self.hashing.hash_one((tenant_id, id));
        read.ids.push(id);
        let order = self.order(tenant_id, order_id, (user_id, show_id), read);
        let as_of = self.basis.as_of;
        let mark = self.mark(Ledger::Inventory, id, order, |order| {
            Mark::of_hold(order, (user_id, show_id), maybe(item), quantity, status, expires_at, as_of)
        });
        read.rows.push(Row::new(order, at, mark));
        Some(())
    }

    fn message(&self, at: u32, cells: &mut Cells<'_, '_>, read: &mut AttachedPiece) -> Option<()> {
        let id = cells.take_text()?;
        let tenant_id = cells.take_text()?;
        let _key = cells.take_text()?;
        let topic = cells.take_text()?;
        let order_id = cells.take_text()?;
        let user_id = cells.take_text()?;
        let show_id = cells.take_text()?;
        let _session_id = cells.take_text()?;
        let status: MessageStatus = cells.take()?;
        let _attempts: i64 = cells.take()?;
        let _trace_id = cells.take_text()?;
        let _created_at: Timestamp = cells.take()?;
        let _version = cells.take_text()?;

        let id = self.hashing.hash_one((tenant_id, id));
        read.ids.push(id);
        let order = self.order(tenant_id, order_id, (user_id, show_id), read);
        let mark = self.mark(Ledger::Messages, id, order, |_| Mark::of_message(topic, status));
        read.rows.push(Row::new(order, at, mark));
        Some(())
    }
}

/// Whether all hashes differ.
fn all_differ(mut hashes: Vec<u64>) -> bool {
    hashes.par_sort_unstable();
    hashes.is_sorted_by(|a, b| a < b)
}
