//! This machine's side, from an atlas: its own grid of region latencies, what the block levels
//! say of each core, and consecutive blocks. Carries the atlas's reading along; it measures
//! nothing and fills nothing in.

use isochrone_atlas_store::contents::{Cell, Contents};
use isochrone_units::{Level, Reading};

use super::figure2::{Blocks, consecutive_blocks};

/// Pages of consecutive blocks in the figure: 128 blocks, enough that a second page's key shows.
const FIGURE_PAGES: usize = 2;

/// One grid of region latencies.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RegionGrid {
    /// How it was chased through.
    pub(crate) mode: String,
    /// Bytes of the buffer.
    pub(crate) buffer_bytes: u64,
    /// Names of cores.
    pub(crate) rows: Vec<String>,
    /// Names of regions.
    pub(crate) columns: Vec<String>,
    /// Row-major cells, nanoseconds a load.
    pub(crate) cells: Vec<Option<Cell>>,
}

/// What a block level says of one core.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CoreLevel {
    /// The level.
    pub(crate) level: String,
    /// The core.
    pub(crate) core: u16,
    /// Mean latency of all lines.
    pub(crate) mean_ns: Option<f64>,
    /// Mean latency of the nearest quarter of the lines.
    pub(crate) near_quarter_ns: Option<f64>,
    /// 90th over 10th percentile of line latency.
    pub(crate) spread_p90_p10: Option<f64>,
    /// Share of the variance of pages not learnt from that the pattern explains.
    pub(crate) r2_heldout: Option<f64>,
}

/// This machine, as its atlas has it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Measured {
    /// Measured or simulated, as the atlas says.
    pub(crate) reading: Reading,
    /// False if the run that made the atlas was interrupted.
    pub(crate) complete: bool,
    /// The machine in words.
    pub(crate) title: String,
    /// Region latencies, one grid a mode.
    pub(crate) regions: Vec<RegionGrid>,
    /// Block latencies, by level and core.
    pub(crate) levels: Vec<CoreLevel>,
    /// Consecutive blocks, one figure a level.
    pub(crate) figures: Vec<Blocks>,
}

impl Measured {
    /// From an atlas.
    pub(crate) fn of(contents: &Contents) -> Self {
        let machine = &contents.machine;
        let model = machine.cpu.as_ref().and_then(|cpu| cpu.model_name.clone());
        Self {
            reading: contents.reading,
            complete: contents.complete,
            title: model.unwrap_or_else(|| machine.title.clone()),
            regions: contents
                .regions
                .iter()
                .map(|map| RegionGrid {
                    mode: map.mode.clone(),
                    buffer_bytes: map.buffer_bytes,
                    rows: map.latency_ns.rows.clone(),
                    columns: map.latency_ns.columns.clone(),
                    cells: map.latency_ns.cells.clone(),
                })
                .collect(),
            levels: levels(contents),
            figures: Level::ALL
                .into_iter()
                .filter_map(|level| consecutive_blocks(contents, level, FIGURE_PAGES))
                .collect(),
        }
    }
}

fn levels(contents: &Contents) -> Vec<CoreLevel> {
    let mut all = Vec::new();
    for map in &contents.levels {
        for (core, quality) in contents.machine.cores.iter().zip(&map.quality) {
            all.push(CoreLevel {
                level: map.level.clone(),
                core: core.id,
                mean_ns: quality.mean_ns,
                near_quarter_ns: quality.near_quarter_ns,
                spread_p90_p10: quality.spread_p90_p10,
                r2_heldout: quality.r2_heldout,
            });
        }
    }
    all
}
