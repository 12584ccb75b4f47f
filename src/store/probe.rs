//! Looks at the databases of a configuration without changing them: what SQL gives, what it costs,
//! what the user may do. `onefold check` decides what that means.

mod plans;

pub use super::session::{Column, Kind};
pub use plans::Access;

use plans::{mysql_accesses, postgres_accesses, sqlite_access, walk};
use sqlx::any::AnyRow;
use sqlx::{Column as _, Row as _};

use super::moves::{Move, Moved};
use super::rows::{LedgerRow, Reader, SessionRow};
use super::session::Session;
use super::sql::{Statement, Value, Values};
use super::{Database, Dialect, Places, Queries, Statuses, Store, without_password};
use crate::core::ids::*;
use crate::core::ledger::{Hold, Message, Order, Payment, Shard};
use crate::core::money::Currency;
use crate::core::scope::Scope;
use crate::core::status::Ledger;
use crate::core::time::Timestamp;
use crate::error::{Error, Result};

/// Stands in the place of ids in reads that are only explained.
pub const MARK: &str = "onefold-check";

/// Every read of a ledger, and of which ledgers.
const READS: [(&str, &[Ledger]); 13] = {
    use Ledger::*;
    const ATTACHED: &[Ledger] = &[Payments, Inventory, Messages];
    [
        ("reads/everything", &Ledger::ALL),
        ("reads/buyers_in_scope", &[Orders]),
        ("reads/buyers_of_orders", &[Orders]),
        ("reads/in_scope", ATTACHED),
        ("reads/whose_in_scope", ATTACHED),
        ("reads/one_in_scope", &Ledger::ALL),
        ("reads/count", &[Orders]),
        ("reads/by_ids", &Ledger::ALL),
        ("reads/of_buyers", &Ledger::ALL),
        ("reads/of_orders", &[Orders]),
        ("reads/ids_of_orders", ATTACHED),
        ("reads/by_keys", &[Orders]),
        ("reads/by_charges", &[Payments]),
    ]
};

/// The databases of a configuration as far as they answer.
pub struct Site {
    /// Never asked for its journal where [`Site::journal_answers`] is false.
    pub store: Store,
    pub journal_answers: bool,
    /// Why the others do not: by the URL as it may be printed.
    pub silent: Vec<(String, Error)>,
}

/// One database of one ledger.
#[derive(Clone, Copy)]
pub struct Probe<'s> {
    pub site: &'s Site,
    pub ledger: Ledger,
    pub shard: Shard,
    pub database: &'s Database,
}

/// Why a database refuses a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The user may not.
    Denied(String),
    Other(String),
}

/// A row as it was decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decoded {
    pub tenant_id: TenantId,
    pub id: RowId,
    pub status: String,
    pub version: Version,
    /// Of a payment: what is left of it, what went back before, and in which currency.
    pub money: Option<(i64, i64, Currency)>,
    /// Its values by the contract's names.
    pub values: Vec<(&'static str, Value)>,
}

/// Runs a piece of code with the row type of a ledger.
macro_rules! with_row_type {
    ($ledger:expr, $row:ident => $code:expr) => {
        match $ledger {
            Ledger::Orders => {
                type $row = Order;
                $code
            }
            Ledger::Payments => {
                type $row = Payment;
                $code
            }
            Ledger::Inventory => {
                type $row = Hold;
                $code
            }
            Ledger::Messages => {
                type $row = Message;
                $code
            }
        }
    };
}

