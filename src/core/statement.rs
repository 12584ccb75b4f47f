//! A provider's statement beside the payment ledger: charges and refunds that only one of them knows,
//! amounts and currencies that differ, and what either has twice.
//!
//! Charges are told apart by the provider's name of them (`provider_txn_id`). A ledger row says what went
//! back of a charge, and not when: so refunds are compared as what went back of a charge in all.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::charges::{Charge, captured};
use super::ids::{PaymentId, TenantId};
use super::ledger::Payment;
use super::money::Currency;
use super::status::{PaymentStatus, status_type};
use super::time::Timestamp;

/// What a line of a statement is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineType {
    Charge,
    Refund,
}

/// One line of a statement that is about a charge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub line_type: LineType,
    /// The provider's name of the charge, also on its refunds.
    pub charge: String,
    /// Not below 0, in the currency's minor unit.
    pub amount_minor: i64,
    pub currency: Currency,
    /// The physical line of the file.
    pub line: u64,
    pub at: Option<Timestamp>,
}

status_type!(
    /// How the two differ.
    Differs {
        /// The statement has a charge, and no row of the ledger has captured it.
        ChargeOnlyInStatement = "CHARGE_ONLY_IN_STATEMENT",
        ChargeOnlyInLedger = "CHARGE_ONLY_IN_LEDGER",
        RefundOnlyInStatement = "REFUND_ONLY_IN_STATEMENT",
        RefundOnlyInLedger = "REFUND_ONLY_IN_LEDGER",
        AmountDiffers = "AMOUNT_DIFFERS",
        RefundDiffers = "REFUND_DIFFERS",
        CurrencyDiffers = "CURRENCY_DIFFERS",
        /// The statement has a charge on several lines.
        TwiceInStatement = "TWICE_IN_STATEMENT",
        /// Several rows of the ledger say that they captured a charge.
        TwiceInLedger = "TWICE_IN_LEDGER",
    }
);

/// One difference. What a side does not have is left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    pub differs: Differs,
    pub charge: String,
    /// In the minor unit of the currency beside it.
    pub statement_minor: Option<i64>,
    pub statement_currency: Option<Currency>,
    /// The line of the statement that it is about.
    pub line: Option<u64>,
    pub ledger_minor: Option<i64>,
    pub ledger_currency: Option<Currency>,
    pub tenant_id: Option<TenantId>,
    pub payment_id: Option<PaymentId>,
    pub status: Option<PaymentStatus>,
}

/// When charges were captured that the statement is expected to have: `[from, to)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Window {
    pub from: Option<Timestamp>,
    pub to: Option<Timestamp>,
}

impl Window {
    fn holds(self, at: Timestamp) -> bool {
        self.from.is_none_or(|from| from <= at) && self.to.is_none_or(|to| at < to)
    }
}

/// What was compared, what was not, and what differs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Compared {
    /// The charges that the statement is expected to have; `None` where nobody said, and it has no times.
    pub window: Option<Window>,
    /// Whether the window is the period of the statement's own times, since nobody said another.
    pub window_is_its_own: bool,
    /// Charges that both have.
    pub charges: u64,
    /// By charge, then by how they differ.
    pub differences: Vec<Difference>,
    /// Lines that are neither a charge nor a refund.
    pub lines_of_other_types: u64,
    /// Lines about charges of rows that are outside the scope.
    pub lines_outside_scope: u64,
    /// Lines of charges that the ledger does not have, from outside the window that was asked for.
    pub lines_outside_window: u64,
    /// Captured rows of the ledger without the provider's name of their charge.
    pub rows_without_charge: u64,
    /// Captured rows that the statement does not have: captured outside the window, or there is none.
    /// Only where a person gave the window need it not have them.
    pub rows_outside_window: u64,
    /// What those captured, in minor units.
    pub minor_outside_window: BTreeMap<Currency, i128>,
    /// Refunds that are under way: the statement may have them or not.
    pub refunds_in_motion: u64,
}

/// What is known of one charge.
#[derive(Debug, Default)]
struct Sides {
    charge: Option<Said>,
    /// More lines that say the same charge, the first of them.
    again: Option<Said>,
    lines: u64,
    refunded: Option<Said>,
    booked: Option<Booked>,
    booked_again: Option<Booked>,
    is_outside_scope: bool,
}

