//! Decoding passes over many pages: who decodes, in which base, and what to do when a base is lost.

use isochrone_atlas::TABLE_ENTRIES;
use isochrone_atlas_store::contents::{DriftEvent, Quality};
use isochrone_decode::SAFE_ERROR;
use isochrone_units::{LINES_PER_PAGE, LineAddr, PageAddr};

use super::books::{SAME_DISTANCE, canonical_codes};
use super::decode::Decoded;
use super::decoding_core::DecodingCore;
use super::fit::{IS_BASE, resemblance};
use super::learn::{Learnt, split_code, spread};
use super::level::LevelRun;
use super::run::UNKNOWN_CODE;
use super::walsh::{correlate, spectrum};
use crate::target::TargetError;

/// Cores whose present bases are identified to choose decoding cores among.
const JUDGES_MAX: usize = 16;
/// A pair of codes that the chosen cores see less than this share as far apart as the best core
/// does has that core join the decoding cores.
const JUDGE_SHARE: f64 = 0.5;
/// Mean square distance of two codes, as a share of the variance of lines, that one core is enough for.
/// A second decoding core has a price: a line that one core has just read is still in that core's cache when
/// the other times it (seen on a Granite Rapids with `cldemote`: two decoding cores on opposed sides of the
/// mesh gave a fifth of the pages a wrong code, one alone next to none).
const ENOUGH: f64 = 0.1;
/// Times in a row that a pass may decide nothing before the vCPU moves again, and seconds that it may be so: others who
/// have a cache go when their work is done.
const MAX_IN_VAIN: usize = 16;
const MAX_IN_VAIN_S: f64 = 4.0;
/// Times that pages whose class no decoding core could tell are decoded again in a base that tells more.
const SECOND_THOUGHTS: u32 = 3;

/// A decoding pass over pages or blocks.
pub(super) struct Pass {
    pub(super) codes: Vec<Option<u16>>,
    pub(super) cost: Decoded,
    /// Who decoded last, in which base.
    pub(super) decoding_cores: Vec<DecodingCore>,
}

