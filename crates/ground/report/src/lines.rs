//! Prose and cells in lines of a given width. Words are never broken, and a number keeps its unit. A list of numbers
//! that is longer than a line is broken behind its commas.

/// Words that stay on the line of the number before them.
const UNITS: [&str; 16] = [
    "ns", "µs", "ms", "s", "%", "cycles", "B", "KiB", "MiB", "GiB", "TiB", "GB/s", "GHz", "lines",
    "cores", "pages",
];

/// What of a text stays together: its words, numbers with their units.
fn pieces(text: &str) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let bare = word.trim_end_matches([',', '.', ';', ':', ')']);
        match pieces.last_mut().filter(|last| last.ends_with(|c: char| c.is_ascii_digit())) {
            Some(number) if UNITS.contains(&bare) => *number += &format!(" {word}"),
            _ => pieces.push(word.to_owned()),
        }
    }
    pieces
}

/// Characters of the longest piece that is never broken.
pub(crate) fn longest_piece(text: &str) -> usize {
    pieces(text).iter().map(|piece| piece.chars().count()).max().unwrap_or(0)
}

/// A piece, or what of a list fits into `width` characters each: a machine of hundreds of cores has lists of 300.
fn broken(piece: String, width: usize) -> Vec<String> {
    if piece.chars().count() <= width || !piece.contains(',') {
        return vec![piece];
    }
    let mut parts: Vec<String> = Vec::new();
    for item in piece.split_inclusive(',') {
        match parts.last_mut() {
            Some(part) if part.chars().count() + item.chars().count() <= width => *part += item,
            _ => parts.push(item.to_owned()),
        }
    }
    parts
}

/// Lines of at most `width` characters; a longer word stands alone. A unit stays with its number.
#[must_use]
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut used = 0;
    for piece in pieces(text).into_iter().flat_map(|piece| broken(piece, width)) {
        let length = piece.chars().count();
        match lines.last_mut().filter(|_| used + 1 + length <= width) {
            Some(line) => {
                *line += &format!(" {piece}");
                used += 1 + length;
            }
            None => {
                lines.push(piece);
                used = length;
            }
        }
    }
    lines
}

/// The same as one text; all lines but the first begin with `indent` spaces.
#[must_use]
pub fn wrapped(text: &str, width: usize, indent: usize) -> String {
    wrap(text, width.saturating_sub(indent)).join(&format!("\n{}", " ".repeat(indent)))
}

/// A text of several lines, of which those that are too long are wrapped. What they begin with,
/// spaces, the new lines begin with as well.
#[must_use]
pub fn fit(text: &str, width: usize) -> String {
    let mut out = String::new();
    for line in text.split_inclusive('\n') {
        let bare = line.trim_end_matches('\n');
        if bare.chars().count() <= width {
            out.push_str(line);
            continue;
        }
        let indent = bare.len() - bare.trim_start_matches(' ').len();
        out.push_str(&" ".repeat(indent));
        out.push_str(&wrapped(bare, width, indent));
        out.push_str(&line[bare.len()..]);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_stays_with_its_number() {
        let lines = wrap("the mean of the lines is 14.4 ns, the nearest 12.4 ns", 30);
        assert_eq!(lines, ["the mean of the lines is", "14.4 ns, the nearest 12.4 ns"]);
        assert!(wrap("", 30).is_empty());
        assert_eq!(wrap("a verylongwordindeed b", 8), ["a", "verylongwordindeed", "b"]);
    }

    #[test]
    fn a_list_longer_than_a_line_is_broken_behind_its_commas() {
        let list: Vec<String> = (0..96).map(|nth| (4 * nth).to_string()).collect();
        let text = format!("Most by cores {} to region 6.", list.join(","));
        let lines = wrap(&text, 60);
        assert!(lines.iter().all(|line| line.chars().count() <= 60), "{lines:?}");
        assert!(lines.concat().contains(&list.join(",")), "nothing is put into it: {lines:?}");
        assert_eq!(wrap("cores 0-3,8 are near", 60), ["cores 0-3,8 are near"]);
    }

    #[test]
    fn later_lines_are_indented() {
        assert_eq!(wrapped("one two three", 9, 2), "one two\n  three");
        assert_eq!(wrapped("", 7, 2), "");
    }

    #[test]
    fn only_lines_that_are_too_long_are_wrapped() {
        let text = "a table   here\n  one two three\nend\n";
        assert_eq!(fit(text, 14), "a table   here\n  one two\n  three\nend\n");
        assert_eq!(fit("one two", 3), "one\ntwo");
    }
}
