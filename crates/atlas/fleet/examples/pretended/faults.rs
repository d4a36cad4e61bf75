//! Pretended fleets: noise drawn from recorded maps, and a fault in one node.

use isochrone_atlas_store::Experiment;
use isochrone_fleet::{Asked, Folder, Item, Node, judge};
use isochrone_stats::{Rng, below, derive_seed, normal, rng};
use isochrone_units::Reading;

use super::maps::{COMPARED, Maps};

/// So many standard deviations a 95 % interval is wide.
const INTERVAL_SDS: f64 = 3.92;

/// What is wrong with a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Line transfers of a core take longer.
    Transfers,
    /// A region answers later.
    Latency,
    /// A region gives less.
    Bandwidth,
    /// The last-level cache is farther from a core.
    Block,
    /// Memory is divided into another number of regions.
    Regions,
}

impl Fault {
    pub(crate) const ALL: [Self; 5] =
        [Self::Transfers, Self::Latency, Self::Bandwidth, Self::Block, Self::Regions];

    /// What is done to a node, in words.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Transfers => "line transfers of a core take longer",
            Self::Latency => "a region answers later",
            Self::Bandwidth => "a region gives less bandwidth",
            Self::Block => "a core is farther from the last-level cache",
            Self::Regions => "another number of regions (NPS)",
        }
    }

    /// Whether it has a size.
    pub(crate) const fn has_size(self) -> bool {
        !matches!(self, Self::Regions)
    }

    /// The largest that is tried, a share.
    pub(crate) const fn most(self) -> f64 {
        if matches!(self, Self::Bandwidth) { 0.95 } else { 4.0 }
    }

    /// The experiment that shows it.
    const fn experiment(self) -> Option<Experiment> {
        match self {
            Self::Transfers => Some(Experiment::Transfer),
            Self::Latency => Some(Experiment::Region),
            Self::Bandwidth => Some(Experiment::Bandwidth),
            Self::Block => Some(Experiment::Block),
            Self::Regions => None,
        }
    }

    /// Makes a node faulty by a share.
    fn plant(self, node: &mut Node, share: f64) {
        let (item, factor) = match self {
            Self::Transfers | Self::Block => (Item::Core(1), 1.0 + share),
            Self::Latency => (Item::Region(0), 1.0 + share),
            Self::Bandwidth => (Item::Region(0), 1.0 - share),
            Self::Regions => {
                node.regions += 3;
                node.words[1] = format!("regions: {}", node.regions);
                return;
            }
        };
        for (kind, quantities) in &mut node.quantities {
            let is_hit = Some(kind.experiment) == self.experiment()
                && (self != Self::Block || kind.level == "llc");
            for quantity in quantities.iter_mut().filter(|_| is_hit) {
                if quantity.of.contains(&item) {
                    quantity.value *= factor;
                }
            }
        }
    }

    /// Whether a finding's kind is of it.
    fn is_shown_by(self, kind: &str) -> bool {
        self.experiment().map_or("settings", Experiment::title)
            == kind.split(" (").next().unwrap_or(kind)
    }
}

/// What fleets are drawn from.
pub(crate) struct Drawn<'m> {
    pub(crate) maps: &'m Maps,
    pub(crate) nodes: usize,
    pub(crate) seed: u64,
}

impl Drawn<'_> {
    /// A fleet without a fault. Each experiment of a node is that of a recorded map drawn at random, so that what
    /// belongs together stays together, and each number lies somewhere in its interval.
    fn fleet(&self, number: u64) -> Folder {
        let mut noise = rng(derive_seed(self.seed, number));
        let nodes = (0..self.nodes).map(|at| self.node(at, &mut noise)).collect();
        Folder { nodes, skipped: Vec::new() }
    }

    fn node(&self, at: usize, noise: &mut impl Rng) -> Node {
        let mut drawn = |maps: &[&Node]| {
            let at = below(noise, maps.len() as u64);
            usize::try_from(at).map_or(maps[0], |at| maps[at]).clone()
        };
        let mut node = drawn(&self.maps.nodes.iter().collect::<Vec<_>>());
        node.name = format!("node{at:02}");
        node.reading = Reading::Simulated;
        node.grades.clear();
        node.quantities.clear();
        for experiment in COMPARED {
            let from = drawn(&self.maps.quiet(experiment));
            let its = from.quantities.into_iter().filter(|(kind, _)| kind.experiment == experiment);
            node.quantities.extend(its);
        }
        for quantity in node.quantities.values_mut().flatten() {
            let (lo, hi) = quantity.interval;
            let sd = if lo > 0.0 && hi > lo { (hi / lo).ln() / INTERVAL_SDS } else { 0.0 };
            quantity.value *= (sd * normal(noise)).exp();
        }
        node
    }

    /// Nodes that are found in each of so many fleets without a fault.
    pub(crate) fn false_alarms(&self, fleets: u64) -> Vec<usize> {
        let alarms = |number| {
            let report = judge(&self.fleet(number), &Asked::default());
            let mut nodes: Vec<String> = report.findings.into_iter().map(|it| it.node).collect();
            nodes.dedup();
            nodes.len()
        };
        (0..fleets).map(alarms).collect()
    }

    /// The share of fleets in which a fault of this size is found.
    pub(crate) fn power(&self, fault: Fault, share: f64, fleets: u64) -> f64 {
        let is_found = |number: &u64| {
            let mut fleet = self.fleet(*number);
            let faulty = usize::try_from(*number).unwrap_or(0) % self.nodes;
            fault.plant(&mut fleet.nodes[faulty], share);
            let report = judge(&fleet, &Asked::default());
            let name = &fleet.nodes[faulty].name;
            report.findings.iter().any(|it| it.node == *name && fault.is_shown_by(&it.kind))
        };
        let found = (0..fleets).filter(is_found).count();
        found as f64 / fleets as f64
    }

    /// The smallest size that is found with a probability, to a hundredth of itself; `None` where the largest is not.
    pub(crate) fn smallest(&self, fault: Fault, power: f64, fleets: u64) -> Option<f64> {
        /// Halvings of an interval: the last is less than a thousandth of the largest fault.
        const STEPS: u32 = 10;
        if self.power(fault, fault.most(), fleets) < power {
            return None;
        }
        let (mut lo, mut hi) = (0.0, fault.most());
        for _ in 0..STEPS {
            let middle = f64::midpoint(lo, hi);
            if self.power(fault, middle, fleets) >= power { hi = middle } else { lo = middle }
        }
        Some(hi)
    }
}
