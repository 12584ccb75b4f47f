//! What a site may choose where the contract leaves a choice (contract, sections 2 to 5).

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::ids::UserId;
use super::status::status_type;
use super::time::Span;

status_type!(
    /// Different keys in one intent (section 2, rule 5).
    DistinctKeys { Review = "review", Merge = "merge", Split = "split" }
);
status_type!(
    /// Different requests without a shared key in one intent (section 2, rule 5).
    DifferentRequest { Review = "review", Split = "split" }
);
status_type!(
    /// Live orders without session (section 2, rule 6).
    WithoutSession { Review = "review", Merge = "merge" }
);
status_type!(
    /// Row 4 of the table.
    PaidWithoutStock { Review = "review", Refund = "refund" }
);
status_type!(
    /// Rows 5 and 6 of the table.
    Unpaid { KeepEarliest = "keep_earliest", Review = "review", CancelAll = "cancel_all" }
);
status_type!(
    /// TICKET_ELSEWHERE (section 4).
    Ticketed { Review = "review", Prefer = "prefer" }
);
status_type!(
    /// CANCEL_PENDING (section 4).
    CancelPending { Review = "review", Quarantine = "quarantine" }
);
status_type!(
    /// Captured money on a terminal order (section 5).
    TerminalCaptured { Duplicates = "duplicates", Refund = "refund", Review = "review" }
);

/// The policies of one plan, each under the contract's name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// The longest a client retries: farther apart is another intent.
    #[serde(rename = "gap_us")]
    pub gap: Span,
    /// The longest an intent may last before it needs a person.
    #[serde(rename = "max_span_us")]
    pub max_span: Span,
    pub distinct_keys: DistinctKeys,
    pub different_request: DifferentRequest,
    pub without_session: WithoutSession,
    pub guests: BTreeSet<UserId>,
    /// An INITIATED payment older than this at `as_of` counts as FAILED.
    #[serde(rename = "initiated_expires_us")]
    pub initiated_expires: Option<Span>,
    pub paid_without_stock: PaidWithoutStock,
    pub unpaid: Unpaid,
    pub ticketed: Ticketed,
    pub cancel_pending: CancelPending,
    pub terminal_captured: TerminalCaptured,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            gap: Span::from_mins(2),
            max_span: Span::from_mins(10),
            distinct_keys: DistinctKeys::Review,
            different_request: DifferentRequest::Review,
            without_session: WithoutSession::Review,
            guests: BTreeSet::new(),
            initiated_expires: None,
            paid_without_stock: PaidWithoutStock::Review,
            unpaid: Unpaid::KeepEarliest,
            ticketed: Ticketed::Review,
            cancel_pending: CancelPending::Review,
            terminal_captured: TerminalCaptured::Duplicates,
        }
    }
}