impl Site {
    /// Connects to every database, each once, and goes on without those that do not answer.
    pub async fn open(places: &Places, queries: Queries, statuses: Statuses) -> Self {
        let mut urls: Vec<&String> = vec![&places.journal];
        urls.extend(places.ledgers.iter().flatten());
        let (mut known, mut databases, mut silent) = (Vec::new(), Vec::new(), Vec::new());
        for url in urls {
            if known.iter().any(|(other, _)| *other == url) {
                continue;
            }
            let opened = match Database::connect(url, false).await {
                Ok(database) => Some(database),
                Err(e) => {
                    silent.push((without_password(url), e));
                    None
                }
            };
            known.push((url, opened.is_some().then_some(databases.len())));
            databases.extend(opened);
        }
        let index = |url: &String| known.iter().find(|(other, _)| *other == url).and_then(|(_, at)| *at);
        let ledgers = places.ledgers.each_ref().map(|shards| shards.iter().filter_map(index).collect());
        let at = index(&places.journal);
        let journal = at.unwrap_or_default();
        let store = Store { queries, statuses, databases, journal, ledgers, keys: journal };
        Self { store, journal_answers: at.is_some(), silent }
    }

    /// The databases of a ledger.
    pub fn probes(&self, ledger: Ledger) -> impl Iterator<Item = Probe<'_>> {
        self.store.ledgers[ledger as usize].iter().enumerate().map(move |(shard, at)| Probe {
            site: self,
            ledger,
            shard: Shard::try_from(shard).unwrap_or(Shard::MAX),
            database: &self.store.databases[*at],
        })
    }

    /// What may be bound in the SQL of a ledger's moves.
    pub fn move_parameters(&self, ledger: Ledger) -> Vec<&'static str> {
        self.any_move_values(ledger, ledger.statuses()[0], ledger.statuses()[0]).names().collect()
    }

    /// Whether onefold's own tables can be written: those of the journal, the marks beside each
    /// ledger that lives elsewhere, and the passes by which our moves get through a freeze.
    ///
    /// # Errors
    /// What the database says.
    pub async fn can_write_own_tables(&self) -> Result<()> {
        let journal = self.store.journal();
        self.rolled_back(journal, "freezes/start_counter", &Values::new()).await?;
        let mark = Values::new()
            .bind("step_key", MARK)
            .bind("version_after", MARK)
            .bind("moved_at_us", 0)
            .bind("seen", MARK);
        for database in self.store.databases().iter().filter(|d| !std::ptr::eq(*d, journal)) {
            self.rolled_back(database, "marks/add", &mark).await?;
            self.rolled_back(database, "marks/change", &mark).await?;
        }
        for database in self.store.ledgers.iter().flatten().map(|at| &self.store.databases[*at]) {
            let mut tx = database.begin().await?;
            let pass = self.store.open_pass(&mut tx, database).await?;
            self.store.close_pass(&mut tx, database, pass).await?;
            tx.rollback().await.map_err(|e| database.failed(&e))?;
        }
        Ok(())
    }

    async fn rolled_back(&self, database: &Database, file: &str, values: &Values) -> Result<()> {
        let statement = database.statement(&self.store.queries, file, values)?;
        let mut tx = database.begin().await?;
        database.execute(&mut tx, &statement).await?;
        tx.rollback().await.map_err(|e| database.failed(&e))
    }

    /// How many rows of each ledger a scope reads.
    ///
    /// # Errors
    /// As [`Store::read_scope`].
    pub async fn rows_in(&self, scope: &Scope) -> Result<[usize; 4]> {
        let rows = self.store.read_scope(scope).await?;
        Ok([rows.orders.len(), rows.payments.len(), rows.inventory.len(), rows.messages.len()])
    }

    pub async fn close(self) {
        self.store.close().await;
    }

    fn any_move_values(&self, ledger: Ledger, from: &str, to: &str) -> Values {
        self.store.move_values(&Move {
            ledger,
            tenant_id: &MARK.into(),
            id: &MARK.into(),
            from,
            to,
            version: &MARK.into(),
            refund_minor: 0,
            amount: None,
            captured_at: None,
            step_key: MARK,
            actor: MARK,
            now: Timestamp::from_micros(0),
        })
    }
}

impl<'s> Probe<'s> {
    /// Prepares every read of this ledger; what each is refused for.
    pub async fn prepare_reads(&self) -> Vec<(&'static str, Result<(), Refusal>)> {
        let mut results = Vec::new();
        for (file, _) in READS.iter().filter(|(_, ledgers)| ledgers.contains(&self.ledger)) {
            let result = match self.read(file, &marks()) {
                Ok(statement) => self.prepare(&statement).await.map(|_| ()),
                Err(e) => Err(Refusal::Other(e.message)),
            };
            results.push((*file, result));
        }
        results
    }

