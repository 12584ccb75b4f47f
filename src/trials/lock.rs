//! How code releases and renews a lock, tried on locks of our own: one that it holds, one that the next
//! holder has by now, and none.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use redis::{Cmd, RedisError, Value};
use serde::Serialize;
use serde_json::json;

use super::{Connection, Server, failed};
use crate::core::locks::Event;
use crate::core::time::Span;
use crate::error::{Error, Result};
use crate::program::{self, Failure};
use crate::signals::Signals;

/// The lease of a lock of its own, and the one that it is renewed to, in milliseconds. They lie so far apart that a
/// lease which was renewed is known from one that was not however long the code took.
const OWN_LEASE_MS: u64 = 15_000;
const RENEWED_MS: u64 = 30_000;
/// What is left of the next holder's lease, in milliseconds: more than code asks for, as much as it asks for, as much as
/// is left of its own lock, and less than all of them. So code that looks at the lease and not at whose it is acts on one
/// of them as it does on its own. The least is more than a program may take, so that it cannot end by itself meanwhile.
const THEIR_LEASES_MS: [u64; 4] = [47_311, RENEWED_MS, OWN_LEASE_MS, 12_011];
/// What is left of it where a script or a command is tried, which take milliseconds: code may hold a lease that is about
/// to end to be nobody's.
const SHORT_LEASE_MS: u64 = 2_011;
/// For how long a lease that a release leaves is waited out: some let a lock end and do not delete it.
const WAITED_MS: u64 = 1_000;
/// How far a lease may be from what was asked for: some count it in seconds.
pub const TOLERANCE_MS: u64 = 1_000;
/// How far Redis and this process may be apart in counting how long something took.
const ROUNDING_MS: u64 = 100;
/// How long a program of the site may take.
const LIMIT: Duration = Duration::from_secs(10);
/// Who let its lease end, and who holds the lock by now.
const MINE: &str = "onefold-trial:holder-a";
const THEIRS: &str = "onefold-trial:holder-b";
/// Other values that the next holder may have, and how they differ: code that does not compare the whole of it takes
/// them for its own.
const LIKE_MINE: [(&str, &str); 3] = [
    ("its value differs in its first letter only, a capital one", "Onefold-trial:holder-a"),
    ("its value begins as the first holder's does", "onefold-trial:holder-a1"),
    ("the first holder's value begins as its does", "onefold-trial:holder-"),
];
/// How often Redis is asked to stop a script: it hears of that only when it finds the script slow.
const KILLS: usize = 3;
/// Errors by which a server says how it is, whatever it was asked: the code, and what the text has in small letters. A
/// script may answer with an error of the same code.
const OF_SERVER: [(&str, &[&str]); 8] = [
    ("BUSY", &["busy running a"]),
    ("CLUSTERDOWN", &["cluster is down", "hash slot not served"]),
    ("LOADING", &["loading the dataset"]),
    ("MASTERDOWN", &["link with master is down", "link with primary is down"]),
    ("MISCONF", &["configured to save", "errors writing to the aof"]),
    ("NOPERM", &["no permissions", "can't run this command"]),
    ("OOM", &["used memory"]),
    ("READONLY", &["write against a read only"]),
];
/// Commands that touch the key they name and no other.
const OF_ONE_KEY: [&str; 8] = ["DEL", "UNLINK", "DELEX", "GETDEL", "SET", "GETEX", "EXPIRE", "PEXPIRE"];

/// What releases a lock safely: it deletes the key if it still holds the owner's value, in one step.
pub const SAFE_RELEASE: &str = "\
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0
";

/// What renews a lock safely.
pub const SAFE_RENEWAL: &str = "\
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 0
";

/// How the code does it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// A script: KEYS\[1\] is the lock's key, ARGV\[1\] the owner's value, ARGV\[2\] the lease in milliseconds.
    Script { path: PathBuf, text: String },
    /// One command of Redis, its words.
    Command(Vec<String>),
    /// A program, with key, value and lease_ms as a JSON object on its stdin.
    Program(PathBuf),
}

