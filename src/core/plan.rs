//! The plan: what was decided, in a canonical form with a digest (contract, section 8), and the
//! sums that must close (section 7).

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::decide::{Verdict, decide};
use super::evidence::{Evidence, KeepOverride};
use super::explain::{OrderEvidence, explain};
use super::facts::Facts;
use super::hash::FieldHash;
use super::ids::*;
use super::join::{Intent, Joined};
use super::ledger::Ledgers;
use super::money::Currency;
use super::plan_text::PlanDigest;
use super::policy::Policy;
use super::scope::Scope;
use super::seen::seen;
use super::status::{Ledger, PaymentStatus, status_type};
use super::steps::steps;
use super::sums::{Counter, Parts};
use super::time::Timestamp;
use crate::error::{Error, Exit};

status_type!(
    /// What becomes of an intent (contract, section 4).
    Outcome {
        Clean = "CLEAN",
        Keep = "KEEP",
        Unwind = "UNWIND",
        Review = "REVIEW",
        Unsettled = "UNSETTLED",
    }
);

impl Outcome {
    /// Whether a person or the provider must decide first.
    pub const fn is_undecided(self) -> bool {
        matches!(self, Self::Review | Self::Unsettled)
    }
}

status_type!(
    /// A difference that has a name (contract, section 6). Listed by name, so that their order
    /// is that of the names.
    Finding {
        CancelledButCaptured = "CANCELLED_BUT_CAPTURED",
        CancelPending = "CANCEL_PENDING",
        CapturedNotConfirmed = "CAPTURED_NOT_CONFIRMED",
        ChargeDisagrees = "CHARGE_DISAGREES",
        ClockSkew = "CLOCK_SKEW",
        CurrencyMismatch = "CURRENCY_MISMATCH",
        DifferentRequest = "DIFFERENT_REQUEST",
        DistinctKeys = "DISTINCT_KEYS",
        DoubleRelease = "DOUBLE_RELEASE",
        DuplicateCallback = "DUPLICATE_CALLBACK",
        DuplicateMessage = "DUPLICATE_MESSAGE",
        DuplicateOrders = "DUPLICATE_ORDERS",
        ExcessHold = "EXCESS_HOLD",
        HoldLapsed = "HOLD_LAPSED",
        HoldWithoutOrder = "HOLD_WITHOUT_ORDER",
        KeyReused = "KEY_REUSED",
        MessageForDeadOrder = "MESSAGE_FOR_DEAD_ORDER",
        MessageWithoutOrder = "MESSAGE_WITHOUT_ORDER",
        MultipleCaptures = "MULTIPLE_CAPTURES",
        NoStock = "NO_STOCK",
        OrderInMotion = "ORDER_IN_MOTION",
        OrderPaidNoPayment = "ORDER_PAID_NO_PAYMENT",
        Overpaid = "OVERPAID",
        OverRefunded = "OVER_REFUNDED",
        OwnerMismatch = "OWNER_MISMATCH",
        PaidWithoutStock = "PAID_WITHOUT_STOCK",
        PartiallyPaid = "PARTIALLY_PAID",
        PartlyRefunded = "PARTLY_REFUNDED",
        PaymentDisputed = "PAYMENT_DISPUTED",
        PaymentInDoubt = "PAYMENT_IN_DOUBT",
        PaymentWithoutOrder = "PAYMENT_WITHOUT_ORDER",
        RefundInDoubt = "REFUND_IN_DOUBT",
        RefundRefused = "REFUND_REFUSED",
        Retained = "RETAINED",
        SessionUnknown = "SESSION_UNKNOWN",
        SharedCharge = "SHARED_CHARGE",
        SpanExceeded = "SPAN_EXCEEDED",
        TerminalButAuthorized = "TERMINAL_BUT_AUTHORIZED",
        TerminalButHeld = "TERMINAL_BUT_HELD",
        TicketElsewhere = "TICKET_ELSEWHERE",
    }
);

/// A saved decision about every intent of a scope. Here and below the members of what there may be a million of stand
/// in the order of the canonical form, so that it is written straight.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    pub plan_id: String,
    /// `sha256:` and 64 hex digits over the canonical form.
    pub digest: String,
    pub as_of: Timestamp,
    pub made_at: Timestamp,
    /// The freeze under which it was made; a plan without one is a dry run.
    pub freeze_id: Option<String>,
    pub scope: Scope,
    pub policy: Policy,
    /// How many orders of the intents were live when it was made.
    #[serde(default)]
    pub live_orders: u64,
    pub intents: Vec<PlannedIntent>,
    pub sums: Sums,
    /// What stands outside the sums; for information, so the digest does not cover it.
    #[serde(default)]
    pub outside_sums: Vec<OutsideMoney>,
}

