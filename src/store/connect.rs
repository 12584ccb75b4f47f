//! Connections to SQLite, PostgreSQL and MySQL/MariaDB, behind one type.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use futures_util::future::join;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt as _, TryStreamExt as _};
use sqlx::any::{AnyPoolOptions, AnyRow};
use sqlx::{Any, AnyPool, Connection as _, Row as _};
use tokio::sync::Semaphore;

use super::in_few_lengths;
use super::rows::SessionRow;
use super::session::Session;
use super::sql::{Queries, Statement, Values};
use super::transaction::{Chains, Transaction};
use crate::error::{Error, Result};

/// A connection to any of the databases.
pub type Connection = sqlx::AnyConnection;

/// Which SQL a database speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    Sqlite,
    Postgres,
    Mysql,
}

impl Dialect {
    /// The folder of its own SQL files.
    pub(super) const fn folder(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
            Self::Mysql => "mysql",
        }
    }

    /// Of a URL's scheme.
    ///
    /// # Errors
    /// When the scheme is none of ours.
    pub fn of_url(url: &str) -> Result<Self> {
        // Without the slashes all of it, a password too, would be taken for the name of a database.
        match url.split_once(':') {
            Some(("sqlite", _)) => Ok(Self::Sqlite),
            Some(("postgres" | "postgresql", rest)) if rest.starts_with("//") => Ok(Self::Postgres),
            Some(("mysql" | "mariadb", rest)) if rest.starts_with("//") => Ok(Self::Mysql),
            _ => Err(Error::usage(format!("{} is no database URL", without_password(url)))
                .hint("use sqlite:FILE, postgres://USER@HOST/DATABASE or mysql://USER@HOST/DATABASE")),
        }
    }
}

/// A URL as it may be printed: a password in it is masked.
pub fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        // No URL, or one that lacks its slashes: it may hold a password all the same.
        return match (url.split_once(':'), url.rsplit_once('@')) {
            (Some((before, _)), Some((_, after))) if before != "sqlite" => format!("{before}:***@{after}"),
            (Some((before, after)), _) if after.to_lowercase().contains("password") => {
                format!("{before}:***")
            }
            _ => url.to_owned(),
        };
    };
    // A password may itself hold an @ or a slash: the last @ ends it.
    let (authority, path) = match rest.rsplit_once('@') {
        Some((user, host_and_path)) => {
            let name = user.split_once(':').map_or(user.to_owned(), |(name, _)| format!("{name}:***"));
            (format!("{name}@"), host_and_path)
        }
        None => (String::new(), rest),
    };
    let path = match path.split_once('?') {
        Some((path, query)) => {
            let masked: Vec<_> = query
                .split('&')
                .map(|pair| match pair.split_once('=') {
                    // What is set for a session may be anything.
                    Some((name, _)) if name.to_lowercase().contains("pass") || name == "options" => {
                        format!("{name}=***")
                    }
                    _ => pair.to_owned(),
                })
                .collect();
            format!("{path}?{}", masked.join("&"))
        }
        None => path.to_owned(),
    };
    format!("{scheme}://{authority}{path}")
}

/// How many may be at work in one process, each with a connection.
pub const MAX_WORKERS: u32 = 16;

/// One database: a pool of connections, and how to speak to it.
#[derive(Clone, Debug)]
pub struct Database {
    pool: AnyPool,
    /// Sessions that nobody uses at the moment.
    idle: Arc<Mutex<Vec<Session>>>,
    /// A turn for each of those that may read at once.
    readers: Arc<Semaphore>,
    pub dialect: Dialect,
    /// The URL as it may be printed.
    pub label: String,
    /// Whether it has the tables for copies of freezes, once that has been looked up.
    pub(super) has_copies: Arc<OnceLock<bool>>,
    /// Of this run, where it is the journal's database.
    pub(super) chains: Arc<Chains>,
}

impl Database {
    /// Connects, within ten seconds.
    ///
    /// # Errors
    /// When the URL is none of ours (usage), the SQLite file is missing and `create` is false
    /// (usage), or nothing answers (failure). No message holds a password.
    pub async fn connect(url: &str, create: bool) -> Result<Self> {
        Self::connect_with(url, create, MAX_WORKERS, None).await
    }

