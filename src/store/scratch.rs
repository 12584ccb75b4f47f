//! The scratch of a drill: a schema, database or file of its own beside the real orders, made by the drill
//! and removed by it.
//!
//! Nothing of the user's can be touched from inside: the connections of a scratch see its tables alone, and
//! each proves that before it is used, by the marker that only a scratch has. Only what a marker proves
//! to be a drill's own is ever removed.

use std::path::{Path, PathBuf};
use std::time::Duration;

use sqlx::any::AnyRow;

use super::connect::{is_missing_table, sqlite_file};
use super::enforce::{code, pieces};
use super::rows::Reader;
use super::schema::statements;
use super::sql::{Queries, Statement, Values};
use super::{Connection, Database, Dialect};
use crate::core::time::Span;
use crate::error::{Error, Result};

const PREFIX: &str = "onefold_drill_";
/// The one file of a scratch on SQLite, in a folder of the scratch's name.
const FILE: &str = "drill.db";
/// How long a marker says that its drill is at work, unless it is renewed.
const LEASE: Span = Span::from_mins(3);

/// How long connections may take to come back before a scratch is removed without them.
const CLOSING: Duration = Duration::from_secs(3);

/// A scratch that this process has made.
pub struct Scratch {
    /// `onefold_drill_` and twelve hex digits.
    pub name: String,
    /// Its own tables, and nothing else.
    pub inside: Database,
    /// Where it lies: the real orders' database; on SQLite the scratch itself.
    outside: Database,
    folder: Option<PathBuf>,
    queries: Queries,
}

/// What an earlier drill, or one that is at work, has left beside the orders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    pub name: String,
    pub fate: Fate,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Its marker proved it to be a drill's own that is at work no more.
    Removed,
    /// Its drill is at work.
    InUse { made_by: String },
    /// It is left where it is.
    Kept { why: String },
}

/// What a marker says.
struct Marker {
    name: String,
    made_by: String,
    is_over: bool,
}

impl Scratch {
    /// Makes one beside the orders, with tables of the embedded schema, and the guard on them if it is to be there.
    /// `url` is that of `orders`; so many connections are opened at most.
    ///
    /// # Errors
    /// Failure, with what to grant, where the user may not make one.
    pub async fn make(
        orders: &Database,
        url: &str,
        name: &str,
        made_by: &str,
        connections: u32,
        guard: bool,
    ) -> Result<Self> {
        if !is_name(name) {
            return Err(Error::failure(format!("{name} is no name of a scratch")));
        }
        let queries = Queries::default();
        let (inner, folder) = inside_of(orders.dialect, url, name)?;
        let outside = match &folder {
            None => orders.clone(),
            Some(folder) => {
                std::fs::create_dir(folder).map_err(|e| {
                    Error::failure(format!("cannot make the folder {}: {e}", folder.display()))
                        .hint("a drill on SQLite needs to write beside the database's file")
                })?;
                Database::connect(&inner, true).await?
            }
        };
        let marker = marker(outside.dialect, name);
        outside.make_scratch(&queries, name, &marker, made_by).await?;
        let proof = outside.scratch_statement(
            &queries,
            "scratch/marked",
            &[("marker", "onefold_drill")],
            &Values::new(),
        )?;
        let inside = Database::connect_proven(&inner, connections, proof.sql, name.to_owned()).await;
        let made = match inside {
            Ok(inside) => Self { name: name.to_owned(), inside, outside, folder, queries },
            Err(error) => {
                remove(&outside, &queries, name, folder.as_deref()).await?;
                return Err(error);
            }
        };
        match made.fill(guard).await {
            Ok(()) => Ok(made),
            Err(error) => {
                made.remove().await?;
                Err(error)
            }
        }
    }

    async fn fill(&self, guard: bool) -> Result<()> {
        let (inside, collation) = (&self.inside, self.inside.binary_collation().await?);
        let of = |file: &str| -> Result<Vec<String>> {
            Ok(statements(self.queries.get(file)?, inside.dialect, collation))
        };
        let mut all =
            [of("schema/ledgers")?, of("schema/ledger_indexes")?, of("schema/idempotency")?].concat();
        if guard {
            let folder = inside.dialect.folder();
            if inside.dialect == Dialect::Mysql {
                all.extend(of("unique/mysql/live_key_column")?);
            }
            all.extend(of(&format!("unique/{folder}/live_key"))?);
        }
        let mut connection = inside.connection().await?;
        for sql in all {
            inside.run_script(&mut connection, &sql).await?;
        }
        Ok(())
    }

