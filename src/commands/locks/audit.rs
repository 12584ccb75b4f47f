//! `onefold locks audit`: a lock history, and what the ledgers have twice beside it; changes nothing.

use std::cell::RefCell;
use std::path::PathBuf;

use clap::Args;

use super::super::files::{FileFlags, load, must_be_new, must_lie_apart, write_new};
use super::super::flags::{ScopeFlags, ZoneFlag};
use super::super::leaving::{OutputFlags, format};
use super::super::now;
use super::super::progress::Progress;
use super::sheets::AuditReport;
use super::spool::Spool;
use super::tell::{EXAMPLES, table};
use crate::config::Config;
use crate::core::evidence::Evidence;
use crate::core::ledger::Ledgers;
use crate::core::locks::{Audit, Business, Event, Found, InOrder, Late, Rules};
use crate::core::plan::make;
use crate::core::policy::Policy;
use crate::core::sheet::{Head, Sheets as _};
use crate::core::time::Span;
use crate::error::{Error, Exit, Result};
use crate::files::{HistoryMap, LedgerFiles, LockOptions, LockRefusal, read_lock_history};
use crate::report::export::Kind;
use crate::report::{Format, Report, print_note};

/// The alerts as a rule file of Prometheus.
const RULES: &str = include_str!("rules.yml");

/// Read a lock history and say where two held one key, why, and what came of it; changes nothing
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  onefold locks audit locks.csv --skew 50ms
  onefold locks audit locks.jsonl --files exports/ --format xlsx \\
      --output locks.xlsx
  onefold locks audit --query ops/locks.sql --ledgers --show S-204
  onefold locks audit locks.csv --rules locks.yml
  onefold locks audit redis.csv --history-map name=key,holder=owner,ts=at

The history is CSV with the columns key, event, owner, token, lease_ms, at, node
and result, or a JSON object a line with members of these names. Events are
acquire, renew, release, expire, steal, failover, pause and write; result is ok
(or empty) or refused. An acquire without lease_ms does not expire; of a pause,
at is when it began and lease_ms how long it was. Lines are by time, or behind
by no more than --reorder. --query names a file with one SELECT that gives
lock_key, event, owner, token, lease_ms, at_us (microseconds), node and result
out of the database. Ends with 5 where two held a key, a lock was lost or a
write of one who did not hold it was taken, and no difference of clocks explains
it. Of one instant, whoever holds the key is taken to end before the next one
gets it, in a file and in a table alike.")]
pub struct AuditArgs {
    /// The lock history: CSV or JSON lines
    #[arg(value_name = "FILE")]
    history: Option<PathBuf>,
    /// A file with the SELECT that gives the history out of --database
    #[arg(long, value_name = "FILE", conflicts_with = "history")]
    query: Option<PathBuf>,
    /// A column's name in the history and ours, such as ts=at; may be repeated
    #[arg(long, value_name = "THEIRS=OURS", value_delimiter = ',', conflicts_with = "query")]
    history_map: Vec<HistoryMap>,
    /// How far the clocks of two nodes may differ: what is shorter is possible, not proven [default: 0s]
    #[arg(long, value_name = "SPAN", value_parser = Span::or_nothing)]
    skew: Option<Span>,
    /// How far a line may be behind the newest before it [default: 1s]
    #[arg(long, value_name = "SPAN", value_parser = Span::or_nothing)]
    reorder: Option<Span>,
    /// A holder without expiry that gives no sign for so long has vanished [default: 10m]
    #[arg(long, value_name = "SPAN")]
    vanished_after: Option<Span>,
    /// Forget a key, and its tokens, when nobody has held it for so long: what bounds memory [default: 1h]
    #[arg(long, value_name = "SPAN")]
    forget_after: Option<Span>,
    /// Join what these four CSV files have twice to the times of two holders
    #[arg(long, value_name = "DIR")]
    files: Option<PathBuf>,
    /// The same with the ledgers of the configured databases
    #[arg(long, conflicts_with = "files")]
    ledgers: bool,
    /// Write what to alert on as a new rule file for Prometheus
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
    #[command(flatten)]
    output: OutputFlags,
    #[command(flatten)]
    zone: ZoneFlag,
    #[command(flatten)]
    scope: ScopeFlags,
    #[command(flatten)]
    file_flags: FileFlags,
}

