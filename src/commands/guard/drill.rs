//! `onefold guard drill`: one purchase asked for many times at once, in a scratch beside the real orders or at a
//! service's door.

use std::time::Duration;

use clap::Args;
use clap::builder::RangedU64ValueParser;
use serde_json::{Value, json};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::super::count;
use super::super::progress::Progress;
use super::url::{self, UrlFlags};
use crate::config::Config;
use crate::core::drill::{Fault, Latencies, Tally};
use crate::core::status::Ledger;
use crate::error::{Error, Exit, Result};
use crate::execute::drill::{self, Drill};
use crate::report::{Column, Report, Table, print_note};
use crate::store::Places;
use crate::store::scratch::{self, Fate, Leftover, Scratch};

/// Ask for one purchase many times at once: does one intent have one result?
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  onefold guard drill
  onefold guard drill --without-guard
  onefold guard drill --fault lease-over
  onefold guard drill --requests 50 --rounds 1000
  onefold guard drill --url https://staging.example/orders --method POST \\
      --header 'Authorization: Bearer {env:API_TOKEN}' --body @order.json

Without --url: in a scratch of its own in the database of the orders (a schema
on PostgreSQL, a database on MariaDB, a file beside the file on SQLite) that the
drill makes and removes. The real tables are not touched. Each request does what
`guard snippets` says: take the key, write the order and end the key in one
transaction, answer with the order. Faults, one a round:
  lose-answer         committed, and the client never hears of it: it asks again
  crash-after-commit  the connection is lost after the key is taken, in every
                      other round in the middle of the effect
  slow                the owner works for longer than the others wait
  lease-over          the owner stalls, is replaced, wakes, and completes nothing
  other-digest        one request asks for another amount, and is refused
--without-guard writes an order for each request, as a demonstration: it ends
with 0. With the guard the end is 5 where a round left another number of orders
than one, or answered with another.

With --url: sends the same request to a service of yours, a new key each round,
and counts the results. Successes are told apart by their bodies; members that
differ in each answer are named by --ignore. The end is 5 where a key has more
than one result, 1 where nothing succeeded. It orders what it orders: use a
service that may do that. A header holds a secret as {env:NAME} or {file:PATH}.")]
pub struct DrillArgs {
    /// How many requests there are for each purchase
    #[arg(long, value_name = "N", default_value = "8", value_parser = RangedU64ValueParser::<usize>::new().range(1..=1000))]
    requests: usize,
    /// How many of them are under way at a time
    #[arg(long, value_name = "N", default_value = "8", value_parser = RangedU64ValueParser::<usize>::new().range(1..=64))]
    concurrency: usize,
    /// How often, each time with another purchase
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u64).range(1..))]
    rounds: u64,
    /// Show what happens where no key is taken and no index stands
    #[arg(long, conflicts_with = "url")]
    without_guard: bool,
    /// What goes wrong: lose-answer, crash-after-commit, slow, lease-over, other-digest
    #[arg(long, value_name = "FAULT", conflicts_with = "url")]
    fault: Option<Fault>,
    #[command(flatten)]
    at: UrlFlags,
}

