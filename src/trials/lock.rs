//! How code releases and renews a lock, tried on locks of our own: one that it holds, one that the next
//! holder has by now, and none.

use std::path::PathBuf;
use std::time::Duration;

use redis::Cmd;
use serde::Serialize;
use serde_json::json;

use super::{Connection, KEPT_MS, Server};
use crate::error::{Error, Result};
use crate::program;

/// The lease of a lock that is to be renewed, and the one that it is renewed to, in milliseconds.
const LEASE_MS: u64 = 5_000;
const RENEWED_MS: u64 = 30_000;
/// How long a program of the site may take.
const LIMIT: Duration = Duration::from_secs(10);
/// Who let its lease end, and who holds the lock by now.
const MINE: &str = "onefold-first-holder";
const THEIRS: &str = "onefold-next-holder";
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
    Script(String),
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

    async fn run(&self, redis: &mut Connection, key: &str) -> Result<()> {
        let lease = RENEWED_MS.to_string();
        match self {
            Self::Script(text) => {
                let mut command = redis::cmd("EVAL");
                command.arg(text).arg(1).arg(key).arg(MINE).arg(&lease);
                redis.ask::<redis::Value>(&command).await.map_err(|e| {
                    e.context("the script").hint(
                        "KEYS[1] is the lock's key, ARGV[1] the owner's value, ARGV[2] the lease in milliseconds",
                    )
                })?;
            }
            Self::Command(words) => {
                let mut command = Cmd::new();
                for word in words {
                    let word = word.replace("{key}", key).replace("{value}", MINE);
                    command.arg(word.replace("{lease_ms}", &lease));
                }
                redis.ask::<redis::Value>(&command).await.map_err(|e| e.context("the command"))?;
            }
            Self::Program(path) => {
                let input = json!({ "key": key, "value": MINE, "lease_ms": RENEWED_MS });
                program::run(&[path.display().to_string()], &input, LIMIT).await.map_err(|failure| {
                    Error::from(failure).hint(
                        "name a program that gets {\"key\": …, \"value\": …, \"lease_ms\": …} on its stdin and ends with 0",
                    )
                })?;
            }
        }
        Ok(())
    }
}

/// What is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Act {
    Release,
    Renewal,
}

/// One trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Trial {
    pub act: Act,
    /// On whose lock.
    pub on: &'static str,
    pub expected: &'static str,
    pub found: &'static str,
    pub holds: bool,
}

/// Tries a release on a lock of its own, on the next holder's, and on none.
///
/// # Errors
/// Failure, where Redis cannot be asked or the code itself fails.
pub async fn release(server: &Server, redis: &mut Connection, way: &Way) -> Result<Vec<Trial>> {
    let mut trials = Vec::new();
    let key = server.key("own");
    let left = after(redis, &key, Some((MINE, KEPT_MS)), way).await?;
    let found = if left.value.is_none() { "it is gone" } else { "it is still there" };
    trials.push(trial(Act::Release, "its own lock", "it is gone", found));

    let left = after(redis, &server.key("next"), Some((THEIRS, KEPT_MS)), way).await?;
    let found = match left.value.as_deref() {
        Some(THEIRS) => "it is untouched",
        Some(_) => "it holds another value: the next holder is robbed",
        None => "it is gone, as by a bare DEL: the next holder is robbed",
    };
    trials.push(trial(Act::Release, "the next holder's lock", "it is untouched", found));

    let left = after(redis, &server.key("none"), None, way).await?;
    let found = if left.value.is_none() { "there is none" } else { "there is one now" };
    trials.push(trial(Act::Release, "no lock", "there is none", found));
    Ok(trials)
}

/// Tries a renewal in the same way.
///
/// # Errors
/// As [`release`].
pub async fn renewal(server: &Server, redis: &mut Connection, way: &Way) -> Result<Vec<Trial>> {
    let mut trials = Vec::new();
    let is_longer = |left: &Left| left.ms.is_none_or(|ms| ms > LEASE_MS);
    let left = after(redis, &server.key("own"), Some((MINE, LEASE_MS)), way).await?;
    let found = match left.value.as_deref() {
        Some(MINE) if left.ms.is_some() && is_longer(&left) => "its lease is longer",
        Some(MINE) if left.ms.is_none() => "it does not expire any more",
        Some(MINE) => "its lease is as it was",
        _ => "it is gone",
    };
    trials.push(trial(Act::Renewal, "its own lock", "its lease is longer", found));

    let left = after(redis, &server.key("next"), Some((THEIRS, LEASE_MS)), way).await?;
    let found = match left.value.as_deref() {
        Some(THEIRS) if is_longer(&left) => "its lease is longer, as by a bare PEXPIRE",
        Some(THEIRS) => "it is untouched",
        Some(_) => "it holds another value: the next holder is robbed",
        None => "it is gone: the next holder is robbed",
    };
    trials.push(trial(Act::Renewal, "the next holder's lock", "it is untouched", found));

    let left = after(redis, &server.key("none"), None, way).await?;
    let found =
        if left.value.is_none() { "there is none" } else { "there is one now, that nobody was given" };
    trials.push(trial(Act::Renewal, "no lock", "there is none", found));
    Ok(trials)
}

fn trial(act: Act, on: &'static str, expected: &'static str, found: &'static str) -> Trial {
    Trial { act, on, expected, found, holds: expected == found }
}

/// What a key was when the code had run.
struct Left {
    value: Option<String>,
    /// `None` where it does not expire or is not there.
    ms: Option<u64>,
}

/// Runs the code on a key that holds this value for so many milliseconds, and removes the key.
async fn after(redis: &mut Connection, key: &str, before: Option<(&str, u64)>, way: &Way) -> Result<Left> {
    if let Some((value, ms)) = before {
        redis.set(key, value, ms).await?;
    }
    let ran = way.run(redis, key).await;
    let left = async { Ok(Left { ms: redis.left_ms(key).await?, value: redis.get(key).await? }) }.await;
    redis.del(key).await?;
    ran?;
    left
}
