//! All that this process knows: the MPI, its communicators, what was counted.
//!
//! Tables of types and operations are made once. What belongs to a communicator is changed by one thread at a time, as
//! MPI lets a program call its collectives; what is left is behind a lock that no call in lines takes.

use crate::abi::{Handle, Mpi, Stranger, Types};
use crate::arenas::Arenas;
use crate::atlas::{look_cost, outcome};
use crate::comm::{self, Comm, Left, Mine, Seat, Settled, State};
use crate::config::{Config, Counts, Report, launched, refuse};
use crate::payload::packs;
use crate::places::{Inside, Place, Places};
use crate::tally::{ByMpi, Tally};
use crate::watched::{SeenCall, Watched, Would};
use crate::why::Why;
use crate::worth::{Counting, PIECE_NS};
use isochrone_cla::choice::RANKS_LEAST;
use isochrone_cla::live::{Crowd, Kind};
use std::collections::HashMap;
use std::ffi::{CStr, c_int, c_void};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// The MPI of this process, once a call has come.
static MPI: OnceLock<Result<Mpi, Stranger>> = OnceLock::new();
/// Everything else.
static WORLD: OnceLock<World> = OnceLock::new();

/// Runs when the library is loaded: a process with one thread is registered at once, one with several, as it
/// is when a communicator is taken over, waits 10 ms and more for the kernel's other cores.
#[used]
#[unsafe(link_section = ".init_array")]
static REGISTER: extern "C" fn() = {
    extern "C" fn register() {
        LOADED_BY.store(std::process::id(), Ordering::Relaxed);
        // Where it fails, it fails again when it matters, and sleeps are short.
        let _registered = isochrone_cla::live::register_barriers();
    }
    register
};

/// The process that loaded this library: a child of it, made by fork(2), leaves no report.
static LOADED_BY: AtomicU32 = AtomicU32::new(0);

/// Runs when the process exits: by then a report is left, whoever took `MPI_Finalize`, and where nobody called it.
#[used]
#[unsafe(link_section = ".fini_array")]
static LEAVE: extern "C" fn() = {
    extern "C" fn leave() {
        if LOADED_BY.load(Ordering::Relaxed) == std::process::id() {
            exits();
        }
    }
    leave
};

/// Reports of counts that have doubled, which are left at once; after these there is one in [`NOTED_EVERY`] at most.
const NOTED_AT_ONCE: u32 = 32;
const NOTED_EVERY: Duration = Duration::from_millis(100);

/// What is returned where a process has no MPI at all and calls one of its functions all the same: every MPI
/// has a code of this number, and none takes it for success.
pub(crate) const NO_MPI: c_int = 16;

/// What making shared memory for a communicator costs at least: some calls of the MPI and of the system, and the time
/// for choosing lines.
const MAKING: Duration = Duration::from_micros(2_500);

/// The MPI, or the one that is left alone.
#[inline]
fn here() -> &'static Result<Mpi, Stranger> {
    MPI.get_or_init(Mpi::here)
}

/// The MPI, or none that is known.
#[inline]
pub(crate) fn mpi() -> Option<&'static Mpi> {
    here().as_ref().ok()
}

/// A function of the MPI, whichever it is, or null.
pub(crate) fn function(name: &CStr) -> *mut c_void {
    match here() {
        Ok(mpi) => mpi.symbol(name),
        Err(stranger) => stranger.function(name),
    }
}

/// Whether reductions that are left to the MPI take their operands in the order of ranks.
#[inline]
pub(crate) fn orders() -> bool {
    WORLD.get().is_some_and(|world| world.config.orders())
}

/// What belongs to this process.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) types: Types,
    pub(crate) config: Config,
    /// In `MPI_COMM_WORLD`.
    rank: u32,
    /// Of the job, where it is only watched; 0: not known.
    ranks: u32,
    /// Of which collectives it says that they may be done in lines.
    does: [bool; Kind::COUNT],
    /// None where the MPI gives none: then nobody says when a communicator ends.
    keyval: Option<c_int>,
    places: Places,
    /// Communicators that hold shared memory.
    teams: AtomicUsize,
    /// Memory that is shared with other ranks.
    arenas: Arenas,
    /// What making such memory took last, or [`MAKING`], in ns.
    cost: AtomicU64,
    /// Ranks and cores of this node.
    crowd: OnceLock<Crowd>,
    /// Whether the MPI packs data as the bytes of its elements.
    packs: OnceLock<bool>,
    /// Whether shared memory would have been made, where the job is only watched.
    would_have: AtomicBool,
    ended: Mutex<Ended>,
}

