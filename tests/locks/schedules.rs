//! Schedules of holders with injected faults are classified exactly as injected.

use onefold::core::locks::{Audit, Certainty, Event, EventKind, Found, LockFinding, Rules};
use onefold::core::time::Timestamp;
use proptest::prelude::*;

use crate::story::{FATES, Fate, Scene, Story, by_stamp, judged, ms, names, scene};

const HARMLESS: [Fate; 6] = [
    Fate::Clean,
    Fate::Dies,
    Fate::DiesAndIsStolenFrom,
    Fate::WritesLate { taken: false },
    Fate::Expires,
    Fate::StolenFromInVain,
];

/// Whatever comes after a key without expiry is not heard of.
fn playable(scenes: &[Scene]) -> &[Scene] {
    let end = scenes.iter().position(|s| s.fate == Fate::Vanishes).map_or(scenes.len(), |at| at + 1);
    &scenes[..end]
}

fn expected(keys: &[Vec<Scene>]) -> Vec<LockFinding> {
    of_fates(keys, Fate::found)
}

/// What may be so, for all that a history shows.
fn doubtful(keys: &[Vec<Scene>]) -> Vec<LockFinding> {
    of_fates(keys, Fate::leaves_open)
}

fn of_fates(keys: &[Vec<Scene>], found: fn(Fate) -> &'static [LockFinding]) -> Vec<LockFinding> {
    let scenes = keys.iter().flat_map(|scenes| playable(scenes));
    let mut all: Vec<_> = scenes.flat_map(|scene| found(scene.fate)).copied().collect();
    all.sort();
    all
}

fn told(keys: &[Vec<Scene>], clocks: &[i64], gap: i64) -> Vec<Event> {
    let mut events = Vec::new();
    for (key, scenes) in keys.iter().enumerate() {
        let mut story = Story::new(key, clocks, 0);
        playable(scenes).iter().for_each(|scene| story.play(*scene, gap));
        if key == 0 {
            story.ends();
        }
        events.append(&mut story.events);
    }
    by_stamp(events)
}

/// Lines that are each at most `window` behind the newest before them, in an order that the numbers give.
fn shuffled(events: &[Event], window: i64, by: &[i64]) -> Vec<Event> {
    let mut late: Vec<_> = events
        .iter()
        .enumerate()
        .map(|(i, event)| (event.at.micros() + by[i % by.len()].rem_euclid(window * 1000 + 1), i))
        .collect();
    late.sort_unstable();
    late.into_iter().map(|(_, i)| events[i].clone()).collect()
}

/// A clean history of many keys, whose clock has whole seconds: owners come one after the other, each lets go before the
/// next one gets the key, and several of them may within a second. Lines of a second are mixed by the numbers.
fn in_whole_seconds(keys: usize, steps: &[(i64, u8, bool)], has_token: bool, by: &[u64]) -> Vec<Event> {
    let mut events = Vec::new();
    for key in 0..keys {
        let (mut now_ms, mut token) = (1_800_000_000_000_i64, 0);
        for n in 0..steps.len() {
            let (after, owner, writes) = steps[(n + key) % steps.len()];
            token += 1;
            let mut at = |ms: i64, kind| {
                now_ms += ms;
                events.push(Event {
                    line: 0,
                    key: format!("k{key}"),
                    kind,
                    owner: Some(format!("o{owner}")),
                    token: has_token.then_some(token),
                    lease: matches!(kind, EventKind::Acquire | EventKind::Renew)
                        .then(|| super::story::ms(20_000)),
                    is_forever: false,
                    at: Timestamp::from_micros(now_ms.div_euclid(1000) * 1_000_000),
                    node: None,
                    done: true,
                });
            };
            at(after, EventKind::Acquire);
            if writes {
                at(after / 3, EventKind::Write);
                at(after / 5, EventKind::Renew);
            }
            at(after / 2, EventKind::Release);
        }
    }
    (1..).zip(mixed(&events, by)).map(|(line, event)| Event { line, ..event }).collect()
}

/// By a clock that ticks in so many milliseconds.
fn ticked(mut events: Vec<Event>, tick: i64) -> Vec<Event> {
    for event in &mut events {
        event.at = Timestamp::from_micros(event.at.micros().div_euclid(tick * 1000) * tick * 1000);
    }
    events
}

