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
    Decided, Outcome, OutsideMoney, Plan, PlanError, PlannedIntent, Sums, check_sums, intent_id, make,
};
use super::plan_text::{IntentTexts, PlanDigest};
use super::policy::Policy;
use super::scope::{Place, Scope};
use super::status::{HoldStatus, MessageStatus, OrderStatus, PaymentStatus};
use super::sums::{Counter, Part};
use super::tally::Tally;
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

impl<'a> LoneOrder<'a> {
    pub fn rank(&self) -> Rank<'a> {
        (self.tenant_id, Some(self.user_id), Some(self.show_id))
    }
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

/// What decisions rest on besides the ledgers.
#[derive(Clone, Debug)]
pub struct Basis {
    pub policy: Policy,
    pub as_of: Timestamp,
    pub evidence: Evidence,
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

/// Tenant, user and show: by what plans are sorted first.
pub type Rank<'a> = (&'a str, Option<&'a str>, Option<&'a str>);

impl<'a> PlainIntent<'a> {
    fn rank(&self) -> Rank<'a> {
        self.order.rank()
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
            Some(text) => _ = canonical::write_text(text, out),
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
struct PlainSums {
    money: HashMap<(TenantId, Currency), i128>,
    stock: HashMap<(TenantId, ShowId), i128>,
    outside: HashMap<(TenantId, Currency, PaymentStatus), (u64, i128)>,
}

impl PlainSums {
    fn add(&mut self, intent: &PlainIntent<'_>) {
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

    fn add_all(&mut self, other: Self) {
        for (key, amount) in other.money {
            *self.money.entry(key).or_default() += amount;
        }
        for (key, pieces) in other.stock {
            *self.stock.entry(key).or_default() += pieces;
        }
        for (key, (charges, amount)) in other.outside {
            let of = self.outside.entry(key).or_default();
            *of = (of.0 + charges, of.1 + amount);
        }
    }

    /// Adds these to the sums of what is not plain.
    fn add_to(self, sums: Sums, outside: Vec<OutsideMoney>) -> (Sums, Vec<OutsideMoney>) {
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

/// Neighbouring intents of a plan, those that are plain and the others. A plan of millions is made stretch by
/// stretch, side by side.
#[derive(Debug, Default)]
pub struct Stretch {
    texts: IntentTexts,
    /// Those that are to stand in the plan's list.
    intents: Vec<PlannedIntent>,
    unlisted: Tally,
    live_orders: u64,
    sums: PlainSums,
}

impl Stretch {
    /// `others` and `plain` are the intents of the stretch, both sorted as a plan sorts them; no plain one has
    /// the (tenant, user, show) of another.
    pub fn new<'p>(
        others: impl IntoIterator<Item = PlannedIntent>,
        plain: impl IntoIterator<Item = PlainIntent<'p>>,
        listed: Listed,
    ) -> Self {
        let mut stretch = Self::default();
        let mut unlisted = 0;
        let mut others = others.into_iter().peekable();
        for intent in plain {
            let is_before = |other: &PlannedIntent| rank(other) < intent.rank();
            while let Some(other) = others.next_if(is_before) {
                stretch.add(other, listed);
            }
            intent.write_canonical(stretch.texts.next());
            stretch.sums.add(&intent);
            stretch.live_orders += u64::from(intent.plain.live);
            match listed {
                Listed::Every => stretch.intents.push(intent.planned()),
                _ => unlisted += 1,
            }
        }
        for other in others {
            stretch.add(other, listed);
        }
        stretch.unlisted.add_plain(unlisted);
        stretch
    }

    fn add(&mut self, mut other: PlannedIntent, listed: Listed) {
        self.texts.add(&other);
        if !listed.has(&other, self.intents.len()) {
            return self.unlisted.add(&other);
        }
        if !matches!(listed, Listed::Every) {
            other.seen = Vec::new();
        }
        if !matches!(listed, Listed::Every | Listed::Notable) && !other.outcome.is_undecided() {
            other.evidence = Vec::new();
        }
        self.intents.push(other);
    }
}

/// Where an intent stands in a plan (contract, section 8), as far as it tells two apart that are not of one place:
/// tenant, user and show. Only an orphan message has no user or no show; it stands before all that have.
pub fn rank(intent: &PlannedIntent) -> Rank<'_> {
    let user = intent.user_id.as_ref().map(UserId::as_str);
    (intent.tenant_id.as_str(), user, intent.show_id.as_ref().map(ShowId::as_str))
}

/// Which intents stand in the list of a plan of very many.
#[derive(Clone, Copy, Debug)]
pub enum Listed {
    /// Every one, with what it saw and with its evidence.
    Every,
    /// Those that are notable, with their evidence.
    Notable,
    /// All but those that are CLEAN and of one order.
    ButPlain,
    /// The first so many that are not CLEAN, and whatever is not decided.
    First(usize),
}

impl Listed {
    /// Whether an intent is to stand in a list that has so many before it.
    fn has(self, intent: &PlannedIntent, before: usize) -> bool {
        let is_clean = intent.outcome == Outcome::Clean;
        match self {
            Self::Every => true,
            Self::Notable => intent.is_notable(),
            Self::ButPlain => !is_clean || intent.orders.len() != 1,
            Self::First(most) => intent.outcome.is_undecided() || !is_clean && before < most,
        }
    }
}

/// What is wanted of a plan of very many intents.
#[derive(Clone, Copy, Debug)]
pub struct Listing {
    pub intents: Listed,
    /// Whether the texts of all intents are to be kept.
    pub texts: bool,
}

/// A plan, and what of it does not stand in its list.
#[derive(Clone, Debug)]
pub struct Planned {
    pub plan: Plan,
    pub unlisted: Tally,
    /// Those of every intent, where they were to be kept.
    pub texts: IntentTexts,
}

impl Planned {
    /// Of all its intents, those that do not stand in its list, too.
    pub fn tally(&self) -> Tally {
        let mut all = Tally::of(&self.plan.intents);
        all.add_all(&self.unlisted);
        all
    }
}

/// A plan in the making, of stretches in the plan's order.
pub struct Stretches {
    digest: PlanDigest,
    plan: Plan,
    listed: Listed,
    unlisted: Tally,
    sums: PlainSums,
    /// Where they are wanted, those of all intents so far.
    texts: Option<IntentTexts>,
}

impl Stretches {
    /// `decided` are sums and counts of all intents that are not plain; their list is not looked at.
    pub fn new(decided: Decided, listing: Listing, plan_id: String, made_at: Timestamp) -> Self {
        let Decided { as_of, scope, policy, live_orders, intents: _, sums, outside_sums } = decided;
        let plan = Plan {
            plan_id,
            digest: String::new(),
            as_of,
            made_at,
            freeze_id: None,
            scope,
            policy,
            live_orders,
            intents: Vec::new(),
            sums,
            outside_sums,
        };
        let texts = listing.texts.then(IntentTexts::default);
        Self {
            digest: PlanDigest::new(as_of),
            plan,
            listed: listing.intents,
            unlisted: Tally::default(),
            sums: PlainSums::default(),
            texts,
        }
    }

