//! The translations that a set of bins needs: near lines that are a part of their pages are spread
//! over more pages than any lines, and a core holds the translations of so many.
//!
//! The model: what is live is used evenly, so of `span` bytes of pages a core that holds the
//! translations of `reach` bytes misses `1 - reach / span`, and a miss costs a page walk. Loads
//! that depend on each other wait for it. A set that has all lines of some pages needs no more
//! pages than any other; a quarter of the lines of every page needs four times as many.

use crate::bins::{Bins, KINDS, KINDS_EACH, UnitBins};
use crate::groups::kinds_by_group;
use crate::groups::{CLASS_KINDS, Classes, MAX_GROUPS};

/// A page walk, cycles of the counter. Measured by chases over a fixed number of lines in ever more
/// pages, on two guests whose hosts back memory with 4 KiB pages: 17 to 19 ns at 2.6 GHz on an EPYC
/// 9005 (12,288 and 24,576 lines, guest pages of 2 MiB; 24 to 33 ns with guest pages of 4 KiB), 15
/// to 27 ns at 2.2 GHz on a Granite Rapids.
pub(super) const WALK_CYCLES: f64 = 45.0;

/// Page kinds as bits.
type Kinds = u32;

/// Which pages each group of lines lies in, and how many pages that is.
pub(super) struct Translations {
    llc: [Kinds; MAX_GROUPS + 1],
    dram: [Kinds; MAX_GROUPS + 1],
    /// Share of the pages that are of each kind.
    shares: [f64; KINDS],
    /// The memory whose translations a core holds, over the live bytes.
    room: f64,
}

impl Translations {
    /// `room` is what a core reaches without a walk, over what is live.
    pub(super) fn new(of_unit: &UnitBins, bins: &Bins, room: f64) -> Self {
        let each = usize::from(KINDS_EACH);
        // Bits of one level's kinds as bits of pages, whose other level may be of any kind.
        let spread = |bits: u32, bit_of: &dyn Fn(usize, usize) -> usize| -> Kinds {
            let pairs = (0..each).flat_map(|own| (0..each).map(move |other| (own, other)));
            pairs
                .filter(|(own, _)| bits >> own & 1 == 1)
                .fold(0, |kinds, (own, other)| kinds | 1 << bit_of(own, other))
        };
        let llc = kinds_by_group(&of_unit.llc, &bins.llc);
        let dram = kinds_by_group(&of_unit.dram, &bins.dram);
        let (of_llc, of_dram) = (by_kind(&bins.llc), by_kind(&bins.dram));
        Self {
            llc: llc.map(|bits| spread(bits, &|own, other| own * each + other)),
            dram: dram.map(|bits| spread(bits, &|own, other| other * each + own)),
            shares: core::array::from_fn(|kind| of_llc[kind / each] * of_dram[kind % each]),
            room,
        }
    }

    /// The pages that hold units of two groups.
    pub(super) fn kinds(&self, llc: u8, dram: u8) -> Kinds {
        self.llc[usize::from(llc)] & self.dram[usize::from(dram)]
    }

    /// The share of accesses that wait for a walk, to a set that is so large a share of all units
    /// and lies in pages of these kinds.
    pub(super) fn miss_share(&self, kinds: Kinds, units: f64) -> f64 {
        let touched = self.shares.iter().enumerate().filter(|(kind, _)| kinds >> kind & 1 == 1);
        let pages: f64 = touched.map(|(_, share)| share).sum();
        (1.0 - self.room * units / pages.max(units)).max(0.0)
    }
}

/// Share of the pages by a level's kind.
fn by_kind(classes: &Classes) -> [f64; CLASS_KINDS + 1] {
    let mut shares = [0.0; CLASS_KINDS + 1];
    for (class, share) in (0_u8..).zip(classes.shares) {
        shares[usize::from(classes.kind(class))] += f64::from(share);
    }
    shares
}
