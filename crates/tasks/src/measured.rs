//! What an atlas measured between regions, as the costs that the scheduler goes by. It never measures.

use isochrone_atlas_store::contents::{Bandwidth, RegionMap};
use isochrone_units::{CoreId, RegionId};

use crate::topology::Topology;

/// How much of an atlas could be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measured {
    /// Some latency between two regions is missing: the topology is as it was.
    Nothing,
    /// Latencies, but some bandwidth is missing: a byte costs in proportion to the latency.
    Latencies,
    /// Both: a range costs its latency and the time of its bytes.
    Both,
}

impl Measured {
    /// What is missing, in a line for the user.
    #[must_use]
    pub const fn missing(self) -> Option<&'static str> {
        match self {
            Self::Nothing => Some(
                "the atlas has no latencies between all regions; distances of the firmware are used",
            ),
            Self::Latencies => Some(
                "the atlas has no bandwidths between all regions; a byte costs in proportion to the latency",
            ),
            Self::Both => None,
        }
    }
}

impl Topology {
    /// The same machine with an atlas's latencies and bandwidths (`regions` and `bandwidth` of its contents) for
    /// costs, and what of them there was.
    #[must_use]
    pub fn measured(self, latencies: &[RegionMap], bandwidths: &[Bandwidth]) -> (Self, Measured) {
        let Some(latencies) = self.pairs(|from, to| self.latency(latencies, from, to)) else {
            return (self, Measured::Nothing);
        };
        // All from groups, or all from single cores: a group's share is less than what one core alone has.
        let shares = self.pairs(|from, to| self.share(bandwidths, from, to));
        let alone = || self.pairs(|from, to| self.alone(bandwidths, from, to));
        let found = shares.or_else(alone);
        let timed = self.with_costs(latencies);
        match found {
            Some(gb_per_s) => (timed.with_bandwidths(&gb_per_s), Measured::Both),
            None => (timed, Measured::Latencies),
        }
    }

    /// A figure for every two regions, row by row; `None` where one is missing or is no positive number.
    fn pairs(&self, figure: impl Fn(usize, usize) -> Option<f64>) -> Option<Vec<f64>> {
        let regions = || 0..self.regions();
        let pairs = regions().flat_map(|from| regions().map(move |to| (from, to)));
        pairs.map(|(from, to)| figure(from, to).filter(|x| *x > 0.0 && x.is_finite())).collect()
    }

    fn cores_of(&self, region: usize) -> Vec<CoreId> {
        self.cores().filter(|core| self.region_of(*core) == Some(region)).collect()
    }

    /// What the cores of a region wait for memory of another, ns: their mean.
    fn latency(&self, maps: &[RegionMap], from: usize, to: usize) -> Option<f64> {
        let matrix = &maps.first()?.latency_ns;
        let column = self.region_id(to).to_string();
        let column = matrix.columns.iter().position(|name| *name == column)?;
        let ns = |core: CoreId| {
            let row = matrix.rows.iter().position(|name| *name == core.to_string())?;
            Some(matrix.cells.get(row * matrix.columns.len() + column)?.as_ref()?.median)
        };
        mean(self.cores_of(from).into_iter().filter_map(ns))
    }

    /// What each core of a region has of another's memory while all cores of that region ask, GB/s.
    fn share(&self, all: &[Bandwidth], from: usize, to: usize) -> Option<f64> {
        let mut cores: Vec<u16> = self.cores_of(from).into_iter().map(|core| core.0).collect();
        cores.sort_unstable();
        Some(of_group(all, &cores, self.region_id(to))? / cores.len() as f64)
    }

    /// What a core of a region has of another's memory while no other asks, GB/s: the mean.
    fn alone(&self, all: &[Bandwidth], from: usize, to: usize) -> Option<f64> {
        let to = self.region_id(to);
        mean(self.cores_of(from).into_iter().filter_map(|core| of_group(all, &[core.0], to)))
    }
}

fn of_group(all: &[Bandwidth], cores: &[u16], region: RegionId) -> Option<f64> {
    let found = all.iter().find(|one| one.region == region.0 && one.cores == cores)?;
    Some(found.gb_per_s.median)
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0_u32), |(sum, count), x| (sum + x, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

#[cfg(not(loom))]
#[cfg(test)]
mod tests;
