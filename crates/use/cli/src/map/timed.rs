//! The line of progress as the course of a run, in this machine's time.

use std::time::{Duration, Instant};

use isochrone_probe::watch::Watch;
use isochrone_survey::Course;

use isochrone_console::progress::Progress;

/// Progress of a run that began then.
pub(super) struct Timed<'p> {
    pub(super) progress: &'p mut Progress,
    pub(super) begin: Instant,
}

impl Watch for Timed<'_> {
    fn step(&mut self, words: &str) {
        self.progress.step(words);
    }

    fn keep_going(&self) -> bool {
        self.progress.keep_going()
    }

    fn left(&self) -> Option<Duration> {
        self.progress.left()
    }
}

impl Course for Timed<'_> {
    fn end_at(&mut self, since_begin: Option<Duration>) {
        self.progress.end_at(since_begin.map(|time| self.begin + time));
    }

    fn next_part(&mut self) {
        self.progress.next_part();
    }

    fn is_interrupted(&self) -> bool {
        self.progress.is_interrupted()
    }
}
