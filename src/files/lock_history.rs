//! A lock history, line by line: CSV, or a JSON object a line. It may be longer than memory.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::io::{BufRead, Read};
use std::path::Path;
use std::sync::Arc;

use chrono_tz::Tz;
use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};

use super::cells::{instant, trim};
use super::faults::{Faults, FileFaults, Place, Problem, Quoted};
use super::lines::{
    LineColumn, Lines, Members, NameMap, Names, TOLD_EVERY, absent, each_object, ended, header, name_notes,
    named_twice, open_lines, theirs,
};
use super::options::Encoding;
use super::records::{Record, Records};
use crate::core::locks::{Event, EventKind};
use crate::core::status::status_type;
use crate::core::time::Span;

/// What Redis says of the lease of a key that does not expire.
const FOREVER: &str = "-1";
/// How many names of nodes are kept to be shared.
const NODES: usize = 1 << 16;

status_type!(
    /// A column of a lock history, or a member of its objects.
    LockColumn {
        Key = "key",
        Event = "event",
        Owner = "owner",
        Token = "token",
        LeaseMs = "lease_ms",
        At = "at",
        Node = "node",
        Result = "result",
    }
);

const COLUMNS: usize = LockColumn::ALL.len();
/// Without these nothing can be read.
const NEEDED: [LockColumn; 4] = [LockColumn::Key, LockColumn::Event, LockColumn::Owner, LockColumn::At];

impl LineColumn for LockColumn {
    const FILE: &'static str = "a lock history";
    const FLAG: &'static str = "--history-map";
    const OURS: &'static [&'static str] = Self::NAMES;
}

/// What a column of a lock history is called in the file.
pub type HistoryMap = NameMap<LockColumn>;

/// How a lock history is read.
#[derive(Clone, Debug, Default)]
pub struct LockOptions {
    pub encoding: Encoding,
    /// The zone of times that have no offset; without it they are refused.
    pub timezone: Option<Tz>,
    /// Names that columns have in the file; small and capital letters are the same.
    pub map: Vec<HistoryMap>,
}

impl LockOptions {
    /// What a column or member of this name holds. One that is called otherwise no longer goes by our name.
    fn column(&self, name: &str) -> Option<LockColumn> {
        if let Some(map) = self.map.iter().find(|map| map.theirs.to_lowercase() == name.to_lowercase()) {
            return Some(map.ours);
        }
        name.parse().ok().filter(|ours| theirs(&self.map, *ours).is_none())
    }

    /// The file's name of a column.
    fn name(&self, column: LockColumn) -> &str {
        theirs(&self.map, column).unwrap_or(column.as_str())
    }
}

/// Reads a history; `take` gets its events and says why it refuses one, `progress` is told how many lines
/// there were. What was detected is returned, for a person to know.
///
/// # Errors
/// Every fault of the file. What was taken before is then worth nothing.
pub fn read_lock_history(
    path: &Path,
    options: &LockOptions,
    take: &mut dyn FnMut(Event) -> Result<(), LockRefusal>,
    progress: &mut dyn FnMut(u64),
) -> Result<Vec<String>, Faults> {
    let mut faults = FileFaults::new(path.display().to_string(), None);
    named_twice(&options.map, &mut faults);
    let mut notes = Vec::new();
    let mut reading = Reading { options, take, progress, nodes: HashMap::new(), count: 0 };
    match open_lines(path, options.encoding, &mut faults, &mut notes) {
        Some(Lines::Objects(input)) => reading.json_lines(input, &mut faults, &mut notes),
        Some(Lines::Records(records)) => reading.csv(records, &mut faults, &mut notes),
        None => {}
    }
    // What was not audited must not look as if nothing had been found.
    if reading.count == 0 && faults.count == 0 {
        let problem = Problem::new("there is no event in it: nothing was audited");
        faults.add(
            Place::default(),
            None,
            problem.hint("is it the right file, and was it written to its end?"),
        );
    }
    ended(faults, notes)
}

/// Why an event that can be read is refused, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockRefusal {
    pub problem: String,
    pub hint: String,
}

/// The texts of one event, by column; `None` for one that is not there.
type Cells<'a> = [Option<&'a str>; COLUMNS];

struct Reading<'a> {
    options: &'a LockOptions,
    take: &'a mut dyn FnMut(Event) -> Result<(), LockRefusal>,
    progress: &'a mut dyn FnMut(u64),
    nodes: HashMap<String, Arc<str>>,
    count: u64,
}

