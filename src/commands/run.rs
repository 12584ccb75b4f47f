//! `onefold run`: the steps of a playbook, one after the other, as an operator would type them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::{Value, json};

use super::now;
use super::playbook::{Doing, NAMES, Playbook, Step, filled};
use super::progress::Progress;
use super::typing::{run_typed, typed};
use crate::config::Config;
use crate::core::tally::Tally;
use crate::core::time::Span;
use crate::error::{Error, Exit, Result};
use crate::report::{Block, Column, Format, Report, Style, Table, error_json, event, print, print_note};
use crate::store::plans::PlanState;

/// Run the steps of a playbook; stops at the first that needs a person
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  onefold run playbook.toml --dry-run
  onefold run playbook.toml
  onefold run playbook.toml --from apply

A playbook is a file of command lines, each a step that can be typed by hand
as well; {freeze} and {plan} in a line are those of the steps before it:

  name = \"one show, doubled\"
  [[step]]
  name = \"freeze\"
  run = [\"freeze\", \"--show\", \"S-204\", \"--enforce\", \"--reason\", \"retries\"]
  [[step]]
  name = \"plan\"
  run = [\"plan\", \"--freeze\", \"{freeze}\"]
  [[step]]
  name = \"approval\"
  wait_for_approval = \"30m\"
  [[step]]
  name = \"apply\"
  run = [\"apply\", \"{plan}\", \"--yes\", \"--canary\", \"5\"]
  accept = [6]

A step that ends with another code than 0 or one of `accept` stops the run,
which ends with that code and says how to go on. With --from the freeze is the
one that you hold and the plan its newest, unless --freeze and --plan name them.")]
pub struct RunArgs {
    /// The playbook
    file: PathBuf,
    /// Begin with this step
    #[arg(long, value_name = "STEP")]
    from: Option<String>,
    /// What {freeze} stands for until a step freezes
    #[arg(long, value_name = "FREEZE")]
    freeze: Option<String>,
    /// What {plan} stands for until a step plans
    #[arg(long, value_name = "PLAN")]
    plan: Option<String>,
    /// Check every line and show what would be typed; run nothing
    #[arg(long)]
    dry_run: bool,
}

/// How often an approval is looked for.
const LOOK: Duration = Duration::from_secs(2);

/// Runs a playbook: `may_type` says whether a command line can be read, `run_line` runs one; both without
/// the program's name.
pub async fn run(
    config: &Config,
    args: RunArgs,
    may_type: impl Fn(&[String]) -> Result<()>,
    run_line: impl AsyncFn(Vec<String>) -> Result<Report>,
) -> Result<Report> {
    let book = Playbook::read(&args.file)?;
    let steps = book.from(args.from.as_deref())?;
    for step in &book.steps {
        if let Doing::Line(line) = step.doing()? {
            let anything = NAMES.map(|name| (name, "X".to_owned())).into();
            let line = filled(line, &anything).unwrap_or_default();
            may_type(&line).map_err(|e| e.context(format!("step {}", step.name)))?;
        }
    }
    if args.dry_run {
        return shown(&book, steps);
    }
    let given = [("freeze", args.freeze), ("plan", args.plan)];
    let known = given.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
    let mut run = Run { config, known, told: Vec::new(), table: table() };
    for (at, step) in steps.iter().enumerate() {
        let (exit, why) = run.step(step, &run_line).await?;
        if exit != Exit::Done && !step.accept.contains(&exit.code()) {
            return Ok(run.stopped(&book, &args.file.display().to_string(), step, exit, why));
        }
        run.table.row([step.name.clone(), exit.code().to_string(), String::new()]);
        if config.format == Format::Jsonl {
            event(
                &json!({ "event": "step", "step": step.name, "code": exit.code(), "of": steps.len(), "at": at + 1 }),
            );
        }
    }
    let report = Report::new(json!({ "playbook": book.name, "steps": run.told, "stopped_at": null }));
    Ok(report.title(format!("{}: through", book.name)).table(run.table))
}

struct Run<'c> {
    config: &'c Config,
    /// The freeze and the plan of the steps before.
    known: BTreeMap<&'static str, String>,
    told: Vec<Value>,
    table: Table,
}

impl Run<'_> {
    /// Carries one step out and shows what it printed; how it ended, and the error if it was one.
    async fn step(
        &mut self,
        step: &Step,
        run_line: &impl AsyncFn(Vec<String>) -> Result<Report>,
    ) -> Result<(Exit, Option<String>)> {
        let line = match step.doing()? {
            Doing::WaitForApproval(span) => return self.wait_for_approval(step, span).await,
            Doing::Line(line) => line,
        };
        let line = loop {
            match filled(line, &self.known) {
                Ok(line) => break line,
                Err(name) => self.find(name).await?,
            }
        };
        let (report, blocks, json) = match run_typed(&step.name, &line, &[], run_line).await {
            Ok(ran) => ran,
            Err(error) => {
                let exit = error.exit;
                let why = error
                    .hint
                    .as_ref()
                    .map_or(error.message.clone(), |h| format!("{} (hint: {h})", error.message));
                self.told.push(json!({ "step": step.name, "command": line, "exit": exit.code(), "error": error_json(&error) }));
                return Ok((exit, Some(why)));
            }
        };
        for (name, pointer, verb) in [("freeze", "/freeze/freeze_id", "freeze"), ("plan", "/plan_id", "plan")]
        {
            if line.first().is_some_and(|word| word == verb)
                && let Some(id) = report.json.pointer(pointer).and_then(Value::as_str)
            {
                self.known.insert(name, id.to_owned());
            }
        }
        self.show(blocks)?;
        let mut json = json;
        json["step"] = json!(step.name);
        self.told.push(json);
        Ok((report.exit, None))
    }

    /// What a step printed, at once: the next one may take long.
    fn show(&self, blocks: Vec<Block>) -> Result<()> {
        if self.config.format != Format::Table {
            return Ok(());
        }
        let report = Report { blocks, ..Report::new(Value::Null) };
        print(&report, Style::detect(Format::Table)).map_err(|e| Error::failure(format!("cannot print: {e}")))
    }

    /// Finds the freeze that we hold, or its newest plan.
    async fn find(&mut self, name: &'static str) -> Result<()> {
        let unknown = |why: String| {
            Error::usage(format!("{{{name}}} is not known: {why}")).hint(format!("say it: --{name} ID"))
        };
        let store = self.config.open_ready().await?;
        let found = if name == "freeze" {
            let mut ours = store.open_freezes().await?;
            ours.retain(|f| f.owner == self.config.actor && f.is_live(now()));
            match &ours[..] {
                [one] => one.freeze_id.clone(),
                none_or_several => {
                    return Err(unknown(format!(
                        "{} holds {} live freezes",
                        self.config.actor,
                        none_or_several.len()
                    )));
                }
            }
        } else {
            if !self.known.contains_key("freeze") {
                Box::pin(self.find("freeze")).await?;
            }
            let freeze = self.known.get("freeze").cloned().unwrap_or_default();
            let plans = store.plans_of(&freeze).await?;
            let newest = plans.into_iter().find(|saved| saved.state != PlanState::Superseded);
            newest.ok_or_else(|| unknown(format!("{freeze} has no plan")))?.plan.plan_id
        };
        self.known.insert(name, found);
        Ok(())
    }

    async fn wait_for_approval(&mut self, step: &Step, at_most: Span) -> Result<(Exit, Option<String>)> {
        if !self.known.contains_key("plan") {
            self.find("plan").await?;
        }
        let plan_id = self.known.get("plan").cloned().unwrap_or_default();
        let store = self.config.open_ready().await?;
        let until = Instant::now() + at_most.duration();
        let progress = Progress::new(self.config, "waiting for an approval");
        let mut is_told = false;
        loop {
            let saved = store.plan_by_id(&plan_id).await?;
            let all = Tally::of(&saved.plan.intents);
            let missing = match store.must_be_approved(&saved, &all, &self.config.approval, now()).await {
                Ok(approval) => {
                    progress.end();
                    let by = approval
                        .as_ref()
                        .map_or("none is needed".to_owned(), |a| format!("approved by {}", a.by));
                    self.show(vec![
                        Block::Title(step.name.clone()),
                        Block::Line(format!("{plan_id}: {by}")),
                    ])?;
                    let approvals = store.approvals(&saved.plan.digest).await?;
                    self.told.push(
                        json!({ "step": step.name, "plan_id": plan_id, "exit": 0, "approvals": approvals }),
                    );
                    return Ok((Exit::Done, None));
                }
                Err(missing) if missing.exit == Exit::Refused => missing,
                Err(error) => return Err(error),
            };
            if Instant::now() >= until {
                progress.end();
                let why = format!("no approval came within {at_most}: {}", missing.message);
                self.told.push(json!({ "step": step.name, "plan_id": plan_id, "exit": Exit::Undecided.code(), "error": error_json(&missing) }));
                return Ok((Exit::Undecided, Some(why)));
            }
            if !is_told && !self.config.quiet {
                print_note(&format!("note: {}; {}", missing.message, missing.hint.unwrap_or_default()));
                is_told = true;
            }
            tokio::time::sleep(LOOK.min(until.saturating_duration_since(Instant::now()))).await;
        }
    }

    fn stopped(
        mut self,
        book: &Playbook,
        file: &str,
        step: &Step,
        exit: Exit,
        why: Option<String>,
    ) -> Report {
        let said = why.clone().unwrap_or_else(|| format!("{}: see what it printed above", in_words(exit)));
        self.table.row([step.name.clone(), exit.code().to_string(), said]);
        let mut again = vec!["run".to_owned(), file.to_owned(), "--from".to_owned(), step.name.clone()];
        for (name, value) in &self.known {
            again.extend([format!("--{name}"), value.clone()]);
        }
        let json = json!({ "playbook": book.name, "steps": self.told, "stopped_at": step.name, "why": why,
            "freeze_id": self.known.get("freeze"), "plan_id": self.known.get("plan") });
        let mut report = Report::new(json)
            .title(format!("{}: stopped at {}", book.name, step.name))
            .table(self.table)
            .line("When that is seen to, go on with it, or with a step after it:")
            .command(typed(&again));
        report.exit = exit;
        report
    }
}

/// Why a step that printed its report ended as it did.
const fn in_words(exit: Exit) -> &'static str {
    match exit {
        Exit::Undecided => "a person or the provider must decide",
        Exit::Violations => "there are violations",
        Exit::Stale => "rows have moved",
        Exit::Refused => "refused",
        _ => "not done",
    }
}

fn table() -> Table {
    Table::new([Column::exact("STEP"), Column::number("EXIT"), Column::prose("WHY")])
}

/// What would be typed.
fn shown(book: &Playbook, steps: &[Step]) -> Result<Report> {
    let mut told = Vec::new();
    let mut report = Report::new(Value::Null).title(book.name.clone());
    for step in steps {
        let what = match step.doing()? {
            Doing::Line(line) => typed(line),
            Doing::WaitForApproval(span) => format!("(waits for an approval of {{plan}}, {span} at most)"),
        };
        told.push(json!({ "step": step.name, "what": what, "accept": step.accept }));
        report = report.line(format!("{}:", step.name)).command(what);
    }
    report.json = json!({ "playbook": book.name, "steps": told });
    Ok(report)
}
