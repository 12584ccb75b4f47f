//! `onefold history export`: the journal as lines that anybody can check.

use std::io::{BufWriter, Write};
use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use crate::commands::files::{create_new, must_be_new};
use crate::commands::progress::Progress;
use crate::config::Config;
use crate::core::output::Stream;
use crate::error::{Error, Result};
use crate::report::{Report, pass_on};

/// Write the journal and its heads as JSON lines, with their hashes
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  onefold history export --output journal.jsonl
  onefold history export | sha256sum

Each line is an object: an entry, or a head (it has a member head). The README
says how to compute their hashes.")]
pub struct ExportArgs {
    /// A new file [default: stdout]
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub async fn run(config: &Config, args: ExportArgs) -> Result<Report> {
    let Some(path) = &args.output else {
        if config.format.is_json() {
            return Err(Error::usage("--json prints one object, and the journal is one a line")
                .hint("onefold history export --output FILE --json; or leave --json out"));
        }
        let store = config.open_to_read().await?;
        store
            .export_journal(|object| {
                pass_on(Stream::Stdout, format!("{object}\n").as_bytes());
                Ok(())
            })
            .await?;
        return Ok(Report::new(json!({})));
    };
    must_be_new(path)?;
    let store = config.open_to_read().await?;
    let progress = Progress::new(config, "writing the journal");
    let failed = |e: std::io::Error| {
        Error::failure(format!("cannot write {}: {e}", path.display())).hint("name another file")
    };
    let mut file = BufWriter::new(create_new(path)?);
    let (entries, heads) = store.export_journal(|object| writeln!(file, "{object}").map_err(failed)).await?;
    file.flush().and_then(|()| file.get_ref().sync_all()).map_err(failed)?;
    progress.end();
    Ok(Report::new(json!({ "output": path, "entries": entries, "heads": heads }))
        .line(format!("{entries} entries and {heads} heads in {}", path.display())))
}
