//! On which memory region the pages of a mapping live, and moving them to one.
//!
//! It never guesses: a page whose region the kernel does not tell has none.

use super::Mapping;
use crate::error::OsError;
use crate::syscall::syscall;
use isochrone_units::{PAGE_BYTES, PageAddr, RegionId};

/// Pages asked for in one call.
const BATCH: usize = 64;

/// Words of a set of regions: 1024, the most that Linux can be built for (`MAX_NUMNODES` with
/// `NODES_SHIFT` 10, arch/x86/Kconfig).
const REGION_WORDS: usize = 1024 / 64;

/// Where the kernel shall put pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    /// In these regions; pages that are elsewhere are moved.
    Bind,
    /// In these regions in turn, as pages are touched.
    Interleave,
    /// New pages in this region, while it has room.
    Prefer,
}

/// Sets where the pages of a range live.
pub(crate) fn set_policy(
    address: usize,
    bytes: usize,
    policy: Policy,
    regions: &[RegionId],
) -> Result<(), OsError> {
    // include/uapi/linux/mempolicy.h.
    const MPOL_PREFERRED: usize = 1;
    const MPOL_BIND: usize = 2;
    const MPOL_INTERLEAVE: usize = 3;
    const MPOL_MF_STRICT: usize = 1;
    const MPOL_MF_MOVE: usize = 2;
    let mut set = [0_u64; REGION_WORDS];
    for region in regions {
        let word = set.get_mut(usize::from(region.0 / 64)).ok_or(OsError::invalid(
            "cannot bind memory to a region above 1023",
            "choose one that /sys/devices/system/node lists",
        ))?;
        *word |= 1 << (region.0 % 64);
    }
    let set_address = set.as_ptr().expose_provenance();
    // One more than the bits: the kernel reads one bit less than it is told (mm/mempolicy.c,
    // get_nodes).
    let bits = REGION_WORDS * 64 + 1;
    let (mode, flags) = match policy {
        Policy::Bind => (MPOL_BIND, MPOL_MF_STRICT | MPOL_MF_MOVE),
        Policy::Interleave => (MPOL_INTERLEAVE, 0),
        Policy::Prefer => (MPOL_PREFERRED, 0),
    };
    let arguments = [address, bytes, mode, set_address, bits, flags];
    // SAFETY: the range is the caller's; the kernel reads 1024 bits of `set`, which lives until the
    // call returns; moving pages keeps their content.
    let result = unsafe { syscall(libc::SYS_mbind, arguments) };
    result.map(drop).map_err(|errno| {
        let advice = match errno {
            libc::EINVAL => "choose a region that is online and in this process's cpuset",
            libc::EIO | libc::ENOMEM => "free memory of that region, or ask for less",
            libc::EPERM | libc::ENOSYS => "allow mbind in the sandbox, or use numactl",
            _ => "measure the memory where it is",
        };
        OsError::new("cannot bind memory to a region", errno, advice)
    })
}

/// The region of each page from `address` on; `None` for one that is absent.
pub(crate) fn query_regions(address: usize, out: &mut [Option<RegionId>]) -> Result<(), OsError> {
    for (batch, out) in out.chunks_mut(BATCH).enumerate() {
        let mut addresses = [0_usize; BATCH];
        for (page, slot) in addresses.iter_mut().enumerate() {
            *slot = address + (batch * BATCH + page) * PAGE_BYTES;
        }
        let statuses = query(&addresses[..out.len()])?;
        for (slot, status) in out.iter_mut().zip(statuses) {
            *slot = u16::try_from(status).ok().map(RegionId);
        }
    }
    Ok(())
}

impl Mapping {
    /// Binds the memory to a region, and moves there what is elsewhere.
    ///
    /// # Errors
    /// [`OsError`] where the region does not exist, has no room, or may not be used.
    pub fn bind(&self, region: RegionId) -> Result<(), OsError> {
        set_policy(self.as_ptr().expose_provenance(), self.len(), Policy::Bind, &[region])
    }

    /// The region of each of `pages` (numbered inside the mapping), `None` for one that is absent.
    ///
    /// # Errors
    /// [`OsError`] for a page outside, slices of different lengths, or a kernel without regions.
    pub fn regions_of(
        &self,
        pages: &[PageAddr],
        out: &mut [Option<RegionId>],
    ) -> Result<(), OsError> {
        if pages.len() != out.len() || pages.iter().any(|page| page.0 >= self.pages()) {
            return Err(OsError::invalid(
                "cannot tell the regions of pages",
                "give pages below Mapping::pages(), and one slot for each",
            ));
        }
        for (pages, out) in pages.chunks(BATCH).zip(out.chunks_mut(BATCH)) {
            let mut addresses = [0_usize; BATCH];
            for (address, page) in addresses.iter_mut().zip(pages) {
                *address = self.page_address(*page);
            }
            let statuses = query(&addresses[..pages.len()])?;
            for (slot, status) in out.iter_mut().zip(statuses) {
                // A negative status is an error number: the page is absent.
                *slot = u16::try_from(status).ok().map(RegionId);
            }
        }
        Ok(())
    }

    /// Address of a page that was checked to lie inside.
    pub(super) fn page_address(&self, page: PageAddr) -> usize {
        let offset = usize::try_from(page.0).unwrap_or(usize::MAX).wrapping_mul(PAGE_BYTES);
        self.as_ptr().wrapping_add(offset).expose_provenance()
    }
}

/// The kernel's word on at most [`BATCH`] pages.
fn query(addresses: &[usize]) -> Result<[i32; BATCH], OsError> {
    let mut statuses = [-1_i32; BATCH];
    debug_assert!(addresses.len() <= BATCH, "regions_of asks by batches");
    let count = addresses.len().min(BATCH);
    let from = addresses.as_ptr().expose_provenance();
    let to = statuses.as_mut_ptr().expose_provenance();
    // SAFETY: process 0 is the caller; the kernel reads `count` addresses and writes `count`
    // statuses, which both arrays hold; without a list of nodes (the null pointer) it moves nothing.
    let result = unsafe { syscall(libc::SYS_move_pages, [0, count, from, 0, to, 0]) };
    result.map_err(|errno| {
        OsError::new(
            "cannot tell the regions of pages",
            errno,
            "allow move_pages in the sandbox; on a machine with one region it is not needed",
        )
    })?;
    Ok(statuses)
}
