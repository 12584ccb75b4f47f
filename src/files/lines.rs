//! Files that may be longer than memory and are read line by line: CSV under a header of names, or a JSON
//! object a line. What each line says is up to who reads it.

use std::collections::BTreeSet;
use std::fmt;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::str::FromStr;

use super::cells::trim;
use super::decode;
use super::faults::{Faults, FileFaults, Place, Problem, Quoted};
use super::options::{BadOption, Encoding};
use super::read::{broken_file, open};
use super::records::{Broken, Record, Records};

/// After how many lines progress is told.
pub(super) const TOLD_EVERY: u64 = 1 << 14;
/// A line of JSON that is longer is no line of a log.
const LONGEST: u64 = 1 << 20;

/// A column of a file that is read line by line, or a member of its objects.
pub trait LineColumn: Copy + PartialEq + fmt::Display + FromStr + 'static {
    /// What files of this kind are, for people: `an access log`.
    const FILE: &'static str;
    /// The flag that says what a column of ours is called in the file.
    const FLAG: &'static str;
    /// All names of ours.
    const OURS: &'static [&'static str];
}

/// `THEIRS=OURS`: which column of the file holds what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameMap<C> {
    pub theirs: String,
    pub ours: C,
}

impl<C: LineColumn> FromStr for NameMap<C> {
    type Err = BadOption;

    fn from_str(text: &str) -> Result<Self, BadOption> {
        let (theirs, ours) = text
            .rsplit_once('=')
            .map(|(theirs, ours)| (theirs.trim(), ours.trim()))
            .filter(|(theirs, _)| !theirs.is_empty())
            .ok_or_else(|| BadOption(format!("{text:?} is not THEIRS=OURS, such as time=at")))?;
        let ours = ours.parse().map_err(|_| {
            let names = C::OURS.join(", ");
            BadOption(format!("{} has no column {ours:?}; it has {names}", C::FILE))
        })?;
        Ok(Self { theirs: theirs.to_owned(), ours })
    }
}

impl<C: LineColumn> fmt::Display for NameMap<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.theirs, self.ours)
    }
}

/// The file's name of a column, where it is another than ours.
pub(super) fn theirs<C: LineColumn>(map: &[NameMap<C>], ours: C) -> Option<&str> {
    map.iter().find(|map| map.ours == ours).map(|map| map.theirs.as_str())
}

/// Names of which two would be one column.
pub(super) fn named_twice<C: LineColumn>(map: &[NameMap<C>], faults: &mut FileFaults) {
    for (i, named) in map.iter().enumerate() {
        if let Some(other) = map[..i].iter().find(|other| other.ours == named.ours) {
            let problem =
                Problem::new(format!("names {} twice, also as {}", named.ours, Quoted(&other.theirs)));
            faults.add(Place::default(), Some(&format!("{} {named}", C::FLAG)), problem);
        }
    }
}

/// How the lines of a file come.
pub(super) enum Lines {
    Records(Records<Box<dyn Read>>),
    /// One that begins with `{`, or with `[` by mistake: no header does.
    Objects(Box<dyn BufRead>),
}

/// Opens a file whose first byte says which of the two it is.
pub(super) fn open_lines(
    path: &Path,
    encoding: Encoding,
    faults: &mut FileFaults,
    notes: &mut Vec<String>,
) -> Option<Lines> {
    let mut text = match decode::open(path, encoding) {
        Ok(text) => text,
        Err(problem) => {
            faults.add(Place::default(), None, problem);
            return None;
        }
    };
    let mut begin = Vec::new();
    let mut byte = [0];
    while matches!(text.input.read(&mut byte), Ok(1)) {
        begin.push(byte[0]);
        if !byte[0].is_ascii_whitespace() || begin.len() as u64 == LONGEST {
            break;
        }
    }
    if matches!(begin.last(), Some(b'{' | b'[')) {
        let input = std::io::Cursor::new(begin).chain(text.input);
        return Some(Lines::Objects(Box::new(BufReader::with_capacity(1 << 18, input))));
    }
    open(path, encoding, faults, notes).map(|(records, _)| Lines::Records(records))
}

/// What reading a file came to.
///
/// # Errors
/// Its faults, where it has any.
pub(super) fn ended(mut faults: FileFaults, notes: Vec<String>) -> Result<Vec<String>, Faults> {
    faults.sort();
    if faults.count > 0 { Err(Faults { files: vec![faults] }) } else { Ok(notes) }
}

