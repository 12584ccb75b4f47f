//! The servers cut every connection again and again while apply is at work.

use std::ops::ControlFlow;
use std::time::Duration;

use onefold::error::Exit;
use onefold::store::{Places, Queries, Statuses, Store};

use super::scene::*;
use crate::common::databases::{Db, Kind, aside, wait};
use crate::on_every_database;

/// Cuts every connection to a database but the one that says so.
async fn cut(db: &Db) {
    match db.kind {
        // A file has no connections to cut.
        Kind::Sqlite => {}
        Kind::Postgres => {
            let all = "SELECT pg_terminate_backend(pid)::text FROM pg_stat_activity \
                       WHERE datname = current_database() AND pid <> pg_backend_pid()";
            db.rows(all).await;
        }
        Kind::Mariadb => {
            let all = "SELECT CAST(id AS CHAR) FROM information_schema.processlist \
                       WHERE db = DATABASE() AND id <> CONNECTION_ID()";
            for row in db.rows(all).await {
                // It may have gone by itself.
                db.try_run(&format!("KILL {}", row[0])).await;
            }
        }
    }
}

on_every_database! {
    async fn apply_that_loses_its_connections_goes_on_or_fails_and_is_resumed_by_running_it_again(db) {
        let store = db.store().await;
        let calm = calm(&store, db).await;
        let night = Night::begin(&store, "cut").await;
        let failures = std::thread::scope(|scope| {
            let work = scope.spawn(|| wait(apply_until_whole(db, &night)));
            aside(async || {
                // Less and less often, so that the slowest machine gets through.
                let pauses = (10..).step_by(5).map(Duration::from_millis);
                for pause in pauses.take_while(|_| !work.is_finished()) {
                    cut(db).await;
                    tokio::time::sleep(pause).await;
                }
            });
            work.join().unwrap()
        });
        assert!(failures < 200, "{failures}");
        assert_eq!(outcome(&night, db).await, calm);
        assert!(store.open_steps().await.unwrap().is_empty());
    }
}

/// Runs apply again and again; how often it failed.
async fn apply_until_whole(db: &Db, night: &Night<'_>) -> usize {
    let mut failures = 0;
    while failures < 200 {
        let Ok(store) =
            Store::open(&Places::one(&db.url), Queries::default(), Statuses::default(), false).await
        else {
            failures += 1;
            continue;
        };
        let again = Night {
            store: &store,
            tenant: night.tenant.clone(),
            freeze: night.freeze.clone(),
            plan: night.plan.clone(),
        };
        match again.apply(|_| ControlFlow::Continue(())).await {
            Ok(applied) if applied.is_whole() => break,
            Ok(_) => {}
            Err(error) => assert_eq!(error.exit, Exit::Failure, "{error}"),
        }
        failures += 1;
    }
    failures
}
