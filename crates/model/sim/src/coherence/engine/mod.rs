//! The protocol for whole data sets: units of lines that share one state, and a transaction at a time.
//!
//! A unit is one line (the exact grain) or a chunk of up to 64 KiB whose lines are treated alike; a touch
//! multiplies the recipe of one line by the lines of the unit. Where a task's range ends inside of a chunk,
//! the chunk is cut there, once, so small shared parts have a state of their own. Nothing here knows time:
//! [`Tally`] says what a task moved, and `roofs` how long that takes.

mod cache;
mod directory;
mod evictions;
mod lines;
mod reads;
mod regions;
mod snoops;
mod transact;
mod units;
mod writes;

#[cfg(test)]
mod tests;

pub use regions::{Placed, RegionId, Touch};
pub use units::{Tally, Totals};

use super::message::Traffic;
use super::nodes::NodeSet;
use super::protocol::Choices;
use super::spec::{CleanEvictions, NumaSpec};
use super::topology::Topology;
use cache::Cache;
use directory::Directory;
use regions::Region;
use units::Unit;

/// Bytes of a chunk, if nothing else is said.
pub const CHUNK_BYTES: u64 = 64 << 10;
/// Bytes of a line.
pub(crate) const LINE: u64 = 64;

/// The state of every unit, cache and directory of a machine.
#[derive(Clone, Debug)]
pub struct Engine {
    topology: Topology,
    choices: Choices,
    chunk: u64,
    regions: Vec<Region>,
    units: Vec<Unit>,
    /// Where a unit stands in each cache: node by node, for each unit.
    places: Vec<u32>,
    caches: Vec<Cache>,
    directories: Vec<Directory>,
    /// Nodes of each module, as an array beside `topology` for speed.
    module_of: Vec<u8>,
    tally: Tally,
    totals: Totals,
    /// Where the next interleaved chunk goes.
    next_spread: usize,
}

impl Engine {
    /// A machine whose caches are empty, with units of `chunk` bytes.
    #[must_use]
    pub fn new(spec: &NumaSpec, chunk: u64) -> Self {
        let topology = Topology::of(spec);
        let modules = topology.modules();
        let directory = |module: usize| {
            let module = u8::try_from(module).unwrap_or(u8::MAX);
            let limit = spec.protocol.directory_lines.filter(|_| spec.protocol.filter);
            let limit = limit.unwrap_or(u64::MAX);
            // Where the switch hears of all lines that leave, a directory that has room for all that caches
            // elsewhere can hold is never full, and needs no order of its entries.
            let told = spec.protocol.clean_evictions == CleanEvictions::All;
            let bounded = limit < u64::MAX && (limit < spec.lines_outside(module) || !told);
            Directory::new(limit, bounded)
        };
        Self {
            choices: (&spec.protocol).into(),
            chunk: chunk.max(LINE) / LINE * LINE,
            regions: Vec::new(),
            units: Vec::new(),
            places: Vec::new(),
            caches: spec.nodes.iter().map(|node| Cache::new(node.llc_lines)).collect(),
            directories: (0..modules).map(directory).collect(),
            module_of: spec.nodes.iter().map(|node| node.module).collect(),
            tally: Tally::new(topology.modules(), spec.nodes.len()),
            totals: Totals::new(topology.modules(), spec.nodes.len()),
            next_spread: 0,
            topology,
        }
    }

    /// Forgets what the last task moved.
    pub fn begin_task(&mut self) {
        self.totals.add(&self.tally);
        self.tally.clear();
    }

    /// What was moved since [`Self::begin_task`].
    #[must_use]
    pub const fn tally(&self) -> &Tally {
        &self.tally
    }

    /// What passed each module's switch in all tasks so far.
    #[must_use]
    pub fn traffic(&self) -> Vec<Traffic> {
        self.totals().traffic
    }

    /// Everything that was moved in all tasks so far.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let mut totals = self.totals.clone();
        totals.add(&self.tally);
        totals
    }

    /// Lines of registered data by the node that has their memory.
    #[must_use]
    pub fn homes(&self) -> Vec<u64> {
        let mut homes = vec![0; self.caches.len()];
        for unit in self.units.iter().filter(|unit| unit.home != units::NO_NODE) {
            homes[usize::from(unit.home)] += u64::from(unit.lines);
        }
        homes
    }

    /// Touches of units so far.
    #[must_use]
    pub const fn touches(&self) -> u64 {
        self.totals.touches + self.tally.touches
    }

    /// Bytes that this simulation takes for the state of its units.
    #[must_use]
    pub const fn state_bytes(&self) -> usize {
        self.units.len() * size_of::<Unit>() + self.places.len() * size_of::<u32>()
    }

    /// Bytes of data that it stands for.
    #[must_use]
    pub fn data_bytes(&self) -> u64 {
        self.regions.iter().map(Region::bytes).sum()
    }

    /// Directory of each module: lines listed now, most lines listed, entries evicted so far.
    pub fn directories(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        self.directories.iter().map(Directory::figures)
    }

    /// The machine's topology.
    #[must_use]
    pub const fn topology(&self) -> &Topology {
        &self.topology
    }

    fn module(&self, node: u8) -> u8 {
        self.module_of[usize::from(node)]
    }

    /// Nodes outside a module that may have a unit, as far as its switch knows.
    fn listed(&self, home_module: u8, modules: u64) -> NodeSet {
        match self.choices.filter {
            true => self.topology.nodes_in(modules),
            false => self.topology.all().minus(self.topology.nodes_of(home_module)),
        }
    }
}
