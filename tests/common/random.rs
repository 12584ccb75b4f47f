//! Random ledgers that are bent in many ways at once, and policies to plan them with.

use onefold::core::ids::*;
use onefold::core::ledger::*;
use onefold::core::policy::*;
use onefold::core::status::{HoldStatus, Ledger, MessageStatus, OrderStatus, PaymentStatus};
use onefold::core::time::Span;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::book::at;

/// One of these, the first far more often than the others.
fn mostly<T: Clone + std::fmt::Debug + 'static>(usual: T, others: &[T]) -> impl Strategy<Value = T> {
    prop_oneof![9 => Just(usual), 1 => select(others.to_vec())]
}

/// An order, the rows that usually come with it, and how it may differ from its neighbours.
#[derive(Clone, Debug)]
struct Draw {
    status: OrderStatus,
    seconds: i64,
    session: Option<&'static str>,
    key: Option<&'static str>,
    quantity: i64,
    amount_minor: i64,
    paid: bool,
    held: bool,
    told: bool,
}

prop_compose! {
    fn draw()(
        any_status in select(OrderStatus::ALL.to_vec()),
        live in select(vec![OrderStatus::PendingPayment, OrderStatus::Paid, OrderStatus::Paid, OrderStatus::Ticketed]),
        is_live in prop::bool::weighted(0.7),
        seconds in mostly(0, &[60, 115, 300]),
        more in 0..10i64,
        session in mostly(Some("s1"), &[None, Some("s2")]),
        key in mostly(None, &[Some("k1"), Some("k2")]),
        quantity in mostly(1, &[2]),
        amount_minor in mostly(1000, &[0, 1001]),
        odd in prop::bool::weighted(0.1),
        held in prop::bool::weighted(0.8),
        told in any::<bool>(),
    ) -> Draw {
        let status = if is_live { live } else { any_status };
        let paid = matches!(status, OrderStatus::Paid | OrderStatus::Ticketed) != odd;
        Draw { status, seconds: seconds + more, session, key, quantity, amount_minor, paid, held, told }
    }
}

prop_compose! {
    /// Orders that one user made in one go.
    fn burst()(
        tenant in mostly("t", &["t2"]),
        user in mostly("u1", &["u2", "guest"]),
        show in mostly("show", &["show2"]),
        item in mostly(None, &[Some("seat")]),
        currency in mostly("CNY", &["JPY"]),
        start in select(vec![0, 0, 200, 2000]),
        same_key in mostly(false, &[true]),
        draws in prop::collection::vec(draw(), 1..5),
    ) -> Ledgers {
        let mut rows = Ledgers::default();
        for draw in draws {
            let order = Order {
                order_id: format!("{start}-{}", rows.orders.len()).into(),
                tenant_id: tenant.into(),
                user_id: user.into(),
                show_id: show.into(),
                session_id: draw.session.map(SessionId::from),
                idempotency_key: if same_key { Some("k1".into()) } else { draw.key.map(IdempotencyKey::from) },
                item: item.map(Item::from),
                quantity: draw.quantity,
                amount_minor: draw.amount_minor,
                currency: currency.parse().unwrap(),
                status: draw.status,
                source: None,
                trace_id: None,
                created_at: at(start + draw.seconds),
                version: "1".into(),
                shard: 0,
            };
            if draw.paid {
                rows.payments.push(payment_of(&order));
            }
            if draw.held {
                rows.inventory.push(hold_of(&order));
            }
            if draw.told {
                rows.messages.push(message_of(&order));
            }
            rows.orders.push(order);
        }
        rows
    }
}

fn payment_of(order: &Order) -> Payment {
    Payment {
        payment_id: "".into(),
        tenant_id: order.tenant_id.clone(),
        order_id: Some(order.order_id.clone()),
        user_id: order.user_id.clone(),
        show_id: order.show_id.clone(),
        session_id: order.session_id.clone(),
        amount_minor: order.amount_minor,
        refunded_minor: 0,
        currency: order.currency,
        provider: "pay".into(),
        provider_txn_id: None,
        status: PaymentStatus::Captured,
        created_at: order.created_at,
        captured_at: None,
        version: "1".into(),
        shard: 0,
    }
}

fn hold_of(order: &Order) -> Hold {
    Hold {
        hold_id: "".into(),
        tenant_id: order.tenant_id.clone(),
        order_id: Some(order.order_id.clone()),
        user_id: order.user_id.clone(),
        show_id: order.show_id.clone(),
        session_id: order.session_id.clone(),
        item: order.item.clone(),
        quantity: order.quantity,
        status: HoldStatus::Confirmed,
        created_at: order.created_at,
        expires_at: None,
        version: "1".into(),
        shard: 0,
    }
}

fn message_of(order: &Order) -> Message {
    Message {
        message_id: "".into(),
        tenant_id: order.tenant_id.clone(),
        message_key: Some("k".into()),
        topic: "ticket.issue".into(),
        order_id: Some(order.order_id.clone()),
        user_id: Some(order.user_id.clone()),
        show_id: Some(order.show_id.clone()),
        session_id: order.session_id.clone(),
        status: MessageStatus::Queued,
        attempts: 0,
        trace_id: None,
        created_at: order.created_at,
        version: "1".into(),
        shard: 0,
    }
}

