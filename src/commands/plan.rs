//! `onefold plan`: decide, save and print; no ledger is changed.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::decided::{LISTED, apply_line, tell};
use super::everything::{decided, from_everything, is_quick};
use super::files::{FileFlags, load, must_be_new, sifted, write_new_json};
use super::flags::{PolicyFlags, ScopeFlags, ZoneFlag};
use super::progress::Progress;
use super::{caveat, count, freeze_over, new_id, now};
use crate::config::Config;
use crate::core::approval::ApprovalRule;
use crate::core::evidence::{Evidence, KeepOverride};
use crate::core::freeze::{Freeze, FreezeMode};
use crate::core::ids::{OrderId, RowId, TenantId};
use crate::core::join::Intent;
use crate::core::ledger::Ledgers;
use crate::core::plain::{Basis, Listed, Listing};
use crate::core::plan::{Outcome, Plan, PlannedIntent, make, make_of};
use crate::core::plan_text::IntentTexts;
use crate::core::scope::Scope;
use crate::core::status::Ledger;
use crate::core::tally::Tally;
use crate::error::{Error, Exit, Result};
use crate::files::LedgerFiles;
use crate::report::{Report, Whole};
use crate::store::Store;
use crate::store::plans::{KeepChanges, Maker};

/// Decide which order each purchase keeps and how the others are unwound; changes no ledger
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  onefold plan --show S-204
  onefold plan --show S-204 --distinct-keys merge \\
      --keep O-501 --because 'the buyer holds this ticket'
  onefold plan --files exports/ --as-of '2026-11-11 20:20' \\
      --timezone Asia/Shanghai --output plan.json

A plan made under a live freeze takes its time and can be applied. One without a freeze, or with
--as-of, is a dry run. Without scope flags the scope is that of the live freeze, else everything.")]
pub struct PlanArgs {
    /// Decide as of this time: a dry run
    #[arg(long, value_name = "TIME", conflicts_with = "freeze")]
    as_of: Option<String>,
    /// The freeze to plan under, where several overlap the scope
    #[arg(long, value_name = "FREEZE")]
    freeze: Option<String>,
    /// Keep this order of its intent, whatever the table says; may be repeated
    #[arg(long, value_name = "ORDER", requires = "because")]
    keep: Vec<String>,
    /// Why, for all of --keep
    #[arg(long, value_name = "TEXT", requires = "keep")]
    because: Option<String>,
    /// No longer keep to an earlier --keep; may be repeated
    #[arg(long, value_name = "ORDER")]
    withdraw_keep: Vec<String>,
    /// Decide from four CSV files in this folder, without a database
    #[arg(long, value_name = "DIR", conflicts_with_all = ["freeze", "withdraw_keep"])]
    files: Option<PathBuf>,
    /// Write the plan as JSON to a new file
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// End with 3 where steps are planned, with 6 where a person or the provider must decide first
    #[arg(long)]
    detailed_exitcode: bool,
    #[command(flatten)]
    zone: ZoneFlag,
    #[command(flatten)]
    scope: ScopeFlags,
    #[command(flatten)]
    policy: PolicyFlags,
    #[command(flatten)]
    file_flags: FileFlags,
}

