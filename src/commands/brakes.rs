//! How a run of apply is paused and stopped from outside: by files, and by Ctrl-C.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;

use crate::error::Exit;
use crate::execute::pace::Gate;
use crate::report::print_note;

#[derive(Args, Clone, Debug, Default)]
pub struct BrakeFlags {
    /// Wait as long as this file is there, holding the freeze
    #[arg(long, value_name = "FILE")]
    pause_file: Option<PathBuf>,
    /// Stop before the next step once this file is there
    #[arg(long, value_name = "FILE")]
    stop_file: Option<PathBuf>,
}

pub struct Brakes {
    flags: BrakeFlags,
    interrupted: Arc<AtomicBool>,
}

impl Brakes {
    /// Watches the files, and Ctrl-C from now on: the first lets the steps under way end, the second
    /// leaves at once. Both leave a plan that can be taken up again.
    pub fn new(flags: BrakeFlags) -> Self {
        let interrupted = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&interrupted);
        tokio::spawn(async move {
            while tokio::signal::ctrl_c().await.is_ok() {
                if seen.swap(true, Ordering::SeqCst) {
                    // As safe as being killed: whatever is half done is healed by the next apply.
                    std::process::exit(i32::from(Exit::Failure.code()));
                }
                print_note("stopping once the steps under way have ended; Ctrl-C again leaves at once");
            }
        });
        Self { flags, interrupted }
    }

    pub fn gate(&self) -> Gate {
        let there = |file: &Option<PathBuf>| file.as_ref().is_some_and(|path| path.exists());
        if self.interrupted.load(Ordering::SeqCst) || there(&self.flags.stop_file) {
            Gate::Stop
        } else if there(&self.flags.pause_file) {
            Gate::Wait
        } else {
            Gate::Open
        }
    }

    /// Why a run was stopped, where it was these.
    pub fn why(&self) -> Option<String> {
        if self.interrupted.load(Ordering::SeqCst) {
            return Some("It was interrupted.".to_owned());
        }
        let file = self.flags.stop_file.as_ref().filter(|path| path.exists())?;
        Some(format!("It was stopped by {}; remove the file to go on.", file.display()))
    }
}
