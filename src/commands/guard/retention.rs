//! `onefold guard retention`: for how long what is kept of idempotency keys.

use clap::Args;
use serde_json::json;

use super::keys::{Storage, bytes, holder, open, stored};
use crate::config::Config;
use crate::core::idempotency::Retention;
use crate::core::retention::RetentionPolicy;
use crate::core::time::Span;
use crate::error::{Error, Result};
use crate::report::{Column, Report, Table};
use crate::store::Store;
use crate::store::retention::SetPolicy;

/// Say for how long what is kept of idempotency keys, or show it and what it takes
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  onefold guard retention
  onefold guard retention --client-retry 2m --queue 24h --replay 7d \\
      --dispute 180d --archive 3y
  onefold guard retention --queue 3d --dry-run

All spans count from when a key was last asked for, by the database's clock:
  hot      all is kept, for as long as a client may retry or a queue redeliver
  replay   all but the body of the result: its reference or digest stays
  dispute  key, whole digest, state, code, order and payment, first seen
  archive  a fingerprint of the key and its result, in a table of its own
No tier forgets that a key was used: a request that comes back is recognised
in each of them, and never run again. Past the archive's window nothing is
deleted either; `guard gc` tells how many keys are.

One policy is for all keys: those of `once`, in the journal's database, and those
that services keep beside the orders. What they take is shown by database.

A window that is shorter than what it must outlast is refused. One that is
shorter than it was needs --shorten, since what was promised is kept for less.")]
pub struct RetentionArgs {
    /// How long a client retries
    #[arg(long, value_name = "SPAN")]
    client_retry: Option<Span>,
    /// How long a queue redelivers
    #[arg(long, value_name = "SPAN")]
    queue: Option<Span>,
    /// The longest that anything else brings a request back, such as a dead-letter queue that is replayed
    #[arg(long, value_name = "SPAN")]
    longest_replay: Option<Span>,
    /// How long the reference of the result and the parts of the request are kept
    #[arg(long, value_name = "SPAN")]
    replay: Option<Span>,
    /// How long key, state, order and payment are kept where keys are looked for first
    #[arg(long, value_name = "SPAN")]
    dispute: Option<Span>,
    /// How long the fingerprint is kept at least
    #[arg(long, value_name = "SPAN")]
    archive: Option<Span>,
    /// Keep something for less long than was promised; needs --because
    #[arg(long, requires = "because")]
    shorten: bool,
    /// Why; the journal keeps it
    #[arg(long, value_name = "TEXT")]
    because: Option<String>,
    /// Show what would be set, and set nothing
    #[arg(long)]
    dry_run: bool,
}

impl RetentionArgs {
    /// What is to be set; `None` where nothing is said.
    fn policy(&self, now_set: Option<&RetentionPolicy>) -> Result<Option<RetentionPolicy>> {
        let said = [
            ("--client-retry", self.client_retry),
            ("--queue", self.queue),
            ("--replay", self.replay),
            ("--dispute", self.dispute),
            ("--archive", self.archive),
        ];
        if said.iter().all(|(_, span)| span.is_none()) && self.longest_replay.is_none() {
            return Ok(None);
        }
        let missing: Vec<_> = said.iter().filter(|(_, span)| span.is_none()).map(|(flag, _)| *flag).collect();
        let nothing = Span::from_micros(0);
        let base = match now_set {
            Some(set) => *set,
            None if missing.is_empty() => RetentionPolicy {
                client_retry: nothing,
                queue: nothing,
                longest_replay: nothing,
                replay: nothing,
                dispute: nothing,
                archive: nothing,
            },
            None => {
                return Err(Error::usage(format!(
                    "nothing is set yet, and {} is not said",
                    missing.join(", ")
                ))
                .hint(
                    "--client-retry 2m --queue 24h --replay 7d --dispute 180d --archive 3y; \
                         later a flag changes its window alone",
                ));
            }
        };
        Ok(Some(RetentionPolicy {
            client_retry: self.client_retry.unwrap_or(base.client_retry),
            queue: self.queue.unwrap_or(base.queue),
            longest_replay: self.longest_replay.unwrap_or(base.longest_replay),
            replay: self.replay.unwrap_or(base.replay),
            dispute: self.dispute.unwrap_or(base.dispute),
            archive: self.archive.unwrap_or(base.archive),
        }))
    }
}

