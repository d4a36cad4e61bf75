//! `isochrone bench malloc`: whole programs under each allocator, each run a process of its own.
//!
//! The programs are prebuilt and named by a folder, or those that this machine has for other purposes; nothing is
//! downloaded or built here. An arm is an allocator preloaded into the program; glibc is what it has without. Ours is a
//! layer over another, so it has two arms over each: placing whatever is to be gained, and stepped aside since there is
//! nothing to place by. All arms run on the same cores. Single calls are timed beside them.

mod arms;
mod calls;
mod field;
mod programs;

use isochrone_report::json::Format;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use isochrone_console::turns::{Ratio, Series, Verdict, geometric_mean};
use isochrone_report::fmt;
use isochrone_report::table::{Cell as Text, Table};
use serde::Serialize;

use super::Setting;
use super::findings::Findings;
use super::rounds::{Cell, rounds};
use crate::args::MallocArgs;
use arms::{AGAIN, Arm, BASE, OURS};
pub(crate) use calls::malloc_calls;
use calls::{CallFigures, OfCalls};
use field::Field;
use isochrone_console::output::{WrongUsage, search_path};
use isochrone_console::run::record::ProcessRecord;
use programs::{COMMON, PROGRAMS, Program};

/// Blocks unless told otherwise: a run takes seconds, not milliseconds.
const BLOCKS: u32 = 5;
/// What is said where no folder was named.
const MORE: &str = "the programs of mimalloc-bench: build them (github.com/daanx/mimalloc-bench, folder bench) and \
                    name their folder with --programs; these are what this machine has";
/// What is said where there is no program at all.
const NOTHING: &str = "there is no program to run: build those of mimalloc-bench (github.com/daanx/mimalloc-bench, \
                       folder bench) and name their folder with --programs, or install perl, python3, sqlite3 or gawk";

/// One arm against glibc.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Against {
    /// How many times faster than glibc.
    over_glibc: Option<Ratio>,
    /// Peak resident memory over glibc's.
    rss_ratio: Option<Ratio>,
    /// Of our arms: the arm below.
    below: Option<String>,
    /// How many times faster than that, and its memory over that one's.
    over_below: Option<Ratio>,
    rss_over_below: Option<Ratio>,
}

/// One program.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Figures {
    /// By program; `null` for those that are not there or failed.
    programs: BTreeMap<String, Option<ProgramFigures>>,
    /// Over the programs, by arm.
    geometric_mean: BTreeMap<String, Option<f64>>,
    /// The program in which our library does worst, and its median.
    worst: Option<(String, f64)>,
    /// Of each of our arms over the allocator below: the mean, and where it does worst.
    over_below: BTreeMap<String, OverBelow>,
    /// Single calls of small objects; `null` where they were not asked for, or there was no time.
    calls: Option<CallFigures>,
}

/// One of our arms over the allocator below, over all programs.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct OverBelow {
    below: String,
    geometric_mean: Option<f64>,
    /// The program in which it is slowest, and its median.
    worst: Option<(String, f64)>,
    /// The program in which it takes most memory, and its median.
    most_memory: Option<(String, f64)>,
}

