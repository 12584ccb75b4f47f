//! Which line of the log wrote which order.
//!
//! No request writes before it comes. So each order looks, by what names it best, for a line that is not after
//! it: one that names the order; then one of its trace id or request id; of its key; of its buyer. Several
//! orders of one name get its lines in order, one each, and of lines that nobody else took the one that was in
//! flight when the order was written, or else the latest, is its own. Where that has an order written after its
//! request was answered, and another assignment has each written while its request was under way, that one is taken.
//!
//! An order that only lines after it name was written by a request before them, whose answer was lost: they were given
//! it again; so was a line that has not the order's own trace id or key, where another one that was under way has. It
//! belongs to the first of them only if there is no such request, or if that has the order's own trace id
//! and no line before it has: then clocks differ. Where more orders find a line if clocks
//! differ by [`SKEW`], that is allowed. A line that names an order is that order's alone, and one of its trace
//! id is the order's, however far their times are apart. One that was refused (an answer of 4xx, but
//! for those that mean that there was none) wrote nothing, unless it names the order; one that failed (5xx) may have
//! written before it did.
//!
//! Where none of these rules tells a line from others ([`rivals`](super::rivals)), that is said of the order.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::NEAR;
use super::access::AccessLine;
use super::arrival::{Placed, SKEW};
use super::attach::Basis;
use super::rivals::{evidence, rivalled};
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
    let Matching { mut line_of, named_later, .. } = matching;
    let rivalled = rivalled(orders, lines, &line_of, &named_later);
    for (writer, has_rival) in line_of.iter_mut().zip(rivalled) {
        writer.iter_mut().for_each(|writer| writer.has_rival = has_rival);
    }
    line_of
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
    /// Of an order the first line that names it and cannot have written it, being later, or is not taken to have, another
    /// one having the order's own ids: clocks differ, or a request before it wrote the order and this one was given its
    /// answer.
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
        let named = [Basis::Trace, Basis::Key].map(|basis| self.lines_by(basis));
        for at in 0..self.lines.len() {
            let line = self.line(at);
            let Some(&order) = line.order_id.as_ref().and_then(|id| ids.get(id)) else { continue };
            if line.at > self.written(order) || self.is_anothers(order, line, &named) {
                self.named_later[order].get_or_insert(at);
            } else if self.line_of[order].is_none() {
                self.take(order, at, Basis::Order);
            }
        }
    }

    /// The lines that may have written an order, by one kind of name.
    fn lines_by(&self, basis: Basis) -> HashMap<Name<'m>, Vec<usize>> {
        let mut named: HashMap<_, Vec<_>> = HashMap::new();
        for at in 0..self.lines.len() {
            names_of_line(self.line(at), basis)
                .into_iter()
                .for_each(|name| named.entry(name).or_default().push(at));
        }
        named
    }

    /// Whether a line that was under way when an order was written has the trace id or key of the order, which the one
    /// that names it has not.
    fn is_anothers(
        &self,
        order: usize,
        line: &AccessLine,
        [traces, keys]: &[HashMap<Name<'m>, Vec<usize>>; 2],
    ) -> bool {
        let row = self.orders[order].order;
        let of_trace = row.trace_id.as_deref().and_then(|trace| traces.get(&(trace, "")));
        let of_key = row.idempotency_key.as_ref().and_then(|key| keys.get(&(key.as_str(), "")));
        of_trace.into_iter().chain(of_key).flatten().map(|other| self.line(*other)).any(|other| {
            is_open(other, row.created_at)
                && row.created_at.since(other.at) <= NEAR
                && evidence(row, other, None) > evidence(row, line, None)
        })
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
        let mut groups: Vec<Group> = Vec::new();
        let mut places: HashMap<Name<'m>, usize> = HashMap::new();
        for order in (0..self.orders.len()).filter(|order| self.line_of[*order].is_none()) {
            for name in self.names_of_order(order, basis) {
                let place = *places.entry(name).or_insert_with(|| {
                    groups.push(Group::default());
                    groups.len() - 1
                });
                groups[place].orders.push(order);
            }
        }
        for line in (0..self.lines.len()).filter(|line| !self.is_taken[*line]) {
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
pub(super) fn open_until(line: &AccessLine) -> Timestamp {
    let answered = line.latency.filter(|_| !line.is_lost()).map(|latency| line.at.plus(latency));
    answered.unwrap_or(Timestamp::from_micros(i64::MAX))
}

/// Whether a line may have written any order but the one that it names.
pub(super) fn may_have_written(line: &AccessLine) -> bool {
    line.order_id.is_none() && !line.is_refused()
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
    if !may_have_written(line) {
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
