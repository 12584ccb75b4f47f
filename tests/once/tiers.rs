//! The tiers by themselves: which windows make sense, and what becomes of a record.

use onefold::core::idempotency::{KeyState, Named, Retention};
use onefold::core::retention::{Aging, RetentionPolicy, Ties, Verdict, Why, key_sha256};
use onefold::core::status::Ledger;
use onefold::core::time::Span;
use proptest::prelude::*;

use super::machine::at;

const DAY: i64 = 24 * 3600;

fn policy(client_retry: i64, queue: i64, longest_replay: i64, rest: [i64; 3]) -> RetentionPolicy {
    let [client_retry, queue, longest_replay] = [client_retry, queue, longest_replay].map(Span::from_secs);
    let [replay, dispute, archive] = rest.map(Span::from_secs);
    RetentionPolicy { client_retry, queue, longest_replay, replay, dispute, archive }
}

fn usual() -> RetentionPolicy {
    policy(120, DAY, 0, [7 * DAY, 180 * DAY, 1095 * DAY])
}

fn aging(state: KeyState, retention: Retention, keep_for: i64) -> Aging {
    Aging { state, retention, last_seen: at(0), keep_for: Span::from_secs(keep_for) }
}

#[test]
fn a_window_that_ends_before_what_can_still_return_is_named_with_the_flag_to_raise() {
    let rows = [
        (usual(), None),
        (policy(60, 60, 60, [60, 60, 60]), None),
        (
            policy(8 * DAY, DAY, 0, [7 * DAY, 180 * DAY, 1095 * DAY]),
            Some(("--replay", 8 * DAY, "a client retries")),
        ),
        (
            policy(120, 8 * DAY, 0, [7 * DAY, 180 * DAY, 1095 * DAY]),
            Some(("--replay", 8 * DAY, "a queue redelivers")),
        ),
        (
            policy(120, DAY, 30 * DAY, [7 * DAY, 180 * DAY, 1095 * DAY]),
            Some(("--replay", 30 * DAY, "the longest replay")),
        ),
        (
            policy(120, DAY, 0, [7 * DAY, 6 * DAY, 1095 * DAY]),
            Some(("--dispute", 7 * DAY, "the replay window")),
        ),
        (
            policy(120, DAY, 0, [7 * DAY, 180 * DAY, 179 * DAY]),
            Some(("--archive", 180 * DAY, "the dispute window")),
        ),
        (
            policy(120, DAY, 0, [DAY - 1, 180 * DAY, 1095 * DAY]),
            Some(("--replay", DAY, "a queue redelivers")),
        ),
    ];
    for (policy, expected) in rows {
        let short = policy.too_short();
        let told = short.as_ref().map(|short| (short.flag, short.needed.micros() / 1_000_000, short.because));
        assert_eq!(told, expected, "{policy:?}");
    }
    let told = policy(120, DAY, 0, [3600, DAY, DAY]).too_short().unwrap().to_string();
    assert_eq!(told, "--replay 1h is shorter than a queue redelivers, 24h");
}

#[test]
fn a_record_goes_down_when_its_windows_are_over_and_never_up() {
    use KeyState::*;
    use Retention::*;
    let rows = [
        (aging(Succeeded, Hot, 0), DAY - 1, Verdict::Stays(Why::Window)),
        (aging(Succeeded, Hot, 0), DAY, Verdict::Moves(Replay)),
        (aging(Failed, Hot, 0), 7 * DAY, Verdict::Moves(Dispute)),
        (aging(Failed, Hot, 0), 180 * DAY, Verdict::Moves(Archive)),
        (aging(Succeeded, Hot, 9 * DAY), 9 * DAY - 1, Verdict::Stays(Why::KeepFor)),
        (aging(Succeeded, Hot, 9 * DAY), 9 * DAY, Verdict::Moves(Dispute)),
        (aging(Succeeded, Hot, 60), DAY - 1, Verdict::Stays(Why::Window)),
        (aging(Succeeded, Replay, 0), 7 * DAY - 1, Verdict::Stays(Why::Window)),
        (aging(Succeeded, Replay, 0), 7 * DAY, Verdict::Moves(Dispute)),
        (aging(Succeeded, Dispute, 0), 180 * DAY - 1, Verdict::Stays(Why::Window)),
        (aging(Succeeded, Dispute, 0), 180 * DAY, Verdict::Moves(Archive)),
        // As after a policy that was lengthened: it does not come back.
        (aging(Succeeded, Dispute, 0), 60, Verdict::Stays(Why::Window)),
        // The database's clock went back.
        (aging(Succeeded, Hot, 0), -60, Verdict::Stays(Why::Window)),
        (aging(Processing, Hot, 0), 999 * DAY, Verdict::Stays(Why::NotEnded)),
        (aging(FailedRetryable, Hot, 0), 999 * DAY, Verdict::Stays(Why::NotEnded)),
        (aging(Unknown, Hot, 0), 999 * DAY, Verdict::Stays(Why::NotEnded)),
    ];
    for (record, seconds, expected) in rows {
        assert_eq!(usual().judge(&record, None, at(seconds)), expected, "{record:?} at {seconds}");
        if let Verdict::Moves(_) = expected {
            for why in [Why::OpenPlan, Why::UnfinishedStep] {
                assert_eq!(usual().judge(&record, Some(why), at(seconds)), Verdict::Stays(why));
            }
        }
    }
}

