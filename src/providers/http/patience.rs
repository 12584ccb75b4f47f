//! How often, how long and when not: backoff between repeats, and a breaker that leaves a provider
//! alone that does not answer.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The wait before the first repeat; it doubles with each.
const FIRST_WAIT: Duration = Duration::from_millis(300);
const LONGEST_WAIT: Duration = Duration::from_secs(8);
/// However long a provider asks to be left alone, a person may want to try again after this.
const LONGEST_REST: Duration = Duration::from_secs(15 * 60);

/// How long to wait before a repeat, after so many tries: between half and all of what is due, so that
/// many at once do not come back at once. What the provider asks for is kept to, and something added.
pub fn wait(tries: u32, asked_for: Option<Duration>) -> Duration {
    let due = FIRST_WAIT.saturating_mul(1 << tries.saturating_sub(1).min(10)).min(LONGEST_WAIT);
    let share = f64::from(uuid::Uuid::new_v4().as_fields().0) / f64::from(u32::MAX);
    match asked_for {
        Some(asked_for) => asked_for.saturating_add(FIRST_WAIT.mul_f64(share)),
        None => due.mul_f64(0.5 + share / 2.0),
    }
}

/// Counts failures in a row, and after so many lets nothing through for a while; then one request, as
/// a probe.
#[derive(Debug)]
pub struct Breaker {
    failures: u32,
    cool_down: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    in_a_row: u32,
    /// Nothing goes through until then.
    closed_until: Option<Instant>,
    /// Until then the provider has asked to be left alone.
    rests_until: Option<Instant>,
}

impl Breaker {
    pub fn new(failures: u32, cool_down: Duration) -> Self {
        Self { failures, cool_down, state: Mutex::default() }
    }

    /// Whether a request may leave; else why not.
    ///
    /// # Errors
    /// That it may not, in words.
    pub fn admit(&self) -> Result<(), String> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(until) = state.closed_until else { return Ok(()) };
        let now = Instant::now();
        if now < until {
            return Err(format!(
                "the provider failed {} times in a row, and is left alone for another {} s",
                state.in_a_row,
                (until - now).as_secs_f64().ceil()
            ));
        }
        // One probe; the others wait until it has ended, or for as long again.
        state.closed_until = Some(now + self.cool_down);
        Ok(())
    }

    /// How long the provider asks to be left alone still.
    pub fn rest(&self) -> Duration {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.rests_until.map_or(Duration::ZERO, |until| until.saturating_duration_since(Instant::now()))
    }

    /// Takes note that the provider asks to be left alone for so long.
    pub fn rests(&self, asked_for: Duration) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.rests_until = Some(Instant::now() + asked_for.min(LONGEST_REST));
    }

    /// Takes note of how a request ended.
    pub fn ended(&self, well: bool) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if well {
            *state = State { rests_until: state.rests_until, ..State::default() };
            return;
        }
        state.in_a_row = state.in_a_row.saturating_add(1);
        if state.in_a_row >= self.failures {
            state.closed_until = Some(Instant::now() + self.cool_down);
        }
    }
}
