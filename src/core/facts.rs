//! What is so about an intent: paid, backed, in doubt (contract, section 3). Nothing is decided here.

use std::collections::BTreeSet;

use super::charges::Charge;
use super::evidence::Evidence;
use super::intents::request;
use super::join::{Intent, OrderRows};
use super::ledger::{Hold, Message, Order};
use super::plan::Finding;
use super::status::{HoldStatus, MessageStatus, OrderStatus, PaymentStatus};
use super::time::Timestamp;

/// The topic of a message that asks for a refund.
pub(super) const REFUND_TOPIC: &str = "payment.refund";
/// The topic of a message that asks to cancel an order.
pub(super) const CANCEL_TOPIC: &str = "order.cancel";

/// The facts of one order.
#[derive(Debug)]
pub struct OrderFacts<'a> {
    pub rows: OrderRows<'a>,
    /// Captured and not given back, in minor units of the order's currency.
    pub net_minor: i128,
    /// When the captures reached the order's amount; `None` while they do not.
    pub paid_at: Option<Timestamp>,
    /// Charges with money left that came after the order was paid.
    pub extra: Vec<&'a Charge<'a>>,
    /// Whether live holds that fit reach the quantity.
    pub backed: bool,
    /// Live holds that fit beyond those that reach the quantity; by (created_at, hold_id).
    pub excess_holds: Vec<&'a Hold>,
    /// Unfinished messages that say what another one says already; by (created_at, message_id).
    pub spare_messages: Vec<&'a Message>,
    /// Whether somebody other than our own steps gave back money of its charges.
    pub refunded_by_others: bool,
    /// What only the provider can tell about it.
    pub doubts: BTreeSet<Finding>,
}

impl<'a> OrderFacts<'a> {
    fn new(rows: OrderRows<'a>, several_live: bool, as_of: Timestamp, evidence: &Evidence) -> Self {
        let (paid_at, extra) = payment(&rows);
        let (backed, excess_holds) = backing(&rows, as_of);
        Self {
            rows,
            net_minor: rows
                .charges
                .iter()
                .filter(|c| in_currency(c, rows.order))
                .map(Charge::net_minor)
                .sum(),
            paid_at,
            extra,
            backed,
            excess_holds,
            spare_messages: spare_messages(rows.messages),
            refunded_by_others: rows.charges.iter().any(|c| refunded_by_others(c, evidence)),
            doubts: doubts(&rows, several_live, evidence),
        }
    }

    pub fn order(&self) -> &'a Order {
        self.rows.order
    }

    pub fn status(&self) -> OrderStatus {
        self.rows.order.status
    }

    pub fn is_live(&self) -> bool {
        self.status().is_live()
    }

    pub fn is_paid(&self) -> bool {
        self.paid_at.is_some()
    }

    /// Live, paid and backed: an order that an intent can keep without asking anyone.
    pub fn is_candidate(&self) -> bool {
        self.is_live() && self.is_paid() && self.backed
    }

    /// The net without the extra charges, in minor units.
    pub fn net_without_extra_minor(&self) -> i128 {
        self.net_minor - self.extra.iter().map(|c| c.net_minor()).sum::<i128>()
    }

    /// Real charges whose money came in and did not all go back.
    pub fn captured_with_money_left(&self) -> impl Iterator<Item = &'a Charge<'a>> {
        self.rows.charges.iter().filter(|c| c.is_captured_with_money_left())
    }

    /// Its messages that somebody may still act on.
    pub fn unfinished_messages(&self) -> impl Iterator<Item = &'a Message> {
        self.rows.messages.iter().copied().filter(|m| m.status.is_unfinished())
    }

    /// Unfinished messages by which someone meant the order to go.
    pub fn waiting_cancels(&self) -> impl Iterator<Item = &'a Message> {
        self.unfinished_messages().filter(|m| m.topic == CANCEL_TOPIC || m.topic == REFUND_TOPIC)
    }

    pub fn waits_for_refund(&self) -> bool {
        self.unfinished_messages().any(|m| m.topic == REFUND_TOPIC)
    }

    /// When the first authorization that would pay the order was made.
    pub fn authorized_at(&self) -> Option<Timestamp> {
        self.rows
            .charges
            .iter()
            .filter(|c| c.is_authorized() && in_currency(c, self.order()))
            .filter(|c| c.row.amount_minor >= self.order().amount_minor)
            .map(|c| c.row.created_at)
            .min()
    }
}

