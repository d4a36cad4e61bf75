//! Matrices as packed sections have them, and back.
//!
//! What few cores measured is kept with all its digits; of many cores each cell is packed, as nearly as
//! [`Scale::pack`] promises, and what would not come back so near is kept exactly.

use crate::contents::{Cell, Contents, Matrix};
use crate::convert::number_of;
use crate::error::{EncodeError, LoadError};
use isochrone_atlas::format::{
    DISTANCE_OCTAVES, ExactRecord, MATRIX_REGION, MATRIX_TRANSFER, MEDIAN_OCTAVES, PackedHeader,
    RegionMode, Scale, TransferKind, distances, label_bytes,
};
use isochrone_atlas::{Atlas, PackedMatrix};

/// Up to this many cells in all, each is kept with all its digits: four states of 64 x 64 pairs, and 16 regions of as
/// many cores in four modes. They take about a megabyte.
pub(crate) const EXACT_CELLS: usize = 4 * 64 * 64 + 4 * 64 * 16;
/// One distance in this many may be beyond the octaves of its matrix; it makes its cell an exact one.
const BEYOND: usize = 256;

/// One matrix of the contents with what is known beside its cells.
struct Source<'c> {
    kind: u8,
    tag: u8,
    matrix: &'c Matrix,
    best: &'c [Option<f64>],
}

/// All matrices, in the order in which they are stored.
fn sources(contents: &Contents) -> Vec<Source<'_>> {
    let regions = contents.regions.iter().map(|map| {
        let known = RegionMode::ALL.into_iter().find(|mode| mode.as_str() == map.mode);
        let tag = known.map_or(PackedHeader::NO_TAG, |mode| mode as u8);
        Source { kind: MATRIX_REGION, tag, matrix: &map.latency_ns, best: &[] }
    });
    let transfers = contents.transfers.iter().map(|map| {
        let known = TransferKind::ALL.into_iter().find(|kind| kind.as_str() == map.state);
        let tag = known.map_or(PackedHeader::NO_TAG, |kind| kind as u8);
        let best = &map.best_line_ns;
        Source { kind: MATRIX_TRANSFER, tag, matrix: &map.latency_ns, best }
    });
    regions.chain(transfers).collect()
}

/// The section of all matrices.
pub(crate) fn section(contents: &Contents) -> Result<Vec<u8>, EncodeError> {
    let sources = sources(contents);
    let cells: usize = sources.iter().map(|source| source.matrix.cells.len()).sum();
    let mut bytes = Vec::new();
    for source in &sources {
        source.write(cells > EXACT_CELLS, &mut bytes)?;
    }
    Ok(bytes)
}

/// A cell as it is stored: six values, NaN where there is none, and how many values stand behind it.
type Stored = ([f64; 6], u32);

