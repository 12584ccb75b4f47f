//! How fast a plan is carried out, by how many at once, and whether it goes on.

use std::cell::Cell;
use std::time::Duration;

use tokio::time::Instant;

/// Whether work goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    Open,
    Wait,
    Stop,
}

pub struct Pace<'p> {
    /// How many intents are carried out at once in this process.
    pub workers: usize,
    /// How long another process that is at the last intents is waited for.
    pub patience: Duration,
    /// Asked before every step.
    pub gate: &'p dyn Fn() -> Gate,
    /// Between two steps, whoever takes them; none for as fast as it goes.
    between: Duration,
    next: Cell<Option<Instant>>,
}

impl<'p> Pace<'p> {
    pub const fn new(
        workers: usize,
        per_second: Option<f64>,
        patience: Duration,
        gate: &'p dyn Fn() -> Gate,
    ) -> Self {
        let between = match per_second {
            Some(per_second) => Duration::from_nanos((1e9 / per_second) as u64),
            None => Duration::ZERO,
        };
        Self { workers, patience, gate, between, next: Cell::new(None) }
    }

    /// Whether it is slower than it could be.
    pub(super) const fn is_slowed(&self) -> bool {
        !self.between.is_zero()
    }

    /// One after the other, as fast as it goes.
    pub const fn alone() -> Self {
        Self::new(1, None, Duration::ZERO, &|| Gate::Open)
    }

    /// When so many more steps may be taken, in the order of who asks.
    pub(super) fn turn(&self, steps: usize) -> Instant {
        let now = Instant::now();
        if self.between.is_zero() || steps == 0 {
            return now;
        }
        let at = self.next.get().filter(|next| *next > now).unwrap_or(now);
        // A plan never has so many steps that their number does not fit.
        self.next.set(Some(at + self.between * u32::try_from(steps).unwrap_or(u32::MAX)));
        at
    }
}