    /// As [`Database::connect`], with so many connections at most, each of which is used only once this query
    /// has given it the very name.
    pub(super) async fn connect_proven(
        url: &str,
        connections: u32,
        query: String,
        name: String,
    ) -> Result<Self> {
        Self::connect_with(url, false, connections, Some(Arc::new((query, name)))).await
    }

    async fn connect_with(
        url: &str,
        create: bool,
        connections: u32,
        proof: Option<Arc<(String, String)>>,
    ) -> Result<Self> {
        sqlx::any::install_default_drivers();
        let dialect = Dialect::of_url(url)?;
        let label = without_password(url);
        let mut url = url.to_owned();
        if dialect == Dialect::Sqlite {
            let file = sqlite_file(&url);
            if file.is_empty() || file.contains(":memory:") {
                return Err(Error::usage("an SQLite database in memory is lost between two commands")
                    .hint("name a file: sqlite:onefold.db"));
            }
            if !create && !std::path::Path::new(&file).exists() {
                return Err(Error::usage(format!("there is no database {file}"))
                    .hint("create it with `onefold init`, or name another with --database URL"));
            }
            if create && !url.contains("mode=") {
                url.push_str(if url.contains('?') { "&mode=rwc" } else { "?mode=rwc" });
            }
        }
        if dialect != Dialect::Sqlite {
            let parsed = url::Url::parse(&url).map_err(|e| unreadable(&label, dialect, &e.to_string()))?;
            if dialect == Dialect::Mysql && parsed.path().trim_matches('/').is_empty() {
                return Err(Error::usage(format!("{label} names no database"))
                    .hint("write it after the host: mysql://USER@HOST/DATABASE"));
            }
        }
        if let Some(refusal) = refusal(&url).await {
            return Err(Error::failure(format!("cannot connect to {label}: {refusal}")).hint(REACH));
        }
        let pool = AnyPoolOptions::new()
            .max_connections(connections)
            .acquire_timeout(Duration::from_secs(10))
            // A server may have hung up meanwhile; a file has not.
            .test_before_acquire(dialect != Dialect::Sqlite)
            .after_connect(move |connection, _| {
                let proof = proof.clone();
                Box::pin(async move {
                    settle_in(connection, dialect).await?;
                    match proof {
                        Some(proof) => prove(connection, &proof.0, &proof.1).await,
                        None => Ok(()),
                    }
                })
            })
            .connect(&url)
            .await
            .map_err(|e| cannot_connect(&label, dialect, &e))?;
        // What reads SQLite has its thread to itself: more of them at once would only keep more pages.
        let readers = if dialect == Dialect::Sqlite { 1 } else { connections as usize };
        let readers = Arc::new(Semaphore::new(readers));
        let chains = Arc::new(Chains::new());
        Ok(Self { pool, idle: Arc::default(), readers, dialect, label, has_copies: Arc::default(), chains })
    }

    pub async fn connection(&self) -> Result<sqlx::pool::PoolConnection<Any>> {
        self.pool.acquire().await.map_err(|e| self.failed(&e))
    }

    /// A transaction that means to write.
    pub async fn begin(&self) -> Result<Transaction> {
        let inner = self.pool.begin_with(begin_to_write(self.dialect)).await;
        Ok(Transaction::new(inner.map_err(|e| self.failed(&e))?, self.chains.clone()))
    }

    pub async fn commit(&self, tx: Transaction) -> Result<()> {
        tx.commit().await.map_err(|e| self.failed(&e))
    }

    /// Does some work in one transaction and commits it; an error of the work undoes it. Where it
    /// clashes with others (a deadlock, a serialization failure, a lock that is not given in time, a
    /// key that another adds in this moment) it is undone and done again, after a pause that grows.
    ///
    /// So the work changes nothing but this database: no request to a provider is made in it.
    pub async fn transaction<T>(
        &self,
        mut work: impl AsyncFnMut(&mut Transaction) -> Result<T>,
    ) -> Result<T> {
        until_no_clash(async || self.transaction_once(&mut work).await).await
    }

