//! The laboratory's command line, its help and its examples, in one place; everything else takes typed values.

mod bench;
mod budget;
mod claims;
mod common;
mod dataflow;
mod papers;
mod scale;
mod sim;
mod taskbench;
#[cfg(test)]
mod tests;
mod verify;

use clap::{Parser, Subcommand};
use isochrone_console::args::ManArgs;
pub(crate) use isochrone_console::args::{ColourChoice, JsonArg, PlacementArgs, Share};
use isochrone_console::codes::HELP;
use isochrone_console::partner::BUILD;
use isochrone_console::run::usage::UsageArgs;

pub(crate) use bench::{
    AdviseArgs, AstarArgs, BenchCommand, ChaseArgs, CollArgs, FlagsArgs, MallocArgs,
    StructuresArgs, TierArgs, TierPart,
};
pub(crate) use claims::ClaimsArgs;
pub(crate) use common::CommonArgs;
pub(crate) use dataflow::{
    CholeskyArgs, CholeskyRun, DataflowArgs, HistogramArgs, JacobiArgs, KernelsChoice, LuArgs,
    LuRun, MatrixArgs, StreamclusterArgs,
};
pub(crate) use papers::{DepthChoice, Paper, ReproduceArgs};
pub(crate) use scale::ScaleArgs;
pub(crate) use sim::{SimArgs, SimCommand, SpeedArgs, SweepArgs};
pub(crate) use taskbench::{TaskbenchArgs, TaskbenchRun};
pub(crate) use verify::{ModelArgs, VerifyCommand};

use crate::bench::RankArgs;
use crate::tier::TierArmArgs;
use crate::workload::WorkloadArgs;

/// The laboratory of Isochrone: proves what it claims, by benchmarks beside others that do the same, papers whose
/// figures are reproduced, simulations, and the model held against live calls.
#[derive(Debug, Parser)]
#[command(
    name = "isochrone-lab",
    version = BUILD,
    about,
    after_help = format!("`isochrone bench ...` starts this program, and so on for all of its commands but claims; \
                          `cargo lab ...` builds and runs it.\n{HELP}")
)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Colours: auto (on a terminal), always, never.
    #[arg(long, global = true, value_enum, default_value_t = ColourChoice::Auto)]
    pub(crate) color: ColourChoice,
    /// Of which sources the program is that starts this one.
    #[arg(long, hide = true, value_name = "BUILD")]
    pub(crate) of_build: Option<String>,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure on this machine what each part gains and costs, beside others that do the same: placements
    /// and allocators, collectives, tasks, memory larger than fast memory.
    #[command(after_help = bench::AFTER_HELP)]
    Bench {
        /// What is compared.
        #[command(subcommand)]
        command: BenchCommand,
    },
    /// Print a paper's figures beside ours.
    #[command(after_help = "Examples:\n  \
            isochrone reproduce all --quick --site papers\n  \
            isochrone reproduce latency-checker --atlas isochrone.atlas --html=grids.html\n  \
            isochrone reproduce hidden-numa --bench astar.json --html=figures.html\n  \
            isochrone reproduce pspt --html=pspt.html --json=pspt.json\n  \
            isochrone reproduce numa-aware-runtime --results runs.jsonl \\\n    --json=rows.json --html=page.html\n  \
            isochrone reproduce cla --html=cla.html")]
    Reproduce(ReproduceArgs),
    /// Run task benchmarks on a large machine in virtual time, every coherence message counted.
    #[command(after_help = sim::AFTER_HELP)]
    Sim {
        /// What is simulated.
        #[command(subcommand)]
        command: SimCommand,
    },
    /// Make a whole map of a synthetic machine of hundreds of cores, in virtual time, and hold it against its truth.
    #[command(after_help = scale::AFTER_HELP)]
    Scale(ScaleArgs),
    /// Hold every figure of README against the file that it is of, or take this machine's figures again.
    #[command(after_help = claims::AFTER_HELP)]
    Claims(ClaimsArgs),
    /// Is the model right? Against live calls here, or against published figures.
    #[command(after_help = verify::AFTER_HELP)]
    Verify {
        /// Against what.
        #[command(subcommand)]
        command: VerifyCommand,
    },
    /// Runs a program and leaves what it took; part of `run` and `bench`.
    #[command(hide = true)]
    Usage(UsageArgs),
    /// Does one arm's work; part of `bench`.
    #[command(hide = true)]
    Workload(WorkloadArgs),
    /// One run on an area larger than fast memory; part of `bench`.
    #[command(hide = true)]
    TierArm(TierArmArgs),
    /// Times single calls of `malloc` and `free`; part of `bench malloc`.
    #[command(hide = true)]
    MallocCalls,
    /// One process of an MPI job; part of `bench coll`.
    #[command(hide = true)]
    CollRank(RankArgs),
    /// Print shell completions.
    #[command(
        after_help = "Example:\n  isochrone-lab completions bash > /etc/bash_completion.d/isochrone-lab"
    )]
    Completions {
        /// Which shell.
        shell: clap_complete::Shell,
    },
    /// Print the manual page (roff), or write the pages of all commands.
    #[command(after_help = "Examples:\n  isochrone-lab man > isochrone-lab.1\n  \
        isochrone-lab man --out /usr/share/man/man1")]
    Man(ManArgs),
}
