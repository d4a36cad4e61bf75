//! Scores a level on held-out pages: decoded as the memory pass decodes, then timed in full.

use isochrone_atlas_store::contents::{Form, Quality};
use isochrone_stats::{derive_seed, rng, shuffle};
use isochrone_units::{CoreId, LINES_PER_PAGE, PageAddr};

use super::decode::WINDOW;
use super::decoding_core::DecodingCore;
use super::fit::{IS_BASE, resemblance};
use super::learn::{patterns_for, split_code};
use super::level::LevelRun;
use super::number::f32_of;
use super::plan::{BlockPlan, PAGES_PER_BLOCK};
use super::rounds::Stretch;
use super::score::{Score, score};
use crate::target::TargetError;

/// Training pages that are timed beside the held-out ones, to know the base of that moment: as many at
/// least, and as many of each class at most.
const COMPANION_PAGES: usize = 16;
const COMPANIONS_EACH: usize = 4;
/// Times that held-out pages are decoded and timed before a score across a move is accepted.
const SCORINGS: u32 = 4;
/// Pages that are decoded before the held-out ones.
const FILLERS: usize = 2 * WINDOW;
/// Lines whose latencies are kept for the histogram.
const HISTOGRAM_LINES: usize = 4096;

impl LevelRun<'_> {
    /// Held-out pages: decoded from their probe lines, then timed in full from every core. What
    /// was measured across a move of a decoding core is dropped and done again: where two controllers are
    /// equally far from all decoding cores, nothing tells their pages apart, and a map is scored in the
    /// bases that it was decoded in. Also returns the cores whose current base no look had
    /// seen: pages that were one class in all bases seen before may be two in that one.
    pub(super) fn score_all(&mut self) -> Result<(Vec<Quality>, Vec<CoreId>), TargetError> {
        for attempt in 1.. {
            let frames = self.frames(&self.heldout.clone());
            let (decoded, decoding_cores) = self.decode_heldout()?;
            let (mut quality, mut strangers) = (Vec::new(), Vec::new());
            for core in self.cores.clone() {
                if !self.learners.contains(&core) {
                    quality.push(Quality::default());
                    continue;
                }
                // The first is what a level is judged by.
                let leaving = if quality.is_empty() { 0.0 } else { self.scores_leave() };
                if !self.may_go_on(leaving) {
                    self.cut_short = true;
                    quality.push(Quality::default());
                    continue;
                }
                self.watch.step(&format!("{}: scoring {core} on held-out pages", self.level));
                let (found, base) = self.score_core(core, &decoded)?;
                quality.push(found);
                if !self.looked_at(base) {
                    strangers.push(core);
                }
            }
            let last = attempt == SCORINGS || !self.may_go_on(self.scores_leave());
            let loads = decoded.len() * self.learnt.period;
            let gone = self.replaced(self.cores[0], &frames, loads as u64);
            if !gone.is_empty() && !last {
                let block = |page: &PageAddr| page.0 / PAGES_PER_BLOCK;
                self.heldout.retain(|page| gone.iter().all(|g| block(g) != block(page)));
                continue;
            }
            if last || !strangers.is_empty() || self.still_current(&decoding_cores)? {
                return Ok((quality, strangers));
            }
        }
        unreachable!("the last attempt returns")
    }

    fn decode_heldout(&mut self) -> Result<(Vec<u16>, Vec<DecodingCore>), TargetError> {
        if self.learnt.form != Form::Pattern {
            return Ok((vec![0; self.heldout.len()], Vec::new()));
        }
        if self.together.is_none() {
            self.try_together()?;
        }
        let before = self.block_lines(&self.fillers());
        let firsts = [before.clone(), self.block_lines(&self.heldout)].concat();
        let found = self.decode_resuming(&firsts)?;
        // A page that was lost to moves every time is scored as the first code: mostly wrong.
        let codes = found.codes[before.len()..].iter().map(|c| c.unwrap_or(0)).collect();
        Ok((codes, found.decoding_cores))
    }

    /// Pages to decode before the held-out ones. Alone these would all wait until the offset is known, with
    /// ten times the loads that a page of the memory pass gets.
    fn fillers(&self) -> Vec<PageAddr> {
        let blocks = self.target.pages() / PAGES_PER_BLOCK;
        let heldout: Vec<u64> = self.heldout.iter().map(|page| page.0 / PAGES_PER_BLOCK).collect();
        let mut blocks: Vec<u64> = (0..blocks).filter(|block| !heldout.contains(block)).collect();
        shuffle(&mut blocks, &mut rng(derive_seed(self.plan.seed, 51)));
        blocks.truncate(FILLERS / usize::try_from(PAGES_PER_BLOCK).unwrap_or(1));
        let pages = |block: u64| (0..PAGES_PER_BLOCK).map(move |i| block * PAGES_PER_BLOCK + i);
        blocks.into_iter().flat_map(pages).map(PageAddr).collect()
    }

    /// Also returns the number of the base in which it was scored.
    fn score_core(
        &mut self,
        core: CoreId,
        decoded: &[u16],
    ) -> Result<(Quality, usize), TargetError> {
        let mut pages = self.heldout.clone();
        let companions = self.companions();
        let (beside_pages, codes): (Vec<PageAddr>, Vec<u16>) = companions.into_iter().unzip();
        pages.extend(beside_pages);
        let wanted = BlockPlan::rounds(self.plan.heldout_rounds, self.level);
        let rounds = self.time(core, &pages, wanted)?;
        let split = self.heldout.len() * LINES_PER_PAGE;
        let all = pages.len() * LINES_PER_PAGE;
        let full = rounds.stretches[0].part(0..split);
        let beside = rounds.stretches[0].part(split..all);
        let step = self.learnt.period / LINES_PER_PAGE;
        let codes: Vec<u16> = codes.into_iter().step_by(step).collect();
        let now = patterns_for(&beside, &self.learnt, &codes);
        let base = self.best_base(core, &now);
        let found = score(&full, &self.learnt, &self.bases[base].1, decoded);
        Ok((self.quality(&found, &full), base))
    }

    /// Training pages with their codes, whole blocks of them, of every class.
    fn companions(&self) -> Vec<(PageAddr, u16)> {
        let step = self.learnt.period / LINES_PER_PAGE;
        let mut counts = vec![0; self.learnt.classes()];
        let mut chosen = Vec::new();
        for (block, code) in self.training.chunks_exact(step).zip(&self.learnt.codes) {
            let (class, _) = split_code(*code, self.learnt.period);
            if chosen.len() < COMPANION_PAGES || counts[class] < COMPANIONS_EACH {
                chosen.extend(block.iter().map(|page| (*page, *code)));
            }
            counts[class] += 1;
        }
        chosen
    }

    /// Whether some look at the training pages saw this base, or one like it. What a few loads of
    /// references told was put together by the classes that were known, so it cannot split any.
    fn looked_at(&self, number: usize) -> bool {
        let base = &self.bases[number].1;
        let looks = self.bases.iter().filter(|(kept, _)| kept.rounds > 0);
        looks.into_iter().any(|(_, patterns)| resemblance(patterns, base) >= IS_BASE)
    }

    /// The dictionary's base with the pattern that the companions saw, which is all that a score asks for; else what
    /// they saw.
    fn best_base(&mut self, core: CoreId, now: &[Vec<f64>]) -> usize {
        let likeness = |base: &Vec<Vec<f64>>| resemblance(now, base);
        let best = (0..self.bases.len())
            .map(|i| (likeness(&self.bases[i].1), i))
            .max_by(|a, b| a.0.total_cmp(&b.0));
        match best {
            Some((share, i)) if share >= IS_BASE => i,
            // What is measured now says nothing of this level; it is scored by what the core wore.
            Some((_, i)) if self.is_elsewhere(now) => self.worn(core).unwrap_or(i),
            _ => {
                let number = self.keep_base(core, now.to_vec(), 0);
                self.note_base(core, number);
                usize::from(number)
            }
        }
    }

    fn quality(&self, found: &Score, full: &Stretch) -> Quality {
        let learnt = &self.learnt;
        let clock = self.target.clock();
        let ns = |cycles: f64| Some(cycles * 1e9 / clock.hz);
        let pattern = learnt.form == Form::Pattern;
        let values = full.deviations().into_iter().filter(|v| v.is_finite());
        Quality {
            r2_heldout: pattern.then_some(found.r2_heldout),
            r2_ceiling: Some(found.r2_ceiling),
            r2_train: pattern.then_some(learnt.r2_train),
            key_accuracy: pattern.then_some(found.key_accuracy),
            near_regret: found.near_regret.filter(|_| pattern),
            spread_p90_p10: Some(found.spread_p90_p10),
            mean_ns: ns(found.mean_cycles),
            near_quarter_ns: ns(found.near_quarter_cycles).filter(|_| pattern),
            heldout_pages: u32::try_from(self.heldout.len()).unwrap_or(u32::MAX),
            histogram_cycles: values
                .take(HISTOGRAM_LINES)
                .map(|v| f32_of(v + full.level()))
                .collect(),
            ..Quality::default()
        }
    }
}