    /// Does some work in one transaction, once only: `fence` first, and then what waits for no lock longer than a second. For
    /// work that there is another way to do where others are at the same rows: while it waits it keeps them from theirs.
    ///
    /// # Errors
    /// Those of both; a clash where others were at it.
    pub async fn attempt<T>(
        &self,
        fence: impl AsyncFnOnce(&mut Transaction) -> Result<()>,
        work: impl AsyncFnOnce(&mut Transaction) -> Result<T>,
    ) -> Result<T> {
        let mut tx = self.begin().await?;
        fence(&mut tx).await?;
        let (impatient, patient) = match self.dialect {
            // It waits where it begins, if at all.
            Dialect::Sqlite => ("", ""),
            Dialect::Postgres => ("SET LOCAL lock_timeout = '1s'", ""),
            Dialect::Mysql => ("SET SESSION innodb_lock_wait_timeout = 1", MYSQL_PATIENCE),
        };
        if !impatient.is_empty() {
            sqlx::raw_sql(impatient).execute(&mut *tx).await.map_err(|e| self.failed(&e))?;
        }
        let done = work(&mut tx).await;
        if !patient.is_empty() {
            sqlx::raw_sql(patient).execute(&mut *tx).await.map_err(|e| self.failed(&e))?;
        }
        let done = done?;
        self.commit(tx).await?;
        Ok(done)
    }

    async fn transaction_once<T>(
        &self,
        work: &mut impl AsyncFnMut(&mut Transaction) -> Result<T>,
    ) -> Result<T> {
        let mut tx = self.begin().await?;
        let done = work(&mut tx).await?;
        self.commit(tx).await?;
        Ok(done)
    }

    /// A session that nobody else uses: one that is at hand, or a new one.
    pub(super) async fn session(&self) -> Result<Session> {
        while let Some(mut session) = self.idle(Vec::pop) {
            if session.is_alive().await {
                return Ok(session);
            }
        }
        Session::open(self).await.map_err(|e| self.failed(&e))
    }

    /// Puts a session at hand that has done its work well.
    pub(super) fn give_back(&self, session: Session) {
        self.idle(|idle| idle.push(session));
    }

    fn idle<T>(&self, change: impl FnOnce(&mut Vec<Session>) -> T) -> T {
        change(&mut self.idle.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub async fn close(&self) {
        for session in self.idle(std::mem::take) {
            session.close().await;
        }
        self.pool.close().await;
    }

    /// Of its connections. It may hold a password: never printed.
    pub(super) fn url(&self) -> String {
        self.pool.connect_options().database_url.to_string()
    }

    /// An error of this database, as a person reads it.
    pub(super) fn failed(&self, error: &sqlx::Error) -> Error {
        let message = format!("{}: {}", self.label, plain(error));
        match error {
            _ if is_clash(error) => Error::clash(message),
            sqlx::Error::Database(e) if is_denied(&**e) => Error::failure(message).hint(
                "have it granted to the user of this database (a DBA gets the SQL of our tables from \
                 `onefold init --print`); `onefold check` tells which rights are missing",
            ),
            _ => Error::failure(message),
        }
    }

    /// A statement of a query file for this database.
    pub(super) fn statement(&self, queries: &Queries, name: &str, values: &Values) -> Result<Statement> {
        Statement::new(queries.get(name)?, &[], values, self.dialect)
            .map_err(|e| e.context(format!("{name}.sql")))
    }

    pub(super) async fn fetch(&self, on: &mut Connection, statement: &Statement) -> Result<Vec<AnyRow>> {
        statement.query().fetch_all(on).await.map_err(|e| self.failed(&e))
    }

    /// Hands over each row that a SELECT gives, outside a transaction, until the first error.
    pub(super) async fn each_row(
        &self,
        select: &Statement,
        mut take: impl FnMut(SessionRow<'_>) -> Result<()>,
    ) -> Result<()> {
        // It is never closed.
        let _turn = self.readers.acquire().await;
        // What connects and reads is large, and stands in whatever waits for it: so it has a place of its own.
        let mut session = Box::pin(self.session()).await?;
        let mut taken = Ok(());
        let goes_on = |row: SessionRow<'_>| {
            taken = take(row);
            taken.is_ok()
        };
        Box::pin(session.select(select, goes_on)).await.map_err(|e| self.failed(&e))?;
        self.give_back(session);
        if self.dialect == Dialect::Sqlite {
            // It has kept this thread to itself: whoever writes meanwhile goes on first.
            tokio::task::yield_now().await;
        }
        taken
    }

    /// The rows one by one, as the database gives them.
    pub(super) fn stream<'s>(
        &'s self,
        on: &'s mut Connection,
        statement: &'s Statement,
    ) -> BoxStream<'s, Result<AnyRow>> {
        statement.query().fetch(on).map_err(|e| self.failed(&e)).boxed()
    }