/// Reads the first record, which names the columns.
pub(super) fn header<H>(
    records: &mut Records<impl Read>,
    faults: &mut FileFaults,
    read: impl FnOnce(&Record<'_>, &mut FileFaults) -> H,
) -> Option<H> {
    match records.next() {
        Ok(Some(record)) => return Some(read(&record, faults)),
        Ok(None) => {
            faults.add(Place::default(), None, Problem::new("the file is empty: it has not even a header"));
        }
        Err(broken) => broken_file(broken, Place::line(records.line()), faults),
    }
    None
}

/// The columns' names in a header, in its order.
pub(super) struct Names(Vec<String>);

impl Names {
    pub fn read(record: &Record<'_>) -> Self {
        Self(record.iter().map(|name| trim(name).to_owned()).collect())
    }

    /// The same in small letters.
    pub fn lowercase(self) -> Self {
        Self(self.0.iter().map(|name| name.to_lowercase()).collect())
    }

    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// The places at which a name stands.
    pub fn places(&self, name: &str) -> Vec<usize> {
        self.iter().enumerate().filter(|(_, other)| *other == name).map(|(place, _)| place).collect()
    }

    pub fn place(&self, place: usize) -> Place<'_> {
        Place { line: None, column: self.0.get(place).map(String::as_str), index: Some(place) }
    }

    /// The place of a column of ours, where it stands in the header; else by its own name.
    pub fn place_or<'p>(&'p self, place: Option<usize>, ours: &'p str) -> Place<'p> {
        place.map_or(Place { column: Some(ours), ..Place::default() }, |place| self.place(place))
    }

    /// Gives out every record that has as many cells as there are names; whatever else there is, is a fault.
    pub fn each_record(
        &self,
        records: &mut Records<impl Read>,
        faults: &mut FileFaults,
        mut take: impl FnMut(&Record<'_>, &mut FileFaults),
    ) {
        loop {
            let record = match records.next() {
                Ok(Some(record)) => record,
                Ok(None) => return,
                Err(broken) => {
                    let cell = match broken {
                        Broken::UnclosedQuote { cell } | Broken::NotUtf8 { cell, .. } => self.place(cell),
                        Broken::Io(_) | Broken::TooLong => Place::default(),
                    };
                    return broken_file(broken, Place { line: Some(records.line()), ..cell }, faults);
                }
            };
            if let Some(cell) = record.after_quote {
                let place = Place { line: Some(record.line), ..self.place(cell) };
                let problem = Problem::new("text after the closing quotation mark");
                faults.add(place, Some(record.cell(cell)), problem);
            } else if record.len() != self.0.len() {
                let problem = format!("{} cells, but the header has {}", record.len(), self.0.len());
                faults.add(Place::line(record.line), Some(record.text()), Problem::new(problem));
            } else {
                take(&record, faults);
            }
        }
    }
}

/// How many names of members that nobody knows are told.
const STRANGE: usize = 20;

/// What is told of the names of a file's columns or members: which of them nobody knows, and which of ours are not there.
pub(super) fn name_notes<'n>(
    what: &str,
    unknown: impl IntoIterator<Item = &'n str>,
    lacking: &[String],
) -> Vec<String> {
    let unknown: Vec<_> = unknown.into_iter().map(|name| Quoted(name).to_string()).collect();
    let ignored =
        (!unknown.is_empty()).then(|| format!("unknown {what} are ignored: {}", unknown.join(", ")));
    let lacking =
        (!lacking.is_empty()).then(|| format!("{what} that are not in the file: {}", lacking.join(", ")));
    ignored.into_iter().chain(lacking).collect()
}

/// The names of the members of a file's objects, as far as they are not read, and those that are.
pub(super) struct Members<const N: usize> {
    unknown: BTreeSet<String>,
    is_there: [bool; N],
}

impl<const N: usize> Members<N> {
    pub const fn new() -> Self {
        Self { unknown: BTreeSet::new(), is_there: [false; N] }
    }

    /// A member of this name, which is the column of ours at this place.
    pub fn see(&mut self, name: &str, ours: Option<usize>) {
        match ours {
            Some(place) => self.is_there[place] = true,
            None if self.unknown.len() < STRANGE && !self.unknown.contains(name) => {
                self.unknown.insert(name.to_owned());
            }
            None => {}
        }
    }

    /// What is to be told of them, where these are all names of ours.
    pub fn notes(&self, ours: &[&str]) -> Vec<String> {
        let lacking = ours.iter().zip(self.is_there).filter(|(_, is_there)| !is_there);
        let lacking: Vec<_> = lacking.map(|(name, _)| (*name).to_owned()).collect();
        name_notes("members", self.unknown.iter().map(String::as_str), &lacking)
    }
}

/// Gives out every line that is not empty, with its number; one that `take` cannot read is a fault, as not `what`.
pub(super) fn each_object(
    mut input: impl BufRead,
    what: &str,
    faults: &mut FileFaults,
    mut take: impl FnMut(u64, &[u8], &mut FileFaults) -> serde_json::Result<()>,
) {
    let (mut line, mut bytes) = (0, Vec::new());
    loop {
        bytes.clear();
        line += 1;
        match input.by_ref().take(LONGEST).read_until(b'\n', &mut bytes) {
            Ok(0) => return,
            Ok(_) => {}
            Err(e) => return broken_file(Broken::Io(e), Place::line(line), faults),
        }
        if bytes.len() as u64 == LONGEST && bytes.last() != Some(&b'\n') {
            return broken_file(Broken::TooLong, Place::line(line), faults);
        }
        let text = bytes.trim_ascii();
        if text.is_empty() {
            continue;
        }
        if let Err(e) = take(line, text, faults) {
            let mut problem = Problem::new(format!("not {what}: {e}"));
            if text.starts_with(b"[") {
                problem = problem.hint("one object a line, and no array around them: jq -c '.[]' FILE");
            }
            faults.add(Place::line(line), Some(&String::from_utf8_lossy(text)), problem);
        }
    }
}

/// That a cell or member which is needed says nothing, or is not there. `why` begins with a blank, or is empty.
pub(super) fn absent(why: &str, is_there: bool) -> Problem {
    let how = if is_there { "empty" } else { "missing" };
    Problem::new(format!("required{why}, but {how}"))
}
