//! `onefold apply`: carry a plan's steps out.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::ops::ControlFlow;
use std::time::Duration;

use clap::Args;
use clap::builder::RangedU64ValueParser;
use serde_json::{Value, json};

use super::brakes::{BrakeFlags, Brakes};
use super::confirm::confirm;
use super::converge::open_steps;
use super::decided::{apply_line, money_in_words};
use super::limits::LimitFlags;
use super::plan::digest_now;
use super::progress::Progress;
use super::telling::Telling;
use super::{caveat, count, executor, now, worker};
use crate::config::Config;
use crate::core::freeze::{Freeze, FreezeMode};
use crate::core::ids::*;
use crate::core::ledger::{Ledgers, Payment};
use crate::core::money::Currency;
use crate::core::plan::{Outcome, Plan, PlannedIntent};
use crate::core::status::Ledger;
use crate::core::tally::Tally;
use crate::core::verify::verify;
use crate::error::{Error, Exit, Result};
use crate::execute::apply::Applied;
use crate::execute::pace::Pace;
use crate::execute::{IntentEnd, Moment, command};
use crate::providers::Providers;
use crate::report::{Column, Report, Table, error_json};
use crate::store::Store;
use crate::store::connect::MAX_WORKERS;
use crate::store::freezes::{FREEZE, held_by, lapsed};
use crate::store::plans::{PlanParts, PlanState, SavedPlan};
use crate::store::steps::{StepRecord, StepState};

/// Carry a plan's steps out, under its freeze; safe to run again after anything
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  onefold apply PL-5c1d2e3f40
  onefold apply PL-5c1d2e3f40 --yes --json --max-refund-total CNY:3480.00
  onefold apply PL-5c1d2e3f40 --yes --canary 10 --workers 8 --rate 20/s \\
      --stop-file stop

Each step is one compare-and-set. Whatever breaks off, run it again: what is
done is not done twice. Any number of processes may carry out one plan. A plan
with more than 100 refunds, or with more than one for every ten live orders of
its scope, needs --max-refund-total (or [limits] in onefold.toml). The first
Ctrl-C lets the steps under way end, the second leaves at once; both are safe.

Before its first step a plan older than 15 min ([limits] plan_max_age) is
decided again and refused unless that gives the same; where onefold.toml wants
an approval, it needs one (onefold approve --help). Once begun, it may always
be gone on with.")]
pub struct ApplyArgs {
    /// The plan's id
    plan: String,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    /// How many intents to carry out at once
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_WORKERS)))]
    workers: u32,
    /// At most so many steps, as 20/s or 100/m
    #[arg(long, value_name = "STEPS/TIME", value_parser = rate)]
    rate: Option<f64>,
    /// Carry out so many intents first, verify them, and only then go on
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    canary: Option<usize>,
    #[command(flatten)]
    limits: LimitFlags,
    #[command(flatten)]
    brakes: BrakeFlags,
}

/// Steps a second.
fn rate(text: &str) -> std::result::Result<f64, String> {
    let read = || {
        let (number, unit) = text.split_once('/')?;
        let per = match unit {
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return None,
        };
        let rate = number.parse::<f64>().ok()? / per;
        (rate.is_finite() && rate > 0.0).then_some(rate)
    };
    read().ok_or_else(|| "a rate is a number of steps and a time: 20/s, 100/m".to_owned())
}

/// How many intents are held at once: all of those of a large plan take much room.
const SECTION: usize = 1000;

