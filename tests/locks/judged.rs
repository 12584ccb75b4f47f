//! Short histories, each of which lets two in, or does not: neither may look like the other.

use onefold::core::locks::{AT_ONCE, Audit, Audited, Certainty, Event, EventKind, Found, LockFinding, Rules};
use onefold::core::time::Timestamp;

use crate::common::site::{Ran, program, run};
use crate::story::{judged, ms, names};

/// Lines of one key: `SECONDS EVENT OWNER [#TOKEN] [LEASE-SECONDS | forever] [refused] [@NODE]`, the owner `-` where there
/// is none. Each owner has a node of its own where none is named.
fn history(text: &str) -> Vec<Event> {
    let event = |(line, text): (u64, &str)| {
        let words: Vec<_> = text.split_whitespace().collect();
        let [at, kind, owner, rest @ ..] = &words[..] else { panic!("{text}") };
        let micros = |seconds: &str| (seconds.parse::<f64>().unwrap() * 1e6).round() as i64;
        let lease = rest.iter().find(|word| word.parse::<f64>().is_ok());
        Event {
            line,
            key: "k".to_owned(),
            kind: kind.parse::<EventKind>().unwrap(),
            owner: Some(*owner).filter(|owner| *owner != "-").map(str::to_owned),
            token: rest.iter().find_map(|word| word.strip_prefix('#')).map(|token| token.parse().unwrap()),
            lease: lease.map(|seconds| ms(micros(seconds) / 1000)),
            is_forever: rest.contains(&"forever"),
            at: Timestamp::from_micros(1_800_000_000_000_000 + micros(at)),
            node: Some(match rest.iter().find_map(|word| word.strip_prefix('@')) {
                Some(node) => node.into(),
                None => format!("node-of-{owner}").into(),
            }),
            done: !rest.contains(&"refused"),
        }
    };
    (1..).zip(text.split(';').map(str::trim)).map(event).collect()
}

fn audit(text: &str, skew: i64) -> (Vec<Found>, Audited) {
    judged(&history(text), Rules { skew: ms(skew), ..Rules::default() }, ms(0))
}

/// What breaks a lock, proven.
fn deaths(text: &str) -> Vec<LockFinding> {
    let mut deaths = names(&audit(text, 0).0, Certainty::Proven);
    deaths.retain(|finding| finding.is_death());
    deaths
}

use LockFinding::*;

#[test]
fn what_was_refused_was_not_done() {
    for text in [
        "0 acquire A #1 10; 2 steal B 10 refused; 5 renew A #1 10; 6 release A #1",
        "0 acquire A #1 10; 2 acquire B 10 refused; 5 renew A #1 10; 6 release A #1",
        "0 acquire A #1 10; 1 expire - refused; 2 write A #1; 6 release A #1",
        "0 acquire A #1 10; 1 failover - refused; 2 write A #1; 6 release A #1",
    ] {
        assert_eq!(audit(text, 0).0, [], "{text}");
    }
    let refused = "0 acquire A #1 10; 1 failover - refused; 2 acquire B #2 10; 3 release B #2";
    assert_eq!(deaths(refused), [GrantedTwice]);
    // Whoever was told that its lock is gone does not hold it.
    for told in ["renew A #1 10 refused", "release A #1 refused"] {
        let text = format!("0 acquire A #1 10; 3 {told}; 4 acquire B #2 10; 5 release B #2");
        assert_eq!(names(&audit(&text, 0).0, Certainty::Proven), [OwnerMismatch], "{text}");
        assert_eq!(doubts(&text, 0), [LetGoEarly], "{text}");
    }
    let at_work = "0 acquire A 10; 3 renew A 10 refused; 3.5 renew A 10; 4 acquire B 10; 5 release B";
    assert_eq!(deaths(at_work), [GrantedTwice]);
    // A pause that was none explains nothing.
    let mut events = history("2 pause A 9 refused; 0 acquire A #1 5; 6 release A #1 refused");
    events[0].key.clear();
    events.rotate_left(1);
    let (found, _) = judged(&events, Rules::default(), ms(5000));
    assert!(found.iter().all(|f| f.finding != PauseOverLeaseEnd), "{found:#?}");
}

