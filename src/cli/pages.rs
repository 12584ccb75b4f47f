//! What is made of the command line's tree for shells and for `man`.

use std::path::PathBuf;

use clap::{Args, CommandFactory};
use clap_complete::{Shell, generate};
use serde_json::json;

use super::Cli;
use crate::error::{Error, Result};
use crate::report::{Block, Report};

/// Print completions for a shell
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  onefold completions bash > /etc/bash_completion.d/onefold
  onefold completions zsh > ~/.zfunc/_onefold
  onefold completions fish > ~/.config/fish/completions/onefold.fish")]
pub struct CompletionsArgs {
    shell: Shell,
}

/// Print the manual page, or write one a verb into a folder
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  onefold man | man -l -
  onefold man --dir /usr/local/share/man/man1")]
pub struct ManArgs {
    /// Write onefold.1 and a page for each verb here
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub fn completions(args: &CompletionsArgs) -> Report {
    let mut script = Vec::new();
    generate(args.shell, &mut Cli::command(), "onefold", &mut script);
    let text = String::from_utf8_lossy(&script).into_owned();
    let json = json!({ "shell": args.shell.to_string(), "script": text });
    Report::new(json).block(Block::Raw { stdout: script, stderr: Vec::new() })
}

/// # Errors
/// Failure, where a page cannot be written.
pub fn man(args: &ManArgs) -> Result<Report> {
    let failed = |e: std::io::Error| Error::failure(format!("cannot write the manual page: {e}"));
    let Some(dir) = &args.dir else {
        let mut page = Vec::new();
        clap_mangen::Man::new(Cli::command()).render(&mut page).map_err(failed)?;
        let json = json!({ "page": String::from_utf8_lossy(&page) });
        return Ok(Report::new(json).block(Block::Raw { stdout: page, stderr: Vec::new() }));
    };
    std::fs::create_dir_all(dir).map_err(failed)?;
    clap_mangen::generate_to(Cli::command(), dir).map_err(|e| {
        failed(e).hint(format!("name a folder that you may write to instead of {}", dir.display()))
    })?;
    let mut names = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name().to_string_lossy().into_owned();
        if name.starts_with("onefold") {
            names.push(name);
        }
    }
    names.sort();
    let line = format!("{} pages are in {}.", names.len(), dir.display());
    Ok(Report::new(json!({ "dir": dir, "pages": names })).line(line).command("man onefold"))
}
