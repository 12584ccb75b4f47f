//! What a trace lists, sheet by sheet.

use serde_json::{Value, json};

use crate::commands::count;
use crate::core::plan::id_of;
use crate::core::sheet::{Cell, Column, Fact, Head, Holds, Put, Sheets, column, maybe, number, text};
use crate::core::time::Timestamp;
use crate::core::trace::Trace;
use crate::core::trace::arrival::{Arrival, captures, tickets};
use crate::core::trace::chain::{Fate, Link, Token};
use crate::core::trace::guards::Guard;
use crate::core::trace::words::{attribution, lapse};
use crate::error::Result;
use crate::report::sparkline;

/// A trace, to be told and written.
pub struct Traced<'t> {
    pub trace: &'t Trace<'t>,
    pub title: String,
    pub read_at: Timestamp,
}

const TENANT: Column = column("tenant_id", "Tenant", Holds::Text, 12);
const PURCHASE: Column = column("intent_id", "Purchase", Holds::Text, 20);
const USER: Column = column("user_id", "User", Holds::Text, 24);
const SHOW: Column = column("show_id", "Show", Holds::Text, 14);
const SOURCE: Column = column("source", "Source", Holds::Text, 14);
const ARRIVALS: Column = column("arrivals", "Arrivals", Holds::Number, 10);
const ORDERS: Column = column("orders", "Orders", Holds::Number, 9);
const CAPTURES: Column = column("captures", "Captures", Holds::Number, 10);
const TICKETS: Column = column("tickets", "Tickets", Holds::Number, 9);
const RULE: Column = column("rule", "Counted so", Holds::Prose, 60);

pub const HEADS: [Head; 8] = [
    Head {
        title: "Sources",
        row_is: "a kind of source, and what it left",
        columns: &[SOURCE, ARRIVALS, ORDERS, CAPTURES, TICKETS],
    },
    Head {
        title: "Guards",
        row_is: "a guard, and what it would have stopped",
        columns: &[
            column("guard", "Guard", Holds::Text, 24),
            ORDERS,
            CAPTURES,
            TICKETS,
            column("runs", "Runs again", Holds::Number, 11),
            RULE,
        ],
    },
    Head {
        title: "Hops",
        row_is: "what a hop does with what identifies a request",
        columns: &[
            column("hop", "Hop", Holds::Text, 20),
            column("token", "Hands on", Holds::Text, 16),
            column("rows", "Rows", Holds::Number, 9),
            column("carried", "Carried", Holds::Number, 9),
            column("dropped", "Dropped", Holds::Number, 9),
            column("minted", "Minted anew", Holds::Number, 12),
            column("minted_after", "Minted after arrival", Holds::Number, 20),
            column("neither", "Neither has one", Holds::Number, 16),
            column("examples", "Examples", Holds::Prose, 60),
            column("basis", "By", Holds::Prose, 50),
        ],
    },
    Head {
        title: "Redeliveries",
        row_is: "a message key that was delivered more than once",
        columns: &[
            TENANT,
            column("topic", "Topic", Holds::Text, 20),
            column("message_key", "Key", Holds::Text, 20),
            column("at", "First (UTC)", Holds::Time, 24),
            column("deliveries", "Deliveries", Holds::Number, 11),
            column("effects", "Effects", Holds::Number, 9),
            column("gap_ms", "Gap (ms)", Holds::Number, 11),
            column("cause", "Cause", Holds::Text, 18),
            column("messages", "Messages", Holds::Text, 30),
        ],
    },
    Head {
        title: "Shapes",
        row_is: "what was counted over time",
        columns: &[
            column("series", "Series", Holds::Text, 14),
            column("total", "In all", Holds::Number, 9),
            column("most", "Most in one", Holds::Number, 12),
            column("shape", "Shape", Holds::Text, 18),
            column("picture", "Picture", Holds::Text, 50),
            RULE,
        ],
    },
    Head {
        title: "Times",
        row_is: "a piece of time",
        columns: &[
            column("begins", "Begins (UTC)", Holds::Time, 24),
            ORDERS,
            column("duplicates", "Duplicates", Holds::Number, 11),
            CAPTURES,
            column("redeliveries", "Redeliveries", Holds::Number, 13),
        ],
    },
    Head {
        title: "Purchases",
        row_is: "a purchase",
        columns: &[
            TENANT,
            PURCHASE,
            USER,
            SHOW,
            ARRIVALS,
            ORDERS,
            CAPTURES,
            TICKETS,
            column("attribution", "What happened", Holds::Prose, 80),
        ],
    },
    Head {
        title: "Arrivals",
        row_is: "a request, or the deliveries of a message",
        columns: &[
            TENANT,
            PURCHASE,
            column("at", "At (UTC)", Holds::Time, 24),
            column("gap_ms", "Gap (ms)", Holds::Number, 11),
            SOURCE,
            column("named", "Named", Holds::Text, 16),
            column("attempt", "Attempt", Holds::Number, 9),
            column("request_id", "Request", Holds::Text, 24),
            column("status", "Answer", Holds::Number, 9),
            column("latency_ms", "Latency (ms)", Holds::Number, 12),
            column("answer_order_id", "Answer names", Holds::Text, 18),
            column("order_id", "Order", Holds::Text, 18),
            column("order_at", "Written (UTC)", Holds::Time, 24),
            column("order_status", "Status", Holds::Text, 18),
            CAPTURES,
            column("captured_at", "First capture (UTC)", Holds::Time, 24),
            TICKETS,
            column("messages", "Messages", Holds::Text, 40),
            column("message_id", "Message", Holds::Text, 18),
            column("basis", "Known by", Holds::Text, 40),
        ],
    },
];