impl Way {
    /// A command of Redis with `{key}`, `{value}` and `{lease_ms}` in it.
    ///
    /// # Errors
    /// Usage, for one that could touch another key than the trial's.
    pub fn command(text: &str) -> Result<Self> {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        let known = words.first().is_some_and(|w| OF_ONE_KEY.contains(&w.to_uppercase().as_str()));
        if !known {
            return Err(Error::usage(format!("{text:?} is none of {}", OF_ONE_KEY.join(", ")))
                .hint("whatever is more than one of these commands is a script or a program"));
        }
        if words.get(1).map(String::as_str) != Some("{key}")
            || words.iter().filter(|w| *w == "{key}").count() > 1
        {
            return Err(Error::usage(format!("{text:?} does not name {{key}} as its one key"))
                .hint("'DEL {key}'; {value} is the owner's, {lease_ms} the lease"));
        }
        let deletes = ["DEL", "UNLINK"].iter().any(|name| words[0].eq_ignore_ascii_case(name));
        if deletes && words.len() > 2 {
            return Err(Error::usage(format!("{text:?} names more than one key")).hint("'DEL {key}'"));
        }
        Ok(Self::Command(words))
    }

    /// Runs it once.
    ///
    /// # Errors
    /// Usage, where it cannot be run or does not end; failure, where Redis cannot be asked.
    async fn run(&self, lines: &mut Lines, key: &str) -> Result<Ran> {
        let lease = RENEWED_MS.to_string();
        match self {
            Self::Script { text, .. } => {
                let mut command = redis::cmd("EVAL");
                command.arg(text).arg(1).arg(key).arg(MINE).arg(&lease);
                match lines.redis.try_ask::<Value>(&command).await {
                    Err(e) if e.is_timeout() => Err(self.stopped(lines).await),
                    answered => self.told(answered),
                }
            }
            Self::Command(words) => {
                let mut command = Cmd::new();
                for word in words {
                    let word = word.replace("{key}", key).replace("{value}", MINE);
                    command.arg(word.replace("{lease_ms}", &lease));
                }
                self.told(lines.redis.try_ask::<Value>(&command).await)
            }
            Self::Program(path) => {
                let input = json!({ "key": key, "value": MINE, "lease_ms": RENEWED_MS });
                let hint = "name a program that gets {\"key\": …, \"value\": …, \"lease_ms\": …} on its stdin and ends \
                            with 0";
                match program::run(&[path.display().to_string()], &input, LIMIT).await {
                    Ok(_) => Ok(Ran::Said(Value::Nil, None)),
                    Err(Failure::NotStarted(why)) => Err(Error::usage(why).hint(hint)),
                    Err(Failure::Late(why)) => Err(Error::failure(why).hint(hint)),
                    Err(Failure::Broke(why)) => Ok(Ran::Threw(Error::failure(why).hint(hint))),
                }
            }
        }
    }

    /// What a script or a command was answered. An error of Redis about it is an answer, too.
    fn told(&self, answered: Result<Value, RedisError>) -> Result<Ran> {
        let error = match answered {
            Ok(value) => {
                let told = is_done(&value);
                return Ok(Ran::Said(value, told));
            }
            Err(error) => error,
        };
        if !is_of_code(&error) {
            return Err(failed("redis", &error));
        }
        // As the code said it: the client has words of its own for some codes.
        let said = match (error.code(), error.detail()) {
            (Some(code), Some(detail)) => format!("{code} {detail}"),
            _ => error.to_string(),
        };
        Ok(Ran::Threw(match self {
            Self::Script { path, .. } => {
                let line = line_of(&said).map(|line| format!(":{line}")).unwrap_or_default();
                Error::usage(format!("{}{line}: {said}", path.display())).hint(
                    "KEYS[1] is the lock's key, ARGV[1] the owner's value, ARGV[2] the lease in milliseconds",
                )
            }
            Self::Command(words) => Error::usage(format!("{:?}: {said}", words.join(" "))).hint(
                "{key} is the lock's key, {value} the owner's value, {lease_ms} the lease in milliseconds",
            ),
            Self::Program(path) => Error::failure(format!("{}: {said}", path.display())),
        }))
    }

