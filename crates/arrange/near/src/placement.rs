//! The handle: an atlas, what places by it, and what is done where nothing does.

use std::alloc::Layout;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use isochrone_alloc::{Policy, SizeClass};
use isochrone_atlas::Atlas;
use isochrone_atlas_store::contents::Contents;
use isochrone_atlas_store::decode;
use isochrone_host::{SysRoot, machine_state, total_memory_bytes};
use isochrone_malloc::{InstanceError, Placer, Settings, Wrong};
use isochrone_os::affinity::CoreSet;
use isochrone_places::Check;
use isochrone_units::{CoreId, Experiment, Reading};

use crate::options::{Options, OptionsError};
use crate::why::WhyNot;
use crate::{gain, ordinary, policy};

/// The most memory to place in where nobody says how much there is.
const BYTES_MAX: u64 = 1 << 30;

/// How far an object is from a core: what a load of it costs with its lines in the last-level cache and in memory,
/// nanoseconds; `None` of a level of which nothing is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Distance {
    /// In the last-level cache.
    pub llc_ns: Option<f64>,
    /// In memory.
    pub dram_ns: Option<f64>,
    /// Where the numbers are from: predicted by the atlas, or simulated where the atlas is.
    pub reading: Reading,
}

/// What a placement did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Statistics {
    /// Objects that were placed, freed or not.
    pub placed_objects: u64,
    /// Their bytes, as they were asked for.
    pub placed_bytes: u64,
    /// Objects that were placed and freed.
    pub freed_objects: u64,
    /// Objects that the ordinary allocator had to serve while something could be placed: too large, or the memory to
    /// place in was full.
    pub ordinary_objects: u64,
    /// The share of slots that were near for the core that they were drawn for; `None` before any was.
    pub near_share: Option<f64>,
    /// Memory for lines, bytes.
    pub arena_bytes: u64,
}

/// What places.
#[derive(Debug)]
struct Placing {
    /// Borrows what it goes by, which is dropped after it.
    placer: Placer<'static>,
    hz: f64,
    reading: Reading,
    ordinary: AtomicU64,
    _by: Box<By>,
}

/// What is placed by.
#[derive(Debug)]
struct By {
    /// The bytes of the atlas: a copy, since what is mapped ends the process when somebody cuts the file short.
    atlas: Box<[u8]>,
    cores: Vec<CoreId>,
}

/// Hands out memory near cores, to any number of threads.
#[derive(Debug)]
pub struct Placement {
    placing: Result<Placing, WhyNot>,
}

impl Placement {
    /// A placement by the atlas that is found at the options' places. Where there is none, or nothing is to be gained
    /// by it, it hands out memory of the ordinary allocator and says why ([`Self::why_not`]).
    ///
    /// # Errors
    /// [`OptionsError`] for options that make no sense.
    pub fn open(options: &Options) -> Result<Self, OptionsError> {
        options.check()?;
        Ok(Self { placing: Placing::new(options) })
    }

    /// Why nothing is placed, if so. It may come to that while the program runs, never the other way round. As long as
    /// no base of the atlas is recognised yet, memory is the ordinary allocator's, and nothing is to be said.
    #[must_use]
    pub fn why_not(&self) -> Option<WhyNot> {
        match &self.placing {
            Ok(placing) => placing.placer.over().map(WhyNot::from),
            Err(why) => Some(why.clone()),
        }
    }

    /// Learns the memory for objects of so many bytes in all beforehand, so that nothing is learnt while the program
    /// runs: the share that was learnt. A millisecond or so for each 128 KiB. It binds this thread to the placement's
    /// cores in turn and sets its cores back; it needs 256 KiB of stack. It takes `within` at most, if that is given.
    ///
    /// # Errors
    /// In words, why the memory cannot be had or timed.
    pub fn prepare(&self, bytes: usize, within: Option<Duration>) -> Result<f32, InstanceError> {
        match &self.placing {
            Ok(placing) => placing.placer.prepare(bytes, within),
            Err(_) => Ok(0.0),
        }
    }

    /// Memory near the core that runs this, or of the ordinary allocator; null where there is none at all.
    #[inline]
    #[must_use]
    pub fn alloc(&self, layout: Layout) -> *mut u8 {
        self.alloc_for(None, layout)
    }

    /// The same near a core, whichever runs this.
    #[inline]
    #[must_use]
    pub fn alloc_near(&self, core: CoreId, layout: Layout) -> *mut u8 {
        self.alloc_for(Some(core), layout)
    }

    #[inline]
    pub(crate) fn alloc_for(&self, core: Option<CoreId>, layout: Layout) -> *mut u8 {
        if let Ok(placing) = &self.placing {
            if let Some(class) = SizeClass::of(layout.size(), layout.align()) {
                let found = placing.placer.take(core, class, layout.size());
                if !found.is_null() {
                    return found;
                }
            }
            placing.ordinary.fetch_add(1, Ordering::Relaxed);
        }
        ordinary::alloc(layout)
    }

