//! Whole ledgers into files for a plan of everything, by the drivers' own streams: row by row through the common driver
//! takes many times as long. Nothing is judged here; what the files cannot hold as the store would read it, or a
//! database does not give, ends the export, and the store's own reading says what is wrong.

use std::fs::File;
use std::io::{self, Write as _};
use std::panic::resume_unwind;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::{self, JoinHandle};

use futures_util::TryStreamExt as _;
use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::ValueRef;
use sqlx::Row as _;
use tokio::sync::oneshot;

use super::moment;
use super::session::{Column, Kind, Session, is_int};
use super::sql::{Statement, Values};
use super::{Database, Dialect, Store};
use crate::core::ledger::Shard;
use crate::core::status::Ledger;
use crate::error::{Error, Result};

/// How many bytes are written at once.
const BLOCK: usize = 1 << 20;

/// How many ledgers are exported at the same time, where their databases show one moment to several sessions.
const LANES: usize = 2;

/// Ledgers on their way into anonymous files of the temporary folder: CSV without a header, of the contract's columns in
/// its order and the row's shard, of which all rows are as they were at one moment of their database.
pub struct Export {
    /// Nothing, where it is given up.
    files: Receiver<Option<(Ledger, File)>>,
    /// While it is there, somebody wants them.
    wanted: Arc<()>,
    thread: JoinHandle<io::Result<()>>,
}

impl Store {
    /// Begins to export the ledgers, the first of these first; when this is through, that moment is. `None` where a
    /// database has something in a column that the store does not read.
    pub async fn export(&self, order: [Ledger; 4]) -> Option<Export> {
        let (sender, files) = mpsc::channel();
        let wanted = Arc::new(());
        let (begun, has_begun) = oneshot::channel();
        let is_wanted = Arc::downgrade(&wanted);
        let ledgers = Mutex::new(order.into_iter());
        let work = Arc::new(Work { store: self.clone(), ledgers, sender, wanted: is_wanted });
        // Threads of its own: whoever reads the files keeps others busy, and SQLite these.
        let thread = thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_multi_thread().worker_threads(LANES).enable_all().build()?;
            runtime.block_on(async {
                let Some(lanes) = Lane::open(&work.store).await else { return Ok(()) };
                // Who began it may have gone meanwhile.
                _ = begun.send(());
                let start = |lane: Lane| tokio::spawn(lane.work(work.clone()));
                let lanes: Vec<_> = lanes.into_iter().map(start).collect();
                let mut done = Ok(());
                for lane in lanes {
                    let lane = lane.await.unwrap_or_else(|panic| resume_unwind(panic.into_panic()));
                    done = done.and(lane);
                }
                done
            })
        });
        has_begun.await.ok().map(|()| Export { files, wanted, thread })
    }
}

impl Export {
    /// The next ledger that is whole; `None` where they have been given up.
    pub fn next(&self) -> Option<(Ledger, File)> {
        self.files.recv().ok().flatten()
    }

    /// Ends it, whole or not.
    ///
    /// # Errors
    /// Failure, where the temporary folder has no room.
    pub fn end(self) -> Result<()> {
        drop(self.wanted);
        let ended = self.thread.join().unwrap_or_else(|panic| resume_unwind(panic));
        ended.map_err(|error| {
            let folder = std::env::temp_dir();
            Error::failure(format!("cannot write a temporary file in {}: {error}", folder.display())).hint(
                "TMPDIR=FOLDER names another: it needs about as much room as the four ledgers; or narrow the scope",
            )
        })
    }
}

/// Why an export ends early.
enum Stop {
    /// A database or its rows are not as they must be, or nobody wants it any more.
    GivenUp,
    NoRoom(io::Error),
}

impl From<sqlx::Error> for Stop {
    fn from(_: sqlx::Error) -> Self {
        Self::GivenUp
    }
}

impl From<rusqlite::Error> for Stop {
    fn from(_: rusqlite::Error) -> Self {
        Self::GivenUp
    }
}

/// What lanes do together.
struct Work {
    store: Store,
    /// Those that no lane has taken yet.
    ledgers: Mutex<std::array::IntoIter<Ledger, 4>>,
    sender: Sender<Option<(Ledger, File)>>,
    wanted: Weak<()>,
}

impl Work {
    fn next(&self) -> Option<Ledger> {
        self.ledgers.lock().unwrap_or_else(PoisonError::into_inner).next()
    }
}

