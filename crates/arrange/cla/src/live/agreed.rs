//! What the ranks of a team agree on, as it lies in their area: where each may run, who chooses, and what was chosen.
//!
//! It says what there is. Who writes when, and who waits for whom, is `choosing`'s.

use super::classes::CLASSES;
use super::kind::Kind;
use super::layout::AloneWord;
use super::word::Word;
use crate::choice::{Groups, Known, LEVELS_MAX};
use crate::program::Rank;
use isochrone_units::CoreId;
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};

/// Runs of neighbouring cores in which a rank says where it may run: two for a set of hardware threads and
/// their siblings, and some to spare. A rank that may run on more says so.
pub(super) const RUNS: usize = 4;
/// Said instead of the first run: more runs than can be said.
const SCATTERED: u32 = u32::MAX;
/// Roots that are told apart. Among more ranks one choice holds for all, the one for the root that came first: an entry
/// is a form and groups, in which the root leads wherever it is.
pub(super) const ROOTS_MOST: u16 = 64;
const ROOTS: usize = ROOTS_MOST as usize;

/// What a team agrees on, in the header of its area. All zero at the beginning.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Agreed {
    /// One more than the rank that chooses; 0: nobody, all go by the usual rule.
    chooser: AtomicU32,
    /// Levels of groups.
    levels: AtomicU32,
    /// How many ranks have said where they may run.
    said: AloneWord,
}

/// Where the rest of it lies, bytes from the beginning of the area: as much as there are ranks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts {
    pub(super) bound: usize,
    pub(super) groups: usize,
    pub(super) codes: usize,
    ranks: u16,
}

impl Parts {
    /// From this byte on.
    pub(super) const fn from(offset: usize, ranks: u16) -> Self {
        let bound = offset.next_multiple_of(64);
        let codes = bound + ranks as usize * size_of::<[AtomicU32; RUNS]>();
        let codes = codes.next_multiple_of(64);
        let groups = codes + codes_of(ranks) * size_of::<Word>();
        Self { bound, groups, codes, ranks }
    }

    /// How many values of each there are: where ranks may run, groups, codes.
    pub(super) const fn counts(self) -> [usize; 3] {
        [self.ranks as usize, self.ranks as usize * LEVELS_MAX, codes_of(self.ranks)]
    }

    /// The first byte behind all.
    pub(super) const fn end(self) -> usize {
        self.groups + self.ranks as usize * LEVELS_MAX * size_of::<AtomicU16>()
    }
}

/// Codes of entries that teams of so many ranks may choose.
const fn codes_of(ranks: u16) -> usize {
    let roots = if ranks as usize > ROOTS { 1 } else { ranks as usize };
    Kind::COUNT * CLASSES.len() * roots
}

/// All that a team agrees on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shown<'a> {
    pub(super) header: &'a Agreed,
    /// What each said: for each run its first core, and in the low half how many.
    pub(super) bound: &'a [[AtomicU32; RUNS]],
    /// The groups of ranks, innermost level first.
    pub(super) groups: &'a [AtomicU16],
    /// By collective, class and root: 0, or one more than the code of an entry.
    pub(super) codes: &'a [Word],
    pub(super) ranks: u16,
}

/// What a rank remembers of it.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Where it was told that it runs; empty: nobody did.
    pub(super) runs_on: Vec<CoreId>,
    /// Whether it has said where it may run.
    pub(super) said: bool,
    /// At the rank that chooses: whether it has looked what is known of the ranks' cores, and that.
    pub(super) known: Option<Option<Known>>,
    /// The groups of ranks.
    pub(super) groups: Option<Groups>,
}

impl Agreed {
    /// Makes `rank` the one that chooses. For who makes the area, before others see it.
    pub(super) fn chosen_by(&self, rank: Rank) {
        self.chooser.store(u32::from(rank.0) + 1, Ordering::Release);
    }

    /// Nobody chooses any more. For who made the area, where nobody has seen it.
    pub(super) fn chosen_by_nobody(&self) {
        self.chooser.store(0, Ordering::Release);
    }
}

impl<'a> Shown<'a> {
    /// How many ranks have said where they may run.
    pub(super) const fn said(&self) -> &'a Word {
        &self.header.said.0
    }

    /// Whether another rank's choice, or this one's, is to be asked for.
    pub(super) fn chooser(&self) -> Option<Rank> {
        let one_more = self.header.chooser.load(Ordering::Acquire).checked_sub(1)?;
        u16::try_from(one_more).ok().map(Rank)
    }

    pub(super) fn code(&self, kind: Kind, class: usize, root: Rank) -> &'a Word {
        let ranks = usize::from(self.ranks);
        let (roots, root) = if ranks > ROOTS { (1, 0) } else { (ranks, root.index()) };
        &self.codes[(kind as usize * CLASSES.len() + class) * roots + root]
    }

    pub(super) fn say(&self, rank: Rank, cores: impl Iterator<Item = CoreId>) {
        let said = runs(cores).unwrap_or([SCATTERED, 0, 0, 0]);
        for (place, run) in self.bound[rank.index()].iter().zip(said) {
            place.store(run, Ordering::Relaxed);
        }
    }

    /// The cores of a rank; none where it could not say them.
    pub(super) fn cores(&self, rank: usize) -> Vec<CoreId> {
        let said = self.bound[rank].each_ref().map(|run| run.load(Ordering::Relaxed));
        if said[0] == SCATTERED {
            return Vec::new();
        }
        let run = |run: u32| run >> 16..(run >> 16) + (run & 0xffff);
        let cores = said.into_iter().flat_map(run);
        cores.filter_map(|core| u16::try_from(core).ok().map(CoreId)).collect()
    }

    pub(super) fn tell_groups(&self, groups: &Groups) {
        let ranks = usize::from(self.ranks).max(1);
        for (places, level) in self.groups.chunks(ranks).zip(groups.levels()) {
            for (place, group) in places.iter().zip(level) {
                place.store(*group, Ordering::Relaxed);
            }
        }
        let levels = u32::try_from(groups.levels().len()).unwrap_or(0);
        // Whoever reads it has seen the word of a choice, which is published after this.
        self.header.levels.store(levels, Ordering::Relaxed);
    }

    pub(super) fn told_groups(&self) -> Groups {
        let levels = self.header.levels.load(Ordering::Relaxed) as usize;
        let level = |places: &[AtomicU16]| {
            places.iter().map(|place| place.load(Ordering::Relaxed)).collect()
        };
        let ranks = usize::from(self.ranks).max(1);
        Groups::new(self.groups.chunks(ranks).take(levels).map(level))
    }
}

/// Cores in ascending order as runs; `None` where they are too many.
pub(super) fn runs(cores: impl Iterator<Item = CoreId>) -> Option<[u32; RUNS]> {
    let mut runs = [0; RUNS];
    let mut used = 0_usize;
    for core in cores.map(|core| u32::from(core.0)) {
        let last: Option<&mut u32> = used.checked_sub(1).map(|last| &mut runs[last]);
        match last {
            Some(run) if (*run >> 16) + (*run & 0xffff) == core => *run += 1,
            _ => {
                *runs.get_mut(used)? = core << 16 | 1;
                used += 1;
            }
        }
    }
    Some(runs)
}
