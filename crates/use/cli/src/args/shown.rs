//! What commands take that predict and simulate: how much, and where to show it.

use std::path::PathBuf;

use clap::Args;
use isochrone_console::args::{Asked, JsonArg, STDOUT, asked};

/// Seeds of the simulation and files for what was found.
#[derive(Clone, Debug, Args)]
pub(crate) struct Shown {
    /// Seeds to simulate.
    #[arg(long, default_value_t = 51, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) seeds: u64,
    #[command(flatten)]
    pub(crate) json: JsonArg,
    /// The graph for Graphviz, --dot alone for standard output; of several, that of the most threads.
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = STDOUT)]
    pub(crate) dot: Option<PathBuf>,
    /// The same graph as SVG.
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = STDOUT)]
    pub(crate) svg: Option<PathBuf>,
}

impl Shown {
    /// The options that name a place, with what they were given.
    pub(crate) fn asked(&self) -> [Asked<'_>; 3] {
        let (dot, svg) = (self.dot.as_ref(), self.svg.as_ref());
        [self.json.asked(), asked("--dot", dot), asked("--svg", svg)]
    }
}
