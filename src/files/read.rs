//! One file into the rows of one ledger.

use std::hash::BuildHasher;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::Path;

use foldhash::fast::RandomState;

use super::cells::{Cells, Reading, Tally};
use super::decode::{self, BytesRead, Malformed};
use super::faults::{FileFaults, Note, Place, Problem, Quoted};
use super::header::{self, Header};
use super::lines::TOLD_EVERY;
use super::options::{Encoding, ReadOptions};
use super::records::{Broken, Records};
use super::table::FileRow;
use crate::core::status::Ledger;

/// What is said about a file whose rows have been handed over. They are worth nothing where there are faults.
pub(super) struct FileRead {
    /// How many rows there are.
    pub rows: u64,
    pub faults: FileFaults,
    pub notes: Vec<Note>,
    /// The maps that named a column of the file; `None` where its header was not reached.
    pub maps_used: Option<Vec<usize>>,
}

/// Reads a file. Progress is told in bytes of the file and rows.
pub(super) fn read_file<R: FileRow>(
    path: &Path,
    options: &ReadOptions,
    progress: &mut dyn FnMut(u64, u64),
    mut take: impl FnMut(R),
) -> FileRead {
    let file = path.display().to_string();
    let faults = FileFaults::new(&*file, Some(R::LEDGER));
    let mut reading = Reading::new(options, R::LEDGER, R::COLUMNS.len(), faults);
    let (mut rows, mut notes, mut maps_used) = (0, Vec::new(), None);
    if let Some((mut records, bytes)) = open(path, options.encoding, &mut reading.faults, &mut notes)
        && let Some(header) = read_header::<R>(&mut records, &mut reading)
    {
        notes.extend(header.notes.iter().cloned());
        // Rows under a header that is at fault would all be at fault.
        if reading.faults.count == 0 {
            let mut tell = |rows| progress(bytes.get(), rows);
            let mut keys = Keys::default();
            read_rows(&mut records, &header, &mut reading, &mut tell, |line, key, row| {
                if let Some(key) = key {
                    keys.add(key, line);
                }
                if let Some(row) = row {
                    rows += 1;
                    take(row);
                }
                ControlFlow::Continue(())
            });
            for (line, first, id) in keys.duplicates() {
                let place = Place { line: Some(line), ..header.column(0) };
                let problem = Problem::new(format!("the id of line {first} again"));
                reading.faults.add(place, Some(&id), problem);
            }
        }
        let padded = if options.trim_ids { "dropped" } else { "kept; --trim-ids drops them" };
        notes.extend(told(&reading.padded, &header, "values with blanks around them", padded));
        notes.extend(told(&reading.blank, &header, "cells of nothing but blanks", "read as empty"));
        notes.extend(told(&reading.accepted, &header, "odd ids", "taken as they are"));
        maps_used = Some(header.maps_used);
    }
    reading.faults.sort();
    let notes = noted(path, R::LEDGER, notes);
    FileRead { rows, faults: reading.faults, notes, maps_used }
}

/// Reads a file again in which there was no fault, as far as its rows are taken; `None` where there is one now.
pub(super) fn read_again<R: FileRow>(
    path: &Path,
    options: &ReadOptions,
    mut take: impl FnMut(R) -> ControlFlow<()>,
) -> Option<()> {
    let mut reading = Reading::new(options, R::LEDGER, R::COLUMNS.len(), FileFaults::new("", None));
    let (mut records, _) = open(path, options.encoding, &mut reading.faults, &mut Vec::new())?;
    let header = read_header::<R>(&mut records, &mut reading)?;
    read_rows(&mut records, &header, &mut reading, &mut |_| (), |_, _, row| match row {
        Some(row) => take(row),
        None => ControlFlow::Break(()),
    });
    (reading.faults.count == 0).then_some(())
}

/// What is told about a file.
pub(super) fn noted(path: &Path, ledger: Ledger, texts: Vec<String>) -> Vec<Note> {
    let file = path.display().to_string();
    texts.into_iter().map(|text| Note { file: file.clone(), ledger, text }).collect()
}

/// Finds out how a file is encoded and what separates its cells. Also gives the count of bytes read.
pub(super) fn open(
    path: &Path,
    encoding: Encoding,
    faults: &mut FileFaults,
    notes: &mut Vec<String>,
) -> Option<(Records<Box<dyn Read>>, BytesRead)> {
    let text = match decode::open(path, encoding) {
        Ok(text) => text,
        Err(problem) => {
            faults.add(Place::default(), None, problem);
            return None;
        }
    };
    if text.marked || text.encoding != Encoding::Utf8 {
        let by = if text.marked { "its byte order mark" } else { "--encoding" };
        notes.push(format!("read as {}, by {by}", text.encoding));
    }
    let mut records = Records::new(text.input);
    // A file that cannot be read here cannot be read below, where it is told.
    let first = records.peek_line().unwrap_or_default();
    let declared = header::declared_delimiter(first);
    records.delimiter = declared.unwrap_or_else(|| header::delimiter(first));
    if declared.is_some() {
        _ = records.next();
    }
    if records.delimiter != b',' {
        let name = if records.delimiter == b';' { "semicolons" } else { "tabs" };
        notes.push(format!("cells are separated by {name}"));
    }
    Some((records, text.bytes))
}

