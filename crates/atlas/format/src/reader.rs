//! Reads an atlas from its bytes: everything is validated once, then queries only look up.
//!
//! The bytes may be a mapped file and come from anywhere, so no value is trusted before it was
//! checked. The reader never allocates, panics or writes.

use crate::costs::Costs;
use crate::error::AtlasError;
use crate::format::{
    self, CODE_BYTES, CodeRecord, FLAG_COMPLETE, FLAG_MEASURED, FormTag, Header, LEVEL_BYTES,
    LINES_BYTES, LevelRecord, LinesRecord, NONE_U16, PENALTIES_BYTES, PenaltiesRecord, RegionMode,
    Section, TransferKind,
};
use crate::matrices::{Matrices, Spread, TransferSpread};
use crate::model::{Code, PatternTable, Period, TABLE_ENTRIES};
use crate::pages::{PageBlockView, PageTable};
use crate::penalties::{Noise, Penalties};
use crate::query::{LevelView, Source};
use crate::sections::{Sections, bad, check_header, open_pages};
use isochrone_units::{CoreId, Level, LineAddr, PageAddr, RegionId};

/// An atlas over its bytes.
#[derive(Clone, Copy, Debug)]
pub struct Atlas<'a> {
    header: Header,
    meta: &'a [u8],
    cores: &'a [[u8; 2]],
    levels: [Option<LevelInfo<'a>>; 2],
    bases: &'a [[u8; 4]],
    codes: &'a [[u8; CODE_BYTES]],
    core_base: &'a [[u8; 2]],
    pages: Option<PageTable<'a>>,
    pub(crate) matrices: Matrices<'a>,
    packed_meta: Option<&'a [u8]>,
    pub(crate) costs: Costs<'a>,
    lines: &'a [[u8; LINES_BYTES]],
}

/// How one level is described, with what a program needs to decode its own pages.
#[derive(Clone, Copy, Debug)]
pub struct LevelInfo<'a> {
    /// The level.
    pub level: Level,
    /// How it is described.
    pub form: FormTag,
    /// Lines of the pattern.
    pub period: Period,
    /// Page classes.
    pub classes: u8,
    /// Standard deviation of one timed load, cycles.
    pub noise_cycles: f32,
    /// Bases in its dictionary.
    pub bases: usize,
    /// Lines to probe, best first.
    pub probe_lines: &'a [u8],
    base_first: usize,
    core_base_first: usize,
    codes: &'a [[u8; CODE_BYTES]],
    penalties: Option<&'a [u8; PENALTIES_BYTES]>,
}

/// Noise that a level without a density counts as having at least: none would make no table.
const LEAST_NOISE_CYCLES: f32 = 1e-3;

impl LevelInfo<'_> {
    /// What the residuals of timed loads cost: the density that was seen while learning. Where the
    /// atlas has none (an older one, or too few residuals were seen), the heavy-tailed default
    /// from [`Self::noise_cycles`], with which a page of DRAM takes three or four times the loads.
    #[must_use]
    pub fn penalties(&self) -> Penalties {
        self.penalties.map_or_else(
            || Noise::heavy_tailed(self.noise_cycles.max(LEAST_NOISE_CYCLES)).into(),
            |bytes| PenaltiesRecord::from_bytes(bytes).penalties,
        )
    }

    /// Whether the density of residuals was seen, or [`Self::penalties`] is the default.
    #[must_use]
    pub const fn has_density(&self) -> bool {
        self.penalties.is_some()
    }

    /// How often each code was seen: the prior for decoding.
    #[must_use]
    pub fn shares(&self) -> [f32; TABLE_ENTRIES] {
        let mut shares = [0.0; TABLE_ENTRIES];
        for (share, bytes) in shares.iter_mut().zip(self.codes) {
            *share = CodeRecord::from_bytes(bytes).share;
        }
        shares
    }

    /// Code by code the one that stands for it; itself beyond the last class.
    #[must_use]
    pub fn canonical(&self) -> [u16; TABLE_ENTRIES] {
        let mut canonical = [0; TABLE_ENTRIES];
        for (code, stands) in (0..).zip(&mut canonical) {
            let known = self.codes.get(usize::from(code));
            *stands = known.map_or(code, |bytes| CodeRecord::from_bytes(bytes).canonical);
        }
        canonical
    }

    /// Values of one base.
    const fn base_entries(&self) -> usize {
        self.classes as usize * self.period.lines()
    }
}

