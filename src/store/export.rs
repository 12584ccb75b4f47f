//! Whole ledgers into files for a plan of everything, by the drivers' own streams: row by row through the common driver
//! takes many times as long. Nothing is judged here; what the files cannot hold as the store would read it, or a
//! database does not give, ends the export, and the store's own reading says what is wrong.

use std::fs::File;
use std::io::{self, Write as _};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};

use futures_util::TryStreamExt as _;
use rusqlite::types::ValueRef;
use sqlx::Row as _;
use tokio::sync::oneshot;

use super::session::{Column, Kind, Session, is_int};
use super::sql::{Statement, Values};
use super::{Database, Dialect, Store};
use crate::core::ledger::Shard;
use crate::core::status::Ledger;
use crate::error::{Error, Result};

/// How many bytes are written at once.
const BLOCK: usize = 1 << 20;

/// Ledgers on their way into anonymous files of the temporary folder: CSV without a header, of the contract's columns in
/// its order and the row's shard, of which all rows are as they were at one moment of their database.
pub struct Export {
    files: Receiver<(Ledger, File)>,
    /// While it is there, somebody wants them.
    wanted: Arc<()>,
    thread: JoinHandle<io::Result<()>>,
}

impl Store {
    /// Begins to export the ledgers, in this order; when this is through, that moment is. `None` where a database has
    /// something in a column that the store does not read.
    pub async fn export(&self, order: [Ledger; 4]) -> Option<Export> {
        let (sender, files) = mpsc::sync_channel(order.len());
        let wanted = Arc::new(());
        let (begun, has_begun) = oneshot::channel();
        let (store, is_wanted) = (self.clone(), Arc::downgrade(&wanted));
        // A thread of its own: whoever reads the files keeps another one busy, and SQLite this one.
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async {
                let Some(mut sessions) = Sessions::open(&store).await else { return Ok(()) };
                // Who began it may have gone meanwhile.
                _ = begun.send(());
                let exported = sessions.export(&store, order, &sender, &is_wanted).await;
                sessions.close().await;
                match exported {
                    Err(Stop::NoRoom(error)) => Err(error),
                    Ok(()) | Err(Stop::GivenUp) => Ok(()),
                }
            })
        });
        has_begun.await.ok().map(|()| Export { files, wanted, thread })
    }
}

impl Export {
    /// The next ledger; `None` where it has been given up.
    pub fn next(&self) -> Option<(Ledger, File)> {
        self.files.recv().ok()
    }

    /// Ends it, whole or not.
    ///
    /// # Errors
    /// Failure, where the temporary folder has no room.
    pub fn end(self) -> Result<()> {
        drop(self.wanted);
        let ended = self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
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

/// A read transaction in each database that has a ledger, beside the store's databases.
struct Sessions(Vec<Option<Session>>);

impl Sessions {
    async fn open(store: &Store) -> Option<Self> {
        let mut sessions = Vec::new();
        for at in 0..store.databases.len() {
            let has_ledgers = store.ledgers.iter().flatten().any(|of| *of == at);
            sessions.push(match has_ledgers {
                true => Some(begin(store, &store.databases[at]).await.ok()?),
                false => None,
            });
        }
        Some(Self(sessions))
    }

    async fn export(
        &mut self,
        store: &Store,
        order: [Ledger; 4],
        sender: &SyncSender<(Ledger, File)>,
        wanted: &Weak<()>,
    ) -> std::result::Result<(), Stop> {
        for ledger in order {
            let file = tempfile::tempfile().map_err(Stop::NoRoom)?;
            let mut lines = Lines { file, waiting: Vec::with_capacity(2 * BLOCK), wanted };
            for (shard, at) in (0..).zip(&store.ledgers[ledger as usize]) {
                let select =
                    select(store, &store.databases[*at], ledger, shard).map_err(|_| Stop::GivenUp)?;
                let session = self.0[*at].as_mut().ok_or(Stop::GivenUp)?;
                export(session, &select, &mut lines).await?;
            }
            let file = lines.end()?;
            sender.send((ledger, file)).map_err(|_| Stop::GivenUp)?;
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

/// Looks at what the ledgers' columns are, and begins to read as of now.
async fn begin(store: &Store, database: &Database) -> std::result::Result<Session, Stop> {
    let mut session = Session::open(database).await?;
    for ledger in Ledger::ALL {
        if store.shards(ledger).any(|(_, of)| std::ptr::eq(of, database)) {
            let select = select(store, database, ledger, 0).map_err(|_| Stop::GivenUp)?;
            let columns = session.columns(&select).await?;
            if !columns.iter().all(|column| is_read(column, database.dialect)) {
                return Err(Stop::GivenUp);
            }
        }
    }
    let begin: &[_] = match database.dialect {
        // Each page is read once: none is kept.
        Dialect::Sqlite => &["PRAGMA cache_size = -2000; BEGIN; SELECT count(*) FROM sqlite_schema"],
        Dialect::Postgres => &["BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT 1"],
        Dialect::Mysql => &[
            "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
            "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
        ],
    };
    for statement in begin {
        session.run(statement).await?;
    }
    Ok(session)
}

async fn export(
    session: &mut Session,
    select: &Statement,
    lines: &mut Lines<'_>,
) -> std::result::Result<(), Stop> {
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
        Session::Sqlite(connection) => {
            let mut statement = connection.prepare(&select.sql)?;
            let is_int: Vec<bool> = statement.column_names().into_iter().map(is_int).collect();
            let mut rows = statement.query([])?;
            let mut digits = itoa::Buffer::new();
            while let Some(row) = rows.next()? {
                for (at, is_int) in is_int.iter().enumerate() {
                    match (row.get_ref(at)?, is_int) {
                        (ValueRef::Null, _) => lines.cell(at, None),
                        (ValueRef::Integer(int), true) => lines.cell(at, Some(digits.format(int).as_bytes())),
                        (ValueRef::Text(text) | ValueRef::Blob(text), false) => lines.cell(at, Some(text)),
                        // The types of SQLite are each value's own.
                        _ => return Err(Stop::GivenUp),
                    }
                }
                lines.add(b"\n")?;
            }
        }
    }
    Ok(())
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
struct Lines<'w> {
    file: File,
    waiting: Vec<u8>,
    wanted: &'w Weak<()>,
}

impl Lines<'_> {
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
