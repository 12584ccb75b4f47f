//! Rows from files into the embedded ledgers: all or nothing, and never over what is there.

use std::collections::HashMap;

use super::bulk::Bulk;
use super::connect::until_no_clash;
use super::rows::{Field, LedgerRow, SessionRow};
use super::sql::Values;
use super::{BATCH, Database, Statuses, Store};
use crate::core::ids::*;
use crate::core::ledger::{Hold, Message, Order, Payment, Rows};
use crate::core::status::Ledger;
use crate::core::time::Timestamp;
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
        rows: &dyn Rows,
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
                let done =
                    until_no_clash(async || self.import_into(*home, rows, *dry_run, &mut progress).await)
                        .await?;
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
        rows: &dyn Rows,
        dry_run: bool,
        progress: &mut impl FnMut(Ledger, u64),
    ) -> Result<Import> {
        let mut import = Import::default();
        self.compare::<Order>(home, rows, &mut import, progress).await?;
        self.compare::<Payment>(home, rows, &mut import, progress).await?;
        self.compare::<Hold>(home, rows, &mut import, progress).await?;
        self.compare::<Message>(home, rows, &mut import, progress).await?;
        if !dry_run && import.differences.is_empty() {
            let mut bulk = Bulk::begin(&self.databases[home]).await?;
            self.add::<Order>(&mut bulk, home, rows, &import, progress).await?;
            self.add::<Payment>(&mut bulk, home, rows, &import, progress).await?;
            self.add::<Hold>(&mut bulk, home, rows, &import, progress).await?;
            self.add::<Message>(&mut bulk, home, rows, &import, progress).await?;
            bulk.commit().await?;
        }
        Ok(import)
    }

    /// Finds out which rows of a ledger are there. Another may add one until ours are added: that is a clash then.
    async fn compare<T: LedgerRow>(
        &self,
        home: usize,
        rows: &dyn Rows,
        import: &mut Import,
        progress: &mut impl FnMut(Ledger, u64),
    ) -> Result<()> {
        if self.home(T::LEDGER) != home {
            return Ok(());
        }
        let database = &self.databases[home];
        let some =
            self.ledger_statement::<T>(database, "check/some_rows", &Values::new().bind("limit", 1_i64))?;
        let mut is_empty = true;
        let seen = |_: SessionRow<'_>| {
            is_empty = false;
            Ok(())
        };
        database.each_row(&some, seen).await?;
        if is_empty {
            import.imported[T::LEDGER as usize].added = rows.count(T::LEDGER);
            return Ok(());
        }
        let mut new = Vec::new();
        for portion in T::of(rows) {
            for batch in portion?.chunks(BATCH) {
                for rows in batch.chunk_by(|a, b| a.tenant_id() == b.tenant_id()) {
                    new.extend(self.compared(database, rows, import).await?);
                }
            }
            progress(T::LEDGER, new.len() as u64);
        }
        import.imported[T::LEDGER as usize].added = new.iter().filter(|new| **new).count() as u64;
        import.new[T::LEDGER as usize] = Some(new);
        Ok(())
    }

    /// Adds those rows of a ledger that are new.
    async fn add<T: LedgerRow>(
        &self,
        bulk: &mut Bulk<'_>,
        home: usize,
        rows: &dyn Rows,
        import: &Import,
        progress: &mut impl FnMut(Ledger, u64),
    ) -> Result<()> {
        if self.home(T::LEDGER) != home || import.imported[T::LEDGER as usize].added == 0 {
            return Ok(());
        }
        let mut is_new = import.new[T::LEDGER as usize].as_ref().map(|new| new.iter());
        let mut through = 0;
        let new = T::of(rows).map(|portion| {
            let mut portion = portion?;
            through += portion.len() as u64;
            progress(T::LEDGER, through);
            if let Some(is_new) = &mut is_new {
                portion.retain(|_| is_new.next() == Some(&true));
            }
            Ok(portion)
        });
        bulk.add(&self.queries, new).await
    }

    /// Which rows of a tenant are not there.
    async fn compared<T: LedgerRow>(
        &self,
        database: &Database,
        rows: &[T],
        import: &mut Import,
    ) -> Result<Vec<bool>> {
        let by_ids = |ids: Vec<String>| {
            let values = Values::new().bind("tenant_id", rows[0].tenant_id().as_str()).bind("ids", ids);
            self.ledger_statement::<T>(database, "reads/by_ids", &values)
        };
        let ids: Vec<RowId> = rows.iter().map(LedgerRow::row_id).collect();
        let places: HashMap<&str, usize> = ids.iter().map(RowId::as_str).zip(0..).collect();
        let mut new = vec![true; rows.len()];
        let mut odd = Vec::new();
        // Where statuses go by words of a site's own, the same word may mean another.
        let may_be_same = self.statuses == Statuses::default();
        let statement = by_ids(ids.iter().map(ToString::to_string).collect())?;
        let compare = |there: SessionRow<'_>| {
            if let Some(Ok(Field::Text(id))) = there.values.first()
                && let Some(at) = places.get(id)
            {
                new[*at] = false;
                let here = rows[*at].values().map(|(_, field)| Ok(field));
                if !may_be_same || !here.eq(there.values.iter().copied()) {
                    odd.push(*at);
                }
            }
            Ok(())
        };
        database.each_row(&statement, compare).await?;
        let imported = &mut import.imported[T::LEDGER as usize];
        imported.present += new.iter().filter(|new| !**new).count() as u64;
        if odd.is_empty() {
            return Ok(new);
        }
        // What is not the same letter for letter may still be the same row.
        odd.sort_unstable();
        let statement = by_ids(odd.iter().map(|at| ids[*at].to_string()).collect())?;
        let mut there = HashMap::new();
        let keep = |row: SessionRow<'_>| {
            let row = T::decode(row, 0, &self.statuses)?;
            there.insert(row.row_id(), row);
            Ok(())
        };
        database.each_row(&statement, keep).await?;
        for (row, other) in odd.iter().filter_map(|at| Some((&rows[*at], there.get(&ids[*at])?))) {
            if row != other {
                imported.present -= 1;
                import.differences.push(difference(row, other));
            }
        }
        Ok(new)
    }
}

/// What one database has of the rows, or has been given.
#[derive(Default)]
struct Import {
    imported: [Imported; 4],
    /// Whether each row of a ledger is new; all of them are where nothing is said.
    new: [Option<Vec<bool>>; 4],
    /// What is there with other content.
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
        .zip(there.values())
        .filter(|(new, old)| new != old)
        .map(|((name, new), (_, old))| {
            format!("{name} is {}, the file says {}", shown(name, old), shown(name, new))
        })
        .collect();
    format!("{} {id}: {}", T::LEDGER.row_name(), fields.join("; "))
}

fn shown(name: &str, field: Field<'_>) -> String {
    match field {
        Field::Int(micros) if name.ends_with("_at") => Timestamp::from_micros(micros).to_string(),
        Field::Int(n) => n.to_string(),
        Field::Text(text) => format!("{text:?}"),
        Field::Null => "null".to_owned(),
    }
}
