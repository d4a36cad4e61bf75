//! Virtual time of a run, and the course that goes by it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use isochrone_os::clock::thread_cpu_ns;
use isochrone_probe::watch::Watch;

use crate::course::Course;

/// Virtual time since a run began, whole nanoseconds. All that measures in the run shares it.
#[derive(Clone, Debug, Default)]
pub struct VirtualClock(Arc<Times>);

#[derive(Debug, Default)]
struct Times {
    now_ns: AtomicU64,
    /// Processor time that the model itself took.
    modelled_ns: AtomicU64,
}

impl VirtualClock {
    /// Time that has passed.
    #[must_use]
    pub fn now(&self) -> Duration {
        Duration::from_nanos(self.0.now_ns.load(Ordering::Relaxed))
    }

    /// The same in seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.now().as_secs_f64()
    }

    /// Lets so many seconds pass.
    pub fn pass(&self, seconds: f64) {
        self.0.now_ns.fetch_add(nanoseconds(seconds), Ordering::Relaxed);
    }

    /// Counts the processor time that `model` takes as the model's.
    pub(super) fn modelled<T>(&self, model: impl FnOnce() -> T) -> T {
        let begun = thread_cpu_ns();
        let made = model();
        self.0.modelled_ns.fetch_add(thread_cpu_ns().saturating_sub(begun), Ordering::Relaxed);
        made
    }

    /// Seconds of processor time that the model itself took.
    pub(super) fn modelled_s(&self) -> f64 {
        Duration::from_nanos(self.0.modelled_ns.load(Ordering::Relaxed)).as_secs_f64()
    }
}

fn nanoseconds(seconds: f64) -> u64 {
    let time = Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or_default();
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// A run in virtual time. What is under way is told to a watch of this machine, which may want an end.
pub struct VirtualCourse<'a> {
    clock: VirtualClock,
    until: Option<Duration>,
    here: &'a mut dyn Watch,
}

impl<'a> VirtualCourse<'a> {
    /// A run that goes by this clock.
    pub fn new(clock: VirtualClock, here: &'a mut dyn Watch) -> Self {
        Self { clock, until: None, here }
    }
}

impl std::fmt::Debug for VirtualCourse<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VirtualCourse").field("until", &self.until).finish_non_exhaustive()
    }
}

impl Watch for VirtualCourse<'_> {
    fn step(&mut self, words: &str) {
        self.here.step(words);
    }

    fn keep_going(&self) -> bool {
        self.here.keep_going() && self.left() != Some(Duration::ZERO)
    }

    fn left(&self) -> Option<Duration> {
        self.until.map(|until| until.saturating_sub(self.clock.now()))
    }
}

impl Course for VirtualCourse<'_> {
    fn end_at(&mut self, since_begin: Option<Duration>) {
        self.until = since_begin;
    }

    fn next_part(&mut self) {}

    fn keep_going_after(&self, thought_s: f64) -> bool {
        let thought = Duration::from_nanos(nanoseconds(thought_s));
        self.here.keep_going() && self.left().is_none_or(|left| left > thought)
    }

    fn is_interrupted(&self) -> bool {
        !self.here.keep_going()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isochrone_probe::watch::Silent;

    #[test]
    fn a_course_ends_by_virtual_time_alone() {
        let clock = VirtualClock::default();
        let mut silent = Silent;
        let mut course = VirtualCourse::new(clock.clone(), &mut silent);
        assert_eq!((course.left(), course.keep_going()), (None, true));
        course.end_at(Some(Duration::from_secs(3)));
        clock.pass(2.5);
        assert_eq!(course.left(), Some(Duration::from_millis(500)));
        assert!(course.keep_going_after(0.4) && !course.keep_going_after(0.6), "thought counts");
        clock.pass(0.5);
        assert!(!course.keep_going() && !course.is_interrupted());
    }
}
