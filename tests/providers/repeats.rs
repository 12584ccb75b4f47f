//! Repeats: only where they are safe, under the same key, not at once, and not for ever.

use std::time::Duration;

use serde_json::json;

use super::*;
use crate::common::server::{Reply, Server, nobody};

fn done() -> Reply {
    Reply::json(200, json!({ "status": "done", "id": "re_1" }))
}

#[test]
fn a_repeat_carries_the_same_key_and_amount() {
    for first in [Reply::HangUp, Reply::text(500, ""), Reply::text(502, "<html>"), Reply::text(409, "{}")] {
        let server = Server::answering([first.clone(), first, done()]);
        assert_eq!(send(&http(&idempotent(&server.url())), &refund()), Answer::Done(Some("re_1".into())));
        let seen = server.seen();
        assert_eq!(seen.len(), 3);
        assert!(seen.iter().all(|s| s.header("idempotency-key") == Some("k-1") && s.body == seen[0].body));
        let (one, two) = (seen[1].at - seen[0].at, seen[2].at - seen[1].at);
        assert!(one >= Duration::from_millis(140) && two >= Duration::from_millis(290), "{one:?} {two:?}");
    }
}

#[test]
fn without_idempotency_there_is_no_repeat() {
    for reply in [Reply::HangUp, Reply::text(500, ""), Reply::text(429, "").with("retry-after", "0")] {
        let server = Server::answering([reply, done()]);
        is_unknown(send(&http(&plain(&server.url())), &refund()), "");
        server.only();
    }
}

#[test]
fn it_gives_up_after_so_many() {
    let server = Server::answering([Reply::HangUp]);
    is_unknown(send(&http(&idempotent(&server.url())), &refund()), "the connection broke");
    assert_eq!(server.seen().len(), 3);
    let server = Server::answering([Reply::HangUp]);
    let once = format!("attempts = 1\n{}", idempotent(&server.url()));
    is_unknown(send(&http(&once), &refund()), "the connection broke");
    server.only();
}

#[test]
fn what_the_provider_said_clearly_is_not_repeated() {
    for (status, body) in [(400, json!({})), (401, json!({})), (200, json!({ "status": "?" }))] {
        let server = Server::answering([Reply::json(status, body)]);
        let _ = send(&http(&idempotent(&server.url())), &refund());
        server.only();
    }
}

#[test]
fn retry_after_is_waited_for_and_not_for_ever() {
    for status in [429, 503] {
        let server = Server::answering([Reply::text(status, "").with("retry-after", "1"), done()]);
        assert_eq!(send(&http(&idempotent(&server.url())), &refund()), Answer::Done(Some("re_1".into())));
        let seen = server.seen();
        assert!(seen[1].at - seen[0].at >= Duration::from_secs(1), "{:?}", seen[1].at - seen[0].at);
        // Longer than a claim on a step holds: not now.
        let server = Server::answering([Reply::text(status, "").with("retry-after", "3600"), done()]);
        is_unknown(send(&http(&idempotent(&server.url())), &refund()), &format!("HTTP {status}"));
        server.only();
        let date = "Wed, 21 Oct 2015 07:28:00 GMT";
        let server = Server::answering([Reply::text(status, "").with("retry-after", date), done()]);
        assert_eq!(send(&http(&idempotent(&server.url())), &refund()), Answer::Done(Some("re_1".into())));
    }
}

#[test]
fn while_it_asks_to_be_left_alone_nothing_leaves() {
    let server = Server::answering([Reply::text(429, "").with("retry-after", "3600"), done()]);
    let provider = http(&plain(&server.url()));
    is_unknown(send(&provider, &refund()), "HTTP 429");
    is_not_sent(send(&provider, &refund()), "asks to be left alone for another 900 s");
    no_answer(ask(&provider, &refund()), "asks to be left alone");
    server.only();
    // A short while is waited for.
    let server = Server::answering([Reply::text(503, "").with("retry-after", "1"), done()]);
    let provider = http(&plain(&server.url()));
    is_unknown(send(&provider, &refund()), "HTTP 503");
    assert_eq!(send(&provider, &refund()), Answer::Done(Some("re_1".into())));
    let seen = server.seen();
    assert!(seen[1].at - seen[0].at >= Duration::from_millis(990));
}

#[test]
fn not_sent_after_a_lost_answer_is_unknown() {
    let server = Server::answering([Reply::HangUp, Reply::json(401, json!({ "why": "who?" }))]);
    is_unknown(send(&http(&idempotent(&server.url())), &refund()), "the last one: who?");
}

