//! How much of their leases holds took, in percent.

use crate::core::time::Span;

/// Percents beyond this are counted as this; the greatest is kept as it is.
const MOST: u8 = u8::MAX;

/// Counts by percent, with the greatest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ratios {
    /// By percent, ascending; only those that came.
    counts: Vec<(u8, u32)>,
    greatest: u32,
}

/// How much of a lease a time is, in whole percent, the fraction cut.
pub(super) fn percent(held: Span, lease: Span) -> u32 {
    let percent = i128::from(held.micros().max(0)) * 100 / i128::from(lease.micros().max(1));
    u32::try_from(percent).unwrap_or(u32::MAX)
}

impl Ratios {
    pub fn add(&mut self, percent: u32) {
        self.greatest = self.greatest.max(percent);
        let at = u8::try_from(percent).unwrap_or(MOST);
        match self.counts.binary_search_by_key(&at, |(percent, _)| *percent) {
            Ok(i) => self.counts[i].1 = self.counts[i].1.saturating_add(1),
            Err(i) => self.counts.insert(i, (at, 1)),
        }
    }

    pub fn count(&self) -> u64 {
        self.counts.iter().map(|(_, n)| u64::from(*n)).sum()
    }

    /// The greatest of all, in percent.
    pub const fn greatest(&self) -> u32 {
        self.greatest
    }

    /// The least percent that so many of a hundred holds do not go beyond; 0 where there are none.
    pub fn quantile(&self, of_hundred: u64) -> u32 {
        let wanted = (self.count() * of_hundred).div_ceil(100).max(1);
        let mut seen = 0;
        for (percent, n) in &self.counts {
            seen += u64::from(*n);
            if seen >= wanted {
                return if *percent == MOST { self.greatest } else { u32::from(*percent) };
            }
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_sorted_list() {
        let mut ratios = Ratios::default();
        assert_eq!((ratios.quantile(50), ratios.greatest()), (0, 0));
        (1..=100).rev().for_each(|percent| ratios.add(percent));
        assert_eq!((ratios.quantile(50), ratios.quantile(95), ratios.greatest()), (50, 95, 100));
        ratios.add(4000);
        assert_eq!((ratios.quantile(100), ratios.count()), (4000, 101));
        assert_eq!(percent(Span::from_secs(7), Span::from_secs(10)), 70);
        assert_eq!(percent(Span::from_secs(-7), Span::from_secs(10)), 0);
    }
}
