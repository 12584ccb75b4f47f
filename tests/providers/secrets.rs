//! Secrets come from elsewhere, and are told nowhere.

use onefold::providers::http::HttpSettings;
use serde_json::json;

use super::*;
use crate::common::server::{Reply, Server};

fn secret(url: &str) -> String {
    format!(
        "secrets.token = {{ env = \"PAY_TOKEN\" }}\n{}",
        idempotent(url)
            .replace("Idempotency-Key =", "Authorization = \"Bearer {secret:token}\", Idempotency-Key =")
            .replace(
                "json = {",
                "query = { t = \"{secret:token}\" }\n        json = { token = \"{secret:token}\","
            )
    )
}

/// The token in every form in which it left.
fn forms() -> [String; 4] {
    [
        TOKEN.to_owned(),
        "sk_live%2F%22ab%2Bc%26d%22".to_owned(),
        "sk_live/\\\"ab+c&d\\\"".to_owned(),
        url::form_urlencoded::byte_serialize(TOKEN.as_bytes()).collect(),
    ]
}

#[test]
fn they_are_sent_and_nowhere_told() {
    // The provider sends all that it got back, in its reason, its reference and its status.
    for status in [200, 400, 401, 409, 500] {
        let server = Server::new(move |seen| {
            let echo = format!("{} {} {:?}", seen.target, seen.body, seen.headers);
            let done = if status == 200 { "done" } else { &echo };
            Reply::json(status, json!({ "why": echo, "id": echo, "status": done }))
        });
        let provider = http(&secret(&server.url()));
        let told = format!("{:?}", send(&provider, &refund()));
        let seen = &server.seen()[0];
        assert_eq!(seen.header("authorization"), Some(format!("Bearer {TOKEN}").as_str()));
        assert_eq!(seen.json()["token"], TOKEN);
        assert_eq!(seen.query(), [("t".into(), TOKEN.into())]);
        for form in forms() {
            assert!(!told.contains(&form), "{status}: {told}");
        }
        assert!(told.contains("***"), "{told}");
        let told = format!("{:?}", ask(&provider, &refund()));
        assert!(forms().iter().all(|form| !told.contains(form)), "{told}");
        for shown in provider.shown(&refund()) {
            let shown = format!("{shown:?}");
            assert!(forms().iter().all(|form| !shown.contains(form)), "{shown}");
            assert!(!shown.contains("refund\"") || shown.contains("Bearer ***"), "{shown}");
        }
    }
}

#[test]
fn errors_of_the_way_name_no_secret() {
    let told = format!("{:?}", send(&http(&secret("http://127.0.0.1:1")), &refund()));
    assert!(forms().iter().all(|form| !told.contains(form)), "{told}");
}

fn from_file(mode: u32, text: &str) -> Result<String, String> {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("token");
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    let server = Server::answering([Reply::json(200, json!({ "status": "done" }))]);
    let with_file = secret(&server.url()).replace("{ env = \"PAY_TOKEN\" }", "{ file = \"token\" }");
    let mut settings: HttpSettings = toml::from_str(&with_file).unwrap();
    settings.beside(dir.path());
    let provider = settings.provider(|_| None).map_err(|e| format!("{e} {:?}", e.hint))?;
    let _ = send(&provider, &refund());
    Ok(server.only().header("authorization").unwrap().to_owned())
}

#[test]
fn a_file_lies_beside_the_configuration_and_only_its_owner_may_read_it() {
    assert_eq!(from_file(0o600, "abc\n"), Ok("Bearer abc".to_owned()));
    let error = from_file(0o644, "abc\n").unwrap_err();
    assert!(
        error.contains("secrets.token")
            && error.contains("others than its owner")
            && error.contains("chmod 600"),
        "{error}"
    );
    assert!(from_file(0o600, "\n").unwrap_err().contains("secrets.token is empty"));
}

#[test]
fn a_variable_that_is_not_set_is_named() {
    let settings: HttpSettings = toml::from_str(&secret("http://127.0.0.1:1")).unwrap();
    let Err(error) = settings.provider(|_| None) else { panic!() };
    assert!(error.message.contains("PAY_TOKEN is not set"), "{error}");
    assert!(error.hint.unwrap().contains("export PAY_TOKEN="));
}
