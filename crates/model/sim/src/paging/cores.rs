//! Who computes on a core, and how far each is. Threads that are busy share the core by halves, thirds or
//! fourths of what they do together.

use super::spec::Spec;

/// Work left below this is done: rounding of a division.
const NOTHING: f64 = 1e-6;

#[derive(Clone, Copy, Debug)]
struct Job {
    thread: usize,
    left: f64,
}

/// A core.
#[derive(Clone, Debug, Default)]
pub(super) struct Core {
    jobs: Vec<Job>,
    since: f64,
    /// Counts changes; an end that was foretold before a change is none.
    pub(super) version: u64,
}

impl Core {
    fn catch_up(&mut self, now: f64, spec: &Spec) {
        let done = (now - self.since) * spec.speed(self.jobs.len());
        self.jobs.iter_mut().for_each(|job| job.left -= done);
        self.since = now;
    }

    /// A thread begins to compute.
    pub(super) fn begin(&mut self, thread: usize, cycles: f64, now: f64, spec: &Spec) {
        self.catch_up(now, spec);
        self.jobs.push(Job { thread, left: cycles.max(0.0) });
        self.version += 1;
    }

    /// A thread looks again and again whether it may go on: that is work without an end.
    pub(super) fn poll(&mut self, thread: usize, now: f64, spec: &Spec) {
        self.begin(thread, f64::INFINITY, now, spec);
    }

    /// A thread looks no more.
    pub(super) fn leave(&mut self, thread: usize, now: f64, spec: &Spec) {
        self.catch_up(now, spec);
        self.jobs.retain(|job| job.thread != thread);
        self.version += 1;
    }

    /// Takes cycles from a thread, if it computes; returns whether it does.
    pub(super) fn steal(&mut self, thread: usize, cycles: f64, now: f64, spec: &Spec) -> bool {
        self.catch_up(now, spec);
        let job = self.jobs.iter_mut().find(|job| job.thread == thread && job.left.is_finite());
        let busy = job.is_some();
        if let Some(job) = job {
            job.left += cycles;
        }
        self.version += 1;
        busy
    }

    /// How fast a handler runs on a thread: one that waits without polling takes a part of the core for it.
    pub(super) fn speed_of(&self, thread: usize, spec: &Spec) -> f64 {
        let there = self.jobs.iter().any(|job| job.thread == thread);
        spec.speed(self.jobs.len() + usize::from(!there))
    }

    /// When the first of its threads is done, if nothing changes; `None` where nobody will be.
    pub(super) fn next_end(&self, spec: &Spec) -> Option<f64> {
        let least = self.jobs.iter().map(|job| job.left).min_by(f64::total_cmp)?;
        let end = self.since + least.max(0.0) / spec.speed(self.jobs.len());
        // Late in a long run, what is left may be less than the clock's smallest step, and more than nothing: then it
        // ends with that step, and not for ever now.
        let first = if least > NOTHING { self.since.next_up() } else { self.since };
        Some(end.max(first)).filter(|end| end.is_finite())
    }

    /// A thread that is done now.
    pub(super) fn end(&mut self, now: f64, spec: &Spec) -> Option<usize> {
        self.catch_up(now, spec);
        let place = self.jobs.iter().position(|job| job.left <= NOTHING)?;
        self.version += 1;
        Some(self.jobs.remove(place).thread)
    }
}
