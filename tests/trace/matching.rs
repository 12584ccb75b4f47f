//! Which line wrote which order, and how well a log fits.

use onefold::core::join::Joined;
use onefold::core::scope::Scope;
use onefold::core::time::Span;
use onefold::core::trace::access::AccessLine;
use onefold::core::trace::attach::Basis;
use onefold::core::trace::fit::Fit;
use onefold::core::trace::{Purchases, Wanted};
use proptest::prelude::*;

use crate::common::book::{Book, at};
use crate::scene::{line, lost, options, traced};

/// Orders of the tests' buyer, so many milliseconds in; all of one trace.
fn orders(written: &[(&str, i64)]) -> Book {
    let mut book = Book::new();
    for (id, ms) in written {
        let order = book.order(id, 0, "PENDING_PAYMENT");
        order.created_at = at(0).plus(ms_of(*ms));
        order.trace_id = Some("tr".to_owned());
    }
    book
}

fn ms_of(ms: i64) -> Span {
    Span::from_micros(ms * 1000)
}

fn of_trace(line: AccessLine) -> AccessLine {
    AccessLine { trace_id: Some("tr".to_owned()), ..line }
}

fn names(order: &str, line: AccessLine) -> AccessLine {
    AccessLine { order_id: Some(order.into()), ..line }
}

fn takes(ms: i64, line: AccessLine) -> AccessLine {
    AccessLine { latency: Some(ms_of(ms)), ..line }
}

/// For each arrival of the only purchase its request, its order, and by how many milliseconds it is late.
fn came(book: &Book, lines: &[AccessLine]) -> Vec<(String, Option<String>, Option<i64>)> {
    traced(book, lines, &options(), |trace| {
        let all = trace.purchases.arrivals(0, &trace.options.sources);
        let all = all.iter().map(|a| {
            let request = a.line.map(|l| l.request_id.clone()).unwrap_or_default();
            (
                request,
                a.order.map(|o| o.order.order_id.to_string()),
                a.late().map(|late| late.micros() / 1000),
            )
        });
        all.collect()
    })
}

fn wrote(request: &str, order: &str) -> (String, Option<String>, Option<i64>) {
    (request.to_owned(), Some(order.to_owned()), None)
}

fn fit(book: &Book, lines: &[AccessLine]) -> Fit {
    traced(book, lines, &options(), |trace| trace.fit.clone())
}

proptest! {
    #[test]
    fn clocks_that_agree_never_swap_orders_that_were_written_as_they_came(
        taps in prop::collection::vec((1_i64..1500, 0_i64..1500), 1..8), has_trace in any::<bool>(),
        latency in prop::option::of(0_i64..2000),
    ) {
        let (mut came_at, mut free) = (0, 0);
        let (mut written, mut lines, mut truth) = (Vec::new(), Vec::new(), Vec::new());
        for (i, (after, took)) in taps.into_iter().enumerate() {
            came_at += after;
            free = (came_at + took).max(free + 1);
            let names = (format!("r{i}"), format!("O{i}"));
            let tap = AccessLine { latency: latency.map(ms_of), ..line(came_at, &names.0, "app", 1) };
            lines.push(if has_trace { of_trace(tap) } else { tap });
            written.push((names.1.clone(), free));
            truth.push((names.0, Some(names.1), None));
        }
        let written: Vec<_> = written.iter().map(|(id, ms)| (id.as_str(), *ms)).collect();
        prop_assert_eq!(came(&orders(&written), &lines), truth);
    }

    #[test]
    fn a_line_that_names_its_order_is_its_own_however_wrong_its_clock_is(
        off in prop::collection::vec(-40_000_000_i64..40_000_000, 1..8)
    ) {
        let ids: Vec<_> = (0..off.len()).map(|i| format!("O{i}")).collect();
        let written: Vec<_> = ids.iter().zip(1..).map(|(id, i)| (id.as_str(), i * 5000)).collect();
        let lines: Vec<_> =
            written.iter().zip(&off).map(|((id, ms), off)| names(id, line(ms - 300 + off, id, "app", 1))).collect();
        let mut found = came(&orders(&written), &lines);
        found.sort();
        let found: Vec<_> = found.into_iter().map(|(request, order, _)| (request, order)).collect();
        prop_assert_eq!(found, ids.iter().map(|id| (id.clone(), Some(id.clone()))).collect::<Vec<_>>());
    }
}

