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
use crate::target::TargetError;

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

/// What one thread did.
struct Ran {
    start: Instant,
    end: Instant,
    bytes: u64,
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
    fn prepare(&mut self, cores: &[CoreId], region: RegionId) -> Result<(), TargetError> {
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
            let mapping = Mapping::anonymous(self.bytes, Backing::Transparent2M).map_err(system)?;
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
    ) -> Result<f64, TargetError> {
        self.prepare(cores, region)?;
        let ready = AtomicUsize::new(0);
        let mine = self.arrays.iter_mut().filter(|((core, _), _)| cores.contains(core));
        let ran: Vec<Result<Ran, TargetError>> = thread::scope(|scope| {
            let ready = &ready;
            let threads: Vec<_> = mine
                .map(|((core, _), mapping)| {
                    let core = *core;
                    scope.spawn(move || one(core, mapping, passes, ready, cores.len()))
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|_| Err(died())))
                .collect()
        });
        let ran = ran.into_iter().collect::<Result<Vec<_>, _>>()?;
        let start = ran.iter().map(|one| one.start).min();
        let end = ran.iter().map(|one| one.end).max();
        let bytes: u64 = ran.iter().map(|one| one.bytes).sum();
        let (Some(start), Some(end)) = (start, end) else {
            return Err(TargetError::Unsupported("a group needs a core".to_owned()));
        };
        // Bytes a nanosecond are 10^9 bytes a second.
        Ok(exact(bytes) / exact(u64::try_from((end - start).as_nanos()).unwrap_or(u64::MAX)))
    }

    fn seconds(&mut self) -> f64 {
        self.born.elapsed().as_secs_f64()
    }
}

/// One core's part of a run.
fn one(
    core: CoreId,
    mapping: &mut Mapping,
    passes: u32,
    ready: &AtomicUsize,
    parties: usize,
) -> Result<Ran, TargetError> {
    let prepared = affinity::pin(core).map_err(|error| TargetError::System {
        what: format!("cannot run on {core}"),
        why: error.word().unwrap_or(error.what).to_owned(),
        advice: error.advice.to_owned(),
    });
    // Also a thread that could not be pinned reports, so that the others do not wait for it.
    let numbers = mapping
        .numbers()
        .ok_or_else(|| TargetError::Unsupported("arrays must be private memory".to_owned()));
    let mut triad = prepared.and(numbers).map(Triad::new);
    ready.fetch_add(1, Ordering::AcqRel);
    let asked = Instant::now();
    while ready.load(Ordering::Acquire) < parties {
        std::hint::spin_loop();
        if asked.elapsed() > READY_MAX {
            return Err(TargetError::System {
                what: format!("{core} waited for the other cores of its group"),
                why: "not all threads ran".to_owned(),
                advice: "stop what else runs on the measured cores".to_owned(),
            });
        }
    }
    let triad = triad.as_mut().map_err(|error| error.clone())?;
    let start = Instant::now();
    let bytes = (0..passes).map(|_| triad.pass()).sum();
    let end = Instant::now();
    let found = affinity::current_core();
    if found != core {
        return Err(TargetError::Moved { asked: core.0, found: found.0 });
    }
    Ok(Ran { start, end, bytes })
}

fn died() -> TargetError {
    TargetError::System {
        what: "a thread of the triad ended".to_owned(),
        why: "it panicked".to_owned(),
        advice: "report this with the panic message".to_owned(),
    }
}

/// Bytes or nanoseconds of one run as a number.
#[allow(clippy::cast_precision_loss, reason = "counts of one run are far below 2^53")]
fn exact(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use isochrone_os::affinity::CoreSet;

    #[test]
    fn real_cores_move_bytes_alone_and_together() {
        let cores: Vec<CoreId> = CoreSet::of_this_thread().unwrap().iter().take(2).collect();
        let mut target = LiveTriad::new(3 << 20, false);
        assert!(target.triad(&cores[..1], RegionId(0), 2).unwrap() > 0.0);
        assert!(target.triad(&cores, RegionId(0), 2).unwrap() > 0.0);
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
