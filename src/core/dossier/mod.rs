//! What is known of a plan, in one place, for whoever must sign it: the plan, what became of its steps,
//! the freeze, and what was read again of the ledgers. Before `apply` it is a dry run, during `apply` the
//! state so far, afterwards the plan beside what happened.
//!
//! Nothing is copied out of the plan, which may have a million intents: [`sheets`] gives its rows one by
//! one, and whoever writes them keeps none.

pub mod pseudonyms;
pub mod sheets;
pub mod summary;
pub mod timeline;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use super::approval::Approval;
use super::chain::Head;
use super::facts::is_expired;
use super::freeze::Freeze;
use super::ids::*;
use super::ledger::Hold;
use super::money::Currency;
use super::plan::{Plan, PlannedIntent, Step};
use super::status::{HoldStatus, Ledger, MessageStatus, OrderStatus, PaymentStatus};
use super::time::Timestamp;
use pseudonyms::Pseudonyms;
use timeline::Timeline;

/// What became of a step, as the journal's database knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepEnd {
    /// `DONE`, `UNKNOWN`, …
    pub state: &'static str,
    /// Whether the effect is there.
    pub is_done: bool,
    pub at: Timestamp,
    pub provider_ref: Option<String>,
    pub note: Option<String>,
}

/// The state of a step that nobody has begun.
pub const PLANNED: &str = "PLANNED";

/// What a payment row says about its charge, read again for the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChargeFacts {
    pub order_id: Option<OrderId>,
    pub provider: String,
    pub provider_txn_id: Option<String>,
}

/// What a hold's row says, read again for the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HoldFacts {
    pub order_id: Option<OrderId>,
    pub show_id: ShowId,
    pub item: Option<Item>,
    /// Pieces.
    pub quantity: i64,
    /// Whether it would have run out by the plan's `as_of`.
    pub has_lapsed: bool,
}

impl HoldFacts {
    pub fn new(hold: &Hold, as_of: Timestamp) -> Self {
        Self {
            order_id: hold.order_id.clone(),
            show_id: hold.show_id.clone(),
            item: hold.item.clone(),
            quantity: hold.quantity,
            has_lapsed: is_expired(hold, as_of),
        }
    }
}

/// A plan with all that is known of it.
#[derive(Debug)]
pub struct Dossier<'a> {
    pub plan: &'a Plan,
    /// `OPEN`, `DRY_RUN`, …
    pub state: &'static str,
    pub made_by: &'a str,
    pub superseded_by: Option<&'a str>,
    pub freeze: Option<&'a Freeze>,
    /// Whose word there is for what was decided.
    pub approvals: Vec<Approval>,
    /// Of the journal's chains that have ended and tell of the plan.
    pub heads: Vec<Head>,
    /// When the ledgers and the journal were read for this report.
    pub read_at: Timestamp,
    /// By step key; a step without one was not begun.
    pub ends: HashMap<String, StepEnd>,
    /// Of the payments that the plan refunds or voids.
    pub charges: HashMap<(TenantId, RowId), ChargeFacts>,
    /// Of the holds that the plan releases.
    pub holds: HashMap<(TenantId, RowId), HoldFacts>,
    pub timeline: Timeline,
    /// Stands for the ids of people, where they are not to be shown.
    pub pseudonyms: Option<Pseudonyms>,
}

/// What a step is for, as far as a report lists it by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Deed {
    Refund,
    Void,
    Cancel,
    Confirm,
    Release,
    Quarantine,
}

impl Deed {
    /// What the step that completes a deed is for; `None` for its first leg.
    pub fn of(step: &Step) -> Option<Self> {
        let to = step.to.as_str();
        let is = |ledger, status: &str| step.ledger == ledger && to == status;
        if step.is_refund() {
            Some(Self::Refund)
        } else if is(Ledger::Payments, PaymentStatus::Voided.as_str()) {
            Some(Self::Void)
        } else if is(Ledger::Orders, OrderStatus::Cancelled.as_str())
            || is(Ledger::Orders, OrderStatus::Refunded.as_str())
        {
            Some(Self::Cancel)
        } else if is(Ledger::Orders, OrderStatus::Paid.as_str()) {
            Some(Self::Confirm)
        } else if is(Ledger::Inventory, HoldStatus::Released.as_str()) {
            Some(Self::Release)
        } else if is(Ledger::Messages, MessageStatus::Quarantined.as_str()) {
            Some(Self::Quarantine)
        } else {
            None
        }
    }
}

/// How many of a kind there are, and how many of them are done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    pub planned: usize,
    pub done: usize,
}

