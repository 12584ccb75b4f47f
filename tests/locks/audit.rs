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

#[test]
fn a_report_is_no_json_lines_and_goes_to_a_file_beside_them() {
    let refused = audit(&["--format", "jsonl"]).ends(2);
    assert!(
        refused.error()["hint"].as_str().unwrap().contains("--format jsonl --output locks.json"),
        "{refused}"
    );
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("locks.json").display().to_string();
    let lines = audit(&["--format", "jsonl", "--output", &path]).ends(5).stdout;
    let events: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let last = events.last().unwrap();
    assert_eq!((&last["event"], &last["code"]), (&"result".into(), &5.into()), "{lines}");
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

/// An audit of this history, with these flags.
fn of(history: &str, rest: &[&str]) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("locks.csv"), history).unwrap();
    let line = [&["locks", "audit", "locks.csv"], rest].concat();
    run(program().current_dir(folder.path()).args(&line), &line)
}

#[test]
fn a_lock_without_expiry_that_the_next_one_gets_lets_two_in() {
    let head = "key,event,owner,lease_ms,at\n";
    let grants = "k,acquire,A,,2026-11-11T12:00:00Z\nk,acquire,B,60000,2026-11-11T12:00:05Z\n";
    let release = |who: &str, at: &str| format!("k,release,{who},,2026-11-11T12:00:{at}Z\n");
    // A gave no sign that it was at work, and none that it was not.
    let silent = of(&format!("{head}{grants}{}", release("B", "09")), &["--json"]).ends(0).json();
    assert_eq!(
        (tally(&silent, "GRANTED_TWICE"), tally(&silent, "NO_EXPIRY")),
        ((0, 1), (1, 0)),
        "{silent:#}"
    );
    let rows = silent["sheets"]["findings"].as_array().unwrap();
    let twice = rows.iter().find(|r| r["finding"] == "GRANTED_TWICE").unwrap();
    let told = "B got it while A held it without expiry; both may have held it for 4s";
    assert_eq!((&twice["what"], &twice["for_us"]), (&told.into(), &4_000_000.into()));
    // Its release shows that it was; of whoever comes third is not told again.
    let third = "k,acquire,C,60000,2026-11-11T12:00:11Z\n";
    let seen = format!("{head}{grants}{}{}{third}", release("B", "07"), release("A", "09"));
    let seen = of(&seen, &["--json"]).ends(5).json();
    assert_eq!(tally(&seen, "GRANTED_TWICE"), (1, 0), "{seen:#}");
    // One that the first owner gets back is its own.
    let own = format!("{head}{grants}").replace("acquire,B", "acquire,A");
    assert_eq!(tally(&of(&own, &["--json"]).json(), "GRANTED_TWICE"), (0, 0));
}

#[test]
fn clocks_may_be_said_not_to_differ() {
    let history = "key,event,owner,lease_ms,at\nk,acquire,A,10000,2026-11-11T12:00:00Z\n";
    of(history, &["--skew", "0s", "--reorder", "0s"]).ends(0).prints("clocks differ by up to 0s");
    of(history, &["--skew=-1s"]).fails(2, &["negative"]);
    of(history, &["--forget-after", "0s"]).fails(2, &["longer than that"]);
}

#[test]
fn two_live_grants_at_the_end_of_the_history_are_told() {
    let history = "key,event,owner,lease_ms,at\nk,acquire,A,10000,2026-11-11T12:00:00Z\n\
                   k,acquire,B,10000,2026-11-11T12:00:01Z\n";
    let json = of(history, &["--json"]).ends(5).json();
    assert_eq!(tally(&json, "GRANTED_TWICE"), (1, 0), "{json:#}");
    let row = &json["sheets"]["findings"][0];
    assert_eq!(
        (&row["first"], &row["second"], &row["for_us"]),
        (&"A".into(), &"B".into(), &9_000_000.into())
    );
}

#[test]
fn what_is_proposed_is_what_was_typed_and_more() {
    let dir = fixture("");
    let told = audit(&["--files", &dir, "--reorder", "2s"]).ends(5);
    let (history, dir) = (fixture("locks.csv"), dir.as_str());
    let typed = format!("$ onefold locks audit {history} --skew 50ms --files {dir} --reorder 2s");
    told.prints(&format!("{typed} --rules locks.yml"))
        .prints(&format!("{typed} --format xlsx --output locks.xlsx"));
    audit(&["--reorder", "2s", "--format", "xlsx"])
        .fails(2, &["--skew 50ms --reorder 2s --format xlsx --output locks.xlsx"]);
    audit(&["--output", "mine.csv"]).fails(2, &["--skew 50ms --format csv --output mine.csv"]);
}