/// A tap of a buyer of whom nothing but the name is known, with what its gateway makes of it. In milliseconds.
#[derive(Clone, Debug)]
struct Tap {
    after: i64,
    /// Until the shop wrote; `None` where the request never reached it.
    took: Option<i64>,
    /// When the gateway gave up; `None` where the answer came in time.
    gave_up: Option<i64>,
    /// How much later the gateway tries again, and whether that is answered.
    retried: Option<(i64, bool)>,
}

fn tap(after: std::ops::Range<i64>) -> impl Strategy<Value = Tap> {
    let retried = prop::option::of((0_i64..500, any::<bool>()));
    (after, prop::option::weighted(0.8, 10_i64..1500), prop::option::weighted(0.7, 200_i64..3000), retried)
        .prop_map(|(after, took, gave_up, retried)| Tap { after, took, gave_up, retried })
}

/// Orders with the milliseconds in, lines, and which order was written by which request.
type Tapped = (Vec<(String, i64)>, Vec<AccessLine>, Vec<(String, String)>);

/// What comes of taps. Whoever is answered is told the order; a retry of a tap that was
/// carried out is told that one's.
fn tapped(taps: &[Tap]) -> Tapped {
    let (mut orders, mut lines, mut truth) = (Vec::new(), Vec::new(), Vec::new());
    let mut now = 0;
    for (i, tap) in taps.iter().enumerate() {
        now += tap.after;
        let (request, retry, order) = (format!("r{i}"), format!("r{i}-again"), format!("O{i}"));
        let plain = line(now, &request, "app", 1);
        let written = tap.took.map(|took| now + took);
        if let Some(at) = written {
            orders.push((order.clone(), at));
            truth.push((order.clone(), request));
        }
        let lost_after = match (tap.gave_up, tap.took) {
            (None, Some(took)) => {
                lines.push(names(&order, takes(took + 20, plain)));
                continue;
            }
            (gave_up, _) => gave_up.unwrap_or(3000),
        };
        lines.push(lost(lost_after, plain));
        let Some((pause, is_answered)) = tap.retried else { continue };
        let at = now + lost_after + pause;
        let again = line(at, &retry, "gateway", 2);
        match written {
            // Where the first one is not done yet, it waits for it.
            Some(written) if is_answered => {
                lines.push(names(&order, takes((written - at).max(0) + 30, again)));
            }
            Some(_) => lines.push(lost(300, again)),
            None => {
                orders.push((order.clone(), at + 100));
                truth.push((order.clone(), retry));
                lines.push(if is_answered { names(&order, takes(120, again)) } else { lost(110, again) });
            }
        }
    }
    orders.sort_by_key(|(_, at)| *at);
    (orders, lines, truth)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_order_of_a_nameless_log_is_its_writers_or_it_is_told_that_it_may_be_anothers(
        taps in prop::collection::vec(tap(20..6000), 1..6), name in prop::sample::select(vec!["", "key", "trace"])
    ) {
        let (orders_of, mut lines, truth) = tapped(&taps);
        // One for all that the buyer sends; the shop keeps neither.
        for line in &mut lines {
            line.idempotency_key = (name == "key").then(|| "k".into());
            line.trace_id = (name == "trace").then(|| "tr".to_owned());
        }
        prop_assume!(!orders_of.is_empty());
        let written: Vec<_> = orders_of.iter().map(|(id, ms)| (id.as_str(), *ms)).collect();
        let mut book = orders(&written);
        book.ledgers.orders.iter_mut().for_each(|order| order.trace_id = None);
        traced(&book, &lines, &options(), |trace| {
            for arrival in trace.purchases.arrivals(0, &trace.options.sources) {
                let Some(rows) = arrival.order else { continue };
                let id = rows.order.order_id.to_string();
                let found = arrival.line.map(|l| l.request_id.clone()).unwrap_or_default();
                let (_, writer) = truth.iter().find(|(order, _)| *order == id).unwrap();
                assert!(found == *writer || arrival.has_rival, "{id} of {writer} is given to {found}: {lines:#?}");
                assert_eq!(arrival.inferred().is_some(), arrival.has_rival || arrival.basis == Basis::Buyer);
            }
            let fit = &trace.fit;
            assert!(fit.rivalled.max(fit.inferred) <= orders_of.len() as u64);
        });
    }

    #[test]
    fn one_tap_after_the_other_each_order_of_a_nameless_log_is_its_writers(
        taps in prop::collection::vec(tap(5200..9000), 1..6)
    ) {
        // Each reaches the shop, which writes before the gateway gives up.
        let in_time = |tap: Tap| {
            let took = tap.took.unwrap_or(40);
            Tap { took: Some(tap.gave_up.map_or(took, |end| took.min(end - 10))), ..tap }
        };
        let taps: Vec<_> = taps.into_iter().map(in_time).collect();
        let (orders_of, lines, truth) = tapped(&taps);
        let written: Vec<_> = orders_of.iter().map(|(id, ms)| (id.as_str(), *ms)).collect();
        let mut book = orders(&written);
        book.ledgers.orders.iter_mut().for_each(|order| order.trace_id = None);
        let mut found: Vec<_> =
            came(&book, &lines).into_iter().filter_map(|(request, order, _)| Some((order?, request))).collect();
        found.sort();
        prop_assert_eq!(found, truth);
    }

    #[test]
    fn no_order_is_outside_of_its_requests_time_where_all_can_be_within(
        requests in prop::collection::vec((0_i64..1500, 1_i64..3000, 0_i64..100), 1..9), has_trace in any::<bool>(),
    ) {
        let (mut came_at, mut written, mut lines) = (0, Vec::new(), Vec::new());
        for (i, (after, latency, percent)) in requests.into_iter().enumerate() {
            came_at += after;
            let tap = takes(latency, line(came_at, &format!("r{i}"), "app", 1));
            lines.push(if has_trace { of_trace(tap) } else { tap });
            written.push((format!("O{i}"), came_at + latency * percent / 100));
        }
        written.sort_by_key(|(_, at)| *at);
        let written: Vec<_> = written.iter().map(|(id, ms)| (id.as_str(), *ms)).collect();
        traced(&orders(&written), &lines, &options(), |trace| {
            for arrival in trace.purchases.arrivals(0, &trace.options.sources) {
                let (line, rows) = (arrival.line.unwrap(), arrival.order.unwrap());
                let at = rows.order.created_at;
                assert!(line.at <= at && at <= line.at.plus(line.latency.unwrap()), "{line:?} {at}: {lines:#?}");
            }
        });
    }
}

