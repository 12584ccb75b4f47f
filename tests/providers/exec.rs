//! A program that moves the money: what it is given, what it may answer, and what becomes of its faults.

use std::path::{Path, PathBuf};

use onefold::providers::exec::{Exec, ExecSettings};
use onefold::providers::{Doing, Shown};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;

/// A provider whose program is this shell text, in a folder of its own.
struct Program {
    exec: Exec,
    dir: TempDir,
}

fn settings(command: &[&str], more: &str) -> ExecSettings {
    toml::from_str(&format!("command = {}\n{more}", json!(command))).unwrap()
}

fn program(script: &str) -> Program {
    let dir = tempfile::tempdir().unwrap();
    let script = format!("cd {}; tee input >/dev/null; {script}", dir.path().display());
    let exec = settings(&["sh", "-c", &script], "timeout = \"1s\"").provider().unwrap();
    Program { exec, dir }
}

fn answering(answer: Value) -> Exec {
    program(&format!("echo '{answer}'")).keep()
}

impl Program {
    fn keep(self) -> Exec {
        // The folder stays for as long as the tests run.
        let _ = self.dir.keep();
        self.exec
    }

    fn input(&self) -> Value {
        let text = std::fs::read_to_string(self.dir.path().join("input")).unwrap();
        serde_json::from_str(&text).unwrap()
    }
}

#[test]
fn the_program_is_given_one_object() {
    let program = program("echo '{\"answer\":\"done\",\"reference\":\"r-1\"}'");
    assert_eq!(send(&program.exec, &refund()), Answer::Done(Some("r-1".into())));
    let refund_input = json!({
        "do": "refund", "key": "k-1", "payment_id": "P-1", "provider": "pay", "provider_txn_id": "txn-1",
        "tenant_id": "t", "amount_minor": 1000, "amount_major": "10.00", "currency": "CNY", "reason": "paid twice",
        "reference": null,
    });
    assert_eq!(program.input(), refund_input);
    let _ = send(&program.exec, &void());
    let input = program.input();
    assert_eq!((&input["do"], &input["amount_minor"]), (&"void".into(), &Value::Null));
    let _ = ask(&program.exec, &Request { reference: Some("r-1".into()), ..refund() });
    let input = program.input();
    assert_eq!(
        (&input["do"], &input["key"], &input["reference"]),
        (&"query".into(), &"k-1".into(), &"r-1".into())
    );
    let _ = state(&program.exec, &charge());
    let input = program.input();
    assert_eq!(
        (&input["do"], &input["key"], &input["amount_minor"]),
        (&"charge".into(), &Value::Null, &1000.into())
    );
    let shown: Vec<Shown> = program.exec.shown(&refund());
    assert_eq!(shown[0].json["stdin"], refund_input);
    assert_eq!(
        shown.iter().map(|s| s.doing).collect::<Vec<_>>(),
        [Doing::Refund, Doing::Query, Doing::Charge]
    );
}

#[test]
fn every_answer_to_a_request() {
    let told = |answer: Value| send(&answering(answer), &refund());
    assert_eq!(told(json!({ "answer": "accepted", "reference": "r" })), Answer::Accepted(Some("r".into())));
    is_refused(told(json!({ "answer": "refused", "why": "disputed" })), "disputed");
    is_not_sent(told(json!({ "answer": "not_sent", "why": "closed today" })), "closed today");
    is_unknown(told(json!({ "answer": "unknown" })), "does not know");
    is_unknown(told(json!({ "answer": "not_known" })), "is none");
    is_unknown(told(json!({})), "is none");
}

#[test]
fn every_answer_to_a_question() {
    let told = |answer: Value| ask(&answering(answer), &refund());
    assert_eq!(told(json!({ "answer": "done" })), Found::Request(Answer::Done(None)));
    assert_eq!(told(json!({ "answer": "accepted" })), Found::Request(Answer::Accepted(None)));
    assert_eq!(told(json!({ "answer": "refused", "why": "x" })), Found::Request(Answer::Refused("x".into())));
    assert_eq!(told(json!({ "answer": "not_known" })), Found::Nothing { listed: false });
    assert_eq!(told(json!({ "answer": "not_known", "listed": true })), Found::Nothing { listed: true });
    no_answer(told(json!({ "answer": "unknown", "why": "later" })), "later");
    no_answer(told(json!({ "answer": "not_sent" })), "does not say");
    no_answer(told(json!({})), "does not say");
}