pub async fn run(config: &Config, args: AuditArgs) -> Result<Report> {
    let format = format(config);
    let default = Rules::default();
    let rules = Rules {
        skew: args.skew.unwrap_or(default.skew),
        vanished_after: args.vanished_after.unwrap_or(default.vanished_after),
        forget_after: args.forget_after.unwrap_or(default.forget_after),
    };
    let Some(source) = args.history.as_ref().or(args.query.as_ref()) else {
        return Err(Error::usage("no lock history is named").hint(
            "onefold locks audit FILE, or one in a table: onefold locks audit --query FILE-WITH-A-SELECT",
        ));
    };
    let mut report = AuditReport::new(source.display().to_string(), rules);
    let names: Vec<_> = report.heads().iter().map(Head::name).collect();
    let kind = Kind::of_heads(report.verb(), report.heads(), format, args.output.sheet(&names)?);
    args.output.check(config, format, "locks", "findings", &kind)?;
    if let Some(path) = &args.rules {
        must_be_new(path)?;
        if let Some(output) = &args.output.output {
            must_lie_apart(["--rules", "--output"], [path, output])?;
        }
    }
    let business = RefCell::new(business(config, &args, rules.skew).await?);
    report.spool = (format != Format::Table).then(Spool::new).transpose()?;
    let mut spooled = Ok(());
    let mut out = |found: Found| {
        report.collected.add(&found, EXAMPLES);
        if let Some(business) = &mut *business.borrow_mut() {
            business.found(&found);
        }
        if let (Some(spool), Ok(())) = (&mut report.spool, &spooled) {
            spooled = spool.add(&found);
        }
    };
    let mut audit = Audit::new(rules);
    let mut in_order = InOrder::new(args.reorder.unwrap_or(Span::from_secs(1)));
    let mut take = |event: Event| {
        if let Some(business) = &mut *business.borrow_mut() {
            business.key(&event.key);
        }
        in_order.push(event)?;
        while let Some(event) = in_order.ready() {
            audit.event(event, &mut out);
        }
        Ok::<(), Late>(())
    };
    let progress = Progress::new(config, "reading the lock history");
    match (&args.history, &args.query) {
        (Some(path), _) => {
            let options = args.file_flags.options(args.zone)?;
            let map = args.history_map.clone();
            let options = LockOptions { encoding: options.encoding, timezone: options.timezone, map };
            let mut take = |event| take(event).map_err(|late| refusal(&late));
            let tell = &mut |lines| progress.at(format!("{lines} lines"));
            let notes = read_lock_history(path, &options, &mut take, tell)?;
            if !config.quiet {
                notes.iter().for_each(|note| print_note(&format!("note: {}: {note}", path.display())));
            }
        }
        (None, query) => {
            let path = query.clone().unwrap_or_default();
            let select = std::fs::read_to_string(&path).map_err(|e| {
                Error::usage(format!("cannot read {}: {e}", path.display())).hint("--query FILE")
            })?;
            let store = config.open(false).await?;
            let mut rows = 0_u64;
            let take = |event| {
                rows += 1;
                if rows.is_multiple_of(1024) {
                    progress.at(format!("{rows} rows"));
                }
                take(event).map_err(|late| Error::usage(refusal(&late).problem))
            };
            store.each_lock_event(&select, take).await?;
        }
    }
    while let Some(event) = in_order.rest() {
        audit.event(event, &mut out);
    }
    report.audited = audit.end(&mut out);
    progress.end();
    spooled?;
    report.business = business.into_inner();
    report.duplicates = report.business.iter().flat_map(Business::joined).collect();
    // A file without events is refused where it is read.
    if report.audited.events == 0 {
        return Err(Error::usage(format!("{} gives no row: nothing was audited", report.source))
            .hint("is it the right database, and does its WHERE let anything through?"));
    }
    report.spool.as_mut().map(Spool::end).transpose()?;

    if let Some(path) = &args.rules {
        write_new(path, RULES)?;
    }
    let told = match format {
        Format::Table => table(config, &report, args.rules.as_deref()),
        format => args.output.leave(config, &report, format)?,
    };
    Ok(if report.collected.is_broken() { told.exit(Exit::Violations) } else { told })
}

/// What the ledgers have twice, where ledgers are named.
async fn business(config: &Config, args: &AuditArgs, skew: Span) -> Result<Option<Business>> {
    let scope = args.scope.scope(args.zone)?;
    let (ledgers, evidence): (Ledgers, Evidence) = if let Some(dir) = &args.files {
        let options = args.file_flags.options(args.zone)?;
        (load(config, &LedgerFiles::in_dir(dir)?, &options)?, Evidence::default())
    } else if args.ledgers {
        let store = config.open_to_read().await?;
        let progress = Progress::new(config, "reading and joining");
        let ledgers = store.read_scope(&scope).await?;
        let evidence = store.evidence_of(&ledgers).await?;
        progress.end();
        (ledgers, evidence)
    } else if scope.is_everything() {
        return Ok(None);
    } else {
        return Err(Error::usage("a scope says which rows of the ledgers are meant, and none are read")
            .hint("--ledgers reads those of the configured databases, --files DIR those of four CSV files"));
    };
    let decided = make(&ledgers, &scope, &Policy::default(), now(), &evidence)?;
    Ok(Some(Business::new(&ledgers, &decided.intents, skew)))
}

fn refusal(late: &Late) -> LockRefusal {
    LockRefusal {
        problem: format!("{} behind a line before it: the history must be by time", late.behind),
        hint: format!("sort it by time, or allow for it: --reorder {}", late.behind),
    }
}