    /// Says that the drill is still at work; to be called more often than every three minutes.
    ///
    /// # Errors
    /// Failure, where the scratch is gone.
    pub async fn renew(&self) -> Result<()> {
        let values = Values::new().bind("name", self.name.as_str()).bind("lease_us", LEASE.micros());
        let statement = self.inside.scratch_statement(
            &self.queries,
            "scratch/renew",
            &[("marker", "onefold_drill")],
            &values,
        )?;
        match self.inside.transaction(async |tx| self.inside.execute(tx, &statement).await).await? {
            1 => Ok(()),
            _ => Err(Error::failure(format!("{} is a drill's scratch no more", self.name))),
        }
    }

    /// Removes it, once its marker has proven it to be this one.
    ///
    /// # Errors
    /// Failure, naming what is left.
    pub async fn remove(self) -> Result<()> {
        // A connection that does not come back in time is not waited for: what it still holds in the scratch is
        // waited for by the database, for no longer than any lock.
        let _ = tokio::time::timeout(CLOSING, self.inside.close()).await;
        remove(&self.outside, &self.queries, &self.name, self.folder.as_deref()).await.map_err(|e| {
            e.context(format!("{} could not be removed", self.name)).hint("the next drill removes it")
        })
    }
}

/// Looks for what killed drills have left beside the orders, and removes what is proven to be a drill's own.
pub async fn remove_leftovers(orders: &Database, url: &str) -> Result<Vec<Leftover>> {
    let queries = Queries::default();
    let mut all = Vec::new();
    for name in names(orders, url, &queries).await? {
        let fate = fate(orders, url, &queries, &name).await.unwrap_or_else(|e| Fate::Kept { why: e.message });
        all.push(Leftover { name, fate });
    }
    Ok(all)
}

async fn fate(orders: &Database, url: &str, queries: &Queries, name: &str) -> Result<Fate> {
    let (inner, folder) = inside_of(orders.dialect, url, name)?;
    let outside = match &folder {
        None => orders.clone(),
        Some(folder) if folder.join(FILE).is_file() => Database::connect(&inner, false).await?,
        Some(_) => return Ok(Fate::Kept { why: "it holds no file of a drill".to_owned() }),
    };
    let fate = match outside.marker(queries, name).await? {
        None => Fate::Kept { why: "no marker in it proves that it is a drill's own".to_owned() },
        Some(m) if m.name != name => Fate::Kept { why: format!("its marker is that of {}", m.name) },
        Some(m) if !m.is_over => Fate::InUse { made_by: m.made_by },
        Some(_) => {
            remove(&outside, queries, name, folder.as_deref()).await?;
            return Ok(Fate::Removed);
        }
    };
    if folder.is_some() {
        outside.close().await;
    }
    Ok(fate)
}

async fn remove(outside: &Database, queries: &Queries, name: &str, folder: Option<&Path>) -> Result<()> {
    let is_its_own = |marker: Option<Marker>| marker.is_some_and(|m| m.name == name);
    let unproven = || Error::failure(format!("no marker proves that {name} is a drill's own: it is left"));
    if let Some(folder) = folder {
        let proven = is_its_own(outside.marker(queries, name).await?);
        outside.close().await;
        return if proven { remove_folder(folder) } else { Err(unproven()) };
    }
    let file = format!("scratch/{}/drop", outside.dialect.folder());
    let drop = outside.scratch_statement(queries, &file, &[("scratch", name)], &Values::new())?;
    let wait_briefly = queries.get(&format!("enforce/{}/wait_briefly", outside.dialect.folder()))?;
    outside
        .transaction(async |tx| {
            // A transaction that was given up half-way may still hold a table of it.
            outside.run_script(tx, &code(wait_briefly)).await?;
            if !is_its_own(outside.marker_on(tx, queries, name).await?) {
                return Err(unproven());
            }
            if outside.dialect == Dialect::Mysql
                && let Some(guest) = outside.guest_on(tx, queries, name).await?
            {
                return Err(Error::failure(format!(
                    "it holds {guest}, which is not a drill's: nothing of it is removed"
                )));
            }
            outside.run_script(tx, &code(&drop.sql)).await
        })
        .await
}