    /// How many rows it changed or matched.
    pub(super) async fn execute(&self, on: &mut Connection, statement: &Statement) -> Result<u64> {
        statement.query().execute(on).await.map(|done| done.rows_affected()).map_err(|e| self.failed(&e))
    }

    /// Whether it could be added; false where a row with the same key is there already. On
    /// PostgreSQL the transaction is then lost, so this stands first in its transaction.
    pub(super) async fn insert(&self, on: &mut Connection, statement: &Statement) -> Result<bool> {
        match statement.query().execute(on).await {
            Ok(_) => Ok(true),
            Err(sqlx::Error::Database(e)) if e.is_unique_violation() => Ok(false),
            Err(e) => Err(self.failed(&e)),
        }
    }

    /// Adds rows by the file that takes them as `:rows`, in statements of few lengths: while the database is at one, the
    /// next is made. False as by [`Database::insert`].
    pub(super) async fn insert_rows<T>(
        &self,
        on: &mut Connection,
        queries: &Queries,
        file: &str,
        rows: &[T],
        row: impl Fn(&T) -> Values,
    ) -> Result<bool> {
        let mut parts = in_few_lengths(rows);
        let mut made = || {
            let rows = parts.next()?.iter().map(|one| row(one).into_row()).collect::<Vec<_>>();
            Some(self.statement(queries, file, &Values::new().bind("rows", rows)))
        };
        let mut now = made().transpose()?;
        while let Some(statement) = now {
            let (inserted, next) = join(self.insert(on, &statement), async { made().transpose() }).await;
            if !inserted? {
                return Ok(false);
            }
            now = next?;
        }
        Ok(true)
    }
}

const REACH: &str = "is the server up, and are host and port right?";

fn unreadable(label: &str, dialect: Dialect, why: &str) -> Error {
    let form = match dialect {
        Dialect::Sqlite => "sqlite:FILE",
        Dialect::Postgres => "postgres://USER@HOST:PORT/DATABASE?sslmode=verify-full",
        Dialect::Mysql => "mysql://USER@HOST:PORT/DATABASE?ssl-mode=VERIFY_IDENTITY",
    };
    Error::usage(format!("{label} is no database URL: {why}")).hint(format!("its form is {form}"))
}

fn cannot_connect(label: &str, dialect: Dialect, error: &sqlx::Error) -> Error {
    let why = plain(error);
    if matches!(error, sqlx::Error::Configuration(_)) {
        return unreadable(label, dialect, &why);
    }
    let has_code = |codes: &[&str]| matches!(error, sqlx::Error::Database(e) if e.code().is_some_and(|code| codes.contains(&&*code)));
    let hint = match error {
        _ if dialect == Dialect::Sqlite => {
            "is it an SQLite file, and may it and its folder be read and written? --database names another"
        }
        sqlx::Error::Database(e) if has_code(&["3D000"]) || mysql_number(&**e) == Some(1049) => {
            "create that database first, or name another at the end of the URL"
        }
        sqlx::Error::Database(e) if is_denied(&**e) => "have the user granted the use of that database",
        sqlx::Error::Database(_) if has_code(&["28000", "28P01"]) => {
            "are user and password right? --password-file names a file of passwords"
        }
        sqlx::Error::Database(_) => "the server answers, and refuses: its log may say more",
        _ if why.contains("does not support TLS") => {
            "turn TLS on at the server; or, in a network that you trust, write ?sslmode=disable (PostgreSQL) or \
             ?ssl-mode=DISABLED (MySQL) after the database"
        }
        _ if why.contains("certificate") => {
            "name the authority that has signed it, after the database: ?sslrootcert=FILE (PostgreSQL) or \
             ?ssl-ca=FILE (MySQL)"
        }
        sqlx::Error::Io(e) if e.kind() == std::io::ErrorKind::NotFound => {
            "is the file there that the URL names: a socket, sslrootcert (PostgreSQL) or ssl-ca (MySQL)?"
        }
        _ => REACH,
    };
    Error::failure(format!("cannot connect to {label}: {why}")).hint(hint)
}

