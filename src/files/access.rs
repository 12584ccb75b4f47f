//! An access log, line by line: CSV, or a JSON object a line. It may be longer than memory.

use std::borrow::Cow;
use std::fmt;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::str::FromStr;

use chrono_tz::Tz;
use serde_json::{Map, Value};

use super::amount::count;
use super::cells::trim;
use super::decode;
use super::faults::{Faults, FileFaults, Place, Problem, Quoted};
use super::mangled::{Mangled, mangled};
use super::options::{BadOption, Encoding};
use super::read::{broken_file, open};
use super::records::{Broken, Record, Records};
use crate::core::status::status_type;
use crate::core::time::{Span, TimeError, Timestamp, parse_instant};
use crate::core::trace::access::AccessLine;

/// After how many lines progress is told.
const TOLD_EVERY: u64 = 1 << 14;
/// A line of JSON that is longer is no line of a log.
const LONGEST: u64 = 1 << 20;

status_type!(
    /// A column of an access log, or a member of its objects.
    AccessColumn {
        /// When the request came in.
        At = "at",
        RequestId = "request_id",
        Tenant = "tenant_id",
        /// Who sent this attempt: client, gateway, …
        Source = "source",
        Attempt = "attempt",
        /// The status of the answer; empty where none came.
        Status = "status",
        /// Until the answer, or until it was given up.
        Latency = "latency_ms",
        Trace = "trace_id",
        Key = "idempotency_key",
        User = "user_id",
        Show = "show_id",
        /// The order that the answer names.
        Order = "order_id",
    }
);

const COLUMNS: usize = AccessColumn::ALL.len();

impl AccessColumn {
    const fn is_needed(self) -> bool {
        matches!(self, Self::At | Self::RequestId | Self::Source)
    }

    const fn is_id(self) -> bool {
        use AccessColumn::*;
        matches!(self, RequestId | Tenant | Trace | Key | User | Show | Order)
    }
}

/// `THEIRS=OURS`: which column of the file holds what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessMap {
    pub theirs: String,
    pub ours: AccessColumn,
}

impl FromStr for AccessMap {
    type Err = BadOption;

    fn from_str(text: &str) -> Result<Self, BadOption> {
        let (theirs, ours) = text
            .rsplit_once('=')
            .map(|(theirs, ours)| (theirs.trim(), ours.trim()))
            .filter(|(theirs, _)| !theirs.is_empty())
            .ok_or_else(|| BadOption(format!("{text:?} is not THEIRS=OURS, such as time=at")))?;
        let ours = ours.parse().map_err(|_| {
            let names = AccessColumn::NAMES.join(", ");
            BadOption(format!("an access log has no column {ours:?}; it has {names}"))
        })?;
        Ok(Self { theirs: theirs.to_owned(), ours })
    }
}

impl fmt::Display for AccessMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.theirs, self.ours)
    }
}

/// How an access log is to be read.
#[derive(Clone, Debug, Default)]
pub struct AccessOptions {
    pub encoding: Encoding,
    /// The zone of times that have no offset; without it they are refused.
    pub timezone: Option<Tz>,
    /// Takes ids as they are that a tool seems to have changed.
    pub accept_ids: bool,
    pub map: Vec<AccessMap>,
}

impl AccessOptions {
    /// The file's name of a column.
    fn name(&self, column: AccessColumn) -> &str {
        let map = self.map.iter().find(|map| map.ours == column);
        map.map_or(column.as_str(), |map| &map.theirs)
    }
}

/// Reads a log; `take` gets its lines, and `progress` is told how many there were. What was detected is
/// returned, for a person to know.
///
/// # Errors
/// Every fault of the file. What was taken before is then worth nothing.
pub fn read_access(
    path: &Path,
    options: &AccessOptions,
    take: &mut dyn FnMut(AccessLine),
    progress: &mut dyn FnMut(u64),
) -> Result<Vec<String>, Faults> {
    let mut faults = FileFaults::new(path.display().to_string(), None);
    for (i, map) in options.map.iter().enumerate() {
        if let Some(other) = options.map[..i].iter().find(|other| other.ours == map.ours) {
            let problem =
                Problem::new(format!("names {} twice, also as {}", map.ours, Quoted(&other.theirs)));
            faults.add(Place::default(), Some(&format!("--access-map {map}")), problem);
        }
    }
    let mut notes = Vec::new();
    let mut reading = Reading { options, take, progress, count: 0 };
    match decode::open(path, options.encoding) {
        Err(problem) => faults.add(Place::default(), None, problem),
        Ok(mut text) => {
            let mut first = [0];
            if text.input.read(&mut first).is_ok_and(|read| read == 1) && first[0] == b'{' {
                let input = first.as_slice().chain(text.input);
                reading.objects(BufReader::with_capacity(1 << 18, input), &mut faults);
            } else if let Some((records, _)) = open(path, options.encoding, &mut faults, &mut notes) {
                reading.records(records, &mut faults, &mut notes);
            }
        }
    }
    faults.sort();
    if faults.count > 0 { Err(Faults { files: vec![faults] }) } else { Ok(notes) }
}

