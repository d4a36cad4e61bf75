//! Figure 2 of the modelled chip, in the form in which this machine's is drawn.

use isochrone_units::{Level, Reading};
use isochrone_workloads::figure4::ChipBlocks;

use crate::latency_checker::figure2::Blocks;

/// Cycles of the chip in a nanosecond: 1.2 GHz, section 2.
const GHZ: f64 = 1.2;

/// The blocks by one reading of the 60 %.
pub(super) fn blocks(of: &ChipBlocks) -> Blocks {
    let all = of.cores.iter().flat_map(|(_, cycles)| cycles.iter().copied());
    let fastest = all.fold(f64::INFINITY, f64::min);
    let relative = |(core, cycles): &(u16, Vec<f64>)| {
        (*core, cycles.iter().map(|cycles| cycles / fastest).collect())
    };
    Blocks {
        level: Level::Dram,
        first_frame: None,
        cores: of.cores.iter().map(relative).collect(),
        fastest_ns: fastest / GHZ,
        what: format!(
            "the modelled Xeon Phi 5110P, where 60 % are the most of {}: a hop of {:.2} cycles",
            of.spread.as_str(),
            of.hop_cycles
        ),
        reading: Reading::Simulated,
    }
}
