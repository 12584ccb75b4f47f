//! The journal as evidence: each entry carries the hash of the one before it in its chain, and each
//! chain that has ended is named by a head, which carries the hash of the head before it. So an entry
//! that was changed, taken away, put in or put elsewhere is found, and so is a run whose end or whole is
//! gone.
//!
//! # What is hashed
//!
//! SHA-256, written as 64 hex digits, over fields one after the other. A text is its length in bytes as
//! eight bytes, the highest first, and then its bytes in UTF-8. A number is the text of its decimal
//! digits. A field that may be null is the text `null`; or the text `some` and then the field.
//!
//! - An entry: `onefold-journal-1`, the chain, the position in it (1 for the first), the hash of the
//!   entry before (an empty text for the first); then, each as one that may be null, at_us, actor, event,
//!   freeze_id, plan_id, intent_id, ledger, tenant_id, row_id, from_status, to_status, amount_minor,
//!   currency, version and note.
//! - A head: `onefold-head-1`, its position (1 for the first), the hash of the head before (an empty text
//!   for the first), the chain, the position and the hash of its last entry, at_us and actor.
//!
//! Not hashed is `seq`, which the database gives when the entry is written; it grows along a chain.
//!
//! # What cannot be found
//!
//! Whoever may write everything may also compute everything anew. What holds against that is a head that
//! was printed, in a report or by `history verify`, and is kept elsewhere: it fixes all heads before it.

use serde::Serialize;

use super::hash::FieldHash;
use super::time::Timestamp;

/// The event of the entry that ends a chain: nothing comes after it.
pub const ENDED: &str = "ended";

/// What an entry says, as names and values, in the order in which they are hashed.
pub type Content = Vec<(&'static str, Option<String>)>;

/// Where a chain ends so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tip {
    pub chain: String,
    /// Of the last entry; 0 where there is none yet.
    pub position: i64,
    /// Of the last entry; empty where there is none yet.
    pub hash: String,
}

/// Where an entry stands in its chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Link {
    pub chain: String,
    pub position: i64,
    pub previous_hash: String,
    pub hash: String,
}

impl Tip {
    /// Of a chain without entries.
    pub fn begin(chain: String) -> Self {
        Self { chain, position: 0, hash: String::new() }
    }

    /// The place of the next entry.
    pub fn next(&self, content: &Content) -> Link {
        let position = self.position.saturating_add(1);
        Link {
            chain: self.chain.clone(),
            position,
            previous_hash: self.hash.clone(),
            hash: entry_hash(&self.chain, position, &self.hash, content),
        }
    }
}

impl From<Link> for Tip {
    fn from(link: Link) -> Self {
        Self { chain: link.chain, position: link.position, hash: link.hash }
    }
}

/// The hash of an entry, 64 hex digits.
pub fn entry_hash(chain: &str, position: i64, previous_hash: &str, content: &Content) -> String {
    let head = FieldHash::new().text("onefold-journal-1").text(chain).number(position).text(previous_hash);
    content.iter().fold(head, |hash, (_, value)| hash.maybe(value.as_deref())).hex()
}

/// That a chain has ended, and with what; the heads are a chain of their own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Head {
    pub position: i64,
    pub previous_hash: String,
    pub hash: String,
    pub chain: String,
    pub last_position: i64,
    pub last_hash: String,
    pub at: Timestamp,
    pub actor: String,
}

impl Head {
    /// The head of a chain that has ended, after the newest head that there is.
    pub fn after(newest: Option<&Self>, tip: &Tip, at: Timestamp, actor: &str) -> Self {
        let (position, previous_hash) = newest.map_or((0, ""), |head| (head.position, &head.hash));
        let mut head = Self {
            position: position.saturating_add(1),
            previous_hash: previous_hash.to_owned(),
            hash: String::new(),
            chain: tip.chain.clone(),
            last_position: tip.position,
            last_hash: tip.hash.clone(),
            at,
            actor: actor.to_owned(),
        };
        head.hash = head.compute_hash();
        head
    }

