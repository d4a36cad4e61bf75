//! Block latency, and each core's share of the last-level cache, which is measured with it.

use isochrone_atlas_store::Experiment;
use isochrone_atlas_store::contents::{Contents, LevelMap};
use isochrone_machine::Cache;
use isochrone_os::mapping::Mapping;
use isochrone_probe::block::{BlockPlan, UNKNOWN_CODE, map_blocks};
use isochrone_probe::capacity;
use isochrone_probe::live::LiveTarget;
use isochrone_probe::target::{Target as _, TargetClock};
use isochrone_probe::watch::{Share, Watch as _};
use isochrone_stats::derive_seed;
use isochrone_units::{Level, RegionId};

use super::super::run::{Cut, Run, keep_drift, note, note_failed, why};
use crate::progress::Progress;

/// Of the experiment's time, what the levels leave to the share of the last-level cache.
const LLC_SHARE: f64 = 0.15;
/// Of the time of a level, what looks at its training pages may take.
const LOOKS: f64 = 0.6;
/// What a look may take at least: less shows nothing.
const LOOK_LEAST_S: f64 = 0.05;

/// What block latency measures with, and what it leaves to later experiments.
pub(super) struct Hands {
    /// Bound to cores; block latency alone needs it.
    pub(super) target: Option<LiveTarget>,
    pub(super) clock: TargetClock,
    /// Its memory, once the target is gone.
    pub(super) arena: Option<Mapping>,
    /// Codes of the memory's pages; none where they were not measured.
    pub(super) codes: Vec<u16>,
}

impl Hands {
    /// Gives the thread its cores again.
    pub(super) fn let_go(&mut self) {
        if let Some(target) = self.target.take() {
            self.arena = Some(target.into_arena());
        }
    }
}

/// Both levels.
pub(super) fn block(
    run: &Run<'_>,
    hands: &mut Hands,
    contents: &mut Contents,
    progress: &mut Progress,
) {
    let Some(target) = &mut hands.target else { return };
    let pages = target.pages();
    let seed = derive_seed(run.seed, 1);
    let methods = Level::ALL.map(|level| target.method(level));
    let method = |level: Level| methods[level as usize].clone();
    let mut share = Share::of(progress, 1.0 - LLC_SHARE);
    let mut plan =
        if run.args.quick { BlockPlan::quick(pages, seed) } else { BlockPlan::full(pages, seed) };
    if let Some(time) = share.left() {
        let looks = plan.levels.len() * run.cores.len();
        let look_s = time.as_secs_f64() * LOOKS / looks.max(1) as f64;
        plan.max_seconds = plan.max_seconds.min(look_s.max(LOOK_LEAST_S));
    }
    match map_blocks(target, &plan, &method, &mut share) {
        Ok(map) => {
            for level in &map.cut_short {
                if let Some(found) = map.levels.iter().find(|found| found.level == level.as_str()) {
                    cut_short(found, pages, contents, progress);
                }
            }
            contents.levels = map.levels;
            contents.provenance.missing.extend(map.missing);
            contents.pages = map.pages;
            keep_drift(contents, 0.0, map.drift);
            hands.codes.clone_from(&map.codes[Level::Dram as usize]);
        }
        Err(error) => note(contents, Experiment::Block.title(), &error),
    }
}

/// Says what a level that was cut short lacks.
fn cut_short(level: &LevelMap, pages: u64, contents: &mut Contents, progress: &Progress) {
    let title = format!("{} ({})", Experiment::Block.title(), level.level);
    let scored = level.quality.iter().filter(|core| core.r2_ceiling.is_some()).count();
    let decoded = level.quality.first().map_or(0, |first| first.decoded_pages);
    let pages = usize::try_from(pages).unwrap_or(usize::MAX);
    let left = pages.saturating_sub(usize::try_from(decoded).unwrap_or(usize::MAX));
    let cores = level.quality.len();
    let scores =
        Cut { what: &title, left_out: cores - scored, of: cores, lack: "cores were not scored" };
    scores.note(contents, progress);
    if left > 0 {
        Cut { what: &title, left_out: left, of: pages, lack: "pages were not decoded" }
            .note(contents, progress);
    }
}

/// How much of the last-level cache each core gets: of one core only in a quick map.
pub(super) fn llc_shares(
    run: &Run<'_>,
    clock: TargetClock,
    contents: &mut Contents,
    progress: &mut Progress,
) {
    const WHAT: &str = "share of the last-level cache";
    if !progress.keep_going() {
        return note(contents, WHAT, &format!("not measured, {}", why(progress)));
    }
    progress.step(WHAT);
    let cores = if run.args.quick { &run.cores[..1] } else { &run.cores[..] };
    let bytes = |cache: Option<&Cache>| cache.and_then(|c| c.bytes);
    let machine = &contents.machine;
    let l2 = machine.caches.iter().find(|c| c.level == 2);
    let (Some(l2), Some(llc)) = (bytes(l2), bytes(machine.last_level_cache(run.cores[0]))) else {
        return note(contents, WHAT, &"the sizes of the caches are not known");
    };
    let region = RegionId(machine.regions.first().map_or(0, |r| r.id));
    let seed = derive_seed(run.seed, 9);
    let sizes = capacity::sizes(l2, llc);
    let keep_going = || progress.keep_going();
    match capacity::measure_live(cores, &sizes, region, clock, seed, &keep_going) {
        Ok(shares) => contents.llc_shares = shares,
        Err(error) => return note_failed(contents, WHAT, &error, progress),
    }
    if !progress.keep_going() {
        let none = contents.llc_shares.iter().filter(|share| share.bytes.is_none()).count();
        Cut { what: WHAT, left_out: none, of: cores.len(), lack: "cores were left out" }
            .note(contents, progress);
    }
}

/// The class of pages that the first core reaches soonest, where there are several.
pub(super) fn nearest_class(level: &LevelMap) -> Option<u16> {
    let base = level.bases.get(usize::from(level.core_base.first().copied().flatten()?))?;
    let mean = |pattern: &Vec<f32>| pattern.iter().sum::<f32>();
    let nearest = (0_u16..).zip(&base.patterns).min_by(|a, b| mean(a.1).total_cmp(&mean(b.1)))?;
    (base.patterns.len() > 1).then_some(nearest.0)
}

/// Arena pages that have a code of this class.
pub(super) fn pages_of<'h>(
    hands: &'h Hands,
    level: &LevelMap,
    class: u16,
) -> impl Iterator<Item = u64> + use<'h> {
    let period = level.period;
    let is_of = move |code: u16| code != UNKNOWN_CODE && code / period == class;
    (0_u64..).zip(&hands.codes).filter(move |(_, code)| is_of(**code)).map(|(page, _)| page)
}
