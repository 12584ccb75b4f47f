//! The presets, against answers as the providers' public documentation gives them.

use serde_json::{Value, json};

use super::*;
use crate::common::server::{Reply, Seen, Server};

fn preset(name: &str, url: &str) -> Http {
    http(&format!(
        "preset = \"{name}\"\nbase_url = \"{url}\"\nattempts = 1\nsecrets.key = {{ env = \"PAY_TOKEN\" }}\nvalues.merchant_account = \"ShopECOM\""
    ))
}

fn of(id: &str, ask: Ask) -> Request {
    let mut request = Request { ask, ..refund() };
    request.charge.currency = "USD".parse().unwrap();
    request.charge.provider_txn_id = Some(id.into());
    request
}

fn back(id: &str) -> Request {
    of(id, Ask::Refund { amount_minor: 1000, currency: "USD".parse().unwrap() })
}

/// What a preset makes of an answer, and what it sent.
fn told(name: &str, request: &Request, reply: Reply) -> (Answer, Vec<Seen>) {
    let server = Server::answering([reply]);
    let answer = send(&preset(name, &server.url()), request);
    (answer, server.seen())
}

fn stripe(status: u16, body: Value) -> Answer {
    told("stripe", &back("ch_1NirD8"), Reply::json(status, body)).0
}

fn a_refund(status: &str) -> Value {
    json!({ "id": "re_1Nispe", "object": "refund", "amount": 1000, "charge": "ch_1NirD8", "currency": "usd",
        "metadata": { "onefold_key": "k-1" }, "payment_intent": null, "reason": "duplicate", "status": status,
        "failure_reason": if status == "failed" { json!("expired_or_canceled_card") } else { Value::Null } })
}

fn error(kind: &str, code: Option<&str>, message: &str) -> Value {
    json!({ "error": { "type": kind, "code": code, "message": message } })
}

#[test]
fn stripe_refunds_a_charge_and_a_payment_intent() {
    for (id, field) in [("ch_1", "charge"), ("py_1", "charge"), ("pi_1", "payment_intent")] {
        let (answer, seen) = told("stripe", &back(id), Reply::json(200, a_refund("succeeded")));
        assert_eq!(answer, Answer::Done(Some("re_1Nispe".into())));
        assert_eq!((seen[0].method.as_str(), seen[0].target.as_str()), ("POST", "/v1/refunds"));
        assert_eq!(seen[0].header("idempotency-key"), Some("k-1"));
        assert_eq!(seen[0].header("authorization"), Some(format!("Bearer {TOKEN}").as_str()));
        assert_eq!(seen[0].header("content-type"), Some("application/x-www-form-urlencoded"));
        let mut form = seen[0].form();
        form.sort();
        let mut expected = [
            (field, id),
            ("amount", "1000"),
            ("metadata[onefold_key]", "k-1"),
            ("metadata[onefold_payment]", "P-1"),
            ("reason", "duplicate"),
        ]
        .map(|(n, v)| (n.to_owned(), v.to_owned()));
        expected.sort();
        assert_eq!(form, expected);
    }
    assert_eq!(preset("stripe", "http://127.0.0.1:1").key_lifetime().unwrap().to_string(), "24h");
}

