//! One run of the experiment: recorded searches, one a core, over a heap of the real allocator
//! whose arena is the simulated memory.
//!
//! Cores take turns, so many expansions each, and their clocks are their own: nothing queues.
//! The order of turns decides only who is given which line first. So a replay counts, and what that took is said
//! afterwards, from the counts ([`Counts::priced`]).

use core::hash::{Hash, Hasher};
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

use isochrone_alloc::{
    Bins, CoreTable, CurrentBases, Heap, Magazines, Mode, Order, PageCodes, Policy, Shared,
    SizeClass, Slot, Tables, UnitLines, Wish,
};
use isochrone_atlas::{Code, PatternTable};
use isochrone_units::{LINE_BYTES, LINES_PER_PAGE};

use super::cache::{Caches, Hit};
use super::constants::Costs;
use super::database::{Database, period_of};
use super::error::Figure4Error;
use super::map::{INDICES, Map, PAGE_LINES};
use super::recording::{Kind, Recording, TABLE_LINES};

/// Expansions of one core before it is the next one's turn.
const TURNS: u32 = 1024;
/// Pages that wait for use before a turn: several times what a turn can need.
const READY_PAGES: u32 = 512;
/// Pages of one core's tables: four of them.
pub(super) const TABLE_PAGES: u32 = 4 * TABLE_LINES / PAGE_LINES;

/// What one core did while it was timed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CoreRun {
    /// Nodes expanded.
    pub expansions: u64,
    /// Cycles that took.
    pub cycles: f64,
    /// Of them, cycles spent waiting for memory.
    pub memory_cycles: f64,
    /// Accesses to nodes that missed both caches.
    pub node_misses: u64,
    /// Accesses to the search's tables that did.
    pub table_misses: u64,
    /// Mean latency from this core of the lines that its nodes were given, cycles.
    pub placed_cycles: f64,
    /// Of these lines the share that truly lies among those that count as near for this core.
    pub near_share: f64,
    /// Which lines memory was read for.
    pub read: Read,
}

/// Lines that were read from memory, by canonical index.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Read(pub [u32; LINES_PER_PAGE]);

impl Default for Read {
    fn default() -> Self {
        Self([0; LINES_PER_PAGE])
    }
}

/// The sizes of one core's caches, in lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CacheLines {
    pub(super) l1: usize,
    pub(super) l2: usize,
}

/// What a run is about.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run<'a> {
    /// The truth about latencies.
    pub(super) map: &'a Map,
    /// What placement believes of them.
    pub(super) database: &'a Database,
    /// Pages that the heap is given; the tables of cores lie behind them.
    pub(super) heap_pages: u32,
    pub(super) caches: CacheLines,
    pub(super) policy: Policy,
}

impl Run<'_> {
    /// What the counts depend on beside orders and recordings. Latencies do not.
    pub(super) fn hash_into(&self, into: &mut impl Hasher) {
        let Policy { mode, waste, slack_bytes, seed, .. } = self.policy;
        (mode, waste.to_bits(), slack_bytes, seed).hash(into);
        (self.heap_pages, self.caches.l1, self.caches.l2).hash(into);
        (&self.map.first_lines, &self.map.keys, &self.database.codes).hash(into);
        let classes = |base: &Option<Vec<_>>| base.as_ref().map(Vec::len);
        self.database.bases.iter().for_each(|base| classes(base).hash(into));
    }
}

/// In which order each core takes lines.
pub(super) struct Orders {
    bins: Bins,
    /// By core.
    bases: Vec<CurrentBases>,
    orders: Vec<Order>,
}

