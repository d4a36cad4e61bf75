//! The records inside the sections of an atlas file, each with its encoding and decoding side by
//! side. They carry no rule beyond their layout: `reader` checks what they say.

use super::{
    CELL_BYTES, CODE_BYTES, LEVEL_BYTES, LINES_BYTES, MATRIX_BYTES, PAGE_INDEX_BYTES,
    PENALTIES_BYTES, PLANE_BYTES, Put, Take, WORDS_BYTES,
};
use crate::penalties::{PENALTY_ENTRIES, Penalties};
use isochrone_units::{Level, LineState};

/// How a level's latencies are described.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FormTag {
    /// By bases and codes.
    Pattern = 0,
    /// All lines alike.
    Flat = 1,
    /// By measured lines.
    PerLine = 2,
}

/// One level: how to look it up and how to decode a page of it.
#[derive(Clone, Debug, PartialEq)]
pub struct LevelRecord {
    /// Which level, as [`level_tag`].
    pub level: u8,
    /// A [`FormTag`].
    pub form: u8,
    /// Page classes.
    pub classes: u8,
    /// Lines of the pattern.
    pub period: u16,
    /// Entries used of `probe_lines`.
    pub probe_count: u16,
    /// First value of this level's first base in the section of bases.
    pub base_first: u32,
    /// Bases of this level.
    pub base_count: u32,
    /// Standard deviation of one timed load, cycles.
    pub noise_cycles: f32,
    /// First entry of this level in the core-base section; one a core follows.
    pub core_base_first: u32,
    /// First entry of this level in the section of codes; one for each of its codes follows.
    pub code_first: u32,
    /// Lines to probe, best first.
    pub probe_lines: [u8; 256],
}

impl LevelRecord {
    /// As bytes.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; LEVEL_BYTES] {
        Put::new()
            .put([self.level, self.form, self.classes, 0])
            .put(self.period.to_le_bytes())
            .put(self.probe_count.to_le_bytes())
            .put(self.base_first.to_le_bytes())
            .put(self.base_count.to_le_bytes())
            .put(self.noise_cycles.to_le_bytes())
            .put(self.core_base_first.to_le_bytes())
            .put(self.code_first.to_le_bytes())
            .put([0; 4])
            .put(self.probe_lines)
            .end()
    }

    /// From bytes, unchecked.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; LEVEL_BYTES]) -> Self {
        let mut take = Take(bytes);
        let [level, form, classes, _] = take.take();
        let (period, probe_count) = (take.u16(), take.u16());
        let (base_first, base_count) = (take.u32(), take.u32());
        let (noise_cycles, core_base_first) = (take.f32(), take.u32());
        let code_first = take.u32();
        take.u32();
        let probe_lines = take.take();
        Self {
            level,
            form,
            classes,
            period,
            probe_count,
            base_first,
            base_count,
            noise_cycles,
            core_base_first,
            code_first,
            probe_lines,
        }
    }
}

/// What is known of one code of a level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CodeRecord {
    /// The code that stands for it.
    pub canonical: u16,
    /// How often it was seen.
    pub share: f32,
}

impl CodeRecord {
    /// As bytes.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; CODE_BYTES] {
        Put::new().put(self.canonical.to_le_bytes()).put([0; 2]).put(self.share.to_le_bytes()).end()
    }

    /// From bytes, unchecked.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; CODE_BYTES]) -> Self {
        let mut take = Take(bytes);
        let canonical = take.u16();
        take.u16();
        Self { canonical, share: take.f32() }
    }
}

/// What single residuals of one level cost: the density that was seen while learning.
#[derive(Clone, Debug, PartialEq)]
pub struct PenaltiesRecord {
    /// Which level, as [`level_tag`].
    pub level: u8,
    /// The table.
    pub penalties: Penalties,
}

impl PenaltiesRecord {
    /// As bytes.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; PENALTIES_BYTES] {
        let mut nats = [0; 4 * PENALTY_ENTRIES];
        for (slot, value) in nats.as_chunks_mut().0.iter_mut().zip(&self.penalties.nats) {
            *slot = value.to_le_bytes();
        }
        Put::new()
            .put([self.level, 0, 0, 0])
            .put(self.penalties.step_cycles.to_le_bytes())
            .put(nats)
            .end()
    }

    /// From bytes, unchecked.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; PENALTIES_BYTES]) -> Self {
        let mut take = Take(bytes);
        let [level, ..] = take.take::<4>();
        let step_cycles = take.f32();
        let mut nats = [0.0; PENALTY_ENTRIES];
        for value in &mut nats {
            *value = take.f32();
        }
        Self { level, penalties: Penalties { step_cycles, nats } }
    }
}

