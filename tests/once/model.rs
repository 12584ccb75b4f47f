//! The machine against a model: any number of owners act on one key in any order, are late, die and wake,
//! and the effect still happens once.

use onefold::core::idempotency::{Decision, KeyRecord, KeyState, decide};
use onefold::core::time::Span;
use proptest::prelude::*;

use super::machine::{at, digest, record};

/// What may happen next.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// An owner asks for the key, and does what the machine says.
    Ask(usize),
    /// As `Ask`, by what it saw when it asked last: it was stalled between reading and writing.
    AskLate(usize),
    /// The owner begins the effect, if it holds the key.
    Begin(usize),
    /// The owner's effect happens now.
    Happen(usize),
    /// The owner records how its run ended.
    Finish(usize, KeyState),
    /// The truth is looked up, and settles what is UNKNOWN.
    Query,
    Pass(i64),
}

fn act() -> impl Strategy<Value = Act> {
    use KeyState::*;
    let end = prop_oneof![Just(Succeeded), Just(Failed), Just(FailedRetryable), Just(Unknown)];
    prop_oneof![
        4 => (0..4_usize).prop_map(Act::Ask),
        1 => (0..4_usize).prop_map(Act::AskLate),
        4 => (0..4_usize).prop_map(Act::Begin),
        3 => (0..4_usize).prop_map(Act::Happen),
        3 => (0..4_usize, end).prop_map(|(owner, end)| Act::Finish(owner, end)),
        1 => Just(Act::Query),
        2 => (1..90_i64).prop_map(Act::Pass),
    ]
}

#[derive(Clone, Default)]
struct Owner {
    /// Token and version, of what it believes to hold.
    hold: Option<(i64, i64)>,
    /// Under the token that it was told of.
    running: Option<i64>,
    seen: Option<(Option<KeyRecord>, Decision)>,
}

/// The database: what the query files do, in a few lines.
struct World {
    there: Option<KeyRecord>,
    now: i64,
    owners: [Owner; 4],
    /// The largest token that the resource outside has seen; a smaller one is turned away.
    fence: i64,
    /// How often it happened.
    happened: usize,
    /// How often an end was recorded that says that it did not happen.
    retries: usize,
}

impl World {
    fn take(&mut self, owner: usize, seen: Option<&KeyRecord>, to: KeyState) -> bool {
        let name = owner.to_string();
        let taken = match (&self.there, seen) {
            (None, None) => {
                KeyRecord { owner: name, lease_until: at(self.now + 60), attempts: 0, ..record(to, false) }
            }
            (Some(there), Some(seen))
                if there.version == seen.version
                    && there.state == seen.state
                    && (there.state != KeyState::Processing || there.lease_until <= at(self.now)) =>
            {
                KeyRecord {
                    owner: name,
                    state: to,
                    lease_until: at(self.now + 60),
                    token: there.token + 1,
                    version: there.version + 1,
                    may_have_run: to == KeyState::Unknown,
                    ..there.clone()
                }
            }
            _ => return false,
        };
        self.owners[owner].hold = (to == KeyState::Processing).then_some((taken.token, taken.version));
        self.there = Some(taken);
        true
    }

    /// The record, if this owner holds it as it believes.
    fn held(&mut self, owner: usize) -> Option<&mut KeyRecord> {
        let (token, version) = self.owners[owner].hold?;
        self.there.as_mut().filter(|r| {
            (r.state, r.token, r.version) == (KeyState::Processing, token, version)
                && r.owner == owner.to_string()
        })
    }

    fn step(&mut self, act: Act) {
        match act {
            Act::Pass(seconds) => self.now += seconds,
            Act::Ask(owner) => {
                let decision =
                    decide(self.there.as_ref(), &record(KeyState::Unknown, false).digest, at(self.now));
                self.owners[owner].seen = Some((self.there.clone(), decision));
                self.follow(owner);
            }
            Act::AskLate(owner) => self.follow(owner),
            Act::Begin(owner) => {
                let now = self.now;
                let Some(held) = self.held(owner).filter(|r| !r.may_have_run) else { return };
                (held.may_have_run, held.attempts) = (true, held.attempts + 1);
                held.version += 1;
                held.lease_until = at(now + 60);
                let (token, version) = (held.token, held.version);
                self.owners[owner].hold = Some((token, version));
                self.owners[owner].running = Some(token);
            }
            Act::Happen(owner) => {
                let Some(token) = self.owners[owner].running.take() else { return };
                if token >= self.fence {
                    self.fence = token;
                    self.happened += 1;
                    let there = self.there.as_ref().unwrap();
                    assert!(!matches!(there.state, KeyState::FailedRetryable), "after it was said not to");
                }
            }
            Act::Finish(owner, end) => {
                // One whose effect has not happened yet cannot say that it has; one whose effect has can say
                // nothing else, or nothing at all.
                let is_running = self.owners[owner].running.is_some();
                let happened = self.happened > 0;
                let Some(held) = self.held(owner).filter(|r| r.may_have_run) else { return };
                let end = match end {
                    KeyState::Succeeded if is_running => KeyState::Failed,
                    KeyState::Failed | KeyState::FailedRetryable if !is_running && happened => {
                        KeyState::Succeeded
                    }
                    end => end,
                };
                (held.state, held.version) = (end, held.version + 1);
                self.retries += usize::from(end == KeyState::FailedRetryable);
                if end != KeyState::Unknown {
                    self.owners[owner].running = None;
                }
            }
            Act::Query => {
                let happened = self.happened > 0;
                let Some(there) = self.there.as_mut().filter(|r| r.state == KeyState::Unknown) else {
                    return;
                };
                there.version += 1;
                if happened {
                    there.state = KeyState::Succeeded;
                } else {
                    // The resource is told of the next token before it answers, so what is still under way is late.
                    (there.state, self.fence) = (KeyState::FailedRetryable, there.token + 1);
                    self.retries += 1;
                }
            }
        }
    }

