//! Rows from files into the embedded ledgers: all or nothing, and never over what is there.

use std::collections::HashMap;

use super::rows::LedgerRow;
use super::sql::{Value, Values};
use super::{BATCH, Connection, Database, Store};
use crate::core::ids::*;
use crate::core::ledger::{Hold, Ledgers, Message, Order, Payment};
use crate::core::status::Ledger;
use crate::error::{Error, Result};

/// How many rows of one ledger were added, and how many were there already, the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Imported {
    pub added: u64,
    pub present: u64,
}

/// How many differences are told.
const TOLD: usize = 50;

impl Store {
    /// Adds rows to the ledgers, in the order of [`Ledger::ALL`]. With `dry_run` nothing is
    /// written. `progress` hears of each batch how many rows of which ledger are through.
    ///
    /// What goes to one database goes in one transaction. Where there are several, all are compared
    /// before one is written; what a failure between two leaves undone, the same import does.
    ///
    /// # Errors
    /// Usage, naming row and field, where a row is there with other content: then nothing is
    /// written. Usage, where a ledger has several shards: it is not known to which a row belongs.
    pub async fn import(
        &self,
        rows: &Ledgers,
        dry_run: bool,
        mut progress: impl FnMut(Ledger, u64),
    ) -> Result<[Imported; 4]> {
        if self.is_foreign() {
            return Err(Error::usage("import fills the embedded ledgers, and these are your own tables")
                .hint("import into another database: onefold --database sqlite:rehearsal.db import DIR"));
        }
        if let Some(ledger) = Ledger::ALL.into_iter().find(|l| self.shards(*l).count() > 1) {
            return Err(Error::usage(format!("{ledger} has several shards; import cannot tell them apart"))
                .hint("load each shard by the means of its own database"));
        }
        let homes: Vec<usize> = (0..self.databases.len())
            .filter(|home| Ledger::ALL.into_iter().any(|ledger| self.home(ledger) == *home))
            .collect();
        let mut imported = [Imported::default(); 4];
        let passes: &[bool] = if !dry_run && homes.len() > 1 { &[true, false] } else { &[dry_run] };
        for dry_run in passes {
            let mut differences = Vec::new();
            for home in &homes {
                let done = self.import_into(*home, rows, *dry_run, &mut progress).await?;
                for (ledger, done) in Ledger::ALL.into_iter().zip(done.imported) {
                    if self.home(ledger) == *home {
                        imported[ledger as usize] = done;
                    }
                }
                differences.extend(done.differences);
            }
            if !differences.is_empty() {
                return Err(other_content(&differences));
            }
        }
        Ok(imported)
    }

    /// The index of the database of a ledger that has one.
    fn home(&self, ledger: Ledger) -> usize {
        self.ledgers[ledger as usize][0]
    }

    /// Adds the rows of those ledgers that live in one database.
    async fn import_into(
        &self,
        home: usize,
        rows: &Ledgers,
        dry_run: bool,
        progress: &mut impl FnMut(Ledger, u64),
    ) -> Result<Import> {
        self.databases[home]
            .transaction(async |tx| {
                let mut import = Import::default();
                self.import_ledger::<Order>(tx, home, &rows.orders, dry_run, &mut import, progress).await?;
                self.import_ledger::<Payment>(tx, home, &rows.payments, dry_run, &mut import, progress)
                    .await?;
                self.import_ledger::<Hold>(tx, home, &rows.inventory, dry_run, &mut import, progress).await?;
                self.import_ledger::<Message>(tx, home, &rows.messages, dry_run, &mut import, progress)
                    .await?;
                if import.differences.is_empty() || dry_run {
                    return Ok(import);
                }
                // Undoes what was written before the first difference was met.
                Err(other_content(&import.differences))
            })
            .await
    }

