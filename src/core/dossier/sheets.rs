//! The sheets of a report: which columns they have, and their rows, made one by one.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::{Deed, Dossier};
use crate::core::explain::row_in_words;
use crate::core::ids::RowId;
use crate::core::money::Currency;
use crate::core::plan::{Finding, Outcome, Plan, PlannedIntent, Step};
use crate::core::sheet::{Cell, Column, Head, Holds, Put, column, maybe, number, text};
use crate::core::status::HoldStatus;
use crate::core::words::{deciding_lines, finding_in_words, findings_in_words, plan_flags};
use crate::error::Result;

/// A sheet, in the order in which they stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sheet {
    Intents,
    Refunds,
    Voided,
    Cancelled,
    Confirmed,
    Released,
    Quarantined,
    Review,
    Unsettled,
    Findings,
    Journal,
}

const TENANT: Column = column("tenant_id", "Tenant", Holds::Text, 12);
const SHOW: Column = column("show_id", "Show", Holds::Text, 14);
const USER: Column = column("user_id", "User", Holds::Text, 24);
const SESSION: Column = column("session_id", "Session", Holds::Text, 26);
const INTENT: Column = column("intent_id", "Intent", Holds::Text, 20);
const ORDER: Column = column("order_id", "Order", Holds::Text, 18);
const ORDERS: Column = column("orders", "Orders", Holds::Text, 34);
const CURRENCY: Column = column("currency", "Currency", Holds::Text, 10);
const FROM: Column = column("from", "From", Holds::Text, 18);
const TO: Column = column("to", "To", Holds::Text, 14);
const STATUS: Column = column("status", "Status", Holds::Text, 13);
const AT: Column = column("at", "At (UTC)", Holds::Time, 24);
const STEP: Column = column("step_key", "Step key", Holds::Text, 20);
const NOTE: Column = column("note", "Note", Holds::Prose, 50);
const CAPTURED: Column = column("captured_minor", "Captured", Holds::Money, 16);
const AMOUNT: Column = column("amount_minor", "Amount", Holds::Money, 16);
const IN_WORDS: Column = column("in_words", "In words", Holds::Prose, 60);
const REFERENCE: Column = column("provider_ref", "Provider reference", Holds::Text, 24);

impl Sheet {
    pub const ALL: [Self; 11] = [
        Self::Intents,
        Self::Refunds,
        Self::Voided,
        Self::Cancelled,
        Self::Confirmed,
        Self::Released,
        Self::Quarantined,
        Self::Review,
        Self::Unsettled,
        Self::Findings,
        Self::Journal,
    ];

