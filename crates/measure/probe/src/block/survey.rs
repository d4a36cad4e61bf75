//! Looks at many pages for a moment, for those that lie on farther nodes of the machine.
//!
//! A host may put one page in fifty on another node. So few are among the training pages that the shapes
//! which lines have there would not all be seen, and what was not seen is decoded as something else. A
//! handful of loads tells such a page, so as many of them as it takes are sought and learnt from too. What
//! shares codes have is still taken from the random ones alone, and held-out pages stay random.

use isochrone_stats::{mad, median, rng, shuffle};
use isochrone_units::{CoreId, Cycles, Level, LineAddr, PageAddr};

use super::plan::PAGES_PER_BLOCK;
use crate::target::{Target, TargetError};

/// Blocks of pages that are looked at.
const BLOCKS: usize = 2048;
/// Lines of each page, far from each other (`apart`); the median of so many is a page's.
const LINES: [u8; 7] = [3, 27, 51, 11, 35, 59, 19];
/// How much farther than the median a page must be at least, as a share of it: see `far`.
const FAR_SHARE: f64 = 0.12;
/// Standard deviations of pages that it must be farther.
const FAR_Z: f64 = 5.0;
/// Where more pages than this share are far, the random ones will do.
const RARE: f64 = 0.15;
/// A median absolute deviation as a standard deviation of a normal variable.
const MAD_TO_SD: f64 = 1.4826;

/// What to look for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Survey {
    /// The core that asks.
    pub(super) core: CoreId,
    /// Where lines are put.
    pub(super) level: Level,
    /// Pages that there are.
    pub(super) pages: u64,
    /// Pages wanted, at most.
    pub(super) most: usize,
    /// Seed of the orders.
    pub(super) seed: u64,
}

/// Whole blocks with pages on farther nodes, the ones with most of them first; none of those taken.
pub(super) fn far_pages(
    target: &mut dyn Target,
    survey: &Survey,
    taken: &[PageAddr],
) -> Result<Vec<PageAddr>, TargetError> {
    let mut rng = rng(survey.seed);
    let is_taken: std::collections::BTreeSet<u64> =
        taken.iter().map(|page| page.0 / PAGES_PER_BLOCK).collect();
    let mut blocks: Vec<u64> = (0..survey.pages / PAGES_PER_BLOCK).collect();
    shuffle(&mut blocks, &mut rng);
    blocks.retain(|block| !is_taken.contains(block));
    blocks.truncate(BLOCKS);
    let pages: Vec<PageAddr> = blocks
        .iter()
        .flat_map(|block| (0..PAGES_PER_BLOCK).map(move |i| PageAddr(block * PAGES_PER_BLOCK + i)))
        .collect();
    let mut seen = vec![Vec::with_capacity(LINES.len()); pages.len()];
    let mut order: Vec<usize> = (0..pages.len()).collect();
    for line in LINES {
        shuffle(&mut order, &mut rng);
        let lines: Vec<LineAddr> = order.iter().map(|page| pages[*page].line(line)).collect();
        let mut raw = vec![Cycles(0); lines.len()];
        target.sample(survey.core, survey.level, &lines, &mut raw)?;
        order.iter().zip(&raw).for_each(|(page, cycles)| seen[*page].push(f64::from(cycles.0)));
    }
    let overhead = target.clock().overhead;
    let latency: Vec<f64> =
        seen.iter().map(|values| median(values).unwrap_or(0.0) - overhead).collect();
    let wanted = survey.most / usize::try_from(PAGES_PER_BLOCK).unwrap_or(1);
    let chosen = far_blocks(&latency, wanted);
    let size = usize::try_from(PAGES_PER_BLOCK).unwrap_or(1);
    Ok(chosen.into_iter().flat_map(|block| pages[block * size..][..size].to_vec()).collect())
}

/// Blocks with far pages, by the latencies of all pages.
fn far_blocks(latency: &[f64], wanted: usize) -> Vec<usize> {
    let (Some(middle), Some(spread)) = (median(latency), mad(latency)) else { return Vec::new() };
    let limit = middle + (FAR_SHARE * middle).max(FAR_Z * MAD_TO_SD * spread);
    let far = latency.iter().filter(|cycles| **cycles > limit).count();
    if far as f64 > RARE * latency.len() as f64 {
        return Vec::new();
    }
    let size = usize::try_from(PAGES_PER_BLOCK).unwrap_or(1);
    let mut counts: Vec<(usize, usize)> = latency
        .chunks_exact(size)
        .map(|block| block.iter().filter(|cycles| **cycles > limit).count())
        .enumerate()
        .map(|(block, count)| (count, block))
        .filter(|(count, _)| *count > 0)
        .collect();
    counts.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    counts.into_iter().take(wanted).map(|(_, block)| block).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_far_pages_are_sought_and_common_ones_are_not() {
        let mut latency: Vec<f64> = (0..400).map(|page| 85.0 + f64::from(page % 13)).collect();
        assert_eq!(far_blocks(&latency, 8), [0; 0], "what lines differ by is not far");
        for page in [41, 200, 201, 202, 203, 301, 302] {
            latency[page] += 60.0;
        }
        assert_eq!(far_blocks(&latency, 8), [50, 75, 10]);
        assert_eq!(far_blocks(&latency, 2), [50, 75]);
        latency[..120].iter_mut().for_each(|cycles| *cycles += 60.0);
        assert_eq!(far_blocks(&latency, 8), [0; 0], "random pages show enough of them");
        assert_eq!(far_blocks(&[], 8), [0; 0]);
    }
}
