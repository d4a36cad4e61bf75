//! Runs the block experiment, level after level: learn on some pages, score on others, decode the
//! rest. The steps of one level are in `level`, `heldout` and `pass`.

use isochrone_atlas_store::contents::{DriftEvent, LevelMap, PageBlock};
use isochrone_units::{Level, PageAddr};

use super::level::LevelRun;
use super::moves::Repaired;
use super::plan::BlockPlan;
use crate::target::{Target, TargetError};
use crate::watch::{Share, Watch};

/// The code of a page that is not known.
pub const UNKNOWN_CODE: u16 = isochrone_atlas::Code::UNKNOWN.0;

/// Everything that the block experiment found.
#[derive(Clone, Debug, Default)]
pub struct BlockMap {
    /// One entry a level.
    pub levels: Vec<LevelMap>,
    /// Codes by frame, if frames can be known.
    pub pages: Vec<PageBlock>,
    /// Codes by arena page: LLC, DRAM. [`UNKNOWN_CODE`] where not decoded.
    pub codes: [Vec<u16>; 2],
    /// Moves and replaced frames.
    pub drift: Vec<DriftEvent>,
    /// Levels that could not be mapped, or not as wanted, and why, in one line each.
    pub missing: Vec<String>,
    /// Levels of which something was left out, since there was no time.
    pub cut_short: Vec<Level>,
    /// Whether every step was done.
    pub complete: bool,
}

/// Maps all levels of the plan on all cores of the target.
///
/// # Errors
/// What the target refuses at every level; a level that alone is refused is named in
/// [`BlockMap::missing`], and the others are mapped.
pub fn map_blocks(
    target: &mut dyn Target,
    plan: &BlockPlan,
    methods: &dyn Fn(Level) -> String,
    watch: &mut dyn Watch,
) -> Result<BlockMap, TargetError> {
    let mut map = BlockMap::default();
    let pages = usize::try_from(plan.memory_pages.min(target.pages())).unwrap_or(usize::MAX);
    map.codes = [vec![UNKNOWN_CODE; pages], vec![UNKNOWN_CODE; pages]];
    for (level, left) in plan.levels.iter().zip((1..=plan.levels.len()).rev()) {
        // A level takes little even where it is stopped at once; after an end was asked for, even that is too much.
        if !watch.keep_going() {
            map.missing.push(format!("{level} latency: not begun, since there was no time left"));
            continue;
        }
        let mut share = Share::of(watch, 1.0 / left as f64);
        let mut repaired = Repaired::new(target);
        let mut run = LevelRun::new(&mut repaired, plan, *level, &mut share);
        let found = run.all(&mut map.codes[*level as usize], methods(*level));
        let drift = std::mem::take(&mut run.drift);
        map.drift.extend(drift);
        map.missing.append(&mut run.notes);
        if run.cut_short || !run.watch.keep_going() {
            map.cut_short.push(*level);
        }
        map.drift.extend(repaired.take_moves().iter().map(DriftEvent::from));
        match found {
            Ok(found) => map.levels.push(found),
            Err(error) => map.missing.push(format!("{level} latency: {error}")),
        }
    }
    if map.levels.is_empty() && !plan.levels.is_empty() {
        return Err(TargetError::Unsupported(map.missing.join("; ")));
    }
    map.drift.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
    map.pages = by_frame(target, &map.codes);
    map.complete = watch.keep_going();
    Ok(map)
}

/// Groups arena pages by the frames they lie in.
fn by_frame(target: &mut dyn Target, codes: &[Vec<u16>; 2]) -> Vec<PageBlock> {
    let mut blocks = std::collections::BTreeMap::new();
    let mut frames = vec![None; codes[0].len().min(codes[1].len())];
    target.frames(PageAddr(0), &mut frames);
    for (frame, (llc, dram)) in frames.into_iter().zip(codes[0].iter().zip(&codes[1])) {
        if *llc == UNKNOWN_CODE && *dram == UNKNOWN_CODE {
            continue;
        }
        let Some(frame) = frame else { continue };
        let block = blocks.entry(frame / 512).or_insert_with(|| PageBlock {
            first_frame: frame / 512 * 512,
            llc: Box::new([UNKNOWN_CODE; 512]),
            dram: Box::new([UNKNOWN_CODE; 512]),
        });
        let place = usize::try_from(frame % 512).unwrap_or(0);
        block.llc[place] = *llc;
        block.dram[place] = *dram;
    }
    blocks.into_values().collect()
}
