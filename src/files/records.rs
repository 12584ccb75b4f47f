//! CSV into records, with the physical line of each (RFC 4180, any line end).
//!
//! The `csv` crate writes our files, but does not read them: it takes an unclosed quote for a cell
//! that reaches to the end of the file, and counts neither a CRLF nor an empty line before a record.

use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;

/// A record longer than this is an unclosed quote.
const LONGEST: usize = 1 << 20;

/// How much is read at once.
const BLOCK: usize = 1 << 18;

/// Reads records one after the other; holds no more than one and a block.
pub(super) struct Records<R> {
    input: R,
    pub delimiter: u8,
    /// What has been read and not yet given out is `buffer[start..end]`.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    whole: bool,
    /// The physical line at `start`, counted from 1.
    line: u64,
    /// The place of `start` in the input, in bytes.
    offset: u64,
    cells: Vec<Quotable>,
}

/// A cell's place in its record; `doubled` when quotation marks in it are written twice.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Quotable {
    range: Range<usize>,
    doubled: bool,
}

/// One record of a file.
pub(super) struct Record<'r> {
    /// The physical line on which it begins.
    pub line: u64,
    /// Where it begins in the input, in bytes.
    pub offset: u64,
    /// Whether some cell holds a NUL character.
    pub has_nul: bool,
    text: &'r str,
    cells: &'r [Quotable],
    /// The cell, counted from 0, behind whose closing quotation mark more text stands.
    pub after_quote: Option<usize>,
}

impl<'r> Record<'r> {
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// A cell without its quotation marks, counted from 0; empty beyond the last.
    pub fn cell(&self, index: usize) -> &'r str {
        self.cells.get(index).and_then(|cell| self.text.get(cell.range.clone())).unwrap_or("")
    }

    /// Whether a cell, counted from 0, stands in quotation marks.
    pub fn is_quoted(&self, index: usize) -> bool {
        let begin = self.cells.get(index).map_or(0, |cell| cell.range.start);
        begin.checked_sub(1).is_some_and(|before| self.text.as_bytes()[before] == b'"')
    }

    pub fn iter(&self) -> impl Iterator<Item = &'r str> {
        (0..self.len()).map(|index| self.cell(index))
    }

    /// The record as it stands in the file, without its line end.
    pub fn text(&self) -> &'r str {
        self.text.trim_end_matches(['\r', '\n'])
    }
}

/// Why no further record can be read.
#[derive(Debug)]
pub(super) enum Broken {
    Io(io::Error),
    /// The quotation mark before this cell, counted from 0, is never closed.
    UnclosedQuote {
        cell: usize,
    },
    TooLong,
    /// A cell, counted from 0, is not UTF-8: its bytes.
    NotUtf8 {
        cell: usize,
        bytes: Vec<u8>,
    },
}

impl<R: Read> Records<R> {
    pub fn new(input: R) -> Self {
        Self::at(0, input)
    }

    /// As [`Self::new`], of an input that stands at this byte of the whole. Lines are counted from there.
    pub fn at(offset: u64, input: R) -> Self {
        Self {
            input,
            delimiter: b',',
            buffer: vec![0; BLOCK],
            start: 0,
            end: 0,
            whole: false,
            line: 1,
            offset,
            cells: Vec::new(),
        }
    }

    /// Where the next record begins, in bytes; empty lines may stand before it.
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// The physical line on which the next record begins, or the one that is broken.
    pub const fn line(&self) -> u64 {
        self.line
    }

    /// The next line that is not empty, without taking it.
    pub fn peek_line(&mut self) -> io::Result<&[u8]> {
        const ENDS: [u8; 2] = [b'\n', b'\r'];
        loop {
            let waiting = &self.buffer[self.start..self.end];
            let begin = waiting.iter().position(|b| !ENDS.contains(b)).unwrap_or(waiting.len());
            let length = waiting[begin..].iter().position(|b| ENDS.contains(b));
            if length.is_some() || self.whole || waiting.len() >= LONGEST {
                let end = length.map_or(self.end, |length| self.start + begin + length);
                return Ok(&self.buffer[self.start + begin..end]);
            }
            self.fill()?;
        }
    }

