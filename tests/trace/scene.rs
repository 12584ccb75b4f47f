//! Traces of small ledgers.

use onefold::core::join::Joined;
use onefold::core::scope::Scope;
use onefold::core::time::Span;
use onefold::core::trace::access::{AccessLine, Sources};
use onefold::core::trace::{Options, Purchases, Trace, Wanted};

use crate::common::book::{Book, at};

pub fn options() -> Options {
    Options { sources: Sources::default(), visibility: Span::from_secs(30), piece: None }
}

/// A request of the tests' buyer, so many milliseconds in.
pub fn line(ms: i64, request: &str, source: &str, attempt: i64) -> AccessLine {
    AccessLine {
        at: at(0).plus(Span::from_micros(ms * 1000)),
        tenant_id: "t".into(),
        request_id: request.to_owned(),
        source: source.to_owned(),
        attempt,
        status: Some(201),
        latency: Some(Span::from_micros(300_000)),
        trace_id: None,
        idempotency_key: None,
        user_id: Some("u".into()),
        show_id: Some("show".into()),
        order_id: None,
    }
}

/// Its answer was given up after so many milliseconds.
pub fn lost(after_ms: i64, line: AccessLine) -> AccessLine {
    AccessLine { status: None, latency: Some(Span::from_micros(after_ms * 1000)), ..line }
}

/// What a trace of a book and these lines says; without lines there is no log.
pub fn traced<T>(
    book: &Book,
    lines: &[AccessLine],
    options: &Options,
    see: impl FnOnce(&Trace<'_>) -> T,
) -> T {
    let joined = Joined::new(&book.ledgers, &book.policy, book.as_of);
    let mut purchases = Purchases::of(&joined, Wanted::Scope(&Scope::default()));
    if !lines.is_empty() {
        let read = purchases.read_log::<()>(book.policy.gap, async |_, take| {
            lines.iter().cloned().for_each(take);
            Ok(())
        });
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(read).unwrap();
    }
    see(&Trace::new(&purchases, options).unwrap())
}
