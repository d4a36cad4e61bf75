//! Everything that workers share: fixed tables whose entries name one another by number, so that they
//! mean the same in threads, in processes that have them mapped, and on a simulated machine.

// Untyped arguments, addresses in shared words and mapped tables need it; each block says why it is right.
#![allow(unsafe_code)]

mod bounds;
mod broken;
pub(crate) mod lock;
pub(crate) mod nest;
pub(crate) mod objects;
pub(crate) mod outbox;
pub(crate) mod pieces;
pub(crate) mod pool;
pub(crate) mod queue;
pub(crate) mod slot;
pub(crate) mod table;

pub use bounds::WORKERS_MAX;
pub(crate) use bounds::{BYTES_MAX, check_workers};
use broken::{Broken, Undone};
use nest::Nest;
use outbox::Outbox;
use pool::{Pool, Shared};
use slot::{BLOCK_ACCESSES, Block, CHILDREN, Edge, INLINE_ACCESSES, NONE, Slot, Stored, TaskRef};
use table::{Table, Zeroed};

use isochrone_os::race;

use crate::error::TaskError;
use crate::kernel;
use crate::sync::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use queue::Queue;

/// How much an arena holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Tasks that are registered and not finished; whoever registers more runs some first.
    pub tasks: u32,
    /// Pairs of a task and one that waits for it.
    pub edges: u32,
    /// Ranges of tasks with more than five of them, in tens.
    pub blocks: u32,
    /// Pieces of data, over the whole run.
    pub data: u32,
    /// Tasks of each worker that a trace keeps; 0 for no trace.
    pub trace: u32,
}

impl Default for Capacity {
    /// 8192 tasks: two MiB, which a second-level cache holds.
    fn default() -> Self {
        Self { tasks: 8192, edges: 1 << 18, blocks: 1 << 14, data: 1 << 16, trace: 0 }
    }
}

/// Whether loom follows every atomic word: then there must be few.
const MODELLED: bool = cfg!(all(loom, test));

/// Kernels that a run may have.
pub(crate) const KERNELS_MAX: usize = if MODELLED { 1 } else { 1024 };
/// Tokens of commutative and reducing ranges; two that share one only wait for each other.
pub(crate) const TOKENS: u16 = if MODELLED { 1 } else { 1024 };

/// Ranges that count as undone one by one, at most.
const BROKEN: u32 = if MODELLED { 1 } else { 256 };

/// The slot of the task that is the program itself.
pub(crate) const ROOT: u32 = 1;

/// Free lists of the arena.
pub(crate) const FREE_SLOTS: usize = 0;
pub(crate) const FREE_EDGES: usize = 1;
pub(crate) const FREE_BLOCKS: usize = 2;

/// A worker as the others see it.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub(crate) struct Seat {
    /// One of [`seat`].
    pub(crate) state: AtomicU32,
    /// Set while the worker waits inside of a task, higher for what is more likely to wait for itself.
    pub(crate) inside: AtomicU32,
    /// The kernel that the worker runs plus one, where workers are processes.
    pub(crate) running: AtomicU32,
    /// The worker's thread as the kernel numbers it, or 0.
    pub(crate) thread: AtomicU32,
    /// Of seats that share cores the first one has [`queue::Group`]'s words.
    pub(crate) group_resting: AtomicU32,
    pub(crate) group_last: AtomicU32,
    /// What the worker counted; only itself writes.
    pub(crate) counts: [AtomicU64; COUNTS],
}

/// Numbers that a worker counts.
pub(crate) const COUNTS: usize = 24;

/// States of a seat.
pub(crate) mod seat {
    /// Has work, or looks for it.
    pub(crate) const AWAKE: u32 = 0;
    /// Looks only at this word, for a while.
    pub(crate) const WATCHING: u32 = 1;
    /// Must be woken by the system.
    pub(crate) const ASLEEP: u32 = 2;
    /// Must be woken by the system, and comes back by itself.
    pub(crate) const DOZING: u32 = 3;
}

