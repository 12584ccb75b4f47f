//! One holder's time with a key.

use std::sync::Arc;

use super::event::Event;
use super::found::Holder;
use super::pauses::Pause;
use crate::core::time::{Span, Timestamp};

/// How many writes of a hold are remembered.
pub(super) const WRITES: usize = 4;

/// How it came that the lock server has, or may have, somebody else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lost {
    /// The lease ended.
    Lapsed,
    /// A foreign release deleted it.
    Robbed,
    Failover,
    Stolen,
    /// It was given to another while the lease ran.
    GivenAgain,
    /// The lock server let it go then, before the lease ended.
    LetGo(Timestamp),
    /// Its holder was refused then, before the lease ended: the lock was gone, or it was asked a second time, or what was
    /// asked for failed in another way.
    Refused(Timestamp),
}

/// By what an event is known to be a holder's, the surest last. A name alone tells two holders of it not apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fit {
    /// By its owner, though from another node.
    Elsewhere,
    /// By its owner, and by its node where both name one.
    Here,
    Token,
}

#[derive(Debug)]
pub(super) struct Hold {
    pub owner: String,
    pub token: Option<i64>,
    pub node: Option<Arc<str>>,
    pub acquired: Timestamp,
    /// The line of its acquiring.
    pub line: u64,
    /// From when on the lease runs: the acquiring or the last renewal.
    pub lease_from: Timestamp,
    pub lease: Option<Span>,
    pub last_sign: Timestamp,
    /// When it let go, or learned that it had lost the lock.
    pub end: Option<Timestamp>,
    pub lost: Option<Lost>,
    pub pause: Option<Pause>,
    /// Whether pauses have been looked for over this end of its lease.
    pub is_judged: bool,
    pub writes: Vec<Timestamp>,
    /// Whether the lock server has told of the end of its lease.
    pub has_expired: bool,
    /// Whether the history shows how it got the key.
    pub is_shown: bool,
    /// Whether it is told that it used most of this lease.
    pub is_told_long: bool,
}

impl Hold {
    pub fn new(event: &Event) -> Self {
        Self {
            owner: event.owner.clone().unwrap_or_default(),
            token: event.token,
            node: event.node.clone(),
            acquired: event.at,
            line: event.line,
            lease_from: event.at,
            lease: event.lease,
            last_sign: event.at,
            end: None,
            lost: None,
            pause: None,
            is_judged: false,
            writes: Vec::new(),
            has_expired: false,
            is_shown: true,
            is_told_long: false,
        }
    }

    /// Whether the event is this holder's, and by what: the same owner, and the same token where both name one.
    pub fn fit(&self, event: &Event) -> Option<Fit> {
        let is_elsewhere = self.node.is_some() && event.node.is_some() && self.node != event.node;
        match (self.token, event.token) {
            _ if event.owner.as_deref() != Some(&self.owner) => None,
            (Some(own), Some(token)) => (own == token).then_some(Fit::Token),
            _ if is_elsewhere => Some(Fit::Elsewhere),
            _ => Some(Fit::Here),
        }
    }

    /// Whether both are one holder: the same owner, and the same token where both have one, else the same node.
    pub fn is_same(&self, other: &Self) -> bool {
        self.owner == other.owner
            && match (self.token, other.token) {
                (Some(own), Some(token)) => own == token,
                _ => self.node.is_none() || other.node.is_none() || self.node == other.node,
            }
    }

    /// When it held the key no longer, by what it was told; `None` for one without expiry.
    pub fn holds_until(&self) -> Option<Timestamp> {
        self.end.or_else(|| self.lease_end())
    }

    pub fn holds_at(&self, at: Timestamp) -> bool {
        self.holds_until().is_none_or(|until| at < until)
    }

    pub fn lease_end(&self) -> Option<Timestamp> {
        self.lease.map(|lease| self.lease_from.plus(lease))
    }

    /// It was seen at work; one that had let go had not yet.
    pub fn sign(&mut self, at: Timestamp) {
        self.last_sign = self.last_sign.max(at);
        self.end = self.end.map(|end| end.max(at));
    }

    /// It wrote, or tried to: one that was refused was at work, too.
    pub fn write(&mut self, event: &Event) {
        self.sign(event.at);
        if event.done && self.writes.len() < WRITES {
            self.writes.push(event.at);
        }
    }

    /// It takes its hands off the key.
    pub fn let_go(&mut self, at: Timestamp) {
        self.sign(at);
        self.end = Some(at);
    }

    /// Until when it took itself for the holder, as far as the history shows.
    pub fn believed_until(&self) -> Timestamp {
        let lease_end = self.lease_end().unwrap_or(self.last_sign);
        match (self.end, self.lost) {
            (Some(end), _) => end,
            // Whoever is stolen from may have been told.
            (None, Some(Lost::Stolen)) => self.last_sign,
            (None, _) => self.last_sign.max(lease_end),
        }
    }

    pub fn holder(&self) -> Holder {
        Holder {
            owner: self.owner.clone(),
            token: self.token,
            node: self.node.clone(),
            acquired: self.is_shown.then_some(self.acquired),
            lease_end: self.lease_end(),
            pause: self.pause,
            writes: self.writes.clone(),
            last_sign: Some(self.last_sign),
        }
    }
}

/// Somebody of whom the history does not show that it ever held the key.
pub(super) fn stranger(event: &Event) -> Holder {
    Holder {
        owner: event.owner.clone().unwrap_or_default(),
        token: event.token,
        node: event.node.clone(),
        acquired: None,
        lease_end: None,
        pause: None,
        writes: Vec::new(),
        last_sign: None,
    }
}
