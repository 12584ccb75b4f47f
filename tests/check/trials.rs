//! Moves that look well and are not, as trying them shows; nothing that is tried stays.

use super::site::{Engine, Found, Site};

const ORDER: &str = "moves/order.sql";

fn tried(site: &Site) -> Found {
    let before = site.rows();
    let found = site.check(&["--try-moves"]);
    assert_eq!(site.rows(), before);
    found
}

#[test]
fn a_guard_that_does_not_see_its_own_move_is_refused() {
    let mut site = Site::foreign(Engine::Sqlite);
    // It is the file of one move, and says of itself from where.
    site.file("moves/order.paid.sql", "-- Pays.\nUPDATE orders SET status = :to WHERE tenant_id = :tenant_id AND order_id = :id AND 'PENDING_PAYMENT' IN (:from)");
    site.toml.push_str("[accept]\n\"moves/order.paid\" = \"what could go wrong\"\n");
    tried(&site).only(
        "refused",
        "moves/order.paid.sql",
        "order O-1 PENDING_PAYMENT→PAID: 1 row the first time and 1 the second",
        "compare the status",
    );
}

#[test]
fn a_guard_that_never_fits_is_refused() {
    let site = Site::foreign(Engine::Sqlite);
    site.file("moves/hold.sql", "-- Releases.\nUPDATE inventory SET status = :to WHERE tenant_id = :tenant_id AND order_id = :id AND status IN (:from)");
    let found = tried(&site);
    found.says(
        "refused",
        "moves/hold.sql",
        "hold H-1 HELD→RELEASED: 0 rows the first time, though the row is HELD, version 1",
        "its WHERE must find the row",
    );
}

#[test]
fn a_guard_that_fits_several_rows_is_refused() {
    let site = Site::foreign(Engine::Sqlite);
    site.sql("UPDATE messages SET status = 'QUEUED'");
    site.file("moves/message.sql", "-- Moves.\nUPDATE messages SET status = :to WHERE tenant_id = :tenant_id AND substr(message_id, 1, 1) = substr(:id, 1, 1) AND status IN (:from)");
    tried(&site).says(
        "refused",
        "moves/message.sql",
        "changed 2 rows where one was meant",
        "guarded by tenant, id and from-status",
    );
}

#[test]
fn a_move_that_the_ledger_does_not_show_is_refused() {
    let site = Site::foreign(Engine::Sqlite);
    site.change(ORDER, "SET status = :to, version", "SET source = :to, version");
    tried(&site).says(
        "refused",
        ORDER,
        "moved order O-1 to PAID, but the ledger says PENDING_PAYMENT",
        "the move and the ledger's SELECT must agree",
    );
}

#[test]
fn money_that_goes_back_must_be_counted() {
    let site = Site::foreign(Engine::Sqlite);
    site.change("moves/payment.sql", ", refunded_minor = refunded_minor + :refund_minor", "");
    tried(&site).only(
        "refused",
        "moves/payment.sql",
        "payment P-2 REFUNDING→REFUNDED: gives back 10000, and the ledger then says 2000 refunded, not 12000",
        "add :refund_minor",
    );
}

#[test]
fn a_version_that_stays_is_worth_a_look() {
    let site = Site::foreign(Engine::Sqlite);
    site.change("moves/hold.sql", ", version = :next_version", "");
    tried(&site).is_proven().says("warning", "moves/hold.sql", "its version stays 1", ":next_version");
    // Where versions are not compared, there is nothing to say.
    site.change("moves/hold.sql", " AND version = :version", "");
    let found = tried(&site);
    assert!(!found.text.contains("its version stays"), "{}", found.text);
}

