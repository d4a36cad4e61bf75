//! The current base of a core in a level: found anew, kept, named where it changes, and told from what is no base.

use isochrone_atlas_store::contents::DriftEvent;
use isochrone_stats::derive_seed;
use isochrone_units::{CoreId, Level};

use super::base::{Sight, retry};
use super::dictionary::{CurrentBase, Dictionary, identify};
use super::far::FAR_SHARE;
use super::fit::is_one;
use super::learn::split_by;
use super::level::LevelRun;
use crate::target::TargetError;

/// By how much a pattern of the last-level cache that nobody knows may lie farther than all that were learnt: cores of
/// every cache and region are learnt, and memory lies farther than this on every machine seen (2 to 9 times).
const FARTHEST: f64 = 1.5;

impl LevelRun<'_> {
    /// Makes sure that the current base of `core` is the one noted; names a change. Its number; `None` where what the
    /// core sees is no base: it keeps the one that it wore.
    pub(super) fn ensure_base(&mut self, core: CoreId) -> Result<Option<usize>, TargetError> {
        let begin = self.target.seconds();
        let place = self.cores.iter().position(|c| *c == core).unwrap_or(0);
        let bases: Vec<Vec<Vec<f64>>> = self.bases.iter().map(|b| b.1.clone()).collect();
        let dictionary = Dictionary { bases: &bases, wore: self.current[place].map(usize::from) };
        let seed = derive_seed(self.plan.seed, 7000 + self.drift.len() as u64);
        let level = self.level;
        let references = &self.references;
        let target = &mut *self.target;
        let current =
            retry(|| identify(target, core, level, references, &self.learnt, dictionary, seed))?;
        let wore = self.current[place];
        if wore.is_some() && self.is_no_base(&current) {
            self.note_elsewhere(core);
            return Ok(None);
        }
        let number = match current {
            CurrentBase::Known(i) => u16::try_from(i).unwrap_or(u16::MAX),
            CurrentBase::Farther(found) => self.keep_farther(core, found),
            CurrentBase::New(sight) => {
                self.note_split(&sight);
                self.keep_base(core, sight.patterns, 0)
            }
        };
        self.current[place] = Some(number);
        let same = wore.is_none_or(|b| self.alike(usize::from(b), usize::from(number)));
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
        Ok(Some(usize::from(number)))
    }

    /// Whether what was seen is of lines of the last-level cache that are not where they were put: no second look saw
    /// it again, or it is too far. (Memory is where it is; a look at it may scatter by more than its lines differ.)
    fn is_no_base(&self, seen: &CurrentBase) -> bool {
        let is_none = match seen {
            CurrentBase::Known(_) => false,
            CurrentBase::Farther(found) => !found.steady,
            CurrentBase::New(sight) => !sight.steady || self.is_elsewhere(&sight.patterns),
        };
        self.level == Level::Llc && is_none
    }

    /// Whether lines of the last-level cache are seen in a pattern that nobody knows and much farther than any that was
    /// learnt: somebody else has the cache, or has had the core between putting lines there and timing them.
    pub(super) fn is_elsewhere(&self, patterns: &[Vec<f64>]) -> bool {
        let mean = |patterns: &[Vec<f64>]| {
            let lines: Vec<f64> = patterns.iter().flatten().copied().collect();
            isochrone_stats::mean(&lines).unwrap_or(0.0)
        };
        let learnt = self.bases.iter().filter(|(base, _)| base.rounds > 0);
        let farthest = learnt.map(|(_, known)| mean(known)).fold(0.0, f64::max);
        self.level == Level::Llc && farthest > 0.0 && mean(patterns) > FARTHEST * farthest
    }

    fn note_elsewhere(&mut self, core: CoreId) {
        let what = format!(
            "{core} does not find lines where they were put ({}); they are put there anew",
            self.level
        );
        // Once for each time that it is so, and not for each look.
        let last = self.drift.iter().rev().find(|event| event.core == core.0);
        if last.is_none_or(|last| last.what != what) {
            self.drift.push(DriftEvent {
                at_s: self.target.seconds(),
                core: core.0,
                kind: "disturbed".into(),
                what,
                dropped_samples: 0,
                repaired_ms: None,
            });
        }
    }

    /// The base that a core had last.
    pub(super) fn worn(&self, core: CoreId) -> Option<usize> {
        let place = self.cores.iter().position(|other| *other == core)?;
        self.current[place].map(usize::from)
    }

    /// Keeps what a new base says of classes, where it says that one of them is two.
    pub(super) fn note_split(&mut self, sight: &Sight) {
        let noise = sight.noise / sight.pages.loads.max(1.0).sqrt();
        let mut finer = self.learnt.clone();
        split_by(&mut finer, &sight.pages.cycles, noise);
        if finer.classes() > self.learnt.classes() {
            self.splits.push((sight.pages.cycles.clone(), noise));
            self.outgrown = true;
        }
    }

    /// Whether two bases are one, but for what a mean wanders by.
    fn alike(&self, a: usize, b: usize) -> bool {
        a == b || is_one(&self.bases[a].1, &self.bases[b].1, FAR_SHARE)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use isochrone_sim::synthetic::{Event, SyntheticMemory, SyntheticSpec};
    use isochrone_units::{Cycles, LineAddr, PageAddr};

    use super::*;
    use crate::block::BlockPlan;
    use crate::synthetic::SyntheticTarget;
    use crate::target::{Over, Target};
    use crate::watch::Silent;

    const PAGES: u64 = 2048;
    /// Machines that are tried.
    const SEEDS: u64 = 3;

    fn plan(seed: u64) -> BlockPlan {
        BlockPlan {
            training_pages: [64, 64],
            heldout_pages: 32,
            training_rounds: [48, 48],
            ..BlockPlan::quick(PAGES, seed)
        }
    }

    /// A machine whose last-level cache somebody else has now and then: lines that were put there come from memory.
    struct Shared<'a> {
        inner: SyntheticTarget,
        is_taken: &'a Cell<bool>,
        /// Where core 0 goes before it is timed next.
        moves_to: &'a Cell<Option<u16>>,
    }

    impl Over for Shared<'_> {
        fn under(&self) -> &dyn Target {
            &self.inner
        }

        fn under_mut(&mut self) -> &mut dyn Target {
            &mut self.inner
        }

        fn timed(
            &mut self,
            core: CoreId,
            level: Level,
            lines: &[LineAddr],
            out: &mut [Cycles],
        ) -> Result<(), TargetError> {
            if let Some(to) = self.moves_to.take() {
                let moves = Event::CoreMoves { core: CoreId(0), to };
                self.inner.memory_mut().inject(moves).expect("there is such a core");
            }
            let level = if self.is_taken.get() { Level::Dram } else { level };
            self.inner.sample(core, level, lines, out)
        }
    }

    #[test]
    fn a_cache_that_somebody_else_has_makes_no_base_of_this_one() {
        let spec = SyntheticSpec::genoa_like(6).with_pages(PAGES).with_cores(2);
        let inner = SyntheticTarget::new(SyntheticMemory::new(spec).expect("a valid spec"));
        let (is_taken, moves_to) = (Cell::new(false), Cell::new(None));
        let mut target = Shared { inner, is_taken: &is_taken, moves_to: &moves_to };
        let plan = plan(5);
        let (cores, mut watch) = ([CoreId(0), CoreId(1)], Silent);
        let mut run = LevelRun::new(&mut target, &plan, Level::Llc, &mut watch);
        run.look_and_learn(&cores).expect("nothing is refused");
        let wore = run.ensure_base(cores[0]).expect("nothing is refused");
        let (known, events) = (run.bases.len(), run.drift.len());
        assert!(wore.is_some());
        is_taken.set(true);
        for _ in 0..3 {
            assert_eq!(run.ensure_base(cores[0]).expect("nothing is refused"), None);
        }
        let firsts: Vec<LineAddr> = (0..1024).map(|page| PageAddr(page).line(0)).collect();
        let pass = run.decode_resuming(&firsts).expect("it ends");
        assert!(pass.codes.iter().all(Option::is_none), "nothing is known of them");
        assert_eq!((run.bases.len(), run.outgrown), (known, false), "{:?}", run.drift);
        assert_eq!(run.drift.len(), events + cores.len(), "{:?}", run.drift);
        is_taken.set(false);
        assert_eq!(run.ensure_base(cores[0]).expect("nothing is refused"), wore);
        let pass = run.decode_resuming(&firsts).expect("it decodes");
        assert!(pass.codes.iter().all(Option::is_some));
        assert_eq!(run.bases.len(), known);
    }

    /// What becomes of bases beside neighbours that take a share of both cores.
    #[derive(Debug, Default)]
    struct Tally {
        /// Moves of a core to where nobody was before.
        moves: f64,
        /// Of them, those after which the core had its base at the first look.
        at_once: f64,
        /// Looks of a core that had not moved, and bases that they made.
        looks: f64,
        made: f64,
    }

    fn tally(share: f64, seeds: u64) -> Tally {
        let (mut tally, cores) = (Tally::default(), [CoreId(0), CoreId(1)]);
        for seed in 0..seeds {
            let spec = SyntheticSpec::genoa_like(seed).with_pages(PAGES).with_cores(2);
            let spec = spec.with_neighbours(cores, share);
            let inner = SyntheticTarget::new(SyntheticMemory::new(spec).expect("a valid spec"));
            let (is_taken, moves_to) = (Cell::new(false), Cell::new(None));
            let mut target = Shared { inner, is_taken: &is_taken, moves_to: &moves_to };
            let (plan, mut watch) = (plan(seed), Silent);
            let mut run = LevelRun::new(&mut target, &plan, Level::Llc, &mut watch);
            run.look_and_learn(&cores).expect("nothing is refused");
            let mut look = || run.ensure_base(cores[0]).expect("nothing is refused");
            let before: Vec<Option<usize>> = (0..6).map(|_| look()).collect();
            tally.looks += 5.0;
            let changed = before[1..].iter().flatten().filter(|base| Some(**base) != before[0]);
            tally.made += f64::from(u32::try_from(changed.count()).expect("at most five"));
            for to in 2..8 {
                moves_to.set(Some(to));
                tally.moves += 1.0;
                tally.at_once += f64::from(u8::from(look().is_some()));
            }
        }
        tally
    }

    #[test]
    fn a_core_that_moves_has_its_base_beside_neighbours_too() {
        for share in [0.0, 0.1] {
            let tally = tally(share, SEEDS);
            assert!(tally.at_once >= 0.95 * tally.moves, "{share}: {tally:?}");
            assert!(tally.made <= 0.05 * tally.looks, "{share}: {tally:?}");
        }
    }
}