impl Source<'_> {
    fn write(&self, packed: bool, bytes: &mut Vec<u8>) -> Result<(), EncodeError> {
        let matrix = self.matrix;
        let counts = [matrix.rows.len(), matrix.columns.len()].map(u16::try_from);
        let [Ok(rows), Ok(columns)] = counts else { return Err(EncodeError::TooLarge("matrix")) };
        self.check()?;
        let symmetric = self.is_symmetric();
        let at: Vec<(usize, usize)> = self.stored_at(symmetric).collect();
        let cells: Vec<Option<Stored>> =
            at.iter().map(|(row, column)| self.at(*row, *column)).collect();
        let counts = if packed { counts_of(&cells) } else { Vec::new() };
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        let mut head = PackedHeader {
            kind: self.kind,
            tag: self.tag,
            rows,
            columns,
            flags: flag(symmetric, PackedHeader::SYMMETRIC)
                | flag(!self.best.is_empty(), PackedHeader::WITH_BEST)
                | flag(packed, PackedHeader::PACKED),
            counts: u8::try_from(counts.len()).map_err(|_| EncodeError::TooLarge("matrix"))?,
            scale: if packed { scale_of(&cells) } else { Scale::default() },
            exact: 0,
        };
        let mut bits = Bits::default();
        let mut exact = Vec::new();
        for ((row, column), cell) in at.into_iter().zip(&cells) {
            let word = match cell {
                _ if !packed => Scale::EXACT,
                None => Scale::MISSING,
                Some((values, n)) => head.scale.pack(values).map_or(Scale::EXACT, |word| {
                    let count = counts.partition_point(|count| count <= n).saturating_sub(1);
                    word | (count as u64) << isochrone_atlas::format::CELL_BITS
                }),
            };
            if let (Scale::EXACT, Some((values, n))) = (word, cell) {
                let place = head.place(row, column);
                let place = u32::try_from(place).map_err(|_| EncodeError::TooLarge("matrix"))?;
                exact.extend(ExactRecord { place, n: *n, values: *values }.to_bytes());
                head.exact += 1;
            }
            if packed {
                bits.push(word, head.width());
            }
        }
        bytes.extend(head.to_bytes());
        self.write_labels(bytes);
        padded(bytes, counts.iter().flat_map(|count| count.to_le_bytes()));
        padded(bytes, bits.bytes());
        bytes.extend(exact);
        Ok(())
    }

    /// Lists are as long as rows and columns say, and hold numbers.
    fn check(&self) -> Result<(), EncodeError> {
        let matrix = self.matrix;
        let expected = matrix.rows.len() * matrix.columns.len();
        let length = |what: String, found: usize| match found == expected {
            true => Ok(()),
            false => Err(EncodeError::Length { what, found, expected }),
        };
        length(format!("matrix \"{}\"", matrix.what), matrix.cells.len())?;
        if !self.best.is_empty() {
            length(format!("best lines of \"{}\"", matrix.what), self.best.len())?;
        }
        let finite = |cell: &Cell| {
            [cell.median, cell.lo, cell.hi, cell.p5, cell.p95].iter().all(|value| value.is_finite())
        };
        let known = matrix.cells.iter().flatten().all(finite);
        if known && self.best.iter().flatten().all(|value| value.is_finite()) {
            return Ok(());
        }
        Err(EncodeError::NotFinite(format!("a cell of \"{}\"", matrix.what)))
    }

    fn at(&self, row: usize, column: usize) -> Option<Stored> {
        let at = row * self.matrix.columns.len() + column;
        let best = self.best.get(at).copied().flatten();
        match self.matrix.cells[at] {
            Some(cell) => {
                let Cell { median, lo, hi, p5, p95, n } = cell;
                Some(([median, lo, hi, p5, p95, best.unwrap_or(f64::NAN)], n))
            }
            None => Some(([f64::NAN, f64::NAN, f64::NAN, f64::NAN, f64::NAN, best?], 0)),
        }
    }

    /// Whether both directions of each pair say the same, digit by digit.
    fn is_symmetric(&self) -> bool {
        let Matrix { rows, columns, .. } = self.matrix;
        let alike = |a: Option<Stored>, b: Option<Stored>| match (a, b) {
            (Some((a, n)), Some((b, m))) => n == m && a.map(f64::to_bits) == b.map(f64::to_bits),
            (None, None) => true,
            _ => false,
        };
        let mut pairs = (0..rows.len()).flat_map(|a| (0..a).map(move |b| (a, b)));
        rows == columns && pairs.all(|(a, b)| alike(self.at(a, b), self.at(b, a)))
    }

    /// Rows and columns of the cells that are stored, in their order.
    fn stored_at(&self, triangle: bool) -> impl Iterator<Item = (usize, usize)> + use<> {
        let (rows, columns) = (self.matrix.rows.len(), self.matrix.columns.len());
        (0..rows).flat_map(move |row| {
            (if triangle { row } else { 0 }..columns).map(move |column| (row, column))
        })
    }

    fn write_labels(&self, bytes: &mut Vec<u8>) {
        let Matrix { rows, columns, .. } = self.matrix;
        let end = bytes.len() + label_bytes(rows.len() + columns.len());
        let labels = rows.iter().chain(columns);
        bytes.extend(labels.flat_map(|label| number_of(label).to_le_bytes()));
        bytes.resize(end, 0);
    }
}

fn padded(bytes: &mut Vec<u8>, more: impl IntoIterator<Item = u8>) {
    bytes.extend(more);
    bytes.resize(bytes.len().next_multiple_of(isochrone_atlas::format::ALIGN), 0);
}

/// The different counts of values, ascending; of more than a file names, some of them with the least and the largest
/// among them. A count that is not named becomes the next lower one.
fn counts_of(cells: &[Option<Stored>]) -> Vec<u32> {
    let mut counts: Vec<u32> = cells.iter().flatten().map(|(_, n)| *n).collect();
    counts.sort_unstable();
    counts.dedup();
    let most = usize::from(PackedHeader::COUNTS_MAX);
    match counts.len() {
        0 => vec![0],
        all if all <= most => counts,
        all => (0..most).map(|nth| counts[nth * (all - 1) / (most - 1)]).collect(),
    }
}