/// Money of a scope that is not captured, or is on its way back, and so stands in no sum: INITIATED,
/// AUTHORIZED, UNKNOWN, VOIDING, REFUNDING or DISPUTED charges.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutsideMoney {
    pub tenant_id: TenantId,
    pub currency: Currency,
    pub status: PaymentStatus,
    /// How many.
    pub charges: u64,
    /// What they are over and was not given back, in the currency's minor unit.
    pub amount_minor: i128,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedIntent {
    /// What is captured and not given back, by currency, in minor units.
    #[serde(default)]
    pub captured: BTreeMap<Currency, i128>,
    /// The row of the table in the contract's section 4, 1 to 8.
    pub decided_by: u8,
    /// The facts of each order that the decision rests on; empty for a single order without
    /// findings.
    #[serde(default)]
    pub evidence: Vec<OrderEvidence>,
    /// Sorted by name, each once.
    pub findings: Vec<Finding>,
    pub intent_id: String,
    pub keep: Option<OrderId>,
    /// By bytes.
    pub orders: Vec<OrderId>,
    /// By the ledger's name and bytes.
    pub orphans: Vec<(Ledger, RowId)>,
    pub outcome: Outcome,
    /// The operator's override that decided `keep`, where there is one.
    #[serde(rename = "override")]
    pub override_keep: Option<KeepOverride>,
    pub review_reasons: Vec<Finding>,
    /// Every row of an intent that has steps, as it was when the plan was made: what `apply`
    /// compares with before it moves anything (section 5). Empty where there are no steps.
    pub seen: Vec<SeenRow>,
    pub session_id: Option<SessionId>,
    pub show_id: Option<ShowId>,
    pub steps: Vec<Step>,
    pub tenant_id: TenantId,
    /// Null only for an orphan message that names no user.
    pub user_id: Option<UserId>,
}

impl PlannedIntent {
    /// Whether it is of two or more orders or has a finding.
    pub const fn is_notable(&self) -> bool {
        self.orders.len() > 1 || !self.findings.is_empty()
    }
}

/// One compare-and-set on one row (contract, section 5).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// On both legs of a refund; null elsewhere.
    pub amount_minor: Option<i64>,
    pub currency: Option<Currency>,
    pub from: String,
    pub id: RowId,
    pub ledger: Ledger,
    /// The key under which a provider is asked: that of the first leg, on both legs of a refund
    /// or void; null where no provider is asked.
    pub provider_key: Option<String>,
    /// Belongs to the effect, not to the plan: 64 hex digits.
    pub step_key: String,
    pub to: String,
    /// The version seen; null on a row's second leg, which is read back after the first.
    pub version: Option<Version>,
}

impl Step {
    /// Whether money goes back with it: the leg on which the provider is asked.
    pub fn is_refund(&self) -> bool {
        self.ledger == Ledger::Payments
            && self.to == PaymentStatus::Refunded.as_str()
            && self.amount_minor.is_some()
    }
}

/// What steps give back, by currency, in minor units.
pub fn refunds<'a>(steps: impl Iterator<Item = &'a Step>) -> BTreeMap<Currency, i128> {
    let mut sums = BTreeMap::new();
    for step in steps.filter(|step| step.is_refund()) {
        if let Some((amount, currency)) = step.amount_minor.zip(step.currency) {
            *sums.entry(currency).or_insert(0) += i128::from(amount);
        }
    }
    sums
}

/// A row as a plan saw it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenRow {
    /// A hash over everything else that the row says.
    pub content: String,
    pub id: RowId,
    pub ledger: Ledger,
    pub status: String,
    pub version: Version,
}

/// Money per (tenant, currency) and stock per (tenant, show of the hold); contract, section 7.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sums {
    pub money: Vec<MoneySum>,
    pub stock: Vec<StockSum>,
}

/// Minor units of one currency. `captured` is the sum of the others, or the plan is refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoneySum {
    pub tenant_id: TenantId,
    pub currency: Currency,
    pub captured: i128,
    pub kept: i128,
    pub to_refund: i128,
    pub in_review: i128,
    pub unsettled: i128,
    pub clean: i128,
}

/// Pieces of stock. `live` is the sum of the others, or the plan is refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StockSum {
    pub tenant_id: TenantId,
    pub show_id: ShowId,
    pub live: i128,
    pub kept: i128,
    pub to_release: i128,
    pub in_review: i128,
    pub unsettled: i128,
    pub clean: i128,
}

