//! What a provider says of a charge.

use serde_json::{Value, json};

use super::*;
use crate::common::server::{Reply, Server};

fn asking(url: &str) -> String {
    format!(
        r#"{}
        [charge]
        method = "GET"
        path = "/charges/{{provider_txn_id}}"
        reason = "/error"
        amount = "/captured"
        refunded = "/refunded"
        currency = "/currency"
        captured_at = "/at"
        refund_refused = "/refused"
        when = [
            {{ at = {{ "/disputed" = true }}, means = "disputed" }},
            {{ at = {{ "/status" = "paid" }}, means = "captured" }},
            {{ at = {{ "/status" = "auth" }}, means = "authorized" }},
            {{ at = {{ "/status" = "void" }}, means = "voided" }},
            {{ at = {{ "/status" = "fail" }}, means = "failed" }},
            {{ at = {{ "/status" = "back" }}, means = "charged_back" }},
            {{ status = 404, means = "not_known" }},
        ]
        "#,
        plain(url)
    )
}

fn told(reply: Reply) -> ChargeState {
    let server = Server::answering([reply]);
    let state = state(&http(&asking(&server.url())), &charge());
    assert_eq!(server.seen()[0].target, "/charges/txn-1");
    state
}

fn paid(more: Value) -> ChargeState {
    let mut body = json!({ "status": "paid", "captured": 1000, "refunded": 250, "currency": "cny" });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    told(Reply::json(200, body))
}

#[test]
fn words_are_mapped() {
    for (word, state) in [
        ("auth", ChargeState::Authorized),
        ("void", ChargeState::Voided),
        ("fail", ChargeState::Failed),
        ("back", ChargeState::ChargedBack),
    ] {
        assert_eq!(told(Reply::json(200, json!({ "status": word }))), state);
    }
    assert_eq!(paid(json!({ "disputed": true })), ChargeState::Disputed);
    assert_eq!(told(Reply::text(404, "")), ChargeState::NotKnown);
}

#[test]
fn a_captured_charge_has_its_amounts_and_its_time() {
    let state = |captured_at: Option<&str>, currency: &str, refund_refused| ChargeState::Captured {
        captured_at: captured_at.map(|t| Timestamp::parse_rfc3339(t).unwrap()),
        amount_minor: 1000,
        refunded_minor: 250,
        currency: currency.parse().unwrap(),
        refund_refused,
    };
    assert_eq!(paid(json!({})), state(None, "CNY", false));
    assert_eq!(
        paid(json!({ "at": 1_790_000_000, "refused": true })),
        state(Some("2026-09-21T14:13:20Z"), "CNY", true)
    );
    assert_eq!(
        paid(json!({ "at": "2026-09-21T16:13:20+02:00", "currency": "EUR" })),
        state(Some("2026-09-21T14:13:20Z"), "EUR", false)
    );
}

#[test]
fn what_cannot_be_read_is_no_answer() {
    let no_answer = |state: ChargeState, why: &str| {
        let ChargeState::NoAnswer(told) = state else { panic!("{state:?}") };
        assert!(told.contains(why), "{told}");
    };
    no_answer(paid(json!({ "captured": 10.5 })), "without the amount that is captured");
    no_answer(paid(json!({ "refunded": -1 })), "without the amount that is refunded");
    no_answer(paid(json!({ "refunded": "0" })), "without the amount that is refunded");
    no_answer(paid(json!({ "currency": "RMB" })), "a currency that is none");
    no_answer(told(Reply::json(200, json!({ "status": "?" }))), "HTTP 200");
    no_answer(told(Reply::json(400, json!({ "error": "bad id" }))), "bad id");
    no_answer(told(Reply::HangUp), "broke");
    let server = Server::answering([Reply::text(404, "")]);
    let nameless = Charge { provider_txn_id: None, ..charge() };
    no_answer(state(&http(&asking(&server.url())), &nameless), "has no provider_txn_id");
    assert_eq!(server.seen().len(), 0);
}

#[test]
fn a_void_that_could_give_money_back_waits_for_the_word_authorized() {
    let text = |url: &str| {
        asking(url)
            + "\n[void]\nmethod = \"POST\"\npath = \"/voids\"\nonly_authorized = true\nwhen = [{ status = 200, means = \"done\" }]\n"
    };
    for (status, sent) in [("auth", true), ("paid", false), ("?", false)] {
        let server = Server::new(move |seen| match seen.method.as_str() {
            "GET" => Reply::json(
                200,
                json!({ "status": status, "captured": 1000, "refunded": 0, "currency": "CNY" }),
            ),
            _ => Reply::json(200, json!({})),
        });
        let answer = send(&http(&text(&server.url())), &void());
        match sent {
            true => assert_eq!(answer, Answer::Done(None)),
            false => is_not_sent(answer, "charge is"),
        }
        assert_eq!(server.seen().iter().any(|s| s.method == "POST"), sent, "{status}");
    }
}
