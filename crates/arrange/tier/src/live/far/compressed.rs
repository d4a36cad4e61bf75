//! Compressed memory: each group by itself, in slots of memory, made shorter as [`Packing`] says.
//!
//! Slots have sizes in steps of an eighth of a group ([`Slots`]). A group is written to a new slot before its old
//! one is freed, so a writer that is killed leaves the old copy and, at worst, one slot that nobody has. Groups
//! of zeros take no slot.

use core::sync::atomic::{AtomicU64, Ordering};

use isochrone_os::OsError;
use isochrone_os::mapping::Mapping;
use isochrone_os::space::Space;

use super::packing::{CORRUPT, Packing};
use super::slots::{GROUP_UNITS, Slots};
use super::{Far, Part, Scratch};
use crate::pages::Trouble;

/// A group that was never written, or only with zeros.
const ZEROS: u64 = 0;

/// A far tier in compressed memory.
#[derive(Debug)]
pub struct Compressed {
    packing: &'static dyn Packing,
    space: Space,
    /// For each group: the unit at which its slot begins plus one, and the bytes in it.
    entries: Mapping,
    slots: Slots,
    group_bytes: usize,
}

impl Compressed {
    /// Room for the groups of an area, at most `capacity` bytes of it.
    ///
    /// # Errors
    /// [`OsError`] where there is no memory for its tables.
    pub fn new(
        packing: &'static dyn Packing,
        area_bytes: usize,
        group_bytes: usize,
        capacity: usize,
    ) -> Result<Self, OsError> {
        Self::over(packing, area_bytes, group_bytes, capacity, true)
    }

    /// The same for one process alone: its memory and its tables come as they are used, and it has no files.
    ///
    /// # Errors
    /// [`OsError`] where there are not so many addresses.
    pub fn private(
        packing: &'static dyn Packing,
        area_bytes: usize,
        group_bytes: usize,
        capacity: usize,
    ) -> Result<Self, OsError> {
        Self::over(packing, area_bytes, group_bytes, capacity, false)
    }

    fn over(
        packing: &'static dyn Packing,
        area_bytes: usize,
        group_bytes: usize,
        capacity: usize,
        shared: bool,
    ) -> Result<Self, OsError> {
        let map = |bytes: usize| {
            if shared { Mapping::shared_memfd(bytes) } else { Mapping::absent(bytes) }
        };
        let groups = capacity / group_bytes;
        Ok(Self {
            packing,
            space: Space::unlocked(groups.max(1) * group_bytes, shared)?,
            entries: map(area_bytes.div_ceil(group_bytes) * size_of::<u64>())?,
            slots: Slots::new(groups, map)?,
            group_bytes,
        })
    }

    /// Bytes of a unit of slots.
    const fn unit(&self) -> usize {
        self.group_bytes / GROUP_UNITS
    }

    fn entry(&self, at: usize) -> &AtomicU64 {
        &self.entries.words()[at / self.group_bytes]
    }

    /// Frees what an entry says.
    fn free(&self, entry: u64) {
        if let Some((unit, _)) = slot_of(entry) {
            self.slots.give(unit);
        }
    }

    fn read_group(&self, at: usize, to: &mut [u8], scratch: &mut Scratch) -> Result<(), Trouble> {
        let Some((unit, bytes)) = slot_of(self.entry(at).load(Ordering::Acquire)) else {
            to.fill(0);
            return Ok(());
        };
        let from = self.space.as_ptr().wrapping_add(index(unit) * self.unit()).cast_const();
        // SAFETY: the slot lies inside of the space and belongs to this group, whose part the caller
        // owns: nobody writes it meanwhile.
        let stored = unsafe { std::slice::from_raw_parts(from, bytes) };
        if bytes == to.len() {
            to.copy_from_slice(stored);
            return Ok(());
        }
        let done = self.packing.unpack(stored, to, scratch)?;
        if done == to.len() { Ok(()) } else { Err(CORRUPT) }
    }

    fn write_group(&self, at: usize, from: &[u8], scratch: &mut Scratch) -> Result<(), Trouble> {
        let old = self.entry(at).load(Ordering::Relaxed);
        if from.iter().all(|byte| *byte == 0) {
            self.entry(at).store(ZEROS, Ordering::Release);
            self.free(old);
            return Ok(());
        }
        let packed = self.packing.pack(from, scratch)?;
        let packed = if packed < from.len() { &scratch.bytes[..packed] } else { from };
        let unit = self.slots.take(packed.len().div_ceil(self.unit())).ok_or(Trouble::Full)?;
        let to = self.space.as_ptr().wrapping_add(index(unit) * self.unit());
        // SAFETY: the slot lies inside of the space, is as large as its content, and was just taken: it
        // is nobody else's.
        unsafe { std::ptr::copy_nonoverlapping(packed.as_ptr(), to, packed.len()) };
        let entry = (unit + 1) << 32 | packed.len() as u64;
        self.entry(at).store(entry, Ordering::Release);
        self.free(old);
        Ok(())
    }
}

