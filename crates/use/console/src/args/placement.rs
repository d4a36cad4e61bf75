//! How small objects are placed, and what is known of this machine.

use std::path::PathBuf;

use clap::Args;

use super::parse_bytes;
use super::share::{Share, parse_growth, parse_part};

/// What shapes the placement of small objects, in `run` and in its benchmarks alike.
#[derive(Clone, Debug, Args)]
pub struct PlacementArgs {
    /// How near is near: the nearest share of all lines (1/2, 1/4, 1/8, ...).
    #[arg(long, value_name = "SHARE", value_parser = parse_part, default_value = "1/4")]
    pub near: Share,
    /// Memory held beyond what is in use before allocation spills to the next nearest lines
    /// [default: 25%; pools of benchmarks: what it takes to hold the nearest share alone].
    #[arg(long, value_name = "SHARE", value_parser = parse_growth)]
    pub waste: Option<Share>,
    /// Memory held for free on top of that [default: 1M].
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub slack: Option<u64>,
    /// The part of the last-level cache that this machine has for itself [default: what the atlas
    /// says].
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub llc: Option<u64>,
    /// The most memory to place; what comes after goes to glibc [default: a quarter of the
    /// machine's].
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub arena_limit: Option<u64>,
}

/// What is known of this machine, and how it is kept.
#[derive(Clone, Debug, Args)]
pub struct HostArgs {
    /// This machine's atlas [default: ISOCHRONE_ATLAS, else isochrone.atlas, else the one in the cache
    /// folder, else a quick one is measured first].
    #[arg(long, value_name = "FILE")]
    pub atlas: Option<PathBuf>,
    /// Keep the CPUs busy at idle priority, so that a host moves them less.
    #[arg(long)]
    pub awake: bool,
}

impl Default for PlacementArgs {
    /// As where no option is given.
    fn default() -> Self {
        Self { near: Share(0.25), waste: None, slack: None, llc: None, arena_limit: None }
    }
}

impl PlacementArgs {
    /// What programs may waste.
    pub fn waste_of_programs(&self) -> Share {
        self.waste.unwrap_or(Share(0.25))
    }

    /// What pools of benchmarks may waste: enough to take nothing but the nearest share, as the
    /// paper's allocator did, and a tenth for what is free at the moment.
    pub fn waste_of_pools(&self) -> Share {
        self.waste.unwrap_or(Share(1.1 / self.near.0 - 1.0))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        placement: PlacementArgs,
    }

    #[test]
    fn the_default_is_what_a_line_without_options_says() {
        let said = Line::try_parse_from(["x"]).expect("nothing is required").placement;
        assert_eq!(format!("{said:?}"), format!("{:?}", PlacementArgs::default()));
    }
}
