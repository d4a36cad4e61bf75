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
use isochrone_os::futex::{self, Scope};
use isochrone_os::pause::pause;
use isochrone_os::space::Space as Memory;
use isochrone_os::thread::{give_way, say_apart};
use isochrone_units::PAGE_BYTES;

use super::errno;
use super::ground::Ground;
use super::record::Word;
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
        })
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
        let from = self.ground.address_of(run.first);
        let mut steps = Steps::new(bytes);
        let moved = self.lift(from, &mut steps);
        let written = moved.and_then(|()| self.write(run, self.bench()));
        if written.is_ok() {
            // SAFETY: the handler's own pages, whose content is in the far tier.
            let emptied = unsafe { self.ground.own.empty(self.bench, bytes) };
            return emptied.map_err(|errno| refused("free pages", errno));
        }
        if self.lower(from, steps.done).is_err() {
            say_apart(LOST);
            std::process::abort();
        }
        written
    }

    /// Moves pages of the area to the handler's own. What was not there becomes zeros there.
    fn lift(&self, from: usize, steps: &mut Steps) -> Result<(), Trouble> {
        while let Some((done, step)) = steps.next() {
            let to = self.bench() + done;
            let (moved, error) = self.ground.table.move_pages(to, from + done, step);
            match steps.noted(moved, error) {
                None => {}
                Some(errno::EAGAIN) if steps.tries < TRIES => steps.again(),
                Some(errno::EINVAL) if step > PAGE_BYTES => steps.singly(),
                Some(errno::ENOENT) => {
                    // SAFETY: a page of zeros, for the handler's own page.
                    let (zeroed, _) =
                        unsafe { self.ground.table.copy(to, ZEROS.as_ptr(), PAGE_BYTES, false) };
                    if zeroed != PAGE_BYTES {
                        return Err(refused("move a page", errno::ENOENT));
                    }
                    steps.pass(PAGE_BYTES);
                }
                Some(errno::EBUSY) if steps.tries == 0 => {
                    // A child may have it too: then it becomes this process's alone. Else a device has it.
                    let at = from + done - self.ground.base();
                    let _ = self.ground.window.unshare(at, PAGE_BYTES);
                    steps.tries += 1;
                }
                Some(errno) => return Err(refused("move a page", errno)),
            }
        }
        Ok(())
    }

    /// Moves what is on the handler's own pages back to where it was. What must be put back is tried for ever where the
    /// kernel is at it.
    fn lower(&self, to: usize, bytes: usize) -> Result<(), Trouble> {
        let mut steps = Steps::new(bytes);
        while let Some((done, step)) = steps.next() {
            let (moved, error) = self.ground.table.move_pages(to + done, self.bench() + done, step);
            match steps.noted(moved, error) {
                None => {}
                Some(errno::ENOENT) => steps.pass(PAGE_BYTES),
                Some(errno::EAGAIN) => steps.again(),
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
        let from: *const u8 = match self.ground.far.memory() {
            _ if !stored => std::ptr::null(),
            Some(memory) => memory.place(&Self::part(run))?,
            None => {
                let to = self.bounce.as_ptr();
                // SAFETY: the handler's own buffer, which is that long.
                let buffer = unsafe { std::slice::from_raw_parts_mut(to, bytes) };
                let scratch = &mut self.scratch.borrow_mut();
                self.ground.far.read(&Self::part(run), buffer, scratch)?;
                to
            }
        };
        let to = self.ground.address_of(run.first);
        let mut steps = Steps::new(bytes);
        while let Some((done, step)) = steps.next() {
            let (from, most) = if stored {
                (from.wrapping_add(done), step)
            } else {
                (ZEROS.as_ptr(), step.min(ZEROS.len()))
            };
            // SAFETY: the source has `most` bytes; the groups belong to the caller, and this is what they held.
            let (copied, error) = unsafe { self.ground.table.copy(to + done, from, most, false) };
            match steps.noted(copied, error) {
                None => {}
                Some(errno::EAGAIN) => steps.again(),
                Some(errno::ENOENT | errno::EINVAL) if most > PAGE_BYTES => steps.singly(),
                // It is there; or the program mapped something else there behind our back.
                Some(errno::EEXIST | errno::ENOENT) => steps.pass(PAGE_BYTES),
                Some(errno) => return Err(refused("give memory to the fast tier", errno)),
            }
        }
        Ok(())
    }
}

/// A range that is treated by as few calls as the kernel lets: each must lie in one mapping, and neighbours of the
/// program's may be several.
#[derive(Debug)]
struct Steps {
    done: usize,
    bytes: usize,
    most: usize,
    /// Calls since the last that did something.
    tries: u32,
}

impl Steps {
    const fn new(bytes: usize) -> Self {
        Self { done: 0, bytes, most: bytes, tries: 0 }
    }

    /// What is done, and what the next call is to do.
    fn next(&self) -> Option<(usize, usize)> {
        let rest = self.bytes - self.done;
        (rest > 0).then_some((self.done, rest.min(self.most)))
    }

    const fn pass(&mut self, bytes: usize) {
        self.done += bytes;
        self.tries = 0;
    }

    /// Notes what a call did. Its error counts where that was nothing: else the next call finds it again.
    const fn noted(&mut self, bytes: usize, error: Option<i32>) -> Option<i32> {
        if bytes == 0 {
            return error;
        }
        self.pass(bytes);
        None
    }

    /// From here on page by page.
    const fn singly(&mut self) {
        self.most = PAGE_BYTES;
    }

    /// The kernel is at it: others go on first.
    fn again(&mut self) {
        self.tries += 1;
        give_way();
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
        let (at, bytes) = (run.first.index() * PAGE_BYTES, run.groups as usize * PAGE_BYTES);
        // SAFETY: the groups belong to the caller, and what they hold is worth nothing.
        unsafe { self.ground.window.empty(at, bytes) }.map_err(|errno| refused("free pages", errno))
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
