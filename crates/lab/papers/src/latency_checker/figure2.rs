//! The data of Figure 2 of the Euro-Par paper for the machine of an atlas: relative latency of
//! consecutive memory blocks from each core, "compared to the fastest access" (section 2).
//!
//! It reads bases and page codes; where an atlas has no page table it shows one page of the
//! pattern and says so. It draws nothing.

use isochrone_atlas_store::contents::{Contents, Form, LevelMap, PageBlock};
use isochrone_probe::block::UNKNOWN_CODE;
use isochrone_units::{LINES_PER_PAGE, Level, Reading};

/// Cores in a picture, as in the paper.
const CORES_DRAWN: usize = 4;

/// Consecutive blocks of 64 bytes from several cores.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Blocks {
    /// The level.
    pub(crate) level: Level,
    /// Frame of the first block's page; `None` where frames are not known.
    pub(crate) first_frame: Option<u64>,
    /// For each core the latency of each block over that of the fastest access shown.
    pub(crate) cores: Vec<(u16, Vec<f64>)>,
    /// What the fastest access takes, nanoseconds.
    pub(crate) fastest_ns: f64,
    /// What it shows, in one sentence.
    pub(crate) what: String,
    /// The atlas's own reading where the lines were timed one by one; predicted where a
    /// measured pattern says what a page's code makes of it.
    pub(crate) reading: Reading,
}

impl Blocks {
    /// The cores that are drawn: "as seen from four different CPU cores" (section 2).
    pub(crate) fn shown(&self) -> &[(u16, Vec<f64>)] {
        &self.cores[..self.cores.len().min(CORES_DRAWN)]
    }
}

/// The blocks of the first `pages` consecutive pages that the atlas knows (fewer where no run is
/// that long).
pub(crate) fn consecutive_blocks(
    contents: &Contents,
    level: Level,
    pages: usize,
) -> Option<Blocks> {
    let map = contents.levels.iter().find(|map| map.level == level.as_str())?;
    let (first_frame, cycles) = match map.form {
        Form::PerLine => measured_lines(map, pages)?,
        Form::Pattern | Form::Flat => coded_lines(contents, map, level, pages)?,
    };
    let all = || cycles.iter().flat_map(|(_, line)| line.iter().copied());
    let fastest = all().fold(f64::INFINITY, f64::min);
    if !(fastest.is_finite() && fastest > 0.0) {
        return None;
    }
    let what = match (map.form, first_frame) {
        (Form::PerLine, _) => "lines measured one by one",
        (_, Some(_)) => "the pattern of each core under the decoded code of each page",
        (_, None) => "the pattern of each core; the atlas has no page table, so one page is shown",
    };
    let reading = match (map.form, contents.reading) {
        (Form::Pattern | Form::Flat, Reading::Measured) => Reading::Predicted,
        (_, own) => own,
    };
    let relative = |line: Vec<f64>| line.into_iter().map(|c| c / fastest).collect();
    let fastest_ns = contents.clock.ns(fastest);
    Some(Blocks {
        level,
        first_frame,
        cores: cycles.into_iter().map(|(core, line)| (core, relative(line))).collect(),
        fastest_ns,
        what: what.to_owned(),
        reading,
    })
}

type Lines = (Option<u64>, Vec<(u16, Vec<f64>)>);

/// Bases under the codes of consecutive pages.
fn coded_lines(contents: &Contents, map: &LevelMap, level: Level, pages: usize) -> Option<Lines> {
    let run = longest_run(&contents.pages, map, level, pages);
    let codes: Vec<(u64, u16)> = match &run {
        Some((first, codes)) => (*first..).zip(codes.iter().copied()).collect(),
        None => {
            (0..(u64::from(map.period) / LINES_PER_PAGE as u64).max(1)).map(|f| (f, 0)).collect()
        }
    };
    let ids = contents.machine.cores.iter().map(|core| core.id);
    let mut cores = Vec::new();
    for (id, base) in ids.zip(&map.core_base) {
        let Some(base) = base.and_then(|index| map.bases.get(usize::from(index))) else {
            continue;
        };
        let lines = codes.iter().flat_map(|(frame, code)| {
            (0..LINES_PER_PAGE as u64)
                .map(|line| latency(map, &base.patterns, *frame, *code, line))
                .collect::<Vec<_>>()
        });
        cores.push((id, lines.collect::<Option<Vec<f64>>>()?));
    }
    (!cores.is_empty()).then_some((run.map(|(first, _)| first), cores))
}

/// `base[class][i ^ key]` for one line of a page.
fn latency(map: &LevelMap, patterns: &[Vec<f32>], frame: u64, code: u16, line: u64) -> Option<f64> {
    let period = usize::from(map.period);
    let code = usize::from(code);
    let index = usize::try_from(frame * LINES_PER_PAGE as u64 + line).ok()? % period;
    let pattern = patterns.get(code / period)?;
    pattern.get((code % period) ^ index).map(|cycles| f64::from(*cycles))
}

/// Frame and codes of the first run of `pages` decoded pages, or of the longest there is.
fn longest_run(
    blocks: &[PageBlock],
    map: &LevelMap,
    level: Level,
    pages: usize,
) -> Option<(u64, Vec<u16>)> {
    let mut sorted: Vec<&PageBlock> = blocks.iter().collect();
    sorted.sort_by_key(|block| block.first_frame);
    let frames = sorted.iter().flat_map(|block| {
        let codes = match level {
            Level::Llc => &block.llc,
            Level::Dram => &block.dram,
        };
        (block.first_frame..).zip(codes.iter().copied())
    });
    let limit = usize::from(map.classes) * usize::from(map.period);
    let known = |code: u16| code != UNKNOWN_CODE && usize::from(code) < limit;
    let mut best: (u64, Vec<u16>) = (0, Vec::new());
    let mut run: (u64, Vec<u16>) = (0, Vec::new());
    for (frame, code) in frames {
        let follows = run.0 + run.1.len() as u64 == frame && !run.1.is_empty();
        if !known(code) || !follows {
            run = (frame, Vec::new());
        }
        if known(code) {
            run.1.push(code);
        }
        if run.1.len() > best.1.len() {
            best.clone_from(&run);
        }
        if best.1.len() >= pages.max(1) {
            break;
        }
    }
    (!best.1.is_empty()).then_some(best)
}

/// Lines that were measured one by one, of consecutive frames that every core has.
fn measured_lines(map: &LevelMap, pages: usize) -> Option<Lines> {
    let mut frames: Vec<u64> = map.lines.iter().map(|(frame, ..)| *frame).collect();
    frames.sort_unstable();
    frames.dedup();
    let mut ids: Vec<u16> = map.lines.iter().map(|(_, core, _)| *core).collect();
    ids.sort_unstable();
    ids.dedup();
    let of = |frame: u64, core: u16| {
        map.lines.iter().find(|(f, c, _)| (*f, *c) == (frame, core)).map(|(.., cycles)| cycles)
    };
    let first = *frames.iter().find(|frame| ids.iter().all(|core| of(**frame, *core).is_some()))?;
    let shown: Vec<u64> = (first..)
        .take(pages.max(1))
        .take_while(|frame| ids.iter().all(|core| of(*frame, *core).is_some()))
        .collect();
    let cores = ids.iter().map(|core| {
        let lines = shown.iter().filter_map(|frame| of(*frame, *core)).flatten();
        (*core, lines.map(|cycles| f64::from(*cycles)).collect())
    });
    Some((Some(first), cores.collect()))
}
