//! `onefold config`: what the configuration comes to, and a file to begin with.

mod init;
mod show;

use clap::{Args, Subcommand};

use crate::config::Config;
use crate::error::Result;
use crate::report::Report;

/// Show every setting and where it comes from, or write a file to begin with
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  onefold config show
  onefold config init
  onefold config init /etc/onefold.toml")]
pub struct ConfigArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Show(show::ShowArgs),
    Init(init::InitArgs),
}

impl ConfigArgs {
    /// Whether no configuration is read for it: it writes the first one.
    pub const fn is_without(&self) -> bool {
        matches!(self.verb, Verb::Init(_))
    }
}

pub async fn run(config: &Config, args: ConfigArgs) -> Result<Report> {
    match args.verb {
        Verb::Show(args) => show::run(config, args).await,
        Verb::Init(args) => init::run(args),
    }
}
