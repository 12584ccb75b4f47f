//! What is going on, for what takes longer than a moment: a line on stderr, on a terminal only; with
//! `--format jsonl` events on stdout.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use crate::config::Config;
use crate::core::status::Ledger;
use crate::report::{Format, event};

/// How long it takes at least from one event to the next.
const EVENTS_APART: Duration = Duration::from_secs(1);

/// Tells what is going on; silent with `--quiet`, and where nobody looks.
pub struct Progress {
    bar: ProgressBar,
    rows: Mutex<BTreeMap<Ledger, u64>>,
    /// What is being done and when that was told last, where events are wanted.
    events: Option<(String, Mutex<Instant>)>,
}

impl Progress {
    pub fn new(config: &Config, doing: &str) -> Self {
        let events = config.format == Format::Jsonl;
        let bar = if config.quiet || events { ProgressBar::hidden() } else { ProgressBar::new_spinner() };
        if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix} ({elapsed}) {wide_msg}") {
            bar.set_style(style);
        }
        bar.set_prefix(doing.to_owned());
        bar.enable_steady_tick(Duration::from_millis(250));
        if events {
            event(&json!({ "event": "begin", "doing": doing }));
        }
        let events = events.then(|| (doing.to_owned(), Mutex::new(Instant::now())));
        Self { bar, rows: Mutex::new(BTreeMap::new()), events }
    }

    /// So many rows of a ledger are through.
    pub fn rows(&self, ledger: Ledger, rows: u64) {
        self.count(ledger, |through| *through = rows);
    }

    /// So many more rows of a ledger are through.
    pub fn more_rows(&self, ledger: Ledger, rows: u64) {
        self.count(ledger, |through| *through += rows);
    }

    fn count(&self, ledger: Ledger, count: impl FnOnce(&mut u64)) {
        let Ok(mut all) = self.rows.lock() else { return };
        count(all.entry(ledger).or_default());
        let told: Vec<_> = all.iter().map(|(ledger, rows)| format!("{ledger} {rows}")).collect();
        drop(all);
        self.at(told.join(", "));
    }

    pub fn at(&self, message: impl Into<String>) {
        let message = message.into();
        if let Some((doing, told)) = &self.events
            && let Ok(mut told) = told.lock()
            && told.elapsed() >= EVENTS_APART
        {
            *told = Instant::now();
            event(&json!({ "event": "progress", "doing": doing, "at": message }));
        }
        self.bar.set_message(message);
    }

    pub fn end(self) {
        self.bar.finish_and_clear();
        if let Some((doing, _)) = &self.events {
            event(&json!({ "event": "end", "doing": doing, "at": self.bar.message() }));
        }
    }
}