pub async fn run(config: &Config, args: PlanArgs) -> Result<Report> {
    let mut scope = args.scope.scope(args.zone)?;
    let as_of = args.as_of.as_deref().map(|t| args.zone.time("--as-of", t)).transpose()?;
    let policy = args.policy.policy();
    if args.because.as_deref().is_some_and(|b| b.trim().is_empty()) {
        return Err(Error::usage("--because needs a reason: the journal keeps it with the plan")
            .hint("onefold plan --keep ORDER --because TEXT"));
    }
    if let Some(path) = &args.output {
        must_be_new(path)?;
    }
    let made_at = now();
    let mut keeps = KeepChanges::default();
    let mut under: Option<Freeze> = None;
    let mut outside = Vec::new();
    let mut needs = None;

    // The intents of a plan of very many, of which those in its own list are some.
    let mut texts: Option<IntentTexts> = None;
    // Who reads no JSON is not made to wait for that of a million intents.
    let whole = config.format.is_json() || args.output.is_some();
    let (plan, all) = if let Some(dir) = &args.files {
        let options = args.file_flags.options(args.zone)?;
        let files = LedgerFiles::in_dir(dir)?;
        let as_of = as_of.unwrap_or(made_at);
        let basis = Basis { policy: policy.clone(), as_of, evidence: Evidence::default() };
        // A choice of the operator's may be of any order, plain or not.
        let sifted = if args.keep.is_empty() { sifted(config, &files, &options, &basis) } else { None };
        let listing = Listing { intents: Listed::First(LISTED), texts: whole };
        let quick =
            sifted.and_then(|sifted| decided(config, &sifted, &scope, listing, made_at)).transpose()?;
        if let Some(quick) = quick {
            let all = quick.tally();
            texts = Some(quick.texts);
            (quick.plan, all)
        } else {
            let ledgers = load(config, &files, &options)?;
            let mut evidence = Evidence::default();
            choose(&args, &ledgers, &scope, &mut evidence, &mut keeps)?;
            let progress = Progress::new(config, "deciding");
            let decided = make(&ledgers, &scope, &policy, as_of, &evidence)?;
            progress.end();
            let plan = decided.into_plan(new_id("PL"), made_at, None);
            let all = Tally::of(&plan.intents);
            (plan, all)
        }
    } else {
        let store = config.open_ready().await?;
        let freeze = match as_of {
            Some(_) => None,
            None => freeze_over(&store, &mut scope, args.freeze.as_deref(), made_at).await?,
        };
        let as_of = as_of.or(freeze.as_ref().map(|f| f.frozen_at)).unwrap_or(made_at);
        let freeze_id = freeze.as_ref().map(|f| f.freeze_id.clone());
        let person = store.person().await?;
        let maker = Maker { actor: &config.actor, person: &person, approval: &config.approval };
        // A choice may be of any order, plain or not.
        let is_quick = args.keep.is_empty() && is_quick(&store, &scope, freeze.as_ref()).await?;
        let quick = match is_quick {
            true => {
                let basis = |mut evidence| {
                    withdraw(&args, &scope, &mut evidence, &mut keeps)?;
                    Ok(Basis { policy: policy.clone(), as_of, evidence })
                };
                let listing = Listing { intents: Listed::ButPlain, texts: true };
                from_everything(config, &store, &scope, basis, listing, made_at).await?
            }
            false => None,
        };
        let (rule, plan, all) = if let Some(mut quick) = quick {
            quick.plan.freeze_id = freeze_id;
            let rule = store.save_plan_as(&quick.plan, &quick.texts, &keeps, maker).await?;
            let all = quick.tally();
            texts = Some(quick.texts);
            if let Some(freeze) = freeze.as_ref().filter(|_| !scope.is_everything()) {
                let look = |intents: &[&PlannedIntent], ledgers: &Ledgers| {
                    outside.extend(freeze.outside(intents, ledgers));
                    Ok(())
                };
                store.each_moved(&quick.plan.with_steps(), look).await?;
            }
            (rule, quick.plan, all)
        } else {
            let progress = Progress::new(config, "reading and deciding");
            let ledgers = store.read_scope(&scope).await?;
            let mut evidence = store.evidence_of(&ledgers).await?;
            // The quick way may have begun with them.
            keeps = KeepChanges::default();
            withdraw(&args, &scope, &mut evidence, &mut keeps)?;
            choose(&args, &ledgers, &scope, &mut evidence, &mut keeps)?;
            let held = freeze.as_ref().and_then(Freeze::held_rows);
            let may_plan = |intent: &Intent<'_>| held.as_ref().is_none_or(|held| held.touches(intent));
            let decided = make_of(&ledgers, &scope, &policy, as_of, &evidence, may_plan)?;
            let plan = decided.into_plan(new_id("PL"), made_at, freeze_id);
            let rule = store.save_plan(&plan, &keeps, maker).await?;
            outside = freeze.as_ref().map_or_else(Vec::new, |f| f.outside(&plan.with_steps(), &ledgers));
            progress.end();
            let all = Tally::of(&plan.intents);
            (rule, plan, all)
        };
        if freeze.is_some() {
            needs = store.why_approved(&plan, &all, &rule, made_at).await?.map(|why| (rule, why));
        }
        under = freeze;
        (plan, all)
    };
    let lists = texts.is_none() && (whole || args.files.is_none());
    let json = if lists { json!(plan) } else { json!(plan.without_intents()) };
    if let Some(path) = &args.output {
        write_new_json(path, &Whole { json: &json, intents: texts.as_ref() })?;
    }
    let report = tell(basis(Report::new(json).title(heading(&plan)), &plan), &plan, &all, LISTED);
    let narrowed = under.as_ref().and_then(|f| Some((&f.freeze_id, f.narrowed_to.as_ref()?.len())));
    let narrowed = narrowed.map(|(freeze_id, held)| {
        format!(
            "{freeze_id} is narrowed: decided are only the {} that it still holds.",
            count(held, "intent")
        )
    });
    let caveat = under.as_ref().and_then(caveat);
    // A narrowed freeze may hold nothing more of a scope that is right.
    let nothing = (all.intents() == 0 && narrowed.is_none())
        .then(|| "No row is in scope: is the name right?".to_owned());
    let mut report = nothing.into_iter().chain(caveat).chain(narrowed).fold(report, Report::line);
    report.intents = texts.filter(|_| whole);
    report.json["freeze_mode"] = json!(under.as_ref().map(|f| f.mode));
    let report =
        if args.files.is_some() { report } else { next(report, &plan, under.as_ref(), &outside, needs) };
    Ok(if args.detailed_exitcode { report.exit(detailed_exit(&all)) } else { report })
}

