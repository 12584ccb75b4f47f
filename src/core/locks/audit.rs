//! A whole history, event by event.

use std::collections::{HashMap, VecDeque};

use serde::Serialize;

use super::Rules;
use super::event::{Event, EventKind};
use super::found::Found;
use super::instant;
use super::key::{Around, KeyState};
use super::pauses::{Pause, Pauses};
use super::ratios::Ratios;
use crate::core::time::{Span, Timestamp};

/// With so many keys they are looked through for what may be forgotten, and again whenever they are twice as many as
/// were left.
const SWEPT_FROM: usize = 1 << 16;
/// How many events of one instant, of all keys, are put in order together: what bounds memory where the history's clock
/// stands still. Of keys that have events on both sides of such a cut the order is not known.
pub const AT_ONCE: usize = 1 << 18;
/// How many failovers are remembered.
const FAILOVERS: usize = 1024;
/// How many keys are named with what their holds took of their leases.
const NAMED: usize = 20;

/// How much of its leases the holders of a key used, in percent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KeyHolds {
    pub key: String,
    pub holds: u64,
    pub p50: u32,
    pub p95: u32,
    pub max: u32,
}

/// What a history was, beside its findings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Audited {
    pub events: u64,
    /// Keys; one that was forgotten and came again counts again.
    pub keys: u64,
    pub first: Option<Timestamp>,
    pub last: Option<Timestamp>,
    /// Of all keys together.
    pub holds: Ratios,
    /// The keys whose holds took most of their leases, by p95.
    pub longest: Vec<KeyHolds>,
    /// How often a key was got.
    pub grants: u64,
    /// Releases, renewals and writes by owners that held no lock then, as far as the history shows: what they mean
    /// cannot be told.
    pub unknown: u64,
    /// Keys of which nothing is proven, since more than [`AT_ONCE`] events were of one instant of theirs.
    pub blurred: u64,
}

/// What is known beside the keys, and counted over all of them.
#[derive(Debug)]
struct Beside {
    rules: Rules,
    pauses: Pauses,
    failovers: VecDeque<Timestamp>,
    /// What the history's clock ticks in, as far as it is known.
    tick: Span,
    holds: Ratios,
    grants: u64,
    unknown: u64,
}

impl Beside {
    /// A clock that has shown nothing finer ticks in whole seconds, or in whole milliseconds.
    fn learn_tick(&mut self, at: Timestamp) {
        while at.micros() % self.tick.micros() != 0 {
            self.tick = Span::from_micros(self.tick.micros() / 1000);
        }
    }

    fn around<'a>(&'a mut self, out: &'a mut dyn FnMut(Found)) -> Around<'a> {
        Around {
            rules: &self.rules,
            pauses: &self.pauses,
            failovers: &self.failovers,
            tick: self.tick,
            overall: &mut self.holds,
            out,
            is_blurred: false,
            grants: &mut self.grants,
            unknown: &mut self.unknown,
        }
    }
}

/// The state of an audit.
#[derive(Debug)]
pub struct Audit {
    keys: HashMap<String, KeyState>,
    beside: Beside,
    /// What came at the newest instant.
    instant: Vec<Event>,
    /// Its holds, grants and unknown are added at the end.
    audited: Audited,
    /// With how many keys they are swept.
    sweep_at: usize,
}

impl Audit {
    pub fn new(rules: Rules) -> Self {
        Self {
            keys: HashMap::new(),
            beside: Beside {
                rules,
                pauses: Pauses::default(),
                failovers: VecDeque::new(),
                tick: Span::from_secs(1),
                holds: Ratios::default(),
                grants: 0,
                unknown: 0,
            },
            instant: Vec::new(),
            audited: Audited::default(),
            sweep_at: SWEPT_FROM,
        }
    }

