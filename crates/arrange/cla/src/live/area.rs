//! The shared area of a team: a header, who is there, and lines that are handed out in the same order
//! by every rank.
//!
//! Ranks make the same calls in the same order, so each of them hands out the same lines without asking
//! the others. Words are zero at the beginning, and a line is handed out once, until all are taken back.
//!
//! An area is shared memory of its own, or a piece of an [`Arena`]. How much of what a rank has lies where follows from
//! the number of ranks and of bytes.

use super::agreed::{Agreed, Parts, Shown};
use super::arena::{Arena, Extension, Piece};
use super::assembly::Assembly;
use super::error::TeamError;
use super::layout::{
    Alone, AloneWord, CANDIDATES, CORES_MAX, LINE_BYTES, MORE, RANKS_MAX, SAID, STAMPS,
};
use super::said::Said;
use super::supply::Supply;
use super::sync::AtomicU32;
use super::word::Word;
use crate::program::Rank;
use isochrone_os::OsError;
use isochrone_os::shared::{Place, Shared};
use isochrone_units::{CoreId, LineAddr};
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// "isochcla", and the version of this layout.
const MAGIC: u64 = u64::from_le_bytes(*b"isochcl8");

/// The front of the area: what does not depend on the number of ranks.
#[derive(Debug)]
#[repr(C, align(128))]
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
    /// Where all ranks meet.
    pub(super) assembly: Assembly,
    /// How many ranks have done with a piece of an arena for good.
    left: Alone,
    /// The most that any of them had used: flags, and how far it was in which run of lines.
    most: [AtomicU64; 2],
    /// Pieces that were taken beside the first one: [`Extension`].
    pub(super) more: [Word; MORE],
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
/// Takes part; above it is its seat.
pub(super) const HERE: u32 = 1;
/// Left in order.
pub(super) const LEFT: u32 = 2;
/// [`Header::stopped`] of a team that somebody gave up.
pub(super) const STOPPED: u32 = u32::MAX;

/// What a rank says of itself that has a seat.
pub(super) const fn here_at(seat: u32) -> u32 {
    seat << 2 | HERE
}

/// The seat of a rank that is here.
pub(super) const fn seat_of(state: u32) -> Option<u32> {
    if state & 3 == HERE { Some(state >> 2) } else { None }
}

/// Where everything lies in an area, bytes from its beginning.
#[derive(Clone, Copy, Debug)]
struct Map {
    /// What each rank says of itself: [`ABSENT`], [`HERE`] or [`LEFT`].
    states: usize,
    /// What a rank said lately: lines of its own.
    said: usize,
    agreed: Parts,
    /// In which order the pairs of lines at the front are taken, one more than each; 0: as they lie.
    order: usize,
    /// The first line.
    lines: usize,
}

impl Map {
    const fn of(ranks: u16, pairs: usize) -> Self {
        let count = ranks as usize;
        let states = size_of::<Header>();
        let said = (states + count * size_of::<AtomicU32>()).next_multiple_of(LINE_BYTES);
        let agreed = Parts::from(said + count * Area::OWN, ranks);
        let order = agreed.end().next_multiple_of(LINE_BYTES);
        // The first of two neighbours has an even number.
        let lines = (order + pairs * size_of::<AtomicU32>()).next_multiple_of(2 * LINE_BYTES);
        Self { states, said, agreed, order, lines }
    }

    /// Pairs of lines that have a place in the order, in an area of so many bytes.
    const fn pairs(bytes: usize) -> usize {
        let pairs = Supply::pairs(bytes / LINE_BYTES);
        if pairs < CANDIDATES { pairs } else { CANDIDATES }
    }

    /// The least of `bytes` bytes that an area has with these lines.
    fn bytes(ranks: u16, lines: usize) -> Option<usize> {
        lines.checked_mul(LINE_BYTES)?.checked_add(Self::of(ranks, CANDIDATES).lines)
    }
}

impl Piece {
    fn base(self) -> usize {
        Arena::range(self.first, 0).start
    }

    /// What stands at the front of this team's area.
    const fn magic(self) -> u64 {
        MAGIC ^ (self.team as u64)
    }
}

/// Looks at a piece until its contents have come: a store that was made is seen within a microsecond.
const LOOKS: u32 = 10_000_000;

/// The header of the area that begins at `base`.
fn header_at(shared: &Shared, base: usize) -> &Header {
    assert!(base + size_of::<Header>() <= shared.len(), "{base} of {}", shared.len());
    // SAFETY: areas begin at a page, whose memory is mapped as long as `shared` lives and was zeroed by the kernel or
    // by the team before; zeros are a valid header, and everybody accesses it by atomics.
    unsafe { shared.as_ptr().wrapping_add(base).cast::<Header>().as_ref_unchecked() }
}

