//! What is read for a scope, or for an intent that is looked at again, is all that its decision rests on.

use std::collections::BTreeSet;

use onefold::core::evidence::Evidence;
use onefold::core::ids::*;
use onefold::core::ledger::*;
use onefold::core::plan::make;
use onefold::core::recheck::recheck;
use onefold::core::scope::Scope;
use onefold::store::{Places, Queries, Statuses, Store};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use crate::common::book::{Book, at};
use crate::common::databases::Kind;
use crate::common::random::{ledgers, policy};
use crate::on_every_database;

/// How many random ledgers there are, and how many scopes are read after each.
fn size() -> (usize, usize) {
    if std::env::var_os("ONEFOLD_TEST_HUNT").is_some() { (200, 20) } else { (12, 8) }
}

fn some<T: Clone + Ord + std::fmt::Debug + 'static>(
    values: &BTreeSet<T>,
) -> impl Strategy<Value = BTreeSet<T>> + use<T> {
    let values: Vec<T> = values.iter().cloned().collect();
    prop_oneof![Just(BTreeSet::new()), prop::collection::btree_set(select(values), 1..3)]
}

fn scope(of: &Ledgers) -> impl Strategy<Value = Scope> + use<> {
    let tenants = some(&of.orders.iter().map(|o| o.tenant_id.clone()).collect());
    let users = some(&of.orders.iter().map(|o| o.user_id.clone()).chain(["another".into()]).collect());
    let shows = some(&of.orders.iter().map(|o| o.show_id.clone()).collect());
    let sessions = some(&["s1", "s2"].map(SessionId::from).into());
    let time = || prop::option::of((0..60_i64).prop_map(|step| at(step * 40)));
    (tenants, users, shows, sessions, time(), time()).prop_map(
        |(tenants, users, shows, sessions, from, to)| Scope { tenants, users, shows, sessions, from, to },
    )
}

/// Gives the tenants other names, so that several random ledgers stand side by side.
fn rename(ledgers: &mut Ledgers, number: usize) {
    let name = |tenant: &mut TenantId| *tenant = format!("{number}{tenant}").into();
    ledgers.orders.iter_mut().for_each(|r| name(&mut r.tenant_id));
    ledgers.payments.iter_mut().for_each(|r| name(&mut r.tenant_id));
    ledgers.inventory.iter_mut().for_each(|r| name(&mut r.tenant_id));
    ledgers.messages.iter_mut().for_each(|r| name(&mut r.tenant_id));
}

on_every_database! {
    async fn a_scope_is_decided_from_what_is_read_for_it_as_from_everything(db) {
        let store = db.store().await;
        let mut runner = TestRunner::deterministic();
        let mut all = Ledgers::default();
        let (count, scopes) = size();
        let mut decided = 0;
        for number in 0..count {
            let mut new = ledgers().new_tree(&mut runner).unwrap().current();
            rename(&mut new, number);
            store.import(&new, false, |_, _| ()).await.unwrap();
            all.absorb(new.clone());
            for _ in 0..scopes {
                let scope = scope(&new).new_tree(&mut runner).unwrap().current();
                let policy = policy().new_tree(&mut runner).unwrap().current();
                let evidence = Evidence::default();
                let read = store.read_scope(&scope).await.unwrap();
                let expected = make(&all, &scope, &policy, at(3600), &evidence).unwrap();
                let found = make(&read, &scope, &policy, at(3600), &evidence).unwrap();
                assert_eq!(found, expected, "ledgers {number}, {scope:?}, {policy:?}");
                decided += found.intents.len();

                for intent in found.intents.iter().filter(|i| !i.steps.is_empty()).take(2) {
                    let again = store.read_intents([intent]).await.unwrap();
                    let same = recheck(intent, &again, &policy, at(3600), &evidence);
                    assert_eq!(same, Ok(()), "ledgers {number}, {intent:?}");
                }
            }
        }
        assert!(decided > count * scopes / 2, "the scopes hold too little: {decided}");
    }

    async fn buyers_whom_a_collation_takes_for_one_are_all_read(db) {
        let mut book = Book::new();
        book.order("O-1", 0, "PAID").user_id = "ann".into();
        book.order("O-2", 1, "PAID").user_id = "ANN".into();
        db.store_of(&book.ledgers).await;
        let folded = match db.kind {
            Kind::Sqlite => "user_id COLLATE NOCASE AS user_id",
            Kind::Mariadb => "user_id COLLATE utf8mb4_general_ci AS user_id",
            Kind::Postgres => "user_id",
        };
        let queries = Queries::default();
        let orders = queries.find("ledgers/orders").unwrap().replace("user_id", folded);
        let queries = queries.with("ledgers/orders", &orders);
        let store = Store::open(&Places::one(&db.url), queries, Statuses::default(), false).await.unwrap();
        let show = book.ledgers.orders[0].show_id.clone();
        let scope = Scope { shows: [show].into(), to: Some(at(60)), ..Scope::default() };
        assert_eq!(store.read_scope(&scope).await.unwrap().orders.len(), 2);
    }
}
