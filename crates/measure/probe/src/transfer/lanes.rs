//! Which lines pairs of cores exchange: as many sets as run together, no line in two of them. Pure.

use isochrone_units::{LINES_PER_PAGE, LineAddr};

/// The fewest lines for a pair that still give 5th and 95th percentiles over homes.
pub const LINES_MIN: u32 = 32;

/// Why no plan can be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Too few lines for each pair
    #[error("{asked} lines a pair cannot show the spread over homes; use {LINES_MIN} or more")]
    FewLines {
        /// Lines asked for.
        asked: u32,
    },
    /// The arena or the given pool has too few lines
    #[error("{needed} lines are needed and {given} are there; use a larger arena or fewer lines")]
    SmallArena {
        /// Lines needed.
        needed: u64,
        /// Lines there.
        given: u64,
    },
}

/// Where lines lie when none are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Far apart, so that a timed load cannot be helped by what another one brought along.
    Spread,
    /// Whole pages. A page has each distance of the pattern equally often, so that the median over
    /// its lines does not depend on which page it is; spread lines are a random draw of homes, and
    /// the medians of two runs then differ by that draw. Only for lines that are used one by one.
    Pages,
}

/// `lanes` disjoint sets of `each` lines.
///
/// # Errors
/// [`PlanError::SmallArena`] when there are not so many.
pub fn lanes(
    lanes: usize,
    each: u32,
    arena_lines: u64,
    pool: Option<&[LineAddr]>,
    layout: Layout,
) -> Result<Vec<Vec<LineAddr>>, PlanError> {
    let each = each as usize;
    let needed = (lanes * each) as u64;
    let given = pool.map_or(arena_lines, |lines| lines.len() as u64);
    if given < needed {
        return Err(PlanError::SmallArena { needed, given });
    }
    let slots: Vec<LineAddr> = match pool {
        Some(lines) => lines[..lanes * each].to_vec(),
        None if layout == Layout::Pages => (0..needed).map(LineAddr).collect(),
        None => (0..needed).map(|slot| spread(slot, arena_lines)).collect(),
    };
    Ok(slots.chunks(each.max(1)).map(<[LineAddr]>::to_vec).collect())
}

/// The `slot`-th line when lines are spread over an arena: each next one on the next page and at
/// the next index, so that no two of them share a page for long and all indices come equally often.
fn spread(slot: u64, arena_lines: u64) -> LineAddr {
    let per_page = LINES_PER_PAGE as u64;
    let pages = arena_lines / per_page;
    if pages < per_page {
        // 37 is odd, so this is a permutation of any power-of-two number of lines; an arena of
        // another size is too small to be spread over and is used in order.
        let scattered = slot * 37 % arena_lines;
        return LineAddr(if arena_lines.is_power_of_two() { scattered } else { slot });
    }
    let pages = pages - pages % per_page;
    LineAddr(slot % pages * per_page + (slot + slot / pages) % per_page)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_lines_of_a_lane_lie_on_different_pages_and_hold_every_index_once() {
        for lane in lanes(5, 64, 512 * 64, None, Layout::Spread).unwrap() {
            let pages: BTreeSet<_> = lane.iter().map(|line| line.page()).collect();
            let indices: BTreeSet<_> = lane.iter().map(|line| line.index_in_page()).collect();
            assert_eq!((pages.len(), indices.len()), (64, 64));
        }
    }

    #[test]
    fn spread_lines_are_distinct_up_to_a_full_arena() {
        for arena in [64, 256, 100, 64 * 64, 64 * 200] {
            let most = if arena == 64 * 200 { 64 * 192 } else { arena };
            let lines: BTreeSet<_> = (0..most).map(|slot| spread(slot, arena)).collect();
            assert_eq!(lines.len() as u64, most, "arena of {arena}");
            assert!(lines.iter().all(|line| line.0 < arena));
        }
    }
}