impl<'a> Dossier<'a> {
    /// A plan of which nothing more is known: as it was made.
    pub fn of_plan(plan: &'a Plan) -> Self {
        Self {
            plan,
            state: "",
            made_by: "",
            superseded_by: None,
            freeze: None,
            read_at: plan.made_at,
            ends: HashMap::new(),
            charges: HashMap::new(),
            holds: HashMap::new(),
            timeline: Timeline::default(),
            approvals: Vec::new(),
            heads: Vec::new(),
            pseudonyms: None,
        }
    }

    /// What became of a step.
    pub fn end(&self, step: &Step) -> Option<&StepEnd> {
        self.ends.get(&step.step_key)
    }

    pub fn is_done(&self, step: &Step) -> bool {
        self.end(step).is_some_and(|end| end.is_done)
    }

    /// The state of the whole deed that a step completes: where its first leg stands still, that.
    pub fn state_of(&self, intent: &PlannedIntent, step: &Step) -> &'static str {
        if let Some(end) = self.end(step) {
            return end.state;
        }
        let first = intent.steps.iter().filter(|s| s.ledger == step.ledger && s.id == step.id);
        match first.filter_map(|s| self.end(s)).next_back() {
            Some(end) if !end.is_done => end.state,
            Some(_) => "BEGUN",
            None => PLANNED,
        }
    }

    pub fn user(&self, id: &'a UserId) -> Cow<'a, str> {
        match &self.pseudonyms {
            Some(pseudonyms) => pseudonyms.user(id.as_str()).into(),
            None => id.as_str().into(),
        }
    }

    pub fn session(&self, id: &'a SessionId) -> Cow<'a, str> {
        match &self.pseudonyms {
            Some(pseudonyms) => pseudonyms.session(id.as_str()).into(),
            None => id.as_str().into(),
        }
    }

    /// Text that a person wrote, or a key that a client made, with what it says about people replaced.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match &self.pseudonyms {
            Some(pseudonyms) => pseudonyms.text(text, &|_| false),
            None => text.into(),
        }
    }

    /// A sentence of ours about the orders of an intent: their ids stay as they are.
    pub fn sentence<'t>(&self, text: &'t str, intent: &PlannedIntent) -> Cow<'t, str> {
        match &self.pseudonyms {
            Some(pseudonyms) => {
                pseudonyms.text(text, &|word| intent.orders.iter().any(|o| o.as_str() == word))
            }
            None => text.into(),
        }
    }

    /// The freeze's scope and the plan's are the only lists of names in a plan's head.
    pub fn scope(&self) -> super::scope::Scope {
        let mut scope = self.plan.scope.clone();
        if let Some(pseudonyms) = &self.pseudonyms {
            scope.users = scope.users.iter().map(|id| pseudonyms.user(id.as_str()).into()).collect();
            scope.sessions = scope.sessions.iter().map(|id| pseudonyms.session(id.as_str()).into()).collect();
        }
        scope
    }

    pub fn policy(&self) -> super::policy::Policy {
        let mut policy = self.plan.policy.clone();
        if let Some(pseudonyms) = &self.pseudonyms {
            policy.guests = policy.guests.iter().map(|id| pseudonyms.user(id.as_str()).into()).collect();
        }
        policy
    }

    /// How many deeds of each kind are planned, and done.
    pub fn progress(&self) -> HashMap<Deed, Progress> {
        let mut progress: HashMap<Deed, Progress> = HashMap::new();
        for step in self.plan.intents.iter().flat_map(|i| &i.steps) {
            if let Some(deed) = Deed::of(step) {
                let of = progress.entry(deed).or_default();
                of.planned += 1;
                of.done += usize::from(self.is_done(step));
            }
        }
        progress
    }

    /// What has gone back so far, by tenant and currency, in minor units.
    pub fn refunded(&self) -> BTreeMap<(TenantId, Currency), i128> {
        let mut sums = BTreeMap::new();
        for intent in &self.plan.intents {
            for step in intent.steps.iter().filter(|s| s.is_refund() && self.is_done(s)) {
                if let Some((amount, currency)) = step.amount_minor.zip(step.currency) {
                    *sums.entry((intent.tenant_id.clone(), currency)).or_insert(0) += i128::from(amount);
                }
            }
        }
        sums
    }

    /// When steps were first and last carried out.
    pub fn carried_out(&self) -> Option<(Timestamp, Timestamp)> {
        let times = || self.ends.values().map(|end| end.at);
        Some((times().min()?, times().max()?))
    }
}
