//! The incident by seconds: orders by who wrote them, captures, and what onefold did when.

use std::collections::BTreeMap;

use crate::core::time::Timestamp;

const SECOND: i64 = 1_000_000;

/// How many there were in which second.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PerSecond(BTreeMap<i64, u64>);

impl PerSecond {
    /// Adds `n` to the second that an instant lies in.
    pub fn add(&mut self, at: Timestamp, n: u64) {
        *self.0.entry(at.micros().div_euclid(SECOND)).or_default() += n;
    }

    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    fn ends(&self) -> Option<(i64, i64)> {
        Some((*self.0.keys().next()?, *self.0.keys().next_back()?))
    }

    fn spread(&self, first: i64, bucket: i64, buckets: usize) -> Vec<u64> {
        let mut counts = vec![0; buckets];
        for (second, n) in &self.0 {
            let at = usize::try_from((second - first) / bucket).unwrap_or(0);
            counts[at.min(buckets - 1)] += n;
        }
        counts
    }
}

/// Something that happened at one instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    pub what: &'static str,
    pub at: Timestamp,
}

/// What was read again of a plan's scope, second by second.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// By the orders' source; empty where they have none.
    pub orders: BTreeMap<String, PerSecond>,
    pub captures: PerSecond,
    /// In the order of time.
    pub marks: Vec<Mark>,
}

/// A timeline cut into equal pieces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    pub begins: Timestamp,
    /// In seconds.
    pub bucket: i64,
    /// The sources with most orders first; what comes behind the fifth is one.
    pub orders: Vec<(String, Vec<u64>)>,
    pub captures: Vec<u64>,
}

/// Sources with a colour of their own.
const SOURCES: usize = 5;
/// Lengths of a piece that a person reads easily, in seconds.
const BUCKETS: [i64; 15] = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 21600, 86400, 604_800];

impl Timeline {
    /// At most `most` pieces from the first order or capture to the last; `None` where there is neither.
    pub fn picture(&self, most: usize) -> Option<Picture> {
        let all = self.orders.values().chain([&self.captures]);
        let ends: Vec<_> = all.filter_map(PerSecond::ends).collect();
        let first = ends.iter().map(|(first, _)| *first).min()?;
        let last = ends.iter().map(|(_, last)| *last).max()?;
        let length = last - first + 1;
        let most = i64::try_from(most).unwrap_or(i64::MAX).max(1);
        let fits = |bucket: &&i64| (length + **bucket - 1) / **bucket <= most;
        let bucket = BUCKETS.iter().find(fits).copied().unwrap_or((length + most - 1) / most);
        // Pieces begin where a clock's do.
        let first = first.div_euclid(bucket) * bucket;
        let buckets = usize::try_from((last - first) / bucket + 1).ok()?;

        let mut by_size: Vec<_> = self.orders.iter().collect();
        by_size.sort_by_key(|(name, counts)| (std::cmp::Reverse(counts.total()), *name));
        let mut orders: Vec<(String, Vec<u64>)> = Vec::new();
        for (i, (name, counts)) in by_size.iter().enumerate() {
            let spread = counts.spread(first, bucket, buckets);
            if i < SOURCES || by_size.len() == SOURCES + 1 {
                orders.push(((*name).clone(), spread));
            } else if i == SOURCES {
                orders.push((format!("{} others", by_size.len() - SOURCES), spread));
            } else if let Some((_, rest)) = orders.last_mut() {
                rest.iter_mut().zip(spread).for_each(|(sum, n)| *sum += n);
            }
        }
        let captures = self.captures.spread(first, bucket, buckets);
        Some(Picture { begins: Timestamp::from_micros(first * SECOND), bucket, orders, captures })
    }
}

impl Picture {
    /// Orders of all sources, piece by piece.
    pub fn totals(&self) -> Vec<u64> {
        (0..self.captures.len()).map(|i| self.orders.iter().map(|(_, counts)| counts[i]).sum()).collect()
    }

    /// Where an instant lies, from 0 at the left to 1 at the right; outside these where it is outside.
    pub fn place(&self, at: Timestamp) -> f64 {
        let length = self.captures.len() as f64 * self.bucket as f64 * SECOND as f64;
        at.since(self.begins).micros() as f64 / length
    }

    /// Where the picture ends.
    pub fn ends(&self) -> Timestamp {
        let length = i64::try_from(self.captures.len()).unwrap_or(i64::MAX);
        Timestamp::from_micros(
            self.begins.micros().saturating_add(length.saturating_mul(self.bucket).saturating_mul(SECOND)),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * SECOND + 1)
    }

    #[test]
    fn nothing_is_lost_however_wide_the_pieces_are() {
        let mut timeline = Timeline::default();
        for (i, source) in ["a", "b", "c", "d", "e", "f", "g"].iter().enumerate() {
            let counts = timeline.orders.entry((*source).to_owned()).or_default();
            (0..=i as i64).for_each(|n| counts.add(at(n * 997), 2));
        }
        timeline.captures.add(at(5000), 3);
        for most in [1, 7, 300, 100_000] {
            let picture = timeline.picture(most).unwrap();
            assert!(picture.captures.len() <= most + 1, "{most}: {}", picture.captures.len());
            assert_eq!(picture.totals().iter().sum::<u64>(), 56, "{most}");
            assert_eq!(picture.captures.iter().sum::<u64>(), 3);
            assert_eq!(picture.orders.len(), 6);
            assert_eq!((picture.orders[0].0.as_str(), picture.orders[5].0.as_str()), ("g", "2 others"));
        }
        assert_eq!(timeline.picture(6000).unwrap().bucket, 1);
        assert_eq!(Timeline::default().picture(10), None);
    }

    #[test]
    fn an_instant_outside_is_placed_outside() {
        let mut timeline = Timeline::default();
        timeline.captures.add(at(100), 1);
        timeline.captures.add(at(199), 1);
        let picture = timeline.picture(100).unwrap();
        assert!((picture.place(Timestamp::from_micros(150 * SECOND)) - 0.5).abs() < 1e-9);
        assert!(picture.place(at(99)) < 0.0 && picture.place(at(201)) > 1.0);
        assert_eq!(picture.ends(), Timestamp::from_micros(200 * SECOND));
    }
}
