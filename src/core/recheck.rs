//! Whether an intent is still what its plan saw, but for our own moves (contract, section 5).
//!
//! Before an intent's first step and before each of its money steps its rows are read anew. Our
//! own moves are undone in memory with [`undo`], then [`recheck`] decides the intent again: it
//! must come out as planned, row by row.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::str::FromStr;

use super::evidence::Evidence;
use super::ids::*;
use super::join::{Intent, Joined};
use super::ledger::Ledgers;
use super::plan::{Outcome, PlanError, PlannedIntent, SeenRow, Step, plan_intent};
use super::policy::Policy;
use super::seen::seen;
use super::status::Ledger;
use super::time::Timestamp;

/// A finished step of ours, as the journal has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnMove {
    pub ledger: Ledger,
    pub tenant_id: TenantId,
    pub id: RowId,
    pub from_status: String,
    pub version_before: Version,
    /// Minor units; null where the row is no payment.
    pub refunded_before_minor: Option<i64>,
    pub to_status: String,
    pub version_after: Version,
    pub refunded_after_minor: Option<i64>,
}

/// Puts each row back to how it was before our moves, where it is exactly as we left it. A row
/// that somebody has touched since stays as it is, and will show as a difference.
///
/// `own` comes in the order of time; one row may have moved several times.
pub fn undo(ledgers: &mut Ledgers, own: &[OwnMove]) {
    let mut by_row: HashMap<(Ledger, &TenantId, &str), Vec<&OwnMove>> = HashMap::new();
    for step in own {
        by_row.entry((step.ledger, &step.tenant_id, step.id.as_str())).or_default().push(step);
    }
    let moves_of =
        |ledger, tenant_id, id| by_row.get(&(ledger, tenant_id, id)).map_or(&[][..], Vec::as_slice);

    for row in &mut ledgers.orders {
        let moves = moves_of(Ledger::Orders, &row.tenant_id, row.order_id.as_str());
        undo_row(moves, &mut row.status, &mut row.version, None);
    }
    for row in &mut ledgers.payments {
        let moves = moves_of(Ledger::Payments, &row.tenant_id, row.payment_id.as_str());
        undo_row(moves, &mut row.status, &mut row.version, Some(&mut row.refunded_minor));
    }
    for row in &mut ledgers.inventory {
        let moves = moves_of(Ledger::Inventory, &row.tenant_id, row.hold_id.as_str());
        undo_row(moves, &mut row.status, &mut row.version, None);
    }
    for row in &mut ledgers.messages {
        let moves = moves_of(Ledger::Messages, &row.tenant_id, row.message_id.as_str());
        undo_row(moves, &mut row.status, &mut row.version, None);
    }
}

/// Undoes the moves of one row from the last to the first, as far as each finds what it left.
fn undo_row<S: FromStr + PartialEq>(
    moves: &[&OwnMove],
    status: &mut S,
    version: &mut Version,
    mut refunded_minor: Option<&mut i64>,
) {
    for step in moves.iter().rev() {
        let same_refund = match (&refunded_minor, step.refunded_after_minor) {
            (Some(now), Some(after)) => **now == after,
            _ => true,
        };
        let as_we_left_it = step.to_status.parse().is_ok_and(|to: S| to == *status)
            && *version == step.version_after
            && same_refund;
        let Some(before) = step.from_status.parse().ok().filter(|_| as_we_left_it) else {
            return;
        };
        *status = before;
        *version = step.version_before.clone();
        if let (Some(now), Some(before)) = (refunded_minor.as_deref_mut(), step.refunded_before_minor) {
            *now = before;
        }
    }
}

/// Decides intents again from rows read anew; many planned intents may be asked about.
pub struct Recheck<'j> {
    intents: Vec<Intent<'j>>,
    /// The intent of each order, and of each orphan, as an index.
    by_row: HashMap<(&'j TenantId, Ledger, RowId), usize>,
}

impl<'j> Recheck<'j> {
    /// `fresh` holds the whole neighbourhoods of the intents to be asked about, as
    /// [`Joined::new`] wants them, with our own moves undone.
    pub fn new(fresh: &'j Joined<'_>) -> Self {
        let intents: Vec<Intent<'j>> = fresh.intents().collect();
        let mut by_row = HashMap::new();
        for (index, intent) in intents.iter().enumerate() {
            for rows in &intent.orders {
                by_row.insert((intent.tenant_id, Ledger::Orders, (&rows.order.order_id).into()), index);
            }
            for orphan in &intent.orphans {
                by_row.insert((intent.tenant_id, orphan.ledger(), orphan.id()), index);
            }
        }
        Self { intents, by_row }
    }