/// A level as a number in files.
#[must_use]
pub const fn level_tag(level: Level) -> u8 {
    match level {
        Level::Llc => 0,
        Level::Dram => 1,
    }
}

/// How the blocks of the page table are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum IndexKind {
    /// Block `b` is the `b`-th after the first; no entries.
    Dense = 0,
    /// One `u32` a block of the span: its rank among the stored blocks, or [`super::NONE_U32`].
    Table = 1,
    /// The first frames of the stored blocks, `u64` each, ascending.
    Sorted = 2,
    /// As `Table`, with ranks of 16 bits: half of it, so that it stays in a first-level cache.
    ShortTable = 3,
}

/// Head of the page index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageIndexHeader {
    /// An [`IndexKind`].
    pub kind: u32,
    /// What frames are: 0 nothing known, 1 guest frames, 2 host frames.
    pub keyed_by: u32,
    /// Stored blocks.
    pub blocks: u32,
    /// Blocks of the span (`Table`), else the same as `blocks`.
    pub positions: u32,
    /// First frame of the first block, a multiple of 512.
    pub first_frame: u64,
}

impl PageIndexHeader {
    /// As bytes.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; PAGE_INDEX_BYTES] {
        Put::new()
            .put(self.kind.to_le_bytes())
            .put(self.keyed_by.to_le_bytes())
            .put(self.blocks.to_le_bytes())
            .put(self.positions.to_le_bytes())
            .put(self.first_frame.to_le_bytes())
            .end()
    }

    /// From bytes, unchecked.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; PAGE_INDEX_BYTES]) -> Self {
        let mut take = Take(bytes);
        Self {
            kind: take.u32(),
            keyed_by: take.u32(),
            blocks: take.u32(),
            positions: take.u32(),
            first_frame: take.u64(),
        }
    }
}

/// How the codes of a level are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum PlaneKind {
    /// One byte a page.
    Raw = 0,
    /// One template of 512 codes, XORed with one byte a block, and exceptions. Hashes of physical
    /// addresses are XORs of address bits, so a machine without other tricks has no exceptions.
    Template = 1,
    /// Some bits of one word a page, which both levels share.
    Words = 2,
}

/// Head of a plane of codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlaneHeader {
    /// A [`PlaneKind`].
    pub kind: u32,
    /// Pages that do not follow the template; entries of the dictionary behind a [`WordsHeader`].
    pub exceptions: u32,
}

impl PlaneHeader {
    /// As bytes.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; PLANE_BYTES] {
        Put::new().put(self.kind.to_le_bytes()).put(self.exceptions.to_le_bytes()).end()
    }

    /// From bytes, unchecked.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; PLANE_BYTES]) -> Self {
        let mut take = Take(bytes);
        Self { kind: take.u32(), exceptions: take.u32() }
    }
}

/// Which bits of a page's word are the code of one level. The codes of a dictionary follow, `u16`
/// each; without one the bits are the code itself. All ones, and what lies beyond a dictionary, is
/// not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WordsHeader {
    /// Bits below.
    pub shift: u16,
    /// Number of bits.
    pub bits: u16,
}

impl WordsHeader {
    /// As bytes.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; WORDS_BYTES] {
        Put::new().put(self.shift.to_le_bytes()).put(self.bits.to_le_bytes()).end()
    }

    /// From bytes, unchecked.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; WORDS_BYTES]) -> Self {
        let mut take = Take(bytes);
        Self { shift: take.u16(), bits: take.u16() }
    }
}

/// Which chase a region matrix comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum RegionMode {
    /// Linked list in order.
    InOrder = 0,
    /// Linked list in random order.
    Random = 1,
    /// A fixed stride.
    Stride = 2,
    /// Lines of one class of the atlas.
    OneClass = 3,
}

impl RegionMode {
    /// All modes.
    pub const ALL: [Self; 4] = [Self::InOrder, Self::Random, Self::Stride, Self::OneClass];

    /// The word that the contents use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InOrder => "in-order",
            Self::Random => "random",
            Self::Stride => "stride",
            Self::OneClass => "one-class",
        }
    }
}

