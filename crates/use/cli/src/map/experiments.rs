//! The experiments one after the other, each with the time that `--quick` or a full map gives it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use isochrone_atlas_store::Experiment;
use isochrone_atlas_store::contents::{Clock, Contents, DriftEvent, LevelMap};
use isochrone_host::Meter;
use isochrone_machine::Cache;
use isochrone_os::mapping::{Backing, Mapping};
use isochrone_placement::{ColumnLatencies, Observed, PairLatencies, infer};
use isochrone_probe::bandwidth::{BandwidthOptions, BandwidthPlan, LiveTriad};
use isochrone_probe::block::{BlockPlan, UNKNOWN_CODE, map_blocks};
use isochrone_probe::live::LiveTarget;
use isochrone_probe::multiline::{MultilineOptions, MultilinePlan};
use isochrone_probe::region::{LiveRegions, Mode, RegionBuffers, RegionOptions, RegionPlan};
use isochrone_probe::target::{Target, TargetClock};
use isochrone_probe::terms::{Remote, TermsOptions, TermsPlan};
use isochrone_probe::transfer::{CAS_TRIPS, Kind, LiveStage, Operation, Options, TransferPlan};
use isochrone_probe::watch::Watch;
use isochrone_probe::{bandwidth, capacity, multiline, region, terms, transfer};
use isochrone_stats::derive_seed;
use isochrone_units::{CoreId, Level, LineAddr, LineState, PageAddr, RegionId};

use super::grade::grade;
use crate::args::MapArgs;
use crate::line_costs::remote_readers;
use crate::progress::Progress;

/// Lines that pairs of cores exchange are spread over so much memory.
const TRANSFER_ARENA_BYTES: usize = 8 << 20;
/// Stride of the Latency Checker's stride mode: one line of every page.
const STRIDE_BYTES: u64 = 4096;
/// Triad arrays of one core, in last-level caches.
const TRIAD_OF_LLC: u64 = 4;
/// The same where the system does not tell the size.
const TRIAD_BYTES: u64 = 256 << 20;
/// Triad arrays of one core, at most.
const TRIAD_BYTES_MAX: u64 = 512 << 20;

/// What is measured, by whom, with which seed.
pub(super) struct Run<'a> {
    pub(super) args: &'a MapArgs,
    pub(super) seed: u64,
    pub(super) cores: Vec<CoreId>,
    pub(super) clock: Clock,
    /// When the run began: experiments have clocks of their own.
    pub(super) begin: Instant,
}

impl Run<'_> {
    /// When an experiment is to end: it has its share of the time, and what those before it left.
    fn ends(&self, experiment: Experiment) -> Option<Instant> {
        let budget = self.args.budget.or(self.args.quick.then_some(QUICK))?;
        let wanted = || TURNS.into_iter().filter(|other| self.wants(*other));
        let at = TURNS.into_iter().position(|other| other == experiment)?;
        let until: u32 = wanted().filter(|other| TURNS[..=at].contains(other)).map(weight).sum();
        let all: u32 = wanted().map(weight).sum();
        Some(self.begin + budget * until / all.max(1))
    }

    /// Whether an experiment was asked for. What takes no time always is.
    fn wants(&self, experiment: Experiment) -> bool {
        let only = &self.args.only;
        only.is_empty() || only.contains(&experiment) || experiment.is_inferred()
    }
}

/// The order in which experiments are made: each after those whose numbers it uses.
const TURNS: [Experiment; Experiment::COUNT] = [
    Experiment::Block,
    Experiment::Transfer,
    Experiment::Multiline,
    Experiment::Terms,
    Experiment::Region,
    Experiment::Bandwidth,
    Experiment::Placement,
];
const _: () = assert!(Experiment::each_once(&TURNS));

/// Time of a quick map where none was asked for: what comes after the experiments takes the rest of 10 s.
const QUICK: Duration = Duration::from_secs(9);

