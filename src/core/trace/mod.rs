//! Where duplicates came from, from rows and not from memory: what came for each purchase and what it left,
//! what each guard would have stopped, what each hop handed on, what was delivered twice, and when.
//!
//! A purchase is an intent of the contract (section 2). What no row tells is said not to be in the ledgers;
//! what is inferred is named with its rule ([`Basis`], [`chain`]).

pub mod access;
pub mod arrival;
pub mod attach;
pub mod chain;
pub mod fit;
pub mod guards;
pub mod matching;
pub mod redelivery;
pub mod rivals;
pub mod shape;
pub mod words;

use std::collections::BTreeMap;

use super::ids::OrderId;
use super::join::{Intent, Joined};
use super::ledger::Message;
use super::plan::id_of;
use super::scope::Scope;
use super::time::{Span, Timestamp};
use access::{AccessLine, Source, Sources};
use arrival::{Arrival, Placed, arrivals, captures, deliveries, messages, tickets};
use attach::{Attach, Basis};
use chain::Chain;
use fit::Fit;
use guards::{Guard, Surplus, orphaned, stopped, surplus};
use redelivery::{Redelivery, redeliveries};
use shape::{Pieces, Shape, shape};

/// How a trace is made.
#[derive(Clone, Debug)]
pub struct Options {
    pub sources: Sources,
    /// How long a queue hides a message that it has delivered.
    pub visibility: Span,
    /// The length of a piece of time; chosen by the length of it all where none is said.
    pub piece: Option<Span>,
}

/// Which purchases a trace is about.
#[derive(Clone, Copy, Debug)]
pub enum Wanted<'w> {
    /// Those of a scope that have an order.
    Scope(&'w Scope),
    /// One, by its id, if it is in a scope.
    Intent(&'w str, &'w Scope),
    /// That of an order, if it is in a scope.
    Order(&'w OrderId, &'w Scope),
}

/// The purchases of a trace and, once it is read, the log beside them.
pub struct Purchases<'j> {
    intents: Vec<Intent<'j>>,
    /// What else was read: it has lines of its own.
    others: Vec<Intent<'j>>,
    lines: Vec<Vec<Placed>>,
    log: Option<Log>,
    /// What lies in the scope of buyers who have no order there.
    orphaned: Surplus,
}

/// What is known of an access log.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Log {
    pub lines: u64,
    #[serde(rename = "first_at")]
    pub first: Option<Timestamp>,
    #[serde(rename = "last_at")]
    pub last: Option<Timestamp>,
    /// Lines that say by which trace, and with which key.
    pub lines_with_trace: u64,
    pub lines_with_key: u64,
    /// Lines of purchases that are traced, by what they are known by; the same line twice counts once.
    pub placed: BTreeMap<Basis, u64>,
    /// Lines that were there already, in every cell but for how long the answer took.
    pub twice: u64,
    /// How much later than the first order of their purchase the lines are that name it by an id, the middle one of
    /// them. Of a log in another time zone it is whole hours.
    #[serde(rename = "later_us")]
    pub later: Option<Span>,
}

/// How far a line may be from the order that it wrote, and still be taken for what wrote it.
pub const NEAR: Span = Span::from_mins(30);
/// A log of which fewer than one in so many orders has a line tells of other orders.
const FEW: u64 = 10;

