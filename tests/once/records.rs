//! The records by themselves: who may change them, and who no longer.

use onefold::core::idempotency::{KeyRecord, KeyState, RequestDigest};
use onefold::core::ids::{IdempotencyKey, TenantId};
use onefold::core::time::{Span, Timestamp};
use onefold::store::Store;
use onefold::store::idempotency::{Finished, Hold, Holder, Outcome};
use onefold::store::journal::Search;

use super::machine::{digest, key};
use crate::common::databases::at_once;
use crate::on_every_database;

fn holder(owner: &str) -> Holder {
    Holder {
        actor: owner.to_owned(),
        owner: owner.to_owned(),
        lease: Span::from_secs(60),
        clock: || Timestamp::from_micros(0),
    }
}

fn names() -> (TenantId, IdempotencyKey) {
    ("default".into(), key())
}

fn request() -> RequestDigest {
    digest(&[("argv[0]", "refund")])
}

async fn take(store: &Store, owner: &str) -> Option<Hold> {
    let (tenant_id, key) = names();
    let keep_for = Span::from_secs(3600);
    store.take_key(&holder(owner), (&tenant_id, &key), &request(), keep_for, &[]).await.unwrap()
}

async fn there(store: &Store) -> KeyRecord {
    let (tenant_id, key) = names();
    store.key(&tenant_id, &key).await.unwrap().unwrap().0
}

async fn take_again(store: &Store, owner: &str, seen: &KeyRecord, to: KeyState) -> Option<Hold> {
    store.take_key_again(&holder(owner), seen, to, None).await.unwrap()
}

on_every_database! {
    async fn of_many_who_take_a_key_at_once_one_has_it(db) {
        let store = db.store().await;
        let taken = at_once((0..12).map(|i| { let store = &store; async move { take(store, &i.to_string()).await } })).await;
        let taken: Vec<_> = taken.into_iter().flatten().collect();
        assert_eq!(taken.len(), 1, "{taken:?}");
        let record = there(&store).await;
        assert_eq!((record.owner, record.state, record.token), (taken[0].owner.clone(), KeyState::Processing, 1));
        assert_eq!(record.digest, request());
        assert_eq!(store.history(&Search::default()).await.unwrap().len(), 1);
    }

    async fn of_many_who_take_over_one_does_and_none_while_the_lease_is_live(db) {
        let store = db.store().await;
        let _ = take(&store, "a").await.unwrap();
        let seen = there(&store).await;
        assert_eq!(take_again(&store, "b", &seen, KeyState::Processing).await, None, "its lease is live");
        db.run("UPDATE onefold_idempotency SET lease_until_us = 1").await;
        let taken = at_once((0..12).map(|i| {
            let (store, seen) = (&store, &seen);
            async move { take_again(store, &i.to_string(), seen, KeyState::Processing).await }
        })).await;
        let taken: Vec<_> = taken.into_iter().flatten().collect();
        assert_eq!((taken.len(), taken[0].token, taken[0].version), (1, 2, 2), "{taken:?}");
        assert_eq!(there(&store).await.owner, taken[0].owner);
    }

    async fn who_has_been_replaced_begins_renews_and_ends_nothing(db) {
        let store = db.store().await;
        let lease = Span::from_secs(60);
        let old = take(&store, "a").await.unwrap();
        db.run("UPDATE onefold_idempotency SET lease_until_us = 1").await;
        let new = take_again(&store, "b", &there(&store).await, KeyState::Processing).await.unwrap();
        let before = there(&store).await;
        let outcome = Outcome { exit_code: Some(0), ..Outcome::bare(KeyState::Succeeded, "x") };
        assert_eq!(store.start_key(&old, lease).await.unwrap(), None);
        assert!(!store.renew_key(&old, lease).await.unwrap());
        assert_eq!(store.finish_key(&holder("a"), &old, &outcome).await.unwrap(), Finished::Replaced);
        assert_eq!(there(&store).await, before);
        let started = store.start_key(&new, lease).await.unwrap().unwrap();
        assert_eq!(store.finish_key(&holder("b"), &new, &outcome).await.unwrap(), Finished::Replaced, "begun since");
        assert!(store.renew_key(&started, lease).await.unwrap());
        for _ in 0..2 {
            // An answer that was lost is asked for again.
            assert_eq!(store.finish_key(&holder("b"), &started, &outcome).await.unwrap(), Finished::Recorded);
        }
        assert!(!store.renew_key(&started, lease).await.unwrap(), "it has ended");
        let record = there(&store).await;
        assert_eq!((record.state, record.exit_code, record.attempts), (KeyState::Succeeded, Some(0), 1));
    }

    async fn a_late_answer_of_a_query_settles_nothing(db) {
        let store = db.store().await;
        let hold = take(&store, "a").await.unwrap();
        let hold = store.start_key(&hold, Span::from_secs(60)).await.unwrap().unwrap();
        let unknown = Outcome::bare(KeyState::Unknown, "killed");
        assert_eq!(store.finish_key(&holder("a"), &hold, &unknown).await.unwrap(), Finished::Recorded);
        let seen = there(&store).await;
        let retry = take_again(&store, "b", &seen, KeyState::Processing).await.unwrap();
        let happened = Outcome::bare(KeyState::Succeeded, "the query says so");
        assert!(!store.settle_key(&holder("c"), &seen, &happened).await.unwrap());
        let retry = store.start_key(&retry, Span::from_secs(60)).await.unwrap().unwrap();
        assert_eq!(store.finish_key(&holder("b"), &retry, &unknown).await.unwrap(), Finished::Recorded);
        assert!(!store.settle_key(&holder("c"), &seen, &happened).await.unwrap(), "UNKNOWN again, of another run");
        assert!(store.settle_key(&holder("c"), &there(&store).await, &happened).await.unwrap());
    }

    async fn no_illegal_move_is_written(db) {
        let store = db.store().await;
        let hold = take(&store, "a").await.unwrap();
        let outcome = Outcome::bare(KeyState::Succeeded, "x");
        assert_eq!(store.finish_key(&holder("a"), &hold, &outcome).await.unwrap(), Finished::Recorded);
        let seen = there(&store).await;
        for to in KeyState::ALL {
            assert!(store.take_key_again(&holder("b"), &seen, *to, None).await.is_err(), "{to}");
        }
        assert!(!store.settle_key(&holder("b"), &seen, &outcome).await.unwrap());
        assert_eq!(there(&store).await, seen);
    }
}
