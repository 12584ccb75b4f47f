//! Ledgers as files: CSV in, with all that real exports get wrong, and CSV out.
//!
//! The [`Column`] table says what each ledger's columns are (contract, section 1); [`ReadOptions`]
//! say how a file differs from it. Whatever could be read in two ways is refused, with file, line,
//! column and value; all [`Faults`] are reported together and nothing is loaded. What was detected
//! or assumed is told in [`Note`]s.

mod access;
mod amount;
mod cells;
mod checked;
mod decode;
mod faults;
mod header;
mod lines;
mod lock_history;
mod mangled;
mod options;
mod read;
mod records;
mod sift;
mod statement;
mod table;
mod write;

use std::panic;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Sender};
use std::thread::{self, Scope, ScopedJoinHandle};

use crate::core::ledger::{Hold, Ledgers, Message, Order, Payment};
use crate::core::status::Ledger;
use crate::error::{Error, Result};

pub use access::{AccessColumn, AccessMap, AccessOptions, read_access};
pub use checked::Checked;
pub use faults::{Fault, Faults, FileFaults, LISTED, Note};
pub use lock_history::{HistoryMap, LockColumn, LockOptions, LockRefusal, read_lock_history};
pub use options::{Amounts, BadOption, ColumnMap, Encoding, ReadOptions, StatusMap};
pub use sift::{Origin, Portions, READ_ORDER, Sifted, sift};
pub use statement::{StatementColumn, StatementMap, StatementOptions, TypeMap, read_statement};
pub use table::{Column, Kind, Need, columns};
pub use write::write;

use faults::{Place, Problem, Quoted};
use read::{FileRead, read_file};
use table::FileRow;

/// Where the four ledgers are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerFiles {
    pub orders: PathBuf,
    pub payments: PathBuf,
    pub inventory: PathBuf,
    pub messages: PathBuf,
}

impl LedgerFiles {
    /// The files of a folder: `orders.csv`, `payments.csv`, `inventory.csv` and `messages.csv`.
    ///
    /// # Errors
    /// The folder or some of the files are not there; all that are missing are named.
    pub fn in_dir(dir: &Path) -> Result<Self> {
        if !dir.is_dir() {
            return Err(Error::usage(format!("no folder {}", dir.display())).hint(
                "name the folder that holds orders.csv, payments.csv, inventory.csv and messages.csv",
            ));
        }
        let missing: Vec<_> =
            Ledger::ALL.into_iter().map(file_name).filter(|name| !dir.join(name).is_file()).collect();
        if !missing.is_empty() {
            let problem = format!("{} lacks {}", dir.display(), missing.join(", "));
            return Err(Error::usage(problem).hint("a ledger without rows is a file of its header line"));
        }
        let [orders, payments, inventory, messages] = Ledger::ALL.map(|ledger| path_in(dir, ledger));
        Ok(Self { orders, payments, inventory, messages })
    }

    /// The file of a ledger.
    pub fn path(&self, ledger: Ledger) -> &Path {
        match ledger {
            Ledger::Orders => &self.orders,
            Ledger::Payments => &self.payments,
            Ledger::Inventory => &self.inventory,
            Ledger::Messages => &self.messages,
        }
    }
}

fn file_name(ledger: Ledger) -> String {
    format!("{ledger}.csv")
}

fn path_in(dir: &Path, ledger: Ledger) -> PathBuf {
    dir.join(file_name(ledger))
}

/// Reads the four ledgers, side by side. `progress` is told for each the bytes of its file and the
/// rows that have been read so far.
///
/// # Errors
/// Every fault of all four files. Nothing is loaded when there is one.
pub fn read(
    files: &LedgerFiles,
    options: &ReadOptions,
    progress: &mut dyn FnMut(Ledger, u64, u64),
) -> Result<(Ledgers, Vec<Note>), Faults> {
    let mut ledgers = Ledgers::default();
    let Ledgers { orders, payments, inventory, messages } = &mut ledgers;
    let (_, notes) = read_through(
        files,
        options,
        progress,
        |row| orders.push(row),
        |row| payments.push(row),
        |row| inventory.push(row),
        |row| messages.push(row),
    )?;
    Ok((ledgers, notes))
}

