//! Swap for a while: a file on the disk that is compared, also behind zswap, or compressed memory (zram). What is
//! switched on here is switched off and taken away when the value goes, also when a run fails or is interrupted.
//!
//! It is for the whole machine while it is on; others use it only if they run out of memory.

use std::ffi::CString;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use isochrone_os::swap;

use super::zswap::{self, Zswap};

/// How files are called, with the number of the process that made one.
const NAME: &str = "isochrone-swap-";
/// How long a device may be held by those who only look at it.
const BUSY: Duration = Duration::from_millis(50);
const TRIES: u32 = 40;

/// Swap that is on. It is off before the device behind it goes.
#[derive(Debug)]
pub(super) struct Swap {
    _on: On,
    device: Option<Zram>,
    zswap: Option<Zswap>,
}

/// What is on, and is switched off in the end.
#[derive(Debug)]
struct On {
    path: PathBuf,
    name: CString,
    file: bool,
}

impl On {
    fn new(path: PathBuf, file: bool) -> Result<Self> {
        let name = CString::new(path.as_os_str().as_bytes())?;
        // From here on the file goes with the value, on or not.
        let this = Self { path, name, file };
        swap::on(&this.name).with_context(|| format!("swapping to {}", this.path.display()))?;
        Ok(this)
    }
}

