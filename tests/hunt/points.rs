//! Every step of every kind, disturbed at every point of it: before its claim, after it, while its request
//! is on the way, after the answer, after its move. Not by chance, but one after the other.

use std::collections::BTreeSet;
use std::sync::Arc;

use onefold::core::time::Span;

use super::bank::{Bank, Manners};
use super::dice::Dice;
use super::ground::{Layout, Site, Templates};
use super::is_long;
use super::mutants::Mutant;
use super::operator::Act;
use super::play::{Calm, Lane, Scene};
use super::shapes::SHAPES;
use super::stage::{At, Stage, WORKERS};

/// What every disturbed run must end like, and where it is played.
pub struct Points<'a> {
    lane: Lane,
    calm: &'a Calm,
}

/// Longer than a claim holds, and less than a freeze does.
const LAPSE: Span = Span::from_mins(2);

impl<'a> Points<'a> {
    pub fn new(templates: &Templates, calm: &'a Calm) -> Self {
        Self { lane: Lane::new(templates, Mutant::NONE), calm }
    }

    /// Plays one worker, or two, who apply the same plan.
    fn play(
        &mut self,
        (shape, layout): (usize, Layout),
        workers: usize,
        manners: Manners,
        what: &str,
        direct: impl AsyncFnOnce(&Stage, &mut Site, &Bank),
    ) {
        let programs = vec![vec![vec![Act::ApplyFirst]]; workers];
        let scene = Scene { shape, layout, skews: [0; WORKERS], manners, programs };
        let (dice, later) = (Arc::new(Dice::new(0)), Span::from_mins(120));
        let played = self.lane.play(&scene, &dice, direct, later, Some(&self.calm[shape]));
        if let Err(story) = played {
            panic!("{what}: {story}");
        }
    }

    /// A worker is killed at each of its pauses.
    pub fn killed(&mut self, at: (usize, Layout)) -> usize {
        for number in 0.. {
            let mut got_so_far = false;
            self.play(
                at,
                1,
                Manners::default(),
                &format!("killed at pause {number}"),
                async |stage, _, _| {
                    got_so_far = turns(stage, 0, number);
                    if got_so_far {
                        stage.give(0, true);
                    }
                    turns(stage, 0, usize::MAX);
                },
            );
            if !got_so_far {
                return number;
            }
        }
        unreachable!()
    }

    /// A worker stalls at each of its pauses until its claim has lapsed; another goes on and carries
    /// everything out, then the first wakes up: each step is run twice, and completed too late.
    pub fn run_twice(&mut self, at: (usize, Layout)) {
        self.stalled(at, |_| usize::MAX);
    }

    /// As [`Points::run_twice`], but the first wakes up while the other has claimed its step and is at it.
    pub fn completed_while_another_is_at_it(&mut self, at: (usize, Layout), turns: usize) {
        self.stalled(at, |number| if turns == 0 { 2 + number % 3 } else { turns });
    }

    fn stalled(&mut self, at: (usize, Layout), of_the_other: impl Fn(usize) -> usize) {
        // Usually every other pause, beginning with the first in one layout and with the second in the other.
        let (first, stride) = if is_long() { (0, 1) } else { (at.1 as usize, 2) };
        for number in (first..).step_by(stride) {
            let mut got_so_far = false;
            let of_the_other = of_the_other(number);
            let what = format!("stalled at pause {number} for {of_the_other} turns of another");
            self.play(at, 2, Manners::default(), &what, async |stage, _, _| {
                got_so_far = turns(stage, 0, number);
                stage.turn_clock(LAPSE);
                turns(stage, 1, of_the_other);
                turns(stage, 0, usize::MAX);
                turns(stage, 1, usize::MAX);
            });
            if !got_so_far {
                return;
            }
        }
    }

    /// The bank treats every request badly, in one way.
    pub fn answered_badly(&mut self, at: (usize, Layout)) {
        let ways = [
            Manners { loses_request: 100, ..Manners::default() },
            Manners { loses_answer: 100, ..Manners::default() },
            Manners { delivers_twice: 100, ..Manners::default() },
            Manners { accepts: 100, ..Manners::default() },
            Manners { unreachable: 100, ..Manners::default() },
            Manners { loses_answer: 100, silent: 100, ..Manners::default() },
        ];
        for manners in ways {
            self.play(at, 1, manners, "answered badly", async |stage, _, _| {
                turns(stage, 0, usize::MAX);
            });
        }
    }
}

/// Gives a worker so many turns; whether it took them all.
fn turns(stage: &Stage, who: usize, number: usize) -> bool {
    for _ in 0..number {
        if stage.places()[who] == At::End {
            return false;
        }
        stage.give(who, false);
    }
    stage.places()[who] != At::End
}

/// Every shape in both layouts.
pub fn everywhere() -> impl Iterator<Item = (usize, Layout)> {
    (0..SHAPES.len()).flat_map(|shape| [(shape, Layout::Together), (shape, Layout::Apart)])
}

/// Every kind of step that the shapes' plans hold: ledger, from and to.
pub fn kinds(templates: &Templates) -> BTreeSet<String> {
    let steps = templates.plans.iter().flat_map(|plan| &plan.intents).flat_map(|intent| &intent.steps);
    steps.map(|step| format!("{} {}→{}", step.ledger, step.from, step.to)).collect()
}