#[test]
fn a_renewal_proves_that_its_owner_holds_the_key() {
    for (text, expected) in [
        ("0 renew A 30; 15 acquire B 30; 25 renew B 30; 40 release B", &[GrantedTwice][..]),
        (
            "0 renew A 30; 15 acquire B 30; 20 renew A 30; 40 release B; 41 release A",
            &[GrantedTwice, ForeignRenewal],
        ),
        ("0 acquire B 30; 20 renew A 30; 25 release B", &[ForeignRenewal]),
        (
            "0 acquire A #1 30; 1 release A #1; 2 renew A #1 30; 5 acquire B #2 5; 8 release B #2",
            &[GrantedTwice],
        ),
        (
            "0 acquire A #1 30; 1 release A #1 refused; 2 renew A #1 30; 5 acquire B #2 5; 8 release B #2",
            &[GrantedTwice],
        ),
        // One that lets go in time, and one whose lease is over.
        ("0 renew A 30; 15 release A; 16 acquire B 30; 20 release B", &[]),
        ("0 renew A 30; 31 acquire B 30; 35 release B", &[]),
        // How long it holds it is not known.
        ("0 renew A; 31 acquire B 30; 35 release B", &[]),
    ] {
        assert_eq!(deaths(text), expected, "{text}");
    }
    let (_, audited) = audit("0 renew A 30; 15 release A", 0);
    assert_eq!((audited.grants, audited.unknown), (1, 1));
}

#[test]
fn a_write_of_one_who_does_not_hold_the_key_is_found_or_counted() {
    let mut many: String = "0 acquire A #1 1".to_owned();
    for i in 2..12 {
        many += &format!("; {i} acquire B{i} #{i} 1; {i}.5 release B{i} #{i}");
    }
    for (text, expected) in [
        ("0 acquire A 10; 2 write Z; 3 release A", &[ForeignWrite][..]),
        (
            "0 acquire A #1 10; 1 release A #1; 2 acquire B #2 10; 3 write A #1; 4 write B #2; 5 release B #2",
            &[ForeignWrite],
        ),
        (&format!("{many}; 20 acquire C 10; 21 write A; 22 release C"), &[ForeignWrite]),
        (&format!("{many}; 20 acquire C 10; 21 renew A 10; 22 release C"), &[ForeignRenewal]),
        // Long after all was forgotten.
        ("0 acquire A 1; 7200 acquire B 10; 7201 write A; 7202 release B", &[ForeignWrite]),
        // A resource that refuses it is fenced, and one who holds the key may write.
        ("0 acquire A 10; 2 write Z refused; 3 release A", &[]),
        ("0 acquire A 10; 2 write A; 3 release A", &[]),
    ] {
        assert_eq!(deaths(text), expected, "{text}");
    }
    for (text, unknown) in [
        ("0 write A; 1 write B; 2 write A", 3),
        ("0 acquire A 1; 0.5 release A; 2 write A", 1),
        ("0 acquire A 1; 2 acquire B 1; 2.5 release B; 4 write Z", 1),
        ("0 acquire A 10; 9 write A", 0),
    ] {
        assert_eq!((audit(text, 0).0, audit(text, 0).1.unknown), (vec![], unknown), "{text}");
    }
    // After the end of its lease nobody is safe, though nobody has come yet.
    for late in ["0 acquire A 5; 7 write A", "0 acquire A 5; 7 write A; 8 write A; 9 release A"] {
        assert_eq!(names(&audit(late, 0).0, Certainty::Proven), [LongHold], "{late}");
    }
    // Clocks may explain what is close to either end of a hold.
    for at in ["2.03", "4.97"] {
        let text = format!("2 acquire B 3; {at} write Z; 6 acquire C 1");
        let text = if at == "4.97" { text } else { text.replace("6 acquire C 1", "4 release B") };
        let (found, _) = audit(&text, 50);
        assert_eq!(names(&found, Certainty::Possible), [ForeignWrite], "{found:#?}");
        assert_eq!(deaths(&text), [ForeignWrite], "{text}");
    }
}