struct Reading<'r> {
    options: &'r AccessOptions,
    take: &'r mut dyn FnMut(AccessLine),
    progress: &'r mut dyn FnMut(u64),
    count: u64,
}

impl Reading<'_> {
    fn records(&mut self, mut records: Records<impl Read>, faults: &mut FileFaults, notes: &mut Vec<String>) {
        let header = match records.next() {
            Ok(Some(record)) => Header::read(&record, self.options, faults, notes),
            Ok(None) => {
                let problem = Problem::new("the file is empty: it has not even a header");
                return faults.add(Place::default(), None, problem);
            }
            Err(broken) => return broken_file(broken, Place::line(records.line()), faults),
        };
        // Lines under a header that is at fault would all be at fault.
        if faults.count > 0 {
            return;
        }
        loop {
            let record = match records.next() {
                Ok(Some(record)) => record,
                Ok(None) => break,
                Err(broken) => {
                    let cell = match broken {
                        Broken::UnclosedQuote { cell } | Broken::NotUtf8 { cell, .. } => header.place(cell),
                        Broken::Io(_) | Broken::TooLong => Place::default(),
                    };
                    return broken_file(broken, Place { line: Some(records.line()), ..cell }, faults);
                }
            };
            if let Some(cell) = record.after_quote {
                let place = Place { line: Some(record.line), ..header.place(cell) };
                let problem = Problem::new("text after the closing quotation mark");
                faults.add(place, Some(record.cell(cell)), problem);
            } else if record.len() != header.names.len() {
                let problem = format!("{} cells, but the header has {}", record.len(), header.names.len());
                faults.add(Place::line(record.line), Some(record.text()), Problem::new(problem));
            } else {
                let cell = |column: AccessColumn| {
                    header.places[column as usize].map(|place| Cow::Borrowed(record.cell(place)))
                };
                let place = |column: AccessColumn| match header.places[column as usize] {
                    Some(index) => header.place(index),
                    None => Place { column: Some(column.as_str()), ..Place::default() },
                };
                self.line(record.line, &cell, &place, faults);
            }
        }
    }

    fn objects(&mut self, mut input: impl BufRead, faults: &mut FileFaults) {
        let (mut line, mut bytes) = (0, Vec::new());
        loop {
            bytes.clear();
            line += 1;
            match input.by_ref().take(LONGEST).read_until(b'\n', &mut bytes) {
                Ok(0) => break,
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
            match serde_json::from_slice::<Map<String, Value>>(text) {
                Err(e) => {
                    let shown = String::from_utf8_lossy(text);
                    let problem = Problem::new(format!("not one JSON object: {e}"));
                    faults.add(Place::line(line), Some(&shown), problem);
                }
                Ok(object) => {
                    let options = self.options;
                    let cell = |column: AccessColumn| match object.get(options.name(column))? {
                        Value::Null => None,
                        Value::String(text) => Some(Cow::Borrowed(text.as_str())),
                        other => Some(Cow::Owned(other.to_string())),
                    };
                    let place = |column| Place { column: Some(options.name(column)), ..Place::default() };
                    self.line(line, &cell, &place, faults);
                }
            }
        }
    }

    /// Reads one line; every cell of it that is at fault is told.
    fn line<'c>(
        &mut self,
        number: u64,
        cell: &dyn Fn(AccessColumn) -> Option<Cow<'c, str>>,
        place: &dyn Fn(AccessColumn) -> Place<'c>,
        faults: &mut FileFaults,
    ) {
        self.count += 1;
        if self.count.is_multiple_of(TOLD_EVERY) {
            (self.progress)(self.count);
        }
        let before = faults.count;
        let mut refuse = |column: AccessColumn, problem: Problem| {
            let value = cell(column).unwrap_or_default();
            faults.add(Place { line: Some(number), ..place(column) }, Some(&value), problem);
        };
        let mut texts: [Option<String>; COLUMNS] = Default::default();
        for column in AccessColumn::ALL {
            let text = cell(*column).map(|text| trim(&text).to_owned()).filter(|text| !text.is_empty());
            match &text {
                None if column.is_needed() => refuse(*column, Problem::new("required, but empty")),
                Some(text) if text.contains('\0') => refuse(*column, Problem::new("a NUL character")),
                Some(text) if column.is_id() => match mangled(column.as_str(), text) {
                    Some(Mangled::Likely(_)) if self.options.accept_ids => {}
                    Some(Mangled::Likely(problem) | Mangled::Certain(problem)) => refuse(*column, problem),
                    None => {}
                },
                _ => {}
            }
            texts[*column as usize] = text;
        }
        let text = |column: AccessColumn| texts[column as usize].as_deref();
        let mut number_of = |column: AccessColumn, least| match text(column).map(|t| count(t, least)) {
            None => None,
            Some(Ok(n)) => Some(n),
            Some(Err(problem)) => {
                refuse(column, problem);
                None
            }
        };
        let attempt = number_of(AccessColumn::Attempt, 1).unwrap_or(1);
        let status = number_of(AccessColumn::Status, 0).filter(|status| *status > 0);
        let latency = number_of(AccessColumn::Latency, 0);
        let at = match text(AccessColumn::At).map(|text| instant(text, self.options.timezone)) {
            Some(Ok(at)) => Some(at),
            Some(Err(problem)) => {
                refuse(AccessColumn::At, problem);
                None
            }
            None => None,
        };
        let (Some(at), Some(request_id), Some(source)) =
            (at, text(AccessColumn::RequestId), text(AccessColumn::Source))
        else {
            return;
        };
        if faults.count > before {
            return;
        }
        (self.take)(AccessLine {
            at,
            tenant_id: text(AccessColumn::Tenant).unwrap_or("default").into(),
            request_id: request_id.to_owned(),
            source: source.to_owned(),
            attempt,
            status,
            latency: latency.map(|ms| Span::from_micros(ms.saturating_mul(1000))),
            trace_id: text(AccessColumn::Trace).map(str::to_owned),
            idempotency_key: text(AccessColumn::Key).map(Into::into),
            user_id: text(AccessColumn::User).map(Into::into),
            show_id: text(AccessColumn::Show).map(Into::into),
            order_id: text(AccessColumn::Order).map(Into::into),
        });
    }
}

