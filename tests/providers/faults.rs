//! What goes wrong on the way: what never left is told from what is not known.

use std::time::Duration;

use serde_json::json;

use super::*;
use crate::common::server::{Reply, Server, nobody};

#[test]
fn what_never_left_is_not_sent() {
    is_not_sent(send(&http(&plain(&nobody())), &refund()), "no connection to 127.0.0.1");
    let nowhere = plain("https://no-such-host.invalid");
    is_not_sent(send(&http(&nowhere), &refund()), "no connection to no-such-host.invalid");
    // The server speaks no TLS: the handshake fails, and with it everything after.
    let server = Server::answering([Reply::json(200, json!({ "status": "done" }))]);
    let tls = plain(&server.url().replace("http://", "https://"));
    is_not_sent(send(&http(&tls), &refund()), "no connection to 127.0.0.1");
    no_answer(
        ask(&http(&plain(&nobody()).replace("[refund]", "[breaker]\nfailures=9\n[refund]")), &refund()),
        "no connection",
    );
}

#[test]
fn what_may_have_left_is_unknown() {
    let done = || Reply::json(200, json!({ "status": "done" }));
    for (reply, why) in [
        (Reply::HangUp, "the connection broke"),
        (Reply::Half("{\"status\": \"done\"}".into()), "the answer (HTTP 200) broke off"),
        (Reply::Raw("\u{1}\u{2} no HTTP at all\r\n\r\n".into()), "the connection broke"),
        (Reply::Slow(Duration::from_millis(1500), Box::new(done())), "no answer within 1 s"),
    ] {
        let server = Server::answering([reply.clone()]);
        is_unknown(send(&http(&plain(&server.url())), &refund()), why);
        assert_eq!(server.seen().len(), 1, "{reply:?} goes out once");
    }
    let server = Server::answering([done()]);
    server.hang_up_next(1);
    is_unknown(send(&http(&plain(&server.url())), &refund()), "the connection broke");
    assert_eq!(server.seen().len(), 0);
}

#[test]
fn an_answer_without_end_is_unknown() {
    let server =
        Server::answering([Reply::json(200, json!({ "status": "done", "x": "x".repeat(5_000_000) }))]);
    is_unknown(send(&http(&plain(&server.url())), &refund()), "longer than");
}

#[test]
fn a_query_that_fails_is_no_answer_and_never_nothing() {
    for reply in [Reply::HangUp, Reply::Half("{}".into()), Reply::text(500, ""), Reply::text(503, "")] {
        let server = Server::answering([reply]);
        let text = format!("attempts = 2\n{}", plain(&server.url()));
        let Found::NoAnswer(_) = ask(&http(&text), &refund()) else { panic!() };
        assert_eq!(server.seen().len(), 2, "a query is safe to repeat");
    }
}
