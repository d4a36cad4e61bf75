//! Lists of numbers in the short form that the system uses ("0-3,8"), so that a sentence about
//! 60 cores stays one line. It never parses; reading such a list is `host`'s work.

use alloc::format;
use alloc::string::String;

/// `[0, 1, 2, 3, 8]` as `"0-3,8"`. Order and repetition of the input do not matter.
#[must_use]
pub fn spans(numbers: &[u16]) -> String {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let mut text = String::new();
    let mut rest = sorted.as_slice();
    while let Some(&first) = rest.first() {
        let length = rest.iter().zip(first..=u16::MAX).take_while(|&(&n, want)| n == want).count();
        let last = rest[length - 1];
        let comma = if text.is_empty() { "" } else { "," };
        text += &match length {
            1 => format!("{comma}{first}"),
            _ => format!("{comma}{first}-{last}"),
        };
        rest = &rest[length..];
    }
    text
}

#[cfg(test)]
mod tests {
    use super::spans;

    #[test]
    fn runs_are_joined_and_single_numbers_stand_alone() {
        assert_eq!(spans(&[]), "");
        assert_eq!(spans(&[7]), "7");
        assert_eq!(spans(&[8, 0, 2, 1, 3, 3]), "0-3,8");
        assert_eq!(spans(&[0, 2, 4]), "0,2,4");
        assert_eq!(spans(&[65534, 65535]), "65534-65535");
    }
}
