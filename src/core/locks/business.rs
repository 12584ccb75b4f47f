//! What came of it: purchases with several orders and stock that was released twice, beside the times
//! in which two held the lock that names them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Serialize;

use super::found::{Certainty, Found, Holder, LockFinding, in_words};
use crate::core::findings::is_release;
use crate::core::ids::{OrderId, TenantId};
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
    /// Who held the lock then; `None` where either may have done it.
    pub by: Option<String>,
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
            .map(|act| match &act.by {
                Some(by) => format!("{} by {by}", act.at),
                None => format!("{} by one of the two", act.at),
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
        let mut business =
            Self { skew, subjects: Vec::new(), by_name: HashMap::new(), joined: BTreeMap::new() };
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

    /// Looks whether two acts of a subject that the key names fall into the time of two holders.
    pub fn window(&mut self, found: &Found) {
        let Some(second) = found.second.as_ref().filter(|_| found.finding.is_window()) else { return };
        let begin = found.first.acquired.unwrap_or(found.at);
        let last = match (second.acquired, second.last_sign, second.lease_end) {
            (Some(acquired), Some(sign), _) if sign > acquired => sign,
            (_, _, Some(lease_end)) => lease_end,
            _ => found.at,
        };
        let end = last.max(found.until.unwrap_or(last));
        let (begin, end) = (begin.minus(self.skew), end.plus(self.skew));
        for name in names_in(&found.key) {
            for index in self.by_name.get(name).into_iter().flatten() {
                let subject = &self.subjects[*index];
                let acts: Vec<_> = subject.acts.iter().filter(|(at, _)| begin <= *at && *at <= end).collect();
                let is_known =
                    |d: &Duplicate| d.certainty == Certainty::Proven || d.certainty == found.certainty;
                if acts.len() < 2 || self.joined.get(index).is_some_and(is_known) {
                    continue;
                }
                let acts = acts.into_iter().map(|(at, id)| act(*at, id, found, second, self.skew)).collect();
                self.joined.insert(*index, duplicate(subject, name, found, acts));
            }
        }
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
    let of_first = in_words(&found.first);
    let last_of_first = acts.iter().filter(|act| act.by.as_ref() == Some(&of_first)).map(|act| act.at).max();
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

/// Whose an act is: whoever wrote then under the lock, else whoever alone held it.
fn act(at: Timestamp, id: &str, found: &Found, second: &Holder, skew: Span) -> Act {
    let wrote = |holder: &Holder| holder.writes.iter().any(|w| w.minus(skew) <= at && at <= w.plus(skew));
    let by = match (wrote(&found.first), wrote(second)) {
        (true, false) => Some(&found.first),
        (false, true) => Some(second),
        _ if at < found.at => Some(&found.first),
        _ if found.until.is_some_and(|until| at > until) => Some(second),
        _ => None,
    };
    Act { id: id.to_owned(), at, by: by.map(in_words) }
}

/// What a lock's key may name: the whole of it, each part between separators, and each rest after one.
fn names_in(key: &str) -> BTreeSet<&str> {
    const SEPARATORS: [char; 7] = [':', '/', '|', '#', '{', '}', '.'];
    let parts = key.split(SEPARATORS);
    let rests = key.match_indices(SEPARATORS).map(|(at, separator)| &key[at + separator.len()..]);
    std::iter::once(key).chain(parts).chain(rests).filter(|name| !name.is_empty()).collect()
}