#[test]
fn a_request_id_that_comes_again_is_another_request_and_told() {
    let book = orders(&[("A", 200), ("B", 9200)]);
    let again = [line(0, "1", "app", 1), line(9000, "1", "app", 1)];
    let of = |lines: &[AccessLine]| {
        traced(&book, lines, &options(), |trace| {
            let all = trace.purchases.arrivals(0, &trace.options.sources);
            (all.iter().map(|a| a.repeats).collect::<Vec<_>>(), trace.fit.reused)
        })
    };
    assert_eq!(of(&again), (vec![None, None], 1));
    // One that got no answer is tried again; and one that counts on is a retry whatever was answered.
    assert_eq!(of(&[lost(3000, again[0].clone()), again[1].clone()]), (vec![None, Some(0)], 0));
    assert_eq!(of(&[again[0].clone(), line(9000, "1", "app", 2)]), (vec![None, Some(0)], 0));
    // Of another buyer, who has a purchase too.
    let mut book = Book::new();
    book.order("A", 0, "PENDING_PAYMENT").trace_id = Some("1".to_owned());
    book.order("B", 9, "PENDING_PAYMENT").user_id = "other".into();
    let others = AccessLine { user_id: Some("other".into()), ..line(8900, "1", "app", 1) };
    traced(&book, &[others], &options(), |trace| {
        let all = |i: usize| trace.purchases.arrivals(i, &trace.options.sources);
        let with_line: Vec<_> = (0..2).flat_map(all).filter(|a| a.line.is_some()).collect();
        assert_eq!(with_line.len(), 1);
        assert_eq!(with_line[0].order.unwrap().order.order_id.as_str(), "B");
    });
}

