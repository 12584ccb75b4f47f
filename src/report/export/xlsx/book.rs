//! A workbook's sheets: rows are written as they come, none is kept; a sheet that is full goes on in
//! another.

use std::path::Path;

use rust_xlsxwriter::{Color, Format, FormatAlign, FormatBorder, Workbook, Worksheet, XlsxError};

use super::super::target::Target;
use super::super::{Written, count};
use super::front::Front;
use crate::core::money::Currency;
use crate::core::sheet::{Cell, Column, Head, Holds};
use crate::core::time::Timestamp;
use crate::error::{Error, Result};

/// Rows that a sheet of a workbook may have, its header included.
pub const ROWS_A_SHEET: u32 = 1_048_576;
/// Rows up to which a workbook needs no zip64, which not every spreadsheet opens.
const SMALL: u64 = 1_000_000;
/// Characters that a cell may have.
const CELL: usize = 32_767;
/// From here on a spreadsheet's number is no longer exact in every decimal: 15 digits.
pub(super) const EXACT: i128 = 1_000_000_000_000_000;
/// 1899-12-30, from which a spreadsheet counts days.
const DAY_ZERO: i64 = -25_569;
const DAY_US: i64 = 86_400_000_000;

/// How cells look.
pub(super) struct Formats {
    pub header: Format,
    pub title: Format,
    pub label: Format,
    pub text: Format,
    pub wrapped: Format,
    pub time: Format,
    pub number: Format,
    /// By the decimals of a currency, 0 to 4.
    money: [Format; 5],
    pub verdict: Format,
}

impl Formats {
    fn new() -> Self {
        let base = || Format::new().set_font_name("Calibri").set_font_size(11);
        let top = || base().set_align(FormatAlign::Top);
        Self {
            header: base()
                .set_bold()
                .set_background_color(Color::RGB(0x00E8_EDF2))
                .set_border_bottom(FormatBorder::Thin)
                .set_align(FormatAlign::Top),
            title: base().set_bold().set_font_size(14),
            label: top().set_font_color(Color::RGB(0x0044_5566)),
            text: top().set_num_format("@"),
            wrapped: top().set_num_format("@").set_text_wrap(),
            time: top().set_num_format("yyyy-mm-dd hh:mm:ss.000"),
            number: top().set_num_format("#,##0"),
            money: ["#,##0", "#,##0.0", "#,##0.00", "#,##0.000", "#,##0.0000"]
                .map(|f| top().set_num_format(f)),
            verdict: base().set_bold(),
        }
    }

    pub fn money(&self, currency: Currency) -> &Format {
        &self.money[(currency.decimals() as usize).min(4)]
    }
}

/// A sheet and its continuations: which worksheets, and how many rows each has below its header.
#[derive(Default)]
pub(super) struct Parts {
    pub at: Vec<(usize, u32)>,
}

impl Parts {
    pub fn rows(&self) -> u64 {
        self.at.iter().map(|(_, rows)| u64::from(*rows)).sum()
    }
}

/// A workbook whose sheets are being written.
pub(super) struct Book {
    book: Workbook,
    formats: Formats,
    rows_a_sheet: u32,
    heads: Vec<Head>,
    /// In the order of the heads.
    parts: Vec<Parts>,
    cut: u64,
    inexact: u64,
}

pub(super) fn failed(error: XlsxError) -> Error {
    Error::failure(format!("cannot write the workbook: {error}")).hint("name another place with --output")
}

impl Book {
    /// A workbook with an empty first sheet, and these after it. A sheet has at most `rows_a_sheet` rows,
    /// its header included.
    pub fn new(heads: Vec<Head>, rows_a_sheet: u32, scratch: &Path) -> Result<Self> {
        let mut book = Workbook::new();
        // What is written goes to nameless files beside the target first.
        book.set_tempdir(scratch).map_err(failed)?;
        book.add_worksheet().set_name("Summary").map_err(failed)?;
        let parts = heads.iter().map(|_| Parts::default()).collect();
        let (formats, rows_a_sheet) = (Formats::new(), rows_a_sheet.clamp(2, ROWS_A_SHEET));
        Ok(Self { book, formats, rows_a_sheet, heads, parts, cut: 0, inexact: 0 })
    }

    /// A worksheet for what comes next of a sheet, under its name and, from the second on, a number.
    pub fn new_part(&mut self, sheet: usize) -> Result<()> {
        let index = self.book.worksheets().len();
        let parts = &mut self.parts[sheet].at;
        parts.push((index, 0));
        let name = match parts.len() {
            1 => self.heads[sheet].title.to_owned(),
            n => format!("{} {n}", self.heads[sheet].title),
        };
        let worksheet = self.book.add_worksheet_with_constant_memory().map_err(failed)?;
        set_up(worksheet, &name, self.heads[sheet].columns, &self.formats).map_err(failed)
    }

