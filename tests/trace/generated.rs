//! Arrivals of known sources are found as what they are.

use std::collections::BTreeMap;

use onefold::core::time::Span;
use onefold::core::trace::access::{AccessLine, Source};
use onefold::core::trace::guards::Guard;
use proptest::prelude::*;

use crate::common::book::{Book, at};
use crate::scene::{options, traced};

/// What is sent of one request: the tap, and how its gateway repeats it.
#[derive(Clone, Debug)]
struct Tap {
    /// Milliseconds to the attempt before.
    after: i64,
    /// Which attempts left an order: the tap, then its retries.
    wrote: Vec<bool>,
}

fn taps() -> impl Strategy<Value = Vec<Tap>> {
    let tap = (1500_i64..20_000, prop::collection::vec(any::<bool>(), 1..4))
        .prop_map(|(after, wrote)| Tap { after, wrote });
    prop::collection::vec(tap, 1..6)
}

/// How much a line says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Says {
    Order,
    Trace,
    Key,
    Buyer,
}

/// What was generated: ledgers, lines, and how many arrivals and orders of each source there are.
fn played(buyers: &[Vec<Tap>], says: Says) -> (Book, Vec<AccessLine>, BTreeMap<Source, (u64, u64)>) {
    let (mut book, mut lines) = (Book::new(), Vec::new());
    let mut truth: BTreeMap<Source, (u64, u64)> = BTreeMap::new();
    for (buyer, taps) in buyers.iter().enumerate() {
        let (user, mut ms) = (format!("u{buyer}"), 0);
        for (t, tap) in taps.iter().enumerate() {
            for (n, wrote) in tap.wrote.iter().enumerate() {
                ms += if n == 0 { tap.after } else { 1500 };
                let source = if n == 0 { Source::Client } else { Source::Gateway };
                let name = format!("{user}-{t}-{n}");
                let came = at(0).plus(Span::from_micros(ms * 1000));
                let of = truth.entry(source).or_default();
                of.0 += 1;
                let line = AccessLine {
                    at: came,
                    tenant_id: "t".into(),
                    request_id: format!("r-{user}-{t}"),
                    source: source.to_string(),
                    attempt: n as i64 + 1,
                    // What left nothing was refused; else a line could be any order's.
                    status: Some(if *wrote { 201 } else { 409 }),
                    latency: None,
                    trace_id: (says == Says::Trace).then(|| name.clone()),
                    idempotency_key: (says == Says::Key).then(|| name.as_str().into()),
                    user_id: Some(user.as_str().into()),
                    show_id: Some("show".into()),
                    order_id: (says == Says::Order && *wrote).then(|| name.as_str().into()),
                };
                lines.push(line);
                if *wrote {
                    of.1 += 1;
                    let order = book.order(&name, 0, "PENDING_PAYMENT");
                    order.user_id = user.as_str().into();
                    order.created_at = came.plus(Span::from_micros(400_000));
                    order.trace_id = (says == Says::Trace).then(|| name.clone());
                    order.idempotency_key = (says == Says::Key).then(|| name.as_str().into());
                    order.source = None;
                }
            }
        }
    }
    (book, lines, truth)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_arrival_is_found_as_what_it_was(
        buyers in prop::collection::vec(taps(), 1..5),
        says in prop::sample::select(vec![Says::Order, Says::Trace, Says::Key, Says::Buyer]),
        seed in any::<u64>(),
    ) {
        let (book, mut lines, truth) = played(&buyers, says);
        // Lines come as they come.
        let n = lines.len();
        (0..n).for_each(|i| lines.swap(i, (seed as usize).wrapping_mul(i + 7) % n));
        let all = book.ledgers.orders.len();
        traced(&book, &lines, &options(), |trace| {
            let log = trace.log().unwrap();
            let orders: u64 = trace.sources.values().map(|left| left.orders).sum();
            assert_eq!(orders, all as u64, "each order has one arrival");
            // Of a buyer without any order there is no purchase, and none of its lines.
            let with_orders = |i: usize| book.ledgers.orders.iter().any(|o| o.user_id.as_str() == format!("u{i}"));
            if (0..buyers.len()).all(with_orders) {
                assert_eq!(log.placed.values().sum::<u64>(), n as u64);
                for (source, (arrivals, orders)) in &truth {
                    let left = trace.sources.get(source).copied().unwrap_or_default();
                    assert_eq!((left.arrivals, left.orders), (*arrivals, *orders), "{source}");
                }
                assert!(trace.sources.keys().all(|source| truth.contains_key(source)));
            }
            for (at, intent) in trace.purchases.intents().iter().enumerate() {
                let arrivals = trace.purchases.arrivals(at, &trace.options.sources);
                let mut seen: Vec<_> = arrivals.iter().filter_map(|a| a.order).map(|o| &o.order.order_id).collect();
                seen.sort();
                seen.dedup();
                assert_eq!(seen.len(), intent.orders.len());
                for arrival in arrivals.iter().filter(|a| a.source == Source::Gateway) {
                    let first = &arrivals[arrival.repeats.unwrap()];
                    let request = |a: &onefold::core::trace::arrival::Arrival<'_>| a.line.unwrap().request_id.clone();
                    assert_eq!(request(first), request(arrival), "a retry repeats its own request");
                }
                for arrival in &arrivals {
                    let (Some(line), Some(rows)) = (arrival.line, arrival.order) else { continue };
                    let name = rows.order.order_id.as_str().rsplit_once('-').unwrap().0;
                    assert_eq!(line.request_id, format!("r-{name}"), "an order is its own request's");
                }
            }
        });
    }

    #[test]
    fn no_guard_stops_more_than_there_is_too_much(
        buyers in prop::collection::vec(taps(), 1..5), keys in prop::collection::vec(0_u8..4, 40)
    ) {
        let (mut book, lines, _) = played(&buyers, Says::Trace);
        for (order, key) in book.ledgers.orders.iter_mut().zip(keys) {
            order.idempotency_key = (key > 0).then(|| format!("{}-{key}", order.user_id).as_str().into());
        }
        if book.ledgers.orders.is_empty() {
            return Ok(());
        }
        traced(&book, &lines, &options(), |trace| {
            let most = trace.surplus;
            for (guard, stopped) in &trace.guards {
                let fits = stopped.orders <= most.orders && stopped.captures <= most.captures;
                assert!(fits && stopped.tickets <= most.tickets && stopped.runs <= most.runs, "{guard}: {stopped:?}");
            }
            let orders = |guard| trace.guards.iter().find(|(g, _)| *g == guard).unwrap().1.orders;
            assert_eq!(orders(Guard::ClientKey), most.orders, "taps and retries are all that there is");
            // Taps and retries of them are all that there is, and no order counts twice.
            assert!(orders(Guard::Merging) + orders(Guard::Token) <= most.orders + trace.purchases.intents().len() as u64);
        });
    }
}