pub(super) fn measure(args: &MallocArgs, setting: &mut Setting<'_>) -> Result<Figures> {
    let folder = args.programs.as_deref().map(|folder| {
        folder.canonicalize().with_context(|| format!("--programs {}", folder.display()))
    });
    let folder = folder.transpose()?;
    let wanted = chosen(folder.is_some(), &args.only)?;
    let mut figures = Figures::default();
    let mut files = Vec::new();
    for program in wanted {
        figures.programs.insert(program.name.to_owned(), None);
        match place(folder.as_deref(), program) {
            Ok(file) => files.push((program, file)),
            Err(why) => setting.miss(&why),
        }
    }
    let names_calls = args.only.iter().any(|name| name == calls::NAME);
    if files.is_empty() && !names_calls {
        return Err(WrongUsage::error(NOTHING.to_owned()));
    }
    if folder.is_none() {
        setting.miss(MORE);
    }
    let mut field = Field::new(args, setting, folder)?;
    let wants_calls = names_calls || args.only.is_empty();
    let mut of_calls = wants_calls.then(|| OfCalls::new(&field, setting)).transpose()?;
    let under_way = |(program, file)| UnderWay::new(program, file, &field, setting);
    let mut under_way: Vec<UnderWay> = files.into_iter().map(under_way).collect();
    let blocks = args.common.blocks.unwrap_or(BLOCKS);
    let mut cells: Vec<&mut dyn Cell<Field>> =
        under_way.iter_mut().map(|program| program as &mut dyn Cell<Field>).collect();
    cells.extend(of_calls.iter_mut().map(|calls| calls as &mut dyn Cell<Field>));
    rounds(&mut cells, blocks, &mut field, setting);
    figures.calls = of_calls.and_then(|calls| calls.figures(&field, setting));
    for program in under_way {
        let name = program.program.name.to_owned();
        figures.programs.insert(name, program.figures(&field, setting));
    }
    figures.summarise(&field.arms);
    Ok(figures)
}

/// The programs that are asked for: those of a folder, or those that most machines have.
fn chosen(of_a_folder: bool, only: &[String]) -> Result<Vec<&'static Program>> {
    let all: &[Program] = if of_a_folder { &PROGRAMS } else { &COMMON };
    let names = || all.iter().map(|program| program.name).chain([calls::NAME]);
    if let Some(unknown) = only.iter().find(|name| !names().any(|known| known == *name)) {
        let (there, more) = (
            names().collect::<Vec<_>>().join(", "),
            if of_a_folder { "" } else { "; more with --programs DIR" },
        );
        return Err(WrongUsage::error(format!(
            "--only: there is no program `{unknown}`; there are {there}{more}"
        )));
    }
    let wanted = |p: &&Program| only.is_empty() || only.iter().any(|name| name == p.name);
    Ok(all.iter().filter(wanted).collect())
}

/// A program's file, or why it cannot be run.
fn place(folder: Option<&Path>, program: &Program) -> Result<PathBuf, String> {
    let name = program.name;
    let Some(folder) = folder else {
        let folders = search_path();
        let find = |file: &str| {
            let mut places = std::env::split_paths(&folders).map(|folder| folder.join(file));
            let found = places.find(|place| place.is_file());
            found.ok_or_else(|| format!("{name}: {file} is not installed"))
        };
        return find(name).and_then(|_| find(program.file));
    };
    let missing: Vec<&str> = program.files().filter(|file| !folder.join(file).is_file()).collect();
    if missing.is_empty() {
        return Ok(folder.join(program.file));
    }
    Err(format!("{name}: not in the folder of programs: {}", missing.join(", ")))
}

/// One program under way.
struct UnderWay {
    program: &'static Program,
    file: PathBuf,
    seed: u64,
    time: Series,
    /// Of every run, by arm, in the order of time.
    memory: Vec<(usize, Option<u64>)>,
    /// What the last run under our library left.
    last: Vec<ProcessRecord>,
}

impl UnderWay {
    fn new(
        program: &'static Program,
        file: PathBuf,
        field: &Field,
        setting: &mut Setting<'_>,
    ) -> Self {
        let names: Vec<String> = field.arms.iter().map(|arm| arm.name.clone()).collect();
        let unit = match program.cost {
            programs::Cost::Elapsed => "seconds",
            programs::Cost::Printed { .. } => "seconds for a fixed number of operations, printed",
            programs::Cost::Rate { .. } => "nanoseconds an operation, printed",
        };
        let (time, seed) = (Series::new(&names, unit), setting.seed());
        Self { program, file, seed, time, memory: Vec::new(), last: Vec::new() }
    }

