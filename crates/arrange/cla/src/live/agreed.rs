//! What the ranks of a team agree on: how each collective is done, as one of them has chosen it.
//!
//! The rank that founded the team and was given distances chooses, at the first call of a kind, class and root.
//! It writes what it chose where all see it, and all go by that, whatever they were given themselves: plans
//! that differ would hang. What was chosen stays when lines are taken back. A team without distances, or of
//! two ranks, agrees on nothing and waits for nothing.

use super::area::{AloneWord, Area, RANKS_MAX};
use super::choose::{channel_plan, class};
use super::kind::Kind;
use super::settings::CLASSES;
use super::team::{Team, TeamError};
use super::word::Word;
use crate::choice::{self, Entry, Groups, Known, LEVELS_MAX, RANKS_LEAST, RANKS_MOST};
use crate::collectives::{Options, Plan};
use crate::program::{Compare, Rank};
use isochrone_os::affinity::CoreSet;
use isochrone_units::CoreId;
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};

/// Runs of neighbouring cores in which a rank says where it may run: two for a set of hardware threads and
/// their siblings, and some to spare. A rank that may run on more says so.
const RUNS: usize = 4;
/// Said instead of the first run: more runs than can be said.
const SCATTERED: u32 = u32::MAX;
/// Roots that are told apart: beyond so many ranks a choice does not depend on the root.
const ROOTS: usize = RANKS_MOST as usize;

/// What a team agrees on, in its area. All zero at the beginning.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Agreed {
    /// One more than the rank that chooses; 0: nobody, all go by the usual rule.
    chooser: AtomicU32,
    /// Levels of groups.
    levels: AtomicU32,
    /// How many ranks have said where they may run.
    said: AloneWord,
    /// What each said: for each run its first core, and in the low half how many.
    bound: [[AtomicU32; RUNS]; RANKS_MAX],
    /// The groups of ranks, innermost level first.
    groups: [[AtomicU16; RANKS_MAX]; LEVELS_MAX],
    /// By collective, class and root: 0, or one more than the code of an entry.
    codes: [Word; Kind::COUNT * CLASSES.len() * ROOTS],
}

/// What a rank remembers of it.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Whether it has said where it may run.
    said: bool,
    /// At the rank that chooses: whether it has looked what is known of the ranks' cores, and that.
    known: Option<Option<Known>>,
    /// The groups of ranks.
    groups: Option<Groups>,
}

impl Agreed {
    /// Makes `rank` the one that chooses. For who makes the area, before others see it.
    pub(super) fn chosen_by(&self, rank: Rank) {
        self.chooser.store(u32::from(rank.0) + 1, Ordering::Release);
    }

    /// Whether another rank's choice, or this one's, is to be asked for.
    fn chooser(&self) -> Option<Rank> {
        let one_more = self.chooser.load(Ordering::Acquire).checked_sub(1)?;
        u16::try_from(one_more).ok().map(Rank)
    }

    fn code(&self, kind: Kind, class: usize, root: Rank, ranks: u16) -> &Word {
        let root = if usize::from(ranks) > ROOTS { 0 } else { root.index() };
        &self.codes[(kind as usize * CLASSES.len() + class) * ROOTS + root]
    }

    fn say(&self, rank: Rank, cores: impl Iterator<Item = CoreId>) {
        let said = runs(cores).unwrap_or([SCATTERED, 0, 0, 0]);
        for (place, run) in self.bound[rank.index()].iter().zip(said) {
            place.store(run, Ordering::Relaxed);
        }
    }

    /// The cores of a rank; none where it could not say them.
    fn cores(&self, rank: usize) -> Vec<CoreId> {
        let said = self.bound[rank].each_ref().map(|run| run.load(Ordering::Relaxed));
        if said[0] == SCATTERED {
            return Vec::new();
        }
        let run = |run: u32| run >> 16..(run >> 16) + (run & 0xffff);
        let cores = said.into_iter().flat_map(run);
        cores.filter_map(|core| u16::try_from(core).ok().map(CoreId)).collect()
    }

    fn tell_groups(&self, groups: &Groups) {
        for (places, level) in self.groups.iter().zip(groups.levels()) {
            for (place, group) in places.iter().zip(level) {
                place.store(*group, Ordering::Relaxed);
            }
        }
        let levels = u32::try_from(groups.levels().len()).unwrap_or(0);
        // Whoever reads it has seen the word of a choice, which is published after this.
        self.levels.store(levels, Ordering::Relaxed);
    }

