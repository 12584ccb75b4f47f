//! The invariants after apply: one order or none lives, nothing is left on dead ones, and the
//! sums close (contract, sections 5 and 7).
//!
//! Everything is counted over the orders and orphans that the plan lists; nothing is grouped anew,
//! so a plan is judged by what it said.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;

use serde::Serialize;

use super::charges::{Charge, charges};
use super::facts::{is_expired, is_live_hold};
use super::ids::*;
use super::ledger::{Hold, Ledgers, Message, Order, Payment};
use super::money::Currency;
use super::plan::{Finding, Outcome, Plan, PlannedIntent, Step, Sums};
use super::status::{HoldStatus, Ledger, OrderStatus, PaymentStatus};
use super::sums::{Counter, Part};

/// What the ledgers show after a plan was applied.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verified {
    /// Every intent of the plan, in its order. Only KEEP and UNWIND can be violated: the others
    /// were not touched.
    pub intents: Vec<VerifiedIntent>,
    /// As the plan has it.
    pub before: Sums,
    /// The same rows now. `to_refund` and `to_release` are what is still to leave.
    pub after: Sums,
    pub refunds: Vec<RefundSum>,
    /// Places where money or stock of a KEEP or UNWIND intent came or went that no step of the
    /// plan moved. What happens to the others is their own business.
    pub open_sums: Vec<OpenSum>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VerifiedIntent {
    pub intent_id: String,
    pub outcome: Outcome,
    pub violations: Vec<Violation>,
}

/// Minor units of one currency that the plan gives back, and that were given back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RefundSum {
    pub tenant_id: TenantId,
    pub currency: Currency,
    pub planned: i128,
    pub done: i128,
}

/// A sum that does not close: before, less what the plan's steps moved, is not after.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OpenSum {
    pub tenant_id: TenantId,
    /// A currency or a show.
    pub of: String,
    pub expected: i128,
    pub found: i128,
}

/// A rule that a decided intent breaks. Shown as a lower-case sentence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "rule", rename_all = "snake_case")]
pub enum Violation {
    SeveralLive {
        orders: Vec<OrderId>,
    },
    /// An order of the plan is in no ledger.
    OrderMissing {
        order: OrderId,
    },
    /// An order that somebody began to close.
    OrderInMotion {
        order: OrderId,
        status: OrderStatus,
    },
    CapturedOnTerminal {
        order: OrderId,
        payment: PaymentId,
        left_minor: i64,
        currency: Currency,
    },
    StockOnTerminal {
        order: OrderId,
        hold: HoldId,
    },
    MessageForTerminal {
        order: OrderId,
        message: MessageId,
    },
    /// What went back is not what the plan says, in minor units.
    Refund {
        payment: PaymentId,
        currency: Currency,
        planned_minor: i64,
        done_minor: i64,
    },
    /// A step that was not carried out, or whose row was moved back.
    NotDone {
        ledger: Ledger,
        id: RowId,
        is: String,
        planned: String,
    },
    /// What is captured, less what the plan gave back, is not what it was; in minor units.
    MoneyMoved {
        currency: Currency,
        expected: i128,
        found: i128,
    },
}

impl Violation {
    /// Whether it is only that a step has not been carried out: so it is while a request is in flight.
    pub const fn is_unfinished(&self) -> bool {
        matches!(self, Self::OrderInMotion { .. } | Self::NotDone { .. } | Self::Refund { done_minor: 0, .. })
    }

    /// The ids of the rows that it names.
    fn rows(&self) -> Vec<String> {
        match self {
            Self::SeveralLive { .. } | Self::MoneyMoved { .. } => Vec::new(),
            Self::OrderMissing { order } | Self::OrderInMotion { order, .. } => vec![order.to_string()],
            Self::CapturedOnTerminal { payment, .. } | Self::Refund { payment, .. } => {
                vec![payment.to_string()]
            }
            Self::StockOnTerminal { hold, .. } => vec![hold.to_string()],
            Self::MessageForTerminal { message, .. } => vec![message.to_string()],
            Self::NotDone { id, .. } => vec![id.to_string()],
        }
    }
}

