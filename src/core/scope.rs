//! What a freeze, a plan or a report is about (contract, section 2, rule 1).

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::freeze::Asked;
use super::ids::*;
use super::time::Timestamp;

/// Names any of tenants, users, shows and sessions, and a window `[from, to)` on
/// `orders.created_at`. What is empty or null does not narrow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scope {
    #[serde(default)]
    pub tenants: BTreeSet<TenantId>,
    #[serde(default)]
    pub users: BTreeSet<UserId>,
    #[serde(default)]
    pub shows: BTreeSet<ShowId>,
    /// Sessions as filled (contract, section 2, rule 2).
    #[serde(default)]
    pub sessions: BTreeSet<SessionId>,
    #[serde(default)]
    pub from: Option<Timestamp>,
    #[serde(default)]
    pub to: Option<Timestamp>,
}

/// A row's place in the tests of a scope. A message may lack user and show; then only a scope
/// that names no user and no show covers it.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    pub tenant_id: &'a TenantId,
    pub user_id: Option<&'a UserId>,
    pub show_id: Option<&'a ShowId>,
    /// As filled.
    pub session_id: Option<&'a SessionId>,
    pub created_at: Timestamp,
}

impl Scope {
    /// Whether a row at this place is in scope.
    pub fn covers(&self, place: Place<'_>) -> bool {
        fn named<T: Ord>(names: &BTreeSet<T>, value: Option<&T>) -> bool {
            names.is_empty() || value.is_some_and(|v| names.contains(v))
        }
        named(&self.tenants, Some(place.tenant_id))
            && named(&self.users, place.user_id)
            && named(&self.shows, place.show_id)
            && named(&self.sessions, place.session_id)
            && self.from.is_none_or(|from| from <= place.created_at)
            && self.to.is_none_or(|to| place.created_at < to)
    }

    /// Whether what is asked about may be in scope: what is not said may be anything.
    pub fn may_cover(&self, asked: &Asked<'_>) -> bool {
        fn named<T: Ord>(names: &BTreeSet<T>, value: Option<&T>) -> bool {
            names.is_empty() || value.is_none_or(|v| names.contains(v))
        }
        let in_window = asked
            .created_at
            .is_none_or(|at| self.from.is_none_or(|from| from <= at) && self.to.is_none_or(|to| at < to));
        named(&self.tenants, Some(asked.tenant_id))
            && named(&self.users, asked.user_id)
            && named(&self.shows, asked.show_id)
            && named(&self.sessions, asked.session_id)
            && in_window
    }

    /// Whether some row could be in both scopes.
    pub fn overlaps(&self, other: &Self) -> bool {
        fn meet<T: Ord>(a: &BTreeSet<T>, b: &BTreeSet<T>) -> bool {
            a.is_empty() || b.is_empty() || !a.is_disjoint(b)
        }
        fn before(to: Option<Timestamp>, from: Option<Timestamp>) -> bool {
            matches!((to, from), (Some(to), Some(from)) if to <= from)
        }
        meet(&self.tenants, &other.tenants)
            && meet(&self.users, &other.users)
            && meet(&self.shows, &other.shows)
            && meet(&self.sessions, &other.sessions)
            && !before(self.to, other.from)
            && !before(other.to, self.from)
    }

    /// In words: `show S-204, user U-7318, from 2026-11-11T12:14:00Z`.
    pub fn in_words(&self) -> String {
        fn named<T: ToString>(what: &str, names: &BTreeSet<T>) -> Option<String> {
            let list: Vec<_> = names.iter().map(ToString::to_string).collect();
            (!list.is_empty()).then(|| format!("{what} {}", list.join(" or ")))
        }
        let parts = [
            named("tenant", &self.tenants),
            named("show", &self.shows),
            named("user", &self.users),
            named("session", &self.sessions),
            self.from.map(|t| format!("from {t}")),
            self.to.map(|t| format!("before {t}")),
        ];
        let parts: Vec<_> = parts.into_iter().flatten().collect();
        if parts.is_empty() { "everything".to_owned() } else { parts.join(", ") }
    }

    /// Whether it narrows nothing: every row of every ledger.
    pub fn is_everything(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(name: &str) -> Scope {
        Scope { shows: [ShowId::from(name)].into(), ..Scope::default() }
    }

    #[test]
    fn scopes_overlap_unless_some_part_keeps_them_apart() {
        let window = |from, to| Scope {
            from: Some(Timestamp::from_micros(from)),
            to: Some(Timestamp::from_micros(to)),
            ..Scope::default()
        };
        assert!(show("a").overlaps(&show("a")));
        assert!(!show("a").overlaps(&show("b")));
        assert!(show("a").overlaps(&Scope::default()));
        assert!(!window(0, 10).overlaps(&window(10, 20)), "a window ends before its `to`");
        assert!(window(0, 11).overlaps(&window(10, 20)));
        let user = Scope { users: [UserId::from("u")].into(), ..Scope::default() };
        assert!(show("a").overlaps(&user), "the user may have bought this show");
    }
}
