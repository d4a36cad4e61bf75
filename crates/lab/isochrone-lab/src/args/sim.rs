//! What `isochrone sim` takes.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use isochrone_console::args::{HtmlArg, JsonArg, parse_time};
use isochrone_tasks::Regime;
use isochrone_workloads::numa::{Bench, Variant};

use super::budget::time;

/// Examples below `isochrone sim --help`.
pub(super) const AFTER_HELP: &str = "\
Examples:
  isochrone sim cholesky --machine bullion-s-16s --regime naft --threads 288
  isochrone sim smi --regime di --json=smi.json --html=smi.html
  isochrone sim jacobi --machine my-machine.toml --size small
  isochrone sim cholesky --variant inout-twice,panels
  isochrone sim cholesky --size small --record s.json; \\\n    isochrone sim cholesky --size small --replay s.json
  isochrone sim sweep --bench cholesky,smi --threads 16,96,288 --out sweep.jsonl

Nothing here is measured: a machine described by a TOML file runs in virtual time, with the scheduler \
that `isochrone bench cholesky` runs live. Variants are listed by `isochrone sim sweep --list`.
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 interrupted (finished runs are kept).";

/// What is simulated.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum SimCommand {
    /// The tiled Cholesky factorisation, 59136 rows in tiles of 768.
    #[command(
        after_help = "Examples:\n  isochrone sim cholesky --machine bullion-s-16s --regime naft --threads 288"
    )]
    Cholesky(SimArgs),
    /// Symmetric matrix inversion, the same matrix.
    #[command(
        after_help = "Examples:\n  isochrone sim smi --regime di --json=smi.json --html=smi.html"
    )]
    Smi(SimArgs),
    /// PARSEC's streamcluster, one step of the paper's five.
    #[command(after_help = "Examples:\n  isochrone sim streamcluster --regime dft --threads 96")]
    Streamcluster(SimArgs),
    /// Jacobi's method, 6400 blocks of 800 x 20000.
    #[command(after_help = "Examples:\n  isochrone sim jacobi --size small --regime naft")]
    Jacobi(SimArgs),
    /// The integral histogram of 65536 x 65536 pixels in blocks of 512 x 512.
    #[command(after_help = "Examples:\n  isochrone sim inthist --regime isochrone --threads 48")]
    Inthist(SimArgs),
    /// Many runs on all cores of this machine; a sweep that was stopped goes on where it was.
    #[command(after_help = "Examples:\n  \
        isochrone sim sweep --out paper.jsonl                  the grid of the paper\n  \
        isochrone sim sweep --bench jacobi --regime di --threads 96 \\\n    --seeds 20 --out j.jsonl\n  \
        isochrone sim sweep --variant open-loop,panels+inout-twice \\\n    --threads 288 --out v.jsonl\n\n\
        Each finished run is a line of the results file. Run the same command again after a kill: what \
        stands in the file is not done again.")]
    Sweep(SweepArgs),
}

/// How large the inputs are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum SizeChoice {
    /// The paper's.
    #[default]
    Paper,
    /// Small ones of the same shape.
    Small,
}

impl SizeChoice {
    /// Whether these are the paper's inputs.
    pub(crate) const fn is_paper(self) -> bool {
        matches!(self, Self::Paper)
    }
}

/// What one run takes.
#[derive(Clone, Debug, Args)]
pub(crate) struct SimArgs {
    /// A bundled machine or a TOML file.
    #[arg(long, value_name = "NAME", default_value = "bullion-s-16s")]
    pub(crate) machine: String,
    /// Who schedules and where memory lies: dft, di, naft, isochrone.
    #[arg(long, value_name = "NAME", default_value = "naft")]
    pub(crate) regime: Regime,
    /// Workers, spread evenly over the regions [default: one for each core].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub(crate) threads: Option<u16>,
    /// How large the input is.
    #[arg(long, value_enum, default_value_t = SizeChoice::Paper)]
    pub(crate) size: SizeChoice,
    /// Changes to the scheduler, the program or the machine, joined by commas.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) variant: Vec<Variant>,
    /// Seed of every random choice; the same one gives the same run.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) json: JsonArg,
    #[command(flatten)]
    pub(crate) html: HtmlArg,
    /// Writes the schedule: who ran which task when.
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Follows a schedule instead of scheduling: with its times if it is simulated, which gives the identical
    /// report; workers and orders only if it was recorded live, with `isochrone bench cholesky --record`.
    #[arg(long, value_name = "FILE")]
    pub(crate) replay: Option<PathBuf>,
}

/// What `isochrone bench sim` takes.
#[derive(Clone, Debug, Args)]
pub(crate) struct SpeedArgs {
    /// A bundled machine or a TOML file.
    #[arg(long, value_name = "NAME", default_value = "bullion-s-16s")]
    pub(crate) machine: String,
    /// Benchmarks [default: cholesky].
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) bench: Vec<Bench>,
    /// How large the inputs are.
    #[arg(long, value_enum, default_value_t = SizeChoice::Paper)]
    pub(crate) size: SizeChoice,
    /// Runs of each case [default: 3].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) repeats: Option<u16>,
    /// Time for all of it, e.g. 60s, 5m: every case has as many runs as fit, and what did not is named [default: 60s;
    /// none where --repeats says how many].
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(crate) budget: Option<Duration>,
    #[command(flatten)]
    pub(crate) json: JsonArg,
}

impl SpeedArgs {
    /// The time for it; `None` where a number of runs was asked for, however long they take.
    pub(crate) fn time(&self) -> Option<Duration> {
        time(self.budget, self.repeats.is_some())
    }
}

/// What a sweep takes.
#[derive(Clone, Debug, Args)]
pub(crate) struct SweepArgs {
    /// A bundled machine or a TOML file.
    #[arg(long, value_name = "NAME", default_value = "bullion-s-16s")]
    pub(crate) machine: String,
    /// Benchmarks [default: all five].
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) bench: Vec<Bench>,
    /// Regimes [default: dft, di, naft].
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) regime: Vec<Regime>,
    /// Numbers of workers [default: 16, then 32 to 288 in steps of 32].
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',',
          value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub(crate) threads: Vec<u16>,
    /// Sets of variants, joined by commas; those of one set by `+`; `plain` for none.
    #[arg(long, value_name = "SETS", value_delimiter = ',')]
    pub(crate) variant: Vec<String>,
    /// Seeds of each cell, from 1.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) seeds: u64,
    /// How large the inputs are.
    #[arg(long, value_enum, default_value_t = SizeChoice::Paper)]
    pub(crate) size: SizeChoice,
    /// Results, a line each; what stands there is not done again.
    #[arg(long, value_name = "FILE", default_value = "sweep.jsonl")]
    pub(crate) out: PathBuf,
    /// Runs at once [default: one for each core of this machine].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
    /// List the variants.
    #[arg(long)]
    pub(crate) list: bool,
}
