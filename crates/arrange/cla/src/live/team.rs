//! A team: ranks that share an area and do collectives.

use super::agreed::Memory;
use super::area::{ABSENT, Area, Header, LEFT, here_at};
use super::arena::{Arena, Piece};
use super::channel::{Channel, Failed};
use super::choose::Choose;
use super::classes::{BYTES_MAX, CLASSES, class};
use super::error::{TeamError, length};
use super::kind::Kind;
use super::lines::{Buffers, Hears};
use super::openings::Openings;
use super::plain::{Number, Plain, Reduction};
use super::said::{Said, Told, moves, root_decides};
use super::settings::Settings;
use super::supply::Supply;
use super::sync::Ordering;
use super::waits::{Stopper, Waits};
use crate::collectives::PlanError;
use crate::program::{Combine, Element, Gone, Rank};
use isochrone_distance::Distances;
use isochrone_os::affinity::CoreSet;
use isochrone_os::shared::{Place, Seat, register_barriers};
use std::sync::Arc;
use std::time::{Duration, Instant};

mod apart;
mod opening;
mod single;

/// One rank of a team.
#[derive(Debug)]
pub struct Team {
    area: Arc<Area>,
    waits: Waits,
    me: Rank,
    /// By collective, class and root.
    channels: Vec<Option<Box<Channel>>>,
    supply: Supply,
    settings: Settings,
    /// Why no call can succeed any more.
    broken: Option<TeamError>,
    /// Calls so far.
    calls: u64,
    /// Room for what must not be combined in place.
    scratch: Vec<u8>,
    /// Lines that were measured so far.
    pub(super) steps: u64,
    openings: Openings,
    agreed: Memory,
    /// Whether all ranks reach each other's memory: the same on all of them; none: nobody has looked.
    reach: Option<bool>,
    /// Bytes of each collective from which on they use that.
    single_from: [usize; Kind::COUNT],
    /// What each rank gave in the last gather to this one of other bytes than it took.
    gave: Vec<u32>,
    _seat: Option<Seat>,
}

impl Team {
    /// A team of threads of this process: one value for each.
    ///
    /// # Errors
    /// [`TeamError`] where there is no shared memory.
    pub fn threads(ranks: u16, settings: &Settings) -> Result<Vec<Self>, TeamError> {
        let area = Self::founded(ranks, Rank(0), settings)?;
        (0..ranks)
            .map(|rank| Self::seated(Arc::clone(&area), Rank(rank), settings.clone()))
            .collect()
    }

    /// Makes a team and joins it as `rank`. The others [join](Self::join) at the place returned, as
    /// long as this value lives.
    ///
    /// # Errors
    /// [`TeamError`] where there is no shared memory, or for a rank that the team does not have.
    pub fn found(ranks: u16, rank: Rank, settings: Settings) -> Result<(Self, Place), TeamError> {
        let area = Self::founded(ranks, rank, &settings)?;
        let place = area.shared().place();
        Ok((Self::seated(area, rank, settings)?, place))
    }

    /// Joins a team of another process as `rank`.
    ///
    /// # Errors
    /// [`TeamError`] where the team is not to be had, or the rank is taken.
    pub fn join(place: Place, rank: Rank, settings: Settings) -> Result<Self, TeamError> {
        Self::seated(Arc::new(Area::open(place)?), rank, settings)
    }

    /// Joins a team of `ranks` ranks as `rank`, in a piece of an arena that one of them took. When all its ranks have
    /// dropped it, the piece serves another team. Lines beyond the piece are taken as calls need them. Where the arena
    /// has no more, a call fails on all ranks alike with [`TeamError::Full`], at once when it is made again; lines of
    /// earlier collectives are had again at most once for some ten thousand calls.
    ///
    /// # Errors
    /// [`TeamError`] for a rank that the team does not have, or one that is taken.
    pub fn within(
        arena: &Arc<Arena>,
        piece: Piece,
        ranks: u16,
        rank: Rank,
        settings: Settings,
    ) -> Result<Self, TeamError> {
        Self::seated(Arc::new(Area::within(arena, piece, ranks)?), rank, settings)
    }

