//! Which line of the log wrote which order.
//!
//! No request writes before it comes. So each order looks, by what names it best, for a line that is not after
//! it: one that names the order; then one of its trace id or request id; of its key; of its buyer. Several
//! orders of one name get its lines in order, one each, and of lines that nobody else took the one that was in
//! flight when the order was written, or else the latest, is its own. Where that has an order written after its
//! request was answered, and another assignment has each written while its request was under way, that one is taken.
//!
//! An order that only lines after it name was written by a request before them, whose answer was lost: they were given
//! it again. It belongs to the first of them only if there is no such request, or if that has the order's own trace id
//! and no line before it has: then clocks differ. Where more orders find a line if clocks
//! differ by [`SKEW`], that is allowed. A line that names an order is that order's alone, and one of its trace
//! id is the order's, however far their times are apart. One that was refused (an answer of 400 and above, but
//! for those that mean that there was none) wrote nothing, unless it names the order.
//!
//! Where another line of the same name was without an answer when an order was written, and none of these rules tells the
//! two apart, that is said of the order; of a retry that is answered with an order also where the attempt before it was.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::NEAR;
use super::access::AccessLine;
use super::arrival::{Placed, SKEW};
use super::attach::Basis;
use crate::core::join::OrderRows;
use crate::core::time::{Span, Timestamp};

/// The line of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Writer {
    /// Its place.
    pub line: usize,
    /// By what it is known.
    pub basis: Basis,
    /// Whether another line of the same name may have written the order as well, as far as can be known.
    pub has_rival: bool,
}

/// For each order its line. Lines and orders come by time.
pub fn matched(orders: &[OrderRows<'_>], lines: &[Placed]) -> Vec<Option<Writer>> {
    let mut matching = Matching {
        orders,
        lines,
        line_of: vec![None; orders.len()],
        is_taken: vec![false; lines.len()],
        named_later: vec![None; orders.len()],
    };
    matching.by_order_id();
    matching.by_name(Basis::Trace, SKEW);
    matching.by_name(Basis::Key, SKEW);
    matching.by_name(Basis::Trace, Span::from_micros(i64::MAX));
    matching.by_lines_that_name_it_later(true);
    matching.by_name(Basis::Buyer, SKEW);
    matching.by_lines_that_name_it_later(false);
    matching.say_rivals();
    matching.line_of
}

/// By what lines and orders are brought together; of a buyer both parts.
type Name<'a> = (&'a str, &'a str);

/// The orders of one name and the lines of it, by their places.
#[derive(Default)]
struct Group {
    orders: Vec<usize>,
    lines: Vec<usize>,
}

struct Matching<'m> {
    orders: &'m [OrderRows<'m>],
    lines: &'m [Placed],
    line_of: Vec<Option<Writer>>,
    is_taken: Vec<bool>,
    /// Of an order that is named only by lines which are later than it, the first of them: clocks differ, or a
    /// request before it wrote the order and this one was given its answer.
    named_later: Vec<Option<usize>>,
}

