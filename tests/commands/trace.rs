//! `onefold trace`

use std::fs;
use std::path::Path;

use calamine::{Reader as _, Xlsx, open_workbook};
use onefold::core::time::{Span, Timestamp};
use serde_json::Value;

use crate::common::book::{Book, at};
use crate::common::site::{Site, text};
use crate::{doubled, on_each_database};

on_each_database![
    the_incident_is_told_the_same_from_databases_and_from_files,
    a_log_in_a_table_is_read_by_the_sites_own_select,
    what_leaves_holds_every_row,
    what_cannot_be_read_or_found_is_named,
    pseudonyms_stand_for_people_as_in_a_report,
    what_is_inferred_is_said_where_it_stands,
];

/// The incident's folder.
fn incident() -> String {
    text(&Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/incident-2014"))
}

/// What does not hang on when it was read.
fn timeless(mut json: Value) -> Value {
    json["about"]["Read at (UTC)"] = Value::Null;
    json
}

fn pseudonyms_stand_for_people_as_in_a_report(site: &Site) {
    let folder = incident();
    site.run(&["import", &folder]).ends(0);
    let ledger = fs::read_to_string(format!("{folder}/orders.csv")).unwrap();
    let mut reader = csv::Reader::from_reader(ledger.as_bytes());
    let headers = reader.headers().unwrap().clone();
    let place = |name: &str| headers.iter().position(|header| header == name).unwrap();
    let people = ["user_id", "session_id", "trace_id"].map(place);
    let ids: Vec<String> = reader
        .records()
        .flat_map(|row| people.map(|p| row.as_ref().unwrap()[p].to_owned()))
        .filter(|id| id.len() > 3)
        .collect();
    assert!(ids.len() > 300);
    let nobody = |text: &str| {
        let is_word = |id: &&String| {
            text.match_indices(id.as_str()).any(|(at, _)| {
                !text[at + id.len()..].starts_with(|c: char| c.is_ascii_alphanumeric())
                    && !text[..at].ends_with(|c: char| c.is_ascii_alphanumeric())
            })
        };
        assert_eq!(ids.iter().find(is_word), None, "{text}");
    };
    let access = format!("{folder}/access.csv");
    let line = ["trace", "--show", "S-204", "--access", &access, "--redact"];
    nobody(&site.run(&line).ends(0).stdout);
    // Nor does what is proposed name whom it was asked for.
    let plain = site.json(&line[..5]);
    let user = plain["sheets"]["purchases"][0]["user_id"].as_str().unwrap();
    let told = site.run(&[&line[..], &["--user", user]].concat()).ends(0).stdout;
    assert!(told.contains("--redact --user USER --format xlsx"), "{told}");
    nobody(&told);
    let json = site.run(&[&line[..], &["--json"]].concat()).ends(0);
    nobody(&json.stdout);
    let json = json.json();
    assert_eq!(json["redacted"], true);
    for member in ["sources", "guards", "surplus", "series", "orders"] {
        assert_eq!(json[member], plain[member], "{member}");
    }
    let orders = |json: &Value| -> Vec<Value> {
        json["sheets"]["arrivals"].as_array().unwrap().iter().map(|a| a["order_id"].clone()).collect()
    };
    assert_eq!(orders(&json), orders(&plain), "ids of rows stay");
    let users = |json: &Value| -> Vec<String> {
        let all = json["sheets"]["purchases"].as_array().unwrap();
        all.iter().filter_map(|p| p["user_id"].as_str().map(str::to_owned)).collect()
    };
    // Whoever stands in a plan's report stands there under the same name.
    let plan = site.json(&["plan", "--show", "S-204"])["plan_id"].as_str().unwrap().to_owned();
    let report = site.run(&["report", &plan, "--redact", "--json"]).ends(0).json();
    let reported: Vec<_> =
        report["intents"].as_array().unwrap().iter().map(|i| i["user_id"].clone()).collect();
    assert!(users(&json).iter().any(|user| reported.contains(&user.as_str().into())), "{reported:?}");
    // Without a database there is no key but the one that is named.
    let files = ["trace", "--files", &folder, "--redact", "--json"];
    site.run(&files[..4]).fails(2, &["--redact needs a key", "ONEFOLD_REDACT_KEY"]);
    let keyed =
        site.command(&files).env("ONEFOLD_REDACT_KEY", "a secret of sixteen and more").output().unwrap();
    nobody(&String::from_utf8(keyed.stdout).unwrap());
}

fn what_is_inferred_is_said_where_it_stands(site: &Site) {
    let folder = incident();
    let header = "at,request_id,source,attempt,status,latency_ms,user_id,show_id,order_id";
    let tap = |ms: u64, id: &str| {
        format!("2026-11-11T12:05:{:06.3}Z,{id},client,1,,3000,U-12897,S-204,", ms as f64 / 1e3)
    };
    let retry = "2026-11-11T12:05:07Z,r9,gateway,2,200,30,U-12897,S-204,O-19878";
    let traced = |lines: &[String]| {
        let path = site.path("nameless.csv");
        fs::write(&path, format!("{header}\n{}\n{retry}\n", lines.join("\n"))).unwrap();
        let line = ["trace", "--files", &folder, "--order", "O-19878", "--access", &text(&path)];
        (site.run(&line).ends(0), site.run(&[&line[..], &["--json"]].concat()).ends(0).json())
    };
    let basis = |json: &Value| {
        let arrivals = json["sheets"]["arrivals"].as_array().unwrap();
        let wrote = arrivals.iter().find(|a| a["order_id"] == "O-19878").unwrap();
        (wrote["request_id"].clone(), wrote["basis"].clone())
    };
    let (told, json) = traced(&[tap(3434, "r1")]);
    told.prints("1 order is with a request by buyer and time alone, which is inferred.")
        .prints("O-19878 again");
    assert_eq!(basis(&json), ("r1".into(), "buyer and time: inferred".into()));
    let (told, json) = traced(&[tap(3434, "r1"), tap(3440, "r2")]);
    told.prints("1 order may be another request's than the one it is with");
    assert_eq!(basis(&json).1, "buyer and time: inferred, and may be another request's");
    assert_eq!((&json["log_fit"]["inferred"], &json["log_fit"]["rivalled"]), (&1.into(), &1.into()));
}

const ATTRIBUTION: &str = "8 orders = 6 taps + 2 gateway retries; the first was written 430 ms in, its answer was lost \
                           at 3.0 s, the gateway retried at 3.0 s and 6.1 s";

fn the_incident_is_told_the_same_from_databases_and_from_files(site: &Site) {
    let folder = incident();
    site.run(&["import", &folder]).ends(0);
    let before = site.ledgers();
    let access = format!("{folder}/access.csv");
    let databases = |scope: &[&str]| site.json(&[&["trace", "--access", &access], scope].concat());
    let files = |scope: &[&str]| site.json(&[&["trace", "--files", &folder], scope].concat());
    for scope in [&["--show", "S-204"][..], &["--user", "U-7318"], &["--order", "O-20173"], &[]] {
        assert_eq!(timeless(databases(scope)), timeless(files(scope)), "{scope:?}");
    }
    let one = databases(&["--order", "O-20173"]);
    assert_eq!(one["findings"][0], ATTRIBUTION);
    assert_eq!(one["log"]["lines"], 394);
    let id = one["sheets"]["purchases"][0]["intent_id"].as_str().unwrap().to_owned();
    assert_eq!(databases(&["--intent", &id])["sheets"], one["sheets"]);
    let sources = |json: &Value| {
        let of = |s: &Value| ["source", "arrivals", "orders", "captures"].map(|name| s[name].clone());
        json["sources"].as_array().unwrap().iter().map(of).collect::<Vec<_>>()
    };
    assert_eq!(sources(&one)[0], [Value::from("client"), 6.into(), 6.into(), 2.into()]);
    assert_eq!(sources(&one)[1], [Value::from("gateway"), 3.into(), 2.into(), 0.into()]);
    let plan = site.json(&["plan", "--show", "S-204"]);
    let planned = plan["intents"].as_array().unwrap().iter().find(|i| i["user_id"] == "U-7318").unwrap();
    assert_eq!(planned["intent_id"], id.as_str(), "a plan has it under the same id");

    site.run(&["trace", "--show", "S-204", "--access", &access])
        .ends(0)
        .prints("367 orders of 334 purchases: beyond one a purchase there are 33 orders")
        .prints("inventory.release of O-19954 2 times, the second 660 ms after the first")
        .prints("394 lines of the access log, 365 of these purchases")
        .prints(ATTRIBUTION)
        .prints(&format!(
            "… and 11 more purchases: $ onefold trace --show S-204 --access {access} --format csv --sheet purchases"
        ))
        .prints(&format!("$ onefold trace --show S-204 --access {access} --format xlsx --output trace.xlsx"));
    let told = site.run(&["trace", "--order", "O-20141", "--access", &access]).ends(0);
    let too_wide: Vec<_> =
        told.stdout.lines().filter(|l| !l.starts_with("$ ") && l.chars().count() > 80).collect();
    assert!(too_wide.is_empty(), "{too_wide:?}");
    told.prints("gateway retry 3 no order; answer 503 after 20 ms")
        .prints("O-20143: tr-7318-tap1-201400.000 became tr-7318-tap1-201400.000-retry")
        .prints("Not in the ledgers: order → payment trace id");
    // A log in another time zone tells of other orders.
    let shifted = site.path("shifted.csv");
    let log = fs::read_to_string(&access).unwrap();
    assert!(log.contains("+08:00"), "{log}");
    fs::write(&shifted, log.replace("+08:00", "Z")).unwrap();
    let shifted = text(&shifted);
    site.run(&["trace", "--order", "O-20173", "--access", &shifted])
        .ends(0)
        .prints("WARNING: of 8 orders only 0 stand beside a line of the access log")
        .prints("are about 8h later than it. Is it the right log");
    let json = site.json(&["trace", "--order", "O-20173", "--access", &shifted]);
    assert!(json["log_warning"].as_str().unwrap().starts_with("WARNING: "), "{json:#}");
    assert_eq!((&json["orders_beside_a_line"], &one["orders_beside_a_line"]), (&0.into(), &8.into()));
    assert_eq!(one["log_warning"], Value::Null);
    assert_eq!(one["log_fit"]["orders_without_line"], 0);
    the_log_is_told_before_anything_by_it(site, &folder, &log);
    site.run(&["trace", "--user", "U-7318"])
        .ends(0)
        .prints("8 orders = 6 taps + 2 gateway retries.")
        .prints("There is no access log")
        .prints("inferred, as there is no access log");
    assert_eq!(site.ledgers(), before, "nothing is changed");
}

/// Logs of the incident whose clock is wrong, in which columns are missing, or which name what is not there.
fn the_log_is_told_before_anything_by_it(site: &Site, folder: &str, log: &str) {
    let lines = || csv::Reader::from_reader(log.as_bytes()).into_records().map(Result::unwrap);
    let header = log.lines().next().unwrap();
    let place = |name: &str| header.split(',').position(|column| column == name).unwrap();
    let moved = |millis: &dyn Fn(usize, i64) -> i64| {
        let mut moved = header.to_owned();
        for (number, line) in lines().enumerate() {
            let at = Timestamp::parse_rfc3339(&line[0]).unwrap();
            let latency = line[place("latency_ms")].parse().unwrap();
            let at = at.plus(Span::from_micros(millis(number, latency) * 1000));
            moved += &format!("\n{at},{}", line.iter().skip(1).collect::<Vec<_>>().join(","));
        }
        moved
    };
    let of_log = |log: &str| {
        let path = site.path("other.csv");
        fs::write(&path, log).unwrap();
        site.json(&["trace", "--files", folder, "--access", &text(&path)])
    };
    let counts = |json: &Value, name: &str| {
        json["sources"].as_array().unwrap().iter().map(|s| s[name].as_u64().unwrap()).sum::<u64>()
    };
    let whole = of_log(log);
    assert_eq!(whole["log_warning"], Value::Null);
    assert_eq!(
        ["arrivals", "orders", "captures", "tickets"].map(|n| counts(&whole, n)),
        [892, 384, 316, 182]
    );

    // Every second line comes from a clock that is two seconds fast. One lost retry, which nothing names, is not told
    // again.
    let half = of_log(&moved(&|number, _| if number % 2 == 1 { 2000 } else { 0 }));
    assert!(
        half["log_warning"].as_str().unwrap().contains("later than can be: do the clocks differ"),
        "{half:#}"
    );
    assert_eq!(half["sources"][0], whole["sources"][0]);
    assert!(counts(&half, "arrivals") <= 893, "{:#}", half["sources"]);

    let answers = of_log(&moved(&|_, latency| latency));
    assert!(
        answers["log_warning"].as_str().unwrap().contains("`at` is to be when a request came in"),
        "{answers:#}"
    );
    assert_eq!(counts(&answers, "orders"), 384);

    // Of the columns of key and trace id nothing is left.
    let bare: Vec<_> = std::iter::once(header.to_owned())
        .chain(lines().map(|mut line| {
            let gone = [place("trace_id"), place("idempotency_key")];
            line =
                line.iter().enumerate().map(|(i, cell)| if gone.contains(&i) { "" } else { cell }).collect();
            line.iter().collect::<Vec<_>>().join(",")
        }))
        .collect();
    let bare = of_log(&bare.join("\n"));
    let told = bare["findings"].as_array().unwrap().iter().any(|f| {
        f.as_str().unwrap().starts_with("No line of the access log has a trace id or an idempotency key")
    });
    assert!(told, "{:#}", bare["findings"]);
    let hops = bare["sheets"]["hops"].as_array().unwrap();
    assert_eq!(
        (&hops[1]["rows"], &hops[1]["basis"]),
        (&Value::Null, &"not in the log: no line of it has one".into())
    );
    site.run(&["trace", "--files", folder, "--access", &text(&site.path("other.csv"))])
        .ends(0)
        .prints("Not in the log: gateway → order trace id, gateway → order idempotency key.");

    // An order that the log knows alone.
    let lost = of_log(&log.replacen(",O-20166", ",O-LOST", 1));
    let told = lost["findings"]
        .as_array()
        .unwrap()
        .iter()
        .any(|f| f.as_str().unwrap().ends_with("may be lost: O-LOST"));
    assert!(told, "{:#}", lost["findings"]);
    let names = |a: &&Value| a["answer_order_id"] == "O-LOST";
    assert!(lost["sheets"]["arrivals"].as_array().unwrap().iter().any(|a| names(&a)));
    site.run(&["trace", "--files", folder, "--order", "O-20141", "--access", &text(&site.path("other.csv"))])
        .ends(0)
        .prints("names O-LOST, which was not read");
}

fn a_log_in_a_table_is_read_by_the_sites_own_select(site: &Site) {
    let mut book = Book::new();
    for (id, seconds, source) in [("A", 1, "client"), ("B", 4, "gateway")] {
        book.order(id, seconds, "PENDING_PAYMENT").source = Some(source.to_owned());
    }
    site.import(&book.ledgers);
    site.sql("CREATE TABLE requests (t BIGINT, id VARCHAR(20), who VARCHAR(20), n BIGINT, code BIGINT, ms BIGINT, trace VARCHAR(20), buyer VARCHAR(20))");
    for (seconds, who, n, code) in
        [(0, "client", 1, "NULL"), (3, "gateway", 2, "200"), (9000, "client", 1, "200")]
    {
        let t = at(seconds).micros();
        site.sql(&format!("INSERT INTO requests VALUES ({t}, 'r1', '{who}', {n}, {code}, 2500, '', 'u')"));
    }
    let select = |what: &str| {
        let folder = site.path("queries/ledgers");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("access.sql"), format!("-- Our gateway's log.\n{what}\n")).unwrap();
        text(&site.path("queries"))
    };
    let good = "SELECT t AS at_us, id AS request_id, 't' AS tenant_id, who AS source, n AS attempt, code AS status, \
                ms AS latency_ms, trace AS trace_id, '' AS idempotency_key, buyer AS user_id, 'show' AS show_id, \
                '' AS order_id FROM requests";
    let queries = select(good);
    let json = site.json(&["trace", "--queries", &queries]);
    assert_eq!(
        json["findings"][0],
        "2 orders = 1 tap + 1 gateway retry; the first was written 1.0 s in, its answer was lost at 2.5 s, the gateway \
         retried at 3.0 s"
    );
    assert_eq!(json["log"]["lines"], 2, "only the time of the purchases is read");
    site.run(&["trace", "--queries", &select(&good.replace("n AS attempt", "0 AS attempt"))])
        .fails(2, &["line 1 of ledgers/access.sql", "column attempt", "0 is less than 1"]);
    site.run(&["trace", "--queries", &select("SELECT 1; SELECT 2")])
        .fails(2, &["ledgers/access.sql is not one SELECT"]);
    let ran = site.run(&["trace", "--queries", &select("SELECT t AS at_us FROM requests")]);
    assert!(ran.code != Some(0) && ran.stderr.contains("ledgers/access.sql"), "{ran}");
    assert!(ran.stderr.contains("request_id"), "{ran}");
}

