//! Memory for all teams of some processes: made once, and taken in pieces.
//!
//! A team among processes that share an arena makes no system call: one of them takes a piece and tells the others its
//! number. When the last rank has left the team it makes the piece what it was and gives it back. Memory is taken from
//! the system as pieces are handed out for the first time, and stays.

use super::area::{Area, CORES_MAX, Extension};
use super::error::TeamError;
use super::pieces::Pieces;
use super::sync::{AtomicU32, AtomicU64, Ordering};
use crate::program::Rank;
use isochrone_os::affinity::CoreSet;
use isochrone_os::shared::{Place, Seat, Shared};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Bytes of a granule: what a team of two ranks has.
pub(super) const GRANULE: usize = 64 << 10;
/// Granules of an arena at most, 256 MiB of address space. The first one is the arena's own.
const GRANULES: usize = 4096;
/// Bytes that a rank of a large team adds: 1 MiB for 128.
const EACH: usize = 8 << 10;
/// "isochare", and the version of this layout.
const MAGIC: u64 = u64::from_le_bytes(*b"isochar1");

/// The front of an arena, in its first granule. All zero at the beginning.
#[derive(Debug)]
#[repr(C, align(4096))]
struct Front {
    magic: AtomicU64,
    number: AtomicU64,
    /// Processes that came so far.
    came: AtomicU32,
    /// Pieces that were handed out so far, to teams.
    handed: AtomicU32,
    /// The cores on which any of them may run, a bit for each.
    cores: [AtomicU64; CORES_MAX / 64],
    pieces: Pieces<GRANULES>,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Front>() <= GRANULE);

/// Memory for the teams of some processes, as one of them has it.
#[derive(Debug)]
pub struct Arena {
    shared: Shared,
    number: u64,
    /// This process's seat.
    seat: u32,
    _seat: Seat,
    /// Of each granule: whether its pages were at hand in this process.
    touched: Box<[AtomicBool]>,
}

/// A piece of an arena that was taken for a team.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Its first granule.
    pub(super) first: u32,
    /// Which team's it is: another number for each.
    pub(super) team: u32,
}

impl Piece {
    /// As numbers below 2^31, which are not negative in any type that has 32 bits.
    #[must_use]
    pub const fn numbers(self) -> [u32; 2] {
        [self.first, self.team]
    }

    /// Of such numbers.
    #[must_use]
    pub const fn of_numbers([first, team]: [u32; 2]) -> Self {
        Self { first, team }
    }
}

impl Arena {
    /// Makes one, with a seat for this process. The others [join](Self::join) at its place, as long as this value
    /// lives.
    ///
    /// # Errors
    /// [`TeamError`] where there is no shared memory.
    pub fn create() -> Result<Arc<Self>, TeamError> {
        let shared = Shared::reserve(GRANULES * GRANULE)?;
        shared.take(0..GRANULE)?;
        let mut random = RandomState::new().build_hasher();
        random.write_u32(std::process::id());
        // Two words of 31 bits tell it to other processes.
        let number = (random.finish() >> 2).max(1);
        let front = front(&shared);
        front.number.store(number, Ordering::Relaxed);
        // Partner: `join`.
        front.magic.store(MAGIC, Ordering::Release);
        Self::seated(shared)
    }

    /// Joins the arena of another process.
    ///
    /// # Errors
    /// [`TeamError`] where it is not to be had.
    pub fn join(place: Place) -> Result<Arc<Self>, TeamError> {
        let shared = Shared::open_reserved(place)?;
        if shared.len() != GRANULES * GRANULE
            || front(&shared).magic.load(Ordering::Acquire) != MAGIC
        {
            return Err(TeamError::Foreign);
        }
        Self::seated(shared)
    }

    fn seated(shared: Shared) -> Result<Arc<Self>, TeamError> {
        let front = front(&shared);
        let number = front.number.load(Ordering::Relaxed);
        for core in CoreSet::of_this_thread().iter().flat_map(CoreSet::iter) {
            if let Some(word) = front.cores.get(usize::from(core.0 / 64)) {
                word.fetch_or(1 << (core.0 % 64), Ordering::Relaxed);
            }
        }
        // Release: who counts this process finds its cores. Partner: `has_cores`.
        let seat = front.came.fetch_add(1, Ordering::AcqRel);
        let taken = shared.sit(seat)?.ok_or(TeamError::Foreign)?;
        let touched = (0..GRANULES).map(|_| AtomicBool::new(false)).collect();
        Ok(Arc::new(Self { shared, number, seat, _seat: taken, touched }))
    }

    /// A number below 2^62 that no other arena has.
    #[must_use]
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// Where other processes find it.
    #[must_use]
    pub fn place(&self) -> Place {
        self.shared.place()
    }

    /// How many processes came so far.
    #[must_use]
    pub fn processes(&self) -> u32 {
        self.front().came.load(Ordering::Relaxed)
    }

