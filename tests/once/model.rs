//! The machine against a model: any number of owners act on one key in any order, are late, die and wake,
//! and the effect still happens once.

use onefold::core::idempotency::{
    Archived, Decision, KeyRecord, KeyState, RequestDigest, Retention, decide, decide_archived,
};
use onefold::core::retention::{Aging, RetentionPolicy, Verdict};
use onefold::core::time::Span;
use proptest::prelude::*;

use super::machine::{archived, at, digest, record};

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
    /// Records go down the tiers, as they are due.
    Sweep,
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
        2 => Just(Act::Sweep),
        2 => (1..90_i64).prop_map(Act::Pass),
        1 => (90..400_i64).prop_map(Act::Pass),
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
    archive: Option<Archived>,
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
            // The insert is undone where the archive knows the key.
            (None, None) if self.archive.is_none() => KeyRecord {
                owner: name,
                lease_until: at(self.now + 60),
                last_seen: at(self.now),
                keep_for: Span::from_secs(90),
                attempts: 0,
                ..record(to, false)
            },
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
                let request = record(KeyState::Unknown, false).digest;
                let decision = match &self.archive {
                    Some(archived) => decide_archived(archived, &request),
                    None => decide(self.there.as_ref(), &request, at(self.now)),
                };
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
                    let state = self.there.as_ref().map(|there| there.state);
                    assert_ne!(state, Some(KeyState::FailedRetryable), "after it was said not to");
                }
            }
            Act::Finish(owner, end) => {
                // One whose effect has not happened yet cannot say that it has; one whose effect has can say
                // nothing else, or nothing at all.
                let now = at(self.now);
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
                (held.state, held.version, held.last_seen) = (end, held.version + 1, now);
                self.retries += usize::from(end == KeyState::FailedRetryable);
                if end != KeyState::Unknown {
                    self.owners[owner].running = None;
                }
            }
            Act::Sweep => {
                let now = at(self.now);
                let Some(there) = self.there.as_mut() else { return };
                let KeyRecord { state, retention, last_seen, keep_for, .. } = *there;
                let verdict = policy().judge(&Aging { state, retention, last_seen, keep_for }, None, now);
                match verdict {
                    Verdict::Stays(_) => {}
                    Verdict::Moves(Retention::Archive) => {
                        self.archive = self.there.take().map(|r| archived(&r))
                    }
                    Verdict::Moves(to) => {
                        (there.retention, there.result) = (to, None);
                        if to == Retention::Dispute {
                            there.digest = RequestDigest::folded(there.digest.whole());
                        }
                    }
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
            Decision::ReturnCode => assert!(self.archive.is_some() && self.there.is_none()),
            Decision::SettleFirst => assert_eq!(seen.unwrap().state, KeyState::Unknown),
            Decision::Refuse { .. } => panic!("the same request"),
        }
    }
}

/// Windows that acts and pauses of seconds get past.
pub fn policy() -> RetentionPolicy {
    let [hot, replay, dispute, archive] = [60, 120, 180, 3600].map(Span::from_secs);
    RetentionPolicy { client_retry: hot, queue: hot, longest_replay: hot, replay, dispute, archive }
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
        Decision::ReturnCode => "return the code",
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
            there: None, archive: None, now: 0, owners: Default::default(), fence: 0, happened: 0, retries: 0,
        };
        for act in acts {
            let (before, was_archived) = (world.there.clone(), world.archive.clone());
            world.step(act);
            if was_archived.is_some() {
                prop_assert_eq!(&world.archive, &was_archived);
                prop_assert_eq!(&world.there, &None, "an archived key was taken");
            }
            let state = world.archive.as_ref().map(|archived| archived.state);
            prop_assert!(state.is_none_or(KeyState::is_terminal));
            prop_assert!(world.happened <= 1, "{act:?}: {:?}", world.there);
            let (Some(before), Some(after)) = (before, world.there.as_ref()) else { continue };
            prop_assert!(after.token >= before.token && after.version >= before.version);
            prop_assert_eq!(after.digest.whole(), before.digest.whole());
            prop_assert!(after.retention >= before.retention);
            prop_assert!(after.retention == Retention::Hot || after.state.is_terminal());
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
