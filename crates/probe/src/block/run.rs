//! Runs the block experiment: learn on some pages, score on others, decode the rest.

use isochrone_atlas::{Noise, Penalties};
use isochrone_atlas_store::contents::{Base, DriftEvent, Form, LevelMap, PageBlock, Quality};
use isochrone_stats::{derive_seed, mean};
use isochrone_units::{CoreId, LINES_PER_PAGE, Level, LineAddr, PageAddr};

use super::base::{IS_BASE, References, Worn, identify, resemblance, retry};
use super::decode::{DecodePlan, Decoded, Judge, decode};
use super::learn::{Learnt, learn, patterns_for};
use super::lines::choose_lines;
use super::moves::Repaired;
use super::plan::{BlockPlan, PAGES_PER_BLOCK};
use super::residuals::penalties;
use super::rounds::{Rounds, RoundsPlan, Stretch, time_rounds};
use super::score::{Score, score};
use crate::target::{Target, TargetError};
use crate::watch::Watch;

/// The code of a page that is not known.
pub const UNKNOWN_CODE: u8 = isochrone_atlas::Code::UNKNOWN.0;
/// Training pages that are timed beside the held-out ones, to know the base of that moment.
const COMPANION_PAGES: usize = 16;
/// Looks at a level before it is believed that the form does not hold there, or that a base which
/// turned up while scoring splits no class.
const LOOKS: u32 = 3;
/// Times that held-out pages are decoded and timed before a score across a move is accepted.
const SCORINGS: u32 = 4;
/// Rounds of a stretch that is not the longest before it is learnt from too.
const ENOUGH_ROUNDS: u32 = 48;
/// Cores whose present bases are identified to choose judges among.
const JUDGES_MAX: usize = 16;
/// A pair of classes that the chosen cores see less than this share as far apart as the best core
/// does has that core join the judges.
const JUDGE_SHARE: f64 = 0.5;
/// Times that a pass is taken up again after the vCPU moved.
const MAX_RESUMES: usize = 16;
/// Lines whose latencies are kept for the histogram.
const HISTOGRAM_LINES: usize = 4096;

/// Everything that the block experiment found.
#[derive(Clone, Debug, Default)]
pub struct BlockMap {
    /// One entry a level.
    pub levels: Vec<LevelMap>,
    /// Codes by frame, if frames can be known.
    pub pages: Vec<PageBlock>,
    /// Codes by arena page: LLC, DRAM. [`UNKNOWN_CODE`] where not decoded.
    pub codes: [Vec<u8>; 2],
    /// Moves and replaced frames.
    pub drift: Vec<DriftEvent>,
    /// Levels that could not be mapped, and why, in one line each.
    pub missing: Vec<String>,
    /// Whether every step was done.
    pub complete: bool,
}

/// Maps all levels of the plan on all cores of the target.
///
/// # Errors
/// What the target refuses at every level; a level that alone is refused is named in
/// [`BlockMap::missing`], and the others are mapped.
pub fn map_blocks(
    target: &mut dyn Target,
    plan: &BlockPlan,
    methods: &dyn Fn(Level) -> String,
    watch: &mut dyn Watch,
) -> Result<BlockMap, TargetError> {
    let mut map = BlockMap::default();
    let pages = usize::try_from(plan.memory_pages.min(target.pages())).unwrap_or(usize::MAX);
    map.codes = [vec![UNKNOWN_CODE; pages], vec![UNKNOWN_CODE; pages]];
    for level in &plan.levels {
        let mut repaired = Repaired::new(target);
        let mut run = LevelRun::new(&mut repaired, plan, *level, watch);
        let found = run.all(&mut map.codes[*level as usize], methods(*level));
        let drift = std::mem::take(&mut run.drift);
        map.drift.extend(drift);
        map.drift.extend(repaired.take_moves().iter().map(DriftEvent::from));
        match found {
            Ok(found) => map.levels.push(found),
            Err(error) => map.missing.push(format!("{level} latency: {error}")),
        }
    }
    if map.levels.is_empty() && !map.missing.is_empty() {
        return Err(TargetError::Unsupported(map.missing.join("; ")));
    }
    map.drift.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
    map.pages = by_frame(target, &map.codes);
    map.complete = watch.keep_going();
    Ok(map)
}

