//! What the five task benchmarks take.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use isochrone_tasks::Regime;
use isochrone_workloads::dataflow::FirstTouch;

use super::common::CommonArgs;

/// What all five take.
#[derive(Clone, Debug, Args)]
pub(crate) struct DataflowArgs {
    /// Regimes to compare: dft, di, naft, isochrone [default: all; ratios are against dft].
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) regime: Vec<Regime>,
    /// Workers; more than there are cores give results and no ratios that mean anything.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub(crate) threads: Option<u16>,
    /// Who touches the data first.
    #[arg(long, value_enum, default_value_t = TouchChoice::Blocks)]
    pub(crate) first_touch: TouchChoice,
    /// Runs every kernel with all pages unmapped that it did not declare, on one worker, and says
    /// whether all went well.
    #[arg(long)]
    pub(crate) check_footprint: bool,
    /// Writes what ran where and when, from one more run of each regime, as a trace for Chrome
    /// (chrome://tracing) or Perfetto.
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// Writes the schedule of one more run of the first regime: who ran which task when.
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Beside the regimes, runs that follow a schedule from `--record`, of this command or of `isochrone sim`:
    /// each worker runs the same tasks in the same order.
    #[arg(long, value_name = "FILE")]
    pub(crate) replay: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

/// Who touches the data first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TouchChoice {
    /// A task for each block or tile.
    Blocks,
    /// A task for each column of tiles (matrices).
    Panels,
    /// One task for everything: all data lie in one region.
    Serial,
}

impl From<TouchChoice> for FirstTouch {
    fn from(choice: TouchChoice) -> Self {
        match choice {
            TouchChoice::Blocks => Self::Blocks,
            TouchChoice::Panels => Self::Panels,
            TouchChoice::Serial => Self::Serial,
        }
    }
}

/// What `bench cholesky` takes.
#[derive(Clone, Debug, Args)]
pub(crate) struct CholeskyArgs {
    #[command(flatten)]
    pub(crate) matrix: MatrixArgs,
    /// Compares with OpenBLAS's own threads, and with OpenMP and StarPU tasks over the same kernels,
    /// instead of regimes. Needs compilers and the packages libopenblas0-pthread, libomp-dev, libstarpu-dev.
    #[arg(long)]
    pub(crate) peers: bool,
    /// With --peers: widths of tiles, of which each system takes its best.
    #[arg(long, value_name = "ROWS", value_delimiter = ',', default_values_t = [192, 256, 384, 512],
          value_parser = clap::value_parser!(u32).range(1..=8192))]
    pub(crate) tiles: Vec<u32>,
    /// With --peers: only systems whose name holds one of these words.
    #[arg(long, value_name = "WORDS", value_delimiter = ',')]
    pub(crate) only: Vec<String>,
}

/// A question of `bench cholesky --peers`.
#[derive(Clone, Debug, Args)]
pub(crate) struct CholeskyRun {
    /// `isochrone`, `openblas` for its own threads, or a library as peers/tiles.h says.
    pub(crate) system: String,
    /// Whose kernels.
    #[arg(value_enum)]
    pub(crate) kernels: KernelsChoice,
    /// Tiles along one side.
    pub(crate) tiles: u32,
    /// Rows of a tile.
    pub(crate) width: u32,
    pub(crate) workers: usize,
    pub(crate) seed: u64,
}

/// Whose tile kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KernelsChoice {
    /// Those of faer.
    Faer,
    /// Those of OpenBLAS, one thread each.
    Openblas,
}

/// What `bench cholesky` and `bench smi` take.
#[derive(Clone, Debug, Args)]
pub(crate) struct MatrixArgs {
    /// Rows of the matrix, rounded up to whole tiles.
    #[arg(long, default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..=200_000))]
    pub(crate) rows: u32,
    /// Rows of a tile.
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=8192))]
    pub(crate) tile: u32,
    #[command(flatten)]
    pub(crate) run: DataflowArgs,
}

/// What `bench streamcluster` takes. The paper's input has 128 dimensions, 10 to 20 centres, 7.2 million
/// points in steps of 1.44 million; the default here is the `simlarge` input of PARSEC.
#[derive(Clone, Debug, Args)]
pub(crate) struct StreamclusterArgs {
    /// Points in the stream.
    #[arg(long, default_value_t = 16_384, value_parser = clap::value_parser!(u32).range(2..=100_000_000))]
    pub(crate) points: u32,
    /// Points of one step.
    #[arg(long, default_value_t = 16_384, value_parser = clap::value_parser!(u32).range(2..=10_000_000))]
    pub(crate) chunk: u32,
    /// Points that one task passes over.
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=65_535))]
    pub(crate) block: u32,
    #[command(flatten)]
    pub(crate) run: DataflowArgs,
}

/// What `bench jacobi` takes.
#[derive(Clone, Debug, Args)]
pub(crate) struct JacobiArgs {
    /// Blocks of rows.
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) row_blocks: u32,
    /// Rows of a block.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) rows: u32,
    /// Columns of the grid.
    #[arg(long, default_value_t = 5000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) columns: u32,
    /// Sweeps over the grid.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) sweeps: u32,
    #[command(flatten)]
    pub(crate) run: DataflowArgs,
}

/// What `bench inthist` takes.
#[derive(Clone, Debug, Args)]
pub(crate) struct HistogramArgs {
    /// Blocks along one side of the image.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) image_blocks: u16,
    /// Pixels along one side of a block.
    #[arg(long, default_value_t = 128, value_parser = clap::value_parser!(u16).range(1..=8192))]
    pub(crate) side: u16,
    #[command(flatten)]
    pub(crate) run: DataflowArgs,
}

/// What `bench lu` takes.
#[derive(Clone, Debug, Args)]
pub(crate) struct LuArgs {
    /// Rows of the matrix, rounded up to whole tiles.
    #[arg(long, default_value_t = 2048, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub(crate) rows: u32,
    /// Rows of a tile.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=8192))]
    pub(crate) tile: u32,
    /// Workers [default: one for each core].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

/// A question of `bench lu`.
#[derive(Clone, Debug, Args)]
pub(crate) struct LuRun {
    /// `isochrone`, or a library as peers/lu.h says.
    pub(crate) system: String,
    /// Tiles along one side.
    pub(crate) tiles: u32,
    /// Rows of a tile.
    pub(crate) width: u32,
    pub(crate) workers: usize,
    pub(crate) seed: u64,
}
