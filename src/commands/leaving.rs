//! Where a report goes that leaves, as flags say it.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};

use super::count;
use super::progress::Progress;
use super::typing::again;
use crate::config::Config;
use crate::core::sheet::Sheets;
use crate::core::words::quoted;
use crate::error::{Error, Result};
use crate::report::export::{Kind, Leaving, Written, leave, must_be_free};
use crate::report::{Format, Report};

/// Where it goes, and what of it.
#[derive(Clone, Debug, Default, Args)]
pub struct OutputFlags {
    /// The file to write; for CSV a folder with a file for each sheet
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// One sheet alone as CSV, to --output or to stdout
    #[arg(long, value_name = "SHEET")]
    pub sheet: Option<String>,
    /// Begin CSV with a byte order mark, by which Excel knows UTF-8
    #[arg(long)]
    pub bom: bool,
    /// Write over an earlier report of this format; nothing else is written over
    #[arg(long)]
    pub force: bool,
}

/// What a verb's report is written as.
pub fn format(config: &Config) -> Format {
    match config.written {
        None | Some(Format::Table | Format::Jsonl) if config.format.is_json() => Format::Json,
        format => format.unwrap_or(Format::Table),
    }
}

impl OutputFlags {
    /// The place of the sheet that is wanted alone among these.
    ///
    /// # Errors
    /// Usage, where there is none of that name.
    pub fn sheet(&self, names: &[String]) -> Result<Option<usize>> {
        let Some(name) = &self.sheet else { return Ok(None) };
        let place = names.iter().position(|n| n == name);
        let of = names.join(", ");
        place
            .map(Some)
            .ok_or_else(|| Error::usage(format!("there is no sheet {name} [possible values: {of}]")))
    }

    /// Refuses what could not be written before anything is read. `verb` is what reports, and `sheet` one of its
    /// sheets, for hints; `kind` is what it writes.
    ///
    /// # Errors
    /// Usage, saying what to type.
    pub fn check(&self, config: &Config, format: Format, verb: &str, sheet: &str, kind: &Kind) -> Result<()> {
        let again = |rest: &str| again(config, &[], rest);
        let file = |end: &str| again(&format!("--format {end} --output {verb}.{end}"));
        if self.sheet.is_some() && format != Format::Csv {
            return Err(
                Error::usage("--sheet is for CSV").hint(again(&format!("--format csv --sheet {sheet}")))
            );
        }
        if self.bom && format != Format::Csv {
            return Err(Error::usage("--bom is for CSV").hint(again("--format csv --bom --output DIR")));
        }
        match (format, &self.output) {
            (Format::Table, Some(path)) => {
                let named = path.extension().and_then(|end| end.to_str());
                let format = named.filter(|end| ["html", "csv", "json"].contains(end)).unwrap_or("xlsx");
                let path = quoted(&path.display().to_string());
                Err(Error::usage("a table goes to the terminal, not to --output").hint(format!(
                    "{}; there are xlsx, html, csv, json",
                    again(&format!("--format {format} --output {path}"))
                )))
            }
            (Format::Xlsx, None) => Err(Error::usage("a workbook needs a file to go to").hint(file("xlsx"))),
            (Format::Html, None) if config.format.is_json() => {
                Err(Error::usage("a page needs a file to go to where stdout is for JSON").hint(file("html")))
            }
            (Format::Csv, None) if self.sheet.is_none() => {
                Err(Error::usage("a report as CSV is a file for each sheet, and needs a folder to go to")
                    .hint(again(&format!(
                        "--format csv --output DIR; or one sheet to stdout: --format csv --sheet {sheet}"
                    ))))
            }
            (Format::Csv, None) if config.format.is_json() => {
                Err(Error::usage("a sheet needs a file to go to where stdout is for JSON")
                    .hint(again(&format!("--format csv --sheet {sheet} --output {sheet}.csv"))))
            }
            (Format::Json, None) if config.format == Format::Jsonl => Err(Error::usage(
                "a report on stdout is one object over many lines, not JSON lines",
            )
            .hint(format!(
                "{}; or the report to a file and JSON lines to stdout: {}",
                again("--format json"),
                again(&format!("--format jsonl --output {verb}.json"))
            ))),
            (_, Some(path)) => must_be_free(path, self.force.then_some(kind)),
            (_, None) => Ok(()),
        }
    }

    /// Writes a report that is made of sheets in any format but a table, and tells what went where.
    ///
    /// # Errors
    /// As [`leave`].
    pub fn leave(&self, config: &Config, report: &dyn Sheets, format: Format) -> Result<Report> {
        let names: Vec<_> = report.heads().iter().map(|head| head.name()).collect();
        let progress = Progress::new(config, "writing");
        let written = leave(
            report,
            Leaving {
                format,
                output: self.output.as_deref(),
                sheet: self.sheet(&names)?,
                bom: self.bom,
                force: self.force,
            },
        )?;
        progress.end();
        Ok(told(config, self.output.as_deref(), &written, json!({})))
    }
}

/// What was written where; `more` are further members for programs.
pub fn told(config: &Config, output: Option<&Path>, written: &Written, more: Value) -> Report {
    let Some(path) = output else {
        // The report itself is on stdout.
        if !config.quiet {
            written.notes.iter().for_each(|note| crate::report::print_note(&format!("note: {note}")));
        }
        return Report::new(json!(null));
    };
    let rows: serde_json::Map<_, _> =
        written.rows.iter().map(|(name, n)| (name.to_lowercase().replace(' ', "_"), json!(n))).collect();
    let mut json = json!({ "output": path, "rows": rows, "notes": written.notes });
    for (name, value) in more.as_object().into_iter().flatten() {
        json[name] = value.clone();
    }
    let all: u64 = written.rows.iter().map(|(_, n)| n).sum();
    let all = count(usize::try_from(all).unwrap_or(usize::MAX), "row");
    let report = Report::new(json).line(format!("{}: {all}", path.display()));
    written.notes.iter().fold(report, |report, note| report.line(format!("note: {note}")))
}
