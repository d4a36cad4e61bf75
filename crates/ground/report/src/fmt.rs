//! Numbers as people write them: three significant digits, a unit that fits, an interval beside
//! the value. It never rounds two different bounds of an interval to the same text without first
//! showing more digits. What is not finite is written as [`MISSING`].

use crate::cast::{exponent, index};

/// The text of a missing number.
pub const MISSING: &str = "–";

/// Decimals that show `digits` significant digits of `value`.
fn decimals_for(value: f64, digits: i32) -> usize {
    if value == 0.0 || !value.is_finite() {
        return index(f64::from(digits - 1), 12);
    }
    // Rounding may carry into a new digit: 99.96 has three significant digits as 100, not 100.0.
    let unit = 10f64.powi(exponent(value.abs().log10()) - digits + 1);
    let rounded = (value.abs() / unit).round() * unit;
    index(f64::from(digits - 1 - exponent(rounded.log10() + 1e-12)), 12)
}

/// `value` with `digits` significant digits, without an exponent.
#[must_use]
pub fn significant(value: f64, digits: u8) -> String {
    if !value.is_finite() {
        return MISSING.into();
    }
    let digits = i32::from(digits.max(1));
    let places = decimals_for(value, digits);
    if places > 0 || value == 0.0 {
        return format!("{value:.places$}");
    }
    let unit = 10f64.powi((exponent(value.abs().log10()) - digits + 1).max(0));
    format!("{:.0}", (value / unit).round() * unit)
}

/// A unit and how many base units it has.
type Step = (f64, &'static str);

/// The largest unit that leaves at least 1 before the point.
fn fitting(value: f64, steps: &'static [Step]) -> Step {
    // 0.9995 rounds to 1 at three digits.
    let fits = |step: &&Step| value.abs() >= step.0 * 0.9995;
    *steps.iter().rev().find(fits).unwrap_or(&steps[0])
}

const TIMES: &[Step] = &[(1.0, "ns"), (1e3, "µs"), (1e6, "ms"), (1e9, "s")];
const BYTES: &[Step] = &[
    (1.0, "B"),
    (1024.0, "KiB"),
    (1_048_576.0, "MiB"),
    (1_073_741_824.0, "GiB"),
    (1_099_511_627_776.0, "TiB"),
];

fn with_unit(value: f64, steps: &'static [Step]) -> String {
    if !value.is_finite() {
        return MISSING.into();
    }
    let (size, unit) = fitting(value, steps);
    format!("{} {unit}", significant(value / size, 3))
}

/// Nanoseconds, in the unit that fits: `12.3 ns`, `4.56 µs`, `1.20 s`.
#[must_use]
pub fn ns(value_ns: f64) -> String {
    with_unit(value_ns, TIMES)
}

/// Seconds, in the unit that fits.
#[must_use]
pub fn seconds(value_s: f64) -> String {
    with_unit(value_s * 1e9, TIMES)
}

/// Cycles: `44.2 cycles`.
#[must_use]
pub fn cycles(value: f64) -> String {
    if value.is_finite() { format!("{} cycles", significant(value, 3)) } else { MISSING.into() }
}

/// Bytes in powers of 1024: `64 B`, `1 MiB`, `1.50 GiB`. Whole numbers have no decimals.
#[must_use]
pub fn bytes(count: u64) -> String {
    let value = count as f64;
    let (size, unit) = fitting(value, BYTES);
    let scaled = value / size;
    if scaled.fract() == 0.0 {
        format!("{scaled:.0} {unit}")
    } else {
        format!("{} {unit}", significant(scaled, 3))
    }
}

/// A share as percent: `0.243` is `24.3 %`, to a hundredth of one. What rounds to nothing is `0 %`.
#[must_use]
pub fn percent(share: f64) -> String {
    if !share.is_finite() {
        return MISSING.into();
    }
    let percents = share * 100.0;
    if percents.abs() < 0.005 {
        "0 %".into()
    } else if percents.abs() < 1.0 {
        format!("{percents:.2} %")
    } else {
        format!("{} %", significant(percents, 3))
    }
}

/// A ratio: `1.18×`.
#[must_use]
pub fn ratio(value: f64) -> String {
    if value.is_finite() { format!("{}×", significant(value, 3)) } else { MISSING.into() }
}

/// A whole number with a thin space between groups of three digits: `262 144`.
#[must_use]
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3 * 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) && digits.len() > 4 {
            text.push('\u{2009}');
        }
        text.push(digit);
    }
    text
}

