//! The bytes of an atlas file: constants and fixed records, each with its encoding and decoding
//! side by side. `docs/method/atlas-format.md` describes the same in words.
//!
//! Everything is little-endian and of fixed width; sections start at multiples of eight. This
//! file knows layouts only: `reader` validates, `isochrone-atlas-store` writes.

mod costs;
mod packed;
mod records;

pub use costs::{
    BandwidthHeader, FitRecord, GradeRecord, GroupsHeader, MeanRecord, TermRecord, TermTag,
};
pub use packed::{
    CELL_BITS, DISTANCE_OCTAVES, ExactRecord, HistogramHeader, MEDIAN_OCTAVES, Packed,
    PackedHeader, Scale, distances,
};
pub use records::{
    CellRecord, CodeRecord, FormTag, IndexKind, LevelRecord, LinesRecord, MATRIX_REGION,
    MATRIX_TRANSFER, MatrixHeader, PageIndexHeader, PenaltiesRecord, PlaneHeader, PlaneKind,
    RegionMode, TransferKind, WordsHeader, level_tag,
};

/// First bytes of every atlas. Like PNG's, they break when a transfer converts line ends.
pub const MAGIC: [u8; 8] = [0x89, b'I', b'S', b'O', b'\r', b'\n', 0x1a, b'\n'];
/// Reads as this number only in the byte order of the file.
pub const BYTE_ORDER: u32 = 0x0102_0304;
/// Layouts with a later major version cannot be read. 2: codes of two bytes. 3: packed matrices in place of plain ones,
/// histograms, packed descriptions; what sections have, the description has no more.
pub const MAJOR: u16 = 3;
/// The first major version that is read.
pub const MAJOR_FIRST: u16 = 2;
/// Minor versions add sections that older readers skip. Of version 2: 1: fits, terms, bandwidths, means, groups. 2:
/// grades.
pub const MINOR: u16 = 0;
/// Size of the header.
pub const HEADER_BYTES: usize = 64;
/// Size of an entry of the section table.
pub const SECTION_BYTES: usize = 24;
/// Most sections a file may have; a bound for the reader's loops.
pub const MAX_SECTIONS: u32 = 64;
/// Where the checksum stands; it covers every other byte of the file.
pub const CHECKSUM_AT: core::ops::Range<usize> = 24..28;
/// Set when the run that made the atlas was not interrupted.
pub const FLAG_COMPLETE: u32 = 1;
/// Set when the atlas was measured, clear when it was simulated.
pub const FLAG_MEASURED: u32 = 2;
/// Alignment of sections.
pub const ALIGN: usize = 8;
/// Pages in a block of the page table (2 MiB).
pub const BLOCK_PAGES: usize = 512;
/// "No base", "no such label" in 16-bit indices.
pub const NONE_U16: u16 = u16::MAX;
/// "No block here" in the page index.
pub const NONE_U32: u32 = u32::MAX;
/// Size of a level record.
pub const LEVEL_BYTES: usize = 288;
/// Size of what is said of one code.
pub const CODE_BYTES: usize = 8;
/// Size of the page index before its entries.
pub const PAGE_INDEX_BYTES: usize = 24;
/// Size of a plane before its codes.
pub const PLANE_BYTES: usize = 8;
/// Size of what says where a plane's codes lie in the page words, before its dictionary.
pub const WORDS_BYTES: usize = 4;
/// Size of a matrix before its labels.
pub const MATRIX_BYTES: usize = 8;
/// Size of a cell.
pub const CELL_BYTES: usize = 32;
/// Size of a record of measured lines.
pub const LINES_BYTES: usize = 272;
/// Size of a record of penalties.
pub const PENALTIES_BYTES: usize = 1032;
/// Size of a fit.
pub const FIT_BYTES: usize = 48;
/// Size of a term.
pub const TERM_BYTES: usize = 40;
/// Size of a mean.
pub const MEAN_BYTES: usize = 16;
/// Size of a grade.
pub const GRADE_BYTES: usize = 8;
/// Size of a bandwidth before its cores.
pub const BANDWIDTH_BYTES: usize = 40;
/// Size of a level of groups before its numbers.
pub const GROUPS_BYTES: usize = 40;
/// Size of a packed matrix before its labels.
pub const PACKED_BYTES: usize = 24;
/// Size of a cell with all its digits.
pub const EXACT_BYTES: usize = 56;
/// Size of a histogram before its latencies.
pub const HISTOGRAM_BYTES: usize = 8;

