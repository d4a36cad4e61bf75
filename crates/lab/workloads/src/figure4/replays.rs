//! Replays that were done already. What a replay counts follows from where nodes are placed, and that from the orders
//! in which cores take lines: not from what a hop, a directory or memory costs, nor from cycles of work. So chips that
//! agree on the orders share one replay, and each prices its counts for itself.

use core::hash::Hasher;
use std::collections::HashMap;
use std::hash::DefaultHasher;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

type Place<T> = Arc<Mutex<Option<Arc<[T]>>>>;

/// All that were done so far, by a hash of everything that they depend on.
#[derive(Debug)]
pub(super) struct Replays<T>(Mutex<HashMap<u64, Place<T>>>);

impl<T> Default for Replays<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Replays<T> {
    /// What each core did: done now, or known by what `depends` puts into the hash.
    pub(super) fn of<E>(
        &self,
        depends: impl FnOnce(&mut DefaultHasher),
        done: impl FnOnce() -> Result<Vec<T>, E>,
    ) -> Result<Arc<[T]>, E> {
        let mut key = DefaultHasher::new();
        depends(&mut key);
        let place = {
            let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(all.entry(key.finish()).or_default())
        };
        // Who asks for the same one meanwhile waits for it.
        let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &*place {
            return Ok(Arc::clone(known));
        }
        let done: Arc<[T]> = done()?.into();
        *place = Some(Arc::clone(&done));
        Ok(done)
    }

    /// How many different ones were done.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

/// Does all of it on as many threads as there are cores, the last first: that is the longest where numbers of cores
/// go up. Results in their order.
pub(super) fn all_at_once<A: Sync, R: Send>(of: &[A], does: &(dyn Fn(&A) -> R + Sync)) -> Vec<R> {
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
