//! Histories that tests write: holders one after the other, each with what befalls it.

use onefold::core::locks::{Audit, Audited, Certainty, Event, EventKind, Found, InOrder, LockFinding, Rules};
use onefold::core::time::{Span, Timestamp};
use proptest::prelude::*;

pub const LEASE_MS: i64 = 10_000;

/// What befalls a holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It works, renews and releases in time; somebody else is refused meanwhile.
    Clean,
    /// It dies; its lease ends by itself.
    Dies,
    /// It dies, and its key is taken from it.
    DiesAndIsStolenFrom,
    /// The work outlives the lease, and the next holder has the key when it ends. The release is safe.
    Outlives,
    /// The same, and its release is a bare DEL.
    DeletesTheNext,
    /// The same, and a third one gets the key that was deleted.
    DeletesTheNextAndAThirdComes,
    /// The lock server's replica takes over and gives the key again.
    FailsOver,
    /// The key is given again, and nothing says why.
    GivenTwice,
    /// It works on after the key was stolen.
    StolenFrom,
    /// Its write comes after the next holder's, and is taken or refused.
    WritesLate { taken: bool },
    /// It gets no greater token than the one before it.
    OldToken,
    /// It renews after its lease has ended, and nobody came between.
    RenewsLate,
    /// It uses more than 70 % of its lease.
    Long,
    /// It stands still over the end of its lease; nobody comes between.
    StandsStill,
    /// It takes a lock without expiry and releases it.
    WithoutExpiry,
    /// It takes a lock without expiry and is never heard of again; nobody gets the key any more.
    Vanishes,
    /// It dies, and the lock server says that its lease has ended.
    Expires,
    /// The lock server lets it go before its lease has ended, and gives the key to the next one.
    ExpiresEarly,
    /// Somebody tries to steal it, and is refused.
    StolenFromInVain,
    /// It writes once it has released, while the next one holds the key.
    WritesAfterRelease,
    /// It renews once it has released, and the next one gets the key while that lease runs.
    RenewsAfterRelease,
    /// Its renewal is refused, and it stops; the next one gets the key.
    IsToldAtRenewal,
}

pub const FATES: [Fate; 23] = [
    Fate::Clean,
    Fate::Dies,
    Fate::DiesAndIsStolenFrom,
    Fate::Outlives,
    Fate::DeletesTheNext,
    Fate::DeletesTheNextAndAThirdComes,
    Fate::FailsOver,
    Fate::GivenTwice,
    Fate::StolenFrom,
    Fate::WritesLate { taken: true },
    Fate::WritesLate { taken: false },
    Fate::OldToken,
    Fate::RenewsLate,
    Fate::Long,
    Fate::StandsStill,
    Fate::WithoutExpiry,
    Fate::Vanishes,
    Fate::Expires,
    Fate::ExpiresEarly,
    Fate::StolenFromInVain,
    Fate::WritesAfterRelease,
    Fate::RenewsAfterRelease,
    Fate::IsToldAtRenewal,
];

impl Fate {
    /// What a history cannot show for sure of it.
    pub fn leaves_open(self) -> &'static [LockFinding] {
        match self {
            Self::IsToldAtRenewal => &[LockFinding::LetGoEarly],
            _ => &[],
        }
    }

    /// What must be found of it.
    pub fn found(self) -> &'static [LockFinding] {
        use LockFinding::*;
        match self {
            Self::Clean
            | Self::Dies
            | Self::DiesAndIsStolenFrom
            | Self::WritesLate { taken: false }
            | Self::Expires
            | Self::StolenFromInVain => &[],
            Self::ExpiresEarly | Self::RenewsAfterRelease => &[GrantedTwice],
            Self::WritesAfterRelease => &[ForeignWrite],
            Self::IsToldAtRenewal => &[OwnerMismatch],
            Self::Outlives => &[LeaseOutlived, LongHold, OwnerMismatch],
            Self::DeletesTheNext => &[LeaseOutlived, ForeignRelease, LongHold, OwnerMismatch],
            Self::DeletesTheNextAndAThirdComes => {
                &[LeaseOutlived, ForeignRelease, HeldAfterForeignRelease, LongHold, OwnerMismatch]
            }
            Self::FailsOver => &[LostAtFailover, OwnerMismatch],
            Self::GivenTwice => &[GrantedTwice, OwnerMismatch],
            Self::StolenFrom => &[HeldAfterSteal, OwnerMismatch],
            Self::WritesLate { taken: true } => &[StaleWriteAccepted],
            Self::OldToken => &[TokenWentBack],
            Self::RenewsLate => &[LateRenewal, LongHold],
            Self::Long => &[LongHold],
            Self::StandsStill => &[PauseOverLeaseEnd, LongHold, OwnerMismatch],
            Self::WithoutExpiry => &[NoExpiry],
            Self::Vanishes => &[NoExpiry, HolderVanished],
        }
    }
}