impl Verified {
    /// Whether every rule holds and every sum closes.
    pub fn holds(&self) -> bool {
        self.open_sums.is_empty() && self.intents.iter().all(|i| i.violations.is_empty())
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SeveralLive { orders } => {
                let orders: Vec<&str> = orders.iter().map(OrderId::as_str).collect();
                write!(f, "orders {} are all live", orders.join(", "))
            }
            Self::OrderMissing { order } => write!(f, "order {order} is in no ledger"),
            Self::OrderInMotion { order, status } => write!(f, "order {order} is still {status}"),
            Self::CapturedOnTerminal { order, payment, left_minor, currency } => {
                let left = currency.show(i128::from(*left_minor));
                write!(f, "payment {payment} holds {left} although order {order} is closed")
            }
            Self::StockOnTerminal { order, hold } => {
                write!(f, "hold {hold} holds stock although order {order} is closed")
            }
            Self::MessageForTerminal { order, message } => {
                write!(f, "message {message} is unfinished although order {order} is closed")
            }
            Self::Refund { payment, currency, planned_minor, done_minor } => {
                let (planned, done) =
                    (currency.show(i128::from(*planned_minor)), currency.show(i128::from(*done_minor)));
                write!(f, "payment {payment} gave back {done}, the plan says {planned}")
            }
            Self::NotDone { ledger, id, is, planned } => {
                write!(f, "{} {id} is {is}, the plan takes it to {planned}", ledger.row_name())
            }
            Self::MoneyMoved { currency, expected, found } => write!(
                f,
                "{} is captured where {} should be left, and no step of the plan moved the difference",
                currency.show(*found),
                currency.show(*expected)
            ),
        }
    }
}

/// Checks a plan against the ledgers as they are now. `after` holds at least the plan's orders,
/// what attaches to them, its orphans, and all rows that share a charge with one of these.
pub fn verify(plan: &Plan, after: &Ledgers) -> Verified {
    let mut tally = Tally::default();
    let intents = plan
        .intents
        .iter()
        .zip(rows_now(plan, after))
        .map(|(intent, now)| {
            tally.add(plan, intent, &now);
            let violations = match intent.outcome {
                Outcome::Keep | Outcome::Unwind => violations(intent, &now),
                Outcome::Clean | Outcome::Review | Outcome::Unsettled => Vec::new(),
            };
            VerifiedIntent { intent_id: intent.intent_id.clone(), outcome: intent.outcome, violations }
        })
        .collect();
    tally.verified(plan.sums.clone(), intents)
}

/// The rows of a planned intent as they are now.
#[derive(Default)]
struct IntentNow<'a> {
    orders: Vec<&'a Order>,
    charges: Vec<Charge<'a>>,
    holds: Vec<&'a Hold>,
    messages: Vec<&'a Message>,
}

/// The rows of each of the plan's intents, in their order: its orders with all that attaches to
/// them by now, and its orphans.
fn rows_now<'a>(plan: &Plan, after: &'a Ledgers) -> Vec<IntentNow<'a>> {
    let mut intent_of: HashMap<(&TenantId, Ledger, &str), usize> = HashMap::new();
    for (index, intent) in plan.intents.iter().enumerate() {
        for id in &intent.orders {
            intent_of.insert((&intent.tenant_id, Ledger::Orders, id.as_str()), index);
        }
        for (ledger, id) in &intent.orphans {
            intent_of.insert((&intent.tenant_id, *ledger, id.as_str()), index);
        }
    }
    let find = |tenant_id: &TenantId, order_id: Option<&OrderId>, ledger: Ledger, id: &str| {
        let by_order = order_id.and_then(|o| intent_of.get(&(tenant_id, Ledger::Orders, o.as_str())));
        by_order.or_else(|| intent_of.get(&(tenant_id, ledger, id))).copied()
    };

    let mut now: Vec<IntentNow<'a>> = plan.intents.iter().map(|_| IntentNow::default()).collect();
    for row in &after.orders {
        if let Some(index) = find(&row.tenant_id, Some(&row.order_id), Ledger::Orders, row.order_id.as_str())
        {
            now[index].orders.push(row);
        }
    }
    let order_of = |i: usize| {
        let row: &Payment = &after.payments[i];
        let order_id = row.order_id.as_ref()?;
        intent_of.get(&(&row.tenant_id, Ledger::Orders, order_id.as_str())).copied()
    };
    for charge in charges(&after.payments, order_of, &plan.policy, plan.as_of) {
        let row = charge.row;
        if let Some(index) =
            find(&row.tenant_id, row.order_id.as_ref(), Ledger::Payments, row.payment_id.as_str())
        {
            now[index].charges.push(charge);
        }
    }
    for row in &after.inventory {
        if let Some(index) =
            find(&row.tenant_id, row.order_id.as_ref(), Ledger::Inventory, row.hold_id.as_str())
        {
            now[index].holds.push(row);
        }
    }
    for row in &after.messages {
        if let Some(index) =
            find(&row.tenant_id, row.order_id.as_ref(), Ledger::Messages, row.message_id.as_str())
        {
            now[index].messages.push(row);
        }
    }
    now
}

