//! `onefold thaw`: let go of what is done.

use std::collections::{HashMap, HashSet};

use clap::Args;
use serde_json::json;

use super::progress::Progress;
use super::status::{asked_about, step_table};
use super::{count, now};
use crate::config::Config;
use crate::core::freeze::{Freeze, FreezeState, HeldIntent};
use crate::core::ids::{OrderId, RowId, TenantId};
use crate::core::ledger::{Hold, Ledgers};
use crate::core::plan::{Finding, Outcome, PlannedIntent, make};
use crate::core::policy::Policy;
use crate::core::status::{HoldStatus, Ledger, OrderStatus};
use crate::core::time::{Span, Timestamp};
use crate::error::{Error, Exit, Result};
use crate::report::{Column, Report, Table};
use crate::store::Store;
use crate::store::freezes::held_by;

/// Let go of a freeze: what is done at once, what is not settled only when it is
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  onefold thaw F-5c1d2e3f40
  onefold thaw F-5c1d2e3f40 --force --reason 'the incident is handled by hand'

Intents in REVIEW or UNSETTLED, or with steps left, stay frozen by themselves;
run it again when they are settled. Stock release thaws last.")]
pub struct ThawArgs {
    /// The freeze's id
    freeze: String,
    /// End it whole, whoever holds it and whatever is not settled
    #[arg(long, requires = "reason")]
    force: bool,
    /// Why it is forced
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Thaw although holds of kept orders have lapsed or are about to
    #[arg(long)]
    accept_lapsing: bool,
}

/// Holds that lapse so soon are told before they do.
const SOON: Span = Span::from_mins(15);
/// How many of them are listed.
const LISTED: usize = 20;

pub async fn run(config: &Config, args: ThawArgs) -> Result<Report> {
    let store = config.open_to_read().await?;
    let freeze = store.freeze_by_id(&args.freeze).await?;
    let now = now();
    if freeze.state == FreezeState::Thawed {
        return Ok(Report::new(json!({ "freeze": freeze, "still_frozen": [] }))
            .line(format!("{} is thawed already.", freeze.freeze_id)));
    }
    if args.force {
        let reason = args.reason.as_deref().map(str::trim).unwrap_or_default();
        if reason.is_empty() {
            return Err(Error::usage("--force needs a reason: it ends what another may rely on")
                .hint("onefold thaw FREEZE --force --reason TEXT"));
        }
        let thawed =
            store.thaw(&freeze, Vec::new(), &config.actor, &format!("forced: {reason}"), now).await?;
        let plans: HashSet<_> =
            store.plans_of(&freeze.freeze_id).await?.into_iter().map(|saved| saved.plan.plan_id).collect();
        let mut open = store.open_steps().await?;
        open.retain(|r| plans.contains(&r.plan_id));
        let steps: Vec<_> = open.iter().map(|r| r.step_key.as_str()).collect();
        let json = json!({ "freeze": thawed, "still_frozen": [], "steps_in_flight": steps });
        let report = Report::new(json).line(format!("{} is thawed, by force.", freeze.freeze_id));
        if open.is_empty() {
            return Ok(report);
        }
        let left = format!("{} of it {} open all the same:", count(open.len(), "step"), are(open.len()));
        return Ok(asked_about(report.line(left).table(step_table(&open)), &open));
    }
    held_by(&freeze, &config.actor, None)?;

    let progress = Progress::new(config, "reading and deciding");
    let (ledgers, intents) = decide(&store, &freeze).await?;
    progress.end();
    let lapsing = lapsing(&ledgers, &intents, now);
    if !lapsing.is_empty() && !args.accept_lapsing {
        let list = lapsing.iter().take(LISTED).map(|(id, why)| format!("\n  order {id}: {why}"));
        let more = lapsing.len().saturating_sub(LISTED);
        let more = if more > 0 { format!("\n  and {more} more") } else { String::new() };
        let list = list.collect::<String>() + &more;
        return Err(Error::refused(format!("holds of kept orders lapse{list}")).hint(format!(
            "confirm their stock first, or let them go: onefold thaw {} --accept-lapsing",
            freeze.freeze_id
        )));
    }
    let in_flight = in_flight(&store, &ledgers).await?;
    let held: Vec<HeldIntent> = intents.iter().filter_map(|i| held(i, &in_flight)).collect();
    let thawed = store.thaw(&freeze, held.clone(), &config.actor, "", now).await?;

    let mut report = Report::new(json!({
        "freeze": thawed,
        "still_frozen": held,
        "lapsing": lapsing.iter().map(|(id, why)| json!({ "order_id": id, "why": why })).collect::<Vec<_>>(),
    }));
    if !lapsing.is_empty() {
        let mut table = Table::new([Column::exact("KEPT ORDER"), Column::prose("ITS HOLD")]);
        lapsing.iter().take(LISTED).for_each(|(id, why)| table.row([id.to_string(), why.clone()]));
        report = report.table(table);
        let more = lapsing.len().saturating_sub(LISTED);
        if more > 0 {
            report = report.line(format!("… and {more} more (--json has them)"));
        }
    }
    if held.is_empty() {
        return Ok(report.line(format!("{} is thawed.", freeze.freeze_id)));
    }
    let mut table = Table::new([Column::prose("STILL FROZEN"), Column::prose("BECAUSE")]);
    for intent in &held {
        let orders: Vec<_> = intent.orders.iter().map(ToString::to_string).collect();
        let orphans = intent.orphans.iter().map(|(ledger, id)| format!("{} {id}", ledger.row_name()));
        table.row([orders.into_iter().chain(orphans).collect::<Vec<_>>().join(" "), intent.because.clone()]);
    }
    Ok(report
        .line(format!("{}: all is thawed but {}.", freeze.freeze_id, count(held.len(), "intent")))
        .table(table)
        .line("Settle these, then:")
        .command(format!("onefold thaw {}", freeze.freeze_id))
        .exit(Exit::Undecided))
}