/// Whose memory it is.
#[derive(Debug)]
enum Home {
    Own(Shared),
    Piece(Arc<Arena>, Piece),
}

/// The area, as one process maps it.
#[derive(Debug)]
pub(super) struct Area {
    home: Home,
    /// Where it begins in the memory.
    base: usize,
    bytes: usize,
    ranks: u16,
    map: Map,
}

impl Area {
    /// Bytes of what a rank said lately: lines of its own.
    const OWN: usize = SAID * size_of::<Word>();

    /// Makes an area with `lines` lines for `ranks` ranks.
    pub(super) fn create(ranks: u16, lines: usize) -> Result<Self, TeamError> {
        if ranks == 0 || usize::from(ranks) > RANKS_MAX {
            return Err(TeamError::Ranks(ranks));
        }
        let shared = Shared::create(Map::bytes(ranks, lines).unwrap_or(usize::MAX))?;
        let area = Self::of(Home::Own(shared), 0, ranks);
        area.header().ranks.store(u32::from(ranks), Ordering::Relaxed);
        area.header().magic.store(MAGIC, Ordering::Release);
        Ok(area)
    }

    /// Maps an area that another process made.
    pub(super) fn open(place: Place) -> Result<Self, TeamError> {
        let shared = Shared::open(place)?;
        if shared.len() < size_of::<Header>() {
            return Err(TeamError::Foreign);
        }
        let header = header_at(&shared, 0);
        if header.magic.load(Ordering::Acquire) != MAGIC {
            return Err(TeamError::Foreign);
        }
        let ranks = header.ranks.load(Ordering::Relaxed);
        let ranks = u16::try_from(ranks).map_err(|_| TeamError::Foreign)?;
        let area = Self::of(Home::Own(shared), 0, ranks);
        if area.bytes <= area.map.lines { Err(TeamError::Foreign) } else { Ok(area) }
    }

    /// The area of a team in a piece that one of its ranks took.
    pub(super) fn within(arena: &Arc<Arena>, piece: Piece, ranks: u16) -> Result<Self, TeamError> {
        if ranks == 0 || usize::from(ranks) > RANKS_MAX {
            return Err(TeamError::Ranks(ranks));
        }
        if !Self::is_prepared(arena, piece, ranks) {
            return Err(TeamError::Foreign);
        }
        Ok(Self::of(Home::Piece(Arc::clone(arena), piece), piece.base(), ranks))
    }

    /// Whether a piece is an area for `ranks` ranks, or becomes one very soon.
    pub(super) fn is_prepared(arena: &Arena, piece: Piece, ranks: u16) -> bool {
        let end = Arena::range(piece.first, Arena::piece_bytes(ranks)).end;
        if ranks == 0 || piece.first == 0 || end > arena.shared().len() {
            return false;
        }
        arena.touch(piece.first, Arena::piece_bytes(ranks));
        let header = header_at(arena.shared(), piece.base());
        // Partner: `prepare`. Its number came by another way, and may have been sooner than what it tells of.
        let came = (0..LOOKS).any(|_| {
            let prepared = header.magic.load(Ordering::Acquire) == piece.magic();
            if !prepared {
                isochrone_os::pause::pause();
            }
            prepared
        });
        came && header.ranks.load(Ordering::Relaxed) == u32::from(ranks)
    }

    /// Makes a piece an area for `ranks` ranks, in which `chooser` chooses shapes, if anybody does.
    pub(super) fn prepare(arena: &Arena, piece: Piece, ranks: u16, chooser: Option<Rank>) {
        let header = header_at(arena.shared(), piece.base());
        header.ranks.store(u32::from(ranks), Ordering::Relaxed);
        if let Some(chooser) = chooser {
            header.agreed.chosen_by(chooser);
        }
        // Partner: `within`.
        header.magic.store(piece.magic(), Ordering::Release);
    }

    /// Makes a piece what it was before it was prepared.
    pub(super) fn unprepare(arena: &Arena, piece: Piece) {
        let header = header_at(arena.shared(), piece.base());
        header.ranks.store(0, Ordering::Relaxed);
        header.agreed.chosen_by_nobody();
        header.magic.store(0, Ordering::Relaxed);
    }

    fn of(home: Home, base: usize, ranks: u16) -> Self {
        let bytes = match &home {
            Home::Own(shared) => shared.len(),
            Home::Piece(..) => Arena::piece_bytes(ranks),
        };
        Self { home, base, bytes, ranks, map: Map::of(ranks, Map::pairs(bytes)) }
    }

