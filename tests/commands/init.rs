//! `onefold init`

use crate::common::book::Book;
use crate::common::site::Site;
use crate::on_each_database;

on_each_database![
    safe_to_run_twice,
    print_shows_the_sql_and_runs_nothing,
    without_tables_every_verb_says_what_to_type,
];

fn safe_to_run_twice(site: &Site) {
    site.run(&["init"]).ends(0).prints("is ready.");
    let mut book = Book::new();
    book.bought("A", 0);
    site.import(&book.ledgers);
    let freeze = site.freeze();
    assert_eq!(site.json(&["init"])["ran"], true);
    site.run(&["status"]).ends(0).prints(&freeze);
    assert_eq!(site.order("A"), "PAID");
    site.run(&["freeze", "--show", "other", "--reason", "x"]).ends(0).prints("under token 2 ");
}

fn print_shows_the_sql_and_runs_nothing(site: &Site) {
    let ran = site.run(&["init", "--print"]).ends(0);
    for table in ["orders", "payments", "inventory", "messages", "onefold_plans", "onefold_journal"] {
        assert!(ran.stdout.contains(&format!("CREATE TABLE IF NOT EXISTS {table} (")), "{ran}");
    }
    assert!(ran.stdout.ends_with(";\n") && !ran.stdout.contains('{'), "{ran}");
    assert!(site.has_no_file(), "nothing was created");
    site.run(&["status"]).fails(2, &["onefold init"]);
    // What it prints is what a DBA may run, also twice.
    site.run(&["init"]).ends(0);
    site.sql(&ran.stdout);
}

fn without_tables_every_verb_says_what_to_type(site: &Site) {
    let lines: [&[&str]; 11] = [
        &["freeze", "--show", "show", "--reason", "x"],
        &["status"],
        &["reconcile"],
        &["plan"],
        &["show", "PL-1"],
        &["apply", "PL-1", "--yes"],
        &["converge"],
        &["verify"],
        &["history"],
        &["requeue", "M-1", "--because", "x"],
        &["thaw", "F-1"],
    ];
    for line in lines {
        site.run(line).fails(2, &["onefold init"]);
    }
}
