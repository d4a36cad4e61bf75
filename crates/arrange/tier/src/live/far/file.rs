//! A file, written and read past the page cache where its file system allows that, long transfers in pieces
//! that are on their way at once where the kernel has io_uring.

use std::fs::{OpenOptions, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use isochrone_os::OsError;
use isochrone_os::ring::{Direction, Ring, Transfer};

use super::sums::Sums;
use super::{Far, Part, Scratch};
use crate::pages::Trouble;

/// Bytes of a piece of a long transfer: larger ones are not faster on the disks that were tried.
const PIECE_BYTES: usize = 128 << 10;

/// A far tier in a file without a name: it is gone when its last process ends.
#[derive(Debug)]
pub struct File {
    file: std::fs::File,
    direct: bool,
    /// Long transfers go in pieces at once.
    rings: bool,
    sums: Sums,
}

/// A new file without a name, which only its owner may open, and whether it goes past the page cache. In a folder that
/// others may write to a name may be there already: a link to a file of the user's, or a file that somebody else reads.
fn open(folder: &Path) -> io::Result<(std::fs::File, bool)> {
    let file = tempfile::tempfile_in(folder)?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    let place = format!("/proc/self/fd/{}", file.as_raw_fd());
    let direct = OpenOptions::new().read(true).write(true).custom_flags(O_DIRECT).open(place);
    // Where there is no direct access, the page cache will do.
    Ok(direct.map_or((file, false), |direct| (direct, true)))
}

fn sums(bytes: u64) -> io::Result<Sums> {
    let sums = Sums::new(usize::try_from(bytes).unwrap_or(usize::MAX));
    sums.map_err(|error| io::Error::from_raw_os_error(error.errno))
}

/// include/uapi/asm-generic/errno-base.h
const ENOSPC: i32 = 28;
const EIO: i32 = 5;
/// `O_DIRECT` (include/uapi/asm-generic/fcntl.h, arch/arm64/include/uapi/asm/fcntl.h).
#[cfg(target_arch = "x86_64")]
const O_DIRECT: i32 = 0o40_000;
#[cfg(target_arch = "aarch64")]
const O_DIRECT: i32 = 0o200_000;

impl File {
    /// A new file in a folder, of holes, that only its owner may open; past the page cache if the file system can.
    ///
    /// # Errors
    /// The system's, where no file can be made there.
    pub fn new(folder: &Path, bytes: u64) -> io::Result<Self> {
        let (file, direct) = open(folder)?;
        file.set_len(bytes)?;
        Ok(Self { file, direct, rings: true, sums: sums(bytes)? })
    }

    /// The same for one process alone: it grows as it is written, since an area is mostly addresses that nobody uses
    /// and a file may have a limit (`ulimit -f`), and needs one descriptor.
    ///
    /// # Errors
    /// [`OsError`] where no file can be made there, or there are not so many addresses.
    pub fn private(folder: &Path, bytes: usize) -> Result<Self, OsError> {
        let refused = |error: &io::Error| OsError {
            what: "cannot make a file for pages",
            errno: error.raw_os_error().unwrap_or(EIO),
            advice: "name a folder that may be written to, on a medium with room",
        };
        let (file, direct) = open(folder).map_err(|error| refused(&error))?;
        Ok(Self { file, direct, rings: false, sums: Sums::new(bytes)? })
    }

    /// Whether it goes past the page cache.
    #[must_use]
    pub const fn is_direct(&self) -> bool {
        self.direct
    }

    fn fetch(&self, part: &Part, to: &mut [u8], scratch: &mut Scratch) -> Result<(), Trouble> {
        if let Some(ring) = scratch.ring.as_mut().filter(|_| to.len() > PIECE_BYTES) {
            let read = self.transfer(Direction::Read, part, to.as_mut_ptr(), to.len());
            // SAFETY: the file is open; `to` is that long, and borrowed for writing until the call returns.
            let [outcome] = unsafe { ring.transfer([read], PIECE_BYTES) };
            return outcome.map_err(told);
        }
        self.file.read_exact_at(to, part.at() as u64).map_err(|error| trouble(&error))
    }

    fn store(&self, part: &Part, from: &[u8], scratch: &mut Scratch) -> Result<(), Trouble> {
        if let Some(ring) = scratch.ring.as_mut().filter(|_| from.len() > PIECE_BYTES) {
            let address = from.as_ptr().cast_mut();
            let write = self.transfer(Direction::Write, part, address, from.len());
            // SAFETY: the file is open; `from` is that long; a write into a file only reads it.
            let [outcome] = unsafe { ring.transfer([write], PIECE_BYTES) };
            return outcome.map_err(told);
        }
        self.file.write_all_at(from, part.at() as u64).map_err(|error| trouble(&error))
    }

    fn transfer(
        &self,
        direction: Direction,
        part: &Part,
        address: *mut u8,
        bytes: usize,
    ) -> Transfer {
        Transfer { file: self.file.as_raw_fd(), direction, at: part.at() as u64, address, bytes }
    }
}

fn trouble(error: &io::Error) -> Trouble {
    told(error.raw_os_error().unwrap_or(EIO))
}

const fn told(errno: i32) -> Trouble {
    match errno {
        ENOSPC => Trouble::Full,
        errno => Trouble::Far(errno),
    }
}

impl Far for File {
    fn name(&self) -> &'static str {
        if self.direct { "file" } else { "file (page cache)" }
    }

    fn scratch(&self) -> Result<Scratch, OsError> {
        // Without io_uring pieces follow one another.
        let ring = if self.rings { Ring::new().ok() } else { None };
        Ok(Scratch { ring, ..Scratch::default() })
    }

    fn descriptor(&self) -> Option<i32> {
        Some(self.file.as_raw_fd())
    }

    fn read(&self, part: &Part, to: &mut [u8], scratch: &mut Scratch) -> Result<(), Trouble> {
        self.fetch(part, to, scratch)?;
        if self.sums.hold(part, to) { Ok(()) } else { Err(Trouble::Altered) }
    }

    fn write(&self, part: &Part, from: &[u8], scratch: &mut Scratch) -> Result<(), Trouble> {
        self.store(part, from, scratch)?;
        self.sums.note(part, from);
        Ok(())
    }

    fn exchange(
        &self,
        out: &Part,
        from: &[u8],
        part: &Part,
        to: &mut [u8],
        scratch: &mut Scratch,
    ) -> (Result<(), Trouble>, bool) {
        let Some(ring) = scratch.ring.as_mut() else {
            return (self.write(out, from, scratch), false);
        };
        let write = self.transfer(Direction::Write, out, from.as_ptr().cast_mut(), from.len());
        let read = self.transfer(Direction::Read, part, to.as_mut_ptr(), to.len());
        // SAFETY: the file is open; both are that long and borrowed until the call returns, `to` for writing, so
        // they do not overlap; a write into a file only reads `from`.
        let [written, read] = unsafe { ring.transfer([write, read], PIECE_BYTES) };
        if written.is_ok() {
            self.sums.note(out, from);
        }
        (written.map_err(told), read.is_ok() && self.sums.hold(part, to))
    }

    fn used_bytes(&self) -> Option<u64> {
        use std::os::unix::fs::MetadataExt;
        self.file.metadata().ok().map(|metadata| metadata.blocks() * 512)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isochrone_os::space::Space;

    #[test]
    fn what_was_written_is_read_and_no_name_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let file = File::new(folder.path(), 1 << 20).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        // Direct access wants aligned memory, as the pager's buffers are.
        let memory = Space::new(8192, false).unwrap();
        // SAFETY: new memory of that size, this test's alone.
        let bytes = unsafe { std::slice::from_raw_parts_mut(memory.as_ptr(), 8192) };
        let (from, to) = bytes.split_at_mut(4096);
        from.fill(3);
        let mut scratch = file.scratch().unwrap();
        file.write(&Part::owned(8192, 4096), from, &mut scratch).unwrap();
        file.read(&Part::owned(8192, 4096), to, &mut scratch).unwrap();
        assert!(to.iter().all(|byte| *byte == 3));
        let hole = file.read(&Part::owned(0, 4096), to, &mut scratch);
        assert_eq!(hole, Err(Trouble::Altered), "nobody wrote there");
        let beyond = file.read(&Part::owned(1 << 20, 4096), to, &mut scratch);
        assert_eq!(beyond, Err(Trouble::Far(EIO)));
    }

    /// A folder that others may write to has a link, or a file, by the name that this process used to give its own.
    #[test]
    fn what_others_put_in_the_folder_is_left_alone_and_does_not_see_the_pages() {
        use std::os::unix::fs::{MetadataExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let guessed = folder.path().join(format!(".isochrone-far-{}", std::process::id()));
        let victim = folder.path().join("victim");
        std::fs::write(&victim, b"kept").unwrap();
        let file = |plant: &dyn Fn()| {
            let _ = std::fs::remove_file(&guessed);
            plant();
            let file = File::new(folder.path(), 1 << 20).unwrap();
            let metadata = file.file.metadata().unwrap();
            assert_eq!((metadata.mode() & 0o777, metadata.nlink()), (0o600, 0));
            metadata.ino()
        };
        file(&|| symlink(&victim, &guessed).unwrap());
        assert_eq!(std::fs::read(&victim).unwrap(), b"kept");
        assert!(guessed.is_symlink(), "what is there stays there");
        let planted = std::cell::Cell::new(0);
        let made = file(&|| {
            std::fs::write(&guessed, b"planted").unwrap();
            planted.set(std::fs::metadata(&guessed).unwrap().ino());
        });
        assert_ne!(made, planted.get());
        assert_eq!(std::fs::read(&guessed).unwrap(), b"planted");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "and nothing is left");
    }

    /// Whoever has the right to open it may cut it, write to it, or grow it again: then its pages are an error, and
    /// not zeros.
    #[test]
    fn what_others_do_to_the_file_is_an_error() {
        const PAGES: usize = 64;
        let folder = tempfile::tempdir().unwrap();
        let file = File::new(folder.path(), (PAGES << 12) as u64).unwrap();
        let memory = Space::new((2 * PAGES) << 12, false).unwrap();
        // SAFETY: new memory of that size, this test's alone.
        let bytes = unsafe { std::slice::from_raw_parts_mut(memory.as_ptr(), (2 * PAGES) << 12) };
        let (from, to) = bytes.split_at_mut(PAGES << 12);
        from.fill(5);
        let mut scratch = file.scratch().unwrap();
        let (all, last) = (Part::owned(0, PAGES << 12), Part::owned((PAGES - 1) << 12, 4096));
        file.write(&all, from, &mut scratch).unwrap();
        let other = OpenOptions::new()
            .write(true)
            .open(format!("/proc/self/fd/{}", file.file.as_raw_fd()))
            .unwrap();
        let is_error = |file: &File, to: &mut [u8], scratch: &mut Scratch| {
            (0..PAGES - 1).all(|page| {
                file.read(&Part::owned(page << 12, 4096), &mut to[..4096], scratch).is_err()
            })
        };
        other.set_len(0).unwrap();
        assert!(is_error(&file, to, &mut scratch), "cut");
        assert!(file.read(&all, to, &mut scratch).is_err(), "a long transfer");
        // The pager's own next page would make the file as long as it was.
        file.write(&last, &from[..4096], &mut scratch).unwrap();
        file.read(&last, &mut to[..4096], &mut scratch).unwrap();
        assert!(is_error(&file, to, &mut scratch), "grown by the pager");
        assert_eq!(file.read(&all, to, &mut scratch), Err(Trouble::Altered));
        let first = Part::owned(0, 4096);
        assert!(!file.exchange(&last, &from[..4096], &first, &mut to[..4096], &mut scratch).1);
        file.write(&all, from, &mut scratch).unwrap();
        other.write_all_at(&[6], 4096).unwrap();
        let second = file.read(&Part::owned(4096, 4096), &mut to[..4096], &mut scratch);
        assert_eq!(second, Err(Trouble::Altered), "one byte of another page");
        file.read(&first, &mut to[..4096], &mut scratch).unwrap();
    }

    /// Longer than a piece, and not whole pieces.
    #[test]
    fn long_transfers_go_in_pieces_and_say_what_failed() {
        const BYTES: usize = 3 * PIECE_BYTES + 8192;
        let folder = tempfile::tempdir().unwrap();
        let file = File::new(folder.path(), 1 << 20).unwrap();
        let memory = Space::new(2 * BYTES, false).unwrap();
        // SAFETY: new memory of that size, this test's alone.
        let bytes = unsafe { std::slice::from_raw_parts_mut(memory.as_ptr(), 2 * BYTES) };
        let (from, to) = bytes.split_at_mut(BYTES);
        (0_u32..).zip(from.iter_mut()).for_each(|(n, byte)| *byte = n.to_le_bytes()[1]);
        let mut scratch = file.scratch().unwrap();
        file.write(&Part::owned(4096, BYTES), from, &mut scratch).unwrap();
        file.read(&Part::owned(4096, BYTES), to, &mut scratch).unwrap();
        assert!(from == to);
        // One goes while another comes; what cannot come does not keep the other from going.
        to.fill(0);
        let (out, back) = (Part::owned(4096 + BYTES, 4096), Part::owned(4096, BYTES));
        let (written, read) = file.exchange(&out, &from[..4096], &back, to, &mut scratch);
        assert_eq!(written, Ok(()));
        assert!(!read || from == to, "read, or left to a call of its own");
        let beyond = Part::owned((1 << 20) - 4096, BYTES);
        let (written, read) = file.exchange(&out, &from[..4096], &beyond, to, &mut scratch);
        assert_eq!((written, read), (Ok(()), false));
        assert_eq!(file.read(&beyond, to, &mut scratch), Err(Trouble::Far(EIO)));
    }

    #[test]
    fn what_the_system_says_is_told_apart() {
        assert_eq!(trouble(&io::Error::from_raw_os_error(ENOSPC)), Trouble::Full);
        assert_eq!(trouble(&io::Error::from_raw_os_error(121)), Trouble::Far(121));
    }
}