/// A unit as an index.
fn index(unit: u64) -> usize {
    usize::try_from(unit).unwrap_or(usize::MAX)
}

/// The unit at which a group's slot begins, and the bytes in it.
fn slot_of(entry: u64) -> Option<(u64, usize)> {
    let bytes = usize::try_from(entry & 0xffff_ffff).ok()?;
    Some(((entry >> 32).checked_sub(1)?, bytes))
}

impl Far for Compressed {
    fn name(&self) -> &'static str {
        self.packing.name()
    }

    fn scratch(&self) -> Result<Scratch, OsError> {
        self.packing.scratch(self.group_bytes)
    }

    fn read(&self, part: &Part, to: &mut [u8], scratch: &mut Scratch) -> Result<(), Trouble> {
        let mut groups = to.chunks_mut(self.group_bytes).enumerate();
        groups
            .try_for_each(|(n, to)| self.read_group(part.at() + n * self.group_bytes, to, scratch))
    }

    fn write(&self, part: &Part, from: &[u8], scratch: &mut Scratch) -> Result<(), Trouble> {
        let mut groups = from.chunks(self.group_bytes).enumerate();
        groups.try_for_each(|(n, from)| {
            self.write_group(part.at() + n * self.group_bytes, from, scratch)
        })
    }

    fn forget(&self, part: &Part) {
        for at in (part.at()..part.at() + part.bytes()).step_by(self.group_bytes) {
            self.free(self.entry(at).swap(ZEROS, Ordering::AcqRel));
        }
    }

    fn used_bytes(&self) -> Option<u64> {
        Some((self.slots.held_units() * self.unit()) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Lz4, Zstd};
    use super::*;

    /// Bytes that compress to about `share` of eighths.
    fn page(seed: u64, share: usize) -> Vec<u8> {
        let mut x = seed | 1;
        let mut bytes = vec![0_u8; 4096];
        for byte in bytes.iter_mut().take(512 * share) {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            *byte = x.to_le_bytes()[3];
        }
        bytes
    }

    #[test]
    fn groups_come_back_whatever_they_hold() {
        come_back(&Lz4);
        come_back(&Zstd);
    }

    fn come_back(packing: &'static dyn Packing) {
        let far = Compressed::new(packing, 64 << 12, 4096, 64 << 12).unwrap();
        let mut scratch = far.scratch().unwrap();
        let mut to = vec![1; 4096];
        for round in 0..50 {
            for group in 0..16 {
                let share = (group + round) % 9;
                let part = Part::owned(group << 12, 4096);
                let bytes = page(round as u64 * 100 + group as u64, share);
                far.write(&part, &bytes, &mut scratch).unwrap();
                far.read(&part, &mut to, &mut scratch).unwrap();
                assert_eq!(to, bytes, "round {round}, group {group}");
            }
        }
        assert!(far.used_bytes() <= Some(64 << 12));
        far.forget(&Part::owned(0, 4096));
        far.read(&Part::owned(0, 4096), &mut to, &mut scratch).unwrap();
        assert!(to.iter().all(|byte| *byte == 0));
    }

    #[test]
    fn a_full_store_says_so_and_keeps_what_it_has() {
        let far = Compressed::new(&Zstd, 64 << 12, 4096, 4 << 12).unwrap();
        let mut scratch = far.scratch().unwrap();
        for group in 0..4 {
            far.write(&Part::owned(group << 12, 4096), &page(group as u64, 8), &mut scratch)
                .unwrap();
        }
        let fifth = far.write(&Part::owned(4 << 12, 4096), &page(9, 8), &mut scratch);
        assert_eq!(fifth, Err(Trouble::Full));
        let mut to = vec![0; 4096];
        for group in 0..4 {
            far.read(&Part::owned(group << 12, 4096), &mut to, &mut scratch).unwrap();
            assert_eq!(to, page(group as u64, 8));
        }
        // Room that one gives up is another's.
        far.forget(&Part::owned(0, 4096));
        far.write(&Part::owned(4 << 12, 4096), &page(9, 8), &mut scratch).unwrap();
    }

    #[test]
    fn several_groups_are_written_and_read_by_one_call() {
        let far = Compressed::new(&Lz4, 64 << 12, 8192, 64 << 12).unwrap();
        let mut scratch = far.scratch().unwrap();
        let bytes: Vec<u8> = (0..4).flat_map(|n| page(n, 3)).collect();
        far.write(&Part::owned(8192, 16384), &bytes, &mut scratch).unwrap();
        let mut to = vec![0; 16384];
        far.read(&Part::owned(8192, 16384), &mut to, &mut scratch).unwrap();
        assert_eq!(to, bytes);
        far.read(&Part::owned(16384, 8192), &mut to[..8192], &mut scratch).unwrap();
        assert_eq!(to[..8192], bytes[8192..]);
    }
}