fn read_header<R: FileRow>(records: &mut Records<impl Read>, reading: &mut Reading<'_>) -> Option<Header> {
    let faults = &mut reading.faults;
    match records.next() {
        Ok(Some(record)) => Some(Header::read(&record, R::LEDGER, R::COLUMNS, reading.options, faults)),
        Ok(None) => {
            let problem = Problem::new("the file is empty: it has not even a header");
            let hint = "a ledger without rows is a file of its header line";
            faults.add(Place::default(), None, problem.hint(hint));
            None
        }
        Err(broken) => {
            broken_file(broken, Place::line(records.line()), faults);
            None
        }
    }
}

/// Hands over each record: its line, its key where that is sound, its row where nothing is at fault.
fn read_rows<R: FileRow>(
    records: &mut Records<impl Read>,
    header: &Header,
    reading: &mut Reading<'_>,
    tell: &mut dyn FnMut(u64),
    mut take: impl FnMut(u64, Option<(&str, &str)>, Option<R>) -> ControlFlow<()>,
) {
    let mut count = 0;
    loop {
        let record = match records.next() {
            Ok(Some(record)) => record,
            Ok(None) => break,
            Err(broken) => {
                let cell = match broken {
                    Broken::UnclosedQuote { cell } | Broken::NotUtf8 { cell, .. } => header.place(cell),
                    Broken::Io(_) | Broken::TooLong => Place::default(),
                };
                broken_file(broken, Place { line: Some(records.line()), ..cell }, &mut reading.faults);
                break;
            }
        };
        count += 1;
        if count % TOLD_EVERY == 0 {
            tell(count);
        }
        if let Some(cell) = record.after_quote {
            let place = Place { line: Some(record.line), ..header.place(cell) };
            let problem = Problem::new("text after the closing quotation mark");
            reading.faults.add(place, Some(record.cell(cell)), problem);
        } else if record.len() != header.width() {
            let problem = format!("{} cells, but the header has {}", record.len(), header.width());
            reading.faults.add(Place::line(record.line), Some(record.text()), Problem::new(problem));
        } else {
            let mut cells = Cells::new(R::COLUMNS, header, &record, reading);
            let row = R::read(&mut cells);
            if take(record.line, cells.key(), row).is_break() {
                break;
            }
        }
    }
    tell(count);
}

/// Why the rest of a file is not read.
pub(super) fn broken_file(broken: Broken, place: Place<'_>, faults: &mut FileFaults) {
    let escaped = |bytes: &[u8]| bytes.iter().map(|b| format!("\\x{b:02X}")).collect::<String>();
    let (value, problem) = match broken {
        Broken::UnclosedQuote { .. } => (None, Problem::new("a quotation mark that is never closed")),
        Broken::TooLong => {
            (None, Problem::new("a record of more than 1 MiB begins here: is a quotation mark not closed?"))
        }
        Broken::NotUtf8 { bytes, .. } => (
            Some(escaped(&bytes)),
            Problem::new("not valid UTF-8; the rest of the file was not read")
                .hint("--encoding gb18030 for files from Chinese systems; else export as UTF-8"),
        ),
        Broken::Io(error) => match error.get_ref().and_then(|e| e.downcast_ref::<Malformed>()) {
            Some(malformed) => (
                Some(escaped(&malformed.bytes)),
                Problem::new(format!("{malformed}; the rest of the file was not read"))
                    .hint("--encoding says how the files are encoded"),
            ),
            None => (None, Problem::new(format!("cannot be read: {error}"))),
        },
    };
    faults.add(place, value.as_deref(), problem);
}

fn told(tallies: &[Tally], header: &Header, what: &str, done: &str) -> Vec<String> {
    let seen = tallies.iter().enumerate().filter(|(_, tally)| tally.count > 0);
    let text = |(index, tally): (usize, &Tally)| {
        let column = header.column(index).column.unwrap_or_default();
        let Tally { count, line, value } = tally;
        format!("{what} in {column}: {count}, first {} on line {line}; {done}", Quoted(value))
    };
    seen.map(text).collect()
}

/// The keys of all rows, to find those that come twice. Hashes are sorted, and only keys whose
/// hashes are equal are compared.
#[derive(Default)]
struct Keys {
    hashing: RandomState,
    seen: Vec<Seen>,
    /// One key behind the other: the tenant, then the id.
    texts: String,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Seen {
    hash: u64,
    line: u64,
    /// Where its text begins.
    at: u64,
}

impl Keys {
    /// Notes the tenant and id of a record.
    fn add(&mut self, key: (&str, &str), line: u64) {
        self.seen.push(Seen { hash: self.hashing.hash_one(key), line, at: self.texts.len() as u64 });
        // No cell holds the character that parts them.
        for text in [key.0, "\0", key.1, "\0"] {
            self.texts.push_str(text);
        }
    }

    /// The line of each row whose key came before, the line on which it came first, and its id.
    fn duplicates(mut self) -> Vec<(u64, u64, String)> {
        self.seen.sort_unstable();
        let key = |seen: &Seen| {
            let mut parts = self.texts[seen.at as usize..].split('\0');
            (parts.next().unwrap_or_default(), parts.next().unwrap_or_default())
        };
        let mut duplicates = Vec::new();
        for same_hash in self.seen.chunk_by(|a, b| a.hash == b.hash) {
            for (n, again) in same_hash.iter().enumerate().skip(1) {
                if let Some(first) = same_hash[..n].iter().find(|first| key(first) == key(again)) {
                    duplicates.push((again.line, first.line, key(again).1.to_owned()));
                }
            }
        }
        duplicates.sort_unstable();
        duplicates
    }
}
