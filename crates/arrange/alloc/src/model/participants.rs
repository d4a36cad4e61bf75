//! Lines on the lists of the cores that take part: each with the one that it is nearest to.
//!
//! "The latency data base is consulted to determine which memory blocks have low latency access from CPU cores used
//! by the application and the runtime places the addresses onto the corresponding per-core allocator lists" (B. Gerofi
//! et al., *Exploiting Hidden Non-uniformity of Uniform Memory Access on Manycore CPUs*, section 4). Here a list is
//! the first part of a core's order. Latencies are compared as they are, so that a core which is far from everything
//! may have an empty list; it then takes what is nearest to it of the others'.

use super::{Choice, GroupCycles, Model, group_cycles, single, sorted, table_mean};
use crate::bins::{Bins, MAX_BINS};
use crate::groups::SAME_CYCLES;
use crate::policy::Mode;
use crate::wish::{CurrentBases, Wish};

impl Model<'_> {
    /// The choice of a core among others: the cheapest set, or its own list and what follows it.
    pub(crate) fn choose_among(
        &self,
        bins: &Bins,
        others: impl Iterator<Item = CurrentBases>,
        shares: &[f32; MAX_BINS],
        wish: &Wish,
    ) -> Choice {
        match wish.mode {
            Mode::NearestParticipant => self.listed(bins, others, shares),
            _ => self.choose(shares, wish),
        }
    }

    /// Its own list, nearest first, then the bins of others, nearest first.
    fn listed(
        &self,
        bins: &Bins,
        others: impl Iterator<Item = CurrentBases>,
        shares: &[f32; MAX_BINS],
    ) -> Choice {
        let [weights, ..] = self.sequences;
        let own = self.costs([&self.llc, &self.dram], weights);
        let mut least = own;
        for other in others {
            let Some([llc, dram]) = self.levels_of(bins, &other) else { continue };
            for (least, cost) in least.iter_mut().zip(self.costs([&llc, &dram], weights)) {
                *least = least.min(cost);
            }
        }
        // What differs less than any base is measured is equally near.
        let listed = |bin: u8| own[usize::from(bin)] < least[usize::from(bin)] + SAME_CYCLES;
        let by_cost = sorted(&own, self.known());
        let known = &by_cost[..self.known()];
        let (mut bins, mut near) = (by_cost, 0);
        let share = |bin: u8| f64::from(shares[usize::from(bin)]);
        let all: f64 = known.iter().map(|&bin| share(bin)).sum();
        let lists = [true, false]
            .into_iter()
            .flat_map(|is_own| known.iter().copied().filter(move |bin| listed(*bin) == is_own));
        for (place, bin) in bins.iter_mut().zip(lists) {
            *place = bin;
            near += u16::from(listed(bin));
        }
        let units: f64 = bins[..usize::from(near)].iter().map(|&bin| share(bin)).sum();
        let cost = self.cost_of(&bins[..usize::from(near)], shares);
        Choice { bins, near, near_share: single(units / all.max(f64::MIN_POSITIVE)), cost, weights }
    }

    /// The latencies of groups as another core sees them; `None` where less is known of it than of this one.
    fn levels_of(&self, bins: &Bins, other: &CurrentBases) -> Option<[GroupCycles; 2]> {
        let [knows_llc, knows_dram] = self.knows;
        let llc = other.llc.as_ref().filter(|_| knows_llc);
        let dram = other.dram.as_ref().filter(|_| knows_dram);
        if llc.is_some() != knows_llc || dram.is_some() != knows_dram {
            return None;
        }
        let mean = |table, classes, unknown: f32| {
            let table: Option<&_> = table;
            table.map_or(unknown, |table| table_mean(table, classes))
        };
        // A level of which nothing is known is as far from every core.
        let (llc_mean, dram_mean) =
            (mean(llc, &bins.llc, self.llc[0]), mean(dram, &bins.dram, self.dram[0]));
        Some([
            group_cycles(&self.of_unit.llc, llc, self.unit, &bins.llc, llc_mean),
            group_cycles(&self.of_unit.dram, dram, self.unit, &bins.dram, dram_mean),
        ])
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
