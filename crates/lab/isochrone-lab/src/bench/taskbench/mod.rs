//! `isochrone bench taskbench`: what a task costs, here and in systems that others use.
//!
//! Three questions. What is the time of an empty task, registered by one thread and run by any? What is it
//! in a graph on more workers than cores? And how
//! small may tasks of a graph get before half of the cores' time is lost (METG)? All systems run the same
//! graphs with the same work, check every input, and must end with the same number; work is counted in
//! turns of one generator, whose rate on this machine is measured in every block: one peak for all.

pub(super) mod child;
mod figures;
mod metg;
mod pace;
mod system;

use isochrone_console::written::scratch;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::{Context, Result};
use isochrone_stats::{Rng, derive_seed, rng, shuffle};
use isochrone_workloads::taskbench::{Graph, Pattern, spend};

use self::figures::{Answers, Cost, Crowded, EmptyCost, Figures, Sizes, Steps};
use self::metg::{Point, Search};
use self::pace::{Key, Pace};
use self::system::{OURS, Ranges, System, systems};
use super::setting::Setting;
use crate::args::TaskbenchArgs;

/// Blocks unless told otherwise.
const BLOCKS: u32 = 5;
/// Questions of one search for the smallest size, about.
const SEARCH: usize = 6;
/// Questions of empty tasks to one system: each kind has one that says how long they take.
const EMPTY: usize = 8;
/// Questions of a graph with more workers than cores.
const CROWDED: usize = 2;
/// Workers for each core there.
const CROWD_WORKERS: usize = 4;
/// Points of a step: with a thousand steps 10^5 tasks.
const CROWD_POINTS: u32 = 100;
/// The graph's place among the patterns, of which it is none.
const CROWD_PATTERN: usize = usize::MAX;
/// Turns of the generator that its rate is measured with.
const RATE_TURNS: u64 = 4_000_000;
/// Turns of a task at which the first search begins.
const FIRST_TURNS: u64 = 512;

pub(super) fn measure(args: &TaskbenchArgs, setting: &mut Setting<'_>) -> Result<Figures> {
    let cores = setting.cores(args.threads.map_or(usize::MAX, usize::from))?;
    let workers = args.threads.map_or(cores.len(), usize::from);
    let list: Vec<String> = cores.iter().map(|core| core.0.to_string()).collect();
    let scratch = scratch()?;
    setting.step("compiling peers");
    let stop = setting.stop();
    let (systems, missing) = systems(scratch.path(), &list.join(","), &args.peers, &stop)?;
    missing.iter().for_each(|line| setting.miss(line));
    let patterns =
        if args.patterns.is_empty() { Pattern::ALL.to_vec() } else { args.patterns.clone() };
    let searches = SEARCH * patterns.len() * args.widths.len();
    let questions = systems.len() * (EMPTY + CROWDED + searches);
    let mut bench = Bench {
        args,
        workers,
        systems,
        patterns,
        found: BTreeMap::new(),
        near: BTreeMap::new(),
        steps: BTreeMap::new(),
        costs: BTreeMap::new(),
        crowded: BTreeMap::new(),
        pace: Pace::new(questions, stop.left()),
        failures: BTreeMap::new(),
    };
    let seed = setting.seed();
    let blocks = args.common.blocks.unwrap_or(BLOCKS);
    for block in 0..blocks {
        if !bench.block(block, seed, setting)? {
            break;
        }
    }
    bench.note(blocks, setting);
    for (name, why) in &bench.failures {
        setting.miss(&format!("{name}: {why}"));
    }
    Ok(bench.figures(seed))
}

struct Bench<'a> {
    args: &'a TaskbenchArgs,
    workers: usize,
    systems: Vec<System>,
    patterns: Vec<Pattern>,
    /// Microseconds of each block, where a size was found.
    found: BTreeMap<Key, Vec<Option<f64>>>,
    /// Where the last search ended.
    near: BTreeMap<Key, u64>,
    /// The fewest steps that a graph was measured with.
    steps: BTreeMap<Key, u32>,
    /// What empty tasks cost, by system and kind.
    costs: BTreeMap<(String, Ranges), Vec<EmptyCost>>,
    /// Nanoseconds of a task in each block, and tasks of a run, where workers are more than cores.
    crowded: BTreeMap<String, Vec<(f64, u64)>>,
    /// How long questions take.
    pace: Pace,
    /// The first thing that went wrong with a system; it is not asked again.
    failures: BTreeMap<String, String>,
}