fn what_leaves_holds_every_row(site: &Site) {
    site.run(&["import", &incident()]).ends(0);
    let access = format!("{}/access.csv", incident());
    let trace = |more: &[&str]| site.run(&[&["trace", "--access", &access], more].concat());
    let json = site.json(&["trace", "--access", &access]);
    let rows = |sheet: &str| json["sheets"][sheet].as_array().unwrap().len();
    assert_eq!(rows("purchases"), json["purchases"].as_u64().unwrap() as usize);

    let book = text(&site.path("t.xlsx"));
    trace(&["--format", "xlsx", "--output", &book]).ends(0).prints("t.xlsx: ");
    let mut read: Xlsx<_> = open_workbook(&book).unwrap();
    for sheet in ["Sources", "Guards", "Hops", "Redeliveries", "Shapes", "Times", "Purchases", "Arrivals"] {
        let range = read.worksheet_range(sheet).unwrap();
        assert_eq!(range.height() - 1, rows(&sheet.to_lowercase()), "{sheet}");
    }
    let said =
        |cells: calamine::Range<calamine::Data>, what: &str| cells.used_cells().any(|(_, _, c)| *c == what);
    assert!(said(read.worksheet_range("Purchases").unwrap(), ATTRIBUTION));
    assert!(said(read.worksheet_range("Summary").unwrap(), json["findings"][0].as_str().unwrap()));

    let page = site.path("t.html");
    trace(&["--format", "html", "--output", &text(&page)]).ends(0);
    let html = fs::read_to_string(&page).unwrap();
    assert!(html.contains("onefold trace") && html.contains("6 taps + 2 gateway retries"));

    let csv = trace(&["--format", "csv", "--sheet", "arrivals"]).ends(0).stdout;
    assert_eq!(csv::Reader::from_reader(csv.as_bytes()).records().count(), rows("arrivals"));
    let folder = site.path("sheets");
    let line = ["--format", "csv", "--output", &text(&folder)];
    trace(&line).ends(0);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 9);
    trace(&line).fails(2, &["is there already", "--force"]);
    trace(&[&line[..], &["--force"]].concat()).ends(0);
    trace(&["--format", "html", "--output", &book, "--force"])
        .fails(2, &["t.xlsx is no onefold report of this format"]);

    trace(&["--format", "csv"]).fails(2, &["--sheet arrivals", "--output DIR"]);
    let again = |rest: &str| format!("onefold trace --access {access} {rest}");
    trace(&["--format", "xlsx"]).fails(2, &[&again("--format xlsx --output trace.xlsx")]);
    trace(&["--output", "x"]).fails(2, &["a table goes to the terminal", &again("--format xlsx --output x")]);
    let refused = trace(&["--format", "jsonl"]).ends(2);
    assert_eq!(refused.stdout, "", "nothing is read for what cannot be written");
    assert!(refused.error()["hint"].as_str().unwrap().starts_with(&again("--format json;")), "{refused}");
    let path = text(&site.path("t.json"));
    let lines = trace(&["--format", "jsonl", "--output", &path]).ends(0).stdout;
    let events: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let last = events.last().unwrap();
    assert_eq!((&last["event"], &last["result"]["output"]), (&"result".into(), &path.into()));
    trace(&["--sheet", "arrivals"]).fails(2, &[&again("--format csv --sheet arrivals")]);
    trace(&["--format", "csv", "--sheet", "journal"]).fails(2, &["possible values: sources, guards"]);
}

