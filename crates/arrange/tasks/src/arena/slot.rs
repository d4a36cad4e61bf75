//! One task in the arena: its state, its arguments, and its first ranges. Four cache lines, so that a
//! task without ranges costs whoever runs it two.

use super::arguments::Arguments;
#[cfg(not(all(loom, test)))]
use super::table::Zeroed;
use crate::footprint::{Mode, Op};
use crate::range::{DataId, Range};
use crate::sync::{AtomicI32, AtomicU32, AtomicU64, Ordering};

/// No entry: what links and heads hold at their end.
pub(crate) const NONE: u32 = 0;

/// Ranges that a slot holds itself; more lie in blocks.
pub(crate) const INLINE_ACCESSES: usize = 5;

/// A task: which slot, and which of the tasks that the slot has held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TaskRef {
    pub(crate) slot: u32,
    pub(crate) age: u32,
}

impl TaskRef {
    /// Both in one word, to be compared at once.
    #[inline]
    pub(crate) fn key(self) -> u64 {
        u64::from(self.age) << 32 | u64::from(self.slot)
    }
}

/// A task's state. Fields without another word are written by whoever registers the task, before it
/// can be found, and only read afterwards.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub(crate) struct Slot {
    /// Age in the upper half, first edge to a successor in the lower. A finished task raises the age,
    /// so that nobody can wait for it any more.
    pub(crate) successors: AtomicU64,
    /// Tasks that this one waits for, and one while it is being registered. Changed by all.
    pub(crate) pending: AtomicU32,
    /// Which kernel.
    pub(crate) kernel: AtomicU32,
    /// The slot of the task that registered this one.
    pub(crate) parent: AtomicU32,
    /// Its priority.
    pub(crate) priority: AtomicI32,
    /// Bits of [`flag`]. Changed by all.
    pub(crate) flags: AtomicU32,
    /// How many ranges.
    pub(crate) accesses: AtomicU32,
    /// First block of further ranges.
    pub(crate) more: AtomicU32,
    /// The next in a list of free slots, or of tasks that wait for a token.
    pub(crate) next: AtomicU32,
    /// Queue that the task must go to plus one, or 0.
    pub(crate) hint: AtomicU32,
    /// [`CHILDREN`] less the children that finished. Changed by all.
    pub(crate) children: AtomicU32,
    /// Value of `children` at which somebody wants to be woken; 0 where nobody does.
    pub(crate) target: AtomicU32,
    /// Who wants to be woken: the worker's number plus one.
    pub(crate) waiter: AtomicU32,
    /// Fills the line.
    spare: AtomicU64,
    pub(crate) arguments: Arguments,
    pub(crate) first: [AccessCell; INLINE_ACCESSES],
}

/// What `children` of a task holds before a child has finished.
pub(crate) const CHILDREN: u32 = 1 << 31;

/// Bits of a task's flags.
pub(crate) mod flag {
    /// Somebody waits for this entry to have no predecessor; it goes to no queue.
    pub(crate) const SENTINEL: u32 = 1;
    /// The task, or one of its children, failed.
    pub(crate) const FAILED: u32 = 2;
    /// The task needs tokens to run.
    pub(crate) const TOKENS: u32 = 4;
    /// Nobody can wait for the task: it has no ranges, and no name was given out.
    pub(crate) const UNNAMED: u32 = 8;
    /// The task has neither arguments nor ranges.
    pub(crate) const BARE: u32 = 16;
    /// The task's children that have not begun are left out, and theirs: somebody asked for it. Beside `FAILED`.
    pub(crate) const CANCELLED: u32 = 32;
}

impl Slot {
    /// Asks for the slot's first `lines` for writing, without waiting for them.
    #[inline]
    pub(crate) fn claim(&self, lines: u8) {
        for line in 0..usize::from(lines) {
            isochrone_os::cache::claim_line(
                core::ptr::from_ref(self).cast::<u8>().wrapping_add(64 * line),
            );
        }
    }
}

/// Lines of a slot that a task needs who registers it, and who runs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lines {
    pub(crate) registers: u8,
    pub(crate) runs: u8,
}

/// State, arguments and the first ranges.
pub(crate) const ALL_LINES: u8 = 3;