/// The digest of a plan as it would be made now, under its freeze.
pub async fn digest_now(config: &Config, store: &Store, plan: &Plan, freeze: &Freeze) -> Result<String> {
    let Plan { scope, policy, as_of, .. } = plan;
    if is_quick(store, scope, Some(freeze)).await? {
        let basis = |evidence| Ok(Basis { policy: policy.clone(), as_of: *as_of, evidence });
        let listing = Listing { intents: Listed::First(0), texts: false };
        if let Some(again) = from_everything(config, store, scope, basis, listing, plan.made_at).await? {
            return Ok(again.plan.digest);
        }
    }
    let progress = Progress::new(config, "deciding again");
    let ledgers = store.read_scope(scope).await?;
    let evidence = store.evidence_of(&ledgers).await?;
    let held = freeze.held_rows();
    let may_plan = |intent: &Intent<'_>| held.as_ref().is_none_or(|held| held.touches(intent));
    let again = make_of(&ledgers, scope, policy, *as_of, &evidence, may_plan)?;
    progress.end();
    Ok(again.into_plan(plan.plan_id.clone(), plan.made_at, None).digest)
}

/// Withdraws the operator's earlier choices.
fn withdraw(args: &PlanArgs, scope: &Scope, evidence: &mut Evidence, keeps: &mut KeepChanges) -> Result<()> {
    for order in &args.withdraw_keep {
        let order_id = OrderId::from(order.as_str());
        let of: Vec<TenantId> = evidence
            .keeps
            .keys()
            .filter(|(tenant, id)| {
                *id == order_id && (scope.tenants.is_empty() || scope.tenants.contains(tenant))
            })
            .map(|(tenant, _)| tenant.clone())
            .collect();
        if of.is_empty() {
            return Err(Error::usage(format!("order {order_id} is not chosen to be kept"))
                .hint("`onefold history --order ORDER` shows what was chosen"));
        }
        for tenant_id in of {
            evidence.keeps.remove(&(tenant_id.clone(), order_id.clone()));
            keeps.withdrawn.push((tenant_id, order_id.clone()));
        }
    }
    Ok(())
}