/// What the statement says.
#[derive(Clone, Copy, Debug)]
struct Said {
    amount_minor: i64,
    currency: Currency,
    line: u64,
    at: Option<Timestamp>,
}

/// What the ledger says.
#[derive(Debug)]
struct Booked {
    tenant_id: TenantId,
    payment_id: PaymentId,
    amount_minor: i64,
    returned_minor: i64,
    currency: Currency,
    status: PaymentStatus,
    captured_at: Timestamp,
}

/// Takes the lines of a statement, then the rows of a ledger; remembers of each charge what it takes to
/// compare it.
#[derive(Debug, Default)]
pub struct Comparison {
    asked: Option<Window>,
    /// The first and the last time of a line.
    period: Option<(Timestamp, Timestamp)>,
    sides: HashMap<String, Sides>,
    compared: Compared,
    /// In another currency than another refund of the charge.
    odd_refunds: Vec<(String, Said)>,
}

impl Comparison {
    /// `asked` is the window that a person gave; else it is the period of the statement's own times.
    pub fn new(asked: Option<Window>) -> Self {
        Self { asked, ..Self::default() }
    }

    /// The next line; `None` for one that is neither a charge nor a refund: a fee, a payout.
    pub fn line(&mut self, line: Option<Line>) {
        let Some(line) = line else {
            self.compared.lines_of_other_types += 1;
            return;
        };
        if let Some(at) = line.at {
            let (first, last) = self.period.unwrap_or((at, at));
            self.period = Some((first.min(at), last.max(at)));
        }
        let Line { line_type, charge, amount_minor, currency, line, at } = line;
        let said = Said { amount_minor, currency, line, at };
        let sides = self.sides.entry(charge.clone()).or_default();
        sides.lines += 1;
        match (line_type, &mut sides.charge, &mut sides.refunded) {
            (LineType::Refund, _, Some(sum)) if sum.currency == currency => {
                sum.amount_minor = sum.amount_minor.saturating_add(amount_minor);
            }
            (LineType::Refund, _, Some(_)) => self.odd_refunds.push((charge, said)),
            (LineType::Refund, _, none) => *none = Some(said),
            (LineType::Charge, Some(_), _) => {
                sides.again.get_or_insert(said);
            }
            (LineType::Charge, none, _) => *none = Some(said),
        }
    }

    /// The period of the statement's own times, both ends included.
    fn window(&self) -> Option<Window> {
        let own = |(from, to): (Timestamp, Timestamp)| Window {
            from: Some(from),
            to: Some(Timestamp::from_micros(to.micros().saturating_add(1))),
        };
        self.asked.or(self.period.map(own))
    }

    /// A row of the ledger, after all lines.
    pub fn payment(&mut self, row: &Payment, is_in_scope: bool) {
        let is_captured = captured(row.status);
        let Some(name) = row.provider_txn_id.as_ref().filter(|name| !name.is_empty()) else {
            self.compared.rows_without_charge += u64::from(is_captured && is_in_scope);
            return;
        };
        let window = self.window();
        let Some(sides) = self.sides.get_mut(name) else {
            if !is_captured || !is_in_scope {
                return;
            }
            if window.is_some_and(|window| window.holds(row.captured_at())) {
                let booked = Some(booked(row));
                self.sides.insert(name.clone(), Sides { booked, ..Sides::default() });
            } else {
                self.compared.rows_outside_window += 1;
                *self.compared.minor_outside_window.entry(row.currency).or_default() +=
                    i128::from(row.amount_minor);
            }
            return;
        };
        if !is_in_scope {
            sides.is_outside_scope = true;
            return;
        }
        match &sides.booked {
            Some(there) if is_captured && captured(there.status) => {
                sides.booked_again.get_or_insert_with(|| booked(row));
            }
            Some(_) if !is_captured => {}
            _ => sides.booked = Some(booked(row)),
        }
    }

