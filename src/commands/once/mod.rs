//! `onefold once`: one effect for a key, however often its command is run.

mod list;
mod settle;
mod show;

use std::ffi::OsString;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::{now, worker};
use crate::config::Config;
use crate::core::idempotency::{Archived, KeyRecord, Named, RequestDigest, Retention};
use crate::core::ids::{IdempotencyKey, TenantId};
use crate::core::output::{KEPT_TAIL, Output, Part};
use crate::core::time::{Span, Timestamp};
use crate::error::{Error, Exit, Result};
use crate::execute::child::Echo;
use crate::execute::once::{Answer, Once, Request};
use crate::report::{Block, Report, pass_on, print_note};
use crate::store::idempotency::Holder;
use crate::store::{Places, Store};

/// Run a command at most once for a key, from any number of machines; a repeat gives its result again
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    override_usage = "onefold once --key KEY [OPTIONS] -- COMMAND…\n       onefold once list|show|settle",
    after_help = "Examples:
  onefold once --key incident-2014/refund-O-502 -- ./refund.sh O-502
  onefold once --key refund-O-502 --query './refunded.sh O-502' \\
      --timeout 2m -- ./refund.sh O-502
  onefold once list --state UNKNOWN
  onefold once settle refund-O-502 --as succeeded \\
      --because 'the provider has it'

What a request does, by the state of its key:
  none yet                     takes it, and runs the command
  PROCESSING, lease live       waits for --wait, then ends with 75
  PROCESSING, lease over       takes it over; if the command may have run, UNKNOWN
  SUCCEEDED, FAILED            prints the first output again, and ends with the first code
  FAILED_RETRYABLE             runs the command again under the next fencing token
  UNKNOWN                      asks --query: 0 it happened, 1 it did not and is run; else 6
  done long ago, and archived  ends with the first code; the output is no longer kept
  any, for another request     refused, and the differing parts are named

The command gets ONEFOLD_KEY and ONEFOLD_FENCING_TOKEN, a process group of its own, and no stdin
but what --stdin passes on. The key belongs to the command, its arguments, the variables of --env
and the input of --stdin; of these, digests alone are kept. `--query` should look at what the effect
leaves behind, and say 1 only where no process of the first run can make it true later.

