//! Matrices whose cells take 47 to 51 bits: their head, their cells, and the cells that are kept with all digits.
//! Encoding and decoding stand side by side, so that the writer can ask what a reader will see.
//!
//! A packed number is the upper bits of a double whose exponent is counted from the least octave of its field in this
//! matrix; nothing needs a logarithm. The median stands for itself, the other five as their distances from it.

use super::{EXACT_BYTES, HISTOGRAM_BYTES, PACKED_BYTES, Put, Take};

/// Head of a packed matrix. Row numbers and column numbers (`u16` each, padded to eight bytes), counts of values
/// (`u32` each, padded), cells (padded) and exact cells follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackedHeader {
    /// As in [`super::MatrixHeader::kind`].
    pub kind: u8,
    /// As in [`super::MatrixHeader::tag`]; [`PackedHeader::NO_TAG`] where the format has no number for it.
    pub tag: u8,
    /// How many rows it has.
    pub rows: u16,
    /// How many columns it has.
    pub columns: u16,
    /// [`PackedHeader::SYMMETRIC`], [`PackedHeader::WITH_BEST`], [`PackedHeader::PACKED`].
    pub flags: u8,
    /// How many different counts of values there are, at most [`PackedHeader::COUNTS_MAX`].
    pub counts: u8,
    /// Least octave of each field.
    pub scale: Scale,
    /// How many cells are kept with all digits.
    pub exact: u32,
}

impl PackedHeader {
    /// A matrix that only its place in the description names.
    pub const NO_TAG: u8 = u8::MAX;
    /// Both directions of a pair are one cell: the upper triangle is stored, with the diagonal.
    pub const SYMMETRIC: u8 = 1;
    /// Fastest lines are known of the matrix, if not of each cell.
    pub const WITH_BEST: u8 = 2;
    /// There are packed cells. Without this flag all that is known is among the exact ones.
    pub const PACKED: u8 = 4;
    /// Most counts of values.
    pub const COUNTS_MAX: u8 = 16;
    /// Most cells of a matrix without packed ones: a bound for what a reader sets aside for a few bytes.
    pub const UNPACKED_MAX: usize = 1 << 20;

    /// As bytes.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; PACKED_BYTES] {
        Put::new()
            .put([self.kind, self.tag])
            .put(self.rows.to_le_bytes())
            .put(self.columns.to_le_bytes())
            .put([self.flags, self.counts])
            .put(self.scale.octaves.map(|octave| octave.to_le_bytes()[0]))
            .put([0; 2])
            .put(self.exact.to_le_bytes())
            .put([0; 4])
            .end()
    }

    /// From bytes, unchecked.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; PACKED_BYTES]) -> Self {
        let mut take = Take(bytes);
        let (kind, tag, rows, columns) = (take.u8(), take.u8(), take.u16(), take.u16());
        let (flags, counts) = (take.u8(), take.u8());
        let octaves = take.take::<6>().map(|octave| i8::from_le_bytes([octave]));
        take.u16();
        let exact = take.u32();
        Self { kind, tag, rows, columns, flags, counts, scale: Scale { octaves }, exact }
    }

    /// Whether a flag is set.
    #[must_use]
    pub const fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Cells that are stored. `None` for a symmetric matrix that is not square.
    #[must_use]
    pub fn cells(&self) -> Option<usize> {
        let (rows, columns) = (usize::from(self.rows), usize::from(self.columns));
        match (self.has(Self::SYMMETRIC), rows == columns) {
            (false, _) => rows.checked_mul(columns),
            (true, true) => Some(rows * (rows + 1) / 2),
            (true, false) => None,
        }
    }

    /// The place of a cell among those that are stored.
    #[must_use]
    pub fn place(&self, row: usize, column: usize) -> usize {
        if self.has(Self::SYMMETRIC) {
            let (low, high) = (row.min(column), row.max(column));
            // Rows above have one cell less each: n + (n - 1) + ...
            (low * (2 * usize::from(self.rows) + 1 - low)) / 2 + (high - low)
        } else {
            row * usize::from(self.columns) + column
        }
    }

    /// Bits of a packed cell with its count of values.
    #[must_use]
    pub const fn width(&self) -> u32 {
        let last = self.counts.saturating_sub(1);
        CELL_BITS + (u8::BITS - last.leading_zeros())
    }

    /// Bytes of all packed cells, not padded; 0 where there are none. `None` where that is more than can be counted.
    #[must_use]
    pub fn packed_bytes(&self) -> Option<usize> {
        if !self.has(Self::PACKED) {
            return Some(0);
        }
        let bits = self.cells()?.checked_mul(self.width() as usize)?;
        Some(bits.div_ceil(8))
    }
}

