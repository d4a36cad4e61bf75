//! What a program can do wrong with a slot, and how it is told.

use crate::slot::Slot;
use core::fmt;

/// A use of a slot that no correct program makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Misuse {
    /// Freed, but its page holds no slots.
    Foreign = 1,
    /// Freed, but no slot of its page begins there.
    Inside = 2,
    /// Freed while it was free.
    DoubleFree = 3,
    /// About to be handed out while it was live.
    Overlap = 4,
}

impl Misuse {
    const ALL: [Self; 4] = [Self::Foreign, Self::Inside, Self::DoubleFree, Self::Overlap];

    /// A slot and what was done with it, as one number that is never 0.
    pub(crate) fn pack(self, slot: Slot) -> u64 {
        u64::from(slot.0) << 8 | self as u64
    }

    /// Back from one number.
    pub(crate) fn unpack(packed: u64) -> Option<(Self, Slot)> {
        let [kind, a, b, c, d, ..] = packed.to_le_bytes();
        let misuse = Self::ALL.into_iter().find(|misuse| *misuse as u8 == kind)?;
        Some((misuse, Slot(u32::from_le_bytes([a, b, c, d]))))
    }
}

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Foreign => "freed memory that was never handed out; look for a stray pointer",
            Self::Inside => "freed a pointer into the middle of an object; free its beginning",
            Self::DoubleFree => "freed twice; run with the checking allocator to find the second",
            Self::Overlap => "memory was free and live at once; it was freed while in use",
        })
    }
}

impl core::error::Error for Misuse {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misuse_packs_and_unpacks() {
        for misuse in Misuse::ALL {
            let packed = misuse.pack(Slot(0x1234_5678));
            assert_eq!(Misuse::unpack(packed), Some((misuse, Slot(0x1234_5678))));
        }
        assert_eq!(Misuse::unpack(0), None);
    }
}
