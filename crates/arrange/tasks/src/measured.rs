//! Distances between regions as the costs that the scheduler goes by. It never measures.

use isochrone_distance::Distances;
use isochrone_units::CoreId;

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
    /// The same machine with the latencies and bandwidths that are known of it for costs, and what of them there
    /// was.
    #[must_use]
    pub fn measured(self, by: &dyn Distances) -> (Self, Measured) {
        let Some(latencies) = self.pairs(|from, to| self.latency(by, from, to)) else {
            return (self, Measured::Nothing);
        };
        // All from groups, or all from single cores: a group's share is less than what one core alone has.
        let shares = self.pairs(|from, to| self.share(by, from, to));
        let alone = || self.pairs(|from, to| self.alone(by, from, to));
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
    fn latency(&self, by: &dyn Distances, from: usize, to: usize) -> Option<f64> {
        let to = self.region_id(to);
        let ns = |core| Some(by.region(core, to)?.latency_ns.value);
        mean(self.cores_of(from).into_iter().filter_map(ns))
    }

    /// What each core of a region has of another's memory while all cores of that region ask, GB/s.
    fn share(&self, by: &dyn Distances, from: usize, to: usize) -> Option<f64> {
        let cores = self.cores_of(from);
        Some(by.bandwidth(&cores, self.region_id(to))?.value / cores.len() as f64)
    }

    /// What a core of a region has of another's memory while no other asks, GB/s: the mean.
    fn alone(&self, by: &dyn Distances, from: usize, to: usize) -> Option<f64> {
        let to = self.region_id(to);
        let rate = |core| Some(by.bandwidth(&[core], to)?.value);
        mean(self.cores_of(from).into_iter().filter_map(rate))
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0_u32), |(sum, count), x| (sum + x, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

#[cfg(not(loom))]
#[cfg(test)]
mod tests;
