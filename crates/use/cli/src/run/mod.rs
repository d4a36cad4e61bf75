//! `isochrone run`: a program under the library, as if it were run directly, and what was placed.
//!
//! Everything that could make the library be ignored in silence is found out before the program
//! starts. Failures of our own have exit code 125, so that they are told from the program's.

mod compare;
mod gain;
mod mpi;
mod program;
mod words;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use isochrone_console::run::{atlas, child, library, record, setup, start, usage};
use isochrone_malloc::{CONFIG_VARIABLE, Config, CoreList};
use isochrone_probe::awake::Awake;
use isochrone_report::json::{self, Format};
use serde::Serialize;

#[cfg(test)]
pub(crate) use mpi::JobRecord;

use crate::args::RunArgs;
use child::Signals;
use compare::{Compared, Comparison, Sides};
use isochrone_console::output::{self, Terminal};
use isochrone_console::written::{Place, write_to};
use record::ProcessRecord;
use start::Program;
use usage::Measured;

/// What the shell sees where isochrone itself failed, as with env(1) and timeout(1).
const OWN_FAILURE: u8 = 125;

/// What a run was and what its processes left.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct RunRecord {
    command: Vec<String>,
    code: u8,
    mode: &'static str,
    near: String,
    pin: &'static str,
    /// What the order of cores to which threads were bound goes by; nothing where they were not.
    pinned_by: Option<setup::By>,
    /// Why the program was run without the library, if it was.
    nothing_placed: Option<String>,
    processes: Vec<ProcessRecord>,
    compare: Option<Comparison>,
}

/// Runs the command.
pub(crate) fn run(args: &RunArgs, terminal: &Terminal) -> ExitCode {
    match prepared(args, terminal) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            terminal.complain(&format!("isochrone: {}", output::words(&error)));
            ExitCode::from(OWN_FAILURE)
        }
    }
}

fn prepared(args: &RunArgs, terminal: &Terminal) -> Result<u8> {
    let name = args.command.first().context("no program was named")?;
    let program = match look(name) {
        Ok(program) => program,
        Err(refusal) => {
            terminal.complain(&format!("isochrone: {}", refusal.words));
            return Ok(refusal.code);
        }
    };
    let [json] = Place::open_all([args.json.asked()])?;
    if args.mpi {
        return mpi::run(args, &program, json, terminal);
    }
    let scratch = tempfile::Builder::new()
        .prefix("isochrone-")
        .tempdir()
        .context("there is no place for temporary files; set TMPDIR")?;
    let library = library::find(args.preload.as_deref())?;
    let before = before(args, scratch.path())?;
    let found = atlas::find(args.host.atlas.as_deref(), scratch.path(), terminal)?;
    let fresh = match args.fresh {
        true => atlas::fresh(&found, &setup::cores(&found.contents)?, scratch.path(), terminal)?,
        false => None,
    };
    let found = fresh.unwrap_or(found);
    let mut policy = setup::policy(args.mode.into(), &args.placement, &found.contents);
    policy.checked = args.check;
    let cores = setup::cores(&found.contents)?;
    let nothing = match args.force {
        true => None,
        false => gain::none(&found.atlas.atlas()?, &cores, &policy),
    };
    let binding = setup::binding(args.pin.into(), cores, &found.atlas.atlas()?);
    let config = Config {
        pin: binding.pin,
        cores: CoreList::new(&binding.cores).context("too many cores")?,
        force: args.force,
        bindings: setup::bindings(scratch.path())?,
        ..setup::config(policy, &args.placement, &found.contents, &found.path, scratch.path())?
    };
    let under = Under { args, program, library, before, config, scratch: scratch.path() };
    let signals = Signals::hold()?;
    let _awake = args.host.awake.then(|| Awake::start(under.config.cores.as_slice()));
    let Ran { code, processes, compare } = match &nothing {
        Some(words) => {
            terminal.complain(&format!("isochrone: {words}"));
            let program = Program::new(under.program.as_os_str(), &args.command)
                .with("LD_PRELOAD", under.before.as_deref());
            let code = signals.run(&program)?;
            Ran { code, processes: record::read_all(scratch.path())?, compare: None }
        }
        None => under.run(&signals, terminal)?,
    };
    if let Some(line) = words::ended(&processes) {
        terminal.complain(&line);
    }
    if args.report || args.compare || json.is_some() {
        let record = RunRecord {
            command: args.command.iter().map(|w| w.to_string_lossy().into_owned()).collect(),
            code,
            mode: under.config.policy.mode.as_str(),
            near: args.placement.near.to_string(),
            pin: args.pin.as_str(),
            pinned_by: binding.by,
            nothing_placed: nothing,
            processes,
            compare,
        };
        say(args, json, &record, terminal)?;
    }
    Ok(code)
}

/// What is preloaded without us: the allocator that was asked for, before what was there already.
fn before(args: &RunArgs, scratch: &Path) -> Result<Option<OsString>> {
    let before = output::preloaded();
    let Some(named) = &args.malloc else { return Ok(before) };
    let allocator = library::allocator(named)?;
    library::first(&allocator, before.as_deref(), scratch).map(Some)
}

fn look(name: &OsStr) -> Result<PathBuf, program::Refusal> {
    let found = program::find(name, &output::search_path())?;
    program::check(&found, program::Who::here())?;
    Ok(found)
}

fn say(args: &RunArgs, json: Option<Place>, record: &RunRecord, terminal: &Terminal) -> Result<()> {
    write_to(json, terminal, || Ok(json::pretty(Format::Run, record)? + "\n"))?;
    if args.report || args.compare {
        terminal.complain(words::report(record).trim_end());
    }
    Ok(())
}

/// Everything that a run under the library needs.
struct Under<'a> {
    args: &'a RunArgs,
    program: PathBuf,
    library: PathBuf,
    /// `LD_PRELOAD` of the program without the library.
    before: Option<OsString>,
    config: Config,
    scratch: &'a Path,
}

/// What a run left.
struct Ran {
    code: u8,
    processes: Vec<ProcessRecord>,
    compare: Option<Comparison>,
}

impl Under<'_> {
    fn run(&self, signals: &Signals, terminal: &Terminal) -> Result<Ran> {
        let config = self.scratch.join("config");
        std::fs::write(&config, self.config.to_bytes())
            .with_context(|| config.display().to_string())?;
        let before = self.before.clone();
        let preload = library::first(&self.library, before.as_deref(), self.scratch)?;
        if self.args.compare {
            let mut command = vec![self.program.clone().into_os_string()];
            command.extend(self.args.command[1..].iter().cloned());
            let with = Measured {
                preload: Some(preload),
                config: Some(&config),
                command: command.clone(),
            };
            let without = Measured { preload: before, config: None, command };
            let (scratch, budget) = (self.scratch, self.args.budget);
            let found = Sides { with, without, scratch, signals, budget }.compare(*terminal)?;
            if let Some(words) = found.failed {
                terminal.complain(&format!("isochrone: {words}"));
            }
            let Compared { code, processes, comparison, .. } = found;
            return Ok(Ran { code, processes, compare: comparison });
        }
        let program = Program::new(self.program.as_os_str(), &self.args.command)
            .with("LD_PRELOAD", Some(&preload))
            .with(CONFIG_VARIABLE, Some(config.as_os_str()));
        let code = signals.run(&program)?;
        Ok(Ran { code, processes: record::read_all(self.scratch)?, compare: None })
    }
}
