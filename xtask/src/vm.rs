//! `cargo xtask vm`: boots Debian's cloud kernel on emulated machines: one with 33 cores, 16 memory regions and the
//! distances of a bullion S, on which the checks of `tests/vm` run as its first process, and machines of odd shapes,
//! on which the two programs run and their JSON is held against what was configured.
//!
//! Places of pages, counts of interrupts and shapes of results are real there; times are not. The kernel and the
//! emulator are Debian's packages; the kernel is only unpacked, never installed.

mod across;
mod arch;
mod archive;
mod brought;
mod carried;
mod debian;
mod judge;
mod kernel;
mod machine;
mod orders;
mod shape;

use std::io::{BufWriter, Write as _};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::available_parallelism;
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use super::ci::say;
use arch::Arch;
use archive::File;
use carried::Suite;
use machine::Boot;
use shape::{Does, Shape};

/// Machines of the usual gate: the checks, and the smallest that has cores and regions that may not be used.
const USUAL: [&str; 2] = ["checks16", "cpuset"];

/// The same with processors of another kind: its checks, and the smallest that has several regions. `debian` takes an
/// hour, and is asked for by name.
const USUAL_ARM: [&str; 2] = ["checks16", "regions2"];

/// Machines at once, unless told otherwise: each takes the time of one core, and memory that it touches.
const JOBS: usize = 2;

/// Which machines, how many at once, and of the checks only those whose names hold one of the words.
#[derive(Debug)]
struct Asked {
    arch: Arch,
    shapes: Vec<Shape>,
    jobs: usize,
    only: Vec<String>,
    /// Of the suites only the tests with these names.
    tests: Vec<String>,
}

impl Asked {
    fn read(mut words: impl Iterator<Item = String>) -> Result<Self> {
        let (mut shapes, mut only, mut arch) = (Vec::new(), Vec::new(), Arch::X86);
        let mut tests = Vec::new();
        let mut jobs = available_parallelism().map_or(1, NonZeroUsize::get).min(JOBS);
        while let Some(word) = words.next() {
            match word.as_str() {
                "--machine" => {
                    let names = words.next().context("--machine NAME[,NAME...], or all")?;
                    for name in names.split(',') {
                        match name {
                            "all" => shapes.extend(Shape::all()),
                            name => shapes.push(Shape::named(name)?),
                        }
                    }
                }
                "--arch" => {
                    arch = Arch::named(
                        &words.next().context("--arch x86_64, aarch64 or aarch64-16k")?,
                    )?;
                }
                "--jobs" => {
                    let number = words.next().and_then(|number| number.parse().ok());
                    jobs = number.context("--jobs NUMBER of machines at once")?;
                }
                "--test" => tests.push(words.next().context("--test NAME of one test")?),
                _ => only.push(word),
            }
        }
        if shapes.is_empty() {
            // Words choose checks, and need no other machine.
            let usual = if arch.is_arm() { &USUAL_ARM[..] } else { &USUAL[..] };
            let names = if only.is_empty() { usual } else { &usual[..1] };
            shapes = names.iter().map(|name| Shape::named(name)).collect::<Result<_>>()?;
        }
        let (shapes, others): (Vec<_>, Vec<_>) =
            shapes.into_iter().partition(|shape: &Shape| shape.is_of(arch));
        for shape in others {
            say(&format!("vm {}: left out: it is a machine of --arch aarch64", shape.name));
        }
        let shapes = shapes.into_iter().map(|shape| shape.on(arch)).collect();
        Ok(Self { arch, shapes, jobs, only, tests })
    }
}

/// Builds what runs there, boots the machines, and fails if anything failed on any of them.
pub(crate) fn run(root: &Path, words: impl Iterator<Item = String>) -> Result<()> {
    let Asked { arch, shapes, jobs, only, tests: named } = Asked::read(words)?;
    let folder = root.join(arch.folder());
    std::fs::create_dir_all(&folder)?;
    let kernel = kernel::find(&folder, arch)?;
    let does = |what| shapes.iter().any(|shape| shape.does == what);
    let begin = Instant::now();
    let mut files = Vec::new();
    if does(Does::Checks) || does(Does::Programs) {
        files = carried::files(root, &folder, arch, does(Does::Programs))?;
    }
    let tests = if does(Does::Tests) { Some(carried::suites(root, &folder, arch)?) } else { None };
    say(&format!("vm: built in {} s", begin.elapsed().as_secs()));
    let bench = Bench {
        root,
        folder: &folder,
        kernel: &kernel,
        files: &files,
        tests: tests.as_ref(),
        only: &only,
        named: &named,
    };
    let failed = bench.all(&shapes, jobs);
    ensure!(failed.is_empty(), "these emulated machines failed: {}", failed.join(", "));
    Ok(())
}

