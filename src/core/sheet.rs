//! What the sheets of a report are made of, and reports that are made of sheets alone.

use std::borrow::Cow;

use serde_json::Value;

use super::money::Currency;
use super::time::Timestamp;
use crate::error::Result;

/// What a cell says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell<'a> {
    None,
    /// Also ids: leading zeros stay.
    Text(Cow<'a, str>),
    Number(i64),
    /// Minor units.
    Money(i128, Currency),
    Time(Timestamp),
}

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// Ids and words.
    Text,
    /// Sentences.
    Prose,
    Number,
    Money,
    /// Instants in UTC.
    Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// For programs.
    pub key: &'static str,
    /// For people.
    pub title: &'static str,
    pub holds: Holds,
    /// In characters.
    pub width: u16,
}

pub const fn column(key: &'static str, title: &'static str, holds: Holds, width: u16) -> Column {
    Column { key, title, holds, width }
}

/// What stands above the rows of a sheet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// At most 25 characters: a spreadsheet has room for 31, and a sheet that goes on gets a number.
    pub title: &'static str,
    /// What one row of it is.
    pub row_is: &'static str,
    pub columns: &'static [Column],
}

impl Head {
    /// For files and flags.
    pub fn name(&self) -> String {
        self.title.to_lowercase().replace(' ', "_")
    }

    pub fn titles(&self) -> Vec<&'static str> {
        self.columns.iter().map(|c| c.title).collect()
    }
}

/// Takes the rows of a sheet.
pub type Put<'p, 'a> = &'p mut dyn FnMut(&[Cell<'a>]) -> Result<()>;

/// A line of what a report says before its rows.
pub type Fact<'a> = (String, Cell<'a>);

/// A report that says what it found and lists it in sheets. Its rows are made one by one, and whoever
/// writes them keeps none.
pub trait Sheets {
    /// The verb that makes it, by which an earlier one is known again.
    fn verb(&self) -> &'static str;

    /// What it is about.
    fn title(&self) -> String;

    /// What was found, a paragraph each.
    fn findings(&self) -> Vec<String>;

    /// What it rests on.
    fn facts(&self) -> Vec<Fact<'_>>;

    /// For programs, what [`Sheets::findings`] says: an object.
    fn json(&self) -> Value;

    /// The sheets, in the order in which they stand.
    fn heads(&self) -> &'static [Head];

    /// Every row of the sheet at this place of [`Sheets::heads`], as many cells as it has columns.
    ///
    /// # Errors
    /// What `put` fails with.
    fn rows<'a>(&'a self, sheet: usize, put: Put<'_, 'a>) -> Result<()>;
}

pub fn text<'a>(text: impl Into<Cow<'a, str>>) -> Cell<'a> {
    Cell::Text(text.into())
}

pub fn maybe<'a, T: Into<Cow<'a, str>>>(value: Option<T>) -> Cell<'a> {
    value.map_or(Cell::None, |t| Cell::Text(t.into()))
}

/// A count, of whatever width.
pub fn number(n: impl TryInto<i64>) -> Cell<'static> {
    Cell::Number(n.try_into().unwrap_or(i64::MAX))
}
