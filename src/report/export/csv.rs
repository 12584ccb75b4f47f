//! CSV: a file for each sheet (RFC 4180, UTF-8). What a spreadsheet would take for a formula is made text
//! by an apostrophe before it, and counted.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use csv::{Terminator, Writer, WriterBuilder};
use tempfile::TempDir;

use super::over::{Kind, must_be_free};
use super::sums::{MONEY, STOCK, money_rows, stock_rows};
use super::target::{Target, cannot_write, folder, name_folder};
use super::{Export, Written, count};
use crate::core::dossier::Dossier;
use crate::core::dossier::sheets::Sheet;
use crate::core::sheet::{Cell, Fact, Head, Put, Sheets};
use crate::error::{Error, Result};

const SUMMARY: [&str; 2] = ["Item", "Value"];
const BOM: &[u8] = "\u{feff}".as_bytes();

/// One sheet that is being written.
struct Records<W: Write> {
    writer: Writer<W>,
    rows: u64,
    neutralised: u64,
}

impl<W: Write> Records<W> {
    fn new(mut out: W, bom: bool, titles: &[&str]) -> csv::Result<Self> {
        if bom {
            out.write_all(BOM)?;
        }
        let mut writer = WriterBuilder::new().terminator(Terminator::CRLF).from_writer(out);
        writer.write_record(titles)?;
        Ok(Self { writer, rows: 0, neutralised: 0 })
    }

