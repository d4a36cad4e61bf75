//! Memory for all teams of some processes: made once, and taken in pieces.
//!
//! A team among processes that share an arena makes no system call: one of them takes a piece and tells the others its
//! number. When the last rank has left the team it makes the piece what it was and gives it back. Memory is taken from
//! the system as pieces are handed out for the first time, and stays.

use super::error::TeamError;
use super::layout::{CORES_MAX, LINE_BYTES};
use super::pieces::Pieces;
use super::sync::{AtomicU32, AtomicU64, Ordering};
use isochrone_os::affinity::CoreSet;
use isochrone_os::shared::{Place, Seat, Shared, register_barriers};
use isochrone_units::CoreId;
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
    /// Where this process could run when it came.
    cores: Vec<CoreId>,
    /// Whether all its processes were found to reach each other's memory: the same in all of them.
    reach: AtomicBool,
    /// Whether lines take long between its processes, as was said of it here.
    far: AtomicBool,
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

/// A piece of the arena beside a team's first one, as the rank that took it tells the others: 0 where nobody has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extension(u64);

impl Extension {
    /// There was no room.
    pub(super) const NONE: Self = Self(u64::MAX);
    /// A rank is about to take one.
    pub(super) const TAKING: Self = Self(u32::MAX as u64 - 1);
    /// The least word of what a rank has taken or found that there was no room for.
    pub(super) const TAKEN: u64 = 1 << u32::BITS;

    /// So many granules from `first` on.
    pub(super) const fn new(first: u32, granules: u32) -> Self {
        Self((first as u64) << 32 | granules as u64)
    }

    pub(super) const fn of_word(word: u64) -> Self {
        Self(word)
    }

    pub(super) const fn word(self) -> u64 {
        self.0
    }

    /// First granule, bytes and lines, where there was room.
    pub(super) fn found(self) -> Option<(u32, usize, Range<usize>)> {
        if self == Self::NONE || self.0 < Self::TAKEN {
            return None;
        }
        let first = u32::try_from(self.0 >> 32).ok()?;
        let bytes = usize::try_from(self.0 & u64::from(u32::MAX)).ok()? * GRANULE;
        let range = Arena::range(first, bytes);
        Some((first, bytes, range.start / LINE_BYTES..range.end / LINE_BYTES))
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
        // Without it sleeps are short.
        let _registered = register_barriers();
        let cores: Vec<CoreId> = CoreSet::of_this_thread().iter().flat_map(CoreSet::iter).collect();
        for core in &cores {
            if let Some(word) = front.cores.get(usize::from(core.0 / 64)) {
                word.fetch_or(1 << (core.0 % 64), Ordering::Relaxed);
            }
        }
        // Release: who counts this process finds its cores. Partner: `has_cores`.
        let seat = front.came.fetch_add(1, Ordering::AcqRel);
        let taken = shared.sit(seat)?.ok_or(TeamError::Foreign)?;
        let touched = (0..GRANULES).map(|_| AtomicBool::new(false)).collect();
        let [reach, far] = [const { AtomicBool::new(false) }; 2];
        Ok(Arc::new(Self { shared, number, seat, _seat: taken, touched, cores, reach, far }))
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

    /// Another number for each team, above 0 and below 2^31.
    pub(super) fn next_team(&self) -> u32 {
        1 + self.front().handed.fetch_add(1, Ordering::Relaxed) % (u32::MAX >> 1)
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

    /// Where this process could run when it came.
    pub(super) fn cores(&self) -> &[CoreId] {
        &self.cores
    }

    /// Notes in this process whether lines take long between those that have it.
    pub fn note_far(&self, far: bool) {
        self.far.store(far, Ordering::Release);
    }

    /// What was noted here.
    #[must_use]
    pub fn is_far(&self) -> bool {
        self.far.load(Ordering::Acquire)
    }

    /// Notes whether all its processes reach each other's memory, as they found alike.
    pub(super) fn note_reach(&self, reach: bool) {
        self.reach.store(reach, Ordering::Release);
    }

    /// Whether they do, as far as is known.
    pub(super) fn has_reach(&self) -> bool {
        self.reach.load(Ordering::Acquire)
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
