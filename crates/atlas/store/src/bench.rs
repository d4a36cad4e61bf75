//! How long a query takes: random queries, each of whose addresses depends on the answer before.
//!
//! Independent queries overlap and would show throughput; an allocator that asks for one line
//! waits for the answer, so the time of a chain is what counts. It emits a number and asserts none.

use crate::contents::PageBlock;
use isochrone_atlas::{Atlas, LevelView};
use isochrone_units::{CoreId, Level, LineAddr};
use std::hint::black_box;
use std::time::Instant;

/// Queries in a batch: their addresses take 8 KiB, a quarter of a first-level cache.
const BATCH: usize = 1024;
/// Batches; the first quarter warms the caches and is dropped.
const BATCHES: usize = 800;
/// Pages of a block, as a mask.
const PAGE_MASK: u64 = 511;

/// The time of a dependent random query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueryTime {
    /// Median over batches, without the arithmetic that makes the next address.
    pub ns_p50: f64,
    /// Median with that arithmetic.
    pub chain_ns_p50: f64,
    /// Pages that were asked about.
    pub pages: u64,
}

/// Times queries over all pages of an atlas. `None` if it has no pages or nothing of this core
/// and level.
#[must_use]
pub fn bench_query(atlas: &Atlas<'_>, core: CoreId, level: Level, seed: u64) -> Option<QueryTime> {
    let view = atlas.view(core, level)?;
    let blocks: Vec<u64> = atlas.blocks().map(|block| block.first_frame).collect();
    if blocks.is_empty() {
        return None;
    }
    let mut random = SplitMix(seed);
    let (mut with, mut without) = (Vec::new(), Vec::new());
    let mut lines = vec![0; BATCH];
    for batch in 0..BATCHES {
        for line in &mut lines {
            let block = usize::try_from(random.below(blocks.len() as u64)).unwrap_or(0);
            *line = blocks[block] * 64 + random.below(64 * (PAGE_MASK + 1));
        }
        let chain = timed(|| ask(&view, &lines));
        let empty = timed(|| only_addresses(&lines));
        if batch >= BATCHES / 4 {
            with.push(chain);
            without.push(empty);
        }
    }
    let chain_ns_p50 = median(&mut with);
    Some(QueryTime {
        ns_p50: chain_ns_p50 - median(&mut without),
        chain_ns_p50,
        pages: blocks.len() as u64 * (PAGE_MASK + 1),
    })
}

/// Another page of the same block, by the bits of the last answer.
#[inline]
const fn next(line: u64, last: u32) -> LineAddr {
    LineAddr(line ^ ((last as u64 & PAGE_MASK) << 6))
}

#[inline(never)]
fn ask(view: &LevelView<'_>, lines: &[u64]) -> u32 {
    let mut last = 0;
    for &line in lines {
        last = view.get(next(line, last)).map_or(0, f32::to_bits);
    }
    last
}

/// The same chain without the query: the next address depends on the last one.
#[inline(never)]
fn only_addresses(lines: &[u64]) -> u32 {
    let mut last = 0;
    for &line in lines {
        let bytes = black_box(next(line, last)).0.to_le_bytes();
        last = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    }
    last
}

/// Nanoseconds a query of one batch.
fn timed(batch: impl FnOnce() -> u32) -> f64 {
    let start = Instant::now();
    black_box(batch());
    start.elapsed().as_secs_f64() * 1e9 / f64::from(u32::try_from(BATCH).unwrap_or(u32::MAX))
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// How the codes of modelled pages come about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageModel {
    /// Every page has a code of its own: the hardest table for a query.
    Independent,
    /// An XOR hash of the frame's bits, and in so many of 1024 pages another code.
    Hashed {
        /// Pages of 1024 that do not follow.
        strays: u64,
    },
}

/// Contiguous modelled pages, to measure sizes that the memory at hand has not. Codes use the bits
/// of `code_mask`.
#[must_use]
pub fn model_pages(blocks: u64, model: PageModel, code_mask: u16, seed: u64) -> Vec<PageBlock> {
    let mut random = SplitMix(seed);
    let mut codes = |first_frame: u64| {
        let mut codes = Box::new([0_u16; 512]);
        for (frame, code) in (first_frame..).zip(codes.iter_mut()) {
            let stray = match model {
                PageModel::Independent => true,
                PageModel::Hashed { strays } => random.below(1024) < strays,
            };
            let hash = frame ^ (frame >> 5) ^ (frame >> 9) ^ (frame >> 14);
            let value = if stray { random.next() } else { hash };
            let bytes = value.to_le_bytes();
            *code = u16::from_le_bytes([bytes[0], bytes[1]]) & code_mask;
        }
        codes
    };
    (4..blocks + 4)
        .map(|block| {
            let first_frame = block * (PAGE_MASK + 1);
            PageBlock { first_frame, llc: codes(first_frame), dram: codes(first_frame) }
        })
        .collect()
}

/// Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014, figure 15.
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`; the bias of the remainder does not matter for bounds below 2^32.
    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}
