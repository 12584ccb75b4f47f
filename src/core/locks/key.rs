//! The state machine of one key: who the lock server says holds it, who may still be at work, and
//! what each event shows about them.

use std::collections::VecDeque;
use std::sync::Arc;

use super::event::{Event, EventKind};
use super::found::{Certainty, Found, Holder, LockFinding};
use super::hold::{Fit, Hold, Lost, stranger};
use super::pauses::Pauses;
use super::ratios::{Ratios, percent};
use super::{LONG_PERCENT, Rules};
use crate::core::time::{Span, Timestamp};

/// How many former holders of a key are watched at once; the oldest goes first.
const FORMER: usize = 8;
/// By how much a lock server may be late in telling of the end of a lease: it looks for those from time to time.
const EXPIRE_LATE: Span = Span::from_secs(1);

/// What is known beside the keys.
pub(super) struct Around<'a> {
    pub rules: &'a Rules,
    pub pauses: &'a Pauses,
    /// Failovers that concern every key, by time.
    pub failovers: &'a VecDeque<Timestamp>,
    /// What the history's clock ticks in, as far as it is known.
    pub tick: Span,
    pub overall: &'a mut Ratios,
    pub out: &'a mut dyn FnMut(Found),
    /// Whether the order of some events of the key is not known, so that nothing of it is proven.
    pub is_blurred: bool,
    /// How often the key was got, as far as the history shows.
    pub grants: &'a mut u64,
    /// Releases, renewals and writes by owners that held no lock then on that node, as far as the history shows: it may
    /// begin after them.
    pub unknown: &'a mut u64,
}

impl Around<'_> {
    fn tell(&mut self, found: Found) {
        let certainty = if self.is_blurred { Certainty::Possible } else { found.certainty };
        (self.out)(Found { certainty, ..found });
    }

    /// How far two clocks may differ: those of one node do not.
    fn skew(&self, a: Option<&Arc<str>>, b: Option<&Arc<str>>) -> Span {
        if a.is_some() && a == b { Span::from_micros(0) } else { self.rules.skew }
    }

    fn certainty(&self, by: Span, a: Option<&Arc<str>>, b: Option<&Arc<str>>) -> Certainty {
        let is_explained = by < self.skew(a, b).plus(self.tick);
        if is_explained { Certainty::Possible } else { Certainty::Proven }
    }

    /// Counts what comes from a node on which its owner is not shown to have held the key.
    fn count_elsewhere(&mut self, whose: Option<(Fit, Place)>) {
        *self.unknown += u64::from(matches!(whose, Some((Fit::Elsewhere, _))));
    }
}

/// A token that was seen, when and by whose clock.
#[derive(Clone, Debug)]
struct Mark {
    token: i64,
    at: Timestamp,
    node: Option<Arc<str>>,
}

#[derive(Debug, Default)]
pub(super) struct KeyState {
    busy: Option<Box<Busy>>,
    granted: Option<Mark>,
    written: Option<Mark>,
    pub ratios: Ratios,
    /// When something was last heard of it.
    last: Option<Timestamp>,
    is_blurred: bool,
}

/// What is kept while somebody holds the key or may take itself for the holder.
#[derive(Debug, Default)]
struct Busy {
    held: Option<Hold>,
    /// Those who held it before, by when they acquired it.
    former: VecDeque<Hold>,
    failover: Option<Timestamp>,
}

/// One of those that hold or held the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Held,
    Former(usize),
}

impl Busy {
    /// Whose an event is, and by what: of those that it fits best the newest. What is refused on another node than that of
    /// the hold is refused since the hold is another's.
    fn whose(&self, event: &Event) -> Option<(Fit, Place)> {
        let former = self.former.iter().enumerate().map(|(i, hold)| (hold, Place::Former(i)));
        let all = former.chain(self.held.iter().map(|held| (held, Place::Held)));
        all.filter_map(|(hold, place)| Some((hold.fit(event)?, place)))
            .filter(|(fit, _)| event.done || *fit != Fit::Elsewhere)
            .max_by_key(|(fit, _)| *fit)
    }

    fn former_at(&mut self, whose: Option<(Fit, Place)>) -> Option<&mut Hold> {
        match whose {
            Some((_, Place::Former(i))) => self.former.get_mut(i),
            _ => None,
        }
    }