    fn figures(self, field: &Field, setting: &mut Setting<'_>) -> Option<ProgramFigures> {
        let Self { program, time, memory, last, .. } = self;
        if time.blocks.is_empty() {
            return None;
        }
        let memory = time.with_costs(&memory, "peak resident bytes");
        let seed = setting.seed();
        // Memory is the other way round: above 1 it is worse than that of the other.
        let rss = |name: &str, of: &str| Ratio::of(memory.as_ref()?, of, name, seed);
        let shown = field.arms.iter().filter(|arm| arm.name != BASE && arm.name != AGAIN);
        let arms = shown.map(|arm| {
            let (name, below) = (arm.name.as_str(), arm.below.as_deref());
            let against = Against {
                over_glibc: Ratio::of(&time, name, BASE, seed),
                rss_ratio: rss(name, BASE),
                below: arm.below.clone(),
                over_below: below.and_then(|below| Ratio::of(&time, name, below, seed)),
                rss_over_below: below.and_then(|below| rss(name, below)),
            };
            (name.to_owned(), against)
        });
        let arms = arms.collect();
        let sum = |of: fn(&ProcessRecord) -> f64| {
            (!last.is_empty()).then(|| last.iter().map(of).sum::<f64>())
        };
        Some(ProgramFigures {
            program: program.name.to_owned(),
            arguments: program.arguments_on(field.cores.len()),
            arms,
            aa_control: Ratio::of(&time, AGAIN, BASE, seed),
            startup_us: sum(|record| record.startup_us),
            classification_us: sum(|record| record.classification_us),
            placed_share: last.iter().find_map(|record| record.placed_share),
            memory: memory.unwrap_or_else(|| Series { blocks: Vec::new(), ..time.clone() }),
            time,
        })
    }
}

impl Cell<Field> for UnderWay {
    fn what(&self) -> String {
        self.program.name.to_owned()
    }

    fn blocks(&self) -> usize {
        self.time.blocks.len()
    }

    fn block(&mut self, field: &mut Field, setting: &mut Setting<'_>) -> Result<()> {
        // Taken out while its runs are made.
        let mut time = std::mem::replace(&mut self.time, Series::new(&[], ""));
        let (seed, what) = (self.seed, self.what());
        let made = setting.block(&mut time, seed, &what, &mut |arm| {
            let outcome = field.once(self.program, &self.file, &field.arms[arm])?;
            self.memory.push((arm, outcome.rss));
            if field.arms[arm].name == OURS {
                self.last = outcome.records;
            }
            Ok(outcome.cost)
        });
        self.time = time;
        // A block that counts for nothing leaves no memory either.
        let counted: usize = self.time.blocks.iter().map(|block| block.runs.len()).sum();
        self.memory.truncate(counted);
        made.map(|_| ())
    }
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
        let over_below = arms.iter().filter_map(|arm| {
            let against = |program: &ProgramFigures| program.arms.get(&arm.name).cloned();
            let each = |ratio: fn(&Against) -> Option<Ratio>| -> Vec<(String, f64)> {
                let of =
                    |p: &&ProgramFigures| Some((p.program.clone(), ratio(&against(p)?)?.median));
                found.iter().filter_map(of).collect()
            };
            let speeds = each(|against| against.over_below);
            let memory = each(|against| against.rss_over_below);
            let medians: Vec<f64> = speeds.iter().map(|(_, median)| *median).collect();
            let summed = OverBelow {
                below: arm.below.clone()?,
                geometric_mean: geometric_mean(&medians),
                worst: speeds.into_iter().min_by(|a, b| a.1.total_cmp(&b.1)),
                most_memory: memory.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)),
            };
            Some((arm.name.clone(), summed))
        });
        self.over_below = over_below.collect();
    }

    /// Our arms beside the allocator below, one line each.
    fn layers(&self) -> String {
        let words = |of: &Option<(String, f64)>| match of {
            Some((program, ratio)) => format!("{} ({program})", fmt::ratio(*ratio)),
            None => "-".to_owned(),
        };
        let lines = self.over_below.iter().map(|(arm, over)| {
            format!(
                "\n{arm} over {}: {} in the mean, at least {}; memory at most {}",
                over.below,
                over.geometric_mean.map_or_else(|| "-".to_owned(), fmt::ratio),
                words(&over.worst),
                words(&over.most_memory)
            )
        });
        lines.collect()
    }
}

impl Findings for Figures {
    const FORMAT: Format = Format::BenchMalloc;

