//! The journal is evidence: it has no holes whatever rolls back, its tables refuse changes, and whatever
//! is changed in it all the same is found.

use onefold::core::chain::Verified;
use onefold::core::status::Ledger;
use onefold::error::{Error, Result};
use onefold::store::Store;
use onefold::store::journal::{Entry, Event, Search};

use crate::common::book::at;
use crate::common::databases::{Db, Kind, at_once, wait};
use crate::on_every_database;

fn entry(row: &str) -> Entry {
    Entry::new(Event::Moved, "op", at(0)).row(Ledger::Orders, &"t".into(), row).plan("PL-1")
}

async fn append_all(store: &Store, rows: &[&str]) {
    for row in rows {
        store.append(&entry(row)).await.unwrap();
    }
}

async fn end(store: &Store) {
    store.journal().end_run("op", at(9)).await.unwrap();
}

async fn verified(store: &Store) -> Verified {
    store.verify_journal(|_| ()).await.unwrap()
}

/// As somebody does who may do everything.
async fn disarm(db: &Db) {
    let tables = ["onefold_journal", "onefold_heads"];
    match db.kind {
        Kind::Postgres => {
            for table in tables {
                db.run(format!("ALTER TABLE {table} DISABLE TRIGGER USER")).await;
            }
        }
        Kind::Sqlite | Kind::Mariadb => {
            for name in [
                "onefold_journal_is_kept_as_it_is",
                "onefold_journal_is_kept",
                "onefold_journal_is_chained",
                "onefold_heads_are_kept_as_they_are",
                "onefold_heads_are_kept",
            ] {
                db.run(format!("DROP TRIGGER {name}")).await;
            }
        }
    }
}

const EVERYTHING: &str = "at_us, actor, event, freeze_id, plan_id, intent_id, ledger, tenant_id, row_id, from_status, \
    to_status, amount_minor, currency, version, note";

