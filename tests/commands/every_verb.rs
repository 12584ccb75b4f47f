//! What every verb keeps to: one JSON object, no colour where nobody looks, no password, help with
//! an example.

use std::process::{Command, Stdio};

use crate::common::site::{Site, program, run};
use crate::{doubled, on_each_database};

on_each_database![
    json_is_one_object_for_every_verb,
    a_wrong_password_is_not_printed,
    nothing_is_coloured_where_nobody_looks,
];

const VERBS: [&str; 30] = [
    "demo",
    "init",
    "import",
    "freeze",
    "frozen",
    "status",
    "reconcile",
    "plan",
    "show",
    "approve",
    "report",
    "trace",
    "apply",
    "converge",
    "settle",
    "guard",
    "verify",
    "history",
    "requeue",
    "once",
    "thaw",
    "queries",
    "provider",
    "run",
    "watch",
    "locks",
    "token",
    "config",
    "completions",
    "man",
];

fn json_is_one_object_for_every_verb(site: &Site) {
    let folder = site.files(&doubled().ledgers);
    // What comes after -- is another command's.
    fn split<'l, 's>(line: &'l [&'s str]) -> (&'l [&'s str], &'l [&'s str]) {
        line.split_at(line.iter().position(|word| *word == "--").unwrap_or(line.len()))
    }
    let json = |code: i32, line: &[&str]| {
        let (ours, theirs) = split(line);
        let ran = site.run(&[ours, &["--json"], theirs].concat()).ends(code);
        assert_eq!(ran.stderr, "", "{ran}");
        ran.json()
    };
    json(0, &["init"]);
    json(0, &["init", "--print"]);
    json(0, &["import", &folder]);
    let freeze =
        json(0, &["freeze", "--show", "show", "--advisory", "--reason", "x"])["freeze"]["freeze_id"].clone();
    json(0, &["reconcile"]);
    let plan = json(0, &["plan"])["plan_id"].clone();
    let (freeze, plan) = (freeze.as_str().unwrap(), plan.as_str().unwrap());
    json(0, &["show", plan]);
    json(0, &["show", plan, "--intent", "A"]);
    json(0, &["report", plan]);
    json(0, &["report", plan, "--redact"]);
    json(0, &["report", plan, "--format", "html", "--output", "report.html"]);
    json(0, &["trace"]);
    json(0, &["trace", "--files", &folder, "--order", "A"]);
    json(0, &["trace", "--format", "xlsx", "--output", "trace.xlsx"]);
    json(5, &["verify", plan]);
    json(0, &["converge", "--plan", plan]);
    json(0, &["approve", plan, "--because", "x"]);
    json(0, &["apply", plan, "--yes"]);
    json(0, &["status"]);
    json(0, &["history"]);
    json(0, &["history", "verify"]);
    json(0, &["history", "export", "--output", "journal.jsonl"]);
    json(0, &["requeue", "M-B", "--tenant", "t", "--because", "x"]);
    json(6, &["thaw", freeze]);
    json(3, &["once", "--key", "k", "--", "sh", "-c", "echo out; echo err >&2; exit 3"]);
    json(0, &["once", "list"]);
    let history =
        "key,event,owner,token,lease_ms,at,node,result\nk,acquire,A,1,1000,2026-11-11T12:00:00Z,,ok\n";
    std::fs::write(site.folder().join("locks.csv"), history).unwrap();
    json(0, &["locks", "audit", "locks.csv"]);
    json(0, &["guard", "status"]);
    json(0, &["guard", "drill", "--requests", "2"]);
    json(0, &["guard", "snippets", "--for", "java"]);
    json(0, &["once", "show", "k"]);

    let errors: [(i32, &[&str]); 29] = [
        (2, &["locks", "audit", "nowhere.csv"]),
        (2, &["locks", "check-script"]),
        (2, &["token", "drill"]),
        (2, &["import", "nowhere"]),
        (2, &["freeze", "--show", "show"]),
        (7, &["freeze", "--show", "show", "--reason", "x"]),
        (2, &["reconcile", "--from", "noon"]),
        (2, &["plan", "--unpaid", "whatever"]),
        (2, &["show", "PL-none"]),
        (2, &["show"]),
        (2, &["report", "PL-none"]),
        (2, &["report", plan, "--format", "csv"]),
        (2, &["trace", "--order", "O-none"]),
        (2, &["trace", "--access", "nowhere.csv"]),
        (2, &["apply", "PL-none"]),
        (2, &["converge", "--plan", "PL-none"]),
        (2, &["verify", "PL-none"]),
        (2, &["requeue", "M-none", "--because", "x"]),
        (2, &["thaw", "F-none"]),
        (2, &["guard", "gc"]),
        (
            7,
            &[
                "guard",
                "retention",
                "--client-retry",
                "2m",
                "--queue",
                "24h",
                "--replay",
                "1h",
                "--dispute",
                "1d",
                "--archive",
                "1d",
            ],
        ),
        (2, &["once", "--key", "k"]),
        (7, &["once", "--key", "k", "--", "true"]),
        (2, &["once", "show", "none"]),
        (2, &["guard", "drill", "--fault", "bad-luck"]),
        (2, &["guard", "drill", "--yes"]),
        (7, &["guard", "drill", "--url", "http://127.0.0.1:9/"]),
        (2, &["once", "settle", "k", "--as", "failed", "--because", "x"]),
        (2, &["whatever"]),
    ];
    for (code, line) in errors {
        let (ours, theirs) = split(line);
        let error = site.run(&[ours, &["--json"], theirs].concat()).ends(code).error();
        assert!(error["kind"].as_str().is_some_and(|k| !k.is_empty()), "{line:?}: {error}");
        assert!(error["message"].as_str().is_some_and(|m| !m.is_empty()), "{line:?}: {error}");
        assert!(error["hint"].as_str().is_some_and(|h| !h.is_empty()), "{line:?}: {error}");
    }
}