pub async fn run(config: &Config, args: ApplyArgs) -> Result<Report> {
    let store = config.open_ready().await?;
    let mut parts = store.parts_of_plan(&args.plan).await?;
    let saved = parts.saved.clone();
    let plan = &saved.plan;
    if saved.state == PlanState::Ended {
        let json = json!({ "plan_id": plan.plan_id, "ended": true, "done_now": 0, "intents": [] });
        let report = Report::new(json).line(format!("{} has been applied; nothing to do.", plan.plan_id));
        return Ok(with_open(report, plan, &open_requests(&store, plan, &[]).await?));
    }
    let freeze = freeze_for(config, &store, &saved).await?;
    let providers = config.providers(&store)?;
    let is_begun = saved.begun_at.is_some() || store.is_begun(&plan.plan_id).await?;
    let progress = Progress::new(config, "looking at the plan's rows");
    let Survey { all, left } = Survey::of(&store, &mut parts, &freeze, &providers, is_begun).await?;
    progress.end();
    if !is_begun {
        must_be_fresh(config, &store, plan, &freeze).await?;
        store.must_be_approved(&saved, &all, &config.approval, now()).await?;
    }
    args.limits.limits()?.or(&config.limits).allow(plan, &left)?;
    if !args.yes && all.steps() > 0 {
        ask(plan, &all, &providers)?;
        // Whoever answered may have taken his time.
        if !is_begun {
            must_be_fresh(config, &store, plan, &freeze).await?;
        }
    }

    let worker = worker(config, freeze.token);
    let executor = executor(config, &store, &providers, &worker);
    let progress = Telling::new(config, all.steps(), all.steps() - left.steps());
    let brakes = Brakes::new(args.brakes);
    let gate = || brakes.gate();
    let pace = Pace::new(args.workers as usize, args.rate, PATIENCE, &gate);
    let (caveat, mode) = (caveat(&freeze), freeze.mode);
    let mut watch = |moment: Moment<'_>| {
        progress.tell(moment);
        ControlFlow::Continue(())
    };
    let applying = executor.begin(plan, &all, &freeze).await?;
    let mut upcoming = Upcoming::of(parts);
    let mut applied = Applied::default();
    let (mut canary, mut broken_off) = (None, None);
    let mut first = args.canary.filter(|size| *size < all.with_steps());
    while broken_off.is_none() {
        let section = match upcoming.take(first.unwrap_or(SECTION)).await {
            Ok(section) if section.is_empty() => break,
            Ok(section) => section,
            Err(error) => {
                broken_off = Some(error);
                break;
            }
        };
        let intents: Vec<_> = section.iter().collect();
        let ran = match applied.stopped {
            true => applying.done_of(&intents).await,
            false => applying.carry_out(&intents, &pace, &mut watch).await,
        };
        match ran {
            Ok(ran) => applied = applied.and(ran),
            Err(error) => {
                // What it did of these is done all the same.
                if let Ok(done) = applying.done_of(&intents).await {
                    applied = applied.and(done);
                }
                broken_off = Some(error);
                break;
            }
        }
        if first.take().is_some() {
            match why_not_on(&store, plan, &section, &applied).await {
                Ok(why) => canary = why,
                Err(error) => broken_off = Some(error),
            }
            applied.stopped |= canary.is_some();
        }
    }
    applied.stopped |= broken_off.is_some();
    let (ended, refunded) = progress.end();
    if applied.is_whole() {
        let note = format!("{}, under a freeze that is {mode}", count(all.steps(), "step"));
        broken_off = store.end_plan(&plan.plan_id, &config.actor, &note, now()).await.err();
    }
    let open = match open_requests(&store, plan, &applied.intents).await {
        Ok(open) => open,
        Err(error) => {
            broken_off.get_or_insert(error);
            Vec::new()
        }
    };
    // Whatever ended it, what it did before is told.
    let has_left = applied.intents.iter().any(|(_, end)| matches!(end, IntentEnd::Accepted(_)));
    if ended == 0
        && !has_left
        && let Some(error) = broken_off
    {
        return Err(error);
    }
    let report = with_open(report(plan, &all, &applied, ended, &providers), plan, &open);
    let stopped = brakes.why().filter(|_| applied.stopped);
    let mut report = caveat.into_iter().chain(stopped).fold(report, Report::line);
    if let Some((why, exit)) = canary {
        let exit = report.exit.or(exit);
        report = report.line(why).exit(exit);
    }
    report.json["freeze_mode"] = json!(mode);
    report.json["refunded_now"] = sums(&refunded);
    if let Some(error) = broken_off {
        report.json["error"] = error_json(&error);
        report = report.line(format!("It was broken off: {}", error.message)).exit(error.exit);
        report = error.hint.into_iter().fold(report, Report::line);
    }
    if let Some(command) = &config.commands.after_apply
        && ended > 0
    {
        // What was done is done: a command that fails is told, and changes nothing of it.
        if let Err(error) = command::run(command, &report.json).await {
            return Ok(report.line(format!("after_apply: {error}")).exit(Exit::Failure));
        }
    }
    Ok(report)
}

/// What the first reading of a plan tells, before anything of it is done.
struct Survey {
    all: Tally,
    /// Without the steps that are done.
    left: Tally,
}

