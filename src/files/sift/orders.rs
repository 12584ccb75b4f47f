//! All orders, as narrow as they go.

use std::hash::BuildHasher;
use std::ops::Range;

use foldhash::HashMap;
use foldhash::fast::RandomState;
use rayon::prelude::*;

use super::index::Index;
use super::source::{Source, meet};
use super::workers::in_turn;
use crate::core::money::Currency;
use crate::core::plain::{Kind, LoneOrder};
use crate::core::status::{Ledger, OrderStatus};
use crate::core::time::Timestamp;
use crate::files::cells::Cells;
use crate::files::options::ReadOptions;

/// In place of an order, for a row that has none.
pub(super) const NO_ORDER: u32 = u32::MAX;

/// An order's columns, without its texts.
struct Narrow {
    /// Where its texts begin, one after the other: order, tenant, user, show, session, item.
    texts: u32,
    lengths: [u8; 6],
    currency: Currency,
    status: OrderStatus,
    quantity: u32,
    amount_minor: i64,
    created_at: Timestamp,
    /// Where its row begins in the file.
    at: u64,
}

/// All orders, as narrow as they go, numbered in the file's order.
#[derive(Default)]
pub(super) struct Orders {
    rows: Vec<Narrow>,
    texts: String,
    /// Before anything attaches.
    pub(super) kinds: Vec<Kind>,
    index: Index,
    /// Hashes of (tenant, user, key), and the orders that have one.
    pub(super) keys: Vec<(u64, u32)>,
}

/// The orders of a piece, numbered from 0.
#[derive(Default)]
struct OrdersPiece {
    rows: Vec<Narrow>,
    texts: String,
    /// Hashes of (tenant, id).
    ids: Vec<u64>,
    keys: Vec<(u64, u32)>,
    range: Range<u64>,
}

impl Orders {
    pub(super) fn read(
        source: &Source,
        options: &ReadOptions,
        hashing: &RandomState,
        progress: &(dyn Fn(Ledger, u64) + Sync),
    ) -> Option<Self> {
        let read = |piece| {
            let rows = source.rows_at_most(source.piece);
            let mut read = OrdersPiece {
                rows: Vec::with_capacity(rows),
                texts: String::with_capacity(rows * 64),
                ids: Vec::with_capacity(rows),
                ..OrdersPiece::default()
            };
            let start = source.piece(piece).start;
            read.range = source.read_piece(piece, options, |offset, cells| {
                read.add(start + u64::from(offset), cells, hashing)
            })?;
            progress(Ledger::Orders, read.rows.len() as u64);
            Some(read)
        };
        // Room that is not used costs nothing; to grow copies everything.
        let rows = source.rows_at_most(source.length);
        let mut orders = Self {
            rows: Vec::with_capacity(rows),
            texts: String::with_capacity(rows * 64),
            kinds: Vec::with_capacity(rows),
            ..Self::default()
        };
        let mut ranges = Vec::new();
        in_turn(source.pieces(), read, |piece| {
            let piece = piece?;
            ranges.push(piece.range.clone());
            orders.append(piece)
        })?;
        meet(&ranges).then_some(orders)
    }

    /// Adds the orders of the next piece; nothing where one is here already, or they are too many.
    fn append(&mut self, piece: OrdersPiece) -> Option<()> {
        let first = self.rows.len() as u32;
        let texts = self.texts.len() as u32;
        u32::try_from(self.rows.len() + piece.rows.len()).ok().filter(|count| *count < NO_ORDER)?;
        u32::try_from(self.texts.len() + piece.texts.len()).ok()?;
        self.kinds.extend(piece.rows.iter().map(|row| Kind::of_order(row.status, row.amount_minor)));
        self.rows.extend(piece.rows.into_iter().map(|row| Narrow { texts: texts + row.texts, ..row }));
        self.texts.push_str(&piece.texts);
        self.keys.extend(piece.keys.into_iter().map(|(hash, order)| (hash, first + order)));
        let mut index = std::mem::take(&mut self.index);
        for (order, hash) in (first..).zip(piece.ids) {
            let LoneOrder { tenant_id, order_id, .. } = self.get(order);
            if index.find(hash, |other| self.is(other, tenant_id, order_id)).is_some() {
                return None;
            }
            index.insert(hash, order);
        }
        self.index = index;
        Some(())
    }

    /// Where the rows stand in the file, in its order.
    pub(super) fn places(&self) -> impl Iterator<Item = u64> + Clone {
        self.rows.iter().map(|row| row.at)
    }

    /// Drops what only serves to find and to join them.
    pub(super) fn close(&mut self) {
        (self.index, self.keys) = Default::default();
    }

    /// Whether an order is the one of this tenant and id.
    pub(super) fn is(&self, order: u32, tenant_id: &str, order_id: &str) -> bool {
        let row = &self.rows[order as usize];
        let [id, tenant, ..] = row.lengths.map(usize::from);
        let texts = &self.texts.as_bytes()[row.texts as usize..];
        (id, tenant) == (order_id.len(), tenant_id.len())
            && texts[..id] == *order_id.as_bytes()
            && texts[id..id + tenant] == *tenant_id.as_bytes()
    }

