//! A step is claimed by one at a time, and only who holds it ends it.

use onefold::core::evidence::Evidence;
use onefold::core::ids::TenantId;
use onefold::core::plan::Step;
use onefold::core::status::Ledger;
use onefold::error::{Exit, Result};
use onefold::store::Store;
use onefold::store::steps::{Claim, StepRecord, StepState};

use crate::common::book::{Book, at};
use crate::common::databases::at_once;
use crate::on_every_database;

/// A refund's second leg, as a process wants to claim it at this second.
fn wanted(owner: &str, token: i64, seconds: i64) -> StepRecord {
    StepRecord {
        step_key: "key".to_owned(),
        digest: "1000 CNY".to_owned(),
        plan_id: "PL-1".to_owned(),
        intent_id: "I-1".to_owned(),
        position: 3,
        tenant_id: "t".into(),
        step: Step {
            ledger: Ledger::Payments,
            id: "P-1".into(),
            from: "REFUNDING".to_owned(),
            to: "REFUNDED".to_owned(),
            amount_minor: Some(1000),
            currency: Some("CNY".parse().unwrap()),
            version: Some("2".into()),
            step_key: "key".to_owned(),
            provider_key: Some("ask".to_owned()),
        },
        state: StepState::Processing,
        sent: false,
        owner: Some(owner.to_owned()),
        token: Some(token),
        lease_until: Some(at(seconds + 60)),
        version_before: Some("2".into()),
        version_after: None,
        refunded_before_minor: None,
        refunded_after_minor: None,
        note: None,
        sent_at: None,
        provider_ref: None,
        sent_through: None,
        updated_at: at(seconds),
    }
}

async fn claim(store: &Store, wanted: &StepRecord) -> Claim {
    store.journal().transaction(async |tx| store.claim(tx, wanted).await).await.unwrap()
}

async fn finish(store: &Store, record: &StepRecord) -> Result<()> {
    store.journal().transaction(async |tx| store.finish_step(tx, record).await).await
}

async fn ours(store: &Store, wanted: &StepRecord) -> StepRecord {
    match claim(store, wanted).await {
        Claim::Ours(record) => record,
        other => panic!("{other:?}"),
    }
}

/// As it is in the database.
async fn there(store: &Store) -> StepRecord {
    store.step("key").await.unwrap().unwrap()
}