impl Bench<'_> {
    /// Every question to every system. False if the user has had enough.
    fn block(&mut self, block: u32, seed: u64, setting: &mut Setting<'_>) -> Result<bool> {
        let mut stream = rng(derive_seed(seed, u64::from(block)));
        let of = |what: &str| format!("block {}: {what}", block + 1);
        for ranges in [Ranges::None, Ranges::Three, Ranges::Overlapping, Ranges::Nested] {
            let ask = |bench: &mut Self, system: &System, setting: &Setting<'_>| {
                bench.empty(system, ranges, setting)
            };
            if !self.each_system(&mut stream, &of("empty tasks"), setting, ask)? {
                return Ok(false);
            }
        }
        if !self.each_system(&mut stream, &of("more workers than cores"), setting, Self::crowd)? {
            return Ok(false);
        }
        for pattern in 0..self.patterns.len() {
            for width in self.args.widths.clone() {
                let (turn, name) = (seconds_a_turn(), self.patterns[pattern].name());
                let ask = |bench: &mut Self, system: &System, setting: &Setting<'_>| {
                    bench.search(system, pattern, width, turn, setting)
                };
                let what = of(&format!("{name}, {width} points"));
                if !self.each_system(&mut stream, &what, setting, ask)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Asks every system once, in random order. False if the user has had enough.
    fn each_system(
        &mut self,
        stream: &mut impl Rng,
        what: &str,
        setting: &mut Setting<'_>,
        mut ask: impl FnMut(&mut Self, &System, &Setting<'_>) -> Result<()>,
    ) -> Result<bool> {
        let mut order: Vec<usize> = (0..self.systems.len()).collect();
        shuffle(&mut order, stream);
        for at in order {
            if !setting.keep_going() {
                return Ok(false);
            }
            let system = self.systems[at].clone();
            setting.step(&format!("{what}, {}", system.name));
            ask(self, &system, setting)?;
        }
        Ok(true)
    }

    /// Notes what each graph has. Only blocks count in which every system was asked.
    fn note(&mut self, blocks: u32, setting: &mut Setting<'_>) {
        let asked = self.systems.iter().filter(|s| !self.failures.contains_key(&s.name));
        let names: Vec<String> = asked.map(|system| system.name.clone()).collect();
        let empty = (OURS.to_owned(), Ranges::Three);
        let made = self.costs.get(&empty).map_or(0, Vec::len);
        setting.made("empty tasks", made, blocks);
        for (at, pattern) in self.patterns.clone().iter().enumerate() {
            for width in &self.args.widths {
                let key = |name: &String| (name.clone(), at, *width);
                let of = |name| self.found.get(&key(name)).map_or(0, Vec::len);
                let made = names.iter().map(of).min().unwrap_or(0);
                for name in &names {
                    self.found.entry(key(name)).or_default().truncate(made);
                }
                setting.made(&format!("{} of {width} points", pattern.name()), made, blocks);
            }
        }
    }

    /// An error of a peer is noted, one of ours is an error; a stop by the user is neither.
    fn outcome<T>(&mut self, of: &System, result: Result<T>, go: bool) -> Result<Option<T>> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(_) if !go => Ok(None),
            Err(error) if of.name == system::OURS || of.name == system::AGAIN => Err(error),
            Err(error) => {
                self.failures.insert(of.name.clone(), format!("{error:#}"));
                Ok(None)
            }
        }
    }

    fn empty(&mut self, system: &System, ranges: Ranges, setting: &Setting<'_>) -> Result<()> {
        if self.failures.contains_key(&system.name) {
            return Ok(());
        }
        if !system.answers(ranges) {
            return Ok(());
        }
        let key = (system.name.clone(), ranges);
        if !self.pace.knows_empty(&key) {
            let ran = system.empty(ranges, self.pace.probe_tasks(self.args.tasks), self.workers, 1);
            let Some(ran) = self.outcome(system, ran, setting.keep_going())? else { return Ok(()) };
            self.pace.note_empty(&key, self.pace.probe_tasks(self.args.tasks), &ran);
        }
        let (tasks, runs) = self.pace.empty(&key, self.args.tasks);
        let ran = system.empty(ranges, tasks, self.workers, runs);
        let Some(ran) = self.outcome(system, ran, setting.keep_going())? else { return Ok(()) };
        self.pace.note_empty(&key, tasks, &ran);
        let seconds: Vec<f64> = ran.iter().map(|run| run.seconds).collect();
        let others: Vec<f64> = ran.iter().map(|run| run.others).collect();
        let median = |values: &[f64]| isochrone_stats::median(values);
        if let Some((seconds, others)) = median(&seconds).zip(median(&others)) {
            let ns = seconds * 1e9 / tasks as f64;
            self.costs.entry(key).or_default().push(EmptyCost { ns, others, tasks });
        }
        Ok(())
    }

    /// A graph of tasks that do nothing, on several workers a core.
    fn crowd(&mut self, system: &System, setting: &Setting<'_>) -> Result<()> {
        if self.failures.contains_key(&system.name) || !system.shares_cores() {
            return Ok(());
        }
        let (workers, width) = (CROWD_WORKERS * self.workers, CROWD_POINTS);
        let key = (system.name.clone(), CROWD_PATTERN, width);
        // A system that was never asked says first how slow it is.
        let asked = if self.crowded.contains_key(&system.name) { 1 } else { CROWDED };
        let mut cost = None;
        for _ in 0..asked {
            let (steps, runs) = self.pace.graph(&key, self.args.steps, 0.0, workers);
            let graph = Graph { pattern: Pattern::Stencil1d, width, steps, turns: 0 };
            let ran = system.graph_unbound(graph, workers, runs);
            let Some(ran) = self.outcome(system, ran, setting.keep_going())? else { return Ok(()) };
            let seconds = isochrone_stats::median(&ran).context("no run counted")?;
            let tasks = graph.tasks();
            self.pace.note_graph(&key, seconds * workers as f64 / tasks as f64);
            cost = Some((seconds * 1e9 / tasks as f64, tasks));
        }
        self.crowded.entry(system.name.clone()).or_default().extend(cost);
        Ok(())
    }

    fn search(
        &mut self,
        system: &System,
        pattern: usize,
        width: u32,
        turn: f64,
        setting: &Setting<'_>,
    ) -> Result<()> {
        if self.failures.contains_key(&system.name) {
            return Ok(());
        }
        let key = (system.name.clone(), pattern, width);
        let (workers, most) = (self.workers, self.args.steps);
        let start = self.near.get(&key).or_else(|| self.nearest(&key)).copied();
        let fewest = Cell::new(most);
        let pace = &mut self.pace;
        let mut measure = |turns: u64| {
            let work = turns as f64 * turn;
            let (steps, runs) = pace.graph(&key, most, work, workers);
            let graph = Graph { pattern: self.patterns[pattern], width, steps, turns };
            let seconds = system.graph(graph, workers, runs)?;
            let seconds = isochrone_stats::median(&seconds).context("no run counted")?;
            let granularity = seconds * workers as f64 / graph.tasks() as f64;
            pace.note_graph(&key, granularity - work);
            fewest.set(fewest.get().min(steps));
            Ok(Point { granularity, efficiency: work / granularity })
        };
        // A system that was never asked says first how slow it is, in a few steps that do not count.
        let asked = match start {
            Some(_) => Ok(None),
            None => measure(FIRST_TURNS).map(Some),
        };
        let found = asked.and_then(|asked| {
            let first = asked.map_or(FIRST_TURNS, |point| turns_near(point, FIRST_TURNS));
            fewest.set(most);
            Search { start: start.unwrap_or(first), measure: &mut measure }.run()
        });
        let Some(found) = self.outcome(system, found, setting.keep_going())? else { return Ok(()) };
        if let Some(metg) = found {
            self.near.insert(key.clone(), metg.turns);
        }
        let steps = self.steps.entry(key.clone()).or_insert(most);
        *steps = fewest.get().min(*steps);
        self.found.entry(key).or_default().push(found.map(|metg| metg.seconds * 1e6));
        Ok(())
    }

    /// Where the same system's last search in a graph of as many points ended.
    fn nearest(&self, key: &Key) -> Option<&u64> {
        let alike = self.near.iter().filter(|(other, _)| other.0 == key.0 && other.2 == key.2);
        alike.map(|(_, turns)| turns).max()
    }

    fn figures(&self, seed: u64) -> Figures {
        let cost = |name: &str| Cost::of(&self.costs, name, seed);
        let sizes = |name: &str| {
            let mut all = Sizes::new();
            for ((system, pattern, width), values) in &self.found {
                if system == name {
                    let values: Vec<f64> = values.iter().copied().flatten().collect();
                    let by_width = all.entry(self.patterns[*pattern].name()).or_default();
                    by_width.insert(*width, values);
                }
            }
            all
        };
        let steps = |name: &str| {
            let mut all = Steps::new();
            for ((_, pattern, width), steps) in self.steps.iter().filter(|(key, _)| key.0 == name) {
                all.entry(self.patterns[*pattern].name()).or_default().insert(*width, *steps);
            }
            all
        };
        let names = self.systems.iter().map(|system| system.name.clone());
        let answers = names.map(|name| Answers {
            cost: cost(&name),
            sizes: sizes(&name),
            steps: steps(&name),
            name,
        });
        let mut crowded = self.crowded.clone();
        crowded.retain(|name, _| !self.failures.contains_key(name));
        let crowded = Crowded::new(CROWD_WORKERS * self.workers, CROWD_POINTS, &crowded, seed);
        Figures::new(self.workers, self.args, answers.collect(), crowded, seed)
    }
}

/// Turns at which a task's work would be as much as it costs beside.
fn turns_near(point: Point, turns: u64) -> u64 {
    let share = point.efficiency.clamp(0.001, 0.999);
    // A positive number below 2^40.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
    let near = (turns as f64 * (1.0 - share) / share) as u64;
    near.max(1)
}

/// How long one turn of the generator takes on this core now.
fn seconds_a_turn() -> f64 {
    let time = |seed: u64| {
        let begin = Instant::now();
        std::hint::black_box(spend(std::hint::black_box(seed), RATE_TURNS));
        begin.elapsed().as_secs_f64() / RATE_TURNS as f64
    };
    (1..=5).map(time).fold(f64::INFINITY, f64::min)
}
