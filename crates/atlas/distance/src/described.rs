//! Distances by the text that describes a machine: the numbers of section 2 of the CLa paper, by name.

use crate::costs::{
    Cost, Distances, Experiment, FarCosts, FarKind, Grade, LineCosts, RegionCosts, Term,
};
use isochrone_machine::Machine;
use isochrone_units::{CoreId, RegionId};

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

/// A machine that is described by text. Cores of one package are one group. It knows nothing of regions
/// and far memory: descriptions have no such numbers by core.
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

    fn term(&self, _: Term) -> Option<Cost> {
        None
    }

    fn region(&self, _: CoreId, _: RegionId) -> Option<RegionCosts> {
        None
    }

    fn far(&self, _: CoreId, _: FarKind) -> Option<FarCosts> {
        None
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

    fn quality(&self, _: Experiment) -> Option<Grade> {
        None
    }
}
