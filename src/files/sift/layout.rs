//! Which orders are decided together, and the rows of those that are not plain.

use std::ops::Range;

use foldhash::HashSet;
use rayon::slice::ParallelSliceMut as _;

use super::attached::{Attached, Row};
use super::orders::{NO_ORDER, Orders};
use super::source::Source;
use super::workers::side_by_side;
use crate::core::plain::Kind;

/// In place of a stretch, for a plain order: no row of it is read again.
pub(super) const NO_STRETCH: u32 = u32::MAX;

/// Which orders are decided together: those of a stretch of the plan. What may have to do with an order of another
/// place is decided apart from all stretches, and so is every orphan.
pub(super) struct Layout {
    /// All orders as a plan sorts them, by tenant, user and show.
    pub(super) sorted: Vec<u32>,
    /// Where each stretch begins in it, and at the end how many orders there are; the first is [`Self::APART`], and empty.
    pub(super) begins: Vec<usize>,
    /// By order: its stretch.
    pub(super) of: Vec<u32>,
}

impl Layout {
    /// The stretch of what is decided apart.
    pub(super) const APART: usize = 0;

    /// Makes odd whatever does not stand alone: orders of one (tenant, user, show), of one key or with
    /// payments of one transaction, and those near which an orphan may belong. By their hashes: equal
    /// ones may be one too many, never one too few.
    pub(super) fn new(
        orders: &Orders,
        kinds: &mut [Kind],
        attached: &[Vec<Attached>; 4],
        at_once: usize,
    ) -> Self {
        let (sorted, places) = orders.by_place();
        let mut place_of = vec![0_u32; sorted.len()];
        for (place, same) in (0..).zip(&places) {
            for &order in &sorted[same.clone()] {
                place_of[order as usize] = place;
                if same.len() > 1 {
                    kinds[order as usize].set_odd();
                }
            }
        }

        let mut is_apart = vec![false; places.len()];
        let orphans: HashSet<u64> =
            attached.iter().flatten().flat_map(|piece| &piece.orphan_places).copied().collect();
        if !orphans.is_empty() {
            for (hash, place) in orders.places.iter().zip(&place_of) {
                is_apart[*place as usize] |= orphans.contains(hash);
            }
        }
        let transactions = attached.iter().flatten().flat_map(|piece| piece.transactions.iter().copied());
        for mut named in [orders.keys.clone(), transactions.collect::<Vec<(u64, u32)>>()] {
            named.par_sort_unstable();
            for same in named.chunk_by(|a, b| a.0 == b.0).filter(|same| same.len() > 1) {
                let mut places = same.iter().map(|(_, order)| place_of.get(*order as usize));
                let first = places.next().flatten();
                let is_far = places.any(|place| place != first);
                for (_, order) in same.iter().filter(|(_, order)| *order != NO_ORDER) {
                    kinds[*order as usize].set_odd();
                    is_apart[place_of[*order as usize] as usize] |= is_far;
                }
            }
        }

        let mut of = vec![0; sorted.len()];
        let mut begins = vec![0, 0];
        for (place, is_apart) in places.iter().zip(is_apart) {
            if place.start - begins[begins.len() - 1] >= at_once {
                begins.push(place.start);
            }
            for &order in &sorted[place.clone()] {
                of[order as usize] = if is_apart { Self::APART } else { begins.len() - 1 } as u32;
                if is_apart {
                    kinds[order as usize].set_odd();
                }
            }
        }
        begins.push(sorted.len());
        Self { sorted, begins, of }
    }

    /// How many stretches there are, with the one that is decided apart.
    pub(super) fn stretches(&self) -> usize {
        self.begins.len() - 1
    }

    pub(super) fn stretch_of(&self, order: u32) -> u32 {
        self.of[order as usize]
    }

    /// Its orders, those that are decided apart included.
    pub(super) fn orders_of(&self, stretch: usize) -> &[u32] {
        &self.sorted[self.begins[stretch]..self.begins[stretch + 1]]
    }
}

/// Rows as they stand in a file, those of one stretch together.
#[derive(Default)]
pub(super) struct Copied {
    pub(super) text: Vec<u8>,
    /// Where those of each stretch begin, and at the end how long the text is.
    pub(super) begins: Vec<u32>,
}

impl Copied {
    /// Copies the rows at these places of a file; they come in its order, each with its stretch.
    pub(super) fn new(source: &Source, rows: &[(u64, u32)], stretches: usize) -> Option<Self> {
        let mut copied = Self { text: Vec::new(), begins: vec![0; stretches + 1] };
        let Some(first) = rows.first() else { return Some(copied) };
        let mut records = source.records(first.0);
        let mut text = Vec::with_capacity(rows.len() * 192);
        let mut all: Vec<(u32, Range<usize>)> = Vec::with_capacity(rows.len());
        for &(at, stretch) in rows {
            records.jump(at).ok()?;
            let begin = text.len();
            text.extend_from_slice(records.next_bytes().ok()??);
            if !text.ends_with(b"\n") {
                text.push(b'\n');
            }
            all.push((stretch, begin..text.len()));
        }
        all.sort_by_key(|(stretch, _)| *stretch);
        copied.text.reserve_exact(text.len());
        for (stretch, range) in all {
            copied.text.extend_from_slice(&text[range]);
            copied.begins[stretch as usize + 1] = u32::try_from(copied.text.len()).ok()?;
        }
        for stretch in 0..stretches {
            copied.begins[stretch + 1] = copied.begins[stretch + 1].max(copied.begins[stretch]);
        }
        Some(copied)
    }

    pub(super) fn of(&self, stretch: usize) -> &[u8] {
        &self.text[self.begins[stretch] as usize..self.begins[stretch + 1] as usize]
    }
}

/// The second pass: every row of the orders that are not plain, and every orphan.
pub(super) fn copy_rows(
    sources: &[Source; 4],
    orders: &Orders,
    attached: &[Vec<Attached>; 4],
    stretch_of: &[u32],
    stretches: usize,
) -> Option<[Vec<Copied>; 4]> {
    let rows: Vec<(u64, u32)> = orders
        .rows
        .iter()
        .zip(stretch_of)
        .filter(|(_, stretch)| **stretch != NO_STRETCH)
        .map(|(row, stretch)| (row.at, *stretch))
        .collect();
    let parts: Vec<&[(u64, u32)]> = rows.chunks(1 << 14).collect();
    let copied = side_by_side(parts.len(), |i| Copied::new(&sources[0], parts[i], stretches))?;
    let of = |row: &Row| match row.order {
        NO_ORDER => Layout::APART as u32,
        order => stretch_of[order as usize],
    };
    let copy = |ledger: usize| {
        side_by_side(attached[ledger].len(), |piece| {
            let start = sources[ledger].piece(piece).start;
            let rows = attached[ledger][piece].rows.iter().map(|row| (start + row.at(), of(row)));
            let rows: Vec<(u64, u32)> = rows.filter(|(_, stretch)| *stretch != NO_STRETCH).collect();
            Copied::new(&sources[ledger], &rows, stretches)
        })
    };
    Some([copied, copy(1)?, copy(2)?, copy(3)?])
}
