//! Which of the events of one instant came first. A clock's tick is longer than it takes to hand a lock over, a table has
//! no order, and lines of several nodes are mixed by chance. So the order that is taken is always the one in which the
//! lock did what it is for: whoever holds the key ends its work before the next one gets it.

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap};

use super::event::{Event, EventKind};
use super::key::{Around, KeyState};

/// Gives the events of one key and one instant to its state, the first first. Of n events this takes n log n steps.
pub(super) fn take(state: &mut KeyState, events: &[Event], around: &mut Around<'_>) {
    if let [event] = events {
        return state.take(event, around);
    }
    let mut left = Left::new(events);
    while let Some(event) = left.next(state) {
        state.take(event, around);
    }
}

/// By what is written in them, whatever their place in the file.
fn by_content(a: &Event, b: &Event) -> Ordering {
    let what = |e: &Event| (!e.done, e.lease, e.is_forever);
    (a.kind, &a.owner, what(a), &a.node, a.line).cmp(&(b.kind, &b.owner, what(b), &b.node, b.line))
}

type Owner<'e> = Option<&'e str>;

/// What is left of an instant: events by their place in the order of their contents, each with what ranks it before that.
struct Left<'e> {
    events: Vec<&'e Event>,
    failovers: BTreeSet<usize>,
    /// Whoever gets the key: by token, and of those without one whoever lets go within the instant.
    grants: BTreeSet<(i64, bool, usize)>,
    /// What a holder does, by turn and token.
    of_owner: BTreeSet<(Owner<'e>, Turn, i64, usize)>,
    /// The same, and what is refused, by token.
    others: BTreeSet<(i64, usize)>,
    yet: HashMap<Owner<'e>, Yet>,
}

/// What a holder does before the next one gets the key, its end last.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Turn {
    Write,
    Renew,
    Release,
    Expire,
}

impl Turn {
    const ALL: [Self; 4] = [Self::Write, Self::Renew, Self::Release, Self::Expire];

    const fn of(kind: EventKind) -> Option<Self> {
        match kind {
            EventKind::Write => Some(Self::Write),
            EventKind::Renew => Some(Self::Renew),
            EventKind::Release => Some(Self::Release),
            EventKind::Expire => Some(Self::Expire),
            _ => None,
        }
    }
}

/// How often an owner gets the key and lets it go within what is left of the instant.
#[derive(Clone, Copy, Default)]
struct Yet {
    gets: usize,
    ends: usize,
}

fn is_grant(event: &Event) -> bool {
    matches!(event.kind, EventKind::Acquire | EventKind::Steal) && event.done
}

/// One without a token comes behind those with one.
fn token(event: &Event) -> i64 {
    event.token.unwrap_or(i64::MAX)
}

impl<'e> Left<'e> {
    fn new(events: &'e [Event]) -> Self {
        let mut events: Vec<_> = events.iter().collect();
        events.sort_by(|a, b| by_content(a, b));
        let mut yet: HashMap<Owner<'e>, Yet> = HashMap::new();
        for event in &events {
            let yet = yet.entry(event.owner.as_deref()).or_default();
            yet.gets += usize::from(is_grant(event));
            yet.ends += usize::from(event.kind == EventKind::Release);
        }
        let mut left = Self {
            failovers: BTreeSet::new(),
            grants: BTreeSet::new(),
            of_owner: BTreeSet::new(),
            others: BTreeSet::new(),
            events,
            yet,
        };
        for at in 0..left.events.len() {
            let event = left.events[at];
            let owner = event.owner.as_deref();
            if event.kind == EventKind::Failover {
                left.failovers.insert(at);
            } else if is_grant(event) {
                left.grants.insert((token(event), left.of(owner).ends == 0, at));
            } else {
                left.others.insert((token(event), at));
                if let Some(turn) = Turn::of(event.kind) {
                    left.of_owner.insert((owner, turn, token(event), at));
                }
            }
        }
        left
    }

    fn of(&self, owner: Owner<'e>) -> Yet {
        self.yet.get(&owner).copied().unwrap_or_default()
    }

    /// A failover; then what the holder does; then who gets the key; then what is done by those who do not hold it, and
    /// by those who let go what they get within the instant, where the lease that they had is over.
    fn next(&mut self, state: &KeyState) -> Option<&'e Event> {
        let first = self.failovers.pop_first();
        let at = first
            .or_else(|| self.of_holder(state))
            .or_else(|| self.grant())
            .or_else(|| self.others.first().map(|(_, at)| *at))?;
        let event = self.events[at];
        let owner = event.owner.as_deref();
        if let Some(turn) = Turn::of(event.kind) {
            self.of_owner.remove(&(owner, turn, token(event), at));
        }
        self.others.remove(&(token(event), at));
        let yet = self.yet.entry(owner).or_default();
        yet.gets -= usize::from(is_grant(event));
        yet.ends -= usize::from(event.kind == EventKind::Release);
        Some(event)
    }

    fn of_holder(&self, state: &KeyState) -> Option<usize> {
        let first = self.events.first()?;
        let (owner, held) = state.holder()?;
        let is_anew = self.of(Some(owner)).gets > 0 && state.has_lapsed(first.at);
        Turn::ALL.into_iter().filter(|turn| *turn != Turn::Release || !is_anew).find_map(|turn| {
            let from = |owner, token: i64| {
                let range = (owner, turn, token, 0)..=(owner, turn, i64::MAX, usize::MAX);
                self.of_owner.range(range).next().copied()
            };
            // The holder's own: of its token, or without one; of a holder without a token any.
            let own = match held {
                None => from(Some(owner), i64::MIN),
                Some(held) => from(Some(owner), held)
                    .filter(|(_, _, token, _)| *token == held)
                    .or_else(|| from(Some(owner), i64::MAX)),
            };
            // An end that names nobody is that of whoever holds the key.
            let of_nobody = from(None, i64::MIN).filter(|_| turn == Turn::Expire);
            own.or(of_nobody).map(|(_, _, _, at)| at)
        })
    }

    fn grant(&mut self) -> Option<usize> {
        loop {
            let (token, stays, at) = self.grants.pop_first()?;
            // Its owner's releases may be over by now.
            if stays || self.of(self.events[at].owner.as_deref()).ends > 0 {
                return Some(at);
            }
            self.grants.insert((token, true, at));
        }
    }
}
