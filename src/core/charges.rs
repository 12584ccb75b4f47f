//! Real charges: several payment rows may tell of one charge, and only one of them carries it
//! (contract, section 3).

use super::ledger::Payment;
use super::policy::Policy;
use super::status::PaymentStatus;
use super::time::Timestamp;

/// Why nothing may be asked of a provider about a payment's charge at this moment, whatever was
/// planned; `None` where it may. `rows` are all rows of the charge, as they are now, the payment's own
/// included; `refund_minor` is what is to go back, in the payment's minor unit, none for a void.
///
/// A charge that the buyer disputes is never refunded, and never more than every row of it says is left.
pub fn forbids<'a>(
    payment: &Payment,
    rows: impl IntoIterator<Item = &'a Payment>,
    refund_minor: Option<i64>,
) -> Option<String> {
    use PaymentStatus::{Captured, ChargedBack, Disputed, Refunded, Refunding};
    for row in rows {
        let own = row.payment_id == payment.payment_id;
        match row.status {
            Disputed | ChargedBack => {
                return Some(format!("payment {} of the same charge is {}", row.payment_id, row.status));
            }
            Refunding | Refunded if !own => {
                return Some(format!("payment {} of the same charge is {}", row.payment_id, row.status));
            }
            Captured | Refunding => {}
            // A row that never captured carries nothing of a charge that did.
            _ => continue,
        }
        if let Some(refund_minor) = refund_minor
            && refund_minor > row.left_minor()
        {
            return Some(format!(
                "{} is more than the {} that payment {} says is left",
                payment.currency.show(refund_minor.into()),
                row.currency.show(row.left_minor().into()),
                row.payment_id
            ));
        }
    }
    None
}

/// A payment row, and what is known about the charge it tells of.
#[derive(Clone, Copy, Debug)]
pub struct Charge<'a> {
    pub row: &'a Payment,
    /// The row's status, but FAILED where it is INITIATED and policy holds that as expired.
    pub status: PaymentStatus,
    /// Whether this row carries its charge. One that does not carries nothing: no money, no
    /// doubt, and it is never moved.
    pub carries: bool,
    /// CHARGE_DISAGREES, on each row of the charge that captured.
    pub disagrees: bool,
    /// SHARED_CHARGE, on each row of the charge that attaches to an order.
    pub shared: bool,
}

impl Charge<'_> {
    /// A charge whose money came in and did not all go back.
    pub fn is_captured_with_money_left(&self) -> bool {
        self.carries && self.status == PaymentStatus::Captured && self.row.left_minor() > 0
    }

    pub fn is_authorized(&self) -> bool {
        self.carries && self.status == PaymentStatus::Authorized
    }

    /// Whether the charge holds money, or may.
    pub fn may_hold_money(&self) -> bool {
        use PaymentStatus::*;
        self.is_captured_with_money_left()
            || self.carries
                && matches!(self.status, Authorized | Initiated | Unknown | Voiding | Refunding | Disputed)
    }

    /// What went back, in minor units; a row that says REFUNDED gave back all of it, whatever its
    /// amounts say.
    pub fn gave_back_minor(&self) -> i64 {
        match self.status {
            PaymentStatus::Refunded => self.row.refunded_minor.max(self.row.amount_minor),
            _ => self.row.refunded_minor,
        }
    }

    /// Captured and not given back, in minor units of its currency: what the sums count.
    pub fn net_minor(&self) -> i128 {
        if self.carries && self.status == PaymentStatus::Captured {
            i128::from(self.row.amount_minor) - i128::from(self.row.refunded_minor)
        } else {
            0
        }
    }
}

/// How much a row says of its charge: the first class that a charge has a row of carries it.
fn class(status: PaymentStatus) -> u8 {
    use PaymentStatus::*;
    match status {
        Captured | Refunding | Refunded | Disputed | ChargedBack => 0,
        Authorized | Initiated | Unknown | Voiding | Voided => 1,
        Failed => 2,
    }
}

/// Whether money came in under it, whatever became of it.
pub fn captured(status: PaymentStatus) -> bool {
    class(status) == 0
}

/// Money left by the row's own account; a row that is no longer CAPTURED says none.
fn left_minor(charge: &Charge<'_>) -> i64 {
    if charge.status == PaymentStatus::Captured { charge.row.left_minor() } else { 0 }
}

/// The charge of each payment row, in the order of the rows. `intent_of` says to which intent the
/// order of a payment row belongs, by the row's index; `None` where it attaches to no order.
pub fn charges<'a>(
    payments: &'a [Payment],
    intent_of: impl Fn(usize) -> Option<usize>,
    policy: &Policy,
    as_of: Timestamp,
) -> Vec<Charge<'a>> {
    let mut charges: Vec<Charge<'a>> = payments
        .iter()
        .map(|row| Charge {
            row,
            status: status_at(row, policy, as_of),
            carries: true,
            disagrees: false,
            shared: false,
        })
        .collect();

    let transaction = |i: usize| {
        let row = &payments[i];
        (&row.tenant_id, &row.provider, row.provider_txn_id.as_ref())
    };
    let mut by_transaction: Vec<usize> =
        (0..payments.len()).filter(|&i| payments[i].provider_txn_id.is_some()).collect();
    by_transaction.sort_unstable_by_key(|&i| transaction(i));
    for rows in by_transaction.chunk_by(|&a, &b| transaction(a) == transaction(b)) {
        if rows.len() > 1 {
            join_rows(&mut charges, rows, &intent_of);
        }
    }
    charges
}

/// An INITIATED payment that is older than policy allows counts as FAILED everywhere.
fn status_at(row: &Payment, policy: &Policy, as_of: Timestamp) -> PaymentStatus {
    match policy.initiated_expires {
        Some(expires) if row.status == PaymentStatus::Initiated && as_of.since(row.created_at) > expires => {
            PaymentStatus::Failed
        }
        _ => row.status,
    }
}

/// `rows` are the rows of one charge, two or more.
fn join_rows(charges: &mut [Charge<'_>], rows: &[usize], intent_of: &impl Fn(usize) -> Option<usize>) {
    let rank = |&i: &usize| {
        let charge = &charges[i];
        let orphan = intent_of(i).is_none();
        (class(charge.status), orphan, charge.row.captured_at(), &charge.row.payment_id)
    };
    let Some(carrier) = rows.iter().copied().min_by(|a, b| rank(a).cmp(&rank(b))) else {
        return;
    };

    let disagrees = {
        let carrier = &charges[carrier];
        rows.iter().map(|&i| &charges[i]).filter(|c| captured(c.status)).any(|c| {
            (c.row.amount_minor, c.row.currency) != (carrier.row.amount_minor, carrier.row.currency)
                || left_minor(c) < left_minor(carrier)
        })
    };
    let mut intents = rows.iter().filter_map(|&i| intent_of(i));
    let shared = intents.next().is_some_and(|first| intents.any(|other| other != first));

    for &i in rows {
        let charge = &mut charges[i];
        charge.carries = i == carrier;
        charge.disagrees = disagrees && captured(charge.status);
        charge.shared = shared && intent_of(i).is_some();
    }
}
