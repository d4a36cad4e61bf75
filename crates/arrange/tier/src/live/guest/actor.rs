//! One handler's operations on private memory of its process.
//!
//! A page that leaves is moved by the kernel to a page of the handler's own, whole: from then on nobody reaches it by
//! its old address, and one that a device is still to write to is refused (`EBUSY`) and stays. So nothing is write-
//! protected, and what a device writes is never lost. Pages that may not be written are not moved; they are copied,
//! since nobody writes there, under a lock of those who change permissions.

use core::cell::{Cell, RefCell};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::Arc;

use isochrone_os::OsError;
use isochrone_os::affinity::gettid;
use isochrone_os::area::Window;
use isochrone_os::futex::{self, Scope};
use isochrone_os::pause::pause;
use isochrone_os::space::Space as Memory;
use isochrone_os::thread::{give_way, say_apart};
use isochrone_os::userfault::Notice;
use isochrone_units::PAGE_BYTES;

use super::errno;
use super::ground::Ground;
use super::places::Place;
use super::record::Word;
use super::steps::{Steps, part_of};
use crate::live::far::{Part, Scratch};
use crate::live::handler::say_line;
use crate::live::operations::{ZEROS, refused};
use crate::names::{Actor, Group, Run, Space};
use crate::pager::{BATCH_MOST, Caller};
use crate::pages::{Event, Fetch, Pages, Trouble, Wish};

/// A wait ends by itself after this.
const WAIT_NS: u64 = 20_000_000;
/// Looks at a word before sleeping.
const SPINS: u32 = 100;
/// Said before the process ends: what it held cannot be put where the program looks for it.
const LOST: &[u8] = b"isochrone: pages cannot be moved back to where they were; the program ends\n";
/// The program was told by a line that what is to leave cannot.
static EXCEEDED: AtomicBool = AtomicBool::new(false);
/// Unmapped ranges, and faults with them, that a handler keeps while it cannot answer. Of faults as many
/// as threads that may wait: who is woken to wait again comes before what is unmapped, and would keep it from being
/// heard.
const UNMAPPED_KEPT: usize = 16;
const FAULTS_KEPT: usize = 1024;
/// Beside these what moved, which is never more ([`super::places`]).
const KEPT_MOST: usize = FAULTS_KEPT + 64;
/// Tries to move what the kernel is at itself.
const TRIES: u32 = 200;

/// What one handler works with. It never ends.
#[derive(Debug)]
pub(super) struct Hand {
    pub(super) ground: Arc<Ground>,
    pub(super) caller: Caller,
    /// Offset of its own pages among those of all handlers.
    bench: usize,
    bounce: Memory,
    scratch: RefCell<Scratch>,
    /// What was taken out of the area by copying it, so that it need not be freed again.
    taken: Cell<Option<Run>>,
    /// What it heard while it could not answer.
    kept: RefCell<Vec<Notice>>,
}

impl Hand {
    pub(super) fn new(ground: &Arc<Ground>, number: u16) -> Result<Self, OsError> {
        Ok(Self {
            ground: ground.clone(),
            caller: Caller { actor: Actor(number), space: Space(0), worker: u32::from(number) },
            bench: Ground::bench_of(number),
            bounce: Memory::new(BATCH_MOST as usize * PAGE_BYTES, false)?,
            scratch: RefCell::new(ground.far.scratch()?),
            taken: Cell::new(None),
            kept: RefCell::new(Vec::with_capacity(KEPT_MOST)),
        })
    }

    /// Says that it works in the calling thread.
    pub(super) fn settle(&self) {
        self.ground.places.serve(self.caller.actor.0, gettid().0);
    }

    /// What the kernel told, the earliest first.
    pub(super) fn hear(&self) -> Option<Notice> {
        let kept = &mut self.kept.borrow_mut();
        if kept.is_empty() {
            return self.ground.places.hear(&self.ground.table, &self.ground.book);
        }
        Some(kept.remove(0))
    }

    /// The kernel refuses for now: others go on first. Where the program unmaps or moves something, that is until
    /// somebody hears of it, behind all faults.
    fn again(&self, steps: &mut Steps) {
        steps.tries += 1;
        let ground = &self.ground;
        if ground.places.are_told()
            && let Some(heard) = ground.places.hear(&ground.table, &ground.book)
        {
            // At once: who unmaps goes on, and may be back soon.
            return self.keep(heard);
        }
        give_way();
    }