/// A step's refund: the payment, the amount in minor units and its currency; once for both legs.
fn planned_refunds(intent: &PlannedIntent) -> impl Iterator<Item = (&RowId, i64, Currency)> {
    let first_legs = intent.steps.iter().filter(|s| s.to == PaymentStatus::Refunding.as_str());
    first_legs.filter_map(|s| Some((&s.id, s.amount_minor?, s.currency?)))
}

/// What a payment row gave back since the plan, which left nothing on it: minor units.
fn refunded_since(row: &Payment, planned_minor: i64) -> i64 {
    let before = row.amount_minor - planned_minor;
    row.refunded_minor - before
}

/// Adds up what is there now and what was moved.
#[derive(Default)]
struct Tally {
    after: Counter,
    /// Planned and done.
    refunds: BTreeMap<(TenantId, Currency), (i128, i128)>,
    released: BTreeMap<(TenantId, ShowId), i128>,
}

impl Tally {
    fn add(&mut self, plan: &Plan, intent: &PlannedIntent, now: &IntentNow<'_>) {
        let tenant_id = &intent.tenant_id;
        let stays = Part::from(intent.outcome);
        let refunds: HashMap<&str, i64> =
            planned_refunds(intent).map(|(id, amount, _)| (id.as_str(), amount)).collect();
        for (_, amount, currency) in planned_refunds(intent) {
            self.refunds.entry((tenant_id.clone(), currency)).or_default().0 += i128::from(amount);
        }
        for charge in &now.charges {
            let row = charge.row;
            let refund = refunds.get(row.payment_id.as_str());
            let net = still_there(charge, refund.is_some());
            if let Some(planned) = refund {
                let done = i128::from(refunded_since(row, *planned));
                self.refunds.entry((tenant_id.clone(), row.currency)).or_default().1 += done;
            }
            if net != 0 {
                let part = if refund.is_some() { Part::Leaving } else { stays };
                self.after.money(tenant_id, row.currency, Part::Total, net);
                self.after.money(tenant_id, row.currency, part, net);
            }
        }

        let releases: HashMap<&str, &Step> = intent
            .steps
            .iter()
            .filter(|s| s.ledger == Ledger::Inventory)
            .map(|s| (s.id.as_str(), s))
            .collect();
        for hold in &now.holds {
            let pieces = i128::from(hold.quantity);
            let release = releases.get(hold.hold_id.as_str());
            if is_live_hold(hold, plan.as_of) {
                let part = if release.is_some() { Part::Leaving } else { stays };
                self.after.stock(tenant_id, &hold.show_id, Part::Total, pieces);
                self.after.stock(tenant_id, &hold.show_id, part, pieces);
            } else if release.is_some_and(|step| was_live(step, hold, plan)) {
                *self.released.entry((tenant_id.clone(), hold.show_id.clone())).or_default() += pieces;
            }
        }
    }

