//! A file, written and read past the page cache where its file system allows that.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use super::{Far, Part, Scratch};
use crate::pages::Trouble;

/// A far tier in a file without a name: it is gone when its last process ends.
#[derive(Debug)]
pub struct File {
    file: std::fs::File,
    direct: bool,
}

/// include/uapi/asm-generic/errno-base.h
const ENOSPC: i32 = 28;
const EIO: i32 = 5;
/// `O_DIRECT` and `O_TMPFILE` (arch/x86 and include/uapi/asm-generic/fcntl.h).
#[cfg(target_arch = "x86_64")]
const O_DIRECT: i32 = 0o40_000;
#[cfg(target_arch = "aarch64")]
const O_DIRECT: i32 = 0o200_000;

impl File {
    /// A new file in a folder, of holes; past the page cache if the file system can.
    ///
    /// # Errors
    /// The system's, where no file can be made there.
    pub fn new(folder: &Path, bytes: u64) -> io::Result<Self> {
        let name = folder.join(format!(".isochrone-far-{}", std::process::id()));
        let open = |flags| {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(true).mode(0o600);
            options.custom_flags(flags).open(&name)
        };
        let (file, direct) = match open(O_DIRECT) {
            Ok(file) => (file, true),
            // EINVAL: this file system has no direct access.
            Err(error) if error.raw_os_error() == Some(22) => (open(0)?, false),
            Err(error) => return Err(error),
        };
        std::fs::remove_file(&name)?;
        file.set_len(bytes)?;
        Ok(Self { file, direct })
    }

    /// Whether it goes past the page cache.
    #[must_use]
    pub const fn is_direct(&self) -> bool {
        self.direct
    }
}

fn trouble(error: &io::Error) -> Trouble {
    match error.raw_os_error() {
        Some(ENOSPC) => Trouble::Full,
        Some(errno) => Trouble::Far(errno),
        None => Trouble::Far(EIO),
    }
}

impl Far for File {
    fn name(&self) -> &'static str {
        if self.direct { "file" } else { "file (page cache)" }
    }

    fn read(&self, part: &Part, to: &mut [u8], _: &mut Scratch) -> Result<(), Trouble> {
        self.file.read_exact_at(to, part.at() as u64).map_err(|error| trouble(&error))
    }

    fn write(&self, part: &Part, from: &[u8], _: &mut Scratch) -> Result<(), Trouble> {
        self.file.write_all_at(from, part.at() as u64).map_err(|error| trouble(&error))
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
        let mut scratch = file.scratch();
        file.write(&Part::owned(8192, 4096), from, &mut scratch).unwrap();
        file.read(&Part::owned(8192, 4096), to, &mut scratch).unwrap();
        assert!(to.iter().all(|byte| *byte == 3));
        file.read(&Part::owned(0, 4096), to, &mut scratch).unwrap();
        assert!(to.iter().all(|byte| *byte == 0), "a hole");
        let beyond = file.read(&Part::owned(1 << 20, 4096), to, &mut scratch);
        assert_eq!(beyond, Err(Trouble::Far(EIO)));
    }

    #[test]
    fn what_the_system_says_is_told_apart() {
        assert_eq!(trouble(&io::Error::from_raw_os_error(ENOSPC)), Trouble::Full);
        assert_eq!(trouble(&io::Error::from_raw_os_error(121)), Trouble::Far(121));
    }
}
