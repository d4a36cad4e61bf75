//! The small notations of `/proc` and `/sys`: lists of numbers, `Key: value` lines, sizes.

/// A list as the kernel writes it, `"0-3,8"`. `None` unless numbers ascend and fit 16 bits; an
/// empty text is an empty list.
///
/// ```
/// assert_eq!(isochrone_host::parse_list("0-2,8\n"), Some(vec![0, 1, 2, 8]));
/// assert_eq!(isochrone_host::parse_list("3,1"), None);
/// ```
#[must_use]
pub fn parse_list(text: &str) -> Option<Vec<u16>> {
    let text = text.trim();
    let mut numbers: Vec<u16> = Vec::new();
    if text.is_empty() {
        return Some(numbers);
    }
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (number(first)?, number(last)?);
        let ascends = first <= last && numbers.last().is_none_or(|&before| before < first);
        if !ascends {
            return None;
        }
        numbers.extend(first..=last);
    }
    Some(numbers)
}

/// Digits only: `parse` alone would take a plus sign.
fn number(text: &str) -> Option<u16> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// The value of the first line `key: value` (any blanks before the colon), trimmed.
pub(super) fn field(text: &str, key: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key && !value.trim().is_empty()).then(|| value.trim().to_owned())
    })
}

/// `"4286680 kB"` in bytes.
pub(super) fn kibibytes(text: &str) -> Option<u64> {
    text.strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// `"32K"`, `"8192K"`, `"32M"` or `"37.5 MiB"`, as cache sizes are written, in bytes.
pub(super) fn cache_bytes(text: &str) -> Option<u64> {
    isochrone_units::parse_size(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_nonsense_is_refused() {
        assert_eq!(parse_list(""), Some(vec![]));
        assert_eq!(parse_list("0\n"), Some(vec![0]));
        assert_eq!(parse_list("0-1,4-5,9"), Some(vec![0, 1, 4, 5, 9]));
        for bad in ["a", "1-", "-1", "2-1", "1,1", "0-2,2", "65536", "+1", "1,,2", "1 2"] {
            assert_eq!(parse_list(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn fields_and_sizes() {
        let text = "model name\t: AMD EPYC\nempty :\nMemTotal:   24684096 kB\n";
        assert_eq!(field(text, "model name").as_deref(), Some("AMD EPYC"));
        assert_eq!(field(text, "empty"), None);
        assert_eq!(field(text, "model"), None);
        assert_eq!(kibibytes("24684096 kB"), Some(25_276_514_304));
        assert_eq!(kibibytes("12"), None);
        assert_eq!(cache_bytes("32K"), Some(32768));
        assert_eq!(cache_bytes("20M"), Some(20 << 20));
        assert_eq!(cache_bytes("37.5 MiB"), Some(75 << 19));
        assert_eq!(cache_bytes("é"), None);
        assert_eq!(cache_bytes(""), None);
    }
}
