//! How growth begins anew in a child of `fork`, and what its parent looks at again.
//!
//! Frames of inherited pages change as they are written, so nothing is learnt of them, and what the
//! parent was learning is left as it lay: a thread that there is not any more may have been at it.
//! The child learns nothing before it has allocated as much by itself as any process, and then only
//! pages that it has taken itself.
//!
//! The parent's frames change as well where it writes first. What it knows is decoded once more, when nothing else is
//! left to be learnt.

use super::Work;
use super::pages::PART_PAGES;
use crate::counters::Counters;
use crate::instance::Instance;
use crate::process::{PROCESS, report_late};
use crate::room::Inside;
use core::sync::atomic::Ordering;

impl Instance<'static> {
    /// Begins anew, in a child of `fork` that has allocated enough by itself.
    pub(crate) fn begin_anew(&'static self, inside: &mut Inside<'_>, counters: &Counters) {
        let growth = &self.growth;
        if !growth.is_inherited() {
            return;
        }
        let at = growth.anew_at_bytes.load(Ordering::Relaxed);
        if counters.placed_bytes().saturating_add(PROCESS.counted_bytes()) < at {
            return;
        }
        let Some(_held) = growth.learning.try_hold() else { return };
        if !growth.is_inherited() {
            return;
        }
        report_late(inside);
        // Whole parts, so that blocks of pages that share a code are whole too.
        let first = (self.arena.pages() as u64).next_multiple_of(PART_PAGES);
        let made = inside.run(|| {
            let work = Work::new(*self.atlas(), &self.arena, first, self.heap().policy());
            work.map(|work| growth.set_work(work))
        });
        match made {
            Ok(()) => {
                growth.has_backlog.store(true, Ordering::Relaxed);
                growth.anew_at_bytes.store(0, Ordering::Release);
            }
            // There may be memory later.
            Err(_) => growth.anew_at_bytes.store(at.saturating_mul(2), Ordering::Relaxed),
        }
    }
}