    fn follow(&mut self, owner: usize) {
        let Some((seen, decision)) = self.owners[owner].seen.take() else { return };
        match decision {
            Decision::Take | Decision::TakeOver | Decision::Retry => {
                self.take(owner, seen.as_ref(), KeyState::Processing);
            }
            Decision::FenceOff => {
                self.take(owner, seen.as_ref(), KeyState::Unknown);
            }
            Decision::StillProcessing { left, .. } => assert!(left > Span::from_micros(0)),
            Decision::ReturnResult => assert!(seen.unwrap().state.is_terminal()),
            Decision::SettleFirst => assert_eq!(seen.unwrap().state, KeyState::Unknown),
            Decision::Refuse { .. } => panic!("the same request"),
        }
    }
}

/// The table of the machine once more, as the issue has it, in another shape.
fn by_the_table(there: Option<&KeyRecord>, is_same: bool, now: i64) -> &'static str {
    let Some(there) = there else { return "take" };
    let is_live = at(now).micros() < there.lease_until.micros();
    match (is_same, there.state.as_str(), is_live, there.may_have_run) {
        (false, ..) => "refuse",
        (_, "PROCESSING", true, _) => "wait",
        (_, "PROCESSING", false, true) => "fence off",
        (_, "PROCESSING", false, false) => "take over",
        (_, "SUCCEEDED" | "FAILED", ..) => "return",
        (_, "FAILED_RETRYABLE", ..) => "retry",
        _ => "settle",
    }
}

fn name(decision: &Decision) -> &'static str {
    match decision {
        Decision::Take => "take",
        Decision::StillProcessing { .. } => "wait",
        Decision::TakeOver => "take over",
        Decision::FenceOff => "fence off",
        Decision::ReturnResult => "return",
        Decision::Retry => "retry",
        Decision::SettleFirst => "settle",
        Decision::Refuse { .. } => "refuse",
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_effect_happens_once_whatever_the_order(acts in prop::collection::vec(act(), 1..80)) {
        let mut world = World {
            there: None, now: 0, owners: Default::default(), fence: 0, happened: 0, retries: 0,
        };
        for act in acts {
            let before = world.there.clone();
            world.step(act);
            prop_assert!(world.happened <= 1, "{act:?}: {:?}", world.there);
            let (Some(before), Some(after)) = (before, world.there.as_ref()) else { continue };
            prop_assert!(after.token >= before.token && after.version >= before.version);
            prop_assert_eq!(&after.digest, &before.digest);
            if before.state != after.state {
                prop_assert!(before.state.may_become(after.state), "{} {}", before.state, after.state);
                prop_assert!(after.version > before.version);
            }
            if before.state == KeyState::Processing && after.owner != before.owner {
                prop_assert!(before.lease_until <= at(world.now) && after.token == before.token + 1);
            }
            prop_assert!(after.attempts <= world.retries as i64 + 1, "it began again with nobody's word for it");
        }
    }

    #[test]
    fn every_record_is_decided_as_the_table_says(
        state in prop::sample::select(KeyState::ALL),
        ran in any::<bool>(),
        is_there in prop::bool::weighted(0.9),
        is_same in any::<bool>(),
        now in 0..120_i64,
    ) {
        let there = is_there.then(|| record(state, ran));
        let request = if is_same { record(state, ran).digest } else { digest(&[("argv[0]", "refund")]) };
        let decision = decide(there.as_ref(), &request, at(now));
        prop_assert_eq!(name(&decision), by_the_table(there.as_ref(), is_same, now));
    }
}
