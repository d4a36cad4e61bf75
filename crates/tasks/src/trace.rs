//! What ran where and when, task by task: kept by each worker in a table of fixed size, so that a trace
//! costs the same memory however long a run is. What does not fit is counted.

use isochrone_units::RegionId;

use crate::arena::Arena;
use crate::scheduler::Scheduler;
use crate::sync::{AtomicU64, Ordering};

/// Words of an entry.
pub(crate) const WORDS: usize = 5;

/// A task that ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskEvent {
    /// Its kernel.
    pub kernel: &'static str,
    /// The worker that ran it.
    pub worker: u32,
    /// The worker's region.
    pub region: RegionId,
    /// When it began, by the run's clock.
    pub start_ns: u64,
    /// How long it took, its own waits included.
    pub ns: u64,
    /// Bytes of its ranges in the worker's region.
    pub local_bytes: u64,
    /// Bytes of its ranges in other regions.
    pub remote_bytes: u64,
    /// The region whose queue it was taken from, where that is not the worker's.
    pub stolen_from: Option<RegionId>,
}

/// What a run did, task by task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// Tasks in the order of their workers and, for each, of their ends.
    pub events: Vec<TaskEvent>,
    /// Tasks that found no room.
    pub left_out: u64,
}

/// A task under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begun {
    pub(crate) start_ns: u64,
    pub(crate) kernel: u32,
    pub(crate) local: u64,
    pub(crate) remote: u64,
    /// The region whose queue it came from, plus one; 0 for the worker's own.
    pub(crate) from: u32,
}

/// The words of a seat: how many tasks ended, then the entries.
fn words(arena: &Arena, seat: u32) -> &[AtomicU64] {
    let each = arena.trace.len() / arena.seats.len();
    &arena.trace[seat as usize * each..][..each]
}

impl Begun {
    /// The task is over: its entry is written.
    pub(crate) fn end(self, arena: &Arena, seat: u32, now: u64) {
        let words = words(arena, seat);
        let Some((ended, entries)) = words.split_first() else { return };
        let number = ended.load(Ordering::Relaxed);
        ended.store(number + 1, Ordering::Relaxed);
        let at = usize::try_from(number).unwrap_or(usize::MAX);
        let Some(entry) = entries.chunks_exact(WORDS).nth(at) else { return };
        let what = u64::from(self.kernel) << 32 | u64::from(self.from);
        let values = [self.start_ns, now - self.start_ns, what, self.local, self.remote];
        for (word, value) in entry.iter().zip(values) {
            word.store(value, Ordering::Relaxed);
        }
    }
}

impl Trace {
    /// What all seats wrote; nothing where no trace was asked for.
    pub(crate) fn of(scheduler: &Scheduler) -> Self {
        let arena = &scheduler.arena;
        let mut trace = Self::default();
        for (worker, (_, region)) in (0_u32..).zip(&scheduler.seats) {
            let Some((ended, entries)) = words(arena, worker).split_first() else { continue };
            let ended = usize::try_from(ended.load(Ordering::Relaxed)).unwrap_or(usize::MAX);
            let entries = entries.chunks_exact(WORDS);
            trace.left_out += ended.saturating_sub(entries.len()) as u64;
            trace.events.extend(entries.take(ended).map(|entry| {
                let word = |at: usize| entry[at].load(Ordering::Relaxed);
                let [f0, f1, f2, f3, k0, k1, k2, k3] = word(2).to_le_bytes();
                let kernel = arena.kernel(u32::from_le_bytes([k0, k1, k2, k3]));
                let from = (u32::from_le_bytes([f0, f1, f2, f3]) as usize).checked_sub(1);
                TaskEvent {
                    kernel: kernel.map_or("?", |table| table.name),
                    worker,
                    region: scheduler.topology.region_id(*region),
                    start_ns: word(0),
                    ns: word(1),
                    local_bytes: word(3),
                    remote_bytes: word(4),
                    stolen_from: from.map(|region| scheduler.topology.region_id(region)),
                }
            }));
        }
        trace
    }
}
