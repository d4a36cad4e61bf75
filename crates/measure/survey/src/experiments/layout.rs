//! Where cores and controllers seem to sit, from the matrices alone.

use isochrone_atlas_store::Experiment;
use isochrone_atlas_store::contents::{Contents, TransferMap};
use isochrone_placement::{ColumnLatencies, Observed, PairLatencies, PlacementError, infer_while};
use isochrone_stats::derive_seed;

use crate::course::Course;
use crate::run::{Run, note};

/// Infers it from what was measured before. Its time is processor time, which a model's clock does not see.
pub(super) fn place(run: &Run, contents: &mut Contents, course: &mut dyn Course) {
    course.step("where cores and controllers seem to sit");
    let begun_s = (run.cpu_s)();
    let labels: Vec<String> = run.cores.iter().map(|c| format!("core {}", c.0)).collect();
    let pairs = contents.transfers.first().map(|map| pairs(map, labels.len()));
    let columns = contents.regions.first().map(|map| {
        let cells = map.latency_ns.cells.iter().map(|c| c.map(|c| c.median)).collect();
        ColumnLatencies::new(labels.len(), map.latency_ns.columns.clone(), cells)
    });
    let keep_going = || course.keep_going_after((run.cpu_s)() - begun_s);
    let found = pairs.transpose().and_then(|pairs| {
        let columns = columns.transpose()?;
        let (pairs, columns) = (pairs.as_ref(), columns.as_ref());
        let observed = Observed { cores: &labels, pairs, columns, places: None };
        infer_while(&observed, derive_seed(run.seed, 8), &keep_going)
    });
    match found {
        Ok(findings) => contents.placement = Some(findings.placement),
        Err(error) => note(contents, Experiment::Placement.title(), &error),
    }
}

/// Latencies between so many cores.
fn pairs(map: &TransferMap, cores: usize) -> Result<PairLatencies, PlacementError> {
    let latency = &map.latency_ns;
    let cells: Vec<Option<f64>> = latency.cells.iter().map(|c| c.map(|c| c.median)).collect();
    // The matrix is symmetric, so its two halves do not tell its noise: the intervals do.
    let widths = latency.cells.iter().flatten().map(|c| (c.hi - c.lo) / (2.0 * 1.96));
    let noise = isochrone_stats::median(&widths.collect::<Vec<_>>());
    let pairs = PairLatencies::new(cores, &cells)?;
    Ok(match noise {
        Some(noise) => pairs.with_noise(noise),
        None => pairs,
    })
}
