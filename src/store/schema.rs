//! The embedded schema and onefold's own tables.

use sqlx::any::AnyRow;

use super::connect::is_missing_table;
use super::enforce::{lease_until, now_us};
use super::sql::{Statement, Values};
use super::{Connection, Database, Dialect, Store};
use crate::core::status::Ledger;
use crate::error::{Error, Result};

/// The SQL of one schema file in a dialect, statement by statement.
fn statements(text: &str, dialect: Dialect, collation: &str) -> Vec<String> {
    let create_view =
        if dialect == Dialect::Sqlite { "CREATE VIEW IF NOT EXISTS" } else { "CREATE OR REPLACE VIEW" };
    let code: String =
        text.lines().filter(|l| !l.starts_with("--")).fold(String::new(), |sql, l| sql + l + "\n");
    column_types(&code, dialect, collation)
        .replace("{create_view}", create_view)
        .replace("{now_us}", now_us(dialect))
        .replace("{lease_until}", lease_until(dialect))
        .split(";\n")
        .map(str::trim)
        .filter(|s| !s.is_empty())
        .map(str::to_owned)
        .collect()
}

/// The text with the dialect's own types for ids, short text, documents and growing numbers.
pub(super) fn column_types(text: &str, dialect: Dialect, collation: &str) -> String {
    let short = format!("VARCHAR(190) CHARACTER SET utf8mb4 COLLATE {collation}");
    let (id, long, serial) = match dialect {
        Dialect::Sqlite => ("TEXT", "TEXT", "INTEGER PRIMARY KEY AUTOINCREMENT"),
        Dialect::Postgres => ("TEXT COLLATE \"C\"", "TEXT", "BIGSERIAL PRIMARY KEY"),
        Dialect::Mysql => {
            (short.as_str(), "LONGTEXT CHARACTER SET utf8mb4", "BIGINT PRIMARY KEY AUTO_INCREMENT")
        }
    };
    text.replace("{id}", id).replace("{text}", id).replace("{long}", long).replace("{serial}", serial)
}

impl Store {
    /// Creates what is missing of the ledgers, of onefold's own tables and of the sandbox
    /// provider's books; what is there is left as it is. All of a database at once, but on MySQL,
    /// where each statement that changes the schema commits by itself.
    pub async fn init(&self) -> Result<()> {
        let schema = self.schema().await?;
        for database in self.databases() {
            let statements = || schema.iter().filter(|(of, _)| std::ptr::eq(*of, database));
            database
                .transaction(async |tx| {
                    for (_, sql) in statements() {
                        database.run(tx, sql).await?;
                    }
                    Ok(())
                })
                .await?;
        }
        let journal = self.journal();
        let statement = journal.statement(&self.queries, "freezes/start_counter", &Values::new())?;
        journal.transaction(async |tx| journal.execute(tx, &statement).await.map(|_| ())).await
    }

    /// The statements that [`Store::init`] runs, each with its database.
    pub async fn schema(&self) -> Result<Vec<(&Database, String)>> {
        let mut all = Vec::new();
        for database in self.databases() {
            let collation = database.binary_collation().await?;
            let lives_here = |l: Ledger| self.shards(l).any(|(_, d)| std::ptr::eq(d, database));
            let holds_ledger = Ledger::ALL.into_iter().any(lives_here);
            // A site's own tables are its own business; the embedded schema is made whole where any of
            // its ledgers lives.
            let holds_ours = Ledger::ALL.into_iter().any(|l| !self.is_foreign_ledger(l) && lives_here(l));
            let holds_journal = std::ptr::eq(database, self.journal());
            let files = [
                ("schema/ledgers", holds_ours),
                ("schema/enforce", holds_ledger),
                ("schema/marks", holds_ledger && !holds_journal),
                ("schema/outbox", lives_here(Ledger::Payments)),
                ("schema/onefold", holds_journal),
                ("schema/sandbox", holds_journal),
            ];
            for (file, _) in files.into_iter().filter(|(_, wanted)| *wanted) {
                let made = statements(self.queries.get(file)?, database.dialect, collation);
                all.extend(made.into_iter().map(|sql| (database, sql)));
            }
        }
        Ok(all)
    }