/// What is left of communicators that ended, and what is said once.
#[derive(Debug, Default)]
struct Ended {
    report: Report,
    tallies: [Tally; Kind::COUNT],
    /// The MPI's numbers for errors of ours, by their words.
    errors: HashMap<String, c_int>,
    /// Where the report is, once it was left.
    left: Option<PathBuf>,
    /// How often it was left before the end, and when that was last.
    noted: (u32, Option<Instant>),
}

impl Ended {
    /// Whether a report is left now that counts have doubled.
    fn is_due(&mut self) -> bool {
        let (times, last) = self.noted;
        let due = times < NOTED_AT_ONCE || last.is_none_or(|at| at.elapsed() >= NOTED_EVERY);
        if due {
            self.noted = (times.saturating_add(1), Some(Instant::now()));
        }
        due
    }
}

/// This process, once its MPI is initialised.
pub(crate) fn world(mpi: &'static Mpi) -> &'static World {
    WORLD.get_or_init(|| {
        let f = mpi.functions();
        let (mut level, mut keyval) = (0, 0);
        // SAFETY: a collective was called, so the MPI is initialised; the answer has room.
        let unknown = unsafe { (f.query_thread)(&raw mut level) } != 0;
        // SAFETY: as above; both functions have the types that MPI asks for and live for ever.
        let no_keyval = unsafe {
            (f.comm_create_keyval)(copied, deleted, &raw mut keyval, std::ptr::null_mut())
        };
        let config = Config::here().unwrap_or_else(|why| refuse(&why));
        let world = World {
            types: mpi.types(),
            does: Kind::ALL.map(|kind| config.does(kind)),
            rank: rank(mpi),
            ranks: if config.watches { ranks(mpi) } else { 0 },
            config,
            keyval: (no_keyval == 0).then_some(keyval),
            places: Places::new(unknown || level >= mpi.thread_multiple()),
            teams: AtomicUsize::new(0),
            arenas: Arenas::default(),
            cost: AtomicU64::new(ns(MAKING)),
            crowd: OnceLock::new(),
            packs: OnceLock::new(),
            would_have: AtomicBool::new(false),
            ended: Mutex::default(),
        };
        if world.config.watches {
            // Later the MPI may have ended.
            world.crowd.get_or_init(|| comm::crowd(mpi));
        }
        world.leave(mpi, &[Tally::default(); Kind::COUNT], false);
        world
    })
}

/// This process's rank in `MPI_COMM_WORLD`; what its launcher says where there is none.
fn rank(mpi: &Mpi) -> u32 {
    let (f, mut begun, mut rank) = (mpi.functions(), 0, 0);
    // SAFETY: it may be called at any time, and the answer has room.
    let has_world = unsafe { (f.initialized)(&raw mut begun) } == 0 && begun != 0;
    // SAFETY: the MPI runs, and the answer has room.
    if has_world && unsafe { (f.comm_rank)(mpi.world(), &raw mut rank) } == 0 {
        return u32::try_from(rank).unwrap_or(0);
    }
    launched(RANKS).unwrap_or(0)
}

/// How many ranks `MPI_COMM_WORLD` has; 0 where there is none.
fn ranks(mpi: &Mpi) -> u32 {
    let (f, mut begun, mut ranks) = (mpi.functions(), 0, 0);
    // SAFETY: it may be called at any time, and the answer has room.
    let has_world = unsafe { (f.initialized)(&raw mut begun) } == 0 && begun != 0;
    // SAFETY: the MPI runs, and the answer has room.
    let failed = !has_world || unsafe { (f.comm_size)(mpi.world(), &raw mut ranks) } != 0;
    if failed { 0 } else { u32::try_from(ranks).unwrap_or(0) }
}

/// Where launchers say the rank of a process.
const RANKS: &[&str] = &["OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"];

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl World {
    /// Whether such collectives may be done in lines: the same on all ranks of a communicator that is.
    #[inline]
    pub(crate) const fn does(&self, kind: Kind) -> bool {
        self.does[kind as usize]
    }

    /// Enters with a collective on `comm`: none where there is no such communicator.
    #[inline]
    pub(crate) fn enter(&'static self, mpi: &'static Mpi, handle: Handle) -> Option<Inside> {
        let place = match self.places.find(handle) {
            Some(place) => place,
            None => self.comes(mpi, handle)?,
        };
        self.places.enter(place)
    }

    /// Counts a call on a communicator, and agrees on it when its time has come: whether this call is done in lines.
    #[inline]
    pub(crate) fn count(
        &self,
        mpi: &'static Mpi,
        handle: Handle,
        comm: &mut Comm,
        kind: Kind,
    ) -> bool {
        if let State::Counting(so_far) = &mut comm.state
            && so_far.count(kind, comm.size, self.config.calls_before)
        {
            let so_far = *so_far;
            comm.state = self.settle(mpi, handle, comm, so_far);
        }
        comm.in_lines() && self.does(kind)
    }

    /// A communicator that is seen for the first time.
    #[cold]
    fn comes(&'static self, mpi: &'static Mpi, handle: Handle) -> Option<&'static Place> {
        if mpi.is_null_comm(handle) {
            return None;
        }
        // No lock is held while the MPI works.
        self.watch(mpi, handle);
        let (new, judged) = Comm::new(mpi, handle, &self.config);
        if let Err(why) = judged {
            self.ended().report.refuse(new.size.into(), why.words());
        }
        Some(self.places.insert(handle, new))
    }

    /// Agrees on a communicator. When that is depends on its calls and on what its first rank said, and is the same
    /// for all.
    #[cold]
    fn settle(
        &self,
        mpi: &'static Mpi,
        handle: Handle,
        comm: &mut Comm,
        so_far: Counting,
    ) -> State {
        let config = &self.config;
        let seat = Seat { rank: comm.rank, size: comm.size };
        let crowd = *self.crowd.get_or_init(|| comm::crowd(mpi));
        let fit = if !config.enabled {
            Err(Why::Off)
        } else if config.costs_before > 0
            && (crowd.ranks > crowd.cores || self.arenas.are_crowded())
        {
            Err(Why::Crowded)
        } else if self.keyval.is_none() {
            Err(Why::NoKey)
        } else if self.teams.load(Ordering::Relaxed) >= config.communicators_max {
            Err(Why::Many)
        } else if !*self.packs.get_or_init(|| packs(mpi)) {
            Err(Why::Packs)
        } else {
            Ok(())
        };
        let begin = Instant::now();
        let (arenas, saves) = (&self.arenas, so_far.saves);
        let mine = Mine { config, arenas, crowd, fit, saves, cost_us: self.cost_us(comm.size) };
        let settled = comm::agree(mpi, handle, seat, &mine);
        let took = begin.elapsed();
        let mut ended = self.ended();
        ended.report.set_up_us += u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        match settled {
            Ok(Settled { mut state, far, bytes_max, chosen, made }) => {
                if let Some(team) = state.team() {
                    team.set_progress(Some(progress));
                    ended.report.reach = team.reach().or(ended.report.reach);
                }
                self.teams.fetch_add(1, Ordering::Relaxed);
                if made {
                    self.cost.store(ns(took.max(MAKING)), Ordering::Relaxed);
                }
                ended.report.communicators += 1;
                ended.report.chosen += u32::from(chosen);
                ended.report.lines_far = Some(far);
                comm.bytes_max = bytes_max;
                state
            }
            Err(Left::Until(due)) => State::Counting(Counting { due, ..so_far }),
            Err(Left::Refused(words)) => {
                ended.report.refuse(seat.size.into(), &words);
                State::Refused
            }
        }
    }

    /// Counts a call of a job that is only watched.
    #[cold]
    pub(crate) fn see(&self, mpi: &'static Mpi, comm: &mut Comm, kind: Kind) {
        let Comm { size, asked, watched, tallies, .. } = comm;
        let (Some(watched), tally) = (watched, &mut tallies[kind as usize]) else { return };
        let bytes = asked.take();
        let may = self.does(kind) && bytes.is_some_and(|bytes| bytes <= self.config.bytes_max);
        let calls_before = self.config.calls_before;
        let call = SeenCall { kind, ranks: *size, bytes, may, calls_before };
        watched.count(&mut tally.seen, &call, |so_far| self.would(mpi, *size, so_far));
        if tally.left(ByMpi::Watched) {
            self.note(mpi, comm);
        }
    }

    /// What a communicator would come to, as far as this rank knows it: [`Self::settle`] without a word to others.
    fn would(&self, mpi: &Mpi, size: u16, so_far: &Counting) -> Would {
        let crowd = *self.crowd.get_or_init(|| comm::crowd(mpi));
        let crowded = self.config.costs_before > 0 && crowd.ranks > crowd.cores;
        if crowded || self.keyval.is_none() {
            let why = if crowded { Why::Crowded } else { Why::NoKey };
            self.ended().report.refuse(size.into(), why.words());
            return Would::BeRefused;
        }
        let has = self.would_have.load(Ordering::Relaxed);
        let due = if has { 0 } else { self.cost_us(size).saturating_mul(1000) };
        if so_far.saves < due {
            return Would::Wait(due);
        }
        self.would_have.store(true, Ordering::Relaxed);
        let cost_us = if has { PIECE_NS / 1000 } else { self.cost_us(size) };
        self.ended().report.would_cost_us += cost_us;
        Would::BeTaken
    }

    /// What calls on a communicator of `size` ranks must have been expected to save before memory is made for it, us:
    /// by what that took last.
    fn cost_us(&self, size: u16) -> u64 {
        let last = Duration::from_nanos(self.cost.load(Ordering::Relaxed));
        let cost = if size >= RANKS_LEAST { last + look_cost(&self.config) } else { last };
        let all = cost.saturating_mul(self.config.costs_before);
        u64::try_from(all.as_micros()).unwrap_or(u64::MAX)
    }

    /// Asks to be told when a communicator is freed.
    fn watch(&self, mpi: &Mpi, comm: Handle) {
        let Some(key) = self.keyval else { return };
        // SAFETY: a key of our own, with a value that nobody looks at.
        let _set = unsafe { (mpi.functions().comm_set_attr)(comm, key, std::ptr::null_mut()) };
    }

    fn ended(&self) -> MutexGuard<'_, Ended> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A communicator ends.
    fn forget(&self, mpi: &Mpi, handle: Handle) {
        let Some(mut comm) = self.places.remove(handle) else { return };
        let mut ended = self.ended();
        for ((all, own), kind) in ended.tallies.iter_mut().zip(&comm.tallies).zip(Kind::ALL) {
            all.add(own, kind, comm.size);
        }
        if let Some(false) = comm.state.team().and_then(|team| team.reach()) {
            ended.report.reach = Some(false);
        }
        match &mut comm.state {
            State::Inside(team) => ended.report.note_shapes(team),
            State::Across(across) => ended.report.note_shapes(&mut across.team),
            State::Counting(_) if matches!(comm.watched, None | Some(Watched::Counting(_))) => {
                ended.report.refuse(comm.size.into(), Why::NotYet.words());
            }
            State::Counting(_) => {}
            State::Refused => {}
        }
        drop(ended);
        if matches!(comm.state, State::Inside(_) | State::Across(_)) {
            self.teams.fetch_sub(1, Ordering::Relaxed);
        }
        if let State::Across(across) = &mut comm.state {
            across.leaders.free(mpi);
        }
    }

    /// Leaves a report with these counts, where one is asked for. `end`: whether they are all.
    fn leave(&self, mpi: &Mpi, tallies: &[Tally; Kind::COUNT], end: bool) {
        let Some(folder) = &self.config.reports else { return };
        let mut ended = self.ended();
        ended.report.ended |= end;
        let mut report = ended.report.clone();
        report.rank = self.rank;
        mpi.version().clone_into(&mut report.mpi);
        report.ranks = self.ranks;
        let crowd = self.crowd.get().filter(|_| self.config.watches);
        report.node_ranks = crowd.map_or(0, |crowd| u32::try_from(crowd.ranks).unwrap_or(u32::MAX));
        report.shared_bytes = self.arenas.bytes() as u64;
        (report.atlas, report.atlas_refused) = outcome();
        for (kind, tally) in Kind::ALL.into_iter().zip(tallies) {
            let counts = tally.counts();
            if counts != Counts::default() {
                report.calls.insert(kind.name().to_owned(), counts);
                report.details.insert(kind.name().to_owned(), tally.details());
            }
            if let Some(calls) = tally.seen.calls() {
                report.seen.insert(kind.name().to_owned(), calls);
            }
        }
        report.leave(folder, &mut ended.left);
    }

    /// A communicator has no collectives any more: says so before the error, by which the program may end.
    #[cold]
    pub(crate) fn broke(&self, mpi: &Mpi, comm: &Comm, why: &str) {
        self.ended().report.broken.get_or_insert_with(|| why.to_owned());
        self.leave_amid(mpi, Some(comm), false);
    }

    /// Calls of a kind on `comm` have doubled: leaves a report, since nobody leaves one who is killed.
    #[cold]
    pub(crate) fn note(&self, mpi: &Mpi, comm: &Comm) {
        if self.config.reports.is_some() && self.ended().is_due() {
            self.leave_amid(mpi, Some(comm), false);
        }
    }

    /// Leaves a report with the counts so far: of `inside`, in which this thread is, and of those in which none is.
    fn leave_amid(&self, mpi: &Mpi, inside: Option<&Comm>, end: bool) {
        let mut tallies = self.ended().tallies;
        let mut add = |comm: &Comm| {
            for ((all, own), kind) in tallies.iter_mut().zip(&comm.tallies).zip(Kind::ALL) {
                all.add(own, kind, comm.size);
            }
        };
        inside.into_iter().for_each(&mut add);
        self.places.each_idle(add);
        self.leave(mpi, &tallies, end);
    }

    /// The MPI's number for an error of ours.
    pub(crate) fn error(&self, mpi: &Mpi, words: &str) -> c_int {
        if let Some(known) = self.ended().errors.get(words) {
            return *known;
        }
        let f = mpi.functions();
        let (mut class, mut code): (c_int, c_int) = (0, 0);
        let text = std::ffi::CString::new(format!("isochrone: {words}")).unwrap_or_default();
        // SAFETY: places for the answers, and a C string that MPI copies.
        let failed = unsafe { (f.add_error_class)(&raw mut class) } != 0
            // SAFETY: as above.
            || unsafe { (f.add_error_code)(class, &raw mut code) } != 0
            // SAFETY: as above.
            || unsafe { (f.add_error_string)(code, text.as_ptr()) } != 0;
        let code = if failed { mpi.other_error() } else { code };
        self.ended().errors.insert(words.to_owned(), code);
        code
    }
}

