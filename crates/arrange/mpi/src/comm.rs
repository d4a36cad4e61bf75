//! A communicator: how far it is from being done in lines, and how all its ranks agree on that.
//!
//! Every decision here depends on what is the same on all ranks: how many collectives the communicator
//! has seen, and the outcome of an agreement among them. A rank that cannot take part says so in the
//! agreement, and then nobody does.

use crate::abi::{Handle, Layout, Mpi, Types};
use crate::atlas::distances;
use crate::config::{Config, Counts, launched};
use crate::payload::Scratch;
use crate::why::Why;
use isochrone_cla::choice::RANKS_LEAST;
use isochrone_cla::live::{Crowd, Kind, Nearness, Place, Settings, Team};
use isochrone_cla::program::Rank;
use isochrone_units::CoreId;
use std::ffi::{c_int, c_void};
use std::time::{Duration, Instant};

/// How long ranks choose lines at most.
const CHOOSING: Duration = Duration::from_millis(2);

/// What a communicator is to us.
#[derive(Debug)]
pub(crate) enum State {
    /// Left to the MPI so far; calls since its ranks last agreed on that.
    Counting(u32),
    /// All its ranks share memory.
    Inside(Box<Team>),
    /// It spans nodes.
    Across(Box<Across>),
    /// Left to the MPI.
    Refused,
}

impl State {
    /// The ranks that share memory with this one, where calls are done in lines.
    pub(crate) fn team(&mut self) -> Option<&mut Team> {
        match self {
            Self::Inside(team) => Some(team),
            Self::Across(across) => Some(&mut across.team),
            Self::Counting(_) | Self::Refused => None,
        }
    }
}

/// A communicator over several nodes.
#[derive(Debug)]
pub(crate) struct Across {
    /// The ranks of this node.
    pub(crate) team: Team,
    /// The first ranks of all nodes; on them only.
    pub(crate) leaders: Option<Handle>,
    /// Where each rank is.
    pub(crate) places: Vec<NodePlace>,
    /// The node of this rank.
    pub(crate) node: u16,
}

/// Where a rank of several nodes is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodePlace {
    pub(crate) node: u16,
    /// Among the ranks of that node.
    pub(crate) rank: u16,
}

/// One communicator.
#[derive(Debug)]
pub(crate) struct Comm {
    pub(crate) rank: u16,
    pub(crate) size: u16,
    pub(crate) state: State,
    /// When its first collective came.
    pub(crate) since: Instant,
    pub(crate) scratch: Scratch,
    pub(crate) counts: [Counts; Kind::COUNT],
    /// The type that came last.
    last_type: Option<(Handle, Layout)>,
}

impl Comm {
    /// One whose calls are counted, of so many ranks.
    pub(crate) fn counted(rank: u16, size: u16) -> Self {
        Self {
            rank,
            size,
            state: State::Counting(0),
            since: Instant::now(),
            scratch: Scratch::default(),
            counts: [Counts::default(); Kind::COUNT],
            last_type: None,
        }
    }

    /// Whether its calls are counted, since it may be done in lines later.
    #[inline]
    pub(crate) const fn is_counted(&self) -> bool {
        matches!(self.state, State::Counting(_))
    }

    /// Whether calls on it are done in lines.
    #[inline]
    pub(crate) const fn in_lines(&self) -> bool {
        matches!(self.state, State::Inside(_) | State::Across(_))
    }

    /// How a type lies in memory; of a derived one its bytes alone are known.
    #[inline]
    pub(crate) fn layout(&mut self, mpi: &Mpi, types: &Types, handle: Handle) -> Option<Layout> {
        if let Some((last, layout)) = self.last_type
            && last == handle
        {
            return Some(layout);
        }
        if let Some(layout) = types.named(handle) {
            self.last_type = Some((handle, layout));
            return Some(layout);
        }
        if handle == mpi.null_type() {
            // The function that is asked next would end the program, by the handler of another communicator.
            return None;
        }
        let mut size: c_int = 0;
        // SAFETY: the caller's type, which its MPI checks, and a place for the answer.
        let failed = unsafe { (mpi.functions().type_size)(handle, &raw mut size) };
        let bytes = usize::try_from(size).ok().filter(|_| failed == 0)?;
        Some(Layout { bytes, plain: false, named: false, element: None })
    }