    /// Finds the next record that is not an empty line, and goes behind it: its line, its length with its line end,
    /// and its cell behind whose closing quotation mark more text stands.
    fn find(&mut self) -> Result<Option<(u64, usize, Option<usize>)>, Broken> {
        loop {
            let waiting = &self.buffer[self.start..self.end];
            if waiting.is_empty() && self.whole {
                return Ok(None);
            }
            match split(waiting, self.delimiter, self.whole, &mut self.cells) {
                Split::Record { used, lines, after_quote } => {
                    let line = self.line;
                    self.start += used;
                    self.offset += used as u64;
                    self.line += lines;
                    let empty = matches!(&self.cells[..], [cell] if cell.range == (0..0));
                    if !empty {
                        return Ok(Some((line, used, after_quote)));
                    }
                }
                Split::UnclosedQuote => return Err(Broken::UnclosedQuote { cell: self.cells.len() }),
                Split::More if waiting.len() >= LONGEST => return Err(Broken::TooLong),
                Split::More => self.fill().map_err(Broken::Io)?,
            }
        }
    }

    /// The next record as it stands in the input, with its line end.
    pub fn next_bytes(&mut self) -> Result<Option<&[u8]>, Broken> {
        let found = self.find()?;
        Ok(found.map(|(_, used, _)| &self.buffer[self.start - used..self.start]))
    }

