//! Pieces of work on all processors.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

/// Does pieces of work on all processors, and hands on what they give in their order; stops where that gives
/// nothing.
pub(super) fn in_turn<T: Send>(
    pieces: usize,
    work: impl Fn(usize) -> T + Sync,
    mut take: impl FnMut(T) -> Option<()>,
) -> Option<()> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(pieces).max(1);
    let next = AtomicUsize::new(0);
    let (sender, done) = mpsc::sync_channel(threads);
    thread::scope(|scope| {
        for _ in 0..threads {
            let sender = sender.clone();
            let (next, work) = (&next, &work);
            scope.spawn(move || {
                loop {
                    let piece = next.fetch_add(1, Ordering::Relaxed);
                    // Nobody is left to tell only where no more is wanted.
                    if piece >= pieces || sender.send((piece, work(piece))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let mut early = BTreeMap::new();
        let mut wanted = 0;
        for (piece, result) in done {
            early.insert(piece, result);
            while let Some(result) = early.remove(&wanted) {
                take(result)?;
                wanted += 1;
            }
        }
        (wanted == pieces).then_some(())
    })
}
