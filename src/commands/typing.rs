//! Command lines that a verb types itself, as an operator would, for the demo and for playbooks; and the one that was
//! typed, to be proposed again with something else in it.

use serde_json::{Value, json};

use crate::config::Config;
use crate::core::words::quoted;
use crate::error::Result;
use crate::report::{Block, Report};
use crate::store::without_password;

/// A command line as it is typed.
pub fn typed(words: &[impl AsRef<str>]) -> String {
    let words = words.iter().map(|word| quoted(word.as_ref()));
    std::iter::once("onefold".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

/// Flags that say how a report leaves, and whether a value follows.
const LEAVING: [(&str, bool); 6] = [
    ("--format", true),
    ("--output", true),
    ("--sheet", true),
    ("--json", false),
    ("--bom", false),
    ("--force", false),
];

/// The command line that is being carried out with all that was typed, but for how its report leaves, for whoever
/// proposes another way: `rest` is added as it is. `without` are further flags with a value that are left out.
/// Passwords in URLs are masked.
pub fn again(config: &Config, without: &[&str], rest: &str) -> String {
    let mut kept = Vec::new();
    let mut words = config.line.iter();
    while let Some(word) = words.next() {
        let (flag, value) =
            word.split_once('=').map_or((word.as_str(), None), |(flag, value)| (flag, Some(value)));
        let has_value = match LEAVING.iter().find(|(name, _)| *name == flag) {
            Some((_, has_value)) => Some(*has_value),
            None => without.contains(&flag).then_some(true),
        };
        match has_value {
            Some(true) if value.is_none() => drop(words.next()),
            Some(_) => {}
            None => kept.push(without_password(word)),
        }
    }
    let line = typed(&kept);
    if rest.is_empty() { line } else { format!("{line} {rest}") }
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
    let json = json!({ "command": words, "exit": report.exit.code(), "report": report.whole() });
    Ok((report, blocks, json))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Flags;

    #[test]
    fn what_was_typed_is_proposed_again_but_for_how_it_leaves_and_for_passwords() {
        let line = [
            "trace",
            "--order",
            "O-1",
            "--format=csv",
            "--access",
            "my log.csv",
            "--sheet",
            "arrivals",
            "--json",
            "--database",
            "postgres://ada:s3cret@db/shop",
            "--output",
            "here",
            "--bom",
            "--force",
        ];
        let line = line.map(str::to_owned).to_vec();
        let config = Config { line, ..Config::without_file(Flags::default()) };
        assert_eq!(
            again(&config, &[], "--format xlsx --output trace.xlsx"),
            "onefold trace --order O-1 --access 'my log.csv' --database 'postgres://ada:***@db/shop' --format xlsx \
             --output trace.xlsx"
        );
        assert!(again(&config, &["--order"], "").starts_with("onefold trace --access "));
    }
}
