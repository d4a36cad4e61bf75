//! How the ranks of a team come to agree on how a collective is done: one of them chooses.
//!
//! The rank that founded the team and was given distances chooses, at the first call of a kind, class and root.
//! It writes what it chose where all see it, and all go by that, whatever they were given themselves: plans
//! that differ would hang. What was chosen stays when lines are taken back. A team without distances, or of
//! two ranks, agrees on nothing and waits for nothing.

use super::agreed::ROOTS_MOST;
use super::area::Area;
use super::choose::channel_plan;
use super::classes::{CLASSES, class};
use super::error::TeamError;
use super::kind::Kind;
use super::team::Team;
use super::word::Word;
use crate::choice::{self, Entry, Known, RANKS_LEAST};
use crate::collectives::{Options, Plan};
use crate::program::{Compare, Rank};
use isochrone_os::affinity::CoreSet;
use isochrone_units::CoreId;

/// A way that was chosen for a team's calls of one kind and size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// The collective.
    pub kind: Kind,
    /// Up to how many bytes; longer ones go in pieces.
    pub bytes: u32,
    /// From or to which rank; 0 where there is no root.
    pub root: Rank,
    /// How they are done.
    pub options: Options,
}

impl Team {
    /// Says on which cores this rank runs. Shapes are chosen by it, in place of the cores that the system lets the rank
    /// run on when it first makes a call that has a shape to choose; after that call it counts for nothing.
    pub fn runs_on(&mut self, cores: &[CoreId]) {
        let mut cores = cores.to_vec();
        cores.sort_unstable();
        cores.dedup();
        self.agreed().1.runs_on = cores;
    }

    /// What was chosen so far that is not the usual rule, as this rank sees it. It waits for nobody.
    pub fn chosen(&mut self) -> Vec<Chosen> {
        let area = std::sync::Arc::clone(self.area());
        if area.agreed().chooser().is_none() {
            return Vec::new();
        }
        let ranks = self.ranks();
        // Among more ranks one choice holds for all roots.
        let roots = |kind: Kind| if kind.rooted() && ranks <= ROOTS_MOST { ranks } else { 1 };
        let each = |kind: Kind| {
            let roots = (0..roots(kind)).map(Rank);
            roots.flat_map(move |root| CLASSES.map(move |bytes| (kind, root, bytes)))
        };
        let mut found = Vec::new();
        for (kind, root, bytes) in Kind::ALL.into_iter().flat_map(each) {
            let class = class(bytes as usize);
            let code = area.agreed().code(kind, class, root).load();
            let code = code.checked_sub(1).and_then(|code| u32::try_from(code).ok());
            let entry = code.and_then(Entry::of_code).filter(|entry| *entry != Entry::USUAL);
            let usual = channel_plan(self.choose(), kind, ranks, root, bytes as usize).ok();
            let way = entry.zip(usual).and_then(|(entry, usual)| self.meaning(entry, &usual));
            found.extend(way.map(|options| Chosen { kind, bytes, root, options }));
        }
        found
    }

    /// The plan by which the team does such calls: by its own choice, where one is made. All ranks ask in the
    /// same order as they make calls, since the first to ask may wait for the one that chooses.
    ///
    /// # Errors
    /// [`TeamError`] for a root that is no rank, and when a rank has ended.
    pub fn plan(&mut self, kind: Kind, root: Rank, bytes: usize) -> Result<Plan, TeamError> {
        self.check_root(root)?;
        let usual = channel_plan(self.choose(), kind, self.ranks(), root, bytes)?;
        let Some(chooser) = self.area().agreed().chooser() else { return Ok(usual) };
        if self.ranks() < RANKS_LEAST || !choice::is_chosen(usual.collective()) {
            return Ok(usual);
        }
        let entry = self.entry(chooser, kind, class(bytes), root, &usual)?;
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
        let groups = agreed.groups.get_or_insert_with(|| area.agreed().told_groups());
        entry.options(usual, groups)
    }

    /// The entry that was chosen: waits for it, or chooses.
    fn entry(
        &mut self,
        chooser: Rank,
        kind: Kind,
        class: usize,
        root: Rank,
        usual: &Plan,
    ) -> Result<Entry, TeamError> {
        let area = std::sync::Arc::clone(self.area());
        let agreed = area.agreed();
        let word = agreed.code(kind, class, root);
        if word.load() == 0 {
            self.say_cores(&area);
            if self.rank() == chooser {
                let code = self.decided(&area, usual)?.code();
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
        let told = std::mem::take(&mut memory.runs_on);
        let agreed = area.agreed();
        match CoreSet::of_this_thread() {
            _ if !told.is_empty() => agreed.say(me, told.into_iter()),
            Ok(cores) => agreed.say(me, cores.iter()),
            // No cores are no place: the team goes by the usual rule.
            Err(_) => agreed.say(me, std::iter::empty()),
        }
        self.add(agreed.said());
    }

    /// Chooses, at the rank that does.
    fn decided(&mut self, area: &Area, usual: &Plan) -> Result<Entry, TeamError> {
        let agreed = area.agreed();
        if self.agreed().1.known.is_none() {
            let ranks = self.ranks();
            self.until(agreed.said(), u64::from(ranks))?;
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
