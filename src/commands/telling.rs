//! What apply tells while it is at work: steps, money, speed, and what is not known.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Instant;

use super::progress::Progress;
use crate::config::Config;
use crate::core::money::Currency;
use crate::execute::Moment;
use crate::store::steps::StepState;

pub struct Telling {
    progress: Progress,
    began: Instant,
    steps: usize,
    /// Steps that were done before this run.
    before: usize,
    now: RefCell<Now>,
}

#[derive(Default)]
struct Now {
    ended: usize,
    unknown: usize,
    refunded: BTreeMap<Currency, i128>,
}

impl Telling {
    /// Of so many steps, of which some were done before.
    pub fn new(config: &Config, steps: usize, before: usize) -> Self {
        Self {
            progress: Progress::new(config, "applying"),
            began: Instant::now(),
            steps,
            before,
            now: RefCell::default(),
        }
    }

    pub fn tell(&self, moment: Moment<'_>) {
        let mut now = self.now.borrow_mut();
        match moment {
            Moment::Ended(record) => {
                now.ended += 1;
                if record.state == StepState::Done
                    && record.step.is_refund()
                    && let Some((amount, currency)) = record.step.amount_minor.zip(record.step.currency)
                {
                    *now.refunded.entry(currency).or_default() += i128::from(amount);
                }
            }
            Moment::Open(_) => now.unknown += 1,
            _ => {}
        }
        let done = self.before + now.ended;
        let mut told = format!("{done} of {} steps", self.steps);
        for (currency, sum) in &now.refunded {
            told += &format!(", {} refunded", currency.show(*sum));
        }
        if now.unknown > 0 {
            told += &format!(", {} not known", now.unknown);
        }
        let seconds = self.began.elapsed().as_secs_f64();
        if now.ended > 0 && seconds > 1.0 {
            let rate = now.ended as f64 / seconds;
            let left = self.steps.saturating_sub(done) as f64 / rate;
            told += &format!(", {rate:.1}/s, {left:.0} s left");
        }
        self.progress.at(told);
    }

    /// Ends the line; how many steps ended in this run, and what it gave back, in minor units.
    pub fn end(self) -> (usize, BTreeMap<Currency, i128>) {
        self.progress.end();
        let now = self.now.into_inner();
        (now.ended, now.refunded)
    }
}