#[test]
fn the_logs_of_two_layers_are_told_of_and_a_second_tap_is_none() {
    let book = orders(&[("A", 200)]);
    let layered = |outer: AccessLine, inner: AccessLine| fit(&book, &[outer, inner]).is_layered();
    let gateway = of_trace(takes(310, line(0, "g-1", "app", 1)));
    assert!(layered(gateway.clone(), of_trace(takes(295, line(8, "s-1", "app", 1)))));
    assert!(layered(gateway.clone(), of_trace(takes(100, line(8, "s-1", "gateway", 1)))));
    assert!(layered(
        names("A", takes(310, line(0, "g-1", "app", 1))),
        names("A", takes(300, line(8, "s-1", "app", 1)))
    ));
    // A second tap takes its own time, a retry comes behind, and another trace is another request.
    assert!(!layered(gateway.clone(), of_trace(takes(120, line(100, "s-1", "app", 1)))));
    assert!(!layered(gateway.clone(), of_trace(takes(300, line(320, "g-1", "gateway", 2)))));
    assert!(!layered(gateway, takes(295, line(8, "s-1", "app", 1))));
}

#[test]
fn a_double_click_and_a_fast_retry_keep_their_orders() {
    let book = orders(&[("A", 150), ("B", 400)]);
    let taps = [line(0, "r1", "app", 1), line(250, "r2", "app", 1)];
    assert_eq!(came(&book, &taps), [wrote("r1", "A"), wrote("r2", "B")]);
    let retried = [of_trace(lost(200, line(0, "r1", "app", 1))), of_trace(line(250, "r1", "gateway", 2))];
    assert_eq!(came(&book, &retried), [wrote("r1", "A"), wrote("r1", "B")]);
}

#[test]
fn of_lines_that_nobody_else_took_the_one_in_flight_or_the_latest_wrote_it() {
    let nothing = |request: &str| (request.to_owned(), None, None);
    // The first never reached the shop.
    let lines = [lost(3000, line(0, "r1", "app", 1)), line(5000, "r2", "app", 1)];
    assert_eq!(came(&orders(&[("A", 5200)]), &lines), [nothing("r1"), wrote("r2", "A")]);
    let unanswered = lines.clone().map(|line| AccessLine { latency: None, ..line });
    assert_eq!(came(&orders(&[("A", 5200)]), &unanswered), [nothing("r1"), wrote("r2", "A")]);
    // Both are in flight, and the second one got the first one's answer.
    let twice = [takes(400, line(0, "r1", "app", 1)), takes(300, line(100, "r2", "app", 1))];
    assert_eq!(came(&orders(&[("A", 200)]), &twice), [wrote("r1", "A"), nothing("r2")]);
    // The first one still is, and the second was answered before.
    let answered = [takes(400, line(0, "r1", "app", 1)), takes(50, line(100, "r2", "app", 1))];
    assert_eq!(came(&orders(&[("A", 200)]), &answered), [wrote("r1", "A"), nothing("r2")]);
    // The order of a later line is not taken away from it.
    let lines = [lost(100, line(0, "r1", "app", 1)), line(500, "r2", "app", 1)];
    assert_eq!(came(&orders(&[("A", 600), ("B", 700)]), &lines), [wrote("r1", "A"), wrote("r2", "B")]);
}

#[test]
fn a_repeat_that_is_answered_with_the_order_did_not_write_it() {
    let again = |request: &str| (request.to_owned(), None, None);
    let book = orders(&[("A", 200)]);
    let replayed = [lost(500, line(0, "r1", "app", 1)), names("A", line(900, "r1", "gateway", 2))];
    assert_eq!(came(&book, &replayed), [wrote("r1", "A"), again("r1")]);
    traced(&book, &replayed, &options(), |trace| {
        let all = trace.purchases.arrivals(0, &trace.options.sources);
        assert_eq!(all[1].again.unwrap().as_str(), "A");
        assert_eq!((all[1].unknown(), all[1].left_nothing()), (None, false));
    });
    let both = [
        names("A", line(0, "r1", "app", 1)),
        names("A", AccessLine { status: Some(409), ..line(900, "r2", "app", 1) }),
    ];
    assert_eq!(came(&book, &both), [wrote("r1", "A"), again("r2")]);
}

