//! Refunds as rows for a company's own payment service, and its answers.

use crate::common::book::Book;
use crate::common::site::{Kind, Site};
use crate::{doubled, on_each_database};

on_each_database![
    a_request_is_a_row_and_is_done_when_the_service_says_so,
    a_refusal_puts_the_payment_back,
    the_services_own_report_is_counted_once,
    apply_finds_a_request_that_left_before_it_was_recorded,
    converge_finds_a_request_that_left_before_it_was_recorded,
    a_charge_in_doubt_is_asked_about,
    on_a_server_it_is_what_stands_where_nothing_is_said,
    requests_that_left_are_told_whatever_breaks_it_off,
];

const CONFIG: &str = "[providers.\"*\"]\nkind = \"outbox\"\n[limits]\nmax_refund_total = [\"CNY:1000\"]\n";

struct Shop<'s> {
    site: &'s Site,
    config: String,
}

impl Shop<'_> {
    fn run(&self, line: &[&str]) -> crate::common::site::Ran {
        self.site.run(&[line, &["--config", &self.config]].concat())
    }

    /// What the service writes into the one request that waits.
    fn answers(&self, what: &str) {
        let now = "1794312000000000";
        let at = if what.contains("charge_status") { now_us() } else { now.to_owned() };
        self.site.sql(&format!(
            "UPDATE onefold_outbox SET {what}, answered_at_us = {at} WHERE state IN ('REQUESTED', 'TAKEN')"
        ));
    }

    fn outbox(&self) -> Vec<String> {
        let columns = ["kind", "payment_id", "state"];
        let of = |column: &str| {
            self.site
                .column(&format!("SELECT {column} FROM onefold_outbox ORDER BY requested_at_us, request_key"))
        };
        let [kind, payment, state] = columns.map(of);
        (0..kind.len()).map(|i| format!("{} {} {}", kind[i], payment[i], state[i])).collect()
    }
}

fn now_us() -> String {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    since.as_micros().to_string()
}

/// The doubled purchase, applied until its refund waits; the plan.
fn waiting(site: &Site) -> (Shop<'_>, String) {
    let shop = Shop { site, config: site.configured(CONFIG) };
    site.import(&doubled().ledgers);
    site.freeze();
    let plan = site.plan();
    shop.run(&["apply", &plan, "--yes"])
        .ends(6)
        .prints("ACCEPTED")
        .prints("provider: outbox (your payment service)")
        .prints(&format!("$ onefold converge --plan {plan}"));
    assert_eq!((site.order("B"), site.payment("P-B")), ("REFUNDING".into(), "REFUNDING".into()));
    assert_eq!(shop.outbox(), ["REFUND P-B REQUESTED"]);
    assert_eq!(site.column("SELECT amount_minor FROM onefold_outbox"), ["1000"]);
    (shop, plan)
}

fn a_request_is_a_row_and_is_done_when_the_service_says_so(site: &Site) {
    let (shop, plan) = waiting(site);
    shop.run(&["apply", &plan, "--yes"]).ends(6);
    shop.answers("state = 'TAKEN'");
    shop.run(&["converge", "--plan", &plan]).ends(6).prints("has not finished the refund");
    assert_eq!(shop.outbox(), ["REFUND P-B TAKEN"]);
    shop.answers("state = 'DONE', provider_ref = 're-17'");
    shop.run(&["converge", "--plan", &plan]).ends(0).prints("payment P-B yes the refund is done");
    shop.run(&["apply", &plan, "--yes"]).ends(0);
    assert_eq!((site.order("B"), site.payment("P-B")), ("REFUNDED".into(), "REFUNDED".into()));
    assert_eq!(site.column("SELECT refunded_minor FROM payments WHERE payment_id = 'P-B'"), ["1000"]);
    shop.run(&["history", "--plan", &plan]).ends(0).prints("provider reference re-17");
    shop.run(&["verify", &plan]).ends(0);
}

fn a_refusal_puts_the_payment_back(site: &Site) {
    let (shop, plan) = waiting(site);
    shop.answers("state = 'REFUSED', note = 'too old'");
    // The order is in motion: what became of its charges is asked, too.
    shop.run(&["converge", "--plan", &plan]).ends(6).prints("was refused: too old");
    assert_eq!((site.order("B"), site.payment("P-B")), ("REFUNDING".into(), "CAPTURED".into()));
    let again = site.json(&["plan"]);
    assert_eq!(again["intents"][0]["review_reasons"], serde_json::json!(["REFUND_REFUSED"]));
}

fn the_services_own_report_is_counted_once(site: &Site) {
    let (shop, plan) = waiting(site);
    site.sql("UPDATE payments SET status = 'REFUNDED', refunded_minor = 1000, version = '9' WHERE payment_id = 'P-B'");
    shop.answers("state = 'DONE'");
    shop.run(&["converge", "--plan", &plan]).ends(0);
    shop.run(&["apply", &plan, "--yes"]).ends(0);
    assert_eq!(site.column("SELECT refunded_minor FROM payments WHERE payment_id = 'P-B'"), ["1000"]);
    shop.run(&["verify", &plan]).ends(0);
}