#[test]
fn stripe_answers() {
    assert_eq!(stripe(200, a_refund("pending")), Answer::Accepted(Some("re_1Nispe".into())));
    assert_eq!(stripe(200, a_refund("requires_action")), Answer::Accepted(Some("re_1Nispe".into())));
    is_refused(stripe(200, a_refund("failed")), "expired_or_canceled_card");
    is_refused(stripe(200, a_refund("canceled")), "HTTP 200");
    is_unknown(stripe(200, a_refund("brand_new")), "HTTP 200");
    let invalid = "invalid_request_error";
    is_refused(
        stripe(400, error(invalid, Some("charge_disputed"), "It was charged back.")),
        "It was charged back.",
    );
    is_refused(
        stripe(404, error(invalid, Some("resource_missing"), "No such charge: 'ch_1'")),
        "No such charge",
    );
    is_refused(
        stripe(400, error(invalid, None, "Refund amount is greater than unrefunded amount")),
        "greater than",
    );
    let other_mode =
        "No such charge: 'ch_1'; a similar object exists in live mode, but a test mode key was used";
    is_not_sent(stripe(404, error(invalid, Some("resource_missing"), other_mode)), "similar object");
    is_not_sent(
        stripe(401, error(invalid, None, "Invalid API Key provided: sk_test_***")),
        "Invalid API Key",
    );
    is_not_sent(stripe(429, error("rate_limit_error", None, "Too many requests")), "Too many requests");
    let reused = "Keys for idempotent requests can only be used with the same parameters";
    is_unknown(stripe(400, error("idempotency_error", None, reused)), reused);
    is_unknown(stripe(409, error("idempotency_error", Some("idempotency_key_in_use"), "in use")), "in use");
    is_unknown(stripe(500, error("api_error", None, "oops")), "HTTP 500");
}

/// Stripe with these answers to POST and GET.
fn both(post: Value, get: Value) -> Server {
    Server::new(move |seen| match seen.method.as_str() {
        "POST" => Reply::json(if post.get("error").is_some() { 400 } else { 200 }, post.clone()),
        _ => Reply::json(200, get.clone()),
    })
}

#[test]
fn stripe_says_already_refunded_and_the_list_says_by_whom() {
    let already =
        error("invalid_request_error", Some("charge_already_refunded"), "Charge has already been refunded.");
    let list = |items: Value| json!({ "object": "list", "data": items, "has_more": false });
    let server = both(already.clone(), list(json!([a_refund("succeeded")])));
    assert_eq!(send(&preset("stripe", &server.url()), &back("ch_1")), Answer::Done(Some("re_1Nispe".into())));
    let mut other = a_refund("succeeded");
    other["metadata"] = json!({});
    let server = both(already, list(json!([other])));
    is_refused(send(&preset("stripe", &server.url()), &back("ch_1")), "Charge has already been refunded.");
}