/// The facts of an intent's orders, in their order.
#[derive(Debug)]
pub struct Facts<'a> {
    pub intent: &'a Intent<'a>,
    pub orders: Vec<OrderFacts<'a>>,
}

impl<'a> Facts<'a> {
    pub fn new(intent: &'a Intent<'a>, as_of: Timestamp, evidence: &Evidence) -> Self {
        let several_live = intent.orders.iter().filter(|o| o.order.status.is_live()).count() > 1;
        let orders =
            intent.orders.iter().map(|&rows| OrderFacts::new(rows, several_live, as_of, evidence)).collect();
        Self { intent, orders }
    }

    pub fn live(&self) -> impl Iterator<Item = &OrderFacts<'a>> {
        self.orders.iter().filter(|o| o.is_live())
    }

    pub fn terminal(&self) -> impl Iterator<Item = &OrderFacts<'a>> {
        self.orders.iter().filter(|o| o.status().is_terminal())
    }

    pub fn candidates(&self) -> impl Iterator<Item = &OrderFacts<'a>> {
        self.orders.iter().filter(|o| o.is_candidate())
    }

    /// Whether a live order asks for the same as this one does.
    pub fn has_live_like(&self, order: &Order) -> bool {
        self.live().any(|o| request(o.order()) == request(order))
    }

    /// Whether the provider must be asked before anything is done (row 2). A payment in doubt on
    /// a terminal order is a finding, but nothing waits for it.
    pub fn in_doubt(&self) -> bool {
        self.orders
            .iter()
            .any(|o| o.doubts.iter().any(|d| *d != Finding::PaymentInDoubt || !o.status().is_terminal()))
    }
}

fn in_currency(charge: &Charge<'_>, order: &Order) -> bool {
    charge.row.currency == order.currency
}

/// When an order was paid, and the charges that came after. The payments say so, not the order;
/// only one that costs nothing goes by its status.
fn payment<'a>(rows: &OrderRows<'a>) -> (Option<Timestamp>, Vec<&'a Charge<'a>>) {
    let order = rows.order;
    let captured = rows.charges.iter().filter(|c| c.is_captured_with_money_left() && in_currency(c, order));
    if order.amount_minor == 0 {
        let paid = matches!(order.status, OrderStatus::Paid | OrderStatus::Ticketed);
        return if paid { (Some(order.created_at), captured.collect()) } else { (None, Vec::new()) };
    }
    let mut sum = 0;
    let mut paid_at = None;
    let mut extra = Vec::new();
    for charge in captured {
        if paid_at.is_some() {
            extra.push(charge);
            continue;
        }
        sum += i128::from(charge.row.amount_minor);
        if sum >= i128::from(order.amount_minor) {
            paid_at = Some(charge.row.captured_at());
        }
    }
    (paid_at, extra)
}

/// Whether a hold takes stock at `as_of`.
pub fn is_live_hold(hold: &Hold, as_of: Timestamp) -> bool {
    match hold.status {
        HoldStatus::Confirmed => true,
        HoldStatus::Held => !is_lapsed(hold, as_of),
        HoldStatus::Released | HoldStatus::Expired => false,
    }
}

/// Whether a hold says HELD but its time has passed at `as_of`.
pub fn is_lapsed(hold: &Hold, as_of: Timestamp) -> bool {
    hold.status == HoldStatus::Held && is_expired(hold, as_of)
}

/// Whether the time of a hold, confirmed or not, has passed at `as_of`.
pub fn is_expired(hold: &Hold, as_of: Timestamp) -> bool {
    is_expired_at(hold.expires_at, as_of)
}

/// The same of a time alone; one that is null never passes.
pub fn is_expired_at(expires_at: Option<Timestamp>, as_of: Timestamp) -> bool {
    expires_at.is_some_and(|expires| expires <= as_of)
}

