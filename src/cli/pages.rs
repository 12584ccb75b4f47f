//! What is made of the command line's tree for shells and for `man`.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use clap::{Args, CommandFactory};
use clap_complete::{Shell, generate};
use clap_mangen::Man;
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
    let failed = |e: io::Error| Error::failure(format!("cannot write the manual page: {e}"));
    let Some(dir) = &args.dir else {
        let page = page(Cli::command()).map_err(failed)?;
        let json = json!({ "page": String::from_utf8_lossy(&page) });
        return Ok(Report::new(json).block(Block::Raw { stdout: page, stderr: Vec::new() }));
    };
    let mut tree = Cli::command().disable_help_subcommand(true);
    tree.build();
    let mut names = Vec::new();
    std::fs::create_dir_all(dir).and_then(|()| write_pages(tree, dir, &mut names)).map_err(|e| {
        failed(e).hint(format!("name a folder that you may write to instead of {}", dir.display()))
    })?;
    names.sort();
    let line = format!("{} pages are in {}.", names.len(), dir.display());
    Ok(Report::new(json!({ "dir": dir, "pages": names })).line(line).command("man onefold"))
}

fn write_pages(command: clap::Command, dir: &Path, names: &mut Vec<String>) -> io::Result<()> {
    for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()).cloned() {
        write_pages(verb, dir, names)?;
    }
    let name = Man::new(command.clone()).get_filename();
    std::fs::write(dir.join(&name), page(command)?)?;
    names.push(name);
    Ok(())
}

/// The page of one verb. What stands after its help keeps its lines: commands are typed as they stand there.
fn page(command: clap::Command) -> io::Result<Vec<u8>> {
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let (has_verbs, has_version) = (command.has_subcommands(), command.get_version().is_some());
    let man = Man::new(command);
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if has_verbs {
        man.render_subcommands_section(&mut page)?;
    }
    if !after.is_empty() {
        let (heading, text) = match after.strip_prefix("Examples:\n") {
            Some(text) => ("EXAMPLES", text),
            None => ("NOTES", after.as_str()),
        };
        writeln!(page, ".SH {heading}\n.nf")?;
        for line in text.lines() {
            writeln!(page, "\\&{}", line.replace('\\', "\\e").replace('-', "\\-"))?;
        }
        writeln!(page, ".fi")?;
    }
    if has_version {
        man.render_version_section(&mut page)?;
    }
    Ok(page)
}
