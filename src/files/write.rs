//! The four ledgers as CSV, as the contract has them: its columns in its order, UTF-8, times in UTC.

use std::fs::{self, File};
use std::path::Path;

use super::table::FileRow;
use crate::core::ledger::Ledgers;
use crate::error::{Error, Result};

/// Writes `orders.csv`, `payments.csv`, `inventory.csv` and `messages.csv` into a folder, which is
/// made where it is missing; files that are there are replaced. [`super::read`] gives the same rows
/// back, but for the shard, which a file does not have, and for empty texts, which become null.
///
/// # Errors
/// The folder or a file cannot be written.
pub fn write(dir: &Path, ledgers: &Ledgers) -> Result<()> {
    fs::create_dir_all(dir).map_err(|e| Error::failure(format!("cannot make {}: {e}", dir.display())))?;
    write_file(dir, &ledgers.orders)?;
    write_file(dir, &ledgers.payments)?;
    write_file(dir, &ledgers.inventory)?;
    write_file(dir, &ledgers.messages)
}

fn write_file<R: FileRow>(dir: &Path, rows: &[R]) -> Result<()> {
    let path = super::path_in(dir, R::LEDGER);
    let all = || -> csv::Result<()> {
        let mut writer = csv::Writer::from_writer(File::create(&path)?);
        writer.write_record(R::COLUMNS.iter().map(|column| column.name))?;
        let mut record = csv::StringRecord::new();
        for row in rows {
            row.write(&mut record);
            writer.write_record(&record)?;
        }
        Ok(writer.flush()?)
    };
    all().map_err(|e| Error::failure(format!("cannot write {}: {e}", path.display())))
}
