//! Reads without index, and users who may too little or too much.

use super::site::{Engine, Site, as_user, server, sql};

#[test]
fn a_read_without_index_is_named_with_the_index_to_create() {
    for (engine, drop, create) in [
        (
            Engine::Sqlite,
            "DROP INDEX orders_by_key",
            "CREATE INDEX orders_by_tenant_id_idempotency_key ON orders (tenant_id, idempotency_key)",
        ),
        (
            Engine::Postgres,
            "DROP INDEX orders_by_key",
            "CREATE INDEX CONCURRENTLY ON orders (tenant_id, idempotency_key)",
        ),
        (
            Engine::Mariadb,
            "DROP INDEX orders_by_key ON orders",
            "CREATE INDEX orders_by_tenant_id_idempotency_key ON orders (tenant_id, idempotency_key)",
        ),
    ] {
        let site = Site::foreign(engine);
        // Other indexes that begin with the tenant are no help where one tenant owns all rows.
        site.sql(drop);
        let found = site.check(&[]);
        found.is_proven();
        found.says(
            "warning",
            "ledgers/orders.sql",
            "to be read by idempotency key, orders has no index",
            create,
        );
        let reads: Vec<_> =
            found.all("warning").into_iter().filter(|(_, what, _)| what.contains("no index")).collect();
        assert_eq!(reads.len(), 1, "{engine:?}: {reads:#?}");
    }
}

#[test]
fn an_expression_that_hides_a_column_needs_an_index_of_its_own() {
    let site = Site::foreign(Engine::Postgres);
    site.change("ledgers/payments.sql", "provider_txn_id", "lower(provider_txn_id) AS provider_txn_id");
    site.check(&[]).is_proven().says(
        "warning",
        "ledgers/payments.sql",
        "to be read by provider transaction, payments has no index",
        "CREATE INDEX CONCURRENTLY ON payments (tenant_id, (lower(provider_txn_id)))",
    );
}

#[test]
fn a_postgres_user_may_what_is_needed_and_no_more() {
    let mut site = Site::foreign(Engine::Postgres);
    let user = format!("ops_{}", &uuid::Uuid::new_v4().simple().to_string()[..12]);
    let as_given = site.check(&[]);
    as_given.is_proven();
    // The private server's user is none; on a server that is given it may be one.
    if as_given.text.contains("superuser") {
        as_given.says("warning", &site.url, "the database user is a superuser", "a user of its own");
    }
    site.sql(&format!(
        "CREATE USER {user} PASSWORD 'hunter2';\nGRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA public TO {user};\n\
         GRANT DELETE ON onefold_pass TO {user};\n\
         GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {user}"
    ));
    site.as_user = Some(as_user(&site.url, &user, "hunter2"));
    let found = site.check(&["--try-moves"]);
    let label = as_user(&site.url, &user, "***");
    found.is_proven().says("ok", &label, "may do no more than it needs", "");
    assert!(!found.text.contains("hunter2"), "{}", found.text);
    site.sql(&format!("GRANT DELETE, TRUNCATE ON orders TO {user}"));
    site.check(&[]).is_proven().says(
        "warning",
        &label,
        "may DELETE, TRUNCATE on orders: onefold never does",
        "revoke it",
    );
    site.sql(&format!("REVOKE UPDATE ON payments FROM {user}"));
    site.check(&[]).only(
        "refused",
        "moves/payment.sql, statement 1",
        "permission denied for table payments",
        "grant the database user",
    );
    site.sql(&format!("REVOKE SELECT ON inventory FROM {user}"));
    site.check(&[]).says(
        "refused",
        "ledgers/inventory.sql",
        "permission denied for table inventory",
        "grant the database user SELECT",
    );
    drop(site);
    sql(&server(Engine::Postgres), &format!("DROP USER {user}"));
}

#[test]
fn a_mariadb_user_may_what_is_needed_and_no_more() {
    let mut site = Site::foreign(Engine::Mariadb);
    let user = format!("ops_{}", &uuid::Uuid::new_v4().simple().to_string()[..12]);
    let database = site.url.rsplit('/').next().unwrap().to_owned();
    let label = as_user(&site.url, &user, "***");
    site.sql(&format!("CREATE USER {user}@'%' IDENTIFIED BY 'hunter2'"));
    for table in ["orders", "payments", "inventory", "messages", "onefold_counters"] {
        site.sql(&format!("GRANT SELECT, INSERT, UPDATE ON {database}.{table} TO {user}@'%'"));
    }
    site.sql(&format!("GRANT SELECT ON {database}.* TO {user}@'%'"));
    site.as_user = Some(as_user(&site.url, &user, "hunter2"));
    let hint = "DELETE on onefold_pass";
    site.check(&[]).only("refused", &label, "onefold's own tables cannot be written: …onefold_pass", hint);
    site.sql(&format!("GRANT INSERT, DELETE ON {database}.onefold_pass TO {user}@'%'"));
    site.check(&["--try-moves"]).is_proven().says("ok", &label, "may do no more than it needs", "");
    site.sql(&format!("GRANT DELETE, DROP ON {database}.* TO {user}@'%'"));
    site.check(&[]).is_proven().says("warning", &label, "may DELETE, DROP: onefold never does", "revoke it");
    site.sql(&format!("REVOKE UPDATE ON {database}.payments FROM {user}@'%'"));
    site.check(&[]).only(
        "refused",
        "moves/payment.sql, statement 1",
        "UPDATE command denied to user",
        "grant the database user",
    );
    site.sql(&format!("DROP USER {user}@'%'"));
}

#[test]
fn a_file_that_cannot_be_written_is_named() {
    let mut site = Site::foreign(Engine::Sqlite);
    site.as_user = Some(format!("{}?mode=ro", site.url));
    let found = site.check(&[]);
    assert_eq!(found.exit, Some(2));
    found.says("refused", &format!("{}?mode=ro", site.url), "cannot be written", "write the file");
}
