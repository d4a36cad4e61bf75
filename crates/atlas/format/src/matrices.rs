//! Looks up cells of the matrices: core to region, core to core.
//!
//! Matrices are few and queries of them rare, so they are walked from the first. Those of files before major version 3
//! have 32 bytes a cell, later ones are [packed](crate::packed). A cell that was not measured is `None`, never 0.

use crate::error::AtlasError;
use crate::format::{
    CELL_BYTES, CellRecord, MATRIX_BYTES, MATRIX_REGION, MATRIX_TRANSFER, MatrixHeader, NONE_U16,
    RegionMode, TransferKind, label_bytes,
};
use crate::model::narrow;
use crate::packed::{PackedCell, PackedMatrix, packed_matrices};

/// One measured quantity with its spread, nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Median of the samples.
    pub median_ns: f32,
    /// Lower end of the 95 % interval of the median.
    pub lo_ns: f32,
    /// Upper end of the 95 % interval of the median.
    pub hi_ns: f32,
    /// 5th percentile.
    pub p5_ns: f32,
    /// 95th percentile.
    pub p95_ns: f32,
    /// Values behind it.
    pub n: u32,
}

/// A line transfer between two cores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TransferSpread {
    /// Over the lines measured.
    pub spread: Spread,
    /// The fastest line, where known.
    pub best_line_ns: Option<f32>,
}

#[derive(Clone, Copy)]
struct MatrixView<'a> {
    head: MatrixHeader,
    rows: &'a [[u8; 2]],
    columns: &'a [[u8; 2]],
    cells: &'a [[u8; CELL_BYTES]],
}

/// A matrix as either section has it.
#[derive(Clone, Copy)]
enum Found<'a> {
    Packed(PackedMatrix<'a>),
    Plain(MatrixView<'a>),
}

impl<'a> Found<'a> {
    const fn labels(&self) -> (&'a [[u8; 2]], &'a [[u8; 2]]) {
        match self {
            Self::Packed(matrix) => (matrix.rows, matrix.columns),
            Self::Plain(matrix) => (matrix.rows, matrix.columns),
        }
    }

    fn cell(&self, row: usize, column: usize) -> Option<CellRecord> {
        match self {
            Self::Packed(matrix) => {
                let PackedCell { values, n } = matrix.cell(row, column)?;
                Some(CellRecord { values: values.map(narrow), n })
            }
            Self::Plain(matrix) => {
                let cell = matrix.cells.get(row * matrix.columns.len() + column)?;
                Some(CellRecord::from_bytes(cell))
            }
        }
    }
}

/// All matrices of an atlas.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Matrices<'a> {
    plain: &'a [u8],
    packed: &'a [u8],
}

impl<'a> Matrices<'a> {
    pub(crate) fn open(plain: &'a [u8], packed: &'a [u8]) -> Result<Self, AtlasError> {
        let wrong = |why| AtlasError::Inconsistent { part: "matrices", why };
        let mut rest = plain;
        while !rest.is_empty() {
            (_, rest) = split(rest).ok_or(wrong("one is cut short"))?;
        }
        let mut rest = packed;
        while !rest.is_empty() {
            let (matrix, after) =
                PackedMatrix::split(rest).ok_or(wrong("a packed one is cut short"))?;
            if !matrix.is_sorted() {
                return Err(wrong("exact cells are not sorted, or outside"));
            }
            rest = after;
        }
        Ok(Self { plain, packed })
    }

    /// Packed matrices, one by one; none in files before major version 3.
    pub(crate) fn packed(&self) -> impl Iterator<Item = PackedMatrix<'a>> + use<'a> {
        packed_matrices(self.packed)
    }

    pub(crate) fn region(&self, core: u16, region: u16, mode: RegionMode) -> Option<Spread> {
        let cell = self.cell(MATRIX_REGION, mode as u8, core, region)?;
        spread(&cell)
    }

    pub(crate) fn transfer(
        &self,
        owner: u16,
        asker: u16,
        kind: TransferKind,
    ) -> Option<TransferSpread> {
        let cell = self.cell(MATRIX_TRANSFER, kind as u8, owner, asker)?;
        let best = cell.values[5];
        Some(TransferSpread {
            spread: spread(&cell)?,
            best_line_ns: (!best.is_nan()).then_some(best),
        })
    }

    /// The lowest latency of a region from `core`.
    pub(crate) fn nearest_region(&self, core: u16, mode: RegionMode) -> Option<Spread> {
        let matrix = self.matrix(MATRIX_REGION, mode as u8)?;
        let (rows, columns) = matrix.labels();
        let row = rows.iter().position(|id| *id == core.to_le_bytes())?;
        let known = (0..columns.len()).filter_map(|column| spread(&matrix.cell(row, column)?));
        known.min_by(|a, b| a.median_ns.total_cmp(&b.median_ns))
    }

    /// The cell of the first matrix of this kind and tag.
    fn cell(&self, kind: u8, tag: u8, row: u16, column: u16) -> Option<CellRecord> {
        if row == NONE_U16 || column == NONE_U16 {
            return None;
        }
        let matrix = self.matrix(kind, tag)?;
        let (rows, columns) = matrix.labels();
        let row = rows.iter().position(|id| *id == row.to_le_bytes())?;
        let column = columns.iter().position(|id| *id == column.to_le_bytes())?;
        matrix.cell(row, column)
    }

    /// The first matrix of this kind and tag.
    fn matrix(&self, kind: u8, tag: u8) -> Option<Found<'a>> {
        let packed = self.packed().find(|found| (found.head.kind, found.head.tag) == (kind, tag));
        packed.map(Found::Packed).or_else(|| self.plain(kind, tag).map(Found::Plain))
    }

    fn plain(&self, kind: u8, tag: u8) -> Option<MatrixView<'a>> {
        let mut rest = self.plain;
        loop {
            let (matrix, after) = split(rest)?;
            rest = after;
            if (matrix.head.kind, matrix.head.tag) == (kind, tag) {
                return Some(matrix);
            }
        }
    }
}

/// Takes one matrix off the front.
fn split(bytes: &[u8]) -> Option<(MatrixView<'_>, &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<MATRIX_BYTES>()?;
    let head = MatrixHeader::from_bytes(head);
    let (rows, columns) = (usize::from(head.rows), usize::from(head.columns));
    let (labels, rest) = rest.split_at_checked(label_bytes(rows + columns))?;
    let (rows_at, rest_of_labels) = labels.as_chunks::<2>().0.split_at_checked(rows)?;
    let cell_bytes = rows.checked_mul(columns)?.checked_mul(CELL_BYTES)?;
    let (cells, rest) = rest.split_at_checked(cell_bytes)?;
    let columns = rest_of_labels.get(..columns)?;
    Some((MatrixView { head, rows: rows_at, columns, cells: cells.as_chunks().0 }, rest))
}

/// The spread of a cell; `None` where it is missing.
pub(crate) fn spread(cell: &CellRecord) -> Option<Spread> {
    let [median_ns, lo_ns, hi_ns, p5_ns, p95_ns, _] = cell.values;
    let known = !median_ns.is_nan();
    known.then_some(Spread { median_ns, lo_ns, hi_ns, p5_ns, p95_ns, n: cell.n })
}
