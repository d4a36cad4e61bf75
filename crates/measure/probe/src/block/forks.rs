//! Work on several cores at the same time, each thread with a fork of the target.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::target::Target;

/// How often the thread that waits looks whether it should stop the others.
const LOOK: Duration = Duration::from_millis(2);

/// What a thread does with its fork: its number, the fork, and a sign that is false once all should stop.
pub(super) type Work<'w, T> = dyn Fn(usize, &mut dyn Target, &AtomicBool) -> T + Sync + 'w;

/// What all threads did.
#[derive(Debug)]
pub(super) struct Together<T> {
    /// Of each thread, by its number.
    pub(super) done: Vec<T>,
    /// When the first of them was about to begin, on the target's clock.
    pub(super) begin: f64,
}

/// Does `work` on so many threads; `None` where the target cannot be sampled by several.
pub(super) fn on_forks<T: Send>(
    target: &dyn Target,
    threads: usize,
    keep_going: &dyn Fn() -> bool,
    work: &Work<'_, T>,
) -> Option<Together<T>> {
    let mut forks = (0..threads).map(|_| target.fork()).collect::<Option<Vec<_>>>()?;
    let begin = forks.first_mut()?.seconds();
    let going = AtomicBool::new(true);
    let done = std::thread::scope(|scope| {
        let going = &going;
        let threads: Vec<_> = forks
            .iter_mut()
            .enumerate()
            .map(|(number, fork)| scope.spawn(move || work(number, fork.as_mut(), going)))
            .collect();
        while !threads.iter().all(|thread| thread.is_finished()) {
            if !keep_going() {
                going.store(false, Ordering::Relaxed);
            }
            std::thread::sleep(LOOK);
        }
        threads.into_iter().map(|t| t.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    });
    Some(Together { done, begin })
}
