//! An access log, line by line: CSV, or a JSON object a line. It may be longer than memory.

use std::borrow::Cow;
use std::io::{BufRead, Read};
use std::path::Path;

use chrono_tz::Tz;
use serde_json::{Map, Value};

use super::amount::count;
use super::cells::{instant, trim};
use super::faults::{Faults, FileFaults, Place, Problem, Quoted};
use super::lines::{
    LineColumn, Lines, Members, NameMap, Names, TOLD_EVERY, absent, each_object, ended, header, name_notes,
    named_twice, open_lines, theirs,
};
use super::mangled::{Mangled, mangled};
use super::options::Encoding;
use super::records::{Record, Records};
use crate::core::ids::DEFAULT_TENANT;
use crate::core::status::status_type;
use crate::core::time::Span;
use crate::core::trace::access::AccessLine;

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

impl LineColumn for AccessColumn {
    const FILE: &'static str = "an access log";
    const FLAG: &'static str = "--access-map";
    const OURS: &'static [&'static str] = Self::NAMES;
}

/// What a column of an access log is called in the file.
pub type AccessMap = NameMap<AccessColumn>;

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
        theirs(&self.map, column).unwrap_or(column.as_str())
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
    named_twice(&options.map, &mut faults);
    let mut notes = Vec::new();
    let mut reading = Reading { options, take, progress, count: 0 };
    match open_lines(path, options.encoding, &mut faults, &mut notes) {
        Some(Lines::Objects(input)) => reading.objects(input, &mut faults, &mut notes),
        Some(Lines::Records(records)) => reading.records(records, &mut faults, &mut notes),
        None => {}
    }
    ended(faults, notes)
}

struct Reading<'r> {
    options: &'r AccessOptions,
    take: &'r mut dyn FnMut(AccessLine),
    progress: &'r mut dyn FnMut(u64),
    count: u64,
}

impl Reading<'_> {
    fn records(&mut self, mut records: Records<impl Read>, faults: &mut FileFaults, notes: &mut Vec<String>) {
        let read =
            |record: &Record<'_>, faults: &mut FileFaults| Header::read(record, self.options, faults, notes);
        let Some(header) = header(&mut records, faults, read) else { return };
        // Lines under a header that is at fault would all be at fault.
        if faults.count > 0 {
            return;
        }
        header.names.each_record(&mut records, faults, |record, faults| {
            let cell = |column: AccessColumn| {
                header.places[column as usize].map(|place| Cow::Borrowed(record.cell(place)))
            };
            let place =
                |column: AccessColumn| header.names.place_or(header.places[column as usize], column.as_str());
            self.line(record.line, &cell, &place, faults);
        });
    }

    fn objects(&mut self, input: impl BufRead, faults: &mut FileFaults, notes: &mut Vec<String>) {
        let names = AccessColumn::ALL.iter().map(|column| self.options.name(*column));
        let names: Vec<_> = names.collect();
        let mut members = Members::<COLUMNS>::new();
        each_object(input, "one JSON object", faults, |line, text, faults| {
            let object = serde_json::from_slice::<Map<String, Value>>(text)?;
            let options = self.options;
            for name in object.keys() {
                members.see(name, names.iter().position(|ours| ours == name));
            }
            let cell = |column: AccessColumn| match object.get(options.name(column))? {
                Value::Null => Some(Cow::Borrowed("")),
                Value::String(text) => Some(Cow::Borrowed(text.as_str())),
                other => Some(Cow::Owned(other.to_string())),
            };
            let place = |column| Place { column: Some(options.name(column)), ..Place::default() };
            self.line(line, &cell, &place, faults);
            Ok(())
        });
        if self.count > 0 {
            notes.extend(members.notes(AccessColumn::NAMES));
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
            faults.add(Place { line: Some(number), ..place(column) }, cell(column).as_deref(), problem);
        };
        let mut texts: [Option<String>; COLUMNS] = Default::default();
        for column in AccessColumn::ALL {
            let stated = cell(*column).map(|text| trim(&text).to_owned());
            let is_there = stated.is_some();
            let text = stated.filter(|text| !text.is_empty());
            match &text {
                None if column.is_needed() => refuse(*column, absent("", is_there)),
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
            tenant_id: text(AccessColumn::Tenant).unwrap_or(DEFAULT_TENANT).into(),
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

/// Which cell of a record is what.
struct Header {
    names: Names,
    places: [Option<usize>; COLUMNS],
}

impl Header {
    fn read(
        record: &Record<'_>,
        options: &AccessOptions,
        faults: &mut FileFaults,
        notes: &mut Vec<String>,
    ) -> Self {
        let mut header = Self { names: Names::read(record), places: [None; COLUMNS] };
        let there: Vec<_> = header.names.iter().map(|name| Quoted(name).to_string()).collect();
        let mut assumed = Vec::new();
        for ours in AccessColumn::ALL {
            let theirs = options.name(*ours);
            let is_mapped = theirs != ours.as_str();
            let found = header.names.places(theirs);
            header.places[*ours as usize] = found.first().copied();
            let problem = match &found[..] {
                [] if is_mapped || ours.is_needed() => {
                    Some(format!("the header has no such column, which is to be {ours}"))
                }
                [] => {
                    assumed.push(ours.to_string());
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
        let unknown = header.names.iter().enumerate();
        let unknown =
            unknown.filter(|(place, _)| !header.places.contains(&Some(*place))).map(|(_, name)| name);
        notes.extend(name_notes("columns", unknown, &assumed));
        header
    }
}
