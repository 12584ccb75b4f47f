//! What came of it: purchases with several orders and stock that was released twice, beside the times
//! in which two held the lock that names them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Serialize;

use super::found::{Certainty, Found, Holder, LockFinding, in_words};
use super::hold::WRITES;
use crate::core::findings::is_release;
use crate::core::ids::{DEFAULT_TENANT, OrderId, TenantId};
use crate::core::ledger::{Hold, Ledgers, Message};
use crate::core::plan::PlannedIntent;
use crate::core::status::status_type;
use crate::core::time::{Span, Timestamp};

status_type!(
    /// What there is twice, as the contract's section 6 names it.
    DuplicateKind {
        Orders = "DUPLICATE_ORDERS",
        Release = "DOUBLE_RELEASE",
    }
);

/// One of the things that were done twice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Act {
    /// The message or order that was written.
    pub id: String,
    pub at: Timestamp,
    pub by: Doer,
}

/// Who did something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Doer {
    First,
    Second,
    /// One of the two: both held the lock then.
    Either,
    /// Neither held it then, or wrote then.
    Unknown,
}

/// Something that was done twice while two held its lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Duplicate {
    pub kind: DuplicateKind,
    pub tenant_id: TenantId,
    /// What was doubled: `hold H-88`.
    pub what: String,
    /// The lock's key.
    pub key: String,
    /// How it came that two held it.
    pub finding: LockFinding,
    pub certainty: Certainty,
    pub from: Timestamp,
    pub until: Option<Timestamp>,
    pub acts: Vec<Act>,
    pub first: Holder,
    pub second: Option<Holder>,
    /// How long the first one's lease had ended when it acted.
    #[serde(rename = "lease_had_ended_us")]
    pub lease_had_ended: Option<Span>,
}

impl Duplicate {
    /// `hold H-88 was released twice: … by A (token 41), … by B (token 42); A's lease had ended 1.4s before,
    /// after a pause of 5.2s`.
    pub fn in_words(&self) -> String {
        let done = match (self.kind, self.acts.len()) {
            (DuplicateKind::Release, 2) => "was released twice".to_owned(),
            (DuplicateKind::Release, n) => format!("was released {n} times"),
            (DuplicateKind::Orders, n) => format!("was ordered {n} times"),
        };
        let acts: Vec<_> = self
            .acts
            .iter()
            .map(|act| match (act.by, &self.second) {
                (Doer::First, _) => format!("{} by {}", act.at, in_words(&self.first)),
                (Doer::Second, Some(second)) => format!("{} by {}", act.at, in_words(second)),
                (Doer::Either, _) => format!("{} by one of the two", act.at),
                (Doer::Second | Doer::Unknown, _) => format!("{} by whom is not known", act.at),
            })
            .collect();
        let mut text = format!("{} {done}: {}", self.what, acts.join(", "));
        if let Some(ended) = self.lease_had_ended {
            text += &format!("; {}'s lease had ended {ended} before", self.first.owner);
            if let Some(pause) = self.first.pause {
                text += &format!(", after a pause of {}", pause.lasted);
            }
        }
        text
    }
}

/// A purchase or an order that there is more of than there should be.
#[derive(Debug)]
struct Subject {
    kind: DuplicateKind,
    tenant_id: TenantId,
    /// What each name that a lock may bear stands for, for people.
    names: BTreeMap<String, String>,
    what: String,
    /// By time.
    acts: Vec<(Timestamp, String)>,
}

/// What the ledgers have twice.
#[derive(Debug)]
pub struct Business {
    skew: Span,
    /// What a key may name as its tenant.
    tenants: BTreeSet<String>,
    subjects: Vec<Subject>,
    by_name: HashMap<String, Vec<usize>>,
    /// By subject, of several the first that is proven.
    joined: BTreeMap<usize, Duplicate>,
}

