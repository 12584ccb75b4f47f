//! One run: workers take turns as somebody directs, then all is brought to rest and judged.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use onefold::core::plan::Plan;
use onefold::core::time::Span;
use onefold::execute::IntentEnd;
use onefold::store::Store;
use tokio::runtime::Runtime;

use super::bank::{Bank, Manners};
use super::dice::Dice;
use super::ground::{Ground, Layout, Site, Templates};
use super::invariants;
use super::mutants::Mutant;
use super::operator::{Act, Operator};
use super::others::call_back;
use super::shapes::{self, SHAPES};
use super::stage::{Killed, Stage, WORKERS, clock, pause, pause_or_die, tell};

/// One lane of runs: its databases, and a runtime for each worker and for the director.
pub struct Lane {
    ground: Ground,
    workers: Vec<Runtime>,
    director: Runtime,
    mutant: Mutant,
}

/// What a run is set up with.
pub struct Scene {
    pub shape: usize,
    pub layout: Layout,
    /// How far each worker's clock is off, in seconds.
    pub skews: [i64; WORKERS],
    pub manners: Manners,
    /// Of each worker, what its processes do one after the other.
    pub programs: Vec<Vec<Vec<Act>>>,
}

/// What a run ends with.
pub struct End {
    pub plan: Plan,
    pub ends: Vec<(String, IntentEnd)>,
}

/// What each shape's rows are after an undisturbed run.
pub type Calm = Vec<Vec<Vec<String>>>;

impl Lane {
    pub fn new(templates: &Templates, mutant: Mutant) -> Self {
        let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let director = runtime();
        let ground = director.block_on(Ground::new(templates, &mutant));
        let workers = (0..WORKERS).map(|_| runtime()).collect();
        Self { ground, workers, director, mutant }
    }

    /// How runs end that nobody disturbs.
    pub fn calm(&mut self) -> Calm {
        (0..SHAPES.len()).map(|shape| self.undisturbed(shape)).collect()
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

    /// Plays a scene as `direct` gives turns, and brings it to rest; the story of it, and what is wrong
    /// then, if anything is. With `calm`, it must end so. `later` is how long after the last turn.
    pub fn play(
        &mut self,
        scene: &Scene,
        dice: &Arc<Dice>,
        direct: impl AsyncFnOnce(&Stage, &mut Site, &Bank),
        later: Span,
        calm: Option<&Vec<Vec<String>>>,
    ) -> Result<String, String> {
        let stage = Arc::new(Stage::new(scene.programs.len(), scene.skews.map(|s| s * 1_000_000)));
        stage.enter(None);
        let bank = Arc::new(Bank::new(&shapes::rows(scene.shape).payments, scene.manners, Arc::clone(dice)));
        let site = self.ground.site(scene.layout);
        let problems = Mutex::new(Vec::new());
        self.director.block_on(site.set_back(scene.shape));
        let stores = std::mem::take(&mut site.stores);
        std::thread::scope(|scope| {
            for (who, program) in scene.programs.iter().enumerate() {
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
            // Whatever goes wrong in directing, nobody waits for a turn that never comes.
            let _abandon = Abandon(&stage);
            self.director.block_on(direct(&stage, site, &bank));
        });
        let mut problems = problems.into_inner().unwrap();
        problems.extend(self.director.block_on(async {
            tell(|| "— quiet —".to_owned());
            bank.calm_down(clock());
            stage.turn_clock(later);
            call_back(site, &bank).await;
            match quiet(site, closer(&stores[WORKERS], &bank, &self.mutant), &bank).await {
                Ok(end) => {
                    let mut broken = invariants::broken(site, &bank, &end, calm).await;
                    // It reads the whole journal, which takes longer than the play.
                    if crate::is_long() {
                        broken.extend(invariants::holes(&stores[WORKERS]).await);
                    }
                    broken
                }
                Err(why) => vec![why],
            }
        }));
        site.stores = stores;
        if problems.is_empty() {
            return Ok(stage.trace());
        }
        Err(format!(
            "{}\n  shape: {}; {:?}; mutant: {}\n  {:?}\n{}",
            problems.join("\n  "),
            SHAPES[scene.shape].0,
            scene.layout,
            self.mutant.name,
            scene.manners,
            stage.trace(),
        ))
    }
}

struct Abandon<'a>(&'a Stage);

impl Drop for Abandon<'_> {
    fn drop(&mut self) {
        self.0.abandon();
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

/// The operator who brings all to an end.
fn closer<'a>(store: &'a Store, bank: &Arc<Bank>, mutant: &'a Mutant) -> Operator<'a> {
    Operator { store, bank: Arc::clone(bank), mutant, actor: "op".to_owned(), process: "z".to_owned() }
}

/// Plans, applies and converges until nothing moves any more, and then applies once more.
async fn quiet(site: &mut Site, mut closer: Operator<'_>, bank: &Bank) -> Result<End, String> {
    let failed = |e: onefold::error::Error| format!("in the quiet: {e}");
    closer.take_over().await.map_err(failed)?;
    let begun = closer.apply_newest().await.map_err(failed)?;
    tell(|| format!("apply: {begun:?}"));
    let mut before = Vec::new();
    for round in 0..10 {
        let learned = closer.converge().await.map_err(failed)?;
        tell(|| format!("converge: {learned:?}"));
        let plan = closer.plan(&format!("PL-z{round}")).await;
        let ends = closer.apply(&plan.plan_id).await.map_err(failed)?;
        tell(|| {
            let outcomes = plan.intents.iter().map(|i| (i.outcome, &i.findings)).collect::<Vec<_>>();
            format!("plan: {outcomes:?}; apply: {ends:?}")
        });
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
