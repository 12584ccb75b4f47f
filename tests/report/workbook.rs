//! The workbook, read by a program that did not write it.

use std::collections::BTreeMap;
use std::path::Path;

use calamine::{Data, Range, Reader, Xlsx as Book, open_workbook};
use onefold::core::dossier::Dossier;
use onefold::core::plan::Outcome;
use onefold::report::export::{ROWS_A_SHEET, Written, Xlsx};

use crate::common::book::Book as Ledger;
use crate::scene::{HOSTILE, Scene, finish, hostile, journal, target, temporary};

type Sheets = BTreeMap<String, Range<Data>>;

fn written(dossier: &Dossier<'_>, path: &Path, rows_a_sheet: u32, notes: &[&'static str]) -> Written {
    let scratch = path.parent().unwrap();
    finish(Xlsx::begin(dossier, target(path), rows_a_sheet, scratch).unwrap(), dossier, &journal(notes))
}

fn sheets(path: &Path) -> Sheets {
    let mut book: Book<_> = open_workbook(path).unwrap();
    book.worksheets().into_iter().collect()
}

fn column(sheet: &Range<Data>, title: &str) -> usize {
    let header = sheet.rows().next().unwrap();
    header.iter().position(|c| *c == title).unwrap_or_else(|| panic!("no {title} in {header:?}"))
}

/// The cells under a title.
fn cells<'a>(sheet: &'a Range<Data>, title: &str) -> Vec<&'a Data> {
    let at = column(sheet, title);
    sheet.rows().skip(1).map(|row| &row[at]).collect()
}

/// The line of the summary that begins so, as text.
fn line(summary: &Range<Data>, begins: &[&str]) -> Vec<String> {
    let texts = summary.rows().map(|row| row.iter().map(ToString::to_string).collect::<Vec<_>>());
    let fits = |row: &Vec<String>| begins.iter().zip(row).all(|(a, b)| a == b);
    texts.into_iter().find(fits).unwrap_or_else(|| panic!("no {begins:?}"))
}

#[test]
fn every_sheet_has_its_rows_and_cells_are_what_they_should_be() {
    let scene = Scene::incident();
    let dossier = scene.after();
    let (_dir, folder) = temporary();
    let path = folder.join("report.xlsx");
    let written = written(&dossier, &path, ROWS_A_SHEET, &["a", "b", "c"]);
    // Version 4.5, zip64, is what some spreadsheets do not open.
    let bytes = std::fs::read(&path).unwrap();
    let heads = bytes.windows(4).enumerate().filter(|(_, four)| four == b"PK\x03\x04");
    let versions: Vec<_> = heads.map(|(at, _)| bytes[at + 4]).collect();
    assert!(versions.len() > 10 && versions.iter().all(|v| *v < 45), "{versions:?}");
    let sheets = sheets(&path);
    for (name, n) in &written.rows {
        assert_eq!(sheets[*name].rows().count() as u64, n + 1, "{name}");
    }
    assert_eq!(sheets["Journal"].rows().count(), 4);
    let review = scene.plan.intents.iter().filter(|i| i.outcome == Outcome::Review);
    assert_eq!(sheets["Review"].rows().count() - 1, review.map(|i| i.captured.len().max(1)).sum::<usize>());

    let refunds = &sheets["Refunds"];
    let orders = cells(refunds, "Order");
    let lost = orders.iter().position(|o| **o == Data::String("O-20173".into())).unwrap();
    assert_eq!(*cells(refunds, "Amount")[lost], Data::Float(1760.0));
    assert_eq!(*cells(refunds, "Currency")[lost], Data::String("CNY".into()));
    assert_eq!(*cells(refunds, "Status")[lost], Data::String("DONE".into()));
    assert!(cells(refunds, "Charge reference")[lost].to_string().len() > 5);
    assert!(cells(refunds, "Provider reference")[lost].to_string().starts_with("re_"));
    assert_eq!(cells(refunds, "Step key")[lost].to_string().len(), 64);
    let Data::DateTime(at) = cells(refunds, "At (UTC)")[lost] else { panic!("not a date") };
    let (year, month, day, ..) = at.to_ymd_hms_milli();
    assert_eq!((year, month, day), (2026, 11, 11));
    assert!(column(&sheets["Journal"], "At (UTC)") == 1);
}

