//! When holders stood still: garbage collection, a stopped virtual machine, a suspended laptop.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::core::time::{Span, Timestamp};

/// A holder stood still.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    pub at: Timestamp,
    #[serde(rename = "lasted_us")]
    pub lasted: Span,
}

/// How many of one owner or node are remembered, and how many in all: the newest.
const OF_ONE: usize = 64;
const IN_ALL: usize = 1 << 16;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Who {
    Owner(String),
    Node(Arc<str>),
}

/// A pause, and the node that told of it.
#[derive(Debug)]
struct Stood {
    pause: Pause,
    node: Option<Arc<str>>,
}

/// The newest pauses.
#[derive(Debug, Default)]
pub(super) struct Pauses {
    of: HashMap<Who, VecDeque<Stood>>,
    /// Whose they are and when they began, the oldest first.
    whose: VecDeque<(Who, Timestamp)>,
}

impl Pauses {
    /// Remembers a pause: an owner's, or where none is named, a node's.
    pub fn add(&mut self, owner: Option<&String>, node: Option<&Arc<str>>, pause: Pause) {
        let who = match (owner, node) {
            (Some(owner), _) => Who::Owner(owner.clone()),
            (None, Some(node)) => Who::Node(node.clone()),
            (None, None) => return,
        };
        let of_one = self.of.entry(who.clone()).or_default();
        of_one.push_back(Stood { pause, node: node.cloned() });
        if of_one.len() > OF_ONE {
            of_one.pop_front();
        }
        self.whose.push_back((who, pause.at));
        if self.whose.len() > IN_ALL
            && let Some((who, at)) = self.whose.pop_front()
            && let Some(pauses) = self.of.get_mut(&who)
        {
            pauses.retain(|stood| stood.pause.at > at);
            if pauses.is_empty() {
                self.of.remove(&who);
            }
        }
    }

    /// The longest pause of a holder that was on at an instant.
    pub fn over(&self, owner: &str, node: Option<&Arc<str>>, at: Timestamp) -> Option<Pause> {
        if self.of.is_empty() {
            return None;
        }
        let of_owner = self.of.get(&Who::Owner(owner.to_owned()));
        let of_node = node.and_then(|node| self.of.get(&Who::Node(node.clone())));
        // Holders of one name on two nodes do not stand still together.
        let is_there = |stood: &&Stood| stood.node.is_none() || node.is_none() || stood.node.as_ref() == node;
        let all = of_owner.into_iter().chain(of_node).flatten().filter(is_there).map(|stood| stood.pause);
        all.filter(|p| p.at <= at && at <= p.at.plus(p.lasted)).max_by_key(|p| p.lasted)
    }
}
