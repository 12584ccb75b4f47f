//! What a drill found out, counted: one purchase confirmation, asked for many times at once. The counts stay as
//! small as they begin, however many rounds there are.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::status::status_type;

status_type!(
    /// What goes wrong on purpose, once a round.
    Fault {
        /// The first order is committed, and its client never hears of it.
        LoseAnswer = "lose-answer",
        /// Whoever took the key loses its connection right after that commit; in every other round in the
        /// middle of the effect.
        CrashAfterCommit = "crash-after-commit",
        /// Whoever took the key works for longer than the others wait.
        Slow = "slow",
        /// Whoever took the key stalls until its lease is over and another has done its work; then it wakes.
        LeaseOver = "lease-over",
        /// One request asks for another amount under the same key.
        OtherDigest = "other-digest",
    }
);

impl Fault {
    /// Whether the one that it happens to waits for the others, and so needs some beside it.
    pub const fn waits_for_others(self) -> bool {
        matches!(self, Self::Slow | Self::LeaseOver)
    }
}

/// How long answers took, in microseconds, to within 2 %: so many values fall below or on each bound.
#[derive(Clone, Debug, Default)]
pub struct Latencies {
    counts: BTreeMap<u64, u64>,
    max: u64,
}

impl Latencies {
    pub fn add(&mut self, micros: u64) {
        // The seven leading bits tell values apart.
        let lost = (u64::BITS - micros.leading_zeros()).saturating_sub(7);
        let bound = micros | ((1 << lost) - 1);
        *self.counts.entry(bound).or_default() += 1;
        self.max = self.max.max(micros);
    }

    /// What so many percent of the values are below or at; 0, where there are none.
    pub fn percentile(&self, percent: u64) -> u64 {
        let wanted = (self.counts.values().sum::<u64>() * percent).div_ceil(100);
        let mut seen = 0;
        for (bound, count) in &self.counts {
            seen += count;
            if seen >= wanted {
                return self.max.min(*bound);
            }
        }
        self.max
    }

    pub const fn max(&self) -> u64 {
        self.max
    }

    fn absorb(&mut self, other: &Self) {
        for (bound, count) in &other.counts {
            *self.counts.entry(*bound).or_default() += count;
        }
        self.max = self.max.max(other.max);
    }
}

/// What became of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Orders that were committed.
    pub inserts: u64,
    /// Answers with the result of another request, or of an earlier one of this client.
    pub reuses: u64,
    /// Refused: the key is another request's.
    pub refusals: u64,
    /// Answered "still processing", and asked again later.
    pub still_processing: u64,
    /// How often a request looked again at a key that another held.
    pub waits: u64,
    /// Keys taken over after a lease that was over.
    pub take_overs: u64,
    /// Owners who were replaced, and could complete nothing.
    pub replaced: u64,
    /// Answers that were lost on purpose; their clients asked again.
    pub lost_answers: u64,
    /// Connections that were lost on purpose; their clients asked again.
    pub crashes: u64,
}

impl Counts {
    fn absorb(&mut self, other: &Self) {
        self.inserts += other.inserts;
        self.reuses += other.reuses;
        self.refusals += other.refusals;
        self.still_processing += other.still_processing;
        self.waits += other.waits;
        self.take_overs += other.take_overs;
        self.replaced += other.replaced;
        self.lost_answers += other.lost_answers;
        self.crashes += other.crashes;
    }
}

/// What one client saw, until it had its answer.
#[derive(Clone, Debug, Default)]
pub struct Told {
    pub counts: Counts,
    /// The order that it was answered with; none, where it was refused.
    pub order: Option<String>,
    /// In which parts a refused request differs.
    pub differing: Vec<String>,
    pub latencies: Latencies,
}

/// A round that left what it should not have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// Counted from 1.
    pub round: u64,
    /// The orders that it left.
    pub orders: Vec<String>,
    /// The orders that its clients were answered with.
    pub answered: BTreeSet<String>,
}

