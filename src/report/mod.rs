//! The only printer. A command makes one [`Report`]; people get it as text and tables, programs as
//! one JSON object.

pub mod export;
mod live;
mod pager;
mod spark;
mod table;

pub use live::{event, pass_on};
pub use spark::sparkline;
pub use table::{Column, Table};

use std::io::{self, IsTerminal, Write};

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::core::plan_text::IntentTexts;
use crate::core::status::status_type;
use crate::error::{Error, Exit};

/// What a command found and did.
#[derive(Clone, Debug)]
pub struct Report {
    pub blocks: Vec<Block>,
    /// The same as one object; null where the command has written its result to stdout itself.
    pub json: Value,
    /// The `intents` of the object or of its `plan`, where they are too many to stand in it.
    pub intents: Option<IntentTexts>,
    pub exit: Exit,
    /// The code of a command that was run or whose result is given again: the process ends with it
    /// instead.
    pub code: Option<u8>,
}

/// A piece of a report for people.
#[derive(Clone, Debug)]
pub enum Block {
    Title(String),
    /// Wrapped between words where the terminal is narrow. One line: a line break in it is a ledger's
    /// or an operator's, and shown as an escape.
    Line(String),
    /// Text that must stay as it is, such as SQL, with its line breaks.
    Verbatim(String),
    /// A command line that can be typed.
    Command(String),
    Table(Table),
    /// What a command printed, byte for byte, on the streams that it printed it to.
    Raw {
        stdout: Vec<u8>,
        stderr: Vec<u8>,
    },
}

impl Report {
    pub fn new(json: Value) -> Self {
        Self { blocks: Vec::new(), json, intents: None, exit: Exit::Done, code: None }
    }

    /// The whole object, written as it goes.
    pub fn whole(&self) -> Whole<'_> {
        Whole { json: &self.json, intents: self.intents.as_ref() }
    }

    #[must_use]
    pub fn title(self, text: impl Into<String>) -> Self {
        self.block(Block::Title(text.into()))
    }

    #[must_use]
    pub fn line(self, text: impl Into<String>) -> Self {
        self.block(Block::Line(text.into()))
    }

    #[must_use]
    pub fn command(self, text: impl Into<String>) -> Self {
        self.block(Block::Command(text.into()))
    }

    #[must_use]
    pub fn verbatim(self, text: impl Into<String>) -> Self {
        self.block(Block::Verbatim(text.into()))
    }

    /// Adds a table; one without rows is left out.
    #[must_use]
    pub fn table(self, table: Table) -> Self {
        if table.is_empty() { self } else { self.block(Block::Table(table)) }
    }

    #[must_use]
    pub fn block(mut self, block: Block) -> Self {
        self.blocks.push(block);
        self
    }

    /// The same with its texts put otherwise. What can be typed, and what a command printed, stays as it is.
    #[must_use]
    pub fn in_other_words(mut self, put: &dyn Fn(&str) -> String) -> Self {
        for block in &mut self.blocks {
            match block {
                Block::Title(text) | Block::Line(text) | Block::Verbatim(text) => *text = put(text),
                Block::Table(table) => table.in_other_words(put),
                Block::Command(_) | Block::Raw { .. } => {}
            }
        }
        self
    }

    /// Ends with this exit code, unless it has a graver one already.
    #[must_use]
    pub fn exit(mut self, exit: Exit) -> Self {
        self.exit = self.exit.or(exit);
        self
    }
}

/// An object, and the `intents` of it or of its `plan`, where they are too many to stand in it.
#[derive(Clone, Copy, Debug)]
pub struct Whole<'r> {
    pub json: &'r Value,
    pub intents: Option<&'r IntentTexts>,
}

impl Serialize for Whole<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (Value::Object(members), Some(intents)) = (self.json, self.intents) else {
            return self.json.serialize(serializer);
        };
        let mut object = serializer.serialize_map(None)?;
        for (name, value) in members {
            match name.as_str() {
                "intents" => object.serialize_entry(name, intents)?,
                "plan" => object.serialize_entry(name, &Whole { json: value, ..*self })?,
                _ => object.serialize_entry(name, value)?,
            }
        }
        object.end()
    }
}

