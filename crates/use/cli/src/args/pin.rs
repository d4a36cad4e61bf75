//! What `isochrone pin` takes.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use isochrone_malloc::{CORES_MAX, Pin};

/// Examples below `isochrone pin --help`.
pub(super) const AFTER_HELP: &str = "\
Examples:
  isochrone pin                               all forms, for all cores that this process may use
  isochrone pin 8 --order spread              eight cores, each as far from those before as can be
  isochrone pin 4 --form omp                  four threads of an OpenMP program
  isochrone pin 4 --form openmpi              writes isochrone.rankfile where it is pasted
  isochrone pin 16 --memory                   the regions that suit an array of these cores
  eval \"$(isochrone pin 2 --form taskset) ./solver\"

Each line is the beginning of a command: the program comes behind it. taskset and numactl take a set of cores, in \
which the system moves threads; the others hold the order: thread or rank 0 has the first core. Slurm's form asks for \
as many cores as the machine has, so that those listed are among them; in a job of fewer it takes those of the job.
--memory prefers a region and takes another where it is full (--preferred, --interleave); lines that begin with # say \
from how many lines under way on a region moves most.";

/// In which order cores are filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OrderName {
    /// Each next core as near to those before as can be.
    Compact,
    /// Each next core as far from those before as can be.
    Spread,
}

/// Who is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormName {
    /// The set of cores, by taskset.
    Taskset,
    /// The same by numactl.
    Numactl,
    /// Threads of an OpenMP program, by its environment.
    Omp,
    /// Tasks of a Slurm job.
    Slurm,
    /// Ranks under Open MPI, by a rankfile.
    Openmpi,
    /// Ranks under MPICH.
    Mpich,
    /// All of these, a line each.
    All,
}

impl From<OrderName> for Pin {
    fn from(name: OrderName) -> Self {
        match name {
            OrderName::Compact => Self::Compact,
            OrderName::Spread => Self::Spread,
        }
    }
}

/// What `pin` takes.
#[derive(Clone, Debug, Args)]
pub(crate) struct PinArgs {
    /// How many cores [default: all that this process may use].
    #[arg(value_name = "N", value_parser = clap::value_parser!(u16).range(1..=MOST))]
    pub(crate) count: Option<u16>,
    /// In which order cores are filled, as with run --pin.
    #[arg(long, value_enum, default_value_t = OrderName::Compact)]
    pub(crate) order: OrderName,
    /// For whom.
    #[arg(long, value_enum, default_value_t = FormName::All)]
    pub(crate) form: FormName,
    /// Instead: numactl with the region that suits an array of these cores, for ever more lines under way.
    #[arg(long, conflicts_with = "form")]
    pub(crate) memory: bool,
    /// This machine's atlas [default: ISOCHRONE_ATLAS, else isochrone.atlas, else the one in the cache folder, else
    /// cores are taken by their numbers].
    #[arg(long, value_name = "FILE")]
    pub(crate) atlas: Option<PathBuf>,
}

/// Most cores that an order has.
#[allow(clippy::cast_possible_wrap, reason = "it is some thousand")]
const MOST: i64 = CORES_MAX as i64;
