//! How much one run may do: a plan that exceeds it is refused before anything is begun.

use std::collections::BTreeMap;

use super::dossier::Deed;
use super::money::Currency;
use super::plan::Plan;
use super::tally::Tally;
use crate::error::{Error, Result};

/// Refunds that need no stated limit.
const REFUNDS: usize = 100;
/// And the share of the scope's live orders: one of so many.
const ONE_OF: u64 = 10;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Steps that are still to do.
    pub max_steps: Option<usize>,
    /// What may go back, in minor units. Once one is stated, a currency without one is refused.
    pub max_refunds: BTreeMap<Currency, i64>,
}

/// Adds `CNY:50000`, an amount in the currency's own unit, to what is stated; each currency once.
///
/// # Errors
/// Usage, saying how it is written.
pub fn add_stated(amounts: &mut BTreeMap<Currency, i64>, text: &str) -> Result<()> {
    let bad = |why: &str| {
        Error::usage(format!("the amount {text:?} {why}"))
            .hint("a currency and an amount in its own unit: CNY:50000")
    };
    let (code, amount) = text.split_once(':').ok_or_else(|| bad("has no colon"))?;
    let currency: Currency = code.parse().map_err(|_| bad("names no ISO 4217 currency"))?;
    let minor = currency.minor_of_decimal(amount).ok_or_else(|| bad("has no amount of that currency"))?;
    if minor < 0 {
        return Err(bad("is less than nothing"));
    }
    match amounts.insert(currency, minor) {
        None => Ok(()),
        Some(_) => Err(bad("is about a currency that is there twice")),
    }
}

impl Limits {
    /// These, and where they say nothing the configured ones.
    #[must_use]
    pub fn or(self, configured: &Self) -> Self {
        Self {
            max_steps: self.max_steps.or(configured.max_steps),
            max_refunds: if self.max_refunds.is_empty() {
                configured.max_refunds.clone()
            } else {
                self.max_refunds
            },
        }
    }

    /// The words of a command line that state sums as the limits.
    pub fn stated(sums: &BTreeMap<Currency, i128>) -> Vec<String> {
        let stated = |(currency, sum): (&Currency, &i128)| {
            ["--max-refund-total".to_owned(), format!("{}:{}", currency.code(), currency.show_bare(*sum))]
        };
        sums.iter().flat_map(stated).collect()
    }

    /// Refuses what is left to do of a plan where it is more than these allow.
    ///
    /// # Errors
    /// Refused, with what to type where it is meant.
    pub fn allow(&self, plan: &Plan, left: &Tally) -> Result<()> {
        let steps = left.steps();
        if let Some(max) = self.max_steps.filter(|max| steps > *max) {
            return Err(Error::refused(format!(
                "{} has {steps} steps to do, more than --max-steps {max}",
                plan.plan_id,
            ))
            .hint(format!("onefold show {} tells what they are; then state a higher limit", plan.plan_id)));
        }
        let sums = left.refunds();
        let meant = || {
            format!(
                "where that is meant, state it: onefold apply {} {}",
                plan.plan_id,
                Self::stated(&sums).join(" ")
            )
        };
        if self.max_refunds.is_empty() {
            let number = left.deeds(Deed::Refund);
            let what = if number > REFUNDS {
                format!("more than {REFUNDS}")
            } else if number as u64 * ONE_OF > plan.live_orders {
                format!("more than {} % of its scope's {} live orders", 100 / ONE_OF, plan.live_orders)
            } else {
                return Ok(());
            };
            return Err(Error::refused(format!(
                "{} would refund {number} charge{}, {what}, and no limit is stated",
                plan.plan_id,
                if number == 1 { "" } else { "s" },
            ))
            .hint(meant()));
        }
        for (currency, sum) in &sums {
            match self.max_refunds.get(currency) {
                None => {
                    return Err(Error::refused(format!(
                        "{} would give back {}, and no limit is stated for {}",
                        plan.plan_id,
                        currency.show(*sum),
                        currency.code()
                    ))
                    .hint(meant()));
                }
                Some(max) if *sum > i128::from(*max) => {
                    return Err(Error::refused(format!(
                        "{} would give back {}, more than the limit of {}",
                        plan.plan_id,
                        currency.show(*sum),
                        currency.show((*max).into())
                    ))
                    .hint(meant()));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }
}