/// The part of the time that an experiment has beside the others: as they take it on a quiet machine of few cores.
const fn weight(experiment: Experiment) -> u32 {
    match experiment {
        Experiment::Block => 18,
        Experiment::Transfer => 6,
        Experiment::Multiline | Experiment::Region => 4,
        Experiment::Terms | Experiment::Bandwidth => 2,
        Experiment::Placement => 0,
    }
}

/// What block latency measures with, and what it leaves to later experiments.
struct Hands {
    /// Bound to cores; block latency alone needs it.
    target: Option<LiveTarget>,
    clock: TargetClock,
    /// Its memory, once the target is gone.
    arena: Option<Mapping>,
    /// Codes of the memory's pages; none where they were not measured.
    codes: Vec<u16>,
}

impl Hands {
    /// Gives the thread its cores again.
    fn let_go(&mut self) {
        if let Some(target) = self.target.take() {
            self.arena = Some(target.into_arena());
        }
    }
}

/// Runs all that was asked for and puts it into `contents`.
pub(super) fn all(
    run: &Run<'_>,
    target: LiveTarget,
    contents: &mut Contents,
    progress: &mut Progress,
) {
    let clock = target.clock();
    let mut hands = Hands { target: Some(target), clock, arena: None, codes: Vec::new() };
    for experiment in TURNS.into_iter().filter(|experiment| run.wants(*experiment)) {
        progress.end_at(run.ends(experiment));
        if experiment.is_inferred() || !progress.is_interrupted() {
            let meter = Meter::start();
            one(experiment, run, &mut hands, contents, progress);
            if !experiment.is_inferred() {
                let graded = grade(experiment, Meter::since(meter.as_ref()), contents);
                contents.quality.extend(graded.map(|graded| (experiment, graded)));
            }
            if progress.is_late() && !experiment.is_inferred() {
                note(
                    contents,
                    experiment.title(),
                    &"cut short, since its share of the time was over",
                );
            }
        }
        hands.let_go();
    }
    progress.end_at(None);
}

fn one(
    experiment: Experiment,
    run: &Run<'_>,
    hands: &mut Hands,
    contents: &mut Contents,
    progress: &mut Progress,
) {
    match experiment {
        Experiment::Block => {
            block(run, hands, contents, progress);
            hands.let_go();
            if progress.keep_going() {
                llc_shares(run, hands.clock, contents, progress);
            }
        }
        Experiment::Transfer => transfers(run, contents, progress),
        Experiment::Multiline => multi_line(run, contents, progress),
        Experiment::Terms => cost_terms(run, contents, progress),
        Experiment::Region => {
            regions(run, hands.clock, contents, progress);
            one_class(run, hands, contents, progress);
        }
        Experiment::Bandwidth => triad(run, contents, progress),
        Experiment::Placement => place(run, contents),
    }
}

/// How much of the last-level cache each core gets: of one core only in a quick map.
fn llc_shares(run: &Run<'_>, clock: TargetClock, contents: &mut Contents, progress: &mut Progress) {
    progress.step("share of the last-level cache");
    let cores = if run.args.quick { &run.cores[..1] } else { &run.cores[..] };
    let bytes = |cache: Option<&Cache>| cache.and_then(|c| c.bytes);
    let machine = &contents.machine;
    let l2 = machine.caches.iter().find(|c| c.level == 2);
    let (Some(l2), Some(llc)) = (bytes(l2), bytes(machine.last_level_cache(run.cores[0]))) else {
        note(contents, "share of the last-level cache", &"the sizes of the caches are not known");
        return;
    };
    let region = RegionId(machine.regions.first().map_or(0, |r| r.id));
    let seed = derive_seed(run.seed, 9);
    let sizes = capacity::sizes(l2, llc);
    let keep_going = || progress.keep_going();
    match capacity::measure_live(cores, &sizes, region, clock, seed, &keep_going) {
        Ok(shares) => contents.llc_shares = shares,
        Err(error) => note(contents, "share of the last-level cache", &error),
    }
}

/// One line for what could not be done; the rest goes on.
fn note(contents: &mut Contents, what: &str, why: &dyn std::fmt::Display) {
    contents.provenance.missing.push(format!("{what}: {why}"));
}

