//! `isochrone reproduce hidden-numa`: every figure of the Euro-Par paper with numbers in it, the
//! paper's own beside ours.
//!
//! Figure 2 is this machine's, from its atlas. Figure 4 is simulated, on the paper's machine: the
//! real allocator and the real search, on modelled memory. What A* gained on this machine comes
//! from a file of `isochrone bench astar` and stands apart. Figures 1 and 3 are drawings.

mod benched;
mod chip;
mod json;
mod learner;
mod learnt;
mod page;
mod rows;
mod shown;
mod tables;
mod terminal;

#[cfg(test)]
mod tests;

use crate::latency_checker::figure2::Blocks;
use crate::latency_checker::measured::Measured;
use anyhow::{Context, Result};
use isochrone_atlas_store::contents::Contents;
use isochrone_machine::Machine;
use isochrone_stats::quantile;
use isochrone_workloads::figure4::{
    ChipBlocks, Curve, Database, Figure4, HopRange, Learning, Plan, Readings, Recorded, SearchPlan,
    Variation, chip_blocks, figure4, hop_range, learnt, readings, sweep,
};

pub use benched::Benched;

/// The paper's machine, by the name of its file.
const MACHINE: &str = "xeon-phi-5110p";
/// "Accessing the physical address 0x125080 from CPU core 45 is approximately 60 % slower than
/// from core 0" (section 2).
const PUBLISHED_SPREAD: f64 = 1.60;

/// Everything that is shown.
#[derive(Clone, Debug)]
pub struct Reproduction {
    /// Seed of what is simulated.
    pub(crate) seed: u64,
    /// This machine's side of Figure 2, where there is an atlas.
    measured: Option<Measured>,
    /// Figure 4, simulated.
    simulated: Figure4,
    /// What each assumption of the simulation is worth.
    variations: Vec<Variation>,
    /// The figure at the ends of the assumed range of a hop, where the machine file has one.
    hop_range: Option<HopRange>,
    /// The figure by every reading of what is not published.
    readings: Readings,
    /// Figure 2 of the modelled chip.
    chip: Vec<ChipBlocks>,
    /// What the probe learns of the modelled memory, beside the oracle.
    learning: Learning,
    /// A* on this machine, where a benchmark's file was named.
    benched: Option<Benched>,
}

/// Simulates Figure 4 and puts this machine's own figures apart from it.
///
/// # Errors
/// When the machine file lacks what the model is built from, or the plan does not fit it.
pub fn hidden_numa(
    atlas: Option<&Contents>,
    benched: Option<Benched>,
    plan: &Plan,
) -> Result<Reproduction> {
    let machine: Machine =
        isochrone_host::find_machine(MACHINE).context("reading the paper's machine")?;
    let recorded = Recorded::new(plan).context("searching the boards of the simulation")?;
    // The paper's database holds a measured latency for each block and core; so does this.
    let learn = &mut |memory: &_| Database::of_truth(memory);
    let simulated = figure4(&machine, plan, &recorded, learn).context("simulating Figure 4")?;
    let variations = sweep(&machine, plan, &recorded, learn).context("varying the constants")?;
    let hop_range =
        hop_range(&machine, plan, &recorded, learn).context("varying the cost of a hop")?;
    let readings =
        readings(&machine, plan, &recorded, learn).context("reading the 60 % in other ways")?;
    let chip = chip_blocks(&machine, plan, learn).context("drawing the blocks of the chip")?;
    let learner = &mut |memory: &_| learner::learn(memory, plan.heap_pages.into());
    let learning =
        learnt(&machine, plan, &recorded, learner).context("learning the modelled memory")?;
    Ok(Reproduction {
        seed: plan.seed,
        measured: atlas.map(Measured::of),
        simulated,
        variations,
        hop_range,
        readings,
        chip,
        learning,
        benched,
    })
}

impl Reproduction {
    /// Each curve with its gains at the ends of the range of a hop, by number of cores.
    fn curves(&self) -> impl Iterator<Item = (&Curve, Option<Ends<'_>>)> {
        self.simulated.curves.iter().enumerate().map(|(at, curve)| {
            let range = self.hop_range.as_ref();
            let ends = range.and_then(|range| {
                Some(Ends { hop_cycles: range.hop_cycles, gains: range.gains.get(at)? })
            });
            (curve, ends)
        })
    }

    fn blocks(&self) -> &[Blocks] {
        self.measured.as_ref().map_or(&[], |measured| &measured.figures)
    }
}

/// One curve at the ends of the range of a hop.
#[derive(Clone, Copy, Debug)]
struct Ends<'a> {
    /// Least and most, cycles.
    hop_cycles: [f64; 2],
    /// By number of cores: the gain at either end.
    gains: &'a [[f64; 2]],
}

impl Ends<'_> {
    /// Whether what the paper's text says of numbers of cores lies between the ends: its lowest
    /// gain where it has that, its highest where it has that. `None` where neither was run.
    fn hold_published(&self, curve: &Curve) -> Option<bool> {
        use isochrone_workloads::figure4::PUBLISHED;
        let named = curve.points.iter().zip(self.gains).filter_map(|(point, ends)| {
            let published = if PUBLISHED.lowest_at.contains(&point.cores) {
                PUBLISHED.lowest
            } else if PUBLISHED.highest_at == point.cores {
                PUBLISHED.highest
            } else {
                return None;
            };
            Some((ends[0]..=ends[1]).contains(&published))
        });
        named.reduce(|all, one| all && one)
    }
}

/// A curve in words: which shape, how far.
fn shape(curve: &Curve) -> String {
    extent(curve.search)
}

/// A search in words.
fn extent(search: SearchPlan) -> String {
    match search {
        SearchPlan::Hashed { nodes, .. } => format!("hash table and bucket queue, {nodes} nodes"),
        SearchPlan::Linear { nodes, .. } => format!("linear lists, {nodes} nodes"),
    }
}

/// The part of single values that may lie beyond a spread: one line that was timed while its core was taken away is
/// several times as slow as all others, and no property of the memory.
const BEYOND: f64 = 0.05;

/// A value below which all but [`BEYOND`] of these are.
fn most(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    quantile(&values, 1.0 - BEYOND)
}

/// How many times slower than the fastest access shown all but a twentieth of a figure's accesses are.
fn spread(blocks: &Blocks) -> Option<f64> {
    most(blocks.cores.iter().flat_map(|(_, line)| line.iter().copied()))
}

/// The ratio of two cores' latencies of one block, as the paper's 1.60 is: of each block the largest, and over blocks
/// what all but a twentieth stay below.
fn spread_of_a_block(blocks: &Blocks) -> Option<f64> {
    let count = blocks.cores.iter().map(|(_, line)| line.len()).min()?;
    let of = |block: usize| {
        let seen = blocks.cores.iter().map(|(_, line)| line[block]);
        let (least, most) = seen.fold((f64::INFINITY, 0.0_f64), |(a, b), v| (a.min(v), b.max(v)));
        most / least
    };
    most((0..count).map(of))
}