    fn compute_hash(&self) -> String {
        FieldHash::new()
            .text("onefold-head-1")
            .number(self.position)
            .text(&self.previous_hash)
            .text(&self.chain)
            .number(self.last_position)
            .text(&self.last_hash)
            .number(self.at.micros())
            .text(&self.actor)
            .hex()
    }
}

/// An entry as it is found in the journal.
#[derive(Clone, Debug)]
pub struct Found {
    pub seq: i64,
    pub link: Link,
    /// The hash of what it says, computed anew; empty where it says what no entry can.
    pub computed: String,
    pub is_end: bool,
    pub at: Option<Timestamp>,
    pub actor: String,
}

/// What does not fit, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Misfit {
    /// The chain of an entry; `None` for the heads, and for an entry that has none.
    pub chain: Option<String>,
    pub position: i64,
    /// Of the entry, where it is there.
    pub seq: Option<i64>,
    /// What the journal ought to tell of, where that is what does not fit.
    pub of: Option<String>,
    pub why: String,
}

impl Misfit {
    /// Of an entry of a chain, or of the place where it should be.
    pub fn entry(chain: Option<String>, position: i64, seq: Option<i64>, why: impl Into<String>) -> Self {
        Self { chain, position, seq, of: None, why: why.into() }
    }

    /// Of a head.
    pub fn head(position: i64, why: impl Into<String>) -> Self {
        Self::entry(None, position, None, why)
    }

    /// What another table says, and the journal does not tell of.
    pub fn untold(of: impl Into<String>) -> Self {
        Self { of: Some(of.into()), ..Self::entry(None, 0, None, "no entry tells of it") }
    }
}

/// A run of which no end is recorded: it goes on, or it was killed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unfinished {
    pub chain: String,
    pub entries: i64,
    /// Of its last entry.
    pub at: Option<Timestamp>,
    pub actor: String,
}

/// What a walk over the journal has found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Verified {
    /// Entries that stand in chains.
    pub entries: i64,
    /// Of these, those that a head covers: what is gone of them is noticed.
    pub covered: i64,
    /// Entries from before there were chains.
    pub not_chained: i64,
    pub chains: i64,
    pub heads: i64,
    pub newest_head: Option<Head>,
    pub unfinished_runs: i64,
    /// The first of them.
    pub unfinished: Vec<Unfinished>,
    pub misfits_found: i64,
    /// The first of them.
    pub misfits: Vec<Misfit>,
    /// What ought to refuse that anything is changed, and is not there or cannot be seen by this user.
    pub triggers_missing: Vec<String>,
}

/// How many misfits and unfinished runs are named; all are counted.
pub const NAMED: usize = 20;

impl Verified {
    /// Whether everything fits.
    #[must_use]
    pub fn fits(&self) -> bool {
        self.misfits_found == 0
    }

    pub fn misfit(&mut self, misfit: Misfit) {
        self.misfits_found += 1;
        if self.misfits.len() < NAMED {
            self.misfits.push(misfit);
        }
    }
}

/// Verifies heads in the order of their positions, then entries in the order of chain and position. It
/// holds one entry and one head.
#[derive(Debug, Default)]
pub struct Walk {
    pub verified: Verified,
    current: Option<Current>,
}

/// The chain that is being walked.
#[derive(Debug)]
struct Current {
    tip: Tip,
    seq: i64,
    at: Option<Timestamp>,
    actor: String,
    is_ended: bool,
    /// One misfit a chain is told: what comes after it follows from it.
    is_broken: bool,
    entries: i64,
}

impl Walk {
    /// The next head.
    pub fn head(&mut self, head: Head) {
        let (position, hash) =
            self.verified.newest_head.as_ref().map_or((0, ""), |newest| (newest.position, &newest.hash));
        let why = if head.position != position.saturating_add(1) {
            Some(format!("a head is missing: after {position} comes {}", head.position))
        } else if head.previous_hash != *hash {
            Some("it does not carry the hash of the head before it".to_owned())
        } else if head.hash != head.compute_hash() {
            Some("what it says does not fit its hash".to_owned())
        } else {
            None
        };
        let position = head.position;
        self.verified.heads += 1;
        self.verified.newest_head = Some(head);
        if let Some(why) = why {
            self.verified.misfit(Misfit::head(position, why));
        }
    }

