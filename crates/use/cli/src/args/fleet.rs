//! What `isochrone fleet` takes.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use isochrone_console::args::{HtmlArg, JsonArg};
use isochrone_fleet::{LEAST, LEVEL};

/// Examples below `isochrone fleet --help`.
pub(super) const AFTER_HELP: &str = "\
Examples:
  srun --ntasks-per-node=1 isochrone map --quick --fleet atlases     one map a node, all at once
  isochrone fleet show atlases
  isochrone fleet outliers atlases --check --html=fleet.html

A fleet is a folder that all nodes see, with an atlas of each node in it.";

/// What is done with a fleet.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum FleetCommand {
    /// Show the groups of equal nodes, and which node deviates.
    #[command(after_help = "Examples:\n  isochrone fleet show atlases\n  \
        isochrone fleet show atlases --html=fleet.html --json=fleet.json")]
    Show(FleetArgs),
    /// Compare nodes with one of them, cell by cell, as `isochrone diff` does.
    #[command(after_help = "Examples:\n  isochrone fleet diff atlases --node n017\n  \
        isochrone fleet diff atlases --against n001 --json=diff.json\n\n\
        Exit code 0 whether or not they differ; --check makes it 4 where they do.")]
    Diff(FleetDiffArgs),
    /// Find the nodes that deviate from their equals beyond what equal nodes scatter, corrected for the number of
    /// comparisons.
    #[command(after_help = "Examples:\n  isochrone fleet outliers atlases\n  \
        isochrone fleet outliers atlases --check               4 where a node deviates\n  \
        isochrone fleet outliers atlases --node n017 --check   of one node, as before a job\n  \
        isochrone fleet outliers atlases --least 5 --json=outliers.json\n\n\
        Exit code 0 whether or not a node deviates; --check makes it 4 where one does.")]
    Outliers(OutliersArgs),
}

/// What all of them take.
#[derive(Clone, Debug, Args)]
pub(crate) struct FleetArgs {
    /// The folder with an atlas of each node.
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    #[command(flatten)]
    pub(crate) html: HtmlArg,
    #[command(flatten)]
    pub(crate) json: JsonArg,
}

/// What `fleet outliers` takes.
#[derive(Clone, Debug, Args)]
pub(crate) struct OutliersArgs {
    #[command(flatten)]
    pub(crate) fleet: FleetArgs,
    /// Only this node; the others are what it is compared with.
    #[arg(long, value_name = "NAME")]
    pub(crate) node: Option<String>,
    /// Exit with 4 if a node deviates.
    #[arg(long)]
    pub(crate) check: bool,
    /// Smaller deviations are no findings, percent.
    #[arg(long, value_name = "PERCENT", default_value_t = 100.0 * LEAST, value_parser = parse_percent)]
    pub(crate) least: f64,
    /// The chance of any false finding in a whole fleet, if scatter is normal.
    #[arg(long, value_name = "P", default_value_t = LEVEL, value_parser = parse_chance)]
    pub(crate) level: f64,
}

/// What `fleet diff` takes.
#[derive(Clone, Debug, Args)]
pub(crate) struct FleetDiffArgs {
    /// The folder with an atlas of each node.
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// The node that the others are held against [default: the first of the largest group].
    #[arg(long, value_name = "NAME")]
    pub(crate) against: Option<String>,
    /// Only this node [default: all].
    #[arg(long, value_name = "NAME")]
    pub(crate) node: Option<String>,
    #[command(flatten)]
    pub(crate) json: JsonArg,
    /// Exit with 4 if one differs.
    #[arg(long)]
    pub(crate) check: bool,
}

/// A share from 0 to 1000 %.
fn parse_percent(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').trim().parse::<f64>().unwrap_or(f64::NAN);
    let is_sound = (0.0..=1000.0).contains(&number);
    is_sound.then_some(number).ok_or_else(|| format!("`{text}` is no percentage: try 5"))
}

/// A chance above 0 and below 1.
fn parse_chance(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().unwrap_or(f64::NAN);
    let is_sound = number > 0.0 && number < 1.0;
    is_sound.then_some(number).ok_or_else(|| format!("`{text}` is no chance: try 0.05"))
}
