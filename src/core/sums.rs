//! What a plan does to money and stock, in sums that must close (contract, section 7).

use std::collections::{BTreeMap, HashSet};

use super::charges::Charge;
use super::facts::is_live_hold;
use super::ids::*;
use super::join::Intent;
use super::money::Currency;
use super::plan::{MoneySum, Outcome, OutsideMoney, PlannedIntent, StockSum, Sums};
use super::status::{Ledger, PaymentStatus};
use super::time::Timestamp;

/// Where an amount stands in the sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Counted from the rows, whatever was decided; the other parts must reach it.
    Total,
    Kept,
    /// To be refunded or released.
    Leaving,
    InReview,
    Unsettled,
    Clean,
}

impl From<Outcome> for Part {
    /// Where stands what an intent of this outcome holds on to.
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Keep | Outcome::Unwind => Self::Kept,
            Outcome::Review => Self::InReview,
            Outcome::Unsettled => Self::Unsettled,
            Outcome::Clean => Self::Clean,
        }
    }
}

/// The total, and the parts that must reach it, in the order of [`Part`].
pub type Parts = [i128; 6];

/// Adds amounts up, per (tenant, currency) and per (tenant, show).
#[derive(Debug, Default)]
pub struct Counter {
    money: BTreeMap<(TenantId, Currency), Parts>,
    stock: BTreeMap<(TenantId, ShowId), Parts>,
    /// Per (tenant, currency, status): charges and their money.
    outside: BTreeMap<(TenantId, Currency, PaymentStatus), (u64, i128)>,
}

impl Counter {
    /// Goes on from sums that have been taken before.
    pub fn of(sums: Sums, outside: Vec<OutsideMoney>) -> Self {
        let mut counter = Self::default();
        counter.add_all(sums, outside);
        counter
    }

    /// Adds sums that have been taken of other intents.
    pub fn add_all(&mut self, sums: Sums, outside: Vec<OutsideMoney>) {
        let add = |into: &mut Parts, parts: Parts| into.iter_mut().zip(parts).for_each(|(a, b)| *a += b);
        for sum in sums.money {
            let parts = sum.parts();
            add(self.money.entry((sum.tenant_id, sum.currency)).or_default(), parts);
        }
        for sum in sums.stock {
            let parts = sum.parts();
            add(self.stock.entry((sum.tenant_id, sum.show_id)).or_default(), parts);
        }
        for sum in outside {
            self.outside_sums(&sum.tenant_id, sum.currency, sum.status, sum.charges, sum.amount_minor);
        }
    }

    /// `amount` in minor units on so many charges that stand outside the sums.
    pub fn outside_sums(
        &mut self,
        tenant_id: &TenantId,
        currency: Currency,
        status: PaymentStatus,
        charges: u64,
        amount: i128,
    ) {
        let of = self.outside.entry((tenant_id.clone(), currency, status)).or_default();
        of.0 += charges;
        of.1 += amount;
    }

    /// `amount` in minor units of the currency.
    pub fn money(&mut self, tenant_id: &TenantId, currency: Currency, part: Part, amount: i128) {
        self.money.entry((tenant_id.clone(), currency)).or_default()[part as usize] += amount;
    }

    /// `pieces` of the stock of a show.
    pub fn stock(&mut self, tenant_id: &TenantId, show_id: &ShowId, part: Part, pieces: i128) {
        self.stock.entry((tenant_id.clone(), show_id.clone())).or_default()[part as usize] += pieces;
    }

    /// Adds an intent. What leaves is counted from its steps and all else from its rows, so that
    /// a refund of another amount than the charge has left, or of a charge twice, does not close.
    pub fn add(&mut self, intent: &Intent<'_>, planned: &PlannedIntent, as_of: Timestamp) {
        let stays = Part::from(planned.outcome);
        let tenant_id = intent.tenant_id;
        let moved: HashSet<(Ledger, &RowId)> = planned.steps.iter().map(|s| (s.ledger, &s.id)).collect();
        let is_moved = |ledger, id: RowId| !moved.is_empty() && moved.contains(&(ledger, &id));

        for charge in intent.payments() {
            let (row, net) = (charge.row, charge.net_minor());
            if net != 0 {
                self.money(tenant_id, row.currency, Part::Total, net);
                if !is_moved(Ledger::Payments, (&row.payment_id).into()) {
                    self.money(tenant_id, row.currency, stays, net);
                }
            }
            if stands_outside(charge) {
                let left = i128::from(row.left_minor());
                self.outside_sums(tenant_id, row.currency, charge.status, 1, left);
            }
        }
        for step in &planned.steps {
            if let (Some(amount), Some(currency)) = (step.amount_minor, step.currency)
                && step.to == PaymentStatus::Refunding.as_str()
            {
                self.money(tenant_id, currency, Part::Leaving, i128::from(amount));
            }
        }
        for hold in intent.holds().filter(|h| is_live_hold(h, as_of)) {
            let pieces = i128::from(hold.quantity);
            let released = is_moved(Ledger::Inventory, (&hold.hold_id).into());
            self.stock(tenant_id, &hold.show_id, Part::Total, pieces);
            self.stock(tenant_id, &hold.show_id, if released { Part::Leaving } else { stays }, pieces);
        }
    }

    /// The money that no sum has, by tenant, currency and status.
    pub fn outside(&self) -> Vec<OutsideMoney> {
        let outside = self.outside.iter().map(|((tenant_id, currency, status), (charges, amount_minor))| {
            OutsideMoney {
                tenant_id: tenant_id.clone(),
                currency: *currency,
                status: *status,
                charges: *charges,
                amount_minor: *amount_minor,
            }
        });
        outside.collect()
    }

    pub fn sums(self) -> Sums {
        let money = self.money.into_iter().map(|((tenant_id, currency), parts)| {
            let [captured, kept, to_refund, in_review, unsettled, clean] = parts;
            MoneySum { tenant_id, currency, captured, kept, to_refund, in_review, unsettled, clean }
        });
        let stock = self.stock.into_iter().map(|((tenant_id, show_id), parts)| {
            let [live, kept, to_release, in_review, unsettled, clean] = parts;
            StockSum { tenant_id, show_id, live, kept, to_release, in_review, unsettled, clean }
        });
        Sums { money: money.collect(), stock: stock.collect() }
    }
}

/// Whether a charge holds money, or may, that is not captured money the sums account for (contract, section 7).
fn stands_outside(charge: &Charge<'_>) -> bool {
    charge.may_hold_money() && charge.status != PaymentStatus::Captured
}

impl MoneySum {
    /// `captured`, then what it is made of.
    pub fn parts(&self) -> Parts {
        [self.captured, self.kept, self.to_refund, self.in_review, self.unsettled, self.clean]
    }
}

impl StockSum {
    /// `live`, then what it is made of.
    pub fn parts(&self) -> Parts {
        [self.live, self.kept, self.to_release, self.in_review, self.unsettled, self.clean]
    }
}
