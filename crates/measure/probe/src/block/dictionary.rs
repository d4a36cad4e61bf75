//! The current base of a core: identified at use, in a millisecond, among the bases that are known.
//!
//! A base is its pattern and how far its lines are. Cores of two regions may see the pages of one region in the same
//! pattern, a hundred cycles apart: such a core has the known pattern at a distance of its own, which
//! takes no longer to measure than to recognise. A pattern that is not known is measured anew (`base`).

use isochrone_stats::derive_seed;
use isochrone_units::{CoreId, Level};

use super::base::{Look, References, Sight, retry};
use super::far::FAR_SHARE;
use super::fit::{Fit, SAME_MEAN, farther, is_one, resemblance};
use super::learn::Learnt;
use crate::target::{Target, TargetError};

/// Timed loads that identify a base: 0.1 to 0.5 ms.
const IDENTIFY_SAMPLES: usize = 2048;
/// Seconds of them that measure one anew, where none of the dictionary fits: 40,000 loads from
/// DRAM, so that the mean of a class of pages is known to a thirtieth of the distance of classes.
const MEASURE_S: f64 = 0.012;
/// Looks for a new base that is seen twice before the last one is taken as it is.
const STEADY_LOOKS: u64 = 5;

/// Share that a base must explain of another one, or of what is seen elsewhere, to have its pattern. It is more than
/// what a base must explain that is as far: cores beside each other see almost the same pattern, from distances of
/// their own.
const SAME_PATTERN: f64 = 0.98;
/// By how much less of what was seen a base may explain than another one and be as likely: a fifth of what a base may
/// leave over.
const AS_LIKELY: f64 = 0.01;

/// What is known of the bases that a core may have.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Dictionary<'a> {
    /// `[class][canonical index]` of each, cycles.
    pub(super) bases: &'a [Vec<Vec<f64>>],
    /// The one that the core had last.
    pub(super) wore: Option<usize>,
}

impl Dictionary<'_> {
    /// What the fits of its bases say; `error` is that of the mean of what was seen. The pattern that explains most is
    /// the one, and of bases that have it the one that is as far. The base that the core wore is not left
    /// for less than what tells nodes of a machine apart, since means wander with the clock and with what others do.
    /// Nothing, where a pattern is seen at another distance and is not certain.
    fn found(&self, fits: &[Fit], error: f64) -> Option<Found> {
        let by_likeness = |a: &usize, b: &usize| fits[*a].likeness.total_cmp(&fits[*b].likeness);
        let all = || 0..fits.len();
        let like = all().filter(|base| fits[*base].has_pattern()).max_by(by_likeness)?;
        let is_as_far = |base: &usize| {
            let share = if self.wore == Some(*base) { FAR_SHARE } else { SAME_MEAN };
            fits[*base].is_as_far(share, error)
        };
        if is_as_far(&like) {
            return Some(Found::Known(like));
        }
        let has_the_pattern = |base: &usize| {
            fits[*base].likeness >= fits[like].likeness - AS_LIKELY
                || resemblance(&self.bases[*base], &self.bases[like]) >= SAME_PATTERN
        };
        let known = all().filter(is_as_far).filter(has_the_pattern).max_by(by_likeness);
        let farther = Found::Farther { like, by: fits[like].farther };
        let is_certain = fits[like].likeness >= SAME_PATTERN;
        known.map(Found::Known).or(is_certain.then_some(farther))
    }
}

/// What the fits of a dictionary say.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Found {
    /// This base was seen.
    Known(usize),
    /// The pattern of this base was seen, so many cycles farther.
    Farther { like: usize, by: f64 },
}

/// What [`identify`] found.
#[derive(Clone, Debug)]
pub(super) enum CurrentBase {
    /// Base number of the dictionary.
    Known(usize),
    /// The pattern of one of them, at another distance.
    Farther(Farther),
    /// None of them; this is what the core sees now.
    New(Sight),
}

/// A base with the pattern of a known one and a mean of its own.
#[derive(Clone, Debug)]
pub(super) struct Farther {
    /// Number of the known one.
    pub(super) like: usize,
    /// `[class][canonical index]`, cycles.
    pub(super) patterns: Vec<Vec<f64>>,
    /// Whether a second look saw the same.
    pub(super) steady: bool,
}

impl Farther {
    /// Whether another look saw the same.
    fn is(&self, other: &Self) -> bool {
        self.like == other.like && is_one(&self.patterns, &other.patterns, SAME_MEAN)
    }
}

impl CurrentBase {
    /// What the core sees now.
    pub(super) fn patterns<'a>(&'a self, dictionary: &Dictionary<'a>) -> &'a [Vec<f64>] {
        match self {
            Self::Known(number) => &dictionary.bases[*number],
            Self::Farther(farther) => &farther.patterns,
            Self::New(sight) => &sight.patterns,
        }
    }

    /// The same, which a second look saw too.
    fn again(self) -> Self {
        match self {
            Self::New(sight) => Self::New(Sight { steady: true, ..sight }),
            Self::Farther(found) => Self::Farther(Farther { steady: true, ..found }),
            Self::Known(number) => Self::Known(number),
        }
    }
}

