//! How far an experiment may be believed: by what else the machine did meanwhile, and by what that left of it.
//!
//! A neighbour that takes cores away shows here, and so do a host that does, a busy sibling, and a clock that the
//! system knows to be slow. What slows everything down all the time and leaves no trace in the system's own figures (a
//! busy sibling in another guest, a lower clock that nobody tells) cannot be told from a slower machine.

use isochrone_atlas_store::contents::{
    Contents, Form, Graded, LevelMap, Matrix, PairStratum, RegionMap, TransferMap,
};
use isochrone_host::Disturbance;
use isochrone_report::fmt;
use isochrone_units::{Experiment, Grade};

/// Share of the time for which somebody waited for a processor, from which on it is told.
const PRESSURE: f64 = 0.10;
/// The same of one of our threads.
const WAITS: f64 = 0.02;
/// Cells without a number, as a share, from which on an experiment is disturbed, and unusable.
const NULLS: [f64; 2] = [0.02, 0.30];
/// Codes of held-out pages that are right, as a share, below which a level is disturbed, and unusable.
const CODES: [f64; 2] = [0.98, 0.80];

/// The worse of what the system says and what was found; `None` where neither says anything.
pub(crate) fn grade(experiment: Experiment, seen: Disturbance, found: &Contents) -> Option<Graded> {
    let marks = [by_system(seen), by_result(experiment, found)];
    marks.into_iter().flatten().min_by_key(|graded| graded.grade)
}

/// By what the system says of others.
fn by_system(seen: Disturbance) -> Option<Graded> {
    let (others, steal) = seen.others.zip(seen.steal)?;
    let pressure = seen.pressure.filter(|share| *share > PRESSURE);
    let waits = seen.waits.filter(|share| *share > WAITS);
    // Threads of ours wait for each other where an experiment begins: alone, that is no disturbance.
    let is_quiet = seen.is_quiet();
    let mut reason = format!(
        "others took {} of the processors' time, the host {}",
        fmt::percent(others),
        fmt::percent(steal)
    );
    if let Some(share) = pressure.filter(|_| !is_quiet) {
        reason += &format!("; somebody waited for a processor {} of the time", fmt::percent(share));
    }
    if let Some(share) = waits.filter(|_| !is_quiet) {
        reason += &format!("; a thread of ours waited {} of the time", fmt::percent(share));
    }
    if let Some(times) = seen.throttled.filter(|times| *times > 0) {
        reason += &format!("; hot cores were slowed down {times} time(s)");
    }
    if let Some(share) = seen.clock.filter(|_| seen.is_slow()) {
        reason += &format!("; the fastest core's clock was at {} of its base", fmt::percent(share));
    }
    Some(Graded { grade: if is_quiet { Grade::Quiet } else { Grade::Disturbed }, reason })
}

/// By what was found, where that tells.
fn by_result(experiment: Experiment, found: &Contents) -> Option<Graded> {
    match experiment {
        Experiment::Block => {
            found.levels.iter().filter_map(of_level).min_by_key(|graded| graded.grade)
        }
        Experiment::Transfer => of_cells(found.transfers.iter().map(pairs)),
        Experiment::Region => of_cells(found.regions.iter().map(chases)),
        _ => None,
    }
}

fn of_level(map: &LevelMap) -> Option<Graded> {
    if map.form != Form::Pattern {
        return None;
    }
    let accuracies = map.quality.iter().filter_map(|quality| quality.key_accuracy);
    let Some(right) = accuracies.reduce(f64::min) else {
        let reason =
            format!("the codes of pages in {} were not checked on held-out pages", map.level);
        return Some(Graded { grade: Grade::Disturbed, reason });
    };
    let reason = format!(
        "{} of the codes of held-out pages in {} are right",
        fmt::percent(right),
        map.level
    );
    bounded(-right, CODES.map(|share| -share), reason)
}

/// Cells that should have a number, and those of them that have none.
#[derive(Clone, Copy, Default)]
struct Nulls {
    nulls: usize,
    cells: usize,
}

/// The pairs of different cores. Where the others of their kind say how far each pair may be from them, pairs were left
/// out by plan, and only cores without any number count.
fn pairs(map: &TransferMap) -> Nulls {
    let cores = map.latency_ns.rows.len();
    let told =
        |stratum: &PairStratum| stratum.measured == stratum.pairs || stratum.error_ns.is_some();
    if map.strata.is_empty() || !map.strata.iter().all(told) {
        let nulls = nulls(&map.latency_ns).saturating_sub(cores);
        return Nulls { nulls, cells: map.latency_ns.cells.len().saturating_sub(cores) };
    }
    let mut has_any = vec![false; cores];
    for (at, _) in map.latency_ns.cells.iter().enumerate().filter(|(_, cell)| cell.is_some()) {
        (has_any[at / cores], has_any[at % cores]) = (true, true);
    }
    Nulls { nulls: has_any.iter().filter(|any| !**any).count(), cells: cores }
}

