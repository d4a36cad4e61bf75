//! What `isochrone verify` takes.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use isochrone_console::args::JsonArg;

/// Examples below `isochrone verify --help`.
pub(super) const AFTER_HELP: &str = "\
Examples:
  isochrone map --quick && isochrone verify model --json=model.json
  isochrone verify model --scale 2    (must fail: a model that is wrong by a factor of two)
  isochrone verify published

Exit code 4 where the model does not hold.";

/// What is verified.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum VerifyCommand {
    /// Live calls of two ranks here against the predicted band and the simulation.
    #[command(after_help = "Examples:\n  \
        isochrone verify model --json=model.json\n  \
        isochrone verify model --scale 2      must fail: wrong by a factor of two\n\n\
        Exit code 4 where the model does not hold.")]
    Model(ModelArgs),
    /// Figures that others have published: fitted on some, predicted for the rest.
    #[command(after_help = "Examples:\n  isochrone verify published --json=published.json\n\n\
        Exit code 4 where the model does not hold.")]
    Published(JsonArg),
}

/// What `verify model` takes.
#[derive(Clone, Debug, Args)]
pub(crate) struct ModelArgs {
    /// This machine's atlas, for what lines cost [default: ISOCHRONE_ATLAS, else isochrone.atlas, else the one
    /// in the cache folder].
    #[arg(long, value_name = "FILE")]
    pub(crate) atlas: Option<PathBuf>,
    /// Calls of each collective that are timed.
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub(crate) windows: u64,
    /// Multiply all costs: with 0.5 or 2 the model must be found wrong.
    #[arg(long, default_value_t = 1.0, value_parser = positive)]
    pub(crate) scale: f64,
    #[command(flatten)]
    pub(crate) json: JsonArg,
}

fn positive(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| format!("`{text}` is no number"))?;
    if number > 0.0 && number.is_finite() {
        Ok(number)
    } else {
        Err(format!("`{text}` is not above 0"))
    }
}
