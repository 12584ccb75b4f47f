//! Signals that ask a command to end, heard by one that first has to put something right.

use rustix::process::Signal;
use tokio::signal::unix::{Signal as Heard, SignalKind, signal};

use crate::error::{Error, Result};

/// Those that a terminal, a supervisor or a lost connection sends.
pub(crate) struct Signals([(Heard, Signal); 3]);

impl Signals {
    /// # Errors
    /// Failure, where the system does not let it listen.
    pub fn listen() -> Result<Self> {
        let listen =
            |kind| signal(kind).map_err(|e| Error::failure(format!("signals cannot be listened for: {e}")));
        Ok(Self([
            (listen(SignalKind::interrupt())?, Signal::INT),
            (listen(SignalKind::terminate())?, Signal::TERM),
            (listen(SignalKind::hangup())?, Signal::HUP),
        ]))
    }

    /// The next one.
    pub async fn next(&mut self) -> Signal {
        let [(interrupt, int), (terminate, term), (hangup, hup)] = &mut self.0;
        tokio::select! {
            _ = interrupt.recv() => *int,
            _ = terminate.recv() => *term,
            _ = hangup.recv() => *hup,
        }
    }
}