/// Bytes that the row and column numbers of a matrix take, padded.
#[must_use]
pub const fn label_bytes(labels: usize) -> usize {
    (2 * labels).next_multiple_of(ALIGN)
}

/// What a section holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Section {
    /// JSON text: everything that no other section has.
    Meta = 1,
    /// Core numbers, `u16` each.
    Cores = 2,
    /// [`LevelRecord`]s.
    Levels = 3,
    /// Bases, an `f32` by code each.
    Bases = 4,
    /// For each level and core its base, `u16` each.
    CoreBase = 5,
    /// [`PageIndexHeader`] and entries.
    PageIndex = 6,
    /// LLC codes: [`PlaneHeader`] and codes.
    LlcCodes = 7,
    /// DRAM codes.
    DramCodes = 8,
    /// Matrices, one after another.
    Matrices = 9,
    /// Measured lines, sorted by level, core, frame.
    Lines = 10,
    /// What residuals cost: a [`PenaltiesRecord`] for each level that has one.
    Penalties = 11,
    /// For each level and code a [`CodeRecord`].
    Codes = 12,
    /// Codes of both levels in one `u16` a page.
    PageWords = 13,
    /// [`FitRecord`]s.
    Fits = 14,
    /// [`TermRecord`]s.
    Terms = 15,
    /// [`BandwidthHeader`]s, each with its cores.
    Bandwidths = 16,
    /// [`MeanRecord`]s.
    Means = 17,
    /// [`GroupsHeader`]s, each with the groups of all cores; innermost level first.
    Groups = 18,
    /// [`GradeRecord`]s.
    Grades = 19,
    /// [`PackedHeader`]s, each with its labels and cells, in the order of the description.
    PackedMatrices = 20,
    /// [`HistogramHeader`]s, each with its latencies.
    Histograms = 21,
    /// The description as a compressed block, where it is long.
    PackedMeta = 22,
}

impl Section {
    /// One more than the largest number of a section.
    pub const COUNT: usize = 23;
}

/// Builds a record of `N` bytes.
pub(crate) struct Put<const N: usize> {
    bytes: [u8; N],
    at: usize,
}

impl<const N: usize> Put<N> {
    pub(crate) const fn new() -> Self {
        Self { bytes: [0; N], at: 0 }
    }

    pub(crate) fn put<const M: usize>(mut self, value: [u8; M]) -> Self {
        if let Some(slot) = self.bytes.get_mut(self.at..self.at + M) {
            slot.copy_from_slice(&value);
        }
        self.at += M;
        self
    }

    pub(crate) fn end(self) -> [u8; N] {
        debug_assert_eq!(self.at, N, "a record has exactly its size");
        self.bytes
    }
}

/// Takes fixed fields off the front of a record; zeros beyond its end, which no record reaches.
pub(crate) struct Take<'b>(pub(crate) &'b [u8]);

impl Take<'_> {
    pub(crate) fn take<const M: usize>(&mut self) -> [u8; M] {
        let Some((head, rest)) = self.0.split_first_chunk::<M>() else { return [0; M] };
        self.0 = rest;
        *head
    }

    pub(crate) fn u8(&mut self) -> u8 {
        self.take::<1>()[0]
    }

    pub(crate) fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.take())
    }

    pub(crate) fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    pub(crate) fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }

    pub(crate) fn f32(&mut self) -> f32 {
        f32::from_le_bytes(self.take())
    }
}

