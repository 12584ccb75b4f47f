//! Messages that were delivered more than once.
//!
//! Two consumed rows of one topic and key are an effect that happened twice. A second row that came before the
//! queue's visibility timeout was over is no redelivery: it was sent twice. One row with several attempts was
//! redelivered; when, its row does not say, but each attempt waited for the timeout first.

use std::collections::BTreeMap;

use super::arrival::{deliveries, is_consumed};
use crate::core::ids::TenantId;
use crate::core::ledger::Message;
use crate::core::status::status_type;
use crate::core::time::{Span, Timestamp};

/// Tenant, topic and key: what a consumer tells messages apart by.
pub type Key<'a> = (&'a TenantId, &'a str, &'a str);

/// By what a message is known again: its key, or its order where it has none.
pub fn key_of(message: &Message) -> Option<Key<'_>> {
    let key = message.message_key.as_deref().or(message.order_id.as_ref().map(|o| o.as_str()))?;
    Some((&message.tenant_id, &message.topic, key))
}

status_type!(
    /// Why messages of one key came more than once.
    Cause {
        /// A second row sooner than the timeout.
        SentTwice = "sent twice",
        /// A second row after the timeout, or later.
        TimedOut = "after the timeout",
        /// One row, several attempts.
        Redelivered = "redelivered",
    }
);

/// Deliveries of one key.
#[derive(Clone, Debug)]
pub struct Redelivery<'a> {
    pub key: Key<'a>,
    /// By (created_at, message_id).
    pub messages: Vec<&'a Message>,
    pub deliveries: u64,
    /// Rows that were worked off: from two on, the effect happened again.
    pub effects: u64,
    /// From the first row to the second; of one row, the shortest in which it can have been delivered so often.
    pub gap: Span,
    pub cause: Cause,
}

impl Redelivery<'_> {
    pub fn first_at(&self) -> Timestamp {
        self.messages[0].created_at
    }

    pub fn has_effect_twice(&self) -> bool {
        self.effects > 1
    }
}

/// What was delivered more than once, by time.
pub fn redeliveries<'a>(
    messages: impl Iterator<Item = &'a Message>,
    visibility: Span,
) -> Vec<Redelivery<'a>> {
    let mut by_key: BTreeMap<Key<'a>, Vec<&'a Message>> = BTreeMap::new();
    for message in messages.filter(|m| deliveries(m) > 0) {
        if let Some(key) = key_of(message) {
            by_key.entry(key).or_default().push(message);
        }
    }
    let mut found: Vec<_> =
        by_key.into_iter().filter_map(|(key, messages)| redelivery(key, messages, visibility)).collect();
    found.sort_by_key(|r| (!r.has_effect_twice(), r.first_at(), r.key));
    found
}

fn redelivery<'a>(key: Key<'a>, mut messages: Vec<&'a Message>, visibility: Span) -> Option<Redelivery<'a>> {
    messages.sort_by_key(|m| (m.created_at, &m.message_id));
    let all: i64 = messages.iter().map(|m| deliveries(m)).sum();
    let deliveries = u64::try_from(all).unwrap_or(0);
    if deliveries < 2 {
        return None;
    }
    let effects = messages.iter().filter(|m| is_consumed(m)).count() as u64;
    let (gap, cause) = match &messages[..] {
        [first, second, ..] => {
            let gap = second.created_at.since(first.created_at);
            (gap, if gap < visibility { Cause::SentTwice } else { Cause::TimedOut })
        }
        _ => (Span::from_micros(visibility.micros().saturating_mul(all - 1)), Cause::Redelivered),
    };
    Some(Redelivery { key, messages, deliveries, effects, gap, cause })
}
