//! One run of the experiment: recorded searches, one a core, over a heap of the real allocator
//! whose arena is the simulated memory.
//!
//! Cores take turns, so many expansions each, and their clocks are their own: nothing queues.
//! The order of turns decides only who is given which line first.

use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

use isochrone_alloc::{
    Bins, CoreTable, CurrentBases, Heap, Magazines, Mode, Order, PageCodes, Policy, Shared,
    SizeClass, Slot, Tables, UnitLines, Wish,
};
use isochrone_atlas::{Code, PatternTable};
use isochrone_units::{LINE_BYTES, LINES_PER_PAGE};

use super::Figure4Error;
use super::cache::{Caches, Hit};
use super::constants::Costs;
use super::database::{Database, period_of};
use super::map::{Map, PAGE_LINES};
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
    pub(super) costs: Costs,
    pub(super) policy: Policy,
}

/// The heap's tables, owned.
struct Owned {
    pages: Vec<AtomicU64>,
    next: Vec<AtomicU32>,
    masks: Vec<AtomicU8>,
    cores: Vec<CoreTable>,
    shared: Shared,
    bins: Bins,
    /// By core.
    bases: Vec<Option<PatternTable>>,
}

impl Owned {
    fn new(run: &Run<'_>, cores: usize) -> Result<Self, Figure4Error> {
        fn zeroed<T: Default>(count: usize) -> Vec<T> {
            (0..count).map(|_| T::default()).collect()
        }
        let pages = run.heap_pages as usize;
        let table = |base: &Option<Vec<Vec<f32>>>| {
            let table = base
                .as_ref()
                .map(|base| PatternTable::new(period_of(base), base.iter().map(Vec::as_slice)));
            table.transpose()
        };
        let bases: Vec<Option<PatternTable>> =
            run.database.bases.iter().map(table).collect::<Result<_, _>>()?;
        Ok(Self {
            pages: zeroed(pages),
            next: zeroed(pages * LINES_PER_PAGE),
            masks: zeroed(pages * LINES_PER_PAGE),
            cores: zeroed(cores),
            shared: Shared::default(),
            bins: Bins::new(core::iter::empty(), bases.iter().flatten().cloned()),
            bases,
        })
    }

    /// A heap without pages, in which every core has its own base.
    fn heap(&self, run: &Run<'_>) -> Heap<'_> {
        let tables = Tables {
            pages: &self.pages,
            next: &self.next,
            masks: &self.masks,
            owners: &[],
            ranks: &[],
            cores: &self.cores,
            shared: &self.shared,
        };
        let heap = Heap::new(tables, &self.bins, run.policy);
        let Policy { mode, near, .. } = run.policy;
        // No cache is shared, so what misses is read from memory: the whole share is DRAM's.
        let wish =
            Wish { mode, near, live_bytes: u64::MAX, llc_bytes: 0, l2_bytes: 0, tlb_bytes: 0 };
        let current = |base: &Option<PatternTable>| CurrentBases::of(None, base.as_ref());
        let bases: Vec<CurrentBases> =
            self.bases.iter().take(self.cores.len()).map(current).collect();
        for (core, (index, current)) in (0_u16..).zip(bases.iter().enumerate()) {
            heap.set_bases(core, current);
            for unit in UnitLines::ALL {
                let others = bases.iter().enumerate().filter(|(other, _)| *other != index);
                let others = others.map(|(_, bases)| bases.clone());
                let order = Order::among(&self.bins, unit, current, others, &wish, None);
                heap.set_order(core, &order);
            }
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
    /// Latency from the core that holds it.
    cycles: f32,
    /// Its canonical index.
    index: u8,
}

impl Placed {
    const NOWHERE: Self = Self { line: u32::MAX, physical: 0, cycles: f32::NAN, index: 0 };
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
    clock: f64,
    did: CoreRun,
    /// The latency that near lines do not exceed, cycles.
    near_cycles: f64,
    placed: Sums,
}

/// Sums over the lines that nodes were given.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    cycles: f64,
    lines: u64,
    near_lines: u64,
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
            self.clock += f64::from(event.work()) * run.costs.work;
            let argument = event.argument();
            match event.kind() {
                Kind::New => self.allocate(run, heap, argument)?,
                Kind::Free => self.free(heap, argument),
                Kind::Access => {
                    let at = self.nodes[argument as usize];
                    self.did.node_misses += u64::from(self.access(run, at, true));
                }
                Kind::Table => {
                    let at = self.tables[argument as usize];
                    self.did.table_misses += u64::from(self.access(run, at, true));
                }
                Kind::Start => {
                    self.timed = true;
                    (self.clock, self.did) = (0.0, CoreRun::default());
                }
                Kind::Turn | Kind::Work => {}
            }
        }
        Ok(false)
    }

