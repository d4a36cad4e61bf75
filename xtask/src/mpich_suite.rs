//! MPICH's own test suite with `libisochrone_mpi.so` and without it, under both MPIs: the same verdict, and the same
//! words. Its sources are not part of this repository (`apt-get source mpich` has them in `test/mpi`).
//!
//! Each program of the folders that concern collectives is built once for each MPI and run with and without the library
//! at several numbers of ranks. What it prints is compared line by line in any order, without what differs by itself.
//! Where both differ it is run again: one that differs from itself says nothing.

mod job;
mod list;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::ci::say;
use job::{Job, Ran};
use list::{Case, cases};

/// The folders of the suite.
const PARTS: [&str; 5] = ["coll", "comm", "datatype", "errors/coll", "threads/coll"];
/// The MPIs, as Debian names their commands.
const MPIS: [&str; 2] = ["openmpi", "mpich"];
/// Numbers of ranks.
const RANKS: [u32; 5] = [2, 3, 4, 5, 8];
/// Runs of a pair that differs, before it is said that it does.
const AGAIN: usize = 2;

/// What is run.
#[derive(Debug, PartialEq, Eq)]
struct Wanted {
    /// The suite's `test/mpi`.
    sources: PathBuf,
    library: PathBuf,
    mpis: Vec<String>,
    parts: Vec<String>,
    ranks: Vec<u32>,
    /// These programs alone; empty: all.
    only: Vec<String>,
    /// Limit of a run, s.
    seconds: u32,
}

impl Wanted {
    fn of(root: &Path, mut words: impl Iterator<Item = String>) -> Result<Self> {
        let owned = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        let mut wanted = Self {
            sources: PathBuf::new(),
            library: root.join("target/release/libisochrone_mpi.so"),
            mpis: owned(&MPIS),
            parts: owned(&PARTS),
            ranks: RANKS.to_vec(),
            only: Vec::new(),
            seconds: 60,
        };
        while let Some(word) = words.next() {
            let Some(option) = word.strip_prefix("--") else {
                wanted.sources = PathBuf::from(word);
                continue;
            };
            let value = words.next().with_context(|| format!("--{option} needs a value"))?;
            let list = || value.split(',').map(str::to_owned).collect::<Vec<_>>();
            let number = |text: &str| {
                text.parse::<u32>().with_context(|| format!("{text:?} is no number of --{option}"))
            };
            match option {
                "library" => wanted.library = PathBuf::from(&value),
                "mpi" => wanted.mpis = list(),
                "parts" => wanted.parts = list(),
                "only" => wanted.only = list(),
                "ranks" => {
                    wanted.ranks = list().iter().map(|n| number(n)).collect::<Result<_>>()?;
                }
                "seconds" => wanted.seconds = number(&value)?,
                _ => bail!(
                    "unknown option --{option}; there are library, mpi, parts, only, ranks, seconds"
                ),
            }
        }
        let below = wanted.sources.join("test/mpi");
        if below.is_dir() {
            wanted.sources = below;
        }
        Ok(wanted)
    }
}

/// Runs what `words` say. Errors: sources that are not there, or programs that differ.
pub(crate) fn run(root: &Path, words: impl Iterator<Item = String>) -> Result<()> {
    let wanted = Wanted::of(root, words)?;
    let configure = wanted.sources.join("configure");
    ensure!(
        configure.is_file(),
        "{} is not there: name the folder of MPICH's sources (apt-get source mpich)",
        configure.display()
    );
    let library = wanted.library.canonicalize().with_context(|| {
        format!("{}: cargo build --release -p isochrone-mpi", wanted.library.display())
    })?;
    let mut table = Table::default();
    for mpi in &wanted.mpis {
        if Command::new(format!("mpicc.{mpi}")).arg("--version").output().is_err() {
            say(&format!("skipped: mpicc.{mpi} is not installed"));
            continue;
        }
        let built = root.join("target/mpich-suite").join(mpi);
        configured(&wanted.sources, &built, mpi)?;
        for part in &wanted.parts {
            compare(&wanted, &library, &built.join(part), Place { mpi, part }, &mut table)?;
        }
    }
    table.say();
    ensure!(table.differs.is_empty(), "{} runs differ", table.differs.len());
    Ok(())
}

/// Of which MPI and folder programs are.
#[derive(Clone, Copy)]
struct Place<'a> {
    mpi: &'a str,
    part: &'a str,
}

/// Makes the suite ready to be built with an MPI, once.
fn configured(sources: &Path, built: &Path, mpi: &str) -> Result<()> {
    std::fs::create_dir_all(built).with_context(|| built.display().to_string())?;
    if !built.join("Makefile").exists() {
        say(&format!("the suite is made ready for {mpi}: {}", built.display()));
        let compiler = format!("mpicc.{mpi}");
        let status = Command::new(sources.join("configure").canonicalize()?)
            .args(["--disable-fortran", "--disable-cxx", "--disable-spawn"])
            .args([format!("CC={compiler}"), format!("MPICC={compiler}")])
            .current_dir(built)
            .stdout(std::fs::File::create(built.join("configure.log"))?)
            .status()?;
        ensure!(status.success(), "configure failed: {}/configure.log", built.display());
    }
    for part in ["dtpools", "util"] {
        make(&built.join(part), &[], &built.join("make.log"))?;
    }
    Ok(())
}

