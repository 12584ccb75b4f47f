//! A settled decision becomes ordered steps, each a compare-and-set on one row (contract, section 5).
//!
//! Money leaves before stock is released, and an order closes after everything on it.

use super::charges::Charge;
use super::decide::{Decision, Verdict, is_refunded_when_terminal};
use super::evidence::{Effect, Evidence};
use super::facts::{Facts, OrderFacts};
use super::hash::FieldHash;
use super::ids::*;
use super::ledger::{Hold, Message, Order};
use super::orphans::Orphan;
use super::plan::{Finding, Step};
use super::policy::Policy;
use super::status::{HoldStatus, Ledger, MessageStatus, OrderStatus, PaymentStatus};

/// The steps of one intent, in the order in which they are carried out.
pub fn steps(facts: &Facts<'_>, decision: &Decision, policy: &Policy, evidence: &Evidence) -> Vec<Step> {
    let Verdict::Settled { keep, stop_cancels } = decision.verdict else {
        return Vec::new();
    };
    let mut steps = Steps { tenant_id: facts.intent.tenant_id, evidence, list: Vec::new() };
    for (i, order) in facts.orders.iter().enumerate() {
        if order.status().is_in_motion() || (order.is_live() && keep != Some(i)) {
            steps.unwind(order);
        }
    }
    if let Some(kept) = keep {
        steps.repair_kept(&facts.orders[kept], stop_cancels);
    }
    for order in facts.terminal() {
        steps.repair_terminal(order, is_refunded_when_terminal(facts, order, policy));
    }
    if decision.findings.contains(&Finding::MessageWithoutOrder) {
        steps.quarantine_orphans(&facts.intent.orphans);
    }
    steps.list
}

/// The key of an effect: it is the same in every plan that wants the effect (contract, section 8).
///
/// SHA-256 in hex over ledger, tenant, id, from, to and the occurrence in decimal digits, each as
/// UTF-8 with its length in bytes before it, a big-endian 64-bit number.
pub fn step_key(effect: &Effect, occurrence: u32) -> String {
    FieldHash::new()
        .text(effect.ledger.as_str())
        .text(effect.tenant_id.as_str())
        .text(effect.id.as_str())
        .text(&effect.from)
        .text(&effect.to)
        .number(i64::from(occurrence))
        .hex()
}

struct Steps<'a> {
    tenant_id: &'a TenantId,
    evidence: &'a Evidence,
    list: Vec<Step>,
}

