//! What `/proc` says of a process, as values. It reads and understands; what it comes to is decided elsewhere.

use std::collections::BTreeMap;
use std::fs;

use serde::Serialize;

/// A line of `/proc/PID/stat`, or of a thread's, as far as it is of use (proc_pid_stat(5)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) parent: i32,
    /// Time in the program and in the kernel, ticks.
    pub(super) ticks: u64,
    /// When it was started, ticks since the system was: two processes of one number differ in it.
    pub(super) started: u64,
    /// The core on which it ran last.
    pub(super) core: u16,
}

impl Stat {
    /// The name may hold anything: fields are counted from the last parenthesis, behind which is the third.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (_, rest) = text.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let field = |number: usize| fields.get(number - 3).copied();
        let ticks = |number: usize| field(number)?.parse::<u64>().ok();
        Some(Self {
            parent: field(4)?.parse().ok()?,
            ticks: ticks(14)? + ticks(15)?,
            started: ticks(22)?,
            core: field(39)?.parse().ok()?,
        })
    }
}

/// Where the pages of a process lie, bytes. Pages that several processes have are shared out among them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Pages {
    /// Of no file.
    pub(crate) anonymous: u64,
    /// Of these, and of the pool, what lies in huge pages.
    pub(crate) huge: u64,
    /// Of files.
    pub(crate) file: u64,
    /// Of shared memory.
    pub(crate) shared: u64,
    /// Out on swap.
    pub(crate) swapped: u64,
    /// Touched since it was asked last; only where referenced bits were cleared.
    #[serde(skip)]
    pub(super) referenced: u64,
    /// By region; empty where there is one, which is then not asked for.
    pub(crate) by_region: BTreeMap<u16, u64>,
}

impl Pages {
    /// `/proc/PID/smaps_rollup` (Linux 5.4 and newer).
    pub(super) fn of_rollup(text: &str) -> Option<Self> {
        let bytes = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
            let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
            Some(kib * 1024)
        };
        let pool = bytes("Private_Hugetlb")? + bytes("Shared_Hugetlb")?;
        Some(Self {
            anonymous: bytes("Pss_Anon")? + pool,
            huge: bytes("AnonHugePages")? + pool,
            file: bytes("Pss_File")?,
            shared: bytes("Pss_Shmem")?,
            swapped: bytes("SwapPss")?,
            referenced: bytes("Referenced")?,
            by_region: BTreeMap::new(),
        })
    }

    pub(super) const fn resident(&self) -> u64 {
        self.anonymous + self.file + self.shared
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.anonymous += other.anonymous;
        self.huge += other.huge;
        self.file += other.file;
        self.shared += other.shared;
        self.swapped += other.swapped;
        self.referenced += other.referenced;
        for (region, bytes) in &other.by_region {
            *self.by_region.entry(*region).or_default() += bytes;
        }
    }
}

/// `/proc/PID/numa_maps`: bytes by region. `N0=12` counts pages of the size that the line ends with.
pub(super) fn by_region(text: &str) -> BTreeMap<u16, u64> {
    let mut all = BTreeMap::new();
    for line in text.lines() {
        let words = || line.split_whitespace().filter_map(|word| word.split_once('='));
        let size = words().find(|(name, _)| *name == "kernelpagesize_kB");
        let Some(kib) = size.and_then(|(_, kib)| kib.parse::<u64>().ok()) else { continue };
        let of = |(name, pages): (&str, &str)| {
            Some((name.strip_prefix('N')?.parse::<u16>().ok()?, pages.parse::<u64>().ok()?))
        };
        for (region, pages) in words().filter_map(of) {
            *all.entry(region).or_default() += pages * kib * 1024;
        }
    }
    all
}

/// Microseconds in which somebody waited for memory since the system started (`/proc/pressure/memory`).
pub(super) fn stalled_us(text: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.starts_with("some "))?;
    line.rsplit_once("total=")?.1.trim().parse().ok()
}

/// The numbers among the names in a folder.
pub(super) fn numbers(folder: &str) -> Vec<i32> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// A file of a process; nothing where it has gone or may not be seen.
pub(super) fn text(process: i32, file: &str) -> Option<String> {
    // A name may be of any bytes.
    let bytes = fs::read(format!("/proc/{process}/{file}")).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_read_whatever_its_name_is() {
        let numbers: Vec<String> = (4..=52).map(|field| field.to_string()).collect();
        let text = format!("7 (a) R 1 (b) S {}", numbers.join(" "));
        let wanted = Stat { parent: 4, ticks: 14 + 15, started: 22, core: 39 };
        assert_eq!(Stat::parse(&text), Some(wanted));
        assert_eq!(Stat::parse("7 (sh) R 1 2"), None);
        let own = i32::try_from(std::process::id()).unwrap();
        let live = Stat::parse(&super::text(own, "stat").unwrap()).unwrap();
        assert!(live.started > 0 && live.parent > 0);
    }

    #[test]
    fn pages_of_this_process_are_read() {
        let text = fs::read_to_string("/proc/self/smaps_rollup").unwrap();
        let pages = Pages::of_rollup(&text).unwrap();
        assert!(pages.anonymous > 0 && pages.file > 0 && pages.huge <= pages.resident());
        assert_eq!(Pages::of_rollup("Rss: 12 kB"), None);
    }

    #[test]
    fn pages_by_region_count_in_the_size_of_the_mapping() {
        let text = "7f00 default anon=5 N0=3 N1=2 kernelpagesize_kB=4\n\
                    7e00 default file=/a huge anon=2 N1=2 kernelpagesize_kB=2048\n\
                    7d00 default file=/N0=9\n";
        assert_eq!(by_region(text), [(0, 3 << 12), (1, (2 << 12) + (4 << 20))].into());
    }

    #[test]
    fn stalls_are_the_total_of_some() {
        let text = "some avg10=0.00 avg60=0.00 avg300=0.00 total=379\nfull avg10=0.00 total=133\n";
        assert_eq!(stalled_us(text), Some(379.0));
        assert_eq!(stalled_us(""), None);
    }
}
