//! `isochrone bench malloc`: whole programs under each allocator, each run a process of its own.
//!
//! The programs are prebuilt and named by a folder; nothing is downloaded or built here. An arm is
//! an allocator preloaded into the program; glibc is what it has without. All arms run on the same
//! cores.

mod programs;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use isochrone_alloc::Mode;
use isochrone_malloc::Pin;
use isochrone_report::fmt;
use isochrone_report::table::{Cell, Table};
use serde::Serialize;

use super::Findings;
use super::Setting;
use super::peers::PEERS;
use super::ratio::{Ratio, Verdict, geometric_mean};
use super::series::Series;
use crate::args::MallocArgs;
use crate::run::record::{ProcessRecord, read_all};
use crate::run::usage::{self, Measured};
use crate::run::{library, setup};
use programs::{PROGRAMS, Program};

/// Blocks unless told otherwise: a run takes seconds, not milliseconds.
const BLOCKS: u32 = 3;
const BASE: &str = "glibc";
const AGAIN: &str = "glibc again";
const OURS: &str = "isochrone";

/// One arm against glibc.
#[derive(Clone, Debug, Serialize)]
struct Against {
    /// How many times faster than glibc.
    over_glibc: Option<Ratio>,
    /// Peak resident memory over glibc's.
    rss_ratio: Option<Ratio>,
}

/// One program.
#[derive(Clone, Debug, Serialize)]
struct ProgramFigures {
    program: String,
    arguments: Vec<String>,
    arms: BTreeMap<String, Against>,
    aa_control: Option<Ratio>,
    /// What the library cost in the program's last run.
    startup_us: Option<f64>,
    classification_us: Option<f64>,
    placed_share: Option<f64>,
    time: Series,
    memory: Series,
}

/// All programs.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Figures {
    /// By program; `null` for those that are not there or failed.
    programs: BTreeMap<String, Option<ProgramFigures>>,
    /// Over the programs, by arm.
    geometric_mean: BTreeMap<String, Option<f64>>,
    /// The program in which our library does worst, and its median.
    worst: Option<(String, f64)>,
}

/// An allocator to preload.
#[derive(Clone, Debug)]
struct Arm {
    name: String,
    preload: Option<PathBuf>,
}

pub(super) fn measure(args: &MallocArgs, setting: &mut Setting<'_>) -> Result<Figures> {
    let mut figures = Figures::default();
    let Some(folder) = &args.programs else {
        setting.miss(
            "no programs: build those of mimalloc-bench (github.com/daanx/mimalloc-bench, folder \
             bench) and name their folder with --programs",
        );
        figures.programs.extend(PROGRAMS.iter().map(|p| (p.name.to_owned(), None)));
        return Ok(figures);
    };
    let folder = folder.canonicalize().with_context(|| folder.display().to_string())?;
    let wanted = chosen(&args.only)?;
    let field = Field::new(args, setting, folder)?;
    for program in wanted {
        if !setting.keep_going() {
            break;
        }
        let found = match field.missing(program) {
            Some(why) => {
                setting.miss(&why);
                None
            }
            None => match field.program(program, setting) {
                Ok(found) => found,
                Err(error) => {
                    setting.miss(&format!("{}: {error:#}", program.name));
                    None
                }
            },
        };
        figures.programs.insert(program.name.to_owned(), found);
    }
    figures.summarise(&field.arms);
    Ok(figures)
}

fn chosen(only: &[String]) -> Result<Vec<&'static Program>> {
    let names = || PROGRAMS.iter().map(|program| program.name);
    if let Some(unknown) = only.iter().find(|name| !names().any(|known| known == *name)) {
        bail!(
            "there is no program `{unknown}`; there are {}",
            names().collect::<Vec<_>>().join(", ")
        );
    }
    let wanted = |p: &&Program| only.is_empty() || only.iter().any(|name| name == p.name);
    Ok(PROGRAMS.iter().filter(wanted).collect())
}

/// What all programs are run with.
struct Field {
    folder: PathBuf,
    arms: Vec<Arm>,
    config: PathBuf,
    scratch: tempfile::TempDir,
    cores: Vec<u16>,
    blocks: u32,
    limit_s: u32,
}

/// What one run gave.
struct Outcome {
    cost: f64,
    rss: Option<u64>,
    records: Vec<ProcessRecord>,
}

