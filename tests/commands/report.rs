//! `onefold report`

use std::fs;

use crate::common::site::{Site, text};
use crate::{doubled, on_each_database};

on_each_database![
    before_during_and_after_it_says_how_far_things_are,
    money_outside_the_sums_is_told_as_it_was_planned,
    a_file_is_written_whole_and_never_over_another,
    what_cannot_be_written_says_what_to_type,
    pseudonyms_are_the_same_in_every_report_and_nobodys_id_is_left,
];

/// A doubled purchase under a freeze, and its plan.
fn planned(site: &Site) -> String {
    let mut book = doubled();
    for row in &mut book.ledgers.orders {
        (row.user_id, row.session_id, row.source) =
            ("buyer-1".into(), Some("client-9".into()), Some("gateway".into()));
        row.trace_id = Some("request-77".into());
    }
    for row in &mut book.ledgers.payments {
        (row.user_id, row.session_id) = ("buyer-1".into(), Some("client-9".into()));
        row.provider_txn_id = Some(format!("ch_{}", row.payment_id));
    }
    for row in &mut book.ledgers.inventory {
        (row.user_id, row.session_id) = ("buyer-1".into(), Some("client-9".into()));
    }
    for row in &mut book.ledgers.messages {
        (row.user_id, row.session_id) = (Some("buyer-1".into()), Some("client-9".into()));
    }
    site.import(&book.ledgers);
    site.run(&[
        "freeze",
        "--show",
        "show",
        "--advisory",
        "--reason",
        "buyer-1 on client-9 (request-77) bought twice",
    ])
    .ends(0);
    site.plan()
}

fn before_during_and_after_it_says_how_far_things_are(site: &Site) {
    let plan = planned(site);
    let report = |more: &[&str]| site.run(&[&["report", &plan], more].concat());
    report(&[])
        .ends(0)
        .prints("1 refund of 10.00 CNY in all")
        .prints("not yet carried out")
        .prints("State OPEN");
    let json = site.json(&["report", &plan]);
    assert_eq!(json["plan_id"], plan.as_str());
    assert_eq!(json["intents"][0]["steps"][0]["outcome"], serde_json::Value::Null);
    assert_eq!(json["report"]["freeze"]["reason"], "buyer-1 on client-9 (request-77) bought twice");
    let events: Vec<_> = json["journal"].as_array().unwrap().iter().map(|e| e["event"].clone()).collect();
    assert_eq!(events, ["froze", "planned"]);

    site.run(&["apply", &plan, "--yes"]).ends(0);
    report(&[]).ends(0).prints("(1 done)").prints("ENDED, carried out");
    let json = site.json(&["report", &plan]);
    let steps = json["intents"][0]["steps"].as_array().unwrap();
    assert!(steps.iter().all(|s| s["outcome"]["state"] == "DONE"), "{steps:#?}");
    assert_eq!(json["report"]["refunded"][0]["refunded_minor"], 1000);
    assert!(json["journal"].as_array().unwrap().len() > steps.len());
    let refunds = report(&["--format", "csv", "--sheet", "refunds"]).ends(0).stdout;
    assert!(refunds.contains(",CNY,10.00,B,P-B,pay,ch_P-B,DONE,"), "{refunds}");
    let released = report(&["--format", "csv", "--sheet", "released"]).ends(0).stdout;
    assert!(released.contains("t,show,1,1,H-B,B,"), "{released}");
    let line = ["--format", "csv", "--sheet", "journal"];
    assert_eq!(report(&line).ends(0).stdout.lines().count(), json["journal"].as_array().unwrap().len() + 1);
}

