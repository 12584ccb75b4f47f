//! Orders become intents: one intent is one purchase that the user meant (contract, section 2).
//!
//! Only orders take part in the grouping; what attaches to them comes later, in [`super::join`].

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::ids::*;
use super::ledger::Order;
use super::money::Currency;
use super::plan::Finding;
use super::policy::{DifferentRequest, DistinctKeys, Policy, WithoutSession};

/// An order's session after the fill (rule 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Session<'a> {
    /// Neither the order nor its neighbours name one; a session value of its own.
    None,
    /// The neighbours name several, so nothing is filled.
    Several,
    Is(&'a SessionId),
}

impl<'a> Session<'a> {
    pub fn id(self) -> Option<&'a SessionId> {
        match self {
            Self::Is(id) => Some(id),
            Self::None | Self::Several => None,
        }
    }
}

/// What an order asks for; two of one purchase ask for the same (rule 5).
pub type Request<'a> = (&'a ShowId, Option<&'a Item>, i64, i64, Currency);

pub fn request(order: &Order) -> Request<'_> {
    (&order.show_id, order.item.as_ref(), order.quantity, order.amount_minor, order.currency)
}

/// Doubt about whether the orders of an intent are one purchase.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IdentityDoubt {
    pub findings: BTreeSet<Finding>,
    /// Those of `findings` that no policy settles: a person must look.
    pub unsettled: BTreeSet<Finding>,
}

/// The orders of one intent, as indices into the orders they were made from.
#[derive(Clone, Debug)]
pub struct Group {
    /// By (created_at, order_id); never empty.
    pub orders: Vec<usize>,
    pub doubt: IdentityDoubt,
}

/// Every order in exactly one group.
#[derive(Debug)]
pub struct Grouping<'a> {
    /// By the index of the order.
    pub sessions: Vec<Session<'a>>,
    pub groups: Vec<Group>,
}

/// Groups orders into intents. All orders of each (tenant, user, show) must be given, and all
/// that share a key with one of these, or the grouping is of another ledger.
pub fn group<'a>(orders: &'a [Order], policy: &Policy) -> Grouping<'a> {
    let mut by_place: Vec<usize> = (0..orders.len()).collect();
    by_place.sort_unstable_by_key(|&i| {
        let o = &orders[i];
        (&o.tenant_id, &o.user_id, &o.show_id, o.created_at, &o.order_id)
    });
    let places = || {
        by_place.chunk_by(|&a, &b| {
            let (a, b) = (&orders[a], &orders[b]);
            (&a.tenant_id, &a.user_id, &a.show_id) == (&b.tenant_id, &b.user_id, &b.show_id)
        })
    };

    let mut sessions = vec![Session::None; orders.len()];
    for place in places() {
        fill_sessions(orders, place, policy, &mut sessions);
    }

    // A window is named by its first order until keys join some of them.
    let mut joined = Sets { parent: (0..orders.len()).collect() };
    for place in places() {
        join_windows(orders, place, policy, &sessions, &mut joined);
    }
    join_keys(orders, &mut joined);

    let mut by_group: Vec<(usize, usize)> = (0..orders.len()).map(|i| (joined.root(i), i)).collect();
    by_group.sort_unstable_by_key(|&(root, i)| (root, orders[i].created_at, &orders[i].order_id));
    let groups = by_group
        .chunk_by(|a, b| a.0 == b.0)
        .flat_map(|group| {
            let members = group.iter().map(|&(_, i)| i).collect();
            split(orders, members, policy)
        })
        .map(|mut group| {
            doubt_sessions(orders, &sessions, policy, &mut group);
            group
        })
        .collect();
    Grouping { sessions, groups }
}