impl Field {
    fn new(args: &MallocArgs, setting: &mut Setting<'_>, folder: PathBuf) -> Result<Self> {
        let scratch = tempfile::tempdir().context("there is no place for temporary files")?;
        let found = setting.atlas(scratch.path())?;
        let placement = &args.placement;
        let policy = setup::policy(Mode::Aware, placement, &found.contents);
        let mut config =
            setup::config(policy, placement, &found.contents, &found.path, scratch.path())?;
        config.pin = Pin::Compact;
        // What placing costs is to be seen where it gains nothing, too.
        config.force = true;
        let cores = setting.cores(usize::MAX)?;
        config.cores = isochrone_malloc::CoreList::new(&cores).context("too many cores")?;
        let place = scratch.path().join("config");
        std::fs::write(&place, config.to_bytes())?;
        let ours = library::find(args.preload.as_deref())?;
        let mut arms = vec![
            Arm { name: BASE.into(), preload: None },
            Arm { name: AGAIN.into(), preload: None },
            Arm { name: OURS.into(), preload: Some(ours) },
        ];
        for peer in PEERS {
            match peer.find() {
                Some(path) => arms.push(Arm { name: peer.name.into(), preload: Some(path) }),
                None => setting.miss(&peer.advice()),
            }
        }
        Ok(Self {
            folder,
            arms,
            config: place,
            scratch,
            cores: cores.iter().map(|core| core.0).collect(),
            blocks: args.common.blocks.unwrap_or(BLOCKS),
            limit_s: args.limit,
        })
    }

    /// Why a program cannot be run, if it cannot.
    fn missing(&self, program: &Program) -> Option<String> {
        let files = std::iter::once(program.name).chain(program.input);
        let absent = |file: &&str| !self.folder.join(file).is_file();
        let missing: Vec<&str> = files.filter(absent).collect();
        (!missing.is_empty()).then(|| {
            format!("{}: not in the folder of programs: {}", program.name, missing.join(", "))
        })
    }

    fn program(
        &self,
        program: &'static Program,
        setting: &mut Setting<'_>,
    ) -> Result<Option<ProgramFigures>> {
        let names: Vec<String> = self.arms.iter().map(|arm| arm.name.clone()).collect();
        let mut memory: Vec<(usize, Option<u64>)> = Vec::new();
        let mut last = Vec::new();
        let unit = match program.cost {
            programs::Cost::Elapsed => "seconds",
            programs::Cost::Printed { .. } => "seconds for a fixed number of operations, printed",
            programs::Cost::Rate { .. } => "nanoseconds an operation, printed",
        };
        let time = setting.series(&names, unit, self.blocks, program.name, &mut |arm| {
            let outcome = self.once(program, &self.arms[arm])?;
            memory.push((arm, outcome.rss));
            if self.arms[arm].name == OURS {
                last = outcome.records;
            }
            Ok(outcome.cost)
        })?;
        if time.blocks.is_empty() {
            return Ok(None);
        }
        let memory = time.with_costs(&memory, "peak resident bytes");
        let seed = setting.seed();
        let arms = names.iter().filter(|name| *name != BASE && *name != AGAIN).map(|name| {
            // Memory is the other way round: above 1 it is worse than glibc's.
            let rss_ratio = memory.as_ref().and_then(|m| Ratio::of(m, BASE, name, seed));
            (name.clone(), Against { over_glibc: Ratio::of(&time, name, BASE, seed), rss_ratio })
        });
        let sum = |of: fn(&ProcessRecord) -> f64| {
            (!last.is_empty()).then(|| last.iter().map(of).sum::<f64>())
        };
        Ok(Some(ProgramFigures {
            program: program.name.to_owned(),
            arguments: program.arguments_on(self.cores.len()),
            arms: arms.collect(),
            aa_control: Ratio::of(&time, AGAIN, BASE, seed),
            startup_us: sum(|record| record.startup_us),
            classification_us: sum(|record| record.classification_us),
            placed_share: last.iter().find_map(|record| record.placed_share),
            memory: memory.unwrap_or_else(|| Series { blocks: Vec::new(), ..time.clone() }),
            time,
        }))
    }