fn apply_finds_a_request_that_left_before_it_was_recorded(site: &Site) {
    let (shop, plan) = left_before_it_was_recorded(site);
    shop.run(&["apply", &plan, "--yes"]).ends(6).prints("ACCEPTED");
    assert_eq!(shop.outbox(), ["REFUND P-B REQUESTED"]);
}

fn converge_finds_a_request_that_left_before_it_was_recorded(site: &Site) {
    let (shop, plan) = left_before_it_was_recorded(site);
    let newer = site.plan();
    assert_ne!(newer, plan);
    shop.run(&["converge", "--show", "show"]).ends(6).prints("has not finished the refund");
    shop.answers("state = 'DONE'");
    shop.run(&["converge", "--show", "show"]).ends(0).prints("the refund is done");
    assert_eq!(site.payment("P-B"), "REFUNDED");
    assert_eq!(shop.outbox(), ["REFUND P-B DONE"]);
}

/// As if the run had been killed between the two legs.
fn left_before_it_was_recorded(site: &Site) -> (Shop<'_>, String) {
    let (shop, plan) = waiting(site);
    site.sql("DELETE FROM onefold_steps WHERE ledger = 'payments' AND to_status = 'REFUNDED'");
    (shop, plan)
}

fn a_charge_in_doubt_is_asked_about(site: &Site) {
    let shop = Shop { site, config: site.configured(CONFIG) };
    let mut book = Book::new();
    book.bought("A", 0);
    book.reserved("B", 10);
    book.payment("P-B", "B", 12, "UNKNOWN");
    site.import(&book.ledgers);
    site.freeze();
    assert_eq!(site.json(&["plan"])["intents"][0]["outcome"], "UNSETTLED");
    shop.run(&["converge", "--show", "show"]).ends(6).prints("the payment service is asked");
    shop.run(&["converge", "--show", "show"]).ends(6).prints("has not answered yet");
    assert_eq!(shop.outbox(), ["QUERY P-B REQUESTED"]);
    shop.answers(
        "state = 'DONE', charge_status = 'CAPTURED', charge_amount_minor = 1000, charge_refunded_minor = 0",
    );
    shop.run(&["converge", "--show", "show"]).ends(0).prints("UNKNOWN → CAPTURED");
    assert_eq!(site.payment("P-B"), "CAPTURED");
    assert_eq!(shop.outbox(), ["QUERY P-B READ"]);
    assert_eq!(site.json(&["plan"])["intents"][0]["outcome"], "KEEP");
}

fn on_a_server_it_is_what_stands_where_nothing_is_said(site: &Site) {
    let config = site.configured("[limits]\nmax_refund_total = [\"CNY:1000\"]\n");
    site.import(&doubled().ledgers);
    site.freeze();
    let plan = site.plan();
    let ran = site.run(&["apply", &plan, "--yes", "--config", &config]);
    match site.kind() {
        Kind::Sqlite => ran.ends(0).prints("sandbox (no real money moves)"),
        _ => ran.ends(6).prints("outbox (your payment service)"),
    };
}

fn requests_that_left_are_told_whatever_breaks_it_off(site: &Site) {
    let mut book = Book::new();
    for n in 0..2 {
        book.bought(&format!("A{n}"), n * 1800);
        book.bought(&format!("B{n}"), n * 1800 + 10);
    }
    site.import(&book.ledgers);
    site.freeze();
    let plan = site.plan();
    // The first legs are made, and nothing is sent.
    let gone = "[providers.\"*\"]\nkind = \"exec\"\ncommand = [\"/no/such/program\"]\n";
    let gone = site.configured(&CONFIG.replace("[providers.\"*\"]\nkind = \"outbox\"\n", gone));
    site.run(&["apply", &plan, "--yes", "--config", &gone]).ends(1).prints("NOT_SENT");
    site.sql(match site.kind() {
        Kind::Sqlite => {
            "CREATE TRIGGER no_room BEFORE INSERT ON onefold_outbox WHEN NEW.payment_id = 'P-B1' \
             BEGIN SELECT RAISE(ABORT, 'no_room'); END"
        }
        _ => "ALTER TABLE onefold_outbox ADD CONSTRAINT no_room CHECK (payment_id <> 'P-B1')",
    });
    let shop = Shop { site, config: site.configured(CONFIG) };
    let told = shop.run(&["apply", &plan, "--yes", "--json"]).ends(6).stdout;
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    assert!(told["error"]["message"].as_str().unwrap().contains("no_room"), "{told:#}");
    assert_eq!((&told["intents"][0]["end"], &told["done_now"]), (&"ACCEPTED".into(), &0.into()), "{told:#}");
    assert_eq!(shop.outbox(), ["REFUND P-B0 REQUESTED"]);
}