impl Reading<'_> {
    fn csv(&mut self, mut records: Records<impl Read>, faults: &mut FileFaults, notes: &mut Vec<String>) {
        let read =
            |record: &Record<'_>, faults: &mut FileFaults| Header::read(record, self.options, faults, notes);
        let Some(header) = header(&mut records, faults, read).filter(Header::is_whole) else { return };
        header.names.each_record(&mut records, faults, |record, faults| {
            let cells = header.places.map(|place| place.map(|p| trim(record.cell(p))));
            let place =
                |column: LockColumn| header.names.place_or(header.places[column as usize], column.as_str());
            self.event(record.line, &cells, &place, faults);
        });
    }

    fn json_lines(&mut self, input: impl BufRead, faults: &mut FileFaults, notes: &mut Vec<String>) {
        let what = "one JSON object of texts and numbers";
        let mut members = Members::new();
        each_object(input, what, faults, |line, text, faults| {
            let options = self.options;
            let mut json = serde_json::Deserializer::from_slice(text);
            let object = Object { options, members: &mut members }.deserialize(&mut json)?;
            json.end()?;
            let cells = object.each_ref().map(|text| text.as_deref().map(trim));
            let place = |column| Place { column: Some(options.name(column)), ..Place::default() };
            self.event(line, &cells, &place, faults);
            Ok(())
        });
        if self.count > 0 {
            notes.extend(members.notes(LockColumn::NAMES));
        }
    }

    fn event<'p>(
        &mut self,
        line: u64,
        cells: &Cells<'_>,
        place: &dyn Fn(LockColumn) -> Place<'p>,
        faults: &mut FileFaults,
    ) {
        self.count += 1;
        if self.count.is_multiple_of(TOLD_EVERY) {
            (self.progress)(self.count);
        }
        let read = event(line, cells, self.options, &mut |node| self.shared(node));
        let refused = read.and_then(|event| {
            (self.take)(event)
                .map_err(|refusal| (LockColumn::At, Problem::new(refusal.problem).hint(refusal.hint)))
        });
        if let Err((column, problem)) = refused {
            let place = Place { line: Some(line), ..place(column) };
            faults.add(place, cells[column as usize], problem);
        }
    }

    /// One text for all events of a node.
    fn shared(&mut self, node: &str) -> Arc<str> {
        if let Some(known) = self.nodes.get(node) {
            return known.clone();
        }
        if self.nodes.len() == NODES {
            self.nodes.clear();
        }
        let shared: Arc<str> = node.into();
        self.nodes.insert(node.to_owned(), shared.clone());
        shared
    }
}

/// The event that some texts are, or which of them is at fault.
fn event(
    line: u64,
    cells: &Cells<'_>,
    options: &LockOptions,
    shared: &mut dyn FnMut(&str) -> Arc<str>,
) -> Result<Event, (LockColumn, Problem)> {
    let cell = |column: LockColumn| cells[column as usize].filter(|text| !text.is_empty());
    let needed = |column: LockColumn, why: &str| {
        cell(column).ok_or_else(|| (column, absent(why, cells[column as usize].is_some())))
    };
    let kind = needed(LockColumn::Event, "")?;
    let kind: EventKind = kind.to_ascii_lowercase().parse().map_err(|_| {
        let known = EventKind::NAMES.join(", ");
        (LockColumn::Event, Problem::new(format!("no event of a lock; there are {known}")))
    })?;
    let of_kind = format!(" of {kind}");
    let key = if kind.needs_key() {
        needed(LockColumn::Key, &of_kind)?
    } else {
        cell(LockColumn::Key).unwrap_or("")
    };
    let owner =
        if kind.needs_owner() { Some(needed(LockColumn::Owner, &of_kind)?) } else { cell(LockColumn::Owner) };
    if kind == EventKind::Pause && owner.is_none() {
        needed(LockColumn::Node, " of a pause without owner")?;
    }
    let token = cell(LockColumn::Token).map(str::parse::<i64>).transpose();
    let token = token.map_err(|_| (LockColumn::Token, Problem::new("not a whole number")))?;
    let lease = match cell(LockColumn::LeaseMs) {
        None | Some(FOREVER) if kind != EventKind::Pause => None,
        text => Some(milliseconds(text.unwrap_or_default()).ok_or_else(|| {
            (
                LockColumn::LeaseMs,
                Problem::new("not a whole number of milliseconds, at least 1")
                    .hint("none, or -1, for a lock without expiry; of a pause it is how long it was"),
            )
        })?),
    };
    let at = needed(LockColumn::At, "")?;
    let at = instant(at, options.timezone).map_err(|problem| (LockColumn::At, problem))?;
    let done = Event::is_done(cell(LockColumn::Result).unwrap_or("ok")).ok_or_else(|| {
        let hint = "ok or refused; empty for ok";
        (LockColumn::Result, Problem::new("neither that it was done nor that it was refused").hint(hint))
    })?;
    Ok(Event {
        line,
        key: key.to_owned(),
        kind,
        owner: owner.map(str::to_owned),
        token,
        lease,
        is_forever: cell(LockColumn::LeaseMs) == Some(FOREVER),
        at,
        node: cell(LockColumn::Node).map(shared),
        done,
    })
}