impl Orders {
    pub(super) fn new(run: &Run<'_>, cores: usize) -> Result<Self, Figure4Error> {
        let table = |base: &Option<Vec<Vec<f32>>>| {
            let table = base
                .as_ref()
                .map(|base| PatternTable::new(period_of(base), base.iter().map(Vec::as_slice)));
            table.transpose()
        };
        let tables: Vec<Option<PatternTable>> =
            run.database.bases.iter().map(table).collect::<Result<_, _>>()?;
        let bins = Bins::new(core::iter::empty(), tables.iter().flatten().cloned());
        let current = |base: &Option<PatternTable>| CurrentBases::of(None, base.as_ref());
        let bases: Vec<CurrentBases> = tables.iter().take(cores).map(current).collect();
        let Policy { mode, near, .. } = run.policy;
        // No cache is shared, so what misses is read from memory: the whole share is DRAM's.
        let wish =
            Wish { mode, near, live_bytes: u64::MAX, llc_bytes: 0, l2_bytes: 0, tlb_bytes: 0 };
        let order = |(index, current): (usize, &CurrentBases)| {
            let others = bases.iter().enumerate().filter(|(other, _)| *other != index);
            let others = others.map(|(_, bases)| bases.clone());
            Order::among(&bins, UnitLines::One, current, others, &wish, None)
        };
        let orders = bases.iter().enumerate().map(order).collect();
        Ok(Self { bins, bases, orders })
    }

    /// What a heap does with them: which lines are alike, and how cores take these.
    pub(super) fn hash_into(&self, into: &mut impl Hasher) {
        for code in 0..=u16::from(u8::MAX) {
            let codes = PageCodes { llc: Code::UNKNOWN, dram: Code(code) };
            self.bins.bin(UnitLines::One, codes, 0).hash(into);
        }
        self.bins.count(UnitLines::One).hash(into);
        // All that is in an order, and no latency is.
        self.orders.iter().for_each(|order| format!("{order:?}").hash(into));
    }
}

/// The heap's tables, owned.
struct Owned {
    pages: Vec<AtomicU64>,
    next: Vec<AtomicU32>,
    masks: Vec<AtomicU8>,
    cores: Vec<CoreTable>,
    shared: Shared,
}

impl Owned {
    fn new(run: &Run<'_>, cores: usize) -> Self {
        fn zeroed<T: Default>(count: usize) -> Vec<T> {
            (0..count).map(|_| T::default()).collect()
        }
        let pages = run.heap_pages as usize;
        Self {
            pages: zeroed(pages),
            next: zeroed(pages * LINES_PER_PAGE),
            masks: zeroed(pages * LINES_PER_PAGE),
            cores: zeroed(cores),
            shared: Shared::default(),
        }
    }

    /// A heap without pages, in which every core has its own base. Nodes are single lines, so no other unit has orders.
    fn heap<'a>(&'a self, run: &Run<'_>, orders: &'a Orders) -> Heap<'a> {
        let tables = Tables {
            pages: &self.pages,
            next: &self.next,
            masks: &self.masks,
            owners: &[],
            ranks: &[],
            cores: &self.cores,
            shared: &self.shared,
        };
        let heap = Heap::new(tables, &orders.bins, run.policy);
        for (core, (current, order)) in (0_u16..).zip(orders.bases.iter().zip(&orders.orders)) {
            heap.take_part(core, current);
            heap.set_order(core, order);
        }
        heap
    }
}

/// Brings pages until enough are ready for any turn; those joined so far.
fn bring(run: &Run<'_>, heap: &Heap<'_>, joined: u32) -> u32 {
    let wanted = READY_PAGES.saturating_sub(heap.stats().ready_pages);
    let end = (joined + wanted).min(run.heap_pages);
    for page in joined..end {
        if let Some(code) = run.database.codes.get(page as usize) {
            heap.page_ready(page, PageCodes { llc: Code::UNKNOWN, dram: Code(*code) });
        }
    }
    end
}

/// A line, with what an access asks of the map.
#[derive(Clone, Copy, Debug)]
struct Placed {
    /// In the arena.
    line: u32,
    physical: u32,
    /// Its canonical index.
    index: u8,
}

impl Placed {
    const NOWHERE: Self = Self { line: u32::MAX, physical: 0, index: 0 };
}

/// One core, its search and its caches.
struct Core<'r> {
    index: u16,
    recording: &'r Recording,
    at: usize,
    /// Where each node is.
    nodes: Vec<Placed>,
    /// Where the lines of its tables are.
    tables: Vec<Placed>,
    magazines: Magazines,
    caches: Caches,
    timed: bool,
    did: Counts,
}

