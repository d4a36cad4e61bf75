//! Teams and their collectives.

use crate::status::{Failure, Status, told};
use isochrone_cla::live::{Kind, Place, Reduction, Settings, Team, TeamError};
use isochrone_cla::program::{Combine, Element, Rank};
use std::ffi::{c_int, c_void};
use std::time::Duration;

/// One rank of a team, `isochrone_team` in C.
#[derive(Debug)]
pub struct IsochroneTeam(Team);

/// How a team is set up, `isochrone_team_options` in C.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct IsochroneTeamOptions {
    /// Bytes of shared memory, or 0.
    pub bytes: u64,
    /// 0, or [`LOCKED_FLAGS`].
    pub flags: u32,
    /// 0.
    pub reserved: u32,
}

/// Where processes find a team, `isochrone_place` in C.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct IsochronePlace {
    /// The process that made it.
    pub process: u32,
    /// Its file descriptor.
    pub descriptor: u32,
}

/// Linux's `ENOMEM`, on every machine that it runs on.
const NO_MEMORY: i32 = 12;

/// `ISOCHRONE_LOCKED_FLAGS`.
pub const LOCKED_FLAGS: u32 = 1;

/// The elements of a reduction, by their numbers in C.
const ELEMENTS: [Element; 6] =
    [Element::I32, Element::I64, Element::U32, Element::U64, Element::F32, Element::F64];
/// What a reduction does, by its number in C.
const REDUCTIONS: [Reduction; 7] = [
    Reduction::Sum,
    Reduction::Product,
    Reduction::Min,
    Reduction::Max,
    Reduction::And,
    Reduction::Or,
    Reduction::Xor,
];
/// What collectives that combine nothing are given; they never look at it.
const NOTHING: Combine = Combine::Sum(Element::I32);

impl From<TeamError> for Failure {
    fn from(error: TeamError) -> Self {
        let status = match &error {
            TeamError::Gone(_) => Status::Gone,
            TeamError::Late { .. } => Status::Late,
            TeamError::Full { .. } => Status::Memory,
            TeamError::Os(os) if os.errno == NO_MEMORY => Status::Memory,
            TeamError::Os(_) | TeamError::Foreign => Status::System,
            TeamError::Plan(_)
            | TeamError::Ranks(_)
            | TeamError::Rank { .. }
            | TeamError::Taken(_)
            | TeamError::Begun
            | TeamError::Length { .. }
            | TeamError::Bytes(_) => Status::Argument,
        };
        Self { status, words: error.to_string() }
    }
}

/// A rank by its number.
#[inline]
fn rank(number: u32) -> Result<Rank, Failure> {
    match u16::try_from(number) {
        Ok(rank) => Ok(Rank(rank)),
        Err(_) => Err(Failure::argument(format!("rank {number}; a team has 1024 ranks at most"))),
    }
}

/// How many ranks a team is to have.
fn size(ranks: u32) -> Result<u16, Failure> {
    u16::try_from(ranks)
        .map_err(|_| Failure::argument(format!("a team of {ranks} ranks; it can have 1 to 1024")))
}

/// # Safety
/// `options` is null or points to options.
unsafe fn settings(options: *const IsochroneTeamOptions) -> Result<Settings, Failure> {
    // SAFETY: the caller vouches for it.
    let Some(options) = (unsafe { options.as_ref() }) else { return Ok(Settings::default()) };
    if options.flags & !LOCKED_FLAGS != 0 || options.reserved != 0 {
        return Err(Failure::argument(
            "options have flags that this library does not know; set what is unused to 0",
        ));
    }
    let bytes = usize::try_from(options.bytes)
        .map_err(|_| Failure::argument("more bytes than the address space holds"))?;
    Ok(Settings {
        bytes: (bytes > 0).then_some(bytes),
        locked: options.flags & LOCKED_FLAGS != 0,
        ..Settings::default()
    })
}

fn boxed(team: Team) -> *mut IsochroneTeam {
    Box::into_raw(Box::new(IsochroneTeam(team)))
}

/// A null pointer where there must be none.
fn null(what: &str) -> Failure {
    Failure::argument(format!("{what} is a null pointer"))
}

/// Makes this rank's end of a team and gives its handle to the caller.
///
/// # Safety
/// `options` is null or points to options, and `team` is null or has room for a handle.
unsafe fn seated(
    options: *const IsochroneTeamOptions,
    team: *mut *mut IsochroneTeam,
    make: impl FnOnce(Settings) -> Result<Team, Failure>,
) -> c_int {
    let seat = || {
        if team.is_null() {
            return Err(null("team"));
        }
        // SAFETY: the caller vouches for the options.
        let made = make(unsafe { settings(options) }?)?;
        // SAFETY: the caller's, and not null.
        unsafe { team.write(boxed(made)) };
        Ok(())
    };
    told(seat())
}

