//! The page of a report that is made of sheets: what was found on top, then the first rows of each sheet.

use std::io::Write as _;

use super::super::Written;
use super::super::csv::shown;
use super::super::target::Target;
use super::{capital, count, esc, id, opening};
use crate::core::sheet::{Cell, Head, Holds, Sheets};
use crate::error::Result;

/// A page that is being written.
struct Page {
    out: Target,
    /// Rows that a sheet shows.
    most: u64,
}

/// Writes a page with at most so many rows of each sheet; what it leaves out is told, and where it is.
///
/// # Errors
/// Failure, where it cannot be written.
pub(in super::super) fn page(report: &dyn Sheets, out: Target, most: u64) -> Result<Written> {
    let mut page = Page { out, most };
    page.head(report)?;
    let mut written = Written::default();
    for (sheet, head) in report.heads().iter().enumerate() {
        let all = page.sheet(report, sheet, head)?;
        written.rows.push((head.title, all.min(most)));
        if all > most {
            written.notes.push(format!(
                "the page shows {most} of {} of {}: all are in --format xlsx and csv",
                count(all, "row"),
                head.title
            ));
        }
    }
    page.put("<section id=\"about\">\n<h2>About this report</h2>\n<table class=\"facts\"><tbody>\n")?;
    for (name, value) in report.facts() {
        page.put(&format!("<tr><td>{}</td><td>{}</td></tr>\n", esc(&name), esc(&shown(&value))))?;
    }
    page.put(
        "</tbody></table>\n</section>\n<footer>Made by onefold, which changed nothing; all times are UTC.</footer>\n\
         </main>\n</body>\n</html>\n",
    )?;
    page.out.end()?;
    Ok(written)
}

impl Page {
    fn put(&mut self, text: &str) -> Result<()> {
        self.out.write_all(text.as_bytes()).map_err(|e| self.out.failed(&e))
    }

    fn head(&mut self, report: &dyn Sheets) -> Result<()> {
        let (verb, title) = (report.verb(), report.title());
        let links: String = report
            .heads()
            .iter()
            .map(|head| format!("<a href=\"#{}\">{}</a>", head.name(), esc(head.title)))
            .collect();
        self.put(&format!(
            "{}<header>\n<p class=\"eyebrow\">onefold {verb}</p>\n<h1>{}</h1>\n\
             <nav>{links}<a href=\"#about\">About</a></nav>\n</header>\n\
             <section id=\"found\">\n<h2>What was found</h2>\n",
            opening(verb, &title),
            esc(&capital(&title)),
        ))?;
        for finding in report.findings() {
            self.put(&format!("<p>{}</p>\n", esc(&finding)))?;
        }
        self.put("</section>\n")
    }

    /// Writes a sheet; how many rows it has in all.
    fn sheet(&mut self, report: &dyn Sheets, sheet: usize, head: &Head) -> Result<u64> {
        self.put(&format!(
            "<section id=\"{}\">\n<h2>{}</h2>\n<p>A row is {}.</p>\n",
            head.name(),
            esc(head.title),
            esc(head.row_is)
        ))?;
        let mut all = 0;
        report.rows(sheet, &mut |cells| {
            all += 1;
            if all == 1 {
                self.titles(head)?;
            }
            if all <= self.most { self.row(head, cells) } else { Ok(()) }
        })?;
        if all == 0 {
            self.put("<p class=\"quiet\">None.</p>\n")?;
        } else {
            self.put("</tbody></table>\n")?;
        }
        if let Some(more) = all.checked_sub(self.most).filter(|more| *more > 0) {
            let more = count(more, "more row");
            self.put(&format!(
                "<p class=\"note\">… and {more}, in the workbook and the CSV files: --format xlsx, --format csv</p>\n"
            ))?;
        }
        self.put("</section>\n")?;
        Ok(all)
    }

    fn titles(&mut self, head: &Head) -> Result<()> {
        let titles: String = head
            .columns
            .iter()
            .map(|column| format!("<th{}>{}</th>", class(column.holds), esc(column.title)))
            .collect();
        self.put(&format!("<table class=\"rows\"><thead><tr>{titles}</tr></thead><tbody>\n"))
    }

    fn row(&mut self, head: &Head, cells: &[Cell<'_>]) -> Result<()> {
        let mut html = "<tr>".to_owned();
        for (column, cell) in head.columns.iter().zip(cells) {
            let text = match (cell, column.holds) {
                (Cell::None, _) => String::new(),
                (_, Holds::Text) => id(&shown(cell)),
                _ => esc(&shown(cell)),
            };
            html += &format!("<td{} data-l=\"{}\">{text}</td>", class(column.holds), esc(column.title));
        }
        self.put(&(html + "</tr>\n"))
    }
}

/// Numbers stand to the right.
fn class(holds: Holds) -> &'static str {
    if matches!(holds, Holds::Number | Holds::Money) { " class=\"n\"" } else { "" }
}
