//! The chain of a request: which rows carry the trace id and the key of the hop before.

use super::Log;
use super::access::Source;
use super::arrival::Arrival;
use super::attach::Basis;
use crate::core::join::Intent;
use crate::core::orphans::Orphan;
use crate::core::status::status_type;

/// How many examples a hop shows.
const EXAMPLES: usize = 3;

status_type!(
    /// From one store of rows to the next.
    Hop {
        Order = "gateway → order",
        Payment = "order → payment",
        Stock = "order → stock",
        Queue = "order → queue",
        Consumer = "queue → consumer",
    }
);

status_type!(
    /// What is handed on.
    Token {
        Trace = "trace id",
        Key = "idempotency key",
        /// The row's name of its order, which every ledger has.
        OrderId = "order id",
    }
);

status_type!(
    /// What became of it at a hop.
    Fate {
        Carried = "carried",
        /// The hop before has one, the row has none.
        Dropped = "dropped",
        /// The row has another.
        Minted = "minted anew",
        /// A key that the receiver made when the request was there already: a retry gets another, so it is not
        /// recognised.
        MintedAfter = "minted after arrival",
        /// Neither has one.
        Neither = "neither has one",
    }
);

/// What one hop does with one of them.
#[derive(Clone, Debug)]
pub struct Link {
    pub hop: Hop,
    pub token: Token,
    pub rows: u64,
    /// In the order of [`Fate::ALL`].
    pub fates: [u64; 5],
    /// Of what was not carried.
    pub examples: Vec<String>,
    /// How it was judged, or why it cannot be.
    pub basis: &'static str,
}

impl Link {
    fn new(hop: Hop, token: Token, basis: &'static str) -> Self {
        Self { hop, token, rows: 0, fates: [0; 5], examples: Vec::new(), basis }
    }

    pub fn of(&self, fate: Fate) -> u64 {
        self.fates[fate as usize]
    }

    fn row(&mut self, fate: Fate, example: impl FnOnce() -> String) {
        self.rows += 1;
        self.fates[fate as usize] += 1;
        if !matches!(fate, Fate::Carried | Fate::Neither) && self.examples.len() < EXAMPLES {
            self.examples.push(example());
        }
    }

    /// A row, by what the hop before has and what it has itself.
    fn compare(&mut self, row: &str, sent: Option<&str>, has: Option<&str>) {
        let fate = match (sent, has) {
            (None, None) => Fate::Neither,
            (Some(sent), Some(has)) if sent == has => Fate::Carried,
            (Some(_), None) => Fate::Dropped,
            (Some(_), Some(_)) => Fate::Minted,
            (None, Some(_)) => Fate::MintedAfter,
        };
        self.row(fate, || example(row, sent, has));
    }
}

fn example(row: &str, sent: Option<&str>, has: Option<&str>) -> String {
    match (sent, has) {
        (Some(sent), Some(has)) => format!("{row}: {sent} became {has}"),
        (Some(sent), None) => format!("{row}: {sent} is lost"),
        (None, Some(has)) => format!("{row}: came without, has {has}"),
        (None, None) => row.to_owned(),
    }
}

const NO_COLUMN: &str = "not in the ledgers: its rows have no such column";
const BY_LOG: &str = "the line of the access log beside the order that it wrote";
/// No line of the log says what was sent, so nothing can be said of who made it.
pub const NOT_IN_LOG: &str = "not in the log: no line of it has one";
const BY_RETRY: &str =
    "inferred, as there is no access log: a retry is the same request, so it brings the same";
const BY_ORDER: &str = "the row beside the order that it names";
const BY_KEY: &str = "the message's key beside its order's; a key made of the order id tells two orders apart, not two \
                      requests";
const BY_MESSAGE: &str = "orders that a consumer wrote beside the message before; what else a consumer writes is not in \
                          the ledgers";

/// What each hop did, over many purchases.
#[derive(Clone, Debug)]
pub struct Chain {
    pub links: Vec<Link>,
    has_log: bool,
    /// Whether lines have a trace id, which else may be their request id.
    has_traces: bool,
}

impl Chain {
    pub fn new(log: Option<&Log>) -> Self {
        let by_line = |has_one: &dyn Fn(&Log) -> bool| match log {
            None => BY_RETRY,
            Some(log) if has_one(log) => BY_LOG,
            Some(_) => NOT_IN_LOG,
        };
        let has_traces = |log: &Log| log.lines_with_trace > 0;
        // Request ids are traces where an order or a message has one of them.
        let names_traces = |log: &Log| has_traces(log) || log.placed.contains_key(&Basis::Trace);
        let links = [
            (Hop::Order, Token::Trace, by_line(&names_traces)),
            (Hop::Order, Token::Key, by_line(&|log| log.lines_with_key > 0)),
            (Hop::Payment, Token::Trace, NO_COLUMN),
            (Hop::Payment, Token::Key, NO_COLUMN),
            (Hop::Payment, Token::OrderId, BY_ORDER),
            (Hop::Stock, Token::Trace, NO_COLUMN),
            (Hop::Stock, Token::Key, NO_COLUMN),
            (Hop::Stock, Token::OrderId, BY_ORDER),
            (Hop::Queue, Token::Trace, BY_ORDER),
            (Hop::Queue, Token::Key, BY_KEY),
            (Hop::Queue, Token::OrderId, BY_ORDER),
            (Hop::Consumer, Token::Trace, BY_MESSAGE),
            (Hop::Consumer, Token::Key, BY_MESSAGE),
        ];
        Self {
            links: links.map(|(hop, token, basis)| Link::new(hop, token, basis)).into(),
            has_log: log.is_some(),
            has_traces: log.is_some_and(has_traces),
        }
    }

