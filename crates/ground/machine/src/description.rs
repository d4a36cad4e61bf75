//! The records of a machine: cores, regions, caches, controllers, and what joins them.
//!
//! Records are what files store, so they hold plain numbers with the unit in the name; functions
//! take the identifiers of `units`. A missing value is `None`, never 0.

use alloc::string::String;
use alloc::vec::Vec;

use isochrone_units::{CoreId, RegionId};
use serde::{Deserialize, Serialize};

use crate::cost::Cost;
use crate::grid::Grid;
use crate::interconnect::Interconnect;

/// A text that numbers come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Source {
    /// Short name that numbers refer to.
    pub id: String,
    /// Authors, title, year; or the part of the system that was read.
    pub text: String,
}

/// Where a part of the description as a whole comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Origin {
    /// The part: `"cores"`, `"distances"`, `"floor plan"`.
    pub what: String,
    /// A source's id, then section or table.
    pub source: String,
}

/// A point of a floor plan, in cells of the drawing: x to the right, y downwards.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Place {
    /// Cells from the left edge.
    pub x: f64,
    /// Cells from the top edge.
    pub y: f64,
}

/// A logical processor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Core {
    /// Its number, as the system (or the paper) counts.
    pub id: u16,
    /// The region whose memory is nearest by the machine's own word.
    pub region: u16,
    /// The module (die, board) that it sits on, where the machine has modules.
    pub module: Option<u16>,
    /// The package (socket) that it sits on.
    pub package: Option<u16>,
    /// The other logical processors of the same physical core.
    pub smt_siblings: Vec<u16>,
    /// Its place on the floor plan.
    pub place: Option<Place>,
}

/// What a region's memory is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum RegionKind {
    /// DDR memory.
    Ddr,
    /// GDDR memory on a card.
    Gddr,
    /// Multi-channel memory in the package.
    Mcdram,
    /// High-bandwidth memory.
    Hbm,
    /// Memory behind CXL.
    Cxl,
    /// Not known.
    #[default]
    Unknown,
}

/// A memory region (a NUMA node).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Region {
    /// Its number, as the system (or the description) counts.
    pub id: u16,
    /// What it is made of.
    pub kind: RegionKind,
    /// Its size.
    pub bytes: Option<u64>,
    /// The cores that belong to it; empty for memory without cores.
    pub cores: Vec<u16>,
    /// Where its size is published.
    pub source: Option<String>,
}

/// What a cache holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum CacheKind {
    /// Data only.
    Data,
    /// Instructions only.
    Instruction,
    /// Data and instructions.
    #[default]
    Unified,
}

/// One cache (one instance, not one kind).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cache {
    /// 1 is nearest to the core.
    pub level: u8,
    /// What it holds.
    pub kind: CacheKind,
    /// Its size.
    pub bytes: Option<u64>,
    /// Size of a line.
    pub line_bytes: Option<u32>,
    /// Associativity: lines of one set.
    pub ways: Option<u32>,
    /// The cores that share it, in ascending order.
    pub shared_by: Vec<u16>,
    /// Where its size is published.
    pub source: Option<String>,
}

/// A memory controller.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Controller {
    /// What it is called.
    pub name: String,
    /// The region whose memory it drives, where known.
    pub region: Option<u16>,
    /// Its place on the floor plan, where known.
    pub place: Option<Place>,
    /// Where it is published.
    pub source: Option<String>,
}

/// What the processor calls itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cpu {
    /// `"GenuineIntel"`, `"AuthenticAMD"`, `"Arm"`.
    pub vendor: Option<String>,
    /// The model in words.
    pub model_name: Option<String>,
    /// Family number.
    pub family: Option<u32>,
    /// Model number.
    pub model: Option<u32>,
    /// Stepping, as `/proc/cpuinfo` has it.
    pub stepping: Option<u32>,
}