fn ms(micros: i64) -> Cell<'static> {
    Cell::Number(micros.div_euclid(1000))
}

impl Traced<'_> {
    /// Rows that nothing in the ledgers can be said about have no counts.
    fn link_cells(link: &Link) -> Vec<Cell<'_>> {
        let known = |n: u64| if link.rows == 0 { Cell::None } else { number(n) };
        let fates = Fate::ALL.iter().map(|fate| known(link.of(*fate)));
        let mut cells = vec![text(link.hop.as_str()), text(link.token.as_str()), known(link.rows)];
        cells.extend(fates);
        cells.extend([text(link.examples.join("\n")), text(link.basis)]);
        cells
    }

    fn purchases<'a>(&'a self, put: Put<'_, 'a>) -> Result<()> {
        for (at, intent) in self.trace.purchases.intents().iter().enumerate() {
            let arrivals = self.trace.purchases.arrivals(at, &self.trace.options.sources);
            put(&[
                text(intent.tenant_id.as_str()),
                text(id_of(intent)),
                maybe(intent.user_id.map(|u| u.as_str())),
                maybe(intent.show_id.map(|s| s.as_str())),
                number(arrivals.iter().map(Arrival::times).sum::<u64>()),
                number(intent.orders.len()),
                number(intent.orders.iter().map(|o| captures(o).count()).sum::<usize>()),
                number(intent.orders.iter().map(tickets).sum::<u64>()),
                text(attribution(&arrivals)),
            ])?;
        }
        Ok(())
    }

    fn arrivals<'a>(&'a self, put: Put<'_, 'a>) -> Result<()> {
        for (at, intent) in self.trace.purchases.intents().iter().enumerate() {
            let id = id_of(intent);
            let mut before: Option<Timestamp> = None;
            for arrival in self.trace.purchases.arrivals(at, &self.trace.options.sources) {
                let (line, rows, message) = (arrival.line, arrival.order, arrival.message);
                let messages: Vec<_> =
                    rows.map_or(&[][..], |r| r.messages).iter().map(|m| m.message_id.as_str()).collect();
                put(&[
                    text(intent.tenant_id.as_str()),
                    text(id.clone()),
                    Cell::Time(arrival.at),
                    before.map_or(Cell::None, |b| ms(arrival.at.since(b).micros())),
                    text(arrival.source.as_str()),
                    maybe(arrival.named),
                    Cell::Number(arrival.attempt),
                    maybe(line.map(|l| l.request_id.as_str())),
                    line.and_then(|l| l.status).map_or(Cell::None, Cell::Number),
                    line.and_then(|l| l.latency).map_or(Cell::None, |l| ms(l.micros())),
                    maybe(line.and_then(|l| l.order_id.as_ref()).map(|id| id.as_str())),
                    maybe(rows.map(|r| r.order.order_id.as_str())),
                    rows.map_or(Cell::None, |r| Cell::Time(r.order.created_at)),
                    maybe(rows.map(|r| r.order.status.as_str()).or(message.map(|m| m.status.as_str()))),
                    rows.map_or(Cell::None, |r| number(captures(&r).count())),
                    rows.and_then(|r| captures(&r).map(|c| c.row.captured_at()).min())
                        .map_or(Cell::None, Cell::Time),
                    rows.map_or(Cell::None, |r| number(tickets(&r))),
                    text(messages.join(" ")),
                    maybe(message.map(|m| m.message_id.as_str())),
                    match arrival.inferred() {
                        Some(inferred) => text(format!("{}: {inferred}", arrival.basis)),
                        None => text(arrival.basis.as_str()),
                    },
                ])?;
                before = Some(arrival.at);
            }
        }
        Ok(())
    }

    /// What has no order, if anything.
    pub fn orphaned(&self) -> Option<String> {
        let orphaned = self.trace.orphaned;
        let counts = [(orphaned.captures, "capture"), (orphaned.tickets, "ticket")];
        let there = counts.iter().filter(|(n, _)| *n > 0);
        let parts: Vec<_> =
            there.map(|(n, what)| count(usize::try_from(*n).unwrap_or(usize::MAX), what)).collect();
        (!parts.is_empty())
            .then(|| format!("{} without an order that is there, so of no source", parts.join(" and ")))
    }

    /// What one purchase came to, where the trace is about one.
    pub fn attribution(&self) -> Option<String> {
        let purchases = self.trace.purchases;
        (purchases.intents().len() == 1)
            .then(|| attribution(&purchases.arrivals(0, &self.trace.options.sources)))
    }
}

