//! What each guard would have stopped, by the arrivals as they came.
//!
//! A guard gives requests a key and lets the first of each key through. Of a purchase it lets so many orders be
//! written; of the captures and tickets it lets one an order that is still written be, and what one order took
//! more than once.

use std::collections::HashSet;

use super::access::Source;
use super::arrival::{
    Arrival, TICKET_TOPIC, captures, is_consumed, is_ticket, messages, tickets as tickets_of,
};
use super::redelivery::key_of;
use crate::core::charges::captured;
use crate::core::join::{Intent, OrderRows};
use crate::core::orphans::Orphan;
use crate::core::status::status_type;
use crate::core::time::Timestamp;

status_type!(
    /// What could have stopped it.
    Guard {
        /// The client makes one key a purchase, and sends it with every tap and retry.
        ClientKey = "stable client key",
        /// The gateway gives the answer of a request to its retries.
        Merging = "gateway merging",
        /// A unique index over the keys as the orders carry them.
        Unique = "UNIQUE(tenant, key)",
        /// A token that a form gets and the first request with it takes.
        Token = "one-time token",
        /// A move that names the status it expects.
        Status = "status guard",
        /// A consumer that notes each message's key with its work.
        MessageKey = "consumer's message key",
    }
);

impl Guard {
    /// What the count takes for granted.
    pub const fn rule(self) -> &'static str {
        match self {
            Self::ClientKey => {
                "clients and gateway send one key a purchase, and the first order of it is given again"
            }
            Self::Merging => "attempts of one request, and what a gateway repeats, get the first answer",
            Self::Unique => "the keys as the orders carry them: one without a key is stopped by none",
            Self::Token => {
                "all taps of a purchase carry its token, taken where clients come in: what a gateway or a consumer \
                 repeats behind that is not stopped"
            }
            Self::Status => {
                "a second charge, ticket or release of one order finds its status moved on; a second order has a \
                 status of its own"
            }
            Self::MessageKey => {
                "the second message of one topic and key is not worked off, nor its order written"
            }
        }
    }
}

/// How much is too much, or was stopped of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Surplus {
    pub orders: u64,
    pub captures: u64,
    pub tickets: u64,
    /// Messages that were worked off again.
    pub runs: u64,
}

impl Surplus {
    pub fn add(&mut self, other: Self) {
        self.orders += other.orders;
        self.captures += other.captures;
        self.tickets += other.tickets;
        self.runs += other.runs;
    }
}

/// What a purchase has beyond one order, one payment and one ticket. Runs are counted by message key, over all
/// purchases.
pub fn surplus(intent: &Intent<'_>) -> Surplus {
    let (captures, tickets) = of_orders_beyond(intent, 1);
    // What the one that stays took more than once is too much as well.
    let again = |of: &dyn Fn(&OrderRows<'_>) -> u64, extra: &dyn Fn(&OrderRows<'_>) -> u64| {
        let first = intent.orders.iter().filter(|o| of(o) > 0).min_by_key(|o| paid_first(o));
        first.map_or(0, extra)
    };
    // A capture without an order pays for nothing that another one pays for, and a ticket admits nobody else.
    let orphans = orphaned(intent);
    let beyond = |orphans: u64, of: &dyn Fn(&OrderRows<'_>) -> u64| {
        let has_one = intent.orders.iter().any(|o| of(o) > 0);
        if has_one { orphans } else { orphans.saturating_sub(1) }
    };
    Surplus {
        orders: (intent.orders.len() as u64).saturating_sub(1),
        captures: captures + again(&captures_of, &extra_captures) + beyond(orphans.captures, &captures_of),
        tickets: tickets
            + again(&tickets_of, &|o| tickets_of(o).saturating_sub(1))
            + beyond(orphans.tickets, &tickets_of),
        runs: 0,
    }
}

/// What a guard would have stopped of it.
pub fn stopped(guard: Guard, intent: &Intent<'_>, arrivals: &[Arrival<'_>]) -> Surplus {
    if guard == Guard::Status {
        return Surplus {
            captures: intent.orders.iter().map(extra_captures).sum(),
            tickets: intent.orders.iter().map(|o| tickets_of(o).saturating_sub(1)).sum(),
            runs: runs_again_of(intent, |topic| topic == "inventory.release"),
            orders: 0,
        };
    }
    let mut keys = HashSet::new();
    let mut written = 0;
    for (at, arrival) in arrivals.iter().enumerate() {
        let is_first = key(guard, at, arrival).is_none_or(|key| keys.insert(key));
        written += u64::from(is_first && arrival.order.is_some());
    }
    let (captures, mut tickets) = of_orders_beyond(intent, written);
    if guard == Guard::MessageKey {
        tickets = tickets.max(runs_again_of(intent, |topic| topic == TICKET_TOPIC));
    }
    Surplus { orders: intent.orders.len() as u64 - written, captures, tickets, runs: 0 }
}

