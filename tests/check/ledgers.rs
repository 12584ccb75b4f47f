//! What is wrong with the SQL that reads a ledger.

use super::site::{Engine, Site};

fn changed(engine: Engine, name: &str, from: &str, to: &str) -> super::site::Found {
    Site::foreign(engine).change(name, from, to).check(&[])
}

#[test]
fn a_missing_column_is_named_with_what_stands_for_it() {
    let found = changed(Engine::Sqlite, "ledgers/orders.sql", "session_id, ", "");
    found.only(
        "refused",
        "ledgers/orders.sql",
        "gives no column session_id",
        "CAST(NULL AS TEXT) AS session_id",
    );
    let found = changed(Engine::Sqlite, "ledgers/payments.sql", "captured_at_us, version", "version AS etag");
    assert_eq!(found.all("refused").len(), 2);
    found.says("refused", "ledgers/payments.sql", "gives no column version", "'1' AS version");
    found.says(
        "refused",
        "ledgers/payments.sql",
        "gives no column captured_at_us",
        "CAST(NULL AS INTEGER) AS captured_at_us",
    );
    found.says(
        "warning",
        "ledgers/payments.sql",
        "gives etag, which is no column of the contract",
        "leave it out",
    );
}

#[test]
fn an_amount_may_be_in_either_unit_but_must_be_there() {
    let found =
        changed(Engine::Sqlite, "ledgers/payments.sql", "refunded_minor", "refunded_minor AS refunded");
    found.only(
        "refused",
        "ledgers/payments.sql",
        "gives no column refunded_minor",
        "AS refunded_minor…AS refunded_major",
    );
}

#[test]
fn a_column_under_another_spelling_is_recognised() {
    let found = changed(Engine::Sqlite, "ledgers/orders.sql", "user_id", "user_id AS USER_ID");
    found.says(
        "refused",
        "ledgers/orders.sql",
        "gives no column user_id",
        "name USER_ID exactly so: USER_ID AS user_id",
    );
}

#[test]
fn a_column_that_is_given_twice_is_named() {
    let found = changed(Engine::Sqlite, "ledgers/orders.sql", "source, ", "source, source, ");
    found.only("refused", "ledgers/orders.sql", "gives source twice", "leave one out");
}

#[test]
fn sql_that_does_not_run_is_named_by_its_file() {
    let found = changed(Engine::Sqlite, "ledgers/messages.sql", "FROM messages", "FROM outbox");
    found.only("refused", "ledgers/messages.sql", "no such table: outbox", "correct the SQL");
    let found = changed(Engine::Postgres, "ledgers/orders.sql", "trace_id", "trace");
    found.only("refused", "ledgers/orders.sql", "column \"trace\" does not exist", "correct the SQL");
    let found = changed(Engine::Mariadb, "ledgers/orders.sql", "trace_id", "trace");
    found.only("refused", "ledgers/orders.sql", "Unknown column 'trace'", "correct the SQL");
}

#[test]
fn a_parameter_has_no_place_in_a_ledger() {
    let found = changed(
        Engine::Sqlite,
        "ledgers/orders.sql",
        "FROM orders",
        "FROM orders WHERE tenant_id = :tenant_id",
    );
    found.only(
        "refused",
        "ledgers/orders.sql",
        "names :tenant_id, which is not a parameter",
        "correct the SQL",
    );
}

#[test]
fn times_of_a_database_s_own_type_are_refused_with_what_to_write() {
    let found = changed(Engine::Postgres, "ledgers/orders.sql", "created_at_us", "now() AS created_at_us");
    found.only(
        "refused",
        "ledgers/orders.sql",
        "gives created_at_us as TIMESTAMPTZ; the contract wants a BIGINT",
        "CAST(EXTRACT(EPOCH FROM …) * 1000000 AS BIGINT) AS created_at_us",
    );
    let found = changed(Engine::Mariadb, "ledgers/orders.sql", "created_at_us", "NOW() AS created_at_us");
    found.only(
        "refused",
        "ledgers/orders.sql",
        "gives created_at_us as DATETIME; the contract wants a BIGINT",
        "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', …) AS created_at_us",
    );
}

#[test]
fn numbers_that_should_be_text_are_refused_with_the_cast() {
    let found = changed(Engine::Postgres, "ledgers/orders.sql", "show_id", "CAST(204 AS BIGINT) AS show_id");
    found.only(
        "refused",
        "ledgers/orders.sql",
        "gives show_id as INT8; the contract wants text",
        "CAST(… AS TEXT) AS show_id",
    );
    let found = changed(Engine::Mariadb, "ledgers/orders.sql", "status,", "CAST(10 AS SIGNED) AS status,");
    found.only(
        "refused",
        "ledgers/orders.sql",
        "gives status as INT; the contract wants text",
        "CAST(… AS CHAR) AS status",
    );
    let major = "CAST(amount_minor / 100 AS DECIMAL(10,2)) AS amount_major";
    let found = changed(Engine::Mariadb, "ledgers/orders.sql", "amount_minor", major);
    found.only(
        "refused",
        "ledgers/orders.sql",
        "gives amount_major as DECIMAL; the contract wants text",
        "CAST(… AS CHAR) AS amount_major",
    );
    let found = changed(
        Engine::Mariadb,
        "ledgers/orders.sql",
        "amount_minor",
        "CAST(CAST(amount_minor / 100 AS DECIMAL(10,2)) AS CHAR) AS amount_major",
    );
    found.is_proven();
}

#[test]
fn a_column_that_cannot_be_read_is_refused_even_where_it_is_not_wanted() {
    let found =
        changed(Engine::Postgres, "ledgers/orders.sql", "version", "version, CAST('{}' AS jsonb) AS extras");
    found.only(
        "refused",
        "ledgers/orders.sql",
        "gives extras of type JSONB, which is no column",
        "leave it out",
    );
}

#[test]
fn a_status_that_nothing_maps_is_named_with_where_to_map_it() {
    for engine in [Engine::Sqlite, Engine::Postgres, Engine::Mariadb] {
        let site = Site::foreign(engine);
        site.sql("UPDATE orders SET status = '30' WHERE order_id = 'O-3'");
        site.check(&[]).only(
            "refused",
            "ledgers/orders.sql",
            "order O-3, column status: \"30\" is not one of PENDING_PAYMENT, PAID",
            "[status.order]",
        );
    }
}

#[test]
fn a_value_that_the_contract_does_not_allow_is_named_by_row_and_column() {
    let site = Site::foreign(Engine::Sqlite);
    site.sql("UPDATE inventory SET quantity = 0 WHERE hold_id = 'H-2'");
    site.check(&[]).only(
        "refused",
        "ledgers/inventory.sql",
        "hold H-2, column quantity: 0 is less than 1",
        "correct what",
    );
    let found = changed(Engine::Sqlite, "ledgers/orders.sql", "amount_minor", "'1.005' AS amount_major");
    found.says(
        "refused",
        "ledgers/orders.sql",
        "order O-1, column amount_major: \"1.005\" is no exact amount of CNY",
        "",
    );
}
