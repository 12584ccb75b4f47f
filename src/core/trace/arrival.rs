//! What came for one purchase, one after the other, and what each left behind.
//!
//! A line that wrote an order ([`matching`](super::matching)) and the order are one arrival. An order without a
//! line tells of its own arrival, a message that was delivered of its deliveries.

use std::collections::HashMap;

use super::access::{AccessLine, Source, Sources};
use super::attach::Basis;
use super::matching::matched;
use crate::core::charges::{Charge, captured};
use crate::core::ids::OrderId;
use crate::core::join::{Intent, OrderRows};
use crate::core::ledger::Message;
use crate::core::orphans::Orphan;
use crate::core::status::{MessageStatus, OrderStatus};
use crate::core::time::{Span, Timestamp};

/// How far the clocks of log and ledger may differ.
pub const SKEW: Span = Span::from_secs(1);
/// The topic of a message that brings a ticket.
pub const TICKET_TOPIC: &str = "ticket.issue";
/// Topics by which something is undone.
const UNDOING: [&str; 3] = ["order.cancel", "payment.refund", "inventory.release"];

/// A line with what says where it belongs.
pub type Placed = (AccessLine, Basis);

/// One request, or the deliveries of one message.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// When it came; of a message, when it was put into the queue.
    pub at: Timestamp,
    pub source: Source,
    /// The source in the row's own word.
    pub named: Option<&'a str>,
    /// Counted from 1; of a message how often it was delivered.
    pub attempt: i64,
    pub line: Option<&'a AccessLine>,
    /// The order that it wrote.
    pub order: Option<OrderRows<'a>>,
    pub message: Option<&'a Message>,
    /// The order that its answer names, which another arrival wrote.
    pub again: Option<&'a OrderId>,
    /// The arrival that it repeats, by its place.
    pub repeats: Option<usize>,
    pub basis: Basis,
    /// Whether another request of the same name may have written its order as well.
    pub has_rival: bool,
    /// Whether its request id is that of another request, which was answered before it came.
    pub reuses_id: bool,
}

impl Arrival<'_> {
    /// How often it came.
    pub fn times(&self) -> u64 {
        if self.message.is_some() { u64::try_from(self.attempt).unwrap_or(1) } else { 1 }
    }

    /// How much later than the order that it wrote the line is, which no request is: clocks differ, or another
    /// request wrote it.
    pub fn late(&self) -> Option<Span> {
        let late = self.line?.at.since(self.order?.order.created_at);
        (late.micros() > 0).then_some(late)
    }

    /// How far the times of line and order lie outside of what can be, later or (negative) earlier: no request
    /// writes before it comes, and no answer names an order that is still to be written.
    pub fn off(&self) -> Option<Span> {
        let (line, written) = (self.line?, self.order?.order.created_at);
        let names_it = line.order_id.is_some() && !line.is_lost();
        let answered = line.latency.filter(|_| names_it).map(|latency| line.at.plus(latency));
        let early = answered.map(|answered| answered.since(written)).filter(|early| early.micros() < 0);
        self.late().or(early)
    }

    /// The order that its answer names and that was not read: it may be lost.
    pub fn unknown(&self) -> Option<&OrderId> {
        let named = self.line.and_then(|line| line.order_id.as_ref());
        named.filter(|_| self.order.is_none() && self.again.is_none())
    }

    /// How sure it is that its line wrote its order, where no id alone says so.
    pub fn inferred(&self) -> Option<&'static str> {
        match (self.line.and(self.order), self.basis, self.has_rival) {
            (Some(_), Basis::Buyer, false) => Some("inferred"),
            (Some(_), Basis::Buyer, true) => Some("inferred, and may be another request's"),
            (Some(_), _, true) => Some("may be another request's"),
            _ => None,
        }
    }

    /// Whether its line was answered as if it had done something, and no order is there that it can have written.
    pub fn left_nothing(&self) -> bool {
        self.order.is_none()
            && self.again.is_none()
            && self.repeats.is_none()
            && self.line.is_some_and(AccessLine::is_done)
    }

    /// What it is called, and several of it.
    pub fn called(&self) -> [&'static str; 2] {
        match (self.source, self.repeats.is_some() || (self.attempt > 1 && self.message.is_none())) {
            (Source::Client, false) => ["tap", "taps"],
            (Source::Client, true) => ["client retry", "client retries"],
            (Source::Gateway, false) => ["gateway request", "gateway requests"],
            (Source::Gateway, true) => ["gateway retry", "gateway retries"],
            (Source::Consumer, _) => ["consumer run", "consumer runs"],
            (Source::Compensation, _) => ["compensation", "compensations"],
            (Source::Unknown, _) => ["order of unknown source", "orders of unknown source"],
        }
    }
}

/// Real charges of an order whose money came in, whatever became of it.
pub fn captures<'a>(rows: &OrderRows<'a>) -> impl Iterator<Item = &'a Charge<'a>> + use<'a> {
    rows.charges.iter().filter(|c| c.carries && captured(c.status))
}

/// Tickets that an order brought: its consumed ticket messages; where its status alone says so, one.
pub fn tickets(rows: &OrderRows<'_>) -> u64 {
    let issued = rows.messages.iter().filter(|m| is_ticket(m)).count() as u64;
    issued.max(u64::from(rows.order.status == OrderStatus::Ticketed))
}

