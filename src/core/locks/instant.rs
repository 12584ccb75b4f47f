//! Which of the events of one instant came first. A clock's tick is longer than it takes to hand a lock over, a table has
//! no order, and lines of several nodes are mixed by chance. So the order that is taken is always the one in which the
//! lock did what it is for: whoever holds the key ends its work before the next one gets it.

use std::collections::HashMap;

use super::event::{Event, EventKind};
use super::key::{Around, KeyState};

/// Gives the events of one key and one instant to its state, the first first.
pub(super) fn take(state: &mut KeyState, events: &[Event], around: &mut Around<'_>) {
    if let [event] = events {
        return state.take(event, around);
    }
    let mut left: Vec<_> = events.iter().collect();
    // How often each owner lets go within the instant.
    let mut ends: HashMap<&str, usize> = HashMap::new();
    for event in left.iter().filter(|event| event.kind == EventKind::Release) {
        *ends.entry(event.owner.as_deref().unwrap_or_default()).or_default() += 1;
    }
    while let Some((at, _)) = left.iter().enumerate().min_by_key(|(_, event)| rank(state, event, &ends)) {
        let event = left.swap_remove(at);
        if event.kind == EventKind::Release
            && let Some(n) = event.owner.as_deref().and_then(|owner| ends.get_mut(owner))
        {
            *n -= 1;
        }
        state.take(event, around);
    }
}

/// A failover; then what the holder does, its end last; then who gets the key, by token, and of those without one
/// whoever lets go within the instant; then what is done by those who do not hold it.
fn rank<'e>(state: &KeyState, event: &'e Event, ends: &HashMap<&str, usize>) -> Rank<'e> {
    let owner = event.owner.as_deref();
    let is_grant = matches!(event.kind, EventKind::Acquire | EventKind::Steal) && event.done;
    let turn = match event.kind {
        EventKind::Failover => 0,
        _ if is_grant => 4,
        EventKind::Write if state.is_of_holder(event) => 1,
        EventKind::Renew if state.is_of_holder(event) => 2,
        EventKind::Release | EventKind::Expire if state.is_of_holder(event) => 3,
        _ => 5,
    };
    let stays = is_grant && owner.and_then(|owner| ends.get(owner)).is_none_or(|n| *n == 0);
    (turn, event.token.unwrap_or(i64::MAX), stays, event.kind, owner, event.line)
}

type Rank<'e> = (u8, i64, bool, EventKind, Option<&'e str>, u64);