/// Groups arena pages by the frames they lie in.
fn by_frame(target: &mut dyn Target, codes: &[Vec<u8>; 2]) -> Vec<PageBlock> {
    let mut blocks = std::collections::BTreeMap::new();
    for (page, (llc, dram)) in codes[0].iter().zip(&codes[1]).enumerate() {
        if *llc == UNKNOWN_CODE && *dram == UNKNOWN_CODE {
            continue;
        }
        let Some(frame) = target.frame(PageAddr(page as u64)) else { continue };
        let block = blocks.entry(frame / 512).or_insert_with(|| PageBlock {
            first_frame: frame / 512 * 512,
            llc: Box::new([UNKNOWN_CODE; 512]),
            dram: Box::new([UNKNOWN_CODE; 512]),
        });
        let place = usize::try_from(frame % 512).unwrap_or(0);
        block.llc[place] = *llc;
        block.dram[place] = *dram;
    }
    blocks.into_values().collect()
}

struct LevelRun<'a> {
    target: &'a mut dyn Target,
    plan: &'a BlockPlan,
    level: Level,
    watch: &'a mut dyn Watch,
    cores: Vec<CoreId>,
    training: Vec<PageAddr>,
    heldout: Vec<PageAddr>,
    /// Every stretch over the training pages that is long enough to learn from, with its core.
    looks: Vec<(CoreId, Stretch)>,
    learnt: Learnt,
    bases: Vec<(Base, Vec<Vec<f64>>)>,
    worn: Vec<Option<u16>>,
    references: References,
    noise: f64,
    penalties: Penalties,
    probe_lines: Vec<u8>,
    drift: Vec<DriftEvent>,
}

impl<'a> LevelRun<'a> {
    fn new(
        target: &'a mut dyn Target,
        plan: &'a BlockPlan,
        level: Level,
        watch: &'a mut dyn Watch,
    ) -> Self {
        let cores = target.cores().to_vec();
        let (training, heldout) = plan.choose_pages(target.pages());
        let worn = vec![None; cores.len()];
        Self {
            target,
            plan,
            level,
            watch,
            cores,
            training,
            heldout,
            looks: Vec::new(),
            learnt: Learnt::nothing(),
            bases: Vec::new(),
            worn,
            references: References::default(),
            noise: 0.0,
            penalties: Noise::heavy_tailed(1.0).into(),
            probe_lines: Vec::new(),
            drift: Vec::new(),
        }
    }

    fn all(&mut self, codes: &mut [u8], method: String) -> Result<LevelMap, TargetError> {
        let mut strangers = self.cores.clone();
        let mut quality = Vec::new();
        for attempt in 1..=LOOKS {
            for core in strangers {
                if self.looks.is_empty() || self.watch.keep_going() {
                    self.look(core)?;
                }
            }
            self.learn();
            let again = attempt < LOOKS && self.watch.keep_going();
            // Another tenant may have had the cache for a moment: not believed at first sight.
            if self.learnt.form == Form::PerLine && again {
                strangers = self.cores.clone();
                continue;
            }
            (quality, strangers) = self.score_all()?;
            if strangers.is_empty() || !again {
                break;
            }
        }
        if self.learnt.form == Form::Pattern && self.watch.keep_going() {
            self.memory_pass(codes, &mut quality)?;
        } else if self.learnt.form == Form::Flat {
            codes.fill(0);
        }
        Ok(self.level_map(method, quality))
    }

    /// Times the training pages from a core, in whatever base it wears now.
    fn look(&mut self, core: CoreId) -> Result<(), TargetError> {
        self.watch.step(&format!("{}: learning what {core} sees", self.level));
        let rounds = self.time_training(core)?;
        for (i, stretch) in rounds.stretches.into_iter().enumerate() {
            if i == 0 || stretch.rounds >= ENOUGH_ROUNDS {
                self.looks.push((core, stretch));
            }
        }
        Ok(())
    }