/// Drift seen by an experiment that began `since` seconds into the run.
fn keep_drift(contents: &mut Contents, since: f64, drift: Vec<DriftEvent>) {
    contents.drift.extend(drift.into_iter().map(|d| DriftEvent { at_s: d.at_s + since, ..d }));
}

fn block(run: &Run<'_>, hands: &mut Hands, contents: &mut Contents, progress: &mut Progress) {
    let Some(target) = &mut hands.target else { return };
    let pages = target.pages();
    let seed = derive_seed(run.seed, 1);
    let plan =
        if run.args.quick { BlockPlan::quick(pages, seed) } else { BlockPlan::full(pages, seed) };
    let methods = Level::ALL.map(|level| target.method(level));
    let method = |level: Level| methods[level as usize].clone();
    match map_blocks(target, &plan, &method, progress) {
        Ok(map) => {
            contents.levels = map.levels;
            contents.provenance.missing.extend(map.missing);
            contents.pages = map.pages;
            keep_drift(contents, 0.0, map.drift);
            hands.codes.clone_from(&map.codes[Level::Dram as usize]);
        }
        Err(error) => note(contents, Experiment::Block.title(), &error),
    }
}

fn transfers(run: &Run<'_>, contents: &mut Contents, progress: &mut Progress) {
    let budget_s = if run.args.quick { 0.5 } else { 3.0 };
    let timed = |state| Kind::Timed(state, Operation::Load);
    let kinds = [
        Kind::Cas { trips: CAS_TRIPS },
        timed(LineState::Modified),
        timed(LineState::Exclusive),
        timed(LineState::Shared),
    ];
    let since = run.begin.elapsed().as_secs_f64();
    let mut stage = match stage(run, 2) {
        Ok(stage) => stage,
        Err(error) => return note(contents, Experiment::Transfer.title(), &error),
    };
    for kind in kinds {
        progress.step(&format!("line transfers: {}", kind.state_name()));
        let options = Options { budget_s, ..Options::new(kind, derive_seed(run.seed, 3)) };
        let plan = match TransferPlan::new(&run.cores, stage.1, options) {
            Ok(plan) => plan,
            Err(error) => return note(contents, Experiment::Transfer.title(), &error),
        };
        match transfer::run(&mut stage.0, &plan, &mut || !progress.keep_going()) {
            Ok(report) => {
                contents.provenance.missing.extend(report.missing);
                keep_drift(contents, since, report.drift);
                contents.transfers.push(report.map);
            }
            Err(error) => {
                let what = format!("{}, {}", Experiment::Transfer.title(), kind.state_name());
                note(contents, &what, &error);
            }
        }
    }
}

/// Threads on every core, and the lines they exchange.
fn stage(run: &Run<'_>, stream: u64) -> anyhow::Result<(LiveStage, u64)> {
    let arena = Mapping::anonymous(TRANSFER_ARENA_BYTES, Backing::Transparent2M)
        .map_err(|e| anyhow::anyhow!("{e}"))?;
    let lines = arena.lines();
    let seed = derive_seed(run.seed, stream);
    let stage =
        LiveStage::new(&run.cores, Arc::new(arena), run.clock.hz, run.clock.tick_cycles, seed)?;
    Ok((stage, lines))
}

fn multi_line(run: &Run<'_>, contents: &mut Contents, progress: &mut Progress) {
    progress.step("multi-line transfers and interactions");
    let mut options = MultilineOptions::new(derive_seed(run.seed, 4));
    if run.args.quick {
        options.rounds = 2;
    }
    let found = stage(run, 5).and_then(|(mut stage, lines)| {
        let plan = MultilinePlan::new(&run.cores, lines, options)?;
        Ok(multiline::run(&mut stage, &plan, &mut || !progress.keep_going())?)
    });
    match found {
        Ok(report) => {
            contents.multiline.extend(report.fit);
            contents.interactions = report.interactions;
            contents.provenance.missing.extend(report.missing);
        }
        Err(error) => note(contents, Experiment::Multiline.title(), &error),
    }
}