    /// Fails with what to type where onefold's own tables are not there.
    pub async fn must_be_ready(&self) -> Result<()> {
        let journal = self.journal();
        let statement = journal.statement(&self.queries, "freezes/read_counter", &Values::new())?;
        if journal.rows_of("onefold_counters", &statement).await?.is_empty() {
            return Err(not_ready(journal));
        }
        for database in self.databases().iter().filter(|d| !std::ptr::eq(*d, journal)) {
            let values = Values::new().bind("step_key", "");
            let statement = database.statement(&self.queries, "marks/by_key", &values)?;
            database.rows_of("onefold_marks", &statement).await?;
        }
        Ok(())
    }
}

fn not_ready(database: &Database) -> Error {
    Error::usage(format!("{} has no onefold tables", database.label))
        .hint("create them with `onefold init` (or see its SQL with `onefold init --print`)")
}

impl Database {
    /// Rows of a table of onefold's own.
    ///
    /// # Errors
    /// Usage, where it is not there; failure, where it is, and the user may not see or read it.
    pub(super) async fn rows_of(&self, table: &str, statement: &Statement) -> Result<Vec<AnyRow>> {
        let mut connection = self.connection().await?;
        match statement.query().fetch_all(&mut *connection).await {
            Ok(rows) => Ok(rows),
            Err(e) if is_missing_table(&e) => match self.shut_schema(&mut connection, table).await? {
                None => Err(not_ready(self)),
                Some(schema) => Err(Error::failure(format!(
                    "{}: onefold's tables are in schema {schema}, which this user may not use",
                    self.label
                ))
                .hint(format!(
                    "GRANT USAGE ON SCHEMA {schema} TO …; then `onefold check` tells what else is missing"
                ))),
            },
            Err(e) => Err(self.failed(&e)),
        }
    }

    /// The schema that has a table and is shut to this user: to PostgreSQL that table is not there.
    async fn shut_schema(&self, connection: &mut Connection, table: &str) -> Result<Option<String>> {
        if self.dialect != Dialect::Postgres {
            return Ok(None);
        }
        let sql = format!(
            "SELECT n.nspname::text AS name FROM pg_catalog.pg_class AS c
             JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
             WHERE c.relname = '{table}' AND NOT pg_catalog.has_schema_privilege(n.oid, 'USAGE')
             ORDER BY n.nspname LIMIT 1"
        );
        let rows = self.fetch(connection, &Statement { sql, arguments: Vec::new() }).await?;
        rows.first().map(|row| super::rows::Reader::new(row, "pg_class").needed("name")).transpose()
    }

    async fn run(&self, connection: &mut Connection, sql: &str) -> Result<()> {
        let statement = Statement { sql: sql.to_owned(), arguments: Vec::new() };
        self.execute(connection, &statement).await.map(|_| ())
    }

    /// On MySQL, the collation that compares byte for byte and does not pad: MariaDB and MySQL name it differently.
    pub(super) async fn binary_collation(&self) -> Result<&'static str> {
        if self.dialect != Dialect::Mysql {
            return Ok("");
        }
        let statement = Statement { sql: "SELECT VERSION() AS version".to_owned(), arguments: Vec::new() };
        let mut connection = self.connection().await?;
        let rows = self.fetch(&mut connection, &statement).await?;
        let version = match rows.first() {
            Some(row) => super::rows::Reader::new(row, "the server").needed("version")?,
            None => String::new(),
        };
        Ok(if version.contains("MariaDB") { "utf8mb4_nopad_bin" } else { "utf8mb4_0900_bin" })
    }
}