/// Who waits for a range that one task at a time may use.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct Token {
    pub(crate) lock: lock::Lock,
    /// The task that has it, or none.
    pub(crate) holder: AtomicU32,
    /// First and last of those that wait.
    pub(crate) first: AtomicU32,
    pub(crate) last: AtomicU32,
}

/// A registered piece of memory.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct Object {
    /// Address of its first byte; 0 on a simulated machine.
    pub(crate) base: AtomicUsize,
    pub(crate) bytes: AtomicU64,
    /// Address of the words that tell where its pages live.
    pub(crate) homes: AtomicUsize,
    /// Bytes of one such word, as a power of two; the state above.
    pub(crate) shift: AtomicU32,
    /// One of [`object`].
    pub(crate) state: AtomicU32,
}

/// States of an object.
pub(crate) mod object {
    pub(crate) const ABSENT: u32 = 0;
    pub(crate) const LIVE: u32 = 1;
    pub(crate) const FREED: u32 = 2;
}

/// Words of the whole run.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub(crate) struct Run {
    /// Set when workers shall end.
    pub(crate) stop: AtomicU32,
    /// Tasks of which some failed, and one more while ranges are undone; most runs never look further.
    pub(crate) failures: AtomicU32,
    /// Ranges that are undone: entries of their table that are in use.
    broken: AtomicU32,
    /// Seats that are asleep.
    pub(crate) asleep: AtomicU32,
    /// Seats that were woken from sleep so far.
    pub(crate) wakes: AtomicU32,
    /// The worker, plus one, that shall give up waiting: all slept.
    pub(crate) deadlock: AtomicU32,
    /// Kernels known so far.
    pub(crate) kernels: AtomicU32,
    /// Queue for the next task that is dealt.
    pub(crate) deal: AtomicU32,
    /// Tasks of the program that got a number, and tasks that began, where a trace is kept.
    pub(crate) numbered: AtomicU32,
    pub(crate) begun: AtomicU32,
    /// Guards the first failure, and the ranges that are undone.
    pub(crate) failure_lock: lock::Lock,
    /// Whether the program has registered tasks for which it has not waited.
    pub(crate) busy: AtomicU32,
    /// Bytes of the first failure's text, its kernel plus one, and the slot of the task that is to be told.
    pub(crate) failure_len: AtomicU32,
    pub(crate) failure_kernel: AtomicU32,
    pub(crate) failure_of: AtomicU32,
    pub(crate) failure_text: [AtomicU64; FAILURE_WORDS],
}

/// Words of a failure's text; what is longer is cut.
pub(crate) const FAILURE_WORDS: usize = if MODELLED { 1 } else { 32 };

// SAFETY: all fields of these are atomics.
#[cfg(not(all(loom, test)))]
mod zeroed {
    use super::{Broken, Object, Run, Seat, Token, Zeroed};
    // SAFETY: all fields are atomics.
    unsafe impl Zeroed for Seat {}
    // SAFETY: as above.
    unsafe impl Zeroed for Token {}
    // SAFETY: as above.
    unsafe impl Zeroed for Object {}
    // SAFETY: as above.
    unsafe impl Zeroed for Run {}
    // SAFETY: as above.
    unsafe impl Zeroed for Broken {}
}

/// The tables.
#[derive(Debug)]
pub(crate) struct Arena {
    pub(crate) slots: Table<Slot>,
    pub(crate) edges: Table<Edge>,
    pub(crate) blocks: Table<Block>,
    /// Pools of slots, edges and blocks, and their lists.
    pools: Table<Shared>,
    lists: [Table<AtomicU32>; 3],
    pub(crate) seats: Table<Seat>,
    pub(crate) outboxes: Table<Outbox>,
    pub(crate) nests: Table<Nest>,
    pub(crate) tokens: Table<Token>,
    pub(crate) objects: Table<Object>,
    /// Ranges that are undone.
    broken: Table<Broken>,
    pub(crate) kernels: Table<AtomicUsize>,
    pub(crate) queues: Table<Queue>,
    /// Rings of all queues, one after the other.
    pub(crate) rings: Table<AtomicU32>,
    /// Heaps of all queues, two words an entry.
    pub(crate) heaps: Table<AtomicU64>,
    pub(crate) run: Table<Run>,
    /// Tasks that ran, by seat; empty where nobody asked.
    pub(crate) trace: Table<AtomicU64>,
    /// Numbers of the program's tasks plus one, by slot; empty where nobody asked for a trace.
    pub(crate) numbers: Table<AtomicU32>,
}

