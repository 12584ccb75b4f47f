//! The state machine of an idempotency key: one intent, one result, however often it is asked for.
//!
//! What a request does depends on the key's record alone, read with the time of the database that
//! keeps it: [`decide`] is the table, row by row, and [`ending`] says what a run that has ended makes of
//! its key. Nothing here waits, writes or runs anything.

use serde::{Deserialize, Serialize};

use super::hash::FieldHash;
use super::ids::{IdempotencyKey, RowId, TenantId};
use super::status::{Ledger, status_type};
use super::time::{Span, Timestamp};

status_type!(
    /// Where a key stands. A key that nobody has used has no record.
    KeyState {
        /// Somebody holds it, under a lease and a fencing token.
        Processing = "PROCESSING",
        Succeeded = "SUCCEEDED",
        /// It failed, and may be tried again under the same key.
        FailedRetryable = "FAILED_RETRYABLE",
        /// It failed for good.
        Failed = "FAILED",
        /// It may have happened, and nobody knows: a query or a person must say before anything runs.
        Unknown = "UNKNOWN",
    }
);

impl KeyState {
    /// Whether nothing runs under the key any more: its result is given again.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }

    pub fn may_become(self, to: Self) -> bool {
        KEY_MOVES.contains(&(self, to))
    }
}

/// Every legal move; PROCESSING to itself is a take-over by another owner under the next token.
pub const KEY_MOVES: &[(KeyState, KeyState)] = {
    use KeyState::*;
    &[
        (Processing, Processing),
        (Processing, Succeeded),
        (Processing, FailedRetryable),
        (Processing, Failed),
        (Processing, Unknown),
        (FailedRetryable, Processing),
        (Unknown, Processing),
        (Unknown, Succeeded),
        (Unknown, FailedRetryable),
        (Unknown, Failed),
    ]
};

/// What a request asks for, as a digest of each of its parts: two requests can be told apart, and the
/// parts in which they differ named, while no value of them is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RequestDigest(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Part {
    name: String,
    /// 64 hex digits.
    sha256: String,
}

impl RequestDigest {
    /// Adds a part; null, such as a variable that is not set, is told from empty. The key goes into the
    /// digest, so that equal values under two keys do not look equal.
    #[must_use]
    pub fn part(mut self, key: &IdempotencyKey, name: &str, value: Option<&[u8]>) -> Self {
        let hash = FieldHash::new().text(key.as_str()).text(name);
        let hash = match value {
            Some(value) => hash.text("some").bytes(value),
            None => hash.text("null"),
        };
        self.0.push(Part { name: name.to_owned(), sha256: hash.hex() });
        self
    }

    /// One of which the whole alone is kept: its parts can be named no more.
    pub fn folded(whole: String) -> Self {
        Self(vec![Part { name: String::new(), sha256: whole }])
    }

    fn is_folded(&self) -> bool {
        matches!(&self.0[..], [part] if part.name.is_empty())
    }

    /// The names of its parts, in order; none where the whole alone is kept.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|part| part.name.as_str()).filter(|name| !name.is_empty())
    }

    /// One digest over all parts.
    pub fn whole(&self) -> String {
        match &self.0[..] {
            [part] if part.name.is_empty() => return part.sha256.clone(),
            _ => {}
        }
        self.0.iter().fold(FieldHash::new(), |hash, part| hash.text(&part.name).text(&part.sha256)).hex()
    }

    /// Whether both are of the same request.
    pub fn is_of(&self, other: &Self) -> bool {
        if self.is_folded() || other.is_folded() {
            return self.whole() == other.whole();
        }
        self.differing(other).is_empty()
    }

    /// The names of the parts that only one of the two has, or that differ; none where they are equal, or
    /// where of one the whole alone is kept.
    pub fn differing(&self, other: &Self) -> Vec<String> {
        if self.is_folded() != other.is_folded() {
            return Vec::new();
        }
        let lacks = |of: &Self, part: &&Part| !of.0.contains(part);
        let mut names: Vec<String> = Vec::new();
        let ours = self.0.iter().filter(|part| lacks(other, part));
        for part in ours.chain(other.0.iter().filter(|part| lacks(self, part))) {
            if !names.contains(&part.name) {
                names.push(part.name.clone());
            }
        }
        names
    }
}