fn milliseconds(text: &str) -> Option<Span> {
    let ms: i64 = text.parse().ok().filter(|ms| *ms > 0)?;
    ms.checked_mul(1000).map(Span::from_micros)
}

/// Which cell of a record is what.
struct Header {
    names: Names,
    places: [Option<usize>; COLUMNS],
}

impl Header {
    fn read(
        record: &Record<'_>,
        options: &LockOptions,
        faults: &mut FileFaults,
        notes: &mut Vec<String>,
    ) -> Self {
        let mut header = Self { names: Names::read(record).lowercase(), places: [None; COLUMNS] };
        let (mut unknown, mut lacking) = (Vec::new(), Vec::new());
        for (place, name) in header.names.iter().enumerate() {
            let Some(column) = options.column(name) else {
                unknown.push(name);
                continue;
            };
            if header.places[column as usize].replace(place).is_some() {
                let at = Place { line: Some(record.line), ..header.names.place(place) };
                faults.add(at, None, Problem::new("stands in the header twice"));
            }
        }
        let there: Vec<_> = header.names.iter().map(|name| Quoted(name).to_string()).collect();
        for column in LockColumn::ALL {
            let theirs = options.name(*column);
            let problem = match theirs == column.as_str() {
                _ if header.places[*column as usize].is_some() => continue,
                true if NEEDED.contains(column) => {
                    "the header has no such column, and it is required".to_owned()
                }
                true => {
                    lacking.push(column.to_string());
                    continue;
                }
                false => format!("the header has no such column, which is to be {column}"),
            };
            let at = Place { line: Some(record.line), column: Some(theirs), index: None };
            let hint = format!("--history-map THEIRS={column} where THEIRS is one of {}", there.join(", "));
            faults.add(at, None, Problem::new(problem).hint(hint));
        }
        notes.extend(name_notes("columns", unknown, &lacking));
        header
    }

    /// Whether lines under it can be read.
    fn is_whole(&self) -> bool {
        NEEDED.iter().all(|column| self.places[*column as usize].is_some())
    }
}

/// Reads the members of one object that an event has, as texts.
struct Object<'o> {
    options: &'o LockOptions,
    members: &'o mut Members<COLUMNS>,
}

/// A text, a number, true or false as text; null as an empty one.
struct Scalar<'a>(Cow<'a, str>);

impl<'de> DeserializeSeed<'de> for Object<'_> {
    type Value = [Option<Cow<'de, str>>; COLUMNS];

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Object<'_> {
    type Value = [Option<Cow<'de, str>>; COLUMNS];

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Self::Value, A::Error> {
        let mut texts = Self::Value::default();
        while let Some(Scalar(name)) = object.next_key()? {
            let column = self.options.column(&name);
            self.members.see(&name, column.map(|column| column as usize));
            let Some(column) = column else {
                object.next_value::<IgnoredAny>()?;
                continue;
            };
            // Which of two is meant nobody knows.
            if texts[column as usize].replace(object.next_value::<Scalar<'_>>()?.0).is_some() {
                return Err(A::Error::custom(format!("the member {} stands in it twice", Quoted(&name))));
            }
        }
        Ok(texts)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Scalar<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = Scalar<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a whole number")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Scalar(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Scalar(Cow::Owned(text.to_owned())))
            }

            fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
                Ok(Scalar(Cow::Owned(number.to_string())))
            }

            fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
                Ok(Scalar(Cow::Owned(number.to_string())))
            }

            fn visit_bool<E>(self, yes: bool) -> Result<Self::Value, E> {
                Ok(Scalar(Cow::Borrowed(if yes { "true" } else { "false" })))
            }

            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Scalar(Cow::Borrowed("")))
            }
        }
        deserializer.deserialize_any(Text)
    }
}
