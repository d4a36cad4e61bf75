//! The same stencil with the same limit under what the kernel offers: a mapped file, swap on a disk, swap
//! in compressed memory. Each pair on one far medium.
//!
//! The kernel's limit is a control group's. Swap is not switched on here: that is the machine's affair.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde::Serialize;

use super::arm::Runner;
use super::curves::{Controlled, grid};
use crate::bench::ratio::Ratio;
use crate::bench::series::Series;
use crate::bench::setting::Setting;
use crate::tier::request::{FarTier, Moves, Plain, Program, Request};

/// What a process needs beside its data, left to it on top of the limit.
const BESIDE: u64 = 6 << 20;

/// Pages of a group of ours: 64 KiB, the most.
const GROUP_PAGES: usize = 16;
/// Groups fetched or evicted by one call.
const GROUPS_AT_ONCE: u32 = 8;

/// A pair on one medium.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Pair {
    pub(super) peer: &'static str,
    pub(super) far: &'static str,
    pub(super) radius: usize,
    /// How many times faster ours is.
    pub(super) faster: Option<Controlled>,
    /// The same with a mover.
    pub(super) faster_with_movers: Option<Controlled>,
    /// Why there is no figure.
    pub(super) missing: Option<String>,
    pub(super) series: Option<Series>,
}

/// A control group that limits memory; gone with the value.
struct Group(PathBuf);

impl Group {
    fn new(limit: u64) -> Result<Self> {
        let name = format!("isochrone-{}", std::process::id());
        let v1 = Path::new("/sys/fs/cgroup/memory");
        let (folder, file) = if v1.is_dir() {
            (v1.join(name), "memory.limit_in_bytes")
        } else {
            (Path::new("/sys/fs/cgroup").join(name), "memory.max")
        };
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("making {} (run as root)", folder.display()))?;
        let group = Self(folder);
        std::fs::write(group.0.join(file), limit.to_string())
            .with_context(|| format!("limiting memory by {file} (is the controller enabled?)"))?;
        Ok(group)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Empty as soon as the last process in it has ended; then it can go.
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// What kind of swap is on.
fn swap() -> Option<String> {
    let text = std::fs::read_to_string("/proc/swaps").ok()?;
    let first = text.lines().nth(1)?;
    Some(first.split_whitespace().next()?.to_owned())
}

/// One peer: its name, our far tier on the same medium, and its memory.
struct Kind {
    peer: &'static str,
    far: FarTier,
    file: Option<PathBuf>,
}

fn kind(peer: &'static str, folder: &Path) -> Result<Kind> {
    let on = swap();
    let zram = on.as_deref().is_some_and(|name| name.contains("zram"));
    let file = FarTier::File { folder: folder.to_owned() };
    match peer {
        "mmap" => Ok(Kind { peer, far: file, file: Some(folder.to_owned()) }),
        "swap" => {
            ensure!(on.is_some() && !zram, "no swap on a disk is on: `swapon` a file first");
            Ok(Kind { peer, far: file, file: None })
        }
        _ => {
            ensure!(
                zram,
                "no zram swap is on: set /sys/block/zram0 up with lz4 and `swapon` it first"
            );
            Ok(Kind { peer, far: FarTier::Lz4, file: None })
        }
    }
}

pub(super) fn measure(
    runner: &mut Runner,
    peer: &'static str,
    (radius, size): (usize, usize),
    folder: &Path,
    blocks: u32,
    setting: &mut Setting<'_>,
) -> Result<Pair> {
    let nothing = |why: String| Pair {
        peer,
        far: if peer == "zram" { "lz4" } else { "file" },
        radius,
        faster: None,
        faster_with_movers: None,
        missing: Some(why),
        series: None,
    };
    let limit = (size as u64 / 2) * 4096 + BESIDE;
    let ready = kind(peer, folder).and_then(|kind| Ok((kind, Group::new(limit)?)));
    let (kind, group) = match ready {
        Ok(ready) => ready,
        Err(error) => return Ok(nothing(format!("{error:#}"))),
    };
    let program = Program::Stencil(grid(size, radius, 6));
    // Far from memory a transfer is slow to begin: large groups, several of them by one call, and nothing
    // written back that was only read.
    let ours = Request {
        far: kind.far.clone(),
        group_pages: GROUP_PAGES,
        batch: GROUPS_AT_ONCE,
        chunk: GROUPS_AT_ONCE,
        cluster: GROUPS_AT_ONCE,
        clean: true,
        ..runner.request(program, 1, 0.5)
    };
    // Two movers of one core: while one waits for what it reads, the other writes.
    let moves = Some(Moves { movers: 2, window: 4 * GROUPS_AT_ONCE, reserve: 8 * GROUPS_AT_ONCE });
    let movers = Request { moves, cluster: 1, ..runner.with_movers(ours.clone()) };
    let plain = Some(Plain { file: kind.file, group: Some(group.0.clone()) });
    let theirs = Request { plain, ..ours.clone() };
    let crowded = movers.oversubscribed;
    let arms = [theirs.clone(), theirs, ours, movers];
    let names = [peer, "again", "ours", "ours with movers"].map(str::to_owned);
    let what = format!("beside {peer}, radius {radius}");
    let series = setting.series(&names, "s", blocks, &what, &mut |arm| {
        Ok(runner.run(&arms[arm])?.ns as f64 / 1e9)
    })?;
    let seed = setting.seed();
    let over = |arm: &str| Ratio::of(&series, arm, peer, seed);
    let control = over("again");
    let one = |arm: &str, oversubscribed| {
        over(arm).map(|ratio| Controlled { ratio, control, oversubscribed })
    };
    Ok(Pair {
        peer: kind.peer,
        far: kind.far.as_str(),
        radius,
        faster: one("ours", false),
        faster_with_movers: one("ours with movers", crowded),
        missing: None,
        series: Some(series),
    })
}
