//! A search, once, as the list of what it does to memory: the same list for every arm, since a
//! search never looks at an address. Recorded through [`Nodes`] and [`Tally`] from the very code
//! that runs live.

use core::cell::RefCell;

use super::constants::work_cycles;
use super::error::Figure4Error;
use crate::astar::{Ended, Hashed, Linear, Puzzle, Step, Table, Tally, korf};
use crate::nodes::{Nodes, Shape, Slab, SlabPtr};
use crate::number::wide;

/// Entries of a table in a line: pointers of eight bytes.
const ENTRIES_PER_LINE: usize = 8;
/// Lines that one table may have.
pub(super) const TABLE_LINES: u32 = 1 << 12;

/// Nodes of the largest search: as many as the hash table's lines have heads for.
const MOST_NODES: usize = ENTRIES_PER_LINE << 12;
const _: () = assert!(MOST_NODES == ENTRIES_PER_LINE * TABLE_LINES as usize);

/// One thing that a search does, in 32 bits: kind in 3, computation in cycles before it in 8,
/// argument in 21.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Event(u32);

/// What happens at an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The node of this name is allocated and written.
    New,
    /// It is freed.
    Free,
    /// It is read, or read and changed.
    Access,
    /// A line of the tables is read or written.
    Table,
    /// An expansion begins.
    Turn,
    /// From here on everything is timed.
    Start,
    /// Only computation.
    Work,
}

const KINDS: [Kind; 7] =
    [Kind::New, Kind::Free, Kind::Access, Kind::Table, Kind::Turn, Kind::Start, Kind::Work];
const WORK_BITS: u32 = 8;
const WORK_MOST: u32 = (1 << WORK_BITS) - 1;
const ARGUMENT_SHIFT: u32 = 3 + WORK_BITS;

impl Event {
    fn new(kind: Kind, work: u32, argument: u32) -> Self {
        debug_assert!(argument < 1 << (32 - ARGUMENT_SHIFT), "{kind:?} {argument}");
        Self(kind as u32 | work.min(WORK_MOST) << 3 | argument << ARGUMENT_SHIFT)
    }

    pub(super) fn kind(self) -> Kind {
        KINDS[(self.0 & 7).min(6) as usize]
    }

    /// Computation before it, cycles.
    pub(super) fn work(self) -> u32 {
        self.0 >> 3 & WORK_MOST
    }

    pub(super) fn argument(self) -> u32 {
        self.0 >> ARGUMENT_SHIFT
    }
}

/// Everything that one search does.
#[derive(Clone, Debug, Default)]
pub(super) struct Recording {
    pub(super) events: Vec<Event>,
    /// Names of nodes are below this.
    pub(super) names: usize,
    /// Of all boards expanded.
    pub(super) checksum: u64,
}

/// Which shape of A*, and how much of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchPlan {
    /// Hash table and bucket queue: everything after `before` nodes are held is timed, until
    /// `nodes` are.
    Hashed {
        /// Nodes held when timing begins.
        before: usize,
        /// Nodes held at the end.
        nodes: usize,
    },
    /// Linear lists: once `nodes` are held, one expansion fills the caches and the next
    /// `expansions` are timed.
    Linear {
        /// Nodes held when timing begins.
        nodes: usize,
        /// Expansions timed.
        expansions: u64,
    },
}

#[derive(Debug, Default)]
struct Log {
    events: Vec<Event>,
    work: u32,
    /// Line last touched of each table.
    last: [Option<u32>; 4],
}

impl Log {
    fn put(&mut self, kind: Kind, argument: u32) {
        while self.work > WORK_MOST {
            self.events.push(Event::new(Kind::Work, WORK_MOST, 0));
            self.work -= WORK_MOST;
        }
        self.events.push(Event::new(kind, self.work, argument));
        self.work = 0;
    }
}

/// A slab whose accesses are written down; only allocations where `ACCESSES` is false.
struct Recorded<'l, S: Shape, const ACCESSES: bool> {
    slab: &'l mut Slab<S>,
    log: &'l RefCell<Log>,
}

