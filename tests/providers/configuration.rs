//! What a configuration gets wrong is found when it is read, and named.

use crate::common::databases::Kind;
use crate::common::site::Site;

const GOOD: &str = r#"
[providers.pay]
kind = "http"
base_url = "https://pay.example.com"
secrets.token = { env = "PAY_TOKEN" }
headers = { Authorization = "Bearer {secret:token}" }
values = { shop = "S-1" }

[providers.pay.refund]
method = "POST"
path = "/refunds"
idempotent = true
json = { key = "{key}", shop = "{shop}" }
when = [{ status = "2xx", means = "done" }]

[providers.pay.charge]
method = "GET"
path = "/charges/{payment_id}"
amount = "/amount"
refunded = "/refunded"
when = [{ status = 200, means = "captured" }]
"#;

/// The error of a configuration in which one thing was replaced by another; it is found by any verb.
#[track_caller]
fn fails(from: &str, to: &str, saying: &[&str]) {
    assert!(GOOD.contains(from), "{from}");
    let site = Site::new(Kind::Sqlite);
    std::fs::write(site.folder().join("onefold.toml"), GOOD.replacen(from, to, 1)).unwrap();
    let ran = site.run(&["status"]);
    assert_eq!(ran.code, Some(2), "{ran}");
    saying.iter().fold(ran, |ran, text| ran.warns(text));
}

#[test]
fn a_good_one_is_taken_whatever_the_environment_holds() {
    let site = Site::new(Kind::Sqlite);
    std::fs::write(site.folder().join("onefold.toml"), GOOD).unwrap();
    site.run(&["init"]).ends(0);
    site.run(&["provider", "test", "pay"])
        .fails(2, &["[providers.pay]: secrets.token: the variable PAY_TOKEN is not set"]);
}

#[test]
fn keys_that_there_are_not() {
    fails(
        "idempotent = true",
        "idempotnet = true",
        &["onefold.toml: line ", "refund.idempotnet", "unknown field"],
    );
    fails("values =", "valuse =", &["line ", "valuse"]);
    fails("means = \"done\"", "means = \"paid\"", &["refund.when[0].means", "paid"]);
    fails("kind = \"http\"", "kind = \"https\"", &["line ", "https"]);
    fails("kind = \"http\"", "kind = \"http\"\npreset = \"paypal\"", &["paypal", "stripe and adyen"]);
    fails("[providers.pay.refund]", "[providers.pay.refunds]", &["there is no refund"]);
}

#[test]
fn plain_http_is_for_this_machine() {
    fails("https://pay", "http://pay", &["is not encrypted", "hint: write https://", "http://127.0.0.1"]);
    fails(
        "\"/refunds\"",
        "\"http://elsewhere.example.com/x\"",
        &["[providers.pay]: refund", "is not encrypted"],
    );
    fails("https://pay", "ftp://pay", &["neither https nor http"]);
    fails("https://pay.example.com", "pay.example.com", &["is no URL"]);
    fails("https://pay", "https://ada:s3cret@pay", &["a URL holds a user or a password"]);
    fails("\"/refunds\"", "\"https://{payment_id}/x\"", &["a field in its host"]);
    for host in ["http://localhost:80", "http://127.0.0.1", "http://[::1]:8080"] {
        let site = Site::new(Kind::Sqlite);
        let text = GOOD.replace("https://pay.example.com", host);
        std::fs::write(site.folder().join("onefold.toml"), text).unwrap();
        site.run(&["init"]).ends(0);
    }
}

#[test]
fn a_secret_in_the_file_itself_is_refused_and_not_told() {
    for (name, value) in
        [("Authorization", "Bearer sk_live_1"), ("X-API-Key", "sk_live_1"), ("X-Pay-Token", "sk_live_1")]
    {
        let site = Site::new(Kind::Sqlite);
        let text = GOOD.replace(
            "headers = { Authorization = \"Bearer {secret:token}\" }",
            &format!("headers = {{ {name} = \"{value}\" }}"),
        );
        std::fs::write(site.folder().join("onefold.toml"), text).unwrap();
        site.run(&["status"])
            .fails(2, &[&format!("headers.{name} holds a secret"), "secrets.token = { env = "])
            .does_not_print("sk_live_1");
    }
}

#[test]
fn templates() {
    fails(
        "{key}",
        "{kye}",
        &["[providers.pay]: refund: json.key", "there is no field kye", "hint: there are payment_id"],
    );
    fails("{key}", "{key", &["a brace without its other"]);
    fails("{secret:token}", "{secret:tokn}", &["there is no secret tokn"]);
    fails(
        "\"/charges/{payment_id}\"",
        "\"/charges/{amount_minor}\"",
        &["charge: path", "a charge request has no amount_minor"],
    );
    fails("shop = \"S-1\"", "key = \"S-1\"", &["values.key: every request has a field of this name"]);
    fails("json = { key = \"{key}\", shop", "json = { shop", &["idempotent = true, and no {key} is sent"]);
    let without = "idempotent = true\njson = { key = \"{key}\", shop";
    fails(without, "json = { shop", &["refund: no {key} is sent, by which the refund could be known again"]);
    fails("\"/refunds\"", "\"/refunds?a=b\"", &["has a query in it"]);
}

#[test]
fn rules_and_places() {
    fails(
        "means = \"done\"",
        "means = \"captured\"",
        &["refund: when[0]: means = \"captured\" is no answer to a refund"],
    );
    fails("status = \"2xx\", means", "means", &["a rule fits every answer"]);
    fails("\"2xx\"", "\"7xx\"", &["status = \"7xx\" is no HTTP status"]);
    fails("\"2xx\"", "\"300-200\"", &["is no HTTP status"]);
    fails("\"/amount\"", "\"amount\"", &["charge: amount = \"amount\" is no JSON pointer"]);
    fails("refunded = \"/refunded\"\n", "", &["charge: amount and refunded are missing"]);
    fails("method = \"GET\"", "method = \"DELETE\"", &["charge: method = \"DELETE\" would not only ask"]);
    fails("method = \"POST\"", "method = \"SEND\"", &["method = \"SEND\" is none"]);
    fails("when = [{ status = \"2xx\", means = \"done\" }]", "", &["no answer means anything"]);
}

#[test]
fn spans_and_counts() {
    fails(
        "values =",
        "timeout = \"2m\"\nvalues =",
        &["timeout = \"2m\" is longer than 40 s", "holds for a minute"],
    );
    fails("values =", "timeout = \"soon\"\nvalues =", &["timeout = \"soon\""]);
    fails("values =", "key_lifetime = \"-1h\"\nvalues =", &["key_lifetime = \"-1h\""]);
    fails("values =", "attempts = 0\nvalues =", &["attempts must be 1 to 10"]);
}
