//! Independent work of a simulation, on all cores of the machine that simulates.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Does all of it on as many threads as there are cores, the last first: the longest are to come last. Results
/// in their order.
pub(crate) fn all_at_once<A: Sync, R: Send>(of: &[A], does: &(dyn Fn(&A) -> R + Sync)) -> Vec<R> {
    let left = AtomicUsize::new(of.len());
    let work = || {
        let mut done = Vec::new();
        while let Ok(at) =
            left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
        {
            done.push((at - 1, does(&of[at - 1])));
        }
        done
    };
    let threads = thread::available_parallelism().map_or(1, usize::from).min(of.len());
    let mut done: Vec<(usize, R)> = thread::scope(|scope| {
        let all: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let join = |one: thread::ScopedJoinHandle<'_, _>| {
            one.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        all.into_iter().flat_map(join).collect()
    });
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_have_the_order_of_what_was_asked() {
        let of: Vec<u32> = (0..100).collect();
        let twice: Vec<u32> = of.iter().map(|n| 2 * n).collect();
        assert_eq!(all_at_once(&of, &|n| 2 * n), twice);
        assert!(all_at_once(&[], &|n: &u32| *n).is_empty());
    }
}
