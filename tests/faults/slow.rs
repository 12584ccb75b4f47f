//! A worker that is only slow, and not gone, when another goes on in its place; and a provider whose
//! answers come out of turn.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::ControlFlow;

use async_trait::async_trait;
use onefold::core::tally::Tally;
use onefold::core::time::Timestamp;
use onefold::error::{Exit, Result};
use onefold::execute::command::Commands;
use onefold::execute::pace::Pace;
use onefold::execute::{Executor, IntentEnd, Moment};
use onefold::providers::sandbox::Sandbox;
use onefold::providers::{ANY, Answer, Charge, ChargeState, Found, Provider, Providers, Request};
use onefold::store::steps::{StepRecord, StepState};
use onefold::store::{Places, Queries, Statuses, Store};

use super::scene::*;
use crate::common::NO_APPROVAL;
use crate::common::databases::{Db, Kind, aside, wait};
use crate::on_every_database;

/// A sandbox whose word about payment P-O-E is taken from a script as long as there is one.
struct Scripted<'s> {
    sandbox: Sandbox<'s>,
    /// What is answered to a request that the sandbox is not told of, or, where it is none, that it
    /// carries out and of which no answer arrives.
    sends: RefCell<VecDeque<Option<Answer>>>,
    asks: RefCell<VecDeque<Found>>,
}

#[async_trait(?Send)]
impl Provider for Scripted<'_> {
    fn kind(&self) -> &'static str {
        "sandbox"
    }

    fn name(&self) -> String {
        "scripted".to_owned()
    }

    async fn send(&self, request: &Request, now: Timestamp) -> Result<Answer> {
        let next = || self.sends.borrow_mut().pop_front();
        match (request.charge.payment_id.as_str() == "P-O-E").then(next).flatten() {
            None => self.sandbox.send(request, now).await,
            Some(Some(answer)) => Ok(answer),
            Some(None) => {
                let _ = self.sandbox.send(request, now).await?;
                Ok(Answer::Unknown("no answer".to_owned()))
            }
        }
    }

    async fn ask(&self, request: &Request, now: Timestamp) -> Result<Found> {
        let next = || self.asks.borrow_mut().pop_front();
        match (request.charge.payment_id.as_str() == "P-O-E").then(next).flatten() {
            None => self.sandbox.ask(request, now).await,
            Some(found) => Ok(found),
        }
    }

    async fn charge_state(&self, charge: &Charge, now: Timestamp) -> Result<ChargeState> {
        self.sandbox.charge_state(charge, now).await
    }
}

/// Applies a night's plan through a provider; how the intent of P-O-E ended.
async fn end_through(night: &Night<'_>, providers: &Providers<'_>) -> IntentEnd {
    let worker = night.worker();
    let commands = Commands::default();
    let executor = Executor {
        store: night.store,
        providers,
        worker: &worker,
        commands: &commands,
        approval: &NO_APPROVAL,
        clock,
    };
    let watch: &mut onefold::execute::Watch<'_> = &mut |_| ControlFlow::Continue(());
    let applied = executor
        .begin(&night.plan, &Tally::of(&night.plan.intents), &night.freeze)
        .await
        .unwrap()
        .carry_out(&night.plan.with_steps(), &Pace::alone(), watch)
        .await
        .unwrap();
    applied.intents.into_iter().next_back().unwrap().1
}

/// The step on which the provider is asked about P-O-E.
async fn request_of(night: &Night<'_>) -> StepRecord {
    let steps = night.store.steps_of_plan(&night.plan.plan_id).await.unwrap();
    let second = |r: &StepRecord| r.step.id.as_str() == "P-O-E" && r.step.to == "REFUNDED";
    steps.into_iter().find(second).unwrap()
}

/// Another process of the operator applies the plan, and what it asks about P-O-E is not answered.
fn another_applies(db: &Db, night: &Night<'_>) {
    aside(async || {
        let store = db.open().await;
        let sandbox = Sandbox::well_behaved(&store);
        let lost = Answer::Unknown("lost, or on its way".to_owned());
        let scripted =
            Scripted { sandbox, sends: RefCell::new([Some(lost)].into()), asks: RefCell::default() };
        let providers = Providers::default().with(ANY, scripted);
        let (worker, commands) = (living_worker("op", night.freeze.token, "other"), Commands::default());
        let executor = Executor {
            store: &store,
            providers: &providers,
            worker: &worker,
            commands: &commands,
            approval: &NO_APPROVAL,
            clock,
        };
        let watch: &mut onefold::execute::Watch<'_> = &mut |_| ControlFlow::Continue(());
        let applied = executor
            .begin(&night.plan, &Tally::of(&night.plan.intents), &night.freeze)
            .await
            .unwrap()
            .carry_out(&night.plan.with_steps(), &Pace::alone(), watch)
            .await
            .unwrap();
        assert!(matches!(applied.intents.last(), Some((_, IntentEnd::Unknown(_)))), "{applied:?}");
    });
}

