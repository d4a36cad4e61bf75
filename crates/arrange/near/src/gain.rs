//! What an atlas promises: the largest gain that the model predicts.

use isochrone_alloc::{Bins, CurrentBases, Mode, Policy, UnitLines, Wish, predict};
use isochrone_atlas::Atlas;
use isochrone_units::{CoreId, Level};

/// A gain that is printed as 1.00.
const NO_GAIN: f32 = 1.005;
/// Steps of live memory for each doubling.
const STEPS: u32 = 2;

/// The largest gain of any of these cores, where it is none worth the name; `None` where it is one, or the atlas lacks
/// what the model needs.
pub(crate) fn none(atlas: &Atlas<'_>, cores: &[CoreId], policy: &Policy) -> Option<f32> {
    largest(atlas, cores, policy).filter(|gain| *gain < NO_GAIN)
}

/// The largest gain of any of these cores, unit sizes, and amounts of live memory from half of a second-level cache to
/// all of the last-level one. Beyond that the model is not believed (docs/results/allocator-epyc-9005-vm.md).
fn largest(atlas: &Atlas<'_>, cores: &[CoreId], policy: &Policy) -> Option<f32> {
    let bins = Bins::from_atlas(atlas);
    let mut seen: Vec<[Option<usize>; 2]> = Vec::new();
    let mut gains = Vec::new();
    for core in cores {
        let worn = Level::ALL.map(|level| atlas.core_base(*core, level));
        if seen.contains(&worn) {
            continue;
        }
        seen.push(worn);
        let table = |at: usize| atlas.base(Level::ALL[at], worn[at]?);
        let current = CurrentBases::of(table(0).as_ref(), table(1).as_ref());
        for live_bytes in amounts(policy) {
            let Policy { near, llc_bytes, l2_bytes, tlb_bytes, .. } = *policy;
            let wish = Wish { mode: Mode::Aware, near, live_bytes, llc_bytes, l2_bytes, tlb_bytes };
            let gain = |unit| Some(predict(&bins, unit, &current, &wish, None)?.gain());
            gains.extend(UnitLines::ALL.into_iter().filter_map(gain));
        }
    }
    gains.into_iter().reduce(f32::max)
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