    fn row(&mut self, cells: &[Cell<'_>]) -> csv::Result<()> {
        for cell in cells {
            let text = shown(cell);
            let is_text = matches!(cell, Cell::Text(_));
            if is_text && is_formula(&text) {
                self.neutralised += 1;
                self.writer.write_field(format!("'{text}"))?;
            } else {
                self.writer.write_field(text.as_bytes())?;
            }
        }
        self.writer.write_record(None::<&[u8]>)?;
        self.rows += 1;
        Ok(())
    }
}

/// Whether a spreadsheet would take a text for a formula.
pub(super) fn is_formula(text: &str) -> bool {
    text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'])
}

/// A cell as text: money in major units, times in UTC.
pub(super) fn shown<'a>(cell: &'a Cell<'_>) -> Cow<'a, str> {
    match cell {
        Cell::None => "".into(),
        Cell::Text(text) => text.as_ref().into(),
        Cell::Number(n) => n.to_string().into(),
        Cell::Money(minor, currency) => currency.show_bare(*minor).into(),
        Cell::Time(at) => at.to_string().into(),
    }
}

/// The files of the folder of a report about a plan, and the titles of each.
pub(super) fn files() -> Vec<(String, Vec<&'static str>)> {
    let beside = [("money", MONEY.to_vec()), ("stock", STOCK.to_vec())];
    let beside = beside.into_iter().map(|(name, titles)| (name.to_owned(), titles));
    let sheets = Sheet::ALL.into_iter().map(|sheet| (sheet.name(), sheet.head().titles()));
    named(beside.chain(sheets))
}

/// The files of the folder of a report that is made of sheets.
pub(super) fn files_of(heads: &[Head]) -> Vec<(String, Vec<&'static str>)> {
    named(heads.iter().map(|head| (head.name(), head.titles())))
}

fn named(sheets: impl Iterator<Item = (String, Vec<&'static str>)>) -> Vec<(String, Vec<&'static str>)> {
    let summary = std::iter::once(("summary".to_owned(), SUMMARY.to_vec()));
    summary.chain(sheets).map(|(name, titles)| (format!("{name}.csv"), titles)).collect()
}

/// The first bytes of a file with these titles.
pub(super) fn header(bom: bool, titles: &[&str]) -> io::Result<Vec<u8>> {
    let Records { writer, .. } = Records::new(Vec::new(), bom, titles)?;
    writer.into_inner().map_err(|e| io::Error::other(e.to_string()))
}

/// A folder that is being written: it gets its name when all of it is there.
struct Folder {
    dir: TempDir,
    path: PathBuf,
    over: Option<Kind>,
    bom: bool,
    rows: Vec<(&'static str, u64)>,
    neutralised: u64,
}

impl Folder {
    fn begin(path: &Path, bom: bool, over: Option<Kind>) -> Result<Self> {
        must_be_free(path, over.as_ref())?;
        let dir = TempDir::with_prefix_in(".onefold-", folder(path)).map_err(|e| cannot_write(path, &e))?;
        Ok(Self { dir, path: path.to_owned(), over, bom, rows: Vec::new(), neutralised: 0 })
    }

    fn open(&self, name: &str, titles: &[&str]) -> Result<Records<BufWriter<File>>> {
        open(self.dir.path(), name, titles, self.bom, &self.path)
    }

    fn file<'d>(
        &mut self,
        name: &str,
        title: &'static str,
        titles: &[&str],
        rows: &mut dyn FnMut(Put<'_, 'd>) -> Result<()>,
    ) -> Result<()> {
        let mut records = self.open(name, titles)?;
        let path = &self.path;
        rows(&mut |cells| records.row(cells).map_err(|e| failed(path, e)))?;
        self.close(records, title)
    }

    fn summary(&mut self, facts: Vec<Fact<'_>>) -> Result<()> {
        self.file("summary", "Summary", &SUMMARY, &mut |put| {
            facts.iter().try_for_each(|(name, value)| put(&[Cell::Text(name.into()), value.clone()]))
        })
    }

    fn close(&mut self, records: Records<BufWriter<File>>, title: &'static str) -> Result<()> {
        self.rows.push((title, records.rows));
        self.neutralised += records.neutralised;
        let flushed = records.writer.into_inner().map_err(|e| cannot_write(&self.path, e.error()))?;
        let file = flushed.into_inner().map_err(|e| cannot_write(&self.path, e.error()))?;
        file.sync_all().map_err(|e| cannot_write(&self.path, &e))
    }

    fn end(self) -> Result<Written> {
        name_folder(self.dir.path(), &self.path, self.over.as_ref())?;
        Ok(Written { rows: self.rows, notes: notes(self.neutralised) })
    }
}

/// A folder of files, one a sheet.
pub struct Csv {
    folder: Folder,
    journal: Records<BufWriter<File>>,
}

impl Csv {
    /// Writes every sheet but the journal.
    ///
    /// # Errors
    /// Usage, where something is there that is not `over`; failure, where it cannot be written.
    pub fn begin(dossier: &Dossier<'_>, path: &Path, bom: bool, over: Option<Kind>) -> Result<Self> {
        let mut folder = Folder::begin(path, bom, over)?;
        let journal = folder.open("journal", &Sheet::Journal.head().titles())?;
        folder.summary(dossier.facts())?;
        folder.file("money", "Money", &MONEY, &mut |put| {
            money_rows(dossier).iter().try_for_each(|row| put(row))
        })?;
        folder.file("stock", "Stock", &STOCK, &mut |put| {
            stock_rows(dossier).iter().try_for_each(|row| put(row))
        })?;
        for sheet in Sheet::ALL.into_iter().filter(|s| *s != Sheet::Journal) {
            let head = sheet.head();
            folder.file(&head.name(), head.title, &head.titles(), &mut |put| dossier.rows(sheet, put))?;
        }
        Ok(Self { folder, journal })
    }
}

/// A folder of the files of a report that is made of sheets.
///
/// # Errors
/// Usage, where something is there that is not `over`; failure, where it cannot be written.
pub(super) fn write_folder(
    report: &dyn Sheets,
    path: &Path,
    bom: bool,
    over: Option<Kind>,
) -> Result<Written> {
    let mut folder = Folder::begin(path, bom, over)?;
    let findings = report.findings().into_iter().map(|text| ("Found".to_owned(), Cell::Text(text.into())));
    folder.summary(findings.chain(report.facts()).collect())?;
    for (sheet, head) in report.heads().iter().enumerate() {
        folder.file(&head.name(), head.title, &head.titles(), &mut |put| report.rows(sheet, put))?;
    }
    folder.end()
}

fn open(dir: &Path, name: &str, titles: &[&str], bom: bool, path: &Path) -> Result<Records<BufWriter<File>>> {
    // Who bought what is nobody else's business.
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(dir.join(format!("{name}.csv"))).map_err(|e| cannot_write(path, &e))?;
    Records::new(BufWriter::new(file), bom, titles).map_err(|e| failed(path, e))
}

fn failed(path: &Path, error: csv::Error) -> Error {
    cannot_write(path, &error.into())
}

impl Export for Csv {
    fn journal(&mut self, entry: &[Cell<'_>]) -> Result<()> {
        self.journal.row(entry).map_err(|e| failed(&self.folder.path, e))
    }

    fn end(mut self: Box<Self>, _: &Dossier<'_>) -> Result<Written> {
        self.folder.close(self.journal, Sheet::Journal.title())?;
        self.folder.end()
    }
}

fn notes(neutralised: u64) -> Vec<String> {
    if neutralised == 0 {
        return Vec::new();
    }
    vec![format!(
        "{} would be read as a formula and {} an apostrophe before it",
        count(neutralised, "cell"),
        if neutralised == 1 { "has" } else { "have" }
    )]
}

/// One sheet alone.
pub struct OneSheet {
    sheet: Sheet,
    records: Records<Target>,
}

impl OneSheet {
    /// Writes the sheet, unless it is the journal.
    ///
    /// # Errors
    /// Failure, where it cannot be written.
    pub fn begin(dossier: &Dossier<'_>, sheet: Sheet, out: Target, bom: bool) -> Result<Self> {
        let mut records = Records::new(out, bom, &sheet.head().titles()).map_err(broken)?;
        dossier.rows(sheet, &mut |cells| records.row(cells).map_err(broken))?;
        Ok(Self { sheet, records })
    }
}

impl Export for OneSheet {
    fn journal(&mut self, entry: &[Cell<'_>]) -> Result<()> {
        if self.sheet != Sheet::Journal {
            return Ok(());
        }
        self.records.row(entry).map_err(broken)
    }

    fn end(self: Box<Self>, _: &Dossier<'_>) -> Result<Written> {
        end_sheet(self.records, self.sheet.title())
    }
}

/// One sheet alone of a report that is made of sheets.
///
/// # Errors
/// Failure, where it cannot be written.
pub(super) fn write_sheet(report: &dyn Sheets, sheet: usize, out: Target, bom: bool) -> Result<Written> {
    let head = report.heads()[sheet];
    let mut records = Records::new(out, bom, &head.titles()).map_err(broken)?;
    report.rows(sheet, &mut |cells| records.row(cells).map_err(broken))?;
    end_sheet(records, head.title)
}

fn broken(error: csv::Error) -> Error {
    Error::failure(format!("cannot write the sheet: {error}"))
}

fn end_sheet(records: Records<Target>, title: &'static str) -> Result<Written> {
    let Records { writer, rows, neutralised } = records;
    let out = writer.into_inner().map_err(|e| broken(e.into_error().into()))?;
    out.end()?;
    Ok(Written { rows: vec![(title, rows)], notes: notes(neutralised) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_begins_like_a_formula_is_made_text_and_numbers_are_left_alone() {
        let mut out = Vec::new();
        let mut records = Records::new(&mut out, true, &["Id", "Amount"]).unwrap();
        let money = |minor| Cell::Money(minor, "CNY".parse().unwrap());
        for id in ["=1+1", "+1", "-1", "@x", "\tx", "\rx", "007", "a,\"b\"", "＝1"] {
            records.row(&[Cell::Text(id.into()), money(-5)]).unwrap();
        }
        assert_eq!((records.rows, records.neutralised), (9, 7));
        drop(records);
        let text = String::from_utf8(out).unwrap();
        assert!(text.starts_with("\u{feff}Id,Amount\r\n'=1+1,-0.05\r\n'+1,-0.05\r\n"), "{text:?}");
        assert!(text.contains("\r\n007,-0.05\r\n\"a,\"\"b\"\"\",-0.05\r\n"), "{text:?}");
        assert!(text.contains("\"'\rx\","), "{text:?}");
    }
}
