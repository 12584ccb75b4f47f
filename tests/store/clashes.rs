//! Work that clashes with others is done again, in the end by all.

use std::sync::atomic::{AtomicUsize, Ordering};

use onefold::core::money::Currency;
use onefold::core::time::Timestamp;
use onefold::error::{Error, Exit, Result};
use onefold::store::Store;
use onefold::store::moves::Move;
use onefold::store::sandbox::*;

use crate::common::book::{Book, at};
use crate::common::databases::at_once;
use crate::on_every_database;

async fn move_both(store: &Store, ids: [&str; 2], from: &str, to: &str, version: &str) -> Result<()> {
    let database = store.journal();
    database
        .transaction(async |tx| {
            for id in ids {
                let asked = Move {
                    ledger: onefold::core::status::Ledger::Orders,
                    tenant_id: &"t".into(),
                    id: &id.into(),
                    from,
                    to,
                    version: &version.into(),
                    refund_minor: 0,
                    captured_at: None,
                    amount: None,
                    step_key: "",
                    actor: "tester",
                    now: onefold::core::time::Timestamp::from_micros(0),
                };
                let _ = store.move_row(tx, 0, &asked).await?;
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
            Ok(())
        })
        .await
}

fn request(key: &str) -> SandboxRequest {
    SandboxRequest {
        idempotency_key: key.to_owned(),
        kind: RequestKind::Refund,
        amount_minor: 600,
        currency: "CNY".parse().unwrap(),
        status: RequestStatus::Lost,
        asked: 0,
    }
}

fn opened() -> SandboxCharge {
    SandboxCharge {
        tenant_id: "t".into(),
        provider: "pay".to_owned(),
        charge: "c".to_owned(),
        status: ChargeStatus::Captured,
        amount_minor: 1000,
        refunded_minor: 0,
        currency: "CNY".parse::<Currency>().unwrap(),
        captured_at: None,
        behaviour: Behaviour::Ok,
    }
}

async fn refund(store: &Store, key: &str) -> RequestStatus {
    let answer = |charge: &mut SandboxCharge, request: &SandboxRequest| {
        if charge.refunded_minor + request.amount_minor > charge.amount_minor {
            return RequestStatus::Refused;
        }
        charge.refunded_minor += request.amount_minor;
        RequestStatus::Done
    };
    let now: Timestamp = at(0);
    store.sandbox_request(opened(), request(key), answer, now).await.unwrap().1.status
}

on_every_database! {
    async fn two_who_lock_each_other_out_both_get_through(db) {
        let mut book = Book::new();
        book.order("O-1", 0, "PAID");
        book.order("O-2", 0, "PAID");
        let store = db.store_of(&book.ledgers).await;
        for end in at_once([["O-1", "O-2"], ["O-2", "O-1"]].map(|ids| move_both(&store, ids, "PAID", "TICKETED", "1"))).await {
            end.unwrap();
        }
        for id in ["O-1", "O-2"] {
            let row = store.row_state(onefold::core::status::Ledger::Orders, &"t".into(), &id.into()).await.unwrap().unwrap();
            assert_eq!((row.status.as_str(), row.version.as_str()), ("TICKETED", "2"), "moved once");
        }
    }

    async fn a_clash_is_tried_again_a_bounded_number_of_times_and_any_other_error_is_not(db) {
        let store = db.store().await;
        let tried = AtomicUsize::new(0);
        let count = async |fails: Error| -> Error {
            tried.store(0, Ordering::Relaxed);
            let fails = std::cell::RefCell::new(Some(fails));
            store.journal().transaction(async |_| -> Result<()> {
                tried.fetch_add(1, Ordering::Relaxed);
                let again = fails.borrow().as_ref().is_some_and(Error::is_clash);
                Err(if again { Error::clash("locked") } else { fails.borrow_mut().take().unwrap() })
            }).await.unwrap_err()
        };
        assert_eq!(count(Error::refused("no")).await.exit, Exit::Refused);
        assert_eq!(tried.load(Ordering::Relaxed), 1);
        let error = count(Error::clash("locked")).await;
        assert_eq!((error.exit, error.hint.as_deref()), (Exit::Failure, Some("run it again")));
        assert!((5..20).contains(&tried.load(Ordering::Relaxed)));
    }

    async fn the_sandbox_carries_requests_about_one_charge_out_one_after_the_other(db) {
        let store = db.store().await;
        let keys: Vec<_> = (0..6).map(|i| format!("key-{i}")).collect();
        let ends = at_once(keys.iter().map(|key| refund(&store, key))).await;
        assert_eq!(ends.iter().filter(|end| **end == RequestStatus::Done).count(), 1, "{ends:?}");
        let same = at_once((0..4).map(|_| refund(&store, "key-0"))).await;
        assert!(same.iter().all(|end| *end == same[0]), "{same:?}");
        let charge = store.sandbox_charge(&"t".into(), "pay", "c").await.unwrap().unwrap();
        assert_eq!(charge.refunded_minor, 600);
    }
}
