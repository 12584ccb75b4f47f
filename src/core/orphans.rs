//! Rows whose order is null or unknown, and the intents that they belong to (contract, section 2).

use std::collections::{BTreeSet, HashMap};

use super::charges::Charge;
use super::ids::*;
use super::intents::{Group, Session};
use super::ledger::{Hold, Message, Order};
use super::policy::Policy;
use super::scope::Place;
use super::status::{HoldStatus, Ledger};
use super::time::Timestamp;

/// A row that attaches to no order.
#[derive(Clone, Copy, Debug)]
pub enum Orphan<'a> {
    Payment(Charge<'a>),
    Hold(&'a Hold),
    Message(&'a Message),
}

impl<'a> Orphan<'a> {
    pub fn ledger(&self) -> Ledger {
        match self {
            Self::Payment(_) => Ledger::Payments,
            Self::Hold(_) => Ledger::Inventory,
            Self::Message(_) => Ledger::Messages,
        }
    }

    pub fn id(&self) -> RowId {
        match self {
            Self::Payment(charge) => (&charge.row.payment_id).into(),
            Self::Hold(hold) => (&hold.hold_id).into(),
            Self::Message(message) => (&message.message_id).into(),
        }
    }

    /// Where the row says that it belongs, by its own columns.
    pub fn place(&self) -> Place<'a> {
        match *self {
            Self::Payment(Charge { row, .. }) => Place {
                tenant_id: &row.tenant_id,
                user_id: Some(&row.user_id),
                show_id: Some(&row.show_id),
                session_id: row.session_id.as_ref(),
                created_at: row.created_at,
            },
            Self::Hold(row) => Place {
                tenant_id: &row.tenant_id,
                user_id: Some(&row.user_id),
                show_id: Some(&row.show_id),
                session_id: row.session_id.as_ref(),
                created_at: row.created_at,
            },
            Self::Message(row) => Place {
                tenant_id: &row.tenant_id,
                user_id: row.user_id.as_ref(),
                show_id: row.show_id.as_ref(),
                session_id: row.session_id.as_ref(),
                created_at: row.created_at,
            },
        }
    }

    /// A payment that holds or may hold money, or a hold of stock (contract, section 3): a person
    /// must say whose it is.
    pub fn counts(&self) -> bool {
        match self {
            Self::Payment(charge) => charge.may_hold_money(),
            Self::Hold(hold) => matches!(hold.status, HoldStatus::Held | HoldStatus::Confirmed),
            Self::Message(_) => false,
        }
    }
}

/// The intent that an orphan belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    /// No group covers it: an intent of its own.
    Nobody,
    /// One group covers it, the one of this index: it attaches there.
    Group(usize),
    /// Several do: an intent of its own that each of them must look at.
    Several,
}

/// All orphans, each with its owner.
#[derive(Debug)]
pub struct Orphans<'a> {
    rows: Vec<Orphan<'a>>,
    owners: Vec<Owner>,
    /// Indices of rows, by created_at. Rows that name no user or show are not here.
    by_place: HashMap<(&'a TenantId, &'a UserId, &'a ShowId), Vec<usize>>,
}

impl<'a> Orphans<'a> {
    pub fn new(
        rows: Vec<Orphan<'a>>,
        orders: &[Order],
        sessions: &[Session<'_>],
        groups: &[Group],
        policy: &Policy,
    ) -> Self {
        let mut by_place: HashMap<_, Vec<usize>> = HashMap::new();
        for (i, row) in rows.iter().enumerate() {
            let place = row.place();
            if let (Some(user), Some(show)) = (place.user_id, place.show_id) {
                by_place.entry((place.tenant_id, user, show)).or_default().push(i);
            }
        }
        for indices in by_place.values_mut() {
            indices.sort_unstable_by_key(|&i| rows[i].place().created_at);
        }
        let owners = vec![Owner::Nobody; rows.len()];
        let mut orphans = Self { rows, owners, by_place };
        if orphans.rows.is_empty() {
            return orphans;
        }
        for (index, group) in groups.iter().enumerate() {
            for i in orphans.covered_by(group, orders, sessions, policy) {
                orphans.owners[i] = match orphans.owners[i] {
                    Owner::Nobody => Owner::Group(index),
                    Owner::Group(_) | Owner::Several => Owner::Several,
                };
            }
        }
        orphans
    }

    /// The orphans that attach to the group of this index, and those that it shares with others;
    /// each by ledger, time and id.
    pub fn of_group(
        &self,
        index: usize,
        group: &Group,
        orders: &[Order],
        sessions: &[Session<'_>],
        policy: &Policy,
    ) -> (Vec<Orphan<'a>>, Vec<Orphan<'a>>) {
        let covered = self.covered_by(group, orders, sessions, policy);
        let mut rows: Vec<(bool, Orphan<'a>)> =
            covered.into_iter().map(|i| (self.owners[i] == Owner::Group(index), self.rows[i])).collect();
        rows.sort_by_cached_key(|(_, row)| (row.ledger(), row.place().created_at, row.id()));
        let (own, shared): (Vec<_>, Vec<_>) = rows.into_iter().partition(|(own, _)| *own);
        let rows = |list: Vec<(bool, Orphan<'a>)>| list.into_iter().map(|(_, row)| row).collect();
        (rows(own), rows(shared))
    }

    /// Those that are an intent of their own.
    pub fn alone(&self) -> impl Iterator<Item = Orphan<'a>> {
        self.rows
            .iter()
            .zip(&self.owners)
            .filter(|(_, owner)| !matches!(owner, Owner::Group(_)))
            .map(|(row, _)| *row)
    }

    /// Indices of the orphans that could belong to the group: in one of its places, and from `gap`
    /// before its first order to `max_span` after its last.
    fn covered_by(
        &self,
        group: &Group,
        orders: &[Order],
        sessions: &[Session<'_>],
        policy: &Policy,
    ) -> Vec<usize> {
        let (Some(&first), Some(&last)) = (group.orders.first(), group.orders.last()) else {
            return Vec::new();
        };
        if self.by_place.is_empty() {
            return Vec::new();
        }
        let from = orders[first].created_at.minus(policy.gap);
        let to = orders[last].created_at.plus(policy.max_span);
        let named: BTreeSet<(&ShowId, Session<'_>)> =
            group.orders.iter().map(|&i| (&orders[i].show_id, sessions[i])).collect();
        let shows: BTreeSet<&ShowId> = named.iter().map(|(show, _)| *show).collect();

        let mut found = Vec::new();
        for show in shows {
            let Some(indices) = self.by_place.get(&(&orders[first].tenant_id, &orders[first].user_id, show))
            else {
                continue;
            };
            let time = |i: usize| -> Timestamp { self.rows[i].place().created_at };
            let start = indices.partition_point(|&i| time(i) < from);
            found.extend(indices[start..].iter().copied().take_while(|&i| time(i) <= to).filter(|&i| {
                self.rows[i].place().session_id.is_none_or(|s| named.contains(&(show, Session::Is(s))))
            }));
        }
        found
    }
}