#[test]
fn tokens_tell_two_holders_of_one_name_apart() {
    for (text, expected) in [
        (
            "0 acquire P #1 10; 1 acquire P #2 10; 3 write P #1; 4 write P #2; 7 release P #2",
            &[GrantedTwice][..],
        ),
        ("0 acquire P #7 1; 2 acquire P #8 10; 3 write P #7; 4 write P #8; 5 release P #8", &[LeaseOutlived]),
        (
            "0 acquire P #7 10; 1 acquire P #8 10; 3 release P #7; 4 release P #8 refused",
            &[ForeignRelease, GrantedTwice],
        ),
        // It comes back when its lease is over, and asks anew without a token.
        ("0 acquire P #7 1; 2 acquire P #8 10; 5 release P #8", &[]),
        ("0 acquire P 10; 1 acquire P 10; 3 write P; 7 release P", &[]),
    ] {
        assert_eq!(deaths(text), expected, "{text}");
    }
    // It may have given up the first one itself.
    let (found, _) = audit("0 acquire P #1 10; 1 acquire P #2 10; 7 release P #2", 0);
    assert_eq!(names(&found, Certainty::Possible), [GrantedTwice]);
}

#[test]
fn a_lease_that_is_taken_back_or_has_no_end_any_more_is_seen() {
    for (text, expected) in [
        // The server lets go before the end that its holder knows.
        ("0 acquire A #1 30; 2 expire A; 3 acquire B #2 30; 20 release B #2", &[GrantedTwice][..]),
        ("0 acquire A #1 30; 2 expire -; 3 acquire B #2 30; 20 release B #2", &[GrantedTwice]),
        ("0 acquire A #1 30; 30 expire -; 31 acquire B #2 30; 40 release B #2", &[]),
        ("0 acquire A #1 30; 30 acquire B #2 30; 30 expire -; 40 release B #2; 41 acquire C #3 9", &[]),
        ("0 acquire A 5; 2 renew A forever; 3600 acquire B 5 refused", &[HolderVanished]),
        ("0 acquire A 5; 2 acquire A; 3600 acquire B 5 refused", &[HolderVanished]),
        ("0 acquire A 5; 2 renew A; 6 acquire B 5; 7 release B", &[GrantedTwice]),
        ("0 acquire A 5; 2 renew A; 8 acquire B 5; 9 release B", &[]),
        // It was gone until it came back, or until somebody set an end.
        ("0 acquire A; 600 acquire B 5 refused; 7200 acquire A 5; 7201 release A", &[HolderVanished]),
        ("0 acquire A; 7200 expire -; 7201 acquire B 5; 7202 release B", &[HolderVanished]),
        ("0 acquire A; 300 write A; 600 write A; 900 release A", &[]),
        // What has lapsed cannot be stolen.
        ("0 acquire A 1; 5 steal B 1; 5.5 write A; 5.7 release B", &[LeaseOutlived]),
    ] {
        assert_eq!(deaths(text), expected, "{text}");
    }
    let (found, _) = audit("0 acquire A 5; 2 renew A forever; 3 release A", 0);
    assert_eq!(names(&found, Certainty::Proven), [NoExpiry]);
}

