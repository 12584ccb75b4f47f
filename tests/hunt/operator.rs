//! What an operator's process does, as the commands do it: apply, converge, plan, renew, take over.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::{Arc, LazyLock};

use onefold::core::freeze::Freeze;
use onefold::core::ids::TenantId;
use onefold::core::plan::{Plan, make};
use onefold::core::policy::Policy;
use onefold::core::status::Ledger;
use onefold::core::tally::Tally;
use onefold::core::time::Span;
use onefold::error::{Error, Result};
use onefold::execute::command::Commands;
use onefold::execute::converge::Learned;
use onefold::execute::pace::Pace;
use onefold::execute::{Executor, IntentEnd, Moment, Watch};
use onefold::providers::{ANY, Providers};
use onefold::store::Store;
use onefold::store::freezes::{held_by, lapsed};
use onefold::store::plans::PlanState;
use onefold::store::steps::Worker;

use crate::common::NO_APPROVAL;

use super::bank::{Bank, Teller};
use super::ground::{self, FIRST_PLAN, FREEZE};
use super::mutants::Mutant;
use super::stage::{clock, pause, tell};

/// One thing that an operator does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    ApplyFirst,
    ApplyNewest,
    Plan,
    Converge,
    Renew,
    TakeOver,
}

/// A process of an operator.
pub struct Operator<'a> {
    pub store: &'a Store,
    pub bank: Arc<Bank>,
    pub mutant: &'a Mutant,
    /// As freezes and the journal name him.
    pub actor: String,
    /// Names this process and what it makes.
    pub process: String,
}

static NO_COMMANDS: LazyLock<Commands> = LazyLock::new(Commands::default);

fn words(moment: Moment<'_>) -> String {
    match moment {
        Moment::Intent(intent) => format!("begins {}", intent.intent_id),
        Moment::Claimed(s) => format!("has claimed {} {}→{}", s.id, s.from, s.to),
        Moment::Answered(s) => format!("has an answer about {}", s.id),
        Moment::Moved(s) => format!("has moved {} {}→{}", s.id, s.from, s.to),
        Moment::Ended(r) => {
            format!("has recorded {} {}→{} as {}", r.step.id, r.step.from, r.step.to, r.state)
        }
        Moment::Open(r) => {
            format!("knows no end of {} {}→{}: {}", r.step.id, r.step.from, r.step.to, r.state)
        }
    }
}

