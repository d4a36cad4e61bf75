//! What ran where and when, task by task: kept by each worker in a table of fixed size, so that a trace
//! costs the same memory however long a run is. What does not fit is counted.

use isochrone_units::RegionId;

use crate::arena::Arena;
use crate::schedule::Came;
use crate::scheduler::Scheduler;
use crate::sync::{AtomicU64, Ordering};

/// Words of an entry.
pub(crate) const WORDS: usize = 6;

/// A task that ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskEvent {
    /// Its kernel.
    pub kernel: &'static str,
    /// As which of the program's tasks it was registered, from 0; `None` for tasks of tasks.
    pub number: Option<u32>,
    /// How many tasks began before it.
    pub order: u32,
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
    /// Whether the worker had made it ready itself and ran it at once.
    pub successor: bool,
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
    pub(crate) order: u32,
    pub(crate) number: Option<u32>,
    pub(crate) kernel: u32,
    pub(crate) local: u64,
    pub(crate) remote: u64,
    pub(crate) came: Came,
}

/// How a worker came by a task, as a word.
const fn code(came: Came) -> u32 {
    match came {
        Came::Queued => 0,
        Came::Successor => 1,
        Came::Stolen(region) => 2 + region.0 as u32,
    }
}

/// Two numbers in a word.
const fn pair(upper: u32, lower: u32) -> u64 {
    (upper as u64) << 32 | lower as u64
}

/// The upper and the lower number of a word.
const fn halves(word: u64) -> (u32, u32) {
    let [a, b, c, d, e, f, g, h] = word.to_le_bytes();
    (u32::from_le_bytes([e, f, g, h]), u32::from_le_bytes([a, b, c, d]))
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
        let what = pair(self.kernel, code(self.came));
        let which = pair(self.number.map_or(0, |number| number + 1), self.order);
        let values = [self.start_ns, now - self.start_ns, what, self.local, self.remote, which];
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
                let (kernel, came) = halves(word(2));
                let (number, order) = halves(word(5));
                let kernel = arena.kernel(kernel);
                TaskEvent {
                    kernel: kernel.map_or("?", |table| table.name),
                    number: number.checked_sub(1),
                    order,
                    worker,
                    region: scheduler.topology.region_id(*region),
                    start_ns: word(0),
                    ns: word(1),
                    local_bytes: word(3),
                    remote_bytes: word(4),
                    stolen_from: came
                        .checked_sub(2)
                        .map(|id| RegionId(u16::try_from(id).unwrap_or(u16::MAX))),
                    successor: came == code(Came::Successor),
                }
            }));
        }
        trace
    }
}
