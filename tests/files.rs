//! Files as they really come: what is read, what is refused and how it is told.

use std::fs;
use std::path::{Path, PathBuf};

use onefold::core::ledger::{Ledgers, Portions, Rows};
use onefold::core::status::{Ledger, OrderStatus, PaymentStatus};
use onefold::error::{Error, Exit};
use onefold::files::{self, Faults, Kind, LedgerFiles, Need, Note, ReadOptions};

const ORDER_HEADER: &str = "order_id,user_id,show_id,quantity,amount_minor,currency,status,created_at";
const ORDER: &str = "O-1,U-1,SH-1,1,12000,EUR,PAID,2026-03-03T09:00:01Z";

type Outcome = Result<(Ledgers, Vec<Note>), Faults>;

fn read(dir: &Path, options: &ReadOptions) -> Outcome {
    files::read(&LedgerFiles::in_dir(dir).unwrap(), options, &mut |_, _, _| {})
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)
}

/// Options as their flags have them.
fn options(flags: &[(&str, &str)]) -> ReadOptions {
    let mut options = ReadOptions::default();
    for (flag, text) in flags {
        match *flag {
            "encoding" => options.encoding = text.parse().unwrap(),
            "timezone" => options.timezone = Some(text.parse().unwrap()),
            "amounts" => options.amounts = text.parse().unwrap(),
            "trim-ids" => options.trim_ids = true,
            "accept-ids" => options.accept_ids = true,
            "map" => options.map.push(text.parse().unwrap()),
            "status-map" => options.status_map.push(text.parse().unwrap()),
            _ => panic!("no flag {flag}"),
        }
    }
    options
}

/// A folder whose files have only headers, but for those given.
fn folder(given: &[(Ledger, &[u8])]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    files::write(dir.path(), &Ledgers::default()).unwrap();
    for (ledger, bytes) in given {
        fs::write(dir.path().join(format!("{ledger}.csv")), bytes).unwrap();
    }
    dir
}

fn orders(text: impl AsRef<[u8]>, flags: &[(&str, &str)]) -> Outcome {
    read(folder(&[(Ledger::Orders, text.as_ref())]).path(), &options(flags))
}

/// The listed faults as a person reads them, without the folder.
fn listed(outcome: Outcome) -> Vec<String> {
    let faults = outcome.expect_err("something is refused");
    let line = |fault: &files::Fault| {
        let text = fault.to_string();
        let at = fault.file.rfind('/').map_or(0, |slash| slash + 1);
        text[at..].to_owned()
    };
    faults.iter().map(line).collect()
}

fn hints(outcome: Outcome) -> String {
    Error::from(outcome.expect_err("something is refused")).hint.unwrap_or_default()
}

fn notes(outcome: &Outcome) -> Vec<&str> {
    let (_, notes) = outcome.as_ref().unwrap_or_else(|faults| panic!("{faults}"));
    notes.iter().map(|note| note.text.as_str()).collect()
}

fn loaded(outcome: Outcome) -> Ledgers {
    outcome.unwrap_or_else(|faults| panic!("{faults}")).0
}

/// One order with a column's cell replaced.
fn order_with(column: &str, cell: &str) -> String {
    let cells = ORDER_HEADER.split(',').zip(ORDER.split(','));
    let cells: Vec<_> = cells.map(|(name, text)| if name == column { cell } else { text }).collect();
    format!("{ORDER_HEADER}\n{}\n", cells.join(","))
}

/// Every folder below one that holds ledgers.
fn ledger_folders(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.join("orders.csv").is_file() {
            found.push(path);
        } else if path.is_dir() {
            found.extend(ledger_folders(&path));
        }
    }
    found
}

#[test]
fn every_case_loads_and_comes_back_the_same_after_writing() {
    let folders = ledger_folders(&fixture("cases"));
    assert!(folders.len() > 50, "{} folders", folders.len());
    for folder in folders {
        let ledgers = loaded(read(&folder, &ReadOptions::default()));
        assert!(!ledgers.is_empty());
        let copy = tempfile::tempdir().unwrap();
        files::write(copy.path(), &ledgers).unwrap();
        let again = read(copy.path(), &ReadOptions::default());
        let odd: Vec<_> = notes(&again).into_iter().filter(|text| !text.contains("blanks around")).collect();
        assert!(odd.is_empty(), "{odd:?}");
        assert_eq!(loaded(again), ledgers, "{}", folder.display());
    }
}