impl Operator<'_> {
    fn worker(&self, token: i64) -> Worker {
        // Each process is on a machine of its own, so that nobody can see that it is gone: leases decide.
        let owner = format!("{}#{}/1-1", self.actor, self.process);
        Worker { actor: self.actor.clone(), owner, token, lease: Span::from_secs(60) }
    }

    async fn with_executor<T>(
        &self,
        token: i64,
        work: impl AsyncFnOnce(&Executor<'_>) -> Result<T>,
    ) -> Result<T> {
        let worker = self.worker(token);
        let teller = Teller { bank: Arc::clone(&self.bank), hasty: self.mutant.hasty };
        let providers = Providers::default().with(ANY, teller);
        work(&Executor {
            store: self.store,
            providers: &providers,
            worker: &worker,
            commands: &NO_COMMANDS,
            approval: &NO_APPROVAL,
            clock,
        })
        .await
    }

    /// Does something and tells how it ended. An error that is no refusal is a defect.
    pub async fn act(&mut self, act: Act) -> std::result::Result<(), String> {
        tell(|| format!("{} ({}): {act:?}", self.actor, self.process));
        let done = match act {
            Act::ApplyFirst => self.apply(FIRST_PLAN).await.map(|ends| format!("{ends:?}")),
            Act::ApplyNewest => self.apply_newest().await.map(|ends| format!("{ends:?}")),
            Act::Plan => {
                let name = format!("PL-{}", self.process);
                self.plan(&name).await;
                Ok(name)
            }
            Act::Converge => self.converge().await.map(|learned| format!("{learned:?}")),
            Act::Renew => self.renew().await.map(|f| format!("until {}", f.lease_until)),
            Act::TakeOver => self.take_over().await.map(|f| format!("token {}", f.token)),
        };
        match done {
            Ok(how) => tell(|| format!("{act:?} ends: {how}")),
            Err(error) if error.exit == onefold::error::Exit::Refused => {
                tell(|| format!("{act:?} is refused: {error}"))
            }
            Err(error) => return Err(format!("{act:?} fails: {error}")),
        }
        Ok(())
    }

    pub async fn plan(&self, plan_id: &str) -> Plan {
        ground::plan(self.store, plan_id, &self.actor, self.mutant).await
    }

    pub async fn renew(&self) -> Result<Freeze> {
        self.store.renew(FREEZE, &self.actor, None, Span::from_mins(30), true, clock()).await
    }

    pub async fn take_over(&mut self) -> Result<Freeze> {
        self.actor = format!("op-{}", self.process);
        self.store.take_over(FREEZE, &self.actor, "the holder is gone", Span::from_mins(30), clock()).await
    }

    /// Applies a plan as the command does; how each of its intents ended.
    pub async fn apply(&self, plan_id: &str) -> Result<Vec<(String, IntentEnd)>> {
        let saved = self.store.plan_by_id(plan_id).await?;
        if saved.state == PlanState::Ended {
            return Ok(Vec::new());
        }
        if let Some(newer) = saved.superseded_by {
            return Err(Error::refused(format!("{plan_id} was superseded by {newer}")));
        }
        let freeze = self.store.freeze_by_id(FREEZE).await?;
        held_by(&freeze, &self.actor, None)?;
        if !freeze.is_live(clock()) {
            return Err(lapsed(&freeze));
        }
        let watch: &mut Watch<'_> = &mut |moment| {
            if pause(false, || words(moment)) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let token = freeze.token;
        let applied = self
            .with_executor(token, async |executor| {
                let applying = executor.begin(&saved.plan, &Tally::of(&saved.plan.intents), &freeze).await?;
                applying.carry_out(&saved.plan.with_steps(), &Pace::alone(), watch).await
            })
            .await?;
        if applied.is_whole() {
            self.store.end_plan(plan_id, &self.actor, "whole", clock()).await?;
        }
        if applied.intents.iter().any(|(_, end)| *end == IntentEnd::BrokenOff) {
            std::panic::resume_unwind(Box::new(super::stage::Killed));
        }
        Ok(applied.intents)
    }

    pub async fn apply_newest(&self) -> Result<Vec<(String, IntentEnd)>> {
        let open = self.store.plans_of(FREEZE).await?.into_iter().find(|p| p.state == PlanState::Open);
        match open {
            Some(saved) => self.apply(&saved.plan.plan_id).await,
            None => Ok(Vec::new()),
        }
    }

    /// Asks about everything whose end is open, as the command does over the freeze's scope.
    pub async fn converge(&self) -> Result<Vec<Learned>> {
        self.with_executor(0, async |executor| {
            let mut learned = executor.converge_steps(self.store.open_steps().await?).await?;
            let freeze = self.store.freeze_by_id(FREEZE).await?;
            let ledgers = self.store.read_scope(&freeze.scope).await?;
            let evidence = self.store.evidence().await?;
            let decided =
                make(&ledgers, &freeze.scope, &Policy::default(), freeze.frozen_at, &evidence).unwrap();
            let open =
                self.store.open_steps().await?.into_iter().filter(|r| r.step.ledger == Ledger::Payments);
            let ours: BTreeSet<(TenantId, _)> = open.map(|r| (r.tenant_id, r.step.id)).collect();
            learned.extend(executor.converge_charges(&decided.intents, &ledgers, &ours).await?);
            Ok(learned)
        })
        .await
    }
}
