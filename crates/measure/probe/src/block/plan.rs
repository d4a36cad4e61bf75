//! The block experiment as pure data: what is timed, in which order, how often.

use isochrone_machine::Machine;
use isochrone_stats::{derive_seed, rng, shuffle};
use isochrone_units::{CoreId, Level, PageAddr};

use crate::sample::Sample;
use crate::seats::Seats;

/// Pages that are chosen together, so that a period of 256 lines can be seen.
pub const PAGES_PER_BLOCK: u64 = 4;

/// How much is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockPlan {
    /// Levels, in order.
    pub levels: Vec<Level>,
    /// Cores that are learnt in full; the others are verified by a few loads. Empty where all are learnt.
    pub learnt_cores: Vec<CoreId>,
    /// The order in which cores are verified, those that come one after the other at the same time; cores that are not
    /// in it come last.
    pub verified_cores: Vec<CoreId>,
    /// Pages whose every line is timed to learn the form: LLC, DRAM. Where a hash over slices repeats
    /// after eight pages, on two nodes, there are sixteen classes to see.
    pub training_pages: [u64; 2],
    /// Pages whose every line is timed to score it.
    pub heldout_pages: u64,
    /// Rounds over the training pages: LLC, DRAM.
    pub training_rounds: [u32; 2],
    /// Rounds over the held-out pages: LLC, DRAM.
    pub heldout_rounds: [u32; 2],
    /// Pages decoded in the memory pass.
    pub memory_pages: u64,
    /// Most seconds for one set of rounds.
    pub max_seconds: f64,
    /// Seed of every order.
    pub seed: u64,
    /// Pages that are decoded at the same time.
    pub window: usize,
}

impl BlockPlan {
    /// The full plan: about half a minute on two cores.
    #[must_use]
    pub fn full(memory_pages: u64, seed: u64) -> Self {
        Self {
            levels: Level::ALL.to_vec(),
            learnt_cores: Vec::new(),
            verified_cores: Vec::new(),
            training_pages: [384, 128],
            heldout_pages: 128,
            training_rounds: [160, 160],
            heldout_rounds: [240, 480],
            memory_pages,
            max_seconds: 4.0,
            seed,
            window: super::decode::WINDOW,
        }
    }

    /// The quick plan: about three seconds on two cores.
    #[must_use]
    pub fn quick(memory_pages: u64, seed: u64) -> Self {
        Self {
            training_pages: [256, 128],
            heldout_pages: 64,
            training_rounds: [96, 96],
            heldout_rounds: [160, 256],
            max_seconds: 1.0,
            ..Self::full(memory_pages, seed)
        }
    }

    /// The same where only some cores of this machine are learnt in full, and the others of a target verified.
    #[must_use]
    pub fn learning(self, sample: Sample, machine: &Machine, cores: &[CoreId]) -> Self {
        let learnt_cores = sample.of(machine, cores);
        Self { learnt_cores, verified_cores: Seats::of(machine, cores).in_turns(), ..self }
    }

    /// Of a target's cores those that are learnt in full, in the order in which they are; the first core always is.
    #[must_use]
    pub fn learners(&self, cores: &[CoreId]) -> Vec<CoreId> {
        let chosen =
            |core: &CoreId| cores.first() == Some(core) || self.learnt_cores.contains(core);
        if self.learnt_cores.is_empty() || cores.iter().all(chosen) {
            return cores.to_vec();
        }
        let wanted = self.learnt_cores.iter().filter(|core| cores.contains(core));
        let mut learners: Vec<CoreId> = wanted.copied().collect();
        // A level is judged by its first core.
        learners.retain(|core| cores.first() != Some(core));
        learners.splice(0..0, cores.first().copied());
        learners
    }

    /// Puts cores into the order in which they are verified.
    pub(super) fn in_order(&self, cores: &mut [CoreId]) {
        cores.sort_by_key(|core| {
            let place = self.verified_cores.iter().position(|other| other == core);
            place.unwrap_or(usize::MAX)
        });
    }

    /// Rounds for `level` out of a pair.
    #[must_use]
    pub const fn rounds(pair: [u32; 2], level: Level) -> u32 {
        match level {
            Level::Llc => pair[0],
            Level::Dram => pair[1],
        }
    }

    /// Disjoint random sets of training and held-out pages among `pages`, whole blocks of
    /// [`PAGES_PER_BLOCK`]. Where the arena is small each set gets at most a third of it.
    #[must_use]
    pub fn choose_pages(&self, pages: u64, level: Level) -> (Vec<PageAddr>, Vec<PageAddr>) {
        let blocks = pages / PAGES_PER_BLOCK;
        let mut order: Vec<u64> = (0..blocks).collect();
        shuffle(&mut order, &mut rng(derive_seed(self.seed, 1)));
        let count = |wanted: u64| (wanted / PAGES_PER_BLOCK).clamp(1, (blocks / 3).max(1));
        let training = usize::try_from(count(self.training_pages[level as usize])).unwrap_or(1);
        let heldout = usize::try_from(count(self.heldout_pages)).unwrap_or(1);
        let pages_of = |blocks: &[u64]| -> Vec<PageAddr> {
            let first = |block: u64| block * PAGES_PER_BLOCK;
            let of = |block: &u64| first(*block)..first(*block) + PAGES_PER_BLOCK;
            blocks.iter().flat_map(of).map(PageAddr).collect()
        };
        let first: Vec<u64> = order.iter().copied().take(training).collect();
        let second: Vec<u64> = order.iter().copied().skip(training).take(heldout).collect();
        (pages_of(&first), pages_of(&second))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_core_is_always_learnt_and_all_are_where_none_is_named() {
        let cores = |numbers: &[u16]| numbers.iter().map(|n| CoreId(*n)).collect::<Vec<_>>();
        let plan =
            |learnt: &[u16]| BlockPlan { learnt_cores: cores(learnt), ..BlockPlan::quick(64, 1) };
        let all = cores(&[2, 3, 4, 5]);
        assert_eq!(plan(&[]).learners(&all), all);
        assert_eq!(plan(&[5, 4, 3]).learners(&all), all, "all of them, in the target's order");
        assert_eq!(plan(&[5, 2, 3]).learners(&all), cores(&[2, 5, 3]));
        assert_eq!(plan(&[9, 4]).learners(&all), cores(&[2, 4]), "there is no core 9");
    }

    #[test]
    fn training_and_heldout_pages_never_meet() {
        for pages in [12, 64, 4096] {
            let (a, b) = BlockPlan::full(pages, 7).choose_pages(pages, Level::Llc);
            assert!(!a.is_empty() && !b.is_empty());
            assert!(a.iter().all(|p| p.0 < pages && !b.contains(p)));
        }
    }
}