Ends with the code of the command. What onefold itself has to say stands on stderr as `error: …`
(with --json: as one object), and then it ends with:
  75  another is at the key; or, by --query, what was ended midway did not happen: run it again
   6  it may have happened: settle it by --query or by `once settle`
   7  the key is another request's, or was lost to another process
   2  usage; nothing was run
   1  failure"
)]
pub struct OnceArgs {
    #[command(subcommand)]
    what: Option<What>,
    /// The name of the one effect, such as incident-2014/refund-O-502
    #[arg(long, value_name = "KEY", required = true)]
    key: Option<String>,
    #[arg(long, value_name = "TENANT", default_value = "default")]
    tenant: String,
    /// How long the key is held unless renewed, which is done while the command lives; at least 1s
    #[arg(long, value_name = "SPAN", default_value = "60s")]
    lease: Span,
    /// Wait for so long at most while another is at the key [default: not at all]
    #[arg(long, value_name = "SPAN")]
    wait: Option<Span>,
    /// A shell command that says whether it happened: ends with 0 for yes, and its output is the result; 1 for no
    #[arg(long, value_name = "CMD")]
    query: Option<String>,
    /// How long the result is kept at least, whatever `guard retention` says
    #[arg(long, value_name = "SPAN", default_value = "7d")]
    keep_for: Span,
    /// An order that it is about, for `once list --order`; may be repeated
    #[arg(long = "order", value_name = "ORDER")]
    orders: Vec<String>,
    /// A payment that it is about; may be repeated
    #[arg(long = "payment", value_name = "PAYMENT")]
    payments: Vec<String>,
    /// A variable of the environment that belongs to the request; may be repeated
    #[arg(long = "env", value_name = "NAME")]
    env: Vec<String>,
    /// Read stdin to its end, as part of the request, and pass it to the command
    #[arg(long)]
    stdin: bool,
    /// An exit code of the command after which it may be tried again; may be repeated
    #[arg(long = "retryable-exit", value_name = "CODE", value_parser = clap::value_parser!(u8).range(1..))]
    retryable: Vec<u8>,
    /// End the command after so long; what came of it is then UNKNOWN
    #[arg(long, value_name = "SPAN")]
    timeout: Option<Span>,
    /// Keep nothing of what the command prints, such as secrets; a repeat gives its code alone
    #[arg(long)]
    no_store_output: bool,
    /// The command and its arguments; no shell is between
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

#[derive(Debug, Subcommand)]
enum What {
    List(list::ListArgs),
    Show(show::ShowArgs),
    Settle(settle::SettleArgs),
}

pub async fn run(config: &Config, args: OnceArgs) -> Result<Report> {
    match args.what {
        Some(What::List(args)) => list::run(config, args).await,
        Some(What::Show(args)) => show::run(config, args).await,
        Some(What::Settle(args)) => settle::run(config, args).await,
        None => run_once(config, args).await,
    }
}

/// What the databases' text columns hold at most, in characters.
const LONGEST: usize = 190;

/// A key as it may be kept.
fn key(text: &str) -> Result<IdempotencyKey> {
    must_be_kept("key", text)?;
    Ok(IdempotencyKey::from(text))
}

fn tenant(text: &str) -> Result<TenantId> {
    must_be_kept("tenant", text)?;
    Ok(TenantId::from(text))
}

/// Orders and payments as they may be kept.
fn names(orders: &[String], payments: &[String]) -> Result<Vec<Named>> {
    let mut names = Vec::with_capacity(orders.len() + payments.len());
    for id in orders {
        must_be_kept("order", id)?;
        names.push(Named::order(id));
    }
    for id in payments {
        must_be_kept("payment", id)?;
        names.push(Named::payment(id));
    }
    Ok(names)
}

fn must_be_kept(what: &str, text: &str) -> Result<()> {
    if text.trim().is_empty() || text.chars().count() > LONGEST || text.contains(char::is_control) {
        return Err(Error::usage(format!("{text:?} is no {what}")).hint(format!(
            "1 to {LONGEST} characters, none of them a line break, such as incident-2014/refund-O-502"
        )));
    }
    Ok(())
}

/// The journal's database alone: whether the ledgers answer is no matter here.
async fn open(config: &Config) -> Result<Store> {
    let places = Places::one(&config.places.journal);
    let store = Config { places, ..config.clone() }.open_ready().await?;
    store.must_keep_keys().await?;
    Ok(store)
}

fn holder(config: &Config, lease: Span) -> Holder {
    Holder { actor: config.actor.clone(), owner: worker(config, 0).owner, lease, clock: now }
}

async fn run_once(config: &Config, args: OnceArgs) -> Result<Report> {
    if args.lease < Span::from_secs(1) {
        return Err(Error::usage(format!("a lease of {} is too short to be renewed in time", args.lease))
            .hint("--lease 60s"));
    }
    let (tenant_id, key) = (tenant(&args.tenant)?, key(&args.key.unwrap_or_default())?);
    let names = names(&args.orders, &args.payments)?;
    let stdin = if args.stdin { Some(all_of_stdin()?) } else { None };
    let request = Request {
        digest: digest(&key, &args.command, &args.env, stdin.as_deref()),
        tenant_id,
        key,
        command: args.command,
        stdin,
        keep_for: args.keep_for,
        names,
    };
    let store = open(config).await?;
    let holder = holder(config, args.lease);
    let echo: Echo = if config.format.is_json() { Arc::new(|_, _| ()) } else { Arc::new(pass_on) };
    let once = Once {
        store: &store,
        holder: &holder,
        request: &request,
        query: args.query.as_deref(),
        wait: args.wait,
        timeout: args.timeout,
        retryable: &args.retryable,
        store_output: !args.no_store_output,
        echo,
    };
    told(config, &request, once.run().await?)
}

fn all_of_stdin() -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::io::stdin()
        .read_to_end(&mut bytes)
        .map_err(|e| Error::failure(format!("cannot read stdin: {e}")).hint("nothing was run"))?;
    Ok(bytes)
}

/// A digest of each argument, variable and input that the effect depends on.
fn digest(key: &IdempotencyKey, command: &[OsString], env: &[String], stdin: Option<&[u8]>) -> RequestDigest {
    let mut digest = RequestDigest::default();
    for (at, argument) in command.iter().enumerate() {
        digest = digest.part(key, &format!("argv[{at}]"), Some(argument.as_bytes()));
    }
    let mut names: Vec<&String> = env.iter().collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        let value = std::env::var_os(name);
        digest = digest.part(key, &format!("env {name}"), value.as_ref().map(|value| value.as_bytes()));
    }
    match stdin {
        Some(bytes) => digest.part(key, "stdin", Some(bytes)),
        None => digest,
    }
}

fn told(config: &Config, request: &Request, answer: Answer) -> Result<Report> {
    let key = &request.key;
    match answer {
        Answer::Ran(record) => result(config, "ran", &record),
        Answer::Replayed(record) => result(config, "replayed", &record),
        Answer::Settled(record) => result(config, "settled", &record),
        Answer::Archived(archived) => {
            if !config.quiet && !config.format.is_json() {
                print_note(&format!(
                    "note: {key} is done, archived: {}, last seen {}; its output is no longer kept",
                    archived.state, archived.last_seen
                ));
            }
            let mut report =
                Report::new(archived_as_json(&request.tenant_id, key, &archived, Some("archived")));
            report.code = Some(archived.exit_code.unwrap_or(Exit::Failure.code()));
            Ok(report)
        }
        Answer::DidNotHappen(record) => Err(Error::new(
            Exit::TryAgain,
            format!("the command was ended midway, and the query says that {key} did not happen"),
        )
        .hint("run it again: the key may be tried again")
        .details(&as_json(&record, None))),
        Answer::StillProcessing { holder, left } => Err(Error::new(
            Exit::TryAgain,
            format!("{key} is still being processed by {holder}, whose lease has {left} left"),
        )
        .hint("run it again later, or wait for it with --wait 2m")
        .details(&json!({ "key": key, "holder": holder, "lease_left_us": left }))),
        Answer::Unknown { record, why } => {
            let query = if why.contains("--query") { "give a --query that can tell, or " } else { "" };
            Err(Error::new(Exit::Undecided, format!("{key} may have happened, and is not run again: {why}"))
                .hint(format!(
                    "{query}find out and say: onefold once settle {key} --as succeeded|failed|retryable --because TEXT"
                ))
                .details(&as_json(&record, None)))
        }
        Answer::Differs(differing) => Err(Error::refused(match &differing[..] {
            [] => format!("{key} is the key of another request, of which the whole digest alone is kept"),
            parts => format!("{key} is the key of another request, which differs in {}", parts.join(", ")),
        })
        .hint(format!("another effect needs another key; `onefold once show {key}` tells of this one"))
        .details(&json!({ "key": key, "differing": differing }))),
    }
}

