//! What a report may be written over: nothing, and with `--force` only a report of the same format. What
//! else is there, a database or a configuration, may not be told apart from it by its name alone.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use super::target::{cannot_write, folder, is_there};
use super::{csv, html, json};
use crate::core::dossier::sheets::Sheet;
use crate::core::sheet::Head;
use crate::error::{Error, Result};
use crate::report::Format;

/// What a report is, by which one that is there is known again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A page or an object, by its first bytes.
    Text(String),
    Xlsx,
    /// One sheet as CSV, by the titles of its columns.
    Sheet(Vec<&'static str>),
    /// A folder of CSV: its files, and the titles of each.
    Folder(Vec<(String, Vec<&'static str>)>),
}

impl Kind {
    /// Of a report about a plan; of one sheet of it, if only one is written.
    pub fn of_plan(format: Format, sheet: Option<Sheet>) -> Self {
        match (format, sheet) {
            (Format::Csv, Some(sheet)) => Self::Sheet(sheet.head().titles()),
            (Format::Csv, None) => Self::Folder(csv::files()),
            (Format::Xlsx, _) => Self::Xlsx,
            (Format::Html, _) => Self::Text(html::begins("report")),
            _ => Self::Text(json::BEGINS.to_owned()),
        }
    }

    /// Of a verb's report that is made of sheets; of one of them, if only one is written.
    pub fn of_heads(verb: &str, heads: &[Head], format: Format, sheet: Option<usize>) -> Self {
        match (format, sheet) {
            (Format::Csv, Some(sheet)) => Self::Sheet(heads[sheet].titles()),
            (Format::Csv, None) => Self::Folder(csv::files_of(heads)),
            (Format::Xlsx, _) => Self::Xlsx,
            (Format::Html, _) => Self::Text(html::begins(verb)),
            _ => Self::Text(json::begins(verb)),
        }
    }
}

/// With which an archive begins, and so a workbook.
const ZIP: &[u8] = b"PK\x03\x04";

/// `over` is what may be written over; nothing, where `--force` is not said.
///
/// # Errors
/// Usage, where something is there that may not be replaced, or there is no folder for it.
pub fn must_be_free(path: &Path, over: Option<&Kind>) -> Result<()> {
    if !folder(path).is_dir() {
        return Err(Error::usage(format!("there is no folder {}", folder(path).display()))
            .hint("make it, or name a file in another folder"));
    }
    // A link that leads nowhere is there, too.
    if path.symlink_metadata().is_err() {
        return Ok(());
    }
    match over {
        None => Err(is_there(path)),
        Some(Kind::Folder(files)) => must_be_our_folder(path, files),
        Some(kind) => must_be_ours(path, kind),
    }
}

fn must_be_ours(path: &Path, kind: &Kind) -> Result<()> {
    let is_ours = match kind {
        Kind::Text(with) => begins(path, with.as_bytes()),
        Kind::Xlsx if path.extension().is_some_and(|end| end.eq_ignore_ascii_case("xlsx")) => {
            begins(path, ZIP)
        }
        Kind::Xlsx | Kind::Folder(_) => Ok(false),
        Kind::Sheet(titles) => is_csv(path, titles),
    };
    if is_ours.map_err(|e| cannot_read(path, &e))? {
        return Ok(());
    }
    Err(Error::usage(format!(
        "{} is no onefold report of this format: it is not written over, with --force neither",
        path.display()
    ))
    .hint("name another with --output"))
}

/// A folder that holds nothing but what this report writes: a file of a former one beside it would be
/// taken for a part of it.
fn must_be_our_folder(path: &Path, files: &[(String, Vec<&str>)]) -> Result<()> {
    if !path.is_dir() {
        return Err(Error::usage(format!("{} is a file, and CSV is a folder of files", path.display()))
            .hint("name a folder with --output, or one sheet with --sheet"));
    }
    let mut strange = Vec::new();
    for entry in fs::read_dir(path).map_err(|e| cannot_write(path, &e))? {
        let entry = entry.map_err(|e| cannot_write(path, &e))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let titles = files.iter().find(|(file, _)| *file == name).map(|(_, titles)| titles);
        let is_ours = titles.is_some_and(|titles| is_csv(&entry.path(), titles).unwrap_or(false));
        if !is_ours {
            strange.push(name);
        }
    }
    if strange.is_empty() {
        return Ok(());
    }
    strange.sort_unstable();
    Err(Error::usage(format!(
        "{} holds what is no part of this report: {}; nothing is written over, with --force neither",
        path.display(),
        strange.join(", ")
    ))
    .hint("name another folder with --output, or move these files away first"))
}

fn cannot_read(path: &Path, error: &io::Error) -> Error {
    Error::usage(format!("cannot see what {} is: {error}; it is not written over", path.display()))
        .hint("name another with --output")
}

fn is_csv(path: &Path, titles: &[&str]) -> io::Result<bool> {
    for bom in [false, true] {
        if begins(path, &csv::header(bom, titles)?)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a file, and nothing else than a file, begins with these bytes.
fn begins(path: &Path, with: &[u8]) -> io::Result<bool> {
    if !path.is_file() {
        return Ok(false);
    }
    let mut there = Vec::with_capacity(with.len());
    File::open(path)?.take(with.len() as u64).read_to_end(&mut there)?;
    Ok(there == with)
}