    pub const fn title(self) -> &'static str {
        match self {
            Self::Intents => "Intents",
            Self::Refunds => "Refunds",
            Self::Voided => "Voided",
            Self::Cancelled => "Cancelled",
            Self::Confirmed => "Confirmed",
            Self::Released => "Released",
            Self::Quarantined => "Quarantined",
            Self::Review => "Review",
            Self::Unsettled => "Unsettled",
            Self::Findings => "Findings",
            Self::Journal => "Journal",
        }
    }

    /// For files and flags.
    pub fn name(self) -> String {
        self.head().name()
    }

    pub const fn head(self) -> Head {
        Head { title: self.title(), row_is: self.row_is(), columns: self.columns() }
    }

    /// What one row of it is.
    pub const fn row_is(self) -> &'static str {
        match self {
            Self::Intents => "a purchase and a currency",
            Self::Refunds => "a payment that goes back",
            Self::Voided => "a payment whose reserved money is let go",
            Self::Cancelled => "an order that is closed",
            Self::Confirmed => "an order that becomes PAID",
            Self::Released => "a hold that is given back",
            Self::Quarantined => "a message that is stopped",
            Self::Review => "a purchase that a person must decide, and a currency",
            Self::Unsettled => "a purchase that waits for the provider, and a currency",
            Self::Findings => "a finding of a purchase",
            Self::Journal => "an entry of the journal",
        }
    }

    pub const fn columns(self) -> &'static [Column] {
        const COUNT: Column = column("order_count", "Orders", Holds::Number, 9);
        match self {
            Self::Intents => {
                const {
                    &[
                        TENANT,
                        CURRENCY,
                        column("outcome", "Outcome", Holds::Text, 12),
                        CAPTURED,
                        column("to_refund_minor", "To refund", Holds::Money, 16),
                        column("refunded_minor", "Refunded", Holds::Money, 16),
                        INTENT,
                        SHOW,
                        USER,
                        SESSION,
                        column("keep", "Kept order", Holds::Text, 18),
                        COUNT,
                        column("decided_by", "Row", Holds::Number, 6),
                        column("findings", "Findings", Holds::Text, 40),
                        column("steps", "Steps", Holds::Number, 8),
                        column("steps_done", "Done", Holds::Number, 8),
                    ]
                }
            }
            Self::Refunds | Self::Voided => {
                const {
                    &[
                        TENANT,
                        CURRENCY,
                        AMOUNT,
                        ORDER,
                        column("payment_id", "Payment", Holds::Text, 18),
                        column("provider", "Provider", Holds::Text, 14),
                        column("charge", "Charge reference", Holds::Text, 24),
                        STATUS,
                        AT,
                        STEP,
                        REFERENCE,
                        INTENT,
                        SHOW,
                        USER,
                        NOTE,
                    ]
                }
            }
            Self::Cancelled | Self::Confirmed => {
                const {
                    &[
                        TENANT,
                        ORDER,
                        FROM,
                        TO,
                        STATUS,
                        AT,
                        STEP,
                        column("created_at", "Written (UTC)", Holds::Time, 24),
                        CURRENCY,
                        AMOUNT,
                        INTENT,
                        SHOW,
                        USER,
                        SESSION,
                        column("because", "Because", Holds::Prose, 60),
                    ]
                }
            }
            Self::Released => {
                const {
                    &[
                        TENANT,
                        SHOW,
                        column("live_pieces", "Live pieces", Holds::Number, 12),
                        column("pieces", "Pieces", Holds::Number, 9),
                        column("hold_id", "Hold", Holds::Text, 18),
                        ORDER,
                        column("item", "Item", Holds::Text, 14),
                        FROM,
                        TO,
                        STATUS,
                        AT,
                        STEP,
                        INTENT,
                        USER,
                    ]
                }
            }
            Self::Quarantined => {
                const {
                    &[
                        TENANT,
                        column("message_id", "Message", Holds::Text, 18),
                        FROM,
                        TO,
                        STATUS,
                        AT,
                        STEP,
                        INTENT,
                        SHOW,
                        USER,
                    ]
                }
            }
            Self::Review | Self::Unsettled => {
                const {
                    &[
                        TENANT,
                        CURRENCY,
                        CAPTURED,
                        INTENT,
                        SHOW,
                        USER,
                        SESSION,
                        ORDERS,
                        column("reasons", "Reasons", Holds::Text, 34),
                        IN_WORDS,
                        column("evidence", "Evidence", Holds::Prose, 80),
                        column("next", "To decide it", Holds::Text, 60),
                    ]
                }
            }
            Self::Findings => {
                const {
                    &[
                        TENANT,
                        INTENT,
                        column("finding", "Finding", Holds::Text, 26),
                        IN_WORDS,
                        column("outcome", "Outcome", Holds::Text, 12),
                        SHOW,
                        USER,
                        ORDERS,
                    ]
                }
            }
            Self::Journal => {
                const {
                    &[
                        column("seq", "#", Holds::Number, 9),
                        AT,
                        column("actor", "Who", Holds::Text, 20),
                        column("event", "Event", Holds::Text, 14),
                        TENANT,
                        column("ledger", "Ledger", Holds::Text, 11),
                        column("row_id", "Row", Holds::Text, 18),
                        FROM,
                        TO,
                        CURRENCY,
                        AMOUNT,
                        column("freeze_id", "Freeze", Holds::Text, 15),
                        column("plan_id", "Plan", Holds::Text, 15),
                        INTENT,
                        NOTE,
                    ]
                }
            }
        }
    }
}

fn names(findings: &[Finding]) -> String {
    findings.iter().map(|f| f.as_str()).collect::<Vec<_>>().join(" ")
}