    /// A communicator seen for the first time, and why it is never done in lines, if so.
    pub(crate) fn new(mpi: &Mpi, comm: Handle, config: &Config) -> (Self, Result<(), Why>) {
        let f = mpi.functions();
        let ask = |function: unsafe extern "C" fn(Handle, *mut c_int) -> c_int| {
            let mut answer = -1;
            // SAFETY: the caller's communicator, which its MPI checks, and a place for the answer.
            let failed = unsafe { function(comm, &raw mut answer) };
            if failed == 0 { answer } else { -1 }
        };
        let inter = ask(f.comm_test_inter);
        let (rank, size) = (ask(f.comm_rank), ask(f.comm_size));
        let judged = judged(inter, size, config);
        let small = |number| u16::try_from(number).unwrap_or(0);
        let mut new = Self::counted(small(rank), small(size));
        if judged.is_err() {
            new.state = State::Refused;
        }
        (new, judged)
    }
}

/// Whether a communicator may ever be done in lines: what the MPI says of it, the same on all its ranks.
fn judged(inter: c_int, size: c_int, config: &Config) -> Result<(), Why> {
    match (inter, size) {
        (0, 1) if !config.alone => Err(Why::Alone),
        (0, 1..=0xffff) => Ok(()),
        (0, 0x1_0000..) => Err(Why::TooManyRanks),
        (0, _) | (..0, _) => Err(Why::Failed),
        _ => Err(Why::Inter),
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

/// Who this process is in a communicator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seat {
    pub(crate) rank: u16,
    /// How many ranks there are.
    pub(crate) size: u16,
}

/// What a communicator becomes that is done in lines, and whether this rank chose its lines.
pub(crate) type Settled = (State, bool);

/// Agrees on what `comm` becomes. All its ranks call this at the same collective, whatever they think
/// themselves: `fit` says whether this one could.
///
/// # Errors
/// Why it is left to the MPI: what all ranks agree on, and in words what this one knows of it.
pub(crate) fn agree(
    mpi: &Mpi,
    comm: Handle,
    seat: Seat,
    config: &Config,
    fit: Result<(), Why>,
) -> Result<Settled, (Why, String)> {
    let known = |why: Why| (why, why.words().to_owned());
    Why::agreed(least(mpi, comm, Why::said(fit))).map_err(known)?;
    let number = config.number();
    let (smallest, greatest) = (least(mpi, comm, number), least(mpi, comm, -number));
    if smallest.is_none() || greatest.map(|number| -number) != smallest {
        return Err(known(Why::Told));
    }
    let team = match split(mpi, comm, seat.rank, config) {
        Ok(mut node) => {
            let team = team(mpi, node, config);
            free(mpi, &mut node);
            team.map_err(|words| (Why::NoMemory, format!("{}: {words}", Why::NoMemory.words())))
        }
        Err(why) => Err(known(why)),
    };
    // Whoever has no team says so, and takes part until all know it. Nobody goes on before all have joined or
    // failed: the first rank's memory is open until then.
    let mine = team.as_ref().map(drop).map_err(|&(why, _)| why);
    let all = Why::agreed(least(mpi, comm, Why::said(mine)));
    let mut team = match (all, team) {
        (Ok(()), team) => team?,
        (Err(agreed), Err((why, words))) if why == agreed => return Err((why, words)),
        (Err(agreed), _) => return Err(known(agreed)),
    };
    if config.costs_before > 0 {
        // All have come, so all see the cores on which any of them may run.
        let fit = if team.has_cores() { Ok(()) } else { Err(Why::Crowded) };
        Why::agreed(least(mpi, comm, Why::said(fit))).map_err(known)?;
    }
    let mut chosen = false;
    if config.choose_lines {
        // A rank that ended meanwhile is an error of the calls that follow.
        let trips = team.choose_lines(Nearness::Nearest, Some(CHOOSING)).unwrap_or_default();
        chosen = trips.iter().any(|trip| trip.is_finite());
    }
    // Communicators over nodes and within one are not mixed: a team that is not everybody is so on all
    // nodes, since a node with all ranks is the only one.
    let state = if team.ranks() == seat.size {
        State::Inside(Box::new(team))
    } else {
        across(mpi, comm, seat, team)?
    };
    Ok((state, chosen))
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
        return Err(Why::Failed);
    }
    let Some(ranks) = config.ranks_per_node.filter(|ranks| *ranks > 0) else { return Ok(node) };
    let pretended = c_int::try_from(u32::from(rank) / ranks).unwrap_or(0);
    let mut part: Handle = 0;
    // SAFETY: as above.
    let failed = unsafe { (f.comm_split)(node, pretended, c_int::from(rank), &raw mut part) };
    free(mpi, &mut node);
    if failed == 0 { Ok(part) } else { Err(Why::Failed) }
}

pub(crate) fn free(mpi: &Mpi, comm: &mut Handle) {
    // SAFETY: a communicator of our own, which nobody uses any more; all its ranks free it.
    let _freed = unsafe { (mpi.functions().comm_free)(comm) };
}

