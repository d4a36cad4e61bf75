//! The kernel's cache of compressed pages before a swap area (zswap), switched on for a while. What the user had is
//! back when the value goes; what a run left that was killed is brought back by the next.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use rustix::process::geteuid;

/// The settings.
const SETTINGS: &str = "/sys/module/zswap/parameters";
const ENABLED: &str = "enabled";
const COMPRESSOR: &str = "compressor";
/// How files are called that say what the user had, with the number of the process that made one.
const NAME: &str = "isochrone-zswap-";

/// On until it goes.
#[derive(Debug)]
pub(super) struct Zswap {
    settings: PathBuf,
    /// Says what the user had.
    note: PathBuf,
    compressor: String,
}

impl Zswap {
    /// Switches it on with the algorithm `wanted`; where the kernel lacks that and `or_any`, with the one that was set.
    /// A note of what the user had is in `folder` meanwhile.
    pub(super) fn on(folder: &Path, wanted: &str, or_any: bool) -> Result<Self> {
        Self::on_at(Path::new(SETTINGS), folder, wanted, or_any)
    }

    fn on_at(settings: &Path, folder: &Path, wanted: &str, or_any: bool) -> Result<Self> {
        sweep(settings, folder);
        let had = |name| get(settings, name).context("no zswap in this kernel");
        let (enabled, before) = (had(ENABLED)?, had(COMPRESSOR)?);
        let note = folder.join(format!("{NAME}{}", std::process::id()));
        let mut options = fs::OpenOptions::new();
        let file = options.write(true).create_new(true).mode(0o600).open(&note);
        let mut file = file.with_context(|| format!("a note in {}", folder.display()))?;
        let said = writeln!(file, "{enabled} {before}").and_then(|()| file.sync_all());
        if let Err(error) = said {
            let _ = fs::remove_file(&note);
            return Err(error).context("writing what zswap was set to");
        }
        // From here on all is brought back with the value.
        let mut this = Self { settings: settings.to_owned(), note, compressor: before };
        // A kernel that lacks it refuses, or takes another one when it is switched on.
        let _ = set(settings, COMPRESSOR, wanted);
        set(settings, ENABLED, "Y")?;
        let now = get(settings, COMPRESSOR).context("reading zswap's settings")?;
        ensure!(or_any || now == wanted, "this kernel's zswap has no {wanted}");
        this.compressor = now;
        Ok(this)
    }

    /// What it compresses by.
    pub(super) fn compressor(&self) -> &str {
        &self.compressor
    }
}

impl Drop for Zswap {
    fn drop(&mut self) {
        bring_back(&self.settings, &self.note);
    }
}

/// Bytes of memory in which it keeps pages now.
pub(super) fn held() -> Option<u64> {
    held_in(&fs::read_to_string("/proc/meminfo").ok()?)
}

fn held_in(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("Zswap:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

fn get(settings: &Path, name: &str) -> Option<String> {
    Some(fs::read_to_string(settings.join(name)).ok()?.trim().to_owned())
}

fn set(settings: &Path, name: &str, value: &str) -> Result<()> {
    let file = settings.join(name);
    fs::write(&file, value).with_context(|| format!("setting {} (be root)", file.display()))
}

/// What a note says is set, and the note goes. Where that fails it stays, for the next run to try again.
fn bring_back(settings: &Path, note: &Path) {
    let text = fs::read_to_string(note).unwrap_or_default();
    let Some((enabled, compressor)) = text.trim().split_once(' ') else { return };
    let same = get(settings, COMPRESSOR).as_deref() == Some(compressor);
    let compressor = same || set(settings, COMPRESSOR, compressor).is_ok();
    if set(settings, ENABLED, enabled).is_ok() && compressor {
        let _ = fs::remove_file(note);
    }
}

/// Brings back what a run changed that was killed and left a note in this folder.
pub(super) fn bring_back_left(folder: &Path) {
    sweep(Path::new(SETTINGS), folder);
}

/// The same of settings that lie there.
fn sweep(settings: &Path, folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix(NAME)?.parse::<u32>().ok());
        let dead = number.is_some_and(|number| !Path::new(&format!("/proc/{number}")).exists());
        // In a folder for everybody a file of another user's says nothing.
        let file = entry.metadata();
        let ours = file.is_ok_and(|file| file.is_file() && file.uid() == geteuid().as_raw());
        if dead && ours {
            bring_back(settings, &entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Settings as the kernel has them, in two folders: theirs and that of notes.
    fn made() -> (tempfile::TempDir, tempfile::TempDir) {
        let (settings, notes) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        set(settings.path(), ENABLED, "N\n").unwrap();
        set(settings.path(), COMPRESSOR, "lzo\n").unwrap();
        (settings, notes)
    }

    fn now(settings: &Path) -> [Option<String>; 2] {
        [ENABLED, COMPRESSOR].map(|name| get(settings, name))
    }

    fn notes(folder: &Path) -> usize {
        fs::read_dir(folder).unwrap().count()
    }

    #[test]
    fn what_the_user_had_is_back_when_it_goes() {
        let (settings, folder) = made();
        let before = now(settings.path());
        let on = Zswap::on_at(settings.path(), folder.path(), "lz4", false).unwrap();
        assert_eq!(now(settings.path()), ["Y", "lz4"].map(|word| Some(word.to_owned())));
        assert_eq!((on.compressor(), notes(folder.path())), ("lz4", 1));
        drop(on);
        assert_eq!((now(settings.path()), notes(folder.path())), (before, 0));
    }

    #[test]
    fn what_a_dead_process_changed_is_brought_back_by_the_next() {
        let (settings, folder) = made();
        set(settings.path(), ENABLED, "Y").unwrap();
        set(settings.path(), COMPRESSOR, "zstd").unwrap();
        // No process has the last number that there may be (PID_MAX_LIMIT, include/linux/threads.h).
        fs::write(folder.path().join(format!("{NAME}4194304")), "N lzo\n").unwrap();
        let alive = folder.path().join(format!("{NAME}{}", std::process::id()));
        fs::write(&alive, "Y other\n").unwrap();
        sweep(settings.path(), folder.path());
        assert_eq!(now(settings.path()), ["N", "lzo"].map(|word| Some(word.to_owned())));
        assert!(alive.exists() && notes(folder.path()) == 1);
    }

    #[test]
    fn a_kernel_without_it_is_named_and_nothing_is_left() {
        let (empty, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let error = Zswap::on_at(empty.path(), folder.path(), "lz4", true).unwrap_err();
        assert_eq!(
            (error.to_string().as_str(), notes(folder.path())),
            ("no zswap in this kernel", 0)
        );
    }

    #[test]
    fn what_it_holds_is_read_from_meminfo() {
        assert_eq!(
            held_in("SwapFree: 0 kB\nZswap:              12 kB\nZswapped:  40 kB\n"),
            Some(12 << 10)
        );
        assert_eq!(held_in("MemFree: 1 kB\n"), None);
    }
}
