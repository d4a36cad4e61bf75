//! How far a run is, and when a part of it has to end. Time counts from the run's beginning, so that it may be a
//! machine's or a model's.

use std::time::Duration;

use isochrone_probe::watch::Watch;

/// A watch over a whole run.
pub trait Course: Watch {
    /// What is begun from now on has to end so long after the run began; with the run where there is no time.
    fn end_at(&mut self, since_begin: Option<Duration>);

    /// The next experiment begins; the first is under way from the beginning.
    fn next_part(&mut self);

    /// Whether to go on after so many seconds of thought since the last look at anything timed. On a machine they have
    /// passed by themselves; a model's clock stands still meanwhile.
    fn keep_going_after(&self, _thought_s: f64) -> bool {
        self.keep_going()
    }

    /// Whether the user wants the run to end.
    fn is_interrupted(&self) -> bool;
}
