//! Plain purchases: one order that stands alone, with rows that fit it. Nearly all are so, and about
//! orders of one kind the decision is always the same: it is made once a kind, by [`super::plan::make`]
//! of an order of that kind, and holds for all of them. Nothing is decided here.
//!
//! What may not be plain is odd, and goes the whole way: rather too many than one too few.

use foldhash::HashMap;

use super::canonical;
use super::evidence::Evidence;
use super::facts::{CANCEL_TOPIC, REFUND_TOPIC, is_expired_at};
use super::findings::{CLOCK_TOLERANCE, RELEASE_TOPIC};
use super::ids::*;
use super::ledger::{Hold, Ledgers, Message, Order, Payment};
use super::money::Currency;
use super::plan::{
    Decided, Outcome, OutsideMoney, Plan, PlanDigest, PlanError, PlannedIntent, Sums, check_sums, intent_id,
    make,
};
use super::policy::Policy;
use super::scope::{Place, Scope};
use super::status::{HoldStatus, MessageStatus, OrderStatus, PaymentStatus};
use super::sums::{Counter, Part};
use super::time::Timestamp;

/// An order's columns on which the decision about it may rest, and those that stand in the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoneOrder<'a> {
    pub order_id: &'a str,
    pub tenant_id: &'a str,
    pub user_id: &'a str,
    pub show_id: &'a str,
    pub session_id: Option<&'a str>,
    pub item: Option<&'a str>,
    pub quantity: i64,
    pub amount_minor: i64,
    pub currency: Currency,
    pub status: OrderStatus,
    pub created_at: Timestamp,
}

/// What a row that attaches to an order adds to its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark(u16);

/// All that the decision about an order without neighbours depends on: its status, and what its rows
/// are. Two orders of one kind differ in ids, amounts and times only, and in nothing that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Kind(u16);

// The parts of a mark. Each is filled by one row at most.
const CHARGE: u16 = 0xf;
const HOLD: u16 = 0x7 << 4;
const LAPSED: u16 = 1 << 7;
const WAITING: u16 = 1 << 8;
const ODD: u16 = 1 << 9;
/// How many bits a mark has; above them stands the status of the order.
const MARK_BITS: u32 = 10;

impl Mark {
    /// Of a message that nothing depends on.
    const QUIET: Self = Self(0);
    /// Of a row that makes its order odd.
    pub const ODD: Self = Self(ODD);

    pub const fn bits(self) -> u16 {
        self.0
    }

    pub const fn from_bits(bits: u16) -> Self {
        Self(bits)
    }

    /// Of a payment in full by the order's buyer, of which nothing went back.
    pub fn of_payment(
        order: &LoneOrder<'_>,
        owner: (&str, &str),
        amounts: (i64, i64, Currency),
        status: PaymentStatus,
        captured_at: Timestamp,
        policy: &Policy,
    ) -> Self {
        let may_expire = status == PaymentStatus::Initiated && policy.initiated_expires.is_some();
        let early = captured_at < order.created_at.minus(CLOCK_TOLERANCE);
        let fits = owner == (order.user_id, order.show_id)
            && amounts == (order.amount_minor, 0, order.currency)
            && !may_expire
            && !early;
        if fits { Self(1 + status as u16) } else { Self::ODD }
    }

    /// Of a hold of all that the order is for.
    pub fn of_hold(
        order: &LoneOrder<'_>,
        owner: (&str, &str),
        item: Option<&str>,
        quantity: i64,
        status: HoldStatus,
        expires_at: Option<Timestamp>,
        as_of: Timestamp,
    ) -> Self {
        let fits_item = item.is_none() || order.item.is_none() || item == order.item;
        let fits = owner == (order.user_id, order.show_id) && fits_item && quantity == order.quantity;
        let lapsed = status == HoldStatus::Held && is_expired_at(expires_at, as_of);
        if fits { Self((1 + status as u16) << 4 | if lapsed { LAPSED } else { 0 }) } else { Self::ODD }
    }

    pub fn of_message(topic: &str, status: MessageStatus) -> Self {
        match (topic, status.is_unfinished()) {
            (REFUND_TOPIC, _) | (CANCEL_TOPIC, true) | (RELEASE_TOPIC, false) => Self::ODD,
            (_, true) => Self(WAITING),
            (_, false) => Self::QUIET,
        }
    }
}