/// Whether the holds back the order, and those that it does not need: confirmed ones are used
/// up first.
fn backing<'a>(rows: &OrderRows<'a>, as_of: Timestamp) -> (bool, Vec<&'a Hold>) {
    let fits = |hold: &Hold| match (&hold.item, &rows.order.item) {
        (Some(held), Some(ordered)) => held == ordered,
        _ => true,
    };
    let mut fitting: Vec<&'a Hold> =
        rows.holds.iter().copied().filter(|h| is_live_hold(h, as_of) && fits(h)).collect();
    fitting.sort_by_key(|h| h.status != HoldStatus::Confirmed);

    let quantity = i128::from(rows.order.quantity);
    let mut sum = 0;
    let mut excess = Vec::new();
    for hold in fitting {
        if sum >= quantity {
            excess.push(hold);
        } else {
            sum += i128::from(hold.quantity);
        }
    }
    excess.sort_by_key(|h| (h.created_at, &h.hold_id));
    (sum >= quantity, excess)
}

/// Of the unfinished messages that say the same, all but the one to keep: the first that is not DEAD.
fn spare_messages<'a>(messages: &[&'a Message]) -> Vec<&'a Message> {
    let mut keyed: Vec<&'a Message> =
        messages.iter().copied().filter(|m| m.status.is_unfinished() && m.message_key.is_some()).collect();
    let says = |m: &&'a Message| (&m.topic, &m.message_key);
    keyed.sort_by(|a, b| {
        let rank = |m: &&'a Message| (m.status == MessageStatus::Dead, m.created_at, &m.message_id);
        says(a).cmp(&says(b)).then_with(|| rank(a).cmp(&rank(b)))
    });
    let mut spare: Vec<&'a Message> =
        keyed.chunk_by(|a, b| says(a) == says(b)).flat_map(|same| same[1..].iter().copied()).collect();
    spare.sort_by_key(|m| (m.created_at, &m.message_id));
    spare
}

/// Whether money of a real charge went back that no step of our journal gave back.
fn refunded_by_others(charge: &Charge<'_>, evidence: &Evidence) -> bool {
    let row = charge.row;
    let by_us = evidence.refunded_by_us.get(&(row.tenant_id.clone(), row.payment_id.clone()));
    charge.carries && charge.gave_back_minor() > by_us.copied().unwrap_or(0)
}

fn doubts(rows: &OrderRows<'_>, several_live: bool, evidence: &Evidence) -> BTreeSet<Finding> {
    let mut doubts = BTreeSet::new();
    if rows.charges.iter().any(|c| payment_in_doubt(c, several_live)) {
        doubts.insert(Finding::PaymentInDoubt);
    }
    if order_in_motion(rows, evidence) {
        doubts.insert(Finding::OrderInMotion);
    }
    if refund_in_doubt(rows, evidence) {
        doubts.insert(Finding::RefundInDoubt);
    }
    doubts
}

/// One that is INITIATED is a checkout under way where the intent has no other live order.
fn payment_in_doubt(charge: &Charge<'_>, several_live: bool) -> bool {
    use PaymentStatus::*;
    charge.carries
        && match charge.status {
            Unknown | Voiding | Refunding => true,
            Initiated => several_live,
            _ => false,
        }
}

/// An order that somebody else moves, while there may be money on it; until the provider was
/// asked about that order as it is now.
fn order_in_motion(rows: &OrderRows<'_>, evidence: &Evidence) -> bool {
    let order = rows.order;
    let asked = || evidence.asked_orders.get(&(order.tenant_id.clone(), order.order_id.clone()));
    order.status.is_in_motion()
        && rows.charges.iter().any(Charge::may_hold_money)
        && asked() != Some(&order.version)
}

/// A message that asks for a refund which may or may not have happened, while the payment row
/// does not show it.
fn refund_in_doubt(rows: &OrderRows<'_>, evidence: &Evidence) -> bool {
    let refunds = || rows.messages.iter().filter(|m| m.topic == REFUND_TOPIC);
    let in_doubt = |charge: &Charge<'_>| {
        let payment = (charge.row.tenant_id.clone(), charge.row.payment_id.clone());
        let asked = evidence.asked_charges.get(&payment);
        refunds().any(|message| match message.status {
            MessageStatus::InFlight => true,
            _ if charge.row.refunded_minor > 0 => false,
            _ if asked.is_some_and(|asked| *asked > message.created_at) => false,
            MessageStatus::Consumed => true,
            MessageStatus::Queued | MessageStatus::Dead => message.attempts > 0,
            MessageStatus::Quarantined => false,
        })
    };
    refunds().next().is_some()
        && rows.charges.iter().filter(|c| c.is_captured_with_money_left()).any(in_doubt)
}
