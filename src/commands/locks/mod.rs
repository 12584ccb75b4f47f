//! `onefold locks`: what a lock let through, and whether the code that releases it is safe.

mod audit;
mod check_script;
mod sheets;
mod spool;
mod tell;

use clap::{Args, Subcommand};

use crate::config::Config;
use crate::error::Result;
use crate::report::Report;

/// Find out from a lock history where two held one key, and try how your code releases a lock
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  onefold locks audit locks.csv --skew 50ms
  onefold locks audit locks.csv --files exports/
  onefold locks audit locks.csv --rules locks.yml
  onefold locks check-script --release unlock.lua --renew extend.lua")]
pub struct LocksArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Audit(Box<audit::AuditArgs>),
    CheckScript(check_script::CheckScriptArgs),
}

pub async fn run(config: &Config, args: LocksArgs) -> Result<Report> {
    match args.verb {
        Verb::Audit(args) => audit::run(config, *args).await,
        Verb::CheckScript(args) => check_script::run(config, args).await,
    }
}