/// Removes the files of a scratch, and then the folder; nothing, where it holds something else.
fn remove_folder(folder: &Path) -> Result<()> {
    let failed = |e: std::io::Error| Error::failure(format!("{}: {e}", folder.display()));
    let files = ["", "-wal", "-shm", "-journal"].map(|end| format!("{FILE}{end}"));
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        if !files.iter().any(|file| name == file.as_str()) {
            return Err(Error::failure(format!(
                "it holds {}, which is not a drill's: nothing of it is removed",
                name.to_string_lossy()
            )));
        }
    }
    for file in files {
        match std::fs::remove_file(folder.join(file)) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(failed(e)),
            _ => {}
        }
    }
    std::fs::remove_dir(folder).map_err(failed)
}

async fn names(orders: &Database, url: &str, queries: &Queries) -> Result<Vec<String>> {
    let mut names = match orders.dialect {
        Dialect::Sqlite => {
            let entries = std::fs::read_dir(beside(url)).into_iter().flatten().flatten();
            let folders = entries.filter(|e| e.file_type().is_ok_and(|t| t.is_dir()));
            folders.filter_map(|e| e.file_name().into_string().ok()).collect()
        }
        Dialect::Postgres | Dialect::Mysql => {
            let file = format!("scratch/{}/named", orders.dialect.folder());
            let statement = orders.statement(queries, &file, &Values::new())?;
            let mut connection = orders.connection().await?;
            let rows = orders.fetch(&mut connection, &statement).await?;
            rows.iter().map(|row| Reader::new(row, &file).needed("name")).collect::<Result<Vec<_>>>()?
        }
    };
    names.retain(|name| is_name(name));
    names.sort_unstable();
    Ok(names)
}

/// Whether a name is one that a drill makes; such a one needs no quotes.
fn is_name(name: &str) -> bool {
    let is_hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    name.strip_prefix(PREFIX).is_some_and(|rest| rest.len() == 12 && rest.bytes().all(is_hex))
}

/// A name for a scratch, of twelve random hex digits.
pub fn name(random: &str) -> String {
    format!("{PREFIX}{random}")
}