/// As [`read()`], but the rows are not kept: they are read again when they are wanted, for which the files must be
/// some that can be.
///
/// # Errors
/// As it has them.
pub fn check(
    files: LedgerFiles,
    options: ReadOptions,
    progress: &mut dyn FnMut(Ledger, u64, u64),
) -> Result<(Checked, Vec<Note>), Faults> {
    let (counts, notes) = read_through(&files, &options, progress, drop, drop, drop, drop)?;
    Ok((Checked { files, options, counts }, notes))
}

/// Reads the four ledgers and hands over their rows, of which it gives the number.
fn read_through(
    files: &LedgerFiles,
    options: &ReadOptions,
    progress: &mut dyn FnMut(Ledger, u64, u64),
    orders: impl FnMut(Order) + Send,
    payments: impl FnMut(Payment) + Send,
    inventory: impl FnMut(Hold) + Send,
    messages: impl FnMut(Message) + Send,
) -> Result<([u64; 4], Vec<Note>), Faults> {
    let (sender, told) = mpsc::channel();
    let read = thread::scope(|scope| {
        let readers = [
            start(scope, &files.orders, options, sender.clone(), orders),
            start(scope, &files.payments, options, sender.clone(), payments),
            start(scope, &files.inventory, options, sender.clone(), inventory),
            start(scope, &files.messages, options, sender, messages),
        ];
        for (ledger, bytes, rows) in told {
            progress(ledger, bytes, rows);
        }
        readers.map(|reader| reader.join().unwrap_or_else(|panic| panic::resume_unwind(panic)))
    });

    let counts = read.each_ref().map(|file| file.rows);
    let mut faults = Vec::new();
    let mut notes = Vec::new();
    let mut maps_used = Some(Vec::new());
    for file in read {
        match (maps_used.as_mut(), file.maps_used) {
            (Some(all), Some(used)) => all.extend(used),
            // Of a header that was not reached nobody knows what it names.
            _ => maps_used = None,
        }
        if file.faults.count > 0 {
            faults.push(file.faults);
        }
        notes.extend(file.notes);
    }
    let unused = maps_used.map(|used| unused_maps(options, &used, files));
    faults.extend(unused.filter(|unused| unused.count > 0));
    if faults.is_empty() { Ok((counts, notes)) } else { Err(Faults { files: faults }) }
}

type Progress = (Ledger, u64, u64);

fn start<'scope, R: FileRow + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    path: &'scope Path,
    options: &'scope ReadOptions,
    sender: Sender<Progress>,
    take: impl FnMut(R) + Send + 'scope,
) -> ScopedJoinHandle<'scope, FileRead> {
    scope.spawn(move || {
        // Nobody is left to tell only where telling has panicked.
        read_file(path, options, &mut |bytes, rows| _ = sender.send((R::LEDGER, bytes, rows)), take)
    })
}

/// Maps that name a column that no file has, or one that another map renames.
fn unused_maps(options: &ReadOptions, used: &[usize], files: &LedgerFiles) -> FileFaults {
    let mut faults = FileFaults::new("--map", None);
    for (_, map) in options.map.iter().enumerate().filter(|(index, _)| !used.contains(index)) {
        let other = used.iter().map(|other| &options.map[*other]).find(|other| other.theirs == map.theirs);
        let theirs = Quoted(&map.theirs);
        let problem = match (other, map.ledger) {
            (Some(other), _) => format!("{theirs} is already renamed by {other}"),
            (None, Some(ledger)) => format!("no column {theirs} in {}", files.path(ledger).display()),
            (None, None) => format!("no column {theirs} in any file of a ledger with {}", map.ours),
        };
        faults.add(Place::default(), Some(&map.to_string()), Problem::new(problem));
    }
    faults
}
