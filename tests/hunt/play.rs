//! One run: what is drawn by its seed, the chaos, and the quiet after it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use onefold::core::plan::Plan;
use onefold::core::time::Span;
use onefold::execute::IntentEnd;
use onefold::store::Store;
use tokio::runtime::Runtime;

use super::bank::{Bank, Manners};
use super::dice::Dice;
use super::ground::{Ground, Layout, Site};
use super::invariants;
use super::mutants::Mutant;
use super::operator::{Act, Operator};
use super::others::{call_back, meddle};
use super::shapes::{self, SHAPES};
use super::stage::{At, Killed, Stage, WORKERS, clock, pause, pause_or_die, tell};

/// One lane of runs: its databases, and a runtime for each worker and for the director.
pub struct Lane {
    ground: Ground,
    workers: Vec<Runtime>,
    director: Runtime,
    mutant: Mutant,
    /// What each shape's rows are after an undisturbed run.
    calm: Vec<Vec<Vec<String>>>,
}

/// What a seed draws.
struct Draw {
    shape: usize,
    layout: Layout,
    skews: [i64; WORKERS],
    manners: Manners,
    /// Whether other services write meanwhile.
    meddled: bool,
    /// How likely, in a hundred, a turn goes to who had it, somebody is killed, and a clock jumps.
    sticky: usize,
    deadly: usize,
    jumpy: usize,
    /// Of each worker, what its processes do one after the other.
    programs: Vec<Vec<Vec<Act>>>,
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
        let program = |i: usize| {
            let first = if i == 0 { Act::ApplyFirst } else { *dice.pick(&begin) };
            let more = dice.below(3);
            std::iter::once(first).chain((0..more).map(|_| *dice.pick(&then))).collect::<Vec<_>>()
        };
        let programs = (0..workers).map(|i| (0..3).map(|life| program(i + life)).collect()).collect();
        Self {
            shape: dice.below(SHAPES.len()),
            layout: if dice.percent(60) { Layout::Together } else { Layout::Apart },
            skews: std::array::from_fn(|_| *dice.pick(&[0, 0, 0, -20, 20, 70, 300]) * 1_000_000),
            manners,
            meddled: dice.percent(40),
            sticky: *dice.pick(&[0, 50, 80, 95]),
            deadly: *dice.pick(&[0, 2, 5, 10]),
            jumpy: *dice.pick(&[0, 2, 5, 10]),
            programs,
        }
    }

    /// Whether nothing may hinder all from ending as in a run that nobody disturbs.
    fn ends_calmly(&self) -> bool {
        !self.meddled && self.manners.refuses == 0 && self.manners.key_lifetime.is_none()
    }
}

/// What a run ends with.
pub struct End {
    pub plan: Plan,
    pub ends: Vec<(String, IntentEnd)>,
}

impl Lane {
    pub fn new(mutant: Mutant) -> Self {
        let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let director = runtime();
        Arc::new(Stage::new(0, [0; WORKERS])).enter(None);
        let ground = director.block_on(Ground::new(&mutant));
        let workers = (0..WORKERS).map(|_| runtime()).collect();
        let mut lane = Self { ground, workers, director, mutant, calm: Vec::new() };
        for shape in 0..SHAPES.len() {
            let rows = lane.undisturbed(shape);
            lane.calm.push(rows);
        }
        lane
    }

    fn undisturbed(&mut self, shape: usize) -> Vec<Vec<String>> {
        let site = self.ground.site(Layout::Together);
        Arc::new(Stage::new(0, [0; WORKERS])).enter(None);
        let bank =
            Arc::new(Bank::new(&shapes::rows(shape).payments, Manners::default(), Arc::new(Dice::new(0))));
        self.director.block_on(async {
            site.set_back(shape).await;
            let stores = std::mem::take(&mut site.stores);
            quiet(site, closer(&stores[WORKERS], &bank, &self.mutant), &bank).await.unwrap();
            site.stores = stores;
            statuses(site).await
        })
    }

    /// Plays a seed; what is wrong at its end, with the story of it.
    pub fn play(&mut self, seed: u64) -> Result<(), String> {
        let dice = Arc::new(Dice::new(seed));
        let draw = Draw::new(&dice);
        let stage = Arc::new(Stage::new(draw.programs.len(), draw.skews));
        stage.enter(None);
        let bank = Arc::new(Bank::new(&shapes::rows(draw.shape).payments, draw.manners, Arc::clone(&dice)));
        let site = self.ground.site(draw.layout);
        let problems = Mutex::new(Vec::new());
        self.director.block_on(site.set_back(draw.shape));
        let stores = std::mem::take(&mut site.stores);
        std::thread::scope(|scope| {
            for (who, program) in draw.programs.iter().enumerate() {
                let (stage, bank, runtime, store) = (&stage, &bank, &self.workers[who], &stores[who]);
                let (mutant, problems) = (&self.mutant, &problems);
                scope.spawn(move || {
                    stage.enter(Some(who));
                    stage.first_turn(who);
                    let found = work(runtime, store, bank, mutant, who, program);
                    problems.lock().unwrap().extend(found);
                    stage.end(who);
                });
            }
            self.director.block_on(direct(&stage, site, &bank, &dice, &draw));
        });
        let mut problems = problems.into_inner().unwrap();
        let calm = draw.ends_calmly().then(|| &self.calm[draw.shape]);
        problems.extend(self.director.block_on(async {
            tell(|| "— quiet —".to_owned());
            let long = draw.manners.key_lifetime.is_some() && dice.percent(50);
            stage.turn_clock(Span::from_mins(if long { 60 * 60 } else { 120 }));
            bank.calm_down(clock());
            call_back(site, &bank).await;
            match quiet(site, closer(&stores[WORKERS], &bank, &self.mutant), &bank).await {
                Ok(end) => invariants::broken(site, &bank, &end, calm).await,
                Err(why) => vec![why],
            }
        }));
        site.stores = stores;
        if problems.is_empty() {
            return Ok(());
        }
        Err(format!(
            "seed {seed}: {}\n  shape: {}; {:?}; mutant: {}\n  {:?}\n{}",
            problems.join("\n  "),
            SHAPES[draw.shape].0,
            draw.layout,
            self.mutant.name,
            draw.manners,
            stage.trace(),
        ))
    }
}

