//! Queries that list a charge's refunds: nothing is found only where the list is whole.

use serde_json::{Value, json};

use super::*;
use crate::common::server::{Reply, Server};

fn listing(url: &str, more: &str) -> String {
    let plain = plain(url);
    let (before, _) = plain.split_once("[query]").unwrap();
    format!(
        r#"attempts = 1
        {before}
        [query]
        method = "GET"
        path = "/charges/{{provider_txn_id}}/refunds"
        query = {{ limit = "2" }}
        reason = "/error"
        [query.list]
        items = "/data"
        key = "/meta/key"
        status = "/status"
        reference = "/id"
        amount = "/amount"
        reason = "/why"
        statuses = {{ ok = "done", wait = "accepted", no = "refused" }}
        {more}
        "#
    )
}

const PAGED: &str = "has_more = \"/has_more\"\nnext = { after = \"{last_reference}\", page = \"{key}\" }";

fn item(key: &str, status: &str) -> Value {
    json!({ "id": format!("re_{key}"), "meta": { "key": key }, "amount": 1000, "status": status, "why": "late" })
}

fn page(items: &[Value], has_more: bool) -> Reply {
    Reply::json(200, json!({ "data": items, "has_more": has_more }))
}

/// What is found where these pages come one after another.
fn found(more: &str, pages: Vec<Reply>) -> Found {
    let server = Server::answering(pages);
    ask(&http(&listing(&server.url(), more)), &refund())
}

#[test]
fn the_request_is_found_by_its_key() {
    let told = |status: &str| found(PAGED, vec![page(&[item("k-0", "ok"), item("k-1", status)], false)]);
    assert_eq!(told("ok"), Found::Request(Answer::Done(Some("re_k-1".into()))));
    assert_eq!(told("wait"), Found::Request(Answer::Accepted(Some("re_k-1".into()))));
    assert_eq!(told("no"), Found::Request(Answer::Refused("it is no: late".into())));
    let Found::Request(answer) = told("?") else { panic!() };
    is_unknown(answer, "as \"?\", which no status stands for");
}

#[test]
fn the_request_is_found_by_its_reference() {
    let server = Server::answering([page(&[item("of-another-key", "ok")], false)]);
    let request = Request { reference: Some("re_of-another-key".into()), ..refund() };
    assert_eq!(
        ask(&http(&listing(&server.url(), PAGED)), &request),
        Found::Request(Answer::Done(request.reference.clone()))
    );
}

#[test]
fn all_pages_are_read_before_it_is_not_there() {
    let pages = vec![
        page(&[item("k-0", "ok"), item("k-9", "ok")], true),
        page(&[item("k-8", "ok")], true),
        page(&[item("k-1", "ok")], false),
    ];
    let server = Server::answering(pages);
    let provider = http(&listing(&server.url(), PAGED));
    assert_eq!(ask(&provider, &refund()), Found::Request(Answer::Done(Some("re_k-1".into()))));
    let targets: Vec<_> = server.seen().into_iter().map(|s| s.target).collect();
    assert_eq!(
        targets,
        [
            "/charges/txn-1/refunds?limit=2",
            "/charges/txn-1/refunds?limit=2&after=re_k-9&page=k-1",
            "/charges/txn-1/refunds?limit=2&after=re_k-8&page=k-1",
        ]
    );
    let none = vec![page(&[item("k-0", "ok")], true), page(&[], false)];
    assert_eq!(found(PAGED, none), Found::Nothing { listed: true });
}

#[test]
fn a_list_that_is_not_whole_says_nothing() {
    let more = || page(&[item("k-0", "ok")], true);
    no_answer(found("has_more = \"/has_more\"", vec![more()]), "no next page is configured");
    no_answer(found(PAGED, vec![more(), Reply::text(400, "")]), "HTTP 400");
    no_answer(found(PAGED, vec![more(), Reply::HangUp]), "broke");
    no_answer(found(PAGED, vec![Reply::json(200, json!({ "data": [] }))]), "does not say at \"/has_more\"");
    no_answer(found(PAGED, vec![Reply::json(200, json!({ "items": [] }))]), "no list at \"/data\"");
    no_answer(found(PAGED, vec![Reply::text(200, "<html>")]), "no JSON");
    no_answer(
        found(PAGED, vec![Reply::json(404, json!({ "error": "no such charge", "data": [] }))]),
        "no such charge",
    );
    // The same page again and again.
    no_answer(found(PAGED, vec![more()]), "the same page");
}

#[test]
fn where_nothing_says_whether_it_is_whole_the_key_may_be_forgotten() {
    let one = || vec![page(&[item("k-0", "ok")], false)];
    assert_eq!(found("", one()), Found::Nothing { listed: false });
    assert_eq!(found("whole = true", one()), Found::Nothing { listed: true });
}

#[test]
fn pages_by_cursor_and_by_url() {
    let cursor = "next_at = \"/cursor\"\nnext = { c = \"{next}\" }";
    let pages = vec![
        Reply::json(200, json!({ "data": [], "cursor": "a&b" })),
        Reply::json(200, json!({ "data": [], "cursor": null })),
    ];
    let server = Server::answering(pages);
    let provider = http(&listing(&server.url(), cursor));
    assert_eq!(ask(&provider, &refund()), Found::Nothing { listed: true });
    assert_eq!(server.seen()[1].target, "/charges/txn-1/refunds?limit=2&c=a%26b");

    let by_url = "next_url = \"/links/next\"";
    let pages = vec![
        Reply::json(200, json!({ "data": [], "links": { "next": "/more?x=1" } })),
        Reply::json(200, json!({ "data": [item("k-1", "ok")] })),
    ];
    let server = Server::answering(pages);
    let provider = http(&listing(&server.url(), by_url));
    assert_eq!(ask(&provider, &refund()), Found::Request(Answer::Done(Some("re_k-1".into()))));
    assert_eq!(server.seen()[1].target, "/more?x=1");

    // Whatever the answer says, our key goes to no other host.
    let other = Server::answering([Reply::json(200, json!({ "data": [] }))]);
    let next = json!({ "data": [], "links": { "next": format!("{}/more", other.url()) } });
    no_answer(found(by_url, vec![Reply::json(200, next)]), "on another host");
    assert_eq!(other.seen().len(), 0);
}

#[test]
fn what_does_not_fit_the_request_is_unknown() {
    let mut other = item("k-1", "ok");
    other["amount"] = 10.into();
    let Found::Request(answer) = found(PAGED, vec![page(&[other.clone()], false)]) else { panic!() };
    is_unknown(answer, "10 minor units under this key, not 1000");
    other["amount"] = Value::Null;
    let Found::Request(answer) = found(PAGED, vec![page(&[other], false)]) else { panic!() };
    is_unknown(answer, "without an amount");
    let Found::Request(answer) = found(PAGED, vec![page(&[item("k-1", "ok"), item("k-1", "wait")], false)])
    else {
        panic!()
    };
    is_unknown(answer, "2 of them under one key");
    let retried = found(PAGED, vec![page(&[item("k-1", "no"), item("k-1", "ok")], false)]);
    assert_eq!(retried, Found::Request(Answer::Done(Some("re_k-1".into()))));
}
