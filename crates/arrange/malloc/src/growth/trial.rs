//! How far a process has come to know what placing gains: plain data.

use isochrone_alloc::Promise;

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