/// For each order its request and attempt, and whether it may be another's.
fn doubted(book: &Book, lines: &[AccessLine]) -> Vec<(String, String, i64, bool)> {
    traced(book, lines, &options(), |trace| {
        let all = trace.purchases.arrivals(0, &trace.options.sources);
        let with_order = all.iter().filter_map(|a| Some((a.order?, a)));
        let found = with_order.map(|(rows, a)| {
            let request = a.line.map(|l| l.request_id.clone()).unwrap_or_default();
            (rows.order.order_id.to_string(), request, a.attempt, a.has_rival)
        });
        let mut found: Vec<_> = found.collect();
        found.sort();
        found
    })
}

fn of(order: &str, request: &str, attempt: i64, has_rival: bool) -> (String, String, i64, bool) {
    (order.to_owned(), request.to_owned(), attempt, has_rival)
}

fn answered(status: i64, took: i64, line: AccessLine) -> AccessLine {
    AccessLine { status: Some(status), ..takes(took, line) }
}

/// One order at so many milliseconds, of this trace id and key.
fn ordered(ms: i64, trace: Option<&str>, key: Option<&str>) -> Book {
    let mut book = orders(&[("A", ms)]);
    let order = book.find_order("A");
    (order.trace_id, order.idempotency_key) = (trace.map(str::to_owned), key.map(Into::into));
    book
}

#[test]
fn an_answer_that_names_an_order_may_be_that_of_an_attempt_before_it() {
    let first = lost(3000, line(0, "r", "app", 1));
    let retry =
        |request: &str, attempt: i64| names("A", takes(2500, line(3010, request, "gateway", attempt)));
    let plain = ordered(5000, None, None);
    // By the request, whether the attempts are counted or not; by the buyer.
    for (request, attempt) in [("r", 2), ("r", 1), ("r2", 1)] {
        let found = doubted(&plain, &[first.clone(), retry(request, attempt)]);
        assert_eq!(found, [of("A", request, attempt, true)]);
    }
    // By a trace id or key that both of them have.
    let keyed = |key: &str, line: AccessLine| AccessLine { idempotency_key: Some(key.into()), ..line };
    let both = [of_trace(keyed("k", first.clone())), of_trace(keyed("k", retry("r2", 1)))];
    for (trace, key) in [(Some("tr"), None), (None, Some("k")), (Some("tr"), Some("k"))] {
        assert_eq!(doubted(&ordered(5000, trace, key), &both), [of("A", "r2", 1, true)]);
    }
    // The order's own trace id, or key, tells them apart.
    let apart = [of_trace(keyed("k", first.clone())), keyed("k2", retry("r2", 1))];
    assert_eq!(doubted(&ordered(5000, Some("tr"), None), &apart), [of("A", "r", 1, false)]);
    assert_eq!(doubted(&ordered(5000, None, Some("k")), &apart), [of("A", "r", 1, false)]);
    assert_eq!(doubted(&ordered(5000, None, Some("k2")), &apart), [of("A", "r2", 1, false)]);
    // What was refused wrote nothing, and what wrote another order has one.
    let refused = answered(409, 3000, first.clone());
    assert_eq!(doubted(&plain, &[refused, retry("r", 2)]), [of("A", "r", 2, false)]);
    let mut two = orders(&[("A", 5000), ("B", 400)]);
    two.ledgers.orders.iter_mut().for_each(|order| order.trace_id = None);
    assert_eq!(doubted(&two, &[first, retry("r", 2)]), [of("A", "r", 2, false), of("B", "r", 1, false)]);
}

#[test]
fn a_request_that_failed_may_have_written_before_it_did() {
    for status in [500, 503, 507] {
        let failed = of_trace(answered(status, 900, line(0, "r", "app", 1)));
        let retry = of_trace(takes(100, line(2000, "r", "gateway", 2)));
        let book = ordered(500, Some("tr"), None);
        for retry in [retry.clone(), names("A", retry.clone()), lost(3000, retry.clone())] {
            assert_eq!(doubted(&book, &[failed.clone(), retry]), [of("A", "r", 1, false)], "{status}");
        }
        // The retry has a trace id of its own.
        let other = AccessLine { trace_id: Some("other".to_owned()), ..names("A", retry.clone()) };
        assert_eq!(doubted(&book, &[failed.clone(), other]), [of("A", "r", 1, false)], "{status}");
        // It had failed long before.
        assert_eq!(doubted(&ordered(2050, Some("tr"), None), &[failed, retry]), [of("A", "r", 2, false)]);
    }
}

