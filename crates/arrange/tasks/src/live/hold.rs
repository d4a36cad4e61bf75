//! The threads that start runs, while runs hold them on a core. A run may end before one that began earlier or
//! later, in another thread, or after the program has changed the affinity itself: whatever the order, a thread
//! that no run holds has the cores again that it had before, and what the program set last stands.

use core::cell::OnceCell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::available_parallelism;

use isochrone_os::OsError;
use isochrone_os::affinity::{
    CoreSet, ThreadId, gettid, pin, restore, restore_thread, set_thread_affinity,
};
use isochrone_units::CoreId;

/// What runs do to a thread.
#[derive(Debug)]
struct Thread {
    id: ThreadId,
    /// Its own cores: those that it had when the first of `holds` came.
    own: Option<CoreSet>,
    /// Runs that hold it, by their numbers, and on which core. The last one counts.
    holds: Vec<(u64, CoreId)>,
    /// Runs that ever held it.
    runs: u64,
    /// Then the system may give its number to another thread.
    ended: bool,
}

type Known = Arc<Mutex<Thread>>;

/// What is known of this thread, until it ends.
struct Mine(OnceCell<Known>);

impl Drop for Mine {
    fn drop(&mut self) {
        if let Some(thread) = self.0.get() {
            lock(thread).ended = true;
        }
    }
}

thread_local! {
    static MINE: Mine = const { Mine(OnceCell::new()) };
}

fn lock(thread: &Known) -> MutexGuard<'_, Thread> {
    thread.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is known of this thread; a thread that ends has nothing to keep it in.
fn mine() -> Known {
    let new = || {
        let (id, holds) = (gettid(), Vec::new());
        Arc::new(Mutex::new(Thread { id, own: None, holds, runs: 0, ended: false }))
    };
    MINE.try_with(|mine| Arc::clone(mine.0.get_or_init(new))).unwrap_or_else(|_| new())
}

impl Thread {
    /// Its own cores, if runs hold it and nobody has changed its affinity since.
    fn held(&self, now: &CoreSet) -> Option<&CoreSet> {
        let (_, core) = self.holds.last()?;
        self.own.as_ref().filter(|_| *now == CoreSet::only(*core))
    }
}

/// The cores that this thread may use: those that it has while no run holds it.
///
/// # Errors
/// [`OsError`] where the kernel does not say.
pub(super) fn own_cores() -> Result<CoreSet, OsError> {
    let now = CoreSet::of_this_thread()?;
    let mine = mine();
    let thread = lock(&mine);
    Ok(thread.held(&now).cloned().unwrap_or(now))
}

/// How many workers fit this thread: one for each core that it may use, however many runs hold it on one core now.
#[must_use]
pub fn fitting_workers() -> usize {
    let (mine, now) = (mine(), CoreSet::of_this_thread());
    let held = now.ok().and_then(|now| lock(&mine).held(&now).map(CoreSet::len));
    held.unwrap_or_else(|| available_parallelism().map_or(1, usize::from))
}

/// One run's hold on the thread that started it; any thread may let go.
#[derive(Debug)]
pub(super) struct Hold {
    thread: Known,
    number: u64,
}

impl Hold {
    /// Holds this thread on `core`.
    ///
    /// # Errors
    /// [`OsError`] where the system refuses; then nothing has changed.
    pub(super) fn on(core: CoreId) -> Result<Self, OsError> {
        let now = CoreSet::of_this_thread()?;
        let known = mine();
        let mut thread = lock(&known);
        if let Err(error) = pin(core) {
            let _ = restore(&now);
            return Err(error);
        }
        if thread.held(&now).is_none() {
            thread.holds.clear();
            thread.own = Some(now);
        }
        thread.runs += 1;
        let number = thread.runs;
        thread.holds.push((number, core));
        drop(thread);
        Ok(Self { thread: known, number })
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut thread = lock(&self.thread);
        let Some(at) = thread.holds.iter().position(|hold| hold.0 == self.number) else { return };
        if thread.ended {
            return;
        }
        // A child of fork has another number, and only its own thread.
        let here = MINE.try_with(|mine| mine.0.get().is_some_and(|m| Arc::ptr_eq(m, &self.thread)));
        let id = if here == Ok(true) { ThreadId(0) } else { thread.id };
        let counted = at + 1 == thread.holds.len();
        let now = CoreSet::of_thread(id).ok();
        let own = now.and_then(|now| thread.held(&now).cloned());
        thread.holds.remove(at);
        let Some(own) = own else {
            // The program has set other cores meanwhile: those stand, whoever else lets go.
            thread.holds.clear();
            return;
        };
        // What is refused here was allowed before: the system has taken cores away, and put the thread elsewhere.
        let _ = match thread.holds.last() {
            Some((_, core)) if counted => set_thread_affinity(id, *core),
            Some(_) => Ok(()),
            None => restore_thread(id, &own),
        };
    }
}

/// Puts a worker where it works: on its core, or on any of `free`, though the thread that made it may be held on one.
pub(super) fn settle(core: CoreId, free: Option<&CoreSet>) {
    // A core that has gone away meanwhile costs locality, not the run.
    let _ = match free {
        None => pin(core),
        Some(free) if CoreSet::of_this_thread().is_ok_and(|now| now != *free) => restore(free),
        Some(_) => Ok(()),
    };
}