#[test]
fn a_delete_of_one_whose_lease_was_over_is_possibly_a_robbery_where_clocks_differ() {
    let robbed = "0 acquire A #1 1; 2 acquire B #2 10; 2.03 release A #1; 5 release B #2 refused";
    let (found, _) = audit(robbed, 50);
    assert!(names(&found, Certainty::Possible).contains(&ForeignRelease), "{found:#?}");
    assert!(deaths(robbed).contains(&ForeignRelease));
    // One whose lease ran released its own, by a clock that is behind.
    let (found, _) = audit(&robbed.replace("#1 1;", "#1 9;"), 50);
    assert!(!names(&found, Certainty::Possible).contains(&ForeignRelease), "{found:#?}");
}

#[test]
fn a_renewal_is_late_only_after_its_lease() {
    let text = "0 acquire A #1 10; 1 failover -; 2 acquire B #2 10; 5 renew A #1 10; 6 release B #2; 7 release A #1 refused";
    let (found, _) = audit(text, 0);
    assert_eq!(names(&found, Certainty::Proven), [LostAtFailover, ForeignRenewal, OwnerMismatch]);
}

#[test]
fn a_renewal_that_was_refused_did_not_come_late() {
    for (text, expected) in [
        ("0 acquire A 5; 7 renew A 5 refused", &[OwnerMismatch, LongHold][..]),
        ("0 acquire A 5; 6 acquire B 5; 7 renew A 5 refused; 8 release B", &[LeaseOutlived, OwnerMismatch]),
        ("0 acquire A 5; 7 renew A 5", &[LateRenewal, LongHold]),
    ] {
        let mut expected = expected.to_vec();
        expected.sort();
        assert_eq!(names(&audit(text, 0).0, Certainty::Proven), expected, "{text}");
    }
}

#[test]
fn a_lock_that_is_lost_while_nobody_else_is_shown_is_told() {
    for (text, expected) in [
        ("0 acquire A #1 30; 2 expire A", &[LetGoEarly][..]),
        ("0 acquire A #1 30; 2 expire -; 9 release A #1 refused", &[LetGoEarly]),
        ("0 acquire A 30; 2 expire -; 40 acquire B 30; 41 release B", &[LetGoEarly]),
        ("0 acquire A #1 30; 2 failover -; 9 release A #1 refused", &[LostAtFailover]),
        (
            "0 acquire A #1 30; 2 failover -; 9 renew A #1 30 refused; 20 acquire B #2 9; 21 release B #2",
            &[LostAtFailover],
        ),
        // It outlived the failover, its lease was over, or it held the lock after all.
        ("0 acquire A #1 30; 2 failover -; 9 release A #1", &[]),
        ("0 acquire A #1 30; 2 failover -; 9 renew A #1 30; 20 release A #1", &[]),
        ("0 acquire A #1 5; 2 failover -; 9 release A #1 refused", &[]),
        ("0 acquire A #1 30; 9 renew A #1 30 refused; 10 renew A #1 30; 11 release A #1", &[]),
        ("0 acquire A #1 30; 30 expire A", &[]),
    ] {
        assert_eq!(deaths(text), expected, "{text}");
    }
    // Whoever is refused while its lease runs may have lost the lock, or asks a second time.
    for text in [
        "0 acquire A #1 30; 9 release A #1 refused",
        "0 acquire A #1 30; 9 renew A #1 30 refused",
        "0 acquire A #1 30; 9 renew A #1 30 refused; 9.1 release A #1 refused",
        "0 acquire A #1; 9 release A #1 refused",
        "0 acquire A #1 1; 2 acquire B #2 5; 2 release A #1; 3 release B #2 refused",
    ] {
        assert_eq!((deaths(text), doubts(text, 0)), (vec![], vec![LetGoEarly]), "{text}");
    }
    // Whether it outlived the failover nobody can say.
    let silent = audit("0 acquire A #1 30; 2 failover -; 3 acquire B 5 refused", 0).0;
    assert_eq!(
        (names(&silent, Certainty::Possible), names(&silent, Certainty::Proven)),
        (vec![LostAtFailover], vec![])
    );
    // Of every key.
    let mut events = history("0 acquire A #1 30; 2 failover -; 9 release A #1 refused");
    events[1].key.clear();
    assert!(names(&judged(&events, Rules::default(), ms(0)).0, Certainty::Proven).contains(&LostAtFailover));
    for lines in [
        &["acquire,A,9000 00", "expire,,, 01"][..],
        &["acquire,A,9000 00", "failover,, 01", "release,A, refused 02"],
    ] {
        let lines: Vec<_> = lines.iter().map(|line| line.replace("expire,,,", "expire,,")).collect();
        let lines: Vec<_> = lines.iter().map(String::as_str).collect();
        told(&lines).ends(5).does_not_print("At no time");
    }
}

