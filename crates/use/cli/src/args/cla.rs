//! What `isochrone cla` takes.

use std::path::PathBuf;

use clap::Args;

use super::shown::Shown;

/// Examples below `isochrone cla --help`.
pub(super) const AFTER_HELP: &str = "\
Examples:
  isochrone cla examples/cla/broadcast.cla
  isochrone cla examples/cla/figure1.cla --machine xeon-e5-2660-2s --threads 4
  isochrone cla examples/cla/barrier.cla --machine xeon-e5-2660-2s --threads 8 --set rounds=3 --calls 3
  isochrone cla examples/cla/figure1.cla --calls 2   (refused: flags are reused)

The program is predicted (T_min, T_max), simulated, checked in every order, and run by threads of this machine,
which need not be the predicted one.

The language is described in docs/method/cla-language.md. Ends with 1 when the checker finds a fault.";

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
    /// How many ranks.
    #[arg(long, default_value_t = 2)]
    pub(crate) threads: u16,
    /// The root.
    #[arg(long, default_value_t = 0)]
    pub(crate) root: u16,
    /// The tree: flat, binomial, a degree such as 2, or the parents of all ranks such as -,0,0,1.
    #[arg(long, default_value = "2")]
    pub(crate) tree: String,
    /// A number that the program takes, e.g. --set rounds=3.
    #[arg(long = "set", value_name = "NAME=NUMBER", value_parser = setting)]
    pub(crate) values: Vec<(String, i64)>,
    /// Calls that the checker takes in every order [default: 2 where the program counts its calls, else 1].
    #[arg(long)]
    pub(crate) calls: Option<u64>,
    /// States that the checker visits at most.
    #[arg(long, default_value_t = isochrone_cla::check::STATES_MAX)]
    pub(crate) states: usize,
    /// Calls that are run and timed on this machine; 0: none.
    #[arg(long, default_value_t = 2000)]
    pub(crate) live: usize,
    /// Seconds after which a run that has not ended is stopped.
    #[arg(long, default_value_t = 30)]
    pub(crate) limit: u64,
    #[command(flatten)]
    pub(crate) shown: Shown,
}

fn setting(text: &str) -> Result<(String, i64), String> {
    let wrong = || format!("`{text}` is not NAME=NUMBER");
    let (name, number) = text.split_once('=').ok_or_else(wrong)?;
    Ok((name.trim().to_owned(), number.trim().parse().map_err(|_| wrong())?))
}
