//! One level of an atlas as answers: which base a core wears, how near its near lines are, how
//! pages differ. Terminal and report both ask here, so they cannot disagree.
//!
//! It derives and never measures: where a number is derived from a base rather than measured on
//! held-out pages, it says so.

use std::cell::OnceCell;
use std::collections::BTreeSet;

use isochrone_atlas::Code;
use isochrone_atlas_store::contents::{Base, Contents, Form, LevelMap, Quality};
use isochrone_stats::{mean, pearson};
use isochrone_units::Level;

/// Lines of a base that differ by less than this share of its spread are drawn as one.
const SAME_LINE: f64 = 1e-3;

/// Share of the pages at which a code is nearly all there is.
const NEARLY_ALL: f64 = 0.99;

/// How near the nearest quarter of the lines is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Near {
    /// Mean over all lines.
    pub(super) mean_ns: f64,
    /// Mean over the quarter that the map calls nearest.
    pub(super) near_ns: f64,
    /// Whether it was measured on held-out pages, or is only what the base says.
    pub(super) measured: bool,
}

impl Near {
    /// By which share of the mean the nearest quarter is nearer.
    pub(super) fn share(&self) -> f64 {
        1.0 - self.near_ns / self.mean_ns
    }
}

/// Which codes pages have.
#[derive(Clone, Debug)]
pub(super) struct CodeShares {
    /// Each code that occurs, with its share of the pages.
    pub(super) all: Vec<(u16, f64)>,
    /// Whether the pages are all decoded ones of the atlas, or those that were learnt from.
    pub(super) decoded: bool,
}

/// One level of an atlas.
#[derive(Clone, Debug)]
pub(super) struct LevelView<'a> {
    contents: &'a Contents,
    /// The record behind the answers.
    pub(super) map: &'a LevelMap,
    /// Counted once: every core asks, and there are as many pages as memory has.
    shares: OnceCell<CodeShares>,
}

impl<'a> LevelView<'a> {
    /// All levels, in the atlas's order.
    pub(super) fn all(contents: &'a Contents) -> Vec<Self> {
        let view = |map| Self { contents, map, shares: OnceCell::new() };
        contents.levels.iter().map(view).collect()
    }

    /// One level.
    pub(super) fn find(contents: &'a Contents, level: Level) -> Option<Self> {
        Self::all(contents).into_iter().find(|view| view.map.level == level.as_str())
    }

    /// `"LLC"` or `"DRAM"`.
    pub(super) fn name(&self) -> String {
        self.map.level.to_uppercase()
    }

