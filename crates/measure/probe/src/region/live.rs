//! Real regions: one buffer bound to each, linked into a ring, and the calling thread, which goes
//! to the core that chases.
//!
//! Buffers are mapped first and linked later, so that a caller can look at their pages (and pick
//! the lines of one class) in between. A region that can have none is left out, and said. Whether the thread stayed is
//! checked after every chase.

use std::time::Instant;

use isochrone_host::{SysRoot, region_free_bytes};
use isochrone_os::affinity::{self, CoreSet};
use isochrone_os::mapping::Mapping;
use isochrone_os::timed::{Cursor, Ring, link};
use isochrone_units::{CoreId, LineAddr, RegionId};

use super::run::RegionTarget;
use crate::target::{TargetClock, TargetError};

/// Links that are followed off the clock when a chase begins: the core may just have woken up,
/// and the walker's translations are still those of another.
const WARM_STEPS: u64 = 256;

/// A region must have so many times the buffer's bytes free: where it has not, whoever binds memory to it may be
/// ended by the system.
const FREE_BUFFERS: u64 = 2;

/// One buffer in each region that can have one.
#[derive(Debug)]
pub struct RegionBuffers {
    regions: Vec<RegionId>,
    mappings: Vec<Option<Mapping>>,
    missing: Vec<String>,
}

impl RegionBuffers {
    /// Maps `bytes` in each of `regions`. Where there is only one region nothing is bound. Huge
    /// pages where they can be had; what is missing is said in [`Self::missing`], a region that can have no buffer too.
    ///
    /// # Errors
    /// [`TargetError::System`] when no region can have one.
    pub fn map(regions: &[RegionId], bytes: u64) -> Result<Self, TargetError> {
        Self::map_while(regions, bytes, &mut || true)
    }

    /// The same while `go_on` says so, which is asked every some ten milliseconds.
    ///
    /// # Errors
    /// As [`Self::map`], and [`TargetError::Stopped`].
    pub fn map_while(
        regions: &[RegionId],
        bytes: u64,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Self, TargetError> {
        let mut buffers =
            Self { regions: regions.to_vec(), mappings: Vec::new(), missing: Vec::new() };
        let mut refused = None;
        for &region in regions {
            let mapped = if regions.len() > 1 {
                has_room(region, bytes).and_then(|()| buffer(bytes, Some(region), go_on))
            } else {
                buffer(bytes, None, go_on)
            };
            let mapping = match mapped {
                Err(TargetError::Stopped) => return Err(TargetError::Stopped),
                Err(error) => {
                    buffers.missing.push(error.to_string());
                    refused = Some(error);
                    None
                }
                Ok(mapping) => Some(mapping),
            };
            let is_small =
                |mapping: &Mapping| mapping.huge_share().is_some_and(|share| share < 1.0);
            if mapping.as_ref().is_some_and(is_small) {
                buffers.missing.push(format!(
                    "huge pages for the buffer of {region}: its latency includes translation"
                ));
            }
            buffers.mappings.push(mapping);
        }
        match refused {
            Some(error) if buffers.mappings.iter().all(Option::is_none) => Err(error),
            _ => Ok(buffers),
        }
    }

    /// A buffer that is there already, all of it in `region`.
    #[must_use]
    pub fn of(region: RegionId, mapping: Mapping) -> Self {
        Self { regions: vec![region], mappings: vec![Some(mapping)], missing: Vec::new() }
    }

    /// How many regions there are, with a buffer or without.
    #[must_use]
    pub fn count(&self) -> usize {
        self.mappings.len()
    }

    /// The buffer of the `index`-th region, to be looked at before it is linked.
    #[must_use]
    pub fn mapping(&self, index: usize) -> Option<&Mapping> {
        self.mappings.get(index)?.as_ref()
    }

    /// What could not be had, one line each.
    #[must_use]
    pub fn missing(&self) -> &[String] {
        &self.missing
    }

    /// Links each buffer in the order of a plan.
    ///
    /// # Errors
    /// [`TargetError::Unsupported`] for an order that is no ring, or not one for each region.
    pub fn link<'b>(
        &'b mut self,
        orders: &'b [Vec<LineAddr>],
    ) -> Result<RegionRings<'b>, TargetError> {
        if orders.len() != self.mappings.len() {
            return Err(TargetError::Unsupported(format!(
                "{} orders are given for {} regions; give one for each",
                orders.len(),
                self.mappings.len()
            )));
        }
        let rings = self
            .mappings
            .iter_mut()
            .zip(orders)
            .map(|(mapping, order)| {
                mapping.as_mut().map(|mapping| link(mapping, order)).transpose()
            })
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| TargetError::Unsupported(error.to_string()))?;
        Ok(RegionRings { regions: self.regions.clone(), rings, orders })
    }
}

