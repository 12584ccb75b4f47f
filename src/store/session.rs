//! Connections of the drivers themselves, for what reads or adds many rows: they tell every type and give rows several
//! times as fast as the common driver does (connect.rs), which has the transactions.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use futures_util::TryStreamExt as _;
use rusqlite::OpenFlags;
use rusqlite::types::ValueRef;
use sqlx::any::{AnyTypeInfo, AnyTypeInfoKind};
use sqlx::error::{BoxDynError, DatabaseError, ErrorKind};
use sqlx::{
    Column as _, ColumnIndex, Connection as _, Decode, Encode, Executor, IntoArguments, MySqlConnection,
    PgConnection, Postgres, Row as _, Statement as _, Type, TypeInfo as _, ValueRef as _,
};

use super::connect::settings;
use super::rows::{Columns, Field, Given, Other, SessionRow, text_of};
use super::sql::{Statement, Value};
use super::{Database, Dialect};

/// How long to wait for one.
const PATIENCE: Duration = Duration::from_secs(10);
/// After how long a server is tried again that does not take connections at the moment.
const PAUSE: Duration = Duration::from_millis(50);
/// How many prepared statements one keeps.
const STATEMENTS: usize = 100;

/// A connection of the driver itself.
#[derive(Debug)]
pub(super) enum Session {
    Sqlite(rusqlite::Connection),
    Postgres(PgConnection),
    Mysql(MySqlConnection),
}

/// A column that SQL gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    pub name: String,
    /// As the database names it.
    pub type_name: String,
    pub kind: Kind,
}

/// What can be read out of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Text,
    Int,
    /// Each value has its own: an expression on SQLite.
    Unknown,
    /// Nothing that onefold reads.
    Other,
}

impl Session {
    /// Opens one with the settings of every connection, within ten seconds: a server may be starting just now.
    pub(super) async fn open(database: &Database) -> sqlx::Result<Self> {
        let opened = async {
            let mut session = loop {
                match Self::connect(&database.url(), database.dialect).await {
                    Err(sqlx::Error::Io(e)) if e.kind() == std::io::ErrorKind::ConnectionRefused => {}
                    Err(sqlx::Error::Database(e)) if e.is_transient_in_connect_phase() => {}
                    end => break end?,
                }
                tokio::time::sleep(PAUSE).await;
            };
            for setting in settings(database.dialect) {
                session.run(setting).await?;
            }
            Ok(session)
        };
        tokio::time::timeout(PATIENCE, opened).await.unwrap_or(Err(sqlx::Error::PoolTimedOut))
    }

    async fn connect(url: &str, dialect: Dialect) -> sqlx::Result<Self> {
        Ok(match dialect {
            Dialect::Sqlite => {
                let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
                    | OpenFlags::SQLITE_OPEN_URI
                    | OpenFlags::SQLITE_OPEN_NO_MUTEX;
                let connection = rusqlite::Connection::open_with_flags(sqlite_uri(url), flags);
                let connection = connection.map_err(of_sqlite)?;
                connection.set_prepared_statement_cache_capacity(STATEMENTS);
                Self::Sqlite(connection)
            }
            Dialect::Postgres => Self::Postgres(PgConnection::connect(url).await?),
            Dialect::Mysql => Self::Mysql(MySqlConnection::connect(url).await?),
        })
    }

    /// Whether its server has not hung up meanwhile; a file has not.
    pub(super) async fn is_alive(&mut self) -> bool {
        let ping = async {
            match self {
                Self::Sqlite(_) => Ok(()),
                Self::Postgres(connection) => connection.ping().await,
                Self::Mysql(connection) => connection.ping().await,
            }
        };
        tokio::time::timeout(PATIENCE, ping).await.is_ok_and(|answer| answer.is_ok())
    }

    pub(super) async fn run(&mut self, statement: &'static str) -> sqlx::Result<()> {
        match self {
            Self::Sqlite(connection) => connection.execute_batch(statement).map_err(of_sqlite)?,
            Self::Postgres(connection) => _ = sqlx::raw_sql(statement).execute(connection).await?,
            Self::Mysql(connection) => _ = sqlx::raw_sql(statement).execute(connection).await?,
        }
        Ok(())
    }