    fn once(&self, program: &Program, arm: &Arm) -> Result<Outcome> {
        let out = self.scratch.path().join("usage.json");
        let printed = self.scratch.path().join("output.txt");
        for record in std::fs::read_dir(self.scratch.path())?.flatten() {
            if record.path().to_string_lossy().ends_with(isochrone_malloc::REPORT_SUFFIX) {
                std::fs::remove_file(record.path())?;
            }
        }
        let preload = match &arm.preload {
            Some(path) => Some(library::first(path, None, self.scratch.path())?),
            None => None,
        };
        let mut words = vec![self.folder.join(program.name).into_os_string()];
        words.extend(program.arguments_on(self.cores.len()).into_iter().map(Into::into));
        let ours = arm.name == OURS;
        let measured =
            Measured { preload, config: ours.then_some(self.config.as_path()), command: words };
        let input =
            program.input.map_or_else(|| PathBuf::from("/dev/null"), |f| self.folder.join(f));
        let mut command = measured.command(&out, Some(&self.cores), Some(self.limit_s))?;
        run_quietly(&mut command, &self.folder, &input, &printed)
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
        let records = if ours { read_all(self.scratch.path())? } else { Vec::new() };
        Ok(Outcome { cost, rss: usage.peak_rss_bytes, records })
    }
}

fn run_quietly(command: &mut Command, folder: &Path, input: &Path, printed: &Path) -> Result<()> {
    let output = File::create(printed)?;
    let status = command
        .current_dir(folder)
        .stdin(Stdio::from(File::open(input).with_context(|| input.display().to_string())?))
        .stdout(Stdio::from(output.try_clone()?))
        .stderr(Stdio::from(output))
        .status()?;
    ensure!(status.code().is_some(), "the run was killed");
    Ok(())
}

impl Figures {
    fn summarise(&mut self, arms: &[Arm]) {
        let found: Vec<&ProgramFigures> = self.programs.values().flatten().collect();
        let median = |program: &ProgramFigures, arm: &str| {
            program.arms.get(arm).and_then(|against| against.over_glibc).map(|ratio| ratio.median)
        };
        for arm in arms.iter().filter(|arm| arm.name != BASE && arm.name != AGAIN) {
            let all: Option<Vec<f64>> = found.iter().map(|p| median(p, &arm.name)).collect();
            let mean = all.and_then(|medians| geometric_mean(&medians));
            self.geometric_mean.insert(arm.name.clone(), mean);
        }
        let ours = found.iter().filter_map(|p| Some((p.program.clone(), median(p, OURS)?)));
        self.worst = ours.min_by(|a, b| a.1.total_cmp(&b.1));
    }
}

impl Findings for Figures {
    fn text(&self, width: u16) -> String {
        let arms: Vec<&String> = self.geometric_mean.keys().collect();
        let mut headers = vec!["speed over glibc".to_owned()];
        headers.extend(arms.iter().map(|arm| (*arm).clone()));
        headers.extend(["A/A control", "memory", "placed"].map(String::from));
        let mut table = Table::new(headers);
        for (name, program) in &self.programs {
            let mut row = vec![Cell::text(name.clone())];
            let of = |arm: &String| program.as_ref().and_then(|p| p.arms.get(arm));
            let ratio = |ratio: Option<Ratio>| Cell::maybe(ratio.map(|r| r.median), fmt::ratio);
            row.extend(arms.iter().map(|arm| ratio(of(arm).and_then(|a| a.over_glibc))));
            row.push(
                program.as_ref().and_then(|p| p.aa_control).map_or_else(Cell::missing, |aa| {
                    Cell::number(aa.median, format!("[{:.3}, {:.3}]", aa.lo, aa.hi))
                }),
            );
            row.push(ratio(of(&OURS.to_owned()).and_then(|a| a.rss_ratio)));
            row.push(Cell::maybe(program.as_ref().and_then(|p| p.placed_share), fmt::percent));
            table.row(row);
        }
        let mut mean = vec![Cell::text("geometric mean")];
        mean.extend(arms.iter().map(|a| Cell::maybe(self.geometric_mean[*a], fmt::ratio)));
        table.row(mean);
        let mut text = table.to_terminal(width);
        text.push_str(&self.losses());
        text
    }
}

impl Figures {
    /// Where our library is slower than glibc beyond the control.
    fn losses(&self) -> String {
        let lost = |program: &&ProgramFigures| {
            let ratio = program.arms.get(OURS).and_then(|against| against.over_glibc);
            ratio.is_some_and(|ratio| ratio.verdict(program.aa_control) == Verdict::Loss)
        };
        let names: Vec<&str> =
            self.programs.values().flatten().filter(lost).map(|p| p.program.as_str()).collect();
        match (names.is_empty(), &self.worst) {
            (_, None) => String::new(),
            (true, Some(_)) => "\nisochrone is nowhere slower than glibc beyond the control".into(),
            (false, Some((worst, by))) => format!(
                "\nisochrone is slower than glibc beyond the control in {}; worst is {worst} at {}",
                names.join(", "),
                fmt::ratio(*by)
            ),
        }
    }
}
