//! One level of the block experiment: time the training pages from every core, learn form, codes and
//! bases from them, and keep the book of current bases.

use std::time::Duration;

use isochrone_atlas::{Noise, Penalties};
use isochrone_atlas_store::contents::{Base, DriftEvent, Form, LevelMap, Quality};
use isochrone_stats::derive_seed;
use isochrone_units::{CoreId, LINES_PER_PAGE, Level, LineAddr, PageAddr};

use super::base::{References, retry};
use super::dictionary::Farther;
use super::learn::{Learnt, learn, patterns_for};
use super::left_out::LeftOut;
use super::lines::choose_lines;
use super::number::f32_of;
use super::plan::{BlockPlan, PAGES_PER_BLOCK};
use super::residuals::penalties;
use super::rounds::{Rounds, RoundsPlan, Stretch, time_rounds};
use super::survey::{Survey, far_pages};
use crate::target::{Target, TargetError};
use crate::watch::Watch;

/// Looks at a level before it is believed that the form does not hold there, or that a base which
/// turned up while scoring splits no class.
const LOOKS: u32 = 3;
/// Looks before that is believed however little time they took.
const MOST_LOOKS: u32 = 5;
/// Rounds of a stretch that is not the longest before it is learnt from too.
const ENOUGH_ROUNDS: u32 = 48;
/// Of a level's time, where there is a limit, what looks leave to what comes after them, and what scores leave to the
/// pass over the memory.
const LOOKS_LEAVE: f64 = 0.4;
pub(super) const SCORES_LEAVE: f64 = 0.2;
/// What scores leave to cores that are verified besides.
const OTHERS_HAVE: f64 = 0.15;
/// How long looks are repeated while the form does not seem to hold, in times of what one set of rounds may
/// take: the host may be moving vCPUs, or memory, meanwhile.
const PATIENCE: f64 = 4.0;

pub(super) struct LevelRun<'a> {
    pub(super) target: &'a mut dyn Target,
    pub(super) plan: &'a BlockPlan,
    pub(super) level: Level,
    pub(super) watch: &'a mut dyn Watch,
    /// Time that there was for the level, if there is a limit.
    time: Option<Duration>,
    pub(super) cores: Vec<CoreId>,
    /// Those of them that are learnt in full. The others are verified.
    pub(super) learners: Vec<CoreId>,
    pub(super) training: Vec<PageAddr>,
    /// Those of them, at the end, that were sought.
    sought: Vec<PageAddr>,
    pub(super) heldout: Vec<PageAddr>,
    /// Every stretch over the training pages that is long enough to learn from, with its core.
    pub(super) looks: Vec<(CoreId, Stretch)>,
    /// What splits classes that are one in all looks: page means and their error, cycles.
    pub(super) splits: Vec<(Vec<f64>, f64)>,
    /// A split was found since form and codes were learnt last.
    pub(super) outgrown: bool,
    pub(super) learnt: Learnt,
    pub(super) bases: Vec<(Base, Vec<Vec<f64>>)>,
    pub(super) current: Vec<Option<u16>>,
    pub(super) references: References,
    pub(super) noise: f64,
    pub(super) penalties: Penalties,
    pub(super) probe_lines: Vec<u8>,
    pub(super) drift: Vec<DriftEvent>,
    /// Whether several cores decode at the same time; `None` until it was tried.
    pub(super) together: Option<bool>,
    /// One line for each thing that could not be done as wanted.
    pub(super) notes: Vec<String>,
    /// Whether a core was left out, since there was no time.
    pub(super) cut_short: bool,
    /// How many cores are verified at the same time; `None` until it was tried.
    pub(super) width: Option<usize>,
    /// Cores that have no base, and why.
    pub(super) left_out: LeftOut,
}

impl<'a> LevelRun<'a> {
    pub(super) fn new(
        target: &'a mut dyn Target,
        plan: &'a BlockPlan,
        level: Level,
        watch: &'a mut dyn Watch,
    ) -> Self {
        let cores = target.cores().to_vec();
        let learners = plan.learners(&cores);
        let (training, heldout) = plan.choose_pages(target.pages(), level);
        let current = vec![None; cores.len()];
        let time = watch.left();
        Self {
            target,
            plan,
            level,
            watch,
            time,
            cores,
            learners,
            training,
            sought: Vec::new(),
            heldout,
            looks: Vec::new(),
            splits: Vec::new(),
            outgrown: false,
            learnt: Learnt::nothing(),
            bases: Vec::new(),
            current,
            references: References::default(),
            noise: 0.0,
            penalties: Noise::heavy_tailed(1.0).into(),
            probe_lines: Vec::new(),
            drift: Vec::new(),
            together: None,
            notes: Vec::new(),
            cut_short: false,
            width: None,
            left_out: LeftOut::default(),
        }
    }