    /// The chain whose entries are being walked.
    pub fn chain(&self) -> Option<&str> {
        self.current.as_ref().map(|c| c.tip.chain.as_str())
    }

    /// Whether the chain that is being walked has an entry that ends it.
    pub fn is_ended(&self) -> bool {
        self.current.as_ref().is_some_and(|c| c.is_ended)
    }

    /// The next entry. One of another chain comes after [`Walk::close`].
    pub fn entry(&mut self, found: Found) {
        let Found { seq, link, computed, is_end, at, actor } = found;
        self.verified.entries += 1;
        let current = self.current.get_or_insert_with(|| Current {
            tip: Tip::begin(link.chain.clone()),
            seq: i64::MIN,
            at: None,
            actor: String::new(),
            is_ended: false,
            is_broken: false,
            entries: 0,
        });
        let expected = current.tip.position.saturating_add(1);
        let why = if current.is_ended {
            Some("it comes after the end of its run".to_owned())
        } else if link.position != expected {
            Some(match link.position.saturating_sub(expected) {
                ..=0 => format!("its position is not {expected}"),
                1 => format!("the entry at position {expected} is missing"),
                _ => format!("the entries at positions {expected} to {} are missing", link.position - 1),
            })
        } else if link.previous_hash != current.tip.hash {
            Some("it does not carry the hash of the entry before it".to_owned())
        } else if link.hash != computed {
            Some("what it says does not fit its hash".to_owned())
        } else if seq <= current.seq {
            Some(format!("its number is not above {}, that of the entry before it", current.seq))
        } else {
            None
        };
        let misfit = why.filter(|_| !current.is_broken).map(|why| {
            current.is_broken = true;
            Misfit::entry(Some(link.chain.clone()), link.position, Some(seq), why)
        });
        current.entries += 1;
        (current.seq, current.at, current.actor) = (seq, at, actor);
        current.is_ended |= is_end;
        current.tip = link.into();
        if let Some(misfit) = misfit {
            self.verified.misfit(misfit);
        }
    }

    /// The chain that is being walked has no more entries; its head, where it has one.
    pub fn close(&mut self, head: Option<&Head>) {
        let Some(current) = self.current.take() else { return };
        let Current { tip, seq, at, actor, is_ended, is_broken, entries } = current;
        self.verified.chains += 1;
        let Some(head) = head else {
            if is_ended && !is_broken {
                let why = "its run has ended, and the head that says so is missing".to_owned();
                let (chain, position) = (Some(tip.chain), tip.position);
                self.verified.misfit(Misfit::entry(chain, position, Some(seq), why));
            } else {
                self.verified.unfinished_runs += 1;
                if self.verified.unfinished.len() < NAMED {
                    self.verified.unfinished.push(Unfinished { chain: tip.chain, entries, at, actor });
                }
            }
            return;
        };
        self.verified.covered += entries;
        let why = match head.last_position.saturating_sub(tip.position) {
            0 if head.last_hash == tip.hash => return,
            0 => format!("it is not the entry that head {} says the run ended with", head.position),
            1.. => format!(
                "its tail is missing: head {} says that the run ended at position {}, and it ends at {}",
                head.position, head.last_position, tip.position
            ),
            _ => {
                format!("head {} says that the run ended at position {}", head.position, head.last_position)
            }
        };
        if !is_broken {
            let (chain, position) = (Some(tip.chain), tip.position);
            self.verified.misfit(Misfit::entry(chain, position, Some(seq), why));
        }
    }

    /// A head whose chain has no entry at all.
    pub fn gone(&mut self, head: &Head) {
        let why = format!(
            "the whole run is missing: head {} says that it ended at position {}",
            head.position, head.last_position
        );
        let (chain, position) = (Some(head.chain.clone()), head.last_position);
        self.verified.misfit(Misfit::entry(chain, position, None, why));
    }
}
