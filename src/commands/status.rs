//! `onefold status`: who holds what, and what is under way.

use std::collections::BTreeSet;

use clap::Args;
use serde_json::json;

use super::{count, now};
use crate::config::Config;
use crate::core::freeze::{Freeze, FreezeState};
use crate::core::time::{Span, Timestamp};
use crate::error::Result;
use crate::report::{Column, Report, Table};
use crate::store::plans::PlanHead;
use crate::store::steps::{StepRecord, StepState};

/// Show live freezes and their leases, the newest plans, and steps in flight
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  onefold status\n  onefold status --json")]
pub struct StatusArgs {}

pub async fn run(config: &Config, _: StatusArgs) -> Result<Report> {
    let store = config.open_to_read().await?;
    let standing = store.standing_rule().await?;
    let (freezes, plans, steps) =
        (store.open_freezes().await?, store.newest_plans().await?, store.open_steps().await?);
    let now = now();
    let json = json!({
        "now": now,
        "standing_rule": standing,
        "freezes": freezes.iter().map(|f| json!({
            "freeze": f,
            "live": f.is_live(now),
            "seconds_left": f.time_left(now).map(|s| s.micros() / 1_000_000),
        })).collect::<Vec<_>>(),
        "plans": plans.iter().map(|p| json!({
            "plan_id": p.plan_id, "state": p.state, "freeze_id": p.freeze_id,
            "made_at": p.made_at, "made_by": p.made_by,
        })).collect::<Vec<_>>(),
        "steps_in_flight": steps.iter().map(|r| json!({
            "step_key": r.step_key, "plan_id": r.plan_id, "intent_id": r.intent_id, "ledger": r.step.ledger, "tenant_id": r.tenant_id,
            "id": r.step.id, "from": r.step.from, "to": r.step.to, "state": r.state, "owner": r.owner,
            "since": r.updated_at, "note": r.note,
        })).collect::<Vec<_>>(),
    });
    let report = Report::new(json);
    let report = match standing.rule.required {
        true => report.line(format!("By the rule that stands {}.", standing.rule)),
        false => report,
    };
    let report = match freezes.is_empty() {
        true => report.line("No freeze is live."),
        false => report.title("Freezes").table(freeze_table(&freezes, now)),
    };
    let report = freezes.iter().filter(|f| !f.is_live(now)).fold(report, |report, f| {
        report
            .line(format!("{} has lapsed and holds nothing; its owner may renew it:", f.freeze_id))
            .command(format!("onefold freeze --renew {}", f.freeze_id))
    });
    let report = match plans.is_empty() {
        true => report.line("No plan has been made."),
        false => report.title("Plans").table(plan_table(&plans)),
    };
    Ok(match steps.is_empty() {
        true => report.line("No step is in flight."),
        false => asked_about(report.title("Steps in flight").table(step_table(&steps)), &steps),
    })
}

/// What to type where a provider has not said how requests ended.
pub fn asked_about(report: Report, steps: &[StepRecord]) -> Report {
    let open = steps.iter().filter(|r| matches!(r.state, StepState::Unknown | StepState::Accepted));
    let plans: BTreeSet<_> = open.map(|r| r.plan_id.as_str()).collect();
    if plans.is_empty() {
        return report;
    }
    let report = report.line("The provider has not said how all of these ended. To ask it:");
    plans.into_iter().fold(report, |report, plan| report.command(format!("onefold converge --plan {plan}")))
}

fn freeze_table(freezes: &[Freeze], now: Timestamp) -> Table {
    let mut table = Table::new([
        Column::exact("FREEZE"),
        Column::exact("STATE"),
        Column::exact("MODE"),
        Column::exact("TIME LEFT"),
        Column::exact("OWNER"),
        Column::prose("SCOPE AND REASON"),
    ]);
    for f in freezes {
        let left = match f.time_left(now) {
            // Whole seconds: nobody plans by less.
            Some(left) => Span::from_secs(left.micros() / 1_000_000).to_string(),
            None => "-".to_owned(),
        };
        let state = if f.is_live(now) { f.state } else { FreezeState::Lapsed };
        let held = f.narrowed_to.as_ref();
        let held = held.map(|held| format!(", {} of it", count(held.len(), "intent"))).unwrap_or_default();
        let about = format!("{}{held}: {}", f.scope.in_words(), f.reason);
        table.row([f.freeze_id.clone(), state.to_string(), f.mode.to_string(), left, f.owner.clone(), about]);
    }
    table
}

fn plan_table(plans: &[PlanHead]) -> Table {
    let mut table = Table::new([
        Column::exact("PLAN"),
        Column::exact("STATE"),
        Column::exact("FREEZE"),
        Column::exact("MADE AT"),
    ]);
    for p in plans {
        let freeze = p.freeze_id.clone().unwrap_or_else(|| "-".to_owned());
        table.row([p.plan_id.clone(), p.state.to_string(), freeze, p.made_at.to_string()]);
    }
    table
}

/// One line a step that was begun and not ended.
pub fn step_table(steps: &[StepRecord]) -> Table {
    let mut table = Table::new([
        Column::exact("ROW"),
        Column::exact("MOVE"),
        Column::exact("STATE"),
        Column::exact("STEP"),
        Column::prose("NOTE"),
    ]);
    for r in steps {
        table.row([
            format!("{} {}", r.step.ledger.row_name(), r.step.id),
            format!("{}→{}", r.step.from, r.step.to),
            r.state.to_string(),
            r.step_key.chars().take(12).collect(),
            r.note.clone().unwrap_or_default(),
        ]);
    }
    table
}