    /// Learns form, codes and the dictionary of bases from all looks so far.
    fn learn(&mut self) {
        let pages = self.training.len() * LINES_PER_PAGE;
        self.looks.retain(|(_, stretch)| stretch.lines() == pages);
        let stretches: Vec<&Stretch> = self.looks.iter().map(|l| &l.1).collect();
        self.learnt = learn(&stretches);
        self.noise = stretches[0].noise();
        self.penalties = penalties(stretches[0].residuals(), self.noise);
        self.bases.clear();
        for (core, stretch) in std::mem::take(&mut self.looks) {
            let patterns = patterns_for(&stretch, &self.learnt, &self.learnt.codes);
            let number = self.keep_base(core, patterns, stretch.rounds);
            self.wear(core, number);
            self.looks.push((core, stretch));
        }
        self.references = References::new(&self.training, &self.learnt);
        self.probe_lines = choose_lines(&self.learnt, self.noise);
    }

    fn time_training(&mut self, core: CoreId) -> Result<Rounds, TargetError> {
        let wanted = BlockPlan::rounds(self.plan.training_rounds, self.level);
        for _ in 0..3 {
            let frames = self.frames(&self.training.clone());
            let rounds = self.time(core, &self.training.clone(), wanted)?;
            let gone = self.replaced(core, &frames, &rounds);
            if gone.is_empty() {
                return Ok(rounds);
            }
            // Whole blocks, else a period of 256 lines would begin in the middle of one.
            let block = |page: &PageAddr| page.0 / PAGES_PER_BLOCK;
            self.training.retain(|page| gone.iter().all(|g| block(g) != block(page)));
        }
        self.time(core, &self.training.clone(), wanted)
    }

    fn time(
        &mut self,
        core: CoreId,
        pages: &[PageAddr],
        wanted: u32,
    ) -> Result<Rounds, TargetError> {
        let stream = u64::from(core.0) * 8 + self.level as u64 + self.drift.len() as u64 * 4096;
        let plan = RoundsPlan {
            core,
            level: self.level,
            rounds: wanted,
            max_rounds: wanted * 4,
            max_seconds: self.plan.max_seconds,
            seed: derive_seed(self.plan.seed, 100 + stream),
        };
        let watch: &dyn Watch = self.watch;
        let rounds = time_rounds(self.target, pages, &plan, &|| watch.keep_going())?;
        self.note_changes(core, &rounds);
        Ok(rounds)
    }

    fn note_changes(&mut self, core: CoreId, rounds: &Rounds) {
        let lines = rounds.lines as u64;
        for change in &rounds.changes {
            self.drift.push(DriftEvent {
                at_s: change.at_s,
                core: core.0,
                kind: "base changed".into(),
                what: format!(
                    "{core} sees another {} pattern; the round was dropped and its base is timed again",
                    self.level
                ),
                dropped_samples: lines,
                repaired_ms: None,
            });
        }
    }

    fn frames(&mut self, pages: &[PageAddr]) -> Vec<(PageAddr, Option<u64>)> {
        pages.iter().map(|p| (*p, self.target.frame(*p))).collect()
    }

    /// Pages whose frame is no longer the one noted; each is named.
    fn replaced(
        &mut self,
        core: CoreId,
        before: &[(PageAddr, Option<u64>)],
        timed: &Rounds,
    ) -> Vec<PageAddr> {
        let mut gone = Vec::new();
        for (page, old) in before {
            let new = self.target.frame(*page);
            if old.is_some() && new != *old {
                gone.push(*page);
            }
        }
        if !gone.is_empty() {
            let names: Vec<String> = gone.iter().take(4).map(|p| p.0.to_string()).collect();
            self.drift.push(DriftEvent {
                at_s: self.target.seconds(),
                core: core.0,
                kind: "frame replaced".into(),
                what: format!(
                    "{} page(s) were given another frame while timed (arena page {}); left out, the others timed again",
                    gone.len(),
                    names.join(", ")
                ),
                dropped_samples: timed.loads(),
                // Nothing to repair: no base is lost with a page.
                repaired_ms: None,
            });
        }
        gone
    }

    fn keep_base(&mut self, core: CoreId, patterns: Vec<Vec<f64>>, rounds: u32) -> u16 {
        let stored = patterns.iter().map(|p| p.iter().map(|v| f32_of(*v)).collect()).collect();
        self.bases.push((Base { core: core.0, patterns: stored, rounds }, patterns));
        u16::try_from(self.bases.len() - 1).unwrap_or(u16::MAX)
    }