/// Rule 2: an order without session takes the one session that orders within `gap` of it name.
/// `place` holds the orders of one (tenant, user, show) by time.
fn fill_sessions<'a>(orders: &'a [Order], place: &[usize], policy: &Policy, sessions: &mut [Session<'a>]) {
    let guest = policy.guests.contains(&orders[place[0]].user_id);
    // The sessions named in the rows from `first` to before `end`, and how many rows name each.
    let mut near: BTreeMap<&SessionId, usize> = BTreeMap::new();
    let (mut first, mut end) = (0, 0);
    for &i in place {
        let order = &orders[i];
        if let Some(session) = &order.session_id {
            sessions[i] = Session::Is(session);
            continue;
        }
        if guest {
            continue;
        }
        while end < place.len() && orders[place[end]].created_at.since(order.created_at) <= policy.gap {
            if let Some(session) = &orders[place[end]].session_id {
                *near.entry(session).or_default() += 1;
            }
            end += 1;
        }
        while order.created_at.since(orders[place[first]].created_at) > policy.gap {
            if let Some(session) = &orders[place[first]].session_id
                && let Some(rows) = near.get_mut(session)
            {
                *rows -= 1;
                if *rows == 0 {
                    near.remove(session);
                }
            }
            first += 1;
        }
        let mut named = near.keys();
        sessions[i] = match (named.next(), named.next()) {
            (None, _) => Session::None,
            (Some(&session), None) => Session::Is(session),
            (Some(_), Some(_)) => Session::Several,
        };
    }
}

/// Rules 3 and 7: orders of one session follow each other within `gap`; a guest's order without
/// session follows nobody.
fn join_windows<'a>(
    orders: &'a [Order],
    place: &[usize],
    policy: &Policy,
    sessions: &[Session<'a>],
    joined: &mut Sets,
) {
    let guest = policy.guests.contains(&orders[place[0]].user_id);
    let mut last_of: HashMap<Option<&SessionId>, usize> = HashMap::new();
    for &i in place {
        let session = sessions[i].id();
        if guest && session.is_none() {
            continue;
        }
        if let Some(before) = last_of.insert(session, i)
            && orders[i].created_at.since(orders[before].created_at) <= policy.gap
        {
            joined.union(before, i);
        }
    }
}

/// Rule 4: one key of one user is one intent.
fn join_keys(orders: &[Order], joined: &mut Sets) {
    let mut first_of = HashMap::new();
    for (i, order) in orders.iter().enumerate() {
        if let Some(key) = &order.idempotency_key {
            let first = *first_of.entry((&order.tenant_id, &order.user_id, key)).or_insert(i);
            joined.union(first, i);
        }
    }
}

/// Sets of orders that only ever grow together (union-find).
struct Sets {
    parent: Vec<usize>,
}

impl Sets {
    fn root(&mut self, mut i: usize) -> usize {
        while self.parent[i] != i {
            self.parent[i] = self.parent[self.parent[i]];
            i = self.parent[i];
        }
        i
    }

    fn union(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        let (low, high) = (a.min(b), a.max(b));
        self.parent[high] = low;
    }
}

/// Rule 5: tests whether `members` are one purchase, and splits them where a policy says so.
///
/// Terminal orders raise no doubt, but a purchase that is split falls apart with all its orders.
fn split(orders: &[Order], members: Vec<usize>, policy: &Policy) -> Vec<Group> {
    let findings = identity_findings(orders, &members, policy);
    let ends_in_review = |finding: &Finding| match finding {
        Finding::DistinctKeys => policy.distinct_keys == DistinctKeys::Review,
        Finding::DifferentRequest => policy.different_request == DifferentRequest::Review,
        _ => true,
    };
    let unsettled: BTreeSet<Finding> = findings.iter().copied().filter(ends_in_review).collect();
    let may_split = unsettled.is_empty();
    let whole = Purchase::of(members.iter().map(|&i| &orders[i]));

    if may_split && policy.distinct_keys == DistinctKeys::Split && whole.has_distinct_keys() {
        let pieces = pieces_by(&members, |i| orders[i].idempotency_key.as_ref());
        let pieces = pieces.map(|(key, piece)| {
            let mut group = piece_of(orders, piece, Finding::DistinctKeys, policy);
            if key.is_none() {
                group.doubt.unsettled.insert(Finding::DistinctKeys);
            }
            group
        });
        pieces.collect()
    } else if may_split
        && policy.different_request == DifferentRequest::Split
        && whole.has_different_requests()
    {
        let pieces = pieces_by(&members, |i| request(&orders[i]));
        pieces.map(|(_, piece)| piece_of(orders, piece, Finding::DifferentRequest, policy)).collect()
    } else {
        vec![Group { orders: members, doubt: IdentityDoubt { findings, unsettled } }]
    }
}