/// The octaves that hold what the cells say, but for the few that lie far out.
fn scale_of(cells: &[Option<Stored>]) -> Scale {
    let known =
        || cells.iter().flatten().map(|(values, _)| values).filter(|values| values[0] > 0.0);
    let mut octaves = [0; 6];
    let medians = sorted(known().map(|values| values[0]));
    let least = medians.first().map_or(0, |least| octave(*least));
    octaves[0] =
        least.max(high(&medians).map_or(least, |high| high.saturating_sub(MEDIAN_OCTAVES - 1)));
    let spreads: Vec<[f64; 5]> = known().map(|values| distances(values[0], values)).collect();
    for (nth, slot) in octaves.iter_mut().skip(1).enumerate() {
        let field =
            sorted(spreads.iter().map(|spread| spread[nth]).filter(|distance| *distance > 0.0));
        *slot = high(&field).unwrap_or(0).saturating_sub(DISTANCE_OCTAVES - 1);
    }
    Scale { octaves }
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values
}

/// The octave that all but the farthest few lie in or below.
fn high(ascending: &[f64]) -> Option<i8> {
    let last = ascending.len().checked_sub(1 + ascending.len() / BEYOND)?;
    // A number that is rounded up may enter the next octave.
    Some(octave(ascending[last] * 1.0625))
}

/// The exponent of a positive number.
fn octave(value: f64) -> i8 {
    let exponent = i16::try_from(value.to_bits() >> 52 & 0x7ff).unwrap_or(0) - 1023;
    i8::try_from(exponent).unwrap_or(if exponent < 0 { i8::MIN } else { i8::MAX })
}

/// Numbers of some bits each, one behind the other.
#[derive(Default)]
struct Bits {
    done: Vec<u8>,
    open: u128,
    used: u32,
}

impl Bits {
    fn push(&mut self, word: u64, width: u32) {
        let masked = u128::from(word) & ((1 << width) - 1);
        self.open |= masked << self.used;
        self.used += width;
        while self.used >= 8 {
            self.done.push(self.open.to_le_bytes()[0]);
            self.open >>= 8;
            self.used -= 8;
        }
    }

    fn bytes(mut self) -> Vec<u8> {
        if self.used > 0 {
            self.done.push(self.open.to_le_bytes()[0]);
        }
        self.done
    }
}

/// Gives matrices the cells that the description has no more. Contents of a file before major version 3 have theirs.
pub(crate) fn fill(contents: &mut Contents, atlas: &Atlas<'_>) -> Result<(), LoadError> {
    let stored: Vec<PackedMatrix<'_>> = atlas.packed_matrices().collect();
    if stored.is_empty() {
        return Ok(());
    }
    if stored.len() != contents.regions.len() + contents.transfers.len() {
        return Err(LoadError::Inconsistent("not as many matrices as the description names"));
    }
    let (regions, transfers) = stored.split_at(contents.regions.len());
    for (map, found) in contents.regions.iter_mut().zip(regions) {
        take(&mut map.latency_ns, found, None)?;
    }
    for (map, found) in contents.transfers.iter_mut().zip(transfers) {
        take(&mut map.latency_ns, found, Some(&mut map.best_line_ns))?;
    }
    Ok(())
}

fn take(
    matrix: &mut Matrix,
    found: &PackedMatrix<'_>,
    best: Option<&mut Vec<Option<f64>>>,
) -> Result<(), LoadError> {
    if (matrix.rows.len(), matrix.columns.len()) != (found.rows(), found.columns()) {
        return Err(LoadError::Inconsistent("a matrix is not as large as the description says"));
    }
    let all = (0..found.rows()).flat_map(|row| (0..found.columns()).map(move |at| (row, at)));
    let number = |value: f64| (!value.is_nan()).then_some(value);
    // Of 576 cores each list has megabytes: none is made in between, and none grows.
    let count = found.rows() * found.columns();
    let (mut cells, mut fastest) = (Vec::with_capacity(count), best.filter(|_| found.has_best()));
    if let Some(best) = &mut fastest {
        **best = Vec::with_capacity(count);
    }
    for (row, column) in all {
        let cell = found.cell(row, column);
        let [median, lo, hi, p5, p95, line] = cell.map_or([f64::NAN; 6], |cell| cell.values);
        let n = cell.map_or(0, |cell| cell.n);
        cells.push(number(median).map(|median| Cell { median, lo, hi, p5, p95, n }));
        if let Some(best) = &mut fastest {
            best.push(number(line));
        }
    }
    matrix.cells = cells;
    Ok(())
}