    fn wear(&mut self, core: CoreId, number: u16) {
        if let Some(place) = self.cores.iter().position(|c| *c == core) {
            self.worn[place] = Some(number);
        }
    }

    /// First lines of the pages or, with a period of 256, of the blocks.
    fn block_lines(&self, pages: &[PageAddr]) -> Vec<LineAddr> {
        let step = self.learnt.period / LINES_PER_PAGE;
        pages.iter().step_by(step).map(|p| p.line(0)).collect()
    }

    /// Makes sure that the base which `core` wears is the one noted; names a change.
    fn ensure_base(&mut self, core: CoreId) -> Result<usize, TargetError> {
        let begin = self.target.seconds();
        let dictionary: Vec<Vec<Vec<f64>>> = self.bases.iter().map(|b| b.1.clone()).collect();
        let seed = derive_seed(self.plan.seed, 7000 + self.drift.len() as u64);
        let level = self.level;
        let references = &self.references;
        let target = &mut *self.target;
        let worn =
            retry(|| identify(target, core, level, references, &self.learnt, &dictionary, seed))?;
        let number = match worn {
            Worn::Known(i) => u16::try_from(i).unwrap_or(u16::MAX),
            Worn::New(patterns) => self.keep_base(core, patterns, 0),
        };
        let place = self.cores.iter().position(|c| *c == core).unwrap_or(0);
        let before = self.worn[place].replace(number);
        let same = before.is_none_or(|b| self.alike(usize::from(b), usize::from(number)));
        if !same {
            let now = self.target.seconds();
            self.drift.push(DriftEvent {
                at_s: now,
                core: core.0,
                kind: "base changed".into(),
                what: format!("{core} wears another {} base; it was identified anew", self.level),
                dropped_samples: 0,
                repaired_ms: Some(1e3 * (now - begin)),
            });
        }
        Ok(usize::from(number))
    }

    fn alike(&self, a: usize, b: usize) -> bool {
        a == b || resemblance(&self.bases[a].1, &self.bases[b].1) >= IS_BASE
    }

    /// Held-out pages: decoded from their probe lines, then timed in full from every core. What
    /// was measured across a move of a judge is dropped and done again: where two controllers are
    /// equally far from all judges, nothing tells their pages apart, and a map is scored in the
    /// bases that it was decoded in. Also returns the cores that wore a base which no look had
    /// seen.
    fn score_all(&mut self) -> Result<(Vec<Quality>, Vec<CoreId>), TargetError> {
        for attempt in 1.. {
            let (decoded, judges) = self.decode_heldout()?;
            let (mut quality, mut strangers) = (Vec::new(), Vec::new());
            for core in self.cores.clone() {
                if !self.watch.keep_going() {
                    quality.push(Quality::default());
                    continue;
                }
                self.watch.step(&format!("{}: scoring {core} on held-out pages", self.level));
                let known = self.bases.len();
                quality.push(self.score_core(core, &decoded)?);
                if self.bases.len() > known {
                    strangers.push(core);
                }
            }
            let last = attempt == SCORINGS || !self.watch.keep_going();
            if last || !strangers.is_empty() || self.still_worn(&judges)? {
                return Ok((quality, strangers));
            }
        }
        unreachable!("the last attempt returns")
    }

    fn decode_heldout(&mut self) -> Result<(Vec<u8>, Vec<Judge>), TargetError> {
        if self.learnt.form != Form::Pattern {
            return Ok((vec![0; self.heldout.len()], Vec::new()));
        }
        let firsts = self.block_lines(&self.heldout);
        let found = self.decode_resuming(&firsts)?;
        // A page that was lost to moves every time is scored as the first code: mostly wrong.
        let codes = found.codes.iter().map(|c| c.unwrap_or(0)).collect();
        Ok((codes, found.judges))
    }

    fn score_core(&mut self, core: CoreId, decoded: &[u8]) -> Result<Quality, TargetError> {
        let mut pages = self.heldout.clone();
        pages.extend(self.training.iter().take(COMPANION_PAGES));
        let wanted = BlockPlan::rounds(self.plan.heldout_rounds, self.level);
        let rounds = self.time(core, &pages, wanted)?;
        let split = self.heldout.len() * LINES_PER_PAGE;
        let all = pages.len() * LINES_PER_PAGE;
        let full = rounds.stretches[0].part(0..split);
        let beside = rounds.stretches[0].part(split..all);
        let blocks = (all - split) / self.learnt.period;
        let now = patterns_for(&beside, &self.learnt, &self.learnt.codes[..blocks]);
        let patterns = self.best_base(core, &now, rounds.stretches[0].rounds);
        let found = score(&full, &self.learnt, &patterns, decoded);
        Ok(self.quality(&found, &full))
    }