    /// Whether to go on with what has to leave a share of the level's time to others.
    pub(super) fn may_go_on(&self, leaving: f64) -> bool {
        let kept = self.time.map(|time| time.mul_f64(leaving));
        self.watch.keep_going() && self.watch.left() >= kept
    }

    /// What scores leave of the level's time to what comes after them.
    pub(super) fn scores_leave(&self) -> f64 {
        let others = self.learners.len() < self.cores.len();
        SCORES_LEAVE + if others { OTHERS_HAVE } else { 0.0 }
    }

    pub(super) fn all(
        &mut self,
        codes: &mut [u16],
        method: String,
    ) -> Result<LevelMap, TargetError> {
        self.seek_far_pages()?;
        let mut strangers = self.learners.clone();
        let mut quality = Vec::new();
        for attempt in 1..=LOOKS {
            self.look_and_learn(&strangers)?;
            let again = attempt < LOOKS && self.may_go_on(LOOKS_LEAVE);
            (quality, strangers) = self.score_all()?;
            // What will be learnt again has nothing to say of others yet.
            if !again || (strangers.is_empty() && !self.outgrown) {
                let unlike = self.verify_others(&mut quality)?;
                if again && !self.outgrown {
                    // They decode too, if it takes them to tell codes apart.
                    let second = 1.min(self.learners.len());
                    self.learners.splice(second..second, unlike.iter().copied());
                    strangers.extend(unlike);
                }
            }
            // A split tells what a look would be for.
            if self.outgrown {
                strangers.clear();
            }
            if again && (self.outgrown || !strangers.is_empty()) {
                continue;
            }
            self.all_pages(codes, &mut quality)?;
            if !again || !self.outgrown {
                break;
            }
        }
        self.note_verified(&quality);
        Ok(self.level_map(method, quality))
    }

    /// Looks from these cores, and learns from all looks. A form that does not hold is not believed at first
    /// sight: another tenant may have had the cache, or the host have moved pages. Then nothing of these
    /// looks is kept.
    pub(super) fn look_and_learn(&mut self, from: &[CoreId]) -> Result<(), TargetError> {
        let mut from = from.to_vec();
        let end = self.target.seconds() + PATIENCE * self.plan.max_seconds;
        for attempt in 1.. {
            for core in std::mem::take(&mut from) {
                if self.looks.is_empty() || self.may_go_on(LOOKS_LEAVE) {
                    self.look(core)?;
                } else {
                    self.cut_short = true;
                }
            }
            self.learn();
            let late = attempt >= LOOKS && self.target.seconds() > end;
            if self.learnt.form != Form::PerLine || late || !self.may_go_on(LOOKS_LEAVE) {
                break;
            }
            if attempt < MOST_LOOKS {
                from = self.learners.clone();
                self.looks.clear();
            } else {
                break;
            }
        }
        Ok(())
    }

    fn all_pages(&mut self, codes: &mut [u16], quality: &mut [Quality]) -> Result<(), TargetError> {
        match self.learnt.form {
            Form::Pattern if self.watch.keep_going() => self.memory_pass(codes, quality)?,
            Form::Flat => codes.fill(0),
            _ => {}
        }
        Ok(())
    }

    /// Adds pages of farther nodes to the training pages, if they are rare.
    fn seek_far_pages(&mut self) -> Result<(), TargetError> {
        self.watch.step(&format!("{}: looking for farther nodes", self.level));
        let taken = [&self.training[..], &self.heldout[..]].concat();
        let plan = Survey {
            core: self.cores[0],
            level: self.level,
            pages: self.target.pages(),
            most: self.training.len() / 4,
            seed: derive_seed(self.plan.seed, 50 + self.level as u64),
        };
        self.sought = retry(|| far_pages(self.target, &plan, &taken))?;
        self.training.extend(&self.sought);
        Ok(())
    }

    /// Times the training pages from a core, in its current base, whichever that is.
    fn look(&mut self, core: CoreId) -> Result<(), TargetError> {
        self.watch.step(&format!("{}: learning what {core} sees", self.level));
        let rounds = self.time_training(core)?;
        let stretches = rounds.stretches.into_iter().enumerate();
        let enough = stretches.filter(|(i, stretch)| *i == 0 || stretch.rounds >= ENOUGH_ROUNDS);
        let found = enough.map(|(_, stretch)| (core, stretch));
        // Of the looks that shapes are learnt from, one must be of a core that the others could not speak for.
        let place = if self.is_unlike(core) { 1.min(self.looks.len()) } else { self.looks.len() };
        self.looks.splice(place..place, found);
        Ok(())
    }

    /// Whether a core is learnt since those that were to be learnt do not speak for it.
    fn is_unlike(&self, core: CoreId) -> bool {
        let planned = self.plan.learners(&self.cores);
        self.learners.contains(&core) && !planned.contains(&core)
    }