    /// The next record that is not an empty line.
    pub fn next(&mut self) -> Result<Option<Record<'_>>, Broken> {
        let Some((line, used, after_quote)) = self.find()? else { return Ok(None) };
        let record = &mut self.buffer[self.start - used..self.start];
        for cell in self.cells.iter_mut().filter(|cell| cell.doubled) {
            undouble(record, &mut cell.range);
        }
        let has_nul = memchr::memchr(0, record).is_some();
        let offset = self.offset - used as u64;
        match std::str::from_utf8(record) {
            Ok(text) => Ok(Some(Record { line, offset, has_nul, text, cells: &self.cells, after_quote })),
            Err(error) => {
                self.line = line;
                let at = error.valid_up_to();
                let cell = self.cells.iter().rposition(|cell| cell.range.start <= at).unwrap_or(0);
                let bytes = record[at..].iter().copied().take(error.error_len().unwrap_or(4)).collect();
                Err(Broken::NotUtf8 { cell, bytes })
            }
        }
    }

    /// Drops everything up to and including the next line feed, or all there is.
    pub fn skip_line(&mut self) -> io::Result<()> {
        loop {
            let waiting = &self.buffer[self.start..self.end];
            let end = memchr::memchr(b'\n', waiting).map(|at| at + 1);
            let used = end.unwrap_or(waiting.len());
            self.start += used;
            self.offset += used as u64;
            if end.is_some() || self.whole {
                return Ok(());
            }
            self.fill()?;
        }
    }

    /// Reads on behind what is waiting.
    fn fill(&mut self) -> io::Result<()> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.buffer.len() < self.end + BLOCK / 2 {
            self.buffer.resize(self.end + BLOCK, 0);
        }
        loop {
            match self.input.read(&mut self.buffer[self.end..]) {
                Ok(read) => {
                    self.end += read;
                    self.whole = read == 0;
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl<R: Read + Seek> Records<R> {
    /// Goes to a place of the input at which a record begins.
    pub fn jump(&mut self, offset: u64) -> io::Result<()> {
        let waiting = (self.end - self.start) as u64;
        match offset.checked_sub(self.offset).filter(|skip| *skip <= waiting) {
            Some(skip) => self.start += skip as usize,
            None => {
                self.input.seek(SeekFrom::Start(offset))?;
                (self.start, self.end, self.whole) = (0, 0, false);
            }
        }
        self.offset = offset;
        Ok(())
    }
}

/// What stands at the start of some bytes.
#[derive(Debug, PartialEq, Eq)]
enum Split {
    /// A record of so many bytes and line ends, its own line end included.
    Record {
        used: usize,
        lines: u64,
        after_quote: Option<usize>,
    },
    UnclosedQuote,
    /// It cannot be told before more is read.
    More,
}

/// Finds the first record and its cells. `whole` says that nothing follows the bytes.
fn split(bytes: &[u8], delimiter: u8, whole: bool, cells: &mut Vec<Quotable>) -> Split {
    if let Some(used) = split_unquoted(bytes, delimiter, cells) {
        return Split::Record { used, lines: 1, after_quote: None };
    }
    let unquoted = |from: usize| {
        let rest = &bytes[from..];
        let end = rest.iter().position(|b| *b == delimiter || *b == b'\n' || *b == b'\r');
        from + end.unwrap_or(rest.len())
    };
    let (mut at, mut lines, mut after_quote) = (0, 0, None);
    cells.clear();
    loop {
        let cell = if bytes.get(at) == Some(&b'"') {
            let cell = match quoted(bytes, at + 1, whole, &mut lines) {
                Ok(cell) => cell,
                Err(split) => return split,
            };
            let closed = cell.range.end + 1;
            at = unquoted(closed);
            if at > closed {
                after_quote = after_quote.or(Some(cells.len()));
            }
            cell
        } else {
            let begin = at;
            at = unquoted(begin);
            Quotable { range: begin..at, doubled: false }
        };
        cells.push(cell);
        let used = match (bytes.get(at), bytes.get(at + 1)) {
            (Some(b'\r'), Some(b'\n')) => at + 2,
            (Some(b'\r') | None, None) if !whole => return Split::More,
            (Some(b'\n' | b'\r'), _) => at + 1,
            (None, _) => return Split::Record { used: at, lines, after_quote },
            (Some(_), _) => {
                at += 1;
                continue;
            }
        };
        return Split::Record { used, lines: lines + 1, after_quote };
    }
}

/// The first record, eight bytes at a time, where no quotation mark begins a cell of it and its end is well
/// before that of the bytes; nearly all are so. Gives its length, its line end included.
fn split_unquoted(bytes: &[u8], delimiter: u8, cells: &mut Vec<Quotable>) -> Option<usize> {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const LOW_BITS: u64 = ONES * 0x7f;
    /// The highest bit of each byte that is this one.
    fn find(word: u64, byte: u8) -> u64 {
        let differs = word ^ (ONES * u64::from(byte));
        !(((differs & LOW_BITS) + LOW_BITS) | differs | LOW_BITS)
    }

    cells.clear();
    if bytes.first() == Some(&b'"') {
        return None;
    }
    let mut begin = 0;
    for (i, word) in bytes.as_chunks::<8>().0.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let mut marks = find(word, delimiter) | find(word, b'\n') | find(word, b'\r');
        while marks != 0 {
            let at = i * 8 + marks.trailing_zeros() as usize / 8;
            marks &= marks - 1;
            cells.push(Quotable { range: begin..at, doubled: false });
            begin = at + 1;
            let next = *bytes.get(begin)?;
            match bytes[at] {
                b'\n' => return Some(begin),
                b'\r' => return Some(begin + usize::from(next == b'\n')),
                _ if next == b'"' => return None,
                _ => {}
            }
        }
    }
    None
}

/// The cell whose text begins at `begin`, behind its quotation mark; counts the line ends in it.
fn quoted(bytes: &[u8], begin: usize, whole: bool, lines: &mut u64) -> Result<Quotable, Split> {
    let (mut end, mut doubled) = (begin, false);
    loop {
        match (bytes.get(end), bytes.get(end + 1)) {
            (None, _) if whole => return Err(Split::UnclosedQuote),
            (None, _) => return Err(Split::More),
            (Some(b'"' | b'\r'), None) if !whole => return Err(Split::More),
            (Some(b'"'), Some(b'"')) => {
                doubled = true;
                end += 1;
            }
            (Some(b'"'), _) => return Ok(Quotable { range: begin..end, doubled }),
            (Some(b'\n'), _) => *lines += 1,
            (Some(b'\r'), next) if next != Some(&b'\n') => *lines += 1,
            _ => {}
        }
        end += 1;
    }
}

/// Writes doubled quotation marks once; blanks fill what the cell no longer needs.
fn undouble(record: &mut [u8], range: &mut Range<usize>) {
    let (mut from, mut to) = (range.start, range.start);
    while from < range.end {
        record[to] = record[from];
        to += 1;
        from += if record[from] == b'"' { 2 } else { 1 };
    }
    record[to..range.end].fill(b' ');
    range.end = to;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives out so many bytes at a time.
    struct Dripping<'a>(&'a [u8], usize);

    impl Read for Dripping<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let length = self.1.min(into.len()).min(self.0.len());
            into[..length].copy_from_slice(&self.0[..length]);
            self.0 = &self.0[length..];
            Ok(length)
        }
    }

    /// The records with their lines, however the bytes come in.
    fn records(text: &str) -> Vec<(u64, Vec<String>)> {
        let read = |step: usize| {
            let mut records = Records::new(Dripping(text.as_bytes(), step));
            let mut all = Vec::new();
            while let Some(record) = records.next().unwrap() {
                all.push((record.line, record.iter().map(str::to_owned).collect()));
            }
            all
        };
        let all: Vec<(u64, Vec<String>)> = read(usize::MAX);
        for step in [1, 2, 3] {
            assert_eq!(read(step), all, "{text:?} by {step}");
        }
        all
    }

    fn rows(expected: &[(u64, &[&str])]) -> Vec<(u64, Vec<String>)> {
        expected
            .iter()
            .map(|(line, cells)| (*line, cells.iter().map(|c| (*c).to_owned()).collect()))
            .collect()
    }

    #[test]
    fn lines_are_physical_whatever_ends_them() {
        for text in ["a,b\n1,2\n\n3,\n", "a,b\r\n1,2\r\n\r\n3,", "a,b\r1,2\r\r3,\r"] {
            assert_eq!(
                records(text),
                rows(&[(1, &["a", "b"]), (2, &["1", "2"]), (4, &["3", ""])]),
                "{text:?}"
            );
        }
        assert_eq!(records("\n\"a\nb\r\nc\rd\",\"\"\nx"), rows(&[(2, &["a\nb\r\nc\rd", ""]), (6, &["x"])]));
    }

    #[test]
    fn quotation_marks_count_only_at_the_start_of_a_cell() {
        assert_eq!(records("\"say \"\"é\"\"\",5\" disc,\"\""), rows(&[(1, &["say \"é\"", "5\" disc", ""])]));
        let mut open = Records::new(&b"a,b\n1,\"2\n3,4\n"[..]);
        open.next().unwrap();
        assert!(matches!(open.next(), Err(Broken::UnclosedQuote { cell: 1 })));
        assert_eq!(open.line(), 2);
        let mut after = Records::new(&b"a,\"b\" c,d\n"[..]);
        assert_eq!(after.next().unwrap().unwrap().after_quote, Some(1));
    }

    #[test]
    fn the_cell_that_is_not_utf8_is_named() {
        let mut records = Records::new(&b"a\n\"\"\"x\",\xb8\xb6,c\n"[..]);
        records.next().unwrap();
        let broken = records.next().map(|_| ()).unwrap_err();
        assert!(matches!(broken, Broken::NotUtf8 { cell: 1, ref bytes } if bytes == &[0xb8]), "{broken:?}");
        assert_eq!(records.line(), 2);
    }

    #[test]
    fn a_quote_that_swallows_the_file_is_not_read_to_its_end() {
        let mut records = Records::new(b"\"".chain(io::repeat(b'x')));
        assert!(matches!(records.next(), Err(Broken::TooLong)));
    }

    proptest::proptest! {
        /// What the `csv` crate writes, with whatever delimiter, comes back cell by cell.
        #[test]
        fn any_cells_come_back(
            cells in proptest::collection::vec(proptest::collection::vec("[a\",;\t\r\n é]{0,5}", 3), 0..8),
            delimiter in proptest::sample::select(&b",;\t"[..]),
            step in 1_usize..9,
        ) {
            let mut writer = csv::WriterBuilder::new().delimiter(delimiter).from_writer(Vec::new());
            for record in &cells {
                writer.write_record(record).unwrap();
            }
            let bytes = writer.into_inner().unwrap();
            let mut records = Records::new(Dripping(&bytes, step));
            records.delimiter = delimiter;
            for expected in &cells {
                let record = records.next().unwrap().unwrap();
                proptest::prop_assert_eq!(record.iter().collect::<Vec<_>>(), expected.iter().collect::<Vec<_>>());
                proptest::prop_assert_eq!(record.after_quote, None);
            }
            proptest::prop_assert!(records.next().unwrap().is_none());
        }
    }
}
