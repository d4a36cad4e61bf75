//! Binding threads to cores, once so much is live that lines matter: in the order of the configured
//! list, to the first core that has none of any process of the run. Where all cores have one, the
//! process binds no more and its bound threads are let go: which of them sleep, only the system
//! knows, and two that share a core while another idles cost more than near lines gain.
//!
//! A thread that the program itself has bound is left alone, before and after: the functions by which it does
//! that are exported, and note it before they go on to the C library's. From when it binds one thread from
//! another, or says where one is to begin, no thread is bound or let go any more: which ones it meant nobody
//! can tell. A thread that never allocates keeps what it inherited from the one that made it, which may be that
//! one's core: only the program could bind it. A process that inherited one core from a bound thread of its
//! parent gets all of them back.

use crate::bindings::{Threads, join, table};
use crate::config::{CORES_MAX, Config, Pin};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use isochrone_os::affinity::{self, CoreSet};
use isochrone_units::CoreId;
use rustix::thread::CpuSet;

/// This process, as its entries of the table name it.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// There were more threads than cores, and none is bound any more.
static CROWDED: AtomicBool = AtomicBool::new(false);

/// The program has bound a thread from another one, or has said where one is to begin.
static PROGRAM_BINDS: AtomicBool = AtomicBool::new(false);

/// Places of cores that threads of this process were bound to at any time.
static EVER: [AtomicBool; CORES_MAX] = [const { AtomicBool::new(false) }; CORES_MAX];

/// A thread's entry in the table; none for a thread that was not bound, or is not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place(Option<u16>);

/// The program is about to bind a thread from another one, or to say where one is to begin.
pub(crate) fn program_binds_others() {
    PROGRAM_BINDS.store(true, Ordering::Relaxed);
}

/// A process begins, by `exec` or by `fork`. If its one thread may run on one core of the list
/// only, and its parent (or it itself, before `exec`) has a bound thread there, it may run on all
/// of them from now on, unless the program has bound it.
pub(crate) fn begin(config: &Config, process: u32, is_bound: bool) {
    let parent = rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get());
    begin_as(config, process, parent.unsigned_abs(), is_bound);
}

fn begin_as(config: &Config, process: u32, parent: u32, is_bound: bool) {
    PROCESS.store(process, Ordering::Relaxed);
    CROWDED.store(false, Ordering::Relaxed);
    EVER.iter().for_each(|ever| ever.store(false, Ordering::Relaxed));
    let cores = config.cores.as_slice();
    if config.pin == Pin::None || cores.len() < 2 {
        return;
    }
    join(&config.bindings);
    let table = table();
    let inherited = CoreSet::of_this_thread().is_ok_and(|set| {
        let place = cores.iter().position(|&core| set == CoreSet::only(core));
        place.is_some_and(|place| table.has(process, place) || table.has(parent, place))
    });
    table.forget(process);
    if table.is_own() {
        // A copy of the parent's, whose threads are not this process's.
        table.forget(parent);
    }
    if inherited && !is_bound && !PROGRAM_BINDS.load(Ordering::Relaxed) {
        set_free(cores);
    }
}

/// This thread may run on all cores of the list.
fn set_free(cores: &[CoreId]) {
    let mut all = CpuSet::new();
    for core in cores.iter().map(|core| usize::from(core.0)).filter(|&c| c < CpuSet::MAX_CPU) {
        all.set(core);
    }
    // Where this is refused the thread stays where it was.
    let _ = rustix::thread::sched_setaffinity(None, &all);
}

/// This process ends: nobody need find out.
pub(crate) fn end() {
    table().forget(PROCESS.load(Ordering::Relaxed));
}

/// Binds this thread as the configuration says, unless the program has bound it.
pub(crate) fn bind(config: &Config, is_bound: bool) -> Place {
    let cores = config.cores.as_slice();
    let is_programs = is_bound || PROGRAM_BINDS.load(Ordering::Relaxed);
    if config.pin == Pin::None || cores.is_empty() || is_programs || is_narrowed(cores) {
        return Place(None);
    }
    if CROWDED.load(Ordering::Relaxed) {
        // It may have inherited the core of the thread that made it.
        set_free(cores);
        return Place(None);
    }
    let choose = |threads: &Threads| {
        let mut order = (0..cores.len()).map(|nth| place(config.pin, nth, cores.len()));
        u16::try_from(order.find(|&place| threads.get(place) == Some(&0))?).ok()
    };
    let claimed = table().claim(PROCESS.load(Ordering::Relaxed), choose);
    let Some((place, entry)) = claimed else {
        CROWDED.store(true, Ordering::Relaxed);
        set_free(cores);
        return Place(None);
    };
    let Some(&core) = cores.get(usize::from(place)) else { return Place(None) };
    if affinity::set_thread_affinity(affinity::ThreadId(0), core).is_err() {
        unbind(Place(entry));
        return Place(None);
    }
    if let Some(ever) = EVER.get(usize::from(place)) {
        ever.store(true, Ordering::Relaxed);
    }
    Place(entry)
}

/// Lets this thread go if the process has more threads than cores by now. Where the program has bound it meanwhile it
/// has that place no more, and goes where the program says.
pub(crate) fn loosen(place: &mut Place, config: &Config, is_bound: bool) {
    let is_free = CROWDED.load(Ordering::Relaxed) && !PROGRAM_BINDS.load(Ordering::Relaxed);
    if place.0.is_none() || !is_bound && !is_free {
        return;
    }
    if !is_bound {
        set_free(config.cores.as_slice());
    }
    unbind(core::mem::take(place));
}

