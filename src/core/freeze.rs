//! A freeze: who holds which scope still, under which fencing token and for how long.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde::{Deserialize, Serialize};

use super::ids::*;
use super::join::Intent;
use super::ledger::Ledgers;
use super::plan::PlannedIntent;
use super::scope::{Place, Scope};
use super::status::{Ledger, status_type};
use super::time::{Span, Timestamp};

status_type!(
    /// What a freeze stops.
    Effect {
        /// A new automatic payment, and a payment's automatic confirmation.
        AutoPayment = "auto-payment",
        /// The issue of tickets.
        Ticketing = "ticketing",
        /// Giving held stock back.
        StockRelease = "stock-release",
        /// The delivery of queued messages.
        Messages = "messages",
    }
);

impl Effect {
    /// What it means, for a person.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::AutoPayment => "no new payment, no order becomes PAID by itself",
            Self::Ticketing => "no order becomes TICKETED",
            Self::StockRelease => "no hold is RELEASED or EXPIRED",
            Self::Messages => "no queued message is taken up",
        }
    }
}

status_type!(FreezeState {
    /// Holds its whole scope.
    Live = "LIVE",
    /// Holds only the intents that are not settled yet.
    Narrowed = "NARROWED",
    Thawed = "THAWED",
    /// Its lease ran out and another freeze took the scope.
    Lapsed = "LAPSED",
});

status_type!(
    /// What makes a freeze hold.
    FreezeMode {
        /// Nothing but the word of services that ask: no plan is applied under it.
        Recorded = "recorded",
        /// The same, and on purpose.
        Advisory = "advisory",
        /// Triggers in every ledger's database refuse what it stops.
        Enforced = "enforced",
    }
);

impl FreezeMode {
    /// How an effect is stopped, for a person.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Recorded => "recorded, for services that ask; not enforced",
            Self::Advisory => "advisory: recorded on purpose, for services that ask; not enforced",
            Self::Enforced => "enforced: the database refuses it",
        }
    }
}

/// An intent that a narrowed freeze still holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldIntent {
    pub tenant_id: TenantId,
    pub orders: Vec<OrderId>,
    pub orphans: Vec<(Ledger, RowId)>,
    /// Why: its outcome, or that a step is open.
    pub because: String,
}

impl HeldIntent {
    pub fn holds(&self, intent: &PlannedIntent) -> bool {
        self.tenant_id == intent.tenant_id
            && intent.orders.iter().all(|id| self.orders.contains(id))
            && intent.orphans.iter().all(|row| self.orphans.contains(row))
    }
}

/// The orders and orphans that a narrowed freeze still holds: one look tells of each row, for there may be very many.
#[derive(Debug)]
pub struct HeldRows<'f>(HashSet<(&'f TenantId, Ledger, RowId)>);

impl<'f> HeldRows<'f> {
    fn of(held: &'f [HeldIntent]) -> Self {
        let rows = held.iter().flat_map(|h| {
            let orders = h.orders.iter().map(|id| (Ledger::Orders, RowId::from(id)));
            orders.chain(h.orphans.iter().cloned()).map(|(ledger, id)| (&h.tenant_id, ledger, id))
        });
        Self(rows.collect())
    }

    /// Whether a row of this intent is held.
    pub fn touches(&self, intent: &Intent<'_>) -> bool {
        let orders = intent.orders.iter().map(|o| (Ledger::Orders, RowId::from(&o.order.order_id)));
        let mut rows = orders.chain(intent.orphans.iter().map(|o| (o.ledger(), o.id())));
        rows.any(|(ledger, id)| self.has(&(intent.tenant_id, ledger, id)))
    }

    /// Whether this order or orphan is held.
    pub fn has(&self, row: &(&TenantId, Ledger, RowId)) -> bool {
        self.0.contains(row)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Freeze {
    pub freeze_id: String,
    /// The fencing token: whoever holds a smaller one for the same scope has been replaced.
    pub token: i64,
    pub owner: String,
    pub reason: String,
    pub scope: Scope,
    pub effects: Vec<Effect>,
    /// Whose messages are stopped; empty for all.
    #[serde(default)]
    pub topics: BTreeSet<String>,
    pub mode: FreezeMode,
    pub narrowed_to: Option<Vec<HeldIntent>>,
    pub state: FreezeState,
    /// The `as_of` of every plan made under it.
    pub frozen_at: Timestamp,
    pub lease_until: Timestamp,
}

impl Freeze {
    /// Whether it holds at this time: neither thawed nor with its lease run out.
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.is_open() && now < self.lease_until
    }

    /// Whether nobody has ended it, lapsed or not.
    pub const fn is_open(&self) -> bool {
        matches!(self.state, FreezeState::Live | FreezeState::Narrowed)
    }

    /// What is left of its lease; none when it has lapsed.
    pub fn time_left(&self, now: Timestamp) -> Option<Span> {
        self.is_live(now).then(|| self.lease_until.since(now))
    }

    /// What it holds still, once it is narrowed: a plan under it may be about nothing else.
    pub fn held_rows(&self) -> Option<HeldRows<'_>> {
        self.narrowed_to.as_deref().map(HeldRows::of)
    }

