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
    let mut yet: HashMap<&str, Yet> = HashMap::new();
    for event in &left {
        yet.entry(event.owner.as_deref().unwrap_or_default()).or_default().add(event, 1);
    }
    while let Some((at, _)) = left.iter().enumerate().min_by_key(|(_, event)| rank(state, event, &yet)) {
        let event = left.swap_remove(at);
        yet.entry(event.owner.as_deref().unwrap_or_default()).or_default().add(event, -1);
        state.take(event, around);
    }
}

/// How often an owner gets the key and lets it go within what is left of the instant.
#[derive(Clone, Copy, Default)]
struct Yet {
    gets: i32,
    ends: i32,
}

impl Yet {
    fn add(&mut self, event: &Event, times: i32) {
        match event.kind {
            _ if is_grant(event) => self.gets += times,
            EventKind::Release => self.ends += times,
            _ => {}
        }
    }
}

fn is_grant(event: &Event) -> bool {
    matches!(event.kind, EventKind::Acquire | EventKind::Steal) && event.done
}

/// A failover; then what the holder does, its end last; then who gets the key, by token, and of those without one
/// whoever lets go within the instant; then what is done by those who do not hold it, and by those who let go what they
/// get within the instant, where the lease that they had is over.
fn rank<'e>(state: &KeyState, event: &'e Event, yet: &HashMap<&str, Yet>) -> Rank<'e> {
    let owner = event.owner.as_deref();
    let of_owner = owner.and_then(|owner| yet.get(owner)).copied().unwrap_or_default();
    let turn = match event.kind {
        EventKind::Failover => 0,
        _ if is_grant(event) => 4,
        EventKind::Release if of_owner.gets > 0 && state.has_lapsed(event.at) => 5,
        EventKind::Write if state.is_of_holder(event) => 1,
        EventKind::Renew if state.is_of_holder(event) => 2,
        EventKind::Release | EventKind::Expire if state.is_of_holder(event) => 3,
        _ => 5,
    };
    let stays = is_grant(event) && of_owner.ends == 0;
    (turn, event.token.unwrap_or(i64::MAX), stays, event.kind, owner, event.line)
}

type Rank<'e> = (u8, i64, bool, EventKind, Option<&'e str>, u64);