/// A holder's fate, and how long it works, as a part of its lease in percent.
#[derive(Clone, Copy, Debug)]
pub struct Scene {
    pub fate: Fate,
    pub work_percent: i64,
    /// How long after what lets it happen something happens, in milliseconds.
    pub later_ms: i64,
}

pub fn scene(fates: &'static [Fate], later_ms: std::ops::Range<i64>) -> impl Strategy<Value = Scene> {
    (prop::sample::select(fates), 5_i64..70, later_ms).prop_map(|(fate, work_percent, later_ms)| Scene {
        fate,
        work_percent,
        later_ms,
    })
}

/// Events of one key, by true time; each node stamps them by its own clock.
pub struct Story {
    pub events: Vec<Event>,
    key: String,
    now_ms: i64,
    token: i64,
    /// How far each node's clock is ahead, in milliseconds.
    clocks: Vec<i64>,
}

impl Story {
    /// `begins` is in milliseconds.
    pub fn new(key: usize, clocks: &[i64], begins: i64) -> Self {
        let (key, clocks) = (format!("stock:H-{key}"), clocks.to_vec());
        Self { events: Vec::new(), key, now_ms: 1_800_000_000_000 + begins, token: 0, clocks }
    }

    /// Adds an event `after` milliseconds after the scene began; of the holder with this token.
    fn at(&mut self, after: i64, kind: EventKind, token: i64) -> &mut Event {
        let node = usize::try_from(token).unwrap() % self.clocks.len();
        let at = self.now_ms + after + self.clocks[node];
        self.events.push(Event {
            line: 0,
            key: self.key.clone(),
            kind,
            owner: Some(format!("{}-owner-{token}", self.key)),
            token: Some(token),
            lease: matches!(kind, EventKind::Acquire | EventKind::Renew | EventKind::Steal)
                .then(|| ms(LEASE_MS)),
            is_forever: false,
            at: Timestamp::from_micros(at * 1000),
            node: Some(format!("node-{node}").into()),
            done: true,
        });
        self.events.last_mut().unwrap()
    }