#[test]
fn the_sums_are_formulas_over_the_rows_and_their_values_are_those_of_the_rows() {
    let scene = Scene::incident();
    let dossier = scene.after();
    let (_dir, folder) = temporary();
    let path = folder.join("report.xlsx");
    written(&dossier, &path, ROWS_A_SHEET, &[]);
    let all = sheets(&path);
    let summary = &all["Summary"];
    assert_eq!(line(summary, &["All sums close"])[1], "yes");
    let number = |cell: &Data| match cell {
        Data::Float(n) => *n,
        Data::Int(n) => *n as f64,
        _ => 0.0,
    };
    for sum in &scene.plan.sums.money {
        let row = line(summary, &["default", sum.currency.code()]);
        let values: Vec<f64> = row[2..9].iter().map(|v| v.parse().unwrap()).collect();
        let unit = 10_f64.powi(sum.currency.decimals() as i32);
        for (value, part) in values.iter().zip(sum.parts()) {
            assert!((value * unit - part as f64).abs() < 0.01, "{row:?} {sum:?}");
        }
        // By adding up the rows themselves.
        let add = |sheet: &str, title: &str| {
            let currency = cells(&all[sheet], "Currency");
            let amounts = cells(&all[sheet], title);
            let of = currency.iter().zip(&amounts).filter(|(c, _)| c.to_string() == sum.currency.code());
            of.map(|(_, a)| number(a)).sum::<f64>()
        };
        for (value, added) in [
            (values[0], add("Intents", "Captured")),
            (values[2], add("Refunds", "Amount")),
            (values[3], add("Review", "Captured")),
            (values[4], add("Unsettled", "Captured")),
            (values[6], add("Refunds", "Amount")),
        ] {
            assert!((value - added).abs() < 0.001, "{value} {added} of {}", sum.currency);
        }
        assert_eq!(&row[9..11], ["yes", "yes"]);
    }
    for sum in &scene.plan.sums.stock {
        let row = line(summary, &["default", sum.show_id.as_str()]);
        assert_eq!(row[4], sum.to_release.to_string());
        assert_eq!((row[8].as_str(), row[9].as_str()), (row[4].as_str(), "yes"));
    }
    let mut book: Book<_> = open_workbook(&path).unwrap();
    let formulas = book.worksheet_formula("Summary").unwrap();
    let formulas: Vec<_> = formulas.used_cells().map(|(_, _, f)| f.clone()).collect();
    let has = |text: &str| formulas.iter().filter(|f| f.contains(text)).count();
    let money = scene.plan.sums.money.len();
    assert!(has("Refunds!$C$2") >= money - 1 && has("SUMPRODUCT") >= 6 * money, "{formulas:#?}");
    assert_eq!(has("COUNTIF"), 1);
}

#[test]
fn a_plan_whose_sums_are_not_those_of_its_rows_is_told() {
    let mut scene = Scene::incident();
    scene.plan.sums.money[0].kept += 1;
    scene.plan.sums.money[0].clean -= 1;
    let dossier = scene.before();
    let (_dir, folder) = temporary();
    let path = folder.join("report.xlsx");
    written(&dossier, &path, ROWS_A_SHEET, &[]);
    let summary = &sheets(&path)["Summary"];
    assert_eq!(line(summary, &["All sums close"])[1], "no");
    let row = line(summary, &["default", scene.plan.sums.money[0].currency.code()]);
    assert_eq!(&row[9..11], ["yes", "no"]);
}

#[test]
fn what_a_sheet_does_not_hold_goes_on_in_another_and_is_summed_with_it() {
    let scene = Scene::incident();
    let dossier = scene.before();
    let (_dir, folder) = temporary();
    let path = folder.join("report.xlsx");
    let written = written(&dossier, &path, 101, &[]);
    let all = sheets(&path);
    let intents = written.rows.iter().find(|(name, _)| *name == "Intents").unwrap().1;
    assert_eq!(all["Intents"].rows().count(), 101);
    let parts = intents.div_ceil(100);
    let last = &all[&format!("Intents {parts}")];
    assert_eq!(last.rows().count() as u64 - 1, intents - 100 * (parts - 1));
    assert_eq!(last.rows().next(), all["Intents"].rows().next(), "each part has the header");
    let summary = &all["Summary"];
    assert!(line(summary, &["Intents"])[2].ends_with(&format!("goes on in Intents 2 to Intents {parts}")));
    assert_eq!(line(summary, &["All sums close"])[1], "yes");
    assert!(written.notes.iter().any(|n| n.contains("101 rows: Intents, Findings")), "{:?}", written.notes);
}

#[test]
fn an_amount_beyond_a_spreadsheets_digits_is_told_and_not_rounded() {
    let mut book = Ledger::new();
    book.bought("A", 0);
    book.bought("B", 10);
    for id in ["A", "B"] {
        book.find_order(id).amount_minor = 9_007_199_254_740_993;
        book.find_payment(&format!("P-{id}")).amount_minor = 9_007_199_254_740_993;
    }
    let scene = Scene::of_book(&book);
    let dossier = scene.before();
    let (_dir, folder) = temporary();
    let path = folder.join("report.xlsx");
    let written = written(&dossier, &path, ROWS_A_SHEET, &[]);
    let all = sheets(&path);
    assert_eq!(*cells(&all["Refunds"], "Amount")[0], Data::String("90071992547409.93".into()));
    assert!(written.notes.iter().any(|n| n.contains("beyond 15 digits")), "{:?}", written.notes);
    let summary = &all["Summary"];
    assert!(
        summary.rows().any(|r| r[0].to_string().contains("beyond 15 digits")),
        "the workbook says so itself"
    );
    assert_eq!(line(summary, &["All sums close"])[1], "no", "what is not counted does not close");
}

#[test]
fn hostile_ids_are_text_and_leading_zeros_stay() {
    let scene = hostile();
    let dossier = scene.before();
    let (_dir, folder) = temporary();
    let path = folder.join("report.xlsx");
    written(&dossier, &path, ROWS_A_SHEET, &HOSTILE);
    let all = sheets(&path);
    let notes: Vec<_> = cells(&all["Journal"], "Note").into_iter().map(ToString::to_string).collect();
    assert_eq!(notes, HOSTILE);
    let users = cells(&all["Cancelled"], "User");
    assert_eq!(users.len(), HOSTILE.len());
    for id in HOSTILE {
        assert!(users.contains(&&Data::String(id.to_owned())), "{id:?} in {users:?}");
    }
    let mut book: Book<_> = open_workbook(&path).unwrap();
    for name in all.keys().filter(|n| *n != "Summary") {
        let formulas = book.worksheet_formula(name).unwrap();
        assert_eq!(formulas.used_cells().count(), 0, "{name}");
    }
    assert_eq!(line(&all["Summary"], &["All sums close"])[1], "yes");
}
