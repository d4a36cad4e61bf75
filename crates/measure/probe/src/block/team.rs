//! Decoding on several cores at the same time, each in its own base: which cores can, whether they disturb
//! each other, and how their shares become one.
//!
//! Codes belong to pages and not to cores, so a page may be decoded by any core that can tell all codes
//! apart. Pages go to whoever is free. Whether that is as good as one core alone is tried on the first pages,
//! and is not assumed.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use isochrone_stats::derive_seed;
use isochrone_units::{LineAddr, PageAddr};

use super::decode::{Decoded, decode};
use super::decoding_core::{DecodePlan, DecodingCore};
use super::forks::{Together, on_forks};
use super::level::LevelRun;
use super::pass::Candidates;
use crate::target::{Target, TargetError};

/// References that each core needs for itself: fewer would leave its offset unknown for long.
const REFERENCES_EACH: usize = 32;
/// Pages that are decoded by one core, by one core again, and by all at the same time: of 2048 the start of
/// threads takes more than decoding.
const TRIED: usize = 8192;
/// Pages without which it is not tried.
const WORTH_TRYING: usize = 4 * TRIED;
/// Standard errors by which codes must differ more than one core's differ from its own before cores are
/// said to disturb each other.
const DISTURBED_Z: f64 = 4.0;

