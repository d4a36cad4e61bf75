//! Made-up comparisons, and the check that what is printed of them fits a terminal: for tests.

use isochrone_console::turns::{Ratio, Series};
use isochrone_report::table::too_wide;

use super::findings::Findings;

/// Arms whose costs go up by a tenth from one to the next, in so many blocks.
pub(super) fn series(arms: &[&str], blocks: usize) -> Series {
    let names: Vec<String> = arms.iter().map(|arm| (*arm).to_owned()).collect();
    let mut series = Series::new(&names, "s");
    for _ in 0..blocks {
        let mut cost = |arm: usize| Ok(Some(1234.5 * (1.0 + 0.1 * arm as f64)));
        assert!(series.add(1, &mut |_| true, &mut cost).unwrap());
    }
    series
}

/// A ratio with an interval.
pub(super) fn ratio() -> Option<Ratio> {
    Ratio::of(&series(&["a", "b"], 6), "b", "a", 1)
}

/// Every table of the figures fits terminals of these widths, and none of its words is broken.
pub(super) fn fits(figures: &impl Findings) {
    for width in [60, 80, 120] {
        let text = figures.text(width);
        assert_eq!(too_wide(&text, width), None, "{width} columns:\n{text}");
        assert!(text.contains('─'), "there is a table:\n{text}");
    }
}
