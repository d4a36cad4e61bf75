//! Memory near the cores that use it: the handle for C.

use std::alloc::Layout;
use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;
use std::sync::OnceLock;
use std::time::Duration;

use isochrone_near::{Lists, Mix, Options, Placement, Wrong};
use isochrone_units::CoreId;

use crate::atlas::places;
use crate::status::{Failure, Status, number, told};

/// What places, `isochrone_placement` in C.
#[derive(Debug)]
pub struct IsochronePlacement {
    placement: Placement,
    /// Why nothing is placed, once somebody has asked and it was so.
    why: OnceLock<CString>,
}

/// What a placement is asked for, `isochrone_place_options` in C.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct IsochronePlaceOptions {
    /// Bytes of this structure, as the program was compiled.
    pub size: usize,
    /// A file of `isochrone map`, or null.
    pub atlas: *const c_char,
    /// Cores that will use the memory, or null.
    pub cores: *const u32,
    /// How many these are.
    pub cores_count: usize,
    /// The most memory to place in, bytes; 0 for a quarter of what there is.
    pub bytes_max: u64,
    /// Memory that is learnt before anything is handed out, bytes of objects.
    pub prepare_bytes: u64,
    /// The time that this may take, seconds; 0 for as long as it takes.
    pub prepare_seconds: f64,
    /// The share of lines that counts as near; 0 for a quarter.
    pub near_share: f64,
    /// By which level lines are ranked: [`MIXES`].
    pub mix: u32,
    /// [`FORCE`] and [`PARTICIPANTS`].
    pub flags: u32,
    /// Must be zeros.
    pub reserved: [u64; 4],
}

/// Levels by which lines are ranked, by their numbers in C.
const MIXES: [Mix; 3] = [Mix::ByUse, Mix::Cache, Mix::Memory];
/// What malloc aligns to.
const ALIGN: usize = 16;
/// `ISOCHRONE_PLACE_FORCE`.
pub const FORCE: u32 = 1;
/// `ISOCHRONE_PLACE_PARTICIPANTS`.
pub const PARTICIPANTS: u32 = 2;

/// How far an object is from a core, `isochrone_place_distances` in C.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct IsochronePlaceDistances {
    /// With its lines in the last-level cache, ns; not a number where that is not known.
    pub cache_ns: f64,
    /// With its lines in memory.
    pub memory_ns: f64,
    /// Where the numbers are from, as [`number`] says.
    pub reading: u32,
    /// Always zero.
    pub reserved: u32,
}

/// What was placed so far, `isochrone_place_counts` in C.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct IsochronePlaceCounts {
    /// Bytes of this structure, as the program was compiled.
    pub size: usize,
    /// Objects that were placed, freed or not.
    pub placed_objects: u64,
    /// Their bytes, as they were asked for.
    pub placed_bytes: u64,
    /// Of them, objects that were freed.
    pub freed_objects: u64,
    /// Objects that the ordinary allocator had to serve while something could be placed.
    pub ordinary_objects: u64,
    /// Bytes of memory for lines.
    pub arena_bytes: u64,
    /// The share of slots that were near for the core that they were drawn for; not a number before any was.
    pub near_share: f64,
    /// Always zeros.
    pub reserved: [u64; 4],
}

/// How long a structure is, by its first field.
///
/// # Safety
/// `from` points to such a structure.
unsafe fn size_of_structure(from: *const c_void) -> Result<usize, Failure> {
    const MOST: usize = 1 << 16;
    // SAFETY: the caller vouches for it.
    let size = unsafe { from.cast::<usize>().read() };
    if !(size_of::<usize>()..=MOST).contains(&size) {
        let words = format!("a structure of {size} bytes: set size to that of the structure");
        return Err(Failure::argument(words));
    }
    Ok(size)
}

/// A structure of which the caller has the first `size` bytes; all others are zero.
///
/// # Safety
/// `from` points to a structure of C whose first field is its size, of plain numbers and pointers only, of which zeros
/// are values; as many bytes may be read as it says.
unsafe fn sized<T>(from: *const T) -> Result<T, Failure> {
    // SAFETY: the caller vouches for it.
    let size = unsafe { size_of_structure(from.cast()) }?;
    // SAFETY: the caller vouches for so many bytes.
    let bytes = unsafe { std::slice::from_raw_parts(from.cast::<u8>(), size) };
    let (known, later) = bytes.split_at(size.min(size_of::<T>()));
    if later.iter().any(|byte| *byte != 0) {
        return Err(Failure::argument(
            "the structure has fields that this library does not know; set what is unused to 0",
        ));
    }
    let mut read = MaybeUninit::<T>::zeroed();
    // SAFETY: there is room for as many bytes as are known, and it is other memory.
    unsafe { ptr::copy_nonoverlapping(known.as_ptr(), read.as_mut_ptr().cast(), known.len()) };
    // SAFETY: all bytes are the caller's or zero, which are values of it.
    Ok(unsafe { read.assume_init() })
}

