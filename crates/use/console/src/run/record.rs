//! What the processes of a run left behind, as values with names: for people and for programs.
//!
//! It adds nothing up that was not counted: a mean of nothing is `None`.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use isochrone_malloc::{CLASSES, REPORT_SUFFIX, Reason, Report, Tally, class_bytes};
use isochrone_units::Level;
use serde::Serialize;

/// Objects and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Count {
    /// How many objects.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl From<Tally> for Count {
    fn from(tally: Tally) -> Self {
        Self { objects: tally.objects, bytes: tally.bytes }
    }
}

/// Objects of one size that were placed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlacedClass {
    /// Size of the slots.
    pub slot_bytes: u64,
    /// How many.
    #[serde(flatten)]
    pub count: Count,
}

/// Objects that were left to glibc, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Delegated {
    /// The reason, in a few words.
    pub reason: String,
    /// How many.
    #[serde(flatten)]
    pub count: Count,
}

/// How far lines are from the cores they went to, with their content at one level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Distances {
    /// Mean of the slots handed out, ns.
    pub handed_out_ns: Option<f64>,
    /// Mean of lines drawn evenly from the same pool, ns.
    pub oblivious_ns: Option<f64>,
}

/// What was live for one core at the end.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Live {
    /// The core.
    pub core: u16,
    /// Their bytes.
    pub bytes: u64,
    /// Mean distance of these bytes from the core with their content in the LLC, ns.
    pub llc_ns: Option<f64>,
    /// The same with their content in DRAM.
    pub dram_ns: Option<f64>,
}

/// What one process left.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProcessRecord {
    /// The process's number.
    pub process: u64,
    /// Whether it ended by itself; if not, the last objects of each thread are missing.
    pub ended: bool,
    /// Threads that had lines placed.
    pub threads: u64,
    /// What was placed.
    pub placed: Count,
    /// The same by size of the slots.
    pub placed_by_size: Vec<PlacedClass>,
    /// What could have been placed, and what of it was.
    pub placeable: Count,
    /// Share of the placeable bytes that were placed.
    pub placed_share: Option<f64>,
    /// What was left to glibc.
    pub delegated: Vec<Delegated>,
    /// Why it left everything to glibc for good, if it did.
    pub placed_no_more: Option<String>,
    /// Share of the slots drawn from the pool that were in the near quantile of their core.
    pub near_share: Option<f64>,
    /// Distances of the slots handed out, with their content in the LLC.
    pub llc: Distances,
    /// The same with their content in DRAM.
    pub dram: Distances,
    /// Pages whose codes were decoded.
    pub classified_pages: u64,
    /// Pages whose frame was replaced, so that their codes are no longer believed.
    pub demoted_pages: u64,
    /// Times that a core was found to wear another base than before.
    pub drift_events: u64,
    /// Times that a thread was found on another core than before.
    pub home_changes: u64,
    /// Memory taken for lines.
    pub arena_bytes: u64,
    /// What of it a child of `fork` has from its parent: of these lines nothing is known.
    pub inherited_bytes: u64,
    /// The pages that belong to a size class.
    pub assigned_bytes: u64,
    /// Memory taken for tables.
    pub table_bytes: u64,
    /// Most bytes of lines that were in use at once, as seen at refills.
    pub peak_live_bytes: u64,
    /// By core; empty where the process did not end by itself.
    pub live_by_core: Vec<Live>,
    /// What loading the library cost.
    pub startup_us: f64,
    /// What opening the atlas and reserving memory cost.
    pub start_us: f64,
    /// Time spent decoding pages and identifying bases, by whichever thread.
    pub classification_us: f64,
    /// Slices of classification inside of allocations.
    pub slices: u64,
    /// The longest of them.
    pub longest_slice_us: f64,
    /// Slices of more than 100 microseconds.
    pub long_slices: u64,
    /// The longest time that the system took to give memory for lines.
    pub longest_memory_us: f64,
}

impl ProcessRecord {
    /// Objects that the process asked `malloc` and its like for, as far as they were counted.
    pub fn calls(&self) -> u64 {
        self.placed.objects + self.delegated.iter().map(|left| left.count.objects).sum::<u64>()
    }

    /// The values of a report, in microseconds, nanoseconds and bytes.
    pub fn of(report: &Report) -> Self {
        let us = |ns: u64| ns as f64 / 1e3;
        let ns = |cycles: Option<f64>| Some(cycles? * 1e9 / report.clock_hz()?);
        let distances = |level| Distances {
            handed_out_ns: ns(report.distance_cycles(level)),
            oblivious_ns: ns(report.oblivious_cycles(level)),
        };
        let classes = (0..CLASSES).map(|class| PlacedClass {
            slot_bytes: class_bytes(class) as u64,
            count: report.placed_of_class(class).into(),
        });
        let reasons = Reason::ALL.into_iter().map(|reason| Delegated {
            reason: reason.as_str().to_owned(),
            count: report.delegated(reason).into(),
        });
        let (slices, longest) = report.slices();
        Self {
            process: report.process(),
            ended: report.has_ended(),
            threads: report.threads(),
            placed: report.placed().into(),
            placed_by_size: classes.filter(|class| class.count.objects > 0).collect(),
            placeable: report.placeable().into(),
            placed_share: report.placed_share(),
            delegated: reasons.filter(|left| left.count.objects > 0).collect(),
            placed_no_more: report.placed_no_more().map(|reason| reason.as_str().to_owned()),
            near_share: report.near_share(),
            llc: distances(Level::Llc),
            dram: distances(Level::Dram),
            classified_pages: report.classified_pages(),
            demoted_pages: report.demoted_pages(),
            drift_events: report.drift_events(),
            home_changes: report.home_changes(),
            arena_bytes: report.arena_bytes(),
            inherited_bytes: report.inherited_bytes(),
            assigned_bytes: report.assigned_bytes(),
            table_bytes: report.table_bytes(),
            peak_live_bytes: report.peak_live_bytes(),
            live_by_core: report
                .live_of_cores()
                .map(|live| Live {
                    core: live.core,
                    bytes: live.bytes,
                    llc_ns: ns(live.cycles[0]),
                    dram_ns: ns(live.cycles[1]),
                })
                .collect(),
            startup_us: us(report.startup_ns()),
            start_us: us(report.start_ns()),
            classification_us: us(report.classification_ns()),
            slices,
            longest_slice_us: us(longest),
            long_slices: report.long_slices(),
            longest_memory_us: us(report.memory_ns_max()),
        }
    }
}

/// The records in a folder, by process number. A file that is none is an error: the folder is
/// ours alone.
pub fn read_all(folder: &Path) -> Result<Vec<ProcessRecord>> {
    let mut records = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if !path.to_string_lossy().ends_with(REPORT_SUFFIX) {
            continue;
        }
        let bytes = fs::read(&path).with_context(|| path.display().to_string())?;
        // A process that was killed while it made its file leaves it empty.
        records.extend(Report::from_bytes(&bytes).map(|report| ProcessRecord::of(&report)));
    }
    records.sort_by_key(|record: &ProcessRecord| record.process);
    Ok(records)
}
