//! `onefold queries`: our SQL files, as a start for your own.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::json;

use super::count;
use super::files::write_new;
use crate::config::Config;
use crate::error::{Error, Result};
use crate::report::Report;
use crate::store::Queries;

/// Write onefold's SQL files out, as a start for your own
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  onefold queries export ops/queries

Change what you need and remove the rest: a file that is not there is ours.
Then, in onefold.toml:
  queries = \"ops/queries\"
and prove it before the night it is needed:
  onefold check")]
pub struct QueriesArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Write ledgers/*.sql, moves/*.sql, enforce/ and unique/ into a folder; nothing is written over
    #[command(after_help = "Examples:\n  onefold queries export ops/queries")]
    Export {
        /// The folder
        dir: PathBuf,
    },
}

pub async fn run(_: &Config, args: QueriesArgs) -> Result<Report> {
    let What::Export { dir } = args.what;
    let ours = Queries::default();
    let names: Vec<_> = Queries::names().filter(|name| Queries::may_be_shadowed(name)).collect();
    let there: Vec<_> =
        names.iter().map(|name| dir.join(format!("{name}.sql"))).filter(|path| path.exists()).collect();
    if let Some(path) = there.first() {
        return Err(Error::usage(format!("{} is there already", path.display()))
            .hint("name another folder; nothing is written over"));
    }
    for name in &names {
        let path = dir.join(format!("{name}.sql"));
        let folder = path.parent().unwrap_or(&dir);
        std::fs::create_dir_all(folder)
            .map_err(|e| Error::failure(format!("cannot make the folder {}: {e}", folder.display())))?;
        write_new(&path, ours.find(name).unwrap_or_default())?;
    }
    Ok(Report::new(json!({ "dir": dir, "files": names })).line(format!(
        "{} in {}",
        count(names.len(), "file"),
        dir.display()
    )))
}