/// Where accesses found their lines.
#[derive(Clone, Debug, PartialEq)]
struct Hits {
    l1: u64,
    l2: u64,
    /// By canonical index.
    memory: [u32; INDICES],
}

impl Default for Hits {
    fn default() -> Self {
        Self { l1: 0, l2: 0, memory: [0; INDICES] }
    }
}

impl Hits {
    fn all(&self) -> u64 {
        self.l1 + self.l2 + self.memory.iter().map(|count| u64::from(*count)).sum::<u64>()
    }
}

/// What one core did while it was timed, without how long that took.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Counts {
    expansions: u64,
    /// Cycles of computation, as recorded.
    work: u64,
    node_misses: u64,
    table_misses: u64,
    /// Accesses that wait.
    waits: Hits,
    /// First writes of nodes.
    stores: Hits,
    /// Lines that nodes were given, timed or not, by canonical index.
    placed: Placements,
}

#[derive(Clone, Debug, PartialEq)]
struct Placements([u32; INDICES]);

impl Default for Placements {
    fn default() -> Self {
        Self([0; INDICES])
    }
}

impl Counts {
    /// How long it took core `core`, and how far the lines were: `near` is the part of all lines that counts as near.
    pub(super) fn priced(&self, core: usize, map: &Map, costs: &Costs, near: f32) -> CoreRun {
        // A line's latency is kept in single precision, the bound is not.
        let cycles = map.cycles[core].map(|cycles| f64::from(crate::number::single(cycles)));
        let near_cycles = map.nearest(core, near) * (1.0 + f64::from(f32::EPSILON));
        let sum = |counts: &[u32; INDICES]| -> f64 {
            counts.iter().zip(&cycles).map(|(count, cycles)| f64::from(*count) * cycles).sum()
        };
        let mut run = CoreRun {
            expansions: self.expansions,
            node_misses: self.node_misses,
            table_misses: self.table_misses,
            read: Read(self.waits.memory),
            memory_cycles: sum(&self.waits.memory),
            ..CoreRun::default()
        };
        let [mut l1, mut l2] = [self.waits.l1, self.waits.l2];
        if costs.stores_wait {
            (l1, l2) = (l1 + self.stores.l1, l2 + self.stores.l2);
            run.memory_cycles += sum(&self.stores.memory);
            for (read, store) in run.read.0.iter_mut().zip(&self.stores.memory) {
                *read += store;
            }
        } else {
            l1 += self.stores.all();
        }
        let [work, l1, l2] = [self.work, l1, l2].map(crate::number::real);
        run.cycles = work * costs.work + l1 * costs.l1 + l2 * costs.l2 + run.memory_cycles;
        let placed = &self.placed.0;
        let lines: f64 = placed.iter().map(|count| f64::from(*count)).sum();
        let is_near = |(_, cycles): &(&u32, &f64)| **cycles <= near_cycles;
        let near_lines = placed.iter().zip(&cycles).filter(is_near).map(|(n, _)| f64::from(*n));
        run.near_share = near_lines.sum::<f64>() / lines.max(1.0);
        run.placed_cycles = sum(placed) / lines.max(1.0);
        run
    }
}

