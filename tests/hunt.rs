//! Hunts for wrong and double refunds: operators' processes interleave as a seed decides, are killed and
//! come back, other services write between their steps, and the bank loses, repeats and forgets. When all
//! is quiet, money, stock, rows, steps and journal must tell the same story.
//!
//! `ONEFOLD_TEST_SEED=N cargo test --test hunt` plays one seed, `ONEFOLD_TEST_HUNT=1` fifty times as many.

mod common;

#[path = "hunt/bank.rs"]
mod bank;
#[path = "hunt/dice.rs"]
mod dice;
#[path = "hunt/ground.rs"]
mod ground;
#[path = "hunt/invariants.rs"]
mod invariants;
#[path = "hunt/mutants.rs"]
mod mutants;
#[path = "hunt/operator.rs"]
mod operator;
#[path = "hunt/others.rs"]
mod others;
#[path = "hunt/play.rs"]
mod play;
#[path = "hunt/shapes.rs"]
mod shapes;
#[path = "hunt/stage.rs"]
mod stage;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use mutants::Mutant;
use play::Lane;

/// How many seeds a usual run plays.
const SEEDS: u64 = 1500;
/// How many lanes play at the same time, each on databases of its own.
const LANES: usize = 3;

/// Plays seeds until so many have failed, or all of them; how many were played, and what failed, by seed.
fn hunt(mutant: Mutant, seeds: u64, enough: usize) -> (u64, BTreeMap<u64, String>) {
    let (next, found) = (AtomicU64::new(0), Mutex::new(BTreeMap::new()));
    std::thread::scope(|scope| {
        for _ in 0..LANES {
            scope.spawn(|| {
                let mut lane = Lane::new(mutant);
                while found.lock().unwrap().len() < enough {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds {
                        break;
                    }
                    if let Err(story) = lane.play(seed) {
                        found.lock().unwrap().insert(seed, story);
                    }
                }
            });
        }
    });
    (next.into_inner().min(seeds), found.into_inner().unwrap())
}

#[test]
fn no_seed_makes_money_go_wrong() {
    if let Ok(seed) = std::env::var("ONEFOLD_TEST_SEED") {
        let seed = seed.parse().expect("ONEFOLD_TEST_SEED is a number");
        Lane::new(Mutant::NONE).play(seed).unwrap_or_else(|story| panic!("{story}"));
        return;
    }
    let seeds = if std::env::var_os("ONEFOLD_TEST_HUNT").is_some() { 50 * SEEDS } else { SEEDS };
    let began = std::time::Instant::now();
    let (played, found) = hunt(Mutant::NONE, seeds, 10);
    println!("{played} seeds in {:?}", began.elapsed());
    if let Some(story) = found.values().next() {
        let all = found.keys().map(u64::to_string).collect::<Vec<_>>().join(", ");
        panic!("{story}\nSeeds that failed: {all}. Play one alone with ONEFOLD_TEST_SEED.");
    }
}