impl<S: Shape, const ACCESSES: bool> Nodes<S> for Recorded<'_, S, ACCESSES> {
    type Ptr = SlabPtr;

    fn new(&mut self, node: S::Node<SlabPtr>) -> Option<SlabPtr> {
        let ptr = self.slab.new(node)?;
        self.log.borrow_mut().put(Kind::New, ptr.0);
        Some(ptr)
    }

    fn read<R>(&self, at: SlabPtr, with: impl FnOnce(&S::Node<SlabPtr>) -> R) -> R {
        if ACCESSES {
            self.log.borrow_mut().put(Kind::Access, at.0);
        }
        self.slab.read(at, with)
    }

    fn write<R>(&mut self, at: SlabPtr, with: impl FnOnce(&mut S::Node<SlabPtr>) -> R) -> R {
        if ACCESSES {
            self.log.borrow_mut().put(Kind::Access, at.0);
        }
        self.slab.write(at, with)
    }

    fn free(&mut self, at: SlabPtr) {
        self.log.borrow_mut().put(Kind::Free, at.0);
        self.slab.free(at);
    }
}

/// Writes down tables and steps; of the steps only expansions where `ACCESSES` is false.
struct Heard<'l, const ACCESSES: bool>(&'l RefCell<Log>);

impl<const ACCESSES: bool> Tally for Heard<'_, ACCESSES> {
    fn table(&mut self, table: Table, index: usize) {
        if !ACCESSES {
            return;
        }
        let mut log = self.0.borrow_mut();
        let line = u32::try_from(index / ENTRIES_PER_LINE).unwrap_or(u32::MAX);
        let last = &mut log.last[table as usize];
        if last.replace(line) == Some(line) {
            // The next entry of a line that was just read: a cycle.
            log.work += 1;
        } else {
            debug_assert!(line < TABLE_LINES, "{table:?} has an entry {index}");
            log.put(Kind::Table, table as u32 * TABLE_LINES + line.min(TABLE_LINES - 1));
        }
    }

    fn step(&mut self, step: Step) {
        if !ACCESSES && step != Step::Expand {
            return;
        }
        let mut log = self.0.borrow_mut();
        if step == Step::Expand {
            log.put(Kind::Turn, 0);
        }
        if ACCESSES {
            log.work += work_cycles(step);
        }
    }
}

/// Searches from Korf's instance `number` and writes down what the plan asks for.
pub(super) fn record(number: u8, plan: SearchPlan) -> Result<Recording, Figure4Error> {
    let board = korf(number).and_then(|instance| Puzzle::new(&instance.board));
    record_from(board.ok_or(Figure4Error::TooEasy { instance: number })?, number, plan)
}

fn record_from(board: Puzzle, number: u8, plan: SearchPlan) -> Result<Recording, Figure4Error> {
    let too_easy = Figure4Error::TooEasy { instance: number };
    let (SearchPlan::Hashed { nodes, .. } | SearchPlan::Linear { nodes, .. }) = plan;
    if nodes > MOST_NODES {
        return Err(Figure4Error::TooLarge { nodes, most: MOST_NODES });
    }
    let log = RefCell::default();
    let (names, checksum) = match plan {
        SearchPlan::Hashed { before, nodes } => {
            let mut slab = Slab::new(nodes);
            let mut all = Recorded::<_, true> { slab: &mut slab, log: &log };
            let mut search = Hashed::start(&mut all, board, nodes).ok_or(too_easy)?;
            let mut tally = Heard::<true>(&log);
            while search.found().held < wide(before) {
                let ended = search.run(&mut all, &mut tally, 1);
                expect(ended, Ended::Paused, number)?;
            }
            log.borrow_mut().put(Kind::Start, 0);
            expect(search.run(&mut all, &mut tally, u64::MAX), Ended::Budget, number)?;
            (nodes, search.found().checksum)
        }
        SearchPlan::Linear { nodes, expansions } => {
            // Successors that turn out known are nodes too, for a moment.
            let most = nodes + 64 + 4 * usize::try_from(expansions).unwrap_or(0);
            let mut slab = Slab::new(most);
            let mut few = Recorded::<_, false> { slab: &mut slab, log: &log };
            let mut search = Linear::start(&mut few, board, most).ok_or(too_easy)?;
            while search.found().held < wide(nodes) {
                let ended = search.run(&mut few, &mut Heard::<false>(&log), 1);
                expect(ended, Ended::Paused, number)?;
            }
            let mut all = Recorded::<_, true> { slab: &mut slab, log: &log };
            let mut tally = Heard::<true>(&log);
            expect(search.run(&mut all, &mut tally, 1), Ended::Paused, number)?;
            log.borrow_mut().put(Kind::Start, 0);
            expect(search.run(&mut all, &mut tally, expansions), Ended::Paused, number)?;
            (most, search.found().checksum)
        }
    };
    Ok(Recording { events: log.into_inner().events, names, checksum })
}

