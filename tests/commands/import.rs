//! `onefold import`

use std::fs;

use crate::common::book::Book;
use crate::common::site::{Site, text};
use crate::{doubled, on_each_database};

on_each_database![
    loads_once_and_counts_what_is_there,
    other_content_is_refused_by_name_and_nothing_is_loaded,
    a_dry_run_writes_nothing,
    four_files_are_named_one_by_one,
    bad_input_is_told_with_file_line_column_and_value,
    all_faults_of_all_files_are_told_at_once,
    files_as_they_really_come,
    blanks_and_unknown_columns_are_noted,
    a_file_may_be_a_pipe,
];

const ORDERS: &str = "order_id,user_id,show_id,quantity,amount_minor,currency,status,created_at";
const ORDER: &str = "O-1,U-1,S-1,1,12000,CNY,PAID,2026-03-03T09:00:01Z";
const EMPTY: [(&str, &str); 3] = [
    (
        "payments.csv",
        "payment_id,order_id,user_id,show_id,amount_minor,currency,provider,provider_txn_id,status,created_at",
    ),
    ("inventory.csv", "hold_id,order_id,user_id,show_id,quantity,status,created_at"),
    ("messages.csv", "message_id,topic,order_id,status,created_at"),
];

/// A folder of ledgers of which only the orders have rows.
fn folder(site: &Site, name: &str, orders: &[u8]) -> String {
    let dir = site.path(name);
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("orders.csv"), orders).unwrap();
    EMPTY.iter().for_each(|(file, header)| fs::write(dir.join(file), format!("{header}\n")).unwrap());
    text(&dir)
}

fn loads_once_and_counts_what_is_there(site: &Site) {
    let folder = site.files(&doubled().ledgers);
    site.run(&["import", &folder]).ends(0).prints("orders 2 0").prints("messages 1 0");
    let before = site.ledgers();
    let again = site.json(&["import", &folder]);
    assert_eq!(again["ledgers"]["orders"], serde_json::json!({ "added": 0, "present": 2 }));
    assert_eq!(again["ledgers"]["messages"], serde_json::json!({ "added": 0, "present": 1 }));
    assert_eq!(site.ledgers(), before);
    site.run(&["history"]).ends(0).prints("imported: 7 rows from files");
}

fn other_content_is_refused_by_name_and_nothing_is_loaded(site: &Site) {
    let mut book = doubled();
    site.import(&book.ledgers);
    book.find_order("B").amount_minor = 2000;
    book.find_payment("P-A").captured_at = None;
    book.find_payment("P-A").provider_txn_id = Some("T-1".into());
    book.order("C", 500, "PENDING_PAYMENT");
    let before = site.ledgers();
    let changed = site.files(&book.ledgers);
    for dry_run in [&["--dry-run"][..], &[]] {
        let ran = site.run(&[&["import", &changed], dry_run].concat());
        ran.fails(2, &["2 rows are there with other content; nothing was imported", "never overwrites"])
            .warns("order B: amount_minor is 1000, the file says 2000")
            .warns("payment P-A: provider_txn_id is null, the file says \"T-1\"");
    }
    assert_eq!(site.ledgers(), before);
}

fn a_dry_run_writes_nothing(site: &Site) {
    let folder = site.files(&doubled().ledgers);
    site.run(&["import", &folder, "--dry-run"]).fails(2, &["onefold init"]);
    assert!(site.has_no_file());
    site.run(&["init"]).ends(0);
    site.run(&["import", &folder, "--dry-run"]).ends(0).prints("orders 2 0").prints("Nothing was written");
    assert_eq!(site.ledgers(), [""; 0]);
    site.run(&["history"]).ends(0).prints("no such entry");
}

fn four_files_are_named_one_by_one(site: &Site) {
    let folder = site.files(&doubled().ledgers);
    let file = |name: &str| format!("{folder}/{name}.csv");
    let [orders, payments, inventory, messages] = ["orders", "payments", "inventory", "messages"].map(file);
    let three = ["import", "--orders", &orders, "--payments", &payments, "--inventory", &inventory];
    site.run(&three).fails(2, &["a folder, or all four files", "--messages F"]);
    site.run(&["import"]).fails(2, &["a folder, or all four files"]);
    site.run(&[&three[..], &[&folder]].concat()).fails(2, &["a folder, or all four files"]);
    site.run(&[&three[..], &["--messages", &messages]].concat()).ends(0);
    assert_eq!(site.order("B"), "PAID");
    site.run(&["import", "nowhere"]).fails(2, &["no folder nowhere"]);
    fs::remove_file(&messages).unwrap();
    site.run(&["import", &folder]).fails(2, &["lacks messages.csv"]);
}

