//! Links on the way to a file that is to be written, and which of them are not followed.
//!
//! Where everybody may make files (`/tmp`) a link of another user's leads to where that user wants. Linux follows such
//! a link only for its owner, or where the owner of the folder made it, if the administrator has it so
//! (`fs.protected_symlinks`, Documentation/admin-guide/sysctl/fs.rst). Here it is so on every machine: what is
//! measured is often measured by root. Nothing is opened or changed here.

use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

use crate::error::SaveError;

/// A folder in which everybody may make files, and only their owners may remove them.
const STICKY_FOR_ALL: u32 = 0o1002;

/// Links on one way at most, as Linux has it (`MAXSYMLINKS`, include/linux/namei.h).
const LINKS_MOST: u32 = 40;

/// Refuses a path that leads through a link which somebody else may have laid for us.
///
/// # Errors
/// [`SaveError::PlantedLink`]. What cannot be looked at is left to whoever opens the path.
pub fn refuse_planted(path: &Path) -> Result<(), SaveError> {
    match planted(path) {
        Some((link, owner)) => Err(SaveError::PlantedLink { link, owner }),
        None => Ok(()),
    }
}

/// The first such link, and its owner.
fn planted(path: &Path) -> Option<(PathBuf, u32)> {
    let us = geteuid().as_raw();
    let mut at = PathBuf::from(".");
    let mut todo: Vec<OsString> = parts(path);
    let mut links = 0;
    while let Some(part) = todo.pop() {
        // What is not there is no link; neither are the last words of a link to a pipe in `/proc`.
        let next = at.join(part);
        let found = fs::symlink_metadata(&next).ok()?;
        if !found.is_symlink() {
            at = next;
            continue;
        }
        if is_planted(&fs::metadata(&at).ok()?, &found, us) {
            return Some((next, found.uid()));
        }
        links += 1;
        if links > LINKS_MOST {
            return None;
        }
        todo.extend(parts(&fs::read_link(&next).ok()?));
    }
    None
}

/// Its components, the last one first.
fn parts(path: &Path) -> Vec<OsString> {
    path.components().rev().map(|part| part.as_os_str().to_owned()).collect()
}

fn is_planted(folder: &Metadata, link: &Metadata, us: u32) -> bool {
    let open = folder.mode() & STICKY_FOR_ALL == STICKY_FOR_ALL;
    open && link.uid() != us && link.uid() != folder.uid()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, lchown, symlink};

    /// A user who is neither we nor the owner of a folder of ours.
    const STRANGER: u32 = 4242;

    /// A folder with `safe/a`, in it `open` (sticky, for all) with links there: `file`, `folder`, `chain`, `dangling`.
    fn folders() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        fs::create_dir(at("safe")).unwrap();
        fs::write(at("safe/a"), b"old").unwrap();
        fs::create_dir(at("open")).unwrap();
        fs::set_permissions(at("open"), Permissions::from_mode(0o1777)).unwrap();
        symlink(at("safe/a"), at("open/file")).unwrap();
        symlink("../safe", at("open/folder")).unwrap();
        symlink("file", at("open/chain")).unwrap();
        symlink("../safe/none", at("open/dangling")).unwrap();
        root
    }

    #[test]
    fn our_own_links_and_those_of_no_shared_folder_are_followed() {
        let root = folders();
        for name in
            ["open/file", "open/folder/a", "open/chain", "open/dangling", "open/none", "safe/a"]
        {
            assert!(refuse_planted(&root.path().join(name)).is_ok(), "{name}");
        }
        for path in ["", ".", "..", "/", "/dev/stdout", "no/such/folder", "a"] {
            assert!(refuse_planted(Path::new(path)).is_ok(), "{path}");
        }
        symlink("circle", root.path().join("circle")).unwrap();
        assert!(refuse_planted(&root.path().join("circle")).is_ok(), "whoever opens it is told");
    }

    #[test]
    fn links_of_others_in_a_folder_for_all_are_refused() {
        let root = folders();
        let at = |name: &str| root.path().join(name);
        let given = |name: &str, user: u32| lchown(at(name), Some(user), None);
        if given("open/file", STRANGER).is_err() {
            // Only root gives files away; the rule itself is the same for all.
            return;
        }
        for name in ["open/folder", "open/dangling"] {
            given(name, STRANGER).unwrap();
        }
        for name in ["open/file", "open/folder/a", "open/folder/new", "open/chain", "open/dangling"]
        {
            let refused = refuse_planted(&at(name)).unwrap_err().to_string();
            assert!(refused.contains("4242") && refused.contains("remove the link"), "{refused}");
        }
        for destination in [crate::Destination::file, crate::Destination::text] {
            let refused = destination(&at("open/file"));
            assert!(matches!(refused, Err(SaveError::PlantedLink { .. })), "{refused:?}");
        }
        assert_eq!(fs::read(at("safe/a")).unwrap(), b"old");
        // Who owns the folder may lay links in it, and one that is not for all is its owner's affair.
        std::os::unix::fs::chown(at("open"), Some(STRANGER), None).unwrap();
        assert!(refuse_planted(&at("open/file")).is_ok());
        std::os::unix::fs::chown(at("open"), Some(0), None).unwrap();
        fs::set_permissions(at("open"), Permissions::from_mode(0o755)).unwrap();
        assert!(refuse_planted(&at("open/file")).is_ok());
    }
}