impl Survey {
    /// # Errors
    /// Refused, where a step is on a row that the freeze does not cover, or what is saved is not what was decided; usage,
    /// where no provider is configured for a payment.
    async fn of(
        store: &Store,
        parts: &mut PlanParts<'_>,
        freeze: &Freeze,
        providers: &Providers<'_>,
        is_begun: bool,
    ) -> Result<Self> {
        let plan_id = parts.saved.plan.plan_id.clone();
        let (mut all, mut left) = (Tally::default(), Tally::default());
        let mut outside = Vec::new();
        let mut provided = Ok(());
        while let Some(intents) = parts.next().await? {
            let with_steps: Vec<_> = intents.iter().filter(|intent| !intent.steps.is_empty()).collect();
            let begun = match is_begun {
                true => store.steps_of_intents(&plan_id, with_steps.iter().copied()).await?,
                false => Vec::new(),
            };
            let done: HashSet<_> = begun.iter().filter(|r| r.state.is_done()).map(|r| &r.step_key).collect();
            for intent in &intents {
                all.add(intent);
                left.add_left(intent, |step| done.contains(&step.step_key));
            }
            let look = |intents: &[&PlannedIntent], ledgers: &Ledgers| {
                outside.extend(freeze.outside(intents, ledgers));
                let provider = |payment: &Payment| providers.of(&payment.provider).map(drop);
                if provided.is_ok() {
                    provided = ledgers.payments.iter().try_for_each(provider);
                }
                Ok(())
            };
            store.each_moved(&with_steps, look).await?;
        }
        // Only now is it proven that this is the plan.
        provided?;
        must_cover(freeze, &outside)?;
        Ok(Self { all, left })
    }
}

/// The intents that have steps, some at a time, in the plan's order.
struct Upcoming<'s> {
    parts: PlanParts<'s>,
    read: VecDeque<PlannedIntent>,
    is_through: bool,
}

impl<'s> Upcoming<'s> {
    const fn of(parts: PlanParts<'s>) -> Self {
        Self { parts, read: VecDeque::new(), is_through: false }
    }

    /// The next ones, at most so many; none behind the last.
    async fn take(&mut self, count: usize) -> Result<Vec<PlannedIntent>> {
        while self.read.len() < count && !self.is_through {
            match self.parts.next().await? {
                Some(intents) => self.read.extend(intents.into_iter().filter(|i| !i.steps.is_empty())),
                None => self.is_through = true,
            }
        }
        Ok(self.read.drain(..count.min(self.read.len())).collect())
    }
}

/// How long another process that is at the last intents is waited for: longer than its claims hold.
const PATIENCE: Duration = Duration::from_secs(90);

/// Why a plan is not gone on with after its canary; `None` where these intents came out as planned.
async fn why_not_on(
    store: &Store,
    plan: &Plan,
    canary: &[PlannedIntent],
    applied: &Applied,
) -> Result<Option<(String, Exit)>> {
    let through = applied.intents.iter().filter(|(_, end)| *end == IntentEnd::Done).count();
    if through < canary.len() {
        let why = format!("The canary of {} did not get through: the rest is not begun.", canary.len());
        return Ok(Some((why, Exit::Undecided)));
    }
    let part = Plan { intents: canary.to_vec(), ..plan.without_intents() };
    // Each by itself: the sums are over the whole plan, and close when the rest is done.
    let verified = verify(&part, &store.read_intents(canary).await?);
    let broken: Vec<_> = verified
        .intents
        .iter()
        .filter_map(|i| Some(format!("{}: {}", i.intent_id, i.violations.first()?)))
        .collect();
    Ok((!broken.is_empty()).then(|| {
        let why = format!("The canary came out wrong, and the rest is not begun: {}", broken.join("; "));
        (why, Exit::Violations)
    }))
}

/// Requests on rows of a plan's scope, whichever plan made them, whose end is not known and which none
/// of these intents' ends tells.
async fn open_requests(store: &Store, plan: &Plan, ends: &[(String, IntentEnd)]) -> Result<Vec<StepRecord>> {
    // One that was broken off tells of no request.
    let tells = |end: &IntentEnd| !matches!(end, IntentEnd::Done | IntentEnd::BrokenOff);
    let telling: HashSet<&str> =
        ends.iter().filter(|(_, end)| tells(end)).map(|(id, _)| id.as_str()).collect();
    let is_told =
        |record: &StepRecord| record.plan_id == plan.plan_id && telling.contains(record.intent_id.as_str());
    let mut open = open_steps(store, &plan.scope, Some(&plan.plan_id)).await?;
    open.retain(|r| matches!(r.state, StepState::Accepted | StepState::Unknown) && !is_told(r));
    Ok(open)
}

