//! What regions are to a set of cores, and which of them suits what: values as they are written.

use isochrone_distance::{
    Cost, Distances, Memory, Pages, Step, bandwidth_of, latency_of, memory, steps, steps_with_turns,
};
use isochrone_machine::{Machine, Region, RegionKind, spans};
use isochrone_units::{CoreId, Reading, RegionId};
use serde::Serialize;

/// What is said of a machine with one region.
pub(crate) const ONE_REGION: &str = "one region, there is nothing to choose";

/// What `--suits --json` writes. Fields are added, never renamed.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Figures {
    pub(super) machine: String,
    /// What is concluded; each number has its own.
    pub(super) reading: Reading,
    /// Why there is nothing to choose, if there is not.
    pub(super) nothing: Option<&'static str>,
    pub(super) sets: Vec<Set>,
    /// What the description of the machine assumes of its regions, a sentence each.
    pub(super) assumed: Vec<String>,
}

/// A number with where it may lie.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Number {
    pub(crate) value: f64,
    /// Ends of the interval of what was measured, or of the range of what is assumed.
    pub(crate) lo: f64,
    pub(crate) hi: f64,
    reading: Reading,
}

impl Number {
    /// The word of its reading.
    pub(super) const fn word(&self) -> &'static str {
        self.reading.as_str()
    }
}

impl From<Cost> for Number {
    fn from(cost: Cost) -> Self {
        let Cost { value, lo, hi, reading } = cost;
        Self { value, lo, hi, reading }
    }
}

/// What a region is to the cores.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct RegionFigures {
    pub(super) region: u16,
    pub(super) kind: RegionKind,
    /// Mean over the cores; none where it is not known of all of them.
    pub(super) latency_ns: Option<Number>,
    /// What the cores together read and write, 10^9 bytes a second.
    pub(super) gb_per_s: Option<Number>,
}

/// Where pages lie, and from how many lines under way on that moves most.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct StepFigures {
    /// One region, or two by turns.
    pub(crate) regions: Vec<u16>,
    /// Of all cores together.
    pub(crate) from_lines: Number,
    latency_ns: Number,
    gb_per_s: Number,
}

/// What suits a set of cores.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Set {
    pub(super) cores: Vec<u16>,
    pub(super) regions: Vec<RegionFigures>,
    /// The region for an array whose accesses wait for one another.
    pub(super) latency_bound: Option<u16>,
    /// The region for one that keeps as many lines under way as can be.
    pub(super) bandwidth_bound: Option<u16>,
    /// Lines under way, of all cores together, from which on the latter moves most; none where one region is both.
    pub(super) crossing_lines: Option<Number>,
    /// What moves most with ever more lines under way; empty where fewer than two regions are known.
    pub(crate) separate: Vec<StepFigures>,
    /// The same where pages may lie in two regions by turns.
    pub(crate) with_turns: Vec<StepFigures>,
}

impl Set {
    /// What suits `cores` of a machine.
    pub(crate) fn of(on: &dyn Distances, machine: &Machine, cores: &[CoreId]) -> Self {
        let regions = || machine.regions.iter().map(|region| RegionId(region.id));
        let mut known: Vec<Memory> =
            regions().filter_map(|region| memory(on, cores, region)).collect();
        if known.len() < 2 {
            known.clear();
        }
        let separate: Vec<StepFigures> = steps(&known).map(StepFigures::from).collect();
        let region_of = |step: Option<&StepFigures>| step?.regions.first().copied();
        Self {
            cores: cores.iter().map(|core| core.0).collect(),
            regions: machine.regions.iter().map(|region| of_region(on, cores, region)).collect(),
            latency_bound: region_of(separate.first()),
            bandwidth_bound: region_of(separate.last()),
            crossing_lines: separate.iter().skip(1).next_back().map(|step| step.from_lines),
            with_turns: steps_with_turns(&known).map(StepFigures::from).collect(),
            separate,
        }
    }

    /// What is not known, and of which regions.
    pub(super) fn unknown(&self) -> [(&'static str, Vec<u16>); 3] {
        let lack = |latency: bool, bandwidth: bool| {
            let is_one = |of: &&RegionFigures| {
                (of.latency_ns.is_none(), of.gb_per_s.is_none()) == (latency, bandwidth)
            };
            self.regions.iter().filter(is_one).map(|of| of.region).collect()
        };
        [
            ("latency", lack(true, false)),
            ("what these cores move together", lack(false, true)),
            ("anything", lack(true, true)),
        ]
    }

    /// Whether all that lacks is what these cores move together.
    pub(super) fn lacks_bandwidth(&self) -> bool {
        self.regions.iter().filter(|of| of.latency_ns.is_some()).count() > 1
    }
}

fn of_region(on: &dyn Distances, cores: &[CoreId], region: &Region) -> RegionFigures {
    let id = RegionId(region.id);
    RegionFigures {
        region: region.id,
        kind: region.kind,
        latency_ns: latency_of(on, cores, id).map(Number::from),
        gb_per_s: bandwidth_of(on, cores, id).map(Number::from),
    }
}

impl From<Step> for StepFigures {
    fn from(step: Step) -> Self {
        let regions = match step.memory.pages {
            Pages::In(region) => vec![region.0],
            Pages::Turns(one, other) => vec![one.0.min(other.0), one.0.max(other.0)],
        };
        Self {
            regions,
            from_lines: step.from_lines.into(),
            latency_ns: step.memory.latency_ns.into(),
            gb_per_s: step.memory.gb_per_s.into(),
        }
    }
}

impl StepFigures {
    /// The regions alone.
    pub(crate) fn spans(&self) -> String {
        spans(&self.regions)
    }

    /// Where the pages lie, in words.
    pub(crate) fn words(&self) -> String {
        match self.regions.as_slice() {
            [one, other] => format!("regions {one} and {other} by turns"),
            regions => format!("region {}", spans(regions)),
        }
    }
}
