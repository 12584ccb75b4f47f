//! The rows of the four ledgers as the contract's section 1 has them.

use std::collections::HashSet;

use super::ids::*;
use super::money::Currency;
use super::status::*;
use super::time::Timestamp;
use crate::error::Result;

/// Which of its ledger's databases a row was read from, counted from 0; its moves go back there.
/// Always 0 where the ledger lives in one database.
pub type Shard = u16;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    pub order_id: OrderId,
    pub tenant_id: TenantId,
    pub user_id: UserId,
    pub show_id: ShowId,
    pub session_id: Option<SessionId>,
    pub idempotency_key: Option<IdempotencyKey>,
    pub item: Option<Item>,
    /// At least 1.
    pub quantity: i64,
    /// At least 0, in the currency's minor unit.
    pub amount_minor: i64,
    pub currency: Currency,
    pub status: OrderStatus,
    pub source: Option<String>,
    pub trace_id: Option<String>,
    pub created_at: Timestamp,
    pub version: Version,
    pub shard: Shard,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payment {
    pub payment_id: PaymentId,
    pub tenant_id: TenantId,
    pub order_id: Option<OrderId>,
    pub user_id: UserId,
    pub show_id: ShowId,
    pub session_id: Option<SessionId>,
    /// At least 0, in the currency's minor unit.
    pub amount_minor: i64,
    /// At least 0; more than `amount_minor` is a finding (OVER_REFUNDED), not bad input.
    pub refunded_minor: i64,
    pub currency: Currency,
    pub provider: String,
    pub provider_txn_id: Option<String>,
    pub status: PaymentStatus,
    pub created_at: Timestamp,
    pub captured_at: Option<Timestamp>,
    pub version: Version,
    pub shard: Shard,
}

impl Payment {
    /// `captured_at`, else `created_at`: what the contract calls captured_at below its section 1.
    pub fn captured_at(&self) -> Timestamp {
        self.captured_at.unwrap_or(self.created_at)
    }

    /// amount − refunded, in minor units; negative when more went back than came in.
    pub fn left_minor(&self) -> i64 {
        self.amount_minor - self.refunded_minor
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    pub hold_id: HoldId,
    pub tenant_id: TenantId,
    pub order_id: Option<OrderId>,
    pub user_id: UserId,
    pub show_id: ShowId,
    pub session_id: Option<SessionId>,
    pub item: Option<Item>,
    /// At least 1.
    pub quantity: i64,
    pub status: HoldStatus,
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    pub version: Version,
    pub shard: Shard,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub message_id: MessageId,
    pub tenant_id: TenantId,
    pub message_key: Option<String>,
    pub topic: String,
    pub order_id: Option<OrderId>,
    pub user_id: Option<UserId>,
    pub show_id: Option<ShowId>,
    pub session_id: Option<SessionId>,
    pub status: MessageStatus,
    /// At least 0.
    pub attempts: i64,
    pub trace_id: Option<String>,
    pub created_at: Timestamp,
    pub version: Version,
    pub shard: Shard,
}

/// Rows of the four ledgers, in no particular order; each id at most once per tenant and ledger.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledgers {
    pub orders: Vec<Order>,
    pub payments: Vec<Payment>,
    pub inventory: Vec<Hold>,
    pub messages: Vec<Message>,
}

/// How many rows are handed over at once.
pub const PORTION: usize = 1 << 16;

/// Rows of one ledger, at most so many at once; an error ends them.
pub type Portions<'r, R> = Box<dyn Iterator<Item = Result<Vec<R>>> + Send + 'r>;

/// Rows of the four ledgers, wherever they are: they can be gone through again, in the same order.
pub trait Rows: Sync {
    fn count(&self, ledger: Ledger) -> u64;

    fn orders(&self) -> Portions<'_, Order>;

    fn payments(&self) -> Portions<'_, Payment>;

    fn inventory(&self) -> Portions<'_, Hold>;

    fn messages(&self) -> Portions<'_, Message>;
}

impl Rows for Ledgers {
    fn count(&self, ledger: Ledger) -> u64 {
        let count = match ledger {
            Ledger::Orders => self.orders.len(),
            Ledger::Payments => self.payments.len(),
            Ledger::Inventory => self.inventory.len(),
            Ledger::Messages => self.messages.len(),
        };
        count as u64
    }

    fn orders(&self) -> Portions<'_, Order> {
        portions(&self.orders)
    }

    fn payments(&self) -> Portions<'_, Payment> {
        portions(&self.payments)
    }

    fn inventory(&self) -> Portions<'_, Hold> {
        portions(&self.inventory)
    }

    fn messages(&self) -> Portions<'_, Message> {
        portions(&self.messages)
    }
}

fn portions<R: Clone + Sync>(rows: &[R]) -> Portions<'_, R> {
    Box::new(rows.chunks(PORTION).map(|portion| Ok(portion.to_vec())))
}

impl Ledgers {
    /// How many rows there are in all four.
    pub fn len(&self) -> usize {
        self.orders.len() + self.payments.len() + self.inventory.len() + self.messages.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds rows of another reading; a row that is here already stays as it is.
    pub fn absorb(&mut self, other: Self) {
        fn add<T, K: Eq + std::hash::Hash>(into: &mut Vec<T>, rows: Vec<T>, key: impl Fn(&T) -> K) {
            let here: HashSet<K> = into.iter().map(&key).collect();
            into.extend(rows.into_iter().filter(|row| !here.contains(&key(row))));
        }
        add(&mut self.orders, other.orders, |r| (r.tenant_id.clone(), r.order_id.clone()));
        add(&mut self.payments, other.payments, |r| (r.tenant_id.clone(), r.payment_id.clone()));
        add(&mut self.inventory, other.inventory, |r| (r.tenant_id.clone(), r.hold_id.clone()));
        add(&mut self.messages, other.messages, |r| (r.tenant_id.clone(), r.message_id.clone()));
    }
}
