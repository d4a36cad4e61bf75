//! The parts that latencies are made of: how long a message takes from one agent to another.
//!
//! A table of latencies gives means and extremes over places, and not which place has which. Reads from
//! the own and the near memory are spread over the places by a power of their rank that has the mean and
//! both ends; far ones by how many places apart two modules stand, as the machine file says.

use super::protocol::Agent;
use super::spec::{Distance, NumaSpec, Spread};
use super::topology::Topology;
use crate::number::float;

/// Delays of one machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Legs {
    nodes: usize,
    /// Reads from memory: reader by home, ns.
    read: Vec<f64>,
    llc: f64,
    crossing: f64,
    module: Vec<u8>,
}

impl Legs {
    /// Those of a machine.
    #[must_use]
    pub fn of(spec: &NumaSpec) -> Self {
        let nodes = spec.nodes.len();
        let mut read = vec![0.0; nodes * nodes];
        for distance in spec.distances() {
            let pairs: Vec<(usize, usize)> = (0..nodes)
                .flat_map(|a| (0..nodes).map(move |b| (a, b)))
                .filter(|(a, b)| spec.distance(*a, *b) == distance)
                .collect();
            let spread = spec.latency.read[distance as usize].unwrap_or(Spread::even(0.0));
            let ramp = Ramp::of(&spread, pairs.len());
            for (rank, (a, b)) in pairs.into_iter().enumerate() {
                read[a * nodes + b] = match distance {
                    Distance::Far => {
                        let (from, to) = (spec.nodes[a].module, spec.nodes[b].module);
                        let apart = f64::from(from.abs_diff(to)) - spec.mean_positions();
                        spread.mean + spec.latency.position * apart
                    }
                    _ => ramp.at(rank),
                };
            }
        }
        Self {
            nodes,
            read,
            llc: spec.latency.llc,
            crossing: spec.latency.crossing,
            module: spec.nodes.iter().map(|node| node.module).collect(),
        }
    }

    /// A read by `node` from the memory of `home` that meets nobody else, ns.
    #[must_use]
    pub fn read_ns(&self, node: u8, home: u8) -> f64 {
        self.read[usize::from(node) * self.nodes + usize::from(home)]
    }

    /// Looking a line up in a last-level cache, ns.
    pub(super) const fn lookup_ns(&self) -> f64 {
        self.llc
    }

    /// The memory's own part of a read, ns.
    pub(super) fn memory_ns(&self, home: u8) -> f64 {
        self.read_ns(home, home) - self.llc
    }

    /// One way between two nodes.
    fn between(&self, a: u8, b: u8) -> f64 {
        if a == b { 0.0 } else { (self.read_ns(a, b) - self.read_ns(b, b)) / 2.0 }
    }

    /// One way between two agents of a line that is homed at `home`, ns.
    pub(super) fn way_ns(&self, from: Agent, to: Agent, home: u8) -> f64 {
        match (from, to) {
            (Agent::Cache(a), Agent::Cache(b)) => self.between(a, b),
            (Agent::Cache(a), Agent::Home) | (Agent::Home, Agent::Cache(a)) => {
                self.between(a, home)
            }
            (Agent::Switch, Agent::Home) | (Agent::Home, Agent::Switch) => self.crossing,
            (Agent::Cache(a), Agent::Switch) | (Agent::Switch, Agent::Cache(a)) => {
                let inside = self.module[usize::from(a)] == self.module[usize::from(home)];
                if inside { self.crossing } else { self.between(a, home) - self.crossing }
            }
            (Agent::Home, Agent::Home) | (Agent::Switch, Agent::Switch) => 0.0,
        }
    }

    /// The topology that these delays are for.
    #[must_use]
    pub fn topology(&self) -> Topology {
        Topology::new(self.module.clone())
    }
}

/// Values over ranks 0 to `last`, from the lowest to the highest, with a given mean.
struct Ramp {
    spread: Spread,
    last: usize,
    power: f64,
}

impl Ramp {
    fn of(spread: &Spread, count: usize) -> Self {
        let last = count.saturating_sub(1);
        let mut ramp = Self { spread: *spread, last, power: 1.0 };
        let wide = spread.max - spread.min;
        if count < 3 || wide <= 0.0 {
            return ramp;
        }
        // The mean falls as the power grows; forty halvings of its logarithm are exact enough.
        let (mut low, mut high) = (-6.0_f64, 6.0_f64);
        for _ in 0..40 {
            let middle = f64::midpoint(low, high);
            ramp.power = libm::exp(middle);
            let mean = (0..count).map(|rank| ramp.at(rank)).sum::<f64>() / float(count);
            if mean > spread.mean { low = middle } else { high = middle }
        }
        ramp
    }

    fn at(&self, rank: usize) -> f64 {
        if self.last < 2 {
            return self.spread.mean;
        }
        let place = libm::pow(float(rank) / float(self.last), self.power);
        self.spread.min + (self.spread.max - self.spread.min) * place
    }
}