    /// An area for a team in which `rank` chooses, if it has distances to choose by.
    fn founded(ranks: u16, rank: Rank, settings: &Settings) -> Result<Arc<Area>, TeamError> {
        let area = Area::create(ranks, settings.lines(ranks))?;
        if settings.distances.is_some() {
            area.header().agreed.chosen_by(rank);
        }
        Ok(Arc::new(area))
    }

    fn seated(area: Arc<Area>, me: Rank, settings: Settings) -> Result<Self, TeamError> {
        let ranks = area.ranks();
        if me.0 >= ranks {
            return Err(TeamError::Rank { rank: me, ranks });
        }
        // A process has one seat in an arena, whatever teams it is in.
        let (seat, number) = match area.arena() {
            Some(arena) => (None, arena.seat()),
            None => {
                let seat = area.shared().sit(u32::from(me.0))?;
                (Some(seat.ok_or(TeamError::Taken(me))?), u32::from(me.0))
            }
        };
        let (state, here) = (&area.states()[me.index()], here_at(number));
        if state.compare_exchange(ABSENT, here, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            return Err(TeamError::Taken(me));
        }
        match area.arena() {
            Some(arena) => area.header().may_run_on(arena.cores().iter().copied()),
            None => {
                // Without it sleeps are short.
                let _registered = register_barriers();
                if let Ok(cores) = CoreSet::of_this_thread() {
                    area.header().may_run_on(cores.iter());
                }
            }
        }
        let waits = Waits::new(Arc::clone(&area), me, &settings);
        area.header().here.0.fetch_add(1, Ordering::AcqRel);
        let channels = Kind::COUNT * CLASSES.len() * usize::from(ranks);
        let reach = area.arena().filter(|arena| arena.has_reach()).map(|_| true);
        let single_from = [settings.single_from(); Kind::COUNT];
        Ok(Self {
            waits,
            me,
            channels: (0..channels).map(|_| None).collect(),
            supply: Supply::new(area.lines(), area.ordered().as_deref()),
            settings,
            broken: None,
            calls: 0,
            scratch: Vec::new(),
            steps: 0,
            openings: Openings::default(),
            agreed: Memory::default(),
            reach,
            single_from,
            gave: Vec::new(),
            _seat: seat,
            area,
        })
    }

    /// Waits until all ranks have come.
    ///
    /// # Errors
    /// [`TeamError::Late`] after `limit`.
    pub fn await_all(&self, limit: Duration) -> Result<(), TeamError> {
        let begin = Instant::now();
        let ranks = self.area.ranks();
        loop {
            let here = self.area.header().here.0.load(Ordering::Acquire);
            let here = u16::try_from(here).unwrap_or(u16::MAX);
            if here >= ranks {
                return Ok(());
            }
            if begin.elapsed() >= limit {
                let missing = ranks - here;
                return Err(TeamError::Late { missing, ranks, seconds: limit.as_secs() });
            }
            std::thread::sleep(Duration::from_micros(100));
        }
    }

    /// This rank.
    #[must_use]
    pub const fn rank(&self) -> Rank {
        self.me
    }

    /// How many ranks.
    #[must_use]
    pub fn ranks(&self) -> u16 {
        self.area.ranks()
    }

    /// Calls `progress` while this rank waits.
    pub fn set_progress(&mut self, progress: Option<fn()>) {
        self.waits.set_progress(progress);
    }

    /// Copies `data` of `root` to everybody.
    ///
    /// # Errors
    /// [`TeamError`] for a root that is no rank, and when a rank has ended.
    #[inline]
    pub fn broadcast<T: Plain>(&mut self, data: &mut [T], root: Rank) -> Result<(), TeamError> {
        let bytes = size_of_val(data);
        let first = data.as_mut_ptr().cast::<u8>();
        // SAFETY: `data` holds that many bytes, exclusively, and every bit pattern is a `T`.
        unsafe { self.call(Kind::Broadcast, root, bytes, NOTHING, first, first) }
    }

    /// Returns when everybody has called it.
    ///
    /// # Errors
    /// [`TeamError`] when a rank has ended.
    #[inline]
    pub fn barrier(&mut self) -> Result<(), TeamError> {
        let none = std::ptr::dangling_mut::<u8>();
        // SAFETY: a barrier moves no bytes.
        unsafe { self.call(Kind::Barrier, Rank(0), 0, NOTHING, none, none) }
    }

