//! Who moves money: providers over HTTP and by a program, against a server on loopback that answers,
//! misbehaves and keeps what it was sent; and whole commands through them.

mod common;

#[path = "providers/answers.rs"]
mod answers;
#[path = "providers/charges.rs"]
mod charges;
#[path = "providers/command.rs"]
mod command;
#[path = "providers/configuration.rs"]
mod configuration;
#[path = "providers/exec.rs"]
mod exec;
#[path = "providers/faults.rs"]
mod faults;
#[path = "providers/lists.rs"]
mod lists;
#[path = "providers/presets.rs"]
mod presets;
#[path = "providers/readme.rs"]
mod readme;
#[path = "providers/repeats.rs"]
mod repeats;
#[path = "providers/requests.rs"]
mod requests;
#[path = "providers/secrets.rs"]
mod secrets;
#[path = "providers/tls.rs"]
mod tls;
#[path = "providers/whole.rs"]
mod whole;

use common::databases::wait;
use onefold::core::time::Timestamp;
use onefold::providers::http::{Http, HttpSettings};
use onefold::providers::{Answer, Ask, Charge, ChargeState, Found, Provider, Request};

/// What the variable PAY_TOKEN holds: characters that JSON, URLs and forms write otherwise.
const TOKEN: &str = "sk_live/\"ab+c&d\"";

/// A provider of this configuration, without `[providers.NAME]`.
#[track_caller]
fn http(text: &str) -> Http {
    let settings: HttpSettings = toml::from_str(text).unwrap_or_else(|e| panic!("{e}"));
    settings.provider(|name| (name == "PAY_TOKEN").then(|| TOKEN.to_owned())).unwrap()
}

/// A charge of 1000 CNY.
fn charge() -> Charge {
    Charge {
        tenant_id: "t".into(),
        payment_id: "P-1".into(),
        provider: "pay".into(),
        provider_txn_id: Some("txn-1".into()),
        amount_minor: 1000,
        refunded_minor: 0,
        currency: "CNY".parse().unwrap(),
        shard: 0,
    }
}

/// A refund of all of it, under the key `k-1`.
fn refund() -> Request {
    let charge = charge();
    let ask = Ask::Refund { amount_minor: charge.amount_minor, currency: charge.currency };
    Request { key: "k-1".into(), charge, ask, reason: "paid twice".into(), reference: None }
}

fn void() -> Request {
    Request { ask: Ask::Void, ..refund() }
}

fn send(provider: &dyn Provider, request: &Request) -> Answer {
    wait(provider.send(request, Timestamp::from_micros(0))).unwrap()
}

fn ask(provider: &dyn Provider, request: &Request) -> Found {
    wait(provider.ask(request, Timestamp::from_micros(0))).unwrap()
}

fn state(provider: &dyn Provider, charge: &Charge) -> ChargeState {
    wait(provider.charge_state(charge, Timestamp::from_micros(0))).unwrap()
}

/// A configuration whose refund and query mean what their `status` says.
fn plain(url: &str) -> String {
    format!(
        r#"
        base_url = "{url}"
        timeout = "1s"
        [refund]
        method = "POST"
        path = "/refunds"
        json = {{ key = "{{key}}", amount = "{{amount_minor}}" }}
        reference = "/id"
        reason = "/why"
        when = [
            {{ at = {{ "/status" = "done" }}, means = "done" }},
            {{ at = {{ "/status" = "pending" }}, means = "accepted" }},
            {{ status = [400, "422-423"], means = "refused" }},
            {{ status = 401, means = "not_sent", unreadable = true }},
        ]
        [query]
        method = "GET"
        path = "/refunds/{{key}}"
        reference = "/id"
        reason = "/why"
        when = [
            {{ at = {{ "/status" = "done" }}, means = "done" }},
            {{ at = {{ "/status" = ["pending", "new"] }}, means = "accepted" }},
            {{ at = {{ "/status" = "failed" }}, means = "refused" }},
            {{ status = 404, means = "nothing" }},
            {{ status = 410, means = "nothing", listed = true }},
        ]
        "#
    )
}

/// The same, with repeats that are safe.
fn idempotent(url: &str) -> String {
    plain(url).replace("[refund]", "[refund]\nidempotent = true\nheaders = { Idempotency-Key = \"{key}\" }")
}

/// What is not known, and why.
#[track_caller]
fn is_unknown(answer: Answer, why: &str) {
    let Answer::Unknown(told) = answer else { panic!("{answer:?}") };
    assert!(told.contains(why), "{told}");
}

#[track_caller]
fn is_not_sent(answer: Answer, why: &str) {
    let Answer::NotSent(told) = answer else { panic!("{answer:?}") };
    assert!(told.contains(why), "{told}");
}

#[track_caller]
fn is_refused(answer: Answer, why: &str) {
    let Answer::Refused(told) = answer else { panic!("{answer:?}") };
    assert!(told.contains(why), "{told}");
}

#[track_caller]
fn no_answer(found: Found, why: &str) {
    let Found::NoAnswer(told) = found else { panic!("{found:?}") };
    assert!(told.contains(why), "{told}");
}