/// A team of threads: `ranks` handles are written to `teams`.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_team_threads(
    ranks: u32,
    options: *const IsochroneTeamOptions,
    teams: *mut *mut IsochroneTeam,
) -> c_int {
    let make = || {
        if teams.is_null() {
            return Err(null("teams"));
        }
        // SAFETY: the caller vouches for the options.
        let settings = unsafe { settings(options) }?;
        for (at, team) in Team::threads(size(ranks)?, &settings)?.into_iter().enumerate() {
            // SAFETY: the caller has room for as many handles as there are ranks.
            unsafe { teams.wrapping_add(at).write(boxed(team)) };
        }
        Ok(())
    };
    told(make())
}

/// Makes a team and joins it.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_team_found(
    ranks: u32,
    me: u32,
    options: *const IsochroneTeamOptions,
    team: *mut *mut IsochroneTeam,
    place: *mut IsochronePlace,
) -> c_int {
    let make = |settings| {
        if place.is_null() {
            return Err(null("place"));
        }
        let (found, at) = Team::found(size(ranks)?, rank(me)?, settings)?;
        let at = IsochronePlace { process: at.process, descriptor: at.descriptor };
        // SAFETY: the caller's, and not null.
        unsafe { place.write(at) };
        Ok(found)
    };
    // SAFETY: the caller vouches for options and team.
    unsafe { seated(options, team, make) }
}

/// Joins a team of another process.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_team_join(
    place: IsochronePlace,
    me: u32,
    options: *const IsochroneTeamOptions,
    team: *mut *mut IsochroneTeam,
) -> c_int {
    let make = |settings| {
        let place = Place { process: place.process, descriptor: place.descriptor };
        Ok(Team::join(place, rank(me)?, settings)?)
    };
    // SAFETY: the caller vouches for options and team.
    unsafe { seated(options, team, make) }
}

/// Does something with a team.
///
/// # Safety
/// `team` is null or a handle of this library that no other thread uses now.
#[inline]
unsafe fn with(
    team: *mut IsochroneTeam,
    work: impl FnOnce(&mut Team) -> Result<(), Failure>,
) -> c_int {
    // SAFETY: the caller vouches for it.
    match unsafe { team.as_mut() } {
        Some(team) => told(work(&mut team.0)),
        None => told(Err(null("team"))),
    }
}

/// Waits until all ranks have come.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_team_await(team: *mut IsochroneTeam, seconds: f64) -> c_int {
    let work = |team: &mut Team| {
        let limit = Duration::try_from_secs_f64(seconds)
            .map_err(|_| Failure::argument(format!("{seconds} is no time to wait, in seconds")))?;
        Ok(team.await_all(limit)?)
    };
    // SAFETY: the caller vouches for the handle.
    unsafe { with(team, work) }
}

/// This handle's rank.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_team_rank(team: *const IsochroneTeam) -> u32 {
    // SAFETY: the caller vouches for the handle.
    unsafe { team.as_ref() }.map_or(u32::MAX, |team| team.0.rank().0.into())
}

/// Ranks of the team.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_team_ranks(team: *const IsochroneTeam) -> u32 {
    // SAFETY: the caller vouches for the handle.
    unsafe { team.as_ref() }.map_or(0, |team| team.0.ranks().into())
}

/// Tells all ranks that this one gives up.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_team_stop(team: *mut IsochroneTeam) -> c_int {
    let work = |team: &mut Team| {
        team.stop();
        Ok(())
    };
    // SAFETY: the caller vouches for the handle.
    unsafe { with(team, work) }
}

/// Leaves the team.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_team_free(team: *mut IsochroneTeam) {
    if !team.is_null() {
        // SAFETY: a handle of this library, which its caller gives up.
        drop(unsafe { Box::from_raw(team) });
    }
}

/// One collective over bytes.
///
/// # Safety
/// As for [`with`], and the buffers are valid for what the collective reads and writes.
#[inline]
unsafe fn call(
    team: *mut IsochroneTeam,
    (kind, root): (Kind, u32),
    (bytes, combine): (usize, Combine),
    (send, receive): (*const c_void, *mut c_void),
) -> c_int {
    let work = |team: &mut Team| {
        let root = rank(root)?;
        let (mut send, mut receive) = (send.cast::<u8>(), receive.cast::<u8>());
        if send.is_null() || receive.is_null() {
            needs_both(kind, bytes, team.rank() == root, (send.is_null(), receive.is_null()))?;
            // What is not touched has some address all the same.
            send = if send.is_null() { receive.cast_const() } else { send };
            receive = if receive.is_null() { send.cast_mut() } else { receive };
            if send.is_null() {
                (send, receive) = (std::ptr::dangling(), std::ptr::dangling_mut());
            }
        }
        // SAFETY: the caller vouches for the buffers.
        Ok(unsafe { team.call(kind, root, bytes, combine, send, receive) }?)
    };
    // SAFETY: the caller vouches for the handle.
    unsafe { with(team, work) }
}

