//! A drill at a service's door: how many results one key has.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;

use crate::common::server::{Reply, Seen, Server, nobody};
use crate::common::site::{Kind, Ran, Site, run};

/// A service that makes an order for each request.
fn careless() -> Server {
    let orders = AtomicUsize::new(0);
    Server::new(move |_| Reply::json(201, json!({ "order_id": orders.fetch_add(1, Ordering::SeqCst) })))
}

/// One that makes an order for each key, and says when it has answered.
fn careful() -> Server {
    let (orders, answers) = (Mutex::new(HashMap::new()), AtomicUsize::new(0));
    Server::new(move |seen: &Seen| {
        let mut orders = orders.lock().unwrap();
        let (next, key) = (orders.len(), seen.header("idempotency-key").unwrap().to_owned());
        let status = if orders.contains_key(&key) { 200 } else { 201 };
        let order = *orders.entry(key).or_insert(next);
        let at = answers.fetch_add(1, Ordering::SeqCst);
        Reply::json(status, json!({ "order_id": order, "meta": { "answered": at } }))
    })
}

fn drill(site: &Site, url: &str, flags: &[&str]) -> Ran {
    site.run(&[&["guard", "drill", "--url", url], flags].concat())
}

const IGNORE: [&str; 3] = ["--yes", "--ignore", "/meta/answered"];

#[test]
fn a_service_that_keeps_keys_has_one_result_for_each() {
    let (site, server) = (Site::new(Kind::Sqlite), careful());
    let flags = [&IGNORE[..], &["--rounds", "3", "--requests", "5", "--body", "{\"amount\": 1}"]].concat();
    let ran = drill(&site, &server.url(), &flags).ends(0).prints("One result for each key");
    let ran = ran.prints("HTTP 201 3 a success").prints("HTTP 200 12 a success");
    ran.warns("3 rounds of 5 requests, 5 at once: 15 in all").warns("a body of 13 bytes");
    let seen = server.seen();
    assert_eq!(seen.len(), 15);
    let keys: std::collections::BTreeSet<_> =
        seen.iter().map(|s| s.header("idempotency-key").unwrap()).collect();
    assert_eq!(keys.len(), 3, "a new key each round");
    assert!(seen.iter().all(|s| s.method == "POST" && s.body == "{\"amount\": 1}"));
    assert!(seen.iter().all(|s| s.header("content-type") == Some("application/json")));
    assert!(site.has_no_file(), "no database is asked for");
}

#[test]
fn a_service_without_a_guard_is_found_out() {
    let (site, server) = (Site::new(Kind::Sqlite), careless());
    let ran = drill(&site, &server.url(), &["--yes"]).ends(5);
    ran.prints("MORE THAN ONE RESULT under 1 key, up to 8.").prints("HTTP 201 8 a success");
    let json =
        drill(&site, &server.url(), &["--yes", "--json", "--key", "K-1", "--rounds", "2", "--requests", "2"]);
    let json = json.ends(5).json();
    assert_eq!((&json["most_results_of_a_key"], &json["sent"]), (&4.into(), &4.into()), "{json:#}");
    assert_eq!(json["several_results"][0]["key"], "K-1");
    assert_eq!(json["several_results"][0]["results"].as_array().unwrap().len(), 4);
}

#[test]
fn what_differs_in_each_answer_is_a_result_unless_it_is_ignored() {
    let (site, server) = (Site::new(Kind::Sqlite), careful());
    drill(&site, &server.url(), &["--yes"]).ends(5).prints("--ignore /POINTER");
    drill(&site, &server.url(), &IGNORE).ends(0);
    drill(&site, &server.url(), &["--yes", "--ignore", "meta"]).fails(2, &["is no JSON pointer"]);
}

#[test]
fn nothing_is_sent_unasked() {
    let (site, server) = (Site::new(Kind::Sqlite), careless());
    let ran = drill(&site, &server.url(), &["--header", "X-Shop: berlin", "--rounds", "2"]);
    let ran = ran.ends(7).warns("asks before it sends anything").warns("--yes");
    let place = format!("POST {}/", server.url());
    ran.warns(&place).warns("x-shop: berlin").warns("2 rounds of 8 requests, 8 at once: 16 in all");
    assert!(server.seen().is_empty());
}

#[test]
fn a_secret_is_sent_and_never_told() {
    let (site, server) = (Site::new(Kind::Sqlite), careless());
    let file = site.folder().join("token");
    std::fs::write(&file, "s3cret-of-file\n").unwrap();
    #[cfg(unix)]
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let url = server.url();
    let line = [
        "guard",
        "drill",
        "--url",
        &url,
        "--yes",
        "--requests",
        "1",
        "--key-header",
        "X-Request-Key",
        "--header",
        "Authorization: Bearer {env:DRILL_TOKEN}",
        "--header",
        "X-Api: {file:token}",
    ];
    let ran = run(site.command(&line).env("DRILL_TOKEN", "s3cret"), &line).ends(0);
    ran.warns("authorization: Bearer ***").does_not_print("s3cret");
    let seen = server.only();
    assert_eq!(seen.header("authorization"), Some("Bearer s3cret"));
    assert_eq!(seen.header("x-api"), Some("s3cret-of-file"));
    assert!(seen.header("x-request-key").is_some() && seen.header("idempotency-key").is_none());

    let refused = |flags: &[&str], why: &str| {
        drill(&site, &url, &[&["--yes"], flags].concat()).fails(2, &[why]).does_not_print("s3cret");
    };
    refused(&["--header", "Authorization: s3cret"], "the list of processes");
    refused(&["--header", "Authorization: env:NOT_SET_ANYWHERE"], "NOT_SET_ANYWHERE is not set");
    refused(&["--header", "s3cret"], "a header has no colon");
    refused(&["--key", "two\nlines"], "what no header may have");
    let with_password = url.replace("http://", "http://ada:s3cret@");
    drill(&site, &with_password, &["--yes"]).fails(2, &["a user or a password"]).does_not_print("s3cret");
    let line =
        ["guard", "drill", "--yes", "--url", "http://shop.example/", "--header", "X-Api: env:DRILL_TOKEN"];
    run(site.command(&line).env("DRILL_TOKEN", "s3cret"), &line).fails(2, &["over plain http"]);
    assert_eq!(server.seen().len(), 1, "nothing else was sent");
}

#[test]
fn where_nothing_succeeds_nothing_is_proven() {
    let site = Site::new(Kind::Sqlite);
    let server = Server::answering([Reply::text(401, "who are you?")]);
    drill(&site, &server.url(), &["--yes"])
        .ends(1)
        .prints("HTTP 401 8 not allowed")
        .prints("nothing is proven");
    drill(&site, &nobody(), &["--yes"]).ends(1).prints("not sent 8 no connection");
    let slow = Server::answering([Reply::Slow(Duration::from_secs(2), Box::new(Reply::text(200, "late")))]);
    drill(&site, &slow.url(), &["--yes", "--requests", "2", "--timeout", "200ms"])
        .ends(1)
        .prints("no answer 2 no answer within 0.2 s");
    let bare = Server::answering([Reply::text(204, "")]);
    drill(&site, &bare.url(), &["--yes"]).ends(0).prints("Some successes have no body");
    drill(&site, "ftp://shop.example", &["--yes"]).fails(2, &["the URL is none of HTTP"]);
}