impl<'a> Dossier<'a> {
    /// Every row of a sheet, as many cells as it has columns; of the journal, which is no part of the
    /// plan, none.
    ///
    /// # Errors
    /// What `put` fails with.
    pub fn rows(&'a self, sheet: Sheet, put: Put<'_, 'a>) -> Result<()> {
        match sheet {
            Sheet::Intents => self.plan.intents.iter().try_for_each(|i| self.intent(i, put)),
            Sheet::Refunds => self.deeds(Deed::Refund, &|i, s| self.money(i, s), put),
            Sheet::Voided => self.deeds(Deed::Void, &|i, s| self.money(i, s), put),
            Sheet::Cancelled => self.deeds(Deed::Cancel, &|i, s| self.order(i, s), put),
            Sheet::Confirmed => self.deeds(Deed::Confirm, &|i, s| self.order(i, s), put),
            Sheet::Released => self.deeds(Deed::Release, &|i, s| self.hold(i, s), put),
            Sheet::Quarantined => self.deeds(Deed::Quarantine, &|i, s| self.message(i, s), put),
            Sheet::Review => self.waiting(Outcome::Review, put),
            Sheet::Unsettled => self.waiting(Outcome::Unsettled, put),
            Sheet::Findings => self.findings(put),
            Sheet::Journal => Ok(()),
        }
    }

    fn deeds(
        &'a self,
        deed: Deed,
        row: &dyn Fn(&'a PlannedIntent, &'a Step) -> Vec<Cell<'a>>,
        put: Put<'_, 'a>,
    ) -> Result<()> {
        for intent in &self.plan.intents {
            for step in intent.steps.iter().filter(|s| Deed::of(s) == Some(deed)) {
                put(&row(intent, step))?;
            }
        }
        Ok(())
    }

    /// One row a currency; what is not about money stands on each.
    fn intent(&'a self, intent: &'a PlannedIntent, put: Put<'_, 'a>) -> Result<()> {
        let planned = crate::core::plan::refunds(intent.steps.iter());
        let done = crate::core::plan::refunds(intent.steps.iter().filter(|s| self.is_done(s)));
        let steps_done = intent.steps.iter().filter(|s| self.is_done(s)).count();
        let mut row = |currency: Option<Currency>| {
            let money = |sums: &BTreeMap<Currency, i128>| match currency {
                Some(c) => Cell::Money(sums.get(&c).copied().unwrap_or(0), c),
                None => Cell::None,
            };
            put(&[
                text(intent.tenant_id.as_str()),
                maybe(currency.map(Currency::code)),
                text(intent.outcome.as_str()),
                money(&intent.captured),
                money(&planned),
                money(&done),
                text(&intent.intent_id),
                maybe(intent.show_id.as_ref().map(|s| s.as_str())),
                self.user_cell(intent),
                self.session_cell(intent),
                maybe(intent.keep.as_ref().map(|o| o.as_str())),
                number(intent.orders.len()),
                Cell::Number(intent.decided_by.into()),
                text(names(&intent.findings)),
                number(intent.steps.len()),
                number(steps_done),
            ])
        };
        let mut currencies: Vec<Currency> = intent.captured.keys().chain(planned.keys()).copied().collect();
        currencies.sort_unstable();
        currencies.dedup();
        if currencies.is_empty() {
            return row(None);
        }
        currencies.into_iter().try_for_each(|currency| row(Some(currency)))
    }

    /// A refund, or a void, which has no amount.
    fn money(&'a self, intent: &'a PlannedIntent, step: &'a Step) -> Vec<Cell<'a>> {
        let charge = self.charges.get(&(intent.tenant_id.clone(), step.id.clone()));
        let end = self.end(step);
        let reference = self.provider_ref(intent, step);
        vec![
            text(intent.tenant_id.as_str()),
            maybe(step.currency.map(Currency::code)),
            step.amount_minor.zip(step.currency).map_or(Cell::None, |(a, c)| Cell::Money(a.into(), c)),
            maybe(charge.and_then(|c| c.order_id.as_ref()).map(|o| o.as_str())),
            text(step.id.as_str()),
            maybe(charge.map(|c| c.provider.as_str())),
            maybe(charge.and_then(|c| c.provider_txn_id.as_deref()).map(|t| self.text(t))),
            text(self.state_of(intent, step)),
            end.map_or(Cell::None, |e| Cell::Time(e.at)),
            text(&step.step_key),
            maybe(reference),
            text(&intent.intent_id),
            maybe(intent.show_id.as_ref().map(|s| s.as_str())),
            self.user_cell(intent),
            maybe(end.and_then(|e| e.note.as_deref()).map(|n| self.text(n))),
        ]
    }

    /// The provider's own name of a request, which stands on one of the two legs.
    fn provider_ref(&'a self, intent: &'a PlannedIntent, step: &Step) -> Option<Cow<'a, str>> {
        let legs = intent.steps.iter().filter(|s| s.ledger == step.ledger && s.id == step.id);
        let mut references = legs.filter_map(|s| self.end(s)?.provider_ref.as_deref());
        references.next_back().map(|r| self.text(r))
    }