/// By what a guard takes two arrivals for the same; `None` where it lets each through.
fn key<'a>(guard: Guard, at: usize, arrival: &Arrival<'a>) -> Option<(&'a str, usize)> {
    let is_request = arrival.message.is_none();
    let is_client = matches!(arrival.source, Source::Client | Source::Unknown);
    match guard {
        // An arrival that left nothing may have been refused before any guard looked.
        _ if arrival.order.is_none() => None,
        Guard::ClientKey => {
            (is_request && (is_client || arrival.source == Source::Gateway)).then_some(("", 0))
        }
        Guard::Merging => is_request.then_some(("", arrival.repeats.unwrap_or(at))),
        Guard::Unique => Some((arrival.order?.order.idempotency_key.as_ref()?.as_str(), 0)),
        Guard::Token => (is_request && is_client && arrival.repeats.is_none()).then_some(("", 0)),
        Guard::MessageKey => {
            let key = arrival.order?.order.idempotency_key.as_ref()?;
            (arrival.source == Source::Consumer).then_some((key.as_str(), 0))
        }
        Guard::Status => None,
    }
}

/// Captures and tickets beyond those of so many orders that have some: the earliest stay.
fn of_orders_beyond(intent: &Intent<'_>, orders: u64) -> (u64, u64) {
    let beyond = |all: Vec<u64>| all.iter().skip(usize::try_from(orders).unwrap_or(usize::MAX)).sum();
    (beyond(by_first(intent, captures_of)), beyond(by_first(intent, tickets_of)))
}

/// How many of something each order has that has some, the one first that was paid first.
fn by_first(intent: &Intent<'_>, of: impl Fn(&OrderRows<'_>) -> u64) -> Vec<u64> {
    let mut all: Vec<_> =
        intent.orders.iter().filter(|o| of(o) > 0).map(|o| (paid_first(o), of(o))).collect();
    all.sort_unstable();
    all.into_iter().map(|(_, n)| n).collect()
}

/// The order in which orders were paid, and then written; unpaid ones last.
fn paid_first(rows: &OrderRows<'_>) -> (bool, Option<Timestamp>, Timestamp) {
    let paid = captures(rows).map(|c| c.row.captured_at()).min();
    (paid.is_none(), paid, rows.order.created_at)
}

fn captures_of(rows: &OrderRows<'_>) -> u64 {
    captures(rows).count() as u64
}

/// Charges of an order beyond those that reach its amount. One in another currency reaches none of it, and is too
/// much beside any other.
fn extra_captures(rows: &OrderRows<'_>) -> u64 {
    let (mut sum, mut own, mut foreign, mut extra) = (0, 0, 0_u64, 0);
    for charge in captures(rows) {
        if charge.row.currency != rows.order.currency {
            foreign += 1;
            continue;
        }
        extra += u64::from(sum >= i128::from(rows.order.amount_minor));
        sum += i128::from(charge.row.amount_minor);
        own += 1;
    }
    extra + if own > 0 { foreign } else { foreign.saturating_sub(1) }
}

/// Captures and tickets of a purchase that name no order which is there.
pub fn orphaned(intent: &Intent<'_>) -> Surplus {
    let mut orphaned = Surplus::default();
    for orphan in &intent.orphans {
        match orphan {
            Orphan::Payment(charge) => {
                orphaned.captures += u64::from(charge.carries && captured(charge.status));
            }
            Orphan::Message(message) => orphaned.tickets += u64::from(is_ticket(message)),
            Orphan::Hold(_) => {}
        }
    }
    orphaned
}

/// Consumed messages beyond the first of their topic and key.
fn runs_again_of(intent: &Intent<'_>, topic: impl Fn(&str) -> bool) -> u64 {
    let consumed = messages(intent).filter(|m| is_consumed(m) && topic(&m.topic));
    let keys: Vec<_> = consumed.filter_map(key_of).collect();
    let distinct: HashSet<_> = keys.iter().collect();
    (keys.len() - distinct.len()) as u64
}