impl<'j> Purchases<'j> {
    /// What is wanted of all that is joined, in the order of a plan (contract, section 8).
    pub fn of(joined: &'j Joined<'_>, wanted: Wanted<'_>) -> Self {
        let is_wanted = |intent: &Intent<'_>| match wanted {
            Wanted::Scope(scope) => !intent.orders.is_empty() && intent.in_scope(scope),
            Wanted::Intent(id, scope) => id_of(intent) == id && intent.in_scope(scope),
            Wanted::Order(id, scope) => {
                intent.orders.iter().any(|o| o.order.order_id == *id) && intent.in_scope(scope)
            }
        };
        let (mut intents, others): (Vec<_>, Vec<_>) = joined.intents().partition(is_wanted);
        intents.sort_by_cached_key(|i| {
            let place = (i.tenant_id.clone(), i.user_id.cloned(), i.show_id.cloned(), i.session_id.cloned());
            (place, i.first_row())
        });
        let lines = intents.iter().map(|_| Vec::new()).collect();
        let mut without_order = Surplus::default();
        if let Wanted::Scope(scope) = wanted {
            let is_so = |intent: &&Intent<'_>| intent.orders.is_empty() && intent.in_scope(scope);
            others.iter().filter(is_so).for_each(|intent| without_order.add(orphaned(intent)));
        }
        Self { intents, others, lines, log: None, orphaned: without_order }
    }

    pub fn intents(&self) -> &[Intent<'j>] {
        &self.intents
    }

    /// Puts lines to their purchases. `each` gives them one by one, those of other purchases too; it is told when
    /// lines can be that matter.
    ///
    /// # Errors
    /// What `each` fails with.
    pub async fn read_log<E>(
        &mut self,
        gap: Span,
        each: impl AsyncFnOnce(Option<(Timestamp, Timestamp)>, &mut dyn FnMut(AccessLine)) -> Result<(), E>,
    ) -> Result<(), E> {
        let attach = Attach::new(&self.intents, &self.others, gap);
        let (mut log, lines) = (Log::default(), &mut self.lines);
        let mut take = |line: AccessLine| {
            log.lines += 1;
            log.lines_with_trace += u64::from(line.trace_id.is_some());
            log.lines_with_key += u64::from(line.idempotency_key.is_some());
            log.first = Some(log.first.map_or(line.at, |first| first.min(line.at)));
            log.last = Some(log.last.map_or(line.at, |last| last.max(line.at)));
            if let Some((intent, basis)) = attach.place(&line) {
                lines[intent].push((line, basis));
            }
        };
        each(attach.window(), &mut take).await?;
        let mut later = Vec::new();
        for (placed, intent) in self.lines.iter_mut().zip(&self.intents) {
            placed.sort_unstable();
            let all = placed.len();
            placed.dedup_by(|(a, _), (b, _)| a.is_same(b));
            log.twice += (all - placed.len()) as u64;
            placed.iter().for_each(|(_, basis)| *log.placed.entry(*basis).or_default() += 1);
            if let Some(first) = intent.orders.first() {
                let named = placed.iter().filter(|(_, basis)| *basis != Basis::Buyer);
                later.extend(named.map(|(line, _)| line.at.since(first.order.created_at)));
            }
        }
        let middle = later.len() / 2;
        log.later = (!later.is_empty()).then(|| *later.select_nth_unstable(middle).1);
        self.log = Some(log);
        Ok(())
    }

    /// Lines of the log that belong to the purchases.
    pub fn lines(&self) -> impl Iterator<Item = &AccessLine> {
        self.lines.iter().flatten().map(|(line, _)| line)
    }

    /// Everything that came for one of the purchases.
    pub fn arrivals(&self, purchase: usize, sources: &Sources) -> Vec<Arrival<'_>> {
        arrivals(&self.intents[purchase], &self.lines[purchase], sources)
    }
}

/// What came from one kind of source, and what it left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Left {
    pub arrivals: u64,
    pub orders: u64,
    pub captures: u64,
    pub tickets: u64,
}

/// Counts of one thing, piece by piece.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    pub name: &'static str,
    pub counts: Vec<u64>,
    pub shape: Shape,
}

/// What is found over all purchases of a trace.
pub struct Trace<'t> {
    pub purchases: &'t Purchases<'t>,
    pub options: &'t Options,
    pub sources: BTreeMap<Source, Left>,
    /// The words of the rows for sources, and what they are taken for.
    pub named: BTreeMap<String, Source>,
    pub surplus: Surplus,
    /// Captures and tickets that name no order which is there.
    pub orphaned: Surplus,
    /// In the order of [`Guard::ALL`].
    pub guards: Vec<(Guard, Surplus)>,
    pub chain: Chain,
    pub redeliveries: Vec<Redelivery<'t>>,
    /// Orders that stand beside a line of the log which is about as old.
    pub beside: u64,
    /// How well log and orders fit.
    pub fit: Fit,
    pub pieces: Option<Pieces>,
    /// Orders, duplicates, captures, redeliveries.
    pub series: Vec<Series>,
}