    fn allocate(&mut self, run: &Run<'_>, heap: &Heap<'_>, name: u32) -> Result<(), Figure4Error> {
        let slot = self.magazines.take(heap, self.index, SizeClass::B64);
        let line = slot.ok_or(Figure4Error::ArenaFull { pages: run.heap_pages })?.line();
        let at = placed(run, self.index, line);
        self.nodes[name as usize] = at;
        self.placed.cycles += f64::from(at.cycles);
        self.placed.lines += 1;
        // A line's latency is kept in single precision, the bound is not.
        let is_near = f64::from(at.cycles) <= self.near_cycles * (1.0 + f64::from(f32::EPSILON));
        self.placed.near_lines += u64::from(is_near);
        self.access(run, at, run.costs.stores_wait);
        Ok(())
    }

    fn free(&mut self, heap: &Heap<'_>, name: u32) {
        let at = core::mem::replace(&mut self.nodes[name as usize], Placed::NOWHERE);
        let slot = Slot::at_offset(at.line as usize * LINE_BYTES);
        let freed = slot.map(|slot| self.magazines.put(heap, self.index, slot));
        debug_assert_eq!(freed, Some(Ok(SizeClass::B64)), "a line that was taken is given back");
    }

    /// Touches a line; whether memory was read for an access that waits.
    #[inline]
    fn access(&mut self, run: &Run<'_>, at: Placed, waits: bool) -> bool {
        let hit = self.caches.access(at.physical);
        if !waits {
            self.clock += run.costs.l1;
            return false;
        }
        match hit {
            Hit::L1 => self.clock += run.costs.l1,
            Hit::L2 => self.clock += run.costs.l2,
            Hit::Memory => {
                self.clock += f64::from(at.cycles);
                self.did.memory_cycles += f64::from(at.cycles);
                self.did.read.0[usize::from(at.index)] += 1;
            }
        }
        hit == Hit::Memory
    }
}

fn placed(run: &Run<'_>, core: u16, line: u32) -> Placed {
    let cycles = crate::number::single(run.map.latency(usize::from(core), line));
    Placed { line, physical: run.map.physical(line), cycles, index: run.map.index(line) }
}

/// The lines of a core's tables: ordinary memory behind the heap, the same in both arms.
fn tables(run: &Run<'_>, core: u16) -> Vec<Placed> {
    let first = (run.heap_pages + u32::from(core) * TABLE_PAGES) * PAGE_LINES;
    (first..first + TABLE_PAGES * PAGE_LINES).map(|line| placed(run, core, line)).collect()
}

/// Runs one search a core, the first core the first recording; what each did while timed.
pub(super) fn replay(
    run: &Run<'_>,
    recordings: &[Recording],
) -> Result<Vec<CoreRun>, Figure4Error> {
    let owned = Owned::new(run, recordings.len())?;
    let heap = owned.heap(run);
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
            clock: 0.0,
            did: CoreRun::default(),
            near_cycles: run.map.nearest(usize::from(index), run.policy.near),
            placed: Sums::default(),
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
    let did = |core: &Core<'_>| {
        debug_assert!(core.timed, "a recording says where timing begins");
        let lines = crate::number::real(core.placed.lines.max(1));
        let placed_cycles = core.placed.cycles / lines;
        let near_share = crate::number::real(core.placed.near_lines) / lines;
        CoreRun { cycles: core.clock, placed_cycles, near_share, ..core.did }
    };
    Ok(cores.iter().map(did).collect())
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
