//! Many answers of an atlas at once: for languages in which a call costs more than an answer, and for arrays.
//!
//! Every function writes into memory of the caller's, and no further than it says that there is room.

use std::ffi::c_int;

use isochrone_distance::Distances;
use isochrone_units::RegionId;

use crate::queries::{IsochroneAtlas, IsochroneCost, core_of, put, shared, written};
use crate::status::{Failure, told};

/// No kernel has more regions (`MAX_NUMNODES`, CONFIG_NODES_SHIFT is at most 10).
const REGIONS_MAX: u16 = 1024;

/// The regions of which a latency is known: how many, and as many as fit.
///
/// # Safety
/// `atlas` is null or an open handle; `regions` is null or has room for `room` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_atlas_regions(
    atlas: *const IsochroneAtlas,
    regions: *mut u32,
    room: usize,
) -> usize {
    // SAFETY: the caller's word.
    let Ok(atlas) = (unsafe { shared(atlas) }) else { return 0 };
    let atlas = atlas.atlas();
    let known = |region: &u16| atlas.cores().any(|c| atlas.region(c, RegionId(*region)).is_some());
    // SAFETY: the caller's word.
    unsafe { written((0..REGIONS_MAX).filter(known).map(u32::from), regions, room) }
}

/// What every core's line costs every other one: the owner's row, the asker's column, in the order of
/// `isochrone_atlas_cores`.
///
/// # Safety
/// `atlas` is null or an open handle; `costs` is null or has room for `room` costs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_atlas_transfers(
    atlas: *const IsochroneAtlas,
    costs: *mut IsochroneCost,
    room: usize,
) -> c_int {
    // SAFETY: the caller's word.
    told(unsafe { shared(atlas) }.and_then(|atlas| {
        let atlas = atlas.atlas();
        let wanted = atlas.cores().len().pow(2);
        if room < wanted {
            let words = format!("there is room for {room} costs, and {wanted} are written");
            return Err(Failure::argument(words));
        }
        let pairs = atlas.cores().flat_map(|owner| atlas.cores().map(move |asker| (owner, asker)));
        for (at, (owner, asker)) in pairs.enumerate() {
            let cost = atlas.line_costs(owner, asker).map(|costs| costs.transfer);
            // A place beside null is never written: it would be the first.
            let place = if costs.is_null() { costs } else { costs.wrapping_add(at) };
            // SAFETY: null, which is refused, or one of `room` places by the caller's word.
            unsafe { put(place, cost) }?;
        }
        Ok(())
    }))
}

/// Latencies of lines from a core, ns, and their bins.
///
/// # Safety
/// `atlas` is null or an open handle; `addresses` has `count` numbers; `ns` and `bins` are null or have room for as
/// many.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_atlas_lines(
    atlas: *const IsochroneAtlas,
    core: u32,
    level: u32,
    addresses: *const u64,
    count: usize,
    ns: *mut f64,
    bins: *mut i32,
) -> c_int {
    // SAFETY: the caller's word.
    told(unsafe { shared(atlas) }.and_then(|atlas| {
        if addresses.is_null() && count > 0 {
            return Err(Failure::argument("there are no addresses"));
        }
        for at in 0..count {
            // SAFETY: not null, and `at` is below the number of addresses by the caller's word.
            let address = unsafe { addresses.wrapping_add(at).read() };
            if !ns.is_null() {
                let value = atlas.latency_ns(core_of(core), level as usize, address);
                // SAFETY: not null, and there is room for `count` by the caller's word.
                unsafe { ns.wrapping_add(at).write(value.unwrap_or(f64::NAN)) };
            }
            if !bins.is_null() {
                let bin = atlas.line_class(level as usize, address).unwrap_or(-1);
                // SAFETY: not null, and there is room for `count` by the caller's word.
                unsafe { bins.wrapping_add(at).write(bin) };
            }
        }
        Ok(())
    }))
}

/// Latencies that a core sees of a level by bin, ns: how many bins there are, and as many as fit.
///
/// # Safety
/// `atlas` is null or an open handle; `ns` is null or has room for `room` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_atlas_bins(
    atlas: *const IsochroneAtlas,
    core: u32,
    level: u32,
    ns: *mut f64,
    room: usize,
) -> usize {
    // SAFETY: the caller's word.
    let Ok(atlas) = (unsafe { shared(atlas) }) else { return 0 };
    // SAFETY: the caller's word.
    unsafe { written(atlas.bins_ns(core_of(core), level as usize).into_iter(), ns, room) }
}
