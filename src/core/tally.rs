//! What many intents come to, where the intents themselves need not be kept: there may be millions.

use std::collections::BTreeMap;

use super::dossier::Deed;
use super::money::Currency;
use super::plan::{Outcome, PlannedIntent, Step, refunds};

/// Intents of one outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub intents: usize,
    pub orders: usize,
    /// Those that have steps.
    pub with_steps: usize,
    pub steps: usize,
    /// What the steps give back, by currency, in minor units.
    pub refunds: BTreeMap<Currency, i128>,
}

/// How many intents there are of each outcome, and what their steps are for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    outcomes: BTreeMap<Outcome, Counts>,
    deeds: BTreeMap<Deed, usize>,
}

impl Tally {
    pub fn of<'i>(intents: impl IntoIterator<Item = &'i PlannedIntent>) -> Self {
        let mut tally = Self::default();
        intents.into_iter().for_each(|intent| tally.add(intent));
        tally
    }

    pub fn add(&mut self, intent: &PlannedIntent) {
        self.add_left(intent, |_| false);
    }

    /// Adds an intent some of whose steps are done: these count no more.
    pub fn add_left(&mut self, intent: &PlannedIntent, is_done: impl Fn(&Step) -> bool) {
        let left = || intent.steps.iter().filter(|step| !is_done(step));
        let counts = self.outcomes.entry(intent.outcome).or_default();
        let steps = left().count();
        counts.intents += 1;
        counts.orders += intent.orders.len();
        counts.with_steps += usize::from(steps > 0);
        counts.steps += steps;
        for (currency, amount) in refunds(left()) {
            *counts.refunds.entry(currency).or_default() += amount;
        }
        for deed in left().filter_map(Deed::of) {
            *self.deeds.entry(deed).or_default() += 1;
        }
    }

    /// Adds purchases that are CLEAN, and of one order each.
    pub fn add_plain(&mut self, purchases: usize) {
        if purchases > 0 {
            let counts = self.outcomes.entry(Outcome::Clean).or_default();
            counts.intents += purchases;
            counts.orders += purchases;
        }
    }

    pub fn add_all(&mut self, other: &Self) {
        for (outcome, more) in &other.outcomes {
            let counts = self.outcomes.entry(*outcome).or_default();
            counts.intents += more.intents;
            counts.orders += more.orders;
            counts.with_steps += more.with_steps;
            counts.steps += more.steps;
            for (currency, amount) in &more.refunds {
                *counts.refunds.entry(*currency).or_default() += amount;
            }
        }
        for (deed, more) in &other.deeds {
            *self.deeds.entry(*deed).or_default() += more;
        }
    }

    /// The intents of an outcome.
    pub fn counts(&self, outcome: Outcome) -> Counts {
        self.outcomes.get(&outcome).cloned().unwrap_or_default()
    }

    /// How many steps complete such a deed.
    pub fn deeds(&self, deed: Deed) -> usize {
        self.deeds.get(&deed).copied().unwrap_or_default()
    }

    /// How many intents there are.
    pub fn intents(&self) -> usize {
        self.outcomes.values().map(|counts| counts.intents).sum()
    }

    /// How many intents have steps.
    pub fn with_steps(&self) -> usize {
        self.outcomes.values().map(|counts| counts.with_steps).sum()
    }

    pub fn steps(&self) -> usize {
        self.outcomes.values().map(|counts| counts.steps).sum()
    }

    /// What goes back in all, by currency, in minor units.
    pub fn refunds(&self) -> BTreeMap<Currency, i128> {
        let mut all = BTreeMap::new();
        for (currency, amount) in self.outcomes.values().flat_map(|counts| &counts.refunds) {
            *all.entry(*currency).or_default() += amount;
        }
        all
    }
}
