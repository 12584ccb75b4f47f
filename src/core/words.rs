//! Findings in words, and what a person can type about them.

use super::explain::OrderEvidence;
use super::plan::{Finding, Outcome, Plan, PlannedIntent};
use super::policy::*;
use super::scope::Scope;
use super::time::Span;

/// What a finding says, for somebody who does not know its name.
pub const fn finding_in_words(finding: Finding) -> &'static str {
    match finding {
        Finding::CancelledButCaptured => "money is captured on an order that is closed",
        Finding::CancelPending => "a cancellation or refund is waiting for the order to keep",
        Finding::CapturedNotConfirmed => "paid, but the order still waits for its payment",
        Finding::ChargeDisagrees => "rows of one charge tell different amounts",
        Finding::ClockSkew => "captured before the order was written: two clocks differ",
        Finding::CurrencyMismatch => "an order is charged in another currency",
        Finding::DifferentRequest => "different seats or amounts within one purchase",
        Finding::DistinctKeys => "different idempotency keys within one purchase",
        Finding::DoubleRelease => "stock was released twice",
        Finding::DuplicateCallback => "a charge is told by more than one row",
        Finding::DuplicateMessage => "a message is queued more than once",
        Finding::DuplicateOrders => "one purchase has several live orders",
        Finding::ExcessHold => "more stock is held than was ordered",
        Finding::HoldLapsed => "a hold ran out",
        Finding::HoldWithoutOrder => "stock is held for no order",
        Finding::KeyReused => "one idempotency key stands on different requests",
        Finding::MessageForDeadOrder => "a message waits for a closed order",
        Finding::MessageWithoutOrder => "a message waits for an order that was never written",
        Finding::MultipleCaptures => "one order was charged more than once",
        Finding::NoStock => "nobody paid, and no stock is held",
        Finding::OrderInMotion => "an order was left halfway to being closed",
        Finding::OrderPaidNoPayment => "the order says paid, and no payment says so",
        Finding::Overpaid => "more was charged than the order costs",
        Finding::OverRefunded => "more was given back than was charged",
        Finding::OwnerMismatch => "a payment or hold of somebody else is on the order",
        Finding::PaidWithoutStock => "paid, but no stock backs what was paid",
        Finding::PartiallyPaid => "only part of the amount is paid",
        Finding::PartlyRefunded => "part of the order to keep was given back",
        Finding::PaymentDisputed => "the bank disputes a charge",
        Finding::PaymentInDoubt => "how a payment ended is not known",
        Finding::PaymentWithoutOrder => "money is charged for no order",
        Finding::RefundInDoubt => "whether a refund went out is not known",
        Finding::RefundRefused => "the provider refused a refund for good",
        Finding::Retained => "part of a closed order's money was kept back on purpose",
        Finding::SessionUnknown => "which client session an order came from is not known",
        Finding::SharedCharge => "one charge stands on two purchases",
        Finding::SpanExceeded => "the orders lie too far apart for one purchase",
        Finding::TerminalButAuthorized => "a card is still reserved for a closed order",
        Finding::TerminalButHeld => "stock is still held for a closed order",
        Finding::TicketElsewhere => "the ticket was issued for another order than the kept one",
    }
}

/// Findings in words, one after the other.
pub fn findings_in_words(findings: &[Finding]) -> String {
    findings.iter().map(|f| finding_in_words(*f)).collect::<Vec<_>>().join("; ")
}

/// What decides about a reason for review.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Way {
    /// A policy of the whole plan, as a flag and its value.
    Policy(String),
    /// An operator's choice of the kept order.
    Keep,
    /// The rows themselves must be put right first.
    Rows,
}

/// What would decide about an intent that is in REVIEW for this reason.
fn way(reason: Finding, intent: &PlannedIntent, policy: &Policy) -> Way {
    let flag = |text: &str| Way::Policy(text.to_owned());
    match reason {
        Finding::DistinctKeys if policy.distinct_keys == DistinctKeys::Review => {
            flag("--distinct-keys merge")
        }
        Finding::DifferentRequest if policy.different_request == DifferentRequest::Review => {
            flag("--different-request split")
        }
        // With one order alone, it is not known whose it is.
        Finding::SessionUnknown
            if policy.without_session == WithoutSession::Review
                && intent.session_id.is_none()
                && live(intent).count() > 1 =>
        {
            flag("--without-session merge")
        }
        Finding::SpanExceeded => {
            let times = || intent.evidence.iter().map(|o| o.created_at);
            match times().min().zip(times().max()) {
                Some((first, last)) => {
                    let minutes = last.since(first).micros() / Span::from_mins(1).micros() + 1;
                    flag(&format!("--max-span {}", Span::from_mins(minutes)))
                }
                None => Way::Rows,
            }
        }
        Finding::CancelledButCaptured | Finding::Retained
            if policy.terminal_captured != TerminalCaptured::Refund =>
        {
            flag("--terminal-captured refund")
        }
        Finding::NoStock => flag("--unpaid cancel_all"),
        Finding::PaidWithoutStock
        | Finding::DuplicateOrders
        | Finding::TicketElsewhere
        | Finding::PartlyRefunded
        | Finding::CancelPending => Way::Keep,
        _ => Way::Rows,
    }
}