fn pieces_by<K: Ord>(members: &[usize], key: impl Fn(usize) -> K) -> impl Iterator<Item = (K, Vec<usize>)> {
    let mut pieces: BTreeMap<K, Vec<usize>> = BTreeMap::new();
    for &i in members {
        pieces.entry(key(i)).or_default().push(i);
    }
    pieces.into_iter()
}

/// A piece keeps the finding that made it one, and what is doubtful among its own orders.
fn piece_of(orders: &[Order], piece: Vec<usize>, because: Finding, policy: &Policy) -> Group {
    let mut findings = identity_findings(orders, &piece, policy);
    findings.insert(because);
    Group { orders: piece, doubt: IdentityDoubt { findings, unsettled: BTreeSet::new() } }
}

/// The four doubts between those of `members` that are not terminal.
fn identity_findings(orders: &[Order], members: &[usize], policy: &Policy) -> BTreeSet<Finding> {
    let open = || members.iter().map(|&i| &orders[i]).filter(|o| !o.status.is_terminal());
    let purchase = Purchase::of(open());
    let times = || open().map(|o| o.created_at);
    let span = times().max().zip(times().min()).map(|(last, first)| last.since(first));
    let tests = [
        (Finding::KeyReused, purchase.has_reused_key()),
        (Finding::DistinctKeys, purchase.has_distinct_keys()),
        (Finding::DifferentRequest, purchase.has_different_requests()),
        (Finding::SpanExceeded, span.is_some_and(|span| span > policy.max_span)),
    ];
    tests.into_iter().filter(|(_, holds)| *holds).map(|(finding, _)| finding).collect()
}

/// Which requests some orders make under which keys.
struct Purchase<'a> {
    requests_by_key: BTreeMap<Option<&'a IdempotencyKey>, BTreeSet<Request<'a>>>,
}

impl<'a> Purchase<'a> {
    fn of(orders: impl Iterator<Item = &'a Order>) -> Self {
        let mut requests_by_key: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        for order in orders {
            requests_by_key.entry(order.idempotency_key.as_ref()).or_default().insert(request(order));
        }
        Self { requests_by_key }
    }

    fn has_reused_key(&self) -> bool {
        self.requests_by_key.iter().any(|(key, requests)| key.is_some() && requests.len() > 1)
    }

    fn has_distinct_keys(&self) -> bool {
        self.requests_by_key.keys().flatten().count() > 1
    }

    /// Whether some two orders that share no key make different requests. Where requests differ,
    /// there are two such orders unless all share one key.
    fn has_different_requests(&self) -> bool {
        let mut requests = self.requests_by_key.values().flatten();
        let first = requests.next();
        let one_key = self.requests_by_key.len() == 1 && !self.requests_by_key.contains_key(&None);
        !one_key && requests.any(|request| Some(request) != first)
    }
}

/// Rule 6, and the part of rule 2 that finds several sessions.
fn doubt_sessions(orders: &[Order], sessions: &[Session<'_>], policy: &Policy, group: &mut Group) {
    let live = || group.orders.iter().copied().filter(|&i| orders[i].status.is_live());
    let several = group.orders.iter().any(|&i| sessions[i] == Session::Several);
    let strangers = || {
        let mut keys = live().filter(|&i| sessions[i].id().is_none()).map(|i| &orders[i].idempotency_key);
        keys.next().is_some_and(|first| keys.any(|key| key.is_none() || key != first))
    };
    if several || (policy.without_session == WithoutSession::Review && strangers()) {
        let any_live = live().next().is_some();
        group.doubt.findings.insert(Finding::SessionUnknown);
        if any_live {
            group.doubt.unsettled.insert(Finding::SessionUnknown);
        }
    }
}
