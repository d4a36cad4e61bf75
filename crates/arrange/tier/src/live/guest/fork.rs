//! A child has what its parent had. It has no descriptor and no handlers, so all that is not in memory is fetched
//! first: more than the limit allows, for as long as the fork takes. What was never touched is zeros to both.

use core::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};

use isochrone_os::area::Told;
use isochrone_os::signal::{Held, hold};
use isochrone_units::PAGE_BYTES;

use super::errno;
use super::orders::{Order, run_of};
use super::record::Word;
use super::tiered::Guest;
use crate::directory::State as Is;
use crate::names::{Group, Run};

/// A part of what is available that stays for others, as a divisor.
const SPARED_PART: u64 = 16;

/// Nobody else forks as long as this lives: from before a fork until both sides have been told. Other threads may map
/// and unmap meanwhile, since an allocator holds its locks while it does. Signals of this thread wait, since a handler
/// may fork, too.
#[derive(Debug)]
pub struct Forking {
    // In the order in which they end.
    _alone: MutexGuard<'static, ()>,
    _held: Held,
}

impl Guest {
    /// Fetches all, so that the process may be forked.
    ///
    /// # Errors
    /// `ENOMEM` where not all fits into memory; then nothing has changed.
    pub fn before_fork(&'static self) -> Result<Forking, i32> {
        let held = hold();
        let alone = self.forks.lock().unwrap_or_else(PoisonError::into_inner);
        let _calls = self.lock();
        let ground = &self.ground;
        let refused = || {
            ground.tally.add(Word::Refused, 1);
            errno::ENOMEM
        };
        self.fetch_all().map_err(|_| refused())?;
        // What is mapped from here on goes to the child, too.
        self.forking.store(true, Ordering::Release);
        self.used().for_each(|pages| self.tell(&pages, Told::Fork));
        Ok(Forking { _alone: alone, _held: held })
    }

    /// Has all in memory, beyond the limit, until [`Order::Repay`] of all: for who has the lock, and holds signals.
    ///
    /// # Errors
    /// The error number of what could not be had, `ENOMEM` where not all fits into memory; then nothing has changed.
    pub(super) fn fetch_all(&self) -> Result<(), i32> {
        let far = self.used().map(|pages| self.stored(pages)).sum::<u64>();
        let needed = far * PAGE_BYTES as u64;
        if available().is_some_and(|bytes| needed > bytes - bytes / SPARED_PART) {
            return Err(errno::ENOMEM);
        }
        self.order(Order::Lend, self.all())?;
        for pages in self.used() {
            if let Err(why) = self.order(Order::Fetch, run_of(&pages)) {
                self.order(Order::Repay, self.all())?;
                return Err(why);
            }
        }
        Ok(())
    }

    /// All groups.
    pub(super) fn all(&self) -> Run {
        Run { first: Group(0), groups: self.ground.shape.groups }
    }

    /// In the parent, whether there is a child or not.
    pub fn after_fork(&'static self, forking: Forking) {
        let calls = self.lock();
        self.forking.store(false, Ordering::Release);
        for pages in self.used() {
            self.tell(&pages, Told::NoFork);
        }
        self.ground.tally.add(Word::Forks, 1);
        // What cannot leave now leaves at later faults.
        let _ = self.order(Order::Repay, self.all());
        drop(calls);
        drop(forking);
    }

    pub(super) fn tell(&self, pages: &std::ops::Range<usize>, told: Told) {
        // Where it is refused the child ends at its first touch; it does not read zeros.
        let _ = self.window().tell(pages.start * PAGE_BYTES, pages.len() * PAGE_BYTES, told);
    }

    /// How many of these pages are in the far tier alone.
    fn stored(&self, pages: std::ops::Range<usize>) -> u64 {
        let directory = self.ground.pager(1).directory();
        let far = |group: Group| {
            let seen = directory.look(group);
            seen.state() == Is::Absent && seen.flags().stored
        };
        run_of(&pages).iter().filter(|group| far(*group)).count() as u64
    }

    /// The program's own pages, in pieces.
    pub(super) fn used(&self) -> impl Iterator<Item = std::ops::Range<usize>> {
        let (ground, mut at) = (&self.ground, 0);
        std::iter::from_fn(move || {
            while at < ground.top.load(Ordering::Acquire) {
                let first = at;
                let ours = ground.book.of(first).is_ours();
                at +=
                    ground.book.alike(first, ground.top.load(Ordering::Acquire) - first, |marks| {
                        if marks.is_ours() {
                            super::book::Marks::USED
                        } else {
                            super::book::Marks::default()
                        }
                    });
                if ours {
                    return Some(first..at);
                }
            }
            None
        })
    }
}

/// Bytes that the system could give (`MemAvailable` of proc_meminfo(5)), without allocating.
fn available() -> Option<u64> {
    let mut text = [0; 4096];
    let mut file = std::fs::File::open("/proc/meminfo").ok()?;
    let read = std::io::Read::read(&mut file, &mut text).ok()?;
    let text = std::str::from_utf8(&text[..read]).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib << 10)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_system_says_what_it_could_give() {
        assert!(super::available().is_some_and(|bytes| bytes > 1 << 20));
    }
}
