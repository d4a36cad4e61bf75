//! Which cores are equally far: nested groups, and the smallest one that two cores share.

use crate::costs::Distances;
use isochrone_units::CoreId;

/// The innermost level at which both cores are in one group.
#[must_use]
pub fn common_level<D: Distances + ?Sized>(on: &D, a: CoreId, b: CoreId) -> Option<usize> {
    (0..on.levels()).find(|&level| {
        let group = on.group(level, a);
        group.is_some() && group == on.group(level, b)
    })
}

/// The groups of `cores` at a level, numbered as their first cores come, into `out`, which must be as
/// long; their count. A core that no group has is a group of its own. 0 for a level that is not there,
/// and then `out` stays as it is.
///
/// It takes time by the square of the number of cores: ask once.
pub fn groups<D: Distances + ?Sized>(
    on: &D,
    level: usize,
    cores: &[CoreId],
    out: &mut [u16],
) -> u16 {
    if level >= on.levels() || cores.len() != out.len() {
        return 0;
    }
    let mut count = 0;
    for (place, core) in cores.iter().enumerate() {
        let group = on.group(level, *core);
        let same = |earlier: &CoreId| group.is_some() && on.group(level, *earlier) == group;
        let known = cores[..place].iter().position(same);
        out[place] = known.map_or(count, |first| out[first]);
        if known.is_none() {
            count += 1;
        }
    }
    count
}
