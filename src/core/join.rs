//! The four ledgers joined: each intent with its orders, and each order with the rows that attach
//! to it (contract, section 2).

use foldhash::HashMap;

use super::charges::{Charge, charges};
use super::ids::*;
use super::intents::{Grouping, IdentityDoubt, Session, group};
use super::ledger::{Hold, Ledgers, Message, Order, Payment};
use super::orphans::{Orphan, Orphans};
use super::policy::Policy;
use super::scope::{Place, Scope};
use super::status::Ledger;
use super::time::Timestamp;

/// One purchase with all its rows. It has orders, or it is one orphan that stands alone.
#[derive(Clone, Debug)]
pub struct Intent<'a> {
    pub tenant_id: &'a TenantId,
    /// Null only for an orphan message that names no user; so is `show_id`.
    pub user_id: Option<&'a UserId>,
    /// The first order's, as is the session.
    pub show_id: Option<&'a ShowId>,
    /// As filled.
    pub session_id: Option<&'a SessionId>,
    /// By (created_at, order_id).
    pub orders: Vec<OrderRows<'a>>,
    /// By (ledger, created_at, id).
    pub orphans: Vec<Orphan<'a>>,
    /// Orphans that other intents cover too: they block this one, but are not part of it.
    pub shared_orphans: Vec<Orphan<'a>>,
    pub identity: IdentityDoubt,
}

/// An order with what attaches to it.
#[derive(Clone, Copy, Debug)]
pub struct OrderRows<'a> {
    pub order: &'a Order,
    pub session: Session<'a>,
    /// By (captured_at, payment_id).
    pub charges: &'a [Charge<'a>],
    /// By (created_at, hold_id).
    pub holds: &'a [&'a Hold],
    /// By (created_at, message_id).
    pub messages: &'a [&'a Message],
}

impl<'a> Intent<'a> {
    /// All payment rows: those of its orders, then its orphans.
    pub fn payments(&self) -> impl Iterator<Item = &Charge<'a>> {
        let orphans = self.orphans.iter().filter_map(|o| match o {
            Orphan::Payment(charge) => Some(charge),
            _ => None,
        });
        self.orders.iter().flat_map(|o| o.charges).chain(orphans)
    }

    /// All holds: those of its orders, then its orphans.
    pub fn holds(&self) -> impl Iterator<Item = &'a Hold> {
        let orphans = self.orphans.iter().filter_map(|o| match o {
            Orphan::Hold(hold) => Some(*hold),
            _ => None,
        });
        self.orders.iter().flat_map(|o| o.holds).copied().chain(orphans)
    }

    /// When and where it begins: its first order's time and id, or those of the row that it is.
    pub fn first_row(&self) -> (Timestamp, RowId, Ledger) {
        let first_order =
            self.orders.first().map(|o| (o.order.created_at, (&o.order.order_id).into(), Ledger::Orders));
        first_order
            .or_else(|| self.orphans.first().map(|o| (o.place().created_at, o.id(), o.ledger())))
            .expect("an intent has a row")
    }

    /// Whether some order of it is in scope, or the row that it is.
    pub fn in_scope(&self, scope: &Scope) -> bool {
        if self.orders.is_empty() {
            return self.orphans.iter().any(|o| scope.covers(o.place()));
        }
        self.orders.iter().any(|rows| {
            scope.covers(Place {
                tenant_id: &rows.order.tenant_id,
                user_id: Some(&rows.order.user_id),
                show_id: Some(&rows.order.show_id),
                session_id: rows.session.id(),
                created_at: rows.order.created_at,
            })
        })
    }
}

/// All intents of some ledgers.
#[derive(Debug)]
pub struct Joined<'a> {
    policy: &'a Policy,
    orders: &'a [Order],
    grouping: Grouping<'a>,
    charges: ByOrder<Charge<'a>>,
    holds: ByOrder<&'a Hold>,
    messages: ByOrder<&'a Message>,
    orphans: Orphans<'a>,
}