/// A read transaction in each database that has a ledger, beside the store's databases. All lanes of a database see it
/// at the same moment.
struct Lane(Vec<Option<Session>>);

impl Lane {
    async fn open(store: &Store) -> Option<Vec<Self>> {
        let mut all = Vec::new();
        for at in 0..store.databases.len() {
            let has_ledgers = store.ledgers.iter().flatten().any(|of| *of == at);
            all.push(match has_ledgers {
                true => Some(begin(store, &store.databases[at]).await.ok()?),
                false => None,
            });
        }
        let lanes = all.iter().flatten().map(Vec::len).min()?;
        let lane = |_| Self(all.iter_mut().map(|sessions| sessions.as_mut()?.pop()).collect());
        let lanes = (0..lanes).map(lane).collect();
        Self(all.into_iter().flatten().flatten().map(Some).collect()).close().await;
        Some(lanes)
    }

    /// Exports one ledger after the other until none is left.
    async fn work(mut self, work: Arc<Work>) -> io::Result<()> {
        let done = self.export_all(&work).await;
        self.close().await;
        let Err(stop) = done else { return Ok(()) };
        // Whoever waits for the ledgers no longer wants any, and so stops the other lane, too.
        _ = work.sender.send(None);
        match stop {
            Stop::NoRoom(error) => Err(error),
            Stop::GivenUp => Ok(()),
        }
    }

    async fn export_all(&mut self, work: &Work) -> std::result::Result<(), Stop> {
        while let Some(ledger) = work.next() {
            let file = tempfile::tempfile().map_err(Stop::NoRoom)?;
            let wanted = work.wanted.clone();
            let mut lines = Lines { file, waiting: Vec::with_capacity(2 * BLOCK), wanted };
            for (shard, at) in (0..).zip(&work.store.ledgers[ledger as usize]) {
                let database = &work.store.databases[*at];
                let select = select(&work.store, database, ledger, shard).map_err(|_| Stop::GivenUp)?;
                let session = self.0[*at].as_mut().ok_or(Stop::GivenUp)?;
                lines = export(session, &select, lines).await?;
            }
            work.sender.send(Some((ledger, lines.end()?))).map_err(|_| Stop::GivenUp)?;
        }
        Ok(())
    }

    async fn close(self) {
        for session in self.0.into_iter().flatten() {
            session.close().await;
        }
    }
}

/// The SELECT of a shard's rows. No value is bound: COPY and the protocol without prepared statements know none.
fn select(store: &Store, database: &Database, ledger: Ledger, shard: Shard) -> Result<Statement> {
    let (source, shard) = (store.ledger_source(ledger)?, shard.to_string());
    let pieces = [("ledger", source.as_str()), ("shard", shard.as_str())];
    Statement::new(
        store.queries.get(&format!("exports/{ledger}"))?,
        &pieces,
        &Values::new(),
        database.dialect,
    )
}

/// Looks at what the ledgers' columns are, and begins to read as of now, in one session or several.
async fn begin(store: &Store, database: &Database) -> std::result::Result<Vec<Session>, Stop> {
    let given_up = |_| Stop::GivenUp;
    let mut session = moment::open(database).await.map_err(given_up)?;
    for ledger in Ledger::ALL {
        if store.shards(ledger).any(|(_, of)| std::ptr::eq(of, database)) {
            let select = select(store, database, ledger, 0).map_err(given_up)?;
            let columns = session.columns(&select).await?;
            if !columns.iter().all(|column| is_read(column, database.dialect)) {
                return Err(Stop::GivenUp);
            }
        }
    }
    moment::begin(&store.queries, database, session).await.map_err(given_up)
}

/// Adds what the SELECT gives.
async fn export(
    session: &mut Session,
    select: &Statement,
    mut lines: Lines,
) -> std::result::Result<Lines, Stop> {
    match session {
        Session::Postgres(connection) => {
            let copy = format!("COPY (\n{}\n) TO STDOUT (FORMAT csv)", select.sql);
            let mut rows = connection.copy_out_raw(&copy).await?;
            while let Some(row) = rows.try_next().await? {
                lines.add(&row)?;
            }
        }
        Session::Mysql(connection) => {
            let mut rows = select.script().fetch(connection);
            while let Some(row) = rows.try_next().await? {
                for at in 0..row.len() {
                    // Without prepared statements every value comes as text.
                    lines.cell(at, row.try_get_unchecked(at)?);
                }
                lines.add(b"\n")?;
            }
        }
        Session::Sqlite(connection) => lines = export_from_sqlite(connection, select, lines)?,
    }
    Ok(lines)
}