impl Steps<'_> {
    /// A live order that is not kept, or one in motion.
    fn unwind(&mut self, order: &OrderFacts<'_>) {
        let row = order.order();
        self.quarantine(order.unfinished_messages());
        let (closing, closed) = match row.status {
            OrderStatus::PendingPayment | OrderStatus::Cancelling => {
                (OrderStatus::Cancelling, OrderStatus::Cancelled)
            }
            _ => (OrderStatus::Refunding, OrderStatus::Refunded),
        };
        let moves_twice = row.status != closing;
        if moves_twice {
            self.order(row, row.status, closing, Some(&row.version));
        }
        self.void(order.rows.charges.iter().filter(|c| c.is_authorized()));
        self.refund(order.captured_with_money_left());
        self.release(order.rows.holds.iter().copied());
        self.order(row, closing, closed, (!moves_twice).then_some(&row.version));
    }

    fn repair_kept(&mut self, order: &OrderFacts<'_>, stop_cancels: bool) {
        let row = order.order();
        if row.status == OrderStatus::PendingPayment && order.is_paid() {
            self.order(row, OrderStatus::PendingPayment, OrderStatus::Paid, Some(&row.version));
        }
        self.refund(order.extra.iter().copied());
        if order.is_paid() {
            self.void(order.rows.charges.iter().filter(|c| c.is_authorized()));
        }
        self.release(order.excess_holds.iter().copied());
        let mut unwanted = order.spare_messages.clone();
        if stop_cancels {
            unwanted.extend(order.waiting_cancels());
            unwanted.sort_by_key(|m| (m.created_at, &m.message_id));
            unwanted.dedup_by_key(|m| &m.message_id);
        }
        self.quarantine(unwanted.into_iter());
    }

    fn repair_terminal(&mut self, order: &OrderFacts<'_>, refund: bool) {
        self.quarantine(order.unfinished_messages());
        self.void(order.rows.charges.iter().filter(|c| c.is_authorized()));
        if refund {
            self.refund(order.captured_with_money_left());
        }
        self.release(order.rows.holds.iter().copied());
    }

    fn quarantine_orphans(&mut self, orphans: &[Orphan<'_>]) {
        self.quarantine(orphans.iter().filter_map(|orphan| match orphan {
            Orphan::Message(message) if message.order_id.is_some() && message.status.is_unfinished() => {
                Some(*message)
            }
            _ => None,
        }));
    }

    fn quarantine<'m>(&mut self, unfinished: impl Iterator<Item = &'m Message>) {
        for message in unfinished {
            let (from, to) = (message.status, MessageStatus::Quarantined);
            let id = (&message.message_id).into();
            self.step(Ledger::Messages, id, from.as_str(), to.as_str(), Some(&message.version));
        }
    }

    fn void<'c>(&mut self, authorized: impl Iterator<Item = &'c Charge<'c>>) {
        use PaymentStatus::*;
        for charge in authorized {
            self.provider_call(charge, [Authorized, Voiding, Voided], None);
        }
    }

    /// Gives back what is left of each.
    fn refund<'c>(&mut self, captured: impl Iterator<Item = &'c Charge<'c>>) {
        use PaymentStatus::*;
        for charge in captured {
            self.provider_call(charge, [Captured, Refunding, Refunded], Some(charge.row.left_minor()));
        }
    }

    /// Two legs around one call, under the key of the first.
    fn provider_call(&mut self, charge: &Charge<'_>, path: [PaymentStatus; 3], amount_minor: Option<i64>) {
        let row = charge.row;
        let first_leg = self.list.len();
        for leg in 0..2 {
            let (from, to) = (path[leg].as_str(), path[leg + 1].as_str());
            let version = (leg == 0).then_some(&row.version);
            self.step(Ledger::Payments, (&row.payment_id).into(), from, to, version);
        }
        let key = self.list[first_leg].step_key.clone();
        for step in &mut self.list[first_leg..] {
            step.provider_key = Some(key.clone());
            step.amount_minor = amount_minor;
            step.currency = amount_minor.is_some().then_some(row.currency);
        }
    }

    fn release<'h>(&mut self, holds: impl Iterator<Item = &'h Hold>) {
        let taking = |h: &&Hold| matches!(h.status, HoldStatus::Held | HoldStatus::Confirmed);
        for hold in holds.filter(taking) {
            let (from, to) = (hold.status, HoldStatus::Released);
            let id = (&hold.hold_id).into();
            self.step(Ledger::Inventory, id, from.as_str(), to.as_str(), Some(&hold.version));
        }
    }

    fn order(&mut self, row: &Order, from: OrderStatus, to: OrderStatus, version: Option<&Version>) {
        self.step(Ledger::Orders, (&row.order_id).into(), from.as_str(), to.as_str(), version);
    }

    fn step(&mut self, ledger: Ledger, id: RowId, from: &str, to: &str, version: Option<&Version>) {
        let tenant_id = self.tenant_id.clone();
        let effect = Effect { ledger, tenant_id, id, from: from.to_owned(), to: to.to_owned() };
        let occurrence = self.evidence.occurrences.get(&effect).copied().unwrap_or(0);
        let step_key = step_key(&effect, occurrence);
        self.list.push(Step {
            ledger,
            id: effect.id,
            from: effect.from,
            to: effect.to,
            amount_minor: None,
            currency: None,
            version: version.cloned(),
            step_key,
            provider_key: None,
        });
    }
}
