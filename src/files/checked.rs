//! Files in which there is no fault, whose rows are read again when they are wanted: a ledger may be larger than
//! memory.

use std::ops::ControlFlow;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::{self, JoinHandle};

use super::LedgerFiles;
use super::options::ReadOptions;
use super::read::read_again;
use super::table::FileRow;
use crate::core::ledger::{Hold, Message, Order, PORTION, Payment, Portions, Rows};
use crate::core::status::Ledger;
use crate::error::{Error, Result};

/// How many portions are read ahead of who takes them.
const AHEAD: usize = 1;

/// Four files that have been read once, without a fault.
#[derive(Clone, Debug)]
pub struct Checked {
    pub(super) files: LedgerFiles,
    pub(super) options: ReadOptions,
    /// How many rows each has.
    pub(super) counts: [u64; 4],
}

impl Rows for Checked {
    fn count(&self, ledger: Ledger) -> u64 {
        self.counts[ledger as usize]
    }

    fn orders(&self) -> Portions<'_, Order> {
        self.portions()
    }

    fn payments(&self) -> Portions<'_, Payment> {
        self.portions()
    }

    fn inventory(&self) -> Portions<'_, Hold> {
        self.portions()
    }

    fn messages(&self) -> Portions<'_, Message> {
        self.portions()
    }
}

impl Checked {
    /// A thread of its own reads ahead; it ends when nobody takes them any more.
    fn portions<R: FileRow + 'static>(&self) -> Portions<'_, R> {
        let (sender, portions) = mpsc::sync_channel(AHEAD);
        let (path, options) = (self.files.path(R::LEDGER).to_owned(), self.options.clone());
        let reader = thread::spawn(move || {
            let mut ahead = Ahead { rows: Vec::with_capacity(PORTION), sender };
            read_again(&path, &options, |row| ahead.add(row))?;
            if !ahead.rows.is_empty() {
                _ = ahead.send();
            }
            Some(())
        });
        Box::new(Again {
            checked: self,
            ledger: R::LEDGER,
            left: self.count(R::LEDGER),
            portions,
            reader: Some(reader),
        })
    }
}

/// Rows on their way to who takes them.
struct Ahead<R> {
    rows: Vec<R>,
    sender: SyncSender<Vec<R>>,
}

impl<R: FileRow> Ahead<R> {
    fn add(&mut self, row: R) -> ControlFlow<()> {
        self.rows.push(row);
        if self.rows.len() == PORTION { self.send() } else { ControlFlow::Continue(()) }
    }

    fn send(&mut self) -> ControlFlow<()> {
        let mut rows = std::mem::replace(&mut self.rows, Vec::with_capacity(PORTION));
        // A table that finds its rows by their keys takes them faster where one lies near the one before.
        rows.sort_by_cached_key(|row| beginning(row.key().1));
        match self.sender.send(rows) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }
}

/// The rows of a file as they are read again.
struct Again<'c, R> {
    checked: &'c Checked,
    ledger: Ledger,
    /// How many rows there must still be.
    left: u64,
    portions: Receiver<Vec<R>>,
    reader: Option<JoinHandle<Option<()>>>,
}

impl<R> Iterator for Again<'_, R> {
    type Item = Result<Vec<R>>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Ok(rows) = self.portions.recv() {
            self.left = self.left.checked_sub(rows.len() as u64).unwrap_or(u64::MAX);
            return Some(Ok(rows));
        }
        let read = self.reader.take()?.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (read.is_none() || self.left > 0).then(|| {
            let path = self.checked.files.path(self.ledger).display();
            Err(Error::failure(format!("{path} has changed since it was checked; nothing was loaded"))
                .hint("type the same again once nobody writes to it"))
        })
    }
}

/// The first bytes of an id, in its order.
fn beginning(id: &str) -> u128 {
    let mut bytes = [0; 16];
    bytes.iter_mut().zip(id.bytes()).for_each(|(to, byte)| *to = byte);
    u128::from_be_bytes(bytes)
}