on_every_database! {
    async fn a_second_attempt_that_does_not_leave_forgets_nothing_of_the_first(db) {
        let store = db.store().await;
        let calm = calm(&store, db).await;
        let night = Night::begin(&store, "twice").await;
        let lost = Answer::Unknown("the first is lost, or on its way".to_owned());
        let scripted = Scripted {
            sandbox: Sandbox::well_behaved(&store),
            sends: RefCell::new([Some(lost), Some(Answer::NotSent("no connection".to_owned()))].into()),
            asks: RefCell::default(),
        };
        let providers = Providers::default().with(ANY, scripted);
        for attempt in 1..=2 {
            let end = end_through(&night, &providers).await;
            assert!(matches!(end, IntentEnd::Unknown(_)), "{attempt}: {end:?}");
            let request = request_of(&night).await;
            assert!(request.sent && request.sent_at.is_some(), "{attempt}: {request:?}");
            assert_eq!(request.state, StepState::Unknown, "{attempt}");
        }
        night.finish().await;
        assert_eq!(outcome(&night, db).await, calm);
    }

    async fn a_request_that_did_its_work_between_two_questions_is_not_given_up(db) {
        let store = db.store().await;
        let calm = calm(&store, db).await;
        let night = Night::begin(&store, "between").await;
        let scripted = Scripted {
            sandbox: Sandbox::well_behaved(&store),
            sends: RefCell::new([None].into()),
            asks: RefCell::new([Found::Nothing { listed: true }].into()),
        };
        let providers = Providers::default().with(ANY, scripted);
        assert!(matches!(end_through(&night, &providers).await, IntentEnd::Unknown(_)));
        assert_eq!(end_through(&night, &providers).await, IntentEnd::Done);
        assert_eq!(request_of(&night).await.state, StepState::Done);
        assert_eq!(outcome(&night, db).await, calm);
    }

    async fn whoever_wakes_up_after_its_claim_was_taken_over_sends_nothing(db) {
        let store = db.store().await;
        let calm = calm(&store, db).await;
        let night = Night::begin(&store, "slow").await;
        let ended = night.apply(|moment| {
            if matches!(moment, Moment::Claimed(step) if step.id.as_str() == "P-O-E") {
                another_applies(db, &night);
            }
            ControlFlow::Continue(())
        }).await;
        assert_eq!(ended.unwrap_err().exit, Exit::Refused);
        let sent = "SELECT COUNT(*) FROM onefold_journal WHERE tenant_id = 'slow' AND row_id = 'P-O-E' AND event = 'sent'";
        assert_eq!(db.rows(sent).await, [["1"]], "by the other");
        night.finish().await;
        assert_eq!(outcome(&night, db).await, calm);
    }
}

/// The ledgers in one file, and the journal in another.
#[test]
fn a_move_that_was_given_up_is_not_made_later_by_a_worker_that_was_only_slow() {
    wait(async {
        let (journal, ledgers) = (Db::new(Kind::Sqlite), Db::new(Kind::Sqlite));
        let places = Places {
            journal: journal.url.clone(),
            ledgers: std::array::from_fn(|_| vec![ledgers.url.clone()]),
        };
        let open =
            async || Store::open(&places, Queries::default(), Statuses::default(), true).await.unwrap();
        let store = open().await;
        store.init().await.unwrap();
        let calm = calm(&store, &journal).await;
        let mut number = 0;
        loop {
            let night = Night::begin(&store, &format!("n{number}")).await;
            let (mut at, mut stalled) = (0, None);
            let ended = night
                .apply(|moment| {
                    if let Moment::Claimed(step) = moment {
                        at += 1;
                        if at > number && stalled.is_none() {
                            stalled = Some((step.ledger, step.id.clone(), step.from.clone()));
                            let open = &open;
                            aside(async move || {
                                let store = open().await;
                                let worker = living_worker("op", 0, "other");
                                let open = store.open_steps().await.unwrap();
                                let learned = executor(&store, &worker).converge_steps(open).await.unwrap();
                                assert_eq!(learned.len(), 1, "{learned:?}");
                            });
                        }
                    }
                    ControlFlow::Continue(())
                })
                .await;
            let Some((ledger, id, from)) = stalled else { break };
            // Asked about while it is on its way, a request goes out again: by the plan, under its key.
            assert_eq!(ended.unwrap_err().exit, Exit::Refused, "{ledger} {id}");
            assert_eq!(night.status(ledger, id.as_str()).await, from, "{ledger} {id}");
            night.finish().await;
            assert_eq!(outcome(&night, &journal).await, calm, "{ledger} {id}");
            number += 1;
        }
        assert!(number > 15, "{number}");
        assert!(store.open_steps().await.unwrap().is_empty());
    });
}
