//! Apply is broken off at every moment of the protocol, and run again.

use onefold::store::sandbox::Behaviour;

use super::scene::*;
use crate::common::databases::Kind;
use crate::on_every_database;

on_every_database! {
    async fn broken_off_at_any_moment_and_run_again_it_ends_as_if_undisturbed(db) {
        let store = db.store().await;
        let calm = calm(&store, db).await;
        let mut number = 0;
        loop {
            let night = Night::begin(&store, &format!("n{number}")).await;
            let got_so_far = night.break_off_at(number).await;
            night.finish().await;
            assert_eq!(outcome(&night, db).await, calm, "broken off at moment {number}");
            if !got_so_far {
                break;
            }
            number += 1;
        }
        assert!(number > 20, "{number}");
    }

    async fn broken_off_again_and_again_it_gets_there(db) {
        let store = db.store().await;
        let calm = calm(&store, db).await;
        let night = Night::begin(&store, "again").await;
        let mut rounds = 0;
        // What is done is not told again: each run gets a little further.
        while night.break_off_at(5).await {
            rounds += 1;
            assert!(rounds < 40);
        }
        assert!(rounds > 2, "{rounds}");
        assert_eq!(outcome(&night, db).await, calm);
    }

    async fn broken_off_at_any_moment_with_a_provider_that_answers_badly_it_ends_as_if_undisturbed(db) {
        let store = db.store().await;
        let calm = calm(&store, db).await;
        let mut number = 0;
        loop {
            let night = Night::begin(&store, &format!("n{number}")).await;
            night.behave("P-A2", Behaviour::Pending).await;
            night.behave("P-B2", Behaviour::LoseAnswer).await;
            night.behave("P-O-B", Behaviour::LoseRequest).await;
            night.behave("P-O-E", Behaviour::LoseAnswer).await;
            let mut at = 0;
            let got_so_far = loop {
                // Each run is broken off at its moment of this number, as long as it gets so far.
                let broken = night.apply(|_| {
                    at += 1;
                    if at == number + 1 { std::ops::ControlFlow::Break(()) } else { std::ops::ControlFlow::Continue(()) }
                }).await.unwrap();
                if at > number || broken.is_whole() {
                    break at > number;
                }
                night.converge().await;
            };
            night.finish().await;
            assert_eq!(outcome(&night, db).await, calm, "broken off at moment {number}");
            if !got_so_far {
                break;
            }
            // The test above tries every moment.
            number += if db.kind == Kind::Sqlite { 2 } else { 3 };
        }
        assert!(number > 20, "{number}");
    }
}
