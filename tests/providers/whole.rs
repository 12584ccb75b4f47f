//! Whole commands whose money goes through HTTP or a program, with answers lost on the way: in the end
//! everything is as if nothing had been disturbed, and each charge was given back once.

use serde_json::json;

use super::exec::example;
use crate::common::book::Book;
use crate::common::databases::Kind;
use crate::common::pay::{Misbehaviour, Pay};
use crate::common::site::{Ran, Site};
use crate::on_each_database;

on_each_database![killed_again_and_again_each_is_given_back_once];

/// How many purchases became two orders.
const PURCHASES: usize = 6;

/// Each purchase is two orders, both paid and backed: `A` is kept, `B` is given back.
fn book() -> Book {
    let mut book = Book::new();
    for n in 0..PURCHASES {
        for (name, seconds) in [("A", 0), ("B", 10)] {
            let id = format!("{name}{n}");
            book.bought(&id, seconds);
            book.find_order(&id).user_id = format!("u{n}").into();
            book.find_payment(&format!("P-{id}")).user_id = format!("u{n}").into();
            book.find_hold(&format!("H-{id}")).user_id = format!("u{n}").into();
        }
    }
    book
}

fn charges() -> Vec<String> {
    (0..PURCHASES).flat_map(|n| [format!("P-A{n}"), format!("P-B{n}")]).collect()
}

fn pay(misbehaviour: Misbehaviour) -> Pay {
    Pay::new(charges().iter().map(|id| (id.as_str(), 1000)), misbehaviour)
}

fn run(site: &Site, line: &[&str]) -> Ran {
    crate::common::site::run(
        site.command(line).env("PAY_TOKEN", "tok_en").env("ONEFOLD_OWNER", "ada@desk"),
        line,
    )
}

/// Imports, freezes and plans; the plan's id.
fn planned(site: &Site, configuration: &str) -> String {
    site.import(&book().ledgers);
    std::fs::write(site.folder().join("onefold.toml"), configuration).unwrap();
    site.freeze();
    site.plan()
}

/// Applies and converges until all is done; how often each was needed.
fn carried_out(site: &Site, plan: &str) -> usize {
    for round in 1..=20 {
        if run(site, &["apply", plan, "--yes", "--max-refund-total", "CNY:1000"]).code == Some(0) {
            run(site, &["verify", plan]).ends(0);
            return round;
        }
        let _ = run(site, &["converge", "--plan", plan]);
    }
    panic!("it does not end: {}", run(site, &["status"]));
}

fn each_was_given_back_once(pay: &Pay) {
    for charge in charges() {
        let expected = if charge.starts_with("P-B") { (1000, 1) } else { (0, 0) };
        assert_eq!((pay.refunded(&charge), pay.refunds(&charge)), expected, "{charge}");
    }
}

/// The ledgers after a run that nothing disturbed.
fn undisturbed() -> Vec<String> {
    let (site, pay) = (Site::new(Kind::Sqlite), pay(Misbehaviour::default()));
    let plan = planned(&site, &pay.configuration("pay"));
    assert_eq!(carried_out(&site, &plan), 1);
    each_was_given_back_once(&pay);
    site.ledgers()
}

/// The program is killed at times that nobody has chosen, while the provider misbehaves.
fn killed_again_and_again_each_is_given_back_once(site: &Site) {
    let expected = undisturbed();
    let pay = pay(Misbehaviour {
        lose_answer: 0.3,
        error_rate: 0.2,
        forget_key: 0.2,
        pending: 0.2,
        seed: 7,
        ..Misbehaviour::default()
    });
    let plan = planned(site, &pay.configuration("pay"));
    let rounds = if std::env::var_os("ONEFOLD_TEST_HUNT").is_some() { 200 } else { 16 };
    let apply = ["apply", &plan, "--yes", "--max-refund-total", "CNY:1000", "--workers", "2"];
    let converge = ["converge", "--plan", &plan];
    for round in 0..rounds {
        let line = if round % 3 == 2 { &converge[..] } else { &apply };
        let (out, err) = (std::process::Stdio::null(), std::process::Stdio::null());
        let mut child =
            site.process(line).env("PAY_TOKEN", "tok_en").stdout(out).stderr(err).spawn().unwrap();
        let chance = u64::from(uuid::Uuid::new_v4().as_bytes()[0]);
        std::thread::sleep(std::time::Duration::from_millis(20 + chance));
        let _ = child.kill();
        child.wait().unwrap();
    }
    carried_out(site, &plan);
    each_was_given_back_once(&pay);
    assert_eq!(site.ledgers(), expected);
}

