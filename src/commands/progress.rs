//! Progress on stderr, on a terminal only, for what takes longer than a moment.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::config::Config;
use crate::core::status::Ledger;

/// A line that tells what is going on; silent with `--quiet` and where stderr is no terminal.
pub struct Progress {
    bar: ProgressBar,
    rows: Mutex<BTreeMap<Ledger, u64>>,
}

impl Progress {
    pub fn new(config: &Config, doing: &str) -> Self {
        let bar = if config.quiet { ProgressBar::hidden() } else { ProgressBar::new_spinner() };
        if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix} ({elapsed}) {wide_msg}") {
            bar.set_style(style);
        }
        bar.set_prefix(doing.to_owned());
        bar.enable_steady_tick(Duration::from_millis(250));
        Self { bar, rows: Mutex::new(BTreeMap::new()) }
    }

    /// So many rows of a ledger are through.
    pub fn rows(&self, ledger: Ledger, rows: u64) {
        let Ok(mut all) = self.rows.lock() else { return };
        all.insert(ledger, rows);
        let told: Vec<_> = all.iter().map(|(ledger, rows)| format!("{ledger} {rows}")).collect();
        self.bar.set_message(told.join(", "));
    }

    pub fn at(&self, message: impl Into<String>) {
        self.bar.set_message(message.into());
    }

    pub fn end(self) {
        self.bar.finish_and_clear();
    }
}
