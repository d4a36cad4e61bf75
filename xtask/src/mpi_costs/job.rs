//! One job of the program, and what it leaves.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::ci::Mark;

/// A job is ended after this, s.
const LIMIT: &str = "900";

/// The program with an MPI and the library.
pub(super) struct Job<'a> {
    pub(super) mpi: &'a str,
    pub(super) program: &'a Path,
    pub(super) library: &'a Path,
}

/// What the library is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// It does as it does for every program.
    Nothing,
    /// Every communicator is in lines from its first call on.
    AtOnce,
    /// It is not there at all.
    Off,
}

/// What a job says and leaves.
#[derive(Debug, Default)]
pub(super) struct Left {
    pub(super) text: String,
    /// Memory that its ranks share, bytes.
    pub(super) shared_bytes: u64,
}

impl Job<'_> {
    pub(super) fn run(&self, ranks: u32, words: &[&str], told: Told) -> Result<Left> {
        let scratch = tempfile::tempdir()?;
        let record = scratch.path().join("told");
        let reports = scratch.path().join("reports");
        std::fs::create_dir(&reports)?;
        let config = match told {
            Told::AtOnce => json!({ "calls_before": 0, "costs_before": 0, "reports": &reports }),
            Told::Nothing | Told::Off => json!({ "reports": &reports }),
        };
        std::fs::write(&record, config.to_string())?;
        let mut command = Command::new("timeout");
        command.args(["-k", "10", LIMIT, &format!("mpirun.{}", self.mpi)]);
        if self.mpi == "openmpi" {
            command.args(["--oversubscribe", "--bind-to", "none"]);
            command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        }
        command.args(["-n", &ranks.to_string(), "env"]);
        if told != Told::Off {
            command.arg(format!("LD_PRELOAD={}", self.library.display()));
            command.arg(format!("ISOCHRONE_MPI={}", record.display()));
        }
        let mark = Mark::new();
        mark.put_on(&mut command);
        let output = command.arg(self.program).args(words).output();
        mark.end_all();
        let output = output.context("timeout is part of every system")?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        ensure!(
            output.status.success() && text.matches("done").count() == ranks as usize,
            "{} with {ranks} ranks, {words:?}: {text}{}",
            self.mpi,
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(Left { text, shared_bytes: shared_bytes(&reports)? })
    }
}

impl Left {
    /// The numbers behind `kilobytes`.
    pub(super) fn kilobytes(&self) -> Vec<f64> {
        let of = |line: &str| line.strip_prefix("kilobytes ")?.parse().ok();
        self.text.lines().filter_map(of).collect()
    }
}

/// Memory that ranks share, by what they left: the most that one of them knows of.
fn shared_bytes(reports: &Path) -> Result<u64> {
    let mut most = 0;
    for entry in std::fs::read_dir(reports)? {
        let report: Value = serde_json::from_slice(&std::fs::read(entry?.path())?)?;
        most = most.max(report["shared_bytes"].as_u64().unwrap_or(0));
    }
    Ok(most)
}
