//! A file that is read in pieces, side by side.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::SystemTime;

use super::copied::Copied;
use crate::core::status::Ledger;
use crate::files::cells::{Cells, Reading};
use crate::files::decode;
use crate::files::faults::{FileFaults, Note};
use crate::files::header::Header;
use crate::files::options::{Encoding, ReadOptions};
use crate::files::read::{noted, open};
use crate::files::records::{Record, Records};
use crate::files::table::{Column, FileRow, columns};

/// A file whose bytes are its text, and the way its rows stand in it.
pub(super) struct Source {
    file: File,
    pub(super) ledger: Ledger,
    pub(super) columns: &'static [Column],
    pub(super) header: Header,
    pub(super) delimiter: u8,
    /// Where its rows begin, how long it is and how long its pieces are, in bytes.
    pub(super) begin: u64,
    pub(super) length: u64,
    pub(super) piece: u64,
    modified: SystemTime,
}

/// A place in a file that others read, too.
pub(super) struct At<'f> {
    file: &'f File,
    offset: u64,
}

impl Read for At<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(into, self.offset)?;
        self.offset += read as u64;
        Ok(read)
    }
}

impl Seek for At<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let offset = match to {
            SeekFrom::Start(offset) => Some(offset),
            SeekFrom::Current(by) => self.offset.checked_add_signed(by),
            SeekFrom::End(by) => self.file.metadata()?.len().checked_add_signed(by),
        };
        self.offset = offset.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.offset)
    }
}

impl Source {
    /// A file as people have it.
    pub(super) fn open(
        path: &Path,
        ledger: Ledger,
        options: &ReadOptions,
        piece: u64,
        notes: &mut Vec<Note>,
    ) -> Option<Self> {
        let text = decode::open(path, options.encoding).ok()?;
        if text.marked || text.encoding != Encoding::Utf8 {
            return None;
        }
        let mut faults = FileFaults::new("", Some(ledger));
        let mut told = Vec::new();
        let (mut records, _) = open(path, options.encoding, &mut faults, &mut told)?;
        let header = records.next().ok()??;
        let columns = columns(ledger);
        let header = Header::read(&header, ledger, columns, options, &mut faults);
        if faults.count > 0 {
            return None;
        }
        told.extend(header.notes.iter().cloned());
        notes.extend(noted(path, ledger, told));
        let (begin, delimiter) = (records.offset(), records.delimiter);
        let file = File::open(path).ok()?;
        Self::new(file, ledger, columns, header, (delimiter, begin), piece)
    }

    /// A file that the store has written ([`ReadOptions::from_database`]).
    pub(super) fn of_database(file: File, ledger: Ledger, piece: u64) -> Option<Self> {
        let columns = columns(ledger);
        let header = Header::of_database(columns);
        Self::new(file, ledger, columns, header, (b',', 0), piece)
    }

    fn new(
        file: File,
        ledger: Ledger,
        columns: &'static [Column],
        header: Header,
        (delimiter, begin): (u8, u64),
        piece: u64,
    ) -> Option<Self> {
        let metadata = file.metadata().ok()?;
        let (length, modified) = (metadata.len(), metadata.modified().ok()?);
        Some(Self { file, ledger, columns, header, delimiter, begin, length, piece, modified })
    }

    /// Whether nobody has written to it since it was opened.
    pub(super) fn is_unchanged(&self) -> bool {
        let now = self.file.metadata().and_then(|now| Ok((now.len(), now.modified()?)));
        now.is_ok_and(|now| now == (self.length, self.modified))
    }

    pub(super) fn pieces(&self) -> usize {
        (self.length.saturating_sub(self.begin)).div_ceil(self.piece) as usize
    }

    /// How many rows so many bytes of it have, where they are not unusually short: room is made for them at once.
    pub(super) fn rows_at_most(&self, bytes: u64) -> usize {
        bytes.min(self.length) as usize / 96
    }

    pub(super) fn piece(&self, piece: usize) -> Range<u64> {
        let begin = self.begin + piece as u64 * self.piece;
        begin..begin + self.piece
    }

    pub(super) fn records(&self, from: u64) -> Records<At<'_>> {
        let mut records = Records::at(from, At { file: &self.file, offset: from });
        records.delimiter = self.delimiter;
        records
    }

    fn reading<'o>(&self, options: &'o ReadOptions) -> Reading<'o> {
        Reading::new(options, self.ledger, self.columns.len(), FileFaults::new("", None))
    }

    /// Takes the cells of every record that begins in a piece; gives where the first of them begins, and
    /// the first after them.
    pub(super) fn read_piece(
        &self,
        piece: usize,
        options: &ReadOptions,
        mut take: impl FnMut(u32, &mut Cells<'_, '_>) -> Option<()>,
    ) -> Option<Range<u64>> {
        let Range { start, end } = self.piece(piece);
        let mut records = self.records(if piece == 0 { start } else { start - 1 });
        if piece > 0 {
            // It is the end of the record before, unless that one holds line ends: then the pieces do not meet.
            records.skip_line().ok()?;
        }
        let mut reading = self.reading(options);
        let (mut first, mut after) = (None, u64::MAX);
        while let Some(record) = records.next().ok()? {
            first.get_or_insert(record.offset);
            if record.offset >= end {
                after = record.offset;
                break;
            }
            let mut cells = self.cells(&record, &mut reading)?;
            take((record.offset - start) as u32, &mut cells)?;
        }
        reading.is_silent().then(|| first.unwrap_or(after)..after)
    }

    /// The rows of a stretch; nothing where they are not as they were.
    pub(super) fn parse<R: FileRow>(
        &self,
        copied: &[Copied],
        stretch: usize,
        options: &ReadOptions,
    ) -> Option<Vec<R>> {
        let text = copied.iter().map(|part| part.of(stretch)).collect::<Vec<_>>().concat();
        let mut records = Records::new(&text[..]);
        records.delimiter = self.delimiter;
        let mut reading = self.reading(options);
        let mut rows = Vec::with_capacity(text.len() / 128);
        while let Some(record) = records.next().ok()? {
            rows.push(R::read(&mut self.cells(&record, &mut reading)?)?);
        }
        Some(rows)
    }

    fn cells<'c, 'o>(
        &'c self,
        record: &'c Record<'c>,
        reading: &'c mut Reading<'o>,
    ) -> Option<Cells<'c, 'o>> {
        let is_whole = record.after_quote.is_none() && record.len() == self.header.width();
        is_whole.then(|| Cells::new(self.columns, &self.header, record, reading))
    }
}

/// Whether pieces of one file meet: each begins where the one before it ends.
pub(super) fn meet(pieces: &[Range<u64>]) -> bool {
    pieces.windows(2).all(|pair| pair[0].end == pair[1].start)
}