#[test]
fn two_outputs_are_two_places() {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(folder.path(), folder.path().join("link")).unwrap();
    std::os::unix::fs::symlink("nowhere", folder.path().join("dangling")).unwrap();
    let history = fixture("locks.csv");
    let run = |rules: &str, output: &str| {
        let line = ["locks", "audit", &history, "--rules", rules, "--format", "html", "--output", output];
        run(program().current_dir(folder.path()).args(line), &line)
    };
    for (rules, output) in [("f", "f"), ("./f", "f"), ("f", "link/f"), ("link/./f", "f")] {
        run(rules, output)
            .fails(2, &[&format!("--rules {rules} is the same place as --output"), "name another"]);
    }
    run("dangling", "f").fails(2, &["dangling is there already"]);
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
    run("f.yml", "f.html").ends(5);
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
    std::fs::write(&query, select.replace(';', " WHERE fence = 4711")).unwrap();
    site.run(&["locks", "audit", "--query", "locks.sql"])
        .fails(2, &["locks.sql gives no row: nothing was audited"]);
    assert_eq!(site.column("SELECT what FROM redis_locks").len(), 37);
    // A table is read as a file is: blanks and capital letters mean nothing, and what a file may not say it may not.
    let replaced = |ours: &str, other: &str| select.replace(&format!(" {ours} AS"), &format!(" {other} AS"));
    for (ours, other) in
        [("what", "UPPER(what)"), ("who", "CONCAT(' ', who)"), ("lock_name", "CONCAT(lock_name, ' ')")]
    {
        std::fs::write(&query, replaced(ours, other)).unwrap();
        has_every_death(&site.run(&line).ends(5).json());
    }
    for (ours, other, column) in [
        ("ms", "COALESCE(ms, 0)", "lease_ms: 0 is"),
        ("ms", "-2", "lease_ms: -2 is"),
        ("ms", "'5 s'", "lease_ms: \"5 s\" is"),
        ("ms", "NULLIF(ms, 5200)", "lease_ms: null is"),
        ("host", "NULLIF(host, 'stock-1')", "node"),
        ("answer", "'perhaps'", "result: \"perhaps\" is"),
    ] {
        std::fs::write(&query, replaced(ours, other)).unwrap();
        let ran = site.run(&["locks", "audit", "--query", "locks.sql"]);
        ran.fails(2, &["of the lock history", &format!("column {column}"), "correct the SELECT of --query"]);
    }
    site.sql("UPDATE redis_locks SET what = 'grab' WHERE fence = 40");
    std::fs::write(&query, select).unwrap();
    site.run(&["locks", "audit", "--query", "locks.sql"])
        .fails(2, &["row 1 of the lock history", "column event"]);
}

/// What came of a history of one lock beside the fixture's ledgers, of which this is the one tenant.
fn came_of(key: &str, tenant: &str, lines: &[&str]) -> Ran {
    came_of_keys(&[("default", tenant)], &lines.iter().map(|line| (key, *line)).collect::<Vec<_>>())
}

/// The same of several locks, each line with its key, and with other words in place of some of the ledgers' cells.
fn came_of_keys(others: &[(&str, &str)], lines: &[(&str, &str)]) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    for name in ["orders.csv", "payments.csv", "inventory.csv", "messages.csv"] {
        let mut reader = csv::Reader::from_path(fixture(name)).unwrap();
        let mut writer = csv::Writer::from_path(folder.path().join(name)).unwrap();
        writer.write_record(reader.headers().unwrap()).unwrap();
        for row in reader.records() {
            let row = row.unwrap();
            let cells = row
                .iter()
                .map(|cell| others.iter().find(|(ours, _)| *ours == cell).map_or(cell, |(_, other)| *other));
            writer.write_record(cells).unwrap();
        }
    }
    let history = lines.iter().fold("event,owner,lease_ms,at,key\n".to_owned(), |text, (key, line)| {
        let (what, at) = line.rsplit_once(' ').unwrap();
        text + &format!("{what},2026-11-11T12:14:{at}Z,{key}\n")
    });
    std::fs::write(folder.path().join("locks.csv"), history).unwrap();
    let line = ["locks", "audit", "locks.csv", "--files", ".", "--reorder", "20s"];
    run(program().current_dir(folder.path()).args(line), &line)
}

#[test]
fn what_one_holder_did_twice_did_not_come_of_two() {
    // The ledgers have releases of 07.120 and of 09.300.
    let both =
        ["acquire,A,5000 00", "acquire,B,5000 06", "write,A, 07.120", "write,B, 09.300", "release,B, 10"];
    let joined = "DOUBLE_RELEASE: 1 in the ledgers, 1 while two held their lock";
    came_of("hold:H-88", "default", &both).ends(5).prints(joined);
    for lines in [
        // Both by the first one, before the second one came.
        &["acquire,A,30000 06", "write,A, 07.120", "write,A, 09.300", "acquire,B,5000 20", "release,B, 21"][..],
        &["acquire,A,30000 06", "acquire,B,5000 20", "release,B, 21"],
        // Both by the second one.
        &[
            "acquire,A,5000 00",
            "acquire,B,9000 06",
            "write,A, 06.5",
            "write,B, 07.120",
            "write,B, 09.300",
            "release,B, 10",
        ],
        &["acquire,A,5000 00", "acquire,B,9000 06", "write,A, 06.5", "release,B, 10"],
        // Each by one of them, and not while both held it.
        &[
            "acquire,A,2000 06",
            "write,A, 07.120",
            "acquire,B,5000 08.1",
            "write,A, 08.2",
            "write,B, 09.300",
            "release,B, 10",
        ],
        // By others.
        &["acquire,A,5000 00", "acquire,B,9000 03", "write,A, 03.5", "write,B, 04", "release,B, 10"],
    ] {
        let told = came_of("hold:H-88", "default", lines).ends(5);
        told.prints("DOUBLE_RELEASE: 1 in the ledgers, 0 while two held their lock");
    }
    // Without a line of what they wrote, time says who it was.
    let untold = ["acquire,A,5000 00", "acquire,B,5000 06", "release,A, 08", "release,B, 10"];
    came_of("hold:H-88", "default", &untold[..]).prints(joined).prints("12:14:07.120Z by one of the two");
}

