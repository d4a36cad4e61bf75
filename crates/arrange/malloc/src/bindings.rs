//! Which threads are bound to which cores, in all processes of a run: a table that these share.
//!
//! `isochrone run` makes its file and names it in the record that processes read; a process
//! without one has a table of its own. An entry is a process and a place in the list of cores.
//! Entries of processes that are gone, killed ones too, are dropped by whoever counts next, and
//! who finds that others came in between counts again: nobody ever waits.

use crate::config::{CORES_MAX, PathBytes};
use crate::memory;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use rustix::process::{Pid, test_kill_process};

/// Length of the file.
pub const BINDINGS_BYTES: usize = 8 * (ENTRIES + 1);
/// Threads that are counted; more are bound and not counted.
const ENTRIES: usize = 1023;
/// Times that a thread counts again since others came in between.
const TRIES: u32 = 16;
/// Processes of which it is kept in mind, while counting, whether they live.
const KNOWN: usize = 16;

/// The table. Zeroed memory is an empty one.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Bindings {
    /// Raised by each entry that is made.
    version: AtomicU64,
    /// Process in the upper half, place plus one in the lower; 0 for none.
    entries: [AtomicU64; ENTRIES],
}

const _: () = assert!(size_of::<Bindings>() == BINDINGS_BYTES);

/// The table of a process that was told of none.
static OWN: Bindings = Bindings::new();
static SHARED: AtomicPtr<Bindings> = AtomicPtr::new(ptr::null_mut());

/// Threads by place.
pub(crate) type Threads = [u16; CORES_MAX];

/// The table of this process.
pub(crate) fn table() -> &'static Bindings {
    // SAFETY: null, or a file that is mapped until the process ends.
    unsafe { SHARED.load(Ordering::Acquire).as_ref() }.unwrap_or(&OWN)
}

/// Takes part in the table of this file.
pub(crate) fn join(path: &PathBytes) {
    if path.is_empty() || !SHARED.load(Ordering::Relaxed).is_null() {
        return;
    }
    if let Some(found) = memory::map_shared(path.as_c_str(), BINDINGS_BYTES) {
        SHARED.store(found.cast().as_ptr(), Ordering::Release);
    }
}

impl Bindings {
    pub(crate) const fn new() -> Self {
        Self { version: AtomicU64::new(0), entries: [const { AtomicU64::new(0) }; ENTRIES] }
    }

    /// Makes an entry for a thread of `process` at the place that `choose` names, told how many
    /// threads each place has. The entry's number; `None` where nothing was chosen, or where the
    /// table is full, with the place.
    pub(crate) fn claim(
        &self,
        process: u32,
        choose: impl Fn(&Threads) -> Option<u16>,
    ) -> Option<(u16, Option<u16>)> {
        let mut last = None;
        for _ in 0..TRIES {
            let version = self.version.load(Ordering::Acquire);
            let mut threads = [0; CORES_MAX];
            self.count(&mut threads);
            let place = choose(&threads)?;
            let Some(entry) = self.enter(pack(process, place)) else { return Some((place, None)) };
            let swap = self.version.compare_exchange(
                version,
                version.wrapping_add(1),
                Ordering::AcqRel,
                Ordering::Relaxed,
            );
            if swap.is_ok() {
                return Some((place, Some(entry)));
            }
            last = Some(place);
            self.release(entry);
        }
        // Others come all the time: what was counted last is as good as anything.
        let place = last?;
        Some((place, self.enter(pack(process, place))))
    }

    fn enter(&self, packed: u64) -> Option<u16> {
        let free = |entry: &AtomicU64| {
            let swap = entry.compare_exchange(0, packed, Ordering::AcqRel, Ordering::Relaxed);
            swap.is_ok()
        };
        (0..).zip(&self.entries).find(|(_, entry)| free(entry)).map(|(number, _)| number)
    }

    /// The thread of an entry is gone.
    pub(crate) fn release(&self, entry: u16) {
        if let Some(entry) = self.entries.get(usize::from(entry)) {
            entry.store(0, Ordering::Release);
        }
    }

    /// All threads of a process are gone.
    pub(crate) fn forget(&self, process: u32) {
        for entry in &self.entries {
            let packed = entry.load(Ordering::Relaxed);
            if packed != 0 && unpack(packed).0 == process {
                // Whoever was faster has dropped it.
                let _ = entry.compare_exchange(packed, 0, Ordering::AcqRel, Ordering::Relaxed);
            }
        }
    }

    /// Whether no other process has it.
    pub(crate) fn is_own(&self) -> bool {
        ptr::eq(self, &OWN)
    }