#[test]
fn an_order_that_another_line_wrote_if_clocks_differ_a_little_may_be_that_ones() {
    let first = of_trace(lost(3000, line(0, "r", "app", 1)));
    let retry = |ms: i64| of_trace(takes(120, line(ms, "r", "gateway", 2)));
    let book = ordered(3090, Some("tr"), None);
    for (ms, is_near) in [(3106, true), (3310, true), (4090, true), (4091, false), (60_000, false)] {
        for retry in [retry(ms), lost(3000, retry(ms)), names("A", retry(ms))] {
            assert_eq!(doubted(&book, &[first.clone(), retry]), [of("A", "r", 1, is_near)], "{ms}");
        }
    }
    // It was answered just before.
    assert_eq!(doubted(&book, &[first.clone(), retry(2960)]), [of("A", "r", 1, true)]);
    assert_eq!(doubted(&book, &[first, retry(1900)]), [of("A", "r", 1, false)]);
    // All lines are off by the same: two orders of two taps could change places only if one were ahead, one behind.
    let taps = [line(0, "r1", "app", 1), line(250, "r2", "app", 1)].map(of_trace);
    let found = doubted(&orders(&[("A", 150), ("B", 400)]), &taps);
    assert_eq!(found, [of("A", "r1", 1, false), of("B", "r2", 1, false)]);
}

#[test]
fn an_order_is_in_doubt_where_that_of_its_other_line_may_be_a_third_ones() {
    // A may be the second line's if B is the third one's, which was answered just before. No two change places.
    let lines = [
        takes(1000, line(0, "r1", "app", 1)),
        lost(100, line(800, "r2", "app", 1)),
        takes(400, line(2500, "r3", "app", 1)),
    ];
    let book = orders(&[("A", 900), ("B", 3000)]);
    assert_eq!(doubted(&book, &lines), [of("A", "r1", 1, true), of("B", "r2", 1, true)]);
    assert_eq!(doubted(&book, &lines[..2]), [of("A", "r1", 1, false), of("B", "r2", 1, false)]);
}

#[test]
fn clocks_are_taken_to_differ_only_where_more_orders_find_a_line_so() {
    // The log is 300 ms fast, so the second line stands before the third order.
    let book = orders(&[("A", 200), ("B", 5200)]);
    let fast = [of_trace(line(300, "r1", "app", 1)), of_trace(line(5300, "r2", "app", 1))];
    let late = |request: &str, order: &str| (request.to_owned(), Some(order.to_owned()), Some(100));
    assert_eq!(came(&book, &fast), [late("r1", "A"), late("r2", "B")]);
    // By the buyer alone no line of a minute later is taken; by the trace id it is.
    let later = line(60_000, "r1", "app", 1);
    assert_eq!(came(&orders(&[("A", 0)]), std::slice::from_ref(&later)).len(), 2);
    let of_trace = came(&orders(&[("A", 0)]), &[of_trace(later)]);
    assert_eq!(of_trace, [("r1".to_owned(), Some("A".to_owned()), Some(60_000))]);
}

#[test]
fn one_request_in_the_logs_of_two_layers_came_once() {
    let book = orders(&[("A", 200)]);
    let layers = [takes(300, line(0, "r1", "app", 1)), takes(301, line(0, "r1", "app", 1))];
    assert_eq!(came(&book, &layers), [wrote("r1", "A")]);
    traced(&book, &layers, &options(), |trace| assert_eq!(trace.log().unwrap().twice, 1));
    let attempts = [line(0, "r1", "app", 1), line(0, "r1", "app", 2)];
    assert_eq!(came(&book, &attempts).len(), 2);
}