/// The name of the function of ours that SQLite calls for each row: to ask it for cell after cell takes twice as long.
const ADD_ROW: &str = "onefold_add_row";

fn export_from_sqlite(
    connection: &rusqlite::Connection,
    select: &Statement,
    lines: Lines,
) -> std::result::Result<Lines, Stop> {
    let statement = connection.prepare(&select.sql)?;
    let columns = statement.column_names();
    let is_int: Vec<bool> = columns.iter().copied().map(is_int).collect();
    let width = i32::try_from(is_int.len()).map_err(|_| Stop::GivenUp)?;
    let done = Arc::new(Mutex::new((lines, None)));
    let doing = Arc::clone(&done);
    let add = move |row: &Context<'_>| {
        let (lines, stop) = &mut *doing.lock().unwrap_or_else(PoisonError::into_inner);
        lines.add_from_sqlite(row, &is_int).map_err(|why| {
            *stop = Some(why);
            rusqlite::Error::InvalidQuery
        })
    };
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DIRECTONLY;
    connection.create_scalar_function(ADD_ROW, width, flags, add)?;
    let sql = format!("SELECT count({ADD_ROW}({})) FROM (\n{}\n)", columns.join(", "), select.sql);
    let added = connection.query_row(&sql, [], |_| Ok(()));
    connection.remove_function(ADD_ROW, width)?;
    let done = Arc::into_inner(done).ok_or(Stop::GivenUp)?;
    let (lines, stop) = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    stop.map_or_else(|| Ok(added?), Err)?;
    Ok(lines)
}

/// Whether the store reads such a column.
fn is_read(column: &Column, dialect: Dialect) -> bool {
    match column.kind {
        Kind::Int => is_int(&column.name),
        // COPY writes bytes as hexadecimal digits.
        Kind::Text => !is_int(&column.name) && (dialect != Dialect::Postgres || column.type_name != "BYTEA"),
        Kind::Unknown => dialect == Dialect::Sqlite,
        Kind::Other => false,
    }
}

/// Rows on their way into a file.
struct Lines {
    file: File,
    waiting: Vec<u8>,
    wanted: Weak<()>,
}

impl Lines {
    /// A row, or the rest of one.
    fn add(&mut self, text: &[u8]) -> std::result::Result<(), Stop> {
        self.waiting.extend_from_slice(text);
        if self.waiting.len() < BLOCK {
            return Ok(());
        }
        if self.wanted.strong_count() == 0 {
            return Err(Stop::GivenUp);
        }
        self.write()
    }

    /// The cell at a place of its row, as PostgreSQL writes it: null is nothing at all, an empty text two quotation marks.
    fn cell(&mut self, at: usize, text: Option<&[u8]>) {
        if at > 0 {
            self.waiting.push(b',');
        }
        let Some(text) = text else { return };
        if !text.is_empty() && !text.iter().any(|b| matches!(b, b'"' | b',' | b'\n' | b'\r')) {
            return self.waiting.extend_from_slice(text);
        }
        self.waiting.push(b'"');
        for byte in text {
            self.waiting.extend_from_slice(if *byte == b'"' { b"\"\"" } else { std::slice::from_ref(byte) });
        }
        self.waiting.push(b'"');
    }

    fn add_from_sqlite(&mut self, row: &Context<'_>, is_int: &[bool]) -> std::result::Result<bool, Stop> {
        let mut digits = itoa::Buffer::new();
        for (at, is_int) in is_int.iter().enumerate() {
            match (row.get_raw(at), is_int) {
                (ValueRef::Null, _) => self.cell(at, None),
                (ValueRef::Integer(int), true) => self.cell(at, Some(digits.format(int).as_bytes())),
                (ValueRef::Text(text) | ValueRef::Blob(text), false) => self.cell(at, Some(text)),
                // The types of SQLite are each value's own.
                _ => return Err(Stop::GivenUp),
            }
        }
        self.add(b"\n").map(|()| true)
    }

    fn write(&mut self) -> std::result::Result<(), Stop> {
        self.file.write_all(&self.waiting).map_err(Stop::NoRoom)?;
        self.waiting.clear();
        Ok(())
    }

    fn end(mut self) -> std::result::Result<File, Stop> {
        self.write()?;
        Ok(self.file)
    }
}
