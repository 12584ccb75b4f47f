//! A plan is applied in part, and another one takes its place.

use onefold::core::plan::Outcome;
use onefold::core::status::Ledger;
use onefold::store::sandbox::Behaviour;

use super::scene::*;
use crate::common::databases::Kind;
use crate::on_every_database;

on_every_database! {
    async fn a_plan_broken_off_at_any_moment_and_superseded_is_finished_by_newer_ones_with_each_charge_refunded_once(db) {
        let store = db.store().await;
        let calm = calm(&store, db).await;
        let mut number = 0;
        loop {
            let mut night = Night::begin(&store, &format!("n{number}")).await;
            night.behave("P-O-B", Behaviour::LoseRequest).await;
            night.behave("P-O-E", Behaviour::LoseAnswer).await;
            night.tell_all().await;
            let mut at = 0;
            let _ = night.apply(|_| {
                at += 1;
                if at > number { std::ops::ControlFlow::Break(()) } else { std::ops::ControlFlow::Continue(()) }
            }).await.unwrap();
            night.plan_again("second").await;
            let mut rounds = 0;
            loop {
                night.converge().await;
                night.plan_again(&format!("round{rounds}")).await;
                night.finish().await;
                if night.plan.intents.iter().all(|i| i.outcome == Outcome::Clean) {
                    break;
                }
                rounds += 1;
                assert!(rounds < 6, "moment {number}: {:#?}", night.plan.intents);
            }
            let (rows, requests, refunded) = outcome(&night, db).await;
            assert_eq!((&requests, &refunded), (&calm.1, &calm.2), "moment {number}");
            let statuses: Vec<_> = rows.orders.iter().map(|o| o.status).collect();
            let expected: Vec<_> = calm.0.orders.iter().map(|o| o.status).collect();
            assert_eq!(statuses, expected, "moment {number}");
            assert!(store.open_steps().await.unwrap().is_empty(), "moment {number}");
            if at <= number {
                break;
            }
            number += if db.kind == Kind::Sqlite { 1 } else { 3 };
        }
    }

    async fn asking_while_a_plan_is_merely_broken_off_leaves_it_to_go_on(db) {
        let store = db.store().await;
        let calm = calm(&store, db).await;
        for number in [5, 8, 11, 14] {
            let night = Night::begin(&store, &format!("n{number}")).await;
            night.break_off_at(number).await;
            night.converge().await;
            night.finish().await;
            assert_eq!(outcome(&night, db).await, calm, "moment {number}");
        }
    }

    async fn a_message_that_was_released_on_purpose_is_quarantined_again_by_a_newer_plan(db) {
        let store = db.store().await;
        let mut night = Night::begin(&store, "again").await;
        night.finish().await;
        for round in ["second", "third"] {
            db.run(night.touch(Ledger::Messages, "M-B", "status = 'QUEUED'")).await;
            night.plan_again(round).await;
            assert_eq!(night.plan.intents.iter().map(|i| i.steps.len()).sum::<usize>(), 1, "{round}");
            night.finish().await;
            assert_eq!(night.row(Ledger::Messages, "M-B").await, ("QUARANTINED".to_owned(), "78".to_owned()), "{round}");
        }
    }
}
