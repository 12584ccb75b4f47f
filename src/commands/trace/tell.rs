//! A trace on a terminal.

use serde_json::json;

use super::sheets::{Traced, picture};
use crate::commands::count;
use crate::commands::typing::again;
use crate::config::Config;
use crate::core::plan::id_of;
use crate::core::sheet::Sheets;
use crate::core::trace::Wanted;
use crate::core::trace::arrival::{Arrival, captures, tickets};
use crate::core::trace::chain::{Fate, Hop, NOT_IN_LOG};
use crate::core::trace::words::{attribution, lapse};
use crate::report::{Column, Report, Table};

/// How many of a kind are listed.
const LISTED: usize = 10;
/// How many arrivals of one purchase are.
const ARRIVALS: usize = 100;

pub fn report(config: &Config, traced: &Traced<'_>, wanted: Wanted<'_>) -> Report {
    let report = Report::new(json!(null)).title(&traced.title);
    if traced.trace.purchases.intents().is_empty() {
        let report = traced.orphaned().into_iter().fold(report, |report, found| report.line(found + "."));
        return report.line("No order is in scope: is the name right?");
    }
    let ended = |found: String| if found.ends_with('?') { found } else { found + "." };
    let report = traced.findings().into_iter().fold(report, |report, found| report.line(ended(found)));
    let report = timeline(config, report, traced);
    let report = sources(report, traced);
    let report = guards(report, traced);
    let report = chain(report, traced);
    let report = redeliveries(config, report, traced);
    let report = shapes(report, traced);
    let report = purchases(config, report, traced);
    let of = match wanted {
        Wanted::Scope(_) => "every purchase and arrival",
        Wanted::Intent(..) | Wanted::Order(..) => "all of it",
    };
    report
        .line(format!("With {of}, as a workbook (or html, csv, json):"))
        .command(leaving(config, "--format xlsx --output trace.xlsx"))
}

/// What was typed, to leave in another way. Under pseudonyms nobody is named: whoever types it does.
fn leaving(config: &Config, rest: &str) -> String {
    const PEOPLE: [(&str, &str); 2] = [("--user", "USER "), ("--session", "SESSION ")];
    let line = &config.line;
    if !line.iter().any(|word| word == "--redact") {
        return again(config, &[], rest);
    }
    let is_typed = |flag: &str| line.iter().any(|word| word.split('=').next() == Some(flag));
    let people = PEOPLE.iter().filter(|(flag, _)| is_typed(flag));
    let people: Vec<_> = people.flat_map(|(flag, who)| [*flag, " ", who]).collect();
    again(config, &PEOPLE.map(|(flag, _)| flag), &format!("{}{rest}", people.concat()))
}

/// `… and 3 more …`, and what lists them.
fn more(config: &Config, report: Report, all: usize, listed: usize, what: &str, sheet: &str) -> Report {
    match all.saturating_sub(listed) {
        0 => report,
        more => report
            .line(format!("… and {}:", count(more, &format!("more {what}"))))
            .command(leaving(config, &format!("--format csv --sheet {sheet}"))),
    }
}

/// What came for the one purchase that is traced.
fn timeline(config: &Config, report: Report, traced: &Traced<'_>) -> Report {
    let (trace, purchases) = (traced.trace, traced.trace.purchases);
    let [intent] = purchases.intents() else { return report };
    let arrivals = purchases.arrivals(0, &trace.options.sources);
    let Some(first) = arrivals.first().map(|a| a.at) else { return report };
    let mut table = Table::new([
        Column::number("AFTER"),
        Column::number("GAP"),
        Column::exact("WHAT CAME"),
        Column::number("TRY"),
        Column::prose("WHAT IT LEFT"),
    ]);
    let mut before = None;
    for arrival in arrivals.iter().take(ARRIVALS) {
        let gap = before.map(|b| lapse(arrival.at.since(b))).unwrap_or_default();
        before = Some(arrival.at);
        let what = match arrival.message {
            Some(message) => message.topic.clone(),
            None => arrival.called()[0].to_owned(),
        };
        let after = lapse(arrival.at.since(first));
        table.row([after, gap, what, arrival.attempt.to_string(), left(arrival, first)]);
    }
    let place = [intent.user_id.map(ToString::to_string), intent.show_id.map(ToString::to_string)];
    let [user, show] = place.map(|id| id.unwrap_or_else(|| "none".to_owned()));
    let report = report
        .title(format!("{}: tenant {}, user {user}, show {show}", id_of(intent), intent.tenant_id))
        .line(format!("From {first} on; a message stands where it was put into the queue."))
        .table(table);
    more(config, report, arrivals.len(), ARRIVALS, "arrival", "arrivals")
}

