//! The whole verb on the fixture: what it finds, what came of it, and where it is told.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::common::site::{Ran, Site, program, run};
use crate::{common, on_each_database};

on_each_database![the_ledgers_of_a_database_are_joined, a_history_in_a_table_is_the_same_history];

pub fn fixture(name: &str) -> String {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/locks-2014").join(name);
    path.to_str().unwrap().to_owned()
}

fn audit(rest: &[&str]) -> Ran {
    let history = fixture("locks.csv");
    let line = [&["locks", "audit", &history, "--skew", "50ms"], rest].concat();
    run(program().args(&line), &line)
}

/// The named finding's counts, proven and possible.
fn tally(json: &Value, finding: &str) -> (u64, u64) {
    let all = json["tallies"].as_array().unwrap();
    let of = all.iter().find(|t| t["finding"] == finding);
    of.map_or((0, 0), |t| (t["proven"].as_u64().unwrap(), t["possible"].as_u64().unwrap()))
}

/// Each way in which a lock lets two in stands once in the fixture.
#[track_caller]
fn has_every_death(json: &Value) {
    for finding in [
        "LEASE_OUTLIVED",
        "HOLDER_VANISHED",
        "FOREIGN_RELEASE",
        "HELD_AFTER_FOREIGN_RELEASE",
        "LOST_AT_FAILOVER",
        "HELD_AFTER_STEAL",
        "STALE_WRITE_ACCEPTED",
        "TOKEN_WENT_BACK",
    ] {
        assert_eq!(tally(json, finding), (1, 0), "{finding}: {json:#}");
    }
    assert_eq!(tally(json, "GRANTED_TWICE"), (0, 1), "{json:#}");
    assert_eq!(json["events"], 37);
}

const H_88: &str = "hold H-88 was released twice: 2026-11-11T12:14:07.120Z by A (token 41), \
    2026-11-11T12:14:09.300Z by B (token 42); A's lease had ended 1.4s before, after a pause of 5.2s";

#[test]
fn the_double_release_is_told_with_who_did_it_and_why() {
    let dir = fixture("");
    let told = audit(&["--files", &dir]).ends(5).prints(H_88);
    let told = told.prints("DOUBLE_RELEASE: 1 in the ledgers, 1 while two held their lock");
    told.prints("show S-204, for user U-88, was ordered 2 times: 2026-11-11T12:15:02Z by A (token 7)");
    // The ledgers are one thing, the history another.
    let alone = audit(&[]).ends(5).does_not_print("What came of it");
    alone.prints("A (token 41) deleted the lock of B (token 42)");
}

#[test]
fn json_has_every_finding_with_its_row() {
    let dir = fixture("");
    let json = audit(&["--files", &dir, "--json"]).ends(5).json();
    has_every_death(&json);
    let rows = json["sheets"]["findings"].as_array().unwrap();
    let counted: u64 = json["tallies"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|t| [&t["proven"], &t["possible"]])
        .filter_map(Value::as_u64)
        .sum();
    assert_eq!(rows.len() as u64, counted, "{json:#}");
    let robbed = rows.iter().find(|r| r["finding"] == "FOREIGN_RELEASE").unwrap();
    assert_eq!(
        (&robbed["first"], &robbed["second"], &robbed["line"]),
        (&"A".into(), &"B".into(), &10.into())
    );
    let outlived = rows.iter().find(|r| r["finding"] == "LEASE_OUTLIVED").unwrap();
    assert_eq!(outlived["for_us"], 1_100_000);
    assert_eq!(json["sheets"]["what_came_of_it"][1]["what"], "show S-204, for user U-88,");
    assert_eq!(json["sheets"]["what_came_of_it"][0]["in_words"], H_88);
}

#[test]
fn files_hold_what_json_holds() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for format in ["xlsx", "html", "csv", "json"] {
        let path = at(&format!("locks.{format}"));
        audit(&["--format", format, "--output", &path]).ends(5).prints("rows");
        audit(&["--format", format, "--output", &path]).ends(2).warns("is there already");
        audit(&["--format", format, "--output", &path, "--force"]).ends(5);
    }
    let csv = std::fs::read_to_string(Path::new(&at("locks.csv")).join("findings.csv")).unwrap();
    assert!(csv.lines().any(|l| l.contains("HELD_AFTER_STEAL") && l.contains("price:S-204")), "{csv}");
    let html = std::fs::read_to_string(at("locks.html")).unwrap();
    assert!(html.contains("A (token 41) deleted the lock of B (token 42)"), "{html}");
}

