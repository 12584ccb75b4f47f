//! How much is kept of an idempotency key that is done, and for how long after it was last seen: nothing is
//! forgotten that can still return. What is dropped, tier by tier:
//!
//! | tier | kept |
//! |---|---|
//! | hot | all: the full result |
//! | replay | all but the result's body, which its reference or digest stands for |
//! | dispute | key, whole digest, final state and code, what it is about, first seen; no parts of the request |
//! | archive | a fingerprint of these in a table of its own; never run again |

use std::collections::HashMap;
use std::fmt;

use serde::Serialize;

use super::hash::FieldHash;
use super::idempotency::{KeyState, Named, Retention};
use super::ids::{IdempotencyKey, RowId, TenantId};
use super::plan::PlannedIntent;
use super::status::{Ledger, status_type};
use super::time::{Span, Timestamp};

/// What an operator says of the longest that each may bring a request back, and of how long what is kept. All
/// spans count from when the key was last seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RetentionPolicy {
    /// How long a client retries.
    #[serde(rename = "client_retry_us")]
    pub client_retry: Span,
    /// How long a queue redelivers.
    #[serde(rename = "queue_us")]
    pub queue: Span,
    /// How long anything else may bring a request back; zero where nothing does.
    #[serde(rename = "longest_replay_us")]
    pub longest_replay: Span,
    #[serde(rename = "replay_us")]
    pub replay: Span,
    #[serde(rename = "dispute_us")]
    pub dispute: Span,
    #[serde(rename = "archive_us")]
    pub archive: Span,
}

/// A window that ends before what it must outlast.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooShort {
    /// The flag to raise.
    pub flag: &'static str,
    pub window: Span,
    pub needed: Span,
    /// What it must outlast.
    pub because: &'static str,
}

impl fmt::Display for TooShort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} is shorter than {}, {}", self.flag, self.window, self.because, self.needed)
    }
}

impl RetentionPolicy {
    /// How long the full result is kept: for as long as a client may retry or a queue redeliver.
    pub fn hot(&self) -> Span {
        self.client_retry.max(self.queue)
    }

    /// Until what age a tier holds a record.
    pub fn window(&self, tier: Retention) -> Span {
        match tier {
            Retention::Hot => self.hot(),
            Retention::Replay => self.replay,
            Retention::Dispute => self.dispute,
            Retention::Archive => self.archive,
        }
    }

    /// The first window that ends before something can still return, or before the tier above it does.
    pub fn too_short(&self) -> Option<TooShort> {
        let rows = [
            ("--replay", self.replay, self.client_retry, "a client retries"),
            ("--replay", self.replay, self.queue, "a queue redelivers"),
            ("--replay", self.replay, self.longest_replay, "the longest replay"),
            ("--dispute", self.dispute, self.replay, "the replay window"),
            ("--archive", self.archive, self.dispute, "the dispute window"),
        ];
        rows.into_iter()
            .find(|(_, window, needed, _)| window < needed)
            .map(|(flag, window, needed, because)| TooShort { flag, window, needed, because })
    }

    /// The tiers that keep less long than by another policy.
    pub fn shorter_than(&self, other: &Self) -> Vec<Retention> {
        Retention::ALL.iter().copied().filter(|tier| self.window(*tier) < other.window(*tier)).collect()
    }

    /// Which tier holds what was last seen so long ago.
    pub fn tier(&self, age: Span) -> Retention {
        let above = [Retention::Hot, Retention::Replay, Retention::Dispute];
        above.into_iter().find(|tier| age < self.window(*tier)).unwrap_or(Retention::Archive)
    }

    /// What becomes of a record, given what open plans and unfinished steps name of it.
    pub fn judge(&self, record: &Aging, tie: Option<Why>, now: Timestamp) -> Verdict {
        if !record.state.is_terminal() {
            return Verdict::Stays(Why::NotEnded);
        }
        let age = now.since(record.last_seen);
        let due = self.tier(age);
        if due <= record.retention {
            return Verdict::Stays(Why::Window);
        }
        if record.retention == Retention::Hot && age < record.keep_for {
            return Verdict::Stays(Why::KeepFor);
        }
        tie.map_or(Verdict::Moves(due), Verdict::Stays)
    }
}

/// What decides of a record how much of it is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aging {
    pub state: KeyState,
    pub retention: Retention,
    pub last_seen: Timestamp,
    /// How long after it was last seen its full result is kept at least.
    pub keep_for: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Stays(Why),
    /// Down to this tier, past those between.
    Moves(Retention),
}

status_type!(
    /// Why a record stays in its tier.
    Why {
        /// Its tier's window is not over.
        Window = "window",
        /// It was to be kept for longer when it was made.
        KeepFor = "keep-for",
        /// It has not ended, may be tried again, or nobody knows how it ended.
        NotEnded = "not-ended",
        /// An open plan names its order, payment or key.
        OpenPlan = "open-plan",
        /// A step that has not ended is about its order or payment.
        UnfinishedStep = "unfinished-step",
        /// It was asked for, or moved by another, in this very moment.
        Meanwhile = "meanwhile",
        /// The archive has a fingerprint of its key already: somebody ran it without asking there.
        ArchivedBefore = "archived-before",
    }
);

/// Rows and keys that open plans and unfinished steps name, each with the graver reason.
#[derive(Clone, Debug, Default)]
pub struct Ties {
    rows: HashMap<(TenantId, Ledger, RowId), Why>,
    keys: HashMap<(TenantId, IdempotencyKey), Why>,
}

impl Ties {
    pub fn tie_row(&mut self, tenant_id: &TenantId, ledger: Ledger, row_id: RowId, why: Why) {
        let tied = self.rows.entry((tenant_id.clone(), ledger, row_id)).or_insert(why);
        *tied = why.max(*tied);
    }

    /// Every row and key that an intent names.
    pub fn tie_intent(&mut self, intent: &PlannedIntent, why: Why) {
        let orders = intent.orders.iter().map(|id| (Ledger::Orders, RowId::from(id)));
        let orphans = intent.orphans.iter().map(|(ledger, id)| (*ledger, id.clone()));
        let seen = intent.seen.iter().map(|row| (row.ledger, row.id.clone()));
        let steps = intent.steps.iter().map(|step| (step.ledger, step.id.clone()));
        for (ledger, row_id) in orders.chain(orphans).chain(seen).chain(steps) {
            self.tie_row(&intent.tenant_id, ledger, row_id, why);
        }
        for key in intent.evidence.iter().filter_map(|order| order.idempotency_key.as_ref()) {
            let tied = self.keys.entry((intent.tenant_id.clone(), key.clone())).or_insert(why);
            *tied = why.max(*tied);
        }
    }

    /// Why a key that is about these rows stays, if it does.
    pub fn of(&self, tenant_id: &TenantId, key: &IdempotencyKey, names: &[Named]) -> Option<Why> {
        let by_row = names
            .iter()
            .filter_map(|name| self.rows.get(&(tenant_id.clone(), name.ledger, name.row_id.clone())));
        by_row.chain(self.keys.get(&(tenant_id.clone(), key.clone()))).copied().max()
    }
}

/// What the archive calls a key: 64 hex digits.
pub fn key_sha256(tenant_id: &TenantId, key: &IdempotencyKey) -> String {
    FieldHash::new().text(tenant_id.as_str()).text(key.as_str()).hex()
}
