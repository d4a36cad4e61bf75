//! What the atlas says of one level, made ready for use: its bases, which codes are one, how
//! likely each is, and what residuals cost. Bases that are in no atlas join at run time.

use super::kept::Window;
use super::number::real;
use isochrone_atlas::format::FormTag;
use isochrone_atlas::{
    Atlas, Code, Codebook, LevelInfo, Noise, PatternTable, Penalties, Period, TABLE_ENTRIES,
};
use isochrone_decode::{Form, arrangements};
use isochrone_os::OsError;
use isochrone_os::table::Table;
use isochrone_units::{Experiment, Grade, LINES_PER_PAGE, Level};

/// Bases that a program may meet beyond those of the atlas.
const NEW_BASES: usize = 8;
/// Mean square distance of two classes, as a share of the variance of all lines, below which they
/// are one: patterns at that distance correlate at 0.98.
const SAME_DISTANCE: f32 = 0.04;
/// Share of the variance of all lines that lies within classes before it is what counts.
const WITHIN_SHARE: f32 = 0.01;
/// Share of pages with one code at which it is taken to be that of every page one looks at.
const ONLY_SHARE: f32 = 0.98;
/// Lines of a page that are ever read.
const MAX_LINES: usize = 16;
/// Lines for an atlas that names none: all residues modulo 8, and nine apart.
const SPREAD_LINES: [u8; 8] = [0, 9, 18, 27, 36, 45, 54, 63];

/// One level that follows the pattern.
#[derive(Debug)]
pub(super) struct LevelModel {
    pub(super) level: Level,
    pub(super) period: Period,
    pub(super) noise_cycles: f32,
    classes: u8,
    /// Bases: those of the atlas, then new ones; `count` of them are real.
    tables: Table<PatternTable>,
    count: usize,
    /// Code by code the one that stands for it, as the atlas has it.
    canonical: [u16; TABLE_ENTRIES],
    /// The same, and classes that no decoding core can tell apart are one.
    merged: [u16; TABLE_ENTRIES],
    shares: [f32; TABLE_ENTRIES],
    /// The code that practically all pages have, where there is one: then nothing has to be decoded
    /// before the base of a core can be seen.
    pub(super) only_code: Option<Code>,
    penalties: Penalties,
    lines: [u8; MAX_LINES],
    line_count: usize,
}

/// A level of the atlas, if it has it, it may be gone by, and pages differ by their codes there.
pub(super) fn patterned<'a>(atlas: &Atlas<'a>, level: Level) -> Option<LevelInfo<'a>> {
    if atlas.grade(Experiment::Block).is_some_and(|grade| grade < Grade::USABLE) {
        return None;
    }
    atlas.level(level).filter(|info| info.form == FormTag::Pattern && info.bases > 0)
}

impl LevelModel {
    /// The level, if it is [`patterned`].
    pub(super) fn open(atlas: &Atlas<'_>, level: Level) -> Result<Option<Self>, OsError> {
        let Some(info) = patterned(atlas, level) else { return Ok(None) };
        let Some(first) = atlas.base(level, 0) else { return Ok(None) };
        let tables = Table::made(info.bases + NEW_BASES, |index| {
            atlas.base(level, index).unwrap_or_else(|| first.clone())
        })?;
        let mut lines = [0; MAX_LINES];
        let named = if info.probe_lines.is_empty() { &SPREAD_LINES } else { info.probe_lines };
        let line_count = named.len().min(MAX_LINES);
        lines[..line_count].copy_from_slice(&named[..line_count]);
        let mut shares = info.shares();
        let codes = usize::from(info.classes) * info.period.lines();
        if !shares[..codes].iter().any(|share| *share > 0.0) {
            shares[..codes].fill(1.0 / real(codes));
        }
        let canonical = info.canonical();
        let only_code =
            only_code(&shares[..codes], &canonical).filter(|_| info.period == Period::Lines64);
        Ok(Some(Self {
            level,
            only_code,
            period: info.period,
            noise_cycles: info.noise_cycles.max(1e-3),
            classes: info.classes,
            tables,
            count: info.bases,
            canonical,
            merged: canonical,
            shares,
            penalties: info.penalties(),
            lines,
            line_count,
        }))
    }

