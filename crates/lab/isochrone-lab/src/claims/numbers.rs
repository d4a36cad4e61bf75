//! Numbers in texts, and how they are rounded.

/// What a half is short of, in binary: 2.25 as a recorded text has it is rounded up.
const HALF: f64 = 1e-9;

/// A number as a text has it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Number {
    pub(super) value: f64,
    /// Digits behind the point.
    pub(super) digits: u32,
}

impl Number {
    /// Whether a recorded number, rounded to as many digits, is this one.
    pub(super) fn is(self, recorded: f64) -> bool {
        (rounded(recorded, self.digits) - self.value).abs() < HALF
    }
}

/// Rounded to so many digits behind the point; a half goes up, as people do it.
pub(super) fn rounded(value: f64, digits: u32) -> f64 {
    let scale = 10_f64.powi(i32::try_from(digits).unwrap_or(0));
    ((value.abs() * scale + 0.5 + HALF).floor() / scale).copysign(value)
}

/// All numbers of a text, in their order. A sign belongs to it where nothing but a space or a bracket is before it.
pub(super) fn numbers(text: &str) -> Vec<Number> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let before = &rest[..at];
        let number = &rest[at..];
        let end = end_of(number);
        let digits = number[..end].split_once('.').map_or(0, |(_, behind)| behind.len());
        // Between two numbers it is a hyphen.
        let is_hyphen = before == "-" && !found.is_empty();
        let is_minus = before.ends_with('-')
            && !is_hyphen
            && !before.trim_end_matches('-').ends_with(|c: char| c.is_alphanumeric());
        if let Ok(value) = number[..end].parse::<f64>() {
            let value = if is_minus { -value } else { value };
            found.push(Number { value, digits: u32::try_from(digits).unwrap_or(0) });
        }
        rest = &number[end..];
    }
    found
}

/// Where a number that begins a text ends: digits, and a point with digits behind it.
fn end_of(text: &str) -> usize {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let whole = digits(text);
    let behind = text[whole..].strip_prefix('.').map_or(0, digits);
    if behind > 0 { whole + 1 + behind } else { whole }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_with_their_digits() {
        let of = |text| numbers(text).iter().map(|n| (n.value, n.digits)).collect::<Vec<_>>();
        assert_eq!(of("1.14 to 1.17, 2 MiB."), [(1.14, 2), (1.17, 2), (2.0, 0)]);
        assert_eq!(of("0.67 (0.37 without)"), [(0.67, 2), (0.37, 2)]);
        assert_eq!(of("[-0.35, x86-64]"), [(-0.35, 2), (86.0, 0), (64.0, 0)]);
        assert!(of("none at all").is_empty());
    }

    #[test]
    fn a_half_goes_up_and_the_text_says_to_how_many_digits() {
        assert_eq!([rounded(2.25, 1), rounded(-2.25, 1), rounded(5.249, 1)], [2.3, -2.3, 5.2]);
        assert_eq!(rounded(41.735, 0), 42.0);
        let one = numbers("1.00")[0];
        assert!(one.is(0.9961) && one.is(1.004) && !one.is(0.994) && !one.is(1.006));
    }
}
