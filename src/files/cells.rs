//! From the text of a cell to a value of the core, and back.

use std::borrow::Cow;
use std::collections::HashMap;

use chrono_tz::Tz;

use super::amount;
use super::faults::{FileFaults, Place, Problem, Quoted};
use super::header::Header;
use super::mangled::{Mangled, mangled};
use super::options::ReadOptions;
use super::records::Record;
use super::table::{Column, Kind, Need};
use crate::core::ids::{INLINE, *};
use crate::core::ledger::Shard;
use crate::core::money::Currency;
use crate::core::status::*;
use crate::core::time::{TimeError, Timestamp, parse_instant};

/// What is known and found while one file is read.
pub(super) struct Reading<'o> {
    pub options: &'o ReadOptions,
    pub ledger: Ledger,
    pub faults: FileFaults,
    /// By column: values with blanks around them, cells of nothing but blanks where blanks count,
    /// and odd ids that were accepted.
    pub padded: Vec<Tally>,
    pub blank: Vec<Tally>,
    pub accepted: Vec<Tally>,
    shared: SharedIds,
    currency: Option<(String, Currency)>,
}

impl<'o> Reading<'o> {
    pub fn new(options: &'o ReadOptions, ledger: Ledger, columns: usize, faults: FileFaults) -> Self {
        Self {
            options,
            ledger,
            faults,
            padded: vec![Tally::default(); columns],
            blank: vec![Tally::default(); columns],
            accepted: vec![Tally::default(); columns],
            shared: SharedIds::default(),
            currency: None,
        }
    }

    /// Whether there is neither a fault nor anything worth a note.
    pub fn is_silent(&self) -> bool {
        let tallies = [&self.padded, &self.blank, &self.accepted];
        self.faults.count == 0 && tallies.into_iter().flatten().all(|tally| tally.count == 0)
    }

    /// The currency of a cell; nearly always the one of the row before.
    fn currency(&mut self, text: &str) -> Option<Currency> {
        match &self.currency {
            Some((code, currency)) if code == text => Some(*currency),
            _ => {
                let currency = text.parse().ok()?;
                self.currency = Some((text.to_owned(), currency));
                Some(currency)
            }
        }
    }
}

/// How often something was seen in a column, and where first.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub count: u64,
    pub line: u64,
    pub value: String,
}

impl Tally {
    fn add(&mut self, line: u64, value: &str) {
        if self.count == 0 {
            (self.line, self.value) = (line, value.to_owned());
        }
        self.count += 1;
    }
}

/// The cells of one record, taken in the order of the ledger's columns. A fault is noted, and the
/// cells after it are looked at all the same.
pub(super) struct Cells<'c, 'o> {
    columns: &'static [Column],
    header: &'c Header,
    record: &'c Record<'c>,
    reading: &'c mut Reading<'o>,
    next: usize,
    /// The currency of the row's amounts; `None` where its cell is no currency.
    currency: Option<Currency>,
    /// The row's id and its tenant, once they are taken and sound.
    key: [Option<&'c str>; 2],
}

impl<'c, 'o> Cells<'c, 'o> {
    pub fn new(
        columns: &'static [Column],
        header: &'c Header,
        record: &'c Record<'c>,
        reading: &'c mut Reading<'o>,
    ) -> Self {
        let mut cells = Self { columns, header, record, reading, next: 0, currency: None, key: [None; 2] };
        if let Some(place) = header.currency {
            cells.currency = cells.reading.currency(trim(record.cell(place)));
        }
        cells
    }

    /// The next column's value; `None` where it is refused.
    pub fn take<T: Cell>(&mut self) -> Option<T> {
        self.take_as(T::null(), |text, kind, cells| T::read(text, kind, cells))
    }

    /// As [`Self::take`], of a text that is not kept: empty where it is null.
    pub fn take_text(&mut self) -> Option<&'c str> {
        let null = self.columns[self.next].need == Need::Nullable;
        self.take_as(null.then_some(""), |text, _, _| Ok(text))
    }

