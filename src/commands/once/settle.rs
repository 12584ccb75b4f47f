//! `onefold once settle`: a person says what came of a key.

use clap::{Args, ValueEnum};

use super::show::{found, nothing};
use super::{as_json, holder, key, tenant};
use crate::commands::guard::keys::open;
use crate::config::Config;
use crate::core::idempotency::{KeyRecord, KeyState, Known};
use crate::core::ids::{IdempotencyKey, TenantId};
use crate::core::time::{Span, Timestamp};
use crate::error::{Error, Result};
use crate::report::Report;
use crate::store::Store;
use crate::store::idempotency::{Holder, Outcome};

/// Say what came of a key whose command may or may not have had its effect; journalled
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  onefold once settle refund-O-502 --as succeeded --because 'the provider has it'
  onefold once settle refund-O-502 --as failed --because 'the provider has no such refund, ticket 4711'

As succeeded, a repeat ends with 0; as failed, with 1; neither runs the command again. As retryable, the
next request runs it again under the next fencing token: only where it is certain that it did not happen,
and that no process of the first run is left.")]
pub struct SettleArgs {
    /// The key
    key: String,
    /// What came of it
    #[arg(long = "as", value_name = "HOW")]
    verdict: As,
    /// How you know
    #[arg(long, value_name = "TEXT")]
    because: String,
    #[arg(long, value_name = "TENANT", default_value = "default")]
    tenant: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum As {
    Succeeded,
    Failed,
    Retryable,
}

impl As {
    const fn state(self) -> KeyState {
        match self {
            Self::Succeeded => KeyState::Succeeded,
            Self::Failed => KeyState::Failed,
            Self::Retryable => KeyState::FailedRetryable,
        }
    }

    const fn exit_code(self) -> Option<u8> {
        match self {
            Self::Succeeded => Some(0),
            Self::Failed => Some(1),
            Self::Retryable => None,
        }
    }
}

pub async fn run(config: &Config, args: SettleArgs) -> Result<Report> {
    if args.because.trim().is_empty() {
        return Err(Error::usage("--because needs a reason: the journal keeps it")
            .hint("how do you know? for example: seen in the provider's books"));
    }
    let (tenant_id, key) = (tenant(&args.tenant)?, key(&args.key)?);
    let stores = open(config).await?;
    let store = meant(&stores, &tenant_id, &key).await?;
    let holder = holder(config, Span::from_secs(1));
    let record = unknown(store, &holder, found(store, &tenant_id, &key).await?).await?;
    let state = args.verdict.state();
    let outcome = Outcome {
        exit_code: args.verdict.exit_code(),
        ..Outcome::bare(state, format!("{} says: {}", config.actor, args.because))
    };
    if !store.settle_key(&holder, &record, &outcome).await? {
        return Err(moved(&record));
    }
    let (record, _) = found(store, &tenant_id, &key).await?;
    let label = &store.keys_database().label;
    let mut json = as_json(&record, None);
    json["database"] = label.as_str().into();
    let place = if stores.len() > 1 { format!(", in {label}") } else { String::new() };
    Ok(Report::new(json).line(format!("{key}: {} → {state}{place}", KeyState::Unknown)))
}

/// Where the key is that has not ended: that of `once` before that of a service of the same name.
async fn meant<'a>(stores: &'a [Store], tenant_id: &TenantId, key: &IdempotencyKey) -> Result<&'a Store> {
    let mut there = None;
    for store in stores {
        match store.known_key(tenant_id, key).await? {
            Some((Known::Record(record), _)) if !record.state.is_terminal() => return Ok(store),
            Some(_) => there = there.or(Some(store)),
            None => {}
        }
    }
    there.ok_or_else(|| nothing(tenant_id, key))
}

/// The key as UNKNOWN: one whose owner's lease is over, while its command may have run, is taken from it first.
async fn unknown(store: &Store, holder: &Holder, (record, now): (KeyRecord, Timestamp)) -> Result<KeyRecord> {
    match record.state {
        KeyState::Unknown => Ok(record),
        KeyState::Processing if now < record.lease_until => Err(Error::refused(format!(
            "{} is being processed by {}, whose lease has {} left",
            record.key,
            record.owner,
            record.lease_until.since(now)
        ))
        .hint("wait until it has ended, or until its lease is over")),
        KeyState::Processing => {
            let why = format!("the lease of {} ran out", record.owner);
            match store.take_key_again(holder, &record, KeyState::Unknown, Some(&why)).await? {
                Some(_) => Ok(found(store, &record.tenant_id, &record.key).await?.0),
                None => Err(moved(&record)),
            }
        }
        state => Err(Error::usage(format!("{} is {state} already", record.key)).hint(format!(
            "only what is UNKNOWN is settled; see it with `onefold once show {}`",
            record.key
        ))),
    }
}

fn moved(record: &KeyRecord) -> Error {
    Error::stale(format!("{} moved meanwhile", record.key))
        .hint(format!("see it with `onefold once show {}`", record.key))
}
