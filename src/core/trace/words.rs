//! What happened to a purchase, in a sentence.

use super::access::Source;
use super::arrival::Arrival;
use crate::core::time::Span;

/// `8 orders = 6 taps + 2 gateway retries; the first was written 430 ms in, its answer was lost at 3.0 s, the
/// gateway retried at 3.0 s and 6.1 s`. What no row tells is left out.
pub fn attribution(arrivals: &[Arrival<'_>]) -> String {
    let wrote: Vec<_> = arrivals.iter().filter(|a| a.order.is_some()).collect();
    let mut counts: Vec<([&str; 2], usize)> = Vec::new();
    for arrival in &wrote {
        let called = arrival.called();
        match counts.iter_mut().find(|(name, _)| *name == called) {
            Some((_, n)) => *n += 1,
            None => counts.push((called, 1)),
        }
    }
    let parts: Vec<_> =
        counts.iter().map(|([one, many], n)| format!("{n} {}", if *n == 1 { one } else { many })).collect();
    let orders = if wrote.len() == 1 { "order" } else { "orders" };
    let mut sentence = match parts.is_empty() {
        true => "no order".to_owned(),
        false => format!("{} {orders} = {}", wrote.len(), parts.join(" + ")),
    };
    let story = story(arrivals);
    if !story.is_empty() {
        sentence += &format!("; {}", story.join(", "));
    }
    sentence
}

/// What became of the first request that wrote an order, as its lines tell.
fn story(arrivals: &[Arrival<'_>]) -> Vec<String> {
    let mut story = Vec::new();
    let Some(at) = arrivals.iter().position(|a| a.order.is_some()) else { return story };
    let first = &arrivals[at];
    let (Some(line), Some(rows)) = (first.line, first.order) else { return story };
    story.push(match first.late() {
        Some(late) => {
            let why =
                if first.has_rival { "clocks differ or another request wrote it" } else { "clocks differ" };
            format!("the first was written {} before its line, so {why}", lapse(late))
        }
        None => format!("the first was written {} in", lapse(rows.order.created_at.since(line.at))),
    });
    if let Some(lost) = line.lost_at() {
        story.push(format!("its answer was lost at {}", lapse(lost.since(line.at))));
    } else if line.is_lost() {
        story.push("its answer was lost".to_owned());
    }
    for (source, who) in [(Source::Gateway, "the gateway"), (Source::Client, "the client")] {
        let again = arrivals.iter().filter(|a| a.repeats == Some(at) && a.source == source);
        let again: Vec<_> = again.map(|a| lapse(a.at.since(line.at))).collect();
        if let Some((last, others)) = again.split_last() {
            let times = match others {
                [] => last.clone(),
                others => format!("{} and {last}", others.join(", ")),
            };
            story.push(format!("{who} retried at {times}"));
        }
    }
    story
}

/// A span as a person says it: `430 ms`, `3.0 s`, `4m20s`.
pub fn lapse(span: Span) -> String {
    let micros = span.micros();
    match micros.unsigned_abs() {
        0..=999_999 => format!("{} ms", (micros as f64 / 1e3).round()),
        1_000_000..=59_949_999 => format!("{:.1} s", micros as f64 / 1e6),
        _ => Span::from_secs((micros as f64 / 1e6).round() as i64).to_string(),
    }
}