    /// Learns form, codes and the dictionary of bases from all looks so far.
    fn learn(&mut self) {
        let pages = self.training.len() * LINES_PER_PAGE;
        self.looks.retain(|(_, stretch)| stretch.lines() == pages);
        let looks: Vec<(CoreId, &Stretch)> = self.looks.iter().map(|l| (l.0, &l.1)).collect();
        self.learnt = learn(&looks, &self.splits);
        let sought = self.training.iter().filter(|page| self.sought.contains(page)).count();
        self.learnt.fair = (self.training.len() - sought) * LINES_PER_PAGE / self.learnt.period;
        self.outgrown = false;
        let first = looks[0].1;
        self.noise = first.noise();
        self.penalties = penalties(first.residuals(), self.noise, self.target.clock().tick);
        self.bases.clear();
        // A core that was not looked at again wears none of these.
        self.current.fill(None);
        for (core, stretch) in std::mem::take(&mut self.looks) {
            let patterns = patterns_for(&stretch, &self.learnt, &self.learnt.codes);
            let number = self.keep_base(core, patterns, stretch.rounds);
            self.note_base(core, number);
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
            let gone = self.replaced(core, &frames, rounds.loads());
            if gone.is_empty() {
                return Ok(rounds);
            }
            // Whole blocks, else a period of 256 lines would begin in the middle of one.
            let block = |page: &PageAddr| page.0 / PAGES_PER_BLOCK;
            self.training.retain(|page| gone.iter().all(|g| block(g) != block(page)));
        }
        self.time(core, &self.training.clone(), wanted)
    }

    pub(super) fn time(
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

    pub(super) fn frames(&mut self, pages: &[PageAddr]) -> Vec<(PageAddr, Option<u64>)> {
        let mut frames = vec![None; pages.len()];
        let mut rest = &mut frames[..];
        for run in pages.chunk_by(|page, next| next.0 == page.0 + 1) {
            let (these, behind) = rest.split_at_mut(run.len());
            self.target.frames(run[0], these);
            rest = behind;
        }
        pages.iter().copied().zip(frames).collect()
    }

    /// Pages whose frame is no longer the one noted; each is named. `dropped` loads were for nothing.
    pub(super) fn replaced(
        &mut self,
        core: CoreId,
        before: &[(PageAddr, Option<u64>)],
        dropped: u64,
    ) -> Vec<PageAddr> {
        let pages: Vec<PageAddr> = before.iter().map(|(page, _)| *page).collect();
        let now = self.frames(&pages);
        let both = before.iter().zip(&now);
        let gone: Vec<PageAddr> = both
            .filter(|((_, old), (_, new))| old.is_some() && old != new)
            .map(|((page, _), _)| *page)
            .collect();
        if !gone.is_empty() {
            let names: Vec<String> = gone.iter().take(4).map(|p| p.0.to_string()).collect();
            self.drift.push(DriftEvent {
                at_s: self.target.seconds(),
                core: core.0,
                kind: "frame replaced".into(),
                what: format!(
                    "{} page(s) were given another frame while timed (arena page {}); they are left out",
                    gone.len(),
                    names.join(", ")
                ),
                dropped_samples: dropped,
                // Nothing to repair: no base is lost with a page.
                repaired_ms: None,
            });
        }
        gone
    }

    pub(super) fn keep_base(&mut self, core: CoreId, patterns: Vec<Vec<f64>>, rounds: u32) -> u16 {
        let stored = patterns.iter().map(|p| p.iter().map(|v| f32_of(*v)).collect()).collect();
        self.bases.push((Base { core: core.0, patterns: stored, rounds }, patterns));
        u16::try_from(self.bases.len() - 1).unwrap_or(u16::MAX)
    }

    /// Keeps a known pattern at another distance. What was learnt of the pattern stands behind it.
    pub(super) fn keep_farther(&mut self, core: CoreId, found: Farther) -> u16 {
        let rounds = self.bases[found.like].0.rounds;
        self.keep_base(core, found.patterns, rounds)
    }

    pub(super) fn note_base(&mut self, core: CoreId, number: u16) {
        if let Some(place) = self.cores.iter().position(|c| *c == core) {
            self.current[place] = Some(number);
        }
    }

    /// First lines of the pages or, with a period of 256, of the blocks.
    pub(super) fn block_lines(&self, pages: &[PageAddr]) -> Vec<LineAddr> {
        let step = self.learnt.period / LINES_PER_PAGE;
        pages.iter().step_by(step).map(|p| p.line(0)).collect()
    }

    fn level_map(&mut self, method: String, quality: Vec<Quality>) -> LevelMap {
        let lines = self.measured_lines();
        let learnt = &self.learnt;
        let fair = learnt.fair_codes();
        let total = fair.len().max(1) as f32;
        let mut code_share = vec![0.0_f32; learnt.classes() * learnt.period];
        for code in fair {
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
            core_base: self.current.clone(),
            probe_lines: self.probe_lines.clone(),
            noise_cycles: self.noise,
            code_share,
            quality,
            lines,
            penalties: Some(self.penalties.clone()),
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