#[test]
fn a_clean_history_ends_with_0() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("locks.jsonl");
    let lines = [
        r#"{"key":"k","event":"acquire","owner":"A","token":1,"lease_ms":5000,"at":"2026-11-11T12:00:00Z"}"#,
        "",
        r#"{"key":"k","event":"release","owner":"A","token":"1","at":"2026-11-11T12:00:01Z","more":{"x":[1]}}"#,
    ];
    std::fs::write(&path, lines.join("\n")).unwrap();
    let line = ["locks", "audit", path.to_str().unwrap()];
    run(program().args(line), &line)
        .ends(0)
        .prints("2 events of 1 key")
        .prints("At no time did two hold a key");
}

#[test]
fn the_night_of_the_incident_has_one_lock_that_let_two_in() {
    let night = format!("{}/fixtures/incident-2014", env!("CARGO_MANIFEST_DIR"));
    let history = format!("{night}/locks.csv");
    let line = ["locks", "audit", &history, "--files", &night, "--skew", "50ms", "--json"];
    let json = run(program().args(line), &line).ends(5).json();
    assert_eq!(
        (tally(&json, "LEASE_OUTLIVED"), tally(&json, "FOREIGN_RELEASE")),
        ((1, 0), (1, 0)),
        "{json:#}"
    );
    let came = json["sheets"]["what_came_of_it"].as_array().unwrap();
    let told = came[0]["in_words"].as_str().unwrap();
    assert!(
        came.len() == 1 && told.starts_with("hold H-40077 was released twice: 2026-11-11T12:08:50.300Z by A"),
        "{told}"
    );
    assert!(told.ends_with("A's lease had ended 0.4s before, after a pause of 5.2s"), "{told}");
}

fn the_ledgers_of_a_database_are_joined(site: &Site) {
    site.run(&["init"]).ends(0);
    site.run(&["import", &fixture("")]).ends(0);
    let (rows, history) = (site.ledgers(), fixture("locks.csv"));
    let line = ["locks", "audit", &history, "--ledgers", "--show", "S-204"];
    site.run(&line).ends(5).prints(H_88);
    let other = ["locks", "audit", &history, "--ledgers", "--show", "S-205"];
    site.run(&other).ends(5).prints("DOUBLE_RELEASE: 0 in the ledgers");
    site.run(&["locks", "audit", &history, "--show", "S-204"]).fails(2, &["none are read"]);
    assert_eq!(site.ledgers(), rows);
}

fn a_history_in_a_table_is_the_same_history(site: &Site) {
    let text = |n: usize| {
        if site.kind() == common::site::Kind::Sqlite { "TEXT".to_owned() } else { format!("VARCHAR({n})") }
    };
    let (long, short) = (text(200), text(40));
    site.run(&["init"]).ends(0);
    site.sql(&format!(
        "CREATE TABLE redis_locks (lock_name {long}, what {short}, who {short}, fence BIGINT, ms BIGINT, \
         happened BIGINT, host {short}, answer {short})"
    ));
    let mut reader = csv::Reader::from_path(fixture("locks.csv")).unwrap();
    for row in reader.records() {
        let row = row.unwrap();
        let quoted = |i: usize| if row[i].is_empty() { "NULL".to_owned() } else { format!("'{}'", &row[i]) };
        let number = |i: usize| if row[i].is_empty() { "NULL".to_owned() } else { row[i].to_owned() };
        let at = common::time(&row[5]).micros();
        site.sql(&format!(
            "INSERT INTO redis_locks VALUES ({}, {}, {}, {}, {}, {at}, {}, {})",
            quoted(0),
            quoted(1),
            quoted(2),
            number(3),
            number(4),
            quoted(6),
            quoted(7)
        ));
    }
    let query = site.folder().join("locks.sql");
    let select = "-- The locks of the stock service.\nSELECT lock_name AS lock_key, what AS event, who AS owner, \
        fence AS token, ms AS lease_ms, happened AS at_us, host AS node, answer AS result FROM redis_locks;\n";
    std::fs::write(&query, select).unwrap();
    let line = ["locks", "audit", "--query", "locks.sql", "--skew", "50ms", "--json"];
    has_every_death(&site.run(&line).ends(5).json());
    // What is not one SELECT changes nothing.
    for bad in ["DELETE FROM redis_locks", "SELECT 1; DELETE FROM redis_locks"] {
        std::fs::write(&query, bad).unwrap();
        let ran = site.run(&["locks", "audit", "--query", "locks.sql"]);
        assert!(matches!(ran.code, Some(1 | 2)), "{ran}");
    }
    assert_eq!(site.column("SELECT what FROM redis_locks").len(), 37);
    site.sql("UPDATE redis_locks SET what = 'grab' WHERE fence = 40");
    std::fs::write(&query, select).unwrap();
    site.run(&["locks", "audit", "--query", "locks.sql"])
        .fails(2, &["row 1 of the lock history", "column event"]);
}
