//! The atlas: what a program in C asks of it itself.
//!
//! A handle never changes after it was opened, so threads may share one. What a core sees of a level is resolved at
//! its first question and kept: a question then takes two loads.

use std::ffi::{CStr, OsStr, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::OnceLock;

use isochrone_atlas::{Atlas, Code, LevelView};
use isochrone_atlas_store::MappedAtlas;
use isochrone_distance::{Cost, Distances, Experiment};
use isochrone_units::{CoreId, Level, LineAddr, RegionId};

use crate::atlas::find;
use crate::status::{Failure, Status, UNKNOWN, number, told};

/// An open atlas, `isochrone_atlas` in C.
#[derive(Debug)]
pub struct IsochroneAtlas {
    /// What every core of the atlas sees of each level, by the places of both.
    views: Vec<[OnceLock<Option<LevelView<'static>>>; LEVELS.len()]>,
    /// Nanoseconds of a cycle.
    cycle_ns: f64,
    /// The queries; they borrow from `file`, and are dropped before it.
    atlas: Atlas<'static>,
    /// The file; it stays where it is mapped.
    _file: Box<MappedAtlas>,
}

/// A number with its 95 % interval and its reading, `isochrone_cost` in C.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct IsochroneCost {
    /// The value; not a number where the atlas does not know it.
    pub value: f64,
    /// Lower end of the interval.
    pub lo: f64,
    /// Upper end of the interval.
    pub hi: f64,
    /// As [`number`] says; [`UNKNOWN`] where there is none.
    pub reading: u32,
    /// Always zero.
    pub reserved: u32,
}

/// `ISOCHRONE_ANY_MACHINE`.
pub const ANY_MACHINE: u32 = 1;
/// Levels by their numbers in C.
const LEVELS: [Level; 2] = [Level::Llc, Level::Dram];
/// Experiments by their numbers in C.
const EXPERIMENTS: [Experiment; 6] = [
    Experiment::Block,
    Experiment::Transfer,
    Experiment::Region,
    Experiment::Multiline,
    Experiment::Terms,
    Experiment::Bandwidth,
];
/// Bytes of a line.
const LINE_BYTES: u64 = 64;

impl From<Option<Cost>> for IsochroneCost {
    fn from(cost: Option<Cost>) -> Self {
        let Some(Cost { value, lo, hi, reading }) = cost else {
            let nan = f64::NAN;
            return Self { value: nan, lo: nan, hi: nan, reading: UNKNOWN, reserved: 0 };
        };
        Self { value, lo, hi, reading: number(reading), reserved: 0 }
    }
}

impl IsochroneAtlas {
    fn open(path: Option<&Path>, flags: u32) -> Result<Self, Failure> {
        let refused = |words: String| Failure { status: Status::System, words };
        let file = match path {
            _ if flags & !ANY_MACHINE != 0 => {
                return Err(Failure::argument("flags are 0 or ISOCHRONE_ANY_MACHINE"));
            }
            None if flags != 0 => {
                return Err(Failure::argument(
                    "an atlas of any machine needs the path of its file",
                ));
            }
            Some(path) if flags == ANY_MACHINE => {
                MappedAtlas::open(path).map_err(|error| refused(error.to_string()))?
            }
            path => find(path).map_err(refused)?.map(|found| found.atlas).ok_or_else(|| {
                refused("no atlas of this machine was found: run `isochrone map`".to_owned())
            })?,
        };
        Self::of(Box::new(file)).map_err(refused)
    }

    fn of(file: Box<MappedAtlas>) -> Result<Self, String> {
        // SAFETY: the box is kept beside what borrows from it, never moved out of, never written, and dropped after
        // it, since fields are dropped in the order in which they stand. Nothing outside of this type has the borrow.
        let borrowed: &'static MappedAtlas = unsafe { NonNull::from(file.as_ref()).as_ref() };
        let atlas = borrowed.atlas().map_err(|error| error.to_string())?;
        let views = atlas.cores().map(|_| Default::default()).collect();
        Ok(Self { views, cycle_ns: 1e9 / atlas.clock_hz(), atlas, _file: file })
    }

    fn view(&self, core: CoreId, level: usize) -> Option<&LevelView<'static>> {
        let kept = self.views.get(self.atlas.place_of(core)?)?.get(level)?;
        kept.get_or_init(|| self.atlas.view(core, *LEVELS.get(level)?)).as_ref()
    }

    /// The queries.
    pub(crate) const fn atlas(&self) -> &Atlas<'static> {
        &self.atlas
    }

    /// Latency of a line, ns.
    pub(crate) fn latency_ns(&self, core: CoreId, level: usize, address: u64) -> Option<f64> {
        let cycles = self.view(core, level)?.get(LineAddr(address / LINE_BYTES))?;
        Some(f64::from(cycles) * self.cycle_ns)
    }

    /// Latencies of a level by bin, ns; none where nothing of it is known.
    pub(crate) fn bins_ns(&self, core: CoreId, level: usize) -> Vec<f64> {
        let info = LEVELS.get(level).and_then(|level| self.atlas.level(*level));
        let (Some(view), Some(info)) = (self.view(core, level), info) else { return Vec::new() };
        let bins = u16::from(info.classes) * (u16::from(info.period.mask()) + 1);
        let cycles = |bin| view.latency_of_code(Code(bin), LineAddr(0));
        let ns = |bin| cycles(bin).map_or(f64::NAN, |cycles| f64::from(cycles) * self.cycle_ns);
        let all: Vec<f64> = (0..bins).map(ns).collect();
        if all.iter().all(|ns| ns.is_nan()) { Vec::new() } else { all }
    }

    /// The bin of a line: class and place in the base.
    pub(crate) fn line_class(&self, level: usize, address: u64) -> Option<i32> {
        let (line, level) = (LineAddr(address / LINE_BYTES), *LEVELS.get(level)?);
        let code = self.atlas.code(line.page(), level)?;
        let index = line.0 & u64::from(self.atlas.level(level)?.period.mask());
        Some(i32::from(code.0) ^ i32::try_from(index).ok()?)
    }

    /// Other cores, the one whose lines come soonest first.
    fn nearest(&self, core: CoreId) -> Vec<CoreId> {
        let ns = |owner| Some((self.atlas.line_costs(owner, core)?.transfer.value, owner));
        let mut others: Vec<_> = self.atlas.cores().filter_map(ns).collect();
        others.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        others.into_iter().map(|(_, core)| core).collect()
    }
}

