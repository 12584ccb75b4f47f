//! Why an intent was decided as it was, order by order: the facts that the decision rests on, and
//! what became of each order, in words. Saved with the plan, so that it can be read when the
//! ledgers have long moved on.

use serde::{Deserialize, Serialize};

use super::facts::{Facts, OrderFacts};
use super::ids::*;
use super::money::Currency;
use super::plan::Outcome;
use super::status::OrderStatus;
use super::time::Timestamp;

/// The facts of one order (contract, section 3), and what they led to; in the order of the canonical form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderEvidence {
    pub amount_minor: i64,
    /// Whether live holds that fit reach the quantity.
    pub backed: bool,
    /// What becomes of it, and why.
    pub because: String,
    pub created_at: Timestamp,
    pub currency: Currency,
    pub idempotency_key: Option<IdempotencyKey>,
    /// Captured and not given back, in minor units; the largest number where it does not fit.
    pub net_minor: i64,
    pub order_id: OrderId,
    /// When the captures reached the amount; null while they do not.
    pub paid_at: Option<Timestamp>,
    pub status: OrderStatus,
}

/// What a row of the contract's table (section 4) says, in a few words.
pub const fn row_in_words(row: u8) -> &'static str {
    match row {
        1 => "a person must look: what the rows say does not fit together",
        2 => "something is in doubt that only the provider can settle",
        3 => "of the live orders that are paid and backed by stock, the one paid first is kept",
        4 => "some live order is paid, but none of the paid ones is backed by stock",
        5 => "nobody paid: of the live orders with stock, one is kept",
        6 => "nobody paid and nothing is held",
        7 => "one live order, not paid: it is left as it is",
        8 => "no live order: only what was left behind is repaired",
        _ => "",
    }
}

/// The evidence of each order of an intent, in the order of their creation.
pub fn explain(
    facts: &Facts<'_>,
    outcome: Outcome,
    keep: Option<&OrderId>,
    by_override: bool,
) -> Vec<OrderEvidence> {
    let kept = facts.orders.iter().find(|o| Some(&o.order().order_id) == keep);
    let mut evidence: Vec<_> = facts
        .orders
        .iter()
        .map(|facts| {
            let order = facts.order();
            OrderEvidence {
                order_id: order.order_id.clone(),
                status: order.status,
                created_at: order.created_at,
                idempotency_key: order.idempotency_key.clone(),
                amount_minor: order.amount_minor,
                currency: order.currency,
                net_minor: i64::try_from(facts.net_minor).unwrap_or(i64::MAX),
                paid_at: facts.paid_at,
                backed: facts.backed,
                because: because(facts, outcome, kept, by_override),
            }
        })
        .collect();
    evidence.sort_by(|a, b| (a.created_at, &a.order_id).cmp(&(b.created_at, &b.order_id)));
    evidence
}

fn because(
    facts: &OrderFacts<'_>,
    outcome: Outcome,
    kept: Option<&OrderFacts<'_>>,
    by_override: bool,
) -> String {
    let order = facts.order();
    let has = match (facts.paid_at, facts.backed) {
        (Some(at), true) => format!("paid at {at}, backed by stock"),
        (Some(at), false) => format!("paid at {at}, without stock"),
        (None, true) => "not paid, backed by stock".to_owned(),
        (None, false) => "not paid, without stock".to_owned(),
    };
    if matches!(outcome, Outcome::Review | Outcome::Unsettled) {
        return format!("not touched: {has}");
    }
    if order.status.is_terminal() {
        return format!("{} before: {has}", order.status);
    }
    if order.status.is_in_motion() {
        return format!("{} before, to be finished: {has}", order.status);
    }
    match kept {
        Some(kept) if kept.order().order_id == order.order_id && by_override => {
            format!("kept by an operator: {has}")
        }
        Some(kept) if kept.order().order_id == order.order_id => format!("kept: {has}"),
        Some(kept) if by_override => {
            format!("lost: {has}; an operator keeps {}", kept.order().order_id)
        }
        Some(kept) => format!("lost: {has}; {}", beaten_by(facts, kept)),
        None => format!("unwound: {has}"),
    }
}

/// In what the kept order comes before this one.
fn beaten_by(facts: &OrderFacts<'_>, kept: &OrderFacts<'_>) -> String {
    let id = &kept.order().order_id;
    match (facts.is_candidate(), kept.is_candidate()) {
        (false, true) => format!("{id} is both"),
        (true, true) if facts.paid_at == kept.paid_at => {
            format!("{id} was paid at the same time and written first")
        }
        (true, true) if facts.paid_at < kept.paid_at => format!("{id} has the ticket"),
        (true, true) => format!("{id} was paid first"),
        (_, false) if kept.backed && !facts.backed => format!("{id} is backed by stock"),
        (_, false) if kept.authorized_at().is_some() && facts.authorized_at().is_none() => {
            format!("{id} has an authorized charge")
        }
        (_, false) => format!("{id} comes first"),
    }
}