/// The folder of an SQLite database.
fn beside(url: &str) -> PathBuf {
    let file = PathBuf::from(sqlite_file(url));
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// The URL whose connections see a scratch alone; on SQLite with its folder.
fn inside_of(dialect: Dialect, url: &str, name: &str) -> Result<(String, Option<PathBuf>)> {
    if dialect == Dialect::Sqlite {
        let folder = beside(url).join(name);
        return Ok((format!("sqlite:{}", folder.join(FILE).display()), Some(folder)));
    }
    let mut inner = url::Url::parse(url).map_err(|_| Error::usage("the URL of the orders cannot be read"))?;
    match dialect {
        // Said as the connection begins, so that it is what the session goes back to whatever it is told later.
        Dialect::Postgres => {
            inner.query_pairs_mut().append_pair("options", &format!("-c search_path={name}"));
        }
        Dialect::Mysql | Dialect::Sqlite => inner.set_path(name),
    }
    Ok((inner.into(), None))
}

/// The marker's table as it is named from outside.
fn marker(dialect: Dialect, name: &str) -> String {
    let place = if dialect == Dialect::Sqlite { "main" } else { name };
    format!("{place}.onefold_drill")
}

impl Database {
    fn scratch_statement(
        &self,
        queries: &Queries,
        file: &str,
        names: &[(&str, &str)],
        values: &Values,
    ) -> Result<Statement> {
        let pieces = [names, &pieces(self.dialect)].concat();
        Statement::new(queries.get(file)?, &pieces, values, self.dialect)
            .map_err(|e| e.context(format!("{file}.sql")))
    }

    /// Makes the place and its marker: on PostgreSQL both or neither.
    async fn make_scratch(&self, queries: &Queries, name: &str, marker: &str, made_by: &str) -> Result<()> {
        let names = [("marker", marker), ("scratch", name)];
        let collation = self.binary_collation().await?;
        let mut made = Vec::new();
        if self.dialect != Dialect::Sqlite {
            let file = format!("scratch/{}/make", self.dialect.folder());
            made.push(self.scratch_statement(queries, &file, &names, &Values::new())?.sql);
        }
        made.push(self.scratch_statement(queries, "scratch/marker", &names, &Values::new())?.sql);
        let values =
            Values::new().bind("name", name).bind("made_by", made_by).bind("lease_us", LEASE.micros());
        let mark = self.scratch_statement(queries, "scratch/mark", &names, &values)?;
        let done = self
            .transaction(async |tx| {
                for sql in &made {
                    for sql in statements(sql, self.dialect, collation) {
                        self.run_script(tx, &sql).await?;
                    }
                }
                self.execute(tx, &mark).await.map(drop)
            })
            .await;
        match done {
            Err(e) if e.hint.is_some() && self.dialect != Dialect::Sqlite => {
                let grant = self.grant(queries).await?;
                Err(Error::failure(format!("a drill needs a scratch beside the orders: {}", e.message))
                    .hint(grant))
            }
            end => end,
        }
    }

    /// What lets this user make a scratch.
    async fn grant(&self, queries: &Queries) -> Result<String> {
        let file = format!("scratch/{}/user", self.dialect.folder());
        let statement = self.statement(queries, &file, &Values::new())?;
        let mut connection = self.connection().await?;
        let rows = self.fetch(&mut connection, &statement).await?;
        let said = |column: &str| rows.first().map(|row| Reader::new(row, &file).needed(column)).transpose();
        let (user, place) = (said("name")?.unwrap_or_default(), said("place")?.unwrap_or_default());
        Ok(match self.dialect {
            Dialect::Mysql => format!("GRANT ALL PRIVILEGES ON `onefold\\_drill\\_%`.* TO {user}"),
            Dialect::Postgres | Dialect::Sqlite => format!("GRANT CREATE ON DATABASE {place} TO {user}"),
        })
    }

    async fn marker(&self, queries: &Queries, name: &str) -> Result<Option<Marker>> {
        let mut connection = self.connection().await?;
        self.marker_on(&mut connection, queries, name).await
    }

    /// What the marker of a scratch says; `None` where there is none, or more than one.
    /// A table that somebody has put into a scratch. On PostgreSQL dropping it says so by itself.
    async fn guest_on(&self, on: &mut Connection, queries: &Queries, name: &str) -> Result<Option<String>> {
        let values = Values::new().bind("scratch", name);
        let statement = self.statement(queries, "scratch/mysql/guests", &values)?;
        let rows = self.fetch(on, &statement).await?;
        rows.first().map(|row| super::rows::Reader::new(row, "the scratch").needed("name")).transpose()
    }

    async fn marker_on(&self, on: &mut Connection, queries: &Queries, name: &str) -> Result<Option<Marker>> {
        let marker = marker(self.dialect, name);
        let statement =
            self.scratch_statement(queries, "scratch/marked", &[("marker", &marker)], &Values::new())?;
        match statement.query().fetch_all(on).await {
            Ok(rows) => match rows.as_slice() {
                [row] => read(row).map(Some),
                _ => Ok(None),
            },
            Err(e) if is_missing_table(&e) => Ok(None),
            Err(e) => Err(self.failed(&e)),
        }
    }
}

fn read(row: &AnyRow) -> Result<Marker> {
    let r = Reader::new(row, "onefold_drill");
    Ok(Marker {
        name: r.needed("name")?,
        made_by: r.needed("made_by")?,
        is_over: r.time("lease_until_us")? <= r.time("now_us")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_drill_names_is_a_name_of_a_scratch() {
        assert!(is_name("onefold_drill_0123456789ab"));
        for other in [
            "public",
            "onefold_drill_",
            "onefold_drill_0123456789AB",
            "onefold_drill_0123456789ab; x",
            "shop",
        ] {
            assert!(!is_name(other), "{other}");
        }
    }

    #[test]
    fn a_connection_inside_sees_the_scratch_whatever_the_url_said() {
        let inner = |dialect, url| inside_of(dialect, url, "onefold_drill_0123456789ab").unwrap().0;
        assert_eq!(
            inner(
                Dialect::Postgres,
                "postgres://u:p%40@h/shop?options=-c%20search_path%3Dshop&sslmode=require"
            ),
            "postgres://u:p%40@h/shop?options=-c%20search_path%3Dshop&sslmode=require\
             &options=-c+search_path%3Donefold_drill_0123456789ab"
        );
        assert_eq!(
            inner(Dialect::Mysql, "mysql://u@h:3306/shop?ssl-mode=disabled"),
            "mysql://u@h:3306/onefold_drill_0123456789ab?ssl-mode=disabled"
        );
        assert_eq!(
            inner(Dialect::Sqlite, "sqlite:a/shop.db?mode=rw"),
            "sqlite:a/onefold_drill_0123456789ab/drill.db"
        );
    }
}