/// What [`make`] decided: a plan without a name.
#[derive(Clone, Debug, PartialEq)]
pub struct Decided {
    pub as_of: Timestamp,
    pub scope: Scope,
    pub policy: Policy,
    /// How many orders of the intents are live.
    pub live_orders: u64,
    /// Sorted as the contract's section 8 says.
    pub intents: Vec<PlannedIntent>,
    pub sums: Sums,
    pub outside_sums: Vec<OutsideMoney>,
}

/// Decides every intent that is in scope.
///
/// `ledgers` holds whole neighbourhoods, as [`Joined::new`] wants them; intents that are out of
/// scope take part in the grouping only. `as_of` is when the scope was frozen, or now.
///
/// Fails where an operator's choice cannot be kept to, and where the sums do not close.
pub fn make(
    ledgers: &Ledgers,
    scope: &Scope,
    policy: &Policy,
    as_of: Timestamp,
    evidence: &Evidence,
) -> Result<Decided, PlanError> {
    make_of(ledgers, scope, policy, as_of, evidence, |_| true)
}

/// As [`make`], of those intents in scope that are `wanted`: under a freeze that holds only some still,
/// nothing else can be carried out.
pub fn make_of(
    ledgers: &Ledgers,
    scope: &Scope,
    policy: &Policy,
    as_of: Timestamp,
    evidence: &Evidence,
    wanted: impl Fn(&Intent<'_>) -> bool,
) -> Result<Decided, PlanError> {
    let joined = Joined::new(ledgers, policy, as_of);
    let mut counter = Counter::default();
    let mut intents = Vec::new();
    let mut live_orders = 0;
    for intent in joined.intents().filter(|i| i.in_scope(scope) && wanted(i)) {
        let planned = plan_intent(&intent, policy, as_of, evidence)?;
        counter.add(&intent, &planned, as_of);
        live_orders += intent.orders.iter().filter(|o| o.order.status.is_live()).count() as u64;
        intents.push((intent.first_row(), planned));
    }
    intents.sort_unstable_by(|(first_a, a), (first_b, b)| {
        (&a.tenant_id, &a.user_id, &a.show_id, &a.session_id, first_a).cmp(&(
            &b.tenant_id,
            &b.user_id,
            &b.show_id,
            &b.session_id,
            first_b,
        ))
    });
    let intents = intents.into_iter().map(|(_, planned)| planned).collect();
    let outside_sums = counter.outside();
    let sums = counter.sums();
    check_sums(&sums, &outside_sums)?;
    let (scope, policy) = (scope.clone(), policy.clone());
    Ok(Decided { as_of, scope, policy, live_orders, intents, sums, outside_sums })
}

/// Decides one intent and lists its steps.
pub fn plan_intent(
    intent: &Intent<'_>,
    policy: &Policy,
    as_of: Timestamp,
    evidence: &Evidence,
) -> Result<PlannedIntent, PlanError> {
    let Chosen { live: chosen, dead } = chosen(intent, evidence)?;
    let facts = Facts::new(intent, as_of, evidence);
    let mut decision = decide(&facts, policy, as_of, evidence, chosen.as_ref().map(|(index, _)| *index));
    // The choice between several orders was an operator's, and theirs is gone: they choose again.
    if chosen.is_none()
        && !dead.is_empty()
        && facts.live().count() > 1
        && matches!(decision.verdict, Verdict::Settled { .. })
    {
        decision.findings.insert(Finding::DuplicateOrders);
        decision.verdict = Verdict::Review([Finding::DuplicateOrders].into());
    }
    let steps = steps(&facts, &decision, policy, evidence);
    let (outcome, keep, review_reasons) = match decision.verdict {
        Verdict::Review(reasons) => (Outcome::Review, None, reasons.into_iter().collect()),
        Verdict::Unsettled => (Outcome::Unsettled, None, Vec::new()),
        Verdict::Settled { keep, .. } => {
            let outcome = match keep {
                _ if steps.is_empty() => Outcome::Clean,
                Some(_) => Outcome::Keep,
                None => Outcome::Unwind,
            };
            (outcome, keep.map(|i| intent.orders[i].order.order_id.clone()), Vec::new())
        }
    };

    let mut captured = BTreeMap::new();
    for charge in intent.payments().filter(|c| c.net_minor() != 0) {
        *captured.entry(charge.row.currency).or_insert(0) += charge.net_minor();
    }
    // A million plain purchases need no explanation.
    let is_plain = outcome == Outcome::Clean && intent.orders.len() < 2 && decision.findings.is_empty();
    let mut order_evidence =
        if is_plain { Vec::new() } else { explain(&facts, outcome, keep.as_ref(), chosen.is_some()) };
    for order in order_evidence.iter_mut().filter(|o| dead.contains(&&o.order_id)) {
        order.because += "; an operator chose to keep it, but it is no longer live";
    }
    let (orders, orphans) = ids(intent);
    Ok(PlannedIntent {
        intent_id: intent_id(intent.tenant_id.as_str(), orders.iter().map(OrderId::as_str), &orphans),
        tenant_id: intent.tenant_id.clone(),
        user_id: intent.user_id.cloned(),
        show_id: intent.show_id.cloned(),
        session_id: intent.session_id.cloned(),
        orders,
        orphans,
        outcome,
        override_keep: chosen.map(|(_, keep)| keep).filter(|_| keep.is_some()),
        keep,
        findings: decision.findings.into_iter().collect(),
        review_reasons,
        decided_by: decision.decided_by,
        captured,
        evidence: order_evidence,
        seen: if steps.is_empty() { Vec::new() } else { seen(intent) },
        steps,
    })
}

/// What operators have chosen in an intent.
#[derive(Default)]
struct Chosen<'a> {
    /// The order to keep, as an index.
    live: Option<(usize, KeepOverride)>,
    /// Orders that were to be kept and are no longer there to be kept.
    dead: Vec<&'a OrderId>,
}

