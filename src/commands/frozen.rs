//! `onefold frozen`: the answer for a service that asks before it does something.

use clap::Args;
use serde_json::json;

use super::now;
use crate::config::Config;
use crate::core::freeze::{Asked, Effect};
use crate::core::ids::*;
use crate::core::ledger::Order;
use crate::error::{Error, Exit, Result};
use crate::report::Report;

/// Ask whether an effect is frozen for an order: ends with 0 to go on, with 7 to wait
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  onefold frozen --order O-501 --effect ticketing && issue-ticket O-501
  onefold frozen --show S-204 --user U-7318 --effect auto-payment --json

What is not said may be anything: where no session is named, a frozen one holds.
Any other end than 0 or 7 is no answer: do not go on.")]
pub struct FrozenArgs {
    /// What is about to happen
    #[arg(long, value_name = "EFFECT")]
    effect: Effect,
    /// The order that it happens to
    #[arg(long, value_name = "ORDER", required_unless_present_any = ["show", "user"], conflicts_with_all = ["show", "user", "session"])]
    order: Option<String>,
    /// Where there is no order yet: the performance
    #[arg(long, value_name = "SHOW")]
    show: Option<String>,
    /// Where there is no order yet: the user
    #[arg(long, value_name = "USER")]
    user: Option<String>,
    /// Where there is no order yet: the client session
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
    /// Of a message
    #[arg(long, value_name = "TOPIC")]
    topic: Option<String>,
    #[arg(long, value_name = "TENANT", default_value = "default")]
    tenant: String,
}

pub async fn run(config: &Config, args: FrozenArgs) -> Result<Report> {
    let store = config.open_to_read().await?;
    let tenant_id = TenantId::from(args.tenant);
    let order = match args.order.map(RowId::from) {
        None => None,
        Some(id) => Some(store.read_row::<Order>(&tenant_id, &id).await?.ok_or_else(|| {
            Error::usage(format!("there is no order {id} of tenant {tenant_id}"))
                .hint("name another tenant with --tenant; before there is an order: --show and --user")
        })?),
    };
    let (user, show, session) =
        (args.user.map(UserId::from), args.show.map(ShowId::from), args.session.map(SessionId::from));
    let now = now();
    let asked = Asked {
        effect: args.effect,
        tenant_id: &tenant_id,
        order_id: order.as_ref().map(|o| &o.order_id),
        user_id: order.as_ref().map(|o| &o.user_id).or(user.as_ref()),
        show_id: order.as_ref().map(|o| &o.show_id).or(show.as_ref()),
        session_id: order.as_ref().map_or(session.as_ref(), |o| o.session_id.as_ref()),
        topic: args.topic.as_ref(),
        // An effect without an order is the beginning of one.
        created_at: Some(order.as_ref().map_or(now, |o| o.created_at)),
    };
    let freezes = store.open_freezes().await?;
    let stopping: Vec<_> = freezes.iter().filter(|f| f.is_live(now) && f.stops(&asked)).collect();
    for freeze in &stopping {
        store.count_asked(&freeze.freeze_id, args.effect, now).await;
    }
    let json = json!({
        "effect": args.effect,
        "frozen": !stopping.is_empty(),
        "by": stopping.iter().map(|f| json!({
            "freeze_id": f.freeze_id, "owner": f.owner, "reason": f.reason,
            "mode": f.mode, "until": f.lease_until,
        })).collect::<Vec<_>>(),
    });
    let report = Report::new(json);
    if stopping.is_empty() {
        return Ok(report.line(format!("{} is not frozen.", args.effect)));
    }
    let told = stopping.into_iter().fold(report, |report, f| {
        report.line(format!(
            "{} is frozen by {} ({}) until {}: {}",
            args.effect, f.freeze_id, f.owner, f.lease_until, f.reason
        ))
    });
    Ok(told.exit(Exit::Refused))
}
