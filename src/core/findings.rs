//! The differences that have a name, as facts of the rows (contract, section 6). Those that only
//! a row of the decision table can find (TICKET_ELSEWHERE, PARTLY_REFUNDED, CANCEL_PENDING) are
//! found in [`super::decide`].

use std::collections::BTreeSet;

use super::charges::Charge;
use super::evidence::Evidence;
use super::facts::{Facts, OrderFacts, is_lapsed};
use super::ledger::Message;
use super::orphans::Orphan;
use super::plan::Finding;
use super::status::{HoldStatus, MessageStatus, OrderStatus, PaymentStatus};
use super::time::{Span, Timestamp};

/// How far the clocks of two systems may differ before it is a finding.
pub(super) const CLOCK_TOLERANCE: Span = Span::from_secs(5);
/// The topic of a message that asks to release stock.
pub(super) const RELEASE_TOPIC: &str = "inventory.release";

/// Whether stock was released by it; of an order that is to happen once (DOUBLE_RELEASE).
pub fn is_release(message: &Message) -> bool {
    message.topic == RELEASE_TOPIC && message.status == MessageStatus::Consumed
}

/// Every finding of an intent that its rows alone show.
pub fn findings(facts: &Facts<'_>, as_of: Timestamp, evidence: &Evidence) -> BTreeSet<Finding> {
    let mut found = facts.intent.identity.findings.clone();
    found.extend(of_live_orders(facts));
    for order in &facts.orders {
        found.extend(of_order(order));
        found.extend(order.doubts.iter().copied());
        found.extend(order.rows.charges.iter().flat_map(|c| of_charge(c, evidence)));
        if order.rows.holds.iter().any(|h| is_lapsed(h, as_of)) {
            found.insert(Finding::HoldLapsed);
        }
    }
    for orphan in facts.intent.orphans.iter().chain(&facts.intent.shared_orphans) {
        found.extend(of_orphan(orphan, as_of, evidence));
    }
    found
}

fn all_that_hold<const N: usize>(tests: [(Finding, bool); N]) -> impl Iterator<Item = Finding> {
    tests.into_iter().filter(|(_, holds)| *holds).map(|(finding, _)| finding)
}

/// What the live orders of an intent show together.
fn of_live_orders(facts: &Facts<'_>) -> impl Iterator<Item = Finding> + use<> {
    let live = facts.live().count();
    let some_paid = facts.live().any(OrderFacts::is_paid);
    let some_backed = facts.live().any(|o| o.backed);
    all_that_hold([
        (Finding::DuplicateOrders, live > 1),
        (Finding::PaidWithoutStock, some_paid && facts.candidates().next().is_none()),
        (Finding::NoStock, live > 0 && !some_paid && !some_backed),
    ])
}

fn of_order(facts: &OrderFacts<'_>) -> impl Iterator<Item = Finding> + use<> {
    let order = facts.order();
    let holds = facts.rows.holds;
    let of_another_owner = facts.rows.charges.iter().map(|c| (&c.row.user_id, &c.row.show_id));
    let of_another_owner = of_another_owner
        .chain(holds.iter().map(|h| (&h.user_id, &h.show_id)))
        .any(|owner| owner != (&order.user_id, &order.show_id));
    let releases = facts.rows.messages.iter().filter(|m| is_release(m)).count();
    let foreign_currency =
        facts.rows.charges.iter().any(|c| c.may_hold_money() && c.row.currency != order.currency);
    let early_capture = |c: &Charge<'_>| c.row.captured_at() < order.created_at.minus(CLOCK_TOLERANCE);
    let always = all_that_hold([
        (Finding::OwnerMismatch, of_another_owner),
        (Finding::CurrencyMismatch, foreign_currency),
        (Finding::DoubleRelease, releases > 1),
        (Finding::ClockSkew, facts.rows.charges.iter().any(early_capture)),
    ]);
    always.chain(of_live_order(facts)).chain(of_terminal_order(facts))
}

fn of_live_order(facts: &OrderFacts<'_>) -> impl Iterator<Item = Finding> + use<> {
    let order = facts.order();
    let live = facts.is_live();
    let pending = order.status == OrderStatus::PendingPayment;
    let amount = i128::from(order.amount_minor);
    all_that_hold([
        (Finding::OrderPaidNoPayment, live && !pending && !facts.is_paid()),
        (Finding::CapturedNotConfirmed, live && pending && facts.is_paid()),
        (Finding::MultipleCaptures, live && !facts.extra.is_empty()),
        (Finding::PartiallyPaid, live && amount > 0 && facts.net_minor > 0 && !facts.is_paid()),
        (Finding::Overpaid, live && facts.net_without_extra_minor() > amount),
        (Finding::ExcessHold, live && !facts.excess_holds.is_empty()),
        (Finding::DuplicateMessage, live && !facts.spare_messages.is_empty()),
    ])
}

fn of_terminal_order(facts: &OrderFacts<'_>) -> impl Iterator<Item = Finding> + use<> {
    let terminal = facts.status().is_terminal();
    let captured = facts.captured_with_money_left().next().is_some();
    let authorized = facts.rows.charges.iter().any(Charge::is_authorized);
    let held = facts.rows.holds.iter().any(|h| matches!(h.status, HoldStatus::Held | HoldStatus::Confirmed));
    all_that_hold([
        (Finding::CancelledButCaptured, terminal && captured && !facts.refunded_by_others),
        (Finding::Retained, terminal && captured && facts.refunded_by_others),
        (Finding::TerminalButAuthorized, terminal && authorized),
        (Finding::TerminalButHeld, terminal && held),
        (Finding::MessageForDeadOrder, terminal && facts.unfinished_messages().next().is_some()),
    ])
}

fn of_charge(charge: &Charge<'_>, evidence: &Evidence) -> impl Iterator<Item = Finding> + use<> {
    let row = charge.row;
    let refused = || evidence.refused_refunds.contains(&(row.tenant_id.clone(), row.payment_id.clone()));
    all_that_hold([
        (Finding::DuplicateCallback, !charge.carries),
        (Finding::ChargeDisagrees, charge.disagrees),
        (Finding::SharedCharge, charge.shared),
        (Finding::OverRefunded, charge.carries && row.left_minor() < 0),
        (Finding::PaymentDisputed, charge.carries && charge.status == PaymentStatus::Disputed),
        (Finding::RefundRefused, charge.may_hold_money() && refused()),
    ])
}

fn of_orphan(orphan: &Orphan<'_>, as_of: Timestamp, evidence: &Evidence) -> Vec<Finding> {
    match orphan {
        Orphan::Payment(charge) => {
            let without_order = orphan.counts().then_some(Finding::PaymentWithoutOrder);
            of_charge(charge, evidence).chain(without_order).collect()
        }
        Orphan::Hold(hold) => all_that_hold([
            (Finding::HoldWithoutOrder, orphan.counts()),
            (Finding::HoldLapsed, is_lapsed(hold, as_of)),
        ])
        .collect(),
        Orphan::Message(message) => {
            let lost = message.order_id.is_some() && message.status.is_unfinished();
            lost.then_some(Finding::MessageWithoutOrder).into_iter().collect()
        }
    }
}