    /// Whether a process has a thread at a place.
    pub(crate) fn has(&self, process: u32, place: usize) -> bool {
        let wanted = u16::try_from(place).map(|place| pack(process, place));
        self.entries.iter().any(|entry| Ok(entry.load(Ordering::Relaxed)) == wanted)
    }

    /// Whether any process has a thread at a place.
    pub(crate) fn is_used(&self, place: usize) -> bool {
        let is = |packed: u64| packed != 0 && usize::from(unpack(packed).1) == place;
        self.entries.iter().any(|entry| is(entry.load(Ordering::Relaxed)))
    }

    /// Counts threads by place, and drops those of processes that are gone.
    fn count(&self, threads: &mut Threads) {
        let mut known = [(0, true); KNOWN];
        let mut next = 0;
        for entry in &self.entries {
            let packed = entry.load(Ordering::Acquire);
            if packed == 0 {
                continue;
            }
            let (process, place) = unpack(packed);
            let lives = match known.iter().find(|(of, _)| *of == process) {
                Some(&(_, lives)) => lives,
                None => {
                    let lives = lives(process);
                    known[next % KNOWN] = (process, lives);
                    next += 1;
                    lives
                }
            };
            if !lives {
                let _ = entry.compare_exchange(packed, 0, Ordering::AcqRel, Ordering::Relaxed);
            } else if let Some(count) = threads.get_mut(usize::from(place)) {
                *count += 1;
            }
        }
    }
}

fn pack(process: u32, place: u16) -> u64 {
    u64::from(process) << 32 | (u64::from(place) + 1)
}

fn unpack(packed: u64) -> (u32, u16) {
    let [low, high, _, _, a, b, c, d] = packed.to_le_bytes();
    (u32::from_le_bytes([a, b, c, d]), u16::from_le_bytes([low, high]).wrapping_sub(1))
}

/// Whether a process is there; one that may not be asked is.
fn lives(process: u32) -> bool {
    let Some(pid) = i32::try_from(process).ok().and_then(Pid::from_raw) else { return false };
    test_kill_process(pid) != Err(rustix::io::Errno::SRCH)
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use std::process;

    fn fewest(cores: u16) -> impl Fn(&Threads) -> Option<u16> {
        move |threads| (0..cores).min_by_key(|&place| threads[usize::from(place)])
    }

    #[test]
    fn threads_of_several_processes_go_to_the_place_that_has_fewest() {
        let table = Bindings::new();
        let (one, other) = (process::id(), std::os::unix::process::parent_id());
        let places: std::vec::Vec<u16> = [one, other, one, one]
            .into_iter()
            .map(|process| table.claim(process, fewest(2)).expect("a place").0)
            .collect();
        assert_eq!(places, [0, 1, 0, 1]);
        assert!(table.has(other, 1) && !table.has(other, 0) && table.is_used(0));
        table.forget(one);
        assert!(!table.is_used(0) && table.is_used(1));
        let (place, entry) = table.claim(one, fewest(2)).expect("a place");
        assert_eq!(place, 0);
        table.release(entry.expect("room"));
        assert!(!table.is_used(0));
    }

    #[test]
    fn who_was_killed_does_not_count() {
        let table = Bindings::new();
        let mut child = process::Command::new("sleep").arg("60").spawn().expect("sleep");
        assert_eq!(table.claim(child.id(), fewest(2)).map(|(place, _)| place), Some(0));
        assert_eq!(table.claim(process::id(), fewest(2)).map(|(place, _)| place), Some(1));
        child.kill().expect("it is ours");
        child.wait().expect("it is ours");
        assert_eq!(table.claim(process::id(), fewest(2)).map(|(place, _)| place), Some(0));
        assert!(!table.has(child.id(), 0));
    }

    #[test]
    fn threads_that_come_at_once_share_places_evenly() {
        let table = Bindings::new();
        std::thread::scope(|threads| {
            for _ in 0..8 {
                threads.spawn(|| {
                    for _ in 0..4 {
                        assert!(table.claim(process::id(), fewest(4)).is_some());
                    }
                });
            }
        });
        let mut threads = [0; CORES_MAX];
        table.count(&mut threads);
        assert_eq!(threads.iter().map(|&count| u32::from(count)).sum::<u32>(), 32);
        // Only who gave up counting again may have made it uneven.
        assert!(threads[..4].iter().all(|&count| count > 4), "{:?}", &threads[..4]);
    }

    #[test]
    fn a_full_table_still_names_a_place() {
        let table = Bindings::new();
        for _ in 0..ENTRIES {
            assert!(table.claim(process::id(), fewest(2)).is_some_and(|(_, e)| e.is_some()));
        }
        assert_eq!(table.claim(process::id(), fewest(2)), Some((1, None)));
        assert_eq!(table.claim(process::id(), |_| None), None);
    }
}
