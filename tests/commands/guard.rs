//! `onefold guard`

use crate::common::book::Book;
use crate::common::site::{Kind, Site, run};
use crate::{doubled, on_each_database};

on_each_database![
    what_stands_in_the_way_is_listed_until_it_is_unwound,
    a_second_live_order_of_a_key_is_refused_by_the_database,
    one_per_show_is_opt_in,
    one_row_a_charge,
    a_consumer_gets_an_inbox,
    installing_and_removing_may_be_done_twice,
    the_sql_is_shown_for_a_dba,
    an_index_that_could_not_be_built_leaves_nothing_behind,
    the_table_of_keys_is_made_beside_the_orders,
];

/// The doubled purchase, both of whose orders carry one key.
fn with_a_key() -> Book {
    let mut book = doubled();
    for id in ["A", "B"] {
        book.find_order(id).idempotency_key = Some("tap-1".into());
    }
    book
}

fn order(id: &str, key: &str) -> String {
    format!(
        "INSERT INTO orders (tenant_id, order_id, user_id, show_id, idempotency_key, quantity, amount_minor, currency, \
         status, created_at_us, version) VALUES ('t', '{id}', 'u', 'show', '{key}', 1, 1000, 'CNY', 'PAID', 1, '1')"
    )
}

/// SQL without its comments.
fn code(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("--"));
    lines.collect::<Vec<_>>().join("\n").trim().trim_end_matches(';').to_owned()
}

fn what_stands_in_the_way_is_listed_until_it_is_unwound(site: &Site) {
    site.import(&with_a_key().ledgers);
    site.run(&["guard", "status"]).ends(0).prints("onefold_unique_live_key missing 2");
    site.run(&["guard", "install"])
        .ends(7)
        .prints("onefold_unique_live_key: 2 rows in its way.")
        .prints("tap-1 order A PAID")
        .prints("tap-1 order B PAID")
        .prints("$ onefold apply PLAN");
    site.freeze();
    let plan = site.plan();
    site.run(&["apply", &plan, "--yes"]).ends(0);
    site.run(&["guard", "install"]).ends(0).prints("onefold_unique_live_key is installed");
    site.run(&["guard", "status"]).ends(0).prints("onefold_unique_live_key holds 0");
    // The one that was given back keeps its row and its key.
    assert_eq!(
        site.column("SELECT order_id FROM orders WHERE idempotency_key = 'tap-1' ORDER BY 1"),
        ["A", "B"]
    );
}

fn a_second_live_order_of_a_key_is_refused_by_the_database(site: &Site) {
    site.run(&["init"]).ends(0);
    site.run(&["guard", "install"]).ends(0);
    assert!(site.may(&order("O-1", "k")));
    assert!(!site.may(&order("O-2", "k")));
    assert!(site.may(&order("O-3", "other")));
    site.sql("UPDATE orders SET status = 'CANCELLED' WHERE order_id = 'O-1'");
    assert!(site.may(&order("O-2", "k")), "a closed order keeps its key and stands in nobody's way");
    assert!(!site.may("UPDATE orders SET status = 'PAID' WHERE order_id = 'O-1'"));
    assert!(
        site.may(&order("O-4", "k").replace("'k'", "NULL"))
            && site.may(&order("O-5", "k").replace("'k'", "NULL"))
    );
    assert!(site.may(&order("O-6", "k").replace("('t'", "('another'")), "each tenant has its own keys");
}

fn one_per_show_is_opt_in(site: &Site) {
    site.import(&with_a_key().ledgers);
    site.run(&["guard", "install", "--one-per-show"]).ends(7).prints("u show order A PAID");
    site.sql("UPDATE orders SET status = 'CANCELLED' WHERE order_id = 'B'");
    site.run(&["guard", "install", "--one-per-show"]).ends(0);
    assert!(!site.may(&order("O-1", "k")));
    assert!(site.may(&order("O-1", "k").replace("'show'", "'another'")));
    site.run(&["guard", "install", "--ledger", "payments", "--one-per-show"]).fails(2, &["is about orders"]);
}

fn one_row_a_charge(site: &Site) {
    let mut book = doubled();
    for id in ["P-A", "P-B"] {
        book.find_payment(id).provider_txn_id = Some("txn-1".into());
    }
    site.import(&book.ledgers);
    let install = ["guard", "install", "--ledger", "payments"];
    site.run(&install).ends(7).prints("txn-1 payment P-A CAPTURED").prints("onefold deletes no row");
    site.sql("UPDATE payments SET provider_txn_id = 'txn-2' WHERE payment_id = 'P-B'");
    site.run(&install).ends(0);
    assert!(!site.may("UPDATE payments SET provider_txn_id = 'txn-1' WHERE payment_id = 'P-B'"));
    assert!(site.may("UPDATE payments SET provider_txn_id = NULL"));
}