fn expect(ended: Ended, wanted: Ended, instance: u8) -> Result<(), Figure4Error> {
    if ended == wanted { Ok(()) } else { Err(Figure4Error::TooEasy { instance }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_keep_what_is_packed_into_them() {
        for (kind, work, argument) in
            [(Kind::New, 0, 0), (Kind::Table, 255, 3 * TABLE_LINES + 7), (Kind::Work, 9, 1 << 20)]
        {
            let event = Event::new(kind, work, argument);
            assert_eq!((event.kind(), event.work(), event.argument()), (kind, work, argument));
        }
    }

    fn count(recording: &Recording, kind: Kind) -> usize {
        recording.events.iter().filter(|event| event.kind() == kind).count()
    }

    #[test]
    fn a_recording_has_every_node_once_and_its_timed_part() {
        let plan = SearchPlan::Hashed { before: 2000, nodes: 4000 };
        let recording = record(1, plan).unwrap();
        assert!((3990..=4000).contains(&count(&recording, Kind::New)));
        assert_eq!((count(&recording, Kind::Start), count(&recording, Kind::Free)), (1, 0));
        assert!(count(&recording, Kind::Access) > 10_000);
        let mut slab = Slab::new(4000);
        let board = Puzzle::new(&korf(1).unwrap().board).unwrap();
        let mut search = Hashed::start(&mut slab, board, 4000).unwrap();
        search.run(&mut slab, &mut (), u64::MAX);
        assert_eq!(recording.checksum, search.found().checksum, "the search that runs live");
    }

    #[test]
    fn a_linear_recording_reads_every_node_for_every_successor() {
        let recording = record(2, SearchPlan::Linear { nodes: 1000, expansions: 3 }).unwrap();
        let timed = recording.events.iter().rposition(|e| e.kind() == Kind::Start).unwrap();
        let accesses = recording.events[timed..].iter().filter(|e| e.kind() == Kind::Access);
        let accesses = accesses.count();
        let turns = recording.events[timed..].iter().filter(|e| e.kind() == Kind::Turn).count();
        assert_eq!(turns, 3);
        assert!((2000..3 * 3 * 1100).contains(&accesses), "{accesses}");
        assert!(recording.events[..timed].iter().any(|e| e.kind() == Kind::Free));
    }

    #[test]
    fn a_search_that_ends_early_or_is_too_large_is_an_error() {
        assert!(record(0, SearchPlan::Linear { nodes: 10, expansions: 1 }).is_err());
        let mut board = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
        board.swap(0, 1);
        board.swap(1, 5);
        let near = Puzzle::new(&board).unwrap();
        for plan in [
            SearchPlan::Hashed { before: 100, nodes: 200 },
            SearchPlan::Linear { nodes: 100, expansions: 1 },
        ] {
            let why = record_from(near, 42, plan).unwrap_err().to_string();
            assert!(why.contains("instance 42"), "{why}");
        }
        let large = record(1, SearchPlan::Hashed { before: 10, nodes: 40_000 });
        assert!(large.unwrap_err().to_string().contains("40000"));
    }
}
