//! The 15-puzzle: a board in one word, its moves, and how far it is from solved at least.
//!
//! Four bits a cell, as in the code of Burns et al. ("Implementing Fast Heuristic Search Code",
//! SoCS 2012). A puzzle is solved when every tile lies in the cell of its number, the blank (0)
//! first, which is the goal of Korf's instances. Nothing here searches.

/// Cells in a row and rows.
const SIDE: u8 = 4;
/// Cells of the board.
const CELLS: u8 = 16;

/// A board.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Puzzle(u64);

/// A direction in which the blank moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// To the row above.
    Up,
    /// To the cell before.
    Left,
    /// To the cell after.
    Right,
    /// To the row below.
    Down,
}

impl Move {
    /// All four, in the order in which searches try them.
    pub const ALL: [Self; 4] = [Self::Up, Self::Left, Self::Right, Self::Down];

    /// The cell that the blank comes to; `None` off the board.
    #[must_use]
    pub const fn from_cell(self, blank: u8) -> Option<u8> {
        match self {
            Self::Up if blank >= SIDE => Some(blank - SIDE),
            Self::Left if !blank.is_multiple_of(SIDE) => Some(blank - 1),
            Self::Right if blank % SIDE < SIDE - 1 => Some(blank + 1),
            Self::Down if blank < CELLS - SIDE => Some(blank + SIDE),
            _ => None,
        }
    }
}

/// How far tile `t` in cell `c` is from its place: `DISTANCE[t][c]`, 0 for the blank.
const DISTANCE: [[u8; 16]; 16] = distances();

const fn distances() -> [[u8; 16]; 16] {
    let mut table = [[0; 16]; 16];
    let mut tile = 1;
    while tile < CELLS {
        let mut cell = 0;
        while cell < CELLS {
            table[tile as usize][cell as usize] =
                (tile % SIDE).abs_diff(cell % SIDE) + (tile / SIDE).abs_diff(cell / SIDE);
            cell += 1;
        }
        tile += 1;
    }
    table
}

impl Puzzle {
    /// The board with these tiles; `None` unless each of 0 to 15 is there once.
    #[must_use]
    pub fn new(tiles: &[u8; 16]) -> Option<Self> {
        let (mut board, mut seen) = (0_u64, 0_u16);
        for (cell, tile) in (0_u8..).zip(tiles) {
            if *tile >= CELLS || seen >> tile & 1 == 1 {
                return None;
            }
            seen |= 1 << tile;
            board |= u64::from(*tile) << (4 * cell);
        }
        Some(Self(board))
    }

    /// The board in one word: tile of cell `c` in bits `4c` to `4c + 3`.
    #[must_use]
    pub const fn packed(self) -> u64 {
        self.0
    }

    /// The board that was packed into a word.
    #[must_use]
    pub const fn from_packed(word: u64) -> Self {
        Self(word)
    }

    /// The tile in a cell.
    #[must_use]
    pub const fn tile(self, cell: u8) -> u8 {
        (self.0 >> (4 * (cell % CELLS)) & 15).to_le_bytes()[0]
    }

    /// The cell of the blank.
    #[must_use]
    pub fn blank(self) -> u8 {
        (0..CELLS).find(|cell| self.tile(*cell) == 0).unwrap_or(0)
    }

    /// Moves that each tile needs at least, summed: no solution is shorter, and one move changes
    /// it by one, so a search that expands by it never has to open a board again.
    #[must_use]
    pub fn manhattan(self) -> u16 {
        (0..CELLS)
            .map(|cell| u16::from(DISTANCE[usize::from(self.tile(cell))][usize::from(cell)]))
            .sum()
    }

    /// The board after the blank moved from `blank` to the neighbouring cell `to`, and its
    /// distance, where that before is `manhattan`.
    #[must_use]
    pub fn slid(self, blank: u8, to: u8, manhattan: u16) -> (Self, u16) {
        let tile = self.tile(to);
        let word = u64::from(tile);
        let board = self.0 ^ (word << (4 * to)) ^ (word << (4 * blank));
        let of = DISTANCE[usize::from(tile)];
        let before = u16::from(of[usize::from(to)]);
        (Self(board), manhattan + u16::from(of[usize::from(blank)]) - before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOLVED: [u8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

    #[test]
    fn a_random_walk_keeps_board_blank_and_distance_consistent() {
        let mut board = Puzzle::new(&SOLVED).unwrap();
        let (mut blank, mut distance, mut word) = (0, 0, 1_u64);
        for step in 0..2000 {
            word = crate::number::mixed(word + 1);
            let way = Move::ALL[usize::from(word.to_le_bytes()[0]) % 4];
            let Some(to) = way.from_cell(blank) else { continue };
            let (next, far) = board.slid(blank, to, distance);
            assert_eq!(far.abs_diff(distance), 1, "step {step}");
            assert_eq!((next.blank(), next.manhattan()), (to, far));
            assert_eq!(next.slid(to, blank, far), (board, distance), "there and back");
            (board, blank, distance) = (next, to, far);
        }
        let mut tiles: [u8; 16] = core::array::from_fn(|c| board.tile(u8::try_from(c).unwrap()));
        assert_eq!(Puzzle::new(&tiles), Some(board));
        assert_eq!(Puzzle::from_packed(board.packed()), board);
        tiles.sort_unstable();
        assert_eq!(tiles, SOLVED);
    }

    #[test]
    fn boards_with_a_tile_twice_are_refused_and_edges_hold() {
        let mut twice = SOLVED;
        twice[3] = 4;
        assert_eq!(Puzzle::new(&twice), None);
        twice[3] = 16;
        assert_eq!(Puzzle::new(&twice), None);
        let ways = |cell| Move::ALL.iter().filter(|m| m.from_cell(cell).is_some()).count();
        let counts: Vec<usize> = (0..16).map(ways).collect();
        assert_eq!(counts, [2, 3, 3, 2, 3, 4, 4, 3, 3, 4, 4, 3, 2, 3, 3, 2]);
        assert_eq!(Puzzle::new(&SOLVED).unwrap().manhattan(), 0);
    }
}
