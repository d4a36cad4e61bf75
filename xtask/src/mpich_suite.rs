//! MPICH's own test suite with `libisochrone_mpi.so` and without it, under both MPIs: the same verdict, and the same
//! words. Its sources are not part of this repository (`apt-get source mpich` has them in `test/mpi`).
//!
//! Each program of the folders that concern collectives is built once for each MPI and run with and without the library
//! at several numbers of ranks. What it prints is compared line by line in any order, without what differs by itself.
//! Where both differ it is run again: one that differs from itself says nothing. A run that is too late is ended in
//! either state, and two late ones are the same. Programs that the suite
//! itself expects to fail are said and counted apart.

mod job;
mod list;
mod options;
mod table;

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::ci::say;
use job::{Job, Ran};
use list::{Case, cases};
use options::Options;
use table::{Difference, Place, Row, Table};

/// Runs of a pair that differs, after the first, before it is said that it does.
const AGAIN: usize = 2;

/// Runs what `words` say.
///
/// Errors: sources or a library that are not there, a suite that is not made ready, programs that differ.
pub(crate) fn run(root: &Path, words: impl Iterator<Item = String>) -> Result<()> {
    let options = Options::read(root, words)?;
    let library = options.library.canonicalize().with_context(|| {
        format!("{}: cargo build --release -p isochrone-mpi", options.library.display())
    })?;
    let mut table = Table::default();
    for mpi in &options.mpis {
        if Command::new(format!("mpicc.{mpi}")).arg("--version").output().is_err() {
            say(&format!("skipped: mpicc.{mpi} is not installed"));
            continue;
        }
        let built = root.join("target/mpich-suite").join(mpi);
        configured(&options.sources, &built, mpi)?;
        let built = built.canonicalize()?;
        for part in &options.parts {
            compare(&options, &library, &built.join(part), mpi, part, &mut table)?;
        }
    }
    table.say();
    let differ = table.differences.len();
    ensure!(table.runs() > 0, "no program was run: {}", options.words());
    ensure!(differ == 0, "{differ} programs do something else with the library");
    Ok(())
}

/// What Open MPI 4 has in its library but hides in its header, unless it was built otherwise: the suite's own tools use
/// it. Other MPIs know none of these names.
const MPI_1: &str = "\
#define OMPI_OMIT_MPI1_COMPAT_DECLS 0
#define OMPI_REMOVED_USE_STATIC_ASSERT 0
#define __mpi_interface_removed__(old, new)
";

/// Makes the suite ready to be built with an MPI, once.
fn configured(sources: &Path, built: &Path, mpi: &str) -> Result<()> {
    std::fs::create_dir_all(built).with_context(|| built.display().to_string())?;
    if !built.join("Makefile").exists() {
        say(&format!("the suite is made ready for {mpi}: {}", built.display()));
        let compiler = format!("mpicc.{mpi}");
        let log = std::fs::File::create(built.join("configure.log"))?;
        let header = built.canonicalize()?.join("mpi1.h");
        std::fs::write(&header, MPI_1)?;
        let status = Command::new(sources.join("configure").canonicalize()?)
            .args(["--disable-fortran", "--disable-cxx", "--disable-spawn"])
            .args([format!("CC={compiler}"), format!("MPICC={compiler}")])
            .arg(format!("CPPFLAGS=-include {}", header.display()))
            .current_dir(built)
            .stderr(log.try_clone()?)
            .stdout(log)
            .status()?;
        ensure!(status.success(), "configure failed: {}/configure.log", built.display());
    }
    for part in ["dtpools", "util"] {
        make(&built.join(part), &[], &built.join("make.log"))?;
    }
    Ok(())
}

/// Builds targets as far as they can be built: who needs more of MPI than this one has is counted as missing.
fn make(folder: &Path, targets: &[&str], log: &Path) -> Result<()> {
    if folder.is_dir() {
        let log = std::fs::File::options().create(true).append(true).open(log)?;
        let mut make = Command::new("make");
        make.args(["-k", "-s"]).args(targets).current_dir(folder);
        make.stdout(log.try_clone()?).stderr(log).status().context("make is not installed")?;
    }
    Ok(())
}

/// Runs all programs of a folder both ways.
fn compare(
    options: &Options,
    library: &Path,
    folder: &Path,
    mpi: &str,
    part: &str,
    table: &mut Table,
) -> Result<()> {
    let cases = cases(&options.sources.join(part), folder)?;
    let cases: Vec<&Case> = cases.iter().filter(|case| options.wants(&case.name)).collect();
    let mut names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    names.dedup();
    if !names.is_empty() {
        make(folder, &names, &folder.join("make.log"))?;
    }
    for &ranks in &options.ranks {
        let place = Place { mpi: mpi.to_owned(), part: part.to_owned(), ranks };
        let mut row = Row::default();
        for case in &cases {
            if !folder.join(&case.name).exists() {
                row.missing += 1;
                continue;
            }
            let job = Job { mpi, folder, case, ranks, seconds: options.seconds };
            match verdict(&job, library)? {
                Verdict::Same { late, in_lines } => {
                    row.same += 1;
                    row.late += usize::from(late);
                    row.in_lines += usize::from(in_lines);
                }
                Verdict::Unsteady => row.unsteady += 1,
                Verdict::Differs(how) if case.may_fail => {
                    row.excused += 1;
                    say(&format!("{place} {case}, which may fail: {how}"));
                }
                Verdict::Differs(how) => {
                    row.differs += 1;
                    let found = Difference { place: place.clone(), program: case.to_string(), how };
                    say(&found.to_string());
                    table.differences.push(found);
                }
            }
        }
        say(&format!("{place} {row}"));
        table.rows.push((place, row));
        // What was found is not lost with what comes after it.
        table.write(options.json.as_deref())?;
    }
    Ok(())
}

/// What runs with and without the library say of each other.
enum Verdict {
    Same {
        late: bool,
        /// Whether any call was done in lines.
        in_lines: bool,
    },
    /// Without the library it is not the same each time.
    Unsteady,
    Differs(String),
}

fn verdict(job: &Job<'_>, library: &Path) -> Result<Verdict> {
    let mut without: Vec<Ran> = Vec::new();
    let mut how = String::new();
    for _ in 0..=AGAIN {
        without.push(job.run(None)?);
        let with = job.run(Some(library))?;
        let Some(found) = without.iter().map(|plain| plain.differs(&with)).min().flatten() else {
            return Ok(Verdict::Same { late: with.is_late(), in_lines: with.in_lines > 0 });
        };
        how = found;
    }
    let steady = without.windows(2).all(|two| two[0].differs(&two[1]).is_none());
    Ok(if steady { Verdict::Differs(how) } else { Verdict::Unsteady })
}
