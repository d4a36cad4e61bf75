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

    /// Takes cycles from a thread, if it computes; returns whether it does.
    pub(super) fn steal(&mut self, thread: usize, cycles: f64, now: f64, spec: &Spec) -> bool {
        self.catch_up(now, spec);
        let job = self.jobs.iter_mut().find(|job| job.thread == thread);
        let busy = job.is_some();
        if let Some(job) = job {
            job.left += cycles;
        }
        self.version += 1;
        busy
    }

    /// When the first of its threads is done, if nothing changes.
    pub(super) fn next_end(&self, spec: &Spec) -> Option<f64> {
        let least = self.jobs.iter().map(|job| job.left).min_by(f64::total_cmp)?;
        Some(self.since + least.max(0.0) / spec.speed(self.jobs.len()))
    }

    /// A thread that is done now.
    pub(super) fn end(&mut self, now: f64, spec: &Spec) -> Option<usize> {
        self.catch_up(now, spec);
        let place = self.jobs.iter().position(|job| job.left <= NOTHING)?;
        self.version += 1;
        Some(self.jobs.remove(place).thread)
    }
}
