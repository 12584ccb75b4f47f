//! `onefold report`: a plan with all that became of it, for whoever must sign it.

use std::collections::HashMap;
use std::path::Path;

use clap::Args;
use serde_json::json;

use super::decided::{needs_a_person, outcomes, outside, tell_sums, what_happens};
use super::leaving::{OutputFlags, format, told};
use super::now;
use super::progress::Progress;
use super::redaction::{given_key, key};
use super::typing::again;
use crate::config::Config;
use crate::core::dossier::pseudonyms::{Pseudonyms, RedactKey};
use crate::core::dossier::sheets::Sheet;
use crate::core::dossier::timeline::{Mark, Timeline};
use crate::core::dossier::{ChargeFacts, Deed, Dossier, HoldFacts, StepEnd};
use crate::core::freeze::Freeze;
use crate::core::ids::{RowId, TenantId};
use crate::core::ledger::{Hold, Payment};
use crate::core::plan::Plan;
use crate::core::sheet::Cell;
use crate::core::tally::Tally;
use crate::error::Result;
use crate::report::export::{
    Csv, Export, Html, Json, Kind, Limits, OneSheet, ROWS_A_SHEET, Target, Written, Xlsx,
};
use crate::report::{Format, Report, Table};
use crate::store::Store;
use crate::store::journal::Entry;
use crate::store::plans::SavedPlan;

/// Report a plan and what became of it, for people to read, sign and keep; changes nothing
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  onefold report PL-5c1d2e3f40
  onefold report PL-5c1d2e3f40 --format xlsx --output incident.xlsx
  onefold report PL-5c1d2e3f40 --format html --output incident.html \\
      --redact
  onefold report PL-5c1d2e3f40 --format csv --sheet refunds > refunds.csv

Before apply it is the dry run, during apply the state so far, afterwards the
plan beside what happened. A file is written whole or not at all, and none that
is there is written over without --force, which lets it replace a report of
the same format and nothing else: a report is evidence.

--redact puts pseudonyms in the place of user, session and trace ids. Their key
is made once and kept in the journal's database, so that two reports of one
incident agree; ONEFOLD_REDACT_KEY stands over it.")]
pub struct ReportArgs {
    /// The plan's id
    plan: String,
    #[command(flatten)]
    output: OutputFlags,
    /// Put pseudonyms in the place of user, session and trace ids
    #[arg(long)]
    redact: bool,
}

pub async fn run(config: &Config, args: ReportArgs) -> Result<Report> {
    let format = format(config);
    let names: Vec<_> = Sheet::ALL.into_iter().map(Sheet::name).collect();
    let sheet = args.output.sheet(&names)?.map(|place| Sheet::ALL[place]);
    let kind = Kind::of_plan(format, sheet);
    args.output.check(config, format, "report", "refunds", &kind)?;
    let given = args.redact.then(given_key).transpose()?.flatten();
    let store = config.open_to_read().await?;
    let saved = store.plan_by_id(&args.plan).await?;
    let progress = Progress::new(config, "reading what became of it");
    let freeze = match &saved.plan.freeze_id {
        Some(freeze_id) => Some(store.freeze_by_id(freeze_id).await?),
        None => None,
    };
    let mut dossier = assemble(&store, &saved, freeze.as_ref(), format == Format::Html).await?;
    if args.redact {
        dossier.pseudonyms = Some(pseudonyms(&store, &saved.plan, given).await?);
    }
    progress.end();
    if format == Format::Table {
        return Ok(table(config, &dossier));
    }
    let progress = Progress::new(config, "writing");
    let written = write(&store, &dossier, &args.output, format, sheet).await?;
    progress.end();
    let more = json!({ "plan_id": args.plan, "redacted": args.redact });
    Ok(told(config, args.output.output.as_deref(), &written, more))
}