#[test]
fn a_lost_order_is_named_and_lines_of_a_purchase_that_is_not_asked_for_are_not() {
    let mut book = orders(&[("A", 200)]);
    let lines = [names("A", line(0, "r1", "app", 1)), names("GONE", line(5000, "r2", "app", 1))];
    let found = fit(&book, &lines);
    assert_eq!((found.unknown, found.unknown_orders.clone()), (1, vec!["GONE".to_owned()]));
    assert!(found.lacks_orders(), "{found:?}");
    // The same buyer's other purchase, from another device.
    let other = book.order("GONE", 5, "PENDING_PAYMENT");
    other.session_id = Some("laptop".into());
    let joined = Joined::new(&book.ledgers, &book.policy, book.as_of);
    let scope = Scope::default();
    let mut purchases = Purchases::of(&joined, Wanted::Order(&book.ledgers.orders[0].order_id, &scope));
    let read = purchases.read_log::<()>(book.policy.gap, async |_, take| {
        lines.iter().cloned().for_each(take);
        Ok(())
    });
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(read).unwrap();
    assert_eq!(purchases.intents().len(), 1);
    let arrivals = purchases.arrivals(0, &options().sources);
    assert_eq!(arrivals.iter().map(|a| a.line.unwrap().request_id.as_str()).collect::<Vec<_>>(), ["r1"]);
}

#[test]
fn a_log_that_lacks_a_tenth_of_what_it_should_have_is_told_of() {
    let ids: Vec<_> = (0..20).map(|i| format!("O{i}")).collect();
    let written: Vec<_> = ids.iter().zip(1..).map(|(id, i)| (id.as_str(), i * 60_000)).collect();
    let book = orders(&written);
    let all: Vec<_> =
        written.iter().map(|(id, ms)| names(id, takes(600, line(ms - 300, id, "app", 1)))).collect();
    let whole = fit(&book, &all);
    assert_eq!((whole.orders, whole.orders_without_line, whole.lines_without_order), (20, 0, 0));
    assert!(!whole.lacks_lines() && !whole.lacks_orders() && !whole.is_off() && !whole.is_of_answers());
    let without = |n: usize| fit(&book, &[&all[..5], &all[5 + n..]].concat());
    assert!(!without(1).lacks_lines(), "one in twenty");
    assert!(without(2).lacks_lines(), "one in ten");
    assert_eq!(fit(&book, &all[..5]).orders_without_line, 0, "the log was over before they were written");
    let and = |n: i64| {
        let more = (0..n).map(|i| line(70_000 + 7000 * i, &format!("x{i}"), "app", 1));
        fit(&book, &all.iter().cloned().chain(more).collect::<Vec<_>>())
    };
    assert!(!and(2).lacks_orders(), "two of twenty-two lines: {:?}", and(2));
    assert!(and(3).lacks_orders(), "three of twenty-three: {:?}", and(3));
}

#[test]
fn how_far_the_clocks_differ_is_told_and_the_time_of_an_answer_is_known() {
    let ids: Vec<_> = (0..20).map(|i| format!("O{i}")).collect();
    let written: Vec<_> = ids.iter().zip(1..).map(|(id, i)| (id.as_str(), i * 60_000)).collect();
    let book = orders(&written);
    let lines = |off: &dyn Fn(usize) -> i64| -> Vec<_> {
        let line = |(i, (id, ms)): (usize, &(&str, i64))| {
            names(id, takes(600, line(ms - 300 + off(i), id, "app", 1)))
        };
        written.iter().enumerate().map(line).collect()
    };
    let half = fit(&book, &lines(&|i| if i % 2 == 0 { 2000 } else { 0 }));
    assert_eq!((half.off, half.later.map(Span::micros)), (10, Some(1_700_000)));
    assert!(half.is_off() && !half.is_of_answers());
    let early = fit(&book, &lines(&|_| -1_500_000));
    assert_eq!(early.later.map(Span::micros), Some(-1_499_700_000), "since the answer that names it");
    assert!(early.is_off());
    assert!(!fit(&book, &lines(&|i| if i == 0 { 2000 } else { 0 })).is_off(), "one in twenty");
    let answers = fit(&book, &lines(&|_| 600));
    assert_eq!((answers.answered, answers.answered_later, answers.answered_at), (20, 20, 20));
    assert!(answers.is_of_answers());
}