/// The first bytes of a file. Up to and including `flags` they mean the same in every version.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Header {
    /// [`MAGIC`].
    pub magic: [u8; 8],
    /// [`BYTE_ORDER`].
    pub byte_order: u32,
    /// [`MAJOR`].
    pub major: u16,
    /// [`MINOR`].
    pub minor: u16,
    /// Length of the whole file.
    pub length: u64,
    /// CRC-32 of all bytes but these four.
    pub checksum: u32,
    /// [`FLAG_COMPLETE`], [`FLAG_MEASURED`]; others are ignored.
    pub flags: u32,
    /// Entries of the section table, which follows the header.
    pub sections: u32,
    /// Hash of the fingerprint of the machine.
    pub fingerprint: u64,
    /// Rate of the clock behind the cycles.
    pub clock_hz: f64,
    /// Cost of the timer, already subtracted.
    pub overhead_cycles: f32,
    /// Step of the clock.
    pub tick_cycles: u32,
}

impl Header {
    /// As bytes.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; HEADER_BYTES] {
        Put::new()
            .put(self.magic)
            .put(self.byte_order.to_le_bytes())
            .put(self.major.to_le_bytes())
            .put(self.minor.to_le_bytes())
            .put(self.length.to_le_bytes())
            .put(self.checksum.to_le_bytes())
            .put(self.flags.to_le_bytes())
            .put(self.sections.to_le_bytes())
            .put([0; 4])
            .put(self.fingerprint.to_le_bytes())
            .put(self.clock_hz.to_le_bytes())
            .put(self.overhead_cycles.to_le_bytes())
            .put(self.tick_cycles.to_le_bytes())
            .end()
    }

    /// From bytes, unchecked.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; HEADER_BYTES]) -> Self {
        let mut take = Take(bytes);
        let mut header = Self {
            magic: take.take(),
            byte_order: take.u32(),
            major: take.u16(),
            minor: take.u16(),
            length: take.u64(),
            checksum: take.u32(),
            flags: take.u32(),
            sections: take.u32(),
            fingerprint: 0,
            clock_hz: 0.0,
            overhead_cycles: 0.0,
            tick_cycles: 0,
        };
        take.u32();
        header.fingerprint = take.u64();
        header.clock_hz = f64::from_le_bytes(take.take());
        header.overhead_cycles = take.f32();
        header.tick_cycles = take.u32();
        header
    }
}

/// The checksum of a file: CRC-32 of all bytes but those where it stands.
#[must_use]
pub fn checksum(bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(bytes.get(..CHECKSUM_AT.start).unwrap_or(bytes));
    hasher.update(bytes.get(CHECKSUM_AT.end..).unwrap_or(&[]));
    hasher.finalize()
}

/// Where a section lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectionEntry {
    /// A [`Section`] as a number; unknown ones are skipped.
    pub kind: u32,
    /// Its start, from the start of the file.
    pub offset: u64,
    /// Its length.
    pub length: u64,
}

impl SectionEntry {
    /// As bytes.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; SECTION_BYTES] {
        Put::new()
            .put(self.kind.to_le_bytes())
            .put([0; 4])
            .put(self.offset.to_le_bytes())
            .put(self.length.to_le_bytes())
            .end()
    }

    /// From bytes, unchecked.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; SECTION_BYTES]) -> Self {
        let mut take = Take(bytes);
        let kind = take.u32();
        take.u32();
        Self { kind, offset: take.u64(), length: take.u64() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_of_every_version_stays_where_it_is() {
        let header = Header {
            magic: MAGIC,
            byte_order: BYTE_ORDER,
            major: 0x0a0b,
            minor: 0x0c0d,
            length: 0x1122_3344_5566_7788,
            checksum: 0xdead_beef,
            flags: 3,
            sections: 9,
            fingerprint: 7,
            clock_hz: 2.6e9,
            overhead_cycles: 52.5,
            tick_cycles: 26,
        };
        let bytes = header.to_bytes();
        assert_eq!(Header::from_bytes(&bytes), header);
        assert_eq!(bytes[..8], MAGIC);
        assert_eq!(bytes[8..12], [4, 3, 2, 1]);
        assert_eq!(bytes[12..16], [0x0b, 0x0a, 0x0d, 0x0c]);
        assert_eq!(bytes[16..24], header.length.to_le_bytes());
        assert_eq!(bytes[CHECKSUM_AT], 0xdead_beef_u32.to_le_bytes());
        assert_eq!(bytes[28..32], [3, 0, 0, 0]);
    }
}
