//! How a rank waits: polling, then giving its core away, then asleep; and how it finds out that the
//! others are gone.

use super::area::{Area, LEFT, STOPPED, seat_of};
use super::kind::Kind;
use super::layout::SAID;
use super::patience::Patience;
use super::said::{Said, Told, root_decides, root_hears};
use super::settings::Settings;
use super::sync::{AtomicU32, Ordering};
use super::word::{Rest, Word, publish, sleep};
use crate::program::{Compare, Gone, Rank};
use isochrone_os::futex::{self, Scope};
use isochrone_os::pause::{between_looks, look_cycles, pause_cycles};
use isochrone_os::shared::{barrier_of_all, give_way};
use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// How long a waiting rank may not notice that another has ended. What it waits for then fails with
/// [`Gone`] within this time, a sleep and the kernel's cleaning up.
pub const NOTICE: Duration = Duration::from_millis(50);

/// How one rank waits.
#[derive(Debug)]
pub(super) struct Waits {
    area: Arc<Area>,
    me: Rank,
    /// Where this rank says what call it makes: its words of the area.
    own: NonNull<[Word; SAID]>,
    /// What was asked for; none: what fits ranks and cores, looked at whenever it takes long.
    patience: Option<Patience>,
    /// Whether others than the team's ranks work on its cores.
    crowded: bool,
    /// Polls of the next wait before anything else.
    polls: Cell<u32>,
    /// Whether a rank pauses between polls.
    pauses: bool,
    /// Called while nothing comes: the work of whoever hosts the team.
    progress: Option<fn()>,
    /// What this rank said of the call that it is in; none: it is in none.
    said: Cell<Option<Said>>,
    /// What another rank was found to have said of the same call, where they cannot both go on.
    found: Cell<Option<Said>>,
}

// SAFETY: `own` points into the area, which this value keeps alive and which any thread may use by atomics; all else
// may go to another thread by itself.
unsafe impl Send for Waits {}

/// What others said of a call.
#[derive(Clone, Copy, Debug)]
pub(super) enum Differing {
    /// Nobody is known to have said anything else.
    Nobody,
    /// Somebody has other bytes, which go by the same lines.
    Goes(Told),
    /// Somebody said what this rank cannot go on with: it was found.
    Astray,
}

/// The kernel as [`Rest`].
#[derive(Debug)]
struct Kernel {
    sleep_ns: u64,
}

impl Rest for Kernel {
    fn give_way(&self) {
        give_way();
    }

    fn order_all(&self) -> bool {
        barrier_of_all().is_ok()
    }

    #[inline]
    fn order_self(&self) {
        // The compiler must not look at the sleepers first; the CPU is ordered by the sleeper.
        std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
    }

    #[cfg(not(all(loom, test)))]
    fn sleep(&self, word: &Word, seen: u64, long: bool) {
        let [low, _] = [seen & u64::from(u32::MAX), seen >> 32];
        let low = u32::try_from(low).unwrap_or(0);
        let limit = if long { self.sleep_ns } else { self.sleep_ns.min(SHORT_SLEEP_NS) };
        if futex::wait(word.futex(), low, Some(limit), Scope::Shared).is_err() {
            // No futex: the rank polls instead, and gives way meanwhile.
            give_way();
        }
    }

    #[cfg(all(loom, test))]
    fn sleep(&self, _word: &Word, _seen: u64, _long: bool) {
        give_way();
    }

    #[cold]
    fn wake(&self, word: &Word) {
        #[cfg(not(all(loom, test)))]
        let _nobody_sleeps_without_a_futex =
            futex::wake(word.futex(), u32::MAX >> 1, Scope::Shared);
        #[cfg(all(loom, test))]
        let _ = (word, futex::Waited::Woken, Scope::Shared);
    }
}

/// The longest pause between two polls: what comes within a transfer or two must be seen at once. Measured between
/// two cores of a Zen 5, whose pause is shorter: barriers in a loop took 79 ns with it instead of 102, allreduces of 8
/// bytes 117 instead of 142. Intel's pause has 140 cycles since Skylake, and ranks poll there without any.
const PAUSE_MOST_CYCLES: u64 = 100;

