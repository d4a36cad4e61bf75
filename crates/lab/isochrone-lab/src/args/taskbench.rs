//! What `bench taskbench` takes.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use isochrone_workloads::taskbench::Pattern;

use super::common::CommonArgs;

/// What `bench taskbench` takes.
#[derive(Clone, Debug, Args)]
pub(crate) struct TaskbenchArgs {
    /// Only these patterns: trivial, `stencil_1d`, fft, dom, tree, nearest.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) patterns: Vec<Pattern>,
    /// Points of a step.
    #[arg(long, value_name = "POINTS", value_delimiter = ',', default_values_t = [8, 64],
          value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub(crate) widths: Vec<u32>,
    /// Steps of each graph.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) steps: u32,
    /// Empty tasks of which the cost is taken.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1000..=100_000_000))]
    pub(crate) tasks: u64,
    /// Workers [default: one for each core].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// A further system: a program that understands the questions of peers/common.h.
    #[arg(long = "peer", value_name = "NAME=PATH", value_parser = parse_peer)]
    pub(crate) peers: Vec<(String, PathBuf)>,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

fn parse_peer(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, path)) if !name.is_empty() && !path.is_empty() => {
            Ok((name.to_owned(), PathBuf::from(path)))
        }
        _ => Err("a name, =, and the path of a program, e.g. ompss=./ompss".to_owned()),
    }
}

/// A question to our own tasks.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum TaskbenchRun {
    /// Seconds of each run of a graph, and what the last step's values come to.
    Graph { pattern: Pattern, width: u32, steps: u32, turns: u64, workers: usize, runs: usize },
    /// Seconds of each run of empty tasks, and the share that other workers ran.
    Empty {
        /// nodep, 3dep, overlap, or nested.
        #[arg(value_parser = ["nodep", "3dep", "overlap", "nested"])]
        ranges: String,
        tasks: u64,
        workers: usize,
        runs: usize,
    },
}