/// How a number is packed: bits that count octaves, and bits that divide an octave.
#[derive(Clone, Copy)]
struct Field {
    octave_bits: u32,
    fraction_bits: u32,
}

impl Field {
    const fn bits(self) -> u32 {
        self.octave_bits + self.fraction_bits
    }

    /// All ones: no number has this code.
    const fn reserved(self) -> u64 {
        (1 << self.bits()) - 1
    }

    /// The code of a positive number; codes of numbers begin with 1. `None` beyond the last octave.
    fn code(self, value: f64, least: i8, rounding: Rounding) -> Option<u64> {
        let shift = f64::MANTISSA_DIGITS - 1 - self.fraction_bits;
        let more = match rounding {
            Rounding::Nearest => 1 << (shift - 1),
            Rounding::Up => (1 << shift) - 1,
        };
        let upper = value.to_bits().checked_add(more)? >> shift;
        let code = upper.saturating_sub(self.first(least)) + 1;
        (code < self.reserved()).then_some(code)
    }

    /// The number of a code that is neither 0 nor reserved.
    fn value(self, code: u64, least: i8) -> f64 {
        let shift = f64::MANTISSA_DIGITS - 1 - self.fraction_bits;
        f64::from_bits((self.first(least) + code - 1) << shift)
    }

    /// The upper bits of the least number.
    fn first(self, least: i8) -> u64 {
        // The bias of a double is 1023 (IEEE 754-2019, table 3.5); an `i8` never reaches below 0.
        let exponent = (i16::from(least) + 1023).unsigned_abs();
        u64::from(exponent) << self.fraction_bits
    }
}

#[derive(Clone, Copy)]
enum Rounding {
    Nearest,
    Up,
}

/// The median: within 2^-12, 16 octaves.
const MEDIAN: Field = Field { octave_bits: 4, fraction_bits: 11 };
/// Distances, over the median: ends of the interval (never nearer than they were), percentiles, fastest line.
const DISTANCES: [Field; 5] = [
    Field { octave_bits: 3, fraction_bits: 4 },
    Field { octave_bits: 3, fraction_bits: 4 },
    Field { octave_bits: 3, fraction_bits: 3 },
    Field { octave_bits: 3, fraction_bits: 3 },
    Field { octave_bits: 3, fraction_bits: 3 },
];
/// Which way each distance goes from the median.
const SIGNS: [f64; 5] = [-1.0, 1.0, -1.0, 1.0, -1.0];
/// The distances that are ends of the interval.
const ENDS: usize = 2;
/// Roundings of doubles, over the number itself. A distance that is longer by this is the same, so that what was packed
/// once is packed again as it is.
const ROUNDING: f64 = 1e-12;
/// The distance of the fastest line, which may be missing.
const BEST: usize = 4;
/// Octaves that distances span.
pub const DISTANCE_OCTAVES: i8 = 8;
/// Octaves that medians span.
pub const MEDIAN_OCTAVES: i8 = 16;

/// Bits of a cell before its count of values.
pub const CELL_BITS: u32 = {
    let mut bits = MEDIAN.bits();
    let mut at = 0;
    while at < DISTANCES.len() {
        bits += DISTANCES[at].bits();
        at += 1;
    }
    bits
};

/// What a packed cell says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Packed {
    /// Nothing was measured.
    Missing,
    /// It is among the exact cells.
    Exact,
    /// Median, lower and upper end of its interval, 5th and 95th percentile, fastest line (NaN where there is none).
    Values([f64; 6]),
}

/// Least octaves of the six fields of a matrix: median, and the distances of the five others over it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scale {
    /// Exponents of two.
    pub octaves: [i8; 6],
}

/// Distances of an interval's ends, the percentiles and the fastest line from a median, over it; NaN for no line.
#[must_use]
pub fn distances(median: f64, values: &[f64; 6]) -> [f64; 5] {
    let [_, others @ ..] = values;
    let mut distances = [f64::NAN; 5];
    for ((distance, value), sign) in distances.iter_mut().zip(others).zip(SIGNS) {
        *distance = sign * (value - median) / median;
    }
    distances
}

impl Scale {
    /// The bits of a cell that was not measured.
    pub const MISSING: u64 = 0;
    /// The bits of a cell that is among the exact ones.
    pub const EXACT: u64 = MEDIAN.reserved();

