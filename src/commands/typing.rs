//! Command lines that a verb types itself, as an operator would: for the demo and for playbooks.

use serde_json::{Value, json};

use crate::core::words::quoted;
use crate::error::Result;
use crate::report::{Block, Report};

/// A command line as it is typed.
pub fn typed(words: &[impl AsRef<str>]) -> String {
    let words = words.iter().map(|word| quoted(word.as_ref()));
    std::iter::once("onefold".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

/// Runs a command line, given without the program's name; what it printed, with the line before and the
/// code after it, and the same for programs.
pub async fn run_typed(
    title: &str,
    words: &[impl AsRef<str>],
    before: &[String],
    run_line: impl AsyncFn(Vec<String>) -> Result<Report>,
) -> Result<(Report, Vec<Block>, Value)> {
    let mut blocks = vec![Block::Title(title.to_owned()), Block::Command(typed(words))];
    let line = before.iter().cloned().chain(words.iter().map(|word| word.as_ref().to_owned()));
    let report = run_line(line.collect()).await?;
    blocks.extend(report.blocks.iter().cloned());
    blocks.push(Block::Line(format!("(exit code {})", report.exit.code())));
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    let json = json!({ "command": words, "exit": report.exit.code(), "report": report.json });
    Ok((report, blocks, json))
}