/// How many violations are told in full, and how many orders of each.
const TOLD: usize = 20;

/// All rounds of a drill.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub rounds: u64,
    pub counts: Counts,
    pub latencies: Latencies,
    pub differing: BTreeSet<String>,
    /// Orders that all rounds left.
    pub orders: u64,
    /// The least and the most that a round left.
    pub least: u64,
    pub most: u64,
    /// Rounds that left another number of orders than one, or answered with another than that one.
    pub violated: u64,
    pub violations: Vec<Violation>,
}

impl Tally {
    /// Adds a round: what its clients saw, and the orders that it left.
    pub fn add(&mut self, clients: &[Told], orders: &[String]) {
        self.rounds += 1;
        let mut answered = BTreeSet::new();
        for told in clients {
            self.counts.absorb(&told.counts);
            self.latencies.absorb(&told.latencies);
            self.differing.extend(told.differing.iter().cloned());
            answered.extend(told.order.iter().cloned());
        }
        let left = orders.len() as u64;
        self.orders += left;
        self.least = if self.rounds == 1 { left } else { self.least.min(left) };
        self.most = self.most.max(left);
        let is_one = matches!(orders, [one] if answered.iter().eq([one]));
        if !is_one {
            self.violated += 1;
            if self.violations.len() < TOLD {
                let orders = orders.iter().take(TOLD).cloned().collect();
                let answered = answered.into_iter().take(TOLD).collect();
                self.violations.push(Violation { round: self.rounds, orders, answered });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(order: Option<&str>) -> Told {
        let mut told = Told { order: order.map(str::to_owned), ..Told::default() };
        told.counts.reuses = 1;
        told.latencies.add(1_000);
        told
    }

    #[test]
    fn a_round_is_as_it_should_be_where_all_were_answered_with_the_one_order_that_is_there() {
        let one = ["O-1".to_owned()];
        let two = ["O-1".to_owned(), "O-2".to_owned()];
        let violated = |clients: &[Told], orders: &[String]| {
            let mut tally = Tally::default();
            tally.add(clients, orders);
            tally.violated == 1
        };
        assert!(!violated(&[client(Some("O-1")), client(Some("O-1")), client(None)], &one));
        assert!(violated(&[client(Some("O-1"))], &two));
        assert!(violated(&[client(Some("O-1"))], &[]));
        assert!(violated(&[client(Some("O-2"))], &one), "an order that is not there");
        assert!(violated(&[client(Some("O-1")), client(Some("O-2"))], &one));
        assert!(violated(&[client(None)], &one), "nobody heard of it");
    }

    #[test]
    fn rounds_add_up_and_only_some_violations_are_kept() {
        let mut tally = Tally::default();
        tally.add(&[client(Some("O-1"))], &["O-1".to_owned()]);
        for _ in 0..100 {
            tally.add(&[client(Some("O-1"))], &["O-1".to_owned(), "O-2".to_owned()]);
        }
        assert_eq!((tally.rounds, tally.orders, tally.least, tally.most), (101, 201, 1, 2));
        assert_eq!((tally.violated, tally.violations.len(), tally.counts.reuses), (100, TOLD, 101));
        assert_eq!(tally.violations[0].round, 2);
    }

    #[test]
    fn latencies_are_told_to_two_percent_in_little_room() {
        let mut latencies = Latencies::default();
        assert_eq!((latencies.percentile(50), latencies.max()), (0, 0));
        for micros in 1..=100_000 {
            latencies.add(micros);
        }
        for (percent, exact) in [(50, 50_000), (95, 95_000), (100, 100_000), (1, 1_000)] {
            let told = latencies.percentile(percent);
            assert!((exact..=exact + exact / 50).contains(&told), "{percent} %: {told}");
        }
        assert_eq!(latencies.max(), 100_000);
        assert!(latencies.counts.len() < 1_000);
    }
}