#[test]
fn what_a_third_one_did_is_not_said_to_be_of_the_two() {
    let by_third =
        ["acquire,A,9000 00", "acquire,B,9000 06", "write,C, 07.120", "write,C, 09.300", "release,B, 10"];
    let told = came_of("hold:H-88", "default", &by_third).ends(5);
    told.prints("DOUBLE_RELEASE: 1 in the ledgers, 0 while two held their lock")
        .does_not_print("by one of the two");
    // One of it, and the two did the rest.
    let folder = came_of(
        "hold:H-88",
        "default",
        &["acquire,A,9000 00", "acquire,B,9000 06", "write,C, 07.120", "release,A, 09.400", "release,B, 10"],
    );
    folder.ends(5).does_not_print("07.120Z by one of the two");
}

#[test]
fn where_keys_have_a_tenant_another_word_there_is_another_tenant() {
    let both =
        ["acquire,A,5000 00", "acquire,B,5000 06", "write,A, 07.120", "write,B, 09.300", "release,B, 10"];
    let of = |key: &str, other: &str| {
        let lines: Vec<_> = both.iter().map(|line| (key, *line)).chain([(other, "acquire,A,5 00")]).collect();
        came_of_keys(&[("default", "acme")], &lines).ends(5)
    };
    let joined = |n: u64| format!("DOUBLE_RELEASE: 1 in the ledgers, {n} while two held their lock");
    of("globex:hold:H-88", "acme:hold:H-1").prints(&joined(0));
    of("acme:hold:H-88", "globex:hold:H-1").prints(&joined(1)).does_not_print("it does not say");
    of("hold:H-88", "acme:hold:H-1").prints(&joined(1));
    // No key of the history has a tenant of the ledgers there.
    let untold = of("globex:hold:H-88", "hold:H-1");
    untold.prints(&joined(1)).prints("that globex:hold:H-88 is a key of tenant acme it does not say");
}

#[test]
fn a_key_that_says_what_it_names_names_nothing_else() {
    let both =
        ["acquire,A,5000 00", "acquire,B,5000 06", "write,A, 07.120", "write,B, 09.300", "release,B, 10"];
    let of = |key: &str, others: &[(&str, &str)]| came_of_keys(others, &both.map(|line| (key, line))).ends(5);
    let joined = |n: u64| format!("DOUBLE_RELEASE: 1 in the ledgers, {n} while two held their lock");
    for (key, n) in [
        ("hold:H-88", 1),
        ("HOLDS/H-88", 1),
        ("stock:{H-88}:lock", 1),
        ("order:S-1:hold:H-88", 1),
        ("H-88:hold", 1),
        ("H-88:show:S-204", 1),
        ("lock:H-88", 1),
        ("user:H-88", 0),
        ("H-88:user", 0),
        ("hold:S-1:user-lock:H-88", 0),
        ("session:H-88", 0),
        ("show:H-88", 0),
    ] {
        of(key, &[]).prints(&joined(n)).does_not_print("others have that name");
    }
    // A user has the hold's name.
    let shared = [("U-88", "H-88")];
    of("hold:H-88", &shared).prints(&joined(1)).does_not_print("others have that name");
    of("user:H-88", &shared).prints(&joined(0));
    let told = of("lock:H-88", &shared).prints(&joined(1));
    told.prints("whether lock:H-88 means this one it does not say: others have that name, too");
}

#[test]
fn a_key_that_names_a_tenant_names_nothing_of_another() {
    let both =
        ["acquire,A,5000 00", "acquire,B,5000 06", "write,A, 07.120", "write,B, 09.300", "release,B, 10"];
    for (key, tenant, n) in [
        ("default:hold:H-88", "default", 1),
        ("acme:hold:H-88", "acme", 1),
        ("hold:H-88", "acme", 1),
        ("prod:hold:H-88", "acme", 1),
        ("default:hold:H-88", "acme", 0),
    ] {
        let joined = format!("DOUBLE_RELEASE: 1 in the ledgers, {n} while two held their lock");
        came_of(key, tenant, &both).ends(5).prints(&joined);
    }
}