#[test]
fn a_refund_may_be_a_row_of_its_own() {
    for engine in [Engine::Sqlite, Engine::Postgres, Engine::Mariadb] {
        let site = Site::foreign(engine);
        site.sql(
            "CREATE TABLE refunds (payment_id VARCHAR(99) PRIMARY KEY, state VARCHAR(99), step VARCHAR(99))",
        );
        site.change("ledgers/payments.sql", "status, created", "COALESCE((SELECT r.state FROM refunds r WHERE r.payment_id = payments.payment_id), status) AS status, created");
        site.file(
            "moves/payment.refunding.sql",
            "-- Begins a refund.\nINSERT INTO refunds (payment_id, state, step)\nSELECT p.payment_id, 'REFUNDING', :step_key FROM payments p\n\
             WHERE p.tenant_id = :tenant_id AND p.payment_id = :id AND p.status IN (:from) AND p.version = :version\n\
               AND NOT EXISTS (SELECT 1 FROM refunds r WHERE r.payment_id = p.payment_id)",
        );
        site.file(
            "moves/payment.refunded.sql",
            "-- Ends a refund.\nUPDATE payments SET refunded_minor = refunded_minor + :refund_minor, version = :next_version\n\
             WHERE tenant_id = :tenant_id AND payment_id = :id AND version = :version\n\
               AND payment_id IN (SELECT r.payment_id FROM refunds r WHERE r.state IN (:from));\n\
             UPDATE refunds SET state = 'REFUNDED' WHERE payment_id = :id AND EXISTS \n\
               (SELECT 1 FROM payments p WHERE p.payment_id = refunds.payment_id AND p.tenant_id = :tenant_id)",
        );
        site.file(
            "moves/payment.captured.sql",
            "-- Captures.\nUPDATE payments SET status = :to, version = :next_version\n\
             WHERE tenant_id = :tenant_id AND payment_id = :id AND status IN (:from) AND version = :version",
        );
        let found = tried(&site);
        // The row that is added leaves the payment's own version.
        found.says(
            "warning",
            "moves/payment.refunding.sql",
            "payment P-2 CAPTURED→REFUNDING: moved, and its version stays 1",
            "",
        );
        found.says(
            "ok",
            "moves/payment.refunded.sql",
            "payment P-2 REFUNDING→REFUNDED: 1 row the first time, 0 the second",
            "",
        );
        // A refund that was refused has no way back in this schema, and that is said.
        found.only(
            "refused",
            "moves/payment.captured.sql",
            "payment P-2 REFUNDING→CAPTURED: 0 rows the first time",
            "",
        );
    }
}

#[test]
fn an_engine_without_transactions_is_refused_and_not_touched() {
    let site = Site::foreign(Engine::Mariadb);
    // Its keys may be shorter.
    for index in ["buyer", "show", "session", "time", "key"] {
        site.sql(&format!("DROP INDEX orders_by_{index} ON orders"));
    }
    site.sql("ALTER TABLE orders MODIFY order_id VARCHAR(20), MODIFY tenant_id VARCHAR(20), ENGINE=MyISAM");
    tried(&site).only(
        "refused",
        ORDER,
        "orders is kept by MyISAM, which has no transactions: no move is tried",
        "ALTER TABLE orders ENGINE=InnoDB",
    );
    site.sql("ALTER TABLE orders ENGINE=Aria TRANSACTIONAL=1");
    tried(&site).only("refused", ORDER, "orders is kept by Aria", "");
}

#[test]
fn what_might_not_be_rolled_back_is_not_tried() {
    // Here a table is dropped for good, whatever the transaction.
    let site = Site::foreign(Engine::Mariadb);
    site.change(ORDER, " AND version = :version", ";\nDROP TABLE messages");
    let found = tried(&site);
    found.says("refused", ORDER, "is refused as it stands: no move is tried", "correct it first");
    site.sql("CREATE PROCEDURE commit_it() COMMIT");
    site.change(ORDER, "DROP TABLE messages", "CALL commit_it()");
    let found = tried(&site);
    found.says("unproven", ORDER, "hides what it does, which may be a commit: no move is tried", "[accept]");
    assert!(found.all("ok").iter().all(|(_, what, _)| !what.starts_with("order ")), "{}", found.text);
}
