//! A control group that limits the memory of what runs in it, and tells what it took.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

/// How groups are called, with the number of the process that made one.
const NAME: &str = "isochrone-";
/// How often a group that is not empty yet is tried to remove, and how long apart.
const TRIES: u32 = 40;
const BUSY: Duration = Duration::from_millis(50);
/// Files of the memory controller in its first version and in its second: the limit, and the most that was taken.
const FIRST: [&str; 2] = ["memory.limit_in_bytes", "memory.max_usage_in_bytes"];
const SECOND: [&str; 2] = ["memory.max", "memory.peak"];

/// A group; gone with the value.
pub(super) struct Group {
    folder: PathBuf,
    peak: &'static str,
}

impl Group {
    /// With a limit, or with none to see what something takes.
    pub(super) fn new(limit: Option<u64>) -> Result<Self> {
        let name = format!("{NAME}{}", std::process::id());
        let v1 = Path::new("/sys/fs/cgroup/memory");
        let (folder, [file, peak]) = if v1.is_dir() {
            (v1.join(name), FIRST)
        } else {
            (Path::new("/sys/fs/cgroup").join(name), SECOND)
        };
        sweep(folder.parent().unwrap_or(&folder));
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("making {} (run as root)", folder.display()))?;
        let group = Self { folder, peak };
        if let Some(limit) = limit {
            std::fs::write(group.folder.join(file), limit.to_string()).with_context(|| {
                format!("limiting memory by {file} (is the controller enabled?)")
            })?;
        }
        Ok(group)
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The most that was taken at a time, bytes; of the second version since Linux 5.19.
    pub(super) fn peak(&self) -> Option<u64> {
        std::fs::read_to_string(self.folder.join(self.peak)).ok()?.trim().parse().ok()
    }

    /// Page faults that waited for what is far.
    pub(super) fn major_faults(&self) -> Option<u64> {
        major_faults(&std::fs::read_to_string(self.folder.join("memory.stat")).ok()?)
    }
}

/// The same in `memory.stat`.
fn major_faults(stat: &str) -> Option<u64> {
    stat.lines().find_map(|line| line.strip_prefix("pgmajfault "))?.trim().parse().ok()
}

impl Drop for Group {
    fn drop(&mut self) {
        // Empty as soon as the kernel is done with the last process in it; then it can go.
        for _ in 0..TRIES {
            if std::fs::remove_dir(&self.folder).is_ok() {
                return;
            }
            std::thread::sleep(BUSY);
        }
    }
}

/// Takes away what a run left that was killed. A group that is in use stays.
fn sweep(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix(NAME)?.parse::<u32>().ok());
        if number.is_some_and(|number| !Path::new(&format!("/proc/{number}")).exists()) {
            let _ = std::fs::remove_dir(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_those_of_the_group_itself_in_both_versions() {
        let first = "cache 0\npgfault 12\npgmajfault 3\ntotal_pgmajfault 65736\n";
        assert_eq!(major_faults(first), Some(3));
        assert_eq!(major_faults("anon 4096\npgmajfault 7\nthp_fault_alloc 0\n"), Some(7));
        assert_eq!(major_faults("total_pgmajfault 65736\n"), None);
    }
}
