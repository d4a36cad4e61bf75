//! Words on a page: escaped, broken into lines where people would break them, commands set as such. It knows nothing of
//! what they say.

use crate::svg::escape;

/// Words longer than this may be broken behind their commas.
const LONG_WORD: usize = 16;
/// What `count` puts between groups of digits, and the same that no line ends at.
const THIN: [char; 2] = ['\u{2009}', '\u{202f}'];
/// What stands behind a number and belongs to it.
const UNITS: [&str; 16] = [
    "%", "ns", "µs", "ms", "s", "B", "KiB", "MiB", "GiB", "TiB", "MHz", "GHz", "GB/s", "cycle",
    "cycles", "MB",
];

/// Text for a page, in which a long list of numbers may be broken into lines. What is copied from there is the list.
pub(crate) fn breakable(text: &str) -> String {
    let safe = escape(text).replace(THIN[0], THIN[1].encode_utf8(&mut [0; 4]));
    let long = |word: &str| word.contains(',') && word.chars().count() > LONG_WORD;
    if text.split([' ', '\u{a0}']).any(long) { safe.replace(',', ",<wbr>") } else { safe }
}

/// Sentences for a page: the same, with numbers and their units in one line, and what stands between backticks as a
/// command.
pub(crate) fn sentences(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    // A backtick without another is one.
    if parts.len().is_multiple_of(2) {
        return breakable(&joined(text));
    }
    let part = |(at, part): (usize, &&str)| match at % 2 {
        0 => breakable(&joined(part)),
        _ => format!("<code>{}</code>", escape(part)),
    };
    parts.iter().enumerate().map(part).collect()
}

/// The text with a space that does not break between a number and its unit.
fn joined(text: &str) -> String {
    let mut all = String::with_capacity(text.len());
    for (at, word) in text.split(' ').enumerate() {
        let unit = word.trim_end_matches(['.', ',', ';', ':', ')', ']', '?']);
        let behind_digit = all.ends_with(|last: char| last.is_ascii_digit());
        let belongs = behind_digit && UNITS.contains(&unit);
        if at > 0 {
            all.push(if belongs { '\u{a0}' } else { ' ' });
        }
        all.push_str(word);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_units_and_their_groups() {
        assert_eq!(sentences("to 15.1 % nearer (8 ns)."), "to 15.1\u{a0}% nearer (8\u{a0}ns).");
        assert_eq!(
            sentences("262\u{2009}144 pages of 4 KiB"),
            "262\u{202f}144 pages of 4\u{a0}KiB"
        );
        assert_eq!(sentences("a s b"), "a s b", "no number before it");
        assert_eq!(sentences("2 sockets"), "2 sockets");
    }

    #[test]
    fn commands_are_set_as_such_and_all_is_escaped() {
        assert_eq!(
            sentences("run `a --b <c>` <now>"),
            "run <code>a --b &lt;c&gt;</code> &lt;now&gt;"
        );
        assert_eq!(sentences("one ` alone"), "one ` alone");
    }

    #[test]
    fn long_lists_may_be_broken_and_short_ones_are_not() {
        assert_eq!(breakable("0,2,4"), "0,2,4");
        assert!(breakable("0,2,4,6,8,10,12,14").contains("0,<wbr>2,<wbr>4"));
        assert!(sentences("cores (0,2,4,6,8,10,12,14)").contains(",<wbr>14)"));
    }
}