fn live(intent: &PlannedIntent) -> impl Iterator<Item = &OrderEvidence> {
    intent.evidence.iter().filter(|o| o.status.is_live())
}

/// How many orders an operator is shown to choose among.
const CHOICES: usize = 4;

/// The command lines of which one would decide about an intent that needs a person or the provider; where
/// only its rows can, the one that shows them. `plan_flags` are those of [`plan_flags`].
pub fn deciding_lines(plan: &Plan, intent: &PlannedIntent, plan_flags: &str) -> Vec<String> {
    if intent.outcome == Outcome::Unsettled {
        return vec![format!("onefold converge --plan {}", plan.plan_id)];
    }
    let show = || vec![format!("onefold show {} --intent {}", plan.plan_id, intent.intent_id)];
    // Every reason must be settled; what only the rows can settle comes first.
    let mut flags = String::new();
    let mut chooses = false;
    for reason in &intent.review_reasons {
        match way(*reason, intent, &plan.policy) {
            Way::Policy(flag) => flags = format!("{flags} {flag}"),
            Way::Keep => chooses = true,
            Way::Rows => return show(),
        }
    }
    match (chooses, flags.is_empty()) {
        (false, true) => show(),
        (false, false) => vec![format!("onefold plan{plan_flags}{flags}")],
        (true, _) => live(intent)
            .take(CHOICES)
            .map(|order| {
                let order = quoted(order.order_id.as_str());
                format!("onefold plan{plan_flags}{flags} --keep {order} --because TEXT")
            })
            .collect(),
    }
}

/// The flags of `plan` that name a scope and policies other than the defaults, each after a blank.
pub fn plan_flags(scope: &Scope, policy: &Policy) -> String {
    let mut flags = scope_flags(scope);
    let default = Policy::default();
    let mut add = |flag: &str, value: String, differs: bool| {
        if differs {
            flags.push(format!("--{flag} {}", quoted(&value)));
        }
    };
    add("gap", policy.gap.to_string(), policy.gap != default.gap);
    add("max-span", policy.max_span.to_string(), policy.max_span != default.max_span);
    for (flag, value, usual) in named_policies(policy, &default) {
        add(flag, value.to_owned(), value != usual);
    }
    if let Some(span) = policy.initiated_expires {
        add("initiated-expires", span.to_string(), true);
    }
    for guest in &policy.guests {
        add("guest", guest.to_string(), true);
    }
    flags.iter().map(|flag| format!(" {flag}")).collect()
}

fn named_policies<'p>(policy: &'p Policy, default: &'p Policy) -> [(&'static str, &'p str, &'p str); 8] {
    [
        ("distinct-keys", policy.distinct_keys.as_str(), default.distinct_keys.as_str()),
        ("different-request", policy.different_request.as_str(), default.different_request.as_str()),
        ("without-session", policy.without_session.as_str(), default.without_session.as_str()),
        ("paid-without-stock", policy.paid_without_stock.as_str(), default.paid_without_stock.as_str()),
        ("unpaid", policy.unpaid.as_str(), default.unpaid.as_str()),
        ("ticketed", policy.ticketed.as_str(), default.ticketed.as_str()),
        ("cancel-pending", policy.cancel_pending.as_str(), default.cancel_pending.as_str()),
        ("terminal-captured", policy.terminal_captured.as_str(), default.terminal_captured.as_str()),
    ]
}

/// Every policy under its flag's name, with its value.
pub fn policies_in_words(policy: &Policy) -> Vec<(&'static str, String)> {
    let mut all = vec![("gap", policy.gap.to_string()), ("max-span", policy.max_span.to_string())];
    let named = named_policies(policy, policy);
    all.extend(named.into_iter().map(|(name, value, _)| (name, value.to_owned())));
    let never = || "never".to_owned();
    all.push(("initiated-expires", policy.initiated_expires.map_or_else(never, |span| span.to_string())));
    let guests: Vec<_> = policy.guests.iter().map(ToString::to_string).collect();
    all.push(("guests", if guests.is_empty() { "none".to_owned() } else { guests.join(", ") }));
    all
}

fn scope_flags(scope: &Scope) -> Vec<String> {
    fn named<T: ToString>(flag: &str, names: &std::collections::BTreeSet<T>) -> Vec<String> {
        names.iter().map(|name| format!("--{flag} {}", quoted(&name.to_string()))).collect()
    }
    [
        named("tenant", &scope.tenants),
        named("show", &scope.shows),
        named("user", &scope.users),
        named("session", &scope.sessions),
        scope.from.map(|t| format!("--from {t}")).into_iter().collect(),
        scope.to.map(|t| format!("--to {t}")).into_iter().collect(),
    ]
    .concat()
}

/// A word as a shell takes it.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}
