//! Runs a command at most once for an idempotency key, from any number of machines: take the key, say that
//! it may have run, run, record. Whatever is killed at whatever moment, a command that may have run is
//! not run again before a query or a person has said that it did not happen.

use std::ffi::OsString;
use std::pin::pin;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use rustix::process::Signal;

use super::child::{self, Echo, Ended, Running};
use crate::core::idempotency::{
    Archived, Decision, Ending, KeyRecord, KeyState, Known, Named, RequestDigest, decide, decide_archived,
    ending,
};
use crate::core::ids::{IdempotencyKey, TenantId};
use crate::core::output::{Capture, Output, Stream};
use crate::core::time::Span;
use crate::error::{Error, Exit, Result};
use crate::signals::Signals;
use crate::store::Store;
use crate::store::idempotency::{Finished, Hold, Holder, Outcome};

/// How long a command that is to stop may take before it is killed.
const GRACE: Duration = Duration::from_secs(5);
/// How long a query may take.
const QUERY_LIMIT: Duration = Duration::from_secs(60);
/// For how long at least an end is tried to be recorded, where the database does not answer.
const RECORD_LIMIT: Duration = Duration::from_secs(30);
/// How often a key may be lost to others in the very moment of taking it.
const TRIES: u32 = 50;
/// How often a waiting request looks again: first and at most.
const PAUSES: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(500)];

/// What is to happen once.
#[derive(Debug)]
pub struct Request {
    pub tenant_id: TenantId,
    pub key: IdempotencyKey,
    pub digest: RequestDigest,
    /// A program and its arguments; no shell is between.
    pub command: Vec<OsString>,
    /// What the command reads; nothing, where there is none.
    pub stdin: Option<Vec<u8>>,
    pub keep_for: Span,
    /// The orders and payments that it is about.
    pub names: Vec<Named>,
}

/// Who runs a request, and how.
pub struct Once<'a> {
    pub store: &'a Store,
    pub holder: &'a Holder,
    pub request: &'a Request,
    /// A shell command that says whether it happened: 0 for yes, and then its output is the result; 1 for no.
    pub query: Option<&'a str>,
    /// For how long at most another's run is waited for.
    pub wait: Option<Span>,
    /// How long the command may run.
    pub timeout: Option<Span>,
    /// Exit codes after which it may be tried again.
    pub retryable: &'a [u8],
    pub store_output: bool,
    pub echo: Echo,
}

/// How a request was answered.
#[must_use]
#[derive(Clone, Debug)]
pub enum Answer {
    /// It was run now; its output has been passed on.
    Ran(KeyRecord),
    /// It was run before.
    Replayed(KeyRecord),
    /// It was run long ago, and a fingerprint is left of it.
    Archived(Archived),
    /// The query said that it had happened.
    Settled(KeyRecord),
    /// It was run now, its end is not known, and the query said that it did not happen.
    DidNotHappen(KeyRecord),
    StillProcessing {
        holder: String,
        left: Span,
    },
    /// It may have happened, and nobody could say.
    Unknown {
        record: KeyRecord,
        why: String,
    },
    Differs(Vec<String>),
}

/// What a query says.
enum Word {
    Happened(Output),
    DidNot,
    Unclear(String),
}

