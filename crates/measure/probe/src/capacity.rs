//! How much of the last-level cache a core really gets.
//!
//! What `/sys` lists is the whole cache. A host may give a guest a part of its ways, and other
//! tenants use the rest, so placement by distance needs to know the share that stays: near lines
//! lie in few slices, and a slice that is asked to hold more than its part gives nothing.
//!
//! A random dependent chase goes around rings of growing size. Where half of its loads come from
//! memory, that is where its time per load is half way between the two plateaus, the ring is as
//! large as the share.

use isochrone_atlas_store::contents::LlcShare;
use isochrone_machine::{Machine, strides};
use isochrone_stats::{derive_seed, rng, shuffle};
use isochrone_units::{CoreId, LINE_BYTES, LineAddr, RegionId};

use crate::region::{LiveRegions, RegionBuffers, RegionTarget};
use crate::sample::Sample;
use crate::target::{TargetClock, TargetError};

/// Times that memory must be slower than the cache for there to be two plateaus.
const PLATEAUS_APART: f64 = 2.0;
/// Growth from one ring to the next, as a share, below which the upper plateau is reached...
const LEVEL_GROWTH: f64 = 0.05;
/// ...if it is seen so many times in a row. Larger rings then only cost time: a cache that is listed with
/// hundreds of mebibytes takes ten seconds a core to go around, and a guest may have three percent of it.
const LEVEL_STEPS: usize = 2;
/// Loads of a ring that are timed, at most.
const TIMED_STEPS: u64 = 1 << 20;
/// Loads that fill the cache between two looks at whether to go on: some 30 ms in memory.
const PART_STEPS: u64 = 1 << 18;
/// Times that a ring is begun again where the thread was moved.
const TRIES: u32 = 8;

/// Cores whose shares are measured one after the other, in memory of one region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The region of the cores, or the first with memory where theirs has none.
    pub region: RegionId,
    /// The cores.
    pub cores: Vec<CoreId>,
    /// Ring sizes, bytes.
    pub sizes: Vec<u64>,
}

/// Which cores' shares are measured: of a large machine some of each cache and region, since what cores share is
/// measured once. Cores whose caches have no known sizes are left out.
#[must_use]
pub fn turns(machine: &Machine, cores: &[CoreId]) -> Vec<Turn> {
    let mut turns: Vec<Turn> = Vec::new();
    for core in Sample::SHARERS.of(machine, cores) {
        let bytes = |level| machine.cache(core, level).and_then(|cache| cache.bytes);
        let llc = machine.last_level_cache(core).and_then(|cache| cache.bytes);
        let (Some(l2), Some(llc)) = (bytes(2), llc) else { continue };
        let (region, sizes) = (memory_of(machine, core), sizes(l2, llc));
        match turns.iter_mut().find(|turn| turn.region == region && turn.sizes == sizes) {
            Some(turn) => turn.cores.push(core),
            None => turns.push(Turn { region, cores: vec![core], sizes }),
        }
    }
    turns
}

/// What is said of cores whose share is not measured; `None` where there are none.
#[must_use]
pub fn left_out(turns: &[Turn], cores: &[CoreId]) -> Option<String> {
    let asked: Vec<u16> = turns.iter().flat_map(|turn| &turn.cores).map(|core| core.0).collect();
    (asked.len() < cores.len()).then(|| {
        format!(
            "measured on {} of {} cores ({}), which stand for their caches and regions",
            asked.len(),
            cores.len(),
            strides(&asked),
        )
    })
}

fn memory_of(machine: &Machine, core: CoreId) -> RegionId {
    let has_memory =
        |region: &RegionId| machine.region(*region).is_some_and(|region| region.bytes != Some(0));
    let first = machine.regions.iter().map(|region| RegionId(region.id)).find(has_memory);
    let own = machine.region_of(core).filter(has_memory);
    own.or(first).unwrap_or(RegionId(0))
}