/// Whether a waiting rank pauses between two polls on this CPU.
fn pauses() -> bool {
    // It is timed once: a team is made in less time than that takes.
    static PAUSES: OnceLock<bool> = OnceLock::new();
    *PAUSES.get_or_init(|| pause_cycles() <= PAUSE_MOST_CYCLES)
}

/// Cycles from one poll of a waiting rank to its next, if the line is at hand; none where it only polls.
#[must_use]
pub fn poll_cycles() -> Option<u64> {
    pauses().then(look_cycles)
}

/// Rounds of waiting after each of which a rank looks whether others make the call that it makes.
const DIFFERS_EVERY: u32 = 64;
/// Threads of this process that wait for long, each in a team of its own.
static WAITING: AtomicUsize = AtomicUsize::new(0);

/// One of them. Ranks of a team within a process are not counted: they are the team's.
struct Waiting {
    /// How many there are, this one among them; 1 where it is not counted.
    threads: usize,
    counted: bool,
}

impl Waiting {
    fn begin(counted: bool) -> Self {
        // Relaxed: a number of others that is a little old makes a wait more patient or less.
        let others = if counted { WAITING.fetch_add(1, Ordering::Relaxed) } else { 0 };
        Self { threads: others + 1, counted }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if self.counted {
            WAITING.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Sleep where a wake-up could be lost.
const SHORT_SLEEP_NS: u64 = 1_000_000;
/// Sleep where it cannot: the rank looks at who is there afterwards.
const SLEEP_NS: u64 = 20_000_000;

impl Waits {
    pub(super) fn new(area: Arc<Area>, me: Rank, settings: &Settings) -> Self {
        let patience = settings.patience;
        let crowded = settings.crowd.is_some_and(|crowd| crowd.ranks > crowd.cores);
        let polls = Cell::new(patience.unwrap_or(Patience::OWN_CORE).polls);
        let pauses = pauses();
        let (said, found) = (Cell::new(None), Cell::new(None));
        let own = area.all_said(me);
        Self { area, me, own, patience, crowded, polls, pauses, progress: None, said, found }
    }

    /// Says which call this rank makes now.
    #[inline]
    pub(super) fn say(&self, said: Said) {
        // SAFETY: words of the area, which lives as long as this does; they are accessed by atomics alone.
        let own = unsafe { self.own.as_ref() };
        own[said.place()].store(said.word());
        self.said.set(Some(said));
    }

    /// The call is over.
    #[inline]
    pub(super) fn over(&self) {
        self.said.set(None);
    }

    /// What another rank was found to have said of the call, if that ended it.
    pub(super) fn found(&self) -> Option<Said> {
        self.found.take()
    }

    /// Looks whether others make another call than this rank, which then waits in vain.
    fn nobody_differs(&self) -> Result<(), Gone> {
        match self.others_differ() {
            Differing::Astray => Err(Gone::Stopped),
            Differing::Nobody | Differing::Goes(_) => Ok(()),
        }
    }

    /// What others said of the call that this rank is in. Nothing where it is in none, or they have gone on since.
    pub(super) fn others_differ(&self) -> Differing {
        let Some(mine) = self.said.get() else { return Differing::Nobody };
        let mut goes = Differing::Nobody;
        for rank in (0..self.area.ranks()).filter(|&rank| rank != self.me.0) {
            let theirs = Said::of_word(self.area.said(rank, mine).load());
            if !theirs.of_the_call(mine) || theirs == mine {
                continue;
            }
            if self.differs(mine, rank, theirs) {
                self.found.set(Some(theirs));
                return Differing::Astray;
            }
            goes = Differing::Goes(theirs.told());
        }
        goes
    }

    /// Whether this rank cannot go on with what `rank` said of the same call.
    pub(super) fn differs(&self, mine: Said, rank: u16, theirs: Said) -> bool {
        if !mine.same_collective(theirs) || mine == theirs {
            return mine != theirs;
        }
        let (kind, from_root) = (mine.kind(), rank == mine.root().0);
        if root_decides(kind) {
            // What others than the root have is their own affair.
            return from_root && self.me != mine.root();
        }
        if kind == Kind::Gather && self.me == mine.root() {
            // There may be fewer bytes than room, and what comes after them is not the call's.
            return true;
        }
        // The root takes what others give, whatever it has itself.
        let heard = root_hears(kind) && from_root && mine.told().is_in_lines();
        !heard && !mine.told().goes_with(theirs.told())
    }

    /// Waits until `rank` has come to the call of `mine`; returns what it says of it, unless it has gone on since.
    pub(super) fn until_said(&self, rank: u16, mine: Said) -> Result<Option<Said>, Gone> {
        let word = self.area.said(rank, mine);
        let mut looked = Instant::now();
        loop {
            for _ in 0..self.polls.get() {
                let said = Said::of_word(word.load());
                if said.has_come_to(mine) {
                    return Ok(said.of_the_call(mine).then_some(said));
                }
                if self.pauses {
                    between_looks();
                }
            }
            if let Some(progress) = self.progress {
                progress();
            }
            if looked.elapsed() >= NOTICE {
                looked = Instant::now();
                self.everybody_is_there()?;
            }
            give_way();
        }
    }

    /// Waits for what another rank is about to write, whatever call it makes, and never sleeps.
    pub(super) fn wait_awake(&self, word: &Word, least: u64) -> Result<(), Gone> {
        let mut looked = Instant::now();
        loop {
            for _ in 0..self.polls.get() {
                if word.load() >= least {
                    return Ok(());
                }
                if self.pauses {
                    between_looks();
                }
            }
            if looked.elapsed() >= NOTICE {
                looked = Instant::now();
                self.everybody_is_there()?;
            }
            give_way();
        }
    }

    /// Calls `progress` while nothing comes.
    pub(super) fn set_progress(&mut self, progress: Option<fn()>) {
        self.progress = progress;
    }

    fn sleepers(&self) -> &AtomicU32 {
        &self.area.header().sleepers.0
    }

    fn kernel(&self) -> Kernel {
        // Whoever has other work looks at it often.
        Kernel { sleep_ns: if self.progress.is_some() { SHORT_SLEEP_NS } else { SLEEP_NS } }
    }

    /// Publishes a value and wakes whoever sleeps.
    #[inline]
    pub(super) fn publish(&self, word: &Word, store: impl Fn(&Word)) {
        publish(&Kernel { sleep_ns: SLEEP_NS }, self.sleepers(), word, store);
    }

    /// Waits until the comparison holds.
    #[inline]
    pub(super) fn wait(&self, word: &Word, compare: Compare, value: u64) -> Result<(), Gone> {
        self.wait_with(word, compare, value, || ())
    }

    /// The same; `asking` follows each look before what was seen is known.
    #[inline]
    pub(super) fn wait_with(
        &self,
        word: &Word,
        compare: Compare,
        value: u64,
        asking: impl Fn(),
    ) -> Result<(), Gone> {
        for _ in 0..self.polls.get() {
            let seen = word.load();
            asking();
            if compare.holds(seen, value) {
                return Ok(());
            }
            if self.pauses {
                between_looks();
            }
        }
        self.patiently(word, compare, value)
    }

    /// Waits until the word holds `value`, or `over` says that this is not worth waiting for any more;
    /// returns whether it does. The rank never sleeps, so that nobody has to wake it.
    pub(super) fn wait_unless(
        &self,
        word: &Word,
        value: u64,
        over: impl Fn() -> bool,
    ) -> Result<bool, Gone> {
        let mut looked = None;
        loop {
            for _ in 0..Patience::OWN_CORE.polls {
                if word.load() == value {
                    return Ok(true);
                }
                if self.pauses {
                    between_looks();
                }
            }
            if over() {
                return Ok(false);
            }
            if looked.get_or_insert_with(Instant::now).elapsed() >= NOTICE {
                looked = None;
                self.everybody_is_there()?;
            }
            give_way();
        }
    }

    #[cold]
    #[inline(never)]
    fn patiently(&self, word: &Word, compare: Compare, value: u64) -> Result<(), Gone> {
        let kernel = self.kernel();
        let cores = self.area.header().cores();
        let waiting = Waiting::begin(self.progress.is_some());
        let ranks = usize::from(self.area.ranks()) * waiting.threads;
        let cores = if self.crowded { 0 } else { cores };
        let fitting = Patience::of(ranks, cores);
        let patience = self.patience.unwrap_or(fitting);
        self.polls.set(patience.polls);
        let mut looked = Instant::now();
        let mut round = 0_u32;
        loop {
            if compare.holds(word.load(), value) {
                return Ok(());
            }
            if let Some(progress) = self.progress {
                progress();
            }
            round = round.saturating_add(1);
            if round <= patience.rounds {
                for _ in 0..patience.polls {
                    if compare.holds(word.load(), value) {
                        return Ok(());
                    }
                    isochrone_os::pause::pause();
                }
                continue;
            }
            if (round - patience.rounds) % DIFFERS_EVERY == 1 {
                self.nobody_differs()?;
            }
            if looked.elapsed() >= NOTICE {
                looked = Instant::now();
                if let Err(gone) = self.everybody_is_there().and_then(|()| self.nobody_differs()) {
                    // It may have done its part before it ended.
                    return if compare.holds(word.load(), value) { Ok(()) } else { Err(gone) };
                }
            }
            if round - patience.rounds <= patience.yields {
                kernel.give_way();
            } else {
                sleep(&kernel, self.sleepers(), word, compare, value);
            }
        }
    }

    /// Whether nobody is known to be gone; costs one load.
    #[inline]
    pub(super) fn nobody_stopped(&self) -> Result<(), Gone> {
        // Partner: `stop`. What whoever stopped had said of its call is seen as well.
        match self.area.header().stopped.0.load(Ordering::Acquire) {
            0 => Ok(()),
            STOPPED => Err(Gone::Stopped),
            rank => Err(Gone::Rank(Rank(u16::try_from(rank - 1).unwrap_or(u16::MAX)))),
        }
    }

    /// Looks whether all ranks still sit where they sat. A rank that left in order is missed only when
    /// all others have left: until then somebody else may be meant.
    fn everybody_is_there(&self) -> Result<(), Gone> {
        if let Err(gone) = self.nobody_stopped() {
            // It may be because this rank makes another call than others, who have found that first.
            let _found = self.others_differ();
            return Err(gone);
        }
        let mut last_left = None;
        let mut others = false;
        for (rank, state) in (0..self.area.ranks()).map(Rank).zip(self.area.states()) {
            if rank == self.me {
                continue;
            }
            let now = state.load(Ordering::Acquire);
            if now == LEFT {
                last_left = Some(rank);
                continue;
            }
            others = true;
            let Some(seat) = seat_of(now) else { continue };
            let taken = self.area.is_taken(seat).unwrap_or(true);
            if !taken && state.load(Ordering::Acquire) == now {
                self.stop(Some(rank));
                return Err(Gone::Rank(rank));
            }
        }
        match last_left {
            Some(rank) if !others => Err(Gone::Rank(rank)),
            _ => Ok(()),
        }
    }

    /// Tells all ranks that one is gone, or that this one gives up.
    pub(super) fn stop(&self, gone: Option<Rank>) {
        stop(&self.area, gone);
    }
}

/// Tells all ranks of an area that one is gone, or that somebody gives up for all.
pub(super) fn stop(area: &Area, gone: Option<Rank>) {
    let why = gone.map_or(STOPPED, |rank| u32::from(rank.0) + 1);
    // The first reason stands.
    let stopped = &area.header().stopped.0;
    let _already = stopped.compare_exchange(0, why, Ordering::AcqRel, Ordering::Relaxed);
}

/// Ends all waits of a team, from any thread.
#[derive(Clone, Debug)]
pub struct Stopper(pub(super) Arc<Area>);

impl Stopper {
    /// Waits end with [`Gone::Stopped`] within some [`NOTICE`](super::NOTICE).
    pub fn stop(&self) {
        stop(&self.0, None);
    }
}
