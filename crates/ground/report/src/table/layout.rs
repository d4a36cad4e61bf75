//! Which columns of a table stand beside one another in a given width, and how wide each of them is.
//!
//! Neither a word nor a number is ever broken. Columns that have no room stand below in a further part, behind
//! the columns that say which row it is. Only where these and one column more are too wide is a line longer
//! than it should be.

use crate::lines::{longest_piece, wrap};

/// Spaces on both sides of a column.
pub(super) const MARGIN: usize = 2;
/// Lines of a cell or a header, where its column has the width that it wants.
const LINES: usize = 3;
/// A column of prose that is as wide as this wants no more.
const PROSE: usize = 40;

/// What a column needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Need {
    /// Its longest word or number.
    least: usize,
    /// So that what it holds can be read well.
    wanted: usize,
    /// So that every cell has one line.
    whole: usize,
}

impl Need {
    /// Of a text that may be wrapped between words.
    pub(super) fn of_words(text: &str) -> Self {
        let (least, whole) = (longest_piece(text), text.chars().count());
        let most = whole.min(PROSE.max(least));
        let enough = (least..most).find(|width| wrap(text, *width).len() <= LINES);
        let wanted = enough.unwrap_or(most);
        Self { least, wanted, whole }
    }

    /// Of a number, which has one line.
    pub(super) fn of_number(text: &str) -> Self {
        let whole = text.chars().count();
        Self { least: whole, wanted: whole, whole }
    }

    /// Of both.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            least: self.least.max(other.least),
            wanted: self.wanted.max(other.wanted),
            whole: self.whole.max(other.whole),
        }
    }
}

/// A column of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Which one of the table.
    pub(super) column: usize,
    /// Characters of its content.
    pub(super) width: usize,
}

/// The parts of a table whose columns need this much. The first `keys` columns stand in every part.
pub(super) fn parts(needs: &[Need], keys: usize, width: usize) -> Vec<Vec<Place>> {
    let all: Vec<usize> = (0..needs.len()).collect();
    if fits(needs, &all, width, |need| need.wanted) {
        return vec![placed(needs, &all, width)];
    }
    let keys = keys.min(needs.len().saturating_sub(1));
    let mut parts = Vec::new();
    let mut now: Vec<usize> = (0..keys).collect();
    for column in keys..needs.len() {
        now.push(column);
        if now.len() > keys + 1 && !fits(needs, &now, width, |need| need.wanted) {
            now.pop();
            parts.push(placed(needs, &now, width));
            now.truncate(keys);
            now.push(column);
        }
    }
    parts.push(placed(needs, &now, width));
    parts
}

fn fits(needs: &[Need], columns: &[usize], width: usize, of: fn(&Need) -> usize) -> bool {
    columns.iter().map(|column| of(&needs[*column]) + MARGIN).sum::<usize>() <= width
}

/// Widths of columns that stand beside one another: what they want at least where there is room for that, and
/// what is left in equal shares to those that could use more.
fn placed(needs: &[Need], columns: &[usize], width: usize) -> Vec<Place> {
    let wanted = fits(needs, columns, width, |need| need.wanted);
    let begin = |need: &Need| if wanted { need.wanted } else { need.least };
    let mut places: Vec<Place> =
        columns.iter().map(|&column| Place { column, width: begin(&needs[column]) }).collect();
    let used: usize = places.iter().map(|place| place.width + MARGIN).sum();
    let mut left = width.saturating_sub(used);
    while left > 0 {
        let mut given = false;
        for place in &mut places {
            if left > 0 && place.width < needs[place.column].whole {
                place.width += 1;
                left -= 1;
                given = true;
            }
        }
        if !given {
            break;
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    fn widths(part: &[Place]) -> Vec<[usize; 2]> {
        part.iter().map(|place| [place.column, place.width]).collect()
    }

    #[test]
    fn what_fits_stands_beside_one_another() {
        let needs = [Need::of_words("core 0"), Need::of_number("59.8 ns")];
        assert_eq!(parts(&needs, 1, 80).len(), 1);
        assert_eq!(widths(&parts(&needs, 1, 80)[0]), [[0, 6], [1, 7]]);
    }

    #[test]
    fn columns_without_room_stand_below_behind_the_keys() {
        let needs = [Need::of_words("key"), Need::of_number("123456"), Need::of_number("1234")];
        let found = parts(&needs, 1, 14);
        let columns: Vec<Vec<[usize; 2]>> = found.iter().map(|part| widths(part)).collect();
        assert_eq!(columns, [vec![[0, 3], [1, 6]], vec![[0, 3], [2, 4]]]);
    }

    #[test]
    fn prose_takes_what_numbers_leave() {
        let prose = "none are reserved; run with more of them, or with small ones";
        let needs = [Need::of_number("12"), Need::of_words(prose)];
        assert_eq!(widths(&parts(&needs, 1, 40)[0]), [[0, 2], [1, 34]]);
        assert_eq!(Need::of_words(prose).whole, prose.len());
    }

    #[test]
    fn a_number_that_is_too_long_for_the_terminal_stays_whole() {
        let needs = [Need::of_words("key"), Need::of_number("12345678901234567890")];
        assert_eq!(widths(&parts(&needs, 1, 10)[0]), [[0, 3], [1, 20]]);
        assert_eq!(parts(&[], 1, 10), [vec![]]);
    }
}
