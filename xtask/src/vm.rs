//! `cargo xtask vm`: boots Debian's cloud kernel on emulated machines: one with 33 cores, 16 memory regions and the
//! distances of a bullion S, on which the checks of `tests/vm` run as its first process, and machines of odd shapes,
//! on which the two programs run and their JSON is held against what was configured.
//!
//! Places of pages, counts of interrupts and shapes of results are real there; times are not. The kernel and the
//! emulator are Debian's packages; the kernel is only unpacked, never installed.

mod archive;
mod brought;
mod carried;
mod judge;
mod kernel;
mod machine;
mod orders;
mod shape;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use super::ci::say;
use archive::File;
use machine::Boot;
use shape::{Does, Shape};

/// Machines of the usual gate: the checks, and the smallest that has cores and regions that may not be used.
const USUAL: [&str; 2] = ["checks16", "cpuset"];

/// Which machines, and of the checks only those whose names hold one of the words.
#[derive(Debug)]
struct Asked {
    shapes: Vec<Shape>,
    only: Vec<String>,
}

impl Asked {
    fn read(mut words: impl Iterator<Item = String>) -> Result<Self> {
        let (mut shapes, mut only) = (Vec::new(), Vec::new());
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
                _ => only.push(word),
            }
        }
        if shapes.is_empty() {
            // Words choose checks, and need no other machine.
            let names = if only.is_empty() { &USUAL[..] } else { &USUAL[..1] };
            shapes = names.iter().map(|name| Shape::named(name)).collect::<Result<_>>()?;
        }
        Ok(Self { shapes, only })
    }
}

/// Builds what runs there, boots one machine after the other, and fails if anything failed on any of them.
pub(crate) fn run(root: &Path, words: impl Iterator<Item = String>) -> Result<()> {
    let Asked { shapes, only } = Asked::read(words)?;
    let folder = root.join("target/vm");
    std::fs::create_dir_all(&folder)?;
    let kernel = kernel::find(&folder)?;
    let init = File::program("init", &build(root, &folder)?)?;
    let has_programs = shapes.iter().any(|shape| shape.does == Does::Programs);
    let carried = if has_programs { carried::files(root)? } else { Vec::new() };
    let mut failed = Vec::new();
    for shape in &shapes {
        say(&format!("vm: == {}: {}", shape.name, shape.what));
        let begin = Instant::now();
        let place = folder.join(shape.name);
        std::fs::create_dir_all(&place)?;
        let mut files = vec![init.clone()];
        if shape.does == Does::Programs {
            files.extend(carried.iter().cloned());
            files.push(File::text("orders", orders::of(shape)));
        }
        let outcome = one(&kernel, &place, shape, &files, &only);
        let seconds = begin.elapsed().as_secs();
        match outcome {
            Ok(()) => say(&format!("vm: == {}: passed in {seconds} s", shape.name)),
            Err(error) => {
                say(&format!("vm: == {}: FAILED after {seconds} s: {error:#}", shape.name));
                failed.push(shape.name);
            }
        }
    }
    ensure!(failed.is_empty(), "these emulated machines failed: {}", failed.join(", "));
    Ok(())
}

/// Boots one machine and judges what it brings out, which stays in `place`.
fn one(kernel: &Path, place: &Path, shape: &Shape, files: &[File], only: &[String]) -> Result<()> {
    let archive = place.join("files.cpio");
    std::fs::write(&archive, archive::of(files)?)?;
    let console = place.join("brought.txt");
    let boot = Boot { kernel, archive: &archive, shape, brought: &console, words: only };
    let ran = boot.run();
    std::fs::remove_file(&archive)?;
    if shape.does == Does::Checks {
        return ran;
    }
    // What came out is judged even where a command failed: it says more.
    let found = brought::read(&console, place)?;
    let verdicts = judge::all(shape, &found);
    for (what, verdict) in &verdicts {
        match verdict {
            Ok(seen) => say(&format!("vm: ok      {what}: {seen}")),
            Err(error) => say(&format!("vm: FAILED  {what}: {error:#}")),
        }
    }
    ran?;
    let wrong = verdicts.iter().filter(|(_, verdict)| verdict.is_err()).count();
    ensure!(wrong == 0, "{wrong} of {} findings are not as configured", verdicts.len());
    Ok(())
}

/// The first process as one static program.
fn build(root: &Path, folder: &Path) -> Result<PathBuf> {
    const TARGET: &str = "x86_64-unknown-linux-gnu";
    let arguments =
        ["build", "--release", "--locked", "--package", "isochrone-vm-tests", "--target", TARGET];
    let status = Command::new("cargo")
        .args(arguments)
        .env("RUSTFLAGS", "-C target-feature=+crt-static")
        .env("CARGO_TARGET_DIR", folder)
        .current_dir(root)
        .status()
        .context("cargo cannot be started")?;
    ensure!(status.success(), "the checks do not build");
    Ok(folder.join(TARGET).join("release/isochrone-vm-tests"))
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
        assert_eq!(asked("--machine all").unwrap().0.split(' ').count(), Shape::all().len());
        assert!(asked("--machine").is_err() && asked("--machine cores65").is_err());
    }
}
