//! Several who apply at once, and one who takes over from another.

use std::ops::ControlFlow;

use onefold::core::freeze::Freeze;
use onefold::core::plan::Plan;
use onefold::core::tally::Tally;
use onefold::core::time::Span;
use onefold::error::{Exit, Result};
use onefold::execute::pace::Pace;
use onefold::execute::{IntentEnd, Moment};
use onefold::store::Store;

use super::scene::*;
use crate::common::databases::{Db, Kind, aside, at_once};
use crate::on_every_database;

/// Applies a plan as one of several.
async fn apply_as(store: &Store, actor: &str, name: &str, plan: &Plan, freeze: &Freeze) -> Vec<IntentEnd> {
    try_apply_as(store, actor, name, plan, freeze).await.unwrap()
}

/// As [`apply_as`], where it may be refused.
async fn try_apply_as(
    store: &Store,
    actor: &str,
    name: &str,
    plan: &Plan,
    freeze: &Freeze,
) -> Result<Vec<IntentEnd>> {
    let worker = living_worker(actor, freeze.token, name);
    let watch: &mut onefold::execute::Watch<'_> = &mut |_| ControlFlow::Continue(());
    let executor = executor(store, &worker);
    let applying = executor.begin(plan, &Tally::of(&plan.intents), freeze).await?;
    let applied = applying.carry_out(&plan.with_steps(), &Pace::alone(), watch).await?;
    Ok(applied.intents.into_iter().map(|(_, end)| end).collect())
}

on_every_database! {
    async fn two_who_apply_the_same_plan_at_once_do_each_step_once(db) {
        let store = db.store().await;
        let calm = calm(&store, db).await;
        for round in 0..3 {
            let night = Night::begin(&store, &format!("n{round}")).await;
            let (one, two) = (db.open().await, db.open().await);
            at_once([(&one, "a"), (&two, "b")].map(|(store, name)| apply_as(store, "op", name, &night.plan, &night.freeze))).await;
            night.finish().await;
            assert_eq!(outcome(&night, db).await, calm, "round {round}");
        }
    }

    async fn two_plans_of_the_same_rows_applied_at_once_move_money_once(db) {
        let store = db.store().await;
        let calm = calm(&store, db).await;
        for round in 0..3 {
            let mut night = Night::begin(&store, &format!("n{round}")).await;
            let first = night.plan.clone();
            night.plan_again("second").await;
            let (one, two) = (db.open().await, db.open().await);
            let ends = at_once([(&one, "a", &first), (&two, "b", &night.plan)].map(|(store, name, plan)| try_apply_as(store, "op", name, plan, &night.freeze))).await;
            let refused = ends[0].as_ref().expect_err("a newer plan has taken its place");
            assert_eq!(refused.exit, Exit::Refused, "{refused}");
            let stops = ends[1].iter().flatten().filter(|end| **end != IntentEnd::Done);
            assert!(stops.clone().all(|end| matches!(end, IntentEnd::Conflict(_) | IntentEnd::Busy(_))), "{ends:?}");

            night.tell_all().await;
            // Whatever each of them left half done is taken up by asking, and by a third plan.
            for name in ["third", "fourth", "fifth"] {
                night.converge().await;
                night.plan_again(name).await;
                night.finish().await;
            }
            let (rows, requests, refunded) = outcome(&night, db).await;
            assert_eq!((requests, refunded), (calm.1.clone(), calm.2.clone()), "round {round}: {ends:?}");
            let statuses = |rows: &onefold::core::ledger::Ledgers| -> Vec<String> {
                rows.orders.iter().map(|o| o.status.to_string()).chain(rows.inventory.iter().map(|h| h.status.to_string())).collect()
            };
            assert_eq!(statuses(&rows), statuses(&calm.0), "round {round}");
        }
    }

    async fn whoever_is_taken_over_at_any_moment_stops_and_changes_nothing_after(db) {
        let store = db.store().await;
        let calm = calm(&store, db).await;
        let (mut number, mut stopped) = (0, 0);
        loop {
            let night = Night::begin(&store, &format!("n{number}")).await;
            let mut at = 0;
            let ended = night.apply(|_| {
                at += 1;
                if at == number + 1 {
                    take_over_and_apply(db, &night.plan, &night.freeze);
                }
                ControlFlow::Continue(())
            }).await;
            if let Err(error) = &ended {
                assert_eq!(error.exit, Exit::Refused, "{error}");
                stopped += 1;
            }
            if at <= number {
                break;
            }
            assert_eq!(outcome(&night, db).await, calm, "taken over at moment {number}: {ended:?}");
            // The slower databases try every third.
            number += if db.kind == Kind::Sqlite { 1 } else { 3 };
        }
        assert!(stopped > 5, "{stopped}");
    }

    async fn a_lease_that_lapses_at_any_moment_stops_apply_and_renewing_it_lets_it_go_on(db) {
        let store = db.store().await;
        let calm = calm(&store, db).await;
        let (mut number, mut stopped) = (0, 0);
        loop {
            let mut night = Night::begin(&store, &format!("n{number}")).await;
            let mut at = 0;
            let mut moved_after = 0;
            let ended = night.apply(|moment| {
                at += 1;
                if at == number + 1 {
                    turn_clock(Span::from_mins(60));
                } else if at > number + 1 && matches!(moment, Moment::Claimed(_)) {
                    moved_after += 1;
                }
                ControlFlow::Continue(())
            }).await;
            if let Err(error) = &ended {
                assert_eq!(error.exit, Exit::Refused, "{error}");
                assert!(error.message.contains("ran out"), "{error}");
                assert_eq!(moved_after, 0, "nothing is begun any more");
                stopped += 1;
                let Freeze { freeze_id, owner, token, .. } = &night.freeze;
                night.freeze = store.renew(freeze_id, owner, Some(*token), Span::from_mins(30), true, clock()).await.unwrap();
                night.finish().await;
            }
            turn_clock(Span::from_secs(0));
            if at <= number {
                break;
            }
            assert_eq!(outcome(&night, db).await, calm, "lapsed at moment {number}: {ended:?}");
            number += if db.kind == Kind::Sqlite { 1 } else { 3 };
        }
        assert!(stopped > 5, "{stopped}");
    }
}

/// Another operator, on another machine, takes the freeze over and applies the plan to its end.
fn take_over_and_apply(db: &Db, plan: &Plan, freeze: &Freeze) {
    aside(async || {
        let store = db.open().await;
        let (id, lease) = (&freeze.freeze_id, Span::from_mins(30));
        let freeze = store.take_over(id, "other", "the holder is gone", lease, clock()).await.unwrap();
        let ends = apply_as(&store, "other", "c", plan, &freeze).await;
        assert!(ends.iter().all(|end| *end == IntentEnd::Done), "{ends:?}");
    });
}