pub async fn run(config: &Config, args: DrillArgs) -> Result<Report> {
    let how_often =
        url::HowOften { rounds: args.rounds, requests: args.requests, concurrency: args.concurrency };
    if args.at.is_given() {
        return url::run(config, args.at, how_often).await;
    }
    let drill = Drill {
        rounds: args.rounds,
        requests: args.requests,
        concurrency: args.concurrency.min(args.requests),
        guard: !args.without_guard,
        fault: args.fault,
    };
    if let Some(fault) = drill.fault
        && (drill.requests < 2 || fault.waits_for_others() && drill.concurrency < 2)
    {
        return Err(Error::usage(format!("{fault} needs others beside the one that it happens to"))
            .hint("--requests 8 --concurrency 8"));
    }
    // From here on a signal waits until the scratch is gone again.
    let mut stop = Stop::listen()?;
    let shards = &config.places.ledgers[Ledger::Orders as usize];
    let Some(orders_url) = shards.first() else { return Err(Error::usage("there is no database of orders")) };
    let store = Config { places: Places::one(orders_url), ..config.clone() }.open(false).await?;
    let orders = store.journal();
    let leftovers = scratch::remove_leftovers(orders, orders_url).await?;
    tell(config, &leftovers);

    let random = uuid::Uuid::new_v4().simple().to_string();
    let name = scratch::name(&random[..12]);
    // One for each that is under way, and one to say that the drill is at work.
    let connections = u32::try_from(drill.concurrency).unwrap_or(u32::MAX).saturating_add(1);
    let made = Scratch::make(orders, orders_url, &name, &config.actor, connections, drill.guard).await?;
    let progress = Progress::new(config, "asking for a purchase");
    let watch = |tally: &Tally| {
        progress.at(format!(
            "round {} of {}, at most {} left",
            tally.rounds,
            drill.rounds,
            count_of_orders(tally.most)
        ));
    };
    let ended = tokio::select! {
        ended = drill::run(drill, &made, watch) => ended,
        () = stop.heard() => Err(Error::failure("interrupted: the drill is not at its end").hint("run it again")),
    };
    progress.end();
    let removed = made.remove().await;
    let tally = match (ended, removed) {
        (Ok(tally), Ok(())) => tally,
        (Err(e), Ok(())) => return Err(e.context(format!("in {name}, which is removed"))),
        (Err(e), Err(left)) => return Err(e.context(left.message).hint("the next drill removes it")),
        (Ok(_), Err(left)) => return Err(left),
    };
    Ok(report(drill, &name, &orders.label, shards.len(), &leftovers, &tally))
}

/// Signals that end a drill, after which its scratch is removed.
pub struct Stop([Signal; 3]);

impl Stop {
    pub fn listen() -> Result<Self> {
        let listen =
            |kind| signal(kind).map_err(|e| Error::failure(format!("signals cannot be listened for: {e}")));
        Ok(Self([
            listen(SignalKind::interrupt())?,
            listen(SignalKind::terminate())?,
            listen(SignalKind::hangup())?,
        ]))
    }

    /// Ends with the first of them, also where it came before.
    pub async fn heard(&mut self) {
        let [interrupt, terminate, hangup] = &mut self.0;
        tokio::select! {
            _ = interrupt.recv() => (),
            _ = terminate.recv() => (),
            _ = hangup.recv() => (),
        }
    }
}

fn tell(config: &Config, leftovers: &[Leftover]) {
    if config.quiet || config.format.is_json() {
        return;
    }
    for Leftover { name, fate } in leftovers {
        print_note(&match fate {
            Fate::Removed => format!("note: {name} was left by a drill that was killed, and is removed"),
            Fate::InUse { made_by } => {
                format!("note: {name} is that of a drill of {made_by}, or of one killed just now")
            }
            Fate::Kept { why } => {
                format!("note: {name} is named like a drill's own, and is left alone: {why}")
            }
        });
    }
}

fn count_of_orders(n: u64) -> String {
    count(usize::try_from(n).unwrap_or(usize::MAX), "order")
}