fn a_consumer_gets_an_inbox(site: &Site) {
    site.run(&["init"]).ends(0);
    site.run(&["guard", "install", "--ledger", "messages"]).ends(0);
    let done = "INSERT INTO onefold_inbox (tenant_id, consumer, message_key, done_at_us) VALUES ('t', 'tickets', 'k', 1)";
    assert!(site.may(done));
    assert!(!site.may(done));
    site.run(&["guard", "remove", "--ledger", "messages"]).ends(0).prints("its rows are evidence");
    assert_eq!(site.column("SELECT message_key FROM onefold_inbox"), ["k"]);
    site.run(&["guard", "status"]).ends(0).prints("onefold_inbox holds");
}

fn installing_and_removing_may_be_done_twice(site: &Site) {
    site.run(&["init"]).ends(0);
    for flags in [&[][..], &["--one-per-show"], &["--ledger", "payments"]] {
        let line = |verb| [&["guard", verb], flags].concat();
        site.run(&line("install")).ends(0).prints("is installed");
        site.run(&line("install")).ends(0).prints("is there already");
        site.run(&line("remove")).ends(0).prints("is removed");
        site.run(&line("remove")).ends(0).prints("is not installed");
    }
    assert!(site.may(&order("O-1", "k")) && site.may(&order("O-2", "k")));
    site.run(&["init"]).ends(0);
}

fn the_sql_is_shown_for_a_dba(site: &Site) {
    site.run(&["init"]).ends(0);
    let online = match site.kind() {
        Kind::Sqlite => "CREATE UNIQUE INDEX onefold_unique_live_key",
        Kind::Postgres => "CREATE UNIQUE INDEX CONCURRENTLY onefold_unique_live_key",
        Kind::Mariadb => "LOCK = NONE;",
    };
    site.run(&["guard", "install", "--print"]).ends(0).prints(online);
    site.run(&["guard", "status"]).ends(0).prints("onefold_unique_live_key missing 0");
}

fn an_index_that_could_not_be_built_leaves_nothing_behind(site: &Site) {
    site.run(&["init"]).ends(0);
    assert!(site.may(&order("O-1", "k")) && site.may(&order("O-2", "k")));
    // A ledger that does not see the second one: as if it came in between.
    let queries = site.path("queries");
    site.run(&["queries", "export", queries.to_str().unwrap()]).ends(0);
    let ledger = queries.join("ledgers/orders.sql");
    let text = std::fs::read_to_string(&ledger).unwrap();
    let blind = format!("SELECT * FROM ({}) AS seen WHERE order_id <> 'O-2'", code(&text));
    std::fs::write(&ledger, blind).unwrap();
    let queries = queries.to_str().unwrap();
    site.run(&["guard", "install", "--queries", queries])
        .fails(1, &["could not be installed", "guard status"]);
    site.run(&["guard", "status"]).ends(0).prints("onefold_unique_live_key missing 2");
    site.sql("UPDATE orders SET status = 'CANCELLED' WHERE order_id = 'O-2'");
    site.run(&["guard", "install"]).ends(0);
    assert!(!site.may(&order("O-3", "k")));
}

fn the_table_of_keys_is_made_beside_the_orders(site: &Site) {
    // The journal elsewhere, so that the orders' database has no table of keys by `init`.
    let journal = format!("sqlite:{}", site.path("journal.db").display());
    let ledger = |name: &str| format!("[ledgers.{name}]\nurls = [\"{}\"]\n", site.url);
    let ledgers = ["orders", "payments", "inventory", "messages"].map(ledger).concat();
    let config = site.configured(&format!("journal = \"{journal}\"\n{ledgers}"));
    let run = |line: &[&str]| {
        let mut command = site.command(&[&["--config", &config], line].concat());
        run(command.env_remove("ONEFOLD_DATABASE_URL"), line)
    };
    run(&["init"]).ends(0);
    assert!(!site.may("SELECT 1 FROM onefold_idempotency"));
    run(&["guard", "status"]).ends(0).prints("onefold_idempotency missing 0");
    run(&["guard", "install", "--print"]).ends(0).prints("CREATE TABLE IF NOT EXISTS onefold_idempotency");
    run(&["guard", "install"])
        .ends(0)
        .prints("onefold_idempotency is installed")
        .prints("onefold_unique_live_key is installed");
    run(&["guard", "install"]).ends(0).prints("onefold_idempotency is there already");
    assert!(site.may("UPDATE onefold_idempotency SET note = 'kept'"));
    run(&["guard", "status"]).ends(0).prints("onefold_idempotency holds 0");
    run(&["guard", "remove"])
        .ends(0)
        .prints("onefold_idempotency stays: its rows are evidence.")
        .prints("onefold_unique_live_key is removed.");
    assert!(site.may("SELECT 1 FROM onefold_idempotency"));
    // Keys of `once` stay where the journal is.
    run(&["once", "--key", "k", "--", "true"]).ends(0);
    assert_eq!(site.column("SELECT COUNT(*) FROM onefold_idempotency"), ["0"]);
}
