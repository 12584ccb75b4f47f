//! Many rows into the embedded ledgers, by each driver's own fastest means: through the common one it takes many times as
//! long.

use rusqlite::ffi::SQLITE_CONSTRAINT_PRIMARYKEY;
use rusqlite::types::{ToSqlOutput, ValueRef};
use sqlx::mysql::MySqlArguments;
use sqlx::{Arguments as _, MySqlConnection};

use super::connect::begin_to_write;
use super::rows::{Field, LedgerRow};
use super::session::{Session, of_sqlite};
use super::sql::{Queries, Statement, Value, Values};
use super::{Database, Dialect};
use crate::error::{Error, Result};

/// How many rows are sent to a server at once: those of one INSERT on MySQL. However long they are, they fit into a
/// packet of its smallest default, 16 MiB.
const ROWS: usize = 1_000;

/// SQLite keeps so many KiB of pages at hand: the keys of some millions of rows, which are changed all over.
const CACHE: &str = "PRAGMA cache_size = -262144";

/// A transaction of a connection of its own, in which rows are added and nothing else is done. It is undone unless it
/// is committed.
pub(super) struct Bulk<'d> {
    database: &'d Database,
    session: Session,
}

impl<'d> Bulk<'d> {
    /// # Errors
    /// A clash, where another writes for too long.
    pub(super) async fn begin(database: &'d Database) -> Result<Self> {
        let failed = |e| failed(database, &e);
        let mut session = Session::open(database).await.map_err(failed)?;
        if database.dialect == Dialect::Sqlite {
            session.run(CACHE).await.map_err(failed)?;
        }
        session.run(begin_to_write(database.dialect)).await.map_err(failed)?;
        Ok(Self { database, session })
    }

    /// Adds rows of one ledger.
    ///
    /// # Errors
    /// A clash, where one of them has been added by another. The first error of the rows.
    pub(super) async fn add<T: LedgerRow>(
        &mut self,
        queries: &Queries,
        portions: impl Iterator<Item = Result<Vec<T>>>,
    ) -> Result<()> {
        let database = self.database;
        let failed = |e| failed(database, &e);
        // The same file for so many rows of these, all of whose values are bound.
        let insert = |rows: &[T]| {
            let nothing = |row: &T| row.values().map(|_| Value::Text(None)).collect();
            let rows: Vec<Vec<Value>> = rows.iter().map(nothing).collect();
            database.statement(queries, &format!("import/{}", T::LEDGER), &Values::new().bind("rows", rows))
        };
        match &mut self.session {
            Session::Sqlite(connection) => {
                for rows in portions {
                    let rows = rows?;
                    let Some(first) = rows.first() else { continue };
                    let insert = insert(std::slice::from_ref(first))?;
                    add_one_by_one(connection, &insert, &rows).map_err(of_sqlite).map_err(failed)?;
                }
            }
            Session::Postgres(connection) => {
                let copy = as_copy(&insert(&[])?.sql);
                let mut copy = connection.copy_in_raw(&copy).await.map_err(failed)?;
                let mut block = BINARY.to_vec();
                for rows in portions {
                    for rows in rows?.chunks(ROWS) {
                        rows.iter().for_each(|row| write_binary(row, &mut block));
                        copy.send(&block[..]).await.map_err(failed)?;
                        block.clear();
                    }
                }
                block.extend_from_slice(&END);
                copy.send(&block[..]).await.map_err(failed)?;
                copy.finish().await.map_err(failed)?;
            }
            Session::Mysql(connection) => {
                let mut prepared: Option<(usize, Statement)> = None;
                for rows in portions {
                    for rows in rows?.chunks(ROWS) {
                        let statement = match prepared.take().filter(|(count, _)| *count == rows.len()) {
                            Some((_, statement)) => statement,
                            None => insert(rows)?,
                        };
                        add_together(connection, &statement, rows).await.map_err(failed)?;
                        prepared = Some((rows.len(), statement));
                    }
                }
            }
        }
        Ok(())
    }

    pub(super) async fn commit(mut self) -> Result<()> {
        self.session.run("COMMIT").await.map_err(|e| failed(self.database, &e))?;
        self.session.close().await;
        Ok(())
    }
}

fn failed(database: &Database, error: &sqlx::Error) -> Error {
    let failed = database.failed(error);
    if is_there(error) { Error::clash(failed.message) } else { failed }
}

/// Whether another has added that very row since it was looked for. What breaks a unique index of a site's own is no
/// clash.
fn is_there(error: &sqlx::Error) -> bool {
    let sqlx::Error::Database(error) = error else { return false };
    // PostgreSQL names the constraint, MySQL the index at the end of its message; SQLite has a code for it.
    error.is_unique_violation()
        && (error.constraint().is_some_and(|name| name.ends_with("_pkey"))
            || error.message().ends_with("PRIMARY'")
            || error.code().is_some_and(|code| code == SQLITE_CONSTRAINT_PRIMARYKEY.to_string()))
}

impl rusqlite::ToSql for Field<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Int(int) => ValueRef::Integer(*int),
        }))
    }
}

/// By a statement of one row.
fn add_one_by_one<T: LedgerRow>(
    connection: &rusqlite::Connection,
    insert: &Statement,
    rows: &[T],
) -> rusqlite::Result<()> {
    let mut statement = connection.prepare(&insert.sql)?;
    for row in rows {
        for (at, (_, field)) in (1..).zip(row.values()) {
            statement.raw_bind_parameter(at, field)?;
        }
        statement.raw_execute()?;
    }
    Ok(())
}

/// By a statement of so many rows.
async fn add_together<T: LedgerRow>(
    connection: &mut MySqlConnection,
    insert: &Statement,
    rows: &[T],
) -> sqlx::Result<()> {
    let mut arguments = MySqlArguments::default();
    for (_, field) in rows.iter().flat_map(LedgerRow::values) {
        let added = match field {
            Field::Null => arguments.add(None::<&str>),
            Field::Text(text) => arguments.add(text),
            Field::Int(int) => arguments.add(int),
        };
        added.map_err(sqlx::Error::Encode)?;
    }
    sqlx::query_with(insert.text(), arguments).execute(connection).await.map(drop)
}

/// The COPY that takes what an INSERT without rows would.
fn as_copy(insert: &str) -> String {
    let table = insert.replacen("INSERT INTO", "COPY", 1);
    let table = table.trim_end().trim_end_matches("VALUES");
    format!("{table}FROM STDIN (FORMAT binary)")
}

/// How PostgreSQL's binary COPY begins (a signature, no flags, no extension) and ends.
const BINARY: [u8; 19] = *b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
const END: [u8; 2] = (-1_i16).to_be_bytes();

fn write_binary(row: &impl LedgerRow, into: &mut Vec<u8>) {
    let begin = into.len();
    into.extend_from_slice(&END);
    let mut count: i16 = 0;
    for (_, field) in row.values() {
        count += 1;
        match field {
            Field::Null => into.extend_from_slice(&(-1_i32).to_be_bytes()),
            Field::Text(text) => {
                // A cell is at most 1 MiB.
                into.extend_from_slice(&(text.len() as i32).to_be_bytes());
                into.extend_from_slice(text.as_bytes());
            }
            Field::Int(int) => {
                into.extend_from_slice(&8_i32.to_be_bytes());
                into.extend_from_slice(&int.to_be_bytes());
            }
        }
    }
    into[begin..begin + 2].copy_from_slice(&count.to_be_bytes());
}
