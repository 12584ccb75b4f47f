//! Which orders are decided together, and where the rows stand of those that are not plain.

use std::hash::BuildHasher as _;

use foldhash::HashSet;
use foldhash::fast::RandomState;
use rayon::prelude::*;

use super::attached::Attached;
use super::orders::{NO_ORDER, Orders};
use super::source::Source;
use crate::core::plain::{Kind, LoneOrder};

/// In place of a stretch, for a plain order.
const NO_STRETCH: u32 = u32::MAX;

/// Which orders are decided together: those of a stretch of the plan. What may have to do with an order of another
/// place is decided apart from all stretches, and so is every orphan.
pub(super) struct Layout {
    /// All orders as a plan sorts them, by tenant, user and show.
    sorted: Vec<u32>,
    /// Where each stretch begins in it, and at the end how many orders there are; the first is [`Self::APART`], and empty.
    begins: Vec<u32>,
    /// By order: its stretch.
    of: Vec<u32>,
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
        attached: &[Attached; 4],
        hashing: &RandomState,
        at_once: usize,
    ) -> Self {
        let (sorted, places) = orders.by_place();
        let orders_of = |place: usize| &sorted[places[place] as usize..places[place + 1] as usize];
        let mut place_of = vec![0_u32; sorted.len()];
        for place in 0..places.len() - 1 {
            let same = orders_of(place);
            for &order in same {
                place_of[order as usize] = place as u32;
                if same.len() > 1 {
                    kinds[order as usize].set_odd();
                }
            }
        }

        let mut is_apart = vec![false; places.len() - 1];
        let orphans: HashSet<u64> = attached.iter().flat_map(|of| &of.orphan_places).copied().collect();
        if !orphans.is_empty() {
            let is_near = |order: &u32| {
                let LoneOrder { tenant_id, user_id, show_id, .. } = orders.get(*order);
                orphans.contains(&hashing.hash_one((tenant_id, user_id, show_id)))
            };
            let near: Vec<u32> = (0..sorted.len() as u32).into_par_iter().filter(is_near).collect();
            near.into_iter().for_each(|order| is_apart[place_of[order as usize] as usize] = true);
        }
        let transactions = attached.iter().flat_map(|of| of.transactions.iter().copied());
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

        let mut of = place_of;
        let mut begins = vec![0, 0];
        for (place, is_apart) in is_apart.into_iter().enumerate() {
            if places[place] - begins[begins.len() - 1] >= at_once as u32 {
                begins.push(places[place]);
            }
            for &order in orders_of(place) {
                of[order as usize] = if is_apart { Self::APART } else { begins.len() - 1 } as u32;
                if is_apart {
                    kinds[order as usize].set_odd();
                }
            }
        }
        begins.push(sorted.len() as u32);
        Self { sorted, begins, of }
    }

    /// How many stretches there are, with the one that is decided apart.
    pub(super) fn stretches(&self) -> usize {
        self.begins.len() - 1
    }

    /// Its orders, those that are decided apart included.
    pub(super) fn orders_of(&self, stretch: usize) -> &[u32] {
        &self.sorted[self.begins[stretch] as usize..self.begins[stretch + 1] as usize]
    }

    /// No row of these orders is read again.
    pub(super) fn leave_out(&mut self, is_plain: impl Fn(u32) -> bool) {
        for (order, of) in (0..).zip(&mut self.of) {
            if is_plain(order) {
                *of = NO_STRETCH;
            }
        }
    }

    /// Where in the file each order stands that is read again.
    pub(super) fn places_of_orders(&self, orders: &Orders) -> Places {
        self.places(self.of.iter().copied().zip(orders.places()))
    }

    /// The same for every row that attaches to such an order, and every orphan.
    pub(super) fn places_of_rows(&self, source: &Source, attached: &Attached) -> Places {
        let stretch_of = |order| if order == NO_ORDER { Self::APART as u32 } else { self.of[order as usize] };
        self.places(attached.rows.iter().enumerate().flat_map(|(piece, rows)| {
            let start = source.piece(piece).start;
            rows.iter().map(move |row| (stretch_of(row.order), start + row.at()))
        }))
    }

    fn places(&self, rows: impl Iterator<Item = (u32, u64)> + Clone) -> Places {
        Places::new(rows.filter(|(stretch, _)| *stretch != NO_STRETCH), self.stretches())
    }
}

/// Where rows begin in a file: those of a stretch together, in the file's order.
pub(super) struct Places {
    places: Vec<u64>,
    /// Where those of each stretch end.
    ends: Vec<u32>,
}

impl Places {
    /// Of rows in the file's order, each with its stretch.
    fn new(rows: impl Iterator<Item = (u32, u64)> + Clone, stretches: usize) -> Self {
        let mut counts = vec![0; stretches];
        rows.clone().for_each(|(stretch, _)| counts[stretch as usize] += 1);
        let mut ends = counts;
        let mut all = 0;
        for end in &mut ends {
            all += std::mem::replace(end, all);
        }
        let mut places = vec![0; all as usize];
        for (stretch, at) in rows {
            let end = &mut ends[stretch as usize];
            places[*end as usize] = at;
            *end += 1;
        }
        Self { places, ends }
    }

    pub(super) fn of(&self, stretch: usize) -> &[u64] {
        let begin = stretch.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.places[begin as usize..self.ends[stretch] as usize]
    }
}