/// Finds the current base of `core`, among those of the dictionary, or measures it. A base that is in no
/// dictionary is believed once a second look sees it again: one look may have straddled a move.
///
/// # Errors
/// Whatever the target refuses; a thread found on another core is tried again, eight times.
pub(super) fn identify(
    target: &mut dyn Target,
    core: CoreId,
    level: Level,
    references: &References,
    learnt: &Learnt,
    dictionary: Dictionary<'_>,
    seed: u64,
) -> Result<CurrentBase, TargetError> {
    let count = dictionary.bases.len();
    let mut bases = dictionary.bases.to_vec();
    let mut last = None;
    for attempt in 0..STEADY_LOOKS {
        let seed = derive_seed(seed, 1 << 20 | attempt);
        // What the look before measured is what the core had last.
        let wore = if bases.len() > count { Some(count) } else { dictionary.wore };
        let known = Dictionary { bases: &bases, wore };
        let found = identify_once(target, core, level, references, learnt, known, seed)?;
        let seen = match (found, last) {
            (CurrentBase::Known(base), Some(seen)) if base == count => return Ok(seen.again()),
            (CurrentBase::Known(base), _) => return Ok(CurrentBase::Known(base)),
            (CurrentBase::Farther(now), Some(CurrentBase::Farther(before))) if now.is(&before) => {
                return Ok(CurrentBase::Farther(now).again());
            }
            (CurrentBase::Farther(now), Some(CurrentBase::New(sight))) if now.like == count => {
                CurrentBase::New(Sight { patterns: now.patterns, ..sight })
            }
            (found, _) => found,
        };
        bases.truncate(count);
        if let CurrentBase::New(sight) = &seen {
            bases.push(sight.patterns.clone());
        }
        last = Some(seen);
    }
    last.ok_or_else(|| TargetError::Unsupported("no look was taken".into()))
}

/// One look: a base of the dictionary as soon as its pattern explains what is seen, else what was seen meanwhile.
pub(super) fn identify_once(
    target: &mut dyn Target,
    core: CoreId,
    level: Level,
    references: &References,
    learnt: &Learnt,
    dictionary: Dictionary<'_>,
    seed: u64,
) -> Result<CurrentBase, TargetError> {
    let end = target.seconds() + MEASURE_S;
    let mut look = Look::new(learnt);
    for batch in 0_u64.. {
        let seed = derive_seed(seed, batch);
        let (cells, values) =
            retry(|| references.time(target, core, level, IDENTIFY_SAMPLES, seed))?;
        look.add(&cells, &values, learnt, target.clock().tick);
        let seen = look.seen(learnt);
        let fits: Vec<Fit> = dictionary.bases.iter().map(|base| seen.fit(base)).collect();
        match dictionary.found(&fits, seen.mean_error()) {
            Some(Found::Known(number)) => return Ok(CurrentBase::Known(number)),
            Some(Found::Farther { like, by }) => {
                let patterns = farther(&dictionary.bases[like], by);
                return Ok(CurrentBase::Farther(Farther { like, patterns, steady: false }));
            }
            None if target.seconds() > end => {
                let pages = look.page_means(&references.addresses());
                return Ok(CurrentBase::New(Sight {
                    patterns: seen.denoised(learnt),
                    pages,
                    noise: seen.noise,
                    steady: false,
                }));
            }
            None => {}
        }
    }
    unreachable!("time passes on every target")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pattern, so far on average.
    fn base(mean: f64, turned: usize) -> Vec<Vec<f64>> {
        let line = |i: usize| ((i + turned) % 64 * 29 % 31) as f64 - 15.0;
        vec![(0..64).map(|i| mean + line(i)).collect()]
    }

    fn found(bases: &[Vec<Vec<f64>>], wore: Option<usize>, fits: &[Fit]) -> Option<Found> {
        Dictionary { bases, wore }.found(fits, 0.1)
    }

    #[test]
    fn of_one_pattern_in_two_regions_the_base_that_is_as_far_is_the_one() {
        let bases = [base(276.0, 0), base(186.0, 0), base(187.0, 0), base(186.0, 7)];
        let likeness = [0.999, 0.97, 0.98, 0.2];
        let fit =
            |at: usize, mean: f64| Fit { likeness: likeness[at], farther: 186.0 - mean, mean };
        let fits = [fit(0, 276.0), fit(1, 186.0), fit(2, 187.0), fit(3, 186.0)];
        assert_eq!(found(&bases, None, &fits), Some(Found::Known(2)));
        let far = Some(Found::Farther { like: 0, by: -90.0 });
        assert_eq!(found(&bases[..1], None, &fits[..1]), far);
        assert_eq!(found(&bases[3..], None, &fits[3..]), None, "another pattern is no base");
        assert_eq!(found(&[], None, &[]), None);
    }

    #[test]
    fn a_look_that_is_unlucky_with_the_near_base_does_not_make_another_one_of_it() {
        let bases = [base(276.0, 0), base(186.0, 0)];
        let far = Fit { likeness: 0.952, farther: -90.0, mean: 276.0 };
        let near = Fit { likeness: 0.948, farther: 0.3, mean: 186.0 };
        assert_eq!(found(&bases, Some(1), &[far, near]), Some(Found::Known(1)));
        assert_eq!(found(&bases, None, &[far, near]), Some(Found::Known(1)));
        assert_eq!(found(&bases[..1], None, &[far]), None, "that may be a neighbour's");
    }

    #[test]
    fn a_core_keeps_its_base_while_its_mean_wanders() {
        let bases = [base(200.0, 0), base(202.0, 0)];
        let fit = |likeness: f64, farther: f64| Fit { likeness, farther, mean: 200.0 };
        let wandered = [fit(0.99, 16.0), fit(0.98, 14.0)];
        assert_eq!(found(&bases, Some(1), &wandered), Some(Found::Known(1)));
        let another = Some(Found::Farther { like: 0, by: 16.0 });
        assert_eq!(found(&bases, None, &wandered), another);
        let other_node = [fit(0.99, 30.0), fit(0.98, 28.0)];
        let far = Some(Found::Farther { like: 0, by: 30.0 });
        assert_eq!(found(&bases, Some(1), &other_node), far);
        // A mean of few loads says less.
        let few = Dictionary { bases: &bases, wore: None }.found(&wandered, 4.0);
        assert_eq!(few, Some(Found::Known(0)));
    }
}
