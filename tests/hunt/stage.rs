//! Who goes on next. Workers are threads of which exactly one runs at a time: at every moment of the
//! protocol and at every word with the provider each waits for its turn, which the director gives by
//! the seed. So an interleaving is the same every time, and time itself passes only as the director says.

use std::cell::RefCell;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use onefold::core::time::{Span, Timestamp};

use crate::common::book::at;

/// How many workers a stage has at most.
pub const WORKERS: usize = 4;

/// Where a worker waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum At {
    /// With a request on its way: the network loses it long before a provider forgets its key.
    Wire,
    Elsewhere,
    /// It has nothing more to do.
    End,
}

#[derive(Default)]
struct Inner {
    turn: Option<usize>,
    kill: bool,
    /// Nobody gives turns any more: all are killed.
    abandoned: bool,
    at: Vec<At>,
    trace: Vec<String>,
}

pub struct Stage {
    inner: Mutex<Inner>,
    changed: Condvar,
    now: AtomicI64,
    /// How far each worker's clock is off, in microseconds.
    skews: [i64; WORKERS],
}

thread_local! {
    static ME: RefCell<Option<(Arc<Stage>, Option<usize>)>> = const { RefCell::new(None) };
}

/// What a worker is unwound with that is killed inside a call.
pub struct Killed;

/// The time as whoever runs on this thread has it. It goes on a little each time it is asked for.
pub fn clock() -> Timestamp {
    ME.with_borrow(|me| {
        let (stage, who) = me.as_ref().expect("on a stage");
        let now = stage.now.fetch_add(100, Ordering::Relaxed);
        Timestamp::from_micros(now + who.map_or(0, |i| stage.skews[i]))
    })
}

/// Waits for the next turn; whether the process is killed here instead. Not on a stage there is no waiting.
pub fn pause(wire: bool, what: impl FnOnce() -> String) -> bool {
    let me = ME.with_borrow(|me| me.as_ref().and_then(|(stage, who)| Some((Arc::clone(stage), (*who)?))));
    me.is_some_and(|(stage, who)| stage.wait_for_turn(who, wire, what))
}

/// As [`pause`], where a process that is killed cannot say so.
pub fn pause_or_die(wire: bool, what: impl FnOnce() -> String) {
    if pause(wire, what) {
        std::panic::resume_unwind(Box::new(Killed));
    }
}

/// Writes a line of the story of a run.
pub fn tell(what: impl FnOnce() -> String) {
    ME.with_borrow(|me| {
        if let Some((stage, who)) = me {
            stage.note(*who, what());
        }
    });
}

impl Stage {
    pub fn new(workers: usize, skews: [i64; WORKERS]) -> Self {
        let inner = Inner { at: vec![At::Elsewhere; workers], ..Inner::default() };
        Self {
            inner: Mutex::new(inner),
            changed: Condvar::new(),
            now: AtomicI64::new(at(3600).micros()),
            skews,
        }
    }

    /// From now on whoever runs on this thread is this worker; none is the director.
    pub fn enter(self: &Arc<Self>, who: Option<usize>) {
        ME.set(Some((Arc::clone(self), who)));
    }

    pub fn turn_clock(&self, by: Span) {
        self.now.fetch_add(by.micros(), Ordering::Relaxed);
    }

    fn note(&self, who: Option<usize>, what: String) {
        let mut inner = self.inner.lock().unwrap();
        let who = who
            .map_or("      ".to_owned(), |i| format!("  {}   ", char::from(b'A' + u8::try_from(i).unwrap())));
        inner.trace.push(format!("{who}{what}"));
    }

    pub fn trace(&self) -> String {
        self.inner.lock().unwrap().trace.join("\n")
    }

    fn wait_for_turn(&self, who: usize, wire: bool, what: impl FnOnce() -> String) -> bool {
        self.note(Some(who), what());
        let mut inner = self.inner.lock().unwrap();
        inner.at[who] = if wire { At::Wire } else { At::Elsewhere };
        if inner.turn == Some(who) {
            inner.turn = None;
            self.changed.notify_all();
        }
        while inner.turn != Some(who) && !inner.abandoned {
            inner = self.changed.wait(inner).unwrap();
        }
        std::mem::take(&mut inner.kill) || inner.abandoned
    }

    /// A worker waits for its first turn.
    pub fn first_turn(&self, who: usize) {
        let mut inner = self.inner.lock().unwrap();
        while inner.turn != Some(who) && !inner.abandoned {
            inner = self.changed.wait(inner).unwrap();
        }
    }

    /// The director is gone: whoever still runs is killed at its next pause.
    pub fn abandon(&self) {
        self.inner.lock().unwrap().abandoned = true;
        self.changed.notify_all();
    }

    /// A worker has nothing more to do.
    pub fn end(&self, who: usize) {
        let mut inner = self.inner.lock().unwrap();
        inner.at[who] = At::End;
        inner.turn = None;
        self.changed.notify_all();
    }

    /// Lets a worker run to its next pause, or kills it where it waits; where everybody is then.
    pub fn give(&self, who: usize, kill: bool) -> Vec<At> {
        let mut inner = self.inner.lock().unwrap();
        if kill {
            let who = char::from(b'A' + u8::try_from(who).unwrap());
            inner.trace.push(format!("{who} is killed here"));
        }
        (inner.turn, inner.kill) = (Some(who), kill);
        self.changed.notify_all();
        while inner.turn.is_some() {
            inner = self.changed.wait(inner).unwrap();
        }
        inner.at.clone()
    }

    pub fn places(&self) -> Vec<At> {
        self.inner.lock().unwrap().at.clone()
    }
}
