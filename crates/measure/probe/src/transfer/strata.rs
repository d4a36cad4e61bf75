//! What a sample of pairs says of those that were not measured.
//!
//! A pair that was not measured is taken to cost what others cost that have as much in common. How far that may be
//! from the truth follows from the spread among those ([`isochrone_stats::further`]).

use std::collections::{BTreeMap, BTreeSet};

use isochrone_atlas_store::contents::{Matrix, PairStratum};
use isochrone_stats::{further, mean, median};

use crate::seats::{Seats, Stratum};

/// What was found of each stratum, the nearest first; nothing where every pair has a number, or none has.
#[must_use]
pub fn strata(seats: &Seats, latency_ns: &Matrix) -> Vec<PairStratum> {
    let cores = seats.all().len();
    let one = |a: usize, b: usize| latency_ns.cells.get(a * cores + b).copied().flatten();
    let mut all: BTreeMap<Stratum, Found> = BTreeMap::new();
    for a in 0..cores {
        for b in a + 1..cores {
            let found = all.entry(seats.stratum(a, b)).or_default();
            found.pairs += 1;
            let both: Vec<f64> =
                [one(a, b), one(b, a)].iter().flatten().map(|c| c.median).collect();
            found.measured_ns.extend(mean(&both));
        }
    }
    let is_some = all.values().any(|found| !found.measured_ns.is_empty());
    let is_whole = all.values().all(|found| found.measured_ns.len() == found.pairs);
    if is_whole || !is_some {
        return Vec::new();
    }
    all.into_iter().map(|(stratum, found)| found.record(stratum)).collect()
}

/// The pairs of a stratum.
#[derive(Default)]
struct Found {
    pairs: usize,
    measured_ns: Vec<f64>,
}

impl Found {
    fn record(self, stratum: Stratum) -> PairStratum {
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        PairStratum {
            what: stratum.words(),
            pairs: count(self.pairs),
            measured: count(self.measured_ns.len()),
            median_ns: median(&self.measured_ns),
            error_ns: further(&self.measured_ns),
        }
    }
}

/// One line for what was not measured, of strata that have such pairs.
#[must_use]
pub fn sentence(state: &str, why: &str, strata: &[PairStratum]) -> Option<String> {
    let sum = |of: &dyn Fn(&PairStratum) -> u32| strata.iter().map(of).sum::<u32>();
    let (measured, pairs) = (sum(&|s| s.measured), sum(&|s| s.pairs));
    if measured == pairs {
        return None;
    }
    let lacks = || strata.iter().filter(|stratum| stratum.measured < stratum.pairs);
    let worst =
        |stratum: &&PairStratum| stratum.error_ns.map(|ns| ns / stratum.median_ns.unwrap_or(ns));
    let bound = lacks()
        .filter(|stratum| stratum.error_ns.is_some())
        .max_by(|a, b| worst(a).unwrap_or(0.0).total_cmp(&worst(b).unwrap_or(0.0)));
    let unknown: BTreeSet<&str> =
        lacks().filter(|stratum| stratum.error_ns.is_none()).map(|s| s.what.as_str()).collect();
    let mut line = format!(
        "line transfers ({state}): {measured} of {pairs} pairs of cores were measured, {why}"
    );
    if let Some(PairStratum { what, median_ns: Some(median), error_ns: Some(error), .. }) = bound {
        line += &format!(
            "; one that was not costs what pairs with as much in common do, and in 95 of 100 cases is off by no more \
             than their spread allows, at most {error:.1} ns of {median:.1} ({what})"
        );
    }
    if let Some(first) = unknown.first() {
        line += &format!("; of {} kinds of pairs too few were measured ({first})", unknown.len());
    }
    Some(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use isochrone_atlas_store::contents::Cell;
    use isochrone_units::CoreId;

    fn matrix(cores: usize, known: impl Fn(usize, usize) -> bool) -> Matrix {
        let names = || (0..cores).map(|core| format!("core {core}")).collect();
        let cell = |at: usize| {
            let (a, b) = (at / cores, at % cores);
            (a != b && known(a, b)).then(|| Cell::single(50.0 + (a + b) as f64))
        };
        let cells = (0..cores * cores).map(cell).collect();
        Matrix { what: "x".into(), rows: names(), columns: names(), cells }
    }

    #[test]
    fn only_what_is_not_whole_is_told() {
        let cores: Vec<CoreId> = (0..8).map(CoreId).collect();
        let seats = Seats::unknown(&cores);
        assert!(strata(&seats, &matrix(8, |_, _| true)).is_empty());
        assert!(strata(&seats, &matrix(8, |_, _| false)).is_empty());
        let half = strata(&seats, &matrix(8, |a, b| (a + b) % 2 == 1));
        assert_eq!((half.len(), half[0].pairs, half[0].measured), (1, 28, 16));
        assert!(half[0].error_ns.is_some_and(|ns| ns > 3.0));
        let line = sentence("cas", "since time was over", &half).unwrap();
        assert!(line.contains("16 of 28 pairs") && line.contains("95 of 100"), "{line}");
        assert_eq!(sentence("cas", "", &[]), None);
        let few = strata(&seats, &matrix(8, |a, b| a + b == 1));
        assert!(sentence("cas", "", &few).unwrap().contains("too few were measured"));
    }
}
