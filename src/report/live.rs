//! What a command prints while it runs, passed on as it comes.

use std::io::{self, Write};

use serde_json::Value;

use crate::core::output::Stream;

/// Prints an event as a line of its own, to stdout.
pub fn event(event: &Value) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{event}").and_then(|()| out.flush());
}

/// Passes a piece of a command's output on to the stream of the same name. A reader that has gone away is
/// no failure: the command goes on, and all that it prints is kept.
pub fn pass_on(stream: Stream, piece: &[u8]) {
    let _ = match stream {
        Stream::Stdout => {
            let mut out = io::stdout().lock();
            out.write_all(piece).and_then(|()| out.flush())
        }
        Stream::Stderr => io::stderr().lock().write_all(piece),
    };
}
