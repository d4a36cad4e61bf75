//! The arena itself: its tables, where they come from, and what is found in them.

use super::broken::{Broken, Undone};
use super::capacity::{BROKEN, Capacity, KERNELS_MAX, MODELLED, TOKENS, TRACE_WORDS};
use super::entries::{Object, Run, Seat, Token, seat};
use super::kind::KernelKind;
use super::nest::Nest;
use super::outbox::Outbox;
use super::pool::{Pool, Shared};
use super::queue::{Queue, Ready};
use super::slot::{
    BLOCK_ACCESSES, Block, CHILDREN, Edge, INLINE_ACCESSES, NONE, Slot, Stored, TaskRef,
};
use super::table::{Table, Zeroed};

use isochrone_os::race;

use crate::error::TaskError;
use crate::sync::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// The slot of the task that is the program itself.
pub(crate) const ROOT: u32 = 1;

/// Free lists of the arena.
pub(crate) const FREE_SLOTS: usize = 0;
pub(crate) const FREE_EDGES: usize = 1;
pub(crate) const FREE_BLOCKS: usize = 2;

/// The tables.
#[derive(Debug)]
pub(crate) struct Arena {
    pub(crate) slots: Table<Slot>,
    pub(crate) edges: Table<Edge>,
    pub(crate) blocks: Table<Block>,
    /// Pools of slots, edges and blocks, and their lists.
    pub(super) pools: Table<Shared>,
    pub(super) lists: [Table<AtomicU32>; 3],
    pub(crate) seats: Table<Seat>,
    pub(crate) outboxes: Table<Outbox>,
    pub(crate) nests: Table<Nest>,
    pub(crate) tokens: Table<Token>,
    pub(crate) objects: Table<Object>,
    /// Ranges that are undone.
    pub(super) broken: Table<Broken>,
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
                tasks => workers * (1 + TRACE_WORDS * tasks as usize),
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

    /// Queue `index`.
    #[inline]
    pub(crate) fn ready(&self, index: usize) -> Ready<'_> {
        let (queues, ring) = (self.queues.len(), self.rings.len() / self.queues.len());
        let heap = self.heaps.len() / queues;
        Ready {
            queue: &self.queues[index],
            ring: &self.rings[index * ring..(index + 1) * ring],
            heap: &self.heaps[index * heap..(index + 1) * heap],
        }
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
    pub(crate) fn kernel_id(&self, kind: &'static KernelKind) -> Option<u32> {
        let address = core::ptr::from_ref(kind).expose_provenance();
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
        let kind = self.kernel(slot.kernel.load(Ordering::Relaxed));
        if let Some(discard) = kind.and_then(|kind| kind.discard) {
            // SAFETY: whoever registered the task put arguments of this kernel here, and the slot is
            // free for others only after the task has ended.
            discard.end(&unsafe { slot.arguments.held() });
        }
    }

    /// The kernel with this number, as far as there is one.
    pub(crate) fn kernel(&self, id: u32) -> Option<&'static KernelKind> {
        let address = self.kernels.get(id as usize)?.load(Ordering::Acquire);
        // SAFETY: the word is zero or what `kernel_id` put there: the address of a kind that lives as
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