fn chosen<'a>(intent: &Intent<'a>, evidence: &Evidence) -> Result<Chosen<'a>, PlanError> {
    let mut chosen = Chosen::default();
    if evidence.keeps.is_empty() {
        return Ok(chosen);
    }
    for (i, rows) in intent.orders.iter().enumerate() {
        let order = rows.order;
        let Some(because) = evidence.keeps.get(&(order.tenant_id.clone(), order.order_id.clone())) else {
            continue;
        };
        if !order.status.is_live() {
            chosen.dead.push(&order.order_id);
            continue;
        }
        if let Some((_, other)) = &chosen.live {
            return Err(PlanError::TwoOverrides {
                tenant_id: order.tenant_id.clone(),
                orders: [other.order_id.clone(), order.order_id.clone()],
            });
        }
        chosen.live = Some((i, KeepOverride { order_id: order.order_id.clone(), because: because.clone() }));
    }
    Ok(chosen)
}

/// Which rows an intent is made of: its orders and orphans, by bytes.
fn ids(intent: &Intent<'_>) -> (Vec<OrderId>, Vec<(Ledger, RowId)>) {
    let mut orders: Vec<OrderId> = intent.orders.iter().map(|o| o.order.order_id.clone()).collect();
    orders.sort_unstable();
    let mut orphans: Vec<(Ledger, RowId)> = intent.orphans.iter().map(|o| (o.ledger(), o.id())).collect();
    orphans.sort_unstable_by(|(a, id_a), (b, id_b)| (a.as_str(), id_a).cmp(&(b.as_str(), id_b)));
    (orders, orphans)
}

/// The name under which a plan has an intent.
pub fn id_of(intent: &Intent<'_>) -> String {
    let (orders, orphans) = ids(intent);
    intent_id(intent.tenant_id.as_str(), orders.iter().map(OrderId::as_str), &orphans)
}

/// A name that depends on nothing but which rows the intent is made of.
pub(super) fn intent_id<'a>(
    tenant_id: &str,
    orders: impl IntoIterator<Item = &'a str>,
    orphans: &[(Ledger, RowId)],
) -> String {
    let mut hash = FieldHash::new().text(tenant_id);
    for id in orders {
        hash = hash.text(Ledger::Orders.as_str()).text(id);
    }
    for (ledger, id) in orphans {
        hash = hash.text(ledger.as_str()).text(id.as_str());
    }
    // Without the machinery of `format!`: a large plan has millions.
    ["I-", &hash.short_hex()].concat()
}

/// Refuses sums that do not close, or that readers of JSON could not hold in 64 bits.
pub(super) fn check_sums(sums: &Sums, outside: &[OutsideMoney]) -> Result<(), PlanError> {
    let money = sums.money.iter().map(|s| (format!("{} of tenant {}", s.currency, s.tenant_id), s.parts()));
    let stock = sums
        .stock
        .iter()
        .map(|s| (format!("the stock of show {} of tenant {}", s.show_id, s.tenant_id), s.parts()));
    for (what, parts) in money.chain(stock) {
        if parts[0] != parts[1..].iter().sum() {
            return Err(PlanError::SumsDoNotClose { what, parts: Box::new(parts) });
        }
        if parts.iter().any(|part| i64::try_from(*part).is_err()) {
            return Err(PlanError::SumTooLarge { what });
        }
    }
    if let Some(large) = outside.iter().find(|o| i64::try_from(o.amount_minor).is_err()) {
        let what = format!("{} {} of tenant {}", large.status, large.currency, large.tenant_id);
        return Err(PlanError::SumTooLarge { what });
    }
    Ok(())
}