    /// Combines everybody's `data` into `result` of `root`; other ranks give an empty `result`.
    ///
    /// # Errors
    /// [`TeamError`] for a root that is no rank, a `result` of the wrong length, and when a rank has
    /// ended.
    #[inline]
    pub fn reduce<T: Number>(
        &mut self,
        reduction: Reduction,
        data: &[T],
        result: &mut [T],
        root: Rank,
    ) -> Result<(), TeamError> {
        let need = if self.me == root { data.len() } else { 0 };
        length("the result of a reduction", need, result.len())?;
        let combine = reduction.of(T::ELEMENT);
        let (send, receive) = (data.as_ptr().cast(), result.as_mut_ptr().cast());
        // SAFETY: `data` holds that many bytes, and so does `result` at the root, the only rank whose
        // `Receive` a reduction touches.
        unsafe { self.call(Kind::Reduce, root, size_of_val(data), combine, send, receive) }
    }

    /// Combines everybody's `data` into everybody's `result`, with the same bits for all.
    ///
    /// # Errors
    /// [`TeamError`] for a `result` of the wrong length, and when a rank has ended.
    #[inline]
    pub fn allreduce<T: Number>(
        &mut self,
        reduction: Reduction,
        data: &[T],
        result: &mut [T],
    ) -> Result<(), TeamError> {
        length("the result of a reduction", data.len(), result.len())?;
        let combine = reduction.of(T::ELEMENT);
        let (send, receive) = (data.as_ptr().cast(), result.as_mut_ptr().cast());
        // SAFETY: both hold that many bytes.
        unsafe { self.call(Kind::Allreduce, Rank(0), size_of_val(data), combine, send, receive) }
    }

    /// Gives block `r` of `root`'s `data` to rank `r`; other ranks give an empty `data`.
    ///
    /// # Errors
    /// [`TeamError`] for a root that is no rank, `data` of the wrong length, and when a rank has ended.
    #[inline]
    pub fn scatter<T: Plain>(
        &mut self,
        data: &[T],
        block: &mut [T],
        root: Rank,
    ) -> Result<(), TeamError> {
        let need = if self.me == root { block.len() * usize::from(self.ranks()) } else { 0 };
        length("what is scattered", need, data.len())?;
        let (send, receive) = (data.as_ptr().cast(), block.as_mut_ptr().cast());
        // SAFETY: `block` holds that many bytes, and `data` as many for each rank at the root.
        unsafe { self.call(Kind::Scatter, root, size_of_val(block), NOTHING, send, receive) }
    }

    /// Puts everybody's `block` into `data` of `root`, in the order of ranks; other ranks give an empty
    /// `data`.
    ///
    /// # Errors
    /// [`TeamError`] for a root that is no rank, `data` of the wrong length, and when a rank has ended.
    #[inline]
    pub fn gather<T: Plain>(
        &mut self,
        block: &[T],
        data: &mut [T],
        root: Rank,
    ) -> Result<(), TeamError> {
        let need = if self.me == root { block.len() * usize::from(self.ranks()) } else { 0 };
        length("what is gathered", need, data.len())?;
        let (send, receive) = (block.as_ptr().cast(), data.as_mut_ptr().cast());
        // SAFETY: `block` holds that many bytes, and `data` as many for each rank at the root.
        unsafe { self.call(Kind::Gather, root, size_of_val(block), NOTHING, send, receive) }
    }

    /// Puts everybody's `block` into everybody's `data`, in the order of ranks.
    ///
    /// # Errors
    /// [`TeamError`] for `data` of the wrong length, and when a rank has ended.
    #[inline]
    pub fn allgather<T: Plain>(&mut self, block: &[T], data: &mut [T]) -> Result<(), TeamError> {
        length("what is gathered", block.len() * usize::from(self.ranks()), data.len())?;
        let (send, receive) = (block.as_ptr().cast(), data.as_mut_ptr().cast());
        // SAFETY: `block` holds that many bytes, and `data` as many for each rank.
        unsafe { self.call(Kind::Allgather, Rank(0), size_of_val(block), NOTHING, send, receive) }
    }

