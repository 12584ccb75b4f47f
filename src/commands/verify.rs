//! `onefold verify`: read the ledgers again and prove that a plan came true.

use std::collections::HashSet;

use clap::Args;
use serde_json::json;

use super::decided::apply_line;
use super::progress::Progress;
use super::status::step_table;
use super::{caveat, count};
use crate::config::Config;
use crate::core::ids::RowId;
use crate::core::money::Currency;
use crate::core::plan::{Outcome, PlannedIntent};
use crate::core::verify::{Verified, verify};
use crate::error::{Error, Exit, Result};
use crate::report::{Column, Report, Table};
use crate::store::Store;
use crate::store::plans::{PlanState, SavedPlan};
use crate::store::steps::{StepRecord, StepState};

/// Read the ledgers again and hold them against a plan; changes nothing
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  onefold verify PL-5c1d2e3f40
  onefold verify --json

For what was kept or unwound: at most one live order, nothing captured, held or queued for a closed
one, sums that close, refunds as planned. REVIEW and UNSETTLED are listed (exit code 6), not called
violations (exit code 5). Without a plan, the newest one that could be applied.")]
pub struct VerifyArgs {
    /// The plan's id
    plan: Option<String>,
}

pub async fn run(config: &Config, args: VerifyArgs) -> Result<Report> {
    let store = config.open_to_read().await?;
    let plan_id = match args.plan {
        Some(plan_id) => plan_id,
        None => newest(&store).await?,
    };
    let saved = store.plan_by_id(&plan_id).await?;
    let plan = &saved.plan;
    let progress = Progress::new(config, "reading again");
    let mut after = store.read_scope(&plan.scope).await?;
    // The plan's own rows are read wherever they have gone, also out of its scope.
    let there: HashSet<_> = after.orders.iter().map(|o| (&o.tenant_id, &o.order_id)).collect();
    let gone = |i: &&PlannedIntent| i.orders.iter().any(|id| !there.contains(&(&i.tenant_id, id)));
    let elsewhere: Vec<_> = plan.intents.iter().filter(gone).collect();
    after.absorb(store.read_intents(elsewhere).await?);
    // Whichever plan sent them: a request about one of these payments is not over.
    let payments: HashSet<_> =
        after.payments.iter().map(|p| (&p.tenant_id, RowId::from(&p.payment_id))).collect();
    let in_flight: Vec<_> = store
        .open_steps()
        .await?
        .into_iter()
        .filter(|r| r.plan_id == plan_id || payments.contains(&(&r.tenant_id, r.step.id.clone())))
        .collect();
    let begun = store.steps_of_plan(&plan_id).await?;
    let has_conflict = begun.iter().any(|r| r.state == StepState::Conflict);
    let verified = verify(plan, &after);
    progress.end();
    let freeze = match &plan.freeze_id {
        Some(freeze_id) => Some(store.freeze_by_id(freeze_id).await?),
        None => None,
    };
    let mut report = freeze
        .as_ref()
        .and_then(caveat)
        .into_iter()
        .fold(report(&saved, &verified, &in_flight, has_conflict), Report::line);
    report.json["freeze_mode"] = json!(freeze.map(|f| f.mode));
    Ok(report)
}

async fn newest(store: &Store) -> Result<String> {
    let plans = store.newest_plans().await?;
    plans
        .into_iter()
        .find(|p| p.freeze_id.is_some())
        .map(|p| p.plan_id)
        .ok_or_else(|| Error::usage("no plan has been made under a freeze").hint("onefold plan --show S-204"))
}

