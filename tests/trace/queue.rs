//! Messages that were delivered more than once.

use onefold::core::trace::redelivery::Cause;

use crate::common::book::{Book, at};
use crate::scene::{options, traced};
use onefold::core::time::Span;
use onefold::core::trace::Options;

type Found = (String, u64, u64, Span, Cause);

fn found(book: &Book, visibility: i64) -> Vec<Found> {
    let options = Options { visibility: Span::from_secs(visibility), ..options() };
    traced(book, &[], &options, |trace| {
        trace
            .redeliveries
            .iter()
            .map(|r| (r.key.2.to_owned(), r.deliveries, r.effects, r.gap, r.cause))
            .collect()
    })
}

fn message(book: &mut Book, id: &str, key: Option<&str>, status: &str, attempts: i64, seconds: i64) {
    let row = book.message(id, "A", "inventory.release", status);
    (row.message_key, row.attempts, row.created_at) = (key.map(str::to_owned), attempts, at(seconds));
}

#[test]
fn two_consumed_rows_of_one_key_are_an_effect_that_happened_twice() {
    let mut book = Book::new();
    book.order("A", 0, "CANCELLED");
    message(&mut book, "M-1", Some("k"), "CONSUMED", 1, 10);
    message(&mut book, "M-2", Some("k"), "CONSUMED", 1, 50);
    message(&mut book, "M-3", Some("other"), "CONSUMED", 1, 50);
    let gap = Span::from_secs(40);
    assert_eq!(found(&book, 30), [("k".to_owned(), 2, 2, gap, Cause::TimedOut)]);
    assert_eq!(found(&book, 41), [("k".to_owned(), 2, 2, gap, Cause::SentTwice)]);
    assert_eq!(
        found(&book, 40)[0].4,
        Cause::TimedOut,
        "a message that is hidden for 40 s is there after 40 s"
    );
}

#[test]
fn a_row_without_key_is_known_by_its_order_and_what_was_never_delivered_does_not_count() {
    let mut book = Book::new();
    book.order("A", 0, "CANCELLED");
    message(&mut book, "M-1", None, "CONSUMED", 0, 10);
    message(&mut book, "M-2", None, "QUEUED", 0, 20);
    assert_eq!(found(&book, 30), []);
    message(&mut book, "M-3", None, "IN_FLIGHT", 0, 30);
    assert_eq!(found(&book, 30), [("A".to_owned(), 2, 1, Span::from_secs(20), Cause::SentTwice)]);
}

#[test]
fn one_row_with_attempts_was_redelivered_no_sooner_than_the_timeout_allows() {
    let mut book = Book::new();
    book.order("A", 0, "PAID");
    message(&mut book, "M-1", Some("k"), "DEAD", 4, 10);
    message(&mut book, "M-2", Some("z"), "CONSUMED", 1, 90);
    message(&mut book, "M-3", Some("z"), "CONSUMED", 1, 91);
    let all = found(&book, 30);
    assert_eq!(all[0].0, "z", "what had its effect twice comes first");
    assert_eq!(all[1], ("k".to_owned(), 4, 0, Span::from_secs(90), Cause::Redelivered));
    traced(&book, &[], &options(), |trace| {
        let redelivered = trace.series.iter().find(|s| s.name == "redeliveries").unwrap();
        assert_eq!(redelivered.counts.iter().sum::<u64>(), 4, "three more attempts, one more row");
    });
}