    fn link(&mut self, hop: Hop, token: Token) -> &mut Link {
        let at = self.links.iter().position(|l| l.hop == hop && l.token == token);
        &mut self.links[at.unwrap_or_default()]
    }

    /// Adds a purchase.
    pub fn add(&mut self, intent: &Intent<'_>, arrivals: &[Arrival<'_>]) {
        for arrival in arrivals {
            self.order(arrival, arrivals);
        }
        for rows in &intent.orders {
            let order = rows.order;
            let attached = [(Hop::Payment, rows.charges.len()), (Hop::Stock, rows.holds.len())];
            for (hop, n) in attached.into_iter().chain([(Hop::Queue, rows.messages.len())]) {
                let link = self.link(hop, Token::OrderId);
                (0..n).for_each(|_| link.row(Fate::Carried, String::new));
            }
            for message in rows.messages {
                let id = message.message_id.as_str();
                let has = message.trace_id.as_deref();
                self.link(Hop::Queue, Token::Trace).compare(id, order.trace_id.as_deref(), has);
                let key = order.idempotency_key.as_ref().map(|k| k.as_str());
                let has = message.message_key.as_deref();
                let link = self.link(Hop::Queue, Token::Key);
                // The queue mints its key from the order, which was there: no retry can bring another.
                match (key, has) {
                    (None, Some(has)) => {
                        link.row(Fate::Minted, || format!("{id}: the order has none, it has {has}"))
                    }
                    _ => link.compare(id, key, has),
                }
            }
        }
        for orphan in intent.orphans.iter().chain(&intent.shared_orphans) {
            let (hop, names) = match orphan {
                Orphan::Payment(charge) => (Hop::Payment, &charge.row.order_id),
                Orphan::Hold(hold) => (Hop::Stock, &hold.order_id),
                Orphan::Message(message) => (Hop::Queue, &message.order_id),
            };
            let fate = if names.is_some() { Fate::Minted } else { Fate::Dropped };
            self.link(hop, Token::OrderId).row(fate, || match names {
                Some(order) => format!("{}: names {order}, which is not there", orphan.id()),
                None => format!("{}: names no order", orphan.id()),
            });
        }
    }

    fn order(&mut self, arrival: &Arrival<'_>, all: &[Arrival<'_>]) {
        let Some(rows) = arrival.order else { return };
        let order = rows.order;
        let (id, trace) = (order.order_id.as_str(), order.trace_id.as_deref());
        let key = order.idempotency_key.as_ref().map(|k| k.as_str());
        if arrival.source == Source::Consumer {
            let before = all.iter().filter_map(|a| a.message).filter(|m| m.created_at <= arrival.at);
            if let Some(message) = before.max_by_key(|m| m.created_at) {
                self.link(Hop::Consumer, Token::Trace).compare(id, message.trace_id.as_deref(), trace);
                self.link(Hop::Consumer, Token::Key).compare(id, message.message_key.as_deref(), key);
            }
            return;
        }
        if let Some(line) = arrival.line {
            // A request id is the trace where the log has no other.
            let request = Some(line.request_id.as_str());
            let sent = match line.trace_id.as_deref() {
                _ if trace == request => request,
                None if !self.has_traces => request,
                sent => sent,
            };
            self.sent(Token::Trace, id, sent, trace);
            self.sent(Token::Key, id, line.idempotency_key.as_ref().map(|k| k.as_str()), key);
        } else if !self.has_log
            && let Some(first) = arrival.repeats.and_then(|first| all[first].order)
        {
            let (id, first) = (format!("{id}, a retry of {}", first.order.order_id), first.order);
            self.link(Hop::Order, Token::Trace).compare(&id, first.trace_id.as_deref(), trace);
            let link = self.link(Hop::Order, Token::Key);
            let sent = first.idempotency_key.as_ref().map(|k| k.as_str());
            match (sent, key) {
                (Some(sent), Some(has)) if sent != has => {
                    link.row(Fate::MintedAfter, || example(&id, Some(sent), Some(has)));
                }
                _ => link.compare(&id, sent, key),
            }
        }
    }
    /// What the log says that was sent, if it says so of any line.
    fn sent(&mut self, token: Token, order: &str, sent: Option<&str>, has: Option<&str>) {
        let link = self.link(Hop::Order, token);
        if link.basis != NOT_IN_LOG {
            link.compare(order, sent, has);
        }
    }
}
