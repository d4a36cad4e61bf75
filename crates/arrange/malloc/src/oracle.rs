//! An arm of experiments: every line of a pool measured beforehand, which is what decoding is held against.

use isochrone_alloc::live::{LineMeans, Timing as _};
use isochrone_alloc::{Order, PageCodes, UnitLines, oracle_rank};
use isochrone_os::OsError;
use isochrone_os::affinity;
use isochrone_os::table::Table;
use isochrone_units::{LINES_PER_PAGE, Level};

use crate::growth::Hold;
use crate::instance::Instance;
use crate::settings::InstanceError;

/// Times that every line is timed, in the last-level cache and in memory. A load in memory
/// scatters three times as wide as its classes lie apart.
const REPEATS: [u32; 2] = [16, 16];
/// Ranks of an oracle.
const RANKS: usize = 16;

impl Instance<'_> {
    /// Measures every line of the arena from the first two cores, and gives those that are not measured `until`
    /// then the last rank: how many pages were measured.
    pub(crate) fn measure(
        &self,
        hold: &mut Hold<'_>,
        live_bytes: usize,
        until: u64,
    ) -> Result<usize, InstanceError> {
        let pages = self.arena.pages();
        let shares = level_shares(live_bytes, self.heap().policy().llc_bytes);
        let mut means = LineMeans::new(self.heap().policy().seed)?;
        let mut step = Step::new()?;
        let mut known = 0;
        for first in (0..pages).step_by(LineMeans::PAGES) {
            let count = LineMeans::PAGES.min(pages - first);
            if hold.work.machine.now_ns() >= until {
                self.leave(first, count);
                continue;
            }
            known += count;
            for (side, core) in self.users().take(2).enumerate() {
                affinity::pin(core)?;
                step.measure(hold, &mut means, first, count, shares)?;
                step.rank(side);
            }
            for place in 0..count {
                let page = u32::try_from(first + place).unwrap_or(u32::MAX);
                let ranks = step.ranks_of(place);
                self.heap().page_measured(page, PageCodes::UNKNOWN, &ranks);
            }
        }
        let near = self.heap().policy().near;
        for (side, core) in self.users().take(2).enumerate() {
            for unit in UnitLines::ALL {
                let population = self.heap().population(unit);
                let order = Order::oracle(unit, side, near, Some(&population));
                self.heap().set_order(self.dense(core), &order);
            }
        }
        Ok(known)
    }

    /// Pages that nobody measures: taken last.
    fn leave(&self, first: usize, count: usize) {
        let last = (RANKS - 1).to_le_bytes()[0];
        let ranks = [oracle_rank(last, last); LINES_PER_PAGE];
        for page in first..first + count {
            let page = u32::try_from(page).unwrap_or(u32::MAX);
            self.heap().page_measured(page, PageCodes::UNKNOWN, &ranks);
        }
    }
}

/// One step of measuring: costs of lines, and their ranks for two cores.
struct Step {
    costs: Table<f32>,
    sorted: Table<f32>,
    ranks: [Table<u8>; 2],
    count: usize,
}

impl Step {
    fn new() -> Result<Self, OsError> {
        let lines = LineMeans::PAGES * LINES_PER_PAGE;
        Ok(Self {
            costs: Table::zeroed(lines)?,
            sorted: Table::zeroed(lines)?,
            ranks: [Table::zeroed(lines)?, Table::zeroed(lines)?],
            count: 0,
        })
    }

    /// The cost of each line from the core that runs this: its mean at each level, weighted.
    fn measure(
        &mut self,
        hold: &mut Hold<'_>,
        means: &mut LineMeans,
        first: usize,
        count: usize,
        shares: [f32; 2],
    ) -> Result<(), OsError> {
        let mut pages = [0; LineMeans::PAGES];
        for (place, page) in pages.iter_mut().enumerate() {
            *page = u32::try_from(first + place).unwrap_or(u32::MAX);
        }
        self.count = count * LINES_PER_PAGE;
        self.costs.fill(0.0);
        for ((level, share), repeats) in Level::ALL.into_iter().zip(shares).zip(REPEATS) {
            if share <= 0.0 {
                continue;
            }
            means.measure(&mut hold.work.machine, level, &pages[..count], repeats)?;
            for (at, cost) in self.costs[..self.count].iter_mut().enumerate() {
                let line = (at % LINES_PER_PAGE).to_le_bytes()[0];
                *cost += share * means.mean(at / LINES_PER_PAGE, line).unwrap_or(f32::INFINITY);
            }
        }
        Ok(())
    }

    /// Sixteenths of the lines, nearest first.
    fn rank(&mut self, side: usize) {
        let sorted = &mut self.sorted[..self.count];
        sorted.copy_from_slice(&self.costs[..self.count]);
        sorted.sort_unstable_by(f32::total_cmp);
        for (rank, &cost) in self.ranks[side].iter_mut().zip(&self.costs[..self.count]) {
            let below = sorted.partition_point(|&other| other < cost);
            *rank = (below * RANKS / self.count).to_le_bytes()[0];
        }
    }

    fn ranks_of(&self, place: usize) -> [u8; LINES_PER_PAGE] {
        let first = place * LINES_PER_PAGE;
        core::array::from_fn(|line| {
            oracle_rank(self.ranks[0][first + line], self.ranks[1][first + line])
        })
    }
}

/// Weights of cache and memory: the share of accesses that are expected to miss, as the heap has
/// it for the same live bytes.
#[allow(clippy::cast_precision_loss, reason = "a share")]
fn level_shares(live_bytes: usize, llc_bytes: u64) -> [f32; 2] {
    let live = live_bytes as f32;
    let misses = if live > 0.0 { (1.0 - llc_bytes as f32 / live).max(0.0) } else { 0.0 };
    [1.0 - misses, misses]
}
