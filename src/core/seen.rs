//! The rows of an intent as a plan saw them, to be compared with before anything moves
//! (contract, section 5).

use super::hash::FieldHash;
use super::ids::*;
use super::join::Intent;
use super::ledger::{Hold, Message, Order, Payment};
use super::orphans::Orphan;
use super::plan::SeenRow;
use super::status::Ledger;
use super::time::Timestamp;

/// The intent's orders, what attaches to them, and its orphans; by ledger and id.
pub fn seen(intent: &Intent<'_>) -> Vec<SeenRow> {
    let of_orders = intent.orders.iter().flat_map(|rows| {
        let charges = rows.charges.iter().map(|c| of_payment(c.row));
        let holds = rows.holds.iter().map(|h| of_hold(h));
        let messages = rows.messages.iter().map(|m| of_message(m));
        std::iter::once(of_order(rows.order)).chain(charges).chain(holds).chain(messages)
    });
    let of_orphans = intent.orphans.iter().map(|orphan| match orphan {
        Orphan::Payment(charge) => of_payment(charge.row),
        Orphan::Hold(hold) => of_hold(hold),
        Orphan::Message(message) => of_message(message),
    });
    let mut rows: Vec<SeenRow> = of_orders.chain(of_orphans).collect();
    rows.sort_unstable_by(|a, b| (a.ledger, &a.id).cmp(&(b.ledger, &b.id)));
    rows
}

fn of_order(row: &Order) -> SeenRow {
    let content = FieldHash::new()
        .text(row.user_id.as_str())
        .text(row.show_id.as_str())
        .maybe(row.session_id.as_ref().map(SessionId::as_str))
        .maybe(row.idempotency_key.as_ref().map(IdempotencyKey::as_str))
        .maybe(row.item.as_ref().map(Item::as_str))
        .number(row.quantity)
        .number(row.amount_minor)
        .text(row.currency.code())
        .maybe(row.source.as_deref())
        .maybe(row.trace_id.as_deref())
        .number(row.created_at.micros());
    SeenRow {
        ledger: Ledger::Orders,
        id: (&row.order_id).into(),
        status: row.status.as_str().to_owned(),
        version: row.version.clone(),
        content: content.short_hex(),
    }
}

fn of_payment(row: &Payment) -> SeenRow {
    let content = FieldHash::new()
        .maybe(row.order_id.as_ref().map(OrderId::as_str))
        .text(row.user_id.as_str())
        .text(row.show_id.as_str())
        .maybe(row.session_id.as_ref().map(SessionId::as_str))
        .number(row.amount_minor)
        .number(row.refunded_minor)
        .text(row.currency.code())
        .text(&row.provider)
        .maybe(row.provider_txn_id.as_deref())
        .number(row.created_at.micros())
        .maybe(row.captured_at.map(micros).as_deref());
    SeenRow {
        ledger: Ledger::Payments,
        id: (&row.payment_id).into(),
        status: row.status.as_str().to_owned(),
        version: row.version.clone(),
        content: content.short_hex(),
    }
}

fn of_hold(row: &Hold) -> SeenRow {
    let content = FieldHash::new()
        .maybe(row.order_id.as_ref().map(OrderId::as_str))
        .text(row.user_id.as_str())
        .text(row.show_id.as_str())
        .maybe(row.session_id.as_ref().map(SessionId::as_str))
        .maybe(row.item.as_ref().map(Item::as_str))
        .number(row.quantity)
        .number(row.created_at.micros())
        .maybe(row.expires_at.map(micros).as_deref());
    SeenRow {
        ledger: Ledger::Inventory,
        id: (&row.hold_id).into(),
        status: row.status.as_str().to_owned(),
        version: row.version.clone(),
        content: content.short_hex(),
    }
}

fn of_message(row: &Message) -> SeenRow {
    let content = FieldHash::new()
        .maybe(row.message_key.as_deref())
        .text(&row.topic)
        .maybe(row.order_id.as_ref().map(OrderId::as_str))
        .maybe(row.user_id.as_ref().map(UserId::as_str))
        .maybe(row.show_id.as_ref().map(ShowId::as_str))
        .maybe(row.session_id.as_ref().map(SessionId::as_str))
        .number(row.attempts)
        .maybe(row.trace_id.as_deref())
        .number(row.created_at.micros());
    SeenRow {
        ledger: Ledger::Messages,
        id: (&row.message_id).into(),
        status: row.status.as_str().to_owned(),
        version: row.version.clone(),
        content: content.short_hex(),
    }
}

fn micros(time: Timestamp) -> String {
    time.micros().to_string()
}
