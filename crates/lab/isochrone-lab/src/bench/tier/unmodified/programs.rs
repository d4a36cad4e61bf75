//! The programs: what they are, where they lie, and the words by which one is started.

use std::cell::OnceCell;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use isochrone_console::output::search_path;
use tempfile::TempDir;

use super::super::arm::Runner;
use crate::bench::recipe::Recipe;

/// In which order a program goes through its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// From end to end, or in a few hundred streams.
    Along,
    /// Anywhere, at each step anew.
    Random,
}

/// What starts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Of `programs.c`, the word by which it is chosen.
    Compiled,
    Numpy,
    Sqlite,
    Redis,
}

/// A program.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Program {
    pub(super) name: &'static str,
    pub(super) order: Order,
    kind: Kind,
}

const fn program(name: &'static str, order: Order, kind: Kind) -> Program {
    Program { name, order, kind }
}

/// All of them.
pub(super) static PROGRAMS: [Program; 6] = [
    program("sweep", Order::Along, Kind::Compiled),
    program("sort", Order::Along, Kind::Compiled),
    program("pagerank", Order::Random, Kind::Compiled),
    program("numpy", Order::Along, Kind::Numpy),
    program("sqlite", Order::Random, Kind::Sqlite),
    program("redis", Order::Random, Kind::Redis),
];

impl Program {
    /// Whether it can take its memory from a file that is mapped, or from another pager's library: then it is no more
    /// unmodified, but what its author could make of it.
    pub(super) fn takes_other_memory(&self) -> bool {
        self.kind == Kind::Compiled
    }
}

const COMPILED: Recipe = Recipe {
    name: "programs",
    package: "gcc",
    compiler: "cc",
    source: ("programs.c", include_str!("programs.c")),
    options: &["-ldl"],
};
const ARRAYS: &str = include_str!("arrays.py");
const TABLE: &str = include_str!("sqlite.sql");
const SERVER: &str = include_str!("redis.sh");

/// Bytes of a slot of SQLite's page cache: a page, and what is kept of it.
const SLOT: u64 = 4608;
/// Rows of the table that a slot holds, so that all fit.
const ROWS: u64 = 28;
/// Random accesses for a page of data.
const STEPS_A_PAGE: u64 = 4;

/// Where programs are made and looked for.
pub(super) struct Places {
    scratch: TempDir,
    named: Vec<(String, PathBuf)>,
    data: u64,
    compiled: OnceCell<Result<PathBuf, String>>,
}

impl Places {
    pub(super) fn new(scratch: TempDir, named: Vec<(String, PathBuf)>, data: u64) -> Self {
        Self { scratch, named, data, compiled: OnceCell::new() }
    }

    pub(super) fn scratch(&self) -> &Path {
        self.scratch.path()
    }

    /// Bytes of data that programs are asked to have.
    pub(super) const fn data(&self) -> u64 {
        self.data
    }

    /// The program's file, which works.
    pub(super) fn file(&self, program: &Program, runner: &Runner) -> Result<PathBuf> {
        match program.kind {
            Kind::Compiled => self.compiled(runner),
            Kind::Numpy => {
                let python = self.named_or_found("numpy", "python3")?;
                let mut asked = Command::new(&python);
                let has = runner.printed(asked.args(["-c", "import numpy"]), &|| ());
                has.ok().with_context(|| {
                    format!(
                        "{} has no numpy: --program numpy=PATH of one that has",
                        python.display()
                    )
                })?;
                Ok(python)
            }
            Kind::Sqlite => self.named_or_found("sqlite", "sqlite3"),
            Kind::Redis => {
                let server = self.named_or_found("redis", "redis-server")?;
                let said = runner.printed(Command::new(&server).arg("--version"), &|| ())?;
                ensure!(
                    said.contains("malloc=libc"),
                    "{} has an allocator of its own: build one with MALLOC=libc, and give --program redis=PATH",
                    server.display()
                );
                Ok(server)
            }
        }
    }

    /// Compiled by whom asks first, unless that was stopped.
    fn compiled(&self, runner: &Runner) -> Result<PathBuf> {
        if let Some(known) = self.compiled.get() {
            return known.clone().map_err(anyhow::Error::msg);
        }
        let made = COMPILED.compile(self.scratch(), runner.stop());
        ensure!(made.is_ok() || !runner.stop().is_set(), "it was ended before its time");
        let made = made.map_err(|why| COMPILED.advice(&why));
        self.compiled.get_or_init(|| made).clone().map_err(anyhow::Error::msg)
    }

    fn named_or_found(&self, name: &str, file: &str) -> Result<PathBuf> {
        if let Some((_, path)) = self.named.iter().find(|(known, _)| known == name) {
            // The name stays: a folder with modules of its own is found by it.
            let path = std::path::absolute(path)?;
            ensure!(path.is_file(), "--program {name}={}: there is no such file", path.display());
            return Ok(path);
        }
        let folders = search_path();
        let mut all = std::env::split_paths(&folders).map(|folder| folder.join(file));
        match all.find(|path| path.is_file()) {
            Some(path) => Ok(path),
            None => bail!("{file} is not installed: --program {name}=PATH says where it lies"),
        }
    }