    fn verified(self, before: Sums, intents: Vec<VerifiedIntent>) -> Verified {
        let after = self.after.sums();
        let mut money: BTreeMap<(TenantId, Currency), (i128, i128)> = BTreeMap::new();
        for sum in &before.money {
            money.entry((sum.tenant_id.clone(), sum.currency)).or_default().0 += sum.kept + sum.to_refund;
        }
        for (place, (_, done)) in &self.refunds {
            money.entry(place.clone()).or_default().0 -= done;
        }
        for sum in &after.money {
            money.entry((sum.tenant_id.clone(), sum.currency)).or_default().1 += sum.kept + sum.to_refund;
        }
        let mut stock: BTreeMap<(TenantId, ShowId), (i128, i128)> = BTreeMap::new();
        for sum in &before.stock {
            stock.entry((sum.tenant_id.clone(), sum.show_id.clone())).or_default().0 +=
                sum.kept + sum.to_release;
        }
        for (place, released) in &self.released {
            stock.entry(place.clone()).or_default().0 -= released;
        }
        for sum in &after.stock {
            stock.entry((sum.tenant_id.clone(), sum.show_id.clone())).or_default().1 +=
                sum.kept + sum.to_release;
        }
        let money = money.into_iter().map(|((tenant, currency), sums)| (tenant, currency.to_string(), sums));
        let stock = stock.into_iter().map(|((tenant, show), sums)| (tenant, show.to_string(), sums));
        let open_sums = money
            .chain(stock)
            .filter(|(_, _, (expected, found))| expected != found)
            .map(|(tenant_id, of, (expected, found))| OpenSum { tenant_id, of, expected, found })
            .collect();
        let refunds = self
            .refunds
            .into_iter()
            .map(|((tenant_id, currency), (planned, done))| RefundSum { tenant_id, currency, planned, done })
            .collect();
        Verified { intents, before, after, refunds, open_sums }
    }
}

/// Whether a hold that the plan releases took stock when the plan was made.
fn was_live(release: &Step, hold: &Hold, plan: &Plan) -> bool {
    release.from == HoldStatus::Confirmed.as_str() || !is_expired(hold, plan.as_of)
}

fn violations(intent: &PlannedIntent, now: &IntentNow<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    let orders: HashMap<&OrderId, &Order> = now.orders.iter().map(|o| (&o.order_id, *o)).collect();
    let missing = intent.orders.iter().filter(|id| !orders.contains_key(id));
    found.extend(missing.map(|id| Violation::OrderMissing { order: id.clone() }));

    let live = now.orders.iter().filter(|o| o.status.is_live());
    let mut live: Vec<OrderId> = live.map(|o| o.order_id.clone()).collect();
    if live.len() > 1 {
        live.sort_unstable();
        found.push(Violation::SeveralLive { orders: live });
    }
    let in_motion = now.orders.iter().filter(|o| o.status.is_in_motion());
    found.extend(in_motion.map(|o| Violation::OrderInMotion { order: o.order_id.clone(), status: o.status }));
    found.extend(left_on_terminal(intent, now, &orders));
    found.extend(wrong_refunds(intent, now));
    found.extend(moved_behind(intent, now));
    let told: HashSet<String> = found.iter().flat_map(Violation::rows).collect();
    found.extend(not_done(intent, now).into_iter().filter(|v| v.rows().iter().all(|id| !told.contains(id))));
    found
}

/// What a charge still holds. One that is being refunded by the plan does, until the refund has ended.
fn still_there(charge: &Charge<'_>, is_refunded_by_plan: bool) -> i128 {
    match charge.status {
        PaymentStatus::Refunding if is_refunded_by_plan && charge.carries => charge.row.left_minor().into(),
        _ => charge.net_minor(),
    }
}

/// Money that came to the intent or left it, and that no refund of the plan accounts for.
fn moved_behind(intent: &PlannedIntent, now: &IntentNow<'_>) -> Vec<Violation> {
    let refunds: HashMap<&str, i64> =
        planned_refunds(intent).map(|(id, amount, _)| (id.as_str(), amount)).collect();
    let mut sums: BTreeMap<Currency, (i128, i128)> = BTreeMap::new();
    for (currency, captured) in &intent.captured {
        sums.entry(*currency).or_default().0 += captured;
    }
    for charge in &now.charges {
        let sum = sums.entry(charge.row.currency).or_default();
        let refund = refunds.get(charge.row.payment_id.as_str());
        sum.1 += still_there(charge, refund.is_some());
        if let Some(planned) = refund {
            // More than planned is told of the refund itself.
            sum.0 -= i128::from(refunded_since(charge.row, *planned).min(*planned));
        }
    }
    sums.into_iter()
        .filter(|(_, (expected, found))| expected != found)
        .map(|(currency, (expected, found))| Violation::MoneyMoved { currency, expected, found })
        .collect()
}