#[test]
fn with_every_answer_lost_converge_finds_what_was_done() {
    let site = Site::new(Kind::Sqlite);
    let pay = pay(Misbehaviour { lose_answer: 1.0, ..Misbehaviour::default() });
    let plan = planned(&site, &pay.configuration("pay"));
    run(&site, &["apply", &plan, "--yes", "--max-refund-total", "CNY:1000"])
        .ends(6)
        .prints("UNKNOWN")
        .prints("onefold converge");
    let converged = run(&site, &["converge", "--plan", &plan]).ends(0);
    assert!(converged.stdout.contains("the refund is done"), "{converged}");
    run(&site, &["apply", &plan, "--yes", "--max-refund-total", "CNY:1000"]).ends(0);
    run(&site, &["verify", &plan]).ends(0);
    each_was_given_back_once(&pay);
    assert_eq!(site.ledgers(), undisturbed());
    let posts: Vec<_> = pay.seen().into_iter().filter(|seen| seen.method == "POST").collect();
    let keys: std::collections::BTreeSet<_> =
        posts.iter().map(|seen| seen.header("idempotency-key")).collect();
    assert_eq!(keys.len(), PURCHASES, "one key for each refund, however often it was sent");
    let told =
        format!("{}{}", run(&site, &["history", "--json"]).stdout, run(&site, &["status", "--json"]).stdout);
    assert!(!told.contains("tok_en"), "the journal holds no secret");
}

#[test]
fn with_all_kinds_of_misbehaviour_each_is_given_back_once() {
    let expected = undisturbed();
    for seed in 0..3 {
        let site = Site::new(Kind::Sqlite);
        let pay = pay(Misbehaviour {
            lose_answer: 0.4,
            error_rate: 0.3,
            forget_key: 0.3,
            pending: 0.3,
            seed,
            ..Misbehaviour::default()
        });
        let plan = planned(&site, &pay.configuration("pay"));
        carried_out(&site, &plan);
        each_was_given_back_once(&pay);
        assert_eq!(site.ledgers(), expected, "seed {seed}");
    }
}

#[test]
fn a_refusal_puts_the_payment_back_and_is_for_a_person() {
    let site = Site::new(Kind::Sqlite);
    let pay = pay(Misbehaviour { refuse: 1.0, ..Misbehaviour::default() });
    let plan = planned(&site, &pay.configuration("pay"));
    run(&site, &["apply", &plan, "--yes", "--max-refund-total", "CNY:1000"])
        .ends(6)
        .prints("the bank refuses it");
    assert_eq!(site.payment("P-B0"), "CAPTURED");
    assert_eq!(pay.refunds("P-B0"), 0);
}

#[test]
fn a_provider_that_is_not_there_sends_nothing_and_apply_goes_on_later() {
    let site = Site::new(Kind::Sqlite);
    let pay = pay(Misbehaviour::default());
    let good = pay.configuration("pay");
    let nobody = crate::common::server::nobody();
    let url = good.split('"').find(|text| text.starts_with("http://")).unwrap().to_owned();
    let plan = planned(&site, &good.replace(&url, &nobody));
    run(&site, &["apply", &plan, "--yes", "--max-refund-total", "CNY:1000"])
        .ends(1)
        .prints("NOT_SENT")
        .prints("no connection");
    assert_eq!(site.payment("P-B0"), "REFUNDING");
    std::fs::write(site.folder().join("onefold.toml"), good).unwrap();
    carried_out(&site, &plan);
    each_was_given_back_once(&pay);
}

#[test]
fn through_the_example_program_each_is_given_back_once() {
    let site = Site::new(Kind::Sqlite);
    let books = tempfile::tempdir().unwrap();
    let command = json!([example(), books.path()]);
    let plan = planned(&site, &format!("[providers.pay]\nkind = \"exec\"\ncommand = {command}\n"));
    assert_eq!(carried_out(&site, &plan), 1);
    let moved = std::fs::read_to_string(books.path().join("moved")).unwrap();
    assert_eq!(moved.lines().count(), PURCHASES, "{moved}");
    assert!(
        moved.lines().all(|line| line.starts_with("refund P-B") && line.ends_with(" 1000 CNY")),
        "{moved}"
    );
    assert_eq!(site.ledgers(), undisturbed());
}