/// A result, given for the first time or again: on a first run its output has been passed on already.
fn result(config: &Config, how: &str, record: &KeyRecord) -> Result<Report> {
    let output = output(record)?;
    let mut report = Report::new(as_json(record, Some(how)));
    report.code = Some(record.exit_code.unwrap_or(Exit::Failure.code()));
    if config.format.is_json() {
        return Ok(report);
    }
    let Some(output) = output else {
        if !config.quiet && record.retention != Retention::Hot {
            let known_by = record.result_ref.as_ref().map(|known| format!(", which was {known}"));
            print_note(&format!(
                "note: {} is done; its output{} is no longer kept",
                record.key,
                known_by.unwrap_or_default()
            ));
        }
        return Ok(report);
    };
    let is_new = how == "ran";
    for (name, stream) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
        let note = match stream.kept {
            Part::Tail => format!(
                "of the {} bytes on {name} the last {KEPT_TAIL} are kept; SHA-256 of all: {}",
                stream.bytes,
                stream.sha256.as_deref().unwrap_or_default()
            ),
            Part::None if stream.bytes > 0 && !is_new => {
                format!("the {} bytes on {name} were not kept", stream.bytes)
            }
            Part::All | Part::None => continue,
        };
        if !config.quiet {
            print_note(&format!("note: {note}"));
        }
    }
    if is_new {
        return Ok(report);
    }
    let body = |stream: &crate::core::output::Kept| stream.body().ok_or_else(|| damaged(record));
    Ok(report.block(Block::Raw { stdout: body(&output.stdout)?, stderr: body(&output.stderr)? }))
}

/// What was printed, as far as it is kept; `None` where a person settled it.
fn output(record: &KeyRecord) -> Result<Option<Output>> {
    let parsed = record.result.as_deref().map(serde_json::from_str).transpose();
    parsed.map_err(|_| damaged(record))
}

fn damaged(record: &KeyRecord) -> Error {
    Error::failure(format!("the stored result of {} cannot be read", record.key))
        .hint(format!("its state is {}; nothing is run again", record.state))
}

/// A record as programs get it; with what became of the request, if it is an answer to one.
fn as_json(record: &KeyRecord, how: Option<&str>) -> Value {
    let mut value = json!({
        "tenant_id": record.tenant_id,
        "key": record.key,
        "state": record.state,
        "exit_code": record.exit_code,
        "attempts": record.attempts,
        "token": record.token,
        "version": record.version,
        "owner": record.owner,
        "lease_until": record.lease_until,
        "may_have_run": record.may_have_run,
        "request": { "digest": record.digest.whole(), "parts": record.digest },
        "result_ref": record.result_ref,
        "output": record.result.as_deref().and_then(|text| serde_json::from_str::<Value>(text).ok()),
        "note": record.note,
        "first_seen": record.first_seen,
        "last_seen": record.last_seen,
        "keep_for_us": record.keep_for,
        "retention": record.retention,
    });
    if let Some(how) = how {
        value["how"] = Value::from(how);
    }
    value
}

/// What is left of an archived key as programs get it.
fn archived_as_json(
    tenant_id: &TenantId,
    key: &IdempotencyKey,
    archived: &Archived,
    how: Option<&str>,
) -> Value {
    let mut value = json!({
        "tenant_id": tenant_id,
        "key": key,
        "state": archived.state,
        "exit_code": archived.exit_code,
        "request": { "digest": archived.digest },
        "result_ref": archived.result_ref,
        "output": null,
        "first_seen": archived.first_seen,
        "last_seen": archived.last_seen,
        "archived_at": archived.archived_at,
        "retention": Retention::Archive,
    });
    if let Some(how) = how {
        value["how"] = Value::from(how);
    }
    value
}

/// A state in words, with what a lease makes of it.
fn standing(record: &KeyRecord, now: Timestamp) -> String {
    use crate::core::idempotency::KeyState;
    match record.state {
        KeyState::Processing if now < record.lease_until => {
            format!("{}, lease {} left", record.state, record.lease_until.since(now))
        }
        KeyState::Processing => format!("{}, lease over", record.state),
        state => state.to_string(),
    }
}
