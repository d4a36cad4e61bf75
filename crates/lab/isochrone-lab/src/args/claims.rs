//! What `isochrone-lab claims` takes.

use std::path::PathBuf;

use clap::{ArgGroup, Args};

/// Examples below `isochrone-lab claims --help`.
pub(super) const AFTER_HELP: &str = "\
Examples:
  isochrone-lab claims --check
  isochrone-lab claims --measure --out target/claims
  isochrone-lab claims --measure --only chase

It is run in the folder of the sources. docs/results/claims.toml lists each figure of README.md with the file that it \
is of. --check fails where one differs, or stands in no list. --measure runs the benchmarks of this machine's figures \
again; figures of other machines keep their files and dates. Recorded files are replaced on a quiet machine alone: \
with a load above 1 it wants --out. README is never changed: a figure that differs is named, with what there is to do.
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 interrupted, 4 a figure differs.";

/// What `claims` takes.
#[derive(Clone, Debug, Args)]
#[command(group = ArgGroup::new("what").args(["check", "measure"]).required(true))]
pub(crate) struct ClaimsArgs {
    /// Hold every figure of README against its recorded file.
    #[arg(long)]
    pub(crate) check: bool,
    /// Take the figures of this machine again.
    #[arg(long)]
    pub(crate) measure: bool,
    /// With --measure: where files are written [default: docs/results, whose list gets the day of today].
    #[arg(long, value_name = "FOLDER", requires = "measure")]
    pub(crate) out: Option<PathBuf>,
    /// With --measure: only files whose names hold one of these words, e.g. chase,tier.
    #[arg(long, value_name = "WORDS", value_delimiter = ',', requires = "measure")]
    pub(crate) only: Vec<String>,
    /// The folder of the sources.
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    pub(crate) tree: PathBuf,
}