impl<'a> Joined<'a> {
    /// Joins whole neighbourhoods: all orders of each (tenant, user, show), all orders that share
    /// a key with one of these, all rows that attach to them, all rows of the same (tenant, user,
    /// show) without a known order, and all payments that share a provider's transaction with one
    /// of these, with their orders. `as_of` is when an INITIATED payment's age is taken.
    pub fn new(ledgers: &'a Ledgers, policy: &'a Policy, as_of: Timestamp) -> Self {
        let orders = &ledgers.orders;
        let grouping = group(orders, policy);
        let mut group_of = vec![0; orders.len()];
        for (index, group) in grouping.groups.iter().enumerate() {
            for &i in &group.orders {
                group_of[i] = index;
            }
        }
        let attach = Attach::new(orders);
        let order_of_payment: Vec<Option<usize>> = ledgers
            .payments
            .iter()
            .map(|p: &Payment| attach.order(&p.tenant_id, p.order_id.as_ref()))
            .collect();
        let intent_of = |payment: usize| order_of_payment[payment].map(|order| group_of[order]);

        let mut orphans = Vec::new();
        let mut keep_orphan = |orphan: Orphan<'a>| orphans.push(orphan);
        let charges = ByOrder::new(
            orders.len(),
            order_of_payment.iter().copied().zip(charges(&ledgers.payments, intent_of, policy, as_of)),
            |c| (c.row.captured_at(), &c.row.payment_id),
            |c| keep_orphan(Orphan::Payment(c)),
        );
        let holds = ByOrder::new(
            orders.len(),
            ledgers.inventory.iter().map(|h| (attach.order(&h.tenant_id, h.order_id.as_ref()), h)),
            |h| (h.created_at, &h.hold_id),
            |h| keep_orphan(Orphan::Hold(h)),
        );
        let messages = ByOrder::new(
            orders.len(),
            ledgers.messages.iter().map(|m| (attach.order(&m.tenant_id, m.order_id.as_ref()), m)),
            |m| (m.created_at, &m.message_id),
            |m| keep_orphan(Orphan::Message(m)),
        );
        let orphans = Orphans::new(orphans, orders, &grouping.sessions, &grouping.groups, policy);
        Self { policy, orders, grouping, charges, holds, messages, orphans }
    }

    /// Every intent, one after the other, in no particular order.
    pub fn intents(&self) -> impl Iterator<Item = Intent<'_>> {
        let with_orders = (0..self.grouping.groups.len()).map(|index| self.intent(index));
        with_orders.chain(self.orphans.alone().map(alone))
    }

    fn intent(&self, index: usize) -> Intent<'_> {
        let group = &self.grouping.groups[index];
        let orders: Vec<OrderRows<'_>> = group.orders.iter().map(|&i| self.order_rows(i)).collect();
        let (orphans, shared_orphans) =
            self.orphans.of_group(index, group, self.orders, &self.grouping.sessions, self.policy);
        let first = orders[0];
        Intent {
            tenant_id: &first.order.tenant_id,
            user_id: Some(&first.order.user_id),
            show_id: Some(&first.order.show_id),
            session_id: first.session.id(),
            orders,
            orphans,
            shared_orphans,
            identity: group.doubt.clone(),
        }
    }

    fn order_rows(&self, i: usize) -> OrderRows<'_> {
        OrderRows {
            order: &self.orders[i],
            session: self.grouping.sessions[i],
            charges: self.charges.of(i),
            holds: self.holds.of(i),
            messages: self.messages.of(i),
        }
    }
}

fn alone(orphan: Orphan<'_>) -> Intent<'_> {
    let place = orphan.place();
    Intent {
        tenant_id: place.tenant_id,
        user_id: place.user_id,
        show_id: place.show_id,
        session_id: place.session_id,
        orders: Vec::new(),
        orphans: vec![orphan],
        shared_orphans: Vec::new(),
        identity: IdentityDoubt::default(),
    }
}

/// Finds the order that a row names.
struct Attach<'a>(HashMap<(&'a TenantId, &'a OrderId), usize>);

impl<'a> Attach<'a> {
    fn new(orders: &'a [Order]) -> Self {
        Self(orders.iter().enumerate().map(|(i, o)| ((&o.tenant_id, &o.order_id), i)).collect())
    }

    fn order(&self, tenant_id: &TenantId, order_id: Option<&OrderId>) -> Option<usize> {
        self.0.get(&(tenant_id, order_id?)).copied()
    }
}

/// Rows of one ledger, those of one order side by side.
#[derive(Debug)]
struct ByOrder<T> {
    rows: Vec<T>,
    /// Where the rows of each order begin, and at the end how many there are.
    starts: Vec<usize>,
}

impl<T> ByOrder<T> {
    /// Sorts rows by their order, then by `key`; a row without order goes to `orphan` instead.
    fn new<K: Ord>(
        orders: usize,
        rows: impl Iterator<Item = (Option<usize>, T)>,
        key: impl Fn(&T) -> K,
        mut orphan: impl FnMut(T),
    ) -> Self {
        let mut attached = Vec::new();
        for (order, row) in rows {
            match order {
                Some(order) => attached.push((order, row)),
                None => orphan(row),
            }
        }
        attached
            .sort_unstable_by(|(a, row_a), (b, row_b)| a.cmp(b).then_with(|| key(row_a).cmp(&key(row_b))));
        let mut starts = vec![0; orders + 1];
        for (order, _) in &attached {
            starts[order + 1] += 1;
        }
        for i in 0..orders {
            starts[i + 1] += starts[i];
        }
        Self { rows: attached.into_iter().map(|(_, row)| row).collect(), starts }
    }

    fn of(&self, order: usize) -> &[T] {
        &self.rows[self.starts[order]..self.starts[order + 1]]
    }
}