    /// The form of its bases, for tables to decode it in.
    pub(super) fn form(&self) -> Form {
        Form {
            classes: usize::from(self.classes),
            period: self.period.lines(),
            arrangements: self.bases().iter().map(arrangements).max().unwrap_or(1),
        }
    }

    /// Pages that share one code.
    pub(super) const fn block_pages(&self) -> usize {
        self.period.lines() / LINES_PER_PAGE
    }

    /// Lines to probe, best first.
    pub(super) fn lines(&self) -> &[u8] {
        &self.lines[..self.line_count]
    }

    /// The bases in use, those of the atlas first.
    pub(super) fn bases(&self) -> &[PatternTable] {
        &self.tables[..self.count]
    }

    /// A base; the first where there is no such one.
    pub(super) fn base(&self, index: u16) -> &PatternTable {
        self.bases().get(usize::from(index)).unwrap_or(&self.tables[0])
    }

    /// Keeps a base that was just measured; where there is no room left, in the place of the last
    /// one that was kept.
    pub(super) fn keep(&mut self, table: PatternTable) -> u16 {
        let place = self.count.min(self.tables.len() - 1);
        self.tables[place] = table;
        self.count = place + 1;
        u16::try_from(place).unwrap_or(u16::MAX)
    }

    /// The noise as bases are compared by it.
    pub(super) const fn noise(&self) -> Noise {
        Noise::heavy_tailed(self.noise_cycles)
    }

    /// A base ready for decoding.
    pub(super) fn book(&self, table: &PatternTable) -> Option<Codebook> {
        Codebook::new(table, &self.merged, &self.shares, self.penalties.clone()).ok()
    }

    /// What residuals cost.
    pub(super) const fn penalties(&self) -> &Penalties {
        &self.penalties
    }

    /// What a load of this line of any page takes on average, if this is the current base. Only of
    /// pages whose loads lie in the window: where a part of the memory lies on another node, its
    /// loads are not kept, and its pages must not count either.
    pub(super) fn expected(&self, table: &PatternTable, line: u8, window: Window) -> f32 {
        let (mut kept, mut all) = ((0.0, 0.0), (0.0, 0.0));
        let codes = (0..).zip(&self.shares).take(table.codes());
        for (code, share) in codes.filter(|(_, share)| **share > 0.0) {
            let cycles = table.latency_cycles(Code(code), line);
            all = (all.0 + share * cycles, all.1 + share);
            if window.holds(cycles) {
                kept = (kept.0 + share * cycles, kept.1 + share);
            }
        }
        // An offset of half a pattern's height would be no offset: then all are as good.
        let (sum, weight) = if kept.1 > 0.5 * all.1 { kept } else { all };
        sum / weight
    }

    /// The cell of the pattern that a line of a page with this code is: lines that are alike
    /// are one cell.
    pub(super) fn cell(&self, code: Code, line: u8) -> usize {
        let index = usize::from(code.0 ^ u16::from(line & self.period.mask()));
        self.canonical.get(index).copied().map_or(0, usize::from)
    }

    /// A base from the mean of each cell, cycles; NaN where nothing was seen, which takes the
    /// mean of its class.
    pub(super) fn assemble(&self, cells: &[f32; TABLE_ENTRIES]) -> Option<PatternTable> {
        let lines = self.period.lines();
        let mut values = [0.0_f32; TABLE_ENTRIES];
        for class in 0..usize::from(self.classes) {
            let range = class * lines..(class + 1) * lines;
            let seen = cells[range.clone()].iter().filter(|value| value.is_finite());
            let (sum, count) = seen.fold((0.0, 0_usize), |(s, n), v| (s + v, n + 1));
            for index in range {
                let value = cells[usize::from(self.canonical[index])];
                values[index] = if value.is_finite() { value } else { sum / real(count) };
            }
        }
        let patterns = values.chunks_exact(lines).take(usize::from(self.classes));
        PatternTable::new(self.period, patterns).ok()
    }