    pub fn end(mut self) -> Compared {
        let window = self.window();
        let mut compared = std::mem::take(&mut self.compared);
        compared.window = window;
        compared.window_is_its_own = self.asked.is_none() && window.is_some();
        for (charge, said) in std::mem::take(&mut self.odd_refunds) {
            let booked = self.sides.get(&charge).and_then(|sides| sides.booked.as_ref());
            compared.differences.push(difference(Differs::CurrencyDiffers, &charge, Some(said), booked));
        }
        for (charge, sides) in &self.sides {
            if sides.booked.is_none() && sides.is_outside_scope {
                compared.lines_outside_scope += sides.lines;
                continue;
            }
            let times = sides.charge.iter().chain(&sides.refunded).filter_map(|said| said.at);
            let mut times = times.peekable();
            if sides.booked.is_none()
                && let Some(asked) = self.asked
                && times.peek().is_some()
                && times.all(|at| !asked.holds(at))
            {
                compared.lines_outside_window += sides.lines;
                continue;
            }
            compare(charge, sides, window, &mut compared);
        }
        compared
            .differences
            .sort_by(|a, b| (&a.charge, a.differs, a.line).cmp(&(&b.charge, b.differs, b.line)));
        compared
    }
}

fn booked(row: &Payment) -> Booked {
    let charge = Charge { row, status: row.status, carries: true, disagrees: false, shared: false };
    Booked {
        tenant_id: row.tenant_id.clone(),
        payment_id: row.payment_id.clone(),
        amount_minor: row.amount_minor,
        returned_minor: charge.gave_back_minor(),
        currency: row.currency,
        status: row.status,
        captured_at: row.captured_at(),
    }
}

fn compare(charge: &str, sides: &Sides, window: Option<Window>, compared: &mut Compared) {
    let differs = |differs, said, booked| difference(differs, charge, said, booked);
    let found = &mut compared.differences;
    let captured = sides.booked.as_ref().filter(|b| captured(b.status));
    if let Some(again) = sides.again {
        found.push(differs(Differs::TwiceInStatement, Some(again), captured));
    }
    if let Some(again) = &sides.booked_again {
        found.push(differs(Differs::TwiceInLedger, sides.charge, Some(again)));
    }
    let Some(booked) = captured else {
        if let Some(said) = sides.charge {
            found.push(differs(Differs::ChargeOnlyInStatement, Some(said), sides.booked.as_ref()));
        }
        if let Some(said) = sides.refunded {
            found.push(differs(Differs::RefundOnlyInStatement, Some(said), sides.booked.as_ref()));
        }
        return;
    };
    match sides.charge {
        None if window.is_some_and(|window| window.holds(booked.captured_at)) => {
            found.push(differs(Differs::ChargeOnlyInLedger, None, Some(booked)));
        }
        // Its refund is on this statement, and it itself on an earlier one.
        None => {}
        Some(said) => {
            compared.charges += 1;
            if said.currency != booked.currency {
                found.push(differs(Differs::CurrencyDiffers, Some(said), Some(booked)));
                return;
            }
            if said.amount_minor != booked.amount_minor {
                found.push(differs(Differs::AmountDiffers, Some(said), Some(booked)));
            }
        }
    }
    if booked.status == PaymentStatus::Refunding {
        compared.refunds_in_motion += 1;
        return;
    }
    let in_ledger = Difference {
        ledger_minor: Some(booked.returned_minor),
        ..differs(Differs::RefundDiffers, sides.refunded, Some(booked))
    };
    let as_one = |differs| Difference { differs, ..in_ledger.clone() };
    match sides.refunded {
        Some(said) if said.currency != booked.currency => found.push(as_one(Differs::CurrencyDiffers)),
        Some(said) if said.amount_minor == booked.returned_minor => {}
        Some(_) if booked.returned_minor == 0 => found.push(as_one(Differs::RefundOnlyInStatement)),
        // What went back before may be on the earlier statement, too.
        Some(said) if sides.charge.is_none() && said.amount_minor < booked.returned_minor => {}
        Some(_) => found.push(in_ledger),
        None if booked.returned_minor > 0 && sides.charge.is_some() => {
            found.push(as_one(Differs::RefundOnlyInLedger));
        }
        None => {}
    }
}

fn difference(differs: Differs, charge: &str, said: Option<Said>, booked: Option<&Booked>) -> Difference {
    Difference {
        differs,
        charge: charge.to_owned(),
        statement_minor: said.map(|s| s.amount_minor),
        statement_currency: said.map(|s| s.currency),
        line: said.map(|s| s.line),
        ledger_minor: booked.map(|b| b.amount_minor),
        ledger_currency: booked.map(|b| b.currency),
        tenant_id: booked.map(|b| b.tenant_id.clone()),
        payment_id: booked.map(|b| b.payment_id.clone()),
        status: booked.map(|b| b.status),
    }
}