fn money_outside_the_sums_is_told_as_it_was_planned(site: &Site) {
    let mut book = doubled();
    book.payment("P-X", "nowhere", 70, "DISPUTED").user_id = "u9".into();
    site.import(&book.ledgers);
    site.freeze();
    let plan = site.plan();
    let report = |more: &[&str]| site.run(&[&["report", &plan], more].concat()).ends(0);
    let said = "Outside the sums when planned, DISPUTED";
    report(&[]).prints("Outside the sums as planned, at ").prints(said);
    report(&["--format", "html"]).prints(said);
    let json = site.json(&["report", &plan]);
    assert_eq!(json["report"]["outside_sums_as_of"], json["as_of"]);
    assert_eq!(json["outside_sums"][0]["status"], "DISPUTED");
    let folder = site.path("sheets");
    report(&["--format", "csv", "--output", &text(&folder)]);
    assert!(fs::read_to_string(folder.join("summary.csv")).unwrap().contains(said));
}

fn a_file_is_written_whole_and_never_over_another(site: &Site) {
    let plan = planned(site);
    for (format, name) in [("xlsx", "r.xlsx"), ("html", "r.html"), ("json", "r.json"), ("csv", "r")] {
        let path = site.path(name);
        let line = ["report", &plan, "--format", format, "--output", &text(&path)];
        site.run(&line).ends(0).prints(&text(&path));
        assert!(path.exists(), "{format}");
        let before = fs::metadata(&path).unwrap().modified().unwrap();
        let again = site.run(&line);
        if format == "json" {
            let error = again.ends(2).error();
            assert!(error["message"].as_str().unwrap().contains("is there already"), "{error}");
            assert!(error["hint"].as_str().unwrap().contains("--force"), "{error}");
        } else {
            again.fails(2, &["is there already", "--force"]);
        }
        assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), before, "{format}");
        let told = site.json(&[&line[..], &["--force"]].concat());
        assert_eq!(told["output"], text(&path), "{format}");
        assert_eq!(told["rows"]["intents"], 1, "{told}");
    }
    // What is no report is never written over, and stays as it is.
    let strange = site.path("orders.xlsx");
    for (format, sheet, bytes) in [
        ("xlsx", None, &b"SQLite format 3\0"[..]),
        ("html", None, b"<!doctype html>\n<html><body>mine</body></html>"),
        ("json", None, b"{\"mine\": 1}"),
        ("json", None, b""),
        ("csv", Some("refunds"), b"Order,Amount\r\n"),
        ("csv", None, b"[database]\n"),
    ] {
        fs::write(&strange, bytes).unwrap();
        let line = ["report", &plan, "--format", format, "--output", &text(&strange), "--force"];
        let sheet: Vec<_> = sheet.into_iter().flat_map(|s| ["--sheet", s]).collect();
        let ran = site.run(&[&line[..], &sheet].concat()).ends(2);
        assert!(ran.stderr.contains("--output"), "{}", ran.stderr);
        assert_eq!(fs::read(&strange).unwrap(), bytes, "{format}");
    }
    // Nor is a folder that holds what would look like a part of the report.
    let former = site.path("r").join("refunds_2.csv");
    let held = |name: &str| fs::read(site.path("r").join(name)).unwrap();
    fs::write(&former, "buyer-1").unwrap();
    let before = held("summary.csv");
    let line = ["report", &plan, "--format", "csv", "--output", &text(&site.path("r")), "--force"];
    site.run(&line).fails(2, &["no part of this report: refunds_2.csv;", "move these files away"]);
    assert_eq!((held("refunds_2.csv"), held("summary.csv")), (b"buyer-1".to_vec(), before));
    fs::remove_file(&former).unwrap();
    fs::write(site.path("r").join("money.csv"), "mine").unwrap();
    site.run(&line).fails(2, &["no part of this report: money.csv;"]);
    assert_eq!(held("money.csv"), b"mine");
    // A sheet is written over the same sheet, whether it begins with a byte order mark or not.
    let refunds = text(&site.path("refunds.csv"));
    let line = ["report", &plan, "--format", "csv", "--sheet", "refunds", "--output", &refunds, "--force"];
    site.run(&[&line[..], &["--bom"]].concat()).ends(0);
    site.run(&line).ends(0);
    let html = fs::read_to_string(site.path("r.html")).unwrap();
    assert!(
        html.contains("data-orders=\"2\" data-captures=\"2\"") && html.contains("gateway 2"),
        "the incident"
    );
    assert_eq!(fs::read_dir(site.path("r")).unwrap().count(), 14);
    let there = fs::read_dir(site.path("")).unwrap().map(|e| text(&e.unwrap().path()));
    let left: Vec<_> = there.filter(|name| name.contains(".onefold-")).collect();
    assert!(left.is_empty(), "{left:?}");
    site.run(&["report", &plan, "--format", "html", "--output", "no/folder/r.html"])
        .fails(2, &["there is no folder no/folder"]);
}

