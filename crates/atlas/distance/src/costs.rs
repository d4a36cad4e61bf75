//! What can be asked, and what the answers are made of.

use isochrone_units::{CoreId, Reading, RegionId};
pub use isochrone_units::{Experiment, Grade};

pub use isochrone_atlas::format::TermTag as Term;

/// A number with its 95 % interval and where it was read. The unit is said by whoever holds it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// The value.
    pub value: f64,
    /// Lower end of the interval.
    pub lo: f64,
    /// Upper end of the interval.
    pub hi: f64,
    /// Measured, or predicted where something else stands for what was not measured.
    pub reading: Reading,
}

impl Cost {
    /// A number without a spread.
    #[must_use]
    pub const fn single(value: f64, reading: Reading) -> Self {
        Self { value, lo: value, hi: value, reading }
    }
}

/// What lines cost between two cores, nanoseconds. Names as in section 2 of the CLa paper.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LineCosts {
    /// One line that the owner has written (`R_R`, `R_Q`).
    pub transfer: Cost,
    /// The first fetch of a line from memory (`R_I`, `R_QI`).
    pub memory: Option<Cost>,
    /// Several lines: start-up (`q` of equation 1).
    pub start: Option<Cost>,
    /// Several lines: each line (`o`).
    pub line: Option<Cost>,
    /// Several lines: each line and reader (`c`).
    pub congestion: Option<Cost>,
}

/// What a region's memory costs a core.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RegionCosts {
    /// Latency of a dependent load, ns.
    pub latency_ns: Cost,
    /// What this core alone reads and writes, 10^9 bytes a second.
    pub gb_per_s: Option<Cost>,
    /// What all cores that were measured together read and write, 10^9 bytes a second.
    pub gb_per_s_together: Option<Cost>,
}

/// A memory farther than this machine's fast memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FarKind {
    /// A file on a disk.
    File,
    /// Compressed memory.
    Compressed,
    /// Another region.
    Region(RegionId),
}

/// What a far memory costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FarCosts {
    /// Until the first bytes are here, ns.
    pub latency_ns: Cost,
    /// 10^9 bytes a second after that.
    pub gb_per_s: Option<Cost>,
}

/// What arrangers ask of a machine. Whoever answers it leaves out the questions of which it knows nothing.
pub trait Distances {
    /// What lines cost that `asker` takes from `owner`. A pair that was not measured costs what its
    /// group does, marked [`Reading::Predicted`]. `None` where not even that is known, and for a core
    /// with itself.
    fn line_costs(&self, _owner: CoreId, _asker: CoreId) -> Option<LineCosts> {
        None
    }

    /// A cost that the model of the CLa paper leaves out, ns.
    fn term(&self, _term: Term) -> Option<Cost> {
        None
    }

    /// What a region's memory costs a core.
    fn region(&self, _core: CoreId, _region: RegionId) -> Option<RegionCosts> {
        None
    }

    /// What exactly these cores together read and write of a region, 10^9 bytes a second; their order does not
    /// matter. `None` where they were not measured together.
    fn bandwidth(&self, _cores: &[CoreId], _region: RegionId) -> Option<Cost> {
        None
    }

    /// What a far memory costs `core`.
    fn far(&self, _core: CoreId, _kind: FarKind) -> Option<FarCosts> {
        None
    }

    /// Levels of nested groups of cores at equal distance; 0 where nothing is known.
    fn levels(&self) -> usize {
        0
    }

    /// The group of a core at a level, 0 being the innermost; groups of a level
    /// are told apart by it. `None` for
    /// levels from [`Self::levels`] on, and for a core that no group has.
    fn group(&self, _level: usize, _core: CoreId) -> Option<u16> {
        None
    }

    /// How far an experiment may be believed; `None` where nobody has graded it.
    fn quality(&self, _of: Experiment) -> Option<Grade> {
        None
    }
}

/// A machine of which nothing is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unknown;

impl Distances for Unknown {}