fn report(saved: &SavedPlan, verified: &Verified, in_flight: &[StepRecord], has_conflict: bool) -> Report {
    let plan = &saved.plan;
    let mut violations = Table::new([Column::exact("INTENT"), Column::prose("VIOLATION")]);
    let mut broken = 0;
    // While a request of ours is in flight, what comes after it cannot have been done.
    let in_flight_of: HashSet<_> =
        in_flight.iter().filter(|r| r.plan_id == plan.plan_id).map(|r| r.intent_id.as_str()).collect();
    for intent in &verified.intents {
        let waits = in_flight_of.contains(intent.intent_id.as_str());
        for violation in intent.violations.iter().filter(|v| !(waits && v.is_unfinished())) {
            broken += 1;
            violations.row([intent.intent_id.clone(), violation.to_string()]);
        }
    }
    for sum in &verified.open_sums {
        broken += 1;
        let show = |n: i128| match sum.of.parse::<Currency>() {
            Ok(currency) => currency.show(n),
            Err(_) => format!("{n} pieces of {}", sum.of),
        };
        let what = format!(
            "tenant {}: {} should be left, {} are",
            sum.tenant_id,
            show(sum.expected),
            show(sum.found)
        );
        violations.row(["-".to_owned(), what]);
    }
    let undecided: Vec<_> =
        plan.intents.iter().filter(|i| matches!(i.outcome, Outcome::Review | Outcome::Unsettled)).collect();
    let mut waiting = Table::new([
        Column::exact("INTENT"),
        Column::exact("OUTCOME"),
        Column::exact("USER"),
        Column::prose("BECAUSE"),
    ]);
    for intent in &undecided {
        let why = if intent.review_reasons.is_empty() { &intent.findings } else { &intent.review_reasons };
        waiting.row([
            intent.intent_id.clone(),
            intent.outcome.to_string(),
            intent.user_id.as_ref().map_or("-".to_owned(), ToString::to_string),
            why.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
        ]);
    }
    let settled =
        plan.intents.iter().filter(|i| matches!(i.outcome, Outcome::Keep | Outcome::Unwind)).count();
    let mut exit = Exit::Done;
    if broken > 0 {
        exit = exit.or(Exit::Violations);
    }
    if !undecided.is_empty() || !in_flight.is_empty() {
        exit = exit.or(Exit::Undecided);
    }
    let report = Report::new(json!({
        "plan_id": plan.plan_id,
        "holds": verified.holds(),
        "verified": verified,
        "undecided": undecided.iter().map(|i| json!({
            "intent_id": i.intent_id, "outcome": i.outcome, "review_reasons": i.review_reasons,
        })).collect::<Vec<_>>(),
        "in_flight": in_flight.iter().map(|r| json!({
            "intent_id": r.intent_id, "ledger": r.step.ledger, "id": r.step.id, "state": r.state,
        })).collect::<Vec<_>>(),
    }))
    .title(format!(
        "{}: {} kept or unwound, {}",
        plan.plan_id,
        count(settled, "intent"),
        count(broken, "violation")
    ))
    .table(violations)
    .table(before_and_after(verified));
    let report = match undecided.is_empty() {
        true => report,
        false => report
            .title(format!("{} for a person or the provider", count(undecided.len(), "intent")))
            .table(waiting),
    };
    let report = match (in_flight.is_empty(), broken) {
        (false, _) => report
            .title("Steps in flight")
            .table(step_table(in_flight))
            .line("Next, to learn what the provider has done, and to go on from there:")
            .command(format!("onefold converge --plan {}", plan.plan_id))
            .command(apply_line(&plan.plan_id, &plan.refunds())),
        (true, 1..) if has_conflict => report
            .line("Rows moved since the plan was made, and its intents stopped. Decide again:")
            .command("onefold plan"),
        (true, 1..) if saved.state == PlanState::Open => report
            .line("The plan has not been carried out to its end. Next:")
            .command(apply_line(&plan.plan_id, &plan.refunds())),
        _ => report,
    };
    report.exit(exit)
}

fn before_and_after(verified: &Verified) -> Table {
    let mut table = Table::new([
        Column::exact("TENANT"),
        Column::exact("OF"),
        Column::number("BEFORE"),
        Column::number("NOW"),
        Column::number("TO LEAVE"),
        Column::number("STILL TO LEAVE"),
    ]);
    for before in &verified.before.money {
        let now = verified
            .after
            .money
            .iter()
            .find(|m| m.tenant_id == before.tenant_id && m.currency == before.currency);
        let show = |amount: i128| before.currency.show_bare(amount);
        table.row([
            before.tenant_id.to_string(),
            before.currency.to_string(),
            show(before.captured),
            show(now.map_or(0, |n| n.captured)),
            show(before.to_refund),
            show(now.map_or(0, |n| n.to_refund)),
        ]);
    }
    for before in &verified.before.stock {
        let now = verified
            .after
            .stock
            .iter()
            .find(|s| s.tenant_id == before.tenant_id && s.show_id == before.show_id);
        table.row([
            before.tenant_id.to_string(),
            format!("stock {}", before.show_id),
            before.live.to_string(),
            now.map_or(0, |n| n.live).to_string(),
            before.to_release.to_string(),
            now.map_or(0, |n| n.to_release).to_string(),
        ]);
    }
    table
}
