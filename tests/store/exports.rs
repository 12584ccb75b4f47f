//! A plan of everything is read by the drivers' own streams; it is the one that the whole way makes, byte for byte.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Seek as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use onefold::core::evidence::Evidence;
use onefold::core::ids::*;
use onefold::core::ledger::Ledgers;
use onefold::core::plain::{Basis, Listed, Listing, Planned};
use onefold::core::plan::make;
use onefold::core::plan_text::IntentTexts;
use onefold::core::policy::Policy;
use onefold::core::scope::Scope;
use onefold::core::status::Ledger;
use onefold::core::tally::Tally;
use onefold::files::{Origin, Portions, READ_ORDER, ReadOptions, StatusMap, sift};
use onefold::store::{Places, Queries, Statuses, Store};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use sqlx::{AnyConnection, AssertSqlSafe, Connection as _, Executor as _};

use crate::common::book::{apply, at};
use crate::common::databases::{Db, sorted, wait};
use crate::common::random::{crowd, policy};
use crate::on_every_database;

/// The plan by way of the export; `None` where that is left to the other way.
async fn quick(store: &Store, basis: &Basis, portions: Portions) -> Option<Planned> {
    let export = store.export(READ_ORDER).await?;
    let of = |ledger| {
        let names = store.statuses.names(ledger);
        names.map(move |(theirs, ours)| StatusMap { ledger, theirs: theirs.to_owned(), ours })
    };
    let status_map = Ledger::ALL.into_iter().flat_map(of).collect();
    let options = ReadOptions { from_database: true, status_map, ..ReadOptions::default() };
    let mut next = || export.next();
    let sifted = sift(Origin::Database(&mut next), &options, basis, portions, &|_, _| ());
    export.end().unwrap();
    let listing = Listing { intents: Listed::Every, texts: true };
    Some(sifted?.plan(&Scope::default(), listing, "p".to_owned(), at(3600))?.unwrap())
}

/// The plan by way of every row.
async fn whole(store: &Store, basis: &Basis) -> onefold::core::plan::Plan {
    let ledgers = store.read_scope(&Scope::default()).await.unwrap();
    let Basis { policy, as_of, evidence } = basis;
    let decided = make(&ledgers, &Scope::default(), policy, *as_of, evidence).unwrap();
    decided.into_plan("p".to_owned(), at(3600), None)
}

/// Takes every second row of each ledger out.
fn halves(ledgers: &Ledgers) -> [Ledgers; 2] {
    fn of<T: Clone>(rows: &[T], half: usize) -> Vec<T> {
        rows.iter().skip(half).step_by(2).cloned().collect()
    }
    [0, 1].map(|half| Ledgers {
        orders: of(&ledgers.orders, half),
        payments: of(&ledgers.payments, half),
        inventory: of(&ledgers.inventory, half),
        messages: of(&ledgers.messages, half),
    })
}

/// Something of each kind that the journal may know, of rows that are there.
fn told(ledgers: &Ledgers, evidence: &mut Evidence) {
    for (i, payment) in ledgers.payments.iter().enumerate() {
        let row = (payment.tenant_id.clone(), payment.payment_id.clone());
        match i % 5 {
            0 => _ = evidence.asked_charges.insert(row, at(3500)),
            1 => _ = evidence.refused_refunds.insert(row),
            _ => {}
        }
    }
    for order in ledgers.orders.iter().step_by(4) {
        let row = (order.tenant_id.clone(), order.order_id.clone());
        evidence.asked_orders.insert(row, order.version.clone());
    }
    // One alone: two of one intent are an error.
    if let Some(order) = ledgers.orders.iter().find(|order| order.status.is_live()) {
        evidence.keeps.insert((order.tenant_id.clone(), order.order_id.clone()), "it is theirs".to_owned());
    }
}