/// The core of a number; no machine has as many as the largest that is none.
pub(crate) fn core_of(core: u32) -> CoreId {
    CoreId(u16::try_from(core).unwrap_or(u16::MAX))
}

/// # Safety
/// `atlas` is null or a handle of [`isochrone_atlas_open`] that was not closed.
pub(crate) unsafe fn shared<'a>(
    atlas: *const IsochroneAtlas,
) -> Result<&'a IsochroneAtlas, Failure> {
    // SAFETY: the caller's word; handles are never written to after they were made.
    unsafe { atlas.as_ref() }.ok_or_else(|| Failure::argument("the atlas is a null pointer"))
}

/// Writes values to `out`, as many as fit; how many there are.
///
/// # Safety
/// `out` is null or has room for `room` values.
pub(crate) unsafe fn written<T>(all: impl Iterator<Item = T>, out: *mut T, room: usize) -> usize {
    let mut count = 0;
    for one in all {
        if count < room && !out.is_null() {
            // SAFETY: `count` is below `room`, for as many of which there is room by the caller's word.
            unsafe { out.wrapping_add(count).write(one) };
        }
        count += 1;
    }
    count
}

/// Opens an atlas.
///
/// # Safety
/// `path` is null or a C string; `atlas` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_atlas_open(
    path: *const c_char,
    flags: u32,
    atlas: *mut *mut IsochroneAtlas,
) -> c_int {
    told((|| {
        if atlas.is_null() {
            return Err(Failure::argument("there is no place for the atlas"));
        }
        // SAFETY: the caller's word: null, which is asked first, or a C string.
        let path = (!path.is_null()).then(|| unsafe { CStr::from_ptr(path) });
        let path = path.map(|path| Path::new(OsStr::from_bytes(path.to_bytes())));
        let opened = Box::new(IsochroneAtlas::open(path, flags)?);
        // SAFETY: the caller's word, and not null.
        unsafe { atlas.write(Box::into_raw(opened)) };
        Ok(())
    })())
}

/// Closes an atlas; null is nothing.
///
/// # Safety
/// `atlas` is null or an open handle that nobody uses any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_atlas_close(atlas: *mut IsochroneAtlas) {
    if !atlas.is_null() {
        // SAFETY: made by `Box::into_raw` in `isochrone_atlas_open`, and closed once, by the caller's word.
        drop(unsafe { Box::from_raw(atlas) });
    }
}

