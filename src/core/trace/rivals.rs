//! Whether another line may have written an order as well, as far as can be known.
//!
//! A rival is a line that may have been under way when the order was written, and of which its ids say no less than of
//! the line that the order is with. One that wrote another order is a rival only if that order may be yet another
//! line's, and so on: until a line that wrote none, or around. For an order that an answer names, it is a request that
//! came before the one which was answered so: that one may have waited for it, and been given its order.
//!
//! Clocks may differ by up to [`SKEW`], but all lines by the same: what needs a log that is ahead for one order
//! and one that is behind for another is not taken together.

use super::NEAR;
use super::access::AccessLine;
use super::arrival::{Placed, SKEW};
use super::attach::Basis;
use super::matching::{Writer, may_have_written, open_until};
use crate::core::join::OrderRows;
use crate::core::ledger::Order;
use crate::core::time::{Span, Timestamp};

/// By how much a log may be behind, from and to: it is ahead, or behind.
const WAYS: [(Span, Span); 2] =
    [(Span::from_micros(-SKEW.micros()), Span::from_micros(0)), (Span::from_micros(0), SKEW)];

/// What an order's ids say of a line, the strongest first: whether it has its trace id; its key; the request id of a
/// later answer that names it.
pub type Evidence = (bool, bool, bool);

pub fn evidence(order: &Order, line: &AccessLine, named_by: Option<&AccessLine>) -> Evidence {
    let traces = [line.trace_id.as_deref(), Some(line.request_id.as_str())];
    (
        order.trace_id.is_some() && traces.contains(&order.trace_id.as_deref()),
        order.idempotency_key.is_some() && order.idempotency_key == line.idempotency_key,
        named_by.is_some_and(|named_by| named_by.request_id == line.request_id),
    )
}

/// For each order whether it has a rival. `named_later` are the lines that name orders which they are not taken to have
/// written.
pub fn rivalled(
    orders: &[OrderRows<'_>],
    lines: &[Placed],
    line_of: &[Option<Writer>],
    named_later: &[Option<usize>],
) -> Vec<bool> {
    let mut order_of = vec![None; lines.len()];
    for (order, writer) in line_of.iter().enumerate() {
        writer.iter().for_each(|writer| order_of[writer.line] = Some(order));
    }
    let named_by = |order: usize| named_later[order].map(|line: usize| &lines[line].0);
    let least = |(order, writer): (usize, &Option<Writer>)| {
        let (row, own) = (orders[order].order, &lines[writer.as_ref()?.line].0);
        // Ids do not tell for a line that cannot have written it.
        is_open_within(own, row.created_at, WAYS[0].0, WAYS[1].1).then(|| evidence(row, own, named_by(order)))
    };
    let least: Vec<_> = line_of.iter().enumerate().map(|writer| least(writer).unwrap_or_default()).collect();
    let mut rivalled = vec![false; orders.len()];
    for (from, to) in WAYS {
        let way = Way { orders, lines, line_of, named_later, order_of: &order_of, least: &least, from, to };
        // What wrote nothing stands behind the orders. Whatever leads to it comes from any of them.
        let around = on_circles(orders.len() + 1, |node, at| {
            if node == orders.len() { (at < node).then_some((at, at + 1)) } else { way.next(node, at) }
        });
        rivalled.iter_mut().zip(around).for_each(|(rivalled, is_around)| *rivalled |= is_around);
    }
    rivalled
}

/// Who may have written what, if the log is behind by between `from` and `to`.
struct Way<'m> {
    orders: &'m [OrderRows<'m>],
    lines: &'m [Placed],
    line_of: &'m [Option<Writer>],
    named_later: &'m [Option<usize>],
    order_of: &'m [Option<usize>],
    /// What an order's ids have to say of a rival.
    least: &'m [Evidence],
    from: Span,
    to: Span,
}

impl Way<'_> {
    /// From the line `at` on, the next one that may have written an order: which order is with it, or else the place
    /// behind all orders; and where to go on.
    fn next(&self, order: usize, at: usize) -> Option<(usize, usize)> {
        let own = self.line_of[order]?;
        let written = self.orders[order].order.created_at;
        let near = || self.lines.partition_point(|(line, _)| line.at < written.minus(NEAR));
        let first = if at == 0 { near() } else { at };
        let near = self.lines.iter().enumerate().skip(first);
        let mut near = near.take_while(|(_, (line, _))| line.at <= written.minus(self.from));
        let (rival, _) = near.find(|(line, _)| self.is_rival(order, own, *line))?;
        // No other line leads further than one that wrote nothing.
        Some(self.order_of[rival].map_or((self.orders.len(), self.lines.len()), |other| (other, rival + 1)))
    }

    fn is_rival(&self, order: usize, own: Writer, line: usize) -> bool {
        let row = self.orders[order].order;
        let (other, named_later, least) = (&self.lines[line].0, self.named_later[order], self.least[order]);
        let is_before = || own.basis != Basis::Order || other.at <= self.lines[own.line].0.at;
        let says = || evidence(row, other, named_later.map(|line| &self.lines[line].0));
        line != own.line
            && is_open_within(other, row.created_at, self.from, self.to)
            && (may_have_written(other) || named_later == Some(line))
            && is_before()
            && (least == Evidence::default() || says() >= least)
    }
}

/// Whether a request was under way, if its times are to be put later by something between the two.
fn is_open_within(line: &AccessLine, at: Timestamp, from: Span, to: Span) -> bool {
    line.at.plus(from) <= at && at <= open_until(line).plus(to)
}

/// Which nodes can be reached again from themselves, by at least one other. `next` gives, from a place on, the next
/// node that one leads to, and from where to go on. Tarjan's algorithm, without recursion.
fn on_circles(nodes: usize, next: impl Fn(usize, usize) -> Option<(usize, usize)>) -> Vec<bool> {
    const UNSEEN: usize = usize::MAX;
    let (mut seen, mut index, mut low) = (0, vec![UNSEEN; nodes], vec![UNSEEN; nodes]);
    let (mut open, mut is_open, mut found) = (Vec::new(), vec![false; nodes], vec![false; nodes]);
    for root in 0..nodes {
        let mut path = if index[root] == UNSEEN { vec![(root, 0)] } else { Vec::new() };
        while let Some((node, place)) = path.last_mut() {
            let node = *node;
            if index[node] == UNSEEN {
                (index[node], low[node], is_open[node]) = (seen, seen, true);
                open.push(node);
                seen += 1;
            }
            if let Some((to, further)) = next(node, *place) {
                *place = further;
                if index[to] == UNSEEN {
                    path.push((to, 0));
                } else if is_open[to] {
                    low[node] = low[node].min(index[to]);
                }
                continue;
            }
            path.pop();
            if let Some((parent, _)) = path.last() {
                low[*parent] = low[*parent].min(low[node]);
            }
            if low[node] == index[node] {
                let from = open.iter().rposition(|other| *other == node).unwrap_or_default();
                let circle = open.split_off(from);
                for at in &circle {
                    (is_open[*at], found[*at]) = (false, circle.len() > 1);
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_leads_to_a_circle_is_not_on_it() {
        // 0 and 1 lead to the circle of 2, 3 and 4; 5 leads nowhere, and 6 and 7 to each other.
        let leads: [&[usize]; 8] = [&[1], &[2], &[3], &[4, 5], &[2], &[], &[7], &[6, 5]];
        let found = on_circles(8, |node, at| leads[node].get(at).map(|to| (*to, at + 1)));
        assert_eq!(found, [false, false, true, true, true, false, true, true]);
    }
}
