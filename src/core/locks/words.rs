//! Findings of a lock history in sentences.

use super::found::{Certainty, Found, Holder, LockFinding, in_words};

impl Found {
    /// What happened, who was in it and how long.
    pub fn in_words(&self) -> String {
        // Of two of one name, what tells them apart is their node, unless both have tokens.
        let is_one_name = self.second.as_ref().is_some_and(|second| {
            second.owner == self.first.owner && (second.token.is_none() || self.first.token.is_none())
        });
        let in_words = |holder: &Holder| match &holder.node {
            Some(node) if is_one_name => format!("{} on {node}", in_words(holder)),
            _ => in_words(holder),
        };
        let first = in_words(&self.first);
        let second = self.second.as_ref().map(in_words).unwrap_or_default();
        let lasted = self.lasted.map(|span| span.to_string()).unwrap_or_default();
        let percent = self.percent.unwrap_or_default();
        let seen = self.seen_token.map(|token| token.to_string()).unwrap_or_default();
        match self.finding {
            LockFinding::LeaseOutlived => {
                let ended = lease_ran(&self.first);
                format!("{first} was still at work {lasted} after {second} had got it; its lease {ended}")
            }
            LockFinding::HolderVanished => {
                format!("{first} gave no sign for {lasted}, and the lock does not expire")
            }
            LockFinding::ForeignRelease => {
                format!("{first} deleted the lock of {second}; {}", never_or_ran(&self.first))
            }
            LockFinding::HeldAfterForeignRelease => {
                format!("{first} had been robbed and did not know; {second} held it, too, for {lasted}")
            }
            LockFinding::LostAtFailover if self.second.is_none() => match self.certainty {
                Certainty::Proven => {
                    format!(
                        "{first} found its lock gone after a failover; its lease {}",
                        lease_ran(&self.first)
                    )
                }
                Certainty::Possible => format!(
                    "{first} was not heard of after a failover: its lock may be lost; its lease {}",
                    lease_ran(&self.first)
                ),
            },
            LockFinding::LetGoEarly if self.certainty == Certainty::Possible => match self.lasted {
                Some(left) => {
                    format!("the lock of {first} may have been let go {left} before its lease ended")
                }
                None => format!("the lock of {first} may have been let go, though it does not expire"),
            },
            LockFinding::LetGoEarly if self.lasted.is_none() => {
                format!("the lock server let it go, though the lock of {first} does not expire")
            }
            LockFinding::LetGoEarly => {
                format!("the lock server let it go {lasted} before the lease of {first} ended")
            }
            LockFinding::LostAtFailover => {
                format!("{first} and {second} both held it for {lasted}: a failover had lost the lock")
            }
            LockFinding::HeldAfterSteal => {
                format!("{first} worked on for {lasted} after {second} had stolen it")
            }
            LockFinding::GrantedTwice if self.first.lease_end.is_none() => {
                format!(
                    "{second} got it while {first} held it without expiry; both may have held it for {lasted}"
                )
            }
            LockFinding::GrantedTwice => {
                format!("{second} got it while the lease of {first} ran; both held it for {lasted}")
            }
            LockFinding::StaleWriteAccepted => {
                format!("a write of {first} was taken, though token {seen} had written before")
            }
            LockFinding::TokenWentBack => {
                format!("{first} got the lock, though token {seen} was given before")
            }
            LockFinding::ForeignRenewal => format!("{first} renewed the lock that {second} held"),
            LockFinding::ForeignWrite => {
                format!("{first} wrote while {second} held it; {}", never_or_ran(&self.first))
            }
            LockFinding::LongHold => format!("{first} used {percent} % of its lease"),
            LockFinding::OwnerMismatch => {
                format!("{first} released or renewed what was not its own; {}", never_or_ran(&self.first))
            }
            LockFinding::LateRenewal => format!("{first} renewed {lasted} after its lease had ended"),
            LockFinding::PauseOverLeaseEnd => {
                format!("{first} stood still for {lasted} while its lease ended")
            }
            LockFinding::NoExpiry => format!("{first} took it without expiry"),
        }
    }
}

/// `ran until …, in a pause of 5.2s`.
fn lease_ran(holder: &Holder) -> String {
    let mut text = match holder.lease_end {
        Some(end) => format!("ran until {end}"),
        None => "had no end".to_owned(),
    };
    if let Some(pause) = holder.pause {
        text += &format!(", in a pause of {}", pause.lasted);
    }
    text
}

fn never_or_ran(holder: &Holder) -> String {
    match (holder.acquired, holder.lease_end) {
        (None, None) => "it held no lock of its own then, as far as the history shows".to_owned(),
        _ => format!("its own lease {}", lease_ran(holder)),
    }
}