impl Kind {
    /// Of an order of which no row is known yet. One that costs nothing is odd: it is paid by its status.
    pub fn of_order(status: OrderStatus, amount_minor: i64) -> Self {
        let odd = if amount_minor == 0 { ODD } else { 0 };
        Self((status as u16) << MARK_BITS | odd)
    }

    /// With one row more. Two charges, two holds, two messages that wait: odd.
    pub fn add(&mut self, mark: Mark) {
        let taken = |part: u16| self.0 & part != 0 && mark.0 & part != 0;
        let odd = if taken(CHARGE) || taken(HOLD) || taken(WAITING) { ODD } else { 0 };
        self.0 |= mark.0 | odd;
    }

    pub fn set_odd(&mut self) {
        self.0 |= ODD;
    }

    pub const fn is_odd(self) -> bool {
        self.0 & ODD != 0
    }

    fn order_status(self) -> OrderStatus {
        OrderStatus::ALL[usize::from(self.0 >> MARK_BITS)]
    }

    /// An order of this kind with its rows: one piece at the price of one minor unit.
    fn sample(self, as_of: Timestamp) -> Option<Ledgers> {
        let currency: Currency = "EUR".parse().ok()?;
        let status_of = |part: u16, shift: u32| usize::from((self.0 & part) >> shift).checked_sub(1);
        let order = Order {
            order_id: "O".into(),
            tenant_id: "T".into(),
            user_id: "U".into(),
            show_id: "S".into(),
            session_id: None,
            idempotency_key: None,
            item: None,
            quantity: 1,
            amount_minor: 1,
            currency,
            status: self.order_status(),
            source: None,
            trace_id: None,
            created_at: as_of,
            version: "1".into(),
            shard: 0,
        };
        let payment = status_of(CHARGE, 0).map(|status| Payment {
            payment_id: "P".into(),
            tenant_id: order.tenant_id.clone(),
            order_id: Some(order.order_id.clone()),
            user_id: order.user_id.clone(),
            show_id: order.show_id.clone(),
            session_id: None,
            amount_minor: 1,
            refunded_minor: 0,
            currency,
            provider: "P".to_owned(),
            provider_txn_id: None,
            status: PaymentStatus::ALL[status],
            created_at: as_of,
            captured_at: None,
            version: "1".into(),
            shard: 0,
        });
        let hold = status_of(HOLD, 4).map(|status| Hold {
            hold_id: "H".into(),
            tenant_id: order.tenant_id.clone(),
            order_id: Some(order.order_id.clone()),
            user_id: order.user_id.clone(),
            show_id: order.show_id.clone(),
            session_id: None,
            item: None,
            quantity: 1,
            status: HoldStatus::ALL[status],
            created_at: as_of,
            expires_at: (self.0 & LAPSED != 0).then_some(as_of),
            version: "1".into(),
            shard: 0,
        });
        let message = (self.0 & WAITING != 0).then(|| Message {
            message_id: "M".into(),
            tenant_id: order.tenant_id.clone(),
            message_key: None,
            topic: "any".to_owned(),
            order_id: Some(order.order_id.clone()),
            user_id: None,
            show_id: None,
            session_id: None,
            status: MessageStatus::Queued,
            attempts: 0,
            trace_id: None,
            created_at: as_of,
            version: "1".into(),
            shard: 0,
        });
        Some(Ledgers {
            orders: vec![order],
            payments: payment.into_iter().collect(),
            inventory: hold.into_iter().collect(),
            messages: message.into_iter().collect(),
        })
    }
}

/// What was decided about orders of a kind that need no word more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plain {
    keep: bool,
    decided_by: u8,
    live: bool,
    /// Whether its amount is captured, its pieces are live stock, and its charge stands outside the sums.
    captured: bool,
    stock: bool,
    outside: Option<PaymentStatus>,
}

/// The decisions about kinds, each made once.
#[derive(Debug)]
pub struct Kinds<'a> {
    policy: &'a Policy,
    as_of: Timestamp,
    known: HashMap<Kind, Option<Plain>>,
}

impl<'a> Kinds<'a> {
    pub fn new(policy: &'a Policy, as_of: Timestamp) -> Self {
        Self { policy, as_of, known: HashMap::default() }
    }

    /// What is decided about orders of this kind, where it is plain: CLEAN, and without any finding.
    pub fn plain(&mut self, kind: Kind) -> Option<Plain> {
        if kind.is_odd() {
            return None;
        }
        *self.known.entry(kind).or_insert_with(|| decide(kind, self.policy, self.as_of))
    }

