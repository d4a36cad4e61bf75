//! Binding threads to cores when they first have something placed: in the order of the configured
//! list, to the core that has the fewest.
//!
//! A thread that the program itself has bound is left alone. A thread that never allocates keeps
//! what it inherited from the one that made it, which may be that one's core: only the program
//! could bind it. A process that inherited one core from a bound thread of its parent gets all of
//! them back, and begins elsewhere in the list than its siblings.

use crate::config::{CORES_MAX, Config, Pin};
use core::sync::atomic::{AtomicU32, Ordering};
use isochrone_os::affinity::{self, CoreSet};
use isochrone_units::CoreId;
use rustix::thread::CpuSet;

/// How many threads each place of the list has.
static THREADS: [AtomicU32; CORES_MAX] = [const { AtomicU32::new(0) }; CORES_MAX];
/// The place that this process's first thread gets.
static FIRST: AtomicU32 = AtomicU32::new(0);

/// A thread's place in the list of cores; none for a thread that was not bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place(Option<u16>);

/// A process begins, by `exec` or by `fork`. If its one thread may run on one core of the list
/// only, it inherited that from a thread that was bound, and may run on all of them from now on.
pub(crate) fn begin(config: &Config, process: u32) {
    let cores = config.cores.as_slice();
    THREADS.iter().for_each(|count| count.store(0, Ordering::Relaxed));
    FIRST.store(0, Ordering::Relaxed);
    if config.pin == Pin::None || cores.len() < 2 {
        return;
    }
    let Ok(set) = CoreSet::of_this_thread() else { return };
    if cores.iter().any(|&core| set == CoreSet::only(core)) {
        FIRST.store(process, Ordering::Relaxed);
        let mut all = CpuSet::new();
        for core in cores.iter().map(|core| usize::from(core.0)).filter(|&c| c < CpuSet::MAX_CPU) {
            all.set(core);
        }
        // Where this is refused the process stays on its core, as it was.
        let _ = rustix::thread::sched_setaffinity(None, &all);
    }
}

/// Binds this thread as the configuration says.
pub(crate) fn bind(config: &Config) -> Place {
    let cores = config.cores.as_slice();
    if config.pin == Pin::None || cores.is_empty() || is_bound_by_program(cores) {
        return Place(None);
    }
    let first = usize::try_from(FIRST.load(Ordering::Relaxed)).unwrap_or(0);
    let order = (0..cores.len()).map(|nth| {
        let nth = (first + nth) % cores.len();
        if config.pin == Pin::Spread { spread(nth, cores.len()) } else { nth }
    });
    let fewest = order.min_by_key(|&place| threads(place));
    let Some(place) = fewest else { return Place(None) };
    let Some(&core) = cores.get(place) else { return Place(None) };
    if affinity::set_thread_affinity(affinity::ThreadId(0), core).is_err() {
        return Place(None);
    }
    THREADS[place].fetch_add(1, Ordering::Relaxed);
    Place(u16::try_from(place).ok())
}

/// The thread that had this place ends.
pub(crate) fn unbind(place: Place) {
    if let Some(place) = place.0 {
        THREADS[usize::from(place)].fetch_sub(1, Ordering::Relaxed);
    }
}

fn threads(place: usize) -> u32 {
    THREADS.get(place).map_or(u32::MAX, |count| count.load(Ordering::Relaxed))
}

/// Whether this thread may run on fewer cores than the list has, for another reason than that it
/// was made by a thread that this module has bound.
fn is_bound_by_program(cores: &[CoreId]) -> bool {
    let Ok(set) = CoreSet::of_this_thread() else { return true };
    let mut bound = cores.iter().enumerate().filter(|&(place, _)| threads(place) > 0);
    let inherited = bound.any(|(_, &core)| set == CoreSet::only(core));
    !inherited && !cores.iter().all(|&core| set.contains(core))
}

/// The `nth` place of a list of `count` such that places come far apart: their numbers with the
/// bits reversed (van der Corput, 1935), without those beyond the list.
fn spread(nth: usize, count: usize) -> usize {
    let bits = count.next_power_of_two().trailing_zeros();
    let reversed = |number: usize| match bits {
        0 => 0,
        _ => number.reverse_bits() >> (usize::BITS - bits),
    };
    (0..1_usize << bits).map(reversed).filter(|&place| place < count).nth(nth).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use std::vec::Vec;

    #[test]
    fn spread_visits_every_place_once_and_far_ones_first() {
        for count in 1..=40 {
            let mut places: Vec<usize> = (0..count).map(|nth| spread(nth, count)).collect();
            if count == 8 {
                assert_eq!(places, [0, 4, 2, 6, 1, 5, 3, 7]);
            }
            places.sort_unstable();
            assert_eq!(places, (0..count).collect::<Vec<_>>());
        }
    }

    /// What belongs to the process is tested in one test: another would disturb it.
    #[test]
    fn threads_are_bound_in_turn_and_processes_begin_apart() {
        let mut cores = [CoreId(0); 64];
        let count = affinity::allowed(&mut cores).min(64);
        let config = Config {
            pin: Pin::Compact,
            cores: crate::config::CoreList::new(&cores[..count]).expect("short"),
            ..Config::default()
        };
        let first = cores[0];
        let in_thread = |work: &(dyn Fn() + Sync)| {
            std::thread::scope(|threads| threads.spawn(work).join().expect("no assertion failed"));
        };
        for _ in 0..3 {
            // One after the other: each finds the first core free again.
            in_thread(&|| {
                let place = bind(&config);
                assert_eq!(place, Place(Some(0)));
                assert_eq!(CoreSet::of_this_thread(), Ok(CoreSet::only(first)));
                // A thread made by a bound one goes to the next core.
                in_thread(&|| {
                    let next = bind(&config);
                    assert_eq!(next, Place(Some(u16::from(count > 1))));
                    unbind(next);
                });
                unbind(place);
            });
        }
        if count < 2 {
            return;
        }
        let all = CoreSet::of_this_thread().expect("the kernel says");
        // A child of a bound thread: all cores, and another place for each number.
        for process in [6, 7] {
            in_thread(&|| {
                affinity::set_thread_affinity(affinity::ThreadId(0), first).expect("allowed");
                begin(&config, process);
                let widened = CoreSet::of_this_thread().expect("the kernel says");
                assert!(cores[..count].iter().all(|&core| widened.contains(core)));
                let place = bind(&config);
                let expected = usize::try_from(process).expect("small") % count;
                assert_eq!(place, Place(u16::try_from(expected).ok()));
                unbind(place);
            });
        }
        // Two of three: the program's own wish. Here that is any set that is not the list.
        begin(&config, 0);
        let more = [first, CoreId(8000)];
        let strange =
            Config { cores: crate::config::CoreList::new(&more).expect("short"), ..config.clone() };
        in_thread(&|| assert_eq!(bind(&strange), Place(None)));
        assert_eq!(CoreSet::of_this_thread(), Ok(all));
    }
}
