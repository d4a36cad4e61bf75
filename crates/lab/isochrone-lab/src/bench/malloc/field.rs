//! What all programs are run with, and one run of one of them: a process of its own, on the same cores, without a
//! terminal.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use isochrone_alloc::Mode;
use isochrone_console::run::ended::{alone, ended};
use isochrone_console::run::record::{ProcessRecord, read_all};
use isochrone_console::run::usage::{self, Measured};
use isochrone_console::run::{library, setup};
use isochrone_console::written::scratch;
use isochrone_malloc::Pin;

use super::arms::{self, Arm, Configs};
use super::programs::Program;
use crate::args::MallocArgs;
use crate::bench::budget::Stop;
use crate::bench::setting::Setting;

/// What all programs are run with.
pub(super) struct Field {
    /// Where the programs lie, if not where this machine keeps its own.
    folder: Option<PathBuf>,
    pub(super) arms: Vec<Arm>,
    configs: Configs,
    scratch: tempfile::TempDir,
    pub(super) cores: Vec<u16>,
    limit_s: u32,
    stop: Stop,
}

/// What one run gave.
pub(super) struct Outcome {
    pub(super) cost: f64,
    pub(super) rss: Option<u64>,
    pub(super) records: Vec<ProcessRecord>,
    /// What it printed.
    pub(super) output: String,
}

impl Field {
    pub(super) fn new(
        args: &MallocArgs,
        setting: &mut Setting<'_>,
        folder: Option<PathBuf>,
    ) -> Result<Self> {
        let scratch = scratch()?;
        let found = setting.atlas(scratch.path())?;
        let placement = &args.placement;
        let policy = setup::policy(Mode::Aware, placement, &found.contents);
        let mut config =
            setup::config(policy, placement, &found.contents, &found.path, scratch.path())?;
        config.pin = Pin::Compact;
        let cores = setting.cores(usize::MAX)?;
        config.cores = isochrone_malloc::CoreList::new(&cores).context("too many cores")?;
        let configs = Configs::write(config, &found.contents, scratch.path())?;
        let ours = library::find(args.preload.as_deref())?;
        let mut arms = arms::plain_and_ours("glibc", None, &ours);
        let is_of = |names: &[String], peer: &str| names.iter().any(|name| name == peer);
        let is_wanted = |peer: &&str| {
            is_of(&args.over, peer) || args.peers.as_ref().is_none_or(|peers| is_of(peers, peer))
        };
        for peer in library::allocators().filter(is_wanted) {
            match library::allocator(peer) {
                Ok(path) if is_of(&args.over, peer) => {
                    arms.extend(arms::plain_and_ours(peer, Some(path), &ours));
                }
                Ok(path) => arms.push(Arm::plain(peer, Some(path))),
                Err(error) => setting.miss(&format!("no figures of {error:#}")),
            }
        }
        Ok(Self {
            folder,
            arms,
            configs,
            scratch,
            cores: cores.iter().map(|core| core.0).collect(),
            limit_s: args.limit,
            stop: setting.stop(),
        })
    }

    /// Runs a program, which lies there, once under an arm.
    pub(super) fn once(&self, program: &Program, file: &Path, arm: &Arm) -> Result<Outcome> {
        let out = self.scratch.path().join("usage.json");
        let printed = self.scratch.path().join("output.txt");
        for record in std::fs::read_dir(self.scratch.path())?.flatten() {
            if record.path().to_string_lossy().ends_with(isochrone_malloc::REPORT_SUFFIX) {
                std::fs::remove_file(record.path())?;
            }
        }
        let mut preload: Option<OsString> = None;
        for library in arm.preload.iter().rev() {
            preload = Some(library::first(library, preload.as_deref(), self.scratch.path())?);
        }
        let words = match program.script {
            Some(script) => ["sh", "-c", script].map(OsString::from).to_vec(),
            None => {
                let arguments = program.arguments_on(self.cores.len()).into_iter();
                let file = file.as_os_str().to_owned();
                std::iter::once(file).chain(arguments.map(Into::into)).collect()
            }
        };
        let config = arm.told.map(|told| self.configs.of(told));
        // A script starts its clients, too: what counts is what is under the allocator.
        let whose = program.script.map(|_| program.file);
        let measured = Measured { preload, config, whose, command: words, ..Measured::default() };
        let folder = self.folder.as_deref().unwrap_or(self.scratch.path());
        let input = program.input.map_or_else(|| PathBuf::from("/dev/null"), |f| folder.join(f));
        let mut command = measured.command(&out, Some(&self.cores), Some(self.limit_s))?;
        let quiet = Quiet { folder, input: &input, printed: &printed };
        quiet
            .run(&mut command, &self.stop)
            .with_context(|| format!("{} under {}", program.name, arm.name))?;
        let usage = usage::read(&out)?;
        ensure!(
            usage.code == 0,
            "{} under {} ended with {} after {:.1} s",
            program.name,
            arm.name,
            usage.code,
            usage.seconds
        );
        let output = String::from_utf8_lossy(&std::fs::read(&printed)?).into_owned();
        let cost = program
            .cost
            .of(usage.seconds, &output)
            .with_context(|| format!("{} under {} printed no result", program.name, arm.name))?;
        let records = if config.is_some() { read_all(self.scratch.path())? } else { Vec::new() };
        Ok(Outcome { cost, rss: usage.peak_rss_bytes, records, output })
    }
}

/// Where a program runs without a terminal.
struct Quiet<'a> {
    folder: &'a Path,
    input: &'a Path,
    printed: &'a Path,
}

impl Quiet<'_> {
    fn run(&self, command: &mut Command, stop: &Stop) -> Result<()> {
        let output = File::create(self.printed)?;
        let input = File::open(self.input).with_context(|| self.input.display().to_string())?;
        command
            .current_dir(self.folder)
            .stdin(Stdio::from(input))
            .stdout(Stdio::from(output.try_clone()?))
            .stderr(Stdio::from(output));
        let status = ended(&mut alone(command).spawn()?, &|| stop.is_set())?;
        let status = status.context("it was ended before its time")?;
        ensure!(status.code().is_some(), "the run was killed");
        Ok(())
    }
}
