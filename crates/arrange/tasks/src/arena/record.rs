//! What a worker writes down of the tasks that it ran: a table of fixed size for each seat, so that a trace costs the
//! same memory however long a run is. What does not fit is counted.

use isochrone_units::RegionId;

use super::capacity::TRACE_WORDS;
use super::whole::Arena;
use crate::sync::{AtomicU64, Ordering};

/// How a worker came by a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Came {
    /// From its own queue.
    Queued,
    /// It had made the task ready itself, and ran it at once.
    Successor,
    /// From the queue of another region.
    Stolen(RegionId),
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
        let Some(entry) = entries.chunks_exact(TRACE_WORDS).nth(at) else { return };
        let what = pair(self.kernel, code(self.came));
        let which = pair(self.number.map_or(0, |number| number + 1), self.order);
        let values = [self.start_ns, now - self.start_ns, what, self.local, self.remote, which];
        for (word, value) in entry.iter().zip(values) {
            word.store(value, Ordering::Relaxed);
        }
    }
}

/// A task that is over, as a seat wrote it down.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) start_ns: u64,
    pub(crate) ns: u64,
    pub(crate) kernel: u32,
    pub(crate) number: Option<u32>,
    pub(crate) order: u32,
    pub(crate) local: u64,
    pub(crate) remote: u64,
    pub(crate) came: Came,
}

/// What a seat wrote down, and how many tasks found no room; nothing where no trace was asked for.
pub(crate) fn entries(arena: &Arena, seat: u32) -> (Vec<Entry>, u64) {
    let Some((ended, entries)) = words(arena, seat).split_first() else { return (Vec::new(), 0) };
    let ended = usize::try_from(ended.load(Ordering::Relaxed)).unwrap_or(usize::MAX);
    let entries = entries.chunks_exact(TRACE_WORDS);
    let left_out = ended.saturating_sub(entries.len()) as u64;
    (entries.take(ended).map(read).collect(), left_out)
}

fn read(entry: &[AtomicU64]) -> Entry {
    let word = |at: usize| entry[at].load(Ordering::Relaxed);
    let (kernel, came) = halves(word(2));
    let (number, order) = halves(word(5));
    Entry {
        start_ns: word(0),
        ns: word(1),
        kernel,
        number: number.checked_sub(1),
        order,
        local: word(3),
        remote: word(4),
        came: decode(came),
    }
}

/// The way that [`code`] made a word of.
fn decode(word: u32) -> Came {
    match word {
        0 => Came::Queued,
        1 => Came::Successor,
        id => Came::Stolen(RegionId(u16::try_from(id - 2).unwrap_or(u16::MAX))),
    }
}