    pub fn add(&mut self, stretch: Stretch) {
        let Stretch { texts, intents, unlisted, live_orders, sums } = stretch;
        self.digest.intents(&texts);
        if let Some(all) = &mut self.texts {
            all.append(texts);
        }
        for intent in intents {
            match self.listed.has(&intent, self.plan.intents.len()) {
                true => self.plan.intents.push(intent),
                false => self.unlisted.add(&intent),
            }
        }
        self.plan.live_orders += live_orders;
        self.unlisted.add_all(&unlisted);
        self.sums.add_all(sums);
    }

    /// Adds sums and counts of intents that are not plain.
    pub fn add_sums(&mut self, decided: Decided) {
        let plan = &mut self.plan;
        plan.live_orders += decided.live_orders;
        let mut counter = Counter::of(std::mem::take(&mut plan.sums), std::mem::take(&mut plan.outside_sums));
        counter.add_all(decided.sums, decided.outside_sums);
        plan.outside_sums = counter.outside();
        plan.sums = counter.sums();
    }

    /// # Errors
    /// Sums that do not close.
    pub fn end(self) -> Result<Planned, PlanError> {
        let Self { digest, mut plan, listed: _, unlisted, sums, texts } = self;
        (plan.sums, plan.outside_sums) = sums.add_to(plan.sums, plan.outside_sums);
        check_sums(&plan.sums, &plan.outside_sums)?;
        plan.digest = digest.end(plan.live_orders, &plan.policy, &plan.scope, &plan.sums);
        Ok(Planned { plan, unlisted, texts: texts.unwrap_or_default() })
    }
}
