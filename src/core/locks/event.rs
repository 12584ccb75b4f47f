//! One line of a lock history.

use std::sync::Arc;

use crate::core::status::status_type;
use crate::core::time::{Span, Timestamp};

status_type!(
    /// What happened to a key.
    EventKind {
        /// The lock was asked for; `result` says whether it was given.
        Acquire = "acquire",
        Renew = "renew",
        Release = "release",
        /// The lock server let the key go since its lease had ended.
        Expire = "expire",
        /// Somebody took the key whoever held it.
        Steal = "steal",
        /// The lock server's replica took over; without a key: for all of them.
        Failover = "failover",
        /// A holder stood still from `at` on, for `lease_ms`; without a key: whatever it held.
        Pause = "pause",
        /// Something was written under the lock; `result` says whether the resource took it.
        Write = "write",
    }
);

impl EventKind {
    /// Whether it is about one key.
    pub const fn needs_key(self) -> bool {
        !matches!(self, Self::Failover | Self::Pause)
    }

    /// Whether somebody must have done it.
    pub const fn needs_owner(self) -> bool {
        matches!(self, Self::Acquire | Self::Renew | Self::Release | Self::Steal | Self::Write)
    }
}

/// One event of a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The line of the file, or the row of the table, counted from 1.
    pub line: u64,
    /// Empty where it is about all keys.
    pub key: String,
    pub kind: EventKind,
    pub owner: Option<String>,
    /// The fencing token.
    pub token: Option<i64>,
    /// How long the lease is from now on, or how long a pause was.
    pub lease: Option<Span>,
    /// Whether the lease is said to have no end, and not merely left unsaid.
    pub is_forever: bool,
    pub at: Timestamp,
    /// Whose clock `at` is.
    pub node: Option<Arc<str>>,
    /// Whether what was asked for was done.
    pub done: bool,
}

impl Event {
    /// Whether a result says that it was done, in the words of services and of Redis; `None` for other words.
    pub fn is_done(result: &str) -> Option<bool> {
        match result.to_ascii_lowercase().as_str() {
            "ok" | "done" | "true" | "yes" | "1" | "granted" | "accepted" => Some(true),
            "refused" | "rejected" | "denied" | "busy" | "failed" | "false" | "no" | "0" | "nil" => {
                Some(false)
            }
            _ => None,
        }
    }
}