impl Once<'_> {
    /// # Errors
    /// Usage, where the command is not to be found; refused, where the key was lost to another; failure,
    /// where the database does not answer or a signal ended the waiting: then nothing was run.
    pub async fn run(&self) -> Result<Answer> {
        let mut signals = Signals::listen()?;
        let began = Instant::now();
        let mut pause = PAUSES[0];
        let Request { tenant_id, key, digest, keep_for, names, .. } = self.request;
        let mut tries = 0;
        loop {
            tries += 1;
            if tries > TRIES {
                return Err(Error::failure(format!(
                    "others keep taking {key} in the very moment that it is free"
                ))
                .hint("nothing was run: run it again"));
            }
            let (known, now) = self.store.known_key(tenant_id, key).await?.unzip();
            let (record, archived) = match known {
                Some(Known::Record(record)) => (Some(record), None),
                Some(Known::Archived(archived)) => (None, Some(archived)),
                None => (None, None),
            };
            let decision = match &archived {
                Some(archived) => decide_archived(archived, digest),
                None => decide(record.as_ref(), digest, now.unwrap_or_else(self.holder.clock)),
            };
            if now.is_some() && !matches!(decision, Decision::Refuse { .. }) {
                self.store.name_key((tenant_id, key), names).await?;
            }
            match decision {
                Decision::Take => {
                    self.must_be_runnable()?;
                    let taken =
                        self.store.take_key(self.holder, (tenant_id, key), digest, *keep_for, names).await?;
                    if let Some(hold) = taken {
                        return self.carry_out(hold, &mut signals).await;
                    }
                }
                Decision::StillProcessing { holder, left } => {
                    let to_wait =
                        self.wait.map_or(Duration::ZERO, Span::duration).saturating_sub(began.elapsed());
                    if to_wait.is_zero() {
                        return Ok(Answer::StillProcessing { holder, left });
                    }
                    tokio::select! {
                        () = tokio::time::sleep(pause.min(to_wait)) => {}
                        _ = signals.next() => return Err(interrupted()),
                    }
                    pause = (pause * 2).min(PAUSES[1]);
                    tries = 0;
                }
                Decision::Refuse { differing } => return Ok(Answer::Differs(differing)),
                Decision::TakeOver | Decision::Retry => {
                    let Some(record) = record else { continue };
                    self.must_be_runnable()?;
                    if let Some(hold) =
                        self.store.take_key_again(self.holder, &record, KeyState::Processing, None).await?
                    {
                        return self.carry_out(hold, &mut signals).await;
                    }
                }
                Decision::FenceOff => {
                    let Some(record) = record else { continue };
                    let why = format!("the lease of {} ran out while it ran", record.owner);
                    // Whoever fenced it off, it is UNKNOWN when it is read again.
                    let _ = self
                        .store
                        .take_key_again(self.holder, &record, KeyState::Unknown, Some(&why))
                        .await?;
                }
                Decision::ReturnResult => {
                    let Some(record) = record else { continue };
                    self.store.key_was_seen(tenant_id, key).await?;
                    return Ok(Answer::Replayed(record));
                }
                Decision::ReturnCode => {
                    let Some(archived) = archived else { continue };
                    self.store.archived_key_was_seen(tenant_id, key).await?;
                    return Ok(Answer::Archived(archived));
                }
                Decision::SettleFirst => {
                    let Some(record) = record else { continue };
                    match self.ask(&record, &mut signals).await {
                        Word::Unclear(why) => return Ok(unknown(record, &why)),
                        Word::Happened(output) => {
                            if self.settle(&record, self.happened(&output)?).await? {
                                return self.there().await.map(Answer::Settled);
                            }
                        }
                        Word::DidNot => {
                            self.must_be_runnable()?;
                            let why = Some("the query says that it did not happen");
                            if let Some(hold) = self
                                .store
                                .take_key_again(self.holder, &record, KeyState::Processing, why)
                                .await?
                            {
                                return self.carry_out(hold, &mut signals).await;
                            }
                        }
                    }
                }
            }
        }
    }

    /// Runs the command under a hold, and records how it ended.
    async fn carry_out(&self, hold: Hold, signals: &mut Signals) -> Result<Answer> {
        let asked = Instant::now();
        let hold = self.store.start_key(&hold, self.holder.lease).await?.ok_or_else(|| self.replaced())?;
        let deadline = asked + self.usable();
        // What was held up for so long, or is to stop, begins nothing: another may hold the key by now.
        let not_begun = if signals.next().now_or_never().is_some() {
            Some(interrupted())
        } else if Instant::now() >= deadline {
            Some(
                Error::refused("this process was held up for longer than its lease, and ran nothing")
                    .hint("run it again, with a longer --lease where the machine is slow"),
            )
        } else {
            None
        };
        if let Some(error) = not_begun {
            return Err(self.not_begun(&hold, error).await);
        }
        let mut running = match self.start(&hold) {
            Ok(running) => running,
            Err(error) => return Err(self.not_begun(&hold, error).await),
        };
        let (end, is_replaced) = self.watch(&mut running, &hold, deadline, signals).await;
        if is_replaced {
            return Err(self.replaced());
        }
        let output = running.output();
        let output = if self.store_output { output } else { forgotten(&output) };
        let state = ending(end, self.retryable);
        let outcome = Outcome {
            state,
            exit_code: match end {
                Ending::Exited(code) => Some(code),
                _ => None,
            },
            result_ref: reference(&output),
            result: Some(as_json(&output)?),
            note: in_words(end),
        };
        self.record(&hold, &outcome).await?;
        let record = self.there().await?;
        if state != KeyState::Unknown {
            return Ok(Answer::Ran(record));
        }
        match self.ask(&record, signals).await {
            Word::Happened(output) if self.settle(&record, self.happened(&output)?).await? => {
                self.there().await.map(Answer::Settled)
            }
            Word::DidNot if self.settle(&record, did_not()).await? => {
                self.there().await.map(Answer::DidNotHappen)
            }
            Word::Happened(_) | Word::DidNot => {
                Err(Error::refused(format!("another settled {} in this very moment", self.request.key))
                    .hint("run it again: the answer is there"))
            }
            Word::Unclear(why) => Ok(unknown(record, &why)),
        }
    }

    fn start(&self, hold: &Hold) -> Result<Running> {
        let (program, arguments) = self.request.command.split_first().ok_or_else(|| {
            Error::usage("there is no command to run").hint("onefold once --key KEY -- COMMAND")
        })?;
        let mut command = Command::new(program);
        command.args(arguments);
        self.tell(&mut command, hold.token);
        child::start(command, self.request.stdin.clone(), &self.echo)
    }

    /// What a command is told of its key: whatever it changes elsewhere can be guarded by the token.
    fn tell(&self, command: &mut Command, token: i64) {
        command.env("ONEFOLD_KEY", self.request.key.as_str()).env("ONEFOLD_FENCING_TOKEN", token.to_string());
    }

    /// Renews the lease while the command lives, hands signals on, and ends it when its time is over or its
    /// lease is lost; how it ended, and whether another holds the key.
    async fn watch(
        &self,
        running: &mut Running,
        hold: &Hold,
        mut deadline: Instant,
        signals: &mut Signals,
    ) -> (Ending, bool) {
        let lease = self.holder.lease.duration();
        let group = running.group;
        let mut timeout_at = self.timeout.map(|limit| Instant::now() + limit.duration());
        let mut kill_at = None;
        let (mut is_late, mut is_lost, mut is_replaced) = (false, false, false);
        let mut renewal = Box::pin(self.renewal(hold, lease / 3));
        let mut end = pin!(running.end());
        let ended = loop {
            tokio::select! {
                biased;
                ended = &mut end => break ended,
                () = until(Some(deadline)), if !is_lost => {
                    is_lost = true;
                    group.kill();
                }
                () = until(timeout_at) => {
                    (timeout_at, is_late) = (None, true);
                    kill_at = Some(Instant::now() + GRACE);
                    group.signal(Signal::TERM);
                }
                () = until(kill_at) => {
                    kill_at = None;
                    group.kill();
                }
                heard = signals.next() => group.signal(heard),
                (asked, renewed) = &mut renewal, if !is_lost => {
                    let next = match renewed {
                        Ok(true) => {
                            deadline = asked + self.usable();
                            lease / 3
                        }
                        Ok(false) => {
                            (is_lost, is_replaced) = (true, true);
                            group.kill();
                            lease
                        }
                        Err(_) => (lease / 10).min(Duration::from_secs(1)),
                    };
                    renewal = Box::pin(self.renewal(hold, next));
                }
            }
        };
        if is_late {
            // What it left behind is not to go on, either.
            group.kill();
        }
        let end = match ended {
            _ if is_late => Ending::TimedOut,
            Ok(Ended::Exited(code)) => Ending::Exited(code),
            Ok(Ended::Killed(_)) if is_lost => Ending::LeaseLost,
            Ok(Ended::Killed(signal)) => Ending::Killed(signal),
            Err(_) => Ending::Killed(0),
        };
        (end, is_replaced)
    }

    /// Renews the lease after a pause; when that was asked, and what came of it.
    async fn renewal(&self, hold: &Hold, pause: Duration) -> (Instant, Result<bool>) {
        tokio::time::sleep(pause).await;
        let asked = Instant::now();
        (asked, self.store.renew_key(hold, self.holder.lease).await)
    }

    /// How much of a lease is used, counted from before it was asked for: it is over here before it is over
    /// in the database.
    fn usable(&self) -> Duration {
        self.holder.lease.duration() * 9 / 10
    }

    /// Records an end, for as long as it takes the database to answer.
    async fn record(&self, hold: &Hold, outcome: &Outcome) -> Result<()> {
        let give_up_at = Instant::now() + self.holder.lease.duration().max(RECORD_LIMIT);
        loop {
            match self.store.finish_key(self.holder, hold, outcome).await {
                Ok(Finished::Recorded) => return Ok(()),
                Ok(Finished::Replaced) => return Err(self.replaced()),
                Err(_) if Instant::now() < give_up_at => tokio::time::sleep(PAUSES[1]).await,
                Err(error) => {
                    let end = match outcome.exit_code {
                        Some(code) => format!("the command ended with code {code}"),
                        None => "the command was ended".to_owned(),
                    };
                    let what = format!("{end}, and that could not be recorded: {}", error.message);
                    return Err(Error::new(Exit::Undecided, what).hint(self.how_to_settle()));
                }
            }
        }
    }

    /// Gives a key back under which nothing was begun; the error that says why.
    async fn not_begun(&self, hold: &Hold, error: Error) -> Error {
        let outcome = Outcome::bare(KeyState::FailedRetryable, format!("not begun: {}", error.message));
        match self.record(hold, &outcome).await {
            Ok(()) if error.hint.is_some() => error,
            Ok(()) => error.hint("nothing was run; the key may be tried again"),
            Err(other) => other,
        }
    }

    /// Asks the query whether it happened.
    async fn ask(&self, record: &KeyRecord, signals: &mut Signals) -> Word {
        let Some(query) = self.query else {
            return Word::Unclear("there is no --query to ask".to_owned());
        };
        let mut command = Command::new("sh");
        command.arg("-c").arg(query);
        self.tell(&mut command, record.token);
        let echo = self.echo.clone();
        // Its stdout becomes the result, and is printed as one.
        let echo: Echo = Arc::new(move |stream, piece: &[u8]| match stream {
            Stream::Stdout => {}
            Stream::Stderr => echo(stream, piece),
        });
        let mut running = match child::start(command, None, &echo) {
            Ok(running) => running,
            Err(error) => return Word::Unclear(format!("the query {error}")),
        };
        let group = running.group;
        let ended = tokio::select! {
            ended = running.end() => ended,
            () = tokio::time::sleep(QUERY_LIMIT) => {
                group.kill();
                return Word::Unclear(format!("the query did not end within {} s", QUERY_LIMIT.as_secs()));
            }
            _ = signals.next() => {
                group.kill();
                return Word::Unclear("the query was interrupted".to_owned());
            }
        };
        match ended {
            Ok(Ended::Exited(0)) => Word::Happened(running.output()),
            Ok(Ended::Exited(1)) => Word::DidNot,
            Ok(Ended::Exited(code)) => {
                Word::Unclear(format!("the query ended with code {code}, which says neither"))
            }
            Ok(Ended::Killed(signal)) => Word::Unclear(format!("the query was ended by signal {signal}")),
            Err(error) => Word::Unclear(error.message),
        }
    }

    async fn settle(&self, record: &KeyRecord, outcome: Outcome) -> Result<bool> {
        self.store.settle_key(self.holder, record, &outcome).await
    }

    /// What the query says is the result.
    fn happened(&self, output: &Output) -> Result<Outcome> {
        let printed = Output { stdout: output.stdout.clone(), stderr: Capture::default().kept() };
        let output = if self.store_output { printed } else { forgotten(&printed) };
        Ok(Outcome {
            state: KeyState::Succeeded,
            exit_code: Some(0),
            result_ref: reference(&output),
            result: Some(as_json(&output)?),
            note: Some("the query says that it happened".to_owned()),
        })
    }

    /// The record as it is now.
    async fn there(&self) -> Result<KeyRecord> {
        let Request { tenant_id, key, .. } = self.request;
        let there = self.store.key(tenant_id, key).await?;
        there.map(|(record, _)| record).ok_or_else(|| Error::failure(format!("the record of {key} is gone")))
    }

    fn must_be_runnable(&self) -> Result<()> {
        match self.request.command.first() {
            Some(program) if child::is_runnable(program) => Ok(()),
            program => {
                let name = program.map(|p| p.to_string_lossy().into_owned()).unwrap_or_default();
                Err(Error::usage(format!("there is no program {name:?} that can be run"))
                    .hint("nothing was run and the key is as it was; a script needs ./ before its name and chmod +x"))
            }
        }
    }

    fn replaced(&self) -> Error {
        Error::refused(format!(
            "another process took {} over when the lease of this one was over; nothing of this one is recorded",
            self.request.key
        ))
        .hint(format!("see who has it with `onefold once show {}`", self.request.key))
    }

    fn how_to_settle(&self) -> String {
        format!(
            "find out whether it happened, then: onefold once settle {} --as succeeded|failed --because TEXT",
            self.request.key
        )
    }
}