    /// The lease that ended without a word of the lock server, the newest of those that an end which it tells of may
    /// mean.
    fn ended_untold(&mut self, event: &Event) -> Option<&mut Hold> {
        let fit = self.whose(event).map(|(fit, _)| fit);
        let is_meant = |hold: &Hold| event.owner.is_none() || fit.is_some() && hold.fit(event) == fit;
        let is_untold = |hold: &Hold| hold.lost == Some(Lost::Lapsed) && !hold.has_expired;
        self.former.iter_mut().rev().find(|hold| is_untold(hold) && is_meant(hold))
    }
}

impl KeyState {
    /// When something was last heard of it.
    pub const fn last(&self) -> Option<Timestamp> {
        self.last
    }

    /// From now on its events may not come in their order. Whether they did until now.
    pub const fn blur(&mut self) -> bool {
        !std::mem::replace(&mut self.is_blurred, true)
    }

    /// Takes the next event of this key, by time.
    pub fn take(&mut self, event: &Event, around: &mut Around<'_>) {
        self.last = Some(event.at);
        around.is_blurred = self.is_blurred;
        match event.kind {
            // What was refused gave the key to nobody, and took it from nobody.
            EventKind::Acquire | EventKind::Steal | EventKind::Expire | EventKind::Failover
                if !event.done => {}
            EventKind::Acquire => self.acquire(event, around, false),
            EventKind::Steal => self.acquire(event, around, true),
            EventKind::Renew => self.renew(event, around),
            EventKind::Release => self.release(event, around),
            EventKind::Write => self.write(event, around),
            EventKind::Expire => self.expire(event, around),
            EventKind::Failover => self.busy().failover = Some(event.at),
            EventKind::Pause => {}
        }
        self.settle(&event.key, event.at, around, false);
    }

    /// Whether it may be forgotten: nobody holds it, and nothing was heard of it for a while. What was found about
    /// it until now is told.
    pub fn is_settled(&mut self, key: &str, now: Timestamp, around: &mut Around<'_>) -> bool {
        self.settle(key, now, around, false);
        let silent = self.last.is_none_or(|last| now.since(last) > around.rules.forget_after);
        if !silent {
            return false;
        }
        match &self.busy {
            None => true,
            // One without expiry is held for ever; of any other nobody can have heard since.
            Some(busy) => {
                let is_lapsed =
                    |h: &Hold| h.holds_until().is_some_and(|end| now.since(end) > around.rules.forget_after);
                busy.held.as_ref().is_none_or(is_lapsed)
            }
        }
    }

    /// The history, or what is kept of this key, ends.
    pub fn end(&mut self, key: &str, now: Timestamp, around: &mut Around<'_>) {
        around.is_blurred = self.is_blurred;
        if let Some(busy) = &mut self.busy
            && let Some(held) = &mut busy.held
        {
            judge_lease_end(held, key, now, around);
            judge_silence(held, key, now, around);
            // Nothing was heard of it since a failover: whether the lock outlived that is not known.
            let until = held.lease_end().map_or(now, |end| end.min(now));
            let (from, of_key) = (held.last_sign, busy.failover);
            if held.end.is_none() && failed_over((from, until), of_key, Span::from_micros(0), around) {
                let found = of_hold(LockFinding::LostAtFailover, key, from, held);
                around.tell(Found { certainty: Certainty::Possible, ..found });
            }
            if held.lost.is_some() {
                busy.former.extend(busy.held.take());
            }
        }
        self.settle(key, now, around, true);
    }

    fn busy(&mut self) -> &mut Busy {
        self.busy.get_or_insert_default()
    }

    fn acquire(&mut self, event: &Event, around: &mut Around<'_>, stolen: bool) {
        let busy = self.busy.get_or_insert_default();
        if let Some(held) = &mut busy.held
            && held.fit(event).is_some_and(|fit| fit != Fit::Elsewhere)
        {
            // The same holder again: its lease begins anew. One that is at work need not ask, so that it had vanished
            // until now if it was silent for so long.
            judge_lease_end(held, &event.key, event.at, around);
            judge_silence(held, &event.key, event.at, around);
            let is_same_grant =
                held.holds_at(event.at) && (event.token.is_none() || event.token == held.token);
            held.token = event.token.or(held.token);
            extend(held, event, around);
            if !is_same_grant {
                self.token_granted(event, around);
            }
            return;
        }
        self.token_granted(event, around);
        let held = self.take_over(event, around, stolen);
        if event.lease.is_none() {
            let found = found(LockFinding::NoExpiry, event, held.holder());
            around.tell(found);
        }
    }

