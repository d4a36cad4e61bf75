//! `isochrone advise --try`: which lever makes a program faster, by runs that take turns.
//!
//! The program is run under each lever once, and those that it does not get along with are left out. Then all others
//! take turns with the plain program and its control, and the best of them again on fresh blocks, which alone say
//! whether it gains (`stages`, `verdict`).

pub(super) mod levers;
mod record;
mod runs;
mod stages;
#[cfg(test)]
mod tests;
mod verdict;
mod words;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use isochrone_console::codes;
use isochrone_console::output::{self, Terminal, WrongUsage};
use isochrone_console::progress::{Interrupt, Progress};
use isochrone_console::run::atlas::{self, Found};
use isochrone_console::written::{Place, each_written, on_stdout, scratch, write_to};
use isochrone_host::{SysRoot, machine_state, this_machine};
use isochrone_machine::Machine;
use isochrone_report::fmt;
use isochrone_report::json::{self, Format};

pub(crate) use record::Figures;

use super::kept;
use super::words::several;
use crate::args::AdviseArgs;
use crate::run::program;
use levers::{Around, How, Lever};
use record::Trial;
use runs::Program;
use stages::{CONTROL, PLAIN, Runs as _, SCREENED, Stage, Turn, fresh_blocks, stage};

/// The share of the time after which no other block of all levers is begun: what follows needs more runs of fewer arms.
const SCREENING: f64 = 0.45;
/// Where nothing is to be read.
const NOTHING: &str = "/dev/null";

/// Runs `advise --try`.
pub(super) fn run(args: &AdviseArgs, terminal: &Terminal) -> Result<ExitCode> {
    let places = Place::open_all([args.html.asked(), args.json.asked()])?;
    let alone = on_stdout(&places);
    let [html, json] = places;
    let input = input(args)?;
    let interrupt = Interrupt::install();
    let scratch = scratch()?;
    let path = found_program(args)?;
    let known = atlas::known(args.atlas.as_deref(), terminal)?;
    let machine = machine(known.as_ref())?;
    let levers = levers(args, &path, &machine, known.as_ref(), scratch.path())?;
    let tried = tried(args, &path, input, &levers, scratch.path(), interrupt, terminal)?;
    let Some(trial) = tried else {
        terminal.complain(
            "isochrone: interrupted: not all runs were made, and nothing is said of the others",
        );
        return Ok(ExitCode::from(codes::INTERRUPTED));
    };
    let figures = Figures::of(args, &machine.title, &levers, &trial);
    kept::keep(&figures.program, Format::AdviseTry, &figures, terminal);
    each_written([
        if alone { Ok(()) } else { terminal.say(&words::text(&figures, terminal.width)) },
        write_to(html, terminal, || Ok(words::page(&figures).render())),
        write_to(json, terminal, || Ok(json::pretty(Format::AdviseTry, &figures)?)),
    ])?;
    Ok(figures.code())
}

/// What each run reads.
fn input(args: &AdviseArgs) -> Result<PathBuf> {
    let Some(named) = &args.input else { return Ok(PathBuf::from(NOTHING)) };
    match named.metadata() {
        Ok(found) if found.is_file() => Ok(named.clone()),
        Ok(_) => Err(WrongUsage::error(format!(
            "--input {}: each run reads it from its beginning, so it must be a plain file",
            named.display()
        ))),
        Err(error) => Err(WrongUsage::error(format!("--input {}: {error}", named.display()))),
    }
}

fn found_program(args: &AdviseArgs) -> Result<PathBuf> {
    let name = args.command.first().context("no program was named")?;
    program::find(name, &output::search_path()).map_err(|refusal| anyhow::anyhow!(refusal.words))
}

fn machine(known: Option<&Found>) -> Result<Machine> {
    match known {
        Some(found) => Ok(found.contents.machine.clone()),
        None => Ok(this_machine(&SysRoot::live())?),
    }
}

/// The levers that are asked for.
fn levers(
    args: &AdviseArgs,
    path: &Path,
    machine: &Machine,
    found: Option<&Found>,
    scratch: &Path,
) -> Result<Vec<Lever>> {
    let around = Around {
        args,
        program: path,
        fit: program::check(path, program::Who::here()).map_err(|refusal| refusal.why),
        linked: program::linked(path),
        machine,
        state: &machine_state(&SysRoot::live()),
        found,
        scratch,
    };
    let all = levers::all(&around);
    let unknown = args.only.iter().find(|name| all.iter().all(|lever| lever.name != **name));
    if let Some(name) = unknown {
        let names: Vec<&str> = all.iter().map(|lever| lever.name).collect();
        return Err(WrongUsage::error(format!(
            "--only {name}: no lever is called so; there are {}",
            names.join(", ")
        )));
    }
    let is_asked =
        |lever: &Lever| args.only.is_empty() || args.only.iter().any(|name| name == lever.name);
    Ok(all.into_iter().filter(is_asked).collect())
}

