//! The figures of the report, each with its table. They turn records into the plain figures of
//! `isochrone-report`; the terminal draws some of the same ones. A figure that would show nothing
//! is not made: its function returns `None`, and the page says why.

pub(super) mod block;
pub(super) mod lines;
pub(super) mod matrices;
pub(super) mod pages;
pub(super) mod placement;
pub(super) mod several;
pub(super) mod tables;

use isochrone_atlas_store::contents::Contents;
use isochrone_report::fmt;
use isochrone_report::html::Badge;
use isochrone_report::table::Cell;
use isochrone_units::Reading;

/// The badge of everything that was read the way the atlas was.
pub(super) fn reading(contents: &Contents) -> Badge {
    contents.reading.into()
}

/// The badge of what is derived from the atlas: never measured.
fn derived(contents: &Contents) -> Badge {
    match contents.reading {
        Reading::Measured => Reading::Predicted.into(),
        other => other.into(),
    }
}

/// Nanoseconds in a table whose header says so.
fn ns(value: Option<f64>) -> Cell {
    Cell::maybe(value, |v| fmt::significant(v, 4))
}

/// A share in a table.
fn percent(value: Option<f64>) -> Cell {
    Cell::maybe(value, fmt::percent)
}

/// A whole number in a table.
fn whole(value: u64) -> Cell {
    Cell::number(value as f64, fmt::count(value))
}

/// A name in a table: never broken into lines.
fn name(words: &str) -> Cell {
    Cell::text(words.replace(' ', "\u{a0}"))
}

/// At most `most` of `all`, evenly spread, the first and the last among them.
fn spread<T: Clone>(all: &[T], most: usize) -> Vec<T> {
    if all.len() <= most || most < 2 {
        return all.iter().take(most).cloned().collect();
    }
    (0..most).map(|i| all[i * (all.len() - 1) / (most - 1)].clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::spread;

    #[test]
    fn a_few_of_many_keep_both_ends() {
        let all: Vec<u16> = (0..64).collect();
        assert_eq!(spread(&all, 4), [0, 21, 42, 63]);
        assert_eq!(spread(&all[..3], 4), [0, 1, 2]);
        assert_eq!(spread(&all, 1), [0]);
        assert!(spread::<u16>(&[], 4).is_empty());
    }
}
