//! What `isochrone bench` takes.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use isochrone_console::args::{PlacementArgs, parse_bytes, parse_mib};
use isochrone_console::run::library;

use super::common::CommonArgs;
use super::dataflow::{
    CholeskyArgs, CholeskyRun, HistogramArgs, JacobiArgs, LuArgs, LuRun, MatrixArgs,
    StreamclusterArgs,
};
use super::sim::SpeedArgs;
use super::taskbench::{TaskbenchArgs, TaskbenchRun};
use crate::workload::request::StructureName;

/// Examples below `isochrone bench --help`.
pub(super) const AFTER_HELP: &str = "\
Every benchmark has examples in its own --help.

Arms run in turns in random balanced blocks on the same pinned cores. Each figure is the median \
of ratios within blocks, with a 95 % bootstrap interval; `aa_control` compares an arm with itself, \
and a ratio inside it is no difference. The raw series is in the JSON.
All of it ends within --budget, 60 s by default: every cell has a block before one has two, and what \
there was no time for is named.
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 interrupted (what was measured is kept).";

/// What is compared.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// Dependent chase over lines of each placement, from sizes of the L2 to DRAM.
    #[command(after_help = "Examples:\n  \
        isochrone bench chase --json=chase.json                 sizes for this machine's caches\n  \
        isochrone bench chase --sizes 2.5,3.5 --near 1/8        MiB of lines, of the nearest eighth")]
    Chase(ChaseArgs),
    /// Recursive data structures with nodes of one line: LRU cache, tree, skip list, EM3D,
    /// Barnes-Hut, Monte-Carlo tree search.
    #[command(after_help = "Examples:\n  \
        isochrone bench structures --only lru,tree --blocks 20")]
    Structures(StructuresArgs),
    /// A* on the 15-puzzle, the paper's application, in both published shapes.
    #[command(after_help = "Examples:\n  \
        isochrone bench astar --cores 0,1 --awake\n  \
        isochrone bench astar --json=astar.json && \\\n    isochrone reproduce hidden-numa --bench astar.json")]
    Astar(AstarArgs),
    /// Collectives in cache lines against the installed MPIs, in the same jobs.
    #[command(after_help = "Examples:\n  \
        isochrone bench coll --json=coll.json\n  \
        isochrone bench coll --only openmpi,mpich --jobs 2 --blocks 10\n  \
        isochrone bench coll --ranks 16 --atlas isochrone.atlas --json=coll16.json\n  \
        isochrone bench coll --peer xhc=/opt/ompi --peer ch4-ofi=$HOME/mpich-venv\n  \
        isochrone bench coll \\\n    --peer 'own=/opt/ompi/lib/libmpi.so=mpirun --mca coll_sm_priority 100'")]
    Coll(CollArgs),
    /// Lines near and far for a pair of cores, and a broadcast and a barrier on each.
    #[command(after_help = "Examples:\n  \
        isochrone bench flags --blocks 30 --json=flags.json")]
    Flags(FlagsArgs),
    /// Whole programs under our library and the well known ones: those of mimalloc-bench, or what this machine has.
    #[command(after_help = "Examples:\n  \
        isochrone bench malloc                                   perl, python3, sqlite3, gawk\n  \
        isochrone bench malloc --programs ~/mimalloc-bench/bin --json=malloc.json\n  \
        isochrone bench malloc --programs ~/mimalloc-bench/bin \\\n    --peers none --over none   glibc and ours")]
    Malloc(MallocArgs),
    /// What it costs to be watched by `isochrone advise -- CMD`, and what its bounds are worth: a dozen programs alone,
    /// watched and alone again, and their levers beside the bounds.
    #[command(after_help = "Examples:\n  \
        isochrone bench advise --budget 90m --json=advise.json   all programs, as figures are taken\n  \
        isochrone bench advise --only sort,gzip --blocks 5")]
    Advise(AdviseArgs),
    /// The tiled Cholesky factorisation on tasks, in the regimes of memory and scheduling.
    #[command(after_help = "Examples:\n  \
        isochrone bench cholesky --rows 8192 --tile 512 \\\n    --regime dft,naft --json=cholesky.json\n  \
        isochrone bench cholesky --peers --rows 8192 \\\n    --tiles 256,384,512 --json=peers.json\n  \
        isochrone bench cholesky --rows 1024 --trace trace.json    for chrome://tracing or Perfetto")]
    Cholesky(CholeskyArgs),
    /// Answers one question of `cholesky --peers`.
    #[command(hide = true)]
    CholeskyRun(CholeskyRun),
    /// The tiled LU factorisation on tasks, in small tiles, against OpenMP's tasks over the same kernels.
    #[command(after_help = "Examples:\n  \
        isochrone bench lu --json=lu.json              2048 rows in tiles of 64\n  \
        isochrone bench lu --rows 4096 --tile 128 --threads 2")]
    Lu(LuArgs),
    /// Answers one question of `lu`.
    #[command(hide = true)]
    LuRun(LuRun),
    /// Symmetric matrix inversion on tasks, in three stages.
    #[command(after_help = "Examples:\n  \
        isochrone bench smi --rows 2048 --regime dft,di,naft,isochrone")]
    Smi(MatrixArgs),
    /// PARSEC's streamcluster on tasks.
    #[command(after_help = "Examples:\n  \
        isochrone bench streamcluster --regime dft,naft --json=streamcluster.json")]
    Streamcluster(StreamclusterArgs),
    /// Jacobi's method with the five-point stencil on tasks, by blocks of rows.
    #[command(after_help = "Examples:\n  \
        isochrone bench jacobi --rows 4096 --sweeps 20 --regime dft,naft\n  \
        isochrone bench jacobi --check-footprint --blocks 2      every page that a kernel did not declare is unmapped")]
    Jacobi(JacobiArgs),
    /// The integral histogram of an image on tasks, 32 bins.
    #[command(after_help = "Examples:\n  \
        isochrone bench inthist --regime naft --record schedule.json")]
    Inthist(HistogramArgs),
    /// How fast the simulator of large machines is.
    #[command(after_help = "Examples:\n  isochrone bench sim --repeats 5 --json=speed.json")]
    Sim(SpeedArgs),
    /// What a task costs, and how small tasks may get, against OpenMP, oneTBB and StarPU. Slow systems get fewer steps
    /// and tasks, which the file says.
    #[command(after_help = "Examples:\n  \
        isochrone bench taskbench --json=taskbench.json --budget 5m  everything, three blocks and more\n  \
        isochrone bench taskbench --patterns stencil_1d --widths 8")]
    Taskbench(TaskbenchArgs),
    /// Answers one question of `taskbench`.
    #[command(hide = true)]
    TaskbenchRun {
        #[command(subcommand)]
        question: TaskbenchRun,
    },
    /// Memory larger than fast memory: the stencil with half of its data in fast memory, what a page
    /// costs, and the same under mmap and swap.
    #[command(after_help = "Examples:\n  \
        isochrone bench tier --json=tier.json\n  \
        isochrone bench tier --radii 1,5 --only curves\n  \
        isochrone bench tier --only peers --folder /var/tmp \\\n    --peer umap=$PWD/libumap-peer.so\n  \
        isochrone bench tier --only unmodified --blocks 5 \\\n    --program redis=$HOME/redis/src/redis-server")]
    Tier(TierArgs),
}

