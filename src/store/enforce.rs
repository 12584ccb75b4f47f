//! The triggers that make a freeze hold: what they are, whether they are there, and how they come
//! and go. Every name ends in a digest of the whole text, so another version stands beside the old
//! one until it is complete, and the old one goes only then.

use super::rows::Reader;
use super::schema::column_types;
use super::sql::{Statement, Values};
use super::{Connection, Database, Dialect, Store};
use crate::core::hash::FieldHash;
use crate::core::status::Ledger;
use crate::error::{Error, Result};

/// What all our triggers, functions, procedures and views of the kind begin with.
const PREFIX: &str = "onefold_guard_";

/// The database's clock in microseconds since 1970, as SQL.
pub(super) const fn now_us(dialect: Dialect) -> &'static str {
    match dialect {
        // Every program that writes the file runs this, so it is what an old SQLite knows, too.
        Dialect::Sqlite => "CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)",
        Dialect::Postgres => "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)",
        Dialect::Mysql => "TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(6))",
    }
}

/// The end of a lease as the database's own type of time, in UTC, as SQL.
pub(super) const fn lease_until(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Sqlite => "strftime('%Y-%m-%dT%H:%M:%fZ', lease_until_us / 1000000.0, 'unixepoch')",
        Dialect::Postgres => "to_timestamp(lease_until_us / 1000000.0)",
        Dialect::Mysql => "TIMESTAMPADD(MICROSECOND, lease_until_us, '1970-01-01 00:00:00')",
    }
}

/// The pieces of SQL that files about copies, idempotency keys and approvals may name: the database's clock, who we
/// are to it, and what a sum is cast to, which two of three databases make a decimal.
pub const fn pieces(dialect: Dialect) -> [(&'static str, &'static str); 3] {
    let (login, integer) = match dialect {
        Dialect::Sqlite => ("''", "BIGINT"),
        Dialect::Postgres => ("CAST(session_user AS TEXT)", "BIGINT"),
        // Not from where: one account may have several entries of grants.
        Dialect::Mysql => ("SUBSTRING_INDEX(CAST(CURRENT_USER() AS CHAR), '@', 1)", "SIGNED"),
    };
    [("now_us", now_us(dialect)), ("login", login), ("integer", integer)]
}

/// The triggers of one database and what they need, statement by statement.
#[derive(Debug)]
pub struct Guard<'s> {
    pub database: &'s Database,
    pub statements: Vec<String>,
}

/// One thing of ours in a database.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Installed {
    kind: String,
    name: String,
    /// The table of a trigger, quoted, where dropping it must name it.
    place: Option<String>,
}

impl Installed {
    fn drop(&self) -> String {
        let on = self.place.as_ref().map(|table| format!(" ON {table}")).unwrap_or_default();
        format!("DROP {} {}{on}", self.kind, self.name)
    }
}

