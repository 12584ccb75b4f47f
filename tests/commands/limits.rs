//! How much one run of `onefold apply` may do.

use crate::common::book::Book;
use crate::common::site::Site;
use crate::{doubled, on_each_database};

on_each_database![
    many_refunds_need_a_stated_limit,
    a_limit_that_is_stated_is_kept_for_every_currency,
    a_limit_may_be_configured,
    limits_that_cannot_be_read_are_refused,
];

/// A configuration that states no limit.
fn without_limits(site: &Site) -> String {
    site.configured("[providers.\"*\"]\nkind = \"sandbox\"\n")
}

fn many_refunds_need_a_stated_limit(site: &Site) {
    let config = without_limits(site);
    site.import(&doubled().ledgers);
    site.freeze();
    let plan = site.plan();
    site.run(&["apply", &plan, "--yes", "--config", &config]).fails(
        7,
        &[
            "would refund 1 charge, more than 10 % of its scope's 2 live orders",
            &format!("onefold apply {plan} --max-refund-total CNY:10.00"),
        ],
    );
    assert_eq!((site.order("B"), site.payment("P-B")), ("PAID".into(), "CAPTURED".into()));
    site.run(&["apply", &plan, "--yes", "--config", &config, "--max-refund-total", "CNY:10.00"]).ends(0);
    assert_eq!(site.payment("P-B"), "REFUNDED");
    // What is done is not counted again.
    site.run(&["apply", &plan, "--yes", "--config", &config]).ends(0);
}

fn a_limit_that_is_stated_is_kept_for_every_currency(site: &Site) {
    let config = without_limits(site);
    site.import(&doubled().ledgers);
    site.freeze();
    let plan = site.plan();
    let refused = |flags: &[&str], saying: &str| {
        let line = [&["apply", &plan, "--yes", "--config", &config], flags].concat();
        site.run(&line).fails(7, &[saying, "--max-refund-total CNY:10.00"]);
    };
    refused(
        &["--max-refund-total", "CNY:9.99"],
        "would give back 10.00 CNY, more than the limit of 9.99 CNY",
    );
    refused(&["--max-refund-total", "JPY:1000000"], "no limit is stated for CNY");
    site.run(&["apply", &plan, "--yes", "--max-steps", "5"]).fails(7, &["has 6 steps to do"]);
    assert_eq!((site.order("B"), site.payment("P-B")), ("PAID".into(), "CAPTURED".into()));
    site.run(&["apply", &plan, "--yes", "--max-steps", "6"]).ends(0);
}

fn a_limit_may_be_configured(site: &Site) {
    let config = site.configured(
        "[providers.\"*\"]\nkind = \"sandbox\"\n[limits]\nmax_refund_total = [\"CNY:9\"]\nmax_steps = 100\n",
    );
    site.import(&doubled().ledgers);
    site.freeze();
    let plan = site.plan();
    let line = ["apply", &plan, "--yes", "--config", &config];
    site.run(&line).fails(7, &["more than the limit of 9.00 CNY"]);
    // A flag goes before the file.
    site.run(&[&line[..], &["--max-refund-total", "CNY:10"]].concat()).ends(0);
}

fn limits_that_cannot_be_read_are_refused(site: &Site) {
    let mut book = Book::new();
    book.bought("A", 0);
    site.import(&book.ledgers);
    site.freeze();
    let plan = site.plan();
    for (limit, saying) in [
        ("10", "has no colon"),
        ("XXY:10", "names no ISO 4217 currency"),
        ("CNY:10.001", "has no amount of that currency"),
        ("CNY:-1", "is less than nothing"),
        ("CNY:1,000", "has no amount of that currency"),
    ] {
        site.run(&["apply", &plan, "--yes", "--max-refund-total", limit])
            .fails(2, &["--max-refund-total", limit, saying, "CNY:50000"]);
    }
    let twice = ["--max-refund-total", "CNY:1", "--max-refund-total", "CNY:2"];
    site.run(&[&["apply", &plan, "--yes"], &twice[..]].concat()).fails(2, &["is there twice"]);
    site.run(&["apply", &plan, "--rate", "fast"]).fails(2, &["20/s"]);
    site.run(&["apply", &plan, "--workers", "0"]).fails(2, &["--workers"]);
    let config = site.configured("[limits]\nmax_refund_total = [\"CNY\"]\n");
    site.run(&["status", "--config", &config]).fails(2, &["[limits]", "has no colon"]);
}
