//! `onefold demo`: needs no database, so it runs once, with SQLite inside.

use std::fs;

use serde_json::Value;

use crate::common::site::{Ran, program, run, text};

/// Runs a command in a folder, with no database named.
fn typed(folder: &std::path::Path, line: &[&str]) -> Ran {
    run(program().current_dir(folder).args(line), line)
}

#[test]
fn shows_the_whole_playbook_and_leaves_the_folder_clean() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("onefold.toml"), "of no use to it").unwrap();
    let ran = typed(dir.path(), &["demo"]).ends(0);
    for step in
        ["import", "freeze", "reconcile", "plan", "show", "apply", "converge", "verify", "thaw", "history"]
    {
        assert!(ran.stdout.contains(&format!("\n$ onefold {step} ")), "{step}: {ran}");
    }
    ran.prints("O-20146 PAID 1760.00 CNY 1760.00 kept: paid at 2026-11-11T12:14:33.118Z")
        .prints("kept 13 orders")
        .prints("cancelled 13 orders")
        .prints("refunded 7280.00 CNY + 37000 JPY")
        .prints("released 18 holds")
        .prints("quarantined 14 messages")
        .prints("left alone 25 purchases")
        .prints("0 violations")
        .prints("onefold demo --keep demo");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "only onefold.toml is there");
}

#[test]
fn fits_eighty_columns_and_wraps_no_id_time_or_sum() {
    let dir = tempfile::tempdir().unwrap();
    let ran = typed(dir.path(), &["demo"]).ends(0);
    let wide: Vec<_> = ran.stdout.lines().filter(|l| l.chars().count() > 80 && !l.starts_with('$')).collect();
    assert_eq!(wide, [""; 0]);
    let cut = ran.stdout.lines().find(|l| l.trim_end().ends_with('-') && !l.ends_with(" -"));
    assert_eq!(cut, None);
}

#[test]
fn what_is_kept_can_be_tried_by_hand() {
    let dir = tempfile::tempdir().unwrap();
    let json = typed(dir.path(), &["demo", "--keep", "here", "--json"]).ends(0).json();
    let steps = json["steps"].as_array().unwrap();
    let exits: Vec<_> = steps.iter().filter_map(|s| s["exit"].as_i64()).collect();
    assert_eq!(exits, [0, 0, 0, 0, 0, 0, 6, 6, 6, 0, 0, 6, 6, 0]);
    let url = format!("sqlite:{}", text(&dir.path().join("here/onefold.db")));
    let status = typed(dir.path(), &["status", "--database", &url, "--json"]).ends(0).json();
    assert_eq!(status["freezes"][0]["freeze"]["state"], "NARROWED");
    let undecided = steps.iter().find(|s| s["command"][0] == "verify").map(|s| &s["report"]["undecided"]);
    assert_eq!(undecided.and_then(Value::as_array).map(Vec::len), Some(25));
    typed(dir.path(), &["demo", "--keep", "here"]).fails(2, &["here is not empty", "name a new folder"]);
    fs::write(dir.path().join("file"), "").unwrap();
    typed(dir.path(), &["demo", "--keep", "file"]).fails(1, &["cannot make the folder file"]);
}