/// Shared memory of the ranks of `node`. Makes the same calls on all of them, whatever fails.
fn team(mpi: &Mpi, node: Handle, config: &Config) -> Result<Team, String> {
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
    let settings = Settings { crowd: Some(crowd(mpi)), ..Settings::default() };
    if me.0 == 0 {
        // With fewer ranks there is no shape to choose.
        let distances = (ranks >= RANKS_LEAST).then(|| distances(config)).flatten();
        match Team::found(ranks, me, Settings { distances, ..settings.clone() }) {
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
        found = Team::join(Place { process, descriptor }, me, settings).map_err(|e| e.to_string());
    }
    let pretended = config.cores.as_ref().and_then(|cores| cores.get(me.index()));
    if let (Ok(team), Some(core)) = (&mut found, pretended) {
        team.runs_on(&[CoreId(*core)]);
    }
    found
}

/// The ranks of this job on this node, and the cores that the node has. Where the launcher does not say how
/// many there are, it may be all of the job.
pub(crate) fn crowd(mpi: &Mpi) -> Crowd {
    let mut all: c_int = 0;
    // SAFETY: the MPI is initialised, and the answer has room.
    unsafe { (mpi.functions().comm_size)(mpi.world(), &raw mut all) };
    let ranks = launched(&["OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"]);
    let ranks = ranks.or_else(|| u32::try_from(all).ok()).unwrap_or(u32::MAX);
    // SAFETY: sysconf(3) takes a number and returns one.
    let cores = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    Crowd { ranks: ranks as usize, cores: usize::try_from(cores).unwrap_or(0) }
}

/// What is needed to work across nodes.
fn across(mpi: &Mpi, comm: Handle, seat: Seat, team: Team) -> Result<State, (Why, String)> {
    let refused = |why: Why| (why, why.words().to_owned());
    let f = mpi.functions();
    let leads = team.rank() == Rank(0);
    let mut leaders: Handle = 0;
    let color = if leads { 0 } else { Mpi::UNDEFINED };
    // SAFETY: a collective call that all ranks make now; the result has room for either kind of handle.
    let failed = unsafe { (f.comm_split)(comm, color, c_int::from(seat.rank), &raw mut leaders) };
    if failed != 0 {
        return Err(refused(Why::Failed));
    }
    // Each rank's place on its node and, from its leader, the node's number among the leaders.
    let mut number: c_int = 0;
    if leads {
        // SAFETY: a communicator of our own, and a place for the answer.
        unsafe { (f.comm_rank)(leaders, &raw mut number) };
    }
    let mut team = team;
    let mut numbers = [number];
    team.broadcast(&mut numbers, Rank(0)).map_err(|error| (Why::Failed, error.to_string()))?;
    let mine = [numbers[0], c_int::from(team.rank().0)];
    let mut all = vec![[0 as c_int; 2]; usize::from(seat.size)];
    let (send, receive) = ((&raw const mine).cast_mut().cast(), all.as_mut_ptr().cast());
    // SAFETY: all ranks make this call now, with two ints each and room for those of all.
    let failed = unsafe { (f.allgather)(send, 2, mpi.int(), receive, 2, mpi.int(), comm) };
    if failed != 0 {
        return Err(refused(Why::Failed));
    }
    let small = |number: c_int| u16::try_from(number).unwrap_or(0);
    let place = |&[node, rank]: &[c_int; 2]| NodePlace { node: small(node), rank: small(rank) };
    let places: Vec<NodePlace> = all.iter().map(place).collect();
    let alone = places.iter().all(|place| place.rank == 0);
    let mut leaders = leads.then_some(leaders);
    if alone {
        if let Some(leaders) = &mut leaders {
            free(mpi, leaders);
        }
        return Err(refused(Why::Scattered));
    }
    let node = small(numbers[0]);
    Ok(State::Across(Box::new(Across { team, leaders, places, node })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_communicator_is_decides_first() {
        let config = Config::default();
        let judged = |inter, size| judged(inter, size, &config);
        assert_eq!(judged(0, 2), Ok(()));
        assert_eq!(judged(0, 65_535), Ok(()));
        assert_eq!(judged(0, 65_536), Err(Why::TooManyRanks));
        assert_eq!(judged(0, 1), Err(Why::Alone));
        assert_eq!(judged(1, 2), Err(Why::Inter));
        assert_eq!(judged(-1, 2), Err(Why::Failed));
        let alone = Config { alone: true, ..config.clone() };
        assert_eq!(super::judged(0, 1, &alone), Ok(()));
    }
}