/// A site's own words for two statuses of each ledger; all others keep their names.
fn words() -> (Statuses, Vec<(Ledger, &'static str, String)>) {
    let mut statuses = Statuses::default();
    let mut words = Vec::new();
    for ledger in Ledger::ALL {
        for (i, status) in ledger.statuses().iter().enumerate() {
            let word = if i < 2 { format!("{i}, \"{status}\"") } else { (*status).to_owned() };
            statuses.add(ledger, status, vec![format!("old {i}"), word.clone()]).unwrap();
            words.push((ledger, *status, word));
        }
    }
    (statuses, words)
}

/// The versions of all rows of an export.
async fn exported_versions(store: &Store) -> BTreeSet<String> {
    let export = store.export(READ_ORDER).await.unwrap();
    let mut versions = BTreeSet::new();
    let mut ledgers = 0;
    while let Some((_, mut file)) = export.next() {
        let mut text = String::new();
        file.rewind().unwrap();
        file.read_to_string(&mut text).unwrap();
        assert!(!text.is_empty());
        // Behind it stands the shard.
        versions.extend(text.lines().map(|line| line.rsplit(',').nth(1).unwrap().to_owned()));
        ledgers += 1;
    }
    export.end().unwrap();
    assert_eq!(ledgers, 4);
    versions
}

on_every_database! {
    async fn all_ledgers_of_an_export_are_as_they_were_at_one_moment(db) {
        let mut dice = TestRunner::deterministic();
        let ledgers = std::iter::repeat_with(|| crowd().new_tree(&mut dice).unwrap().current());
        let is_full = |of: &Ledgers| ![of.orders.len(), of.payments.len(), of.inventory.len(), of.messages.len()].contains(&0);
        let store = db.store_of(&ledgers.take(100).find(is_full).unwrap()).await;
        // Each of its transactions gives all rows of all ledgers a version.
        let write = async |writer: &mut AnyConnection, version: usize| {
            let update = |ledger: Ledger| format!("UPDATE {ledger} SET version = '{version}'");
            let [orders, payments, inventory, messages] = Ledger::ALL.map(update);
            for sql in ["BEGIN".to_owned(), orders, payments, inventory, messages, "COMMIT".to_owned()] {
                writer.execute(AssertSqlSafe(sql)).await.unwrap();
            }
        };
        write(&mut AnyConnection::connect(&db.url).await.unwrap(), 0).await;
        let goes_on = AtomicBool::new(true);
        let exported: Vec<BTreeSet<String>> = thread::scope(|scope| {
            scope.spawn(|| wait(async {
                let mut writer = AnyConnection::connect(&db.url).await.unwrap();
                for version in (1..).take_while(|_| goes_on.load(Ordering::Relaxed)) {
                    write(&mut writer, version).await;
                }
            }));
            let reader = scope.spawn(|| wait(async {
                let mut exported = Vec::new();
                while exported.len() < 200 {
                    exported.push(exported_versions(&store).await);
                }
                exported
            }));
            let exported = reader.join();
            goes_on.store(false, Ordering::Relaxed);
            exported.unwrap()
        });
        assert!(exported.iter().all(|versions| versions.len() == 1), "{exported:?}");
        let moments: BTreeSet<_> = exported.iter().flatten().collect();
        assert!(moments.len() > 10, "{moments:?}");
    }

    async fn an_export_makes_the_plan_of_the_whole_way(db) {
        let mut dice = TestRunner::deterministic();
        let draw = (crowd(), policy());
        let other = Db::new(db.kind);
        let stores = [db.store().await, other.store().await];
        let places = Places {
            journal: db.url.clone(),
            ledgers: std::array::from_fn(|_| vec![db.url.clone(), other.url.clone()]),
        };
        let (statuses, words) = words();
        let mut all = Ledgers::default();
        for case in 0..8 {
            let (mut ledgers, policy) = draw.new_tree(&mut dice).unwrap().current();
            // Every case has its tenants, since nothing is taken out of a database.
            let tenant = |id: &mut TenantId| *id = format!("{case}-{id}").into();
            ledgers.orders.iter_mut().for_each(|row| tenant(&mut row.tenant_id));
            ledgers.payments.iter_mut().for_each(|row| tenant(&mut row.tenant_id));
            ledgers.inventory.iter_mut().for_each(|row| tenant(&mut row.tenant_id));
            ledgers.messages.iter_mut().for_each(|row| tenant(&mut row.tenant_id));
            if let Some(order) = ledgers.orders.first_mut() {
                (order.source, order.trace_id) = (Some(String::new()), Some("a, \"b\"\n".to_owned()));
                order.version = "".into();
            }
            let mut evidence = Evidence::default();
            if case % 2 == 1 {
                let plan = make(&ledgers, &Scope::default(), &policy, at(3600), &evidence).unwrap();
                for intent in &plan.intents {
                    apply(&mut ledgers, &intent.tenant_id, &intent.steps, &mut evidence);
                }
                told(&ledgers, &mut evidence);
            }
            for (store, half) in stores.iter().zip(halves(&ledgers)) {
                store.import(&half, false, |_, _| ()).await.unwrap();
            }
            all.orders.extend(ledgers.orders);
            all.payments.extend(ledgers.payments);
            all.inventory.extend(ledgers.inventory);
            all.messages.extend(ledgers.messages);

            let basis = Basis { policy, as_of: at(3600), evidence };
            let portions = Portions { bytes: 256 << case, orders: 1 + case };
            let store = Store::open(&places, Queries::default(), Statuses::default(), false).await.unwrap();
            let expected = whole(&store, &basis).await;
            let quick = quick(&store, &basis, portions).await.expect("nothing is odd about these rows");
            assert_eq!((&quick.plan, quick.unlisted), (&expected, Tally::default()), "{case}");
            let text = |texts: &IntentTexts| texts.pieces().collect::<Vec<_>>().join(",");
            assert_eq!(text(&quick.texts), text(&IntentTexts::of(&expected.intents)), "{case}");
        }
        // The same rows with a site's words for their statuses.
        for (ledger, status, word) in &words {
            for db in [db, &other] {
                db.run(format!("UPDATE {ledger} SET status = '{word}' WHERE status = '{status}'")).await;
            }
        }
        let basis = Basis { policy: Policy::default(), as_of: at(3600), evidence: Evidence::default() };
        let store = Store::open(&places, Queries::default(), statuses, false).await.unwrap();
        let shards = [store.shards(Ledger::Orders).count(), sorted(all).orders.len()];
        assert!(shards[0] == 2 && shards[1] > 20, "{shards:?}");
        let expected = whole(&store, &basis).await;
        let planned = quick(&store, &basis, Portions::default()).await.expect("every status is known");
        assert_eq!(planned.plan, expected);
        // A status that is none of the site's is left to the way that names the row.
        db.run("UPDATE messages SET status = 'QUEUED'").await;
        assert!(store.read_scope(&Scope::default()).await.is_err());
        assert!(quick(&store, &basis, Portions::default()).await.is_none());
    }

    async fn what_an_export_cannot_hold_is_left_to_the_whole_way(db) {
        let mut dice = TestRunner::deterministic();
        let ledgers = crowd().new_tree(&mut dice).unwrap().current();
        let store = db.store_of(&ledgers).await;
        let basis = Basis { policy: Policy::default(), as_of: at(3600), evidence: Evidence::default() };
        let is_quick = async |store: &Store| quick(store, &basis, Portions::default()).await.is_some();
        assert!(is_quick(&store).await);

        // A row in two shards, and one whose cell the contract does not allow: the whole way names it.
        let twice = Places {
            journal: db.url.clone(),
            ledgers: std::array::from_fn(|_| vec![db.url.clone(), db.url.clone()]),
        };
        let twice = Store::open(&twice, Queries::default(), Statuses::default(), false).await.unwrap();
        assert!(!is_quick(&twice).await);
        assert!(twice.read_scope(&Scope::default()).await.is_err());

        // Amounts in the major unit, and a text where a number must be.
        let own = BTreeMap::from([
            ("amount_minor,", "'1.00' AS amount_major,"),
            ("quantity,", "'1' AS quantity,"),
        ]);
        for (ours, theirs) in own {
            let text = Queries::default().find("ledgers/orders").unwrap().replace(ours, theirs);
            let queries = Queries::default().with("ledgers/orders", &text);
            let site = Store::open(&Places::one(&db.url), queries, Statuses::default(), false).await.unwrap();
            assert!(!is_quick(&site).await, "{theirs}");
        }
        db.run("UPDATE orders SET quantity = 0").await;
        assert!(!is_quick(&store).await);
        assert!(store.read_scope(&Scope::default()).await.is_err());
    }
}
