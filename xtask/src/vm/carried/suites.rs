//! Tests of crates as programs, with what they read, to be run on a machine. Their crates lie there in the same folders
//! as here, since a test has the path of its crate built in.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::super::arch::{Arch, Pages};
use super::super::archive::File;
use super::stripped::stripped;
use crate::arm;

/// Crates whose tests need Arm's kernel, an MPI, or a compiler beside the library.
const CRATES: [&str; 6] = [
    "isochrone-os",
    "isochrone-malloc",
    "isochrone-tasks",
    "isochrone-tier",
    "isochrone-capi",
    "isochrone-mpi",
];
/// What tests read beside the files of their crates.
const READ: &str = "fuzz/corpus/atlas_reader";
/// Libraries that tests look for beside themselves.
const BESIDE: [&str; 3] = ["libisochrone.so", "libisochrone.a", "libisochrone_mpi.so"];

/// A program that runs tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Suite {
    /// Where it lies, here and there.
    pub(in super::super) program: String,
    /// Its crate's folder, in which it is started.
    pub(in super::super) folder: String,
}

/// Builds the suites.
pub(super) fn build(root: &Path) -> Result<Vec<Suite>> {
    let mut words = vec![
        "test",
        "--no-run",
        "--locked",
        "--lib",
        "--tests",
        "--message-format=json-render-diagnostics",
    ];
    words.extend(CRATES.iter().flat_map(|name| ["-p", name]));
    let built = arm::command(root, &words)?.stderr(Stdio::inherit()).output();
    let built = built.context("cargo cannot be started")?;
    ensure!(built.status.success(), "the tests cannot be built for {}", arm::TARGET);
    let suites: Vec<Suite> =
        String::from_utf8_lossy(&built.stdout).lines().filter_map(suite).collect();
    ensure!(!suites.is_empty(), "cargo names no tests");
    Ok(suites)
}

/// The one that a message of cargo's tells of.
fn suite(message: &str) -> Option<Suite> {
    let message: Value = serde_json::from_str(message).ok()?;
    let is_test = message["profile"]["test"] == true;
    let program = message["executable"].as_str().filter(|_| is_test)?.to_owned();
    let manifest = Path::new(message["manifest_path"].as_str()?);
    Some(Suite { program, folder: manifest.parent()?.to_str()?.to_owned() })
}

/// The suites, the libraries beside them, and the files of their crates.
pub(super) fn files(root: &Path, suites: &[Suite], folder: &Path) -> Result<Vec<File>> {
    let mut files = Vec::new();
    let mut carry = |here: &Path| {
        let copy = stripped(here, folder, Arch::Arm(Pages::Kib4))?;
        files.push(File::program(there(here)?, &copy));
        anyhow::Ok(())
    };
    let programs = suites.iter().map(|suite| PathBuf::from(&suite.program));
    let beside = programs.clone().next().context("no tests")?;
    programs
        .chain(BESIDE.map(|name| beside.with_file_name(name)))
        .try_for_each(|here| carry(&here))?;
    let mut folders: Vec<&str> = suites.iter().map(|suite| suite.folder.as_str()).collect();
    folders.dedup();
    let read = root.join(READ);
    for folder in folders.iter().map(Path::new).chain([read.as_path()]) {
        File::below(there(folder)?, folder, &|_| true, &mut files)?;
    }
    Ok(files)
}

/// A path from the root, as archives have it.
fn there(here: &Path) -> Result<&str> {
    here.strip_prefix("/")?.to_str().context("a path that is no text")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suites_are_found_among_the_messages_and_programs_are_not() {
        let message = |test: bool| {
            serde_json::json!({
                "reason": "compiler-artifact", "manifest_path": "/a/crates/mpi/Cargo.toml",
                "profile": {"test": test}, "executable": "/a/target/programs-1",
            })
            .to_string()
        };
        let found = suite(&message(true)).expect("a suite");
        assert_eq!(
            (found.program.as_str(), found.folder.as_str()),
            ("/a/target/programs-1", "/a/crates/mpi")
        );
        assert_eq!((suite(&message(false)), suite("Compiling"), suite("{}")), (None, None, None));
    }

    #[test]
    fn crates_are_there() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let manifest = std::fs::read_to_string(root.join("Cargo.lock")).expect("the lock file");
        assert!(CRATES.iter().all(|name| manifest.contains(&format!("name = \"{name}\""))));
    }
}
