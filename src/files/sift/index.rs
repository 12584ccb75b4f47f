//! Orders by the hash of their tenant and id.

use super::orders::NO_ORDER;

/// A table of as many slots as are needed. An order stands in the slot that the upper half of its hash names, or in the
/// next free one behind it, beside that half: one look into memory tells nearly always whether it is the one.
#[derive(Default)]
pub(super) struct Index {
    /// Half a hash and an order; a free one has [`NO_ORDER`].
    slots: Vec<(u32, u32)>,
    orders: usize,
}

impl Index {
    /// The order of this hash that is the one.
    pub(super) fn find(&self, hash: u64, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        let half = (hash >> 32) as u32;
        let taken = self.from(half).map(|i| self.slots[i]).take_while(|(_, order)| *order != NO_ORDER);
        taken.filter(|(of, _)| *of == half).map(|(_, order)| order).find(|order| is_it(*order))
    }

    pub(super) fn insert(&mut self, hash: u64, order: u32) {
        self.orders += 1;
        // A third of the slots stays free: there are none far behind the one that is named.
        if self.orders + self.orders / 2 > self.slots.len() {
            let slots = vec![(0, NO_ORDER); (2 * self.slots.len()).max(1 << 10)];
            for (half, order) in std::mem::replace(&mut self.slots, slots) {
                if order != NO_ORDER {
                    self.put(half, order);
                }
            }
        }
        self.put((hash >> 32) as u32, order);
    }

    fn put(&mut self, half: u32, order: u32) {
        let free = self.from(half).find(|i| self.slots[*i].1 == NO_ORDER);
        self.slots[free.expect("a third of the slots is free")] = (half, order);
    }

    /// All slots, from the named one on.
    fn from(&self, half: u32) -> impl Iterator<Item = usize> + use<> {
        let slots = self.slots.len();
        let named = ((u64::from(half) * slots as u64) >> 32) as usize;
        (named..slots).chain(0..named)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_is_found_however_crowded_its_slots_are() {
        // The last slots overflow into the first.
        let hash = |order: u32| u64::from(u32::MAX - order / 100) << 32;
        let mut index = Index::default();
        for order in 0..5000 {
            assert_eq!(index.find(hash(order), |other| other == order), None);
            index.insert(hash(order), order);
        }
        for order in 0..5000 {
            assert_eq!(index.find(hash(order), |other| other == order), Some(order));
        }
    }
}
