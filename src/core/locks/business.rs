//! What came of it: purchases with several orders and stock that was released twice, beside the times
//! in which two held the lock that names them.
//!
//! A key names a subject by a part of it, such as `H-88` of `hold:H-88`. Where a part names a tenant of the ledgers, it
//! names nothing of another; and where keys of its shape have a tenant of the ledgers at some place, what stands there is
//! a tenant's name in all of them. Of any other key it cannot be told whose it is, which is said where it is joined.
//!
//! A part is what the word before it says, such as `hold`, or where none stands before it the last one behind it: it
//! names nothing of another kind. Where no word says it and several have the name, that it is this one is only possible.

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
    /// Who it was, where it was none of the two.
    pub another: Option<String>,
}

/// Who did something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Doer {
    First,
    Second,
    /// One of the two: both held the lock then.
    Either,
    /// A third one, who wrote then.
    Another,
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
    /// The lock's key, and whether it names the tenant.
    pub key: String,
    pub key_names_tenant: bool,
    /// How it came that two held it.
    pub finding: LockFinding,
    pub certainty: Certainty,
    pub from: Timestamp,
    pub until: Option<Timestamp>,
    pub acts: Vec<Act>,
    pub first: Holder,
    pub second: Option<Holder>,
    /// Whether others have the name, too, and nothing in the key says which one it means.
    pub is_name_shared: bool,
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
                (Doer::Another, _) => {
                    format!("{} by {}", act.at, act.another.as_deref().unwrap_or_default())
                }
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
        if self.is_name_shared {
            text +=
                &format!("; whether {} means this one it does not say: others have that name, too", self.key);
        }
        if !self.key_names_tenant && self.tenant_id.as_str() != DEFAULT_TENANT {
            text += &format!("; that {} is a key of tenant {} it does not say", self.key, self.tenant_id);
        }
        text
    }
}

/// What a name is the id of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum IdOf {
    Hold,
    Order,
    User,
    Session,
    /// An idempotency key.
    Request,
}

/// What a word of a key says of the name beside it: what it may be the id of; `None` for a word that says nothing of it.
fn said_by(word: &str) -> Option<&'static [IdOf]> {
    match word.to_ascii_lowercase().as_str() {
        "hold" | "holds" | "reservation" | "reservations" => Some(&[IdOf::Hold]),
        "order" | "orders" | "payment" | "payments" => Some(&[IdOf::Order, IdOf::Request]),
        "user" | "users" | "customer" | "customers" | "buyer" | "buyers" => Some(&[IdOf::User]),
        "session" | "sessions" => Some(&[IdOf::Session]),
        "stock" | "stocks" | "inventory" | "seat" | "seats" => {
            Some(&[IdOf::Hold, IdOf::Order, IdOf::Session])
        }
        "show" | "shows" | "message" | "messages" => Some(&[]),
        _ => None,
    }
}

/// What stands for something that there is twice.
#[derive(Debug)]
struct Name {
    ids_of: BTreeSet<IdOf>,
    /// What it stands for, for people.
    what: String,
}

type Names = BTreeMap<String, Name>;

fn add_name(names: &mut Names, name: String, id_of: IdOf, what: &str) {
    let named = names.entry(name);
    named.or_insert_with(|| Name { ids_of: BTreeSet::new(), what: what.to_owned() }).ids_of.insert(id_of);
}

/// A purchase or an order that there is more of than there should be.
#[derive(Debug)]
struct Subject {
    kind: DuplicateKind,
    tenant_id: TenantId,
    /// What a lock that guards it may bear.
    names: Names,
    what: String,
    /// By time.
    acts: Vec<(Timestamp, String)>,
}

/// How many times of two holders are kept of a subject.
const WINDOWS: usize = 32;

/// A time in which two held the key, and the name by which that means the subject.
#[derive(Debug)]
struct Window {
    found: Found,
    name: String,
    /// Whether a word of the key says what the name is the id of.
    is_said: bool,
}