on_every_database! {
    async fn whatever_rolls_back_leaves_no_hole(db) {
        let store = db.store().await;
        let rows: Vec<String> = (0..48).map(|i| format!("O-{i}")).collect();
        let store = &store;
        let ends: Vec<Result<()>> = at_once(rows.iter().enumerate().map(|(i, row)| async move {
            let mut first = true;
            store.journal().transaction(async |tx| {
                store.append_on(tx, &entry(row)).await?;
                store.append_on(tx, &entry(row).note("again")).await?;
                // Every third clashes once, every fourth fails for good.
                if i % 3 == 0 && std::mem::take(&mut first) {
                    return Err(Error::clash("somebody was faster"));
                }
                if i % 4 == 0 { Err(Error::failure("it failed")) } else { Ok(()) }
            }).await
        })).await;
        let kept = ends.iter().filter(|end| end.is_ok()).count();
        assert_eq!(kept, 36);
        let now = verified(store).await;
        assert!(now.fits(), "{now:?}");
        assert_eq!((now.entries, now.covered, now.heads), (72, 0, 0));
        assert!(now.unfinished_runs > 0 && now.chains == now.unfinished_runs, "{now:?}");
        end(store).await;
        let now = verified(store).await;
        assert!(now.fits(), "{now:?}");
        assert_eq!((now.entries, now.covered, now.unfinished_runs), (72 + now.chains, 72 + now.chains, 0));
        assert_eq!(now.heads, now.chains);
        assert_eq!(store.history(&Search::default()).await.unwrap().len(), 72, "ends are no story");
    }

    async fn workers_that_follow_each_other_share_a_chain(db) {
        let store = db.store().await;
        append_all(&store, &["O-1", "O-2", "O-3"]).await;
        let now = verified(&store).await;
        assert_eq!((now.entries, now.chains), (3, 1));
    }

    async fn several_runs_end_at_once(db) {
        db.store().await;
        let runs: Vec<Store> = {
            let mut runs = Vec::new();
            for _ in 0..6 {
                runs.push(db.open().await);
            }
            runs
        };
        at_once(runs.iter().map(|run| async move {
            append_all(run, &["O-1", "O-2"]).await;
            end(run).await;
        })).await;
        let now = verified(&runs[0]).await;
        assert!(now.fits(), "{now:?}");
        assert_eq!((now.entries, now.covered, now.heads, now.chains), (18, 18, 6, 6));
    }

    async fn a_killed_run_is_told_and_may_be_ended_by_another_even_while_it_goes_on(db) {
        let (killed, other) = (db.store().await, db.open().await);
        append_all(&killed, &["O-1", "O-2"]).await;
        let now = verified(&other).await;
        assert!(now.fits());
        assert_eq!((now.unfinished_runs, now.unfinished[0].entries, now.covered), (1, 2, 0));
        assert_eq!(other.end_killed_runs("op", at(9)).await.unwrap(), 1);
        let now = verified(&other).await;
        assert!(now.fits(), "{now:?}");
        assert_eq!((now.unfinished_runs, now.covered, now.heads), (0, 3, 1));
        // It was not dead: it begins another chain.
        append_all(&killed, &["O-3"]).await;
        let now = verified(&other).await;
        assert!(now.fits(), "{now:?}");
        assert_eq!((now.chains, now.entries, now.unfinished_runs), (2, 4, 1));
        end(&killed).await;
        let now = verified(&other).await;
        assert!(now.fits(), "{now:?}");
        assert_eq!((now.unfinished_runs, now.heads), (0, 2));
        assert_eq!(other.end_killed_runs("op", at(9)).await.unwrap(), 0);
    }

    async fn a_plan_has_the_heads_of_its_runs(db) {
        let (first, second) = (db.store().await, db.open().await);
        append_all(&first, &["O-1"]).await;
        second.append(&Entry::new(Event::Asked, "op", at(0)).plan("PL-2")).await.unwrap();
        assert!(first.heads_of_plan("PL-1").await.unwrap().is_empty(), "it has not ended");
        end(&first).await;
        end(&second).await;
        let heads = first.heads_of_plan("PL-1").await.unwrap();
        assert_eq!((heads.len(), heads[0].position, heads[0].last_position), (1, 1, 2));
        assert!(first.has_head(&heads[0].hash).await.unwrap());
        assert!(!first.has_head("x").await.unwrap());
    }

    async fn the_tables_refuse_changes(db) {
        let store = db.store().await;
        append_all(&store, &["O-1"]).await;
        end(&store).await;
        let refused = [
            "UPDATE onefold_journal SET note = 'x'",
            "UPDATE onefold_journal SET actor = actor WHERE position = 1",
            "DELETE FROM onefold_journal",
            "DELETE FROM onefold_journal WHERE position = 2",
            "UPDATE onefold_heads SET actor = 'x'",
            "DELETE FROM onefold_heads",
        ];
        for sql in refused {
            assert!(!db.try_run(sql).await, "{sql}");
        }
        let own = match db.kind {
            Kind::Postgres => "TRUNCATE onefold_journal",
            Kind::Sqlite => "INSERT OR REPLACE INTO onefold_journal (seq, at_us, actor, event) VALUES (1, 0, 'x', 'x')",
            Kind::Mariadb => "REPLACE INTO onefold_journal (seq, at_us, actor, event) VALUES (1, 0, 'x', 'x')",
        };
        assert!(!db.try_run(own).await, "{own}");
        let now = verified(&store).await;
        assert!(now.fits());
        assert_eq!((now.entries, now.not_chained), (2, 0));
        // They come back where somebody took them away, and a second time changes nothing.
        disarm(db).await;
        store.init().await.unwrap();
        store.init().await.unwrap();
        for sql in refused {
            assert!(!db.try_run(sql).await, "{sql}");
        }
    }

    async fn a_database_made_before_gets_the_columns_and_its_entries_count_as_not_chained(db) {
        let serial = match db.kind {
            Kind::Sqlite => "INTEGER PRIMARY KEY AUTOINCREMENT",
            Kind::Postgres => "BIGSERIAL PRIMARY KEY",
            Kind::Mariadb => "BIGINT PRIMARY KEY AUTO_INCREMENT",
        };
        let store = db.open().await;
        db.run(format!(
            "CREATE TABLE onefold_journal (seq {serial}, at_us BIGINT NOT NULL, actor VARCHAR(190) NOT NULL,
             event VARCHAR(190) NOT NULL, freeze_id VARCHAR(190), plan_id VARCHAR(190), intent_id VARCHAR(190),
             ledger VARCHAR(190), tenant_id VARCHAR(190), row_id VARCHAR(190), from_status VARCHAR(190),
             to_status VARCHAR(190), amount_minor BIGINT, currency VARCHAR(190), version VARCHAR(190), note VARCHAR(190))"
        )).await;
        for _ in 0..2 {
            db.run("INSERT INTO onefold_journal (at_us, actor, event) VALUES (1, 'op', 'froze')").await;
        }
        assert!(store.must_be_ready().await.is_err());
        let alters = |schema: Vec<(&onefold::store::Database, String)>| {
            schema.into_iter().filter(|(_, sql)| sql.starts_with("ALTER TABLE")).map(|(_, sql)| sql).collect::<Vec<_>>()
        };
        let missing = alters(store.schema().await.unwrap());
        assert_eq!(missing.len(), 4, "{missing:?}");
        store.init().await.unwrap();
        store.must_be_ready().await.unwrap();
        assert!(alters(store.schema().await.unwrap()).is_empty());
        append_all(&store, &["O-1", "O-2"]).await;
        end(&store).await;
        let now = verified(&store).await;
        assert!(now.fits(), "{now:?}");
        assert_eq!((now.not_chained, now.entries, now.covered), (2, 3, 3));
        assert_eq!(store.history(&Search::default()).await.unwrap().len(), 4);
        // One that comes later and has no chain is none of ours: it is refused, and found where it was not.
        let unchained = "INSERT INTO onefold_journal (at_us, actor, event) VALUES (1, 'op', 'froze')";
        assert!(!db.try_run(unchained).await);
        disarm(db).await;
        db.run(unchained).await;
        let now = verified(&store).await;
        assert!(now.misfits[0].why.contains("it stands in no chain"), "{now:?}");
    }
}