    /// Makes classes one that none of these bases, the decoding cores', tells apart. True if that changed
    /// which codes are answers.
    pub(super) fn merge_classes_by(&mut self, bases: impl Iterator<Item = u16> + Clone) -> bool {
        let before = self.merged;
        self.merged = self.canonical;
        if self.period != Period::Lines64 {
            return false;
        }
        for class in (1..self.classes).rev() {
            let stands = (0..class).find(|other| self.alike(*other, class, bases.clone()));
            let Some(stands) = stands else { continue };
            for key in 0..64 {
                let key_stands = self.canonical[key];
                self.merged[usize::from(class) * 64 + key] = u16::from(stands) * 64 + key_stands;
            }
        }
        self.merged != before
    }

    /// Whether one base is the other one, up to the keys of pages and an offset: no page of which
    /// nothing is known tells them apart.
    pub(super) fn are_twins(&self, a: &PatternTable, b: &PatternTable) -> bool {
        let lines = self.period.lines();
        (0..lines).any(|key| Self::match_under(key, lines, a, b))
    }

    /// Whether one base is the other one up to an offset.
    pub(super) fn are_alike(&self, a: &PatternTable, b: &PatternTable) -> bool {
        Self::match_under(0, self.period.lines(), a, b)
    }

    fn match_under(key: usize, lines: usize, a: &PatternTable, b: &PatternTable) -> bool {
        let codes = a.codes();
        let (a, b) = (&a.values()[..codes], &b.values()[..codes.min(b.codes())]);
        let spread = spread_of(a, lines);
        let offset = (a.iter().sum::<f32>() - b.iter().sum::<f32>()) / real(codes);
        let pairs = a.iter().enumerate().filter_map(|(i, x)| Some((x, b.get(i ^ key)?)));
        let square = pairs.map(|(x, y)| (x - y - offset) * (x - y - offset)).sum::<f32>();
        square / real(codes) <= SAME_DISTANCE * spread
    }

    fn alike(&self, a: u8, b: u8, bases: impl Iterator<Item = u16>) -> bool {
        let at = |class: u8| usize::from(class) * 64..usize::from(class) * 64 + 64;
        let mut any = false;
        for base in bases {
            any = true;
            let table = self.base(base);
            let pairs = table.values()[at(a)].iter().zip(&table.values()[at(b)]);
            let square = pairs.map(|(x, y)| (x - y) * (x - y)).sum::<f32>() / 64.0;
            let spread = spread_of(&table.values()[..table.codes()], 64);
            if square > SAME_DISTANCE * spread {
                return false;
            }
        }
        any
    }
}

/// The answer that has nearly all of the shares.
fn only_code(shares: &[f32], canonical: &[u16; TABLE_ENTRIES]) -> Option<Code> {
    let total: f32 = shares.iter().sum();
    let of = |answer: u16| -> f32 {
        let own = shares.iter().zip(canonical).filter(|(_, stands)| **stands == answer);
        own.map(|(share, _)| share).sum()
    };
    let answers = canonical.iter().take(shares.len());
    answers.copied().find(|answer| of(*answer) >= ONLY_SHARE * total).map(Code)
}

/// The variance that two codes are told apart by: that of lines within their class, where lines
/// differ there. Classes that lie on two nodes of a machine differ by far more than the lines of one.
fn spread_of(values: &[f32], lines: usize) -> f32 {
    let all = variance(values);
    let classes = values.chunks_exact(lines);
    let within = classes.clone().map(variance).sum::<f32>() / real(classes.count());
    if within > WITHIN_SHARE * all { within } else { all }
}

fn variance(values: &[f32]) -> f32 {
    let mean = values.iter().sum::<f32>() / real(values.len());
    values.iter().map(|value| (value - mean) * (value - mean)).sum::<f32>() / real(values.len())
}
