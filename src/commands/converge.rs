//! `onefold converge`: settle what is in doubt by asking the provider.

use std::collections::BTreeSet;
use std::time::Duration;

use clap::Args;
use serde_json::json;

use super::decided::apply_line;
use super::flags::{PolicyFlags, ScopeFlags, ZoneFlag};
use super::progress::Progress;
use super::{count, executor, freeze_over, now, worker};
use crate::config::Config;
use crate::core::ids::{RowId, TenantId};
use crate::core::ledger::Ledgers;
use crate::core::plan::{Plan, make};
use crate::core::scope::Scope;
use crate::core::status::Ledger;
use crate::core::time::Span;
use crate::error::{Exit, Result};
use crate::execute::converge::Learned;
use crate::report::{Column, Report, Table, print_note};
use crate::store::Store;
use crate::store::steps::StepRecord;

/// Ask the provider about requests and charges whose end is not known, and record what it says
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  onefold converge --plan PL-5c1d2e3f40
  onefold converge --plan PL-5c1d2e3f40 --watch --every 30s
  onefold converge --show S-204

Asks about our own requests that were not answered, then about the charges that UNSETTLED intents
wait for and every other payment whose end is open. Rows are moved to what the provider says. No new
request is made; one that the provider never got goes out again under its own key: by apply, or, where
its plan is superseded or its freeze is gone, here, under any freeze of yours that covers its row.")]
pub struct ConvergeArgs {
    /// A plan: its requests, and the intents of its scope under its policies
    #[arg(long, conflicts_with_all = ["shows", "users", "sessions", "tenants", "from", "to"])]
    plan: Option<String>,
    /// Ask again and again, until nothing is in doubt or Ctrl-C
    #[arg(long)]
    watch: bool,
    /// How long to wait before asking again, as 30s or 5m
    #[arg(long, value_name = "SPAN", default_value = "10s", requires = "watch")]
    every: Span,
    #[command(flatten)]
    zone: ZoneFlag,
    #[command(flatten)]
    scope: ScopeFlags,
    #[command(flatten)]
    policy: PolicyFlags,
}

pub async fn run(config: &Config, args: ConvergeArgs) -> Result<Report> {
    let store = config.open_ready().await?;
    let saved = match &args.plan {
        Some(plan_id) => Some(store.plan_by_id(plan_id).await?),
        None => None,
    };
    let is_superseded = saved.as_ref().is_some_and(|saved| saved.superseded_by.is_some());
    let plan = saved.map(|saved| saved.plan);
    let mut rounds = 0;
    let mut learned: Vec<Learned> = Vec::new();
    loop {
        // What was open is told anew; what was settled in an earlier round stays told.
        learned.retain(|l| l.settled);
        for new in ask(config, &store, &args, plan.as_ref()).await? {
            if !learned.contains(&new) {
                learned.push(new);
            }
        }
        let open = learned.iter().filter(|l| !l.settled).count();
        rounds += 1;
        if !args.watch || open == 0 {
            return Ok(report(&learned, plan.as_ref(), is_superseded));
        }
        if !config.quiet {
            print_note(&format!(
                "round {rounds}: {} settled, {open} still in doubt; asking again in {}",
                learned.len() - open,
                args.every
            ));
        }
        let pause = Duration::from_micros(args.every.micros().unsigned_abs());
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            _ = tokio::signal::ctrl_c() => return Ok(report(&learned, plan.as_ref(), is_superseded)),
        }
    }
}

/// Asks once.
async fn ask(
    config: &Config,
    store: &Store,
    args: &ConvergeArgs,
    plan: Option<&Plan>,
) -> Result<Vec<Learned>> {
    let now_is = now();
    let mut scope = match plan {
        Some(plan) => plan.scope.clone(),
        None => args.scope.scope(args.zone)?,
    };
    let freeze = freeze_over(store, &mut scope, None, now_is).await?;
    let policy = plan.map_or_else(|| args.policy.policy(), |plan| plan.policy.clone());

    let progress = Progress::new(config, "asking the provider");
    let worker = worker(config, 0);
    let providers = config.providers(store)?;
    let executor = executor(config, store, &providers, &worker);
    let open = open_steps(store, &scope, args.plan.as_deref()).await?;
    let mut learned = executor.converge_steps(open).await?;

    // What our own requests came to has moved rows: read again before judging what is in doubt.
    let ledgers = store.read_scope(&scope).await?;
    let as_of = freeze.map_or(now_is, |f| f.frozen_at);
    let decided = make(&ledgers, &scope, &policy, as_of, &store.evidence_of(&ledgers).await?)?;
    let open = store.open_steps().await?.into_iter().filter(|r| r.step.ledger == Ledger::Payments);
    let ours: BTreeSet<_> = open.map(|r| (r.tenant_id, r.step.id)).collect();
    let about = executor.converge_charges(&decided.intents, &ledgers, &ours).await?;
    learned.extend(about.into_iter().filter(|l| !ours.contains(&(l.tenant_id.clone(), l.id.clone()))));
    progress.end();
    Ok(learned)
}