fn what_cannot_be_read_or_found_is_named(site: &Site) {
    site.import(&doubled().ledgers);
    let log = |text: &str| {
        let path = site.path("access.log");
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let bad =
        log("at,request_id,source,attempt\n2026-11-11T20:14:00+08:00,r1,client,1\nnoon,r2,client,two\n");
    site.run(&["trace", "--access", &bad]).fails(
        2,
        &[
            "2 faults in the files",
            "access.log:3: column at (1), value \"noon\"",
            "access.log:3: column attempt (4), value \"two\"",
        ],
    );
    let error = site.run(&["trace", "--access", &bad, "--json"]).ends(2).error();
    assert_eq!(error["details"]["files"][0]["first"][0]["line"], 3, "{error}");
    site.run(&["trace", "--access", &log("{\"at\": 5}\n")])
        .fails(2, &["access.log:1: column at, value \"5\""]);
    site.run(&["trace", "--access", "nowhere.csv"]).fails(2, &["nowhere.csv"]);
    site.run(&["trace", "--access", &log("at,request_id\n")])
        .fails(2, &["column source", "--access-map THEIRS=source"]);
    site.run(&["trace", "--access-map", "ts=at"]).fails(2, &["--access FILE"]);
    site.run(&["trace", "--source", "kong=door"]).fails(2, &["NAME=KIND"]);
    site.run(&["trace", "--bucket", "0.00001s"]).fails(2, &["--bucket is too short", "--bucket 1m"]);
    site.run(&["trace", "--order", "O-none"]).fails(2, &["there is no order O-none in everything"]);
    site.run(&["trace", "--visibility", "9s", "--order=O-none"])
        .fails(2, &["`onefold trace --visibility 9s --user USER`"]);
    let missing = log("{\"request_id\": \"r\", \"source\": null}\n");
    site.run(&["trace", "--access", &missing]).fails(
        2,
        &["access.log:1: column at: required, but missing", "column source, value \"\": required, but empty"],
    );
    site.run(&["trace", "--access", &log("[]\n")]).fails(2, &["not one JSON object", "jq -c"]);
    let empty = log("at,request_id,source\n");
    site.run(&["trace", "--access", &empty])
        .ends(0)
        .prints("The access log has no line, so each order stands for");
    site.run(&["trace", "--order", "A", "--tenant", "other"])
        .fails(2, &["there is no order A in tenant other"]);
    site.run(&["trace", "--order", "A", "--tenant", "t"]).ends(0);
    let id = site.json(&["trace"])["sheets"]["purchases"][0]["intent_id"].as_str().unwrap().to_owned();
    site.run(&["trace", "--intent", &id, "--show", "typo"])
        .fails(2, &[&format!("there is no purchase {id} in show typo")]);
    site.run(&["trace", "--intent", "I-none"]).fails(2, &["there is no purchase I-none in everything"]);
    site.run(&["trace", "--files", "nowhere"]).fails(2, &["no folder nowhere"]);
    site.run(&["trace", "--order", "A", "--show", "show"]).ends(2);
    site.run(&["trace", "--show", "typo"]).ends(0).prints("No order is in scope: is the name right?");
    site.run(&["trace"])
        .ends(0)
        .prints("2 orders of 1 purchase")
        .prints("2 orders = 2 orders of unknown source");
}