/// How a row of an order differs from what it should be.
#[derive(Clone, Debug)]
enum Bend {
    Payment {
        status: PaymentStatus,
        amount: Option<i64>,
        refunded: i64,
        txn: Option<&'static str>,
        after: i64,
    },
    Hold {
        status: HoldStatus,
        item: Option<&'static str>,
        after: i64,
        expires: Option<i64>,
    },
    Message {
        status: MessageStatus,
        topic: &'static str,
        key: Option<&'static str>,
        attempts: i64,
        after: i64,
    },
    /// The row of another owner, in another currency, or without its order.
    Stray {
        ledger: Ledger,
        change: u8,
    },
}

fn bend() -> impl Strategy<Value = (Index, bool, Bend)> {
    let payment = (
        mostly(PaymentStatus::Captured, PaymentStatus::ALL),
        mostly(None, &[Some(1), Some(500), Some(2000)]),
        mostly(0, &[1, 1000, 1500]),
        select(vec![None, None, Some("x1"), Some("x2")]),
        -10..90i64,
    );
    let payment = payment.prop_map(|(status, amount, refunded, txn, after)| Bend::Payment {
        status,
        amount,
        refunded,
        txn,
        after,
    });
    let hold = (
        select(HoldStatus::ALL.to_vec()),
        mostly(None, &[Some("VIP")]),
        0..9i64,
        mostly(None, &[Some(3599), Some(3600), Some(3601)]),
    );
    let hold = hold.prop_map(|(status, item, after, expires)| Bend::Hold { status, item, after, expires });
    let message = (
        select(MessageStatus::ALL.to_vec()),
        select(vec!["ticket.issue", "ticket.issue", "order.cancel", "payment.refund", "inventory.release"]),
        mostly(Some("k"), &[None]),
        0..2i64,
        0..9i64,
    );
    let message = message.prop_map(|(status, topic, key, attempts, after)| Bend::Message {
        status,
        topic,
        key,
        attempts,
        after,
    });
    let stray =
        (select(Ledger::ALL.to_vec()), 0..4u8).prop_map(|(ledger, change)| Bend::Stray { ledger, change });
    let bend = prop_oneof![8 => payment, 6 => hold, 6 => message, 1 => stray];
    (any::<Index>(), any::<bool>(), bend)
}

/// Bends the last row of a ledger that belongs to this order, or adds one that is bent.
fn apply_bend(rows: &mut Ledgers, order: &Order, more: bool, bend: &Bend) {
    let of = |order_id: &Option<OrderId>| order_id.as_ref() == Some(&order.order_id);
    match *bend {
        Bend::Payment { status, amount, refunded, txn, after } => {
            if more || !rows.payments.iter().any(|p| of(&p.order_id)) {
                rows.payments.push(payment_of(order));
            }
            let row = rows.payments.iter_mut().rfind(|p| of(&p.order_id)).unwrap();
            row.status = status;
            row.amount_minor = amount.unwrap_or(row.amount_minor);
            row.refunded_minor = refunded;
            row.provider_txn_id = txn.map(str::to_owned);
            row.captured_at = Some(order.created_at.plus(Span::from_secs(after)));
        }
        Bend::Hold { status, item, after, expires } => {
            if more || !rows.inventory.iter().any(|h| of(&h.order_id)) {
                rows.inventory.push(hold_of(order));
            }
            let row = rows.inventory.iter_mut().rfind(|h| of(&h.order_id)).unwrap();
            row.status = status;
            row.item = item.map(Item::from);
            row.created_at = order.created_at.plus(Span::from_secs(after));
            row.expires_at = expires.map(at);
        }
        Bend::Message { status, topic, key, attempts, after } => {
            if more || !rows.messages.iter().any(|m| of(&m.order_id)) {
                rows.messages.push(message_of(order));
            }
            let row = rows.messages.iter_mut().rfind(|m| of(&m.order_id)).unwrap();
            row.status = status;
            row.topic = topic.to_owned();
            row.message_key = key.map(str::to_owned);
            row.attempts = attempts;
            row.created_at = order.created_at.plus(Span::from_secs(after));
        }
        Bend::Stray { ledger: Ledger::Orders, .. } => {}
        Bend::Stray { ledger: Ledger::Payments, change } => {
            let mut row = payment_of(order);
            match change {
                0 => row.user_id = "another".into(),
                1 => row.currency = "EUR".parse().unwrap(),
                2 => row.order_id = Some("lost".into()),
                _ => row.order_id = None,
            }
            rows.payments.push(row);
        }
        Bend::Stray { ledger: Ledger::Inventory, change } => {
            let mut row = hold_of(order);
            match change {
                0 => row.user_id = "another".into(),
                1 => row.session_id = None,
                2 => row.order_id = Some("lost".into()),
                _ => row.order_id = None,
            }
            rows.inventory.push(row);
        }
        Bend::Stray { ledger: Ledger::Messages, change } => {
            let mut row = message_of(order);
            match change {
                0 => (row.user_id, row.order_id) = (None, Some("lost".into())),
                1 => (row.session_id, row.order_id) = (None, Some("lost".into())),
                2 => row.order_id = Some("lost".into()),
                _ => row.order_id = None,
            }
            rows.messages.push(row);
        }
    }
}