/// The processes of one worker, one after the other: the next begins where one was killed. What is no
/// way to end.
fn work(
    runtime: &Runtime,
    store: &Store,
    bank: &Arc<Bank>,
    mutant: &Mutant,
    who: usize,
    program: &[Vec<Act>],
) -> Vec<String> {
    let mut problems = Vec::new();
    for (life, acts) in program.iter().enumerate() {
        let (bank, process) =
            (Arc::clone(bank), format!("{}{life}", char::from(b'a' + u8::try_from(who).unwrap())));
        let mut operator = Operator { store, bank, mutant, actor: "op".to_owned(), process };
        let lived = catch_unwind(AssertUnwindSafe(|| {
            runtime.block_on(async {
                for (i, act) in acts.iter().enumerate() {
                    // A process makes one plan of a name.
                    if *act == Act::Plan && acts[..i].contains(act) {
                        continue;
                    }
                    operator.act(*act).await?;
                    pause_or_die(false, || "is done with that".to_owned());
                }
                Ok(())
            })
        }));
        match lived {
            Ok(Ok(())) => break,
            Ok(Err(problem)) => {
                problems.push(problem);
                break;
            }
            Err(payload) if payload.is::<Killed>() => {
                pause(false, || "another process begins".to_owned());
            }
            Err(payload) => {
                let what = payload.downcast_ref::<String>().cloned();
                let what = what.or_else(|| payload.downcast_ref::<&str>().map(ToString::to_string));
                problems.push(format!("a worker panicked: {}", what.unwrap_or_default()));
                break;
            }
        }
    }
    problems
}

/// Gives turns until all workers have ended, with what befalls them and the rows between two turns.
async fn direct(stage: &Arc<Stage>, site: &mut Site, bank: &Bank, dice: &Dice, draw: &Draw) {
    // Whatever goes wrong here, nobody waits for a turn that never comes.
    struct Abandon<'a>(&'a Stage);
    impl Drop for Abandon<'_> {
        fn drop(&mut self) {
            self.0.abandon();
        }
    }
    let _abandon = Abandon(stage);
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
    if minutes > 60 && (draw.manners.key_lifetime.is_none() || at.contains(&At::Wire)) {
        return;
    }
    if minutes > 60 {
        bank.books.lock().unwrap().wire.clear();
    }
    tell(|| format!("{minutes} min pass"));
    stage.turn_clock(Span::from_mins(minutes));
}

/// The operator who brings all to an end.
fn closer<'a>(store: &'a Store, bank: &Arc<Bank>, mutant: &'a Mutant) -> Operator<'a> {
    Operator { store, bank: Arc::clone(bank), mutant, actor: "op".to_owned(), process: "z".to_owned() }
}

/// Plans, applies and converges until nothing moves any more, and then applies once more.
async fn quiet(site: &mut Site, mut closer: Operator<'_>, bank: &Bank) -> Result<End, String> {
    let failed = |e: onefold::error::Error| format!("in the quiet: {e}");
    closer.take_over().await.map_err(failed)?;
    let mut before = Vec::new();
    for round in 0..10 {
        closer.renew().await.map_err(failed)?;
        let begun = closer.apply_newest().await.map_err(failed)?;
        tell(|| format!("apply: {begun:?}"));
        let learned = closer.converge().await.map_err(failed)?;
        tell(|| format!("converge: {learned:?}"));
        let plan = closer.plan(&format!("PL-z{round}")).await;
        let ends = closer.apply(&plan.plan_id).await.map_err(failed)?;
        tell(|| format!("plan and apply: {ends:?}"));
        let now = all_there_is(site, bank).await;
        if now == before {
            return Ok(End { plan, ends });
        }
        before = now;
    }
    Err("it never comes to rest".to_owned())
}

/// What changes where anything changes.
async fn all_there_is(site: &mut Site, bank: &Bank) -> Vec<Vec<String>> {
    let mut all = site.in_ledgers("SELECT COUNT(*) FROM moved").await;
    all.extend(site.in_journal("SELECT step_key, state FROM onefold_steps ORDER BY step_key").await);
    let books = bank.books.lock().unwrap();
    all.push(vec![books.movements.len().to_string(), books.requests.len().to_string()]);
    all
}

/// Each row's status, and what of a payment was given back.
pub async fn statuses(site: &mut Site) -> Vec<Vec<String>> {
    site.in_ledgers(
        "SELECT order_id, status, '' FROM orders UNION ALL SELECT hold_id, status, '' FROM inventory UNION ALL
         SELECT message_id, status, '' FROM messages UNION ALL
         SELECT payment_id, status, CAST(refunded_minor AS TEXT) FROM payments ORDER BY 1",
    )
    .await
}
