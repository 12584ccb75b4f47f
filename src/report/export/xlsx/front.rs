//! The first sheet of a workbook: what it is about, what it rests on and which sheets follow.

use rust_xlsxwriter::{Worksheet, XlsxError};

use super::book::{Formats, Parts, write};
use crate::core::sheet::{Cell, Fact, Head, Holds, Sheets};

/// The first sheet, and the row that comes next in it.
pub(super) struct Front<'s> {
    pub sheet: &'s mut Worksheet,
    pub formats: &'s Formats,
    pub heads: &'s [Head],
    pub parts: &'s [Parts],
    pub row: u32,
}

impl Front<'_> {
    /// Of a report that is made of sheets.
    pub fn of_sheets(mut self, report: &dyn Sheets, notes: &[String]) -> Result<(), XlsxError> {
        self.head(&report.title())?;
        self.heading("What was found", &[])?;
        for finding in report.findings() {
            write(self.sheet, self.row, 0, &Cell::Text(finding.into()), Holds::Text, self.formats)?;
            self.row += 1;
        }
        self.about(&report.facts())?;
        self.contents()?;
        self.notes("Times are in UTC, amounts in the major unit of their currency.", notes)
    }

    pub fn head(&mut self, title: &str) -> Result<(), XlsxError> {
        self.sheet.set_freeze_panes(2, 0)?.set_landscape().set_print_fit_to_pages(1, 0);
        self.sheet.set_column_width(0, 32)?.set_column_range_width(1, 10, 17)?;
        self.sheet.write_string_with_format(0, 0, title, &self.formats.title)?;
        self.row = 3;
        Ok(())
    }

    pub fn heading(&mut self, title: &str, columns: &[&str]) -> Result<(), XlsxError> {
        self.sheet.write_string_with_format(self.row, 0, title, &self.formats.verdict)?;
        self.row += 1;
        for (at, column) in (0..).zip(columns) {
            self.sheet.write_string_with_format(self.row, at, *column, &self.formats.header)?;
        }
        self.row += u32::from(!columns.is_empty());
        Ok(())
    }

    pub fn about(&mut self, facts: &[Fact<'_>]) -> Result<(), XlsxError> {
        self.row += 1;
        self.heading("About", &[])?;
        for (name, value) in facts {
            self.sheet.write_string_with_format(self.row, 0, name, &self.formats.label)?;
            write(self.sheet, self.row, 1, value, Holds::Text, self.formats)?;
            self.row += 1;
        }
        Ok(())
    }

    /// Which sheets there are.
    pub fn contents(&mut self) -> Result<(), XlsxError> {
        self.row += 1;
        self.heading("Sheets", &["Sheet", "Rows", "A row is"])?;
        for (head, parts) in self.heads.iter().zip(self.parts) {
            self.sheet.write_string_with_format(self.row, 0, head.title, &self.formats.label)?;
            self.sheet.write_number_with_format(self.row, 1, parts.rows() as f64, &self.formats.number)?;
            let more = match parts.at.len() {
                0 | 1 => String::new(),
                n => format!("; goes on in {title} 2 to {title} {n}", title = head.title),
            };
            self.sheet.write_string(self.row, 2, format!("{}{more}", head.row_is))?;
            self.row += 1;
        }
        Ok(())
    }

    pub fn notes(&mut self, basis: &str, notes: &[String]) -> Result<(), XlsxError> {
        self.row += 1;
        self.heading("Notes", &[])?;
        for note in [basis].into_iter().chain(notes.iter().map(String::as_str)) {
            self.sheet.write_string(self.row, 0, note)?;
            self.row += 1;
        }
        Ok(())
    }
}