    async fn import_ledger<T: LedgerRow>(
        &self,
        tx: &mut Connection,
        home: usize,
        rows: &[T],
        dry_run: bool,
        import: &mut Import,
        progress: &mut impl FnMut(Ledger, u64),
    ) -> Result<()> {
        if self.home(T::LEDGER) != home {
            return Ok(());
        }
        let database = &self.databases[home];
        let some =
            self.ledger_statement::<T>(database, "check/some_rows", &Values::new().bind("limit", 1_i64))?;
        let is_empty = database.fetch(tx, &some).await?.is_empty();
        for batch in rows.chunks(BATCH) {
            let new = match is_empty {
                true => batch.iter().collect(),
                false => self.compared(tx, database, batch, import).await?,
            };
            if !dry_run && !new.is_empty() && import.differences.is_empty() {
                let rows: Vec<Vec<Value>> = new
                    .iter()
                    .map(|row| row.values().into_iter().map(|(_, value)| value).collect())
                    .collect();
                let file = format!("import/{}", T::LEDGER);
                let statement =
                    database.statement(&self.queries, &file, &Values::new().bind("rows", rows))?;
                database.execute(tx, &statement).await?;
            }
            let imported = &mut import.imported[T::LEDGER as usize];
            imported.added += new.len() as u64;
            progress(T::LEDGER, imported.added + imported.present);
        }
        Ok(())
    }

    /// Those rows of a batch that are not there.
    async fn compared<'r, T: LedgerRow>(
        &self,
        tx: &mut Connection,
        database: &Database,
        batch: &'r [T],
        import: &mut Import,
    ) -> Result<Vec<&'r T>> {
        let mut new = Vec::new();
        for tenant_rows in batch.chunk_by(|a, b| a.tenant_id() == b.tenant_id()) {
            let ids: Vec<String> = tenant_rows.iter().map(|r| r.row_id().to_string()).collect();
            let values =
                Values::new().bind("tenant_id", tenant_rows[0].tenant_id().as_str()).bind("ids", ids);
            let there: Vec<T> = self.rows_on(tx, 0, database, "reads/by_ids", &values).await?;
            let there: HashMap<_, _> = there.into_iter().map(|row| (row.row_id(), row)).collect();
            for row in tenant_rows {
                match there.get(&row.row_id()) {
                    None => new.push(row),
                    Some(same) if same == row => import.imported[T::LEDGER as usize].present += 1,
                    Some(other) => import.differences.push(difference(row, other)),
                }
            }
        }
        Ok(new)
    }
}

/// What was done in one database, and what is there with other content.
#[derive(Default)]
struct Import {
    imported: [Imported; 4],
    differences: Vec<String>,
}

fn other_content(differences: &[String]) -> Error {
    let told = differences.iter().take(TOLD).map(|d| format!("\n  {d}")).collect::<String>();
    let more = differences.len().saturating_sub(TOLD);
    let more = if more > 0 { format!("\n  and {more} more") } else { String::new() };
    let rows = match differences.len() {
        1 => "1 row is".to_owned(),
        n => format!("{n} rows are"),
    };
    Error::usage(format!("{rows} there with other content; nothing was imported{told}{more}"))
        .hint("import never overwrites; use another --database for another state of the ledgers")
}

/// Which fields differ between a row of a file and the one that is there.
fn difference<T: LedgerRow>(row: &T, there: &T) -> String {
    let id: RowId = row.row_id();
    let fields: Vec<_> = row
        .values()
        .into_iter()
        .zip(there.values())
        .filter(|((_, new), (_, old))| new != old)
        .map(|((name, new), (_, old))| {
            format!("{name} is {}, the file says {}", shown(name, &old), shown(name, &new))
        })
        .collect();
    format!("{} {id}: {}", T::LEDGER.row_name(), fields.join("; "))
}

fn shown(name: &str, value: &Value) -> String {
    match value {
        Value::Int(Some(micros)) if name.ends_with("_at") => {
            crate::core::time::Timestamp::from_micros(*micros).to_string()
        }
        Value::Int(Some(n)) => n.to_string(),
        Value::Text(Some(text)) => format!("{text:?}"),
        _ => "null".to_owned(),
    }
}
