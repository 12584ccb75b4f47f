//! What is wrong with the SQL that moves rows.

use super::site::{Engine, Found, Site};

const ORDER: &str = "moves/order.sql";
const FIRST: &str = "moves/order.sql, statement 1";
const SECOND: &str = "moves/order.sql, statement 2";
const GUARD: &str = "write WHERE tenant = :tenant_id AND id = :id AND status IN (:from)";

/// A site whose orders are moved by this SQL.
fn moved_by(text: &str) -> Found {
    let site = Site::foreign(Engine::Sqlite);
    site.file(ORDER, &format!("-- Moves an order.\n{text}"));
    site.check(&[])
}

fn after_ours(text: &str) -> Found {
    Site::foreign(Engine::Sqlite)
        .change(ORDER, "version = :version\n", &format!("version = :version;\n{text}\n"))
        .check(&[])
}

#[test]
fn what_removes_rows_or_tables_is_refused() {
    let hint = "no row is ever deleted";
    after_ours("DELETE FROM messages WHERE order_id = :id").only(
        "refused",
        SECOND,
        "DELETE has no place in a move",
        hint,
    );
    after_ours("DROP TABLE orders").only("refused", SECOND, "DROP has no place in a move", hint);
    after_ours("ALTER TABLE orders ADD COLUMN x TEXT").only(
        "refused",
        SECOND,
        "ALTER has no place in a move",
        hint,
    );
    after_ours("REPLACE INTO messages (message_id) VALUES (:id)").only(
        "refused",
        SECOND,
        "REPLACE has no place in a move",
        hint,
    );
    after_ours("COMMIT").only("refused", SECOND, "COMMIT has no place in a move", "");
    let site = Site::foreign(Engine::Postgres);
    for (sql, verb) in [("TRUNCATE messages", "TRUNCATE"), ("GRANT ALL ON orders TO public", "GRANT")] {
        site.file(ORDER, &format!("-- Moves.\n{sql}"));
        site.check(&[]).says("refused", FIRST, &format!("{verb} has no place in a move"), hint);
    }
    site.file(
        ORDER,
        "-- Moves.\nWITH gone AS (DELETE FROM messages WHERE order_id = :id RETURNING 1) SELECT :to",
    );
    site.check(&[]).says("refused", FIRST, "DELETE has no place in a move", hint);
}

#[test]
fn an_update_without_where_is_refused() {
    moved_by("UPDATE orders SET status = :to").only(
        "refused",
        FIRST,
        "an UPDATE without WHERE changes every row",
        GUARD,
    );
}

#[test]
fn a_guard_names_tenant_id_and_from_status() {
    let guard = |condition: &str| moved_by(&format!("UPDATE orders SET status = :to WHERE {condition}"));
    guard("order_id = :id AND status IN (:from)").only("refused", FIRST, "does not name :tenant_id", "");
    guard("tenant_id = :tenant_id AND status IN (:from)").only("refused", FIRST, "does not name :id", GUARD);
    guard("tenant_id = :tenant_id AND order_id = :id").only("refused", FIRST, "does not name :from", GUARD);
    guard("tenant_id = :tenant_id AND order_id = :id AND (status IN (:from) OR version = :version)").only(
        "refused",
        FIRST,
        "names :from where it does not narrow: under OR or NOT",
        GUARD,
    );
    guard("tenant_id = :tenant_id AND order_id = :id AND status NOT IN (:from)").only(
        "refused",
        FIRST,
        "names :from where it does not narrow",
        GUARD,
    );
}

#[test]
fn every_alternative_is_guarded() {
    let good = "UPDATE orders SET status = :to WHERE tenant_id = :tenant_id AND order_id = :id AND status IN (:from)";
    moved_by(&format!("{good}\n-- or\n{}", good.replace("order_id = :id AND ", ""))).only(
        "refused",
        "moves/order.sql, alternative 2, statement 1",
        "does not name :id",
        GUARD,
    );
    moved_by(&format!("{good}\n-- or\n")).only(
        "refused",
        "moves/order.sql, alternative 2",
        "holds no statement",
        GUARD,
    );
}

#[test]
fn an_insert_guards_only_with_select_and_where() {
    moved_by("INSERT INTO messages (order_id, status) VALUES (:id, :to)").only(
        "refused",
        FIRST,
        "adds a row whatever the ledger says",
        "INSERT … SELECT",
    );
    moved_by("SELECT :to").only("refused", FIRST, "a SELECT changes no row", GUARD);
}

