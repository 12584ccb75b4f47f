//! Many rows into the embedded ledgers, and as they stand there, by each driver's own fastest means: through the common
//! one it takes many times as long.

use std::str::FromStr as _;

use futures_util::TryStreamExt as _;
use rusqlite::types::{ToSqlOutput, ValueRef};
use sqlx::mysql::MySqlArguments;
use sqlx::query::Query;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{
    Arguments as _, Column as _, ColumnIndex, Connection as _, Decode, Encode, MySqlConnection, PgConnection,
    Row, Type,
};

use super::connect::{begin_to_write, settings};
use super::native::is_int;
use super::rows::{Field, LedgerRow};
use super::sql::{Queries, Statement, Value, Values};
use super::{Database, Dialect};
use crate::error::{Error, Result};

/// How many rows are sent to a server at once: those of one INSERT on MySQL. However long they are, they fit into a
/// packet of its smallest default, 16 MiB.
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
        let mut session = Session::open(database).await.map_err(|e| e.of(database))?;
        session.run(begin_to_write(database.dialect)).await.map_err(|e| e.of(database))?;
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

    pub(super) async fn commit(mut self) -> Result<()> {
        self.session.run("COMMIT").await.map_err(|e| e.of(self.database))?;
        self.session.close().await;
        Ok(())
    }
}

/// A connection of its own that gives rows as they stand in a database.
pub(super) struct Looking<'d> {
    database: &'d Database,
    session: Session,
}

impl<'d> Looking<'d> {
    pub(super) async fn begin(database: &'d Database) -> Result<Self> {
        let session = Session::open(database).await.map_err(|e| e.of(database))?;
        Ok(Self { database, session })
    }

