//! Threads that go through parts of the same pages in step, so that no two are ever at one part. It times nothing.

use std::ops::Range;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::target::TargetError;

/// Most that one waits for the others: a part takes milliseconds, and a machine may be stopped meanwhile.
const PATIENCE: Duration = Duration::from_secs(60);

/// Where threads wait for one another. One that leaves is waited for no longer.
#[derive(Debug)]
pub(super) struct Meeting {
    threads: usize,
    state: Mutex<State>,
    all_there: Condvar,
}

#[derive(Debug)]
struct State {
    members: usize,
    waiting: usize,
    /// Times that all were there.
    met: u64,
}

impl Meeting {
    /// Of so many threads, each of which takes its step before it does anything else.
    pub(super) fn of(threads: usize) -> Self {
        let state = Mutex::new(State { members: threads, waiting: 0, met: 0 });
        Self { threads, state, all_there: Condvar::new() }
    }

    /// A part of so many pages.
    pub(super) fn part(&self, nth: usize, pages: usize) -> Range<usize> {
        nth * pages / self.threads..(nth + 1) * pages / self.threads
    }

    /// The step of one of the threads, by its number.
    pub(super) fn step(&self, number: usize) -> Step<'_> {
        Step { meeting: self, number }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Lets all go on if nobody lacks.
    fn go_on_if_all(&mut self, there: &Condvar) {
        if self.waiting >= self.members {
            self.waiting = 0;
            self.met += 1;
            there.notify_all();
        }
    }
}

/// The place of one thread among others. Dropped, it leaves them.
#[derive(Debug)]
pub(super) struct Step<'m> {
    meeting: &'m Meeting,
    number: usize,
}

impl Step<'_> {
    /// The parts of so many pages in this thread's order: at every step another thread has another part.
    pub(super) fn parts(&self, pages: usize) -> Vec<Range<usize>> {
        let of = self.meeting.threads;
        (0..of).map(|step| self.meeting.part((self.number + step) % of, pages)).collect()
    }

    /// Waits until all who are left have come to the end of their step.
    ///
    /// # Errors
    /// [`TargetError::Stopped`] where somebody does not come.
    pub(super) fn meet(&self) -> Result<(), TargetError> {
        let Meeting { all_there, .. } = self.meeting;
        let mut state = self.meeting.state();
        let before = state.met;
        state.waiting += 1;
        state.go_on_if_all(all_there);
        let waits = |state: &mut State| state.met == before;
        let (mut state, _) = all_there
            .wait_timeout_while(state, PATIENCE, waits)
            .unwrap_or_else(PoisonError::into_inner);
        if state.met > before {
            return Ok(());
        }
        state.waiting -= 1;
        Err(TargetError::Stopped)
    }
}

impl Drop for Step<'_> {
    fn drop(&mut self) {
        let mut state = self.meeting.state();
        state.members -= 1;
        if state.members > 0 {
            state.go_on_if_all(&self.meeting.all_there);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn no_two_are_ever_at_one_part_whoever_leaves() {
        const THREADS: usize = 4;
        const PAGES: usize = 10;
        let meeting = Meeting::of(THREADS);
        let users: Vec<AtomicUsize> = (0..PAGES).map(|_| AtomicUsize::new(0)).collect();
        let most = AtomicUsize::new(0);
        let work = |number: usize| {
            let step = meeting.step(number);
            let mut timed = 0;
            // One leaves after one round, one after two...
            for part in (0..=number).flat_map(|_| step.parts(PAGES)) {
                for page in &users[part] {
                    most.fetch_max(page.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    std::thread::yield_now();
                    page.fetch_sub(1, Ordering::SeqCst);
                    timed += 1;
                }
                step.meet().expect("all come or leave");
            }
            timed
        };
        let work = &work;
        let timed: Vec<usize> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..THREADS).map(|number| scope.spawn(move || work(number))).collect();
            threads.into_iter().map(|thread| thread.join().expect("it ends")).collect()
        });
        assert_eq!(timed, [10, 20, 30, 40], "each page once in a round");
        assert_eq!(most.into_inner(), 1);
    }

    #[test]
    fn one_alone_waits_for_nobody() {
        let meeting = Meeting::of(2);
        let (one, other) = (meeting.step(0), meeting.step(1));
        assert_eq!((one.parts(5), other.parts(5)), (vec![0..2, 2..5], vec![2..5, 0..2]));
        drop(other);
        assert_eq!(one.meet(), Ok(()));
    }
}