impl<'m> Matching<'m> {
    fn line(&self, line: usize) -> &'m AccessLine {
        &self.lines[line].0
    }

    fn take(&mut self, order: usize, line: usize, basis: Basis) {
        self.line_of[order] = Some(Writer { line, basis, has_rival: false });
        self.is_taken[line] = true;
    }

    fn by_order_id(&mut self) {
        let ids: HashMap<_, _> =
            self.orders.iter().enumerate().map(|(at, rows)| (&rows.order.order_id, at)).collect();
        for at in 0..self.lines.len() {
            let line = self.line(at);
            let Some(&order) = line.order_id.as_ref().and_then(|id| ids.get(id)) else { continue };
            if line.at > self.orders[order].order.created_at {
                self.named_later[order].get_or_insert(at);
            } else if self.line_of[order].is_none() {
                self.take(order, at, Basis::Order);
            }
        }
    }

    /// `of_own_trace` where only a line that has the order's own trace id will do.
    fn by_lines_that_name_it_later(&mut self, of_own_trace: bool) {
        for order in 0..self.orders.len() {
            let (None, Some(line)) = (self.line_of[order], self.named_later[order]) else { continue };
            let trace = self.orders[order].order.trace_id.as_deref();
            let traces = [self.line(line).trace_id.as_deref(), Some(self.line(line).request_id.as_str())];
            if !of_own_trace || (trace.is_some() && traces.contains(&trace)) {
                self.take(order, line, Basis::Order);
            }
        }
    }

    /// By one kind of name, for what is not matched yet.
    fn by_name(&mut self, basis: Basis, skew: Span) {
        for group in self.groups(basis) {
            let mut orders: Vec<_> =
                group.orders.into_iter().filter(|o| self.line_of[*o].is_none()).collect();
            let lines: Vec<_> = group.lines.into_iter().filter(|l| !self.is_taken[*l]).collect();
            let fit = loop {
                let fit = self.fit(&orders, &lines, skew);
                // What was answered before the order was there did not write it, and a later line names it.
                let is_over = |(order, line): &(usize, usize)| {
                    self.named_later[orders[*order]].is_some()
                        && !is_open(self.line(lines[*line]), self.written(orders[*order]))
                };
                let over: Vec<_> = fit.iter().filter(|pair| is_over(pair)).map(|(order, _)| *order).collect();
                if over.is_empty() {
                    break fit;
                }
                over.iter().rev().for_each(|order| _ = orders.remove(*order));
            };
            for (order, line) in fit {
                self.take(orders[order], lines[line], basis);
            }
        }
    }

    /// Orders and lines of one name, as pairs of their places in these.
    fn fit(&self, orders: &[usize], lines: &[usize], skew: Span) -> Vec<(usize, usize)> {
        let exact = self.in_order(orders, lines, Span::from_micros(0));
        if exact.len() == orders.len().min(lines.len()) {
            return self.under_way(orders, lines, exact);
        }
        let loose = self.in_order(orders, lines, skew);
        self.under_way(orders, lines, if loose.len() > exact.len() { loose } else { exact })
    }

    /// In the order of their first orders.
    fn groups(&self, basis: Basis) -> Vec<Group> {
        let is_free = |order: usize| self.line_of[order].is_none();
        self.groups_of(basis, &is_free, &|line| !self.is_taken[line])
    }

    fn groups_of(
        &self,
        basis: Basis,
        has_order: &dyn Fn(usize) -> bool,
        has_line: &dyn Fn(usize) -> bool,
    ) -> Vec<Group> {
        let mut groups: Vec<Group> = Vec::new();
        let mut places: HashMap<Name<'m>, usize> = HashMap::new();
        for order in (0..self.orders.len()).filter(|order| has_order(*order)) {
            for name in self.names_of_order(order, basis) {
                let place = *places.entry(name).or_insert_with(|| {
                    groups.push(Group::default());
                    groups.len() - 1
                });
                groups[place].orders.push(order);
            }
        }
        for line in (0..self.lines.len()).filter(|line| has_line(*line)) {
            for name in names_of_line(self.line(line), basis) {
                if let Some(place) = places.get(&name) {
                    groups[*place].lines.push(line);
                }
            }
        }
        groups
    }

    fn names_of_order(&self, order: usize, basis: Basis) -> Vec<Name<'m>> {
        let row = self.orders[order].order;
        let named_later = self.named_later[order].map(|line| self.line(line));
        match basis {
            Basis::Trace => {
                let of_line = named_later.map(|line| line.request_id.as_str());
                distinct([row.trace_id.as_deref(), of_line])
            }
            Basis::Key => distinct([row.idempotency_key.as_ref().map(|key| key.as_str()), None]),
            Basis::Buyer => vec![(row.user_id.as_str(), row.show_id.as_str())],
            Basis::Order | Basis::Row | Basis::Message => Vec::new(),
        }
    }

    /// The first line to the first order.
    fn in_order(&self, orders: &[usize], lines: &[usize], skew: Span) -> Vec<(usize, usize)> {
        let written = |order: usize| self.written(orders[order]);
        let came = |line: usize| self.line(lines[line]).at;
        let mut pairs = Vec::new();
        for (at, order) in orders.iter().enumerate() {
            // What is named later has a line to fall back upon.
            let skew = if self.named_later[*order].is_some() { Span::from_micros(0) } else { skew };
            if pairs.len() < lines.len() && came(pairs.len()) <= written(at).plus(skew) {
                pairs.push((at, pairs.len()));
            }
        }
        // The first lines are given away. From the last on, each may move to one that nobody took.
        let mut end = lines.len();
        for (order, line) in pairs.iter_mut().rev() {
            let at = written(*order);
            if !is_in_flight(self.line(lines[*line]), at) {
                let until = *line + lines[*line..end].partition_point(|l| self.line(*l).at <= at);
                let is_open = |l: &usize| is_in_flight(self.line(lines[*l]), at);
                let in_flight = (*line..until).rev().skip_while(|l| !is_open(l)).take_while(is_open).last();
                *line = in_flight.unwrap_or_else(|| (*line).max(until.saturating_sub(1)));
            }
            end = *line;
        }
        pairs
    }

    /// Pairs of which each order was written while its line was under way, in place of those that they and the given
    /// ones have in common, where some of the given ones are none and all of their orders have a line so.
    fn under_way(
        &self,
        orders: &[usize],
        lines: &[usize],
        pairs: Vec<(usize, usize)>,
    ) -> Vec<(usize, usize)> {
        let fits =
            |(order, line): &(usize, usize)| is_open(self.line(lines[*line]), self.written(orders[*order]));
        if pairs.iter().all(fits) {
            return pairs;
        }
        // Of the lines under way, the one that is answered first.
        let (mut open, mut come, mut others) = (BinaryHeap::new(), 0, Vec::new());
        for (order, place) in orders.iter().enumerate() {
            let at = self.written(*place);
            while let Some(line) = lines.get(come).map(|line| self.line(*line)).filter(|line| line.at <= at) {
                open.push(Reverse((open_until(line), come)));
                come += 1;
            }
            while open.peek().is_some_and(|Reverse((until, _))| *until < at) {
                open.pop();
            }
            if let Some(Reverse((_, line))) = open.pop() {
                others.push((order, line));
            }
        }
        let mut joined = Joined::new(orders.len() + lines.len());
        for (order, line) in pairs.iter().chain(&others) {
            joined.join(*order, orders.len() + line);
        }
        // By what is joined: whether it is better so.
        let mut is_better = vec![(false, true); orders.len() + lines.len()];
        for pair in &pairs {
            let (misfits, is_whole) = &mut is_better[joined.of(pair.0)];
            *misfits |= !fits(pair);
            *is_whole &= others.binary_search_by_key(&pair.0, |(order, _)| *order).is_ok();
        }
        let mut is_changed = |order: usize| is_better[joined.of(order)] == (true, true);
        let kept: Vec<_> = pairs.into_iter().filter(|(order, _)| !is_changed(*order)).collect();
        let new = others.into_iter().filter(|(order, _)| is_changed(*order));
        let mut all: Vec<_> = new.chain(kept).collect();
        all.sort_unstable();
        all
    }

    fn written(&self, order: usize) -> Timestamp {
        self.orders[order].order.created_at
    }

    /// Which orders another line of the same name may have written as well.
    fn say_rivals(&mut self) {
        let mut order_of = vec![None; self.lines.len()];
        for (order, writer) in self.line_of.iter().enumerate() {
            writer.iter().for_each(|writer| order_of[writer.line] = Some(order));
        }
        let mut rivalled = vec![false; self.orders.len()];
        for basis in [Basis::Trace, Basis::Key, Basis::Buyer] {
            // What is better known is not in doubt.
            let basis_of = |order: usize| self.line_of[order].map(|writer| writer.basis);
            let is_so = |order: usize| basis_of(order) == Some(basis);
            let is_open_to_doubt = |order: usize| basis_of(order) >= Some(basis);
            for group in self.groups_of(basis, &is_so, &|line| order_of[line].is_none_or(is_open_to_doubt)) {
                for order in group.orders {
                    let Some(own) = self.line_of[order] else { continue };
                    let at = self.written(order);
                    for line in group.lines.iter().filter(|line| **line != own.line) {
                        let other = self.line(*line);
                        // One that wrote another order is a rival if the two may change places, and so is this one then.
                        let may_swap = |other: usize| is_open(self.line(own.line), self.written(other));
                        let is_near = is_open(other, at) && at.since(other.at) <= NEAR;
                        if is_near && order_of[*line].is_none_or(may_swap) {
                            rivalled[order] = true;
                            order_of[*line].iter().for_each(|other| rivalled[*other] = true);
                        }
                    }
                }
            }
        }
        // A retry that came before the order was there may have waited for the one before it, and been given its order.
        let is_retry = |order: usize| {
            self.line_of[order].is_some_and(|w| w.basis == Basis::Order && self.line(w.line).attempt > 1)
        };
        let is_in_doubt = |line: usize| order_of[line].is_none_or(|order| rivalled[order]);
        for group in self.groups_of(Basis::Buyer, &is_retry, &is_in_doubt) {
            for order in group.orders {
                let Some(own) = self.line_of[order].map(|writer| self.line(writer.line)) else { continue };
                let at = self.written(order);
                let is_before =
                    |line: &AccessLine| line.at <= own.at && line.attempt < own.attempt && line.is_lost();
                rivalled[order] |= group
                    .lines
                    .iter()
                    .map(|line| self.line(*line))
                    .any(|line| is_before(line) && is_open(line, at) && at.since(line.at) <= NEAR);
            }
        }
        for (writer, has_rival) in self.line_of.iter_mut().zip(rivalled) {
            writer.iter_mut().for_each(|writer| writer.has_rival = has_rival);
        }
    }
}

