//! Where cores and controllers seem to sit, from the matrices alone.

use isochrone_atlas_store::Experiment;
use isochrone_atlas_store::contents::Contents;
use isochrone_placement::{ColumnLatencies, Observed, PairLatencies, infer_while};
use isochrone_stats::derive_seed;

use crate::course::Course;
use crate::run::{Run, note};

/// Infers it from what was measured before.
pub(super) fn place(run: &Run, contents: &mut Contents, course: &mut dyn Course) {
    course.step("where cores and controllers seem to sit");
    let labels: Vec<String> = run.cores.iter().map(|c| format!("core {}", c.0)).collect();
    let pairs = contents.transfers.first().and_then(|map| {
        let cells: Vec<Option<f64>> =
            map.latency_ns.cells.iter().map(|c| c.map(|c| c.median)).collect();
        // The matrix is symmetric, so its two halves do not tell its noise: the intervals do.
        let widths = map.latency_ns.cells.iter().flatten().map(|c| (c.hi - c.lo) / (2.0 * 1.96));
        let noise = isochrone_stats::median(&widths.collect::<Vec<_>>());
        PairLatencies::new(labels.len(), &cells).ok().map(|p| match noise {
            Some(noise) => p.with_noise(noise),
            None => p,
        })
    });
    let columns = contents.regions.first().and_then(|map| {
        let cells = map.latency_ns.cells.iter().map(|c| c.map(|c| c.median)).collect();
        ColumnLatencies::new(labels.len(), map.latency_ns.columns.clone(), cells).ok()
    });
    let observed =
        Observed { cores: &labels, pairs: pairs.as_ref(), columns: columns.as_ref(), places: None };
    let keep_going = || course.keep_going();
    match infer_while(&observed, derive_seed(run.seed, 8), &keep_going) {
        Ok(findings) => contents.placement = Some(findings.placement),
        Err(error) => note(contents, Experiment::Placement.title(), &error),
    }
}
