//! Distances by the text that describes a machine: the numbers of section 2 of the CLa paper, by name.

use crate::costs::{Cost, Distances, LineCosts, RegionCosts};
use isochrone_machine::{Grid, Machine};
use isochrone_units::{CoreId, Reading, RegionId};

/// Names of a pair's costs in a description: one line from a cache, one from memory, and `q`, `o`, `c`
/// of several lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CostNames {
    /// One line that the owner has written.
    pub transfer: &'static str,
    /// The first fetch of a line from memory.
    pub memory: &'static str,
    /// Several lines: start-up.
    pub start: &'static str,
    /// Several lines: each line.
    pub line: &'static str,
    /// Several lines: each line and reader.
    pub congestion: &'static str,
}

/// Between cores of one package.
pub const SAME_PACKAGE: CostNames = CostNames {
    transfer: "R_R",
    memory: "R_I",
    start: "intra q",
    line: "intra o",
    congestion: "intra c",
};

/// Between cores of two packages.
pub const OTHER_PACKAGE: CostNames = CostNames {
    transfer: "R_Q",
    memory: "R_QI",
    start: "inter q",
    line: "inter o",
    congestion: "inter c",
};

/// Names of what a region is to cores that are so far from it.
struct Apart {
    latency: &'static str,
    bandwidth: &'static str,
}

/// At the region.
const LOCAL: Apart = Apart { latency: "local latency", bandwidth: "local bandwidth" };
/// In the same module.
const NEAR: Apart = Apart { latency: "near latency", bandwidth: "near bandwidth" };
/// In another module.
const FAR: Apart = Apart { latency: "far latency", bandwidth: "far bandwidth" };

/// A machine that is described by text. Cores of one package are one group.
///
/// A region's latency is that of the grid that was read from it (a core whose cell is not readable has the mean of the
/// others), or the cost `region N latency`; its bandwidth is `region N bandwidth`, which all cores move together. Where
/// there is none for a region, `local`, `near` and `far` latency and bandwidth go by where the core is: at the region,
/// in the same module, elsewhere; bandwidth is then that of the cores of one region. Far memory is not described.
#[derive(Clone, Copy, Debug)]
pub struct Described<'a>(pub &'a Machine);

impl Described<'_> {
    /// A number of the description; its interval is the range that was published beside it, or that is
    /// to be swept where it is assumed, which is no published number.
    fn cost(&self, name: &str) -> Option<Cost> {
        let known = self.0.cost(name)?.value.as_ref().ok()?;
        let (value, interval) = (known.number, &known.interval);
        let (lo, hi) = (interval.low.unwrap_or(value), interval.high.unwrap_or(value));
        Some(Cost { value, lo, hi, reading: known.reading })
    }

    /// The cost of a region that the description names by its number: `region 1 bandwidth`.
    fn cost_of(&self, region: RegionId, what: &str) -> Option<Cost> {
        let is_it = |name: &str| {
            let numbered = name.strip_prefix("region ").and_then(|rest| rest.split_once(' '));
            numbered.is_some_and(|(id, word)| id.parse() == Ok(region.0) && word == what)
        };
        let found = self.0.costs.iter().find(|cost| is_it(&cost.name))?;
        self.cost(&found.name)
    }

    fn latency(&self, core: CoreId, region: RegionId) -> Option<Cost> {
        let in_grid = || {
            let is_it = |grid: &&Grid| grid.region == Some(region.0) && grid.unit == "ns";
            let grid = self.0.grids.iter().find(is_it)?;
            if let Some(ns) = grid.value_of(core) {
                return Some(Cost::single(ns, Reading::Published));
            }
            let (value, within) = grid.middle()?;
            let (lo, hi) = within.ends()?;
            Some(Cost { value, lo, hi, reading: Reading::Predicted })
        };
        let by_number = || self.cost_of(region, "latency");
        in_grid().or_else(by_number).or_else(|| self.cost(self.apart(core, region)?.latency))
    }

    /// Where a core is, seen from a region.
    fn apart(&self, core: CoreId, region: RegionId) -> Option<&'static Apart> {
        let core = self.0.core(core)?;
        if core.region == region.0 {
            return Some(&LOCAL);
        }
        let theirs = self.0.region(region)?.cores.first()?;
        let module = self.0.core(CoreId(*theirs))?.module;
        Some(if module.is_some() && module == core.module { &NEAR } else { &FAR })
    }

    fn package(&self, core: CoreId) -> Option<u16> {
        Some(self.0.core(core)?.package.unwrap_or(0))
    }
}

impl Distances for Described<'_> {
    fn line_costs(&self, owner: CoreId, asker: CoreId) -> Option<LineCosts> {
        let same = self.package(owner)? == self.package(asker)?;
        let names = if same { &SAME_PACKAGE } else { &OTHER_PACKAGE };
        (owner != asker).then_some(())?;
        Some(LineCosts {
            transfer: self.cost(names.transfer)?,
            memory: self.cost(names.memory),
            start: self.cost(names.start),
            line: self.cost(names.line),
            congestion: self.cost(names.congestion),
        })
    }

    fn region(&self, core: CoreId, region: RegionId) -> Option<RegionCosts> {
        self.0.core(core)?;
        self.0.region(region)?;
        Some(RegionCosts {
            latency_ns: self.latency(core, region)?,
            gb_per_s: None,
            gb_per_s_together: self.cost_of(region, "bandwidth"),
        })
    }

    fn bandwidth(&self, cores: &[CoreId], region: RegionId) -> Option<Cost> {
        let machine = self.0;
        if let Some(of_all) = self.cost_of(region, "bandwidth") {
            let are_all = machine.core_ids().all(|core| cores.contains(&core));
            return are_all.then_some(of_all);
        }
        // Those of one region, all of them.
        let home = machine.region(machine.region_of(*cores.first()?)?)?;
        let are_all = home.cores.iter().all(|core| cores.contains(&CoreId(*core)));
        let are_these = cores.iter().all(|core| home.cores.contains(&core.0));
        let apart = self.apart(*cores.first()?, region)?;
        (are_all && are_these).then(|| self.cost(apart.bandwidth))?
    }

    fn levels(&self) -> usize {
        // One level of packages, and all of them together where there are several.
        let mut packages = self.0.cores.iter().map(|core| core.package.unwrap_or(0));
        let first = packages.next();
        match first {
            None => 0,
            Some(first) => 1 + usize::from(packages.any(|package| package != first)),
        }
    }

    fn group(&self, level: usize, core: CoreId) -> Option<u16> {
        let package = self.package(core)?;
        match level {
            0 => Some(package),
            1 if self.levels() == 2 => Some(0),
            _ => None,
        }
    }
}
