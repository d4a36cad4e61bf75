//! What the processes of a run left behind, as values with names: for people and for programs.
//!
//! It adds nothing up that was not counted: a mean of nothing is `None`.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use isochrone_malloc::{CLASSES, REPORT_SUFFIX, Reason, Report, Tally};
use isochrone_units::Level;
use serde::Serialize;

/// Objects and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Count {
    pub(crate) objects: u64,
    pub(crate) bytes: u64,
}

impl From<Tally> for Count {
    fn from(tally: Tally) -> Self {
        Self { objects: tally.objects, bytes: tally.bytes }
    }
}

/// Objects of one size that were placed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct PlacedClass {
    /// Size of the slots.
    pub(crate) slot_bytes: u64,
    #[serde(flatten)]
    pub(crate) count: Count,
}

/// Objects that were left to glibc, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Delegated {
    pub(crate) reason: String,
    #[serde(flatten)]
    pub(crate) count: Count,
}

/// How far lines are from the cores they went to, with their content at one level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Distances {
    pub(crate) handed_out_ns: Option<f64>,
    pub(crate) oblivious_ns: Option<f64>,
}

/// What was live for one core at the end.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Live {
    pub(crate) core: u16,
    pub(crate) bytes: u64,
    /// Mean distance of these bytes from the core.
    pub(crate) llc_ns: Option<f64>,
    pub(crate) dram_ns: Option<f64>,
}

/// What one process left.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct ProcessRecord {
    pub(crate) process: u64,
    /// Whether it ended by itself; if not, the last objects of each thread are missing.
    pub(crate) ended: bool,
    pub(crate) threads: u64,
    pub(crate) placed: Count,
    pub(crate) placed_by_size: Vec<PlacedClass>,
    /// What could have been placed, and what of it was.
    pub(crate) placeable: Count,
    pub(crate) placed_share: Option<f64>,
    pub(crate) delegated: Vec<Delegated>,
    /// Why it left everything to glibc for good, if it did.
    pub(crate) placed_no_more: Option<String>,
    /// Share of the slots drawn from the pool that were in the near quantile of their core.
    pub(crate) near_share: Option<f64>,
    /// Mean distance of the slots handed out, and of lines drawn evenly from the same pool.
    pub(crate) llc: Distances,
    pub(crate) dram: Distances,
    pub(crate) classified_pages: u64,
    pub(crate) demoted_pages: u64,
    pub(crate) drift_events: u64,
    pub(crate) home_changes: u64,
    pub(crate) arena_bytes: u64,
    /// What of it a child of `fork` has from its parent: of these lines nothing is known.
    pub(crate) inherited_bytes: u64,
    pub(crate) assigned_bytes: u64,
    pub(crate) table_bytes: u64,
    pub(crate) peak_live_bytes: u64,
    /// By core; empty where the process did not end by itself.
    pub(crate) live_by_core: Vec<Live>,
    pub(crate) startup_us: f64,
    pub(crate) start_us: f64,
    pub(crate) classification_us: f64,
    /// Slices of classification inside of allocations, and the longest.
    pub(crate) slices: u64,
    pub(crate) longest_slice_us: f64,
    /// Slices of more than 100 microseconds.
    pub(crate) long_slices: u64,
    /// The same by the thread's own clock: without what the system or the host gave to others.
    pub(crate) longest_slice_own_us: f64,
    pub(crate) long_slices_own: u64,
    /// The longest time that the system took to give memory for lines.
    pub(crate) longest_memory_us: f64,
}

impl ProcessRecord {
    pub(crate) fn of(report: &Report) -> Self {
        let us = |ns: u64| ns as f64 / 1e3;
        let ns = |cycles: Option<f64>| Some(cycles? * 1e9 / report.clock_hz()?);
        let distances = |level| Distances {
            handed_out_ns: ns(report.distance_cycles(level)),
            oblivious_ns: ns(report.oblivious_cycles(level)),
        };
        let classes = (0..CLASSES).map(|class| PlacedClass {
            slot_bytes: 16 << class,
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
            longest_slice_own_us: us(report.own_slices().0),
            long_slices_own: report.own_slices().1,
            longest_memory_us: us(report.memory_ns_max()),
        }
    }
}

/// The records in a folder, by process number. A file that is none is an error: the folder is
/// ours alone.
pub(crate) fn read_all(folder: &Path) -> Result<Vec<ProcessRecord>> {
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