impl<'t> Trace<'t> {
    /// Goes through the purchases once. `None` where the pieces of time are too short for it all.
    pub fn new(purchases: &'t Purchases<'t>, options: &'t Options) -> Option<Self> {
        let log = purchases.log.as_ref();
        let mut sources: BTreeMap<Source, Left> = BTreeMap::new();
        let mut named = BTreeMap::new();
        let (mut too_much, mut without_order) = (Surplus::default(), purchases.orphaned);
        let mut guards: Vec<_> = Guard::ALL.iter().map(|guard| (*guard, Surplus::default())).collect();
        let mut chain = Chain::new(log);
        let mut times = Times::default();
        let (mut beside, mut fit) = (0, Fit::default());
        for (at, intent) in purchases.intents.iter().enumerate() {
            let arrivals = purchases.arrivals(at, &options.sources);
            for arrival in &arrivals {
                let left = sources.entry(arrival.source).or_default();
                left.arrivals += arrival.times();
                if let Some(rows) = &arrival.order {
                    left.orders += 1;
                    left.captures += captures(rows).count() as u64;
                    left.tickets += tickets(rows);
                    let is_near = |line: &AccessLine| rows.order.created_at.since(line.at).abs() <= NEAR;
                    beside += u64::from(arrival.line.is_some_and(is_near));
                }
                if let Some(log) = log {
                    fit.add(arrival, log);
                }
                if let (Some(name), None) = (arrival.named, arrival.message) {
                    named.entry(name.to_owned()).or_insert(arrival.source);
                }
            }
            fit.add_layers(&arrivals);
            too_much.add(surplus(intent));
            without_order.add(orphaned(intent));
            guards.iter_mut().for_each(|(guard, sum)| sum.add(stopped(*guard, intent, &arrivals)));
            chain.add(intent, &arrivals);
            times.add(intent);
        }
        let all = purchases.intents.iter().flat_map(|i| messages(i));
        let redeliveries = redeliveries(all, options.visibility);
        // One key may be that of messages of several purchases, so runs are counted over all.
        let runs: u64 = redeliveries.iter().map(|again| again.effects.saturating_sub(1)).sum();
        too_much.runs = runs;
        guards
            .iter_mut()
            .filter(|(guard, _)| *guard == Guard::MessageKey)
            .for_each(|(_, sum)| sum.runs = runs);
        for again in &redeliveries {
            times.redelivered(&again.messages);
        }
        let pieces = match times.ends() {
            Some((first, last)) => Some(Pieces::over(first, last, options.piece)?),
            None => None,
        };
        let series = pieces.map_or_else(Vec::new, |pieces| times.series(pieces));
        Some(Self {
            purchases,
            options,
            sources,
            named,
            surplus: too_much,
            orphaned: without_order,
            guards,
            chain,
            redeliveries,
            beside,
            fit: fit.ended(),
            pieces,
            series,
        })
    }

    pub fn log(&self) -> Option<&'t Log> {
        self.purchases.log.as_ref()
    }

    /// Whether there is a log that hardly tells of these orders: it is another one, or its times are not what they are
    /// taken for. What it tells then stands beside the orders instead of with them, and counts a second time.
    pub fn is_beside_its_log(&self) -> bool {
        self.log().is_some_and(|log| log.lines > 0) && self.beside * FEW < self.orders() as u64
    }

    pub fn orders(&self) -> usize {
        self.purchases.intents.iter().map(|i| i.orders.len()).sum()
    }

    /// Purchases by their place, those with most orders first.
    pub fn by_orders(&self) -> Vec<usize> {
        let mut all: Vec<_> = (0..self.purchases.intents.len()).collect();
        all.sort_by_key(|at| std::cmp::Reverse(self.purchases.intents[*at].orders.len()));
        all
    }
}

/// When things happened: orders, duplicates, captures, redeliveries.
#[derive(Default)]
struct Times([Vec<Timestamp>; 4]);

impl Times {
    const NAMES: [&'static str; 4] = ["orders", "duplicates", "captures", "redeliveries"];

    fn add(&mut self, intent: &Intent<'_>) {
        let [orders, duplicates, captured, _] = &mut self.0;
        for (at, rows) in intent.orders.iter().enumerate() {
            orders.push(rows.order.created_at);
            if at > 0 {
                duplicates.push(rows.order.created_at);
            }
            captured.extend(captures(rows).map(|c| c.row.captured_at()));
        }
    }

    /// Every delivery beyond the first, at the time of its row.
    fn redelivered(&mut self, messages: &[&Message]) {
        for (at, message) in messages.iter().enumerate() {
            let again = deliveries(message) - i64::from(at == 0);
            (0..again).for_each(|_| self.0[3].push(message.created_at));
        }
    }

    fn ends(&self) -> Option<(Timestamp, Timestamp)> {
        let all = || self.0.iter().flatten().copied();
        Some((all().min()?, all().max()?))
    }

    fn series(&self, pieces: Pieces) -> Vec<Series> {
        let series = |(name, times): (&'static str, &Vec<Timestamp>)| {
            let mut counts = vec![0; pieces.count];
            times.iter().for_each(|at| counts[pieces.of(*at)] += 1);
            Series { name, shape: shape(&counts), counts }
        };
        Self::NAMES.into_iter().zip(&self.0).map(series).collect()
    }
}