impl LevelRun<'_> {
    pub(super) fn memory_pass(
        &mut self,
        codes: &mut [u16],
        quality: &mut [Quality],
    ) -> Result<(), TargetError> {
        self.watch.step(&format!("{}: the memory pass", self.level));
        let pages: Vec<PageAddr> = (0..codes.len() as u64).map(PageAddr).collect();
        let firsts = self.block_lines(&pages);
        let frames = self.frames(&pages);
        let Pass { codes: mut found, cost, decoding_cores } = self.decode_resuming(&firsts)?;
        let decoders = u32::try_from(decoding_cores.len()).unwrap_or(u32::MAX);
        self.note_given_up(&found);
        mend_rare(&mut found, &self.learnt);
        let step = self.learnt.period / LINES_PER_PAGE;
        for (chunk, code) in codes.chunks_mut(step).zip(&found) {
            chunk.fill(code.unwrap_or(UNKNOWN_CODE));
        }
        // What was decoded in one frame says nothing about another.
        let decoding_core = self.cores[0];
        for page in self.replaced(decoding_core, &frames, 0) {
            codes[usize::try_from(page.0).unwrap_or(usize::MAX)] = UNKNOWN_CODE;
        }
        let known = codes.iter().filter(|c| **c != UNKNOWN_CODE).count();
        if known == 0 {
            return Ok(());
        }
        let blocks = found.iter().flatten().count() as f64;
        let per_page = |seconds: f64| 1e6 * seconds / known as f64;
        let timed = (cost.samples + cost.reference_samples).max(1) as f64;
        // Where several cores decode, a page's time is divided as their time together.
        let wall = cost.total_s / cost.busy_s.max(f64::MIN_POSITIVE);
        let timing_s = wall * cost.timing_s;
        let own = timing_s * cost.samples as f64 / timed;
        let first = &mut quality[0];
        first.decoded_pages = known as u64;
        first.decoding_cores = Some(decoders);
        first.us_per_page = Some(per_page(cost.total_s));
        first.samples_per_page = Some(cost.samples as f64 / blocks);
        first.lines_per_page = Some(cost.lines_read as f64 / blocks);
        first.us_breakdown = vec![
            ("timed loads of the pages".into(), per_page(own)),
            ("reference loads".into(), per_page(timing_s - own)),
            ("decisions".into(), per_page(cost.total_s - timing_s)),
        ];
        Ok(())
    }

    /// Says so where decoding was given up before all was decoded, and not for want of time.
    fn note_given_up(&mut self, found: &[Option<u16>]) {
        let left = found.iter().filter(|code| code.is_none()).count();
        if left > 0 && self.watch.keep_going() {
            self.notes.push(format!(
                "{} latency: {left} of {} pages have no code: their lines were not found where they were put, or \
                 cores were moved, time after time",
                self.level,
                found.len()
            ));
        }
    }

    /// Decodes, identifying the bases first and again whenever one is lost on the way. Pages whose class
    /// no decoding core could tell in the base of the moment are decoded again if a later one tells it.
    pub(super) fn decode_resuming(&mut self, firsts: &[LineAddr]) -> Result<Pass, TargetError> {
        let mut codes: Vec<Option<u16>> = vec![None; firsts.len()];
        let mut cost = Decoded::default();
        let mut decoding_cores = Vec::new();
        let (mut in_vain, mut left) = (0, codes.len() + 1);
        let mut since = self.target.seconds();
        let mut doubts = Doubts::default();
        for attempt in 0_u64.. {
            let open: Vec<usize> = (0..codes.len()).filter(|i| codes[*i].is_none()).collect();
            in_vain += 1;
            if open.len() < left {
                (in_vain, since) = (0, self.target.seconds());
            }
            left = open.len();
            let late = self.target.seconds() - since > MAX_IN_VAIN_S;
            if open.is_empty() || (in_vain >= MAX_IN_VAIN && late) || !self.watch.keep_going() {
                break;
            }
            let candidates = self.candidates()?;
            if candidates.elsewhere {
                continue;
            }
            decoding_cores = self
                .teams(&candidates)
                .iter()
                .flatten()
                .map(|j| candidates.all[*j].clone())
                .collect();
            let todo: Vec<LineAddr> = open.iter().map(|i| firsts[*i]).collect();
            let done = self.decode_once(&todo, &candidates, 9000 + attempt)?;
            self.note_thread_moves(&done);
            for (i, code) in open.iter().zip(&done.codes) {
                codes[*i] = code.filter(|c| *c != UNKNOWN_CODE);
            }
            cost.add(&done);
            if self.learnt.classes() > 1 {
                doubts.note(&canonical_codes(&self.learnt, &decoding_cores), &open, &codes);
            }
            // A pass too short to judge its own references is judged by the current base after it.
            if !done.base_lost && self.still_current(&decoding_cores)? {
                break;
            }
            for place in &done.unverified {
                codes[open[*place]] = None;
            }
            let candidates = self.candidates()?;
            let now: Vec<DecodingCore> = self
                .teams(&candidates)
                .iter()
                .flatten()
                .map(|j| candidates.all[*j].clone())
                .collect();
            doubts.resolve(&canonical_codes(&self.learnt, &now), &mut codes);
        }
        Ok(Pass { codes, cost, decoding_cores })
    }

    /// Whether the base with which each decoding core decoded is still its current one, or one with its pattern: how
    /// far all lines are says nothing of codes.
    pub(super) fn still_current(
        &mut self,
        decoding_cores: &[DecodingCore],
    ) -> Result<bool, TargetError> {
        for decoding_core in decoding_cores {
            let Some(number) = self.ensure_base(decoding_core.core)? else { return Ok(false) };
            if resemblance(&self.bases[number].1, &decoding_core.patterns) < IS_BASE {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The current bases of cores; of them the first core, and as many others as it takes to tell all
    /// codes apart that some core sees apart.
    pub(super) fn candidates(&mut self) -> Result<Candidates, TargetError> {
        let (mut all, mut elsewhere) = (Vec::new(), false);
        for core in self.learners.clone().into_iter().take(JUDGES_MAX) {
            let found = self.ensure_base(core)?;
            elsewhere |= found.is_none();
            let number = found.or_else(|| self.worn(core)).unwrap_or(0);
            all.push(DecodingCore { core, patterns: self.bases[number].1.clone() });
        }
        let seen = seen_together(&self.learnt);
        let gaps: Vec<Vec<f64>> =
            all.iter().map(|decoding_core| gaps(&decoding_core.patterns, &seen)).collect();
        let mut chosen = vec![0];
        let pairs = gaps.first().map_or(0, Vec::len);
        for pair in (0..pairs).map(|pair| gaps.iter().map(|g| g[pair]).collect::<Vec<f64>>()) {
            let gap = |j: usize| pair[j];
            let best = (0..all.len()).max_by(|x, y| gap(*x).total_cmp(&gap(*y))).unwrap_or(0);
            let have = chosen.iter().map(|c| gap(*c)).fold(0.0, f64::max);
            if !Candidates::tells(have, gap(best)) {
                chosen.push(best);
            }
        }
        Ok(Candidates { all, gaps, chosen, elsewhere })
    }

    fn note_thread_moves(&mut self, done: &Decoded) {
        if done.thread_moves > 0 {
            self.drift.push(DriftEvent {
                at_s: self.target.seconds(),
                core: self.cores[0].0,
                kind: "thread moved".into(),
                what: format!(
                    "a decoding thread was found on another core {} time(s) and pinned again; its rounds were \
                     dropped and done again",
                    done.thread_moves
                ),
                dropped_samples: done.moved_samples,
                repaired_ms: None,
            });
        }
    }
}

/// Who could decode, in their current bases.
pub(super) struct Candidates {
    pub(super) all: Vec<DecodingCore>,
    /// For each of them how far apart it sees each pair of codes.
    pub(super) gaps: Vec<Vec<f64>>,
    /// Those who tell all codes apart together.
    pub(super) chosen: Vec<usize>,
    /// Some do not find lines where they were put.
    elsewhere: bool,
}

impl Candidates {
    /// Whether two codes that a core sees `gap` apart are told apart by it, where the best core sees `best`.
    pub(super) fn tells(gap: f64, best: f64) -> bool {
        best <= SAME_DISTANCE || gap >= (JUDGE_SHARE.powi(2) * best).min(ENOUGH)
    }
}

/// For each pair of classes and each XOR of keys whether two training pages have such codes: what no page has
/// need not be told from anything.
fn seen_together(learnt: &Learnt) -> Vec<bool> {
    let mut codes = learnt.codes.clone();
    codes.sort_unstable();
    codes.dedup();
    let (classes, period) = (learnt.classes(), learnt.period);
    let mut seen = vec![false; classes * classes * period];
    for a in &codes {
        for b in &codes {
            let ((class_a, key_a), (class_b, key_b)) =
                (split_code(*a, period), split_code(*b, period));
            seen[(class_a * classes + class_b) * period + (key_a ^ key_b)] = true;
        }
    }
    seen
}

/// For each pair of classes and XOR of keys that is `seen` the mean square distance of the patterns, as a
/// share of the variance of lines on a node: how well one core tells two codes apart.
fn gaps(patterns: &[Vec<f64>], seen: &[bool]) -> Vec<f64> {
    let spread = spread(patterns).max(f64::MIN_POSITIVE);
    let spectra: Vec<Vec<f64>> = patterns.iter().map(|p| spectrum(p, p.len())).collect();
    let square = |pattern: &[f64]| pattern.iter().map(|v| v * v).sum::<f64>();
    let mut gaps = Vec::new();
    for (a, of_a) in patterns.iter().zip(&spectra) {
        for (b, of_b) in patterns.iter().zip(&spectra) {
            let both = square(a) + square(b);
            let products = correlate(of_a, of_b, a.len());
            let distance = |product: f64| (both - 2.0 * product).max(0.0) / a.len() as f64;
            gaps.extend(products.into_iter().map(|product| distance(product) / spread));
        }
    }
    gaps.iter().zip(seen).filter(|(_, seen)| **seen).map(|(gap, _)| *gap).collect()
}

/// Pages that got the code which stands for several.
#[derive(Default)]
struct Doubts {
    pages: Vec<(usize, u16)>,
    resolved: u32,
}

impl Doubts {
    /// Notes which of the pages just decoded could as well have another code; `canonical` has for
    /// each code the one that stands for it.
    fn note(&mut self, canonical: &[u16], open: &[usize], codes: &[Option<u16>]) {
        let unsure = ambiguous(canonical);
        let doubtful =
            |page: &usize| codes[*page].filter(|c| unsure[usize::from(*c)]).map(|c| (*page, c));
        self.pages.extend(open.iter().filter_map(doubtful));
    }

    /// Takes back the codes that what `canonical` stands for now could tell.
    fn resolve(&mut self, canonical: &[u16], codes: &mut [Option<u16>]) {
        let unsure = ambiguous(canonical);
        if self.resolved == SECOND_THOUGHTS
            || self.pages.iter().all(|(_, code)| unsure[usize::from(*code)])
        {
            return;
        }
        self.resolved += 1;
        for (page, _) in self.pages.extract_if(.., |(_, code)| !unsure[usize::from(*code)]) {
            codes[page] = None;
        }
    }
}

/// For each code whether it stands for more than itself.
fn ambiguous(canonical: &[u16]) -> [bool; TABLE_ENTRIES] {
    let mut unsure = [false; TABLE_ENTRIES];
    for (code, stands) in (0_u16..).zip(canonical) {
        // Keys alike are one code everywhere; only classes come apart in another base.
        unsure[usize::from(*stands)] |= stands >> 6 != code >> 6;
    }
    unsure
}

/// A code that no training page had and that comes less often than wrong decisions do, is one:
/// such pages more likely have the code that is most common. (Shares seen in the whole pass are a
/// better prior than those of the training pages; this is where the two would differ.)
fn mend_rare(found: &mut [Option<u16>], learnt: &Learnt) {
    let mut counts = [0_usize; TABLE_ENTRIES];
    for code in found.iter().flatten() {
        counts[usize::from(*code)] += 1;
    }
    let known: usize = counts.iter().sum();
    let others = learnt.distinct_codes().len().saturating_sub(1).max(1);
    let errors = f64::from(SAFE_ERROR) * known as f64 / others as f64;
    let Some(common) = (0_u16..).take(TABLE_ENTRIES).max_by_key(|code| counts[usize::from(*code)])
    else {
        return;
    };
    for code in found.iter_mut().flatten() {
        let is_rare = (counts[usize::from(*code)] as f64) < errors;
        if is_rare && !learnt.codes.contains(code) {
            *code = common;
        }
    }
}

impl Decoded {
    /// Adds what something else cost.
    pub(super) fn add(&mut self, other: &Self) {
        self.samples += other.samples;
        self.reference_samples += other.reference_samples;
        self.lines_read += other.lines_read;
        self.timing_s += other.timing_s;
        self.busy_s += other.busy_s;
        self.total_s += other.total_s;
        self.thread_moves += other.thread_moves;
        self.moved_samples += other.moved_samples;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_rarer_than_errors_are_errors_unless_they_were_learnt() {
        let learnt = |codes: Vec<u16>| Learnt {
            keyed: true,
            canonical_key: (0..64).map(|key| key % 8).collect(),
            codes,
            ..Learnt::nothing()
        };
        let mut found: Vec<Option<u16>> = vec![Some(0); 100_000];
        found[7] = Some(5);
        found[9] = None;
        found[1000..1500].fill(Some(3));
        let (mut seen, mut unseen) = (found.clone(), found);
        mend_rare(&mut seen, &learnt(vec![0, 0, 5]));
        assert_eq!((seen[7], seen[9], seen[1200]), (Some(5), None, Some(3)));
        mend_rare(&mut unseen, &learnt(vec![0, 0, 0]));
        assert_eq!((unseen[7], unseen[9], unseen[1200]), (Some(0), None, Some(3)));
    }

    #[test]
    fn only_codes_that_pages_have_need_a_decoding_core() {
        let learnt = Learnt {
            keyed: true,
            canonical_key: (0..64).collect(),
            patterns: vec![vec![0.0; 64]; 2],
            codes: vec![4, 12, 64, 4, 12],
            ..Learnt::nothing()
        };
        let seen = seen_together(&learnt);
        let pairs: Vec<usize> = (0..seen.len()).filter(|pair| seen[*pair]).collect();
        // In the first class keys 4 and 12, the second with key 0.
        assert_eq!(pairs, [0, 8, 64 + 4, 64 + 12, 128 + 4, 128 + 12, 192]);
        let step: Vec<f64> = (0..64).map(|i| f64::from(u8::from(i & 8 == 0))).collect();
        let found = gaps(&[step.clone(), step], &seen);
        assert_eq!(found.len(), pairs.len());
        assert!(found[0].abs() < 1e-9 && found[1] > 1.0 && found[2].abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn a_page_is_decoded_again_once_its_class_can_be_told() {
        // Classes 0 and 1 look alike at first; then all three differ.
        let classes = |stands: [u16; 3]| -> Vec<u16> {
            stands.iter().flat_map(|class| (0..64).map(move |_| class << 6)).collect()
        };
        let mut codes = vec![Some(0), Some(2 << 6), None];
        let mut doubts = Doubts::default();
        doubts.note(&classes([0, 0, 2]), &[0, 1, 2], &codes);
        doubts.resolve(&classes([0, 0, 2]), &mut codes);
        assert_eq!(codes, [Some(0), Some(2 << 6), None], "nothing new is known");
        doubts.resolve(&classes([0, 1, 2]), &mut codes);
        assert_eq!(codes, [None, Some(2 << 6), None]);
    }
}