    fn order(&'a self, intent: &'a PlannedIntent, step: &'a Step) -> Vec<Cell<'a>> {
        let evidence = intent.evidence.iter().find(|o| o.order_id.as_str() == step.id.as_str());
        // Its state before the first leg.
        let first = intent.steps.iter().find(|s| s.ledger == step.ledger && s.id == step.id);
        vec![
            text(intent.tenant_id.as_str()),
            text(step.id.as_str()),
            text(&first.unwrap_or(step).from),
            text(&step.to),
            text(self.state_of(intent, step)),
            self.end(step).map_or(Cell::None, |e| Cell::Time(e.at)),
            text(&step.step_key),
            evidence.map_or(Cell::None, |o| Cell::Time(o.created_at)),
            maybe(evidence.map(|o| o.currency.code())),
            evidence.map_or(Cell::None, |o| Cell::Money(o.amount_minor.into(), o.currency)),
            text(&intent.intent_id),
            maybe(intent.show_id.as_ref().map(|s| s.as_str())),
            self.user_cell(intent),
            self.session_cell(intent),
            maybe(evidence.map(|o| self.sentence(&o.because, intent))),
        ]
    }

    fn hold(&'a self, intent: &'a PlannedIntent, step: &'a Step) -> Vec<Cell<'a>> {
        let hold = self.holds.get(&(intent.tenant_id.clone(), step.id.clone()));
        let was_live = |lapsed: bool| step.from == HoldStatus::Confirmed.as_str() || !lapsed;
        vec![
            text(intent.tenant_id.as_str()),
            maybe(hold.map(|h| h.show_id.as_str())),
            hold.map_or(Cell::None, |h| Cell::Number(if was_live(h.has_lapsed) { h.quantity } else { 0 })),
            hold.map_or(Cell::None, |h| Cell::Number(h.quantity)),
            text(step.id.as_str()),
            maybe(hold.and_then(|h| h.order_id.as_ref()).map(|o| o.as_str())),
            maybe(hold.and_then(|h| h.item.as_ref()).map(|i| i.as_str())),
            text(&step.from),
            text(&step.to),
            text(self.state_of(intent, step)),
            self.end(step).map_or(Cell::None, |e| Cell::Time(e.at)),
            text(&step.step_key),
            text(&intent.intent_id),
            self.user_cell(intent),
        ]
    }

    fn message(&'a self, intent: &'a PlannedIntent, step: &'a Step) -> Vec<Cell<'a>> {
        vec![
            text(intent.tenant_id.as_str()),
            text(step.id.as_str()),
            text(&step.from),
            text(&step.to),
            text(self.state_of(intent, step)),
            self.end(step).map_or(Cell::None, |e| Cell::Time(e.at)),
            text(&step.step_key),
            text(&intent.intent_id),
            maybe(intent.show_id.as_ref().map(|s| s.as_str())),
            self.user_cell(intent),
        ]
    }

    fn waiting(&'a self, outcome: Outcome, put: Put<'_, 'a>) -> Result<()> {
        let flags = self.plan_flags();
        for intent in self.plan.intents.iter().filter(|i| i.outcome == outcome) {
            let reasons = reasons(intent);
            let evidence: Vec<_> = self.evidence(intent).collect();
            let money = intent.captured.iter().map(|(c, minor)| (Some(*c), Cell::Money(*minor, *c)));
            let mut money: Vec<_> = money.collect();
            if money.is_empty() {
                money.push((None, Cell::None));
            }
            for (currency, captured) in money {
                put(&[
                    text(intent.tenant_id.as_str()),
                    maybe(currency.map(Currency::code)),
                    captured,
                    text(&intent.intent_id),
                    maybe(intent.show_id.as_ref().map(|s| s.as_str())),
                    self.user_cell(intent),
                    self.session_cell(intent),
                    text(orders_of(intent)),
                    text(names(reasons)),
                    text(format!("{}: {}", row_in_words(intent.decided_by), findings_in_words(reasons))),
                    text(evidence.join("\n")),
                    text(self.next(intent, &flags).join("\n")),
                ])?;
            }
        }
        Ok(())
    }

    fn findings(&'a self, put: Put<'_, 'a>) -> Result<()> {
        for intent in &self.plan.intents {
            for finding in &intent.findings {
                put(&[
                    text(intent.tenant_id.as_str()),
                    text(&intent.intent_id),
                    text(finding.as_str()),
                    text(finding_in_words(*finding)),
                    text(intent.outcome.as_str()),
                    maybe(intent.show_id.as_ref().map(|s| s.as_str())),
                    self.user_cell(intent),
                    text(orders_of(intent)),
                ])?;
            }
        }
        Ok(())
    }

    fn user_cell(&'a self, intent: &'a PlannedIntent) -> Cell<'a> {
        maybe(intent.user_id.as_ref().map(|u| self.user(u)))
    }

    fn session_cell(&'a self, intent: &'a PlannedIntent) -> Cell<'a> {
        maybe(intent.session_id.as_ref().map(|s| self.session(s)))
    }

    /// The facts of each order of an intent, a line each.
    pub fn evidence(&'a self, intent: &'a PlannedIntent) -> impl Iterator<Item = String> + 'a {
        intent.evidence.iter().map(move |order| {
            format!(
                "{} {} {}, captured {}: {}",
                order.order_id,
                order.status,
                order.currency.show(order.amount_minor.into()),
                order.currency.show(order.net_minor.into()),
                self.sentence(&order.because, intent)
            )
        })
    }

