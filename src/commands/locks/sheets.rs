//! An audit as a report that leaves: its findings, what came of them, and how long keys are held.

use serde_json::{Value, json};

use super::spool::Spool;
use crate::core::locks::{ALERTS, Audited, Business, Collected, Duplicate, DuplicateKind, Found, Rules};
use crate::core::sheet::{Cell, Fact, Head, Holds, Put, Sheets, column, maybe, number, text};
use crate::core::time::Span;
use crate::error::Result;

/// An audit with all that it found.
#[derive(Debug)]
pub struct AuditReport {
    /// The file of the history, or of the query that gave it.
    pub source: String,
    pub rules: Rules,
    pub audited: Audited,
    pub collected: Collected,
    pub business: Option<Business>,
    /// What the ledgers have twice that came while two held its lock.
    pub duplicates: Vec<Duplicate>,
    /// Every finding, where all of them are wanted.
    pub spool: Option<Spool>,
}

const SHEETS: [Head; 3] = [
    Head {
        title: "Findings",
        row_is: "a finding",
        columns: &[
            column("finding", "Finding", Holds::Text, 28),
            column("certainty", "Certainty", Holds::Text, 10),
            column("key", "Key", Holds::Text, 24),
            column("at", "At (UTC)", Holds::Time, 24),
            column("until", "Until (UTC)", Holds::Time, 24),
            column("for_us", "For (µs)", Holds::Number, 12),
            column("used_percent", "Lease used (%)", Holds::Number, 14),
            column("first", "First", Holds::Text, 18),
            column("first_token", "Its token", Holds::Number, 10),
            column("second", "Second", Holds::Text, 18),
            column("second_token", "Its token", Holds::Number, 10),
            column("line", "Line", Holds::Number, 10),
            column("what", "What happened", Holds::Prose, 60),
        ],
    },
    Head {
        title: "What came of it",
        row_is: "something done twice while two held its lock",
        columns: &[
            column("kind", "Finding", Holds::Text, 18),
            column("tenant_id", "Tenant", Holds::Text, 12),
            column("what", "What", Holds::Text, 24),
            column("key", "Key", Holds::Text, 24),
            column("because", "Because of", Holds::Text, 28),
            column("certainty", "Certainty", Holds::Text, 10),
            column("from", "Two held it from (UTC)", Holds::Time, 24),
            column("until", "Until (UTC)", Holds::Time, 24),
            column("in_words", "In words", Holds::Prose, 80),
        ],
    },
    Head {
        title: "Leases used",
        row_is: "a key",
        columns: &[
            column("key", "Key", Holds::Text, 24),
            column("holds", "Holds", Holds::Number, 10),
            column("p50_percent", "p50 (%)", Holds::Number, 8),
            column("p95_percent", "p95 (%)", Holds::Number, 8),
            column("max_percent", "Max (%)", Holds::Number, 8),
        ],
    },
];

impl AuditReport {
    /// Of a history that has not been read.
    pub fn new(source: String, rules: Rules) -> Self {
        Self {
            source,
            rules,
            audited: Audited::default(),
            collected: Collected::default(),
            business: None,
            duplicates: Vec::new(),
            spool: None,
        }
    }

    /// Of each kind: its name, how many the ledgers have, and how many of them came while two held their lock.
    pub fn kinds(&self) -> Vec<(DuplicateKind, usize, usize)> {
        let Some(business) = &self.business else { return Vec::new() };
        let of = |kind: DuplicateKind| self.duplicates.iter().filter(|d| d.kind == kind).count();
        DuplicateKind::ALL.iter().map(|kind| (*kind, business.count(*kind), of(*kind))).collect()
    }
}

