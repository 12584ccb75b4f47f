//! The table of the state machine, row by row.

use onefold::core::idempotency::Decision::*;
use onefold::core::idempotency::KeyState::*;
use onefold::core::idempotency::{
    Archived, Ending, KEY_MOVES, KeyRecord, KeyState, RequestDigest, Retention, decide, decide_archived,
    ending,
};
use onefold::core::ids::IdempotencyKey;
use onefold::core::time::{Span, Timestamp};

pub fn key() -> IdempotencyKey {
    "refund-O-502".into()
}

pub fn digest(parts: &[(&str, &str)]) -> RequestDigest {
    parts.iter().fold(RequestDigest::default(), |digest, (name, value)| {
        digest.part(&key(), name, Some(value.as_bytes()))
    })
}

pub fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros(0).plus(Span::from_secs(seconds))
}

/// Held by `a` until 60 s.
pub fn record(state: KeyState, may_have_run: bool) -> KeyRecord {
    KeyRecord {
        tenant_id: "default".into(),
        key: key(),
        digest: digest(&[("argv[0]", "refund"), ("argv[1]", "O-502")]),
        state,
        owner: "a".to_owned(),
        lease_until: at(60),
        token: 1,
        version: 1,
        may_have_run,
        result_ref: None,
        exit_code: None,
        result: None,
        note: None,
        attempts: 1,
        first_seen: at(0),
        last_seen: at(0),
        keep_for: Span::from_secs(3600),
        retention: Retention::Hot,
    }
}

#[test]
fn a_request_does_what_the_state_of_its_key_says() {
    let same = record(Unknown, false).digest;
    let live = StillProcessing { holder: "a".to_owned(), left: Span::from_secs(1) };
    let rows = [
        (None, 0, Take),
        (Some((Processing, false)), 59, live.clone()),
        (Some((Processing, true)), 59, live),
        (Some((Processing, false)), 60, TakeOver),
        (Some((Processing, true)), 60, FenceOff),
        (Some((Succeeded, true)), 0, ReturnResult),
        (Some((FailedRetryable, true)), 0, Retry),
        (Some((Failed, true)), 0, ReturnResult),
        (Some((Unknown, true)), 0, SettleFirst),
        (Some((Unknown, true)), 999, SettleFirst),
    ];
    for (there, seconds, expected) in rows {
        let there = there.map(|(state, ran)| record(state, ran));
        assert_eq!(decide(there.as_ref(), &same, at(seconds)), expected, "{there:?} at {seconds}");
    }
}

#[test]
fn another_request_is_refused_in_every_state_and_its_parts_are_named() {
    let other = digest(&[("argv[0]", "refund"), ("argv[1]", "O-503"), ("stdin", "x")]);
    for &state in KeyState::ALL {
        for seconds in [0, 60, 999] {
            let differing = vec!["argv[1]".to_owned(), "stdin".to_owned()];
            assert_eq!(
                decide(Some(&record(state, true)), &other, at(seconds)),
                Refuse { differing },
                "{state}"
            );
        }
    }
}

/// What is left of a record.
pub fn archived(record: &KeyRecord) -> Archived {
    Archived {
        digest: record.digest.whole(),
        state: record.state,
        exit_code: record.exit_code,
        result_ref: record.result_ref.clone(),
        first_seen: record.first_seen,
        last_seen: record.last_seen,
        archived_at: record.last_seen,
    }
}

#[test]
fn an_archived_key_is_done_for_its_own_request_and_refused_to_another() {
    for state in [Succeeded, Failed] {
        let record = record(state, true);
        assert_eq!(decide_archived(&archived(&record), &record.digest), ReturnCode);
        let other = digest(&[("argv[0]", "refund"), ("argv[1]", "O-503")]);
        assert_eq!(decide_archived(&archived(&record), &other), Refuse { differing: vec![] });
    }
}

#[test]
fn a_lower_tier_decides_as_the_full_record_does_and_names_what_it_still_can() {
    let same = record(Succeeded, true).digest;
    let other = digest(&[("argv[0]", "refund"), ("argv[1]", "O-503")]);
    for retention in [Retention::Replay, Retention::Dispute] {
        let mut lower = KeyRecord { retention, result: None, ..record(Succeeded, true) };
        let mut differing = vec!["argv[1]".to_owned()];
        if retention == Retention::Dispute {
            (lower.digest, differing) = (RequestDigest::folded(same.whole()), vec![]);
            assert_eq!((lower.digest.whole(), lower.digest.names().count()), (same.whole(), 0));
        }
        assert_eq!(decide(Some(&lower), &same, at(0)), ReturnResult, "{retention}");
        assert_eq!(decide(Some(&lower), &other, at(0)), Refuse { differing }, "{retention}");
    }
}

#[test]
fn a_digest_tells_null_from_empty_and_one_key_from_another_and_names_what_only_one_has() {
    let of = |value: Option<&[u8]>| RequestDigest::default().part(&key(), "env A", value);
    assert_eq!(of(None).differing(&of(Some(b""))), ["env A"]);
    assert_eq!(of(Some(b"x")).differing(&of(Some(b"x"))), [""; 0]);
    let elsewhere = RequestDigest::default().part(&"other".into(), "env A", Some(b"x"));
    assert_ne!(of(Some(b"x")).whole(), elsewhere.whole());
    assert_eq!(digest(&[]).differing(&digest(&[("a", "1"), ("b", "2")])), ["a", "b"]);
    assert_eq!(
        digest(&[("a", "1"), ("b", "2")]).differing(&digest(&[("b", "1"), ("c", "2")])),
        ["a", "b", "c"]
    );
}

#[test]
fn an_end_is_success_failure_or_not_known() {
    let rows = [
        (Ending::Exited(0), Succeeded),
        (Ending::Exited(1), Failed),
        (Ending::Exited(75), FailedRetryable),
        (Ending::Exited(76), Failed),
        (Ending::Exited(128), Failed),
        (Ending::Exited(137), Unknown),
        (Ending::Exited(160), Failed),
        (Ending::Exited(255), Failed),
        (Ending::Killed(9), Unknown),
        (Ending::TimedOut, Unknown),
        (Ending::LeaseLost, Unknown),
    ];
    for (end, state) in rows {
        assert_eq!(ending(end, &[75]), state, "{end:?}");
        assert!(Processing.may_become(state));
    }
    assert_eq!(ending(Ending::Exited(75), &[]), Failed);
    assert_eq!(ending(Ending::Exited(137), &[137]), FailedRetryable, "said by who knows the command");
}

#[test]
fn only_the_listed_moves_are_legal_and_nothing_leaves_an_end() {
    let pairs = KeyState::ALL.iter().flat_map(|from| KeyState::ALL.iter().map(move |to| (*from, *to)));
    assert_eq!(pairs.filter(|(from, to)| from.may_become(*to)).count(), KEY_MOVES.len());
    for end in KeyState::ALL.iter().filter(|state| state.is_terminal()) {
        assert!(KeyState::ALL.iter().all(|to| !end.may_become(*to)), "{end}");
    }
}
