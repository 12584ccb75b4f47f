//! Bad input is answered with file, line, column and value; all of it together.

use crate::common::site::{Ran, program, run};

const HEADER: &str = "key,event,owner,token,lease_ms,at,node,result\n";

fn audit(name: &str, text: &str, rest: &[&str]) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(name), text).unwrap();
    let line = [&["locks", "audit", name], rest].concat();
    run(program().current_dir(folder.path()).args(&line), &line)
}

#[test]
fn each_fault_is_named_where_it_stands() {
    let lines = [
        (
            ",acquire,A,1,5000,2026-11-11T12:00:00Z,n,ok",
            "locks.csv:2: column key (1), value \"\": required of acquire",
        ),
        (
            "k,grab,A,1,5000,2026-11-11T12:00:00Z,n,ok",
            "locks.csv:3: column event (2), value \"grab\": no event of a lock",
        ),
        (
            "k,release,,1,,2026-11-11T12:00:00Z,n,ok",
            "locks.csv:4: column owner (3), value \"\": required of release",
        ),
        (
            "k,acquire,A,x,5000,2026-11-11T12:00:00Z,n,ok",
            "locks.csv:5: column token (4), value \"x\": not a whole number",
        ),
        (
            "k,acquire,A,1,5 s,2026-11-11T12:00:00Z,n,ok",
            "locks.csv:6: column lease_ms (5), value \"5 s\": not a whole",
        ),
        (
            "k,acquire,A,1,5000,2026-11-11 12:00,n,ok",
            "locks.csv:7: column at (6), value \"2026-11-11 12:00\": a time without",
        ),
        (
            "k,acquire,A,1,5000,2026-11-11T12:00:00Z,n,hm",
            "locks.csv:8: column result (8), value \"hm\": neither",
        ),
        (",pause,,,,2026-11-11T12:00:00Z,n,", "locks.csv:9: column lease_ms (5), value \"\": not a whole"),
        (
            ",pause,,,9,2026-11-11T12:00:00Z,,",
            "locks.csv:10: column node (7), value \"\": required of a pause without owner",
        ),
        ("k,acquire", "locks.csv:11: \"k,acquire\": 2 cells, but the header has 8"),
    ];
    let text = lines.iter().fold(HEADER.to_owned(), |text, (line, _)| text + line + "\n");
    let told: Vec<_> = lines.iter().map(|(_, told)| *told).collect();
    audit("locks.csv", &text, &[]).fails(2, &told).warns("10 faults in the files").warns("--timezone");
}

#[test]
fn a_header_that_is_not_whole_says_what_is_missing() {
    let ran = audit("locks.csv", "key,event,owner\nk,acquire,A\n", &[]);
    ran.fails(
        2,
        &[
            "locks.csv:1: column at: the header has no such column",
            "--history-map THEIRS=at where THEIRS is one of",
        ],
    );
    audit("locks.csv", "", &[]).fails(2, &["the file is empty"]);
    audit("locks.csv", "key,event,owner,at,at\n", &[])
        .fails(2, &["column at (5): stands in the header twice"]);
    let ran = audit("locks.csv", "key,event,owner,at,mood\nk,acquire,A,2026-11-11T12:00:00Z,bad\n", &[]);
    ran.ends(0)
        .warns("unknown columns are ignored: \"mood\"")
        .warns("columns that are not in the file: token, lease_ms, node, result");
}

