//! The verbs, a file each: what may be typed after it, and what it does.

pub mod apply;
pub mod approve;
pub mod check;
pub mod config;
pub mod converge;
pub mod demo;
pub mod flags;
pub mod freeze;
pub mod frozen;
pub mod guard;
pub mod history;
pub mod import;
pub mod init;
pub mod locks;
pub mod once;
pub mod plan;
pub mod provider;
pub mod queries;
pub mod reconcile;
pub mod report;
pub mod requeue;
pub mod run;
pub mod settle;
pub mod show;
pub mod status;
pub mod thaw;
pub mod token;
pub mod trace;
pub mod verify;
pub mod watch;

mod brakes;
mod confirm;
mod decided;
mod everything;
mod files;
mod leaving;
mod limits;
mod playbook;
mod progress;
mod provider_file;
mod redaction;
mod redis;
mod statement;
mod telling;
mod typing;

use crate::config::Config;
use crate::core::freeze::{Freeze, FreezeMode};
use crate::core::hash::FieldHash;
use crate::core::scope::Scope;
use crate::core::time::{Span, Timestamp};
use crate::error::{Error, Result};
use crate::execute::Executor;
use crate::providers::Providers;
use crate::store::Store;
use crate::store::freezes::FREEZE;
use crate::store::steps::Worker;

/// What time it is.
pub(crate) fn now() -> Timestamp {
    Timestamp::from_datetime(&chrono::Utc::now())
}

/// A new name: a prefix and ten random hex digits.
fn new_id(prefix: &str) -> String {
    let random = uuid::Uuid::new_v4().simple().to_string();
    format!("{prefix}-{}", &random[..10])
}

/// How long a claim on a step holds; a request to a provider is answered or given up well before.
const STEP_LEASE: Span = Span::from_secs(60);

/// This process as one that carries out steps, under a freeze's token where there is one.
fn worker(config: &Config, token: i64) -> Worker {
    let random = uuid::Uuid::new_v4().simple().to_string();
    // Numbers of processes mean something only within one boot and one namespace of a machine.
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let place = FieldHash::new()
        .text(&read("/proc/sys/kernel/random/boot_id"))
        .text(&namespace.display().to_string())
        .short_hex();
    let host = format!("{}.{}", whoami::hostname().unwrap_or_default(), &place[..6]);
    Worker {
        actor: config.actor.clone(),
        owner: format!("{}#{host}/{}-{}", config.actor, std::process::id(), &random[..6]),
        token,
        lease: STEP_LEASE,
    }
}

/// What carries out, on these databases and through these providers.
fn executor<'a>(
    config: &'a Config,
    store: &'a Store,
    providers: &'a Providers<'a>,
    worker: &'a Worker,
) -> Executor<'a> {
    Executor { store, providers, worker, commands: &config.commands, approval: &config.approval, clock: now }
}

/// The live freeze that a scope is decided under: the one that is named, else the only one that
/// overlaps it. An empty scope takes that of the freeze.
///
/// # Errors
/// Usage, where several overlap; refused, where the one that is named is not live.
async fn freeze_over(
    store: &Store,
    scope: &mut Scope,
    named: Option<&str>,
    now: Timestamp,
) -> Result<Option<Freeze>> {
    let freeze = match named {
        Some(freeze_id) => {
            let freeze = store.freeze_by_id(freeze_id).await?;
            if !freeze.is_live(now) {
                return Err(Error::refused(format!("{freeze_id} is not live")).hint(format!(
                    "renew it: onefold freeze --renew {freeze_id}; or freeze again: {FREEZE}"
                )));
            }
            Some(freeze)
        }
        None => {
            let mut live: Vec<_> = store
                .open_freezes()
                .await?
                .into_iter()
                .filter(|f| f.is_live(now) && f.scope.overlaps(scope))
                .collect();
            if live.len() > 1 {
                let ids: Vec<_> = live.iter().map(|f| f.freeze_id.as_str()).collect();
                return Err(Error::usage(format!(
                    "several live freezes overlap this scope: {}",
                    ids.join(", ")
                ))
                .hint(format!("name one: --freeze {}", ids[0])));
            }
            live.pop()
        }
    };
    if let Some(freeze) = &freeze
        && scope.is_everything()
    {
        *scope = freeze.scope.clone();
    }
    Ok(freeze)
}

/// What a freeze does not do, for every report about it; nothing where it is enforced.
fn caveat(freeze: &Freeze) -> Option<String> {
    let what = match freeze.mode {
        FreezeMode::Enforced => return None,
        FreezeMode::Advisory => "is advisory: services that do not ask are not stopped, and that is meant so",
        FreezeMode::Recorded => {
            "is only recorded: services that do not ask are not stopped, and apply refuses"
        }
    };
    Some(format!("{} {what}.", freeze.freeze_id))
}

/// `1 intent`, `2 intents`.
fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}
