//! How far a map is from the truth of its machine, beside what the exhaustive plan is for a sample of the same cells.

use anyhow::Result;
use isochrone_atlas_store::contents::{Cell as Measured, Contents, Interaction as Interacted};
use isochrone_report::fmt;
use isochrone_report::table::{Cell, Table};
use isochrone_sim::synthetic::{Interaction, SyntheticSpec};
use isochrone_stats::{median, quantile};
use isochrone_survey::synthetic::{Order, Surveyed, Truth};
use isochrone_units::{CoreId, RegionId};
use serde::Serialize;

use super::exhaustive;

/// Errors of one matrix, or of a list of cells, as shares of the truth.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Errors {
    /// What was measured, or predicted.
    what: String,
    /// Whether these are cells that were not measured, and what stands in for them.
    predicted: bool,
    /// Cells with a number.
    pub(super) cells: usize,
    /// Cells that there are.
    pub(super) of: usize,
    error_p50: Option<f64>,
    error_p95: Option<f64>,
    error_max: Option<f64>,
    /// Median of the stated half-widths of 95 % intervals.
    half_width_p50: Option<f64>,
    /// Of cells with an interval, how many have the truth outside of it, as a share.
    beyond: Option<f64>,
    /// Median error of the exhaustive plan, of a sample of the cells; `None` where the map's own plan is exhaustive, or
    /// there is nothing to compare.
    exhaustive_p50: Option<f64>,
}

/// Cells as they come, beside their truth.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    errors: Vec<f64>,
    half_widths: Vec<f64>,
    beyond: usize,
    of: usize,
}

/// Stand-ins whose truth lies beyond their 95 % interval, as a share at most: twice what is promised, since
/// pairs of one group are off together.
const BEYOND: f64 = 0.1;

impl Seen {
    /// One more value, which may be missing, with the ends of the interval that is stated for it.
    pub(super) fn add(
        &mut self,
        found: Option<f64>,
        interval: Option<[f64; 2]>,
        truth: Option<f64>,
    ) {
        self.of += 1;
        let Some((found, truth)) = found.zip(truth).filter(|(_, truth)| *truth > 0.0) else {
            return;
        };
        self.errors.push((found / truth - 1.0).abs());
        if let Some([lo, hi]) = interval {
            self.half_widths.push((hi - lo) / 2.0 / truth);
            self.beyond += usize::from(!(lo..=hi).contains(&truth));
        }
    }

    /// One more cell.
    pub(super) fn cell(&mut self, cell: Option<Measured>, truth: Option<f64>) {
        let interval = cell.map(|cell| [cell.lo, cell.hi]);
        self.add(cell.map(|cell| cell.median), interval, truth);
    }

    /// Whether there are no cells.
    pub(super) fn is_empty(&self) -> bool {
        self.of == 0
    }

    /// Of cells that were not measured.
    pub(super) fn predicted(&self, what: &str) -> Errors {
        Errors { predicted: true, ..self.errors(what, None) }
    }

    pub(super) fn errors(&self, what: &str, exhaustive: Option<&Self>) -> Errors {
        let mut sorted = self.errors.clone();
        sorted.sort_by(f64::total_cmp);
        Errors {
            what: what.to_owned(),
            predicted: false,
            cells: sorted.len(),
            of: self.of,
            error_p50: median(&self.errors),
            error_p95: quantile(&sorted, 0.95),
            error_max: sorted.last().copied(),
            half_width_p50: median(&self.half_widths),
            beyond: (!self.half_widths.is_empty())
                .then(|| self.beyond as f64 / self.half_widths.len() as f64),
            exhaustive_p50: exhaustive.and_then(|all| median(&all.errors)),
        }
    }
}

impl Errors {
    /// What was measured.
    #[cfg(test)]
    pub(super) fn what(&self) -> &str {
        &self.what
    }

    /// Whether these cells were measured.
    pub(super) fn is_measured(&self) -> bool {
        !self.predicted
    }

    /// The median error.
    pub(super) fn median(&self) -> Option<f64> {
        self.error_p50
    }