    /// The kinds that were asked for and are plain.
    pub fn into_plain(self) -> HashMap<Kind, Plain> {
        self.known.into_iter().filter_map(|(kind, plain)| Some((kind, plain?))).collect()
    }
}

fn decide(kind: Kind, policy: &Policy, as_of: Timestamp) -> Option<Plain> {
    let decided = make(&kind.sample(as_of)?, &Scope::default(), policy, as_of, &Evidence::default()).ok()?;
    let [intent] = &decided.intents[..] else { return None };
    let is_plain =
        intent.outcome == Outcome::Clean && intent.findings.is_empty() && intent.evidence.is_empty();
    is_plain.then(|| Plain {
        keep: intent.keep.is_some(),
        decided_by: intent.decided_by,
        live: decided.live_orders > 0,
        captured: !decided.sums.money.is_empty(),
        stock: !decided.sums.stock.is_empty(),
        outside: decided.outside_sums.first().map(|outside| outside.status),
    })
}

/// A plain purchase as it stands in a plan.
#[derive(Clone, Copy, Debug)]
pub struct PlainIntent<'a> {
    pub order: LoneOrder<'a>,
    pub plain: Plain,
}

/// By what plain purchases are sorted in a plan (contract, section 8): no two have one (tenant, user, show).
pub type PlainRank<'a> = (&'a str, &'a str, &'a str);

impl<'a> PlainIntent<'a> {
    pub fn rank(&self) -> PlainRank<'a> {
        (self.order.tenant_id, self.order.user_id, self.order.show_id)
    }

    pub fn in_scope(&self, scope: &Scope) -> bool {
        if scope.is_everything() {
            return true;
        }
        let order = &self.order;
        scope.covers(Place {
            tenant_id: &order.tenant_id.into(),
            user_id: Some(&order.user_id.into()),
            show_id: Some(&order.show_id.into()),
            session_id: order.session_id.map(SessionId::from).as_ref(),
            created_at: order.created_at,
        })
    }

    pub const fn is_live(&self) -> bool {
        self.plain.live
    }

    fn captured_minor(&self) -> Option<i64> {
        self.plain.captured.then_some(self.order.amount_minor)
    }

    /// The intent as the whole way would have made it.
    pub fn planned(&self) -> PlannedIntent {
        let order = &self.order;
        let order_id = OrderId::from(order.order_id);
        PlannedIntent {
            intent_id: intent_id(order.tenant_id, [order.order_id], &[]),
            tenant_id: order.tenant_id.into(),
            user_id: Some(order.user_id.into()),
            show_id: Some(order.show_id.into()),
            session_id: order.session_id.map(SessionId::from),
            orders: vec![order_id.clone()],
            orphans: Vec::new(),
            outcome: Outcome::Clean,
            keep: self.plain.keep.then_some(order_id),
            override_keep: None,
            findings: Vec::new(),
            review_reasons: Vec::new(),
            decided_by: self.plain.decided_by,
            captured: self.captured_minor().map(|minor| (order.currency, minor.into())).into_iter().collect(),
            evidence: Vec::new(),
            steps: Vec::new(),
            seen: Vec::new(),
        }
    }

    /// Appends the canonical text of [`Self::planned`].
    pub fn write_canonical(&self, out: &mut String) {
        let order = &self.order;
        let text = |text: Option<&str>, out: &mut String| match text {
            Some(text) => canonical::write_text(text, out),
            None => out.push_str("null"),
        };
        out.push_str("{\"captured\":{");
        if let Some(minor) = self.captured_minor() {
            out.push('"');
            out.push_str(order.currency.code());
            out.push_str("\":");
            out.push_str(itoa::Buffer::new().format(minor));
        }
        out.push_str("},\"decided_by\":");
        out.push(char::from(b'0' + self.plain.decided_by));
        out.push_str(",\"evidence\":[],\"findings\":[],\"intent_id\":\"");
        out.push_str(&intent_id(order.tenant_id, [order.order_id], &[]));
        out.push_str("\",\"keep\":");
        text(self.plain.keep.then_some(order.order_id), out);
        out.push_str(",\"orders\":[");
        text(Some(order.order_id), out);
        out.push_str("],\"orphans\":[],\"outcome\":\"CLEAN\",\"override\":null,\"review_reasons\":[],\"seen\":[],\"session_id\":");
        text(order.session_id, out);
        out.push_str(",\"show_id\":");
        text(Some(order.show_id), out);
        out.push_str(",\"steps\":[],\"tenant_id\":");
        text(Some(order.tenant_id), out);
        out.push_str(",\"user_id\":");
        text(Some(order.user_id), out);
        out.push('}');
    }
}

