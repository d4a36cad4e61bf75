//! The area: files in memory, side by side in one window of addresses. It knows where a group lies, and
//! nothing of what is done to it.
//!
//! Several files, because the kernel lets one punch at a time go on in a file (`inode_lock` in
//! `shmem_fallocate`), and looks through all processes that map it.

use isochrone_os::OsError;
use isochrone_os::area::{Memfd, Window};
use isochrone_units::{PAGE_BYTES, RegionId};

use crate::names::{Group, Run};

/// A piece of a run that lies in one file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece<'a> {
    pub(super) file: &'a Memfd,
    /// Offset in the file.
    pub(super) offset: usize,
    /// Offset in the area.
    pub(super) at: usize,
    /// Address in every process that maps the area.
    pub(super) address: usize,
    pub(super) bytes: usize,
}

/// The files and their window.
#[derive(Debug)]
pub(super) struct Area {
    window: Window,
    files: Vec<Memfd>,
    group_bytes: usize,
    groups: u32,
    groups_per_file: u32,
}

impl Area {
    /// An area of holes, mapped nowhere yet.
    pub(super) fn new(groups: u32, group_bytes: usize, files: u16) -> Result<Self, OsError> {
        let groups_per_file = groups.div_ceil(u32::from(files.max(1))).max(1);
        let window = Window::reserve(groups as usize * group_bytes)?;
        let mut made = Vec::new();
        let mut left = groups;
        while left > 0 {
            let of_this = left.min(groups_per_file);
            made.push(Memfd::new(of_this as usize * group_bytes)?);
            left -= of_this;
        }
        Ok(Self { window, files: made, group_bytes, groups, groups_per_file })
    }

    /// Maps all of it into this process.
    pub(super) fn map(&self) -> Result<(), OsError> {
        for (index, file) in self.files.iter().enumerate() {
            self.window.map(index * self.file_bytes(), file)?;
        }
        Ok(())
    }

    /// Lets its pages come from a region of memory.
    pub(super) fn prefer(&self, region: RegionId) -> Result<(), OsError> {
        self.window.prefer(0, self.bytes(), region)
    }

    const fn file_bytes(&self) -> usize {
        self.groups_per_file as usize * self.group_bytes
    }

    pub(super) const fn bytes(&self) -> usize {
        self.groups as usize * self.group_bytes
    }

    pub(super) const fn group_bytes(&self) -> usize {
        self.group_bytes
    }

    /// Bytes of its pages that are in memory.
    pub(super) fn resident_bytes(&self) -> u64 {
        self.files.iter().map(Memfd::resident_bytes).sum()
    }

    pub(super) fn base(&self) -> *mut u8 {
        self.window.as_ptr()
    }

    /// The group at an address, `None` outside.
    pub(super) fn group_at(&self, address: usize) -> Option<Group> {
        let offset = address.checked_sub(self.base().addr())?;
        self.group_of(offset)
    }

    /// The group at an offset.
    pub(super) fn group_of(&self, offset: usize) -> Option<Group> {
        let group = u32::try_from(offset / self.group_bytes).ok()?;
        (group < self.groups).then_some(Group(group))
    }

    pub(super) fn address_of(&self, group: Group) -> usize {
        self.base().addr() + group.index() * self.group_bytes
    }

    /// The pieces of a run, one for each file that it lies in.
    pub(super) fn pieces(&self, run: Run) -> impl Iterator<Item = Piece<'_>> {
        let (mut next, end) = (run.first.0, (run.first.0 + run.groups).min(self.groups));
        std::iter::from_fn(move || {
            if next >= end {
                return None;
            }
            let file = next / self.groups_per_file;
            let last = end.min((file + 1) * self.groups_per_file);
            let at = next as usize * self.group_bytes;
            let piece = Piece {
                file: &self.files[file as usize],
                offset: (next - file * self.groups_per_file) as usize * self.group_bytes,
                at,
                address: self.base().addr() + at,
                bytes: (last - next) as usize * self.group_bytes,
            };
            next = last;
            Some(piece)
        })
    }

    /// Takes a piece out of this process's tables; its bytes stay in the file, and the next access is a fault.
    pub(super) fn unmap(&self, piece: &Piece<'_>) -> Result<(), i32> {
        // SAFETY: what the area has mapped lies in its files, which keep all bytes.
        unsafe { self.window.empty(piece.at, piece.bytes) }
    }

    /// The same of one page, by its address.
    pub(super) fn unmap_page(&self, page: usize) {
        let at = page.wrapping_sub(self.base().addr());
        // SAFETY: as above. It is never refused; where it were, nothing would have changed.
        let _ = unsafe { self.window.empty(at, PAGE_BYTES) };
    }

    /// The ranges to register: one for each file.
    pub(super) fn ranges(&self) -> impl Iterator<Item = (usize, usize)> {
        let base = self.base().addr();
        self.files
            .iter()
            .enumerate()
            .map(move |(index, file)| (base + index * self.file_bytes(), file.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_cut_where_files_meet() {
        let area = Area::new(10, 8192, 3).unwrap();
        let pieces: Vec<_> = area
            .pieces(Run { first: Group(2), groups: 20 })
            .map(|piece| (piece.offset / 8192, piece.at / 8192, piece.bytes / 8192))
            .collect();
        assert_eq!(pieces, [(2, 2, 2), (0, 4, 4), (0, 8, 2)]);
        assert_eq!(area.ranges().map(|(_, bytes)| bytes / 8192).collect::<Vec<_>>(), [4, 4, 2]);
    }

    #[test]
    fn addresses_and_groups_match() {
        let area = Area::new(5, 4096, 1).unwrap();
        let base = area.base().addr();
        assert_eq!(area.group_at(base + 4095), Some(Group(0)));
        assert_eq!(area.group_at(base + 4 * 4096), Some(Group(4)));
        assert_eq!(area.group_at(base + 5 * 4096), None);
        assert_eq!(area.group_at(base - 1), None);
        assert_eq!(area.address_of(Group(3)), base + 3 * 4096);
    }
}