impl Sheets for Traced<'_> {
    fn verb(&self) -> &'static str {
        "trace"
    }

    fn title(&self) -> String {
        self.title.clone()
    }

    fn findings(&self) -> Vec<String> {
        let trace = self.trace;
        let (purchases, more) = (trace.purchases.intents().len(), trace.surplus);
        let n = |n: u64, what: &str| count(usize::try_from(n).unwrap_or(usize::MAX), what);
        let mut found: Vec<String> = self.log_warning().into_iter().chain(self.attribution()).collect();
        found.push(format!(
            "{} of {}: beyond one a purchase there are {}, {} and {}",
            count(trace.orders(), "order"),
            count(purchases, "purchase"),
            n(more.orders, "order"),
            n(more.captures, "capture"),
            n(more.tickets, "ticket"),
        ));
        found.extend(self.orphaned());
        let twice: Vec<_> = trace.redeliveries.iter().filter(|r| r.has_effect_twice()).collect();
        if let Some(first) = twice.first() {
            let (_, topic, key) = first.key;
            found.push(format!(
                "{} worked off more than once: {topic} of {key} {} times, the second {} after the first ({})",
                if twice.len() == 1 {
                    "1 message key was".to_owned()
                } else {
                    format!("{} message keys were", twice.len())
                },
                first.effects,
                lapse(first.gap),
                first.cause
            ));
        }
        let keys = trace.chain.links.iter().filter(|l| l.token == Token::Key);
        for link in keys.filter(|l| l.of(Fate::MintedAfter) > 0) {
            let minted = link.of(Fate::MintedAfter);
            found.push(format!(
                "{}: {} minted by the receiver when the request was there already; such a key cannot recognise a retry",
                link.hop,
                if minted == 1 { "1 key was".to_owned() } else { format!("{minted} keys were") },
            ));
        }
        found.extend(self.log_told());
        found
    }

    fn facts(&self) -> Vec<Fact<'_>> {
        let trace = self.trace;
        let say = |name: &str, value: String| (name.to_owned(), text(value));
        let mut facts = vec![
            say("About", self.title.clone()),
            ("Read at (UTC)".to_owned(), Cell::Time(self.read_at)),
            say("Visibility timeout", trace.options.visibility.to_string()),
        ];
        for (name, source) in &trace.named {
            facts.push(say(&format!("Source {name}"), format!("taken for: {source}")));
        }
        if let Some(pieces) = trace.pieces {
            facts.push(("Times begin (UTC)".to_owned(), Cell::Time(pieces.begins)));
            facts.push(say("A piece of time", pieces.length.to_string()));
        }
        facts
    }

    fn json(&self) -> Value {
        let trace = self.trace;
        let with = |name: &str, of: &str, mut value: Value| {
            value[name] = json!(of);
            value
        };
        let sources: Vec<_> =
            trace.sources.iter().map(|(source, left)| with("source", source.as_str(), json!(left))).collect();
        let guards: Vec<_> = trace
            .guards
            .iter()
            .map(|(guard, stopped)| with("rule", guard.rule(), with("guard", guard.as_str(), json!(stopped))))
            .collect();
        let series: Vec<_> = trace
            .series
            .iter()
            .map(
                |s| json!({ "series": s.name, "shape": s.shape, "rule": s.shape.rule(), "counts": s.counts }),
            )
            .collect();
        json!({
            "orders": trace.orders(), "purchases": trace.purchases.intents().len(), "log": trace.log(),
            "orders_beside_a_line": trace.log().map(|_| trace.beside), "log_warning": self.log_warning(),
            "log_fit": trace.log().map(|_| &trace.fit),
            "sources": sources, "surplus": trace.surplus, "guards": guards,
            "orphaned": { "captures": trace.orphaned.captures, "tickets": trace.orphaned.tickets },
            "times": trace.pieces.map(|p| json!({ "begins": p.begins, "length_ms": p.length.micros() / 1000 })),
            "series": series,
        })
    }

    fn heads(&self) -> &'static [Head] {
        &HEADS
    }

    fn rows<'a>(&'a self, sheet: usize, put: Put<'_, 'a>) -> Result<()> {
        let trace = self.trace;
        match HEADS[sheet].title {
            "Sources" => trace.sources.iter().try_for_each(|(source, left)| {
                let counts = [left.arrivals, left.orders, left.captures, left.tickets].map(number);
                put(&[&[text(source.as_str())][..], &counts].concat())
            }),
            "Guards" => trace.guards.iter().try_for_each(|(guard, s): &(Guard, _)| {
                let counts = [s.orders, s.captures, s.tickets, s.runs].map(number);
                put(&[&[text(guard.as_str())][..], &counts, &[text(guard.rule())]].concat())
            }),
            "Hops" => trace.chain.links.iter().try_for_each(|link| put(&Self::link_cells(link))),
            "Redeliveries" => trace.redeliveries.iter().try_for_each(|again| {
                let (tenant, topic, key) = again.key;
                let ids: Vec<_> = again.messages.iter().map(|m| m.message_id.as_str()).collect();
                put(&[
                    text(tenant.as_str()),
                    text(topic),
                    text(key),
                    Cell::Time(again.first_at()),
                    number(again.deliveries),
                    number(again.effects),
                    ms(again.gap.micros()),
                    text(again.cause.as_str()),
                    text(ids.join(" ")),
                ])
            }),
            "Shapes" => trace.series.iter().try_for_each(|series| {
                put(&[
                    text(series.name),
                    number(series.counts.iter().sum::<u64>()),
                    number(series.counts.iter().copied().max().unwrap_or(0)),
                    text(series.shape.as_str()),
                    text(picture(&series.counts)),
                    text(series.shape.rule()),
                ])
            }),
            "Times" => {
                let Some(pieces) = trace.pieces else { return Ok(()) };
                (0..pieces.count).try_for_each(|piece| {
                    let counts = trace.series.iter().map(|series| number(series.counts[piece]));
                    put(&std::iter::once(Cell::Time(pieces.begin(piece))).chain(counts).collect::<Vec<_>>())
                })
            }
            "Purchases" => self.purchases(put),
            _ => self.arrivals(put),
        }
    }
}

/// Counts as a picture that a line holds: where there are too many pieces, several are one.
pub fn picture(counts: &[u64]) -> String {
    const WIDE: usize = 48;
    let together = counts.len().div_ceil(WIDE).max(1);
    let sums: Vec<_> = counts.chunks(together).map(|chunk| chunk.iter().sum()).collect();
    sparkline(&sums)
}