/// What the model leaves out; who is near and who far comes from the transfers measured before.
fn cost_terms(run: &Run<'_>, contents: &mut Contents, progress: &mut Progress) {
    progress.step("costs that the model leaves out");
    let mut options = TermsOptions::new(derive_seed(run.seed, 10));
    if run.args.quick {
        options.rounds = 3;
    }
    let remote = remote_readers(contents).map(|[owner, near, far]| Remote {
        owner: run.cores[owner],
        near: run.cores[near],
        far: run.cores[far],
    });
    let found = stage(run, 11).and_then(|(mut stage, lines)| {
        let plan = TermsPlan::new(&run.cores, remote, lines, options)?;
        Ok(terms::run(&mut stage, &plan, &mut || !progress.keep_going())?)
    });
    match found {
        Ok(report) => {
            contents.terms = report.terms;
            contents.provenance.missing.extend(report.missing);
        }
        Err(error) => note(contents, Experiment::Terms.title(), &error),
    }
}

fn regions(run: &Run<'_>, clock: TargetClock, contents: &mut Contents, progress: &mut Progress) {
    let ids: Vec<RegionId> = contents.machine.regions.iter().map(|r| RegionId(r.id)).collect();
    let modes = [Mode::Random, Mode::InOrder, Mode::Stride { bytes: STRIDE_BYTES }];
    for mode in modes {
        progress.step(&format!("region latency: {}", mode.name()));
        let buffers = RegionBuffers::map(&ids, run.args.buffer).map_err(anyhow::Error::from);
        let since = run.begin.elapsed().as_secs_f64();
        let found = buffers.and_then(|buffers| chase(run, clock, buffers, mode.clone(), progress));
        match found {
            Ok((map, drift)) => {
                contents.regions.push(map);
                keep_drift(contents, since, drift);
            }
            Err(error) => {
                let what = format!("{}, {}", Experiment::Region.title(), mode.name());
                note(contents, &what, &error);
            }
        }
    }
}

type RegionFound = (isochrone_atlas_store::contents::RegionMap, Vec<DriftEvent>);

fn chase(
    run: &Run<'_>,
    clock: TargetClock,
    mut buffers: RegionBuffers,
    mode: Mode,
    progress: &mut Progress,
) -> anyhow::Result<RegionFound> {
    let count = buffers.count();
    // Stride and class go through less than a cache holds, so lines are put out of it first. A
    // scan and a random walk through all of the buffer are left as a program feels them.
    let flush = !matches!(mode, Mode::InOrder | Mode::Random);
    let options = RegionOptions {
        buffer_bytes: run.args.buffer,
        budget_s: if run.args.quick { 0.3 } else { 3.0 },
        flush,
        ..RegionOptions::new(mode, derive_seed(run.seed, 6))
    };
    let plan = RegionPlan::new(count, options)?;
    let rings = buffers.link(&plan.orders)?;
    let mut live = LiveRegions::new(&rings, &run.cores, clock);
    let report = region::run(&mut live, &plan, &mut || !progress.keep_going())?;
    Ok((report.map, report.drift))
}

/// The nearest class of pages alone, chosen from what the block experiment found: with the memory
/// of one controller, as the Latency Checker's stride does by hand.
fn one_class(run: &Run<'_>, hands: &mut Hands, contents: &mut Contents, progress: &mut Progress) {
    let Some(arena) = hands.arena.take() else { return };
    let Some(level) = contents.levels.iter().find(|l| l.level == Level::Dram.as_str()) else {
        return;
    };
    let Some(class) = nearest_class(level).filter(|_| contents.machine.regions.len() == 1) else {
        return;
    };
    let pages = (0_u64..)
        .zip(&hands.codes)
        .filter(|(_, c)| **c != UNKNOWN_CODE && **c / level.period == class);
    let most = usize::try_from(run.args.buffer / 64).unwrap_or(usize::MAX);
    let lines: Vec<LineAddr> = pages
        .flat_map(|(page, _)| (0..64_u8).map(move |i| PageAddr(page).line(i)))
        .take(most)
        .collect();
    if lines.len() < 1024 {
        return;
    }
    progress.step("region latency: one class of pages");
    let region = RegionId(contents.machine.regions[0].id);
    let buffers = RegionBuffers::of(region, arena);
    let since = run.begin.elapsed().as_secs_f64();
    match chase(run, hands.clock, buffers, Mode::OneClass { lines: vec![lines] }, progress) {
        Ok((map, drift)) => {
            contents.regions.push(map);
            keep_drift(contents, since, drift);
        }
        Err(error) => note(contents, &format!("{}, one class", Experiment::Region.title()), &error),
    }
}

