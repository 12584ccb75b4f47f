//! Databases for the tests: each test has one of its own on SQLite, PostgreSQL and MariaDB, which is
//! gone when the test ends.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::process;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use onefold::core::ledger::Ledgers;
use onefold::core::scope::Scope;
use onefold::store::{Places, Queries, Statuses, Store};
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, AssertSqlSafe, Connection, Executor, Row};
use tempfile::TempDir;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Sqlite,
    Postgres,
    Mariadb,
}

impl Kind {
    /// The variable that names the server, and what its database is like in a URL.
    fn server(self) -> Option<&'static str> {
        match self {
            Self::Sqlite => None,
            Self::Postgres => Some("ONEFOLD_TEST_POSTGRES_URL"),
            Self::Mariadb => Some("ONEFOLD_TEST_MYSQL_URL"),
        }
    }
}

/// An empty database.
pub struct Db {
    pub kind: Kind,
    pub url: String,
    home: Home,
}

enum Home {
    Folder(TempDir),
    Server { url: String, name: String },
}

static MADE: AtomicUsize = AtomicUsize::new(0);

impl Db {
    pub fn new(kind: Kind) -> Self {
        let Some(variable) = kind.server() else {
            let folder = folder();
            let url = format!("sqlite:{}", folder.path().join("onefold.db").display());
            return Self { kind, url, home: Home::Folder(folder) };
        };
        let server = std::env::var(variable).unwrap_or_else(|_| {
            panic!("{variable} is not set: run the tests by tests/run.sh, which provides the servers")
        });
        let name = format!("onefold_{}_{}", process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        aside(async || run_on(&server, format!("CREATE DATABASE {name}")).await);
        Self { kind, url: with_database(&server, &name), home: Home::Server { url: server, name } }
    }

    /// Opened as one store of everything; the tables are not there yet.
    pub async fn open(&self) -> Store {
        Store::open(&Places::one(&self.url), Queries::default(), Statuses::default(), true).await.unwrap()
    }

    /// Opened, with all tables.
    pub async fn store(&self) -> Store {
        let store = self.open().await;
        store.init().await.unwrap();
        store
    }

    /// Opened, with these rows in its ledgers.
    pub async fn store_of(&self, ledgers: &Ledgers) -> Store {
        let store = self.store().await;
        store.import(ledgers, false, |_, _| ()).await.unwrap();
        store
    }

    /// Runs a statement as somebody else would, beside the store.
    pub async fn run(&self, sql: impl Into<String>) {
        run_on(&self.url, sql.into()).await;
    }

    /// As [`Db::run`]; whether it could be run.
    pub async fn try_run(&self, sql: &str) -> bool {
        sqlx::any::install_default_drivers();
        let mut connection = AnyConnection::connect(&self.url).await.unwrap();
        connection.execute(AssertSqlSafe(sql.to_owned())).await.is_ok()
    }

    /// As [`Db::run`], from where nothing can be awaited.
    pub fn run_now(&self, sql: &str) {
        aside(async || run_on(&self.url, sql.to_owned()).await);
    }

    /// The rows that a query gives, each as its columns of text.
    pub async fn rows(&self, sql: &str) -> Vec<Vec<String>> {
        sqlx::any::install_default_drivers();
        let mut connection = AnyConnection::connect(&self.url).await.unwrap();
        let rows = sqlx::query(AssertSqlSafe(sql.to_owned())).fetch_all(&mut connection).await.unwrap();
        let text = |row: &AnyRow| (0..row.len()).map(|i| text(row, i)).collect();
        rows.iter().map(text).collect()
    }
}

impl Drop for Db {
    fn drop(&mut self) {
        let Home::Server { url, name } = &self.home else { return };
        // Whoever still listens there was killed by the test.
        let force = if self.kind == Kind::Postgres { " WITH (FORCE)" } else { "" };
        aside(async || run_on(url, format!("DROP DATABASE {name}{force}")).await);
    }
}

/// In memory where that can be: what is proven here is the protocol, not the disk.
pub fn folder() -> TempDir {
    let memory = std::path::Path::new("/dev/shm");
    if memory.is_dir() { TempDir::new_in(memory) } else { TempDir::new() }.unwrap()
}

/// A URL with another database.
fn with_database(url: &str, name: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap();
    let (path, query) = rest.split_once('?').map_or((rest, None), |(path, query)| (path, Some(query)));
    let host = path.rsplit_once('/').map_or(path, |(host, _)| host);
    let query = query.map_or(String::new(), |query| format!("?{query}"));
    format!("{scheme}://{host}/{name}{query}")
}

/// Runs one statement on a connection of its own, and again where it meets a lock.
pub async fn run_on(url: &str, sql: String) {
    sqlx::any::install_default_drivers();
    let mut connection = AnyConnection::connect(url).await.unwrap_or_else(|e| panic!("{url}: {e}"));
    connection.execute(AssertSqlSafe(sql.clone())).await.unwrap_or_else(|e| panic!("{sql}: {e}"));
    connection.close().await.unwrap();
}

fn text(row: &AnyRow, column: usize) -> String {
    row.try_get(column)
        .or_else(|_| row.try_get::<i64, _>(column).map(|number| number.to_string()))
        .or_else(|_| row.try_get::<Vec<u8>, _>(column).map(|bytes| String::from_utf8(bytes).unwrap()))
        .unwrap()
}

/// Runs something to its end on a thread of its own: also where nothing can be awaited.
pub fn aside<T: Send>(work: impl (AsyncFnOnce() -> T) + Send) -> T {
    std::thread::scope(|scope| scope.spawn(|| wait(work())).join().unwrap())
}

/// Runs a test's future to its end.
pub fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// Runs futures beside each other.
pub async fn at_once<F: Future>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    let mut running: Vec<Pin<Box<F>>> = futures.into_iter().map(Box::pin).collect();
    let mut ended: Vec<Option<F::Output>> = running.iter().map(|_| None).collect();
    poll_fn(|context| {
        for (future, end) in running.iter_mut().zip(&mut ended).filter(|(_, end)| end.is_none()) {
            if let Poll::Ready(output) = future.as_mut().poll(context) {
                *end = Some(output);
            }
        }
        if ended.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    ended.into_iter().flatten().collect()
}

/// All rows, sorted, so that two readings compare.
pub async fn all_rows(store: &Store) -> Ledgers {
    sorted(store.read_scope(&Scope::default()).await.unwrap())
}

pub fn sorted(mut ledgers: Ledgers) -> Ledgers {
    ledgers.orders.sort_by_key(|r| (r.tenant_id.clone(), r.order_id.clone()));
    ledgers.payments.sort_by_key(|r| (r.tenant_id.clone(), r.payment_id.clone()));
    ledgers.inventory.sort_by_key(|r| (r.tenant_id.clone(), r.hold_id.clone()));
    ledgers.messages.sort_by_key(|r| (r.tenant_id.clone(), r.message_id.clone()));
    ledgers
}

/// Makes three tests of one: `name::sqlite`, `name::postgres` and `name::mariadb`, each with an empty
/// database.
#[macro_export]
macro_rules! on_every_database {
    ($($(#[$doc:meta])* async fn $name:ident($db:ident) $body:block)+) => {$(
        $(#[$doc])*
        mod $name {
            #[allow(unused_imports)]
            use super::*;

            async fn holds($db: &$crate::common::databases::Db) $body

            fn holds_on(kind: $crate::common::databases::Kind) {
                let db = $crate::common::databases::Db::new(kind);
                $crate::common::databases::wait(holds(&db));
            }

            #[test]
            fn sqlite() {
                holds_on($crate::common::databases::Kind::Sqlite);
            }

            #[test]
            fn postgres() {
                holds_on($crate::common::databases::Kind::Postgres);
            }

            #[test]
            fn mariadb() {
                holds_on($crate::common::databases::Kind::Mariadb);
            }
        }
    )+};
}