    /// The key goes from whoever held it, if somebody did, to this one.
    fn take_over(&mut self, event: &Event, around: &mut Around<'_>, stolen: bool) -> &mut Hold {
        *around.grants += 1;
        let busy = self.busy.get_or_insert_default();
        if let Some(mut held) = busy.held.take() {
            judge_lease_end(&mut held, &event.key, event.at, around);
            judge_silence(&held, &event.key, event.at, around);
            let skew = around.skew(held.node.as_ref(), event.node.as_ref());
            let lost = match held.lease_end() {
                // There was nothing left to be stolen.
                Some(end) if end.plus(skew) < event.at => Lost::Lapsed,
                _ if stolen => Lost::Stolen,
                Some(end) if end <= event.at.plus(skew) => Lost::Lapsed,
                _ if is_lost_at_failover(&held, busy.failover, event.at, around) => Lost::Failover,
                _ => Lost::GivenAgain,
            };
            held.lost.get_or_insert(lost);
            busy.former.push_back(held);
        }
        busy.failover = None;
        busy.held.insert(Hold::new(event))
    }

    /// Who holds the key, and with which token.
    pub fn holder(&self) -> Option<(&str, Option<i64>)> {
        self.held().map(|held| (held.owner.as_str(), held.token))
    }

    /// Whether the holder's lease is over at this time.
    pub fn has_lapsed(&self, at: Timestamp) -> bool {
        self.held().and_then(Hold::holds_until).is_some_and(|until| until <= at)
    }

    fn held(&self) -> Option<&Hold> {
        self.busy.as_ref()?.held.as_ref()
    }

    /// A token must be greater than every one before it.
    fn token_granted(&mut self, event: &Event, around: &mut Around<'_>) {
        let Some(token) = event.token else { return };
        let mark = Mark { token, at: event.at, node: event.node.clone() };
        match &self.granted {
            Some(seen) if token <= seen.token => {
                let by = event.at.since(seen.at);
                let certainty = around.certainty(by, seen.node.as_ref(), event.node.as_ref());
                let found = Found {
                    certainty,
                    seen_token: Some(seen.token),
                    ..found(LockFinding::TokenWentBack, event, stranger(event))
                };
                around.tell(found);
            }
            _ => self.granted = Some(mark),
        }
    }

    fn renew(&mut self, event: &Event, around: &mut Around<'_>) {
        let busy = self.busy.get_or_insert_default();
        let whose = busy.whose(event);
        around.count_elsewhere(whose);
        if let Some(held) = &mut busy.held
            && matches!(whose, Some((_, Place::Held)))
        {
            judge_lease_end(held, &event.key, event.at, around);
            if let Some(end) = held.lease_end().filter(|end| event.done && event.at > *end) {
                late(held.holder(), event, event.at.since(end), around);
            }
            used(held, event, &mut self.ratios, around);
            if event.done {
                extend(held, event, around)
            } else {
                refused(held, busy.failover, event, around);
            }
            return;
        }
        let first = match busy.former_at(whose) {
            Some(former) => {
                former.sign(event.at);
                match former.lease_end() {
                    Some(end) if event.done && event.at > end => {
                        late(former.holder(), event, event.at.since(end), around);
                    }
                    _ if event.done => {}
                    _ => {
                        former.end = Some(event.at);
                        around.tell(found(LockFinding::OwnerMismatch, event, former.holder()));
                    }
                }
                former.holder()
            }
            None => {
                *around.unknown += 1;
                stranger(event)
            }
        };
        if !event.done {
            return;
        }
        match busy.held.as_ref().filter(|held| held.holds_at(event.at)) {
            Some(held) => foreign(LockFinding::ForeignRenewal, event, first, held, around),
            // A renewal that was done proves that it holds the key, wherever it has it from.
            None if event.lease.is_some() => self.take_over(event, around, false).is_shown = false,
            None => {}
        }
    }