/// The last line of what is written as JSON line by line.
#[derive(Serialize)]
struct Ended<'r> {
    code: u8,
    event: &'static str,
    result: Whole<'r>,
}

status_type!(
    /// What a command writes.
    Format {
        /// Text and tables, for people.
        Table = "table",
        /// One object on stdout.
        Json = "json",
        /// An object a line: what is going on, and last the result.
        Jsonl = "jsonl",
        /// Files of their own, by the verbs that report.
        Csv = "csv",
        Xlsx = "xlsx",
        Html = "html",
    }
);

// The macro that makes the enum derives no default.
#[allow(clippy::derivable_impls)]
impl Default for Format {
    fn default() -> Self {
        Self::Table
    }
}

impl Format {
    /// Whether programs read it.
    pub const fn is_json(self) -> bool {
        matches!(self, Self::Json | Self::Jsonl)
    }
}

/// How to print.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    pub format: Format,
    pub colour: bool,
    /// In columns.
    pub width: usize,
    /// How many lines a screen has, where what is longer goes through a pager.
    pub screen: Option<usize>,
}

impl Style {
    /// Colour only on a terminal and never with `NO_COLOR`; 80 columns where there is no terminal. A pager
    /// only on a terminal.
    pub fn detect(format: Format) -> Self {
        let terminal = io::stdout().is_terminal();
        let no_colour = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
        let size = if terminal { terminal_size::terminal_size() } else { None };
        let width = size.map_or(80, |(width, _)| usize::from(width.0));
        let screen = size.map(|(_, height)| usize::from(height.0));
        Self { format, colour: terminal && !no_colour, width: width.max(40), screen }
    }

    /// The same, with a pager only where it is wanted.
    #[must_use]
    pub fn paged(self, wanted: bool) -> Self {
        Self { screen: self.screen.filter(|_| wanted), ..self }
    }
}

