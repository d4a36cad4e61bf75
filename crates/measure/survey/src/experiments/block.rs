//! Block latency, and each core's share of the last-level cache, which is measured with it.

use isochrone_atlas_store::Experiment;
use isochrone_atlas_store::contents::{Contents, LevelMap, Quality};
use isochrone_probe::block::{BlockPlan, UNKNOWN_CODE, map_blocks};
use isochrone_probe::capacity;
use isochrone_probe::sample::Sample;
use isochrone_probe::target::TargetError;
use isochrone_probe::watch::{Share, Watch as _};
use isochrone_stats::derive_seed;
use isochrone_units::Level;

use super::beyond::beyond;
use crate::course::Course;
use crate::ground::Ground;
use crate::run::{Cut, Run, keep_drift, note, note_failed, why};

/// Of the experiment's time, what the levels leave to the share of the last-level cache.
const LLC_SHARE: f64 = 0.15;
/// Of the time of a level, what looks at its training pages may take.
const LOOKS: f64 = 0.6;
/// What a look may take at least: less shows nothing.
const LOOK_LEAST_S: f64 = 0.05;

/// What experiments measure with, and what block latency leaves to later ones.
pub(super) struct Hands<'g> {
    pub(super) ground: &'g mut dyn Ground,
    /// Codes of the memory's pages; none where they were not measured.
    pub(super) codes: Vec<u16>,
}

/// Both levels.
pub(super) fn block(
    run: &Run,
    hands: &mut Hands<'_>,
    contents: &mut Contents,
    course: &mut dyn Course,
) {
    let methods = Level::ALL.map(|level| hands.ground.method(level));
    let Some(target) = hands.ground.target() else { return };
    let pages = target.pages();
    let seed = derive_seed(run.seed, 1);
    let method = |level: Level| methods[level as usize].clone();
    let mut share = Share::of(course, 1.0 - LLC_SHARE);
    let quick = run.wishes.quick;
    let mut plan = run.planned(|| {
        let plan = if quick { BlockPlan::quick(pages, seed) } else { BlockPlan::full(pages, seed) };
        plan.learning(Sample::learnt(quick), &contents.machine, &run.cores)
    });
    if let Some(time) = share.left() {
        let looks = plan.levels.len() * plan.learners(&run.cores).len();
        let look_s = time.as_secs_f64() * LOOKS / looks.max(1) as f64;
        plan.max_seconds = plan.max_seconds.min(look_s.max(LOOK_LEAST_S));
    }
    match map_blocks(target, &plan, &method, &mut share) {
        Ok(map) => {
            for level in &map.cut_short {
                if let Some(found) = map.levels.iter().find(|found| found.level == level.as_str()) {
                    cut_short(found, pages, contents, course);
                }
            }
            contents.levels = map.levels;
            contents.provenance.missing.extend(map.missing);
            contents.provenance.missing.extend(beyond(&contents.levels));
            contents.pages = map.pages;
            keep_drift(contents, 0.0, map.drift);
            hands.codes.clone_from(&map.codes[Level::Dram as usize]);
        }
        Err(error) => note(contents, Experiment::Block.title(), &error),
    }
}

/// Says what a level that was cut short lacks.
fn cut_short(level: &LevelMap, pages: u64, contents: &mut Contents, course: &dyn Course) {
    let title = format!("{} ({})", Experiment::Block.title(), level.level);
    let is_known = |core: &&Quality| core.r2_ceiling.is_some() || core.verified.is_some();
    let scored = level.quality.iter().filter(is_known).count();
    let decoded = level.quality.first().map_or(0, |first| first.decoded_pages);
    let pages = usize::try_from(pages).unwrap_or(usize::MAX);
    let left = pages.saturating_sub(usize::try_from(decoded).unwrap_or(usize::MAX));
    let cores = level.quality.len();
    let scores = Cut {
        what: &title,
        left_out: cores - scored,
        of: cores,
        lack: "cores were neither scored nor verified",
    };
    scores.note(contents, course);
    if left > 0 {
        Cut { what: &title, left_out: left, of: pages, lack: "pages were not decoded" }
            .note(contents, course);
    }
}

/// How much of the last-level cache cores get: some of each cache and region, and one core only in a quick map.
pub(super) fn llc_shares(
    run: &Run,
    hands: &mut Hands<'_>,
    contents: &mut Contents,
    course: &mut dyn Course,
) {
    const WHAT: &str = "share of the last-level cache";
    if !course.keep_going() {
        return note(contents, WHAT, &format!("not measured, {}", why(course)));
    }
    course.step(WHAT);
    let cores = if run.wishes.quick { &run.cores[..1] } else { &run.cores[..] };
    let turns = capacity::turns(&contents.machine, cores);
    if turns.is_empty() {
        return note(contents, WHAT, &"the sizes of the caches are not known");
    }
    if let Some(line) = capacity::left_out(&turns, cores) {
        note(contents, WHAT, &line);
    }
    let seed = derive_seed(run.seed, 9);
    let mut asked = 0;
    for turn in turns {
        let keep_going = || course.keep_going();
        let cores = &turn.cores;
        // Memory of its own region may not be allowed.
        let allowed = run.reach.regions.contains(&turn.region);
        let first = run.reach.regions.first().copied().unwrap_or(turn.region);
        let region = if allowed { turn.region } else { first };
        asked += cores.len();
        match hands.ground.llc_shares(cores, &turn.sizes, region, seed, &keep_going) {
            Ok(shares) => contents.llc_shares.extend(shares),
            // What one region refuses says nothing of another.
            Err(TargetError::Stopped) => {
                return note_failed(contents, WHAT, &TargetError::Stopped, course);
            }
            Err(error) => note(contents, WHAT, &error),
        }
    }
    if !course.keep_going() {
        let found = contents.llc_shares.iter().filter(|share| share.bytes.is_some()).count();
        Cut { what: WHAT, left_out: asked - found, of: asked, lack: "cores were left out" }
            .note(contents, course);
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
pub(super) fn pages_of<'c>(
    codes: &'c [u16],
    level: &LevelMap,
    class: u16,
) -> impl Iterator<Item = u64> + use<'c> {
    let period = level.period;
    let is_of = move |code: u16| code != UNKNOWN_CODE && code / period == class;
    (0_u64..).zip(codes).filter(move |(_, code)| is_of(**code)).map(|(page, _)| page)
}