impl Business {
    /// Finds the purchases with several orders and the orders whose stock was released more than once.
    pub fn new(ledgers: &Ledgers, intents: &[PlannedIntent], skew: Span) -> Self {
        let mut holds: HashMap<(&TenantId, &OrderId), Vec<&Hold>> = HashMap::new();
        for hold in &ledgers.inventory {
            if let Some(order_id) = &hold.order_id {
                holds.entry((&hold.tenant_id, order_id)).or_default().push(hold);
            }
        }
        let mut releases: BTreeMap<(&TenantId, &OrderId), Vec<&Message>> = BTreeMap::new();
        for message in ledgers.messages.iter().filter(|m| is_release(m)) {
            if let Some(order_id) = &message.order_id {
                releases.entry((&message.tenant_id, order_id)).or_default().push(message);
            }
        }
        let tenants = ledgers.orders.iter().map(|o| &o.tenant_id);
        let tenants = tenants.chain(ledgers.payments.iter().map(|p| &p.tenant_id));
        let tenants = tenants.chain(ledgers.inventory.iter().map(|h| &h.tenant_id));
        let tenants = tenants.chain(ledgers.messages.iter().map(|m| &m.tenant_id));
        let tenants = tenants.map(ToString::to_string).chain([DEFAULT_TENANT.to_owned()]).collect();
        let (subjects, by_name, joined) = (Vec::new(), HashMap::new(), BTreeMap::new());
        let mut business = Self { skew, tenants, subjects, by_name, joined };
        for (order, messages) in releases.into_iter().filter(|(_, messages)| messages.len() > 1) {
            business.add(double_release(order, &messages, holds.get(&order).map_or(&[], Vec::as_slice)));
        }
        for intent in intents.iter().filter(|intent| intent.evidence.len() > 1) {
            let holds: Vec<_> =
                intent.orders.iter().filter_map(|id| holds.get(&(&intent.tenant_id, id))).flatten().collect();
            business.add(several_orders(intent, &holds));
        }
        business
    }

    fn add(&mut self, mut subject: Subject) {
        subject.acts.sort();
        for name in subject.names.keys() {
            self.by_name.entry(name.clone()).or_default().push(self.subjects.len());
        }
        self.subjects.push(subject);
    }

    /// How many there are of a kind.
    pub fn count(&self, kind: DuplicateKind) -> usize {
        self.subjects.iter().filter(|s| s.kind == kind).count()
    }

    /// Those that came while two held their lock.
    pub fn joined(&self) -> impl Iterator<Item = &Duplicate> {
        self.joined.values()
    }

    /// Looks whether a subject that the key names was done by both of two holders, at least once while both held it.
    pub fn window(&mut self, found: &Found) {
        let Some(second) = found.second.as_ref().filter(|_| found.finding.is_window()) else { return };
        let times = Times::of(found, second, self.skew);
        let names = names_in(&found.key);
        let tenants: Vec<_> = names.iter().filter(|name| self.tenants.contains(**name)).collect();
        for name in &names {
            for index in self.by_name.get(*name).into_iter().flatten() {
                let subject = &self.subjects[*index];
                let is_known =
                    |d: &Duplicate| d.certainty == Certainty::Proven || d.certainty == found.certainty;
                let is_of_another =
                    !tenants.is_empty() && !tenants.iter().any(|name| **name == subject.tenant_id.as_str());
                if is_of_another || self.joined.get(index).is_some_and(is_known) {
                    continue;
                }
                let acts = subject
                    .acts
                    .iter()
                    .filter(|(at, _)| times.first_from <= *at && *at <= times.second_until);
                let acts = acts.map(|(at, id)| (*at, id, times.doer(*at)));
                let acts: Vec<_> = acts.map(|(at, id, by)| Act { id: id.clone(), at, by }).collect();
                if times.are_met(&acts) {
                    self.joined.insert(*index, duplicate(subject, name, found, acts));
                }
            }
        }
    }
}

/// When two holders of a key may have done something.
struct Times<'f> {
    first: &'f Holder,
    second: &'f Holder,
    /// From when until when the first one, both, and the second one held it, by clocks that may differ.
    first_from: Timestamp,
    both: (Timestamp, Timestamp),
    second_until: Timestamp,
    skew: Span,
}

impl<'f> Times<'f> {
    fn of(found: &'f Found, second: &'f Holder, skew: Span) -> Self {
        let last = match (second.acquired, second.last_sign, second.lease_end) {
            (Some(acquired), Some(sign), _) if sign > acquired => sign,
            (_, _, Some(lease_end)) => lease_end,
            _ => found.at,
        };
        let until = found.until.unwrap_or(found.at);
        Self {
            first: &found.first,
            second,
            first_from: found.first.acquired.unwrap_or(found.at).minus(skew),
            both: (found.at, until),
            second_until: last.max(until).plus(skew),
            skew,
        }
    }

