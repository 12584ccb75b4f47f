//! To which purchase a line of the access log belongs.
//!
//! The first of these that names exactly one purchase decides: the order that its answer names; its trace id
//! or request id, where an order or a message carries the same; its idempotency key; its buyer and show, at a
//! time that lies between the purchase's first and last order, widened by `gap` on both sides. A request id does not
//! name the purchase of a buyer whose line it is not: some ids come again. Purchases that are not asked for have their lines as well, so that these are not taken for another's.

use std::collections::{HashMap, HashSet};

use super::access::AccessLine;
use crate::core::ids::*;
use crate::core::join::Intent;
use crate::core::status::status_type;
use crate::core::time::{Span, Timestamp};

status_type!(
    /// By what a line, or an arrival, is known to belong where it stands.
    Basis {
        /// The answer names the order.
        Order = "order id",
        Trace = "trace id",
        Key = "idempotency key",
        /// Inferred.
        Buyer = "buyer and time",
        /// The order's row alone tells of it.
        Row = "order row",
        /// A message's row alone tells of it.
        Message = "message row",
    }
);

/// What names a purchase: one, or several, which is none.
#[derive(Clone, Copy)]
enum Named {
    One(usize),
    Several,
}

impl Named {
    fn add<K: std::hash::Hash + Eq>(all: &mut HashMap<K, Self>, key: K, intent: usize) {
        let named = all.entry(key).or_insert(Self::One(intent));
        if matches!(named, Self::One(other) if *other != intent) {
            *named = Self::Several;
        }
    }

    fn one(named: Option<&Self>) -> Option<usize> {
        match named {
            Some(Self::One(intent)) => Some(*intent),
            _ => None,
        }
    }
}

/// A tenant, and whose purchase of which show.
type Buyer<'i> = (&'i TenantId, &'i UserId, &'i ShowId);

/// From when to when a line may be of a purchase, and which that is.
type Covers = (Timestamp, Timestamp, usize);

/// Finds the purchases of lines.
pub struct Attach<'i> {
    /// How many purchases are asked for.
    wanted: usize,
    orders: HashMap<(&'i TenantId, &'i OrderId), usize>,
    traces: HashMap<(&'i TenantId, &'i str), Named>,
    keys: HashMap<(&'i TenantId, &'i IdempotencyKey), Named>,
    keys_of_users: HashMap<(&'i TenantId, &'i UserId, &'i IdempotencyKey), Named>,
    buyers: HashMap<Buyer<'i>, Vec<Covers>>,
    /// Which purchases each user has.
    users: HashMap<(&'i TenantId, &'i UserId), HashSet<usize>>,
    /// From the first order to the last, widened.
    window: Option<(Timestamp, Timestamp)>,
}

impl<'i> Attach<'i> {
    pub fn new(wanted: &'i [Intent<'_>], others: &'i [Intent<'_>], gap: Span) -> Self {
        let mut attach = Self {
            wanted: wanted.len(),
            orders: HashMap::new(),
            traces: HashMap::new(),
            keys: HashMap::new(),
            keys_of_users: HashMap::new(),
            buyers: HashMap::new(),
            users: HashMap::new(),
            window: None,
        };
        for (index, intent) in wanted.iter().chain(others).enumerate() {
            let tenant = intent.tenant_id;
            for rows in &intent.orders {
                let order = rows.order;
                attach.orders.insert((tenant, &order.order_id), index);
                attach.users.entry((tenant, &order.user_id)).or_default().insert(index);
                let traces = rows.messages.iter().filter_map(|m| m.trace_id.as_deref());
                for trace in order.trace_id.as_deref().into_iter().chain(traces) {
                    Named::add(&mut attach.traces, (tenant, trace), index);
                }
                if let Some(key) = &order.idempotency_key {
                    Named::add(&mut attach.keys, (tenant, key), index);
                    Named::add(&mut attach.keys_of_users, (tenant, &order.user_id, key), index);
                }
            }
            let (Some(first), Some(last)) = (intent.orders.first(), intent.orders.last()) else { continue };
            let (from, to) = (first.order.created_at.minus(gap), last.order.created_at.plus(gap));
            if index < wanted.len() {
                attach.window = Some(match attach.window {
                    None => (from, to),
                    Some((a, b)) => (a.min(from), b.max(to)),
                });
            }
            for rows in &intent.orders {
                let covers =
                    attach.buyers.entry((tenant, &rows.order.user_id, &rows.order.show_id)).or_default();
                if covers.last() != Some(&(from, to, index)) {
                    covers.push((from, to, index));
                }
            }
        }
        attach
    }

    /// When lines can be that belong to some purchase which is asked for by time.
    pub fn window(&self) -> Option<(Timestamp, Timestamp)> {
        self.window
    }

    /// The purchase that is asked for and has this line, by its place, and by what.
    pub fn place(&self, line: &AccessLine) -> Option<(usize, Basis)> {
        self.of(line).filter(|(intent, _)| *intent < self.wanted)
    }

    fn of(&self, line: &AccessLine) -> Option<(usize, Basis)> {
        let tenant = &line.tenant_id;
        if let Some(intent) = line.order_id.as_ref().and_then(|id| self.orders.get(&(tenant, id))) {
            return Some((*intent, Basis::Order));
        }
        let of_trace = |trace: &str| Named::one(self.traces.get(&(tenant, trace)));
        let of_user = line.user_id.as_ref().and_then(|user| self.users.get(&(tenant, user)));
        let of_request = || {
            of_trace(&line.request_id).filter(|intent| of_user.is_none_or(|theirs| theirs.contains(intent)))
        };
        if let Some(intent) = line.trace_id.as_deref().and_then(of_trace).or_else(of_request) {
            return Some((intent, Basis::Trace));
        }
        let of_key = line.idempotency_key.as_ref().and_then(|key| match &line.user_id {
            Some(user) => Named::one(self.keys_of_users.get(&(tenant, user, key))),
            None => Named::one(self.keys.get(&(tenant, key))),
        });
        if let Some(intent) = of_key {
            return Some((intent, Basis::Key));
        }
        let covers = self.buyers.get(&(tenant, line.user_id.as_ref()?, line.show_id.as_ref()?))?;
        let mut covering = covers.iter().filter(|(from, to, _)| *from <= line.at && line.at <= *to);
        match (covering.next(), covering.next()) {
            (Some((_, _, intent)), None) => Some((*intent, Basis::Buyer)),
            _ => None,
        }
    }
}