/// What an arrival left behind.
fn left(arrival: &Arrival<'_>, first: crate::core::time::Timestamp) -> String {
    let mut parts = Vec::new();
    if let Some(message) = arrival.message {
        parts.push(format!("{} {}", message.message_id, message.status));
        if let Some(order) = &message.order_id {
            parts.push(format!("of {order}"));
        }
        return parts.join(" ");
    }
    match &arrival.order {
        Some(rows) => {
            let order = rows.order;
            let after = arrival.line.map(|line| match arrival.late() {
                Some(late) if arrival.has_rival => format!(" {} before", lapse(late)),
                Some(late) => format!(" {} before (clocks differ)", lapse(late)),
                None => format!(" after {}", lapse(order.created_at.since(line.at))),
            });
            parts.push(format!("{}{}, {}", order.order_id, after.unwrap_or_default(), order.status));
            parts.extend(arrival.inferred().map(str::to_owned));
            for charge in captures(rows) {
                let at = lapse(charge.row.captured_at().since(first));
                parts.push(format!("captured {} at {at}", charge.row.payment_id));
            }
            match tickets(rows) {
                0 => {}
                n => parts.push(count(usize::try_from(n).unwrap_or(usize::MAX), "ticket")),
            }
        }
        None => parts.push(match (arrival.again, arrival.unknown()) {
            (Some(order), _) => format!("{order} again"),
            (None, Some(order)) => format!("no order; names {order}, which was not read"),
            (None, None) => "no order".to_owned(),
        }),
    }
    if let Some(line) = arrival.line {
        let after = line.latency.map(|l| format!(" after {}", lapse(l))).unwrap_or_default();
        parts.push(match line.status {
            Some(status) if line.is_lost() => format!("answer {status}: lost{after}"),
            Some(status) => format!("answer {status}{after}"),
            None => format!("answer lost{after}"),
        });
    }
    parts.join("; ")
}

fn sources(report: Report, traced: &Traced<'_>) -> Report {
    let mut table = Table::new([
        Column::exact("SOURCE"),
        Column::number("ARRIVALS"),
        Column::number("ORDERS"),
        Column::number("CAPTURES"),
        Column::number("TICKETS"),
    ]);
    let trace = traced.trace;
    for (source, left) in &trace.sources {
        let counts = [left.arrivals, left.orders, left.captures, left.tickets].map(|n| n.to_string());
        table.row([&[source.to_string()][..], &counts].concat());
    }
    let others = trace.named.iter().filter(|(name, source)| *name != source.as_str());
    let named: Vec<_> = others.map(|(name, source)| format!("{name} as {source}")).collect();
    let report = report.title("Who sent it, and what it left").table(table);
    if named.is_empty() { report } else { report.line(format!("Taken: {}.", named.join(", "))) }
}

fn guards(report: Report, traced: &Traced<'_>) -> Report {
    let mut table = Table::new([
        Column::exact("GUARD"),
        Column::number("ORDERS"),
        Column::number("CAPTURES"),
        Column::number("TICKETS"),
        Column::number("RUNS"),
    ]);
    let mut rules = Table::new([Column::exact("GUARD"), Column::prose("COUNTED SO")]);
    let row = |name: &str, s: &crate::core::trace::guards::Surplus| {
        [&[name.to_owned()][..], &[s.orders, s.captures, s.tickets, s.runs].map(|n| n.to_string())].concat()
    };
    table.row(row("(too much in all)", &traced.trace.surplus));
    for (guard, stopped) in &traced.trace.guards {
        table.row(row(guard.as_str(), stopped));
        rules.row([guard.to_string(), guard.rule().to_owned()]);
    }
    report.title("What each guard would have stopped").table(table).title("Counted so").table(rules)
}

