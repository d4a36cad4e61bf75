//! The triad on real cores: for each core and region arrays of its own, a pinned thread for each
//! core of a group, and one start for all.
//!
//! Threads live for one run only; starting them is not timed. Every wait has a bound.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use isochrone_os::affinity;
use isochrone_os::mapping::{Backing, Mapping};
use isochrone_os::stream::Triad;
use isochrone_units::{CoreId, RegionId};

use super::run::TriadTarget;
use super::track::{Piece, Track};
use crate::target::TargetError;

/// Elements after which a core looks at the clock: some 30 microseconds of work, of which looking takes a thousandth.
const PIECE: usize = 1 << 15;

/// Longest wait for all threads of a group to be ready.
const READY_MAX: Duration = Duration::from_secs(5);

/// Arrays on real memory.
#[derive(Debug)]
pub struct LiveTriad {
    arrays: BTreeMap<(CoreId, RegionId), Mapping>,
    bytes: usize,
    bind: bool,
    born: Instant,
}

impl LiveTriad {
    /// Arrays of `bytes_per_core` in all for each core (three of a third each), which should be
    /// several times the last-level cache. They are mapped at first use; where `bind` is false
    /// (there is one region only) they stay where the system puts them.
    #[must_use]
    pub fn new(bytes_per_core: usize, bind: bool) -> Self {
        Self { arrays: BTreeMap::new(), bytes: bytes_per_core, bind, born: Instant::now() }
    }

    /// Maps what is not mapped yet, and forgets the arrays of other regions, which would only
    /// take memory.
    fn map(
        &mut self,
        cores: &[CoreId],
        region: RegionId,
        stop: &mut dyn FnMut() -> bool,
    ) -> Result<(), TargetError> {
        self.arrays.retain(|(_, kept), _| *kept == region);
        for &core in cores {
            if self.arrays.contains_key(&(core, region)) {
                continue;
            }
            let system = |error: isochrone_os::OsError| TargetError::System {
                what: format!("cannot have arrays in {region}"),
                why: error.word().unwrap_or(error.what).to_owned(),
                advice: error.advice.to_owned(),
            };
            let wanted = Backing::Transparent2M;
            let mapping =
                Mapping::anonymous_while(self.bytes, wanted, &mut || !stop()).map_err(system)?;
            if mapping.len() < self.bytes {
                return Err(TargetError::Stopped);
            }
            if self.bind {
                mapping.bind(region).map_err(system)?;
            }
            self.arrays.insert((core, region), mapping);
        }
        Ok(())
    }
}

impl TriadTarget for LiveTriad {
    fn triad(
        &mut self,
        cores: &[CoreId],
        region: RegionId,
        passes: u32,
    ) -> Result<Vec<Track>, TargetError> {
        self.map(cores, region, &mut || false)?;
        if cores.is_empty() {
            return Err(TargetError::Unsupported("a group needs a core".to_owned()));
        }
        let ready = AtomicUsize::new(0);
        let mine = self.arrays.iter_mut().filter(|((core, _), _)| cores.contains(core));
        let born = self.born;
        let ran: Vec<Result<Track, TargetError>> = thread::scope(|scope| {
            let ready = &ready;
            let threads: Vec<_> = mine
                .map(|((core, _), mapping)| {
                    let job = Job { core: *core, passes, parties: cores.len(), born };
                    scope.spawn(move || job.run(mapping, ready))
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|_| Err(died())))
                .collect()
        });
        ran.into_iter().collect()
    }

    fn prepare(
        &mut self,
        cores: &[CoreId],
        region: RegionId,
        stop: &mut dyn FnMut() -> bool,
    ) -> Result<(), TargetError> {
        self.map(cores, region, stop)
    }

    fn seconds(&mut self) -> f64 {
        self.born.elapsed().as_secs_f64()
    }
}

/// One core's part of a run.
struct Job {
    core: CoreId,
    passes: u32,
    parties: usize,
    /// Where the clock of tracks begins.
    born: Instant,
}

impl Job {
    fn run(&self, mapping: &mut Mapping, ready: &AtomicUsize) -> Result<Track, TargetError> {
        let core = self.core;
        let prepared = affinity::pin(core).map_err(|error| TargetError::System {
            what: format!("cannot run on {core}"),
            why: error.word().unwrap_or(error.what).to_owned(),
            advice: error.advice.to_owned(),
        });
        // Also a thread that could not be pinned reports, so that the others do not wait for it.
        let numbers = mapping
            .numbers()
            .ok_or_else(|| TargetError::Unsupported("arrays must be private memory".to_owned()));
        let mut track = Track::default();
        let mut triad = prepared.and(numbers).map(|numbers| {
            let pieces = (numbers.len() / 3).div_ceil(PIECE);
            track.pieces.reserve(pieces * self.passes as usize);
            Triad::new(numbers)
        });
        ready.fetch_add(1, Ordering::AcqRel);
        self.wait(ready)?;
        let triad = triad.as_mut().map_err(|error| error.clone())?;
        track.start_s = self.now_s();
        for _ in 0..self.passes {
            triad.pass(PIECE, |bytes| track.pieces.push(Piece { end_s: self.now_s(), bytes }));
        }
        let found = affinity::current_core();
        if found != core {
            return Err(TargetError::Moved { asked: core.0, found: found.0 });
        }
        Ok(track)
    }

    /// Until all of the group are ready.
    fn wait(&self, ready: &AtomicUsize) -> Result<(), TargetError> {
        let asked = Instant::now();
        while ready.load(Ordering::Acquire) < self.parties {
            std::hint::spin_loop();
            if asked.elapsed() > READY_MAX {
                return Err(TargetError::System {
                    what: format!("{} waited for the other cores of its group", self.core),
                    why: "not all threads ran".to_owned(),
                    advice: "stop what else runs on the measured cores".to_owned(),
                });
            }
        }
        Ok(())
    }

    fn now_s(&self) -> f64 {
        self.born.elapsed().as_secs_f64()
    }
}

fn died() -> TargetError {
    TargetError::System {
        what: "a thread of the triad ended".to_owned(),
        why: "it panicked".to_owned(),
        advice: "report this with the panic message".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isochrone_os::affinity::CoreSet;

    #[test]
    fn real_cores_move_bytes_alone_and_together() {
        let cores: Vec<CoreId> = CoreSet::of_this_thread().unwrap().iter().take(2).collect();
        let mut target = LiveTriad::new(3 << 20, false);
        let alone = target.triad(&cores[..1], RegionId(0), 2).unwrap();
        assert_eq!(alone.len(), 1);
        assert!(alone[0].pieces.len() >= 2 * 4, "1 MiB or more in pieces of 256 KiB");
        let together = target.triad(&cores, RegionId(0), 2).unwrap();
        assert_eq!(together.len(), cores.len());
        for track in alone.iter().chain(&together) {
            assert!(track.pieces.is_sorted_by(|a, b| a.end_s <= b.end_s));
            assert!(track.start_s <= track.pieces[0].end_s, "{track:?}");
        }
        assert_eq!(target.arrays.len(), cores.len());
    }

    #[test]
    fn a_core_that_may_not_be_used_is_an_error_for_the_group() {
        let usable = CoreSet::of_this_thread().unwrap().iter().next().unwrap();
        let mut target = LiveTriad::new(1 << 20, false);
        let refused = target.triad(&[usable, CoreId(8191)], RegionId(0), 1).unwrap_err();
        assert!(refused.to_string().contains("8191"), "{refused}");
        let nobody = target.triad(&[], RegionId(0), 1).unwrap_err();
        assert!(nobody.to_string().contains("needs a core"));
    }
}
