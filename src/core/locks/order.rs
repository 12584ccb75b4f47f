//! Events by time. Lines that nodes wrote side by side are a little out of order, and are put right
//! within a stated window; what comes later than that is refused.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use super::event::Event;
use crate::core::time::{Span, Timestamp};

/// An event that is earlier than what has been given out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Late {
    pub line: u64,
    pub at: Timestamp,
    /// How far it is behind the newest line before it.
    pub behind: Span,
}

/// Holds events back until none that is earlier may come.
#[derive(Debug)]
pub struct InOrder {
    window: Span,
    newest: Option<Timestamp>,
    waiting: BinaryHeap<Reverse<ByTime>>,
}

#[derive(Debug)]
struct ByTime(Event);

impl ByTime {
    /// Of one instant, the line that stands first.
    const fn rank(&self) -> (Timestamp, u64) {
        (self.0.at, self.0.line)
    }
}

impl PartialEq for ByTime {
    fn eq(&self, other: &Self) -> bool {
        self.rank() == other.rank()
    }
}

impl Eq for ByTime {}

impl PartialOrd for ByTime {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ByTime {
    fn cmp(&self, other: &Self) -> Ordering {
        self.rank().cmp(&other.rank())
    }
}

impl InOrder {
    /// `window` is how far a line may be behind the newest before it.
    pub fn new(window: Span) -> Self {
        Self { window, newest: None, waiting: BinaryHeap::new() }
    }

    /// # Errors
    /// The event lies farther back than the window.
    pub fn push(&mut self, event: Event) -> Result<(), Late> {
        let newest = self.newest.unwrap_or(event.at);
        let behind = newest.since(event.at);
        if behind > self.window {
            return Err(Late { line: event.line, at: event.at, behind });
        }
        self.newest = Some(newest.max(event.at));
        self.waiting.push(Reverse(ByTime(event)));
        Ok(())
    }

    /// The next event that no later line can be before. One of the same instant as the newest may be
    /// given out: lines of one instant come in the order of the file.
    pub fn ready(&mut self) -> Option<Event> {
        let until = self.newest?.minus(self.window);
        let Reverse(first) = self.waiting.peek()?;
        if first.0.at > until { None } else { self.rest() }
    }

    /// The next event, at the end of the history.
    pub fn rest(&mut self) -> Option<Event> {
        self.waiting.pop().map(|Reverse(first)| first.0)
    }
}