// Rows that are not kept

fn checked(dir: &Path, options: &ReadOptions) -> Result<(files::Checked, Vec<Note>), Faults> {
    files::check(LedgerFiles::in_dir(dir).unwrap(), options.clone(), &mut |_, _, _| {})
}

/// The rows of the four ledgers, as they are read again.
fn again(rows: &dyn Rows) -> onefold::error::Result<Ledgers> {
    fn of<R>(portions: Portions<'_, R>) -> onefold::error::Result<Vec<R>> {
        Ok(portions.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
    }
    Ok(Ledgers {
        orders: of(rows.orders())?,
        payments: of(rows.payments())?,
        inventory: of(rows.inventory())?,
        messages: of(rows.messages())?,
    })
}

#[test]
fn files_that_were_checked_give_the_same_rows_each_time_they_are_read() {
    let mut folders = ledger_folders(&fixture("cases"));
    folders.push(fixture("files/excel-utf16-tabs"));
    for folder in folders {
        let (mut kept, notes) = read(&folder, &ReadOptions::default()).unwrap();
        kept.orders.sort_by_key(|order| order.order_id.clone());
        kept.payments.sort_by_key(|payment| payment.payment_id.clone());
        kept.inventory.sort_by_key(|hold| hold.hold_id.clone());
        kept.messages.sort_by_key(|message| message.message_id.clone());
        let (rows, told) = checked(&folder, &ReadOptions::default()).unwrap();
        assert_eq!(told, notes);
        for ledger in Ledger::ALL {
            assert_eq!(rows.count(ledger), kept.count(ledger), "{ledger}");
        }
        for _ in 0..2 {
            let mut read = again(&rows).unwrap();
            read.orders.sort_by_key(|order| order.order_id.clone());
            read.payments.sort_by_key(|payment| payment.payment_id.clone());
            read.inventory.sort_by_key(|hold| hold.hold_id.clone());
            read.messages.sort_by_key(|message| message.message_id.clone());
            assert_eq!(read, kept, "{}", folder.display());
        }
    }
}

#[test]
fn a_check_tells_every_fault_that_reading_tells() {
    let text = format!("{ORDER_HEADER}\n{ORDER}\n{ORDER}\nO-2,U-1,SH-1,0,1,CNY,PAID,never\n");
    let dir = folder(&[(Ledger::Orders, text.as_bytes())]);
    let refused = checked(dir.path(), &options(&[])).unwrap_err();
    assert_eq!(refused.count(), 3, "{refused}");
    assert_eq!(refused, read(dir.path(), &options(&[])).unwrap_err());
}

#[test]
fn a_file_that_changes_after_it_was_checked_is_told() {
    let text = format!("{ORDER_HEADER}\n{ORDER}\n");
    let changes = [
        ("a row more", format!("{text}{}\n", ORDER.replace("O-1", "O-2"))),
        ("a row less", format!("{ORDER_HEADER}\n")),
        ("a fault", text.replace("PAID", "LOST")),
        ("no file", String::new()),
    ];
    for (what, changed) in changes {
        let dir = folder(&[(Ledger::Orders, text.as_bytes())]);
        let (rows, _) = checked(dir.path(), &options(&[])).unwrap();
        assert_eq!(again(&rows).unwrap().orders.len(), 1);
        let file = dir.path().join("orders.csv");
        match what {
            "no file" => fs::remove_file(&file).unwrap(),
            _ => fs::write(&file, changed).unwrap(),
        }
        let error = again(&rows).expect_err(what);
        assert!(error.message.contains("orders.csv has changed since it was checked"), "{what}: {error}");
    }
}

// Encodings

#[test]
fn a_spreadsheets_utf16_with_tabs_is_read_and_told() {
    let outcome = read(&fixture("files/excel-utf16-tabs"), &options(&[]));
    let notes = notes(&outcome).join("\n");
    assert!(notes.contains("read as utf-16le, by its byte order mark"), "{notes}");
    assert!(notes.contains("cells are separated by tabs"), "{notes}");
    assert!(notes.contains("unknown columns are ignored: \"note\""), "{notes}");
    let ledgers = loaded(outcome);
    assert_eq!(ledgers.orders[1].order_id.as_str(), "DD-20261111-0002");
    assert_eq!(ledgers.orders[1].user_id.as_str(), "用户-7");
    assert_eq!(ledgers.orders[1].tenant_id.as_str(), "default");
    assert_eq!(ledgers.orders[1].version.as_str(), "1");
    assert_eq!(ledgers.orders[1].created_at.to_string(), "2026-11-11T12:14:07Z");
    assert_eq!(ledgers.payments[0].provider, "银联");
    assert_eq!(ledgers.payments[0].refunded_minor, 0);
}

#[test]
fn gb18030_is_read_where_it_is_said_and_refused_where_it_is_not() {
    let dir = fixture("files/gb18030-chinese");
    let refused = read(&dir, &options(&[]));
    let error = Error::from(refused.clone().unwrap_err());
    assert_eq!(error.exit, Exit::Usage);
    assert!(error.hint.unwrap().contains("--encoding gb18030"));
    assert_eq!(
        listed(refused)[0],
        "orders.csv:1: \"\\xB6\": not valid UTF-8; the rest of the file was not read"
    );

    let flags = [
        ("encoding", "gb18030"),
        ("timezone", "Asia/Shanghai"),
        ("map", "订单号=order_id"),
        ("status-map", "orders.已支付=PAID"),
        ("status-map", "orders.待支付=PENDING_PAYMENT"),
        ("status-map", "payments.成功=CAPTURED"),
    ];
    let outcome = read(&dir, &options(&flags));
    assert!(notes(&outcome).contains(&"read as gb18030, by --encoding"));
    let ledgers = loaded(outcome);
    assert_eq!(ledgers.orders[0].status, OrderStatus::Paid);
    assert_eq!(ledgers.orders[0].show_id.as_str(), "演出一");
    assert_eq!(ledgers.orders[0].created_at.to_string(), "2026-11-11T12:14:05Z");
    assert_eq!(ledgers.payments[0].order_id.as_ref().unwrap().as_str(), "DD-1");
    assert_eq!(ledgers.payments[0].status, PaymentStatus::Captured);
}

#[test]
fn bytes_that_are_not_utf8_are_named_with_line_and_column() {
    let text = [ORDER_HEADER, "\r\n", ORDER, "\r\nO-2,"].concat();
    let bytes = [text.as_bytes(), b"\xd3\xc3,SH-1,1,1,EUR,PAID,2026-03-03T09:00:01Z\r\n"].concat();
    assert_eq!(
        listed(orders(&bytes, &[])),
        [
            "orders.csv:3: column user_id (2), value \"\\xD3\": not valid UTF-8; the rest of the file was not read"
        ]
    );
    let gb18030 = [ORDER_HEADER.as_bytes(), b"\nO-1,\xff"].concat();
    assert_eq!(
        listed(orders(&gb18030, &[("encoding", "gb18030")])),
        ["orders.csv:2: \"\\xFF\": not valid gb18030; the rest of the file was not read"]
    );
}

#[test]
fn utf16_without_a_byte_order_mark_is_refused_until_it_is_named() {
    let text = format!("{ORDER_HEADER}\n{ORDER}\n");
    let utf16: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
    assert_eq!(listed(orders(&utf16, &[])), ["orders.csv: looks like UTF-16 without a byte order mark"]);
    assert_eq!(hints(orders(&utf16, &[])), "--encoding utf-16be");
    let dir = folder(&[(Ledger::Orders, &utf16)]);
    let named = files::read(
        &LedgerFiles::in_dir(dir.path()).unwrap(),
        &options(&[("encoding", "utf-16be")]),
        &mut |_, _, _| {},
    );
    // The other three files are UTF-8 and not what the flag says.
    assert!(named.unwrap_err().iter().all(|fault| !fault.file.ends_with("orders.csv")));
}

#[test]
fn plain_utf8_is_not_worth_a_note_and_a_byte_order_mark_is() {
    let text = "\u{feff}".to_owned() + ORDER_HEADER + "\n" + ORDER;
    let outcome = orders(&text, &[]);
    assert!(notes(&outcome).contains(&"read as utf-8, by its byte order mark"), "{outcome:?}");
    assert_eq!(loaded(outcome).orders.len(), 1);
    let written = folder(&[]);
    assert_eq!(notes(&read(written.path(), &options(&[]))), [""; 0]);
}

// The shape of a file

#[test]
fn semicolons_decimal_commas_and_blanks_around_values_are_read() {
    let dir = fixture("files/semicolons-decimal-comma");
    let outcome = read(&dir, &options(&[("amounts", "decimal-comma"), ("timezone", "UTC")]));
    assert!(notes(&outcome).contains(&"cells are separated by semicolons"));
    let ledgers = loaded(outcome);
    let amounts: Vec<_> = ledgers.orders.iter().map(|order| order.amount_minor).collect();
    assert_eq!(amounts, [101_250, 101_250, 9_800, 4_125], "EUR has 2 decimals, JPY 0, KWD 3");
    assert_eq!(ledgers.orders[0].quantity, 2);
    assert_eq!((ledgers.payments[0].amount_minor, ledgers.payments[0].refunded_minor), (101_250, 1_250));

    let refused = listed(read(&dir, &options(&[("timezone", "UTC")])));
    assert_eq!(
        refused[0],
        "orders.csv:2: column amount_minor (5), value \"1.012,50\": a decimal or thousands mark in an amount of minor units"
    );
}

#[test]
fn lines_are_physical_whatever_stands_in_quotes() {
    let text = format!(
        "{ORDER_HEADER},note\r\n{ORDER},\"two\nlines\"\r\n\r\nO-2,U-1,SH-1,0,1,EUR,PAID,2026-03-03T09:00:01Z,\r\n"
    );
    assert_eq!(
        listed(orders(text, &[])),
        ["orders.csv:5: column quantity (4), value \"0\": must be at least 1"]
    );
}

#[test]
fn rows_of_another_length_open_quotes_and_text_behind_them_are_refused() {
    let text = format!(
        "{ORDER_HEADER}\nO-1,U-1\n{ORDER},more\nO-3,\"U\"-1,SH-1,1,1,EUR,PAID,\n\"O-4,U-1\n{ORDER}\n"
    );
    assert_eq!(
        listed(orders(text, &[])),
        [
            "orders.csv:2: \"O-1,U-1\": 2 cells, but the header has 8",
            "orders.csv:3: \"O-1,U-1,SH-1,1,12000,EUR,PAID,2026-03-03T09:00:01Z,more\": 9 cells, but the header has 8",
            "orders.csv:4: column user_id (2), value \"U\": text after the closing quotation mark",
            "orders.csv:5: column order_id (1): a quotation mark that is never closed",
        ]
    );
}

#[test]
fn an_empty_file_is_refused_and_a_header_alone_is_a_ledger_without_rows() {
    for empty in ["", "\n\r\n", "\u{feff}"] {
        assert_eq!(listed(orders(empty, &[])), ["orders.csv: the file is empty: it has not even a header"]);
    }
    assert!(loaded(orders(ORDER_HEADER, &[])).is_empty());
}

#[test]
fn missing_repeated_and_unknown_columns_are_named() {
    let text = "order_no,user_id,user_id,quantity,amount_minor,currency,status,created_at,?\n";
    let outcome = orders(text, &[]);
    assert_eq!(
        listed(outcome.clone()),
        [
            "orders.csv:1: column order_id: the header has no such column, and it is required",
            "orders.csv:1: column show_id: the header has no such column, and it is required",
            "orders.csv:1: column user_id (3): user_id stands in the header twice, also as column 2",
        ]
    );
    assert!(hints(outcome).contains("--map THEIRS=order_id where THEIRS is one of \"order_no\", \"?\""));
}

#[test]
fn headers_come_in_any_order_with_blanks_and_under_other_names() {
    let text = " status , created_at,order_no,user_id,show_id,quantity,amount_minor, currency \n\
                PAID,2026-03-03T09:00:01Z,O-1,U-1,SH-1,1,5,EUR\n";
    for map in ["order_no=order_id", "orders.order_no=order_id"] {
        let ledgers = loaded(orders(text, &[("map", map)]));
        assert_eq!(ledgers.orders[0].order_id.as_str(), "O-1", "{map}");
    }
}

#[test]
fn a_declared_delimiter_is_believed_and_its_line_counted() {
    let text = format!("sep=;\r\n{}\r\n{}", ORDER_HEADER.replace(',', ";"), ORDER.replace(',', ";"));
    assert_eq!(loaded(orders(&text, &[])).orders.len(), 1);
    let refused = listed(orders(text.replace("PAID", "paid"), &[]));
    assert!(refused[0].starts_with("orders.csv:3: column status (7), value \"paid\""), "{refused:?}");
}

#[test]
fn of_two_maps_the_one_that_names_the_ledger_counts() {
    let header = ORDER_HEADER.replace("order_id", "id");
    let payments = "id,user_id,show_id,amount_minor,currency,provider,status,created_at\n";
    let dir = folder(&[(Ledger::Orders, header.as_bytes()), (Ledger::Payments, payments.as_bytes())]);
    let maps = [("map", "id=order_id"), ("map", "payments.id=payment_id")];
    assert!(loaded(read(dir.path(), &options(&maps))).is_empty());
}

#[test]
fn a_map_must_name_a_column_that_is_there_and_one_of_ours() {
    let text = format!("{ORDER_HEADER}\n{ORDER}\n");
    assert_eq!(
        listed(orders(&text, &[("map", "order_no=order_id")])),
        ["--map: \"order_no=order_id\": no column \"order_no\" in any file of a ledger with order_id"]
    );
    let qualified = listed(orders(&text, &[("map", "payments.pay_no=payment_id")]));
    assert!(qualified[0].contains("no column \"pay_no\" in /") && qualified[0].ends_with("payments.csv"));
    let twice = [("map", "user_id=user_id"), ("map", "user_id=session_id")];
    assert_eq!(
        listed(orders(&text, &twice)),
        ["--map: \"user_id=session_id\": \"user_id\" is already renamed by user_id=user_id"]
    );
    for (map, why) in [
        ("order_no=order_number", "no ledger has a column \"order_number\""),
        ("orders.x=payment_id", "orders has no column \"payment_id\""),
        ("order_no", "is not THEIRS=OURS"),
        ("=order_id", "is not THEIRS=OURS"),
    ] {
        let error = map.parse::<files::ColumnMap>().unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn a_status_map_must_name_a_ledger_and_one_of_its_statuses() {
    for (map, why) in [
        ("settled=PAID", "names no ledger; write for example orders.settled=PAID"),
        ("orders.settled=CAPTURED", "orders has no status \"CAPTURED\"; it has PENDING_PAYMENT"),
    ] {
        let error = map.parse::<files::StatusMap>().unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn a_folder_that_lacks_files_says_which() {
    let dir = folder(&[]);
    fs::remove_file(dir.path().join("payments.csv")).unwrap();
    fs::remove_file(dir.path().join("messages.csv")).unwrap();
    let error = LedgerFiles::in_dir(dir.path()).unwrap_err();
    assert!(error.message.ends_with("lacks payments.csv, messages.csv"), "{error}");
    assert!(error.hint.unwrap().contains("header line"));
    assert!(LedgerFiles::in_dir(&dir.path().join("none")).unwrap_err().message.starts_with("no folder"));
}

// Ids

#[test]
fn blanks_around_an_id_are_kept_and_told_or_dropped_when_asked() {
    let dir = fixture("files/padded-ids");
    let kept = read(&dir, &options(&[]));
    let blank = "cells of nothing but blanks in session_id: 1, first \"          \" on line 3; read as empty";
    assert!(notes(&kept).contains(&blank), "{:?}", notes(&kept));
    assert!(
        notes(&kept).contains(
            &"values with blanks around them in order_id: 2, first \"O-1       \" on line 2; kept; --trim-ids drops them"
        ),
        "{:?}",
        notes(&kept)
    );
    let ledgers = loaded(kept);
    assert_eq!(ledgers.orders[0].order_id.as_str(), "O-1       ");
    assert_eq!(ledgers.orders[1].session_id, None);
    assert_eq!(ledgers.orders[0].status, OrderStatus::Paid);

    let ledgers = loaded(read(&dir, &options(&[("trim-ids", "")])));
    assert_eq!(ledgers.orders[0].order_id.as_str(), "O-1");
    assert_eq!(Some(&ledgers.orders[0].order_id), ledgers.payments[0].order_id.as_ref());
}

#[test]
fn an_id_in_scientific_notation_is_never_accepted() {
    for flags in [&[][..], &[("accept-ids", "")]] {
        let refused = listed(read(&fixture("files/scientific-ids"), &options(flags)));
        assert_eq!(
            refused,
            [
                "orders.csv:2: column order_id (1), value \"2.02611E+14\": an id in scientific notation: its digits are lost",
                "orders.csv:3: column order_id (1), value \"2.02611E+14\": an id in scientific notation: its digits are lost",
                "payments.csv:2: column order_id (2), value \"2.02611E+14\": an id in scientific notation: its digits are lost",
                "payments.csv:2: column provider_txn_id (8), value \"4,2E+27\": an id in scientific notation: its digits are lost",
            ]
        );
    }
}

#[test]
fn rounded_ids_need_to_be_accepted() {
    let dir = fixture("files/rounded-ids");
    let refused = read(&dir, &options(&[]));
    assert_eq!(
        listed(refused.clone())[0],
        "orders.csv:2: column order_id (1), value \"202611112014123000\": \
         15 significant digits followed by zeros: a spreadsheet rounds long numbers to this"
    );
    assert!(hints(refused).contains("--accept-ids"));
    let accepted = read(&dir, &options(&[("accept-ids", "")]));
    let told = "odd ids in order_id: 2, first \"202611112014123000\" on line 2; taken as they are";
    assert!(notes(&accepted).contains(&told));
    assert_eq!(loaded(accepted).orders[0].order_id.as_str(), "202611112014123000");
}

#[test]
fn a_text_that_reads_like_null_is_no_id_until_it_is_accepted() {
    let text = order_with("user_id", "NULL");
    assert_eq!(
        listed(orders(&text, &[])),
        ["orders.csv:2: column user_id (2), value \"NULL\": reads like null, but only an empty cell is null"]
    );
    assert_eq!(loaded(orders(&text, &[("accept-ids", "")])).orders[0].user_id.as_str(), "NULL");
}

#[test]
fn a_duplicate_id_names_the_line_of_the_first_in_its_tenant() {
    let row = |id: &str, tenant: &str| format!("{id},{tenant},U-1,SH-1,1,1,EUR,PAID,2026-03-03T09:00:01Z\n");
    let header = ORDER_HEADER.replace("order_id,", "order_id,tenant_id,");
    let rows = [row("O-1", "a"), row("O-1", "b"), row("O-2", "a"), row("O-1", "a"), row("O-1", "a")].concat();
    // A row that is refused for another reason counts as well.
    let refused = row("O-2", "a").replace("EUR", "euro");
    assert_eq!(
        listed(orders(format!("{header}\n{rows}{refused}"), &[])),
        [
            "orders.csv:5: column order_id (1), value \"O-1\": the id of line 2 again",
            "orders.csv:6: column order_id (1), value \"O-1\": the id of line 2 again",
            "orders.csv:7: column order_id (1), value \"O-2\": the id of line 4 again",
            "orders.csv:7: column currency (7), value \"euro\": not an ISO 4217 currency code, such as CNY",
        ]
    );
}

// Numbers, times, statuses

#[test]
fn each_cell_that_is_refused_is_named_with_its_value() {
    let status = "no status of an order; known are PENDING_PAYMENT, PAID, TICKETED, CANCELLING, CANCELLED, REFUNDING, REFUNDED";
    for (column, number, cell, problem) in [
        ("order_id", 1, "", "required, but empty"),
        ("order_id", 1, "  ", "required, but only blanks"),
        ("user_id", 2, "U\0", "a NUL character"),
        ("quantity", 4, "-2", "negative"),
        ("quantity", 4, "2.5", "not a whole number"),
        ("quantity", 4, "99999999999999999999", "too large: a number is at most 9223372036854775807"),
        ("amount_minor", 5, "-1", "negative"),
        ("amount_minor", 5, "12O0", "not a whole number of minor units"),
        ("amount_minor", 5, "1 200", "a decimal or thousands mark in an amount of minor units"),
        (
            "amount_minor",
            5,
            "9223372036854775808",
            "too large: an amount is at most 9223372036854775807 minor units",
        ),
        ("currency", 6, "RMB", "not an ISO 4217 currency code, such as CNY"),
        ("status", 7, "已支付", status),
        ("created_at", 8, "2026-02-30T00:00:00Z", "there is no such day or time of day"),
        ("created_at", 8, "11/11/2026 20:14", "not a time such as 2026-11-11T20:14:00+08:00"),
    ] {
        let shown = cell.replace('\0', "\\u{0}");
        assert_eq!(
            listed(orders(order_with(column, cell), &[])),
            [format!("orders.csv:2: column {column} ({number}), value \"{shown}\": {problem}")]
        );
    }
    assert!(hints(orders(order_with("status", "已支付"), &[])).contains("--status-map orders.\"已支付\"=…"));
}

#[test]
fn amounts_are_read_as_is_said_and_never_rounded() {
    let amount = |cell: &str, amounts: &str| {
        let outcome = orders(order_with("amount_minor", cell), &[("amounts", amounts)]);
        outcome.map(|(ledgers, _)| ledgers.orders[0].amount_minor)
    };
    assert_eq!(amount("12000", "minor"), Ok(12000));
    assert_eq!(amount(" 120.5 ", "decimal"), Ok(12050));
    assert_eq!(amount("\"1,012.50\"", "decimal"), Ok(101_250));
    assert_eq!(amount("1.012", "decimal-comma"), Ok(101_200));
    let refused = listed(orders(order_with("amount_minor", "12.345"), &[("amounts", "decimal")]));
    assert_eq!(
        refused,
        ["orders.csv:2: column amount_minor (5), value \"12.345\": 3 decimals, but EUR has 2"]
    );
    // Where the currency is at fault, that is what is told.
    let text = order_with("amount_minor", "1.5").replace("EUR", "EURO");
    assert_eq!(listed(orders(text, &[("amounts", "decimal")])).len(), 1);
}

#[test]
fn a_time_without_an_offset_needs_a_zone() {
    let dir = fixture("files/no-offset");
    let refused = read(&dir, &options(&[]));
    assert_eq!(
        listed(refused.clone()),
        [
            "orders.csv:2: column created_at (8), value \"2026-11-11 20:14\": a time without an offset from UTC",
            "orders.csv:3: column created_at (8), value \"2026-11-11T20:14:07.25\": a time without an offset from UTC",
        ]
    );
    assert!(hints(refused).contains("--timezone"));
    let ledgers = loaded(read(&dir, &options(&[("timezone", "Asia/Shanghai")])));
    assert_eq!(ledgers.orders[1].created_at.to_string(), "2026-11-11T12:14:07.250Z");
}

#[test]
fn a_local_time_that_came_twice_or_never_is_refused() {
    let refused = listed(read(&fixture("files/clock-change"), &options(&[("timezone", "Europe/Berlin")])));
    assert_eq!(
        refused,
        [
            "orders.csv:3: column created_at (8), value \"2026-10-25 02:00:03\": this time came twice in Europe/Berlin, \
             when the clocks were set back: it is 2026-10-25T00:00:03Z or 2026-10-25T01:00:03Z",
            "orders.csv:4: column created_at (8), value \"2026-03-29 02:30:00\": there was no such time in Europe/Berlin: \
             the clocks were set forward over it",
        ]
    );
}

// Reports

#[test]
fn all_faults_are_counted_the_first_of_each_file_are_listed_and_nothing_is_loaded() {
    let bad = |n: i32| format!("O-{n},U-1,SH-1,1,1,euro,PAID,2026-03-03T09:00:01Z\n");
    let many = format!("{ORDER_HEADER}\n{}", (0..70).map(bad).collect::<String>());
    let dir = folder(&[(Ledger::Orders, many.as_bytes()), (Ledger::Messages, b"message_id\n")]);
    let faults = read(dir.path(), &options(&[])).unwrap_err();
    assert_eq!(faults.count(), 70 + 3);
    assert_eq!(faults.files[0].first.len(), files::LISTED);
    assert_eq!(faults.files[1].ledger, Some(Ledger::Messages));
    let json = serde_json::to_value(&faults).unwrap();
    assert_eq!(json["files"][0]["count"], 70);
    assert_eq!(json["files"][0]["first"][0]["line"], 2);
    assert_eq!(json["files"][0]["first"][0]["column"], "currency");
    let error = Error::from(faults);
    assert_eq!(error.exit, Exit::Usage);
    assert!(error.message.starts_with("73 faults in the files; nothing was loaded\n"), "{error}");
    assert!(error.message.contains("orders.csv: and 20 more, 70 in all"), "{error}");
}

#[test]
fn a_value_is_shown_without_control_characters_and_cut() {
    let text = order_with("currency", &format!("\u{1b}[31m\u{202e}{}", "x".repeat(500)));
    let shown = listed(orders(text, &[])).concat();
    assert!(shown.contains(r#"value "\u{1b}[31m\u{202e}xxx"#), "{shown}");
    assert!(shown.contains("x…\": not an ISO 4217"), "{shown}");
    assert!(!shown.contains('\u{1b}') && shown.chars().count() < 200, "{shown}");
}

#[test]
fn progress_ends_at_the_size_of_each_file() {
    let dir = fixture("cases/01-double-click-both-paid");
    let files = LedgerFiles::in_dir(&dir).unwrap();
    let mut last = Vec::new();
    files::read(&files, &ReadOptions::default(), &mut |ledger, bytes, rows| last.push((ledger, bytes, rows)))
        .unwrap();
    last.sort_unstable();
    let sizes = Ledger::ALL.map(|ledger| fs::metadata(files.path(ledger)).unwrap().len());
    assert_eq!(last.iter().map(|(_, bytes, _)| *bytes).collect::<Vec<_>>(), sizes);
    assert_eq!(last[0].2, 2);
}

/// The table says what may be empty, the types of the core hold it: they must agree.
#[test]
fn every_column_takes_what_the_table_says() {
    let dir = fixture("cases/01-double-click-both-paid");
    for ledger in Ledger::ALL {
        let text = fs::read_to_string(dir.join(format!("{ledger}.csv"))).unwrap();
        let mut lines = text.lines();
        let header: Vec<&str> = lines.next().unwrap().split(',').collect();
        let row: Vec<&str> = lines.next().unwrap().split(',').collect();
        let columns = files::columns(ledger);
        assert_eq!(columns.iter().map(|c| c.name).collect::<Vec<_>>(), header);
        for (index, column) in columns.iter().enumerate() {
            let mut cells = row.clone();
            cells[index] = "";
            let text = format!("{}\n{}\n", header.join(","), cells.join(","));
            let outcome = read(folder(&[(ledger, text.as_bytes())]).path(), &options(&[]));
            match column.need {
                Need::Required => assert_eq!(outcome.unwrap_err().count(), 1, "{ledger} {}", column.name),
                Need::Nullable | Need::Default(_) => {
                    assert_eq!(loaded(outcome).len(), 1, "{ledger} {}", column.name);
                }
            }
            if column.name.ends_with("_id") || column.name.ends_with("_key") {
                assert_eq!(column.kind, Kind::Id, "{}", column.name);
            }
        }
    }
}

/// Whatever the bytes, an answer and no panic; and what is accepted is written and read alike.
#[test]
fn damaged_files_are_answered() {
    let dir = fixture("files/excel-utf16-tabs");
    let case = fixture("cases/random/410003");
    let seeds = [
        fs::read(dir.join("orders.csv")).unwrap(),
        fs::read(case.join("orders.csv")).unwrap(),
        fs::read(fixture("files/gb18030-chinese/orders.csv")).unwrap(),
    ];
    let flags = [&[][..], &[("encoding", "gb18030"), ("timezone", "Europe/Berlin"), ("amounts", "decimal")]];
    let folder = folder(&[]);
    let mut state = 2014_u64;
    let mut random = |below: usize| {
        // xorshift: the same damage on every run.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    const HARD: &[u8] = b"\"\",;\t\r\n\0\xff\xfe\xef\xbb\xbf\x80\x81\xd6 -+.E9'";
    let mut accepted = 0;
    for round in 0..4000 {
        let mut bytes = seeds[round % seeds.len()].clone();
        for _ in 0..=random(6) {
            let at = random(bytes.len().max(1)).min(bytes.len().saturating_sub(1));
            match random(4) {
                0 => bytes.truncate(at),
                1 if !bytes.is_empty() => bytes[at] = random(256) as u8,
                2 => bytes.insert(at, HARD[random(HARD.len())]),
                _ => drop(bytes.drain(at..(at + random(9)).min(bytes.len()))),
            }
        }
        fs::write(folder.path().join("orders.csv"), &bytes).unwrap();
        match read(folder.path(), &options(flags[round / 3 % 2])) {
            Ok((ledgers, _)) => {
                accepted += 1;
                let copy = tempfile::tempdir().unwrap();
                files::write(copy.path(), &ledgers).unwrap();
                assert_eq!(
                    loaded(read(copy.path(), &options(&[("accept-ids", "")]))),
                    ledgers,
                    "round {round}"
                );
            }
            Err(faults) => assert!(faults.count() > 0 && !Error::from(faults).message.is_empty()),
        }
    }
    assert!(accepted > 100, "only {accepted} damaged files were accepted: the test tests little");
}