/// Which experiment a transfer matrix comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum TransferKind {
    /// Load of a line that the owner wrote.
    Modified = 0,
    /// Load of a line that the owner alone read.
    Exclusive = 1,
    /// Load of a line that owner and others read.
    Shared = 2,
    /// Compare-and-swap ping-pong.
    Cas = 3,
}

impl TransferKind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Modified, Self::Exclusive, Self::Shared, Self::Cas];

    /// The word that the contents use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Modified => LineState::Modified.as_str(),
            Self::Exclusive => LineState::Exclusive.as_str(),
            Self::Shared => LineState::Shared.as_str(),
            Self::Cas => "cas",
        }
    }
}

impl From<LineState> for TransferKind {
    fn from(state: LineState) -> Self {
        match state {
            LineState::Modified => Self::Modified,
            LineState::Exclusive => Self::Exclusive,
            LineState::Shared => Self::Shared,
        }
    }
}

/// Head of a matrix; row numbers, column numbers (`u16` each, padded to eight bytes) and cells
/// follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatrixHeader {
    /// 0 core to region, 1 core to core.
    pub kind: u8,
    /// A [`RegionMode`] or [`TransferKind`].
    pub tag: u8,
    /// How many rows it has.
    pub rows: u16,
    /// How many columns it has.
    pub columns: u16,
}

/// [`MatrixHeader::kind`] of core-to-region latencies.
pub const MATRIX_REGION: u8 = 0;
/// [`MatrixHeader::kind`] of line transfers.
pub const MATRIX_TRANSFER: u8 = 1;

impl MatrixHeader {
    /// As bytes.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; MATRIX_BYTES] {
        Put::new()
            .put([self.kind, self.tag])
            .put(self.rows.to_le_bytes())
            .put(self.columns.to_le_bytes())
            .put([0; 2])
            .end()
    }

    /// From bytes, unchecked.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; MATRIX_BYTES]) -> Self {
        let mut take = Take(bytes);
        Self { kind: take.u8(), tag: take.u8(), rows: take.u16(), columns: take.u16() }
    }
}

/// One cell, nanoseconds. NaN is "missing".
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CellRecord {
    /// Median, lower and upper end of its interval, 5th and 95th percentile, fastest line.
    pub values: [f32; 6],
    /// Values behind the cell.
    pub n: u32,
}

impl CellRecord {
    /// A missing cell.
    pub const MISSING: Self = Self { values: [f32::NAN; 6], n: 0 };

    /// As bytes.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; CELL_BYTES] {
        let put = self.values.iter().fold(Put::new(), |put, value| put.put(value.to_le_bytes()));
        put.put(self.n.to_le_bytes()).put([0; 4]).end()
    }

    /// From bytes.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; CELL_BYTES]) -> Self {
        let mut take = Take(bytes);
        let mut values = [0.0; 6];
        for value in &mut values {
            *value = take.f32();
        }
        Self { values, n: take.u32() }
    }
}

/// Measured lines of one page from one core.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinesRecord {
    /// The level, as [`level_tag`].
    pub level: u8,
    /// The core.
    pub core: u16,
    /// The page.
    pub frame: u64,
    /// Latencies in cycles, NaN where missing.
    pub cycles: [f32; 64],
}

impl LinesRecord {
    /// As bytes.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; LINES_BYTES] {
        let mut put = Put::new().put([self.level, 0]).put(self.core.to_le_bytes()).put([0; 4]);
        put = put.put(self.frame.to_le_bytes());
        self.cycles.iter().fold(put, |put, value| put.put(value.to_le_bytes())).end()
    }

    /// From bytes.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; LINES_BYTES]) -> Self {
        let (level, core, frame) = Self::key(bytes);
        let mut cycles = [0.0; 64];
        for (value, bytes) in cycles.iter_mut().zip(bytes[16..].as_chunks().0) {
            *value = f32::from_le_bytes(*bytes);
        }
        Self { level, core, frame, cycles }
    }

    /// What records are sorted by: level, core, frame.
    #[must_use]
    pub fn key(bytes: &[u8; LINES_BYTES]) -> (u8, u16, u64) {
        let mut take = Take(bytes);
        let [level, _] = take.take();
        let core = take.u16();
        take.u32();
        (level, core, take.u64())
    }
}

#[cfg(test)]
mod tests;