    /// The bits of a cell whose values are numbers, the fastest line perhaps none. `None` where they would not come
    /// back as near as is promised: the median within 2^-12 of itself; the interval never narrower (roundings of
    /// doubles aside), and an end no further out than a sixteenth of its distance from the median; percentiles and
    /// fastest line within a sixteenth of theirs. To each, 2^-11 of the median and the least distance of the field
    /// may come.
    #[must_use]
    pub fn pack(&self, values: &[f64; 6]) -> Option<u64> {
        let [least, least_of_distances @ ..] = &self.octaves;
        let usable = values[0] > 0.0 && values.iter().take(5).all(|value| value.is_finite());
        let code =
            if usable { MEDIAN.code(values[0], *least, Rounding::Nearest)? } else { return None };
        let median = MEDIAN.value(code, *least);
        let (mut word, mut at) = (code, MEDIAN.bits());
        let distances = distances(median, values);
        for (nth, (distance, field)) in distances.into_iter().zip(DISTANCES).enumerate() {
            let code = if distance.is_nan() && nth == BEST {
                field.reserved()
            } else if distance > 0.0 {
                let (distance, rounding) = match nth < ENDS {
                    true => (distance * (1.0 - ROUNDING), Rounding::Up),
                    false => (distance, Rounding::Nearest),
                };
                field.code(distance, least_of_distances[nth], rounding)?
            } else {
                0
            };
            word |= code << at;
            at += field.bits();
        }
        self.keeps(values, word).then_some(word)
    }

    /// What bits say; those of the count of values are ignored.
    #[must_use]
    pub fn unpack(&self, word: u64) -> Packed {
        let [least, least_of_distances @ ..] = &self.octaves;
        let median = match word & MEDIAN.reserved() {
            Self::MISSING => return Packed::Missing,
            Self::EXACT => return Packed::Exact,
            code => MEDIAN.value(code, *least),
        };
        let (mut values, mut at) = ([median; 6], MEDIAN.bits());
        let fields = DISTANCES.into_iter().zip(SIGNS).zip(least_of_distances);
        for (value, ((field, sign), least)) in values.iter_mut().skip(1).zip(fields) {
            let code = word >> at & field.reserved();
            at += field.bits();
            if code == field.reserved() {
                *value = f64::NAN;
            } else if code > 0 {
                *value = median + sign * (median * field.value(code, *least));
            }
        }
        Packed::Values(values)
    }

    /// Whether bits say what values do, as nearly as [`Self::pack`] promises.
    fn keeps(&self, values: &[f64; 6], word: u64) -> bool {
        let Packed::Values(seen) = self.unpack(word) else { return false };
        let [median, lo, hi, ..] = *values;
        let rounding = median * ROUNDING;
        // A median below the least octave would come back as that octave.
        let is_near = (seen[0] - median).abs() <= median / 4096.0;
        let outward = seen[1] <= lo + rounding && seen[2] >= hi - rounding;
        let fine = median / 2048.0;
        let near = |nth: usize| {
            let least = DISTANCES[nth].value(1, self.octaves[nth + 1]) * median;
            let (value, seen) = (values[nth + 1], seen[nth + 1]);
            let moved = (seen - value).abs();
            moved <= (value - median).abs() / 16.0 + least + fine || seen.is_nan() && value.is_nan()
        };
        is_near && outward && (0..DISTANCES.len()).all(near)
    }
}

/// A cell with all its digits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExactRecord {
    /// Its place among the stored cells.
    pub place: u32,
    /// Values behind it.
    pub n: u32,
    /// As [`Packed::Values`]; a median that is NaN is a cell that was not measured.
    pub values: [f64; 6],
}

impl ExactRecord {
    /// As bytes.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; EXACT_BYTES] {
        let put = Put::new().put(self.place.to_le_bytes()).put(self.n.to_le_bytes());
        self.values.iter().fold(put, |put, value| put.put(value.to_le_bytes())).end()
    }

    /// From bytes, unchecked.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; EXACT_BYTES]) -> Self {
        let mut take = Take(bytes);
        let (place, n) = (take.u32(), take.u32());
        let mut values = [0.0; 6];
        for value in &mut values {
            *value = f64::from_le_bytes(take.take());
        }
        Self { place, n, values }
    }

    /// Its place among the stored cells, by which records are sorted.
    #[must_use]
    pub fn place_of(bytes: &[u8; EXACT_BYTES]) -> usize {
        usize::try_from(Take(bytes).u32()).unwrap_or(usize::MAX)
    }
}

/// Head of the latencies of single lines that one core saw at one level; `f32` cycles follow, padded to eight bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistogramHeader {
    /// The level, as [`super::level_tag`].
    pub level: u8,
    /// The core's place in the list of cores.
    pub place: u16,
    /// How many latencies.
    pub lines: u32,
}

impl HistogramHeader {
    /// As bytes.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; HISTOGRAM_BYTES] {
        let put = Put::new().put([self.level, 0]).put(self.place.to_le_bytes());
        put.put(self.lines.to_le_bytes()).end()
    }

    /// From bytes, unchecked.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; HISTOGRAM_BYTES]) -> Self {
        let mut take = Take(bytes);
        let [level, _] = take.take();
        Self { level, place: take.u16(), lines: take.u32() }
    }
}

#[cfg(test)]
mod tests;
