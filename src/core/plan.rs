//! The plan: what was decided, in a canonical form with a digest (contract, section 8), and the
//! sums that must close (section 7).

use serde::{Deserialize, Serialize};

use super::evidence::KeepOverride;
use super::ids::*;
use super::money::Currency;
use super::policy::Policy;
use super::scope::Scope;
use super::status::{Ledger, status_type};
use super::time::Timestamp;

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

status_type!(
    /// A difference that has a name (contract, section 6).
    Finding {
        CancelPending = "CANCEL_PENDING",
        CancelledButCaptured = "CANCELLED_BUT_CAPTURED",
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
        OverRefunded = "OVER_REFUNDED",
        Overpaid = "OVERPAID",
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

/// A saved decision about every intent of a scope.
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
    pub intents: Vec<PlannedIntent>,
    pub sums: Sums,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedIntent {
    pub intent_id: String,
    pub tenant_id: TenantId,
    /// Null only for an orphan message that names no user.
    pub user_id: Option<UserId>,
    pub show_id: Option<ShowId>,
    pub session_id: Option<SessionId>,
    /// By bytes.
    pub orders: Vec<OrderId>,
    /// By ledger and bytes.
    pub orphans: Vec<(Ledger, RowId)>,
    pub outcome: Outcome,
    pub keep: Option<OrderId>,
    /// The operator's override that decided `keep`, where there is one.
    #[serde(rename = "override")]
    pub override_keep: Option<KeepOverride>,
    /// Sorted by name, each once.
    pub findings: Vec<Finding>,
    pub review_reasons: Vec<Finding>,
    /// The row of the table in the contract's section 4, 1 to 8.
    pub decided_by: u8,
    pub steps: Vec<Step>,
    /// Every row of an intent that has steps, as it was when the plan was made: what `apply`
    /// compares with before it moves anything (section 5). Empty where there are no steps.
    pub seen: Vec<SeenRow>,
}

/// One compare-and-set on one row (contract, section 5).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    pub ledger: Ledger,
    pub id: RowId,
    pub from: String,
    pub to: String,
    /// On both legs of a refund; null elsewhere.
    pub amount_minor: Option<i64>,
    pub currency: Option<Currency>,
    /// The version seen; null on a row's second leg, which is read back after the first.
    pub version: Option<Version>,
    /// Belongs to the effect, not to the plan: 64 hex digits.
    pub step_key: String,
    /// The key under which a provider is asked: that of the first leg, on both legs of a refund
    /// or void; null where no provider is asked.
    pub provider_key: Option<String>,
}

/// A row as a plan saw it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SeenRow {
    pub ledger: Ledger,
    pub id: RowId,
    pub status: String,
    pub version: Version,
    /// A hash over everything else that the row says.
    pub content: String,
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
