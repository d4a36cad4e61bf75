//! Who resolves the faults of a process: the threads that have them, by a signal, or threads of ours, while those that
//! have one sleep in the kernel.
//!
//! The first takes a quarter to a half of the time, and asks something of the program: no thread blocks `SIGBUS`, and
//! nobody puts another handler in the place of ours. The second asks nothing.

use isochrone_os::OsError;
use isochrone_os::affinity::CoreSet;
use isochrone_os::signal::Caught;

use super::blocking::Server;
use super::check::Mode;
use super::config::Tables;
use super::context::Context;
use super::handler::{Guests, Resolving, catch};
use super::process::Process;
use crate::names::Actor;

/// Faults of threads that are no workers which are resolved at once: each needs buffers of its own. More than cores,
/// since some wait for the far tier.
const GUESTS: std::ops::RangeInclusive<usize> = 4..=16;
/// The same of a worker that is a process, which has few threads beside its own.
const GUESTS_OF_A_WORKER: usize = 2;
/// Threads that resolve faults in one process at most.
const SERVERS_MOST: usize = 8;

/// Faults of this process are resolved as long as the value lives.
#[derive(Debug)]
pub(super) enum Serving<'t> {
    /// By whoever has them.
    Signal { _guests: Box<Guests<'t>>, _caught: Caught },
    /// By threads of ours.
    Threads { _servers: Vec<Server<'t>> },
}

impl<'t> Serving<'t> {
    /// Begins, for the process that this worker is in. The team has claimed its faults ([`super::handler::claim`]).
    ///
    /// # Errors
    /// [`OsError`] where there is no memory for buffers, or no thread can be made.
    pub(super) fn start(process: &'t Process, mode: Mode, worker: u16) -> Result<Self, OsError> {
        let cores = CoreSet::of_this_thread().map_or(1, |cores| cores.iter().count());
        let shared = process.config.tables == Tables::Shared;
        let context = || Context::new(process, Actor(worker), u32::from(worker));
        match mode {
            Mode::Signal => {
                let most = (2 * cores).clamp(*GUESTS.start(), *GUESTS.end());
                let guests = if shared { most } else { GUESTS_OF_A_WORKER };
                let guests = (0..guests).map(|_| context()).collect::<Result<Vec<_>, _>>()?;
                Ok(Self::Signal { _caught: catch()?, _guests: Guests::serve(guests)? })
            }
            Mode::Blocking => {
                let servers = if shared { cores.min(SERVERS_MOST) } else { 1 };
                // SAFETY: servers are part of this value, which whoever makes it drops, and so joins their threads,
                // before it lets the process go.
                let server = |_| unsafe { Server::start(context()?) };
                Ok(Self::Threads {
                    _servers: (0..servers.max(1)).map(server).collect::<Result<_, _>>()?,
                })
            }
        }
    }
}

/// What a worker's own thread needs for its own faults, if it resolves them.
pub(super) fn own<'c>(
    context: &'c Context<'c>,
    mode: Mode,
) -> Result<Option<Resolving<'c>>, OsError> {
    (mode == Mode::Signal).then(|| Resolving::start(context)).transpose()
}