    fn release(&mut self, event: &Event, around: &mut Around<'_>) {
        let busy = self.busy.get_or_insert_default();
        let whose = busy.whose(event);
        around.count_elsewhere(whose);
        if let (Some(held), Some((_, Place::Held))) = (&mut busy.held, whose) {
            judge_lease_end(held, &event.key, event.at, around);
            used(held, event, &mut self.ratios, around);
            match event.done {
                true => held.let_go(event.at),
                false => refused(held, busy.failover, event, around),
            }
            // One that lost it while its lease ran may yet be seen to hold it.
            if held.lost.is_none() {
                busy.former.extend(busy.held.take());
            }
            return;
        }
        let former = busy.former_at(whose);
        let is_known = former.is_some();
        let first = match former {
            Some(former) => {
                used(former, event, &mut self.ratios, around);
                former.let_go(event.at);
                former.holder()
            }
            None => stranger(event),
        };
        // After the end of the other's lease there was nothing left to delete; close to it, there may have been.
        let there = busy.held.as_ref().filter(|held| {
            let nodes = (event.node.as_ref(), held.node.as_ref());
            held.holds_until().is_none_or(|end| {
                let after = event.at.since(end);
                event.at < end || around.certainty(after, nodes.0, nodes.1) == Certainty::Possible
            })
        });
        let met_another = there.is_some();
        let met = there.filter(|held| event.done && event.at > held.acquired);
        let robbed = met.map(|held| {
            let skew = around.skew(event.node.as_ref(), held.node.as_ref());
            let is_over = first.lease_end.is_some_and(|end| end.plus(skew) < event.at);
            let holds = held.holds_at(event.at);
            (holds && event.at.since(held.acquired) > skew, is_over || !holds)
        });
        if let Some((true, _)) = robbed
            && let Some(mut held) = busy.held.take()
        {
            foreign(LockFinding::ForeignRelease, event, first, &held, around);
            held.lost = Some(Lost::Robbed);
            busy.former.push_back(held);
        } else if let (Some((false, true)), Some(held)) = (robbed, &busy.held) {
            // What it deleted was its own no longer; by the clocks it may have been nobody's, yet or any more.
            foreign(LockFinding::ForeignRelease, event, first, held, around);
        } else if is_known && !(event.done && met_another) {
            around.tell(found(LockFinding::OwnerMismatch, event, first));
        } else if !is_known {
            *around.unknown += 1;
        }
    }

    fn write(&mut self, event: &Event, around: &mut Around<'_>) {
        let busy = self.busy.get_or_insert_default();
        let whose = busy.whose(event);
        around.count_elsewhere(whose);
        let mut held = busy.held.as_mut().filter(|_| matches!(whose, Some((_, Place::Held))));
        let is_held = held.is_some();
        // Nobody has got it since; but a write after the end of a lease is how two come to write.
        if let Some((held, lease)) = held.as_mut().and_then(|held| held.lease.map(|lease| (held, lease)))
            && held.lease_end().is_some_and(|end| event.done && event.at > end)
        {
            judge_length(held, event, percent(event.at.since(held.lease_from), lease), around);
        }
        let hold = match whose {
            Some((_, Place::Former(i))) => busy.former.get_mut(i),
            _ => held,
        };
        // Of one that lost the key without letting go, the time in which two held it tells.
        let is_told = is_held || hold.as_ref().is_some_and(|hold| hold.lost.is_some());
        let holder = match hold {
            Some(hold) => {
                hold.write(event);
                hold.holder()
            }
            None => stranger(event),
        };
        if !event.done {
            return;
        }
        match busy.held.as_ref().filter(|held| held.holds_at(event.at)) {
            _ if is_told => {}
            Some(held) => foreign(LockFinding::ForeignWrite, event, holder.clone(), held, around),
            None => *around.unknown += 1,
        }
        let Some(token) = event.token else { return };
        let mark = Mark { token, at: event.at, node: event.node.clone() };
        match &self.written {
            Some(seen) if token < seen.token => {
                let by = event.at.since(seen.at);
                let certainty = around.certainty(by, seen.node.as_ref(), event.node.as_ref());
                let found = Found {
                    certainty,
                    seen_token: Some(seen.token),
                    ..found(LockFinding::StaleWriteAccepted, event, holder)
                };
                around.tell(found);
            }
            // When a token was first seen says most of an older one.
            Some(seen) if token == seen.token => {}
            _ => self.written = Some(mark),
        }
    }

