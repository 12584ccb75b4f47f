//! The moves of many intents made at once: they end as if they had been one by one, and a single row that is not as it
//! was seen undoes them all, is found, and stops its own intent only.

use std::ops::ControlFlow;
use std::time::Duration;

use onefold::core::ledger::Ledgers;
use onefold::core::status::Ledger;
use onefold::execute::pace::{Gate, Pace};
use onefold::execute::{IntentEnd, Moment};
use onefold::providers::outbox::Outbox;
use onefold::providers::sandbox::{Misbehaviour, Sandbox};
use onefold::store::Store;

use super::scene::*;
use crate::common::book::Book;
use crate::common::databases::{Db, Kind};
use crate::on_every_database;

/// How many purchases: one portion of intents, and some of the next.
const PURCHASES: usize = 260;

/// A purchase each of many users: `A` is kept, `B` is cancelled, and of every tenth one `C` is refunded.
fn crowd(purchases: usize) -> Ledgers {
    let mut book = Book::new();
    for n in 0..purchases {
        book.bought(&format!("O-{n}-A"), 0);
        book.reserved(&format!("O-{n}-B"), 10);
        book.message(&format!("M-{n}"), &format!("O-{n}-B"), "order.timeout", "QUEUED");
        if n % 10 == 0 {
            book.bought(&format!("O-{n}-C"), 20);
        }
    }
    let user = |id: &str| id.split('-').find(|part| part.parse::<usize>().is_ok()).unwrap_or_default().into();
    let mut ledgers = book.ledgers;
    ledgers.orders.iter_mut().for_each(|r| r.user_id = user(r.order_id.as_str()));
    ledgers.payments.iter_mut().for_each(|r| r.user_id = user(r.payment_id.as_str()));
    ledgers.inventory.iter_mut().for_each(|r| r.user_id = user(r.hold_id.as_str()));
    ledgers.messages.iter_mut().for_each(|r| r.user_id = Some(user(r.message_id.as_str())));
    ledgers
}

async fn begin<'s>(store: &'s Store, tenant: &str, purchases: usize) -> Night<'s> {
    store.import(&of_tenant(crowd(purchases), tenant), false, |_, _| ()).await.unwrap();
    Night::of_rows_there(store, tenant).await
}

/// What is recorded of a tenant's steps, and what the journal tells of them, but for times, who it was, and the keys
/// under which a provider was asked.
async fn told(db: &Db, tenant: &str) -> [Vec<Vec<String>>; 2] {
    let steps = "SELECT ledger, row_id, from_status, to_status, state, COALESCE(version_before, ''), COALESCE(version_after, ''), \
                 CASE ledger WHEN 'payments' THEN '' ELSE COALESCE(note, '') END, position \
                 FROM onefold_steps WHERE tenant_id = ";
    let journal = "SELECT ledger, row_id, from_status, to_status, event, COALESCE(version, ''), CASE ledger WHEN 'payments' THEN '' ELSE COALESCE(note, '') END \
                   FROM onefold_journal WHERE intent_id IS NOT NULL AND tenant_id = ";
    [
        db.rows(&format!("{steps}'{tenant}' ORDER BY ledger, row_id, position")).await,
        db.rows(&format!("{journal}'{tenant}' ORDER BY ledger, row_id, to_status, event")).await,
    ]
}

