//! `onefold init`

use crate::common::book::Book;
use crate::common::site::{Kind, Site, program, run};
use crate::on_each_database;

on_each_database![
    safe_to_run_twice,
    print_shows_the_sql_and_runs_nothing,
    without_tables_every_verb_says_what_to_type,
    a_narrowed_freeze_keeps_its_triggers,
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

fn a_narrowed_freeze_keeps_its_triggers(site: &Site) {
    let mut book = Book::new();
    book.bought("A", 0);
    book.payment("P-lost", "O-lost", 5000, "CAPTURED");
    site.import(&book.ledgers);
    site.run(&["init", "--enforce"]).ends(0);
    let freeze =
        site.id(&["freeze", "--show", "show", "--enforce", "--reason", "a test"], "/freeze/freeze_id");
    site.run(&["thaw", &freeze]).ends(6);
    site.run(&["init", "--enforce=off"])
        .fails(7, &["settle what it still holds", &format!("onefold thaw {freeze} --force --reason TEXT")]);
}

#[test]
fn each_database_is_named_and_the_next_step_is_possible() {
    let site = Site::new(Kind::Sqlite);
    let init = |toml: &str| {
        let path = site.configured(toml);
        let line = ["init", "--config", &path];
        run(program().current_dir(site.folder()).args(line), &line).ends(0)
    };
    init("journal = \"sqlite:one.db\"\n").prints("sqlite:one.db is ready.").prints("onefold import DIR");
    let ledgers = ["orders", "payments", "inventory", "messages"]
        .map(|ledger| format!("{ledger} = {{ urls = [\"sqlite:{ledger}.db\"] }}\n"))
        .concat();
    init(&format!("journal = \"sqlite:journal.db\"\n[ledgers]\n{ledgers}"))
        .prints("sqlite:journal.db, sqlite:orders.db, sqlite:payments.db, sqlite:inventory.db, sqlite:messages.db are ready.")
        .prints("onefold check")
        .does_not_print("onefold import");
}