fn bad_input_is_told_with_file_line_column_and_value(site: &Site) {
    site.run(&["init"]).ends(0);
    let with = |column: &str, value: &str| {
        let at = ORDERS.split(',').position(|name| name == column).unwrap();
        let cells = ORDER.split(',').enumerate().map(|(i, cell)| if i == at { value } else { cell });
        format!("{ORDERS}\n{}\n", cells.collect::<Vec<_>>().join(","))
    };
    let bad = [
        ("order_id", "1.23457E+17", "scientific"),
        ("order_id", "1234567890123450000", "--accept-ids"),
        ("order_id", "", "column order_id"),
        ("amount_minor", "\"12,000\"", "--amounts"),
        ("amount_minor", "120.00", "--amounts"),
        ("amount_minor", "-5", "negative"),
        ("quantity", "-2", "-2"),
        ("quantity", "0", "at least 1"),
        ("currency", "XXQ", "ISO 4217"),
        ("status", "paid", "PENDING_PAYMENT"),
        ("created_at", "2026-11-11 20:14", "--timezone"),
        ("created_at", "yesterday", "not a time"),
    ];
    for (column, value, says) in bad {
        let dir = folder(site, "bad", with(column, value).as_bytes());
        let ran = site.run(&["import", &dir]).fails(2, &["1 fault in the files; nothing was loaded", says]);
        let plain = value.trim_matches('"');
        let ran = ran.warns(&format!("{dir}/orders.csv:2: column {column}"));
        if !plain.is_empty() {
            ran.warns(&format!("value \"{plain}\""));
        }
    }
    let twice = folder(site, "twice", format!("{ORDERS}\n{ORDER}\n{ORDER}\n").as_bytes());
    site.run(&["import", &twice]).fails(2, &["orders.csv:3: column order_id", "\"O-1\"", "line 2"]);
    let headless = folder(site, "headless", b"order_no,user_id\nO-1,U-1\n");
    site.run(&["import", &headless]).fails(2, &["orders.csv:1:", "show_id", "--map"]);
    let other = [ORDERS.as_bytes(), b"\nO-\xff,", ORDER.as_bytes()].concat();
    let other = folder(site, "other", &other);
    site.run(&["import", &other]).fails(2, &["orders.csv", "--encoding"]);
    assert_eq!(site.ledgers(), [""; 0]);
}

fn all_faults_of_all_files_are_told_at_once(site: &Site) {
    let rows = "O-1,U-1,S-1,0,1,CNY,PAID,never\n".repeat(40);
    let dir = folder(site, "bad", format!("{ORDERS}\n{rows}").as_bytes());
    fs::write(
        format!("{dir}/messages.csv"),
        "message_id,topic,status,created_at\nM-1,t,LOST,2026-01-01T00:00:00Z\n",
    )
    .unwrap();
    let ran = site
        .run(&["import", &dir])
        .fails(2, &["120 faults in the files", "119 in all", "LOST", "QUARANTINED"]);
    assert_eq!(ran.stderr.lines().filter(|l| l.contains("orders.csv:")).count(), 50 + 1, "{ran}");
    let json = site.run(&["import", &dir, "--json"]).ends(2).error();
    let files = &json["details"]["files"];
    assert_eq!(files[0]["count"], 119);
    assert_eq!(files[0]["first"].as_array().unwrap().len(), 50);
    let fault = &files[1]["first"][0];
    assert_eq!(fault["line"], 2);
    assert_eq!(fault["column"], "status");
    assert_eq!(fault["column_number"], 3);
    assert_eq!(fault["value"], "LOST");
    assert!(site.has_no_file(), "nothing is made before the files are read");
}

