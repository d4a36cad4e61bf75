//! What a benchmark asks of one run, and what it is told.

use std::path::PathBuf;

use isochrone_tier::policy::PolicyKind;
use isochrone_workloads::tiered::Tiered;
use isochrone_workloads::tiered::cholesky::Cholesky;
use isochrone_workloads::tiered::spmv::Spmv;
use isochrone_workloads::tiered::stencil::Stencil;
use serde::{Deserialize, Serialize};

/// A stencil, in words that can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Grid {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) radius: usize,
    pub(crate) iterations: u32,
    pub(crate) serpentine: bool,
}

impl From<Grid> for Stencil {
    fn from(grid: Grid) -> Self {
        let Grid { rows, columns, radius, iterations, serpentine } = grid;
        Self { rows, columns, radius, iterations, serpentine }
    }
}

/// In which order an array is gone through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Pattern {
    /// All words in order, several times.
    Sweep,
    /// A radix sort of one half, by way of the other.
    Sort,
    /// A word of one page after another, drawn at random: so many by all threads together.
    Walk(u32),
}

/// A program on an array that is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mapped {
    pub(crate) pattern: Pattern,
    pub(crate) pages: usize,
    /// Of a walk; all else is done by one.
    pub(crate) threads: u16,
    /// How much a fault brings is chosen by what is seen.
    pub(crate) follow: bool,
    /// Faults are resolved by threads of their own, and not in the thread that has one.
    pub(crate) by_handlers: bool,
}

/// A walk on a team's area of which a second worker tells the pages beforehand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Announced {
    pub(crate) pages: usize,
    pub(crate) steps: u32,
    /// Steps that they are told ahead; 0: they are not.
    pub(crate) ahead: u32,
}

/// What is run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Program {
    /// Heat diffusion.
    Stencil(Grid),
    /// Products with a sparse matrix.
    Spmv {
        /// Rows, and columns.
        rows: usize,
        /// Entries of a row, in the mean.
        entries: usize,
        /// How many products.
        iterations: u32,
        /// What it is made from.
        seed: u64,
    },
    /// The tile Cholesky factorisation.
    Cholesky {
        /// Tiles along one side.
        tiles: usize,
        /// Rows of a tile.
        width: usize,
        /// What it is made from.
        seed: u64,
    },
    /// A program on one array that is mapped, for threads that are no workers.
    Mapped(Mapped),
    /// A walk that is announced.
    Announced(Announced),
    /// One worker writes a word of page after page, others run.
    Touch {
        /// How many.
        pages: usize,
        /// All of them once before the time is taken.
        warm: bool,
        /// Worker 1 does it after worker 0, and its time counts.
        second: bool,
    },
}

impl Program {
    /// The program on an area, if it is one that others run, too.
    pub(crate) fn tiered(&self) -> Option<Tiered> {
        match *self {
            Self::Stencil(grid) => Some(Tiered::Stencil(grid.into())),
            Self::Spmv { rows, entries, iterations, seed } => {
                Some(Tiered::Spmv(Spmv { rows, entries, iterations, seed }))
            }
            Self::Cholesky { tiles, width, seed } => {
                Some(Tiered::Cholesky(Cholesky { tiles, width, seed }))
            }
            Self::Mapped(_) | Self::Announced(_) | Self::Touch { .. } => None,
        }
    }
}

/// Whose page tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Tables {
    Shared,
    Separated,
}

/// Which group goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Policy {
    Fifo,
    CoreFifo,
    Cmcp,
    Sieve,
}

impl From<Policy> for PolicyKind {
    fn from(policy: Policy) -> Self {
        match policy {
            Policy::Fifo => Self::Fifo,
            Policy::CoreFifo => Self::CoreFifo,
            Policy::Cmcp => Self::Cmcp,
            Policy::Sieve => Self::Sieve,
        }
    }
}

/// Where pages go.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum FarTier {
    Memory,
    Lz4,
    File { folder: PathBuf },
}

impl FarTier {
    /// The name in figures.
    pub(crate) const fn as_str(&self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Lz4 => "lz4",
            Self::File { .. } => "file",
        }
    }
}

/// Movers and their habit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Moves {
    pub(crate) movers: u16,
    pub(crate) window: u32,
    pub(crate) reserve: u32,
}

/// Memory of a run without our pager.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Of {
    /// Ordinary memory, which may be swapped.
    Kernel,
    /// A mapped file in this folder.
    File(PathBuf),
    /// What another pager's library gives.
    Library(PathBuf),
}

/// A run without our pager.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Plain {
    pub(crate) memory: Of,
    /// Write the process into this control group first.
    pub(crate) group: Option<PathBuf>,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Request {
    pub(crate) program: Program,
    /// The region that fast memory comes from.
    pub(crate) region: Option<u16>,
    /// The region that a far tier in memory comes from.
    pub(crate) far_region: Option<u16>,
    /// Part of the area that fits fast memory.
    pub(crate) fast: f64,
    pub(crate) workers: u16,
    pub(crate) tables: Tables,
    pub(crate) worker_cores: Vec<u16>,
    pub(crate) mover_cores: Vec<u16>,
    pub(crate) policy: Policy,
    /// Pages of a group.
    pub(crate) group_pages: usize,
    /// Groups evicted at once, and fetched at once by movers.
    pub(crate) batch: u32,
    pub(crate) chunk: u32,
    /// Groups that a worker fetches at a fault.
    pub(crate) cluster: u32,
    /// What is only read is not written back.
    pub(crate) clean: bool,
    pub(crate) moves: Option<Moves>,
    pub(crate) oversubscribed: bool,
    pub(crate) far: FarTier,
    pub(crate) plain: Option<Plain>,
}

/// Times done and cycles.
pub(crate) type Timing = (u64, u64);

/// What was timed of all workers, or of all movers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Times {
    pub(crate) fault: Timing,
    pub(crate) protect: Timing,
    pub(crate) copy_out: Timing,
    pub(crate) punch: Timing,
    pub(crate) read: Timing,
    pub(crate) fill: Timing,
    pub(crate) map: Timing,
    pub(crate) wait: Timing,
}

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Answer {
    pub(crate) digest: u64,
    /// Of all sweeps.
    pub(crate) ns: u64,
    /// Processor time of all threads meanwhile; of a mapped array alone.
    pub(crate) processor_ns: u64,
    /// In the sweeps.
    pub(crate) missing: u64,
    pub(crate) minor: u64,
    pub(crate) late: u64,
    /// In all of the run.
    pub(crate) evicted: u64,
    pub(crate) batches: u64,
    pub(crate) prefetched: u64,
    pub(crate) marked: u64,
    pub(crate) markers_touched: u64,
    pub(crate) markers_wasted: u64,
    pub(crate) all_missing: u64,
    pub(crate) all_minor: u64,
    pub(crate) times: Times,
    pub(crate) mover_times: Times,
    /// Interrupts for shootdowns on all cores, where they are counted.
    pub(crate) interrupts: Option<u64>,
}

/// A count from a float that is one.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a number of pages; it saturates"
)]
pub(crate) fn whole(value: f64) -> usize {
    value as usize
}
