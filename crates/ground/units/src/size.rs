//! Sizes as people and kernels write them: `100M`, `37.5 MiB`, `38400K`. All units are powers of two.

/// Why a text is no size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizeError {
    /// What stands before the unit is no number that is written with digits and at most one point.
    Number,
    /// The unit is none of k, M, G and T, with `B` or `iB` or without.
    Unit,
    /// It has more bytes than 64 bits count.
    TooLarge,
}

/// Bytes of a size: a number, and a unit or none, with blanks between them or none.
///
/// ```
/// use isochrone_units::{SizeError, parse_size};
/// assert_eq!(parse_size("37.5 MiB"), Ok(39_321_600));
/// assert_eq!(parse_size("4096"), Ok(4096));
/// assert_eq!(parse_size("12parsecs"), Err(SizeError::Unit));
/// ```
///
/// # Errors
/// [`SizeError`].
pub fn parse_size(text: &str) -> Result<u64, SizeError> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    scaled_bytes(number, shift(unit.trim_start()).ok_or(SizeError::Unit)?)
}

/// Bytes of so many times 2 to the power of `shift`: 37.5 and 20 for 37.5 MiB. A part of a byte is left out.
///
/// # Errors
/// [`SizeError::Number`] and [`SizeError::TooLarge`].
pub fn scaled_bytes(number: &str, shift: u32) -> Result<u64, SizeError> {
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    if !digits(whole) || !digits(part) {
        return Err(SizeError::Number);
    }
    let whole: u64 = whole.parse().map_err(|_| SizeError::TooLarge)?;
    // More digits than these make no byte of any size that 64 bits count.
    let part = part.get(..PART_DIGITS).unwrap_or(part).trim_end_matches('0');
    let scale = 10u128.pow(u32::try_from(part.len()).unwrap_or(0));
    let part: u128 =
        if part.is_empty() { 0 } else { part.parse().map_err(|_| SizeError::Number)? };
    let factor = 1u128.checked_shl(shift).ok_or(SizeError::TooLarge)?;
    let bytes = u128::from(whole).checked_mul(factor);
    let bytes = bytes.zip(part.checked_mul(factor)).map(|(whole, part)| whole + part / scale);
    bytes.and_then(|bytes| u64::try_from(bytes).ok()).ok_or(SizeError::TooLarge)
}

/// Digits behind the point that count.
const PART_DIGITS: usize = 18;

fn shift(unit: &str) -> Option<u32> {
    let letter = unit.strip_suffix("iB").or_else(|| unit.strip_suffix('B')).unwrap_or(unit);
    match letter {
        "" if unit != "iB" => Some(0),
        "k" | "K" => Some(10),
        "m" | "M" => Some(20),
        "g" | "G" => Some(30),
        "t" | "T" => Some(40),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_with_and_without_units_blanks_and_points() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("4096B", 4096),
            ("64k", 64 << 10),
            ("48K", 48 << 10),
            ("100M", 100 << 20),
            ("2GiB", 2 << 30),
            ("3 TB", 3 << 40),
            ("37.5M", 75 << 19),
            ("37.5 MiB", 75 << 19),
            (" 1.25 GiB\n", 5 << 28),
            ("0.1k", 102),
            ("1.500000000000000000000000", 1),
            ("16777215.99999999999T", 18_446_744_073_709_551_605),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_is_refused_by_what_is_wrong() {
        for text in ["", "M", " MiB", ".5M", "1.M", "1.2.3k", ".", "1..2"] {
            assert_eq!(parse_size(text), Err(SizeError::Number), "{text}");
        }
        for text in
            ["12parsecs", "iB", "1iB", "1 M B", "-5", "1e3", "NaN", "inf", "1M2", "é", "0x10"]
        {
            assert_eq!(parse_size(text), Err(SizeError::Unit), "{text}");
        }
        for text in ["99999999999999999999", "16777216T", "18446744073709551615k"] {
            assert_eq!(parse_size(text), Err(SizeError::TooLarge), "{text}");
        }
        assert_eq!(scaled_bytes("1", 200), Err(SizeError::TooLarge));
    }
}