    /// The flags with which the plan was made, for [`Dossier::next`].
    pub fn plan_flags(&self) -> String {
        plan_flags(&self.scope(), &self.policy())
    }

    /// What to type about an intent that is not decided: one of these lines.
    pub fn next(&self, intent: &PlannedIntent, flags: &str) -> Vec<String> {
        deciding_lines(self.plan, intent, flags)
    }
}

/// Purchases that wait for the same.
#[derive(Debug)]
pub struct Waiting<'a> {
    pub outcome: Outcome,
    pub findings: Vec<Finding>,
    pub intents: Vec<&'a PlannedIntent>,
}

/// What needs a person, by reason, and then what needs the provider.
pub fn waiting(plan: &Plan) -> Vec<Waiting<'_>> {
    let mut reviews: BTreeMap<&[Finding], Vec<&PlannedIntent>> = BTreeMap::new();
    let mut unsettled = Vec::new();
    let mut doubts = BTreeSet::new();
    for intent in &plan.intents {
        match intent.outcome {
            Outcome::Review => reviews.entry(reasons(intent)).or_default().push(intent),
            Outcome::Unsettled => {
                doubts.extend(intent.findings.iter().copied().filter(|f| is_doubt(*f)));
                unsettled.push(intent);
            }
            Outcome::Clean | Outcome::Keep | Outcome::Unwind => {}
        }
    }
    let review = |(findings, intents): (&[Finding], _)| Waiting {
        outcome: Outcome::Review,
        findings: findings.to_vec(),
        intents,
    };
    let mut all: Vec<_> = reviews.into_iter().map(review).collect();
    if !unsettled.is_empty() {
        let findings = doubts.into_iter().collect();
        all.push(Waiting { outcome: Outcome::Unsettled, findings, intents: unsettled });
    }
    all
}

/// Whether only the provider can say (contract, section 3).
const fn is_doubt(finding: Finding) -> bool {
    matches!(finding, Finding::PaymentInDoubt | Finding::OrderInMotion | Finding::RefundInDoubt)
}

/// Why an intent is not decided.
pub fn reasons(intent: &PlannedIntent) -> &[Finding] {
    if intent.review_reasons.is_empty() { &intent.findings } else { &intent.review_reasons }
}

/// The orders of an intent, and its rows without order.
pub fn orders_of(intent: &PlannedIntent) -> String {
    let orders = intent.orders.iter().map(ToString::to_string);
    let orphans =
        intent.orphans.iter().map(|(ledger, id): &(_, RowId)| format!("{} {id}", ledger.row_name()));
    orders.chain(orphans).collect::<Vec<_>>().join(" ")
}