/// A duplicate is another communicator: it does not inherit.
extern "C" fn copied(
    _comm: Handle,
    _key: c_int,
    _extra: *mut c_void,
    _value: *mut c_void,
    _place: *mut c_void,
    inherits: *mut c_int,
) -> c_int {
    // SAFETY: MPI passes a place for the answer (MPI 3.0, section 6.7.2).
    unsafe { inherits.write(0) };
    0
}

/// A communicator is freed; its handle may mean another one from now on.
extern "C" fn deleted(
    comm: Handle,
    _key: c_int,
    _value: *mut c_void,
    _extra: *mut c_void,
) -> c_int {
    if let (Some(mpi), Some(world)) = (mpi(), WORLD.get()) {
        world.forget(mpi, mpi.handle(comm));
    }
    0
}

/// What a waiting rank does for its MPI: others may wait for messages that this one has to move.
fn progress() {
    let Some(mpi) = mpi() else { return };
    let mut found = 0;
    let (from, to) = (mpi.any_source(), mpi.own());
    // SAFETY: any message for this process itself is asked for; nothing is received, and the answers
    // have room or are not wanted.
    let _probed = unsafe {
        (mpi.functions().iprobe)(from, mpi.any_tag(), to, &raw mut found, mpi.no_status())
    };
}

