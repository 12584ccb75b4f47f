//! Read transactions that see a database as it was at one moment, so that several read it at the same time.

use super::rows::{Reader, SessionRow};
use super::session::Session;
use super::sql::{Statement, Values};
use super::{Database, Dialect, Queries};
use crate::error::{Error, Result};

/// How often it is tried that two see the same moment: on SQLite another may commit between their begins.
const TRIES: usize = 10;

/// A session that is to read whole ledgers.
pub(super) async fn open(database: &Database) -> Result<Session> {
    let mut session = Session::open(database).await.map_err(|e| database.failed(&e))?;
    if database.dialect == Dialect::Sqlite {
        // Each page is read once: few are kept.
        run(database, &mut session, "PRAGMA cache_size = -2000").await?;
    }
    Ok(session)
}

/// Begins to read in a session and, where the database can show two the same moment, in another one beside it.
pub(super) async fn begin(
    queries: &Queries,
    database: &Database,
    mut session: Session,
) -> Result<Vec<Session>> {
    if let Some(other) = begin_beside(queries, database, &mut session).await {
        return Ok(vec![session, other]);
    }
    begin_alone(database, &mut session).await?;
    Ok(vec![session])
}

async fn begin_alone(database: &Database, session: &mut Session) -> Result<()> {
    let begin: &[_] = match database.dialect {
        // It begins with the first look.
        Dialect::Sqlite => &["BEGIN", "SELECT count(*) FROM sqlite_schema"],
        Dialect::Postgres => &["BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", "SELECT 1"],
        Dialect::Mysql => &[
            "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
            "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
        ],
    };
    for statement in begin {
        run(database, session, statement).await?;
    }
    Ok(())
}

/// Another session that has begun at the same moment as this one; with `None` neither has.
async fn begin_beside(queries: &Queries, database: &Database, session: &mut Session) -> Option<Session> {
    if database.dialect == Dialect::Mysql {
        return None;
    }
    let mut other = open(database).await.ok()?;
    for _ in 0..TRIES {
        if begin_both(queries, database, session, &mut other).await.unwrap_or(false) {
            return Some(other);
        }
        for session in [&mut *session, &mut other] {
            // It may not have come so far as to begin.
            _ = run(database, session, "ROLLBACK").await;
        }
    }
    other.close().await;
    None
}

/// Whether both have begun at the same moment.
async fn begin_both(
    queries: &Queries,
    database: &Database,
    session: &mut Session,
    other: &mut Session,
) -> Result<bool> {
    match database.dialect {
        Dialect::Sqlite => {
            // The moment of the one lies between two looks of the other, of which the second is its moment.
            let version = database.statement(queries, "exports/sqlite/version", &Values::new())?;
            let before = ask(database, other, &version, |row| row.int("data_version")).await?;
            begin_alone(database, session).await?;
            run(database, other, "BEGIN").await?;
            Ok(before == ask(database, other, &version, |row| row.int("data_version")).await?)
        }
        Dialect::Postgres => {
            begin_alone(database, session).await?;
            let moment = database.statement(queries, "exports/postgres/moment", &Values::new())?;
            let moment: String = ask(database, session, &moment, |row| row.needed("moment")).await?;
            // SET takes no bound value. The server calls a moment by hexadecimal digits.
            if !moment.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-') {
                return Ok(false);
            }
            let same = queries.get("exports/postgres/same_moment")?;
            let pieces = [("moment", moment.as_str())];
            let same = Statement::new(same, &pieces, &Values::new(), database.dialect)?;
            run(database, other, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
            other.select(&same, |_| true).await.map_err(|e| database.failed(&e))?;
            Ok(true)
        }
        // Only a lock on all tables would keep others from committing between the two.
        Dialect::Mysql => Ok(false),
    }
}

async fn run(database: &Database, session: &mut Session, statement: &'static str) -> Result<()> {
    session.run(statement).await.map_err(|e| database.failed(&e))
}

/// What stands in the only row that a statement gives.
async fn ask<T>(
    database: &Database,
    session: &mut Session,
    statement: &Statement,
    read: impl Fn(Reader<'_>) -> Result<T>,
) -> Result<T> {
    let mut told = None;
    let take = |row: SessionRow<'_>| {
        told = Some(read(Reader::new(row, "the moment")));
        true
    };
    session.select(statement, take).await.map_err(|e| database.failed(&e))?;
    told.unwrap_or_else(|| Err(Error::failure(format!("{}: no row tells its moment", database.label))))
}
