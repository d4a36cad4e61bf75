//! The shared area of a team: a header, who is there, and lines that are handed out in the same order
//! by every rank.
//!
//! Ranks make the same calls in the same order, so each of them hands out the same lines without asking
//! the others. Words are zero at the beginning, and a line is handed out once, until all are taken back.

use super::agreed::Agreed;
use super::error::TeamError;
use super::layout::{Alone, AloneWord, CANDIDATES, RANKS_MAX, SAID, STAMPS};
use super::said::Said;
use super::sync::AtomicU32;
use super::word::Word;
use isochrone_os::shared::{Place, Shared};
use isochrone_units::{CoreId, LineAddr};
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// Cores that are told apart.
const CORES_MAX: usize = 8192;
/// Bytes of a line.
pub(super) const LINE_BYTES: usize = 64;
/// "isochcla", and the version of this layout.
const MAGIC: u64 = u64::from_le_bytes(*b"isochcl6");

/// The front of the area.
#[derive(Debug)]
#[repr(C, align(4096))]
pub(super) struct Header {
    magic: AtomicU64,
    ranks: AtomicU32,
    /// How many ranks have come.
    pub(super) here: Alone,
    /// How many ranks sleep: read by every writer, written by sleepers alone.
    pub(super) sleepers: Alone,
    /// 0, or one more than the rank that is gone, or [`STOPPED`].
    pub(super) stopped: Alone,
    /// How far the owner and the asker of a measurement are.
    pub(super) turns: [AloneWord; 2],
    /// Stamps of two ranks that compare their counters.
    pub(super) stamps: [AloneWord; STAMPS],
    /// What each of the two has found.
    pub(super) found: [AloneWord; 2],
    /// How often any rank has come to the point where lines are taken back.
    pub(super) taken_back: AloneWord,
    /// What each rank says of itself: [`ABSENT`], [`HERE`] or [`LEFT`].
    pub(super) states: [AtomicU32; RANKS_MAX],
    /// In which order the pairs of lines at the front are taken, where ranks have chosen.
    pub(super) order: [std::sync::atomic::AtomicU32; CANDIDATES],
    /// How collectives are done.
    pub(super) agreed: Agreed,
    /// The cores on which any rank may run, a bit for each.
    cores: [AtomicU64; CORES_MAX / 64],
}

impl Header {
    /// Notes on which cores a rank may run.
    pub(super) fn may_run_on(&self, cores: impl Iterator<Item = CoreId>) {
        for core in cores {
            if let Some(word) = self.cores.get(usize::from(core.0 / 64)) {
                word.fetch_or(1 << (core.0 % 64), Ordering::Relaxed);
            }
        }
    }

    /// On how many cores the ranks together may run.
    pub(super) fn cores(&self) -> usize {
        self.cores.iter().map(|word| word.load(Ordering::Relaxed).count_ones() as usize).sum()
    }
}

/// Has not come yet.
pub(super) const ABSENT: u32 = 0;
/// Takes part.
pub(super) const HERE: u32 = 1;
/// Left in order.
pub(super) const LEFT: u32 = 2;
/// [`Header::stopped`] of a team that somebody gave up.
pub(super) const STOPPED: u32 = u32::MAX;

/// The area, as one process maps it.
#[derive(Debug)]
pub(super) struct Area {
    shared: Shared,
    ranks: u16,
}

impl Area {
    /// Bytes of the header.
    const HEADER: usize = size_of::<Header>();
    /// Bytes of what a rank said lately: lines of its own.
    const OWN: usize = SAID * size_of::<Word>();

    /// Bytes before the first line.
    const fn front(ranks: u16) -> usize {
        Self::HEADER + ranks as usize * Self::OWN
    }

