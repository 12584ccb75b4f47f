//! `onefold reconcile --statement`

use crate::common::book::Book;
use crate::common::site::{Site, text};
use crate::on_each_database;

on_each_database![
    names_what_only_one_side_knows_and_changes_nothing,
    what_is_not_compared_is_told_and_an_empty_statement_is_refused,
    bad_input_is_named_with_its_place,
];

fn statement(site: &Site, csv: &str) -> String {
    let path = site.path("settled.csv");
    std::fs::write(&path, csv).unwrap();
    text(&path)
}

fn charges(site: &Site) {
    let mut book = Book::new();
    for (order, charge, status, refunded) in [
        ("A", "ch_1", "CAPTURED", 0),
        ("B", "ch_2", "REFUNDED", 1000),
        ("C", "ch_3", "CAPTURED", 0),
        ("D", "ch_4", "CAPTURED", 0),
    ] {
        book.order(order, 0, "PAID");
        let row = book.payment(&format!("P-{order}"), order, 0, status);
        (row.provider_txn_id, row.refunded_minor) = (Some(charge.to_owned()), refunded);
    }
    site.import(&book.ledgers);
}

const MAP: [&str; 4] =
    ["--amounts", "decimal", "--map", "charge=Reference,amount=Gross,currency=Cur,type=Type,time=At"];

fn names_what_only_one_side_knows_and_changes_nothing(site: &Site) {
    charges(site);
    let before = site.ledgers();
    let at = "2026-09-21T14:13:20Z";
    let fits = format!(
        "Type;Reference;Gross;Cur;At\n\
         Charge;ch_1;10.00;CNY;{at}\nPayment;ch_2;10.00;CNY;{at}\nrefund;ch_2;-10.00;CNY;{at}\n\
         charge;ch_3;10.00;CNY;{at}\ncharge;ch_4;10.00;CNY;{at}\nPayout;;-99.00;;\n"
    );
    let file = statement(site, &fits);
    let line = [&["reconcile", "--statement", &file, "--type-map", "Payout=other"][..], &MAP].concat();
    site.run(&line)
        .ends(0)
        .prints("4 charges that both have; 0 differences.")
        .prints("1 line of other types");
    assert_eq!(site.json(&line)["compared"]["charges"], 4);

    let file = statement(
        site,
        &fits
            .replace("ch_1;10.00", "ch_1;9.99")
            .replace("ch_3", "ch_9")
            .replace("refund;ch_2;-10", "refund;ch_2;-7"),
    );
    let line = [&["reconcile", "--statement", &file, "--type-map", "Payout=other"][..], &MAP].concat();
    let ran = site.run(&line).ends(5).prints("4 differences");
    ran.prints("AMOUNT_DIFFERS ch_1 2 9.99 CNY 10.00 CNY P-A CAPTURED")
        .prints("REFUND_DIFFERS ch_2 4 7.00 CNY 10.00 CNY P-B REFUNDED")
        .prints("CHARGE_ONLY_IN_LEDGER ch_3 - - 10.00 CNY P-C CAPTURED")
        .prints("CHARGE_ONLY_IN_STATEMENT ch_9 5 10.00 CNY - - -");
    let json = site.run(&[&line[..], &["--json"]].concat()).ends(5).json();
    assert_eq!(json["compared"]["differences"][0]["differs"], "AMOUNT_DIFFERS");
    assert_eq!(json["compared"]["differences"][0]["statement_minor"], 999);
    site.run(&[&line[..], &["--user", "nobody"]].concat())
        .ends(5)
        .prints("lines about payments outside the scope");
    site.run(&[&line[..], &["--provider", "nobody"]].concat())
        .ends(5)
        .prints("CHARGE_ONLY_IN_STATEMENT ch_1");
    assert_eq!(site.ledgers(), before);
}

fn what_is_not_compared_is_told_and_an_empty_statement_is_refused(site: &Site) {
    charges(site);
    let file = statement(site, "charge,amount,currency,type,time\n");
    site.run(&["reconcile", "--statement", &file]).fails(2, &["settled.csv has a header and no line"]);
    // The others were captured before the only line of the statement.
    let file =
        statement(site, "charge,amount,currency,type,time\nch_1,1000,CNY,charge,2027-01-01T00:00:00Z\n");
    let line = ["reconcile", "--statement", &file];
    site.run(&line)
        .ends(0)
        .prints("These are its own first and last time")
        .prints("--from and --to")
        .prints("3 payments that the statement does not have (30.00 CNY), captured before or after")
        .does_not_print("need not");
    let compared = &site.json(&line)["compared"];
    assert_eq!(compared["window_is_its_own"], true);
    assert_eq!(compared["minor_outside_window"]["CNY"], 3000);
    let line = [&line[..], &["--from", "2026-12-01T00:00:00Z", "--to", "2027-02-01T00:00:00Z"]].concat();
    site.run(&line)
        .ends(0)
        .prints("3 payments that the statement does not have (30.00 CNY), captured outside that time")
        .does_not_print("its own");
}

fn bad_input_is_named_with_its_place(site: &Site) {
    charges(site);
    let file = statement(
        site,
        "charge,amount,currency,type\nch_1,10.5,CNY,charge\n,1000,CNY,sale\nch_2,1,XXL,refund\n",
    );
    site.run(&["reconcile", "--statement", &file]).fails(
        2,
        &[
            "settled.csv:2: column amount (2), value \"10.5\": a decimal or thousands mark",
            "settled.csv:3: column charge (1), value \"\": required, but empty",
            "settled.csv:3: column type (4), value \"sale\": neither a charge nor a refund",
            "settled.csv:4: column currency (3), value \"XXL\"",
            "--type-map sale=charge",
        ],
    );
    let file = statement(site, "Reference,amount,currency\nch_1,1000,CNY\n");
    site.run(&["reconcile", "--statement", &file]).fails(2, &["--map charge=THEIRS where THEIRS is one of"]);
    site.run(&["reconcile", "--statement", &file, "--map", "charge=amount"]).fails(2, &["two ways"]);
    site.run(&["reconcile", "--statement", &file, "--map", "whatever=Reference"])
        .fails(2, &["names none of"]);
    // Either order is understood, as `import` has it the other way round.
    site.run(&["reconcile", "--statement", &file, "--map", "Reference=charge"])
        .ends(0)
        .prints("not compared: the file has no times");
    site.run(&["reconcile", "--map", "charge=Reference"]).fails(2, &["--statement"]);
    site.run(&["reconcile", "--statement", "nowhere.csv"]).fails(2, &["nowhere.csv"]);
}
