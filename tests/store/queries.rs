//! Every statement, in every form that it takes, is one that each database understands.

use std::collections::BTreeSet;

use onefold::core::status::Ledger;
use onefold::store::enforce::pieces;
use onefold::store::sql::{Statement, Value, Values, parameters};
use onefold::store::unique::Unique;
use onefold::store::{Dialect, Places, Queries, Statuses, Store};
use sqlx::{AnyConnection, AssertSqlSafe, Connection, Executor, SqlSafeStr};

use crate::common::databases::{Db, Kind};
use crate::on_every_database;

on_every_database! {
    async fn init_may_be_run_twice_and_says_when_it_is_missing(db) {
        let store = db.open().await;
        let error = store.must_be_ready().await.unwrap_err();
        assert!(error.hint.unwrap().contains("onefold init"));
        store.init().await.unwrap();
        store.init().await.unwrap();
        store.must_be_ready().await.unwrap();
    }

    async fn every_query_file_can_be_prepared_with_every_combination_of_its_optional_lines(db) {
        let store = db.store().await;
        // Where the journal lives elsewhere, a ledger's database has a table more.
        let elsewhere = Db::new(Kind::Sqlite);
        let apart = Places { journal: elsewhere.url.clone(), ..Places::one(&db.url) };
        let apart = Store::open(&apart, Queries::default(), Statuses::default(), true).await.unwrap();
        db.run("DELETE FROM onefold_belongs").await;
        apart.init().await.unwrap();
        apart.must_be_ready().await.unwrap();
        store.install_unique(Unique::Inbox).await.unwrap();
        let mut connection = AnyConnection::connect(&db.url).await.unwrap();
        let mut prepared = 0;
        // Schemas are made above; what enforces a freeze is another text on each database, and tests/enforce.rs
        // carries all of it out.
        let folders = [("sqlite", Dialect::Sqlite), ("postgres", Dialect::Postgres), ("mysql", Dialect::Mysql)];
        let speaks = |folder: &str| folders.iter().all(|(name, d)| *name != folder || *d == store.journal().dialect);
        let is_plain = |name: &&str| {
            // What changes a schema cannot be prepared: the commands' tests run it.
            let changes_schema = name.starts_with("schema/")
                || name.starts_with("unique/") && !name.contains("/same_") && !name.ends_with("/installed");
            // A scratch is made and marked by tests/guard.rs.
            !changes_schema && !name.starts_with("scratch/") && !name.starts_with("enforce/") && name.split('/').all(speaks)
        };
        for name in Queries::names().filter(is_plain) {
            let text = Queries::default().find(name).unwrap().to_owned();
            for ledger in ledgers_of(name) {
                for with in subsets(&optional(&text)) {
                    let statement = statement(&text, ledger, &with, store.journal().dialect);
                    connection.prepare(AssertSqlSafe(statement.sql.clone()).into_sql_str()).await
                        .unwrap_or_else(|e| panic!("{name}.sql with {with:?}: {e}\n{}", statement.sql));
                    prepared += 1;
                }
            }
        }
        assert!(prepared > 100, "{prepared}");
    }
}

/// An access log as a site may give it.
const ACCESS_OF_ORDERS: &str = "
    SELECT created_at_us AS at_us, order_id AS request_id, tenant_id, source, quantity AS attempt, quantity AS status,
           quantity AS latency_ms, trace_id, idempotency_key, user_id, show_id, order_id
    FROM orders";

/// Which ledgers a file is read on: `{ledger}` stands for each of them.
fn ledgers_of(name: &str) -> Vec<Ledger> {
    let of_export = |ledger: &Ledger| name.strip_prefix("exports/") == Some(ledger.as_str());
    match name {
        "reads/by_keys" | "reads/buyers_in_scope" | "reads/buyers_of_orders" => vec![Ledger::Orders],
        "reads/by_charges" | "unique/same_charge" | "reports/payments_per_second" => vec![Ledger::Payments],
        "reports/traces" => vec![Ledger::Orders, Ledger::Messages],
        "reports/people" => Ledger::ALL.to_vec(),
        _ if name.starts_with("reads/") => Ledger::ALL.to_vec(),
        _ => vec![Ledger::ALL.into_iter().find(of_export).unwrap_or(Ledger::Orders)],
    }
}

/// The names after `-- when`.
fn optional(text: &str) -> Vec<String> {
    let names: BTreeSet<_> = text.lines().filter_map(|line| line.rsplit_once("-- when ")).collect();
    let names: BTreeSet<String> = names.into_iter().map(|(_, name)| name.trim().to_owned()).collect();
    names.into_iter().collect()
}

fn subsets(names: &[String]) -> Vec<Vec<String>> {
    let chosen = |bits: usize| names.iter().enumerate().filter(move |(i, _)| bits & (1 << i) != 0);
    (0..1_usize << names.len()).map(|bits| chosen(bits).map(|(_, name)| name.clone()).collect()).collect()
}

fn statement(text: &str, ledger: Ledger, with: &[String], dialect: Dialect) -> Statement {
    let queries = Queries::default();
    let source = queries.find(&format!("ledgers/{ledger}")).unwrap();
    let id = format!("{}_id", ledger.row_name());
    let ledger = format!("(\n{source}\n) AS ledger");
    let optional = optional(text);
    let mut values = Values::new();
    for name in parameters(text) {
        if !optional.iter().any(|o| o == name) || with.iter().any(|w| w == name) {
            values = values.bind(name.to_owned().leak(), value(text, name));
        }
    }
    let access = format!("({ACCESS_OF_ORDERS}) AS access");
    // A site's own SELECT of a lock history.
    let history = "(SELECT 'k' AS lock_key, 'renew' AS event, 'A' AS owner, 1 AS token, 1 AS lease_ms, 1 AS at_us, \
        'n' AS node, 'ok' AS result) AS history";
    let ours = [
        ("ledger", ledger.as_str()),
        ("shard", "0"),
        ("id", id.as_str()),
        ("access", access.as_str()),
        ("history", history),
        ("moment", "00000003-0000001B-1"),
    ];
    let pieces = [&ours[..], &pieces(dialect)].concat();
    Statement::new(text, &pieces, &values, dialect).unwrap()
}

/// Something of the kind that stands at the parameter.
fn value(text: &str, name: &str) -> Value {
    if text.contains(&format!("IN (:{name})")) {
        Value::from(vec!["a".to_owned(), "b".to_owned()])
    } else if name == "rows" {
        let columns = text.split_once('(').unwrap().1.split_once(')').unwrap().0.split(',').count();
        Value::from(vec![vec![Value::from("a"); columns]])
    } else if text.contains(&format!("VALUES :{name}")) {
        Value::from(vec![vec![Value::from("a")]])
    } else {
        Value::from("a")
    }
}
