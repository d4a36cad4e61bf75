//! Cores that are not learnt in full: each is given a base by a few loads of pages whose codes are known.
//!
//! Codes belong to pages, so a few cores can learn them for all. What is left of another core is its base: one
//! that is known, or its own, which reference pages tell in some ten milliseconds (`base`). Whether the codes hold
//! for that core too is asked of other loads (`explained`). A core that they do not hold for is learnt in full if
//! there is time, and else has no base; so has one that there was no time for. Each is named.
//!
//! Bases are found while cores are asked, one after the other. So a core that was given another core's base is asked
//! once more where one that was found since may be more like what it sees.

use isochrone_atlas_store::contents::{Form, Quality, Verified};
use isochrone_machine::strides;
use isochrone_stats::derive_seed;
use isochrone_units::{CoreId, Level};

use super::base::References;
use super::dictionary::{CurrentBase, Dictionary, identify, identify_once};
use super::explained::{Explained, Question};
use super::fit::{IS_BASE, SAME_MEAN, is_one, resemblance};
use super::learn::{FORM_HOLDS, Learnt};
use super::left_out::{LeftOut, Refused, Unlike};
use super::level::{LevelRun, SCORES_LEAVE};
use crate::target::{Target, TargetError};

/// Times that a core is asked: it may have been moved between its base and what the base explains.
const TRIES: u64 = 2;
/// Standard errors by which a base must explain too little for that to be believed.
const ERRORS: f64 = 3.0;
/// Cores that the codes do not hold for and that are learnt in full, at most, after cores were verified.
const STRANGERS: usize = 8;

/// What is known while cores are verified.
#[derive(Clone, Copy)]
pub(super) struct Verifier<'a> {
    pub(super) level: Level,
    pub(super) learnt: &'a Learnt,
    pub(super) references: &'a References,
    /// Bases that a core may have.
    pub(super) bases: &'a [Vec<Vec<f64>>],
    pub(super) seed: u64,
}

/// What a few loads say of a core.
#[derive(Clone, Debug)]
pub(super) struct Verdict {
    pub(super) base: CurrentBase,
    pub(super) explained: Explained,
}

impl Verdict {
    /// Whether the codes of pages hold for the core.
    pub(super) fn holds(&self) -> bool {
        self.explained.may_reach(FORM_HOLDS, ERRORS)
    }
}

impl Verifier<'_> {
    /// The base of a core, and how much of what it sees then the base explains.
    pub(super) fn verdict(
        &self,
        target: &mut dyn Target,
        core: CoreId,
    ) -> Result<Verdict, TargetError> {
        let mut attempt = 0;
        loop {
            attempt += 1;
            let seed = derive_seed(self.seed, u64::from(core.0) * TRIES + attempt);
            let found = self.attempt(target, core, seed)?;
            if found.holds() || attempt == TRIES {
                return Ok(found);
            }
        }
    }

    fn attempt(
        &self,
        target: &mut dyn Target,
        core: CoreId,
        seed: u64,
    ) -> Result<Verdict, TargetError> {
        let Self { level, learnt, references, bases, .. } = *self;
        let dictionary = Dictionary { bases, wore: None };
        // Where lines do not differ, one look tells how far they are, and none is like another.
        let base = if learnt.form == Form::Flat {
            identify_once(target, core, level, references, learnt, Dictionary::default(), seed)?
        } else {
            identify(target, core, level, references, learnt, dictionary, seed)?
        };
        let patterns = base.patterns(&dictionary);
        let seed = derive_seed(seed, 1);
        let references = &references.fair();
        let question = Question { core, level, references, learnt, base: patterns, seed };
        let explained = question.ask(target)?;
        Ok(Verdict { base, explained })
    }
}