/// The cells of cores that there was time for. A region in which no core has any has no memory to be had, which says
/// nothing of the others.
fn chases(map: &RegionMap) -> Nulls {
    let Matrix { rows, columns, cells, .. } = &map.latency_ns;
    let wide = columns.len().max(1);
    let is_empty = |column: &usize| cells.iter().skip(*column).step_by(wide).all(Option::is_none);
    let lost = (0..columns.len()).filter(is_empty).count();
    let cells = rows.len().saturating_sub(map.left_out.len()) * (columns.len() - lost);
    let numbers = map.latency_ns.cells.iter().flatten().count();
    Nulls { nulls: cells.saturating_sub(numbers), cells }
}

fn nulls(matrix: &Matrix) -> usize {
    matrix.cells.iter().filter(|cell| cell.is_none()).count()
}

/// By cells that have no number, in matrices that have any.
fn of_cells(matrices: impl Iterator<Item = Nulls>) -> Option<Graded> {
    let all = matrices.filter(|of| of.nulls < of.cells).fold(Nulls::default(), |sum, of| Nulls {
        nulls: sum.nulls + of.nulls,
        cells: sum.cells + of.cells,
    });
    let [nulls, cells] = [all.nulls, all.cells].map(u32::try_from);
    let share = f64::from(nulls.ok()?) / f64::from(cells.ok()?);
    bounded(share, NULLS, format!("{} of the cells have no number", fmt::percent(share)))
}

/// A grade where a share lies above the first or the second of two bounds.
fn bounded(share: f64, [disturbed, unusable]: [f64; 2], reason: String) -> Option<Graded> {
    let grade = match share {
        share if share > unusable => Grade::Unusable,
        share if share > disturbed => Grade::Disturbed,
        _ => return None,
    };
    Some(Graded { grade, reason })
}

#[cfg(test)]
mod tests {
    use super::*;
    use isochrone_probe::region::{Mode, ModelRegions, RegionOptions, RegionPlan};
    use isochrone_sim::synthetic::{SyntheticMemory, SyntheticSpec};
    use isochrone_view::fixtures::genoa;

    fn seen(others: f64, pressure: f64) -> Disturbance {
        Disturbance {
            others: Some(others),
            steal: Some(0.0),
            pressure: Some(pressure),
            waits: Some(0.0),
            ..Disturbance::default()
        }
    }

    /// Region latency of a modelled machine on which everything takes longer all the time, by a share.
    fn region_latency(slower_by: f64) -> Contents {
        let spec = SyntheticSpec::ring_e5_2660(2).with_pages(64).with_cores(1);
        let memory = SyntheticMemory::new(spec.slower_by(slower_by)).unwrap();
        let (regions, lines): (Vec<_>, Vec<_>) = ModelRegions::lines(&memory).into_iter().unzip();
        let options = RegionOptions::new(Mode::OneClass { lines }, 7);
        let plan = RegionPlan::new(regions.len(), options).unwrap();
        let mut target = ModelRegions::new(memory, &regions, &plan.orders);
        let report = isochrone_probe::region::run(&mut target, &plan, &mut || false).unwrap();
        Contents { regions: vec![report.map], ..genoa() }
    }

    /// What slows the machine down all the time is in every number, and no interval can tell.
    #[test]
    fn a_constant_shift_is_graded_by_what_the_system_shows_and_by_nothing_else() {
        let cell = |found: &Contents| found.regions[0].latency_ns.cells[0].expect("a number");
        let (quiet, shifted) = (region_latency(0.0), region_latency(0.3));
        let (truth, found) = (cell(&quiet).median, cell(&shifted));
        assert!((found.median / truth - 1.3).abs() < 0.02 && found.lo > 1.2 * truth, "{found:?}");
        let grade = |seen| grade(Experiment::Region, seen, &shifted).expect("it can be told");
        let nothing = seen(0.01, 0.0);
        assert_eq!(grade(nothing).grade, Grade::Quiet, "not detectable");
        // A sibling's other work, a host that takes cores away, heat, a clock that is told.
        let shows = [
            (Disturbance { others: Some(0.5), ..nothing }, "others took 50"),
            (Disturbance { steal: Some(0.2), ..nothing }, "the host 20"),
            (Disturbance { throttled: Some(3), ..nothing }, "slowed down 3 time"),
            (Disturbance { clock: Some(0.7), ..nothing }, "clock was at 70"),
        ];
        for (seen, words) in shows {
            let found = grade(seen);
            assert_eq!(found.grade, Grade::Disturbed, "{seen:?}");
            assert!(found.reason.contains(words), "{}", found.reason);
        }
    }