/// Ends everything, before the MPI does; writes the report.
pub(crate) fn finish() {
    let mpi = match here() {
        Ok(mpi) => mpi,
        Err(stranger) => return finish_beside(stranger),
    };
    let mut begun = 0;
    // SAFETY: it may be called at any time, and the answer has room.
    if unsafe { (mpi.functions().initialized)(&raw mut begun) } != 0 || begun == 0 {
        return;
    }
    // A program that called no collective has a report, too.
    let world = world(mpi);
    for comm in world.places.handles() {
        world.forget(mpi, comm);
    }
    let tallies = world.ended().tallies;
    world.leave(mpi, &tallies, true);
}

/// The report of a process whose MPI is left alone.
fn finish_beside(stranger: &Stranger) {
    let config = Config::here().unwrap_or_else(|why| refuse(&why));
    leave_beside(&config, &stranger.version, &stranger.why);
}

/// Leaves a report of a process whose calls are all its MPI's.
fn leave_beside(config: &Config, version: &str, why: &str) {
    let Some(folder) = &config.reports else { return };
    let rank = launched(RANKS).unwrap_or(0);
    let mut report = Report { rank, mpi: version.to_owned(), ended: true, ..Report::default() };
    report.refuse(0, why);
    report.leave(folder, &mut None);
}

/// The process exits. Its MPI may have ended, so it is asked nothing.
fn exits() {
    match (MPI.get(), WORLD.get()) {
        (Some(Ok(mpi)), Some(world)) if !world.ended().report.ended => {
            world.leave_amid(mpi, None, true);
        }
        (None, _) if launched(RANKS).is_some() && has_mpi() => {
            // It is too late to refuse what cannot be read.
            let Ok(config) = Config::here() else { return };
            leave_beside(&config, "", "no call of MPI came to this library");
        }
        _ => {}
    }
}

/// Whether an MPI is part of this program.
fn has_mpi() -> bool {
    // SAFETY: looks a name up in all libraries.
    !unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"PMPI_Bcast".as_ptr()) }.is_null()
}
