//! How decisions are told: the intents of a plan, and its sums.

use std::collections::BTreeMap;

use super::count;
use crate::core::dossier::sheets::{Waiting, waiting};
use crate::core::dossier::{Deed, Dossier};
use crate::core::limits::Limits;
use crate::core::money::Currency;
use crate::core::plan::{Outcome, OutsideMoney, Plan, PlannedIntent, Sums};
use crate::core::tally::Tally;
use crate::core::words::findings_in_words;
use crate::report::{Column, Report, Table};

/// How many intents are listed unless all are asked for.
pub const LISTED: usize = 40;

/// What happens, what needs a person, outcomes, intents that are not CLEAN, and sums. `all` is of every intent; in the
/// plan's list stand at least those that are not decided, and the first others up to the limit.
pub fn tell(report: Report, plan: &Plan, all: &Tally, limit: usize) -> Report {
    let dossier = Dossier::of_plan(plan);
    let report = needs_a_person(what_happens(report, &dossier, all), &dossier);
    let report = report.table(outcomes(all));
    let notable = plan.intents.iter().filter(|i| i.outcome != Outcome::Clean);
    let report = report.table(intents(notable.take(limit)));
    let notable = all.intents() - all.counts(Outcome::Clean).intents;
    let report = match notable.saturating_sub(limit) {
        0 => report,
        more => report.line(format!(
            "… and {}; all of them: onefold show {} --all",
            count(more, "more intent"),
            plan.plan_id
        )),
    };
    tell_sums(report, &plan.sums).table(outside(&plan.outside_sums))
}

pub fn tell_sums(report: Report, sums: &Sums) -> Report {
    report.table(money(sums)).table(stock(sums))
}

/// A line each for money, orders, stock and messages, of all intents; how much of it is done, where something is.
pub fn what_happens(report: Report, dossier: &Dossier<'_>, all: &Tally) -> Report {
    let progress = dossier.progress();
    let begun = !dossier.ends.is_empty();
    let deed = |deed, what: &str, happens: &str| {
        let (planned, done) = (all.deeds(deed), progress.get(&deed).map_or(0, |of| of.done));
        let done = if begun { format!(" ({done} done)") } else { String::new() };
        (planned > 0).then(|| format!("{} {happens}{done}", count(planned, what)))
    };
    let back = format!("of {} in all", money_in_words(&all.refunds()));
    let refunds = deed(Deed::Refund, "refund", &back);
    let kept = Some(all.counts(Outcome::Keep).intents).filter(|n| *n > 0);
    let lines = [
        ("money", [refunds, deed(Deed::Void, "card", "let go"), None]),
        (
            "orders",
            [
                kept.map(|n| {
                    format!(
                        "{} one",
                        if n == 1 { "1 purchase keeps".to_owned() } else { format!("{n} purchases keep") }
                    )
                }),
                deed(Deed::Cancel, "order", "closed"),
                deed(Deed::Confirm, "order", "confirmed as PAID"),
            ],
        ),
        ("stock", [deed(Deed::Release, "hold", "released"), None, None]),
        ("messages", [deed(Deed::Quarantine, "message", "quarantined"), None, None]),
    ];
    let mut table = Table::new([Column::exact("WHAT"), Column::prose("HAPPENS")]);
    for (what, parts) in lines {
        let parts: Vec<_> = parts.into_iter().flatten().collect();
        let happens = if parts.is_empty() { "nothing".to_owned() } else { parts.join("; ") };
        table.row([what.to_owned(), happens]);
    }
    report.table(table)
}

/// How many command lines are shown for one reason.
const LINES: usize = 4;

/// What somebody must decide, by reason, in words, and the command that would decide it.
pub fn needs_a_person(report: Report, dossier: &Dossier<'_>) -> Report {
    let groups = waiting(dossier.plan);
    if groups.is_empty() {
        return report;
    }
    let all = groups.iter().map(|group| group.intents.len()).sum();
    let flags = dossier.plan_flags();
    let mut report = report
        .title(format!("{} for a person or the provider, left alone until then", count(all, "purchase")));
    for Waiting { outcome, findings, intents } in groups {
        let names: Vec<_> = findings.iter().map(|f| f.as_str()).collect();
        report = report.line(format!(
            "{}{}: {} ({})",
            count(intents.len(), "purchase"),
            if outcome == Outcome::Unsettled { " for the provider" } else { "" },
            findings_in_words(&findings),
            names.join(", ")
        ));
        let mut lines: Vec<String> = Vec::new();
        for line in intents.iter().flat_map(|intent| dossier.next(intent, &flags)) {
            if !lines.contains(&line) {
                lines.push(line);
            }
            if lines.len() > LINES {
                break;
            }
        }
        let more = lines.len() > LINES;
        report = lines.into_iter().take(LINES).fold(report, Report::command);
        if more {
            report = report.line("  …");
        }
    }
    report.line("")
}

