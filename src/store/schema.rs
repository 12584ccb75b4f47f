//! The embedded schema and onefold's own tables.

use sqlx::any::AnyRow;

use super::connect::is_missing_table;
use super::enforce::{lease_until, now_us};
use super::sql::{Statement, Values};
use super::{Connection, Database, Dialect, Store};
use crate::core::status::Ledger;
use crate::error::{Error, Result};

/// What rows of the embedded ledgers are found by.
const INDEXES: &str = "schema/ledger_indexes";

/// The SQL of one schema file in a dialect, statement by statement.
pub(super) fn statements(text: &str, dialect: Dialect, collation: &str) -> Vec<String> {
    let create_view =
        if dialect == Dialect::Sqlite { "CREATE VIEW IF NOT EXISTS" } else { "CREATE OR REPLACE VIEW" };
    // A loser's order moves twice, and stays on its page.
    let with_room = if dialect == Dialect::Postgres { " WITH (fillfactor = 85)" } else { "" };
    let code: String =
        text.lines().filter(|l| !l.starts_with("--")).fold(String::new(), |sql, l| sql + l + "\n");
    let code = column_types(&code, dialect, collation)
        .replace("{create_view}", create_view)
        .replace("{with_room}", with_room)
        .replace("{now_us}", now_us(dialect))
        .replace("{lease_until}", lease_until(dialect));
    let mut all: Vec<String> = Vec::new();
    for piece in code.split(";\n") {
        match all.last_mut() {
            // Between dollars a semicolon ends a line of a function's body.
            Some(open) if open.matches("$$").count() % 2 == 1 => *open = format!("{open};\n{piece}"),
            _ => all.push(piece.trim().to_owned()),
        }
    }
    all.retain(|sql| !sql.is_empty());
    all
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

/// A table of onefold's own and its columns, each with its declaration; `None` for any other statement.
/// Such a file declares a column a line.
fn declared(sql: &str) -> Option<(&str, Vec<(&str, &str)>)> {
    let (table, rest) = sql.strip_prefix("CREATE TABLE IF NOT EXISTS ")?.split_once(" (\n")?;
    let (columns, _) = rest.rsplit_once("\n)")?;
    let column = |line| {
        let declaration = str::trim(line).trim_end_matches(',');
        // What is no column begins in capitals: PRIMARY KEY, UNIQUE.
        let name =
            declaration.split(' ').next().filter(|name| name.starts_with(|c: char| c.is_lowercase()))?;
        Some((name, declaration))
    };
    table.starts_with("onefold_").then(|| (table, columns.lines().filter_map(column).collect()))
}

impl Store {
    /// Creates what is missing of the ledgers, of onefold's own tables and of the sandbox
    /// provider's books; a table of onefold's own that was made before gets the columns that came
    /// later, and what else is there is left as it is. All of a database at once, but on MySQL,
    /// where each statement that changes the schema commits by itself. Then every database is marked as one
    /// of this journal's.
    ///
    /// # Errors
    /// Refused, where a database belongs to another journal: nothing is made then.
    pub async fn init(&self) -> Result<()> {
        self.make(|_| true).await
    }

    /// As [`Store::init`], but for the indexes of the embedded ledgers: what is to be filled first is filled faster
    /// without them. [`Store::init_indexes`] makes them then.
    ///
    /// # Errors
    /// As it has them.
    pub async fn init_tables(&self) -> Result<()> {
        self.make(|file| file != INDEXES).await
    }

    /// Creates what is missing of the indexes of the embedded ledgers, whose tables are there.
    pub async fn init_indexes(&self) -> Result<()> {
        self.run_schema(|file| file == INDEXES).await
    }

    /// Has the servers take statistics of the embedded ledgers, which have just been filled.
    pub async fn take_statistics(&self) -> Result<()> {
        for database in self.databases().iter().filter(|database| database.dialect != Dialect::Sqlite) {
            if !self.holds_embedded(database) {
                continue;
            }
            let file = format!("schema/{}/statistics", database.dialect.folder());
            let mut connection = database.connection().await?;
            for sql in statements(self.queries.get(&file)?, database.dialect, "") {
                database.run_script(&mut connection, &sql).await?;
            }
        }
        Ok(())
    }

    /// Whether an embedded ledger lives in a database. A site's own tables are its own business; the embedded schema is
    /// made whole where any of its ledgers lives.
    fn holds_embedded(&self, database: &Database) -> bool {
        let lives_here = |l: Ledger| self.shards(l).any(|(_, d)| std::ptr::eq(d, database));
        Ledger::ALL.into_iter().any(|l| !self.is_foreign_ledger(l) && lives_here(l))
    }

    async fn make(&self, wanted: impl Fn(&str) -> bool) -> Result<()> {
        self.must_not_be_anothers().await?;
        self.run_schema(wanted).await?;
        let journal = self.journal();
        for counter in ["freezes/start_counter", "journal/start_heads"] {
            let statement = journal.statement(&self.queries, counter, &Values::new())?;
            journal.transaction(async |tx| journal.execute(tx, &statement).await.map(|_| ())).await?;
        }
        self.write_belongings().await
    }

    async fn run_schema(&self, wanted: impl Fn(&str) -> bool) -> Result<()> {
        let schema = self.schema_of(wanted).await?;
        for database in self.databases() {
            let statements = || schema.iter().filter(|(of, _)| std::ptr::eq(*of, database));
            database
                .transaction(async |tx| {
                    for (_, sql) in statements() {
                        database.run_script(tx, sql).await?;
                    }
                    Ok(())
                })
                .await?;
        }
        Ok(())
    }

    /// The statements that [`Store::init`] runs, each with its database.
    pub async fn schema(&self) -> Result<Vec<(&Database, String)>> {
        self.schema_of(|_| true).await
    }

    /// As [`Store::schema`], of these files.
    async fn schema_of(&self, wanted: impl Fn(&str) -> bool) -> Result<Vec<(&Database, String)>> {
        let mut all = Vec::new();
        for database in self.databases() {
            let collation = database.binary_collation().await?;
            let lives_here = |l: Ledger| self.shards(l).any(|(_, d)| std::ptr::eq(d, database));
            let holds_ledger = Ledger::ALL.into_iter().any(lives_here);
            let holds_ours = self.holds_embedded(database);
            let holds_journal = std::ptr::eq(database, self.journal());
            let append_only = format!("schema/{}/append_only", database.dialect.folder());
            let files = [
                ("schema/ledgers", holds_ours),
                (INDEXES, holds_ours),
                ("schema/enforce", holds_ledger),
                ("schema/marks", holds_ledger && !holds_journal),
                ("schema/belonging", true),
                ("schema/outbox", lives_here(Ledger::Payments)),
                ("schema/onefold", holds_journal),
                ("schema/idempotency", holds_journal),
                ("schema/retention", holds_journal),
                (append_only.as_str(), holds_journal),
                ("schema/postgres/packed", holds_journal && database.dialect == Dialect::Postgres),
                ("schema/sandbox", holds_journal),
            ];
            for (file, _) in files.into_iter().filter(|(file, is_here)| *is_here && wanted(file)) {
                for sql in statements(self.queries.get(file)?, database.dialect, collation) {
                    let later = self.later_columns(database, &sql).await?;
                    all.push((database, sql));
                    all.extend(later.into_iter().map(|sql| (database, sql)));
                }
            }
        }
        Ok(all)
    }

    /// What gives a table of onefold's own, where it is there already, the columns that it lacks.
    async fn later_columns(&self, database: &Database, made_by: &str) -> Result<Vec<String>> {
        let Some((table, columns)) = declared(made_by) else { return Ok(Vec::new()) };
        let there = self.columns_of(database, table).await?;
        let lacks = |name: &str| !there.is_empty() && there.iter().all(|n| n != name);
        let later = columns.into_iter().filter(|(name, _)| lacks(name));
        Ok(later.map(|(_, declaration)| format!("ALTER TABLE {table} ADD COLUMN {declaration}")).collect())
    }

    /// The columns of a table, in their order; none where it is not there, or not to be seen.
    pub(super) async fn columns_of(&self, database: &Database, table: &str) -> Result<Vec<String>> {
        let file = format!("schema/{}/columns", database.dialect.folder());
        let statement = database.statement(&self.queries, &file, &Values::new().bind("table_name", table))?;
        let mut connection = database.connection().await?;
        let there = database.fetch(&mut connection, &statement).await?;
        there.iter().map(|row| super::rows::Reader::new(row, &file).needed("name")).collect()
    }

    /// Fails with what to type where onefold's own tables are not there.
    pub async fn must_be_ready(&self) -> Result<()> {
        let journal = self.journal();
        let statement = journal.statement(&self.queries, "freezes/read_counter", &Values::new())?;
        if journal.rows_of("onefold_counters", &statement).await?.is_empty() {
            return Err(not_ready(journal));
        }
        // The youngest of the tables: where it is missing, the others are of an older version.
        for database in self.databases() {
            let statement = database.statement(&self.queries, "belonging/read", &Values::new())?;
            database.rows_of("onefold_belongs", &statement).await?;
        }
        Ok(())
    }
}

pub(super) fn not_ready(database: &Database) -> Error {
    Error::usage(format!("{} has no onefold tables, or those of an older version", database.label))
        .hint("create what is missing with `onefold init` (or see its SQL with `onefold init --print`)")
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Queries;

    #[test]
    fn only_tables_of_onefold_are_compared_column_by_column() {
        let sql = "CREATE TABLE IF NOT EXISTS onefold_x (\n    a BIGINT NOT NULL,\n    b VARCHAR(9) NULL,\n    UNIQUE (a, b)\n)";
        assert_eq!(
            declared(sql),
            Some(("onefold_x", vec![("a", "a BIGINT NOT NULL"), ("b", "b VARCHAR(9) NULL")]))
        );
        assert_eq!(declared(&sql.replace("onefold_x", "orders")), None);
        assert_eq!(declared("CREATE INDEX IF NOT EXISTS onefold_i ON onefold_x (a)"), None);
    }

    #[test]
    fn every_table_of_ours_is_read_whole() {
        let text = Queries::default();
        for file in
            ["onefold", "belonging", "enforce", "marks", "outbox", "sandbox"].map(|f| format!("schema/{f}"))
        {
            let text = text.find(&file).unwrap();
            let made = statements(text, Dialect::Sqlite, "");
            let tables: Vec<_> = made.iter().filter_map(|sql| declared(sql)).collect();
            assert_eq!(tables.len(), text.matches("CREATE TABLE").count(), "{file}");
            let columns: usize = tables.iter().map(|(_, columns)| columns.len()).sum();
            let lines = text
                .lines()
                .filter(|l| l.starts_with("    ") && l.trim_start().starts_with(char::is_lowercase));
            assert!(columns > 0 && columns <= lines.count(), "{file}");
        }
    }
}