fn chain(report: Report, traced: &Traced<'_>) -> Report {
    let mut table = Table::new([
        Column::exact("HOP"),
        Column::exact("HANDS ON"),
        Column::number("ROWS"),
        Column::number("CARRIED"),
        Column::number("DROPPED"),
        Column::number("ANEW"),
        Column::number("AFTER"),
        Column::number("NONE"),
    ]);
    let (mut not_in_log, mut not_in_ledgers) = (Vec::new(), Vec::new());
    for link in &traced.trace.chain.links {
        if link.rows == 0 {
            let places = if link.basis == NOT_IN_LOG { &mut not_in_log } else { &mut not_in_ledgers };
            places.push(format!("{} {}", link.hop, link.token));
            continue;
        }
        let counts = Fate::ALL.iter().map(|fate| link.of(*fate).to_string());
        let names = [link.hop.to_string(), link.token.to_string(), link.rows.to_string()];
        table.row(names.into_iter().chain(counts));
    }
    let mut report = report.title("What each hop hands on").table(table).line(
        "ANEW: the row has another. AFTER: the receiver made it when the request was there. NONE: neither has one.",
    );
    if let Some(link) = traced.trace.chain.links.iter().find(|l| l.hop == Hop::Order && l.rows > 0) {
        report = report.line(format!("{} by {}.", link.hop, link.basis));
    }
    for link in &traced.trace.chain.links {
        for example in link.examples.iter().take(1) {
            report = report.line(format!("  {}, {}: {example}", link.hop, link.token));
        }
    }
    for (place, links) in [("log", not_in_log), ("ledgers", not_in_ledgers)] {
        if !links.is_empty() {
            report = report.line(format!("Not in the {place}: {}.", links.join(", ")));
        }
    }
    report
}

fn redeliveries(config: &Config, report: Report, traced: &Traced<'_>) -> Report {
    let trace = traced.trace;
    if trace.redeliveries.is_empty() {
        return report;
    }
    let mut table = Table::new([
        Column::exact("TOPIC"),
        Column::exact("KEY"),
        Column::number("DELIVERED"),
        Column::number("EFFECTS"),
        Column::number("GAP"),
        Column::prose("CAUSE"),
    ]);
    for again in trace.redeliveries.iter().take(LISTED) {
        let (_, topic, key) = again.key;
        let gap = match again.messages.len() {
            1 => format!("≥ {}", lapse(again.gap)),
            _ => lapse(again.gap),
        };
        let counts = [again.deliveries.to_string(), again.effects.to_string()];
        let [delivered, effects] = counts;
        table.row([topic.to_owned(), key.to_owned(), delivered, effects, gap, again.cause.to_string()]);
    }
    let report = report
        .title("Delivered more than once")
        .line(format!("Beside a visibility timeout of {} (--visibility).", trace.options.visibility))
        .table(table);
    more(config, report, trace.redeliveries.len(), LISTED, "key", "redeliveries")
}

fn shapes(report: Report, traced: &Traced<'_>) -> Report {
    let Some(pieces) = traced.trace.pieces else { return report };
    let mut table = Table::new([
        Column::exact("SERIES"),
        Column::number("IN ALL"),
        Column::number("MOST"),
        Column::exact("PICTURE"),
    ]);
    let mut rules =
        Table::new([Column::exact("SERIES"), Column::exact("SHAPE"), Column::prose("BY THE RULE")]);
    for series in &traced.trace.series {
        let most = series.counts.iter().copied().max().unwrap_or(0);
        let all: u64 = series.counts.iter().sum();
        table.row([series.name.to_owned(), all.to_string(), most.to_string(), picture(&series.counts)]);
        rules.row([series.name.to_owned(), series.shape.to_string(), series.shape.rule()]);
    }
    report
        .title("Over time")
        .line(format!("From {}, {} of {} each.", pieces.begins, count(pieces.count, "piece"), pieces.length))
        .table(table)
        .title("Which shape that is")
        .table(rules)
}

/// The purchases with most orders.
fn purchases(config: &Config, report: Report, traced: &Traced<'_>) -> Report {
    let purchases = traced.trace.purchases;
    if purchases.intents().len() == 1 {
        return report;
    }
    let mut table = Table::new([
        Column::exact("PURCHASE"),
        Column::exact("USER"),
        Column::number("ORDERS"),
        Column::prose("WHAT HAPPENED"),
    ]);
    let doubled: Vec<_> =
        traced.trace.by_orders().into_iter().filter(|at| purchases.intents()[*at].orders.len() > 1).collect();
    for at in doubled.iter().take(LISTED) {
        let intent = &purchases.intents()[*at];
        let user = intent.user_id.map(ToString::to_string).unwrap_or_default();
        let what = attribution(&purchases.arrivals(*at, &traced.trace.options.sources));
        table.row([id_of(intent), user, intent.orders.len().to_string(), what]);
    }
    if doubled.is_empty() {
        return report.line("No purchase has more than one order.");
    }
    let report = report.title("Purchases with more than one order").table(table);
    more(config, report, doubled.len(), LISTED, "purchase", "purchases")
}