/// Decodes with one thread for each plan; `None` where the target cannot be sampled by several.
pub(super) fn decode_together(
    target: &dyn Target,
    first_lines: &[LineAddr],
    plans: &[DecodePlan<'_>],
    keep_going: &dyn Fn() -> bool,
) -> Option<Result<Decoded, TargetError>> {
    let queue = AtomicUsize::new(0);
    let work = |number: usize, fork: &mut dyn Target, going: &AtomicBool| {
        let done =
            decode(fork, first_lines, &queue, &plans[number], &|| going.load(Ordering::Relaxed));
        // Who lost its base, or cannot go on, has to be looked after before the others go on.
        if done.as_ref().map_or(true, |done| done.base_lost) {
            going.store(false, Ordering::Relaxed);
        }
        Share { done, end: fork.seconds() }
    };
    let Together { done: shares, begin } = on_forks(target, plans.len(), keep_going, &work)?;
    let end = shares.iter().map(|share| share.end).fold(begin, f64::max);
    let done = shares.into_iter().map(|share| share.done).collect::<Result<Vec<_>, _>>();
    Some(done.map(|done| {
        let mut all = Decoded { codes: vec![None; first_lines.len()], ..Decoded::default() };
        done.into_iter().for_each(|share| all.join(share));
        Decoded { total_s: end - begin, ..all }
    }))
}

/// What one thread decoded, and when it was done.
struct Share {
    done: Result<Decoded, TargetError>,
    end: f64,
}

impl Decoded {
    /// Adds what another thread did at the same time.
    fn join(&mut self, other: Self) {
        for (code, found) in self.codes.iter_mut().zip(&other.codes) {
            *code = code.or(*found);
        }
        self.add(&other);
        self.unverified.extend(other.unverified);
        self.base_lost |= other.base_lost;
    }
}

impl LevelRun<'_> {
    /// One pass over pages, by one team or by all cores that can decode alone.
    pub(super) fn decode_once(
        &mut self,
        first_lines: &[LineAddr],
        candidates: &Candidates,
        seed: u64,
    ) -> Result<Decoded, TargetError> {
        let teams = self.teams(candidates);
        let tellers: Vec<DecodingCore> =
            teams.iter().flatten().map(|j| candidates.all[*j].clone()).collect();
        let decoding_cores: Vec<Vec<DecodingCore>> = teams
            .iter()
            .map(|team| {
                team.iter().map(|decoding_core| candidates.all[*decoding_core].clone()).collect()
            })
            .collect();
        let others: Vec<_> = teams.iter().map(|team| candidates.others(team)).collect();
        let plans: Vec<DecodePlan<'_>> = decoding_cores
            .iter()
            .zip(&others)
            .enumerate()
            .map(|(part, (decoding_cores, others))| DecodePlan {
                decoding_cores,
                tellers: &tellers,
                part: (part, teams.len()),
                others,
                level: self.level,
                learnt: &self.learnt,
                penalties: &self.penalties,
                lines: &self.probe_lines,
                noise: self.noise,
                references: &self.references,
                seed: derive_seed(self.plan.seed, seed),
                window: self.plan.window,
            })
            .collect();
        let watch = &*self.watch;
        let keep_going = || watch.keep_going();
        if plans.len() > 1
            && let Some(done) = decode_together(&*self.target, first_lines, &plans, &keep_going)
        {
            return done;
        }
        decode(self.target, first_lines, &AtomicUsize::new(0), &plans[0], &keep_going)
    }

    /// Who decodes: each core that can alone, if they do not disturb each other; else the decoding cores in turn.
    pub(super) fn teams(&self, candidates: &Candidates) -> Vec<Vec<usize>> {
        let alone = candidates.alone();
        let room = (self.training.len() / REFERENCES_EACH).max(1);
        if self.together != Some(true) || alone.len().min(room) < 2 {
            return vec![candidates.chosen.clone()];
        }
        alone.into_iter().take(room).map(|decoding_core| vec![decoding_core]).collect()
    }

    /// Finds out whether decoding by several cores at the same time gives what one core gives, and sooner.
    pub(super) fn try_together(&mut self) -> Result<(), TargetError> {
        self.together = Some(false);
        if !self.watch.keep_going() {
            return Ok(());
        }
        let pages = usize::try_from(self.target.pages()).unwrap_or(usize::MAX);
        let candidates = self.candidates()?;
        if candidates.alone().len() < 2 || pages < WORTH_TRYING || self.target.fork().is_none() {
            return Ok(());
        }
        self.watch.step(&format!("{}: whether cores that decode disturb each other", self.level));
        let tried: Vec<PageAddr> = (0..TRIED as u64).map(PageAddr).collect();
        let firsts = self.block_lines(&tried);
        let first = self.decode_resuming(&firsts)?;
        let again = self.decode_resuming(&firsts)?;
        self.together = Some(true);
        let all = self.decode_resuming(&firsts)?;
        // What was cut short is no comparison.
        if !self.watch.keep_going() {
            self.together = Some(false);
            return Ok(());
        }
        let alike = |a: &[Option<u16>], b: &[Option<u16>]| {
            a.iter().zip(b).filter(|(a, b)| a == b).count() as f64 / a.len().max(1) as f64
        };
        let (own, shared) = (alike(&first.codes, &again.codes), alike(&first.codes, &all.codes));
        let error = (own * (1.0 - own)).max(0.01) * 2.0 / firsts.len().max(1) as f64;
        let disturbed = shared < own - DISTURBED_Z * error.sqrt();
        let soonest = first.cost.total_s.min(again.cost.total_s);
        let slower = all.cost.total_s >= soonest;
        if disturbed || slower {
            self.together = Some(false);
            self.notes.push(format!(
                "{} decoding by several cores at the same time: {:.0} % of the codes are those of one core, which \
                 agrees with itself on {:.0} %, in {:.1} ms instead of {:.1}; one core decodes",
                self.level,
                100.0 * shared,
                100.0 * own,
                1e3 * all.cost.total_s,
                1e3 * soonest,
            ));
        }
        Ok(())
    }
}

impl Candidates {
    /// The bases of all cores that are not in the team: they will use the codes.
    fn others(&self, team: &[usize]) -> Vec<Vec<Vec<f64>>> {
        let others = (0..self.all.len()).filter(|decoding_core| !team.contains(decoding_core));
        others.map(|decoding_core| self.all[decoding_core].patterns.clone()).collect()
    }

