//! `onefold approve`: a second person's word for a plan.

use clap::Args;
use serde_json::json;

use super::decided::{apply_line, money_in_words};
use super::plan::heading;
use super::{count, now};
use crate::config::Config;
use crate::core::approval::Approval;
use crate::error::{Error, Exit, Result};
use crate::report::Report;
use crate::store::Store;
use crate::store::plans::PlanState;
use crate::store::standing_rule::RuleWord;

/// Give your word for a plan, so that another person may apply it; changes no ledger
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  onefold approve PL-5c1d2e3f40 --because 'sums agree with the books'
  onefold approve PL-5c1d2e3f40 --because 'CHG-4711' \\
      --digest sha256:6f1c…

  onefold approve --rule --because 'CHG-4712: small refunds are fine'

Read the plan first: onefold report PLAN. The word is for exactly what the
plan decides: any change is a new digest and needs a new one. Which plans need
it is said in onefold.toml:

  [approval]
  required = true
  distinct = true         # by someone other than the plan's maker
  over = \"CNY:10000\"      # refunds up to so much need none,
  within = \"24h\"          # with those of the plans begun in this time before

The strictest rule that anybody set up or planned with stands in the database
for everyone. --rule puts the one of this onefold.toml in its place: a laxer
one takes the words of two people within 24 h where the rule that stands is
distinct.

A person is the user of the operating system and the database login; --owner
is only a label beside them.")]
pub struct ApproveArgs {
    /// The plan's id
    #[arg(required_unless_present = "rule")]
    plan: Option<String>,
    /// Give your word for the [approval] of this configuration, in the place of the rule that stands
    #[arg(long, conflicts_with_all = ["plan", "digest"])]
    rule: bool,
    /// Why, for the journal
    #[arg(long, value_name = "TEXT")]
    because: String,
    /// The digest of the plan that you read: another one is refused
    #[arg(long, value_name = "DIGEST")]
    digest: Option<String>,
}

pub async fn run(config: &Config, args: ApproveArgs) -> Result<Report> {
    if args.because.trim().is_empty() {
        return Err(Error::usage("--because needs a reason: the journal keeps it")
            .hint("what did you look at? for example: sums agree with the books"));
    }
    let store = config.open_ready().await?;
    let Some(plan_id) = &args.plan else { return rule(config, &store, args.because).await };
    let saved = store.plan_by_id(plan_id).await?;
    let plan = &saved.plan;
    let plan_id = &plan.plan_id;
    if let Some(read) = args.digest.filter(|read| *read != plan.digest) {
        return Err(Error::refused(format!("{plan_id} has the digest {}, not {read}", plan.digest))
            .hint(format!("read it again: onefold show {plan_id}")));
    }
    match (saved.state, &saved.superseded_by) {
        (PlanState::Open, _) => {}
        (PlanState::Superseded, Some(newer)) => {
            return Err(Error::refused(format!("{plan_id} was superseded by {newer}"))
                .hint(format!("read that one: onefold show {newer}")));
        }
        (PlanState::DryRun, _) => {
            return Err(Error::refused(format!("{plan_id} is a dry run, which is never applied"))
                .hint("approve a plan that was made under a live freeze"));
        }
        (state, _) => {
            return Err(Error::refused(format!("{plan_id} is {state}: it needs no approval any more"))
                .hint(format!("what was done: onefold history --plan {plan_id}")));
        }
    }
    let rule = store.rule_over(&saved, &config.approval).await?;
    let by = store.person().await?;
    if rule.distinct && saved.maker.as_ref().is_none_or(|maker| !by.is_other_than(maker)) {
        return Err(Error::refused(match &saved.maker {
            Some(maker) if *maker == by => {
                format!("{plan_id} was made by {by}, and needs the word of someone else")
            }
            Some(maker) => format!(
                "{plan_id} was made by {maker}, and {by} does not count as someone else: a name that says nothing \
                 tells nobody apart"
            ),
            None => format!("it is not known who made {plan_id}, so nobody's word counts as another's"),
        })
        .hint("ask another person, with an own user or database login; --owner is only a label"));
    }
    let approval = Approval {
        plan_id: plan_id.clone(),
        digest: plan.digest.clone(),
        by,
        actor: config.actor.clone(),
        because: args.because,
        at: now(),
    };
    let is_new = store.approve(&approval).await?;
    let mut report = Report::new(json!({ "approval": approval, "new": is_new })).title(heading(plan));
    let steps = plan.intents.iter().map(|i| i.steps.len()).sum();
    let refunds = plan.refunds();
    let money = money_in_words(&refunds);
    let money = if money.is_empty() { "nothing".to_owned() } else { money };
    report = report
        .line(format!("{}, {money} refunded, {}", count(steps, "step"), plan.digest))
        .line(format!("{} by {}.", if is_new { "approved" } else { "was approved already" }, approval.by));
    Ok(report.line("Next, whoever holds the freeze:").command(apply_line(&plan.plan_id, &refunds)))
}

/// Gives a word for the rule of this configuration.
async fn rule(config: &Config, store: &Store, because: String) -> Result<Report> {
    let word = Approval {
        plan_id: String::new(),
        digest: String::new(),
        by: store.person().await?,
        actor: config.actor.clone(),
        because,
        at: now(),
    };
    let before = store.standing_rule().await?;
    let came_of_it = store.approve_rule(&config.approval, &word).await?;
    let standing = store.standing_rule().await?;
    let json = json!({
        "before": before, "standing": standing, "asked_for": config.approval, "by": word.by,
        "words_missing": came_of_it == RuleWord::Noted,
    });
    let report = Report::new(json);
    Ok(match came_of_it {
        RuleWord::Stands => report.line(format!("It stands already: {}.", standing.rule)),
        RuleWord::Set => {
            report.line(format!("Until now {}.", before.rule)).line(format!("From now on {}.", standing.rule))
        }
        RuleWord::Noted => report
            .line(format!("Still {}.", standing.rule))
            .line(format!(
                "Noted is the word of {}, that {}. It takes another person's, under the same [approval]:",
                word.by, config.approval
            ))
            .command("onefold approve --rule --because TEXT")
            .exit(Exit::Undecided),
    })
}
