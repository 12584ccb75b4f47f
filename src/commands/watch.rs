//! `onefold watch`: whether an incident still goes on.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::time::Instant;

use clap::Args;
use serde_json::{Value, json};

use super::flags::{PolicyFlags, ScopeFlags, ZoneFlag};
use super::{count, freeze_over, now};
use crate::config::Config;
use crate::core::arrivals::{Arrivals, arrivals, late_captures, losers};
use crate::core::freeze::Freeze;
use crate::core::ids::*;
use crate::core::output::Stream;
use crate::core::plan::Plan;
use crate::core::policy::Policy;
use crate::core::scope::Scope;
use crate::core::time::{Span, Timestamp};
use crate::error::{Error, Exit, Result};
use crate::report::{Format, Report, event, pass_on, sparkline};
use crate::store::Store;
use crate::store::plans::PlanState;

/// Watch a scope during an incident: new doubles, late captures, what is held up; changes nothing
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  onefold watch --show S-204
  onefold watch --every 10s --until-quiet 10m
  onefold watch --show S-204 --format jsonl

A line each time: orders and doubles of the last minutes, the doubles as a
picture (▁▁█▁▁, a minute each), late captures on orders that the newest plan
unwinds, how often services were held by the freeze, and messages that wait.
Without scope flags the scope is that of the live freeze. It ends by itself once
nothing new has come for --until-quiet, or with Ctrl-C; with 5 where a capture
came late: money that the plan does not know. Plan again then.")]
pub struct WatchArgs {
    /// How long to wait before looking again
    #[arg(long, value_name = "SPAN", default_value = "10s")]
    every: Span,
    /// End when no double and no late capture has come for so long
    #[arg(long, value_name = "SPAN", default_value = "10m")]
    until_quiet: Span,
    /// How far back orders are counted
    #[arg(long, value_name = "SPAN", default_value = "20m")]
    last: Span,
    #[command(flatten)]
    zone: ZoneFlag,
    #[command(flatten)]
    scope: ScopeFlags,
    #[command(flatten)]
    policy: PolicyFlags,
}

/// The most minutes that fit into a line.
const MINUTES: i64 = 30;
/// What stands over the pictures.
const BY_MINUTE: &str = "BY MINUTE";
/// How many intents' rows are read at once.
const AT_ONCE: usize = 200;

struct Watched<'s> {
    store: &'s Store,
    scope: Scope,
    policy: Policy,
    last: Span,
    freeze: Option<Freeze>,
    plan: Option<Plan>,
}

/// What one look saw.
struct Seen {
    at: Timestamp,
    arrivals: Arrivals,
    late: BTreeSet<(TenantId, PaymentId)>,
    /// Times that services were held up, by effect.
    asked: BTreeMap<String, i64>,
}

pub async fn run(config: &Config, args: WatchArgs) -> Result<Report> {
    if args.every < Span::from_secs(1) {
        return Err(
            Error::usage(format!("--every {} asks the databases too often", args.every)).hint("--every 10s")
        );
    }
    if args.last > Span::from_mins(MINUTES) || args.last < Span::from_mins(1) {
        return Err(Error::usage(format!("--last {} is no picture of a line", args.last))
            .hint(format!("from 1m to {MINUTES}m")));
    }
    let store = config.open_to_read().await?;
    let mut scope = args.scope.scope(args.zone)?;
    let freeze = freeze_over(&store, &mut scope, None, now()).await?;
    let plan = match &freeze {
        Some(freeze) => {
            let plans = store.plans_of(&freeze.freeze_id).await?;
            plans.into_iter().find(|saved| saved.state != PlanState::Superseded).map(|saved| saved.plan)
        }
        None => None,
    };
    let watched =
        Watched { store: &store, scope, policy: args.policy.policy(), last: args.last, freeze, plan };
    let (mut looks, mut quiet_since, mut known) = (0, Instant::now(), None);
    let mut interrupted = std::pin::pin!(tokio::signal::ctrl_c());
    let every = args.every.duration();
    loop {
        let seen = watched.look().await?;
        looks += 1;
        tell(config, &seen, looks == 1);
        let news = (seen.arrivals.newest_double, seen.late.clone());
        if known.as_ref() != Some(&news) {
            // What was there at the first look is no news.
            if known.is_some() {
                quiet_since = Instant::now();
            }
            known = Some(news);
        }
        let is_quiet = quiet_since.elapsed() >= args.until_quiet.duration();
        let is_over = is_quiet
            || tokio::select! {
                () = tokio::time::sleep(every.min(args.until_quiet.duration())) => false,
                _ = &mut interrupted => true,
            };
        if is_over {
            return Ok(watched.report(&seen, looks, is_quiet.then_some(args.until_quiet)));
        }
    }
}