/// What is done by hand, in SQL that names the first run's chain `{a}`; what is found, and at which position.
const TAMPERINGS: [(&str, &[&str], &str, i64); 14] = [
    (
        "changed",
        &["UPDATE onefold_journal SET note = 'x' WHERE chain = {a} AND position = 2"],
        "what it says does not fit its hash",
        2,
    ),
    (
        "nothing is not an empty text",
        &["UPDATE onefold_journal SET note = '' WHERE chain = {a} AND position = 3"],
        "what it says does not fit its hash",
        3,
    ),
    (
        "changed with its hash",
        &["UPDATE onefold_journal SET hash = 'x' WHERE chain = {a} AND position = 2"],
        "what it says does not fit its hash",
        2,
    ),
    (
        "a number",
        &["UPDATE onefold_journal SET at_us = at_us + 1 WHERE chain = {a} AND position = 1"],
        "what it says does not fit its hash",
        1,
    ),
    (
        "deleted in the middle",
        &["DELETE FROM onefold_journal WHERE chain = {a} AND position = 3"],
        "the entry at position 3 is missing",
        4,
    ),
    (
        "the first deleted",
        &["DELETE FROM onefold_journal WHERE chain = {a} AND position < 3"],
        "the entries at positions 1 to 2 are missing",
        3,
    ),
    (
        "tail cut",
        &["DELETE FROM onefold_journal WHERE chain = {a} AND position > 3"],
        "its tail is missing",
        3,
    ),
    ("a whole run", &["DELETE FROM onefold_journal WHERE chain = {a}"], "the whole run is missing", 5),
    (
        "a whole run with its head",
        &["DELETE FROM onefold_journal WHERE chain = {a}", "DELETE FROM onefold_heads WHERE chain = {a}"],
        "a head is missing",
        2,
    ),
    (
        "swapped",
        &[
            "UPDATE onefold_journal SET position = 99 WHERE chain = {a} AND position = 2",
            "UPDATE onefold_journal SET position = 2 WHERE chain = {a} AND position = 3",
            "UPDATE onefold_journal SET position = 3 WHERE chain = {a} AND position = 99",
        ],
        "it does not carry the hash of the entry before it",
        2,
    ),
    (
        "forged behind the end",
        &["INSERT INTO onefold_journal (chain, position, previous_hash, hash, {all})
        SELECT chain, 6, hash, hash, {all} FROM onefold_journal AS j WHERE chain = {a} AND position = 5"],
        "it comes after the end of its run",
        6,
    ),
    (
        "forged without a chain",
        &["INSERT INTO onefold_journal ({all})
        SELECT {all} FROM onefold_journal AS j WHERE chain = {a} AND position = 1"],
        "it stands in no chain",
        0,
    ),
    (
        "the newest head removed",
        &["DELETE FROM onefold_heads WHERE position = 2"],
        "heads are missing: 2 were written",
        2,
    ),
    (
        "a head changed",
        &["UPDATE onefold_heads SET last_position = 4 WHERE position = 1"],
        "what it says does not fit its hash",
        1,
    ),
];

fn whatever_is_done_by_hand_is_found(kind: Kind) {
    for (name, sql, why, position) in TAMPERINGS {
        let db = Db::new(kind);
        wait(async {
            let (first, second, third) = (db.store().await, db.open().await, db.open().await);
            append_all(&first, &["O-1", "O-2", "O-3", "O-4"]).await;
            end(&first).await;
            append_all(&second, &["O-5", "O-6"]).await;
            end(&second).await;
            append_all(&third, &["O-7"]).await;
            let before = verified(&first).await;
            assert!(before.fits() && before.heads == 2 && before.unfinished_runs == 1, "{before:?}");
            disarm(&db).await;
            let chain = &db.rows("SELECT chain FROM onefold_heads WHERE position = 1").await[0][0];
            for sql in sql {
                db.run(sql.replace("{a}", &format!("'{chain}'")).replace("{all}", EVERYTHING)).await;
            }
            let now = verified(&first).await;
            assert!(!now.fits(), "{name}");
            let found = &now.misfits[0];
            assert!(found.why.contains(why), "{name}: {now:?}");
            assert_eq!(found.position, position, "{name}: {now:?}");
        });
    }
}

mod whatever_is_done_by_hand_is_found {
    use super::Kind;

    #[test]
    fn sqlite() {
        super::whatever_is_done_by_hand_is_found(Kind::Sqlite);
    }

    #[test]
    fn postgres() {
        super::whatever_is_done_by_hand_is_found(Kind::Postgres);
    }

    #[test]
    fn mariadb() {
        super::whatever_is_done_by_hand_is_found(Kind::Mariadb);
    }
}