    /// The words that start it. `before` is what it runs under; `memory` says where it takes its memory, if that is not
    /// `malloc`.
    pub(super) fn words(
        &self,
        program: &Program,
        file: &Path,
        before: Vec<OsString>,
        memory: Option<OsString>,
    ) -> Vec<OsString> {
        let (data, steps) = (self.data.to_string(), STEPS_A_PAGE * (self.data >> 12));
        let own = |words: Vec<OsString>| {
            before.iter().cloned().chain([file.into()]).chain(words).collect::<Vec<OsString>>()
        };
        match program.kind {
            Kind::Compiled => {
                own([program.name.into(), data.into()].into_iter().chain(memory).collect())
            }
            Kind::Numpy => own(["-c", ARRAYS, &data].map(OsString::from).into()),
            Kind::Sqlite => {
                let slots = self.data / SLOT;
                let rows = (slots * ROWS).to_string();
                // A word that begins as a comment does is an option to it.
                let text: String = TABLE
                    .lines()
                    .filter(|line| !line.starts_with("--"))
                    .map(|line| format!("{line}\n"))
                    .collect();
                let text = text.replace("ROWS", &rows).replace("STEPS", &steps.to_string());
                let (size, slots) = (SLOT.to_string(), slots.to_string());
                let words = ["-batch", "-pagecache", &size, &slots, ":memory:", &text];
                own(words.map(OsString::from).into())
            }
            Kind::Redis => {
                let mut words: Vec<OsString> = ["sh", "-c", SERVER, "sh"].map(Into::into).into();
                words.extend([file.into(), self.scratch().into()]);
                words.extend([data, steps.to_string()].map(OsString::from));
                words.extend(before);
                words
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use isochrone_os::affinity::CoreSet;

    use super::*;
    use crate::bench::Stop;
    use isochrone_console::progress::Interrupt;
    use isochrone_console::written::scratch;
    use isochrone_tier::regions::Regions;

    fn runner() -> Runner {
        let cores: Vec<_> = CoreSet::of_this_thread().unwrap().iter().take(2).collect();
        Runner::new(&cores, Regions::default(), Stop::new(Interrupt::install(), None))
    }

    fn places() -> Places {
        Places::new(scratch().unwrap(), Vec::new(), 16 << 20)
    }

    /// What a program prints, where this machine has it.
    fn said(places: &Places, program: &Program, memory: Option<OsString>) -> Option<String> {
        let runner = runner();
        let file = places.file(program, &runner).ok()?;
        let words = places.words(program, &file, Vec::new(), memory);
        let mut command = Command::new(&words[0]);
        Some(runner.printed(command.args(&words[1..]), &|| ()).unwrap())
    }

    fn digest(text: &str) -> &str {
        super::super::way::last_line(text).unwrap().1
    }

    #[test]
    fn every_program_prints_its_time_and_the_same_digest_again() {
        let places = places();
        for program in &PROGRAMS {
            let Some(first) = said(&places, program, None) else { continue };
            let again = said(&places, program, None).unwrap();
            assert_eq!(digest(&first), digest(&again), "{}", program.name);
            assert_ne!(digest(&first).trim_start_matches('0'), "", "{}: {first}", program.name);
        }
    }

    #[test]
    fn a_mapped_file_changes_no_digest() {
        let places = places();
        for program in PROGRAMS.iter().filter(|program| program.takes_other_memory()) {
            let Some(plain) = said(&places, program, None) else { continue };
            let mut place = OsString::from("file:");
            place.push(places.scratch());
            let mapped = said(&places, program, Some(place)).unwrap();
            assert_eq!(digest(&plain), digest(&mapped), "{}", program.name);
        }
    }

    #[test]
    fn a_program_that_is_not_there_is_said_with_the_way_out() {
        let named = vec![("redis".to_owned(), PathBuf::from("/no/such/redis-server"))];
        let places = Places::new(scratch().unwrap(), named, 16 << 20);
        let redis = PROGRAMS.iter().find(|program| program.name == "redis").unwrap();
        let error = places.file(redis, &runner()).unwrap_err().to_string();
        assert_eq!(error, "--program redis=/no/such/redis-server: there is no such file");
    }

    #[test]
    fn what_it_runs_under_stands_before_the_program_and_not_before_who_asks_it() {
        let places = places();
        let words = |name: &str| -> Vec<String> {
            let program = PROGRAMS.iter().find(|program| program.name == name).unwrap();
            let words = places.words(program, Path::new("/bin/it"), vec!["under".into()], None);
            words.iter().map(|word| word.to_string_lossy().into_owned()).collect()
        };
        assert_eq!(words("sort"), ["under", "/bin/it", "sort", "16777216"]);
        assert_eq!(words("numpy")[..3], ["under", "/bin/it", "-c"]);
        let redis = words("redis");
        assert_eq!((redis[0].as_str(), redis[4].as_str()), ("sh", "/bin/it"));
        assert_eq!(redis.last().map(String::as_str), Some("under"));
    }
}