fn files_as_they_really_come(site: &Site) {
    let orders = "\u{feff}order_no;user_id;show_id;quantity;amount_minor;currency;status;created_at;item\r\n\
                  O-1;U-1;S-1;1;1.234,56;CNY;10;2026-11-11 20:14;\"前排\n1 座\"\r\n\
                  O-2;U-1;S-1;1;1234;JPY;10;2026-11-11 20:14;\r\n\
                  O-3;U-1;S-1;1;1,234;KWD;10;2026-11-11 20:14;\r\n";
    let utf16: Vec<u8> = orders.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let flags = [
        "--amounts",
        "decimal-comma",
        "--timezone",
        "Asia/Shanghai",
        "--map",
        "order_no=order_id",
        "--status-map",
        "orders.10=PAID",
    ];
    for (name, bytes) in [("utf-8", orders.as_bytes()), ("utf-16", &utf16)] {
        let dir = folder(site, name, bytes);
        site.run(&[&["import", &dir][..], &flags].concat()).ends(0);
    }
    assert_eq!(site.column("SELECT amount_minor FROM orders ORDER BY order_id"), ["123456", "1234", "1234"]);
    let at = crate::common::time("2026-11-11T20:14:00+08:00").micros().to_string();
    assert_eq!(site.column("SELECT created_at_us FROM orders WHERE order_id = 'O-1'"), [at]);
    assert_eq!(site.column("SELECT item FROM orders WHERE order_id = 'O-1'"), ["前排\n1 座"]);
    let gb18030 = b"O-4,U-1,\xb1\xb1\xbe\xa9,1,1,CNY,PAID,2026-03-03T09:00:01Z\n";
    let dir = folder(site, "gb18030", &[ORDERS.as_bytes(), b"\n", &gb18030[..]].concat());
    site.run(&["import", &dir, "--encoding", "gb18030"]).ends(0);
    assert_eq!(site.column("SELECT show_id FROM orders WHERE order_id = 'O-4'"), ["北京"]);
}

fn a_file_may_be_a_pipe(site: &Site) {
    let dir = folder(site, "piped", format!("{ORDERS}\n{ORDER}\n").as_bytes());
    let pipe = site.path("orders.pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let orders = fs::read(format!("{dir}/orders.csv")).unwrap();
    let writer = std::thread::spawn({
        let pipe = pipe.clone();
        move || fs::write(pipe, orders).unwrap()
    });
    let file = |name: &str| format!("{dir}/{name}.csv");
    let [payments, inventory, messages] = ["payments", "inventory", "messages"].map(file);
    let ran = site.run(&[
        "import",
        "--orders",
        &text(&pipe),
        "--payments",
        &payments,
        "--inventory",
        &inventory,
        "--messages",
        &messages,
    ]);
    writer.join().unwrap();
    ran.ends(0).prints("orders 1 0");
    assert_eq!(site.order("O-1"), "PAID");
}

fn blanks_and_unknown_columns_are_noted(site: &Site) {
    let orders = format!("{ORDERS},colour\n{},red\n", ORDER.replace("U-1", " U-1"));
    let dir = folder(site, "padded", orders.as_bytes());
    site.run(&["import", &dir]).ends(0).warns("colour").warns("--trim-ids");
    assert_eq!(site.column("SELECT user_id FROM orders"), [" U-1"]);
    let ran = site.run(&["import", &dir, "--quiet"]).ends(0);
    assert_eq!(ran.stderr, "", "{ran}");
    let rounded = ORDER.replace("O-1", "1234567890123450000");
    let dir = folder(site, "rounded", format!("{ORDERS}\n{rounded}\n").as_bytes());
    site.run(&["import", &dir, "--accept-ids"]).ends(0);
    assert_eq!(site.order("1234567890123450000"), "PAID");
    site.files(&Book::new().ledgers);
    site.provider(&[("P-1", "explode")]);
    let file = text(&site.path("ledgers"));
    site.run(&["import", &file])
        .fails(2, &["provider.csv: line 2, column behaviour", "explode", "lose-answer"]);
    site.provider(&[("P-1", "ok"), ("P-2", "ok"), ("P-1", "ok")]);
    site.run(&["import", &file])
        .fails(2, &["provider.csv: line 4, column charge", "the charge of line 2 again"]);
    site.provider(&[("P-1", "ok")]);
    let csv = std::fs::read_to_string(site.path("ledgers/provider.csv")).unwrap();
    std::fs::write(site.path("ledgers/provider.csv"), csv.replace("CAPTURED", "REFUNDED")).unwrap();
    site.run(&["import", &file]).fails(2, &["provider.csv: line 2, column refunded_minor", "0 of 1000"]);
    let twice = ["--status-map", "orders.10=PAID", "--status-map", "orders.10=CANCELLED"];
    site.run(&[&["import", &file][..], &twice].concat())
        .fails(2, &["--status-map says both orders.10=PAID and orders.10=CANCELLED"]);
}
