//! All orders, as narrow as they go.

use std::hash::BuildHasher;
use std::ops::Range;

use foldhash::HashMap;
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use rayon::slice::ParallelSliceMut as _;

use super::source::{Source, meet};
use super::workers::side_by_side;
use crate::core::money::Currency;
use crate::core::plain::{Kind, LoneOrder};
use crate::core::status::{Ledger, OrderStatus};
use crate::core::time::Timestamp;
use crate::files::cells::Cells;
use crate::files::options::ReadOptions;

/// In place of an order, for a row that has none.
pub(super) const NO_ORDER: u32 = u32::MAX;

/// An order's columns, without its texts.
pub(super) struct Narrow {
    /// Where its texts begin, one after the other: order, tenant, user, show, session, item.
    pub(super) texts: u32,
    pub(super) lengths: [u8; 6],
    pub(super) currency: Currency,
    pub(super) status: OrderStatus,
    pub(super) quantity: i64,
    pub(super) amount_minor: i64,
    pub(super) created_at: Timestamp,
    /// Where its row begins in the file.
    pub(super) at: u64,
}

/// All orders, as narrow as they go.
pub(super) struct Orders {
    pub(super) rows: Vec<Narrow>,
    pub(super) texts: String,
    /// Before anything attaches.
    pub(super) kinds: Vec<Kind>,
    pub(super) index: HashTable<u32>,
    /// By order, the hash of its (tenant, user, show).
    pub(super) places: Vec<u64>,
    /// Hashes of (tenant, user, key), and the orders that have one.
    pub(super) keys: Vec<(u64, u32)>,
}

#[derive(Default)]
pub(super) struct OrdersPiece {
    pub(super) rows: Vec<Narrow>,
    pub(super) texts: String,
    pub(super) places: Vec<u64>,
    pub(super) keys: Vec<(u64, u32)>,
    pub(super) range: Range<u64>,
}