/// A machine: the one that runs this program, or one described by a paper.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Machine {
    /// Short name, usable as a file name.
    pub name: String,
    /// The machine in words.
    pub title: String,
    /// Where the numbers come from.
    pub sources: Vec<Source>,
    /// Where parts that carry no source of their own come from.
    pub origins: Vec<Origin>,
    /// What the processor calls itself.
    pub cpu: Option<Cpu>,
    /// Logical processors, in ascending order.
    pub cores: Vec<Core>,
    /// Memory regions, in ascending order.
    pub regions: Vec<Region>,
    /// Memory of the whole machine, as the system (or the paper) states it.
    pub memory_bytes: Option<u64>,
    /// Caches, each instance once.
    pub caches: Vec<Cache>,
    /// Distances between regions as the firmware states them (SLIT), in the order of `regions`.
    pub distances: Option<Vec<Vec<u32>>>,
    /// How the parts are joined.
    pub interconnect: Option<Interconnect>,
    /// Memory controllers.
    pub controllers: Vec<Controller>,
    /// How many tag directories there are.
    pub directories: Option<u16>,
    /// Latencies, bandwidths, clock rates.
    pub costs: Vec<Cost>,
    /// Published pictures of latencies.
    pub grids: Vec<Grid>,
    /// Remarks for people, a sentence each.
    pub notes: Vec<String>,
    /// What the description assumes beside the numbers of `costs`.
    pub assumed: Vec<String>,
    /// What is not known beside the numbers of `costs` and the cells of `grids`.
    pub unknown: Vec<String>,
}

impl Machine {
    /// The core with this number.
    #[must_use]
    pub fn core(&self, id: CoreId) -> Option<&Core> {
        self.cores.iter().find(|core| core.id == id.0)
    }

    /// The region with this number.
    #[must_use]
    pub fn region(&self, id: RegionId) -> Option<&Region> {
        self.regions.iter().find(|region| region.id == id.0)
    }

    /// Numbers of all cores, in ascending order.
    pub fn core_ids(&self) -> impl Iterator<Item = CoreId> {
        self.cores.iter().map(|core| CoreId(core.id))
    }

    /// The region of a core.
    #[must_use]
    pub fn region_of(&self, core: CoreId) -> Option<RegionId> {
        self.core(core).map(|core| RegionId(core.region))
    }

    /// The firmware's distance from one region to another; 10 is local.
    #[must_use]
    pub fn distance(&self, from: RegionId, to: RegionId) -> Option<u32> {
        let index = |id: RegionId| self.regions.iter().position(|region| region.id == id.0);
        self.distances.as_ref()?.get(index(from)?)?.get(index(to)?).copied()
    }

    /// The cost with this name.
    #[must_use]
    pub fn cost(&self, name: &str) -> Option<&Cost> {
        self.costs.iter().find(|cost| cost.name == name)
    }

    /// The grid with this name.
    #[must_use]
    pub fn grid(&self, name: &str) -> Option<&Grid> {
        self.grids.iter().find(|grid| grid.name == name)
    }

    /// The smallest cache of a level that holds data and that `core` can use.
    #[must_use]
    pub fn cache(&self, core: CoreId, level: u8) -> Option<&Cache> {
        self.caches.iter().find(|cache| {
            cache.level == level
                && cache.kind != CacheKind::Instruction
                && cache.shared_by.contains(&core.0)
        })
    }

    /// The cache farthest from `core` that it can use: the last level.
    #[must_use]
    pub fn last_level_cache(&self, core: CoreId) -> Option<&Cache> {
        let usable = self.caches.iter().filter(|cache| cache.shared_by.contains(&core.0));
        usable.max_by_key(|cache| cache.level)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn distances_follow_the_order_of_regions_not_their_numbers() {
        let region = |id| Region { id, ..Region::default() };
        let machine = Machine {
            regions: vec![region(0), region(2)],
            distances: Some(vec![vec![10, 21], vec![31, 10]]),
            ..Machine::default()
        };
        assert_eq!(machine.distance(RegionId(0), RegionId(2)), Some(21));
        assert_eq!(machine.distance(RegionId(2), RegionId(0)), Some(31));
        assert_eq!(machine.distance(RegionId(1), RegionId(0)), None);
    }

    #[test]
    fn the_last_level_is_the_farthest_cache_of_the_core_that_asks() {
        let cache = |level, kind, shared_by| Cache { level, kind, shared_by, ..Cache::default() };
        let machine = Machine {
            caches: vec![
                cache(1, CacheKind::Instruction, vec![0]),
                cache(1, CacheKind::Data, vec![0]),
                cache(3, CacheKind::Unified, vec![0, 1]),
                cache(3, CacheKind::Unified, vec![2]),
            ],
            ..Machine::default()
        };
        assert_eq!(machine.cache(CoreId(0), 1).map(|c| c.kind), Some(CacheKind::Data));
        assert_eq!(machine.last_level_cache(CoreId(1)).map(|c| c.level), Some(3));
        assert_eq!(machine.last_level_cache(CoreId(9)), None);
    }
}