    fn expire(&mut self, event: &Event, around: &mut Around<'_>) {
        let busy = self.busy.get_or_insert_default();
        let is_held = match (&busy.held, &event.owner) {
            (None, _) => false,
            (Some(_), Some(_)) => matches!(busy.whose(event), Some((_, Place::Held))),
            // One that names nobody, close to when the key was got, is of the lease before it.
            (Some(held), None) => {
                event.at.since(held.acquired) > around.skew(held.node.as_ref(), event.node.as_ref())
            }
        };
        let is_due = is_held && busy.held.as_ref().is_some_and(|held| is_over(held, event, around));
        if !is_due && let Some(former) = busy.ended_untold(event) {
            // It may be late. If it is very late, it may be the other one's, too.
            let skew = around.skew(former.node.as_ref(), event.node.as_ref());
            let late = former.lease_end().map(|end| event.at.since(end));
            former.has_expired = true;
            if let Some(held) = busy.held.as_ref().filter(|_| is_held)
                && late.is_some_and(|late| late > EXPIRE_LATE.plus(skew))
            {
                let lasted = held.lease_end().map(|end| end.since(event.at));
                let found = of_hold(LockFinding::LetGoEarly, &event.key, event.at, held);
                around.tell(Found { certainty: Certainty::Possible, lasted, ..found });
            }
            return;
        }
        if let Some(mut held) = busy.held.take_if(|_| is_held) {
            judge_silence(&held, &event.key, event.at, around);
            held.has_expired = true;
            held.lost = Some(match held.lease_end() {
                // Its holder was not told, and goes by the lease that it was given.
                Some(_) if !is_due => Lost::LetGo(event.at),
                _ => {
                    let lease = event.at.since(held.lease_from);
                    held.lease = Some(held.lease.map_or(lease, |stated| stated.min(lease)));
                    Lost::Lapsed
                }
            });
            judge_lease_end(&mut held, &event.key, event.at, around);
            busy.former.push_back(held);
        }
    }

    /// Tells the windows of former holders about whom nothing more can come, oldest first.
    fn settle(&mut self, key: &str, now: Timestamp, around: &mut Around<'_>, force: bool) {
        around.is_blurred = self.is_blurred;
        let Some(busy) = &mut self.busy else { return };
        let forget_after = around.rules.forget_after;
        let is_done = |h: &Hold| h.end.is_some() || now.since(h.believed_until()) > forget_after;
        while let Some(front) = busy.former.front() {
            let until = front.believed_until();
            let mut beside = busy.former.iter().skip(1).chain(&busy.held).filter(|h| h.acquired < until);
            let is_open = busy.former.len() <= FORMER && (!is_done(front) || beside.any(|h| !is_done(h)));
            if is_open && !force {
                break;
            }
            let Some(front) = busy.former.pop_front() else { break };
            let mut others = busy.former.iter().chain(&busy.held).peekable();
            let mut is_told = others.peek().is_some_and(|next| unbounded(&front, next, key, now, around));
            others.for_each(|other| is_told |= window(&front, other, key, now, around));
            if let (Some(lost @ (Lost::LetGo(at) | Lost::Refused(at))), false) = (front.lost, is_told) {
                let lasted = front.lease_end().map(|end| end.since(at));
                let node = front.node.as_ref();
                let certainty = match lost {
                    Lost::Refused(_) => Certainty::Possible,
                    _ => lasted.map_or(Certainty::Proven, |left| around.certainty(left, node, node)),
                };
                let found = of_hold(LockFinding::LetGoEarly, key, at, &front);
                around.tell(Found { certainty, lasted, ..found });
            }
        }
        if busy.held.is_none() && busy.former.is_empty() {
            self.busy = None;
        }
    }
}

/// What one event shows about one holder.
fn found(finding: LockFinding, event: &Event, first: Holder) -> Found {
    Found {
        finding,
        certainty: Certainty::Proven,
        key: event.key.clone(),
        line: event.line,
        at: event.at,
        until: None,
        lasted: None,
        percent: None,
        first,
        second: None,
        seen_token: None,
    }
}