    /// Cores with their place in the machine's order.
    pub(super) fn cores(&self) -> impl Iterator<Item = (usize, u16)> + 'a {
        self.contents.machine.cores.iter().map(|core| core.id).enumerate()
    }

    /// How well the level's form does from the core at `place`.
    pub(super) fn quality(&self, place: usize) -> Option<&'a Quality> {
        self.map.quality.get(place)
    }

    /// The quality that also tells what decoding cost: one core decodes for all.
    pub(super) fn decoding(&self) -> Option<&'a Quality> {
        self.map.quality.iter().find(|q| q.decoded_pages > 0)
    }

    /// The base that the core at `place` wore last.
    pub(super) fn worn(&self, place: usize) -> Option<(usize, &'a Base)> {
        let number = usize::from(self.map.core_base.get(place).copied().flatten()?);
        Some((number, self.map.bases.get(number)?))
    }

    /// Bases that are worn, each with its cores, in the order of the first core.
    pub(super) fn wearers(&self) -> Vec<(usize, &'a Base, Vec<u16>)> {
        let mut found: Vec<(usize, &'a Base, Vec<u16>)> = Vec::new();
        for (place, core) in self.cores() {
            let Some((number, base)) = self.worn(place) else { continue };
            match found.iter_mut().find(|entry| entry.0 == number) {
                Some(entry) => entry.2.push(core),
                None => found.push((number, base, vec![core])),
            }
        }
        found
    }

    /// A pattern in nanoseconds; what is not a number is `None`.
    pub(super) fn pattern_ns(&self, pattern: &[f32]) -> Vec<Option<f64>> {
        let ns = |cycles: &f32| Some(self.contents.clock.ns(f64::from(*cycles)));
        pattern.iter().map(ns).map(|v| v.filter(|v| v.is_finite())).collect()
    }

    /// The latency that a base gives line `index` (of the page or 16 KiB block) under a code.
    pub(super) fn expected_ns(&self, base: &Base, code: u16, index: usize) -> Option<f64> {
        let (class, key) = self.split(code);
        let cycles = *base.patterns.get(class)?.get(index ^ key)?;
        Some(self.contents.clock.ns(f64::from(cycles))).filter(|v| v.is_finite())
    }

    /// Class and key of a code.
    pub(super) fn split(&self, code: u16) -> (usize, usize) {
        let period = self.map.period.max(1);
        (usize::from(code / period), usize::from(code % period))
    }

    /// The code of every page of the table in the order of frames, with its frame.
    pub(super) fn codes(&self) -> impl Iterator<Item = (u64, Option<u16>)> + 'a {
        let dram = self.map.level == Level::Dram.as_str();
        self.contents.pages.iter().flat_map(move |block| {
            let codes = if dram { &block.dram } else { &block.llc };
            (block.first_frame..)
                .zip(codes.iter())
                .map(|(frame, code)| (frame, Some(*code).filter(|c| *c != Code::UNKNOWN.0)))
        })
    }

    /// Share of the pages by code: of all decoded pages where the atlas has them, else of the
    /// pages that were learnt from.
    pub(super) fn code_shares(&self) -> &CodeShares {
        self.shares.get_or_init(|| self.count_codes())
    }

    fn count_codes(&self) -> CodeShares {
        let codes = usize::from(self.map.classes) * usize::from(self.map.period);
        let mut counts = vec![0.0_f64; codes.max(self.map.code_share.len()).max(1)];
        for code in self.codes().filter_map(|(_, code)| code) {
            if let Some(count) = counts.get_mut(usize::from(code)) {
                *count += 1.0;
            }
        }
        let decoded = counts.iter().any(|n| *n > 0.0);
        if !decoded {
            for (count, share) in counts.iter_mut().zip(&self.map.code_share) {
                *count = f64::from(*share).max(0.0);
            }
        }
        let total: f64 = counts.iter().sum();
        let shares = (0..).zip(counts).filter(|(_, n)| *n > 0.0);
        CodeShares { all: shares.map(|(code, n)| (code, n / total)).collect(), decoded }
    }

    /// The code of nearly all pages, if there is one.
    pub(super) fn dominant(&self) -> Option<u16> {
        let shares = &self.code_shares().all;
        shares.iter().find(|(_, share)| *share >= NEARLY_ALL).map(|(code, _)| *code)
    }

    /// Share of the pages by class.
    pub(super) fn class_shares(&self) -> Vec<f64> {
        let mut shares = vec![0.0; usize::from(self.map.classes).max(1)];
        for &(code, share) in &self.code_shares().all {
            if let Some(sum) = shares.get_mut(self.split(code).0) {
                *sum += share;
            }
        }
        shares
    }

    /// Keys that can be told apart.
    pub(super) fn distinct_keys(&self) -> usize {
        self.map.canonical_key.iter().collect::<BTreeSet<_>>().len()
    }

    /// Keys that can be told apart and occur. A key on fewer pages than a tenth of an even share
    /// is taken for an error of decoding, which one page in fifty may have.
    pub(super) fn used_keys(&self) -> usize {
        let canonical = |key: usize| self.map.canonical_key.get(key).copied();
        let least = 0.1 / self.distinct_keys().max(1) as f64;
        let often = self.code_shares().all.iter().filter(|(_, share)| *share >= least);
        let keys = often.map(|(code, _)| self.split(*code).1);
        keys.filter_map(canonical).collect::<BTreeSet<u8>>().len()
    }

    /// Nanoseconds from the nearest to the farthest line of a page of one class.
    pub(super) fn spread_ns(&self, base: &Base) -> Option<f64> {
        let spread = |pattern: &Vec<f32>| {
            let values: Vec<f64> = self.pattern_ns(pattern).into_iter().flatten().collect();
            let (lo, hi) = ends(&values)?;
            Some(hi - lo)
        };
        base.patterns.iter().filter_map(spread).reduce(f64::max)
    }

    /// Whether lines of one page differ in this base.
    pub(super) fn has_shape(&self, base: &Base) -> bool {
        let middle = self.class_means_ns(base).into_iter().flatten().reduce(f64::max);
        let spread = self.spread_ns(base).unwrap_or(0.0);
        spread > SAME_LINE * middle.unwrap_or(f64::INFINITY).abs()
    }

    /// Lines after which the pattern of a page repeats, where that is sooner than its end.
    pub(super) fn repeats_every(&self, base: &Base) -> Option<usize> {
        let least = self.contents.clock.hz / 1e9 * SAME_LINE * self.spread_ns(base)?;
        let alike = |pattern: &Vec<f32>, every: usize| {
            let mut pairs = pattern.iter().zip(pattern.iter().skip(every));
            pairs.all(|(a, b)| f64::from((a - b).abs()) <= least)
        };
        let period = usize::from(self.map.period);
        let all = |every: &usize| base.patterns.iter().all(|p| alike(p, *every));
        (1..8).map(|power| 1 << power).take_while(|every| *every < period).find(all)
    }

    /// Mean latency of each class.
    pub(super) fn class_means_ns(&self, base: &Base) -> Vec<Option<f64>> {
        let of = |pattern: &Vec<f32>| {
            mean(&self.pattern_ns(pattern).into_iter().flatten().collect::<Vec<f64>>())
        };
        base.patterns.iter().map(of).collect()
    }

    /// How near the nearest quarter of the lines is to the core at `place`: as measured on
    /// held-out pages, else by its base. `None` where lines do not differ by the form.
    pub(super) fn near(&self, place: usize) -> Option<Near> {
        if self.map.form != Form::Pattern {
            return None;
        }
        let quality = self.quality(place);
        let measured = quality.and_then(|q| Some((q.mean_ns?, q.near_quarter_ns?)));
        let found = measured.or_else(|| self.near_by_base(self.worn(place)?.1));
        let (mean_ns, near_ns) = found?;
        let sound = mean_ns.is_finite() && near_ns.is_finite() && mean_ns > 0.0;
        sound.then_some(Near { mean_ns, near_ns, measured: measured.is_some() })
    }

    /// Mean of all lines and of the nearest quarter by a base, classes weighted by their pages.
    fn near_by_base(&self, base: &Base) -> Option<(f64, f64)> {
        let shares = self.class_shares();
        let mut lines: Vec<(f64, f64)> = Vec::new();
        for (pattern, share) in base.patterns.iter().zip(&shares) {
            lines.extend(self.pattern_ns(pattern).into_iter().flatten().map(|v| (v, *share)));
        }
        lines.sort_by(|a, b| a.0.total_cmp(&b.0));
        let total: f64 = lines.iter().map(|l| l.1).sum();
        if total <= 0.0 {
            return None;
        }
        let (mut left, mut near) = (total / 4.0, 0.0);
        for (value, weight) in &lines {
            let taken = weight.min(left);
            near += value * taken;
            left -= taken;
        }
        let all = lines.iter().map(|(value, weight)| value * weight).sum::<f64>();
        Some((all / total, near / (total / 4.0)))
    }

    /// Correlation of the shapes inside a page that each two different worn bases give.
    pub(super) fn likeness(&self) -> Vec<f64> {
        let worn = self.wearers();
        let shapes: Vec<Vec<f64>> = worn
            .iter()
            .filter(|(_, base, _)| self.has_shape(base))
            .filter_map(|(_, base, _)| base.patterns.first())
            .map(|pattern| pattern.iter().map(|v| f64::from(*v)).collect())
            .collect();
        let pairs = (0..shapes.len()).flat_map(|a| (0..a).map(move |b| (a, b)));
        pairs.filter_map(|(a, b)| pearson(&shapes[a], &shapes[b])).collect()
    }

    /// Latencies of single lines seen by the core at `place`, in nanoseconds, ascending.
    pub(super) fn lines_ns(&self, place: usize) -> Vec<f64> {
        let cycles = self.quality(place).map_or(&[][..], |q| &q.histogram_cycles);
        let mut ns: Vec<f64> = self.pattern_ns(cycles).into_iter().flatten().collect();
        ns.sort_by(f64::total_cmp);
        ns
    }
}