/// The thread that had this place ends.
pub(crate) fn unbind(place: Place) {
    if let Some(entry) = place.0 {
        table().release(entry);
    }
}

/// Whether this thread may run on fewer cores than the list has, for another reason than that it
/// was made by a thread that this module has bound.
fn is_narrowed(cores: &[CoreId]) -> bool {
    let Ok(set) = CoreSet::of_this_thread() else { return true };
    let was = |place: usize| EVER.get(place).is_some_and(|ever| ever.load(Ordering::Relaxed));
    let used = |place: usize| was(place) || table().is_used(place);
    let mut bound = cores.iter().enumerate().filter(|&(place, _)| used(place));
    let inherited = bound.any(|(_, &core)| set == CoreSet::only(core));
    !inherited && !cores.iter().all(|&core| set.contains(core))
}

/// The place in a list of `count` cores to which the `nth` thread goes: the rule where no distances are known.
#[must_use]
pub fn place(pin: Pin, nth: usize, count: usize) -> usize {
    if pin == Pin::Spread { spread(nth, count) } else { nth }
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
    #[allow(clippy::print_stderr, reason = "a test says why it was skipped")]
    fn threads_are_bound_in_turn_and_children_of_bound_ones_are_free() {
        let mut cores = [CoreId(0); 64];
        let count = affinity::allowed(&mut cores).min(64);
        let config = Config {
            pin: Pin::Compact,
            cores: crate::config::CoreList::new(&cores[..count]).expect("short"),
            ..Config::default()
        };
        let (process, parent) = (std::process::id(), std::os::unix::process::parent_id());
        begin_as(&config, process, parent, false);
        let first = cores[0];
        let in_thread = |work: &(dyn Fn() + Sync)| {
            std::thread::scope(|threads| threads.spawn(work).join().expect("no assertion failed"));
        };
        for _ in 0..3 {
            // One after the other: each finds the first core free again.
            in_thread(&|| {
                let place = bind(&config, false);
                assert_eq!(CoreSet::of_this_thread(), Ok(CoreSet::only(first)));
                // A thread made by a bound one goes to the next core.
                in_thread(&|| {
                    let next = bind(&config, false);
                    let expected = cores[usize::from(count > 1)];
                    assert_eq!(CoreSet::of_this_thread(), Ok(CoreSet::only(expected)));
                    unbind(next);
                });
                unbind(place);
            });
        }
        // All cores have one: the next may run on any.
        in_thread(&|| {
            let all: Vec<u16> = (0_u16..).take(count).collect();
            let entries = all.iter().map(|&place| table().claim(parent, |_| Some(place)));
            let entries: Vec<u16> = entries.map(|e| e.expect("room").1.expect("room")).collect();
            affinity::set_thread_affinity(affinity::ThreadId(0), first).expect("allowed");
            assert_eq!(bind(&config, false), Place(None));
            let widened = CoreSet::of_this_thread().expect("the kernel says");
            assert!(cores[..count].iter().all(|&core| widened.contains(core)));
            entries.into_iter().for_each(|entry| unbind(Place(Some(entry))));
        });
        if count < 2 {
            assert!(option_env!("CI") != Some("true"), "one core; the rest takes two");
            return std::eprintln!("skipped from here: one core, and the rest takes two");
        }
        let all = CoreSet::of_this_thread().expect("the kernel says");
        // A child of a bound thread: all cores, and the next one for its own thread.
        let theirs = table().claim(parent, |_| Some(0)).expect("room").1.expect("room");
        in_thread(&|| {
            affinity::set_thread_affinity(affinity::ThreadId(0), first).expect("allowed");
            begin_as(&config, process, parent, false);
            let widened = CoreSet::of_this_thread().expect("the kernel says");
            assert!(cores[..count].iter().all(|&core| widened.contains(core)));
        });
        unbind(Place(Some(theirs)));
        // One core that nobody was bound to: the program's own wish.
        in_thread(&|| {
            affinity::set_thread_affinity(affinity::ThreadId(0), first).expect("allowed");
            begin_as(&config, process, parent, false);
            assert_eq!(bind(&config, false), Place(None));
            assert_eq!(CoreSet::of_this_thread(), Ok(CoreSet::only(first)));
        });
        // What the program has bound stays where it is, whatever it has inherited.
        in_thread(&|| {
            let mine = bind(&config, false);
            affinity::set_thread_affinity(affinity::ThreadId(0), cores[1]).expect("allowed");
            CROWDED.store(true, Ordering::Relaxed);
            let mut place = mine;
            loosen(&mut place, &config, true);
            assert_eq!((place, bind(&config, true)), (Place(None), Place(None)));
            assert_eq!(CoreSet::of_this_thread(), Ok(CoreSet::only(cores[1])));
            CROWDED.store(false, Ordering::Relaxed);
            // And from when it binds others nothing is bound.
            program_binds_others();
            assert_eq!(bind(&config, false), Place(None));
            PROGRAM_BINDS.store(false, Ordering::Relaxed);
        });
        // Two of three: the program's own wish. Here that is any set that is not the list.
        let more = [first, CoreId(8000)];
        let strange =
            Config { cores: crate::config::CoreList::new(&more).expect("short"), ..config.clone() };
        in_thread(&|| assert_eq!(bind(&strange, false), Place(None)));
        assert_eq!(CoreSet::of_this_thread(), Ok(all));
    }
}