/// A value with an interval and any unit: `12.3 GB/s [12.1, 12.6]`. All three numbers have the
/// same decimals, with up to two more than three digits need where the bounds would look equal.
#[must_use]
pub fn interval(value: f64, lo: f64, hi: f64, unit: &str) -> String {
    if !value.is_finite() {
        return MISSING.into();
    }
    let space = if unit.is_empty() { "" } else { " " };
    if !(lo.is_finite() && hi.is_finite()) {
        return format!("{}{space}{unit}", significant(value, 3));
    }
    let first = decimals_for(value, 3);
    let places =
        (first..first + 3).find(|p| format!("{lo:.p$}") != format!("{hi:.p$}")).unwrap_or(first);
    format!("{value:.places$}{space}{unit} [{lo:.places$}, {hi:.places$}]")
}

/// A time with its interval in the unit that fits the value: `12.3 ns [12.1, 12.6]`.
#[must_use]
pub fn interval_ns(value_ns: f64, lo_ns: f64, hi_ns: f64) -> String {
    let (size, unit) = fitting(value_ns, TIMES);
    interval(value_ns / size, lo_ns / size, hi_ns / size, unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_significant_digits_with_the_unit_that_fits() {
        assert_eq!(ns(12.345), "12.3 ns");
        assert_eq!(ns(0.5), "0.500 ns");
        assert_eq!(ns(999.96), "1.00 µs");
        assert_eq!(ns(1234.0), "1.23 µs");
        assert_eq!(ns(2.5e9), "2.50 s");
        assert_eq!(seconds(0.0123), "12.3 ms");
        assert_eq!(cycles(360.4), "360 cycles");
        assert_eq!(cycles(1234.0), "1230 cycles");
        assert_eq!(percent(0.2431), "24.3 %");
        assert_eq!(percent(1.0), "100 %");
        assert_eq!(percent(0.004_28), "0.43 %");
        assert_eq!([percent(-1e-14), percent(0.0)], ["0 %", "0 %"]);
        assert_eq!(ratio(1.18), "1.18×");
        assert_eq!(significant(99.96, 3), "100");
        assert_eq!(significant(-0.01234, 3), "-0.0123");
    }

    #[test]
    fn bytes_are_exact_where_they_can_be() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(64), "64 B");
        assert_eq!(bytes(1 << 20), "1 MiB");
        assert_eq!(bytes(3 << 29), "1.50 GiB");
        assert_eq!(bytes(u64::MAX), "16777216 TiB");
    }

    #[test]
    fn counts_are_grouped() {
        assert_eq!(count(1024), "1024");
        assert_eq!(count(262_144), "262\u{2009}144");
        assert_eq!(count(1_000_000), "1\u{2009}000\u{2009}000");
    }

    #[test]
    fn intervals_show_that_their_bounds_differ() {
        assert_eq!(interval_ns(12.3, 12.1, 12.6), "12.3 ns [12.1, 12.6]");
        assert_eq!(interval_ns(12.31, 12.308, 12.312), "12.310 ns [12.308, 12.312]");
        assert_eq!(interval_ns(2345.0, 2300.0, 2400.0), "2.35 µs [2.30, 2.40]");
        assert_eq!(interval(40.0, 40.0, 40.0, "GB/s"), "40.0 GB/s [40.0, 40.0]");
        assert_eq!(interval(0.97, 0.96, 0.98, ""), "0.970 [0.960, 0.980]");
    }

    #[test]
    fn what_is_not_a_number_is_missing_not_zero() {
        for text in [ns(f64::NAN), percent(f64::INFINITY), interval(f64::NAN, 0.0, 1.0, "ns")] {
            assert_eq!(text, MISSING);
        }
        assert_eq!(interval(1.5, f64::NAN, 2.0, "ns"), "1.50 ns");
    }
}