/// How many intents and steps each outcome has.
pub fn outcomes(all: &Tally) -> Table {
    let mut table = Table::new([
        Column::exact("OUTCOME"),
        Column::number("INTENTS"),
        Column::number("ORDERS"),
        Column::number("STEPS"),
        Column::exact("REFUNDS"),
    ]);
    for outcome in [Outcome::Keep, Outcome::Unwind, Outcome::Review, Outcome::Unsettled, Outcome::Clean] {
        let of = all.counts(outcome);
        if of.intents == 0 {
            continue;
        }
        table.row([
            outcome.to_string(),
            of.intents.to_string(),
            of.orders.to_string(),
            of.steps.to_string(),
            money_in_words(&of.refunds),
        ]);
    }
    table
}

/// One line an intent.
pub fn intents<'a>(intents: impl Iterator<Item = &'a PlannedIntent>) -> Table {
    let mut table = Table::new([
        Column::exact("INTENT"),
        Column::exact("USER"),
        Column::number("ORDERS"),
        Column::exact("OUTCOME"),
        Column::exact("KEEP"),
        Column::prose("WHY"),
    ]);
    for intent in intents {
        let why = if intent.review_reasons.is_empty() { &intent.findings } else { &intent.review_reasons };
        let chosen = intent.override_keep.iter().map(|keep| format!("(kept by choice: {})", keep.because));
        table.row([
            intent.intent_id.clone(),
            intent.user_id.as_ref().map_or("-".to_owned(), ToString::to_string),
            intent.orders.len().to_string(),
            intent.outcome.to_string(),
            intent.keep.as_ref().map_or("-".to_owned(), ToString::to_string),
            why.iter().map(ToString::to_string).chain(chosen).collect::<Vec<_>>().join(" "),
        ]);
    }
    table
}

fn money(sums: &Sums) -> Table {
    let mut table = Table::new(
        [Column::exact("TENANT"), Column::exact("MONEY")]
            .into_iter()
            .chain(["CAPTURED", "KEPT", "REFUND", "REVIEW", "UNSETTLED", "CLEAN"].map(Column::number)),
    );
    for s in &sums.money {
        let parts = [s.captured, s.kept, s.to_refund, s.in_review, s.unsettled, s.clean];
        table.row(
            [s.tenant_id.to_string(), s.currency.to_string()]
                .into_iter()
                .chain(parts.map(|part| s.currency.show_bare(part))),
        );
    }
    table
}

fn stock(sums: &Sums) -> Table {
    let mut table = Table::new(
        [Column::exact("TENANT"), Column::exact("STOCK")]
            .into_iter()
            .chain(["LIVE", "KEPT", "RELEASE", "REVIEW", "UNSETTLED", "CLEAN"].map(Column::number)),
    );
    for s in &sums.stock {
        let parts = [s.live, s.kept, s.to_release, s.in_review, s.unsettled, s.clean];
        table.row(
            [s.tenant_id.to_string(), s.show_id.to_string()]
                .into_iter()
                .chain(parts.map(|part| part.to_string())),
        );
    }
    table
}

/// The money that stands in no sum.
pub fn outside(outside: &[OutsideMoney]) -> Table {
    let mut table = Table::new([
        Column::exact("TENANT"),
        Column::exact("OUTSIDE THE SUMS"),
        Column::number("CHARGES"),
        Column::number("AMOUNT"),
    ]);
    for o in outside {
        table.row([
            o.tenant_id.to_string(),
            o.status.to_string(),
            o.charges.to_string(),
            o.currency.show(o.amount_minor),
        ]);
    }
    table
}

/// One line a step.
pub fn steps(intent: &PlannedIntent) -> Table {
    let mut table = Table::new([
        Column::number("#"),
        Column::exact("ROW"),
        Column::exact("ID"),
        Column::exact("FROM"),
        Column::exact("TO"),
        Column::number("AMOUNT"),
    ]);
    for (i, step) in intent.steps.iter().enumerate() {
        table.row([
            (i + 1).to_string(),
            step.ledger.row_name().to_owned(),
            step.id.to_string(),
            step.from.clone(),
            step.to.clone(),
            match (step.amount_minor, step.currency) {
                (Some(amount), Some(currency)) => currency.show(amount.into()),
                _ => String::new(),
            },
        ]);
    }
    table
}

/// The command line that carries a plan out, and states what goes back with it.
pub fn apply_line(plan_id: &str, refunds: &BTreeMap<Currency, i128>) -> String {
    [vec![format!("onefold apply {plan_id}")], Limits::stated(refunds)].concat().join(" ")
}

/// Sums of several currencies, in minor units, in words; empty where there are none.
pub fn money_in_words(sums: &BTreeMap<Currency, i128>) -> String {
    let sums: Vec<_> = sums.iter().map(|(currency, sum)| currency.show(*sum)).collect();
    sums.join(" + ")
}
