//! Which line wrote which order, and how well a log fits.

use onefold::core::join::Joined;
use onefold::core::scope::Scope;
use onefold::core::time::Span;
use onefold::core::trace::access::AccessLine;
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