/// # Safety
/// `options` is null or points to options as [`sized`] wants them, whose pointers are null or as `isochrone.h` says.
unsafe fn options(options: *const IsochronePlaceOptions) -> Result<Options, Failure> {
    if options.is_null() {
        return Ok(Options { places: places(None), ..Options::default() });
    }
    // SAFETY: the caller vouches for it.
    let given = unsafe { sized(options) }?;
    if given.flags & !(FORCE | PARTICIPANTS) != 0 || given.reserved != [0; 4] {
        return Err(Failure::argument(
            "options have flags that this library does not know; set what is unused to 0",
        ));
    }
    // SAFETY: the caller vouches for a string.
    let named = (!given.atlas.is_null()).then(|| unsafe { CStr::from_ptr(given.atlas) });
    let named = named.map(|path| Path::new(OsStr::from_bytes(path.to_bytes())));
    let mix = usize::try_from(given.mix).ok().and_then(|mix| MIXES.get(mix)).copied();
    let mix = mix.ok_or_else(|| {
        Failure::argument(format!("{} is no level to rank by; isochrone.h names them", given.mix))
    })?;
    let within = Duration::try_from_secs_f64(given.prepare_seconds).map_err(|_| {
        Failure::argument(format!("{} is no time in seconds", given.prepare_seconds))
    })?;
    let lists = match given.flags & PARTICIPANTS {
        0 => Lists::Nearest,
        _ => Lists::NearestParticipant,
    };
    let usual = Options::default();
    Ok(Options {
        places: places(named),
        // SAFETY: the caller vouches for as many numbers.
        cores: unsafe { cores(given.cores, given.cores_count) }?,
        near: if given.near_share == 0.0 { usual.near } else { single(given.near_share) },
        mix,
        lists,
        bytes_max: (given.bytes_max > 0).then_some(given.bytes_max),
        prepare_bytes: usize::try_from(given.prepare_bytes).unwrap_or(usize::MAX),
        prepare_within: (!within.is_zero()).then_some(within),
        force: given.flags & FORCE != 0,
        ..usual
    })
}

/// # Safety
/// `first` is null or points to `count` numbers.
unsafe fn cores(first: *const u32, count: usize) -> Result<Vec<CoreId>, Failure> {
    if count == 0 {
        return Ok(Vec::new());
    }
    if first.is_null() || count > usize::from(u16::MAX) {
        return Err(Failure::argument(format!("no list of {count} cores")));
    }
    // SAFETY: the caller vouches for it.
    let numbers = unsafe { std::slice::from_raw_parts(first, count) };
    numbers.iter().map(|number| core(*number)).collect()
}

fn core(number: u32) -> Result<CoreId, Failure> {
    let core = u16::try_from(number).map(CoreId);
    core.map_err(|_| Failure::argument(format!("core {number}; numbers end at 65535")))
}

/// A share.
#[allow(clippy::cast_possible_truncation, reason = "a share")]
const fn single(value: f64) -> f32 {
    value as f32
}

fn null(what: &str) -> Failure {
    Failure::argument(format!("{what} is a null pointer"))
}

/// # Safety
/// `placement` is null or a handle that is open.
unsafe fn handle<'a>(
    placement: *const IsochronePlacement,
) -> Result<&'a IsochronePlacement, Failure> {
    // SAFETY: the caller vouches for it.
    unsafe { placement.as_ref() }.ok_or_else(|| null("placement"))
}

/// Opens a placement.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_place_open(
    given: *const IsochronePlaceOptions,
    placement: *mut *mut IsochronePlacement,
) -> c_int {
    let open = || {
        if placement.is_null() {
            return Err(null("placement"));
        }
        // SAFETY: the caller vouches for the options.
        let options = unsafe { options(given) }?;
        let opened =
            Placement::open(&options).map_err(|error| Failure::argument(error.to_string()))?;
        let handle = Box::new(IsochronePlacement { placement: opened, why: OnceLock::new() });
        // SAFETY: the caller's, and not null.
        unsafe { placement.write(Box::into_raw(handle)) };
        Ok(())
    };
    told(open())
}

/// Closes a placement.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_place_close(placement: *mut IsochronePlacement) {
    if !placement.is_null() {
        // SAFETY: a handle of this library, which its caller gives up.
        drop(unsafe { Box::from_raw(placement) });
    }
}

/// Why nothing is placed; null where something is.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_place_why_not(
    placement: *const IsochronePlacement,
) -> *const c_char {
    // SAFETY: the caller vouches for the handle.
    let Some(placement) = (unsafe { placement.as_ref() }) else { return c"no placement".as_ptr() };
    let Some(why) = placement.placement.why_not() else { return ptr::null() };
    let words = || CString::new(why.to_string().replace('\0', " ")).unwrap_or_default();
    placement.why.get_or_init(words).as_ptr()
}

/// Learns memory beforehand.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_place_prepare(
    placement: *mut IsochronePlacement,
    bytes: usize,
    seconds: f64,
    learnt: *mut f64,
) -> c_int {
    let prepare = || {
        // SAFETY: the caller vouches for the handle.
        let placement = &unsafe { handle(placement) }?.placement;
        let within = Duration::try_from_secs_f64(seconds)
            .map_err(|_| Failure::argument(format!("{seconds} is no time in seconds")))?;
        let within = (!within.is_zero()).then_some(within);
        let share = placement.prepare(bytes, within);
        let share =
            share.map_err(|error| Failure { status: Status::System, words: error.to_string() })?;
        if !learnt.is_null() {
            // SAFETY: the caller's, and not null.
            unsafe { learnt.write(share.into()) };
        }
        Ok(())
    };
    told(prepare())
}

