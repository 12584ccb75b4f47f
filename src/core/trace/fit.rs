//! How well a log and the orders beside it fit.

use super::Log;
use super::access::{AccessLine, Source};
use super::arrival::{Arrival, SKEW};
use super::attach::Basis;
use crate::core::time::Span;

/// From one in so many on a misfit is told: of fewer, a box office or a bot has its own reasons.
const TOLD_FROM: u64 = 10;
/// How many orders are named that only the log knows.
const NAMED: usize = 5;

/// Counts over all purchases of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Fit {
    /// Orders that were written while the log went on.
    pub orders: u64,
    pub orders_without_line: u64,
    /// Lines that were answered as done.
    pub lines: u64,
    pub lines_without_order: u64,
    /// Orders with a line, and those of them whose times differ by more than [`SKEW`] from what can be.
    pub matched: u64,
    pub off: u64,
    /// By how much the middle one of those lines is later than can be.
    #[serde(rename = "later_us")]
    pub later: Option<Span>,
    /// Orders with an answer that names them and says how long it took; those that are before their line; those of
    /// them that would not be if the line's time were that of the answer.
    pub answered: u64,
    pub answered_later: u64,
    pub answered_at: u64,
    /// Lines that name an order which was not read, and the first of these orders.
    pub unknown: u64,
    pub unknown_orders: Vec<String>,
    /// Orders that are with a line by buyer and time alone; and those, by whatever name, that another line of the same
    /// name may have written as well.
    pub inferred: u64,
    pub rivalled: u64,
    /// Lines whose request id is that of another request.
    pub reused: u64,
    /// Lines that tell of an attempt which another line tells of, too, from before it came until after it was answered.
    pub layered: u64,
    #[serde(skip)]
    all_lines: u64,
    #[serde(skip)]
    offs: Vec<Span>,
}

impl Fit {
    pub fn add(&mut self, arrival: &Arrival<'_>, log: &Log) {
        if let Some(rows) = &arrival.order {
            let written = rows.order.created_at;
            let went_on = log.first.is_some_and(|first| first.minus(SKEW) <= written)
                && log.last.is_some_and(|last| written <= last.plus(SKEW));
            self.orders += u64::from(went_on);
            self.orders_without_line += u64::from(went_on && arrival.line.is_none());
            self.matched += u64::from(arrival.line.is_some());
            self.offs.extend(arrival.off().filter(|off| off.abs() > SKEW));
            self.inferred += u64::from(arrival.line.is_some() && arrival.basis == Basis::Buyer);
            self.rivalled += u64::from(arrival.has_rival);
        }
        self.reused += u64::from(arrival.reuses_id);
        let Some(line) = arrival.line else { return };
        self.all_lines += 1;
        self.lines += u64::from(line.is_done());
        self.lines_without_order += u64::from(arrival.left_nothing());
        if let (Some(rows), Some(_), Some(latency)) = (&arrival.order, &line.order_id, line.latency) {
            let written = rows.order.created_at;
            self.answered += 1;
            self.answered_later += u64::from(line.at > written);
            self.answered_at += u64::from(line.at > written && line.at.minus(latency) <= written);
        }
        if let Some(order) = arrival.unknown() {
            self.unknown += 1;
            if self.unknown_orders.len() < NAMED && !self.unknown_orders.iter().any(|o| o == order.as_str()) {
                self.unknown_orders.push(order.to_string());
            }
        }
    }

    /// Looks through what came for one purchase, by time, for lines of two layers.
    pub fn add_layers(&mut self, arrivals: &[Arrival<'_>]) {
        let is_sent = |a: &&Arrival<'_>| matches!(a.source, Source::Client | Source::Gateway);
        let lines: Vec<_> = arrivals.iter().filter(is_sent).filter_map(|a| a.line).collect();
        let mut under_way: Vec<&AccessLine> = Vec::new();
        for line in lines {
            under_way.retain(|outer| outer.latency.is_some_and(|took| line.at <= outer.at.plus(took)));
            self.layered += u64::from(under_way.iter().any(|other| {
                // Of two that came at once, either may stand first.
                line.is_layer_within(other) || other.is_layer_within(line)
            }));
            under_way.push(line);
        }
    }

    /// All was added.
    #[must_use]
    pub fn ended(mut self) -> Self {
        self.off = self.offs.len() as u64;
        let middle = self.offs.len() / 2;
        self.later = (self.off > 0).then(|| *self.offs.select_nth_unstable(middle).1);
        self
    }

    pub fn lacks_lines(&self) -> bool {
        is_told(self.orders_without_line, self.orders)
    }

    pub fn lacks_orders(&self) -> bool {
        is_told(self.lines_without_order, self.lines)
    }

    /// Whether the log has lines of two layers, so that arrivals count twice.
    pub fn is_layered(&self) -> bool {
        is_told(self.layered, self.all_lines)
    }

    pub fn is_off(&self) -> bool {
        is_told(self.off, self.matched)
    }

    /// Whether most lines are later than their order, and hardly one less the time that its answer took.
    pub fn is_of_answers(&self) -> bool {
        self.answered_later * 2 > self.answered && self.answered_at * 10 >= self.answered_later * 9
    }
}

fn is_told(part: u64, all: u64) -> bool {
    part > 0 && part.saturating_mul(TOLD_FROM) >= all
}
