//! The figures of a map, as `map --json` writes them. Their names are a contract: fields are added, never renamed.

use anyhow::Result;
use isochrone_atlas::Atlas;
use isochrone_atlas_store::contents::{
    Bandwidth, Contents, CostTerm, DriftEvent, Graded, Interaction, LevelMap, LlcShare, Matrix,
    MultiLineFit, PageBlock, Placement, Quality, TransferMap, Verified,
};
use isochrone_atlas_store::{bench_query, encode};
use isochrone_units::{CoreId, Experiment, Level, Reading};
use serde::Serialize;
use std::collections::BTreeMap;

/// Pages of 1 GiB: fewer would stay in the near caches and flatter the query.
const QUERY_PAGES: u64 = 1 << 18;
/// Seed of the queries that are timed.
const QUERY_SEED: u64 = 1;

/// Everything that `map --json` prints.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Figures {
    reading: Reading,
    complete: bool,
    cores: usize,
    regions: usize,
    seconds: f64,
    atlas_bytes: u64,
    atlas_pages: u64,
    atlas_bytes_per_page: Option<f64>,
    query_ns_p50: Option<f64>,
    query_chain_ns_p50: Option<f64>,
    query_dram_ns_p50: Option<f64>,
    query_pages: Option<u64>,
    query_over: String,
    block: Block,
    line_transfer: Option<LineTransfer>,
    region_latency: Vec<RegionFigure>,
    multi_line: Vec<MultiLineFit>,
    interactions: Vec<Interaction>,
    terms: Vec<CostTerm>,
    bandwidth: Vec<Bandwidth>,
    llc_shares: Vec<LlcShare>,
    quality: BTreeMap<Experiment, Graded>,
    drift_events: Vec<DriftEvent>,
    placement: Option<Placement>,
    missing: Vec<String>,
    seed: u64,
    version: String,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Block {
    llc: Option<BlockLevel>,
    dram: Option<BlockLevel>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct BlockLevel {
    form: String,
    reason: String,
    method: String,
    period: u16,
    classes: u8,
    distinct_keys: usize,
    noise_cycles: f64,
    r2_heldout: Option<f64>,
    r2_ceiling: Option<f64>,
    lines_per_page: Option<f64>,
    samples_per_page: Option<f64>,
    us_per_page: Option<f64>,
    decoding_cores: Option<u32>,
    us_breakdown: Vec<(String, f64)>,
    key_accuracy: Option<f64>,
    near_regret: Option<f64>,
    spread_p90_p10: Option<f64>,
    mean_ns: Option<f64>,
    near_quarter_ns: Option<f64>,
    decoded_pages: u64,
    bases: usize,
    cores: Vec<CoreFigure>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct CoreFigure {
    core: u16,
    r2_heldout: Option<f64>,
    r2_ceiling: Option<f64>,
    key_accuracy: Option<f64>,
    near_regret: Option<f64>,
    spread_p90_p10: Option<f64>,
    mean_ns: Option<f64>,
    near_quarter_ns: Option<f64>,
    /// Where the core was not learnt in full: how it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    verified: Option<Verified>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct LineTransfer {
    state: String,
    median_ns: f64,
    lo_ns: f64,
    hi_ns: f64,
    p5_ns: f64,
    p95_ns: f64,
    best_line_ns: Option<f64>,
    lines: u32,
    pairs: usize,
    states: Vec<StateFigure>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct StateFigure {
    state: String,
    what: String,
    median_ns: Option<f64>,
    p5_ns: Option<f64>,
    p95_ns: Option<f64>,
    best_line_ns: Option<f64>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct RegionFigure {
    mode: String,
    buffer_bytes: u64,
    cells: Matrix,
}

/// What the query benchmark gave.
#[derive(Clone, Copy, Debug, Default)]
pub struct QueryFigures {
    ns_p50: Option<f64>,
    chain_ns_p50: Option<f64>,
    /// The same as the first for the codes of the other level.
    dram_ns_p50: Option<f64>,
    pages: Option<u64>,
    padded: bool,
    /// Bytes of the codes of this atlas's own pages.
    code_bytes: u64,
}

impl QueryFigures {
    /// Times dependent random queries over this atlas; where it has fewer pages than 1 GiB, over
    /// one with its bases and codes repeated to that size.
    ///
    /// # Errors
    /// Where the atlas is not one that can be written.
    pub fn of_atlas(contents: &Contents) -> Result<Self> {
        let own = contents.pages.len() as u64 * 512;
        let padded = own < QUERY_PAGES;
        let fault = |error| anyhow::anyhow!("{error}");
        let mut bytes = encode(contents)?;
        let code_bytes = Atlas::open(&bytes).map_err(fault)?.page_code_bytes() as u64;
        if padded {
            bytes = encode(&padded_to(contents, QUERY_PAGES))?;
        }
        let atlas = Atlas::open(&bytes).map_err(fault)?;
        let core = contents.machine.cores.first().map_or(0, |c| c.id);
        let time = bench_query(&atlas, CoreId(core), Level::Llc, QUERY_SEED);
        let dram = bench_query(&atlas, CoreId(core), Level::Dram, QUERY_SEED);
        Ok(Self {
            ns_p50: time.map(|t| t.ns_p50),
            chain_ns_p50: time.map(|t| t.chain_ns_p50),
            dram_ns_p50: dram.map(|t| t.ns_p50),
            pages: time.map(|t| t.pages),
            padded,
            code_bytes,
        })
    }
}

/// The same atlas with as many pages as it takes, for timing alone: their codes are drawn from
/// the shares that were seen.
fn padded_to(contents: &Contents, pages: u64) -> Contents {
    let draw = |level: Level, frame: u64| {
        let map = contents.levels.iter().find(|l| l.level == level.as_str());
        let draw = isochrone_stats::derive_seed(QUERY_SEED + level as u64, frame) >> 11;
        let mut left = draw as f64 / (1_u64 << 53) as f64;
        let shares = map.map_or(&[][..], |l| &l.code_share[..]);
        for (code, share) in (0_u16..).zip(shares) {
            left -= f64::from(*share);
            if left < 0.0 {
                return code;
            }
        }
        0
    };
    let block = |first_frame: u64| {
        let mut block =
            PageBlock { first_frame, llc: Box::new([0; 512]), dram: Box::new([0; 512]) };
        for (frame, (llc, dram)) in
            (first_frame..).zip(block.llc.iter_mut().zip(block.dram.iter_mut()))
        {
            (*llc, *dram) = (draw(Level::Llc, frame), draw(Level::Dram, frame));
        }
        block
    };
    let pages = (0..pages / 512).map(|b| block(b * 512)).collect();
    Contents { pages, ..contents.clone() }
}

/// Gathers the figures of an atlas that takes so many bytes.
#[must_use]
pub fn figures(contents: &Contents, atlas_bytes: u64, query: QueryFigures) -> Figures {
    let pages = contents.pages.len() as u64 * 512;
    Figures {
        reading: contents.reading,
        complete: contents.complete,
        cores: contents.machine.cores.len(),
        regions: contents.machine.regions.len(),
        seconds: contents.provenance.seconds,
        atlas_bytes,
        atlas_pages: pages,
        // Whatever the number of pages, the rest of the file is a fixed cost.
        atlas_bytes_per_page: (pages > 0).then(|| query.code_bytes as f64 / pages as f64),
        query_ns_p50: query.ns_p50,
        query_chain_ns_p50: query.chain_ns_p50,
        query_dram_ns_p50: query.dram_ns_p50,
        query_pages: query.pages,
        query_over: match (query.pages, query.padded) {
            (None, _) => "nothing: no query was timed".into(),
            (Some(_), true) => "this atlas's bases over 1 GiB of made-up pages".into(),
            (Some(_), false) => "this atlas".into(),
        },
        block: Block { llc: block(contents, Level::Llc), dram: block(contents, Level::Dram) },
        line_transfer: line_transfer(contents),
        region_latency: regions(contents),
        multi_line: contents.multiline.clone(),
        interactions: contents.interactions.clone(),
        terms: contents.terms.clone(),
        bandwidth: contents.bandwidth.clone(),
        llc_shares: contents.llc_shares.clone(),
        quality: contents.quality.clone(),
        drift_events: contents.drift.clone(),
        placement: contents.placement.clone(),
        missing: contents.provenance.missing.clone(),
        seed: contents.provenance.seed,
        version: contents.provenance.version.clone(),
    }
}

fn block(contents: &Contents, level: Level) -> Option<BlockLevel> {
    let map = contents.levels.iter().find(|l| l.level == level.as_str())?;
    let first = map.quality.first().cloned().unwrap_or_default();
    let form = serde_json::to_value(map.form).ok();
    Some(BlockLevel {
        form: form.and_then(|f| f.as_str().map(Into::into)).unwrap_or_default(),
        reason: map.reason.clone(),
        method: map.method.clone(),
        period: map.period,
        classes: map.classes,
        distinct_keys: distinct_keys(map),
        noise_cycles: map.noise_cycles,
        r2_heldout: first.r2_heldout,
        r2_ceiling: first.r2_ceiling,
        lines_per_page: first.lines_per_page,
        samples_per_page: first.samples_per_page,
        us_per_page: first.us_per_page,
        decoding_cores: first.decoding_cores,
        us_breakdown: first.us_breakdown.clone(),
        key_accuracy: first.key_accuracy,
        near_regret: first.near_regret,
        spread_p90_p10: first.spread_p90_p10,
        mean_ns: first.mean_ns,
        near_quarter_ns: first.near_quarter_ns,
        decoded_pages: first.decoded_pages,
        bases: map.bases.len(),
        cores: contents
            .machine
            .cores
            .iter()
            .zip(&map.quality)
            .map(|(c, q)| core(c.id, q))
            .collect(),
    })
}

fn core(core: u16, quality: &Quality) -> CoreFigure {
    CoreFigure {
        core,
        r2_heldout: quality.r2_heldout,
        r2_ceiling: quality.r2_ceiling,
        key_accuracy: quality.key_accuracy,
        near_regret: quality.near_regret,
        spread_p90_p10: quality.spread_p90_p10,
        mean_ns: quality.mean_ns,
        near_quarter_ns: quality.near_quarter_ns,
        verified: quality.verified,
    }
}

fn distinct_keys(map: &LevelMap) -> usize {
    let mut keys = map.canonical_key.clone();
    keys.sort_unstable();
    keys.dedup();
    keys.len()
}

/// The compare-and-swap map where it has any number (it is what peers measure), else the first that has.
fn line_transfer(contents: &Contents) -> Option<LineTransfer> {
    let maps = &contents.transfers;
    let has_any = |map: &&TransferMap| map.latency_ns.cells.iter().any(Option::is_some);
    let mut with_numbers = maps.iter().filter(has_any);
    let chosen = with_numbers.clone().find(|m| m.state == "cas").or_else(|| with_numbers.next())?;
    let cells: Vec<_> = chosen.latency_ns.cells.iter().flatten().collect();
    let middle = middle_cell(&cells)?;
    let best = |best: &[Option<f64>]| best.iter().flatten().copied().min_by(f64::total_cmp);
    let states = maps
        .iter()
        .map(|map| {
            let cells: Vec<_> = map.latency_ns.cells.iter().flatten().collect();
            let middle = middle_cell(&cells);
            StateFigure {
                state: map.state.clone(),
                what: map.what.clone(),
                median_ns: middle.map(|c| c.median),
                p5_ns: middle.map(|c| c.p5),
                p95_ns: middle.map(|c| c.p95),
                best_line_ns: best(&map.best_line_ns),
            }
        })
        .collect();
    Some(LineTransfer {
        state: chosen.state.clone(),
        median_ns: middle.median,
        lo_ns: middle.lo,
        hi_ns: middle.hi,
        p5_ns: middle.p5,
        p95_ns: middle.p95,
        best_line_ns: best(&chosen.best_line_ns),
        lines: chosen.lines,
        pairs: cells.len(),
        states,
    })
}

/// The cell with the median latency: one that was measured, not a mixture.
fn middle_cell<'c>(
    cells: &[&'c isochrone_atlas_store::contents::Cell],
) -> Option<&'c isochrone_atlas_store::contents::Cell> {
    let mut cells = cells.to_vec();
    cells.sort_by(|a, b| a.median.total_cmp(&b.median));
    cells.get(cells.len() / 2).copied()
}

fn regions(contents: &Contents) -> Vec<RegionFigure> {
    let figure = |map: &isochrone_atlas_store::contents::RegionMap| RegionFigure {
        mode: map.mode.clone(),
        buffer_bytes: map.buffer_bytes,
        cells: map.latency_ns.clone(),
    };
    contents.regions.iter().map(figure).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use isochrone_view::fixtures::genoa;

    #[test]
    fn kinds_of_transfers_that_had_time_are_there_without_those_that_had_none() {
        let of = |without: &[&str]| {
            let mut found = genoa();
            for map in found.transfers.iter_mut().filter(|m| without.contains(&&*m.state)) {
                map.latency_ns.cells.iter_mut().for_each(|cell| *cell = None);
            }
            line_transfer(&found)
        };
        assert_eq!(of(&[]).expect("all").state, "cas");
        let found = of(&["cas"]).expect("the others");
        assert_eq!((&*found.state, found.pairs), ("modified", 2));
        let cas = found.states.iter().find(|state| state.state == "cas").expect("it is named");
        assert_eq!(cas.median_ns, None);
        assert!(of(&["cas", "modified", "exclusive", "shared"]).is_none());
    }
}