    /// Bytes that each rank gave in the last gather to this one that ended by [`TeamError::Unlike`] with another rank's
    /// bytes. As many of them as there is room for are at its place.
    #[must_use]
    pub fn gave(&self) -> &[u32] {
        &self.gave
    }

    /// Any collective, over bytes. `combine` matters to those that combine, `root` to those that have
    /// one.
    ///
    /// # Errors
    /// [`TeamError`] for a root that is no rank, bytes that are no whole elements, and when a rank has
    /// ended. A channel that cannot be opened fails on all ranks alike.
    ///
    /// # Safety
    /// `send` and `receive` are valid for the bytes that [`crate::collectives::Plan::buffers`] says, the first for
    /// reads and the second for reads and writes, by nobody else meanwhile. They are the same memory or do not
    /// overlap; in allgather `send` may also be this rank's block of `receive`.
    #[inline]
    pub unsafe fn call(
        &mut self,
        kind: Kind,
        root: Rank,
        bytes: usize,
        combine: Combine,
        send: *const u8,
        receive: *mut u8,
    ) -> Result<(), TeamError> {
        if self.is_single(kind, bytes) {
            // SAFETY: the caller vouches for the buffers.
            return unsafe { self.single(kind, root, bytes, send, receive) };
        }
        let said = self.begin(kind, root, Told::of(bytes))?;
        if self.openings.due {
            self.begin_anew()?;
        }
        let (hears, ends) = (hears(kind, self.me == root), Ends { send, receive, bytes });
        loop {
            // SAFETY: the caller vouches for the buffers.
            let done = unsafe { self.once(kind, said, ends, combine, hears) };
            if done.is_ok() {
                self.waits.over();
                return Ok(());
            }
            // SAFETY: as above.
            let told = unsafe { self.ended(done, said, ends) };
            if !std::mem::take(&mut self.openings.anew) {
                return told;
            }
        }
    }

    /// Begins a call: counts it, and says what it is.
    #[inline]
    fn begin(&mut self, kind: Kind, root: Rank, told: Told) -> Result<Said, TeamError> {
        if let Some(why) = &self.broken {
            return Err(why.clone());
        }
        self.check_root(root)?;
        self.calls += 1;
        self.openings.last = None;
        let said = Said::new(self.calls, kind, root, told);
        self.waits.say(said);
        Ok(said)
    }

    /// One call by the lines of the collective `kind`, of what was `said`, whatever others do.
    ///
    /// # Safety
    /// As for [`Self::call`] of `kind`.
    #[inline]
    unsafe fn once(
        &mut self,
        kind: Kind,
        said: Said,
        ends: Ends,
        combine: Combine,
        hears: Hears,
    ) -> Result<(), Failed> {
        let Ends { mut send, receive, bytes } = ends;
        let ranks = self.ranks();
        let all = bytes.saturating_mul(usize::from(ranks));
        if all > BYTES_MAX {
            return Err(TeamError::Bytes(all).into());
        }
        let index = self.opened(kind, said.root(), bytes)?;
        let Some(channel) = &mut self.channels[index] else {
            return Err(TeamError::Foreign.into());
        };
        let whole = u32::try_from(bytes).unwrap_or(0);
        if send == receive.cast_const() && !channel.in_place() {
            let touched = kind.touched(self.me == said.root()).send;
            let given = touched.bytes(whole, ranks) as usize;
            self.scratch.resize(given, 0);
            // SAFETY: the caller vouches for what `send` has of it, and the scratch is this team's own.
            unsafe { std::ptr::copy_nonoverlapping(send, self.scratch.as_mut_ptr(), given) };
            send = self.scratch.as_ptr();
        }
        let buffers = Buffers { send, receive, bytes: all };
        Ok(channel.call(whole, combine, &self.waits, buffers, said, hears)?)
    }

    /// The number of the channel that such calls take; opens it the first time.
    #[inline]
    fn opened(&mut self, kind: Kind, root: Rank, bytes: usize) -> Result<usize, TeamError> {
        let ranks = self.ranks();
        let class = class(bytes);
        let index = (kind as usize * CLASSES.len() + class) * usize::from(ranks) + root.index();
        if self.channels[index].is_none() {
            self.open(kind, root, bytes, index)?;
        }
        Ok(index)
    }