    /// Takes the next event, by time; `out` is given what has become certain. In which order those of one instant are
    /// given is all the same: [`instant::order`](super::instant) says which came first.
    pub fn event(&mut self, event: Event, out: &mut dyn FnMut(Found)) {
        self.beside.learn_tick(event.at);
        let is_later = self.instant.first().is_some_and(|first| first.at < event.at);
        let is_cut = !is_later && self.instant.len() >= AT_ONCE;
        if is_later || is_cut {
            self.settle_instant(is_cut, out);
        }
        self.audited.events += 1;
        self.audited.first.get_or_insert(event.at);
        self.audited.last = Some(event.at);
        match event.kind {
            EventKind::Pause | EventKind::Failover if event.key.is_empty() && !event.done => {}
            EventKind::Pause if event.done => {
                let lasted = event.lease.unwrap_or(Span::from_micros(0));
                self.beside.pauses.add(
                    event.owner.as_ref(),
                    event.node.as_ref(),
                    Pause { at: event.at, lasted },
                );
            }
            EventKind::Failover if event.key.is_empty() => {
                self.beside.failovers.push_back(event.at);
                if self.beside.failovers.len() > FAILOVERS {
                    self.beside.failovers.pop_front();
                }
            }
            _ => self.instant.push(event),
        }
    }

    /// Judges what came at the newest instant; `is_cut` where more of it may come.
    fn settle_instant(&mut self, is_cut: bool, out: &mut dyn FnMut(Found)) {
        let Some(at) = self.instant.first().map(|first| first.at) else { return };
        let mut events = std::mem::take(&mut self.instant);
        events.sort_by(|a, b| a.key.cmp(&b.key));
        for of_key in events.chunk_by(|a, b| a.key == b.key) {
            self.of_key(of_key, is_cut, out);
        }
        events.clear();
        self.instant = events;
        if self.keys.len() >= self.sweep_at {
            self.sweep(at, out);
            self.sweep_at = SWEPT_FROM.max(2 * self.keys.len());
        }
    }

    /// Events of one key and one instant, one at the least.
    fn of_key(&mut self, events: &[Event], is_cut: bool, out: &mut dyn FnMut(Found)) {
        let mut around = self.beside.around(out);
        let Event { key, at, .. } = &events[0];
        let mut new = None;
        let state = match self.keys.get_mut(key) {
            Some(state) => state,
            None => new.insert(KeyState::default()),
        };
        if is_cut || state.last() == Some(*at) {
            self.audited.blurred += u64::from(state.blur());
        }
        instant::take(state, events, &mut around);
        if let Some(new) = new {
            self.audited.keys += 1;
            self.keys.insert(key.clone(), new);
        }
    }

    /// How many keys something is kept of.
    pub fn kept(&self) -> usize {
        self.keys.len()
    }

    /// Forgets the keys that are settled by now. It is done by itself; more often it loses nothing.
    pub fn sweep(&mut self, now: Timestamp, out: &mut dyn FnMut(Found)) {
        let mut around = self.beside.around(out);
        let longest = &mut self.audited.longest;
        self.keys.retain(|key, state| {
            let is_settled = state.is_settled(key, now, &mut around);
            if is_settled {
                state.end(key, now, &mut around);
                name(longest, key, &state.ratios);
            }
            !is_settled
        });
    }

    /// The history is at its end.
    #[must_use]
    pub fn end(mut self, out: &mut dyn FnMut(Found)) -> Audited {
        self.settle_instant(false, out);
        let now = self.audited.last.unwrap_or(Timestamp::from_micros(0));
        let mut keys: Vec<_> = self.keys.drain().collect();
        keys.sort_by(|(a, _), (b, _)| a.cmp(b));
        let mut around = self.beside.around(out);
        for (key, state) in &mut keys {
            state.end(key, now, &mut around);
            name(&mut self.audited.longest, key, &state.ratios);
        }
        let Beside { holds, grants, unknown, .. } = self.beside;
        Audited { holds, grants, unknown, ..self.audited }
    }
}

/// Keeps the keys with the longest holds.
fn name(longest: &mut Vec<KeyHolds>, key: &str, ratios: &Ratios) {
    let (p95, max) = (ratios.quantile(95), ratios.greatest());
    let place = longest.partition_point(|k| (k.p95, k.max, key) >= (p95, max, k.key.as_str()));
    if place < NAMED && ratios.count() > 0 {
        let holds =
            KeyHolds { key: key.to_owned(), holds: ratios.count(), p50: ratios.quantile(50), p95, max };
        longest.insert(place, holds);
        longest.truncate(NAMED);
    }
}
