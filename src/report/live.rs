//! What a command prints while it runs, passed on as it comes.

use std::io::{self, Write};

use crate::core::output::Stream;

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