fn report(
    drill: Drill,
    name: &str,
    label: &str,
    shards: usize,
    leftovers: &[Leftover],
    tally: &Tally,
) -> Report {
    let leftovers: Vec<_> = leftovers
        .iter()
        .map(|l| match &l.fate {
            Fate::Removed => json!({ "name": l.name, "fate": "removed" }),
            Fate::InUse { made_by } => json!({ "name": l.name, "fate": "in_use", "made_by": made_by }),
            Fate::Kept { why } => json!({ "name": l.name, "fate": "kept", "why": why }),
        })
        .collect();
    let json = json!({
        "database": label,
        "scratch": { "name": name, "removed": true },
        "leftovers": leftovers,
        "guard": drill.guard,
        "fault": drill.fault,
        "rounds": tally.rounds,
        "requests": drill.requests,
        "concurrency": drill.concurrency,
        "orders": { "all": tally.orders, "least_of_a_round": tally.least, "most_of_a_round": tally.most },
        "counts": tally.counts,
        "differing": tally.differing,
        "latency_us": latency(&tally.latencies),
        "rounds_violated": tally.violated,
        "violations": tally.violations,
    });
    let counts = &tally.counts;
    let many = |n: usize| count(n, "request");
    let report = Report::new(json)
        .line(format!(
            "{} for one purchase, {} at once, {}, {} the guard{}.",
            many(drill.requests),
            drill.concurrency,
            count(usize::try_from(tally.rounds).unwrap_or(usize::MAX), "round"),
            if drill.guard { "with" } else { "without" },
            drill.fault.map(|fault| format!(", {fault}")).unwrap_or_default()
        ))
        .line(format!("In {name} of {label}, which is removed."));
    let report = if shards > 1 {
        report.line(format!("Of the {shards} databases of orders that is the first."))
    } else {
        report
    };
    let mut table =
        Table::new([Column::exact("WHAT"), Column::number("HOW OFTEN"), Column::prose("WHICH IS")]);
    let refused = match tally.differing.iter().map(String::as_str).collect::<Vec<_>>().join(", ") {
        differing if differing.is_empty() => "the key is another request's".to_owned(),
        differing => format!("the key is another request's, which differs in {differing}"),
    };
    for (what, n, which, always) in [
        ("inserts", counts.inserts, "orders that were committed", true),
        ("reuses", counts.reuses, "answers with an order that was there", true),
        ("refusals", counts.refusals, &refused, false),
        ("still processing", counts.still_processing, "answers to those who would wait no longer", false),
        ("waits", counts.waits, "looks at a key that another held", false),
        ("take-overs", counts.take_overs, "keys taken after a lease that was over", false),
        ("replaced", counts.replaced, "owners who woke too late, and completed nothing", false),
        ("lost answers", counts.lost_answers, "on purpose; asked again with the same key", false),
        ("crashes", counts.crashes, "on purpose; asked again with the same key", false),
    ] {
        if always || n > 0 {
            table.row([what.to_owned(), n.to_string(), which.to_owned()]);
        }
    }
    let report = report.table(table).line(in_words(&tally.latencies));
    if !drill.guard {
        return report.line(format!(
            "{} of {}: that is what the guard is for. A demonstration, so it ends with 0.",
            count_of_orders(tally.orders),
            count(usize::try_from(tally.rounds).unwrap_or(usize::MAX), "purchase")
        ));
    }
    if tally.violated == 0 {
        return report.line("Each purchase left one order, and every answer is that order.");
    }
    let mut broken =
        Table::new([Column::number("ROUND"), Column::prose("ORDERS LEFT"), Column::prose("ANSWERED WITH")]);
    for v in &tally.violations {
        let answered = v.answered.iter().cloned().collect::<Vec<_>>().join(", ");
        broken.row([v.round.to_string(), v.orders.join(", "), answered]);
    }
    report
        .line(format!(
            "NOT ONE ORDER in {}.",
            count(usize::try_from(tally.violated).unwrap_or(usize::MAX), "round")
        ))
        .table(broken)
        .exit(Exit::Violations)
}

/// Latencies as programs get them, in microseconds.
pub fn latency(latencies: &Latencies) -> Value {
    json!({ "p50": latencies.percentile(50), "p95": latencies.percentile(95), "max": latencies.max() })
}

/// Latencies as people get them.
pub fn in_words(latencies: &Latencies) -> String {
    let told = |micros: u64| {
        let time = Duration::from_micros(micros);
        if micros < 1_000_000 {
            format!("{:.1} ms", time.as_secs_f64() * 1e3)
        } else {
            format!("{:.2} s", time.as_secs_f64())
        }
    };
    format!(
        "Answers took {} (half of them at most), {} (95 of 100), {} (all).",
        told(latencies.percentile(50)),
        told(latencies.percentile(95)),
        told(latencies.max())
    )
}
