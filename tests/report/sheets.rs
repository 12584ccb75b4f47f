//! A report that is made of sheets, in every format: what was found, every row, and nothing that means harm.

use std::fs;
use std::path::{Path, PathBuf};

use calamine::{Data, Reader as _, Xlsx, open_workbook};
use onefold::core::sheet::{Cell, Column, Fact, Head, Holds, Put, Sheets, column};
use onefold::core::time::Timestamp;
use onefold::error::Result;
use onefold::report::Format;
use onefold::report::export::{Leaving, leave};
use serde_json::{Value, json};

use crate::scene::{HOSTILE, temporary};

const COLUMNS: &[Column] = &[
    column("order_id", "Order", Holds::Text, 12),
    column("at", "At (UTC)", Holds::Time, 24),
    column("attempt", "Attempt", Holds::Number, 9),
    column("why", "Why", Holds::Prose, 40),
];
const HEADS: [Head; 2] = [
    Head { title: "What came", row_is: "an arrival", columns: COLUMNS },
    Head { title: "Hops", row_is: "a hop", columns: COLUMNS },
];

/// An arrival for each hostile id, as often as is said, and no hop.
struct Night(usize);

impl Sheets for Night {
    fn verb(&self) -> &'static str {
        "trace"
    }

    fn title(&self) -> String {
        "show <b>S-204</b>".to_owned()
    }

    fn findings(&self) -> Vec<String> {
        vec!["8 orders = 6 taps + 2 <retries>".to_owned()]
    }

    fn facts(&self) -> Vec<Fact<'_>> {
        vec![("Orders".to_owned(), Cell::Number(8))]
    }

    fn json(&self) -> Value {
        json!({ "sources": [{ "source": "client", "orders": 6 }] })
    }

    fn heads(&self) -> &'static [Head] {
        &HEADS
    }

    fn rows<'a>(&'a self, sheet: usize, put: Put<'_, 'a>) -> Result<()> {
        let ids = HOSTILE.iter().filter(|_| sheet == 0).flat_map(|id| std::iter::repeat_n(id, self.0));
        for (n, id) in ids.enumerate() {
            let at = Timestamp::parse_rfc3339("2026-11-11T12:14:00.430Z").unwrap();
            put(&[Cell::Text((*id).into()), Cell::Time(at), Cell::Number(n as i64), Cell::None])?;
        }
        Ok(())
    }
}

fn how(format: Format, output: &Path) -> Leaving<'_> {
    Leaving { format, output: Some(output), sheet: None, bom: false, force: false }
}

#[test]
fn every_format_has_every_row_and_what_was_found() {
    let (_dir, folder) = temporary();
    let all = HOSTILE.len() as u64;

    let book = folder.join("r.xlsx");
    let written = leave(&Night(1), how(Format::Xlsx, &book)).unwrap();
    assert_eq!(written.rows, [("What came", all), ("Hops", 0)]);
    let mut read: Xlsx<_> = open_workbook(&book).unwrap();
    assert_eq!(read.sheet_names(), ["Summary", "What came", "Hops"]);
    let summary = read.worksheet_range("Summary").unwrap();
    assert!(summary.used_cells().any(|(_, _, cell)| *cell == "8 orders = 6 taps + 2 <retries>"));
    let came = read.worksheet_range("What came").unwrap();
    let ids: Vec<_> = came.rows().skip(1).map(|row| row[0].to_string()).collect();
    for (id, read) in HOSTILE.iter().zip(&ids) {
        // XML knows no bare carriage return.
        assert_eq!(read.replace('\r', "\n"), id.replace('\r', "\n"));
    }
    assert!(matches!(came.get((1, 1)), Some(Data::DateTime(_))), "{:?}", came.get((1, 1)));

    let page = folder.join("r.html");
    leave(&Night(1), how(Format::Html, &page)).unwrap();
    let text = fs::read_to_string(&page).unwrap();
    for harm in ["<script>alert", "<img", "<b>S-204", "<retries>", "\u{202e}"] {
        assert!(!text.contains(harm), "{harm} in {text}");
    }
    assert!(text.contains("2 &lt;retries&gt;") && text.contains(">007<"), "{text}");

    let csv = folder.join("csv");
    let written = leave(&Night(1), how(Format::Csv, &csv)).unwrap();
    assert!(written.notes[0].contains("apostrophe"), "{:?}", written.notes);
    let names: Vec<_> = fs::read_dir(&csv).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names.len(), 3, "{names:?}");
    let mut records = csv::Reader::from_path(csv.join("what_came.csv")).unwrap();
    assert_eq!(records.records().map(|r| r.unwrap()).filter(|r| r.len() == 4).count() as u64, all);

    let object = folder.join("r.json");
    leave(&Night(1), how(Format::Json, &object)).unwrap();
    let json: Value = serde_json::from_str(&fs::read_to_string(&object).unwrap()).unwrap();
    assert_eq!((&json["report"], &json["about"]["Orders"]), (&json!("trace"), &json!(8)));
    assert_eq!(json["sources"][0]["orders"], 6);
    let read: Vec<_> =
        json["sheets"]["what_came"].as_array().unwrap().iter().map(|r| r["order_id"].clone()).collect();
    assert_eq!(read, HOSTILE.map(Value::from));
    assert_eq!(json["sheets"]["hops"], json!([]));
}

#[test]
fn a_page_says_what_it_leaves_out() {
    let (_dir, folder) = temporary();
    let page = folder.join("r.html");
    let written = leave(&Night(100), how(Format::Html, &page)).unwrap();
    assert_eq!(written.rows[0], ("What came", 1000));
    assert!(written.notes[0].contains("1000 of 1200 rows of What came"), "{:?}", written.notes);
    let text = fs::read_to_string(&page).unwrap();
    assert!(text.contains("… and 200 more rows") && text.matches("<tr>").count() < 1010, "{}", text.len());
}

#[test]
fn only_the_same_report_is_written_over() {
    let (_dir, folder) = temporary();
    let formats =
        [(Format::Xlsx, "r.xlsx"), (Format::Html, "r.html"), (Format::Json, "r.json"), (Format::Csv, "r")];
    for (format, name) in formats {
        let path: PathBuf = folder.join(name);
        leave(&Night(1), how(format, &path)).unwrap();
        let error = leave(&Night(1), how(format, &path)).unwrap_err();
        assert!(error.message.contains("is there already"), "{error:?}");
        let force = Leaving { force: true, ..how(format, &path) };
        leave(&Night(2), force).unwrap();
    }
    // What another verb made is no earlier one of this.
    for (format, name, text) in [
        (
            Format::Html,
            "r.html",
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"generator\" content=\"onefold report\">\n",
        ),
        (Format::Json, "r.json", "{\n\"plan_id\": 1}"),
    ] {
        let path = folder.join(name);
        fs::write(&path, text).unwrap();
        let error = leave(&Night(1), Leaving { force: true, ..how(format, &path) }).unwrap_err();
        assert!(error.message.contains("no onefold report of this format"), "{error:?}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
    let sheet = folder.join("one.csv");
    leave(&Night(1), Leaving { sheet: Some(0), ..how(Format::Csv, &sheet) }).unwrap();
    assert!(fs::read_to_string(&sheet).unwrap().starts_with("Order,At (UTC),Attempt,Why\r\n"));
}
