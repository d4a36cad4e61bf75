//! Whether a program is to be run under the library at all: decided before it starts, from the atlas with its grade,
//! the cores that it may use, and the model.
//!
//! Why these bounds: docs/method/allocator.md, "`isochrone run`".

use anyhow::Result;
use isochrone_alloc::Policy;
use isochrone_atlas::Atlas;
use isochrone_atlas_store::contents::{Contents, LevelMap};
use isochrone_console::run::atlas::Found;
use isochrone_near::gain;
use isochrone_units::{CoreId, Experiment, Level};
use serde::Serialize;

/// A nearest quarter that is nearer by less than this is about as far as any lines.
const ALIKE: f32 = 1.02;
/// Pages whose near lines lie in the same sets of the caches, as a share of all, from which on all count as such.
const SAME_SETS: f32 = 0.9;
/// Keys by the lowest bits of a line's number, from which sets follow.
const RESIDUES: usize = 8;

/// What an atlas promises on the cores that a program may use.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Judgement {
    /// The largest gain that the model predicts, of dependent loads; nothing where the atlas lacks what it needs.
    pub(crate) predicted_gain: Option<f32>,
    /// What it has to be for anything to be placed.
    pub(crate) least_gain: f32,
    /// How far the atlas's distances of lines may be believed, where they were graded.
    pub(crate) grade: Option<String>,
    /// Whether anything is to be placed, unless it is forced.
    pub(crate) places: bool,
    /// Why, in words.
    pub(crate) why: String,
    /// Why nothing is placed, in a few words; empty where something is.
    #[serde(skip)]
    pub(crate) against: &'static str,
}

/// Why nothing is placed.
struct Against {
    why: &'static str,
    briefly: &'static str,
}

/// What the atlas that was found promises on these cores.
///
/// # Errors
/// Where the atlas cannot be asked.
pub(crate) fn of(found: &Found, policy: &Policy, cores: &[CoreId]) -> Result<Judgement> {
    let atlas = found.atlas.atlas()?;
    let gain = gain::largest(&atlas, cores, policy);
    Ok(judge(gain, &atlas, &found.contents, cores))
}

/// Judges by the gain that the model predicts (`gain::largest`).
fn judge(
    predicted: Option<f32>,
    atlas: &Atlas<'_>,
    contents: &Contents,
    cores: &[CoreId],
) -> Judgement {
    let grade = atlas.grade(Experiment::Block);
    let least = gain::least(grade);
    let no = match (least, predicted) {
        (None, _) => Some((UNUSABLE.why.to_owned(), UNUSABLE)),
        (_, None) => Some((NOT_SAID.why.to_owned(), NOT_SAID)),
        (Some(least), Some(gain)) if gain < least => {
            let no = if gain < gain::LEAST {
                nothing_to_gain(atlas, contents, cores)
            } else {
                DISTURBED
            };
            Some((format!("predicted gain {gain:.2}: nothing is placed, since {}", no.why), no))
        }
        _ => None,
    };
    let against = no.as_ref().map_or("", |(_, no)| no.briefly);
    Judgement {
        predicted_gain: predicted,
        least_gain: least.unwrap_or(gain::LEAST),
        grade: grade.map(|grade| grade.to_string()),
        places: no.is_none(),
        against,
        why: no.map(|(why, _)| why).unwrap_or_else(|| {
            format!(
                "predicted gain {:.2} where loads of small objects wait for one another: these get near lines",
                predicted.unwrap_or(1.0)
            )
        }),
    }
}

const UNUSABLE: Against = Against {
    why: "nothing is placed: how far lines are is graded unusable in this atlas (measure again with `isochrone map`)",
    briefly: "graded unusable",
};
const NOT_SAID: Against = Against {
    why: "nothing is placed: this atlas does not say how far lines are (measure again with `isochrone map`)",
    briefly: "not in this atlas",
};
const DISTURBED: Against = Against {
    why: "the atlas was measured beside other work, where noise alone promises as much (measure again \
          on a quiet machine)",
    briefly: "measured beside other work",
};
const ALL_ALIKE: Against = Against {
    why: "all lines are about equally far from the cores here",
    briefly: "all lines are about equally far",
};
const SAME_IN_ALL: Against = Against {
    why: "every page has the same near lines, which share a part of the caches' sets",
    briefly: "every page has the same near lines",
};
const COSTS_MORE: Against = Against {
    why: "what near lines gain here is less than what placing costs",
    briefly: "they gain less than placing costs",
};

