//! The triad on real cores: for each core arrays of its own in the region that is measured, a pinned thread for each
//! core of a group, and one start for all.
//!
//! Arrays are address space until the threads that use them touch them, so each has its pages by its own work, all at
//! the same time. Threads live for one run only; starting them is not timed. Every wait has a bound.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use isochrone_host::{SysRoot, region_free_bytes};
use isochrone_os::affinity;
use isochrone_os::mapping::Mapping;
use isochrone_os::stream::Triad;
use isochrone_units::{CoreId, RegionId};

use super::plan::ArraySizes;
use super::run::TriadTarget;
use super::track::{Piece, Track};
use crate::target::TargetError;

/// Elements after which a core looks at the clock: some 30 microseconds of work, of which looking takes a thousandth.
const PIECE: usize = 1 << 15;

/// Longest wait for all threads of a group to be ready.
const READY_MAX: Duration = Duration::from_secs(5);

/// Bytes that a thread makes present between two looks at whether to go on: some 10 ms.
const PART_BYTES: usize = 32 << 20;

/// Of a region's free bytes, what arrays that are kept for later take at most; those of a group take as much again.
const OF_FREE_KEPT: u64 = 4;

/// Time between two looks at whether threads that make memory present shall go on.
const LOOK: Duration = Duration::from_millis(5);

/// Arrays on real memory, of one region at a time.
#[derive(Debug)]
pub struct LiveTriad {
    arrays: BTreeMap<CoreId, Arrays>,
    /// Where they are, and how much it had free before.
    region: Option<(RegionId, Option<u64>)>,
    sizes: ArraySizes,
    bind: bool,
    born: Instant,
}

/// The arrays of a core.
#[derive(Debug)]
struct Arrays {
    mapping: Mapping,
    /// So many of its bytes are there.
    present: usize,
    /// So many does the group have that runs now.
    used: usize,
}

impl LiveTriad {
    /// Arrays of these sizes. They are mapped at first use; where `bind` is false (there is one region only) they stay
    /// where the system puts them.
    #[must_use]
    pub fn new(sizes: ArraySizes, bind: bool) -> Self {
        Self { arrays: BTreeMap::new(), region: None, sizes, bind, born: Instant::now() }
    }

    /// Has address space for what a group uses of a region's memory; gives back that of other regions.
    fn map(&mut self, cores: &[CoreId], region: RegionId) -> Result<(), TargetError> {
        let free = match self.region {
            Some((here, free)) if here == region => free,
            _ => {
                self.arrays.clear();
                region_free_bytes(&SysRoot::live(), region.0)
            }
        };
        self.region = Some((region, free));
        let sizes = self.sizes.in_region(cores, region, free)?;
        self.make_room(cores, free);
        for (&core, bytes) in cores.iter().zip(sizes) {
            let used = usize::try_from(bytes).unwrap_or(usize::MAX);
            if !self.arrays.contains_key(&core) {
                // As large as it can be for any group: address space costs nothing.
                let most = self.sizes.of(&[core], free).and_then(|sizes| sizes.first().copied());
                let most = usize::try_from(most.unwrap_or(bytes)).unwrap_or(usize::MAX).max(used);
                let mapping = self.space(most, region)?;
                self.arrays.insert(core, Arrays { mapping, present: 0, used });
            }
            if let Some(arrays) = self.arrays.get_mut(&core) {
                arrays.used = used.min(arrays.mapping.len());
            }
        }
        Ok(())
    }

    /// Gives back what cores have that do not run now, where all together would take too much of the region.
    fn make_room(&mut self, cores: &[CoreId], free: Option<u64>) {
        let Some(free) = free else { return };
        let present = |arrays: &BTreeMap<CoreId, Arrays>| -> u64 {
            arrays.values().map(|arrays| arrays.present as u64).sum()
        };
        if present(&self.arrays) > free / OF_FREE_KEPT {
            self.arrays.retain(|core, _| cores.contains(core));
        }
        if present(&self.arrays) > free / OF_FREE_KEPT {
            self.arrays.clear();
        }
    }

    fn space(&self, bytes: usize, region: RegionId) -> Result<Mapping, TargetError> {
        let refused =
            |error| TargetError::refused(format!("cannot have arrays in {region}"), error);
        let mapping = Mapping::untouched(bytes).map_err(refused)?;
        if self.bind {
            mapping.bind(region).map_err(refused)?;
        }
        Ok(mapping)
    }

    /// Lets each core of a group make present what it uses, until `stop` says no.
    fn touch(
        &mut self,
        cores: &[CoreId],
        stop: &mut dyn FnMut() -> bool,
    ) -> Result<(), TargetError> {
        let lacking = self
            .arrays
            .iter_mut()
            .filter(|(core, arrays)| arrays.present < arrays.used && cores.contains(core));
        let lacking: Vec<_> = lacking.collect();
        if lacking.is_empty() {
            return Ok(());
        }
        let touch = |(core, arrays): (&CoreId, &mut Arrays), stopped: &AtomicBool| {
            arrays.touch(*core, stopped)
        };
        abreast(lacking, touch, stop)
    }
}

