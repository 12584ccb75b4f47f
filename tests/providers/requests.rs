//! What leaves: templates, and that no id changes a request's shape.

use serde_json::json;

use super::*;
use crate::common::server::{Reply, Server};

/// Ids as a ledger may hold them.
const NASTY: [&str; 9] = [
    "a/b",
    "a?b=c&amount=1#d",
    "a\"b\\c",
    "支付 7",
    "a&amount=999999",
    "a%2Fb",
    "{key}",
    "a\r\nX-Evil: 1",
    "...",
];

fn everywhere(url: &str, body: &str) -> String {
    format!(
        r#"
        base_url = "{url}/v2/"
        [refund]
        method = "POST"
        path = "/charges/{{provider_txn_id}}/refunds"
        headers = {{ Idempotency-Key = "{{key}}" }}
        query = {{ "who&where" = "{{tenant_id}}", id = "{{provider_txn_id}}" }}
        {body}
        when = [{{ status = 200, means = "done" }}]
        "#
    )
}

fn ok() -> Server {
    Server::answering([Reply::json(200, json!({}))])
}

#[test]
fn fields_stand_where_templates_name_them() {
    let server = ok();
    let body = r#"json = { charge = { id = "{provider_txn_id}", ours = "{payment_id}" }, amount = "{amount_minor}",
        text = "{text:amount_minor}", major = "{amount_major}", all = ["{charge_minor}", "{currency_lower}", 7, true],
        note = "{{{reason}}} of {currency}", key = "{key}" }"#;
    assert_eq!(send(&http(&everywhere(&server.url(), body)), &refund()), Answer::Done(None));
    let seen = server.only();
    assert_eq!((seen.method.as_str(), seen.path()), ("POST", "/v2/charges/txn-1/refunds"));
    assert_eq!(seen.header("content-type"), Some("application/json"));
    assert_eq!(
        seen.json(),
        json!({ "charge": { "id": "txn-1", "ours": "P-1" }, "amount": 1000, "text": "1000", "major": "10.00",
            "all": [1000, "cny", 7, true], "note": "{paid twice} of CNY", "key": "k-1" })
    );
}

#[test]
fn no_id_changes_the_shape_of_a_url_json_or_form() {
    for id in NASTY {
        let mut request = refund();
        request.charge.provider_txn_id = Some(id.into());
        request.charge.tenant_id = id.into();
        for body in [
            r#"json = { a = "{provider_txn_id}", amount = "{amount_minor}" }"#,
            r#"form = { "a[b]" = "{provider_txn_id}", amount = "{amount_minor}" }"#,
        ] {
            let server = ok();
            assert_eq!(send(&http(&everywhere(&server.url(), body)), &request), Answer::Done(None), "{id}");
            let seen = server.only();
            let parts: Vec<_> = seen.path().split('/').collect();
            assert_eq!(parts.len(), 5, "{id}: {}", seen.target);
            let there = percent_encoding::percent_decode_str(parts[3]).decode_utf8().unwrap();
            assert_eq!(there, id);
            let mut query = seen.query();
            query.sort();
            assert_eq!(query, [("id".into(), id.into()), ("who&where".into(), id.into())]);
            assert_eq!(seen.header("x-evil"), None);
            if seen.header("content-type") == Some("application/json") {
                assert_eq!(seen.json(), json!({ "a": id, "amount": 1000 }));
            } else {
                let form = seen.form();
                assert_eq!(form, [("a[b]".into(), id.into()), ("amount".into(), "1000".into())]);
            }
        }
    }
}

#[test]
fn what_would_change_the_request_is_not_sent() {
    let server = ok();
    let url = server.url();
    let mut request = refund();
    for dots in [".", ".."] {
        request.charge.provider_txn_id = Some(dots.into());
        is_not_sent(send(&http(&everywhere(&url, "")), &request), "made of dots");
    }
    request.charge.provider_txn_id = Some("a\r\nX-Evil: 1".into());
    let in_header = everywhere(&url, "").replace(
        "headers = { Idempotency-Key = \"{key}\" }",
        r#"headers = { Idempotency-Key = "{key}", X-Charge = "{provider_txn_id}" }"#,
    );
    is_not_sent(
        send(&http(&in_header), &request),
        "the header x-charge would hold characters that no header can",
    );
    assert_eq!(server.seen().len(), 0);
}

#[test]
fn what_a_template_names_and_the_charge_lacks_is_not_sent() {
    let server = ok();
    let provider = http(&everywhere(&server.url(), ""));
    for lacking in [None, Some(String::new())] {
        let mut request = refund();
        request.charge.provider_txn_id = lacking;
        is_not_sent(send(&provider, &request), "the charge has no provider_txn_id, which the request needs");
    }
    is_not_sent(send(&provider, &void()), "no void is configured");
    let by_reference = plain(&server.url()).replace("/refunds/{key}", "/refunds/{reference}");
    no_answer(ask(&http(&by_reference), &refund()), "the request has no reference");
    assert_eq!(server.seen().len(), 0);
}

#[test]
fn a_variant_is_for_ids_that_begin_so() {
    let server = ok();
    let variant = r#"
        [[refund.variant]]
        provider_txn_id = ["pi_", "pj_"]
        path = "/intents"
        form = { intent = "{provider_txn_id}" }
        when = [{ status = 200, means = "accepted" }]
        "#;
    // The operation's own rules go before its variants.
    let all = everywhere(&server.url(), "form = { charge = \"{provider_txn_id}\" }") + variant;
    let provider = http(&all);
    let mut request = refund();
    assert_eq!(send(&provider, &request), Answer::Done(None));
    request.charge.provider_txn_id = Some("pi_7".into());
    assert_eq!(send(&provider, &request), Answer::Accepted(None));
    let seen = server.seen();
    assert_eq!(seen[0].form(), [("charge".into(), "txn-1".into())]);
    assert_eq!((seen[1].path(), seen[1].form()), ("/v2/intents", vec![("intent".into(), "pi_7".into())]));
}
