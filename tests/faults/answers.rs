//! The provider loses requests and answers, takes its time, refuses, or tells the ledger before we do.

use std::ops::ControlFlow;

use onefold::core::plan::{Finding, Outcome};
use onefold::core::status::Ledger;
use onefold::execute::{IntentEnd, Moment};
use onefold::store::sandbox::Behaviour;
use onefold::store::steps::StepState;

use super::scene::*;
use crate::on_every_database;

/// Does something each time the provider has answered about a payment.
fn when_answered(
    payment: &'static str,
    mut act: impl FnMut() + Send,
) -> impl FnMut(Moment<'_>) -> ControlFlow<()> + Send {
    move |moment| {
        if matches!(moment, Moment::Answered(step) if step.id.as_str() == payment) {
            act();
        }
        ControlFlow::Continue(())
    }
}

on_every_database! {
    async fn a_lost_answer_is_unknown_until_the_provider_is_asked(db) {
        let store = db.store().await;
        let calm = calm(&store, db).await;
        let night = Night::begin(&store, "lost").await;
        night.behave("P-O-E", Behaviour::LoseAnswer).await;
        let ends = night.ends().await;
        assert!(matches!(ends[..], [IntentEnd::Done, IntentEnd::Unknown(_)]), "{ends:?}");
        assert_eq!(night.status(Ledger::Payments, "P-O-E").await, "REFUNDING");
        assert_eq!(night.status(Ledger::Inventory, "H-O-E").await, "CONFIRMED", "money leaves before stock");
        let learned = night.converge().await;
        assert!(learned.iter().any(|l| l.id.as_str() == "P-O-E" && l.settled), "{learned:?}");
        assert_eq!(night.status(Ledger::Payments, "P-O-E").await, "REFUNDED");
        night.finish().await;
        assert_eq!(outcome(&night, db).await, calm);
    }

    async fn a_lost_request_goes_out_again_under_its_own_key(db) {
        let store = db.store().await;
        let calm = calm(&store, db).await;
        let night = Night::begin(&store, "lost").await;
        night.behave("P-O-E", Behaviour::LoseRequest).await;
        let ends = night.ends().await;
        assert!(matches!(ends[..], [IntentEnd::Done, IntentEnd::Unknown(_)]), "{ends:?}");
        night.finish().await;
        assert_eq!(outcome(&night, db).await, calm);
    }

    async fn a_request_that_was_accepted_is_waited_for(db) {
        let store = db.store().await;
        let calm = calm(&store, db).await;
        let night = Night::begin(&store, "slow").await;
        night.behave("P-O-E", Behaviour::Pending).await;
        let ends = night.ends().await;
        assert!(matches!(ends[..], [IntentEnd::Done, IntentEnd::Accepted(_)]), "{ends:?}");
        assert_eq!(night.status(Ledger::Orders, "O-E").await, "REFUNDING");
        night.finish().await;
        assert_eq!(outcome(&night, db).await, calm);
    }

    async fn a_refund_that_the_provider_refuses_puts_the_payment_back_and_goes_to_a_person(db) {
        let store = db.store().await;
        let mut night = Night::begin(&store, "no").await;
        night.behave("P-O-E", Behaviour::Refuse).await;
        for _ in 0..2 {
            let ends = night.ends().await;
            assert!(matches!(ends[..], [IntentEnd::Done, IntentEnd::Refused(_)]), "{ends:?}");
        }
        assert_eq!(night.status(Ledger::Payments, "P-O-E").await, "CAPTURED");
        assert_eq!(night.status(Ledger::Inventory, "H-O-E").await, "CONFIRMED");
        night.plan_again("second").await;
        let intent = night.plan.intents.iter().find(|i| i.orders.iter().any(|o| o.as_str() == "O-E")).unwrap();
        assert_eq!(intent.outcome, Outcome::Review);
        assert!(intent.review_reasons.contains(&Finding::RefundRefused), "{intent:?}");
    }

    async fn a_void_that_the_provider_refuses_puts_the_payment_back_and_nothing_after_it_is_done(db) {
        let store = db.store().await;
        let night = Night::begin(&store, "no").await;
        night.behave("P-B2", Behaviour::Refuse).await;
        let ends = night.ends().await;
        assert!(matches!(ends[..], [IntentEnd::Refused(_), IntentEnd::Done]), "{ends:?}");
        assert_eq!(night.status(Ledger::Payments, "P-B2").await, "AUTHORIZED");
        assert_eq!(night.status(Ledger::Payments, "P-O-B").await, "CAPTURED");
        assert_eq!(night.status(Ledger::Inventory, "H-O-B").await, "CONFIRMED");
    }

    async fn a_report_that_reaches_the_ledger_before_our_record_is_taken_as_what_it_is(db) {
        let store = db.store().await;
        let mut night = Night::begin(&store, "webhook").await;
        let report = night.touch(Ledger::Payments, "P-O-E", "status = 'REFUNDED', refunded_minor = 1000");
        let applied = night.apply(when_answered("P-O-E", || db.run_now(&report))).await.unwrap();
        assert!(applied.is_whole(), "{applied:?}");
        let rows = night.rows().await;
        let payment = rows.payments.iter().find(|p| p.payment_id.as_str() == "P-O-E").unwrap();
        assert_eq!((payment.refunded_minor, payment.version.as_str()), (1000, "77"), "counted once");
        assert_eq!(night.status(Ledger::Orders, "O-E").await, "REFUNDED");
        night.plan_again("second").await;
        assert!(night.plan.intents.iter().all(|i| i.outcome == Outcome::Clean), "{:?}", night.plan.intents);
    }

    async fn a_row_that_is_touched_while_its_refund_is_under_way_still_gets_what_the_provider_did(db) {
        let store = db.store().await;
        let night = Night::begin(&store, "touched").await;
        let touch = night.touch(Ledger::Payments, "P-O-E", "");
        let applied = night.apply(when_answered("P-O-E", || db.run_now(&touch))).await.unwrap();
        assert!(applied.is_whole(), "{applied:?}");
        assert_eq!(night.row(Ledger::Payments, "P-O-E").await, ("REFUNDED".to_owned(), "78".to_owned()));
        assert_eq!(night.refunded(db).await.len(), 3);
    }

    async fn money_that_went_back_while_somebody_moved_the_row_away_never_goes_back_again(db) {
        let store = db.store().await;
        let mut night = Night::begin(&store, "away").await;
        let away = night.touch(Ledger::Payments, "P-A2", "status = 'CAPTURED'");
        let applied = night.apply(when_answered("P-A2", || db.run_now(&away))).await.unwrap();
        let (_, end) = &applied.intents[0];
        assert!(matches!(end, IntentEnd::Conflict(why) if why[0].contains("though the provider has answered")), "{end:?}");

        // Planned anew, the ledger says that the money is still here; but our own request is open.
        night.converge().await;
        night.plan_again("second").await;
        assert_eq!(night.plan.intents[0].steps.len(), 2, "{:?}", night.plan.intents);
        let end = night.ends().await.swap_remove(0);
        assert!(matches!(&end, IntentEnd::Unknown(why) if why.contains("P-A2")), "{end:?}");
        assert_eq!(night.requests(db).await.iter().filter(|r| r[0] == "P-A2").count(), 1);

        // A person corrects the row, converge takes it in, and nothing is left to do.
        db.run(night.touch(Ledger::Payments, "P-A2", "status = 'REFUNDED', refunded_minor = 1000")).await;
        night.converge().await;
        night.plan_again("third").await;
        assert!(night.plan.intents.iter().all(|i| i.outcome == Outcome::Clean), "{:?}", night.plan.intents);
        assert!(night.store.open_steps().await.unwrap().is_empty());
        assert_eq!(night.requests(db).await.iter().filter(|r| r[0] == "P-A2").count(), 1);
    }

    async fn a_row_that_is_gone_when_the_answer_comes_leaves_the_request_open(db) {
        let store = db.store().await;
        let night = Night::begin(&store, "gone").await;
        let gone = format!("UPDATE payments SET payment_id = 'P-X' WHERE payment_id = 'P-O-E' AND tenant_id = '{}'", night.tenant);
        let applied = night.apply(when_answered("P-O-E", || db.run_now(&gone))).await.unwrap();
        let (_, end) = applied.intents.last().unwrap();
        assert!(matches!(end, IntentEnd::Conflict(_)), "{end:?}");
        let open = store.open_steps().await.unwrap();
        assert!(open.len() == 1 && open[0].sent && open[0].state == StepState::Unknown, "{open:?}");
    }
}