    /// Refuses a root that is no rank.
    #[inline]
    pub(super) fn check_root(&self, root: Rank) -> Result<(), TeamError> {
        let ranks = self.ranks();
        if root.0 < ranks { Ok(()) } else { Err(PlanError::Root { root: root.0, ranks }.into()) }
    }

    /// Whether lines have been handed out.
    pub(super) fn has_begun(&self) -> bool {
        self.channels.iter().any(Option::is_some)
    }

    /// The area, and how this rank waits.
    pub(super) fn parts(&self) -> (&Area, &Waits) {
        (&self.area, &self.waits)
    }

    /// What ends all waits of this team.
    pub(super) fn stopper(&self) -> Stopper {
        Stopper(Arc::clone(&self.area))
    }

    pub(super) const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The area, shared.
    pub(super) const fn area(&self) -> &Arc<Area> {
        &self.area
    }

    /// The area, and what this rank remembers of what was agreed on.
    pub(super) fn agreed(&mut self) -> (&Area, &mut Memory) {
        (&self.area, &mut self.agreed)
    }

    /// What this rank was given to choose by.
    pub(super) fn distances(&self) -> Option<Arc<dyn Distances + Send + Sync>> {
        self.settings.distances.clone()
    }

    /// From now on no call can succeed.
    pub(super) fn gone(&mut self, gone: Gone) -> TeamError {
        let gone = TeamError::Gone(gone);
        self.broken = Some(gone.clone());
        gone
    }

    /// Which trees and chunks.
    pub(super) fn choose(&self) -> &dyn Choose {
        &*self.settings.choose
    }

    /// Hands out pairs of lines in this order from now on.
    pub(super) fn take_lines_by(&mut self, order: &[u32]) {
        self.supply = Supply::new(self.area.lines(), Some(order));
    }

    /// The channel that such calls use, and how this rank waits.
    pub(super) fn channel_of(
        &mut self,
        kind: Kind,
        root: Rank,
        bytes: usize,
    ) -> Result<(&Area, &Waits, &Channel), TeamError> {
        self.check_root(root)?;
        let index = self.opened(kind, root, bytes)?;
        let Some(channel) = &self.channels[index] else { return Err(TeamError::Foreign) };
        Ok((&self.area, &self.waits, channel))
    }

    /// Tells all ranks that this one gives up: their waits end with an error.
    pub fn stop(&mut self) {
        self.waits.stop(None);
        self.broken = Some(Gone::Stopped.into());
    }

    fn header(&self) -> &Header {
        self.area.header()
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.waits.stop(Some(self.me));
        } else if self.openings.due {
            // Others are to meet, and this rank does not come.
            self.waits.stop(None);
        }
        let (flags, run, lines) = self.supply.used();
        self.area.had_used(flags, run, lines);
        // Partner: whoever looks who is there.
        self.area.states()[self.me.index()].store(LEFT, Ordering::Release);
    }
}

/// What a rank does in a call with messages of other bytes than its own.
#[inline]
fn hears(kind: Kind, is_root: bool) -> Hears {
    let follows = if is_root { kind == Kind::Gather } else { root_decides(kind) };
    if follows { Hears::Follows } else { Hears::Tells }
}

/// The buffers of a call, and its bytes.
#[derive(Clone, Copy, Debug)]
struct Ends {
    send: *const u8,
    receive: *mut u8,
    bytes: usize,
}

impl Ends {
    /// No room for any byte.
    const NONE: Self = Self { send: std::ptr::null(), receive: std::ptr::null_mut(), bytes: 0 };

    /// Whether a call that was begun may have put what it gets where what it gives was.
    fn are_spoilt(self, kind: Kind) -> bool {
        let keeps = !matches!(kind, Kind::Alltoall) && moves(kind);
        self.send == self.receive.cast_const() && !keeps && kind != Kind::Barrier
    }
}

/// What collectives that combine nothing are given; they never look at it.
const NOTHING: Combine = Combine::Sum(Element::I32);
