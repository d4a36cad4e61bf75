//! A mover's ring of wishes. Workers write, one mover reads. A wish may be lost: when many come at once
//! the oldest are overwritten, and when its writer is killed. Nothing depends on one.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::names::{Access, Group};
use crate::pages::Wish;

const SLOTS: usize = 56;
/// Written, read, a line of their own each, and the slots.
pub(super) const WORDS: usize = 16 + SLOTS;
const VALID: u64 = 1 << 63;
const WRITE: u64 = 1 << 62;

fn slot(ring: &[AtomicU64], number: u64) -> &AtomicU64 {
    let place = number % SLOTS as u64;
    &ring[16 + usize::try_from(place).unwrap_or(0)]
}

pub(super) fn push(ring: &[AtomicU64], wish: Wish) {
    // SeqCst, as the ring of the doorbell after it: a mover that lies down rings it off and then looks here.
    let number = ring[0].fetch_add(1, Ordering::SeqCst);
    let write = if wish.access == Access::Write { WRITE } else { 0 };
    let value = VALID | write | u64::from(wish.worker) << 32 | u64::from(wish.group.0);
    slot(ring, number).store(value, Ordering::Release);
}

/// The oldest wish that is still there. For the mover alone.
pub(super) fn pop(ring: &[AtomicU64]) -> Option<Wish> {
    let written = ring[0].load(Ordering::Acquire);
    let mut read = ring[8].load(Ordering::Relaxed).max(written.saturating_sub(SLOTS as u64));
    while read < written {
        let value = slot(ring, read).swap(0, Ordering::AcqRel);
        read += 1;
        ring[8].store(read, Ordering::Relaxed);
        if value & VALID != 0 {
            let part = |value: u64| u32::try_from(value & 0xffff_ffff).unwrap_or(0);
            return Some(Wish {
                worker: part(value >> 32) & 0xffff,
                group: Group(part(value)),
                access: if value & WRITE == 0 { Access::Read } else { Access::Write },
            });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wishes_come_in_order_and_the_oldest_are_lost() {
        let ring: Vec<_> = (0..WORDS).map(|_| AtomicU64::new(0)).collect();
        assert_eq!(pop(&ring), None);
        let wish = |group| Wish { worker: 513, group: Group(group), access: Access::Write };
        push(&ring, wish(u32::MAX));
        push(&ring, Wish { access: Access::Read, ..wish(7) });
        assert_eq!(pop(&ring), Some(wish(u32::MAX)));
        assert_eq!(pop(&ring), Some(Wish { access: Access::Read, ..wish(7) }));
        assert_eq!(pop(&ring), None);
        (0..100).for_each(|group| push(&ring, wish(group)));
        assert_eq!(pop(&ring), Some(wish(100 - 56)));
    }
}
