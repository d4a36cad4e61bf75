//! What a heap has done, as plain numbers for a report.

use crate::check::Misuse;
use crate::heap::Heap;
use crate::slot::Slot;
use crate::sync::Ordering::Relaxed;

/// Sums over all threads. A thread adds its share whenever it refills or gives back, so live
/// bytes lag by what its magazines can hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Bytes of slots that the program holds.
    pub live_bytes: u64,
    /// Bytes of pages that were cut into slots.
    pub assigned_bytes: u64,
    /// Pages of the heap, of whatever use.
    pub pages: u32,
    /// Pages that wait for a class.
    pub ready_pages: u32,
    /// Pages whose memory went back to the system, and that nobody has taken a slot of since.
    pub away_pages: u32,
    /// Slots drawn from bins that were near for the core that drew them.
    pub near_slots: u64,
    /// Slots drawn from bins that were not.
    pub spilled_slots: u64,
    /// Slots freed by a core to which they are too far to keep, or by nobody in particular.
    pub foreign_frees: u64,
    /// Draws that found nothing at all.
    pub refused: u64,
    /// Pages that were assigned beyond the waste allowed, since no slot of the class was free.
    pub forced_pages: u64,
    /// Pages whose codes were taken back.
    pub demoted_pages: u64,
    /// Times that a thread was found on another core.
    pub home_changes: u64,
    /// Uses that no correct program makes.
    pub misuses: u64,
}

impl Heap<'_> {
    /// The sums now.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let sums = self.sums();
        Stats {
            live_bytes: self.live_bytes(),
            assigned_bytes: sums.assigned_bytes.load(Relaxed),
            pages: sums.pages.load(Relaxed),
            ready_pages: sums.ready_pages.load(Relaxed),
            away_pages: sums.away_pages.load(Relaxed),
            near_slots: sums.near_slots.load(Relaxed),
            spilled_slots: sums.spilled_slots.load(Relaxed),
            foreign_frees: sums.foreign_frees.load(Relaxed),
            refused: sums.refused.load(Relaxed),
            forced_pages: sums.forced_pages.load(Relaxed),
            demoted_pages: sums.demoted_pages.load(Relaxed),
            home_changes: sums.home_changes.load(Relaxed),
            misuses: sums.misuses.load(Relaxed),
        }
    }

    /// Bytes that the program holds, as far as threads have said.
    #[must_use]
    pub fn live_bytes(&self) -> u64 {
        u64::try_from(self.sums().live_bytes.load(Relaxed)).unwrap_or(0)
    }

    /// The first misuse that was found, and of which slot.
    #[must_use]
    pub fn first_misuse(&self) -> Option<(Misuse, Slot)> {
        Misuse::unpack(self.sums().first_misuse.load(Relaxed))
    }

    pub(crate) fn note_misuse(&self, misuse: Misuse, slot: Slot) -> Misuse {
        let sums = self.sums();
        sums.misuses.fetch_add(1, Relaxed);
        // Somebody else may have been first.
        let _ = sums.first_misuse.compare_exchange(0, misuse.pack(slot), Relaxed, Relaxed);
        misuse
    }
}
