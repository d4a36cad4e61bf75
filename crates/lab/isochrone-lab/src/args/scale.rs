//! What `isochrone-lab scale` takes.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use isochrone_console::args::{JsonArg, experiments, parse_time};
use isochrone_units::Experiment;

/// Examples below `isochrone-lab scale --help`.
pub(super) const AFTER_HELP: &str = "\
Examples:
  isochrone-lab scale --cores 384 --regions 16 --within 10m --json=scale.json
  isochrone-lab scale --cores 128 --regions 2 --quick
  isochrone-lab scale --cores 576 --regions 16 \\\n    --within 10m --only transfer,region
  isochrone-lab scale --cores 64 --regions 4 --crowded --budget 5m
  isochrone-lab scale --cores 128 --regions 2 --out large.atlas

Nothing here is measured: the experiments of `isochrone map` run on a synthetic machine, in its virtual time, in \
the same order and with the same shares of it. What is found is held against the truth. Goals are printed beside what \
was found, and one that is missed is printed as missed. Only processor times and the time of `show` are this \
machine's; they need a release build to mean anything.
A whole map of hundreds of cores takes some minutes of one core of this machine: --within says how long it may.
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 interrupted: what was found is printed, and kept with --out.";

/// What `scale` takes.
#[derive(Clone, Debug, Args)]
pub(crate) struct ScaleArgs {
    /// Cores of the machine, eight around a last-level cache.
    #[arg(long, value_name = "N", default_value_t = 384,
          value_parser = clap::value_parser!(u16).range(2..=4096))]
    pub(crate) cores: u16,
    /// Its memory regions; the cores are spread over them.
    #[arg(long, value_name = "N", default_value_t = 16,
          value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) regions: u16,
    /// Less of everything, as `isochrone map --quick`.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Virtual time for all of it, as `isochrone map --budget` [default: 10s with --quick, else as long as it takes].
    #[arg(long, value_parser = parse_time, value_name = "TIME")]
    pub(crate) budget: Option<Duration>,
    /// Time of this machine for all of it. What there is no time for is left out, and said.
    #[arg(long, value_parser = parse_time, value_name = "TIME", default_value = "60s")]
    pub(crate) within: Duration,
    /// Only these experiments.
    #[arg(long, value_parser = experiments(), value_delimiter = ',', value_name = "NAMES")]
    pub(crate) only: Vec<Experiment>,
    /// Pairs of cores that exchange lines at the same time slow each other down, so that only one pair at a time tells
    /// the truth.
    #[arg(long)]
    pub(crate) crowded: bool,
    /// Seed of the machine and of every random order; the same one finds the same.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Where the atlas is kept; it is thrown away otherwise.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) json: JsonArg,
}
