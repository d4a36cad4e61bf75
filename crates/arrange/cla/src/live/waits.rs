//! How a rank waits: polling, then giving its core away, then asleep; and how it finds out that the
//! others are gone.

use super::area::{Area, LEFT, STOPPED, seat_of};
use super::differing::{Differing, come, differing};
use super::layout::SAID;
use super::patience::Patience;
use super::said::{Said, Told, root_decides};
use super::settings::Settings;
use super::sync::{AtomicU32, Ordering};
use super::turns::Turns;
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
    /// Whether it gives its core away or sleeps.
    turns: Turns,
    /// Called while nothing comes: the work of whoever hosts the team.
    progress: Option<fn()>,
    /// What this rank said of the call that it is in; none: it is in none.
    said: Cell<Option<Said>>,
    /// What another rank was found to have said of the same call, where they cannot both go on.
    found: Cell<Option<Said>>,
    /// Whether it is decided how this rank goes on, whatever others are found to have said.
    decided: Cell<bool>,
    /// Whether others were found to ask all to meet.
    asked: Cell<bool>,
    /// Up to which call this rank has met all others for those that left lines unsound.
    met: Cell<u64>,
    /// Whether it waits where all meet.
    meets: Cell<bool>,
    /// How often any rank has come there when this one met all others last.
    all_came: Cell<u64>,
}