/// Ring sizes, bytes: from twice the second-level cache to one and a half times the listed
/// last-level cache, two for each doubling.
#[must_use]
pub fn sizes(l2_bytes: u64, llc_bytes: u64) -> Vec<u64> {
    let mut sizes = Vec::new();
    let mut bytes = 2 * l2_bytes.max(LINE_BYTES as u64);
    while bytes <= llc_bytes + llc_bytes / 2 {
        sizes.extend([bytes, bytes + bytes / 2]);
        bytes *= 2;
    }
    sizes.retain(|bytes| *bytes <= llc_bytes + llc_bytes / 2);
    sizes
}

/// The size at which a curve of `(bytes, nanoseconds a load)`, ascending in bytes, passes half way
/// from its lowest to its highest plateau, interpolated in the logarithm of the size. `None` where
/// there are no two plateaus.
#[must_use]
pub fn half_way(curve: &[(u64, f64)]) -> Option<u64> {
    let low = curve.iter().map(|(_, ns)| *ns).fold(f64::INFINITY, f64::min);
    let high = curve.iter().map(|(_, ns)| *ns).fold(0.0, f64::max);
    if high <= PLATEAUS_APART * low {
        return None;
    }
    let middle = f64::midpoint(low, high);
    let after = curve.iter().rposition(|(_, ns)| *ns <= middle)? + 1;
    let ((below, slow), (above, fast)) = (curve[after - 1], *curve.get(after)?);
    let (below, above) = (below as f64, above as f64);
    let share = (middle - slow) / (fast - slow);
    Some(rounded(below * (above / below).powf(share)))
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "between two sizes that are 64-bit numbers of bytes"
)]
fn rounded(bytes: f64) -> u64 {
    bytes.round() as u64
}

/// Whether a curve has come to rest above its lower plateau.
fn has_both_plateaus(curve: &[(u64, f64)]) -> bool {
    let low = curve.iter().map(|(_, ns)| *ns).fold(f64::INFINITY, f64::min);
    let tail = &curve[curve.len().saturating_sub(LEVEL_STEPS + 1)..];
    let rests = |pair: &[(u64, f64)]| (pair[1].1 / pair[0].1 - 1.0).abs() < LEVEL_GROWTH;
    tail.len() > LEVEL_STEPS
        && tail.iter().all(|(_, ns)| *ns > PLATEAUS_APART * low)
        && tail.windows(2).all(rests)
}

/// Chases that are asked for: the cores, one after the other, around a warm ring of so many bytes. Nanoseconds a load,
/// in the order of the cores; fewer than cores where it was stopped.
pub type Chase<'a> = dyn FnMut(&[CoreId], u64) -> Result<Vec<f64>, TargetError> + 'a;

/// Measures the share of each core. A core whose curve has come to rest is asked no more. `keep_going` is asked before
/// each size; where it says no, cores whose curve has not passed half way have no share.
///
/// # Errors
/// Whatever `chase` refuses.
pub fn measure(
    cores: &[CoreId],
    sizes: &[u64],
    chase: &mut Chase<'_>,
    keep_going: &dyn Fn() -> bool,
) -> Result<Vec<LlcShare>, TargetError> {
    let mut curves = vec![Vec::new(); cores.len()];
    for bytes in sizes.iter().take_while(|_| keep_going()) {
        let open: Vec<usize> =
            (0..cores.len()).filter(|core| !has_both_plateaus(&curves[*core])).collect();
        if open.is_empty() {
            break;
        }
        let asked: Vec<CoreId> = open.iter().map(|core| cores[*core]).collect();
        for (core, ns) in open.into_iter().zip(chase(&asked, *bytes)?) {
            curves[core].push((*bytes, ns));
        }
    }
    let share = |(core, curve): (&CoreId, Vec<(u64, f64)>)| LlcShare {
        core: core.0,
        bytes: half_way(&curve),
        curve_ns: curve,
    };
    Ok(cores.iter().zip(curves).map(share).collect())
}

