//! The MPIs that collectives are compared with, and how a job of one is started.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use isochrone_mpi::{CONFIG_VARIABLE, Config};
use isochrone_units::CoreId;
use serde::Serialize;

use super::rank::Job;
use crate::run::{library, mpi};

/// An MPI in one setting.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Peer {
    pub(crate) name: String,
    /// What starts a job, with its options.
    pub(crate) command: Vec<String>,
    /// The library that its processes load.
    pub(crate) library: String,
}

/// Debian's packages: name, command, library.
const PACKAGED: [(&str, &str, &str); 3] = [
    ("openmpi", "mpirun.openmpi --bind-to none", "libmpi.so.40"),
    // Its shared-memory component is there and not used unless asked for.
    ("openmpi-sm", "mpirun.openmpi --bind-to none --mca coll_sm_priority 100", "libmpi.so.40"),
    ("mpich", "mpirun.mpich", "libmpich.so.12"),
];

impl Peer {
    /// The packaged ones, then those that the user built, as `NAME=LIBRARY=COMMAND`.
    pub(crate) fn all(built: &[String]) -> Result<Vec<Self>> {
        let packaged = PACKAGED.map(|(name, command, library)| Self::of(name, library, command));
        let mut peers = packaged.to_vec();
        for text in built {
            let mut parts = text.splitn(3, '=');
            let (Some(name), Some(library), Some(command)) =
                (parts.next(), parts.next(), parts.next())
            else {
                bail!(
                    "--peer {text}: give NAME=LIBRARY=COMMAND, as in xhc=/opt/lib/libmpi.so=/opt/bin/mpirun"
                );
            };
            peers.push(Self::of(name, library, command));
        }
        Ok(peers)
    }

    fn of(name: &str, library: &str, command: &str) -> Self {
        Self {
            name: name.to_owned(),
            command: command.split_whitespace().map(str::to_owned).collect(),
            library: library.to_owned(),
        }
    }

    /// Why no job of it can be started, if so.
    pub(crate) fn missing(&self) -> Option<String> {
        let program = self.command.first()?;
        let found = Command::new(program)
            .arg("--version")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        found.err().map(|error| format!("{}: {program} cannot be started ({error})", self.name))
    }

    /// One job: every cell, in blocks.
    pub(crate) fn job(&self, launch: &Launch<'_>) -> Result<Job> {
        let out = launch.scratch.join("job.json");
        let config = launch.scratch.join("mpi.json");
        // Every call is done in lines from the start, whatever its size: that is what is compared.
        let told = Config { calls_before: 0, bytes_max: 1 << 20, alone: true, ..Config::default() };
        std::fs::write(&config, serde_json::to_string(&told)?)
            .with_context(|| config.display().to_string())?;
        let cores: Vec<String> = launch.cores.iter().map(|core| core.0.to_string()).collect();
        let mut command = Command::new(&self.command[0]);
        command
            .args(&self.command[1..])
            .args(["-n", &cores.len().to_string()])
            .arg(std::env::current_exe()?)
            .args(["coll-rank", "--library", &self.library, "--cores", &cores.join(",")])
            .args(["--seed", &launch.seed.to_string(), "--blocks", &launch.blocks.to_string()])
            .arg("--out")
            .arg(&out)
            .env("LD_PRELOAD", launch.preload)
            .env(CONFIG_VARIABLE, &config)
            // Open MPI starts nothing for root otherwise, as in a container.
            .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
            .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
            .stdin(Stdio::null());
        let output = command.output().with_context(|| self.command[0].clone())?;
        ensure!(
            output.status.success(),
            "a job of {} failed ({}): {}",
            self.name,
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        );
        let text = std::fs::read_to_string(&out).with_context(|| out.display().to_string())?;
        std::fs::remove_file(&out)?;
        Ok(serde_json::from_str(&text)?)
    }
}

/// What jobs share.
pub(crate) struct Launch<'a> {
    pub(crate) cores: &'a [CoreId],
    pub(crate) seed: u64,
    pub(crate) blocks: u32,
    pub(crate) preload: &'a OsString,
    pub(crate) scratch: &'a Path,
}

/// The library that is compared: the one that was named, or the one beside this program.
pub(crate) fn library(named: Option<&Path>) -> Result<PathBuf> {
    library::find_as(mpi::LIBRARY, mpi::BUILD, named)
}
