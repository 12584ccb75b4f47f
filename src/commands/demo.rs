//! `onefold demo`: the whole playbook on an invented incident.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use include_dir::{Dir, include_dir};
use serde_json::{Value, json};

use super::count;
use super::typing::run_typed;
use crate::core::limits::Limits;
use crate::core::money::Currency;
use crate::core::plan::{Plan, refunds};
use crate::core::status::Ledger;
use crate::core::words::quoted;
use crate::error::{Error, Result};
use crate::report::{Block, Report};
use crate::store::journal::Event;

static INCIDENT: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/fixtures/incident-2014");

/// Show the whole playbook on an invented incident, on a database of its own; needs no set-up
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  onefold demo
  onefold demo --keep /path/of/a/new/folder

Runs each command as it is printed, against an SQLite file in a temporary
folder that is removed afterwards, or in a folder that you name and keep, to
try the commands by hand.")]
pub struct DemoArgs {
    /// Keep the ledgers and the database in this folder
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

/// The playbook as it runs. `run_line` runs one command line, without the program's name.
struct Playbook<'r, F> {
    run_line: &'r F,
    database: String,
    blocks: Vec<Block>,
    steps: Vec<Value>,
}

impl<F: AsyncFn(Vec<String>) -> Result<Report>> Playbook<'_, F> {
    /// Runs a command as it is printed, and adds what it prints.
    async fn step(&mut self, title: &str, words: &[impl AsRef<str>]) -> Result<Report> {
        let before = ["--database".to_owned(), self.database.clone()];
        let (report, blocks, json) = run_typed(title, words, &before, self.run_line).await?;
        self.blocks.extend(blocks);
        self.steps.push(json);
        Ok(report)
    }
}

pub async fn run(args: DemoArgs, run_line: impl AsyncFn(Vec<String>) -> Result<Report>) -> Result<Report> {
    let temporary =
        tempfile::tempdir().map_err(|e| Error::failure(format!("cannot make a temporary folder: {e}")))?;
    let dir = match &args.keep {
        Some(dir) => new_folder(dir)?,
        None => temporary.path().to_owned(),
    };
    let ledgers = dir.join("ledgers");
    unpack(&ledgers)?;
    let database = format!("sqlite:{}", dir.join("onefold.db").display());
    let ledgers = ledgers.display().to_string();
    let mut book =
        Playbook { run_line: &run_line, database: database.clone(), blocks: Vec::new(), steps: Vec::new() };

    book.step("0. In quiet times: tables, and the triggers that make a freeze hold", &["init", "--enforce"])
        .await?;
    book.step("1. Load the four ledgers of the night", &["import", &ledgers]).await?;
    let frozen = book
        .step(
            "2. Freeze the show before the doubles multiply",
            &["freeze", "--show", "S-204", "--enforce", "--reason", "retries double the orders"],
        )
        .await?;
    let freeze_id = text(&frozen.json, "/freeze/freeze_id")?;
    book.step("3. Join the ledgers and name every difference", &["reconcile", "--show", "S-204"]).await?;
    let planned = book.step("4. Decide, and save the plan", &["plan", "--show", "S-204"]).await?;
    let plan_id = text(&planned.json, "/plan_id")?;
    book.step("5. Why U-7318 keeps the order that it keeps", &["show", &plan_id, "--intent", FIRST_ORDER])
        .await?;
    book.step("6. Carry it out, with what may go back", &apply(&planned, &plan_id)?).await?;
    book.step(
        "7. Ask the provider about what was not answered or not known",
        &["converge", "--plan", &plan_id],
    )
    .await?;
    let applied = book.step("8. Go on where that was missing", &apply(&planned, &plan_id)?).await?;
    let again = book.step("9. Decide again on what is known now", &["plan", "--show", "S-204"]).await?;
    let second_id = text(&again.json, "/plan_id")?;
    let applied_again = book.step("10. Carry that out, too", &apply(&again, &second_id)?).await?;
    book.step("11. Prove it", &["verify", &second_id]).await?;
    book.step("12. Let go of what is done", &["thaw", &freeze_id, "--accept-lapsing"]).await?;
    book.step("13. What the journal says of one order", &["history", "--order", LOST_ORDER]).await?;

    let journal = run_line(["--database", &database, "history"].map(str::to_owned).into()).await?;
    let mut report = Report::new(json!({ "database": database, "kept": args.keep, "steps": book.steps }));
    report.blocks = book.blocks;
    let undecided = plan(&again)?.intents.iter().filter(|i| i.outcome.is_undecided()).count();
    let kept = kept(&planned, &applied)? + kept(&again, &applied_again)?;
    let report = told(report, kept, &journal.json, undecided)?;
    Ok(by_hand(report, args.keep.as_deref(), &database))
}