/// Lines of a task with so many ranges, and whether it has nothing else.
pub(crate) const fn lines_of(ranges: u32, bare: bool) -> u8 {
    match (ranges, bare) {
        (0, true) => 1,
        (0, false) => 2,
        _ => ALL_LINES,
    }
}

// SAFETY: all fields are atomics but the arguments, whose bytes mean nothing before they are written;
// nothing is dropped.
#[cfg(not(all(loom, test)))]
unsafe impl Zeroed for Slot {}

/// A range of a task.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct AccessCell {
    /// Data in the lower half; mode, operation and token above.
    what: AtomicU64,
    start: AtomicU64,
    bytes: AtomicU64,
}

/// A range of a task, as a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) range: Range,
    pub(crate) mode: Mode,
    /// Token that guards the range, plus one; 0 where none does.
    pub(crate) token: u16,
}

impl AccessCell {
    #[inline]
    pub(crate) fn put(&self, access: Stored) {
        let what = u64::from(access.range.data.0)
            | u64::from(code(access.mode)) << 32
            | u64::from(access.token) << 48;
        self.what.store(what, Ordering::Relaxed);
        self.start.store(access.range.start, Ordering::Relaxed);
        self.bytes.store(access.range.bytes, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn get(&self) -> Stored {
        let [a, b, c, d, mode, _, t0, t1] = self.what.load(Ordering::Relaxed).to_le_bytes();
        let range = Range {
            data: DataId(u32::from_le_bytes([a, b, c, d])),
            start: self.start.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
        };
        Stored { range, mode: decode(mode), token: u16::from_le_bytes([t0, t1]) }
    }
}

const fn code(mode: Mode) -> u8 {
    match mode {
        Mode::In => 0,
        Mode::Out => 1,
        Mode::InOut => 2,
        Mode::Commutative => 3,
        Mode::Reduce(Op::Sum) => 4,
        Mode::Reduce(Op::Min) => 5,
        Mode::Reduce(Op::Max) => 6,
    }
}

const fn decode(code: u8) -> Mode {
    match code {
        0 => Mode::In,
        1 => Mode::Out,
        3 => Mode::Commutative,
        4 => Mode::Reduce(Op::Sum),
        5 => Mode::Reduce(Op::Min),
        6 => Mode::Reduce(Op::Max),
        _ => Mode::InOut,
    }
}

/// Further ranges of a task.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub(crate) struct Block {
    pub(crate) cells: [AccessCell; BLOCK_ACCESSES],
    /// The next block, of the task or of the free ones.
    pub(crate) next: AtomicU32,
}

/// Ranges in a block.
pub(crate) const BLOCK_ACCESSES: usize = 10;

// SAFETY: all fields are atomics.
#[cfg(not(all(loom, test)))]
unsafe impl Zeroed for Block {}

/// A successor of a task.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct Edge {
    /// The slot of the task that waits.
    pub(crate) to: AtomicU32,
    /// The next edge, of the same predecessor or of the free ones.
    pub(crate) next: AtomicU32,
}

// SAFETY: all fields are atomics.
#[cfg(not(all(loom, test)))]
unsafe impl Zeroed for Edge {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_read_as_it_was_put() {
        let modes = [
            Mode::In,
            Mode::Out,
            Mode::InOut,
            Mode::Commutative,
            Mode::Reduce(Op::Sum),
            Mode::Reduce(Op::Min),
            Mode::Reduce(Op::Max),
        ];
        for mode in modes {
            let range = Range { data: DataId(u32::MAX), start: 1 << 60, bytes: 3 };
            let access = Stored { range, mode, token: 0xfedc };
            let cell = AccessCell::default();
            cell.put(access);
            assert_eq!(cell.get(), access);
        }
    }

    #[cfg(not(any(loom, shuttle)))]
    #[test]
    fn a_slot_is_four_lines_and_state_is_one() {
        assert_eq!(size_of::<Slot>(), 256);
        assert_eq!(core::mem::offset_of!(Slot, arguments), 64);
        assert_eq!((size_of::<Edge>(), size_of::<AccessCell>()), (8, 24));
    }
}