/// What `bench chase` takes.
#[derive(Clone, Debug, Args)]
pub(crate) struct ChaseArgs {
    /// MiB of lines, e.g. 1,4,64 [default: sizes for this machine's caches].
    #[arg(long, value_name = "MIB", value_delimiter = ',', value_parser = parse_mib)]
    pub(crate) sizes: Vec<f64>,
    #[command(flatten)]
    pub(crate) placement: PlacementArgs,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

/// A part of `bench tier`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TierPart {
    /// What faults and replacements cost; always measured.
    Costs,
    /// Times over all data in memory, from little arithmetic to much.
    Curves,
    /// Counts of synchronous faults, and the serpentine sweep.
    Faults,
    /// A sparse product and the tile Cholesky factorisation.
    Workloads,
    /// A mapped array without a team: how much a fault brings, and threads that fault at once.
    Mapped,
    /// A random walk, and the same where a second worker tells the pager of its pages beforehand.
    Hints,
    /// The stencil under mmap, swap, zram and UMap.
    Peers,
    /// Unmodified programs under `isochrone run --fast-memory`, swap, zram, zswap, mmap and UMap. Only where it is
    /// asked for: a block of all takes minutes.
    Unmodified,
}

/// What `bench tier` takes.
#[derive(Clone, Debug, Args)]
pub(crate) struct TierArgs {
    /// Data of the stencil, of which half fits fast memory; at least 256k.
    #[arg(long, value_name = "BYTES", value_parser = parse_area, default_value = "16M")]
    pub(crate) area: u64,
    /// Radii of the stencil: arithmetic for a page grows with their square. These go from a plain sweep to some
    /// eight times as much arithmetic as it takes to replace a page.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1,2,3,4,5,7,10",
          value_parser = parse_radius)]
    pub(crate) radii: Vec<usize>,
    /// Only these parts.
    #[arg(long, value_enum, value_name = "PARTS", value_delimiter = ',')]
    pub(crate) only: Vec<TierPart>,
    /// Folder for far files, of mapped arrays and beside mmap and swap: on the disk to compare [default: the system's
    /// for temporary files]. As root a swap file is switched on there, and zram, while they are compared.
    #[arg(long, value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
    /// Another pager to compare with: `umap=PATH`, a library built from
    /// crates/lab/isochrone-lab/src/bench/tier/peers/umap.cpp.
    #[arg(long, value_name = "NAME=PATH", value_parser = parse_pager)]
    pub(crate) peer: Option<String>,
    /// Data of each unmodified program, of which half fits fast memory; at least 16M.
    #[arg(long, value_name = "BYTES", value_parser = parse_data, default_value = "64M")]
    pub(crate) data: u64,
    /// Where an unmodified program lies, of numpy (a python3 that has it), sqlite (sqlite3) and redis (redis-server of
    /// MALLOC=libc, with redis-cli beside it) [default: what is found on PATH].
    #[arg(long, value_name = "NAME=PATH", value_parser = parse_program)]
    pub(crate) program: Vec<(String, PathBuf)>,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

