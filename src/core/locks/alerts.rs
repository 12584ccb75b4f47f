//! What to alert on, so that the next one is seen on the day it happens.

/// One rule: what is counted, when it is wrong and what that means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alert {
    /// The alert's name in the rule file.
    pub name: &'static str,
    /// What a service has to count, and from when on it is wrong.
    pub when: &'static str,
    pub because: &'static str,
}

/// The alerts, in the order of the rule file.
pub const ALERTS: [Alert; 6] = [
    Alert {
        name: "LockHeldTooLong",
        when: "of the holds of a lock, 1 in 20 uses more than 70 % of its lease",
        because: "the next pause or slow query outlives it",
    },
    Alert {
        name: "LockOwnerMismatch",
        when: "a release or renewal is refused since the owner does not match",
        because: "somebody worked on after its lease had ended",
    },
    Alert {
        name: "LockRenewedLate",
        when: "a renewal comes after the end of the lease",
        because: "for that long nobody, or another, held the lock",
    },
    Alert {
        name: "PauseLongerThanLease",
        when: "a process stands still for more than half of its shortest lease",
        because: "a pause over the end of a lease is how two come to hold it",
    },
    Alert {
        name: "StaleTokenSeen",
        when: "a resource meets a token older than one it has seen",
        because: "the lock has let two in; a fenced resource refused the second",
    },
    Alert {
        name: "DuplicateBusinessKey",
        when: "a unique key of the business is met a second time",
        because: "that is the duplicate itself, whatever let it in",
    },
];
