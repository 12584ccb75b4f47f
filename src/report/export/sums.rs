//! The sums of a plan as rows, beside what has gone back and been released so far.

use std::collections::BTreeMap;

use crate::core::dossier::{Deed, Dossier, HoldFacts};
use crate::core::plan::Step;
use crate::core::sheet::Cell;
use crate::core::status::HoldStatus;

pub(super) const MONEY: [&str; 10] = [
    "Tenant",
    "Currency",
    "Captured",
    "Kept",
    "To refund",
    "In review",
    "Unsettled",
    "Clean",
    "Refunded so far",
    "Closes",
];
pub(super) const STOCK: [&str; 10] = [
    "Tenant",
    "Show",
    "Live",
    "Kept",
    "To release",
    "In review",
    "Unsettled",
    "Clean",
    "Released so far",
    "Closes",
];

fn closes(parts: [i128; 6]) -> Cell<'static> {
    let closes = parts[0] == parts[1..].iter().sum();
    Cell::Text(if closes { "yes" } else { "no" }.into())
}

/// A row for each tenant and currency, under [`MONEY`].
pub(super) fn money_rows<'a>(dossier: &'a Dossier<'a>) -> Vec<Vec<Cell<'a>>> {
    let refunded = dossier.refunded();
    let rows = dossier.plan.sums.money.iter().map(|sum| {
        let so_far = refunded.get(&(sum.tenant_id.clone(), sum.currency)).copied().unwrap_or(0);
        let names = [Cell::Text(sum.tenant_id.as_str().into()), Cell::Text(sum.currency.code().into())];
        let amounts = sum.parts().into_iter().chain([so_far]).map(|minor| Cell::Money(minor, sum.currency));
        names.into_iter().chain(amounts).chain([closes(sum.parts())]).collect()
    });
    rows.collect()
}

/// Whether a hold that the plan releases took stock at its `as_of`.
pub(super) fn was_live(step: &Step, hold: &HoldFacts) -> bool {
    step.from == HoldStatus::Confirmed.as_str() || !hold.has_lapsed
}

/// Live pieces that were released so far, by tenant and show.
pub(super) fn released(dossier: &Dossier<'_>) -> BTreeMap<(String, String), i64> {
    let mut sums = BTreeMap::new();
    for intent in &dossier.plan.intents {
        let done = intent.steps.iter().filter(|s| Deed::of(s) == Some(Deed::Release) && dossier.is_done(s));
        for step in done {
            if let Some(hold) = dossier.holds.get(&(intent.tenant_id.clone(), step.id.clone()))
                && was_live(step, hold)
            {
                *sums.entry((intent.tenant_id.to_string(), hold.show_id.to_string())).or_insert(0) +=
                    hold.quantity;
            }
        }
    }
    sums
}

/// A row for each tenant and show, under [`STOCK`].
pub(super) fn stock_rows<'a>(dossier: &'a Dossier<'a>) -> Vec<Vec<Cell<'a>>> {
    let released = released(dossier);
    let number = |n: i128| Cell::Number(i64::try_from(n).unwrap_or(i64::MAX));
    let rows = dossier.plan.sums.stock.iter().map(|sum| {
        let place = (sum.tenant_id.to_string(), sum.show_id.to_string());
        let so_far = released.get(&place).copied().unwrap_or(0);
        let names = [Cell::Text(sum.tenant_id.as_str().into()), Cell::Text(sum.show_id.as_str().into())];
        let parts = sum.parts().map(number).into_iter().chain([Cell::Number(so_far)]);
        names.into_iter().chain(parts).chain([closes(sum.parts())]).collect()
    });
    rows.collect()
}