    /// The columns that the ledger's SQL gives, by itself.
    ///
    /// # Errors
    /// Why the database does not take it.
    pub async fn columns(&self) -> Result<Vec<Column>, Refusal> {
        let text = self.site.store.queries.find(&format!("ledgers/{}", self.ledger)).unwrap_or_default();
        let statement = Statement::new(text, &[], &Values::new(), self.database.dialect)
            .map_err(|e| Refusal::Other(e.message))?;
        self.prepare(&statement).await
    }

    /// Prepares a statement of a move; where it `is_plain`, so that the database can say it without
    /// running anything, asks too whether the user may.
    ///
    /// # Errors
    /// Why the database does not take it.
    pub async fn prepare_move(&self, sql: &str, is_plain: bool) -> Result<(), Refusal> {
        let values =
            self.site.any_move_values(self.ledger, self.ledger.statuses()[0], self.ledger.statuses()[0]);
        let statement = Statement::new(sql, &[], &values, self.database.dialect)
            .map_err(|e| Refusal::Other(e.message))?;
        self.prepare(&statement).await?;
        if !is_plain || self.database.dialect == Dialect::Sqlite {
            return Ok(());
        }
        // To explain a write asks for the right to it. The marks may be no values of its columns,
        // so only a denial counts here.
        match self.fetch(&statement.explained("EXPLAIN ")).await {
            Err(Refusal::Denied(why)) if self.database.dialect != Dialect::Sqlite => {
                Err(Refusal::Denied(why))
            }
            _ => Ok(()),
        }
    }

    /// How a read of this ledger reaches its tables, with indexes used wherever there is one.
    ///
    /// # Errors
    /// Why the database does not take it.
    pub async fn explain(&self, file: &str, left_out: &[&str]) -> Result<Vec<Access>, Refusal> {
        let statement = self.read(file, &marks().without(left_out)).map_err(|e| Refusal::Other(e.message))?;
        let statement = statement.explained(match self.database.dialect {
            Dialect::Sqlite => "EXPLAIN QUERY PLAN ",
            Dialect::Postgres => "EXPLAIN ",
            Dialect::Mysql => "EXPLAIN FORMAT=JSON ",
        });
        let mut tx = self.database.begin().await.map_err(|e| Refusal::Other(e.message))?;
        if self.database.dialect == Dialect::Postgres {
            // A small table is read whole even where it has an index; a large one then would not be.
            self.run("check/postgres/prefer_indexes", &mut tx).await?;
        }
        let rows = statement.query().fetch_all(&mut *tx).await.map_err(|e| refusal(&e))?;
        Ok(match self.database.dialect {
            Dialect::Sqlite => rows.iter().filter_map(|row| sqlite_access(&line(row, 3))).collect(),
            Dialect::Postgres => postgres_accesses(&rows.iter().map(|row| line(row, 0)).collect::<Vec<_>>()),
            Dialect::Mysql => {
                let plan = rows.first().and_then(|row| serde_json::from_str(&line(row, 0)).ok());
                plan.map(|plan| mysql_accesses(&plan)).unwrap_or_default()
            }
        })
    }

    /// How many rows the ledger holds, as the database estimates it; `None` where it does not.
    pub async fn estimate(&self) -> Option<u64> {
        let statement = self.read("reads/everything", &marks()).ok()?;
        match self.database.dialect {
            Dialect::Sqlite => None,
            Dialect::Postgres => {
                let rows = self.fetch(&statement.explained("EXPLAIN ")).await.ok()?;
                let first = line(rows.first()?, 0);
                first.split_once("rows=")?.1.split(' ').next()?.parse().ok()
            }
            Dialect::Mysql => {
                let rows = self.fetch(&statement.explained("EXPLAIN FORMAT=JSON ")).await.ok()?;
                let plan: serde_json::Value = serde_json::from_str(&line(rows.first()?, 0)).ok()?;
                let mut most = None;
                walk(&plan, &mut |table| {
                    let rows = table.get("rows").or_else(|| table.get("rows_examined_per_scan"));
                    most = most.max(rows.and_then(serde_json::Value::as_u64));
                });
                most
            }
        }
    }

