//! Lists of numbers in the short form that the system uses ("0-3,8"), so that a sentence about
//! 60 cores stays one line. It never parses; reading such a list is `host`'s work.

use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

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

/// So many numbers at one distance are written as one part.
const STEPS: usize = 4;

/// The same for people: four or more numbers at one distance are `0-120:8`, as taskset(1) takes them. Where caches have
/// eight cores, a list of one core of each would be a line long. Programs that read lists know runs alone: they are
/// given [`spans`].
#[must_use]
pub fn strides(numbers: &[u16]) -> String {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let mut parts = Vec::new();
    let mut rest = sorted.as_slice();
    while let [first, others @ ..] = rest {
        let step = others.first().map_or(0, |second| second - first);
        let apart = rest.windows(2).take_while(|pair| pair[1] - pair[0] == step).count();
        let length = match step {
            0 => 1,
            1 => apart + 1,
            _ if apart + 1 >= STEPS => apart + 1,
            _ => 1,
        };
        let last = rest[length - 1];
        parts.push(match (length, step) {
            (1, _) => first.to_string(),
            (_, 1) => format!("{first}-{last}"),
            _ => format!("{first}-{last}:{step}"),
        });
        rest = &rest[length..];
    }
    parts.join(",")
}

#[cfg(test)]
mod tests {
    use super::{spans, strides};

    #[test]
    fn numbers_at_one_distance_are_one_part() {
        let every_eighth: alloc::vec::Vec<u16> = (0..=120).step_by(8).collect();
        assert_eq!(strides(&every_eighth), "0-120:8");
        assert_eq!(strides(&[0, 16, 24, 32, 40, 56, 64, 72, 80]), "0,16-40:8,56-80:8");
        assert_eq!(strides(&[8, 0, 2, 1, 3, 3]), "0-3,8");
        assert_eq!(strides(&[0, 2, 4]), "0,2,4");
        assert_eq!(strides(&[0, 1, 8, 9]), "0-1,8-9");
        assert_eq!((strides(&[]).as_str(), strides(&[65535]).as_str()), ("", "65535"));
    }

    #[test]
    fn both_ways_name_the_same_numbers_where_these_are_runs() {
        for numbers in [&[0, 1, 2, 7][..], &[5], &[65534, 65535], &[0, 3, 4]] {
            assert_eq!(strides(numbers), spans(numbers));
        }
    }

    #[test]
    fn runs_are_joined_and_single_numbers_stand_alone() {
        assert_eq!(spans(&[]), "");
        assert_eq!(spans(&[7]), "7");
        assert_eq!(spans(&[8, 0, 2, 1, 3, 3]), "0-3,8");
        assert_eq!(spans(&[0, 2, 4]), "0,2,4");
        assert_eq!(spans(&[65534, 65535]), "65534-65535");
    }
}