    /// Gives memory back, from any thread. A null pointer is nothing.
    ///
    /// # Errors
    /// [`Wrong`] for what was placed by this and is free, and for what lies in its range and is no object.
    ///
    /// # Safety
    /// `at` came from this placement, and nobody uses it any more.
    #[inline]
    pub unsafe fn free(&self, at: *mut u8) -> Result<(), Wrong> {
        match &self.placing {
            Ok(placing) if placing.placer.has(at) => placing.placer.give(at),
            _ => {
                // SAFETY: it came from this placement, which did not place it.
                unsafe { ordinary::free(at) };
                Ok(())
            }
        }
    }

    /// How far an object is from a core. `None` for memory that this did not place, or that was freed, and where
    /// nothing is placed any more: its frames may be others by now. Of memory that was not learnt yet both levels are
    /// `None`.
    #[must_use]
    pub fn distance(&self, at: *const u8, core: CoreId) -> Option<Distance> {
        let placing = self.placing.as_ref().ok()?;
        let found = placing.placer.distance(at, core)?;
        let ns = |cycles: f32| f64::from(cycles) * 1e9 / placing.hz;
        Some(Distance {
            llc_ns: found.llc.map(ns),
            dram_ns: found.dram.map(ns),
            reading: placing.reading,
        })
    }

    /// What was done so far.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let Ok(placing) = &self.placing else { return Statistics::default() };
        let placed = placing.placer.placed();
        Statistics {
            placed_objects: placed.objects,
            placed_bytes: placed.bytes,
            freed_objects: placed.freed,
            ordinary_objects: placing.ordinary.load(Ordering::Relaxed),
            near_share: share(placed.near_slots, placed.drawn_slots),
            arena_bytes: placed.arena_bytes,
        }
    }
}

impl Placing {
    fn new(options: &Options) -> Result<Self, WhyNot> {
        let found = options.places.of_this_machine(Check::Hash).map_err(WhyNot::Atlas)?;
        let bytes: Box<[u8]> = found.ok_or(WhyNot::NoAtlas)?.atlas.bytes().into();
        let contents = decode(&bytes).map_err(|error| WhyNot::Atlas(error.to_string()))?;
        let cores = cores(options, &contents);
        if cores.is_empty() {
            return Err(WhyNot::NoCore);
        }
        let by = Box::new(By { atlas: bytes, cores });
        // SAFETY: a box does not move what it holds, and nobody changes it. It becomes a field of one value with the
        // placer and is dropped after it; nothing else here that borrows from it leaves this function.
        let lasting: &'static By = unsafe { &*std::ptr::from_ref(&*by) };
        let By { atlas: bytes, cores } = lasting;
        let atlas = Atlas::open(bytes).map_err(|error| WhyNot::Atlas(error.to_string()))?;
        let by_use = policy::by_use(options, &contents);
        if !options.force {
            is_worth_it(&atlas, cores, &by_use)?;
        }
        let settings = Settings {
            atlas: bytes,
            policy: policy::ranked(by_use, options.mix),
            arena_bytes_max: options.bytes_max.unwrap_or_else(bytes_max),
            huge_pages: true,
            cores,
        };
        let placer = Placer::new(&settings).map_err(WhyNot::Refused)?;
        if options.prepare_bytes > 0 {
            let learnt = placer.prepare(options.prepare_bytes, options.prepare_within);
            learnt.map_err(WhyNot::Refused)?;
        }
        let reading = if atlas.is_measured() { Reading::Predicted } else { Reading::Simulated };
        let hz = atlas.clock_hz();
        Ok(Self { placer, hz, reading, ordinary: AtomicU64::new(0), _by: by })
    }
}

/// Whether the atlas promises enough. One that lacks what the model needs is tried: what is seen decides then.
fn is_worth_it(atlas: &Atlas<'_>, cores: &[CoreId], policy: &Policy) -> Result<(), WhyNot> {
    let least = gain::least(atlas.grade(Experiment::Block)).ok_or(WhyNot::Unusable)?;
    match gain::largest(atlas, cores, policy) {
        Some(gain) if gain < least => Err(WhyNot::NoGain(gain)),
        _ => Ok(()),
    }
}

/// The cores to place for: of those that were asked for, or that this thread may run on, those that the atlas has.
fn cores(options: &Options, contents: &Contents) -> Vec<CoreId> {
    let allowed = CoreSet::of_this_thread();
    let wanted = |core: &CoreId| match options.cores.is_empty() {
        true => allowed.as_ref().map_or(true, |set| set.contains(*core)),
        false => options.cores.contains(core),
    };
    contents.machine.cores.iter().map(|core| CoreId(core.id)).filter(wanted).collect()
}

/// A quarter of the memory that the machine, or this process's group, has.
fn bytes_max() -> u64 {
    let root = SysRoot::live();
    let group = machine_state(&root).memory_max_bytes;
    let all = total_memory_bytes(&root).into_iter().chain(group).min();
    all.map_or(BYTES_MAX, |bytes| bytes / 4)
}

/// A part of a whole.
#[allow(clippy::cast_precision_loss, reason = "a share")]
fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}