    /// Keeps what cannot be answered now.
    fn keep(&self, heard: Notice) {
        let kept = &mut self.kept.borrow_mut();
        match heard {
            Notice::Fault(fault) if kept.len() >= FAULTS_KEPT => {
                // It comes again.
                let page = fault.address / PAGE_BYTES * PAGE_BYTES;
                let _ = self.ground.table.wake(page, PAGE_BYTES);
            }
            // What is nobody's any more leaves in its turn.
            Notice::Unmapped(_) if kept.len() >= UNMAPPED_KEPT => {}
            // Its pages have a mark, at which every handler looks next.
            Notice::Emptied(_) => {}
            heard => kept.push(heard),
        }
    }

    const fn part(run: Run) -> Part {
        Part::owned(run.first.index() * PAGE_BYTES, run.groups as usize * PAGE_BYTES)
    }

    fn bench(&self) -> usize {
        self.ground.own.as_ptr().expose_provenance() + self.bench
    }

    /// Takes a run out of the area and writes it to the far tier; where that cannot be, it is in the area as it was.
    fn take(&self, run: Run) -> Result<(), Trouble> {
        let (mut at, end) = (run.first.0, run.first.0 + run.groups);
        while at < end {
            let first = Group(at);
            let plain = |group: Group| self.ground.book.of(group.index()).is_plain();
            let alike = (at..end).take_while(|next| plain(Group(*next)) == plain(first)).count();
            let part = Run { first, groups: u32::try_from(alike).unwrap_or(1) };
            let done = if plain(first) { self.take_moved(part) } else { self.take_copied(part) };
            if let Err(trouble) = done {
                self.ground.patience.lose(run.groups);
                self.ground.tally.add(Word::Vain, u64::from(run.groups));
                // Those before it are in the far tier alone, as its newest.
                self.put_back(Run { first: run.first, groups: at - run.first.0 });
                return Err(trouble);
            }
            at += part.groups;
        }
        self.taken.set(Some(run));
        Ok(())
    }

    /// What is not put back would read as zeros.
    fn put_back(&self, run: Run) {
        if run.groups > 0 && self.bring(run, true).is_err() {
            say_apart(LOST);
            std::process::abort();
        }
    }

    fn take_moved(&self, run: Run) -> Result<(), Trouble> {
        let bytes = run.groups as usize * PAGE_BYTES;
        let mut steps = Steps::new(bytes);
        let moved = self.lift(run, &mut steps);
        let written = moved.and_then(|()| self.write(run, self.bench()));
        if written.is_ok() {
            // What cannot be freed is no reason to lose what it held: the far tier has it.
            return self.free(0, bytes).inspect_err(|_| self.put_back(run));
        }
        if self.lower(run, steps.done).is_err() {
            say_apart(LOST);
            std::process::abort();
        }
        written
    }

    /// Frees pages of the handler's own, whose content nobody needs.
    fn free(&self, done: usize, bytes: usize) -> Result<(), Trouble> {
        let at = self.bench + done;
        let emptied = |pages: &Window| {
            // SAFETY: pages of the handler alone, whose content is in the far tier, or nobody's.
            unsafe { pages.empty(at, bytes) }.map_err(|errno| refused("free pages", errno))
        };
        let Some(bin) = &self.ground.bin else { return emptied(&self.ground.own) };
        let from = self.ground.own.as_ptr().expose_provenance() + at;
        let to = bin.pages.as_ptr().expose_provenance() + at;
        let mut steps = Steps::new(bytes);
        while let Some((done, step)) = steps.next() {
            let (moved, error) = bin.table.move_pages(to + done, from + done, step);
            match steps.noted(moved, error) {
                None => {}
                Some(errno::ENOENT) => steps.pass(PAGE_BYTES),
                Some(errno::EAGAIN | errno::EBUSY) => self.again(&mut steps),
                Some(errno) => return Err(refused("move a page", errno)),
            }
        }
        emptied(&bin.pages)
    }

    /// Makes a page this process's alone that a child of it may have, too. What is about to be freed is no page any
    /// more, and who touched it would wait for itself.
    fn unshare(&self, run: Run, done: usize) {
        let heard = self.ground.places.fixed();
        let page = part_of(run, done, PAGE_BYTES);
        if heard.of(&self.ground.book, page).0 == Place::Here {
            let _ = self.ground.window.unshare(page.first.index() * PAGE_BYTES, PAGE_BYTES);
        }
    }

