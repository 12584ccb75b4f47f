//! What the README shows can be typed as it stands there.

use crate::common::book::Book;
use crate::common::databases::Kind;
use crate::common::site::Site;

fn readme() -> String {
    std::fs::read_to_string(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap()
}

/// The blocks of a language in the section about providers.
fn blocks(language: &str) -> Vec<String> {
    let readme = readme();
    let (_, section) = readme.split_once("\n## Who moves money\n").unwrap();
    let section = section.split("\n## ").next().unwrap();
    let (fence, mut all, mut rest) = (format!("```{language}\n"), Vec::new(), section);
    while let Some((_, after)) = rest.split_once(&fence) {
        let (block, after) = after.split_once("```").unwrap();
        all.push(block.to_owned());
        rest = after;
    }
    assert!(!all.is_empty(), "{language}");
    all
}

#[test]
fn every_configuration_is_taken() {
    for block in blocks("toml") {
        let site = Site::new(Kind::Sqlite);
        std::fs::write(site.folder().join("onefold.toml"), &block).unwrap();
        site.run(&["init"]).ends(0);
    }
}

#[test]
fn the_heart_of_the_example_is_the_examples() {
    let example = std::fs::read_to_string(super::exec::example()).unwrap();
    let without_indent =
        |text: &str| text.lines().map(|line| line.trim().to_owned()).collect::<Vec<_>>().join("\n");
    for block in blocks("sh") {
        assert!(without_indent(&example).contains(without_indent(&block).trim()), "{block}");
    }
}

/// A site whose refund is a row, with the statements of the service's side.
fn requested() -> (Site, String, Vec<String>) {
    let site = Site::new(Kind::Sqlite);
    let mut book = Book::new();
    book.bought("A", 0);
    book.bought("B", 10);
    site.import(&book.ledgers);
    std::fs::write(site.folder().join("onefold.toml"), "[providers.\"*\"]\nkind = \"outbox\"\n").unwrap();
    site.freeze();
    let plan = site.plan();
    site.run(&["apply", &plan, "--yes", "--max-refund-total", "CNY:1000"]).ends(6).prints("ACCEPTED");
    let statements = blocks("sql").concat().split(';').map(str::to_owned).collect();
    (site, plan, statements)
}

fn answer(site: &Site, statement: &str, key: &str) {
    let filled = statement
        .replace(":key", &format!("'{key}'"))
        .replace(":reference", "'re_1'")
        .replace(":why", "'the bank refuses it'")
        .replace(":now_us", "1790000100000000");
    site.sql(&filled);
}

#[test]
fn the_services_side_of_the_outbox() {
    let key = |site: &Site| site.column("SELECT request_key FROM onefold_outbox").concat();
    let state = |site: &Site| site.column("SELECT state FROM onefold_outbox").concat();

    let (site, plan, sql) = requested();
    answer(&site, &sql[0], &key(&site));
    assert_eq!(state(&site), "TAKEN");
    answer(&site, &sql[1], &key(&site));
    assert_eq!(state(&site), "DONE");
    site.run(&["converge", "--plan", &plan]).ends(0).prints("the refund is done");
    site.run(&["apply", &plan, "--yes", "--max-refund-total", "CNY:1000"]).ends(0);
    assert_eq!(site.payment("P-B"), "REFUNDED");

    let (site, plan, sql) = requested();
    answer(&site, &sql[0], &key(&site));
    answer(&site, &sql[2], &key(&site));
    assert_eq!(state(&site), "REFUSED");
    let _ = site.run(&["converge", "--plan", &plan]);
    assert_eq!(site.payment("P-B"), "CAPTURED");
}

#[test]
fn a_question_in_the_outbox() {
    let site = Site::new(Kind::Sqlite);
    let mut book = Book::new();
    book.bought("A", 0);
    book.payment("P-X", "A", 20, "UNKNOWN");
    site.import(&book.ledgers);
    std::fs::write(site.folder().join("onefold.toml"), "[providers.\"*\"]\nkind = \"outbox\"\n").unwrap();
    site.freeze();
    let _ = site.run(&["converge"]);
    let key = site.column("SELECT request_key FROM onefold_outbox WHERE kind = 'QUERY'").concat();
    let now = site.column("SELECT requested_at_us FROM onefold_outbox").concat();
    let sql = blocks("sql").concat();
    let statement = sql.split(';').nth(3).unwrap();
    let filled = statement
        .replace(":key", &format!("'{key}'"))
        .replace(":amount_minor", "1000")
        .replace(":refunded_minor", "0")
        .replace(":captured_at_us", "1790000020000000")
        .replace(":now_us", &now);
    site.sql(&filled);
    let _ = site.run(&["converge"]);
    assert_eq!(site.payment("P-X"), "CAPTURED");
}