on_every_database! {
    async fn what_has_ended_of_some_rows_is_known_however_much_else_has(db) {
        let mut book = Book::new();
        book.bought("O-1", 0);
        // Rows of two ledgers may have one id.
        book.ledgers.payments[0].payment_id = "O-1".into();
        let store = db.store().await;
        let tenant_id = book.ledgers.orders[0].tenant_id.clone();
        let ended = |key: &str, tenant_id: &TenantId, ledger, id: &str| StepRecord {
            step_key: key.to_owned(),
            tenant_id: tenant_id.clone(),
            step: Step { ledger, id: id.into(), ..wanted("a", 1, 0).step },
            state: StepState::Done,
            refunded_before_minor: Some(100),
            refunded_after_minor: Some(1100),
            ..wanted("a", 1, 0)
        };
        let add = async |records: Vec<StepRecord>| {
            assert!(store.journal().transaction(async |tx| store.insert_steps(tx, &records).await).await.unwrap());
        };
        add(vec![
            ended("1", &tenant_id, Ledger::Orders, "O-1"),
            ended("2", &tenant_id, Ledger::Payments, "O-1"),
            ended("3", &"other".into(), Ledger::Payments, "O-1"),
            StepRecord { state: StepState::Conflict, ..ended("4", &tenant_id, Ledger::Orders, "O-1") },
        ]).await;
        let of_rows = |mut all: Evidence| {
            all.occurrences.retain(|of, _| of.tenant_id == tenant_id && of.id.as_str() == "O-1");
            all.refunded_by_us.retain(|of, _| *of == (tenant_id.clone(), "O-1".into()));
            all
        };
        let few = of_rows(store.evidence_of(&book.ledgers).await.unwrap());
        assert_eq!((few.occurrences.len(), few.refunded_by_us.values().sum::<i64>()), (2, 1000));
        let others = (0..20).map(|n| ended(&format!("other {n}"), &tenant_id, Ledger::Orders, &format!("X-{n}")));
        add(others.collect()).await;
        assert_eq!(store.evidence_of(&book.ledgers).await.unwrap(), few);
        let all = store.evidence().await.unwrap();
        assert_eq!(all.occurrences.len(), 23);
        assert_eq!(of_rows(all), few);
    }

    async fn a_step_is_read_as_it_was_claimed(db) {
        let store = db.store().await;
        assert!(store.step("key").await.unwrap().is_none());
        let claimed = ours(&store, &wanted("a", 1, 0)).await;
        assert_eq!((&claimed, &there(&store).await), (&wanted("a", 1, 0), &wanted("a", 1, 0)));
        assert_eq!(store.steps_of_plan("PL-1").await.unwrap(), std::slice::from_ref(&claimed));
        assert_eq!(store.open_steps().await.unwrap(), std::slice::from_ref(&claimed));
        assert_eq!(store.steps_of_payments(&"t".into(), &[&"P-1".into()]).await.unwrap(), [claimed]);
        assert!(store.steps_of_payments(&"T".into(), &[&"P-1".into()]).await.unwrap().is_empty());
    }

    async fn of_many_who_claim_a_step_at_once_one_gets_it_and_the_others_see_that_it_is_busy(db) {
        let store = db.store().await;
        let names: Vec<String> = (0..8).map(|i| format!("worker-{i}")).collect();
        let claims = at_once(names.iter().map(|name| {
            let store = &store;
            async move { claim(store, &wanted(name, 1, 0)).await }
        })).await;
        let winners: Vec<_> = claims.iter().filter_map(|c| match c {
            Claim::Ours(record) => record.owner.clone(),
            Claim::Busy(_) => None,
            other => panic!("{other:?}"),
        }).collect();
        assert_eq!(winners.len(), 1);
        assert_eq!(there(&store).await.owner, Some(winners[0].clone()));
    }

    async fn of_many_who_take_a_claim_that_has_lapsed_one_gets_it(db) {
        let store = db.store().await;
        ours(&store, &wanted("dead", 1, 0)).await;
        let names: Vec<String> = (0..8).map(|i| format!("worker-{i}")).collect();
        // All at the same microsecond, as a coarse clock would have it.
        let claims = at_once(names.iter().map(|name| {
            let store = &store;
            async move { claim(store, &wanted(name, 1, 60)).await }
        })).await;
        assert_eq!(claims.iter().filter(|c| matches!(c, Claim::Ours(_))).count(), 1, "{claims:?}");
    }

    async fn a_claim_holds_until_its_lease_runs_out_its_token_is_fenced_off_or_its_process_is_gone(db) {
        let store = db.store().await;
        ours(&store, &wanted("a", 1, 0)).await;
        assert!(matches!(claim(&store, &wanted("b", 1, 59)).await, Claim::Busy(_)));
        ours(&store, &wanted("a", 1, 59)).await;
        assert!(matches!(claim(&store, &wanted("b", 1, 118)).await, Claim::Busy(_)), "renewed by its owner");
        ours(&store, &wanted("b", 1, 119)).await;
        assert!(matches!(claim(&store, &wanted("a", 1, 120)).await, Claim::Busy(_)));
        ours(&store, &wanted("a", 2, 121)).await;

        let (here, gone) = (std::process::id(), i32::MAX);
        ours(&store, &wanted(&format!("x#host/{gone}-aa"), 3, 122)).await;
        assert!(matches!(claim(&store, &wanted("y#other/1-bb", 3, 123)).await, Claim::Busy(_)), "who knows there");
        ours(&store, &wanted(&format!("y#host/{here}-bb"), 3, 124)).await;
        assert!(matches!(claim(&store, &wanted("z#host/1-cc", 3, 125)).await, Claim::Busy(_)), "it lives");
        ours(&store, &wanted("alice", 4, 126)).await;
        assert!(matches!(claim(&store, &wanted("bob", 4, 127)).await, Claim::Busy(_)), "no machine is named");
    }

    async fn who_has_lost_a_step_cannot_end_it(db) {
        let store = db.store().await;
        let old = ours(&store, &wanted("a", 1, 0)).await;
        let new = ours(&store, &wanted("b", 2, 1)).await;
        let done = |record: &StepRecord| StepRecord { state: StepState::Done, updated_at: at(2), ..record.clone() };
        let error = finish(&store, &done(&old)).await.unwrap_err();
        assert_eq!(error.exit, Exit::Refused, "{error}");
        assert_eq!(there(&store).await, new);
        finish(&store, &done(&new)).await.unwrap();
        assert!(matches!(claim(&store, &wanted("a", 1, 3)).await, Claim::Done(_)));
    }

    async fn what_was_sent_is_asked_about_and_never_sent_with_another_amount(db) {
        let store = db.store().await;
        let sent = StepRecord { sent: true, ..wanted("a", 1, 0) };
        let record = ours(&store, &sent).await;
        for state in [StepState::Unknown, StepState::Accepted] {
            finish(&store, &StepRecord { state, ..record.clone() }).await.unwrap();
            let mut other = StepRecord { digest: "999 CNY".to_owned(), plan_id: "PL-2".to_owned(), ..wanted("b", 1, 1) };
            other.step.amount_minor = Some(999);
            assert!(matches!(claim(&store, &other).await, Claim::Differs(_)));
            let Claim::Sent(taken) = claim(&store, &StepRecord { plan_id: "PL-2".to_owned(), ..wanted("b", 1, 1) }).await else {
                panic!("not asked about");
            };
            assert_eq!((taken.plan_id.as_str(), taken.owner.as_deref(), taken.state), ("PL-1", Some("b"), state));
            let back = StepRecord { sent: true, ..wanted("a", 1, 2) };
            assert!(matches!(claim(&store, &back).await, Claim::Sent(_)));
        }
    }

    async fn what_was_never_sent_becomes_the_newer_plans_as_it_saw_the_row(db) {
        let store = db.store().await;
        let record = ours(&store, &wanted("a", 1, 0)).await;
        let conflict = StepRecord { state: StepState::Conflict, version_after: Some("7".into()), ..record };
        finish(&store, &conflict).await.unwrap();
        let mut newer = StepRecord {
            plan_id: "PL-2".to_owned(),
            digest: "999 CNY".to_owned(),
            version_before: Some("8".into()),
            ..wanted("a", 1, 1)
        };
        newer.step.amount_minor = Some(999);
        newer.step.version = Some("8".into());
        ours(&store, &newer).await;
        assert_eq!(there(&store).await, newer);
    }

    async fn what_the_provider_refused_and_what_was_given_up_is_over(db) {
        let store = db.store().await;
        let record = ours(&store, &wanted("a", 1, 0)).await;
        finish(&store, &StepRecord { state: StepState::Failed, ..record }).await.unwrap();
        assert!(matches!(claim(&store, &wanted("b", 9, 999)).await, Claim::Refused(_)));
        let other = StepRecord { step_key: "other".to_owned(), ..wanted("a", 1, 0) };
        let record = ours(&store, &other).await;
        finish(&store, &StepRecord { state: StepState::Withdrawn, ..record }).await.unwrap();
        assert!(matches!(claim(&store, &StepRecord { updated_at: at(999), ..other }).await, Claim::Withdrawn(_)));
        assert!(store.open_steps().await.unwrap().is_empty());
    }

    async fn a_claim_that_is_undone_was_never_made(db) {
        let store = db.store().await;
        let undone: Result<()> = store.journal().transaction(async |tx| {
            let _ = store.claim(tx, &wanted("a", 1, 0)).await?;
            Err(onefold::error::Error::failure("no"))
        }).await;
        assert_eq!(undone.unwrap_err().message, "no");
        assert!(store.step("key").await.unwrap().is_none());
    }
}