/// What is kept of a key. Times are those of the database's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRecord {
    pub tenant_id: TenantId,
    pub key: IdempotencyKey,
    pub digest: RequestDigest,
    pub state: KeyState,
    /// Who took it last: `ACTOR#HOST/PID-RANDOM`.
    pub owner: String,
    pub lease_until: Timestamp,
    /// The fencing token: grows by one whenever the key is taken, so a smaller one has been replaced.
    pub token: i64,
    /// Grows with every change but a renewed lease and what [`Retention`] drops; what is compared when it is taken.
    pub version: i64,
    /// Whether the effect may have begun under this token.
    pub may_have_run: bool,
    /// What the result is known by when its body is gone.
    pub result_ref: Option<String>,
    /// The exit code that the result is given again with.
    pub exit_code: Option<u8>,
    /// The result itself, as whoever ran it stored it.
    pub result: Option<String>,
    /// Why it stands where it stands, where there is more to say.
    pub note: Option<String>,
    /// How often the effect was begun.
    pub attempts: i64,
    pub first_seen: Timestamp,
    pub last_seen: Timestamp,
    /// How long after it was last seen the whole result is kept at least.
    pub keep_for: Span,
    pub retention: Retention,
}

status_type!(
    /// How much of a record is kept where it is looked for first.
    Retention {
        /// All of it.
        Hot = "hot",
        /// All but the result's body.
        Replay = "replay",
        /// The whole digest, and no longer its parts.
        Dispute = "dispute",
        /// A fingerprint, elsewhere: [`Archived`].
        Archive = "archive",
    }
);

/// An order or a payment that a key is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Named {
    pub ledger: Ledger,
    pub row_id: RowId,
}

impl Named {
    pub fn order(id: &str) -> Self {
        Self { ledger: Ledger::Orders, row_id: id.into() }
    }

    pub fn payment(id: &str) -> Self {
        Self { ledger: Ledger::Payments, row_id: id.into() }
    }
}

/// What is left of a key that is done, when its record is archived. Times are those of the database's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Archived {
    /// Of the whole request.
    pub digest: String,
    pub state: KeyState,
    pub exit_code: Option<u8>,
    pub result_ref: Option<String>,
    pub first_seen: Timestamp,
    pub last_seen: Timestamp,
    pub archived_at: Timestamp,
}

/// What is known of a key that was used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Known {
    Record(KeyRecord),
    Archived(Archived),
}

/// What a request does about its key.
#[must_use]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Nobody has it: insert it as PROCESSING, before any effect.
    Take,
    /// Somebody is at it: wait for so long at most, or say so; run nothing.
    StillProcessing { holder: String, left: Span },
    /// Its owner's lease is over, and nothing had begun under it: take it by version, with the next
    /// fencing token, and run.
    TakeOver,
    /// Its owner's lease is over, and what it began may have happened: take it by version, with the next
    /// fencing token, so that the old owner completes nothing; it is UNKNOWN from then on.
    FenceOff,
    /// Give the first result again.
    ReturnResult,
    /// Take the right to retry, by version, with the next fencing token, and run.
    Retry,
    /// Ask whether it happened; run nothing before that is known.
    SettleFirst,
    /// It is done, and archived: give the first code again, and run nothing.
    ReturnCode,
    /// The same key for another request, which differs in these parts; none can be named where the whole digest
    /// alone is kept.
    Refuse { differing: Vec<String> },
}

/// What a request with this digest does about an archived key.
pub fn decide_archived(archived: &Archived, digest: &RequestDigest) -> Decision {
    if digest.whole() == archived.digest {
        Decision::ReturnCode
    } else {
        Decision::Refuse { differing: Vec::new() }
    }
}

/// What a request with this digest does, given the key's record and the database's time.
pub fn decide(record: Option<&KeyRecord>, digest: &RequestDigest, now: Timestamp) -> Decision {
    let Some(record) = record else { return Decision::Take };
    if !digest.is_of(&record.digest) {
        return Decision::Refuse { differing: digest.differing(&record.digest) };
    }
    match record.state {
        KeyState::Processing if now < record.lease_until => {
            Decision::StillProcessing { holder: record.owner.clone(), left: record.lease_until.since(now) }
        }
        KeyState::Processing if record.may_have_run => Decision::FenceOff,
        KeyState::Processing => Decision::TakeOver,
        KeyState::Succeeded | KeyState::Failed => Decision::ReturnResult,
        KeyState::FailedRetryable => Decision::Retry,
        KeyState::Unknown => Decision::SettleFirst,
    }
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Exited(u8),
    /// By a signal, its number.
    Killed(i32),
    TimedOut,
    /// The lease could not be renewed in time.
    LeaseLost,
}

/// What a run that ended so makes of its key; `retryable` are the exit codes that say "try again".
///
/// A shell ends with 128 and the signal's number where a command of it was killed, so such a code says as
/// little about the effect as a signal does.
pub fn ending(ending: Ending, retryable: &[u8]) -> KeyState {
    match ending {
        Ending::Exited(0) => KeyState::Succeeded,
        Ending::Exited(code) if retryable.contains(&code) => KeyState::FailedRetryable,
        Ending::Exited(129..=159) => KeyState::Unknown,
        Ending::Exited(_) => KeyState::Failed,
        Ending::Killed(_) | Ending::TimedOut | Ending::LeaseLost => KeyState::Unknown,
    }
}
