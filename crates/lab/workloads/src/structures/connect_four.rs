//! Connect four on bitboards: the game that the tree search plays. Small, deterministic, and
//! cheap enough that the tree and not the game is what a search waits for.

/// Columns of the board.
pub(super) const COLUMNS: u8 = 7;
/// Rows of the board.
const ROWS: u8 = 6;
/// Bits of a column: its cells and one above them, so that lines do not wrap.
const COLUMN_BITS: u8 = ROWS + 1;

/// A position: the stones of whoever moves next, and of both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Position {
    own: u64,
    all: u64,
}

impl Position {
    /// Whether a stone can still be dropped into a column.
    pub(super) fn is_open(self, column: u8) -> bool {
        column < COLUMNS && self.all & Self::top(column) == 0
    }

    /// The columns that are open.
    pub(super) fn open(self) -> impl Iterator<Item = u8> {
        (0..COLUMNS).filter(move |column| self.is_open(*column))
    }

    /// The position after a stone was dropped into an open column.
    pub(super) fn after(self, column: u8) -> Self {
        let all = self.all | (self.all + Self::bottom(column));
        Self { own: self.own ^ self.all, all }
    }

    /// Whether whoever moved last has four in a line.
    pub(super) fn is_won(self) -> bool {
        let stones = self.own ^ self.all;
        [1, COLUMN_BITS, COLUMN_BITS - 1, COLUMN_BITS + 1].into_iter().any(|step| {
            let pairs = stones & (stones >> step);
            pairs & (pairs >> (2 * step)) != 0
        })
    }

    fn bottom(column: u8) -> u64 {
        1 << (column * COLUMN_BITS)
    }

    fn top(column: u8) -> u64 {
        1 << (column * COLUMN_BITS + ROWS - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn play(columns: &[u8]) -> Position {
        columns.iter().fold(Position::default(), |position, column| position.after(*column))
    }

    #[test]
    fn four_in_a_line_win_in_each_direction_and_three_do_not() {
        assert!(play(&[0, 1, 0, 1, 0, 1, 0]).is_won(), "a column");
        assert!(play(&[0, 0, 1, 1, 2, 2, 3]).is_won(), "a row");
        assert!(play(&[0, 1, 1, 2, 2, 3, 2, 3, 3, 6, 3]).is_won(), "a rising diagonal");
        assert!(play(&[6, 5, 5, 4, 4, 3, 4, 3, 3, 0, 3]).is_won(), "a falling diagonal");
        assert!(!play(&[0, 0, 1, 1, 2, 2]).is_won());
        // Three at the top of one column and one at the bottom of the next are no line.
        assert!(!play(&[1, 0, 0, 0, 0, 6, 0, 6, 0]).is_won());
    }

    #[test]
    fn a_full_column_is_closed() {
        let full = play(&[3, 3, 3, 3, 3, 3]);
        assert_eq!(full.open().collect::<Vec<_>>(), [0, 1, 2, 4, 5, 6]);
        assert!(!full.is_open(7));
        let mut position = Position::default();
        for row in 0..6 {
            for column in [0, 1, 2, 3, 4, 5, 6] {
                assert!(position.is_open(column), "row {row}");
                position = position.after(column);
            }
        }
        assert_eq!(position.open().count(), 0);
    }
}