/// The cores of the atlas: how many there are, and as many as fit.
///
/// # Safety
/// `atlas` is null or an open handle; `cores` is null or has room for `room` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_atlas_cores(
    atlas: *const IsochroneAtlas,
    cores: *mut u32,
    room: usize,
) -> usize {
    // SAFETY: the caller's word.
    let Ok(atlas) = (unsafe { shared(atlas) }) else { return 0 };
    // SAFETY: the caller's word.
    unsafe { written(atlas.atlas.cores().map(|core| core.0.into()), cores, room) }
}

/// Latency of the line at a physical address from a core, ns; not a number where it is not known.
///
/// # Safety
/// `atlas` is null or an open handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_atlas_latency(
    atlas: *const IsochroneAtlas,
    core: u32,
    level: u32,
    address: u64,
) -> f64 {
    // SAFETY: the caller's word.
    let atlas = unsafe { shared(atlas) }.ok();
    let found = atlas.and_then(|a| a.latency_ns(core_of(core), level as usize, address));
    found.unwrap_or(f64::NAN)
}

/// What a line costs `asker` that `owner` has written, ns.
///
/// # Safety
/// `atlas` is null or an open handle; `cost` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_atlas_line_transfer(
    atlas: *const IsochroneAtlas,
    owner: u32,
    asker: u32,
    cost: *mut IsochroneCost,
) -> c_int {
    // SAFETY: the caller's word.
    told(unsafe { shared(atlas) }.and_then(|atlas| {
        let found = atlas.atlas.line_costs(core_of(owner), core_of(asker));
        // SAFETY: the caller's word.
        unsafe { put(cost, found.map(|costs| costs.transfer)) }
    }))
}

/// Latency of a region from a core, ns, and what that core alone moves of it, 10^9 bytes a second.
///
/// # Safety
/// `atlas` is null or an open handle; `latency` and `bandwidth` are null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_atlas_region(
    atlas: *const IsochroneAtlas,
    core: u32,
    region: u32,
    latency: *mut IsochroneCost,
    bandwidth: *mut IsochroneCost,
) -> c_int {
    // SAFETY: the caller's word.
    told(unsafe { shared(atlas) }.and_then(|atlas| {
        let region = u16::try_from(region).ok().map(RegionId);
        let found = region.and_then(|region| atlas.atlas.region(core_of(core), region));
        if !bandwidth.is_null() {
            // SAFETY: the caller's word, and not null.
            let told = unsafe { put(bandwidth, found.and_then(|costs| costs.gb_per_s)) };
            told?;
        }
        // SAFETY: the caller's word.
        unsafe { put(latency, found.map(|costs| costs.latency_ns)) }
    }))
}

/// The other cores whose lines come soonest to `core`, nearest first: how many are known, and as many as fit.
///
/// # Safety
/// `atlas` is null or an open handle; `cores` is null or has room for `room` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_atlas_nearest_cores(
    atlas: *const IsochroneAtlas,
    core: u32,
    cores: *mut u32,
    room: usize,
) -> usize {
    // SAFETY: the caller's word.
    let Ok(atlas) = (unsafe { shared(atlas) }) else { return 0 };
    // SAFETY: the caller's word.
    unsafe {
        written(atlas.nearest(core_of(core)).into_iter().map(|core| core.0.into()), cores, room)
    }
}

/// Which bin the line at a physical address lies in at a level: class and place in the base; -1 where it is not known.
///
/// # Safety
/// `atlas` is null or an open handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_atlas_line_class(
    atlas: *const IsochroneAtlas,
    level: u32,
    address: u64,
) -> i32 {
    // SAFETY: the caller's word.
    let atlas = unsafe { shared(atlas) }.ok();
    atlas.and_then(|atlas| atlas.line_class(level as usize, address)).unwrap_or(-1)
}

/// How far an experiment may be believed: 1 unusable, 2 disturbed, 3 quiet, 0 where nobody has graded it.
///
/// # Safety
/// `atlas` is null or an open handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_atlas_quality(
    atlas: *const IsochroneAtlas,
    experiment: u32,
) -> u32 {
    // SAFETY: the caller's word.
    let atlas = unsafe { shared(atlas) }.ok();
    let of = EXPERIMENTS.get(experiment as usize);
    let grade = atlas.zip(of).and_then(|(atlas, of)| atlas.atlas.quality(*of));
    grade.map_or(UNKNOWN, |grade| grade as u32 + 1)
}

/// # Safety
/// `to` is null or can be written.
pub(crate) unsafe fn put(to: *mut IsochroneCost, cost: Option<Cost>) -> Result<(), Failure> {
    if to.is_null() {
        return Err(Failure::argument("there is no place for the cost"));
    }
    // SAFETY: the caller's word, and not null.
    unsafe { to.write(cost.into()) };
    Ok(())
}