// SAFETY: `own` points into the area, which this value keeps alive and which any thread may use by atomics; all else
// may go to another thread by itself.
unsafe impl Send for Waits {}

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
        let own = area.all_said(me);
        Self {
            area,
            me,
            own,
            patience,
            crowded,
            polls,
            pauses,
            turns: Turns::default(),
            progress: None,
            said: Cell::new(None),
            found: Cell::new(None),
            decided: Cell::new(false),
            asked: Cell::new(false),
            met: Cell::new(0),
            meets: Cell::new(false),
            all_came: Cell::new(0),
        }
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

    /// Another rank was found to have said this of the call.
    pub(super) fn has_found(&self, theirs: Said) {
        self.found.set(Some(theirs));
    }

    /// What another rank was found to have said of the call, if that ended it.
    pub(super) fn found(&self) -> Option<Said> {
        self.found.take()
    }

    /// What this rank said of the call that it is in.
    pub(super) fn said(&self) -> Option<Said> {
        self.said.get()
    }

    /// Whether it is decided how this rank goes on: nobody looks any more what others said.
    pub(super) fn decide(&self, decided: bool) {
        self.decided.set(decided);
    }

    /// Whether others ask all ranks to meet, if that ended a wait.
    pub(super) fn was_asked(&self) -> bool {
        self.asked.take()
    }

    /// Up to which call this rank has met all others for those that left lines unsound.
    pub(super) fn met(&self) -> u64 {
        self.met.get()
    }

    /// It has met them for all calls up to this one.
    pub(super) fn has_met(&self, since: u64) {
        self.met.set(since);
        self.asked.set(false);
    }

    /// Looks whether others make another call than this rank, or ask it to meet them: then it waits in vain.
    fn waits_in_vain(&self) -> Result<(), Gone> {
        if let Differing::Astray(_) = self.others_differ() {
            return Err(Gone::Stopped);
        }
        let Some(mine) = self.said.get() else { return Ok(()) };
        if self.meets.get() {
            // A root that does the call by other means does not come.
            let root = Said::of_word(self.area.said(mine.root().0, mine).load());
            let left = root_decides(mine.kind()) && root.of_the_call(mine);
            return if left && root.told() == Told::NONE { Err(Gone::Stopped) } else { Ok(()) };
        }
        if self.area.header().assembly.asks(mine, self.met.get()) {
            self.asked.set(true);
            return Err(Gone::Stopped);
        }
        Ok(())
    }

    /// Looks whether a rank waits for this one where all meet, after an earlier call that left lines unsound. One that
    /// does its call by other means need not come before another does.
    fn nobody_meets(&self, mine: Said) -> Result<(), Gone> {
        let assembly = &self.area.header().assembly;
        let since = assembly.unsound();
        let earlier = since > self.met.get() && mine.has_reached(since + 1);
        if earlier && assembly.came() > self.all_came.get() {
            self.asked.set(true);
            return Err(Gone::Stopped);
        }
        Ok(())
    }

    /// What others said of the call that this rank is in. Nothing where it is in none, or they have gone on since.
    pub(super) fn others_differ(&self) -> Differing {
        let mine = self.said.get().filter(|_| !self.decided.get());
        let Some(mine) = mine else { return Differing::Nobody };
        let others = (0..self.area.ranks()).filter(|&rank| rank != self.me.0);
        let others = others.map(|rank| (Rank(rank), self.area.said(rank, mine)));
        let differing = differing(mine, self.me, others);
        if let Differing::Astray(theirs) = differing {
            self.found.set(Some(theirs));
        }
        differing
    }

    /// Waits until `rank` has come to the call of `mine`; returns what it says of it, unless it has gone on since.
    pub(super) fn until_said(&self, rank: u16, mine: Said) -> Result<Option<Said>, Gone> {
        let word = self.area.said(rank, mine);
        let mut looked = Instant::now();
        loop {
            for _ in 0..self.polls.get() {
                if let Some(said) = come(word, mine) {
                    return Ok(said);
                }
                if self.pauses {
                    between_looks();
                }
            }
            if let Some(progress) = self.progress {
                progress();
            }
            self.nobody_meets(mine)?;
            if looked.elapsed() >= NOTICE {
                looked = Instant::now();
                self.everybody_is_there()?;
            }
            give_way();
        }
    }

    /// Waits until all ranks have come where they meet.
    pub(super) fn wait_for_all(&self, came: &Word, all: u64) -> Result<(), Gone> {
        // Whoever is there need not be asked.
        self.meets.set(true);
        self.all_came.set(all);
        let done = self.wait(came, Compare::AtLeast, all);
        self.meets.set(false);
        done
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
        self.turns.begins();
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
                self.waits_in_vain()?;
            }
            if looked.elapsed() >= NOTICE {
                looked = Instant::now();
                if let Err(gone) = self.everybody_is_there().and_then(|()| self.waits_in_vain()) {
                    if !compare.holds(word.load(), value) {
                        return Err(gone);
                    }
                    // It may have done its part before it ended.
                    self.found.set(None);
                    self.asked.set(false);
                    return Ok(());
                }
            }
            if round - patience.rounds <= patience.yields && !self.turns.sleeps() {
                let before = Instant::now();
                kernel.give_way();
                self.turns.came_back(before.elapsed());
            } else {
                sleep(&kernel, self.sleepers(), word, compare, value);
            }
        }
    }

    /// Whether nobody is known to be gone; costs one load.
    #[inline]
    pub(super) fn nobody_stopped(&self) -> Result<(), Gone> {
        has_stopped(&self.area.header().stopped.0)
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
    stop_by(&area.header().stopped.0, gone);
}

/// Tells by the word for it.
pub(super) fn stop_by(stopped: &AtomicU32, gone: Option<Rank>) {
    let why = gone.map_or(STOPPED, |rank| u32::from(rank.0) + 1);
    // The first reason stands.
    let _already = stopped.compare_exchange(0, why, Ordering::AcqRel, Ordering::Relaxed);
}

/// Why all have been told to stop, if they were.
#[inline]
pub(super) fn has_stopped(stopped: &AtomicU32) -> Result<(), Gone> {
    // Partner: `stop_by`. What whoever stopped had said of its call is seen as well.
    match stopped.load(Ordering::Acquire) {
        0 => Ok(()),
        STOPPED => Err(Gone::Stopped),
        rank => Err(Gone::Rank(Rank(u16::try_from(rank - 1).unwrap_or(u16::MAX)))),
    }
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