/// What `bench structures` takes.
#[derive(Clone, Debug, Args)]
pub(crate) struct StructuresArgs {
    /// Only these structures.
    #[arg(long, value_enum, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) only: Vec<StructureName>,
    /// MiB of nodes, e.g. 4,64 [default: one size for the LLC, one for DRAM].
    #[arg(long, value_name = "MIB", value_delimiter = ',', value_parser = parse_mib)]
    pub(crate) sizes: Vec<f64>,
    #[command(flatten)]
    pub(crate) placement: PlacementArgs,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

/// What `bench astar` takes.
#[derive(Clone, Debug, Args)]
pub(crate) struct AstarArgs {
    /// Nodes that a search may make, e.g. 60000,1000000 [default: one number for the LLC, one for
    /// DRAM].
    #[arg(long, value_name = "NODES", value_delimiter = ',', value_parser = parse_budget)]
    pub(crate) budgets: Vec<usize>,
    /// Korf's instances to search, one for each core [default: 79 and up by difficulty].
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',',
          value_parser = clap::value_parser!(u8).range(1..=100))]
    pub(crate) instances: Vec<u8>,
    #[command(flatten)]
    pub(crate) placement: PlacementArgs,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

/// What `bench coll` takes.
#[derive(Clone, Debug, Args)]
pub(crate) struct CollArgs {
    /// Ranks of a job, one for each of the first cores. Bands are predicted for two.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(2..=1024))]
    pub(crate) ranks: u16,
    /// Jobs of each MPI, which take turns: the unit that is repeated.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) jobs: u32,
    /// Another MPI beside the installed ones, as NAME=PREFIX, below which lib/libmpi.so.* and bin/mpirun lie, or as
    /// NAME=LIBRARY=COMMAND. `xhc` and `ch4-ofi` are set up to use what they are named after.
    #[arg(long, value_name = "PEER", value_parser = parse_mpi)]
    pub(crate) peer: Vec<String>,
    /// Only these MPIs: openmpi, openmpi-sm, mpich and those of --peer.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// The library to measure [default: libisochrone_mpi.so beside this program or in ../lib].
    #[arg(long, value_name = "FILE")]
    pub(crate) preload: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

/// What `bench flags` takes.
#[derive(Clone, Debug, Args)]
pub(crate) struct FlagsArgs {
    /// Calls of each collective on each kind of lines in a block.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    #[arg(value_parser = clap::value_parser!(u64).range(10..=1_000_000))]
    pub(crate) windows: u64,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

/// What `bench malloc` takes.
#[derive(Clone, Debug, Args)]
pub(crate) struct MallocArgs {
    /// Folder with the built programs of mimalloc-bench; those that are not there have no figure [default: perl,
    /// python3, sqlite3 and gawk, as far as they are installed].
    #[arg(long, value_name = "DIR")]
    pub(crate) programs: Option<PathBuf>,
    /// Only these programs.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// Allocators that ours is also put over, besides glibc, of mimalloc, jemalloc, tcmalloc and
    /// snmalloc; none: over glibc alone.
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "mimalloc",
        value_parser = parse_allocator
    )]
    pub(crate) over: Vec<String>,
    /// Allocators beside ours, of the same ones; none leaves the time to glibc and ours [default: all that are found].
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = parse_allocator)]
    pub(crate) peers: Option<Vec<String>>,
    /// The library to measure [default: libisochrone_malloc.so beside this program or in ../lib].
    #[arg(long, value_name = "FILE")]
    pub(crate) preload: Option<PathBuf>,
    /// Longest that one run of a program may take, in seconds.
    #[arg(long, value_name = "S", default_value_t = 120, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub(crate) limit: u32,
    #[command(flatten)]
    pub(crate) placement: PlacementArgs,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

