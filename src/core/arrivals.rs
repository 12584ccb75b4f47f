//! What still comes into a scope while an incident lasts: orders and doubles by the minute, captures on orders
//! that a plan unwinds, and messages that wait.

use std::collections::{BTreeMap, BTreeSet};

use super::ids::*;
use super::join::Joined;
use super::ledger::Ledgers;
use super::plan::Plan;
use super::policy::Policy;
use super::scope::Scope;
use super::status::{MessageStatus, PaymentStatus};
use super::time::{Span, Timestamp};

const MINUTE: Span = Span::from_mins(1);

/// What came within a window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arrivals {
    /// Orders, by minute from the window's beginning.
    pub orders: Vec<u64>,
    /// Of these the ones that were not the first of their intent.
    pub doubles: Vec<u64>,
    /// When the last double was created.
    pub newest_double: Option<Timestamp>,
    /// Unfinished messages, by topic.
    pub waiting: BTreeMap<String, u64>,
}

/// Counts what the ledgers of a scope tell of a window; of messages, those of these topics, or all.
pub fn arrivals(
    ledgers: &Ledgers,
    scope: &Scope,
    policy: &Policy,
    (from, to): (Timestamp, Timestamp),
    topics: &BTreeSet<String>,
) -> Arrivals {
    let minutes = usize::try_from(to.since(from).micros().div_euclid(MINUTE.micros()) + 1).unwrap_or(0);
    let mut found = Arrivals { orders: vec![0; minutes], doubles: vec![0; minutes], ..Arrivals::default() };
    let joined = Joined::new(ledgers, policy, to);
    for intent in joined.intents() {
        if !intent.in_scope(scope) {
            continue;
        }
        for (at, order) in intent.orders.iter().enumerate() {
            let created_at = order.order.created_at;
            if created_at < from || created_at > to {
                continue;
            }
            let minute = created_at.since(from).micros().div_euclid(MINUTE.micros());
            let Ok(minute) = usize::try_from(minute) else { continue };
            found.orders[minute] += 1;
            if at > 0 {
                found.doubles[minute] += 1;
                found.newest_double = found.newest_double.max(Some(created_at));
            }
        }
        let messages = intent.orders.iter().flat_map(|o| o.messages);
        for message in messages.filter(|m| topics.is_empty() || topics.contains(&m.topic)) {
            if matches!(message.status, MessageStatus::Queued | MessageStatus::InFlight | MessageStatus::Dead)
            {
                *found.waiting.entry(message.topic.clone()).or_default() += 1;
            }
        }
    }
    found
}

/// The orders that a plan unwinds.
pub fn losers(plan: &Plan) -> BTreeSet<(TenantId, OrderId)> {
    let with_steps = plan.intents.iter().filter(|i| !i.steps.is_empty());
    with_steps
        .flat_map(|i| {
            let others = i.orders.iter().filter(|id| Some(*id) != i.keep.as_ref());
            others.map(|id| (i.tenant_id.clone(), id.clone()))
        })
        .collect()
}

/// Payments of these orders that captured after a time: money that came in for what is being unwound.
pub fn late_captures(
    ledgers: &Ledgers,
    losers: &BTreeSet<(TenantId, OrderId)>,
    after: Timestamp,
) -> BTreeSet<(TenantId, PaymentId)> {
    let is_late = |status| matches!(status, PaymentStatus::Captured | PaymentStatus::Disputed);
    ledgers
        .payments
        .iter()
        .filter(|p| is_late(p.status) && p.captured_at() > after)
        .filter(|p| p.order_id.as_ref().is_some_and(|id| losers.contains(&(p.tenant_id.clone(), id.clone()))))
        .map(|p| (p.tenant_id.clone(), p.payment_id.clone()))
        .collect()
}