#[test]
fn a_token_that_is_given_again_is_told_though_its_owner_is_the_same() {
    for (text, expected) in [
        ("0 acquire A #1 5; 9 acquire A #1 5; 10 release A #1", &[TokenWentBack][..]),
        ("0 acquire A #1 5; 2 release A #1; 9 acquire A #1 5; 10 release A #1", &[TokenWentBack]),
        (
            "0 acquire A 5; 1 acquire B #7 5 refused; 2 acquire A #3 5; 3 release A #3; 4 acquire B #3 5; 5 release B",
            &[TokenWentBack],
        ),
        // Asked again while it holds the lock, it is given what it has.
        ("0 acquire A #1 5; 2 acquire A #1 5; 3 release A #1", &[]),
        ("0 acquire A #1 5; 9 acquire A #2 5; 10 release A #2", &[]),
    ] {
        assert_eq!(deaths(text), expected, "{text}");
    }
}

/// What breaks a lock and is only possible.
fn doubts(text: &str, skew: i64) -> Vec<LockFinding> {
    let mut doubts = names(&audit(text, skew).0, Certainty::Possible);
    doubts.retain(|finding| finding.is_death());
    doubts
}

#[test]
fn nodes_tell_two_holders_of_one_name_apart_though_not_for_certain() {
    for (text, expected) in [
        (
            "0 acquire S 1 @n1; 0.3 acquire S 1 @n2; 0.4 write S @n1; 0.5 write S @n2; 0.6 release S @n2",
            &[GrantedTwice][..],
        ),
        ("0 acquire S 9 @n1; 0.3 acquire S 1 @n2; 0.6 release S @n2", &[GrantedTwice]),
        ("0 acquire S 1 @n1; 2 acquire S 5 @n2; 2.5 write S @n1; 4 release S @n2", &[LeaseOutlived]),
        (
            "0 acquire S 30 @n1; 1 failover -; 2 acquire S 30 @n2; 3 write S @n1; 4 release S @n2",
            &[LostAtFailover],
        ),
        (
            "0 acquire S 1 @n1; 2 acquire S 5 @n2; 3 release S @n1; 4 release S @n2",
            &[LeaseOutlived, ForeignRelease],
        ),
        // One after the other, and one that goes from node to node.
        ("0 acquire S 1 @n1; 0.5 release S @n1; 2 acquire S 5 @n2; 3 release S @n2", &[]),
        ("0 acquire S 1 @n1; 2 acquire S 5 @n2; 3 release S @n2", &[]),
        ("0 acquire S 5 @n1; 1 renew S 5 @n2; 3 release S @n3", &[]),
        // What is refused on another node says nothing of the hold.
        ("0 acquire S 30 @n1; 5 release S @n2 refused; 9 release S @n1", &[]),
        ("0 acquire S 30 @n1; 5 renew S 30 @n2 refused; 6 write S @n2 refused; 9 release S @n1", &[]),
    ] {
        assert_eq!((deaths(text), doubts(text, 0)), (vec![], expected.to_vec()), "{text}");
    }
    let lost = "0 acquire S 30 @n1; 5 renew S 30 @n2 refused; 20 acquire B 5; 21 release B";
    assert_eq!(deaths(lost), [GrantedTwice]);
    let (found, _) = audit("0 acquire S 9 @n1; 0.3 acquire S 1 @n2; 0.6 release S @n2", 0);
    assert!(found[0].in_words().starts_with("S on n2 got it while the lease of S on n1 ran"), "{found:#?}");
    // Grants have tokens, releases have none: whose they are their nodes say.
    let text = "0 acquire S #1 1 @n1; 2 acquire S #2 5 @n2; 3 release S @n1; 3.1 acquire S #3 5 @n3; \
                4 release S @n2 refused; 5 release S @n3";
    assert_eq!(deaths(text), [LeaseOutlived, HeldAfterForeignRelease]);
    assert_eq!(doubts(text, 0), [ForeignRelease]);
    // Whether one of that name on another node is the same one is not known.
    for (text, unknown) in [
        ("0 acquire S 5 @n1; 3 release S @n1", 0),
        ("0 acquire S 5 @n1; 1 write S @n2; 3 release S @n1", 1),
        ("0 acquire S #1 5 @n1; 1 write S #1 @n2; 3 release S #1 @n3", 0),
        ("0 acquire S 30 @n1; 5 release S @n2 refused; 9 release S @n1", 1),
    ] {
        assert_eq!(audit(text, 0).1.unknown, unknown, "{text}");
    }
}

