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
/// Where each counts the processes that the kernel ended at the limit.
const EVENTS: [&str; 2] = ["memory.oom_control", "memory.events"];

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

    /// Processes that the kernel ended since the group was at its limit and nothing could leave.
    pub(super) fn kills(&self) -> u64 {
        let of = |file: &str| std::fs::read_to_string(self.folder.join(file)).ok();
        let text = EVENTS.into_iter().find_map(of);
        text.and_then(|text| number(&text, "oom_kill ")).unwrap_or(0)
    }

    /// Page faults that waited for what is far.
    pub(super) fn major_faults(&self) -> Option<u64> {
        let stat = std::fs::read_to_string(self.folder.join("memory.stat")).ok()?;
        number(&stat, "pgmajfault ")
    }
}

/// What stands behind a name, which begins a line.
fn number(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok()
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
        let major = |stat| number(stat, "pgmajfault ");
        assert_eq!(major(first), Some(3));
        assert_eq!(major("anon 4096\npgmajfault 7\nthp_fault_alloc 0\n"), Some(7));
        assert_eq!(major("total_pgmajfault 65736\n"), None);
        let kills = |text| number(text, "oom_kill ");
        assert_eq!(kills("oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"), Some(2));
        assert_eq!(kills("low 0\nhigh 9\noom 1\noom_kill 1\noom_group_kill 0\n"), Some(1));
    }
}
