//! What a run may ask for at most, looked at before anything is made: a table that does not fit ends the process,
//! and the program could not be told.

use isochrone_os::OsError;

use super::broken::Broken;
use super::capacity::{BROKEN, Capacity, KERNELS_MAX, TOKENS, TRACE_WORDS};
use super::entries::{Object, Run, Seat, Token};
use super::nest::Nest;
use super::outbox::Outbox;
use super::pool::Shared;
use super::queue::Queue;
use super::slot::{Block, Edge, Slot};
use crate::error::TaskError;

/// Workers of a run at most: one for each CPU that Linux can have.
pub const WORKERS_MAX: usize = 8192;
/// Entries of a kind that a [`Capacity`] may ask for: their numbers, and some more for each worker, fit a word.
const ENTRIES_MAX: u32 = 1 << 30;
/// Bytes of all tables together at most: what processes reserve addresses for.
pub(crate) const BYTES_MAX: usize = 1 << 38;
/// Linux's `ENOMEM`.
const NO_MEMORY: i32 = 12;

/// Refuses numbers of workers that no run has.
pub(crate) fn check_workers(workers: usize) -> Result<(), TaskError> {
    if (1..=WORKERS_MAX).contains(&workers) {
        return Ok(());
    }
    Err(TaskError::Config(format!("{workers} workers; a run has 1 to {WORKERS_MAX}")))
}

impl Capacity {
    /// Refuses tables that no machine has room for.
    pub(crate) fn check(self, workers: usize, queues: usize) -> Result<(), TaskError> {
        check_workers(workers)?;
        let Self { tasks, edges, blocks, data, trace } = self;
        let most = [tasks, edges, blocks, data, trace].into_iter().max().unwrap_or(0);
        if most > ENTRIES_MAX {
            return Err(TaskError::Config(format!(
                "Capacity asks for {most} entries of a kind; the most is {ENTRIES_MAX}"
            )));
        }
        let bytes = self.bytes(workers, queues);
        match usize::try_from(bytes) {
            Ok(bytes) if bytes <= BYTES_MAX => Ok(()),
            _ => Err(TaskError::Config(format!(
                "the tables of {workers} workers would take {bytes} bytes, and may take {BYTES_MAX}: ask for \
                 fewer workers, or less in Capacity"
            ))),
        }
    }

    /// About how many bytes the tables of [`super::Arena::new`] take.
    fn bytes(self, workers: usize, queues: usize) -> u128 {
        let of = |entries: u32, each: usize, bytes: usize| {
            (entries as usize + each * workers) as u128 * (bytes + size_of::<u32>()) as u128
        };
        let slots = self.tasks as usize + 16 * workers;
        // A ring of words, as many as the next power of two, and a heap of two longer words an entry.
        let queue = size_of::<Queue>() + slots * (2 * size_of::<u32>() + 2 * size_of::<u64>());
        let seats = workers * (size_of::<Seat>() + size_of::<Outbox>() + size_of::<Nest>());
        let trace = TRACE_WORDS * self.trace as usize * size_of::<u64>();
        of(self.tasks, 16, size_of::<Slot>() + size_of::<u32>())
            + of(self.edges, 4, size_of::<Edge>())
            + of(self.blocks, 4, size_of::<Block>())
            + (self.data as usize * size_of::<Object>() + seats) as u128
            + queues as u128 * queue as u128
            + workers as u128 * trace as u128
    }

    /// Bytes that are enough for all tables.
    pub(crate) fn table_bytes(self, workers: usize, queues: usize) -> usize {
        const SOME: u32 = 64;
        let [tasks, edges, blocks] =
            [self.tasks, self.edges, self.blocks].map(|count| count.max(SOME));
        let whole = Self { tasks, edges, blocks, data: self.data.max(1), ..self };
        let each = KERNELS_MAX * size_of::<usize>()
            + usize::from(TOKENS) * size_of::<Token>()
            + BROKEN as usize * size_of::<Broken>()
            + 3 * size_of::<Shared>()
            + size_of::<Run>()
            + workers * size_of::<u64>();
        usize::try_from(whole.bytes(workers, queues)).unwrap_or(usize::MAX).saturating_add(each)
    }

    /// Asks the heap for as much as the tables take, and gives it back: whether there is so much.
    pub(crate) fn try_heap(self, workers: usize, queues: usize) -> Result<(), TaskError> {
        let bytes = usize::try_from(self.bytes(workers, queues)).unwrap_or(usize::MAX);
        let mut room = Vec::<u8>::new();
        let there = room.try_reserve_exact(bytes);
        // The compiler may leave out memory that nobody looks at.
        core::hint::black_box(&mut room);
        there.map_err(|_| {
            TaskError::System(OsError {
                what: "no memory for the tables of a run",
                errno: NO_MEMORY,
                advice: "ask for fewer workers, or less in Capacity",
            })
        })
    }
}

#[cfg(not(any(loom, shuttle)))]
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_machine_has_is_refused_and_what_programs_ask_for_is_not() {
        let usual = Capacity::default();
        assert_eq!(usual.check(1, 1), Ok(()));
        assert_eq!(usual.check(WORKERS_MAX, 16), Ok(()));
        let traced = Capacity { trace: 1 << 20, ..usual };
        assert_eq!(traced.check(512, 16), Ok(()), "25 GiB");
        let large = Capacity { tasks: 1 << 24, edges: 1 << 26, ..usual };
        assert_eq!(large.check(288, 16), Ok(()));
        let wide = Capacity { trace: 1 << 30, ..usual };
        let most = Capacity { tasks: u32::MAX, ..usual };
        for (capacity, workers, words) in [
            (usual, 0, "0 workers; a run has 1 to 8192"),
            (usual, WORKERS_MAX + 1, "8193 workers"),
            (usual, usize::MAX, "1 to 8192"),
            (traced, WORKERS_MAX, "may take 274877906944"),
            (wide, 6, "bytes"),
            (most, 1, "the most is 1073741824"),
        ] {
            let error = capacity.check(workers, 1).expect_err(words).to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn the_estimate_is_what_the_tables_take() {
        let capacity = Capacity { trace: 100, ..Capacity::default() };
        let arena = super::super::Arena::new(&mut super::super::Heap, capacity, 4, 2);
        let large = size_of_val(&arena.slots[..])
            + size_of_val(&arena.edges[..])
            + size_of_val(&arena.blocks[..])
            + size_of_val(&arena.objects[..])
            + size_of_val(&arena.heaps[..])
            + size_of_val(&arena.rings[..])
            + size_of_val(&arena.trace[..]);
        let estimate = usize::try_from(capacity.bytes(4, 2)).expect("few");
        assert!((large..large * 5 / 4).contains(&estimate), "{estimate} for {large}");
        let small = size_of_val(&arena.lists[0][..])
            + size_of_val(&arena.lists[1][..])
            + size_of_val(&arena.lists[2][..])
            + size_of_val(&arena.pools[..])
            + size_of_val(&arena.seats[..])
            + size_of_val(&arena.outboxes[..])
            + size_of_val(&arena.nests[..])
            + size_of_val(&arena.tokens[..])
            + size_of_val(&arena.broken[..])
            + size_of_val(&arena.kernels[..])
            + size_of_val(&arena.queues[..])
            + size_of_val(&arena.run[..])
            + size_of_val(&arena.numbers[..]);
        assert!(capacity.table_bytes(4, 2) >= large + small, "{} and {small}", large);
    }
}
