//! Configurations that are good.

use super::site::{ENGINES, Engine, Site};

#[test]
fn the_embedded_schema_is_proven_on_every_database() {
    for engine in ENGINES {
        let found = Site::embedded(engine).check(&[]);
        found.is_proven();
        // The tests' own database user may do all; nothing else is worth a look.
        let others: Vec<_> =
            found.all("warning").into_iter().filter(|(_, what, _)| !what.contains("user")).collect();
        assert_eq!(others, [], "{engine:?}");
    }
}

#[test]
fn a_foreign_schema_is_proven_with_all_its_moves_and_nothing_is_changed() {
    for engine in ENGINES {
        let site = Site::foreign(engine);
        let before = site.rows();
        let found = site.check(&["--try-moves", "--show", "S-204"]);
        found.is_proven();
        assert_eq!(site.rows(), before, "{engine:?}");
        let tried = found
            .all("ok")
            .into_iter()
            .filter(|(_, what, _)| what.ends_with("0 the second, rolled back"))
            .count();
        // Those that no row leads to are UNKNOWN to three, and named.
        assert_eq!(tried, 6 + 10 + 2 + 3, "{engine:?}: {:#?}", found.all("ok"));
        found.says(
            "warning",
            "moves/payment.sql",
            "no payment was there to try UNKNOWN→AUTHORIZED",
            "--row payments:ID",
        );
        found.says("ok", "scope", "orders 3, payments 3, inventory 2, messages 2", "");
    }
}

#[test]
fn a_row_that_is_named_is_the_one_that_is_tried() {
    let site = Site::foreign(Engine::Sqlite);
    let found = site.check(&["--try-moves", "--row", "orders:O-2", "--row", "payments:P-2"]);
    found.is_proven();
    found.says("ok", "moves/order.sql", "order O-2 PAID→REFUNDING: 1 row the first time, 0 the second", "");
    found.says("ok", "moves/order.sql", "order O-2 REFUNDING→REFUNDED: 1 row", "");
    found.says("ok", "moves/payment.sql", "payment P-2 REFUNDING→REFUNDED: 1 row", "");
    assert!(!found.text.contains("order O-1"), "{}", found.text);
    let found = site.check(&["--try-moves", "--row", "orders:O-9"]);
    assert_eq!(found.exit, Some(2));
    assert!(found.errors.contains("there is no order O-9"), "{}", found.errors);
}

#[test]
fn samples_show_no_person_and_no_secret() {
    let found = Site::embedded(Engine::Sqlite).check(&[]);
    let order = &found.json["samples"]["orders"][0]["row"];
    assert_eq!((order["order_id"].as_str(), order["user_id"].as_str()), (Some("O-1"), Some("U-…")));
    assert_eq!(found.json["samples"]["orders"].as_array().unwrap().len(), 3);
    for secret in ["7318", "session-1", "key-1", "trace-1", "txn-secret"] {
        assert!(!found.text.contains(secret), "{secret} is shown: {}", found.text);
    }
}

#[test]
fn what_people_read_fits_80_columns_the_worst_first() {
    let site = Site::foreign(Engine::Sqlite);
    site.change("moves/order.sql", " AND version = :version", "; DROP TABLE orders");
    site.check(&[]);
    let output = site.onefold(&["check", "--try-moves"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let long: Vec<_> =
        text.lines().filter(|line| line.chars().count() > 80 && !line.contains("sqlite:")).collect();
    assert_eq!(long, [""; 0]);
    assert!(
        text.starts_with("REFUSED  moves/order.sql, statement 2\n  DROP has no place in a move\n"),
        "{text}"
    );
    let last = text.lines().last().unwrap();
    assert!(last.contains(" refused, 0 unproven, "), "{last}");
}

#[test]
fn what_real_schemas_need_can_be_expressed() {
    let site = Site::foreign(Engine::Sqlite);
    // One tenant, ids with a prefix, amounts in major units, a move of several statements, a log of
    // their own, a status of flags, an alternative table, several values for one status.
    site.sql(
        "CREATE TABLE tickets (id INTEGER PRIMARY KEY, buyer TEXT, event TEXT, price TEXT, state INTEGER, paid_at INTEGER, made INTEGER);\n\
         CREATE TABLE old_tickets (id INTEGER PRIMARY KEY, buyer TEXT, event TEXT, price TEXT, state INTEGER, paid_at INTEGER, made INTEGER);\n\
         CREATE TABLE log (ticket TEXT, state TEXT, step TEXT);\n\
         INSERT INTO tickets VALUES (7, 'ann', 'E1', '120.00', 10, NULL, 5), (8, 'ann', 'E1', '120.50', 21, 9, 6);\n\
         INSERT INTO old_tickets VALUES (7, 'bob', 'E1', '1.00', 11, NULL, 5)",
    );
    let select = |prefix: &str, table: &str| {
        format!(
            "SELECT '{prefix}-' || id AS order_id, 'default' AS tenant_id, buyer AS user_id, event AS show_id, NULL AS session_id, \
             NULL AS idempotency_key, NULL AS item, 1 AS quantity, price AS amount_major, 'CNY' AS currency, \
             CAST(state AS TEXT) AS status, NULL AS source, NULL AS trace_id, made AS created_at_us, '1' AS version FROM {table}"
        )
    };
    site.file(
        "ledgers/orders.sql",
        &format!("-- Tickets.\n{}\nUNION ALL\n{}", select("N", "tickets"), select("O", "old_tickets")),
    );
    let update = |prefix: &str, table: &str| {
        format!(
            "UPDATE {table} SET state = CAST(:to AS INTEGER), paid_at = :now_us\n\
             WHERE :tenant_id = 'default' AND '{prefix}-' || id = :id AND CAST(state AS TEXT) IN (:from);\n\
             INSERT INTO log SELECT :id, :to, :step_key WHERE :tenant_id = 'default'\n"
        )
    };
    site.file(
        "moves/order.sql",
        &format!("-- Tickets.\n{}-- or\n{}", update("N", "tickets"), update("O", "old_tickets")),
    );
    let mut site = site;
    site.toml.push_str(
        "[status.order]\nPENDING_PAYMENT = [10, 11]\nPAID = [20, 21]\nTICKETED = 30\nCANCELLING = 40\nCANCELLED = 41\n\
         REFUNDING = 50\nREFUNDED = 51\n[accept]\n\"moves/order\" = \"one tenant only\"\n",
    );
    let found = site.check(&["--try-moves"]);
    found.is_proven();
    found.says(
        "accepted",
        "moves/order.sql, alternative 1, statement 1",
        ":tenant_id…accepted: one tenant only",
        "",
    );
    found.says(
        "ok",
        "moves/order.sql",
        "order N-7 PENDING_PAYMENT→PAID: 1 row the first time, 0 the second",
        "",
    );
}
