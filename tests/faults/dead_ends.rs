//! What was begun is carried on or ended, whatever became of its freeze, its row, its record or its
//! charge; and whatever is in doubt is asked about.

use std::ops::ControlFlow;

use onefold::core::plan::Outcome;
use onefold::core::status::Ledger;
use onefold::core::time::Span;
use onefold::error::Exit;
use onefold::execute::converge::Learned;
use onefold::execute::{IntentEnd, Moment};
use onefold::store::sandbox::Behaviour;

use super::scene::*;
use crate::common::databases::Db;
use crate::on_every_database;

/// What was learned about a payment, last.
fn about<'l>(learned: &'l [Learned], payment: &str) -> &'l Learned {
    learned.iter().rfind(|l| l.id.as_str() == payment).unwrap_or_else(|| panic!("{learned:?}"))
}

/// The provider's books about a payment of the night are changed.
async fn provider_says(night: &Night<'_>, db: &Db, payment: &str, set: &str) {
    let tenant = &night.tenant;
    db.run(format!(
        "UPDATE onefold_sandbox_charges SET {set} WHERE tenant_id = '{tenant}' AND charge = '{payment}'"
    ))
    .await;
}

async fn refunded_minor(night: &Night<'_>, payment: &str) -> i64 {
    let rows = night.rows().await;
    rows.payments.iter().find(|p| p.payment_id.as_str() == payment).unwrap().refunded_minor
}

/// Asks, plans anew and applies until nothing is left to do.
async fn settle(night: &mut Night<'_>) {
    for round in 0..5 {
        night.converge().await;
        night.plan_again(&format!("settle{round}")).await;
        night.finish().await;
        if night.plan.intents.iter().all(|i| i.outcome == Outcome::Clean) {
            return;
        }
    }
    panic!("{:#?}", night.plan.intents);
}

async fn requests_about(night: &Night<'_>, db: &Db, payment: &str) -> Vec<String> {
    night.requests(db).await.into_iter().filter(|r| r[0] == payment).map(|r| r[1..].join(" ")).collect()
}