    /// Makes an area with `lines` lines for `ranks` ranks.
    pub(super) fn create(ranks: u16, lines: usize) -> Result<Self, TeamError> {
        if ranks == 0 || usize::from(ranks) > RANKS_MAX {
            return Err(TeamError::Ranks(ranks));
        }
        let front = Self::front(ranks);
        let bytes = lines.checked_mul(LINE_BYTES).and_then(|bytes| bytes.checked_add(front));
        let area = Self { shared: Shared::create(bytes.unwrap_or(usize::MAX))?, ranks };
        area.header().ranks.store(u32::from(ranks), Ordering::Relaxed);
        area.header().magic.store(MAGIC, Ordering::Release);
        Ok(area)
    }

    /// Maps an area that another process made.
    pub(super) fn open(place: Place) -> Result<Self, TeamError> {
        let shared = Shared::open(place)?;
        if shared.len() < Self::HEADER {
            return Err(TeamError::Foreign);
        }
        let mut area = Self { shared, ranks: 0 };
        let header = area.header();
        if header.magic.load(Ordering::Acquire) != MAGIC {
            return Err(TeamError::Foreign);
        }
        let ranks = header.ranks.load(Ordering::Relaxed);
        area.ranks = u16::try_from(ranks).map_err(|_| TeamError::Foreign)?;
        if area.shared.len() < Self::front(area.ranks) {
            return Err(TeamError::Foreign);
        }
        Ok(area)
    }

    /// How many ranks.
    pub(super) fn ranks(&self) -> u16 {
        self.ranks
    }

    /// The memory itself.
    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// The front.
    pub(super) fn header(&self) -> &Header {
        // SAFETY: the area is page-aligned and has at least a header's bytes (both constructors
        // check), zeroed by the kernel, which is a valid header; it stays mapped as long as `self`
        // lives, and everybody accesses it by atomics.
        unsafe { self.shared.as_ptr().cast::<Header>().as_ref_unchecked() }
    }

    /// What `rank` said, or says, of the call that `said` is of: the place that it has for it.
    ///
    /// # Panics
    /// If there is no such rank.
    pub(super) fn said(&self, rank: u16, said: Said) -> &Word {
        assert!(rank < self.ranks, "rank {rank} of {}", self.ranks);
        let offset = Self::front(rank) + said.place() * size_of::<Word>();
        // SAFETY: every rank has a word for each place before the first line, as both constructors check; words
        // are aligned there, zero at the beginning, and accessed by atomics alone as long as `self` lives.
        unsafe { self.shared.as_ptr().wrapping_add(offset).cast::<Word>().as_ref_unchecked() }
    }

    fn first_line(&self) -> *mut u8 {
        self.shared.as_ptr().wrapping_add(Self::front(self.ranks))
    }

    /// How many lines.
    pub(super) fn lines(&self) -> usize {
        (self.shared.len() - Self::front(self.ranks)) / LINE_BYTES
    }

    /// The number of line `index`, counted from the first line of the memory.
    pub(super) fn number_of(&self, index: usize) -> LineAddr {
        LineAddr((Self::front(self.ranks) / LINE_BYTES + index) as u64)
    }

    /// Makes lines what they were at the beginning.
    ///
    /// # Panics
    /// If there are no such lines.
    ///
    /// # Safety
    /// Nobody else uses these lines meanwhile.
    pub(super) unsafe fn clear(&self, lines: Range<usize>) {
        assert!(lines.end <= self.lines(), "lines {lines:?} of {}", self.lines());
        let first = self.first_line().wrapping_add(lines.start * LINE_BYTES);
        // SAFETY: the lines lie in the mapping, as was just checked, which may be written to and lives as long as
        // `self`; the caller vouches that nobody else uses them.
        unsafe { first.write_bytes(0, lines.len() * LINE_BYTES) };
    }

    /// The first byte of line `index`.
    ///
    /// # Panics
    /// If there is no such line.
    pub(super) fn line(&self, index: usize) -> NonNull<u8> {
        assert!(index < self.lines(), "line {index} of {}", self.lines());
        let first = self.first_line().wrapping_add(index * LINE_BYTES);
        NonNull::new(first).unwrap_or(NonNull::dangling())
    }
}
