//! `onefold provider test`

use serde_json::json;

use super::exec::example;
use crate::TOKEN;
use crate::common::book::Book;
use crate::common::databases::Kind;
use crate::common::pay::{Misbehaviour, Pay};
use crate::common::server::nobody;
use crate::common::site::{Ran, Site};

/// A site whose ledger has one captured payment, P-A, with a provider of this configuration.
fn site(configuration: &str) -> Site {
    let site = Site::new(Kind::Sqlite);
    let mut book = Book::new();
    book.bought("A", 0);
    site.import(&book.ledgers);
    std::fs::write(site.folder().join("onefold.toml"), configuration).unwrap();
    site
}

fn run(site: &Site, line: &[&str]) -> Ran {
    let line = [&["provider", "test"], line].concat();
    crate::common::site::run(
        site.command(&line).env("PAY_TOKEN", TOKEN).env("ONEFOLD_OWNER", "ada@desk"),
        &line,
    )
}

const OF_A: [&str; 5] = ["pay", "--payment", "P-A", "--tenant", "t"];

#[test]
fn shows_what_would_leave_and_asks() {
    let pay = Pay::new([("P-A", 1000)], Misbehaviour::default());
    let site = site(&pay.configuration("pay"));
    let before = site.ledgers();
    run(&site, &OF_A)
        .ends(0)
        .prints("No money moves.")
        .prints("refund (not sent)")
        .prints("/charges/P-A/refunds")
        .prints("authorization: Bearer ***")
        .prints("idempotency-key: onefold-test-refund-")
        .prints(r#"{"amount":1000,"currency":"CNY","why":"onefold provider test"}"#)
        .prints("void (not sent)")
        .prints("query: it knows no such request, and has looked through all of the charge's")
        .prints("charge: captured: 10.00 CNY, of which 0.00 went back")
        .does_not_print("sk_live");
    assert!(pay.seen().iter().all(|seen| seen.method == "GET"), "{:?}", pay.seen());
    assert_eq!(site.ledgers(), before);
    let json = run(&site, &[&OF_A[..], &["--json"]].concat()).ends(0).json();
    assert_eq!(json["query"]["found"], "nothing");
    assert_eq!(json["charge"]["state"], "captured");
    assert_eq!(json["requests"]["refund"]["method"], "POST");
    assert_eq!(json["requests"]["refund"]["headers"]["authorization"], "Bearer ***");
    assert_eq!(json["requests"]["query"]["body"], json!(null));
}

#[test]
fn without_a_payment_a_made_up_one_is_shown() {
    let pay = Pay::new([], Misbehaviour::default());
    let site = site(&pay.configuration("pay"));
    run(&site, &["pay"]).ends(0).prints("A made-up payment").prints("P-SAMPLE").does_not_print("charge: ");
    assert_eq!(run(&site, &["pay", "--json"]).ends(0).json()["made_up"], true);
}

#[test]
fn a_provider_that_does_not_answer_ends_with_6() {
    let text = Pay::new([], Misbehaviour::default()).configuration("pay");
    let site = site(&text.replace(text.split('"').find(|t| t.starts_with("http://")).unwrap(), &nobody()));
    let ran = run(&site, &OF_A).ends(6).prints("query: no answer: no connection").does_not_print("sk_live");
    ran.prints("charge: no answer");
}

#[test]
fn a_charge_that_differs_ends_with_5() {
    let pay = Pay::new([("P-A", 999)], Misbehaviour::default());
    let site = site(&pay.configuration("pay"));
    run(&site, &OF_A).ends(5).prints("captured: 9.99 CNY").prints("the payment ledger has 10.00 CNY");
}

#[test]
fn works_for_every_kind() {
    let sandbox = site("[providers.pay]\nkind = \"sandbox\"\n");
    run(&sandbox, &OF_A)
        .ends(6)
        .prints("nothing leaves; its own tables")
        .prints("charge: it was never told of it");
    let outbox = site("[providers.\"*\"]\nkind = \"outbox\"\n");
    let any = ["*", "--payment", "P-A", "--tenant", "t"];
    run(&outbox, &any)
        .ends(0)
        .prints("a row in onefold_outbox")
        .prints("\"kind\":\"REFUND\"")
        .prints("\"kind\":\"QUERY\"");
    assert_eq!(outbox.column("SELECT COUNT(*) FROM onefold_outbox"), ["0"]);
    let books = tempfile::tempdir().unwrap();
    let command = json!([example(), books.path()]);
    let exec =
        site(&format!("[providers.pay]\nkind = \"exec\"\ncommand = {command}\nkey_lifetime = \"24h\"\n"));
    run(&exec, &OF_A)
        .ends(6)
        .prints("recognise a key for 24h")
        .prints("\"do\":\"refund\"")
        .prints("query: it knows no such request")
        .prints("charge: no answer: these books hold no charges");
    assert!(!books.path().join("moved").exists());
    let adyen = "[providers.pay]\nkind = \"http\"\npreset = \"adyen\"\nsecrets.key = { env = \"PAY_TOKEN\" }\nvalues.merchant_account = \"Shop\"\n";
    run(&site(adyen), &["pay"]).ends(0).prints("it cannot be asked about a request").prints("x-api-key: ***");
}

#[test]
fn what_is_typed_wrong() {
    let site = site("[providers.pay]\nkind = \"sandbox\"\n");
    run(&site, &["paypal"])
        .fails(2, &["no provider is configured under the name \"paypal\"", "there are \"pay\""]);
    run(&site, &["pay", "--payment", "P-none"]).fails(2, &["there is no payment P-none", "--tenant"]);
    std::fs::write(site.folder().join("onefold.toml"), "[providers.stripe]\nkind = \"sandbox\"\n").unwrap();
    run(&site, &["stripe", "--payment", "P-A", "--tenant", "t"])
        .fails(2, &["payment P-A is with \"pay\"", "provider test pay"]);
}

#[test]
fn a_proxy_is_not_asked_about_this_machine() {
    let pay = Pay::new([("P-A", 1000)], Misbehaviour::default());
    let site = site(&pay.configuration("pay"));
    let line = [&["provider", "test"], &OF_A[..]].concat();
    let mut command = site.command(&line);
    for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"] {
        command.env(name, nobody());
    }
    crate::common::site::run(command.env("PAY_TOKEN", TOKEN), &line).ends(0);
}

#[test]
fn certificates_of_ones_own_must_be_there() {
    let pay = Pay::new([], Misbehaviour::default()).configuration("pay");
    let site = site(&pay.replace("timeout =", "ca_file = \"ca.pem\"\ntimeout ="));
    run(&site, &["pay"]).fails(2, &["[providers.pay]: ca_file = ca.pem", "certificates as PEM"]);
    std::fs::write(site.folder().join("ca.pem"), "nothing\n").unwrap();
    run(&site, &["pay"]).fails(2, &["holds no certificate"]);
}
