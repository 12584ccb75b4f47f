//! Carries decisions out by the step protocol: claim, act, record. Whatever is killed at whatever
//! moment, an effect happens once, and what is not known is asked about, never tried again under
//! another key.

pub mod apply;
mod begun;
pub mod child;
pub mod command;
pub mod converge;
pub mod drill;
pub mod gc;
mod many;
mod money;
mod moves;
pub mod once;
pub mod pace;
pub mod settle;
mod way;

use std::ops::ControlFlow;

use crate::core::approval::ApprovalRule;
use crate::core::plan::{PlannedIntent, Step};
use crate::core::time::Timestamp;
use crate::providers::Providers;
use crate::store::Store;
use crate::store::steps::{StepRecord, Worker};

/// What carrying out needs: where, through whom, as whom, and what time it is.
#[derive(Clone, Copy)]
pub struct Executor<'a> {
    pub store: &'a Store,
    pub providers: &'a Providers<'a>,
    pub worker: &'a Worker,
    /// Commands of the site that stand in for SQL.
    pub commands: &'a command::Commands,
    /// Whose word a plan needs before it is begun.
    pub approval: &'a ApprovalRule,
    pub clock: fn() -> Timestamp,
}

/// A moment of the protocol, told to whoever watches. Breaking off at one is as if the process had
/// been killed there: nothing after it happens, nothing is cleaned up.
#[derive(Clone, Copy, Debug)]
pub enum Moment<'a> {
    Intent(&'a PlannedIntent),
    /// A claim was committed, and nothing has been done under it yet.
    Claimed(&'a Step),
    /// The provider has answered, and nothing of it is recorded yet.
    Answered(&'a Step),
    /// A ledger has committed a move that the journal, in another database, does not know yet.
    Moved(&'a Step),
    /// A step is recorded as ended.
    Ended(&'a StepRecord),
    /// A request is recorded as taken and not finished, or as not known.
    Open(&'a StepRecord),
}

/// Watches the protocol: for progress, and for tests that break it off.
pub type Watch<'w> = dyn FnMut(Moment<'_>) -> ControlFlow<()> + 'w;

/// A watcher that several workers share.
type Tell<'w> = dyn Fn(Moment<'_>) -> ControlFlow<()> + 'w;

/// How an intent's steps ended, in this run.
#[must_use]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IntentEnd {
    Done,
    /// Its rows are not as the plan saw them: plan again.
    Conflict(Vec<String>),
    /// The provider has taken a request and not finished it.
    Accepted(String),
    /// A request may have left, and no answer arrived.
    Unknown(String),
    /// The provider refused for good: a person decides.
    Refused(String),
    /// A request did not leave.
    NotSent(String),
    /// Another process is at it.
    Busy(String),
    /// The watcher broke it off.
    BrokenOff,
}