    /// What a statement would give.
    pub(super) async fn columns(&mut self, statement: &Statement) -> sqlx::Result<Vec<Column>> {
        let sql = statement.text();
        Ok(match self {
            Self::Sqlite(connection) => {
                sqlite_columns(&connection.prepare(&statement.sql).map_err(of_sqlite)?)
            }
            Self::Postgres(connection) => {
                let types: Vec<_> = statement
                    .arguments
                    .iter()
                    .map(|value| match value {
                        Value::Int(_) => <i64 as Type<Postgres>>::type_info(),
                        _ => <String as Type<Postgres>>::type_info(),
                    })
                    .collect();
                columns::<Postgres>(connection.prepare_with(sql, &types).await?.columns())
            }
            Self::Mysql(connection) => columns::<sqlx::MySql>(connection.prepare(sql).await?.columns()),
        })
    }

    /// Hands over each row that a SELECT gives, until that says not to go on. SQLite's are read at once, with nothing else
    /// done meanwhile: in a file with a write-ahead log no reader waits for a writer.
    pub(super) async fn select(
        &mut self,
        statement: &Statement,
        take: impl FnMut(SessionRow<'_>) -> bool,
    ) -> sqlx::Result<()> {
        match self {
            Self::Sqlite(connection) => select_from_sqlite(connection, statement, take),
            Self::Postgres(connection) => select::<Postgres>(connection, statement, take).await,
            Self::Mysql(connection) => select::<sqlx::MySql>(connection, statement, take).await,
        }
    }

    /// What ends badly here has been done already.
    pub(super) async fn close(self) {
        match self {
            Self::Sqlite(connection) => _ = connection.close(),
            Self::Postgres(connection) => _ = connection.close().await,
            Self::Mysql(connection) => _ = connection.close().await,
        }
    }
}

/// Whether a column of a ledger holds whole numbers; all others hold text.
pub(super) fn is_int(name: &str) -> bool {
    name.ends_with("_us") || name.ends_with("_minor") || ["quantity", "attempts", "shard"].contains(&name)
}

fn columns<DB: sqlx::Database>(columns: &[DB::Column]) -> Vec<Column>
where
    AnyTypeInfo: for<'a> TryFrom<&'a DB::TypeInfo>,
{
    let kind = |of: &DB::TypeInfo| match AnyTypeInfo::try_from(of) {
        Ok(any) => match any.kind {
            AnyTypeInfoKind::Text | AnyTypeInfoKind::Blob => Kind::Text,
            AnyTypeInfoKind::SmallInt | AnyTypeInfoKind::Integer | AnyTypeInfoKind::BigInt => Kind::Int,
            AnyTypeInfoKind::Null => Kind::Unknown,
            AnyTypeInfoKind::Bool | AnyTypeInfoKind::Real | AnyTypeInfoKind::Double => Kind::Other,
        },
        Err(_) => Kind::Other,
    };
    let column = |column: &DB::Column| Column {
        name: column.name().to_owned(),
        type_name: column.type_info().name().to_owned(),
        kind: kind(column.type_info()),
    };
    columns.iter().map(column).collect()
}

async fn select<DB: sqlx::Database>(
    connection: &mut DB::Connection,
    statement: &Statement,
    mut take: impl FnMut(SessionRow<'_>) -> bool,
) -> sqlx::Result<()>
where
    for<'c> &'c mut DB::Connection: Executor<'c, Database = DB>,
    DB::Arguments: IntoArguments<DB>,
    for<'q> Option<&'q str>: Encode<'q, DB> + Type<DB>,
    for<'q> Option<i64>: Encode<'q, DB> + Type<DB>,
    AnyTypeInfo: for<'c> TryFrom<&'c DB::TypeInfo, Error = sqlx::Error>,
    usize: ColumnIndex<DB::Row>,
    for<'r> &'r [u8]: Decode<'r, DB>,
    for<'r> i64: Decode<'r, DB>,
    for<'r> f32: Decode<'r, DB>,
    for<'r> f64: Decode<'r, DB>,
    for<'r> bool: Decode<'r, DB>,
{
    let query = statement.arguments.iter().fold(sqlx::query(statement.text()), |query, value| match value {
        Value::Text(text) => query.bind(text.as_deref()),
        Value::Int(int) => query.bind(*int),
        Value::List(_) | Value::Rows(_) => query,
    });
    let mut rows = query.fetch(connection);
    let mut kinds: Vec<AnyTypeInfoKind> = Vec::new();
    let mut columns = Columns::default();
    while let Some(row) = rows.try_next().await? {
        if columns.is_empty() {
            kinds = row.columns().iter().map(kind::<DB>).collect::<sqlx::Result<_>>()?;
            columns = Columns::named(row.columns().iter().map(DB::Column::name));
        }
        let value = |(at, kind)| given::<DB>(row.try_get_raw(at)?, kind);
        let values: Vec<Given<'_>> =
            kinds.iter().copied().enumerate().map(value).collect::<sqlx::Result<_>>()?;
        if !take(SessionRow { columns: &columns, values: &values }) {
            break;
        }
    }
    Ok(())
}

/// What the common driver, which reads the same rows in a transaction, takes a column for.
fn kind<DB: sqlx::Database>(column: &DB::Column) -> sqlx::Result<AnyTypeInfoKind>
where
    AnyTypeInfo: for<'c> TryFrom<&'c DB::TypeInfo, Error = sqlx::Error>,
{
    let info = AnyTypeInfo::try_from(column.type_info());
    let unknown =
        |e: sqlx::Error| sqlx::Error::ColumnDecode { index: column.name().to_owned(), source: e.into() };
    info.map(|info| info.kind()).map_err(unknown)
}

/// What stands in a column of such a kind.
fn given<'r, DB: sqlx::Database>(value: DB::ValueRef<'r>, kind: AnyTypeInfoKind) -> sqlx::Result<Given<'r>>
where
    &'r [u8]: Decode<'r, DB>,
    i64: Decode<'r, DB>,
    f32: Decode<'r, DB>,
    f64: Decode<'r, DB>,
    bool: Decode<'r, DB>,
{
    fn decoded<'r, DB: sqlx::Database, T: Decode<'r, DB>>(value: DB::ValueRef<'r>) -> sqlx::Result<T> {
        T::decode(value).map_err(sqlx::Error::Decode)
    }
    use AnyTypeInfoKind::*;
    Ok(match kind {
        _ if value.is_null() => Ok(Field::Null),
        Null => Ok(Field::Null),
        Text | Blob => text_of(decoded::<DB, _>(value)?),
        SmallInt | Integer | BigInt => Ok(Field::Int(decoded::<DB, _>(value)?)),
        Real => Err(Other::Real(f64::from(decoded::<DB, f32>(value)?))),
        Double => Err(Other::Real(decoded::<DB, _>(value)?)),
        Bool => Err(Other::Bool(decoded::<DB, _>(value)?)),
    })
}

/// What SQLite itself takes for the URL of a database that is there.
fn sqlite_uri(url: &str) -> String {
    let file = url.trim_start_matches("sqlite:").trim_start_matches("//");
    format!("file:{}", file.replace('#', "%23").replace("mode=rwc", "mode=rw"))
}

fn select_from_sqlite(
    connection: &rusqlite::Connection,
    select: &Statement,
    mut take: impl FnMut(SessionRow<'_>) -> bool,
) -> sqlx::Result<()> {
    let mut statement = connection.prepare_cached(&select.sql).map_err(of_sqlite)?;
    for (at, value) in (1..).zip(&select.arguments) {
        match value {
            Value::Text(text) => statement.raw_bind_parameter(at, text).map_err(of_sqlite)?,
            Value::Int(int) => statement.raw_bind_parameter(at, int).map_err(of_sqlite)?,
            Value::List(_) | Value::Rows(_) => {}
        }
    }
    let mut columns = Columns::default();
    let mut rows = statement.raw_query();
    while let Some(row) = rows.next().map_err(of_sqlite)? {
        // Only now: a statement that was kept is prepared anew where the schema has changed since.
        if columns.is_empty() {
            let statement: &rusqlite::Statement<'_> = row.as_ref();
            let unread = sqlite_columns(statement).into_iter().find(|c| UNREAD.contains(&&*c.type_name));
            if let Some(Column { name, type_name, .. }) = unread {
                let source = format!("no value is read of a column that is declared as {type_name}").into();
                return Err(sqlx::Error::ColumnDecode { index: name, source });
            }
            columns = Columns::named(statement.column_names());
        }
        let width = row.as_ref().column_count();
        let value = |at| match row.get_ref_unwrap(at) {
            ValueRef::Null => Ok(Field::Null),
            ValueRef::Integer(int) => Ok(Field::Int(int)),
            ValueRef::Real(real) => Err(Other::Real(real)),
            ValueRef::Text(text) | ValueRef::Blob(text) => text_of(text),
        };
        let values: Vec<Given<'_>> = (0..width).map(value).collect();
        if !take(SessionRow { columns: &columns, values: &values }) {
            break;
        }
    }
    Ok(())
}

/// Declared types of which the common driver takes no value, whatever it is.
const UNREAD: [&str; 6] = ["BOOL", "BOOLEAN", "DATE", "TIME", "DATETIME", "TIMESTAMP"];

fn sqlite_columns(statement: &rusqlite::Statement<'_>) -> Vec<Column> {
    let column = |column: &rusqlite::Column<'_>| {
        let type_name = column.decl_type().unwrap_or("NULL").to_uppercase();
        Column { name: column.name().to_owned(), kind: sqlite_kind(&type_name), type_name }
    };
    statement.columns().iter().map(column).collect()
}

/// By the words that the common driver knows in a declared type.
fn sqlite_kind(declared: &str) -> Kind {
    let has = |words: &[&str]| words.iter().any(|word| declared.contains(word));
    match declared {
        _ if UNREAD.contains(&declared) => Kind::Other,
        _ if has(&["INT"]) => Kind::Int,
        _ if has(&["CHAR", "CLOB", "TEXT", "BLOB"]) => Kind::Text,
        _ if has(&["REAL", "FLOA", "DOUB"]) => Kind::Other,
        _ => Kind::Unknown,
    }
}

/// An error of SQLite's, as the common driver gives it.
#[derive(Debug)]
struct SqliteError {
    /// The extended one.
    code: i32,
    message: String,
}

pub(super) fn of_sqlite(error: rusqlite::Error) -> sqlx::Error {
    let message = error.to_string();
    match error.sqlite_error() {
        Some(error) => sqlx::Error::Database(Box::new(SqliteError { code: error.extended_code, message })),
        None => sqlx::Error::Protocol(message),
    }
}

impl fmt::Display for SqliteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for SqliteError {}

impl DatabaseError for SqliteError {
    fn message(&self) -> &str {
        &self.message
    }

    fn code(&self) -> Option<Cow<'_, str>> {
        Some(self.code.to_string().into())
    }

    fn kind(&self) -> ErrorKind {
        use rusqlite::ffi::{SQLITE_CONSTRAINT_PRIMARYKEY, SQLITE_CONSTRAINT_UNIQUE};
        match self.code {
            SQLITE_CONSTRAINT_PRIMARYKEY | SQLITE_CONSTRAINT_UNIQUE => ErrorKind::UniqueViolation,
            _ => ErrorKind::Other,
        }
    }

    fn as_error(&self) -> &(dyn std::error::Error + Send + Sync + 'static) {
        self
    }

    fn as_error_mut(&mut self) -> &mut (dyn std::error::Error + Send + Sync + 'static) {
        self
    }

    fn into_error(self: Box<Self>) -> BoxDynError {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sqlite_finds_the_file_that_a_url_names() {
        assert_eq!(sqlite_uri("sqlite:a.db"), "file:a.db");
        assert_eq!(sqlite_uri("sqlite://a.db?mode=rwc"), "file:a.db?mode=rw");
        assert_eq!(sqlite_uri("sqlite:///var/a%20b#1.db?mode=ro"), "file:/var/a%20b%231.db?mode=ro");
    }
}