/// Measures it on this machine, in memory of `region`. `keep_going` is asked every some ten milliseconds.
///
/// # Errors
/// [`TargetError`] when memory or a core cannot be had, [`TargetError::Stopped`] where there was not even memory.
pub fn measure_live(
    cores: &[CoreId],
    sizes: &[u64],
    region: RegionId,
    clock: TargetClock,
    seed: u64,
    keep_going: &dyn Fn() -> bool,
) -> Result<Vec<LlcShare>, TargetError> {
    let Some(largest) = sizes.last() else { return Ok(Vec::new()) };
    let mut buffers = RegionBuffers::map_while(&[region], *largest, &mut || keep_going())?;
    let mut chase = |cores: &[CoreId], bytes: u64| {
        let mut order: Vec<LineAddr> = (0..bytes / LINE_BYTES as u64).map(LineAddr).collect();
        shuffle(&mut order, &mut rng(derive_seed(seed, bytes)));
        let orders = [order];
        let rings = buffers.link(&orders)?;
        let mut found = Vec::with_capacity(cores.len());
        for core in cores {
            match around(&mut LiveRegions::new(&rings, &[*core], clock), *core, bytes, keep_going) {
                Ok(ns) => found.push(ns),
                Err(TargetError::Stopped) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    };
    measure(cores, sizes, &mut chase, keep_going)
}

/// Once around a ring fills the cache, the second time counts: nanoseconds a load. A moved thread begins again.
fn around(
    live: &mut LiveRegions<'_>,
    core: CoreId,
    bytes: u64,
    keep_going: &dyn Fn() -> bool,
) -> Result<f64, TargetError> {
    let steps = bytes / LINE_BYTES as u64;
    let timed = steps.min(TIMED_STEPS);
    let mut tries = 0;
    loop {
        let mut left = steps;
        while left > 0 {
            if !keep_going() {
                return Err(TargetError::Stopped);
            }
            let part = left.min(PART_STEPS);
            live.chase(core, 0, part, false)?;
            left -= part;
        }
        match live.chase(core, 0, timed, false) {
            Err(TargetError::Moved { .. }) if tries < TRIES => tries += 1,
            Err(error) => return Err(error),
            Ok(cycles) => return Ok(1e9 * cycles as f64 / live.clock().hz / timed as f64),
        }
    }
}

#[cfg(test)]
mod tests {
    use isochrone_machine::{Cache, Core, Region};

    use super::*;

    /// A cache with random replacement of `capacity` bytes: 15 ns in it, 135 ns beyond.
    fn modelled(capacity: f64, bytes: u64) -> f64 {
        let hits = (capacity / bytes as f64).min(1.0);
        15.0 * hits + 135.0 * (1.0 - hits)
    }

    #[test]
    fn the_share_is_found_within_a_step_of_half_the_loads() {
        let sizes = sizes(1 << 20, 32 << 20);
        assert_eq!((sizes[0], *sizes.last().unwrap()), (2 << 20, 48 << 20));
        let cores = [CoreId(0), CoreId(1)];
        let mut chase = |cores: &[CoreId], bytes| {
            let of = |core: &CoreId| modelled(f64::from(4 << 20) * f64::from(core.0 + 1), bytes);
            Ok(cores.iter().map(of).collect())
        };
        let found = measure(&cores, &sizes, &mut chase, &|| true).unwrap();
        for (core, share) in found.iter().enumerate() {
            // Half of the loads miss where the ring is twice the capacity, but for the highest
            // plateau, which still has some hits.
            let half = (8 << 20) * (core as u64 + 1);
            let bytes = share.bytes.unwrap();
            assert!((half * 3 / 4..=half).contains(&bytes), "{bytes} of {half}");
        }
    }

    #[test]
    fn a_curve_that_rests_is_not_gone_on_with() {
        let sizes = sizes(2 << 20, 480 << 20);
        let mut asked = 0;
        let mut chase = |cores: &[CoreId], bytes| {
            asked = asked.max(bytes);
            Ok(vec![modelled(f64::from(6 << 20), bytes); cores.len()])
        };
        let found = measure(&[CoreId(0)], &sizes, &mut chase, &|| true).unwrap();
        assert!(asked < 192 << 20, "{asked}");
        let share = found[0].bytes.unwrap();
        assert!((8 << 20..=12 << 20).contains(&share), "{share}");
        // A flat curve, a lower plateau, is no end.
        assert!(!has_both_plateaus(&[(1, 15.0), (2, 15.0), (3, 15.1), (4, 15.0)]));
    }

    #[test]
    fn who_is_stopped_before_half_way_has_no_share() {
        let left = std::cell::Cell::new(3);
        let keep_going = || left.replace(left.get() - 1) > 0;
        let sizes = sizes(2 << 20, 480 << 20);
        // The second core is never asked for the third size.
        let mut chase = |cores: &[CoreId], bytes| {
            let asked = if bytes == sizes[2] { 1 } else { cores.len() };
            Ok(vec![modelled(f64::from(60 << 20), bytes); asked])
        };
        let found = measure(&[CoreId(0), CoreId(1)], &sizes, &mut chase, &keep_going).unwrap();
        assert_eq!((found[0].bytes, found[0].curve_ns.len()), (None, 3));
        assert_eq!((found[1].bytes, found[1].curve_ns.len()), (None, 2));
    }

    /// So many cores in caches of 16 cores, and regions of 32.
    fn machine(cores: u16) -> Machine {
        let of = |size: u16, number: u16| -> Vec<u16> {
            (0..cores).filter(|core| core / size == number).collect()
        };
        let l3 = |number: u16| Cache {
            level: 3,
            bytes: Some(32 << 20),
            shared_by: of(16, number),
            ..Cache::default()
        };
        let l2 =
            |core: u16| Cache { level: 2, bytes: Some(1 << 20), shared_by: vec![core], ..l3(0) };
        let region =
            |id: u16| Region { id, bytes: Some(1 << 30), cores: of(32, id), ..Region::default() };
        Machine {
            cores: (0..cores).map(|id| Core { id, region: id / 32, ..Core::default() }).collect(),
            caches: (0..cores).map(l2).chain((0..cores.div_ceil(16)).map(l3)).collect(),
            regions: (0..cores.div_ceil(32)).map(region).collect(),
            ..Machine::default()
        }
    }

    #[test]
    fn one_core_of_each_cache_is_asked_in_memory_of_its_region() {
        let cores = |count: u16| (0..count).map(CoreId).collect::<Vec<_>>();
        let few = turns(&machine(2), &cores(2));
        let sizes = sizes(1 << 20, 32 << 20);
        assert_eq!(few, [Turn { region: RegionId(0), cores: cores(2), sizes: sizes.clone() }]);
        assert_eq!(left_out(&few, &cores(2)), None);

        let mut many = machine(64);
        let turn = |region, cores: [u16; 2]| Turn {
            region: RegionId(region),
            cores: cores.map(CoreId).to_vec(),
            sizes: sizes.clone(),
        };
        let found = turns(&many, &cores(64));
        assert_eq!(found, [turn(0, [0, 16]), turn(1, [32, 48])]);
        let line = left_out(&found, &cores(64)).unwrap();
        assert!(line.starts_with("measured on 4 of 64 cores (0-48:16)"), "{line}");
        // A region without memory, and a cache whose size is not told.
        many.regions[0].bytes = Some(0);
        many.caches.retain(|cache| cache.shared_by != [16]);
        let found = turns(&many, &cores(64));
        assert_eq!(found.iter().map(|turn| turn.region.0).collect::<Vec<_>>(), [1]);
        assert_eq!(found[0].cores, [0, 32, 48].map(CoreId));
    }

    #[test]
    fn no_second_plateau_no_share() {
        assert_eq!(half_way(&[(1 << 20, 14.0), (1 << 21, 15.0), (1 << 22, 17.0)]), None);
        assert_eq!(half_way(&[]), None);
        // A cache that ends sharply: between the two sizes around its end.
        let sharp = half_way(&[(1 << 21, 15.0), (1 << 22, 15.0), (1 << 23, 140.0)]).unwrap();
        assert!((1 << 22..1 << 23).contains(&sharp), "{sharp}");
    }
}