#[test]
fn an_id_is_never_set() {
    let found = moved_by(
        "UPDATE orders SET status = :to, order_id = order_id || 'x' WHERE tenant_id = :tenant_id AND order_id = :id AND status IN (:from)",
    );
    found.only("refused", FIRST, "sets order_id, by which it finds the row", "leave it out of SET");
}

#[test]
fn unknown_parameters_are_named_with_the_known() {
    let found = Site::foreign(Engine::Sqlite).change(ORDER, ":next_version", ":new_version").check(&[]);
    found.only("refused", ORDER, "names :new_version, which is none of its parameters: :tenant_id, :id, :from, :to, :version, :next_version", "onefold queries export");
    // A payment's parameters are no order's.
    let found = Site::foreign(Engine::Sqlite)
        .change(ORDER, "status = :to", "status = :to, amount_minor = :refund_minor")
        .check(&[]);
    found.only("refused", ORDER, "names :refund_minor, which is none of its parameters", "");
}

#[test]
fn a_file_for_several_moves_names_where_they_lead() {
    moved_by("UPDATE orders SET status = 'CANCELLED' WHERE tenant_id = :tenant_id AND order_id = :id AND status IN (:from)").only(
        "refused",
        ORDER,
        "serves moves to several statuses and never names :to",
        "write a file for each move",
    );
    let site = Site::foreign(Engine::Sqlite);
    site.file("moves/hold.released.sql", "-- One move.\nUPDATE inventory SET status = 'RELEASED' WHERE tenant_id = :tenant_id AND hold_id = :id AND status IN (:from)");
    site.check(&["--try-moves"]).is_proven();
}

#[test]
fn what_the_database_does_not_prepare_is_named_by_its_statement() {
    after_ours("UPDATE refund_log SET done = 1 WHERE tenant_id = :tenant_id AND order_id = :id").only(
        "refused",
        SECOND,
        "no such table: refund_log",
        "correct the SQL",
    );
    let site = Site::foreign(Engine::Postgres);
    site.sql("CREATE TABLE numbers (tenant_id TEXT, id BIGINT, status TEXT)");
    let update = |id: &str| {
        format!(
            "-- Moves.\nUPDATE numbers SET status = :to WHERE tenant_id = :tenant_id AND id = {id} AND status IN (:from)"
        )
    };
    site.file(ORDER, &update(":id"));
    site.check(&[]).only(
        "refused",
        FIRST,
        "operator does not exist: bigint = text",
        "compare a number with CAST(:id AS …)",
    );
    site.file(ORDER, &update("CAST(:id AS BIGINT)"));
    site.check(&[]).is_proven();
}

#[test]
fn later_statements_that_may_change_others_rows_are_unproven() {
    after_ours("UPDATE messages SET status = 'DEAD' WHERE order_id = :id").only(
        "unproven",
        SECOND,
        "WHERE does not name :tenant_id",
        "[accept] \"moves/order\" = ",
    );
    after_ours("INSERT INTO messages SELECT * FROM messages WHERE 1 = 0").says(
        "unproven",
        SECOND,
        "does not name :id",
        "[accept]",
    );
    after_ours("SELECT load_extension(:id)").says("unproven", SECOND, "calls load_extension", "[accept]");
}

#[test]
fn a_procedure_is_unproven_until_a_reason_is_given() {
    let mut site = Site::foreign(Engine::Mariadb);
    site.sql(
        "CREATE PROCEDURE move_order(tenant TEXT, id TEXT, was TEXT, will TEXT) \
         UPDATE orders SET status = will WHERE tenant_id = tenant AND order_id = id AND status = was",
    );
    site.file(ORDER, "-- Moves.\nCALL move_order(:tenant_id, :id, :from, :to)");
    site.check(&[]).only("unproven", FIRST, "calls a procedure", "[accept] \"moves/order\" = ");
    site.toml.push_str("[accept]\n\"moves/order\" = \"read and tried on staging\"\n");
    site.check(&[]).is_proven().says("accepted", FIRST, "accepted: read and tried on staging", "");
}

#[test]
fn what_the_parser_does_not_follow_is_unproven() {
    let found = moved_by("UPDATE orders SET status = :to WHERE ((");
    found.says("unproven", FIRST, "the parser does not follow it", "[accept]");
    found.says("refused", FIRST, "", "correct the SQL");
}

#[test]
fn a_guard_that_means_its_status_otherwise_is_unproven() {
    moved_by("UPDATE orders SET status = :to WHERE tenant_id = :tenant_id AND order_id = :id AND 'PAID' IN (:from) AND version = :version").only(
        "unproven",
        FIRST,
        "compares :from with 'PAID' and no column",
        "[accept]",
    );
}