/// The intents that the freeze holds, as they are to be decided now: each by the policies of the
/// plan of this freeze that held it last, else by the contract's defaults.
async fn decide(store: &Store, freeze: &Freeze) -> Result<(Ledgers, Vec<PlannedIntent>)> {
    let ledgers = store.read_scope(&freeze.scope).await?;
    let evidence = store.evidence_of(&ledgers).await?;
    let plans = store.plans_of(&freeze.freeze_id).await?;
    let mut policy_of: HashMap<(TenantId, Ledger, RowId), &Policy> = HashMap::new();
    for plan in plans.iter().map(|saved| &saved.plan) {
        for (tenant_id, ledger, id) in plan.intents.iter().flat_map(rows) {
            policy_of.entry((tenant_id.clone(), ledger, id)).or_insert(&plan.policy);
        }
    }
    let defaults = Policy::default();
    let mut policies = vec![&defaults];
    for plan in plans.iter().map(|saved| &saved.plan) {
        if !policies.contains(&&plan.policy) {
            policies.push(&plan.policy);
        }
    }
    let mut intents = Vec::new();
    for policy in policies {
        let decided = make(&ledgers, &freeze.scope, policy, freeze.frozen_at, &evidence)?.intents;
        intents.extend(decided.into_iter().filter(|intent| {
            rows(intent).any(|(tenant_id, ledger, id)| {
                policy_of.get(&(tenant_id.clone(), ledger, id)).copied().unwrap_or(&defaults) == policy
            })
        }));
    }
    if let Some(held) = freeze.held_rows() {
        intents.retain(|intent| rows(intent).any(|row| held.has(&row)));
    }
    Ok((ledgers, intents))
}

/// The orders and orphans of an intent.
fn rows(intent: &PlannedIntent) -> impl Iterator<Item = (&TenantId, Ledger, RowId)> {
    let orders = intent.orders.iter().map(|id| (Ledger::Orders, RowId::from(id)));
    orders.chain(intent.orphans.iter().cloned()).map(|(ledger, id)| (&intent.tenant_id, ledger, id))
}

/// Orders on one of whose rows a step of ours is open, and orphans that have one.
async fn in_flight(store: &Store, ledgers: &Ledgers) -> Result<HashSet<(TenantId, Ledger, RowId)>> {
    let orders: HashMap<_, _> = ledgers
        .payments
        .iter()
        .filter_map(|p| Some(((&p.tenant_id, RowId::from(&p.payment_id)), p.order_id.as_ref()?)))
        .collect();
    let steps = store.open_steps().await?;
    Ok(steps
        .iter()
        .map(|r| match orders.get(&(&r.tenant_id, r.step.id.clone())) {
            Some(order_id) if r.step.ledger == Ledger::Payments => {
                (r.tenant_id.clone(), Ledger::Orders, RowId::from(*order_id))
            }
            _ => (r.tenant_id.clone(), r.step.ledger, r.step.id.clone()),
        })
        .collect())
}