impl Decided {
    /// Names the plan, and computes its digest.
    pub fn into_plan(self, plan_id: String, made_at: Timestamp, freeze_id: Option<String>) -> Plan {
        let Self { as_of, scope, policy, live_orders, intents, sums, outside_sums } = self;
        let digest = String::new();
        let mut plan = Plan {
            plan_id,
            digest,
            as_of,
            made_at,
            freeze_id,
            scope,
            policy,
            live_orders,
            intents,
            sums,
            outside_sums,
        };
        plan.digest = plan.compute_digest();
        plan
    }
}

impl Plan {
    /// The intents that have steps, in the plan's order.
    pub fn with_steps(&self) -> Vec<&PlannedIntent> {
        self.intents.iter().filter(|intent| !intent.steps.is_empty()).collect()
    }

    /// What its steps give back, by currency, in minor units.
    pub fn refunds(&self) -> BTreeMap<Currency, i128> {
        refunds(self.intents.iter().flat_map(|intent| &intent.steps))
    }

    /// The same plan, of no intents.
    #[must_use]
    pub fn without_intents(&self) -> Self {
        Self {
            plan_id: self.plan_id.clone(),
            digest: self.digest.clone(),
            freeze_id: self.freeze_id.clone(),
            scope: self.scope.clone(),
            policy: self.policy.clone(),
            intents: Vec::new(),
            sums: self.sums.clone(),
            outside_sums: self.outside_sums.clone(),
            ..*self
        }
    }

    /// Whether the plan still is what its digest was made of; a loaded one may have been edited.
    #[must_use]
    pub fn digest_matches(&self) -> bool {
        self.digest == self.compute_digest()
    }

    /// `sha256:` and the hex of the hash over the canonical JSON of everything but the plan's
    /// name, digest, time, freeze and what stands outside its sums. Intent by intent, since there may be a million.
    fn compute_digest(&self) -> String {
        let Self {
            plan_id: _,
            digest: _,
            made_at: _,
            freeze_id: _,
            as_of,
            scope,
            policy,
            live_orders,
            intents,
            sums,
            outside_sums: _,
        } = self;
        let mut digest = PlanDigest::new(*as_of);
        intents.iter().for_each(|intent| digest.intent(intent));
        digest.end(*live_orders, policy, scope, sums)
    }
}

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanError {
    /// Two orders are chosen to be kept, and they are one intent.
    TwoOverrides { tenant_id: TenantId, orders: [OrderId; 2] },
    /// A bug: money or stock was lost or counted twice. The total, then its parts in the order of
    /// the contract's section 7.
    SumsDoNotClose { what: String, parts: Box<Parts> },
    /// The amounts of the ledgers add up to more than 64 bits hold.
    SumTooLarge { what: String },
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TwoOverrides { tenant_id, orders: [a, b] } => write!(
                f,
                "orders {a} and {b} of tenant {tenant_id} belong to one intent, and both are chosen to be kept"
            ),
            Self::SumsDoNotClose { what, parts } => {
                let [total, parts @ ..] = &**parts;
                write!(
                    f,
                    "the plan is refused, its sums do not close: of {total} for {what} it accounts for {parts:?}"
                )
            }
            Self::SumTooLarge { what } => {
                write!(f, "the plan is refused, {what} adds up to more than 64 bits hold")
            }
        }
    }
}

impl std::error::Error for PlanError {}

impl PlanError {
    /// What the operator does next.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::TwoOverrides { .. } => "withdraw one of the two: onefold plan --withdraw-keep ORDER",
            Self::SumsDoNotClose { .. } => {
                "this is a bug of onefold: nothing was changed; report it with the plan's scope"
            }
            Self::SumTooLarge { .. } => "look for wrong amounts in the ledgers, or narrow the scope",
        }
    }
}

impl From<PlanError> for Error {
    fn from(error: PlanError) -> Self {
        let exit = match error {
            PlanError::SumsDoNotClose { .. } => Exit::Failure,
            _ => Exit::Usage,
        };
        Self::new(exit, error.to_string()).hint(error.hint())
    }
}
