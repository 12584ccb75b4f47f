//! What answers mean.

use serde_json::json;

use super::*;
use crate::common::server::{Reply, Server};

#[track_caller]
fn told(reply: Reply) -> Answer {
    let server = Server::answering([reply]);
    let answer = send(&http(&plain(&server.url())), &refund());
    server.only();
    answer
}

#[test]
fn the_first_rule_that_fits_holds() {
    assert_eq!(
        told(Reply::json(200, json!({ "status": "done", "id": "re_1" }))),
        Answer::Done(Some("re_1".into()))
    );
    assert_eq!(
        told(Reply::json(202, json!({ "status": "pending", "id": 7 }))),
        Answer::Accepted(Some("7".into()))
    );
    for status in [400, 422, 423] {
        is_refused(told(Reply::json(status, json!({ "why": "already disputed" }))), "already disputed");
    }
    is_refused(told(Reply::text(422, "")), "HTTP 422");
    is_not_sent(told(Reply::json(401, json!({ "why": "who are you?" }))), "who are you?");
}

#[test]
fn what_fits_no_rule_is_unknown() {
    is_unknown(told(Reply::json(200, json!({ "status": "new" }))), "HTTP 200");
    is_unknown(told(Reply::json(200, json!({ "status": 7 }))), "HTTP 200");
    is_unknown(told(Reply::json(200, json!([]))), "HTTP 200");
    is_unknown(told(Reply::text(200, "")), "HTTP 200");
    is_unknown(told(Reply::text(200, "<html>welcome</html>")), "a body that is no JSON");
    // Not even by its status: a proxy may have written it. A rule may say that this is fine.
    is_unknown(told(Reply::text(422, "<html>blocked</html>")), "a body that is no JSON");
    is_not_sent(told(Reply::text(401, "who are you?")), "HTTP 401");
    // A conflict over the key is no refusal: the other request of this key may be carried out.
    is_unknown(told(Reply::json(409, json!({ "why": "in use" }))), "HTTP 409: in use");
    is_unknown(told(Reply::json(404, json!({}))), "HTTP 404");
    is_unknown(told(Reply::json(429, json!({}))), "HTTP 429");
    // A rule about a body holds for 2xx only, where it does not say otherwise.
    is_unknown(told(Reply::json(500, json!({ "status": "done" }))), "HTTP 500");
    is_unknown(told(Reply::json(503, json!({ "status": "pending" }))), "HTTP 503");
}

#[test]
fn a_redirect_is_not_followed() {
    for status in [301, 302, 303, 307, 308] {
        let elsewhere = Server::answering([Reply::json(200, json!({ "status": "done" }))]);
        let to = format!("{}/refunds", elsewhere.url());
        is_unknown(told(Reply::text(status, "").with("location", &to)), &format!("HTTP {status}"));
        assert_eq!(elsewhere.seen().len(), 0);
    }
}

#[test]
fn a_done_of_another_amount_is_unknown() {
    let server = Server::answering([Reply::json(200, json!({ "status": "done", "amount": 999 }))]);
    let text = plain(&server.url()).replace("[refund]", "[refund]\namount = \"/amount\"");
    is_unknown(send(&http(&text), &refund()), "gave back 999 minor units, not 1000");
}

#[test]
fn texts_are_matched_at_their_ends() {
    let text = |url: &str| {
        plain(url).replace("\"/status\" = \"done\"", "\"/status\" = [\"ok*\", \"*fine\", \"*go*\"]")
    };
    for (status, fits) in
        [("ok", true), ("okay", true), ("so fine", true), ("a go b", true), ("not ok", false)]
    {
        let server = Server::answering([Reply::json(200, json!({ "status": status }))]);
        assert_eq!(send(&http(&text(&server.url())), &refund()) == Answer::Done(None), fits, "{status}");
    }
}

/// Sends, is told that it is so already, and is asked.
fn already(query: Reply) -> Answer {
    let server = Server::new(move |seen| match seen.method.as_str() {
        "POST" => Reply::json(400, json!({ "why": "nothing is left" })),
        _ => query.clone(),
    });
    let text = plain(&server.url()).replace(
        "means = \"refused\" },\n            { status = 401",
        "means = \"already_done\" },\n            { status = 401",
    );
    send(&http(&text), &refund())
}

#[test]
fn what_is_so_already_is_asked_about() {
    let done = Reply::json(200, json!({ "status": "done", "id": "re_1" }));
    assert_eq!(already(done), Answer::Done(Some("re_1".into())));
    is_refused(already(Reply::text(410, "")), "not by this request: nothing is left");
    is_unknown(already(Reply::text(404, "")), "nothing is left");
    is_unknown(already(Reply::text(400, "")), "nothing is left");
}

#[test]
fn a_query_finds_the_request_or_nothing_or_does_not_answer() {
    let asked = |reply: Reply| {
        let server = Server::answering([reply]);
        let found = ask(&http(&plain(&server.url())), &refund());
        assert_eq!(server.seen()[0].target, "/refunds/k-1");
        found
    };
    assert_eq!(
        asked(Reply::json(200, json!({ "status": "done", "id": "re_1" }))),
        Found::Request(Answer::Done(Some("re_1".into())))
    );
    assert_eq!(asked(Reply::json(200, json!({ "status": "new" }))), Found::Request(Answer::Accepted(None)));
    let refused = asked(Reply::json(200, json!({ "status": "failed", "why": "expired" })));
    assert_eq!(refused, Found::Request(Answer::Refused("expired".into())));
    assert_eq!(asked(Reply::text(404, "")), Found::Nothing { listed: false });
    assert_eq!(asked(Reply::text(410, "")), Found::Nothing { listed: true });
    for (reply, why) in [
        (Reply::text(404, "<html>no such page</html>"), "HTTP 404 with a body that is no JSON"),
        (Reply::json(200, json!({ "status": "?" })), "HTTP 200"),
        (Reply::text(200, "<html>"), "no JSON"),
        (Reply::text(401, ""), "HTTP 401"),
        (Reply::text(400, ""), "HTTP 400"),
    ] {
        no_answer(asked(reply), why);
    }
}

#[test]
fn without_a_query_it_cannot_be_asked() {
    let text = plain("http://127.0.0.1:1");
    let (without, _) = text.split_once("[query]").unwrap();
    no_answer(ask(&http(without), &refund()), "the provider cannot be asked");
    let ChargeState::NoAnswer(why) = state(&http(without), &charge()) else { panic!() };
    assert!(why.contains("cannot be asked"), "{why}");
}