    pub(super) fn get(&self, order: u32) -> LoneOrder<'_> {
        let row = &self.rows[order as usize];
        let [id, tenant, user, show, session, item] = row.lengths.map(usize::from);
        let (order_id, rest) = self.texts[row.texts as usize..].split_at(id);
        let (tenant_id, rest) = rest.split_at(tenant);
        let (user_id, rest) = rest.split_at(user);
        let (show_id, rest) = rest.split_at(show);
        let (session_id, rest) = rest.split_at(session);
        let item = &rest[..item];
        LoneOrder {
            order_id,
            tenant_id,
            user_id,
            show_id,
            session_id: maybe(session_id),
            item: maybe(item),
            quantity: row.quantity.into(),
            amount_minor: row.amount_minor,
            currency: row.currency,
            status: row.status,
            created_at: row.created_at,
        }
    }

    pub(super) fn find(&self, tenant_id: &str, order_id: &str, hashing: &RandomState) -> Option<u32> {
        let hash = hashing.hash_one((tenant_id, order_id));
        self.index.find(hash, |order| self.is(order, tenant_id, order_id))
    }

    /// An order of this hash of tenant and id: most likely the one, and if there is none, there is not the one.
    pub(super) fn likely(&self, hash: u64) -> Option<u32> {
        self.index.find(hash, |_| true)
    }

    /// The order of this tenant, id and their hash.
    pub(super) fn the_one(&self, likely: u32, hash: u64, tenant_id: &str, order_id: &str) -> Option<u32> {
        let is_it = |order| self.is(order, tenant_id, order_id);
        if is_it(likely) { Some(likely) } else { self.index.find(hash, is_it) }
    }

    /// All of them by tenant, user and show; of each such place where its orders begin in that, and at the end how
    /// many orders there are.
    pub(super) fn by_place(&self) -> (Vec<u32>, Vec<u32>) {
        let mut ranks: HashMap<&str, u16> =
            (0..self.rows.len() as u32).map(|i| (self.get(i).tenant_id, 0)).collect();
        let mut tenants: Vec<_> = ranks.keys().copied().collect();
        tenants.sort_unstable();
        // Those beyond the last rank have it, too.
        ranks.extend(tenants.into_iter().zip((0..u16::MAX).chain(std::iter::repeat(u16::MAX))));
        // The tenant's rank, how the user begins, and the order: most differ in the first two, and are compared as
        // one number.
        let key = |i: u32| {
            let LoneOrder { tenant_id, user_id, .. } = self.get(i);
            let mut key = [0; 16];
            key[..2].copy_from_slice(&ranks[tenant_id].to_be_bytes());
            let length = user_id.len().min(10);
            key[2..2 + length].copy_from_slice(&user_id.as_bytes()[..length]);
            key[12..].copy_from_slice(&i.to_be_bytes());
            u128::from_be_bytes(key)
        };
        let begin = |key: u128| key >> 32;
        let rank = |key: u128| self.get(key as u32).rank();
        let mut keys: Vec<u128> = (0..self.rows.len() as u32).into_par_iter().map(key).collect();
        keys.par_sort_unstable_by(|a, b| begin(*a).cmp(&begin(*b)).then_with(|| rank(*a).cmp(&rank(*b))));
        let mut begins = vec![0];
        for same in keys.chunk_by(|a, b| begin(*a) == begin(*b) && rank(*a) == rank(*b)) {
            begins.push(begins[begins.len() - 1] + same.len() as u32);
        }
        (keys.into_iter().map(|key| key as u32).collect(), begins)
    }
}

impl OrdersPiece {
    fn add(&mut self, at: u64, cells: &mut Cells<'_, '_>, hashing: &RandomState) -> Option<()> {
        let order_id = cells.take_text()?;
        let tenant_id = cells.take_text()?;
        let user_id = cells.take_text()?;
        let show_id = cells.take_text()?;
        let session_id = cells.take_text()?;
        let key = cells.take_text()?;
        let item = cells.take_text()?;
        let quantity: i64 = cells.take()?;
        let amount_minor = cells.take()?;
        let currency = cells.take()?;
        let status = cells.take()?;
        let _source = cells.take_text()?;
        let _trace_id = cells.take_text()?;
        let created_at = cells.take()?;
        let _version = cells.take_text()?;

        let order = self.rows.len() as u32;
        self.ids.push(hashing.hash_one((tenant_id, order_id)));
        if !key.is_empty() {
            self.keys.push((hashing.hash_one((tenant_id, user_id, key)), order));
        }
        let mut lengths = [0; 6];
        let texts = self.texts.len() as u32;
        for (length, text) in
            lengths.iter_mut().zip([order_id, tenant_id, user_id, show_id, session_id, item])
        {
            *length = u8::try_from(text.len()).ok()?;
            self.texts.push_str(text);
        }
        let quantity = u32::try_from(quantity).ok()?;
        self.rows.push(Narrow { texts, lengths, currency, status, quantity, amount_minor, created_at, at });
        Some(())
    }
}

pub(super) fn maybe(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}