    /// Stops a script that does not end, for nobody else is served meanwhile. Its key was set a moment before, so that
    /// it is no other client's script that runs.
    async fn stopped(&self, lines: &mut Lines) -> Error {
        let Self::Script { path, .. } = self else { return Error::failure("redis: no answer") };
        let late = format!("{}: the script did not end in time", path.display());
        for _ in 0..KILLS {
            let kill = lines.rescue.try_ask::<Value>(redis::cmd("SCRIPT").arg("KILL")).await;
            match kill {
                Ok(_) => {
                    return Error::usage(format!("{late}, and was stopped (SCRIPT KILL)"))
                        .hint("has it a loop that goes on for ever?");
                }
                Err(e) if e.code() == Some("NOTBUSY") => {
                    return Error::usage(format!("{late}; it has ended by now"))
                        .hint("a lock's script must take milliseconds: nobody else is served meanwhile");
                }
                Err(e) if e.code() == Some("UNKILLABLE") => {
                    return Error::usage(format!(
                        "{late}, and cannot be stopped, since it has written: Redis is busy"
                    ))
                    .hint("`redis-cli SHUTDOWN NOSAVE` ends it, and loses what is not saved");
                }
                Err(_) => {}
            }
        }
        Error::usage(format!("{late}, and Redis does not answer the order to stop it"))
            .hint("redis-cli SCRIPT KILL, once more")
    }
}

/// What code did by its own account.
enum Ran {
    /// It answered this; whether that says that something was done, `None` where it does not say. A program answers
    /// nothing.
    Said(Value, Option<bool>),
    /// It ended with an error: on a lock of its own it is broken, on another it says that it is not its own.
    Threw(Error),
}

/// Whether an answer says that something was done: a number above 0, OK, true, or a table that begins so.
fn is_done(value: &Value) -> Option<bool> {
    let of_text = |text: &str| text.parse::<i64>().map_or_else(|_| Event::is_done(text), |n| Some(n > 0));
    match value {
        Value::Int(n) => Some(*n > 0),
        Value::Boolean(yes) => Some(*yes),
        Value::Okay => Some(true),
        // What Lua calls false or nil.
        Value::Nil => Some(false),
        Value::SimpleString(text) => of_text(text),
        Value::BulkString(bytes) => of_text(std::str::from_utf8(bytes).ok()?),
        Value::Array(values) => is_done(values.first()?),
        _ => None,
    }
}

/// Whether an error is the code's, and not one of the way to Redis.
fn is_of_code(error: &RedisError) -> bool {
    let said = error.detail().unwrap_or_default().to_lowercase();
    let is_of_server = |code: &str| {
        OF_SERVER.iter().any(|(name, texts)| *name == code && texts.iter().any(|text| said.contains(text)))
    };
    error.code().is_some_and(|code| !is_of_server(code))
}

/// The line of a script that an error of Redis names.
fn line_of(error: &str) -> Option<u64> {
    let (_, rest) = error.split_once("user_script:")?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// What is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Act {
    Release,
    Renewal,
}

impl Act {
    const fn done(self) -> &'static str {
        match self {
            Self::Release => "released",
            Self::Renewal => "renewed",
        }
    }
}

/// One trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Trial {
    pub act: Act,
    /// On whose lock.
    pub on: &'static str,
    pub expected: &'static str,
    pub found: String,
    /// Whether the code was told that it was done; `null` where it was told neither.
    pub told_done: Option<bool>,
    pub holds: bool,
}

/// Where code is tried.
pub struct Bench<'s> {
    server: &'s Server,
    lines: Lines,
    /// Whoever interrupts a trial leaves neither a script that runs nor a key.
    signals: Signals,
}

/// The ways to Redis.
struct Lines {
    redis: Connection,
    /// Made before anything runs: while a script does, nobody is let in.
    rescue: Connection,
}

impl<'s> Bench<'s> {
    /// # Errors
    /// As [`Server::connect`].
    pub async fn new(server: &'s Server) -> Result<Self> {
        let lines = Lines { redis: server.connect().await?, rescue: server.connect().await? };
        Ok(Self { server, lines, signals: Signals::listen()? })
    }

