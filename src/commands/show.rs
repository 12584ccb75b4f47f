//! `onefold show`: a saved plan again, and why one intent was decided as it was.

use clap::Args;
use serde_json::json;

use super::decided::{LISTED, steps, tell};
use super::plan::{basis, heading};
use super::progress::Progress;
use crate::config::Config;
use crate::core::approval::Approval;
use crate::core::explain::row_in_words;
use crate::core::plan::{Outcome, Plan, PlannedIntent};
use crate::core::plan_text::IntentTexts;
use crate::core::tally::Tally;
use crate::error::{Error, Result};
use crate::report::{Column, Report, Table};

/// Show a saved plan; with --intent the evidence, order by order, and the steps
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  onefold show PL-5c1d2e3f40
  onefold show PL-5c1d2e3f40 --intent I-0f3a
  onefold show PL-5c1d2e3f40 --intent O-20141

An intent is named by its id, by the first characters of it, by one of its orders, by its user where
he has no other, or by a row of it that has no order.")]
pub struct ShowArgs {
    /// The plan's id
    plan: String,
    /// The intent to explain
    #[arg(long, value_name = "INTENT")]
    intent: Option<String>,
    /// List every intent, however many there are
    #[arg(long)]
    all: bool,
}

pub async fn run(config: &Config, args: ShowArgs) -> Result<Report> {
    let store = config.open_to_read().await?;
    let mut parts = store.parts_of_plan(&args.plan).await?;
    let saved = parts.saved.clone();
    let mut plan = saved.plan;
    let progress = Progress::new(config, "reading the plan");
    // Those that are told of: a plan may have a million.
    let mut all = Tally::default();
    let mut texts = IntentTexts::default();
    while let Some(intents) = parts.next().await? {
        for intent in intents {
            all.add(&intent);
            let is_told = match &args.intent {
                Some(name) => goes_by(&intent, name),
                None => intent.outcome != Outcome::Clean,
            };
            if args.intent.is_none() && config.format.is_json() {
                texts.add(&intent);
            }
            if is_told {
                plan.intents.push(intent);
            }
        }
    }
    progress.end();
    if let Some(name) = &args.intent {
        return Ok(explain(find(&plan, name)?));
    }
    let limit = if args.all { usize::MAX } else { LISTED };
    let approvals = store.approvals(&plan.digest).await?;
    let mut told = Report::new(json!({ "state": saved.state, "made_by": saved.made_by, "maker": saved.maker,
            "superseded_by": saved.superseded_by, "begun_at": saved.begun_at, "approvals": approvals,
            "plan": plan.without_intents() }))
    .title(heading(&plan))
    .line(format!("{}, made at {} by {}", saved.state, plan.made_at, saved.made_by));
    told.intents = Some(texts);
    let approved = |a: &Approval| format!("approved at {} by {} ({}): {}", a.at, a.actor, a.by, a.because);
    let told = approvals.iter().map(approved).fold(told, Report::line);
    Ok(tell(basis(told, &plan), &plan, &all, limit))
}

/// Whether an intent may be meant by a name: its id or how that begins, one of its rows, or its user.
fn goes_by(intent: &PlannedIntent, name: &str) -> bool {
    intent.intent_id.starts_with(name) || is_of_row(intent, name) || is_of_user(intent, name)
}

fn is_of_row(intent: &PlannedIntent, name: &str) -> bool {
    intent.orders.iter().any(|id| id.as_str() == name)
        || intent.orphans.iter().any(|(_, id)| id.as_str() == name)
}

fn is_of_user(intent: &PlannedIntent, name: &str) -> bool {
    intent.user_id.as_ref().is_some_and(|id| id.as_str() == name)
}

/// The intent that a name stands for, among all that go by it.
fn find<'p>(plan: &'p Plan, name: &str) -> Result<&'p PlannedIntent> {
    let only = |is_it: fn(&PlannedIntent, &str) -> bool| {
        let mut of = plan.intents.iter().filter(|intent| is_it(intent, name));
        of.next().filter(|_| of.next().is_none())
    };
    let exact = plan.intents.iter().find(|i| i.intent_id == name);
    if let Some(intent) = exact.or_else(|| only(is_of_row)).or_else(|| only(is_of_user)) {
        return Ok(intent);
    }
    let named: Vec<_> = plan.intents.iter().filter(|intent| goes_by(intent, name)).collect();
    match (named.first(), named.len()) {
        (Some(intent), 1) => Ok(intent),
        (Some(_), several) => {
            let ids: Vec<_> = named.iter().take(5).map(|i| i.intent_id.as_str()).collect();
            let more = if several > ids.len() { ", …" } else { "" };
            Err(Error::usage(format!("{several} intents of {} go by {name}", plan.plan_id))
                .hint(format!("name one of {}{more}", ids.join(", "))))
        }
        (None, _) => Err(Error::usage(format!("{} has no intent {name}", plan.plan_id))
            .hint(format!("onefold show {} lists them", plan.plan_id))),
    }
}

fn explain(intent: &PlannedIntent) -> Report {
    let names = |list: &[crate::core::plan::Finding]| {
        list.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    };
    let of: Vec<_> = [
        Some(format!("tenant {}", intent.tenant_id)),
        intent.user_id.as_ref().map(|u| format!("user {u}")),
        intent.show_id.as_ref().map(|s| format!("show {s}")),
        intent.session_id.as_ref().map(|s| format!("session {s}")),
    ]
    .into_iter()
    .flatten()
    .collect();
    let mut report = Report::new(json!(intent))
        .title(format!("{}: {}", intent.intent_id, intent.outcome))
        .line(of.join(", "))
        .line(format!("row {} of the table: {}", intent.decided_by, row_in_words(intent.decided_by)));
    if let Some(chosen) = &intent.override_keep {
        report = report.line(format!("an operator keeps {}: {}", chosen.order_id, chosen.because));
    }
    if !intent.findings.is_empty() {
        report = report.line(format!("findings: {}", names(&intent.findings)));
    }
    if !intent.review_reasons.is_empty() {
        report = report.line(format!("a person must look because of: {}", names(&intent.review_reasons)));
    }
    if !intent.orphans.is_empty() {
        let orphans: Vec<_> = intent.orphans.iter().map(|(l, id)| format!("{} {id}", l.row_name())).collect();
        report = report.line(format!("without order: {}", orphans.join(", ")));
    }
    let mut orders = Table::new([
        Column::exact("ORDER"),
        Column::exact("STATUS"),
        Column::number("AMOUNT"),
        Column::number("CAPTURED"),
        Column::prose("WHAT BECOMES OF IT, AND WHY"),
    ]);
    for order in &intent.evidence {
        orders.row([
            order.order_id.to_string(),
            order.status.to_string(),
            order.currency.show(order.amount_minor.into()),
            order.currency.show_bare(order.net_minor.into()),
            order.because.clone(),
        ]);
    }
    let report = report.table(orders);
    match intent.steps.is_empty() {
        true => report.line("No step."),
        false => report.title("Steps").table(steps(intent)),
    }
}
