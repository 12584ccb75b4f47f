//! Lines of an access log, and who is behind them.

use std::collections::BTreeMap;

use crate::core::ids::*;
use crate::core::status::status_type;
use crate::core::time::{Span, Timestamp};

status_type!(
    /// Who sends a request, or runs again what was asked.
    Source {
        /// Somebody who buys: an app, a page, a shop that sells for us.
        Client = "client",
        /// What stands before the service and repeats a request that got no answer.
        Gateway = "gateway",
        /// What works off a queue.
        Consumer = "consumer",
        /// What undoes: a saga, a time-out, a job.
        Compensation = "compensation",
        /// The row does not say.
        Unknown = "unknown",
    }
);

/// By which part of its name a source is known; any other name is a client's. A part of up to [`SHORT`] letters is a
/// word of its own: there is none of `edge` in `knowledge-app`.
const NAMED: [(Source, &[&str]); 3] = [
    (Source::Gateway, &["gateway", "proxy", "ingress", "nginx", "envoy", "mesh", "edge"]),
    (Source::Consumer, &["consumer", "worker", "listener", "queue", "kafka", "rabbit"]),
    (
        Source::Compensation,
        &["compensat", "saga", "reconcil", "timeout", "cron", "cronjob", "batch", "scheduler", "job"],
    ),
];

/// So many letters are found within other words.
const SHORT: usize = 4;

/// What the names of sources mean: as a person says, else by [`NAMED`].
#[derive(Clone, Debug, Default)]
pub struct Sources(pub BTreeMap<String, Source>);

impl Sources {
    pub fn of(&self, name: Option<&str>) -> Source {
        let Some(name) = name.filter(|name| !name.trim().is_empty()) else { return Source::Unknown };
        if let Some(said) = self.0.get(name) {
            return *said;
        }
        let name = name.to_lowercase();
        let is_word = |part: &str| name.split(|c: char| !c.is_alphabetic()).any(|word| word == part);
        let is_in = |part: &&str| is_word(part) || (part.len() > SHORT && name.contains(*part));
        let known = NAMED.iter().find(|(_, parts)| parts.iter().any(is_in));
        known.map_or(Source::Client, |(source, _)| *source)
    }
}

/// One request, as what stands before the service wrote it down.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AccessLine {
    /// When it came in.
    pub at: Timestamp,
    pub tenant_id: TenantId,
    /// Attempts of one request share it.
    pub request_id: String,
    /// Who sent this attempt, in the log's own word.
    pub source: String,
    /// Counted from 1.
    pub attempt: i64,
    /// The status of the answer; `None` where none came.
    pub status: Option<i64>,
    /// Until the answer, or until it was given up.
    pub latency: Option<Span>,
    pub trace_id: Option<String>,
    pub idempotency_key: Option<IdempotencyKey>,
    pub user_id: Option<UserId>,
    pub show_id: Option<ShowId>,
    /// The order that the answer names.
    pub order_id: Option<OrderId>,
}

/// The answers by which something in between says that it got none: 408, 499, 502 and 504.
const NO_ANSWER: [i64; 4] = [408, 499, 502, 504];

impl AccessLine {
    /// Whether no answer of the service reached who asked.
    pub fn is_lost(&self) -> bool {
        self.status.is_none_or(|status| NO_ANSWER.contains(&status))
    }

    /// Whether the service answered that it will not, so that nothing was written. A service that failed (500 and
    /// above) may have written before it did.
    pub fn is_refused(&self) -> bool {
        !self.is_lost() && self.status.is_some_and(|status| (400..500).contains(&status))
    }

    /// Whether the service answered that it has done what it was asked for.
    pub fn is_done(&self) -> bool {
        !self.is_lost() && self.status.is_some_and(|status| status < 400)
    }

    /// Whether it says what another line says, but for how long the answer took: two layers wrote one request down.
    pub fn is_same(&self, other: &Self) -> bool {
        self.at == other.at && Self { latency: self.latency, ..other.clone() } == *self
    }

    /// Whether it may be a further attempt of a request that shares its id: it counts on, or came while that one was
    /// without an answer.
    pub fn may_repeat(&self, before: &Self) -> bool {
        let is_over = before.latency.is_none_or(|latency| before.at.plus(latency) < self.at);
        self.attempt > before.attempt || !before.is_done() || !is_over
    }

    /// Whether the other line tells of the same attempt, as what stands before it wrote it down: it shares an id with it,
    /// and was under way for all of its time.
    pub fn is_layer_within(&self, outer: &Self) -> bool {
        fn same<T: PartialEq>(a: Option<&T>, b: Option<&T>) -> bool {
            a.is_some() && a == b
        }
        let (Some(took), Some(outer_took)) = (self.latency, outer.latency) else { return false };
        let is_within = outer.at <= self.at && self.at.plus(took) <= outer.at.plus(outer_took);
        let is_named = same(self.trace_id.as_ref(), outer.trace_id.as_ref())
            || same(self.idempotency_key.as_ref(), outer.idempotency_key.as_ref())
            || same(self.order_id.as_ref(), outer.order_id.as_ref())
            || self.request_id == outer.request_id;
        // A second tap on one source lies within the first one, too, but takes its own time.
        let is_one = self.source != outer.source
            || self.request_id == outer.request_id
            || took.micros().saturating_mul(10) >= outer_took.micros().saturating_mul(9);
        is_within && is_named && is_one && self.attempt == outer.attempt
    }

    /// When its answer was given up, where that is known.
    pub fn lost_at(&self) -> Option<Timestamp> {
        self.latency.filter(|_| self.is_lost()).map(|latency| self.at.plus(latency))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_service_refused_is_known_to_have_written_nothing() {
        for (status, (is_lost, is_refused, is_done)) in [
            (None, (true, false, false)),
            (Some(201), (false, false, true)),
            (Some(302), (false, false, true)),
            (Some(400), (false, true, false)),
            (Some(408), (true, false, false)),
            (Some(409), (false, true, false)),
            (Some(429), (false, true, false)),
            (Some(499), (true, false, false)),
            (Some(500), (false, false, false)),
            (Some(502), (true, false, false)),
            (Some(503), (false, false, false)),
            (Some(504), (true, false, false)),
        ] {
            let line = AccessLine {
                at: Timestamp::from_micros(0),
                tenant_id: "t".into(),
                request_id: "r".to_owned(),
                source: "client".to_owned(),
                attempt: 1,
                status,
                latency: None,
                trace_id: None,
                idempotency_key: None,
                user_id: None,
                show_id: None,
                order_id: None,
            };
            let found = (line.is_lost(), line.is_refused(), line.is_done());
            assert_eq!(found, (is_lost, is_refused, is_done), "{status:?}");
        }
    }

    #[test]
    fn a_source_is_what_a_person_says_and_else_what_its_name_says() {
        let said = Sources([("edge-app".to_owned(), Source::Client)].into());
        for (name, source) in [
            (Some("client"), Source::Client),
            (Some("reseller"), Source::Client),
            (Some("edge-app"), Source::Client),
            (Some("API-Gateway"), Source::Gateway),
            (Some("order-worker-3"), Source::Consumer),
            (Some("saga"), Source::Compensation),
            (Some("nightly_job2"), Source::Compensation),
            (Some("knowledge-app"), Source::Client),
            (Some("jobs-board"), Source::Client),
            (Some(" "), Source::Unknown),
            (None, Source::Unknown),
        ] {
            assert_eq!(said.of(name), source, "{name:?}");
        }
    }
}