/// The time in which two took themselves for the holder. Whether there was one.
fn window(front: &Hold, other: &Hold, key: &str, now: Timestamp, around: &mut Around<'_>) -> bool {
    let Some(lost) = front.lost else { return false };
    let (from, until) = (other.acquired, front.believed_until().min(at_work_until(other, now)));
    if until <= from || front.is_same(other) {
        return false;
    }
    let has_tokens = front.token.is_some() && other.token.is_some();
    let certainty = match front.owner == other.owner && (!has_tokens || front.last_sign <= other.acquired) {
        // An owner with a new token may have asked anew, and have let go of the old one; one on another node may be the
        // same one.
        true => Certainty::Possible,
        false => around.certainty(until.since(from), front.node.as_ref(), other.node.as_ref()),
    };
    around.tell(two(lost, certainty, key, front, other, until));
    true
}

/// A lock without expiry that the next one got, though its holder never let go. It may be at work for as long as the
/// next one is; that it gave no sign of it proves neither that it was nor that it was not. Whoever is stolen from may
/// have been told. Whether there was such a time.
fn unbounded(front: &Hold, next: &Hold, key: &str, now: Timestamp, around: &mut Around<'_>) -> bool {
    let Some(lost) = front.lost.filter(|lost| *lost != Lost::Stolen) else { return false };
    let is_silent = front.lease.is_none() && front.end.is_none() && front.last_sign <= next.acquired;
    let until = at_work_until(next, now);
    let is_found = is_silent && next.acquired < until && !front.is_same(next);
    if is_found {
        around.tell(two(lost, Certainty::Possible, key, front, next, until));
    }
    is_found
}

/// Until when one takes itself for the holder. One that goes on does so to its lease's end, also where the history ends
/// before that.
fn at_work_until(hold: &Hold, now: Timestamp) -> Timestamp {
    let is_over = hold.lost.is_some() || hold.end.is_some();
    if is_over { hold.believed_until() } else { hold.believed_until().max(now) }
}

/// Two holders, from when the second one got the key.
fn two(lost: Lost, certainty: Certainty, key: &str, front: &Hold, other: &Hold, until: Timestamp) -> Found {
    Found {
        finding: match lost {
            Lost::Lapsed => LockFinding::LeaseOutlived,
            Lost::Robbed => LockFinding::HeldAfterForeignRelease,
            Lost::Failover => LockFinding::LostAtFailover,
            Lost::Stolen => LockFinding::HeldAfterSteal,
            Lost::GivenAgain | Lost::LetGo(_) | Lost::Refused(_) => LockFinding::GrantedTwice,
        },
        certainty,
        key: key.to_owned(),
        line: other.line,
        at: other.acquired,
        until: Some(until),
        lasted: Some(until.since(other.acquired)),
        percent: None,
        first: front.holder(),
        second: Some(other.holder()),
        seen_token: None,
    }
}

/// Whether the lock server's replica took over while this one held the key.
fn is_lost_at_failover(held: &Hold, of_key: Option<Timestamp>, at: Timestamp, around: &Around<'_>) -> bool {
    failed_over((held.lease_from, at), of_key, around.rules.skew, around)
}

/// Whether there was a failover from one instant to another, by clocks that may differ.
fn failed_over(
    (from, until): (Timestamp, Timestamp),
    of_key: Option<Timestamp>,
    skew: Span,
    around: &Around<'_>,
) -> bool {
    let (from, until) = (from.minus(skew), until.plus(skew));
    of_key.into_iter().chain(around.failovers.iter().copied()).any(|t| from <= t && t <= until)
}

/// Whether its lease was over at an event, or by the clocks may have been. One without expiry ends whenever it is told.
fn is_over(held: &Hold, event: &Event, around: &Around<'_>) -> bool {
    let skew = around.skew(held.node.as_ref(), event.node.as_ref());
    held.lease_end().is_none_or(|end| end <= event.at.plus(skew))
}

/// It is told that the lock is its own no longer. While its lease runs, and where nobody is shown to have got it, the lock
/// server has let it go; a failover may say why.
fn refused(held: &mut Hold, of_key: Option<Timestamp>, event: &Event, around: &mut Around<'_>) {
    let is_running = held.end.is_none() && (held.lease.is_none() || !is_over(held, event, around));
    if is_running && is_lost_at_failover(held, of_key, event.at, around) {
        around.tell(found(LockFinding::LostAtFailover, event, held.holder()));
    } else if is_running {
        held.lost = Some(Lost::Refused(event.at));
    }
    around.tell(found(LockFinding::OwnerMismatch, event, held.holder()));
    held.let_go(event.at);
}

