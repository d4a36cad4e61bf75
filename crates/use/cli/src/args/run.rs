//! What `isochrone run` takes.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};

use isochrone_alloc::Mode;
use isochrone_console::args::{HostArgs, JsonArg, PlacementArgs, parse_bytes, parse_time};
use isochrone_malloc::Pin;
use isochrone_mpi::{BYTES_MOST, COLLECTIVES};
use isochrone_tier::live::far::FarKind;
use isochrone_tier::live::guest::FAST_BYTES_MIN;

/// Examples and exit codes below `isochrone run --help`.
pub(super) const AFTER_HELP: &str = "\
The preloaded allocator is an experiment, not for production.

Examples:
  isochrone run -- python3 script.py               near lines for its small objects
  isochrone run --report -- ./server --port 80     and say at exit what was placed
  isochrone run --mode oblivious -- ./server       the same pools, random lines: the baseline
  isochrone run --near 1/8 --waste 50% -- ./app    nearer lines for more memory
  isochrone run --malloc mimalloc -- ./server      mimalloc for what is not placed
  isochrone run --mpi --report -- mpirun -n 2 ./p  collectives of an MPI program in cache lines
  isochrone run --fast-memory 4G --report -- ./p   its large arrays are compressed beyond 4 GiB
  isochrone run --compare -- ./solver              is it faster? with and without by turns, for a minute
  isochrone run --pin compact -- ./solver          threads stay on the cores that their lines are near

Use it where it predicts a gain of 1.08 or more, for programs that follow pointers between small objects, more of \
them than the second-level cache holds. Where it predicts less it says so in a line, and becomes the program itself, \
without the library; --force places all the same. Nothing is placed by distance before a base of the atlas is \
recognised while the program runs; a program that looked for one long enough in vain is told so in a line.
The program must be dynamically linked against glibc and not setuid.
Exit code: the program's own; 128 + N if signal N ended it; 2 for wrong usage, 125 if isochrone itself failed, \
126 if the program cannot be run under it, 127 if it was not found. --json without a file stands behind what the \
program writes to standard output.";

/// How memory is handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RunMode {
    /// The lines near the core that asks.
    Aware,
    /// The same pools, random lines: what `aware` is compared with.
    Oblivious,
}

/// Where threads are pinned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PinChoice {
    /// Thread after thread to the next core, siblings of one core first.
    Compact,
    /// Thread after thread to the next core, each physical core once first.
    Spread,
    /// Not at all: what a thread took is near the core that it took it on, until it moves.
    None,
}

impl PinChoice {
    /// As options and reports name it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Compact => "compact",
            Self::Spread => "spread",
            Self::None => "none",
        }
    }
}

impl From<RunMode> for Mode {
    fn from(choice: RunMode) -> Self {
        match choice {
            RunMode::Aware => Self::Aware,
            RunMode::Oblivious => Self::Oblivious,
        }
    }
}

impl From<PinChoice> for Pin {
    fn from(choice: PinChoice) -> Self {
        match choice {
            PinChoice::Compact => Self::Compact,
            PinChoice::Spread => Self::Spread,
            PinChoice::None => Self::None,
        }
    }
}

/// Bytes of a call that is done in lines.
fn parse_lines_bytes(text: &str) -> Result<usize, String> {
    let bytes = usize::try_from(parse_bytes(text)?).unwrap_or(usize::MAX);
    if bytes > BYTES_MOST { Err("1M at most".to_owned()) } else { Ok(bytes) }
}

/// From how many bytes on calls are copied once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SingleCopy {
    /// As it is said.
    From(usize),
    /// Where they have more than go through lines.
    Auto,
}

fn parse_single_copy(text: &str) -> Result<SingleCopy, String> {
    if text == "auto" {
        return Ok(SingleCopy::Auto);
    }
    Ok(SingleCopy::From(usize::try_from(parse_bytes(text)?).unwrap_or(usize::MAX)))
}

/// Mappings of so many bytes and more are paged: below it a program has many, for each of which the kernel would be
/// asked twice.
pub(crate) const LARGE_BYTES: usize = 1 << 20;

/// Bytes of fast memory.
fn parse_fast_bytes(text: &str) -> Result<u64, String> {
    let bytes = parse_bytes(text)?;
    if bytes < FAST_BYTES_MIN as u64 { Err("1M at least".to_owned()) } else { Ok(bytes) }
}

/// A far tier.
fn parse_far(text: &str) -> Result<FarKind, String> {
    let far = FarKind::parse(text)?;
    let FarKind::File(folder) = far else { return Ok(far) };
    // Programs go elsewhere before their first large mapping.
    let folder = std::path::absolute(folder).map_err(|error| error.to_string())?;
    Ok(FarKind::File(folder))
}

