//! The memory of a heap, which its caller supplies: nothing but atomics, all of it beside the
//! arena and none inside.
//!
//! Zeroed memory is a correct empty heap, so a caller may map it and cast it. Every table may be
//! of any length: what lies beyond one is not part of the heap.

use crate::bins::{KINDS, MAX_BINS};
use crate::class::{SizeClass, UnitLines};
use crate::depot::Depot;
use crate::groups::INDICES;
use crate::sync::Ordering::Relaxed;
use crate::sync::{AtomicI64, AtomicU8, AtomicU16, AtomicU32, AtomicU64, Tally};
use core::array::from_fn;

/// The tables of one heap.
#[derive(Clone, Copy, Debug)]
pub struct Tables<'a> {
    /// Use and codes, one for each page.
    pub pages: &'a [AtomicU64],
    /// Links of free units and of ready pages, one for each line.
    pub next: &'a [AtomicU32],
    /// Free and live slots, one for each line.
    pub masks: &'a [AtomicU8],
    /// The core for which a line was last taken, one for each line; or empty, and then
    /// [`crate::Heap::survey`] cannot tell cores apart.
    pub owners: &'a [AtomicU8],
    /// Measured ranks, one for each line, for [`crate::Mode::Oracle`]; else empty.
    pub ranks: &'a [AtomicU8],
    /// One for each core that takes slots, by the index that the caller gives cores.
    pub cores: &'a [CoreTable],
    /// What all cores share.
    pub shared: &'a Shared,
}

/// Heads of stacks, and sums.
#[derive(Debug)]
#[repr(C)]
pub struct Shared {
    /// Free units by class and bin.
    pub(crate) heads: [[AtomicU64; MAX_BINS]; SizeClass::COUNT],
    /// Ready pages by kind.
    pub(crate) ready: [AtomicU64; KINDS],
    /// Units of all pages of the heap by unit size and bin.
    pub(crate) population: [[AtomicU32; MAX_BINS]; UnitLines::ALL.len()],
    /// How many of them are in use as a whole, or in hand.
    pub(crate) used: [[Tally; MAX_BINS]; UnitLines::ALL.len()],
    pub(crate) sums: Sums,
    /// What threads of cores without an order keep for each other.
    pub(crate) depot: Depot,
}

/// What is counted; changed on slow paths only.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct Sums {
    pub(crate) live_bytes: AtomicI64,
    pub(crate) assigned_bytes: AtomicU64,
    pub(crate) near_slots: AtomicU64,
    pub(crate) spilled_slots: AtomicU64,
    pub(crate) foreign_frees: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) forced_pages: AtomicU64,
    pub(crate) demoted_pages: AtomicU64,
    pub(crate) home_changes: AtomicU64,
    pub(crate) misuses: AtomicU64,
    pub(crate) first_misuse: AtomicU64,
    pub(crate) ordered_bytes: AtomicU64,
    pub(crate) pages: AtomicU32,
    pub(crate) ready_pages: AtomicU32,
    pub(crate) ordered_pages: AtomicU32,
    pub(crate) away_pages: AtomicU32,
    pub(crate) come_again: AtomicU32,
}

impl Default for Shared {
    fn default() -> Self {
        Self {
            heads: from_fn(|_| from_fn(|_| AtomicU64::default())),
            ready: from_fn(|_| AtomicU64::default()),
            population: from_fn(|_| from_fn(|_| AtomicU32::default())),
            used: from_fn(|_| from_fn(|_| Tally::default())),
            sums: Sums::default(),
            depot: Depot::default(),
        }
    }
}

/// The orders of one core, and its current bases.
///
/// They are replaced while others read, byte by byte. A reader may see a mixture of two orders:
/// it may then miss a bin, visit one twice, or call a unit near that no longer is. None of that
/// loses or doubles a slot, for a slot's bin and not its order decides where it lies, and a
/// refill that found nothing sweeps all bins before it gives up.
#[derive(Debug)]
#[repr(C)]
pub struct CoreTable {
    pub(crate) orders: [OrderTable; UnitLines::ALL.len()],
    /// Bits of the latencies of the current bases, by level and canonical index.
    pub(crate) current: [[AtomicU32; INDICES]; 2],
    /// Bit by level: it is known.
    pub(crate) known: AtomicU8,
    /// What threads of this core keep for each other.
    pub(crate) depot: Depot,
}

/// The order of one core over the bins of one unit size.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct OrderTable {
    /// The rank of each bin: its place in the order.
    pub(crate) ranks: [AtomicU8; MAX_BINS],
    pub(crate) bins: [AtomicU8; MAX_BINS],
    pub(crate) kinds: [AtomicU8; KINDS],
    pub(crate) near_kinds: AtomicU32,
    /// Bins in the order; none if there is no order.
    pub(crate) count: AtomicU16,
    /// Bins that are near.
    pub(crate) near: AtomicU16,
    /// Bins whose units are kept by who cuts a new page: near ones, and as many more as must be
    /// used so that no more memory is wasted than allowed.
    pub(crate) keep: AtomicU16,
    /// Bits of the share of units that are near by the model; 0 before it was asked.
    pub(crate) near_share: AtomicU32,
}

/// The rank of the farthest bin of which new pages' units are kept, near or not; that of any where
/// there is no order.
pub(crate) fn near_reach(order: &OrderTable) -> u8 {
    if order.count.load(Relaxed) == 0 {
        return u8::MAX;
    }
    let kept = order.near.load(Relaxed).max(order.keep.load(Relaxed));
    kept.saturating_sub(1).to_le_bytes()[0]
}

/// A core in the table of owners: 0 is nobody, and cores beyond 253 cannot be told apart.
pub(crate) fn owner_tag(core: u16) -> u8 {
    u8::try_from(core.saturating_add(1)).unwrap_or(u8::MAX)
}

/// The bits of a mask that say which slots are free; the others say which are live.
pub(crate) const FREE: u8 = 0b1111;

impl Default for OrderTable {
    fn default() -> Self {
        Self {
            ranks: from_fn(|_| AtomicU8::default()),
            bins: from_fn(|_| AtomicU8::default()),
            kinds: from_fn(|_| AtomicU8::default()),
            near_kinds: AtomicU32::default(),
            count: AtomicU16::default(),
            near: AtomicU16::default(),
            keep: AtomicU16::default(),
            near_share: AtomicU32::default(),
        }
    }
}

impl Default for CoreTable {
    fn default() -> Self {
        Self {
            orders: from_fn(|_| OrderTable::default()),
            current: from_fn(|_| from_fn(|_| AtomicU32::default())),
            known: AtomicU8::default(),
            depot: Depot::default(),
        }
    }
}
