//! The moves of many intents made at once: they end as if they had been one by one, and a single row that is not as it
//! was seen undoes them all, is found, and stops its own intent only.

use std::ops::ControlFlow;
use std::time::Duration;

use onefold::core::ledger::{Ledgers, Payment};
use onefold::core::status::Ledger;
use onefold::core::tally::Tally;
use onefold::execute::apply::Applied;
use onefold::execute::pace::{Gate, Pace};
use onefold::execute::{IntentEnd, Moment};
use onefold::providers::outbox::Outbox;
use onefold::providers::sandbox::{Misbehaviour, Sandbox};
use onefold::providers::{Answer, Ask, Provider as _, Providers, Request};
use onefold::store::Store;

use sqlx::{AnyConnection, Connection as _};

use super::scene::*;
use crate::common::book::{Book, at};
use crate::common::databases::{Db, Kind};
use crate::on_every_database;

/// How many purchases: as many as are carried out at once, and some more.
const PURCHASES: usize = 260;

/// A purchase each of many users: `A` is kept, `B` is cancelled, and of each so many-th one `C` is refunded.
fn crowd(purchases: usize, refunded: usize) -> Ledgers {
    let mut book = Book::new();
    for n in 0..purchases {
        book.bought(&format!("O-{n}-A"), 0);
        book.reserved(&format!("O-{n}-B"), 10);
        book.message(&format!("M-{n}"), &format!("O-{n}-B"), "order.timeout", "QUEUED");
        if n % refunded == 0 {
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
    begin_with(store, tenant, purchases, 10).await
}

async fn begin_with<'s>(store: &'s Store, tenant: &str, purchases: usize, refunded: usize) -> Night<'s> {
    store.import(&of_tenant(crowd(purchases, refunded), tenant), false, |_, _| ()).await.unwrap();
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

/// Applies a plan intent by intent, as whoever is to go slowly does.
async fn one_by_one(night: &Night<'_>, providers: &Providers<'_>) -> Applied {
    let slowly = Pace::new(1, Some(1e9), Duration::ZERO, &|| Gate::Open);
    let worker = night.worker();
    executor_with(night.store, providers, &worker)
        .begin(&night.plan, &Tally::of(&night.plan.intents), &night.freeze)
        .await
        .unwrap()
        .carry_out(&night.plan.with_steps(), &slowly, &mut |_: Moment<'_>| ControlFlow::Continue(()))
        .await
        .unwrap()
}

/// The same is told of the tenants `together` and `alone`, of more than so many steps.
async fn told_alike(store: &Store, db: &Db, steps: usize) {
    let (here, there) = (told(db, "together").await, told(db, "alone").await);
    assert!(here.iter().all(|rows| rows.len() > steps), "{} steps", here[0].len());
    for (here, there) in here.iter().flatten().zip(there.iter().flatten()) {
        assert_eq!(here, there);
    }
    assert_eq!(here, there);
    let verified = store.verify_journal(|_| ()).await.unwrap();
    assert!(verified.fits(), "{verified:?}");
}

/// What stands in the outbox about a tenant's payments.
async fn outbox(db: &Db, tenant: &str) -> Vec<Vec<String>> {
    let requests = "SELECT kind, payment_id, provider, COALESCE(provider_txn_id, ''), amount_minor, currency, state \
                    FROM onefold_outbox WHERE tenant_id = ";
    db.rows(&format!("{requests}'{tenant}' ORDER BY payment_id, kind")).await
}

fn accepted(applied: &Applied) -> usize {
    applied.intents.iter().filter(|(_, end)| matches!(end, IntentEnd::Accepted(_))).count()
}

/// Does something with each row of which a condition holds.
async fn trigger(db: &Db, event: &str, condition: &str, does: &str) {
    let made = match db.kind {
        Kind::Sqlite => format!("WHEN {condition} BEGIN {does}; END"),
        Kind::Postgres => {
            let body = format!("BEGIN IF {condition} THEN {does}; END IF; RETURN NEW; END");
            db.run(format!("CREATE FUNCTION made() RETURNS trigger LANGUAGE plpgsql AS $$ {body} $$")).await;
            "FOR EACH ROW EXECUTE FUNCTION made()".to_owned()
        }
        Kind::Mariadb => format!("FOR EACH ROW IF {condition} THEN {does}; END IF"),
    };
    db.run(format!("CREATE TRIGGER made {event} {made}")).await;
}

/// How a trigger refuses a row.
fn refusal(kind: Kind, why: &str) -> String {
    match kind {
        Kind::Sqlite => format!("SELECT RAISE(ABORT, '{why}')"),
        Kind::Postgres => format!("RAISE EXCEPTION '{why}'"),
        Kind::Mariadb => format!("SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = '{why}'"),
    }
}

/// What somebody else asks of the payment service.
const BY_HAND: &str = "INSERT INTO onefold_outbox (request_key, kind, tenant_id, payment_id, provider, amount_minor, currency, \
                       reason, requested_at_us, state) VALUES ('by hand', 'REFUND', 't', 'P-O-20-C', 'pay', 1000, 'CNY', \
                       'by hand', 1, 'TAKEN')";

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

        let applied = one_by_one(&alone, &providers(Sandbox::well_behaved(&store))).await;
        assert!(applied.is_whole(), "{applied:?}");

        assert_eq!(together.rows().await, alone.rows().await);
        assert_eq!(together.requests(db).await, alone.requests(db).await);
        told_alike(&store, db, 4 * PURCHASES).await;
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
            .begin(&night.plan, &Tally::of(&night.plan.intents), &night.freeze)
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

    async fn what_leaves_with_its_first_leg_leaves_with_the_moves_of_others(db) {
        let store = db.store().await;
        // More than are looked at together.
        let (together, alone) = (begin_with(&store, "together", 140, 2).await, begin_with(&store, "alone", 140, 2).await);
        let providers = providers(Outbox::new(&store));
        let (mut opened, mut before_the_first) = (0, None);
        let applied = together.apply_through(&providers, |moment| {
            match moment {
                Moment::Open(_) => opened += 1,
                Moment::Intent(_) if before_the_first.is_none() => before_the_first = Some(opened),
                _ => {}
            }
            ControlFlow::Continue(())
        }).await.unwrap();
        assert_eq!((before_the_first, opened), (Some(70), 70));
        let slowly = one_by_one(&alone, &providers).await;
        assert_eq!(accepted(&applied), 70, "{applied:?}");
        let ends = |applied: &Applied| applied.intents.iter().map(|(_, end)| end.clone()).collect::<Vec<_>>();
        assert_eq!(ends(&applied), ends(&slowly));
        assert_eq!(together.rows().await, alone.rows().await);
        assert_eq!(outbox(db, "together").await, outbox(db, "alone").await);
        assert_eq!(outbox(db, "together").await.len(), 70);
        told_alike(&store, db, 3 * 140).await;
        let again = together.apply_through(&providers, |_| ControlFlow::Continue(())).await.unwrap();
        assert_eq!(ends(&again), ends(&applied));
        assert_eq!(outbox(db, "together").await.len(), 70);

        // The service does them: then the rest is done at once.
        db.run("UPDATE onefold_outbox SET state = 'DONE', provider_ref = 're', answered_at_us = requested_at_us").await;
        let applied = together.apply_through(&providers, |_| ControlFlow::Continue(())).await.unwrap();
        assert!(applied.is_whole(), "{applied:?}");
        let refunded = "SELECT payment_id FROM payments WHERE tenant_id = 'together' AND status = 'REFUNDED' AND refunded_minor = amount_minor";
        assert_eq!(db.rows(refunded).await.len(), 70);
    }

    async fn what_changes_while_a_row_is_waited_for_is_seen_before_a_request_leaves(db) {
        // There one writes at a time: nothing changes while we wait.
        if db.kind == Kind::Sqlite {
            return;
        }
        let store = db.store().await;
        let night = begin(&store, "t", 20).await;
        let mut holder = AnyConnection::connect(&db.url).await.unwrap();
        let mut held = holder.begin().await.unwrap();
        let hold = "SELECT order_id FROM orders WHERE tenant_id = 't' AND order_id = 'O-0-B' FOR UPDATE";
        sqlx::query(hold).fetch_all(&mut *held).await.unwrap();
        let outbox_only = providers(Outbox::new(&store));
        let (applied, ()) = tokio::join!(
            night.apply_through(&outbox_only, |_| ControlFlow::Continue(())),
            async {
                // Apply has looked at all rows by then, and waits for this one for at most a second.
                tokio::time::sleep(Duration::from_millis(600)).await;
                // The company gives the kept order's money back by itself.
                db.run("UPDATE payments SET status = 'REFUNDED', refunded_minor = amount_minor, version = '9' WHERE payment_id = 'P-O-10-A'").await;
                held.rollback().await.unwrap();
            }
        );
        let applied = applied.unwrap();
        let requests: Vec<_> = outbox(db, "t").await.into_iter().map(|row| row[1].clone()).collect();
        assert_eq!(requests, ["P-O-0-C"], "{applied:?}");
        let conflicts = applied.intents.iter().filter(|(_, end)| matches!(end, IntentEnd::Conflict(_))).count();
        assert_eq!((conflicts, accepted(&applied)), (1, 1), "{applied:?}");
    }

    async fn what_is_stopped_tells_which_requests_have_left(db) {
        let store = db.store().await;
        let night = begin(&store, "t", 40).await;
        let applied = night.apply_through(&providers(Outbox::new(&store)), |moment| match moment {
            Moment::Intent(_) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }).await.unwrap();
        assert!(applied.stopped);
        assert_eq!((accepted(&applied), outbox(db, "t").await.len()), (4, 4), "{applied:?}");
    }

    async fn where_a_request_cannot_be_written_its_payment_does_not_move(db) {
        let store = db.store().await;
        let night = begin(&store, "t", 40).await;
        let one = "NEW.payment_id = 'P-O-20-C'";
        trigger(db, "BEFORE INSERT ON onefold_outbox", one, &refusal(db.kind, "no room")).await;
        let error = night.apply_through(&providers(Outbox::new(&store)), |_| ControlFlow::Continue(())).await.unwrap_err();
        assert!(error.to_string().contains("no room"), "{error:?}");
        let moved = db.rows("SELECT payment_id FROM payments WHERE status = 'REFUNDING' ORDER BY payment_id").await;
        assert_eq!(moved, db.rows("SELECT payment_id FROM onefold_outbox ORDER BY payment_id").await);
        assert!(!moved.contains(&vec!["P-O-20-C".to_owned()]), "{moved:?}");
        let begun = "SELECT step_key FROM onefold_steps WHERE row_id = 'P-O-20-C'";
        assert!(db.rows(begun).await.is_empty());
    }

    async fn a_payment_of_which_the_service_has_a_request_already_is_not_asked_about_again(db) {
        let store = db.store().await;
        let night = begin(&store, "t", 40).await;
        db.run(BY_HAND).await;
        let applied = night.apply_through(&providers(Outbox::new(&store)), |_| ControlFlow::Continue(())).await.unwrap();
        let conflicts: Vec<_> = applied
            .intents
            .iter()
            .filter_map(|(_, end)| if let IntentEnd::Conflict(why) = end { Some(why) } else { None })
            .collect();
        assert!(
            matches!(&conflicts[..], [why] if why[0].contains("another REFUND of payment P-O-20-C")),
            "{applied:?}"
        );
        assert_eq!(accepted(&applied), 3, "{applied:?}");
        assert_eq!(night.status(Ledger::Payments, "P-O-20-C").await, "CAPTURED");
        let requests = outbox(db, "t").await;
        assert_eq!(requests.iter().filter(|row| row[1] == "P-O-20-C").count(), 1, "{requests:?}");
    }

    async fn a_request_of_anothers_that_comes_in_the_very_moment_stops_its_own_purchase_only(db) {
        let store = db.store().await;
        let night = begin(&store, "t", 40).await;
        let moved = "NEW.payment_id = 'P-O-20-C' AND NEW.status = 'REFUNDING'";
        trigger(db, "AFTER UPDATE ON payments", moved, BY_HAND).await;
        let applied = night.apply_through(&providers(Outbox::new(&store)), |_| ControlFlow::Continue(())).await.unwrap();
        let conflicts = applied.intents.iter().filter(|(_, end)| matches!(end, IntentEnd::Conflict(_))).count();
        assert_eq!((conflicts, accepted(&applied)), (1, 3), "{applied:?}");
        assert_eq!(night.status(Ledger::Payments, "P-O-20-C").await, "CAPTURED");
    }

    async fn a_request_that_another_is_in_the_way_of_is_not_sent(db) {
        let store = db.store().await;
        begin(&store, "t", 40).await;
        db.run(BY_HAND).await;
        // A column of the service's own.
        db.run("ALTER TABLE onefold_outbox ADD COLUMN taken_at TIMESTAMP DEFAULT NULL").await;
        let payment: Payment = store.read_row(&"t".into(), &"P-O-20-C".into()).await.unwrap().unwrap();
        let ask = Ask::Refund { amount_minor: 1000, currency: payment.currency };
        let request = Request { key: "ours".to_owned(), charge: (&payment).into(), ask, reason: String::new(), reference: None };
        let answer = Outbox::new(&store).send(&request, at(0)).await.unwrap();
        assert!(matches!(&answer, Answer::NotSent(why) if why.contains("another REFUND of payment P-O-20-C")), "{answer:?}");
        assert_eq!(db.rows("SELECT request_key FROM onefold_outbox").await, [["by hand"]]);
    }

    async fn a_row_that_cannot_be_moved_does_not_hold_back_others(db) {
        let store = db.store().await;
        let night = begin(&store, "t", 20).await;
        let one = "OLD.hold_id = 'H-O-9-B'";
        trigger(db, "BEFORE UPDATE ON inventory", one, &refusal(db.kind, "locked")).await;
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
        let does = match db.kind {
            Kind::Sqlite => "SELECT RAISE(IGNORE)",
            Kind::Postgres => "RETURN NULL",
            // It counts the row, and says afterwards that it did not move.
            Kind::Mariadb => "SET NEW.status = OLD.status",
        };
        trigger(db, "BEFORE UPDATE ON inventory", one, does).await;
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