/// The operator's new choices, as the decision is to know them.
fn choose(
    args: &PlanArgs,
    ledgers: &Ledgers,
    scope: &Scope,
    evidence: &mut Evidence,
    keeps: &mut KeepChanges,
) -> Result<()> {
    for order in &args.keep {
        let order_id = OrderId::from(order.as_str());
        let mut tenants: Vec<_> = ledgers
            .orders
            .iter()
            .filter(|o| {
                o.order_id == order_id && (scope.tenants.is_empty() || scope.tenants.contains(&o.tenant_id))
            })
            .map(|o| (o.tenant_id.clone(), o.status))
            .collect();
        let (tenant_id, status) = match (tenants.pop(), tenants.is_empty()) {
            (None, _) => {
                return Err(Error::usage(format!("--keep {order_id}: there is no such order in this scope"))
                    .hint("look for it with `onefold reconcile --all`, or widen the scope"));
            }
            (Some(_), false) => {
                return Err(Error::usage(format!("--keep {order_id}: several tenants have such an order"))
                    .hint("name one with --tenant"));
            }
            (Some(order), true) => order,
        };
        if !status.is_live() {
            return Err(Error::usage(format!("order {order_id} cannot be kept: it is {status}, not live"))
                .hint("choose a live order"));
        }
        let because = args.because.clone().unwrap_or_default();
        evidence.keeps.insert((tenant_id.clone(), order_id.clone()), because.clone());
        keeps.chosen.push((tenant_id, KeepOverride { order_id, because }));
    }
    Ok(())
}

pub fn heading(plan: &Plan) -> String {
    format!("{}: {}", plan.plan_id, plan.scope.in_words())
}

pub fn basis(report: Report, plan: &Plan) -> Report {
    let under = match &plan.freeze_id {
        Some(freeze_id) => format!("under {freeze_id}"),
        None => "a dry run".to_owned(),
    };
    report.line(format!("as of {}, {under}", plan.as_of)).line(&plan.digest)
}

/// What to type next. `outside` are rows with steps that the freeze does not cover; `needs` says which rule asks
/// for an approval, and why.
fn next(
    report: Report,
    plan: &Plan,
    under: Option<&Freeze>,
    outside: &[(Ledger, RowId)],
    needs: Option<(ApprovalRule, String)>,
) -> Report {
    let unsettled = plan.intents.iter().filter(|i| i.outcome == Outcome::Unsettled).count();
    let review = plan.intents.iter().filter(|i| i.outcome == Outcome::Review).count();
    let mut report = report;
    if unsettled > 0 {
        report = report
            .line(format!("{} for the provider to settle:", count(unsettled, "intent")))
            .command(format!("onefold converge --plan {}", plan.plan_id));
    }
    if plan.intents.iter().all(|i| i.steps.is_empty()) {
        return report.line(match (unsettled, review) {
            (0, 0) => "Nothing to do: no step is planned.".to_owned(),
            (_, 0) => "No step is planned until then.".to_owned(),
            _ => format!("No step is planned: {} for a person to decide.", count(review, "intent")),
        });
    }
    let Some(freeze) = under else {
        return report.line("A dry run: freeze the scope and plan again to have a plan that can be applied.");
    };
    let freeze_id = &freeze.freeze_id;
    if let Some((ledger, id)) = outside.first() {
        return report
            .line(format!(
                "{freeze_id} does not cover {} with steps ({} {id}, …), so this plan cannot be applied: freeze a wider \
                 scope, or plan a narrower one.",
                count(outside.len(), "row"),
                ledger.row_name()
            ));
    }
    if freeze.mode == FreezeMode::Recorded {
        return report
            .line("Next, so that the freeze holds; then plan again:")
            .command(format!("onefold freeze --renew {freeze_id} --enforce"));
    }
    if let Some((rule, why)) = needs {
        let by = if rule.distinct { "another person's approval" } else { "an approval" };
        report = report
            .line(format!("It needs {by}: {why}."))
            .command(format!("onefold approve {} --because TEXT", plan.plan_id));
    }
    report.line("Next:").command(apply_line(&plan.plan_id, &plan.refunds()))
}

/// What decided intents say of themselves to a script.
pub fn detailed_exit(all: &Tally) -> Exit {
    let exit = if all.steps() > 0 { Exit::StepsPlanned } else { Exit::Done };
    let undecided = [Outcome::Review, Outcome::Unsettled].map(|outcome| all.counts(outcome).intents);
    if undecided == [0, 0] { exit } else { exit.or(Exit::Undecided) }
}
