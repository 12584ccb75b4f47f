//! Counts over time, and which shape they have, by stated rules.

use crate::core::status::status_type;
use crate::core::time::{Span, Timestamp};

/// At most so many pieces: a line of a terminal.
const MOST: i64 = 48;
/// Lengths of a piece that a person reads easily, in seconds.
const PIECES: [i64; 14] = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 21600, 86400];
/// Needles stand in at most so many of ten pieces.
const NEEDLE_TENTHS: usize = 2;
/// … and are at most so many pieces wide.
const NEEDLE_WIDTH: usize = 2;
/// A step is so many times as high behind as before; a cliff, before as behind.
const STEP: f64 = 3.0;
/// On the high side of a step so many of ten pieces have at least half of that side's mean: it stays up.
const LEVEL_TENTHS: usize = 8;
/// A ramp grows so many times from each quarter to the next.
const RAMP: f64 = 1.2;
/// With fewer pieces there is no shape to see.
const LEAST: usize = 8;
/// With fewer in all pieces there is none but needles.
const LEAST_IN_ALL: u64 = 30;

status_type!(
    /// How counts run over time.
    Shape {
        Nothing = "nothing",
        Needles = "isolated needles",
        Step = "a step",
        Ramp = "a ramp",
        Cliff = "a cliff",
        /// None of these.
        Other = "no such shape",
    }
);

impl Shape {
    /// The rule, with its thresholds.
    pub fn rule(self) -> String {
        match self {
            Self::Nothing => "all are 0".to_owned(),
            Self::Needles => format!(
                "in at most {NEEDLE_TENTHS} of 10 pieces, never more than {NEEDLE_WIDTH} side by side"
            ),
            Self::Ramp => format!(
                "each quarter has at least {RAMP} times what the one before has, and a straight line fits better than a \
                 step (least squares)"
            ),
            Self::Step => format!(
                "behind some piece the mean is at least {STEP} times that before it, and {LEVEL_TENTHS} of 10 \
                 pieces there have half of the mean or more"
            ),
            Self::Cliff => format!(
                "before some piece the mean is at least {STEP} times that behind it, and {LEVEL_TENTHS} of 10 \
                 pieces there have half of the mean or more"
            ),
            Self::Other => format!(
                "none of the rules holds, or there are fewer than {LEAST} pieces or {LEAST_IN_ALL} in all"
            ),
        }
    }
}

/// Equal pieces of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pieces {
    pub begins: Timestamp,
    pub length: Span,
    pub count: usize,
}

impl Pieces {
    /// From the first instant to the last, which are of rows; in pieces of a given length, else of one that a
    /// clock has. `None` where so short a piece would make too many.
    pub fn over(first: Timestamp, last: Timestamp, length: Option<Span>) -> Option<Self> {
        let span = last.since(first).micros().max(0) / 1_000_000 + 1;
        let fitting = || PIECES.iter().find(|piece| span / **piece < MOST).copied();
        let length = length.unwrap_or_else(|| Span::from_secs(fitting().unwrap_or(span / MOST + 1)));
        // Pieces begin where a clock's do.
        let begins = first.micros().div_euclid(length.micros()) * length.micros();
        let count = (last.micros() - begins) / length.micros() + 1;
        let count = usize::try_from(count).ok().filter(|count| *count <= 100_000)?;
        Some(Self { begins: Timestamp::from_micros(begins), length, count })
    }

    /// In which piece an instant lies; the first or the last for one outside.
    pub fn of(&self, at: Timestamp) -> usize {
        let piece = at.since(self.begins).micros().div_euclid(self.length.micros());
        usize::try_from(piece).unwrap_or(0).min(self.count - 1)
    }

    pub fn begin(&self, piece: usize) -> Timestamp {
        let pieces = i64::try_from(piece).unwrap_or(i64::MAX);
        self.begins.plus(Span::from_micros(self.length.micros().saturating_mul(pieces)))
    }
}

/// The first of the rules that holds: needles, ramp, step, cliff.
pub fn shape(counts: &[u64]) -> Shape {
    if counts.iter().all(|n| *n == 0) {
        Shape::Nothing
    } else if counts.len() < LEAST {
        Shape::Other
    } else if is_needles(counts) {
        Shape::Needles
    } else if counts.iter().sum::<u64>() < LEAST_IN_ALL {
        Shape::Other
    } else if is_ramp(counts) {
        Shape::Ramp
    } else if has_step(counts.iter().copied()) {
        Shape::Step
    } else if has_step(counts.iter().rev().copied()) {
        Shape::Cliff
    } else {
        Shape::Other
    }
}

fn is_needles(counts: &[u64]) -> bool {
    let standing = counts.iter().filter(|n| **n > 0).count();
    let widest = counts.split(|n| *n == 0).map(<[u64]>::len).max().unwrap_or(0);
    standing * 10 <= counts.len() * NEEDLE_TENTHS && widest <= NEEDLE_WIDTH
}

fn mean(counts: &[u64]) -> f64 {
    counts.iter().sum::<u64>() as f64 / counts.len().max(1) as f64
}

fn is_ramp(counts: &[u64]) -> bool {
    let quarter = |i: usize| mean(&counts[counts.len() * i / 4..counts.len() * (i + 1) / 4]);
    let grows = (1..4).all(|i| quarter(i) > 0.0 && quarter(i) >= RAMP * quarter(i - 1));
    let steps = (1..counts.len()).map(|at| scatter(&counts[..at]) + scatter(&counts[at..]));
    grows && off_a_line(counts) < steps.fold(f64::INFINITY, f64::min)
}

/// The sum of squares about the mean.
fn scatter(counts: &[u64]) -> f64 {
    let mean = mean(counts);
    counts.iter().map(|n| (*n as f64 - mean).powi(2)).sum()
}

/// The sum of squares about the straight line that fits best.
fn off_a_line(counts: &[u64]) -> f64 {
    let middle = (counts.len() - 1) as f64 / 2.0;
    let away = || (0..counts.len()).map(|i| i as f64 - middle);
    let slope =
        away().zip(counts).map(|(x, n)| x * *n as f64).sum::<f64>() / away().map(|x| x * x).sum::<f64>();
    let mean = mean(counts);
    away().zip(counts).map(|(x, n)| (*n as f64 - mean - slope * x).powi(2)).sum()
}

/// Whether the counts go up once and stay up.
fn has_step(counts: impl Iterator<Item = u64>) -> bool {
    let counts: Vec<_> = counts.collect();
    let side = (counts.len() / 8).max(LEAST / 4);
    (side..=counts.len() - side).any(|at| {
        let (before, behind) = counts.split_at(at);
        let level = mean(behind);
        let up = behind.iter().filter(|n| **n as f64 * 2.0 >= level).count();
        level > 0.0 && level >= STEP * mean(before) && up * 10 >= behind.len() * LEVEL_TENTHS
    })
}