    /// Some rows, each decoded or with what is wrong about it.
    ///
    /// # Errors
    /// Why the database does not take it.
    pub async fn some_rows(&self, limit: i64) -> Result<Vec<Result<Decoded>>, Refusal> {
        self.rows("check/some_rows", &Values::new().bind("limit", limit)).await
    }

    /// One row of a status, where there is one.
    ///
    /// # Errors
    /// Why the database does not take it.
    pub async fn row_in_status(&self, status: &str) -> Result<Option<Decoded>, Refusal> {
        let statuses = self.site.store.statuses.all(self.ledger, status);
        let rows = self.rows("check/one_in_status", &Values::new().bind("statuses", statuses)).await?;
        Ok(rows.into_iter().find_map(|row| row.ok().filter(|row| row.status == status)))
    }

    /// The rows of some ids, whatever their tenant.
    ///
    /// # Errors
    /// Why the database does not take it.
    pub async fn rows_named(&self, ids: Vec<String>) -> Result<Vec<Decoded>, Refusal> {
        let wanted = ids.clone();
        let rows = self.rows("check/by_ids", &Values::new().bind("ids", ids)).await?;
        Ok(rows.into_iter().flatten().filter(|row| wanted.iter().any(|id| id == row.id.as_str())).collect())
    }

