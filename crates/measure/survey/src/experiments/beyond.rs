//! What a flush has reached, where it need not be memory.
//!
//! `dc civac` puts a line out to the point of coherency, and on some machines a cache of the whole system
//! lies behind that. Nothing says so. But memory is farther than the last-level cache by more than any two
//! lines of either differ, so the gap of the two levels tells; where there is none, what is called DRAM is
//! only known to lie beyond the second-level cache.

use isochrone_atlas_store::contents::LevelMap;
use isochrone_units::Level;

/// The flush that stops at the point of coherency, as levels name it.
const TO_COHERENCY: &str = "dc civac";
/// How many times as far as the last-level cache memory is at least. Machines with published numbers have 2 to 5.
const LEAST_GAP: f64 = 1.5;

/// A line for what is missing, where a level may not be what it is called.
pub(super) fn beyond(levels: &[LevelMap]) -> Option<String> {
    let of = |level: Level| levels.iter().find(|found| found.level == level.as_str());
    let dram = of(Level::Dram).filter(|dram| dram.method == TO_COHERENCY)?;
    words(of(Level::Llc).and_then(mean), mean(dram)?)
}

fn words(llc: Option<f64>, dram: f64) -> Option<String> {
    const WHAT: &str = "block latency (dram): `dc civac` goes to the point of coherency";
    const SO: &str = "it is only known to lie beyond the second-level cache";
    match llc {
        None => Some(format!("{WHAT}, and the last-level cache has no number to compare: {SO}")),
        Some(llc) if dram < LEAST_GAP * llc => Some(format!(
            "{WHAT}, and what is there is {:.2} times as far as the last-level cache, less than memory is: {SO}",
            dram / llc
        )),
        Some(_) => None,
    }
}

/// The mean of all lines in all bases, cycles.
fn mean(level: &LevelMap) -> Option<f64> {
    let lines = || level.bases.iter().flat_map(|base| base.patterns.iter().flatten());
    let known = || lines().filter(|cycles| cycles.is_finite());
    let count = known().count();
    (count > 0).then(|| known().map(|cycles| f64::from(*cycles)).sum::<f64>() / count as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gap_of_two_levels_tells_what_a_flush_reached() {
        assert_eq!(words(Some(60.0), 140.0), None);
        assert!(words(Some(60.0), 70.0).is_some_and(|line| line.contains("1.17 times as far")));
        assert!(words(None, 140.0).is_some_and(|line| line.contains("beyond the second-level")));
        assert_eq!(beyond(&[]), None);
    }
}