/// What `bench advise` takes.
#[derive(Clone, Debug, Args)]
pub(crate) struct AdviseArgs {
    /// Only these programs.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

/// Data of a stencil, which has some rows.
fn parse_area(text: &str) -> Result<u64, String> {
    let bytes = parse_bytes(text)?;
    let why = || format!("`{text}` is less than 256k, which a stencil needs");
    (bytes >= LEAST_AREA).then_some(bytes).ok_or_else(why)
}

/// An MPI's name and place.
fn parse_mpi(text: &str) -> Result<String, String> {
    let is_one = text.split_once('=').is_some_and(|(name, at)| !name.is_empty() && !at.is_empty());
    let why = || {
        format!(
            "`{text}` is neither NAME=PREFIX, as in xhc=/opt/ompi, nor NAME=LIBRARY=COMMAND, as in \
             xhc=/opt/lib/libmpi.so=/opt/bin/mpirun"
        )
    };
    is_one.then(|| text.to_owned()).ok_or_else(why)
}

/// An allocator that can be preloaded, or none.
fn parse_allocator(text: &str) -> Result<String, String> {
    let mut known = library::allocators().chain(["none"]);
    let why = || {
        let names: Vec<&str> = library::allocators().collect();
        format!("there is no allocator `{text}`; there are {}, and none", names.join(", "))
    };
    known.any(|name| name == text).then(|| text.to_owned()).ok_or_else(why)
}

/// A pager's name and library.
fn parse_pager(text: &str) -> Result<String, String> {
    let is_one = text.strip_prefix("umap=").is_some_and(|path| !path.is_empty());
    is_one.then(|| text.to_owned()).ok_or_else(|| format!("`{text}` is not umap=PATH"))
}

/// Data of a program beside which what it has else is small.
fn parse_data(text: &str) -> Result<u64, String> {
    let bytes = parse_bytes(text)?;
    let why =
        || format!("`{text}` is less than 16M, beside which a program's own memory is not small");
    (bytes >= LEAST_DATA).then_some(bytes).ok_or_else(why)
}

/// A program's name and place.
fn parse_program(text: &str) -> Result<(String, PathBuf), String> {
    let parts = text.split_once('=').filter(|(name, at)| PLACED.contains(name) && !at.is_empty());
    let (name, at) = parts.ok_or_else(|| {
        format!("`{text}` is not NAME=PATH, with a name of {}", PLACED.join(", "))
    })?;
    Ok((name.to_owned(), at.into()))
}

/// Programs that may lie anywhere.
const PLACED: [&str; 3] = ["numpy", "sqlite", "redis"];

/// 16 MiB.
const LEAST_DATA: u64 = 16 << 20;
/// 64 pages.
const LEAST_AREA: u64 = 256 << 10;

/// The radius of a stencil.
fn parse_radius(text: &str) -> Result<usize, String> {
    bounded(text, MOST_RADIUS, "radius")
}

/// Nodes of a search.
fn parse_budget(text: &str) -> Result<usize, String> {
    bounded(text, MOST_NODES, "number of nodes")
}

/// A number from 1 on.
fn bounded(text: &str, most: usize, what: &str) -> Result<usize, String> {
    let number = text.trim().parse::<usize>().ok().filter(|number| (1..=most).contains(number));
    number.ok_or_else(|| format!("`{text}` is no {what} from 1 to {most}"))
}

/// A row of the stencil has not more points to either side.
const MOST_RADIUS: usize = 512;
/// Nodes of a line each, which fill 64 GiB.
const MOST_NODES: usize = 1 << 30;