impl Core<'_> {
    /// Goes on for a turn; false once the search is over.
    fn turn(&mut self, run: &Run<'_>, heap: &Heap<'_>) -> Result<bool, Figure4Error> {
        let mut turns = 0;
        while let Some(event) = self.recording.events.get(self.at) {
            if event.kind() == Kind::Turn {
                turns += 1;
                if turns > TURNS {
                    return Ok(true);
                }
                self.did.expansions += 1;
            }
            self.at += 1;
            self.did.work += u64::from(event.work());
            let argument = event.argument();
            match event.kind() {
                Kind::New => self.allocate(run, heap, argument)?,
                Kind::Free => self.free(heap, argument),
                Kind::Access => {
                    let at = self.nodes[argument as usize];
                    self.did.node_misses += u64::from(self.access(at));
                }
                Kind::Table => {
                    let at = self.tables[argument as usize];
                    self.did.table_misses += u64::from(self.access(at));
                }
                Kind::Start => {
                    self.timed = true;
                    let placed = core::mem::take(&mut self.did.placed);
                    self.did = Counts { placed, ..Counts::default() };
                }
                Kind::Turn | Kind::Work => {}
            }
        }
        Ok(false)
    }

    fn allocate(&mut self, run: &Run<'_>, heap: &Heap<'_>, name: u32) -> Result<(), Figure4Error> {
        let slot = self.magazines.take(heap, self.index, SizeClass::B64);
        let line = slot.ok_or(Figure4Error::ArenaFull { pages: run.heap_pages })?.line();
        let at = placed(run, line);
        self.nodes[name as usize] = at;
        self.did.placed.0[usize::from(at.index)] += 1;
        found(&mut self.did.stores, self.caches.access(at.physical), at.index);
        Ok(())
    }

    fn free(&mut self, heap: &Heap<'_>, name: u32) {
        let at = core::mem::replace(&mut self.nodes[name as usize], Placed::NOWHERE);
        let slot = Slot::at_offset(at.line as usize * LINE_BYTES);
        let freed = slot.map(|slot| self.magazines.put(heap, self.index, slot));
        debug_assert_eq!(freed, Some(Ok(SizeClass::B64)), "a line that was taken is given back");
    }

    /// Touches a line; whether memory was read.
    #[inline]
    fn access(&mut self, at: Placed) -> bool {
        let hit = self.caches.access(at.physical);
        found(&mut self.did.waits, hit, at.index);
        hit == Hit::Memory
    }
}

#[inline]
fn found(hits: &mut Hits, hit: Hit, index: u8) {
    match hit {
        Hit::L1 => hits.l1 += 1,
        Hit::L2 => hits.l2 += 1,
        Hit::Memory => hits.memory[usize::from(index) % INDICES] += 1,
    }
}

fn placed(run: &Run<'_>, line: u32) -> Placed {
    Placed { line, physical: run.map.physical(line), index: run.map.index(line) }
}

/// The lines of a core's tables: ordinary memory behind the heap, the same in both arms.
fn tables(run: &Run<'_>, core: u16) -> Vec<Placed> {
    let first = (run.heap_pages + u32::from(core) * TABLE_PAGES) * PAGE_LINES;
    (first..first + TABLE_PAGES * PAGE_LINES).map(|line| placed(run, line)).collect()
}

/// Runs one search a core, the first core the first recording; what each did while timed.
pub(super) fn replay(
    run: &Run<'_>,
    orders: &Orders,
    recordings: &[Recording],
) -> Result<Vec<Counts>, Figure4Error> {
    let owned = Owned::new(run, recordings.len());
    let heap = owned.heap(run, orders);
    let core = |(index, recording): (u16, _)| {
        let recording: &Recording = recording;
        Core {
            index,
            recording,
            at: 0,
            nodes: vec![Placed::NOWHERE; recording.names],
            tables: tables(run, index),
            magazines: Magazines::new(),
            caches: Caches::new(run.caches.l1, run.caches.l2),
            timed: false,
            did: Counts::default(),
        }
    };
    let mut cores: Vec<Core<'_>> = (0..).zip(recordings).map(core).collect();
    let (mut busy, mut joined) = (true, 0);
    while busy {
        busy = false;
        for core in &mut cores {
            joined = bring(run, &heap, joined);
            busy |= core.turn(run, &heap)?;
        }
    }
    debug_assert!(cores.iter().all(|core| core.timed), "a recording says where timing begins");
    Ok(cores.into_iter().map(|core| core.did).collect())
}

/// A policy for this experiment: memory for the sake of nearness as in the paper, which
/// "pre-allocates a large chunk of memory" and takes the near blocks of it.
pub(super) fn policy(mode: Mode, near: f32, waste: f32, seed: u64) -> Policy {
    Policy {
        mode,
        near,
        waste,
        slack_bytes: 1 << 20,
        llc_bytes: 0,
        l2_bytes: 0,
        tlb_bytes: 0,
        seed,
        checked: false,
    }
}
