//! `onefold locks check-script`: the release and renewal of a real lock, as the user's code does it.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::super::redis::RedisFlag;
use crate::config::Config;
use crate::error::{Error, Exit, Result};
use crate::report::{Column, Report, Table};
use crate::trials::lock::{Act, Bench, SAFE_RELEASE, SAFE_RENEWAL, TOLERANCE_MS, Trial, Way};

/// What no trial of a program shows.
const OF_PROGRAMS: &str = "A program that looks first and deletes then passes, too, and still robs whoever gets the lock \
                           between the two: only a script, or one command, does both in one step.";

/// Try on a real Redis whether the way your code releases and renews a lock robs the next holder
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  onefold locks check-script --redis redis://127.0.0.1:6379 \\
      --release unlock.lua --renew extend.lua
  onefold locks check-script --release-command 'DEL {key}'
  onefold locks check-script --release-program ./unlock

A lock is a key that holds its owner's value: SET key value NX PX lease. The code
is run on a lock that it holds, on one that the next holder has by now, and on
none. A script gets the key as KEYS[1], the owner's value as ARGV[1] and the
lease in milliseconds as ARGV[2]; a command of Redis has {key}, {value} and
{lease_ms} in it; a program gets a JSON object with key, value and lease_ms on
its stdin. A renewal must leave the lease that it asks for, within 1 s; what does
nothing must not be answered as done (a number above 0, OK, true, a table that
begins so, or whatever else it answers on its own lock), and may end with an
error. A script that does not end is stopped by SCRIPT KILL. Keys are its
own, under a random prefix, and are removed; what a script does to other keys is
not looked for: name a Redis for tests. Ends with 5 where a trial shows what a
lock must not do.")]
pub struct CheckScriptArgs {
    #[command(flatten)]
    redis: RedisFlag,
    /// The Lua script that releases a lock
    #[arg(long, value_name = "FILE", group = "releases")]
    release: Option<PathBuf>,
    /// The command of Redis that releases it, such as 'DEL {key}'
    #[arg(long, value_name = "COMMAND", group = "releases")]
    release_command: Option<String>,
    /// The program that releases it
    #[arg(long, value_name = "PROGRAM", group = "releases")]
    release_program: Option<PathBuf>,
    /// The Lua script that renews a lock
    #[arg(long, value_name = "FILE", group = "renewals")]
    renew: Option<PathBuf>,
    /// The command of Redis that renews it, such as 'PEXPIRE {key} {lease_ms}'
    #[arg(long, value_name = "COMMAND", group = "renewals")]
    renew_command: Option<String>,
    /// The program that renews it
    #[arg(long, value_name = "PROGRAM", group = "renewals")]
    renew_program: Option<PathBuf>,
}

pub async fn run(config: &Config, args: CheckScriptArgs) -> Result<Report> {
    let releases = way(args.release, args.release_command, args.release_program)?;
    let renews = way(args.renew, args.renew_command, args.renew_program)?;
    if releases.is_none() && renews.is_none() {
        return Err(Error::usage("nothing is named that releases or renews a lock")
            .hint("onefold locks check-script --release unlock.lua, or --release-command 'DEL {key}'"));
    }
    let server = args.redis.server(config)?;
    let mut bench = Bench::new(&server).await?;
    let mut trials = Vec::new();
    for (act, way) in [(Act::Release, &releases), (Act::Renewal, &renews)] {
        if let Some(way) = way {
            trials.extend(bench.try_out(act, way).await?);
        }
    }
    let is_program = |way: &Option<Way>| matches!(way, Some(Way::Program(_)));
    Ok(tell(&server.label, &trials, is_program(&releases) || is_program(&renews)))
}

fn way(script: Option<PathBuf>, command: Option<String>, program: Option<PathBuf>) -> Result<Option<Way>> {
    match (script, command, program) {
        (Some(path), ..) => match std::fs::read_to_string(&path) {
            Ok(text) => Ok(Some(Way::Script { path, text })),
            Err(e) => Err(Error::usage(format!("cannot read {}: {e}", path.display()))
                .hint("name the file with the Lua script")),
        },
        (_, Some(command), _) => Way::command(&command).map(Some),
        (.., program) => Ok(program.map(Way::Program)),
    }
}

fn tell(label: &str, trials: &[Trial], by_program: bool) -> Report {
    let fails = |act: Act| trials.iter().any(|t| t.act == act && !t.holds);
    let is_safe = trials.iter().all(|t| t.holds);
    let mut table = Table::new([
        Column::exact("TRIED"),
        Column::exact("ON"),
        Column::prose("AFTERWARDS"),
        Column::exact(""),
    ]);
    for trial in trials {
        let act = match trial.act {
            Act::Release => "release",
            Act::Renewal => "renewal",
        };
        let verdict = if trial.holds { "ok" } else { "WRONG" };
        table.row([act, trial.on, &trial.found, verdict].map(str::to_owned));
    }
    let caveat = by_program.then_some(OF_PROGRAMS);
    let json = json!({ "redis": label, "trials": trials, "is_safe": is_safe, "caveat": caveat });
    let mut report = Report::new(json).title(format!("Locks on redis {label}")).table(table);
    if is_safe {
        report = report.line("It leaves the next holder's lock alone.");
    }
    if trials.iter().any(|t| t.act == Act::Renewal) {
        report = report.line(format!("A lease is as asked within {TOLERANCE_MS} ms."));
    }
    if let Some(caveat) = caveat {
        report = report.line(caveat);
    }
    for (act, script) in [(Act::Release, SAFE_RELEASE), (Act::Renewal, SAFE_RENEWAL)] {
        if fails(act) {
            let what = if act == Act::Release { "released" } else { "renewed" };
            report = report.title(format!("How a lock is {what} in one step")).verbatim(script.trim_end());
        }
    }
    if is_safe { report } else { report.exit(Exit::Violations) }
}