/// What the ledgers have twice.
#[derive(Debug)]
pub struct Business {
    skew: Span,
    /// What a key may name as its tenant.
    tenants: BTreeSet<String>,
    /// Where keys name a tenant: of how many parts, the how-manieth.
    tenant_places: BTreeSet<(usize, usize)>,
    subjects: Vec<Subject>,
    by_name: HashMap<String, Vec<usize>>,
    /// What the names of subjects are the ids of, anywhere in the ledgers.
    ids_of: HashMap<String, BTreeSet<IdOf>>,
    /// By subject, the proven ones first.
    windows: BTreeMap<usize, Vec<Window>>,
    /// By subject and act, who wrote then under a lock that names it.
    writers: BTreeMap<(usize, usize), BTreeSet<String>>,
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
        let mut business = Self {
            skew,
            tenants,
            tenant_places: BTreeSet::new(),
            subjects: Vec::new(),
            by_name: HashMap::new(),
            ids_of: HashMap::new(),
            windows: BTreeMap::new(),
            writers: BTreeMap::new(),
        };
        for (order, messages) in releases.into_iter().filter(|(_, messages)| messages.len() > 1) {
            business.add(double_release(order, &messages, holds.get(&order).map_or(&[], Vec::as_slice)));
        }
        for intent in intents.iter().filter(|intent| intent.evidence.len() > 1) {
            let holds: Vec<_> =
                intent.orders.iter().filter_map(|id| holds.get(&(&intent.tenant_id, id))).flatten().collect();
            business.add(several_orders(intent, &holds));
        }
        for hold in &ledgers.inventory {
            business.is_id(hold.hold_id.as_str(), IdOf::Hold);
            business.is_id(hold.user_id.as_str(), IdOf::User);
            hold.session_id.iter().for_each(|id| business.is_id(id.as_str(), IdOf::Session));
        }
        for order in &ledgers.orders {
            business.is_id(order.order_id.as_str(), IdOf::Order);
            business.is_id(order.user_id.as_str(), IdOf::User);
            order.session_id.iter().for_each(|id| business.is_id(id.as_str(), IdOf::Session));
            order.idempotency_key.iter().for_each(|key| business.is_id(key.as_str(), IdOf::Request));
        }
        business
    }

    /// Learns what a name is the id of, if it is one of a subject.
    fn is_id(&mut self, name: &str, id_of: IdOf) {
        if self.by_name.contains_key(name) {
            self.ids_of.entry(name.to_owned()).or_default().insert(id_of);
        }
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

    /// Those that came while two held their lock, once the whole history was seen: of several times the first that is
    /// proven.
    pub fn joined(&self) -> impl Iterator<Item = Duplicate> {
        self.windows.iter().filter_map(|(index, windows)| {
            let mut all = windows.iter().filter_map(|window| self.duplicate(*index, window));
            let first = all.next()?;
            let is_proven = |duplicate: &Duplicate| duplicate.certainty == Certainty::Proven;
            let proven = if is_proven(&first) { None } else { all.find(is_proven) };
            Some(proven.unwrap_or(first))
        })
    }

    /// Learns from a key of the history where tenants stand in it.
    pub fn key(&mut self, key: &str) {
        let parts = parts(key);
        for (place, _) in parts.iter().enumerate().filter(|(_, part)| self.tenants.contains(**part)) {
            self.tenant_places.insert((parts.len(), place));
        }
    }

    /// Takes what may say who did something, or when two held a key.
    pub fn found(&mut self, found: &Found) {
        let is_window = found.second.is_some() && found.finding.is_window();
        for (name, said) in names_in(&found.key) {
            for index in self.by_name.get(name).into_iter().flatten() {
                let subject = &self.subjects[*index];
                let may_be = |ids: &[IdOf]| subject.names[name].ids_of.iter().any(|id| ids.contains(id));
                if !said.is_none_or(may_be) {
                    continue;
                }
                for (act, (at, _)) in subject.acts.iter().enumerate() {
                    let is_then = |w: &Timestamp| w.minus(self.skew) <= *at && *at <= w.plus(self.skew);
                    let wrote = |h: &&Holder| {
                        let is_foreign = found.finding == LockFinding::ForeignWrite && **h == found.first;
                        h.writes.iter().any(is_then) || (is_foreign && is_then(&found.at))
                    };
                    for holder in
                        [Some(&found.first), found.second.as_ref()].into_iter().flatten().filter(wrote)
                    {
                        self.writers.entry((*index, act)).or_default().insert(holder.owner.clone());
                    }
                }
                if is_window {
                    let windows = self.windows.entry(*index).or_default();
                    let is_proven = |window: &Window| window.found.certainty == Certainty::Proven;
                    let place = match found.certainty {
                        Certainty::Proven => windows.partition_point(is_proven),
                        Certainty::Possible => windows.len(),
                    };
                    let (found, name) = (found.clone(), name.to_owned());
                    windows.insert(place, Window { found, name, is_said: said.is_some() });
                    windows.truncate(WINDOWS);
                }
            }
        }
    }

    /// Whether a key is of this tenant: that it names it, that it names another, or `None` where it cannot be told.
    fn is_of(&self, key: &str, tenant: &TenantId) -> Option<bool> {
        let parts = parts(key);
        let known: Vec<_> = parts.iter().filter(|part| self.tenants.contains(**part)).collect();
        if !known.is_empty() {
            return Some(known.iter().any(|name| **name == tenant.as_str()));
        }
        let has_place = (0..parts.len()).any(|place| self.tenant_places.contains(&(parts.len(), place)));
        has_place.then_some(false)
    }

    /// Whether another than this subject may be meant by a name in a key that does not say what it is the id of.
    fn is_shared(&self, name: &str, index: usize, key: &str) -> bool {
        let kind = self.subjects[index].kind;
        let is_other = |other: &usize| {
            let subject = &self.subjects[*other];
            *other != index && subject.kind == kind && self.is_of(key, &subject.tenant_id) != Some(false)
        };
        self.ids_of.get(name).is_some_and(|ids| ids.len() > 1)
            || self.by_name.get(name).into_iter().flatten().any(is_other)
    }

    /// What is twice, if each of the two holders did it, at least once while both held the lock.
    fn duplicate(&self, index: usize, window: &Window) -> Option<Duplicate> {
        let Window { found, name, is_said } = window;
        let subject = &self.subjects[index];
        let is_of = self.is_of(&found.key, &subject.tenant_id);
        let times = Times::of(found, found.second.as_ref()?, self.skew);
        let act = |(act, (at, id)): (usize, &(Timestamp, String))| {
            let writers = self.writers.get(&(index, act));
            let others = writers.into_iter().flatten().filter(|owner| !times.is_one(owner));
            let is_own = writers.is_some_and(|all| all.iter().any(|owner| times.is_one(owner)));
            let another = others.map(String::as_str).collect::<Vec<_>>().join(" or ");
            match is_own || another.is_empty() {
                true => Act { id: id.clone(), at: *at, by: times.doer(*at), another: None },
                false => Act { id: id.clone(), at: *at, by: Doer::Another, another: Some(another) },
            }
        };
        let within = |(_, (at, _)): &(usize, &(Timestamp, String))| {
            times.first_from <= *at && *at <= times.second_until
        };
        let acts: Vec<_> = subject.acts.iter().enumerate().filter(within).map(act).collect();
        let is_met = is_of != Some(false) && times.are_met(&acts);
        is_met.then(|| {
            let is_shared = !is_said && self.is_shared(name, index, &found.key);
            duplicate(subject, (name, is_shared), found, acts, is_of.is_some())
        })
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

    fn is_one(&self, owner: &str) -> bool {
        [self.first, self.second].iter().any(|holder| holder.owner == owner)
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
        let is_theirs = |act: &Act| matches!(act.by, Doer::First | Doer::Second | Doer::Either);
        let is_within = |act: &Act| is_theirs(act) && begin <= act.at && act.at <= end;
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
    let mut names = Names::new();
    add_name(&mut names, order_id.to_string(), IdOf::Order, &what);
    for hold in holds {
        add_name(&mut names, hold.hold_id.to_string(), IdOf::Hold, &format!("hold {}", hold.hold_id));
    }
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
    let orders = intent.orders.iter().map(|id| (id.to_string(), IdOf::Order));
    let keys = intent.evidence.iter().filter_map(|o| o.idempotency_key.as_ref());
    let keys = keys.map(|key| (key.to_string(), IdOf::Request));
    let holds = holds.iter().map(|h| (h.hold_id.to_string(), IdOf::Hold));
    let session = intent.session_id.as_ref().map(|id| (id.to_string(), IdOf::Session));
    let user = user.map(|id| (id, IdOf::User));
    let mut names = Names::new();
    for (name, id_of) in orders.chain(keys).chain(holds).chain(session).chain(user) {
        add_name(&mut names, name, id_of, &what);
    }
    Subject {
        kind: DuplicateKind::Orders,
        tenant_id: intent.tenant_id.clone(),
        names,
        what,
        acts: intent.evidence.iter().map(|o| (o.created_at, o.order_id.to_string())).collect(),
    }
}

fn duplicate(
    subject: &Subject,
    (name, is_name_shared): (&str, bool),
    found: &Found,
    acts: Vec<Act>,
    key_names_tenant: bool,
) -> Duplicate {
    let last_of_first = acts.iter().filter(|act| act.by == Doer::First).map(|act| act.at).max();
    let ended = last_of_first.zip(found.first.lease_end).map(|(at, end)| at.since(end));
    Duplicate {
        kind: subject.kind,
        tenant_id: subject.tenant_id.clone(),
        what: subject.names.get(name).map_or(&subject.what, |name| &name.what).clone(),
        key: found.key.clone(),
        key_names_tenant,
        finding: found.finding,
        certainty: if is_name_shared { Certainty::Possible } else { found.certainty },
        is_name_shared,
        from: found.at,
        until: found.until,
        acts,
        first: found.first.clone(),
        second: found.second.clone(),
        lease_had_ended: ended.filter(|span| span.micros() > 0),
    }
}

const SEPARATORS: [char; 7] = [':', '/', '|', '#', '{', '}', '.'];

/// What stands between the separators of a key.
fn parts(key: &str) -> Vec<&str> {
    key.split(SEPARATORS).filter(|part| !part.is_empty()).collect()
}

/// What a lock's key may name, the whole of it, each part between separators, and each rest after one, and what the key
/// says that it is the id of.
fn names_in(key: &str) -> BTreeSet<(&str, Option<&'static [IdOf]>)> {
    // `hold-lock` is a word of holds; of several words of a part the last one is what it is about.
    let said_in = |part: &str| part.split(['-', '_', ' ']).rev().find_map(said_by);
    let before = |at: usize| parts(&key[..at]).into_iter().rev().find_map(said_in);
    let begins = key.match_indices(SEPARATORS).map(|(at, separator)| at + separator.len());
    let mut names = BTreeSet::from([(key, None)]);
    for begin in std::iter::once(0).chain(begins) {
        let rest = &key[begin..];
        let end = rest.find(SEPARATORS).unwrap_or(rest.len());
        let said = before(begin);
        // A word with something behind it says what that is.
        let behind = || match parts(&rest[end..])[..] {
            [word] => said_in(word),
            _ => None,
        };
        names.insert((&rest[..end], said.or_else(behind)));
        if begin > 0 {
            names.insert((rest, said));
        }
    }
    names.retain(|(name, _)| !name.is_empty());
    names
}