/// What is joined with what.
struct Joined(Vec<usize>);

impl Joined {
    fn new(n: usize) -> Self {
        Self((0..n).collect())
    }

    fn of(&mut self, mut at: usize) -> usize {
        while self.0[at] != at {
            self.0[at] = self.0[self.0[at]];
            at = self.0[at];
        }
        at
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.of(a), self.of(b));
        self.0[a] = b;
    }
}

/// Whether a request had come and was not answered or given up yet.
fn is_in_flight(line: &AccessLine, at: Timestamp) -> bool {
    line.at <= at && line.latency.is_some_and(|latency| at <= line.at.plus(latency))
}

/// Until when a request may have written: until it was answered. One that was given up, or does not say how long it took,
/// may have at any time.
fn open_until(line: &AccessLine) -> Timestamp {
    let answered = line.latency.filter(|_| !line.is_lost()).map(|latency| line.at.plus(latency));
    answered.unwrap_or(Timestamp::from_micros(i64::MAX))
}

fn is_open(line: &AccessLine, at: Timestamp) -> bool {
    line.at <= at && at <= open_until(line)
}

fn distinct(names: [Option<&str>; 2]) -> Vec<Name<'_>> {
    let mut names: Vec<_> = names.into_iter().flatten().map(|name| (name, "")).collect();
    names.dedup();
    names
}

fn names_of_line(line: &AccessLine, basis: Basis) -> Vec<Name<'_>> {
    if line.order_id.is_some() || line.is_refused() {
        return Vec::new();
    }
    match basis {
        Basis::Trace => distinct([line.trace_id.as_deref(), Some(&line.request_id)]),
        Basis::Key => distinct([line.idempotency_key.as_ref().map(|key| key.as_str()), None]),
        Basis::Buyer => {
            line.user_id.iter().zip(&line.show_id).map(|(u, s)| (u.as_str(), s.as_str())).collect()
        }
        Basis::Order | Basis::Row | Basis::Message => Vec::new(),
    }
}
