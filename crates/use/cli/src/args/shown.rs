//! What commands take that predict and simulate: how much, and where to show it.

use std::path::PathBuf;

use clap::Args;

/// Seeds of the simulation and files for what was found.
#[derive(Clone, Debug, Args)]
pub(crate) struct Shown {
    /// Seeds to simulate.
    #[arg(long, default_value_t = 51, value_parser = clap::value_parser!(u64).range(..=1_000_000))]
    pub(crate) seeds: u64,
    /// Figures as JSON, `-` for standard output.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// The graph for Graphviz, `-` for standard output; of several, that of the most threads.
    #[arg(long, value_name = "FILE")]
    pub(crate) dot: Option<PathBuf>,
    /// The same graph as SVG.
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
}