fn a_wrong_password_is_not_printed(site: &Site) {
    let url = match site.url.split_once("://") {
        Some((scheme, rest)) => {
            let host = rest.split_once('@').map_or(rest, |(_, host)| host);
            format!("{scheme}://nobody_at_all:s3cret@{host}")
        }
        None => "redis://ada:s3cret@host/shop".to_owned(),
    };
    for line in [&["status"][..], &["init", "--verbose"], &["history", "--json"]] {
        let by_flag = [line, &["--database", &url]].concat();
        for ran in [
            run(program().args(&by_flag), &by_flag),
            run(program().env("ONEFOLD_DATABASE_URL", &url).args(line), line),
        ] {
            assert!(matches!(ran.code, Some(1 | 2)), "{ran}");
            ran.does_not_print("s3cret");
        }
    }
}

fn nothing_is_coloured_where_nobody_looks(site: &Site) {
    site.import(&doubled().ledgers);
    site.freeze();
    for line in [&["status"][..], &["plan"], &["reconcile"], &["history"], &["whatever"], &["plan", "--help"]]
    {
        site.run(line).does_not_print("\x1b");
    }
    // What a ledger says must not steer the terminal either.
    site.sql("UPDATE onefold_freezes SET reason = 'red \x1b[31m text'");
    site.run(&["status"]).ends(0).does_not_print("\x1b").prints("\\u{1b}[31m");
}

#[test]
fn a_password_is_never_printed() {
    let urls = [
        "postgres://ada:s3cret@127.0.0.1:1/shop",
        "mysql://ada:s3cret@[::1/shop?password=s3cret",
        "postgres://ada:s3cret@127.0.0.1:port/shop",
        "ada:s3cret@127.0.0.1",
    ];
    for url in urls {
        let line = ["status", "--verbose", "--database", url];
        let ran = run(program().args(line), &line);
        assert!(matches!(ran.code, Some(1 | 2)), "{ran}");
        ran.does_not_print("s3cret");
    }
    let help =
        run(program().env("ONEFOLD_DATABASE_URL", urls[0]).args(["plan", "--help"]), &["plan", "--help"]);
    help.ends(0).does_not_print("s3cret");
    let ran = run(program().args(["status", "--databas", urls[0]]), &["status", "--databas", "…"]);
    ran.ends(2).does_not_print("s3cret");
}

#[test]
fn every_verb_has_help_with_an_example() {
    for verb in VERBS {
        let ran = run(program().args([verb, "--help"]), &[verb]).ends(0).prints("Examples:");
        ran.prints(&format!("\n  onefold {verb}"));
    }
    let help = run(program().arg("--help"), &["--help"]).ends(0);
    for verb in VERBS {
        assert!(help.stdout.contains(&format!("\n  {verb} ")), "{verb}: {help}");
    }
    for (code, what) in
        (0..=7).zip(["done", "failure", "usage", "steps", "stale", "violations", "a person", "refused"])
    {
        assert!(help.stdout.contains(&format!("\n  {code}  {what}")), "{code}: {help}");
    }
}

#[test]
fn examples_can_be_pasted_from_a_terminal_of_80_columns() {
    let below: [&[&str]; 14] = [
        &["locks", "audit"],
        &["locks", "check-script"],
        &["token", "drill"],
        &["history", "verify"],
        &["history", "export"],
        &["queries", "export"],
        &["provider", "test"],
        &["guard", "install"],
        &["guard", "status"],
        &["guard", "remove"],
        &["guard", "retention"],
        &["guard", "gc"],
        &["guard", "drill"],
        &["guard", "snippets"],
    ];
    let verbs = VERBS.iter().map(std::slice::from_ref);
    for verb in verbs.chain(below).chain([&["check"][..]]) {
        let line = [verb, &["--help"]].concat();
        let help = run(program().env("COLUMNS", "80").args(&line), &line).ends(0);
        assert!(help.stdout.lines().all(|l| l.chars().count() <= 80), "{help}");
        let examples = help.stdout.lines().skip_while(|l| *l != "Examples:").skip(1);
        let examples: Vec<_> = examples.take_while(|l| !l.is_empty()).collect();
        assert!(!examples.is_empty(), "{help}");
        let mut goes_on = false;
        for example in examples {
            let begins = if goes_on { "      " } else { "  onefold " };
            assert!(example.starts_with(begins), "{example:?} of {help}");
            goes_on = example.ends_with('\\');
        }
        assert!(!goes_on, "{help}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    for line in [&["demo"][..], &["demo", "--json"], &["show"], &["show", "--json"], &["--help"]] {
        let mut command = Command::new(program().get_program());
        let mut child = command.args(line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        drop(child.stderr.take());
        let code = child.wait().unwrap().code();
        let expected = if line[0] == "show" { 2 } else { 0 };
        assert_eq!(code, Some(expected), "{line:?}");
    }
}