    /// Hands over the fields of every row that a SELECT gives; `None` is what is neither text nor a whole number.
    pub(super) async fn select(
        &mut self,
        statement: &Statement,
        take: impl FnMut(&[Option<Field<'_>>]),
    ) -> Result<()> {
        self.session.select(statement, take).await.map_err(|e| e.of(self.database))
    }

    pub(super) async fn end(self) {
        self.session.close().await;
    }
}

impl Session {
    async fn open(database: &Database) -> std::result::Result<Self, Failed> {
        let url = database.url();
        let mut session = match database.dialect {
            Dialect::Sqlite => {
                let options = SqliteConnectOptions::from_str(&url)?;
                let flags =
                    rusqlite::OpenFlags::SQLITE_OPEN_READ_WRITE | rusqlite::OpenFlags::SQLITE_OPEN_NO_MUTEX;
                Self::Sqlite(rusqlite::Connection::open_with_flags(options.get_filename(), flags)?)
            }
            Dialect::Postgres => Self::Postgres(PgConnection::connect(&url).await?),
            Dialect::Mysql => Self::Mysql(MySqlConnection::connect(&url).await?),
        };
        for setting in settings(database.dialect) {
            session.run(setting).await?;
        }
        if let Self::Sqlite(connection) = &session {
            connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
        }
        Ok(session)
    }

    async fn run(&mut self, statement: &'static str) -> std::result::Result<(), Failed> {
        match self {
            Self::Sqlite(connection) => connection.execute_batch(statement)?,
            Self::Postgres(connection) => _ = sqlx::raw_sql(statement).execute(connection).await?,
            Self::Mysql(connection) => _ = sqlx::raw_sql(statement).execute(connection).await?,
        }
        Ok(())
    }

    async fn select(
        &mut self,
        statement: &Statement,
        mut take: impl FnMut(&[Option<Field<'_>>]),
    ) -> std::result::Result<(), Failed> {
        match self {
            Self::Sqlite(connection) => select_from_sqlite(connection, statement, take)?,
            Self::Postgres(connection) => {
                let query = bound(sqlx::query(statement.text()), statement);
                let mut rows = query.fetch(connection);
                while let Some(row) = rows.try_next().await? {
                    take(&fields(&row));
                }
            }
            Self::Mysql(connection) => {
                let query = bound(sqlx::query(statement.text()), statement);
                let mut rows = query.fetch(connection);
                while let Some(row) = rows.try_next().await? {
                    take(&fields(&row));
                }
            }
        }
        Ok(())
    }

    /// What ends badly here has been done already.
    async fn close(self) {
        match self {
            Self::Sqlite(connection) => _ = connection.close(),
            Self::Postgres(connection) => _ = connection.close().await,
            Self::Mysql(connection) => _ = connection.close().await,
        }
    }
}

fn bound<'q, DB>(
    query: Query<'q, DB, DB::Arguments>,
    statement: &'q Statement,
) -> Query<'q, DB, DB::Arguments>
where
    DB: sqlx::Database,
    Option<&'q str>: Encode<'q, DB> + Type<DB>,
    Option<i64>: Encode<'q, DB> + Type<DB>,
{
    statement.arguments.iter().fold(query, |query, value| match value {
        Value::Text(text) => query.bind(text.as_deref()),
        Value::Int(int) => query.bind(*int),
        Value::List(_) | Value::Rows(_) => query,
    })
}

fn fields<'r, R: Row>(row: &'r R) -> Vec<Option<Field<'r>>>
where
    usize: ColumnIndex<R>,
    Option<&'r str>: Decode<'r, R::Database>,
    Option<i64>: Decode<'r, R::Database> + Type<R::Database>,
{
    let field = |(at, column): (usize, &<R::Database as sqlx::Database>::Column)| {
        if is_int(column.name()) {
            row.try_get::<Option<i64>, _>(at).ok().map(Field::from)
        } else {
            // A text with a binary collation is one for all that.
            row.try_get_unchecked::<Option<&str>, _>(at).ok().map(Field::from)
        }
    };
    row.columns().iter().enumerate().map(field).collect()
}

fn select_from_sqlite(
    connection: &rusqlite::Connection,
    select: &Statement,
    mut take: impl FnMut(&[Option<Field<'_>>]),
) -> rusqlite::Result<()> {
    let mut statement = connection.prepare(&select.sql)?;
    for (at, value) in (1..).zip(&select.arguments) {
        match value {
            Value::Text(text) => statement.raw_bind_parameter(at, text)?,
            Value::Int(int) => statement.raw_bind_parameter(at, int)?,
            Value::List(_) | Value::Rows(_) => {}
        }
    }
    let width = statement.column_count();
    let mut rows = statement.raw_query();
    while let Some(row) = rows.next()? {
        let field = |at| match row.get_ref(at) {
            Ok(ValueRef::Null) => Some(Field::Null),
            Ok(ValueRef::Integer(int)) => Some(Field::Int(int)),
            Ok(ValueRef::Text(text)) => std::str::from_utf8(text).ok().map(Field::Text),
            _ => None,
        };
        take(&(0..width).map(field).collect::<Vec<_>>());
    }
    Ok(())
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
        use rusqlite::ffi::SQLITE_CONSTRAINT_PRIMARYKEY;
        match self {
            Self::Common(error) if is_there(&error) => Error::clash(database.failed(&error).message),
            Self::Common(error) => database.failed(&error),
            Self::Sqlite(error) => {
                let message = format!("{}: {error}", database.label);
                let is_clash = error.sqlite_error().is_some_and(|e| {
                    matches!(e.code, DatabaseBusy | DatabaseLocked)
                        || e.extended_code == SQLITE_CONSTRAINT_PRIMARYKEY
                });
                if is_clash { Error::clash(message) } else { Error::failure(message) }
            }
        }
    }
}

/// Whether another has added that very row since it was looked for. What breaks a unique index of a site's own is no
/// clash.
fn is_there(error: &sqlx::Error) -> bool {
    let sqlx::Error::Database(error) = error else { return false };
    // PostgreSQL names the constraint, MySQL the index at the end of its message.
    error.is_unique_violation()
        && (error.constraint().is_some_and(|name| name.ends_with("_pkey"))
            || error.message().ends_with("PRIMARY'"))
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