    /// Whether it stops what a service asks about.
    pub fn stops(&self, asked: &Asked<'_>) -> bool {
        let is_topic = asked.effect != Effect::Messages
            || self.topics.is_empty()
            || asked.topic.is_none_or(|topic| self.topics.contains(topic));
        let is_held = self.narrowed_to.as_ref().is_none_or(|held| {
            // An order that is not named may be one of those that are held.
            held.iter().any(|h| {
                h.tenant_id == *asked.tenant_id && asked.order_id.is_none_or(|id| h.orders.contains(id))
            })
        });
        self.effects.contains(&asked.effect) && is_topic && is_held && self.scope.may_cover(asked)
    }

    /// Rows of these intents that have a step and that the freeze does not cover: an intent joined
    /// by key may reach outside. A row that hangs on an order stands where the order does; an
    /// order without session is taken to have its intent's. A row that is gone stands nowhere: its
    /// intent is no longer as planned, and is stopped by that.
    pub fn outside(&self, intents: &[&PlannedIntent], ledgers: &Ledgers) -> Vec<(Ledger, RowId)> {
        let places = Places::of(ledgers);
        let mut outside = Vec::new();
        for intent in intents {
            let is_held = self.narrowed_to.as_ref().is_none_or(|held| held.iter().any(|h| h.holds(intent)));
            let mut rows: Vec<_> = intent.steps.iter().map(|s| (s.ledger, s.id.clone())).collect();
            rows.sort_unstable();
            rows.dedup();
            outside.extend(rows.into_iter().filter(|row| {
                !is_held || places.get(intent, row).is_some_and(|place| !self.scope.covers(place))
            }));
        }
        outside
    }
}

/// What a service asks before it does something: may this effect happen there? What it does not say
/// may be anything, and holds rather than lets through.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    pub effect: Effect,
    pub tenant_id: &'a TenantId,
    pub order_id: Option<&'a OrderId>,
    pub user_id: Option<&'a UserId>,
    pub show_id: Option<&'a ShowId>,
    pub session_id: Option<&'a SessionId>,
    pub topic: Option<&'a String>,
    /// Of the order.
    pub created_at: Option<Timestamp>,
}

/// Where each row of some ledgers stands.
struct Places<'a>(HashMap<(&'a TenantId, Ledger, RowId), Place<'a>>);

impl<'a> Places<'a> {
    fn of(ledgers: &'a Ledgers) -> Self {
        let mut places = HashMap::new();
        for o in &ledgers.orders {
            let place = Place {
                tenant_id: &o.tenant_id,
                user_id: Some(&o.user_id),
                show_id: Some(&o.show_id),
                session_id: o.session_id.as_ref(),
                created_at: o.created_at,
            };
            places.insert((&o.tenant_id, Ledger::Orders, RowId::from(&o.order_id)), place);
        }
        let mut attached = Vec::new();
        macro_rules! attach {
            ($rows:expr, $ledger:expr, $id:ident, $some:expr) => {
                for r in $rows {
                    let own = Place {
                        tenant_id: &r.tenant_id,
                        user_id: $some(&r.user_id),
                        show_id: $some(&r.show_id),
                        session_id: r.session_id.as_ref(),
                        created_at: r.created_at,
                    };
                    let of_order = r
                        .order_id
                        .as_ref()
                        .and_then(|id| places.get(&(&r.tenant_id, Ledger::Orders, RowId::from(id))).copied());
                    attached.push(((&r.tenant_id, $ledger, RowId::from(&r.$id)), of_order.unwrap_or(own)));
                }
            };
        }
        attach!(&ledgers.payments, Ledger::Payments, payment_id, Some);
        attach!(&ledgers.inventory, Ledger::Inventory, hold_id, Some);
        attach!(&ledgers.messages, Ledger::Messages, message_id, Option::as_ref);
        places.extend(attached);
        Self(places)
    }

    fn get(&self, intent: &'a PlannedIntent, (ledger, id): &(Ledger, RowId)) -> Option<Place<'a>> {
        let place = *self.0.get(&(&intent.tenant_id, *ledger, id.clone()))?;
        Some(Place { session_id: place.session_id.or(intent.session_id.as_ref()), ..place })
    }
}