/// Does jobs at the same time, a thread each, and asks meanwhile whether to stop. One that panics is an error; none is
/// waited for longer than it runs.
fn abreast<J: Send>(
    jobs: Vec<J>,
    work: impl Fn(J, &AtomicBool) -> Result<(), TargetError> + Sync,
    stop: &mut dyn FnMut() -> bool,
) -> Result<(), TargetError> {
    let stopped = AtomicBool::new(false);
    thread::scope(|scope| {
        let (stopped, work) = (&stopped, &work);
        let threads: Vec<_> =
            jobs.into_iter().map(|job| scope.spawn(move || work(job, stopped))).collect();
        while !threads.iter().all(thread::ScopedJoinHandle::is_finished) {
            thread::sleep(LOOK);
            stopped.fetch_or(stop(), Ordering::Relaxed);
        }
        // All are joined, so that no panic is left to the scope.
        let ended: Vec<_> = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| Err(died())))
            .collect();
        ended.into_iter().collect()
    })
}

impl Arrays {
    /// Makes present what is used, on the core that uses it.
    fn touch(&mut self, core: CoreId, stopped: &AtomicBool) -> Result<(), TargetError> {
        affinity::pin(core)
            .map_err(|error| TargetError::refused(format!("cannot run on {core}"), error))?;
        while self.present < self.used {
            if stopped.load(Ordering::Relaxed) {
                return Err(TargetError::Stopped);
            }
            let end = self.used.min(self.present + PART_BYTES);
            let populated = self.mapping.populate_part(self.present..end);
            populated.map_err(|error| {
                TargetError::refused(format!("{core} cannot have arrays"), error)
            })?;
            self.present = end;
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
        self.prepare(cores, region, &mut || false)?;
        let ready = AtomicUsize::new(0);
        let born = self.born;
        let mine = self.arrays.iter_mut().filter(|(core, _)| cores.contains(core));
        let ran: Vec<Result<Track, TargetError>> = thread::scope(|scope| {
            let ready = &ready;
            let threads: Vec<_> = mine
                .map(|(core, arrays)| {
                    let job = Job { core: *core, passes, parties: cores.len(), born };
                    scope.spawn(move || job.run(arrays, ready))
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
        if cores.is_empty() {
            return Err(TargetError::Unsupported("a group needs a core".to_owned()));
        }
        self.map(cores, region)?;
        self.touch(cores, stop)
    }

    fn give_back(&mut self, _region: RegionId) {
        self.arrays.clear();
        self.region = None;
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
    fn run(&self, arrays: &mut Arrays, ready: &AtomicUsize) -> Result<Track, TargetError> {
        let core = self.core;
        let prepared = affinity::pin(core)
            .map_err(|error| TargetError::refused(format!("cannot run on {core}"), error));
        // Also a thread that could not be pinned reports, so that the others do not wait for it.
        let used = arrays.used / size_of::<f64>();
        let numbers =
            arrays.mapping.numbers().map(|numbers| &mut numbers[..used]).ok_or_else(|| {
                TargetError::Unsupported("arrays must be private memory".to_owned())
            });
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
            isochrone_os::pause::pause();
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
    use crate::seats::Seats;
    use isochrone_os::affinity::CoreSet;

    fn target(cores: &[CoreId], bytes: u64) -> LiveTriad {
        LiveTriad::new(ArraySizes::new(Seats::unknown(cores), bytes), false)
    }

    #[test]
    fn real_cores_move_bytes_alone_and_together() {
        let cores: Vec<CoreId> = CoreSet::of_this_thread().unwrap().iter().take(2).collect();
        let mut target = target(&cores, 3 << 20);
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
        let stopped = target.prepare(&cores, RegionId(0), &mut || true);
        assert!(stopped.is_ok(), "all of it is there");
        target.give_back(RegionId(0));
        assert!(target.arrays.is_empty());
    }

    #[test]
    fn a_thread_that_panics_ends_the_wait_for_it() {
        let work = |job: u32, stopped: &AtomicBool| {
            assert!(job != 1, "this one panics");
            while !stopped.load(Ordering::Relaxed) {
                thread::yield_now();
            }
            Err(TargetError::Stopped)
        };
        let mut asked = 0;
        let mut stop = || {
            asked += 1;
            asked > 2
        };
        assert_eq!(abreast(vec![0, 1, 2], work, &mut stop), Err(TargetError::Stopped));
        assert_eq!(abreast(vec![1], work, &mut || false), Err(died()));
        assert_eq!(abreast(Vec::new(), work, &mut || false), Ok(()));
    }

    #[test]
    fn a_core_that_may_not_be_used_is_an_error_for_the_group() {
        let usable = CoreSet::of_this_thread().unwrap().iter().next().unwrap();
        let mut target = target(&[usable], 1 << 20);
        let refused = target.triad(&[usable, CoreId(8191)], RegionId(0), 1).unwrap_err();
        assert!(refused.to_string().contains("8191"), "{refused}");
        let nobody = target.triad(&[], RegionId(0), 1).unwrap_err();
        assert!(nobody.to_string().contains("needs a core"));
    }
}