#[test]
fn a_release_after_the_others_lease_met_nothing() {
    let history = |at: &str| {
        format!("0 acquire A #1 1; 0.5 release A #1; 10 acquire B #2 1; {at} release A #1; 21 acquire C #3 9")
            + "; 22 write B #2; 23 release C #3"
    };
    assert_eq!(deaths(&history("20")), [LeaseOutlived]);
    assert_eq!(doubts(&history("20"), 50), []);
    assert_eq!(deaths(&history("10.5")), [ForeignRelease, HeldAfterForeignRelease]);
    // Close to its end it may have been there.
    assert_eq!(deaths(&history("11.03")), [LeaseOutlived]);
    assert_eq!(doubts(&history("11.03"), 50), [ForeignRelease]);
    assert_eq!(doubts(&history("11.03"), 20), []);
    let lapsed = "0 acquire A #1 1; 10 acquire B #2 1; 20 release A #1; 21 acquire C #3 1; 21.5 release C #3";
    assert_eq!((deaths(lapsed), doubts(lapsed, 0)), (vec![LeaseOutlived], vec![]));
    assert!(names(&audit(lapsed, 0).0, Certainty::Proven).contains(&OwnerMismatch));
}

#[test]
fn what_is_shorter_than_the_clocks_tick_is_only_possible() {
    for (text, expected) in [
        ("10 acquire A #1 1.5 @n; 11 acquire B #2 1.5 @n; 12 release B #2 @n", GrantedTwice),
        ("10 acquire A #1 1.5; 11 expire A #1; 12 acquire B #2 1.5; 13 release B #2", LetGoEarly),
        ("10 acquire A 1; 11 release A; 12 acquire B 1.5; 13 write A; 14 release B", ForeignWrite),
    ] {
        assert_eq!((deaths(text), doubts(text, 0)), (vec![], vec![expected]), "{text}");
        // The same by a clock that is finer.
        let finer = format!("0.5 acquire Z 1; 0.6 release Z; {text}");
        assert_eq!((deaths(&finer), doubts(&finer, 0)), (vec![expected], vec![]), "{text}");
    }
    // A tick or more is no matter of the tick.
    assert_eq!(deaths("10 acquire A #1 2 @n; 11 acquire B #2 2 @n; 13 release B #2 @n"), [GrantedTwice]);
}

#[test]
fn a_stale_write_is_as_old_as_the_first_write_of_the_newer_token() {
    let text = "0 acquire A #1 1; 0.5 release A #1; 10 acquire B #2 20; 10.1 write B #2; 15.95 write B #2; \
                15.96 release B #2; 16 write A #1";
    assert!(names(&audit(text, 100).0, Certainty::Proven).contains(&StaleWriteAccepted));
    assert_eq!(doubts(&text.replace("10.1 write B #2;", ""), 100), [StaleWriteAccepted]);
}