    /// Whether the cores on which processes may run that came so far are as many as they.
    #[must_use]
    pub fn has_cores(&self) -> bool {
        let processes = self.front().came.load(Ordering::Acquire);
        let cores = self.front().cores.iter();
        processes <= cores.map(|word| word.load(Ordering::Relaxed).count_ones()).sum()
    }

    /// Bytes that were taken from the system so far.
    #[must_use]
    pub fn bytes(&self) -> usize {
        (self.front().pieces.used() as usize + 1) * GRANULE
    }

    /// Bytes of a team's piece.
    #[must_use]
    pub const fn piece_bytes(ranks: u16) -> usize {
        let bytes = ranks as usize * EACH;
        if bytes < GRANULE { GRANULE } else { bytes.next_power_of_two() }
    }

    /// Takes a piece for a team of `ranks` ranks, in which `chooser` chooses shapes, if anybody does. All its ranks
    /// make a team [within](super::Team::within) it, or it is [given back](Self::give_back).
    ///
    /// # Errors
    /// [`TeamError`] where there is no room.
    pub fn take(&self, ranks: u16, chooser: Option<Rank>) -> Result<Piece, TeamError> {
        let first = self.take_bytes(Self::piece_bytes(ranks))?;
        // 0 is nobody's; below 2^31.
        let team = 1 + self.front().handed.fetch_add(1, Ordering::Relaxed) % (u32::MAX >> 1);
        let piece = Piece { first, team };
        Area::prepare(self, piece, ranks, chooser);
        Ok(piece)
    }

    /// Whether this process can make a team in a piece that another one took.
    #[must_use]
    pub fn is_ready(&self, piece: Piece, ranks: u16) -> bool {
        Area::is_prepared(self, piece, ranks)
    }

    /// Gives a piece back in which no team was made.
    pub fn give_back(&self, piece: Piece, ranks: u16) {
        Area::unprepare(self, piece);
        self.give_bytes(piece.first, Self::piece_bytes(ranks));
    }

    /// Takes so many bytes at least beside a team's piece.
    pub(super) fn extension(&self, bytes: usize) -> Result<Extension, TeamError> {
        let granules = bytes.div_ceil(GRANULE).next_power_of_two();
        let first = self.take_bytes(granules * GRANULE)?;
        Ok(Extension::new(first, u32::try_from(granules).unwrap_or(0)))
    }

    /// Takes so many bytes, all zero, a power of two of granules; returns the first granule.
    pub(super) fn take_bytes(&self, bytes: usize) -> Result<u32, TeamError> {
        let size = size_of_bytes(bytes);
        let full = TeamError::Full { wanted: bytes / 64, left: 0 };
        let granules = self.front().pieces.take(size).ok_or(full)?;
        if granules.fresh {
            // Where it fails nobody gets these granules any more: the machine has no memory left.
            self.shared.take(Self::range(granules.first, bytes))?;
        }
        self.touch(granules.first, bytes);
        Ok(granules.first)
    }

    /// Gives so many bytes back, which are all zero again.
    pub(super) fn give_bytes(&self, first: u32, bytes: usize) {
        self.front().pieces.give(first, size_of_bytes(bytes));
    }

    /// Has the pages at hand in this process, once.
    pub(super) fn touch(&self, first: u32, bytes: usize) {
        let touched = self.touched.get(first as usize);
        if touched.is_some_and(|touched| !touched.swap(true, Ordering::Relaxed)) {
            self.shared.populate(Self::range(first, bytes));
        }
    }

    /// Where such granules lie.
    pub(super) const fn range(first: u32, bytes: usize) -> Range<usize> {
        let start = first as usize * GRANULE;
        start..start + bytes
    }

    pub(super) const fn seat(&self) -> u32 {
        self.seat
    }

    pub(super) const fn shared(&self) -> &Shared {
        &self.shared
    }

    fn front(&self) -> &Front {
        front(&self.shared)
    }
}

/// The size of a piece that holds so many bytes.
fn size_of_bytes(bytes: usize) -> usize {
    bytes.div_ceil(GRANULE).next_power_of_two().trailing_zeros() as usize
}