/// Rows that a step was to move and that are neither there nor where they may go from there.
fn not_done(intent: &PlannedIntent, now: &IntentNow<'_>) -> Vec<Violation> {
    let mut status: HashMap<(Ledger, &str), &'static str> = HashMap::new();
    status.extend(now.orders.iter().map(|r| ((Ledger::Orders, r.order_id.as_str()), r.status.as_str())));
    let payments = now.charges.iter().map(|c| c.row);
    status.extend(payments.map(|r| ((Ledger::Payments, r.payment_id.as_str()), r.status.as_str())));
    status.extend(now.holds.iter().map(|r| ((Ledger::Inventory, r.hold_id.as_str()), r.status.as_str())));
    status
        .extend(now.messages.iter().map(|r| ((Ledger::Messages, r.message_id.as_str()), r.status.as_str())));

    let mut last: BTreeMap<(Ledger, &RowId), &Step> = BTreeMap::new();
    last.extend(intent.steps.iter().map(|step| ((step.ledger, &step.id), step)));
    last.into_values()
        .filter_map(|step| {
            let is = *status.get(&(step.ledger, step.id.as_str()))?;
            (!step.ledger.may_become(&step.to, is)).then(|| Violation::NotDone {
                ledger: step.ledger,
                id: step.id.clone(),
                is: is.to_owned(),
                planned: step.to.clone(),
            })
        })
        .collect()
}

/// Money, stock and messages that a closed order still has.
fn left_on_terminal(
    intent: &PlannedIntent,
    now: &IntentNow<'_>,
    orders: &HashMap<&OrderId, &Order>,
) -> Vec<Violation> {
    let terminal = |order_id: &Option<OrderId>| {
        let order = orders.get(order_id.as_ref()?)?;
        order.status.is_terminal().then(|| order.order_id.clone())
    };
    let mut found = Vec::new();
    let captured = now.charges.iter().filter(|c| c.is_captured_with_money_left());
    let retained = retained_orders(intent, now);
    for row in captured.map(|c| c.row) {
        if let Some(order) = terminal(&row.order_id).filter(|order| !retained.contains(order)) {
            let (payment, left_minor, currency) = (row.payment_id.clone(), row.left_minor(), row.currency);
            found.push(Violation::CapturedOnTerminal { order, payment, left_minor, currency });
        }
    }
    for row in now.holds.iter().filter(|h| matches!(h.status, HoldStatus::Held | HoldStatus::Confirmed)) {
        if let Some(order) = terminal(&row.order_id) {
            found.push(Violation::StockOnTerminal { order, hold: row.hold_id.clone() });
        }
    }
    for row in now.messages.iter().filter(|m| m.status.is_unfinished()) {
        if let Some(order) = terminal(&row.order_id) {
            found.push(Violation::MessageForTerminal { order, message: row.message_id.clone() });
        }
    }
    found
}

/// Orders that were closed before the plan, with money that somebody kept back on purpose: the
/// plan found it RETAINED, and neither closes the order nor refunds its payments.
fn retained_orders(intent: &PlannedIntent, now: &IntentNow<'_>) -> HashSet<OrderId> {
    if !intent.findings.contains(&Finding::Retained) {
        return HashSet::new();
    }
    let refunds: HashSet<&str> = planned_refunds(intent).map(|(id, ..)| id.as_str()).collect();
    let closes: HashSet<&str> =
        intent.steps.iter().filter(|s| s.ledger == Ledger::Orders).map(|s| s.id.as_str()).collect();
    let orders_of = |test: &dyn Fn(&Charge<'_>) -> bool| -> HashSet<OrderId> {
        let charges = now.charges.iter().filter(|c| c.carries && test(c));
        charges.filter_map(|c| c.row.order_id.clone()).collect()
    };
    let refunded_by_plan = orders_of(&|c| refunds.contains(c.row.payment_id.as_str()));
    let mut retained = orders_of(&|c| c.gave_back_minor() > 0);
    retained.retain(|order| !closes.contains(order.as_str()) && !refunded_by_plan.contains(order));
    retained
}

fn wrong_refunds(intent: &PlannedIntent, now: &IntentNow<'_>) -> Vec<Violation> {
    let rows: HashMap<&str, &Payment> =
        now.charges.iter().map(|c| (c.row.payment_id.as_str(), c.row)).collect();
    planned_refunds(intent)
        .map(|(id, planned_minor, currency)| {
            let done_minor = rows.get(id.as_str()).map_or(0, |row| refunded_since(row, planned_minor));
            Violation::Refund { payment: id.as_str().into(), currency, planned_minor, done_minor }
        })
        .filter(|v| !matches!(v, Violation::Refund { planned_minor, done_minor, .. } if planned_minor == done_minor))
        .collect()
}