/// A report that tells of open requests beside the plan.
fn with_open(mut report: Report, plan: &Plan, open: &[StepRecord]) -> Report {
    let told: Vec<_> = open
        .iter()
        .map(|r| {
            json!({ "plan_id": r.plan_id, "ledger": r.step.ledger, "tenant_id": r.tenant_id, "id": r.step.id,
                    "state": r.state, "why": r.note })
        })
        .collect();
    report.json["open_requests"] = json!(told);
    if open.is_empty() {
        return report;
    }
    let mut table = Table::new([Column::exact("ROW"), Column::exact("STATE"), Column::prose("WHY")]);
    for r in open {
        let why = r.note.as_deref().unwrap_or("no answer is recorded");
        table.row([
            format!("{} {}", r.step.ledger.row_name(), r.step.id),
            r.state.to_string(),
            format!(
                "{} by {}: {why}",
                if r.step.amount_minor.is_some() { "the refund" } else { "the void" },
                r.plan_id
            ),
        ]);
    }
    let exit = report.exit.or(Exit::Undecided);
    report
        .line("Requests on rows of this plan's scope whose end is not known:")
        .table(table)
        .line("Ask the provider about these:")
        .command(format!("onefold converge --plan {}", plan.plan_id))
        .exit(exit)
}

/// The live freeze, ours, under which the plan was made.
async fn freeze_for(config: &Config, store: &Store, saved: &SavedPlan) -> Result<Freeze> {
    let plan_id = &saved.plan.plan_id;
    if let Some(newer) = &saved.superseded_by {
        return Err(Error::refused(format!("{plan_id} was superseded by {newer}"))
            .hint(format!("onefold apply {newer}")));
    }
    let Some(freeze_id) = &saved.plan.freeze_id else {
        return Err(Error::refused(format!("{plan_id} is a dry run: it was not made under a live freeze"))
            .hint(format!("freeze the scope, then plan again: {FREEZE}")));
    };
    let freeze = store.freeze_by_id(freeze_id).await?;
    held_by(&freeze, &config.actor, None)?;
    if !freeze.is_live(now()) {
        return Err(lapsed(&freeze));
    }
    match freeze.mode {
        FreezeMode::Advisory => {}
        FreezeMode::Enforced => {
            store.must_be_guarded().await.map_err(|e| {
                Error::refused(format!("{freeze_id} is enforced no longer: {}", e.message)).hint(format!(
                    "onefold freeze --renew {freeze_id} --enforce --install-now, then plan again"
                ))
            })?;
            store.must_hold(&freeze).await?;
        }
        FreezeMode::Recorded => {
            return Err(Error::refused(format!(
                "{freeze_id} is only recorded: services that do not ask go on moving rows"
            ))
            .hint(format!(
                "onefold freeze --renew {freeze_id} --enforce, then plan again; or where all of them are stopped \
                 in another way: onefold freeze --renew {freeze_id} --advisory"
            )));
        }
    }
    Ok(freeze)
}

/// Refuses a plan that is older than it may be when it is begun, unless the same would be decided now.
async fn must_be_fresh(config: &Config, store: &Store, plan: &Plan, freeze: &Freeze) -> Result<()> {
    if now().since(plan.made_at) <= config.plan_max_age {
        return Ok(());
    }
    if digest_now(config, store, plan, freeze).await? == plan.digest {
        return Ok(());
    }
    Err(Error::stale(format!(
        "{} is older than {}, and another plan would be made now",
        plan.plan_id, config.plan_max_age
    ))
    .hint(format!("onefold plan --freeze {}", freeze.freeze_id)))
}