impl LevelRun<'_> {
    /// Gives each core that was not learnt in full a base and says in `quality` how it is known. Returns those that
    /// the codes do not hold for, as many as may be learnt in full.
    pub(super) fn verify_others(
        &mut self,
        quality: &mut [Quality],
    ) -> Result<Vec<CoreId>, TargetError> {
        self.left_out = LeftOut::default();
        let others = self.others();
        if self.learnt.form == Form::PerLine {
            self.left_out.formless = others.iter().map(|core| core.0).collect();
            return Ok(Vec::new());
        }
        let known = self.bases.len();
        let mut asked = self.abreast(&others)?;
        let mut strangers = Vec::new();
        let mut among = Vec::with_capacity(others.len());
        for core in others {
            let found = match asked.remove(&core.0) {
                Some(Ok(verdict)) if verdict.holds() => {
                    among.push((core, known));
                    Ok(verdict)
                }
                // Who does not fit beside others is asked alone before it is believed.
                _ if self.may_go_on(SCORES_LEAVE) => {
                    self.watch.step(&format!("{}: verifying {core}", self.level));
                    among.push((core, self.bases.len()));
                    self.verdict(core)
                }
                _ => {
                    self.cut_short = true;
                    self.left_out.late.push(core.0);
                    continue;
                }
            };
            if !self.take(core, found, known, quality) {
                strangers.push(core);
            }
        }
        self.ask_again(&among, quality)?;
        strangers.truncate(STRANGERS);
        Ok(strangers)
    }

    /// Asks cores once more that may see what a base is more like that was found after they were asked; each comes with
    /// how many bases were known then. Who is not found in a known base now keeps what it was given.
    fn ask_again(
        &mut self,
        among: &[(CoreId, usize)],
        quality: &mut [Quality],
    ) -> Result<(), TargetError> {
        let may = among.iter().filter(|(core, known)| self.may_see_another(*core, *known));
        let cores: Vec<CoreId> = may.map(|(core, _)| *core).collect();
        if cores.is_empty() {
            return Ok(());
        }
        let mut asked = self.abreast(&cores)?;
        for core in cores {
            let found = match asked.remove(&core.0) {
                Some(found) => found,
                None if self.may_go_on(SCORES_LEAVE) => {
                    self.watch.step(&format!("{}: verifying {core} again", self.level));
                    self.verdict(core)
                }
                None => break,
            };
            let Ok(verdict) = found else { continue };
            if let (CurrentBase::Known(number), true) = (&verdict.base, verdict.holds()) {
                self.note_base(core, u16::try_from(*number).unwrap_or(u16::MAX));
                self.note_explained(core, &verdict.explained, false, quality);
            }
        }
        Ok(())
    }

    /// Whether a core that wears a base of another core may see what one is more like that was found after so many.
    fn may_see_another(&self, core: CoreId, known: usize) -> bool {
        let place = self.cores.iter().position(|other| *other == core);
        let number = place.and_then(|place| self.current[place]);
        let Some((base, patterns)) = number.and_then(|n| self.bases.get(usize::from(n))) else {
            return false;
        };
        let since = &self.bases[known.min(self.bases.len())..];
        let alike = |other: &[Vec<f64>]| resemblance(patterns, other) >= least_of_two();
        base.core != core.0 && since.iter().any(|other| alike(&other.1))
    }

    /// The cores that are verified: those that were not to be learnt, and those that there was no time to learn. None
    /// where all were to be.
    fn others(&self) -> Vec<CoreId> {
        let cores = self.cores.iter().zip(&self.current);
        let others = cores.filter(|(core, base)| !self.learners.contains(core) || base.is_none());
        if self.learners.len() == self.cores.len() {
            return Vec::new();
        }
        let mut others: Vec<CoreId> = others.map(|(core, _)| *core).collect();
        self.plan.in_order(&mut others);
        others
    }

    /// Seed of all orders while cores are verified.
    pub(super) fn verifying_seed(&self) -> u64 {
        derive_seed(self.plan.seed, 11_000 + self.level as u64)
    }

    fn verdict(&mut self, core: CoreId) -> Result<Verdict, TargetError> {
        let bases: Vec<Vec<Vec<f64>>> = self.bases.iter().map(|base| base.1.clone()).collect();
        let (references, learnt) = (&self.references, &self.learnt);
        let seed = self.verifying_seed();
        let verifier = Verifier { level: self.level, learnt, references, bases: &bases, seed };
        verifier.verdict(self.target, core)
    }

    /// Keeps what a few loads said of a core; false where the codes do not hold for it. `known` bases were known to all
    /// who were asked: the same new one may have been seen by several.
    fn take(
        &mut self,
        core: CoreId,
        verdict: Result<Verdict, TargetError>,
        known: usize,
        quality: &mut [Quality],
    ) -> bool {
        let verdict = match verdict {
            Ok(verdict) => verdict,
            Err(error) => {
                self.left_out.refused.push(Refused { core: core.0, why: error.to_string() });
                return true;
            }
        };
        if let CurrentBase::New(sight) = &verdict.base {
            // Two classes that this core alone can tell leave much unexplained: they are learnt, and it is asked again.
            self.note_split(sight);
        }
        if !verdict.holds() {
            let share = verdict.explained.share;
            self.left_out.unlike.push(Unlike { core: core.0, share });
            return false;
        }
        let (number, own_base) = match verdict.base {
            CurrentBase::Known(number) => (u16::try_from(number).unwrap_or(u16::MAX), false),
            CurrentBase::Farther(found) => match self.seen_since(known, &found.patterns) {
                Some(number) => (number, false),
                None => (self.keep_farther(core, found), false),
            },
            CurrentBase::New(sight) => match self.seen_since(known, &sight.patterns) {
                Some(number) => (number, false),
                None => (self.keep_base(core, sight.patterns, 0), true),
            },
        };
        self.note_base(core, number);
        self.note_explained(core, &verdict.explained, own_base, quality);
        true
    }

    /// Says in `quality` how the base of a core is known.
    fn note_explained(
        &self,
        core: CoreId,
        found: &Explained,
        own_base: bool,
        quality: &mut [Quality],
    ) {
        let Some(place) = self.cores.iter().position(|other| *other == core) else { return };
        let mean_ns = Some(found.mean_cycles * 1e9 / self.target.clock().hz);
        let quality = &mut quality[place];
        quality.mean_ns = quality.mean_ns.or(mean_ns);
        quality.verified = Some(verified(found, own_base));
    }

    /// The number of a base like this one, and as far, among those that were found after so many. Flat ones are not
    /// compared: how far lines are is all that they say.
    fn seen_since(&self, known: usize, patterns: &[Vec<f64>]) -> Option<u16> {
        if self.learnt.form == Form::Flat {
            return None;
        }
        let alike = |number: &usize| is_one(&self.bases[*number].1, patterns, SAME_MEAN);
        (known..self.bases.len()).find(alike).and_then(|number| u16::try_from(number).ok())
    }

    /// Bases that are a known pattern at another distance, found where cores were verified.
    fn distances(&self, quality: &[Quality]) -> usize {
        let cores = self.cores.iter().zip(quality);
        let verified = cores.filter_map(|(core, found)| Some((core.0, found.verified.as_ref()?)));
        let known: Vec<u16> =
            verified.filter(|(_, found)| !found.own_base).map(|(core, _)| core).collect();
        self.bases.iter().filter(|(base, _)| known.contains(&base.core)).count()
    }

    /// One line for what was verified, and one for each reason why cores have no base.
    pub(super) fn note_verified(&mut self, quality: &[Quality]) {
        let what = format!("{} latency", self.level);
        let known: Vec<&Verified> =
            quality.iter().filter_map(|core| core.verified.as_ref()).collect();
        if !known.is_empty() {
            let mut learnt: Vec<u16> = self.looks.iter().map(|(core, _)| core.0).collect();
            learnt.sort_unstable();
            learnt.dedup();
            let own = known.iter().filter(|core| core.own_base).count();
            let elsewhere = match self.distances(quality) {
                0 => String::new(),
                count => format!("; known patterns were seen at {count} more distances"),
            };
            let worst = known.iter().filter_map(|core| core.explained).reduce(f64::min);
            let worst = worst.map_or(String::new(), |share| {
                format!("; at least {:.0} % of what repeats is explained", 100.0 * share)
            });
            self.notes.push(format!(
                "{what}: {} of {} cores were learnt in full ({}), {} were verified by a few loads, {own} of them in a \
                 base of their own{elsewhere}{worst}",
                learnt.len(),
                self.cores.len(),
                strides(&learnt),
                known.len(),
            ));
        }
        let left_out = std::mem::take(&mut self.left_out);
        self.notes.extend(left_out.lines().iter().map(|line| format!("{what}: {line}")));
    }
}

/// How much of a base another one explains at least, where both explain [`IS_BASE`] of what a core sees. Shares go by
/// squares: each lies so far from what is seen, in parts of it, and both may lie on opposite sides.
fn least_of_two() -> f64 {
    let off = (1.0 - IS_BASE).sqrt();
    1.0 - (2.0 * off / (1.0 - off)).powi(2)
}

fn verified(found: &Explained, own_base: bool) -> Verified {
    let share = found.repeats.then_some(found.share);
    let error = share.map(|_| found.error);
    Verified { own_base, explained: share, error, loads: found.loads }
}
