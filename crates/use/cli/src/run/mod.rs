//! `isochrone run`: a program under the library, as if it were run directly, and what was placed.
//!
//! Everything that could make the library be ignored in silence is found out before the program
//! starts. Failures of our own have exit code 125, so that they are told from the program's.

mod before;
mod compare;
mod elf;
pub(crate) mod judge;
pub(crate) mod mpi;
mod outcome;
mod own;
mod paged;
pub(crate) mod program;
mod words;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result};
use isochrone_alloc::Policy;
use isochrone_console::run::{aside, atlas, library, record, setup, signals, start, usage};
use isochrone_malloc::{CONFIG_VARIABLE, Config, CoreList};
use isochrone_probe::awake::Awake;
use isochrone_report::json::{self, Format};
use isochrone_units::CoreId;

#[cfg(test)]
pub(crate) use mpi::JobRecord;
#[cfg(test)]
pub(crate) use paged::PagedRecord;

use crate::args::RunArgs;
use atlas::Limits;
use before::before;
use compare::{Compared, Comparison, Sides};
use isochrone_console::output::{self, Terminal};
use isochrone_console::written::{Place, scratch, write_to};
use judge::Judgement;
pub(crate) use outcome::RunRecord;
use record::ProcessRecord;
use setup::Binding;
use signals::Signals;
use start::Program;
use usage::Measured;

/// What the shell sees where isochrone itself failed, as with env(1) and timeout(1).
const OWN_FAILURE: u8 = 125;

/// Runs the command.
pub(crate) fn run(args: &RunArgs, terminal: &Terminal) -> ExitCode {
    match prepared(args, terminal).or_else(|error| program::not_started(error, terminal)) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            terminal.complain(&format!("isochrone: {}", output::words(&error)));
            ExitCode::from(OWN_FAILURE)
        }
    }
}

fn prepared(args: &RunArgs, terminal: &Terminal) -> Result<u8> {
    let name = args.command.first().context("no program was named")?;
    if let Some(fast_bytes) = args.fast_memory {
        let [json] = Place::open_all([args.json.asked()])?;
        return paged::run(args, name, fast_bytes, json, terminal);
    }
    let (program, fit) = match look(name) {
        Ok(found) => found,
        Err(refusal) => return Ok(refusal.said(terminal)),
    };
    let [json] = Place::open_all([args.json.asked()])?;
    if args.mpi {
        return mpi::run(args, &program, json, terminal);
    }
    let signals = Signals::hold()?;
    let ended = placed(args, program, &fit, json, &signals, terminal);
    match (ended, signals.wish()?) {
        (Ok(Ended::Code(code)), _) | (Ok(Ended::Nothing(_)), Some(code)) => Ok(code),
        (Ok(Ended::Nothing(program)), None) => {
            signals.release()?;
            Err(program.replace_us())
        }
        // Who measures this machine is ended, and that is why there is no atlas.
        (Err(_), Some(code)) => Ok(code),
        (Err(error), None) => Err(error),
    }
}

/// What came of it.
enum Ended {
    /// The program's exit code.
    Code(u8),
    /// There is nothing to do and nothing to say: this process is to become the program.
    Nothing(Program),
}