/// Makes all runs; nothing where the user wants an end.
fn tried(
    args: &AdviseArgs,
    path: &Path,
    input: PathBuf,
    levers: &[Lever],
    scratch: &Path,
    interrupt: Interrupt,
    terminal: &Terminal,
) -> Result<Option<Trial>> {
    let begin = Instant::now();
    let usable: Vec<String> = levers
        .iter()
        .filter(|lever| lever.how.is_ok())
        .map(|lever| lever.name.to_owned())
        .collect();
    let mut program = Program {
        command: command(args, path),
        ways: ways(levers),
        input: &input,
        scratch,
        progress: Progress::new(interrupt.clone()),
        interrupt,
        until: begin + args.budget,
        stage_until: begin + args.budget,
        first: None,
        compares: false,
        made: 0,
    };
    let mut trial = Trial { seed: args.seed.unwrap_or_else(seed), ..Trial::default() };
    if !usable.is_empty() {
        stages(args, usable, &mut program, &mut trial, terminal)?;
    }
    program.progress.finish();
    trial.seconds = begin.elapsed().as_secs_f64();
    trial.runs = program.made;
    if trial.runs > 0 {
        // By what runs took in the mean, as far as they were made.
        trial.needs_s = needed_s(trial.seconds / trial.runs as f64, trial.fit);
    }
    trial.compares = program.compares;
    Ok((!program.is_interrupted()).then_some(trial))
}

fn stages(
    args: &AdviseArgs,
    usable: Vec<String>,
    program: &mut Program<'_>,
    trial: &mut Trial,
    terminal: &Terminal,
) -> Result<()> {
    let begin = program.until.checked_sub(args.budget).unwrap_or(program.until);
    let Some(fit) = each_once(args, usable, program, trial)? else { return Ok(()) };
    let plain_s = program.first.map_or(0.0, |first| first.usage.seconds);
    trial.fit = fit.len();
    trial.needs_s = needed_s(plain_s, trial.fit);
    terminal.complain(&format!(
        "isochrone: {}, {} a run: about {} in all, and at most {}",
        several(trial.fit, "lever", "levers"),
        fmt::seconds(plain_s),
        fmt::seconds(trial.needs_s),
        fmt::seconds(args.budget.as_secs_f64())
    ));
    if fit.is_empty() {
        return Ok(());
    }
    program.stage_until = begin + args.budget.mul_f64(SCREENING);
    let screened = stage(&fit, SCREENED, trial.seed, program)?;
    trial.out.extend(screened.out.iter().cloned());
    let judged = verdict::all(&screened.series, trial.seed);
    trial.screened = judged.iter().map(|(name, judged)| (name.clone(), *judged)).collect();
    let best = verdict::best(&judged).map(str::to_owned);
    trial.screening = Some(screened);
    if let Some(best) = best.filter(|_| !program.is_interrupted()) {
        let fresh = again(&best, fit.len(), program, trial.seed)?;
        trial.out.extend(fresh.out.iter().cloned());
        trial.best = verdict::fresh(&fresh.series, &best, fit.len(), trial.seed)
            .map(|judged| (best, judged));
        trial.confirmation = Some(fresh);
    }
    Ok(())
}

/// The plain program twice and each lever once: those that the program gets along with. Nothing where the user wants
/// an end.
fn each_once(
    args: &AdviseArgs,
    usable: Vec<String>,
    program: &mut Program<'_>,
    trial: &mut Trial,
) -> Result<Option<Vec<String>>> {
    for plain in [PLAIN, CONTROL] {
        program.begins("the plain program");
        match program.run(plain)? {
            Turn::Took(_) => {}
            Turn::Over if program.is_interrupted() => return Ok(None),
            Turn::Over => bail!(
                "the program by itself takes longer than {} for all runs: a trial takes some hundred of them, so \
                 give it more time with --budget or less to do",
                fmt::seconds(args.budget.as_secs_f64())
            ),
            Turn::Fails(why) => bail!(
                "the program by itself, without any lever: {why}; nothing is tried (what ends with another code than \
                 0 by design can be wrapped: sh -c 'CMD; true')"
            ),
        }
    }
    let mut fit = Vec::new();
    for name in usable {
        program.begins(&format!("once: {name}"));
        match program.run(&name)? {
            Turn::Took(_) => fit.push(name),
            Turn::Fails(why) => trial.out.push((name, why)),
            Turn::Over => return Ok(if program.is_interrupted() { None } else { Some(fit) }),
        }
    }
    Ok(Some(fit))
}

/// The best lever beside the plain program and its control, in as much of the time as is left.
fn again(best: &str, levers: usize, program: &mut Program<'_>, seed: u64) -> Result<Stage> {
    program.stage_until = program.until;
    // Other orders than before.
    let seed = isochrone_stats::derive_seed(seed, 1);
    stage(std::slice::from_ref(&best.to_owned()), fresh_blocks(levers), seed, program)
}

/// Seconds that a trial of so many levers takes where each run takes so long and intervals are narrow at once.
fn needed_s(plain_s: f64, levers: usize) -> f64 {
    if levers == 0 {
        return 0.0;
    }
    (levers + 2 + runs_of(SCREENED.least, levers) + runs_of(fresh_blocks(levers).least, 1)) as f64
        * plain_s
}

/// Runs of so many blocks with the plain program and its control: each arm twice.
const fn runs_of(blocks: usize, levers: usize) -> usize {
    blocks * 2 * (levers + 2)
}

fn command(args: &AdviseArgs, path: &Path) -> Vec<OsString> {
    let words = args.command.iter().skip(1).cloned();
    std::iter::once(path.as_os_str().to_owned()).chain(words).collect()
}

fn ways(levers: &[Lever]) -> BTreeMap<String, How> {
    let plain = How { preload: output::preloaded(), ..How::default() };
    let arms = [PLAIN, CONTROL].map(|name| (name.to_owned(), plain.clone()));
    let of = |lever: &Lever| Some((lever.name.to_owned(), lever.how.clone().ok()?));
    arms.into_iter().chain(levers.iter().filter_map(of)).collect()
}

fn seed() -> u64 {
    let now: Duration = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.as_secs() << 20 ^ u64::from(now.subsec_nanos())
}