/// Adds up what plain purchases hold.
#[derive(Debug, Default)]
pub struct PlainSums {
    money: HashMap<(TenantId, Currency), i128>,
    stock: HashMap<(TenantId, ShowId), i128>,
    outside: HashMap<(TenantId, Currency, PaymentStatus), (u64, i128)>,
}

impl PlainSums {
    pub fn add(&mut self, intent: &PlainIntent<'_>) {
        let (order, plain) = (&intent.order, &intent.plain);
        let tenant = || TenantId::from(order.tenant_id);
        if plain.captured {
            *self.money.entry((tenant(), order.currency)).or_default() += i128::from(order.amount_minor);
        }
        if plain.stock {
            *self.stock.entry((tenant(), order.show_id.into())).or_default() += i128::from(order.quantity);
        }
        if let Some(status) = plain.outside {
            let (charges, amount) = self.outside.entry((tenant(), order.currency, status)).or_default();
            *charges += 1;
            *amount += i128::from(order.amount_minor);
        }
    }

    /// Adds these to the sums of what is not plain.
    pub fn add_to(self, sums: Sums, outside: Vec<OutsideMoney>) -> (Sums, Vec<OutsideMoney>) {
        let mut counter = Counter::of(sums, outside);
        for ((tenant_id, currency), amount) in self.money {
            counter.money(&tenant_id, currency, Part::Total, amount);
            counter.money(&tenant_id, currency, Part::Clean, amount);
        }
        for ((tenant_id, show_id), pieces) in self.stock {
            counter.stock(&tenant_id, &show_id, Part::Total, pieces);
            counter.stock(&tenant_id, &show_id, Part::Clean, pieces);
        }
        for ((tenant_id, currency, status), (charges, amount)) in self.outside {
            counter.outside_sums(&tenant_id, currency, status, charges, amount);
        }
        let outside = counter.outside();
        (counter.sums(), outside)
    }
}

/// How many plain purchases of a scope there are.
pub type PlainCount = usize;

/// Names the plan of a decision together with the plain purchases that it leaves out. `plain` are those in
/// scope, by [`PlainIntent::rank`]. They stand in the digest and in the sums; in the list of intents only
/// where it is to be `whole`, for there may be millions.
///
/// # Errors
/// Sums that do not close.
pub fn into_plan<'p>(
    mut decided: Decided,
    plain: impl Iterator<Item = PlainIntent<'p>>,
    whole: bool,
    plan_id: String,
    made_at: Timestamp,
) -> Result<(Plan, PlainCount), PlanError> {
    let mut digest = PlanDigest::new(decided.as_of);
    let mut sums = PlainSums::default();
    let (mut count, mut live_orders) = (0, decided.live_orders);
    let mut intents = Vec::new();
    let mut others = std::mem::take(&mut decided.intents).into_iter().peekable();
    for intent in plain {
        // Only an orphan message has no user or show, and it stands before all that have.
        let before = |other: &PlannedIntent| {
            let user = other.user_id.as_ref().map(UserId::as_str);
            let show = other.show_id.as_ref().map(ShowId::as_str);
            let (tenant_id, user_id, show_id) = intent.rank();
            (other.tenant_id.as_str(), user, show) < (tenant_id, Some(user_id), Some(show_id))
        };
        while let Some(other) = others.next_if(|other| before(other)) {
            digest.intent(&other);
            intents.push(other);
        }
        digest.plain(&intent);
        sums.add(&intent);
        count += 1;
        live_orders += u64::from(intent.is_live());
        if whole {
            intents.push(intent.planned());
        }
    }
    for other in others {
        digest.intent(&other);
        intents.push(other);
    }
    let (sums, outside_sums) = sums.add_to(decided.sums, decided.outside_sums);
    check_sums(&sums, &outside_sums)?;
    let Decided { as_of, scope, policy, .. } = decided;
    let digest = digest.end(live_orders, &policy, &scope, &sums);
    let plan = Plan {
        plan_id,
        digest,
        as_of,
        made_at,
        freeze_id: None,
        scope,
        policy,
        live_orders,
        intents,
        sums,
        outside_sums,
    };
    Ok((plan, if whole { 0 } else { count }))
}
