//! The same stencil with the same limit under what others offer: a mapped file, swap on a disk, swap in compressed
//! memory, UMap. Each pair on one far medium.
//!
//! The kernel's limit is a control group's.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use isochrone_console::turns::{Ratio, Series};
use serde::Serialize;

use super::arm::{Extent, Runner};
use super::curves::{Controlled, grid};
use super::group::Group;
use super::swap::Swap;
use super::zswap;
use crate::args::TierArgs;
use crate::bench::rounds::Cell;
use crate::bench::setting::Setting;
use crate::tier::request::{FarTier, Moves, Of, Plain, Program, Request};
use isochrone_console::output;

/// What a process needs beside its data, left to it on top of the limit.
pub(super) const BESIDE: u64 = 6 << 20;
/// Room of a swap area over that of the data.
pub(super) const SWAP_TIMES: u64 = 2;
/// The least swap area.
pub(super) const SWAP_LEAST: u64 = 32 << 20;
/// Radii of the stencil.
const RADII: [usize; 2] = [1, 5];

/// Pages of a group of ours: 64 KiB, the most.
const GROUP_PAGES: usize = 16;
/// Groups fetched or evicted by one call.
const GROUPS_AT_ONCE: u32 = 8;

/// A pair on one medium.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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

/// Who is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Name {
    Mmap,
    Swap,
    Zram,
    Umap,
}

impl Name {
    const ALL: [Self; 4] = [Self::Mmap, Self::Swap, Self::Zram, Self::Umap];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Mmap => "mmap",
            Self::Swap => "swap",
            Self::Zram => "zram",
            Self::Umap => "umap",
        }
    }

    /// Our far tier on the same medium.
    fn far(self, folder: &Path) -> FarTier {
        match self {
            Self::Mmap | Self::Swap => FarTier::File { folder: folder.to_owned() },
            Self::Zram => FarTier::Lz4,
            Self::Umap => FarTier::Memory,
        }
    }
}

/// A peer that is ready, and what has to be taken away again.
struct Ready {
    memory: Of,
    group: Option<Group>,
    _swap: Option<Swap>,
}

fn ready(name: Name, folder: &Path, size: usize, umap: Option<&Path>) -> Result<Ready> {
    let bytes = size as u64 * 4096;
    let group = || Group::new(Some(bytes / 2 + BESIDE)).map(Some);
    let room = (SWAP_TIMES * bytes).max(SWAP_LEAST);
    Ok(match name {
        Name::Mmap => Ready { memory: Of::File(folder.to_owned()), group: group()?, _swap: None },
        Name::Swap => {
            let swap = Some(Swap::on_file(folder, room)?);
            Ready { memory: Of::Kernel, group: group()?, _swap: swap }
        }
        Name::Zram => {
            let swap = Some(Swap::on_zram(room, "lz4")?);
            Ready { memory: Of::Kernel, group: group()?, _swap: swap }
        }
        Name::Umap => {
            let path = umap.context("no --peer umap=PATH (peers/umap.cpp says how to build it)")?;
            Ready { memory: Of::Library(path.to_owned()), group: None, _swap: None }
        }
    })
}

/// The library of `--peer umap=PATH`.
pub(super) fn umap(args: &TierArgs) -> Result<Option<PathBuf>> {
    args.peer
        .as_deref()
        .map(|text| {
            let path = text.strip_prefix("umap=");
            let path = path.with_context(|| format!("--peer {text}: give umap=PATH"))?;
            std::fs::canonicalize(path).with_context(|| format!("--peer {text}"))
        })
        .transpose()
}

/// Where files lie that are far memory.
pub(super) fn folder(args: &TierArgs) -> Result<PathBuf> {
    let folder = args.folder.clone().unwrap_or_else(output::temporary_folder);
    std::fs::canonicalize(&folder).with_context(|| format!("--folder {}", folder.display()))
}

/// Everybody that ours is compared with.
pub(super) fn pairs(
    args: &TierArgs,
    runner: &Runner,
    extent: Extent,
    setting: &mut Setting<'_>,
) -> Result<Vec<Beside>> {
    let folder = folder(args)?;
    zswap::bring_back_left(&folder);
    let umap = umap(args)?;
    let mut all = Vec::new();
    for name in Name::ALL {
        for radius in RADII {
            let medium = Medium { folder: folder.clone(), pages: extent.pages, umap: umap.clone() };
            all.push(Beside::new(runner, name, radius, medium, setting));
        }
    }
    Ok(all)
}

