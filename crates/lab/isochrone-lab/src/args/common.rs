//! Options that all benchmarks have.

use std::time::Duration;

use clap::Args;
use isochrone_console::args::{CoreList, HostArgs, JsonArg, parse_core_list, parse_time};

use super::budget::time;
/// What all benchmarks take.
#[derive(Clone, Debug, Args)]
pub(crate) struct CommonArgs {
    #[command(flatten)]
    pub(crate) json: JsonArg,
    /// Time for all of it, e.g. 60s, 5m: every cell has as many blocks as fit, and what did not is named [default:
    /// 60s; none where --blocks says how many].
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(crate) budget: Option<Duration>,
    /// Blocks: in each, every arm runs twice, in random order and back again [default: as many as fit, 15 at most; 5
    /// where a run takes long].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=10_000))]
    pub(crate) blocks: Option<u32>,
    /// Cores to run on, e.g. 0,2-5 [default: one for each benchmark that needs one, two for
    /// astar].
    #[arg(long, value_name = "LIST", value_parser = parse_core_list)]
    pub(crate) cores: Option<CoreList>,
    /// Seed of every random order [default: from the clock; it is recorded].
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) host: HostArgs,
}

impl CommonArgs {
    /// The time for it; `None` where a number of blocks was asked for, however long they take.
    pub(crate) fn time(&self) -> Option<Duration> {
        time(self.budget, self.blocks.is_some())
    }
}