/// Why a server's port does not answer, where it says so at once: the pool would try for ten seconds
/// and then know only that nothing answered.
async fn refusal(url: &str) -> Option<String> {
    let url = url::Url::parse(url).ok()?;
    let port = url.port().or(match Dialect::of_url(url.as_str()).ok()? {
        Dialect::Sqlite => None,
        Dialect::Postgres => Some(5432),
        Dialect::Mysql => Some(3306),
    })?;
    let host = url.host_str().filter(|host| !host.is_empty() && !host.contains('%'))?;
    let reached = tokio::net::TcpStream::connect((host, port));
    match tokio::time::timeout(Duration::from_secs(5), reached).await {
        Ok(Err(e)) => Some(e.to_string()),
        Ok(Ok(_)) | Err(_) => None,
    }
}

/// What each connection sets for itself.
pub(super) const fn settings(dialect: Dialect) -> &'static [&'static str] {
    match dialect {
        Dialect::Sqlite => &[
            "PRAGMA busy_timeout = 10000",
            "PRAGMA journal_mode = WAL",
            "PRAGMA synchronous = FULL",
            "PRAGMA cache_size = -65536",
        ],
        Dialect::Postgres => &[
            // A process that was stopped in the middle of a transaction does not hold up the others for ever.
            "SET lock_timeout = '15s'",
            "SET idle_in_transaction_session_timeout = '90s'",
            // A plan that suits a table of a few rows is not kept while an import or an apply fills it.
            "SET plan_cache_mode = 'force_custom_plan'",
        ],
        Dialect::Mysql => &[
            // What another session has committed is seen, also late in a transaction.
            "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
            // What does not fit into a column is an error, whatever the server's own mode cuts off.
            "SET SESSION sql_mode = CONCAT(@@SESSION.sql_mode, ',STRICT_ALL_TABLES')",
            // A process that was stopped in the middle of a transaction does not hold up the others for ever.
            MYSQL_PATIENCE,
        ],
    }
}

/// How a transaction begins that means to write: on SQLite it takes the write lock at once, since a
/// deferred read-then-write fails with BUSY as soon as there are two writers.
pub(super) const fn begin_to_write(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Sqlite => "BEGIN IMMEDIATE",
        Dialect::Postgres | Dialect::Mysql => "BEGIN",
    }
}

/// For how long a statement on MySQL waits for a lock.
const MYSQL_PATIENCE: &str = "SET SESSION innodb_lock_wait_timeout = 15";

async fn settle_in(connection: &mut Connection, dialect: Dialect) -> sqlx::Result<()> {
    for setting in settings(dialect) {
        sqlx::raw_sql(*setting).execute(&mut *connection).await?;
    }
    connection.ping().await
}

/// Whether a connection is where it must be.
async fn prove(connection: &mut Connection, query: &str, name: &str) -> sqlx::Result<()> {
    let statement = Statement { sql: query.to_owned(), arguments: Vec::new() };
    let rows = statement.query().fetch_all(connection).await?;
    match rows.as_slice() {
        [row] if row.try_get::<String, _>("name")? == name => Ok(()),
        _ => Err(sqlx::Error::Configuration(format!("a connection does not lead into {name}").into())),
    }
}

/// Does some work that is undone where it clashes with others, and then again, after a pause that grows.
pub(super) async fn until_no_clash<T>(mut work: impl AsyncFnMut() -> Result<T>) -> Result<T> {
    for pause in PAUSES_MILLIS {
        match work().await {
            Err(clash) if clash.is_clash() => tokio::time::sleep(about(pause)).await,
            end => return end,
        }
    }
    work().await.map_err(|e| if e.is_clash() { e.hint("run it again") } else { e })
}

/// How long to wait before work that clashed is done again.
const PAUSES_MILLIS: [u64; 8] = [5, 10, 20, 40, 80, 160, 320, 640];

/// Half to one and a half of it, by chance, so that those who clashed do not meet again.
fn about(millis: u64) -> Duration {
    let chance = u64::from(uuid::Uuid::new_v4().as_bytes()[0]);
    Duration::from_micros(millis * (500 + chance * 4))
}

