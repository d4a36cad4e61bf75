//! How far a process has come to know what placing gains: plain data.

use isochrone_alloc::Promise;
use isochrone_atlas::Atlas;
use isochrone_units::Level;

/// Time that a slice inside of an allocation is given; its last step adds up to forty microseconds.
pub(super) const SLICE_NS: u64 = 50_000;
/// Loads that a slice may time at least: one piece between two looks at the clock.
const LOADS_LEAST: u64 = 32;

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
