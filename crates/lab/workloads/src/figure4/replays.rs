//! Replays that were done already. What a replay counts follows from where nodes are placed, and that from the orders
//! in which cores take lines: not from what a hop, a directory or memory costs, nor from cycles of work. So chips that
//! agree on the orders share one replay, and each prices its counts for itself.

use core::hash::Hasher;
use std::collections::HashMap;
use std::hash::DefaultHasher;
use std::sync::{Arc, Mutex, PoisonError};

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