/// Whether the database undid a statement or transaction because of what others do at the same time.
fn is_clash(error: &sqlx::Error) -> bool {
    let sqlx::Error::Database(error) = error else { return false };
    if let Some(error) = error.try_downcast_ref::<sqlx::mysql::MySqlDatabaseError>() {
        // Lock wait timeout, deadlock, record changed since last read.
        return matches!(error.number(), 1205 | 1213 | 1020);
    }
    let code = error.code().unwrap_or_default();
    if error.try_downcast_ref::<sqlx::postgres::PgDatabaseError>().is_some() {
        // Serialization failure, deadlock, lock not available.
        return matches!(&*code, "40001" | "40P01" | "55P03");
    }
    // SQLITE_BUSY and SQLITE_LOCKED, whatever their extended code says more.
    code.parse::<u32>().is_ok_and(|code| matches!(code & 0xff, 5 | 6))
}

/// The number of an error of MySQL or MariaDB.
fn mysql_number(error: &dyn sqlx::error::DatabaseError) -> Option<u16> {
    error.try_downcast_ref::<sqlx::mysql::MySqlDatabaseError>().map(sqlx::mysql::MySqlDatabaseError::number)
}

/// Whether the user lacks a right.
fn is_denied(error: &dyn sqlx::error::DatabaseError) -> bool {
    match mysql_number(error) {
        // On a database, table, column, for an administrator, on a routine.
        Some(number) => matches!(number, 1044 | 1142 | 1143 | 1227 | 1370),
        None => error.code().is_some_and(|code| code == "42501"),
    }
}

/// Whether a statement names a table that is not there, or not to be seen.
pub(super) fn is_missing_table(error: &sqlx::Error) -> bool {
    let sqlx::Error::Database(error) = error else { return false };
    match mysql_number(&**error) {
        Some(number) => number == 1146,
        None => {
            error.code().is_some_and(|code| code == "42P01") || error.message().starts_with("no such table")
        }
    }
}

pub(super) fn sqlite_file(url: &str) -> String {
    let path = url.trim_start_matches("sqlite:").trim_start_matches("//");
    path.split('?').next().unwrap_or_default().to_owned()
}

/// The innermost sentence of an error, without the library's preamble.
fn plain(error: &sqlx::Error) -> String {
    match error {
        sqlx::Error::Database(e) => e.message().to_owned(),
        sqlx::Error::PoolTimedOut => "nothing answered within ten seconds".to_owned(),
        sqlx::Error::Io(e) => e.to_string(),
        sqlx::Error::Tls(e) | sqlx::Error::Configuration(e) => {
            let text = e.to_string();
            text.trim_start_matches("error with configuration: ").to_owned()
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_printed() {
        let masked = |url| without_password(url);
        assert_eq!(masked("postgres://u:p@h/d"), "postgres://u:***@h/d");
        assert_eq!(
            masked("postgres://u:p@ss@h:5432/d?sslmode=require"),
            "postgres://u:***@h:5432/d?sslmode=require"
        );
        assert_eq!(masked("mysql://u:a/b?c@h/d"), "mysql://u:***@h/d");
        assert_eq!(masked("mysql://u@h/d?password=x&a=b"), "mysql://u@h/d?password=***&a=b");
        assert_eq!(masked("sqlite:onefold.db"), "sqlite:onefold.db");
        assert_eq!(masked("sqlite:a@b.db"), "sqlite:a@b.db");
        assert_eq!(masked("u:p@h/d"), "u:***@h/d");
        assert_eq!(masked("redis://h/0?pass=x"), "redis://h/0?pass=***");
        assert_eq!(masked("postgres:h/d?password=x"), "postgres:***");
        for url in ["postgres:u:s3cr3t@h/x", "mysql:u:s3cr3t@h/x", "postgres:/u:s3cr3t@h/x"] {
            let refused = Dialect::of_url(url).unwrap_err();
            assert!(!format!("{refused:?}").contains("s3cr3t"), "{refused:?}");
        }
        assert_eq!(masked("mysql:u:p@h/d"), "mysql:***@h/d");
    }

    #[test]
    fn a_url_of_another_kind_is_refused_without_its_password() {
        let error = Dialect::of_url("redis://u:secret@h").unwrap_err();
        assert!(!error.message.contains("secret"), "{error}");
    }
}
