//! A run by chance: what is drawn by a seed, and what befalls the workers between two turns.

use std::sync::Arc;

use onefold::core::time::Span;

use super::bank::{Bank, Manners};
use super::dice::Dice;
use super::ground::{Layout, Site};
use super::operator::Act;
use super::others::meddle;
use super::play::{Calm, Lane, Scene};
use super::shapes::SHAPES;
use super::stage::{At, Stage, WORKERS, clock, tell};

/// Plays a seed; the story of it, and what is wrong at its end, if anything is.
pub fn play(lane: &mut Lane, seed: u64, calm: &Calm) -> Result<String, String> {
    let dice = Arc::new(Dice::new(seed));
    let draw = Draw::new(&dice);
    let long = draw.scene.manners.key_lifetime.is_some() && dice.percent(50);
    let later = Span::from_mins(if long { 60 * 60 } else { 120 });
    let calm = draw.ends_calmly().then(|| &calm[draw.scene.shape]);
    let direct =
        async |stage: &Stage, site: &mut Site, bank: &Bank| direct(stage, site, bank, &dice, &draw).await;
    lane.play(&draw.scene, &dice, direct, later, calm).map_err(|story| format!("seed {seed}: {story}"))
}

/// What a seed draws.
struct Draw {
    scene: Scene,
    /// Whether other services write meanwhile.
    meddled: bool,
    /// How likely, in a hundred, a turn goes to who had it, somebody is killed, and a clock jumps.
    sticky: usize,
    deadly: usize,
    jumpy: usize,
}

impl Draw {
    fn new(dice: &Dice) -> Self {
        let some = |chance: usize, share: usize| if dice.percent(chance) { share } else { 0 };
        let forgets = dice.percent(25);
        let manners = Manners {
            loses_request: some(40, 30),
            loses_answer: some(50, 40),
            delivers_twice: some(30, 30),
            accepts: some(30, 40),
            refuses: some(20, 30),
            unreachable: some(30, 30),
            silent: some(30, 30),
            key_lifetime: forgets.then(|| Span::from_mins(24 * 60)),
            lists: dice.percent(50),
            gives_too_much: dice.percent(50),
        };
        let workers = 2 + dice.below(WORKERS - 1);
        let begin =
            [Act::ApplyFirst, Act::ApplyFirst, Act::ApplyNewest, Act::Converge, Act::Plan, Act::TakeOver];
        let then = [
            Act::ApplyNewest,
            Act::ApplyNewest,
            Act::ApplyFirst,
            Act::Converge,
            Act::Plan,
            Act::Renew,
            Act::TakeOver,
        ];
        // Whoever plans anew while another applies the plan before is a rival for the same effects.
        let rivals = dice.percent(35);
        let program = |i: usize| {
            if rivals && i > 0 && dice.percent(60) {
                return vec![Act::Plan, Act::ApplyNewest];
            }
            let first = if i == 0 { Act::ApplyFirst } else { *dice.pick(&begin) };
            let more = dice.below(3);
            std::iter::once(first).chain((0..more).map(|_| *dice.pick(&then))).collect::<Vec<_>>()
        };
        let programs = (0..workers).map(|i| (0..3).map(|life| program(i + life)).collect()).collect();
        let scene = Scene {
            shape: dice.below(SHAPES.len()),
            layout: if dice.percent(60) { Layout::Together } else { Layout::Apart },
            skews: std::array::from_fn(|_| *dice.pick(&[0, 0, 0, -20, 20, 70, 300])),
            manners,
            programs,
        };
        Self {
            scene,
            meddled: dice.percent(40),
            sticky: *dice.pick(&[0, 50, 80, 95]),
            deadly: *dice.pick(&[0, 2, 5, 10]),
            jumpy: *dice.pick(&[0, 2, 5, 10]),
        }
    }

    /// Whether nothing may hinder all from ending as in a run that nobody disturbs.
    fn ends_calmly(&self) -> bool {
        !self.meddled && self.scene.manners.refuses == 0 && self.scene.manners.key_lifetime.is_none()
    }
}

/// Gives turns until all workers have ended, with what befalls them and the rows between two turns.
async fn direct(stage: &Stage, site: &mut Site, bank: &Bank, dice: &Dice, draw: &Draw) {
    let mut last = 0;
    let mut at = stage.places();
    loop {
        let alive: Vec<usize> = (0..at.len()).filter(|i| at[*i] != At::End).collect();
        if alive.is_empty() {
            return;
        }
        if draw.meddled && dice.percent(8) {
            meddle(site, bank, dice).await;
        }
        if bank.is_wired() && dice.percent(10) {
            bank.deliver_one(clock());
        }
        if dice.percent(draw.jumpy) {
            jump(stage, bank, dice, draw, &at);
        }
        let next = if alive.contains(&last) && dice.percent(draw.sticky) { last } else { *dice.pick(&alive) };
        at = stage.give(next, dice.percent(draw.deadly));
        last = next;
    }
}

/// Time passes: less than a lease, more than one, more than that of a freeze, or more than a key lives.
fn jump(stage: &Stage, bank: &Bank, dice: &Dice, draw: &Draw, at: &[At]) {
    let minutes = *dice.pick(&[1, 2, 2, 2, 11, 31, 25 * 60]);
    // No network keeps a request for a day.
    if minutes > 60 && (draw.scene.manners.key_lifetime.is_none() || at.contains(&At::Wire)) {
        return;
    }
    if minutes > 60 {
        bank.books.lock().unwrap().wire.clear();
    }
    tell(|| format!("{minutes} min pass"));
    stage.turn_clock(Span::from_mins(minutes));
}