    /// The next column's value as it is read from a text that is not empty; `null` is that of an empty one.
    fn take_as<T>(
        &mut self,
        null: Option<T>,
        read: impl FnOnce(&'c str, Kind, &mut Self) -> Result<T, Problem>,
    ) -> Option<T> {
        let index = self.next;
        self.next += 1;
        let column = &self.columns[index];
        let raw = self.text(index);
        if self.reading.options.from_database {
            let value = self.of_database(index, raw, null, read);
            return value.map_err(|problem| self.fault(index, problem)).ok();
        }
        let text = match (self.clean(index, column.kind, raw), column.need) {
            ("", Need::Default(value)) => value,
            (text, _) => text,
        };
        let value = if text.is_empty() {
            let empty = if raw.is_empty() { "empty" } else { "only blanks" };
            null.ok_or_else(|| Problem::new(format!("required, but {empty}")))
        } else if self.record.has_nul && raw.contains('\0') {
            Err(Problem::new("a NUL character"))
        } else {
            self.check_id(index, column.kind, text).and_then(|()| read(text, column.kind, self))
        };
        match value {
            Ok(value) => {
                if let Some(part) = self.key.get_mut(index) {
                    *part = Some(text);
                }
                Some(value)
            }
            Err(problem) => {
                self.fault(index, problem);
                None
            }
        }
    }

    /// As [`Self::take_as`], of a cell of a database.
    fn of_database<T>(
        &mut self,
        index: usize,
        text: &'c str,
        null: Option<T>,
        read: impl FnOnce(&'c str, Kind, &mut Self) -> Result<T, Problem>,
    ) -> Result<T, Problem> {
        let column = &self.columns[index];
        let is_null = match (column.kind, column.need) {
            // What names nothing but blanks names nothing.
            (Kind::Id, _) | (Kind::Name, Need::Nullable) => text.trim().is_empty(),
            _ => text.is_empty() && !self.record.is_quoted(index),
        };
        if is_null {
            null.ok_or_else(|| Problem::new("required, but null"))
        } else if self.record.has_nul && text.contains('\0') {
            Err(Problem::new("a NUL character"))
        } else {
            read(text, column.kind, self)
        }
    }

    fn fault(&mut self, index: usize, problem: Problem) {
        let place = Place { line: Some(self.record.line), ..self.header.column(index) };
        self.reading.faults.add(place, Some(self.text(index)), problem);
    }

    /// The shard in which the row is; files have but one.
    pub fn shard(&self) -> Option<Shard> {
        let last = self.record.len().checked_sub(1)?;
        if self.reading.options.from_database { self.record.cell(last).parse().ok() } else { Some(0) }
    }

    /// The row's tenant and id, where both are sound.
    pub fn key(&self) -> Option<(&'c str, &'c str)> {
        self.key[1].zip(self.key[0])
    }

    /// The cell as it stands in the file; empty where the file has no such column.
    fn text(&self, index: usize) -> &'c str {
        self.header.places[index].map_or("", |place| self.record.cell(place))
    }

    /// Drops the blanks that mean nothing; those that do are told.
    fn clean(&mut self, index: usize, kind: Kind, raw: &'c str) -> &'c str {
        let trimmed = trim(raw);
        if trimmed.len() == raw.len() || kind == Kind::Text {
            return raw;
        }
        if kind.drops_blanks() {
            return trimmed;
        }
        // Of nothing but blanks nothing is kept: it would be an id that nobody can see.
        if trimmed.is_empty() {
            self.reading.blank[index].add(self.record.line, raw);
            return trimmed;
        }
        self.reading.padded[index].add(self.record.line, raw);
        if self.reading.options.trim_ids { trimmed } else { raw }
    }

    fn check_id(&mut self, index: usize, kind: Kind, text: &str) -> Result<(), Problem> {
        if kind != Kind::Id {
            return Ok(());
        }
        match mangled(self.columns[index].name, trim(text)) {
            None => Ok(()),
            Some(Mangled::Likely(_)) if self.reading.options.accept_ids => {
                self.reading.accepted[index].add(self.record.line, text);
                Ok(())
            }
            Some(Mangled::Likely(problem) | Mangled::Certain(problem)) => Err(problem),
        }
    }
}

/// Without the blanks around it; a byte order mark or a zero-width blank that an editor left is one.
pub(super) fn trim(text: &str) -> &str {
    let seen = |b: Option<&u8>| b.is_some_and(u8::is_ascii_graphic);
    let bytes = text.as_bytes();
    if seen(bytes.first()) && seen(bytes.last()) {
        return text;
    }
    text.trim_matches(|c: char| c.is_whitespace() || matches!(c, '\u{feff}' | '\u{200b}'))
}

/// An instant as files have it: in the zone that is stated, where it has no offset itself.
pub(super) fn instant(text: &str, zone: Option<Tz>) -> Result<Timestamp, Problem> {
    parse_instant(text, zone).map_err(|error| {
        let problem = Problem::new(error.to_string());
        match error {
            TimeError::NoOffset => {
                problem.hint("--timezone names the zone in which they were written, such as Asia/Shanghai")
            }
            TimeError::Ambiguous { .. } | TimeError::Skipped { .. } => {
                problem.hint("export the times with their offset")
            }
            _ => problem,
        }
    })
}

/// A value that stands in a cell.
pub(super) trait Cell: Sized {
    /// The value of an empty cell, where the type has one.
    fn null() -> Option<Self> {
        None
    }

    /// Reads a text that is not empty.
    fn read(text: &str, kind: Kind, cells: &mut Cells<'_, '_>) -> Result<Self, Problem>;

    fn text(&self) -> Cow<'_, str>;
}

impl<T: Cell> Cell for Option<T> {
    fn null() -> Option<Self> {
        Some(None)
    }

    fn read(text: &str, kind: Kind, cells: &mut Cells<'_, '_>) -> Result<Self, Problem> {
        T::read(text, kind, cells).map(Some)
    }

    fn text(&self) -> Cow<'_, str> {
        self.as_ref().map_or(Cow::Borrowed(""), T::text)
    }
}

impl Cell for String {
    fn read(text: &str, _: Kind, _: &mut Cells<'_, '_>) -> Result<Self, Problem> {
        Ok(text.to_owned())
    }

