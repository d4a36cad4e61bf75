//! What `bench lu` takes.

use clap::Args;

use super::bench::CommonArgs;

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
