//! `onefold guard`: keep a second row from being written at all, and prove it.

mod drill;
mod gc;
mod install;
pub(super) mod keys;
mod remove;
mod retention;
mod snippets;
mod status;
mod url;

use clap::{Args, Subcommand, ValueEnum};

use crate::config::Config;
use crate::error::{Error, Result};
use crate::report::Report;
use crate::store::unique::Unique;

/// One result for one intent: tables and unique indexes for it, a drill, SQL for services, and how long keys are kept
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  onefold guard status
  onefold guard install
  onefold guard install --ledger payments --print
  onefold guard remove --ledger payments
  onefold guard drill --requests 50 --rounds 100
  onefold guard snippets --for java
  onefold guard retention
  onefold guard gc --dry-run")]
pub struct GuardArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Install(install::InstallArgs),
    Status(status::StatusArgs),
    Remove(remove::RemoveArgs),
    Drill(Box<drill::DrillArgs>),
    Snippets(snippets::SnippetArgs),
    Retention(retention::RetentionArgs),
    Gc(gc::GcArgs),
}

#[derive(Debug, Args)]
struct Which {
    /// The ledger
    #[arg(long, default_value = "orders")]
    ledger: OfLedger,
    /// One live order of a buyer for a show, whatever its key
    #[arg(long)]
    one_per_show: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OfLedger {
    Orders,
    Payments,
    Messages,
}

impl Which {
    /// What is to be there once, and the table that goes before it.
    fn uniques(&self) -> Result<&'static [Unique]> {
        match (self.ledger, self.one_per_show) {
            (OfLedger::Orders, false) => Ok(&[Unique::Record, Unique::LiveKey]),
            (OfLedger::Orders, true) => Ok(&[Unique::LiveShow]),
            (OfLedger::Payments, false) => Ok(&[Unique::Charge]),
            (OfLedger::Messages, false) => Ok(&[Unique::Inbox]),
            (_, true) => Err(Error::usage("--one-per-show is about orders").hint("leave --ledger out")),
        }
    }
}

pub async fn run(config: &Config, args: GuardArgs) -> Result<Report> {
    match args.verb {
        Verb::Install(args) => install::run(config, args).await,
        Verb::Status(args) => status::run(config, args).await,
        Verb::Remove(args) => remove::run(config, args).await,
        Verb::Drill(args) => drill::run(config, *args).await,
        Verb::Snippets(args) => snippets::run(config, args),
        Verb::Retention(args) => retention::run(config, args).await,
        Verb::Gc(args) => gc::run(config, args).await,
    }
}