/// Refuses a plan that has steps on these rows, which its freeze does not cover.
fn must_cover(freeze: &Freeze, outside: &[(Ledger, RowId)]) -> Result<()> {
    if outside.is_empty() {
        return Ok(());
    }
    let told: Vec<_> =
        outside.iter().take(5).map(|(ledger, id)| format!("{} {id}", ledger.row_name())).collect();
    let more = outside.len().saturating_sub(told.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Err(Error::refused(format!(
        "{} does not cover {}{more}, which have steps",
        freeze.freeze_id,
        told.join(", ")
    ))
    .hint("an intent joined by key may reach outside: freeze a wider scope, or plan a narrower one"))
}

/// Asks on a terminal; refuses elsewhere.
fn ask(plan: &Plan, all: &Tally, providers: &Providers<'_>) -> Result<()> {
    let money = money_in_words(&all.refunds());
    let money = if money.is_empty() { "nothing".to_owned() } else { money };
    let question = format!(
        "Apply {} on {}: {} refunded through {}?",
        count(all.steps(), "step"),
        count(all.with_steps(), "intent"),
        money,
        providers.names()
    );
    confirm(
        &question,
        "apply asks before it changes anything",
        &format!("{} --yes", apply_line(&plan.plan_id, &all.refunds())),
    )
}

fn report(plan: &Plan, all: &Tally, applied: &Applied, done_now: usize, providers: &Providers<'_>) -> Report {
    let steps = all.steps();
    let mut exit = Exit::Done;
    let mut rest = Table::new([Column::exact("INTENT"), Column::exact("ENDED AS"), Column::prose("WHY")]);
    let mut ends = Vec::new();
    for (intent_id, end) in &applied.intents {
        let (name, why, code) = in_words(end);
        exit = exit.or(code);
        ends.push(json!({ "intent_id": intent_id, "end": name, "why": why }));
        if *end != IntentEnd::Done {
            rest.row([intent_id.clone(), name.to_owned(), why.join("; ")]);
        }
    }
    let whole = applied.is_whole();
    let json = json!({
        "plan_id": plan.plan_id,
        "ended": whole,
        "provider": providers.names(),
        "steps": steps,
        "steps_done": applied.steps_done,
        "done_now": done_now,
        "refunds_planned": sums(&all.refunds()),
        "intents": ends,
    });
    let done = applied.intents.iter().filter(|(_, end)| *end == IntentEnd::Done).count();
    let report = Report::new(json)
        .title(format!(
            "{}: {} of {steps} steps are done, {done_now} in this run",
            plan.plan_id, applied.steps_done
        ))
        .line(format!(
            "{} of {} intents are through; provider: {}",
            done,
            applied.intents.len(),
            providers.names()
        ))
        .table(rest);
    let undecided = all.counts(Outcome::Review).intents + all.counts(Outcome::Unsettled).intents;
    let again = || apply_line(&plan.plan_id, &all.refunds());
    let report = match undecided {
        0 => report,
        n => report
            .line(format!("{} in REVIEW or UNSETTLED: nothing of these was touched.", count(n, "intent"))),
    };
    let report = match exit {
        Exit::Done if !applied.stopped => {
            report.line("Next:").command(format!("onefold verify {}", plan.plan_id))
        }
        Exit::Stale => report.line("Rows moved since the plan was made. Plan again:").command("onefold plan"),
        Exit::Undecided if applied.intents.iter().all(|(_, end)| has_ended(end)) => report
            .line("The provider refused: nothing more is asked of it. To have these listed for a person:")
            .command("onefold plan"),
        Exit::Undecided => report
            .line("Next, to learn what the provider has done, and to go on from there:")
            .command(format!("onefold converge --plan {}", plan.plan_id))
            .command(again()),
        _ => report.line("Next:").command(again()),
    };
    report.exit(exit)
}

/// Sums by currency, in minor units.
fn sums(sums: &BTreeMap<Currency, i128>) -> Value {
    sums.iter().map(|(currency, sum)| json!({ "currency": currency, "amount_minor": sum })).collect()
}

/// Whether asking the provider, or applying again, can change nothing more.
fn has_ended(end: &IntentEnd) -> bool {
    matches!(end, IntentEnd::Done | IntentEnd::Refused(_))
}

fn in_words(end: &IntentEnd) -> (&'static str, Vec<String>, Exit) {
    let one = |why: &String| vec![why.clone()];
    match end {
        IntentEnd::Done => ("DONE", Vec::new(), Exit::Done),
        IntentEnd::Conflict(why) => ("CONFLICT", why.clone(), Exit::Stale),
        IntentEnd::Accepted(why) => ("ACCEPTED", one(why), Exit::Undecided),
        IntentEnd::Unknown(why) => ("UNKNOWN", one(why), Exit::Undecided),
        IntentEnd::Refused(why) => ("REFUSED", one(why), Exit::Undecided),
        IntentEnd::NotSent(why) => ("NOT_SENT", one(why), Exit::Failure),
        IntentEnd::Busy(why) => ("BUSY", one(why), Exit::Refused),
        IntentEnd::BrokenOff => ("BROKEN_OFF", Vec::new(), Exit::Failure),
    }
}