/// Reads all that is known of a plan, but for the journal.
async fn assemble<'a>(
    store: &Store,
    saved: &'a SavedPlan,
    freeze: Option<&'a Freeze>,
    draws: bool,
) -> Result<Dossier<'a>> {
    let plan = &saved.plan;
    let ends: HashMap<_, _> = store
        .steps_of_plan(&plan.plan_id)
        .await?
        .into_iter()
        .map(|record| {
            let end = StepEnd {
                state: record.state.as_str(),
                is_done: record.state.is_done(),
                at: record.updated_at,
                provider_ref: record.provider_ref,
                note: record.note,
            };
            (record.step_key, end)
        })
        .collect();
    let of = |deeds: &'static [Deed]| {
        plan.intents.iter().flat_map(move |intent| {
            let steps = intent.steps.iter().filter(|s| Deed::of(s).is_some_and(|deed| deeds.contains(&deed)));
            steps.map(|step| (&intent.tenant_id, &step.id))
        })
    };
    let mut charges: HashMap<(TenantId, RowId), ChargeFacts> = HashMap::new();
    store
        .rows_by_ids(of(&[Deed::Refund, Deed::Void]), |row: Payment| {
            let id = (row.tenant_id.clone(), RowId::from(&row.payment_id));
            let facts = ChargeFacts {
                order_id: row.order_id,
                provider: row.provider,
                provider_txn_id: row.provider_txn_id,
            };
            charges.insert(id, facts);
        })
        .await?;
    let mut holds: HashMap<(TenantId, RowId), HoldFacts> = HashMap::new();
    store
        .rows_by_ids(of(&[Deed::Release]), |row: Hold| {
            let id = (row.tenant_id.clone(), RowId::from(&row.hold_id));
            holds.insert(id, HoldFacts::new(&row, plan.as_of));
        })
        .await?;
    let mut timeline = if draws { store.timeline(&plan.scope).await? } else { Timeline::default() };
    timeline.marks = marks(freeze, &ends);
    Ok(Dossier {
        plan,
        state: saved.state.as_str(),
        made_by: &saved.made_by,
        superseded_by: saved.superseded_by.as_deref(),
        freeze,
        read_at: now(),
        ends,
        charges,
        holds,
        timeline,
        approvals: store.approvals(&plan.digest).await?,
        heads: store.heads_of_plan(&plan.plan_id).await?,
        pseudonyms: None,
    })
}

/// When onefold froze, and began and ended to carry out.
fn marks(freeze: Option<&Freeze>, ends: &HashMap<String, StepEnd>) -> Vec<Mark> {
    let times = || ends.values().map(|end| end.at);
    let frozen = freeze.map(|f| Mark { what: "freeze", at: f.frozen_at });
    let begun = times().min().map(|at| Mark { what: "apply", at });
    let ended = times().max().map(|at| Mark { what: "last step", at });
    frozen.into_iter().chain(begun).chain(ended).collect()
}

async fn pseudonyms(store: &Store, plan: &Plan, given: Option<RedactKey>) -> Result<Pseudonyms> {
    let mut pseudonyms = Pseudonyms::new(key(given, Some(store)).await?);
    for intent in &plan.intents {
        intent.user_id.iter().for_each(|id| pseudonyms.know_user(id.as_str()));
        intent.session_id.iter().for_each(|id| pseudonyms.know_session(id.as_str()));
    }
    plan.scope.users.iter().for_each(|id| pseudonyms.know_user(id.as_str()));
    plan.scope.sessions.iter().for_each(|id| pseudonyms.know_session(id.as_str()));
    plan.policy.guests.iter().for_each(|id| pseudonyms.know_user(id.as_str()));
    store.know_people(&plan.scope, &mut pseudonyms).await?;
    Ok(pseudonyms)
}