/// Prints a report to stdout. A reader that has gone away (`onefold … | head`) is no failure.
pub fn print(report: &Report, style: Style) -> io::Result<()> {
    if report.json.is_null() && report.blocks.is_empty() {
        return Ok(());
    }
    if pager::shows(report, style)? {
        return Ok(());
    }
    // By itself it is written line by line.
    let mut out = io::BufWriter::new(io::stdout().lock());
    let written = match style.format {
        Format::Json => serde_json::to_writer_pretty(&mut out, &report.whole())
            .map_err(io::Error::from)
            .and_then(|()| writeln!(out)),
        Format::Jsonl => {
            let code = report.code.unwrap_or(report.exit.code());
            let ended = Ended { code, event: "result", result: report.whole() };
            serde_json::to_writer(&mut out, &ended).map_err(io::Error::from).and_then(|()| writeln!(out))
        }
        _ => write_blocks(&mut out, &report.blocks, style),
    };
    match written.and_then(|()| out.flush()) {
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Prints an error to stderr: as one JSON object where JSON is asked for.
pub fn print_error(error: &Error, format: Format) {
    // A reader that has gone away has no use for it.
    match format {
        Format::Json => drop(writeln!(io::stderr(), "{:#}", error_json(error))),
        Format::Jsonl => drop(writeln!(io::stderr(), "{}", error_json(error))),
        _ => {
            print_note(&format!("error: {}", error.message));
            if let Some(hint) = &error.hint {
                print_note(&format!("hint: {hint}"));
            }
        }
    }
}

/// An error as programs get it.
pub fn error_json(error: &Error) -> Value {
    let mut value = json!({ "kind": error.exit.kind(), "message": error.message, "hint": error.hint,
        "code": error.exit.code() });
    if let Some(details) = &error.details {
        value["details"] = details.clone();
    }
    value
}

/// Prints a note beside the results, to stderr. Its further lines are indented, so that none can be
/// taken for a note of its own.
pub fn print_note(note: &str) {
    let _ = writeln!(io::stderr(), "{}", indented(&printable(note)));
}

fn indented(text: &str) -> String {
    let lines = text
        .split('\n')
        .enumerate()
        .map(|(i, line)| if i == 0 || line.starts_with(' ') { line.to_owned() } else { format!("  {line}") });
    lines.collect::<Vec<_>>().join("\n")
}

pub(crate) fn write_blocks(out: &mut impl Write, blocks: &[Block], style: Style) -> io::Result<()> {
    for (i, block) in blocks.iter().enumerate() {
        match block {
            Block::Title(text) => {
                if i > 0 && !matches!(blocks[i - 1], Block::Command(_)) {
                    writeln!(out)?;
                }
                let text = wrapped(&on_one_line(text), style.width);
                if style.colour { writeln!(out, "\x1b[1m{text}\x1b[0m")? } else { writeln!(out, "{text}")? }
            }
            Block::Line(text) => writeln!(out, "{}", wrapped(&on_one_line(text), style.width))?,
            Block::Verbatim(text) => writeln!(out, "{}", printable(text))?,
            Block::Command(text) => {
                let text = on_one_line(text);
                if style.colour {
                    writeln!(out, "\x1b[36m$ {text}\x1b[0m")?
                } else {
                    writeln!(out, "$ {text}")?
                }
            }
            Block::Table(table) => writeln!(out, "{}", table.render(style))?,
            Block::Raw { stdout, stderr } => {
                // Whoever does not read what was said beside the result misses nothing of the result.
                let _ = io::stderr().write_all(stderr);
                out.write_all(stdout)?;
            }
        }
    }
    Ok(())
}

/// Lines wrapped between words, each as far indented as it began; words stay whole.
fn wrapped(text: &str, width: usize) -> String {
    let lines = text.lines().map(|line| {
        let indent = " ".repeat(line.len() - line.trim_start().len());
        let options = textwrap::Options::new(width)
            .subsequent_indent(&indent)
            .break_words(false)
            .word_separator(textwrap::WordSeparator::Custom(words))
            .word_splitter(textwrap::WordSplitter::NoHyphenation);
        textwrap::fill(line, options)
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// What a line may be wrapped between. An id may hold a slash or a bar, and stays whole; scripts that
/// set no blanks are wrapped by their own rules.
fn words(line: &str) -> Box<dyn Iterator<Item = textwrap::core::Word<'_>> + '_> {
    Box::new(textwrap::WordSeparator::AsciiSpace.find_words(line).flat_map(|word| {
        if word.word.is_ascii() {
            return vec![word];
        }
        let mut parts: Vec<_> = textwrap::WordSeparator::new().find_words(word.word).collect();
        if let Some(last) = parts.last_mut() {
            last.whitespace = word.whitespace;
        }
        parts
    }))
}

/// As [`printable`], and no text from a ledger or an operator begins a line of its own.
pub fn on_one_line(text: &str) -> String {
    printable(text).replace('\n', "\\n")
}

/// Text from a ledger must not steer the terminal: control characters are shown as escapes, but for
/// line breaks.
pub fn printable(text: &str) -> String {
    let is_harmful = |c: char| {
        (c.is_control() && c != '\n')
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if !text.contains(is_harmful) {
        return text.to_owned();
    }
    text.chars().map(|c| if is_harmful(c) { c.escape_default().to_string() } else { c.to_string() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_of_a_ledger_begins_a_line() {
        let forged = "lost\n2026-11-11T12:14:00Z  root  F-1\r\u{2028}";
        let mut table = Table::new([Column::exact("ID"), Column::prose("WHY")]);
        table.row([forged.to_owned(), forged.to_owned()]);
        let report = Report::new(json!({})).title(forged).line(forged).command(forged).table(table);
        for width in [40, 400] {
            let mut out = Vec::new();
            write_blocks(
                &mut out,
                &report.blocks,
                Style { format: Format::Table, colour: false, width, screen: None },
            )
            .unwrap();
            let text = String::from_utf8(out).unwrap();
            assert!(text.contains("lost\\n2026"), "{text}");
            assert!(text.lines().all(|l| !l.starts_with("2026")), "{text}");
            assert!(!text.contains(['\r', '\u{2028}']), "{text}");
        }
        assert_eq!(indented("error: O-1\nhint: x\n  fault"), "error: O-1\n  hint: x\n  fault");
    }
}