/// Smallest and largest of some values.
pub(super) fn ends(values: &[f64]) -> Option<(f64, f64)> {
    let finite = values.iter().copied().filter(|v| v.is_finite());
    finite.fold(None, |found, v| match found {
        None => Some((v, v)),
        Some((lo, hi)) => Some((v.min(lo), v.max(hi))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{CLASSES, SLICES, genoa, hollow, long_period, mesh};

    fn level(contents: &Contents, level: Level) -> LevelView<'_> {
        LevelView::find(contents, level).unwrap()
    }

    #[test]
    fn near_is_what_was_measured_else_what_the_base_says() {
        let mut contents = genoa();
        let near = level(&contents, Level::Llc).near(0).unwrap();
        assert!(near.measured && (near.share() - 0.14).abs() < 1e-9);
        contents.levels.iter_mut().for_each(|l| l.quality.clear());
        let near = level(&contents, Level::Llc).near(0).unwrap();
        let ns = |cycles: f32| contents.clock.ns(f64::from(cycles));
        assert!(!near.measured);
        assert!((near.near_ns - ns((SLICES[1] + SLICES[3]) / 2.0)).abs() < 1e-9, "{near:?}");
        // A quarter of the pages is in the nearest class, so a quarter of all lines is.
        contents.pages.clear();
        let near = level(&contents, Level::Dram).near(0).unwrap();
        assert!((near.near_ns - contents.clock.ns(f64::from(CLASSES[0]))).abs() < 1e-9);
        assert_eq!(level(&mesh(), Level::Dram).near(0), None, "flat: no near lines");
    }

    #[test]
    fn keys_and_repeats_are_found() {
        let contents = genoa();
        let llc = level(&contents, Level::Llc);
        let base = llc.worn(0).unwrap().1;
        assert_eq!((llc.distinct_keys(), llc.used_keys(), llc.dominant()), (8, 1, Some(0)));
        assert_eq!(llc.repeats_every(base), Some(8));
        let dram = level(&contents, Level::Dram);
        assert!(!dram.has_shape(dram.worn(0).unwrap().1));
        assert_eq!(dram.dominant(), None);
        let contents = mesh();
        let llc = level(&contents, Level::Llc);
        assert_eq!((llc.distinct_keys(), llc.used_keys()), (64, 64));
        assert_eq!(llc.repeats_every(llc.worn(9).unwrap().1), None);
        let contents = long_period();
        let llc = level(&contents, Level::Llc);
        assert_eq!((llc.distinct_keys(), llc.split(200)), (256, (0, 200)));
    }

    #[test]
    fn shares_leave_unknown_pages_out() {
        let mut contents = genoa();
        let dram = level(&contents, Level::Dram);
        let CodeShares { all: shares, decoded } = dram.code_shares();
        assert!(*decoded && shares.len() == 3);
        assert!((shares.iter().map(|s| s.1).sum::<f64>() - 1.0).abs() < 1e-9);
        assert_eq!(dram.codes().filter(|c| c.1.is_none()).count(), 1);
        contents.pages.clear();
        let dram = level(&contents, Level::Dram);
        assert!(!dram.code_shares().decoded);
        assert_eq!(dram.class_shares(), [0.25, 0.25, 0.5]);
    }

    #[test]
    fn cores_that_wear_one_base_stand_together() {
        let mut contents = genoa();
        contents.levels[0].core_base = vec![Some(1), Some(1)];
        let llc = level(&contents, Level::Llc);
        let worn = llc.wearers();
        assert_eq!((worn.len(), worn[0].0, &worn[0].2), (1, 1, &vec![0, 1]));
        assert!(llc.likeness().is_empty());
        let contents = hollow();
        let hollow = level(&contents, Level::Llc);
        assert_eq!(hollow.wearers().len(), 1, "base 9 is not in the dictionary");
        assert_eq!(hollow.near(0), None);
    }
}