impl Watched<'_> {
    async fn look(&self) -> Result<Seen> {
        let at = now();
        // Whole minutes, so that a picture moves by a minute at a time.
        let from = at.minus(self.last);
        let from =
            Timestamp::from_micros(from.micros() - from.micros().rem_euclid(Span::from_mins(1).micros()));
        let window = Scope { from: Some(self.scope.from.unwrap_or(from).max(from)), ..self.scope.clone() };
        let ledgers = self.store.read_scope(&window).await?;
        let topics = self.freeze.as_ref().map(|f| f.topics.clone()).unwrap_or_default();
        let arrivals = arrivals(&ledgers, &window, &self.policy, (from, at), &topics);
        let mut late = BTreeSet::new();
        if let Some(plan) = &self.plan {
            let losers = losers(plan);
            for intents in plan.with_steps().chunks(AT_ONCE) {
                let ledgers = self.store.read_intents(intents.iter().copied()).await?;
                late.extend(late_captures(&ledgers, &losers, plan.made_at));
            }
        }
        let mut asked = BTreeMap::new();
        if let Some(freeze) = &self.freeze {
            for effect in self.store.asked(&freeze.freeze_id).await? {
                asked.insert(effect.effect.to_string(), effect.times);
            }
        }
        Ok(Seen { at, arrivals, late, asked })
    }

    fn report(&self, seen: &Seen, looks: usize, quiet: Option<Span>) -> Report {
        let plan_id = self.plan.as_ref().map(|plan| plan.plan_id.as_str());
        let mut json = as_json(seen);
        json["scope"] = json!(self.scope);
        json["plan_id"] = json!(plan_id);
        json["looks"] = json!(looks);
        json["quiet"] = json!(quiet.is_some());
        let why = match quiet {
            Some(span) => format!("No double and no late capture came for {span}."),
            None => "It was interrupted.".to_owned(),
        };
        let report = Report::new(json).title(self.scope.in_words()).line(why);
        if seen.late.is_empty() {
            return report;
        }
        let late: Vec<_> = seen.late.iter().take(5).map(|(_, id)| id.to_string()).collect();
        let more = if seen.late.len() > late.len() { ", …" } else { "" };
        let report = report.line(format!(
            "{} on orders that {} unwinds: {}{more}. It does not know them; plan again:",
            count(seen.late.len(), "late capture"),
            plan_id.unwrap_or("the plan"),
            late.join(", ")
        ));
        let under = self.freeze.as_ref().map(|f| format!(" --freeze {}", f.freeze_id)).unwrap_or_default();
        report.command(format!("onefold plan{under}")).exit(Exit::Violations)
    }
}

/// Tells of one look, at once.
fn tell(config: &Config, seen: &Seen, is_first: bool) {
    match config.format {
        Format::Json => {}
        Format::Jsonl => {
            let mut json = as_json(seen);
            json["event"] = json!("look");
            event(&json);
        }
        _ => {
            let mut lines = Vec::new();
            if is_first {
                let _ = writeln!(lines, "{}", heading(seen.arrivals.doubles.len()));
            }
            let _ = writeln!(lines, "{}", in_line(seen));
            pass_on(Stream::Stdout, &lines);
        }
    }
}

/// What stands over the lines; with the longest picture they are 80 columns wide.
fn heading(minutes: usize) -> String {
    let width = minutes.max(BY_MINUTE.len());
    format!("TIME       ORDERS  DOUBLES  {BY_MINUTE:<width$}  LATE  HELD  WAITING")
}

fn in_line(seen: &Seen) -> String {
    let sum = |counts: &[u64]| counts.iter().sum::<u64>();
    let Arrivals { orders, doubles, waiting, .. } = &seen.arrivals;
    let time = seen.at.datetime().format("%H:%M:%SZ");
    let held: i64 = seen.asked.values().sum();
    format!(
        "{time}  {:>6}  {:>7}  {:<9}  {:>4}  {held:>4}  {:>7}",
        sum(orders),
        sum(doubles),
        sparkline(doubles),
        seen.late.len(),
        waiting.values().sum::<u64>()
    )
}

fn as_json(seen: &Seen) -> Value {
    let Arrivals { orders, doubles, newest_double, waiting } = &seen.arrivals;
    let late: Vec<_> =
        seen.late.iter().map(|(tenant, id)| json!({ "tenant_id": tenant, "payment_id": id })).collect();
    json!({ "at": seen.at, "orders_by_minute": orders, "doubles_by_minute": doubles,
        "newest_double": newest_double, "late_captures": late, "held_up": seen.asked, "waiting": waiting })
}