impl Store {
    /// The triggers of every database that holds a ledger.
    ///
    /// # Errors
    /// Usage, where a site reads a ledger from tables of its own and brings no triggers for them.
    pub async fn guards(&self) -> Result<Vec<Guard<'_>>> {
        let mut guards = Vec::new();
        for database in self.ledger_databases() {
            guards.push(self.guard(database).await?);
        }
        Ok(guards)
    }

    async fn guard<'s>(&'s self, database: &'s Database) -> Result<Guard<'s>> {
        let dialect = database.dialect.folder();
        let mut texts = Vec::new();
        for ledger in [Ledger::Orders, Ledger::Payments] {
            let rows = if self.is_in(ledger, database) {
                self.queries.get(&format!("ledgers/{ledger}"))?
            } else {
                self.queries.get(&format!("enforce/nowhere_{ledger}"))?
            };
            let rows = code(rows);
            let rows = rows.trim().trim_end_matches(';');
            texts.push(
                code(self.queries.get("enforce/known")?)
                    .replace("{of}", ledger.as_str())
                    .replace("{ledger}", rows),
            );
        }
        texts.push(self.queries.get(&format!("enforce/{dialect}/check"))?.to_owned());
        for ledger in Ledger::ALL.into_iter().filter(|l| self.is_in(*l, database)) {
            let file = format!("enforce/{dialect}/{ledger}");
            if self.is_foreign_ledger(ledger) && !self.queries.is_shadowed(&file) {
                return Err(Error::usage(format!(
                    "the {ledger} are read from tables of your own, and your queries have no {file}.sql that guards them"
                ))
                .hint(format!("`onefold queries export DIR` writes ours: begin from its {file}.sql")));
            }
            texts.push(self.queries.get(&file)?.to_owned());
        }
        if database.dialect == Dialect::Postgres {
            texts.push(self.queries.get("enforce/postgres/finish")?.to_owned());
        }
        let held = code(self.queries.get("enforce/held")?);
        let collation = database.binary_collation().await?;
        let text = texts
            .join("\n----\n")
            .replace("{held}", held.trim())
            .replace("{now_us}", now_us(database.dialect));
        let text = column_types(&text, database.dialect, collation);
        let version = FieldHash::new().text(&text).hex()[..8].to_owned();
        let text = text.replace("{version}", &version);
        let statements = text.split("\n----\n").map(|sql| code(sql).trim().to_owned());
        Ok(Guard { database, statements: statements.filter(|sql| !sql.is_empty()).collect() })
    }

    /// Fails, saying what to type, where the triggers of some database are missing or of another version.
    pub async fn must_be_guarded(&self) -> Result<()> {
        for guard in self.guards().await? {
            let mut connection = guard.database.connection().await?;
            let there = self.installed(&mut connection, guard.database).await?;
            if guard.names().any(|name| there.iter().all(|i| i.name != name)) {
                return Err(Error::usage(format!(
                    "the triggers that would enforce a freeze are not installed on {}",
                    guard.database.label
                ))
                .hint(
                    "in quiet times: onefold init --enforce; now: onefold freeze --enforce --install-now …; \
                     without them: onefold freeze --advisory …",
                ));
            }
        }
        Ok(())
    }

    /// Installs the triggers where they are missing or of another version: in every database or in
    /// none. Returns the databases that were changed.
    ///
    /// # Errors
    /// Failure, where a table's lock is not given within 2 s.
    pub async fn install_guards(&self) -> Result<Vec<&Database>> {
        let mut changed: Vec<(&Database, Vec<Installed>)> = Vec::new();
        for guard in self.guards().await? {
            match self.install(&guard).await {
                Ok(made) if made.is_empty() => {}
                Ok(made) => changed.push((guard.database, made)),
                Err(error) => {
                    for (database, made) in changed {
                        self.take_back(database, &made).await;
                    }
                    return Err(not_installed(guard.database, error));
                }
            }
        }
        // What an older version left behind goes only when the new one is everywhere.
        for guard in self.guards().await? {
            let mut connection = self.patient_for_2_s(guard.database).await?;
            let obsolete = self.installed(&mut connection, guard.database).await?;
            let obsolete: Vec<_> =
                obsolete.into_iter().filter(|i| guard.names().all(|name| i.name != name)).collect();
            self.drop_all(&mut connection, guard.database, &obsolete).await?;
        }
        Ok(changed.into_iter().map(|(database, _)| database).collect())
    }

    /// The statements that would remove what is installed, each with its database.
    pub async fn removals(&self) -> Result<Vec<(&Database, String)>> {
        let mut all = Vec::new();
        for database in self.ledger_databases() {
            let mut connection = database.connection().await?;
            let there = self.installed(&mut connection, database).await?;
            all.extend(there.iter().map(|i| (database, i.drop())));
        }
        Ok(all)
    }

    /// Removes whatever is installed of ours, of any version. Returns the databases that were changed.
    ///
    /// # Errors
    /// Failure, where a table's lock is not given within 2 s.
    pub async fn remove_guards(&self) -> Result<Vec<&Database>> {
        let mut changed = Vec::new();
        for database in self.ledger_databases() {
            let mut connection = self.patient_for_2_s(database).await?;
            let there = self.installed(&mut connection, database).await?;
            if !there.is_empty() {
                self.drop_all(&mut connection, database, &there).await?;
                changed.push(database);
            }
        }
        Ok(changed)
    }

    async fn install(&self, guard: &Guard<'_>) -> Result<Vec<Installed>> {
        let database = guard.database;
        let mut connection = self.patient_for_2_s(database).await?;
        let there = self.installed(&mut connection, database).await?;
        let missing: Vec<_> = guard
            .statements
            .iter()
            .filter(|sql| made_by(sql).is_none_or(|(_, name)| there.iter().all(|i| i.name != name)))
            .collect();
        if missing.iter().all(|sql| made_by(sql).is_none()) {
            return Ok(Vec::new());
        }
        let made = self.run_all(&mut connection, database, missing.into_iter().map(String::as_str)).await;
        let now_there = self.installed(&mut connection, database).await;
        let new = |i: &Installed| there.iter().all(|before| before.name != i.name);
        match (made, now_there) {
            (Ok(()), Ok(now_there)) => Ok(now_there.into_iter().filter(new).collect()),
            (Err(error), Ok(half)) => {
                let half: Vec<_> = half.into_iter().filter(new).collect();
                self.take_back(database, &half).await;
                Err(error)
            }
            (Err(error), Err(_)) | (Ok(()), Err(error)) => Err(error),
        }
    }

    /// Removes what was installed a moment ago, as far as it can.
    async fn take_back(&self, database: &Database, made: &[Installed]) {
        if let Ok(mut connection) = self.patient_for_2_s(database).await {
            let mut made = made.to_vec();
            made.sort_by_key(|i| i.kind != "TRIGGER");
            let _ = self.drop_all(&mut connection, database, &made).await;
        }
    }

    async fn drop_all(&self, on: &mut Connection, database: &Database, of_ours: &[Installed]) -> Result<()> {
        let drops: Vec<_> = of_ours.iter().map(Installed::drop).collect();
        self.run_all(on, database, drops.iter().map(String::as_str)).await
    }

    /// Runs statements that change the schema: all or none, where the database can.
    async fn run_all<'t>(
        &self,
        on: &mut Connection,
        database: &Database,
        statements: impl Iterator<Item = &'t str>,
    ) -> Result<()> {
        let in_transaction = match database.dialect {
            Dialect::Sqlite => Some("BEGIN IMMEDIATE"),
            Dialect::Postgres => Some("BEGIN"),
            Dialect::Mysql => None,
        };
        let end = in_transaction.map(|_| "COMMIT");
        let mut failed = None;
        for sql in in_transaction.into_iter().chain(statements).chain(end) {
            if let Err(error) = database.run_script(on, sql).await {
                failed = Some(error);
                break;
            }
        }
        match failed {
            None => Ok(()),
            Some(error) => {
                if in_transaction.is_some() {
                    // Where it never began, there is nothing to undo.
                    let _ = database.run_script(on, "ROLLBACK").await;
                }
                Err(error)
            }
        }
    }

    /// A connection of its own that waits for no lock longer than 2 s.
    async fn patient_for_2_s(&self, database: &Database) -> Result<Connection> {
        let file = format!("enforce/{}/wait_briefly", database.dialect.folder());
        let mut connection = database.connection().await?.detach();
        database.run_script(&mut connection, &code(self.queries.get(&file)?)).await?;
        Ok(connection)
    }

    async fn installed(&self, on: &mut Connection, database: &Database) -> Result<Vec<Installed>> {
        let file = format!("enforce/{}/installed", database.dialect.folder());
        let statement = database.statement(&self.queries, &file, &Values::new())?;
        let mut all = Vec::new();
        for row in database.fetch(on, &statement).await? {
            let r = Reader::new(&row, &file);
            let installed =
                Installed { kind: r.needed("kind")?, name: r.needed("name")?, place: r.text("place")? };
            // A name that needs quotes is none of ours.
            if installed.name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_') {
                all.push(installed);
            }
        }
        Ok(all)
    }
}