impl Drop for On {
    fn drop(&mut self) {
        let _ = swap::off(&self.name);
        if self.file {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl Swap {
    /// A file of so many bytes in a folder, without holes.
    pub(super) fn on_file(folder: &Path, bytes: u64) -> Result<Self> {
        plain_kernel()?;
        Ok(Self { _on: area(folder, bytes)?, device: None, zswap: None })
    }

    /// The same behind zswap, with that algorithm; for `or_any` with the kernel's where it lacks it.
    pub(super) fn on_zswap(folder: &Path, bytes: u64, wanted: &str, or_any: bool) -> Result<Self> {
        let zswap = Zswap::on(folder, wanted, or_any)?;
        Ok(Self { _on: area(folder, bytes)?, device: None, zswap: Some(zswap) })
    }

    /// A compressed device of so many bytes, with that algorithm.
    pub(super) fn on_zram(bytes: u64, algorithm: &str) -> Result<Self> {
        plain_kernel()?;
        let device = Zram::take()?;
        let set = device.set("comp_algorithm", algorithm);
        set.with_context(|| format!("{algorithm} for zram (is it in this kernel?)"))?;
        device.set("disksize", &bytes.to_string())?;
        let path = Path::new("/dev").join(device.name());
        let header = swap::header(pages(bytes));
        std::fs::OpenOptions::new()
            .write(true)
            .open(&path)
            .and_then(|mut file| file.write_all(&header))
            .with_context(|| format!("writing to {}", path.display()))?;
        Ok(Self { _on: On::new(path, false)?, device: Some(device), zswap: None })
    }

    /// What pages are compressed by, if they are.
    pub(super) fn compressor(&self) -> Option<String> {
        let of_device = self.device.as_ref().and_then(Zram::algorithm);
        of_device.or_else(|| self.zswap.as_ref().map(|zswap| zswap.compressor().to_owned()))
    }

    /// Memory in which compressed pages are kept now, of who compresses.
    pub(super) fn held(&self) -> Option<u64> {
        match (&self.device, &self.zswap) {
            (Some(device), _) => device.held(),
            (None, Some(_)) => zswap::held(),
            (None, None) => None,
        }
    }
}

/// A compressed block device that nobody uses: reset in the end, and removed if it was made here.
#[derive(Debug)]
struct Zram {
    number: u32,
    ours: bool,
}

impl Zram {
    fn take() -> Result<Self> {
        let first = Self { number: 0, ours: false };
        if first.get("disksize").is_some_and(|size| size == "0") {
            return Ok(first);
        }
        let added = std::fs::read_to_string("/sys/class/zram-control/hot_add");
        let added = added.context("no zram here: `modprobe zram` first")?;
        let number = added.trim().parse().context("a number from zram-control")?;
        Ok(Self { number, ours: true })
    }

    fn name(&self) -> String {
        format!("zram{}", self.number)
    }

    fn file(&self, what: &str) -> PathBuf {
        Path::new("/sys/block").join(self.name()).join(what)
    }

    fn get(&self, what: &str) -> Option<String> {
        Some(std::fs::read_to_string(self.file(what)).ok()?.trim().to_owned())
    }

    /// What it compresses by.
    fn algorithm(&self) -> Option<String> {
        chosen(&self.get("comp_algorithm")?)
    }

    /// Memory that it takes now (`mm_stat`, Documentation/admin-guide/blockdev/zram.rst).
    fn held(&self) -> Option<u64> {
        self.get("mm_stat")?.split_whitespace().nth(2)?.parse().ok()
    }

    fn set(&self, what: &str, value: &str) -> Result<()> {
        std::fs::write(self.file(what), value)
            .with_context(|| format!("setting {} (be root)", self.file(what).display()))
    }
}

impl Drop for Zram {
    fn drop(&mut self) {
        for _ in 0..TRIES {
            if self.set("reset", "1").is_ok() {
                break;
            }
            std::thread::sleep(BUSY);
        }
        if self.ours {
            let _ = std::fs::write("/sys/class/zram-control/hot_remove", self.number.to_string());
        }
    }
}

/// The one in brackets, of all that there are.
fn chosen(algorithms: &str) -> Option<String> {
    let mut words = algorithms.split_whitespace();
    words.find_map(|word| Some(word.strip_prefix('[')?.strip_suffix(']')?.to_owned()))
}

fn pages(bytes: u64) -> u32 {
    u32::try_from(bytes / 4096).unwrap_or(u32::MAX)
}

/// A swap file of so many bytes in a folder, without holes, that is on.
fn area(folder: &Path, bytes: u64) -> Result<On> {
    sweep(folder);
    let path = folder.join(format!("{NAME}{}", std::process::id()));
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let file = options.open(&path);
    let mut file = file.with_context(|| format!("a swap file in {}", folder.display()))?;
    let written = write_area(&mut file, bytes).and_then(|()| Ok(file.sync_all()?));
    if let Err(error) = written {
        let _ = std::fs::remove_file(&path);
        return Err(error.context("writing a swap file"));
    }
    drop(file);
    On::new(path, true)
}

fn write_area(file: &mut std::fs::File, bytes: u64) -> Result<()> {
    file.write_all(&swap::header(pages(bytes)))?;
    let zeros = vec![0; 1 << 20];
    let mut left = bytes - 4096;
    while left > 0 {
        let now = left.min(zeros.len() as u64);
        file.write_all(&zeros[..usize::try_from(now).unwrap_or(zeros.len())])?;
        left -= now;
    }
    Ok(())
}

/// With a cache of compressed pages before it, a disk is not what is measured.
fn plain_kernel() -> Result<()> {
    let on = std::fs::read_to_string("/sys/module/zswap/parameters/enabled").unwrap_or_default();
    ensure!(on.trim() != "Y", "zswap is on: echo N > /sys/module/zswap/parameters/enabled");
    Ok(())
}

/// Takes away what a run left that was killed.
fn sweep(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix(NAME)?.parse::<u32>().ok());
        let dead = number.is_some_and(|number| !Path::new(&format!("/proc/{number}")).exists());
        if let (true, Ok(path)) = (dead, CString::new(entry.path().as_os_str().as_bytes())) {
            let _ = swap::off(&path);
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_a_dead_process_left_is_taken_away() {
        let folder = tempfile::tempdir().unwrap();
        // No process has the last number that there may be (PID_MAX_LIMIT, include/linux/threads.h).
        let dead = folder.path().join(format!("{NAME}4194304"));
        let alive = folder.path().join(format!("{NAME}{}", std::process::id()));
        let other = folder.path().join("isochrone-swap-of-somebody");
        for path in [&dead, &alive, &other] {
            std::fs::write(path, "x").unwrap();
        }
        sweep(folder.path());
        assert_eq!([dead.exists(), alive.exists(), other.exists()], [false, true, true]);
    }

    #[test]
    fn the_algorithm_of_a_device_is_the_one_in_brackets() {
        assert_eq!(chosen("lzo-rle lzo [lz4] \n").as_deref(), Some("lz4"));
        assert_eq!(chosen("lzo-rle lzo lz4"), None);
    }

    #[test]
    fn an_area_is_as_long_as_its_header_says_and_has_no_holes() {
        let mut file = tempfile::tempfile().unwrap();
        write_area(&mut file, 5 << 19).unwrap();
        assert_eq!(file.metadata().unwrap().len(), 5 << 19);
        let blocks = std::os::unix::fs::MetadataExt::blocks(&file.metadata().unwrap());
        assert!(blocks * 512 >= 5 << 19);
    }
}