    async fn rows(&self, file: &str, values: &Values) -> Result<Vec<Result<Decoded>>, Refusal> {
        let statement = self.read(file, values).map_err(|e| Refusal::Other(e.message))?;
        let statuses = &self.site.store.statuses;
        let mut rows = Vec::new();
        let decode = |row: SessionRow<'_>| {
            rows.push(with_row_type!(self.ledger, T => {
                T::decode(row, self.shard, statuses).map(|row| decoded(&row))
            }));
            true
        };
        let mut session = self.session().await?;
        session.select(&statement, decode).await.map_err(|e| refusal(&e))?;
        self.database.give_back(session);
        Ok(rows)
    }

    /// Makes moves of one row, one after the other, each a second time too, in a transaction that
    /// is rolled back. What each first and second time did; it stops after a first time that did not move.
    ///
    /// # Errors
    /// What the database says.
    pub async fn rehearse(&self, moves: &[Rehearsed<'_>], row: &Decoded) -> Result<Vec<(Moved, Moved)>> {
        let mut tx = self.database.begin().await?;
        if let Some(setting) = match self.database.dialect {
            Dialect::Sqlite => None,
            Dialect::Postgres => Some("check/postgres/wait_briefly"),
            Dialect::Mysql => Some("check/mysql/wait_briefly"),
        } {
            self.run(setting, &mut tx).await.map_err(Refusal::into_error)?;
        }
        let mut version = row.version.clone();
        let mut results = Vec::new();
        for one in moves {
            let asked = Move {
                ledger: self.ledger,
                tenant_id: &row.tenant_id,
                id: &row.id,
                from: one.from,
                to: one.to,
                version: &version,
                refund_minor: one.refund_minor,
                amount: one.amount,
                captured_at: None,
                step_key: MARK,
                actor: one.actor,
                now: one.now,
            };
            let first = self.site.store.move_row(&mut tx, self.shard, &asked).await?;
            let Moved::Now(state) = &first else {
                results.push((first, Moved::NotAsSeen(None)));
                break;
            };
            let after = state.version.clone();
            let second = self.site.store.move_row(&mut tx, self.shard, &asked).await?;
            results.push((first, second));
            version = after;
        }
        tx.rollback().await.map_err(|e| self.database.failed(&e))?;
        Ok(results)
    }

    /// Of these tables on MySQL, those that are not seen to be kept by an engine with transactions,
    /// each with its engine.
    ///
    /// # Errors
    /// Why the database does not take it.
    pub async fn without_transactions(&self, tables: &[String]) -> Result<Vec<(String, String)>, Refusal> {
        if self.database.dialect != Dialect::Mysql {
            return Ok(Vec::new());
        }
        let values = Values::new().bind("tables", tables.to_vec());
        let rows = self.fetch(&self.statement("check/mysql/engines", &values)?).await?;
        let known: Vec<_> = rows.iter().map(|row| [line(row, 0), line(row, 1), line(row, 2)]).collect();
        let bare = |name: &str| name.rsplit('.').next().unwrap_or(name).to_lowercase();
        let left = tables.iter().filter_map(|table| {
            let found = known.iter().find(|[name, ..]| name.to_lowercase() == bare(table));
            match found {
                Some([_, _, transactions]) if transactions == "YES" => None,
                Some([_, engine, _]) => Some((table.clone(), engine.clone())),
                None => Some((table.clone(), "an unknown engine".to_owned())),
            }
        });
        Ok(left.collect())
    }

    /// The indexes of a table, each as its columns and expressions in their order.
    ///
    /// # Errors
    /// Why the database does not take it.
    pub async fn indexes(&self, table: &str) -> Result<Vec<Vec<String>>, Refusal> {
        let file = match self.database.dialect {
            Dialect::Sqlite => return Ok(Vec::new()),
            Dialect::Postgres => "check/postgres/indexes",
            Dialect::Mysql => "check/mysql/indexes",
        };
        let rows = self.fetch(&self.statement(file, &Values::new().bind("table", table))?).await?;
        let mut indexes: Vec<(String, Vec<String>)> = Vec::new();
        for row in &rows {
            let (index, part) = (line(row, 0), line(row, 1));
            match indexes.last_mut() {
                Some((known, parts)) if *known == index => parts.push(part),
                _ => indexes.push((index, vec![part])),
            }
        }
        Ok(indexes.into_iter().map(|(_, parts)| parts).collect())
    }

    /// What of these privileges on a table the user has; on PostgreSQL also `DROP`, as its owner.
    ///
    /// # Errors
    /// Why the database does not take it.
    pub async fn privileges(&self, table: &str, asked: &[&str]) -> Result<Vec<String>, Refusal> {
        let asked: Vec<_> = asked.iter().map(|name| vec![Value::from(*name)]).collect();
        let values = Values::new().bind("table", table).bind("privileges", asked);
        let rows = self.fetch(&self.statement("check/postgres/privileges", &values)?).await?;
        Ok(rows.iter().map(|row| line(row, 0)).collect())
    }

    /// Whether the user of PostgreSQL is a superuser.
    ///
    /// # Errors
    /// Why the database does not take it.
    pub async fn is_superuser(&self) -> Result<bool, Refusal> {
        Ok(!self.fetch(&self.statement("check/postgres/superuser", &Values::new())?).await?.is_empty())
    }

    /// What `SHOW GRANTS` says on MySQL.
    ///
    /// # Errors
    /// Why the database does not take it.
    pub async fn grants(&self) -> Result<Vec<String>, Refusal> {
        let rows = self.fetch(&self.statement("check/mysql/grants", &Values::new())?).await?;
        Ok(rows.iter().map(|row| line(row, 0)).collect())
    }

    /// Whether an SQLite file can be written: makes a table, and takes it back.
    ///
    /// # Errors
    /// What the database says.
    pub async fn can_write(&self) -> Result<()> {
        self.site.rolled_back(self.database, "check/sqlite/write", &Values::new()).await
    }

    fn read(&self, file: &str, values: &Values) -> Result<Statement> {
        with_row_type!(self.ledger, T => self.site.store.ledger_statement::<T>(self.database, file, values))
    }

    fn statement(&self, file: &str, values: &Values) -> Result<Statement, Refusal> {
        let made = self.database.statement(&self.site.store.queries, file, values);
        made.map_err(|e| Refusal::Other(e.message))
    }

    async fn run(&self, file: &str, on: &mut super::Connection) -> Result<(), Refusal> {
        let statement = self.statement(file, &Values::new())?;
        statement.query().execute(on).await.map(|_| ()).map_err(|e| refusal(&e))
    }

    async fn fetch(&self, statement: &Statement) -> Result<Vec<AnyRow>, Refusal> {
        let connection = self.database.connection().await;
        let mut connection = connection.map_err(|e| Refusal::Other(e.message))?;
        statement.query().fetch_all(&mut *connection).await.map_err(|e| refusal(&e))
    }

    async fn session(&self) -> Result<Session, Refusal> {
        self.database.session().await.map_err(|e| Refusal::Other(e.message))
    }

    async fn prepare(&self, statement: &Statement) -> Result<Vec<Column>, Refusal> {
        let mut session = self.session().await?;
        let columns = session.columns(statement).await.map_err(|e| refusal(&e))?;
        self.database.give_back(session);
        Ok(columns)
    }
}