#[test]
fn stripe_lists_the_refunds_of_a_charge() {
    let mut first = a_refund("succeeded");
    first["metadata"] = json!({});
    first["id"] = json!("re_0");
    let server = Server::answering([
        Reply::json(200, json!({ "object": "list", "data": [first], "has_more": true })),
        Reply::json(200, json!({ "object": "list", "data": [a_refund("pending")], "has_more": false })),
    ]);
    let found = ask(&preset("stripe", &server.url()), &back("ch_1"));
    assert_eq!(found, Found::Request(Answer::Accepted(Some("re_1Nispe".into()))));
    let pairs = |at: usize| {
        let mut pairs = server.seen()[at].query();
        pairs.sort();
        pairs.into_iter().map(|(n, v)| format!("{n}={v}")).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(
        (pairs(0), pairs(1)),
        ("charge=ch_1 limit=100".into(), "charge=ch_1 limit=100 starting_after=re_0".into())
    );
    let server =
        Server::answering([Reply::json(200, json!({ "object": "list", "data": [], "has_more": false }))]);
    assert_eq!(ask(&preset("stripe", &server.url()), &back("pi_1")), Found::Nothing { listed: true });
    assert!(server.only().query().contains(&("payment_intent".into(), "pi_1".into())));
    let server =
        Server::answering([Reply::json(404, error("invalid_request_error", None, "No such charge"))]);
    no_answer(ask(&preset("stripe", &server.url()), &back("ch_1")), "No such charge");
}

#[test]
fn stripe_voids_only_what_is_not_captured() {
    let charge = |captured: bool| {
        json!({ "id": "ch_1", "object": "charge", "status": "succeeded", "captured": captured,
        "refunded": false, "amount": 1000, "amount_captured": if captured { 1000 } else { 0 }, "amount_refunded": 0,
        "currency": "usd", "disputed": false })
    };
    let server = both(a_refund("succeeded"), charge(false));
    assert_eq!(
        send(&preset("stripe", &server.url()), &of("ch_1", Ask::Void)),
        Answer::Done(Some("re_1Nispe".into()))
    );
    assert!(server.seen()[1].form().iter().all(|(name, _)| name != "amount"));
    let server = both(a_refund("succeeded"), charge(true));
    is_not_sent(send(&preset("stripe", &server.url()), &of("ch_1", Ask::Void)), "is captured");
    server.only();

    let intent = |status: &str| json!({ "id": "pi_1", "object": "payment_intent", "status": status });
    let (answer, seen) = told("stripe", &of("pi_1", Ask::Void), Reply::json(200, intent("canceled")));
    assert_eq!(answer, Answer::Done(Some("pi_1".into())));
    assert_eq!(seen[0].target, "/v1/payment_intents/pi_1/cancel");
    assert_eq!(seen[0].form(), [("cancellation_reason".into(), "duplicate".into())]);
    assert_eq!(seen[0].header("idempotency-key"), Some("k-1"));
    let unexpected =
        error("invalid_request_error", Some("payment_intent_unexpected_state"), "status of succeeded");
    let server = both(unexpected.clone(), intent("succeeded"));
    is_refused(send(&preset("stripe", &server.url()), &of("pi_1", Ask::Void)), "status of succeeded");
    let server = both(unexpected, intent("canceled"));
    assert_eq!(send(&preset("stripe", &server.url()), &of("pi_1", Ask::Void)), Answer::Done(None));
}

#[test]
fn stripe_tells_of_charges() {
    let state_of = |id: &str, status: u16, body: Value| {
        let server = Server::answering([Reply::json(status, body)]);
        let state = state(&preset("stripe", &server.url()), &back(id).charge);
        (state, server.only().target)
    };
    let charge = |more: Value| {
        let mut body = json!({ "id": "ch_1", "status": "succeeded", "captured": true, "refunded": false, "amount": 1000,
            "amount_captured": 1000, "amount_refunded": 300, "currency": "usd", "disputed": false,
            "created": 1, "balance_transaction": { "id": "txn_1", "created": 1_790_000_000 } });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        state_of("ch_1", 200, body)
    };
    let captured = |refunded_minor| ChargeState::Captured {
        captured_at: Some(Timestamp::from_micros(1_790_000_000_000_000)),
        amount_minor: 1000,
        refunded_minor,
        currency: "USD".parse().unwrap(),
        refund_refused: false,
    };
    assert_eq!(
        charge(json!({})),
        (captured(300), "/v1/charges/ch_1?expand%5B%5D=balance_transaction".into())
    );
    assert_eq!(charge(json!({ "disputed": true })).0, ChargeState::Disputed);
    assert_eq!(charge(json!({ "status": "failed" })).0, ChargeState::Failed);
    assert_eq!(charge(json!({ "captured": false })).0, ChargeState::Authorized);
    assert_eq!(charge(json!({ "captured": false, "refunded": true })).0, ChargeState::Voided);
    assert!(matches!(charge(json!({ "status": "pending" })).0, ChargeState::NoAnswer(_)));
    let missing = |message: &str| error("invalid_request_error", Some("resource_missing"), message);
    assert_eq!(state_of("ch_1", 404, missing("No such charge")).0, ChargeState::NotKnown);
    // The wrong key says nothing about the charge.
    let other_mode = missing("No such charge; a similar object exists in live mode");
    assert!(matches!(state_of("ch_1", 404, other_mode).0, ChargeState::NoAnswer(_)));
    let intent = json!({ "id": "pi_1", "status": "succeeded", "currency": "usd", "latest_charge": { "disputed": false,
        "amount_captured": 1000, "amount_refunded": 0, "balance_transaction": { "created": 1_790_000_000 } } });
    let (state, target) = state_of("pi_1", 200, intent);
    assert_eq!(state, captured(0));
    assert!(target.starts_with("/v1/payment_intents/pi_1?expand"), "{target}");
    for (status, state) in [("requires_capture", ChargeState::Authorized), ("canceled", ChargeState::Voided)]
    {
        assert_eq!(state_of("pi_1", 200, json!({ "status": status })).0, state);
    }
}

#[test]
fn money_that_a_provider_counts_otherwise_is_not_moved() {
    for (name, code) in [("stripe", "ISK"), ("stripe", "UGX"), ("adyen", "CLP"), ("adyen", "IDR")] {
        let currency = code.parse().unwrap();
        let mut request = of("ch_1", Ask::Refund { amount_minor: 500, currency });
        request.charge.currency = currency;
        let (answer, seen) = told(name, &request, Reply::json(200, a_refund("succeeded")));
        is_not_sent(answer, "another minor unit than ISO 4217");
        assert_eq!(seen.len(), 0);
        let ChargeState::NoAnswer(_) = state(&preset(name, "http://127.0.0.1:1"), &request.charge) else {
            panic!()
        };
    }
}

#[test]
fn adyen_takes_requests_and_cannot_be_asked() {
    let received = |original: &str| {
        json!({ "merchantAccount": "ShopECOM", "paymentPspReference": original,
        "pspReference": "QFQTPCQ8HXSKGK82", "reference": "k-1", "status": "received" })
    };
    let request = back("993617895204576J");
    let (answer, seen) = told("adyen", &request, Reply::json(201, received("993617895204576J")));
    assert_eq!(answer, Answer::Accepted(Some("QFQTPCQ8HXSKGK82".into())));
    assert_eq!(seen[0].target, "/payments/993617895204576J/refunds");
    assert_eq!((seen[0].header("x-api-key"), seen[0].header("idempotency-key")), (Some(TOKEN), Some("k-1")));
    assert_eq!(
        seen[0].json(),
        json!({ "merchantAccount": "ShopECOM", "amount": { "value": 1000, "currency": "USD" }, "reference": "k-1" })
    );
    let (answer, seen) = told("adyen", &of("9936", Ask::Void), Reply::json(201, received("9936")));
    assert_eq!(answer, Answer::Accepted(Some("QFQTPCQ8HXSKGK82".into())));
    assert_eq!(seen[0].target, "/payments/9936/cancels");
    assert_eq!(seen[0].json(), json!({ "merchantAccount": "ShopECOM", "reference": "k-1" }));
    let failed = |status: u16, code: &str| {
        let body = json!({ "status": status, "errorCode": code, "message": "Original pspReference required",
            "errorType": "validation", "pspReference": "8816" });
        told("adyen", &request, Reply::json(status, body)).0
    };
    is_refused(failed(422, "167"), "Original pspReference required");
    is_unknown(failed(422, "704"), "HTTP 422");
    is_not_sent(failed(401, "000"), "Original");
    is_unknown(failed(500, "905"), "HTTP 500");
    let provider = preset("adyen", "http://127.0.0.1:1");
    no_answer(ask(&provider, &request), "cannot be asked");
    assert_eq!(provider.key_lifetime().unwrap().to_string(), "168h");
}

#[test]
fn what_stands_over_a_preset_replaces_it_key_by_key() {
    let server = Server::answering([Reply::json(200, a_refund("succeeded"))]);
    let provider = http(&format!(
        r#"
        preset = "stripe"
        base_url = "{}"
        secrets.key = {{ env = "PAY_TOKEN" }}
        headers.Stripe-Account = "acct_1"
        [refund]
        path = "/v2/refunds"
        "#,
        server.url()
    ));
    assert_eq!(send(&provider, &back("ch_1")), Answer::Done(Some("re_1Nispe".into())));
    let seen = server.only();
    assert_eq!((seen.target.as_str(), seen.header("stripe-account")), ("/v2/refunds", Some("acct_1")));
    assert_eq!(seen.header("authorization"), Some(format!("Bearer {TOKEN}").as_str()));
    // A preset says what it needs.
    let settings: onefold::providers::http::HttpSettings = toml::from_str("preset = \"adyen\"").unwrap();
    let error = settings.check().unwrap_err();
    assert!(error.hint.unwrap().contains("secrets.key = { env"), "{}", error.message);
}