/// The part that holds densities of residuals, in messages.
const PENALTIES: &str = "penalties of residuals";

impl<'a> Atlas<'a> {
    /// Opens an atlas over its bytes, checking all of them once.
    ///
    /// # Errors
    /// [`AtlasError`] with the reason for which the bytes are refused.
    pub fn open(bytes: &'a [u8]) -> Result<Self, AtlasError> {
        let header = check_header(bytes, true)?;
        let atlas = Self::assemble(bytes, header)?;
        if core::str::from_utf8(atlas.meta).is_err() {
            return Err(bad("description", "not UTF-8 text"));
        }
        if !atlas.lines.is_sorted_by(|a, b| LinesRecord::key(a) < LinesRecord::key(b)) {
            return Err(bad("measured lines", "not sorted"));
        }
        Ok(atlas)
    }

    /// Opens bytes that [`Self::open`] has accepted before, without computing their checksum, nor
    /// reading description and measured lines, which are most of an atlas. Everything else is
    /// checked again, so that changed bytes give an error or wrong answers but never a panic.
    ///
    /// # Errors
    /// [`AtlasError`] with the reason for which the bytes are refused.
    pub fn reopen(bytes: &'a [u8]) -> Result<Self, AtlasError> {
        let header = check_header(bytes, false)?;
        Self::assemble(bytes, header)
    }

    fn assemble(bytes: &'a [u8], header: Header) -> Result<Self, AtlasError> {
        let sections = Sections::open(bytes, header.sections)?;
        let meta = sections.get(Section::Meta).ok_or(bad("description", "it is missing"))?;
        let mut atlas = Self {
            header,
            meta,
            cores: sections.records(Section::Cores, "cores")?,
            levels: [None; 2],
            bases: sections.records(Section::Bases, "bases")?,
            codes: sections.records(Section::Codes, "codes")?,
            core_base: sections.records(Section::CoreBase, "bases of cores")?,
            pages: open_pages(&sections)?,
            matrices: Matrices::open(
                sections.get(Section::Matrices).unwrap_or(&[]),
                sections.get(Section::PackedMatrices).unwrap_or(&[]),
            )?,
            packed_meta: sections.get(Section::PackedMeta),
            costs: Costs {
                fits: sections.records(Section::Fits, "fits")?,
                terms: sections.records(Section::Terms, "terms")?,
                bandwidths: sections.get(Section::Bandwidths).unwrap_or(&[]),
                means: sections.records(Section::Means, "means of levels")?,
                groups: sections.get(Section::Groups).unwrap_or(&[]),
                grades: sections.records(Section::Grades, "grades")?,
                histograms: sections.get(Section::Histograms).unwrap_or(&[]),
            },
            lines: sections.records(Section::Lines, "measured lines")?,
        };
        atlas.costs.check(atlas.cores.len())?;
        for record in sections.records::<LEVEL_BYTES>(Section::Levels, "levels")? {
            let info = atlas.check_level(record)?;
            let slot = &mut atlas.levels[usize::from(format::level_tag(info.level))];
            if slot.replace(info).is_some() {
                return Err(bad("levels", "a level comes twice"));
            }
        }
        for record in sections.records::<PENALTIES_BYTES>(Section::Penalties, PENALTIES)? {
            atlas.take_penalties(record)?;
        }
        Ok(atlas)
    }