    fn text(&self, width: u16) -> String {
        let calls = self.calls.as_ref().map(|calls| calls.text(width));
        let programs = (!self.programs.is_empty()).then(|| self.of_programs(width));
        programs.into_iter().chain(calls).collect::<Vec<_>>().join("\n\n")
    }
}

impl Figures {
    fn of_programs(&self, width: u16) -> String {
        let arms: Vec<&String> = self.geometric_mean.keys().collect();
        let mut headers = vec!["speed over glibc".to_owned()];
        headers.extend(arms.iter().map(|arm| (*arm).clone()));
        headers.extend(["A/A control", "memory", "placed"].map(String::from));
        let mut table = Table::new(headers);
        for (name, program) in &self.programs {
            let mut row = vec![Text::text(name.clone())];
            let of = |arm: &String| program.as_ref().and_then(|p| p.arms.get(arm));
            let ratio = |ratio: Option<Ratio>| Text::maybe(ratio.map(|r| r.median), fmt::ratio);
            row.extend(arms.iter().map(|arm| ratio(of(arm).and_then(|a| a.over_glibc))));
            row.push(
                program
                    .as_ref()
                    .and_then(|p| p.aa_control)
                    .map_or_else(Text::missing, |aa| Text::number(aa.median, aa.to_string())),
            );
            row.push(ratio(of(&OURS.to_owned()).and_then(|a| a.rss_ratio)));
            row.push(Text::maybe(program.as_ref().and_then(|p| p.placed_share), fmt::percent));
            table.row(row);
        }
        let mut mean = vec![Text::text("geometric mean")];
        mean.extend(arms.iter().map(|a| Text::maybe(self.geometric_mean[*a], fmt::ratio)));
        table.row(mean);
        let mut text = table.to_terminal(width);
        text.push_str(&self.losses());
        text.push_str(&self.layers());
        text
    }

    /// Where our library is slower than glibc beyond the control.
    fn losses(&self) -> String {
        let lost = |program: &&ProgramFigures| {
            let ratio = program.arms.get(OURS).and_then(|against| against.over_glibc);
            ratio.is_some_and(|ratio| ratio.verdict(program.aa_control) == Verdict::Loss)
        };
        let few = |program: &ProgramFigures| {
            let ratio = program.arms.get(OURS).and_then(|against| against.over_glibc);
            ratio.is_some_and(|ratio| !ratio.has_interval())
        };
        if self.programs.values().flatten().any(few) {
            return "\ntoo few blocks to say where isochrone is slower than glibc".to_owned();
        }
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

#[cfg(test)]
mod tests {
    use super::super::fixtures::{fits, ratio, series};
    use super::*;

    #[test]
    fn tables_fit_a_terminal() {
        let ours = Path::new("ours.so");
        let mut arms = arms::plain_and_ours("glibc", None, ours);
        arms.extend(arms::plain_and_ours("mimalloc", Some(PathBuf::from("mimalloc.so")), ours));
        arms.extend(["jemalloc", "tcmalloc"].map(|name| Arm::plain(name, None)));
        let against = Against {
            over_glibc: ratio(),
            rss_ratio: ratio(),
            below: None,
            over_below: ratio(),
            rss_over_below: ratio(),
        };
        let found = ProgramFigures {
            program: "cache-scratch".to_owned(),
            arguments: Vec::new(),
            arms: arms.iter().skip(2).map(|arm| (arm.name.clone(), against.clone())).collect(),
            aa_control: ratio(),
            startup_us: None,
            classification_us: None,
            placed_share: Some(0.9876),
            time: series(&[BASE], 6),
            memory: series(&[BASE], 6),
        };
        let programs = [("cache-scratch".to_owned(), Some(found)), ("larson".to_owned(), None)];
        let mut figures = Figures { programs: programs.into(), ..Figures::default() };
        figures.summarise(&arms);
        assert_eq!(figures.over_below.len(), 4, "placing and stepped aside, over two");
        assert!(figures.text(80).contains("mimalloc + isochrone over mimalloc"));
        fits(&figures);
    }
}
