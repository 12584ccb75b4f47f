//! `onefold requeue`: let a quarantined message go again, on purpose.

use clap::Args;
use serde_json::json;

use super::{executor, now, worker};
use crate::config::Config;
use crate::core::ids::{RowId, TenantId};
use crate::core::ledger::Message;
use crate::core::status::{Ledger, MessageStatus};
use crate::error::{Error, Result};
use crate::providers::Providers;
use crate::report::Report;
use crate::store::journal::{Entry, Event};
use crate::store::moves::{Move, Moved};

/// Put a quarantined message back into its queue, and say why in the journal
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  onefold requeue M-17 --because 'the order was kept after all'")]
pub struct RequeueArgs {
    /// The message's id
    message: String,
    /// Why
    #[arg(long, value_name = "TEXT")]
    because: String,
    #[arg(long, value_name = "TENANT", default_value = "default")]
    tenant: String,
}

pub async fn run(config: &Config, args: RequeueArgs) -> Result<Report> {
    if args.because.trim().is_empty() {
        return Err(Error::usage("--because needs a reason: it is all that the journal will say")
            .hint("onefold requeue MESSAGE --because TEXT"));
    }
    let store = config.open_ready().await?;
    let (tenant_id, id) = (TenantId::from(args.tenant), RowId::from(args.message));
    let message = store.read_row::<Message>(&tenant_id, &id).await?.ok_or_else(|| {
        Error::usage(format!("there is no message {id} of tenant {tenant_id}"))
            .hint("name another tenant with --tenant")
    })?;
    let json = |moved: bool| json!({ "message_id": id, "tenant_id": tenant_id, "requeued": moved });
    if message.status == MessageStatus::Queued {
        return Ok(Report::new(json(false)).line(format!("message {id} is QUEUED already")));
    }
    if message.status != MessageStatus::Quarantined {
        return Err(Error::usage(format!("message {id} is {}, not QUARANTINED", message.status))
            .hint("only what was quarantined is put back; `onefold history` says what was"));
    }
    let (from, to) = (MessageStatus::Quarantined.as_str(), MessageStatus::Queued.as_str());
    let asked = Move {
        ledger: Ledger::Messages,
        tenant_id: &tenant_id,
        id: &id,
        from,
        to,
        version: &message.version,
        refund_minor: 0,
        amount: None,
        captured_at: None,
        step_key: "",
        actor: &config.actor,
        now: now(),
    };
    let worker = worker(config, 0);
    let providers = Providers::default();
    let executor = executor(config, &store, &providers, &worker);
    let entry = Entry::new(Event::Requeued, &config.actor, now())
        .row(Ledger::Messages, &tenant_id, id.clone())
        .moved(from, to)
        .note(args.because);
    match executor.move_and_tell(message.shard, &asked, entry).await? {
        Moved::Now(_) => {}
        Moved::NotAsSeen(_) => {
            return Err(Error::stale(format!("message {id} moved meanwhile")).hint("run it again"));
        }
    }
    Ok(Report::new(json(true)).line(format!("message {id}: {from} → {to}")))
}