    /// Gives a level its density of residuals.
    fn take_penalties(&mut self, bytes: &'a [u8; PENALTIES_BYTES]) -> Result<(), AtlasError> {
        let record = PenaltiesRecord::from_bytes(bytes);
        let level = self.levels.get_mut(usize::from(record.level)).and_then(Option::as_mut);
        let level = level.ok_or(bad(PENALTIES, "of a level that is not there"))?;
        if record.penalties.check().is_err() {
            return Err(bad(PENALTIES, "one is not a finite number"));
        }
        if level.penalties.replace(bytes).is_some() {
            return Err(bad(PENALTIES, "of a level twice"));
        }
        Ok(())
    }

    fn check_level(&self, bytes: &'a [u8; LEVEL_BYTES]) -> Result<LevelInfo<'a>, AtlasError> {
        const PART: &str = "level";
        let size = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        let record = LevelRecord::from_bytes(bytes);
        let known = Level::ALL.into_iter().find(|&level| format::level_tag(level) == record.level);
        let forms = [FormTag::Pattern, FormTag::Flat, FormTag::PerLine];
        let form = forms.into_iter().find(|&form| form as u8 == record.form);
        let period = Period::from_lines(record.period).ok_or(bad(PART, "unknown period"))?;
        let info = LevelInfo {
            level: known.ok_or(bad(PART, "unknown level"))?,
            form: form.ok_or(bad(PART, "unknown form"))?,
            period,
            classes: record.classes,
            noise_cycles: record.noise_cycles,
            bases: size(record.base_count),
            probe_lines: bytes
                .get(32..32 + usize::from(record.probe_count).min(256))
                .ok_or(bad(PART, "cut short"))?,
            base_first: size(record.base_first),
            core_base_first: size(record.core_base_first),
            codes: &[],
            penalties: None,
        };
        if info.probe_lines.len() != usize::from(record.probe_count) {
            return Err(bad(PART, "too many probe lines"));
        }
        if usize::from(info.classes) > period.max_classes() {
            return Err(bad(PART, "more classes than a code can hold"));
        }
        self.check_bases(&info)?;
        let code_first = size(record.code_first);
        let code_end = code_first.saturating_add(info.base_entries());
        let codes = self.codes.get(code_first..code_end);
        let codes = codes.ok_or(bad("codes", "a level's codes lie beyond their section"))?;
        for (code, bytes) in (0..).zip(codes) {
            let record = CodeRecord::from_bytes(bytes);
            if record.canonical > code || !(record.share.is_finite() && record.share >= 0.0) {
                return Err(bad("codes", "one is stood for by a later one, or has no share"));
            }
        }
        Ok(LevelInfo { codes, ..info })
    }

    fn check_bases(&self, info: &LevelInfo<'_>) -> Result<(), AtlasError> {
        let outside = bad("bases", "a level's bases lie beyond their section");
        let length = info.bases.checked_mul(info.base_entries()).ok_or(outside)?;
        let end = info.base_first.checked_add(length).ok_or(outside)?;
        self.bases.get(info.base_first..end).ok_or(outside)?;
        for base in 0..info.bases {
            if self.base_of(info, base).is_none() {
                return Err(bad("bases", "a latency is not a finite number"));
            }
        }
        let outside = bad("bases of cores", "a level's entries lie beyond their section");
        let end = info.core_base_first.checked_add(self.cores.len()).ok_or(outside)?;
        for base in self.core_base.get(info.core_base_first..end).ok_or(outside)? {
            let base = u16::from_le_bytes(*base);
            if base != NONE_U16 && usize::from(base) >= info.bases {
                return Err(bad("bases of cores", "a core wears a base that is not there"));
            }
        }
        Ok(())
    }

    fn base_of(&self, info: &LevelInfo<'_>, base: usize) -> Option<PatternTable> {
        let first = info.base_first.checked_add(base.checked_mul(info.base_entries())?)?;
        let bytes = self.bases.get(first..first.checked_add(info.base_entries())?)?;
        let mut values = [f32::NAN; TABLE_ENTRIES];
        for (value, bytes) in values.iter_mut().zip(bytes) {
            *value = f32::from_le_bytes(*bytes);
        }
        PatternTable::from_values(info.period, info.classes, values)
    }

    /// The description as JSON text: everything that no other section has. Nothing of worth where
    /// [`Self::packed_meta`] has it.
    #[must_use]
    pub fn meta(&self) -> &'a str {
        core::str::from_utf8(self.meta).unwrap_or_default()
    }

