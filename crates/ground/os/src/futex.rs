//! Sleeping until a word of memory changes: two thin wrappers over `futex`, for threads of one
//! process or of several.
//!
//! It never loops: whoever waits looks at the word again, since a wait may end for no reason.

use crate::error::OsError;
use core::sync::atomic::AtomicU32;
use rustix::io::Errno;
use rustix::thread::futex::{Flags, Timespec};

/// Who can wake whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Threads of this process. Faster, since the kernel need not look up the memory.
    Process,
    /// All processes that share the word's memory.
    Shared,
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// Woken, perhaps for no reason.
    Woken,
    /// The word held another value, so there was no wait.
    Changed,
    /// The time was over.
    TimedOut,
    /// A signal was handled.
    Interrupted,
}

impl Scope {
    const fn flags(self) -> Flags {
        match self {
            Self::Process => Flags::PRIVATE,
            Self::Shared => Flags::empty(),
        }
    }
}

/// Sleeps while `word` holds `expected`, at most `timeout_ns` if there is one.
///
/// # Errors
/// [`OsError`] where the kernel has no futex.
pub fn wait(
    word: &AtomicU32,
    expected: u32,
    timeout_ns: Option<u64>,
    scope: Scope,
) -> Result<Waited, OsError> {
    let seconds = |part: u64| i64::try_from(part).unwrap_or(i64::MAX);
    let timeout = timeout_ns.map(|ns| Timespec {
        tv_sec: seconds(ns / 1_000_000_000),
        tv_nsec: seconds(ns % 1_000_000_000),
    });
    match rustix::thread::futex::wait(word, scope.flags(), expected, timeout.as_ref()) {
        Ok(()) => Ok(Waited::Woken),
        Err(Errno::AGAIN) => Ok(Waited::Changed),
        Err(Errno::TIMEDOUT) => Ok(Waited::TimedOut),
        Err(Errno::INTR) => Ok(Waited::Interrupted),
        Err(errno) => Err(OsError::of("cannot wait on a futex", errno, ADVICE)),
    }
}

/// Wakes at most `waiters` threads that wait on `word`; returns how many.
///
/// # Errors
/// [`OsError`] where the kernel has no futex.
pub fn wake(word: &AtomicU32, waiters: u32, scope: Scope) -> Result<usize, OsError> {
    rustix::thread::futex::wake(word, scope.flags(), waiters)
        .map_err(|errno| OsError::of("cannot wake a futex", errno, ADVICE))
}

const ADVICE: &str = "spin instead, or allow the futex system call in the sandbox";

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::Ordering;

    #[test]
    fn a_changed_word_is_not_waited_for() {
        let word = AtomicU32::new(1);
        assert_eq!(wait(&word, 0, None, Scope::Process), Ok(Waited::Changed));
        assert_eq!(wait(&word, 1, Some(1000), Scope::Shared), Ok(Waited::TimedOut));
        assert_eq!(wake(&word, 1, Scope::Process), Ok(0));
    }

    #[test]
    fn a_sleeper_is_woken() {
        for scope in [Scope::Process, Scope::Shared] {
            let word = AtomicU32::new(0);
            std::thread::scope(|threads| {
                let sleeper = threads.spawn(|| {
                    while word.load(Ordering::Acquire) == 0 {
                        wait(&word, 0, None, scope).expect("futex");
                    }
                });
                // Wakes until a sleeper was found, so that the wake itself is what is tested.
                while wake(&word, 1, scope).expect("futex") == 0 {
                    std::thread::yield_now();
                }
                word.store(1, Ordering::Release);
                wake(&word, 1, scope).expect("futex");
                sleeper.join().expect("the sleeper ends");
            });
        }
    }
}
