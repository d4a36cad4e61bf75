//! What `libisochrone_mpi.so` costs a program that gains nothing by it, held against goals: communicators that come and
//! go, their memory, and jobs of more ranks than cores.
//!
//! One program of C (`costs.c` of the library's tests) makes each call by its usual name and by its profiling name,
//! which passes the library by, in turns in one process, so that whatever else runs meets both. Plain is compared with
//! itself beside it. A goal is met or missed where the whole interval says so, else it is not known.

mod figures;
mod job;
mod options;

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::ci::say;
use figures::{Goal, Kind, Round, Table};
use job::{Job, Told};
use options::Options;

/// Allreduces on a communicator that is left to the MPI.
const CALLS: u32 = 9;
/// Calls on a communicator of a job of more ranks than cores.
const CROWD_CALLS: u32 = 20;
/// Communicators that there are at once, where their memory is looked at.
const FEW: u32 = 8;
const MANY: u32 = 40;

/// Measures what `words` say.
///
/// Errors: a library or a compiler that is not there, a job that fails. What is missed is said, and is none.
pub(crate) fn run(root: &Path, words: impl Iterator<Item = String>) -> Result<()> {
    let options = Options::read(root, words)?;
    let library = options.library.canonicalize().with_context(|| {
        format!("{}: cargo build --release -p isochrone-mpi", options.library.display())
    })?;
    let built = root.canonicalize()?.join("target/mpi-costs");
    std::fs::create_dir_all(&built).with_context(|| built.display().to_string())?;
    let mut table = Table::default();
    for mpi in &options.mpis {
        let Some(program) = build(root, &built, mpi)? else { continue };
        let job = Job { mpi, program: &program, library: &library };
        measure(&options, &job, &mut table)?;
        table.write(options.json.as_deref())?;
    }
    ensure!(!table.goals.is_empty(), "no MPI of {:?} is installed", options.mpis);
    table.say();
    Ok(())
}

/// The program, where this MPI is installed.
fn build(root: &Path, folder: &Path, mpi: &str) -> Result<Option<std::path::PathBuf>> {
    let (compiler, program) = (format!("mpicc.{mpi}"), folder.join(mpi));
    let source = root.join("crates/arrange/mpi/tests/programs/costs.c");
    let Ok(built) = Command::new(&compiler).args(["-O2", "-o"]).arg(&program).arg(source).output()
    else {
        say(&format!("skipped: {compiler} is not installed"));
        return Ok(None);
    };
    ensure!(built.status.success(), "{compiler}: {}", String::from_utf8_lossy(&built.stderr));
    Ok(Some(program))
}

/// All goals under one MPI.
fn measure(options: &Options, job: &Job<'_>, table: &mut Table) -> Result<()> {
    let seconds = options.seconds.to_string();
    for run in 1..=options.runs {
        let words = ["rounds", &seconds, &CALLS.to_string()];
        let left = job.run(2, &words, Told::Nothing)?;
        table.add(job.mpi, run, Goal::left_alone(&Round::all(&left.text)));
        let taken = job.run(2, &["rounds", &seconds, "1"], Told::AtOnce)?;
        table.add(job.mpi, run, Goal::taken_over(&Round::all(&taken.text)));
    }
    for ranks in options.memory.iter().copied() {
        let shared = |count: u32| -> Result<u64> {
            let words = ["memory", &count.to_string()];
            Ok(job.run(ranks, &words, Told::AtOnce)?.shared_bytes)
        };
        table.add(job.mpi, 1, Goal::memory(ranks, shared(FEW)?, shared(MANY)?, MANY - FEW));
    }
    let words = ["churn", &options.churn.to_string()];
    let (with, without) = (job.run(2, &words, Told::AtOnce)?, job.run(2, &words, Told::Off)?);
    let communicators = options.churn - options.churn / 10;
    table.add(job.mpi, 1, Goal::growth(&with.kilobytes(), &without.kilobytes(), communicators));
    for &ranks in &options.ranks {
        for run in 1..=options.runs {
            let words = ["kinds", &seconds, &CROWD_CALLS.to_string()];
            let kinds = Kind::all(&job.run(ranks, &words, Told::Nothing)?.text);
            table.add(job.mpi, run, Goal::crowd(ranks, &kinds));
        }
    }
    Ok(())
}
