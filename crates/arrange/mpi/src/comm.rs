//! A communicator: how far it is from being done in lines, and how all its ranks agree on that.
//!
//! Every decision here depends on what is the same on all ranks: how many collectives the communicator
//! has seen, and the outcome of an agreement among them. A rank that cannot take part says so in the
//! agreement, and then nobody does.

use crate::abi::{Class, Handle, Layout, Mpi, Types};
use crate::among::{all, free, least};
use crate::arenas::{Arenas, Offer, Told};
use crate::atlas::{distances, look_cost};
use crate::config::{Config, launched};
use crate::leaders::Leaders;
use crate::limits::{self, Beyond};
use crate::payload::Scratch;
use crate::tally::Tally;
use crate::terms::{Terms, numbers, of_numbers};
use crate::watched::Watched;
use crate::why::Why;
use crate::worth::Counting;
use isochrone_cla::choice::RANKS_LEAST;
use isochrone_cla::live::{
    Arena, Crowd, Kind, Nearness, Place, Settings, Team, TeamError, cycle_ns,
};
use isochrone_cla::program::Rank;
use isochrone_units::CoreId;
use std::ffi::{c_int, c_void};
use std::sync::Arc;
use std::time::Duration;

/// How long ranks choose lines at most.
const CHOOSING: Duration = Duration::from_millis(2);

/// What a communicator is to us.
#[derive(Debug)]
pub(crate) enum State {
    /// Left to the MPI so far.
    Counting(Counting),
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
    /// Who speaks for the nodes.
    pub(crate) leaders: Leaders,
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
    /// Whether all its ranks are of one group.
    pub(crate) intra: bool,
    pub(crate) state: State,
    pub(crate) scratch: Scratch,
    pub(crate) tallies: [Tally; Kind::COUNT],
    /// What it would be, where the job is only watched.
    pub(crate) watched: Option<Watched>,
    /// Bytes of a call that is the MPI's, if it came to that.
    pub(crate) asked: Option<usize>,
    /// Bytes of each collective that go through lines at most, as all its ranks hold.
    pub(crate) bytes_max: [usize; Kind::COUNT],
    /// The type that came last.
    last_type: Option<(Handle, Layout)>,
}

