//! `onefold settle`: say how a request ended, where no provider can.

use clap::{Args, ValueEnum};
use serde_json::json;

use super::{executor, worker};
use crate::config::Config;
use crate::error::{Error, Exit, Result};
use crate::execute::settle::Verdict;
use crate::report::Report;
use crate::store::Store;
use crate::store::steps::StepRecord;

/// Say how a refund or void ended that no provider can tell of; journalled, never asked again
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  onefold settle 3f9c02aa71d4 --as done --reference re_3Q8 \\
      --because 'seen in the books of the provider'
  onefold settle 3f9c02aa71d4 --as refused \\
      --because 'the provider says so by phone, ticket 4711'

Look the charge up at the provider first. As done, the payment becomes
REFUNDED or VOIDED and apply goes on with its order; as refused, it goes back
and a person decides about the purchase. `onefold status` lists the steps.")]
pub struct SettleArgs {
    /// The step, or at least the first eight characters of it
    step: String,
    /// How it ended
    #[arg(long = "as", value_name = "HOW")]
    verdict: As,
    /// The provider's own name of the refund or void; needed with --as done
    #[arg(long, value_name = "REFERENCE", required_if_eq("verdict", "done"))]
    reference: Option<String>,
    /// How you know
    #[arg(long, value_name = "TEXT")]
    because: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum As {
    Done,
    Refused,
}

pub async fn run(config: &Config, args: SettleArgs) -> Result<Report> {
    if args.because.trim().is_empty() {
        return Err(Error::usage("--because needs a reason: the journal keeps it")
            .hint("how do you know? for example: seen in the provider's books"));
    }
    let store = config.open_ready().await?;
    let record = find(&store, &args.step).await?;
    let providers = config.providers(&store)?;
    let worker = worker(config, 0);
    let executor = executor(config, &store, &providers, &worker);
    let verdict = match args.verdict {
        As::Done => Verdict::Done,
        As::Refused => Verdict::Refused,
    };
    let plan_id = record.plan_id.clone();
    let (payment, key) = (record.step.id.clone(), record.step_key.clone());
    let (what, settled) = executor.settle(record, verdict, args.reference, args.because).await?;
    let json = json!({ "step_key": key, "payment_id": payment, "plan_id": plan_id, "settled": settled, "what": what });
    let report = Report::new(json).line(format!("payment {payment}: {what}"));
    if !settled {
        return Ok(report.exit(Exit::Undecided));
    }
    Ok(match verdict {
        Verdict::Done => report.line("Next:").command(format!("onefold apply {plan_id}")),
        Verdict::Refused => report.line("To have its purchase listed for a person:").command("onefold plan"),
    })
}

/// The open step that begins so.
async fn find(store: &Store, step: &str) -> Result<StepRecord> {
    if step.len() < 8 {
        return Err(Error::usage(format!("{step:?} is too short for a step"))
            .hint("at least eight characters; `onefold status` lists the steps"));
    }
    let mut open = store.open_steps().await?;
    open.retain(|r| r.step_key.starts_with(step));
    match (open.pop(), open.is_empty()) {
        (Some(record), true) => Ok(record),
        (Some(_), false) => {
            Err(Error::usage(format!("several open steps begin with {step}")).hint("give more of it"))
        }
        (None, _) => Err(match store.step(step).await? {
            Some(record) => Error::usage(format!("step {step} is {} already", record.state))
                .hint(format!("onefold history --plan {}", record.plan_id)),
            None => Error::usage(format!("no open step begins with {step}"))
                .hint("`onefold status` lists the steps in flight"),
        }),
    }
}
