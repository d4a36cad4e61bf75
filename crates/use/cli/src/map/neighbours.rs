//! Nodes of one machine measure one after another. Containers that have a network of their own have a `sysfs` of
//! their own, and with it a turn of their own (`host/system/turn.rs`). The folder of the fleet is what they have in
//! common: who measures holds the lock (flock(2)) of a file in it that is called after the machine's boot, and removes
//! the file.
//!
//! A machine that is one node finds the lock free, and asks nothing of the file system while it measures. Where the
//! file system has no locks, the map goes on without.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail};
use isochrone_console::output::Terminal;
use isochrone_console::progress::Progress;
use isochrone_probe::watch::Watch as _;

/// How often it is looked whether the other one has ended: on a shared file system each look is a request.
const LOOK: Duration = Duration::from_millis(200);

/// The right to measure the machine, among its nodes in one folder, until it is dropped.
#[derive(Debug)]
pub(super) struct Lock {
    path: PathBuf,
    /// Holds the lock as long as it is open.
    _file: File,
}

impl Drop for Lock {
    fn drop(&mut self) {
        // While the lock is held: who waits sees that the file is another one by then.
        let _ = fs::remove_file(&self.path);
    }
}

/// Waits until no other node of this machine measures. `None` where that cannot be told.
///
/// # Errors
/// The user wants an end.
pub(super) fn take(
    folder: &Path,
    boot: u64,
    progress: &mut Progress,
    terminal: &Terminal,
) -> Result<Option<Lock>> {
    if boot == 0 {
        return Ok(None);
    }
    let path = folder.join(format!("{boot:016x}.turn"));
    let mut is_told = false;
    loop {
        match attempt(&path) {
            Ok(Attempt::Ours(lock)) => return Ok(Some(lock)),
            Ok(Attempt::Removed) => continue,
            Ok(Attempt::Others) => {}
            Err(_) => return Ok(None),
        }
        if !is_told {
            is_told = true;
            terminal.complain(
                "isochrone: another node of this machine measures now: waiting for its end, since \
                 two that measure at once measure each other",
            );
        }
        progress.step("waiting for another node of this machine, which measures");
        std::thread::sleep(LOOK);
        if !progress.keep_going() {
            bail!(
                "interrupted while waiting for another node of this machine: nothing was measured"
            );
        }
    }
}

enum Attempt {
    Ours(Lock),
    Others,
    /// Whoever had the lock has removed the file meanwhile: it is nobody's.
    Removed,
}

fn attempt(path: &Path) -> io::Result<Attempt> {
    let file = File::options().create(true).truncate(false).write(true).open(path)?;
    of(file, path)
}

/// What the lock of this file says, which was opened by this path.
fn of(file: File, path: &Path) -> io::Result<Attempt> {
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(Attempt::Others),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    let own = file.metadata()?;
    let is_there =
        fs::metadata(path).is_ok_and(|there| (there.dev(), there.ino()) == (own.dev(), own.ino()));
    Ok(match is_there {
        true => Attempt::Ours(Lock { path: path.to_owned(), _file: file }),
        false => Attempt::Removed,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_ours(path: &Path) -> Option<Lock> {
        match attempt(path).unwrap() {
            Attempt::Ours(lock) => Some(lock),
            Attempt::Others | Attempt::Removed => None,
        }
    }

    #[test]
    fn one_node_of_a_machine_has_it_at_a_time_and_nothing_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("1.turn");
        let first = is_ours(&path).expect("it is free");
        assert!(matches!(attempt(&path), Ok(Attempt::Others)));
        drop(first);
        assert!(!path.exists());
        // What a node left that was killed is nobody's.
        fs::write(&path, "").unwrap();
        drop(is_ours(&path).expect("nobody holds it"));
        assert!(attempt(&folder.path().join("no/such")).is_err());
    }

    #[test]
    fn a_file_that_its_holder_has_removed_is_no_lock() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("1.turn");
        let old = is_ours(&path).expect("it is free");
        let waiting = File::options().write(true).open(&path).unwrap();
        drop(old);
        let _new = is_ours(&path).expect("it is free");
        assert!(matches!(of(waiting, &path), Ok(Attempt::Removed)));
        assert!(matches!(attempt(&path), Ok(Attempt::Others)));
    }
}