    /// Moves pages of the area to the handler's own. What was not there becomes zeros there.
    fn lift(&self, run: Run, steps: &mut Steps) -> Result<(), Trouble> {
        while let Some((done, step)) = steps.next() {
            let to = self.bench() + done;
            let heard = self.ground.places.fixed();
            let (place, alike) = heard.of(&self.ground.book, part_of(run, done, step));
            let (step, from) =
                (alike as usize * PAGE_BYTES, self.ground.address_of(run.first) + done);
            match place {
                Place::Here => {}
                Place::Gone => {
                    // Zeros may have to wait until something is heard.
                    drop(heard);
                    self.zero(to)?;
                    steps.pass(PAGE_BYTES);
                    continue;
                }
                Place::Emptied => {
                    self.ground.places.want();
                    return Err(refused("move a page", errno::EBUSY));
                }
                Place::Moved(_) => return Err(refused("move a page", errno::EBUSY)),
            }
            let (moved, error) = self.ground.table.move_pages(to, from, step);
            drop(heard);
            match steps.noted(moved, error) {
                None => {}
                Some(errno::EAGAIN) if steps.tries < TRIES => self.again(steps),
                Some(errno::EINVAL) if step > PAGE_BYTES => steps.singly(),
                Some(errno::ENOENT) => {
                    self.zero(to)?;
                    steps.pass(PAGE_BYTES);
                }
                Some(errno::EBUSY) if steps.tries == 0 => {
                    // Where no child has it, a device does.
                    self.unshare(run, done);
                    steps.tries += 1;
                }
                Some(errno) => return Err(refused("move a page", errno)),
            }
        }
        Ok(())
    }

    /// Lets a page of the handler's own be zeros.
    fn zero(&self, page: usize) -> Result<(), Trouble> {
        let mut steps = Steps::new(PAGE_BYTES);
        while steps.next().is_some() {
            // SAFETY: a page of zeros, for the handler's own page.
            let (zeroed, error) =
                unsafe { self.ground.table.copy(page, ZEROS.as_ptr(), PAGE_BYTES, false) };
            match steps.noted(zeroed, error) {
                None => {}
                Some(errno::EAGAIN) => self.again(&mut steps),
                Some(errno) => return Err(refused("move a page", errno)),
            }
        }
        Ok(())
    }

    /// Moves what is on the handler's own pages back to where it was. What must be put back is tried for ever where the
    /// kernel is at it.
    fn lower(&self, run: Run, bytes: usize) -> Result<(), Trouble> {
        let mut steps = Steps::new(bytes);
        while let Some((done, step)) = steps.next() {
            let heard = self.ground.places.fixed();
            let (place, alike) = heard.of(&self.ground.book, part_of(run, done, step));
            let (step, from) = (alike as usize * PAGE_BYTES, self.bench() + done);
            let to = match place {
                Place::Here => self.ground.address_of(run.first) + done,
                Place::Moved(to) => to,
                Place::Gone | Place::Emptied => {
                    drop(heard);
                    self.free(done, PAGE_BYTES)?;
                    steps.pass(PAGE_BYTES);
                    continue;
                }
            };
            let (moved, error) = self.ground.table.move_pages(to, from, step);
            drop(heard);
            match steps.noted(moved, error) {
                None => {}
                Some(errno::ENOENT) => steps.pass(PAGE_BYTES),
                // A device that was to read them lets them go a moment after it has said that it is done.
                Some(errno::EAGAIN | errno::EBUSY) => self.again(&mut steps),
                Some(errno::EINVAL) if step > PAGE_BYTES => steps.singly(),
                Some(errno) => return Err(refused("move a page back", errno)),
            }
        }
        Ok(())
    }

    fn take_copied(&self, run: Run) -> Result<(), Trouble> {
        let ground = &self.ground;
        let bytes = run.groups as usize * PAGE_BYTES;
        let _reading = ground.reading();
        let is_read_only = |group: Group| ground.book.of(group.index()).is_read_only();
        if !run.iter().all(is_read_only) {
            return Err(refused("copy a page that may be written", errno::EBUSY));
        }
        let at = run.first.index() * PAGE_BYTES;
        let from = ground.window.as_ptr().wrapping_add(at);
        // SAFETY: the groups belong to the caller and are in memory, may be read as long as the lock is held, and the
        // buffer is that long.
        unsafe { std::ptr::copy_nonoverlapping(from, self.bounce.as_ptr(), bytes) };
        self.write(run, self.bounce.as_ptr().expose_provenance())?;
        // SAFETY: what the pages hold is in the far tier, and nobody could write there meanwhile.
        unsafe { ground.window.empty(at, bytes) }.map_err(|errno| refused("free pages", errno))
    }

    fn write(&self, run: Run, from: usize) -> Result<(), Trouble> {
        let bytes = run.groups as usize * PAGE_BYTES;
        let from: *const u8 = std::ptr::with_exposed_provenance(from);
        // SAFETY: the handler's own pages or buffer, at least so long.
        let bytes = unsafe { std::slice::from_raw_parts(from, bytes) };
        let scratch = &mut self.scratch.borrow_mut();
        let written = self.ground.far.write(&Self::part(run), bytes, scratch);
        written.inspect_err(|trouble| {
            if !EXCEEDED.swap(true, Ordering::Relaxed) {
                say_line(
                    say_apart,
                    format_args!("isochrone: pages stay in memory beyond the limit: {trouble}"),
                );
            }
        })
    }