/// A few bursts of orders with the rows that they should have, bent in a few places. Bursts may
/// fall together: in one tenant's user and show, at one time.
pub fn ledgers() -> impl Strategy<Value = Ledgers> {
    let parts = (prop::collection::vec(burst(), 1..4), prop::collection::vec(bend(), 0..6));
    parts.prop_map(|(bursts, bends)| {
        let mut rows = Ledgers::default();
        for (i, mut burst) in bursts.into_iter().enumerate() {
            let rename = |id: &OrderId| OrderId::from(format!("{i}/{id}"));
            burst.orders.iter_mut().for_each(|r| r.order_id = rename(&r.order_id));
            burst.payments.iter_mut().for_each(|r| r.order_id = r.order_id.as_ref().map(rename));
            burst.inventory.iter_mut().for_each(|r| r.order_id = r.order_id.as_ref().map(rename));
            burst.messages.iter_mut().for_each(|r| r.order_id = r.order_id.as_ref().map(rename));
            rows.orders.append(&mut burst.orders);
            rows.payments.append(&mut burst.payments);
            rows.inventory.append(&mut burst.inventory);
            rows.messages.append(&mut burst.messages);
        }
        for (which, more, bend) in &bends {
            let order = which.get(&rows.orders).clone();
            apply_bend(&mut rows, &order, *more, bend);
        }
        let number = |i: usize, kind: &str| format!("{kind}-{i}");
        for (i, row) in rows.payments.iter_mut().enumerate() {
            row.payment_id = number(i, "P").into();
        }
        for (i, row) in rows.inventory.iter_mut().enumerate() {
            row.hold_id = number(i, "H").into();
        }
        for (i, row) in rows.messages.iter_mut().enumerate() {
            row.message_id = number(i, "M").into();
        }
        rows
    })
}

prop_compose! {
    pub fn policy()(
        max_span in select(vec![60, 600, 6000]),
        distinct_keys in mostly(DistinctKeys::Merge, DistinctKeys::ALL),
        different_request in mostly(DifferentRequest::Split, DifferentRequest::ALL),
        without_session in mostly(WithoutSession::Merge, WithoutSession::ALL),
        guest in any::<bool>(),
        initiated_expires in select(vec![None, Some(Span::from_mins(5))]),
        paid_without_stock in mostly(PaidWithoutStock::Refund, PaidWithoutStock::ALL),
        unpaid in select(Unpaid::ALL.to_vec()),
        ticketed in mostly(Ticketed::Prefer, Ticketed::ALL),
        cancel_pending in mostly(CancelPending::Quarantine, CancelPending::ALL),
        terminal_captured in select(TerminalCaptured::ALL.to_vec()),
    ) -> Policy {
        Policy {
            gap: Span::from_mins(2),
            max_span: Span::from_secs(max_span),
            guests: guest.then(|| UserId::from("guest")).into_iter().collect(),
            distinct_keys,
            different_request,
            without_session,
            initiated_expires,
            paid_without_stock,
            unpaid,
            ticketed,
            cancel_pending,
            terminal_captured,
        }
    }
}

/// Several random ledgers in one, each of its own buyers, so that some stand alone.
pub fn crowd() -> impl Strategy<Value = Ledgers> {
    prop::collection::vec((ledgers(), prop::bool::weighted(0.9)), 1..6).prop_map(|parts| {
        let mut crowd = Ledgers::default();
        for (i, (mut part, apart)) in parts.into_iter().enumerate() {
            let order = |id: &mut OrderId| *id = format!("{i}:{id}").into();
            let user = |id: &mut UserId| {
                if apart {
                    *id = format!("{id}-{i}").into();
                }
            };
            for row in &mut part.orders {
                order(&mut row.order_id);
                user(&mut row.user_id);
            }
            for row in &mut part.payments {
                row.payment_id = format!("{i}:{}", row.payment_id).into();
                row.order_id.iter_mut().for_each(order);
                user(&mut row.user_id);
            }
            for row in &mut part.inventory {
                row.hold_id = format!("{i}:{}", row.hold_id).into();
                row.order_id.iter_mut().for_each(order);
                user(&mut row.user_id);
            }
            for row in &mut part.messages {
                row.message_id = format!("{i}:{}", row.message_id).into();
                row.order_id.iter_mut().for_each(order);
                row.user_id.iter_mut().for_each(user);
            }
            crowd.orders.append(&mut part.orders);
            crowd.payments.append(&mut part.payments);
            crowd.inventory.append(&mut part.inventory);
            crowd.messages.append(&mut part.messages);
        }
        crowd
    })
}