/// Runs the program with what it gains; whatever has to be made for it goes before this returns.
fn placed(
    args: &RunArgs,
    program: PathBuf,
    fit: &program::Fit,
    json: Option<Place>,
    signals: &Signals,
    terminal: &Terminal,
) -> Result<Ended> {
    let scratch = scratch()?;
    let before = before(args, scratch.path())?;
    let here = Here::find(args, scratch.path(), signals, terminal)?;
    let judgement = here.judgement(args)?;
    let is_alone = judgement.as_ref().is_some_and(|judgement| !judgement.places);
    if let Some(judgement) = &judgement {
        let forced = if is_alone { " (--force places all the same)" } else { "" };
        terminal.complain(&format!("isochrone: {}{forced}", judgement.why));
    }
    if let Some(words) = fit.allocator.filter(|_| !is_alone) {
        terminal.complain(&format!("isochrone: the program brings its own allocator: {words}"));
    }
    let is_watched = args.report || args.compare || json.is_some() || args.host.awake;
    if is_alone && !is_watched && !lies_in(before.as_deref(), scratch.path()) {
        return Ok(Ended::Nothing(unchanged(&program, args, before.as_deref())));
    }
    let binding = setup::binding(args.pin.into(), here.cores.clone(), &here.found.atlas.atlas()?);
    let config = Config {
        promised: judgement.as_ref().is_some_and(|judgement| judgement.places),
        ..here.config(args, &binding, scratch.path())?
    };
    let under = Under { args, program, before, config, scratch: scratch.path() };
    let _awake = args.host.awake.then(|| Awake::start(under.config.cores.as_slice()));
    let ran = if is_alone { under.alone(signals)? } else { under.run(signals, terminal)? };
    for line in [words::ended(&ran.processes), words::forced(&ran.processes)].iter().flatten() {
        terminal.complain(line);
    }
    let code = ran.code;
    if args.report || args.compare || json.is_some() {
        let record = RunRecord {
            command: args.command.iter().map(|w| w.to_string_lossy().into_owned()).collect(),
            code,
            mode: under.config.policy.mode.as_str(),
            near: args.placement.near.to_string(),
            pin: args.pin.as_str(),
            pinned_by: binding.by,
            nothing_placed: judgement.as_ref().filter(|_| is_alone).map(|found| found.why.clone()),
            judgement,
            own_allocator: fit.allocator,
            seconds: ran.seconds,
            malloc_calls_per_s: ran.calls_per_s(),
            processes: ran.processes,
            compare: ran.compare,
        };
        say(args, json, &record, terminal)?;
    }
    Ok(Ended::Code(code))
}

/// What is known of this machine, and how a program is to be placed on it.
struct Here {
    found: atlas::Found,
    policy: Policy,
    cores: Vec<CoreId>,
}

impl Here {
    fn find(
        args: &RunArgs,
        scratch: &Path,
        signals: &Signals,
        terminal: &Terminal,
    ) -> Result<Self> {
        if args.preload.is_some() {
            // What was named and is not there is said before anything is measured.
            library::find(args.preload.as_deref())?;
        }
        // Where signals cannot be read, nobody is known to want an end.
        let stop = || matches!(signals.wish(), Ok(Some(_)));
        let mut found = atlas::find(args.host.atlas.as_deref(), scratch, terminal, &stop)?;
        if args.fresh {
            let limits = Limits { time_for_a_map: &|| true, stop: &stop };
            let cores = setup::cores(&found.contents)?;
            found =
                atlas::fresh(&found, &cores, scratch, terminal, &limits)?.found.unwrap_or(found);
        }
        let mut policy = setup::policy(args.mode.into(), &args.placement, &found.contents);
        policy.checked = args.check;
        let cores = setup::cores(&found.contents)?;
        Ok(Self { found, policy, cores })
    }

    /// What the atlas promises; nothing where nobody asks.
    fn judgement(&self, args: &RunArgs) -> Result<Option<Judgement>> {
        if args.force || args.aside {
            return Ok(None);
        }
        judge::of(&self.found, &self.policy, &self.cores).map(Some)
    }

    fn config(&self, args: &RunArgs, binding: &Binding, scratch: &Path) -> Result<Config> {
        let contents = &self.found.contents;
        let strange = args.aside.then(|| aside::atlas(contents, scratch)).transpose()?;
        let path = strange.as_ref().unwrap_or(&self.found.path);
        Ok(Config {
            pin: binding.pin,
            cores: CoreList::new(&binding.cores).context("too many cores")?,
            force: args.force,
            bindings: setup::bindings(scratch)?,
            ..setup::config(self.policy, &args.placement, contents, path, scratch)?
        })
    }
}

/// Whether what is preloaded lies in our folder, which must then be there as long as the program.
fn lies_in(preloaded: Option<&OsStr>, scratch: &Path) -> bool {
    let folder = scratch.as_os_str().as_bytes();
    preloaded.is_some_and(|value| value.as_bytes().windows(folder.len()).any(|part| part == folder))
}

