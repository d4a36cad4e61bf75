//! Another part of memory: plain, for tests and to measure the pager alone, or in a region that has no
//! cores, such as a CXL device.

use isochrone_os::OsError;
use isochrone_os::space::Space;
use isochrone_units::RegionId;

use super::{Far, Part, Scratch};
use crate::pages::Trouble;

/// A far tier in memory.
#[derive(Debug)]
pub struct Memory {
    space: Space,
}

impl Memory {
    /// Room for an area of `bytes`, taken as it is used; in a region if one is named.
    ///
    /// # Errors
    /// [`OsError`] where there are not so many addresses, or no such region.
    pub fn new(bytes: usize, region: Option<RegionId>) -> Result<Self, OsError> {
        let space = Space::unlocked(bytes, true)?;
        if let Some(region) = region {
            space.interleave(0, bytes, &[region])?;
        }
        Ok(Self { space })
    }

    /// Where a part lies, if all of it is inside.
    fn inside(&self, part: &Part) -> Result<*mut u8, Trouble> {
        let end = part.at().checked_add(part.bytes()).ok_or(Trouble::Full)?;
        if end > self.space.len() {
            return Err(Trouble::Full);
        }
        Ok(self.space.as_ptr().wrapping_add(part.at()))
    }
}

impl Far for Memory {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn is_memory(&self) -> bool {
        true
    }

    fn place(&self, part: &Part) -> Option<Result<*mut u8, Trouble>> {
        Some(self.inside(part))
    }

    fn read(&self, part: &Part, to: &mut [u8], _: &mut Scratch) -> Result<(), Trouble> {
        let from = self.inside(part)?;
        let bytes = part.bytes().min(to.len());
        // SAFETY: the part is inside and belongs to the caller, so nobody writes it meanwhile; `to` is
        // the caller's alone and lies elsewhere.
        unsafe { std::ptr::copy_nonoverlapping(from, to.as_mut_ptr(), bytes) };
        Ok(())
    }

    fn write(&self, part: &Part, from: &[u8], _: &mut Scratch) -> Result<(), Trouble> {
        let to = self.inside(part)?;
        let bytes = part.bytes().min(from.len());
        // SAFETY: the part is inside and belongs to the caller, so nobody reads or writes it meanwhile.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to, bytes) };
        Ok(())
    }

    fn forget(&self, part: &Part) {
        // Where the kernel refuses, the room is taken until it is written again.
        let _ = self.space.release(part.at(), part.bytes());
    }
}
