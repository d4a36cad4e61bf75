//! Whose turn it is to measure: two that measure at once measure each other.
//!
//! The lock is that of `flock` on a folder of `sysfs`, the one that lists the cores. Every user may open it and nobody
//! can write, rename or replace it, so nothing is made, nothing is left behind, no stranger can lay anything in its
//! place, and it works on a file system that is read-only. It ends with the process, however that ends. A file in
//! `/tmp` has none of that, and users with a `/tmp` of their own would not see each other.
//!
//! All who see one `sysfs` share the lock, in a changed root and in containers that have it from the host too. A
//! container with a network of its own has a `sysfs` of its own (they differ in `/sys/class/net`), as it would have its
//! own abstract sockets: there the lock is that of the container. Whoever wants to can hold the lock and keep others
//! waiting, as whoever wants to can take the processors; but it can be told who does.

use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;

use super::SysRoot;

/// What is locked.
const FOLDER: &str = "sys/devices/system/cpu";

/// The right to measure this machine, until it is dropped.
#[derive(Debug)]
pub struct Turn {
    /// Holds the lock as long as it is open.
    _folder: File,
}

impl Turn {
    /// The right to measure; `None` while another process has it. Never waits.
    ///
    /// # Errors
    /// What the system says where there can be no lock; then nobody knows who measures.
    pub fn take(root: &SysRoot) -> io::Result<Option<Self>> {
        let folder = File::open(root.path(FOLDER))?;
        match folder.try_lock() {
            Ok(()) => Ok(Some(Self { _folder: folder })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// The process that has it, where this one may know.
    #[must_use]
    pub fn holder(root: &SysRoot) -> Option<u32> {
        let folder = std::fs::metadata(root.path(FOLDER)).ok()?;
        holder_in(&root.text("proc/locks")?, folder.dev(), folder.ino())
    }
}

/// Who holds `flock` on a file, by the text of `/proc/locks` (Documentation/filesystems/proc.rst):
/// `3: FLOCK  ADVISORY  WRITE 2213 00:16:3562 0 EOF`, with the device in hexadecimal digits. Who waits has `->` before
/// the kind of lock.
fn holder_in(locks: &str, device: u64, inode: u64) -> Option<u32> {
    let file = format!("{:02x}:{:02x}:{inode}", major(device), minor(device));
    locks.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let ["FLOCK", _, "WRITE", process, place, ..] = words.get(1..)? else { return None };
        (*place == file).then(|| process.parse().ok())?
    })
}

/// As `gnu_dev_major` of the C library takes a device number apart.
const fn major(device: u64) -> u64 {
    device >> 8 & 0xfff | device >> 32 & 0xffff_f000
}

const fn minor(device: u64) -> u64 {
    device & 0xff | device >> 12 & 0xffff_ff00
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn one_has_it_at_a_time_and_it_can_be_told_who() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join(FOLDER)).unwrap();
        symlink("/proc", folder.path().join("proc")).unwrap();
        let root = SysRoot(folder.path().to_owned());
        assert_eq!(Turn::holder(&root), None);
        let turn = Turn::take(&root).unwrap();
        assert!(turn.is_some());
        assert!(Turn::take(&root).unwrap().is_none(), "it is taken");
        // A file system of several layers may have other numbers in the list.
        assert!(Turn::holder(&root).is_none_or(|process| process == std::process::id()));
        drop(turn);
        assert!(Turn::take(&root).unwrap().is_some(), "it was given back");
    }

    #[test]
    fn where_there_is_nothing_to_lock_that_is_said() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Turn::take(&SysRoot(folder.path().to_owned())).is_err());
    }

    #[test]
    fn the_holder_is_read_as_the_kernel_writes_it() {
        let locks = "1: FLOCK  ADVISORY  WRITE 1651 00:16:1 0 EOF\n\
                     2: POSIX  ADVISORY  WRITE 1700 00:16:3562 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 2213 00:16:3562 0 EOF\n\
                     3: -> FLOCK  ADVISORY  WRITE 2214 00:16:3562 0 EOF\n\
                     4: FLOCK  ADVISORY  WRITE 9 fe:101:7 0 EOF\n";
        assert_eq!(holder_in(locks, 0x16, 3562), Some(2213));
        assert_eq!(holder_in(locks, 0x16, 9), None);
        assert_eq!(holder_in(locks, 0x0010_fe01, 7), Some(9), "a minor number above 255");
        assert_eq!(holder_in("1: FLOCK\n\n", 0x16, 1), None);
    }
}
