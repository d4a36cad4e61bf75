//! How far the lines are that a team's flags may lie on, by the atlas: their pages are decoded with the bases
//! that the ranks' cores have, and a line's distance is the sum of its latencies from all of them.
//!
//! Nothing is timed between cores here. Where the atlas has no pattern, or the cores have none of its bases,
//! there is no answer.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use isochrone_alloc::live::{Classifier, Event, Machine, Plan};
use isochrone_alloc::{CurrentBases, PageCodes};
use isochrone_atlas::Code;
use isochrone_atlas_store::MappedAtlas;
use isochrone_cla::live::Team;
use isochrone_os::affinity::{self, CoreSet};
use isochrone_os::clock::Clock;
use isochrone_os::shared::Shared;
use isochrone_stats::mean;
use isochrone_units::{CoreId, LINES_PER_PAGE, LineAddr};

/// Time on one core before it is the next one's turn.
const TURN_NS: u64 = 5_000_000;
/// Turns of each core; what is not decoded by then is not known.
const TURNS: u32 = 6;

/// An atlas to look lines up in.
pub(super) struct KnownLines {
    atlas: MappedAtlas,
    l2_bytes: usize,
    cores: Vec<CoreId>,
    overhead_cycles: f32,
}

/// The distances of candidates, cycles, in their order; empty where nothing is known of the level.
#[derive(Clone, Debug, Default)]
pub(super) struct Distances {
    pub(super) llc: Vec<f64>,
    pub(super) dram: Vec<f64>,
    /// The share of candidates whose pages were decoded.
    pub(super) decoded: f64,
}

impl KnownLines {
    pub(super) fn new(
        atlas: MappedAtlas,
        cores: &[CoreId],
        l2_bytes: Option<u64>,
        clock: &Clock,
    ) -> Result<Self> {
        #[allow(clippy::cast_possible_truncation, reason = "an overhead is some sixty cycles")]
        let overhead_cycles = clock.overhead as f32;
        let l2_bytes = usize::try_from(l2_bytes.unwrap_or(1 << 20))?;
        Ok(Self { atlas, l2_bytes, cores: cores.to_vec(), overhead_cycles })
    }

    /// How far a team's candidates are. Binds this thread to each of the cores in turn, and sets it free again.
    pub(super) fn of(&self, team: &Team) -> Result<Distances> {
        let before = CoreSet::of_this_thread()?;
        let (memory, lines) = team.candidates();
        let found = self.decode(memory, &lines);
        affinity::restore(&before)?;
        let (codes, current) = found?;
        let code = |line: &LineAddr| codes.get(&(line.0 / LINES_PER_PAGE as u64)).copied();
        let known = lines.iter().filter(|line| code(line).is_some_and(|c| c.llc != Code::UNKNOWN));
        let decoded = count(known.count()) / count(lines.len().max(1));
        let of = |get: &dyn Fn(&CurrentBases, LineAddr) -> Option<f32>| {
            let all: Vec<Option<f64>> = lines
                .iter()
                .map(|&line| current.iter().map(|current| get(current, line).map(f64::from)).sum())
                .collect();
            completed(&all)
        };
        let llc = |current: &CurrentBases, line| at(current.llc.as_ref()?, code(&line)?.llc, line);
        let dram =
            |current: &CurrentBases, line| at(current.dram.as_ref()?, code(&line)?.dram, line);
        Ok(Distances { llc: of(&llc), dram: of(&dram), decoded })
    }

    /// The codes of the pages in which the lines lie, and the current bases of each core.
    fn decode(
        &self,
        memory: &Shared,
        lines: &[LineAddr],
    ) -> Result<(BTreeMap<u64, PageCodes>, Vec<CurrentBases>)> {
        let atlas = self.atlas.atlas()?;
        let last = lines.iter().map(|line| line.0 / LINES_PER_PAGE as u64).max();
        let pages = usize::try_from(last.context("a team without lines")? + 1)?;
        let mut machine =
            Machine::over(memory, self.l2_bytes, self.overhead_cycles, atlas.clock_tick_cycles());
        let mut classifier = Classifier::new(atlas, Plan { pages_max: pages, seed: 1 })?;
        classifier.set_decoding_cores(&self.cores);
        classifier.add(&machine, pages);
        let mut codes = BTreeMap::new();
        for turn in 0..TURNS {
            for &core in &self.cores {
                affinity::pin(core)?;
                if turn == 0 {
                    classifier.identify(&mut machine)?;
                }
                classifier.slice(&mut machine, TURN_NS)?;
                while let Some(event) = classifier.next_event() {
                    match event {
                        Event::Ready(page, found) => codes.insert(page.0, found),
                        Event::Replaced(page) => codes.remove(&page.0),
                    };
                }
            }
            if codes.len() == pages {
                break;
            }
        }
        // Where the cores are now: the host may have moved them meanwhile.
        for &core in &self.cores {
            affinity::pin(core)?;
            classifier.identify(&mut machine)?;
        }
        Ok((codes, self.cores.iter().map(|&core| classifier.current_bases(core)).collect()))
    }
}

/// The latency of a line of a page with this code.
fn at(table: &[f32], code: Code, line: LineAddr) -> Option<f32> {
    let place = usize::try_from(line.0 % LINES_PER_PAGE as u64).ok()?;
    let cycles = table.get(usize::from(code.0) ^ place).copied();
    cycles.filter(|cycles| cycles.is_finite())
}

/// Lines of which nothing is known are as far as the others on average; empty where nothing is known of any.
fn completed(distances: &[Option<f64>]) -> Vec<f64> {
    let known: Vec<f64> = distances.iter().flatten().copied().collect();
    let Some(middle) = mean(&known) else { return Vec::new() };
    distances.iter().map(|distance| distance.unwrap_or(middle)).collect()
}

#[allow(clippy::cast_precision_loss, reason = "counts of lines are far below 2^52")]
const fn count(n: usize) -> f64 {
    n as f64
}

#[cfg(test)]
mod tests {
    use super::completed;

    #[test]
    fn lines_of_which_nothing_is_known_lie_in_the_middle() {
        assert_eq!(completed(&[Some(10.0), None, Some(30.0)]), [10.0, 20.0, 30.0]);
        assert!(completed(&[None, None]).is_empty());
    }
}
