//! Which line of the log wrote which order.
//!
//! No request writes before it comes. So each order looks, by what names it best, for a line that is not after
//! it: one that names the order; then one of its trace id or request id; of its key; of its buyer. Several
//! orders of one name get its lines in order, one each, and of lines that nobody else took the one that was in
//! flight when the order was written, or else the latest, is its own. Where more orders find a line if clocks
//! differ by [`SKEW`], that is allowed. A line that names an order is that order's alone, and one of its trace
//! id is the order's, however far their times are apart. One that was refused (an answer of 400 and above, but
//! for those that mean that there was none) wrote nothing, unless it names the order.

use std::collections::HashMap;

use super::access::AccessLine;
use super::arrival::{Placed, SKEW};
use super::attach::Basis;
use crate::core::join::OrderRows;
use crate::core::time::{Span, Timestamp};

/// The line of an order, by its place, and by what it is known.
pub type Line = (usize, Basis);

/// For each order its line. Lines and orders come by time.
pub fn matched(orders: &[OrderRows<'_>], lines: &[Placed]) -> Vec<Option<Line>> {
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
    matching.by_lines_that_name_it_later();
    matching.by_name(Basis::Trace, Span::from_micros(i64::MAX));
    matching.by_name(Basis::Buyer, SKEW);
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
    line_of: Vec<Option<Line>>,
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
        self.line_of[order] = Some((line, basis));
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

    fn by_lines_that_name_it_later(&mut self) {
        for order in 0..self.orders.len() {
            if let (None, Some(line)) = (self.line_of[order], self.named_later[order]) {
                self.take(order, line, Basis::Order);
            }
        }
    }

    /// By one kind of name, for what is not matched yet.
    fn by_name(&mut self, basis: Basis, skew: Span) {
        for group in self.groups(basis) {
            let orders: Vec<_> = group.orders.into_iter().filter(|o| self.line_of[*o].is_none()).collect();
            let lines: Vec<_> = group.lines.into_iter().filter(|l| !self.is_taken[*l]).collect();
            let exact = self.in_order(&orders, &lines, Span::from_micros(0));
            let fit = if exact.len() == orders.len().min(lines.len()) {
                exact
            } else {
                let loose = self.in_order(&orders, &lines, skew);
                if loose.len() > exact.len() { loose } else { exact }
            };
            for (order, line) in fit {
                self.take(orders[order], lines[line], basis);
            }
        }
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

    /// Orders and lines of one name, as pairs of their places in these.
    fn in_order(&self, orders: &[usize], lines: &[usize], skew: Span) -> Vec<(usize, usize)> {
        let written = |order: usize| self.orders[orders[order]].order.created_at;
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
}

/// Whether a request had come and was not answered or given up yet.
fn is_in_flight(line: &AccessLine, at: Timestamp) -> bool {
    line.at <= at && line.latency.is_some_and(|latency| at <= line.at.plus(latency))
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
