//! All that this process knows: the MPI, its communicators, what was counted.
//!
//! MPI lets one thread at a time into its library unless a program asked for `MPI_THREAD_MULTIPLE`. Up to
//! there nothing here is locked. A process that has that level takes part in agreements, to say no.

use crate::abi::{Handle, Layout, Mpi, Stranger, Types};
use crate::atlas::{look_cost, outcome};
use crate::comm::{self, Comm, Seat, State};
use crate::config::{Config, Counts, Report, launched};
use crate::payload::Scratch;
use crate::tally::Tally;
use crate::why::Why;
use isochrone_cla::choice::RANKS_LEAST;
use isochrone_cla::live::Kind;
use std::cell::{Cell, UnsafeCell};
use std::collections::HashMap;
use std::ffi::{CStr, c_int, c_void};
use std::sync::OnceLock;
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
        // Where it fails, it fails again when it matters, and sleeps are short.
        let _registered = isochrone_cla::live::register_barriers();
    }
    register
};

/// What a take-over costs at least, before one was timed: the shared memory of two ranks, some calls of the
/// MPI and the time for choosing lines.
const TAKE_OVER: Duration = Duration::from_micros(2_500);

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

/// A function of the MPI that is left alone, or null.
pub(crate) fn of_a_stranger(name: &CStr) -> *mut c_void {
    here().as_ref().err().map_or(std::ptr::null_mut(), |stranger| stranger.function(name))
}

/// What belongs to this process.
pub(crate) struct World {
    /// Whether several threads may be in the MPI at once.
    multiple: bool,
    /// What was counted where they may.
    tally: Tally,
    /// None where the MPI gives none: then nobody says when a communicator ends.
    keyval: Option<c_int>,
    config: Config,
    /// Whether somebody is inside.
    busy: Cell<bool>,
    inner: UnsafeCell<Inner>,
}

// SAFETY: `busy` and `inner` are used only where MPI lets one thread at a time in (`multiple` is false),
// and a program that lets different threads in orders them itself, as MPI asks of it.
unsafe impl Sync for World {}
// SAFETY: as above; nothing in it belongs to a thread.
unsafe impl Send for World {}

/// What one thread at a time changes.
pub(crate) struct Inner {
    pub(crate) types: Types,
    /// The type that came last.
    last_type: Option<(Handle, Layout)>,
    slots: Vec<Option<Comm>>,
    by_handle: HashMap<Handle, usize>,
    /// The communicator that came last.
    last: (Handle, usize),
    pub(crate) scratch: Scratch,
    pub(crate) counts: [Counts; Kind::COUNT],
    report: Report,
    /// What the last take-over took, or [`TAKE_OVER`].
    cost: Duration,
    error: Option<c_int>,
}

/// One thread's stay inside. Nothing of it is kept while the MPI may call back.
pub(crate) struct Inside {
    world: &'static World,
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.world.busy.set(false);
    }
}

impl Inside {
    /// What this thread may change now.
    #[inline]
    pub(crate) fn inner(&mut self) -> &mut Inner {
        // SAFETY: `busy` was set by whoever made this value and is set back when it goes, so there is
        // one value at a time, and it gives its contents to one borrower at a time.
        unsafe { &mut *self.world.inner.get() }
    }

    pub(crate) fn config(&self) -> &'static Config {
        &self.world.config
    }
}