    /// How many ranks.
    pub(super) const fn ranks(&self) -> u16 {
        self.ranks
    }

    /// The memory itself.
    pub(super) fn shared(&self) -> &Shared {
        match &self.home {
            Home::Own(shared) => shared,
            Home::Piece(arena, _) => arena.shared(),
        }
    }

    /// The arena of which it is a piece.
    pub(super) const fn arena(&self) -> Option<&Arc<Arena>> {
        match &self.home {
            Home::Own(_) => None,
            Home::Piece(arena, _) => Some(arena),
        }
    }

    /// Whether somebody sits in this seat.
    pub(super) fn is_taken(&self, seat: u32) -> Result<bool, OsError> {
        self.shared().is_taken(seat)
    }

    /// The front.
    pub(super) fn header(&self) -> &Header {
        header_at(self.shared(), self.base)
    }

    /// `count` values of the area from byte `offset` on.
    ///
    /// # Safety
    /// `T` is made of atomics alone, for which zeros are valid; nobody accesses these bytes as anything else as long as
    /// `self` lives.
    unsafe fn part<T>(&self, offset: usize, count: usize) -> &[T] {
        let bytes = count * size_of::<T>();
        assert!(offset + bytes <= self.bytes && offset.is_multiple_of(align_of::<T>()), "{offset}");
        let first = self.shared().as_ptr().wrapping_add(self.base + offset).cast::<T>();
        // SAFETY: as many bytes lie in the mapping, which lives as long as `self`, as was just checked, and are aligned
        // since areas begin at a page; the caller vouches for the rest.
        unsafe { std::slice::from_raw_parts(first, count) }
    }

    /// What each rank says of itself: [`ABSENT`], [`HERE`] or [`LEFT`].
    pub(super) fn states(&self) -> &[AtomicU32] {
        // SAFETY: atomics; the map has this part for nothing else.
        unsafe { self.part(self.map.states, self.ranks.into()) }
    }