/// An order of the incident itself: the one that was written first.
const FIRST_ORDER: &str = "O-20141";
/// An order of another doubled purchase, whose journal is short.
const LOST_ORDER: &str = "O-20057";

/// The command line that carries a plan out, and states what goes back with it.
fn apply(planned: &Report, plan_id: &str) -> Result<Vec<String>> {
    let mut line = ["apply", plan_id, "--yes"].map(str::to_owned).to_vec();
    line.extend(Limits::stated(&refunds(plan(planned)?.intents.iter().flat_map(|i| &i.steps))));
    Ok(line)
}

fn plan(report: &Report) -> Result<Plan> {
    serde_json::from_value(json!(report.whole()))
        .map_err(|e| Error::failure(format!("the plan's JSON cannot be read: {e}")))
}

/// How many purchases of a plan keep an order and are through.
fn kept(planned: &Report, applied: &Report) -> Result<usize> {
    let ends = applied.json["intents"].as_array().into_iter().flatten();
    let done: Vec<_> = ends.filter(|i| i["end"] == "DONE").map(|i| &i["intent_id"]).collect();
    let plan = plan(planned)?;
    Ok(plan.intents.iter().filter(|i| i.keep.is_some() && done.iter().any(|id| **id == i.intent_id)).count())
}

/// What became of the incident, by the journal: cancelled, refunded, released, quarantined.
fn told(report: Report, kept: usize, journal: &Value, undecided: usize) -> Result<Report> {
    let moved = |to: &'static str| {
        let entries = journal["entries"].as_array().into_iter().flatten();
        entries.filter(move |e| e["event"] == Event::Moved.as_str() && e["to"] == to)
    };
    let mut refunded: BTreeMap<Currency, i128> = BTreeMap::new();
    for entry in moved("REFUNDED").filter(|e| e["ledger"] == Ledger::Payments.as_str()) {
        let (currency, amount) = (text(entry, "/currency")?, entry["amount_minor"].as_i64());
        let currency = currency.parse().map_err(|e| Error::failure(format!("in the journal: {e}")))?;
        *refunded.entry(currency).or_insert(0) += i128::from(amount.unwrap_or_default());
    }
    let refunded: Vec<_> = refunded.into_iter().map(|(currency, sum)| currency.show(sum)).collect();
    Ok(report
        .title("What the two plans did")
        .line(format!("kept         {}, each the one of its purchase", count(kept, "order")))
        .line(format!("cancelled    {}", count(moved("CANCELLED").count(), "order")))
        .line(format!("refunded     {}", refunded.join(" + ")))
        .line(format!("released     {}", count(moved("RELEASED").count(), "hold")))
        .line(format!("quarantined  {}", count(moved("QUARANTINED").count(), "message")))
        .line(format!("left alone   {} that a person must decide", count(undecided, "purchase"))))
}

fn by_hand(report: Report, kept: Option<&Path>, database: &str) -> Report {
    let report = report.title("Try it by hand");
    match kept {
        Some(_) => report
            .command(format!("export ONEFOLD_DATABASE_URL={}", quoted(database)))
            .command("onefold status"),
        None => report
            .command("onefold demo --keep demo")
            .command("export ONEFOLD_DATABASE_URL=sqlite:demo/onefold.db")
            .command("onefold status"),
    }
    .line(
        "With your own ledgers: onefold import DIR, where DIR holds orders.csv, payments.csv, \
         inventory.csv and messages.csv; then the commands above.",
    )
}

fn new_folder(dir: &Path) -> Result<PathBuf> {
    let failed = |e: std::io::Error| {
        Error::failure(format!("cannot make the folder {}: {e}", dir.display())).hint("name a new folder")
    };
    std::fs::create_dir_all(dir).map_err(failed)?;
    let is_empty = std::fs::read_dir(dir).map_err(failed)?.next().is_none();
    if !is_empty {
        return Err(Error::usage(format!("{} is not empty", dir.display())).hint("name a new folder"));
    }
    Ok(dir.to_owned())
}

fn unpack(into: &Path) -> Result<()> {
    let failed = |e: std::io::Error| Error::failure(format!("cannot write {}: {e}", into.display()));
    std::fs::create_dir_all(into).map_err(failed)?;
    for file in INCIDENT.files().filter(|f| f.path().extension().is_some_and(|e| e == "csv")) {
        std::fs::write(into.join(file.path()), file.contents()).map_err(failed)?;
    }
    Ok(())
}

fn text(json: &Value, pointer: &str) -> Result<String> {
    let text = json.pointer(pointer).and_then(Value::as_str);
    text.map(str::to_owned).ok_or_else(|| Error::failure(format!("the report has no {pointer}")))
}