on_every_database! {
    async fn many_purchases_end_as_one_by_one(db) {
        let store = db.store().await;
        let (together, alone) = (begin(&store, "together", PURCHASES).await, begin(&store, "alone", PURCHASES).await);
        let (mut ended, mut before_the_first) = (Vec::new(), None);
        let applied = together.apply(|moment| {
            match moment {
                Moment::Ended(record) => ended.push(format!("{} {}", record.step.id, record.step.to)),
                Moment::Intent(_) if before_the_first.is_none() => before_the_first = Some(ended.clone()),
                _ => {}
            }
            ControlFlow::Continue(())
        }).await.unwrap();
        assert!(applied.is_whole(), "{applied:?}");
        let before_the_first = before_the_first.unwrap();
        assert!(before_the_first.len() > 500, "only {} steps were made at once", before_the_first.len());
        // Up to where the provider is asked, and from there on: the first purchase's last hold goes with those of others.
        let (leg, request) = ("P-O-10-C REFUNDING".to_owned(), "P-O-10-C REFUNDED".to_owned());
        assert!(before_the_first.contains(&leg) && !before_the_first.contains(&request), "{before_the_first:?}");
        let at = |step: &str| ended.iter().position(|ended| ended == step).unwrap();
        assert!(at("H-O-0-C RELEASED") > at(&request), "{ended:?}");

        // Whoever is to go slowly goes intent by intent.
        let slowly = Pace::new(1, Some(1e9), Duration::ZERO, &|| Gate::Open);
        let (worker, providers) = (alone.worker(), providers(Sandbox::well_behaved(&store)));
        let mut watch = |_: Moment<'_>| ControlFlow::Continue(());
        let applied = executor_with(&store, &providers, &worker)
            .begin(&alone.plan, &alone.freeze)
            .await
            .unwrap()
            .carry_out(&alone.plan.with_steps(), &slowly, &mut watch)
            .await
            .unwrap();
        assert!(applied.is_whole(), "{applied:?}");

        assert_eq!(together.rows().await, alone.rows().await);
        assert_eq!(together.requests(db).await, alone.requests(db).await);
        let (here, there) = (told(db, "together").await, told(db, "alone").await);
        assert!(here.iter().all(|rows| rows.len() > 4 * PURCHASES), "{} steps", here[0].len());
        for (here, there) in here.iter().flatten().zip(there.iter().flatten()) {
            assert_eq!(here, there);
        }
        assert_eq!(here, there);
        let verified = store.verify_journal(|_| ()).await.unwrap();
        assert!(verified.fits(), "{verified:?}");
    }

    async fn what_waits_for_a_provider_is_not_begun_before_its_turn(db) {
        let store = db.store().await;
        let night = begin(&store, "t", 20).await;
        let slow = Misbehaviour { delay: Some("1s".to_owned()), ..Misbehaviour::default() };
        let (worker, providers) = (night.worker(), providers(Sandbox::new(&store, slow)));
        let mut ended = Vec::new();
        let mut watch = |moment: Moment<'_>| {
            if let Moment::Ended(record) = moment {
                ended.push(record.step.id.to_string());
            }
            ControlFlow::Continue(())
        };
        let applied = executor_with(&store, &providers, &worker)
            .begin(&night.plan, &night.freeze)
            .await
            .unwrap()
            .carry_out(&night.plan.with_steps(), &Pace::alone(), &mut watch)
            .await
            .unwrap();
        assert!(applied.is_whole(), "{applied:?}");
        let at = |id: &str| ended.iter().position(|ended| ended == id).unwrap();
        // Without money: at once, before all others.
        assert!(at("O-19-B") < at("O-0-B"), "{ended:?}");
        assert!(at("H-O-0-C") < at("O-10-B"), "{ended:?}");
    }

    async fn what_was_broken_off_between_two_rounds_is_gone_on_with_at_once(db) {
        let store = db.store().await;
        let night = begin(&store, "t", 40).await;
        let applied = night.apply(|moment| match moment {
            Moment::Ended(record) if record.step.id.as_str() == "P-O-20-C" && record.step.to == "REFUNDED" => {
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        }).await.unwrap();
        assert!(!applied.is_whole());
        let (mut ended, mut begun) = (Vec::new(), false);
        let applied = night.apply(|moment| {
            match moment {
                Moment::Ended(record) if !begun => ended.push(record.step.id.to_string()),
                Moment::Intent(_) => begun = true,
                _ => {}
            }
            ControlFlow::Continue(())
        }).await.unwrap();
        assert!(applied.is_whole(), "{applied:?}");
        for id in ["H-O-0-C", "H-O-10-C", "H-O-20-C"] {
            assert!(ended.contains(&id.to_owned()), "{id} is not in {ended:?}");
        }
        assert_eq!(night.requests(db).await.len(), 4, "one refund each");
        let verified = store.verify_journal(|_| ()).await.unwrap();
        assert!(verified.fits(), "{verified:?}");
    }

    async fn no_request_leaves_with_the_moves_of_others(db) {
        let store = db.store().await;
        let night = begin(&store, "t", 20).await;
        let (worker, providers) = (night.worker(), providers(Outbox::new(&store)));
        let (mut ended, mut begun) = (Vec::new(), false);
        let mut watch = |moment: Moment<'_>| {
            match moment {
                Moment::Ended(record) if !begun => ended.push(format!("{} {}", record.step.id, record.step.to)),
                Moment::Intent(_) => begun = true,
                _ => {}
            }
            ControlFlow::Continue(())
        };
        let applied = executor_with(&store, &providers, &worker)
            .begin(&night.plan, &night.freeze)
            .await
            .unwrap()
            .carry_out(&night.plan.with_steps(), &Pace::alone(), &mut watch)
            .await
            .unwrap();
        let waits = applied.intents.iter().filter(|(_, end)| matches!(end, IntentEnd::Accepted(_))).count();
        assert_eq!(waits, 2, "{applied:?}");
        assert!(ended.contains(&"O-10-B CANCELLING".to_owned()), "{ended:?}");
        assert!(!ended.iter().any(|step| step.ends_with(" REFUNDING") && step.starts_with("P-")), "{ended:?}");
    }

    async fn a_row_that_cannot_be_moved_does_not_hold_back_others(db) {
        let store = db.store().await;
        let night = begin(&store, "t", 20).await;
        let one = "OLD.hold_id = 'H-O-9-B'";
        match db.kind {
            Kind::Sqlite => db.run(format!("CREATE TRIGGER stays BEFORE UPDATE ON inventory WHEN {one} BEGIN SELECT RAISE(ABORT, 'locked'); END")).await,
            Kind::Postgres => {
                db.run(format!("CREATE FUNCTION stays() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF {one} THEN RAISE EXCEPTION 'locked'; END IF; RETURN NEW; END $$")).await;
                db.run("CREATE TRIGGER stays BEFORE UPDATE ON inventory FOR EACH ROW EXECUTE FUNCTION stays()").await;
            }
            Kind::Mariadb => db.run(format!("CREATE TRIGGER stays BEFORE UPDATE ON inventory FOR EACH ROW IF {one} THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'locked'; END IF")).await,
        }
        let error = night.apply(|_| ControlFlow::Continue(())).await.unwrap_err();
        assert!(error.to_string().contains("locked") && error.hint.is_some(), "{error:?}");
        // It is the last by its name.
        assert_eq!(night.status(Ledger::Orders, "O-8-B").await, "CANCELLED");
        assert_eq!(night.status(Ledger::Orders, "O-9-B").await, "PENDING_PAYMENT");
    }

    async fn a_row_that_a_trigger_keeps_from_moving_stops_its_own_purchase_only(db) {
        let store = db.store().await;
        let night = begin(&store, "t", 20).await;
        let one = "OLD.hold_id = 'H-O-3-B'";
        match db.kind {
            Kind::Sqlite => db.run(format!("CREATE TRIGGER stays BEFORE UPDATE ON inventory WHEN {one} BEGIN SELECT RAISE(IGNORE); END")).await,
            Kind::Postgres => {
                db.run(format!("CREATE FUNCTION stays() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF {one} THEN RETURN NULL; END IF; RETURN NEW; END $$")).await;
                db.run("CREATE TRIGGER stays BEFORE UPDATE ON inventory FOR EACH ROW EXECUTE FUNCTION stays()").await;
            }
            // It counts the row, and says afterwards that it did not move.
            Kind::Mariadb => db.run(format!("CREATE TRIGGER stays BEFORE UPDATE ON inventory FOR EACH ROW SET NEW.status = IF({one}, OLD.status, NEW.status)")).await,
        }
        let applied = night.apply(|_| ControlFlow::Continue(())).await;
        if db.kind == Kind::Mariadb {
            let error = applied.unwrap_err();
            assert!(error.to_string().contains("moved hold H-O-3-B to RELEASED, but the ledger says HELD"), "{error}");
            return;
        }
        let applied = applied.unwrap();
        let stopped: Vec<_> = applied.intents.iter().filter(|(_, end)| *end != IntentEnd::Done).collect();
        assert!(matches!(&stopped[..], [(_, IntentEnd::Conflict(why))] if why[0].contains("H-O-3-B")), "{stopped:?}");
        assert_eq!(applied.intents.len(), 20);
        assert_eq!(night.status(Ledger::Inventory, "H-O-3-B").await, "HELD");
        assert_eq!(night.status(Ledger::Orders, "O-3-B").await, "CANCELLING");
        assert_eq!(night.status(Ledger::Orders, "O-4-B").await, "CANCELLED");
        let verified = store.verify_journal(|_| ()).await.unwrap();
        assert!(verified.fits(), "{verified:?}");
    }
}