#[test]
fn what_is_tied_is_told_by_the_graver_reason_and_by_tenant_and_ledger() {
    let mut ties = Ties::default();
    let (tenant, key) = ("t".into(), "k".into());
    ties.tie_row(&tenant, Ledger::Orders, "O-1".into(), Why::UnfinishedStep);
    ties.tie_row(&tenant, Ledger::Orders, "O-1".into(), Why::OpenPlan);
    ties.tie_row(&tenant, Ledger::Payments, "P-1".into(), Why::OpenPlan);
    let of = |names: &[Named]| ties.of(&tenant, &key, names);
    assert_eq!(of(&[Named::order("O-1")]), Some(Why::UnfinishedStep));
    assert_eq!(of(&[Named::order("O-2"), Named::payment("P-1")]), Some(Why::OpenPlan));
    assert_eq!(of(&[Named::payment("O-1"), Named::order("P-1")]), None);
    assert_eq!(ties.of(&"other".into(), &key, &[Named::order("O-1")]), None);
    assert_eq!(of(&[]), None);
}

#[test]
fn a_key_in_the_archive_is_called_by_tenant_and_key_which_do_not_run_into_each_other() {
    assert_ne!(key_sha256(&"ab".into(), &"c".into()), key_sha256(&"a".into(), &"bc".into()));
    // As a service computes it: 00 00 00 00 00 00 00 01 't' 00 00 00 00 00 00 00 01 'k'.
    let by_hand = onefold::core::hash::sha256(b"\0\0\0\0\0\0\0\x01t\0\0\0\0\0\0\0\x01k");
    assert_eq!(key_sha256(&"t".into(), &"k".into()), by_hand);
}

/// Windows that make sense, and some whose next is as long.
fn windows() -> impl Strategy<Value = RetentionPolicy> {
    prop::array::uniform6(0..300_i64).prop_map(|[a, b, c, d, e, f]| {
        let replay = a.max(b).max(c) + d;
        policy(a, b, c, [replay, replay + e, replay + e + f])
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_forgotten_that_can_still_return(
        policy in windows(),
        state in prop::sample::select(KeyState::ALL),
        retention in prop::sample::select(&Retention::ALL[..3]),
        keep_for in 0..1000_i64,
        age in -10..1300_i64,
    ) {
        prop_assert_eq!(policy.too_short(), None);
        let age_span = Span::from_secs(age);
        let Verdict::Moves(to) = policy.judge(&aging(state, retention, keep_for), None, at(age)) else {
            return Ok(());
        };
        prop_assert!(state.is_terminal() && to > retention);
        prop_assert!(age_span >= policy.window(retention));
        prop_assert!(age_span >= policy.client_retry && age_span >= policy.queue, "its result may be asked for");
        prop_assert!(retention != Retention::Hot || age >= keep_for);
        if to > Retention::Replay {
            prop_assert!(age_span >= policy.longest_replay, "its parts may be asked for");
        }
        // Where it is then, it stays until time goes on.
        let there = aging(state, to, keep_for);
        prop_assert_eq!(policy.judge(&there, None, at(age)), Verdict::Stays(Why::Window));
        if to < Retention::Archive {
            prop_assert!(age_span < policy.window(to));
        }
    }

    #[test]
    fn a_policy_is_shorter_where_it_moves_something_earlier(a in windows(), b in windows(), age in 0..1000_i64) {
        let age = Span::from_secs(age);
        if a.tier(age) > b.tier(age) {
            prop_assert!(!a.shorter_than(&b).is_empty());
        }
        prop_assert!(a.shorter_than(&a).is_empty());
    }
}