#[test]
fn json_lines_are_read_by_name_and_refused_by_line() {
    let good = r#"{"key":"k","event":"acquire","owner":"A","lease_ms":5000,"at":"2026-11-11T12:00:00Z"}"#;
    let bad = r#"{"key":"k","event":"release","owner":"A","token":1.5,"at":"2026-11-11T12:00:01Z"}"#;
    let ran = audit("locks.jsonl", &format!("{good}\n{bad}\n{{\"key\":\n"), &[]);
    ran.fails(2, &["locks.jsonl:2:", "locks.jsonl:3:", "not one JSON object"]);
    // What is not there is told from what is empty.
    let without = good.replace(r#""owner":"A","#, "");
    audit("locks.jsonl", &without, &[])
        .fails(2, &["locks.jsonl:1: column owner: required of acquire, but missing"]);
    let null = good.replace(r#""A""#, "null");
    audit("locks.jsonl", &null, &[])
        .fails(2, &["locks.jsonl:1: column owner, value \"\": required of acquire, but empty"]);
    for array in ["[]", &format!("\n [{good}]\n")] {
        audit("locks.json", array, &[]).fails(2, &["not one JSON object", "jq -c"]);
    }
    audit("locks.jsonl", &format!("\n  {good}\n"), &[]).ends(0).does_not_print("ignored");
    // Which of two is meant nobody knows, and what is not read is said, once.
    let twice = good.replace("}", r#","result":"ok","result":"refused"}"#);
    audit("locks.jsonl", &twice, &[])
        .fails(2, &["locks.jsonl:1:", "the member \"result\" stands in it twice"]);
    let strange = good.replace("}", r#","outcome":"refused","ttl":5000}"#);
    let ran = audit("locks.jsonl", &format!("{strange}\n{strange}\n"), &[]).ends(0);
    let note = "unknown members are ignored: \"outcome\", \"ttl\"";
    assert_eq!(ran.stderr.matches(note).count(), 1, "{ran}");
    ran.warns("members that are not in the file: token, node, result");
    let late = good.replace("12:00:00Z", "noon");
    audit("locks.jsonl", &format!("{good}\n{late}\n"), &[]).fails(2, &["locks.jsonl:2: column at, value"]);
}

#[test]
fn a_line_that_is_out_of_order_is_refused_or_allowed_for() {
    let text = format!(
        "{HEADER}k,acquire,A,1,5000,2026-11-11T12:00:04Z,n,ok\nk,release,A,1,,2026-11-11T12:00:06Z,n,ok\n\
         j,acquire,A,1,5000,2026-11-11T12:00:03Z,n,ok\nj,release,A,1,,2026-11-11T12:00:07Z,n,ok\n"
    );
    let ran = audit("locks.csv", &text, &[]);
    let told = "locks.csv:4: column at (6), value \"2026-11-11T12:00:03Z\": 3s behind a line before it";
    ran.fails(2, &[told, "--reorder 3s"]);
    audit("locks.csv", &text, &["--reorder", "3s"]).ends(0).prints("4 events of 2 keys");
}

#[test]
fn flags_that_do_not_go_together_are_refused() {
    audit("locks.csv", HEADER, &["--skew", "soon"]).fails(2, &["--skew"]);
    audit("locks.csv", HEADER, &["--files", "nowhere"]).fails(2, &["no folder nowhere"]);
    audit("locks.csv", HEADER, &["--sheet", "findings"]).fails(2, &["--sheet is for CSV"]);
    audit("locks.csv", HEADER, &["--format", "csv", "--sheet", "none"]).fails(2, &["there is no sheet none"]);
    audit("locks.csv", HEADER, &["--output", "x"]).fails(2, &["a table goes to the terminal"]);
    let line = ["locks", "audit"];
    run(program().args(line), &line).fails(2, &["no lock history is named", "--query"]);
}

#[test]
fn nothing_is_no_all_clear() {
    for (name, text) in
        [("locks.csv", HEADER), ("locks.jsonl", " \n\n"), ("locks.csv", &HEADER.replace('\n', ""))]
    {
        let ran = audit(name, text, &[]).ends(2);
        if name == "locks.csv" {
            ran.fails(2, &["locks.csv: there is no event in it: nothing was audited"]);
        }
    }
}

#[test]
fn other_names_of_columns_are_said() {
    let csv =
        "Lock,What,who,TS,ms\nk,acquire,A,2026-11-11T12:00:00Z,5000\nk,release,A,2026-11-11T12:00:01Z,\n";
    let json = csv.lines().skip(1).map(|line| {
        let [lock, what, who, ts, ms] = line.split(',').collect::<Vec<_>>()[..] else { panic!("{line}") };
        format!("{{\"lock\":\"{lock}\",\"what\":\"{what}\",\"WHO\":\"{who}\",\"ts\":\"{ts}\",\"ms\":\"{ms}\",\"at\":1}}\n")
    });
    let map = ["--history-map", "lock=key,what=event", "--history-map", "who=owner,ts=at,ms=lease_ms"];
    audit("locks.csv", csv, &map).ends(0).prints("2 events of 1 key").does_not_print("without expiry");
    audit("locks.jsonl", &json.collect::<String>(), &map).ends(0).prints("2 events of 1 key");
    audit("locks.csv", csv, &["--history-map", "lock=door"])
        .fails(2, &["a lock history has no column", "lease_ms"]);
    audit("locks.csv", csv, &["--history-map", "name=key,lock=key"]).fails(2, &["names key twice, also as"]);
    audit("locks.csv", csv, &["--history-map", "name=node"])
        .fails(2, &["column name: the header has no such column, which is to be node", "\"lock\""]);
}