pub async fn run(config: &Config, args: RetentionArgs) -> Result<Report> {
    if args.because.as_deref().is_some_and(|because| because.trim().is_empty()) {
        return Err(Error::usage("--because needs a reason: the journal keeps it")
            .hint("for example: --because 'the queue keeps 3 days now'"));
    }
    let stores = open(config).await?;
    // The policy is one for all of them, and lies where the journal does.
    let [store, ..] = &stores[..] else { return Err(Error::failure("there is no table of keys")) };
    let set = store.retention().await?;
    let Some(policy) = args.policy(set.as_ref().map(|set| &set.policy))? else {
        if args.shorten || args.because.is_some() {
            return Err(Error::usage("there is nothing to set").hint("name a window, such as --replay 14d"));
        }
        return shown(config, &stores, set.as_ref(), None).await;
    };
    if let Some(short) = policy.too_short() {
        return Err(Error::refused(short.to_string()).hint(format!(
            "what can still return must not be forgotten: {} {} or longer",
            short.flag, short.needed
        )));
    }
    let shorter = set.as_ref().map(|set| policy.shorter_than(&set.policy)).unwrap_or_default();
    if !shorter.is_empty() && !args.shorten {
        let tiers: Vec<_> = shorter.iter().map(|tier| tier.as_str()).collect();
        return Err(Error::refused(format!(
            "this keeps what is {} for less long than was promised",
            tiers.join(", ")
        ))
        .hint("if that is meant, for the records that there are, too: --shorten --because TEXT"));
    }
    if args.dry_run {
        return shown(config, &stores, set.as_ref(), Some(&policy)).await;
    }
    let is_so = set.as_ref().is_some_and(|set| set.policy == policy);
    if !is_so && !store.set_retention(&holder(config), set.as_ref(), &policy, args.because.as_deref()).await?
    {
        return Err(Error::stale("another set the retention in this very moment")
            .hint("see it with `onefold guard retention`, and say it again if it is not what you mean"));
    }
    let set = store.retention().await?;
    shown(config, &stores, set.as_ref(), None).await
}

/// What is set, or would be, and what the tiers take.
async fn shown(
    config: &Config,
    stores: &[Store],
    set: Option<&SetPolicy>,
    would_be: Option<&RetentionPolicy>,
) -> Result<Report> {
    let policy = would_be.or(set.map(|set| &set.policy));
    let (mut all, mut total) = (Vec::new(), Storage::default());
    for store in stores {
        let storage = stored(config, store, policy).await?;
        total = total.and(&storage);
        all.push((store.keys_database().label.clone(), storage));
    }
    let of_each: Vec<_> =
        all.iter().map(|(label, storage)| json!({ "database": label, "storage": storage.json() })).collect();
    let json = json!({ "set": set, "would_set": would_be, "storage": total.json(), "databases": of_each });
    let report = Report::new(json);
    let report = match (set, would_be) {
        (_, Some(_)) => report.line("Nothing is set: this is what would be."),
        (None, None) => report.line("Nothing is set, and all is kept as it is. For example:").command(
            "onefold guard retention --client-retry 2m --queue 24h --replay 7d --dispute 180d --archive 3y",
        ),
        (Some(set), None) => {
            let why = set.because.as_ref().map(|because| format!(": {because}")).unwrap_or_default();
            report.line(format!("Set by {} at {}{why}.", set.set_by, set.set_at))
        }
    };
    let mut report = report;
    let are_several = all.len() > 1;
    for (label, storage) in &all {
        if are_several {
            report = report.title(label.clone());
        }
        report = report.table(tiers(policy, storage));
    }
    Ok(total.past(report))
}

fn tiers(policy: Option<&RetentionPolicy>, storage: &Storage) -> Table {
    let mut table = Table::new([
        Column::exact("TIER"),
        Column::exact("UNTIL"),
        Column::number("KEYS"),
        Column::number("BYTES"),
        Column::prose("WHAT IS KEPT"),
    ]);
    for tier in Retention::ALL.iter().copied() {
        let (keys, size) = storage.of(tier);
        table.row([
            tier.to_string(),
            policy.map(|policy| days(policy.window(tier))).unwrap_or_default(),
            keys.to_string(),
            bytes(size),
            kept(tier).to_owned(),
        ]);
    }
    table
}

const fn kept(tier: Retention) -> &'static str {
    match tier {
        Retention::Hot => "the full result",
        Retention::Replay => "all but the result's body",
        Retention::Dispute => "key, digest, state, order, payment, first seen",
        Retention::Archive => "a fingerprint",
    }
}

/// In days from two of them on: `24h`, `180d`, `1095d18h`.
fn days(span: Span) -> String {
    const DAY: i64 = 86_400_000_000;
    match (span.micros() / DAY, span.micros() % DAY) {
        (..2, _) => span.to_string(),
        (days, 0) => format!("{days}d"),
        (days, rest) => format!("{days}d{}", Span::from_micros(rest)),
    }
}