    /// Tries a release or a renewal on a lock of its own, on the next holder's, and on none.
    ///
    /// # Errors
    /// Usage, where the code cannot be run, does not end or fails on a lock of its own; failure, where Redis cannot be
    /// asked.
    pub async fn try_out(&mut self, act: Act, way: &Way) -> Result<[Trial; 3]> {
        let waited_ms = if act == Act::Release { WAITED_MS } else { 0 };
        let own = self.after("own", Some((MINE, OWN_LEASE_MS)), way, waited_ms).await?;
        let (answer, told_done) = match own.ran {
            Ran::Threw(error) => return Err(error),
            Ran::Said(answer, told_done) => (answer, told_done),
        };
        // A program's end says nothing of it.
        let done = matches!(way, Way::Script { .. } | Way::Command(_)).then_some(answer);
        let (expected, found) = match act {
            Act::Release => (GONE, own.key.released()),
            Act::Renewal => (AS_ASKED, own.key.renewed(own.took_ms)),
        };
        let holds = found == expected;
        let own = Trial { act, on: "its own lock", expected, found, told_done, holds };
        let next = self.on_next(act, way, done.as_ref()).await?;
        let none = self.after("none", None, way, 0).await?;
        let found = match none.key {
            Key::Gone => NONE,
            Key::There { .. } => "there is one now, that nobody was given",
        };
        Ok([own, next, in_vain(act, "no lock", (NONE, found), &none.ran, done.as_ref())])
    }

    /// On locks of next holders, until one of them is not left alone.
    async fn on_next(&mut self, act: Act, way: &Way, done: Option<&Value>) -> Result<Trial> {
        let of_lease = |ms| (format!("with {} left", seconds(ms)), THEIRS, ms);
        let leases = THEIR_LEASES_MS.map(of_lease);
        let is_quick = !matches!(way, Way::Program(_));
        let short = is_quick.then(|| of_lease(SHORT_LEASE_MS));
        let alike = LIKE_MINE.map(|(how, value)| (format!("where {how}"), value, OWN_LEASE_MS));
        let [plain, others @ ..] = leases;
        let mut trial = self.on_one(act, way, (plain.1, plain.2), done).await?;
        for (how, value, ms) in others.into_iter().chain(short).chain(alike) {
            if !trial.holds {
                break;
            }
            trial = self.on_one(act, way, (value, ms), done).await?;
            if !trial.holds {
                trial.found = format!("{}, {how}", trial.found);
            }
        }
        Ok(trial)
    }

    async fn on_one(
        &mut self,
        act: Act,
        way: &Way,
        (value, ms): (&str, u64),
        done: Option<&Value>,
    ) -> Result<Trial> {
        let next = self.after("next", Some((value, ms)), way, 0).await?;
        let found = next.key.of_next(value, ms, next.took_ms);
        Ok(in_vain(act, "the next holder's lock", (UNTOUCHED, found), &next.ran, done))
    }

    /// Runs the code on a key that holds this value for so many milliseconds, waits until the key has ended if it leaves
    /// it no more than `waited_ms`, and removes it.
    async fn after(
        &mut self,
        name: &str,
        before: Option<(&str, u64)>,
        way: &Way,
        waited_ms: u64,
    ) -> Result<Left> {
        let name = self.server.key(name);
        let began = Instant::now();
        if let Some((value, ms)) = before {
            self.lines.redis.set(&name, value, ms).await?;
        }
        let ran = tokio::select! {
            ran = way.run(&mut self.lines, &name) => Some(ran),
            _ = self.signals.next() => None,
        };
        let ran = match (ran, way) {
            (Some(ran), _) => ran,
            // A script goes on though nobody waits for its answer.
            (None, Way::Script { .. }) => {
                let stopped = way.stopped(&mut self.lines).await;
                Err(Error::failure(format!("interrupted; {stopped}")))
            }
            (None, _) => Err(Error::failure("interrupted")),
        };
        let mut key = self.key(&name).await;
        if let Ok(Key::There { lease_ms: Some(left), .. }) = key
            && left <= waited_ms
        {
            tokio::time::sleep(Duration::from_millis(left + ROUNDING_MS)).await;
            key = self.key(&name).await;
        }
        let took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let removed = self.lines.redis.del(&name).await;
        // Why the code failed says more than why the key could not be read.
        let (ran, key) = (ran?, key?);
        removed?;
        Ok(Left { ran, key, took_ms })
    }