    /// Puts a run into memory; what is there stays.
    fn bring(&self, run: Run, stored: bool) -> Result<(), Trouble> {
        let bytes = run.groups as usize * PAGE_BYTES;
        let from: *const u8 = match self.ground.far.place(&Self::part(run)) {
            _ if !stored => std::ptr::null(),
            Some(place) => place?,
            None => {
                let to = self.bounce.as_ptr();
                // SAFETY: the handler's own buffer, which is that long.
                let buffer = unsafe { std::slice::from_raw_parts_mut(to, bytes) };
                let scratch = &mut self.scratch.borrow_mut();
                self.ground.far.read(&Self::part(run), buffer, scratch)?;
                to
            }
        };
        let mut steps = Steps::new(bytes);
        while let Some((done, step)) = steps.next() {
            let heard = self.ground.places.fixed();
            let (place, alike) = heard.of(&self.ground.book, part_of(run, done, step));
            let step = alike as usize * PAGE_BYTES;
            let to = match place {
                Place::Here => self.ground.address_of(run.first) + done,
                Place::Moved(to) => to,
                Place::Gone | Place::Emptied => {
                    steps.pass(PAGE_BYTES);
                    continue;
                }
            };
            let (from, most) = if stored {
                (from.wrapping_add(done), step)
            } else {
                (ZEROS.as_ptr(), step.min(ZEROS.len()))
            };
            // SAFETY: the source has `most` bytes; the groups belong to the caller, and this is what they held.
            let (copied, error) = unsafe { self.ground.table.copy(to, from, most, false) };
            drop(heard);
            match steps.noted(copied, error) {
                None => {}
                Some(errno::EAGAIN) => self.again(&mut steps),
                Some(errno::ENOENT | errno::EINVAL) if most > PAGE_BYTES => steps.singly(),
                // It is there; or the program mapped something else there behind our back.
                Some(errno::EEXIST | errno::ENOENT) => steps.pass(PAGE_BYTES),
                Some(errno) => return Err(refused("give memory to the fast tier", errno)),
            }
        }
        Ok(())
    }
}

impl Pages for Hand {
    async fn protect(&self, _: Run, _: Space) -> Result<(), Trouble> {
        Ok(())
    }

    async fn copy_out(&self, run: Run) -> Result<(), Trouble> {
        self.take(run)
    }

    async fn punch(&self, run: Run) -> Result<(), Trouble> {
        if self.taken.take() == Some(run) {
            return Ok(());
        }
        let mut steps = Steps::new(run.groups as usize * PAGE_BYTES);
        while let Some((done, step)) = steps.next() {
            let heard = self.ground.places.fixed();
            let (place, alike) = heard.of(&self.ground.book, part_of(run, done, step));
            let (at, bytes) = (run.first.index() * PAGE_BYTES + done, alike as usize * PAGE_BYTES);
            if place == Place::Here {
                // SAFETY: the groups belong to the caller, and what they hold is worth nothing.
                unsafe { self.ground.window.empty(at, bytes) }
                    .map_err(|errno| refused("free pages", errno))?;
            }
            steps.pass(bytes);
        }
        Ok(())
    }

    async fn fill(&self, run: Run, fetch: Fetch) -> Result<(), Trouble> {
        self.bring(run, fetch.stored)?;
        let word = if fetch.stored { Word::Fetched } else { Word::Zeroed };
        self.ground.tally.add(word, u64::from(run.groups));
        Ok(())
    }

    async fn map(&self, group: Group, _: Space, _: bool) -> Result<(), Trouble> {
        // It is there, unless the program let the kernel free it behind our back: then it is zeros.
        self.bring(Run::of(group), false)
    }

    async fn wait(&self, word: &AtomicU32, value: u32) {
        for _ in 0..SPINS {
            if word.load(Ordering::Acquire) != value {
                return;
            }
            pause();
        }
        let _ = futex::wait(word, value, Some(WAIT_NS), Scope::Process);
    }

    fn wake(&self, word: &AtomicU32) {
        let _ = futex::wake(word, u32::MAX >> 1, Scope::Process);
    }

    fn is_dead(&self, _: Actor) -> bool {
        false
    }

    fn somebody_died(&self) -> bool {
        false
    }

    fn wish(&self, _: Wish) {}

    fn forget(&self, run: Run) {
        self.ground.far.forget(&Self::part(run));
    }

    fn count(&self, event: Event, times: u32) {
        if event == Event::Evicted {
            self.ground.tally.add(Word::Evicted, u64::from(times));
            self.ground.note_far();
        }
    }
}