#[test]
fn every_state_of_a_charge() {
    let told = |answer: Value| state(&answering(answer), &charge());
    for (word, state) in [
        ("authorized", ChargeState::Authorized),
        ("failed", ChargeState::Failed),
        ("voided", ChargeState::Voided),
        ("disputed", ChargeState::Disputed),
        ("charged_back", ChargeState::ChargedBack),
        ("not_known", ChargeState::NotKnown),
    ] {
        assert_eq!(told(json!({ "status": word })), state);
    }
    let captured = json!({ "status": "captured", "amount_minor": 1000, "refunded_minor": 1,
        "captured_at": "2026-09-21T14:13:20Z", "refund_refused": true });
    assert_eq!(
        told(captured),
        ChargeState::Captured {
            captured_at: Timestamp::parse_rfc3339("2026-09-21T14:13:20Z"),
            amount_minor: 1000,
            refunded_minor: 1,
            currency: "CNY".parse().unwrap(),
            refund_refused: true,
        }
    );
    for short in [json!({ "status": "captured", "amount_minor": 1000 }), json!({ "why": "later" })] {
        let ChargeState::NoAnswer(_) = told(short) else { panic!() };
    }
}

#[test]
fn what_cannot_be_started_is_not_sent_and_all_else_is_unknown() {
    let nowhere = settings(&["./no-such-program"], "").provider().unwrap();
    is_not_sent(send(&nowhere, &refund()), "./no-such-program: cannot be run");
    no_answer(ask(&nowhere, &refund()), "cannot be run");
    for (script, why) in [
        ("echo '{\"answer\":\"done\"}'; echo broken >&2; exit 3", "broken"),
        ("sleep 20", "did not end within 1 s"),
        ("echo done", "not as it must be"),
        ("echo '{\"answer\":\"paid\"}'", "not as it must be"),
        ("echo '{\"answer\":\"done\",\"amount\":7}'", "not as it must be"),
        ("true", "not as it must be"),
    ] {
        let program = program(script);
        is_unknown(send(&program.exec, &refund()), why);
        no_answer(ask(&program.exec, &refund()), why);
        let ChargeState::NoAnswer(_) = state(&program.exec, &charge()) else { panic!() };
    }
}

#[test]
fn what_the_configuration_gets_wrong_is_named() {
    let fails = |command: &[&str], more: &str, why: &str| {
        let Err(error) = settings(command, more).provider() else { panic!("{why}") };
        assert!(error.message.contains(why) && error.hint.is_some(), "{error}");
    };
    fails(&[], "", "names no program");
    fails(&[""], "", "names no program");
    fails(&["sh"], "timeout = \"50s\"", "longer than 45 s");
    fails(&["sh"], "key_lifetime = \"x\"", "key_lifetime");
    assert!(toml::from_str::<ExecSettings>("command = [\"sh\"]\nshell = true").is_err());
}

/// The example of the README, on books of its own.
pub fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/providers/pay.sh")
}

#[test]
fn the_example_does_the_same_request_once() {
    let books = tempfile::tempdir().unwrap();
    let (script, folder) = (example(), books.path().display().to_string());
    let exec = settings(&[script.to_str().unwrap(), &folder], "").provider().unwrap();
    assert_eq!(ask(&exec, &refund()), Found::Nothing { listed: true });
    for _ in 0..3 {
        assert_eq!(send(&exec, &refund()), Answer::Done(Some("k-1".into())));
    }
    assert_eq!(ask(&exec, &refund()), Found::Request(Answer::Done(Some("k-1".into()))));
    let moved = || std::fs::read_to_string(books.path().join("moved")).unwrap();
    assert_eq!(moved(), "refund P-1 1000 CNY\n");
    let mut other = refund();
    other.ask = Ask::Refund { amount_minor: 1, currency: other.charge.currency };
    is_unknown(send(&exec, &other), "of another request");
    for key in ["../k", "a b", "a\"b", "a\\b", ""] {
        is_not_sent(send(&exec, &Request { key: key.into(), ..refund() }), "the key cannot be read");
    }
    std::fs::create_dir(books.path().join("requests/k-2")).unwrap();
    no_answer(ask(&exec, &Request { key: "k-2".into(), ..refund() }), "its end is not known");
    is_unknown(send(&exec, &Request { key: "k-2".into(), ..refund() }), "");
    let ChargeState::NoAnswer(_) = state(&exec, &charge()) else { panic!() };
    assert_eq!(moved(), "refund P-1 1000 CNY\n");
    // A text that looks like a field of its own is none.
    let forged =
        Request { key: "k-3".into(), reason: "x\",\"key\":\"k-9\",\"do\":\"void".into(), ..refund() };
    assert_eq!(send(&exec, &forged), Answer::Done(Some("k-3".into())));
}
