//! Registered memory: where it is, and in which region each piece of it lives as far as is known.

use core::sync::atomic::{AtomicU16, Ordering::Relaxed};

use super::entries::{Object, object};
use super::pieces::{PAGE_SHIFT, piece_shift, pieces};
use super::whole::Arena;
use crate::range::{DataId, Range};
use crate::sync::Ordering;

/// Nothing is known: nobody has touched the piece.
const UNKNOWN: u16 = 0;
/// Spread over all regions, page by page.
const SPREAD: u16 = 0x7fff;
/// Set while the task that will touch the piece first has not begun.
const PROMISED: u16 = 0x8000;

/// Where a piece lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Home {
    /// Nobody has touched it.
    Unknown,
    /// In one region, by its number in the topology.
    Region(usize),
    /// Evenly over all.
    Spread,
}

impl Home {
    const fn of(word: u16) -> Self {
        match word & !PROMISED {
            UNKNOWN => Self::Unknown,
            SPREAD => Self::Spread,
            region => Self::Region(region as usize - 1),
        }
    }

    fn word(self) -> u16 {
        match self {
            Self::Unknown => UNKNOWN,
            Self::Spread => SPREAD,
            Self::Region(region) => u16::try_from(region + 1).unwrap_or(SPREAD).min(SPREAD - 1),
        }
    }
}

/// Why a range cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    Unknown,
    Freed,
    Outside { bytes: u64 },
}

impl Arena {
    /// The object, if its range can be used now.
    #[inline]
    pub(crate) fn object(&self, range: Range) -> Result<&Object, Refused> {
        let object = self.objects.get(range.data.0 as usize).ok_or(Refused::Unknown)?;
        match object.state.load(Ordering::Acquire) {
            object::LIVE => {}
            object::FREED => return Err(Refused::Freed),
            _ => return Err(Refused::Unknown),
        }
        let bytes = object.bytes.load(Ordering::Relaxed);
        if range.end() > bytes {
            return Err(Refused::Outside { bytes });
        }
        Ok(object)
    }

    /// Words that tell the homes of an object's pieces; none where all memory is in one region.
    fn homes(&self, data: DataId) -> (&[AtomicU16], u32) {
        let object = &self.objects[data.0 as usize];
        let (first, shift) =
            (object.homes.load(Ordering::Relaxed), object.shift.load(Ordering::Relaxed));
        if first == 0 {
            return (&[], PAGE_SHIFT);
        }
        let count = pieces(object.bytes.load(Ordering::Relaxed));
        let first = core::ptr::with_exposed_provenance::<AtomicU16>(first);
        // SAFETY: who registered the object put there the address of as many words as it has pieces,
        // which live as long as the arena, and which all change by atomics only.
        (unsafe { core::slice::from_raw_parts(first, count) }, shift)
    }

    /// Where the bytes of `range` live: calls `each` with a home and a number of bytes.
    #[inline]
    pub(crate) fn homes_of(&self, range: Range, mut each: impl FnMut(Home, u64)) {
        let (homes, shift) = self.homes(range.data);
        if homes.is_empty() {
            each(Home::Region(0), range.bytes);
            return;
        }
        let mut at = range.start;
        while at < range.end() {
            let piece = at >> shift;
            let end = ((piece + 1) << shift).min(range.end());
            let word = usize::try_from(piece).ok().and_then(|piece| homes.get(piece));
            each(Home::of(word.map_or(UNKNOWN, |word| word.load(Relaxed))), end - at);
            at = end;
        }
    }

    /// Whether some piece of the range was never touched nor promised.
    pub(crate) fn is_fresh(&self, range: Range) -> bool {
        let mut fresh = false;
        self.homes_of(range, |home, _| fresh |= home == Home::Unknown);
        fresh
    }

    /// Whether a task that touches the range may still decide where some of it lives.
    pub(crate) fn is_open(&self, range: Range) -> bool {
        let (homes, shift) = self.homes(range.data);
        pieces_of(range, shift).any(|piece| {
            homes.get(piece).is_some_and(|word| {
                let word = word.load(Relaxed);
                word == UNKNOWN || word & PROMISED != 0
            })
        })
    }

    /// The task that touches the range first will run in `region`.
    pub(crate) fn promise(&self, range: Range, region: usize) {
        let (homes, shift) = self.homes(range.data);
        let word = Home::Region(region).word() | PROMISED;
        for home in pieces_of(range, shift).filter_map(|piece| homes.get(piece)) {
            let _ = home.compare_exchange(UNKNOWN, word, Relaxed, Relaxed);
        }
    }

    /// A task that runs in `region` touches the range; what nobody touched before lives there now.
    pub(crate) fn touch(&self, range: Range, region: usize) {
        let (homes, shift) = self.homes(range.data);
        let word = Home::Region(region).word();
        for home in pieces_of(range, shift).filter_map(|piece| homes.get(piece)) {
            let seen = home.load(Relaxed);
            if seen == UNKNOWN || seen & PROMISED != 0 {
                home.store(word, Relaxed);
            }
        }
    }

    /// Sets what is known of an object's pieces: what the kernel said, or how memory is spread.
    pub(crate) fn settle(&self, data: DataId, home: impl Fn(usize) -> Home) {
        let (homes, _) = self.homes(data);
        for (piece, word) in homes.iter().enumerate() {
            word.store(home(piece).word(), Relaxed);
        }
    }

    /// Enters an object. False if the number is taken.
    pub(crate) fn enter_object(&self, data: DataId, base: usize, bytes: u64, homes: usize) -> bool {
        let Some(object) = self.objects.get(data.0 as usize) else { return false };
        if object.state.load(Ordering::Relaxed) != object::ABSENT {
            return false;
        }
        object.base.store(base, Ordering::Relaxed);
        object.bytes.store(bytes, Ordering::Relaxed);
        object.homes.store(homes, Ordering::Relaxed);
        object.shift.store(piece_shift(bytes), Ordering::Relaxed);
        object.state.store(object::LIVE, Ordering::Release);
        true
    }
}

/// Pieces that a range touches.
fn pieces_of(range: Range, shift: u32) -> impl Iterator<Item = usize> {
    let last = range.end().saturating_sub(1) >> shift;
    let all = range.start >> shift..=last;
    all.filter(move |_| range.bytes > 0).filter_map(|piece| usize::try_from(piece).ok())
}