impl Sheets for AuditReport {
    fn verb(&self) -> &'static str {
        "locks"
    }

    fn title(&self) -> String {
        format!("Lock history {}", self.source)
    }

    fn findings(&self) -> Vec<String> {
        let tallies = self.collected.tallies.iter().map(|(finding, tally)| {
            let possible = match tally.possible {
                0 => String::new(),
                n => format!(", and {n} only possible"),
            };
            format!("{finding}: {}{possible}: {}", tally.proven, finding.in_words())
        });
        tallies.chain(self.duplicates.iter().map(Duplicate::in_words)).collect()
    }

    fn facts(&self) -> Vec<Fact<'_>> {
        let time = |at| Option::map_or(at, Cell::None, Cell::Time);
        let holds = &self.audited.holds;
        let mut facts = vec![
            ("History".to_owned(), text(self.source.as_str())),
            ("Events".to_owned(), number(self.audited.events)),
            ("Keys".to_owned(), number(self.audited.keys)),
            ("Keys got".to_owned(), number(self.audited.grants)),
            ("By owners that held no lock, as far as it shows".to_owned(), number(self.audited.unknown)),
            ("First event (UTC)".to_owned(), time(self.audited.first)),
            ("Last event (UTC)".to_owned(), time(self.audited.last)),
            ("Clocks differ by up to".to_owned(), text(self.rules.skew.to_string())),
            ("Lease used, p50 (%)".to_owned(), number(holds.quantile(50))),
            ("Lease used, p95 (%)".to_owned(), number(holds.quantile(95))),
            ("Lease used, max (%)".to_owned(), number(holds.greatest())),
        ];
        for (kind, all, joined) in self.kinds() {
            let text = format!("{all} in the ledgers, {joined} while two held their lock");
            facts.push((kind.to_string(), Cell::Text(text.into())));
        }
        facts
    }

    fn json(&self) -> Value {
        let found = &self.collected;
        let findings: Vec<_> = found
            .tallies
            .iter()
            .map(|(finding, tally)| {
                json!({ "finding": finding, "is_warning": !finding.is_death(), "means": finding.in_words(),
                    "proven": tally.proven, "possible": tally.possible })
            })
            .collect();
        let kinds: Vec<_> = self
            .kinds()
            .into_iter()
            .map(|(kind, all, joined)| json!({ "kind": kind, "in_ledgers": all, "while_two_held": joined }))
            .collect();
        let alerts: Vec<_> =
            ALERTS.iter().map(|a| json!({ "alert": a.name, "when": a.when, "because": a.because })).collect();
        json!({
            "history": self.source,
            "events": self.audited.events,
            "keys": self.audited.keys,
            "first_at": self.audited.first,
            "last_at": self.audited.last,
            "skew_us": self.rules.skew,
            "grants": self.audited.grants,
            "by_unknown": self.audited.unknown,
            "unordered_keys": self.audited.blurred,
            "tallies": findings,
            "leases_used_percent": {
                "p50": self.audited.holds.quantile(50), "p95": self.audited.holds.quantile(95),
                "max": self.audited.holds.greatest(),
            },
            "duplicates": kinds,
            "alerts": alerts,
        })
    }

    fn heads(&self) -> &'static [Head] {
        &SHEETS
    }

    fn rows<'a>(&'a self, sheet: usize, put: Put<'_, 'a>) -> Result<()> {
        match sheet {
            0 => match &self.spool {
                Some(spool) => spool.each(|found| put(&finding(found))),
                None => Ok(()),
            },
            1 => self.duplicates.iter().try_for_each(|d| put(&came_of_it(d))),
            _ => self.audited.longest.iter().try_for_each(|k| {
                let [p50, p95, max] = [k.p50, k.p95, k.max].map(number);
                put(&[text(k.key.as_str()), number(k.holds), p50, p95, max])
            }),
        }
    }
}

fn finding(found: Found) -> [Cell<'static>; 13] {
    let what = found.in_words();
    let known = |n: Option<i64>| n.map_or(Cell::None, Cell::Number);
    let (second, second_token) = found.second.map(|h| (h.owner, h.token)).unzip();
    [
        text(found.finding.as_str()),
        text(found.certainty.as_str()),
        text(found.key),
        Cell::Time(found.at),
        found.until.map_or(Cell::None, Cell::Time),
        known(found.lasted.map(Span::micros)),
        known(found.percent.map(i64::from)),
        text(found.first.owner),
        known(found.first.token),
        maybe(second),
        known(second_token.flatten()),
        known(i64::try_from(found.line).ok()),
        text(what),
    ]
}

fn came_of_it(d: &Duplicate) -> [Cell<'_>; 9] {
    [
        text(d.kind.as_str()),
        text(d.tenant_id.as_str()),
        text(d.what.as_str()),
        text(d.key.as_str()),
        text(d.finding.as_str()),
        text(d.certainty.as_str()),
        Cell::Time(d.from),
        d.until.map_or(Cell::None, Cell::Time),
        text(d.in_words()),
    ]
}
