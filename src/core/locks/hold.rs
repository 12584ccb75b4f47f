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
        }
    }

    /// Whether the event is this holder's: the same owner, and the same token where both name one.
    pub fn is_of(&self, event: &Event) -> bool {
        event.owner.as_deref() == Some(&self.owner)
            && (self.token.is_none() || event.token.is_none() || self.token == event.token)
    }

    pub fn lease_end(&self) -> Option<Timestamp> {
        self.lease.map(|lease| self.lease_from.plus(lease))
    }

    /// It was seen at work; one that had let go had not yet.
    pub fn sign(&mut self, at: Timestamp) {
        self.last_sign = self.last_sign.max(at);
        self.end = self.end.map(|end| end.max(at));
    }

    pub fn write(&mut self, at: Timestamp) {
        self.sign(at);
        if self.writes.len() < WRITES {
            self.writes.push(at);
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
            acquired: Some(self.acquired),
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