on_every_database! {
    async fn a_request_that_was_lost_goes_out_again_under_another_freeze_once_its_own_is_gone(db) {
        let store = db.store().await;
        for (name, lapses) in [("thawed", false), ("lapsed", true)] {
            let mut night = Night::begin(&store, name).await;
            night.behave("P-O-E", Behaviour::LoseRequest).await;
            night.ends().await;
            if lapses {
                turn_clock(Span::from_mins(40));
            } else {
                store.thaw(&night.freeze, Vec::new(), "op", "by force", clock()).await.unwrap();
                let learned = night.converge().await;
                let learned = about(&learned, "P-O-E");
                assert!(!learned.settled && learned.what.contains("onefold freeze --tenant thawed --show"), "{learned:?}");
            }
            night.freeze_again("second").await;
            let learned = night.converge().await;
            assert!(about(&learned, "P-O-E").settled, "{name}: {learned:?}");
            assert_eq!(night.status(Ledger::Payments, "P-O-E").await, "REFUNDED", "{name}");
            settle(&mut night).await;
            assert_eq!(requests_about(&night, db, "P-O-E").await, ["REFUND 1000 DONE"], "{name}");
            assert_eq!(night.refunded(db).await.len(), 3, "{name}");
        }
    }

    async fn a_refund_of_which_only_the_first_leg_was_made_is_taken_back_once_its_freeze_is_gone(db) {
        let store = db.store().await;
        let mut night = Night::begin(&store, "half").await;
        night.tell_all().await;
        let _ = night.apply(|moment| match moment {
            Moment::Ended(r) if r.step.id.as_str() == "P-O-E" => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }).await.unwrap();
        assert!(about(&night.converge().await, "P-O-E").what.contains("goes on with it"));
        store.thaw(&night.freeze, Vec::new(), "op", "by force", clock()).await.unwrap();
        assert!(about(&night.converge().await, "P-O-E").settled);
        assert_eq!(night.status(Ledger::Payments, "P-O-E").await, "CAPTURED");
        night.freeze_again("second").await;
        settle(&mut night).await;
        assert_eq!(requests_about(&night, db, "P-O-E").await, ["REFUND 1000 DONE"]);
    }

    async fn a_refund_that_the_ledger_counts_before_we_do_is_counted_once(db) {
        let store = db.store().await;
        for (name, counted) in [("none", 0), ("some", 300), ("all", 1000)] {
            let mut night = Night::begin(&store, name).await;
            night.behave("P-O-E", Behaviour::LoseAnswer).await;
            night.ends().await;
            db.run(night.touch(Ledger::Payments, "P-O-E", &format!("refunded_minor = {counted}"))).await;
            assert!(about(&night.converge().await, "P-O-E").settled, "{name}");
            assert_eq!(night.status(Ledger::Payments, "P-O-E").await, "REFUNDED", "{name}");
            assert_eq!(refunded_minor(&night, "P-O-E").await, 1000, "{name}");
            settle(&mut night).await;
            assert_eq!(refunded_minor(&night, "P-O-E").await, 1000, "{name}");
        }
        let night = Night::begin(&store, "more").await;
        night.behave("P-O-E", Behaviour::LoseAnswer).await;
        night.ends().await;
        db.run(night.touch(Ledger::Payments, "P-O-E", "refunded_minor = 1300")).await;
        let learned = night.converge().await;
        let learned = about(&learned, "P-O-E");
        assert!(!learned.settled && learned.what.contains("has 13.00 CNY given back, where 0.00 CNY was"), "{learned:?}");
        assert_eq!(refunded_minor(&night, "P-O-E").await, 1300, "nothing is written over it");
    }

    async fn a_charge_in_another_currency_is_neither_refunded_nor_believed(db) {
        let store = db.store().await;
        let night = Night::begin(&store, "refund").await;
        night.behave("P-O-E", Behaviour::Ok).await;
        provider_says(&night, db, "P-O-E", "currency = 'EUR'").await;
        let ends = night.ends().await;
        assert!(matches!(&ends[1], IntentEnd::Refused(why) if why.contains("the charge is in EUR, the request in CNY")), "{ends:?}");
        assert_eq!(night.refunded(db).await.len(), 2);

        let night = Night::begin(&store, "doubt").await;
        night.behave("P-O-E", Behaviour::Ok).await;
        provider_says(&night, db, "P-O-E", "currency = 'EUR'").await;
        db.run(night.touch(Ledger::Payments, "P-O-E", "status = 'UNKNOWN'")).await;
        let learned = night.converge().await;
        let learned = about(&learned, "P-O-E");
        assert!(!learned.settled && learned.what.contains("captured 10.00 EUR, the ledger says 10.00 CNY"), "{learned:?}");
        assert_eq!(night.status(Ledger::Payments, "P-O-E").await, "UNKNOWN");
    }

    async fn a_request_whose_record_was_changed_is_not_sent(db) {
        let store = db.store().await;
        let night = Night::begin(&store, "changed").await;
        night.behave("P-O-E", Behaviour::LoseRequest).await;
        night.ends().await;
        let set = |set: &str| format!("UPDATE onefold_steps SET {set} WHERE row_id = 'P-O-E' AND to_status = 'REFUNDED'");
        let key = db.rows("SELECT provider_key FROM onefold_steps WHERE row_id = 'P-O-E' AND to_status = 'REFUNDED'").await.remove(0).remove(0);
        let restored = format!("provider_key = '{key}'");
        for (change, back) in [
            ("amount_minor = 1", "amount_minor = 1000"),
            ("amount_minor = NULL, currency = NULL", "amount_minor = 1000, currency = 'CNY'"),
            ("currency = 'JPY'", "currency = 'CNY'"),
            ("provider_key = 'another'", restored.as_str()),
        ] {
            db.run(set(change)).await;
            let error = night.apply(|_| ControlFlow::Continue(())).await.unwrap_err();
            assert!(error.exit == Exit::Refused && error.message.contains("is not what PL-changed decided"), "{change}: {error}");
            let worker = worker("op", 0);
            let open = store.open_steps().await.unwrap();
            let learned = executor(&store, &worker).converge_steps(open).await.unwrap();
            let about = about(&learned, "P-O-E");
            assert!(about.refused && about.what.contains("is not what PL-changed decided"), "{change}: {about:?}");
            assert_eq!(requests_about(&night, db, "P-O-E").await, ["REFUND 1000 LOST"], "{change}");
            db.run(set(back)).await;
        }
        night.finish().await;
        assert_eq!(requests_about(&night, db, "P-O-E").await, ["REFUND 1000 DONE"]);
    }

    async fn a_payment_that_is_gone_stops_only_its_own_intent(db) {
        let store = db.store().await;
        for (name, by_apply) in [("apply", true), ("converge", false)] {
            let night = Night::begin(&store, name).await;
            night.behave("P-A2", Behaviour::LoseAnswer).await;
            night.behave("P-O-E", Behaviour::LoseAnswer).await;
            night.ends().await;
            db.run(format!("UPDATE payments SET payment_id = 'P-X' WHERE payment_id = 'P-A2' AND tenant_id = '{name}'")).await;
            if by_apply {
                let ends = night.ends().await;
                assert!(matches!(&ends[..], [IntentEnd::Conflict(why), IntentEnd::Done] if why[0].contains("P-A2 is gone")), "{ends:?}");
            } else {
                let learned = night.converge().await;
                assert!(!about(&learned, "P-A2").settled && about(&learned, "P-O-E").settled, "{learned:?}");
            }
            assert_eq!(night.status(Ledger::Payments, "P-O-E").await, "REFUNDED", "{name}");
            assert_eq!(requests_about(&night, db, "P-A2").await, ["REFUND 1000 DONE"], "{name}");
        }
    }

    async fn a_void_that_comes_after_the_capture_ends_and_the_charge_is_refunded(db) {
        let store = db.store().await;
        let cases = [("refused", Behaviour::Ok, ""), ("lost", Behaviour::LoseRequest, ""), ("by hand", Behaviour::LoseRequest, "status = 'CAPTURED'")];
        for (name, behaviour, by_hand) in cases {
            let mut night = Night::begin(&store, name).await;
            night.behave("P-B2", behaviour).await;
            night.tell_all().await;
            if behaviour == Behaviour::Ok {
                provider_says(&night, db, "P-B2", "status = 'CAPTURED'").await;
                let ends = night.ends().await;
                assert!(matches!(&ends[0], IntentEnd::Refused(why) if why.contains("the provider says CAPTURED")), "{ends:?}");
            } else {
                assert!(matches!(night.ends().await[0], IntentEnd::Unknown(_)), "{name}");
                provider_says(&night, db, "P-B2", "status = 'CAPTURED'").await;
                if !by_hand.is_empty() {
                    db.run(night.touch(Ledger::Payments, "P-B2", by_hand)).await;
                }
                assert!(about(&night.converge().await, "P-B2").settled, "{name}");
            }
            assert_eq!(night.status(Ledger::Payments, "P-B2").await, "CAPTURED", "{name}");
            assert!(store.open_steps().await.unwrap().is_empty(), "{name}");
            assert!(store.evidence().await.unwrap().refused_refunds.is_empty(), "{name}");
            settle(&mut night).await;
            assert_eq!(night.status(Ledger::Payments, "P-B2").await, "REFUNDED", "{name}");
            assert_eq!(night.refunded(db).await.len(), 4, "{name}");
        }
    }

    async fn a_lost_refund_whose_row_was_moved_by_hand_says_what_to_do_and_ends_when_it_is_done(db) {
        let store = db.store().await;
        let mut night = Night::begin(&store, "by-hand").await;
        night.behave("P-O-E", Behaviour::LoseRequest).await;
        night.ends().await;
        db.run(night.touch(Ledger::Payments, "P-O-E", "status = 'CAPTURED'")).await;
        night.plan_again("second").await;
        let learned = night.converge().await;
        let learned = about(&learned, "P-O-E");
        assert!(!learned.settled && learned.what.contains("make it at the provider by hand, under key"), "{learned:?}");
        assert_eq!(requests_about(&night, db, "P-O-E").await, ["REFUND 1000 LOST"]);

        provider_says(&night, db, "P-O-E", "status = 'REFUNDED', refunded_minor = 1000").await;
        let learned = night.converge().await;
        assert!(about(&learned, "P-O-E").settled, "{learned:?}");
        assert_eq!((night.status(Ledger::Payments, "P-O-E").await.as_str(), refunded_minor(&night, "P-O-E").await), ("REFUNDED", 1000));
        assert!(store.open_steps().await.unwrap().is_empty());
        settle(&mut night).await;
        assert_eq!(requests_about(&night, db, "P-O-E").await, ["REFUND 1000 LOST"]);
    }

    async fn a_payment_in_doubt_is_asked_about_though_a_person_must_decide_its_purchase(db) {
        let store = db.store().await;
        let mut night = Night::begin(&store, "review").await;
        night.tell_all().await;
        db.run(night.touch(Ledger::Payments, "P-O-D", "status = 'DISPUTED'")).await;
        db.run(night.touch(Ledger::Payments, "P-O-E", "status = 'UNKNOWN'")).await;
        night.plan_again("second").await;
        assert_eq!(night.plan.intents[1].outcome, Outcome::Review);
        assert!(about(&night.converge().await, "P-O-E").settled);
        assert_eq!(night.status(Ledger::Payments, "P-O-E").await, "CAPTURED");
    }
}
