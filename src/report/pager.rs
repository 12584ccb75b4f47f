//! What is longer than a screen goes through a pager, on a terminal: `$PAGER`, else `less -FRX`.

use std::io::{self, Write};
use std::process::{Command, Stdio};

use super::{Block, Report, Style, write_blocks};

/// Ends by itself where all of it fits, lets colours through, and leaves what was read on the screen.
const DEFAULT: &str = "less -FRX";

/// Whether a pager has shown the report. Where it need not, or cannot be run, nothing is printed.
pub(super) fn shows(report: &Report, style: Style) -> io::Result<bool> {
    let Some(screen) = style.screen.filter(|_| !style.format.is_json()) else { return Ok(false) };
    // What a command printed is given again as it came.
    if report.blocks.iter().any(|block| matches!(block, Block::Raw { .. })) {
        return Ok(false);
    }
    let mut text = Vec::new();
    write_blocks(&mut text, &report.blocks, style)?;
    if text.iter().filter(|b| **b == b'\n').count() < screen {
        return Ok(false);
    }
    let pager = std::env::var("PAGER").unwrap_or_else(|_| DEFAULT.to_owned());
    Ok(page(&pager, &text))
}

/// Runs a pager, a program and its arguments, on a text. One that is not wanted, or not there, shows nothing.
fn page(pager: &str, text: &[u8]) -> bool {
    let mut words = pager.split_whitespace();
    let Some(program) = words.next().filter(|program| *program != "cat") else { return false };
    let Ok(mut child) = Command::new(program).args(words).stdin(Stdio::piped()).spawn() else { return false };
    if let Some(mut stdin) = child.stdin.take() {
        // Who has read enough closes it.
        let _ = stdin.write_all(text);
    }
    let _ = child.wait();
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Format;

    #[test]
    fn a_pager_that_is_not_there_shows_nothing() {
        assert!(!page("no-such-pager-anywhere -x", b"text"));
        assert!(!page("", b"text"));
        assert!(!page("cat", b"text"));
        assert!(page("true", b"text"));
    }

    #[test]
    fn what_fits_a_screen_or_is_json_is_printed_as_it_is() {
        let report = (0..30).fold(Report::new(serde_json::json!({})), |r, i| r.line(format!("line {i}")));
        let style = Style { format: Format::Table, colour: false, width: 80, screen: None };
        assert!(!shows(&report, style).unwrap(), "no terminal");
        assert!(!shows(&report, Style { screen: Some(50), ..style }).unwrap());
        assert!(!shows(&report, Style { screen: Some(10), format: Format::Json, ..style }).unwrap());
        let raw = report.block(Block::Raw { stdout: Vec::new(), stderr: Vec::new() });
        assert!(!shows(&raw, Style { screen: Some(10), ..style }).unwrap());
    }
}
