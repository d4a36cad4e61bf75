//! The examples in C and C++ on 16 regions: each sees itself whether it is right, and says so by its exit code. With
//! processors of Arm's the tests of the library run them, on a machine that has a compiler.

use anyhow::{Context as _, Result, ensure};

use crate::orders::obey;

/// Where `xtask/src/vm/carried/examples.rs` puts them.
const FOLDER: &str = "/examples";
/// Programs and their arguments. Each is there at least once.
const RUNS: [&str; 11] = [
    "tasks threads 16 naft",
    "tasks threads 33 di",
    "tasks threads 4 dft",
    "tasks processes 8 isochrone",
    "openmp",
    "wrapped-cpp 16",
    "collectives threads 8",
    "collectives processes 4",
    "tier threads 4",
    "place 4",
    "place-cpp",
];
/// Seconds of one: emulated workers take turns on two cores.
const MOST_S: u32 = 300;

pub(crate) fn run_all() -> Result<String> {
    let mut there = 0;
    for entry in std::fs::read_dir(FOLDER).context(FOLDER)? {
        let name = entry?.file_name().into_string().ok().context("plain names")?;
        let runs = RUNS.iter().filter(|run| run.split(' ').next() == Some(&name));
        let mut many = 0;
        for run in runs {
            obey(&format!("run {MOST_S} {FOLDER}/{run}")).with_context(|| (*run).to_owned())?;
            many += 1;
        }
        ensure!(many > 0, "{name} is not run");
        there += 1;
    }
    ensure!(there > 0, "there are none");
    Ok(format!("{there} programs"))
}
