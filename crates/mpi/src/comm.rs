//! A communicator: how far it is from being done in lines, and how all its ranks agree on that.
//!
//! Every decision here depends on what is the same on all ranks: how many collectives the communicator
//! has seen, and the outcome of an agreement among them. A rank that cannot take part says so in the
//! agreement, and then nobody does.

use crate::abi::{Handle, Mpi};
use crate::config::Config;
use isochrone_cla::live::{Nearness, Place, Settings, Team};
use isochrone_cla::program::Rank;
use std::ffi::{c_int, c_void};
use std::time::Duration;

/// How long a rank waits for the others of its node to open the shared memory.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a communicator is to us.
#[derive(Debug)]
pub(crate) enum State {
    /// Calls seen so far.
    Counting(u32),
    /// All its ranks share memory.
    Inside(Box<Team>),
    /// It spans nodes.
    Across(Box<Across>),
    /// Left to the MPI.
    Refused,
}

/// A communicator over several nodes.
#[derive(Debug)]
pub(crate) struct Across {
    /// The ranks of this node.
    pub(crate) team: Team,
    /// The first ranks of all nodes; on them only.
    pub(crate) leaders: Option<Handle>,
    /// For each rank: the node it is on, and its place there.
    pub(crate) places: Vec<(u16, u16)>,
    /// The node of this rank.
    pub(crate) node: u16,
}

/// One communicator.
#[derive(Debug)]
pub(crate) struct Comm {
    pub(crate) rank: u16,
    pub(crate) size: u16,
    pub(crate) state: State,
}

/// Why a communicator is left to the MPI.
pub(crate) type Why = String;

impl Comm {
    /// A communicator seen for the first time, refused where it is never done in lines.
    pub(crate) fn new(mpi: &Mpi, comm: Handle, config: &Config) -> Self {
        let f = mpi.functions();
        let ask = |function: unsafe extern "C" fn(Handle, *mut c_int) -> c_int| {
            let mut answer = -1;
            // SAFETY: the caller's communicator, which its MPI checks, and a place for the answer.
            let failed = unsafe { function(comm, &raw mut answer) };
            if failed == 0 { answer } else { -1 }
        };
        let inter = ask(f.comm_test_inter);
        let (rank, size) = (ask(f.comm_rank), ask(f.comm_size));
        match (u16::try_from(rank), u16::try_from(size)) {
            (Ok(rank), Ok(size)) if inter == 0 && (size > 1 || config.alone && size == 1) => {
                Self { rank, size, state: State::Counting(0) }
            }
            _ => Self { rank: 0, size: 0, state: State::Refused },
        }
    }
}

/// The smallest of what all ranks of `comm` say.
pub(crate) fn least(mpi: &Mpi, comm: Handle, mine: c_int) -> Option<c_int> {
    let mut all = 0;
    let (mine, place) = ((&raw const mine).cast_mut().cast(), (&raw mut all).cast());
    // SAFETY: one int each, of a communicator on which all ranks make this call now.
    let failed = unsafe { (mpi.functions().allreduce)(mine, place, 1, mpi.int(), mpi.min(), comm) };
    (failed == 0).then_some(all)
}

/// Agrees on what `comm` becomes. All its ranks call this at the same collective, whatever they think
/// themselves: `fit` says whether this one could.
pub(crate) fn agree(
    mpi: &Mpi,
    comm: Handle,
    (rank, size): (u16, u16),
    config: &Config,
    fit: Result<(), &'static str>,
) -> Result<State, Why> {
    let all = least(mpi, comm, c_int::from(fit.is_ok()));
    if all != Some(1) {
        return Err(fit.err().unwrap_or("another rank cannot take part").to_owned());
    }
    let mut node = split(mpi, comm, rank, config);
    let state = node.as_mut().map_err(|why| why.clone()).and_then(|node| {
        let team = team(mpi, *node, config);
        // Whoever has no team says so, and takes part until all know it.
        let joined = least(mpi, comm, c_int::from(team.is_ok()));
        match (joined, team) {
            (Some(1), Ok(team)) if team.ranks() == size => Ok((Some(team), None)),
            (Some(1), Ok(team)) => Ok((None, Some(team))),
            (_, Err(why)) => Err(why),
            _ => Err("another rank cannot open the shared memory".to_owned()),
        }
    });
    // Communicators over nodes and within one are not mixed: a team that is not everybody is so on all
    // nodes, since a node with all ranks is the only one.
    let state = match state {
        Ok((Some(team), _)) => Ok(State::Inside(Box::new(team))),
        Ok((None, Some(team))) => across(mpi, comm, (rank, size), team),
        Ok((None, None)) => Err("nobody".to_owned()),
        Err(why) => Err(why),
    };
    if let Ok(node) = &mut node {
        free(mpi, node);
    }
    state
}

