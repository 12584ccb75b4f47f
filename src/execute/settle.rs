//! What a person says of a request that no provider can tell of.

use super::converge::in_words;
use super::moves::{entry, must_be_planned};
use super::{Executor, Tell};
use crate::error::{Error, Result};
use crate::providers::{Answer, Found};
use crate::store::journal::Event;
use crate::store::steps::{Claim, StepRecord};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Done,
    Refused,
}

impl Executor<'_> {
    /// Records how a request that may have been sent has ended, on a person's word, and moves its payment
    /// accordingly; in words, and whether it is settled.
    ///
    /// # Errors
    /// Usage, where no request can have left: nothing is there to be settled. Refused, where the provider
    /// answers itself, another process is at it, or what is recorded of it is not what its plan decided.
    pub async fn settle(
        &self,
        record: StepRecord,
        verdict: Verdict,
        reference: Option<String>,
        because: String,
    ) -> Result<(String, bool)> {
        if !record.sent {
            return Err(Error::usage(format!(
                "nothing was sent for the step of {} {}",
                record.step.ledger.row_name(),
                record.step.id
            ))
            .hint(format!("onefold apply {} goes on with it", record.plan_id)));
        }
        must_be_planned(&self.store.plan_by_id(&record.plan_id).await?.plan.intents, &record)?;
        let record = match self.claim_begun(self.as_ours(record)).await? {
            Claim::Sent(record) => record,
            Claim::Done(record) => return Ok((format!("it is {} already", record.state), true)),
            Claim::Busy(record) => {
                return Err(Error::refused(format!(
                    "{} is at it",
                    record.owner.as_deref().unwrap_or("another process")
                ))
                .hint("wait until it has ended, and see with `onefold status`"));
            }
            other => return Err(Error::refused(format!("it cannot be settled: {other:?}"))),
        };
        if let Some(request) = self.request(&record).await?
            && self.other_way(&record, &request)?.is_none()
            && let Found::Request(answer) =
                self.provider(&request.charge)?.ask(&request, (self.clock)()).await?
        {
            let says = match (&answer, verdict) {
                (Answer::Done(_), Verdict::Done) | (Answer::Refused(_), Verdict::Refused) => None,
                (Answer::Done(_), _) => Some("that it is done"),
                (Answer::Refused(_), _) => Some("that it was refused"),
                (Answer::Accepted(_), _) => Some("that it has taken it and not finished it"),
                (Answer::NotSent(_) | Answer::Unknown(_), _) => None,
            };
            if let Some(says) = says {
                self.put_down(record.clone(), "a person was asked, and the provider answers").await?;
                return Err(Error::refused(format!("the provider says {says}")).hint(format!(
                    "onefold converge --plan {} goes by what the provider says",
                    record.plan_id
                )));
            }
        }
        let how = match verdict {
            Verdict::Done => "as done",
            Verdict::Refused => "as refused",
        };
        let reference_told = reference.iter().map(|r| format!(", reference {r}")).collect::<String>();
        let told = format!("{how}{reference_told}: {because}");
        let noted = StepRecord { note: Some(told), provider_ref: reference.clone(), ..record.clone() };
        self.store.append(&entry(&self.worker.actor, &noted, Event::SettledByHand)).await?;
        let answer = match verdict {
            Verdict::Done => Answer::Done(reference),
            Verdict::Refused => Answer::Refused(because),
        };
        let ask = if record.step.is_refund() { "refund" } else { "void" };
        let watch: &Tell<'_> = &|_| std::ops::ControlFlow::Continue(());
        Ok(in_words(ask, self.conclude(record, answer, watch).await?))
    }
}