/// What of this machine is in the way.
fn nothing_to_gain(atlas: &Atlas<'_>, contents: &Contents, cores: &[CoreId]) -> Against {
    let apart = cores.iter().filter_map(|core| {
        let means = atlas.means(*core, Level::Llc)?;
        Some(means.mean_ns / means.near_quarter_ns)
    });
    let apart = apart.filter(|ratio| ratio.is_finite()).reduce(f32::max);
    let cache = contents.levels.iter().find(|level| level.level == "llc");
    if apart.is_some_and(|ratio| ratio < ALIKE) {
        ALL_ALIKE
    } else if cache.is_some_and(has_one_pattern) {
        SAME_IN_ALL
    } else {
        COSTS_MORE
    }
}

/// Whether the near lines of nearly all pages are the same, up to what does not change their sets.
fn has_one_pattern(level: &LevelMap) -> bool {
    let period = usize::from(level.period).max(1);
    let mut shares = [0.0; RESIDUES];
    for (code, share) in level.code_share.iter().enumerate() {
        shares[code % period % RESIDUES] += share;
    }
    let all: f32 = shares.iter().sum();
    shares.into_iter().fold(0.0, f32::max) >= SAME_SETS * all
}

#[cfg(test)]
mod tests {
    use isochrone_atlas_store::contents::{Clock, Form, Graded};
    use isochrone_machine::{Core, Machine};
    use isochrone_units::{Grade, Reading};

    use super::*;

    /// An atlas whose pages have so many keys, and whose experiment has a grade.
    fn atlas(keys: usize, grade: Option<Grade>) -> Contents {
        let level = LevelMap {
            level: "llc".to_owned(),
            form: Form::Flat,
            reason: "made for a test".to_owned(),
            method: "none".to_owned(),
            period: 64,
            classes: 1,
            canonical_key: (0..64).collect(),
            bases: Vec::new(),
            core_base: vec![None],
            probe_lines: vec![0],
            noise_cycles: 1.0,
            code_share: (0..64).map(|code| if code < keys { 1.0 } else { 0.0 }).collect(),
            quality: Vec::new(),
            lines: Vec::new(),
            penalties: None,
        };
        let graded = grade.map(|grade| Graded { grade, reason: "as the test says".to_owned() });
        Contents {
            complete: true,
            levels: vec![level],
            quality: graded.into_iter().map(|graded| (Experiment::Block, graded)).collect(),
            ..Contents::begun(
                Reading::Simulated,
                Machine {
                    name: "made".to_owned(),
                    cores: vec![Core { id: 0, ..Core::default() }],
                    ..Machine::default()
                },
                Clock { hz: 1e9, tick_cycles: 1, overhead_cycles: 0.0 },
            )
        }
    }

    fn judged(gain: Option<f32>, keys: usize, grade: Option<Grade>) -> Judgement {
        let contents = atlas(keys, grade);
        let bytes = isochrone_atlas_store::encode(&contents).expect("a sound atlas");
        judge(gain, &Atlas::open(&bytes).expect("just encoded"), &contents, &[CoreId(0)])
    }

    #[test]
    fn what_gains_less_than_placing_costs_is_left_alone_with_the_reason() {
        let found = judged(Some(1.004), 1, Some(Grade::Quiet));
        assert!(!found.places && found.why.starts_with("predicted gain 1.00: nothing is placed"));
        assert!(found.why.contains("the same near lines"), "{}", found.why);
        let found = judged(Some(1.05), 64, None);
        assert!(!found.places && found.why.contains("less than what placing costs"));
        let found = judged(Some(1.15), 64, Some(Grade::Quiet));
        assert!(found.places && found.why.starts_with("predicted gain 1.15"), "{}", found.why);
    }

    #[test]
    fn a_disturbed_atlas_has_to_promise_more_and_an_unusable_one_is_not_gone_by() {
        let found = judged(Some(1.09), 64, Some(Grade::Disturbed));
        assert!(!found.places && found.why.contains("beside other work"), "{}", found.why);
        assert!(judged(Some(1.11), 64, Some(Grade::Disturbed)).places);
        let found = judged(Some(1.30), 64, Some(Grade::Unusable));
        assert!(!found.places && found.why.contains("graded unusable"), "{}", found.why);
        let found = judged(None, 64, Some(Grade::Quiet));
        assert!(!found.places && found.why.contains("does not say"), "{}", found.why);
    }
}
