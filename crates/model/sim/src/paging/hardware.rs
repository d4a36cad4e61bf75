//! The processor's clock and what it has still to do.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::cores::Core;
use super::engines::{Engines, Way};
use super::spec::Spec;

/// What came to an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// A thread's work.
    Work {
        /// The thread that worked.
        thread: usize,
    },
    /// A time that somebody wanted to be told of.
    Time {
        /// The thread that is told.
        thread: usize,
        /// What was given with it.
        token: u64,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Foretold {
    Core { core: usize, version: u64 },
    Time { thread: usize, token: u64 },
}

/// A time as an integer that sorts alike: bits of floats that are not negative do.
const fn sorting(time: f64) -> u64 {
    time.to_bits()
}

/// The processor.
#[derive(Debug)]
pub struct Hardware {
    spec: Spec,
    now: f64,
    cores: Vec<Core>,
    /// The core of each thread.
    places: Vec<usize>,
    engines: Engines,
    foretold: BinaryHeap<Reverse<(u64, u64, Foretold)>>,
    told: u64,
    interrupts: u64,
    stolen: u64,
}

impl Hardware {
    /// A processor whose threads sit on cores as `places` says.
    #[must_use]
    pub fn new(spec: Spec, places: &[usize]) -> Self {
        let cores = places.iter().max().map_or(0, |core| core + 1);
        Self {
            spec,
            now: 0.0,
            cores: vec![Core::default(); cores],
            places: places.to_vec(),
            engines: Engines::new(&spec),
            foretold: BinaryHeap::new(),
            told: 0,
            interrupts: 0,
            stolen: 0,
        }
    }

    /// Cycles since the beginning.
    #[must_use]
    pub const fn now(&self) -> f64 {
        self.now
    }

    /// What it is made of.
    #[must_use]
    pub const fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Whose caches a thread has: its core's, and with cores for each its own.
    #[must_use]
    pub fn caches_of(&self, thread: usize) -> usize {
        if self.spec.siblings { self.places[thread] } else { thread }
    }

    fn foretell(&mut self, time: f64, what: Foretold) {
        self.told += 1;
        self.foretold.push(Reverse((sorting(time.max(self.now)), self.told, what)));
    }

    fn foretell_core(&mut self, core: usize) {
        if let Some(end) = self.cores[core].next_end(&self.spec) {
            let version = self.cores[core].version;
            self.foretell(end, Foretold::Core { core, version });
        }
    }

    /// A thread computes for so many cycles of a core that it has alone; it has no other work.
    pub fn work(&mut self, thread: usize, cycles: f64) {
        let core = self.places[thread];
        self.cores[core].begin(thread, cycles, self.now, &self.spec);
        self.foretell_core(core);
    }

    /// A thread that has no other work begins to poll: it takes its part of the core's issue slots until
    /// [`Self::leave`].
    pub fn poll(&mut self, thread: usize) {
        let core = self.places[thread];
        self.cores[core].poll(thread, self.now, &self.spec);
        self.foretell_core(core);
    }

    /// A thread polls no more.
    pub fn leave(&mut self, thread: usize) {
        let core = self.places[thread];
        self.cores[core].leave(thread, self.now, &self.spec);
        self.foretell_core(core);
    }

    /// Tells a thread at a time.
    pub fn tell_at(&mut self, time: f64, thread: usize, token: u64) {
        self.foretell(time, Foretold::Time { thread, token });
    }

    /// What it takes to interrupt threads now, one request after the other, until the last has answered. A
    /// handler shares its core with the siblings, so it takes longer where they compute.
    pub fn round(&self, targets: impl Iterator<Item = usize>) -> f64 {
        let (mut sent, mut slowest) = (0.0, None);
        for target in targets {
            sent += self.spec.send;
            let core = &self.cores[self.places[target]];
            let answer = self.spec.deliver + self.spec.service / core.speed_of(target, &self.spec);
            slowest = Some(answer.max(slowest.unwrap_or(0.0)));
        }
        slowest.map_or(0.0, |answer| sent + answer)
    }

    /// Interrupts threads; when the last has answered. Who computes loses the time of the handler; who waits
    /// loses nothing.
    pub fn interrupt(&mut self, targets: impl Iterator<Item = usize> + Clone) -> f64 {
        let end = self.now + self.round(targets.clone());
        for target in targets {
            self.interrupts += 1;
            let core = self.places[target];
            let (now, service) = (self.now, self.spec.service);
            if self.cores[core].steal(target, service, now, &self.spec) {
                self.stolen += 1;
            }
            self.foretell_core(core);
        }
        end
    }

    /// Copies pages by an engine; when the last is there.
    pub fn transfer(&mut self, pages: u32, way: Way) -> f64 {
        self.engines.transfer(pages, way, self.now, &self.spec)
    }

    /// Goes on to the next end of something.
    #[allow(
        clippy::should_implement_trait,
        reason = "it is no sequence: what comes depends on calls between"
    )]
    pub fn next(&mut self) -> Option<Ended> {
        while let Some(Reverse((time, _, what))) = self.foretold.pop() {
            match what {
                Foretold::Time { thread, token } => {
                    self.now = f64::from_bits(time);
                    return Some(Ended::Time { thread, token });
                }
                Foretold::Core { core, version } if self.cores[core].version == version => {
                    self.now = f64::from_bits(time);
                    let ended = self.cores[core].end(self.now, &self.spec);
                    self.foretell_core(core);
                    if let Some(thread) = ended {
                        return Some(Ended::Work { thread });
                    }
                }
                Foretold::Core { .. } => {}
            }
        }
        None
    }

    /// Interrupts sent, and those of them that took time from a computation.
    #[must_use]
    pub const fn interrupts(&self) -> (u64, u64) {
        (self.interrupts, self.stolen)
    }

    /// Pages that engines copied, and cycles that they were busy in all.
    #[must_use]
    pub const fn copied(&self) -> (u64, f64) {
        self.engines.used()
    }
}
