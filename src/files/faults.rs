//! What is wrong with a file, said so that it can be found and mended: where, what was read, why
//! it is refused and what to type.

use std::fmt;

use serde::Serialize;

use crate::core::status::Ledger;
use crate::error::Error;

/// How many faults of one file are listed; all of them are counted.
pub const LISTED: usize = 50;

/// How much of a value is shown, in characters.
const SHOWN: usize = 80;

/// How many different hints one error gives.
const HINTS: usize = 8;

/// One thing in a file that is refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// The file's path as it was given, or the option at fault.
    pub file: String,
    /// The physical line, counted from 1, on which the record begins.
    pub line: Option<u64>,
    /// The column's name in the file's header.
    pub column: Option<String>,
    /// The column's place in the file, counted from 1.
    pub column_number: Option<usize>,
    /// What was read, cut where it is long.
    pub value: Option<String>,
    pub problem: String,
    /// What to type next.
    pub hint: Option<String>,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        f.write_str(":")?;
        if let Some(column) = &self.column {
            write!(f, " column {}", Plain(column))?;
        }
        if let Some(number) = self.column_number {
            write!(f, " ({number})")?;
        }
        match (&self.value, self.column.is_some()) {
            (Some(value), true) => write!(f, ", value {}: ", Quoted(value))?,
            (Some(value), false) => write!(f, " {}: ", Quoted(value))?,
            (None, true) => f.write_str(": ")?,
            (None, false) => f.write_str(" ")?,
        }
        f.write_str(&self.problem)
    }
}

/// Why a value is refused, before it is known where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    pub text: String,
    pub hint: Option<String>,
}

impl Problem {
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), hint: None }
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// Where in a file something stands.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place<'a> {
    pub line: Option<u64>,
    pub column: Option<&'a str>,
    /// Counted from 0.
    pub index: Option<usize>,
}

impl Place<'_> {
    pub fn line(line: u64) -> Self {
        Self { line: Some(line), ..Self::default() }
    }
}

/// The faults of one file: the first [`LISTED`] of them, and how many there are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileFaults {
    pub file: String,
    pub ledger: Option<Ledger>,
    pub count: u64,
    pub first: Vec<Fault>,
}

impl FileFaults {
    pub(super) fn new(file: impl Into<String>, ledger: Option<Ledger>) -> Self {
        Self { file: file.into(), ledger, count: 0, first: Vec::new() }
    }

    /// Puts what is listed in the order of the file.
    pub(super) fn sort(&mut self) {
        self.first.sort_by_key(|fault| (fault.line, fault.column_number));
    }

    pub(super) fn add(&mut self, place: Place<'_>, value: Option<&str>, problem: Problem) {
        self.count += 1;
        if self.first.len() == LISTED {
            return;
        }
        self.first.push(Fault {
            file: self.file.clone(),
            line: place.line,
            column: place.column.map(str::to_owned),
            column_number: place.index.map(|i| i + 1),
            value: value.map(cut),
            problem: problem.text,
            hint: problem.hint,
        });
    }
}

/// Everything that is wrong with the files that were to be read. Nothing was loaded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Faults {
    pub files: Vec<FileFaults>,
}

impl Faults {
    /// How many faults there are in all, listed or not.
    pub fn count(&self) -> u64 {
        self.files.iter().map(|f| f.count).sum()
    }

    /// Every fault that is listed.
    pub fn iter(&self) -> impl Iterator<Item = &Fault> {
        self.files.iter().flat_map(|f| &f.first)
    }

    fn hints(&self) -> Vec<&str> {
        let mut hints = Vec::new();
        for hint in self.iter().filter_map(|f| f.hint.as_deref()) {
            if hints.len() < HINTS && !hints.contains(&hint) {
                hints.push(hint);
            }
        }
        hints
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.count();
        write!(f, "{count} fault{} in the files; nothing was loaded", if count == 1 { "" } else { "s" })?;
        for file in &self.files {
            for fault in &file.first {
                write!(f, "\n  {fault}")?;
            }
            let more = file.count - file.first.len() as u64;
            if more > 0 {
                write!(f, "\n  {}: and {more} more, {} in all", file.file, file.count)?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for Faults {}

impl From<Faults> for Error {
    /// Bad input: exit code 2, every listed fault in the message, each different hint once.
    fn from(faults: Faults) -> Self {
        let error = Self::usage(faults.to_string()).details(&faults);
        let hints = faults.hints();
        if hints.is_empty() {
            error.hint("correct the files, then type the same again")
        } else {
            error.hint(hints.join("\n"))
        }
    }
}

/// Something about a file that a person should know, and that stops nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Note {
    pub file: String,
    pub ledger: Ledger,
    pub text: String,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file, self.text)
    }
}

/// At most [`SHOWN`] characters of a text.
pub(super) fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A text without anything that a terminal would obey or a reader could not see.
struct Plain<'a>(&'a str);

impl fmt::Display for Plain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '\n' => f.write_str("\\n")?,
                '\r' => f.write_str("\\r")?,
                '\t' => f.write_str("\\t")?,
                // Controls, blanks that look like others, and marks that turn the reading direction.
                c if c.is_control() || (c.is_whitespace() && c != ' ') || is_unseen(c) => {
                    write!(f, "{}", c.escape_unicode())?
                }
                c => write!(f, "{c}")?,
            }
        }
        Ok(())
    }
}

fn is_unseen(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// As [`Plain`], cut and between quotation marks.
pub(super) struct Quoted<'a>(pub &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", Plain(&cut(self.0)))
    }
}
