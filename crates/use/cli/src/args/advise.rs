//! What `isochrone advise` takes.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use isochrone_console::args::{HtmlArg, JsonArg, parse_time};

/// Examples and exit codes below `isochrone advise --help`.
pub(super) const AFTER_HELP: &str = "\
Examples:
  isochrone advise                                 what this machine offers, a line for each lever
  isochrone advise --long                          the same with the reason of each in whole sentences
  isochrone advise --json=advice.json              the same for programs
  isochrone advise -- ./solver in.dat              one run: what it shows of each lever
  isochrone advise --json=solver.json --working-set -- ./solver
  isochrone advise --allocations -- ./solver       the same, with sizes and lifetimes of its objects
  isochrone advise -- mpirun -n 2 ./solver         the same, and calls of MPI by collective and size
  isochrone advise --try -- ./solver in.dat        which lever makes this program faster, measured
  isochrone advise --try --budget 20m --html -- ./solver
  isochrone advise --try --input in.txt -- sort    each run reads this file

With a program and without --try it is run once, as if nobody stood before it, and watched from outside by /proc:
processor time, faults, where its pages lie, where its threads run. What is found is said on standard error. Ranks of \
an MPI job count their collectives, which stay the MPI's. A bound \
holds whatever the program does in the time that nobody looked into, so it is high, and predicted: never a promise.

--try runs the program some hundred times: plainly, plainly again as a control, and under each lever that applies, in \
random order. It must be a program that may be repeated. Its output is compared with that of the plain program and \
thrown away; a lever that changes it, or under which the program fails, is left out. The best lever is run again \
beside the plain program, and what is printed is of these runs alone, corrected for the number of levers. No setting \
of the system is changed.

Exit code of --try: 4 a lever gains beyond the control, 0 none does, 1 the program failed or the time was too short to \
say, 2 wrong usage, 3 interrupted. With a program and without --try: the program's own, 128 + N where signal N ended \
it, 126 and 127 where it cannot be started or is not found; 1 and 2 are those of advise itself, where nothing was run \
or what was found cannot be written.
Of advise alone: 0.";

/// What `advise` takes.
#[derive(Clone, Debug, Args)]
pub(crate) struct AdviseArgs {
    /// Measure the levers with the program CMD, instead of saying what the atlas promises.
    #[arg(long = "try", requires = "command")]
    pub(crate) is_tried: bool,
    /// With --try: time for all runs, e.g. 90s, 20m.
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "5m", requires = "is_tried")]
    pub(crate) budget: Duration,
    /// With --try: each run reads this file; without it there is nothing to read.
    #[arg(long, value_name = "FILE", requires = "is_tried")]
    pub(crate) input: Option<PathBuf>,
    /// With --try: only these levers, e.g. mimalloc,huge-pages.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', requires = "is_tried")]
    pub(crate) only: Vec<String>,
    /// Without a program: say why of each lever in whole sentences, in as many lines as that takes.
    #[arg(long, conflicts_with = "command")]
    pub(crate) long: bool,
    /// Put the program's arguments into the record and the report, which have its name alone else.
    #[arg(long, requires = "command")]
    pub(crate) with_arguments: bool,
    /// With --try: seed of the order of runs [default: from the clock; it is recorded].
    #[arg(long, requires = "is_tried")]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) html: HtmlArg,
    #[command(flatten)]
    pub(crate) json: JsonArg,
    /// This machine's atlas [default: ISOCHRONE_ATLAS, else isochrone.atlas, else the one in the cache folder].
    #[arg(long, value_name = "FILE")]
    pub(crate) atlas: Option<PathBuf>,
    /// With --try: the library of near lines [default: libisochrone_malloc.so beside this program or in ../lib].
    /// Without: the one by which ranks of an MPI job count their calls [default: libisochrone_mpi.so there], or the
    /// one of --allocations.
    #[arg(long, value_name = "FILE", requires = "command")]
    pub(crate) preload: Option<PathBuf>,
    /// Without --try: see which pages are touched, by clearing their referenced bits now and then, which makes the
    /// program a little slower.
    #[arg(long, requires = "command", conflicts_with = "is_tried")]
    pub(crate) working_set: bool,
    /// Without --try: see of which sizes its objects are and how long they live, by a library in its processes that
    /// looks at some of its calls of malloc and hands all of them on.
    #[arg(long, requires = "command", conflicts_with_all = ["is_tried", "from_outside"])]
    pub(crate) allocations: bool,
    /// Without --try: put nothing into the program: calls of an MPI job are not counted.
    #[arg(long, requires = "command", conflicts_with_all = ["is_tried", "preload"])]
    pub(crate) from_outside: bool,
    /// The program and its arguments: run once and watched, or tried with --try.
    #[arg(trailing_var_arg = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}