/// The class of pages that the first core reaches soonest, where there are several.
fn nearest_class(level: &LevelMap) -> Option<u16> {
    let base = level.bases.get(usize::from(level.core_base.first().copied().flatten()?))?;
    let mean = |pattern: &Vec<f32>| pattern.iter().sum::<f32>();
    let nearest = (0_u16..).zip(&base.patterns).min_by(|a, b| mean(a.1).total_cmp(&mean(b.1)))?;
    (base.patterns.len() > 1).then_some(nearest.0)
}

fn triad(run: &Run<'_>, contents: &mut Contents, progress: &mut Progress) {
    progress.step("bandwidth");
    let cores_of: Vec<(RegionId, Vec<CoreId>)> = contents
        .machine
        .regions
        .iter()
        .map(|r| (RegionId(r.id), r.cores.iter().map(|c| CoreId(*c)).collect::<Vec<_>>()))
        .map(|(r, cores)| (r, cores.into_iter().filter(|c| run.cores.contains(c)).collect()))
        .collect();
    let mut options = BandwidthOptions::new(derive_seed(run.seed, 7));
    if run.args.quick {
        (options.rounds_min, options.budget_s) = (3, 0.5);
    }
    let llc = contents.machine.last_level_cache(run.cores[0]).and_then(|c| c.bytes);
    let quick_max = if run.args.quick { TRIAD_BYTES_MAX / 4 } else { TRIAD_BYTES_MAX };
    let bytes = llc.map_or(TRIAD_BYTES, |bytes| bytes * TRIAD_OF_LLC).min(quick_max);
    let plan = BandwidthPlan::new(&cores_of, options);
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    let mut live = LiveTriad::new(bytes, cores_of.len() > 1);
    match bandwidth::run(&mut live, &plan, &mut || !progress.keep_going()) {
        Ok(report) => contents.bandwidth = report.bandwidth,
        Err(error) => note(contents, Experiment::Bandwidth.title(), &error),
    }
}

/// Where cores and controllers seem to sit, from the matrices alone.
fn place(run: &Run<'_>, contents: &mut Contents) {
    let labels: Vec<String> = run.cores.iter().map(|c| format!("core {}", c.0)).collect();
    let pairs = contents.transfers.first().and_then(|map| {
        let cells: Vec<Option<f64>> =
            map.latency_ns.cells.iter().map(|c| c.map(|c| c.median)).collect();
        // The matrix is symmetric, so its two halves do not tell its noise: the intervals do.
        let widths = map.latency_ns.cells.iter().flatten().map(|c| (c.hi - c.lo) / (2.0 * 1.96));
        let noise = isochrone_stats::median(&widths.collect::<Vec<_>>());
        PairLatencies::new(labels.len(), &cells).ok().map(|p| match noise {
            Some(noise) => p.with_noise(noise),
            None => p,
        })
    });
    let columns = contents.regions.first().and_then(|map| {
        let cells = map.latency_ns.cells.iter().map(|c| c.map(|c| c.median)).collect();
        ColumnLatencies::new(labels.len(), map.latency_ns.columns.clone(), cells).ok()
    });
    let observed =
        Observed { cores: &labels, pairs: pairs.as_ref(), columns: columns.as_ref(), places: None };
    match infer(&observed, derive_seed(run.seed, 8)) {
        Ok(findings) => contents.placement = Some(findings.placement),
        Err(error) => note(contents, Experiment::Placement.title(), &error),
    }
}
