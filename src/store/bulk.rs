//! Many rows into the embedded ledgers, by each driver's own fastest means: through the common one it takes many times
//! as long.

use std::str::FromStr as _;

use rusqlite::types::{ToSqlOutput, ValueRef};
use sqlx::mysql::MySqlArguments;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Arguments as _, Connection as _, MySqlConnection, PgConnection};

use super::connect::{begin_to_write, is_taken, settings};
use super::rows::{Field, LedgerRow};
use super::sql::{Queries, Statement, Value, Values};
use super::{Database, Dialect};
use crate::error::{Error, Result};

/// How many rows one INSERT adds on MySQL: however long they are, they fit into a packet of its smallest default, 16 MiB.
const ROWS: usize = 1_000;

/// How many KiB of pages SQLite keeps at hand: the keys of some millions of rows, which are changed all over.
const CACHE_KIB: i64 = 1 << 18;

/// A transaction of a connection of its own, in which rows are added and nothing else is done. It is undone unless it
/// is committed.
pub(super) struct Bulk<'d> {
    database: &'d Database,
    session: Session,
}

enum Session {
    Sqlite(rusqlite::Connection),
    Postgres(PgConnection),
    Mysql(MySqlConnection),
}

impl<'d> Bulk<'d> {
    /// # Errors
    /// A clash, where another writes for too long.
    pub(super) async fn begin(database: &'d Database) -> Result<Self> {
        let session = Session::begin(database).await.map_err(|e| e.of(database))?;
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
                    add_one_by_one(connection, &insert, &rows).map_err(|e| Failed::from(e).of(database))?;
                }
            }
            Session::Postgres(connection) => {
                let copy = as_copy(&insert(&[])?.sql);
                let failed = |e| Failed::from(e).of(database);
                let mut copy = connection.copy_in_raw(&copy).await.map_err(failed)?;
                let mut block = BINARY.to_vec();
                for rows in portions {
                    rows?.iter().for_each(|row| write_binary(row, &mut block));
                    copy.send(&block[..]).await.map_err(failed)?;
                    block.clear();
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
                        add_together(connection, &statement, rows)
                            .await
                            .map_err(|e| Failed::from(e).of(database))?;
                        prepared = Some((rows.len(), statement));
                    }
                }
            }
        }
        Ok(())
    }

    pub(super) async fn commit(self) -> Result<()> {
        self.session.commit().await.map_err(|e| e.of(self.database))
    }
}

impl Session {
    async fn begin(database: &Database) -> std::result::Result<Self, Failed> {
        let url = database.url();
        let begin = settings(database.dialect).iter().copied().chain([begin_to_write(database.dialect)]);
        Ok(match database.dialect {
            Dialect::Sqlite => {
                let options = SqliteConnectOptions::from_str(&url)?;
                let flags =
                    rusqlite::OpenFlags::SQLITE_OPEN_READ_WRITE | rusqlite::OpenFlags::SQLITE_OPEN_NO_MUTEX;
                let connection = rusqlite::Connection::open_with_flags(options.get_filename(), flags)?;
                for statement in begin {
                    connection.execute_batch(statement)?;
                }
                connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
                Self::Sqlite(connection)
            }
            Dialect::Postgres => {
                let mut connection = PgConnection::connect(&url).await?;
                for statement in begin {
                    sqlx::raw_sql(statement).execute(&mut connection).await?;
                }
                Self::Postgres(connection)
            }
            Dialect::Mysql => {
                let mut connection = MySqlConnection::connect(&url).await?;
                for statement in begin {
                    sqlx::raw_sql(statement).execute(&mut connection).await?;
                }
                Self::Mysql(connection)
            }
        })
    }

    async fn commit(self) -> std::result::Result<(), Failed> {
        const COMMIT: &str = "COMMIT";
        match self {
            Self::Sqlite(connection) => {
                connection.execute_batch(COMMIT)?;
                connection.close().map_err(|(_, e)| e)?;
            }
            Self::Postgres(mut connection) => {
                sqlx::raw_sql(COMMIT).execute(&mut connection).await?;
                connection.close().await?;
            }
            Self::Mysql(mut connection) => {
                sqlx::raw_sql(COMMIT).execute(&mut connection).await?;
                connection.close().await?;
            }
        }
        Ok(())
    }
}

/// What a driver says where it does not go on.
enum Failed {
    Common(sqlx::Error),
    Sqlite(rusqlite::Error),
}

impl From<sqlx::Error> for Failed {
    fn from(error: sqlx::Error) -> Self {
        Self::Common(error)
    }
}

impl From<rusqlite::Error> for Failed {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl Failed {
    fn of(self, database: &Database) -> Error {
        use rusqlite::ErrorCode::{DatabaseBusy, DatabaseLocked};
        use rusqlite::ffi::{SQLITE_CONSTRAINT_PRIMARYKEY, SQLITE_CONSTRAINT_UNIQUE};
        match self {
            // Another has added that very row since it was looked for.
            Self::Common(error) if is_taken(&error) => Error::clash(database.failed(&error).message),
            Self::Common(error) => database.failed(&error),
            Self::Sqlite(error) => {
                let message = format!("{}: {error}", database.label);
                let is_clash = error.sqlite_error().is_some_and(|e| {
                    matches!(e.code, DatabaseBusy | DatabaseLocked)
                        || matches!(e.extended_code, SQLITE_CONSTRAINT_PRIMARYKEY | SQLITE_CONSTRAINT_UNIQUE)
                });
                if is_clash { Error::clash(message) } else { Error::failure(message) }
            }
        }
    }
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
