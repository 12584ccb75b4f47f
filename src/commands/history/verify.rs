//! `onefold history verify`: whether the journal still is what was written.

use clap::Args;
use serde_json::json;

use crate::commands::progress::Progress;
use crate::commands::{count, now};
use crate::config::Config;
use crate::core::chain::{Misfit, Verified};
use crate::error::{Error, Exit, Result};
use crate::report::{Column, Report, Table};

/// Walk the journal's chain of hashes, and name the first entry that does not fit
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  onefold history verify
  onefold history verify --head 3f0c…
  onefold history verify --seal

Ends with 5 where an entry was changed, taken away, put in or put elsewhere,
where the end of a finished run is missing, or where no entry tells of a plan,
a step or an approval that there is. Keep the newest head that it prints
where nobody who may write the database can change it: --head proves later that
all that was there then still is. A run that was killed has no head: it is told,
and is no violation. --seal gives such runs an end; one that is still at it
begins another chain.")]
pub struct VerifyArgs {
    /// A head that was printed before, by its 64 hex digits; it must still be there. May be repeated
    #[arg(long = "head", value_name = "HASH")]
    heads: Vec<String>,
    /// Before that, end the runs that left no end
    #[arg(long)]
    seal: bool,
}

pub async fn run(config: &Config, args: VerifyArgs) -> Result<Report> {
    if let Some(bad) = args.heads.iter().find(|h| h.len() != 64 || !h.bytes().all(|b| b.is_ascii_hexdigit()))
    {
        return Err(Error::usage(format!("--head {bad}: not the hash of a head, which has 64 hex digits"))
            .hint("`onefold history verify` prints the newest head"));
    }
    let store = config.open_to_read().await?;
    let progress = Progress::new(config, "walking the journal");
    let sealed = if args.seal { Some(store.end_killed_runs(&config.actor, now()).await?) } else { None };
    let mut verified = store
        .verify_journal(|entries| {
            if entries % 1024 == 0 {
                progress.at(format!("{entries} entries"));
            }
        })
        .await?;
    for hash in &args.heads {
        if !store.has_head(&hash.to_lowercase()).await? {
            let why = format!("there is no head {hash} any more");
            verified.misfit(Misfit::head(0, why));
        }
    }
    progress.end();
    let report = Report::new(json!({ "fits": verified.fits(), "sealed": sealed, "journal": verified }));
    Ok(tell(report, &verified, sealed))
}

fn tell(report: Report, verified: &Verified, sealed: Option<usize>) -> Report {
    let mut report = report;
    if let Some(sealed) = sealed {
        report = report.line(match sealed {
            0 => "No chain was without an end.".to_owned(),
            n => format!("Ended now: {} without an end.", count(n, "chain")),
        });
    }
    if let Some(first) = verified.misfits.first() {
        report = report
            .title(format!("The journal does not fit: {}", place(first)))
            .line(&first.why)
            .table(misfits(&verified.misfits[1..]))
            .exit(Exit::Violations);
        let named = i64::try_from(verified.misfits.len()).unwrap_or(i64::MAX);
        if verified.misfits_found > named {
            report = report.line(format!("… and {} more.", verified.misfits_found - named));
        }
    } else {
        report = report.title("The journal fits.");
    }
    let entries = |n: i64| if n == 1 { "1 entry".to_owned() } else { format!("{n} entries") };
    report = report.line(format!(
        "{} in {}, {} of them covered by {}.",
        entries(verified.entries),
        plural(verified.chains, "chain"),
        verified.covered,
        plural(verified.heads, "head")
    ));
    if verified.not_chained > 0 {
        report = report
            .line(format!("{} not chained: from before the journal was.", entries(verified.not_chained)));
    }
    if !verified.triggers_missing.is_empty() {
        report = report
            .line(format!(
                "Nothing refuses changes to it where a trigger is missing, or not to be seen by this user: {}. To make \
                 them:",
                verified.triggers_missing.join(", ")
            ))
            .command("onefold init");
    }
    if verified.unfinished_runs > 0 {
        report = report
            .line(format!(
                "{} without an end: still at it, or killed. What is missing at their ends cannot be seen.",
                plural(verified.unfinished_runs, "chain")
            ))
            .table(unfinished(verified));
    }
    match &verified.newest_head {
        Some(head) => report.line(format!("newest head: {} {}", head.position, head.hash)),
        None => report.line("No run has ended yet: there is no head."),
    }
}

fn plural(n: i64, what: &str) -> String {
    count(usize::try_from(n).unwrap_or_default(), what)
}

/// Where a misfit is: `entry 17, position 3 of RUN-….1`.
fn place(misfit: &Misfit) -> String {
    if let Some(of) = &misfit.of {
        return of.clone();
    }
    match (&misfit.chain, misfit.seq) {
        (Some(chain), Some(seq)) => format!("entry {seq}, position {} of {chain}", misfit.position),
        (Some(chain), None) => format!("position {} of {chain}", misfit.position),
        (None, Some(seq)) => format!("entry {seq}"),
        (None, None) => format!("head {}", misfit.position),
    }
}

fn misfits(misfits: &[Misfit]) -> Table {
    let mut table = Table::new([Column::exact("ALSO"), Column::prose("WHY")]);
    for misfit in misfits {
        table.row([place(misfit), misfit.why.clone()]);
    }
    table
}

fn unfinished(verified: &Verified) -> Table {
    let mut table = Table::new([
        Column::exact("CHAIN"),
        Column::number("ENTRIES"),
        Column::exact("LAST AT"),
        Column::prose("WHO"),
    ]);
    for run in &verified.unfinished {
        let at = run.at.map(|at| at.to_string()).unwrap_or_default();
        table.row([run.chain.clone(), run.entries.to_string(), at, run.actor.clone()]);
    }
    table
}
