//! Rows change between plan and apply, or between the two legs of a refund: nothing of that intent
//! moves further, and the others go on.

use std::ops::ControlFlow;

use onefold::core::plan::Outcome;
use onefold::core::status::Ledger;
use onefold::execute::{IntentEnd, Moment};

use super::scene::*;
use crate::on_every_database;

/// What may happen in the first intent, by name, as statements for a tenant.
fn changes(night: &Night<'_>) -> Vec<(&'static str, String)> {
    let tenant = &night.tenant;
    let order = format!(
        "INSERT INTO orders SELECT tenant_id, 'O-new', user_id, show_id, session_id, idempotency_key, item, quantity, \
         amount_minor, currency, 'PENDING_PAYMENT', source, trace_id, created_at_us + 1, version \
         FROM orders WHERE tenant_id = '{tenant}' AND order_id = 'O-C'"
    );
    let hold = format!(
        "INSERT INTO inventory SELECT tenant_id, 'H-new', order_id, user_id, show_id, session_id, item, quantity, \
         status, created_at_us, expires_at_us, version FROM inventory WHERE tenant_id = '{tenant}' AND hold_id = 'H-O-A'"
    );
    let capture = format!(
        "INSERT INTO payments SELECT tenant_id, 'P-new', 'O-C', user_id, show_id, session_id, amount_minor, 0, \
         currency, provider, 'txn', 'CAPTURED', created_at_us + 1, captured_at_us, version \
         FROM payments WHERE tenant_id = '{tenant}' AND payment_id = 'P-O-A'"
    );
    let message = format!(
        "INSERT INTO messages SELECT tenant_id, 'M-new', 'k', topic, order_id, user_id, show_id, session_id, \
         status, attempts, trace_id, created_at_us, version FROM messages WHERE tenant_id = '{tenant}' AND message_id = 'M-B'"
    );
    vec![
        ("a late capture on a loser", capture),
        ("a new order", order),
        ("a new hold", hold),
        ("a new message", message),
        ("the kept order changes, which has no step", night.touch(Ledger::Orders, "O-A", "")),
        (
            "the kept order's payment is disputed",
            night.touch(Ledger::Payments, "P-O-A", "status = 'DISPUTED'"),
        ),
        (
            "a row keeps its version and says something else",
            format!(
                "UPDATE payments SET amount_minor = 999 WHERE tenant_id = '{tenant}' AND payment_id = 'P-O-A'"
            ),
        ),
        ("a loser is ticketed", night.touch(Ledger::Orders, "O-C", "status = 'PAID'")),
    ]
}

/// How many changes there are.
const CHANGES: usize = 8;

on_every_database! {
    async fn what_changes_between_plan_and_apply_stops_its_intent_before_the_first_step(db) {
        let store = db.store().await;
        for number in 0..CHANGES {
            let night = Night::begin(&store, &format!("n{number}")).await;
            let (name, change) = changes(&night).swap_remove(number);
            db.run(change).await;
            let before = night.rows().await;
            let ends = night.ends().await;
            assert!(matches!(ends[..], [IntentEnd::Conflict(_), IntentEnd::Done]), "{name}: {ends:?}");
            let mut after = night.rows().await;
            let of_v = |user: &str| user == "v";
            after.orders.retain(|r| !of_v(r.user_id.as_str()));
            after.payments.retain(|r| !of_v(r.user_id.as_str()));
            after.inventory.retain(|r| !of_v(r.user_id.as_str()));
            let mut expected = before;
            expected.orders.retain(|r| !of_v(r.user_id.as_str()));
            expected.payments.retain(|r| !of_v(r.user_id.as_str()));
            expected.inventory.retain(|r| !of_v(r.user_id.as_str()));
            assert_eq!(after, expected, "{name}");
        }
    }

    async fn what_changes_between_the_legs_of_a_refund_stops_it_before_the_money(db) {
        let store = db.store().await;
        for number in 0..CHANGES {
            let mut night = Night::begin(&store, &format!("n{number}")).await;
            let (name, change) = changes(&night).swap_remove(number);
            let mut rows_then = None;
            let applied = night.apply(|moment| {
                if matches!(moment, Moment::Ended(r) if r.step.id.as_str() == "P-O-B" && r.step.to == "REFUNDING") {
                    db.run_now(&change);
                    rows_then = Some(());
                }
                ControlFlow::Continue(())
            }).await.unwrap();
            assert!(rows_then.is_some(), "{name}: it never got there");
            assert!(matches!(applied.intents[0].1, IntentEnd::Conflict(_)), "{name}: {:?}", applied.intents);
            assert_eq!(applied.intents[1].1, IntentEnd::Done, "{name}");
            assert_eq!(night.status(Ledger::Payments, "P-O-B").await, "REFUNDING", "{name}");
            assert_eq!(night.status(Ledger::Inventory, "H-O-B").await, "CONFIRMED", "{name}");
            assert!(night.requests(db).await.iter().all(|r| r[0] != "P-O-B"), "{name}: nothing was sent");
            let again = night.ends().await;
            assert!(matches!(again[..], [IntentEnd::Conflict(_), IntentEnd::Done]), "{name}: {again:?}");

            // Unless a person is to look at it, the leg is taken back and the purchase decided anew; in any
            // case money moves at most once a charge.
            night.tell_all().await;
            night.converge().await;
            night.plan_again("second").await;
            if night.plan.intents[0].outcome != Outcome::Review {
                assert_eq!(night.status(Ledger::Payments, "P-O-B").await, "CAPTURED", "{name}");
                assert_ne!(night.plan.intents[0].outcome, Outcome::Unsettled, "{name}");
            }
            night.finish().await;
            let requests = night.requests(db).await;
            for request in &requests {
                let same = requests.iter().filter(|r| r[0] == request[0]).count();
                assert_eq!(same, 1, "{name}: {requests:?}");
            }
        }
    }

    async fn the_other_operators_own_steps_of_the_same_plan_are_no_change(db) {
        let store = db.store().await;
        let calm = calm(&store, db).await;
        let night = Night::begin(&store, "half").await;
        night.break_off_at(9).await;
        let other = Night {
            store: &store,
            tenant: night.tenant.clone(),
            freeze: night.freeze.clone(),
            plan: store.plan_by_id(&night.plan.plan_id).await.unwrap().plan,
        };
        other.finish().await;
        assert_eq!(outcome(&night, db).await, calm);
    }
}
