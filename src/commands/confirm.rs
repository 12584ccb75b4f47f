//! Asks before something that cannot be taken back.

use std::io::{IsTerminal, Write};

use crate::error::{Error, Result};

/// Asks on a terminal; refuses elsewhere, and tells what to type there.
///
/// # Errors
/// Refused, where nobody can be asked or the answer is not yes.
pub fn confirm(question: &str, verb: &str, to_type: &str) -> Result<()> {
    let refused = |why: &str| Error::refused(why.to_owned()).hint(to_type.to_owned());
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Err(refused(&format!("{verb}, and there is no terminal to ask on")));
    }
    eprint!("{question} [y/N] ");
    let failed = |e: std::io::Error| Error::failure(format!("cannot ask: {e}"));
    std::io::stderr().flush().map_err(failed)?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).map_err(failed)?;
    if matches!(answer.trim().to_lowercase().as_str(), "y" | "yes") {
        Ok(())
    } else {
        Err(refused("not confirmed; nothing was changed"))
    }
}