/// What befell one holder, without an event of its own.
fn of_hold(finding: LockFinding, key: &str, at: Timestamp, held: &Hold) -> Found {
    Found {
        finding,
        certainty: Certainty::Proven,
        key: key.to_owned(),
        line: held.line,
        at,
        until: None,
        lasted: None,
        percent: None,
        first: held.holder(),
        second: None,
        seen_token: None,
    }
}

/// Its lease begins anew.
fn extend(held: &mut Hold, event: &Event, around: &mut Around<'_>) {
    held.sign(event.at);
    (held.end, held.lost) = (None, None);
    held.lease_from = event.at;
    (held.is_judged, held.is_told_long) = (false, false);
    let did_expire = held.lease.is_some();
    // A renewal that does not say how long its lease is has the one before.
    let is_unsaid = event.kind == EventKind::Renew && !event.is_forever;
    held.lease = event.lease.or(held.lease.filter(|_| is_unsaid));
    if did_expire && held.lease.is_none() {
        around.tell(found(LockFinding::NoExpiry, event, held.holder()));
    }
}

/// Somebody did something to a key that another held.
fn foreign(finding: LockFinding, event: &Event, first: Holder, held: &Hold, around: &mut Around<'_>) {
    let (node, theirs) = (event.node.as_ref(), held.node.as_ref());
    // Close to either end of what the other held, clocks may explain it; and one of the same name may be the same one.
    let since = event.at.since(held.acquired);
    let by = held.holds_until().map_or(since, |end| since.min(end.since(event.at).abs()));
    let is_told_apart = first.owner != held.owner || event.token.is_some() && held.token.is_some();
    let certainty = match is_told_apart {
        true => around.certainty(by, node, theirs),
        false => Certainty::Possible,
    };
    let second = Some(held.holder());
    around.tell(Found { certainty, second, ..found(finding, event, first) });
}

/// Looks, once its lease has ended, whether it stood still then.
fn judge_lease_end(held: &mut Hold, key: &str, now: Timestamp, around: &mut Around<'_>) {
    let Some(end) = held.lease_end().filter(|end| *end <= now && !held.is_judged) else { return };
    held.is_judged = true;
    held.pause = around.pauses.over(&held.owner, held.node.as_ref(), end);
    if let Some(pause) = held.pause {
        let lasted = Some(pause.lasted);
        around.tell(Found { lasted, ..of_hold(LockFinding::PauseOverLeaseEnd, key, end, held) });
    }
}

/// Counts how much of its lease a holder used until this event.
fn used(held: &mut Hold, event: &Event, ratios: &mut Ratios, around: &mut Around<'_>) {
    let Some(lease) = held.lease.filter(|_| held.end.is_none()) else { return };
    let percent = percent(event.at.since(held.lease_from), lease);
    ratios.add(percent);
    around.overall.add(percent);
    judge_length(held, event, percent, around);
}

/// Tells of a lease, once, that most of it was used.
fn judge_length(held: &mut Hold, event: &Event, percent: u32, around: &mut Around<'_>) {
    if percent > LONG_PERCENT && !held.is_told_long {
        held.is_told_long = true;
        let found = Found { percent: Some(percent), ..found(LockFinding::LongHold, event, held.holder()) };
        around.tell(found);
    }
}

fn late(holder: Holder, event: &Event, by: Span, around: &mut Around<'_>) {
    let certainty = around.certainty(by, holder.node.as_ref(), event.node.as_ref());
    around.tell(Found { certainty, lasted: Some(by), ..found(LockFinding::LateRenewal, event, holder) });
}

/// Looks whether one without expiry has given no sign for so long that it has vanished.
fn judge_silence(held: &Hold, key: &str, now: Timestamp, around: &mut Around<'_>) {
    let quiet = now.since(held.last_sign);
    if held.holds_until().is_some() || quiet < around.rules.vanished_after {
        return;
    }
    let found = of_hold(LockFinding::HolderVanished, key, held.last_sign, held);
    around.tell(Found { until: Some(now), lasted: Some(quiet), ..found });
}