    fn told_groups(&self, ranks: u16) -> Groups {
        let levels = self.levels.load(Ordering::Relaxed) as usize;
        let level = |places: &[AtomicU16; RANKS_MAX]| {
            places[..usize::from(ranks)].iter().map(|place| place.load(Ordering::Relaxed)).collect()
        };
        Groups::new(self.groups.iter().take(levels).map(level))
    }
}

/// Cores in ascending order as runs; `None` where they are too many.
fn runs(cores: impl Iterator<Item = CoreId>) -> Option<[u32; RUNS]> {
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

impl Team {
    /// The plan by which the team does such calls: by its own choice, where one is made. All ranks ask in the
    /// same order as they make calls, since the first to ask may wait for the one that chooses.
    ///
    /// # Errors
    /// [`TeamError`] for a root that is no rank, and when a rank has ended.
    pub fn plan(&mut self, kind: Kind, root: Rank, bytes: usize) -> Result<Plan, TeamError> {
        let usual = channel_plan(self.choose(), kind, self.ranks(), root, bytes)?;
        let Some(chooser) = self.area().header().agreed.chooser() else { return Ok(usual) };
        if self.ranks() < RANKS_LEAST || !choice::is_chosen(usual.collective()) {
            return Ok(usual);
        }
        let entry = self.entry(chooser, (kind, class(bytes), root), &usual)?;
        if entry == Entry::USUAL {
            return Ok(usual);
        }
        let Some(options) = self.meaning(entry, &usual) else { return Ok(usual) };
        let (collective, bytes) = (usual.collective(), usual.bytes());
        Ok(Plan::new(collective, usual.ranks(), root, bytes, options)?)
    }

    /// What an entry means to all ranks alike.
    fn meaning(&mut self, entry: Entry, usual: &Plan) -> Option<Options> {
        let (area, agreed) = self.agreed();
        let ranks = area.ranks();
        let groups = agreed.groups.get_or_insert_with(|| area.header().agreed.told_groups(ranks));
        entry.options(usual, groups)
    }

    /// The entry that was chosen: waits for it, or chooses.
    fn entry(
        &mut self,
        chooser: Rank,
        (kind, class, root): (Kind, usize, Rank),
        usual: &Plan,
    ) -> Result<Entry, TeamError> {
        let area = std::sync::Arc::clone(self.area());
        let agreed = &area.header().agreed;
        let word = agreed.code(kind, class, root, self.ranks());
        if word.load() == 0 {
            self.say_cores(&area);
            if self.rank() == chooser {
                let code = self.chosen(&area, usual)?.code();
                self.publish(word, u64::from(code) + 1);
            } else {
                self.until(word, 1)?;
            }
        }
        let code = u32::try_from(word.load() - 1).ok();
        code.and_then(Entry::of_code).ok_or(TeamError::Foreign)
    }

    /// Says once where this rank may run. Not when it is seated: a program binds its threads later.
    fn say_cores(&mut self, area: &Area) {
        let me = self.rank();
        let (_, memory) = self.agreed();
        if std::mem::replace(&mut memory.said, true) {
            return;
        }
        let agreed = &area.header().agreed;
        match CoreSet::of_this_thread() {
            Ok(cores) => agreed.say(me, cores.iter()),
            // No cores are no place: the team goes by the usual rule.
            Err(_) => agreed.say(me, std::iter::empty()),
        }
        self.add(&agreed.said.0);
    }

    /// Chooses, at the rank that does.
    fn chosen(&mut self, area: &Area, usual: &Plan) -> Result<Entry, TeamError> {
        let agreed = &area.header().agreed;
        if self.agreed().1.known.is_none() {
            let ranks = self.ranks();
            self.until(&agreed.said.0, u64::from(ranks))?;
            let cores: Vec<Vec<CoreId>> =
                (0..usize::from(ranks)).map(|rank| agreed.cores(rank)).collect();
            let known = self.distances().and_then(|on| Known::of(&*on, &cores));
            if let Some(known) = &known {
                agreed.tell_groups(&known.groups);
            }
            self.agreed().1.known = Some(known);
        }
        let known = self.agreed().1.known.as_ref().and_then(Option::as_ref);
        Ok(known.map_or(Entry::USUAL, |known| choice::choose(usual, known)))
    }

    fn until(&mut self, word: &Word, value: u64) -> Result<(), TeamError> {
        let came = self.parts().1.wait(word, Compare::AtLeast, value);
        came.map_err(|gone| self.gone(gone))
    }

    fn publish(&self, word: &Word, value: u64) {
        self.parts().1.publish(word, |word| word.store(value));
    }

    fn add(&self, word: &Word) {
        self.parts().1.publish(word, |word| word.add(1));
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