/// Where a peer has its data.
struct Medium {
    folder: PathBuf,
    pages: usize,
    umap: Option<PathBuf>,
}

/// A pair, under way.
pub(super) struct Beside {
    name: Name,
    far: FarTier,
    radius: usize,
    medium: Medium,
    ours: Request,
    movers: Request,
    seed: u64,
    series: Series,
    /// Why there is no figure.
    missing: Option<String>,
}

impl Beside {
    fn new(
        runner: &Runner,
        name: Name,
        radius: usize,
        medium: Medium,
        setting: &mut Setting<'_>,
    ) -> Self {
        let far = name.far(&medium.folder);
        let program = Program::Stencil(grid(medium.pages, radius, 6));
        // Far from memory a transfer is slow to begin: large groups, several of them by one call, and nothing
        // written back that was only read.
        let ours = Request {
            far: far.clone(),
            group_pages: GROUP_PAGES,
            batch: GROUPS_AT_ONCE,
            chunk: GROUPS_AT_ONCE,
            cluster: GROUPS_AT_ONCE,
            clean: true,
            ..runner.request(program, 1, 0.5)
        };
        // Two movers of one core: while one waits for what it reads, the other writes.
        let moves =
            Some(Moves { movers: 2, window: 4 * GROUPS_AT_ONCE, reserve: 8 * GROUPS_AT_ONCE });
        let movers = Request { moves, cluster: 1, ..runner.with_movers(ours.clone()) };
        let arms = [name.as_str(), "again", "ours", "ours with movers"].map(str::to_owned);
        let series = Series::new(&arms, "s");
        let seed = setting.seed();
        Self { name, far, radius, medium, ours, movers, seed, series, missing: None }
    }

    /// What came out.
    pub(super) fn pair(self, setting: &mut Setting<'_>) -> Pair {
        let (peer, seed) = (self.name.as_str(), setting.seed());
        let over = |arm: &str| Ratio::of(&self.series, arm, peer, seed);
        let control = over("again");
        let one = |arm: &str, oversubscribed| {
            over(arm).map(|ratio| Controlled { ratio, control, oversubscribed })
        };
        Pair {
            peer,
            far: self.far.as_str(),
            radius: self.radius,
            faster: one("ours", false),
            faster_with_movers: one("ours with movers", self.movers.oversubscribed),
            missing: self.missing,
            series: (!self.series.blocks.is_empty()).then_some(self.series),
        }
    }

    fn made_ready(&mut self) -> Result<Ready> {
        let Medium { folder, pages, umap } = &self.medium;
        ready(self.name, folder, *pages, umap.as_deref())
    }
}

impl Cell<Runner> for Beside {
    /// One name for all radii: what is missing is missing for all of them.
    fn what(&self) -> String {
        format!("beside {}", self.name.as_str())
    }

    fn blocks(&self) -> usize {
        self.series.blocks.len()
    }

    /// Swap and groups are there for this block alone: for others they would be a disturbance.
    fn block(&mut self, runner: &mut Runner, setting: &mut Setting<'_>) -> Result<()> {
        let what = format!("{}, radius {}", self.what(), self.radius);
        setting.step(&what);
        let made = self.made_ready().and_then(|ready| {
            let group = ready.group.as_ref().map(|group| group.folder().to_owned());
            let plain = Some(Plain { memory: ready.memory.clone(), group });
            let theirs = Request { plain, ..self.ours.clone() };
            let arms = [theirs.clone(), theirs, self.ours.clone(), self.movers.clone()];
            setting.block(&mut self.series, self.seed, &what, &mut |arm| {
                Ok(runner.run(&arms[arm])?.ns as f64 / 1e9)
            })
        });
        // A kernel that finds nothing to swap out in time ends a program at its limit.
        if let (Err(error), true) = (&made, setting.keep_going()) {
            self.missing = Some(format!("{error:#}"));
        }
        made.map(|_| ())
    }
}