/// Whether a message brought a ticket.
pub fn is_ticket(message: &Message) -> bool {
    is_consumed(message) && message.topic == TICKET_TOPIC
}

pub fn is_consumed(message: &Message) -> bool {
    message.status == MessageStatus::Consumed
}

/// How often a message was delivered, as far as its row says.
pub fn deliveries(message: &Message) -> i64 {
    match message.status {
        MessageStatus::Consumed | MessageStatus::InFlight => message.attempts.max(1),
        _ => message.attempts,
    }
}

/// Everything that came for a purchase, by time.
pub fn arrivals<'a>(intent: &Intent<'a>, lines: &'a [Placed], sources: &Sources) -> Vec<Arrival<'a>> {
    let matched = matched(&intent.orders, lines);
    let mut wrote = vec![None; lines.len()];
    for (order, of) in matched.iter().enumerate() {
        if let Some(writer) = of {
            wrote[writer.line] = Some((order, *writer));
        }
    }
    let mut all: Vec<Arrival<'a>> = Vec::with_capacity(lines.len() + intent.orders.len());
    for (i, (line, basis)) in lines.iter().enumerate() {
        all.push(Arrival {
            at: line.at,
            source: sources.of(Some(&line.source)),
            named: Some(&line.source),
            attempt: line.attempt,
            line: Some(line),
            order: wrote[i].map(|(order, _)| intent.orders[order]),
            message: None,
            again: line.order_id.as_ref().filter(|_| wrote[i].is_none() && *basis == Basis::Order),
            repeats: None,
            basis: wrote[i].map_or(*basis, |(_, writer)| writer.basis),
            has_rival: wrote[i].is_some_and(|(_, writer)| writer.has_rival),
            reuses_id: false,
        });
    }
    for (rows, _) in intent.orders.iter().zip(&matched).filter(|(_, matched)| matched.is_none()) {
        let named = rows.order.source.as_deref();
        all.push(Arrival {
            at: rows.order.created_at,
            source: sources.of(named),
            named,
            attempt: 1,
            line: None,
            order: Some(*rows),
            message: None,
            again: None,
            repeats: None,
            basis: Basis::Row,
            has_rival: false,
            reuses_id: false,
        });
    }
    for message in messages(intent).filter(|m| deliveries(m) > 0) {
        let undoes = UNDOING.contains(&message.topic.as_str());
        all.push(Arrival {
            at: message.created_at,
            source: if undoes { Source::Compensation } else { Source::Consumer },
            named: Some(&message.topic),
            attempt: deliveries(message),
            line: None,
            order: None,
            message: Some(message),
            again: None,
            repeats: None,
            basis: Basis::Message,
            has_rival: false,
            reuses_id: false,
        });
    }
    all.sort_by(|a, b| order_of(a).cmp(&order_of(b)));
    say_what_repeats(&mut all);
    all
}

/// All messages of a purchase: those of its orders, then its orphans.
pub fn messages<'a>(intent: &Intent<'a>) -> impl Iterator<Item = &'a Message> {
    let orphans = intent.orphans.iter().filter_map(|o| match o {
        Orphan::Message(message) => Some(*message),
        _ => None,
    });
    intent.orders.iter().flat_map(|o| o.messages.iter().copied()).chain(orphans)
}

/// A total order: by time, requests before messages, then by id.
fn order_of<'a>(arrival: &Arrival<'a>) -> (Timestamp, bool, i64, &'a str, &'a str) {
    let id = match (arrival.order, arrival.message) {
        (Some(rows), _) => rows.order.order_id.as_str(),
        (None, Some(message)) => message.message_id.as_str(),
        (None, None) => "",
    };
    let request = arrival.line.map_or("", |line| line.request_id.as_str());
    (arrival.at, arrival.message.is_some(), arrival.attempt, request, id)
}

/// An attempt of a request repeats its first; what a gateway sends by itself repeats the client's request
/// before it. Where no line counts the attempts, they are counted here. What was answered is not tried again, so that a
/// line of the same request id which comes after the answer, and counts no further attempt, is another request.
fn say_what_repeats(all: &mut [Arrival<'_>]) {
    /// The first line of a request, and its last one until now.
    type Request<'a> = (usize, &'a AccessLine);
    let mut requests: HashMap<&str, Request<'_>> = HashMap::new();
    let mut attempts = vec![1; all.len()];
    let mut last_tap = None;
    for (at, arrival) in all.iter_mut().enumerate().filter(|(_, arrival)| arrival.message.is_none()) {
        let mut same_request = None;
        if let Some(line) = arrival.line {
            let before = requests.get(line.request_id.as_str()).copied();
            arrival.reuses_id = before.is_some_and(|(_, before)| !line.may_repeat(before));
            same_request = before.map(|(first, _)| first).filter(|_| !arrival.reuses_id);
            requests.insert(&line.request_id, (same_request.unwrap_or(at), line));
        }
        arrival.repeats = same_request.or(match arrival.source {
            Source::Gateway => last_tap,
            Source::Client if arrival.attempt > 1 => last_tap,
            _ => None,
        });
        if let Some(first) = arrival.repeats {
            attempts[first] += 1;
            if arrival.line.is_none() {
                arrival.attempt = attempts[first];
            }
        } else if arrival.source == Source::Client {
            last_tap = Some(at);
        }
    }
}