/// # Safety
/// `placement` is null or a handle that is open.
#[inline]
unsafe fn alloc(
    placement: *mut IsochronePlacement,
    near: Option<CoreId>,
    bytes: usize,
    alignment: usize,
) -> Result<*mut c_void, Failure> {
    // SAFETY: the caller vouches for the handle.
    let placement = &unsafe { handle(placement) }?.placement;
    // As malloc aligns, unless it is told otherwise.
    let align = if alignment == 0 { ALIGN } else { alignment };
    let layout = Layout::from_size_align(bytes, align).map_err(|_| {
        Failure::argument(format!(
            "{bytes} bytes at a multiple of {alignment}: no power of two, or too many"
        ))
    })?;
    let found = match near {
        None => placement.alloc(layout),
        Some(core) => placement.alloc_near(core, layout),
    };
    if found.is_null() {
        return Err(Failure {
            status: Status::Memory,
            words: format!("no {bytes} bytes are free"),
        });
    }
    Ok(found.cast())
}

/// The address, or null with the words kept.
#[inline]
fn address(found: Result<*mut c_void, Failure>) -> *mut c_void {
    found.unwrap_or_else(|failure| {
        told(Err(failure));
        ptr::null_mut()
    })
}

/// Memory near the core that runs this.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_place_alloc(
    placement: *mut IsochronePlacement,
    bytes: usize,
    alignment: usize,
) -> *mut c_void {
    // SAFETY: the caller vouches for the handle.
    address(unsafe { alloc(placement, None, bytes, alignment) })
}

/// Memory near a core.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_place_alloc_near(
    placement: *mut IsochronePlacement,
    near: u32,
    bytes: usize,
    alignment: usize,
) -> *mut c_void {
    // SAFETY: the caller vouches for the handle.
    address(core(near).and_then(|core| unsafe { alloc(placement, Some(core), bytes, alignment) }))
}

/// Gives memory back.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_place_free(
    placement: *mut IsochronePlacement,
    at: *mut c_void,
) -> c_int {
    let free = || {
        // SAFETY: the caller vouches for the handle.
        let placement = &unsafe { handle(placement) }?.placement;
        // SAFETY: the caller vouches for the address.
        let freed = unsafe { placement.free(at.cast()) };
        freed.map_err(|wrong| {
            Failure::argument(match wrong {
                Wrong::Freed => "double free: this object is free already",
                Wrong::Pointer => "invalid pointer: no object begins there",
            })
        })
    };
    told(free())
}

/// How far an object is from a core.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_place_distance(
    placement: *const IsochronePlacement,
    at: *const c_void,
    from: u32,
    distances: *mut IsochronePlaceDistances,
) -> c_int {
    let distance = || {
        if distances.is_null() {
            return Err(null("distances"));
        }
        // SAFETY: the caller vouches for the handle.
        let placement = &unsafe { handle(placement) }?.placement;
        let found = placement.distance(at.cast(), core(from)?);
        let found = found
            .ok_or_else(|| Failure::argument("no object that was placed, or one that was freed"))?;
        let known = IsochronePlaceDistances {
            cache_ns: found.llc_ns.unwrap_or(f64::NAN),
            memory_ns: found.dram_ns.unwrap_or(f64::NAN),
            reading: number(found.reading),
            reserved: 0,
        };
        // SAFETY: the caller's, and not null.
        unsafe { distances.write(known) };
        Ok(())
    };
    told(distance())
}

/// What was placed so far.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_place_statistics(
    placement: *const IsochronePlacement,
    counts: *mut IsochronePlaceCounts,
) -> c_int {
    let count = || {
        if counts.is_null() {
            return Err(null("counts"));
        }
        // SAFETY: the caller vouches for the handle.
        let found = unsafe { handle(placement) }?.placement.statistics();
        // SAFETY: the caller vouches for a structure that says how long it is.
        let size = unsafe { size_of_structure(counts.cast_const().cast()) }?;
        let known = IsochronePlaceCounts {
            size,
            placed_objects: found.placed_objects,
            placed_bytes: found.placed_bytes,
            freed_objects: found.freed_objects,
            ordinary_objects: found.ordinary_objects,
            arena_bytes: found.arena_bytes,
            near_share: found.near_share.unwrap_or(f64::NAN),
            reserved: [0; 4],
        };
        let bytes = size.min(size_of::<IsochronePlaceCounts>());
        // SAFETY: so many bytes are the caller's to be written; what is not known to this library is zero.
        unsafe { counts.cast::<u8>().write_bytes(0, size) };
        // SAFETY: as above, and `known` has as many.
        unsafe {
            ptr::copy_nonoverlapping(ptr::from_ref(&known).cast::<u8>(), counts.cast(), bytes)
        };
        Ok(())
    };
    told(count())
}