/// What `run` takes.
#[derive(Clone, Debug, Args)]
pub(crate) struct RunArgs {
    /// Which lines are handed out.
    #[arg(long, value_enum, default_value_t = RunMode::Aware)]
    pub(crate) mode: RunMode,
    #[command(flatten)]
    pub(crate) placement: PlacementArgs,
    #[command(flatten)]
    pub(crate) host: HostArgs,
    /// Instead: page the large mappings (1M and more) of each process of the program, of which so much may be in fast
    /// memory, 1M or more; the rest is compressed, or where --far says.
    #[arg(long, value_name = "BYTES", value_parser = parse_fast_bytes, conflicts_with_all = ["mpi", "mode", "near",
        "waste", "atlas", "awake", "pin", "force", "aside", "compare", "check", "fresh"])]
    pub(crate) fast_memory: Option<u64>,
    /// With --fast-memory: where the rest is: compressed by lz4 or zstd, file:DIR, or region:N.
    #[arg(long, value_name = "WHERE", value_parser = parse_far, default_value = "lz4", requires = "fast_memory")]
    pub(crate) far: FarKind,
    /// Instead: an MPI job (CMD is its mpirun) whose collectives are done in cache lines.
    #[arg(long, conflicts_with_all = ["mode", "pin", "force", "aside", "compare", "check", "fresh", "malloc"])]
    pub(crate) mpi: bool,
    /// With --mpi: these collectives alone, e.g. bcast,allreduce; the others are the MPI's.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', requires = "mpi",
        value_parser = PossibleValuesParser::new(COLLECTIVES))]
    pub(crate) only: Vec<String>,
    /// With --mpi: calls of more bytes from or to each rank are the MPI's, 1M at most [default: 64K].
    #[arg(long, value_name = "BYTES", requires = "mpi", value_parser = parse_lines_bytes)]
    pub(crate) max_bytes: Option<usize>,
    /// With --mpi: calls that only move bytes, of so many or more from or to each rank, are copied once, from the
    /// memory of one rank to that of another, where the kernel lets all ranks of a node do so; `auto`: those of
    /// more bytes than go through lines [default: none is].
    #[arg(long, value_name = "BYTES", requires = "mpi", value_parser = parse_single_copy)]
    pub(crate) single_copy: Option<SingleCopy>,
    /// With --mpi: blocking reductions of numbers with a point, and by operations of the program's own, combine what
    /// ranks give in the order of ranks, in lines and by the MPI: the same bits however ranks lie on cores and nodes.
    #[arg(long, requires = "mpi", conflicts_with = "off")]
    pub(crate) reproducible: bool,
    /// With --mpi: the MPI does everything, and the report says how often.
    #[arg(long, requires = "mpi")]
    pub(crate) off: bool,
    /// The allocator for what is not placed, and for everything where nothing is: mimalloc, jemalloc, tcmalloc,
    /// snmalloc, or the path of a library [default: the next one that is preloaded, else glibc's].
    #[arg(long, value_name = "NAME")]
    pub(crate) malloc: Option<String>,
    /// Pin the program's threads.
    #[arg(long, value_enum, default_value_t = PinChoice::None)]
    pub(crate) pin: PinChoice,
    /// Place all the same where the atlas predicts too little gain, and go on where no base of it is recognised.
    #[arg(long)]
    pub(crate) force: bool,
    /// Load the library, and let it find that there is nothing to place by: what stepping aside costs a program.
    #[arg(long, conflicts_with_all = ["force", "fresh"])]
    pub(crate) aside: bool,
    /// Say on standard error what was placed, for each process, when all is over.
    #[arg(long)]
    pub(crate) report: bool,
    #[command(flatten)]
    pub(crate) json: JsonArg,
    /// Run the program again and again, with placement and without by turns, and say whether it is faster by more than
    /// it differs from itself. Only the first run is heard; all read the same input, which is kept for them (a
    /// terminal's is not read). A run that fails ends it, with its exit code.
    #[arg(long)]
    pub(crate) compare: bool,
    /// With --compare: time for the runs after the first one, e.g. 60s, 5m [default: 60s].
    #[arg(long, value_name = "TIME", value_parser = parse_time, requires = "compare")]
    pub(crate) budget: Option<Duration>,
    /// Look first whether the cores wear what the atlas knows (a tenth of a second for each of the
    /// first four); where they do not, measure a quick atlas for this run, about 6 s.
    #[arg(long)]
    pub(crate) fresh: bool,
    /// Look for slots that are free and in use at once while it runs (slower).
    #[arg(long)]
    pub(crate) check: bool,
    /// The library to preload [default: libisochrone_malloc.so, libisochrone_mpi.so or
    /// libisochrone_pager.so, beside this program or in ../lib].
    #[arg(long, value_name = "FILE")]
    pub(crate) preload: Option<PathBuf>,
    /// The program and its arguments.
    #[arg(required = true, trailing_var_arg = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}