    /// The dictionary's base that fits what the companions saw, else what they saw.
    fn best_base(&mut self, core: CoreId, now: &[Vec<f64>], rounds: u32) -> Vec<Vec<f64>> {
        let likeness = |base: &Vec<Vec<f64>>| resemblance(now, base);
        let best = (0..self.bases.len())
            .map(|i| (likeness(&self.bases[i].1), i))
            .max_by(|a, b| a.0.total_cmp(&b.0));
        match best {
            Some((share, i)) if share >= IS_BASE => self.bases[i].1.clone(),
            _ => {
                let number = self.keep_base(core, now.to_vec(), rounds);
                self.wear(core, number);
                now.to_vec()
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

    fn memory_pass(
        &mut self,
        codes: &mut [u8],
        quality: &mut [Quality],
    ) -> Result<(), TargetError> {
        self.watch.step(&format!("{}: the memory pass", self.level));
        let pages: Vec<PageAddr> = (0..codes.len() as u64).map(PageAddr).collect();
        let firsts = self.block_lines(&pages);
        let Pass { codes: found, cost, .. } = self.decode_resuming(&firsts)?;
        let step = self.learnt.period / LINES_PER_PAGE;
        for (chunk, code) in codes.chunks_mut(step).zip(&found) {
            chunk.fill(code.unwrap_or(UNKNOWN_CODE));
        }
        let known = codes.iter().filter(|c| **c != UNKNOWN_CODE).count();
        let blocks = found.iter().flatten().count().max(1) as f64;
        let per_page = |seconds: f64| 1e6 * seconds / known.max(1) as f64;
        let timed = (cost.samples + cost.reference_samples).max(1) as f64;
        let own = cost.timing_s * cost.samples as f64 / timed;
        let first = &mut quality[0];
        first.decoded_pages = known as u64;
        first.us_per_page = Some(per_page(cost.total_s));
        first.samples_per_page = Some(cost.samples as f64 / blocks);
        first.lines_per_page = Some(cost.lines_read as f64 / blocks);
        first.us_breakdown = vec![
            ("timed loads of the pages".into(), per_page(own)),
            ("reference loads".into(), per_page(cost.timing_s - own)),
            ("decisions".into(), per_page(cost.total_s - cost.timing_s)),
        ];
        Ok(())
    }

    /// Decodes, identifying the bases first and again whenever one is lost on the way.
    fn decode_resuming(&mut self, firsts: &[LineAddr]) -> Result<Pass, TargetError> {
        let mut codes: Vec<Option<u8>> = vec![None; firsts.len()];
        let mut cost = Decoded::default();
        let mut judges = Vec::new();
        for attempt in 0..MAX_RESUMES {
            let open: Vec<usize> = (0..codes.len()).filter(|i| codes[*i].is_none()).collect();
            if open.is_empty() || !self.watch.keep_going() {
                break;
            }
            judges = self.judges()?;
            let todo: Vec<LineAddr> = open.iter().map(|i| firsts[*i]).collect();
            let plan = DecodePlan {
                judges: &judges,
                level: self.level,
                learnt: &self.learnt,
                penalties: &self.penalties,
                lines: &self.probe_lines,
                noise: self.noise,
                references: &self.references,
                seed: derive_seed(self.plan.seed, 9000 + attempt as u64),
            };
            let watch: &dyn Watch = self.watch;
            let done = decode(self.target, &todo, &plan, &|| watch.keep_going())?;
            for (i, code) in open.iter().zip(&done.codes) {
                codes[*i] = code.filter(|c| *c != UNKNOWN_CODE);
            }
            cost.add(&done);
            // A pass too short to judge its own references is judged by what is worn after it.
            if !done.base_lost && self.still_worn(&judges)? {
                break;
            }
            for place in &done.unverified {
                codes[open[*place]] = None;
            }
        }
        Ok(Pass { codes, cost, judges })
    }

    /// Whether every judge wears the base that it decoded with.
    fn still_worn(&mut self, judges: &[Judge]) -> Result<bool, TargetError> {
        for judge in judges {
            let number = self.ensure_base(judge.core)?;
            if resemblance(&self.bases[number].1, &judge.patterns) < IS_BASE {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The first core in its present base, and as many others as it takes to tell all classes
    /// of pages apart.
    fn judges(&mut self) -> Result<Vec<Judge>, TargetError> {
        let asked = if self.learnt.classes() > 1 { self.cores.len().min(JUDGES_MAX) } else { 1 };
        let mut all = Vec::new();
        for core in self.cores.clone().into_iter().take(asked) {
            let number = self.ensure_base(core)?;
            all.push(Judge { core, patterns: self.bases[number].1.clone() });
        }
        let centre = |j: usize, class: usize| mean(&all[j].patterns[class]).unwrap_or(0.0);
        let gap = |j: usize, a: usize, b: usize| (centre(j, a) - centre(j, b)).abs();
        let mut chosen = vec![0];
        let classes = self.learnt.classes();
        for (a, b) in (0..classes).flat_map(|a| (0..a).map(move |b| (a, b))) {
            let best = (0..all.len()).max_by(|x, y| gap(*x, a, b).total_cmp(&gap(*y, a, b)));
            let best = best.unwrap_or(0);
            let have = chosen.iter().map(|c| gap(*c, a, b)).fold(0.0, f64::max);
            if have < JUDGE_SHARE * gap(best, a, b) {
                chosen.push(best);
            }
        }
        Ok(chosen.iter().map(|c| all[*c].clone()).collect())
    }

    fn level_map(&mut self, method: String, quality: Vec<Quality>) -> LevelMap {
        let lines = self.measured_lines();
        let learnt = &self.learnt;
        let total = learnt.codes.len().max(1) as f32;
        let mut code_share = vec![0.0_f32; 256];
        for code in &learnt.codes {
            code_share[usize::from(*code)] += 1.0 / total;
        }
        LevelMap {
            level: self.level.as_str().into(),
            form: learnt.form,
            reason: learnt.reason.clone(),
            method,
            period: u16::try_from(learnt.period).unwrap_or(64),
            classes: u8::try_from(learnt.classes()).unwrap_or(1),
            canonical_key: learnt.canonical_key.clone(),
            bases: self.bases.iter().map(|b| b.0.clone()).collect(),
            core_base: self.worn.clone(),
            probe_lines: self.probe_lines.clone(),
            noise_cycles: self.noise,
            code_share,
            quality,
            lines,
        }
    }

    /// Where the form does not hold: the training pages, line by line, by frame (or arena page
    /// where frames cannot be known).
    fn measured_lines(&mut self) -> Vec<(u64, u16, Vec<f32>)> {
        if self.learnt.form != Form::PerLine {
            return Vec::new();
        }
        let frames: Vec<u64> =
            self.training.iter().map(|p| self.target.frame(*p).unwrap_or(p.0)).collect();
        let mut lines = Vec::new();
        for core in &self.cores {
            let look = self.looks.iter().rev().find(|l| l.0 == *core);
            let Some((_, stretch)) = look else { continue };
            let values: Vec<f32> =
                stretch.deviations().iter().map(|v| f32_of(v + stretch.level())).collect();
            let pages = frames.iter().zip(values.chunks_exact(LINES_PER_PAGE));
            lines.extend(pages.map(|(frame, row)| (*frame, core.0, row.to_vec())));
        }
        lines
    }
}

/// A decoding pass over pages or blocks.
struct Pass {
    codes: Vec<Option<u8>>,
    cost: Decoded,
    /// Who decoded last, in which base.
    judges: Vec<Judge>,
}

impl Decoded {
    fn add(&mut self, other: &Self) {
        self.samples += other.samples;
        self.reference_samples += other.reference_samples;
        self.lines_read += other.lines_read;
        self.timing_s += other.timing_s;
        self.total_s += other.total_s;
    }
}

#[allow(clippy::cast_possible_truncation, reason = "latencies fit an f32")]
fn f32_of(value: f64) -> f32 {
    value as f32
}