/// Builds targets as far as they can be built.
fn make(folder: &Path, targets: &[&str], log: &Path) -> Result<()> {
    if folder.is_dir() {
        let log = std::fs::File::options().create(true).append(true).open(log)?;
        let mut make = Command::new("make");
        make.args(["-k", "-s"]).args(targets).current_dir(folder);
        // What does not build is missed below.
        make.stdout(log.try_clone()?).stderr(log).status().context("make is not installed")?;
    }
    Ok(())
}

/// Runs all programs of a folder both ways.
fn compare(
    wanted: &Wanted,
    library: &Path,
    folder: &Path,
    place: Place<'_>,
    table: &mut Table,
) -> Result<()> {
    let cases = cases(&wanted.sources.join(place.part), folder)?;
    let cases: Vec<&Case> = cases
        .iter()
        .filter(|case| wanted.only.is_empty() || wanted.only.contains(&case.name))
        .collect();
    let mut names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    names.dedup();
    make(folder, &names, &folder.join("make.log"))?;
    for &ranks in &wanted.ranks {
        let row = table.rows.entry(format!("{:<8} {:<13} {ranks:>2}", place.mpi, place.part));
        let row = row.or_default();
        for case in &cases {
            if !folder.join(&case.name).exists() {
                row.missing += 1;
                continue;
            }
            let job = Job { mpi: place.mpi, folder, case, ranks, seconds: wanted.seconds };
            match verdict(&job, library)? {
                Verdict::Same(ran) => {
                    row.same += 1;
                    row.late += usize::from(ran.is_late());
                }
                Verdict::Unsteady => row.unsteady += 1,
                Verdict::Differs(how) => {
                    row.differs += 1;
                    let words = format!("{} {} {ranks}: {case}: {how}", place.mpi, place.part);
                    say(&words);
                    table.differs.push(words);
                }
            }
        }
        say(&format!("{:<8} {:<13} {ranks:>2}  {row}", place.mpi, place.part));
    }
    Ok(())
}

/// What two runs say of each other.
enum Verdict {
    Same(Ran),
    /// Without the library it is not the same each time.
    Unsteady,
    Differs(String),
}

fn verdict(job: &Job<'_>, library: &Path) -> Result<Verdict> {
    let mut without = Vec::new();
    let mut how = None;
    for _ in 0..=AGAIN {
        let (plain, with) = (job.run(None)?, job.run(Some(library))?);
        without.push(plain.clone());
        how =
            without.iter().map(|plain| plain.differs(&with)).min_by_key(Option::is_some).flatten();
        if how.is_none() {
            return Ok(Verdict::Same(plain));
        }
        if plain.is_late() && with.is_late() {
            break;
        }
    }
    let steady = without.windows(2).all(|two| two[0].differs(&two[1]).is_none());
    Ok(match how {
        Some(how) if steady => Verdict::Differs(how),
        _ => Verdict::Unsteady,
    })
}

/// What was found.
#[derive(Default)]
struct Table {
    rows: BTreeMap<String, Row>,
    differs: Vec<String>,
}

/// Runs of one folder with one MPI at one number of ranks.
#[derive(Clone, Copy, Default)]
struct Row {
    same: usize,
    /// Of those, both too late.
    late: usize,
    unsteady: usize,
    differs: usize,
    /// Not built.
    missing: usize,
}

impl std::fmt::Display for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { same, late, unsteady, differs, missing } = self;
        write!(f, "{same:>4} same ({late} too late both ways)  {differs:>3} differ")?;
        write!(f, "  {unsteady:>3} unsteady without it  {missing:>3} not built")
    }
}

impl Table {
    fn say(&self) {
        self.differs.iter().for_each(|words| say(words));
        say("MPI      folder      ranks");
        self.rows.iter().for_each(|(place, row)| say(&format!("{place}  {row}")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_say_what_is_run() {
        let read =
            |words: &[&str]| Wanted::of(Path::new("/r"), words.iter().map(|&word| word.to_owned()));
        let wanted = read(&["/no/mpich", "--ranks", "2,4", "--mpi", "mpich"]).expect("valid");
        assert_eq!((wanted.ranks, wanted.mpis), (vec![2, 4], vec!["mpich".to_owned()]));
        assert_eq!((wanted.sources, wanted.parts.len()), (PathBuf::from("/no/mpich"), 5));
        assert!(read(&["--ranks", "two"]).is_err_and(|e| e.to_string().contains("two")));
        assert!(read(&["--rank", "2"]).is_err_and(|e| e.to_string().contains("--rank")));
        let gone = run(Path::new("/r"), ["/no/mpich".to_owned()].into_iter());
        assert!(gone.is_err_and(|e| e.to_string().contains("apt-get source")));
    }
}
