//! What is found in a history, and its words.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::pauses::Pause;
use crate::core::status::status_type;
use crate::core::time::{Span, Timestamp};

status_type!(
    /// What a lock history shows. The first twelve are how a lock lets two in; the others say that it
    /// soon will.
    LockFinding {
        /// Two holders: the lease of the first had ended before its work.
        LeaseOutlived = "LEASE_OUTLIVED",
        /// A lock without expiry whose holder gave no further sign.
        HolderVanished = "HOLDER_VANISHED",
        /// One who no longer held the key deleted the next holder's lock.
        ForeignRelease = "FOREIGN_RELEASE",
        /// Two holders: a foreign release had deleted the lock of the first.
        HeldAfterForeignRelease = "HELD_AFTER_FOREIGN_RELEASE",
        /// The lock was lost when the lock server's replica took over: two holders, or one that found it gone.
        LostAtFailover = "LOST_AT_FAILOVER",
        /// Two holders: the lock was stolen from one who worked on.
        HeldAfterSteal = "HELD_AFTER_STEAL",
        /// Two holders: the lock was given while a lease ran, and nothing in the history says why.
        GrantedTwice = "GRANTED_TWICE",
        /// The lock server let a key go while its lease ran, and nobody is shown to have got it.
        LetGoEarly = "LET_GO_EARLY",
        /// The resource took a write with an older token than it had seen.
        StaleWriteAccepted = "STALE_WRITE_ACCEPTED",
        /// A lock was given with a token that is not greater than an earlier one.
        TokenWentBack = "TOKEN_WENT_BACK",
        /// One who no longer held the key renewed the lease of the next holder.
        ForeignRenewal = "FOREIGN_RENEWAL",
        /// The resource took a write of one who did not hold the key, while another held it.
        ForeignWrite = "FOREIGN_WRITE",
        /// More than 70 % of a lease was used.
        LongHold = "LONG_HOLD",
        /// A release or a renewal was refused, or a release met nothing: whose the lock was did not match.
        OwnerMismatch = "OWNER_MISMATCH",
        /// A renewal came after the lease had ended.
        LateRenewal = "LATE_RENEWAL",
        /// A holder stood still while its lease ended.
        PauseOverLeaseEnd = "PAUSE_OVER_LEASE_END",
        /// A lock without expiry.
        NoExpiry = "NO_EXPIRY",
    }
);

impl LockFinding {
    /// Whether it breaks what a lock is for; the others are warnings.
    pub const fn is_death(self) -> bool {
        !matches!(
            self,
            Self::LongHold
                | Self::OwnerMismatch
                | Self::LateRenewal
                | Self::PauseOverLeaseEnd
                | Self::NoExpiry
        )
    }

    /// Whether two held the key at once, from [`Found::at`] until [`Found::until`].
    pub const fn is_window(self) -> bool {
        matches!(
            self,
            Self::LeaseOutlived
                | Self::HeldAfterForeignRelease
                | Self::LostAtFailover
                | Self::HeldAfterSteal
                | Self::GrantedTwice
        )
    }

    /// What it says, for somebody who does not know its name.
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::LeaseOutlived => "two holders: the lease was shorter than the work",
            Self::HolderVanished => "no expiry, and the holder vanished: nobody gets it any more",
            Self::ForeignRelease => "released by one who no longer held it: the next holder was robbed",
            Self::HeldAfterForeignRelease => "two holders: the first had been robbed of its lock",
            Self::LostAtFailover => "the lock was lost at a failover",
            Self::HeldAfterSteal => "two holders: stolen from one who worked on",
            Self::GrantedTwice => "two holders: given again while a lease ran, and nothing says why",
            Self::LetGoEarly => "the lock server let it go while its lease ran: anybody could have got it",
            Self::StaleWriteAccepted => "a write with an older token was taken: no fencing at the resource",
            Self::TokenWentBack => "a lock was given with a token that is not greater than the last",
            Self::ForeignRenewal => "renewed by one who no longer held it: the next holder's lease",
            Self::ForeignWrite => "a write of one who did not hold the key was taken while another held it",
            Self::LongHold => "more than 70 % of the lease was used",
            Self::OwnerMismatch => {
                "a release or renewal was refused or met nothing: not the owner's any more"
            }
            Self::LateRenewal => "a renewal came after the lease had ended",
            Self::PauseOverLeaseEnd => "the holder stood still while its lease ended",
            Self::NoExpiry => "a lock without expiry: it stays if its holder dies",
        }
    }
}

status_type!(
    /// How sure a finding is.
    Certainty {
        Proven = "proven",
        /// The clocks of two nodes may differ by as much, or one may have let go without a line in the history.
        Possible = "possible",
    }
);

/// Who held a key, or tried to do something with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    pub owner: String,
    pub token: Option<i64>,
    pub node: Option<Arc<str>>,
    /// When it got the lock; `None` where the history does not show that it ever did.
    pub acquired: Option<Timestamp>,
    /// When its lease ends or ended; `None` for one without expiry.
    pub lease_end: Option<Timestamp>,
    /// A pause that was on when the lease ended.
    pub pause: Option<Pause>,
    /// Its first writes under the lock.
    pub writes: Vec<Timestamp>,
    /// When it released the lock, or gave its last sign.
    pub last_sign: Option<Timestamp>,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    pub finding: LockFinding,
    pub certainty: Certainty,
    pub key: String,
    /// The line of the history that shows it.
    pub line: u64,
    pub at: Timestamp,
    /// When two holders were one again.
    pub until: Option<Timestamp>,
    /// How long the two were two, or by how much something came late.
    #[serde(rename = "for_us")]
    pub lasted: Option<Span>,
    /// How much of the lease was used, in percent.
    pub percent: Option<u32>,
    /// Who did it; of two holders the first.
    pub first: Holder,
    /// Of two holders the second, or who was robbed.
    pub second: Option<Holder>,
    /// The greatest token that had been seen.
    pub seen_token: Option<i64>,
}

/// How often something was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    pub proven: u64,
    pub possible: u64,
}

/// Counts of all findings and a bounded number of examples of each.
#[derive(Debug, Default)]
pub struct Collected {
    pub tallies: BTreeMap<LockFinding, Tally>,
    /// Of each the gravest: proven before possible, longer before shorter, earlier before later.
    pub examples: BTreeMap<LockFinding, Vec<Found>>,
}

impl Collected {
    /// Counts a finding, and keeps it if it is among the gravest `most` of its kind.
    pub fn add(&mut self, found: &Found, most: usize) {
        let tally = self.tallies.entry(found.finding).or_default();
        match found.certainty {
            Certainty::Proven => tally.proven += 1,
            Certainty::Possible => tally.possible += 1,
        }
        let examples = self.examples.entry(found.finding).or_default();
        let grave = |f: &Found| (f.certainty == Certainty::Proven, f.lasted, f.percent);
        let place = examples.partition_point(|kept| grave(kept) >= grave(found));
        if place < most {
            examples.insert(place, found.clone());
            examples.truncate(most);
        }
    }

    /// Whether something breaks what a lock is for, beyond what clocks may explain.
    pub fn is_broken(&self) -> bool {
        self.tallies.iter().any(|(finding, tally)| finding.is_death() && tally.proven > 0)
    }
}

/// A holder as people name it: `A (token 41)`.
pub fn in_words(holder: &Holder) -> String {
    match holder.token {
        Some(token) => format!("{} (token {token})", holder.owner),
        None => holder.owner.clone(),
    }
}