fn instant(text: &str, zone: Option<Tz>) -> Result<Timestamp, Problem> {
    parse_instant(text, zone).map_err(|e| {
        let problem = Problem::new(e.to_string());
        match e {
            TimeError::NoOffset => problem.hint("--timezone says in which zone times without an offset are"),
            _ => problem,
        }
    })
}

/// Which cell of a record is what.
struct Header {
    names: Vec<String>,
    places: [Option<usize>; COLUMNS],
}

impl Header {
    fn read(
        record: &Record<'_>,
        options: &AccessOptions,
        faults: &mut FileFaults,
        notes: &mut Vec<String>,
    ) -> Self {
        let names: Vec<String> = record.iter().map(|name| trim(name).to_owned()).collect();
        let mut header = Self { names, places: [None; COLUMNS] };
        let there: Vec<_> = header.names.iter().map(|name| Quoted(name).to_string()).collect();
        let mut assumed = Vec::new();
        for ours in AccessColumn::ALL {
            let theirs = options.name(*ours);
            let is_mapped = theirs != ours.as_str();
            let found: Vec<_> =
                header.names.iter().enumerate().filter(|(_, name)| *name == theirs).map(|(i, _)| i).collect();
            header.places[*ours as usize] = found.first().copied();
            let problem = match &found[..] {
                [] if is_mapped || ours.is_needed() => {
                    Some(format!("the header has no such column, which is to be {ours}"))
                }
                [] => {
                    assumed.push(ours.as_str());
                    None
                }
                [_] => None,
                _ => Some("stands in the header twice".to_owned()),
            };
            if let Some(problem) = problem {
                let hint = format!("--access-map THEIRS={ours} where THEIRS is one of {}", there.join(", "));
                let at = Place { line: Some(record.line), column: Some(theirs), index: None };
                faults.add(at, None, Problem::new(problem).hint(hint));
            }
        }
        if !assumed.is_empty() {
            notes.push(format!("columns that are not in the file: {}", assumed.join(", ")));
        }
        header
    }

    fn place(&self, place: usize) -> Place<'_> {
        Place { line: None, column: self.names.get(place).map(String::as_str), index: Some(place) }
    }
}
