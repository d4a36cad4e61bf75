//! Distances by an atlas, as far as it was measured. What is graded below [`Grade::USABLE`] counts as not measured.

use crate::costs::{
    Cost, Distances, Experiment, FarCosts, FarKind, Grade, LineCosts, RegionCosts, Term,
};
use crate::groups::common_level;
use isochrone_atlas::format::{FitRecord, RegionMode, TransferKind};
use isochrone_atlas::{Atlas, BandwidthView, Spread};
use isochrone_units::{CoreId, Level, Reading, RegionId};

/// Modes of the region experiment, the most telling first.
const MODES: [RegionMode; 4] =
    [RegionMode::Random, RegionMode::OneClass, RegionMode::InOrder, RegionMode::Stride];

impl Distances for Atlas<'_> {
    fn line_costs(&self, owner: CoreId, asker: CoreId) -> Option<LineCosts> {
        if owner == asker || !is_usable(self, Experiment::Transfer) {
            return None;
        }
        let [start, line, congestion] = fitted(self, owner, asker);
        Some(LineCosts {
            transfer: transfer(self, owner, asker)?,
            memory: memory(self, asker),
            start,
            line,
            congestion,
        })
    }

    fn term(&self, term: Term) -> Option<Cost> {
        // Readers at once are measured with those of several lines.
        let of = if term == Term::Reader { Experiment::Multiline } else { Experiment::Terms };
        let term = Atlas::term(self, term).filter(|_| is_usable(self, of));
        term.map(|spread| cost(&spread, reading(self)))
    }

    fn region(&self, core: CoreId, region: RegionId) -> Option<RegionCosts> {
        if !is_usable(self, Experiment::Region) {
            return None;
        }
        let mut modes = MODES.iter();
        let latency = modes.find_map(|mode| self.region_latency(core, region, *mode))?;
        let there = is_usable(self, Experiment::Bandwidth);
        let here = || self.bandwidths().filter(|found| there && found.region == region);
        let alone = here().find(|found| found.cores().eq([core]));
        let together =
            here().filter(|found| found.cores().len() > 1).max_by_key(|found| found.cores().len());
        let reading = reading(self);
        Some(RegionCosts {
            latency_ns: cost(&latency, reading),
            gb_per_s: alone.map(|found| cost(&found.gb_per_s, reading)),
            gb_per_s_together: together.map(|found| cost(&found.gb_per_s, reading)),
        })
    }

    fn bandwidth(&self, cores: &[CoreId], region: RegionId) -> Option<Cost> {
        let same = |found: &BandwidthView<'_>| {
            found.region == region
                && found.cores().len() == cores.len()
                && found.cores().all(|core| cores.contains(&core))
        };
        let found =
            self.bandwidths().find(same).filter(|_| is_usable(self, Experiment::Bandwidth))?;
        Some(cost(&found.gb_per_s, reading(self)))
    }

    fn far(&self, core: CoreId, kind: FarKind) -> Option<FarCosts> {
        // Files and compressed memory are not measured yet.
        let FarKind::Region(region) = kind else { return None };
        let found = self.region(core, region)?;
        Some(FarCosts { latency_ns: found.latency_ns, gb_per_s: found.gb_per_s })
    }

    fn levels(&self) -> usize {
        if is_usable(self, Experiment::Transfer) { self.group_levels().count() } else { 0 }
    }

    fn group(&self, level: usize, core: CoreId) -> Option<u16> {
        let mut levels = self.group_levels().filter(|_| is_usable(self, Experiment::Transfer));
        levels.nth(level)?.group(self.place_of(core)?)
    }

    fn quality(&self, of: Experiment) -> Option<Grade> {
        self.grade(of)
    }
}

/// Whether an experiment may be gone by; what nobody graded may.
fn is_usable(atlas: &Atlas<'_>, of: Experiment) -> bool {
    atlas.grade(of).is_none_or(|grade| grade >= Grade::USABLE)
}

/// A line from memory: the mean of decoded pages, or where no page was, a dependent chase in the nearest region.
fn memory(atlas: &Atlas<'_>, asker: CoreId) -> Option<Cost> {
    let means = atlas.means(asker, Level::Dram).filter(|_| is_usable(atlas, Experiment::Block));
    let lines = means.map(|means| f64::from(means.mean_ns)).filter(|ns| !ns.is_nan());
    lines.map(|ns| Cost::single(ns, reading(atlas))).or_else(|| {
        let there = MODES.iter().filter(|_| is_usable(atlas, Experiment::Region));
        let chase = there.filter_map(|mode| atlas.nearest_region_latency(asker, *mode)).next()?;
        Some(cost(&chase, reading(atlas)))
    })
}

fn reading(atlas: &Atlas<'_>) -> Reading {
    if atlas.is_measured() { Reading::Measured } else { Reading::Simulated }
}

fn cost(spread: &Spread, reading: Reading) -> Cost {
    let [value, lo, hi] = [spread.median_ns, spread.lo_ns, spread.hi_ns].map(f64::from);
    Cost { value, lo, hi, reading }
}

/// The pair's own transfer, the other direction's, or that of its group.
fn transfer(atlas: &Atlas<'_>, owner: CoreId, asker: CoreId) -> Option<Cost> {
    let one = |a, b| atlas.transfer(a, b, TransferKind::Modified).map(|found| found.spread);
    if let Some(own) = one(owner, asker) {
        return Some(cost(&own, reading(atlas)));
    }
    let stands_in = one(asker, owner).or_else(|| {
        let level = common_level(atlas, owner, asker)?;
        atlas.group_levels().nth(level)?.transfer
    });
    stands_in.map(|spread| cost(&spread, Reading::Predicted))
}

/// Start-up, cost a line and congestion: by the fit of the pair, else by the first one, which stands in.
fn fitted(atlas: &Atlas<'_>, owner: CoreId, asker: CoreId) -> [Option<Cost>; 3] {
    let own = |fit: &FitRecord| (fit.owner, fit.asker) == (owner.0, asker.0);
    if !is_usable(atlas, Experiment::Multiline) {
        return [None; 3];
    }
    let (fit, reading) = match (atlas.fits().find(own), atlas.fits().next()) {
        (Some(fit), _) => (fit, reading(atlas)),
        (None, Some(fit)) => (fit, Reading::Predicted),
        (None, None) => return [None; 3],
    };
    [fit.start_ns, fit.line_ns, fit.congestion_ns].map(|three| {
        let [value, lo, hi] = three.map(f64::from);
        (!value.is_nan()).then_some(Cost { value, lo, hi, reading })
    })
}