    /// Whose an act is: whoever wrote then under the lock, else whoever held it then and has no writes in the history.
    fn doer(&self, at: Timestamp) -> Doer {
        let wrote = |h: &Holder| h.writes.iter().any(|w| w.minus(self.skew) <= at && at <= w.plus(self.skew));
        let (begin, end) = self.both;
        // One whose writes are known did nothing else, as long as they are all known.
        let may = |h: &Holder| h.writes.last().is_none_or(|last| h.writes.len() == WRITES && *last < at);
        let may_first = may(self.first) && self.first_from <= at && at <= end;
        let may_second = may(self.second) && begin <= at && at <= self.second_until;
        match (wrote(self.first), wrote(self.second)) {
            (true, true) => Doer::Either,
            (true, false) => Doer::First,
            (false, true) => Doer::Second,
            (false, false) => match (may_first, may_second) {
                (true, true) => Doer::Either,
                (true, false) => Doer::First,
                (false, true) => Doer::Second,
                (false, false) => Doer::Unknown,
            },
        }
    }

    /// Whether each of the two did it, once at the least while both held the lock.
    fn are_met(&self, acts: &[Act]) -> bool {
        let (begin, end) = (self.both.0.minus(self.skew), self.both.1.plus(self.skew));
        let n = |by: Doer| acts.iter().filter(|act| act.by == by).count();
        let (first, second, either) = (n(Doer::First), n(Doer::Second), n(Doer::Either));
        let is_by_both = usize::from(first == 0) + usize::from(second == 0) <= either;
        let is_within = |act: &Act| act.by != Doer::Unknown && begin <= act.at && act.at <= end;
        is_by_both && acts.iter().any(is_within)
    }
}

fn double_release(
    (tenant_id, order_id): (&TenantId, &OrderId),
    messages: &[&Message],
    holds: &[&Hold],
) -> Subject {
    let what = match holds {
        [hold] => format!("hold {}", hold.hold_id),
        _ => format!("the stock of order {order_id}"),
    };
    let mut names = BTreeMap::from([(order_id.to_string(), what.clone())]);
    names.extend(holds.iter().map(|h| (h.hold_id.to_string(), format!("hold {}", h.hold_id))));
    Subject {
        kind: DuplicateKind::Release,
        tenant_id: tenant_id.clone(),
        names,
        what,
        acts: messages.iter().map(|m| (m.created_at, m.message_id.to_string())).collect(),
    }
}

fn several_orders(intent: &PlannedIntent, holds: &[&&Hold]) -> Subject {
    let user = intent.user_id.as_ref().map(ToString::to_string);
    let show = intent.show_id.as_ref().map(ToString::to_string).unwrap_or_default();
    let what = format!("show {show}, for user {},", user.clone().unwrap_or_default());
    let ids = intent.orders.iter().map(ToString::to_string);
    let keys = intent.evidence.iter().filter_map(|o| o.idempotency_key.as_ref()).map(ToString::to_string);
    let holds = holds.iter().map(|h| h.hold_id.to_string());
    let session = intent.session_id.as_ref().map(ToString::to_string);
    let names = ids.chain(keys).chain(holds).chain(session).chain(user);
    Subject {
        kind: DuplicateKind::Orders,
        tenant_id: intent.tenant_id.clone(),
        names: names.map(|name| (name, what.clone())).collect(),
        what,
        acts: intent.evidence.iter().map(|o| (o.created_at, o.order_id.to_string())).collect(),
    }
}

fn duplicate(subject: &Subject, name: &str, found: &Found, acts: Vec<Act>) -> Duplicate {
    let last_of_first = acts.iter().filter(|act| act.by == Doer::First).map(|act| act.at).max();
    let ended = last_of_first.zip(found.first.lease_end).map(|(at, end)| at.since(end));
    Duplicate {
        kind: subject.kind,
        tenant_id: subject.tenant_id.clone(),
        what: subject.names.get(name).unwrap_or(&subject.what).clone(),
        key: found.key.clone(),
        finding: found.finding,
        certainty: found.certainty,
        from: found.at,
        until: found.until,
        acts,
        first: found.first.clone(),
        second: found.second.clone(),
        lease_had_ended: ended.filter(|span| span.micros() > 0),
    }
}

/// What a lock's key may name: the whole of it, each part between separators, and each rest after one.
fn names_in(key: &str) -> BTreeSet<&str> {
    const SEPARATORS: [char; 7] = [':', '/', '|', '#', '{', '}', '.'];
    let parts = key.split(SEPARATORS);
    let rests = key.match_indices(SEPARATORS).map(|(at, separator)| &key[at + separator.len()..]);
    std::iter::once(key).chain(parts).chain(rests).filter(|name| !name.is_empty()).collect()
}