fn front(shared: &Shared) -> &Front {
    // SAFETY: an arena's memory is page-aligned and its first granule was taken, zeroed by the kernel, before anybody
    // came; it holds a front, as was checked above, of which zeros are a value, and everybody accesses it by atomics
    // as long as the mapping lives.
    unsafe { shared.as_ptr().cast::<Front>().as_ref_unchecked() }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::live::area::here_at;
    use crate::live::{Reduction, Settings, Team, TeamError};

    /// Ranks of one team in a new piece of an arena, each by its own mapping, as processes have it.
    fn team(arenas: &[Arc<Arena>]) -> Vec<Team> {
        let ranks = u16::try_from(arenas.len()).expect("few");
        let piece = arenas[0].take(ranks, None).expect("room");
        let piece = Piece::of_numbers(piece.numbers());
        let within = |(rank, arena)| {
            Team::within(arena, piece, ranks, Rank(rank), Settings::default()).expect("taken")
        };
        (0..ranks).zip(arenas).map(within).collect()
    }

    fn arenas(ranks: usize) -> Vec<Arc<Arena>> {
        let first = Arena::create().expect("shared memory");
        let join = |_| Arena::join(first.place()).expect("it is there");
        let others: Vec<_> = (1..ranks).map(join).collect();
        std::iter::once(first).chain(others).collect()
    }

    /// All ranks at once, each with its number.
    fn all(team: &mut [Team], work: impl Fn(&mut Team, i64) + Sync) {
        std::thread::scope(|scope| {
            for me in team {
                let work = &work;
                scope.spawn(move || work(me, i64::from(me.rank().0)));
            }
        });
    }

    fn sums(me: &mut Team, mine: i64, elements: usize) {
        let ranks = i64::from(me.ranks());
        let mut sum = vec![0; elements];
        me.allreduce(Reduction::Sum, &vec![mine; elements], &mut sum).expect("all are here");
        assert!(sum.iter().all(|&sum| sum == ranks * (ranks - 1) / 2), "{elements}");
        let mut word = vec![mine; elements];
        me.broadcast(&mut word, Rank(1)).expect("all are here");
        assert!(word.iter().all(|&word| word == 1));
    }

    #[test]
    fn teams_come_and_go_in_the_same_memory() {
        let arenas = arenas(2);
        let mut used = Vec::new();
        for round in 0..300 {
            let mut two = team(&arenas);
            let mut again = team(&arenas);
            // Long messages in some of them, which need more than a piece.
            let elements = if round % 10 == 9 { 5000 } else { 1 };
            all(&mut two, |me, mine| sums(me, mine, elements));
            all(&mut again, |me, mine| (0..9).for_each(|_| sums(me, mine, 20)));
            drop(again);
            all(&mut two, |me, mine| sums(me, mine, 3));
            drop(two);
            used.push(arenas[0].bytes());
        }
        assert_eq!(used[299], used[30], "nothing grows");
        assert!(used[0] <= 3 * GRANULE, "two pieces and the front: {}", used[0]);
        assert_eq!((arenas[0].processes(), arenas[0].number()), (2, arenas[1].number()));
        let cores = CoreSet::of_this_thread().expect("Linux").len();
        assert_eq!(arenas[0].has_cores(), cores >= 2);
    }

    #[test]
    fn a_piece_is_clean_and_another_team_is_not_taken_for_it() {
        let arenas = arenas(2);
        let mut two = team(&arenas);
        all(&mut two, |me, mine| [1, 20, 3000].into_iter().for_each(|n| sums(me, mine, n)));
        drop(two);
        let piece = arenas[0].take(2, Some(Rank(0))).expect("room");
        let bytes = Arena::piece_bytes(2);
        let words = Arena::range(piece.first, bytes).start / 8;
        let words = arenas[1].shared.as_ptr().cast::<u64>().wrapping_add(words);
        // SAFETY: the piece, which nobody writes to now.
        let read = |word: usize| unsafe { words.wrapping_add(word).read_volatile() };
        let marks = (0..bytes / 8).filter(|&word| read(word) != 0).count();
        assert!((1..=3).contains(&marks), "its mark, its ranks, and who chooses: {marks}");
        arenas[0].give_back(piece, 2);
        assert_eq!((0..bytes / 8).filter(|&word| read(word) != 0).count(), 0);
        let other = arenas[0].take(2, None).expect("room");
        assert_eq!(other.first, piece.first);
        assert_ne!(other.team, piece.team);
    }

    #[test]
    fn lines_that_were_chosen_stay_chosen() {
        let arenas = arenas(2);
        let mut two = team(&arenas);
        let pairs = two[0].candidates().1.len();
        all(&mut two, |me, mine| {
            let far: Vec<f64> =
                (0..pairs).map(|pair| -f64::from(u32::try_from(pair).expect("few"))).collect();
            me.choose_lines_by(if mine == 0 { &far } else { &[] }).expect("all are here");
            sums(me, mine, 1);
        });
        drop(two);
        let again = team(&arenas);
        let last = u32::try_from(pairs - 1).expect("few");
        for me in &again {
            let order = me.area().ordered().expect("it is kept");
            assert_eq!((order[0], order.len()), (last, pairs));
        }
    }

    #[test]
    fn a_rank_that_ended_is_missed_in_every_team() {
        let arenas = arenas(1);
        let piece = arenas[0].take(2, None).expect("room");
        let settings = Settings::default();
        let mut left = Team::within(&arenas[0], piece, 2, Rank(0), settings).expect("taken");
        // As the kernel leaves it when a process ends: it said that it is here, and nobody sits there.
        left.area().states()[1].store(here_at(arenas[0].seat() + 1), Ordering::Release);
        let mut sum = [0];
        let missed = left.allreduce(Reduction::Sum, &[1], &mut sum).expect_err("the other ended");
        assert!(matches!(missed, TeamError::Gone(_)), "{missed}");
    }
}