impl Orders {
    pub(super) fn read(
        source: &Source,
        options: &ReadOptions,
        hashing: &RandomState,
        progress: &(dyn Fn(Ledger, u64) + Sync),
    ) -> Option<Self> {
        let pieces = side_by_side(source.pieces(), |piece| {
            let rows = source.rows_at_most();
            let mut read = OrdersPiece {
                rows: Vec::with_capacity(rows),
                texts: String::with_capacity(rows * 64),
                places: Vec::with_capacity(rows),
                keys: Vec::with_capacity(rows),
                ..OrdersPiece::default()
            };
            let start = source.piece(piece).start;
            read.range = source.read_piece(piece, options, |offset, cells| {
                read.add(start + u64::from(offset), cells, hashing)
            })?;
            progress(Ledger::Orders, read.rows.len() as u64);
            Some(read)
        })?;
        if !meet(pieces.iter().map(|piece| &piece.range)) {
            return None;
        }
        let count: usize = pieces.iter().map(|piece| piece.rows.len()).sum();
        let length: usize = pieces.iter().map(|piece| piece.texts.len()).sum();
        if u32::try_from(length).is_err() || u32::try_from(count).is_ok_and(|count: u32| count == NO_ORDER) {
            return None;
        }
        let mut orders = Self {
            rows: Vec::with_capacity(count),
            texts: String::with_capacity(length),
            kinds: Vec::with_capacity(count),
            index: HashTable::with_capacity(count),
            places: Vec::with_capacity(count),
            keys: Vec::new(),
        };
        for piece in pieces {
            let (rows, texts) = (orders.rows.len() as u32, orders.texts.len() as u32);
            orders.kinds.extend(piece.rows.iter().map(|row| Kind::of_order(row.status, row.amount_minor)));
            orders.rows.extend(piece.rows.into_iter().map(|row| Narrow { texts: texts + row.texts, ..row }));
            orders.texts.push_str(&piece.texts);
            orders.places.extend(piece.places);
            orders.keys.extend(piece.keys.into_iter().map(|(hash, order)| (hash, rows + order)));
        }
        let hash = |order: &LoneOrder<'_>| hashing.hash_one((order.tenant_id, order.order_id));
        let mut index = std::mem::take(&mut orders.index);
        for i in 0..orders.rows.len() as u32 {
            let order = orders.get(i);
            let hash_of = hash(&order);
            if index.find(hash_of, |other| orders.is(*other, order.tenant_id, order.order_id)).is_some() {
                return None;
            }
            index.insert_unique(hash_of, i, |other| hash(&orders.get(*other)));
        }
        orders.index = index;
        Some(orders)
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
            quantity: row.quantity,
            amount_minor: row.amount_minor,
            currency: row.currency,
            status: row.status,
            created_at: row.created_at,
        }
    }

    pub(super) fn find(&self, tenant_id: &str, order_id: &str, hashing: &RandomState) -> Option<u32> {
        let hash = hashing.hash_one((tenant_id, order_id));
        self.index.find(hash, |order| self.is(*order, tenant_id, order_id)).copied()
    }

    /// All of them by tenant, user and show, and of each such place where its orders stand in that.
    pub(super) fn by_place(&self) -> (Vec<u32>, Vec<Range<usize>>) {
        // Most users differ in their first bytes, which are compared as one number.
        let begin = |text: &str| {
            let mut bytes = [0; 16];
            let length = text.len().min(bytes.len());
            bytes[..length].copy_from_slice(&text.as_bytes()[..length]);
            u128::from_be_bytes(bytes)
        };
        let mut tenants: HashMap<&str, u32> = HashMap::default();
        let mut keys: Vec<(u32, u128, u32)> = Vec::with_capacity(self.rows.len());
        for i in 0..self.rows.len() as u32 {
            let order = self.get(i);
            let next = tenants.len() as u32;
            let tenant = *tenants.entry(order.tenant_id).or_insert(next);
            keys.push((tenant, begin(order.user_id), i));
        }
        let mut names: Vec<(&str, u32)> = tenants.into_iter().collect();
        names.sort_unstable();
        let mut ranks = vec![0; names.len()];
        names.iter().zip(0..).for_each(|((_, tenant), rank)| ranks[*tenant as usize] = rank);
        keys.iter_mut().for_each(|(tenant, ..)| *tenant = ranks[*tenant as usize]);
        let rank = |i: u32| self.get(i).rank();
        keys.par_sort_unstable_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)).then_with(|| rank(a.2).cmp(&rank(b.2))));
        let mut places: Vec<Range<usize>> = Vec::with_capacity(keys.len());
        for same in keys.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1) && rank(a.2) == rank(b.2)) {
            let begin = places.last().map_or(0, |before| before.end);
            places.push(begin..begin + same.len());
        }
        (keys.into_iter().map(|(.., order)| order).collect(), places)
    }
}

impl OrdersPiece {
    pub(super) fn add(&mut self, at: u64, cells: &mut Cells<'_, '_>, hashing: &RandomState) -> Option<()> {
        let order_id = cells.take_text()?;
        let tenant_id = cells.take_text()?;
        let user_id = cells.take_text()?;
        let show_id = cells.take_text()?;
        let session_id = cells.take_text()?;
        let key = cells.take_text()?;
        let item = cells.take_text()?;
        let quantity = cells.take()?;
        let amount_minor = cells.take()?;
        let currency = cells.take()?;
        let status = cells.take()?;
        let _source = cells.take_text()?;
        let _trace_id = cells.take_text()?;
        let created_at = cells.take()?;
        let _version = cells.take_text()?;

        let order = self.rows.len() as u32;
        self.places.push(hashing.hash_one((tenant_id, user_id, show_id)));
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
        self.rows.push(Narrow { texts, lengths, currency, status, quantity, amount_minor, created_at, at });
        Some(())
    }
}

pub(super) fn maybe(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}
