//! Pseudonyms: in every format nobody's id is left, and two reports agree.

use std::fs;
use std::path::Path;

use onefold::core::dossier::Dossier;
use onefold::core::dossier::pseudonyms::{Pseudonyms, RedactKey};
use onefold::core::ledger::Ledgers;
use onefold::report::export::{Csv, Html, Json, Limits, ROWS_A_SHEET, Xlsx};

use crate::scene::{Scene, finish, journal, target, temporary};

const KEY: &[u8] = b"a key of the tests, long enough";

fn redacted(scene: &Scene) -> Dossier<'_> {
    let mut pseudonyms = Pseudonyms::new(RedactKey::from_secret(KEY));
    scene.know_all(&mut pseudonyms);
    Dossier { pseudonyms: Some(pseudonyms), ..scene.after() }
}

/// Users, sessions and traces of the ledgers.
fn people(ledgers: &Ledgers) -> Vec<String> {
    let of = |o: &onefold::core::ledger::Order| {
        let session = o.session_id.as_ref().map(ToString::to_string);
        [Some(o.user_id.to_string()), session, o.trace_id.clone()]
    };
    ledgers.orders.iter().flat_map(of).flatten().collect()
}

/// All that a folder holds, as text; a workbook's sheets are read cell by cell.
fn texts(folder: &Path) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(texts(&path));
        } else if path.extension().is_some_and(|e| e == "xlsx") {
            use calamine::Reader;
            let mut book: calamine::Xlsx<_> = calamine::open_workbook(&path).unwrap();
            for (name, range) in book.worksheets() {
                let cells: Vec<_> = range.used_cells().map(|(_, _, cell)| cell.to_string()).collect();
                all.push((name, cells.join("\n")));
            }
        } else {
            all.push((path.display().to_string(), fs::read_to_string(&path).unwrap()));
        }
    }
    all
}

fn write_all(dossier: &Dossier<'_>, folder: &Path) {
    let notes = journal(&[
        "U-7318 called: tr-7318-tap3-201411.300-retry and c-7318 are his",
        "(c-7318)",
        "退款给U-7318了",
    ]);
    let xlsx = Xlsx::begin(dossier, target(&folder.join("r.xlsx")), ROWS_A_SHEET, folder).unwrap();
    finish(xlsx, dossier, &[]);
    finish(Csv::begin(dossier, &folder.join("csv"), false, None).unwrap(), dossier, &[]);
    let html = Html::begin(dossier, target(&folder.join("r.html")), Limits::default()).unwrap();
    finish(html, dossier, &[]);
    finish(Json::begin(dossier, target(&folder.join("r.json"))).unwrap(), dossier, &[]);
    // What the command does to a note before it hands the entry on.
    let note = |row: &Vec<onefold::core::sheet::Cell<'_>>| match &row[14] {
        onefold::core::sheet::Cell::Text(text) => dossier.text(text).into_owned(),
        other => panic!("{other:?}"),
    };
    fs::write(folder.join("notes.txt"), notes.iter().map(note).collect::<Vec<_>>().join("\n")).unwrap();
}

#[test]
fn nobodys_id_is_left_in_any_format() {
    let mut scene = Scene::incident();
    scene.freeze.reason = "U-7318 and c-7318 bought eight times".to_owned();
    let (_dir, folder) = temporary();
    let mut dossier = redacted(&scene);
    for charge in dossier.charges.values_mut() {
        charge.provider_txn_id = Some("pi_U-7318_1".to_owned());
    }
    write_all(&dossier, &folder);
    let texts = texts(&folder);
    assert!(texts.len() > 20, "{}", texts.len());
    for id in people(&scene.ledgers) {
        for (file, text) in &texts {
            let found = text.match_indices(&id).find(|(at, _)| {
                let after = text[at + id.len()..].chars().next();
                let before = text[..*at].chars().next_back();
                !before.into_iter().chain(after).any(|c| c.is_ascii_alphanumeric())
            });
            assert!(
                found.is_none(),
                "{id} in {file}: {:?}",
                found.map(|(at, _)| &text[at.saturating_sub(40)..at])
            );
        }
    }
    let secret = String::from_utf8(KEY.to_vec()).unwrap();
    assert!(texts.iter().all(|(_, text)| !text.contains(&secret)));
    assert!(texts.iter().any(|(_, text)| text.contains("pi_user-")), "a charge that names its buyer");
    // Orders, and with them the evidence, stay.
    assert!(texts.iter().any(|(_, text)| text.contains("O-20146 was paid first")));
}

#[test]
fn two_reports_of_one_incident_agree_and_the_json_is_as_the_schema_says() {
    let scene = Scene::incident();
    let first = crate::json::report(&redacted(&scene), &[]);
    let second = crate::json::report(&Dossier { ends: Default::default(), ..redacted(&scene) }, &[]);
    assert_eq!(crate::json::faults(&first), [""; 0]);
    let users = |r: &serde_json::Value| -> Vec<String> {
        r["intents"].as_array().unwrap().iter().map(|i| i["user_id"].to_string()).collect()
    };
    assert_eq!(users(&first), users(&second));
    let distinct: std::collections::BTreeSet<_> = users(&first).into_iter().collect();
    let really: std::collections::BTreeSet<_> =
        scene.plan.intents.iter().map(|i| i.user_id.clone()).collect();
    assert_eq!(distinct.len(), really.len(), "different people stay different");
    assert_eq!(first["report"]["redacted"], true);
}
