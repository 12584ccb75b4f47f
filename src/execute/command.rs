//! Commands of the site: instead of SQL for rows that live in no database, and after apply.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::core::ids::Version;
use crate::core::ledger::Shard;
use crate::core::status::Ledger;
use crate::error::{Error, Result};
use crate::program;
use crate::store::moves::{Move, Moved, RowState};

/// Each a program and its arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Commands {
    /// For the moves of a ledger whose rows live in no database, such as messages in a broker.
    pub moves: BTreeMap<Ledger, Vec<String>>,
    /// After each apply that did something.
    pub after_apply: Option<Vec<String>>,
}

/// How long a command may take.
const LIMIT: Duration = Duration::from_secs(30);

/// What a command answers about a move.
#[derive(Deserialize)]
struct Answer {
    moved: bool,
    /// Where the row is, where it was not moved; absent when it is gone.
    status: Option<String>,
    version: Option<String>,
}

/// Moves a row by a command: `{"ledger", "tenant_id", "id", "from", "to", "version", "step_key",
/// "actor"}` goes in, `{"moved": true, "version": "…"}` or `{"moved": false, "status": "…"}` comes out.
/// The command must be a compare-and-set itself, and the same move asked for twice is made once.
///
/// # Errors
/// Failure, where it cannot be run, does not end in time, ends with another code than 0, or
/// answers with anything else: whether the row moved is then learned by reading it again.
pub async fn move_row(command: &[String], shard: Shard, asked: &Move<'_>) -> Result<Moved> {
    let input = json!({
        "ledger": asked.ledger, "tenant_id": asked.tenant_id, "id": asked.id, "from": asked.from, "to": asked.to,
        "version": asked.version, "step_key": asked.step_key, "actor": asked.actor,
    });
    let output = run(command, &input).await?;
    let answer: Answer = serde_json::from_slice(&output)
        .map_err(|e| Error::failure(format!("{}: its answer is not as it must be: {e}", name(command))))?;
    let state = |status: String| RowState {
        status,
        version: answer.version.map_or_else(|| asked.version.clone(), Version::from),
        refunded_minor: None,
        shard,
    };
    Ok(match (answer.moved, answer.status) {
        (true, _) => Moved::Now(state(asked.to.to_owned())),
        (false, status) => Moved::NotAsSeen(status.map(state)),
    })
}

/// Runs a command with a JSON object on its stdin; what it prints to stdout.
///
/// # Errors
/// Failure, with the last line that it printed to stderr.
pub async fn run(command: &[String], input: &Value) -> Result<Vec<u8>> {
    Ok(program::run(command, input, LIMIT).await?)
}

fn name(command: &[String]) -> &str {
    command.first().map_or("", String::as_str)
}
