//! Teams: how one is made, joined, waited for and left.

use crate::sized::{OfC, read};
use crate::status::{Failure, Status, note, told};
use isochrone_cla::choice::RANKS_LEAST;
use isochrone_cla::live::{Kind, Place, Settings, Team, TeamError};
use isochrone_cla::program::Rank;
use isochrone_units::CoreId;
use std::ffi::{CStr, c_char, c_int};
use std::time::Duration;

/// One rank of a team, `isochrone_team` in C.
#[derive(Debug)]
pub struct IsochroneTeam(Team);

/// How a team is set up, `isochrone_team_options` in C.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct IsochroneTeamOptions {
    /// Bytes of this struct, or 0.
    pub size: u64,
    /// Bytes of shared memory, or 0.
    pub bytes: u64,
    /// 0, or [`LOCKED_FLAGS`].
    pub flags: u32,
    /// Must be 0.
    pub reserved_word: u32,
    /// Must be zeros.
    pub reserved: [u64; 2],
}

// SAFETY: numbers only, without padding.
unsafe impl OfC for IsochroneTeamOptions {
    const FIRST: usize = size_of::<Self>();
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
            | TeamError::Unlike { .. }
            | TeamError::Apart
            | TeamError::Ahead
            | TeamError::Elsewhere
            | TeamError::Bytes(_) => Status::Argument,
        };
        Self { status, words: error.to_string() }
    }
}

/// A rank by its number.
#[inline]
pub(crate) fn rank(number: u32) -> Result<Rank, Failure> {
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
    let options = unsafe { read(options) }?;
    if options.flags & !LOCKED_FLAGS != 0
        || (options.reserved_word, options.reserved) != (0, [0; 2])
    {
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

/// The same for the rank that makes a team: with what is known of the machine, where there is a shape to choose.
/// Where an atlas cannot be used, the words say why, and the team goes by the rule without distances.
fn founding(settings: Settings, ranks: u16) -> Settings {
    if ranks < RANKS_LEAST {
        return settings;
    }
    let distances = crate::atlas::distances().unwrap_or_else(|words| {
        note(&words);
        None
    });
    Settings { distances, ..settings }
}

fn boxed(team: Team) -> *mut IsochroneTeam {
    Box::into_raw(Box::new(IsochroneTeam(team)))
}

/// A null pointer where there must be none.
pub(crate) fn null(what: &str) -> Failure {
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
        let ranks = size(ranks)?;
        let settings = founding(settings, ranks);
        for (at, team) in Team::threads(ranks, &settings)?.into_iter().enumerate() {
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
        let ranks = size(ranks)?;
        let (found, at) = Team::found(ranks, rank(me)?, founding(settings, ranks))?;
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
pub(crate) unsafe fn with(
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

/// Says on which cores this rank runs.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_team_cores(
    team: *mut IsochroneTeam,
    cores: *const u32,
    count: usize,
) -> c_int {
    let work = |team: &mut Team| {
        if cores.is_null() || count == 0 {
            return Err(Failure::argument("a rank runs on one core at least"));
        }
        // SAFETY: the caller vouches for as many numbers.
        let numbers = unsafe { std::slice::from_raw_parts(cores, count) };
        let core = |number: &u32| {
            let known = u16::try_from(*number).map(CoreId);
            known.map_err(|_| Failure::argument(format!("core {number}; numbers end at 65535")))
        };
        team.runs_on(&numbers.iter().map(core).collect::<Result<Vec<_>, _>>()?);
        Ok(())
    };
    // SAFETY: the caller vouches for the handle.
    unsafe { with(team, work) }
}

/// The collective of this name.
///
/// # Safety
/// `name` is null or a text of C.
unsafe fn kind(name: *const c_char) -> Result<Kind, Failure> {
    if name.is_null() {
        return Err(null("collective"));
    }
    // SAFETY: the caller vouches for it, and it is not null.
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
    let known = Kind::ALL.into_iter().find(|kind| kind.name() == name);
    known.ok_or_else(|| {
        let names = Kind::ALL.map(Kind::name).join(", ");
        Failure::argument(format!("no collective is called {name}; there are {names}"))
    })
}

/// How the team does such calls, in words.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_team_plan(
    team: *mut IsochroneTeam,
    collective: *const c_char,
    root: u32,
    bytes: usize,
    words: *mut c_char,
    room: usize,
) -> c_int {
    let work = |team: &mut Team| {
        if words.is_null() || room == 0 {
            return Err(Failure::argument("there is no room for words"));
        }
        // SAFETY: the caller vouches for the name.
        let kind = unsafe { kind(collective) }?;
        let (root, ranks) = (rank(root)?, team.ranks());
        if root.0 >= ranks {
            return Err(TeamError::Rank { rank: root, ranks }.into());
        }
        let plan = team.plan(kind, root, bytes)?;
        let mut text = plan.options().to_string().into_bytes();
        text.truncate(room - 1);
        text.push(0);
        // SAFETY: the caller has so much room, and the text fits it.
        unsafe { std::ptr::copy_nonoverlapping(text.as_ptr().cast(), words, text.len()) };
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
