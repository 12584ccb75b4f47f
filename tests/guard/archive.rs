//! A key that a service used long ago: its record is archived, beside the orders, by the policy of a journal that lies
//! elsewhere; and whoever comes back with it gets the reference of its result, and never a second order.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;

use onefold::core::idempotency::{Archived, Decision, KeyState, Known, Named, decide_archived};
use onefold::core::retention::RetentionPolicy;
use onefold::core::time::{Span, Timestamp};
use onefold::execute::gc::Gc;
use onefold::store::idempotency::{Finished, Hold, Holder};
use onefold::store::service::{Begun, Purchase, Service};
use onefold::store::unique::Unique;
use onefold::store::{Database, Places, Queries, Statuses, Store};

use crate::common::databases::{Db, Kind, at_once};
use crate::on_every_database;

/// The orders on this database, with their table of keys; the journal on another. The store, as it sees these keys.
async fn apart(db: &Db, journal: &Db) -> Store {
    let places = Places { journal: journal.url.clone(), ..Places::one(&db.url) };
    let store = Store::open(&places, Queries::default(), Statuses::default(), true).await.unwrap();
    store.init().await.unwrap();
    assert_eq!(store.of_each_keys().await.unwrap().len(), 1, "the journal's alone");
    store.install_unique(Unique::Record).await.unwrap();
    let [_, beside] = store.of_each_keys().await.unwrap().try_into().unwrap();
    beside
}

fn holder() -> Holder {
    Holder {
        actor: "gc".to_owned(),
        owner: "gc".to_owned(),
        lease: Span::from_secs(1),
        clock: || Timestamp::from_micros(1),
    }
}

async fn set(store: &Store) {
    let second = Span::from_secs(1);
    let policy = RetentionPolicy {
        client_retry: second,
        queue: second,
        longest_replay: second,
        replay: second,
        dispute: second,
        archive: second,
    };
    assert!(store.set_retention(&holder(), None, &policy, None).await.unwrap());
}

fn purchase(key: &str) -> Purchase {
    Purchase {
        tenant_id: "t".into(),
        key: key.into(),
        user_id: "U-1".to_owned(),
        show_id: "S-1".to_owned(),
        item: "A-12".to_owned(),
        quantity: 1,
        amount_minor: 176_000,
        currency: "CNY".to_owned(),
    }
}

fn service<'a>(database: &'a Database, queries: &'a Queries) -> Service<'a> {
    Service { database, queries, lease: Span::from_secs(60) }
}

fn taken(begun: Begun) -> Hold {
    match begun {
        Begun::Taken(hold) => hold,
        other => panic!("{other:?}"),
    }
}

fn archived(begun: Begun) -> Archived {
    match begun {
        Begun::Archived(archived) => archived,
        other => panic!("{other:?}"),
    }
}

/// Runs a key to its order, and lets years go by.
async fn long_ago(db: &Db, service: &Service<'_>, key: &str) {
    let (purchase, order) = (purchase(key), format!("O-{key}").as_str().into());
    let hold = taken(service.begin(&purchase, "a").await.unwrap());
    assert_eq!(service.confirm(&hold, &purchase, &order).await.unwrap(), Finished::Recorded);
    db.run("UPDATE onefold_idempotency SET last_seen_us = 1, keep_for_us = 1").await;
}

on_every_database! {
    async fn what_is_archived_beside_the_orders_is_answered_and_not_run_again(db) {
        let journal = Db::new(Kind::Sqlite);
        let (store, queries) = (apart(db, &journal).await, Queries::default());
        set(&store).await;
        let service = service(store.keys_database(), &queries);
        long_ago(db, &service, "k").await;
        let holder = holder();
        let gc = Gc { store: &store, holder: &holder, batch: 9, dry_run: false };
        assert_eq!(gc.run(|_| ()).await.unwrap().moves(), 1);
        let there = archived(service.begin(&purchase("k"), "b").await.unwrap());
        assert_eq!((there.state, there.result_ref.as_deref()), (KeyState::Succeeded, Some("O-k")));
        assert_eq!(decide_archived(&there, &purchase("k").digest()), Decision::ReturnCode);
        let other = Purchase { amount_minor: 1, ..purchase("k") };
        assert!(matches!(decide_archived(&there, &other.digest()), Decision::Refuse { .. }));
        assert!(matches!(service.look(&purchase("k")).await.unwrap(), Some((Known::Archived(_), _))));
        let keys = store.keys_of(None, &Named::order("O-k")).await.unwrap();
        assert_eq!(keys, [("t".into(), "k".into())], "its order still finds it");
        // The same key elsewhere is none of this: that of `once` lies in the journal's database.
        let first = store.of_each_keys().await.unwrap().swap_remove(0);
        assert_eq!(first.known_key(&"t".into(), &"k".into()).await.unwrap(), None);
        let told = journal.rows("SELECT note FROM onefold_journal WHERE event = 'keys-moved'").await;
        assert_eq!(told.len(), 1);
        assert!(told[0][0].starts_with("hot → archive 1, in "), "{told:?}");
    }

    async fn of_services_who_come_back_while_a_key_is_archived_none_takes_it(db) {
        let journal = Db::new(Kind::Sqlite);
        let (store, queries) = (apart(db, &journal).await, Queries::default());
        set(&store).await;
        let service = service(store.keys_database(), &queries);
        let holder = holder();
        let rounds = if std::env::var_os("ONEFOLD_TEST_HUNT").is_some() { 200 } else { 10 };
        for round in 0..rounds {
            let key = format!("race-{round}");
            long_ago(db, &service, &key).await;
            let is_over = Cell::new(false);
            let mut works: Vec<Pin<Box<dyn Future<Output = usize>>>> = Vec::new();
            for _ in 0..2 {
                works.push(Box::pin(async {
                    let mut taken = 0;
                    while !is_over.get() {
                        let begun = service.begin(&purchase(&key), "b").await.unwrap();
                        taken += usize::from(matches!(begun, Begun::Taken(_)));
                    }
                    taken
                }));
            }
            works.push(Box::pin(async {
                let gc = Gc { store: &store, holder: &holder, batch: 9, dry_run: false };
                while gc.run(|_| ()).await.unwrap().moves() == 0 {}
                is_over.set(true);
                0
            }));
            assert_eq!(at_once(works).await, [0, 0, 0], "{key} was taken again");
            archived(service.begin(&purchase(&key), "b").await.unwrap());
        }
        assert_eq!(db.rows("SELECT state FROM onefold_idempotency").await.len(), 0);
        assert_eq!(db.rows("SELECT order_id FROM orders").await.len(), rounds);
    }

    async fn a_table_of_keys_without_an_archive_is_not_passed_over(db) {
        let journal = Db::new(Kind::Sqlite);
        let store = apart(db, &journal).await;
        db.run("DROP TABLE onefold_idempotency_archive").await;
        let error = store.of_each_keys().await.unwrap_err();
        assert!(error.hint.unwrap().contains("guard install"));
        store.install_unique(Unique::Record).await.unwrap();
        assert_eq!(store.of_each_keys().await.unwrap().len(), 2);
    }
}
