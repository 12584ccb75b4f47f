//! Chance that is the same for the same seed.

use std::sync::atomic::{AtomicU64, Ordering};

/// A stream of numbers (SplitMix64). Shared freely: of those who throw it, only one runs at a time.
pub struct Dice(AtomicU64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0xD1B5_4A32_D192_ED03))
    }

    fn next(&self) -> u64 {
        const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
        let mut z = self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// From 0 up to below `sides`.
    pub fn below(&self, sides: usize) -> usize {
        usize::try_from(self.next() % sides as u64).unwrap()
    }

    /// Whether it falls so, in so many of a hundred times.
    pub fn percent(&self, chance: usize) -> bool {
        self.below(100) < chance
    }

    pub fn pick<'a, T>(&self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}
