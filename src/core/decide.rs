//! The decision table: which order an intent keeps, or who must decide instead (contract, section 4).
//!
//! [`decide`] reads as the table does: rows 1 and 2 stop everything; one of rows 3 to 8 makes a
//! choice, or an operator does; what may speak against that choice comes after.

use std::collections::BTreeSet;

use super::evidence::Evidence;
use super::facts::{Facts, OrderFacts};
use super::plan::Finding;
use super::policy::{self, PaidWithoutStock, Policy, TerminalCaptured, Ticketed, Unpaid};
use super::status::OrderStatus;
use super::time::Timestamp;

/// What is decided about one intent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The row of the table, 1 to 8; also where an operator's choice replaced the row's.
    pub decided_by: u8,
    pub findings: BTreeSet<Finding>,
    pub verdict: Verdict,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A person must decide, because of these. Nothing is touched.
    Review(BTreeSet<Finding>),
    /// The provider must be asked first. Nothing is touched.
    Unsettled,
    Settled {
        /// The order to keep, as an index into the intent's orders; without it every live order
        /// is unwound.
        keep: Option<usize>,
        /// Whether the kept order's waiting cancels and refunds are quarantined.
        stop_cancels: bool,
    },
}

/// What a row of the table says, before anything speaks against it.
enum Choice {
    Keep(usize),
    UnwindAll,
    Review(Finding),
}

/// Decides one intent. `chosen` is the order that an operator has chosen to keep, as an index
/// into the intent's orders; it must be live.
pub fn decide(
    facts: &Facts<'_>,
    policy: &Policy,
    as_of: Timestamp,
    evidence: &Evidence,
    chosen: Option<usize>,
) -> Decision {
    let mut findings = super::findings::findings(facts, as_of, evidence);

    let reasons = reasons_to_review(facts, &findings, policy);
    if !reasons.is_empty() {
        return Decision { decided_by: 1, findings, verdict: Verdict::Review(reasons) };
    }
    if facts.in_doubt() {
        return Decision { decided_by: 2, findings, verdict: Verdict::Unsettled };
    }
    let (decided_by, choice) = choose(facts, policy);
    let verdict = match chosen {
        Some(keep) => objections_overridden(facts, keep, decided_by, &mut findings),
        None => objections(facts, choice, decided_by, policy, &mut findings),
    };
    Decision { decided_by, findings, verdict }
}

/// Row 1: the findings that a person must look at.
fn reasons_to_review(facts: &Facts<'_>, findings: &BTreeSet<Finding>, policy: &Policy) -> BTreeSet<Finding> {
    const ALWAYS: &[Finding] = &[
        Finding::PaymentWithoutOrder,
        Finding::HoldWithoutOrder,
        Finding::CurrencyMismatch,
        Finding::Overpaid,
        Finding::OverRefunded,
        Finding::ChargeDisagrees,
        Finding::SharedCharge,
        Finding::OwnerMismatch,
        Finding::PaymentDisputed,
        Finding::OrderPaidNoPayment,
        Finding::RefundRefused,
    ];
    let mut reasons = facts.intent.identity.unsettled.clone();
    reasons.extend(ALWAYS.iter().filter(|f| findings.contains(f)));
    for order in facts.terminal().filter(|o| o.captured_with_money_left().next().is_some()) {
        if order.refunded_by_others {
            if order.waits_for_refund() && policy.terminal_captured != TerminalCaptured::Refund {
                reasons.insert(Finding::Retained);
            }
        } else if !is_refunded_when_terminal(facts, order, policy) {
            reasons.insert(Finding::CancelledButCaptured);
        }
    }
    reasons
}

/// Whether policy gives back what is captured on a terminal order (contract, section 5).
pub fn is_refunded_when_terminal(facts: &Facts<'_>, order: &OrderFacts<'_>, policy: &Policy) -> bool {
    match policy.terminal_captured {
        TerminalCaptured::Refund => true,
        TerminalCaptured::Review => false,
        TerminalCaptured::Duplicates => !order.refunded_by_others && facts.has_live_like(order.order()),
    }
}

/// Rows 3 to 8.
fn choose(facts: &Facts<'_>, policy: &Policy) -> (u8, Choice) {
    let candidates = indices(facts, |o| o.is_candidate());
    if let Some(first) = first_paid(facts, &candidates) {
        return (3, Choice::Keep(first));
    }
    let live = indices(facts, |o| o.is_live());
    if live.iter().any(|&i| facts.orders[i].is_paid()) {
        return match policy.paid_without_stock {
            PaidWithoutStock::Review => (4, Choice::Review(Finding::PaidWithoutStock)),
            PaidWithoutStock::Refund => (4, Choice::UnwindAll),
        };
    }
    match live.as_slice() {
        [] => (8, Choice::UnwindAll),
        [only] => (7, Choice::Keep(*only)),
        _ => match first_backed(facts, &live) {
            Some(first) => match policy.unpaid {
                Unpaid::KeepEarliest => (5, Choice::Keep(first)),
                Unpaid::Review => (5, Choice::Review(Finding::DuplicateOrders)),
                Unpaid::CancelAll => (5, Choice::UnwindAll),
            },
            None => match policy.unpaid {
                Unpaid::CancelAll => (6, Choice::UnwindAll),
                Unpaid::KeepEarliest | Unpaid::Review => (6, Choice::Review(Finding::NoStock)),
            },
        },
    }
}