    #[test]
    fn codes_count_in_every_level_and_unchecked_ones_are_not_quiet() {
        let with = |at: usize, accuracy: Option<f64>| {
            let mut found = genoa();
            for level in &mut found.levels {
                level.form = Form::Pattern;
                level.quality.iter_mut().for_each(|quality| quality.key_accuracy = Some(0.99));
            }
            let quality = &mut found.levels[at].quality;
            quality.iter_mut().for_each(|quality| quality.key_accuracy = accuracy);
            (of(seen(0.01, 0.02), &found), found.levels[at].level.clone())
        };
        for at in [0, 1] {
            for (accuracy, expected) in [
                (Some(0.985), Grade::Quiet),
                (Some(0.975), Grade::Disturbed),
                (Some(0.79), Grade::Unusable),
                (None, Grade::Disturbed),
            ] {
                let ((grade, reason), level) = with(at, accuracy);
                assert_eq!(grade, expected, "{level} {accuracy:?}");
                assert!(grade == Grade::Quiet || reason.contains(&level), "{reason}");
            }
        }
        // One core that was scored speaks for the codes of all.
        let mut found = genoa();
        for quality in found.levels.iter_mut().flat_map(|level| level.quality.iter_mut().skip(1)) {
            quality.key_accuracy = None;
        }
        found.levels.iter_mut().for_each(|level| level.quality[0].key_accuracy = Some(0.99));
        assert_eq!(of(seen(0.01, 0.02), &found).0, Grade::Quiet);
    }

    fn of(seen: Disturbance, found: &Contents) -> (Grade, String) {
        let graded = grade(Experiment::Block, seen, found).expect("it can be told");
        (graded.grade, graded.reason)
    }

    #[test]
    fn the_system_and_the_result_both_count_and_the_worse_wins() {
        let mut found = genoa();
        for quality in found.levels.iter_mut().flat_map(|level| &mut level.quality) {
            quality.key_accuracy = Some(0.99);
        }
        assert_eq!(of(seen(0.01, 0.02), &found).0, Grade::Quiet);
        let (grade, reason) = of(seen(0.30, 0.90), &found);
        assert_eq!(grade, Grade::Disturbed);
        assert!(reason.contains("30") && reason.contains("90"), "{reason}");
        assert_eq!(of(seen(0.01, 0.50), &found).0, Grade::Quiet, "we wait for each other");
        found.levels[0].form = Form::Pattern;
        found.levels[0].quality[0].key_accuracy = Some(0.6);
        let (grade, reason) = of(seen(0.01, 0.02), &found);
        assert_eq!(grade, Grade::Unusable);
        assert!(reason.contains("codes"), "{reason}");
    }

    #[test]
    fn cells_without_a_number_count_but_not_those_of_a_core_with_itself() {
        let mut found = genoa();
        let quiet = seen(0.0, 0.0);
        let of =
            |found: &Contents| grade(Experiment::Transfer, quiet, found).map(|graded| graded.grade);
        assert_eq!(of(&found), Some(Grade::Quiet));
        // One direction of each.
        for map in &mut found.transfers {
            map.latency_ns.cells[1] = None;
        }
        assert_eq!(of(&found), Some(Grade::Unusable));
        // The same where the others of their kind tell how far those may be.
        for map in &mut found.transfers {
            map.strata = vec![PairStratum {
                what: "cores of one region".to_owned(),
                pairs: 6,
                measured: 5,
                median_ns: Some(50.0),
                error_ns: Some(2.0),
            }];
        }
        assert_eq!(of(&found), Some(Grade::Quiet));
    }

    #[test]
    fn cores_and_regions_that_were_left_out_do_not_count_and_lost_cells_do() {
        let mut map = region_latency(0.0).regions.swap_remove(0);
        let cell = map.latency_ns.cells[0];
        let matrix = &mut map.latency_ns;
        (matrix.rows, matrix.columns) = (vec![String::new(); 4], vec![String::new(); 3]);
        matrix.cells = vec![None; 12];
        // The last core has none, and no core has the last region.
        [0, 1, 3, 4, 6, 7].into_iter().for_each(|at| matrix.cells[at] = cell);
        let share = |map: &RegionMap| {
            let Nulls { nulls, cells } = chases(map);
            (nulls, cells)
        };
        assert_eq!(share(&map), (2, 8));
        map.left_out = vec![3];
        assert_eq!(share(&map), (0, 6));
        map.latency_ns.cells[4] = None;
        assert_eq!(share(&map), (1, 6));
    }

    #[test]
    fn a_region_that_was_left_out_says_nothing_of_the_others() {
        let mut found = region_latency(0.0);
        let quiet = seen(0.0, 0.0);
        let of =
            |found: &Contents| grade(Experiment::Region, quiet, found).map(|graded| graded.grade);
        let width = 3;
        let latency = &mut found.regions[0].latency_ns;
        assert_eq!(latency.rows.len(), 1);
        latency.columns = vec![String::new(); width];
        latency.cells = vec![latency.cells[0]; width];
        latency.cells[0] = None;
        assert_eq!(of(&found), Some(Grade::Quiet));
        // Another core, which reached none but the first region.
        let latency = &mut found.regions[0].latency_ns;
        latency.rows.push("1".to_owned());
        latency.cells.extend([latency.cells[1]].into_iter().chain((1..width).map(|_| None)));
        assert_eq!(of(&found), Some(Grade::Unusable));
    }

    #[test]
    fn where_nothing_is_known_nothing_is_said() {
        assert_eq!(grade(Experiment::Bandwidth, Disturbance::default(), &genoa()), None);
    }
}