/// A buffer, bound to its region before it has pages, so that none has to be moved.
fn buffer(
    bytes: u64,
    region: Option<RegionId>,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Mapping, TargetError> {
    let name =
        region.map_or_else(|| "a buffer".to_owned(), |region| format!("a buffer for {region}"));
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    let no_map = |e| TargetError::refused(format!("cannot map {name}"), e);
    let mut mapping = Mapping::untouched(bytes).map_err(no_map)?;
    if let Some(region) = region {
        mapping
            .bind(region)
            .map_err(|e| TargetError::refused(format!("cannot bind a buffer to {region}"), e))?;
    }
    mapping.populate_while(go_on).map_err(no_map)?;
    if mapping.len() < bytes { Err(TargetError::Stopped) } else { Ok(mapping) }
}

/// Whether a region has room for a buffer, as far as the system tells.
fn has_room(region: RegionId, bytes: u64) -> Result<(), TargetError> {
    let free = region_free_bytes(&SysRoot::live(), region.0);
    match free.filter(|free| free / FREE_BUFFERS < bytes) {
        None => Ok(()),
        Some(free) => Err(TargetError::System {
            what: format!("cannot map a buffer for {region}"),
            why: format!("{} MiB of it are free", free >> 20),
            advice: format!("free some, or use a buffer of less than {} MiB", bytes >> 20),
        }),
    }
}

/// Linked buffers.
#[derive(Debug)]
pub struct RegionRings<'b> {
    regions: Vec<RegionId>,
    rings: Vec<Option<Ring<'b>>>,
    orders: &'b [Vec<LineAddr>],
}

/// Linked buffers and a thread that chases through them.
#[derive(Debug)]
pub struct LiveRegions<'r> {
    rings: &'r RegionRings<'r>,
    walkers: Vec<Option<Walker<'r>>>,
    cores: Vec<CoreId>,
    clock: TargetClock,
    here: Option<CoreId>,
    before: Option<CoreSet>,
    born: Instant,
}

/// Where the walk through a buffer stands, as a place in its order and in memory.
#[derive(Debug)]
struct Walker<'r> {
    cursor: Cursor<'r>,
    place: usize,
}

impl<'r> LiveRegions<'r> {
    /// The calling thread will chase, from each of `cores`. Where it may run is put back when
    /// this is dropped.
    #[must_use]
    pub fn new(rings: &'r RegionRings<'r>, cores: &[CoreId], clock: TargetClock) -> Self {
        let mut cores = cores.to_vec();
        cores.sort_unstable();
        cores.dedup();
        let walker = |ring: &'r Ring<'r>| Walker { cursor: ring.cursor(), place: 0 };
        let walkers = rings.rings.iter().map(|ring| ring.as_ref().map(walker)).collect();
        Self {
            rings,
            walkers,
            cores,
            clock,
            here: None,
            before: CoreSet::of_this_thread().ok(),
            born: Instant::now(),
        }
    }

    fn go_to(&mut self, core: CoreId) -> Result<(), TargetError> {
        if self.here != Some(core) {
            affinity::pin(core)
                .map_err(|e| TargetError::refused(format!("cannot run on {core}"), e))?;
            self.here = Some(core);
        }
        Ok(())
    }

    /// The walk through the buffer of a region.
    fn walker(&mut self, region: usize) -> Result<&mut Walker<'r>, TargetError> {
        let none = || TargetError::Unsupported("a region has no buffer".to_owned());
        self.walkers[region].as_mut().ok_or_else(none)
    }

    /// Puts the next `steps` lines of a walk out of all caches.
    fn flush(&self, region: usize, place: usize, steps: u64) -> Result<(), TargetError> {
        let order = &self.rings.orders[region];
        let Some(ring) = &self.rings.rings[region] else { return Ok(()) };
        let steps = usize::try_from(steps).unwrap_or(usize::MAX).min(order.len());
        let ahead = &order[place..order.len().min(place + steps)];
        let around = &order[..steps - ahead.len()];
        ring.flush(ahead)
            .and_then(|()| ring.flush(around))
            .map_err(|error| TargetError::Unsupported(error.to_string()))
    }
}

impl Walker<'_> {
    fn advance(&mut self, steps: u64, length: usize) {
        let steps = usize::try_from(steps % length as u64).unwrap_or(0);
        self.place = (self.place + steps) % length;
    }
}

