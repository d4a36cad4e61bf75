//! What `isochrone cla` takes.

use std::path::PathBuf;

use clap::Args;
use isochrone_cla::check::STATES_MAX;

use super::shown::Shown;
use super::term::{TermAsked, parse_term};
use super::tree::{TreeAsked, parse_tree};

/// Examples below `isochrone cla --help`.
pub(super) const AFTER_HELP: &str = "\
Examples:
  isochrone cla examples/cla/broadcast.cla
  isochrone cla examples/cla/figure1.cla --machine xeon-e5-2660-2s --threads 4
  isochrone cla examples/cla/figure1.cla --machine xeon-e5-2660-2s \\
    --tree -,0,0,1
  isochrone cla examples/cla/barrier.cla --machine xeon-e5-2660-2s \\
    --threads 8 --set rounds=3 --calls 3
  isochrone cla examples/cla/figure1.cla --calls 2   (refused: flags are reused)

The program is predicted (T_min, T_max), simulated, checked in every order, and run by threads of this machine, \
which need not be the predicted one.

The language is described in docs/method/cla-language.md.
Exit code 4 where the checker finds a fault, or a run leaves other bytes than it should.";

/// What `cla` takes.
#[derive(Clone, Debug, Args)]
pub(crate) struct ClaArgs {
    /// The program.
    pub(crate) file: PathBuf,
    /// A bundled machine's name or a TOML file [default: this machine, from its atlas].
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) machine: Option<String>,
    /// This machine's atlas, where no machine is named [default: ISOCHRONE_ATLAS, else isochrone.atlas, else
    /// the one in the cache folder].
    #[arg(long, value_name = "FILE")]
    pub(crate) atlas: Option<PathBuf>,
    /// How many ranks [default: as many as --tree names, else 2].
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: Option<u16>,
    /// The root [default: that of --tree, else 0].
    #[arg(long)]
    pub(crate) root: Option<u16>,
    /// The tree: flat, binomial, a degree such as 2, or the parents of all ranks such as -,0,0,1.
    #[arg(long, default_value = "2", value_parser = parse_tree, allow_hyphen_values = true)]
    pub(crate) tree: TreeAsked,
    /// Switch a cost on that the paper's model lacks, as NAME=NS, or as NAME for what the atlas has measured;
    /// `measured` for all that it has. May be repeated. Names: those of `isochrone predict --term`.
    #[arg(long = "term", value_name = "NAME[=NS]", value_parser = parse_term)]
    pub(crate) terms: Vec<TermAsked>,
    /// Say when each rank is done, with the mean and the last.
    #[arg(long)]
    pub(crate) each: bool,
    /// A number that the program takes, e.g. --set rounds=3.
    #[arg(long = "set", value_name = "NAME=NUMBER", value_parser = setting)]
    pub(crate) values: Vec<(String, i64)>,
    /// Calls that the checker takes in every order [default: 2 where the program counts its calls, else 1].
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=CALLS_MOST))]
    pub(crate) calls: Option<u64>,
    /// States that the checker visits at most.
    #[arg(long, default_value_t = STATES_MAX, value_parser = parse_states)]
    pub(crate) states: usize,
    /// Calls that are run and timed on this machine; 0: none.
    #[arg(long, default_value_t = 2000, value_parser = clap::value_parser!(u32).range(..=10_000_000))]
    pub(crate) live: u32,
    /// Seconds after which a run that has not ended is stopped.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub(crate) limit: u32,
    #[command(flatten)]
    pub(crate) shown: Shown,
}

/// Most calls that the checker is given: it takes them in every order.
const CALLS_MOST: u64 = 1000;

fn parse_states(text: &str) -> Result<usize, String> {
    let states =
        text.trim().parse::<usize>().ok().filter(|states| (1..=MOST_STATES).contains(states));
    states.ok_or_else(|| format!("`{text}` is no number of states from 1 to {MOST_STATES}"))
}

/// States that fit into the memory of a large machine.
const MOST_STATES: usize = 1 << 40;

fn setting(text: &str) -> Result<(String, i64), String> {
    let wrong = || format!("`{text}` is not NAME=NUMBER");
    let (name, number) = text.split_once('=').ok_or_else(wrong)?;
    Ok((name.trim().to_owned(), number.trim().parse().map_err(|_| wrong())?))
}