    fn text(&self) -> Cow<'_, str> {
        Cow::Borrowed(self)
    }
}

impl Cell for i64 {
    fn read(text: &str, kind: Kind, cells: &mut Cells<'_, '_>) -> Result<Self, Problem> {
        match kind {
            Kind::Count(least) => amount::count(text, least),
            _ => amount::amount(text, cells.currency, cells.reading.options.amounts),
        }
    }

    fn text(&self) -> Cow<'_, str> {
        Cow::Owned(self.to_string())
    }
}

impl Cell for Timestamp {
    fn read(text: &str, _: Kind, cells: &mut Cells<'_, '_>) -> Result<Self, Problem> {
        if cells.reading.options.from_database {
            return text
                .parse()
                .map(Self::from_micros)
                .map_err(|_| Problem::new("not a number of microseconds"));
        }
        instant(text, cells.reading.options.timezone)
    }

    fn text(&self) -> Cow<'_, str> {
        Cow::Owned(self.to_string())
    }
}

impl Cell for Currency {
    fn read(text: &str, _: Kind, cells: &mut Cells<'_, '_>) -> Result<Self, Problem> {
        cells.reading.currency(text).ok_or_else(|| Problem::new("not an ISO 4217 currency code, such as CNY"))
    }

    fn text(&self) -> Cow<'_, str> {
        Cow::Borrowed(self.code())
    }
}

macro_rules! status_cells {
    ($($status:ident),+) => {$(
        impl Cell for $status {
            fn read(text: &str, _: Kind, cells: &mut Cells<'_, '_>) -> Result<Self, Problem> {
                let reading = &cells.reading;
                let mut mapped = reading.options.status_map.iter().filter(|m| m.ledger == reading.ledger).peekable();
                let must_be_mapped = reading.options.from_database && mapped.peek().is_some();
                let ours = mapped.find(|m| m.theirs == text).map(|m| m.ours);
                ours.unwrap_or(if must_be_mapped { "" } else { text }).parse().map_err(|_| unknown_status(reading.ledger, text, Self::NAMES))
            }

            fn text(&self) -> Cow<'_, str> {
                Cow::Borrowed(self.as_str())
            }
        }
    )+};
}

status_cells!(OrderStatus, PaymentStatus, HoldStatus, MessageStatus);

fn unknown_status(ledger: Ledger, text: &str, known: &[&str]) -> Problem {
    Problem::new(format!(
        "no status of {} {}; known are {}",
        article(ledger),
        ledger.row_name(),
        known.join(", ")
    ))
    .hint(format!("--status-map {ledger}.{}=… names the one that is meant", Quoted(text)))
}

fn article(ledger: Ledger) -> &'static str {
    if ledger == Ledger::Orders { "an" } else { "a" }
}

macro_rules! id_cells {
    ($($id:ident),+) => {$(
        impl Cell for $id {
            fn read(text: &str, _: Kind, _: &mut Cells<'_, '_>) -> Result<Self, Problem> {
                Ok(text.into())
            }

            fn text(&self) -> Cow<'_, str> {
                Cow::Borrowed(self.as_str())
            }
        }
    )+};
}

id_cells!(UserId, SessionId, OrderId, PaymentId, HoldId, MessageId, IdempotencyKey);

/// Ids that many rows share: each is held once.
macro_rules! shared_id_cells {
    ($($field:ident: $id:ident),+) => {
        #[derive(Default)]
        struct SharedIds {
            $($field: Shared<$id>),+
        }

        $(impl Cell for $id {
            fn read(text: &str, _: Kind, cells: &mut Cells<'_, '_>) -> Result<Self, Problem> {
                Ok(cells.reading.shared.$field.get(text))
            }

            fn text(&self) -> Cow<'_, str> {
                Cow::Borrowed(self.as_str())
            }
        })+
    };
}

shared_id_cells!(tenants: TenantId, shows: ShowId, items: Item, versions: Version);

/// The different values seen so far, up to a number beyond which sharing does not pay.
struct Shared<T>(HashMap<Box<str>, T>);

impl<T> Default for Shared<T> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<T: Clone + for<'a> From<&'a str>> Shared<T> {
    const MOST: usize = 10_000;

    fn get(&mut self, text: &str) -> T {
        // It stands in the id itself.
        if text.len() <= INLINE {
            return T::from(text);
        }
        if let Some(value) = self.0.get(text) {
            return value.clone();
        }
        let value = T::from(text);
        if self.0.len() < Self::MOST {
            self.0.insert(text.into(), value.clone());
        }
        value
    }
}
