//! What an atlas promises before anything is placed: the largest gain that the model predicts, and what it has to be.
//!
//! Where every page has the same near lines, these share a part of the cache's sets, and the model says that taking
//! nothing else gains nothing. A program is then better left alone. Commands and placements judge by this.

use isochrone_alloc::{Bins, CurrentBases, Mode, Policy, UnitLines, Wish, predict};
use isochrone_atlas::Atlas;
use isochrone_units::{CoreId, Grade, Level};

/// The least predicted gain for which anything is placed.
///
/// It is the gain of loads that wait for one another. Where these had 1.17, structures had 1.11 to 1.03 and A* nothing
/// (docs/results/allocator-granite-rapids-vm.md): a program keeps two thirds of it at best, and placing may cost a
/// twentieth, which two thirds of 0.08 pay for. With 1.05 none of twelve programs gained, and eight lost
/// (docs/results/advise-epyc-9005-vm.md).
pub const LEAST: f32 = 1.08;
/// The same by an atlas that was measured beside other work: noise looks like lines that differ, and such atlases of a
/// processor where nothing is gained were seen to predict up to 1.09.
pub const LEAST_DISTURBED: f32 = 1.10;
/// Steps of live memory for each doubling.
const STEPS: u32 = 2;

/// What the predicted gain has to be by an atlas whose distances of lines have this grade; `None` where nothing is
/// placed by it.
#[must_use]
pub fn least(grade: Option<Grade>) -> Option<f32> {
    match grade {
        Some(Grade::Unusable) => None,
        Some(Grade::Disturbed) => Some(LEAST_DISTURBED),
        Some(Grade::Quiet) | None => Some(LEAST),
    }
}

/// The largest gain of any of these cores, unit sizes, and amounts of live memory from half of a
/// second-level cache to all of the last-level one; beyond that nothing is predicted
/// (docs/method/allocator.md, "Beyond the last-level cache"). `None` where
/// the atlas lacks what the model needs.
#[must_use]
pub fn largest(atlas: &Atlas<'_>, cores: &[CoreId], policy: &Policy) -> Option<f32> {
    let bins = Bins::from_atlas(atlas);
    let mut seen: Vec<[Option<usize>; 2]> = Vec::new();
    let mut largest = None;
    for core in cores {
        let current = Level::ALL.map(|level| atlas.core_base(*core, level));
        if seen.contains(&current) {
            continue;
        }
        seen.push(current);
        let table = |at: usize| atlas.base(Level::ALL[at], current[at]?);
        let current = CurrentBases::of(table(0).as_ref(), table(1).as_ref());
        for live_bytes in amounts(policy) {
            for unit in UnitLines::ALL {
                let wish = wish(policy, live_bytes);
                let gain = predict(&bins, unit, &current, &wish, None).map(|found| found.gain());
                largest = [largest, gain].into_iter().flatten().reduce(f32::max);
            }
        }
    }
    largest
}

fn wish(policy: &Policy, live_bytes: u64) -> Wish {
    let Policy { near, llc_bytes, l2_bytes, tlb_bytes, .. } = *policy;
    // An experiment with other lines is worth as much as what it is compared with.
    Wish { mode: Mode::Aware, near, live_bytes, llc_bytes, l2_bytes, tlb_bytes }
}

/// Amounts of live memory to ask for, bytes.
fn amounts(policy: &Policy) -> impl Iterator<Item = u64> {
    let (least, most) = ((policy.l2_bytes / 2).max(1), policy.llc_bytes);
    let doublings = (most / least).max(1).ilog2();
    (0..=doublings * STEPS)
        .map(move |step| {
            (least << (step / STEPS)) * u64::from(STEPS + step % STEPS) / u64::from(STEPS)
        })
        .filter(move |bytes| *bytes <= most)
}

#[cfg(test)]
mod tests {
    use isochrone_atlas_store::contents::{Base, Clock, Contents, Form, LevelMap};
    use isochrone_machine::{Core, Machine};
    use isochrone_units::Reading;

    use super::*;

    /// A level of one core; one pattern for each class of pages, and how often each key is seen.
    fn level(name: &str, patterns: Vec<Vec<f32>>, keys: u8) -> LevelMap {
        let codes = 64 * patterns.len();
        let flat = patterns.iter().all(|p| p.iter().all(|cycles| *cycles == p[0]));
        LevelMap {
            level: name.to_owned(),
            form: if flat { Form::Flat } else { Form::Pattern },
            reason: "made for a test".to_owned(),
            method: "none".to_owned(),
            period: 64,
            classes: u8::try_from(patterns.len()).unwrap(),
            canonical_key: (0..64_u8).map(|key| key % keys).collect(),
            bases: vec![Base { core: 0, patterns, rounds: 1 }],
            core_base: vec![Some(0)],
            probe_lines: vec![0, 1, 2],
            noise_cycles: 1.0,
            code_share: (0..codes)
                .map(|code| if code < usize::from(keys) { 1.0 } else { 0.0 })
                .collect(),
            quality: Vec::new(),
            lines: Vec::new(),
            penalties: None,
        }
    }

    fn gain_of(llc: Vec<f32>, keys: u8) -> Option<f32> {
        let cores = vec![Core { id: 0, ..Core::default() }];
        let contents = Contents {
            complete: true,
            levels: vec![level("llc", vec![llc], keys), level("dram", vec![vec![340.0; 64]], 1)],
            ..Contents::begun(
                Reading::Simulated,
                Machine { name: "made".to_owned(), cores, ..Machine::default() },
                Clock { hz: 1e9, tick_cycles: 1, overhead_cycles: 0.0 },
            )
        };
        let bytes = isochrone_atlas_store::encode(&contents).expect("a sound atlas");
        let atlas = Atlas::open(&bytes).expect("just encoded");
        largest(&atlas, &[CoreId(0)], &Policy::default())
    }

    #[test]
    fn what_it_has_to_be_follows_from_the_grade() {
        assert_eq!(least(None), least(Some(Grade::Quiet)));
        assert!(least(Some(Grade::Disturbed)) > least(Some(Grade::Quiet)));
        assert_eq!(least(Some(Grade::Unusable)), None);
    }

    #[test]
    fn lines_that_differ_promise_something_and_lines_that_do_not_nothing() {
        let slices = (0..64_u8).map(|line| 32.0 + f32::from(line % 8) * 4.0).collect();
        let gain = gain_of(slices, 8).expect("both levels are known");
        assert!(gain > 1.1, "{gain}");
        let gain = gain_of(vec![40.0; 64], 1).expect("both levels are known");
        assert!((gain - 1.0).abs() < 1e-3, "{gain}");
    }

    #[test]
    fn amounts_go_from_half_of_one_cache_to_all_of_the_other() {
        let policy = Policy { l2_bytes: 1 << 20, llc_bytes: 4 << 20, ..Policy::default() };
        let kib: Vec<u64> = amounts(&policy).map(|bytes| bytes >> 10).collect();
        assert_eq!(kib, [512, 768, 1024, 1536, 2048, 3072, 4096]);
    }
}
