//! The core that runs a thread, from the word that the kernel keeps up to date for glibc
//! (restartable sequences, rseq(2)): one load from the thread's own block, some two nanoseconds
//! less than `rdpid` and fifty less than a system call.
//!
//! It reads that word only. It registers nothing, and starts no restartable sequence: what is
//! decided from the answer must stay right when the thread is elsewhere a moment later.

use crate::affinity::current_core;
use crate::arch;
use isochrone_units::CoreId;

/// `offsetof(struct rseq, cpu_id)` (include/uapi/linux/rseq.h).
const CPU_ID_AT: isize = 4;

/// Where this process's threads keep the number of their core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoreWord {
    /// Bytes from the thread pointer to the word; `None` where glibc registered none.
    at: Option<isize>,
}

impl CoreWord {
    /// No such word: [`Self::core`] asks in another way. What a static begins with.
    pub const NONE: Self = Self { at: None };

    /// Finds it: glibc 2.35 and later registers every thread, unless told not to
    /// (`glibc.pthread.rseq=0`), and says where (`__rseq_offset`, `__rseq_size`).
    #[must_use]
    pub fn find() -> Self {
        Self { at: block().map(|(offset, _)| offset + CPU_ID_AT) }
    }

    /// Whether [`Self::core`] is a single load.
    #[must_use]
    pub const fn is_known(self) -> bool {
        self.at.is_some()
    }

    /// The core that runs this thread. It may be another one by the time the caller looks, unless
    /// the thread is pinned.
    #[inline]
    #[must_use]
    pub fn core(self) -> CoreId {
        if let Some(at) = self.at {
            // SAFETY: `at` comes from `find`: glibc keeps a `struct rseq` there in every thread.
            let word = unsafe { arch::thread_word(at) };
            // Threads that the kernel refused to register hold -1 or -2.
            if let Ok(core) = u16::try_from(word) {
                return CoreId(core);
            }
        }
        current_core()
    }

    /// Whether the word says that `core` runs this thread; false where there is no word. It calls
    /// nothing.
    #[inline(always)]
    #[must_use]
    pub fn says(self, core: CoreId) -> bool {
        // SAFETY: as in `core`. What marks a thread without registration is no core's number.
        self.at.is_some_and(|at| unsafe { arch::thread_word(at) == u32::from(core.0) })
    }
}

/// Where glibc keeps each thread's `struct rseq`, from the thread pointer, and its size; `None`
/// where it registers none.
fn block() -> Option<(isize, u32)> {
    let (offset, size) = arch::rseq_names();
    if offset.is_null() || size.is_null() {
        return None;
    }
    // SAFETY: not null, so it is glibc's `extern const ptrdiff_t`, set before any program code.
    let offset = unsafe { offset.read() };
    // SAFETY: not null, so it is glibc's `extern const unsigned int`, set likewise.
    let size = unsafe { size.read() };
    (size > 0).then_some((offset, size))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::affinity::{pin, tests::cores};
    use std::vec::Vec;

    #[test]
    fn the_word_names_the_core_in_every_thread() {
        let word = CoreWord::find();
        for way in [word, CoreWord::NONE] {
            for core in cores() {
                let seen = std::thread::spawn(move || {
                    pin(core).expect("an allowed core");
                    assert_eq!(way.says(core), way.is_known());
                    assert!(!way.says(CoreId(u16::MAX)));
                    (0..1000).map(|_| way.core()).collect::<Vec<_>>()
                });
                assert!(seen.join().expect("no panic").iter().all(|seen| *seen == core));
            }
        }
    }

    #[test]
    fn it_is_found_where_glibc_has_it() {
        let version = std::process::Command::new("getconf").arg("GNU_LIBC_VERSION").output();
        let text = version.map(|v| std::string::String::from_utf8_lossy(&v.stdout).into_owned());
        let minor = text.ok().and_then(|t| t.trim().rsplit('.').next()?.parse::<u32>().ok());
        if cfg!(all(target_arch = "x86_64", target_env = "gnu"))
            && minor.is_some_and(|minor| minor >= 35)
            && std::env::var_os("GLIBC_TUNABLES").is_none()
        {
            assert!(CoreWord::find().is_known());
        }
        assert!(!CoreWord::NONE.is_known());
    }
}
