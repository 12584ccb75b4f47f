//! Reports that leave: each format in a file of its own. The report about a plan is made of one [`Dossier`],
//! any other of [`Sheets`].

mod csv;
mod html;
mod json;
mod over;
mod sums;
mod target;
mod xlsx;

pub use csv::{Csv, OneSheet};
pub use html::{Html, Limits};
pub use json::Json;
pub use over::{Kind, must_be_free};
pub use target::Target;
pub use xlsx::{ROWS_A_SHEET, Xlsx};

use std::path::Path;

use super::Format;
use crate::core::dossier::Dossier;
use crate::core::sheet::{Cell, Sheets};
use crate::error::Result;

/// A report that is being written. What the plan says is written when it is begun; the journal comes
/// after it, page by page.
pub trait Export {
    /// Adds entries of the journal, as many cells each as the sheet has columns.
    ///
    /// # Errors
    /// What cannot be written.
    fn journal(&mut self, entry: &[Cell<'_>]) -> Result<()>;

    /// Writes what is left; what is then there is whole.
    ///
    /// # Errors
    /// What cannot be written.
    fn end(self: Box<Self>, dossier: &Dossier<'_>) -> Result<Written>;
}

/// What a report holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// How many rows each sheet has.
    pub rows: Vec<(&'static str, u64)>,
    /// What the reader must know.
    pub notes: Vec<String>,
}

/// Rows of a sheet that a page shows.
const ROWS_A_PAGE: u64 = 1000;

/// How a report that is made of sheets leaves.
#[derive(Clone, Copy, Debug)]
pub struct Leaving<'l> {
    pub format: Format,
    /// Stdout, where there is none.
    pub output: Option<&'l Path>,
    /// One sheet alone, by its place, as CSV.
    pub sheet: Option<usize>,
    /// Begins CSV with a byte order mark.
    pub bom: bool,
    /// Whether an earlier report of the same kind may be written over.
    pub force: bool,
}

/// Writes a report that is made of sheets: a workbook, a page, CSV, or else one object.
///
/// # Errors
/// Usage, where something is there that may not be replaced; failure, where it cannot be written.
pub fn leave(report: &dyn Sheets, how: Leaving<'_>) -> Result<Written> {
    let over = how.force.then(|| Kind::of_heads(report.verb(), report.heads(), how.format, how.sheet));
    match (how.format, how.sheet, how.output) {
        (Format::Csv, None, Some(folder)) => csv::write_folder(report, folder, how.bom, over),
        (format, sheet, output) => {
            let target = Target::new(output, over)?;
            let scratch = output.map_or(Path::new("."), target::folder);
            match (format, sheet) {
                (Format::Csv, Some(sheet)) => csv::write_sheet(report, sheet, target, how.bom),
                (Format::Xlsx, _) => xlsx::workbook(report, target, ROWS_A_SHEET, scratch),
                (Format::Html, _) => html::page(report, target, ROWS_A_PAGE),
                _ => json::write(report, target),
            }
        }
    }
}

/// `1 row`, `2 rows`.
fn count(n: u64, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}