fn world(mpi: &'static Mpi) -> &'static World {
    WORLD.get_or_init(|| {
        let f = mpi.functions();
        let (mut level, mut keyval) = (0, 0);
        // SAFETY: a collective was called, so the MPI is initialised; the answer has room.
        let unknown = unsafe { (f.query_thread)(&raw mut level) } != 0;
        // SAFETY: as above; both functions have the types that MPI asks for and live for ever.
        let no_keyval = unsafe {
            (f.comm_create_keyval)(copied, deleted, &raw mut keyval, std::ptr::null_mut())
        };
        World {
            multiple: unknown || level >= Mpi::THREAD_MULTIPLE,
            tally: Tally::default(),
            keyval: (no_keyval == 0).then_some(keyval),
            config: Config::here(),
            busy: Cell::new(false),
            inner: UnsafeCell::new(Inner::new(mpi.types())),
        }
    })
}

/// Enters with a collective on `comm`: none where its MPI does it. Counts the call, and agrees on the
/// communicator when its time has come.
#[inline]
pub(crate) fn enter(mpi: &'static Mpi, comm: Handle, kind: Kind) -> Option<(Inside, usize)> {
    let world = world(mpi);
    if world.multiple {
        if !mpi.is_null_comm(comm) {
            world.tally.count(mpi, &world.config, comm, kind, || watch(mpi, world, comm));
        }
        return None;
    }
    if world.busy.replace(true) {
        // The MPI called back from within: nothing that any MPI does, and nothing that is agreed on.
        return None;
    }
    let mut inside = Inside { world };
    let inner = inside.inner();
    if inner.last.0 == comm {
        let slot = inner.last.1;
        match &mut inner.slots[slot] {
            Some(Comm { state: State::Counting(calls), .. }) => {
                if *calls < world.config.calls_before {
                    *calls += 1;
                    return Some((inside, slot));
                }
            }
            _ => return Some((inside, slot)),
        }
    }
    let slot = slot_of(mpi, &mut inside, comm)?;
    Some((inside, slot))
}

#[cold]
fn slot_of(mpi: &'static Mpi, inside: &mut Inside, comm: Handle) -> Option<usize> {
    if mpi.is_null_comm(comm) {
        return None;
    }
    let known = inside.inner().by_handle.get(&comm).copied();
    let slot = match known {
        Some(slot) => slot,
        None => {
            watch(mpi, inside.world, comm);
            let (new, judged) = Comm::new(mpi, comm, inside.config());
            if let Err(why) = judged {
                inside.inner().report.refuse(new.size.into(), why.words());
            }
            inside.inner().insert(comm, new)
        }
    };
    let inner = inside.inner();
    inner.last = (comm, slot);
    let Some(Comm { rank, size, since, state: State::Counting(calls) }) = &mut inner.slots[slot]
    else {
        return Some(slot);
    };
    let (seat, since) = (Seat { rank: *rank, size: *size }, *since);
    *calls += 1;
    if *calls > inside.world.config.calls_before {
        let state = settle(mpi, inside, comm, seat, since);
        if let Some(Some(comm)) = inside.inner().slots.get_mut(slot) {
            comm.state = state;
        }
    }
    Some(slot)
}

/// Agrees on a communicator. How long it lived is a matter of each rank's clock; what is done about it depends
/// on the least of what ranks say, and is the same for all.
fn settle(
    mpi: &'static Mpi,
    inside: &mut Inside,
    comm: Handle,
    seat: Seat,
    since: Instant,
) -> State {
    let (config, no_key) = (inside.config(), inside.world.keyval.is_none());
    let inner = inside.inner();
    let teams = inner.teams();
    let fit = if !config.enabled {
        Err(Why::Off)
    } else if no_key {
        Err(Why::NoKey)
    } else if teams >= config.communicators_max {
        Err(Why::Many)
    } else if !inner.scratch.packs(mpi) {
        Err(Why::Packs)
    } else if since.elapsed()
        < cost(inner.cost, seat.size, config).saturating_mul(config.costs_before)
    {
        Err(Why::NotYet)
    } else {
        Ok(())
    };
    let begin = Instant::now();
    match comm::agree(mpi, comm, seat, config, fit) {
        Ok((mut state, chosen)) => {
            match &mut state {
                State::Inside(team) => team.set_progress(Some(progress)),
                State::Across(across) => across.team.set_progress(Some(progress)),
                _ => {}
            }
            let inner = inside.inner();
            inner.cost = begin.elapsed().max(TAKE_OVER);
            inner.report.communicators += 1;
            inner.report.chosen += u32::from(chosen);
            state
        }
        Err((Why::NotYet, _)) => State::Counting(0),
        Err((_, words)) => {
            inside.inner().report.refuse(seat.size.into(), &words);
            State::Refused
        }
    }
}

/// What taking over a communicator of `size` ranks may cost, where the last take-over cost `last`.
fn cost(last: Duration, size: u16, config: &Config) -> Duration {
    let chooses = size >= RANKS_LEAST && config.costs_before > 0;
    if chooses { last + look_cost(config) } else { last }
}

/// Asks to be told when a communicator is freed.
fn watch(mpi: &Mpi, world: &World, comm: Handle) {
    let Some(key) = world.keyval else { return };
    // SAFETY: a key of our own, with a value that nobody looks at.
    let _set = unsafe { (mpi.functions().comm_set_attr)(comm, key, std::ptr::null_mut()) };
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
    let (Some(mpi), Some(world)) = (mpi(), WORLD.get()) else { return 0 };
    let comm = mpi.handle(comm);
    if world.multiple {
        world.tally.forget(comm);
    } else if !world.busy.replace(true) {
        Inside { world }.inner().forget(mpi, comm);
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
        (mpi.functions().iprobe)(from, Mpi::ANY_TAG, to, &raw mut found, mpi.no_status())
    };
}

/// Ends everything, before the MPI does; writes the report.
pub(crate) fn finish() {
    let mpi = match here() {
        Ok(mpi) => mpi,
        Err(stranger) => return finish_beside(stranger),
    };
    let Some(world) = WORLD.get() else { return };
    let (mut report, counts) = if world.multiple {
        world.tally.report(&world.config)
    } else {
        if world.busy.replace(true) {
            return;
        }
        let mut inside = Inside { world };
        let inner = inside.inner();
        for comm in inner.by_handle.keys().copied().collect::<Vec<_>>() {
            inner.forget(mpi, comm);
        }
        (inner.report.clone(), inner.counts)
    };
    let Some(folder) = &world.config.reports else { return };
    let mut rank: c_int = 0;
    // SAFETY: the MPI still runs.
    unsafe { (mpi.functions().comm_rank)(mpi.world(), &raw mut rank) };
    report.rank = u32::try_from(rank).unwrap_or(0);
    mpi.version().clone_into(&mut report.mpi);
    (report.atlas, report.atlas_refused) = outcome();
    report.calls = Kind::ALL
        .iter()
        .map(|&kind| (kind.name().to_owned(), counts[kind as usize]))
        .filter(|(_, counts)| *counts != Counts::default())
        .collect();
    report.leave(folder);
}

/// The report of a process whose MPI is left alone.
fn finish_beside(stranger: &Stranger) {
    let Some(folder) = Config::here().reports else { return };
    let rank = launched(&["OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"]).unwrap_or(0);
    let mut report = Report { rank, mpi: stranger.version.clone(), ..Report::default() };
    report.refuse(0, &stranger.why);
    report.leave(&folder);
}

impl Inner {
    fn new(types: Types) -> Self {
        Self {
            types,
            last_type: None,
            slots: Vec::new(),
            by_handle: HashMap::new(),
            last: (0, 0),
            scratch: Scratch::default(),
            counts: [Counts::default(); Kind::COUNT],
            report: Report::default(),
            cost: TAKE_OVER,
            error: None,
        }
    }

    fn insert(&mut self, handle: Handle, comm: Comm) -> usize {
        let free = self.slots.iter().position(Option::is_none);
        let slot = free.unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.slots[slot] = Some(comm);
        self.by_handle.insert(handle, slot);
        slot
    }

    fn forget(&mut self, mpi: &Mpi, handle: Handle) {
        let Some(slot) = self.by_handle.remove(&handle) else { return };
        self.last = (0, 0);
        match self.slots[slot].take() {
            Some(Comm { state: State::Inside(mut team), .. }) => self.report.note_shapes(&mut team),
            Some(Comm { state: State::Across(mut across), .. }) => {
                self.report.note_shapes(&mut across.team);
                if let Some(mut leaders) = across.leaders {
                    comm::free(mpi, &mut leaders);
                }
            }
            Some(Comm { state: State::Counting(_), size, .. }) => {
                self.report.refuse(size.into(), Why::NotYet.words());
            }
            _ => {}
        }
    }

    /// Communicators that hold shared memory.
    fn teams(&self) -> usize {
        let holds = |comm: &&Option<Comm>| {
            matches!(comm, Some(Comm { state: State::Inside(_) | State::Across(_), .. }))
        };
        self.slots.iter().filter(holds).count()
    }

    /// A communicator that came in, with the room that its calls need.
    #[inline]
    pub(crate) fn comm(&mut self, slot: usize) -> (Option<&mut Comm>, &mut Scratch) {
        (self.slots[slot].as_mut(), &mut self.scratch)
    }

    /// Whether calls on a communicator are done in lines.
    #[inline]
    pub(crate) fn in_lines(&self, slot: usize) -> bool {
        matches!(&self.slots[slot], Some(Comm { state: State::Inside(_) | State::Across(_), .. }))
    }

    /// This process's rank in a communicator.
    pub(crate) fn rank(&self, slot: usize) -> u16 {
        self.slots[slot].as_ref().map_or(0, |comm| comm.rank)
    }

    /// Ranks of a communicator.
    pub(crate) fn ranks(&self, slot: usize) -> u16 {
        self.slots[slot].as_ref().map_or(0, |comm| comm.size)
    }

    /// How a type lies in memory; of a derived one its bytes alone are known.
    #[inline]
    pub(crate) fn layout(&mut self, mpi: &Mpi, handle: Handle) -> Option<Layout> {
        if let Some((last, layout)) = self.last_type
            && last == handle
        {
            return Some(layout);
        }
        if let Some(layout) = self.types.named(handle) {
            self.last_type = Some((handle, layout));
            return Some(layout);
        }
        let mut size: c_int = 0;
        // SAFETY: the caller's type, which its MPI checks, and a place for the answer.
        let failed = unsafe { (mpi.functions().type_size)(handle, &raw mut size) };
        let bytes = usize::try_from(size).ok().filter(|_| failed == 0)?;
        Some(Layout { bytes, plain: false, element: None })
    }

    /// Notes who did a call.
    #[inline]
    pub(crate) fn count(&mut self, kind: Kind) -> &mut Counts {
        &mut self.counts[kind as usize]
    }

    /// The MPI's number for an error of ours.
    pub(crate) fn error(&mut self, mpi: &Mpi, words: &str) -> c_int {
        if let Some(known) = self.error {
            return known;
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
        self.error = Some(code);
        code
    }
}