fn indices(facts: &Facts<'_>, test: impl Fn(&OrderFacts<'_>) -> bool) -> Vec<usize> {
    (0..facts.orders.len()).filter(|&i| test(&facts.orders[i])).collect()
}

/// Row 3: the order that was paid first.
fn first_paid(facts: &Facts<'_>, candidates: &[usize]) -> Option<usize> {
    candidates.iter().copied().min_by_key(|&i| {
        let o = &facts.orders[i];
        (o.paid_at, o.order().created_at, &o.order().order_id)
    })
}

/// Row 5: of the backed orders the one with the first authorization that would pay it; where none
/// has one, the first order.
fn first_backed(facts: &Facts<'_>, live: &[usize]) -> Option<usize> {
    live.iter().copied().filter(|&i| facts.orders[i].backed).min_by_key(|&i| {
        let o = &facts.orders[i];
        let authorized_at = o.authorized_at();
        (authorized_at.is_none(), authorized_at, o.order().created_at, &o.order().order_id)
    })
}

/// What comes after rows 3 to 5: what may speak against the row's choice, one after the other.
fn objections(
    facts: &Facts<'_>,
    choice: Choice,
    decided_by: u8,
    policy: &Policy,
    findings: &mut BTreeSet<Finding>,
) -> Verdict {
    let mut keep = match choice {
        Choice::Keep(keep) => Some(keep),
        Choice::UnwindAll => None,
        Choice::Review(reason) => {
            if ticket_elsewhere(facts, None, decided_by) {
                findings.insert(Finding::TicketElsewhere);
            }
            return review(reason);
        }
    };
    if ticket_elsewhere(facts, keep, decided_by) {
        findings.insert(Finding::TicketElsewhere);
        match only_ticketed(facts).filter(|_| keep.is_some() && policy.ticketed == Ticketed::Prefer) {
            Some(ticketed) => keep = Some(ticketed),
            None => return review(Finding::TicketElsewhere),
        }
    }
    let Some(keep) = keep else {
        return Verdict::Settled { keep: None, stop_cancels: false };
    };
    if partly_refunded(facts, keep, decided_by) {
        findings.insert(Finding::PartlyRefunded);
        return review(Finding::PartlyRefunded);
    }
    let mut stop_cancels = false;
    if cancel_pending(facts, keep, decided_by) {
        findings.insert(Finding::CancelPending);
        match policy.cancel_pending {
            policy::CancelPending::Review => return review(Finding::CancelPending),
            policy::CancelPending::Quarantine => stop_cancels = true,
        }
    }
    Verdict::Settled { keep: Some(keep), stop_cancels }
}

/// An operator's choice settles whatever would speak against it; what does is still a finding.
fn objections_overridden(
    facts: &Facts<'_>,
    keep: usize,
    decided_by: u8,
    findings: &mut BTreeSet<Finding>,
) -> Verdict {
    if ticket_elsewhere(facts, Some(keep), decided_by) {
        findings.insert(Finding::TicketElsewhere);
    }
    if partly_refunded(facts, keep, decided_by) {
        findings.insert(Finding::PartlyRefunded);
    }
    let stop_cancels = facts.orders[keep].waiting_cancels().next().is_some();
    if stop_cancels {
        findings.insert(Finding::CancelPending);
    }
    Verdict::Settled { keep: Some(keep), stop_cancels }
}

fn review(reason: Finding) -> Verdict {
    Verdict::Review([reason].into())
}

/// A ticket was issued for an order that is not the one to keep; after row 4 for any.
fn ticket_elsewhere(facts: &Facts<'_>, keep: Option<usize>, decided_by: u8) -> bool {
    let ticketed = indices(facts, |o| o.status() == OrderStatus::Ticketed);
    match decided_by {
        3 | 5 => ticketed.iter().any(|&i| Some(i) != keep),
        4 => !ticketed.is_empty(),
        _ => false,
    }
}

/// The TICKETED order, if there is just one and it is paid and backed.
fn only_ticketed(facts: &Facts<'_>) -> Option<usize> {
    match indices(facts, |o| o.status() == OrderStatus::Ticketed).as_slice() {
        [only] if facts.orders[*only].is_candidate() => Some(*only),
        _ => None,
    }
}

/// Part of what paid the kept order went back, while another order could be kept whole.
fn partly_refunded(facts: &Facts<'_>, keep: usize, decided_by: u8) -> bool {
    let kept = &facts.orders[keep];
    decided_by == 3
        && kept.is_candidate()
        && kept.net_without_extra_minor() < i128::from(kept.order().amount_minor)
        && facts.candidates().count() > 1
}

/// Someone meant the kept order to go, and the plan would act on that belief or against it.
fn cancel_pending(facts: &Facts<'_>, keep: usize, decided_by: u8) -> bool {
    let kept = &facts.orders[keep];
    matches!(decided_by, 3..=5)
        && (facts.live().count() > 1 || !kept.extra.is_empty())
        && kept.waiting_cancels().next().is_some()
}
