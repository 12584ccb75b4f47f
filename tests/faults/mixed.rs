//! Each ledger in a database of its own, the orders in two, and the journal in yet another: what is
//! committed in one is not yet known in the other when the process dies between.

use std::ops::ControlFlow;

use onefold::core::ids::OrderId;
use onefold::core::plan::Outcome;
use onefold::core::status::Ledger;
use onefold::execute::Moment;
use onefold::store::{Places, Queries, Statuses, Store};

use super::scene::*;
use crate::common::databases::{Db, Kind, wait};

/// The databases of a company of services.
struct Company {
    journal: Db,
    orders: [Db; 2],
    payments: Db,
    inventory: Db,
    messages: Db,
}

impl Company {
    fn new() -> Self {
        Self {
            journal: Db::new(Kind::Sqlite),
            orders: [Db::new(Kind::Mariadb), Db::new(Kind::Mariadb)],
            payments: Db::new(Kind::Postgres),
            inventory: Db::new(Kind::Mariadb),
            messages: Db::new(Kind::Postgres),
        }
    }

    fn places(&self, orders: &[&Db]) -> Places {
        let one = |db: &Db| vec![db.url.clone()];
        Places {
            journal: self.journal.url.clone(),
            ledgers: [
                orders.iter().map(|db| db.url.clone()).collect(),
                one(&self.payments),
                one(&self.inventory),
                one(&self.messages),
            ],
        }
    }

    async fn store(&self) -> Store {
        let [first, second] = &self.orders;
        let store =
            Store::open(&self.places(&[first, second]), Queries::default(), Statuses::default(), true)
                .await
                .unwrap();
        store.init().await.unwrap();
        store
    }

    /// Loads a tenant's night, each order into the shard that its service would have put it in.
    async fn begin<'s>(&self, store: &'s Store, tenant: &str) -> Night<'s> {
        let ledgers = of_tenant(night(), tenant);
        let in_second = |id: &OrderId| matches!(id.as_str(), "O-B" | "O-D");
        for (shard, db) in self.orders.iter().enumerate() {
            let one = Store::open(&self.places(&[db]), Queries::default(), Statuses::default(), false)
                .await
                .unwrap();
            let mut rows = ledgers.clone();
            rows.orders.retain(|o| usize::from(in_second(&o.order_id)) == shard);
            one.import(&rows, false, |_, _| ()).await.unwrap();
            one.close().await;
        }
        Night::of_rows_there(store, tenant).await
    }

    async fn calm(&self, store: &Store) -> Outcomes {
        let night = self.begin(store, "calm").await;
        night.finish().await;
        let calm = outcome(&night, &self.journal).await;
        assert_eq!((calm.1.len(), calm.2.len()), (4, 3), "{calm:?}");
        calm
    }
}

/// Every other moment, and every one in the hunt: a round takes six databases.
fn stride() -> usize {
    if std::env::var_os("ONEFOLD_TEST_HUNT").is_some() { 1 } else { 2 }
}

#[test]
fn broken_off_at_any_moment_nothing_happens_twice_and_nothing_is_lost() {
    wait(async {
        let company = Company::new();
        let store = company.store().await;
        let calm = company.calm(&store).await;
        assert!(calm.0.orders.iter().any(|o| o.shard == 1), "the orders lie in two databases");
        let (mut number, mut between) = (0, 0);
        loop {
            let night = company.begin(&store, &format!("n{number}")).await;
            let mut at = 0;
            let applied = night.apply(|moment| {
                at += 1;
                if at <= number {
                    return ControlFlow::Continue(());
                }
                between += usize::from(matches!(moment, Moment::Moved(_)));
                ControlFlow::Break(())
            });
            applied.await.unwrap();
            night.finish().await;
            assert_eq!(outcome(&night, &company.journal).await, calm, "broken off at moment {number}");
            assert!(store.open_steps().await.unwrap().is_empty(), "moment {number}");
            if at <= number {
                break;
            }
            number += stride();
        }
        assert!(between > 5, "{between} times between two commits");
    });
}

#[test]
fn broken_off_between_two_commits_and_superseded_the_newer_plans_finish_it_once() {
    wait(async {
        let company = Company::new();
        let store = company.store().await;
        let calm = company.calm(&store).await;
        let (mut number, mut reached) = (0, true);
        while reached {
            let mut night = company.begin(&store, &format!("n{number}")).await;
            night.tell_all().await;
            let mut moves = 0;
            let applied = night.apply(|moment| {
                moves += usize::from(matches!(moment, Moment::Moved(_)));
                if moves > number { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            applied.await.unwrap();
            reached = moves > number;
            for round in 0..6 {
                night.plan_again(&format!("round{round}")).await;
                night.finish().await;
                night.converge().await;
                if night.plan.intents.iter().all(|i| i.outcome == Outcome::Clean) {
                    break;
                }
            }
            let (rows, requests, refunded) = outcome(&night, &company.journal).await;
            assert_eq!((&requests, &refunded), (&calm.1, &calm.2), "after move {number}");
            let statuses: Vec<_> = rows.orders.iter().map(|o| o.status).collect();
            let expected: Vec<_> = calm.0.orders.iter().map(|o| o.status).collect();
            assert_eq!(statuses, expected, "after move {number}");
            assert!(store.open_steps().await.unwrap().is_empty(), "after move {number}");
            number += 2 * stride() - 1;
        }
        assert!(number > 5, "{number}");
    });
}

#[test]
fn a_refund_that_another_service_began_in_the_gap_is_not_taken_for_ours() {
    wait(async {
        let company = Company::new();
        let store = company.store().await;
        let night = company.begin(&store, "gap").await;
        // We die after the claim and before the move; then somebody else begins a refund of his own.
        let broken = night.apply(|moment| match moment {
            Moment::Claimed(step) if step.id.as_str() == "P-O-E" && step.to == "REFUNDING" => {
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        });
        assert!(!broken.await.unwrap().is_whole());
        company.payments.run(night.touch(Ledger::Payments, "P-O-E", "status = 'REFUNDING'")).await;
        let ends = night.ends().await;
        assert!(matches!(ends.last(), Some(onefold::execute::IntentEnd::Conflict(_))), "{ends:?}");
        assert!(
            night.requests(&company.journal).await.iter().all(|r| r[0] != "P-O-E"),
            "it would go back twice"
        );
        night.converge().await;
        assert_eq!(
            night.status(Ledger::Payments, "P-O-E").await,
            "REFUNDING",
            "and it is not ours to take back"
        );
    });
}

#[test]
fn a_row_that_is_in_two_shards_is_an_error_and_never_one_of_them() {
    wait(async {
        let company = Company::new();
        let store = company.store().await;
        let night = company.begin(&store, "t").await;
        let one = Store::open(
            &company.places(&[&company.orders[0]]),
            Queries::default(),
            Statuses::default(),
            false,
        )
        .await
        .unwrap();
        one.import(&of_tenant(super::scene::night(), "t"), false, |_, _| ()).await.unwrap();
        let error = night.apply(|_| ControlFlow::Continue(())).await.unwrap_err();
        assert_eq!(error.exit, onefold::error::Exit::Usage, "{error}");
        assert!(error.message.contains("in another database of its ledger"), "{error}");
        assert!(night.requests(&company.journal).await.is_empty());
    });
}
