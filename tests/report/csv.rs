//! CSV: read by a parser of its own, and told what a spreadsheet would do with it.

use std::fs;
use std::path::Path;

use onefold::core::dossier::sheets::Sheet;
use onefold::report::Format;
use onefold::report::export::{Csv, Export, Kind, OneSheet};

use crate::scene::{HOSTILE, Scene, finish, hostile, journal, target, temporary};

fn folder_of_plan() -> Kind {
    Kind::of_plan(Format::Csv, None)
}

/// Every record of a file, its header first.
fn records(path: &Path) -> Vec<Vec<String>> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_path(path).unwrap();
    reader.records().map(|r| r.unwrap().iter().map(str::to_owned).collect()).collect()
}

#[test]
fn a_folder_has_a_file_for_each_sheet_with_the_rows_of_the_plan() {
    let scene = Scene::incident();
    let dossier = scene.after();
    let (_dir, folder) = temporary();
    let out = folder.join("report");
    let written = finish(Csv::begin(&dossier, &out, false, None).unwrap(), &dossier, &journal(&["a", "b"]));
    let rows = |name: &str| records(&out.join(format!("{name}.csv")));
    for (name, n) in &written.rows {
        assert_eq!(rows(&name.to_lowercase()).len() as u64, n + 1, "{name}");
    }
    let refunds = rows("refunds");
    let steps = scene.plan.intents.iter().flat_map(|i| &i.steps);
    assert_eq!(refunds.len() - 1, steps.filter(|s| s.is_refund()).count());
    let lost = refunds.iter().find(|r| r.contains(&"O-20173".to_owned())).unwrap();
    for cell in ["CNY", "1760.00", "DONE"] {
        assert!(lost.contains(&cell.to_owned()), "{cell} in {lost:?}");
    }
    let money = rows("money");
    assert!(
        money.iter().any(|r| r[1] == "JPY" && r[4] == "37000" && r[8] == "37000" && r[9] == "yes"),
        "{money:?}"
    );
    assert_eq!(rows("journal").len(), 3);
    let raw = fs::read_to_string(out.join("refunds.csv")).unwrap();
    assert!(raw.lines().count() > 1 && raw.split_inclusive('\n').all(|l| l.ends_with("\r\n")));
    assert!(written.notes.is_empty(), "{:?}", written.notes);
}

#[test]
fn no_cell_is_read_as_a_formula_and_how_many_would_be_is_said() {
    let scene = hostile();
    let dossier = scene.before();
    let (_dir, folder) = temporary();
    let out = folder.join("report");
    let written = finish(Csv::begin(&dossier, &out, true, None).unwrap(), &dossier, &journal(&HOSTILE));
    let mut neutralised = 0;
    for entry in fs::read_dir(&out).unwrap() {
        let path = entry.unwrap().path();
        assert!(fs::read(&path).unwrap().starts_with("\u{feff}".as_bytes()), "{path:?}");
        for cell in records(&path).iter().flatten() {
            let begins = cell.trim_start_matches('\u{feff}').chars().next();
            let is_number = cell.parse::<f64>().is_ok();
            assert!(is_number || !begins.is_some_and(|c| "=+-@\t\r".contains(c)), "{cell:?} in {path:?}");
            let was = cell.strip_prefix('\'');
            neutralised += usize::from(was.is_some_and(|w| w.starts_with(['=', '+', '-', '@', '\t', '\r'])));
        }
    }
    assert!(neutralised > 30, "{neutralised}");
    let note = written.notes.join("\n");
    assert!(note.starts_with(&format!("{neutralised} cells would be read as a formula")), "{note}");
    let orders: Vec<_> = records(&out.join("cancelled.csv")).into_iter().map(|r| r[1].clone()).collect();
    assert!(orders.contains(&"007#2".to_owned()) && orders.contains(&"订单🎟️#2".to_owned()), "{orders:?}");
}

#[test]
fn a_folder_that_is_there_stays_as_it_is_and_a_sheet_may_go_alone() {
    let scene = Scene::incident();
    let dossier = scene.before();
    let (_dir, folder) = temporary();
    let out = folder.join("report");
    fs::create_dir(&out).unwrap();
    fs::write(out.join("refunds.csv"), "mine").unwrap();
    let refused = Csv::begin(&dossier, &out, false, None).err().unwrap();
    assert!(refused.hint.unwrap().contains("--force"));
    assert_eq!(fs::read_to_string(out.join("refunds.csv")).unwrap(), "mine");
    let refused = Csv::begin(&dossier, &out, false, Some(folder_of_plan())).err().unwrap();
    assert!(refused.message.contains("refunds.csv"), "{}", refused.message);
    assert_eq!(fs::read_to_string(out.join("refunds.csv")).unwrap(), "mine");
    fs::remove_file(out.join("refunds.csv")).unwrap();
    // What comes while it is being written is seen, too.
    let late = Csv::begin(&dossier, &out, false, Some(folder_of_plan())).unwrap();
    fs::write(out.join("notes.txt"), "mine").unwrap();
    let refused = Box::new(late).end(&dossier).err().unwrap();
    assert!(refused.message.contains("notes.txt"), "{}", refused.message);
    fs::remove_file(out.join("notes.txt")).unwrap();
    for _ in 0..2 {
        finish(Csv::begin(&dossier, &out, false, Some(folder_of_plan())).unwrap(), &dossier, &[]);
    }
    assert!(records(&out.join("refunds.csv")).len() > 5);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "nothing is left beside it");

    let one = folder.join("review.csv");
    let sheet = OneSheet::begin(&dossier, Sheet::Review, target(&one), false).unwrap();
    let written = finish(sheet, &dossier, &journal(&["no entry of the journal is a row of it"]));
    assert_eq!(records(&one).len() as u64, written.rows[0].1 + 1);
}
