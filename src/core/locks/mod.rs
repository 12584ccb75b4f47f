//! What a lock history proves: who held a key when, where two held it at once and why, and which
//! writes a lock did not stop.
//!
//! Events go in one by one, by time ([`InOrder`] puts right what is a little out of it); findings come
//! out as they are certain ([`Audit`]). State is kept for a key while it is held and for a stated time
//! after, never for the whole history.

mod alerts;
mod audit;
mod business;
mod event;
mod found;
mod hold;
mod instant;
mod key;
mod order;
mod pauses;
mod ratios;
mod words;

pub use alerts::{ALERTS, Alert};
pub use audit::{AT_ONCE, Audit, Audited, KeyHolds};
pub use business::{Act, Business, Doer, Duplicate, DuplicateKind};
pub use event::{Event, EventKind};
pub use found::{Certainty, Collected, Found, Holder, LockFinding, Tally, in_words};
pub use order::{InOrder, Late};
pub use pauses::Pause;
pub use ratios::Ratios;

use super::time::Span;

/// From which part of its lease on a hold is long, in percent.
pub const LONG_PERCENT: u32 = 70;

/// What a history is judged by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// How far the clocks of two nodes may differ.
    pub skew: Span,
    /// A holder without expiry that gives no sign for so long has vanished.
    pub vanished_after: Span,
    /// A key that nobody holds, and a former holder that gives no sign, are forgotten after so long.
    pub forget_after: Span,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            skew: Span::from_micros(0),
            vanished_after: Span::from_mins(10),
            forget_after: Span::from_mins(60),
        }
    }
}