    /// Compares an intent that has steps with its plan: first the rows, and where they are the
    /// same, the decision, since rows of others and the journal take part in it. `policy` and
    /// `as_of` are the plan's; `evidence` is today's.
    pub fn compare(
        &self,
        planned: &PlannedIntent,
        policy: &Policy,
        as_of: Timestamp,
        evidence: &Evidence,
    ) -> Result<(), Vec<Difference>> {
        let Some(intent) = self.find(planned) else {
            return Err(planned.seen.iter().map(Difference::gone).collect());
        };
        let mut differences = different_rows(&planned.seen, &seen(intent));
        if differences.is_empty() {
            differences = match plan_intent(intent, policy, as_of, evidence) {
                Ok(now) => different_decision(planned, &now),
                Err(error) => vec![Difference::Undecidable(error)],
            };
        }
        if differences.is_empty() { Ok(()) } else { Err(differences) }
    }

    /// The intent that has a row of the planned one; where the planned one fell apart, one of its parts.
    fn find(&self, planned: &PlannedIntent) -> Option<&Intent<'j>> {
        let orders = planned.orders.iter().map(|id| (Ledger::Orders, RowId::from(id)));
        let mut rows = orders.chain(planned.orphans.iter().cloned());
        let index = rows.find_map(|(ledger, id)| self.by_row.get(&(&planned.tenant_id, ledger, id)))?;
        Some(&self.intents[*index])
    }
}

/// [`Recheck::compare`] for one intent, from rows read for it.
pub fn recheck(
    planned: &PlannedIntent,
    fresh: &Ledgers,
    policy: &Policy,
    as_of: Timestamp,
    evidence: &Evidence,
) -> Result<(), Vec<Difference>> {
    let joined = Joined::new(fresh, policy, as_of);
    Recheck::new(&joined).compare(planned, policy, as_of, evidence)
}

fn different_rows(planned: &[SeenRow], now: &[SeenRow]) -> Vec<Difference> {
    let mut unseen: BTreeMap<(Ledger, &RowId), &SeenRow> =
        now.iter().map(|r| ((r.ledger, &r.id), r)).collect();
    let mut differences = Vec::new();
    for was in planned {
        match unseen.remove(&(was.ledger, &was.id)) {
            None => differences.push(Difference::gone(was)),
            Some(is) if is == was => {}
            Some(is) => differences.push(Difference::Changed { was: was.clone(), is: is.clone() }),
        }
    }
    let new = unseen.into_values().map(|r| Difference::New { ledger: r.ledger, id: r.id.clone() });
    differences.extend(new);
    differences
}

fn different_decision(planned: &PlannedIntent, now: &PlannedIntent) -> Vec<Difference> {
    if planned.outcome != now.outcome {
        vec![Difference::Outcome { was: planned.outcome, is: now.outcome }]
    } else if planned.keep != now.keep {
        vec![Difference::Keep { was: planned.keep.clone(), is: now.keep.clone() }]
    } else if planned.steps.iter().map(effect).ne(now.steps.iter().map(effect)) {
        vec![Difference::Steps]
    } else {
        Vec::new()
    }
}

/// A step without its keys, which count how often the journal has seen the effect before.
fn effect(step: &Step) -> impl PartialEq {
    (step.ledger, &step.id, &step.from, &step.to, step.amount_minor, step.currency, &step.version)
}

/// One way in which an intent is not as planned. Shown as a lower-case sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// A row that the plan did not see.
    New {
        ledger: Ledger,
        id: RowId,
    },
    /// A row that is no longer there, or belongs to another intent.
    Gone {
        ledger: Ledger,
        id: RowId,
    },
    Changed {
        was: SeenRow,
        is: SeenRow,
    },
    Outcome {
        was: Outcome,
        is: Outcome,
    },
    Keep {
        was: Option<OrderId>,
        is: Option<OrderId>,
    },
    /// The same order is kept, but other steps lead there.
    Steps,
    /// There is no decision any more.
    Undecidable(PlanError),
}

impl Difference {
    fn gone(row: &SeenRow) -> Self {
        Self::Gone { ledger: row.ledger, id: row.id.clone() }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name =
            |order: &Option<OrderId>| order.as_ref().map_or("none".to_owned(), |o| format!("order {o}"));
        match self {
            Self::New { ledger, id } => write!(f, "{} {id} is new", ledger.row_name()),
            Self::Gone { ledger, id } => write!(f, "{} {id} no longer belongs here", ledger.row_name()),
            Self::Changed { was, is } => {
                write!(f, "{} {} ", was.ledger.row_name(), was.id)?;
                if was.status != is.status {
                    write!(f, "is {}, was {}", is.status, was.status)
                } else if was.version != is.version {
                    write!(f, "has version {}, was {}", is.version, was.version)
                } else {
                    write!(f, "says something else than it did, under the same status and version")
                }
            }
            Self::Outcome { was, is } => write!(f, "the outcome is now {is}, was {was}"),
            Self::Keep { was, is } => write!(f, "{} would now be kept, was {}", name(is), name(was)),
            Self::Steps => write!(f, "other steps would now be needed"),
            Self::Undecidable(error) => write!(f, "it can no longer be decided: {error}"),
        }
    }
}
