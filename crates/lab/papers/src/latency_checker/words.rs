//! How numbers and places of the poster are written: one decimal as the poster does, columns and
//! rows of tiles counted from 0 at the upper left. Derives nothing.

use super::route::Place;

/// Nanoseconds of a constant.
pub(super) fn ns(value: f64) -> String {
    format!("{value:.2} ns")
}

/// A cell's number as the poster prints it.
pub(super) fn cell(value: f64) -> String {
    format!("{value:.1}")
}

/// A difference with its sign and so many decimals; what rounds to nothing has no sign.
pub(crate) fn signed(value: f64, decimals: usize) -> String {
    let text = format!("{value:+.decimals$}");
    if text.chars().any(|c| ('1'..='9').contains(&c)) { text } else { text.replace(['+', '-'], "") }
}

/// A difference, with its sign; without decimals where these would not fit a cell.
pub(super) fn gap(value: f64) -> String {
    signed(value, usize::from(value.abs() < 9.95))
}

/// A place in words; -1 is beyond the left or the upper edge.
pub(super) fn place((x, y): Place) -> String {
    format!("column {x}, row {y}")
}

/// A share of variance as a percentage; a model that does worse than the mean explains none.
pub(crate) fn explained(share: f64) -> String {
    if share < 0.0 { "none".to_owned() } else { format!("{:.1} %", 100.0 * share) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_the_poster_does() {
        assert_eq!((signed(-0.04, 1), signed(-0.06, 1)), ("0.0".into(), "-0.1".into()));
        assert_eq!(place((4.0, -1.0)), "column 4, row -1");
        assert_eq!(
            (cell(170.94), gap(-0.25), gap(9.96)),
            ("170.9".into(), "-0.2".into(), "+10".into())
        );
    }
}