    /// What the ranks agree on.
    pub(super) fn agreed(&self) -> Shown<'_> {
        let parts = self.map.agreed;
        let [ranks, groups, codes] = parts.counts();
        Shown {
            header: &self.header().agreed,
            // SAFETY: atomics; the map has this part for nothing else.
            bound: unsafe { self.part(parts.bound, ranks) },
            // SAFETY: as above.
            groups: unsafe { self.part(parts.groups, groups) },
            // SAFETY: as above; a word is an atomic.
            codes: unsafe { self.part(parts.codes, codes) },
            ranks: self.ranks,
        }
    }

    /// What `rank` said, or says, of the call that `said` is of: the place that it has for it.
    ///
    /// # Panics
    /// If there is no such rank.
    pub(super) fn said(&self, rank: u16, said: Said) -> &Word {
        let all = self.all_said(Rank(rank));
        // SAFETY: words of the area, which lives as long as the borrow, accessed by atomics alone.
        let all = unsafe { all.as_ref() };
        &all[said.place()]
    }

    /// All places that `rank` has for what it says.
    ///
    /// # Panics
    /// If there is no such rank.
    pub(super) fn all_said(&self, rank: Rank) -> NonNull<[Word; SAID]> {
        assert!(rank.0 < self.ranks, "{rank} of {}", self.ranks);
        // SAFETY: atomics, zero at the beginning; the map has this part for nothing else.
        let all: &[[Word; SAID]] = unsafe { self.part(self.map.said, self.ranks.into()) };
        NonNull::from(&all[rank.index()])
    }

    /// The order in which pairs of lines are taken, as it is written down: see [`Self::ordered`].
    pub(super) fn order(&self) -> &[std::sync::atomic::AtomicU32] {
        // SAFETY: atomics; the map has this part for nothing else.
        unsafe { self.part(self.map.order, Map::pairs(self.bytes)) }
    }

    /// Whether ranks have found an order in this memory: all of it is written before the team goes on.
    fn is_ordered(&self) -> bool {
        let pairs = Supply::pairs(self.lines().len());
        let first = self.order().first().map_or(0, |first| first.load(Ordering::Relaxed));
        first > 0 && first as usize <= pairs
    }

    /// The order in which pairs of lines are to be taken, where ranks have found one in this memory.
    pub(super) fn ordered(&self) -> Option<Vec<u32>> {
        let pairs = Supply::pairs(self.lines().len());
        let number = |place: &std::sync::atomic::AtomicU32| {
            place.load(Ordering::Relaxed).checked_sub(1).filter(|pair| (*pair as usize) < pairs)
        };
        self.is_ordered().then(|| self.order()[..pairs].iter().map(number).collect()).flatten()
    }

    /// The lines, by their numbers in the memory.
    pub(super) const fn lines(&self) -> Range<usize> {
        let [start, end] = [self.base + self.map.lines, self.base + self.bytes];
        start / LINE_BYTES..end / LINE_BYTES
    }

    /// The number of line `index`, counted from the first line of the memory.
    pub(super) const fn number_of(index: usize) -> LineAddr {
        LineAddr(index as u64)
    }

    /// Makes lines what they were at the beginning.
    ///
    /// # Panics
    /// If there are no such lines.
    ///
    /// # Safety
    /// They are this team's, and nobody else uses them meanwhile.
    pub(super) unsafe fn clear(&self, lines: Range<usize>) {
        let (all, bytes) = (self.shared().len() / LINE_BYTES, lines.len() * LINE_BYTES);
        assert!(lines.end <= all, "lines {lines:?} of {all}");
        let first = self.shared().as_ptr().wrapping_add(lines.start * LINE_BYTES);
        // SAFETY: the lines lie in the mapping, as was just checked, which may be written to and lives as long as
        // `self`; the caller vouches that nobody else uses them.
        unsafe { first.write_bytes(0, bytes) };
    }

    /// The first byte of line `index`.
    ///
    /// # Panics
    /// If there is no such line.
    pub(super) fn line(&self, index: usize) -> NonNull<u8> {
        let all = self.shared().len() / LINE_BYTES;
        assert!(index < all, "line {index} of {all}");
        let first = self.shared().as_ptr().wrapping_add(index * LINE_BYTES);
        NonNull::new(first).unwrap_or(NonNull::dangling())
    }

    /// What a rank had used when it left: how many flags, and how far it was in which run of lines.
    pub(super) fn had_used(&self, flags: usize, run: usize, lines: usize) {
        let header = self.header();
        let how_far = (run as u64) << 32 | lines as u64;
        header.most[0].fetch_max(flags as u64, Ordering::Relaxed);
        header.most[1].fetch_max(how_far, Ordering::Relaxed);
    }

    /// The most of what ranks had used.
    pub(super) fn most_used(&self) -> (usize, usize, usize) {
        let most = self.header().most.each_ref().map(|most| most.load(Ordering::Relaxed));
        let number = |word: u64| usize::try_from(word).unwrap_or(usize::MAX);
        (number(most[0]), number(most[1] >> 32), number(most[1] & u64::from(u32::MAX)))
    }

    /// How many pieces of an arena the team has beside its first one.
    #[cfg(test)]
    pub(super) fn more(&self) -> usize {
        let words = self.header().more.iter();
        words.filter(|word| Extension::of_word(word.load()).found().is_some()).count()
    }

    /// Gives a piece back that all its ranks have left.
    fn end(&self, arena: &Arena, piece: Piece) {
        let header = self.header();
        let (flags, last, into) = self.most_used();
        let lines = self.lines();
        let (pairs, order) = (Supply::pairs(lines.len()), self.order());
        let ordered = self.is_ordered();
        for (place, said) in order.iter().enumerate().take(flags.min(pairs)) {
            let said = said.load(Ordering::Relaxed).saturating_sub(1) as usize;
            let flag = Supply::flag(&lines, if ordered { said } else { place });
            // SAFETY: a line of this team; all its ranks have left, which this one knows.
            unsafe { self.clear(flag..flag + 1) };
        }
        let more = header.more.each_ref().map(|word| Extension::of_word(word.load()).found());
        let more: Vec<_> = more.into_iter().map_while(|more| more).collect();
        let beside = more.iter().map(|(.., lines)| lines.clone());
        let own = Supply::flag(&lines, pairs)..lines.end;
        let runs = std::iter::once(own).chain(beside);
        for (number, run) in runs.enumerate().take(last + 1) {
            let used = if number < last { run.len() } else { into.min(run.len()) };
            // SAFETY: as above.
            unsafe { self.clear(run.start..run.start + used) };
        }
        for (granule, bytes, _) in more {
            arena.give_bytes(granule, bytes);
        }
        // The order stays: it is of the memory, not of the team.
        let front = self.base / LINE_BYTES..(self.base + self.map.order) / LINE_BYTES;
        // SAFETY: as above; nobody has a reference into it, since this is the last look at it.
        unsafe { self.clear(front) };
        arena.give_bytes(piece.first, self.bytes);
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        let Home::Piece(arena, piece) = &self.home else { return };
        // Release: what this rank did is done. Acquire: the last one finds what all did.
        let before = self.header().left.0.fetch_add(1, Ordering::AcqRel);
        if before + 1 == u32::from(self.ranks) {
            self.end(&Arc::clone(arena), *piece);
        }
    }
}