/// A try is lost, the next is refused: it may be refused because the first was carried out.
fn refused_after_lost(query: Reply) -> Answer {
    let posts = std::sync::atomic::AtomicUsize::new(0);
    let server = Server::new(move |seen| match seen.method.as_str() {
        "POST" if posts.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 0 => Reply::HangUp,
        "POST" => Reply::json(400, json!({ "why": "nothing is left" })),
        _ => query.clone(),
    });
    send(&http(&idempotent(&server.url())), &refund())
}

#[test]
fn a_refusal_after_a_lost_answer_is_asked_about() {
    assert_eq!(refused_after_lost(done()), Answer::Done(Some("re_1".into())));
    // Even where it lists all: the first may be under way there still.
    is_unknown(refused_after_lost(Reply::text(410, "")), "nothing is left");
    is_unknown(refused_after_lost(Reply::text(404, "")), "nothing is left");
    is_unknown(refused_after_lost(Reply::text(400, "")), "nothing is left");
}

#[test]
fn a_rule_may_say_that_nothing_was_done() {
    let text = |url: &str| idempotent(url).replace("{ status = 401,", "{ status = [401, 429],");
    let server = Server::answering([Reply::text(429, "").with("retry-after", "0"), done()]);
    assert_eq!(send(&http(&text(&server.url())), &refund()), Answer::Done(Some("re_1".into())));
    let server = Server::answering([Reply::text(429, "").with("retry-after", "0")]);
    is_not_sent(send(&http(&text(&server.url())), &refund()), "HTTP 429");
    assert_eq!(server.seen().len(), 3);
}

fn with_breaker(text: &str) -> String {
    format!("attempts = 1\nbreaker = {{ failures = 2, cool_down = \"400ms\" }}\n{text}")
}

#[test]
fn after_failures_in_a_row_it_is_left_alone_then_probed() {
    let server =
        Server::answering([Reply::text(500, ""), Reply::text(500, ""), Reply::text(500, ""), done()]);
    let provider = http(&with_breaker(&plain(&server.url())));
    for _ in 0..2 {
        is_unknown(send(&provider, &refund()), "HTTP 500");
    }
    is_not_sent(send(&provider, &refund()), "failed 2 times in a row");
    no_answer(ask(&provider, &refund()), "is left alone");
    assert_eq!(server.seen().len(), 2);
    std::thread::sleep(Duration::from_millis(450));
    // One probe, which fails: left alone again at once.
    is_unknown(send(&provider, &refund()), "HTTP 500");
    is_not_sent(send(&provider, &refund()), "is left alone");
    std::thread::sleep(Duration::from_millis(450));
    assert_eq!(send(&provider, &refund()), Answer::Done(Some("re_1".into())));
    assert_eq!(send(&provider, &refund()), Answer::Done(Some("re_1".into())));
    assert_eq!(server.seen().len(), 5);
}

#[test]
fn refusals_and_conflicts_are_no_failures_of_the_provider() {
    let server =
        Server::answering([Reply::text(400, ""), Reply::text(409, ""), Reply::text(404, ""), done()]);
    let provider = http(&with_breaker(&plain(&server.url())));
    for _ in 0..3 {
        let _ = send(&provider, &refund());
    }
    assert_eq!(send(&provider, &refund()), Answer::Done(Some("re_1".into())));
}

#[test]
fn the_breaker_opening_between_two_tries_does_not_make_a_lost_one_unsent() {
    let server = Server::answering([Reply::HangUp]);
    let text = format!("breaker = {{ failures = 1 }}\n{}", idempotent(&server.url()));
    is_unknown(send(&http(&text), &refund()), "the connection broke");
    server.only();
    let text = format!("breaker = {{ failures = 1 }}\n{}", idempotent(&nobody()));
    is_not_sent(send(&http(&text), &refund()), "failed 1 times in a row");
}

#[test]
fn a_key_that_the_provider_does_not_go_by_is_never_taken_to_be_remembered() {
    let lifetime = |text: &str| http(text).key_lifetime().map(|span| span.to_string());
    let url = "http://127.0.0.1:1";
    assert_eq!(lifetime(&plain(url)), Some("0s".into()));
    assert_eq!(lifetime(&format!("key_lifetime = \"24h\"\n{}", plain(url))), Some("0s".into()));
    assert_eq!(lifetime(&format!("key_lifetime = \"24h\"\n{}", idempotent(url))), Some("24h".into()));
    assert_eq!(lifetime(&idempotent(url)), None);
}
