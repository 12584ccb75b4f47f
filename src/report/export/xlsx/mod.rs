//! XLSX: a workbook whose sums are formulas over its own rows.

mod book;
mod front;
mod summary;

use std::path::Path;

use super::target::Target;
use super::{Export, Written};
use crate::core::dossier::Dossier;
use crate::core::dossier::sheets::Sheet;
use crate::core::sheet::{Cell, Sheets};
use crate::error::Result;
use book::Book;
pub use book::ROWS_A_SHEET;

/// A workbook that is being written.
pub struct Xlsx {
    book: Book,
    out: Target,
}

impl Xlsx {
    /// Writes every sheet but the journal and the summary. A sheet has at most `rows_a_sheet` rows, its
    /// header included.
    ///
    /// # Errors
    /// Failure, where it cannot be written.
    pub fn begin(dossier: &Dossier<'_>, out: Target, rows_a_sheet: u32, scratch: &Path) -> Result<Self> {
        let mut book = Book::new(Sheet::ALL.map(Sheet::head).to_vec(), rows_a_sheet, scratch)?;
        for sheet in Sheet::ALL {
            book.new_part(sheet as usize)?;
            dossier.rows(sheet, &mut |cells| book.row(sheet as usize, cells))?;
        }
        Ok(Self { book, out })
    }
}

impl Export for Xlsx {
    fn journal(&mut self, entry: &[Cell<'_>]) -> Result<()> {
        self.book.row(Sheet::Journal as usize, entry)
    }

    fn end(self: Box<Self>, dossier: &Dossier<'_>) -> Result<Written> {
        self.book.end(self.out, |front, notes| front.of_plan(dossier, notes))
    }
}

/// A workbook of a report that is made of sheets.
///
/// # Errors
/// Failure, where it cannot be written.
pub(super) fn workbook(
    report: &dyn Sheets,
    out: Target,
    rows_a_sheet: u32,
    scratch: &Path,
) -> Result<Written> {
    let mut book = Book::new(report.heads().to_vec(), rows_a_sheet, scratch)?;
    for sheet in 0..report.heads().len() {
        book.new_part(sheet)?;
        report.rows(sheet, &mut |cells| book.row(sheet, cells))?;
    }
    book.end(out, |front, notes| front.of_sheets(report, notes))
}