/// What only the provider can end, also where it blocks no decision.
const OPEN_ENDS: [Finding; 4] =
    [Finding::PaymentInDoubt, Finding::RefundInDoubt, Finding::OrderInMotion, Finding::RefundRefused];

fn held(intent: &PlannedIntent, in_flight: &HashSet<(TenantId, Ledger, RowId)>) -> Option<HeldIntent> {
    let because = match intent.outcome {
        _ if rows(intent)
            .any(|(tenant_id, ledger, id)| in_flight.contains(&(tenant_id.clone(), ledger, id))) =>
        {
            "a step of ours is open".to_owned()
        }
        Outcome::Clean => {
            let open: Vec<_> = intent.findings.iter().filter(|f| OPEN_ENDS.contains(f)).collect();
            if open.is_empty() {
                return None;
            }
            open.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        }
        Outcome::Keep | Outcome::Unwind => format!("{} not carried out", count(intent.steps.len(), "step")),
        Outcome::Review => {
            let reasons: Vec<_> = intent.review_reasons.iter().map(ToString::to_string).collect();
            format!("REVIEW: {}", reasons.join(" "))
        }
        Outcome::Unsettled => "UNSETTLED: the provider must say".to_owned(),
    };
    Some(HeldIntent {
        tenant_id: intent.tenant_id.clone(),
        orders: intent.orders.clone(),
        orphans: intent.orphans.clone(),
        because,
    })
}

/// Kept orders whose stock is only held, and not for much longer.
fn lapsing(ledgers: &Ledgers, intents: &[PlannedIntent], now: Timestamp) -> Vec<(OrderId, String)> {
    // Whether its intent was doubled. A purchase that never was and that nobody has paid for is its own
    // checkout's business; one that is paid waits for what the freeze has stopped.
    let mut kept: HashMap<(&TenantId, &OrderId), bool> = HashMap::new();
    for intent in intents {
        match (&intent.keep, intent.orders.as_slice()) {
            (None, [only]) => _ = kept.insert((&intent.tenant_id, only), false),
            (Some(keep), orders) => _ = kept.insert((&intent.tenant_id, keep), orders.len() > 1),
            (None, _) => {}
        }
    }
    let mut holds_of: HashMap<(&TenantId, &OrderId), Vec<&Hold>> = HashMap::new();
    for hold in &ledgers.inventory {
        if let Some(order_id) = &hold.order_id {
            holds_of.entry((&hold.tenant_id, order_id)).or_default().push(hold);
        }
    }
    let mut lapsing = Vec::new();
    for order in &ledgers.orders {
        let is_paid = matches!(order.status, OrderStatus::Paid | OrderStatus::Ticketed);
        match kept.get(&(&order.tenant_id, &order.order_id)) {
            None => continue,
            Some(was_doubled) if !was_doubled && !is_paid => continue,
            Some(_) => {}
        }
        let holds = holds_of.get(&(&order.tenant_id, &order.order_id)).into_iter().flatten();
        let holds: Vec<_> =
            holds.filter(|h| h.item.is_none() || order.item.is_none() || h.item == order.item).collect();
        let lapses = |until: Timestamp| {
            holds
                .iter()
                .filter(|h| match h.status {
                    HoldStatus::Confirmed => true,
                    HoldStatus::Held => h.expires_at.is_none_or(|at| at > until),
                    HoldStatus::Released | HoldStatus::Expired => false,
                })
                .map(|h| h.quantity)
                .sum::<i64>()
                < order.quantity
        };
        let first = holds.iter().filter(|h| h.status == HoldStatus::Held).filter_map(|h| h.expires_at).min();
        if let Some(at) = first.filter(|_| lapses(now.plus(SOON))) {
            let why = if at <= now { format!("lapsed at {at}") } else { format!("lapses at {at}") };
            lapsing.push((order.order_id.clone(), why));
        }
    }
    lapsing.sort();
    lapsing
}

fn are(n: usize) -> &'static str {
    if n == 1 { "is" } else { "are" }
}
