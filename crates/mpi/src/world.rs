//! All that this process knows: the MPI, its communicators, what was counted.
//!
//! MPI lets one thread at a time into its library unless a program asked for `MPI_THREAD_MULTIPLE`. Up to
//! there nothing here is locked. A process that has that level takes part in agreements, to say no.

use crate::abi::{Handle, Layout, Mpi, Types};
use crate::comm::{self, Comm, State};
use crate::config::{Config, Counts, Refusal, Report};
use crate::payload::Scratch;
use isochrone_cla::live::Kind;
use std::cell::{Cell, UnsafeCell};
use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::{Mutex, OnceLock};

/// The MPI of this process, once a call has come.
static MPI: OnceLock<Option<Mpi>> = OnceLock::new();
/// Everything else.
static WORLD: OnceLock<World> = OnceLock::new();

/// The MPI, or none that is known.
#[inline]
pub(crate) fn mpi() -> Option<&'static Mpi> {
    MPI.get_or_init(|| Mpi::here().ok()).as_ref()
}

/// What belongs to this process.
pub(crate) struct World {
    /// Whether several threads may be in the MPI at once.
    multiple: bool,
    /// Calls on each communicator, where they may.
    counts: Mutex<HashMap<Handle, u32>>,
    keyval: c_int,
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
    ready: u32,
    refusals: Vec<Refusal>,
    error: Option<c_int>,
}

/// Refusals that are reported at most.
const REFUSALS_MAX: usize = 8;

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
        let mut config = Config::here();
        // Without it nobody would say when a communicator ends.
        config.enabled &= no_keyval == 0;
        World {
            multiple: unknown || level >= Mpi::THREAD_MULTIPLE,
            counts: Mutex::new(HashMap::new()),
            keyval,
            config,
            busy: Cell::new(false),
            inner: UnsafeCell::new(Inner::new(mpi.types())),
        }
    })
}

/// Enters with a collective on `comm`: none where its MPI does it. Counts the call, and agrees on the
/// communicator when its time has come.
#[inline]
pub(crate) fn enter(mpi: &'static Mpi, comm: Handle) -> Option<(Inside, usize)> {
    let world = world(mpi);
    if world.multiple {
        count_only(mpi, world, comm);
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
        if !matches!(&inner.slots[slot], Some(Comm { state: State::Counting(_), .. })) {
            return Some((inside, slot));
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
            let new = Comm::new(mpi, comm, inside.config());
            inside.inner().insert(comm, new)
        }
    };
    let inner = inside.inner();
    inner.last = (comm, slot);
    let Some(Comm { rank, size, state: State::Counting(calls) }) = &mut inner.slots[slot] else {
        return Some(slot);
    };
    let at = (*rank, *size);
    *calls += 1;
    if *calls > inside.world.config.calls_before {
        let state = settle(mpi, inside, comm, at);
        if let Some(Some(comm)) = inside.inner().slots.get_mut(slot) {
            comm.state = state;
        }
    }
    Some(slot)
}

/// Agrees on a communicator.
fn settle(mpi: &'static Mpi, inside: &mut Inside, comm: Handle, at: (u16, u16)) -> State {
    let config = inside.config();
    let inner = inside.inner();
    let teams = inner.teams();
    let fit = if !config.enabled {
        Err("it was switched off")
    } else if teams >= config.communicators_max {
        Err("there are many communicators in lines already")
    } else if !inner.scratch.packs(mpi) {
        Err("this MPI packs data in a form of its own")
    } else {
        Ok(())
    };
    match comm::agree(mpi, comm, at, config, fit) {
        Ok(mut state) => {
            match &mut state {
                State::Inside(team) => team.set_progress(Some(progress)),
                State::Across(across) => across.team.set_progress(Some(progress)),
                _ => {}
            }
            inside.inner().ready += 1;
            state
        }
        Err(why) => {
            let refusals = &mut inside.inner().refusals;
            if refusals.len() < REFUSALS_MAX {
                refusals.push(Refusal { ranks: u32::from(at.1), why });
            }
            State::Refused
        }
    }
}

/// Where several threads may be inside: count as the others do, and say no when they ask.
#[cold]
fn count_only(mpi: &'static Mpi, world: &'static World, comm: Handle) {
    if mpi.is_null_comm(comm) {
        return;
    }
    let counts = || world.counts.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let calls = counts().get(&comm).copied();
    if calls.is_none() {
        watch(mpi, world, comm);
    }
    let calls = calls.unwrap_or(0).saturating_add(1);
    counts().insert(comm, calls);
    if calls == world.config.calls_before.saturating_add(1) {
        let Comm { rank, size, state } = Comm::new(mpi, comm, &world.config);
        if matches!(state, State::Counting(_)) {
            let no = Err("it runs with MPI_THREAD_MULTIPLE");
            let _refused = comm::agree(mpi, comm, (rank, size), &world.config, no);
        }
    }
}

/// Asks to be told when a communicator is freed.
fn watch(mpi: &Mpi, world: &World, comm: Handle) {
    // SAFETY: a key of our own, with a value that nobody looks at.
    let _set = unsafe { (mpi.functions().comm_set_attr)(comm, world.keyval, std::ptr::null_mut()) };
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
        let mut counts = world.counts.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        counts.remove(&comm);
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
pub(crate) fn finish(mpi: &'static Mpi) {
    let Some(world) = WORLD.get().filter(|world| !world.multiple) else { return };
    if world.busy.replace(true) {
        return;
    }
    let mut inside = Inside { world };
    let config = inside.config();
    let inner = inside.inner();
    for comm in inner.by_handle.keys().copied().collect::<Vec<_>>() {
        inner.forget(mpi, comm);
    }
    let Some(folder) = &config.reports else { return };
    let mut rank: c_int = 0;
    // SAFETY: the MPI still runs.
    unsafe { (mpi.functions().comm_rank)(mpi.world(), &raw mut rank) };
    let report = Report {
        rank: u32::try_from(rank).unwrap_or(0),
        mpi: mpi.version().to_owned(),
        communicators: inner.ready,
        refusals: inner.refusals.clone(),
        calls: Kind::ALL
            .iter()
            .map(|&kind| (kind.name().to_owned(), inner.counts[kind as usize]))
            .filter(|(_, counts)| *counts != Counts::default())
            .collect(),
    };
    let path = folder.join(format!("{}.json", std::process::id()));
    if let Ok(text) = serde_json::to_string_pretty(&report) {
        // Never into what is there: the name can be guessed. A report that cannot be written is missed by
        // whoever asked for it.
        let mut new = OpenOptions::new();
        let file = new.write(true).create_new(true).mode(0o600).open(path);
        let _written = file.and_then(|mut file| file.write_all((text + "\n").as_bytes()));
    }
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
            ready: 0,
            refusals: Vec::new(),
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
        if let Some(Comm { state: State::Across(across), .. }) = self.slots[slot].take()
            && let Some(mut leaders) = across.leaders
        {
            comm::free(mpi, &mut leaders);
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