impl RegionTarget for LiveRegions<'_> {
    fn cores(&self) -> &[CoreId] {
        &self.cores
    }

    fn regions(&self) -> &[RegionId] {
        &self.rings.regions
    }

    fn clock(&self) -> TargetClock {
        self.clock
    }

    fn has_buffer(&self, region: usize) -> bool {
        self.walkers.get(region).is_some_and(Option::is_some)
    }

    fn chase(
        &mut self,
        core: CoreId,
        region: usize,
        steps: u64,
        flush: bool,
    ) -> Result<u64, TargetError> {
        self.go_to(core)?;
        let length = self.rings.orders[region].len();
        let walker = self.walker(region)?;
        walker.cursor.walk(WARM_STEPS);
        walker.advance(WARM_STEPS, length);
        let place = walker.place;
        if flush {
            self.flush(region, place, steps)?;
        }
        let walker = self.walker(region)?;
        let cycles = walker.cursor.chase(steps);
        walker.advance(steps, length);
        let found = affinity::current_core();
        if found != core {
            self.here = None;
            return Err(TargetError::Moved { asked: core.0, found: found.0 });
        }
        Ok(cycles)
    }

    fn seconds(&mut self) -> f64 {
        self.born.elapsed().as_secs_f64()
    }
}

impl Drop for LiveRegions<'_> {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // Nothing can be done about a refusal, and it harms nobody: the thread stays pinned.
            let _ = affinity::restore(before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::plan::{Mode, RegionOptions, RegionPlan};
    use crate::region::run::run;

    #[test]
    fn a_real_buffer_is_chased_from_every_core_and_the_walk_follows_its_order() {
        let cores: Vec<CoreId> = CoreSet::of_this_thread().unwrap().iter().take(2).collect();
        let options = RegionOptions {
            buffer_bytes: 1 << 20,
            steps: 1000,
            rounds_min: 3,
            rounds_max: 3,
            ..RegionOptions::new(Mode::Stride { bytes: 192 }, 4)
        };
        let plan = RegionPlan::new(1, options).unwrap();
        let mut buffers = RegionBuffers::map(&[RegionId(0)], 1 << 20).unwrap();
        let rings = buffers.link(&plan.orders).unwrap();
        let clock = TargetClock { hz: 2e9, tick: 1, overhead: 0.0 };
        let before = CoreSet::of_this_thread().unwrap();
        let mut target = LiveRegions::new(&rings, &cores, clock);
        let report = run(&mut target, &plan, &mut || false).unwrap();
        for walker in target.walkers.iter().flatten() {
            assert_eq!(walker.cursor.line(), plan.orders[0][walker.place]);
        }
        drop(target);
        assert_eq!(CoreSet::of_this_thread().unwrap(), before, "the thread is set free again");
        let cells = &report.map.latency_ns.cells;
        assert_eq!((cells.len(), report.series_ns[0][0].len()), (cores.len(), 3));
        // Beside other tests a cell of three chases may have no number.
        assert!(cells.iter().flatten().all(|cell| cell.median > 0.0));
        assert_eq!(report.map.stride_bytes, Some(192));
    }

    #[test]
    fn a_region_that_is_not_there_is_left_out_and_said() {
        let none = RegionId(999);
        let refused = RegionBuffers::map(&[none, RegionId(998)], 1 << 20).unwrap_err();
        assert!(refused.to_string().contains("cannot bind a buffer to region 99"), "{refused}");
        let Ok(mut buffers) = RegionBuffers::map(&[RegionId(0), none], 1 << 20) else {
            // Memory cannot be bound here at all.
            return;
        };
        let lines: Vec<&String> =
            buffers.missing().iter().filter(|line| line.contains("999")).collect();
        assert_eq!((lines.len(), buffers.count()), (1, 2));
        assert!(buffers.mapping(0).is_some() && buffers.mapping(1).is_none());
        let options = RegionOptions {
            buffer_bytes: 1 << 20,
            rounds_min: 2,
            rounds_max: 2,
            ..RegionOptions::new(Mode::Random, 4)
        };
        let plan = RegionPlan::new(2, options).unwrap();
        let rings = buffers.link(&plan.orders).unwrap();
        let core = CoreSet::of_this_thread().unwrap().iter().next().unwrap();
        let clock = TargetClock { hz: 2e9, tick: 1, overhead: 0.0 };
        let mut target = LiveRegions::new(&rings, &[core], clock);
        let report = run(&mut target, &plan, &mut || false).unwrap();
        assert_eq!((report.series_ns[0][0].len(), report.series_ns[0][1].len()), (2, 0));
        assert!(report.map.latency_ns.cells[1].is_none());
    }

    #[test]
    fn orders_for_another_number_of_regions_are_refused() {
        let mut buffers = RegionBuffers::map(&[RegionId(0)], 4096).unwrap();
        let refused = buffers.link(&[]).unwrap_err().to_string();
        assert!(refused.contains("0 orders are given for 1 regions"), "{refused}");
    }
}