#[test]
fn an_end_that_names_nobody_may_be_of_the_lease_before() {
    let history = |at: &str, before: &str| {
        format!(
            "0 acquire A #1 5; {before} 5.001 acquire B #2 5; {at} expire -; 7 release B #2; 8 acquire C #3 5; 9 release C #3"
        )
    };
    assert_eq!((deaths(&history("5.003", "")), doubts(&history("5.003", ""), 0)), (vec![], vec![]));
    assert_eq!((deaths(&history("6.5", "")), doubts(&history("6.5", ""), 0)), (vec![], vec![LetGoEarly]));
    // That one's end has been told, or it let go.
    for before in ["5 expire -;", "5 expire A;", "4 release A #1;"] {
        assert_eq!(deaths(&history("5.003", before)), [LetGoEarly], "{before}");
    }
    // Its own lease was over, whatever became of the one before.
    assert_eq!(
        deaths("0 acquire A #1 5; 6 acquire B #2 5; 11 expire -; 12 acquire C #3 5; 13 release C #3"),
        []
    );
}

#[test]
fn a_pause_of_one_name_on_another_node_is_not_the_holders() {
    let paused = |node: &str| {
        let text =
            format!("0 pause S 9 @{node}; 2 acquire S 1 @n2; 4 acquire B 5; 4.5 write S @n2; 5 release B");
        let mut events = history(&text);
        events[0].key.clear();
        names(&judged(&events, Rules::default(), ms(0)).0, Certainty::Proven).contains(&PauseOverLeaseEnd)
    };
    assert_eq!((paused("n1"), paused("n2")), (false, true));
}

/// The histories whose lines of one instant stand in each order.
fn orders(events: &[Event]) -> Vec<Vec<Event>> {
    let Some(first) = events.first() else { return vec![Vec::new()] };
    let n = events.iter().take_while(|e| e.at == first.at).count();
    let mut all = Vec::new();
    for tail in orders(&events[n..]) {
        for i in 0..n {
            let mut head = events[..n].to_vec();
            let chosen = head.remove(i);
            for rest in if head.is_empty() { vec![Vec::new()] } else { orders(&head) } {
                all.push([vec![chosen.clone()], rest, tail.clone()].concat());
            }
        }
    }
    all
}

#[test]
fn the_order_of_lines_of_one_instant_means_nothing() {
    for (text, expected) in [
        ("0 acquire A #1 5; 5 expire -; 5 acquire B #2 5; 6 release B #2", &[][..]),
        (
            "0 acquire A 5; 1 release A; 1 acquire A 5; 2 acquire B 5; 3 release B; 4 release A refused",
            &[GrantedTwice],
        ),
        ("0 acquire B #5 5; 0 release B #5; 0 acquire A #6 5; 1 release A #6", &[]),
        ("0 acquire C 5; 0 release C; 0 acquire A 5; 1 release A", &[]),
        ("0 acquire A 5; 1 write A; 1 renew A 5; 1 release A; 1 acquire B 5; 2 release B", &[]),
        ("0 acquire A #1 5; 1 failover -; 1 acquire B #2 5; 2 write A #1; 3 release B #2", &[LostAtFailover]),
        (
            "0 acquire A #1 5; 1 acquire B #2 5; 1 acquire C #3 5; 2 write A #1; 2 write B #2; 3 release C #3",
            &[GrantedTwice; 3],
        ),
    ] {
        for events in orders(&history(text)) {
            let lines: Vec<_> = (1..).zip(events).map(|(line, e)| Event { line, ..e }).collect();
            let mut found = judged(&lines, Rules::default(), ms(0)).0;
            found.retain(|f| f.finding.is_death());
            assert_eq!(names(&found, Certainty::Proven), expected, "{text}: {lines:#?}");
        }
    }
}