fn interrupted() -> Error {
    Error::failure("interrupted; nothing was run").hint("run it again: the key may be tried again")
}

/// Why nobody knows, and why that could not be learned.
fn unknown(record: KeyRecord, unclear: &str) -> Answer {
    let why = record.note.iter().map(String::as_str).chain([unclear]).collect::<Vec<_>>().join("; ");
    Answer::Unknown { record, why }
}

fn did_not() -> Outcome {
    Outcome::bare(KeyState::FailedRetryable, "the query says that it did not happen")
}

fn forgotten(output: &Output) -> Output {
    Output { stdout: output.stdout.forgotten(), stderr: output.stderr.forgotten() }
}

fn reference(output: &Output) -> Option<String> {
    output.stdout.sha256.as_ref().map(|digest| format!("sha256:{digest}"))
}

fn as_json(output: &Output) -> Result<String> {
    serde_json::to_string(output).map_err(|e| Error::failure(format!("cannot write JSON: {e}")))
}

/// Why nobody knows how it ended; `None` where it is known.
fn in_words(end: Ending) -> Option<String> {
    match end {
        Ending::Exited(code @ 129..=159) => {
            Some(format!("the command ended with code {code}, as a shell does whose command was killed"))
        }
        Ending::Exited(_) => None,
        Ending::Killed(signal) => Some(format!("the command was ended by signal {signal}")),
        Ending::TimedOut => Some("the command took longer than --timeout".to_owned()),
        Ending::LeaseLost => Some("the lease could not be renewed, and the command was killed".to_owned()),
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}
