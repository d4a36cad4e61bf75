//! Reads packed matrices: any cell by its row and column, without setting aside memory.
//!
//! [`Matrices`](crate::matrices::Matrices) answers queries by it; a program that loads a whole atlas takes all cells.

use crate::format::{EXACT_BYTES, ExactRecord, PACKED_BYTES, Packed, PackedHeader, label_bytes};

/// What is known of one cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PackedCell {
    /// Median, lower and upper end of its interval, 5th and 95th percentile, fastest line. NaN where there is none.
    pub values: [f64; 6],
    /// Values behind it.
    pub n: u32,
}

/// One packed matrix.
#[derive(Clone, Copy, Debug)]
pub struct PackedMatrix<'a> {
    pub(crate) head: PackedHeader,
    pub(crate) rows: &'a [[u8; 2]],
    pub(crate) columns: &'a [[u8; 2]],
    counts: &'a [[u8; 4]],
    cells: &'a [u8],
    exact: &'a [[u8; EXACT_BYTES]],
}

impl<'a> PackedMatrix<'a> {
    /// Takes one off the front. `None` where it is cut short, or says of itself what cannot be.
    pub(crate) fn split(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (head, rest) = bytes.split_first_chunk::<PACKED_BYTES>()?;
        let head = PackedHeader::from_bytes(head);
        let packed = head.has(PackedHeader::PACKED);
        if head.counts > PackedHeader::COUNTS_MAX || packed && head.counts == 0 {
            return None;
        }
        if !packed && head.cells()? > PackedHeader::UNPACKED_MAX {
            return None;
        }
        let (rows, columns) = (usize::from(head.rows), usize::from(head.columns));
        let (labels, rest) = rest.split_at_checked(label_bytes(rows + columns))?;
        let (rows, columns_on) = labels.as_chunks::<2>().0.split_at_checked(rows)?;
        let (counts, rest) = rest.split_at_checked(padded(4 * usize::from(head.counts))?)?;
        let (cells, rest) = rest.split_at_checked(padded(head.packed_bytes()?)?)?;
        let exact = usize::try_from(head.exact).ok()?.checked_mul(EXACT_BYTES)?;
        let (exact, rest) = rest.split_at_checked(exact)?;
        let matrix = Self {
            head,
            rows,
            columns: columns_on.get(..columns)?,
            counts: counts.as_chunks().0.get(..usize::from(head.counts))?,
            cells,
            exact: exact.as_chunks().0,
        };
        Some((matrix, rest))
    }

    /// Whether exact cells are sorted and inside, as looking them up wants it.
    pub(crate) fn is_sorted(&self) -> bool {
        let place = ExactRecord::place_of;
        let inside = self
            .exact
            .last()
            .is_none_or(|last| self.head.cells().is_some_and(|cells| place(last) < cells));
        inside && self.exact.is_sorted_by(|a, b| place(a) < place(b))
    }

    /// How many rows it has.
    #[must_use]
    pub const fn rows(&self) -> usize {
        self.rows.len()
    }

    /// How many columns it has.
    #[must_use]
    pub const fn columns(&self) -> usize {
        self.columns.len()
    }

    /// Whether fastest lines were written down, if not for each cell.
    #[must_use]
    pub const fn has_best(&self) -> bool {
        self.head.has(PackedHeader::WITH_BEST)
    }

    /// A cell by its row and column; `None` where nothing is known of it.
    #[must_use]
    pub fn cell(&self, row: usize, column: usize) -> Option<PackedCell> {
        if row >= self.rows() || column >= self.columns() {
            return None;
        }
        let place = self.head.place(row, column);
        if !self.head.has(PackedHeader::PACKED) {
            return self.exact_cell(place);
        }
        let word = self.word(place)?;
        match self.head.scale.unpack(word) {
            Packed::Missing => None,
            Packed::Exact => self.exact_cell(place),
            Packed::Values(values) => {
                let count =
                    self.counts.get(usize::try_from(word >> crate::format::CELL_BITS).ok()?)?;
                Some(PackedCell { values, n: u32::from_le_bytes(*count) })
            }
        }
    }

    /// The bits of a cell and of its count, nothing above.
    fn word(&self, place: usize) -> Option<u64> {
        let width = self.head.width();
        let first = place.checked_mul(width as usize)?;
        let bytes = self.cells.get(first / 8..)?;
        let mut eight = [0; 8];
        for (to, from) in eight.iter_mut().zip(bytes) {
            *to = *from;
        }
        // At most 7 + 51 bits are wanted of the 64.
        let word = u64::from_le_bytes(eight) >> (first % 8);
        Some(word & ((1 << width) - 1))
    }

    fn exact_cell(&self, place: usize) -> Option<PackedCell> {
        let at = self.exact.binary_search_by_key(&place, ExactRecord::place_of).ok()?;
        let ExactRecord { values, n, .. } = ExactRecord::from_bytes(self.exact.get(at)?);
        Some(PackedCell { values, n })
    }
}

/// A length with what pads it.
fn padded(bytes: usize) -> Option<usize> {
    bytes.checked_next_multiple_of(crate::format::ALIGN)
}

/// All packed matrices of a section, one after another.
pub(crate) fn packed_matrices(mut rest: &[u8]) -> impl Iterator<Item = PackedMatrix<'_>> {
    core::iter::from_fn(move || {
        let (matrix, after) = PackedMatrix::split(rest)?;
        rest = after;
        Some(matrix)
    })
}
