//! Figure 2 of the modelled chip: latency of consecutive blocks of memory from several cores.

use isochrone_machine::Machine;

use super::constants::{NAMED, Spread};
use super::map::PAGE_LINES;
use super::{Costs, Figure4Error, Learn, Plan, Stage};

/// Cores that are drawn: the two that the text names, and two between them (assumed).
const CORES: [u16; 4] = [0, 15, 30, 45];
const _: () = assert!(NAMED[1] == CORES[0] as usize && NAMED[0] == CORES[3] as usize);
/// Pages that are drawn.
const PAGES: u32 = 2;

/// The blocks of the first pages, by one reading of the published spread.
#[derive(Clone, Debug, PartialEq)]
pub struct ChipBlocks {
    /// The reading.
    pub spread: Spread,
    /// What a hop costs then.
    pub hop_cycles: f64,
    /// Core, and cycles of each block.
    pub cores: Vec<(u16, Vec<f64>)>,
}

/// The blocks by both readings, in the machine file's order of stops.
///
/// # Errors
/// As for [`super::figure4`].
pub fn chip_blocks(
    machine: &Machine,
    plan: &Plan,
    learn: Learn<'_>,
) -> Result<Vec<ChipBlocks>, Figure4Error> {
    let lacks = Figure4Error::Machine { name: machine.name.clone(), what: "costs of memory" };
    let frozen = Costs::of(machine).ok_or(lacks)?;
    let one = |spread| {
        let stage = Stage::new(machine, &Costs { spread, ..frozen })?;
        let map = stage.scene(plan, 0, learn)?.map;
        let blocks = |core: u16| {
            let of = |line| map.latency(usize::from(core), line);
            (core, (0..PAGES * PAGE_LINES).map(of).collect())
        };
        let cores = CORES.map(blocks).into();
        Ok(ChipBlocks { spread, hop_cycles: stage.chip.hop_cycles(), cores })
    };
    Spread::ALL.into_iter().map(one).collect()
}