#[test]
fn a_lock_that_is_taken_anew_after_a_lapse_may_be_let_go_within_the_instant() {
    for text in [
        "0 acquire A 30; 300 acquire A 30; 300 release A; 310 acquire B 30; 320 release B",
        "0 acquire A 30; 300 expire A; 300 acquire A 30; 300 release A; 310 acquire B 30; 320 release B",
        "0 acquire A 30; 30 acquire A 30; 30 release A; 40 acquire B 30; 41 release B",
    ] {
        assert_eq!(deaths(text), [], "{text}");
    }
    // It was not over: the one lets go, and has it anew.
    let held = "0 acquire A 30; 20 release A; 20 acquire A 30; 40 acquire B 30";
    assert_eq!(deaths(held), [GrantedTwice]);
}

#[test]
fn many_events_of_one_instant_are_no_burden() {
    let mut audit = Audit::new(Rules::default());
    let line = history("0 acquire A 5; 0 release A");
    for _ in 0..500_000 {
        line.iter().for_each(|event| audit.event(event.clone(), &mut |f| panic!("{f:?}")));
    }
    assert_eq!(audit.end(&mut |f| panic!("{f:?}")).events, 1_000_000);
}

#[test]
fn what_is_more_than_an_instant_holds_is_never_proven() {
    let others = (0..AT_ONCE).map(|i| Event { key: format!("k{i}"), ..history("0 acquire Z 5").remove(0) });
    // By tokens A was first; whoever reads the lines as they stand takes B's to be older.
    let of_k = history("0 acquire B #2 60; 0 release B #2; 0 acquire A #1 60; 0 release A #1");
    let (before, behind) = of_k.split_at(2);
    let (mut found, mut audit) = (Vec::new(), Audit::new(Rules::default()));
    let mut out = |f: Found| found.push(f);
    for event in before.iter().cloned().chain(others).chain(behind.iter().cloned()) {
        audit.event(event, &mut out);
    }
    let audited = audit.end(&mut out);
    assert!(names(&found, Certainty::Proven).iter().all(|f| !f.is_death()), "{found:#?}");
    assert!(names(&found, Certainty::Possible).contains(&TokenWentBack), "{found:#?}");
    assert!((1..=AT_ONCE as u64).contains(&audited.blurred), "{audited:?}");
}

fn told(lines: &[&str]) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    let text = lines.iter().fold("key,event,owner,lease_ms,at,result\n".to_owned(), |text, line| {
        let (event, at) = line.rsplit_once(' ').unwrap();
        let (event, result) = event.split_once(' ').unwrap_or((event, ""));
        text + &format!("k,{event},2026-11-11T12:00:{at}Z,{result}\n")
    });
    std::fs::write(folder.path().join("locks.csv"), text).unwrap();
    let line = ["locks", "audit", "locks.csv"];
    run(program().current_dir(folder.path()).args(line), &line)
}

#[test]
fn what_cannot_be_told_is_no_all_clear() {
    const ALL_CLEAR: &str = "At no time did two hold a key";
    told(&["acquire,A,5000 00", "release,A, 01"]).ends(0).prints(ALL_CLEAR);
    for lines in [
        &["acquire,A,100 refused 00"][..],
        &["release,A, 00", "release,B, 01"],
        &["write,A, 00", "write,B, 01"],
    ] {
        told(lines).ends(0).prints("whether two held one cannot be told").does_not_print(ALL_CLEAR);
    }
    for lines in [
        &["release,Z, 00", "acquire,A,5000 01", "release,A, 02"][..],
        &["renew,Z,5000 00", "release,Z, 01", "acquire,A,5000 02", "release,A, 03"],
        &["acquire,A,5000 00", "release,A, 01", "write,A, 02"],
    ] {
        let ran = told(lines).ends(0).prints("1 event by owners that held no lock then");
        ran.prints("cannot be told").does_not_print(ALL_CLEAR);
    }
}