/// Steps that were begun and not ended: of a plan, and on any row of a scope, whichever plan began them.
/// A row that is gone may have been in scope.
pub(super) async fn open_steps(
    store: &Store,
    scope: &Scope,
    plan_id: Option<&str>,
) -> Result<Vec<StepRecord>> {
    let open = store.open_steps().await?;
    // Then no row need be looked for: a large scope takes time and room.
    if scope.is_everything() || open.iter().all(|record| plan_id == Some(record.plan_id.as_str())) {
        return Ok(open);
    }
    let ledgers = store.read_scope(scope).await?;
    let in_scope = rows(&ledgers);
    let mut of_scope = Vec::new();
    for record in open {
        let (ledger, tenant_id, id) = (record.step.ledger, &record.tenant_id, &record.step.id);
        if plan_id == Some(record.plan_id.as_str())
            || in_scope.contains(&(ledger, tenant_id, id.clone()))
            || store.row_state(ledger, tenant_id, id).await?.is_none()
        {
            of_scope.push(record);
        }
    }
    Ok(of_scope)
}

/// Every row of some ledgers.
fn rows(ledgers: &Ledgers) -> BTreeSet<(Ledger, &TenantId, RowId)> {
    let orders = ledgers.orders.iter().map(|r| (Ledger::Orders, &r.tenant_id, RowId::from(&r.order_id)));
    let payments =
        ledgers.payments.iter().map(|r| (Ledger::Payments, &r.tenant_id, RowId::from(&r.payment_id)));
    let holds = ledgers.inventory.iter().map(|r| (Ledger::Inventory, &r.tenant_id, RowId::from(&r.hold_id)));
    let messages =
        ledgers.messages.iter().map(|r| (Ledger::Messages, &r.tenant_id, RowId::from(&r.message_id)));
    orders.chain(payments).chain(holds).chain(messages).collect()
}

fn report(learned: &[Learned], plan: Option<&Plan>, is_superseded: bool) -> Report {
    let mut table =
        Table::new([Column::exact("ROW"), Column::exact("SETTLED"), Column::prose("WHAT THE PROVIDER SAYS")]);
    for l in learned {
        let settled = if l.settled { "yes" } else { "no" };
        table.row([format!("{} {}", l.ledger.row_name(), l.id), settled.to_owned(), l.what.clone()]);
    }
    let open = learned.iter().filter(|l| !l.settled).count();
    let rows: Vec<_> = learned
        .iter()
        .map(|l| json!({ "ledger": l.ledger, "tenant_id": l.tenant_id, "id": l.id, "settled": l.settled, "refused": l.refused,
                         "what": l.what }))
        .collect();
    let report =
        Report::new(json!({ "asked": rows, "settled": learned.len() - open, "open": open })).table(table);
    if learned.is_empty() {
        return report.line("Nothing is in doubt.");
    }
    let report =
        report.line(format!("{} settled, {open} still in doubt.", count(learned.len() - open, "row")));
    let settled = learned.len() - open;
    let report = match (plan, settled) {
        (_, 0) => {
            report.line("Nothing has ended yet. Ask again later, or let it be asked:").command(match plan {
                Some(plan) => format!("onefold converge --plan {} --watch --every 5m", plan.plan_id),
                None => "onefold converge --watch --every 5m".to_owned(),
            })
        }
        (Some(_), _) if is_superseded => report
            .line("The plan was superseded. Next, to decide on what is known now:")
            .command("onefold plan"),
        (Some(plan), _) => report
            .line("Next, where a request of the plan was missing; where a charge was, plan again:")
            .command(apply_line(&plan.plan_id, &plan.refunds()))
            .command("onefold plan"),
        (None, _) => report.line("Next, to decide on what is known now:").command("onefold plan"),
    };
    let report = if open > 0 { report.exit(Exit::Undecided) } else { report };
    let exit = report.exit.or(Exit::Refused);
    if learned.iter().any(|l| l.refused) { report.exit(exit) } else { report }
}