impl Comm {
    /// One whose calls are counted, of so many ranks.
    pub(crate) fn counted(rank: u16, size: u16, config: &Config) -> Self {
        Self {
            rank,
            size,
            intra: true,
            state: State::Counting(Counting::new(config)),
            scratch: Scratch::default(),
            tallies: [Tally::default(); Kind::COUNT],
            watched: config.watches.then(|| Watched::Counting(Counting::new(config))),
            asked: None,
            bytes_max: [config.bytes_max; Kind::COUNT],
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

    /// Whether a call of so many bytes is copied once.
    #[inline]
    pub(crate) fn is_single(&self, kind: Kind, bytes: usize) -> bool {
        matches!(&self.state, State::Inside(team) if team.is_single(kind, bytes))
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
        Some(Layout { bytes, plain: false, named: false, element: None, class: Class::Other })
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
        let mut new = Self::counted(small(rank), small(size), config);
        new.intra = inter == 0;
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

/// Who this process is in a communicator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seat {
    pub(crate) rank: u16,
    /// How many ranks there are.
    pub(crate) size: u16,
}

/// What a communicator becomes that is done in lines.
#[derive(Debug)]
pub(crate) struct Settled {
    pub(crate) state: State,
    /// Whether lines take long between its ranks, as all of them hold.
    pub(crate) far: bool,
    /// Bytes of each collective that go through lines at most.
    pub(crate) bytes_max: [usize; Kind::COUNT],
    /// Whether this rank chose its lines.
    pub(crate) chosen: bool,
    /// Whether shared memory was made for it.
    pub(crate) made: bool,
}

/// Why a communicator stays the MPI's.
#[derive(Debug)]
pub(crate) enum Left {
    /// For good: what all ranks agree on, in words, and what this one knows of it.
    Refused(String),
    /// Until its calls would have saved so many ns.
    Until(u64),
}

impl From<Why> for Left {
    fn from(why: Why) -> Self {
        Self::Refused(why.words().to_owned())
    }
}

/// What this process brings to an agreement.
#[derive(Debug)]
pub(crate) struct Mine<'a> {
    pub(crate) config: &'a Config,
    pub(crate) arenas: &'a Arenas,
    pub(crate) crowd: Crowd,
    /// Whether it could take part.
    pub(crate) fit: Result<(), Why>,
    /// What calls were expected to save so far, ns: the same on all ranks.
    pub(crate) saves: u64,
    /// What making shared memory costs, us. The first rank's counts.
    pub(crate) cost_us: u64,
}

/// Agrees on what `comm` becomes. All its ranks call this at the same collective, whatever they think
/// themselves. Where all of them share an arena that takes two allreduces of the MPI and no system call.
pub(crate) fn agree(mpi: &Mpi, comm: Handle, seat: Seat, mine: &Mine<'_>) -> Result<Settled, Left> {
    let mut terms = Terms::new(mine.fit, mine.config.number());
    let mut offer = None;
    if seat.rank == 0 {
        // Shapes that an atlas chooses are worth a look at it, which is part of what making memory costs.
        let at_hand = seat.size < RANKS_LEAST || look_cost(mine.config).is_zero();
        if mine.fit.is_ok() && at_hand {
            offer = mine.arenas.offer(seat.size, mine.chooser(seat.size));
        }
        terms = terms.of_first(mine.cost_us, offer.as_ref().map(Offer::told));
    }
    let all = least(mpi, comm, terms.0).map(Terms).ok_or(Why::Failed);
    let agreed = all.and_then(|all| all.agreed().map(|()| all));
    let told = agreed.ok().and_then(|all| all.offer());
    if let Some(joined) = told.and_then(|told| mine.within(mpi, comm, seat, told)) {
        let Joined { mut team, far } = joined.map_err(Left::Refused)?;
        let bytes_max = mine.limited(mpi, &mut team, far);
        let state = State::Inside(Box::new(team));
        return Ok(Settled { state, far, bytes_max, chosen: false, made: false });
    }
    if let Some(offer) = offer {
        offer.back();
    }
    let due = agreed?.cost_us().saturating_mul(1000);
    if mine.saves < due {
        return Err(Left::Until(due));
    }
    made(mpi, comm, seat, mine)
}

/// A team in memory that its ranks share.
struct Joined {
    team: Team,
    /// Whether lines take long between its ranks, as all of them hold.
    far: bool,
}

impl Mine<'_> {
    /// Bytes of each collective that go through lines at most. With more they are copied once from now on, where the
    /// ranks may and nobody says from how many on.
    fn limited(&self, mpi: &Mpi, team: &mut Team, far: bool) -> [usize; Kind::COUNT] {
        let once = self.config.single_copy_auto && team.reach() == Some(true);
        let beyond = Beyond { once, mpi_once: mpi.copies_once() };
        let most = limits::most(far, beyond, self.config.bytes_max);
        if once {
            team.copy_once_from(|kind| most[kind as usize] + 1);
        }
        most
    }

    /// Chooses lines; whether this rank did, and whether all hold that lines take long between them.
    fn measure(&self, team: &mut Team) -> (bool, bool) {
        // A rank that ended meanwhile is an error of the calls that follow.
        let choose = || team.choose_lines(Nearness::Nearest, Some(CHOOSING)).unwrap_or_default();
        let (trips, cycle_ns) = cycle_ns(choose);
        let mut far = [u64::from(limits::are_far(&trips, cycle_ns))];
        // As above.
        let _said = team.broadcast(&mut far, Rank(0));
        (trips.iter().any(|trip| trip.is_finite()), far == [1])
    }

    /// What all teams of this process are given.
    fn settings(&self, me: Rank, ranks: u16) -> Settings {
        // With fewer ranks there is no shape to choose.
        let chooses = me.0 == 0 && ranks >= RANKS_LEAST;
        let distances = chooses.then(|| distances(self.config)).flatten();
        let single_copy_bytes = self.config.single_copy;
        let crowd = Some(self.crowd);
        Settings { crowd, distances, single_copy_bytes, ..Settings::default() }
    }

    /// Who chooses shapes, as the first rank knows it.
    fn chooser(&self, ranks: u16) -> Option<Rank> {
        (ranks >= RANKS_LEAST && distances(self.config).is_some()).then_some(Rank(0))
    }

    /// A team in the piece that the first rank of `comm` took; none where not all have the arena.
    fn within(
        &self,
        mpi: &Mpi,
        comm: Handle,
        seat: Seat,
        told: Told,
    ) -> Option<Result<Joined, String>> {
        let arena = self.arenas.find(told.number);
        let ready = arena.filter(|arena| arena.is_ready(told.piece, seat.size));
        // Where another thread of theirs has not come so far yet, all hold what the rest of them know.
        let far = ready.as_ref().is_some_and(|arena| arena.is_far());
        let [together, near] = least(mpi, comm, [ready.is_some().into(), (!far).into()])?;
        let (arena, far) = (ready.filter(|_| together == 1)?, near == 0);
        let me = Rank(seat.rank);
        let mut team =
            Team::within(&arena, told.piece, seat.size, me, self.settings(me, seat.size));
        let pretended = self.config.cores.as_ref().and_then(|cores| cores.get(me.index()));
        if let (Ok(team), Some(core)) = (&mut team, pretended) {
            team.runs_on(&[CoreId(*core)]);
        }
        Some(team.map(|team| Joined { team, far }).map_err(|error| error.to_string()))
    }
}

/// Makes shared memory for `comm`, or finds that its ranks of one node have it.
fn made(mpi: &Mpi, comm: Handle, seat: Seat, mine: &Mine<'_>) -> Result<Settled, Left> {
    let team = match split(mpi, comm, seat.rank, mine.config) {
        Ok(mut node) => {
            let team = team(mpi, node, mine);
            free(mpi, &mut node);
            team
        }
        Err(why) => Err((why, None)),
    };
    // Whoever has no team says so, and takes part until all know it.
    let fit = team.as_ref().map(drop).map_err(|&(why, _)| why);
    let agreed = least(mpi, comm, [Why::said(fit)]).map(|[least]| least);
    let (Joined { mut team, mut far }, fresh) = match (Why::agreed(agreed), team) {
        (Ok(()), Ok(made)) => made,
        (Err(agreed), Err((why, Some(words)))) if why == agreed => {
            return Err(Left::Refused(format!("{}: {words}", why.words())));
        }
        (agreed, _) => return Err(agreed.err().unwrap_or(Why::NoMemory).into()),
    };
    let mut chosen = false;
    if let Some(arena) = fresh {
        if mine.config.choose_lines {
            (chosen, far) = mine.measure(&mut team);
        }
        far = mine.config.lines_far.unwrap_or(far);
        arena.note_far(far);
        if mine.config.single_copy.is_some() || mine.config.single_copy_auto {
            // As above.
            let _reach = team.try_reach();
        }
    }
    // Communicators over nodes and within one are not mixed: a team that is not everybody is so on all
    // nodes, since a node with all ranks is the only one.
    if team.ranks() == seat.size {
        let bytes_max = mine.limited(mpi, &mut team, far);
        let state = State::Inside(Box::new(team));
        return Ok(Settled { state, far, bytes_max, chosen, made: true });
    }
    // Ranks of another node may hold something else of theirs.
    let bytes_max = [mine.config.bytes_max; Kind::COUNT];
    let state = across(mpi, comm, seat, team, mine.config.leaders)?;
    Ok(Settled { state, far, bytes_max, chosen, made: true })
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

/// Memory that was made now.
type Fresh = Option<Arc<Arena>>;

/// A team of the ranks of `node`, and its memory if that was made now. Makes the same calls on all of them, whatever
/// fails; what this rank alone knows of that is words.
fn team(
    mpi: &Mpi,
    node: Handle,
    mine: &Mine<'_>,
) -> Result<(Joined, Fresh), (Why, Option<String>)> {
    let f = mpi.functions();
    let (mut rank, mut size): (c_int, c_int) = (0, 0);
    // SAFETY: a communicator of our own, and a place for the answer.
    unsafe { (f.comm_rank)(node, &raw mut rank) };
    // SAFETY: as above.
    unsafe { (f.comm_size)(node, &raw mut size) };
    let small = |number| u16::try_from(number).unwrap_or(0);
    let seat = Seat { rank: small(rank), size: small(size) };
    let first = seat.rank == 0;
    let chooser = if first { mine.chooser(seat.size) } else { None };
    let offer = first.then(|| mine.arenas.offer(seat.size, chooser)).flatten();
    if let Some(team) = offered(mpi, node, seat, mine, offer)? {
        return Ok((team, None));
    }
    let arena = arena(mpi, node, first, mine);
    if !all(mpi, node, arena.is_ok()) {
        return Err((Why::NoMemory, arena.err()));
    }
    let arena = arena.map_err(|words| (Why::NoMemory, Some(words)))?;
    mine.arenas.add(Arc::clone(&arena));
    // All have come, so all see the same.
    if mine.config.costs_before > 0 && !arena.has_cores() {
        return Err((Why::Crowded, None));
    }
    let offer = first.then(|| Offer::of(Arc::clone(&arena), seat.size, chooser)).flatten();
    let team = offered(mpi, node, seat, mine, offer)?;
    team.map(|team| (team, Some(arena))).ok_or((Why::NoMemory, None))
}

/// A team in the piece that the first rank of `node` offers, if it does and all have the arena.
fn offered(
    mpi: &Mpi,
    node: Handle,
    seat: Seat,
    mine: &Mine<'_>,
    offer: Option<Offer>,
) -> Result<Option<Joined>, (Why, Option<String>)> {
    let mut words = offer.as_ref().map_or([0; 4], |offer| numbers(offer.told()));
    let told = tell(mpi, node, &mut words).then(|| of_numbers(words)).flatten();
    match told.and_then(|told| mine.within(mpi, node, seat, told)) {
        Some(Ok(team)) => Ok(Some(team)),
        Some(Err(words)) => Err((Why::NoMemory, Some(words))),
        None => {
            if let Some(offer) = offer {
                offer.back();
            }
            Ok(None)
        }
    }
}

/// Tells numbers of the first rank of `node` to the others.
fn tell<const N: usize>(mpi: &Mpi, node: Handle, numbers: &mut [c_int; N]) -> bool {
    let (count, first) = (c_int::try_from(N).unwrap_or(0), numbers.as_mut_ptr().cast::<c_void>());
    // SAFETY: all ranks of the node make this call now, each with room for so many ints.
    unsafe { (mpi.functions().bcast)(first, count, mpi.int(), 0, node) == 0 }
}

/// New memory of the ranks of `node`: its first rank makes it, and the others find it there.
fn arena(mpi: &Mpi, node: Handle, first: bool, mine: &Mine<'_>) -> Result<Arc<Arena>, String> {
    let said = |error: TeamError| error.to_string();
    let mut made = Err("the first rank of this node made no shared memory".to_owned());
    let mut place = [0_u32; 2];
    if mine.arenas.is_full() {
        made = Err(Why::Many.words().to_owned());
    } else if first {
        made = Arena::create().map_err(said);
    }
    if let (true, Ok(arena)) = (first, &made) {
        let Place { process, descriptor } = arena.place();
        place = [process, descriptor];
    }
    let mut numbers = place.map(u32::cast_signed);
    if !tell(mpi, node, &mut numbers) || numbers[0] == 0 || first || mine.arenas.is_full() {
        return made;
    }
    let [process, descriptor] = numbers.map(c_int::cast_unsigned);
    Arena::join(Place { process, descriptor }).map_err(said)
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

/// What is needed to work across nodes, with so many leaders of each.
fn across(
    mpi: &Mpi,
    comm: Handle,
    seat: Seat,
    team: Team,
    leaders_wanted: u16,
) -> Result<State, Left> {
    let f = mpi.functions();
    let leads = team.rank() == Rank(0);
    let mut leaders: Handle = 0;
    let color = if leads { 0 } else { Mpi::UNDEFINED };
    // SAFETY: a collective call that all ranks make now; the result has room for either kind of handle.
    let failed = unsafe { (f.comm_split)(comm, color, c_int::from(seat.rank), &raw mut leaders) };
    if failed != 0 {
        return Err(Why::Failed.into());
    }
    // Each rank's place on its node and, from its leader, the node's number among the leaders.
    let mut number: c_int = 0;
    if leads {
        // SAFETY: a communicator of our own, and a place for the answer.
        unsafe { (f.comm_rank)(leaders, &raw mut number) };
    }
    let mut team = team;
    let mut numbers = [number];
    team.broadcast(&mut numbers, Rank(0)).map_err(|error| Left::Refused(error.to_string()))?;
    let mine = [numbers[0], c_int::from(team.rank().0)];
    let mut all = vec![[0 as c_int; 2]; usize::from(seat.size)];
    let (send, receive) = ((&raw const mine).cast_mut().cast(), all.as_mut_ptr().cast());
    // SAFETY: all ranks make this call now, with two ints each and room for those of all.
    let failed = unsafe { (f.allgather)(send, 2, mpi.int(), receive, 2, mpi.int(), comm) };
    if failed != 0 {
        return Err(Why::Failed.into());
    }
    let small = |number: c_int| u16::try_from(number).unwrap_or(0);
    let place = |&[node, rank]: &[c_int; 2]| NodePlace { node: small(node), rank: small(rank) };
    let places: Vec<NodePlace> = all.iter().map(place).collect();
    let alone = places.iter().all(|place| place.rank == 0);
    let mut leaders = Leaders::first(team.ranks(), leads.then_some(leaders));
    if alone {
        leaders.free(mpi);
        return Err(Why::Scattered.into());
    }
    let node = small(numbers[0]);
    leaders.add(mpi, comm, team.rank(), node, leaders_wanted)?;
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