impl Guard<'_> {
    /// The names of what its statements make.
    fn names(&self) -> impl Iterator<Item = &str> {
        self.statements.iter().filter_map(|sql| made_by(sql)).map(|(_, name)| name)
    }

    /// The statements as the database's own shell takes them.
    pub fn script(&self) -> String {
        let scripts = self.statements.iter().map(|sql| match self.database.dialect {
            Dialect::Mysql => format!("DELIMITER //\n{sql}\n//\nDELIMITER ;\n"),
            Dialect::Sqlite | Dialect::Postgres => format!("{sql};\n"),
        });
        scripts.collect::<Vec<_>>().join("\n")
    }
}

impl Database {
    /// Runs a text as it is, outside any transaction of ours.
    pub(super) async fn run_script(&self, on: &mut Connection, sql: &str) -> Result<()> {
        let statement = Statement { sql: sql.to_owned(), arguments: Vec::new() };
        statement.script().execute(on).await.map(drop).map_err(|e| self.failed(&e))
    }
}

/// What a statement makes: its kind and name, for `CREATE [CONSTRAINT] KIND name`.
fn made_by(sql: &str) -> Option<(&str, &str)> {
    let words = sql.split(|c: char| c.is_whitespace() || c == '(');
    let mut words = words.filter(|w| !w.is_empty() && *w != "CONSTRAINT");
    let (create, kind, name) = (words.next()?, words.next()?, words.next()?);
    (create == "CREATE" && name.starts_with(PREFIX)).then_some((kind, name))
}

/// A file's text without the lines that are comments.
pub(super) fn code(text: &str) -> String {
    text.lines().filter(|l| !l.trim_start().starts_with("--")).collect::<Vec<_>>().join("\n")
}

fn not_installed(database: &Database, error: Error) -> Error {
    if error.is_clash() {
        return Error::failure(format!(
            "{}: a transaction keeps a table's lock for more than 2 s; nothing was installed",
            database.label
        ))
        .hint(
            "end that transaction and run it again, or freeze with --advisory and stop the services by hand",
        );
    }
    error.context("nothing was installed")
}