fn what_cannot_be_written_says_what_to_type(site: &Site) {
    let plan = planned(site);
    let report = |more: &[&str]| site.run(&[&["report", &plan], more].concat());
    report(&["--format", "xlsx"]).fails(2, &["needs a file", "--format xlsx --output"]);
    report(&["--format", "csv"]).fails(2, &["--output DIR", "--sheet refunds"]);
    report(&["--sheet", "refunds"]).fails(2, &["--format csv --sheet"]);
    let error = report(&["--format", "json", "--bom"]).ends(2).error();
    assert_eq!(error["message"], "--bom is for CSV");
    report(&["--output", "x"]).fails(2, &["goes to the terminal", "xlsx"]);
    report(&["--format", "csv", "--sheet", "money"]).fails(2, &["possible values: intents, refunds"]);
    site.run(&["report", "PL-none"]).fails(2, &["no plan PL-none", "onefold status"]);
}

fn pseudonyms_are_the_same_in_every_report_and_nobodys_id_is_left(site: &Site) {
    let plan = planned(site);
    site.run(&["history"]).ends(0).prints("buyer-1");
    let report = |more: &[&str]| site.run(&[&["report", &plan, "--redact"], more].concat()).ends(0);
    let nobody = |text: &str| {
        for id in ["buyer-1", "client-9", "request-77"] {
            assert!(!text.contains(id), "{id} in {text}");
        }
    };
    nobody(&report(&[]).stdout);
    let first = report(&["--json"]);
    nobody(&first.stdout);
    let user = first.json()["intents"][0]["user_id"].as_str().unwrap().to_owned();
    assert!(user.starts_with("user-") && user.len() == 21, "{user}");
    let reason = first.json()["report"]["freeze"]["reason"].as_str().unwrap().to_owned();
    assert!(reason.starts_with(&format!("{user} on session-")) && reason.contains("(trace-"), "{reason}");
    site.run(&["apply", &plan, "--yes"]).ends(0);
    for format in ["html", "json"] {
        let path = site.path(format);
        report(&["--format", format, "--output", &text(&path)]);
        let text = fs::read_to_string(&path).unwrap();
        nobody(&text);
        assert!(text.contains(&user), "the same key gives the same name");
    }
    let journal = report(&["--format", "csv", "--sheet", "journal"]).stdout;
    nobody(&journal);
    assert!(journal.contains("on session-"), "{journal}");

    let secret = "another key, of another site";
    let line = ["report", &plan, "--redact", "--json"];
    let other =
        |secret: &str| crate::common::site::run(site.command(&line).env("ONEFOLD_REDACT_KEY", secret), &line);
    let ran = other(secret).ends(0).does_not_print(secret);
    nobody(&ran.stdout);
    assert_ne!(ran.json()["intents"][0]["user_id"], user.as_str());
    assert_eq!(other("short").code, Some(2));
    let key = site.column("SELECT value FROM onefold_secrets WHERE name = 'redact'").concat();
    assert_eq!(key.len(), 64);
    for secret in site.column("SELECT value FROM onefold_secrets") {
        assert!(!first.stdout.contains(&secret) && !journal.contains(&secret));
    }
}
