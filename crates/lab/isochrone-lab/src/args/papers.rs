//! What `isochrone reproduce` takes.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use isochrone_console::args::{HtmlArg, JsonArg};
use isochrone_workloads::numa::Variant;

/// What `reproduce` takes.
#[derive(Clone, Debug, Args)]
pub(crate) struct ReproduceArgs {
    /// Which paper, or all of them.
    #[arg(value_enum)]
    pub(crate) paper: Paper,
    /// With all: in some minutes, as much as that allows. With hidden-numa: in a minute, with three numbers of cores,
    /// one run each, and fewer orders of stops.
    #[arg(long, conflicts_with = "whole")]
    pub(crate) quick: bool,
    /// With all: everything, in less than an hour on two cores [default].
    #[arg(long = "paper", id = "whole")]
    pub(crate) whole: bool,
    /// With all: the folder of the site. What is finished there is not done again.
    #[arg(long, value_name = "FOLDER", default_value = "isochrone-papers")]
    pub(crate) site: PathBuf,
    /// This machine's atlas, for the measured side [default: ISOCHRONE_ATLAS, else isochrone.atlas, else the one
    /// in the cache folder, else a quick map is made].
    #[arg(long, value_name = "FILE")]
    pub(crate) atlas: Option<PathBuf>,
    /// A* on this machine, for hidden-numa: what `isochrone bench astar --json` wrote.
    #[arg(long, value_name = "FILE")]
    pub(crate) bench: Option<PathBuf>,
    /// The simulated machine, for numa-aware-runtime: a bundled one or a TOML file.
    #[arg(long, value_name = "NAME", default_value = "bullion-s-16s")]
    pub(crate) machine: String,
    /// How much of numa-aware-runtime is run.
    #[arg(long, value_enum, default_value_t = DepthChoice::Paper)]
    pub(crate) depth: DepthChoice,
    /// Changes under which all rows of numa-aware-runtime are worked out once more, joined by commas; with 16, 96 and
    /// 288 threads, with `--depth full` with all [default: directory-1.3M and own-declarations, and none with `--depth
    /// quick`].
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) beside: Vec<Variant>,
    /// Changes that switch each mechanism of numa-aware-runtime as well: one table of all rows before and after each.
    #[arg(long)]
    pub(crate) mechanisms: bool,
    /// Finished runs of numa-aware-runtime, a line each; what stands there is not done again.
    #[arg(long, value_name = "FILE")]
    pub(crate) results: Option<PathBuf>,
    /// With numa-aware-runtime: shows what stands in --results, and runs nothing.
    #[arg(long, requires = "results")]
    pub(crate) finished: bool,
    /// Writes every row by mechanism as Markdown: of numa-aware-runtime with --mechanisms, of pspt by its changes.
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
    /// Runs at once [default: one for each core of this machine].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
    #[command(flatten)]
    pub(crate) html: HtmlArg,
    #[command(flatten)]
    pub(crate) json: JsonArg,
}

/// How much of a grid is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DepthChoice {
    /// 16, 96 and 288 threads, one seed.
    Quick,
    /// All numbers of threads, one seed, also of changes.
    Curves,
    /// All numbers of threads, 20 seeds of DFT, ablations at 288.
    Paper,
    /// Both rankings and initialisations with five seeds at all numbers of threads as well.
    Full,
}

/// Papers whose figures can be printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Paper {
    /// All five as one site and one JSON: each row with what it tests, its tolerance and its verdict.
    All,
    /// The Latency Checker poster's grids, and Figure 2 of the Euro-Par paper for this machine.
    LatencyChecker,
    /// Figures 2 and 4 of the Euro-Par paper on hidden non-uniformity.
    HiddenNuma,
    /// Figures 6 to 8 and Tables I and II of the CCGrid paper on partially separated page tables,
    /// simulated.
    Pspt,
    /// Tables 2 and 3 and Figures 2 to 7 of the TPDS paper on coherence traffic, simulated.
    NumaAwareRuntime,
    /// Table 1, the five latencies and Figures 2 and 3 of the paper on cache-line-aware programs.
    Cla,
}
