//! Pieces of work on all processors.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::{panic, thread};

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

/// Does pieces of work on all processors, and gives what they give in their order; nothing where one gives nothing.
pub(super) fn side_by_side<T: Send>(
    pieces: usize,
    work: impl Fn(usize) -> Option<T> + Sync,
) -> Option<Vec<T>> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(pieces).max(1);
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut done = Vec::new();
        loop {
            let piece = next.fetch_add(1, Ordering::Relaxed);
            if piece >= pieces {
                return Some(done);
            }
            match work(piece) {
                Some(result) => done.push((piece, result)),
                None => {
                    next.store(pieces, Ordering::Relaxed);
                    return None;
                }
            }
        }
    };
    let mut all = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        let ended = workers.into_iter().map(|w| w.join().unwrap_or_else(|panic| panic::resume_unwind(panic)));
        ended.collect::<Vec<Option<Vec<(usize, T)>>>>()
    })
    .into_iter()
    .collect::<Option<Vec<_>>>()?
    .into_iter()
    .flatten()
    .collect::<Vec<_>>();
    all.sort_unstable_by_key(|(piece, _)| *piece);
    Some(all.into_iter().map(|(_, result)| result).collect())
}