    /// The cores that see every pair of codes as far apart as decoding cores together have to.
    fn alone(&self) -> Vec<usize> {
        let pairs = self.gaps.first().map_or(0, Vec::len);
        let best: Vec<f64> = (0..pairs)
            .map(|pair| self.gaps.iter().map(|gaps| gaps[pair]).fold(0.0, f64::max))
            .collect();
        let enough = |decoding_core: &usize| {
            self.gaps[*decoding_core].iter().zip(&best).all(|(gap, best)| Self::tells(*gap, *best))
        };
        (0..self.all.len()).filter(enough).collect()
    }
}

#[cfg(test)]
mod tests {
    use isochrone_sim::synthetic::{SyntheticMemory, SyntheticSpec};
    use isochrone_units::{CoreId, Level};

    use super::*;
    use crate::block::BlockPlan;
    use crate::block::in_the_way::InTheWay;
    use crate::synthetic::SyntheticTarget;
    use crate::watch::Silent;

    const PAGES: u64 = WORTH_TRYING as u64;

    fn plan() -> BlockPlan {
        BlockPlan {
            training_pages: [64, 64],
            heldout_pages: 32,
            training_rounds: [48, 48],
            ..BlockPlan::quick(PAGES, 5)
        }
    }

    fn synthetic(spec: SyntheticSpec) -> SyntheticTarget {
        let spec = spec.with_pages(PAGES).with_cores(2);
        SyntheticTarget::new(SyntheticMemory::new(spec).expect("a valid spec")).with_forks()
    }

    /// Runs `then` on a level whose form is learnt.
    fn learnt<T>(target: &mut dyn Target, then: impl FnOnce(&mut LevelRun<'_>) -> T) -> T {
        let (plan, mut watch) = (plan(), Silent);
        let mut run = LevelRun::new(target, &plan, Level::Llc, &mut watch);
        run.look_and_learn(&[CoreId(0), CoreId(1)]).expect("nothing is refused");
        then(&mut run)
    }

    #[test]
    fn cores_at_the_same_time_find_what_one_core_finds() {
        let mut target = synthetic(SyntheticSpec::emerald_rapids_like(3).noiseless());
        learnt(&mut target, |run| {
            let firsts: Vec<LineAddr> = (0..3000).map(|page| PageAddr(page).line(0)).collect();
            run.together = Some(false);
            let one = run.decode_resuming(&firsts).expect("it decodes");
            run.together = Some(true);
            let candidates = run.candidates().expect("bases are known");
            assert_eq!(run.teams(&candidates), [[0], [1]], "each can alone");
            let both = run.decode_resuming(&firsts).expect("it decodes");
            assert_eq!(both.decoding_cores.len(), 2);
            assert!(both.codes.iter().all(Option::is_some));
            assert_eq!(one.codes, both.codes);
        });
    }

    #[test]
    fn cores_that_disturb_each_other_decode_alone() {
        let inner = Box::new(synthetic(SyntheticSpec::emerald_rapids_like(3)));
        // What a fork reads belongs to another line.
        let other = |line: LineAddr| LineAddr(line.0 ^ (line.0 >> 6 & 63));
        let mut target = InTheWay::of(inner, other, |cycles| cycles);
        learnt(&mut target, |run| {
            run.try_together().expect("nothing is refused");
            assert_eq!(run.together, Some(false));
            assert_eq!(run.notes.len(), 1, "it is said: {:?}", run.notes);
        });
    }

    #[test]
    fn a_target_of_one_thread_is_not_asked_for_more() {
        let spec = SyntheticSpec::emerald_rapids_like(3).with_pages(PAGES).with_cores(2);
        let mut target = SyntheticTarget::new(SyntheticMemory::new(spec).expect("a valid spec"));
        learnt(&mut target, |run| {
            run.try_together().expect("nothing is refused");
            assert_eq!((run.together, run.notes.len()), (Some(false), 0));
        });
    }
}
