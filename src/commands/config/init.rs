//! `onefold config init`.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use crate::commands::files::{must_be_new, write_new};
use crate::error::Result;
use crate::report::Report;

/// A file in which everything is said, as a remark.
const TEMPLATE: &str = include_str!("template.toml");

/// Write a file in which every setting is explained and nothing is set; never over one that is there
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  onefold config init
  onefold config init /etc/onefold.toml

`onefold` reads onefold.toml in the folder it runs in, or the file that --config
or ONEFOLD_CONFIG names.")]
pub struct InitArgs {
    #[arg(value_name = "FILE", default_value = "onefold.toml")]
    file: PathBuf,
}

pub fn run(args: InitArgs) -> Result<Report> {
    must_be_new(&args.file)?;
    write_new(&args.file, TEMPLATE)?;
    let name = args.file.display().to_string();
    Ok(Report::new(json!({ "file": name }))
        .line(format!("{name} is written: every setting is a remark until you want it."))
        .command("onefold check"))
}