    /// That the map is no worse than the exhaustive plan by more than its interval, or that what stands in is as
    /// far off as is said: what, at most, and what was found.
    pub(super) fn goal(&self) -> Option<(String, f64, f64)> {
        if self.predicted {
            return Some((format!("beyond its interval: {}", self.what), BEYOND, self.beyond?));
        }
        let limit = self.exhaustive_p50? + self.half_width_p50.unwrap_or(0.0);
        Some((format!("error of {}", self.what), limit, self.error_p50?))
    }
}

/// All errors of a map.
pub(super) fn of(order: &Order, surveyed: &Surveyed, blocks: Vec<Errors>) -> Result<Vec<Errors>> {
    let contents = &surveyed.contents;
    let truth = Truth::new(&order.spec)?;
    let mut all = blocks;
    all.extend(llc_shares(&truth, contents));
    all.extend(transfers(order, &truth, contents)?);
    all.extend(interactions(&order.spec, contents));
    all.extend(regions(order, &truth, contents)?);
    all.extend(bandwidth(order, &truth, contents)?);
    Ok(all)
}

fn llc_shares(truth: &Truth, contents: &Contents) -> Option<Errors> {
    let machine = &contents.machine;
    let mut seen = Seen::default();
    for share in &contents.llc_shares {
        let core = CoreId(share.core);
        let l2 = machine.cache(core, 2).and_then(|cache| cache.bytes)?;
        let llc = machine.last_level_cache(core).and_then(|cache| cache.bytes)?;
        let bytes = |bytes: u64| bytes as f64;
        let truth = truth.llc_share_bytes(core, l2, llc).map(bytes);
        seen.add(share.bytes.map(bytes), None, truth);
    }
    (seen.of > 0).then(|| seen.errors("shares of the last-level cache", None))
}

fn transfers(order: &Order, truth: &Truth, contents: &Contents) -> Result<Vec<Errors>> {
    let cores: Vec<CoreId> = contents.machine.cores.iter().map(|core| CoreId(core.id)).collect();
    let mut all = Vec::new();
    for map in &contents.transfers {
        let mut seen = Seen::default();
        let pairs = |cores: &[CoreId]| -> Vec<[CoreId; 2]> {
            cores.iter().flat_map(|&owner| cores.iter().map(move |&asker| [owner, asker])).collect()
        };
        let each = |seen: &mut Seen, cores: &[CoreId], cells: &[Option<Measured>]| {
            for ([owner, asker], cell) in pairs(cores).into_iter().zip(cells) {
                if owner != asker {
                    seen.cell(*cell, truth.transfer_ns(&map.state, owner, asker));
                }
            }
        };
        each(&mut seen, &cores, &map.latency_ns.cells);
        let mut exhaustive = Seen::default();
        for few in exhaustive::transfers(order, &cores, &map.state)? {
            each(&mut exhaustive, &few.cores, &few.cells);
        }
        all.push(seen.errors(&format!("line transfers, {}", map.state), Some(&exhaustive)));
    }
    Ok(all)
}

fn interactions(spec: &SyntheticSpec, contents: &Contents) -> Option<Errors> {
    let costs = &spec.transfers.interactions;
    let truth = |one: &Interacted| {
        let kind = match one.kind.as_str() {
            "contention" => Interaction::Contention,
            "congestion" => Interaction::Congestion,
            "n-readers" => Interaction::Readers,
            "n-writers" => Interaction::Writers,
            "rfo-shared" => Interaction::RfoShared,
            _ => return None,
        };
        // With one reader alone it is a transfer like any other, of that pair.
        let is_own =
            one.n > 1 || !matches!(kind, Interaction::Contention | Interaction::Congestion);
        let has_cores = usize::try_from(one.n).is_ok_and(|n| n < contents.machine.cores.len());
        (is_own && has_cores).then(|| costs.cycles(kind, one.n) * 1e9 / spec.timer.hz)
    };
    let mut seen = Seen::default();
    for one in contents.interactions.iter().filter(|one| truth(one).is_some()) {
        seen.cell(one.ns, truth(one));
    }
    (seen.of > 0).then(|| seen.errors("interactions", None))
}