    pub fn row(&mut self, sheet: usize, cells: &[Cell<'_>]) -> Result<()> {
        let is_full = self.parts[sheet].at.last().is_none_or(|(_, rows)| rows + 1 >= self.rows_a_sheet);
        if is_full {
            self.new_part(sheet)?;
        }
        let Some((index, rows)) = self.parts[sheet].at.last_mut() else { return Ok(()) };
        *rows += 1;
        let row = *rows;
        let worksheet = self.book.worksheet_from_index(*index).map_err(failed)?;
        for (at, (cell, column)) in (0..).zip(cells.iter().zip(self.heads[sheet].columns)) {
            let told = write(worksheet, row, at, cell, column.holds, &self.formats).map_err(failed)?;
            self.cut += u64::from(told == Told::Cut);
            self.inexact += u64::from(told == Told::Inexact);
        }
        Ok(())
    }

    /// What the reader must know.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let goes_on = self.heads.iter().zip(&self.parts).filter(|(_, parts)| parts.at.len() > 1);
        let goes_on: Vec<_> = goes_on.map(|(head, _)| head.title).collect();
        if !goes_on.is_empty() {
            notes.push(format!(
                "A sheet holds {} rows: {} goes on in further sheets of the same name with a number",
                self.rows_a_sheet,
                goes_on.join(", ")
            ));
        }
        if self.inexact > 0 {
            notes.push(format!(
                "{} beyond 15 digits, which a spreadsheet rounds: such a number stands as text, and the formulas \
                 do not count it",
                count(self.inexact, "number")
            ));
        }
        if self.cut > 0 {
            notes.push(format!(
                "{} longer than the {CELL} characters that a spreadsheet holds and cut there; the whole is in \
                 --format json",
                count(self.cut, "cell")
            ));
        }
        notes
    }

    /// Writes the first sheet, and the whole to its place.
    pub fn end(
        mut self,
        mut out: Target,
        front: impl FnOnce(Front<'_>, &[String]) -> Result<(), XlsxError>,
    ) -> Result<Written> {
        for (head, parts) in self.heads.iter().zip(&self.parts) {
            let last = u16::try_from(head.columns.len() - 1).unwrap_or(u16::MAX);
            for (index, rows) in &parts.at {
                let worksheet = self.book.worksheet_from_index(*index).map_err(failed)?;
                worksheet.autofilter(0, 0, *rows, last).map_err(failed)?;
            }
        }
        let notes = self.notes();
        let sheet = self.book.worksheet_from_index(0).map_err(failed)?;
        let page = Front { sheet, formats: &self.formats, heads: &self.heads, parts: &self.parts, row: 0 };
        front(page, &notes).map_err(failed)?;
        let rows = self.heads.iter().zip(&self.parts).map(|(head, p)| (head.title, p.rows())).collect();
        let all: u64 = self.parts.iter().map(Parts::rows).sum();
        self.book.use_zip_large_file(all > SMALL);
        self.book.save_to_writer(&mut out).map_err(failed)?;
        out.end()?;
        Ok(Written { rows, notes })
    }
}

fn set_up(
    worksheet: &mut Worksheet,
    name: &str,
    columns: &[Column],
    formats: &Formats,
) -> Result<(), XlsxError> {
    worksheet.set_name(name)?.set_freeze_panes(1, 0)?.set_landscape().set_print_fit_to_pages(1, 0);
    worksheet.set_repeat_rows(0, 0)?;
    for (at, column) in (0..).zip(columns) {
        worksheet.set_column_width(at, column.width)?;
        worksheet.write_string_with_format(0, at, column.title, &formats.header)?;
    }
    Ok(())
}

/// What became of a cell that could not be written as it is.
#[derive(PartialEq, Eq)]
pub(super) enum Told {
    Nothing,
    Cut,
    /// A number that a spreadsheet would round: it is written as text.
    Inexact,
}

pub(super) fn write(
    worksheet: &mut Worksheet,
    row: u32,
    at: u16,
    cell: &Cell<'_>,
    holds: Holds,
    formats: &Formats,
) -> Result<Told, XlsxError> {
    let mut told = Told::Nothing;
    match cell {
        Cell::None => {}
        Cell::Text(text) => {
            let format = if holds == Holds::Prose { &formats.wrapped } else { &formats.text };
            // A spreadsheet counts in UTF-16.
            let mut units = 0;
            let end = text.char_indices().find(|(_, c)| {
                units += c.len_utf16();
                units > CELL - 1
            });
            match end.filter(|_| text.encode_utf16().count() > CELL) {
                None => worksheet.write_string_with_format(row, at, text.as_ref(), format)?,
                Some((end, _)) => {
                    told = Told::Cut;
                    worksheet.write_string_with_format(row, at, format!("{}…", &text[..end]), format)?
                }
            };
        }
        Cell::Number(n) if i128::from(*n).abs() < EXACT => {
            worksheet.write_number_with_format(row, at, *n as f64, &formats.number)?;
        }
        Cell::Number(n) => {
            told = Told::Inexact;
            worksheet.write_string_with_format(row, at, n.to_string(), &formats.text)?;
        }
        Cell::Money(minor, currency) => match exact(*minor, *currency) {
            Some(amount) => {
                worksheet.write_number_with_format(row, at, amount, formats.money(*currency))?;
            }
            None => {
                told = Told::Inexact;
                worksheet.write_string_with_format(row, at, currency.show_bare(*minor), &formats.text)?;
            }
        },
        Cell::Time(time) => match serial(*time) {
            Some(days) => {
                worksheet.write_number_with_format(row, at, days, &formats.time)?;
            }
            None => {
                worksheet.write_string_with_format(row, at, time.to_string(), &formats.text)?;
            }
        },
    }
    Ok(told)
}

/// An amount in major units, where a spreadsheet holds it exactly.
pub(super) fn exact(minor: i128, currency: Currency) -> Option<f64> {
    (minor.abs() < EXACT).then(|| currency.show_bare(minor).parse().ok())?
}

/// The major units up to which amounts of a currency are exact.
pub(super) fn exact_in(currency: Currency) -> String {
    currency.show_bare(EXACT)
}

/// A time as a spreadsheet counts: days. It knows none before 1900 or after 9999.
fn serial(time: Timestamp) -> Option<f64> {
    let us = time.micros().checked_sub(DAY_ZERO * DAY_US)?;
    let days = us as f64 / DAY_US as f64;
    (61.0..2_958_466.0).contains(&days).then_some(days)
}
