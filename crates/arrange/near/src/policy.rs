//! How lines are chosen, from the options and what the atlas says of the machine's caches.

use isochrone_alloc::{Mode, Policy};
use isochrone_atlas_store::contents::Contents;
use isochrone_units::CoreId;

use crate::options::{Lists, Mix, Options};

/// A last-level cache where the atlas does not say.
const LLC_BYTES: u64 = 32 << 20;
/// A second-level cache where the atlas does not say.
const L2_BYTES: u64 = 2 << 20;

/// As the options say, with lines ranked by use.
pub(crate) fn by_use(options: &Options, contents: &Contents) -> Policy {
    let first = CoreId(contents.machine.cores.first().map_or(0, |core| core.id));
    let shown = contents.machine.last_level_cache(first).and_then(|cache| cache.bytes);
    // The share of the core that has least: near lines must fit it wherever a thread runs.
    let share = contents.llc_shares.iter().filter_map(|share| share.bytes).min();
    let nearer = contents.machine.cache(first, 2).and_then(|cache| cache.bytes);
    Policy {
        mode: match options.lists {
            Lists::Nearest => Mode::Aware,
            Lists::NearestParticipant => Mode::NearestParticipant,
        },
        near: options.near,
        waste: options.waste,
        llc_bytes: share.or(shown).unwrap_or(LLC_BYTES),
        l2_bytes: nearer.unwrap_or(L2_BYTES),
        tlb_bytes: isochrone_os::tlb::reach_bytes(false).unwrap_or(0),
        ..Policy::default()
    }
}

/// The same policy with lines ranked by a level alone: everything is found in a cache that is large enough, or in none.
pub(crate) fn ranked(by_use: Policy, mix: Mix) -> Policy {
    match mix {
        Mix::ByUse => by_use,
        Mix::Cache => Policy { llc_bytes: u64::MAX, ..by_use },
        Mix::Memory => Policy { llc_bytes: 0, l2_bytes: 0, ..by_use },
    }
}