/// A move that is rehearsed.
#[derive(Clone, Debug)]
pub struct Rehearsed<'a> {
    pub from: &'a str,
    pub to: &'a str,
    pub refund_minor: i64,
    pub amount: Option<(i64, Currency)>,
    pub actor: &'a str,
    pub now: Timestamp,
}

impl Refusal {
    pub fn message(&self) -> &str {
        match self {
            Self::Denied(message) | Self::Other(message) => message,
        }
    }

    fn into_error(self) -> Error {
        Error::failure(self.message())
    }
}

/// A value for every parameter of the reads.
fn marks() -> Values {
    let list = || vec![MARK.to_owned()];
    let values = ["tenants", "users", "shows", "sessions", "ids", "keys", "transactions", "orders"]
        .into_iter()
        .fold(Values::new(), |values, name| values.bind(name, list()));
    values.bind("from_us", 0).bind("to_us", 1).bind("limit", 1).bind("tenant_id", MARK).bind("show_id", MARK)
}

fn decoded<T: LedgerRow>(row: &T) -> Decoded {
    let values: Vec<(_, Value)> = row.values().map(|(name, field)| (name, field.into())).collect();
    let value = |name: &str| values.iter().find(|(n, _)| *n == name).map(|(_, value)| value);
    let text = |name: &str| match value(name) {
        Some(Value::Text(Some(text))) => text.clone(),
        _ => String::new(),
    };
    let number = |name: &str| match value(name) {
        Some(Value::Int(Some(number))) => Some(*number),
        _ => None,
    };
    let money = number("amount_minor").zip(number("refunded_minor"));
    Decoded {
        tenant_id: row.tenant_id().clone(),
        id: row.row_id(),
        status: text("status"),
        version: text("version").into(),
        money: money.and_then(|(amount, back)| Some((amount - back, back, text("currency").parse().ok()?))),
        values,
    }
}

fn refusal(error: &sqlx::Error) -> Refusal {
    let sqlx::Error::Database(e) = error else { return Refusal::Other(error.to_string()) };
    let message = e.message().to_owned();
    // No right to a table, a column, a routine or a statement.
    let number = e.try_downcast_ref::<sqlx::mysql::MySqlDatabaseError>().map(|e| e.number());
    let denied = match number {
        Some(number) => [1044, 1142, 1143, 1227, 1370].contains(&number),
        None => e.code().as_deref() == Some("42501"),
    };
    if denied { Refusal::Denied(message) } else { Refusal::Other(message) }
}

/// The text of a column; empty where it is none.
fn line(row: &AnyRow, column: usize) -> String {
    let name = row.columns().get(column).map(|c| c.name().to_owned()).unwrap_or_default();
    Reader::new(row, "the server").text(&name).ok().flatten().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_read_is_prepared() {
        let files = Queries::names().filter(|name| name.starts_with("reads/"));
        for file in files {
            assert!(READS.iter().any(|(name, _)| *name == file), "{file}.sql is not in READS");
        }
    }
}