    /// Plays a scene, and waits `gap` milliseconds after it.
    pub fn play(&mut self, scene: Scene, gap: i64) {
        use EventKind::*;
        let (work, later) = (scene.work_percent * LEASE_MS / 100, scene.later_ms);
        let old = self.token;
        let (a, b, c) = (old + 1, old + 2, old + 3);
        self.token = c;
        let end = match scene.fate {
            Fate::Clean => {
                self.at(0, Acquire, a);
                self.at(work / 2, Acquire, b).done = false;
                self.at(work / 2, Write, a);
                self.at(work, Renew, a);
                self.at(2 * work, Release, a);
                2 * work
            }
            Fate::Dies => {
                self.at(0, Acquire, a);
                LEASE_MS
            }
            Fate::DiesAndIsStolenFrom => {
                self.at(0, Acquire, a);
                self.at(work, Steal, b);
                self.at(2 * work, Release, b);
                2 * work
            }
            Fate::Outlives | Fate::DeletesTheNext | Fate::DeletesTheNextAndAThirdComes => {
                let is_bare = scene.fate != Fate::Outlives;
                let has_third = scene.fate == Fate::DeletesTheNextAndAThirdComes;
                self.at(0, Acquire, a);
                let got = LEASE_MS + later;
                self.at(got, Acquire, b);
                self.at(got + later, Release, a).done = is_bare;
                if has_third {
                    self.at(got + 2 * later, Acquire, c);
                }
                self.at(got + 3 * later, Release, b).done = !is_bare;
                if has_third {
                    self.at(got + 4 * later, Release, c);
                }
                got + 4 * later
            }
            Fate::FailsOver | Fate::GivenTwice => {
                self.at(0, Acquire, a);
                if scene.fate == Fate::FailsOver {
                    let failover = self.at(later / 2, Failover, a);
                    (failover.owner, failover.token) = (None, None);
                }
                self.at(later, Acquire, b);
                self.at(2 * later, Release, a).done = false;
                self.at(3 * later, Release, b);
                3 * later
            }
            Fate::StolenFrom => {
                self.at(0, Acquire, a);
                self.at(later, Steal, b);
                self.at(2 * later, Release, a).done = false;
                self.at(3 * later, Release, b);
                3 * later
            }
            Fate::WritesLate { taken } => {
                self.at(0, Acquire, a);
                self.at(work, Release, a);
                let next = work + later;
                self.at(next, Acquire, b);
                self.at(next + 1, Write, b);
                self.at(next + work, Release, b);
                self.at(next + work + later, Write, a).done = taken;
                next + work + later
            }
            Fate::OldToken => {
                self.at(0, Acquire, b);
                self.at(work, Release, b);
                self.at(work + later, Acquire, a);
                self.at(2 * work + later, Release, a);
                2 * work + later
            }
            Fate::RenewsLate => {
                self.at(0, Acquire, a);
                self.at(LEASE_MS + later, Renew, a);
                self.at(LEASE_MS + later + work, Release, a);
                LEASE_MS + later + work
            }
            Fate::Long => {
                let long = LEASE_MS * 71 / 100 + work / 5;
                self.at(0, Acquire, a);
                self.at(long, Release, a);
                long
            }
            Fate::StandsStill => {
                self.at(0, Acquire, a);
                let pause = self.at(work, Pause, a);
                pause.lease = Some(ms(LEASE_MS));
                self.at(LEASE_MS + work + 1, Release, a).done = false;
                LEASE_MS + work + 1
            }
            Fate::WithoutExpiry => {
                self.at(0, Acquire, a).lease = None;
                self.at(work, Release, a);
                work
            }
            Fate::Vanishes => {
                self.at(0, Acquire, a).lease = None;
                self.at(work, Acquire, b).done = false;
                work
            }
            Fate::Expires => {
                self.at(0, Acquire, a);
                let expire = self.at(LEASE_MS, Expire, a);
                (expire.owner, expire.token) = (None, None);
                LEASE_MS
            }
            Fate::ExpiresEarly => {
                self.at(0, Acquire, a);
                self.at(later, Expire, a);
                self.at(2 * later, Acquire, b);
                self.at(3 * later, Release, b);
                LEASE_MS
            }
            Fate::StolenFromInVain => {
                self.at(0, Acquire, a);
                self.at(work / 2, Steal, b).done = false;
                self.at(work, Release, a);
                work
            }
            Fate::WritesAfterRelease => {
                self.at(0, Acquire, a);
                self.at(work, Release, a);
                self.at(work + later, Acquire, b);
                self.at(work + 2 * later, Write, a);
                self.at(work + 3 * later, Release, b);
                work + 3 * later
            }
            Fate::RenewsAfterRelease => {
                self.at(0, Acquire, a);
                self.at(work, Release, a);
                self.at(work + later, Renew, a);
                self.at(work + 2 * later, Acquire, b);
                self.at(work + 3 * later, Release, b);
                work + later + LEASE_MS
            }
            Fate::IsToldAtRenewal => {
                self.at(0, Acquire, a);
                self.at(work, Renew, a).done = false;
                self.at(work + later, Acquire, b);
                self.at(2 * work + later, Release, b);
                2 * work + later
            }
        };
        self.now_ms += end + gap;
    }

    /// A last sign of life of the whole history, long after everything.
    pub fn ends(&mut self) {
        self.key = "the end".to_owned();
        let long = 3_600_000;
        self.at(long, EventKind::Acquire, 1);
        self.at(long + 1, EventKind::Release, 1);
    }
}

pub fn ms(ms: i64) -> Span {
    Span::from_micros(ms * 1000)
}

/// Sorts events by what their nodes stamped on them, as a log of several nodes is.
pub fn by_stamp(mut events: Vec<Event>) -> Vec<Event> {
    events.sort_by_key(|event| event.at);
    for (line, event) in (1..).zip(&mut events) {
        event.line = line;
    }
    events
}

pub fn judged(events: &[Event], rules: Rules, window: Span) -> (Vec<Found>, Audited) {
    let (mut found, mut audit, mut in_order) = (Vec::new(), Audit::new(rules), InOrder::new(window));
    let mut out = |f: Found| found.push(f);
    for event in events {
        in_order.push(event.clone()).unwrap();
        while let Some(event) = in_order.ready() {
            audit.event(event, &mut out);
        }
    }
    while let Some(event) = in_order.rest() {
        audit.event(event, &mut out);
    }
    let audited = audit.end(&mut out);
    (found, audited)
}

/// The names of what is found with this certainty, sorted.
pub fn names(found: &[Found], certainty: Certainty) -> Vec<LockFinding> {
    let mut names: Vec<_> = found.iter().filter(|f| f.certainty == certainty).map(|f| f.finding).collect();
    names.sort();
    names
}
