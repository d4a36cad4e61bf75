//! How far a process has come to know what placing gains: plain data.

use isochrone_alloc::Promise;
use isochrone_alloc::live::Stats;
use isochrone_atlas::Atlas;
use isochrone_units::Level;

/// Time that a slice inside of an allocation is given; its last step adds up to forty microseconds.
pub(super) const SLICE_NS: u64 = 50_000;
/// Loads that a slice may time at least: one piece between two looks at the clock.
const LOADS_LEAST: u64 = 32;

/// Pages that end without a code before that counts: more than are decoded together at first, so that what disturbed
/// one batch does not decide. On a quiet machine nearly all do under a base that no core has.
const VAIN_PAGES: u64 = 96;
/// Pages without a code for each that has one, at most, where a core has a base of it. A few have one by chance.
pub(super) const VAIN_SHARE: u64 = 8;
/// The same before anything was placed.
pub(super) const NEW_SHARE: u64 = 2;
/// Pages that have a code before a base counts as recognised: as many as one is identified from.
const LEARNT_PAGES: u64 = 32;
/// Pages that are decoded, at most, to find out whether a base is recognised.
const SOUGHT_PAGES: u64 = 512;

/// Whether pages look as a base of the atlas says, with so many without a code for each that has one at most.
pub(super) const fn is_recognised(learnt: &Stats, share: u64) -> bool {
    learnt.confirmed >= LEARNT_PAGES && learnt.undecodable < share * learnt.confirmed
}

/// Whether most pages end without a code.
pub(super) fn is_in_vain(learnt: &Stats) -> bool {
    learnt.undecodable >= VAIN_PAGES.max(VAIN_SHARE * learnt.confirmed)
}

/// Whether some pages were decided, which leave it open, and so few that more may be.
pub(super) fn seeks_base(learnt: &Stats) -> bool {
    let decided = learnt.confirmed + learnt.undecodable;
    let is_open = !is_recognised(learnt, NEW_SHARE) && !is_in_vain(learnt);
    decided > 0 && is_open && learnt.ready < SOUGHT_PAGES
}

/// How many loads a slice may time: as many as it would on this machine while nobody disturbs it. A clock counts the
/// time in which somebody else had the core, and a core that is slowed down does less in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Loads in [`SLICE_NS`].
    loads: u64,
}

impl Pace {
    /// By the dearest level of an atlas: each line is put there, and loaded from there.
    pub(super) fn of(atlas: &Atlas<'_>) -> Self {
        let mean_cycles = |level: &Level| {
            let base = atlas.base(*level, 0)?;
            let lines = base.values().iter().filter(|cycles| cycles.is_finite());
            let (sum, count) = lines.fold((0.0, 0.0_f64), |(sum, count), cycles| {
                (sum + f64::from(*cycles), count + 1.0)
            });
            (count > 0.0).then(|| sum / count)
        };
        let cycles = Level::ALL.iter().filter_map(mean_cycles).fold(0.0, f64::max);
        Self { loads: loads(2.0 * cycles / atlas.clock_hz()) }
    }

    /// Loads in so much time, at least some.
    pub(super) const fn loads_in(self, ns: u64) -> u64 {
        let loads = self.loads.saturating_mul(ns) / SLICE_NS;
        if loads < LOADS_LEAST { LOADS_LEAST } else { loads }
    }
}

/// Loads in a slice, if each takes so long.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a slice has few nanoseconds, and casts of floats saturate"
)]
fn loads(seconds: f64) -> u64 {
    let loads = (SLICE_NS as f64 / 1e9 / seconds) as u64;
    loads.clamp(LOADS_LEAST, SLICE_NS)
}

/// What is known of what placing gains.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Trial {
    /// Time spent in slices since the last look, nanoseconds.
    pub(super) ns: u64,
    /// What the model promises of one core: that of this place in the atlas.
    pub(super) promise: Promise,
    pub(super) place: usize,
    /// What it has promised of the best core so far; nothing before all of one was asked.
    pub(super) best: Option<Promise>,
    /// All cores of known bases were asked, as the classifier counted changes then.
    pub(super) asked_at: Option<u32>,
    /// Slots drawn, and those that were near, at the last look.
    pub(super) drawn: u64,
    pub(super) near: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decided(confirmed: u64, undecodable: u64) -> Stats {
        Stats { ready: confirmed + undecodable, confirmed, undecodable, ..Stats::default() }
    }

    #[test]
    fn more_pages_are_decoded_while_it_is_open_whether_a_base_fits() {
        assert!(!seeks_base(&decided(0, 0)), "nothing is decided yet, or nothing ever will be");
        // One batch alone decides nothing against a base, and half of one nothing for it.
        assert!(seeks_base(&decided(0, 64)) && seeks_base(&decided(20, 44)));
        assert!(is_recognised(&decided(32, 32), NEW_SHARE) && !seeks_base(&decided(32, 32)));
        assert!(is_in_vain(&decided(12, 96)) && !seeks_base(&decided(12, 96)));
        assert!(!is_in_vain(&decided(13, 96)) && seeks_base(&decided(13, 96)));
        assert!(!seeks_base(&decided(31, 1000)), "there is an end");
    }
}