fn regions(order: &Order, truth: &Truth, contents: &Contents) -> Result<Vec<Errors>> {
    if contents.regions.is_empty() {
        return Ok(Vec::new());
    }
    let machine = &contents.machine;
    let cores: Vec<CoreId> = machine.cores.iter().map(|core| CoreId(core.id)).collect();
    let regions: Vec<RegionId> = machine.regions.iter().map(|one| RegionId(one.id)).collect();
    let each = |cores: &[CoreId], cells: &[Option<Measured>]| {
        let mut seen = Seen::default();
        let places = cores.iter().flat_map(|core| regions.iter().map(move |region| (core, region)));
        for ((core, region), cell) in places.zip(cells) {
            seen.cell(*cell, truth.region_ns(*core, *region));
        }
        seen
    };
    let few = exhaustive::regions(order, &cores, &regions)?;
    let exhaustive = each(&few.cores, &few.cells);
    let of = |map: &isochrone_atlas_store::contents::RegionMap| {
        let seen = each(&cores, &map.latency_ns.cells);
        seen.errors(&format!("region latency, {}", map.mode), Some(&exhaustive))
    };
    Ok(contents.regions.iter().map(of).collect())
}

fn bandwidth(order: &Order, truth: &Truth, contents: &Contents) -> Result<Option<Errors>> {
    if contents.bandwidth.is_empty() {
        return Ok(None);
    }
    let each = |found: &[isochrone_atlas_store::contents::Bandwidth]| {
        let mut seen = Seen::default();
        for one in found {
            let cores: Vec<CoreId> = one.cores.iter().copied().map(CoreId).collect();
            seen.cell(Some(one.gb_per_s), truth.gb_per_s(&cores, RegionId(one.region)));
        }
        seen
    };
    let exhaustive = each(&exhaustive::bandwidth(order)?);
    Ok(Some(each(&contents.bandwidth).errors("bandwidth", Some(&exhaustive))))
}

/// Errors as a table.
pub(super) fn table(errors: &[Errors]) -> Table {
    let heads = [
        "against the truth",
        "cells",
        "of",
        "error, median",
        "95 %",
        "most",
        "half-width",
        "beyond",
        "exhaustive plan",
    ];
    let mut table = Table::new(heads).keyed(1);
    for one in errors {
        let share = |value: Option<f64>| Cell::maybe(value, |v| format!("{:.2} %", 100.0 * v));
        let count = |count: usize| Cell::number(count as f64, fmt::count(count as u64));
        table.row([
            one.what.as_str().into(),
            count(one.cells),
            count(one.of),
            share(one.error_p50),
            share(one.error_p95),
            share(one.error_max),
            share(one.half_width_p50),
            share(one.beyond),
            share(one.exhaustive_p50),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_a_share_of_the_truth_and_what_is_missing_counts_as_a_cell() {
        let mut seen = Seen::default();
        seen.add(Some(110.0), Some([108.0, 112.0]), Some(100.0));
        seen.add(Some(95.0), Some([92.0, 100.0]), Some(100.0));
        seen.add(None, None, Some(100.0));
        let mut exhaustive = Seen::default();
        exhaustive.add(Some(101.0), None, Some(100.0));
        let errors = seen.errors("cells", Some(&exhaustive));
        assert_eq!((errors.cells, errors.of), (2, 3));
        let (_, limit, found) = errors.goal().expect("there is an exhaustive plan");
        assert!((limit - 0.04).abs() < 1e-12 && (found - 0.075).abs() < 1e-12, "{limit} {found}");
        assert_eq!(seen.errors("cells", None).goal(), None);
        let (what, limit, found) = seen.predicted("cells").goal().expect("intervals are judged");
        assert_eq!((what.as_str(), limit, found), ("beyond its interval: cells", BEYOND, 0.5));
    }
}