    /// A long description, as the compressed block that it is stored as: length of the text as `u32`, then LZ4.
    #[must_use]
    pub const fn packed_meta(&self) -> Option<&'a [u8]> {
        self.packed_meta
    }

    /// True if the run that made it was not interrupted.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.header.flags & FLAG_COMPLETE != 0
    }

    /// True if it was measured, false if it was simulated.
    #[must_use]
    pub const fn is_measured(&self) -> bool {
        self.header.flags & FLAG_MEASURED != 0
    }

    /// Hash of the fingerprint of the machine it belongs to.
    #[must_use]
    pub const fn fingerprint(&self) -> u64 {
        self.header.fingerprint
    }

    /// Rate of the clock behind the cycles.
    #[must_use]
    pub const fn clock_hz(&self) -> f64 {
        self.header.clock_hz
    }

    /// Step of the clock, cycles.
    #[must_use]
    pub const fn clock_tick_cycles(&self) -> u32 {
        self.header.tick_cycles
    }

    /// The cores, in the order of the atlas.
    pub fn cores(&self) -> impl ExactSizeIterator<Item = CoreId> + 'a {
        self.cores.iter().map(|id| CoreId(u16::from_le_bytes(*id)))
    }

    /// How a level is described; `None` where it was not measured.
    #[must_use]
    pub fn level(&self, level: Level) -> Option<LevelInfo<'a>> {
        self.levels[usize::from(format::level_tag(level))]
    }

    /// A base of a level's dictionary.
    #[must_use]
    pub fn base(&self, level: Level, index: usize) -> Option<PatternTable> {
        let info = self.level(level)?;
        if index < info.bases { self.base_of(&info, index) } else { None }
    }

    /// The base that a core wore last: its place in the level's dictionary.
    #[must_use]
    pub fn core_base(&self, core: CoreId, level: Level) -> Option<usize> {
        let info = self.level(level)?;
        let place = self.place_of(core)?;
        let base = u16::from_le_bytes(*self.core_base.get(info.core_base_first + place)?);
        (base != NONE_U16).then_some(usize::from(base))
    }

    /// What one core sees at one level, resolved once for many queries. `None` where the atlas
    /// does not have the level, or has nothing of it for this core.
    #[must_use]
    pub fn view(&self, core: CoreId, level: Level) -> Option<LevelView<'a>> {
        match self.core_base(core, level) {
            Some(base) => self.view_with_base(core, level, base),
            None if self.level(level)?.form == FormTag::PerLine => {
                self.view_of_lines(core, self.level(level)?)
            }
            None => None,
        }
    }

    /// The same for a core that now wears another base of the dictionary.
    #[must_use]
    pub fn view_with_base(&self, core: CoreId, level: Level, base: usize) -> Option<LevelView<'a>> {
        let info = self.level(level)?;
        let source = match (info.form, self.pages) {
            (FormTag::PerLine, _) => return self.view_of_lines(core, info),
            (FormTag::Flat, None) => Source::Everywhere,
            (_, Some(pages)) => Source::Codes(pages.codes(level)),
            (FormTag::Pattern, None) => Source::Nothing,
        };
        Some(LevelView::new(Some(&self.base(level, base)?), info.period, source))
    }

    fn view_of_lines(&self, core: CoreId, info: LevelInfo<'a>) -> Option<LevelView<'a>> {
        let key = (format::level_tag(info.level), core.0);
        let of = |bytes: &[u8; LINES_BYTES]| {
            let (level, core, _) = LinesRecord::key(bytes);
            (level, core)
        };
        let start = self.lines.partition_point(|record| of(record) < key);
        let stop = self.lines.partition_point(|record| of(record) <= key);
        let lines = self.lines.get(start..stop)?;
        let view = LevelView::new(None, info.period, Source::Lines(lines));
        (!lines.is_empty()).then_some(view)
    }

    /// Latency of a physical line from a core, cycles. For many queries take a [`Self::view`].
    #[must_use]
    pub fn latency(&self, core: CoreId, level: Level, line: LineAddr) -> Option<f32> {
        self.view(core, level)?.get(line)
    }

    /// The core nearest to a physical line, with its latency in cycles; the first among equals.
    #[must_use]
    pub fn nearest_core(&self, line: LineAddr, level: Level) -> Option<(CoreId, f32)> {
        let mut nearest: Option<(CoreId, f32)> = None;
        for core in self.cores() {
            if let Some(cycles) = self.latency(core, level, line)
                && nearest.is_none_or(|(_, least)| cycles < least)
            {
                nearest = Some((core, cycles));
            }
        }
        nearest
    }

    /// The lines of a page that are below a quantile from a core: see
    /// [`LevelView::lines_below_quantile`].
    #[must_use]
    pub fn lines_below_quantile(
        &self,
        page: PageAddr,
        core: CoreId,
        level: Level,
        q: f32,
    ) -> Option<u64> {
        self.view(core, level)?.lines_below_quantile(page, q)
    }

    /// The code of a frame.
    #[must_use]
    pub fn code(&self, frame: PageAddr, level: Level) -> Option<Code> {
        self.pages?.codes(level).code(frame.0).map(Code)
    }

    /// Blocks of 512 pages in the page table.
    #[must_use]
    pub fn page_blocks(&self) -> usize {
        self.pages.map_or(0, |pages| pages.index.blocks)
    }

    /// Bytes that the page table takes in the file: index and codes of both levels.
    #[must_use]
    pub fn page_table_bytes(&self) -> usize {
        self.pages.map_or(0, |pages| pages.bytes)
    }

    /// Bytes of these that are codes.
    #[must_use]
    pub fn page_code_bytes(&self) -> usize {
        self.pages.map_or(0, |pages| pages.code_bytes)
    }

    /// The page table, block by block.
    pub fn blocks(&self) -> impl Iterator<Item = PageBlockView> + 'a {
        self.pages.into_iter().flat_map(PageTable::blocks)
    }

    /// What frames are: 0 nothing known, 1 guest frames, 2 host frames.
    #[must_use]
    pub fn pages_keyed_by(&self) -> u32 {
        self.pages.map_or(0, |pages| pages.index.keyed_by)
    }

    /// Core-to-region latency by dependent chase.
    #[must_use]
    pub fn region_latency(
        &self,
        core: CoreId,
        region: RegionId,
        mode: RegionMode,
    ) -> Option<Spread> {
        self.matrices.region(core.0, region.0, mode)
    }

    /// Latency of the region that is nearest to `core`, of those whose latency from it is known.
    #[must_use]
    pub fn nearest_region_latency(&self, core: CoreId, mode: RegionMode) -> Option<Spread> {
        self.matrices.nearest_region(core.0, mode)
    }

    /// Time of a line transfer from its owner to the core that asks.
    #[must_use]
    pub fn transfer(
        &self,
        owner: CoreId,
        asker: CoreId,
        kind: TransferKind,
    ) -> Option<TransferSpread> {
        self.matrices.transfer(owner.0, asker.0, kind)
    }

    /// Where a core stands in the list of cores.
    #[must_use]
    pub fn place_of(&self, core: CoreId) -> Option<usize> {
        let id = core.0.to_le_bytes();
        let usual = usize::from(core.0);
        // Cores are mostly numbered as they are listed.
        if self.cores.get(usual) == Some(&id) {
            return Some(usual);
        }
        self.cores.iter().position(|&known| known == id)
    }

    /// Measured lines, record by record.
    pub fn measured_lines(&self) -> impl Iterator<Item = LinesRecord> + 'a {
        self.lines.iter().map(LinesRecord::from_bytes)
    }
}