    async fn key(&mut self, name: &str) -> Result<Key> {
        let left_ms: i64 = self.lines.redis.ask(redis::cmd("PTTL").arg(name)).await?;
        let lease_ms = u64::try_from(left_ms).ok();
        match self.lines.redis.try_ask::<Option<Vec<u8>>>(redis::cmd("GET").arg(name)).await {
            Ok(None) => Ok(Key::Gone),
            Ok(Some(value)) => Ok(Key::There { value, lease_ms }),
            // A list or a hash is there in its place.
            Err(e) if e.code() == Some("WRONGTYPE") => Ok(Key::There { value: Vec::new(), lease_ms }),
            Err(e) => Err(failed("redis", &e)),
        }
    }
}

/// What the code left of a lock.
struct Left {
    ran: Ran,
    key: Key,
    /// From before the lock was set until it was read again.
    took_ms: u64,
}

/// What a key is.
enum Key {
    Gone,
    There {
        value: Vec<u8>,
        /// `None` where it does not expire.
        lease_ms: Option<u64>,
    },
}

const GONE: &str = "it is gone";
const AS_ASKED: &str = "its lease is as asked";
const UNTOUCHED: &str = "it is untouched";
const NONE: &str = "there is none";

impl Key {
    /// Of a lock that its holder has released.
    fn released(&self) -> String {
        match self {
            Self::Gone => GONE.to_owned(),
            Self::There { .. } => "it is still there".to_owned(),
        }
    }

    /// Of a lock that its holder has renewed.
    fn renewed(&self, took_ms: u64) -> String {
        let (value, lease_ms) = match self {
            Self::Gone => return "it is gone".to_owned(),
            Self::There { value, lease_ms } => (value, lease_ms),
        };
        let Some(lease_ms) = lease_ms.filter(|_| value == MINE.as_bytes()) else {
            let found = if value == MINE.as_bytes() {
                "it does not expire any more"
            } else {
                "it holds another value"
            };
            return found.to_owned();
        };
        if (RENEWED_MS - TOLERANCE_MS).saturating_sub(took_ms) <= lease_ms
            && lease_ms <= RENEWED_MS + TOLERANCE_MS
        {
            return AS_ASKED.to_owned();
        }
        if lease_ms <= OWN_LEASE_MS && lease_ms + took_ms + ROUNDING_MS >= OWN_LEASE_MS {
            return "its lease is as it was".to_owned();
        }
        format!("its lease is {}, where {} was asked for", seconds(lease_ms), seconds(RENEWED_MS))
    }

    /// Of a lock that one has released or renewed who no longer held it.
    fn of_next(&self, theirs: &str, their_lease_ms: u64, took_ms: u64) -> &'static str {
        let (value, lease_ms) = match self {
            // It has ended by itself; on longer ones it is tried, too.
            Self::Gone if took_ms + ROUNDING_MS >= their_lease_ms => return UNTOUCHED,
            Self::Gone => return "it is gone, as by a bare DEL: the next holder is robbed",
            Self::There { value, lease_ms } => (value, lease_ms),
        };
        match lease_ms {
            _ if value != theirs.as_bytes() => "it holds another value: the next holder is robbed",
            None => "it does not expire any more",
            Some(ms) if *ms > their_lease_ms => "its lease is longer, as by a bare PEXPIRE",
            Some(ms) if ms + took_ms + ROUNDING_MS < their_lease_ms => {
                "its lease is shorter, as by a bare PEXPIRE"
            }
            Some(_) => UNTOUCHED,
        }
    }
}

/// A trial in which the code must do nothing, and must not be told that it did something: `done` is what it was told when
/// it had.
fn in_vain(
    act: Act,
    on: &'static str,
    (expected, found): (&'static str, &str),
    ran: &Ran,
    done: Option<&Value>,
) -> Trial {
    let told_done = match ran {
        Ran::Said(answer, told_done) => told_done.or_else(|| done.map(|done| answer == done)),
        Ran::Threw(_) => Some(false),
    };
    let found = match told_done {
        Some(true) if found == expected => {
            format!("{found}, but the code is told that it was {}", act.done())
        }
        _ => found.to_owned(),
    };
    let holds = found == expected;
    Trial { act, on, expected, found, told_done, holds }
}

/// Rounded to seconds.
fn seconds(ms: u64) -> Span {
    Span::from_secs(i64::try_from(ms.saturating_add(500) / 1000).unwrap_or(i64::MAX))
}