/// Refuses a null pointer where bytes are read or written. `missing` says which of both is null.
#[cold]
fn needs_both(
    kind: Kind,
    bytes: usize,
    at_root: bool,
    missing: (bool, bool),
) -> Result<(), Failure> {
    let (sends, receives) = match kind {
        Kind::Barrier => (false, false),
        Kind::Broadcast | Kind::Allreduce | Kind::Allgather => (true, true),
        Kind::Reduce | Kind::Gather => (true, at_root),
        Kind::Scatter => (at_root, true),
    };
    match missing {
        _ if bytes == 0 => Ok(()),
        (true, _) if sends => Err(null("what is sent")),
        (_, true) if receives => Err(null("where the result goes")),
        _ => Ok(()),
    }
}

/// Bytes and operation of a reduction.
#[inline]
fn reduction(count: usize, element: u32, operation: u32) -> Result<(usize, Combine), Failure> {
    let unknown = |what: &str, number: u32| {
        Failure::argument(format!("{number} is no {what}; isochrone.h names them"))
    };
    let index = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    let element =
        *ELEMENTS.get(index(element)).ok_or_else(|| unknown("type of elements", element))?;
    let reduction =
        *REDUCTIONS.get(index(operation)).ok_or_else(|| unknown("reduction", operation))?;
    let combine = reduction.of(element);
    if combine.is_bitwise() && element.is_float() {
        return Err(Failure::argument("a bitwise reduction of floating-point numbers"));
    }
    Ok((count.saturating_mul(element.bytes() as usize), combine))
}

/// Copies the root's bytes to everybody.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_broadcast(
    team: *mut IsochroneTeam,
    data: *mut c_void,
    bytes: usize,
    root: u32,
) -> c_int {
    // SAFETY: the caller vouches for handle and buffer.
    unsafe { call(team, (Kind::Broadcast, root), (bytes, NOTHING), (data, data)) }
}

/// Returns when everybody has called it.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_barrier(team: *mut IsochroneTeam) -> c_int {
    let none = std::ptr::dangling_mut::<c_void>();
    // SAFETY: the caller vouches for the handle; a barrier moves no bytes.
    unsafe { call(team, (Kind::Barrier, 0), (0, NOTHING), (none, none)) }
}

/// Combines everybody's elements at the root.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_reduce(
    team: *mut IsochroneTeam,
    send: *const c_void,
    receive: *mut c_void,
    count: usize,
    element: u32,
    operation: u32,
    root: u32,
) -> c_int {
    match reduction(count, element, operation) {
        // SAFETY: the caller vouches for handle and buffers.
        Ok(what) => unsafe { call(team, (Kind::Reduce, root), what, (send, receive)) },
        Err(failure) => told(Err(failure)),
    }
}

/// Combines everybody's elements for everybody.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_allreduce(
    team: *mut IsochroneTeam,
    send: *const c_void,
    receive: *mut c_void,
    count: usize,
    element: u32,
    operation: u32,
) -> c_int {
    match reduction(count, element, operation) {
        // SAFETY: the caller vouches for handle and buffers.
        Ok(what) => unsafe { call(team, (Kind::Allreduce, 0), what, (send, receive)) },
        Err(failure) => told(Err(failure)),
    }
}

/// Gives each rank its block of the root's.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_scatter(
    team: *mut IsochroneTeam,
    send: *const c_void,
    receive: *mut c_void,
    bytes: usize,
    root: u32,
) -> c_int {
    // SAFETY: the caller vouches for handle and buffers.
    unsafe { call(team, (Kind::Scatter, root), (bytes, NOTHING), (send, receive)) }
}

/// Puts everybody's block into the root's.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_gather(
    team: *mut IsochroneTeam,
    send: *const c_void,
    receive: *mut c_void,
    bytes: usize,
    root: u32,
) -> c_int {
    // SAFETY: the caller vouches for handle and buffers.
    unsafe { call(team, (Kind::Gather, root), (bytes, NOTHING), (send, receive)) }
}

/// Puts everybody's block into everybody's.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_allgather(
    team: *mut IsochroneTeam,
    send: *const c_void,
    receive: *mut c_void,
    bytes: usize,
) -> c_int {
    // SAFETY: the caller vouches for handle and buffers.
    unsafe { call(team, (Kind::Allgather, 0), (bytes, NOTHING), (send, receive)) }
}