/// By time, those of one instant in an order that the numbers give.
fn mixed(events: &[Event], by: &[u64]) -> Vec<Event> {
    let mut mixed: Vec<_> = events.iter().cloned().enumerate().collect();
    mixed.sort_by_key(|(i, event)| (event.at, by[i % by.len()].wrapping_mul(*i as u64 + 1) % 1009));
    mixed.into_iter().map(|(_, event)| event).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_clean_history_in_whole_seconds_raises_no_alarm_however_many_keys_there_are(
        keys in prop::sample::select(vec![1_usize, 3, 400]),
        steps in prop::collection::vec((0_i64..1500, 0_u8..4, any::<bool>()), 1..12),
        has_token in any::<bool>(),
        by in prop::collection::vec(any::<u64>(), 1..20),
    ) {
        let events = in_whole_seconds(keys, &steps, has_token, &by);
        let (found, audited) = judged(&events, Rules::default(), ms(0));
        let deaths: Vec<_> = found.iter().filter(|f| f.finding.is_death()).collect();
        prop_assert!(deaths.is_empty(), "{:#?}", deaths);
        prop_assert_eq!((audited.unknown, audited.blurred), (0, 0));
    }

    #[test]
    fn in_which_order_lines_of_one_instant_stand_means_nothing(
        keys in prop::collection::vec(prop::collection::vec(scene(&FATES, 400..900), 1..8), 1..5),
        by in prop::collection::vec(any::<u64>(), 1..20),
        tick in prop::sample::select(vec![1_i64, 1000, 5000]),
    ) {
        let events = ticked(told(&keys, &[0, 0, 0], 0), tick);
        let told = |events: &[Event]| {
            let mut found = judged(events, Rules::default(), ms(0)).0;
            found.iter_mut().for_each(|f| f.line = 0);
            found
        };
        prop_assert_eq!(told(&mixed(&events, &by)), told(&events));
    }

    #[test]
    fn a_clock_that_ticks_in_seconds_makes_no_death_of_what_is_harmless(
        keys in prop::collection::vec(prop::collection::vec(scene(&HARMLESS, 1..900), 1..12), 1..6),
        by in prop::collection::vec(any::<u64>(), 1..20),
        gap in 0_i64..1500,
    ) {
        let events = mixed(&ticked(told(&keys, &[0, 0, 0], gap), 1000), &by);
        let (found, _) = judged(&events, Rules::default(), ms(0));
        let deaths: Vec<_> = found.iter().filter(|f| f.finding.is_death()).collect();
        prop_assert!(deaths.is_empty(), "{:#?}", deaths);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn faults_are_classified_exactly_as_injected(
        keys in prop::collection::vec(prop::collection::vec(scene(&FATES, 400..900), 1..12), 1..4),
        gap in 0_i64..50_000,
        by in prop::collection::vec(0_i64..1_000_000, 1..50),
    ) {
        let events = told(&keys, &[0, 0, 0], gap);
        let (found, _) = judged(&events, Rules::default(), ms(0));
        prop_assert_eq!(names(&found, Certainty::Proven), expected(&keys));
        prop_assert_eq!(names(&found, Certainty::Possible), doubtful(&keys));
        // A little out of order, it is the same history.
        let (again, _) = judged(&shuffled(&events, 300, &by), Rules::default(), ms(300));
        prop_assert_eq!(again, found);
    }

    #[test]
    fn clocks_that_differ_raise_no_false_alarm_and_hide_no_fault_that_is_longer(
        keys in prop::collection::vec(prop::collection::vec(scene(&FATES, 400..900), 1..12), 1..4),
        clocks in prop::collection::vec(-50_i64..=50, 2..6),
        gap in 0_i64..500,
    ) {
        let rules = Rules { skew: ms(100), ..Rules::default() };
        let (found, _) = judged(&told(&keys, &clocks, gap), rules, ms(0));
        prop_assert_eq!(names(&found, Certainty::Proven), expected(&keys));
        // What is only possible is no longer than clocks explain, but for what was open without them.
        let is_open = |f: &&Found| doubtful(&keys).contains(&f.finding);
        for f in found.iter().filter(|f| f.certainty == Certainty::Possible && !is_open(f)) {
            prop_assert!(f.lasted.is_none_or(|lasted| lasted <= ms(100)), "{:?}", f);
        }
    }

    #[test]
    fn a_clean_schedule_raises_no_alarm(
        keys in prop::collection::vec(prop::collection::vec(scene(&HARMLESS, 1..900), 1..20), 1..5),
        gap in 0_i64..50_000,
    ) {
        let (found, audited) = judged(&told(&keys, &[0, 0], gap), Rules::default(), ms(0));
        prop_assert_eq!(found, []);
        prop_assert_eq!(audited.unknown, 0);
        prop_assert_eq!(audited.keys, keys.len() as u64 + 1);
    }

    #[test]
    fn one_name_on_many_nodes_is_no_alarm_where_nothing_is_wrong_and_never_a_proof(
        keys in prop::collection::vec(prop::collection::vec(scene(&FATES, 400..900), 1..12), 1..4),
        gap in 0_i64..50_000,
    ) {
        let of_one_name = |keys: &[Vec<Scene>]| {
            let mut events = told(keys, &[0; 997], gap);
            for event in &mut events {
                event.owner = event.owner.take().map(|_| "svc".to_owned());
                event.token = None;
            }
            let mut found = judged(&events, Rules::default(), ms(0)).0;
            found.retain(|f| f.finding.is_death());
            found
        };
        let is_of_two = |f: &Found| f.second.is_some() && f.certainty == Certainty::Proven;
        let found = of_one_name(&keys);
        prop_assert!(!found.iter().any(is_of_two), "{:#?}", found);
        let harmless = |scenes: &Vec<Scene>| {
            scenes.iter().filter(|s| HARMLESS.contains(&s.fate)).copied().collect()
        };
        prop_assert_eq!(of_one_name(&keys.iter().map(harmless).collect::<Vec<_>>()), []);
    }

    #[test]
    fn an_overlap_shorter_than_the_skew_is_possible_and_not_proven(later in 1_i64..100) {
        let scene = Scene { fate: Fate::GivenTwice, work_percent: 10, later_ms: later };
        let events = told(&[vec![scene]], &[0, 0, 0], 0);
        let certainty = |skew| {
            let rules = Rules { skew: ms(skew), ..Rules::default() };
            let (found, _) = judged(&events, rules, ms(0));
            found.iter().find(|f| f.finding == LockFinding::GrantedTwice).map(|f| f.certainty)
        };
        prop_assert_eq!(certainty(later), Some(Certainty::Possible));
        prop_assert_eq!(certainty(later - 1), Some(Certainty::Proven));
        // One node has one clock.
        let rules = Rules { skew: ms(100), ..Rules::default() };
        let (found, _) = judged(&told(&[vec![scene]], &[0], 0), rules, ms(0));
        prop_assert_eq!(names(&found, Certainty::Possible), []);
    }
}

#[test]
fn a_line_that_is_too_late_is_named() {
    use onefold::core::locks::InOrder;
    let scene = Scene { fate: Fate::Clean, work_percent: 50, later_ms: 1 };
    let events = told(&[vec![scene]], &[0], 0);
    let mut in_order = InOrder::new(ms(100));
    in_order.push(events[1].clone()).unwrap();
    let late = in_order.push(events[0].clone()).unwrap_err();
    assert_eq!((late.line, late.behind), (1, ms(2500)));
}

#[test]
fn what_is_forgotten_loses_no_finding() {
    let mut events = Vec::new();
    let mut keys = Vec::new();
    for i in 0..3000 {
        let scene = Scene { fate: FATES[i % FATES.len()], work_percent: 30, later_ms: 500 };
        let mut story = Story::new(i, &[0, 0, 0], i as i64 * 1000);
        story.play(scene, 0);
        events.append(&mut story.events);
        keys.push(vec![scene]);
    }
    let mut end = Story::new(3000, &[0], 3_000_000);
    end.ends();
    events.append(&mut end.events);
    let rules = Rules { forget_after: ms(30_000), ..Rules::default() };
    let mut most = 0;
    let (mut found, mut audit) = (Vec::new(), Audit::new(rules));
    for event in by_stamp(events) {
        let at = event.at;
        audit.event(event, &mut |f| found.push(f));
        audit.sweep(at, &mut |f| found.push(f));
        most = most.max(audit.kept());
    }
    _ = audit.end(&mut |f| found.push(f));
    assert_eq!(names(&found, Certainty::Proven), expected(&keys));
    // Those without expiry are held for ever; of the others only the newest are there.
    let for_ever = keys.iter().filter(|scenes| scenes[0].fate == Fate::Vanishes).count();
    assert!(most < for_ever + 100, "{most}");
}