/// What every machine is tried with.
struct Bench<'a> {
    root: &'a Path,
    /// Where each has a folder.
    folder: &'a Path,
    kernel: &'a Path,
    files: &'a [File],
    /// The same of machines that run tests, and what they run.
    tests: Option<&'a (Vec<File>, Vec<Suite>)>,
    only: &'a [String],
    /// Of the tests only these.
    named: &'a [String],
}

impl Bench<'_> {
    /// So many at once, in their order; the names of those that failed.
    fn all(&self, shapes: &[Shape], jobs: usize) -> Vec<&'static str> {
        let (next, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        let work = || {
            // Relaxed: each takes a number of its own, and nothing else is handed over.
            while let Some(shape) = shapes.get(next.fetch_add(1, Ordering::Relaxed)) {
                if !self.passes(shape) {
                    failed.lock().unwrap_or_else(PoisonError::into_inner).push(shape.name);
                }
            }
        };
        std::thread::scope(|scope| (0..jobs.max(1)).for_each(|_| drop(scope.spawn(work))));
        failed.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn passes(&self, shape: &Shape) -> bool {
        let name = shape.name;
        say(&format!("vm {name}: == {}", shape.what));
        let begin = Instant::now();
        let outcome = self.one(shape);
        let seconds = begin.elapsed().as_secs();
        match &outcome {
            Ok(()) => say(&format!("vm {name}: == passed in {seconds} s")),
            Err(error) => say(&format!("vm {name}: == FAILED after {seconds} s: {error:#}")),
        }
        outcome.is_ok()
    }

    /// What a machine has on its disk.
    fn files_of(&self, shape: &Shape) -> Result<Vec<File>> {
        let orders = |text| File::text("orders", text);
        let mut files = self.files.to_vec();
        match shape.does {
            Does::Checks => {}
            Does::Programs => files.push(orders(orders::of(shape))),
            Does::Tests => {
                let (carried, suites) = self.tests.context("no tests were built")?;
                files = carried.clone();
                files.push(orders(orders::of_suites(shape, suites, self.only, self.named)));
            }
        }
        Ok(files)
    }

    /// Boots one machine and judges what it brings out, which stays in its folder.
    fn one(&self, shape: &Shape) -> Result<()> {
        let place = self.folder.join(shape.name);
        std::fs::create_dir_all(&place)?;
        let (archive, console) = (place.join("files.cpio"), place.join("brought.txt"));
        let mut out = BufWriter::new(std::fs::File::create(&archive)?);
        archive::write(&self.files_of(shape)?, &mut out)?;
        out.flush()?;
        let words = if shape.does == Does::Checks { self.only } else { &[] };
        let boot = Boot { kernel: self.kernel, archive: &archive, shape, brought: &console, words };
        let ran = boot.run();
        std::fs::remove_file(&archive)?;
        if shape.does != Does::Programs {
            return ran;
        }
        // What came out is judged even where a command failed: it says more.
        let found = brought::read(&console, &place)?;
        let mut verdicts = judge::all(shape, &found);
        if shape.arch.is_arm() {
            verdicts.extend(across::all(self.root, &place, &found));
        }
        for (what, verdict) in &verdicts {
            match verdict {
                Ok(seen) => say(&format!("vm {}: ok      {what}: {seen}", shape.name)),
                Err(error) => say(&format!("vm {}: FAILED  {what}: {error:#}", shape.name)),
            }
        }
        ran?;
        let wrong = verdicts.iter().filter(|(_, verdict)| verdict.is_err()).count();
        ensure!(wrong == 0, "{wrong} of {} findings are not as configured", verdicts.len());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_choose_checks_and_names_choose_machines() {
        let asked = |line: &str| {
            let asked = Asked::read(line.split_whitespace().map(str::to_owned))?;
            let names: Vec<&str> = asked.shapes.iter().map(|shape| shape.name).collect();
            anyhow::Ok((names.join(" "), asked.only.join(" ")))
        };
        let is = |names: &str, only: &str| (names.to_owned(), only.to_owned());
        assert_eq!(asked("").unwrap(), is("checks16 cpuset", ""));
        assert_eq!(asked("tasks smi").unwrap(), is("checks16", "tasks smi"));
        assert_eq!(asked("--machine cores64,nosys").unwrap(), is("cores64 nosys", ""));
        assert_eq!(
            asked("--machine all --arch aarch64").unwrap().0.split(' ').count(),
            Shape::all().len()
        );
        assert_eq!(asked("--arch aarch64").unwrap(), is("checks16 regions2", ""));
        assert_eq!(asked("--machine debian,nosys").unwrap(), is("nosys", ""));
        assert!(asked("--arch").is_err() && asked("--arch arm").is_err());
        assert!(asked("--machine").is_err() && asked("--machine cores65").is_err());
        assert!(asked("--jobs 1").is_ok() && asked("--jobs").is_err());
    }
}