/// Where tables come from.
pub(crate) trait Provide {
    /// Whether there is room for the tables of so many workers and queues.
    fn admits(&mut self, _: Capacity, _workers: usize, _queues: usize) -> Result<(), TaskError> {
        Ok(())
    }

    /// `count` entries of zeroes.
    fn table<T: Zeroed + Send + 'static>(&mut self, count: usize) -> Table<T>;
}

/// Tables on the heap.
#[derive(Debug)]
pub(crate) struct Heap;

impl Provide for Heap {
    fn admits(
        &mut self,
        capacity: Capacity,
        workers: usize,
        queues: usize,
    ) -> Result<(), TaskError> {
        capacity.try_heap(workers, queues)
    }

    fn table<T: Zeroed + Send + 'static>(&mut self, count: usize) -> Table<T> {
        Table::heap(count)
    }
}

impl Arena {
    pub(crate) fn new(
        from: &mut impl Provide,
        capacity: Capacity,
        workers: usize,
        queues: usize,
    ) -> Self {
        let least = |count: u32, each: usize| match MODELLED {
            true => count as usize + 2,
            false => count.max(64) as usize + each * workers,
        };
        let slots = least(capacity.tasks, 16);
        let ring = slots.next_power_of_two();
        let (edges, blocks) = (least(capacity.edges, 4), least(capacity.blocks, 4));
        let arena = Self {
            slots: from.table(slots),
            edges: from.table(edges),
            blocks: from.table(blocks),
            pools: from.table(3),
            lists: [slots, edges, blocks].map(|entries| from.table(entries)),
            seats: from.table(workers),
            outboxes: from.table(workers),
            nests: from.table(workers),
            tokens: from.table(usize::from(TOKENS)),
            objects: from.table(capacity.data.max(1) as usize),
            broken: from.table(BROKEN as usize),
            kernels: from.table(KERNELS_MAX),
            queues: from.table(queues),
            rings: from.table(ring * queues),
            heaps: from.table(2 * slots * queues),
            run: from.table(1),
            trace: from.table(match capacity.trace {
                0 => 0,
                tasks => workers * (1 + crate::trace::WORDS * tasks as usize),
            }),
            numbers: from.table(if capacity.trace > 0 { slots } else { 0 }),
        };
        let root = &arena.slots[ROOT as usize];
        root.children.store(CHILDREN, Ordering::Relaxed);
        root.kernel.store(u32::MAX, Ordering::Relaxed);
        arena.pools[FREE_SLOTS].begin_at(ROOT + 1);
        arena
    }

    #[inline]
    pub(crate) fn run(&self) -> &Run {
        &self.run[0]
    }

    /// Whether a seat has work, or looks for it.
    #[inline]
    pub(crate) fn is_awake(&self, seat: u32) -> bool {
        self.seats[seat as usize].state.load(Ordering::Relaxed) == seat::AWAKE
    }