/// The program as if nobody stood before it. An environment in which nothing is changed keeps even its order.
fn unchanged(path: &Path, args: &RunArgs, preload: Option<&OsStr>) -> Program {
    let program = Program::new(path.as_os_str(), &args.command);
    let changed = preload != output::preloaded().as_deref();
    if changed { program.with("LD_PRELOAD", preload) } else { program }
}

fn look(name: &OsStr) -> Result<(PathBuf, program::Fit), program::Refusal> {
    let found = program::find(name, &output::search_path())?;
    let fit = program::check(&found, program::Who::here())?;
    Ok((found, fit))
}

fn say(args: &RunArgs, json: Option<Place>, record: &RunRecord, terminal: &Terminal) -> Result<()> {
    if args.report || args.compare {
        terminal.complain(words::report(record).trim_end());
    }
    write_to(json, terminal, || Ok(json::pretty(Format::Run, record)? + "\n"))
}

/// Everything that a run under the library needs.
struct Under<'a> {
    args: &'a RunArgs,
    program: PathBuf,
    /// `LD_PRELOAD` of the program without the library.
    before: Option<OsString>,
    config: Config,
    scratch: &'a Path,
}

/// What a run left.
struct Ran {
    code: u8,
    /// Nothing where the program was run more than once.
    seconds: Option<f64>,
    processes: Vec<ProcessRecord>,
    compare: Option<Comparison>,
}

impl Ran {
    /// Objects that were asked for in each second, where all were counted.
    fn calls_per_s(&self) -> Option<f64> {
        let counted = |process: &ProcessRecord| process.placed_no_more.is_none();
        let known = !self.processes.is_empty() && self.processes.iter().all(counted);
        let calls: u64 = self.processes.iter().map(ProcessRecord::calls).sum();
        self.seconds.filter(|seconds| known && *seconds > 0.0).map(|seconds| calls as f64 / seconds)
    }
}

impl Under<'_> {
    /// The program without the library.
    fn alone(&self, signals: &Signals) -> Result<Ran> {
        let program = Program::new(self.program.as_os_str(), &self.args.command)
            .with("LD_PRELOAD", self.before.as_deref());
        let begin = Instant::now();
        let code = signals.run(&program)?;
        let seconds = Some(begin.elapsed().as_secs_f64());
        Ok(Ran { code, seconds, processes: Vec::new(), compare: None })
    }

    fn run(&self, signals: &Signals, terminal: &Terminal) -> Result<Ran> {
        let config = self.scratch.join("config");
        std::fs::write(&config, self.config.to_bytes())
            .with_context(|| config.display().to_string())?;
        let before = self.before.clone();
        let library = library::find(self.args.preload.as_deref())?;
        let preload = library::first(&library, before.as_deref(), self.scratch)?;
        if self.args.compare {
            let mut command = vec![self.program.clone().into_os_string()];
            command.extend(self.args.command[1..].iter().cloned());
            let with = Measured {
                preload: Some(preload),
                config: Some(&config),
                command: command.clone(),
                ..Measured::default()
            };
            let without = Measured { preload: before, command, ..Measured::default() };
            let (scratch, budget) = (self.scratch, self.args.budget);
            let found = Sides { with, without, scratch, signals, budget }.compare(*terminal)?;
            if let Some(words) = found.failed {
                terminal.complain(&format!("isochrone: {words}"));
            }
            let Compared { code, processes, comparison, .. } = found;
            return Ok(Ran { code, seconds: None, processes, compare: comparison });
        }
        let program = Program::new(self.program.as_os_str(), &self.args.command)
            .with("LD_PRELOAD", Some(&preload))
            .with(CONFIG_VARIABLE, Some(config.as_os_str()));
        let begin = Instant::now();
        let code = signals.run(&program)?;
        let seconds = Some(begin.elapsed().as_secs_f64());
        Ok(Ran { code, seconds, processes: record::read_all(self.scratch)?, compare: None })
    }
}
