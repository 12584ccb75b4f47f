//! Runs a program of the site: one JSON object on its stdin, what it prints on stdout; no shell is
//! between.

use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::error::Error;

/// Why a program gave no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It was never started: nothing can have happened.
    NotStarted(String),
    /// It was started, and did not end in time: what it did is not known.
    Late(String),
    /// It was started, and did not end well: what it did is not known.
    Broke(String),
}

impl Failure {
    pub fn why(self) -> String {
        let (Self::NotStarted(why) | Self::Late(why) | Self::Broke(why)) = self;
        why
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        Self::failure(failure.why())
    }
}

/// Runs a program and its arguments with a JSON object on its stdin; what it prints to stdout. One
/// that does not end within `limit` is killed.
///
/// # Errors
/// A [`Failure`], with the last line that it printed to stderr.
pub async fn run(command: &[String], input: &Value, limit: Duration) -> Result<Vec<u8>, Failure> {
    let Some((program, arguments)) = command.split_first() else {
        return Err(Failure::NotStarted("a command has no program".to_owned()));
    };
    let broke = |what: String| Failure::Broke(format!("{program}: {what}"));
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|e| Failure::NotStarted(format!("{program}: cannot be run: {e}")))?;
    let text = input.to_string();
    let stdin = child.stdin.take();
    let ran = tokio::time::timeout(limit, async {
        if let Some(mut stdin) = stdin {
            // A command that does not read its input is no failure.
            let _ = stdin.write_all(text.as_bytes()).await;
        }
        child.wait_with_output().await
    });
    let output = ran
        .await
        .map_err(|_| Failure::Late(format!("{program}: did not end within {} s", limit.as_secs_f64())))?
        .map_err(|e| broke(e.to_string()))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    let last = errors.lines().rfind(|line| !line.trim().is_empty()).map(|line| format!(": {line}"));
    Err(broke(format!("ended with {}{}", output.status, last.unwrap_or_default())))
}