/// The ranks of `comm` on this node.
fn split(mpi: &Mpi, comm: Handle, rank: u16, config: &Config) -> Result<Handle, Why> {
    let f = mpi.functions();
    let mut node: Handle = 0;
    // SAFETY: a collective call that all ranks make now; the result has room for either kind of handle.
    let failed = unsafe {
        (f.comm_split_type)(comm, mpi.shared(), c_int::from(rank), mpi.no_info(), &raw mut node)
    };
    if failed != 0 || mpi.is_null_comm(node) {
        return Err("MPI_Comm_split_type failed".to_owned());
    }
    let Some(ranks) = config.ranks_per_node.filter(|ranks| *ranks > 0) else { return Ok(node) };
    let pretended = c_int::try_from(u32::from(rank) / ranks).unwrap_or(0);
    let mut part: Handle = 0;
    // SAFETY: as above.
    let failed = unsafe { (f.comm_split)(node, pretended, c_int::from(rank), &raw mut part) };
    free(mpi, &mut node);
    if failed == 0 { Ok(part) } else { Err("MPI_Comm_split failed".to_owned()) }
}

pub(crate) fn free(mpi: &Mpi, comm: &mut Handle) {
    // SAFETY: a communicator of our own, which nobody uses any more; all its ranks free it.
    let _freed = unsafe { (mpi.functions().comm_free)(comm) };
}

/// Shared memory of the ranks of `node`. Makes the same calls on all of them, whatever fails.
fn team(mpi: &Mpi, node: Handle, config: &Config) -> Result<Team, Why> {
    let f = mpi.functions();
    let (mut rank, mut size): (c_int, c_int) = (0, 0);
    // SAFETY: a communicator of our own, and a place for the answer.
    unsafe { (f.comm_rank)(node, &raw mut rank) };
    // SAFETY: as above.
    unsafe { (f.comm_size)(node, &raw mut size) };
    let ranks = u16::try_from(size).unwrap_or(0);
    let me = Rank(u16::try_from(rank).unwrap_or(0));
    let mut place = [0_u32; 2];
    let mut found = Err("the first rank of this node made no shared memory".to_owned());
    if me.0 == 0 {
        match Team::found(ranks, me, Settings::default()) {
            Ok((team, Place { process, descriptor })) => {
                place = [process, descriptor];
                found = Ok(team);
            }
            Err(error) => found = Err(error.to_string()),
        }
    }
    let bytes = c_int::try_from(size_of_val(&place)).unwrap_or(0);
    let first = (&raw mut place).cast::<c_void>();
    // SAFETY: all ranks of the node make this call now, each with room for those bytes.
    let failed = unsafe { (f.bcast)(first, bytes, mpi.byte(), 0, node) };
    let [process, descriptor] = place;
    if failed != 0 || process == 0 {
        return found;
    }
    if me.0 != 0 {
        let settings = Settings::default();
        found = Team::join(Place { process, descriptor }, me, settings).map_err(|e| e.to_string());
    }
    // Nobody goes on before all of this node have joined or failed: the first rank's memory is open
    // until then.
    let all = least(mpi, node, c_int::from(found.is_ok()));
    let mut team = found?;
    if all != Some(1) {
        return Err("another rank of this node cannot open the shared memory".to_owned());
    }
    team.await_all(PATIENCE).map_err(|error| error.to_string())?;
    if config.choose_lines {
        let _round_trips =
            team.choose_lines(Nearness::Nearest).map_err(|error| error.to_string())?;
    }
    Ok(team)
}

/// What is needed to work across nodes.
fn across(mpi: &Mpi, comm: Handle, (rank, size): (u16, u16), team: Team) -> Result<State, Why> {
    let f = mpi.functions();
    let leads = team.rank() == Rank(0);
    let mut leaders: Handle = 0;
    let color = if leads { 0 } else { Mpi::UNDEFINED };
    // SAFETY: a collective call that all ranks make now; the result has room for either kind of handle.
    let failed = unsafe { (f.comm_split)(comm, color, c_int::from(rank), &raw mut leaders) };
    if failed != 0 {
        return Err("MPI_Comm_split failed".to_owned());
    }
    // Each rank's place on its node and, from its leader, the node's number among the leaders.
    let mut number: c_int = 0;
    if leads {
        // SAFETY: a communicator of our own, and a place for the answer.
        unsafe { (f.comm_rank)(leaders, &raw mut number) };
    }
    let mut team = team;
    let mut numbers = [number];
    team.broadcast(&mut numbers, Rank(0)).map_err(|error| error.to_string())?;
    let mine = [numbers[0], c_int::from(team.rank().0)];
    let mut all = vec![[0 as c_int; 2]; usize::from(size)];
    let (send, receive) = ((&raw const mine).cast_mut().cast(), all.as_mut_ptr().cast());
    // SAFETY: all ranks make this call now, with two ints each and room for those of all.
    let failed = unsafe { (f.allgather)(send, 2, mpi.int(), receive, 2, mpi.int(), comm) };
    if failed != 0 {
        return Err("MPI_Allgather failed".to_owned());
    }
    let small = |number: c_int| u16::try_from(number).unwrap_or(0);
    let places = all.iter().map(|&[node, place]| (small(node), small(place))).collect::<Vec<_>>();
    let alone = places.iter().all(|&(_, place)| place == 0);
    let mut leaders = leads.then_some(leaders);
    if alone {
        if let Some(leaders) = &mut leaders {
            free(mpi, leaders);
        }
        return Err("no two ranks share a node".to_owned());
    }
    let node = small(numbers[0]);
    Ok(State::Across(Box::new(Across { team, leaders, places, node })))
}