    /// Ranges that tasks which failed left undone.
    pub(crate) fn undone(&self) -> Undone<'_> {
        let Run { failure_lock, failures, broken, .. } = self.run();
        Undone { entries: &self.broken, count: broken, failures, lock: failure_lock }
    }

    /// Free slots, edges or blocks.
    #[inline]
    pub(crate) fn pool(&self, which: usize) -> Pool<'_> {
        Pool { shared: &self.pools[which], list: &self.lists[which] }
    }

    #[inline]
    pub(crate) fn slot(&self, slot: u32) -> &Slot {
        &self.slots[slot as usize]
    }

    /// Whether the task has not finished.
    #[inline]
    pub(crate) fn is_live(&self, task: TaskRef) -> bool {
        let successors = &self.slot(task.slot).successors;
        let live = age(successors.load(Ordering::Acquire)) == task.age;
        if !live {
            race::acquire(successors);
        }
        live
    }

    /// Slots of those that wait for a task, as of now.
    pub(crate) fn followers(&self, task: u32) -> impl Iterator<Item = u32> {
        let mut edge = head(self.slot(task).successors.load(Ordering::Acquire));
        core::iter::from_fn(move || {
            let entry = (edge != NONE).then(|| &self.edges[edge as usize])?;
            edge = entry.next.load(Ordering::Relaxed);
            Some(entry.to.load(Ordering::Relaxed))
        })
    }

    /// Ranges of a task.
    #[inline]
    pub(crate) fn accesses(&self, slot: u32) -> Accesses<'_> {
        let slot = self.slot(slot);
        Accesses {
            arena: self,
            slot,
            left: slot.accesses.load(Ordering::Relaxed) as usize,
            at: 0,
            block: NONE,
        }
    }

    /// The number of a kernel, which gets one when it is first asked for; `None` for too many.
    pub(crate) fn kernel_id(&self, table: &'static kernel::Table) -> Option<u32> {
        let address = core::ptr::from_ref(table).expose_provenance();
        for (id, word) in (0_u32..).zip(self.kernels.iter()) {
            let found = match word.load(Ordering::Acquire) {
                0 => word
                    .compare_exchange(0, address, Ordering::AcqRel, Ordering::Acquire)
                    .map_or_else(|found| found, |_| address),
                found => found,
            };
            if found == address {
                return Some(id);
            }
        }
        None
    }

    /// Ends the arguments of a task that will not run.
    pub(crate) fn discard(&self, task: u32) {
        let slot = self.slot(task);
        let table = self.kernel(slot.kernel.load(Ordering::Relaxed));
        if let Some((table, discard)) = table.and_then(|table| Some((table, table.discard?))) {
            // SAFETY: whoever registered the task put arguments of this kernel here, and the slot is
            // free for others only after the task has ended.
            discard(table, &unsafe { slot.arguments.held() });
        }
    }

    /// The kernel with this number, as far as there is one.
    pub(crate) fn kernel(&self, id: u32) -> Option<&'static kernel::Table> {
        let address = self.kernels.get(id as usize)?.load(Ordering::Acquire);
        // SAFETY: the word is zero or what `kernel_id` put there: the address of a table that lives as
        // long as the program. Processes that share the arena are forks of one another, so the address
        // means the same to all.
        (address != 0).then(|| unsafe { &*core::ptr::with_exposed_provenance(address) })
    }
}

/// The age in a word of `successors`.
#[inline]
pub(crate) fn age(word: u64) -> u32 {
    let [.., a, b, c, d] = word.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

/// The first edge in a word of `successors`.
#[inline]
pub(crate) fn head(word: u64) -> u32 {
    let [a, b, c, d, ..] = word.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

/// Ranges of a task, one by one.
#[derive(Debug)]
pub(crate) struct Accesses<'a> {
    arena: &'a Arena,
    slot: &'a Slot,
    left: usize,
    at: usize,
    block: u32,
}

impl Iterator for Accesses<'_> {
    type Item = Stored;

    #[inline]
    fn next(&mut self) -> Option<Stored> {
        self.left = self.left.checked_sub(1)?;
        if self.block == NONE && self.at < INLINE_ACCESSES {
            let cell = &self.slot.first[self.at];
            self.at += 1;
            return Some(cell.get());
        }
        if self.block == NONE {
            (self.block, self.at) = (self.slot.more.load(Ordering::Relaxed), 0);
        } else if self.at == BLOCK_ACCESSES {
            let next = self.arena.blocks[self.block as usize].next.load(Ordering::Relaxed);
            (self.block, self.at) = (next, 0);
        }
        let cell = &self.arena.blocks[self.block as usize].cells[self.at];
        self.at += 1;
        Some(cell.get())
    }
}