async fn write(
    store: &Store,
    dossier: &Dossier<'_>,
    flags: &OutputFlags,
    format: Format,
    sheet: Option<Sheet>,
) -> Result<Written> {
    let over = || flags.force.then(|| Kind::of_plan(format, sheet));
    let target = || Target::new(flags.output.as_deref(), over());
    let mut export: Box<dyn Export> = match (format, sheet, &flags.output) {
        (Format::Csv, Some(sheet), _) => Box::new(OneSheet::begin(dossier, sheet, target()?, flags.bom)?),
        (Format::Csv, None, Some(dir)) => Box::new(Csv::begin(dossier, dir, flags.bom, over())?),
        (Format::Xlsx, _, Some(path)) => {
            let folder = path.parent().filter(|dir| !dir.as_os_str().is_empty());
            Box::new(Xlsx::begin(dossier, target()?, ROWS_A_SHEET, folder.unwrap_or(Path::new(".")))?)
        }
        (Format::Html, ..) => Box::new(Html::begin(dossier, target()?, Limits::default())?),
        _ => Box::new(Json::begin(dossier, target()?)?),
    };
    let freeze_id = dossier.plan.freeze_id.as_deref();
    let mut after = 0;
    loop {
        let page = store.journal_page(&dossier.plan.plan_id, freeze_id, after).await?;
        let Some(last) = page.last() else { break };
        after = last.seq;
        for entry in &page {
            export.journal(&journal_row(dossier, entry))?;
        }
    }
    export.end(dossier)
}

/// An entry under the columns of its sheet.
fn journal_row<'e>(dossier: &'e Dossier<'_>, entry: &'e Entry) -> Vec<Cell<'e>> {
    fn text<'t>(text: Option<&'t str>) -> Cell<'t> {
        text.map_or(Cell::None, |t| Cell::Text(t.into()))
    }
    let amount = entry.amount_minor.zip(entry.currency.as_deref());
    let amount = amount.map(|(minor, code)| match code.parse() {
        Ok(currency) => Cell::Money(minor.into(), currency),
        Err(_) => Cell::Number(minor),
    });
    // An entry without ledger is about an idempotency key, which may hold a user's id.
    let row = entry.row_id.as_ref().map(|id| match entry.ledger {
        Some(_) => Cell::Text(id.as_str().into()),
        None => Cell::Text(dossier.text(id.as_str())),
    });
    vec![
        Cell::Number(entry.seq),
        entry.at.map_or(Cell::None, Cell::Time),
        Cell::Text(dossier.text(&entry.actor)),
        text(Some(&entry.event)),
        text(entry.tenant_id.as_ref().map(|t| t.as_str())),
        text(entry.ledger.map(|l| l.as_str())),
        row.unwrap_or(Cell::None),
        text(entry.from.as_deref()),
        text(entry.to.as_deref()),
        text(entry.currency.as_deref()),
        amount.unwrap_or(Cell::None),
        text(entry.freeze_id.as_deref()),
        text(entry.plan_id.as_deref()),
        text(entry.intent_id.as_deref()),
        entry.note.as_deref().map_or(Cell::None, |note| Cell::Text(dossier.text(note))),
    ]
}

/// The report on a terminal.
fn table(config: &Config, dossier: &Dossier<'_>) -> Report {
    let plan = dossier.plan;
    let mut facts = Table::new([crate::report::Column::exact("ABOUT"), crate::report::Column::prose("")]);
    for (name, value) in dossier.facts() {
        let value = match value {
            Cell::None => String::new(),
            Cell::Text(text) => text.into_owned(),
            Cell::Number(n) => n.to_string(),
            Cell::Money(minor, currency) => currency.show(minor),
            Cell::Time(at) => at.to_string(),
        };
        facts.row([name, value]);
    }
    let report = Report::new(json!(null)).title(format!("{}: {}", plan.plan_id, dossier.scope().in_words()));
    let all = Tally::of(&plan.intents);
    let report = what_happens(report, dossier, &all);
    let report = needs_a_person(report, dossier);
    let mut report = tell_sums(report.title("Sums").table(outcomes(&all)), &plan.sums);
    if !plan.outside_sums.is_empty() {
        report = report
            .line(format!(
                "Outside the sums as planned, at {}; what became of it since is not in it:",
                plan.as_of
            ))
            .table(outside(&plan.outside_sums));
    }
    report
        .title("About")
        .table(facts)
        .line("To keep it, with every purchase and the journal:")
        .command(again(config, &[], &format!("--format xlsx --output {}.xlsx", plan.plan_id)))
}
